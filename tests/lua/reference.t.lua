-- The plain kernel is the interpreter's equal: on a CPU, and on the attached device if there is
-- one, at all that the tile language has.
local mr = require "millrace"
local core = require "millrace.core"
local here = arg[0]:match "^(.*/)" or "./"
local tap = dofile(here .. "tap.lua")

local devices = {"host"}
if core.attached() then devices[2] = "device" end

-- Greatest error of an element, relative to the greatest element or, if `own`, to itself;
-- infinite where only one of the two is NaN, or an infinity.
local function distance(got, want, own)
  local top, most = 0, 0
  if #got ~= #want then return math.huge end
  for i = 1, #want do
    local w = math.abs(want[i])
    if w == w and w < math.huge then top = math.max(top, w) end
  end
  for i = 1, #want do
    local x, y = got[i], want[i]
    if x ~= y and (x == x or y == y) then
      local d = math.abs(x - y) / (own and math.abs(y) or top)
      most = d < math.huge and math.max(most, d) or math.huge
    end
  end
  return most
end

-- The same answer, by whatever way.
local function agree(what, bound, inputs, options, tolerance, own)
  local o = {}
  for k, v in pairs(options or {}) do o[k] = v end
  local want = bound:reference(inputs, o)
  for _, device in ipairs(devices) do
    o.on = device
    local good, got = pcall(bound.reference, bound, inputs, o)
    for name, array in pairs(want) do
      local d = good and distance(got[name], array, own)
      tap.ok(good and d <= (tolerance or 1e-12), ("%s: %s on the %s"):format(what, name, device),
        "distance " .. tostring(d), not good and got or nil)
    end
  end
end

-- Programs of many kinds, with tiles of their own and given ones ---------------------------------

dofile(here .. "programs.lua")(function(name, sizes, tiles, body)
  local bound = mr.program(name, body):bind(sizes)
  local inputs = bound:inputs{seed = 11}
  agree(name, bound, inputs)
  agree(name .. " in tiles", bound, inputs, {tile = tiles[1]})
end)

-- The shipped programs -------------------------------------------------------------------------

