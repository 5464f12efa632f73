-- row_programs.lua - programs of row_cases.py that are neither shipped nor in tests/operators, as a user writes them. -> programs by name
local mr = require "millrace"
local exp2, rowsum, rowmax = mr.exp2, mr.rowsum, mr.rowmax

local LOG2E <const> = 1.4426950408889634
local M = {}

local function program(name, f) M[name] = mr.program(name, f) end

-- Y[m,n] = exp(X[m,n]) over the sum of the row's, of a row as one tile.
program("softmax", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m, n})
  local x = p:load("load_x", X)
  Y:store("store_y", p:task("softmax", function()
    local y = x * LOG2E
    local e = exp2(y - rowmax(y, n))
    return e / rowsum(e, n)
  end))
end)

program("layernorm", function(p)
  local m, n = p:axes("m", "n")
  local X, G, B, Y = p:input("X", {m, n}), p:input("G", {n}), p:input("B", {n}), p:output("Y", {m, n})
  local x, g, b = p:load("load_x", X), p:load("load_g", G), p:load("load_b", B)
  Y:store("store_y", p:task("norm", function()
    local away = x - rowsum(x, n) / n.size
    return away * mr.rsqrt(rowsum(away * away, n) / n.size + 1e-5) * g + b
  end))
end)

program("rmsnorm", function(p)
  local m, n = p:axes("m", "n")
  local X, G, Y = p:input("X", {m, n}), p:input("G", {n}), p:output("Y", {m, n})
  local x, g = p:load("load_x", X), p:load("load_g", G)
  Y:store("store_y", p:task("norm", function() return x * mr.rsqrt(rowsum(x * x, n) / n.size + 1e-6) * g end))
end)

program("gelu", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m, n})
  local x = p:load("load_x", X)
  Y:store("store_y", p:task("gelu", function() return mr.gelu(x) end))
end)

program("gemv", function(p)
  local n, k = p:axes("n", "k")
  local W, X, Y = p:input("W", {n, k}), p:input("X", {k}), p:output("Y", {n}, "f32")
  local y = p:carry("y", {n}, 0)
  p:loop(k, function()
    local w, x = p:load("load_w", W), p:load("load_x", X)
    p:task("product", function() y:add(rowsum(w * x, k)) end)
  end)
  Y:store("store_y", y)
end)

-- C[m,n] = S[m] Z[n] times the sum over k of A[m,k] B[n,k], of integers of 8 bits.
program("int8_gemm", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, S, Z = p:input("A", {m, k}, "i8"), p:input("B", {n, k}, "i8"), p:input("S", {m}, "f32"), p:input("Z", {n}, "f32")
  local C = p:output("C", {m, n}, "bf16")
  local c = p:carry("c", {m, n}, 0, "i32")
  p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
  local s, z = p:load("load_s", S), p:load("load_z", Z)
  C:store("store_c", p:task("scale", function() return (c:to "f32" * (s * z)):to "bf16" end))
end)

-- C[m,n] = silu(sum over k of A[m,k] G[n,k]) times the sum of A[m,k] U[n,k].
program("swiglu", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, G, U, C = p:input("A", {m, k}), p:input("G", {n, k}), p:input("U", {n, k}), p:output("C", {m, n})
  local g, u = p:carry("g", {m, n}, 0), p:carry("u", {m, n}, 0)
  p:loop(k, function()
    local a = p:load("load_a", A)
    g:add(p:mma("mma_g", a, p:load("load_g", G)))
    u:add(p:mma("mma_u", a, p:load("load_u", U)))
  end)
  C:store("store_c", p:task("gate", function() return mr.silu(g) * u end))
end)

program("batched_gemm", function(p)
  local b, m, n, k = p:axes("b", "m", "n", "k")
  local A, B, C = p:input("A", {b, m, k}), p:input("B", {b, n, k}), p:output("C", {b, m, n})
  p:batch(b)
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
  C:store("store_c", p:task("round", function() return c:to "bf16" end))
end)

-- Y[b,t,c] = silu(B[c] + sum over w of W[c,w] X[b, t + w - 3, c]).
program("conv1d", function(p)
  local b, t, c = p:axes("b", "t", "c")
  local w = p:axis("w", 4)
  local X, W, B, Y = p:input("X", {b, t, c}), p:input("W", {c, w}), p:input("B", {c}), p:output("Y", {b, t, c})
  local x, weights, bias = p:load("load_x", X, {b, t + w - 3, c}), p:load("load_w", W), p:load("load_b", B)
  Y:store("store_y", p:task("filter", function() return mr.silu(rowsum(x * weights, w) + bias) end))
end)

return M
