-- register_operands.lua - products whose first operand is computed in registers: forms of the same plan, alternately.
--
--   millrace tests/perf/register_operands.lua [SECONDS]
--
-- rmsnorm_gemm at 8192 x 8192 x 4096. The operand is a product of two bf16: computed in f32 and converted behind the wait for the
-- product before (old), or multiplied as pairs there, by the sTask that adds up squares (pairs) or by one of its own (pairs_apart);
-- pairs_fenced is pairs with fences of those who read what the copy engine fills again, instead of the lane that loads.
-- dequant_gemm, 4096 rows and 8192 x 8192 weights of i4, and fp4_gemm (mxfp4): the best plan in the model whose weights go to shared
-- memory (old), and one whose weights are the rows of the product, made in its registers (swapped); gemm of bf16 for comparison.
-- Each form is compared with the reference at small sizes and at full size. Then the forms of each program are raced for SECONDS (2)
-- each. Exit status 1: some result is wrong. It takes less than a minute.
local mr = require "millrace"

local seconds = tonumber(arg[1] or 2)
local on_device = mr.attached()
local target = on_device and "cuda" or "host"
local bad = 0

local function check(what, kernel)
  local e = kernel:check{seed = 5}
  print(("%-40s%s"):format(what, e))
  if not e.ok then bad = bad + 1 end
end

-- All that is not loaded is on the lane of its slice.
local function fill(plan, lanes)
  plan:lane("p0", {warps = lanes.loading or 1})
  for i = 0, 1 do plan:lane("c" .. i, {warps = 4}) end
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or "c" .. t.name:match "%.(%d+)$",
      seu = t.kind == "store" and lanes.stores or nil})
  end
  plan:grid{raster = "rows", group = lanes.group}
  plan:buffers(lanes.rings)
  plan:fill_waits()
  return plan
end

local function norm(sizes, steps)
  local plan = mr.plan(mr.examples.rmsnorm_gemm(sizes):graph{tile = {m = 128, n = 256, k = 64}}, mr.device "h200")
  if steps > 0 then plan:split_off("squares", "convert", steps) end
  plan:split("m", 2)
  return fill(plan, {group = 16, rings = {x = 4, g = 4, w = 4}})
end

-- Weights as columns go through shared memory, as rows through registers.
local function weights(name, sizes, swapped)
  local scale = name == "dequant_gemm" and "scale" or "s"
  local plan = mr.plan(mr.examples[name](sizes):graph{tile = {m = 256, n = 128, k = 128}}, mr.device "h200")
  if swapped then plan:swap "mma" end
  plan:split("n", 2)
  return fill(plan, {loading = swapped and name == "dequant_gemm" and 1 or 8, group = 8, stores = not swapped and "cuda" or nil, rings = {w = 3, [scale] = 3, a = 2}})
end

-- forms: how a plan of given sizes is made, by name, and passes that its kernel is made without; the first is the base.
local function compare(title, small, full, forms)
  local racers = {}
  for _, form in ipairs(forms) do
    for _, dtype in ipairs{"bf16", "f16"} do
      local sizes = {dtype = dtype}
      for key, value in pairs(small) do sizes[key] = value end
      check(("%s, %s, %s"):format(title, form.name, dtype), form.make(sizes):compile{target = target, without = form.without})
    end
    racers[form.name] = form.make(full)
    print(("%-40s%.3f ms predicted"):format(title .. ", " .. form.name, racers[form.name]:simulate{events = 0}.seconds * 1e3))
  end
  if not on_device then return end
  for _, form in ipairs(forms) do
    racers[form.name] = racers[form.name]:compile{target = "cuda", without = form.without}
    check(("%s, %s, full size"):format(title, form.name), racers[form.name])
  end
  print(mr.race(racers, {seconds = seconds, base = forms[1].name}))
end

local function normed(steps) return function(sizes) return norm(sizes, steps) end end
compare("rmsnorm_gemm", {m = 300, n = 512, k = 344}, {m = 8192, n = 8192, k = 4096},
  {{name = "old", make = normed(1)}, {name = "pairs", make = normed(0)},
    {name = "pairs_fenced", make = normed(0), without = {"load_fences"}}, {name = "pairs_apart", make = normed(2)}})
for _, x in ipairs{{"dequant_gemm"}, {"fp4_gemm", format = "mxfp4"}} do
  local function form(swapped)
    return function(sizes)
      sizes.format = x.format
      return weights(x[1], sizes, swapped)
    end
  end
  compare(x[1], {m = 320, n = 256, k = 384}, {m = 4096, n = 8192, k = 8192},
    {{name = "old", make = form(false)}, {name = "swapped", make = form(true)}})
end
if on_device then
  local gemm = mr.search(mr.examples.gemm{m = 4096, n = 8192, k = 8192}, mr.device(), {measure = false}).plan:compile{target = "cuda"}
  print(("%-40s%.3f ms"):format("gemm of bf16", gemm:bench{seconds = seconds}.ms))
else
  print "no device: nothing is measured"
end
os.exit(bad == 0)
