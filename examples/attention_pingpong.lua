-- Two warpgroups in ping-pong: the tile is split in two halves of 64 rows, each on a
-- lane of its own with the overlapped order of attention_overlap.lua, and the lanes
-- use the tensor cores alternately: one issues its two products while the other does its
-- softmax. This issue order is kept by waits for issue, not for completion. In iteration j
-- lane c0 has mma_qk of iteration j + 1; it comes after c1 has issued mma_pv of iteration
-- j - 1, two iterations earlier; c1 in iteration j comes after c0's mma_pv of iteration j.
local mr = require "millrace"
local bound = ... or mr.examples.flash_attention{b=2, h=16, m=8192, n=8192, d=128}
local plan = mr.plan(bound:graph{tile={m=128, n=128}}, mr.device "h200")

plan:split("m", 2)
plan:lane("p0", {warps=1})
plan:lane("c0", {warps=4, registers=240})
plan:lane("c1", {warps=4, registers=240})
plan:buffers{k=2, v=2, ["softmax_2.0"]=2, ["softmax_2.1"]=2}

plan:append("load_q", {seu="tma", lane="p0"})
plan:append("load_k", {seu="tma", lane="p0"})
plan:append("load_v", {seu="tma", lane="p0"})
plan:wait("load_q", {"mma_qk.0", "mma_qk.1"})
plan:wait("load_k", {"mma_qk.0", "mma_qk.1"})
plan:wait("load_v", {"mma_pv.0", "mma_pv.1"})

for i = 0, 1 do
  local lane = "c" .. i
  plan:append("mma_qk." .. i, {seu="tensor", lane=lane, at=1})
  plan:append("mma_pv." .. i, {seu="tensor", lane=lane})
  plan:append("softmax." .. i, {seu="cuda", lane=lane, at=1})
  plan:append("rescale." .. i, {seu="cuda", lane=lane, at=1})
  plan:append("normalise." .. i, {seu="cuda", lane=lane})
  plan:append("store_o." .. i, {seu="tma", lane=lane})
  plan:wait("mma_qk." .. i, {"load_q", "load_k"})
  plan:wait("softmax." .. i, {"mma_qk." .. i})
  plan:wait("mma_pv." .. i, {"load_v"})
  plan:wait("rescale." .. i, {"mma_pv." .. i})
  plan:wait("normalise." .. i, {"mma_pv." .. i, "store_o." .. i})
end
plan:wait("mma_qk.0", {{"mma_pv.1", distance=2, when="issued"}})
plan:wait("mma_qk.1", {{"mma_pv.0", distance=1, when="issued"}})
return plan
