-- A GEMM whose rows no copy engine brings, as they are no multiple of 16 bytes: threads copy them.
--
-- Rows of a multiple of 4 bytes go to shared memory by asynchronous copies: four warps are enough,
-- and a ring of three stages, which leaves more of the L1 to the copies that are under way. Others
-- pass through registers, 16 bytes at a time: eight warps with 88 registers keep eight such accesses
-- each in flight. The threads store the result, too, as staging it would take memory from the L1.
local mr = require "millrace"
local bound = ... or mr.examples.gemm{m=8192, n=8192, k=4100}
local plan = mr.plan(bound:graph{tile={m=128, n=256, k=64}}, mr.device "h200")

local async = true
for i = 1, 2 do
  local shape = bound.tensors[i].shape
  async = async and shape[#shape] % 2 == 0              -- of two bytes each
end

plan:split("m", 2)
plan:lane("p0", async and {warps=4} or {warps=8, registers=88})
plan:lane("c0", {warps=4, registers=async and 232 or 168})
plan:lane("c1", {warps=4, registers=async and 232 or 168})
plan:buffers(async and {a=3, b=3} or {a=4, b=4})
plan:grid{raster="rows", group=8}

plan:append("load_a", {lane="p0"})
plan:append("load_b", {lane="p0"})
plan:wait("load_a", {"mma.0", "mma.1"})
plan:wait("load_b", {"mma.0", "mma.1"})

for i = 0, 1 do
  local lane = "c" .. i
  plan:append("mma." .. i, {seu="tensor", lane=lane})
  plan:append("epilogue." .. i, {seu="cuda", lane=lane})
  plan:append("store_c." .. i, {seu="cuda", lane=lane})
  plan:wait("mma." .. i, {"load_a", "load_b"})
  plan:wait("epilogue." .. i, {"mma." .. i})
end
return plan
