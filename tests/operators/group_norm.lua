-- Y[b,g,c,x] = (X[b,g,c,x] - mean) rstd W[g,c] + B[g,c], mean and rstd = 1 / sqrt(variance + eps) those of the group g of
-- image b: of all its c channels and x pixels.
--
-- Stable Diffusion's networks. Images are NCHW in group_norm, whose tile is a group, and in group_norm_loop, whose tile takes a group
-- twice, first for its sums; and NHWC in group_norm_channels_last.
local mr = require "millrace"
local rowsum, rsqrt = mr.rowsum, mr.rsqrt

local EPS <const> = 1e-5

-- At gives the element of image b and group g at channel c and pixel x.
local function formula(at)
  return function(t, sizes)
    local known = {}
    return function(b, g, c, x)
      local key = b * sizes.g + g
      if not known[key] then
        local sum, squares, count = 0, 0, sizes.c * sizes.x
        for i = 0, sizes.c - 1 do
          for j = 0, sizes.x - 1 do
            sum, squares = sum + at(t, b, g, i, j), squares + at(t, b, g, i, j)^2
          end
        end
        known[key] = {sum / count, 1 / math.sqrt(squares / count - (sum / count)^2 + EPS)}
      end
      return (at(t, b, g, c, x) - known[key][1]) * known[key][2] * t.W(g, c) + t.B(g, c)
    end
  end
end
local first = formula(function(t, b, g, c, x) return t.X(b, g, c, x) end)
local last = formula(function(t, b, g, c, x) return t.X(b, x, g, c) end)

local function norm(x, mean, square, w, b) return (x - mean) * rsqrt(square - mean * mean + EPS) * w + b end

return {
  {
    name = "group_norm",
    program = mr.program("group_norm", function(p)
      local b, g, c, x = p:axes("b", "g", "c", "x")
      local X, W, B, Y = p:input("X", {b, g, c, x}), p:input("W", {g, c}), p:input("B", {g, c}), p:output("Y", {b, g, c, x})
      local v, w, bias = p:load("load_x", X), p:load("load_w", W), p:load("load_b", B)
      Y:store("store_y", p:task("norm", function()
        local mean = rowsum(rowsum(v, x), c) / (c.size * x.size)
        local away = v - mean
        return away * rsqrt(rowsum(rowsum(away * away, x), c) / (c.size * x.size) + EPS) * w + bias
      end))
    end),
    small = {{b = 2, g = 3, c = 5, x = 24}},
    usual = {{b = 4, g = 32, c = 20, x = 1024}, {b = 8, g = 32, c = 40, x = 256}},
    formula = function(t, sizes) return {Y = first(t, sizes)} end,
  },
  {
    name = "group_norm_loop",
    program = mr.program("group_norm_loop", function(p)
      local b, g, c, x = p:axes("b", "g", "c", "x")
      local X, W, B, Y = p:input("X", {b, g, c, x}), p:input("W", {g, c}), p:input("B", {g, c}), p:output("Y", {b, g, c, x})
      p:batch(b, g)
      local sum, square = p:carry("sum", {}, 0), p:carry("square", {}, 0)
      p:loop({c, x}, function()
        local v = p:load("load_sums", X)
        p:task("sums", function()
          sum:add(rowsum(rowsum(v, x), c))
          square:add(rowsum(rowsum(v * v, x), c))
        end)
      end)
      local mean, squares = p:task("mean", function() return sum / (c.size * x.size), square / (c.size * x.size) end)
      p:loop({c, x}, function()
        local v, w, bias = p:load("load_x", X), p:load("load_w", W), p:load("load_b", B)
        Y:store("store_y", p:task("norm", function() return norm(v, mean, squares, w, bias) end))
      end)
    end),
    small = {{b = 2, g = 3, c = 5, x = 24}},
    usual = {{b = 4, g = 32, c = 10, x = 4096}, {b = 4, g = 32, c = 16, x = 65536}},
    formula = function(t, sizes) return {Y = first(t, sizes)} end,
  },
  {
    name = "group_norm_channels_last",
    program = mr.program("group_norm_channels_last", function(p)
      local b, g, c, x = p:axes("b", "g", "c", "x")
      local X, W, B, Y = p:input("X", {b, x, g, c}), p:input("W", {g, c}), p:input("B", {g, c}), p:output("Y", {b, x, g, c})
      local Sum, Square = p:temp("Sum", {b, g}, "f32"), p:temp("Square", {b, g}, "f32")
      p:phase("begin", function()
        local zeros = p:task("zeros", function() return (b:index() + g:index()):to "f32" * 0 end)
        Sum:store(zeros)
        Square:store(zeros)
      end)
      p:phase("sums", function()
        local v = p:load("load_sums", X)
        local sum, square = p:task("sums", function() return rowsum(rowsum(v, c), x), rowsum(rowsum(v * v, c), x) end)
        Sum:add(sum)
        Square:add(square)
      end)
      p:phase("norm", function()
        local v, w, bias = p:load("load_x", X), p:load("load_w", W), p:load("load_b", B)
        local sum, square = p:load("load_sum", Sum), p:load("load_square", Square)
        Y:store("store_y", p:task("norm", function()
          return norm(v, sum / (c.size * x.size), square / (c.size * x.size), w, bias)
        end))
      end)
    end),
    small = {{b = 2, g = 3, c = 8, x = 24}},
    usual = {{b = 4, g = 32, c = 10, x = 4096}, {b = 4, g = 32, c = 16, x = 16384}},
    formula = function(t, sizes)
      local y = last(t, sizes)
      return {Y = function(b, x, g, c) return y(b, g, c, x) end}
    end,
  },
}
