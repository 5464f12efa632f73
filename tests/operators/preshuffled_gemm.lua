-- C[m,n] = sum over k of A[m,k] B[n,k], fp8, where B lies in memory as blocks of 16 x 32, so that a matrix instruction's operand is
-- contiguous: how AITER and other libraries keep weights.
--
-- nvfp4_gemm_in_chunks: fp4 with scales for 16 along k on both sides; the scales lie as Blackwell's matrix unit reads them: of 128
-- rows and 4 scales, first along the rows modulo 32, then along those of 32, then along the scales.
local mr = require "millrace"

return {
  {
    name = "preshuffled_gemm",
    program = mr.program("preshuffled_gemm", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local bn, bk, i, j = p:axis("bn", n.size // 16), p:axis("bk", k.size // 32), p:axis("i", 16), p:axis("j", 32)
      local A, B = p:input("A", {m, k}, "e4m3"), p:input("B", {bn, bk, i, j}, "e4m3")
      local C = p:output("C", {m, n}, "f32")
      local c = p:carry("c", {m, n}, 0)
      p:loop(k, function()
        c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B, {n // 16, k // 32, n % 16, k % 32})))
      end)
      C:store("store_c", c)
    end),
    small = {{m = 64, n = 64, k = 128}, {m = 40, n = 48, k = 96}},
    usual = {{m = 512, n = 512, k = 512}, {m = 4096, n = 4096, k = 4096}},
    formula = function(t, sizes)
      return {C = function(i, j)
        local sum = 0
        for k = 0, sizes.k - 1 do sum = sum + t.A(i, k) * t.B(j // 16, k // 32, j % 16, k % 32) end
        return sum
      end}
    end,
  },
  {
    name = "nvfp4_gemm_in_chunks",
    program = mr.program("nvfp4_gemm_in_chunks", function(p)
      local m, n, k = p:axes("m", "n", "k")
      p:check(m.size % 128 == 0 and n.size % 128 == 0 and k.size % 64 == 0, "m, n must be multiples of 128, k of 64")
      local mb, nb, kb = p:axis("mb", m.size // 128), p:axis("nb", n.size // 128), p:axis("kb", k.size // 64)
      local i, j, l, q = p:axis("i", 128), p:axis("j", 128), p:axis("l", 64), p:axis("q", 512)
      local A, B, C = p:input("A", {m, k}, "e2m1"), p:input("B", {n, k}, "e2m1"), p:output("C", {m, n}, "bf16")
      local SA, SB = p:input("SA", {mb, kb, q}, "e4m3"), p:input("SB", {nb, kb, q}, "e4m3")
      p:batch(mb, nb)
      local c = p:carry("c", {i, j}, 0)
      p:loop(kb, {batch = true}, function()
        local a, sa = p:load("load_a", A, {mb * 128 + i, kb * 64 + l}), p:load("load_sa", SA)
        local b, sb = p:load("load_b", B, {nb * 128 + j, kb * 64 + l}), p:load("load_sb", SB)
        local wide_a = p:task("widen_a", function()
          return (a * sa:at(q, i % 32 * 16 + i // 32 * 4 + l // 16)):to "bf16"
        end)
        local wide_b = p:task("widen_b", function()
          return (b * sb:at(q, j % 32 * 16 + j // 32 * 4 + l // 16)):to "bf16"
        end)
        c:add(p:mma("mma", wide_a, wide_b))
      end)
      C:store("store_c", c, {mb * 128 + i, nb * 128 + j})
    end),
    small = {{m = 128, n = 128, k = 128}, {m = 128, n = 256, k = 64}},
    usual = {{m = 2048, n = 2048, k = 2048}, {m = 8192, n = 8192, k = 8192}},
    formula = function(t, sizes)
      local function scale(S, i, k) return S(i // 128, k // 64, i % 32 * 16 + i % 128 // 32 * 4 + k % 64 // 16) end
      return {C = function(i, j)
        local sum = 0
        for k = 0, sizes.k - 1 do sum = sum + t.A(i, k) * scale(t.SA, i, k) * t.B(j, k) * scale(t.SB, j, k) end
        return sum
      end}
    end,
  },
}
