-- C[m,n] = sum over k of A[m,k] B[k,n], over those blocks of k that a mask keeps for each block of C: Mask[m // rows,n // cols,k // depth].
--
-- Products with weights or activations of which blocks are pruned, the mask of blocks known when the kernel runs.
local mr = require "millrace"

return {
  program = mr.program("blocksparse_gemm", function(p)
    local bm, bn, bk = p:axes("bm", "bn", "bk")
    local i, j, l = p:axis("i", p.rows), p:axis("j", p.cols), p:axis("l", p.depth)
    local m, n, k = p:axis("m", bm.size * i.size), p:axis("n", bn.size * j.size), p:axis("k", bk.size * l.size)
    local A, B, C = p:input("A", {m, k}), p:input("B", {k, n}), p:output("C", {m, n})
    local Mask = p:input("Mask", {bm, bn, bk}, "bool")
    p:batch(bm, bn)
    local row, column, at = bm * i.size + i, bn * j.size + j, bk * l.size + l
    local c = p:carry("c", {i, j}, 0)
    p:loop(bk, {when = function() return p:load("load_mask", Mask) end, typical = p.typical}, function()
      c:add(p:mma("mma", p:load("load_a", A, {row, at}), p:load("load_b", B, {at, column})))
    end)
    C:store("store_c", p:task("round", function() return c:to "bf16" end), {row, column})
  end),
  small = {{bm = 2, bn = 2, bk = 5, rows = 64, cols = 32, depth = 16}, {bm = 3, bn = 1, bk = 4, rows = 24, cols = 40, depth = 48}},
  usual = {
    {bm = 8, bn = 8, bk = 32, rows = 128, cols = 128, depth = 32, typical = 16},
    {bm = 64, bn = 64, bk = 128, rows = 128, cols = 128, depth = 64, typical = 64},
  },
  fill = {Mask = function(_, i, j, k) return (i * 5 + j * 3 + k * 7) % 11 < 5 and 1 or 0 end},
  formula = function(t, sizes)
    return {C = function(i, j)
      local sum = 0
      for k = 0, sizes.bk * sizes.depth - 1 do
        local kept = t.Mask(i // sizes.rows, j // sizes.cols, k // sizes.depth)
        if kept == 1 or kept == true then sum = sum + t.A(i, k) * t.B(k, j) end
      end
      return sum
    end}
  end,
}
