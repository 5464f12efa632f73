-- ranks.lua - tasks divided over the ranks of a farm: rank 0 hands them out, the others do them.
--
-- All ranks run the same script, so each of them has the programs, and the same list of tasks: a message names a task by its number in
-- the list. Results are plain values (texts, numbers, booleans and tables of these). At the end of map every rank has all of them, so
-- that the script goes on in the same way everywhere.
--
-- A message is an object in JSON with a kind and the number of the map that it belongs to:
--
--   begin    to all: a map begins
--   ready    to rank 0: this rank waits for tasks; what its tasks are called, its host, what it offers (options.offer), its
--            compilers (options.compilers)
--   task     to a rank: do this one
--   result   to rank 0: what it gave, or why it failed
--   ask      to rank 0, within a task: call a function that rank 0 serves;  answer  to that
--   results  to all: some of the results, in their order
--   end      to all: the results are complete, or why there are none; of a search (remote.lua): its result
--
-- A rank from which nothing has come for a long time is lost, as where a driver never returns: its task goes to another rank, and the
-- first result counts. At the end of the job rank 0 waits for those that have come back, and not for others (hung).
--
-- Rank 0 that waits while another rank has come to the end of its script, or the other way round, would wait for ever: an error.
--
-- Ranks other than 0 may send each other messages of other kinds, for which they have handlers (ranks:handle). Nothing may depend on
-- these: what has no handler, what belongs to another map, and what is no message is dropped.

local core = require "millrace.core"
local json = require "millrace.json"

local WAIT <const> = 0.5                                -- seconds of a wait for a message
local TRIES <const> = 2                                 -- of a task that failed, the second on another rank if there is one
local SILENCE <const> = 3600                            -- seconds after which a rank is lost from which nothing has come
local TOGETHER <const> = 64                             -- the most questions that are answered together
local PART <const> = 1 << 20                            -- about how many bytes of results are one message
local SAME_CALLS <const> = "all ranks must make the same calls of mr.tune and mr.search"

local ranks = {}
ranks.__index = ranks

-- farm: what core.farm() gives, or anything with its methods. try: how a function is called that may fail, as core.try, which
-- coroutines cannot yield across. clock: seconds, as core.clock.
local function new(farm, try, clock)
  return setmetatable({
    farm = farm,
    try = try or core.try,
    clock = clock or core.clock,
    rank = farm:rank(),
    size = farm:size(),
    host = farm:host(),
    maps = 0,                                           -- calls of map, or of a search, so far
    asks = 0,                                           -- questions so far
    served = {},                                        -- on rank 0: functions by name (serve)
    together = {},                                      -- those of them for what was asked at the same time (serve_together)
    lost = {},                                          -- on rank 0: of each rank that is lost: its name
    handlers = {},                                      -- functions by the kind of a message between other ranks (handle)
    deferred = {},                                      -- messages for next that poll has received: {message, rank}
  }, ranks)
end

---- messages -------------------------------------------------------------------------------------

local function plain(x)
  if x == json.null then return nil end
  if type(x) ~= "table" then return x end
  local t = {}
  for key, value in pairs(x) do t[key] = plain(value) end
  return t
end

-- Send a plain value with a `kind` to a rank; does not wait.
function ranks:send(to, message)
  message.map = self.maps
  self.farm:send(to, json.encode(message))
end

-- Call f(message, rank) for messages of this kind between ranks other than 0. It does not wait.
function ranks:handle(kind, f) self.handlers[kind] = f end

-- The next message and the rank that sent it; nil if none comes in time, nil and the rank if it was one between ranks other than 0.
local function receive(r, seconds)
  local text, from = r.farm:receive(seconds)
  if not text then return nil end
  local message, why = json.decode(text)
  local good = type(message) == "table" and type(message.kind) == "string"
  if r.rank > 0 and from > 0 then
    local f = good and message.map == r.maps and r.handlers[message.kind]
    if f then f(plain(message), from) end
    return nil, from
  end
  if not good then
    core.raise(("farm: rank %d sent what is no message%s"):format(from, why and ": " .. why or ""))
  end
  return plain(message), from
end

