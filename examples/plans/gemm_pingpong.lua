-- A GEMM for the MI300X by two groups of four waves, which multiply alternately (ping-pong).
--
-- Each SIMD has one wave of each group. While one group multiplies, at a higher priority, the other one writes its half of the
-- next tiles to the LDS and loads its half of the next but one. Then all waves meet at the block's barrier, and the groups exchange
-- their parts. Two slots of both operands take all of the LDS, 64 KiB.
local mr = require "millrace"
local bound = ... or mr.examples.gemm{m=8192, n=8192, k=8192}
local plan = mr.plan(bound:graph{tile={m=256, n=256, k=32}}, mr.device "mi300x")

plan:split_off("a", "put_a")
plan:split_off("b", "put_b")
plan:split("m", 2, {"load_a", "put_a", "mma", "epilogue", "store_c"})
plan:split("n", 2, {"load_b", "put_b"})

-- The second group copies before it multiplies, as the first one needs what it copies for its next product.
local orders = {{"mma", "put_a", "put_b", "load_a", "load_b"}, {"put_a", "put_b", "load_a", "load_b", "mma"}}
local ahead = {put_a=1, put_b=1, load_a=2, load_b=2}
for i = 0, 1 do
  local lane = "c" .. i
  plan:lane(lane, {warps=4, columns=4, priority=1})     -- 128 x 64 of the sums in each wave
  for _, task in ipairs(orders[i + 1]) do plan:append(task .. "." .. i, {lane=lane, at=ahead[task]}) end
  plan:append("epilogue." .. i, {lane=lane})
  plan:append("store_c." .. i, {lane=lane})
end
plan:buffers{a=2, b=2}
plan:grid{raster="rows", group=8, chiplets=8}

plan:fill_waits()
plan:wait("mma.1", {{"mma.0", distance=0}})             -- the groups do not multiply at the same time
plan:wait("mma.0", {{"mma.1", distance=1}})
plan:wait("put_a.0", {{"put_b.1", distance=0}})         -- nor copy at the same time
return plan
