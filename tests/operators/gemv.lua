-- y[n] = sum over k of W[n,k] x[k]: a product with a vector, by multiplying and adding.
--
-- Each linear layer of a model that decodes one sequence. Here weights pass once through the machine, and nothing else counts.
local mr = require "millrace"

return {
  program = mr.program("gemv", function(p)
    local n, k = p:axes("n", "k")
    local W, X, Y = p:input("W", {n, k}), p:input("X", {k}), p:output("Y", {n})
    local y = p:carry("y", {n}, 0)
    p:loop(k, function()
      local w, x = p:load("load_w", W), p:load("load_x", X)
      p:task("product", function() y:add(mr.rowsum(w * x, k)) end)
    end)
    Y:store("store_y", p:task("round", function() return y:to "bf16" end))
  end),
  small = {{n = 100, k = 168}, {n = 64, k = 256}},
  usual = {{n = 1024, k = 1024}, {n = 16384, k = 16384}, {n = 28672, k = 8192}},
  formula = function(t, sizes)
    return {Y = function(n)
      local sum = 0
      for k = 0, sizes.k - 1 do sum = sum + t.W(n, k) * t.X(k) end
      return sum
    end}
  end,
}
