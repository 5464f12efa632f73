-- ranks.lua: tasks divided over ranks, which here are coroutines of one process (lib/play_ranks.lua).
local mr = require "millrace"
local here = arg[0]:match "^(.*/)" or "./"
local tap = dofile(here .. "tap.lua")
local play, random = table.unpack(dofile(here .. "lib/play_ranks.lua"))
local ok, is = tap.ok, tap.is
local function new_ranks(farm) return require("millrace.ranks").new(farm, pcall) end

local function names(n)
  local list = {}
  for i = 1, n do list[i] = "task " .. i end
  return list
end

-- What all ranks return, as a text; where they differ, "different".
local function all_of(values, size)
  for rank = 1, size - 1 do
    if values[rank] ~= values[0] then return ("different: %s and %s"):format(values[rank], values[0]) end
  end
  return values[0]
end

local function text_of(results)
  local words = {}
  for i, x in ipairs(results) do words[i] = x.good and tostring(x.value) or "(" .. x.why .. ")" end
  return table.concat(words, " ")
end

for _, size in ipairs{1, 2, 3, 8} do
  local done, wrong = 0, nil
  for seed = 1, 25 do
    local count, n = {}, random(seed)(20)
    local values = play(size, seed, function(farm)
      local r = new_ranks(farm)
      return text_of(r:map(names(n), function(i)
        count[i] = (count[i] or 0) + 1
        for _ = 1, i % 3 do if size > 1 then coroutine.yield() end end
        return i * i
      end)) .. " then " .. text_of(r:map(names(2), function(i) return -i end))
    end)
    local want = {}
    for i = 1, n do want[i] = i * i end
    wrong = wrong or (all_of(values, size) ~= table.concat(want, " ") .. " then -1 -2") and all_of(values, size)
    for i = 1, n do wrong = wrong or count[i] ~= 1 and ("task %d was done %d times"):format(i, count[i] or 0) end
    done = done + 1
  end
  is(wrong or done, 25, ("%d ranks do each task once, and all have the results"):format(size))
end

