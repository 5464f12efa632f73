-- tile.lua - the tile language of docs/tile-language.md, over the builder of lua/lbuilder.c, which holds the program and checks what
-- it says.
--
-- This file has p, with which a program declares its axes, tensors, tasks and loops. tile_values.lua has values and
-- their operators, tile_objects.lua the kinds of objects, tile_sizes.lua mr.any, tile_bind.lua programs and their binding to sizes.

local core = require "millrace.core"
local draft = require "millrace.draft"
local given_values = require "millrace.given"
local objects = require "millrace.tile_objects"
local any, programs, values = require "millrace.tile_sizes", require "millrace.tile_bind", require "millrace.tile_values"
local raise, hint, show, entry, expect = core.raise, core.hint, core.show, core.entry, core.expect
local class, new, nest, same = objects.class, objects.new, objects.nest, objects.same
local value, is_value, has_value, id_of, own = values.value, values.is_value, values.has_value, values.id_of, values.own
local own_expression, access_expression, check_dtype = values.own_expression, values.access_expression, values.check_dtype

local P <const>, AXIS <const>, INDEX <const>, TENSOR <const> = objects.P, objects.AXIS, objects.INDEX, objects.TENSOR
local VALUE <const>, CARRY <const>, ANY <const> = objects.VALUE, objects.CARRY, objects.ANY
local BUILDER <const>, GIVEN <const>, READ <const>, LOCATION <const>, NAME <const> = objects.BUILDER, objects.GIVEN, objects.READ,
  objects.LOCATION, objects.NAME
local LOOPS <const>, SIZES <const>, DEFAULTS <const>, TASK <const>, ALIKE <const> = objects.LOOPS, objects.SIZES, objects.DEFAULTS,
  objects.TASK, objects.ALIKE

-- The location of the call of bind, if the mistake is a value that was given to it.
local function blame(p, option, value) return value ~= nil and same(p[GIVEN][option], value) and p[LOCATION] or nil end

local function self_p(p, what)
  if getmetatable(p) ~= P then raise(("%s: to be called as p:%s(...)"):format(what, what)) end
  return p[BUILDER]
end

---- tensors -------------------------------------------------------------------

-- Ids of a list of axes, and the axes.
local function axis_list(p, list, what)
  expect(type(list) == "table" and getmetatable(list) == nil, what, "list of axes", list)
  local ids, axes = {}, {}
  for i = 1, #list do
    axes[i] = own(p, list[i], AXIS, what, "axis")
    ids[i] = axes[i].id
  end
  return ids, axes
end

