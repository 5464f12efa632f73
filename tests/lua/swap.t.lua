-- plan:swap exchanges the operands of a product: what it does to the graph and the script, what it refuses, that kernels are right
-- on the CPU or on the target that the argument names, and that a search takes it for weights of few bits.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local target = arg[1] or "host"
local h200 = mr.device "h200"

local gemm = mr.examples.gemm{m = 256, n = 192, k = 128}
local function fresh() return mr.plan(gemm:graph{tile = {m = 128, n = 64, k = 64}}, h200) end
local plan = fresh()
local before = plan:script()
local function product(p)
  for _, t in ipairs(p.tasks) do if t.kind == "mma" then return t end end
end
tap.is(table.concat(product(plan).reads, " "), "a b c", "the program's order of operands")
plan:swap "mma"
tap.is(table.concat(product(plan).reads, " "), "b a c", "exchanged")
tap.like(plan:script(), '\nplan:swap%("mma"%)\n', "the script says so")
tap.is(load(plan:script())(gemm):script(), plan:script(), "  and makes the same plan")
plan:undo()
tap.is(plan:script(), before, "undo takes it back")
plan:redo()
tap.like(plan:script(), "plan:swap", "redo")

local function refused(what, pattern, edit)
  local p = fresh()
  local good, message = pcall(edit, p)
  tap.ok(not good and tostring(message):find(pattern), what, tostring(message))
  tap.is(p:script(), before, "  and nothing has changed")
end
refused("no such task", "program 'gemm' has no task 'nma'", function(p) p:swap "nma" end)
refused("no product", "'load_a' is no product: it has no operands to exchange", function(p) p:swap "load_a" end)
refused("no name", "swap: ", function(p) p:swap() end)
local twice = fresh()
twice:swap "mma"
local good, message = pcall(twice.swap, twice, "mma")
tap.ok(not good and message:find "the operands of 'mma' are exchanged already", "twice", tostring(message))

---- kernels ------------------------------------------------------------------------------------------

local function planned(bound, tile, o)
  local p = mr.plan(bound:graph{tile = tile}, mr.device(o.device or "h200"))
  p:swap "mma"
  if o.slices then p:split(o.axis or "n", o.slices) end
  p:lane("p0", {warps = o.copying or 1})
  for i = 0, (o.slices or 1) - 1 do p:lane("c" .. i, {warps = o.warps or 4}) end
  if o.divided then p:grid{cluster = 2, divide = o.divided} end
  for _, t in ipairs(p.tasks) do p:append(t.name, {lane = t.kind == "load" and "p0" or "c" .. (t.name:match "%.(%d+)$" or 0)}) end
  for _, t in ipairs(p.tasks) do
    if t.kind == "load" then p:buffers{[t.writes[1]] = 2} end
  end
  p:fill_waits()
  return p
end

-- pairs: how the kernel's text converts; nil: whatever it is.
local function case(what, bound, tile, pairs, o)
  local ok, p = pcall(planned, bound, tile, o or {})
  if not tap.ok(ok and p:check(), what .. ": legal", tostring(ok and select(2, p:check()) or p)) then return end
  if pairs ~= nil then
    tap.is(p:compile{target = "cuda", text = true}.source:match "= (mul_pair_[%w_]+)%(" or false, pairs, "  converted in pairs, or not")
  end
  for seed = 1, 2 do
    local result = p:compile{target = target}:check{race = target == "host", seed = seed}
    tap.ok(result.ok, ("  right, seed %d"):format(seed), tostring(result))
  end
end

local e = mr.examples
case("gemm", gemm, {m = 128, n = 64, k = 64})
case("gemm of ragged sizes", e.gemm{m = 100, n = 136, k = 72}, {m = 64, n = 64, k = 32})
case("gemm in slices of rows", e.gemm{m = 128, n = 256, k = 128}, {m = 128, n = 128, k = 64}, nil, {slices = 2})
case("gemm in slices of columns", e.gemm{m = 128, n = 128, k = 128}, {m = 128, n = 64, k = 64}, nil, {slices = 2, axis = "m"})
if target == "host" then case("gemm on sm_80", gemm, {m = 64, n = 64, k = 32}, nil, {device = "a100", copying = 4}) end

-- Rows of the instruction are neighbours in memory: a thread stores eight of a column, where they are aligned, and all within the tensor or
-- all outside.
local function stored(what, sizes, tile, together, o)
  local ok, p = pcall(planned, e.gemm(sizes), tile, o or {})
  if not tap.ok(ok and p:check(), what .. ": legal", tostring(ok and select(2, p:check()) or p)) then return end
  tap.is(p:compile{target = "cuda", text = true}.source:find("matrix_transpose(r_", 1, true) ~= nil, together,
    together and "  eight of a column at once" or "  one by one")
  local result = p:compile{target = target}:check{race = target == "host"}
  tap.ok(result.ok, "  right", tostring(result))
