-- ranks.lua with many ranks, in virtual time (lib/farm_sim.lua): how well they are used, and ranks that are lost.
-- tests/perf/farm_model.lua has the table of docs/performance.md.
require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, sim = dofile(dir .. "tap.lua"), dofile(dir .. "lib/farm_sim.lua")
local new = require("millrace.ranks").new
local ok, is = tap.ok, tap.is

local function ranks_of(farm) return new(farm, pcall, function() return farm:now() end) end

local function names(n)
  local list = {}
  for i = 1, n do list[i] = "task " .. i end
  return list
end

-- "all", if each of n tasks was done once, else the first that was not.
local function once(count, n)
  for i = 1, n do if count[i] ~= 1 then return ("task %d: %d times"):format(i, count[i] or 0) end end
  return "all"
end

-- How many ranks have the results i * i of n tasks.
local function with_results(values, size, n)
  local has = 0
  for rank = 0, size - 1 do
    local good = type(values[rank]) == "table" and #values[rank] == n
    for i = 1, n do good = good and values[rank][i].value == i * i end
    if good then has = has + 1 end
  end
  return has
end

---- how well ranks are used -----------------------------------------------------------------------------

-- 64 ranks with ten equal tasks each, of ten seconds and 20 questions, which take rank 0 0.4 ms each: 0.083 of its time.
local count = {}
local values, stats = sim.play{size = 65, latency = 1e-5, bandwidth = 1e9,
  charge = function(label) return label == "ask store" and 4e-4 or 5e-5 end,
  body = function(farm)
    local r = ranks_of(farm)
    r:serve("store", function(x) return x end)
    return r:map(names(640), function(i)
      count[i] = (count[i] or 0) + 1
      for k = 1, 20 do
        farm:sleep(0.5)
        r:ask("store", ("x"):rep(100))
      end
      return i * i
    end)
  end}
is(once(count, 640), "all", "64 ranks do each of 640 tasks once")
is(with_results(values, 65, 640), 65, "  and all have the results")
local efficiency = 640 * 10 / (64 * stats.seconds)
ok(efficiency > 0.97 and efficiency <= 1, ("  at work for %.4f of the time"):format(efficiency))
tap.near(stats.busy / stats.seconds, 640 * 20 * 4e-4 / stats.seconds, 0.005, "  and rank 0 as long as questions take")
is(stats.count["ask store"], 12800, "  each of which came once")

-- Messages that take from nothing to 50 s, on 200 ranks.
local random, next_seconds = sim.random(3), sim.random(4)
count = {}
values = sim.play{size = 201, latency = function() return 50 * random() ^ 8 end, body = function(farm)
  local r, sum = ranks_of(farm), 0
  r:serve("add", function(x) return x + 1 end)
  return r:map(names(600), function(i)
    count[i] = (count[i] or 0) + 1
    farm:sleep(100 * next_seconds())
    return r:ask("add", i * i - 1)
  end)
end}
is(once(count, 600), "all", "200 ranks with messages that take their time: each of 600 tasks is done once")
is(with_results(values, 201, 600), 201, "  and all have the results")

---- ranks that are lost ----------------------------------------------------------------------------------

