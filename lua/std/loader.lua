-- loader.lua - a plan from the text that plan:script() gave, or that somebody wrote.

local core = require "millrace.core"
local confine = require "millrace.confine"
local membrane = require "millrace.membrane"
local sequences = require "millrace.sequence"
local tile = require "millrace.tile"
local raise, show, hint, entry = core.raise, core.show, core.hint, core.entry

local loader = {}

local allowed <const> = {"plan", "device", "examples", "bound", "load_plan", "any", "sequence_plan"}

-- What is asked of mr. that a plan's file does not have.
local function forbidden(mr, name)
  return membrane.refuse(("a plan's file is data and cannot use mr.%s: it has mr.%s, and nothing that runs, measures or writes%s"):format(
    tostring(name), table.concat(allowed, ", mr."), type(name) == "string" and hint(name, allowed) or ""), mr[name] == nil)
end

---- for which sizes -----------------------------------------------------------------------------

-- The program and the sizes that a script names: of a shipped program or of one's own.
local function named(text)
  local name, sizes = text:match "%.%.%. or mr%.examples%.([%w_]+)(%b{})"
  if not name then name, sizes = text:match 'mr%.bound%(%.%.%., "([%w_]+)", (%b{})' end
  local of, options = {}, {}
  for key, value in (sizes or ""):gmatch '([%a_][%w_]*)%s*=%s*("?[^%s,{}"]+"?)' do
    local n = tonumber(value)
    of[key] = n and math.tointeger(n)
    if value == "true" or value == "false" then options[key] = value == "true"
    else options[key] = n or value:match '^"([^"]*)"$' end
  end
  return name, of, options
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
  local name, sizes, options = named(text)
  if not name or not core.is(bound, "millrace.program") then return nil end
  local axes, differs = bound.axes, name ~= bound.name
  for axis, n in pairs(sizes) do differs = differs or axes[axis] ~= nil and axes[axis] ~= n end
  for axis in pairs(axes) do options[axis] = nil end
  differs = differs or tile.other_options(bound, options)
  if not differs then return nil end
  local is, others = {}, {}
  for axis in pairs(sizes) do is[axis] = axes[axis] end
  for key, value in pairs(options) do others[key] = value or nil end
  local function text_of(program, of, given)
    return ("%s %s%s"):format(program, sizes_text(axes, of), given ~= "" and " " .. given or "")
  end
  return text_of(name, sizes, tile.options_text(others)), text_of(bound.name, is, (select(4, core.identity(bound))))
end

---- what a script sees --------------------------------------------------------------------------

