-- sanitize.lua - one kernel, small, with several tiles for each EU and every ring round
-- more than twice. For sanitizer.t:
--
--   millrace tests/gpu/sanitize.lua KERNEL
--   millrace tests/gpu/sanitize.lua LINE     one that a tool must find something in
--   millrace tests/gpu/sanitize.lua          the names of the kernels
local mr, core = require "millrace", require "millrace.core"

local LIMIT = 300                       -- seconds: under a tool a kernel takes its time

local function gemm(plan, sizes, grid) return {plan, mr.examples.gemm, sizes, grid} end
local function attention(plan, sizes) return {plan, mr.examples.flash_attention, sizes} end

local kernels = {
  gemm = gemm("gemm_cooperative", {m=256, n=512, k=640}),
  gemm_ragged = gemm("gemm_cooperative", {m=200, n=520, k=600}),
  gemm_transposed = gemm("gemm_cooperative", {m=256, n=512, k=640, a="km", b="kn"}),
  gemm_cluster = gemm("gemm_cooperative", {m=512, n=512, k=640}, {cluster=2}),
  attention_serial = attention("attention_serial", {b=1, h=2, m=256, n=640, d=128}),
  attention_overlap = attention("attention_overlap", {b=1, h=2, m=256, n=640, d=128}),
  attention_pingpong = attention("attention_pingpong", {b=1, h=2, m=256, n=640, d=128}),
  attention_causal = attention("attention_pingpong", {b=1, h=2, m=640, d=128, causal=true}),
  attention_64 = attention("attention_pingpong", {b=1, h=2, m=200, n=600, d=64}),
}

-- What each tool must see.
local lines = {
  memcheck = [[ if (THREAD == 0) tensor_C[-8 - (THREAD + 1) * 1000000000ll] = 0; ]],
  racecheck = [[ extern __shared__ char raw[]; ((volatile int *)raw)[0] = THREAD;
    ((volatile int *)raw)[1] = ((volatile int *)raw)[0]; __syncthreads(); ]],
  synccheck = [[ if (THREAD < 40) __syncthreads(); ]],
}

local function plan_of(kernel)
  local plan = mr.load_plan(kernel[1], kernel[2](kernel[3]))
  plan:grid{eus=2}
  plan:grid(kernel[4] or {})
  return plan
end

local name = arg[1]
if kernels[name] then
  local error = plan_of(kernels[name]):compile{target="cuda"}:check{limit=LIMIT}
  print(("%s: relative error %.2e"):format(error.ok and "right" or "wrong", error.relative))
elseif lines[name] then
  local k = core.build(plan_of(kernels.gemm), true, function(text)
    return (text:gsub("\tconst u32 shared = shared_base%(%);\n", function(found)
      return found .. lines[name] .. "\n"
    end))
  end)
  k:run(k.plan.graph.program:inputs{}, {limit=60})
else
  local names = {}
  for key in pairs(kernels) do names[#names + 1] = key end
  table.sort(names)
  print(table.concat(names, "\n"))
end
