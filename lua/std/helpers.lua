-- helpers.lua - ranks without a GPU compile kernels for ranks with one.
--
-- Rank 0 divides the ranks that get no tasks, the helpers, among those that do. A rank that searches calls helpers.compile_begin,
-- .compile_wait and .workers, which without helpers are those of core. What is in its cache on disk comes from there. Other texts go to a
-- helper, and the binary that comes back goes to the cache, unless another compiler made it. Whatever a helper does not do, or does too
-- late, this rank compiles itself.
--
--   compile    to a helper: id, api, name, source, arch, fast_math, options, and tool, which compiler it must be
--   compiled   back: id, and log, binary in base64 and its hash; or why not
--   forget     to a helper: id, which is not wanted any more

local core = require "millrace.core"

local LATE <const> = 20                                 -- seconds for an answer; serve.lua skips a plan after 30
local STEP <const> = 0.02                               -- seconds of a wait for messages, or for compilers
local REFUSALS <const> = 3                              -- in a row, after which a helper is not asked any more in this task
local TEXT_MOST <const>, BINARY_MOST <const> = 16 << 20, 32 << 20   -- bytes; a message has 64 MiB
local JOBS_MOST <const> = 256                           -- that a helper holds for one rank
local MOST <const> = 64                                 -- kernels under way of a search, as of a pool

local helpers = {}

---- rank 0 --------------------------------------------------------------------------------------------

-- The compilers of this rank, as rank 0 gets to know them: how many it runs at the same time, and on which cores.
function helpers.compilers()
  local f <close> = io.open("/proc/self/status")
  local cores = f and f:read("a"):match "Cpus_allowed_list:%s*(%S+)"
  return {workers = core.compile_state(), cores = cores or ""}
end

-- The cores on which a rank compiles.
local function cores_of(x) return x.host .. " " .. (x.compilers and x.compilers.cores or "") end

