-- row_squares: S[m,0] = sum over k of X[m,k]^2, of which kernels with the option sums=1 make the norms of rows (qkv_rope,
-- rmsnorm_swiglu). Where gemm{squares=} makes X it has the sums already.
--
-- sizes    m, k
-- options  dtype  of X ("bf16")
local mr = require "millrace"

return mr.program("row_squares", function(p)
  local m, k = p:axes("m", "k")
  local X, S = p:input("X", {m, k}, p.dtype or "bf16"), p:output("S", {m, p:axis("part", 1)}, "f32")
  local sum = p:carry("sum", {m}, 0)
  p:loop(k, function()
    local x = p:load("load_x", X)
    p:task("squares", function() sum:add(mr.rowsum(x * x, k)) end)
  end)
  S:store("store_s", sum, {m, 0})
end)
