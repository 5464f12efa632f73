-- millrace 0.1.0: plan of sequence llama3_decode for h200
local mr = require "millrace"
local seq = ... or mr.examples.llama3_decode{b=1, nmax=8192, splits=1, typical=1}
local device = mr.device "h200"
local sp = mr.sequence_plan(seq, device)
do
  local plan = mr.plan(seq:program("qkv"):graph{tile={b=1, h=1, half=32, k=256}}, device)
  plan:swap("mma")
  plan:lane("p0", {warps=1})
  plan:lane("c0", {warps=4})
  plan:lane("w0", {warps=1})
  plan:buffers{x=5, w=5}
  plan:grid{raster="rows", group=8}
  plan:launch{ready={"W", "Cos", "Sin", "Pos"}}
  plan:append("load_x", {seu="tma", lane="p0"})
  plan:append("load_cos", {seu="tma", lane="p0"})
  plan:append("load_sin", {seu="tma", lane="p0"})
  plan:append("load_pos", {seu="tma", lane="p0"})
  plan:append("squares", {seu="cuda", lane="c0"})
  plan:append("mma", {seu="mma_sync", lane="c0"})
  plan:append("rotate", {seu="cuda", lane="c0"})
  plan:append("store_q", {seu="cuda", lane="c0"})
  plan:append("store_k", {seu="cuda", lane="c0"})
  plan:append("store_v", {seu="cuda", lane="c0"})
  plan:append("load_w", {seu="tma", lane="w0"})
  plan:wait("load_x", {"mma"})
  plan:wait("load_w", {"mma"})
  plan:wait("squares", {"load_x"})
  plan:wait("mma", {"load_w"})
  plan:wait("rotate", {"load_sin", "load_cos"})
  plan:wait("store_k", {"load_pos"})
  sp:use("qkv", plan)
end
do
  local plan = mr.plan(seq:program("attend"):graph{tile={d=32, g=4, key=16}}, device)
  plan:lane("p0", {warps=1})
  plan:lane("c0", {warps=4})
  plan:buffers{k=2, v=2}
  plan:grid{raster="rows", group=8, longest_first=true}
  plan:launch{ready={"Pos"}}
  plan:append("load_q", {seu="tma", lane="p0"})
  plan:append("load_k", {seu="tma", lane="p0"})
  plan:append("load_v", {seu="tma", lane="p0"})
  plan:append("mma_qk", {seu="tensor", lane="c0"})
  plan:append("softmax", {seu="cuda", lane="c0"})
  plan:append("rescale", {seu="cuda", lane="c0"})
  plan:append("mma_pv", {seu="tensor", lane="c0"})
  plan:append("normalise", {seu="cuda", lane="c0"})
  plan:append("store_o", {seu="tma", lane="c0"})
  plan:wait("load_q", {"load_q", "mma_qk"})
  plan:wait("load_k", {"mma_qk"})
  plan:wait("mma_qk", {"load_q", "load_k"})
  plan:wait("softmax", {"mma_qk"})
  plan:wait("load_v", {"mma_pv"})
  plan:wait("mma_pv", {"load_v"})
  plan:wait("normalise", {"mma_pv", "store_o"})
  sp:use("attend", plan)
end
do
  local plan = mr.plan(seq:program("out"):graph{tile={k=128, m=1, n=32}}, device)
  plan:swap("mma")
  plan:lane("p0", {warps=1})
  plan:lane("c0", {warps=4})
  plan:lane("w0", {warps=1})
  plan:buffers{b=11, a=11}
  plan:grid{raster="rows", group=8}
  plan:launch{ready={"B"}}
  plan:append("load_a", {seu="tma", lane="p0"})
  plan:append("load_r", {seu="tma", lane="p0"})
  plan:append("mma", {seu="tensor", lane="c0"})
  plan:append("epilogue", {seu="cuda", lane="c0"})
  plan:append("store_c", {seu="tma", lane="c0"})
  plan:append("load_b", {seu="tma", lane="w0"})
  plan:wait("load_a", {"mma"})
  plan:wait("load_b", {"mma"})
  plan:wait("mma", {"load_b", "load_a"})
  plan:wait("epilogue", {"mma", "load_r", "store_c"})
  sp:use("out", plan)
end
do
  local plan = mr.plan(seq:program("gate"):graph{tile={k=256, m=1, n=64}}, device)
  plan:swap("mma_g")
  plan:swap("mma_u")
  plan:lane("p0", {warps=1})
  plan:lane("c0", {warps=4})
  plan:lane("w0", {warps=1})
  plan:buffers{x=3, g=3, u=3}
  plan:grid{raster="rows", group=8}
  plan:launch{ready={"G", "U"}}
  plan:append("load_x", {seu="tma", lane="p0"})
  plan:append("mma_u", {seu="tensor", lane="c0"})
  plan:append("mma_g", {seu="tensor", lane="c0", at=1})
  plan:append("squares", {seu="cuda", lane="c0", at=1})
  plan:append("gate", {seu="cuda", lane="c0"})
  plan:append("store_c", {seu="tma", lane="c0"})
  plan:append("load_g", {seu="tma", lane="w0"})
  plan:append("load_u", {seu="tma", lane="w0"})
  plan:wait("load_x", {"mma_u"})
  plan:wait("load_g", {"mma_g"})
  plan:wait("load_u", {"mma_u"})
  plan:wait("mma_g", {"load_x", "load_g"})
  plan:wait("mma_u", {"load_u"})
  plan:wait("gate", {"mma_u", "store_c"})
  sp:use("gate", plan)
end
do
  local plan = mr.plan(seq:program("down"):graph{tile={k=128, m=1, n=32}}, device)
  plan:swap("mma")
  plan:lane("p0", {warps=1})
  plan:lane("c0", {warps=4})
  plan:lane("w0", {warps=1})
  plan:buffers{b=11, a=11}
  plan:grid{raster="rows", group=8}
  plan:launch{ready={"B"}}
  plan:append("load_a", {seu="tma", lane="p0"})
  plan:append("load_r", {seu="tma", lane="p0"})
  plan:append("mma", {seu="tensor", lane="c0"})
  plan:append("epilogue", {seu="cuda", lane="c0"})
  plan:append("store_c", {seu="tma", lane="c0"})
  plan:append("load_b", {seu="tma", lane="w0"})
  plan:wait("load_a", {"mma"})
  plan:wait("load_b", {"mma"})
  plan:wait("mma", {"load_b", "load_a"})
  plan:wait("epilogue", {"mma", "load_r", "store_c"})
  sp:use("down", plan)
end
sp:order{"qkv", "attend", "out", "gate", "down"}
sp:launch("qkv", {stream=0, early=false})
sp:launch("attend", {stream=0, early=true})
sp:launch("out", {stream=0, early=true})
sp:launch("gate", {stream=0, early=true})
sp:launch("down", {stream=0, early=true})
sp:arena({["q"]=0, ["a"]=8192, ["h"]=0, ["y1"]=28672}, {bytes=36864})
return sp
