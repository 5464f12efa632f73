-- improve.lua - plan:improve: a search of the plans around one, of which some things are to stay.
--
-- Best-first search: of the plans found, the fastest one whose changes were not tried yet is expanded next. A plan that is
-- somewhat slower than the best is expanded, too, as many a change pays only together with another one. The search ends
-- when several plans in a row brought nothing better.

local core = require "millrace.core"
local become = require "millrace.become"
local changes = require "millrace.changes"
local draft = require "millrace.draft"
local options = require "millrace.options"
local pins = require "millrace.pins"
local planned = require("millrace.record").of_plan
local repair = require "millrace.repair"
local times = require "millrace.times"
local raise, show, entry, late, expect = core.raise, core.show, core.entry, core.late, core.expect

local GAIN <const> = 0.002                              -- relative: less is no better plan
local SLACK <const> = 0.03                              -- relative to the best: slower plans are not expanded
local SAME <const> = 1e-5                               -- relative: a change with less effect has none
local IDLE <const> = 1e-3                               -- relative: a step with less effect is left out if nothing else needs it
local PATIENCE <const> = 4                              -- plans expanded without a better one; so many are at least
local REPAIRS <const> = 12                              -- the most further statements of what a search finds
local LONGER <const> = 4                                -- times as many plans as plan:suggest() lets a search try
local known <const> = {"pin", "trials", "seconds", "progress", "measure"}
local SECONDS_SHOWN <const> = 0.2                       -- between two lines of progress

---- the search -------------------------------------------------------------------------------------

-- A plan that was found, as text: there may be many. tl: its timeline; parent: the node that it is a change of.
local function node_of(plan, tl, parent, change)
  return {text = core.statements(plan), tile = plan.tile, seconds = tl and tl.seconds, state = changes.state(tl), parent = parent,
    change = change, depth = parent and parent.depth + 1 or 0}
end

local function key_of(node) return draft.literal(node.tile) .. "\n" .. node.text end

-- Take the node to expand next: the fastest; of equal ones that with fewer changes, then the one found first.
local function take_next(open)
  local best
  for i, node in ipairs(open) do
    local other = open[best]
    if not other or node.seconds < other.seconds or node.seconds == other.seconds and node.depth < other.depth then
      best = i
    end
  end
  return best and table.remove(open, best)
end

-- Is a budget used up? run.ended says which one.
local function is_over(run)
  if run.trials >= run.o.trials then run.ended = "trials" end
  if core.clock() >= run.deadline then run.ended = "seconds" end
  return run.ended
end

-- Try one change, x: of the node, as repair.make takes it.
local function try(run, x, node, change, most)
  local good, plan, list = core.try(repair.make, x, change, most)
  if not good or not plan or not pins.hold(run.pins, plan) then return end
  local found = node_of(plan, nil, node, draft.text(list))
  local key = key_of(found)
  if run.seen[key] then return end
  run.seen[key], run.trials = true, run.trials + 1
  local tl = plan:simulate{events = 0}
  found.seconds, found.state = tl.seconds, changes.state(tl)
  if math.abs(found.seconds / node.seconds - 1) > SAME then table.insert(run.open, found) end
  if found.seconds < run.best.seconds * (1 - GAIN) then run.best = found end
  if run.o.progress then run.o.progress(run.trials, run.best.seconds) end
end

local function plan_of(run, node) return draft.make(draft.parse(node.text, node.tile), run.bound, run.device) end

local function climb(run)
  local in_vain, expanded = 0, 0
  while not is_over(run) do
    local node, best = take_next(run.open), run.best
    if not node or in_vain >= PATIENCE or node.seconds > best.seconds * (1 + SLACK) and expanded >= PATIENCE then return end
    expanded = expanded + 1
    local plan = plan_of(run, node)
    local x = {plan = plan, pinned = {rings = run.pins.rings or {}}}
    for _, change in ipairs(changes.of(plan, node.state)) do
      try(run, x, node, change)
      if is_over(run) then return end
    end
    in_vain = run.best ~= best and 0 or in_vain + 1
  end
end

-- Climb; then go to what a search finds, as plan:suggest() does, if that is better, and climb from there. A search knows nothing of
-- pinned things.
local function climb_and_search(run)
  climb(run)
  local best = run.best
  local plan = plan_of(run, best)
  if run.ended or pins.text(run.pins) ~= "nothing" or run.o.trials - run.trials < become.trials(plan) then return end
  local change, searched = become.found(plan, best.seconds * (1 - GAIN), run.deadline - core.clock(),
    math.min(LONGER * become.trials(plan), run.o.trials - run.trials))
  run.trials, run.searched = run.trials + searched.trials, searched
  if not change then return end
  try(run, {plan = plan}, best, change, REPAIRS)
  if run.best ~= best then climb(run) end
end

-- The plan that changes make of the first one, one after the other, and each with its time; nil if one cannot be made, or if the plan
-- is not legal or slower than `seconds`.
local function replayed(run, start, texts, seconds)
  local plan, path, before = plan_of(run, start), {}, start.seconds
  for i, text in ipairs(texts) do
    local good = core.try(function()
      for _, s in ipairs(draft.parse(text).list) do draft.apply(plan, s) end
    end)
    if not good or not plan:check() then return nil end
    local now = plan:simulate{events = 0}.seconds
    path[i] = {change = text, seconds = now, gain = 1 - now / before}
    before = now
  end
  return before <= seconds * (1 + IDLE) and pins.hold(run.pins, plan) and plan or nil, path
