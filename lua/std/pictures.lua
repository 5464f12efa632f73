-- pictures.lua - png, svg, pdf and trace of timelines, plans, graphs, comparisons and rooflines.

local core = require "millrace.core"
local picture = require "millrace.picture"
local raise, show, entry = core.raise, core.show, core.entry
local formats, call_of, check_path, where, say = picture.formats, picture.call_of, picture.check_path, picture.where, picture.say

---- the script that draws a picture again, stored in the file -------------------------

local function plan_script(plan, ending) return (plan:script():gsub("return plan\n$", "")) .. ending .. "\n" end

local function timeline_script(tl, call)
  if tl.measured then
    local target = tl.kernel.target
    return plan_script(tl.kernel.plan, ("local tl = plan:compile{target=%q}:trace()\ntl:%s"):format(target, call))
  end
  return plan_script(core.plan_of(tl), "local tl = plan:simulate()\ntl:" .. call)
end

-- The script of a graph is that of an empty plan.
local function graph_script(graph, call)
  return plan_script(core.plan(graph, require "millrace".device "h200"), "plan.graph:" .. call)
end

local function sequence_script(sp, ending) return (sp:script():gsub("return sp\n$", "")) .. ending .. "\n" end

local classes = {
  sequence_plan = function(sp, call) return sequence_script(sp, "sp:" .. call) end,
  sequence_timeline = function(tl, call) return sequence_script(tl.plan, "local tl = sp:simulate()\ntl:" .. call) end,
  timeline = timeline_script,
  plan = function(plan, call) return plan_script(plan, "plan:" .. call) end,
  graph = graph_script,
}

-- The script of a comparison: that of both timelines.
local function pair_script(one, other, names, call)
  return ("-- %s: the first\n%s-- %s: the second\n%s-- mr.compare(first, second, {names={%q, %q}}):%s\n"):format(
    names[1], timeline_script(one, "summary()"), names[2], timeline_script(other, "summary()"), names[1], names[2], call)
end

---- arguments ----------------------------------------------------------------------------

local function check_class(what, class, x)
  if not core.is(x, "millrace." .. class) then raise(("%s: %s expected, got %s"):format(what, class, show(x))) end
end

local function kind(tl) return tl.measured and "measured" or "predicted" end

local function process_name(tl, name)
  local phase = tl.phases[1]
  return ("%s: %s on %s, EU %d"):format(name, tl.program:match "^[^{]*",
    (tl.measured and tl.kernel.plan or core.plan_of(tl)).device.name, phase and phase.eu - 1 or 0)
end

---- timelines, plans, graphs ------------------------------------------------------------------

-- The simulation of a plan, whose time is in the head of its picture; nil if it is not legal.
local function predicted(plan) return plan:check() and plan:simulate{events = 0} or nil end

local function add_methods(class, script)
  for _, format in ipairs(formats) do
    core.method("millrace." .. class, format, entry(function(x, path, options)
      check_class(format, class, x)
      local file, o, show_it = where(format, path, options)
      local text = script(x, call_of(format, file or "FILE"))
      say(format, file, core.picture(x, format, file, o, text, class == "plan" and predicted(x) or nil, show_it))
    end))
  end
end

local function frames(tl, dir, options)
  check_class("frames", "timeline", tl)
  check_path("frames", dir)
  local paths = core.frames(tl, dir, options, timeline_script(tl, call_of("frames", dir)))
  picture.note_font(options and options.format)
  return paths
end

local function trace(tl, path)
  check_class("trace", "timeline", tl)
  check_path("trace", path)
  return core.trace_json(path, timeline_script(tl, call_of("trace", path)), tl, process_name(tl, kind(tl)))
end

---- comparisons ---------------------------------------------------------------------------

-- Methods of a comparison; `pairs_of` has its timelines.
local function comparison_methods(pairs_of)
  local methods = {}
  local function pair(what, c)
    local p = pairs_of[c]
    if not p then raise(("%s: comparison expected, got %s"):format(what, show(c))) end
    return p[1], p[2]
  end
  for _, format in ipairs(formats) do
    methods[format] = entry(function(c, path, options)
      local one, other = pair(format, c)
      local file, o, show_it = where(format, path, options)
      say(format, file, core.picture(one, format, file, o, pair_script(one, other, c.names, call_of(format, file or "FILE")), other, show_it,
        c.names[1], c.names[2]))
    end)
  end
  methods.trace = entry(function(c, path)
    local one, other = pair("trace", c)
    check_path("trace", path)
    local a, b = c.names[1], c.names[2]
    return core.trace_json(path, pair_script(one, other, c.names, call_of("trace", path)), one, process_name(one, a), other,
      process_name(other, b))
  end)
  return methods
end

---- rooflines -----------------------------------------------------------------------------