-- What a script has as mr. given: the program, with sizes or not, that the user gave, or nil. made: a list for the plans made.
-- device: instead of any that the script names; or nil.
local function own_mr(mr, given, made, device)
  local program = (tile.is_program(given) or sequences.is_sequence(given)) and given or nil
  local function keep(plan)
    made[#made + 1] = plan
    return plan
  end
  return {
    version = mr.version,
    any = membrane.call(function(sizes) return tile.any(sizes) end),
    examples = membrane.frozen({}, function(name)
      if type(name) ~= "string" then raise "examples are named by texts" end
      return membrane.outward(program or mr.examples[name])
    end),
    plan = membrane.call(function(graph, device) return keep(mr.plan(graph, device)) end),
    sequence_plan = membrane.call(function(seq, device) return mr.sequence_plan(seq, device) end),
    bound = membrane.call(function(x, name, sizes) return loader.bound(x or program, name, sizes) end),
    device = membrane.call(function(name, changes)
      if type(name) == "string" and name:find "[/.]" and core.file_kind(name) ~= "file" then
        raise(("device: %s is not a file"):format(show(name)))
      end
      if device then return device end
      if name == nil and changes == nil then return mr.device() end
      return mr.device(name, changes)
    end),
    load_plan = membrane.call(function(name, bound)
      if type(name) ~= "string" or name:find "[/.]" then
        raise(("a plan's file can only load plans that come with Millrace, by name, not %s"):format(show(name)))
      end
      return keep(mr.load_plan(name, bound, device and {device = device}))
    end),
  }
end

local function requires(own)
  return entry(function(name)
    if name == "millrace" then return own end
    raise(("a plan may only require \"millrace\", not %s"):format(show(name)))
  end)
end

local function environment(mr, given, device)
  return {assert = assert, ipairs = ipairs, pairs = pairs, require = requires(membrane.frozen(own_mr(mr, given, {}, device), function(name) return forbidden(mr, name) end))}
end

-- Names of Lua by which a script acts on files, processes or Lua itself.
local acting <const> = {os = true, io = true, dofile = true, loadfile = true, load = true, package = true, debug = true}

-- A sequence under construction, as a script sees it: programs with sizes are stand-ins there.
local function builder(s)
  return setmetatable({}, {__metatable = false, __index = function(_, key)
    local x = s[key]
    if key == "call" then return function(_, name, program, given) return x(s, name, membrane.real(program), given) end end
    return type(x) == "function" and function(_, ...) return x(s, ...) end or x
  end})
end

-- For scripts that also make programs: with the tile language, and what of Lua only computes.
local function wide_environment(mr, given, made, device)
  local env, own = confine.language(), own_mr(mr, given, made, device)
  for name, f in pairs(tile.functions) do own[name] = f end
  own.program = entry(function(name, body)
    made.program = true
    return membrane.outward(tile.program(name, body))
  end)
  own.sequence = entry(function(name, body)
    made.program = true
    return membrane.outward(sequences.sequence(name, function(s) return body(builder(s)) end))
  end)
  env.mr = membrane.frozen(own, function(name) return forbidden(mr, name) end)
  env.require, env.print = requires(env.mr), function() end
  return setmetatable(env, {__metatable = false, __index = function(_, name)
    if rawget(_G, name) ~= nil then
      return membrane.refuse("a script that is only checked does not use " .. tostring(name), false, acting[name] and name)
    end
  end})
end

-- mr.bound: the program with sizes for which a plan is loaded: x, or x with these sizes.
function loader.bound(x, name, sizes)
  if core.is(x, "millrace.program") or core.is(x, "millrace.sequence") then return x end
  if (tile.is_program(x) or sequences.is_sequence(x)) and sizes then return x:bind(sizes) end
  local kind = tile.is_program(x) and "program" or sequences.is_sequence(x) and "sequence" or nil
  if kind then
    raise(("the sizes of %s '%s' are not in this plan: give mr.load_plan the %s with sizes"):format(kind, tostring(name), kind))
  end
  raise(("this plan is for program '%s': mr.load_plan(path, program)"):format(tostring(name)))
end

---- loading -------------------------------------------------------------------------------------

-- What the text of a script returns, as a stand-in. source: as load takes it; name: what messages call it.
local function evaluate(what, name, text, source, env, given)
  local chunk, message = load(text, source, "t", env)
  if not chunk then raise(("%s: %s"):format(what, message)) end
  local has_sizes = core.is(given, "millrace.program") or core.is(given, "millrace.sequence")
  local bound = has_sizes and membrane.outward(given) or nil
  return confine.call(("%s: %s"):format(what, name), chunk, bound)
end

-- What is wrong with a plan may be so because it was made for another device.
local function for_device(message, device)
  if not device then return message end
  message = ("%s (the plan is loaded for %s)"):format(message, device.name)
  return message:find "' has no sEU '" and ("%s; mr.search(program, mr.device %q) finds a plan for its units"):format(message, device.name)
    or message
end

local function run(what, name, mr, text, source, given, device)
  local good, result = core.try(membrane.without_strings, source, evaluate, what, name, text, source, environment(mr, given, device), given)
  local wanted, got = mismatch(text, given)
  if not good then
    local program = named(text)
    if type(result) ~= "string" then result = ("%s: %s ended with an error that is %s"):format(what, name, show(result)) end
    if given and program and program ~= given.name then
      result = ("%s: %s is for program '%s', but was given '%s' (%s)"):format(what, name, program, given.name, result)
    elseif wanted then result = ("%s (the plan is for %s, and was loaded for %s)"):format(result, wanted, got) end
    error(for_device(result, device), 0)
  end
  local p = membrane.real(result)
  if core.is(p, "millrace.sequence_plan") then return p end
  if not core.is(p, "millrace.plan") then raise(("%s: %s returns %s, not a plan"):format(what, name, show(result))) end
  core.set_loaded(p)
  return p, wanted
end

loader.shipped = setmetatable({}, {__mode = "k"})       -- by plan that came with Millrace: its name

local folders <const> = {"/examples", "/examples/plans"}

-- Names of the plans that come with Millrace: next to the programs, and those for one shape.
function loader.plan_names()
  local names = {}
  for _, folder in ipairs(folders) do
    local files = core.list(core.home() .. folder, ".lua")
    table.sort(files)
    for _, name in ipairs(files) do
      local file = io.open(("%s%s/%s.lua"):format(core.home(), folder, name))
      if file and file:read "a":find "\nreturn plan%s*$" then names[#names + 1] = name end
      if file then file:close() end
    end
  end
  return names
end

-- What to say behind a name that no plan that comes with Millrace has: "; did you mean 'x'?" of one that is spelt nearly so, or else
-- that has all its words; of none, which there are.
function loader.plan_hint(name)
  local names = loader.plan_names()
  local near = hint(name, names)
  if near ~= "" then return near end
  for _, shipped in ipairs(names) do
    local has, any = true, false
    for word in name:lower():gmatch "%w+" do has, any = has and ("_" .. shipped .. "_"):find("_" .. word .. "_", 1, true) ~= nil, true end
    if has and any then return ("; did you mean '%s'?"):format(shipped) end
  end
  return "; there are " .. table.concat(names, ", ")
end

-- The file of a plan: a name without / and . is that of one that comes with Millrace, and "-" is standard input. There may be no such
-- file.
function loader.path_of(name)
  if name == "-" then return "/dev/stdin" end
  if name:find "[/.]" then return name end
  for _, folder in ipairs(folders) do
    local path = ("%s%s/%s.lua"):format(core.home(), folder, name)
    if core.file_kind(path) then return path end
  end
  return name
end

-- Pipes that the shell makes of <(...), and standard input: they can be read once, so their text is kept.
local MOST_PIPED <const>, PATIENCE <const> = 1 << 26, 60 -- bytes; seconds in which nothing comes
local piped = {}

-- Is it such a pipe?
function loader.is_pipe(path)
  local named = path == "/dev/stdin" or path:find "^/dev/fd/%d+$" or path:find "^/proc/[%w_]+/fd/%d+$"
  return named ~= nil and (piped[path] ~= nil or core.file_kind(path) == "pipe")
end

local function read_pipe(what, path)
  local why
  if not piped[path] then piped[path], why = core.read_pipe(path, MOST_PIPED, PATIENCE) end
  if not piped[path] then raise(("%s: %s: %s"):format(what, path, why)) end
  return piped[path]
end

-- from_pipe: it may be a pipe of the shell.
local function read(what, path, from_pipe)
  if path:find "\n" and what == "load_plan" then
    raise "load_plan: path expected, got the text of a script: load(text)() makes its plan; plan:save(path) writes a file for mr.load_plan"
  end
  if from_pipe and loader.is_pipe(path) then return read_pipe(what, path) end
  local kind = core.file_kind(path)
  if kind and kind ~= "file" then
    raise(("%s: %s is a %s, not a file"):format(what, path, kind == "folder" and kind or "device or a pipe"))
  end
  if what == "load_plan" and not path:find "[/.]" then
    local near = loader.plan_hint(path)
    raise(("%s: no plan '%s' comes with Millrace%s%s load a file of that name, say ./%s"):format(what, path, near,
      near:find "%?$" and " To" or "; to", path))
  end
  local file, why = io.open(path)
  if not file then raise(("%s: cannot open %s"):format(what, why)) end
  local text = file:read "a"
  file:close()
  return (text:gsub("^\xEF\xBB\xBF", ""):gsub("^#[^\n]*", ""))    -- a mark of UTF-8, the line for the system
end

-- given: a program with sizes, instead of the one that the script names; or a program, for which the script has sizes.
-- device: instead of the one that the script names, or nil. Returns the plan, and for which program and sizes the script is if these are
-- others.
function loader.of_file(mr, path, given, device)
  return run("load_plan", path, mr, read("load_plan", path), "@" .. path, given, device)
end

function loader.of_text(mr, text, name, bound) return run("plan", name, mr, text, "=" .. name, bound) end

-- Evaluate a script that may make programs, too. It can change nothing: what it runs, measures or writes has no effect. programs:
-- by name, for plans of programs that are elsewhere; device: instead of those that it names, or nil. Returns the plan or program that it returns, else the last plan that it made,
-- else nil; the message if it ended early, as it needed what was not done; the text; whether it is a plan and no more, so that
-- nothing but comments is lost if the plan is saved there; and the names of Lua in it that had no effect, {name=, location=}. The path may be
-- that of a pipe of the shell.
function loader.evaluate(mr, what, path, programs, device)
  local text, made = read(what, path, true), {}
  local given = programs[named(text)]
  local refused, names, good, result = membrane.leniently(evaluate, what, path, text, "@" .. path, wide_environment(mr, given, made, device), given)
  local x = good and membrane.real(result)
  if good then return x or made[#made], nil, text, x and not made.program and not refused, names end
  if type(result) ~= "string" then result = ("%s: an error that is %s"):format(path, show(result)) end
  if not (refused and made[1]) then error(for_device(refused and ("%s (%s)"):format(result, refused) or result, device), 0) end
  return made[#made], ("%s (%s)"):format(result, refused), text, false, names
end

return loader
