-- Products with lower triangular matrices, of which only what is on and below the diagonal counts, whatever the memory holds above.
-- triangular_gemm: C[m,n] = sum over k <= m of A[m,k] B[k,n] (BLAS trmm; a chunk of linear attention).
-- triangular_product: both are triangular, and so is C, zero above: C[m,n] = sum over n <= k <= m of A[m,k] B[k,n].
local mr = require "millrace"

return {
  {
    name = "triangular_gemm",
    program = mr.program("triangular_gemm", function(p)
      local m, n = p:axes("m", "n")
      local k = p:axis("k", m.size)
      local A, B, C = p:input("A", {m, k}), p:input("B", {k, n}), p:output("C", {m, n})
      local c = p:carry("c", {m, n}, 0)
      p:loop(k, {upto = m}, function()
        local a = p:load("load_a", A)
        local low = p:task("low", function() return mr.where(k:index():le(m:index()), a, 0):to "bf16" end)
        c:add(p:mma("mma", low, p:load("load_b", B)))
      end)
      C:store("store_c", p:task("round", function() return c:to "bf16" end))
    end),
    small = {{m = 128, n = 64}, {m = 90, n = 72}},
    usual = {{m = 4096, n = 4096}, {m = 8192, n = 8192}},
    formula = function(t)
      return {C = function(i, j)
        local sum = 0
        for k = 0, i do sum = sum + t.A(i, k) * t.B(k, j) end
        return sum
      end}
    end,
  },
  {
    name = "triangular_product",
    program = mr.program("triangular_product", function(p)
      local m = p:axes("m")
      local n, k = p:axis("n", m.size), p:axis("k", m.size)
      local A, B, C = p:input("A", {m, k}), p:input("B", {k, n}), p:output("C", {m, n})
      local c = p:carry("c", {m, n}, 0)
      p:loop(k, {from = n, upto = m}, function()
        local a, b = p:load("load_a", A), p:load("load_b", B)
        local low_a = p:task("low_a", function() return mr.where(k:index():le(m:index()), a, 0):to "bf16" end)
        local low_b = p:task("low_b", function() return mr.where(n:index():le(k:index()), b, 0):to "bf16" end)
        c:add(p:mma("mma", low_a, low_b))
      end)
      C:store("store_c", p:task("round", function() return c:to "bf16" end))
    end),
    small = {{m = 128}, {m = 88}},
    usual = {{m = 4096}},
    formula = function(t)
      return {C = function(i, j)
        local sum = 0
        for k = j, i do sum = sum + t.A(i, k) * t.B(k, j) end
        return sum
      end}
    end,
  },
}
