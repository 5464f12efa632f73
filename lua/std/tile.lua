-- tile.lua - the tile language of docs/tile-language.md: names and operators over the
-- builder of lua/lbuilder.c, which holds the program and checks what it says.
--
-- tile_objects.lua has the kinds of objects, tile_sizes.lua mr.any, tile_bind.lua programs and their binding to sizes.

local core = require "millrace.core"
local draft = require "millrace.draft"
local given_values = require "millrace.given"
local objects = require "millrace.tile_objects"
local any, programs = require "millrace.tile_sizes", require "millrace.tile_bind"
local raise, hint, show, entry, expect = core.raise, core.hint, core.show, core.entry, core.expect
local class, new, nest, functions, along = objects.class, objects.new, objects.nest, objects.functions, objects.along

local P <const>, AXIS <const>, INDEX <const>, TENSOR <const> = objects.P, objects.AXIS, objects.INDEX, objects.TENSOR
local VALUE <const>, CARRY <const>, ANY <const> = objects.VALUE, objects.CARRY, objects.ANY
local BUILDER <const>, GIVEN <const>, READ <const>, LOCATION <const>, NAME <const> = objects.BUILDER, objects.GIVEN, objects.READ,
  objects.LOCATION, objects.NAME
local LOOPS <const>, SIZES <const>, DEFAULTS <const>, TASK <const>, ALIKE <const> = objects.LOOPS, objects.SIZES, objects.DEFAULTS,
  objects.TASK, objects.ALIKE

local LOG2E <const> = 1.4426950408889634
local LN2 <const> = 0.6931471805599453

---- errors --------------------------------------------------------------------

-- The location of the call of bind, if the mistake is a value that was given to it.
local function same(x, y) return rawequal(x, y) or x ~= x and y ~= y end       -- nan is nan

local function blame(p, option, value) return value ~= nil and same(p[GIVEN][option], value) and p[LOCATION] or nil end

---- objects -------------------------------------------------------------------

local value_methods = {}

local function is_value(x)
  local kind = getmetatable(x)
  return kind == VALUE or kind == CARRY
end

local function value(p, id) return new(VALUE, {id = id, owner = p}) end

-- The object at `x`, which must be of this kind and of p's program.
local function own(p, x, kind, what, expected)
  expect(getmetatable(x) == kind, what, expected, x)
  if x.owner ~= p then raise(("%s: this %s belongs to another program"):format(what, expected)) end
  return x
end

local function self_p(p, what)
  if getmetatable(p) ~= P then raise(("%s: to be called as p:%s(...)"):format(what, what)) end
  return p[BUILDER]
end

---- index expressions ---------------------------------------------------------

local id_of

-- The builder's id of an i32 value, which an index may add; nil: it is none.
local function integer_of(x, what)
  if not is_value(x) then return nil end
  local id = id_of(x.owner, x, what)
  return x.owner[BUILDER]:dtype(id) == "i32" and id or nil
end

-- What the builder takes as an index: a number, or the expression of an object. An index may add a value.
local function expression(x, what)
  local kind = getmetatable(x)
  if kind == AXIS or kind == INDEX then return x.expr end
  local id = (what == "+" or what == "-") and integer_of(x, what)
  if id then return core.index_value(id) end
  if is_value(x) then
    raise(("%s: an axis is no value; axis:index() is the index along it, axis.size its size"):format(what))
  end
  if kind == TENSOR then
    raise(("%s: a tensor is no index; an element of it is, if it is loaded first: p:load(%s)"):format(what, x.name))
  end
  expect(type(x) == "number", what, "axis, index expression or integer", x)
  return core.integer(x) or raise(("%s: %s is not an integer"):format(what, show(x)))
end

local function own_expression(p, x, what)
  local kind = getmetatable(x)
  if kind == AXIS or kind == INDEX then own(p, x, kind, what, "axis") end
  if is_value(x) or kind == INDEX and x.has_value then
    raise(("%s: an index is made of axes and numbers, not of values"):format(what))
  end
  return expression(x, what)
end

-- The index of a dimension of a load or store, which may be, or add, the element of an i32 value.
local function access_expression(p, x, what)
  if is_value(x) then return core.index_value(id_of(p, x, what)) end
  if getmetatable(x) == INDEX and x.has_value then return own(p, x, INDEX, what, "index").expr end
  return own_expression(p, x, what)
end

local function has_value(x) return is_value(x) or getmetatable(x) == INDEX and x.has_value end

local function index_operator(op)
  return function(a, b)
    local p = type(a) == "table" and a.owner or b.owner
    if op == "-" and is_value(b) and integer_of(b, op) then return a + -b end      -- an index adds a value, if any
    local x, y = expression(a, op), expression(b, op)
    if type(a) == "table" and type(b) == "table" and a.owner ~= b.owner then
      raise(op .. ": axes of different programs")
    end
    return new(INDEX, {expr = core.index_op(op, x, y), owner = p, has_value = has_value(a) or has_value(b)})
  end
