-- tile_bind.lua - programs of the tile language, and what binding them to sizes makes.

local core = require "millrace.core"
local draft = require "millrace.draft"
local given_values = require "millrace.given"
local objects = require "millrace.tile_objects"
local raise, entry, expect = core.raise, core.entry, core.expect
local class, new, nest = objects.class, objects.new, objects.nest
local P <const>, PROGRAM <const>, ANY <const> = objects.P, objects.PROGRAM, objects.ANY
local BUILDER <const>, GIVEN <const>, READ <const>, LOCATION <const>, NAME <const> = objects.BUILDER, objects.GIVEN, objects.READ,
  objects.LOCATION, objects.NAME
local LOOPS <const>, SIZES <const>, DEFAULTS <const>, TASK <const>, ALIKE <const> = objects.LOOPS, objects.SIZES, objects.DEFAULTS,
  objects.TASK, objects.ALIKE

local BODY = {}

-- An option as texts about the program say it: "causal=true".
local LONGEST_OPTION <const> = 40
local function option_text(key, value)
  local kind = type(value)
  local text = kind == "number" and (math.type(value) == "integer" and "%d" or "%.6g"):format(value)
    or kind == "string" and (value:find "^[%w_.+-]+$" and value or ("%q"):format(value):gsub("\\?%c", " "))
    or kind == "boolean" and tostring(value) or "a " .. kind
  if #text > LONGEST_OPTION then text = text:sub(1, LONGEST_OPTION) .. "..." end
  return key .. "=" .. text
end

-- Is that what the program takes unless it is given? A number may be false, for none.
local function is_default(default, value) return value == default or value == false and type(default) ~= "boolean" end

-- The options that bind was given, for texts: neither sizes of axes, nor what the program takes unless given.
local function say_options(p, builder)
  for _, key in ipairs(draft.keys(p[GIVEN])) do
    local value, default = p[GIVEN][key], p[DEFAULTS][key]
    if p[SIZES][key] ~= value and (default == nil or not is_default(default, value)) then builder:option(option_text(key, value)) end
  end
end

local origins = setmetatable({}, {__mode = "k"})        -- bound -> what it was made of

-- What was given, with numbers for sizes that are known at launch: number(any, axis) of each.
local function fixed(given, number)
  local sizes = {}
  for key, x in pairs(given) do
    local axis = getmetatable(x) == ANY and x.like or key
    sizes[key] = getmetatable(x) == ANY and number(given[axis], axis) or x
  end
  return sizes
end

local bind

