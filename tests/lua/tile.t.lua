-- The tile language: each row of docs/tile-language.md, what a bound program tells, and every
-- refusal with the line that it names.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like, refuses = tap.ok, tap.is, tap.like, tap.refuses

local function list(a)
  local t = {}
  for i = 1, #a do t[i] = ("%.6g"):format(tonumber(a[i]) or (a[i] and 1 or 0)) end
  return table.concat(t, " ")
end

-- Values: Z[n] = f(X[n], Y[n]), in the dtype given; the result as text.
local function compute(f, x, y, dtype, out)
  local bound = mr.program("t", function(p)
    local n = p:axes "n"
    local X, Y = p:input("X", {n}), p:input("Y", {n})
    local Z = p:output("Z", {n}, out or dtype or "f64")
    local a, b = p:load(X), p:load(Y)
    Z:store(p:task("f", function() return f(a, b, n) + 0 * b end))
  end):bind{n = #x, dtype = dtype or "f64"}
  local inputs = bound:inputs()
  inputs.X:fill(x)
  inputs.Y:fill(y or x)
  return list(bound:reference(inputs).Z)
end

local function lua(f, x, y)
  local t = {}
  for i = 1, #x do t[i] = ("%.6g"):format(f(x[i], (y or x)[i]) + 0) end
  return table.concat(t, " ")
end

local xs, ys = {-2, -0.5, 0.25, 1, 3}, {1, -4, 0.5, 2, 3}

-- Operators -------------------------------------------------------------------------------

for name, f in pairs {
  ["a + b"] = function(a, b) return a + b end,
  ["a - b"] = function(a, b) return a - b end,
  ["a * b"] = function(a, b) return a * b end,
  ["a / b"] = function(a, b) return a / b end,
  ["-a"] = function(a) return -a end,
  ["numbers"] = function(a) return 2 * a + 1 - a / 4 + 1 / a - (3 - a) end,
} do
  is(compute(f, xs, ys), lua(f, xs, ys), name)
end

local function bits(f) return compute(f, {12, -5, 7, 0, 1}, {10, 3, 2, 1, 4}, "i32") end
is(bits(function(a, b) return a & b end), "8 3 2 0 0", "a & b")
is(bits(function(a, b) return a | b end), "14 -5 7 1 5", "a | b")
is(bits(function(a, b) return a ~ b end), "6 -8 5 1 5", "a ~ b")
is(bits(function(a) return ~a end), "-13 4 -8 -1 -2", "~a")
is(bits(function(a) return a << 2 end), "48 -20 28 0 4", "a << n")
is(bits(function(a) return a >> 1 end), "6 -3 3 0 0", "a >> n is arithmetic")
is(bits(function(a) return a >> 33 end), "6 -3 3 0 0", "a >> n goes by n modulo 32")
is(bits(function(a) return a // 4 end), "3 -2 1 0 0", "a // 4 rounds down")
is(bits(function(a) return a % 4 end), "0 3 3 0 1", "a % 4 is never negative")
is(bits(function(a) return a // 1 + a % 1 end), "12 -5 7 0 1", "by 1")
is(bits(function(a) return (a & 15) | 16 end), "28 27 23 16 17", "with numbers")

local where, max, min = mr.where, mr.max, mr.min
for name, want in pairs {
  lt = "1 0 1 1 0", le = "1 0 1 1 1", gt = "0 1 0 0 0", ge = "0 1 0 0 1", eq = "0 0 0 0 1",
  ne = "1 1 1 1 0",
} do
  is(compute(function(a, b) return where(a[name](a, b), 1, 0) end, xs, ys), want,
    "a:" .. name .. "(b)")
end
is(compute(function(a) return where(a:gt(0) & a:lt(2), a, 0) end, xs), "0 0 0.25 1 0", "& on bool")
is(compute(function(a) return where(~(a:lt(0) | a:gt(2)), a, 0) end, xs), "0 0 0.25 1 0",
  "| and ~ on bool")
is(compute(function(a, b) return where(a:lt(b), a, b) end, xs, ys), lua(math.min, xs, ys), "where")
is(compute(function(a, b) return max(a, b) end, xs, ys), lua(math.max, xs, ys), "max")
is(compute(function(a, b) return min(a, b) end, xs, ys), lua(math.min, xs, ys), "min")
is(compute(function(a, b) return max(a, b, 1, -a) end, xs, ys),
  lua(function(a, b) return math.max(a, b, 1, -a) end, xs, ys), "max of four")

-- Functions of one value, as functions and as methods.
local up = {0.25, 0.5, 1, 2, 9}
local function tanh(x) return 1 - 2 / (math.exp(2 * x) + 1) end
local function gelu(x)
  return 0.5 * x * (1 + tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ^ 3)))
end
-- By Simpson's rule; from 6 on it is 1 in double precision.
local function erf(x)
  local n, sum = 2000, 0
  local h = math.min(x, 6) / n
  for i = 0, n do
    sum = sum + math.exp(-(i * h) ^ 2) * (i % n == 0 and 1 or i % 2 == 1 and 4 or 2)
  end
  return 2 / math.sqrt(math.pi) * sum * h / 3
end
for name, f in pairs {
  exp2 = function(x) return 2 ^ x end,
  exp = math.exp,
  log2 = function(x) return math.log(x, 2) end,
  log = function(x) return math.log(x) end,
  sqrt = math.sqrt,
  rsqrt = function(x) return 1 / math.sqrt(x) end,
  tanh = tanh,
  erf = erf,
  sin = math.sin,
  cos = math.cos,
  abs = math.abs,
  floor = math.floor,
  sigmoid = function(x) return 1 / (1 + math.exp(-x)) end,
  silu = function(x) return x / (1 + math.exp(-x)) end,
  gelu = gelu,
} do
  is(compute(function(a) return mr[name](a) end, up), lua(f, up), "mr." .. name)
  is(compute(function(a) return a[name](a) end, up), lua(f, up), "  and as a method")
end
is(compute(function(a) return mr.floor(a) end, xs), "-2 -1 0 1 3", "floor of negative numbers")

-- Casts: the reference keeps float values exact unless it has to round.
is(compute(function(a) return a:to "i32" end, {1.5, 2.5, -1, 0, 7}), "1 2 -1 0 7",
  "to i32, towards zero")

-- Axes, indices, reductions, scans --------------------------------------------------------

-- Z = f(p, x, m, n) with x[m,n] = 1 2 3 / 4 5 6, over the axes `over`.
local function matrix(f, over, tile)
  local bound = mr.program("t", function(p)
    local m, n = p:axes("m", "n")
    local X = p:input("X", {m, n})
    local Z = p:output("Z", over(m, n))
    Z:store(f(p:load(X), m, n, p))
  end):bind{m = 2, n = 3, dtype = "f64"}
  local inputs = bound:inputs()
  inputs.X:fill{1, 2, 3, 4, 5, 6}
  return list(bound:reference(inputs, {tile = tile}).Z)
end

local function both(m, n) return {m, n} end
local function rows(m) return {m} end
local function transposed(m, n) return {n, m} end

-- One number.
is(matrix(function(x, m, n, p) return x * 0 + p:full({m, n}, 2.5) end, both), "2.5 2.5 2.5 2.5 2.5 2.5", "full")
is(matrix(function(x, _, n, p) return x + p:full({n}, -math.huge, "f64"):rowmax(n) end, both),
  "-inf -inf -inf -inf -inf -inf", "  of an infinity")
is(matrix(function(x, m, n, p) return x:rowsum(n) * 0 + p:full({m}, 7, "i32"):lshr(1) end, rows), "3 3", "  of an i32")
is(matrix(function(x, m, n, p) return x:rowsum(n) * 0 + p:full({m}, 3.3, "bf16"):to "f64" end, rows), "3.3 3.3",
  "  of another type, unrounded by the reference")
for _, case in ipairs{
  {"p:full({m}, 0.5, 'i32')", "full: 0.5 is no i32"}, {"p:full({m}, 1 << 31, 'i32')", "full: 2147483648 is no i32"},
  {"p:full({}, 1)", "full: list of axes expected, got table"},
  {"p:full({m}, 'a')", "full: number expected, got 'a'"}, {"p:full({m}, 0, 'i3')", "full: unknown dtype 'i3'; did you mean 'i8'?"},
} do
  refuses(([[
local mr = require "millrace"
mr.program("t", function(p)
  local m = p:axes("m")
  %s
end){m = 4}]]):format(case[1]), "user.lua:4: " .. case[2])
end
is(matrix(function(x) return x * 1 end, both), "1 2 3 4 5 6", "row-major")
is(matrix(function(x) return x * 1 end, transposed), "1 4 2 5 3 6", "axes are matched by name")
is(matrix(function(x, _, n) return x * 10 + n:index() end, both), "10 21 32 40 51 62",
  "axis:index()")
is(matrix(function(x, m, n) return x * 1 + 10 * m:index() + n:index() end, both, {m = 1, n = 2}),
  "1 3 5 14 16 18", "  is the global index")
is(matrix(function(x, _, n) return mr.rowsum(x, n) end, rows), "6 15", "rowsum")
is(matrix(function(x, _, n) return mr.rowmax(x, n) end, rows), "3 6", "rowmax")
is(matrix(function(x, _, n) return x:rowmin(n) end, rows), "1 4", "rowmin, as a method")
is(matrix(function(x, _, n) return x - x:rowmax(n) end, both), "-2 -1 0 -2 -1 0", "broadcast back")
is(matrix(function(x, _, n) return mr.cumsum(x, n) end, both), "1 3 6 4 9 15", "cumsum")
is(matrix(function(x, m) return mr.cumsum(x, m) end, both), "1 2 3 5 7 9", "  along another axis")
is(matrix(function(x, _, n) return mr.cummax(-x, n) end, both), "-1 -1 -1 -4 -4 -4", "cummax")
is(matrix(function(x, _, n) return mr.cummin(x, n) end, both), "1 1 1 4 4 4", "cummin")

-- Loads with index expressions: Y[y] = sum over r of X[y * stride + r - pad].
local function window(expression)
  local bound = mr.program("t", function(p)
    local x, y, r = p:axes("x", "y", "r")
    local X, Y = p:input("X", {x}), p:output("Y", {y})
    Y:store(mr.rowsum(p:load(X, {expression(y, r)}), r))
  end):bind{x = 6, y = 3, r = 2, dtype = "f64"}
  local inputs = bound:inputs()
  inputs.X:fill{1, 10, 100, 1000, 10000, 100000}
  return list(bound:reference(inputs).Y)
end
is(window(function(y, r) return y + r end), "11 110 1100", "y + r")
is(window(function(y, r) return 2 * y + r end), "11 1100 110000", "strides")
is(window(function(y, r) return y * 2 + r - 1 end), "1 110 11000", "padding: outside is zero")
is(window(function(y, r) return -y - r + 5 end), "110000 11000 1100", "backward")
is(window(function(y, r) return y // 2 + 4 * r end), "10001 10001 100010", "y // 2")
is(window(function(y, r) return y % 2 + r end), "11 110 11", "y % 2")

-- A store with an index scatters; a temporary carries values to the next phase.
local bound = mr.program("phases", function(p)
  local n, half = p:axes("n", "half")
  local X, T, Y = p:input("X", {n}), p:temp("T", {n}), p:output("Y", {half})
  p:phase("first", function() T:store("twice", p:load("x", X) * 2) end)
  p:phase("second", function()
    Y:store(p:load("even", T, {half * 2}) + p:load("odd", T, {half * 2 + 1}))
  end)
end):bind{n = 6, half = 3, dtype = "f64"}
local inputs = bound:inputs()
inputs.X:fill{1, 2, 3, 4, 5, 6}
is(list(bound:reference(inputs).Y), "6 14 22", "phases")
is(bound.tensors[2].role, "temp", "  with a temporary")

-- Words: eight 4-bit weights to a word.
bound = mr.program("unpack", function(p)
  local word, k = p:axes("word", "k")
  local W, Y = p:input("W", {word}, "i32"), p:output("Y", {k}, "i32")
  Y:store(p:load(W):unpack(word, k, "i4"):to "i32")
end):bind{word = 1, k = 8}
inputs = bound:inputs()
inputs.W[1] = 0x76543210
is(list(bound:reference(inputs).Y), "0 1 2 3 4 5 6 7", "unpack, the lowest bits first")

-- Programs --------------------------------------------------------------------------------

local gemm = mr.program("gemm", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32")
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function()
    c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B)))
  end)
  C:store("store_c", c)
end)

bound = gemm:bind{m = 5, n = 6, k = 7}
inputs = bound:inputs{seed = 3}
local want = mr.array("f64", {5, 6}, function(i, j)
  local s = 0
  for k = 1, 7 do s = s + inputs.A:get(i, k) * inputs.B:get(j, k) end
  return s
end)
local out = bound:reference(inputs)
is(out.C.dtype, "f64", "the reference is in double precision")
is(table.concat(out.C:shape(), "x"), "5x6", "  of the output's shape")
ok(select(2, out.C:max_error(want)) < 1e-15, "a product")
ok(select(2, bound:reference(inputs, {tile = {m = 2, n = 4, k = 3}}).C:max_error(want)) < 1e-15,
  "  in ragged tiles")
inputs.A = inputs.A:copy "f64"
ok(select(2, bound:reference(inputs).C:max_error(want)) < 1e-15,
  "  inputs of another dtype are converted")
inputs.A:fill(1 + 2 ^ -20)
inputs.B:fill(1)
is(bound:reference(inputs).C[1], 7.0, "  to what the tensor can hold")

local softmax = mr.program("softmax", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m, n})
  local x = p:load(X)
  Y:store(p:task("softmax", function()
    local e = mr.exp(x - mr.rowmax(x, n))
    return e / mr.rowsum(e, n)
  end))
