-- A target with another matrix instruction and fragments of its own: products of single warps out
-- of registers, done when the lane goes on. Kernels for it are right on the CPU.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local random_plans = dofile(dir .. "lib/random_plans.lua")
local device = dofile(dir .. "lib/mma_sync.lua")
random_plans.device = device

local SEEDS <const> = {1, 2, 3, 4}

local in_order, changed_device = dofile(dir .. "lib/in_order.lua"), dofile(dir .. "lib/changed_device.lua")
local function all(bound, tile, warps, rings, on) return in_order(on or device, bound, tile, warps, rings) end

-- What the record says is what is lowered, shown, priced and printed.
local plan = all(mr.examples.gemm{m = 64, n = 64, k = 96}, {m = 64, n = 64, k = 32}, 4, {a = 2, b = 2})
local dump = tostring(plan:kernel{})
tap.like(dump, "fetch b%d+ by matrices from slot_b", "operands are fetched")
tap.like(dump, "product r_c%[0%] %+= a%d+ x b%d+, bf16, mma.sync, 8 at once", "... and multiplied by warps")
tap.ok(not dump:find "groups_wait" and not dump:find "pin ", "nobody counts groups")
tap.ok(not dump:find "  registers %d", "nobody sets registers")
tap.like(plan:compile{target = "cuda", text = true}.source, "mma%.sync%.aligned%.m16n8k16%.row%.col%.f32%.bf16",
  "there is an instruction for it")
for _, case in ipairs{{"by transposed matrices", {b = "kn"}, {}}, {"by transposed matrices", {a = "km"}, {}},
    {"by matrices", {}, {m = 40}}, {"by words", {}, {k = 36}},
    {"by elements", {b = "kn"}, {n = 36}}} do
  local by, sizes, tile = table.unpack(case)
  for name, size in pairs{m = 64, n = 64, k = 96} do sizes[name] = size end
  for name, size in pairs{m = 64, n = 64, k = 32} do tile[name] = tile[name] or size end
  tap.like(tostring(all(mr.examples.gemm(sizes), tile, 4):kernel{}), "fetch [ab]%d+ " .. by .. " from", "operands are fetched " .. by)
end
local function cycles(columns)
  local long = all(mr.examples.gemm{m = 128, n = 128, k = 2048}, {m = 128, n = 128, k = 64}, 8, {a = 3, b = 3}, device)
  long:lane("c0", {columns = columns})
  return long:simulate().cycles
end
tap.ok(cycles(1) > 1.01 * cycles(2), "fetching has its price: warps in rows fetch more", cycles(1) .. " " .. cycles(2))

-- GEMMs: interior and ragged, with operands in both layouts, on lanes of few warps and many.
for _, g in ipairs{
  {{m = 64, n = 64, k = 64}, {m = 64, n = 64, k = 32}, 4},
  {{m = 128, n = 256, k = 128}, {m = 128, n = 128, k = 64}, 8},
  {{m = 64, n = 256, k = 128}, {m = 64, n = 256, k = 64}, 4},
  {{m = 100, n = 72, k = 100}, {m = 64, n = 64, k = 64}, 4},
  {{m = 100, n = 72, k = 100, b = "kn"}, {m = 48, n = 40, k = 24}, 1},
  {{m = 40, n = 24, k = 40, dtype = "f16"}, {m = 40, n = 24, k = 40}, 2},
  {{m = 33, n = 17, k = 19, out = "f32"}, {m = 33, n = 17, k = 19}, 3},
  {{m = 100, n = 72, k = 100, a = "km", b = "kn"}, {m = 64, n = 40, k = 32}, 2},
  {{m = 100, n = 72, k = 90}, {m = 64, n = 40, k = 32}, 2},
  {{m = 96, n = 136, k = 35, a = "km"}, {m = 32, n = 24, k = 16}, 2},
  {{m = 128, n = 128, k = 128, a = "km", b = "kn"}, {m = 128, n = 128, k = 64}, 4},
  {{m = 70, n = 50, k = 36, b = "kn", bias = true, activation = "gelu"}, {m = 32, n = 16, k = 12}, 2},
} do
  local sizes, tile, warps = table.unpack(g)
  random_plans.correct(tap, ("gemm %d x %d x %d on %d warps"):format(sizes.m, sizes.n, sizes.k, warps),
    all(mr.examples.gemm(sizes), tile, warps), SEEDS)
