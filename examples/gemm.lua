-- gemm: C[m,n] = act(sum over k of A[m,k] B[n,k] + bias[n]) + R[m,n].
--
-- sizes    m, n, k
-- options  a           axis order of A in memory: "mk" (default) or "km"
--          b           axis order of B: "nk" (default) or "kn"
--          bias        true: add bias[n]
--          activation  "relu", "gelu" or "silu"
--          residual    true: add R[m,n]
--          squares     a number of columns, which divides n: also store S[m,i], the sum of the squares of C[m,:]
--                      over the i-th so many columns, from which the norm of a row follows
--          dtype       of A, B, bias and R ("bf16")
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
  local R = p:option("residual", "boolean") and p:input("R", {m, n})
  local C = p:output("C", {m, n}, out)
  local squares = p:option("squares", "integer")
  p:check(not squares or squares >= 1 and n.size % squares == 0, "squares must divide n")
  local block, col = n, n                               -- a column is one of a block, if there are blocks
  if squares then block, col = p:axis("block", n.size // squares), p:axis("col", squares) end
  local at = squares and block * squares + col or n
  local S = squares and p:output("S", {m, block}, "f32")

  if squares then p:batch(block) end                    -- a tile has the columns of one block, and all of them
  local c = p:carry("c", {m, col}, 0)
  p:loop(k, function()
    c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B, p.b == "kn" and {k, at} or {at, k})))
  end)
  local row, r = bias and p:load("load_bias", bias, {at}), R and p:load("load_r", R, {m, at})
  local y, s = p:task("epilogue", function()
    local x = row and c + row or c
    if act then x = act(x) end
    local y = (r and x + r or x):to(out)
    return y, S and mr.rowsum(y * y, col)
  end)
  C:store("store_c", y, {m, at})
  if S then S:store("store_s", s) end
end)
