-- rmsnorm: Y[m,n] = X[m,n] r[m] G[n], where r[m] = 1 / sqrt(mean over n of X[m,n]^2 + eps): each row over its root mean
-- square (Zhang and Sennrich, "Root mean square layer normalization", 2019), times a gain for each column.
--
-- A tile has complete rows. examples/rmsnorm_backward.lua has the gradients.
--
-- sizes    m rows, n columns
-- options  eps    (1e-6)
--          dtype  of X, G and Y ("bf16")
local mr = require "millrace"

return mr.program("rmsnorm", function(p)
  local m, n = p:axes("m", "n")
  local dtype, eps = p.dtype or "bf16", p:option("eps", "number", 1e-6)
  p:check(eps >= 0, "eps must be at least 0")
  local X, G, Y = p:input("X", {m, n}), p:input("G", {n}), p:output("Y", {m, n})

  local x, g = p:load("load_x", X), p:load("load_g", G)
  Y:store("store_y", p:task("norm", function()
    return (x * mr.rsqrt(mr.rowsum(x * x, n) / n.size + eps) * g):to(dtype)
  end))
end)