for _, case in ipairs{
  {"matmul_sum", {m = 37, n = 53, k = 29}, {m = 300, n = 130, k = 70}},
  {"gemm", {m = 37, n = 53, k = 29, a = "km", bias = true, activation = "gelu"},
    {m = 260, n = 136, k = 200, activation = "silu"}},
  {"flash_attention", {b = 1, h = 4, hkv = 2, m = 37, n = 53, d = 19, causal = true},
    {b = 2, h = 2, m = 150, n = 140, d = 64, softcap = 2.5},
    {b = 1, h = 1, m = 200, d = 32, causal = true, window = 70}},
  {"flash_decoding", {b = 1, h = 4, n = 53, d = 19, hkv = 2, splits = 7}, {b = 2, h = 8, n = 700, d = 64, splits = 8}},
  {"chunk_state", {b = 1, s = 90, h = 4, p = 7, n = 11, chunk = 37, g = 2}, {b = 2, s = 300, h = 2, p = 64, n = 80}},
  {"chunk_scan", {b = 1, s = 90, h = 4, p = 7, n = 11, chunk = 37, g = 2, z = true},
    {b = 1, s = 300, h = 2, p = 64, n = 80}},
  {"dequant_gemm", {m = 37, n = 53, k = 88, wtype = "e2m1", group = 24},
    {m = 40, n = 136, k = 512, wtype = "i8"}, {m = 40, n = 136, k = 512, dtype = "f16"}},
  {"conv2d", {n = 2, c = 5, h = 13, w = 11, k = 7, r = 3, s = 2, stride = 2, pad = 1},
    {n = 1, c = 32, h = 20, w = 20, k = 70, r = 3, s = 3, pad = 1}},
} do
  for i = 2, #case do
    local bound = mr.examples[case[1]](case[i])
    local inputs = bound:inputs{seed = i}
    agree(("%s, case %d"):format(case[1], i - 1), bound, inputs)
    -- A difference in the last bit of exp2 on a device may change how a value is rounded.
    if i == 2 then agree(case[1] .. ", rounded", bound, inputs, {round = true}, #devices > 1 and 5e-3 or nil) end
  end
end

-- Numbers of every kind ------------------------------------------------------------------------

local inf <const>, nan <const> = math.huge, 0 / 0
local special <const> = {
  0.0, -0.0, 1, -1, 0.5, 1.5, 2.5, -2.5, 3.5, 6, 6.1, 7, -8, 7.49, 0.3, -0.7, 100, 127.5, -128.5, 240, 448, 449,
  464, 465, 57344, 61440, 65504, 65519, 65520, 1e5, -1e5, 2 ^ -6, 2 ^ -7, 2 ^ -9, 2 ^ -10, 1.5 * 2 ^ -10, 2 ^ -14,
  2 ^ -16, 2 ^ -17, 2 ^ -24, 2 ^ -25, 1.5 * 2 ^ -25, 2 ^ -126, 2 ^ -133, 2 ^ -134, 1 + 2 ^ -8, 1 + 2 ^ -7 + 2 ^ -8,
  1 + 2 ^ -9, 1 + 2 ^ -11, 1 + 2 ^ -12, 3.3e38, 3.39e38, 3.4e38, 3.5e38, 1e300, -1e300, 2147483647, -2147483648,
  2147483648.5, 4e9, inf, -inf, nan,
}
local all <const> = mr.array("f64", {#special}, special)

-- One value, or two that meet in every pair.
local function unary(what, f, options, dtype, out)
  local bound = mr.program("unary", function(p)
    local n = p:axes "n"
    local X, Y = p:input("X", {n}, dtype or "f64"), p:output("Y", {n}, out or "f64")
    Y:store(f(p:load(X)))
  end):bind{n = #special}
  agree(what, bound, {X = all}, options, 2e-15, true)
end
local function binary(what, f, dtype)
  local bound = mr.program("binary", function(p)
    local m, n = p:axes("m", "n")
    local A, B = p:input("A", {m}, dtype), p:input("B", {n}, dtype)
    local Y = p:output("Y", {m, n}, "f64")
    Y:store(f(p:load(A), p:load(B)))
  end):bind{m = #special, n = #special}
  agree(what, bound, {A = all, B = all}, nil, 2e-15, true)
end

local dtypes <const> = {"f64", "f32", "tf32", "f16", "bf16", "e4m3", "e5m2", "e2m1", "e8m0", "i32", "i8", "u8", "i4"}
for _, t in ipairs(dtypes) do
  unary("load of " .. t, function(x) return x:to "f64" end, nil, t)
  unary("cast to " .. t, function(x) return x:to(t):to "f64" end)
  unary("rounding to " .. t, function(x) return x:to(t):to "f64" end, {round = true})
  if not t:find "^[iu]" then
    unary("store of " .. t, function(x) return t == "e8m0" and x:to(t) or x end, {round = true}, nil, t)
  end
end

local functions <const> = {"exp2", "log2", "sqrt", "rsqrt", "tanh", "erf", "sin", "cos", "abs", "floor"}
for _, name in ipairs(functions) do unary(name, mr[name]) end
unary("minus", function(x) return -x end)

-- So little work is compiled without optimisation. All of this together, for many rows of which one counts, is optimised.
local function together(rows, options)
  local bound = mr.program("together", function(p)
    local n, r = p:axes("n", "r")
    local X, counts = p:input("X", {n}, "f64"), p:load(p:input("first", {r}, "f64")):eq(1)
    local function add(name, y)
      p:output(name, {n}, "f64"):store(mr.rowsum(mr.where(counts, y, 0), r))
    end
    for _, t in ipairs(dtypes) do add("as_" .. t, p:load(X):to(t):to "f64") end
    for _, name in ipairs(functions) do add(name .. "_of", mr[name](p:load(X))) end
  end):bind{n = #special, r = rows}
  agree("together", bound, {X = all, first = mr.array("f64", {rows}, function(i) return i == 1 and 1 or 0 end)},
    options, 2e-15, true)
end
together(4000)
together(4000, {round = true})
binary("sum", function(x, y) return x + y end, "f64")
binary("difference", function(x, y) return x - y end, "f64")
binary("product", function(x, y) return x * y end, "f64")
binary("quotient", function(x, y) return x / y end, "f64")
binary("minimum", mr.min, "f64")
binary("maximum", mr.max, "f64")
binary("comparisons", function(x, y)
  local function bit(c, b) return mr.where(c, b, 0) end
  return bit(x:lt(y), 1) + bit(x:le(y), 2) + bit(x:eq(y), 4) + bit(x:ne(y), 8)
    + bit(x:lt(y) & y:lt(3), 16) + bit(x:lt(y) | y:lt(3), 32) + bit(x:lt(y) ~ y:lt(3), 64) + bit(~x:lt(y), 128)
end, "f64")
for what, f in pairs{
  ["+ - * of i32"] = function(x, y) return (x + y) * (x - y) - x * y + mr.abs(x) - (-y) end,
  ["bits of i32"] = function(x, y) return (x & y) ~ (x | ~y) ~ (x << y) ~ (x >> y) ~ x:lshr(y) end,
  ["bits that are set"] = function(x, y) return mr.popcount(x ~ y) end,
  ["minimum and maximum of i32"] = function(x, y) return mr.max(x, y) - mr.min(x, y) * 3 end,
} do
  binary(what, f, "i32")
end

-- Words: every type that fits into one, with the bits that mean NaN and infinity.
for t, per in pairs{f16 = 2, bf16 = 2, e4m3 = 4, e5m2 = 4, e2m1 = 8, e8m0 = 4, i8 = 4, u8 = 4, i4 = 8} do
  local bound = mr.program("words", function(p)
    local m, k = p:axes("m", "k")
    local w = p:axis("w", (k.size + per - 1) // per)
    local W, Y = p:input("W", {m, w}, "i32"), p:output("Y", {m, k}, "f64")
    Y:store(mr.unpack(p:load(W), w, k, t):to "f64")
  end):bind{m = 5, k = 331}
  agree("words of " .. t, bound, bound:inputs{seed = 3}, nil, 0, true)
end

-- Integers along axes, a scan over all of a stored axis, more axes than a matrix has --------------

local bound = mr.program("integers", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B = p:input("A", {m, k}, "i32"), p:input("B", {n, k}, "i32")
  local C, S = p:output("C", {m, n}, "i32"), p:output("S", {m, n}, "i32")
  local R = p:output("R", {m}, "i32")
  local a, c = p:load(A), p:mma(p:load(A), p:load(B))
  C:store(c)
  S:store(mr.cumsum(c, n) ~ mr.cummax(c, n) ~ mr.cummin(c, n))
  R:store(mr.rowsum(a, k) ~ mr.rowmax(a, k) ~ mr.rowmin(a, k))
end):bind{m = 70, n = 150, k = 33}
agree("integers", bound, bound:inputs{})
agree("integers in tiles", bound, bound:inputs{}, {tile = {m = 9, n = 31}})

bound = mr.program("many_axes", function(p)
  local a, b, c, d, e = p:axes("a", "b", "c", "d", "e")
  local X, W = p:input("X", {a, b, c, d}, "f16"), p:input("W", {e, d, b}, "e4m3")
  local Y = p:output("Y", {c, e, a})
  local y = p:carry("y", {e, a, c}, 0.5)
  p:loop({b, d}, function() y:add(p:mma(p:load(X), p:load(W))) end)
  Y:store(y)
end):bind{a = 7, b = 5, c = 11, d = 13, e = 6}
agree("many axes", bound, bound:inputs{})
agree("many axes in tiles", bound, bound:inputs{}, {tile = {a = 3, b = 2, c = 4, d = 5, e = 5}})

-- A value with the operators of an index expression, for masks that say what bounds say.
local Position = {}
local function position(v) return setmetatable({v = v}, Position) end
local function plain(x) return getmetatable(x) == Position and x.v or x end
function Position.__add(a, b) return position(plain(a) + plain(b)) end
function Position.__sub(a, b) return position(plain(a) - plain(b)) end
function Position.__mul(a, b) return position(plain(a) * plain(b)) end
function Position.__idiv(a, b) return position(mr.floor((a.v + 0.5) / b)) end
function Position.__mod(a, b) return a - a // b * b end

-- Which tiles a loop visits: each adds powers of two to what is seen of it.
for i, bounds in ipairs{
  function(j) return nil, j end, function(j) return j, nil end, function(j) return j - 3, j + 2 end,
  function(j) return j // 4 % 3, j // 2 % 5 + 1 end, function(j) return 7 - j // 3, 20 - j % 16 end,
  function(j) return j * 2 - 9, j * 3 - 14 end, function(j) return j + 40, j - 40 end,
} do
  local visits = mr.program("visits", function(p)
    local m, n = p:axes("m", "n")
    local X, Y = p:input("X", {m}, "f64"), p:output("Y", {m}, "f64")
    local from, upto = bounds(m)
    local y = p:carry("y", {m}, 0)
    p:loop(n, {from = from, upto = upto}, function()
      local least, most = bounds(position(m:index():to "f64"))
      local inside = n:index():ge(0)
      if least then inside = inside & n:index():ge(plain(least)) end
      if most then inside = inside & n:index():le(plain(most)) end
      y:set(y + mr.rowsum(mr.where(inside, mr.exp2(n:index():to "f64"), 0), n))
    end)
    Y:store(y + p:load(X))
  end):bind{m = 30, n = 24}
  for _, tile in ipairs{{m = 1, n = 1}, {m = 5, n = 2}, {m = 7, n = 5}} do
    agree(("bounds %d, tiles of %d and %d"):format(i, tile.m, tile.n), visits, {X = mr.array("f64", {30})},
      {tile = tile}, 0)
  end
end

-- An array of another type is rounded to the tensor's.
bound = mr.examples.gemm{m = 20, n = 12, k = 30}
agree("inputs of another type", bound, {A = mr.array("f64", {20, 30}, function(i, j) return math.sin(i * j) end),
  B = mr.array("f32", {12, 30}, function(i, j) return 1 / (i + j) end)})

-- Its size -------------------------------------------------------------------------------------

-- Tiles are chosen so that a block's values are few, however many axes a program has.
bound = mr.examples.conv2d{n = 128, c = 256, h = 56, w = 56, k = 256, r = 3, s = 3, pad = 1}
local each_block = tonumber(core.plain(bound):match "scratch %+ BLOCK %* (%d+)ll")
tap.ok(each_block <= 2 ^ 18, "a block's values", each_block)
tap.ok(core.plain(bound) == core.plain(bound), "the same program gives the same text")

-- Wrong use ------------------------------------------------------------------------------------

local function refuses(what, pattern, f)
  local good, message = pcall(f)
  tap.like(not good and message, pattern, what)
end
bound = mr.examples.gemm{m = 8, n = 8, k = 8}
local inputs = bound:inputs{}
refuses("an unknown device", "reference%.t%.lua:%d+: reference: .*'gpu'", function() bound:reference(inputs, {on = "gpu"}) end)
refuses("no time", "limit is a number of seconds above 0", function() bound:reference(inputs, {on = "host", limit = 0}) end)
refuses("a tile of nothing", "reference%.t%.lua:%d+:.*q", function() bound:reference(inputs, {on = "host", tile = {q = 1}}) end)
refuses("values too large", "more than 2%^30 elements", function()
  core.plain(mr.program("wide", function(p)
    local m, n = p:axes("m", "n")
    local X, Y = p:input("X", {m, n}), p:output("Y", {m})
    Y:store(mr.rowsum(p:load(X), n))
  end):bind{m = 8, n = 2 ^ 31})
end)
if #devices == 1 then
  refuses("no device", "reference%.t%.lua:%d+: ", function() bound:reference(inputs, {on = "device"}) end)
end

-- A sample of tiles ----------------------------------------------------------------------------------

-- All outputs of which something is allowed are those of the complete reference. Corners are always in the sample.
local function samples(what, bound, tile, is_sampled)
  local inputs = bound:inputs{seed = 3}
  local all, allowed = core.reference_allowing(bound, inputs, {on = "host", tile = tile})
  local some, known = core.reference_allowing(bound, inputs, {on = "host", tile = tile, tiles = 3, seed = 5})
  local _, others = core.reference_allowing(bound, inputs, {on = "host", tile = tile, tiles = 3, seed = 6})
  local same, compared, elsewhere, n, corners = true, 0, false, 0, true
  for name, x in pairs(all) do
    for i = 1, #x do
      n = n + 1
      elsewhere = elsewhere or (others[name][i] == 0) ~= (known[name][i] == 0)
      if known[name][i] ~= 0 then
        compared = compared + 1
        same = same and some[name][i] == x[i] and known[name][i] == allowed[name][i]
      end
    end
    corners = corners and known[name][1] ~= 0 and known[name][#x] ~= 0
  end
  tap.ok(same and corners, what .. ": a sample is a part of the reference, with the corners")
  if is_sampled then
    tap.ok(compared > 0 and compared < n and elsewhere, "  not all of it, and by the seed", compared)
  else
    tap.is(compared, n, "  all of it")
  end
end
samples("a product", mr.examples.gemm{m = 60, n = 44, k = 8}, {m = 8, n = 8}, true)
samples("attention", mr.examples.flash_attention{b = 2, h = 2, m = 40, d = 16, causal = true}, {m = 8}, true)
samples("few tiles", mr.examples.gemm{m = 16, n = 16, k = 8}, {m = 8, n = 8}, false)
samples("two phases", mr.examples.flash_decoding{b = 2, h = 2, hkv = 1, n = 32, d = 16, splits = 2}, nil, false)

-- check ----------------------------------------------------------------------------------------

local plan = mr.load_plan(core.home() .. "/examples/attention_serial.lua",
  mr.examples.flash_attention{b = 1, h = 1, m = 128, n = 128, d = 128})
local kernel = plan:compile{target = "host"}
local err = kernel:check()
tap.is(err.reference, "interpreter", "little work is for the interpreter")
err = kernel:check{reference = "host"}
tap.ok(err.ok and err.reference == "host" and err.relative > 0, "the reference can be chosen", err.relative)
refuses("an unknown reference", "check: there is no reference", function() kernel:check{reference = "cpu"} end)

tap.done_testing()
