-- improve.lua - plan:improve: a search from a plan that is there, of which some things are to stay.

local core = require "millrace.core"
local late = require "millrace.late"
local near = require "millrace.near"
local options = require "millrace.options"
local planned = require "millrace.planned"
local speed = require "millrace.speed"
local raise, show, entry = core.raise, core.show, core.entry

local known <const> = {"pin", "trials", "seconds", "progress"}
local SECONDS_SHOWN <const> = 0.2                       -- between two lines of progress

---- options --------------------------------------------------------------------------------------

local function options_of(given)
  local o = options.check(given, "improve", known)
  if o.progress ~= nil and type(o.progress) ~= "function" then
    raise("improve: progress must be a function, not " .. show(o.progress))
  end
  return {trials = math.min(options.number(o, "improve", "trials", 1000), 2^53) // 1, seconds = options.number(o, "improve", "seconds", 60),
    pin = o.pin, progress = o.progress}
end

-- On a terminal, one line that is written over and over.
local function progress_line()
  if not core.terminal().color then return nil end
  local shown = core.clock()
  return function(trials, seconds)
    if core.clock() - shown < SECONDS_SHOWN then return end
    shown = core.clock()
    io.stderr:write(("\r%d plans, best %.4g ms "):format(trials, seconds * 1e3))
  end
end

---- the answer -------------------------------------------------------------------------------------

local result, plans = planned("improved plan", "plan before timeline seconds gain within_noise trials ended changes diff pinned keep",
  {__name = "millrace.improved", aliases = {tie = "within_noise"}, methods = {json = late("report", "improved")}})

-- Both times, what was done, what differs, how it was found, how to go on.
function result.__tostring(r)
  local a, b, plan = r.before, r.timeline, plans[r]
  local lines = {("%s on %s: %.4g ms, then %s, predicted"):format(plan.graph.program.name, plan.device.name,
    a.seconds * 1e3, speed(b))}
  if #r.changes == 0 then
    lines[2] = "nothing better was found"
  else
    lines[2] = ("%.1f %% less time; II %.0f -> %.0f cycles%s"):format(100 * r.gain, a.ii, b.ii,
      r.within_noise and ": too near to call" or "")
    for i, c in ipairs(r.changes) do
      lines[#lines + 1] = ("%d. %s: %.4g ms (%+.1f %%)"):format(i, c.change, c.seconds * 1e3, -100 * c.gain)
    end
    lines[#lines + 1] = tostring(r.diff)
  end
  lines[#lines + 1] = ("%d plans; ended: %s; pinned: %s"):format(r.trials, r.ended, r.pinned)
  if #r.changes > 0 then
    lines[#lines + 1] = "go on with r.keep(), which makes the plan so, r.plan:show(), r.plan:script(), r.plan:compile()"
  end
  return table.concat(lines, "\n")
end

-- The plan that was searched from is what was found, as one edit.
local function keep(plan, from, found)
  if not core.is_at(plan, from) then raise "keep: the plan has changed since it was searched from" end
  core.become(plan, found)
end

local function improve(plan, options)
  if not core.is(plan, "millrace.plan") then raise("improve: plan expected, got " .. show(plan)) end
  local o = options_of(options)
  local good, problems = plan:check()
  if not good then raise("improve: the plan is not legal: " .. problems[1].message) end
  local pins = require "millrace.pins"
  local p = pins.of(plan, o.pin)
  local line = not o.progress and progress_line()
  local found = require "millrace.climb"(plan, {pins = p, trials = o.trials, clock = core.clock,
    late = core.clock() + o.seconds, progress = o.progress or line})
  if line then io.stderr:write "\r\27[K" end
  local before, after = plan:simulate(), found.plan:simulate()
  local r = setmetatable({
    before = before, timeline = after, seconds = after.seconds, gain = 1 - after.seconds / before.seconds,
    within_noise = near(before, after), trials = found.trials, ended = found.ended, changes = found.changes,
    diff = plan:diff(found.plan), pinned = pins.text(p)}, result)
  local from = core.mark(plan)
  r.keep = entry(function() keep(plan, from, found.plan) end)
  plans[r] = found.plan
  return r
end

return {improve = improve}
