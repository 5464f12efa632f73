-- k:check measures by the roundings of the program: nothing that a rounding cannot explain passes, no right kernel is wrong.
local mr = require "millrace"
local core = require "millrace.core"
local within = require "millrace.within"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like = tap.ok, tap.is, tap.like

local function kernel_of(bound, tile, seu)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  for _, t in ipairs(plan.tasks) do plan:append(t.name, t.kind == "mma" and seu and {seu = seu} or nil) end
  plan:fill_waits()
  return plan:compile{target = "host"}
end

---- right kernels whose programs round inside -----------------------------------------------------

local quant = mr.program("quant", function(p)
  local i, j = p:axes("i", "j")
  local X, Y = p:input("X", {i, j}), p:output("Y", {i, j})
  local x = p:load("get", X)
  Y:store("put", p:task("t", function() return x:to "e5m2" end))
end)

-- Quantise, multiply: f(element of A) as `dtype`.
local function quant_gemm(name, dtype, f)
  return mr.program(name, function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}, dtype), p:output("C", {m, n}, dtype == "i8" and "i32" or "f32")
    local c = p:carry("c", {m, n}, 0)
    p:loop(k, function()
      local a = p:load("a", A)
      local q = p:task("q", function() return f(a):to(dtype) end)
      c:add(p:mma("mma", q, p:load("b", B)))
    end)
    C:store("st", c)
  end)
end

local function rows(name, out, f)
  return mr.program(name, function(p)
    local m, n = p:axes("m", "n")
    local X, Y = p:input("X", {m, n}, "f32"), p:output("Y", {m, n}, out)
    local x = p:load("x", X)
    Y:store("st", p:task("t", function() return f(x, m, n) end))
  end)
end

local gemm_sizes, row_sizes = {m = 64, n = 64, k = 64}, {m = 16, n = 128}
local right = {
  {quant{i = 64, j = 64}},
  {quant_gemm("of_e4m3", "e4m3", function(a) return a end)(gemm_sizes)},
  {quant_gemm("saturates", "e4m3", function(a) return a * 1000 end)(gemm_sizes)},
  {quant_gemm("of_i8", "i8", function(a) return mr.floor(a * 40.3 + 0.5) end)(gemm_sizes)},
  {rows("steps", "i32", function(x) return (x * 2e5):to "i32" end)(row_sizes), {m = 16}},
  {rows("overflows", "f16", function(x) return (mr.exp2(x * 300) * 1e5):to "f16" end)(row_sizes), {m = 16}},
  {rows("softmax", "bf16", function(x, _, n)
    local e = mr.exp2(x * 20 - mr.rowmax(x * 20, n))
    return (e / mr.rowsum(e, n)):to "bf16"
  end)(row_sizes), {m = 16}},
  {rows("mean", "f32", function(x, _, n)       -- one error, of a rounded mean, n times in the sum
    local mean = (mr.rowsum(mr.exp2(x), n) * (1 / 128)):to "bf16"
    return mr.rowsum(mr.exp2(x) - mean, n) + x
  end)(row_sizes), {m = 16}},
  {rows("few", "f32", function(x, _, n) return mr.rowsum(mr.where(x:gt(0), 0.1, 0.3):to "bf16", n) + x end)(row_sizes), {m = 16}},
}
for _, case in ipairs(right) do
  local k = kernel_of(case[1], case[2] or {}, "cuda")
  local found = k:check{}
  ok(found.ok, case[1].name .. " is right", tostring(found))
end

-- An i32 that meets an f32 becomes one, by a rounding that no cast says. Random i32 have all of their bits.
local with_float = {
  multiplied = function(x) return x * 2.5 end,
  added = function(x) return x + 0.5 end,
  greatest = function(x) return mr.max(x, 0.5) end,
  chosen = function(x) return mr.where(x:gt(0), x, 0.5) end,
  root = function(x) return mr.abs(x:to "i32" * 1.5):sqrt() end,
  compared = function(x) return mr.where((x - 2000000000):lt((x * 1.0) - 2e9), 1, 2.5) end,
  and_back = function(x) return (x * 2.5):to "i32" end,
  cast = function(x) return x:to "f32" end,
  in_carry = function(x, p, m, n)
    local c = p:carry("c", {m, n}, 0.5)
    c:set(x)
    return c * 3
  end,
}
for name, f in pairs(with_float) do
  local bound = mr.program(name, function(p)
    local m, n = p:axes("m", "n")
    local X, Y = p:input("X", {m, n}, "i32"), p:output("Y", {m, n}, "f32")
    local x = p:load("x", X)
    Y:store("st", p:task("t", function() return f(x, p, m, n) end))
  end)(row_sizes)
  local found = kernel_of(bound, {m = 16}):check{}
  ok(found.ok, "an i32 and an f32 give an f32: " .. name .. " is right", tostring(found))