end

-- Attention: what one product leaves in registers is the next one's operand.
for _, a in ipairs{
  {{b = 1, h = 1, m = 64, n = 64, d = 64}, {m = 64, n = 64}, 4},
  {{b = 1, h = 2, m = 100, n = 72, d = 40}, {m = 32, n = 32}, 2},
  {{b = 1, h = 1, m = 130, n = 130, d = 64, causal = true}, {m = 64, n = 32}, 4},
  {{b = 1, h = 1, m = 50, n = 90, d = 24, dtype = "f16"}, {m = 16, n = 48}, 1},
} do
  local sizes, tile, warps = table.unpack(a)
  random_plans.correct(tap, ("attention %d x %d x %d on %d warps"):format(sizes.m, sizes.n, sizes.d, warps),
    all(mr.examples.flash_attention(sizes), tile, warps), SEEDS)
end

-- Whatever plans there are: several lanes, offsets, versions, splits.
for seed = 1, 30 do
  local drawn, info = random_plans.draw(seed, nil, seed % 2 == 0, seed % 5 == 0)
  random_plans.correct(tap, ("plan %d, %s"):format(seed, info.program), drawn, SEEDS)
end

-- Operands of 8 and of 32 bits: an instruction takes 32 bytes of what is contracted, whatever the type. Integers add up exactly.
local function product_in_loop(a, b, orders)
  return mr.program("product", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A = p:input("A", orders.a == "km" and {k, m} or {m, k}, a)
    local B = p:input("B", orders.b == "kn" and {k, n} or {n, k}, b)
    local C = p:output("C", {m, n}, a == "i8" and "i32" or "f32")
    local c = p:carry("c", {m, n}, 0)
    p:loop(k, function() c:add(p:mma("mma", p:load("a", A), p:load("b", B))) end)
    C:store("store", c)
  end)
end
for _, case in ipairs{
  {mr.device "a100", "i8", "i8", "s32.s8.s8.s32", 32}, {mr.device "a100", "tf32", "tf32", "f32.tf32.tf32.f32", 8},
  {device, "i8", "i8", "s32.s8.s8.s32", 32}, {device, "tf32", "tf32", "f32.tf32.tf32.f32", 8},
  {device, "e4m3", "e4m3", "f32.e4m3.e4m3.f32", 32}, {device, "e4m3", "e5m2", "f32.e4m3.e5m2.f32", 32},
} do
  local on, a, b, types, depth = table.unpack(case)
  random_plans.device = on
  for _, g in ipairs{
    {{m = 64, n = 64, k = 128}, {m = 64, n = 64, k = 64}, 4, {}, "matrices"},
    {{m = 100, n = 72, k = 112}, {m = 64, n = 40, k = 32}, 2, {}, "matrices"},
    {{m = 100, n = 72, k = 80}, {m = 64, n = 40, k = 16}, 2, {}, "matrices"},       -- less than an instruction of 8 bits takes
    {{m = 64, n = 24, k = 36}, {m = 64, n = 24, k = 12}, 4, {}, a == "tf32" and "matrices" or "words"},
    {{m = 33, n = 17, k = 19}, {m = 33, n = 17, k = 19}, 3, {}, a == "tf32" and "words" or "elements"},
    {{m = 100, n = 72, k = 100}, {m = 48, n = 40, k = 24}, 1, {b = "kn"}, "elements"},
    {{m = 100, n = 72, k = 96}, {m = 64, n = 40, k = 32}, 2, {a = "km", b = "kn"}, "elements"},
  } do
    local sizes, tile, warps, orders, by = table.unpack(g)
    local p = all(product_in_loop(a, b, orders)(sizes), tile, warps, {a = 2, b = 2}, on)
    local what = ("%s x %s, %d x %d x %d on %s"):format(a, b, sizes.m, sizes.n, sizes.k, on.name)
    tap.like(tostring(p:kernel{}), "fetch b%d+ by " .. by .. " from", what .. " is fetched by " .. by)
    tap.ok(p:compile{target = "cuda", text = true}.source:find(("mma.sync.aligned.m16n8k%d.row.col.%s"):format(depth, types), 1, true),
      "  there is an instruction for it")
    random_plans.correct(tap, "  right", p, {1, 2, 3})
  end
