-- C[m,n] = sum over k of A[m,k] SA[m, k // 128] B[n,k] SB[n, k // 128]: A of fp4, B of fp8, with scales of e8m0 for
-- 128 elements along k on both sides, as DeepSeek-V4 multiplies activations by experts' weights.
--
-- Products of a block are complete before they are scaled; a task converts A to fp8, which has all numbers that fp4 has.
local mr = require "millrace"

local block = 128

return {
  program = mr.program("fp4_by_fp8_gemm", function(p)
    local m, n, k = p:axes("m", "n", "k")
    p:check(k.size % block == 0, "k must be a multiple of 128")
    local kb, i = p:axis("kb", k.size // block), p:axis("i", block)
    local A, B = p:input("A", {m, k}, "e2m1"), p:input("B", {n, k}, "e4m3")
    local SA, SB = p:input("SA", {kb, m}, "e8m0"), p:input("SB", {kb, n}, "e8m0")
    local C = p:output("C", {m, n})
    local c = p:carry("c", {m, n}, 0)
    p:loop(kb, {batch = true}, function()
      local a, b = p:load("load_a", A, {m, kb * block + i}), p:load("load_b", B, {n, kb * block + i})
      local sa, sb = p:load("load_sa", SA), p:load("load_sb", SB)
      local x = p:task("widen", function() return a:to "e4m3" end)
      local part = p:mma("mma", x, b)
      p:task("scale", function() c:set(c + part * sa * sb) end)
    end)
    C:store("store_c", p:task("convert", function() return c:to "bf16" end))
  end),
  small = {{m = 64, n = 64, k = 256}, {m = 40, n = 72, k = 128}},
  usual = {{m = 8192, n = 8192, k = 8192}, {m = 512, n = 8192, k = 8192}},
  fill = {
    SA = function(_, b, i) return 2.0 ^ ((b + i) % 3 - 2) end,
    SB = function(_, b, i) return 2.0 ^ ((2 * b + i) % 5 - 4) end,
  },
  formula = function(T, sizes)
    return {C = function(i, j)
      local sum = 0
      for k = 0, sizes.k - 1 do
        sum = sum + T.A(i, k) * T.B(j, k) * T.SA(k // block, i) * T.SB(k // block, j)
      end
      return sum
    end}
  end,
}
