-- swiglu_backward: the gradients of swiglu, dA and dB, by those of its output C.
--
-- With s = 1 / (1 + exp(-A)), of which A s = silu(A) has the slope s (1 + A (1 - s)),
--     dA = dC B s (1 + A (1 - s)),   dB = dC A s.
--
-- sizes    m, n
-- options  dtype  of all tensors ("bf16")
local mr = require "millrace"

return mr.program("swiglu_backward", function(p)
  local m, n = p:axes("m", "n")
  local dtype = p.dtype or "bf16"
  local A, B, dC = p:input("A", {m, n}), p:input("B", {m, n}), p:input("dC", {m, n})
  local dA, dB = p:output("dA", {m, n}), p:output("dB", {m, n})
  local a, b, dc = p:load("load_a", A), p:load("load_b", B), p:load("load_dc", dC)
  local da, db = p:task("gradients", function()
    local s = mr.sigmoid(a)
    return (dc * b * s * (1 + a * (1 - s))):to(dtype), (dc * a * s):to(dtype)
  end)
  dA:store("store_da", da)
  dB:store("store_db", db)
end)