end
do
  local a100 = mr.device "a100"
  local bound = product_in_loop("i8", "i8", {}){m = 16, n = 8, k = 1536}
  local a, b = mr.array("i8", {16, 1536}, 127), mr.array("i8", {8, 1536}, 127)
  local out = all(bound, {k = 64}, 1, {}, a100):compile{target = random_plans.target}:run{A = a, B = b}
  tap.is(out.C[1], 127 * 127 * 1536, "a sum of integers that no f32 holds, by mma.sync")
  local function cycles(type)
    local bound = product_in_loop(type, type, {}){m = 128, n = 128, k = 4096}
    return all(bound, {m = 128, n = 128, k = 32}, 8, {a = 3, b = 3}, a100):simulate().cycles
  end
  tap.ok(cycles "i8" < cycles "f16" and cycles "f16" < cycles "tf32", "narrow types take less time")
  for _, type in ipairs{"i8", "tf32"} do
    random_plans.device = a100
    local found = mr.search(product_in_loop(type, type, {}){m = 128, n = 96, k = 128}, a100, {measure = false, trials = 20}).plan
    tap.like(tostring(found:kernel{}), type .. ", mma.sync", "a search on a100 multiplies " .. type .. " on the matrix unit")
    random_plans.correct(tap, "  right", found, {1, 2})
  end
end
random_plans.device = device

-- The H200 has mma.sync as a second matrix unit, behind the others. A plan that names it has kernels for it, and products go to wgmma
-- by default.
do
  local h200 = mr.device "h200"
  random_plans.device = h200
  for _, x in ipairs{
    {"gemm", {m = 64, n = 64, k = 128}, {m = 64, n = 64, k = 64}, 4},
    {"gemm", {m = 16, n = 128, k = 128}, {m = 16, n = 64, k = 64}, 4},
    {"gemm", {m = 1, n = 136, k = 128}, {m = 1, n = 128, k = 64}, 8},
    {"dequant_gemm", {m = 5, n = 128, k = 256}, {m = 5, n = 64, k = 128}, 4},
    {"gemm", {m = 100, n = 72, k = 100}, {m = 64, n = 40, k = 32}, 8},
    {"gemm", {m = 64, n = 64, k = 128, dtype = "e4m3"}, {m = 64, n = 64, k = 64}, 4},
    {"flash_attention", {b = 1, h = 2, m = 100, n = 72, d = 40}, {m = 64, n = 32}, 4},
  } do
    local name, sizes, tile, warps = table.unpack(x)
    local bound = mr.examples[name](sizes)
    local p = mr.plan(bound:graph{tile = tile}, h200)
    p:lane("c0", {warps = warps})
    for _, t in ipairs(p.tasks) do p:append(t.name, t.kind == "mma" and {seu = "mma_sync"} or nil) end
    p:fill_waits()
    local what = ("%s of %d rows on Hopper by mma.sync"):format(name, sizes.m)
    tap.like(tostring(p:kernel{}), "x b%d+, %w+, mma.sync", what)
    if sizes.m == 16 then
      tap.like(p:compile{target = "cuda", text = true}.source, "thread %% 32 / 32 %* 16", "  16 rows: each of the lane's warps has columns of its own")
    end
    random_plans.correct(tap, "  right", p, {1, 2, 3})
    tap.like(in_order(h200, bound, tile, warps):compile{target = "cuda", text = true}.source, "wgmma%.mma_async", "  by default wgmma")
  end
  random_plans.device = device
end

-- What it cannot do is refused: an A100 that is said to multiply floats of 8 bits.
do
  local wrong = changed_device("a100", {["i8 = 4096,"] = "i8 = 4096, e4m3 = 4096,"})
  local good, problems = in_order(wrong, mr.examples.gemm{m = 64, n = 64, k = 64, dtype = "e4m3"}, {m = 64, n = 64, k = 64}, 4):check()
  tap.ok(not good, "a type without instruction")
  tap.like(tostring(problems):gsub("%s+", " "), "is not lowered for sm_80, which multiplies tf32, f16, bf16, i8 or u8, by single warps",
    "... is refused with the reason")
end

