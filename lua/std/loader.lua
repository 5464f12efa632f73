-- loader.lua - a plan from the text that plan:script() gave, or that somebody wrote.

local core = require "millrace.core"
local confine = require "millrace.confine"
local membrane = require "millrace.membrane"
local tile = require "millrace.tile"
local raise, show, hint, entry = core.raise, core.show, core.hint, core.entry

local loader = {}

local allowed <const> = {"plan", "device", "examples", "bound", "load_plan"}

local function forbidden(name)
  raise(("a plan's file is data and cannot use mr.%s: it has mr.%s, and nothing that runs, measures or writes%s"):format(
    tostring(name), table.concat(allowed, ", mr."), type(name) == "string" and hint(name, allowed) or ""))
end

---- for which sizes -----------------------------------------------------------------------------

-- The program and the sizes that a script names: of a shipped program or of one's own.
local function named(text)
  local name, sizes = text:match "%.%.%. or mr%.examples%.([%w_]+)(%b{})"
  if not name then name, sizes = text:match 'mr%.bound%(%.%.%., "([%w_]+)", (%b{})' end
  local of = {}
  for axis, n in (sizes or ""):gmatch "([%a_][%w_]*)%s*=%s*(%d+)%f[^%w.]" do of[axis] = math.tointeger(tonumber(n)) end
  return name, of
end

local function sizes_text(axes, of)
  local list = {}
  for axis in pairs(of) do
    if axes[axis] then list[#list + 1] = axis end
  end
  table.sort(list)
  for i, axis in ipairs(list) do list[i] = ("%s=%d"):format(axis, of[axis]) end
  return table.concat(list, " ")
end

-- What the script is for and what it was given, if these differ: two texts; else nil.
local function mismatch(text, bound)
  local name, sizes = named(text)
  if not name or not core.is(bound, "millrace.program") then return nil end
  local axes, differs = bound.axes, name ~= bound.name
  for axis, n in pairs(sizes) do differs = differs or axes[axis] ~= nil and axes[axis] ~= n end
  if not differs then return nil end
  local is = {}
  for axis in pairs(sizes) do is[axis] = axes[axis] end
  return ("%s %s"):format(name, sizes_text(axes, sizes)), ("%s %s"):format(bound.name, sizes_text(axes, is))
end

---- what a script sees --------------------------------------------------------------------------

-- given: the program or bound program that the user gave, or nil.
local function environment(mr, given)
  local program = tile.is_program(given) and given or nil
  local examples = membrane.frozen({}, function(name)
    if type(name) ~= "string" then raise "examples are named by texts" end
    return membrane.outward(program or mr.examples[name])
  end)
  local own = membrane.frozen({
    version = mr.version, examples = examples,
    plan = membrane.call(function(graph, device) return mr.plan(graph, device) end),
    bound = membrane.call(function(x, name, sizes) return loader.bound(x or program, name, sizes) end),
    device = membrane.call(function(name, changes)
      if type(name) == "string" and name:find "[/.]" and core.file_kind(name) ~= "file" then
        raise(("device: %s is not a file"):format(show(name)))
      end
      return mr.device(name, changes)
    end),
    load_plan = membrane.call(function(name, bound)
      if type(name) ~= "string" or name:find "[/.]" then
        raise(("a plan's file can only load plans that come with Millrace, by name, not %s"):format(show(name)))
      end
      return mr.load_plan(name, bound)
    end),
  }, forbidden)
  return {
    assert = assert, ipairs = ipairs, pairs = pairs,
    require = entry(function(name)
      if name == "millrace" then return own end
      raise(("a plan may only require \"millrace\", not %s"):format(show(name)))
    end),
  }
end

-- mr.bound: the program with sizes for which a plan is loaded: x, or x with these sizes.
function loader.bound(x, name, sizes)
  if core.is(x, "millrace.program") then return x end
  if tile.is_program(x) and sizes then return x:bind(sizes) end
  if tile.is_program(x) then
    raise(("the sizes of program '%s' are not in this plan: give mr.load_plan the program with sizes"):format(tostring(name)))
  end
  raise(("this plan is for program '%s': mr.load_plan(path, program)"):format(tostring(name)))
end

---- loading -------------------------------------------------------------------------------------

-- text, source: of the chunk, as load takes them. name: what messages call it.
local function run(what, name, mr, text, source, given)
  local chunk, message = load(text, source, "t", environment(mr, given))
  if not chunk then raise(("%s: %s"):format(what, message)) end
  local bound = core.is(given, "millrace.program") and membrane.outward(given) or nil
  local wanted, got = mismatch(text, given)
  local good, result = core.try(membrane.without_strings, source, confine.call, ("%s: %s"):format(what, name), chunk, bound)
  if not good then
    if type(result) ~= "string" then result = ("%s: %s ended with an error that is %s"):format(what, name, show(result)) end
    if wanted then result = ("%s (the plan is for %s, and was loaded for %s)"):format(result, wanted, got) end
    error(result, 0)
  end
  local p = membrane.plan_of(result)
  if not p then raise(("%s: %s returns %s, not a plan"):format(what, name, show(result))) end
  return p, wanted
end

-- given: a program with sizes, instead of the one that the script names; or a program, for which the script has sizes. Returns
-- the plan, and for which program and sizes the script is if these are others.
function loader.of_file(mr, path, given)
  local kind = core.file_kind(path)
  if kind and kind ~= "file" then
    raise(("load_plan: %s is a %s, not a file"):format(path, kind == "folder" and kind or "device or a pipe"))
  end
  local file, why = io.open(path)
  if not file then raise(("load_plan: cannot open %s"):format(why)) end
  local text <const> = file:read "a"
  file:close()
  return run("load_plan", path, mr, (text:gsub("^#[^\n]*", "")), "@" .. path, given)
end

function loader.of_text(mr, text, name, bound) return run("plan", name, mr, text, "=" .. name, bound) end

return loader