end

-- The best plan, and the changes that made it in order, without those that it is about as fast without.
local function result_of(run)
  local path, node = {}, run.best
  while node.parent do
    table.insert(path, 1, {change = node.change, seconds = node.seconds, gain = 1 - node.seconds / node.parent.seconds})
    node = node.parent
  end
  local plan = plan_of(run, run.best)
  for i = #path, 1, -1 do
    if math.abs(path[i].gain) < IDLE then
      local texts = {}
      for k, step in ipairs(path) do texts[#texts + 1] = k ~= i and step.change or nil end
      local other, others = replayed(run, node, texts, run.best.seconds)
      if other then plan, path = other, others end
    end
  end
  return plan, path
end

---- options --------------------------------------------------------------------------------------

local function options_of(given)
  local o = options.check(given, "improve", known)
  if o.progress ~= nil and type(o.progress) ~= "function" then
    raise("improve: progress must be a function, not " .. show(o.progress))
  end
  if o.measure then raise "improve: it predicts and measures nothing; leave measure= out, or measure with mr.search" end
  return {trials = math.min(options.number(o, "improve", "trials", 1000), 2^53) // 1, seconds = options.number(o, "improve", "seconds", 60),
    pin = o.pin, progress = o.progress}
end

-- On a terminal: one line of progress, overwritten again and again.
local function progress_line()
  if not core.terminal().color then return nil end
  local shown = core.clock()
  return function(trials, seconds)
    if core.clock() - shown < SECONDS_SHOWN then return end
    shown = core.clock()
    io.stderr:write(("\r%d plans, best %.4g ms "):format(trials, seconds * 1e3))
  end
end

---- the result -------------------------------------------------------------------------------------

local result, plans = planned("improved plan", "plan before timeline seconds gain within_noise trials ended changes diff pinned keep",
  {__name = "millrace.improved", aliases = {tie = "within_noise"},   -- deprecated
  methods = {json = late("report", "improved")}})

-- By r.ended.
local endings <const> = {
  done = "no change of the fastest plans is an improvement", trials = "no more were allowed",
  seconds = "the time is used; seconds= gives it more", interrupted = "interrupted",
}

-- By result: that a search found a better plan, to which no statements lead.
local unreached = setmetatable({}, {__mode = "k"})

-- Both times, the changes and what differs, how the search ended, what to do next.
function result.__tostring(r)
  local a, b, plan = r.before, r.timeline, plans[r]
  local lines = {("%s on %s: %.4g ms, then %s, predicted"):format(plan.graph.program.name, plan.device.name, a.seconds * 1e3, times.text(b))}
  if #r.changes == 0 then
    lines[2] = "nothing better was found"
  else
    lines[2] = ("%.1f %% less time%s%s"):format(100 * r.gain,
      core.iterates_alike(a, b) and ("; II %.0f -> %.0f cycles"):format(a.ii, b.ii) or "", r.within_noise and ": too near to call" or "")
    for i, c in ipairs(r.changes) do
      lines[#lines + 1] = ("%d. %s: %.4g ms (%s)"):format(i, c.change, c.seconds * 1e3, times.change(-c.gain))
    end
    lines[#lines + 1] = tostring(r.diff)
  end
  lines[#lines + 1] = ("%d plan%s tried; ended: %s; pinned: %s"):format(r.trials, r.trials == 1 and "" or "s",
    endings[r.ended], r.pinned)
  lines[#lines + 1] = unreached[r]
  if #r.changes > 0 then
    lines[#lines + 1] = "go on with r.keep(), which makes the plan so, r.plan:show(), r.plan:script(), r.plan:compile()"
  end
  return table.concat(lines, "\n")
end

-- Make the original plan what was found, as one edit.
local function keep(plan, from, found)
  if not core.is_at(plan, from) then raise "keep: the plan has changed since it was searched from" end
  core.become(plan, found)
end

local function improve(plan, options)
  expect(core.is(plan, "millrace.plan"), "improve", "plan", plan)
  local o = options_of(options)
  local good, problems = plan:check()
  if not good then raise("improve: the plan is not legal: " .. problems[1].message) end
  local line = not o.progress and progress_line()
  o.progress = o.progress or line
  local start = node_of(plan, plan:simulate{events = 0})
  local run = {o = o, pins = pins.of(plan, o.pin), deadline = core.clock() + o.seconds, bound = plan.graph.program,
    device = plan.device, trials = 0, open = {start}, best = start, seen = {[key_of(start)] = true}}
  local finished = core.heed(climb_and_search, run)
  if line then io.stderr:write "\r\27[K" end
  local found, path = result_of(run)
  local before, after = plan:simulate(), found:simulate()
  local r = setmetatable({
    before = before, timeline = after, seconds = after.seconds, gain = 1 - after.seconds / before.seconds,
    within_noise = times.near(before, after), trials = run.trials, ended = finished and (run.ended or "done") or "interrupted", changes = path,
    diff = plan:diff(found), pinned = pins.text(run.pins)}, result)
  local from = core.mark(plan)
  r.keep = entry(function() keep(plan, from, found) end)
  plans[r] = found
  local searched = run.searched and run.searched.seconds
  if searched and searched < after.seconds * (1 - GAIN) then
    unreached[r] = ("a search found a plan that takes %.1f %% less, to which no statements lead; mr.search(plan.graph.program, plan.device) "
      .. "gives that plan"):format(100 * (1 - searched / after.seconds))
  end
  return r
end

return {improve = improve}
