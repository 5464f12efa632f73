-- Y[n,y,x,c] = sum over r, s of X[n, y stride + r - 1, x stride + s - 1, c] F[r,s,c], r and s from 0 to 2: a filter of 3 x 3 for
-- each channel.
--
-- MobileNet, EfficientNet, ConvNeXt. Images are NHWC, and zero outside. In depthwise_conv3x3 the taps are a loop; in depthwise_conv3x3_taps
-- nine loads of a tile.
local mr = require "millrace"

local function tensors(p)
  local n, h, w, c = p:axes("n", "h", "w", "c")
  local stride, r, s = p:option("stride", "integer", 1), p:axis("r", 3), p:axis("s", 3)
  local y, x = p:axis("y", (h.size - 1) // stride + 1), p:axis("x", (w.size - 1) // stride + 1)
  local X, F, Y = p:input("X", {n, h, w, c}), p:input("F", {r, s, c}), p:output("Y", {n, y, x, c})
  return X, F, Y, stride, {n, y, x, c, r, s}
end

local function formula(t, sizes)
  local stride = sizes.stride or 1
  return {Y = function(n, y, x, c)
    local sum = 0
    for r = 0, 2 do
      for s = 0, 2 do sum = sum + t.X(n, y * stride + r - 1, x * stride + s - 1, c) * t.F(r, s, c) end
    end
    return sum
  end}
end

local small = {{n = 2, h = 6, w = 9, c = 40}, {n = 1, h = 8, w = 8, c = 32, stride = 2}}
local usual = {{n = 32, h = 112, w = 112, c = 96}, {n = 32, h = 56, w = 56, c = 144, stride = 2}, {n = 32, h = 14, w = 14, c = 576}}

return {
  {
    name = "depthwise_conv3x3",
    program = mr.program("depthwise_conv3x3", function(p)
      local X, F, Y, stride, axes = tensors(p)
      local n, y, x, c, r, s = table.unpack(axes)
      local sum = p:carry("sum", {n, y, x, c}, 0)
      p:loop({r, s}, function()
        local tap, f = p:load("load_x", X, {n, y * stride + r - 1, x * stride + s - 1, c}), p:load("load_f", F)
        p:task("add", function() sum:add(mr.rowsum(mr.rowsum(tap * f, s), r)) end)
      end)
      Y:store("store_y", sum)
    end),
    small = small, usual = usual, formula = formula,
  },
  {
    name = "depthwise_conv3x3_taps",
    program = mr.program("depthwise_conv3x3_taps", function(p)
      local X, F, Y, stride, axes = tensors(p)
      local n, y, x, c = table.unpack(axes)
      local taps, f = {}, {}
      for r = 0, 2 do
        for s = 0, 2 do
          taps[#taps + 1] = p:load(("x%d%d"):format(r, s), X, {n, y * stride + r - 1, x * stride + s - 1, c})
          f[#f + 1] = p:load(("f%d%d"):format(r, s), F, {r, s, c})
        end
      end
      Y:store("store_y", p:task("add", function()
        local sum = 0
        for i = 1, 9 do sum = sum + taps[i] * f[i] end
        return sum
      end))
    end),
    small = small, usual = usual, formula = formula,
  },
}
