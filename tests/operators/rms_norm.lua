-- Y[m,n] = X[m,n] r[m] G[n], where r[m] = 1 / sqrt(mean over n of X[m,n]^2 + eps): a row's elements over their root mean square.
--
-- The norm of Llama, Mistral, Qwen and DeepSeek. rms_norm_add is that of a block's input, H = X + R, which is the next residual, too.
-- rms_norm_backward gives dX[m,n] = r (G dY - X r^2 mean over n of (X G dY)) and dG[n] = sum over m of dY X r.
local mr = require "millrace"
local rowsum, rsqrt = mr.rowsum, mr.rsqrt

local EPS <const> = 1e-6

-- Rows of X + R, if there is R, as a function: the element, and the row's r.
local function row_of(t, sizes)
  local n, r = sizes.n, {}
  local function x(i, j) return t.X(i, j) + (t.R and t.R(i, j) or 0) end
  return x, function(i)
    if not r[i] then
      local sum = 0
      for j = 0, n - 1 do sum = sum + x(i, j)^2 end
      r[i] = 1 / math.sqrt(sum / n + EPS)
    end
    return r[i]
  end
end

return {
  {
    name = "rms_norm",
    program = mr.program("rms_norm", function(p)
      local m, n = p:axes("m", "n")
      local X, G, Y = p:input("X", {m, n}), p:input("G", {n}), p:output("Y", {m, n})
      local x, g = p:load("load_x", X), p:load("load_g", G)
      Y:store("store_y", p:task("norm", function() return x * rsqrt(rowsum(x * x, n) / n.size + EPS) * g end))
    end),
    small = {{m = 40, n = 96}, {m = 64, n = 70, dtype = "f32"}},
    usual = {{m = 8192, n = 8192, dtype = "f32"}, {m = 8192, n = 4096}, {m = 64, n = 7168}},
    formula = function(t, sizes)
      local x, r = row_of(t, sizes)
      return {Y = function(i, j) return x(i, j) * r(i) * t.G(j) end}
    end,
  },
  {
    name = "rms_norm_add",
    program = mr.program("rms_norm_add", function(p)
      local m, n = p:axes("m", "n")
      local X, R, G = p:input("X", {m, n}), p:input("R", {m, n}), p:input("G", {n})
      local H, Y = p:output("H", {m, n}), p:output("Y", {m, n})
      local x, r, g = p:load("load_x", X), p:load("load_r", R), p:load("load_g", G)
      local h, y = p:task("norm", function()
        local h = x + r
        return h, h * rsqrt(rowsum(h * h, n) / n.size + EPS) * g
      end)
      H:store("store_h", h)
      Y:store("store_y", y)
    end),
    small = {{m = 40, n = 96}},
    usual = {{m = 8192, n = 4096}, {m = 128, n = 8192}},
    formula = function(t, sizes)
      local x, r = row_of(t, sizes)
      return {H = x, Y = function(i, j) return x(i, j) * r(i) * t.G(j) end}
    end,
  },
  {
    name = "rms_norm_backward",
    program = mr.program("rms_norm_backward", function(p)
      local m, n = p:axes("m", "n")
      local X, G, dY = p:input("X", {m, n}), p:input("G", {n}), p:input("dY", {m, n})
      local dX, dG = p:output("dX", {m, n}), p:output("dG", {n}, "f32")
      p:phase("zero", function()
        dG:store(p:task("zeros", function() return (n:index() * 0):to "f32" end))
      end)
      p:phase("rows", function()
        local x, g, dy = p:load("load_x", X), p:load("load_g", G), p:load("load_dy", dY)
        local dx, dg = p:task("gradients", function()
          local r = rsqrt(rowsum(x * x, n) / n.size + EPS)
          local unit = x * r
          local mean = rowsum(unit * g * dy, n) / n.size
          return r * (g * dy - unit * mean), rowsum(dy * unit, m)
        end)
        dX:store("store_dx", dx)
        dG:add("add_dg", dg)
      end)
    end),
    small = {{m = 40, n = 96}},
    usual = {{m = 8192, n = 4096}, {m = 4096, n = 8192}},
    formula = function(t, sizes)
      local x, r = row_of(t, sizes)
      return {
        dX = function(i, j)
          local mean = 0
          for l = 0, sizes.n - 1 do mean = mean + x(i, l) * t.G(l) * t.dY(i, l) / sizes.n end
          return r(i) * (t.G(j) * t.dY(i, j) - x(i, j) * r(i)^2 * mean)
        end,
        dG = function(j)
          local sum = 0
          for i = 0, sizes.m - 1 do sum = sum + t.dY(i, j) * x(i, j) * r(i) end
          return sum
        end,
      }
    end,
  },
}
