-- A 128 x 256 x 64 GEMM: a producer warp keeps a ring of four stages full by TMA, two
-- consumer warpgroups each own 64 rows of the tile and keep one product in flight. The
-- producer runs on into the next tile while the consumers store this one. Tiles are
-- walked in groups, so that the EUs at work share what is in L2.
-- TMA brings rows of a multiple of 16 bytes; for others there is plans/gemm_by_threads.lua.
local mr = require "millrace"
local bound = ... or mr.examples.gemm{m=8192, n=8192, k=8192}
for i = 1, 2 do
  local shape = bound.tensors[i].shape
  if shape[#shape] % 8 > 0 then return mr.load_plan("gemm_by_threads", bound) end
end
local plan = mr.plan(bound:graph{tile={m=128, n=256, k=64}}, mr.device "h200")

plan:split("m", 2)
plan:lane("p0", {warps=1})
plan:lane("c0", {warps=4, registers=232})
plan:lane("c1", {warps=4, registers=232})
plan:buffers{a=4, b=4}
plan:grid{raster="rows", group=8}

plan:append("load_a", {seu="tma", lane="p0"})
plan:append("load_b", {seu="tma", lane="p0"})
plan:wait("load_a", {"mma.0", "mma.1"})
plan:wait("load_b", {"mma.0", "mma.1"})

for i = 0, 1 do
  local lane = "c" .. i
  plan:append("mma." .. i, {seu="tensor", lane=lane})
  plan:append("epilogue." .. i, {seu="cuda", lane=lane})
  plan:append("store_c." .. i, {seu="tma", lane=lane})
  plan:wait("mma." .. i, {"load_a", "load_b"})
  plan:wait("epilogue." .. i, {"mma." .. i, "store_c." .. i})
end
return plan