end
stored("a store of columns", {m = 100, n = 136, k = 72}, {m = 56, n = 64, k = 32}, true)
stored("... of f16, with a bias", {m = 100, n = 264, k = 64, dtype = "f16", bias = true}, {m = 24, n = 128, k = 64}, true, {slices = 2})
stored("... with one group of columns", {m = 8, n = 128, k = 64}, {m = 8, n = 64, k = 64}, true)
stored("... of eight warps", {m = 100, n = 256, k = 64}, {m = 40, n = 128, k = 64}, true, {warps = 8})
stored("... by a cluster that divides the loop", {m = 100, n = 200, k = 256}, {m = 56, n = 64, k = 64}, true, {divided = "k"})
stored("... whose rows end within eight", {m = 100, n = 132, k = 64}, {m = 56, n = 64, k = 32}, false)
stored("... of 32 bits", {m = 100, n = 136, k = 64, out = "f32"}, {m = 56, n = 64, k = 32}, false)
local here <const> = "mul_pair_bf16_here"
local tile <const> = {m = 64, n = 64, k = 64}
case("4 bits", e.dequant_gemm{m = 128, n = 128, k = 256}, tile, here)
case("4 bits, f16", e.dequant_gemm{m = 128, n = 128, k = 256, dtype = "f16"}, tile, "mul_pair_f16_here")
case("4 bits, f4", e.dequant_gemm{m = 128, n = 128, k = 256, wtype = "e2m1"}, tile, here)
case("8 bits", e.dequant_gemm{m = 128, n = 128, k = 256, wtype = "i8"}, tile, here)
case("small groups", e.dequant_gemm{m = 64, n = 64, k = 128, group = 16}, tile, here)
case("ragged rows and columns", e.dequant_gemm{m = 72, n = 104, k = 256}, tile, here)
case("slices", e.dequant_gemm{m = 128, n = 256, k = 256}, {m = 128, n = 128, k = 64}, here, {slices = 2})
case("nvfp4", e.fp4_gemm{m = 64, n = 128, k = 128}, tile, here)
case("mxfp4", e.fp4_gemm{m = 64, n = 128, k = 128, format = "mxfp4"}, tile, here)

-- Weights without a scale: no product makes the pairs.
local bare = mr.program("bare", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, W, C = p:input("A", {m, k}, p.dtype), p:input("W", {n, k}, "i4"), p:output("C", {m, n}, "f32")
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function()
    local w = p:load("load_w", W)
    local x = p:task("widen", function() return w:to(p.dtype) end)
    c:add(p:mma("mma", p:load("load_a", A), x))
  end)
  C:store("store_c", c)
end)
case("no scale", bare{m = 64, n = 128, k = 128, dtype = "bf16"}, tile, here)
case("no scale, f16", bare{m = 64, n = 128, k = 128, dtype = "f16"}, tile, "mul_pair_f16_here")

---- the search -----------------------------------------------------------------------------------------

if target == "host" then
  local r = mr.search(e.dequant_gemm{m = 2048, n = 4096, k = 4096}, h200, {measure = false})
  tap.like(r.plan:script(), 'plan:swap%("mma"%)', "a search lets weights of 4 bits be the rows of products")
  tap.ok(r.plan:check(), "  in a legal plan")
  -- The first search alone takes 657 trials to its end, and the second 600 to a plan of 0.83 ms.
  r = mr.search(e.dequant_gemm{m = 4096, n = 8192, k = 8192}, h200, {measure = false, trials = 1000})
  tap.ok(r.seconds < 0.835e-3 and r.trials <= 1010, ("also if trials are few: %.4g ms, %d trials"):format(r.seconds * 1e3, r.trials))
  r = mr.search(e.gemm{m = 2048, n = 4096, k = 4096}, h200, {measure = false})
  tap.ok(not r.plan:script():find("plan:swap", 1, true), "not of operands that are loaded and fill instructions")
  r = mr.search(e.gemm{m = 333, n = 4096, k = 4096}, h200, {measure = false})
  tap.like(r.plan:script(), 'plan:swap%("mma"%)', "but of 333 rows, which fill columns better")
  local m = r.plan.tile.m
  tap.is(m, math.ceil(333 / math.ceil(333 / m) / 8) * 8, "  in tiles that are as even as instructions allow")
  local tiles = {}
  local swapped = require "millrace.core".search(e.gemm{m = 333, n = 4096, k = 4096}, h200, nil, true, true)
  swapped:run(2000, 60)
  for _, x in ipairs(swapped:found()) do
    local _, tile = swapped:plan(x.trial)
    tiles[tile.m] = tiles[tile.m] or x.seconds
  end
  tap.ok(tiles[168] and tiles[168] < 1.03 * swapped:found()[1].seconds, "  and half of the axis is among the best", tiles[168])
  -- few rows, of which the memory of the weights takes all the time
  local core = require "millrace.core"
  local s = core.search(e.gemm{m = 16, n = 8192, k = 8192}, h200)
  s:run(2000, 60)
  tap.is(s:counts().at_memory, true, "not where memory takes the time, either")
  s = core.search(e.gemm{m = 333, n = 4096, k = 4096}, h200)
  s:run(2000, 60)
  tap.is(s:counts().at_memory, false, "  as it does not here")
end
tap.done_testing()
