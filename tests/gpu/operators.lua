-- operators.lua FOLDER: the packages that torch.py calls, from plans of short searches.
local mr = require "millrace"
local folder = arg[1]

local function kernel(bound) return mr.search(bound, mr.device "h200", {seconds=4}).plan:compile{target="cuda"} end

local attention = {b=2, h=4, m=512, d=64, causal=true}
local backward = kernel(mr.examples.attention_backward(attention))
attention.lse = true
kernel(mr.examples.gemm{m=256, n=256, k=256}):export(folder .. "/gemm", {torch=true})
kernel(mr.examples.gemm{m=256, n=256, k=256}):export(folder .. "/module", {name="gemm_module"})
kernel(mr.examples.gemm{m=mr.any{max=1024, multiple=8}, n=256, k=256}):export(folder .. "/any", {torch=true, name="gemm_any"})
kernel(mr.examples.flash_attention(attention)):export(folder .. "/attention", {torch=true, name="attention", backward=backward})
