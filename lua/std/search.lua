-- search.lua - mr.search: run a search and make its answer a plan like any other.

local core = require "millrace.core"
local record = require "millrace.record"
local speed = require "millrace.speed"
local raise, show, hint, entry = core.raise, core.show, core.hint, core.entry

local options = {"seconds", "trials", "measure"}

local function check_options(o)
  if o ~= nil and type(o) ~= "table" then raise("search: table of options expected, got " .. show(o)) end
  for key in pairs(o or {}) do
    local known = false
    for _, name in ipairs(options) do known = known or name == key end
    if not known then raise(("search: unknown option %s%s"):format(show(key), hint(key, options))) end
  end
  return o or {}
end

local function number(o, key, default)
  local v = o[key]
  if v == nil then return default end
  if type(v) ~= "number" or v ~= v or v < 0 then
    raise(("search: %s must be a number of at least 0, not %s"):format(key, show(v)))
  end
  return v
end

-- On a terminal, one line that is written over and over.
local function progress_line()
  if not core.terminal().color then return nil end
  return function(trials, shapes, seconds)
    io.stderr:write(("\r%d plans of %d shapes, best %.4g ms "):format(trials, shapes, seconds * 1e3))
  end
end

-- The search's answer goes through the same calls as a plan typed by hand, so that it
-- is checked by the same checker.
local function rebuild(bound, device, statements, tile)
  local plan = core.plan(bound:graph{tile = tile}, device)
  local chunk = assert(load("local plan = ...\n" .. statements, "=[millrace.search]", "t", {}))
  chunk(plan)
  return plan
end

-- Why the interval is not shorter: what the bound of this plan's loop comes from.
local function why(plan, tl)
  local busiest, share
  for name, used in pairs(tl.utilization) do
    if not share or used > share or (used == share and name < busiest) then busiest, share = name, used end
  end
  local lines = {
    ("II %.0f cycles; resources need %.0f (ResMII), dependences %.0f (RecMII)"):format(tl.ii,
      tl.res_mii, tl.rec_mii),
    ("the busiest is %s, at work %.0f%% of the time"):format(busiest, share * 100),
  }
  if tl.ii <= tl.bound * 1.001 then
    lines[#lines + 1] = "in the model, no order of this shape with these lanes and versions is shorter"
  else
    lines[#lines + 1] = ("%.1f%% above the bound: waiting that another order might hide")
      :format((tl.ii / tl.bound - 1) * 100)
  end
  return table.concat(lines, "\n")
end

-- The plan that all else in an answer is about. Whoever reads r.plan gets a copy, to edit.
local plans = setmetatable({}, {__mode = "k"})

local function plan_of(r, key)
  if key == "plan" then return plans[r]:copy() end
end

-- All fields, the plan among them.
local function all_of(r)
  local all = {plan = r.plan}
  for key, value in next, r do all[key] = value end
  return next, all
end

local result = record("search result", "plan timeline seconds ii bound gap bound_seconds proven trials shapes pruned ended why",
  {__name = "millrace.search", __pairs = all_of}, plan_of)

-- The answer as people read it: what it found, how good that is, how it was found, how to go on.
function result.__tostring(r)
  local axes, plan, tl = {}, plans[r], r.timeline
  for axis in pairs(plan.tile) do axes[#axes + 1] = axis end
  table.sort(axes)
  for i, axis in ipairs(axes) do axes[i] = ("%s=%d"):format(axis, plan.tile[axis]) end
  local above = r.gap > 0.001 and (", %.1f %% above its bound %.0f"):format(100 * r.gap, r.bound) or ", at its bound"
  local below = 1 - r.bound_seconds / r.seconds
  return table.concat({
    ("%s on %s: %s, predicted"):format(plan.graph.program.name, plan.device.name, speed(tl)),
    ("tile %s; II %.0f%s"):format(table.concat(axes, " "), r.ii, above),
    ("no tile shape tried can be under %.4g ms in the model%s"):format(r.bound_seconds * 1e3,
      r.proven and ": this is optimal there" or below > 0 and (", %.1f %% less"):format(100 * below) or ""),
    ("%d plans, %d tile shapes, %d of them cut off; ended: %s"):format(r.trials, r.shapes, r.pruned, r.ended),
    "go on with r.plan:show(), r.plan:script(), r.plan:compile(), r.why()",
  }, "\n")
end

return function(mr)
  return {search = entry(function(bound, device, given)
    local o = check_options(given)
    if o.measure then raise("search: measure=true needs an attached device; this one is a model") end
    device = device or mr.device()
    local s = core.search(bound, device)
    local progress = progress_line()
    local trials = math.tointeger(math.min(number(o, "trials", 2000), 2^53) // 1)
    local ended = s:run(trials, number(o, "seconds", 60), progress)
    if progress then io.stderr:write("\r\27[K") end
    local statements, tile, counts = s:found()
    if not statements then
      return nil, ("no legal plan found (%d shapes tried, ended by %s)"):format(counts.shapes, ended)
    end
    local plan = rebuild(bound, device, statements, tile)
    local tl = plan:simulate()
    local r = setmetatable({
      timeline = tl, ii = tl.ii, bound = tl.bound, gap = tl.ii / tl.bound - 1,
      proven = ended == "done" and tl.seconds <= counts.bound_seconds * 1.001,
      bound_seconds = counts.bound_seconds, seconds = tl.seconds,
      trials = counts.trials, shapes = counts.shapes, pruned = counts.pruned, ended = ended,
      why = function() return why(plan, tl) end,
    }, result)
    plans[r] = plan
    return r
  end)}
end