-- Sorted ranks that get tasks; those that do not, have compilers, and other cores than these; how many of them share cores, by these.
local function sort_ranks(offers, chosen)
  local askers, idle, taken, sharing = {}, {}, {}, {}
  for rank in pairs(chosen) do
    askers[#askers + 1] = rank
    taken[cores_of(offers[rank])] = true
  end
  for rank, x in pairs(offers) do
    local cores = cores_of(x)
    if not chosen[rank] and x.compilers and not taken[cores] then
      idle[#idle + 1] = rank
      sharing[cores] = (sharing[cores] or 0) + 1
    end
  end
  table.sort(askers)
  table.sort(idle)
  return askers, idle, sharing
end

-- Of the ranks in a list, one with the fewest partners; among these one on the host, then the first.
local function fewest(list, partners, offers, host)
  local best
  for _, rank in ipairs(list) do
    local n, near = #partners[rank], offers[rank].host == host
    if not best or n < #partners[best] or n == #partners[best] and near and offers[best].host ~= host then best = rank end
  end
  return best
end

-- Whom each chosen rank may ask: {[rank]={{rank=, workers=}, ...}}. Each helper has a rank to help, and each of these a helper, if there is
-- any; those of the same host first. offers[rank].compilers is what helpers.compilers returns there.
function helpers.assign(offers, chosen)
  local askers, idle, sharing = sort_ranks(offers, chosen)
  local partners, given = {}, {}
  if #askers == 0 or #idle == 0 then return given end
  for rank in pairs(offers) do partners[rank] = {} end
  local function join(asker, helper)
    table.insert(partners[asker], helper)
    table.insert(partners[helper], asker)
  end
  for _, helper in ipairs(idle) do join(fewest(askers, partners, offers, offers[helper].host), helper) end
  for _, asker in ipairs(askers) do
    if #partners[asker] == 0 then join(asker, fewest(idle, partners, offers, offers[asker].host)) end
  end
  for _, asker in ipairs(askers) do
    given[asker] = {}
    for i, helper in ipairs(partners[asker]) do
      local x = offers[helper]
      given[asker][i] = {rank = helper, workers = math.max(1, x.compilers.workers // (sharing[cores_of(x)] * #partners[helper]))}
    end
  end
  return given
end

-- For whom each helper compiles, as text by rank, of what helpers.assign gives.
function helpers.helped(given)
  local list, askers = {}, {}
  for asker in pairs(given) do askers[#askers + 1] = asker end
  table.sort(askers)
  for _, asker in ipairs(askers) do
    for _, x in ipairs(given[asker]) do list[x.rank] = (list[x.rank] and list[x.rank] .. ", " or "rank ") .. asker end
  end
  return list
end

---- a rank that compiles for others ----------------------------------------------------------------------

local kinds = {id = "integer", api = "string", name = "string", source = "string", arch = "string", fast_math = "boolean",
  options = "table", tool = "string"}

-- Why a message is no job, or nil.
local function wrong_with(m)
  for field, kind in pairs(kinds) do
    local x = m[field]
    if (math.type(x) == "integer" and "integer" or type(x)) ~= kind then return ("its %s is %s"):format(field, type(x)) end
  end
  if #m.source > TEXT_MOST then return "its source is too long" end
  for _, x in pairs(m.options) do
    if type(x) ~= "string" then return "an option is no text" end
  end
end

local function begin_job(m)
  local why = wrong_with(m)
  if why then error(why, 0) end
  return core.compile_source{api = m.api, name = m.name, source = m.source, arch = m.arch, fast_math = m.fast_math, options = m.options}
end

local function answer_of(job)
  local tool, log, binary = job.source:result()
  if not tool then return {why = log} end
  if tool ~= job.tool then return {why = ("its compiler is %s, not %s"):format(tool, job.tool)} end
  if #log + #binary > BINARY_MOST then return {why = "its binary is too long"} end
  return {tool = tool, log = log, binary = core.base64(binary), hash = core.hash(binary)}
end

-- What a rank without a task does: begin what is asked for, and answer what is done. -> between, to be called between two messages, which
-- returns how long to wait for the next one (nil: as long as usual); stop, to be called in the end
function helpers.serve(ranks)
  local jobs, begun = {}, false                         -- {from=, id=, tool=, source=}; was there ever one?
  local function reply(to, id, m)
    m.kind, m.id = "compiled", id
    ranks:send(to, m)
  end
  local function held(from)
    local n = 0
    for _, job in ipairs(jobs) do if job.from == from then n = n + 1 end end
    return n
  end
  ranks:handle("compile", function(m, from)
    if math.type(m.id) ~= "integer" then return end     -- there is nothing to answer
    if held(from) >= JOBS_MOST then return reply(from, m.id, {why = "it has too much to do"}) end
    local good, x = ranks.try(begin_job, m)
    if not good then return reply(from, m.id, {why = tostring(x)}) end
    begun = true
    jobs[#jobs + 1] = {from = from, id = m.id, tool = m.tool, source = x}
  end)
  ranks:handle("forget", function(m, from)
    for i = #jobs, 1, -1 do
      if jobs[i].from == from and jobs[i].id == m.id then table.remove(jobs, i).source:drop() end
    end
  end)
  local function between()
    if #jobs == 0 then return nil end
    core.compile_wait(STEP)
    for i = #jobs, 1, -1 do
      local job = jobs[i]
      if job.source:done() then
        table.remove(jobs, i)
        reply(job.from, job.id, answer_of(job))
        job.source:drop()
      end
    end
    return 0
  end
  local function stop()
    for _, job in ipairs(jobs) do job.source:drop() end
    jobs = {}
    if begun then core.compile_end_idle() end
  end
  return between, stop
end

---- a rank that asks ---------------------------------------------------------------------------------------

local team = {}                                         -- {rank=, workers=, busy=, refusals=, late=, last=}: the helpers of this task
local asked = {}                                        -- what helpers have to do, by id: {of=, phase=, helper=, tool=, since=}
local live = {}                                         -- compilations that are not done
local ids = 0                                           -- of requests, never the same again
local ranks                                             -- those of the helpers

local compiling = {}
compiling.__index = compiling

-- A helper did not do it.
local function refused(helper, of, phase)
  helper.refusals = helper.refusals + 1
  core.compile_give(of.inner, phase)
end

local function take(m, from)
  local x = math.type(m.id) == "integer" and asked[m.id]
  if not x or x.helper.rank ~= from then
    for _, helper in ipairs(team) do if helper.rank == from then helper.late = false end end
    return
  end
  asked[m.id] = nil
  x.of.asked[x.phase] = nil
  x.helper.busy, x.helper.late = x.helper.busy - 1, false
  local bytes = type(m.binary) == "string" and type(m.log) == "string" and m.tool == x.tool and core.base64_bytes(m.binary)
  if not bytes or #bytes == 0 or core.hash(bytes) ~= m.hash then return refused(x.helper, x.of, x.phase) end
  x.helper.refusals = 0
  core.compile_give(x.of.inner, x.phase, m.tool, m.log, bytes)
end

-- The helper with the least to do for its workers, of several the one whose last request is the oldest; nil: this rank, which has one
-- worker less, as it also measures.
local function least_busy()
  local best, load = nil, math.huge
  for _, helper in ipairs(team) do
    local its = helper.busy / helper.workers
    local less = its < load or its == load and helper.last < best.last
    if less and helper.refusals < REFUSALS and not helper.late then best, load = helper, its end
  end
  local workers, _, waiting = core.compile_state()
  if best and workers > 1 and waiting / (workers - 1) < load then return nil end
  return best
end

function compiling:ask(phase)
  local helper, m = least_busy(), core.compile_wanted(self.inner, phase)
  if not helper or #m.source > TEXT_MOST then return core.compile_give(self.inner, phase) end
  ids = ids + 1
  m.kind, m.id = "compile", ids
  asked[ids] = {of = self, phase = phase, helper = helper, tool = m.tool, since = core.clock()}
  self.asked[phase] = ids
  helper.busy, helper.last = helper.busy + 1, ids
  ranks:send(helper.rank, m)
end

-- Nobody waits for the answer any more.
local function forget(id)
  local x = asked[id]
  asked[id] = nil
  x.of.asked[x.phase] = nil
  x.helper.busy = x.helper.busy - 1
  ranks:send(x.helper.rank, {kind = "forget", id = id})
end

-- Ask for the phases that the cache does not have, and do not wait any longer for late ones.
function compiling:step()
  for _, phase in ipairs(core.compile_missing(self.inner)) do
    local id = self.asked[phase]
    if not id then
      self:ask(phase)
    elseif core.clock() - asked[id].since > LATE then
      asked[id].helper.late = true
      forget(id)
      core.compile_give(self.inner, phase)
    end
  end
end

-- Receive what has come, wait for no longer than so many seconds, and go on with all that is under way. Behind the end, which rank 0 has
-- sent if another rank did the task, no answer is received.
local function advance(seconds)
  local ended = ranks:poll(next(asked) and seconds or 0)
  core.compile_wait((ended or not next(asked)) and seconds or 0)
  for c in pairs(live) do c:step() end
end

local function is_done(c) return c.inner:done() and #core.compile_missing(c.inner) == 0 end

function compiling:done()
  if not live[self] then return self.inner:done() end
  advance(0)
  if not is_done(self) then return false end
  live[self] = nil
  return true
end

function compiling:kernel()
  while not self:done() do advance(STEP) end
  return self.inner:kernel()
end

function compiling:drop()
  live[self] = nil
  for _, id in pairs(self.asked) do forget(id) end
  self.inner:drop()
end

-- As core.compile_begin of a plan.
function helpers.compile_begin(plan)
  if #team == 0 then return core.compile_begin(plan) end
  local c = setmetatable({inner = core.compile_begin(plan, nil, nil, true), asked = {}}, compiling)
  live[c] = true
  return c
end

-- As core.compile_wait.
function helpers.compile_wait(seconds)
  if #team == 0 then return core.compile_wait(seconds) end
  advance(math.min(seconds, STEP))
end

-- How many kernels are compiled at the same time: by so many workers of this rank (all of them), and by these helpers (those of the task).
function helpers.workers(own, list)
  local n = own or core.compile_state()
  for _, helper in ipairs(list or team) do n = math.min(n + helper.workers, math.max(n, MOST)) end
  return n
end

-- Ask these helpers until the result of this call, or of an earlier one, is closed: what helpers.assign gives for this rank; nil: none.
function helpers.use(of, list)
  team, ranks = {}, of
  if list then of:handle("compiled", take) end
  for i, x in ipairs(list or {}) do team[i] = {rank = x.rank, workers = x.workers, busy = 0, refusals = 0, late = false, last = 0} end
  return core.at_close(function()
    for c in pairs(live) do c:drop() end
    team = {}
  end)
end

return helpers
