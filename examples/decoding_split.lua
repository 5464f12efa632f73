-- Decoding at the speed of memory: K and V pass through each SM once, and all else hides
-- behind them. One producer warp keeps a ring of three tiles of K and three of V full,
-- 192 KiB under way on each SM. A consumer does one thing after the other. Its 64 rows
-- hold the few queries of a kv head, so most of its work is on rows that are not used,
-- and still it is done before the next tile is there.
--
-- In the second phase a tile is some KiB, and loading it takes longer than working on it.
-- With four versions of what it loads the producer is three tiles ahead.
local mr = require "millrace"
local bound = ... or mr.examples.flash_decoding{b=64, h=32, hkv=4, n=8192, d=128}
local plan = mr.plan(bound:graph{tile={key=128}}, mr.device "h200")

plan:lane("p0", {warps=1})
plan:lane("c0", {warps=4, registers=240})
plan:buffers{k=3, v=3, mx_2=4, l_2=4, part=4}

-- split: the keys of a part, 128 at a time
plan:append("load_q", {seu="tma", lane="p0"})
plan:append("load_k", {seu="tma", lane="p0"})
plan:append("load_v", {seu="tma", lane="p0"})
plan:append("mma_qk", {seu="tensor", lane="c0"})
plan:append("softmax", {seu="cuda", lane="c0"})
plan:append("rescale", {seu="cuda", lane="c0"})
plan:append("mma_pv", {seu="tensor", lane="c0"})
for i = 1, 3 do
  local store = ({"store_part", "store_mx", "store_l"})[i]
  plan:append("ew" .. i, {seu="cuda", lane="c0"})
  plan:append(store, {seu="tma", lane="c0"})
  plan:wait("ew" .. i, {store})
end
plan:wait("mma_qk", {"load_q", "load_k"})
plan:wait("softmax", {"mma_qk"})
plan:wait("mma_pv", {"load_v"})
plan:wait("ew1", {"mma_pv"})
plan:wait("load_q", {"mma_qk"})
plan:wait("load_k", {"mma_qk"})
plan:wait("load_v", {"mma_pv"})

-- combine: the parts of a head
plan:append("load_mx", {seu="tma", lane="p0"})
plan:append("load_l", {seu="tma", lane="p0"})
plan:append("load_part", {seu="tma", lane="p0"})
plan:append("combine", {seu="cuda", lane="c0"})
plan:append("store_o", {seu="tma", lane="c0"})
plan:wait("combine", {"load_mx", "load_l", "load_part", "store_o"})
plan:wait("load_mx", {"combine"})
return plan
