-- tile_values.lua - values, carries and index expressions of the tile language: their operators, methods and functions of mr.
--
-- Each checks its arguments and appends nodes by the builder of the program that its operands belong to.

local core = require "millrace.core"
local objects = require "millrace.tile_objects"
local raise, hint, show, entry, expect = core.raise, core.hint, core.show, core.entry, core.expect
local class, new, functions, along = objects.class, objects.new, objects.functions, objects.along

local AXIS <const>, INDEX <const>, TENSOR <const>, VALUE <const>, CARRY <const> = objects.AXIS, objects.INDEX, objects.TENSOR,
  objects.VALUE, objects.CARRY
local BUILDER <const>, GIVEN <const>, LOCATION <const>, TASK <const> = objects.BUILDER, objects.GIVEN, objects.LOCATION, objects.TASK

local LOG2E <const> = 1.4426950408889634
local LN2 <const> = 0.6931471805599453

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

-- The results of a task; one that returns none is remembered, as a use of what is missing may be far from it.
local function noting(p, name, ...)
  silent[p] = (...) == nil and name or silent[p]
  return ...
end

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
    if d ~= nil and objects.same(given, d) then location = p[LOCATION] end
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

return {
  value = value, is_value = is_value, has_value = has_value, id_of = id_of, own = own, own_expression = own_expression,
  access_expression = access_expression, check_dtype = check_dtype, noting = noting,
}