end

---- inputs that leave little to compare -----------------------------------------------------------------

local blocks = mr.program("blocks", function(p)        -- rows of each block until M
  local mb, i, k = p:axes("mb", "i", "k")
  local M, X = p:input("M", {p:axis("one", 1)}, "i32"), p:input("X", {mb, i, k}, "f32")
  local Y = p:output("Y", {mb, i}, "f32")
  p:batch(mb)
  local s = p:carry("s", {i}, 0)
  local left = p:load("load_m", M, {0}) - mb:index() * i.size
  p:loop(k, {length = mr.min(mr.max(left, 0) * k.size, k.size)}, function()
    local x = p:load("load_x", X)
    p:task("sum", function() s:add(mr.rowsum(x, k)) end)
  end)
  Y:store("store_y", s)
end)
local bound = blocks{mb = 3, i = 16, k = 64}
local counts = {}
for seed = 1, 40 do counts[seed] = bound:inputs{seed = seed}.M[1] end
table.sort(counts)
ok(counts[1] >= 0 and counts[20] >= 8 and counts[40] > 24, "a random length that is multiplied, and of which blocks take their parts, is rarely 0",
  table.concat(counts, " "))
local of_blocks = kernel_of(bound, {k = 32})
local found = of_blocks:check{}
ok(found.ok and #found.notes == 0, "then there is something to compare", found)
local none = bound:inputs{}
none.M[1] = 0
found = of_blocks:check{inputs = none}
ok(found.ok, "k:check takes inputs", found)
is(tostring(of_blocks:run(none)), "Y: f32 {3, 16}", "what k:run gives has names, types and shapes as text")
is(tostring(bound:reference(none)), "Y: f64 {3, 16}", "  and so has the reference")
is(next(of_blocks:run(none)), "Y", "  but is a table")
is(tostring(found):match "\n(.*)", "note: each element of 'Y' that was compared is 0, or no number: a kernel that computes nothing may agree; "
  .. "k:check{inputs=} takes others", "  and says that all of the reference is 0")
local overflowing = rows("overflowing", "f16", function(x) return (mr.exp2(x * 300) * 1e5):to "f16" end)(row_sizes)
local large = overflowing:inputs{}
large.X:fill(function(i) return i <= 128 and 0.5 or -0.01 end)
found = kernel_of(overflowing, {m = 16}):check{inputs = large}
ok(found.ok and found.relative < 1 and found.allowed < 1, "what may be any number is not in the errors", found)
found = kernel_of(rows("beyond", "f32", function(x) return mr.exp2(x * 300) * 3e38 * 1e30 end)(row_sizes), {m = 16}):check{}
like(found.notes[1] or "", "^%d+ of 2048 elements of 'Y' may be any number, as what overflows may, and were not compared$", "it is counted", found)
local fine, message = pcall(of_blocks.check, of_blocks, {inputs = {}})
ok(not fine and message:find "'M'", "inputs that are missing are an error", message)

---- spoiled results --------------------------------------------------------------------------------

local examples = {
  {"gemm", {m = 128, n = 128, k = 256}, {m = 64, n = 64, k = 64}},
  {"gemm", {m = 100, n = 72, k = 88, out = "f32"}, {m = 64, n = 64, k = 32}},
  {"flash_attention", {b = 1, h = 2, m = 100, n = 136, d = 64, causal = true}, {m = 64, n = 64}},
  {"dequant_gemm", {m = 64, n = 64, k = 128, group = 64}, {m = 64, n = 64, k = 64}},
  {"flash_decoding", {b = 1, h = 16, hkv = 2, n = 512, d = 64, splits = 4}, {key = 64}},
  {"chunk_scan", {b = 1, s = 128, h = 1, p = 64, n = 64, chunk = 64}, {}},
  {"conv2d", {n = 1, c = 64, h = 8, w = 8, k = 64, r = 3, s = 3, pad = 1}, {c = 64, k = 64, r = 1, s = 1}},
  {"matmul_sum", {k = 64, m = 256, n = 128}, {k = 32, m = 64, n = 64}},
}

-- Each tile of an output, as positions of elements, flat.
local function tiles_of(tensor, tile)
  local tiles, order, n = {}, {}, 1
  for _, d in ipairs(tensor.shape) do n = n * d end
  for i = 1, n do
    local left, at = i - 1, {}
    for d = #tensor.shape, 1, -1 do
      local size = tensor.shape[d]
      at[#at + 1] = left % size // (tile[tensor.axes[d]] or size)
      left = left // size
    end
    local name = table.concat(at, ",")
    if not tiles[name] then
      tiles[name] = {}
      order[#order + 1] = tiles[name]
    end
    table.insert(tiles[name], i)
  end
  return order
end

for _, x in ipairs(examples) do
  local bound = mr.examples[x[1]](x[2])
  local inputs = bound:inputs{seed = 1}
  local want, allowed = core.reference_allowing(bound, inputs)
  local rounded = bound:reference(inputs, {round = true, tile = x[3]})
  ok(within(bound, rounded, want, allowed, x[3]).ok, x[1] .. ": what rounds where a kernel does is right")
  for _, t in ipairs(bound.tensors) do
    if t.role == "output" then
      local missed, least, all = 0, 1, tiles_of(t, x[3])
      for _, tile in ipairs(all) do
        local beyond = 0
        for _, i in ipairs(tile) do
          if math.abs(want[t.name][i]) > allowed[t.name][i] then beyond = beyond + 1 end
        end
        if beyond == 0 then missed = missed + 1 end
        least = math.min(least, beyond / #tile)
      end
      is(missed, 0, x[1] .. ": no tile can be left zero unnoticed")
      ok(least > 0.5, "  nor half of a tile", least)
      -- One element that is off by twice of what is allowed.
      local i = #want[t.name] // 3 + 1
      local spoiled = {[t.name] = want[t.name]:copy()}
      spoiled[t.name][i] = want[t.name][i] + 2 * allowed[t.name][i]
      local found = within(bound, setmetatable(spoiled, {__index = want}), want, allowed, x[3])
      ok(not found.ok and found.wrong == 1, "  nor one element be off", found.wrong)
      is(want[t.name]:get(table.unpack(found.worst.index)), want[t.name][i], "  which is found")
      ok(allowed[t.name][i] < 0.25 * want[t.name]:max_error(want[t.name]:copy():fill(0)), "  and small")
    end
  end
end

-- A tile that is as it was an iteration before.
do
  local bound = mr.examples.gemm{m = 64, n = 64, k = 1024}
  local inputs = bound:inputs{seed = 1}
  local want, allowed = core.reference_allowing(bound, inputs)
  local A = inputs.A:copy()
  for i = 1, 64 do
    for k = 1024 - 63, 1024 do A:set(0, i, k) end
  end
  local stale = bound:reference{A = A, B = inputs.B}
  ok(within(bound, stale, want, allowed, {}).wrong > 3000, "a sum without its last iteration is wrong")
end

---- what is said -----------------------------------------------------------------------------------

local bound = mr.examples.gemm{m = 128, n = 128, k = 32}
local want, allowed = core.reference_allowing(bound, bound:inputs{})
local got = {C = want.C:copy()}
for i = 65, 128 do
  for j = 1, 64 do got.C:set(0, i, j) end
end
local found = within(bound, got, want, allowed, {m = 64, n = 64, k = 32})
is(found.worst.output, "C", "the worst element: its output")
ok(found.worst.tile.m == 1 and found.worst.tile.n == 0 and found.worst.index[1] > 64 and found.worst.index[2] <= 64,
  "  its tile, and where it is")
ok(found.worst.got == 0 and found.worst.want ~= 0 and found.worst.allowed > 0, "  what it is, and ought to be")

local k = kernel_of(bound, {m = 64, n = 64, k = 32})
local checked = k:check{}
ok(checked.ok and checked.wrong == 0 and checked.worst.output == "C", "k:check has the worst element of a right kernel, too")
like(tostring(checked), "^agrees with the reference %(interpreter%): relative error [%d.e-]+, of [%d.e-]+ allowed; greatest difference [%d.e-]+$",
  "  and does not speak of it")
checked.ok, checked.wrong, checked.worst.index, checked.worst.tile = false, 1, {2, 3}, {m = 0, n = 1}
like(tostring(checked), "^differs from .*\n1 element is wrong; the worst: C%[2, 3%] in tile {m=0, n=1} is %S+ instead of %S+, off by %S+; .* allow %S+$",
  "  but of one of a wrong one")

---- what is never stored -----------------------------------------------------------------------------

local partial = mr.program("partial", function(p)
  local i, j = p:axes("i", "j")
  local h = p:axis("h", i.size * 2)
  local X, Y = p:input("X", {i, j}), p:output("Y", {h, j})
  Y:store("st", p:load("x", X), {i * 2, j})
end)
checked = kernel_of(partial{i = 24, j = 16}, {i = 8}):check{}
ok(checked.ok, "elements that the program never stores are not compared", tostring(checked))

---- not a number, and infinity -----------------------------------------------------------------------

local nan <const> = 0.0 / 0
for _, x in ipairs{
  {nan, nan, 1, true}, {1, nan, 1, false}, {nan, 1, 1, false}, {math.huge, math.huge, 1, true}, {-math.huge, math.huge, 1, false},
  {1, math.huge, 1, false}, {math.huge, 1, 1, false}, {nan, math.huge, 1, false}, {math.huge, nan, 1, false},
  {nan, 1, math.huge, true}, {math.huge, 1, math.huge, true}, {1, 1, nan, true},
} do
  local function one(v) return mr.array("f64", {1}, {v}) end
  local found = core.compare(one(x[1]), one(x[2]), one(x[3]))
  is(found.wrong == 0, x[4], ("%s instead of %s, with %s allowed"):format(x[1], x[2], x[3]))
end
-- By the rounding to bf16, the root's argument may be on the other side of zero.
local root = mr.program("root", function(p)
  local i, j = p:axes("i", "j")
  local X, Z, Y = p:input("X", {i}, "f32"), p:input("Z", {j}, "f32"), p:output("Y", {i, j}, "f32")
  local x, z = p:load("x", X):to "bf16", p:load("z", Z)
  local v = p:task("v", function() return mr.sqrt(mr.abs(x - 0.25)) end)
  Y:store("st", p:task("t", function() return z / (v + 2) end))
end)
local _, allowed = core.reference_allowing(root{i = 1, j = 1},
  {X = mr.array("f32", {1}, 0.2501), Z = mr.array("f32", {1}, 1)})
is(allowed.Y[1], math.huge, "where an error has no bound, what is computed with it has none")

-- Both factors of the only product are rounded.
local one_term = mr.program("one_term", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}, "f32"), p:input("B", {n, k}, "f32"), p:output("C", {m, n}, "f32")
  C:store("st", p:mma("mma", p:load("a", A):to "f16", p:load("b", B):to "f16"))
end){m = 1, n = 1, k = 1}
local above <const> = 1 + 2 ^ -11 * 0.99                -- rounded down to 1
_, allowed = core.reference_allowing(one_term, {A = mr.array("f32", {1, 1}, above), B = mr.array("f32", {1, 1}, above)})
ok(allowed.C[1] > above * above - 1, "the rounding of both factors of a product is allowed", allowed.C[1])

-- As many roundings add up, whatever the tiles are.
do
  local gemm = mr.program("converted", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B, C, c = p:input("A", {m, k}, "f32"), p:input("B", {n, k}, "f32"), p:output("C", {m, n}, "f32"), p:carry("c", {m, n}, 0)
    p:loop(k, function() c:add(p:mma("mma", p:load("a", A):to "bf16", p:load("b", B):to "bf16")) end)
    C:store("st", c)
  end){m = 4, n = 4, k = 16}
  local given = gemm:inputs{}
  local _, few_tiles = core.reference_allowing(gemm, given, {tile = {k = 16}})
  local _, many_tiles = core.reference_allowing(gemm, given, {tile = {k = 1}})
  local least, most = math.huge, 0
  for i = 1, 16 do
    least, most = math.min(least, many_tiles.C[i] / few_tiles.C[i]), math.max(most, many_tiles.C[i] / few_tiles.C[i])
  end
  ok(least > 0.4 and most < 1.5, "what products allow does not get less with smaller tiles, but for a sharper bound of norms", least, most)
end

-- The matrix unit sums few products of 8-bit floats as it does 32.
local few = mr.program("few", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}, "e4m3"), p:input("B", {n, k}, "e4m3"), p:output("C", {m, n}, "f32")
  C:store("st", p:mma("mma", p:load("a", A), p:load("b", B)))
end){m = 1, n = 1, k = 3}
_, allowed = core.reference_allowing(few, {A = mr.array("e4m3", {1, 3}, 1), B = mr.array("e4m3", {1, 3}, 1)})
ok(allowed.C[1] >= 2 ^ -13, "sums of three products of 8-bit floats are off by a step of 14 bits", allowed.C[1])