-- The same, of this map. Rank 0 drops what belongs to an earlier one, which an error ended, or whose rank was lost then.
local function arrival(self, seconds)
  local m, from = receive(self, seconds)
  local closed = not from and self.farm:closed_rank()
  if closed then
    core.raise(("farm: rank %d has come to the end of its script, and rank %d goes on: " .. SAME_CALLS):format(closed, self.rank))
  end
  if m and self.rank == 0 and math.type(m.map) == "integer" and m.map < self.maps then return nil, from end
  if m and m.map ~= self.maps then
    core.raise(("farm: rank %d has made another number of calls than rank %d: " .. SAME_CALLS):format(from, self.rank))
  end
  return m, from
end

-- The next message of this map and the rank that sent it; nil if none comes within so many seconds (WAIT), or one that a handler gets.
function ranks:next(seconds)
  if self.deferred[1] then return table.unpack(table.remove(self.deferred, 1)) end
  return arrival(self, seconds or WAIT)
end

local function has_end(r)
  local last = r.deferred[#r.deferred]
  return last ~= nil and last[1].kind == "end"
end

-- Handle the messages that have come, and keep others for next; wait for the first one, for no longer than so many seconds. What is behind
-- the end belongs to another map, and stays where it is. -> has the end come? Then nothing more does.
function ranks:poll(seconds)
  if has_end(self) then return true end
  repeat
    local m, from = arrival(self, seconds)
    if m then table.insert(self.deferred, {m, from}) end
    seconds = 0
  until not from or has_end(self)
  return has_end(self)
end

-- Take the first message of a kind out of those that poll has kept; nil: there is none.
function ranks:take(kind)
  for i, x in ipairs(self.deferred) do
    if x[1].kind == kind then return table.remove(self.deferred, i)[1] end
  end
end

---- calls of rank 0 --------------------------------------------------------------------------------

-- On rank 0: let tasks on other ranks call f(value, task, rank) by this name. It takes and returns plain values; an error of it is one of
-- the task.
function ranks:serve(name, f) self.served[name], self.together[name] = f, nil end

-- The same with a function of a list of what ranks ask at the same time, {value=, task=, rank=}, that returns a list of the values: for
-- what takes long, but not longer for many, as to wait for a disk. If it fails it is called again for each of them.
function ranks:serve_together(name, f)
  self.together[name] = f
  self.served[name] = function(value, task, rank) return f{{value = value, task = task, rank = rank}}[1] end
end

local function send_answer(r, m, from, good, value)
  r:send(from, {kind = "answer", ask = m.ask, good = good, value = good and value or nil, why = not good and tostring(value) or nil})
end

local function answer(r, m, from)
  local f = r.served[m.name]
  if not f then core.raise(("farm: rank %d asks for '%s', which rank 0 does not serve"):format(from, tostring(m.name))) end
  send_answer(r, m, from, r.try(f, m.value, m.task, from))
end

-- Answer what was asked at the same time, a list of {message=, value=, task=, rank=}, all for one name.
local function answer_together(r, asked)
  local good, values = r.try(r.together[asked[1].message.name], asked)
  for i, x in ipairs(asked) do
    if good then send_answer(r, x.message, x.rank, true, values[i]) else answer(r, x.message, x.rank) end
  end
end

-- An ask that was received: answered now, or kept in `asked`, by name, for those that come with it.
local function take_ask(r, m, from, asked)
  if not r.together[m.name] then return answer(r, m, from) end
  local list = asked[m.name] or {}
  list[#list + 1] = {message = m, value = m.value, task = m.task, rank = from}
  asked[m.name] = #list < TOGETHER and list or nil
  if #list == TOGETHER then answer_together(r, list) end
end

local function answer_all(r, asked)
  for name, list in pairs(asked) do
    asked[name] = nil
    answer_together(r, list)
  end
end

-- Within a task: what f of rank 0 returns for the value. On rank 0 itself it is called here.
function ranks:ask(name, value)
  if self.rank == 0 then return self.served[name](value, self.task, 0) end
  self.asks = self.asks + 1
  self:send(0, {kind = "ask", ask = self.asks, name = name, value = value, task = self.task})
  while true do
    local m = self:next()
    if m and m.kind == "answer" and m.ask == self.asks then
      if not m.good then core.raise(m.why) end
      return m.value
    elseif m and (m.kind == "results" or m.kind == "end") then
      table.insert(self.deferred, 1, {m, 0})
      core.raise "farm: rank 0 has gone on without this task"
    elseif m then
      core.raise(("farm: rank 0 answers '%s' with '%s'"):format(name, m.kind))
    end
  end
end

---- getting ready -------------------------------------------------------------------------------------

-- A rank other than 0: wait until rank 0 begins what has this name, and be ready for it, with what offer() and compilers() return; instead
-- of an offer, nil and why there is none.
function ranks:join(name, offer, compilers)
  local m
  repeat m = self:next() until m
  if m.kind ~= "begin" then core.raise(("farm: rank 0 begins with '%s'"):format(m.kind)) end
  local offered, why
  if offer then offered, why = offer() end
  self:send(0, {kind = "ready", names = core.hash(name), host = self.host, offer = offered, why = not offered and why or nil,
    compilers = compilers and compilers()})
end

local function silence_of(name, seconds) return ("nothing has come from %s for %g s"):format(name, seconds) end

-- On rank 0: take the "ready" of a rank, which is not lost any more. hash: of the name of the call that rank 0 is in; different(rank, host):
-- the error if the rank is in another one. -> what the rank has: {host=, offer=, why=, compilers=}
function ranks:welcome(m, from, hash, different)
  if m.kind ~= "ready" then core.raise(("farm: rank %d sent '%s' before it was ready"):format(from, m.kind)) end
  if m.names ~= hash then core.raise(different(from, tostring(m.host))) end
  self.lost[from] = nil
  return {host = m.host, offer = m.offer, why = m.why, compilers = m.compilers}
end

-- On rank 0: send "begin" to all ranks, and wait until each is ready or lost. One that was lost before is not waited for, unless something has
-- come from it since. Fills `offers`, by rank, with what welcome returns. o:
--   different  as in welcome
--   silence    seconds (3600) after which a rank is lost that sends nothing;  warn(text)  that it is
--   watch()    called now and then
function ranks:gather(hash, offers, o)
  local missing, began, silence = 0, self.clock(), o.silence or SILENCE
  -- Take a message, if one comes in time. It may be what a lost rank had to send in an earlier call: that one gets ready, too.
  local function take(seconds)
    local m, from = self:next(seconds)
    if m then
      if not self.lost[from] then missing = missing - 1 end
      offers[from] = self:welcome(m, from, hash, o.different)
    elseif from and self.lost[from] then
      self.lost[from], missing = nil, missing + 1
    end
    return from
  end
  for rank = 1, self.size - 1 do
    self:send(rank, {kind = "begin"})
    if not self.lost[rank] then missing = missing + 1 end
  end
  while take(0) do end
  while missing > 0 do
    if not take() and self.clock() - began > silence then
      for rank = 1, self.size - 1 do
        if not offers[rank] and not self.lost[rank] then
          self.lost[rank], missing = ("rank %d"):format(rank), missing - 1
          if o.warn then o.warn(silence_of(self.lost[rank], silence) .. ": it is not waited for") end
        end
      end
    end
    if o.watch then o.watch() end
  end
end

---- doing tasks --------------------------------------------------------------------------------------

-- {good=, value= or why=}
local function attempt(r, run, task, with)
  local _ <close> = core.at_close(function() r.task = nil end)
  r.task = task
  local good, value = r.try(run, task, with)
  return {good = good, value = good and value or nil, why = not good and tostring(value) or nil}
end

-- A rank other than 0: do what comes, until the results do.
local function work(r, names, run, o)
  local m
  r:join(table.concat(names, "\n"), o.offer, o.compilers)
  local results = {}
  while true do
    m = r:next(o.between and o.between())
    if m and m.kind == "end" then
      if m.why then error(m.why, 0) end
      return results
    end
    if m and m.kind == "results" then
      table.move(m.list, 1, #m.list, #results + 1, results)
    elseif m and m.kind == "task" then
      r:send(0, {kind = "result", task = m.task, result = attempt(r, run, m.task, m.with)})
    elseif m then
      core.raise(("farm: a message '%s' of rank 0 between two tasks"):format(m.kind))
    end
  end
end

---- handing out tasks ----------------------------------------------------------------------------------

-- State of a map on rank 0. Tasks are named by their numbers, and tables with a field for each rank begin with rank 1.
local function new_state(r, names)
  local now = r.clock()
  local s = {
    names = core.hash(table.concat(names, "\n")),       -- what all ranks must call their tasks
    waiting = {},                                       -- tasks to be handed out, in this order; false where one was taken
    first = 1,                                          -- in `waiting`: all before it were taken
    failures = {},                                      -- of each task
    suspect = {},                                       -- of each task: a suspect result, which counts if there is no better one
    last = {},                                          -- of each task: the rank that had it last
    results = {},                                       -- of each task
    done = 0,                                           -- how many results there are
    offers = {},                                        -- of ranks that are ready: what they have sent (gather)
    begun = false,                                      -- tasks are handed out
    workers = 0,                                        -- ranks that do tasks and are not lost
    with = {},                                          -- of each rank that does tasks: what it is sent with each
    idle = {},                                          -- a list of ranks that wait for a task
    doing = {},                                         -- of each rank: its task; a lost one keeps it until it answers
    heard = {},                                         -- of each rank: when something came from it last
    lost = r.lost,                                      -- of each rank that is lost: its name
    late = {},                                          -- true of each rank that became ready after tasks were handed out: it gets none
    looked = now,                                       -- when lost ranks were looked for last
  }
  for i in ipairs(names) do s.waiting[i], s.failures[i] = i, 0 end
  for rank = 1, r.size - 1 do s.heard[rank] = now end
  return s
end

-- The next task for a rank: not one that it had before, unless no other rank could take it.
local function next_task(s, rank)
  for k = s.first, #s.waiting do
    local task = s.waiting[k]
    if s.last[task] ~= rank or s.workers < 2 then
      if k > s.first then table.remove(s.waiting, k) else s.waiting[k], s.first = false, k + 1 end
      if not s.results[task] then return task end
      return next_task(s, rank)                         -- a rank that was lost has done it
    end
  end
end

local function hand_out(r, s)
  local k = 1
  while s.idle[k] and s.first <= #s.waiting do
    local rank = s.idle[k]
    local task = next_task(s, rank)
    if task then
      table.remove(s.idle, k)
      s.doing[rank], s.last[task], s.heard[rank] = task, rank, r.clock()
      r:send(rank, {kind = "task", task = task, with = s.with[rank]})
    else
      k = k + 1
    end
  end
end

local function finish(s, task, rank, x, o)
  s.results[task], s.done = x, s.done + 1
  if o.report then o.report(task, rank, x, s.done) end
end

local function is_suspect(s, x, o) return x.good and o.suspects and s.workers > 1 and o.suspects(x.value) end

-- What a try of a task gave. The first result counts; a suspect one only if there is no better one.
local function conclude(s, task, rank, x, o)
  if s.results[task] then return end
  local suspect = is_suspect(s, x, o)
  if not x.good or suspect then
    s.failures[task] = s.failures[task] + 1
    if s.failures[task] < TRIES then
      s.suspect[task] = suspect and x or nil
      table.insert(s.waiting, task)
      if o.report then o.report(task, rank, x, "again") end
      return
    end
    x = not x.good and s.suspect[task] or x
  end
  finish(s, task, rank, x, o)
end

-- What a rank gave that was lost: that has been a failure of the task already, and another rank may be about to give a better result.
local function conclude_late(s, task, rank, x, o)
  if is_suspect(s, x, o) then s.suspect[task] = x elseif x.good then conclude(s, task, rank, x, o) end
end

local function count_result(r, s, m, from, o)
  if type(m.result) ~= "table" or type(m.result.good) ~= "boolean" then core.raise(("farm: rank %d sent no result"):format(from)) end
  if not m.task or s.doing[from] ~= m.task then core.raise(("farm: rank %d answers for a task that it was not given"):format(from)) end
  s.doing[from] = nil
  table.insert(s.idle, from)
  if not r.lost[from] then return conclude(s, m.task, from, m.result, o) end
  r.lost[from], s.workers = nil, s.workers + 1
  conclude_late(s, m.task, from, m.result, o)
end

-- The ranks that are lost, as a text, or nil; and how many these are.
local function lost_list(r)
  local list = {}
  for rank = 1, r.size - 1 do list[#list + 1] = r.lost[rank] end
  return list[1] and table.concat(list, ", "), #list
end

-- On rank 0: that some ranks are lost, as a text, as these may be why there is something that no rank has; nil: none is.
function ranks:silent()
  local list = lost_list(self)
  return list and "nothing has come from " .. list
end

-- If all ranks that did tasks are lost, and have been silent for twice as long as that takes, nobody will take those that are waiting: they
-- have failed, as the map would never end.
local function give_up(r, s, now, limit, o)
  if s.workers > 0 then return end
  for rank in pairs(s.doing) do
    if now - s.heard[rank] <= 2 * limit then return end
  end
  local why = "no rank is left that does tasks: " .. r:silent()
  for k = s.first, #s.waiting do
    local task = s.waiting[k]
    if not s.results[task] then finish(s, task, 0, s.suspect[task] or {good = false, why = why}, o) end
  end
  s.first = #s.waiting + 1
end

-- Ranks that are lost, looked for now and then: their tasks go to others.
local function look_for_lost(r, s, o)
  local now = r.clock()
  if now - s.looked < WAIT then return end
  s.looked = now
  local limit = o.silence or SILENCE
  for rank = 1, r.size - 1 do
    local task = s.doing[rank]
    if task and not r.lost[rank] and now - s.heard[rank] > limit then
      r.lost[rank] = ("rank %d on %s"):format(rank, s.offers[rank].host)
      s.workers = s.workers - 1
      conclude(s, task, rank, {good = false, why = silence_of(r.lost[rank], limit)}, o)
    end
  end
  give_up(r, s, now, limit, o)
end

-- Choose who does tasks.
local function begin(r, s, o)
  local chosen, with = s.offers, nil
  if o.choose then chosen, with = o.choose(s.offers) end
  for rank = 1, r.size - 1 do if chosen[rank] then table.insert(s.idle, rank) end end
  s.begun, s.workers, s.with = true, #s.idle, with or {}
  if s.workers == 0 and s.first <= #s.waiting then
    local silent = r:silent()
    core.raise("farm: there is no rank that does tasks" .. (silent and ": " .. silent or ""))
  end
end

-- Send all results to all ranks: each is made a text once, and a message has some of them.
local function send_results(r, s)
  local texts, bytes = {}, 0
  local function flush()
    local text = ('{"kind": "results", "list": [%s], "map": %d}'):format(table.concat(texts, ", "), r.maps)
    for rank = 1, r.size - 1 do r.farm:send(rank, text) end
    texts, bytes = {}, 0
  end
  for i, x in ipairs(s.results) do
    texts[#texts + 1] = json.line(x)
    bytes = bytes + #texts[#texts]
    if bytes > PART or i == #s.results then flush() end
  end
  for rank = 1, r.size - 1 do r:send(rank, {kind = "end"}) end
end

-- Rank 0: hand out the tasks once all ranks are ready.
local function coordinate(r, names, o)
  local s, asked = new_state(r, names), {}
  local function watch() if o.watch then o.watch(s) end end
  local function different(rank, host)
    return ("farm: rank %d on %s has another list of tasks than rank 0: the script must give the same list everywhere, "
      .. "and name the device, device=\"h200\""):format(rank, host)
  end
  r:gather(s.names, s.offers, {different = different, silence = o.silence, warn = o.warn, watch = watch})
  begin(r, s, o)
  while s.done < #names do
    hand_out(r, s)
    watch()
    local m, from = r:next(next(asked) and 0)
    if m then s.heard[from] = r.clock() else answer_all(r, asked) end
    if m and m.kind == "ready" then
      s.offers[from], s.late[from] = r:welcome(m, from, s.names, different), true
    elseif m and m.kind == "result" then
      count_result(r, s, m, from, o)
    elseif m and m.kind == "ask" then
      take_ask(r, m, from, asked)
    elseif m then
      core.raise(("farm: rank %d sent '%s' to rank 0"):format(from, m.kind))
    end
    look_for_lost(r, s, o)
  end
  watch()
  answer_all(r, asked)
  send_results(r, s)
  return s.results
end

-- One process: the tasks in their order, until Ctrl-C ends one, whatever that one makes of it: the last race of a search keeps the result,
-- and does not tell.
local function alone(r, names, run, o)
  local results, heeded = {}, core.heeded()
  for task in ipairs(names) do
    local stopped, good, x = core.heeded() > heeded, false, nil
    if not stopped then good, x = core.heed(attempt, r, run, task) end
    results[task] = good and x or {good = false, why = "interrupted"}
    if o.report and not stopped then o.report(task, 0, results[task], task) end
  end
  return results
end

-- Rank 0. An error of it is one of all ranks.
local function coordinate_or_fail(r, names, o)
  local good, results = r.try(coordinate, r, names, o)
  if good then return results end
  for rank = 1, r.size - 1 do r:send(rank, {kind = "end", why = tostring(results)}) end
  error(results, 0)
end

-- r:map(names, run[, options]) -> results, a list of {good=true, value=} and {good=false, why=}, on all ranks
--
-- names: what each task is called; the same on all ranks. run(i, with) does task i and returns a plain value. A task that fails is done
-- again once, on another rank if there is one. In one process Ctrl-C ends the map: tasks that are left have failed then, as interrupted.
-- Options of ranks other than 0:
--
--   offer()      what the rank has, which rank 0 knows before it hands out tasks; nil and why not: nothing
--   compilers()  which compilers it has, for `choose`
--   between()    while the rank waits for a task, before each wait for a message: for how many seconds (nil: WAIT)
--
-- Options of rank 0:
--
--   choose(offers)  by what ranks offer, {host=, offer=, why=, compilers=} by rank: which get tasks, {[rank]=true}; and what each
--                   of these is sent with a task, {[rank]=with}, or nil
--   suspects(value) true: another rank, if there is one, should do the task as well, as the fault may be that of this one
--   report(task, rank, result, n)  a result, the n-th; n "again": of a task that is done once more; rank 0: of a task that none has
--   watch(state)    now and then, also while ranks get ready: what they do, as in new_state: offers, doing, with, heard, begun, lost, late
--   warn(text)      what the user should know of a rank
--   silence         seconds, more than a task takes between two messages (3600)
--
-- A rank that has a task, or is not ready, and sends nothing for so long as `silence` is lost. Its task has failed there, and it gets no
-- other one until it answers; if that is with the first result of the task, it counts. A task that is lost twice has failed, as have
-- those that are left once all ranks that do tasks are lost and were silent for twice as long.
function ranks:map(names, run, o)
  o = o or {}
  self.maps = self.maps + 1
  if self.size == 1 then return alone(self, names, run, o) end
  if self.rank > 0 then return work(self, names, run, o) end
  return coordinate_or_fail(self, names, o)
end

-- When rank 0 is about to end, as a text: the ranks that are lost and have sent nothing since; nil: none. Receives and drops all messages,
-- as a large one may still be arriving.
function ranks:hung()
  local from
  repeat
    from = next(self.lost) and select(2, self.farm:receive(WAIT))
    if from then self.lost[from] = nil end
  until not from
  local list, n = lost_list(self)
  return list and ("%s %s: the job ends without %s"):format(list, n == 1 and "hangs" or "hang", n == 1 and "it" or "them")
end

-- How many processes mpirun or srun started, if this is the first of several; nil: it is not.
local function started()
  for size, rank in pairs{OMPI_COMM_WORLD_SIZE = "OMPI_COMM_WORLD_RANK", SLURM_STEP_NUM_TASKS = "SLURM_PROCID", PMI_SIZE = "PMI_RANK"} do
    local n = tonumber(os.getenv(size))
    if n and n > 1 and os.getenv(rank) == "0" then return n end
  end
end

local one_process = {rank = function() return 0 end, size = function() return 1 end, host = function() return "" end}
local shared

-- The ranks of this process: those of the farm, or itself alone.
local function of_process()
  if shared then return shared end
  local farm = core.farm()
  local n = not farm and started()
  if n then
    io.stderr:write(("millrace: %d processes were started, and each of them does everything: with --farm they divide it\n"):format(n))
  end
  shared = new(farm or one_process)
  return shared
end

return {new = new, shared = of_process, hung = function() return shared and shared:hung() end}
