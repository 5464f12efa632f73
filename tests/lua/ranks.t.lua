-- ranks.lua: tasks divided over ranks. The ranks here are coroutines of one process, and what they send takes its time: a scheduler with
-- random numbers chooses who goes on, and which message arrives.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is = tap.ok, tap.is
local function new_ranks(farm) return require("millrace.ranks").new(farm, pcall) end

-- Numbers from 1 to n, the same everywhere.
local function random(seed)
  local state = seed
  return function(n)
    state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
    return (state >> 20) % n + 1
  end
end

-- Run body(farm) on each of `size` ranks until all have ended. -> what each returned, or its error, by rank; messages, in all. Messages
-- between two ranks arrive in order. Error: no rank can go on.
local function play(size, seed, body)
  local next_of, inbox, threads, values, sent = random(seed), {}, {}, {}, 0
  for rank = 0, size - 1 do
    inbox[rank] = {}
    local farm = {}
    function farm:rank() return rank end
    function farm:size() return size end
    function farm:host() return "host" .. rank // 4 end
    function farm:send(to, text)
      sent = sent + 1
      inbox[to][rank] = inbox[to][rank] or {}
      table.insert(inbox[to][rank], text)
    end
    function farm:receive()
      coroutine.yield()
      local from = {}
      for other = 0, size - 1 do if inbox[rank][other] and inbox[rank][other][1] then from[#from + 1] = other end end
      if #from == 0 then return nil end
      local other = from[next_of(#from)]
      return table.remove(inbox[rank][other], 1), other
    end
    threads[rank] = coroutine.create(function() return body(farm) end)
  end
  local left, idle = size, 0
  while left > 0 do
    local rank = next_of(size) - 1
    if coroutine.status(threads[rank]) == "suspended" then
      local before = sent
      local good, value = coroutine.resume(threads[rank])
      if not good then values[rank], left = "error: " .. tostring(value), left - 1
      elseif coroutine.status(threads[rank]) == "dead" then values[rank], left = value, left - 1 end
      idle = sent == before and idle + 1 or 0
    else
      idle = idle + 1
    end
    if idle > 10000 * size then error("no rank can go on", 0) end
  end
  return values, sent
end

local function names(n)
  local list = {}
  for i = 1, n do list[i] = "task " .. i end
  return list
end

-- What all ranks return, as a text; where they differ, "different".
local function all_of(values, size)
  for rank = 1, size - 1 do if values[rank] ~= values[0] then return "different: " .. tostring(values[rank]) .. " and " .. tostring(values[0]) end end
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

-- Which ranks get tasks.
local by = {}
values = play(4, 9, function(farm)
  local r = new_ranks(farm)
  return text_of(r:map(names(8), function(i) by[r.rank] = true return i end, {
    offer = function(with_rank_0) return ("%d %s"):format(r.rank, tostring(with_rank_0)) end,
    choose = function(offers)
      by.offers = ("%s; %s; %s on %s"):format(offers[1].offer, offers[2].offer, offers[3].offer, offers[3].host)
      return {[2] = true}
    end}))
end)
is(by.offers, "1 true; 2 true; 3 true on host0", "what ranks offer")
ok(by[2] and not by[1] and not by[3], "  chooses who does tasks")

-- Which devices measure: those that are alike.
local choose_devices = require("millrace.farm_devices").choose
local function chosen(times)
  local offers, said = {}, {}
  for rank, ms in pairs(times) do
    offers[rank] = {host = "h" .. rank, offer = ms and {ms = ms ~= true and ms or nil} or nil}
  end
  local list = choose_devices(offers, function(text) said[#said + 1] = text:match "rank %d" .. " " .. text:match "takes (.-) of" end)
  local ranks = {}
  for rank in pairs(list) do ranks[#ranks + 1] = rank end
  table.sort(ranks)
  table.sort(said)
  return table.concat(ranks, " ") .. "; " .. table.concat(said, ", ")
end
is(chosen{1.0, 1.015, 1.01, 1.05}, "1 2 3; rank 4 1.04", "a device that is slower than the usual one by more than 2 % is left out, and named")
is(chosen{1.0, 1.03}, "1; rank 2 1.03", "of two the slower one")
is(chosen{1.0, false, 1.02}, "1 3; ", "a rank without one offers nothing")
is(chosen{true}, "1; ", "a single device is not compared")
is(chosen{1.0, true, 1.0}, "1 3; rank 2 too much", "one on which the product fails is left out")
is(chosen{false, false}, "; ", "no device")

-- What the user sees.
do
  local now, shown = 100, {}
  local p = require("millrace.farm_progress").new({"row a", "row b"}, function() return now end, function(text) shown[#shown + 1] = text end)
  local state = {offers = {{host = "one", offer = {name = "H200"}}, {host = "two"}}, doing = {2}}
  p:step(state)
  is(#shown, 0, "no table at once")
  p:count(1, "rows")
  for _ = 1, 12 do p:count(1, "measured") end
  now = 160
  p:step(state)
  p:step(state)
  is(#shown, 1, "one table now and then")
  is(shown[1], "rank  host  device  rows  measured  a minute\n   1  one   H200       1        12      12.0  row b\n"
    .. "   2  two   none       0         0       0.0\n", "  with a line for each rank")
  p:finish()
  is(#shown, 2, "one at the end")
  require("millrace.farm_progress").new({}, function() return 0 end, error):finish()
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
ok(other_map:find "at another call", "a rank at another map: " .. other_map)
is(all_of(play(3, 4, function(farm) return #new_ranks(farm):map({}, error) end), 3), 0, "no task")
local garbled = first_error(2, function(r)
  if r.rank == 1 then r.farm:send(0, "{") end
  return r:map(names(2), function(i) return i end)
end)
ok(garbled:find "rank 1 sent what is no message", "a message that is none: " .. garbled)
tap.done_testing()
