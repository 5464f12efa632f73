-- Y[n,y,x,c] = the maximum, or the mean, of X[n, y stride + r - pad, x stride + s - pad, c] over a window of r and s, inside the image.
--
-- ResNet begins with maxima of 3 x 3 at stride 2; DenseNet and Inception have means. Images are NHWC. The mean over a complete image
-- is that before the last layer of a classifier.
local mr = require "millrace"

local function window(p)
  local n, h, w, c = p:axes("n", "h", "w", "c")
  local size, stride, pad = p:option("size", "integer", 3), p:option("stride", "integer", 2), p:option("pad", "integer", 1)
  local r, s = p:axis("r", size), p:axis("s", size)
  local y, x = p:axis("y", (h.size + 2 * pad - size) // stride + 1), p:axis("x", (w.size + 2 * pad - size) // stride + 1)
  local X, Y = p:input("X", {n, h, w, c}), p:output("Y", {n, y, x, c})
  local function inside()
    local row, column = y:index() * stride + r:index() - pad, x:index() * stride + s:index() - pad
    return row:ge(0) & row:lt(h.size) & column:ge(0) & column:lt(w.size)
  end
  return X, Y, {n, y, x, c}, {r, s}, {n, y * stride + r - pad, x * stride + s - pad, c}, inside
end

local function elements(t, sizes, n, y, x, c)
  local list, size, stride, pad = {}, sizes.size or 3, sizes.stride or 2, sizes.pad or 1
  for r = y * stride - pad, y * stride - pad + size - 1 do
    for s = x * stride - pad, x * stride - pad + size - 1 do
      if r >= 0 and r < sizes.h and s >= 0 and s < sizes.w then list[#list + 1] = t.X(n, r, s, c) end
    end
  end
  return list
end

return {
  {
    name = "max_pooling",
    program = mr.program("max_pooling", function(p)
      local X, Y, out, taps, index, inside = window(p)
      local most = p:carry("most", out, -math.huge)
      p:loop(taps, function()
        local x = p:load("load_x", X, index)
        p:task("max", function()
          most:set(mr.max(most, mr.where(inside(), x, -math.huge):rowmax(taps[2]):rowmax(taps[1])))
        end)
      end)
      Y:store("store_y", most)
    end),
    small = {{n = 2, h = 9, w = 8, c = 40}, {n = 1, h = 8, w = 8, c = 32, size = 2, pad = 0}},
    usual = {{n = 32, h = 112, w = 112, c = 64}, {n = 32, h = 56, w = 56, c = 128, size = 2, pad = 0}},
    formula = function(t, sizes)
      return {Y = function(...) return math.max(table.unpack(elements(t, sizes, ...))) end}
    end,
  },
  {
    name = "average_pooling",
    program = mr.program("average_pooling", function(p)
      local X, Y, out, taps, index, inside = window(p)
      local sum, count = p:carry("sum", out, 0), p:carry("count", {out[2], out[3]}, 0)
      p:loop(taps, function()
        local x = p:load("load_x", X, index)
        p:task("add", function()
          sum:add(x:rowsum(taps[2]):rowsum(taps[1]))
          count:add(mr.where(inside(), 1.0, 0.0):rowsum(taps[2]):rowsum(taps[1]))
        end)
      end)
      Y:store("store_y", p:task("mean", function() return sum / count end))
    end),
    small = {{n = 2, h = 9, w = 8, c = 40}},
    usual = {{n = 32, h = 56, w = 56, c = 128, stride = 1}, {n = 32, h = 56, w = 56, c = 256, size = 2, pad = 0}},
    formula = function(t, sizes)
      return {Y = function(...)
        local list, sum = elements(t, sizes, ...), 0
        for _, x in ipairs(list) do sum = sum + x end
        return sum / #list
      end}
    end,
  },
  {
    name = "mean_of_image",
    program = mr.program("mean_of_image", function(p)
      local n, h, w, c = p:axes("n", "h", "w", "c")
      local X, Y = p:input("X", {n, h, w, c}), p:output("Y", {n, c})
      local x = p:load("load_x", X)
      Y:store("store_y", p:task("mean", function() return x:rowsum(w):rowsum(h) / (h.size * w.size) end))
    end),
    small = {{n = 2, h = 5, w = 6, c = 40}},
    usual = {{n = 128, h = 7, w = 7, c = 2048}},
    formula = function(t, sizes)
      return {Y = function(n, c)
        local sum = 0
        for y = 0, sizes.h - 1 do
          for x = 0, sizes.w - 1 do sum = sum + t.X(n, y, x, c) end
        end
        return sum / (sizes.h * sizes.w)
      end}
    end,
  },
}