-- Points of an entry of mr.roofline: a kernel, plan or timeline, or {one of them, name=, ms=}.
local function points_of(x, i)
  local given, name = x, nil
  if type(x) == "table" then given, name = x[1], x.name end
  local plan, times
  if core.is(given, "millrace.timeline") then
    plan, times = given.measured and given.kernel.plan or core.plan_of(given), {{given.seconds, given.measured}}
  elseif core.is(given, "millrace.plan") then
    plan, times = given, {{given:simulate().seconds, false}}
  elseif core.target(given) then
    plan, times = given.plan, {}
    if given.target ~= "host" and given.registers > 0 and core.attached(given.target) then
      times[1] = {given:bench().ms / 1000, true}
    end
    times[#times + 1] = {plan:simulate().seconds, false}
  else
    raise(("roofline: kernel, plan or timeline expected as entry %d, got %s"):format(i, show(given)))
  end
  if type(x) == "table" and x.ms ~= nil then
    if type(x.ms) ~= "number" or x.ms <= 0 then raise("roofline: ms must be a number above 0, got " .. show(x.ms)) end
    times = {{x.ms / 1000, true}}
  end
  if name ~= nil and type(name) ~= "string" then raise("roofline: name must be a string, got " .. show(name)) end
  local points = {}
  for _, t in ipairs(times) do
    if not t[1] then raise "roofline: a timeline without a clock has no time and cannot be drawn" end
    points[#points + 1] = {name = name or plan.graph.program.name, flops = plan.graph.flops, bytes = plan.graph.bytes,
      seconds = t[1], measured = t[2]}
  end
  return points, plan
end

local roofline = {__name = "millrace.roofline"}
roofline.__index = {}

function roofline.__tostring(r)
  local lines = {("%s, %s"):format(r.device.name, r.dtype)}
  for _, p in ipairs(r.points) do
    lines[#lines + 1] = ("  %s: %.0f flop/byte, %.1f TFLOP/s %s"):format(p.name, p.flops / p.bytes,
      p.flops / p.seconds / 1e12, p.measured and "measured" or "predicted")
  end
  return table.concat(lines, "\n")
end

for _, format in ipairs(formats) do
  roofline.__index[format] = entry(function(r, path, options)
    if getmetatable(r) ~= roofline then raise(("%s: roofline expected, got %s"):format(format, show(r))) end
    local file, o, show_it = where(format, path, options)
    local script = ("%s-- mr.roofline{...}:%s\n"):format(r.script, call_of(format, file or "FILE"))
    say(format, file, core.roofline(r.device, format, file, o, script, r.dtype, r.points, show_it))
  end)
end

-- Programs of one name are distinguished by the sizes that differ, else by the tiles: "gemm m=8192", "gemm tile m=128".
local function distinguish(entries)
  local by_name = {}
  for _, e in ipairs(entries) do
    if not e.named then
      local name = e.plan.graph.program.name
      by_name[name] = by_name[name] or {}
      table.insert(by_name[name], e)
    end
  end
  local function differing(same, numbers_of)
    local values, names = {}, {}
    for _, e in ipairs(same) do
      for axis, n in pairs(numbers_of(e.plan.graph)) do
        values[axis] = values[axis] or {}
        values[axis][n] = (values[axis][n] or 0) + 1
      end
    end
    for axis, count in pairs(values) do
      local _, first = next(count)
      if first < #same then names[#names + 1] = axis end
    end
    table.sort(names)
    for _, axis in ipairs(names) do             -- one will do, if it has a number of its own for each
      local most = 0
      for _, n in pairs(values[axis]) do most = math.max(most, n) end
      if most == 1 then return {axis} end
    end
    return names
  end
  for _, same in pairs(by_name) do
    local before, numbers_of = " ", function(graph) return graph.program.axes end
    local axes = differing(same, numbers_of)
    if #axes == 0 then
      before, numbers_of = " tile ", function(graph) return graph.tile end
      axes = differing(same, numbers_of)
    end
    for _, e in ipairs(#axes > 0 and same or {}) do
      local text, numbers = {}, numbers_of(e.plan.graph)
      for _, axis in ipairs(axes) do text[#text + 1] = numbers[axis] and ("%s=%s"):format(axis, numbers[axis]) end
      for _, p in ipairs(e.points) do p.name = p.name .. before .. table.concat(text, " ") end
    end
  end
end

local function make_roofline(list)
  if type(list) ~= "table" or rawlen(list) == 0 then raise("roofline: list of kernels expected, got " .. show(list)) end
  local r, scripts, entries = {points = {}}, {}, {}
  for i, x in ipairs(list) do
    local points, plan = points_of(x, i)
    entries[i] = {points = points, plan = plan, named = type(x) == "table" and x.name ~= nil}
    if r.device and r.device.name ~= plan.device.name then
      raise(("roofline: all must be for one device, not %s and %s"):format(r.device.name, plan.device.name))
    end
    r.device, r.dtype = r.device or plan.device, r.dtype or core.products_type(plan.graph)
    for _, p in ipairs(points) do r.points[#r.points + 1] = p end
    scripts[i] = ("-- %d\ndo\n%send\n"):format(i, plan_script(plan, ""))
  end
  distinguish(entries)
  r.script = table.concat(scripts)
  return setmetatable(r, roofline)
end

return function(mr)
  for class, script in pairs(classes) do add_methods(class, script) end
  core.method("millrace.timeline", "frames", entry(frames))
  core.method("millrace.timeline", "trace", entry(trace))
  core.method("millrace.sequence_timeline", "trace", entry(function(tl, path)
    check_class("trace", "sequence_timeline", tl)
    check_path("trace", path)
    return core.trace_json(path, classes.sequence_timeline(tl, call_of("trace", path)), tl)
  end))
  local compare, pairs_of = mr.compare, setmetatable({}, {__mode = "k"})
  local methods = comparison_methods(pairs_of)
  -- mr.compare, with methods for pictures
  local function with_pictures(one, other, o)
    local c = compare(one, other, o)
    pairs_of[c] = {one, other}
    for name, f in pairs(methods) do getmetatable(c).methods[name] = f end
    return c
  end
  return {roofline = entry(make_roofline), compare = entry(with_pictures)}
end
