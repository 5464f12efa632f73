-- edit.lua - plan:diff and plan:try: what differs between two plans, and what an edit would bring; and plan:split of what is
-- split already.

local core = require "millrace.core"
local draft = require "millrace.draft"
local record = require("millrace.record").of
local script = require "millrace.script"
local times = require "millrace.times"
local raise, show, hint, entry, expect = core.raise, core.show, core.hint, core.entry, core.expect

---- what differs ---------------------------------------------------------------------------

-- A plan as statements, in the order of plan:script; and its tile and device.
local function read(plan)
  return {
    text = core.statements(plan), tile = plan.tile,
    device = plan:script():match "\nlocal plan = mr%.plan%(bound:graph%b{}, ([^\n]*)%)\n",
  }
end

-- Axes of a tile that another one has otherwise.
local function own_axes(tile, other)
  local axes = {}
  for axis, extent in pairs(tile) do
    if other[axis] ~= extent then axes[axis] = extent end
  end
  return axes
end

-- Before the statements, what a script says in making the plan.
local function with_head(one, other)
  local lines = {}
  if one.device ~= other.device then lines[1] = ("mr.plan(graph, %s)"):format(one.device) end
  local axes = own_axes(one.tile, other.tile)
  if next(axes) then lines[#lines + 1] = draft.statement{"propagate", axes} end
  lines[#lines + 1] = one.text
  return table.concat(lines, "\n")
end

local difference = record("difference", "text", {__name = "millrace.diff", __tostring = function(d) return d.text end})

local function diff_of(one, other)
  local rows = core.diff(with_head(one, other), with_head(other, one))
  local d = {text = script.diff_text(rows)}
  for _, row in ipairs(rows) do
    if row[1] ~= " " then d[#d + 1] = row end
  end
  return setmetatable(d, difference)
end

local function check_plan(plan, what)
  expect(core.is(plan, "millrace.plan"), what, "plan", plan)
end

local function diff(plan, other)
  check_plan(plan, "diff")
  check_plan(other, "diff")
  local why = draft.difference(plan, other)
  if why then raise("diff: " .. why) end
  return diff_of(read(plan), read(other))
end

---- trying an edit -----------------------------------------------------------------------------

-- Waits as a list of {task=, on=, distance=, when=}.
local function waits_of(plan)
  local list = {}
  for _, s in draft.each(draft.read(plan), "wait") do
    for _, on in ipairs(s[3]) do
      local w = type(on) == "table" and on or {on}
      list[#list + 1] = {task = s[2], on = w[1], distance = w.distance, when = w.when or "complete"}
    end
  end
  return list
end

local function wait_text(w)
  local how = {}
  if w.distance then how[1] = ("distance %d"):format(w.distance) end
  if w.when == "issued" then how[#how + 1] = "issued" end
  return ("%s for %s%s"):format(w.task, w.on, #how > 0 and (" (%s)"):format(table.concat(how, ", ")) or "")
end

-- Those of one list that the other one lacks.
local function lacking(list, other)
  local has, out = {}, {}
  for _, w in ipairs(other) do has[wait_text(w)] = true end
  for _, w in ipairs(list) do
    if not has[wait_text(w)] then out[#out + 1] = w end
  end
  return out
end

local function add_waits(lines, title, list)
  local texts = {}
  for i, w in ipairs(list) do texts[i] = wait_text(w) end
  if #texts > 0 then lines[#lines + 1] = ("waits that %s: %s"):format(title, table.concat(texts, ", ")) end
end

local function change_text(name, from, to, form, unit)
  return ("%s " .. form .. " -> " .. form .. " %s (%s)"):format(name, from, to, unit, times.change(to / from - 1))
end

local function times_text(r)
  local a, b = r.before, r.after
  if not b then return nil end
  if not a then
    return ("II %.0f cycles, time %.4g ms; before, the plan was not legal"):format(b.ii, b.seconds * 1e3)
  end
  local interval = core.iterates_alike(a, b) and change_text("II", a.ii, b.ii, "%.0f", "cycles") .. ", " or ""
  return ("%s%s%s"):format(interval, change_text("time", a.seconds * 1e3, b.seconds * 1e3, "%.4g", "ms"),
    r.within_noise and ": too near to call" or "")
end

local result = record("tried edit", "diff before after ok problems came went gain within_noise kept keep", {
  aliases = {tie = "within_noise"},                     -- deprecated
  __name = "millrace.try", __tostring = function(r)
  local lines = {tostring(r.diff)}
  add_waits(lines, "came", r.came)
  add_waits(lines, "went", r.went)
  lines[#lines + 1] = times_text(r)
  lines[#lines + 1] = r.ok and "the checker accepts it" or tostring(r.problems)
  lines[#lines + 1] = r.kept and "kept" or "undone; keep() makes it again"
  return table.concat(lines, "\n")
end})

local function options_of(options)
  expect(options == nil or type(options) == "table", "try", "table of options", options)
  for key, value in pairs(options or {}) do
    if key ~= "keep" then raise(("try: unknown option %s%s"):format(show(key), hint(key, {"keep"}))) end
    if type(value) ~= "boolean" then raise("try: keep must be true or false, got " .. show(value)) end
  end
  return options or {}
end

-- Of a legal plan.
local function timeline_of(plan)
  local ok, problems = plan:check()
  return ok and plan:simulate() or nil, ok, problems
end

local function keep(r, plan, from, to)
  if r.kept then raise "keep: it is kept" end
  if not core.is_at(plan, from) then raise "keep: the plan has changed since it was tried" end
  core.back(plan, to)
  r.kept = true
end

-- What the edits since `from` have made of the plan.
local function result_of(plan, before, statements, waits)
  local after, ok, problems = timeline_of(plan)
  local now = waits_of(plan)
  return {
    diff = diff_of(statements, read(plan)), before = before, after = after, ok = ok, problems = problems,
    came = lacking(now, waits), went = lacking(waits, now),
    gain = before and after and 1 - after.seconds / before.seconds,
    within_noise = before and after and times.near(before, after),
  }
end

local function try(plan, f, options)
  check_plan(plan, "try")
  expect(type(f) == "function", "try", "function", f)
  local o = options_of(options)
  local before, statements, waits = timeline_of(plan), read(plan), waits_of(plan)
  local from, to, r = core.mark(plan), nil, nil
  local good, message = pcall(function()
    f(plan)
    r = result_of(plan, before, statements, waits)
    to = core.mark(plan)
  end)
  if not good or not o.keep then core.back(plan, from) end
  if not good then error(message, 0) end
  r.kept = o.keep or false
  r.keep = entry(function() keep(r, plan, from, to) end)
  return setmetatable(r, result)
end

---- another split ------------------------------------------------------------------------------

-- If lanes share the tile along this axis already, so many lanes share it instead; otherwise a split like any other. A plan
-- cannot forget a split, so it becomes another one that has been made without it, by one edit.
local function split(plan, ...)
  core.at_most(4, plan, ...)
  local axis, ways, tasks = ...
  local d, lanes, now = core.is(plan, "millrace.plan") and draft.read(plan), nil, nil
  if d then lanes, now = draft.shared(d) end
  if not lanes or now[2] ~= axis or now[4] or tasks ~= nil or math.type(ways) ~= "integer" or ways < 1 then
    return core.split(plan, ...)
  end
  draft.join(d)
  if ways > 1 then draft.split(d, plan.graph.program, plan.device, lanes[1], axis, ways) end
  core.become(plan, draft.make(d, plan.graph.program, plan.device))
end

return function()
  core.method("millrace.plan", "split", entry(split))
  core.method("millrace.plan", "diff", entry(diff))
  core.method("millrace.plan", "try", entry(try))
  return {}
end
