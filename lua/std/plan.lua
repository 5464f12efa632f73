-- plan.lua - the Lua side of plans: their text form, and printing timelines.

local core = require "millrace.core"
local tile = require "millrace.tile"
local literal = require("millrace.draft").literal
local loader = require "millrace.loader"
local options = require "millrace.options"
local script = require "millrace.script"
local sequences = require "millrace.sequence"
local entry, expect = core.entry, core.expect

local function has_literal(t)
  for _, value in pairs(t) do
    local kind = type(value)
    if kind ~= "number" and kind ~= "string" and kind ~= "boolean" and not tile.is_any(value) then return false end
  end
  return true
end

-- How a script gets at the program: a shipped one by name; of any other, the caller passes the program along.
local function program_line(mr, bound)
  local prog, given = tile.origin(bound)
  if prog and rawget(mr.examples, prog.name) == prog and has_literal(given) then
    return ("local bound = ... or mr.examples.%s%s"):format(prog.name, literal(given))
  end
  if not (prog and has_literal(given)) then return ("local bound = mr.bound(..., %q)"):format(bound.name) end
  return ("local bound = mr.bound(..., %q, %s)"):format(bound.name, literal(given))
end

return function(mr, made)
  local plan = {}

  plan.plan = entry(function(graph, device)
    if type(device) == "string" then device = mr.device(device) end
    return core.plan(graph, device or mr.device())
  end)

  core.method("millrace.plan", "script", entry(function(p)
    local statements = core.statements(p)
    return table.concat({
      script.head(mr.version, p),
      'local mr = require "millrace"',
      program_line(mr, p.graph.program),
      ("local plan = mr.plan(bound:graph{tile=%s}, %s)"):format(literal(p.tile), script.device_call(made, p.device)),
      statements .. "return plan\n"}, "\n")
  end))

  core.method("millrace.plan", "save", script.saver(mr))

  for class, kind in pairs{timeline = "timeline", sequence_timeline = "timeline of a sequence"} do
    core.method("millrace." .. class, "print", entry(function(tl, options)
      local o, term = {}, core.terminal()
      expect(core.is(tl, "millrace." .. class), "print", kind, tl)
      expect(options == nil or type(options) == "table", "print", "table of options", options)
      for key, value in pairs(options or {}) do o[key] = value end
      if o.color == nil then o.color = term.color end
      if core.page and io.output() == io.stdout then return core.page(tl:text(o)) end
      io.write(tl:text(o))
    end))
  end

  -- A path, or the name of a plan in examples/.
  plan.bound = entry(loader.bound)

  plan.load_plan = entry(function(path, x, given)
    if type(x) == "table" and given == nil and not tile.is_program(x) and not sequences.is_sequence(x) and getmetatable(x) == nil then x, given = nil, x end
    expect(type(path) == "string", "load_plan", "path", path)
    if type(x) == "string" then
      core.raise(("load_plan: program expected, got %s; dofile gives the program that a file returns"):format(core.show(x)))
    end
    local of_sequence = core.is(x, "millrace.sequence") or sequences.is_sequence(x)
    expect(x == nil or core.is(x, "millrace.program") or tile.is_program(x) or of_sequence, "load_plan", "program", x)
    local device = options.check(given, "load_plan", {"device"}).device
    if type(device) == "string" then device = mr.device(device) end
    expect(device == nil or core.is(device, "millrace.device"), "load_plan", "device", device)
    local p, wanted = loader.of_file(mr, loader.path_of(path), x, device)
    if core.is(p, "millrace.sequence_plan") then return p end
    if device then                                      -- another plan than that of the file, which is not to be overwritten
      core.set_made_for(p, wanted)
      return p
    end
    if not path:find "[/.]" then
      loader.shipped[p] = path
      return p
    end
    script.keep_path(p, path)
    core.set_made_for(p, wanted)
    return p
  end)

  return plan
end
