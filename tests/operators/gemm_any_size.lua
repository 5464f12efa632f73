-- C[m,n] = sum over k of A[m,k] B[k,n], of sizes that are known when the kernel is launched.
--
-- Servers compile a product once for all numbers of tokens.
local mr = require "millrace"

local function size(s) return type(s) == "number" and s or s.max end

return {
  program = mr.program("gemm_any_size", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B, C = p:input("A", {m, k}), p:input("B", {k, n}), p:output("C", {m, n})
    local c = p:carry("c", {m, n}, 0)
    p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
    C:store("store_c", p:task("round", function() return c:to "bf16" end))
  end),
  small = {
    {m = mr.any{max = 96, multiple = 8}, n = 64, k = 64},
    {m = mr.any{max = 70}, n = mr.any{max = 72, multiple = 8}, k = mr.any{max = 88, multiple = 8}},
  },
  usual = {
    {m = mr.any{max = 8192, typical = {16, 1024}}, n = 8192, k = 8192},
    {m = mr.any{max = 8192}, n = mr.any{max = 8192, multiple = 8}, k = mr.any{max = 8192, multiple = 8}},
  },
  formula = function(t, sizes)
    return {C = function(i, j)
      local sum = 0
      for k = 0, size(sizes.k) - 1 do sum = sum + t.A(i, k) * t.B(k, j) end
      return sum
    end}
  end,
}
