-- C = A + B, of f32.
local mr = require "millrace"

return {
  program = mr.program("elementwise_add", function(p)
    local m, n = p:axes("m", "n")
    local A, B, C = p:input("A", {m, n}, "f32"), p:input("B", {m, n}, "f32"), p:output("C", {m, n}, "f32")
    local a, b = p:load("load_a", A), p:load("load_b", B)
    C:store("store_c", p:task("add", function() return a + b end))
  end),
  small = {{m = 33, n = 100}, {m = 64, n = 64}},
  usual = {{m = 1024, n = 1024}, {m = 4096, n = 4096}, {m = 16384, n = 16384}},
  formula = function(t)
    return {C = function(i, j) return t.A(i, j) + t.B(i, j) end}
  end,
}
