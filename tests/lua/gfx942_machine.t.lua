-- The machine code that clang makes of kernels for gfx942 is executed: memory answers as late as the machine allows, waves go
-- on in many orders. Results are right; and each wait, barrier and arrival that is taken out of the code makes them wrong, or
-- something else goes wrong, or it is known why the wait is not needed. MILLRACE_WAVES=N: N times as many seeds.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, on_waves = dofile(dir .. "tap.lua"), dofile(dir .. "lib/on_waves.lua")
local device = mr.device "mi300x"
local MORE <const> = tonumber(os.getenv "MILLRACE_WAVES" or 1)

for _, tool in ipairs{"clang-22", "/usr/lib/llvm-22/bin/llvm-objdump", "python3"} do
  if not os.execute(tool .. " --version >/dev/null 2>&1") then
    tap.ok(true, "machine code for gfx942 # SKIP there is no " .. tool)
    return tap.done_testing()
  end
end

local in_order = dofile(dir .. "lib/in_order.lua")
local function all(...) return in_order(device, ...) end

-- One lane copies what it multiplies, one iteration ahead.
local function one_lane(bound, tile, warps, rings, loads)
  local plan = mr.plan(bound:graph{tile = tile}, device)
  plan:lane("c0", {warps = warps})
  plan:buffers(rings)
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = "c0", at = t.kind == "load" and loads or 0}) end
  plan:fill_waits()
  return plan
end

-- What: a plan; how many seeds; by how many seeds what is taken out is tried, or nil; how many products its loop has, which does
-- not wait for all accesses of global memory. Layouts of products are those of AMD's matrix instruction calculator.
local counts = {found = 0, spare = 0}
local e <const> = mr.examples
local shipped = dofile(dir .. "lib/shipped_sizes.lua")
for _, case in ipairs{
  {"gemm", all(e.gemm{m = 32, n = 32, k = 96}, {m = 32, n = 32, k = 32}, 2, {a = 2, b = 2}), 6, 6, 4},
  {"gemm on one lane", one_lane(e.gemm{m = 32, n = 32, k = 128}, {m = 32, n = 32, k = 32}, 2, {a = 2, b = 2}, 1), 6, 4},
  {"gemm on one lane, of one wave", one_lane(e.gemm{m = 16, n = 32, k = 128}, {m = 16, n = 32, k = 32}, 1, {a = 2, b = 2}, 1), 2, 2},
  {"gemm of parts of tiles", all(e.gemm{m = 40, n = 24, k = 40}, {m = 32, n = 16, k = 16}, 2, {a = 2, b = 2}), 3},
  {"gemm of wide products", all(e.gemm{m = 64, n = 32, k = 96, dtype = "f16"}, {m = 64, n = 32, k = 32}, 2, {a = 2, b = 2}), 3, 4, 4},
  {"gemm with gelu", all(e.gemm{m = 32, n = 32, k = 64, bias = true, activation = "gelu"}, {m = 32, n = 32, k = 32}, 2), 2},
  {"attention", all(e.flash_attention{b = 1, h = 1, m = 32, n = 64, d = 32}, {m = 32, n = 32}, 2, {k = 2, v = 2}), 3, 4, 8},
  {"attention of wide products", all(e.flash_attention{b = 1, h = 1, m = 64, n = 64, d = 32}, {m = 64, n = 32}, 2), 2},
  {"dequant_gemm", all(e.dequant_gemm{m = 32, n = 32, k = 128, group = 64}, {m = 32, n = 32, k = 64}, 2), 2, 2},
  {"rmsnorm_gemm", all(e.rmsnorm_gemm{m = 32, n = 32, k = 64}, {m = 32, n = 32, k = 32}, 2), 2, 2},
  {"cross_entropy", all(e.cross_entropy{m = 16, n = 128}, shipped.cross_entropy.tile, 1), 2, 2},
  {"topk_routing", all(e.topk_routing{m = 16, n = 64}, shipped.topk_routing.tile, 1), 2, 2},
} do
  local what, plan, seeds, spoil, products = table.unpack(case)
  for seed = 1, seeds * MORE do
    local wrong = on_waves.wrong(plan, seed)
    tap.ok(not wrong, ("%s, seed %d"):format(what, seed), wrong)
  end
  if spoil then
    local wrong, report = on_waves.wrong(plan, 1, spoil * MORE)
    tap.ok(not wrong, what .. ": right, before waits are taken out", wrong)
    for line in (report or ""):gmatch "[^\n]+" do
      print("# " .. line)
      local n = tonumber(line:match ": (%d+) found" or line:match ": (%d+) %a" or 0)
      local kind = line:find ": %d+ found" and "found" or line:find "vmcnt%(0%)" and "loop" or "spare"
      counts[kind] = (counts[kind] or 0) + n
    end
    if products then tap.like(report, ("loop: %d products, 0 vmcnt"):format(products), what .. ": products of the loop are the plan's") end
    tap.ok(report and not report:find "not found", what .. ": each is needed, or it is known why not", report)
  end
end
print(("# of what was taken out %d are found, %d are known not to be needed"):format(counts.found, counts.spare))
tap.done_testing()