-- Ranks that sleep(rank, task) seconds for a task, in calls of map one after the other. -> what ranks return, the times at which a task
-- was begun, what was reported, and which ranks had tasks, for each call; with o.wait, what rank 0 says of ranks that hang so many
-- seconds after the last call. o.before(rank): seconds that it sleeps before the first call. What a rank returns is false if it had not
-- all results of a call.
local function play_lost(o)
  local begun, reports, by, hung = {}, {}, {}, nil
  local values, stats = sim.play{size = o.size, latency = 1e-3, stop = o.stop, body = function(farm, rank)
    local r, last = ranks_of(farm), nil
    r:serve("store", function(x) return x end)
    farm:sleep(o.before and o.before(rank) or 0)
    for call = 1, o.calls or 1 do
      by[call] = by[call] or {}
      local found = r:map(names(o.n), function(i)
        begun[i] = (begun[i] or 0) + 1
        by[call][rank] = true
        farm:sleep(o.sleep(rank, i, call))
        return r:ask("store", i * i)
      end, {silence = 100, report = function(task, from, x, n)
        reports[#reports + 1] = ("%d of %d: %s"):format(task, from, x.good and "good" or x.why)
        if o.report then o.report(task, farm:now(), n) end
      end})
      last = last ~= false and #found == o.n and found
    end
    if rank == 0 and o.wait then
      farm:sleep(o.wait)
      hung = r:hung() or "none"
    end
    return last
  end}
  return values, begun, reports, by, hung
end

local at, begun, reports, by, hung = {}, nil, nil, nil, nil
values, begun, reports, by, hung = play_lost{size = 9, n = 40, stop = 5000, wait = 1000,
  sleep = function(rank) return rank == 3 and 1e9 or 10 end,
  report = function(task, now, n) if n ~= "again" then at[#at + 1] = now end end}
is(#at, 40, "a rank that never answers: all tasks are reported")
ok(at[39] < 61 and at[40] < 112, ("  the others by %.1f s, its own by %.1f s"):format(at[39], at[40]))
is(with_results(values, 9, 40), 8, "  and all ranks but it have the results")
local lost = 0
for _, text in ipairs(reports) do if text:find "of 3: nothing has come from rank 3 on host0 for 100 s" then lost = lost + 1 end end
is(lost, 1, "  which are said to be lost, once")
is(hung, "rank 3 on host0 hangs: the job ends without it", "  and at the end to hang")
for wait, want in pairs{[10] = "rank 2 on host0, rank 9 on host1 hang: the job ends without them",
  [350] = "rank 9 on host1 hangs: the job ends without it", [1500] = "none"} do
  values, begun, reports, by, hung = play_lost{size = 10, n = 9, stop = 5000, wait = wait,
    sleep = function(rank) return rank == 2 and 400 or rank == 9 and 1000 or 10 end}
  is(hung, want, ("ranks that have answered %d s after all is done do not hang"):format(wait))
end

-- How many of n tasks were reported as good once, and no other way than lost or good.
local function reported_once(n)
  local good, times = 0, {}
  for _, text in ipairs(reports) do
    local task, what = text:match "^(%d+) of %d+: (.*)$"
    if what == "good" then times[tonumber(task)] = (times[tonumber(task)] or 0) + 1 end
  end
  for i = 1, n do if times[i] == 1 then good = good + 1 end end
  return good
end

-- Rank 2 answers after 150 s, when rank 3 has begun with its task at 140 s: that counts, and what rank 3 gives at 210 s does not. Rank 1
-- has the last task from 120 to 215 s.
local first
values, begun, reports, by = play_lost{size = 4, n = 6, sleep = function(rank, i)
  if rank == 2 and not first then
    first = i
    return 150
  end
  return i == 6 and 95 or rank == 1 and 60 or 70
end}
is(begun[first], 2, "the task of a rank that was lost is begun by another one")
is(reported_once(6), 6, "  the late result counts, and once")
is(table.concat(reports, "; "):match(first .. " of (%d): good"), "2", "  that of the rank that was late")
is(with_results(values, 4, 6), 4, "  all ranks have the results")

-- Rank 2 answers after 400 s, when rank 0 is at the next call.
local late = false
values, begun, reports, by, hung = play_lost{size = 3, n = 4, calls = 3, wait = 0, sleep = function(rank)
  if rank == 2 and not late then
    late = true
    return 400
  end
  return 70
end}
is(with_results(values, 3, 4), 3, "a rank that answers when the others are at the next call reaches the end with them")
is(hung, "none", "  and does not hang")
is(#reports, 13, "  its result does not count in that call")
ok(not by[2][2] and by[3][2], "  it has tasks in the one after")

-- A task from which no rank returns.
values, begun, reports = play_lost{size = 5, n = 20, stop = 5000, sleep = function(_, i) return i == 7 and 1e9 or 10 end}
is(begun[7], 2, "a task from which no rank returns is tried on two of them")
ok(values[0] and not values[0][7].good and values[0][7].why:find "nothing has come from rank",
  "  and has failed", values[0] and values[0][7].why)
is(reported_once(20), 19, "  all others are done")

-- Rank 2 answers after 150 s, when no other rank has begun with its task, which was waiting behind others since 100 s.
first = nil
values, begun, reports = play_lost{size = 3, n = 8, sleep = function(rank, i)
  if rank == 2 and not first then
    first = i
    return 150
  end
  return 60
end}
is(begun[first] .. " " .. reported_once(8), "1 8", "what a lost rank has done after all is not done again")
is(with_results(values, 3, 8), 3, "  all ranks have the results")

-- Rank 2 never returns, and a task fails on rank 1 that would be another rank's then.
local failed = false
values, begun = play_lost{size = 3, n = 5, stop = 5000, sleep = function(rank, i)
  if rank == 2 then return 1e9 end
  if i == 4 and not failed then
    failed = true
    error("once", 0)
  end
  return 10
end}
is(with_results(values, 3, 5), 2, "where all others are lost, a task that failed is tried again on the same rank")
is(begun[4], 2, "  once")

-- Ranks that are not ready: rank 3 never is, and is when the others have begun.
for before, want in pairs{[1e9] = "rank 3 hangs: the job ends without it", [150] = "none"} do
  values, begun, reports, by, hung = play_lost{size = 4, n = 20, stop = 5000, wait = 10, sleep = function() return 10 end,
    before = function(rank) return rank == 3 and before or 0 end}
  is(once(begun, 20) .. ", " .. hung, "all, " .. want, "ranks that are ready do not wait for one that is lost")
  is(with_results(values, 4, 20), want == "none" and 4 or 3, "  and all that come to the end have the results")
  ok(not by[1][3], "  it has no task")
end

-- What the user sees of rank 1, which is lost with a task, of rank 2, which does one, and of rank 3, which is ready when others have begun.
local shown, warned = {}, {}
sim.play{size = 4, latency = 1e-3, stop = 5000, body = function(farm, rank)
  local r = ranks_of(farm)
  farm:sleep(rank == 3 and 150 or 0)
  local p = require("millrace.farm_progress").new(function(i) return "task " .. i end, function() return farm:now() end, function(text)
    for of, what in text:gmatch "\n +(%d) [^\n]- %d+%.%d  ([^\n]*)" do shown[of] = (shown[of] or "") .. what .. "\n" end
  end)
  r:map(names(6), function() farm:sleep(rank == 1 and 1e9 or 60) end, {silence = 100,
    watch = function(state) p:step(state) end,
    warn = function(text) warned[#warned + 1] = text end})
end}
local function shows(rank, text) ok(shown[rank]:find(text .. "\n", 1, true), ("  rank %s: %s"):format(rank, text), shown[rank]) end
is(table.concat(warned, "; "), "nothing has come from rank 3 for 100 s: it is not waited for",
  "a rank that is lost before it is ready is said to be, once")
shows("3", "is waited for: has not called mr.tune yet, or still times its GPU")
shows("3", "is not waited for: nothing has come from it")
shows("3", "came too late for this list")
shows("2", "task 2")
shows("1", "nothing comes from it any more; its row went to another rank")
ok(shown["1"]:find "^task" and not shown["1"]:find "nothing.*task", "  and with its task until then", shown["1"])

-- Rank 1 alone does tasks, and is lost in the first call.
values = play_lost{size = 2, n = 1, calls = 2, stop = 5000, sleep = function() return 1e9 end}
is(type(values[0]) == "table" and values[0].why:match "farm: .*",
  "farm: there is no rank that does tasks: nothing has come from rank 1 on host0",
  "where no rank does tasks, those that are lost are named")

-- The same, but rank 1 answers between two calls: it is ready for the second one.
values = sim.play{size = 2, latency = 1e-3, stop = 5000, body = function(farm, rank)
  local r, last = ranks_of(farm), nil
  for call = 1, 2 do
    last = r:map(names(1), function() farm:sleep(call == 1 and 350 or 1) return call end, {silence = 100})
    farm:sleep(rank == 0 and 1000 or 0)
  end
  return last[1].value or last[1].why
end}
is(values[0], 2, "a rank that was lost is waited for in the next call if something has come from it since")

-- All other ranks are lost: those that were are as good as any.
values, begun, reports = play_lost{size = 2, n = 2, sleep = function() return 150 end}
is(with_results(values, 2, 2), 2, "one rank that is slower than the limit does all tasks")

-- All ranks that do tasks are lost, and one of them has been heard after 90 s.
local done_at
values, begun, reports, by, hung = play_lost{size = 3, n = 4, stop = 5000, wait = 0, sleep = function(rank, i)
  return i == 1 and rank == 1 and 10 or rank == 2 and i == 2 and 90 or 1e9
end, report = function(_, now, n) if n ~= "again" then done_at = now end end}
ok(values[0], "where all ranks that do tasks are lost, rank 0 comes to the end", values[0] and values[0].why)
is(values[0] and #values[0], 4, "  with a result of each task")
is(values[0] and values[0][4].why, "no rank is left that does tasks: nothing has come from rank 1 on host0, rank 2 on host0",
  "  which says why")
is(values[0] and values[0][1].value .. " " .. values[0][2].value, "1 4", "  those that were done are kept")
ok(done_at > 290 and done_at < 295, "  after twice the limit since one was heard", done_at)
values = play_lost{size = 2, n = 2, stop = 5000, sleep = function() return 195 end}
is(with_results(values, 2, 2), 2, "one that answers before that does all tasks")

-- Rank 1 is lost with a task, which is given to rank 2, and answers meanwhile with a suspect result.
local function suspect_and(second)
  local tried = 0
  local found = sim.play{size = 3, latency = 1e-3, stop = 5000, body = function(farm, rank)
    return ranks_of(farm):map(names(2), function(i)
      if i == 2 then farm:sleep(60) return "two" end
      tried = tried + 1
      if tried == 1 then farm:sleep(130) return "?" end
      return second(farm)
    end, {silence = 100, suspects = function(value) return value == "?" end})
  end}
  local x = found[0] and found[0][1] or {why = "no result"}
  return tried .. " " .. (x.value or x.why)
end
is(suspect_and(function(farm) farm:sleep(60) return "good" end), "2 good",
  "a suspect result that is late is not better than the one on its way")
is(suspect_and(function(farm) farm:sleep(60) error("no", 0) end), "2 ?", "  but than none")
is(suspect_and(function(farm) farm:sleep(1e9) end), "2 ?", "  also of a rank that never returns")
tap.done_testing()