end)
bound = softmax{m = 3, n = 4, dtype = "f32"}
inputs = bound:inputs()
out = bound:reference(inputs).Y
want = out:copy()
for i = 1, 3 do
  local s = 0
  for j = 1, 4 do s = s + math.exp(inputs.X:get(i, j)) end
  for j = 1, 4 do want:set(math.exp(inputs.X:get(i, j)) / s, i, j) end
end
ok(out:max_error(want) < 1e-15, "softmax")
ok(bound:reference(inputs, {round = true}).Y:max_error(want) > 1e-10,
  "  rounded where it is stored")

-- Loops: bounds, several axes, nests; a carry begins again in its region.
local function visited(options, least, most)
  local b = mr.program("t", function(p)
    local i, j = p:axes("i", "j")
    local X, Y = p:input("X", {i, j}), p:output("Y", {i})
    local c = p:carry("c", {i}, 0)
    p:loop(j, options(i, j, p), function()
      local inside = j:index():ge(least and least(i:index()) or 0)
      if most then inside = inside & j:index():le(most(i:index())) end
      c:add(mr.rowsum(mr.where(inside, p:load(X), 0), j))
    end)
    Y:store(c)
  end):bind{i = 4, j = 4, dtype = "f64"}
  local arrays = b:inputs()
  arrays.X:fill(1)
  return list(b:reference(arrays, {tile = {i = 1, j = 1}}).Y)
