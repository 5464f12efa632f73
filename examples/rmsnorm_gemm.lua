-- rmsnorm_gemm: C[m,n] = sum over k of (X[m,k] r[m] G[k]) W[n,k], where
-- r[m] = 1 / sqrt(mean over k of X[m,k]^2 + eps): a product of rows that are normalised first.
--
-- r is the same for all of a row, and so multiplies the sums at the end. Its own sum goes over the
-- tiles of X that the product needs anyhow, and so the normalised rows never are in memory.
--
-- sizes    m, n, k
-- options  gain   false: without G, which may be part of W (true)
--          eps    (1e-6)
--          dtype  of X, G and W ("bf16")
--          out    of C (dtype)
local mr = require "millrace"

return mr.program("rmsnorm_gemm", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local dtype, eps = p.dtype or "bf16", p:option("eps", "number", 1e-6)
  local out = p.out or dtype
  p:check(eps >= 0, "eps must be at least 0")
  local X, W = p:input("X", {m, k}), p:input("W", {n, k})
  local G = p:option("gain", "boolean", true) and p:input("G", {k})
  local C = p:output("C", {m, n}, out)

  local c, square = p:carry("c", {m, n}, 0), p:carry("square", {m}, 0)
  p:loop(k, function()
    local x, w = p:load("load_x", X), p:load("load_w", W)
    local g = G and p:load("load_g", G)
    local rows = p:task("squares", function()
      square:add(mr.rowsum(x * x, k))
      return G and (x * g):to(dtype)
    end)
    c:add(p:mma("mma", rows or x, w))
  end)
  C:store("store_c", p:task("normalise", function()
    return (c * mr.rsqrt(square / k.size + eps)):to(out)
  end))
end)
