-- Attention at head dim 256 with 80 keys a tile: as many as shared memory holds, two blocks of keys
-- and two of values beside the queries.
--
-- Order and places are those of attention_d128.lua. There is no room left to stage the output,
-- 64 KiB a tile, so the lane's threads store it themselves: once for all blocks of keys.
local mr = require "millrace"
local bound = ... or mr.examples.flash_attention{b=2, h=16, m=8192, n=8192, d=256}
local plan = mr.plan(bound:graph{tile={m=128, n=80}}, mr.device "h200")

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
plan:append("store_o", {seu="cuda", lane="c0"})

plan:wait("mma_qk", {"load_q", "load_k"})
plan:wait("softmax", {"mma_qk"})
plan:wait("mma_pv", {"load_v"})
plan:wait("convert", {"mma_pv"})
plan:wait("normalise", {"mma_pv"})
plan:wait("load_q", {"mma_qk"})
plan:wait("load_k", {"mma_qk"})
plan:wait("load_v", {"mma_pv"})
return plan
