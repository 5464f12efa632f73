-- Causal attention at head dim 128: two warpgroups, in order, on 128 queries and keys a tile.
--
-- As in attention_serial.lua nothing runs ahead: the products of one warpgroup run under the softmax
-- of the other. The last step of softmax is split off and its values are an alias of the scores, as
-- in attention_d128.lua, which leaves registers for a text of the blocks of keys that the mask does
-- not touch. Rows with most keys come first, so that the EUs end together.
local mr = require "millrace"
local bound = ... or mr.examples.flash_attention{b=2, h=16, m=8192, n=8192, d=128, causal=true}
local plan = mr.plan(bound:graph{tile={m=128, n=128}}, mr.device "h200")

plan:split_off("softmax_2", "convert")
plan:alias{softmax_3="mma_qk"}
plan:lane("p0", {warps=1})
plan:lane("c0", {warps=8, registers=240})
plan:buffers{k=2, v=2}
plan:grid{longest_first=true}

plan:append("load_q", {seu="tma", lane="p0"})
plan:append("load_k", {seu="tma", lane="p0"})
plan:append("load_v", {seu="tma", lane="p0"})

plan:append("mma_qk", {seu="tensor", lane="c0"})
plan:append("softmax", {seu="cuda", lane="c0"})
plan:append("convert", {seu="cuda", lane="c0"})
plan:append("rescale", {seu="cuda", lane="c0"})
plan:append("mma_pv", {seu="tensor", lane="c0"})
plan:append("normalise", {seu="cuda", lane="c0"})
plan:append("store_o", {seu="tma", lane="c0"})

plan:wait("mma_qk", {"load_q", "load_k"})
plan:wait("softmax", {"mma_qk"})
plan:wait("mma_pv", {"load_v"})
plan:wait("normalise", {"mma_pv", "store_o"})
plan:wait("load_q", {"mma_qk"})
plan:wait("load_k", {"mma_qk"})
plan:wait("load_v", {"mma_pv"})
return plan
