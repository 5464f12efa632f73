-- Y[n,y,x,k] = sum over r, s, c of X[n, y stride + r dilation - pad, x stride + s dilation - pad, c] F[r,s,c,k]: a convolution of images
-- NHWC with filters RSCK, as TensorFlow and JAX have them.
--
-- Convolutional networks for images; with dilation, segmentation (DeepLab). X is zero outside.
local mr = require "millrace"

return {
  program = mr.program("dilated_conv2d", function(p)
    local n, h, w, c, k, r, s = p:axes("n", "h", "w", "c", "k", "r", "s")
    local stride, pad, dilation = p:option("stride", "integer", 1), p:option("pad", "integer", 1), p:option("dilation", "integer", 1)
    local y = p:axis("y", (h.size + 2 * pad - dilation * (r.size - 1) - 1) // stride + 1)
    local x = p:axis("x", (w.size + 2 * pad - dilation * (s.size - 1) - 1) // stride + 1)
    local X, F, Y = p:input("X", {n, h, w, c}, "f16"), p:input("F", {r, s, c, k}, "f16"), p:output("Y", {n, y, x, k}, "f16")
    local sum = p:carry("sum", {n, y, x, k}, 0)
    p:loop({r, s, c}, function()
      local tap = p:load("load_x", X, {n, y * stride + r * dilation - pad, x * stride + s * dilation - pad, c})
      sum:add(p:mma("mma", tap, p:load("load_f", F)))
    end)
    Y:store("store_y", p:task("round", function() return sum:to "f16" end))
  end),
  small = {
    {n = 2, h = 9, w = 8, c = 32, k = 64, r = 3, s = 3},
    {n = 1, h = 13, w = 12, c = 24, k = 40, r = 3, s = 3, stride = 2, dilation = 2, pad = 2},
  },
  usual = {
    {n = 128, h = 64, w = 64, c = 128, k = 128, r = 3, s = 3},
    {n = 32, h = 56, w = 56, c = 256, k = 512, r = 3, s = 3, stride = 2},
    {n = 16, h = 65, w = 65, c = 512, k = 256, r = 3, s = 3, dilation = 6, pad = 6},
  },
  formula = function(t, sizes)
    local stride, pad, dilation = sizes.stride or 1, sizes.pad or 1, sizes.dilation or 1
    return {Y = function(n, y, x, k)
      local sum = 0
      for r = 0, sizes.r - 1 do
        for s = 0, sizes.s - 1 do
          for c = 0, sizes.c - 1 do
            sum = sum + t.X(n, y * stride + r * dilation - pad, x * stride + s * dilation - pad, c) * t.F(r, s, c, k)
          end
        end
      end
      return sum
    end}
  end,
}
