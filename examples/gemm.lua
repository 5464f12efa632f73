-- gemm: C[m,n] = act(sum over k of A[m,k] B[n,k] + bias[n]).
--
-- sizes    m, n, k
-- options  a           axis order of A in memory: "mk" (default) or "km"
--          b           axis order of B: "nk" (default) or "kn"
--          bias        true: add bias[n]
--          activation  "relu", "gelu" or "silu"
--          dtype       of A, B and bias ("bf16")
--          out         of C (dtype)
local mr = require "millrace"

local activations = {
  relu = function(x) return mr.max(x, 0) end,
  gelu = mr.gelu,
  silu = mr.silu,
}

return mr.program("gemm", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local dtype = p.dtype or "bf16"
  local out = p.out or dtype
  local a, b = ({mk = {m, k}, km = {k, m}})[p.a or "mk"], ({nk = {n, k}, kn = {k, n}})[p.b or "nk"]
  local A = p:input("A", p:check(a, 'a must be "mk" or "km"'))
  local B = p:input("B", p:check(b, 'b must be "nk" or "kn"'))
  local bias = p:option("bias", "boolean") and p:input("bias", {n})
  local act = p.activation and p:check(activations[p.activation],
    'activation must be "relu", "gelu" or "silu"')
  local C = p:output("C", {m, n}, out)

  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function()
    c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B)))
  end)
  local row = bias and p:load("load_bias", bias)
  C:store("store_c", p:task("epilogue", function()
    local x = row and c + row or c
    if act then x = act(x) end
    return x:to(out)
  end))
end)
