-- swiglu: C[m,n] = silu(A[m,n]) B[m,n], where silu(x) = x / (1 + exp(-x)): a gate A for each element of B (Shazeer, "GLU
-- variants improve transformer", 2020), in MLPs of LLAMA, Qwen and DeepSeek.
--
-- Where A and B are products, examples/rmsnorm_swiglu.lua has all in one kernel; for training A and B are stored, as
-- examples/swiglu_backward.lua reads them.
--
-- sizes    m, n
-- options  dtype  of A, B and C ("bf16")
local mr = require "millrace"

return mr.program("swiglu", function(p)
  local m, n = p:axes("m", "n")
  local dtype = p.dtype or "bf16"
  local A, B, C = p:input("A", {m, n}), p:input("B", {m, n}), p:output("C", {m, n})
  local a, b = p:load("load_a", A), p:load("load_b", B)
  C:store("store_c", p:task("gate", function() return (mr.silu(a) * b):to(dtype) end))
end)
