-- y[n] = sum over the parts s of k of W[n,k] x[k]: a product with a vector whose sum is split, so that few rows fill the machine.
--
-- The parts are added in device memory, in any order.
local mr = require "millrace"

return {
  program = mr.program("gemv_splitk", function(p)
    local n, k = p:axes("n", "k")
    local W, X, Y = p:input("W", {n, k}), p:input("X", {k}), p:output("Y", {n}, "f32")
    p:phase("begin", function()
      Y:store(p:task("zero", function() return n:index():to "f32" * 0 end))
    end)
    p:phase("add", function()
      local w, x = p:load("load_w", W), p:load("load_x", X)
      Y:add(p:task("product", function() return mr.rowsum(w * x, k) end))        -- each tile has a part of k
    end)
  end),
  small = {{n = 40, k = 168}, {n = 8, k = 1024}},
  usual = {{n = 1024, k = 1024}, {n = 256, k = 65536}},
  formula = function(t, sizes)
    return {Y = function(n)
      local sum = 0
      for k = 0, sizes.k - 1 do sum = sum + t.W(n, k) * t.X(k) end
      return sum
    end}
  end,
}
