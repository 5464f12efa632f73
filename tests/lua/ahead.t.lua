-- ahead.lua: what other ranks, or the attached device, measure while a search runs in the model, by servers and compilers that are tables here,
-- and what measure.lua goes on with.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is = tap.ok, tap.is
assert(mr)

local log, how = {}, {}                                 -- how: the status of a row by script, "ok" if its kernel is compiled and right; nil: it is not compiled
package.loaded["millrace.serve"] = function(_, _, o)
  local server = {jobs = o.ahead}
  function server:prepare() log[#log + 1] = "prepare" end
  function server:measure_early(item)
    if not how[item.script] or not self.jobs[item.script] then return nil end
    self.jobs[item.script] = nil
    log[#log + 1] = "measure " .. item.script
    return {id = item.id, status = how[item.script], ms = tonumber(item.script:match "%d+"), script = item.script,
      device_seconds = how[item.script] ~= "failed" and 0.5 or nil}
  end
  function server:end_idle() log[#log + 1] = "end" end
  return server
end
local core, measure, ahead = require "millrace.core", require "millrace.measure", require "millrace.ahead"

local real, now = {}, 0
local function replace(name, f) real[name], core[name] = core[name], f end
replace("clock", function() return now end)
local looks_at_compilers = 0
replace("compile_wait", function() looks_at_compilers = looks_at_compilers + 1 end)
replace("compile_begin", function(plan)
  local script = plan:script()
  log[#log + 1] = "compile " .. script
  if script:find "bad" then error "it does not compile" end
  return {drop = function() log[#log + 1] = "drop " .. script end}
end)

local function plan_of(name) return {script = function() return name end, copy = function() end} end

-- A server that has a row of an item after `late` looks, 1 ms times the number in its script.
local function new_server(capacity, late)
  local server = {capacity = capacity, waits = 0}
  function server:wait(seconds) self.waits = self.waits + seconds end
  function server:begin(item)
    log[#log + 1] = "begin " .. (item.script or "final")
    local looks = 0
    return {drop = function() log[#log + 1] = "drop " .. item.script end, poll = function(_, incumbent)
      looks = looks + 1
      if looks <= late then return nil end
      if item.finalists then return {id = 0, status = "failed"} end
      log[#log + 1] = "measure " .. item.script
      local ms = tonumber(item.script:match "%d+")
      local row = {id = item.id, status = "ok", ms = ms, script = item.script, device_seconds = 1}
      if incumbent then                                 -- on a device that is slower than that of the incumbent's first time
        row.against, row.ratio, row.ms = incumbent.id, ms / tonumber(incumbent.script:match "%d+"), 2 * ms
      end
      return row
    end}
  end
  return server
end

-- A search that has found these plans so far, the best first.
local function search_of(names)
  local list = {}
  for i, name in ipairs(names) do list[i] = {priced = true, trial = name, seconds = i * 1e-3, traits = {}} end
  return {found = function() return list end}
end

local function make(_, trial) return plan_of(trial) end

local put = {}
local function begin(server, o)
  log, put, now = {}, {}, 0
  o.put = function(row) put[#put + 1] = row.script end
  return ahead.of_ranks({}, {server}, make, o)
end
local function step(a, names, is_first)
  now = now + 1
  return a:step(search_of(names), is_first ~= false)
end
local function logged() return table.concat(log, ", ") end

do
  local server <const> = new_server(2, 0)
  local a <close> = begin(server, {trials = 192, known = {}})
  a:step(search_of{"p9"}, true)
  is(logged(), "", "nothing is begun in the first moments, as better plans come soon")
  step(a, {"p9", "p8", "p7"}, false)
  is(logged(), "", "plans of the second search are not measured")
  step(a, {"p9", "p8", "p7"})
  is(logged(), "begin p9, begin p8", "the best plans so far are, as many as the server wants")
  step(a, {"p3", "p9", "p8"})
  is(logged(), "begin p9, begin p8, measure p9, measure p8, begin p3", "  each once, and later what is better then")
  is(table.concat(put, " "), "p9 p8", "rows are put at once")
  is(a.best.script, "p8", "the best of them is known")
  step(a, {"p3"})
  is(a.best.score, 3, "  by its ratio to the first one")
  is(#a:results() .. " " .. a.device_seconds, "3 3", "all rows are there, and the device's time")
  is(server.waits, 0, "it never waits")
end

do
  local a <close> = begin(new_server(9, 0), {trials = 40, known = {p1 = {}}})
  step(a, {"p1", "p2", "p3", "p4"})
  is(logged(), "begin p2, begin p3", "not what is known, and no more than a quarter of the trials beyond 32")
end

do
  local names = {}
  for i = 1, 12 do names[i] = "p" .. i end
  local a <close> = begin(new_server(20, 9), {trials = 192, known = {}})
  step(a, names)
  is(#log .. " " .. log[#log], "8 begin p8", "no more than the best eight")
end

do
  local a <close> = begin(new_server(9, 5), {trials = 192, known = {}})
  step(a, {"p2"})
end
is(logged(), "begin p2, drop p2", "what is under way is dropped if nobody goes on with it")

-- What is under way goes on, and nothing is measured twice.
do
  local server = new_server(2, 1)
  local a <close> = begin(server, {trials = 192, known = {}})
  step(a, {"p5", "p4"})
  step(a, {"p5", "p4"})
  step(a, {"p5", "p4", "p6"})
  local candidates = {}
  for i, name in ipairs{"p3", "p4", "p5", "p6", "p7"} do candidates[i] = {plan = plan_of(name), script = name, predicted = i * 1e-4} end
  local early, under_way = #a.rows, a:hand_over()
  ok(early == 2 and #under_way == 1, "of three plans two are measured", early, #under_way)
  local r = measure(nil, nil, candidates, {server = server, early = a.rows, under_way = under_way, risk = -1, worst = math.huge, final = false})
  local counts = {}
  for _, x in ipairs(log) do counts[x] = (counts[x] or 0) + 1 end
  local once = true
  for _, name in ipairs{"p3", "p4", "p5", "p6", "p7"} do once = once and counts["begin " .. name] == 1 and counts["measure " .. name] == 1 end
  ok(once, "measure goes on with what is under way, and measures each plan once", logged())
  is(r.trials, 5, "  and counts all of them")
  is(r.best.script, "p3", "  the best is the fastest of all")
  local ids, unique = {}, true
  for _, row in ipairs(r.results) do unique, ids[row.id] = unique and not ids[row.id], true end
  ok(unique, "  with numbers of their own")
end

---- the attached device ----------------------------------------------------------------------------

-- What the device does in looks at these plans, until `looks` have passed.
local function on_device(names, looks, o)
  log, now = {}, 0
  local a = ahead.of_device({}, "device", make, o or {})
  for _ = 1, looks do
    now = now + 0.5
    a:step(search_of(names), not (o and o.second))
  end
  return a
end
local function texts(prefix, n)
  local list = {}
  for i = 1, n do list[i] = prefix .. i end
  return list
end

do
  how = {}
  local a <close> = on_device(texts("p", 12), 0)
  a:step(search_of{"p1"}, true)
  is(logged(), "prepare", "what compares outputs is compiled at once, and no plan in the first moments")
  now = 0.5
  a:step(search_of(texts("p", 12)), true)
  a:step(search_of(texts("p", 12)), true)
  is(logged(), "prepare, compile p1, compile p2", "of the best plans two are begun at one look")
  a.due = now
  local unpriced = {found = function() return {{trial = "p8", priced = false}, {trial = "p9", priced = true}} end}
  a:step(unpriced, true)
  is(log[#log], "compile p9", "  of those that have a price")
  is(#a:hand_over(), 0, "nothing is under way on the device itself")
end
is(table.concat(log, ", ", #log), "end", "in the end nothing is compiled any more")
is(#log, 8, "  and what was is dropped", logged())
do
  looks_at_compilers = 0
  local a <close> = on_device(texts("p", 12), 9)
  is(looks_at_compilers, 9, "compilers get their next work at each look")
  is(#log .. " " .. log[#log], "9 compile p8", "no more than the best eight are, each once")
end

-- Of what is compiled plans are measured until one is right, and three at most.
for _, case in ipairs{
  {"the best plan that is compiled is measured", {p2 = "ok", p3 = "ok"}, "p2"},
  {"  one that is wrong, and the next", {p1 = "wrong", p2 = "failed", p3 = "ok", p4 = "ok"}, "p1 p2 p3"},
  {"  no more than three", {p1 = "wrong", p2 = "failed", p3 = "skipped", p4 = "ok"}, "p1 p2 p3"},
  {"  none of those that were measured before", {p1 = "ok", p2 = "ok"}, "p2", {known = {p1 = {}}}},
  {"  no plan of the second search", {p1 = "ok", p2 = "ok"}, "", {second = true}}} do
  how = case[2]
  local o, seen, shown = case[4] or {}, {}, {}
  o.put = function(row) seen[#seen + 1] = row.script end
  o.progress = function(p) shown[#shown + 1] = ("%d %s %g"):format(p.trials, p.best.script, p.device_seconds) end
  local a <close> = on_device(texts("p", 6), 8, o)
  is(table.concat(seen, " "), case[3], case[1])
  local best, n = case[3]:match "%S+$", select(2, case[3]:gsub("p", ""))
  best = how[best] == "ok" and best or nil
  is(a.best and a.best.script, best, "    which is the best, if it is right")
  is(table.concat(shown), best and ("%d %s %g"):format(n, best, case[2].p2 == "failed" and 1 or n / 2) or "", "    and is shown")
  local row = n > 0 and a.rows[n].row
  ok(#a.rows == n and (not row or row.predicted == tonumber(row.script:sub(2)) * 1e-3 and row.plan:script() == row.script),
    "    with its plan, and what the model said")
end

-- A plan that does not compile keeps no other waiting.
do
  how = {bad1 = "ok", p2 = "ok"}
  local a <close> = on_device({"bad1", "p2"}, 4)
  is(logged(), "prepare, compile bad1, compile p2, measure p2", "a plan that does not compile is not tried again")
end

for name, f in pairs(real) do core[name] = f end
tap.done_testing()
