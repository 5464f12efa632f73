-- Attention at head dim 128 with 176 keys a tile: as many as the registers of two warpgroups hold.
--
-- The softmax of one block of keys runs under the products of the neighbouring blocks, as in
-- attention_overlap.lua. What is new is where values are stored. The last step of softmax, the
-- conversion of the probabilities to bf16, is split off: until then they are, as f32, an alias of the
-- scores from which they are computed; and as it waits for the product that reads the
-- probabilities of the block before, one version of those is enough.
-- A thread has 88 registers of scores, 44 of probabilities and 64 of the result.
-- Where a causal mask leaves out half of all blocks, attention_d128_causal.lua is faster.
local mr = require "millrace"
local bound = ... or mr.examples.flash_attention{b=2, h=16, m=8192, n=8192, d=128}
local plan = mr.plan(bound:graph{tile={m=128, n=176}}, mr.device "h200")

plan:split_off("softmax_2", "convert")
plan:split("m", 2)
plan:alias{softmax_3="mma_qk"}
plan:lane("p0", {warps=1})
plan:lane("c0", {warps=4, registers=240})
plan:lane("c1", {warps=4, registers=240})
plan:buffers{k=2, v=2}
plan:grid{longest_first=true}

plan:append("load_q", {seu="tma", lane="p0"})
plan:append("load_k", {seu="tma", lane="p0"})
plan:append("load_v", {seu="tma", lane="p0"})
plan:wait("load_q", {"mma_qk.0", "mma_qk.1"})
plan:wait("load_k", {"mma_qk.0", "mma_qk.1"})
plan:wait("load_v", {"mma_pv.0", "mma_pv.1"})

for i = 0, 1 do
  local lane, part = "c" .. i, "." .. i
  plan:append("mma_qk" .. part, {seu="tensor", lane=lane, at=1})
  plan:append("mma_pv" .. part, {seu="tensor", lane=lane})
  plan:append("softmax" .. part, {seu="cuda", lane=lane, at=1})
  plan:append("convert" .. part, {seu="cuda", lane=lane, at=1})
  plan:append("rescale" .. part, {seu="cuda", lane=lane, at=1})
  plan:append("normalise" .. part, {seu="cuda", lane=lane})
  plan:append("store_o" .. part, {seu="tma", lane=lane})
  plan:wait("mma_qk" .. part, {"load_q", "load_k"})
  plan:wait("softmax" .. part, {"mma_qk" .. part})
  plan:wait("mma_pv" .. part, {"load_v"})
  plan:wait("convert" .. part, {"mma_pv" .. part})
  plan:wait("normalise" .. part, {"mma_pv" .. part, "store_o" .. part})
end
return plan
