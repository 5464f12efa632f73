-- passes.lua - what passes of lowering bring: attention_serial with and without each, alternately.
--
--   millrace tests/perf/passes.lua [ROUNDS [I N]]
--
-- Prints the median of ROUNDS (7) times in ms, of 16384 tokens and 2048 channels. With I and N it
-- only compiles the I-th of N parts of the kernels, from 0, so that they are in the cache.
local mr = require "millrace"

local passes = {"", "unmask", "partial_sums", "hoist"}
local shapes = {{d=128}, {d=128, causal=true}, {d=64}, {d=64, causal=true}}
local rounds, part, parts = tonumber(arg[1] or 7), tonumber(arg[2]), tonumber(arg[3])

local kernels = {}
for _, shape in ipairs(shapes) do
  local bound = mr.examples.flash_attention{b=2, h=2048 // shape.d, m=8192, n=8192, d=shape.d, causal=shape.causal}
  for _, pass in ipairs(passes) do
    kernels[#kernels + 1] = {bound=bound, without=pass ~= "" and {pass} or {}, ms={}}
  end
end
for i, k in ipairs(kernels) do
  if not part or (i - 1) % parts == part then
    k.kernel = mr.load_plan("attention_serial", k.bound):compile{target="cuda", without=k.without}
  end
end
if part then return end

for round = 1, rounds do
  for _, k in ipairs(kernels) do k.ms[round] = k.kernel:bench{seconds=0.06}.ms end
end
print(("%-12s%8s%8s%8s%8s"):format("without", "128", "causal", "64", "causal"))
for p, pass in ipairs(passes) do
  local row = ("%-12s"):format(pass == "" and "nothing" or pass)
  for s = 1, #shapes do
    local ms = kernels[(s - 1) * #passes + p].ms
    table.sort(ms)
    row = row .. ("%8.3f"):format(ms[(rounds + 1) // 2])
  end
  print(row)
end
