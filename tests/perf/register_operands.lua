-- register_operands.lua - products whose first operand is computed in registers: forms of the same plan, alternately.
--
--   millrace tests/perf/register_operands.lua [SECONDS]
--
-- rmsnorm_gemm at 8192 x 8192 x 4096. The operand is a product of two bf16: computed in f32 and converted behind the wait for the
-- product before (old), or multiplied as pairs there, by the sTask that adds up squares (pairs) or by one of its own (pairs_apart).
-- Each form is compared with the reference at small sizes and at full size, and all forms with each other. Then they are raced for
-- SECONDS (4). Exit status 1: some result is wrong. It takes less than a minute.
local mr = require "millrace"

local seconds = tonumber(arg[1] or 4)
local on_device = mr.attached()

local function norm(sizes, steps, tile)
  local plan = mr.plan(mr.examples.rmsnorm_gemm(sizes):graph{tile = tile}, mr.device "h200")
  if steps > 0 then plan:split_off("squares", "convert", steps) end
  plan:split("m", 2)
  plan:lane("p0", {warps = 1})
  for i = 0, 1 do plan:lane("c" .. i, {warps = 4}) end
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c" .. t.name:match "%.(%d+)$"}) end
  plan:buffers{x = 4, g = 4, w = 4}
  plan:grid{raster = "rows", group = 16}
  plan:fill_waits()
  return plan
end

local forms <const> = {old = 1, pairs = 0, pairs_apart = 2}
local names <const> = {"old", "pairs", "pairs_apart"}
local full <const> = {m = 8192, n = 8192, k = 4096}
local tile <const> = {m = 128, n = 256, k = 64}
local bad = 0

local function check(what, kernel)
  local e = kernel:check{seed = 5}
  print(("%-40s%s"):format(what, e))
  if not e.ok then bad = bad + 1 end
end

for _, name in ipairs(names) do
  for _, dtype in ipairs{"bf16", "f16"} do
    local plan = norm({m = 300, n = 512, k = 344, dtype = dtype}, forms[name], tile)
    check(("%s, %s, 300 x 512 x 344"):format(name, dtype), plan:compile{target = on_device and "cuda" or "host"})
  end
end

local racers = {}
for _, name in ipairs(names) do
  local plan = norm(full, forms[name], tile)
  print(("%-40s%.3f ms predicted"):format(name, plan:simulate{events = 0}.seconds * 1e3))
  racers[name] = plan
end
if not on_device then
  print "no device: nothing is measured"
else
  for _, name in ipairs(names) do racers[name] = racers[name]:compile{target = "cuda"} end
  for _, name in ipairs(names) do check(name .. ", full size", racers[name]) end
  print(mr.race(racers, {seconds = seconds, base = "old"}))
end
os.exit(bad == 0)
