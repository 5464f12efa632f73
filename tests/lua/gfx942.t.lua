-- gfx942, whose warps have 64 threads and whose products give a thread four neighbouring columns: plans for the MI300X
-- have kernels, which are right on the CPU.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")
local shipped = dofile(dir .. "lib/shipped_sizes.lua")
local device = mr.device "mi300x"
random_plans.device = device

local SEEDS <const> = {1, 2}
local PLANS <const> = tonumber(os.getenv "MILLRACE_PLANS" or 40) // 3

local function all(bound, tile, warps, rings)
  local plan = mr.plan(bound:graph{tile = tile}, device)
  plan:lane("c0", {warps = warps})
  plan:buffers(rings or {})
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  return plan
end

local plan = all(mr.examples.gemm{m = 64, n = 64, k = 96}, {m = 64, n = 64, k = 32}, 4, {a = 2, b = 2})
local dump = tostring(plan:kernel{})
tap.like(dump, "product r_c%[0%] %+= a%d+ x b%d+, bf16, mfma, 4 at once", "products are the machine's")
tap.like(dump, "flags and the barriers of lanes are counters, which waiting warps read again and again", "how lanes wait is said")
tap.like(dump, ": 320 threads, .*flag 'load_a complete': 2 deep, 64 arrivals .*lane p0: warps 4 to 4", "a warp has 64 threads")

for _, g in ipairs{
  {{m = 64, n = 64, k = 64}, {m = 64, n = 64, k = 32}, 4},
  {{m = 128, n = 256, k = 128}, {m = 128, n = 128, k = 64}, 8},
  {{m = 100, n = 72, k = 100, b = "kn"}, {m = 48, n = 48, k = 32}, 1},
  {{m = 40, n = 24, k = 40, dtype = "f16"}, {m = 40, n = 24, k = 40}, 2},
  {{m = 33, n = 17, k = 19, out = "f32"}, {m = 33, n = 17, k = 19}, 3},
  {{m = 70, n = 50, k = 36, b = "kn", bias = true, activation = "gelu"}, {m = 32, n = 16, k = 12}, 2},
} do
  local sizes, tile, warps = table.unpack(g)
  random_plans.correct(tap, ("gemm %d x %d x %d on %d warps"):format(sizes.m, sizes.n, sizes.k, warps),
    all(mr.examples.gemm(sizes), tile, warps), SEEDS)
end
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

-- Every program, by the plan that a search finds.
local names = {}
for name in pairs(mr.examples) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  local found, why = mr.search(mr.examples[name](shipped[name][1]), device, {measure = false, trials = 5})
  if tap.ok(found, name .. ": the search finds a plan", why) then
    random_plans.correct(tap, name, found.plan, {1})
  end
end

-- Whatever plans there are.
for seed = 1, PLANS do
  local drawn, info = random_plans.draw(seed, nil, seed % 2 == 0, seed % 5 == 0)
  random_plans.correct(tap, ("plan %d, %s"):format(seed, info.program), drawn, SEEDS)
end

tap.done_testing()
