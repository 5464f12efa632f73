-- fp8_block_scales: C[m,n] = sum over kb of SA[m,kb] SB[n // 128,kb] (sum over the 128 k of block kb of
-- A[m,k] B[n,k]): a product of fp8, of which each row of A has a scale for 128 elements along k, and B one for
-- blocks of 128 x 128.
--
-- The scheme of DeepSeek-V3 (2024, section 3.3). A product over a block is complete before it is scaled and added to the sums,
-- in f32: so the sums of the tensor cores, which have fewer bits for fp8, never are longer than 128.
--
-- sizes    m, n, k
-- options  block  elements that share a scale, along k and along n (128)
--          dtype  of A and B ("e4m3")
--          out    of C ("bf16")
local mr = require "millrace"

return mr.program("fp8_block_scales", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local block, dtype, out = p:option("block", "integer", 128), p.dtype or "e4m3", p.out or "bf16"
  p:check(block >= 1, "block must be at least 1")
  local kb, i = p:axis("kb", (k.size + block - 1) // block), p:axis("i", block)
  local nb, j = p:axis("nb", (n.size + block - 1) // block), p:axis("j", block)
  local A, B = p:input("A", {m, k}, dtype), p:input("B", {n, k}, dtype)
  local SA, SB = p:input("SA", {kb, m}, "f32"), p:input("SB", {nb, kb}, "f32")
  local C = p:output("C", {m, n}, out)

  p:batch(nb)
  local c = p:carry("c", {m, j}, 0)
  p:loop(kb, {batch = true}, function()
    local a, b = p:load("load_a", A, {m, kb * block + i}), p:load("load_b", B, {nb * block + j, kb * block + i})
    local sa, sb = p:load("load_sa", SA), p:load("load_sb", SB)
    local part = p:mma("mma", a, b)
    p:task("scale", function() c:set(c + part * (sa * sb)) end)
  end)
  C:store("store_c", p:task("convert", function() return c:to(out) end), {m, nb * block + j})
end)
