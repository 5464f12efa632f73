-- Mean[c] and Var[c] of X[m,c] over all rows m, the pixels of a batch of images NHWC, and
-- Y[m,c] = (X - Mean) / sqrt(Var + eps) W[c] + B[c].
--
-- Networks for images in training (Ioffe and Szegedy, 2015). batch_norm_statistics is the first part alone, of images NCHW.
local mr = require "millrace"
local rowsum = mr.rowsum

local EPS <const> = 1e-5

local function moments(count, x)
  local sum, squares = 0, 0
  for i = 0, count - 1 do sum, squares = sum + x(i), squares + x(i)^2 end
  return sum / count, squares / count - (sum / count)^2
end

local function begin(p, c, Sum, Square)
  p:phase("begin", function()
    local zeros = p:task("zeros", function() return (c:index() * 0):to "f32" end)
    Sum:store(zeros)
    Square:store(zeros)
  end)
end

return {
  {
    name = "batch_norm",
    program = mr.program("batch_norm", function(p)
      local m, c = p:axes("m", "c")
      local X, W, B = p:input("X", {m, c}), p:input("W", {c}), p:input("B", {c})
      local Sum, Square = p:temp("Sum", {c}, "f32"), p:temp("Square", {c}, "f32")
      local Mean, Var, Y = p:output("Mean", {c}, "f32"), p:output("Var", {c}, "f32"), p:output("Y", {m, c})
      local function moments_of(Sum, Square)
        local sum, square = p:load(Sum), p:load(Square)
        local mean = sum / m.size
        return mean, mr.max(square / m.size - mean * mean, 0)
      end
      begin(p, c, Sum, Square)
      p:phase("sums", function()
        local x = p:load("load_sums", X)
        local sum, square = p:task("sums", function() return rowsum(x, m), rowsum(x * x, m) end)
        Sum:add(sum)
        Square:add(square)
      end)
      p:phase("moments", function()
        local mean, var = moments_of(Sum, Square)
        Mean:store("store_mean", mean)
        Var:store("store_var", var)
      end)
      p:phase("norm", function()
        local x, w, b = p:load("load_x", X), p:load("load_w", W), p:load("load_b", B)
        local mean, var = moments_of(Sum, Square)
        Y:store("store_y", p:task("norm", function() return (x - mean) * mr.rsqrt(var + EPS) * w + b end))
      end)
    end),
    small = {{m = 100, c = 40}},
    usual = {{m = 100352, c = 256}, {m = 6272, c = 2048}},
    formula = function(t, sizes)
      local function column(c) return moments(sizes.m, function(i) return t.X(i, c) end) end
      return {
        Mean = function(c) return (column(c)) end,
        Var = function(c) return (select(2, column(c))) end,
        Y = function(m, c)
          local mean, var = column(c)
          return (t.X(m, c) - mean) / math.sqrt(var + EPS) * t.W(c) + t.B(c)
        end,
      }
    end,
  },
  {
    name = "batch_norm_statistics",
    program = mr.program("batch_norm_statistics", function(p)
      local n, c, x = p:axes("n", "c", "x")
      local X, Mean, Var = p:input("X", {n, c, x}), p:output("Mean", {c}, "f32"), p:output("Var", {c}, "f32")
      local sum, square = p:carry("sum", {c}, 0), p:carry("square", {c}, 0)
      p:loop({n, x}, function()
        local v = p:load("load_x", X)
        p:task("sums", function()
          sum:add(rowsum(rowsum(v, x), n))
          square:add(rowsum(rowsum(v * v, x), n))
        end)
      end)
      local mean, var = p:task("moments", function()
        local mean = sum / (n.size * x.size)
        return mean, square / (n.size * x.size) - mean * mean
      end)
      Mean:store("store_mean", mean)
      Var:store("store_var", var)
    end),
    small = {{n = 3, c = 20, x = 40}},
    usual = {{n = 32, c = 256, x = 3136}, {n = 128, c = 1024, x = 196}},
    formula = function(t, sizes)
      local function channel(c)
        return moments(sizes.n * sizes.x, function(i) return t.X(i // sizes.x, c, i % sizes.x) end)
      end
      return {Mean = function(c) return (channel(c)) end, Var = function(c) return (select(2, channel(c))) end}
    end,
  },
}
