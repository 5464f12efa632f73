-- millrace 0.1.0: plan of sequence llama3_layer for h200
local mr = require "millrace"
local seq = ... or mr.examples.llama3_layer{b=1, m=512}
local device = mr.device "h200"
local sp = mr.sequence_plan(seq, device)
do
  local plan = mr.plan(seq:program("squares"):graph{tile={k=2048, m=4}}, device)
  plan:lane("p0", {warps=1})
  plan:lane("c0", {warps=4})
  plan:buffers{x=6}
  plan:grid{raster="rows", group=32}
  plan:append("load_x", {seu="tma", lane="p0"})
  plan:append("squares", {seu="cuda", lane="c0"})
  plan:append("ew1", {seu="cuda", lane="c0"})
  plan:append("store_s", {seu="tma", lane="c0"})
  plan:wait("load_x", {"squares"})
  plan:wait("squares", {"load_x"})
  plan:wait("ew1", {"store_s"})
  sp:use("squares", plan)
end
do
  local plan = mr.plan(seq:program("qkv"):graph{tile={h=3, half=64, k=64, m=64}}, device)
  plan:lane("p0", {warps=1})
  plan:lane("p1", {warps=1})
  plan:lane("c0", {warps=8})
  plan:buffers{x=4, w0=4, w1=3}
  plan:grid{raster="columns", group=8, cluster=2}
  plan:launch{ready={"X", "W", "Cos", "Sin"}}
  plan:append("load_x", {seu="tma", lane="p0"})
  plan:append("load_w0", {seu="tma", lane="p0"})
  plan:append("load_w1", {seu="tma", lane="p0"})
  plan:append("load_cos", {seu="tma", lane="p0"})
  plan:append("load_sin", {seu="tma", lane="p0"})
  plan:append("load_s", {seu="tma", lane="p1"})
  plan:append("mma1", {seu="tensor", lane="c0"})
  plan:append("mma0", {seu="tensor", lane="c0", at=1})
  plan:append("norm", {seu="cuda", lane="c0"})
  plan:append("rotate0", {seu="cuda", lane="c0"})
  plan:append("store_q0", {seu="tma", lane="c0"})
  plan:append("store_k0", {seu="tma", lane="c0"})
  plan:append("rotate1", {seu="cuda", lane="c0"})
  plan:append("store_q1", {seu="tma", lane="c0"})
  plan:append("store_k1", {seu="tma", lane="c0"})
  plan:append("value0", {seu="cuda", lane="c0"})
  plan:append("store_v0", {seu="tma", lane="c0"})
  plan:append("value1", {seu="cuda", lane="c0"})
  plan:append("store_v1", {seu="tma", lane="c0"})
  plan:wait("load_s", {"norm"})
  plan:wait("load_w1", {"mma1"})
  plan:wait("mma0", {"load_x", "load_w0"})
  plan:wait("mma1", {"load_w1"})
  plan:wait("norm", {"load_s"})
  plan:wait("rotate0", {"mma1", "load_cos", "load_sin", "store_q0", "store_k0"})
  plan:wait("rotate1", {"store_q1", "store_k1"})
  plan:wait("value0", {"store_v0"})
  plan:wait("value1", {"store_v1"})
  sp:use("qkv", plan)
end
do
  local plan = mr.plan(seq:program("attend"):graph{tile={d=128, m=64, n=128}}, device)
  plan:split_off("softmax_2", "convert")
  plan:alias{softmax_3="mma_qk"}
  plan:lane("p0", {warps=1})
  plan:lane("c0", {warps=4, replicas=2})
  plan:buffers{k=3, v=3}
  plan:grid{raster="columns", group=8, longest_first=true}
  plan:append("load_q", {seu="tma", lane="p0"})
  plan:append("load_k", {seu="tma", lane="p0"})
  plan:append("load_v", {seu="tma", lane="p0"})
  plan:append("mma_qk", {seu="tensor", lane="c0", at=1})
  plan:append("rescale", {seu="cuda", lane="c0"})
  plan:append("mma_pv", {seu="tensor", lane="c0"})
  plan:append("softmax", {seu="cuda", lane="c0", at=1})
  plan:append("convert", {seu="cuda", lane="c0", at=1})
  plan:append("normalise", {seu="cuda", lane="c0"})
  plan:append("store_o", {seu="tma", lane="c0"})
  plan:wait("load_q", {"mma_qk"})
  plan:wait("load_k", {"mma_qk"})
  plan:wait("mma_qk", {"load_q", "load_k"})
  plan:wait("softmax", {"mma_qk"})
  plan:wait("convert", {"mma_pv"})
  plan:wait("load_v", {"mma_pv"})
  plan:wait("mma_pv", {"load_v"})
  plan:wait("normalise", {"mma_pv", "store_o"})
  sp:use("attend", plan)
