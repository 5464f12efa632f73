-- remote.lua: a search on rank 0 whose candidates other ranks measure. These are coroutines that go on while rank 0 waits for a message, in an
-- order that random numbers choose, and they measure on a device that is a table of times.
local mr = require "millrace"
local here = arg[0]:match "^(.*/)" or "./"
local tap = dofile(here .. "tap.lua")
local _, random = table.unpack(dofile(here .. "lib/play_ranks.lua"))
local ok, is = tap.ok, tap.is
local core, measure, remote = require "millrace.core", require "millrace.measure", require "millrace.remote"
local helpers = require "millrace.helpers"
local new_ranks = require("millrace.ranks").new

---- the ranks --------------------------------------------------------------------------------------

local world                                             -- {times=, fails=, rank=, log=}: of the search that runs

-- A server like serve.lua's: of the kernels that it was given, two polls later a row.
package.loaded["millrace.serve"] = function(bound)
  local server = {capacity = 3}
  function server:wait() coroutine.yield() end
  function server:end_idle() end
  function server:begin(item)
    local rank, polls = world.rank, 0
    local h = {}
    function h:poll(incumbent)
      polls = polls + 1
      if polls < 3 then return nil end
      if item.finalists then
        local row = {id = item.id, status = "ok", results = {}, wrong = {}, failed = {}, notes = {}, device_seconds = 0.1}
        for _, x in ipairs(item.finalists) do
          local ms = world.times[x.script]
          row.results[x.id] = {ms = ms, min = ms, max = ms, ratio = ms / world.times[item.finalists[1].script]}
          if not row.right or ms < row.results[row.right].ms then row.right = x.id end
        end
        return row
      end
      world.log[#world.log + 1] = item.script
      if world.skips and world.skips[item.script] and not item.anyway then return {id = item.id, status = "skipped", why = "it spills"} end
      if world.fails(item.script, rank) then return {id = item.id, status = "failed", why = "it faults", script = item.script} end
      local slow = 1 + rank / 100                       -- devices differ
      local row = {id = item.id, status = "ok", script = item.script, ms = world.times[item.script] * slow, device_seconds = 0.1}
      if incumbent then row.against, row.ratio = incumbent.id, world.times[item.script] / world.times[incumbent.script] end
      return row
    end
    function h:drop() world.dropped = (world.dropped or 0) + 1 end
    return h
  end
  return server
end
local offers = package.loaded["millrace.farm_devices"]
offers.offer = function(ranks) return {name = "H200", driver = "1", ms = world.without[ranks.rank] and 2 or 1} end

-- Measure the candidates with `size` ranks, all but the first of which measure -> what measure() gives, what each rank returns, and what
-- another call gives after it, which must not take messages of the search for its own.
local function search(size, seed, candidates, o)
  local next_of, inbox, threads, returned = random(seed), {}, {}, {}
  local function farm_of(rank)
    inbox[rank] = {}
    local farm = {}
    function farm:rank() return rank end
    function farm:size() return size end
    function farm:host() return "one" end
    function farm:closed_rank() return nil end          -- no test ends a rank early
    function farm:send(to, text) table.insert(inbox[to], {text, rank}) end
    return farm
  end
  local now = 0
  local function step()
    local rank = next_of(size - 1)
    if rank == o.silent and now >= o.since and now < (o.till or math.huge) then return end
    if coroutine.status(threads[rank]) ~= "suspended" then return end
    world.rank = rank
    assert(coroutine.resume(threads[rank]))
  end
  local here = farm_of(0)
  function here:receive()
    now = now + 1
    for _ = 1, next_of(12) do step() end
    if #inbox[0] > 0 and next_of(3) > 1 then return table.unpack(table.remove(inbox[0], 1)) end
  end
  for rank = 1, size - 1 do
    local farm = farm_of(rank)
    function farm:receive()
      coroutine.yield()
      if inbox[rank][1] then return table.unpack(table.remove(inbox[rank], 1)) end
    end
    threads[rank] = coroutine.create(function()
      local r = new_ranks(farm, pcall)
      returned[rank] = remote.work(r, "a search", "bound", "device", {})
      pcall(r.map, r, {"one more call"}, function() return "done" end)   -- an error is that of rank 0
    end)
  end
  local said = {}
  local first = new_ranks(here, nil, function() return now end)
  first.lost = o.lost or first.lost
  local group = remote.begin(first, "a search", function(text) said[#said + 1] = text end, 200)
  o.server = group.servers
  o.uncertainty = 0.05
  local r = measure("bound", nil, candidates, o)
  group:finish{best = r.best and r.best.script}
  local good, after = pcall(first.map, first, {"one more call"}, function() return "done" end)
  o.silent = nil                                        -- it comes back now
  for _ = 1, 1000 * size do step() end
  return r, returned, good and after[1].value or after, said
end

local function space(n, seed)
  local next_of, list, times = random(seed), {}, {}
  for i = 1, n do
    local predicted = 1e-3 * (1 + i / 100)
    list[i] = {script = "plan " .. i, predicted = predicted, traits = {number = i}}
    times["plan " .. i] = predicted * 1e3 * (1 + (next_of(101) - 51) / 1000)
  end
  return list, times
end

---- properties ------------------------------------------------------------------------------------

local function least(times)
  local best
  for script, ms in pairs(times) do if not best or ms < times[best] then best = script end end
  return best
end

local dropped = 0
for _, size in ipairs{2, 3, 6} do
  local problem
  for seed = 1, 30 do
    local list, times = space(20, seed)
    world = {times = times, fails = function() return false end, log = {}, without = {}}
    local r, returned, after = search(size, seed, list, {risk = seed % 3 == 0 and -1 or nil})
    local count = {}
    for _, script in ipairs(world.log) do count[script] = (count[script] or 0) + 1 end
    for script, n in pairs(count) do if n > 1 then problem = ("seed %d: %s was measured %d times"):format(seed, script, n) end end
    if seed % 3 == 0 and r.best.script ~= least(times) then problem = ("seed %d: of all %s was found"):format(seed, r.best.script) end
    if not r.best.final then problem = ("seed %d: the best was in no last race"):format(seed) end
    if r.best.score > 1.03 * times[least(times)] * (1 + size / 100) then problem = ("seed %d: a slow plan was found"):format(seed) end
    for rank = 1, size - 1 do
      if not returned[rank] or returned[rank].best ~= r.best.script then problem = ("seed %d: rank %d has no result"):format(seed, rank) end
    end
    if after ~= "done" then problem = ("seed %d: the next call fails"):format(seed) end
    dropped = dropped + (world.dropped or 0)
  end
  is(problem, nil, ("%d ranks find the best, measure nothing twice, and go on"):format(size))
end
ok(dropped > 0, "  also where candidates are dropped")

-- A rank on which every kernel fails, and kernels that fail everywhere.
local problem
for seed = 1, 20 do
  local list, times = space(10, seed)
  world = {times = times, log = {}, without = {}, fails = function(script, rank) return rank == 1 or script == "plan 3" end}
  local r = search(4, seed, list, {risk = -1, trials = 10})
  local tries = 0
  for _, row in ipairs(r.results) do
    if (row.status == "failed") ~= (row.script == "plan 3") then problem = ("seed %d: %s: %s"):format(seed, row.script, row.status) end
  end
  for _, script in ipairs(world.log) do tries = tries + (script == "plan 3" and 1 or 0) end
  if tries ~= 2 then problem = ("seed %d: what fails was tried %d times"):format(seed, tries) end
end
is(problem, nil, "what fails on one rank is measured on another one, once")

-- Kernels that spill, of which there are more than are under way at a time: another rank then leads, until one is measured.
problem = nil
for seed = 1, 20 do
  local list, times = space(24, seed)
  world = {times = times, log = {}, without = {}, fails = function() return false end, skips = {}}
  for i = 1, 10 + seed % 14 do world.skips["plan " .. i] = true end
  local r = search(2 + seed % 4, seed, list, {risk = -1})
  for _, row in ipairs(r.results) do
    if row.status == "ok" and world.skips[row.script] then problem = ("seed %d: %s does not spill"):format(seed, row.script) end
  end
  if not r.best or world.skips[r.best.script] then problem = ("seed %d: no plan without spills"):format(seed) end
end
is(problem, nil, "where the first ones spill, others are measured")

-- A rank that was lost before, and gets ready while the others measure, or has done so before they do.
do
  local wrong, came = nil, {}
  for seed = 1, 30 do
    local list, times = space(20, seed)
    local lost = {[2] = "rank 2"}
    local measures = false
    world = {times = times, log = {}, without = {}, fails = function(_, rank)
      measures = measures or rank == 2
      return false
    end}
    local good, r, returned, after = pcall(search, 4, seed, list, {lost = lost})
    if not good then wrong = ("seed %d: %s"):format(seed, r)
    elseif next(lost) or after ~= "done" or returned[2].best ~= r.best.script then wrong = ("seed %d: it is still lost"):format(seed) end
    came[measures] = true
  end
  is(wrong, nil, "a rank that was lost, and comes back while the others search, has the result, too")
  ok(came[true] and came[false], "  it measures if it was ready with the others")
end

-- A rank from which nothing comes any more once it is ready, and one from which something comes later. Rank 0 measures time in messages here.
for _, case in ipairs{{"is lost, and others measure what it had"}, {"comes back, and measures again", 400}} do
  local wrong, named, back = nil, 0, 0
  for seed = 1, 30 do
    local list, times = space(30, seed)
    world = {times = times, log = {}, without = {}, fails = function(_, rank)
      if rank == 1 then world.last = #world.log end
      return false
    end}
    local r, returned, after, said = search(4, seed, list, {risk = -1, silent = 1, since = 20 + seed, till = case[2]})
    local ok_rows = 0
    for _, row in ipairs(r.results) do ok_rows = ok_rows + (row.status == "ok" and 1 or 0) end
    if ok_rows ~= 30 or #r.results ~= 30 then wrong = ("seed %d: %d of %d rows"):format(seed, ok_rows, #r.results) end
    if after ~= "done" or not returned[1] then wrong = ("seed %d: it does not go on"):format(seed) end
    named = named + (said[1] == "nothing has come from rank 1 on one for 200 s: it measures nothing until something does" and 1 or 0)
    back = back + ((world.last or 0) > 20 and 1 or 0)
  end
  is(wrong, nil, "a rank from which nothing comes " .. case[1])
  ok(named > 0 and (not case[2] or back > 0), "  and is named", named, back)
end
do
  local list, times = space(5, 1)
  world = {times = times, log = {}, without = {}, fails = function() return false end}
  local r, _, _, said = search(2, 1, list, {risk = -1, silent = 1, since = 8})
  local failed = 0
  for _, row in ipairs(r.results) do failed = failed + (row.status == "failed" and row.why:find "nothing has come from rank 1" and 1 or 0) end
  ok(failed > 0 and failed + r.trials >= 3, "where nothing comes from the only rank, what it had has failed", failed)
  is(#said, 1, "  and the search ends")
end

-- A device that is not like the others.
do
  local list, times = space(10, 1)
  world = {times = times, log = {}, fails = function(_, rank) return rank == 2 end, without = {[2] = true}}
  local r, returned, _, said = search(4, 1, list, {risk = -1})
  is(#r.results, 10, "a device that is slower than the others is left out")
  ok(said[1]:find "rank 2" and #said == 1 and returned[2].best == r.best.script, "  is named, and its rank gets the result")
end

-- Rows that are none.
for _, case in ipairs{{"a row of an unknown status", {id = 1, status = "fine"}}, {"a row without a number", {status = "ok"}},
    {"a row whose ms is no number", {id = 1, status = "ok", ms = "1"}}, {"a row without a time", {id = 1, status = "ok"}},
    {"a row whose results have no numbers", {id = 1, status = "ok", results = {a = 1}}},
    {"a row of finalists whose right one has no number", {id = 1, status = "ok", results = {}, right = "1"}},
    {"a row of finalists one of whose min is no number", {id = 1, status = "ok", results = {{ms = 1, max = 1, ratio = 1}}}},
    {"a row of finalists one of whose ms is no number", {id = 1, status = "ok", results = {7}}}} do
  local list, times = space(3, 1)
  world = {times = times, log = {}, fails = function() return false end, without = {}}
  local serve = package.loaded["millrace.serve"]
  package.loaded["millrace.serve"] = function(bound)
    local server = serve(bound)
    function server:begin() return {poll = function() return case[2] end, drop = function() end} end
    return server
  end
  local good, why = pcall(search, 2, 1, list, {})
  package.loaded["millrace.serve"] = serve
  ok(not good and tostring(why):find("rank 1 sent " .. case[1], 1, true), case[1])
end
---- rank 0 alone -----------------------------------------------------------------------------------

-- Rank 0 of a search: {group=, servers=, sent= what it sends as texts, inbox= messages that come, {message, rank}, said=, waits=, now=}. All
-- other ranks but o.hangs get ready, the first o.devices of them with a device. A wait takes o.wait seconds if nothing comes (0). o.lost: ranks
-- that are lost before, by number; o.back: one of them from which something of an earlier call comes first. o.held: seconds that rank 0 is
-- held up before the first message. o.fails: no device can be compared with others. o.sent: a list for what it sends.
local ranks_class = getmetatable(require "millrace.ranks".shared())
local function first_rank(size, o)
  local x = {sent = o.sent or {}, inbox = {}, said = {}, waits = {}, now = 0}
  local ranks = setmetatable({maps = 0, size = size, lost = o.lost or {}, clock = function() return x.now end}, ranks_class)
  function ranks:send(to, m)
    x.sent[#x.sent + 1] = ("%d %s"):format(to, m.kind) .. (m.why and ": " .. m.why or "")
      .. (m.item and " " .. m.item.id or m.id and " " .. m.id or "")
  end
  function ranks:next(seconds)
    x.waits[#x.waits + 1] = seconds
    x.now, o.held = x.now + (o.held or 0), nil
    if o.back then
      local from = o.back
      o.back = nil
      return nil, from
    end
    if x.inbox[1] then return table.unpack(table.remove(x.inbox, 1)) end
    x.now = x.now + (o.wait or 0)
  end
  for rank = 1, size - 1 do
    local offer = rank <= o.devices and {name = "H200", driver = "1", ms = not o.fails and 1 or nil, capacity = 2} or nil
    local compilers = {workers = 4, cores = "core " .. rank}
    if rank ~= o.hangs then x.inbox[#x.inbox + 1] = {{kind = "ready", names = core.hash(o.name or "a search"), host = "one", offer = offer, compilers = compilers}, rank} end
  end
  x.ranks = ranks
  x.group = remote.begin(ranks, "a search", function(text) x.said[#x.said + 1] = text end, 200)
  x.servers, x.waits = x.group.servers, {}
  -- What it has sent since the last call.
  function x.logged()
    local text = table.concat(x.sent, ", ")
    x.sent = {}
    return text
  end
  function x.come(rank, row) x.inbox[#x.inbox + 1] = {{kind = "row", row = row}, rank} end
  return x
end
local function item(id) return {id = id, script = "plan " .. id} end
local function row(id, status) return {id = id, status = status, ms = status == "ok" and 1 or nil, script = "plan " .. id} end

do
  local x = first_rank(4, {devices = 2})
  is(x.logged(), "1 begin, 2 begin, 3 begin, 1 helpers, 2 helpers", "all ranks begin, and those with the device know who compiles for them")
  is(x.servers[1].capacity .. " " .. #x.servers, "4 2", "  which counts")
  x.group:finish "found"
  is(x.logged(), "1 end, 2 end, 3 end", "  all get the result")
  local good, why = pcall(first_rank, 3, {devices = 2, name = "another one"})
  ok(not good and why:find "rank 1 on one searches for something else", "a rank that searches for something else is an error")
  x = first_rank(3, {devices = 2})
  x.logged()
  good, why = pcall(x.group.fail, x.group, "boom")
  is(tostring(why) .. "; " .. x.logged(), "boom; 1 end: boom, 2 end: boom", "  of all")
end

-- Ranks that hang before they are ready.
do
  local x = first_rank(4, {devices = 3, hangs = 2, wait = 50})
  is(#x.servers .. " " .. x.servers[2].rank .. " " .. x.ranks.lost[2], "2 3 rank 2", "a rank that does not get ready is lost, and the others measure")
  is(table.concat(x.said), "nothing has come from rank 2 for 200 s: it is not waited for", "  and it is named")
  x = first_rank(3, {devices = 1, hangs = 1, lost = {"rank 1 on one"}})
  is(table.concat(x.said), "nothing has come from rank 1 on one since it was lost: it is not waited for", "one that was lost before is not waited for")
  is(#x.servers .. " " .. x.group.without, "0 rank 1 on one: nothing has come from it since it was lost", "  and that is why no rank measures")
end

-- Ranks that are not lost.
do
  local x = first_rank(4, {devices = 3, held = 1000})
  is(#x.servers .. #x.said, "30", "ranks whose messages wait for rank 0, which was held up, are not lost")
  x = first_rank(3, {devices = 2, lost = {"rank 1 on one"}, back = 1})
  is(#x.servers .. #x.said, "20", "nor is one from which something has come since it was")
end

-- What is wrong before a search begins is an error of all ranks.
for what, o in pairs{["searches for something else"] = {devices = 2, name = "another one"}, ["no rank measures, for the reasons above"] = {devices = 2, fails = true}} do
  o.sent = {}
  local good, why = pcall(first_rank, 3, o)
  local n = 0
  for _, text in ipairs(o.sent) do if text:find "^[12] end: " and text:find(what, 1, true) then n = n + 1 end end
  ok(not good and tostring(why):find(what, 1, true) and n == 2, "all ranks get the error: " .. what, table.concat(o.sent, ", "))
end

-- Until there is an incumbent one rank measures.
for _, case in ipairs{{"ok", ""}, {"skipped", "2 lead"}, {"wrong", "2 lead"}} do
  local x = first_rank(3, {devices = 2})
  x.logged()
  local first, second = x.servers[1]:begin(item(1)), x.servers[2]:begin(item(2))
  is(x.logged(), "1 measure 1, 1 lead, 2 measure 2", "the first rank leads")
  x.come(1, row(1, case[1]))
  x.servers[1]:wait(0.5)
  is(x.logged(), case[2], ("  if its row is %s, another one: '%s'"):format(case[1], case[2]))
  is(first:poll(nil).status, case[1], "  which is there")
  is(second:poll(item(1)) or x.logged(), "2 incumbent 1", "an incumbent is sent to those that have items")
  is(second:poll(item(1)) or x.logged(), "", "  once")
  x.servers[1]:begin(item(3))
  is(x.logged(), "1 measure 3", "  and no rank need lead any more")
end

-- What fails goes to the rank with the least to do; one where four fail in a row measures nothing any more.
do
  local x = first_rank(5, {devices = 4})
  local handles = {}
  for id = 1, 7 do handles[id] = x.servers[id <= 5 and 1 or id - 4]:begin(item(id)) end
  x.logged()
  for id = 1, 4 do x.come(1, row(id, "failed")) end
  x.servers[1]:wait(0.5)
  is(x.logged(), "4 measure 1, 2 measure 2, 3 measure 3, 4 measure 4, 1 drop 5, 2 measure 5, 2 lead", "what fails is given to the ranks with the least to do")
  is(table.concat(x.waits, " "), "0.5 0 0 0 0", "  all that has come at once, without a wait")
  ok(#x.said == 1 and x.said[1]:find "rank 1 measures nothing any more: 4 candidates in a row", "  and the rank is left out, and named")
  x.servers[1]:begin(item(8))
  is(x.logged(), "3 measure 8", "  and gets nothing more")
  x.come(4, row(1, "failed"))
  x.servers[1]:wait(0)
  is(handles[1].row.status .. x.logged(), "failed", "what fails twice has failed")
  handles[5]:drop()
  is(x.logged(), "2 drop 5", "what is not wanted is dropped where it is")
  x.come(2, row(5, "ok"))
  x.come(2, row(2, "ok"))
  x.servers[1]:wait(0)
  is(handles[2].row.status .. x.logged(), "ok", "  a row that crosses that does not keep others waiting")
  is(x.servers[2]:begin{id = 9, script = "plan 5"}.row.id .. x.logged(), "9", "  and is the row if it is wanted again")
end
do
  local x = first_rank(4, {devices = 3})
  local handles = {}
  for id = 1, 5 do handles[id] = x.servers[1]:begin(item(id)) end
  for id = 1, 4 do x.come(1, row(id, "failed")) end
  x.servers[1]:wait(0)
  local text = x.logged()
  ok(text:find "1 drop 5, 2 measure 5", "what has only waited on a rank that is left out goes to another one", text)
  x.come(2, row(5, "failed"))
  x.servers[1]:wait(0)
  is(tostring(handles[5].row) .. " " .. x.logged(), "nil 3 measure 5", "  and if it fails there, to a third one")
end
do
  local x = first_rank(2, {devices = 1})
  local h = x.servers[1]:begin(item(1))
  x.logged()
  x.come(1, row(1, "failed"))
  x.servers[1]:wait(0)
  is(h.row.status .. x.logged(), "failed", "where there is no other rank, what fails has failed")
end

-- Silence counts from when a rank has something to do.
do
  local x = first_rank(3, {devices = 2})
  x.now = 1000
  local h = x.servers[1]:begin(item(1))
  x.now = 1150
  local other = x.servers[1]:begin(item(2))
  x.logged()
  x.servers[2]:wait(0)
  is(x.logged() .. #x.said, "0", "a rank that had nothing to do before is not lost")
  other:drop()
  x.logged()
  x.now = 1201
  x.servers[2]:wait(0)
  is(x.logged(), "2 measure 1, 2 lead", "one from which nothing comes for long is, and another gets what it has")
  is(x.servers[1].capacity .. " " .. x.ranks.lost[1], "0 rank 1 on one", "  and it gets nothing")
  x.come(1, row(1, "ok"))
  x.servers[2]:wait(0)
  is(x.servers[1].capacity .. " " .. tostring(x.ranks.lost[1]), "2 nil", "  until something comes")
  ok(not h.row and x.group.measured["plan 1"], "  which was another rank's by then")
end

-- One that leads and is lost with its last item.
do
  local x = first_rank(3, {devices = 2})
  local h = x.servers[2]:begin(item(1))
  x.come(2, row(1, "failed"))
  x.servers[1]:wait(0)
  x.now = 150
  x.servers[2]:begin(item(2))
  ok(x.logged():find "1 measure 1, 1 lead, 2 measure 2$", "a rank leads with an item that failed on another one")
  x.now = 201
  x.servers[1]:wait(0)
  is(h.row.status .. " " .. x.logged(), "failed 2 lead", "  and once it is lost, that one leads")
end

---- another rank alone -----------------------------------------------------------------------------

-- What a rank does with these messages of rank 0, of which false is none -> its log: what it sends and measures, and for how long it waits
-- for messages; and what the search gives, or its error. rows(id, looks): of an item after so many looks; o.meanwhile: messages that come
-- while it measures, the first time. Scripts "bad" cannot be begun.
local function other_rank(messages, rows, o)
  local log, looks, at, during = {}, {}, 0, o and o.meanwhile or {}
  local function say(...) log[#log + 1] = table.concat({...}, " ") end
  local ranks = {rank = 1, size = 3, maps = 0, try = pcall, handle = function() end}
  function ranks:join(_, offer) say("join", offer().capacity) end
  function ranks:send(_, m) say(m.kind, m.row.id, m.row.status, m.row.why) end
  function ranks:next(seconds)
    at = at + 1
    if messages[at] == nil then return {kind = "end", result = "found"}, 0 end
    if seconds ~= 0 then say "idle" end
    return messages[at] or nil, 0
  end
  function ranks:poll() if during.error then error(during.error, 0) end end
  function ranks:take(kind) if during[1] and during[1].kind == kind then return table.remove(during, 1) end end
  local serve, state = package.loaded["millrace.serve"], core.compile_state
  core.compile_state = function() return o and o.workers or 1 end
  package.loaded["millrace.serve"] = function()
    say("serve", helpers.workers() > 1 and "with helpers" or nil)
    local server = {}
    function server:begin(x)
      if x.script == "bad" then error("no such plan", 0) end
      say("begin", x.id)
      return {drop = function() say("drop", x.id) end, poll = function(_, incumbent)
        looks[x.id] = (looks[x.id] or 0) + 1
        say("look", x.id, incumbent and "with " .. incumbent.id)
        if o and o.meanwhile then server.meanwhile() end
        return rows(x.id, looks[x.id])
      end}
    end
    function server:wait() say "wait" end
    function server:end_idle() say "end" end
    return server
  end
  local good, found = pcall(remote.work, ranks, "a search", "bound", "device", {})
  package.loaded["millrace.serve"], core.compile_state = serve, state
  return table.concat(log, ", "), (good and "" or "error: ") .. tostring(found)
end
local function measure_message(id, script) return {kind = "measure", item = {id = id, script = script or "plan"}} end
local function at_once(id) return {id = id, status = "ok", ms = 1} end
local lead <const>, best <const> = {kind = "lead"}, {kind = "incumbent", item = {id = 7, script = "plan"}}

local log, found = other_rank({false, measure_message(2), measure_message(1), false, false, false, lead, false}, at_once)
is(log, "join 2, idle, idle, serve, begin 2, begin 1, wait, look 1, row 1 ok, look 2, row 2 ok, end",
  "a rank begins what comes, and measures it in its order, once it may")
is(found, "found", "  and gives the result")
is(other_rank({}, at_once, {workers = 5}), "join 5", "it takes as much as it has compilers, or two")
is(other_rank({best, measure_message(1), false, false, false, false}, function(id, n) return n > 1 and at_once(id) or nil end),
  "join 2, idle, idle, serve, begin 1, look 1 with 7, wait, look 1 with 7, row 1 ok, idle, end",
  "with an incumbent it measures against that, and waits for what is not ready")
is(other_rank({{kind = "helpers", list = {{rank = 2, workers = 3}}}, measure_message(1), false}, at_once),
  "join 2, idle, idle, serve with helpers, begin 1, drop 1, end", "others compile for it if rank 0 says so")
is(helpers.workers(1), 1, "  until the search ends")
is(other_rank({lead, measure_message(1, "bad"), measure_message(2), false, false, false}, at_once),
  "join 2, idle, idle, serve, row 1 failed no such plan, begin 2, look 2, row 2 ok, end", "what cannot be begun has failed")
local function faults(id) return id == 1 and error("it faults", 0) or at_once(id) end
is(other_rank({lead, measure_message(1), measure_message(2), false, false, false, false}, faults),
  "join 2, idle, idle, serve, begin 1, look 1, row 1 failed it faults, begin 2, look 2, row 2 ok, end", "as has what raises an error")
is(other_rank({measure_message(1), measure_message(2), false, {kind = "drop", id = 2}, {kind = "drop", id = 1}, false, lead, false}, at_once),
  "join 2, idle, serve, begin 1, drop 1, idle, idle, idle, end", "what is dropped is not measured, whether it was begun or not")
is(other_rank({measure_message(1), false}, at_once), "join 2, idle, serve, begin 1, drop 1, end", "what is left in the end is dropped")
is(other_rank({lead, measure_message(1), measure_message(2), false, false, false, false}, at_once, {meanwhile = {measure_message(3)}}),
  "join 2, idle, idle, serve, begin 1, look 1, begin 2, row 1 ok, look 2, begin 3, row 2 ok, look 3, row 3 ok, end",
  "while it measures it takes others, and begins one")
log, found = other_rank({lead, measure_message(1), false, false}, at_once, {meanwhile = {error = "rank 0 is gone"}})
is(log .. "; " .. found, "join 2, idle, idle, serve, begin 1, look 1, row 1 ok; error: rank 0 is gone", "an error of messages then is none of what it measures")
log, found = other_rank({{kind = "end", why = "boom"}}, at_once)
is(found, "error: boom", "an error of rank 0 is one of all")
log, found = other_rank({{kind = "task"}}, at_once)
is(found:match "a message.*", "a message 'task' of rank 0 within a search", "as is a message that does not belong there")
tap.done_testing()
