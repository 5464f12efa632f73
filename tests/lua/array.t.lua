-- Arrays: making, reading, writing, converting, comparing, and every refusal.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like, near, refuses = tap.ok, tap.is, tap.like, tap.near, tap.refuses

local function list(a)
  local t = {}
  for i = 1, #a do t[i] = tostring(a[i]) end
  return table.concat(t, " ")
end

-- Making ----------------------------------------------------------------------------------

local a = mr.array("f32", {2, 3})
is(#a, 6, "elements")
is(a.dtype, "f32", "dtype")
is(table.concat(a:shape(), "x"), "2x3", "shape")
is(list(a), "0.0 0.0 0.0 0.0 0.0 0.0", "zeros unless filled")
is(list(mr.array("f32", {3}, 1.5)), "1.5 1.5 1.5", "filled with a number")
is(list(mr.array("i32", {2, 2}, {1, 2, 3, 4})), "1 2 3 4", "filled from a flat table, row-major")
is(list(mr.array("i32", {2, 3}, function(i, j) return 10 * i + j end)), "11 12 13 21 22 23",
  "filled by a function of the positions")
is(list(mr.array("i32", {2, 1, 2}, function(i, j, k) return 100 * i + 10 * j + k end)),
  "111 112 211 212", "three dimensions")
is(#mr.array("f64", {}, 3), 1, "no dimension: one element")
is(mr.array("f64", {}, 3):get(), 3.0, "and get without a position reads it")
is(mr.array("bfloat16", {1}).dtype, "bf16", "other names of a dtype")
is(#mr.array("f32", {2.0, 3.0}), 6, "floats that are integers are sizes")

-- Elements --------------------------------------------------------------------------------

a = mr.array("f64", {2, 3}, {1, 2, 3, 4, 5, 6})
is(a[4], 4.0, "a[i], from 1")
is(a:get(2, 1), 4.0, "get, last position fastest")
a[4] = 0.5
is(a:get(2, 1), 0.5, "a[i] = v")
a:set(7, 1, 3)
is(a[3], 7.0, "set")
is(a[0], nil, "a[0] is nothing")
is(a[7], nil, "past the end is nothing")
local sum = 0
for _, v in ipairs(a) do sum = sum + v end
is(sum, 1 + 2 + 7 + 0.5 + 5 + 6, "ipairs")
is(a.nonsense, nil, "no such field")
is(a[2.0], 2.0, "a[2.0] is a[2]")

-- Every dtype -----------------------------------------------------------------------------

for _, t in ipairs {"f64", "f32", "tf32", "f16", "bf16", "e4m3", "e5m2", "e2m1"} do
  is(list(mr.array(t, {5}, {0, 1, -0.5, 3, -4})),
    "0.0 1.0 -0.5 3.0 -4.0", t .. " holds small numbers")
end
for _, t in ipairs {"i32", "i8", "i4"} do
  is(list(mr.array(t, {5}, {0, 1, -1, 7, -8})), "0 1 -1 7 -8", t .. " gives integers")
end
is(list(mr.array("u8", {5}, {0, 1, -1, 7, 300})), "0 1 0 7 255", "u8 gives integers that are not negative")
is(list(mr.array("e8m0", {6}, {0.25, 1, -6, 7.9, 1e300, 0})), ("0.25 1.0 4.0 4.0 %s %s"):format(2.0 ^ 127, 2.0 ^ -127),
  "e8m0 holds powers of two")
is(list(mr.array("bool", {3}, {true, false, true})), "true false true", "bool gives booleans")
is(list(mr.array("bool", {2}, {1, 0})), "true false", "and takes numbers")
is(mr.array("bf16", {1}, 1.01)[1], 1.0078125, "bf16 rounds")
is(mr.array("f32", {1}, 0.1)[1], 0.10000000149011612, "f32 rounds")
is(mr.array("i8", {1}, 1000)[1], 127, "integers saturate")
is(mr.array("e4m3", {1}, 1e6)[1], 448.0, "e4m3 saturates")
is(mr.array("f16", {1}, 1e6)[1], math.huge, "f16 overflows")
local nibbles = mr.array("i4", {5}, {1, 2, 3, 4, 5})
nibbles[2] = -3
is(list(nibbles), "1 -3 3 4 5", "two to a byte do not disturb each other")

-- All elements ----------------------------------------------------------------------------------

a = mr.array("f64", {4}, {0.1, 1, 2, 3})
local b = a:copy()
b[1] = 5
is(a[1], 0.1, "a copy is another array")
is(a:copy("bf16")[1], 0.10009765625, "copy to another dtype rounds")
is(a:copy("bf16").dtype, "bf16", "and has it")
is(a:fill(2), a, "fill returns the array")
is(list(a), "2.0 2.0 2.0 2.0", "filled with a number")
is(list(a:fill(function(i) return i end)), "1.0 2.0 3.0 4.0", "filled by a function")
is(list(a:fill{9, 8, 7, 6}), "9.0 8.0 7.0 6.0", "filled from a table")

local x, y = mr.array("f64", {2}, {3, 4}), mr.array("f64", {2}, {3, 2})
local most, relative = x:max_error(y)
is(most, 2.0, "greatest difference")
near(relative, 2 / math.sqrt(13), 1e-15, "relative error in the Frobenius norm")
is(select(2, x:max_error(x)), 0.0, "no error against itself")
is((mr.array("f64", {2}):max_error(mr.array("f64", {2}))), 0.0, "zeros against zeros")
is(select(2, mr.array("f64", {1}, 1):max_error(mr.array("f64", {1}))), math.huge,
  "anything against zeros")
local nan = mr.array("f64", {3}, {1, 0 / 0, 2})
most, relative = nan:max_error(mr.array("f64", {3}, {1, 1, 0}))
ok(most ~= most and relative ~= relative, "NaN is not hidden by what follows it")
is((mr.array("f64", {1}, math.huge):max_error(mr.array("f32", {1}, math.huge))), 0.0,
  "equal infinities agree")
is((mr.array("bf16", {2}, 1.5):max_error(mr.array("f64", {2}, 1.25))), 0.25, "of two dtypes")

is(tostring(mr.array("bf16", {2, 2}, 0.5)), "array bf16 {2, 2}: 0.5 0.5 0.5 0.5", "tostring")
like(tostring(mr.array("f32", {1000})), "^array f32 {1000}: 0 0 0 0 0 0 0 0 %.%.%.$",
  "and a summary")

-- Refusals --------------------------------------------------------------------------------

local function bad(expression, message)
  refuses('local mr = require "millrace"\nlocal a = mr.array("f32", {2, 3})\nreturn ' .. expression,
    "user.lua:3: " .. message)
end

bad('mr.array("bf17", {2})', "array: unknown dtype 'bf17'; did you mean 'bf16'?")
bad('mr.array(32, {2})', "array: dtype must be a string, got 32")
bad('mr.array("f32")', "array: shape {size, ...} expected, got nothing")
bad('mr.array("f32", 4)', "array: shape {size, ...} expected, got 4")
bad('mr.array("f32", {2, 0})', "array: dimension 2 must be an integer of at least 1, got 0")
bad('mr.array("f32", {2.5})', "array: dimension 1 must be an integer of at least 1, got 2.5")
bad('mr.array("f32", {"2"})', "array: dimension 1 must be an integer of at least 1, got '2'")
bad('mr.array("f32", {1,1,1,1,1,1,1,1,1})', "array: a shape has at most 8 dimensions, got 9")
bad('mr.array("f32", {2}, {1})', "array: 2 elements are wanted, the table has 1")
bad('mr.array("f32", {2}, {1, "x"})', "array: an element must be a number, got 'x'")
bad('mr.array("f32", {2}, true)', "array: an element must be a number, got true")
bad('mr.array("f32", {2}, function() end)', "array: an element must be a number, got nil")
bad('mr.array("f32", {2^40, 2^40})', "array: f32 {1099511627776, 1099511627776} is too large")
bad('a:get(1)', "get: the array has 2 dimensions, 1 position is given")
bad('a:get(1, 4)', "get: position 2 must be an integer from 1 to 3, got 4")
bad('a:get(0, 1)', "get: position 1 must be an integer from 1 to 2, got 0")
bad('a:set(1, 1)', "set: the array has 2 dimensions, 1 position is given; it is array:set(value, i, j), with the value first")
bad('a:set()', "set: the array has 2 dimensions, 0 positions are given; it is array:set(value, i, j), with the value first")
bad('a:set(1, 2, 0.5)', "set: position 2 must be an integer from 1 to 3, got 0.5; it is array:set(value, i, j), with the value first")
bad('a:set(2, 2, 4)', "set: position 2 must be an integer from 1 to 3, got 4; it is array:set(value, i, j), with the value first")
bad('a:set("x", 1, 1)', "set: an element must be a number, got 'x'")
bad('a.get({}, 1, 1)', "get: array expected, got table")
bad('a.shape()', "shape: array expected, got nothing")
bad('a:fill()', "fill: number, table or function expected, got nothing")
bad('a:copy("f33")', "copy: unknown dtype 'f33'; did you mean 'f32'?")
bad('a:max_error(1)', "max_error: array expected, got 1")
bad('a:max_error(mr.array("f32", {3, 2}))', "max_error: the arrays have shapes {2, 3} and {3, 2}")
bad('(function() a[7] = 1 end)()', "array: position must be an integer from 1 to 6, got 7")
bad('(function() a[1] = nil end)()', "array: an element must be a number, got nil")
bad('(function() a.x = 1 end)()', "array: position must be an integer from 1 to 6, got 'x'")

refuses('require("millrace").array("f32", {2}, function() error("mine", 0) end)', "mine",
  "a function's error comes through unchanged")

local good, message = pcall(mr.array, "f32", {1 << 20, 1 << 20})
ok(not good, "more than the memory is refused")
like(message, "array: f32 {1048576, 1048576} takes 4194305 MiB, but only %d+ of %d+ MiB are left",
  "and the message says how much there is")

is(getmetatable(a), false, "the metatable is out of reach")

-- A small object to Lua, but the collector knows its bytes.
local live = setmetatable({}, {__mode = "k"})
for _ = 1, 32 do live[mr.array("f32", {1 << 22})] = true end
local n = 0
for _ in pairs(live) do n = n + 1 end
ok(n < 16, "large arrays are collected soon after they are dropped", n .. " of 32 are live")

tap.done_testing()
