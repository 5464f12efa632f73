-- C[m,n] = max(0, sum over k of A[m,k] B[k,n]), in f16: a linear layer and its activation.
local mr = require "millrace"

return {
  program = mr.program("gemm_relu", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B, C = p:input("A", {m, k}, "f16"), p:input("B", {k, n}, "f16"), p:output("C", {m, n}, "f16")
    local c = p:carry("c", {m, n}, 0)
    p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
    C:store("store_c", p:task("relu", function() return mr.max(c, 0):to "f16" end))
  end),
  small = {{m = 64, n = 64, k = 64}, {m = 50, n = 72, k = 88}},
  usual = {{m = 1024, n = 1024, k = 1024}, {m = 16384, n = 16384, k = 16384}},
  formula = function(t, sizes)
    return {C = function(i, j)
      local sum = 0
      for k = 0, sizes.k - 1 do sum = sum + t.A(i, k) * t.B(k, j) end
      return math.max(sum, 0)
    end}
  end,
}