end

-- x ~ mask, with the bits of mask flipped: less those that are set, plus those that are not.
local function flipped_bits(a, mask)
  if type(a) == "number" then a, mask = mask, a end
  local m = core.integer(mask)
  if not m or m < 0 then raise(("~: of an axis and a number of at least 0 whose bits are flipped, got %s"):format(show(mask))) end
  local x, bit = a + m, 1
  while bit <= m do
    local width = 1
    while m // bit // width % 2 == 1 do width = width * 2 end             -- bits in a row are flipped together
    if width > 1 then x = x - a // bit % width * (2 * bit) end
    bit = bit * width * 2
  end
  return x
end

local function no_compare(op, method)
  return function()
    local turned = op ~= "==" and (" or a:%s(b) for '%s'"):format((method:gsub("l", "g")), (op:gsub("<", ">"))) or ""
    local extremes = op == "<" and "; math.max and math.min compare, too: use mr.max, mr.min" or ""
    raise(("'%s' can only give true or false: use a:%s(b)%s, of an axis a:index():%s(b)%s"):format(op, method, turned, method, extremes))
  end
end

local add, sub, mul = index_operator "+", index_operator "-", index_operator "*"
local function index_meta(tostring)
  return {
    __add = add, __sub = sub, __mul = mul,
    __idiv = index_operator "//", __mod = index_operator "%",
    __unm = function(a) return sub(0, a) end,
    __bxor = flipped_bits,
    __div = function() raise("an index expression is divided by //, which rounds down") end,
    __lt = no_compare("<", "lt"), __le = no_compare("<=", "le"),
    __tostring = tostring,
  }
end

class(INDEX, "index expression", {}, index_meta(function(x)
  return x.owner[BUILDER]:show_index(x.expr)
end))

class(AXIS, "axis", {
  index = function(axis)
    expect(getmetatable(axis) == AXIS, "index", "axis", axis)
    return value(axis.owner, axis.owner[BUILDER]:index(axis.id))
  end,
}, index_meta(function(axis) return ("axis %s: %d"):format(axis.name, axis.size) end))

---- values --------------------------------------------------------------------

local silent = setmetatable({}, {__mode = "k"})         -- by program: the last task that returned nothing

-- A value is needed in p, and x is none. If it is nil, it may be the result of a task that returns nothing.
local function refuse_value(p, x, what)
  if x == nil and p and silent[p] then
    raise(("%s: value expected, got nil; task '%s' returns none: its function must return the value that it computes"):format(what,
      silent[p]))
  end
  if getmetatable(x) == INDEX then
    raise(("%s: value expected, got index expression %s; axis:index() is the index along an axis as a value"):format(what,
      x.owner[BUILDER]:show_index(x.expr)))
  end
  expect(false, what, "value", x)
end

-- The elements of a load that gives words of them: whatever takes them does so in its own task, in which they are made once.
local function unpacked(p, load)
  if not p[TASK] or load.task ~= p[TASK] then
    load.task, load.elements = p[TASK], p[BUILDER]:unpack(load.id, load.from, load.to, load.dtype)
  end
  return load.elements
end

-- The builder's id of what stands for a value in p: a value, a carry, a number.
function id_of(p, x, what)
  if type(x) == "number" then return p[BUILDER]:const(x) end
  local kind = getmetatable(x)
  if kind == AXIS and along[what] and what ~= along[what] then
    raise(("%s: axis '%s' is no value; mr.%s(x, %s) reduces x along it"):format(what, x.name, along[what], x.name))
  end
  if kind == AXIS then
    raise(("%s: axis '%s' is no value; %s:index() is the index along it, %s.size its size"):format(what, x.name, x.name, x.name))
  end
  if kind ~= VALUE and kind ~= CARRY then refuse_value(p, x, what) end
  own(p, x, kind, what, "value")
  if kind == CARRY then return p[BUILDER]:get(x.id) end
  local words = rawget(x, "words")
  return words and unpacked(p, words) or x.id
end

-- The program of the first value among the arguments.
local function owner_of(what, ...)
  for i = 1, select("#", ...) do
    local x = select(i, ...)
    if is_value(x) then return x.owner end
  end
  refuse_value(objects.building, (...), what)
end

-- A carry as the value that it holds now, so that using it twice reads it once.
local function as_value(x, what)
  local p = owner_of(what, x)
  return value(p, id_of(p, x, what))
end