-- One expression for each dimension of the tensor; without `index` its own axes.
local function index_list(p, tensor, index, what, expression_of)
  local list, rank = {}, #tensor.dims
  index = index or tensor.dims
  expect(type(index) == "table" and getmetatable(index) == nil, what, "index {expression, ...}", index)
  for i = 1, math.max(rank, #index) do
    if i > rank or index[i] == nil then
      raise(("%s: '%s' has %d dimensions, the index %s"):format(what, tensor.name, rank,
        #index == rank and "lacks the one at " .. i or "has " .. #index))
    end
    list[i] = expression_of(p, index[i], what)
  end
  return list
end

-- The arguments of a call with a name before, which may be left out. An index that is nil is a name that is misspelt.
local function named(what, call, ...)
  local name, x, index = ...
  local is_given = select("#", ...) > 2
  if type(name) ~= "string" then
    name, x, index = nil, name, x
    is_given = select("#", ...) > 1
  end
  if is_given and index == nil then
    raise(("%s: the index is nil; is a name misspelt? What is not given is left out: %s"):format(what, call))
  end
  return name, x, index
end

-- tensor:store([name,] value[, index]), and tensor:add
local function writer(what, call)
  return function(tensor, ...)
    core.at_most(4, tensor, ...)
    expect(getmetatable(tensor) == TENSOR, what, "tensor", tensor)
    local name, v, index = named(what, "tensor:" .. what .. "([name,] value[, index])", ...)
    local p = tensor.owner
    local id = id_of(p, v, what)
    p[BUILDER][call](p[BUILDER], name, tensor.id, index and index_list(p, tensor, index, what, access_expression), id)
  end
end

class(TENSOR, "tensor", {store = writer("store", "store"), add = writer("add", "add_to")}, {
  __tostring = function(t)
    local names = {}
    for i, axis in ipairs(t.dims) do names[i] = axis.name end
    return ("tensor %s: %s {%s}"):format(t.name, t.dtype, table.concat(names, ", "))
  end,
})

local input_options = {"sorted", "pointers"}

-- What an input may be given behind its dtype: {sorted = true}; {pointers = axis}, the first one of its dimensions. Returns both.
local function check_options(role, options, dims)
  if options == nil then return false end
  expect(role == "input" and type(options) == "table", role, "nothing behind the dtype, or of an input {sorted = true},", options)
  for _, key in ipairs(draft.keys(options)) do
    if key ~= "sorted" and key ~= "pointers" then raise(("input: unknown option '%s'%s"):format(key, hint(key, input_options))) end
  end
  expect(not options.sorted or options.sorted == true, "input: sorted", "true or false", options.sorted)
  if options.pointers then
    expect(getmetatable(options.pointers) == AXIS, "input: pointers", "axis", options.pointers)
    if not rawequal(options.pointers, dims[1]) then
      raise(("input: pointers = %s: the parts that have addresses are those of the first dimension"):format(options.pointers.name))
    end
  end
  return options.sorted, options.pointers
end

local function declare(role)
  return function(p, name, dims, dtype, options)
    local b = self_p(p, role)
    expect(type(name) == "string", role, "name", name)
    local ids, axes = axis_list(p, dims, role)
    dtype = check_dtype(p, dtype or p.dtype or "bf16", role)
    local sorted, pointers = check_options(role, options, axes)
    local id = b:tensor(role, name, dtype, ids, sorted)
    if pointers then b:by_address(id) end
    return new(TENSOR, {id = id, owner = p, name = name, dims = axes, dtype = core.dtype(dtype)})
  end
end

---- p -------------------------------------------------------------------------

local function new_axis(p, name, size, any)
  local id = p[BUILDER]:axis(name, size, any and (any.multiple or p[GIVEN][any.like].multiple), any and any.like and p[ALIKE][any.like])
  if any then p[ALIKE][name] = id end
  p[SIZES][name] = any or size
  return new(AXIS, {id = id, owner = p, name = name, size = size, expr = core.index_axis(id)})
end

-- "; sizes have the names of axes: 'm', not 'M'" if that was given; else what was given that nothing has asked for; "".
local function other_case(p, name)
  local names = {}
  for key in pairs(p[GIVEN]) do
    if key:lower() == name:lower() then return ("; sizes have the names of axes: '%s', not '%s'"):format(name, key) end
    if not p[READ][key] then names[#names + 1] = key end
  end
  table.sort(names)
  return #names > 0 and ("; sizes have the names of axes, and no axis yet is %s"):format(table.concat(names, ", ")) or ""
end

-- The size; of one that is known at launch the largest, and mr.any's object.
local function check_size(p, name, size, what, location)
  if getmetatable(size) == ANY and size.like then
    local of = p[GIVEN][size.like]
    if not p[ALIKE][size.like] or getmetatable(of) ~= ANY or of.like then
      raise(("%s: axis '%s' is to have the size of '%s', which is no axis before it that was given mr.any{max=...}"):format(what, name,
        size.like), location)
    end
    return of.max, size
  end
  if getmetatable(size) == ANY then return size.max, size end
  local n = core.integer(size)
  if n and n > 1 << 40 then
    raise(("%s: axis '%s' has size %d; sizes are 1 to 2^40"):format(what, name, n), location)
  end
  if n and n >= 1 then return n end
  raise(("%s: size of axis '%s' %s"):format(what, name, size == nil and "is missing" .. other_case(p, name)
    or "must be an integer of at least 1, got " .. show(size) .. (type(size) == "table"
    and "; mr.any{max=512, typical={16, 512}} leaves it to the launch" or "")), location)
end

-- Run f between begin and end; what it returns.
local function enclosed(b, finish, ...)
  b[finish](b)
  return ...
end

local function check_block(what, name, f)
  expect(type(name) == "string", what, "name", name)
  expect(type(f) == "function", what, "function", f)
end

local loop_options = {"from", "upto", "length", "typical", "batch", "when"}
local known_options = {}
for _, name in ipairs(loop_options) do known_options[name] = true end

-- A bound may also be false, so that `upto = p.causal and m` reads well.
local function loop_bound(p, options, name)
  local x = options[name]
  if x and name == "upto" and has_value(x) then
    raise "loop: 'upto' is an index made of axes and numbers; for a value, write length = ..., at which the axis ends"
  end
  if x then return own_expression(p, x, "loop") end
end

-- The length of a loop and a typical one; nil: it has none.
local function loop_length(p, options)
  local x, typical = options.length, options.typical
  if not x then
    if typical and not options.when then
      raise("loop: 'typical' is what predictions assume of a length, or of the steps that 'when' keeps; it needs a length = ... or when = ...")
    end
    return nil
  end
  expect(has_value(x) or is_value(x), "loop", "length: an i32 value, or one plus an index", x)
  local n = typical and core.integer(typical)
  if typical and (not n or n < 1) then
    raise(("loop: 'typical' is a length, an integer of at least 1, got %s"):format(show(typical)))
  end
  return access_expression(p, x, "loop"), n or 0
end

-- Of how many steps predictions assume that 'when' keeps them; 0: nothing is said. With a length, 'typical' is that of the length.
local function steps_kept(axes, options)
  local typical, steps = options.typical, 1
  if not typical or options.length then return 0 end
  for _, axis in ipairs(axes) do steps = steps * axis.size end
  local n = core.integer(typical)
  if n and n >= 1 and n <= steps then return n end
  if type(typical) == "number" and typical > 0 and typical < 1 then return math.max(1, math.floor(typical * steps + 0.5)) end
  raise(("loop: 'typical' is how many of the steps 'when' keeps, an integer from 1 to %d, or a share of them below 1, got %s"):format(steps,
    show(typical)))
end

local p_methods = {
  input = declare "input", output = declare "output", temp = declare "temp",
}

function p_methods.axes(p, ...)
  self_p(p, "axes")
  local axes = {...}
  for i, name in ipairs(axes) do
    expect(type(name) == "string", "axes", "name of an axis", name)
    p[READ][name] = true
  end
  for i, name in ipairs(axes) do
    axes[i] = new_axis(p, name, check_size(p, name, p[GIVEN][name], "bind", p[LOCATION]))
  end
  return table.unpack(axes)
end

function p_methods.axis(p, name, size)
  self_p(p, "axis")
  expect(type(name) == "string", "axis", "name of an axis", name)
  local location = blame(p, name, size)
  if getmetatable(size) == ANY and not same(p[GIVEN][name], size) then
    raise(("axis: '%s' would have the size that is known at launch of another axis; loads and stores give an axis for several "
      .. "dimensions"):format(name))
  end
  return new_axis(p, name, check_size(p, name, size, location and "bind" or "axis", location))
end

function p_methods.batch(p, ...)
  local b = self_p(p, "batch")
  for _, id in ipairs(axis_list(p, {...}, "batch")) do b:batch(id) end
end

function p_methods.phase(p, name, f)
  local b = self_p(p, "phase")
  check_block("phase", name, f)
  local _ <close> = nest "phase"
  b:phase_begin(name)
  return enclosed(b, "phase_end", f())
end

function p_methods.task(p, name, f)
  local b = self_p(p, "task")
  check_block("task", name, f)
  local _ <close> = nest "task"
  b:task_begin(name)
  local _ <close> = core.at_close(function() p[TASK] = false end)
  p[TASK] = {}
  return values.noting(p, name, enclosed(b, "task_end", f()))
end

-- The body of a loop whose steps `condition` keeps or leaves out: a loop of one iteration or none.
local function body_when(p, axis, condition, kept, f)
  return function()
    local b, x = p[BUILDER], condition()
    expect(is_value(x), "loop", "when: a function that returns a bool or i32 value", x)
    local many = b:first_axis(id_of(p, x, "loop"))
    if many then
      raise(("loop: the value of 'when' has an element for each %s, but a step is executed or left out for a tile as one: "
        .. "declare p:batch(%s), or reduce the value over it in an earlier phase"):format(many, many))
    end
    local name, n = axis.name .. "_when", (p[LOOPS][axis.name] or 0) + 1
    p[LOOPS][axis.name] = n
    local one = new_axis(p, n == 1 and name or name .. n, 1)
    local keeps = b:dtype(id_of(p, x, "loop")) == "bool" and x or x:ne(0)
    local length = access_expression(p, objects.functions.where(keeps, 1, 0), "loop")
    b:loop_begin({one.id}, nil, nil, true)
    b:loop_keeps_steps(kept)
    b:loop_length(length, 0)
    return enclosed(b, "loop_end", f())
  end
end

function p_methods.loop(p, axes, options, f)
  local b = self_p(p, "loop")
  if type(options) == "function" and f == nil then options, f = nil, options end
  options = options or {}
  if getmetatable(axes) == AXIS then axes = {axes} end
  if axes == nil then raise "loop: axis, or list of axes, expected, got nil; p:axes gives an axis for each of its names" end
  local ids = axis_list(p, axes, "loop")
  expect(type(options) == "table", "loop", "table of options", options)
  expect(type(f) == "function", "loop", "function", f)
  for _, key in ipairs(draft.keys(options)) do
    if not known_options[key] then
      raise(("loop: unknown option '%s'%s"):format(key, hint(key, loop_options)))
    end
  end
  expect(not options.batch or options.batch == true, "loop: batch", "true or false", options.batch)
  if options.when then
    expect(type(options.when) == "function", "loop", "when: a function that returns a value,", options.when)
    f = body_when(p, axes[1], options.when, steps_kept(axes, options), f)
  end
  local _ <close> = nest "loop"
  local length, typical = loop_length(p, options)
  b:loop_begin(ids, loop_bound(p, options, "from"), loop_bound(p, options, "upto"), options.batch or options.when ~= nil and options.when ~= false)
  if length then b:loop_length(length, typical) end
  return enclosed(b, "loop_end", f())
end

function p_methods.load(p, ...)
  core.at_most(4, p, ...)
  local b = self_p(p, "load")
  local name, tensor, index = named("load", "p:load([name,] tensor[, index])", ...)
  own(p, tensor, TENSOR, "load", "tensor")
  local id = b:load(name, tensor.id, index_list(p, tensor, index, "load", access_expression))
  local from, to, dtype = b:load_unpacks(id)
  return new(VALUE, {id = id, owner = p, words = from and {id = id, from = from, to = to, dtype = dtype}})
end

function p_methods.mma(p, name, x, y)
  local b = self_p(p, "mma")
  if type(name) ~= "string" then name, x, y = nil, name, x end
  local id = id_of(p, x, "mma")
  return value(p, b:mma(name, id, id_of(p, y, "mma")))
end

-- A number for all elements along some axes: it is added to zeros that have the axes, which are their indices times 0.
function p_methods.full(p, axes, number, dtype)
  local b = self_p(p, "full")
  local ids = axis_list(p, axes, "full")
  expect(#ids > 0, "full", "list of axes", axes)
  expect(type(number) == "number", "full", "number", number)
  dtype = dtype and check_dtype(p, dtype, "full") or "f32"
  local zero, zeros = b:const(0), nil
  for _, id in ipairs(ids) do
    local one = b:op("mul", b:index(id), zero)
    zeros = zeros and b:op("add", zeros, one) or one
  end
  local integer = core.integer(number)
  if dtype == "i32" and not (integer and integer >= -(1 << 31) and integer < 1 << 31) then
    raise(("full: %s is no i32"):format(show(number)))
  end
  local kind = (dtype == "i32" or dtype == "f64") and dtype or "f32"
  local filled = b:op("add", kind == "i32" and zeros or b:cast(zeros, kind), b:const(dtype == "i32" and integer or number))
  return value(p, kind == dtype and filled or b:cast(filled, dtype))
end

function p_methods.carry(p, name, axes, init, dtype)
  local b = self_p(p, "carry")
  expect(type(name) == "string", "carry", "name", name)
  local ids = axis_list(p, axes, "carry")
  expect(type(init) == "number", "carry", "initial number", init)
  return new(CARRY, {id = b:carry(name, ids, init, dtype and check_dtype(p, dtype, "carry")), owner = p, name = name})
end

-- An option that bind was given, or the default: given.lua says of which kinds.
function p_methods.option(p, name, kind, default)
  self_p(p, "option")
  if kind == "whole" then kind = "integer" end          -- deprecated
  given_values.check_kind(name, kind)
  local given = p[name]
  p[DEFAULTS][name] = default or false
  return given_values.option(p[NAME], name, kind, given, default, p[LOCATION])
end

-- What a program asks of its sizes and options; the location is that of the bind.
function p_methods.check(p, condition, message)
  self_p(p, "check")
  if condition then return condition end
  raise(("%s: %s"):format(p[NAME], message or "these sizes do not fit"), p[LOCATION])
end

class(P, "program under construction", p_methods, {
  __index = function(p, key)
    local method = p_methods[key]
    if method ~= nil then return method end
    if type(key) == "string" then p[READ][key] = true end
    return p[GIVEN][key]
  end,
  __newindex = function(_, key)
    raise(("p.%s cannot be set: p holds what bind was given"):format(tostring(key)))
  end,
})

programs.functions = objects.functions                  -- mr.max and the like
programs.any = entry(any)
return programs
