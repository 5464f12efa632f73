-- Attention at head dim 128 with 176 keys a tile: as many as the registers of two warpgroups hold.
--
-- The softmax of one block of keys runs under the products of the blocks beside it, as in
-- attention_overlap.lua. What is new is where values lie. The last step of softmax, the
-- conversion of the probabilities to bf16, is cut off: until then they lie, as f32, in the place
-- of the scores that they are made of; and as it waits for the product that reads the
-- probabilities of the block before, one version of those is enough.
-- A thread has 88 registers of scores, 44 of probabilities and 64 of the result.
local mr = require "millrace"
local bound = ... or mr.examples.flash_attention{b=2, h=16, m=8192, n=8192, d=128}
local plan = mr.plan(bound:graph{tile={m=128, n=176}}, mr.device "h200")

plan:cut("softmax_2", "convert")
plan:place{softmax_3="mma_qk"}
plan:lane("p0", {warps=1})
plan:lane("c0", {warps=8, registers=240})
plan:buffers{k=2, v=2}

plan:append("load_q", {seu="tma", lane="p0"})
plan:append("load_k", {seu="tma", lane="p0"})
plan:append("load_v", {seu="tma", lane="p0"})

plan:append("mma_qk", {seu="tensor", lane="c0", at=1})
plan:append("mma_pv", {seu="tensor", lane="c0"})
plan:append("softmax", {seu="cuda", lane="c0", at=1})
plan:append("convert", {seu="cuda", lane="c0", at=1})
plan:append("rescale", {seu="cuda", lane="c0", at=1})
plan:append("normalise", {seu="cuda", lane="c0"})
plan:append("store_o", {seu="tma", lane="c0"})

plan:wait("mma_qk", {"load_q", "load_k"})
plan:wait("softmax", {"mma_qk"})
plan:wait("mma_pv", {"load_v"})
plan:wait("convert", {"mma_pv"})
plan:wait("normalise", {"mma_pv", "store_o"})
plan:wait("load_q", {"mma_qk"})
plan:wait("load_k", {"mma_qk"})
plan:wait("load_v", {"mma_pv"})
return plan