end
do
  local plan = mr.plan(seq:program("out"):graph{tile={col=128, k=64, m=128}}, device)
  plan:lane("p0", {warps=1})
  plan:lane("p1", {warps=1})
  plan:lane("c0", {warps=8})
  plan:buffers{a=6, b=6}
  plan:grid{raster="rows", group=8}
  plan:launch{ready={"B", "R"}}
  plan:append("load_b", {seu="tma", lane="p0"})
  plan:append("load_r", {seu="tma", lane="p0"})
  plan:append("load_a", {seu="tma", lane="p1"})
  plan:append("mma", {seu="tensor", lane="c0"})
  plan:append("epilogue", {seu="cuda", lane="c0"})
  plan:append("store_c", {seu="cuda", lane="c0"})
  plan:append("store_s", {seu="cuda", lane="c0"})
  plan:wait("load_a", {"mma"})
  plan:wait("load_b", {"mma"})
  plan:wait("mma", {"load_a", "load_b"})
  plan:wait("epilogue", {"mma", "load_r"})
  sp:use("out", plan)
end
do
  local plan = mr.plan(seq:program("gate"):graph{tile={k=64, m=64, n=176}}, device)
  plan:lane("p0", {warps=1})
  plan:lane("p1", {warps=1})
  plan:lane("c0", {warps=4, replicas=2})
  plan:buffers{x=4, g=4, u=4}
  plan:grid{raster="columns", group=1}
  plan:launch{ready={"G", "U"}}
  plan:append("load_g", {seu="tma", lane="p0"})
  plan:append("load_u", {seu="tma", lane="p0"})
  plan:append("load_x", {seu="tma", lane="p1"})
  plan:append("load_s", {seu="tma", lane="p1"})
  plan:append("mma_g", {seu="tensor", lane="c0"})
  plan:append("mma_u", {seu="tensor", lane="c0"})
  plan:append("gate", {seu="cuda", lane="c0"})
  plan:append("store_c", {seu="tma", lane="c0"})
  plan:wait("load_x", {"mma_u"})
  plan:wait("load_g", {"mma_g"})
  plan:wait("load_u", {"mma_u"})
  plan:wait("mma_g", {"load_x", "load_g"})
  plan:wait("mma_u", {"load_u"})
  plan:wait("load_s", {"gate"})
  plan:wait("gate", {"mma_u", "load_s", "store_c"})
  sp:use("gate", plan)
end
do
  local plan = mr.plan(seq:program("down"):graph{tile={k=64, m=128, n=128}}, device)
  plan:split("m", 2)
  plan:lane("p0", {warps=1})
  plan:lane("p1", {warps=1})
  plan:lane("c0", {warps=4})
  plan:lane("c1", {warps=4})
  plan:buffers{a=5, b=5}
  plan:grid{raster="rows", group=8}
  plan:launch{ready={"B"}}
  plan:append("load_b", {seu="tma", lane="p0"})
  plan:append("load_a", {seu="tma", lane="p1"})
  plan:append("load_r", {seu="tma", lane="p1"})
  plan:append("mma.0", {seu="tensor", lane="c0"})
  plan:append("epilogue.0", {seu="cuda", lane="c0"})
  plan:append("store_c.0", {seu="tma", lane="c0"})
  plan:append("mma.1", {seu="tensor", lane="c1"})
  plan:append("epilogue.1", {seu="cuda", lane="c1"})
  plan:append("store_c.1", {seu="tma", lane="c1"})
  plan:wait("load_a", {"mma.0", "mma.1"})
  plan:wait("load_b", {"mma.0", "mma.1"})
  plan:wait("mma.0", {"load_a", "load_b"})
  plan:wait("mma.1", {"load_a", "load_b"})
  plan:wait("epilogue.0", {"mma.0", "load_r", "store_c.0"})
  plan:wait("epilogue.1", {"mma.1", "load_r", "store_c.1"})
  sp:use("down", plan)
end
sp:order{"squares", "qkv", "attend", "out", "gate", "down"}
sp:launch("squares", {stream=0, early=false})
sp:launch("qkv", {stream=0, early=true})
sp:launch("attend", {stream=0, early=true})
sp:launch("out", {stream=0, early=true})
sp:launch("gate", {stream=0, early=true})
sp:launch("down", {stream=0, early=true})
sp:arena({["q"]=0, ["a"]=4194304, ["h"]=0, ["y1"]=14680064, ["y1s"]=18874368, ["xs"]=4194304}, {bytes=18939904})
return sp
