-- ahead.lua: what other ranks measure while a search runs in the model, by servers that are tables here, and what measure.lua goes on with.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is = tap.ok, tap.is
local core, measure, ahead = require "millrace.core", require "millrace.measure", require "millrace.ahead"
assert(mr)

local clock, now = core.clock, 0
core.clock = function() return now end

local log = {}
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
      if incumbent then row.against, row.ratio = incumbent.id, ms / tonumber(incumbent.script:match "%d+") end
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
  is(#a:results(), 3, "all rows are there")
  is(server.waits, 0, "it never waits")
end

do
  local a <close> = begin(new_server(9, 0), {trials = 40, known = {p1 = {}}})
  step(a, {"p1", "p2", "p3", "p4"})
  is(logged(), "begin p2, begin p3", "not what is known, and no more than a quarter of the trials beyond 32")
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

core.clock = clock
tap.done_testing()
