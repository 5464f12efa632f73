-- matmul_sum: S[m] = sum over n of sum over k of A[m,k] B[n,k].
--
-- Two nested loops: a matrix product is completed for every tile of n, and its row
-- sum added to what the tiles before gave.
--
-- sizes    m, n, k
-- options  dtype  of A and B ("bf16")
--          out    of S ("f32"; "f64" if dtype is)
local mr = require "millrace"

return mr.program("matmul_sum", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local out = p.out or (p.dtype == "f64" and "f64" or "f32")
  local A, B = p:input("A", {m, k}), p:input("B", {n, k})
  local S = p:output("S", {m}, out)

  local sum = p:carry("sum", {m}, 0)
  p:loop(n, function()
    local c = p:carry("c", {m, n}, 0)                   -- begins again for every tile of n
    p:loop(k, function()
      c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B)))
    end)
    p:task("row_sum", function() sum:add(mr.rowsum(c, n)) end)
  end)
  S:store("store_s", p:task("convert", function() return sum:to(out) end))
end)
