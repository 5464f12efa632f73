-- measure.lua: what is measured, in what order, and when it ends; on a device that is none.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, near = tap.ok, tap.is, tap.near
local measure, new_belief, new_queue = require "millrace.measure", require "millrace.belief", require "millrace.queue"
local paired = require "millrace.paired"

---- the device ---------------------------------------------------------------------------------

-- Numbers from 0 to 1, the same everywhere.
local function random(seed)
  local state = seed
  return function()
    state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
    return (state >> 10) / (1 << 53)
  end
end

-- About normal, of spread 1.
local function normal(seed)
  local u = random(seed)
  return function()
    local sum = 0
    for _ = 1, 12 do sum = sum + u() end
    return sum - 6
  end
end

-- A server that knows the true times; o: noise= (a share), capacity=, how= (script -> status), log= (what it was
-- asked, in order), late= (polls until an item is ready, of all or by script).
local function device(times, o)
  o = o or {}
  local noise, log, clock = normal(o.seed or 7), o.log or {}, 0
  local server = {capacity = o.capacity or 3, waits = 0}
  local function time(item) return times[item.script] * (1 + (o.noise or 0) * noise()) end
  function server:wait() self.waits = self.waits + 1 end
  function server:begin(item)
    log[#log + 1] = "begin " .. (item.script or "final")
    local polls = 0
    return {
      drop = function() log[#log + 1] = "drop " .. item.script end,
      poll = function(_, incumbent)
        polls = polls + 1
        if polls <= (type(o.late) == "table" and o.late[item.script] or tonumber(o.late) or 0) then return nil end
        log[#log + 1] = "measure " .. (item.script or "final")
        if o.measuring then o.measuring(item) end
        clock = clock + 0.1
        if item.finalists then
          local row, base = {id = 0, status = "ok", results = {}, wrong = {}, device_seconds = 0.1}, nil
          for _, x in ipairs(item.finalists) do
            local ms = times[x.script] * (1 + (o.noise or 0) / 10 * noise())
            base = base or ms
            if o.wrong and o.wrong(x) then
              row.wrong[x.id] = "because"
            else
              row.results[x.id] = {ms = ms, min = ms, max = ms, ratio = ms / base}
              if not row.right or ms < row.results[row.right].ms then row.right = x.id end
            end
          end
          return row
        end
        local status = o.how and o.how(item) or "ok"
        local row = {id = item.id, status = status, device_seconds = 0.1, script = item.script}
        if status ~= "ok" then
          row.why = "because"
          return row
        end
        row.ms = time(item)
        if incumbent then
          row.against, row.ratio = incumbent.id, row.ms / times[incumbent.script]
          row.low, row.high = row.ratio * 0.99, row.ratio * 1.01
        end
        return row
      end,
    }
  end
  return server, log, function() return clock end
end

-- A space of n plans whose predictions are off by a bias and a spread, sorted by prediction.
local function space(n, bias, spread, seed)
  local noise, u, candidates, times = normal(seed), random(seed + 1), {}, {}
  for i = 1, n do
    local truth = 1 + u() * 1.5
    local name = "p" .. i
    times[name] = truth
    candidates[i] = {script = name, predicted = truth * 1e-3 / bias * math.exp(spread * noise())}
  end
  table.sort(candidates, function(a, b) return a.predicted < b.predicted end)
  local best = math.huge
  for _, t in pairs(times) do best = math.min(best, t) end
  return candidates, times, best
end

local function scripts(results)
  local list = {}
  for i, row in ipairs(results) do list[i] = row.script end
  return table.concat(list, " ")
end

---- statistics ---------------------------------------------------------------------------------

near(paired.median{3, 1, 2}, 2, 0, "a median")
near(paired.median{4, 1, 2, 3}, 2.5, 0, "of an even number")
local m, low, high = paired.interval{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
ok(m == 6.5 and low == 3 and high == 10, "of twelve values the third from either end bound the median", low, high)
m, low, high = paired.interval{5, 1, 3}
ok(m == 3 and low == 1 and high == 5, "of three all do")
local ratios = paired.ratios({{1, 2}, {4, 2}, {4, 8}, {3, 6}, {1, 1}}, 2, 1)
ok(#ratios == 2 and ratios[1] == 1 and ratios[2] == 2, "ratios are taken over pairs of rounds", table.unpack(ratios))

near(paired.midmean{1, 2, 3, 100}, 2.5, 0, "the mean of the middle half")
near(paired.midmean{9, 1, 2, 3, 4, 5, 6, -50}, 3.5, 0, "  of eight values, of four")
near(paired.midmean{1, 2, 6}, 3, 0, "  of three, of all")

local belief = new_belief(0.1)
near(belief.normal(1.6449), 0.95, 1e-5, "the normal distribution")
near(belief.normal(-2.3263), 0.01, 1e-5, "far below its mean")
near(belief:improvement_probability({predicted = 1}, 1), 0.5, 1e-7, "before any measurement a prediction is as likely too high as too low")
ok(belief:improvement_probability({predicted = 1}, 0.7) < belief:improvement_probability({predicted = 1}, 0.9), "and less likely by much than by little")
for _ = 1, 8 do belief:learn({predicted = 1}, 1.3) end
local mean, spread = belief:unknown_error()
ok(mean > 0.15 and mean < math.log(1.3) and spread < 0.1, "a bias is learned", mean, spread)
ok(belief:improvement_probability({predicted = 1.1}, 1.3) < 0.2, "and counts for what is not measured")
local wide, narrow = {ways = 3, tile = 7}, {ways = 2, tile = 6}
belief = new_belief(0.1)
for _ = 1, 4 do
  belief:learn({predicted = 1, traits = wide}, 1.1)
  belief:learn({predicted = 1, traits = narrow}, 0.95)
end
local like_wide, like_narrow = belief:predict_error{traits = {ways = 3, tile = 7.2}}, belief:predict_error{traits = {ways = 2, tile = 6.2}}
ok(like_wide > 0.03 and like_narrow < like_wide - 0.05, "what is like another errs like it", like_wide, like_narrow)
local _, unsure = belief:predict_error{traits = {ways = 9}}
local _, sure = belief:predict_error{traits = wide}
ok(unsure > sure, "and what is like nothing is less sure", unsure, sure)
near(new_belief(0):improvement_probability({predicted = 1}, 2), 1, 0, "a model without uncertainty is believed")
near(new_belief(0):expected_improvement({predicted = 1}, 2), math.log(2), 0, "  in its improvement, too")
local fast = {predicted = 1, traits = wide}
belief:learn(fast, 1.04)
local estimate, mean = belief:estimate(fast, 1.04), math.exp((belief:predict_error(fast)))
ok(mean > estimate and estimate > 1.04, "a time that is less than those of plans like it was likely measured too low", mean, estimate)
near(new_belief(0):estimate({predicted = 1}, 1.04), 1.04, 0, "  but is believed if the model is")
local odd = {predicted = 1, traits = wide}
belief:learn(odd, 0.7)
ok(belief:estimate(odd, 0.7) < 0.72, "  and one that is far from them is, but for what a race may be off", belief:estimate(odd, 0.7))
local few, many = belief:expected_improvement({predicted = 0.95, traits = wide}, 1), belief:expected_improvement({predicted = 1, traits = {ways = 9}}, 1)
ok(many > few and few >= 0, "who is less sure may improve more, though predicted to be slower", few, many)

-- Two matrix units: the model takes the first one's plans to be 1.6 times as fast as they are, and is right about the other's.
local two, ms = {}, {}
for unit = 0, 1 do
  for i = 1, 12 do
    local script = ("%d.%d"):format(unit, i)
    two[#two + 1] = {script = script, predicted = (unit == 0 and 1 or 1.4) * (1 + 0.01 * i) * 1e-3, traits = {unit = 2 * unit, ways = i / 4}}
    ms[script] = two[#two].predicted * 1e3 * (unit == 0 and 1.6 or 1)
  end
end
local r = measure(nil, nil, two, {server = device(ms), uncertainty = 0.135, final = false})
ok(r.best.script == "1.1", "where the model flatters one matrix unit, the other's plans are measured, too", r.best.script)
for _, c in ipairs(two) do c.traits.unit = nil end
r = measure(nil, nil, two, {server = device(ms), uncertainty = 0.135, final = false})
ok(r.best.script:find "^0", "which those of the same unit would not be", r.best.script)

-- Ctrl-C while a row is learned from: the rows that there are have a score.
do
  local server = device{a = 1, b = 1.01}
  local begin = server.begin
  function server:begin(item)
    local work = begin(self, item)
    return {drop = work.drop, poll = function(...)
      local row = work.poll(...)
      return row and setmetatable(row, {__index = function(_, key)
        if key ~= "ratio" then return nil end
        io.popen("kill -INT $PPID"):close()
        while true do end
      end})
    end}
  end
  r = measure(nil, nil, {{script = "a", predicted = 1e-3}, {script = "b", predicted = 1.01e-3}}, {server = server, uncertainty = 0.1})
  local complete = r.ended == "interrupted"
  for _, row in ipairs(r.results) do complete = complete and row.score ~= nil end
  ok(complete, "a row that Ctrl-C ends has its score or is not there")
  local log, clock
  server, log, clock = device({a = 1, b = 1.01}, {measuring = function()
    io.popen("kill -INT $PPID"):close()
    while true do end
  end})
  measure(nil, nil, {{script = "a", predicted = 1e-3}, {script = "b", predicted = 1.01e-3}}, {server = server, uncertainty = 0.1})
  is(table.concat(log, ", "), "begin a, begin b, measure a, drop b, drop a", "  and what is under way then is dropped")
end

---- the best is found -------------------------------------------------------------------------

local most, worst = 0, 1
for seed = 1, 20 do
  local candidates, times, best = space(300, 1.25, 0.03, seed * 100)
  local server = device(times, {noise = 0.003, seed = seed})
  local r = measure(nil, nil, candidates, {server = server, uncertainty = 0.08})
  most, worst = math.max(most, r.trials), math.min(worst, best / times[r.best.script])
  if r.ended ~= "sure" then ok(false, "ended: " .. r.ended) end
end
ok(worst >= 0.99, ("of 300 plans, in 20 spaces, the best or one within 1 %% is found: %.3f"):format(worst))
ok(most <= 40, ("with at most 40 trials: %d"):format(most))

local candidates, times, best = space(300, 1.0, 0.005, 5)
r = measure(nil, nil, candidates, {server = device(times), uncertainty = 0.1})
local few = r.trials
near(r.device_seconds, 0.1 * (r.trials + 1), 1e-9, "the device's time is that of all trials, and of the last race")
ok(best / times[r.best.script] >= 0.99 and few <= 15, "a model that proves to be good needs few trials", few)
candidates, times, best = space(300, 1.4, 0.005, 5)
r = measure(nil, nil, candidates, {server = device(times), uncertainty = 0.1})
ok(r.trials <= 30 and math.abs(r.bias - math.log(1.4)) < 0.1, "one with a bias not many more: it is learned", r.trials, r.bias)

-- Nothing but the first can win.
r = measure(nil, nil, {{script = "a", predicted = 1e-3}, {script = "b", predicted = 9e-3}},
  {server = device{a = 1, b = 9}, uncertainty = 0.1})
ok(r.ended == "sure" and scripts(r.results) == "a" and r.why:find "by more than 0.5 %% has a probability of 2 %% at most", "what cannot win is not measured", r.why)
r = measure(nil, nil, {{script = "a", predicted = 1e-3}, {script = "b", predicted = 1e-3, bound = 1e-3}},
  {server = device({a = 1, b = 2}, {capacity = 1}), uncertainty = 0.1})
ok(scripts(r.results) == "a" and r.ended == "sure", "nor what its bound keeps from winning", scripts(r.results))

-- Candidates that are each unlikely to be the fastest: one that is alone, and sixty.
for _, n in ipairs{1, 60} do
  local list, times = {{script = "first", predicted = 1e-3}}, {first = 1}
  for i = 1, n do list[i + 1], times["p" .. i] = {script = "p" .. i, predicted = 1.085e-3, traits = {["tile m"] = 3 * i}}, 1.085 end
  r = measure(nil, nil, list, {server = device(times, {capacity = 1}), uncertainty = 0.05, final = false})
  ok(n == 1 and r.trials == 1 or n > 1 and r.trials > 1, ("%d that are unlikely each are %smeasured"):format(n, n == 1 and "not " or ""), r.trials)
end

-- A model by which all plans are slower than they are, the best of them by most.
do
  local list, times = {}, {}
  for i = 1, 20 do list[i], times["p" .. i] = {script = "p" .. i, predicted = 1.3e-3 + i * 1e-6, traits = {["tile m"] = i}}, 1 + i * 1e-3 end
  list[21], times.best = {script = "best", predicted = 1.36e-3, traits = {["tile m"] = 30}}, 0.93
  r = measure(nil, nil, list, {server = device(times, {capacity = 1}), uncertainty = 0.15, final = false})
  is(r.best.script, "best", "what is predicted to be slower than the best by a third is measured if the model predicts all too slowly")
end

-- Each result changes all chances a little. What is under way is not withdrawn for others that are no likelier.
do
  local list, times = {{script = "first", predicted = 1e-3}}, {first = 1}
  for i = 1, 200 do list[i + 1], times["p" .. i] = {script = "p" .. i, predicted = 1.1e-3 + i * 1e-7, traits = {["tile m"] = 3 * i}}, 1.1 end
  server, log = device(times, {capacity = 16})
  r = measure(nil, nil, list, {server = server, uncertainty = 0.05, final = false, trials = 20})
  local begun = select(2, table.concat(log, ", "):gsub("begin p", ""))
  ok(begun <= r.trials + 16, "items are not begun to be withdrawn", begun, r.trials)
end

-- What is unlike all others, and predicted to be slower, has less chance than others, but may improve by more.
do
  local list, times = {}, {}
  for i = 1, 60 do list[i], times["p" .. i] = {script = "p" .. i, predicted = 1e-3 + i * 1e-6, traits = {["tile m"] = 5}}, 1 + i * 1e-3 end
  for i = 1, 4 do list[60 + i], times["u" .. i] = {script = "u" .. i, predicted = 1.12e-3, traits = {["tile m"] = 50 + 20 * i}}, 1.12 end
  server, log = device(times, {capacity = 4})
  r = measure(nil, nil, list, {server = server, uncertainty = 0.07, final = false, trials = 50})
  local begun = select(2, table.concat(log, ", "):gsub("begin u", ""))
  ok(begun <= 8, "  nor again and again", begun, r.trials)
end

-- What the search adds is begun while others are still compiled.
do
  local list, times = {{script = "a", predicted = 1e-3}}, {a = 1, new = 0.9}
  for i = 1, 4 do list[i + 1], times["u" .. i] = {script = "u" .. i, predicted = 1.065e-3, traits = {["tile m"] = 50 + 20 * i}}, 1.065 end
  server, log = device(times, {capacity = 8})
  r = measure(nil, nil, list, {server = server, uncertainty = 0.05, final = false, risk = 0.05, more = function(best)
    log[#log + 1] = "ask"
    return best.script == "a" and {{script = "new", predicted = 1e-3, traits = {["tile m"] = 200}}} or {}
  end})
  local text = table.concat(log, ", ")
  ok(text:find("ask, begin new", 1, true), "what the search adds is begun at once", text)
end

-- Without risk all that could win are measured.
local asked = 0
r = measure(nil, nil, {{script = "a", predicted = 1e-3}, {script = "b", predicted = 1.24e-3}}, {
  server = device({a = 1, b = 1.24}, {capacity = 1}), uncertainty = 0.01, risk = 0, final = false, more = function()
    asked = asked + 1
    return {}
  end})
is(("%s %d %d"):format(r.ended, r.trials, asked), "done 2 1", "without risk all are measured, however unlikely")

-- The search is asked for neighbours of what is known, too.
asked = 0
r = measure(nil, nil, {{script = "a", predicted = 1e-3}}, {server = device{a = 1, b = 0.8}, uncertainty = 0.1, final = false,
  known = function(c) return c.script == "a" and {status = "ok", ms = 1} or nil end,
  more = function()
    asked = asked + 1
    return asked == 1 and {{script = "b", predicted = 1e-3}} or {}
  end})
is(("%s %d %d"):format(r.best.script, r.trials, asked), "b 1 2", "where all is known the best has neighbours, too")

---- within noise ----------------------------------------------------------------------------------

candidates, times = {}, {}
for i = 1, 6 do
  candidates[i], times["t" .. i] = {script = "t" .. i, predicted = 1e-3}, 1
end
times.t4 = 0.998
r = measure(nil, nil, candidates, {server = device(times, {noise = 0.003}), uncertainty = 0.1, gain = 0})
is(r.best.script, "t4", "the last race decides between plans within noise")
ok(r.best.final and r.best.final.ms, "and its result is kept")
r = measure(nil, nil, candidates, {server = device(times), uncertainty = 0.1, final = false})
ok(not r.best.final, "it can be left out")

---- order ------------------------------------------------------------------------------------------

local server, log = device({a = 1, b = 1.01, c = 1.02, d = 1.03}, {capacity = 2})
local rows = {}
candidates = {}
for i, name in ipairs{"a", "b", "c", "d"} do candidates[i] = {script = name, predicted = 1e-3 + i * 1e-6} end
r = measure(nil, nil, candidates, {server = server, final = false, gain = 0, uncertainty = 0.5, put = function(row)
  rows[#rows + 1] = row
  log[#log + 1] = "put " .. row.script
end})
is(table.concat(log, ", "), "begin a, begin b, measure a, put a, begin c, measure b, put b, begin d, measure c, put c, "
  .. "measure d, put d", "each row is put before the next is measured, while the next ones are prepared")
ok(rows[2].against == rows[1].id and rows[2].ratio and not rows[1].ratio, "each is measured against the best so far")
ok(r.ended == "done" and #r.results == 4, "and all of them, if all may win")

-- Of what is under way b is like a, which is slower than predicted, and c is not.
do
  local items = {}
  for i, x in ipairs{{"a", 1, 1e-3}, {"b", 1, 1.01e-3}, {"c", 9, 1.02e-3}} do
    items[i] = {id = i, script = x[1], candidate = {script = x[1], predicted = x[3], traits = {unit = x[2]}}}
  end
  local function first_of(risk)
    local server, log = device{a = 1.3, b = 1.3, c = 1.02}
    local under_way = {}
    for i = 2, 3 do under_way[i - 1] = {item = items[i], server = server, handle = server:begin(items[i])} end
    measure(nil, nil, {}, {server = server, early = {{item = items[1], row = {id = 1, status = "ok", ms = 1.3, script = "a"}}}, under_way = under_way,
      final = false, gain = 0, uncertainty = 0.3, risk = risk})
    return table.concat(log, ", "):match "measure (%a)"
  end
  is(first_of(0), "c", "what promises most of what is ready is measured first")
  is(first_of(-1), "b", "  not if all is to be measured")
end

-- A server that measures in this thread begins one at a time while it has eight to go on with.
for capacity, want in pairs{[8] = 5, [9] = 1} do
  local list, times, many = {}, {}, nil
  for i = 1, 20 do list[i], times["p" .. i] = {script = "p" .. i, predicted = 1e-3 + i * 1e-6}, 1 end
  many, log = device(times, {capacity = capacity, measuring = function() many.capacity = 12 end})
  many.busy_thread = true
  measure(nil, nil, list, {server = many, final = false, gain = 0, uncertainty = 0.5, risk = -1})
  local begun = table.concat(log, ", "):match "measure p%d+, (begin.-), measure"
  is(select(2, (begun or ""):gsub("begin", "")), want, ("with %d under way it begins %d more"):format(capacity - 1, want))
end

local given = 0
r = measure(nil, nil, function()
  given = given + 1
  return candidates[given]
end, {server = device({a = 1, b = 1.01, c = 1.02, d = 1.03}), final = false, gain = 0, uncertainty = 0.5, trials = 2})
ok(r.ended == "trials" and r.trials == 2 and r.why == "all 2 trials are used" and given == 5, "candidates may come from a function; trials are limited", given)

-- What is under way when the best comes goes back, and is not measured.
server, log = device({a = 1, b = 3, c = 3}, {capacity = 3})
r = measure(nil, nil, {{script = "a", predicted = 1e-3}, {script = "b", predicted = 3e-3}, {script = "c", predicted = 3e-3}},
  {server = server, uncertainty = 0.1})
is(table.concat(log, ", "), "begin a, begin b, begin c, measure a, drop c, drop b, begin final, measure final", "what cannot win any more is dropped")
server, log = device({a = 1, b = 1, c = 1}, {capacity = 3})
r = measure(nil, nil, {{script = "a", predicted = 1e-3}, {script = "b", predicted = 1e-3, bound = 1e-3}, {script = "c", predicted = 1e-3}},
  {server = server, uncertainty = 0.5, final = false})
is(table.concat(log, ", "), "begin a, begin b, begin c, measure a, drop b, measure c", "  also alone")
is(r.ended, "sure", "and that is an end")

local clock
server, log, clock = device({a = 1, b = 1, c = 1, d = 1}, {late = 3})
r = measure(nil, nil, candidates, {server = server, clock = clock, seconds = 0.15, uncertainty = 0.5, gain = 0, final = false})
ok(r.ended == "seconds" and r.trials == 2, "the time is limited", r.ended, r.trials)
ok(server.waits >= 3, "what is not ready is waited for")

-- Others are compiled first, and take all the time: the most promising one is measured all the same.
server, log, clock = device({a = 1, b = 2, c = 2, d = 2}, {late = {a = 9}})
r = measure(nil, nil, candidates, {server = server, clock = clock, seconds = 0.05, uncertainty = 0.5, gain = 0, final = false})
ok(r.ended == "seconds" and r.best.script == "a", "the time does not end before the most promising candidate is measured", r.best.script)

---- what goes wrong ------------------------------------------------------------------------------

local function with(how, o)
  local alarms, done = {}, {}
  o = o or {}
  o.server, o.uncertainty, o.gain, o.final = device({a = 1, b = 1.01, c = 1.02, d = 1.03}, {how = how, capacity = 2}), 0.5, 0, false
  o.alarm = function(row) alarms[#alarms + 1] = row.script end
  o.put = function(row) done[#done + 1] = row.script .. " " .. row.status end
  local found = measure(nil, nil, candidates, o)
  return found, table.concat(done, ", "), alarms
end

local done, alarms
r, done, alarms = with(function(item) return item.script == "a" and "wrong" end)
is(done, "a wrong, b ok, c ok, d ok", "a wrong result is out")
ok(r.best.script == "b" and alarms[1] == "a" and #alarms == 1, "and reported")
ok(r.results[1].status == "wrong" and r.results[1].script == "a" and r.results[1].why == "because", "its script is kept")
r, done = with(function(item) return item.script == "b" and "failed" end)
is(done, "a ok, b failed, c ok, d ok", "one that fails is out, and the others go on")
r, done = with(function(item) return item.script ~= "c" and not item.anyway and "skipped" end)
is(done, "a skipped, b skipped, c ok, d skipped", "those with spills are skipped")
ok(r.best.script == "c" and r.trials == 1, "and are no trials")
r, done = with(function(item) return not item.anyway and "skipped" end)
is(done, "a skipped, b skipped, c skipped, d skipped, a ok, b ok, c ok, d ok", "unless there is nothing else")
is(r.best.script, "a", "then the best of them is the best")

-- Who was a little slower is not compared before the last race: it may be out after it.
local puts
done, alarms, puts = {}, {}, {}
r = measure(nil, nil, candidates, {server = device({a = 1, b = 1.01, c = 1.015, d = 2}, {wrong = function(item) return item.script == "a" end}),
  uncertainty = 0.5, gain = 0, alarm = function(row) alarms[#alarms + 1] = row.script end,
  put = function(row) puts[#puts + 1] = row.script .. " " .. row.status end})
ok(r.best.script == "b" and table.concat(alarms, " ") == "a", "a result found wrong in the last race is out, and reported",
  r.best.script, table.concat(alarms, " "))
is(puts[#puts], "a wrong", "  and its row is put once more")

-- If all of those are wrong, others are raced.
done, log = {}, {}
r = measure(nil, nil, candidates, {server = device({a = 1, b = 1.01, c = 1.2, d = 1.5}, {log = log, wrong = function(item) return item.script < "c" end}),
  uncertainty = 0.5, gain = 0, risk = -1, alarm = function(row) done[#done + 1] = row.script end})
is(r.best.script .. " " .. table.concat(done, " "), "c a b", "if all are wrong in the last race, there is another one")
r = measure(nil, nil, candidates, {server = device({a = 1, b = 1.01, c = 1.2, d = 1.5}, {wrong = function() return true end}),
  uncertainty = 0.5, gain = 0, risk = -1, alarm = function() end})
is(r.best, nil, "  until nothing is left")

-- The last race as its server says.
do
  local function ended_by(final)
    local server = device{a = 1, b = 1.001}
    local begin = server.begin
    function server.begin(s, item)
      if not item.finalists then return begin(s, item) end
      return {drop = function() end, poll = function() return final(item.finalists) end}
    end
    return measure(nil, nil, {{script = "a", predicted = 1e-3}, {script = "b", predicted = 1.001e-3}}, {server = server, uncertainty = 0.5, gain = 0, risk = -1})
  end
  local function of(ratio) return {ms = ratio, min = ratio, max = ratio, ratio = ratio} end
  local r = ended_by(function() return {id = 0, status = "ok", results = {of(1), of(1.5)}, right = 2} end)
  is(r.best.script, "b", "the answer is the plan that was verified")
  r = ended_by(function() return {id = 0, status = "failed", why = "the device is lost"} end)
  is(r.best.script .. ", " .. r.best.why, "a, the last race failed: the device is lost", "if the last race fails the best by score is, with a note")
  local calls = 0
  r = ended_by(function(finalists)
    calls = calls + 1
    if calls == 2 then return {id = 0, status = "ok", results = {[2] = of(1)}, right = 2} end
    return {id = 0, status = "ok", results = {}, failed = {[finalists[1].id] = "it faults"}}
  end)
  is(calls .. r.best.script .. r.best.final.ratio, "2b1", "and if one faults, and none is right, the others race again")
end

-- Of many that are near to the best, those that were the fastest are in the last race, one for each four that were measured.
for _, case in ipairs{{12, 8}, {40, 10}, {100, 16}} do
  local n, finalists = table.unpack(case)
  local list, times, last = {}, {}, {}
  for i = 1, n do list[i], times["p" .. i] = {script = "p" .. i, predicted = 1e-3 + i * 1e-8}, i == 5 and 1 or 1.05 - i * 1e-5 end
  measure(nil, nil, list, {server = device(times, {measuring = function(x)
    for i, f in ipairs(x.finalists or {}) do last[i] = f.script end
    last.id = x.finalists and x.id
  end}), uncertainty = 0.5, gain = 0, risk = -1})
  local want = {"p5"}
  for i = 2, finalists do want[i] = "p" .. n + 2 - i end
  is(table.concat(last, " ") .. "; " .. tostring(last.id), table.concat(want, " ") .. "; 0", ("of %d the last race has the %d fastest"):format(n, finalists))
end

-- When nothing that is left is likely to win, the best may lead to others; what was given out is not measured again.
local fast
asked, fast = {}, {a = 1, b = 1.01, c = 1.02, d = 1.03, e = 0.9}
done = {}
r = measure(nil, nil, candidates, {server = device(fast), uncertainty = 0.5, gain = 0, final = false,
  put = function(row) done[#done + 1] = row.script end, more = function(best)
    asked[#asked + 1] = best.script
    return #asked == 1 and {{script = "e", predicted = 1e-3}, {script = "b", predicted = 1e-3}} or {}
  end})
is(table.concat(asked, " "), "a e", "others are asked for at the end, and again at the next")
is(table.concat(done, " "), "a b c d e", "  what was measured is not measured again")
is(r.best.script, "e", "  and the best is among them")

asked = 0
r = measure(nil, nil, {candidates[1]}, {server = device(fast), uncertainty = 0.5, gain = 0, final = false, more = function()
  asked = asked + 1
  return asked < 4 and {{script = "slow" .. asked, predicted = 9}} or {}
end})
is(asked .. " " .. r.trials, "1 1", "  once for each plan, whatever comes of it")

-- Which of equally fast plans is the best for now is chance: others lead on, too.
asked = {}
r = measure(nil, nil, {candidates[1], candidates[2], {script = "far", predicted = 1e-3}}, {
  server = device{a = 1, b = 1.02, far = 1.04, behind = 0.9, beyond = 0.926}, uncertainty = 0.5, gain = 0, final = false,
  more = function(from)
    asked[#asked + 1] = from.script
    return from.script == "b" and {{script = "behind", predicted = 1e-3}, {script = "beyond", predicted = 1e-3}} or {}
  end})
is(table.concat(asked, " ") .. ", " .. r.best.script, "a b behind beyond, behind", "those about as fast as the best lead to others, too, the best first")

do
  local equal, times, n = {}, {}, 0
  for i = 1, 30 do equal[i], times["p" .. i] = {script = "p" .. i, predicted = 1e-3}, 1 + i * 1e-4 end
  r = measure(nil, nil, equal, {server = device(times), uncertainty = 0.5, gain = 0, risk = 0, final = false, more = function()
    n = n + 1
    return {}
  end})
  is(n .. " " .. r.trials, "12 30", "  but not all of many")
end

-- Of a kind whose kernels never count not all are tried before another kind, however much slower that is predicted.
local kinds, times = {}, {}
for i = 1, 12 do
  local first = i <= 8
  kinds[i] = {script = "k" .. i, predicted = first and 1e-3 + i * 1e-6 or 2e-3 + i * 1e-6, traits = {["tile k"] = first and 8 or 5}}
  times["k" .. i] = first and 1 or 2
end
done = {}
r = measure(nil, nil, kinds, {server = device(times, {how = function(item)
  return item.candidate.traits["tile k"] == 8 and not item.anyway and "skipped"
end}), uncertainty = 0.1, final = false, put = function(row) done[#done + 1] = row.status end})
done = table.concat(done, " ")
ok(r.best.script == "k9" and done:find "ok" < #("skipped "):rep(6), "a kind of plans whose kernels do not count is left early", done)

r, done = with(function() return "failed" end)
ok(r.best == nil and r.ended == "done", "if all fail there is no best")
r = measure(nil, nil, {}, {server = device{}})
ok(r.best == nil and r.ended == "done" and #r.results == 0, "of nothing neither")

---- what is learned bit by bit ----------------------------------------------------------------------

-- A belief that is asked after each measurement says at the end what one says that is asked then alone.
do
  local next_of, plans = random(11), {}
  for i = 1, 30 do
    plans[i] = {predicted = 1e-3 * (1 + next_of()), traits = {["tile m"] = math.floor(4 * next_of()), warps = next_of(), unit = math.floor(2 * next_of())}}
  end
  local asked, once = new_belief(0.1), new_belief(0.1)
  for i = 1, 20 do
    for k = i % 3 + 1, 30, 3 do asked:predict_error(plans[k]) end
    local seconds = plans[i].predicted * (0.9 + 0.3 * next_of())
    asked:learn(plans[i], seconds)
    once:learn({predicted = plans[i].predicted, traits = plans[i].traits}, seconds)
  end
  local same = true
  for _, c in ipairs(plans) do
    local a, b = {asked:predict_error(c)}, {once:predict_error(c)}
    for k = 1, 3 do same = same and a[k] == b[k] end
  end
  ok(same, "what is learned bit by bit is what is learned at once")
end

---- what is known ---------------------------------------------------------------------------------

server, log = device({a = 1, b = 0.9, c = 1.02, d = 1.03}, {capacity = 1})
local known = {a = {status = "ok", ms = 1}, c = {status = "ok", ms = 1.02}, d = {status = "ok", ms = 1.03}}
r = measure(nil, nil, candidates, {server = server, final = false, uncertainty = 0.5, gain = 0,
  known = function(c) return known[c.script] end})
is(table.concat(log, ", "), "begin b, measure b", "what is known takes no time of the device")
ok(r.best.script == "b" and r.trials == 1 and r.known == 3, "and counts", r.trials, r.known)
near(r.best.score, 0.9, 1e-12, "new ones are raced against the best that is known")
r = measure(nil, nil, candidates, {server = device{}, uncertainty = 0.5, gain = 0, known = function(c)
  return {status = "ok", ms = ({a = 1, b = 2, c = 3, d = 4})[c.script]}
end})
ok(r.best.script == "a" and r.trials == 0 and #r.results == 4, "if all is known, nothing is measured")

---- several servers -------------------------------------------------------------------------------

local first, log1 = device({a = 1, b = 1.01, c = 1.02, d = 1.03}, {capacity = 1})
local second, log2 = device({a = 1, b = 1.01, c = 1.02, d = 1.03}, {capacity = 1})
r = measure(nil, nil, candidates, {server = {first, second}, uncertainty = 0.5, gain = 0, final = false})
ok(r.trials == 4 and #log1 > 1 and #log2 > 1 and #log1 + #log2 == 8, "two devices share the work")
do
  local server
  server = device({a = 1, b = 1.01, c = 1.02, d = 1.03}, {capacity = 1, measuring = function() server.capacity = 0 end})
  r = measure(nil, nil, candidates, {server = server, uncertainty = 0.5, gain = 0, final = false})
  is(("%s, %s, %d"):format(r.ended, r.why, r.trials), "lost, no device measures any more, 1", "a search that has lost its servers is not sure of anything")
end
do
  local out, in_use, seconds = {capacity = 0}, {capacity = 2}, 0
  local best, free = new_queue({out, in_use}, 3):freest()
  ok(best == in_use and free == 5, "a server that wants nothing gets nothing, and another one what is spare", free)
  best, free = new_queue({out}, 3):freest()
  ok(not best and free == 0, "  nor if it is the only one", free)
  for _, server in ipairs{out, in_use} do
    function server:wait(s) seconds = seconds + s end
    function server:begin()
      return {poll = function() return seconds > 0 and {} or nil end}
    end
  end
  local q = new_queue{out, in_use}
  q:put{}
  q:take()
  near(seconds, 0.2, 1e-12, "a queue waits as long for two servers as for one")
end
local q = new_queue{(device({x = 1}, {late = 2}))}
q:put{id = 1, script = "x"}
is(q:count(), 1, "a queue tells what is under way")
local row, item = q:take()
ok(row.status == "ok" and item.script == "x" and q:count() == 0, "and gives rows with their items")
is(q:take(), nil, "or nothing, if nothing is under way")

-- A server that measures two at a time: both rows are learned from before others are begun.
local inner, log3 = device({a = 1, b = 1.01, c = 1.02, d = 1.03}, {capacity = 2})
local pair, handles = {capacity = 2, wait = inner.wait}, {}
function pair:begin(item)
  local h, x = {}, inner:begin(item)
  h.drop, h.measure, h.poll = x.drop, function(incumbent) h.row = x:poll(incumbent) end, function(_, incumbent)
    for _, other in ipairs(handles) do if not other.row then other.measure(incumbent) end end
    return h.row
  end
  handles[#handles + 1] = h
  return h
end
measure(nil, nil, candidates, {server = pair, uncertainty = 0.5, gain = 0, final = false})
is(table.concat(log3, ", "), "begin a, begin b, measure a, measure b, begin c, begin d, measure c, measure d",
  "plans that are measured together are learned from together")

-- While a device measures, it gets other items, one at a time, as many as it wants.
local idle
idle, log = device({a = 1, b = 1.01, c = 1.02, d = 1.03}, {capacity = 1, measuring = function(x)
  if x.script ~= "a" then return end
  idle.capacity = 2
  for _ = 1, 3 do idle.meanwhile() end
end})
measure(nil, nil, candidates, {server = idle, uncertainty = 0.5, gain = 0, final = false})
is(table.concat(log, ", ", 1, 4), "begin a, measure a, begin b, begin c", "another item is begun while a device measures")
is(idle.meanwhile, nil, "  but not later")
idle, log = device({a = 1, b = 1.01, c = 1.02, d = 1.03}, {capacity = 1})
measure(nil, nil, candidates, {server = idle, uncertainty = 0.5, gain = 0, final = false, trials = 16})
is(table.concat(log, ", ", 1, 3), "begin a, begin b, measure a", "a search of 16 trials begins one item more than the server wants")

---- progress -------------------------------------------------------------------------------------

local reported = {}
measure(nil, nil, candidates, {server = device({a = 1, b = 1.01, c = 1.02, d = 1.03}), uncertainty = 0.5, gain = 0, final = false,
  progress = function(p) reported[#reported + 1] = ("%d %s"):format(p.trials, p.best.script) end})
is(table.concat(reported, ", "), "1 a, 2 a, 3 a, 4 a", "progress is reported after each row")

tap.done_testing()
