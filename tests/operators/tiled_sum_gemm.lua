-- C[m,n] += sum over a tile of k of A[m,k] B[n,k]: tiles divide the sum, too, and are shared out over the machine.
--
-- Products of few tiles and long sums, as by Stream-K: which part of the sum a tile has is the plan's choice, not the program's.
local mr = require "millrace"

return {
  program = mr.program("tiled_sum_gemm", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32")
    p:phase("begin", function()
      C:store(p:task("zero", function() return (m:index() + n:index()):to "f32" * 0 end))
    end)
    p:phase("add", function()
      C:add("add_c", p:mma("mma", p:load("load_a", A), p:load("load_b", B)))
    end)
  end),
  small = {{m = 64, n = 64, k = 256}, {m = 40, n = 72, k = 200}},
  usual = {{m = 256, n = 1024, k = 512}, {m = 256, n = 1024, k = 65536}},
  formula = function(t, sizes)
    return {C = function(i, j)
      local sum = 0
      for k = 0, sizes.k - 1 do sum = sum + t.A(i, k) * t.B(j, k) end
      return sum
    end}
  end,
}