-- Tasks that fail: once on one rank, always, or on all of a rank.
local where = {}
local values = play(4, 5, function(farm)
  local r = new_ranks(farm)
  return text_of(r:map(names(6), function(i)
    where[i] = where[i] or {}
    table.insert(where[i], r.rank)
    if i == 2 or i == 4 and #where[i] == 1 then error("task " .. i .. " fails", 0) end
    return i
  end))
end)
is(all_of(values, 4), "1 (task 2 fails) 3 4 5 6", "a task that fails is done again")
ok(#where[2] == 2 and #where[4] == 2, "  once")
ok(where[2][1] ~= where[2][2] and where[4][1] ~= where[4][2], "  on another rank")
ok(#where[1] == 1 and #where[3] == 1 and #where[5] == 1 and #where[6] == 1, "  others are not")
where = {}
values = play(2, 5, function(farm)
  return text_of(new_ranks(farm):map(names(2), function(i)
    where[i] = (where[i] or 0) + 1
    if i == 1 then error("no", 0) end
    return i
  end))
end)
is(all_of(values, 2) .. " " .. where[1], "(no) 2 2", "with one rank that does tasks, on that")

where = {}
values = play(3, 5, function(farm)
  local r = new_ranks(farm)
  return text_of(r:map(names(2), function(i)
    where[i] = where[i] or {}
    table.insert(where[i], r.rank)
    if #where[i] == 1 then error("once", 0) end
    return i
  end))
end)
is(all_of(values, 3), "1 2", "where a task fails on each of two ranks")
ok(#where[1] == 2 and #where[2] == 2 and where[1][1] ~= where[1][2] and where[2][1] ~= where[2][2], "  these change tasks")

where = {}
values = play(3, 5, function(farm)
  local r = new_ranks(farm)
  return text_of(r:map(names(2), function(i)
    where[#where + 1] = i .. " on " .. r.rank
    if i == 1 and #where <= 2 then error("once", 0) end
    for _ = 1, i == 2 and 100 or 0 do coroutine.yield() end
    return i
  end))
end)
is(all_of(values, 3), "1 2", "a rank that waits for another task than the one that failed there keeps none waiting")
table.sort(where)
is(table.concat(where, ", "), "1 on 1, 1 on 2, 2 on 2", "  of which the other one does both")

-- Large results are several messages.
local sizes = {}
values = play(3, 1, function(farm)
  local send = farm.send
  function farm:send(to, text)
    if to == 1 and text:find('"results"', 1, true) then sizes[#sizes + 1] = #text end
    return send(self, to, text)
  end
  local n = {}
  for i, x in ipairs(new_ranks(farm):map(names(5), function(i) return ("x"):rep(400000 + i) end)) do n[i] = #x.value - 400000 end
  return table.concat(n, " ")
end)
is(all_of(values, 3), "1 2 3 4 5", "large results come")
ok(#sizes == 2 and sizes[1] > 1200000 and sizes[2] > 800000, "  in parts", table.unpack(sizes))

-- Suspect results: of rank 1, whatever it does, and of task 3 on all; task 4 fails on others.
local again = {}
for _, size in ipairs{4, 2} do
  values = play(size, 7, function(farm)
    local r = new_ranks(farm)
    return text_of(r:map(names(5), function(i)
      if i == 4 and r.rank > 1 then error("no", 0) end
      return (r.rank == 1 or i == 3) and "?" or i
    end, {suspects = function(value) return value == "?" end,
      report = function(task, _, _, n) if n == "again" then again[#again + 1] = task end end}))
  end)
  local all = all_of(values, size)
  if size == 4 then
    ok(all == "1 2 ? (no) 5" or all == "1 2 ? ? 5",
      "a suspect result is tried on another rank, and counts if there is no better one: " .. all)
  else
    ok(all == "? ? ? ? ?", "  and where there is no other rank", all)
  end
end
local tried = {}
for _, task in ipairs(again) do tried[task] = (tried[task] or 0) + 1 end
local once = tried[3] == 1
for _, n in pairs(tried) do once = once and n == 1 end
ok(once, "  once")

-- Which ranks get tasks.
local by = {}
values = play(4, 9, function(farm)
  local r = new_ranks(farm)
  return text_of(r:map(names(8), function(i) by[r.rank] = true return i end, {
    offer = function() return ("offer %d"):format(r.rank) end,
    choose = function(offers)
      by.offers = ("%s; %s; %s on %s"):format(offers[1].offer, offers[2].offer, offers[3].offer, offers[3].host)
      return {[2] = true}
    end}))
end)
is(by.offers, "offer 1; offer 2; offer 3 on host0", "what ranks offer")
ok(by[2] and not by[1] and not by[3], "  chooses who does tasks")

values = play(3, 1, function(farm)
  local r = new_ranks(farm)
  return tostring(select(2, pcall(r.map, r, names(2), function() end, {choose = function() return {} end})))
end)
ok(all_of(values, 3) == values[1] and values[1]:find "farm: there is no rank that does tasks$",
  "where no rank does tasks, that is an error on all of them", all_of(values, 3))

-- Which devices measure: those that are alike.
local choose_devices = require("millrace.farm_devices").choose
local function chosen(list)
  local offers, said = {}, {}
  for rank, x in pairs(list) do
    local ms, name = x, "H200"
    if type(x) == "table" then ms, name = x[1], x[2] end
    offers[rank] = {host = "h" .. rank, offer = x and {ms = ms ~= true and ms or nil, name = name, driver = "1"} or nil}
  end
  local ranks = {}
  for rank in pairs(choose_devices(offers, function(text) said[#said + 1] = text end)) do ranks[#ranks + 1] = rank end
  table.sort(ranks)
  local text = table.concat(said, "\n"):gsub("rank (%d) on h%d measures nothing:", "%1"):gsub(" its device is different:", "")
  return table.concat(ranks, " ") .. ";" .. text
end
is(chosen{1.0, 1.015, 1.01, 1.05}, "1 2 3;4 it takes 1.04 of the median time for the product by which devices are compared",
  "a device that is slower than the usual one by more than 2 % is left out, and named")
ok(chosen{1.0, 1.3, 1.3, 1.31}:find "^2 3 4;1 it takes 0.77", "as is one that is faster")
ok(chosen{1.0, 1.03}:find "^1;2 it takes 1.03", "of two the slower one")
is(chosen{1.0, false, 1.01}, "1 3;", "a rank without one offers nothing")
is(chosen{true}, "1;", "a single device is not compared")
ok(chosen{1.0, true, 1.0}:find "^1 3;2 the product by which devices are compared fails there", "one on which the product fails is left out")
is(chosen{1.0, {1.0, "H100"}, 1.0}, "1 3;2 it is a H100, driver 1, most are a H200, driver 1", "one of another kind is left out")
ok(chosen{{1.0, "H100"}, 1.0, 1.0}:find "^2 3;1 it is a H100", "  also if it is the first")
is(chosen{1.0, {0.5, "H100"}}, "1;2 it is a H100, driver 1, most are a H200, driver 1", "  and its time does not count")
is(chosen{false, false}, ";", "no device")
do
  local devices, said = require "millrace.farm_devices", 0
  local function unfit(rank) return {host = "h" .. rank, offer = {name = "H200", driver = "1", fails = "it faults"}} end
  local found, why = devices.choose({unfit(1), unfit(2)}, function() said = said + 1 end)
  ok(not found and said == 2 and why:find "^no rank measures, for the reasons above",
    "where no device is fit to measure, that is an error", why)
  local without = {{host = "a"}, {host = "b", why = "no driver"}, {host = "c", why = "another GPU"}}
  is(devices.without(without), "rank 2 on b: no driver", "where there is no device, the first rank that knows says why")
  without[1].offer = {}
  is(devices.without(without), nil, "  but not if another rank has one")
  is(devices.without{{host = "a"}}, nil, "  nor if none was asked")
end

-- One rank measures for each board of a host. Ranks are {host, bus, ms of the reference}.
local function chosen_of_boards(list)
  local offers, ranks, said = {}, {}, {}
  for rank, x in pairs(list) do offers[rank] = {host = x[1], offer = {name = "H200", driver = "1", bus = x[2], ms = x[3] or 1.0}} end
  local measure = choose_devices(offers, function(text) said[#said + 1] = text end)
  for rank in pairs(measure) do ranks[#ranks + 1] = rank end
  table.sort(ranks)
  return table.concat(ranks, " ") .. ";" .. table.concat(said, "\n")
end
local shares = "rank %d on %s measures nothing: it has the same GPU as rank %d; unset CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES there, "
  .. "or start fewer ranks"
is(chosen_of_boards{{"a", "1B"}, {"a", "1C"}, {"a", "1B"}, {"a", "1B"}}, "1 2;" .. shares:format(3, "a", 1)
  .. "\n" .. shares:format(4, "a", 1),
  "of ranks with one board the first measures, and the others are named")
is(chosen_of_boards{{"a", "1B"}, {"b", "1B"}, {"b", "1C"}}, "1 2 3;", "boards of two hosts are two")
is(chosen_of_boards{{"a", "1B"}, {"a", "1B"}, {"b", "1B"}, {"b", "1B"}}, "1 3;" .. shares:format(2, "a", 1)
  .. "\n" .. shares:format(4, "b", 3),
  "two ranks on each of two boards")
is(chosen_of_boards{{"a"}, {"a"}, {"a", "1B"}}, "1 2 3;", "one that is not known is nobody else's")
is(chosen_of_boards{{"a", "1B", 2.0}, {"a", "1B", 1.0}, {"a", "1B", 1.0}}, "1;" .. shares:format(2, "a", 1)
  .. "\n" .. shares:format(3, "a", 1),
  "a single board is not compared with itself")
is(chosen_of_boards{{"a", "1B", 1.0}, {"a", "1C", 1.0}, {"a", "1D", 2.0}, {"a", "1D", 2.0}, {"a", "1D", 2.0}}:match "^[%d ]*", "1 2 3",
  "a board on which several ranks timed the product together is not compared by it")

is(chosen_of_boards{{"a", "1B", 1.0}, {"a", "1C", 2.0}, {"a", "1C", 2.0}, {"a", "1D", 2.0}, {"a", "1D", 2.0}}:match "^[%d ]*", "1 2 4",
  "  nor are others by that time")

-- Which GPU a rank takes, and what it offers of it.
do
  local core, trials, devices = require "millrace.core", require "millrace.trials", require "millrace.farm_devices"
  local farm, use_gpu, getenv, attached, search = core.farm, core.use_gpu, os.getenv, trials.attached, mr.search
  local taken, environment
  core.use_gpu = function(i) taken = i end
  os.getenv = function(name) return environment[name] end
  for _, case in ipairs{
    {"rank 0 takes none", nil, 0, 0, true},
    {"the first rank next to rank 0 the first GPU", 0, 1, 1, true},
    {"  the third one the third", 2, 3, 3, true},
    {"on another host they are counted from that host's first rank", 2, 9, 2, false},
    {"where one is visible it is that", 0, 3, 3, true, {CUDA_VISIBLE_DEVICES = "2"}},
    {"  also to HIP", 0, 3, 3, true, {HIP_VISIBLE_DEVICES = "2"}},
    {"  or its driver", 0, 3, 3, true, {ROCR_VISIBLE_DEVICES = "2"}},
    {"where several are, they are divided", 2, 3, 3, true, {CUDA_VISIBLE_DEVICES = "0,1,2"}},
    {"  also if the first is not named", 2, 3, 3, true, {CUDA_VISIBLE_DEVICES = ",1"}},
    {"as where nothing is said of them", 2, 3, 3, true, {CUDA_VISIBLE_DEVICES = ""}}} do
    taken, environment = nil, case[6] or {}
    core.farm = function()
      return {rank = function() return case[3] end, local_rank = function() return case[4] end, with_rank_0 = function() return case[5] end}
    end
    devices.enter()
    is(taken, case[2], case[1])
  end
  local found, searches, fails = {driver = "5", name = "GPU", bus = "1B"}, 0, false
  trials.attached = function() return found end
  mr.search = function(bound, device, o)
    assert(bound.axes.m == 2048 and device.name and not o.measure)
    searches = searches + 1
    if fails then return nil, "no plan" end
    return {plan = {compile = function() return {bench = function() return {ms = 1.5} end} end}}
  end
  local function offered(size, name)
    local x = devices.offer({size = size}, {name = name})
    return x and ("%s %s %s %s, %d"):format(x.driver, x.name, x.bus, x.ms, searches) or "nothing"
  end
  is(offered(2, "a"), "5 GPU 1B nil, 0", "a rank that measures alone times nothing")
  is(offered(3, "a"), "5 GPU 1B 1.5, 1", "  else a product")
  is(offered(3, "a"), "5 GPU 1B 1.5, 1", "  once")
  found.partition, fails = true, true
  is(offered(3, "b"), "5 GPU nil nil, 2", "a partition does not name its board, and the product may fail")
  is(offered(3, "b"), "5 GPU nil nil, 2", "  once")
  found = nil
  is(offered(3, "c"), "nothing", "a rank without the device offers nothing")
  core.farm, core.use_gpu, os.getenv, trials.attached, mr.search = farm, use_gpu, getenv, attached, search
end

-- What the user sees.
do
  local now, shown = 100, {}
  local p = require("millrace.farm_progress").new(function(i) return ("row %s"):format(("ab"):sub(i, i)) end, function() return now end,
    function(text) shown[#shown + 1] = text end)
  local state = {offers = {{host = "one", offer = {name = "H200"}}, {host = "two"}}, doing = {2}, heard = {0, 0, 0, 0},
    lost = {[4] = "rank 4"}, late = {}}
  p:step(state)
  is(#shown, 0, "no table at once")
  p:count(1, "rows")
  for _ = 1, 12 do p:count(1, "measured") end
  now = 160
  p:step(state)
  p:step(state)
  is(#shown, 1, "one table now and then")
  is(shown[1], "rank  host  device  rows  measured  a minute\n   1  one   H200       1        12      12.0  row b\n"
    .. "   2  two   none       0         0       0.0\n"
    .. "   3                   0         0       0.0  is waited for: has not called mr.tune yet, or still times its GPU\n"
    .. "   4                   0         0       0.0  is not waited for: nothing has come from it\n", "  with a line for each rank")
  state.lost[1], state.lost[3], state.doing[2] = "rank 1", "rank 3", 2
  p:finish()
  is(#shown, 2, "one at the end")
  is(shown[2], "rank  host  device  rows  measured  a minute\n"
    .. "   1  one   H200       1        12      12.0  nothing comes from it any more; its row went to another rank\n"
    .. "   2  two   none       0         0       0.0  row b\n"
    .. "   3                   0         0       0.0  is not waited for: nothing has come from it\n"
    .. "   4                   0         0       0.0  is not waited for: nothing has come from it\n", "  which names ranks that are lost")
  require("millrace.farm_progress").new(nil, function() return 0 end, error):finish()
end

-- Calls of rank 0.
local sum = 0
values = play(5, 3, function(farm)
  local r = new_ranks(farm)
  r:serve("add", function(x, task)
    sum = sum + x
    return {sum = sum, of = task}
  end)
  r:serve("refuse", function() error("refused", 0) end)
  return text_of(r:map(names(10), function(i)
    local good, why = pcall(r.ask, r, "refuse", i)
    local x = r:ask("add", i)
    return not good and why:find "refused" and x.of == i and "yes" or "no"
  end))
end)
is(all_of(values, 5), ("yes "):rep(10):sub(1, -2), "tasks call rank 0, which answers each, or with its error")
is(sum, 55, "  once")
local alone = play(1, 1, function(farm)
  local r = new_ranks(farm)
  r:serve("double", function(x, task) return 2 * x + task end)
  return text_of(r:map(names(3), function(i) return r:ask("double", 10 * i) end))
end)
is(alone[0], "21 42 63", "in one process, too")
do
  local said = {}
  local function report(task, rank, x, n) said[#said + 1] = ("%d by %d: %d, %d"):format(task, rank, x.value, n) end
  play(1, 1, function(farm) return new_ranks(farm):map(names(2), function(i) return -i end, {report = report}) end)
  is(table.concat(said, "; "), "1 by 0: -1, 1; 2 by 0: -2, 2", "  and tells of each that is done")
end

-- Ctrl-C ends a task of one process, and what is asked then is of no task.
do
  local none = {rank = function() return 0 end, size = function() return 1 end, host = function() return "" end}
  local r, of = require("millrace.ranks").new(none), nil
  r:serve("task", function(_, task) of = tostring(task) end)
  local results = r:map(names(2), function()
    io.popen("kill -INT $PPID"):close()
    while true do end
  end)
  r:ask("task")
  is(text_of(results), "(interrupted) (interrupted)", "Ctrl-C ends the tasks of one process")
  is(of, "nil", "  and what is asked then is of none")
end

-- What is asked at the same time is answered together; and each alone, if that fails.
local most, calls = 0, 0
values = play(9, 7, function(farm)
  local r = new_ranks(farm)
  r:serve_together("double", function(asked)
    local out = {}
    most, calls = math.max(most, #asked), calls + 1
    for k, x in ipairs(asked) do
      if x.value == 5 then error("not 5", 0) end
      out[k] = {double = 2 * x.value, of = x.task, by = x.rank}
    end
    return out
  end)
  return text_of(r:map(names(40), function(i)
    local x = r:ask("double", i)
    return x.double == 2 * i and x.of == i and x.by == r.rank and "yes" or "no"
  end))
end)
is(all_of(values, 9), ("yes "):rep(4) .. "(" .. (all_of(values, 9):match "%((.-)%)" or "") .. ")" .. (" yes"):rep(35),
  "each is answered, and one with its error")
ok(all_of(values, 9):find("not 5", 1, true), "  which it is")
ok(most > 1 and calls < 48, ("  %d calls, of %d at most"):format(calls, most))
for size, what in ipairs{"  in one process, too", "  and with one rank that asks"} do
  values = play(size, 1, function(farm)
    local r = new_ranks(farm)
    r:serve_together("double", function(asked) return {2 * asked[1].value} end)
    return text_of(r:map(names(2), function(i) return r:ask("double", i) end))
  end)
  is(all_of(values, size), "2 4", what)
end

-- Ranks that do not run the same script.
-- The first error; others then wait until they are ended.
local function first_error(size, body)
  local why
  pcall(play, size, 2, function(farm)
    local good, message = pcall(body, new_ranks(farm))
    if not good and not why then why = farm:rank() .. ": " .. message end
    if not good then while true do farm:receive() end end
  end)
  return why or "no error"
end
local other_list = first_error(3, function(r) return r:map(names(r.rank == 2 and 3 or 4), function(i) return i end) end)
ok(other_list:find "0: .*rank 2 on host0 has another list of tasks", "another list of tasks: " .. other_list)
local other_map = first_error(2, function(r)
  if r.rank == 1 then r.maps = 4 end
  return r:map(names(2), function(i) return i end)
end)
ok(other_map:find "another number of calls", "a rank at another map: " .. other_map)
local no_map = first_error(2, function(r)
  if r.rank == 0 then
    r.maps = 1
    return r:send(1, {kind = "task", task = 1})
  end
  return r:map(names(2), function(i) return i end)
end)
ok(no_map:find "^1: .*rank 0 begins with 'task'", "a rank whose first message is none of a map: " .. no_map)
is(all_of(play(3, 4, function(farm) return #new_ranks(farm):map({}, error) end), 3), 0, "no task")
local garbled = first_error(2, function(r)
  if r.rank == 1 then r.farm:send(0, "{") end
  return r:map(names(2), function(i) return i end)
end)
ok(garbled:find "rank 1 sent what is no message", "a message that is none: " .. garbled)

for _, case in ipairs{
  {"0: .*rank 1 asks for 'nothing', which rank 0 does not serve", {kind = "ask", name = "nothing"}},
  {"0: .*rank 1 sent no result", {kind = "result", task = 1}},
  {"0: .*rank 1 sent no result", {kind = "result", task = 1, result = {good = "yes"}}},
  {"0: .*rank 1 answers for a task that it was not given", {kind = "result", task = 2, result = {good = true}}},
  {"0: .*rank 1 answers for a task that it was not given", {kind = "result", result = {good = true}}},
  {"0: .*rank 1 sent 'begin' to rank 0", {kind = "begin"}}} do
  local said = first_error(2, function(r)
    return r:map(names(2), function() r:send(0, case[2]) end)
  end)
  ok(said:find(case[1]), "a message that does not belong there: " .. said)
end

---- messages between other ranks ------------------------------------------------------------------------------------

-- Rank 1 does the tasks and asks rank 2, which answers between two messages of rank 0, with nonsense before and behind that.
local wrong
for seed = 1, 25 do
  values = play(4, seed, function(farm)
    local r = new_ranks(farm)
    local function nonsense(to)
      for _, text in ipairs{"", "{", "[]", "7", '{"kind":7}', '{"kind":"task","map":1,"task":1}', '{"kind":"question","map":9,"x":1}',
        '{"kind":"nothing","map":1,"x":null}'} do
        farm:send(to, text)
      end
    end
    local waiting, got = {}, {}
    r:handle("question", function(m, from) waiting[#waiting + 1] = {m.x, from} end)
    r:handle("nothing", function(m) if m.x ~= nil then error "null is no value" end end)
    r:handle("reply", function(m, from) got[m.x] = (got[m.x] or "") .. from end)
    local results = r:map(names(3), function(i, with)
      for x = 10 * i, 10 * i + 2 do
        nonsense(with)
        r:send(with, {kind = "question", x = x})
        if x == 10 * i + 1 then r:send(3, {kind = "question", x = x}) end
      end
      while not (got[10 * i] and got[10 * i + 1] and got[10 * i + 2]) do r:poll(1) end
      return got[10 * i] .. got[10 * i + 1] .. got[10 * i + 2]
    end, {choose = function() return {[1] = true}, {[1] = 2} end, between = function()
      for _, x in ipairs(r.rank == 2 and waiting or {}) do
        nonsense(x[2])
        r:send(x[2], {kind = "reply", x = x[1]})
        nonsense(x[2])
      end
      waiting = {}
      return 0
    end})
    return text_of(results) .. " then " .. text_of(r:map(names(1), function() return "end" end))
  end)
  wrong = wrong or all_of(values, 4) ~= "222 222 222 then end" and all_of(values, 4)
end
is(wrong or "all", "all", "ranks answer each other while rank 0 hands out tasks, and nonsense between them is dropped")

-- What rank 0 sends meanwhile is kept, in its order.
values = play(3, 7, function(farm)
  local r = new_ranks(farm)
  if r.rank == 0 then
    for x = 1, 3 do r:send(1, {kind = "go", x = x}) end
    r:send(1, {kind = "end"})
    r.maps = 1
    r:send(1, {kind = "begin"})
    return "sent"
  end
  if r.rank == 2 then return r:send(1, {kind = "hint"}) end
  local seen, text = 0, ""
  r:handle("hint", function() seen = seen + 1 end)
  while seen == 0 or #r.deferred < 4 do r:poll(1) end
  for _ = 1, 9 do r:poll(1) end
  text = text .. r:next().x .. (r:take "none" and "?" or "") .. r:take("go").x .. r:next().x
  text = text .. " " .. r:next().kind
  r.maps = 1
  local m
  repeat m = r:next() until m
  return text .. " " .. m.kind
end)
is(values[1], "123 end begin", "messages of rank 0 stay there for next, up to the end of the map")

do
  local waits, inbox = {}, {'{"kind":"a","map":0}', '{"kind":"b","map":0}'}
  local function none() end
  local farm = {rank = function() return 1 end, size = function() return 2 end, host = none, closed_rank = none}
  function farm:receive(seconds)
    waits[#waits + 1] = seconds
    return table.remove(inbox, 1), 0
  end
  local r = new_ranks(farm)
  is(r:poll(0.25), false, "a look at messages")
  is(table.concat(waits, " ") .. " " .. #r.deferred, "0.25 0 0 2", "  waits for the first alone")
  inbox, waits = {'{"kind":"end","map":0}', '{"kind":"begin","map":1}'}, {}
  is(tostring(r:poll(0.25)) .. " " .. tostring(r:poll(0.25)) .. " " .. #waits, "true true 1",
    "  and says that the end has come, behind which it does not look")
end
tap.done_testing()