-- An integer of a script that no i32 holds would make what it meets an f32, which has 24 of its bits.
local function refuse_wide(p, what, a, b, id)
  if math.type(a) ~= "integer" or a >= -(1 << 31) and a < 1 << 31 then return end
  if not is_value(b) or p[BUILDER]:dtype(id) ~= "i32" then return end
  local same_bits = a > 0 and a < 1 << 32 and (" %d for the i32 of the same 32 bits, or"):format(a - (1 << 32)) or ""
  raise(("%s: the constant %d is no i32, which goes from -2^31 to 2^31 - 1, and the value is one; write%s %d.0 for an f32")
    :format(what, a, same_bits, a))
end

local function operation(op, what)
  what = what or op
  return function(a, b)
    local p = owner_of(what, a, b)
    local x = id_of(p, a, what)
    local y = id_of(p, b, what)
    refuse_wide(p, what, a, b, y)
    refuse_wide(p, what, b, a, x)
    return value(p, p[BUILDER]:op(op, x, y))
  end
end

local function swapped(op, what)
  local f = operation(op, what)
  return function(a, b) return f(b, a) end
end

local function unary(op, what)
  what = what or op
  return function(a)
    local p = owner_of(what, a)
    return value(p, p[BUILDER]:op(op, id_of(p, a, what)))
  end
end

-- Two arguments or more, from left to right.
local function folded(op)
  local f = operation(op)
  return function(a, b, ...)
    expect(b ~= nil, op, "two arguments or more", b)
    local v = f(a, b)
    for i = 1, select("#", ...) do v = f(v, (select(i, ...))) end
    return v
  end
end

local function reduction(op, what)
  return function(v, axis)
    local p = owner_of(what, v)
    own(p, axis, AXIS, what, "axis")
    return value(p, p[BUILDER]:reduce(op, id_of(p, v, what), axis.id))
  end
end

local function ternary(op)
  return function(a, b, c)
    local p = owner_of(op, a, b, c)
    local x = id_of(p, a, op)
    local y = id_of(p, b, op)
    local z = id_of(p, c, op)
    refuse_wide(p, op, b, c, z)
    refuse_wide(p, op, c, b, y)
    return value(p, p[BUILDER]:op(op, x, y, z))
  end
end

-- The operations of src/tile/ops.def: functions of mr, and methods of values.
for _, op in ipairs(core.operations()) do
  local name, method = op.call:match "^mr%.(%w+)", op.call:match "^x:(%w+)"
  if method then
    value_methods[method] = operation(op.name)
  elseif name and op.reduces then
    functions[name] = reduction(op.name, name)
  elseif name then
    functions[name] = op.arity == 1 and unary(name) or op.arity == 2 and folded(name) or ternary(name)
  end
  if name and op.arity == 1 then value_methods[name] = functions[name] end
end

-- The bits of a float, as an f32, as an i32; of an i32 the f32 that has them.
function value_methods.bits(v)
  local p = owner_of("bits", v)
  local id = id_of(p, v, "bits")
  local dtype = p[BUILDER]:dtype(id)
  if dtype == "i32" then return value(p, p[BUILDER]:op("of_bits", id)) end
  if dtype == "bool" or dtype:find "^[iu]%d" then
    raise(("bits: of a float, as an f32, or of an i32; the value is %s"):format(dtype))
  end
  return value(p, p[BUILDER]:op("to_bits", dtype == "f32" and id or p[BUILDER]:cast(id, "f32")))
end

value_methods.gt, value_methods.ge = swapped("lt", "gt"), swapped("le", "ge")

-- A function made of others, of one value; it is also a method.
local function compose(name, f)
  functions[name] = function(x) return f(as_value(x, name)) end
  value_methods[name] = functions[name]
end

compose("exp", function(x) return functions.exp2(x * LOG2E) end)
compose("log", function(x) return functions.log2(x) * LN2 end)
compose("sigmoid", function(x) return 1 / (1 + functions.exp2(x * -LOG2E)) end)
compose("silu", function(x) return x * functions.sigmoid(x) end)
-- with tanh, as in Hendrycks and Gimpel, "Gaussian error linear units", 2016
compose("gelu", function(x)
  return x * 0.5 * (1 + functions.tanh(x * (0.7978845608028654 + 0.035677408136300125 * (x * x))))
end)

-- The dtype's name; `d` may be what bind was given.
local function check_dtype(p, d, what)
  if type(d) == "string" and core.dtype(d) then return d end
  local near = type(d) == "string" and hint(d, core.dtypes()) or ""
  local location = nil
  for _, given in pairs(p[GIVEN]) do
    if d ~= nil and same(given, d) then location = p[LOCATION] end
  end
  raise(("%s: unknown dtype %s%s"):format(location and "bind" or what, show(d), near), location)
end

function functions.unpack(v, from, to, dtype)
  local p = owner_of("unpack", v)
  own(p, from, AXIS, "unpack", "axis")
  own(p, to, AXIS, "unpack", "axis")
  local id = id_of(p, v, "unpack")
  return value(p, p[BUILDER]:unpack(id, from.id, to.id, check_dtype(p, dtype, "unpack")))
