-- operators.lua FOLDER: the packages that torch.py calls, from plans that the model alone chooses.
local mr = require "millrace"
local folder = arg[1]

local function kernel(bound)
  return mr.search(bound, mr.device "h200", {trials=100, seconds=60, measure=false}).plan:compile{target="cuda"}
end

-- A shipped program with the one of its gradients, as operator NAME. rows: of a tile of the gradients, where they need not divide m.
local function differentiable(name, program, sizes, rows)
  local options = {rows=rows}
  for key, value in pairs(sizes) do options[key] = value end
  local backward = kernel(mr.examples[program .. "_backward"](options))
  kernel(mr.examples[program](sizes)):export(folder .. "/" .. name, {torch=true, name=name, backward=backward})
end

local attention = {b=2, h=4, m=512, d=64, causal=true}
local backward = kernel(mr.examples.attention_backward(attention))
attention.lse = true
kernel(mr.examples.gemm{m=256, n=256, k=256}):export(folder .. "/gemm", {torch=true})
kernel(mr.examples.gemm{m=256, n=256, k=256}):export(folder .. "/module", {name="gemm_module"})
kernel(mr.examples.gemm{m=mr.any{max=1024, multiple=8}, n=256, k=256}):export(folder .. "/any", {torch=true, name="gemm_any"})
kernel(mr.examples.flash_attention(attention)):export(folder .. "/attention", {torch=true, name="attention", backward=backward})
differentiable("rmsnorm", "rmsnorm", {m=1000, n=512, eps=1e-5})
differentiable("rmsnorm_f32", "rmsnorm", {m=6, n=16, dtype="f32"}, 4)
differentiable("swiglu", "swiglu", {m=mr.any{max=1024}, n=512})
differentiable("swiglu_f32", "swiglu", {m=6, n=16, dtype="f32"})