end
is(visited(function() return {} end), "4 4 4 4", "a complete loop")
local function same(i) return i end
is(visited(function(i) return {upto = i} end, nil, same), "1 2 3 4", "upto an axis")
is(visited(function(i) return {from = i} end, same), "4 3 2 1", "from an axis")
is(visited(function(i) return {from = i - 1, upto = i + 1} end, function(i) return i - 1 end,
  function(i) return i + 1 end), "2 3 3 2",
  "from and upto expressions")
is(visited(function() return {upto = 1} end, nil, function() return 1 end), "2 2 2 2", "upto a number")
is(visited(function(i, _, p)
  return {upto = i.size == 4 and i, from = p.window and i}
end, nil, same), "1 2 3 4",
  "a bound that is false or nil is none")

bound = mr.program("nest", function(p)
  local i, j, k = p:axes("i", "j", "k")
  local X, Y = p:input("X", {i, j, k}), p:output("Y", {i})
  local most = p:carry("most", {i}, -math.huge)
  p:loop(j, function()
    local s = p:carry("s", {i, j}, 0)
    p:loop({k}, function() s:set(s + mr.rowsum(p:load(X), k)) end)
    most:set(mr.max(most, mr.rowmax(s, j)))
  end)
  Y:store(most)
end):bind{i = 2, j = 2, k = 2, dtype = "f64"}
inputs = bound:inputs()
inputs.X:fill{1, 2, 3, 4, 8, 7, 6, 5}
is(list(bound:reference(inputs, {tile = {i = 1, j = 1, k = 1}}).Y), "7 15",
  "a carry of an inner region")

-- A carry that is read before it is set holds i32 if that is said: f32 has no 2^24 + 1.
local running = mr.program("running", function(p)
  local i, t = p:axes("i", "t")
  local X, Y = p:input("X", {t, i}, "i32"), p:output("Y", {i}, "i32")
  local c = p:carry("c", {i}, 0, "i32")
  p:loop(t, {batch = true}, function()
    local x = p:load("load_x", X)
    p:task("step", function() c:set(c * 2 + x) end)
  end)
  Y:store(c)
end){i = 8, t = 3}
local X = mr.array("i32", {3, 8}, function(_, i) return (1 << 24) + i end)
is(running:reference{X = X}.Y:get(2), 7 * ((1 << 24) + 2), "a carry declared as i32")
local k = mr.search(running, mr.device "h200", {trials = 2, measure = false}).plan:compile{target = "host"}
ok(k:check{inputs = {X = X}, reference = "interpreter"}.ok and k:run{X = X}.Y:get(2) == 7 * ((1 << 24) + 2), "  also in a kernel")

bound = mr.program("two", function(p)
  local i, j, k = p:axes("i", "j", "k")
  local X, Y = p:input("X", {i, j, k}), p:output("Y", {i})
  local c = p:carry("c", {i}, 0)
  p:loop({j, k}, function() c:add(mr.rowsum(mr.rowsum(p:load(X), k), j)) end)
  Y:store(c)
end):bind{i = 2, j = 3, k = 2, dtype = "f64"}
inputs = bound:inputs()
inputs.X:fill(function(i, j, k) return 100 * i + 10 * j + k end)
is(list(bound:reference(inputs, {tile = {i = 1, j = 1, k = 1}}).Y), "729 1329",
  "a loop over two axes")

-- What functions return comes through.
local seen
mr.program("returns", function(p)
  local n = p:axes "n"
  local Y = p:output("Y", {n})
  seen = table.pack(p:phase("only", function()
    Y:store(p:task("t", function() return n:index():to "f32", nil end) + 1)
    return 1, nil
  end))
end):bind{n = 2}
is(seen.n, 2, "results of p:phase, with nil at the end")

-- What bind is given ----------------------------------------------------------------------