-- A matrix unit reads both operands as one type, but for the two floats of 8 bits, each of which its instructions name. Products of
-- other pairs are computed on the CUDA cores.
local function product_of(a, b)
  return mr.program("product", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B, Y = p:input("A", {m, k}, a), p:input("B", {n, k}, b), p:output("Y", {m, n}, "f32")
    Y:store("store", p:mma("mma", p:load("a", A), p:load("b", B)))
  end){m = 64, n = 72, k = 64}
end
local function on_unit(bound, seu, on)
  local p = mr.plan(bound:graph{tile = {}}, mr.device(on or "h200"))
  for _, t in ipairs(p.tasks) do p:append(t.name, t.name == "mma" and seu and {seu = seu} or nil) end
  p:fill_waits()
  return p
end
random_plans.target = arg[1] or "host"
for _, pair in ipairs{{"e4m3", "e5m2"}, {"e5m2", "e4m3"}} do
  local p, types = on_unit(product_of(pair[1], pair[2])), table.concat(pair, ".")
  random_plans.correct(tap, "a product of " .. types, p, {1})
  tap.like(p:compile{target = "cuda", text = true}.source, "m64n72k32%.f32%." .. types .. " ", "... by an instruction for both types")
  random_plans.correct(tap, "... which another device multiplies, too", on_unit(product_of(pair[1], pair[2]), "mfma", "mi300x"), {1})
end
for _, pair in ipairs{{"bf16", "f16", "bf16"}, {"f16", "bf16", "f16"}, {"bf16", "e4m3", "bf16"}, {"tf32", "bf16", "tf32"},
    {"f32", "bf16", "bf16"}, {"i8", "bf16", "bf16"}, {"i8", "e4m3", "e4m3"}} do
  local bound, types = product_of(pair[1], pair[2]), pair[1] .. " by " .. pair[2]
  local sound, found = on_unit(bound, "tensor"):check()
  tap.ok(not sound and found[1].code == "wrong_seu", types .. ": refused on the matrix unit", found)
  tap.is(found and found[1] and found[1].message, ("'mma' multiplies %s, and sEU 'tensor' multiplies operands of one type: cast one " ..
    "of them, :to \"%s\", or take another sEU"):format(types, pair[3]), "... with the types and the cast")
  tap.is(found and found[1] and found[1].hint, 'plan:move("mma", {seu="cuda"})', "... and a unit that can")
  random_plans.correct(tap, types .. ", on the unit by default", on_unit(bound), {1})
end