-- What 14 bits keep of a sum: of each 32 products and what they are added to, multiples of 2^-13 of the greatest one's power of two.
do
  local gemm = mr.program("fp8", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B = p:input("A", {m, p:axis("ka", k.size // p.of_a)}, "e4m3"), p:input("B", {n, p:axis("kb", k.size // p.of_b)}, "e4m3")
    local C, c = p:output("C", {m, n}, "f32"), p:carry("c", {m, n}, 0)
    p:loop(k, function() c:add(p:mma("mma", p:load("a", A, {m, k // p.of_a}), p:load("b", B, {n, k // p.of_b}))) end)
    C:store("st", c)
  end)
  local function power(x) return x == 0 and -100 or math.floor(math.log(math.abs(x), 2) + 1e-12) end
  local function kept(x, unit) return (x < 0 and math.ceil(x / unit) or x // unit) * unit end
  local function sums(x, sizes)
    return mr.array("f32", {sizes.m, sizes.n}, function(i, j)
      local sum = 0.0
      for first = 0, sizes.k - 1, 32 do
        local terms, most = {sum}, power(sum)
        for k = first, first + 31 do
          local a, b = x.A:get(i, k // sizes.of_a + 1), x.B:get(j, k // sizes.of_b + 1)
          terms[#terms + 1], most = a * b, math.max(most, a * b == 0 and -100 or power(a) + power(b))
        end
        sum = 0.0
        for _, term in ipairs(terms) do sum = sum + kept(term, 2.0 ^ (most - 13)) end
      end
      return sum
    end)
  end
  for _, x in ipairs{
    {"of random products", {m = 8, n = 8, k = 256, of_a = 1, of_b = 1}},
    {"of equal products", {m = 16, n = 16, k = 64, of_a = 16, of_b = 16}},
    {"of positive products", {m = 8, n = 8, k = 512, of_a = 1, of_b = 1}, true},
    {"of equal positive products", {m = 8, n = 8, k = 512, of_a = 4, of_b = 16}, true},
  } do
    local bound = gemm(x[2])
    local inputs = bound:inputs{seed = 1}
    for _, a in pairs(x[3] and inputs or {}) do
      for i = 1, #a do a[i] = math.abs(a[i]) end
    end
    local want, allowed = core.reference_allowing(bound, inputs, {tile = {k = 64}})
    local found = within(bound, {C = sums(inputs, x[2])}, want, allowed, {})
    ok(found.ok, "sums in 14 bits " .. x[1] .. " are right", found.worst)
  end
  local bound = gemm{m = 64, n = 64, k = 1024, of_a = 1, of_b = 1}
  local inputs = bound:inputs{seed = 1}
  local want, allowed = core.reference_allowing(bound, inputs, {tile = {k = 64}})
  local A = inputs.A:copy()
  for i = 1, 64 do
    for k = 1024 - 63, 1024 do A:set(0, i, k) end
  end
  ok(within(bound, bound:reference{A = A, B = inputs.B}, want, allowed, {}).wrong > 2000, "  and without their last iteration they are wrong")
end

---- indices of rounded numbers ------------------------------------------------------------------------

-- Of a number next to a jump either index is right, and what is stored there.
do
  local bins = mr.program("bins", function(p)
    local i, bin = p:axes("i", "bin")
    local X, H = p:input("X", {i}, "f32"), p:output("H", {bin}, p.float and "f32" or "i32")
    local T = p:temp("T", {bin}, "f32")
    local function at(x) return mr.floor((x + 1) * (bin.size / 4)):to "i32" end
    p:phase("zero", function()
      H:store(p:task("zero", function() return p.float and bin:index():to "f32" or bin:index() * 0 end))
      T:store(p:task("none", function() return bin:index():to "f32" * 0 end))
    end)
    p:phase("count", function()
      local x = p:load(X)
      local to, one = p:task("bin", function() return at(x), p.float and x * 0 + 3 or i:index() * 0 + 1 end)
      if p.stores then T:store(one, {to}) else H:add(one, {to}) end
    end)
    if p.stores then
      p:phase("copy", function() H:add(p:load(T)) end)
    end
  end)
  local x = mr.array("f32", {3}, {1 / 4 - 2 ^ -26, -0.9, 1.1})     -- the first is in bin 4, but 1 + it may be rounded to 1.25
  local function allowed_of(options, on)
    options.i, options.bin = 3, 16
    local _, allowed = core.reference_allowing(bins(options), {X = x}, {on = on})
    local text = {}
    for i = 1, 16 do text[i] = ("%.3g"):format(allowed.H[i] < 1e-5 and 0 or allowed.H[i]) end
    return table.concat(text, " ")
  end
  for _, on in ipairs{"interpreter", "host"} do
    is(allowed_of({}, on), "0 0 0 1 1 1 0 0 0 0 0 0 0 0 0 0", "a count next to a jump, by the " .. on)
    is(allowed_of({float = true}, on), "0 0 0 3 3 3 0 0 0 0 0 0 0 0 0 0", "  a sum")
    is(allowed_of({float = true, stores = true}, on), "0 0 0 inf inf inf 0 0 0 0 0 0 0 0 0 0", "  and what is stored, where a later phase loads it")
  end
end

local large = mr.program("large", function(p)
  local i = p:axes("i")
  local X, Y, Z = p:input("X", {i}, "f32"), p:output("Y", {i}), p:output("Z", {i}, "f32")
  local x = p:load("x", X)
  local square = p:task("square", function() return x * x end)
  Y:store("y", p:task("convert", function() return square:to "bf16" end))
  Z:store("z", square)
end){i = 2}
_, allowed = core.reference_allowing(large, {X = mr.array("f32", {2}, {1e18, 1e20})})
ok(allowed.Z[1] < 1e30 and allowed.Z[2] == math.huge, "what is greater than any f32 may be anything")
ok(allowed.Y[1] < 1e35 and allowed.Y[2] == math.huge, "  also where it is converted")

local makes = mr.program("makes", function(p)
  local i = p:axes("i")
  local X, Y = p:input("X", {i}, "f32"), p:output("Y", {i}, "f32")
  local x = p:load("x", X)
  Y:store("st", p:task("t", function()
    return mr.where(i:index():le(7), mr.log2(-x * x - 1), 1 / (x * 0))
  end))
end)
checked = kernel_of(makes{i = 16}, {i = 16}):check{}
ok(checked.ok, "a kernel that makes NaN and infinities as the reference does agrees with it", tostring(checked))

do
  local given, names = mr.examples.gemm{m = 64, n = 32, k = 16}:inputs(), {}
  is(tostring(given), "A: bf16 {64, 16}\nB: bf16 {32, 16}", "inputs are printed with names, types and shapes")
  for name in pairs(given) do names[#names + 1] = name end
  is(#names, 2, "  and hold nothing else")
end

---- both references ---------------------------------------------------------------------------------

bound = quant_gemm("both", "e4m3", function(a) return mr.tanh(a) end)(gemm_sizes)
local inputs = bound:inputs{}
local _, one = core.reference_allowing(bound, inputs, {tile = {k = 32}})
local _, other = core.reference_allowing(bound, inputs, {on = "host", tile = {k = 32}})
ok(one.C:max_error(other.C) < 1e-9, "the plain kernel allows what the interpreter does", one.C:max_error(other.C))

---- products on a vector unit -------------------------------------------------------------

do
  local plan = mr.load_plan "gemm_cooperative"
  plan:move("mma.1", {seu = "cuda"})
  local good, list = plan:check()
  local note = list.notes and list.notes[1] or {}
  tap.ok(good and list.notes and #list.notes == 1 and note.code == "on_vector_unit" and note.task == "mma.1",
    "a product on CUDA cores that the matrix unit would do faster is noted", list.notes)
  tap.like(note.message or "", "^'mma%.1' is multiplied on sEU 'cuda', in %d+ cycles; 'tensor' would take %d+$", "  with both times")
  tap.is(note.hint, 'plan:move("mma.1", {seu="tensor"})', "  and what to do")
  tap.like(list.notes and list.notes:json() or "", '"code": "on_vector_unit"', "  as JSON, too")
  plan:move("mma.1", {seu = "tensor"})
  tap.is(select(2, plan:check()).notes, nil, "  after which there is none")
  plan = mr.search(mr.examples.gemm{m = 256, n = 256, k = 256, dtype = "f32"}, mr.device "h200", {trials = 5}).plan
  tap.is(select(2, plan:check()).notes, nil, "  nor of a type that the matrix unit does not multiply")
end

---- lanes without sTasks --------------------------------------------------------------------

do
  local plan = mr.load_plan "attention_serial"
  local before, threads = plan:script(), plan.usage.threads
  plan:lane("idle", {warps = 32, registers = 64})
  local good, list = plan:check()
  tap.ok(good and #list == 0, "a lane without sTasks is no problem", list)
  local note = list.notes and list.notes[1] or {}
  tap.is(note.code, "unused_lane", "  but a note")
  tap.like(note.message, "^lane 'idle' has no sTasks, so that the kernel has no threads for it; lane= of plan:append", "  that says so")
  tap.is(note.hint, 'plan:lane("idle", false)', "  and how it goes")
  tap.is(plan.usage.threads, threads, "  it counts no threads, as the kernel has none of it")
  tap.like(tostring(plan:kernel()), "384 threads", "  which is so")
  plan:lane("idle", false)
  tap.is(plan:script(), before, "it can be taken out")
  tap.ok(plan:undo() and plan:script():find('plan:lane("idle"', 1, true) and plan:redo() and plan:script() == before, "  which can be undone")
  local done, why = pcall(plan.lane, plan, "p0", false)
  tap.like(not done and why or "", "lane 'p0' has sTasks, such as 'load_q': only one without any can be taken out", "one with sTasks cannot")
  done, why = pcall(plan.lane, plan, "p1", false)
  tap.like(not done and why or "", "there is no lane 'p1'", "  nor one that is not there")
  done, why = pcall(plan.lane, plan, "c0", {warps = 0})
  tap.like(not done and why or "", "from 1 to 32", "warps are 1 to 32")
  -- the lanes behind it keep their sTasks
  plan:lane("x", {warps = 4})
  plan:move("store_o", {lane = "x"})
  local moved = plan:script()
  plan = mr.load_plan "attention_serial"
  plan:lane("y", {warps = 1})
  plan:lane("x", {warps = 4})
  plan:move("store_o", {lane = "x"})
  plan:lane("y", false)
  tap.is(plan:script(), moved, "lanes behind one that is taken out keep theirs")
end

---- waits that others imply ---------------------------------------------------------------

do
  local plan = mr.load_plan "attention_overlap"
  local _, problems = plan:check()
  tap.is(problems.notes, nil, "no wait of a plan is redundant")
  plan:wait("softmax", {"load_k"})
  local good, list = plan:check()
  tap.ok(good and #list == 0, "a wait that another implies is no problem")
  local note = list.notes and list.notes[1] or {}
  tap.is(note.code, "redundant_wait", "  but a note")
  tap.ok(note.task == "softmax" and note.other == "load_k", "  which names both sTasks")
  tap.is(note.message, "'softmax' need not wait for 'load_k': it comes after 'mma_qk', which comes after that", "  and says why")
  tap.is(note.hint, 'plan:unwait("softmax", "load_k")', "  and what to do")
  tap.like(note.location, "check%.t%.lua:%d+$", "  and where")
  plan:unwait("softmax", "load_k")
  tap.is(select(2, plan:check()).notes, nil, "  without it, there is none")
  -- the order of a lane implies those for what it executes itself, but not for what it only issues
  plan:wait("rescale", {"softmax"})
  note = (select(2, plan:check()).notes or {})[1] or {}
  tap.is(note.message, "'rescale' need not wait for 'softmax': lane 'c0' executes 'softmax' before it, and goes on when that is complete",
    "a wait that the order of the lane implies is noted")
  tap.is(note.hint, 'plan:unwait("rescale", "softmax")', "  with what to do")
  tap.ok(plan:check(), "  and is no problem")
  plan:unwait("rescale", "softmax")
  -- a list is one edit, all or nothing
  plan:wait("rescale", {"softmax", "mma_qk"})
  local with = plan:script()
  local done, why = pcall(plan.unwait, plan, "rescale", {"softmax", "load_q"})
  tap.ok(not done and why:find "load_q" and plan:script() == with, "unwait of a list takes out all or none", why)
  plan:unwait("rescale", {"softmax", "mma_qk"})
  tap.is(select(2, plan:check()).notes, nil, "unwait takes a list")
  tap.ok(plan:undo() and plan:script() == with and plan:redo(), "  as one edit")
  tap.ok(plan:check(), "  nor is the plan without it")
  plan:wait("softmax", {"normalise"})
  tap.is(select(2, plan:check()).notes, nil, "  not if it is of an sTask of another loop")
  plan:undo()
  -- one of a nearer iteration next to that which the dependences need
  plan = mr.load_plan "gemm_cooperative"
  plan:wait("load_a", {{"mma.0", distance = 1}})
  good, list = plan:check()
  note = list.notes and list.notes[1] or {}
  tap.is(good and note.message, "'load_a' waits for 'mma.0' of 1 iteration before and of 4 before: the first holds, so that 'load_a' "
    .. "comes no further ahead, and the second does nothing", "a wait that makes another one useless is noted")
  tap.is(note.hint, 'plan:unwait("load_a", "mma.0"); plan:wait("load_a", {"mma.0"})', "  with what to do")
  plan:unwait("load_a", "mma.0")
  plan:wait("load_a", {"mma.0"})
  tap.ok(plan:check() and select(2, plan:check()).notes == nil, "  which leaves a plan that is legal, without notes")
  for _, name in ipairs{"attention_serial", "attention_pingpong", "gemm_cooperative", "decoding_split"} do
    tap.is(select(2, mr.load_plan(name):check()).notes, nil, name .. " has none")
  end
end

---- divisors that become infinite -----------------------------------------------------

-- An error decides whether exp2 is infinite: then the quotient may be any number, and else it is zero exactly.
do
  local bound = rows("silu", "f32", function(x) return mr.silu(x:to "bf16":to "f32") end){m = 1, n = 2}
  local exact = rows("silu", "f32", function(x) return mr.silu(x) end){m = 1, n = 2}
  local x = mr.array("f32", {1, 2})
  x[1], x[2] = -88.8, -120
  local _, allowed = core.reference_allowing(bound, {X = x})
  is(("%g %g"):format(allowed.Y[1], allowed.Y[2]), "inf 1e-300", "a quotient whose divisor is infinite or not")
  _, allowed = core.reference_allowing(exact, {X = x})
  ok(allowed.Y[1] < 1e-30 and allowed.Y[2] == 1e-300, "a quotient whose divisor is known to be infinite")
end

-- A value that an error makes infinite or not is that still where it is converted once more.
do
  local bound = mr.program("twice", function(p)
    local i = p:axes "i"
    local X, Y = p:input("X", {i}, "f32"), p:output("Y", {i}, "f16")
    local x = p:load("load_x", X)
    local first = p:task("first", function() return (x / 3):to "bf16":to "f16" end)
    Y:store("store_y", p:task("second", function() return first + 0 end))
  end){i = 2}
  local x = mr.array("f32", {2})
  x[1], x[2] = 3 * 65530, 3 * 66000
  local want, allowed = core.reference_allowing(bound, {X = x})
  is(("%g %g, %g %g"):format(want.Y[1], allowed.Y[1], want.Y[2], allowed.Y[2]), "inf inf, inf 1e-300", "a float that may be infinite, converted twice")
end

tap.done_testing()
