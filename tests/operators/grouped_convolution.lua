-- Y[n,y,x,g K + k] = sum over r, s, c of X[n, y stride + r - 1, x stride + s - 1, g C + c] F[g,k,r,s,c]: a convolution of 3 x 3 in
-- groups of channels (ResNeXt, RegNet), images as NHWC.
local mr = require "millrace"
local sum = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua").sum_below

return {
  program = mr.program("grouped_convolution", function(p)
    local n, h, w, g, c, k = p:axes("n", "h", "w", "g", "c", "k")
    local stride = p:option("stride", "integer", 1)
    local r, s = p:axis("r", 3), p:axis("s", 3)
    local y, x = p:axis("y", (h.size - 1) // stride + 1), p:axis("x", (w.size - 1) // stride + 1)
    local ci, ko = p:axis("ci", g.size * c.size), p:axis("ko", g.size * k.size)
    local X, F, Y = p:input("X", {n, h, w, ci}), p:input("F", {g, k, r, s, c}), p:output("Y", {n, y, x, ko})
    p:batch(g)
    local acc = p:carry("acc", {n, y, x, k}, 0)
    p:loop({r, s, c}, function()
      local image = p:load("load_x", X, {n, y * stride + r - 1, x * stride + s - 1, g * c.size + c})
      acc:add(p:mma("mma", image, p:load("load_f", F)))
    end)
    Y:store("store_y", p:task("round", function() return acc:to "bf16" end), {n, y, x, g * k.size + k})
  end),
  small = {{n = 2, h = 5, w = 9, g = 3, c = 16, k = 8}, {n = 1, h = 7, w = 5, g = 2, c = 4, k = 4, stride = 2}},
  usual = {
    {n = 32, h = 56, w = 56, g = 32, c = 4, k = 4}, {n = 32, h = 28, w = 28, g = 8, c = 64, k = 64},
    {n = 32, h = 14, w = 14, g = 32, c = 32, k = 32, stride = 2},
  },
  formula = function(t, sizes)
    local stride = sizes.stride or 1
    return {Y = function(n, y, x, i)
      local g, k = i // sizes.k, i % sizes.k
      return sum(function(j)
        local r, s = j // 3, j % 3
        return sum(function(c)
          return t.X(n, y * stride + r - 1, x * stride + s - 1, g * sizes.c + c) * t.F(g, k, r, s, c)
        end, sizes.c)
      end, 9)
    end}
  end,
}
