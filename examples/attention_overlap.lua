-- The softmax of one block of keys runs under the products of the neighbouring blocks:
-- the same lane issues the scores of the next block and the output of this one, and
-- does the next softmax while the tensor cores work. That is an order and an offset:
-- in iteration j of the pipelined loop the lane has mma_qk, softmax and rescale of iteration j + 1 and mma_pv of
-- iteration j. The probabilities live over two iterations, so they need two versions.
local mr = require "millrace"
local bound = ... or mr.examples.flash_attention{b=2, h=16, m=8192, n=8192, d=128}
local plan = mr.plan(bound:graph{tile={m=128, n=128}}, mr.device "h200")

plan:lane("p0", {warps=1})
plan:lane("c0", {warps=8, registers=240})
plan:buffers{k=2, v=2, softmax_2=2}

plan:append("load_q", {seu="tma", lane="p0"})
plan:append("load_k", {seu="tma", lane="p0"})
plan:append("load_v", {seu="tma", lane="p0"})

plan:append("mma_qk", {seu="tensor", lane="c0", at=1})
plan:append("mma_pv", {seu="tensor", lane="c0"})
plan:append("softmax", {seu="cuda", lane="c0", at=1})
plan:append("rescale", {seu="cuda", lane="c0", at=1})
plan:append("normalise", {seu="cuda", lane="c0"})
plan:append("store_o", {seu="tma", lane="c0"})

plan:wait("mma_qk", {"load_q", "load_k"})
plan:wait("softmax", {"mma_qk"})
plan:wait("mma_pv", {"load_v"})
plan:wait("rescale", {"mma_pv"})
plan:wait("normalise", {"mma_pv", "store_o"})
plan:wait("load_q", {"mma_qk"})
plan:wait("load_k", {"mma_qk"})
plan:wait("load_v", {"mma_pv"})
return plan