end

value_methods.unpack = functions.unpack

-- Two of every four elements along the axis, at the indices that `which` has: see program_expand.
function functions.expand(v, which, axis)
  local p = owner_of("expand", v)
  own(p, axis, AXIS, "expand", "axis")
  return value(p, p[BUILDER]:expand(id_of(p, v, "expand"), id_of(p, which, "expand"), axis.id))
end

value_methods.expand = functions.expand

-- The elements at `index` along the axis: v:at(j, j ~ 1).
function value_methods.at(v, axis, index)
  local p = owner_of("at", v)
  own(p, axis, AXIS, "at", "axis")
  return value(p, p[BUILDER]:at(id_of(p, v, "at"), axis.id, own_expression(p, index, "at")))
end

function value_methods.to(v, dtype)
  local p = owner_of("to", v)
  return value(p, p[BUILDER]:cast(id_of(p, v, "to"), check_dtype(p, dtype, "to")))
end

-- A sum of a value and an index expression is an index of a load or store.
local function sum(op, what, of_index)
  local f = operation(op, what)
  return function(a, b)
    local x, y = getmetatable(a), getmetatable(b)
    local is_index = (x == AXIS or x == INDEX) and integer_of(b, what) or (y == AXIS or y == INDEX) and integer_of(a, what)
    return is_index and of_index(a, b) or f(a, b)
  end
end

-- What Lua rounds down, of an i32 and a power of two: a shift, and the low bits.
local function by_power_of_two(what, shift, of_others)
  local shifted, masked = operation("shr", what), operation("and", what)
  return function(a, b)
    local p = owner_of(what, a, b)
    local id = is_value(a) and id_of(p, a, what)
    local n = math.type(b) == "integer" and b > 0 and b <= 1 << 30 and b & b - 1 == 0
    if not (id and n and p[BUILDER]:dtype(id) == "i32") then
      raise(("'%s' of values is there for an i32 and a number that is a power of two; of others write %s, which is computed in f32"):format(what, of_others))
    end
    if shift then
      local by = 0
      while 1 << by < b do by = by + 1 end
      return shifted(value(p, id), by)
    end
    return masked(value(p, id), b - 1)
  end
end

local function no_power()
  raise "'^' is no operation of values; write x * x for a square, and mr.exp2(y * mr.log2(x)) for x^y of x > 0"
end

local function value_meta(tostring)
  return {
    __add = sum("add", "+", add), __sub = sum("sub", "-", sub),
    __idiv = by_power_of_two("//", true, "mr.floor(x / y)"), __pow = no_power,
    __mod = by_power_of_two("%", false, "x - y * mr.floor(x / y)"),
    __mul = operation("mul", "*"), __div = operation("div", "/"), __unm = unary("neg", "-"),
    __band = operation("and", "&"), __bor = operation("or", "|"),
    __bxor = operation("xor", "~"), __bnot = unary("not", "~"),
    __shl = operation("shl", "<<"), __shr = operation("shr", ">>"),
    __lt = no_compare("<", "lt"), __le = no_compare("<=", "le"), __eq = no_compare("==", "eq"),
    __tostring = tostring,
  }
end

local carry_methods = {}
for name, f in pairs(value_methods) do carry_methods[name] = f end

local function check_carry(c, what)
  expect(getmetatable(c) == CARRY, what, "carry", c)
  return c.owner[BUILDER], c.owner
end

function carry_methods.set(c, v)
  local b, p = check_carry(c, "set")
  b:set(c.id, id_of(p, v, "set"))
end

function carry_methods.add(c, v)
  local b, p = check_carry(c, "add")
  b:add(c.id, id_of(p, v, "add"))
end

class(VALUE, "value", value_methods, value_meta(function(v)
  return "value " .. v.owner[BUILDER]:show(v.id)
end))
class(CARRY, "carry", carry_methods, value_meta(function(c) return "carry " .. c.name end))

---- mr.NAME -------------------------------------------------------------------

for name, f in pairs(functions) do functions[name] = entry(f) end

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

-- The results of a task; one that returns none is remembered, as a use of what is missing may be far from it.
local function noting(p, name, ...)
  silent[p] = (...) == nil and name or silent[p]
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
  local _ <close> = setmetatable({}, {__close = function() p[TASK] = false end})
  p[TASK] = {}
  return noting(p, name, enclosed(b, "task_end", f()))
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
    local keeps = b:dtype(id_of(p, x, "loop")) == "bool" and x or value_methods.ne(x, 0)
    local length = access_expression(p, functions.where(keeps, 1, 0), "loop")
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

programs.functions = functions                          -- mr.max and the like
programs.any = entry(any)
return programs