-- The typical sizes of what was given, in their order: a list of {m=512}. Of an axis with fewer of them, the largest size.
local function typical_of(given)
  local list, most = {}, 0
  for _, x in pairs(given) do most = math.max(most, getmetatable(x) == ANY and x.typical and #x.typical or 0) end
  for i = 1, most do
    list[i] = {}
    for axis, n in pairs(fixed(given, function(any) return any.typical and any.typical[i] or any.max end)) do
      if getmetatable(given[axis]) == ANY then list[i][axis] = n end
    end
  end
  return list
end

-- The program must be the same but for its sizes where all are the least ones, where each of them is, where all are the largest
-- (as numbers, so that a size is equal to one), and at typical ones. Between them nothing is tried.
local function check_same(prog, bound, given)
  local tried = {function(any) return any.multiple end, function(any) return any.max end}
  for _, key in ipairs(draft.keys(given)) do
    if getmetatable(given[key]) == ANY and not given[key].like then
      tried[#tried + 1] = function(any, axis) return axis == key and any.multiple or any.max end
    end
  end
  for _, sizes in ipairs(typical_of(given)) do tried[#tried + 1] = function(_, axis) return sizes[axis] end end
  for _, number in ipairs(tried) do core.check_same(bound, bind(prog, fixed(given, number))) end
end

function bind(prog, sizes)
  expect(getmetatable(prog) == PROGRAM, "bind", "program", prog)
  given_values.check_keys(sizes)
  local given, read, location = {}, {}, core.location()
  for key, size in pairs(sizes) do given[key] = size end
  local _ <close> = nest "bind"
  local builder = core.builder(prog.name)
  local p, outer = new(P, {[BUILDER] = builder, [GIVEN] = given, [READ] = read, [LOCATION] = location, [NAME] = prog.name, [LOOPS] = {},
    [SIZES] = {}, [DEFAULTS] = {}, [TASK] = false, [ALIKE] = {}}), objects.building
  do
    local _ <close> = core.at_close(function() objects.building = outer end)
    objects.building = p
    prog[BODY](p)
  end
  given_values.check_read(prog.name, given, read, location)
  say_options(p, builder)
  local bound = builder:finish()
  origins[bound] = {prog, given, p[DEFAULTS]}
  if core.any_axes(bound) then check_same(prog, bound, given) end
  return bound
end

local at = setmetatable({}, {__mode = "k"})             -- bound -> that program at sizes, by their text

-- The program at sizes that it leaves to the launch, {m=333}. It must be what the kernel computes.
local function at_sizes(bound, sizes)
  local key = draft.literal(sizes)
  at[bound] = at[bound] or setmetatable({}, {__mode = "v"})
  local other = at[bound][key]
  if other then return other end
  local prog, given = table.unpack(origins[bound])
  other = bind(prog, fixed(given, function(_, axis) return sizes[axis] end))
  core.check_same(bound, other)
  at[bound][key] = other
  return other
end

class(PROGRAM, "program", {bind = bind}, {
  __call = entry(bind),
  __tostring = function(prog) return "program " .. prog.name end,
})

local function program(name, body)
  expect(type(name) == "string", "program", "name", name)
  if not name:find "^[%a_][%w_]*$" then
    raise(("program: '%s' cannot name a program; use letters, digits and '_'"):format(name))
  end
  expect(type(body) == "function", "program", "function", body)
  return new(PROGRAM, {name = name, [BODY] = body})
end

-- bound:at_sizes{m=512}: the program at sizes that it leaves to the launch; those that are not given are the largest.
local function at_given(bound, given)
  expect(core.is(bound, "millrace.program"), "at_sizes", "program with sizes", bound)
  expect(type(given) == "table", "at_sizes", "table of sizes by axis", given)
  local sizes, all, ranges = {}, {}, core.any_axes(bound) or {}
  for axis, n in pairs(given) do all[axis] = n end
  for axis, range in pairs(ranges) do
    sizes[axis] = given[axis] or range.like and given[range.like] or range.max
    all[axis] = sizes[axis]
  end
  core.check_sizes(bound, "at_sizes", {sizes = all})
  return next(ranges) and at_sizes(bound, sizes) or bound
end

core.method("millrace.program", "at_sizes", entry(at_given))
return {
  program = entry(program),
  at_sizes = at_sizes,
  -- sizes at which a bound program is typically run: a list of {m=512}, empty if it leaves none to the launch
  typical = function(bound)
    local o = origins[bound]
    return o and typical_of(o[2]) or {}
  end,
  is_any = function(x) return getmetatable(x) == ANY end,
  is_program = function(x) return getmetatable(x) == PROGRAM end,
  -- Do these options, which another call of bind was given, differ from those that the bound program was given? Where the default of
  -- an option is not known, and only one was given it, they do not.
  other_options = function(bound, options)
    local o, axes = origins[bound], bound.axes
    if not o then return false end
    local names = {}
    for _, list in ipairs{o[2], options} do
      for key in pairs(list) do names[key] = not axes[key] or nil end
    end
    for key in pairs(names) do
      local default, mine, other = o[3][key], o[2][key], options[key]
      if mine == nil then mine = default end
      if other == nil then other = default end
      if default ~= nil and is_default(default, mine) then mine = default end
      if default ~= nil and is_default(default, other) then other = default end
      if mine ~= nil and other ~= nil and mine ~= other then return true end
    end
    return false
  end,
  -- "causal=true", of options that bind was given
  options_text = function(options)
    local list = {}
    for i, key in ipairs(draft.keys(options)) do list[i] = option_text(key, options[key]) end
    return table.concat(list, " ")
  end,
  -- the program and the sizes that a bound program was made of
  origin = function(bound)
    local o = origins[bound]
    if o then return o[1], o[2] end
  end,
}