mr.program("options", function(p)
  local n = p:axes "n"
  is(n.size, 4, "axis.size is a number")
  is(math.type(n.size), "integer", "  without a fraction")
  is(n.name, "n", "axis.name")
  is(p.scale, 0.5, "p.NAME reads an option")
  is(p.nothing, nil, "  nil if it was not given")
  is(p.n, 4.0, "  or a size")
  is(p:axis("c", n.size / 2).size, 2, "p:axis with a size that is computed")
  local Y = p:output("Y", {n})
  is(Y.name, "Y", "tensor.name")
  is(Y.dtype, "f16", "tensor.dtype is p.dtype unless given")
  is(tostring(Y), "tensor Y: f16 {n}", "a tensor as text")
  is(tostring(n), "axis n: 4", "an axis as text")
  is(tostring(2 * n // 2 - 1), "n - 1", "an index expression as text")
  local v = p:task("v", function() return n:index() + 1 end)
  is(tostring(v), "value i32 {n}", "a value as text")
  is(tostring(p:carry("c", {n}, 0)), "carry c", "a carry as text")
  Y:store(v)
end):bind{n = 4.0, scale = 0.5, dtype = "f16"}

bound = mr.program("bf16", function(p)
  local n = p:axes "n"
  p:output("Y", {n}):store(n:index())
end):bind{n = 1}
is(bound.tensors[1].dtype, "bf16", "and bf16 if that was not given either")

-- A bound program -------------------------------------------------------------------------

bound = gemm:bind{m = 64, n = 32, k = 16}
is(bound.name, "gemm", "bound.name")
is(bound.axes.m .. " " .. bound.axes.n .. " " .. bound.axes.k, "64 32 16", "bound.axes")
local t = bound.tensors
is(#t, 3, "bound.tensors")
is(t[1].name .. t[1].role .. t[1].dtype .. table.concat(t[1].shape, "x"), "Ainputbf1664x16",
  "  an input")
is(t[3].name .. t[3].role .. t[3].dtype .. table.concat(t[3].axes, " "), "Coutputf32m n",
  "  an output")
like(tostring(bound), "^program gemm\n.*loop k\n.*task mma", "tostring is a listing")
is(getmetatable(bound), false, "its metatable is out of reach")
is(tostring(gemm), "program gemm", "a program as text")
is(gemm.name, "gemm", "prog.name")

local one, two = bound:inputs(), bound:inputs{seed = 2}
ok(one.A:max_error(bound:inputs{seed = 1}.A) == 0,
  "inputs are the same for the same seed, 1 if not given")
ok(one.A:max_error(two.A) > 0.1, "and others for another")
ok(one.A[1] ~= one.B[1], "each tensor has a stream of its own")
local low, high, mean = 1, -1, 0
for _, v in ipairs(one.A) do low, high, mean = math.min(low, v), math.max(high, v), mean + v end
ok(low >= -1 and low < -0.97 and high <= 1 and high > 0.97 and math.abs(mean / #one.A) < 0.1,
  "uniform in (-1, 1)", low, high, mean / #one.A)
is(one.C, nil, "outputs are no inputs")
bound = mr.program("ints", function(p)
  local n = p:axes "n"
  local Y = p:output("Y", {n}, "i32")
  local s = 0
  for _, d in ipairs {"i32", "i8", "i4"} do s = p:load(p:input(d, {n}, d)) + s end
  Y:store(s:to "i32")
end):bind{n = 4096}
for name, width in pairs {i32 = 32, i8 = 8, i4 = 4} do
  local lo, hi = 0, 0
  for _, v in ipairs(bound:inputs()[name]) do lo, hi = math.min(lo, v), math.max(hi, v) end
  local most = 2 ^ (width - 1)
  ok(lo < -0.99 * most and hi > 0.99 * most - 1, name .. " inputs have the full range", lo, hi)
end

-- Refusals: bind --------------------------------------------------------------------------

local function bad_bind(arguments, message)
  refuses(([[
local mr = require "millrace"
local t = mr.program("t", function(p)
  local m, n = p:axes("m", "n")
  local c = p:axis("c", p.c or 1)
  local causal, group = p.causal, p.group
  local Y = p:output("Y", {m, n})
  Y:store(m:index() + n:index())
end)

return t:bind%s
]]):format(arguments), "user.lua:10: " .. message)
end

bad_bind("{m=1}", "bind: size of axis 'n' is missing")
bad_bind("{m=1, N=1}", "bind: size of axis 'n' is missing; sizes have the names of axes: 'n', not 'N'")
bad_bind("{m=1, n=0}", "bind: size of axis 'n' must be an integer of at least 1, got 0")
bad_bind("{m=1, n=1.5}", "bind: size of axis 'n' must be an integer of at least 1, got 1.5")
bad_bind("{m='4', n=1}", "bind: size of axis 'm' must be an integer of at least 1, got '4'")
bad_bind("{m=1, n=1, c=-1}", "bind: size of axis 'c' must be an integer of at least 1, got -1")
bad_bind("{m=1, n=1, casual=true}",
  "bind: unknown size or option 'casual' of 't'; did you mean 'causal'?")
bad_bind("{m=1, n=1, xyzzy=true}", "bind: unknown size or option 'xyzzy' of 't' (known: c, causal, dtype, group, m, n)")
bad_bind("{m=1, n=1, dtype='bf17'}", "bind: unknown dtype 'bf17'; did you mean 'bf16'?")
bad_bind("{m=1, n=1, dtype=16}", "bind: unknown dtype 16")
bad_bind("{1, 2}", "bind: sizes and options are given by name, as in bind{m=4096, n=4096}")
bad_bind("(4096)", "bind: table of sizes expected, got 4096")
bad_bind("()", "bind: table of sizes expected, got nil")
refuses('local mr = require "millrace"\nmr.examples.gemm{m=1, n=1}',
  "user.lua:2: bind: size of axis 'k' is missing", "a shipped program names the caller's line")
refuses('local mr = require "millrace"\nlocal t = mr.program("t", function() end)\nt.bind{m=1}',
  "user.lua:3: bind: program expected, got table", "bind with a dot")

refuses([[
local mr = require "millrace"
local t = mr.program("even", function(p)
  local n = p:axes "n"
  p:check(n.size % 2 == 0, "n must be even")
end)
t{n=3}]], "user.lua:6: even: n must be even", "p:check speaks of the caller's line")

-- Refusals: the language ------------------------------------------------------------------

local head = [[
local mr = require "millrace"
local other
mr.program("other", function(p) other = {p = p, n = p:axes "n"}; other.v = other.n:index()
  p:output("Y", {other.n}):store(other.v) end):bind{n=4}
local t = mr.program("t", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n})
  local a, b = p:load(A), p:load(B)
]]

-- The code stands on line 9 of a program.
local function bad(code, message)
  refuses(head .. code .. "\nend)\nt:bind{m=4, n=4, k=4}", "user.lua:9: " .. message, code)
end

bad('p:axes(1)', "axes: name of an axis expected, got 1")
bad('p:axis("c")', "axis: size of axis 'c' is missing")
bad('p:axis("c", 1.5)', "axis: size of axis 'c' must be an integer of at least 1, got 1.5")
bad('p:axis("m", 1)', "axis 'm' exists already, since line 6; choose another name")
bad('p:axis("two words", 1)',
  "'two words' cannot name an axis; use letters, digits and '_', at most 63, no digit first")
bad('p:input(A, {m})', "input: name expected, got tensor")
bad('p:input("X", m)', "input: list of axes expected, got axis")
bad('p:input("X")', "input: list of axes expected, got nil")
bad('p:input("X", {m, 4})', "input: axis expected, got 4")
bad('p:input("X", {other.n})', "input: this axis belongs to another program")
bad('p:input("X", {m}, "f33")', "input: unknown dtype 'f33'; did you mean 'f32'?")
bad('p:batch("m")', "batch: axis expected, got 'm'")
bad('p:batch(m)', "batch axis 'm' comes after task 'load_A'; declare batch axes first")

bad('p:load(a)', "load: tensor expected, got value")
bad('p.load(A)', "load: to be called as p:load(...)")
bad('p:load(A, {m})', "load: 'A' has 2 dimensions, the index has 1")
bad('p:load(A, {m, k, n})', "load: 'A' has 2 dimensions, the index has 3")
bad('p:load(A, {nil, k})', "load: 'A' has 2 dimensions, the index lacks the one at 1")
bad('p:load(A, m)', "load: index {expression, ...} expected, got axis")
bad('p:load(A, {m, a})', "'load_A', an index of dimension 'k' of 'A', is bf16; an index is i32: cast it with :to \"i32\"")
bad("p:load(A, {B, k})", "load: a tensor is no index; an element of it is, if it is loaded first: p:load(B)")
bad('p:load(A, {m, "k"})', "load: axis, index expression or integer expected, got 'k'")
bad('p:load(A, {m, k / 2})', "an index expression is divided by //, which rounds down")
bad('p:load(A, {m, k * n})',
  "an index expression is a sum of axes times numbers: '*' needs a number")
bad('p:load(A, {m, k // n})',
  "an index expression is a sum of axes times numbers: '//' needs a number")
bad('p:load(A, {m, k + 0.5})', "+: 0.5 is not an integer")
bad('p:load(A, {m, k + a})',
  "+: an axis is no value; axis:index() is the index along it, axis.size its size")
bad('p:load(A, {m, k + other.n})', "+: axes of different programs")
bad('p:load("load_A", A)', "task 'load_A' exists already, since line 8; choose another name")
bad('C:store(a)',
  "a value over {m, k} cannot be stored to 'C', which is indexed by {m, n}; " ..
  "reduce or broadcast it to the same axes")
bad('C.store(a)', "store: tensor expected, got value")
bad('C:store("x")', "store: value expected, got nil")
bad('C:store(p:task("twice", function() local c = a + a end))',
  "store: value expected, got nil; task 'twice' returns none: its function must return the value that it computes")

bad('local v = p:task("twice", function() local c = a + a end) C:store("c", v)',
  "store: value expected, got nil; task 'twice' returns none: its function must return the value that it computes")
bad('local v = p:task("twice", function() local c = a + a end) C:store(v)',
  "store: value expected, got nil; task 'twice' returns none: its function must return the value that it computes")
bad('local v = p:task("twice", function() local c = a + a end) C:store(mr.exp(v))',
  "exp: value expected, got nil; task 'twice' returns none: its function must return the value that it computes")
bad('local v = p:task("twice", function() local c = a + a end) p:mma(a, v)',
  "mma: value expected, got nil; task 'twice' returns none: its function must return the value that it computes")
bad('p:mma(a, A)', "mma: value expected, got tensor; p:load gives its tile")
bad('p:mma(a, other.v)', "mma: this value belongs to another program")
bad('return a + n', "+: axis 'n' is no value; n:index() is the index along it, n.size its size")
bad('return n + a',
  "+: an axis is no value; axis:index() is the index along it, axis.size its size")
bad('return a + A', "+: value expected, got tensor; p:load gives its tile")
bad('return a + "1"', "+: value expected, got '1'")
bad('return a + nil', "+: value expected, got nil")
bad('return a + (n + 1)', "+: value expected, got index expression n + 1; axis:index() is the index along an axis as a value")
local of_floor = "'//' of values is there for an i32 and a number that is a power of two; of others write mr.floor(x / y), which is computed in f32"
local of_mod = "'%' of values is there for an i32 and a number that is a power of two; of others write x - y * mr.floor(x / y), which is computed in f32"
local of_power = "'^' is no operation of values; write x * x for a square, and mr.exp2(y * mr.log2(x)) for x^y of x > 0"
bad('return a // 2', of_floor)
bad('return a % 2', of_mod)
bad('return n:index() // 3', of_floor)
bad('return 8 % n:index()', of_mod)
bad('return a ^ 2', of_power)
bad('return 2 ^ a', of_power)
bad('return n:index() * 0xD256D193', "*: the constant 3528905107 is no i32, which goes from -2^31 to 2^31 - 1, and the value is one; "
  .. "write -766062189 for the i32 of the same 32 bits, or 3528905107.0 for an f32")
bad('return mr.where(a:gt(0), n:index(), 1 << 40)', "where: the constant 1099511627776 is no i32, which goes from -2^31 to 2^31 - 1, "
  .. "and the value is one; write 1099511627776.0 for an f32")
bad('return a:max(0)', "value has no 'max'; along an axis it is mr.rowmax(x, axis), of several values mr.max(x, ...)")
bad('return a:sum(n)', "value has no 'sum'; along an axis it is mr.rowsum(x, axis)")
bad('return mr.max(a, n)', "max: axis 'n' is no value; mr.rowmax(x, n) reduces x along it")
bad('return a < b', "'<' can only give true or false: use a:lt(b) or a:gt(b) for '>', of an axis a:index():lt(b); "
  .. "math.max and math.min compare, too: use mr.max, mr.min")
bad('return a >= b', "'<=' can only give true or false: use a:le(b) or a:ge(b) for '>=', of an axis a:index():le(b)")
bad('return a == b', "'==' can only give true or false: use a:eq(b), of an axis a:index():eq(b)")
bad('return n:index() <= 1',
  "'<=' can only give true or false: use a:le(b) or a:ge(b) for '>=', of an axis a:index():le(b)")
bad('return m < n', "'<' can only give true or false: use a:lt(b) or a:gt(b) for '>', of an axis a:index():lt(b); "
  .. "math.max and math.min compare, too: use mr.max, mr.min")
bad('return a:rowsm(k)', "value has no 'rowsm'; did you mean 'rowsum'?")
bad('return n:idx()', "axis has no 'idx'")
bad('return A.read', "tensor has no 'read'")
bad('return mr.exp2(2)', "exp2: value expected, got 2")
bad('return mr.exp(n)', "exp: value expected, got axis")
bad('return a.exp2()', "exp2: value expected, got nil")
bad('return mr.max(a)', "max: two arguments or more expected, got nil")
bad('return mr.max(1, 2)', "max: value expected, got 1")
bad('return mr.where(true, a, b)', "where: value expected, got true")
bad('return mr.rowsum(a, "k")', "rowsum: axis expected, got 'k'")
bad('return mr.rowsum(a)', "rowsum: axis expected, got nil")
bad('return a:to "bf17"', "to: unknown dtype 'bf17'; did you mean 'bf16'?")
bad('return a:to()', "to: unknown dtype nil")
bad('return mr.unpack(a, k, n)', "unpack: unknown dtype nil")

bad('p:carry("c", m, 0)', "carry: list of axes expected, got axis")
bad('p:carry("c", {m})', "carry: initial number expected, got nil")
bad('p:carry({m}, 0)', "carry: name expected, got table")
bad('p:carry("c", {m}, 0):set()', "set: value expected, got nil")
bad('p:carry("c", {m}, 0, "i3")', "carry: unknown dtype 'i3'; did you mean 'i8'?")
bad('p:carry("c", {m}, 0, "bf16")', "carry 'c' cannot hold bf16; a carry holds f32 or i32")
bad('p:carry("c", {m}, 0.5, "i32")', "carry 'c' holds i32 and cannot begin with 0.5; begin with an integer from -2^31 to 2^31 - 1")
bad('p:carry("c", {m, k}, 0, "i32"):add(a)', "carry 'c' holds i32, and the value is bf16; cast this value to i32")
bad('p:carry("c", {m}, 0).add(a)', "add: carry expected, got value")
bad('p:loop("k", function() end)', "loop: list of axes expected, got 'k'")
bad('p:loop(nil, function() end)', "loop: axis, or list of axes, expected, got nil; p:axes gives an axis for each of its names")
bad('p:loop(k)', "loop: function expected, got nil")
bad('p:loop(k, 1, function() end)', "loop: table of options expected, got 1")
bad('p:loop(k, {})', "loop: function expected, got nil")
bad('p:loop(k, {unto=m}, function() end)', "loop: unknown option 'unto'; did you mean 'upto'?")
bad('p:loop(k, {batch=1}, function() end)', "loop: batch: true or false expected, got 1")
bad('p:loop(k, {batch=true}, function() local x = p:load(A) x:rowsum(k) end)',
  "sum over 'k': a tile has one value of a batch axis; do not declare 'k' batch, or leave this out")
bad('p:loop(k, {batch=true}, function() end) mr.unpack(p:load(p:input("W", {m, n}, "i32")), n, k, "i4")',
  "unpack: axis 'k' is batch in the loop over {k} at line 9, but words hold several of it; do not declare it batch")
bad('local w = mr.unpack(p:load(p:input("W", {m, n}, "i32")), n, k, "i4") p:loop(k, {batch=true}, function() end)',
  "axis 'k' is unpacked from words, several at a time, so it cannot be batch")
bad('p:loop(k, {upto=a}, function() end)',
  "loop: 'upto' is an index made of axes and numbers; for a value, write length = ..., at which the axis ends")
bad('p:loop(k, {upto=k}, function() end)',
  "'upto' of the loop over 'k' depends on 'k' itself; use axes from outside the loop")
bad('p:task("t")', "task: function expected, got nil")
bad('p:task(function() end)', "task: name expected, got function")
bad('p:task("t", function() end)',
  "task 't' computes nothing; put element-wise operations into it or remove it")
bad('p:phase(function() end)', "phase: name expected, got function")
bad('p.x = 1', "p.x cannot be set: p holds what bind was given")
bad('return other.p:axis("x", 1)',
  "the program is complete; p is of use only while its function runs")

-- Mistakes that only the complete program shows name the line of what they are about, those of a
-- missing statement the line of the bind.
refuses(head .. "  C:store(m:index() + n:index())\nend)\nt:bind{m=4, n=4, k=4}",
  "user.lua:8: nothing that is stored depends on 'load_A'; use its value or remove it")
refuses([[
local mr = require "millrace"
local t = mr.program("t", function(p) p:axes "n" end)
t{n=1}]],
  "user.lua:3: program 't' has no output; declare one and store it")

refuses('local mr = require "millrace"\nmr.program("t")',
  "user.lua:2: program: function expected, got nil")
refuses('local mr = require "millrace"\nmr.program(print)',
  "user.lua:2: program: name expected, got function")
refuses('local mr = require "millrace"\nmr.program("a b", print)',
  "user.lua:2: program: 'a b' cannot name a program; use letters, digits and '_'")
refuses('local mr = require "millrace"\nreturn mr.examples.gem',
  "user.lua:2: examples: there is no example 'gem'; did you mean 'gemm'?")
refuses('local mr = require "millrace"\nreturn mr.examples.attention',
  "user.lua:2: examples: there is no example 'attention'; did you mean 'flash_attention'?")
refuses('local mr = require "millrace"\nreturn mr.examples[1]',
  "user.lua:2: examples: there is no example 1; there are " .. tostring(mr.examples):gsub("^examples%s*", ""):gsub("%s+", ", "))

-- Refusals: inputs and the reference ------------------------------------------------------

local function bad_run(code, message)
  refuses(([[
local mr = require "millrace"
local t = mr.program("t", function(p)
  local m, k = p:axes("m", "k")
  local A, Y = p:input("A", {m, k}), p:output("Y", {m})
  local y = p:carry("y", {m}, 0)
  p:loop(k, function() y:add(p:load(A):rowsum(k)) end)
  Y:store(y)
end):bind{m=4, k=8}
local a = mr.array("f32", {4, 8})
return %s
]]):format(code), "user.lua:10: " .. message, code)
end

bad_run("t:inputs(1)", "inputs: table of options expected, got 1")
bad_run("t:inputs{sed=1}", "inputs: unknown option 'sed'; did you mean 'seed'?")
bad_run("t:inputs{seed='x'}", "inputs: seed must be an integer, got 'x'")
bad_run("t:inputs{1}", "inputs: options are given by name: inputs{seed=...}")
bad_run("t.inputs{seed=1}", "inputs: program expected, got table; it is called with a colon, as in program:inputs{...}")
bad_run("t:reference()", "reference: table of inputs expected, got nil")
bad_run("t:reference(a)", "reference: table of inputs expected, got millrace.array")
bad_run("t:reference{}", "reference: input 'A' is missing")
bad_run("t:reference{A=1}", "reference: input 'A' must be an array, got 1; mr.array(\"bf16\", {4, 8}, {...}) makes one of its elements in row-major order")
bad_run("t:reference{A={1, 2}}", "reference: input 'A' must be an array, got table; mr.array(\"bf16\", {4, 8}, {...}) makes one of its elements in row-major order")
bad_run("t:reference{A=mr.array('f32', {8, 4})}",
  "reference: input 'A' has shape {8, 4}, the program wants {4, 8}")
bad_run("t:reference{A=a, B=a}", "reference: unknown input 'B' (known: A)")
bad_run("t:reference{a}", "reference: inputs are given by name")
bad_run("t:reference({A=a}, {til={}})", "reference: unknown option 'til'; did you mean 'tile'?")
bad_run("t:reference({A=a}, {tile=1})", "reference: tile must be a table, got 1")
bad_run("t:reference({A=a}, {tile={n=1}})", "reference: unknown axis 'n' (known: m, k)")
bad_run("t:reference({A=a}, {tile={m=0}})",
  "reference: tile extent of axis 'm' must be an integer of at least 1, got 0")
bad_run("t:reference({A=a}, {tile={4, 4}})",
  "reference: tile extents are given by axis name: {m=128, n=128}")
bad_run("t:reference({A=a}, {round=1})", "reference: round must be true or false, got 1")

-- Errors of the user's own functions come through unchanged.
local thrown = {}
for what, f in pairs {
  ["the program"] = function() error(thrown) end,
  ["a loop"] = function(p) p:loop(p:axis("c", 2), function() error(thrown) end) end,
  ["a task"] = function(p) p:task("t", function() error(thrown) end) end,
  ["a phase"] = function(p) p:phase("t", function() error(thrown) end) end,
} do
  local _, got = pcall(mr.program("t", f), {})
  is(got, thrown, "an error in " .. what)
end
local function endless(p) return endless(p) + 1 end
local good, message = pcall(mr.program("t", endless), {})
ok(not good, "a program that recurses")
like(message, "stack overflow", "  says so")
good, message = pcall(mr.program("t", function(p)
  local function nest(i)
    p:loop(p:axis("a" .. i, 1), function() nest(i + 1) end)
  end
  nest(1)
end), {})
ok(not good, "loops nested without end")
like(message, "^tests/lua/tile%.t%.lua:%d+: loops nest at most 16 deep; one loop may run over several axes$",
  "  are refused")

-- A long chain of what is made of indices alone takes no more of the stack than a short one.
ok(pcall(function()
  return mr.program("t", function(p)
    local n = p:axes "n"
    local X, Y = p:input("X", {n}, "i32"), p:output("Y", {n}, "i32")
    local x = p:load(X)
    Y:store(p:task("sum", function()
      local sum = n:index()
      for i = 1, 200000 do sum = sum + i end
      return x + sum
    end))
  end){n = 8}
end), "a program of many steps")

-- Lua can yield out of a program and come back.
local co = coroutine.wrap(function()
  return mr.program("t", function(p)
    local n = p:axes "n"
    local Y = p:output("Y", {n})
    p:task("t", function()
      coroutine.yield("in between")
      Y:store(n:index())
    end)
  end):bind{n = 2}
end)
is(co(), "in between", "yield from inside a task")
good, message = pcall(co)
ok(not good, "  and the program goes on")
like(message, "store 'store_Y' stands inside task 't'", "  to its own mistake")

-- Programs are collected.
local live = setmetatable({}, {__mode = "k"})
for _ = 1, 50 do live[gemm:bind{m = 64, n = 64, k = 64}] = true end
collectgarbage()
collectgarbage()
is(next(live), nil, "bound programs are collected")

-- An index that is nil is not all of the tensor.
for call, said in pairs{['Y:store(x, idx)'] = "store", ['Y:store("s", x, idx)'] = "store", ['T:add(x, idx)'] = "add", ['p:load(X, idx)'] = "load",
  ['p:load("l", X, idx)'] = "load"} do
  tap.refuses(([[
local mr = require "millrace"
mr.program("x", function(p)
  local m, n = p:axes("m", "n")
  local X, Y, T = p:input("X", {m, n}), p:output("Y", {m, n}), p:output("T", {m, n}, "f32")
  local x = p:load(X)
  %s
end):bind{m = 64, n = 64}]]):format(call), ("user.lua:6: %s: the index is nil; is a name misspelt? What is not given is left out: %s"):format(said,
    said == "load" and "p:load([name,] tensor[, index])" or ("tensor:%s([name,] value[, index])"):format(said)), call)
end

do
  local good, message = pcall(mr.examples.flash_attention, {batch = 2, heads = 16, seq = 8192, dim = 128})
  ok(not good and message:find("size of axis 'b' is missing; sizes have the names of axes, and no axis yet is batch, dim, heads, seq", 1, true),
    "other names than those of axes are named", message)
end

-- A phase whose loop has an axis as batch leaves its tile to other phases.
do
  local dir = arg[0]:match "^(.*/)" or "./"
  local tensors = dofile(dir .. "lib/tensors.lua")
  local bound = mr.program("named", function(p)
    local h, t, s, d = p:axes("h", "t", "s", "d")
    local block = p:axis("block", t.size // 8)
    local Blocks, X = p:input("Blocks", {h, t, s}, "i32"), p:input("X", {t, d}, "f32")
    local Mask, Y = p:temp("Mask", {h, block, t}, "i32"), p:output("Y", {h, block, d}, "f32")
    p:phase("mask", function()
      p:batch(h)
      local named = p:load("load_blocks", Blocks)
      Mask:store("store_mask", p:task("mask", function() return mr.rowmax(mr.where(named:eq(block:index()), 1, 0), s) end))
    end)
    p:phase("sum", function()
      p:batch(h, block)
      local y = p:carry("y", {d}, 0)
      p:loop(t, {when = function() return p:load(Mask) end}, function()
        y:add(p:load("load_x", X) * (t:index() + 1):to "f32")
      end)
      Y:store(y)
    end)
  end){h = 2, t = 40, s = 3, d = 8}
  local graph = bound:graph{tile = {t = 16, block = 2}}
  is(graph.tile.t, 16, "an axis that a loop of one phase has as batch is tiled in another phase")
  is(tostring(bound):match "axis t 40\n.*axis t ", nil, "  and listed once")
  local B, b = tensors.tensor("i32", {2, 40, 3}, function(h, t, s) return (h * 3 + t * 7 + s * 5) % 6 end)
  local X, x = tensors.tensor("f32", {40, 8}, tensors.mixed)
  local function want(h, block, d)
    local sum = 0
    for t = 0, 39 do
      local named = false
      for s = 0, 2 do named = named or b(h, t, s) == block end
      sum = sum + (named and x(t, d) * (t + 1) or 0)
    end
    return sum
  end
  dofile(dir .. "lib/follows.lua")(tap)("a mask by tiles, then step by step", bound, {Blocks = B, X = X}, want)
  local plan = mr.plan(graph, mr.device "h200")
  for _, task in ipairs(plan.tasks) do plan:append(task.name) end
  plan:fill_waits()
  local worst, report = dofile(dir .. "lib/on_host.lua").worst(plan, 2)
  ok(worst < 1e-5, "  with tiles of 2 x 16", report or worst)
end

-- What is made of indices is computed where it is used, wherever the program has it: until then it would take registers.
do
  local function masked(early)
    return mr.program("masked", function(p)
      local m, n = p:axes("m", "n")
      local X, Y = p:input("X", {m, n}, "f32"), p:output("Y", {m, n}, "f32")
      local x = p:load(X)
      Y:store(p:task("mask", function()
        local inside = early and n:index():le(m:index() + 1)
        local y = mr.exp2(x * 2)
        return mr.where(inside or n:index():le(m:index() + 1), y, 0)
      end))
    end){m = 64, n = 64}
  end
  local function operations(bound)
    return (tostring(bound):gsub("%%%d+", "%%"))
  end
  is(operations(masked(true)), operations(masked(false)), "a mask that is written early is computed late")
end

-- An index that is compared with a value: the value's own operations come first.
do
  local dir = arg[0]:match "^(.*/)" or "./"
  local tensors = dofile(dir .. "lib/tensors.lua")
  local bound = mr.program("compare", function(p)
    local i, b = p:axes("i", "b")
    local First, Y = p:input("First", {i}, "i32"), p:output("Y", {i}, "i32")
    local first = p:load("load_first", First)
    Y:store(p:task("compare", function() return mr.where(b:index():ge(first // 16), 1, 0):rowsum(b) end))
  end){i = 40, b = 24}
  local First, first = tensors.tensor("i32", {40}, function(i) return 13 * i - 16 end)
  dofile(dir .. "lib/follows.lua")(tap)("an index compared with value // 16", bound, {First = First}, function(i)
    return math.max(0, 24 - math.max(0, first(i) // 16))
  end)
end

-- A value that is subtracted in an index, and in a length; an output that a later phase loads, after additions, too.
do
  local dir = arg[0]:match "^(.*/)" or "./"
  local tensors, follows = dofile(dir .. "lib/tensors.lua"), dofile(dir .. "lib/follows.lua")(tap)
  local From, from = tensors.tensor("i32", {12}, function(b) return (7 * b) % 11 - 1 end)
  local X, x = tensors.tensor("f32", {12, 16}, function(b, n) return 16 * b + n end)
  follows("an index minus a value", mr.program("mirror", function(p)
    local b, n = p:axes("b", "n")
    local X, From, Y = p:input("X", {b, n}, "f32"), p:input("From", {b}, "i32"), p:output("Y", {b, n}, "f32")
    Y:store(p:load("load_x", X, {b, 1 + n - p:load("load_from", From)}))
  end){b = 12, n = 16}, {X = X, From = From}, function(b, n)
    local at = 1 + n - from(b)
    return at >= 0 and at < 16 and x(b, at) or 0
  end)
  for _, written in ipairs{function(b, v) return 3 + b - v end, function(b, v) return -(v - b:index() - 3) end} do
    follows("a length minus a value", mr.program("shorter", function(p)
      local b, n = p:axes("b", "n")
      local X, From, Y = p:input("X", {b, n}, "f32"), p:input("From", {b}, "i32"), p:output("Y", {b}, "f32")
      p:batch(b)
      local sum = p:carry("sum", {}, 0)
      p:loop(n, {length = written(b, p:load("load_from", From))}, function() sum:add(p:load("load_x", X):rowsum(n)) end)
      Y:store(sum)
    end){b = 12, n = 16}, {X = X, From = From}, function(b)
      local sum = 0
      for n = 0, math.min(16, 3 + b - from(b)) - 1 do sum = sum + x(b, n) end
      return sum
    end)
  end
  -- Of floats in the order of their bits as integers: the greatest is that of the greatest float.
  local V, v = tensors.tensor("f32", {12, 16}, function(b, n) return ((b * 16 + n) * 37 % 64 - 31) * 0.375 end)
  follows("bits of floats", mr.program("bits", function(p)
    local b, n = p:axes("b", "n")
    local X, Y = p:input("V", {b, n}, "f32"), p:output("Y", {b, n}, "f32")
    local x = p:load("load_v", X)
    Y:store(p:task("order", function()
      local bits = x:bits()
      local key = mr.where(bits:lt(0), bits ~ 0x7fffffff, bits):rowmax(n)
      local most = mr.where(key:lt(0), key ~ 0x7fffffff, key):bits()
      return most + (x:bits() & ~0x7fff):bits() + (x:to "bf16":bits() >> 23 & 255):to "f32"
    end))
  end){b = 12, n = 16}, {V = V}, function(b, n)
    local most, i = -1 / 0, string.unpack("i4", string.pack("f", v(b, n)))
    for j = 0, 15 do most = math.max(most, v(b, j)) end
    return most + string.unpack("f", string.pack("i4", i & ~0x7fff)) + (i >> 23 & 255)
  end)
  local good, message = pcall(function()
    return mr.program("of_truth", function(p)
      local b = p:axes("b")
      local x, Y = p:load(p:input("V", {b}, "f32")), p:output("Y", {b}, "i32")
      Y:store(x:gt(0):bits())
    end){b = 12}
  end)
  tap.ok(not good and message:find("bits: of a float, as an f32, or of an i32; the value is bool", 1, true), "truth values have none", message)
  follows("outputs that are loaded", mr.program("again", function(p)
    local b, n = p:axes("b", "n")
    local X, S, Y = p:input("X", {b, n}, "f32"), p:output("S", {b}, "f32"), p:output("Y", {b, n}, "f32")
    p:phase("begin", function() S:store(p:load(X, {b, 3})) end)
    p:phase("add", function()
      p:batch(n)
      S:add(p:load(X))
    end)
    p:phase("use", function() Y:store(p:load("load_again", X) + p:load(S)) end)
  end){b = 12, n = 16}, {X = X}, function(b, n) return x(b, n) + x(b, 3) + 16 * 16 * b + 120 end)
end

tap.done_testing()
