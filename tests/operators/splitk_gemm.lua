-- C[m,n] += sum over the part s of k of A[m,k] B[k,n]: the parts of a long sum are multiplied at once, and added in device memory.
local mr = require "millrace"

return {
  program = mr.program("splitk_gemm", function(p)
    local m, n, k, s = p:axes("m", "n", "k", "s")
    local r = p:axis("r", k.size // s.size)
    local A, B, C = p:input("A", {m, k}), p:input("B", {k, n}), p:output("C", {m, n}, "f32")
    p:phase("begin", function()
      C:store(p:task("zero", function() return (m:index() + n:index()):to "f32" * 0 end))
    end)
    p:phase("add", function()
      p:batch(s)
      local c = p:carry("c", {m, n}, 0)
      p:loop(r, function()
        local at = s * r.size + r
        c:add(p:mma("mma", p:load("load_a", A, {m, at}), p:load("load_b", B, {at, n})))
      end)
      C:add(c)
    end)
  end),
  small = {{m = 64, n = 64, k = 128, s = 2}, {m = 40, n = 72, k = 192, s = 3}},
  usual = {{m = 128, n = 4096, k = 16384, s = 8}},
  formula = function(t, sizes)
    return {C = function(i, j)
      local sum = 0
      for k = 0, sizes.k - 1 do sum = sum + t.A(i, k) * t.B(k, j) end
      return sum
    end}
  end,
}
