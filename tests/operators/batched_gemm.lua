-- batched_gemm: C[b,g,m,n] = sum over k of A[b,g,m,k] B[b,k,n]: products of which g share an operand, as torch.matmul broadcasts.
-- tensor_matrix: C[b,i,j,n] = sum over k of A[b,i,j,k] B[k,n]: a tensor of four dimensions and one matrix.
-- gemm_transposed: C[m,n] = sum over k of A[k,m] B[n,k].
local mr = require "millrace"

return {
  {
    name = "batched_gemm",
    program = mr.program("batched_gemm", function(p)
      local b, g, m, n, k = p:axes("b", "g", "m", "n", "k")
      local A, B, C = p:input("A", {b, g, m, k}), p:input("B", {b, k, n}), p:output("C", {b, g, m, n})
      p:batch(b, g)
      local c = p:carry("c", {m, n}, 0)
      p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
      C:store("store_c", p:task("round", function() return c:to "bf16" end))
    end),
    small = {{b = 2, g = 2, m = 64, n = 64, k = 64}, {b = 2, g = 3, m = 40, n = 72, k = 56}},
    usual = {{b = 16, g = 8, m = 512, n = 1024, k = 1024}},
    formula = function(t, sizes)
      return {C = function(b, g, i, j)
        local sum = 0
        for k = 0, sizes.k - 1 do sum = sum + t.A(b, g, i, k) * t.B(b, k, j) end
        return sum
      end}
    end,
  },
  {
    name = "tensor_matrix",
    program = mr.program("tensor_matrix", function(p)
      local b, i, j, n, k = p:axes("b", "i", "j", "n", "k")
      local A, B, C = p:input("A", {b, i, j, k}), p:input("B", {k, n}), p:output("C", {b, i, j, n})
      local c = p:carry("c", {b, i, j, n}, 0)
      p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
      C:store("store_c", p:task("round", function() return c:to "bf16" end))
    end),
    small = {{b = 2, i = 8, j = 16, n = 64, k = 64}, {b = 2, i = 3, j = 10, n = 72, k = 40}},
    usual = {{b = 8, i = 256, j = 512, n = 768, k = 256}},
    formula = function(t, sizes)
      return {C = function(b, i, j, n)
        local sum = 0
        for k = 0, sizes.k - 1 do sum = sum + t.A(b, i, j, k) * t.B(k, n) end
        return sum
      end}
    end,
  },
  {
    name = "gemm_transposed",
    program = mr.program("gemm_transposed", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local A, B, C = p:input("A", {k, m}), p:input("B", {n, k}), p:output("C", {m, n})
      local c = p:carry("c", {m, n}, 0)
      p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
      C:store("store_c", p:task("round", function() return c:to "bf16" end))
    end),
    small = {{m = 64, n = 64, k = 64}, {m = 40, n = 72, k = 56}},
    usual = {{m = 4096, n = 4096, k = 8192}},
    formula = function(t, sizes)
      return {C = function(i, j)
        local sum = 0
        for k = 0, sizes.k - 1 do sum = sum + t.A(k, i) * t.B(j, k) end
        return sum
      end}
    end,
  },
}
