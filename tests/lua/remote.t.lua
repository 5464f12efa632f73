-- remote.lua: a search on rank 0 whose candidates other ranks measure. These are coroutines that go on while rank 0 waits for a message, in an
-- order that random numbers choose, and they measure on a device that is a table of times.
local mr = require "millrace"
local here = arg[0]:match "^(.*/)" or "./"
local tap = dofile(here .. "tap.lua")
local _, random = table.unpack(dofile(here .. "lib/play_ranks.lua"))
local ok, is = tap.ok, tap.is
local core, measure, remote = require "millrace.core", require "millrace.measure", require "millrace.remote"
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
          row.results[x.id] = {ms = world.times[x.script], ratio = world.times[x.script] / world.times[item.finalists[1].script], low = 1, high = 1}
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
    {"a row whose ms is no number", {id = 1, status = "ok", ms = "1"}}} do
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
tap.done_testing()
