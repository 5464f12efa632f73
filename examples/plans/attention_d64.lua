-- Attention at head dim 64, causal or not: three warpgroups on 64 queries each, 112 keys a tile.
--
-- A softmax of so short rows takes longer than their products, so there is always one to run under
-- those of the other two. A thread has 56 registers of scores, 28 of probabilities and 32 of the
-- result; where they lie is as in attention_d128.lua.
local mr = require "millrace"
local bound = ... or mr.examples.flash_attention{b=2, h=32, m=8192, n=8192, d=64}
local plan = mr.plan(bound:graph{tile={m=192, n=112}}, mr.device "h200")

plan:split_off("softmax_2", "convert")
plan:split("m", 3)
plan:alias{softmax_3="mma_qk"}
plan:lane("p0", {warps=1})
for i = 0, 2 do plan:lane("c" .. i, {warps=4, registers=160}) end
plan:buffers{k=2, v=2}
plan:grid{longest_first=true}

plan:append("load_q", {seu="tma", lane="p0"})
plan:append("load_k", {seu="tma", lane="p0"})
plan:append("load_v", {seu="tma", lane="p0"})
plan:wait("load_q", {"mma_qk.0", "mma_qk.1", "mma_qk.2"})
plan:wait("load_k", {"mma_qk.0", "mma_qk.1", "mma_qk.2"})
plan:wait("load_v", {"mma_pv.0", "mma_pv.1", "mma_pv.2"})

for i = 0, 2 do
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