-- Integers: wgmma has no widths that are odd multiples of 8 from 40 on, so these take two or more instructions.
for width, instructions in pairs{[8] = {8}, [16] = {16}, [24] = {24}, [32] = {32}, [40] = {32, 8}, [56] = {48, 8}, [80] = {80}, [136] = {128, 8},
    [256] = {256}, [264] = {256, 8}, [296] = {144, 8}} do
  local bound = mr.program("integers", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local c = p:carry("c", {m, n}, 0)
    local A, B, C = p:input("A", {m, k}, "i8"), p:input("B", {n, k}, "i8"), p:output("C", {m, n}, "i32")
    p:loop(k, function() c:add(p:mma("mma", p:load("a", A), p:load("b", B))) end)
    C:store("store", c)
  end){m = 100, n = width, k = 80}
  local p = mr.plan(bound:graph{tile = {m = width > 200 and 128 or 64, n = width, k = 32}}, mr.device "h200")
  p:lane("c0", {warps = width > 200 and 8 or 4})
  p:buffers{a = 2, b = 2}
  for _, t in ipairs(p.tasks) do p:append(t.name) end
  p:fill_waits()
  local found = {}
  for n in p:compile{target = "cuda", text = true}.source:gmatch "m64n(%d+)k32%.s32%.s8%.s8" do found[#found + 1] = tonumber(n) end
  table.sort(found, function(a, b) return a > b end)
  tap.is(table.concat(found, " "), table.concat(instructions, " "), "a product of integers of " .. width .. " columns")
  random_plans.correct(tap, "... is right", p, {1})
end
do
  local bound = mr.program("great", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B, C = p:input("A", {m, k}, "i8"), p:input("B", {n, k}, "i8"), p:output("C", {m, n}, "i32")
    C:store("store", p:mma("mma", p:load("a", A), p:load("b", B)))
  end){m = 64, n = 8, k = 1536}
  local a, b = mr.array("i8", {64, 1536}, 127), mr.array("i8", {8, 1536}, 127)
  local out = on_unit(bound):compile{target = random_plans.target}:run{A = a, B = b}
  tap.is(out.C[1], 127 * 127 * 1536, "a sum of integers that no f32 holds")
end

local searched = mr.search(product_of("bf16", "f16"), mr.device "h200", {trials = 20, measure = false}).plan
tap.like(searched:script(), 'append%("mma[.0]*", {seu="cuda"', "a search multiplies them on the CUDA cores", searched:script())
random_plans.correct(tap, "... and its plan", searched, {1})

-- sm_80: no copy engine, no proxies, no granting of registers. Programs of all kinds have plans, and their kernels are right.
do
  local a100 = mr.device "a100"
  random_plans.device = a100
  local deep = mr.plan(mr.examples.gemm{m = 256, n = 256, k = 256}:graph{tile = {m = 128, n = 256, k = 64}}, a100)
  deep:lane("p0", {warps = 2})
  for i = 0, 3 do deep:lane("c" .. i, {warps = 2}) end
  deep:split("n", 4)
  deep:buffers{a = 3, b = 3}
  for _, t in ipairs(deep.tasks) do deep:append(t.name, {lane = t.kind == "load" and "p0" or "c" .. t.name:match "%d$"}) end
  deep:fill_waits()
  random_plans.correct(tap, "no shared memory is set aside for stores, which threads do", deep, {1, 2})
  for name, sizes in pairs{
    gemm = {m = 96, n = 72, k = 100}, flash_attention = {b = 1, h = 2, m = 100, d = 32, causal = true},
    grouped_gemm = {m = 96, n = 64, k = 64, e = 3}, rmsnorm_gemm = {m = 64, n = 64, k = 96}, cross_entropy = {m = 20, n = 300},
    flash_decoding = {b = 1, h = 4, hkv = 2, n = 128, d = 32}, attention_backward = {b = 1, h = 1, m = 64, d = 32},
    chunk_state = {b = 1, s = 256, h = 1, p = 32, n = 32}, topk_routing = {m = 20, n = 32, k = 2},
  } do
    local found, why = mr.search(mr.examples[name](sizes), a100, {measure = false, trials = 20})
    tap.ok(found, name .. " on a100: the search finds a plan", why)
    random_plans.correct(tap, name .. " on a100", found.plan, {1, 2})
    local text = found.plan:compile{target = "cuda", text = true}.source
    tap.ok(not text:find("try_wait", 1, true) and not text:find("elect.sync", 1, true) and not text:find("fence.proxy", 1, true)
      and not text:find("fence.mbarrier_init", 1, true), "  its text has no instruction of later machines")
    local _, notes = found.plan:check()
    tap.is(tostring(notes):find("by_threads", 1, true), nil, "  that threads copy is no news where nothing else does")
  end
  -- Operands that a tile has in full, contracted in a loop whose last tile is ragged: what is fetched beyond the end is zero.
  for _, full in ipairs{"a", "a and b"} do
    local prog = mr.program("full", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32")
      local a = p:load("load_a", A)
      local b = full ~= "a" and p:load("load_b", B)
      local c = p:carry("c", {m, n}, 0)
      p:loop(k, function() c:add(p:mma("mma", a, b or p:load("load_b", B))) end)
      C:store("store_c", c)
    end)
    for _, k in ipairs{40, 72} do
      local bound = prog{m = 64, n = 64, k = k}
      local plan = mr.plan(bound:graph{tile = {m = 64, n = 64, k = 32}}, a100)
      for _, t in ipairs(plan.tasks) do plan:append(t.name) end
      plan:fill_waits()
      local what = ("%s in full, %d contracted in steps of 32"):format(full, k)
      tap.like(tostring(plan:kernel{}), "fetch a%d* by matrices", what .. ": by matrices")
      random_plans.correct(tap, "  right", plan, {1, 2})
      local inputs = bound:inputs{}
      inputs.A[1] = math.huge                     -- the slot's first element, which must not be in other rows' sums
      local C, others = plan:compile{target = "host"}:run(inputs).C, 0
      for i = 65, #C do if C[i] ~= C[i] or math.abs(C[i]) == math.huge then others = others + 1 end end
      tap.is(others, 0, "  an infinity is in the sums of its row alone")
    end
  end
end

tap.done_testing()
