-- C[g,m,n] = sum over k of A[g][m,k] B[g][k,n]: products of groups whose matrices lie anywhere, by tables of addresses.
--
-- Adapters of several users (LoRA), and experts whose weights are tensors of their own.
local mr = require "millrace"

return {
  program = mr.program("grouped_pointers_gemm", function(p)
    local g, m, n, k = p:axes("g", "m", "n", "k")
    local A, B = p:input("A", {g, m, k}, "f16", {pointers = g}), p:input("B", {g, k, n}, "f16", {pointers = g})
    local C = p:output("C", {g, m, n}, "f16")
    p:batch(g)
    local c = p:carry("c", {m, n}, 0)
    p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
    C:store("store_c", p:task("round", function() return c:to "f16" end))
  end),
  small = {{g = 3, m = 64, n = 64, k = 96}, {g = 2, m = 50, n = 72, k = 40}},
  usual = {{g = 3, m = 256, n = 4096, k = 4096}, {g = 8, m = 1024, n = 4096, k = 4096}},
  formula = function(t, sizes)
    return {C = function(g, m, n)
      local sum = 0
      for k = 0, sizes.k - 1 do sum = sum + t.A(g, m, k) * t.B(g, k, n) end
      return sum
    end}
  end,
}
