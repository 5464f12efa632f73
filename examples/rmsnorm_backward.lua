-- rmsnorm_backward: the gradients of rmsnorm, dX and dG, by those of its output Y.
--
-- With r[m] = 1 / sqrt(mean over n of X[m,n]^2 + eps), and c[m] = r[m]^3 times the mean over n of X[m,n] G[n] dY[m,n],
--     dX[m,n] = r[m] G[n] dY[m,n] - c[m] X[m,n],   dG[n] = sum over m of dY[m,n] X[m,n] r[m].
--
-- r is computed again, as the rows of X are there. Phase "rows" goes over some rows in each tile and leaves the sums of these for
-- dG, which phase "gains" adds up. So dG has the same bits in each run, and is not rounded before all is added.
--
-- sizes    m rows, n columns
-- options  rows   of a tile; need not divide m (a power of two with which there are at least 256 tiles, or 1)
--          eps    that of rmsnorm (1e-6)
--          dtype  of all tensors ("bf16")
local mr = require "millrace"
local rowsum = mr.rowsum

local function usual_rows(m)
  local rows = 1
  while m >= 512 * rows do rows = 2 * rows end
  return rows
end

return mr.program("rmsnorm_backward", function(p)
  local m, n = p:axes("m", "n")
  local rows = p:option("rows", "integer", usual_rows(m.size))
  p:check(rows >= 1, "rows must be at least 1")
  local part, row = p:axis("part", math.ceil(m.size / rows)), p:axis("row", rows)
  local column = p:axis("column", n.size)
  local dtype, eps = p.dtype or "bf16", p:option("eps", "number", 1e-6)
  p:check(eps >= 0, "eps must be at least 0")
  local X, G, dY = p:input("X", {m, n}), p:input("G", {n}), p:input("dY", {m, n})
  local dX, dG = p:output("dX", {m, n}), p:output("dG", {n})
  local Sums = p:temp("Sums", {part, n}, dtype == "f64" and "f64" or "f32")

  p:phase("rows", function()
    p:batch(part)
    local g, dg = p:load("load_g", G), p:carry("dg", {n}, 0)
    p:loop(row, function()
      local at = {part * rows + row, n}
      local x, dy = p:load("load_x", X, at), p:load("load_dy", dY, at)
      dX:store("store_dx", p:task("gradients", function()
        local r = mr.rsqrt(rowsum(x * x, n) / n.size + eps)
        local c = r * r * r * (rowsum(x * g * dy, n) / n.size)
        dg:add(rowsum(dy * x * r, row))
        return (dy * g * r - x * c):to(dtype)
      end), at)
    end)
    Sums:store("store_sums", dg)
  end)

  p:phase("gains", function()
    local dg = p:carry("all", {column}, 0)
    p:loop(part, function()
      local sums = p:load("load_sums", Sums, {part, column})
      p:task("add", function() dg:add(rowsum(sums, part)) end)
    end)
    dG:store("store_dg", p:task("round", function() return dg:to(dtype) end), {column})
  end)
end)
