-- A target with another matrix instruction and fragments of its own: products of single warps out
-- of registers, done when the lane goes on. Kernels for it are right on the CPU.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local random_plans = dofile(dir .. "lib/random_plans.lua")
local device = dofile(dir .. "lib/mma_sync.lua")
random_plans.device = device

local SEEDS <const> = {1, 2, 3, 4}

local function all(bound, tile, warps, rings, on)
  local plan = mr.plan(bound:graph{tile = tile}, on or device)
  plan:lane("c0", {warps = warps})
  plan:buffers(rings or {})
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  return plan
end

-- What the record says is what is lowered, shown, priced and printed.
local plan = all(mr.examples.gemm{m = 64, n = 64, k = 96}, {m = 64, n = 64, k = 32}, 4, {a = 2, b = 2})
local dump = tostring(plan:kernel{})
tap.like(dump, "fetch b%d+ by words from slot_b", "operands are fetched")
tap.like(dump, "product r_c%[0%] %+= a%d+ x b%d+, bf16, mma.sync, 8 at once", "... and multiplied by warps")
tap.ok(not dump:find "groups_wait" and not dump:find "pin ", "nobody counts groups")
tap.ok(not dump:find "  registers %d", "nobody sets registers")
tap.like(plan:compile{target = "cuda", text = true}.source, "mma%.sync%.aligned%.m16n8k16%.row%.col%.f32%.bf16",
  "there is an instruction for it")
local function cycles(on)
  local long = all(mr.examples.gemm{m = 128, n = 128, k = 2048}, {m = 128, n = 128, k = 64}, 8, {a = 3, b = 3}, on)
  return long:simulate().cycles
end
tap.ok(cycles(device) > 2 * cycles(mr.device "h200"), "fetching has its price")

-- GEMMs: interior and ragged, with operands in both layouts, on lanes of few warps and many.
for _, g in ipairs{
  {{m = 64, n = 64, k = 64}, {m = 64, n = 64, k = 32}, 4},
  {{m = 128, n = 256, k = 128}, {m = 128, n = 256, k = 64}, 8},
  {{m = 100, n = 72, k = 100}, {m = 64, n = 64, k = 64}, 4},
  {{m = 100, n = 72, k = 100, b = "kn"}, {m = 48, n = 40, k = 24}, 1},
  {{m = 40, n = 24, k = 40, dtype = "f16"}, {m = 40, n = 24, k = 40}, 2},
  {{m = 33, n = 17, k = 19, out = "f32"}, {m = 33, n = 17, k = 19}, 3},
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

-- What it cannot do is refused.
local good, problems = all(mr.examples.gemm{m = 64, n = 64, k = 64, dtype = "e4m3"}, {m = 64, n = 64, k = 64}, 4):check()
tap.ok(not good, "a type without instruction")
tap.like(tostring(problems):gsub("%s+", " "), "is not lowered for mma_sync, which multiplies f16 or bf16, by single warps",
  "... is refused with the reason")

tap.done_testing()
