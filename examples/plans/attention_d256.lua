-- Attention at head dim 256, causal or not, with 80 keys a tile: as many as shared memory holds, two
-- blocks of keys and two of values and the queries.
--
-- Aliases are those of attention_d128.lua. The result is rescaled right before the product that adds
-- to it, while the next scores are computed. There is no space left to stage the output, 64 KiB a
-- tile, so the lanes' threads store it themselves: once for all blocks of keys.
local mr = require "millrace"
local bound = ... or mr.examples.flash_attention{b=2, h=8, m=8192, n=8192, d=256}
local plan = mr.plan(bound:graph{tile={m=128, n=80}}, mr.device "h200")

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
  plan:append("rescale" .. part, {seu="cuda", lane=lane})
  plan:append("mma_pv" .. part, {seu="tensor", lane=lane})
  plan:append("softmax" .. part, {seu="cuda", lane=lane, at=1})
  plan:append("convert" .. part, {seu="cuda", lane=lane, at=1})
  plan:append("normalise" .. part, {seu="cuda", lane=lane})
  plan:append("store_o" .. part, {seu="cuda", lane=lane})
  plan:wait("mma_qk" .. part, {"load_q", "load_k"})
  plan:wait("softmax" .. part, {"mma_qk" .. part})
  plan:wait("mma_pv" .. part, {"load_v"})
  plan:wait("convert" .. part, {"mma_pv" .. part})
  plan:wait("normalise" .. part, {"mma_pv" .. part})
end
return plan
