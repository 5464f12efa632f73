-- Attention without overlap: one consumer lane of eight warps takes the complete 128-row
-- tile and does one thing after the other. The tensor cores idle during the softmax.
local mr = require "millrace"
local bound = ... or mr.examples.flash_attention{b=2, h=16, m=8192, n=8192, d=128}
local plan = mr.plan(bound:graph{tile={m=128, n=128}}, mr.device "h200")

plan:lane("p0", {warps=1})
plan:lane("c0", {warps=8, registers=240})
plan:buffers{k=2, v=2}

plan:append("load_q", {seu="tma", lane="p0"})
plan:append("load_k", {seu="tma", lane="p0"})
plan:append("load_v", {seu="tma", lane="p0"})

plan:append("mma_qk", {seu="tensor", lane="c0"})
plan:append("softmax", {seu="cuda", lane="c0"})
plan:append("rescale", {seu="cuda", lane="c0"})
plan:append("mma_pv", {seu="tensor", lane="c0"})
plan:append("normalise", {seu="cuda", lane="c0"})
plan:append("store_o", {seu="tma", lane="c0"})

-- what is read must have arrived
plan:wait("mma_qk", {"load_q", "load_k"})
plan:wait("softmax", {"mma_qk"})
plan:wait("mma_pv", {"load_v"})
plan:wait("rescale", {"mma_pv"})
plan:wait("normalise", {"mma_pv", "store_o"})
-- what is overwritten must have been read
plan:wait("load_q", {"mma_qk"})
plan:wait("load_k", {"mma_qk"})
plan:wait("load_v", {"mma_pv"})
return plan
