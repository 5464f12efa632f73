-- dX[m,n] = Y[m,n] (dY[m,n] - sum over n of Y dY): the gradient of Y[m,:] = softmax of X[m,:].
--
-- Attention whose weights are kept, and routers. softmax_rows is the forward pass.
local mr = require "millrace"

return {
  {
    name = "softmax_rows",
    program = mr.program("softmax_rows", function(p)
      local m, n = p:axes("m", "n")
      local X, Y = p:input("X", {m, n}), p:output("Y", {m, n})
      local x = p:load("load_x", X)
      Y:store("store_y", p:task("softmax", function()
        local e = mr.exp(x - mr.rowmax(x, n))
        return e / mr.rowsum(e, n)
      end))
    end),
    small = {{m = 20, n = 100}},
    usual = {{m = 32768, n = 2048}, {m = 8192, n = 8192}},
    formula = function(t, sizes)
      return {Y = function(i, j)
        local sum = 0
        for l = 0, sizes.n - 1 do sum = sum + math.exp(t.X(i, l)) end
        return math.exp(t.X(i, j)) / sum
      end}
    end,
  },
  {
    name = "softmax_backward",
    program = mr.program("softmax_backward", function(p)
      local m, n = p:axes("m", "n")
      local Y, dY, dX = p:input("Y", {m, n}), p:input("dY", {m, n}), p:output("dX", {m, n})
      local y, dy = p:load("load_y", Y), p:load("load_dy", dY)
      dX:store("store_dx", p:task("gradient", function() return y * (dy - mr.rowsum(y * dy, n)) end))
    end),
    small = {{m = 20, n = 100}},
    usual = {{m = 32768, n = 2048}, {m = 8192, n = 8192}},
    formula = function(t, sizes)
      return {dX = function(i, j)
        local sum = 0
        for l = 0, sizes.n - 1 do sum = sum + t.Y(i, l) * t.dY(i, l) end
        return t.Y(i, j) * (t.dY(i, j) - sum)
      end}
    end,
  },
}
