-- Y[m,n] = exp(X[m,n] - log(sum over j of exp(X[m,j]))): a softmax of rows that are read twice, a tile at a time, and so may be longer
-- than what an SM holds. The first pass keeps the greatest element and the sum of a row, which it corrects where a greater one comes.
--
-- Vocabularies' distributions and attention with explicit weights have it.
local mr = require "millrace"
local max, exp2, log2 = mr.max, mr.exp2, mr.log2

local LOG2E <const> = 1.4426950408889634

return {
  program = mr.program("softmax", function(p)
    local m, n = p:axes("m", "n")
    local X, Y = p:input("X", {m, n}, "f16"), p:output("Y", {m, n}, "f16")
    local mx, l = p:carry("mx", {m}, -math.huge), p:carry("l", {m}, 0)
    p:loop(n, function()
      local x = p:load("load_x", X)
      p:task("count", function()
        local x = x * LOG2E
        local new = max(mx, x:rowmax(n))
        l:set(l * exp2(mx - new) + exp2(x - new):rowsum(n))
        mx:set(new)
      end)
    end)
    local lse = p:task("logarithm", function() return mx + log2(l) end)
    p:loop(n, function()
      local x = p:load("load_again", X)
      Y:store("store_y", p:task("weigh", function() return exp2(x * LOG2E - lse):to "f16" end))
    end)
  end),
  small = {{m = 40, n = 200}, {m = 64, n = 256}},
  usual = {{m = 8192, n = 8192}, {m = 4096, n = 128256}},
  formula = function(t, sizes)
    return {Y = function(i, j)
      local sum = 0
      for k = 0, sizes.n - 1 do sum = sum + math.exp(t.X(i, k)) end
      return math.exp(t.X(i, j)) / sum
    end}
  end,
}
