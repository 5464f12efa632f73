-- rmsnorm_swiglu: C[m,n] = silu(r[m] g[m,n]) r[m] u[m,n] of the products g = X G^T and u = X U^T, where
-- r[m] = 1 / sqrt(mean over k of X[m,k]^2 + eps): the first half of LLAMA's MLP, its norm included.
--
-- Both products have a tile of their results in registers, so that they meet there. r multiplies the sums at the end, as in
-- rmsnorm_gemm. The gains of the norm are part of G and U.
--
-- sizes    m, n, k
-- options  norm   false: r = 1 (true)
--          sums   a number: the squares of a row are the sum over S[m,:], so many numbers, as gemm with
--                 squares stores them; they are not added up here then
--          eps    (1e-6)
--          dtype  of X, G, U and C ("bf16")
local mr = require "millrace"

return mr.program("rmsnorm_swiglu", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local dtype, eps, norm = p.dtype or "bf16", p:option("eps", "number", 1e-6), p:option("norm", "boolean", true)
  local sums = norm and p:option("sums", "integer")
  p:check(eps >= 0, "eps must be at least 0")
  p:check(not sums or sums >= 1, "sums must be at least 1")
  local X, G, U = p:input("X", {m, k}, dtype), p:input("G", {n, k}, dtype), p:input("U", {n, k}, dtype)
  local part = sums and p:axis("part", sums)
  local S, C = sums and p:input("S", {m, part}, "f32"), p:output("C", {m, n}, dtype)

  local g, u, square = p:carry("g", {m, n}, 0), p:carry("u", {m, n}, 0), norm and not sums and p:carry("square", {m}, 0)
  p:loop(k, function()
    local x, wg, wu = p:load("load_x", X), p:load("load_g", G), p:load("load_u", U)
    if square then p:task("squares", function() square:add(mr.rowsum(x * x, k)) end) end
    g:add(p:mma("mma_g", x, wg))
    u:add(p:mma("mma_u", x, wu))
  end)
  local s = S and p:load("load_s", S)
  C:store("store_c", p:task("gate", function()
    if not norm then return (mr.silu(g) * u):to(dtype) end
    local r = mr.rsqrt((s and mr.rowsum(s, part) or square) / k.size + eps)
    return (mr.silu(g * r) * (u * r)):to(dtype)
  end))
end)
