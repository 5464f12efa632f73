-- sequence_show.lua - timelines of sequences as text; the screen that lists the kernels of one and opens them in the explorer.

local core = require "millrace.core"
local entry, expect = core.entry, core.expect

-- List the kernels until the user leaves; open(kernel, view) shows one, and gives the timeline from then on. False: there is no terminal.
local function list(tl, open)
  local at, view, shown = 1, nil, false
  while true do
    at, view = core.layer_screen(tl, at)
    if at == false then
      if view then io.stderr:write(view, "\n") end
      return shown
    end
    if not at then return true end
    shown = true
    tl = open(tl.kernels[at], view) or tl
  end
end

local function show_timeline(tl)
  expect(core.is(tl, "millrace.sequence_timeline"), "show", "timeline of a sequence", tl)
  local shown = list(tl, function(k, view)
    if view == "plan" and not k.timeline.measured then core.plan_of(k.timeline):copy():show() else k.timeline:show() end
  end)
  if not shown then tl:print() end
end

-- What is edited in a kernel's plan is used by the sequence, if the plan is legal.
local function show_plan(sp)
  expect(core.is(sp, "millrace.sequence_plan"), "show", "plan of a sequence", sp)
  if not sp:check() then
    print(sp)
    print(select(2, sp:check()))
    return
  end
  local shown = list(sp:simulate(), function(k, view)
    local plan = sp:plan_of(k.name)
    local edited
    if view == "plan" then edited = plan:show() else edited = plan:simulate():show() end
    if not edited then return end
    local before = sp:plan_of(k.name)
    sp:use(k.name, edited)
    if sp:check() then return sp:simulate() end
    sp:use(k.name, before)
    io.stderr:write(("the edited plan of '%s' is not legal, the sequence keeps the one before\n"):format(k.name))
  end)
  if not shown then
    print(sp)
    sp:simulate():print()
  end
end

return function()
  core.method("millrace.sequence_timeline", "text", entry(function(tl, options)
    expect(core.is(tl, "millrace.sequence_timeline"), "text", "timeline of a sequence", tl)
    return core.sequence_timeline_text(tl, options)
  end))
  core.shown("millrace.sequence_timeline", function(tl) return (core.sequence_timeline_text(tl):gsub("\n$", "")) end)
  core.field("millrace.sequence_timeline", "utilization", core.sequence_utilization)
  core.field("millrace.sequence_timeline", "device", function(tl) return tl.plan.device end)
  core.method("millrace.sequence_timeline", "show", entry(show_timeline))
  core.method("millrace.sequence_plan", "show", entry(show_plan))
  return {}
end
