-- Sums over pairs that are never stored, and distances: forces of bodies, a kernel matrix times vectors, the k nearest rows; a
-- contraction of two tensors over two axes, and the Kronecker product.
local mr = require "millrace"
local max, exp, where = mr.max, mr.exp, mr.where
local sum = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua").sum_below

return {
  {
    name = "n_body",
    program = mr.program("n_body", function(p)
      local i, j = p:axes("i", "j")
      local c = p:axis("c", 3)
      local all = p:axis("all", j.size)
      local P, M = p:input("P", {i, c}, "f32"), p:input("M", {i}, "f32")
      local F = p:output("F", {i, c}, "f32")
      local f = p:carry("f", {i, c}, 0)
      local a = p:load("load_a", P)
      p:loop(j, function()
        local b, m = p:load("load_b", P, {j, c}), p:load("load_m", M, {j})
        p:task("force", function()
          local d = b - a
          local r = mr.rsqrt((d * d):rowsum(c) + 1e-3)
          f:add((d * (m * r * r * r)):rowsum(j))
        end)
      end)
      F:store(f)
    end),
    small = {{i = 37, j = 37}},
    usual = {{i = 65536, j = 65536}},
    tolerance = 0.01,
    formula = function(t, sizes)
      return {
        F = function(i, c)
          return sum(function(j)
            local r = 1e-3
            for q = 0, 2 do r = r + (t.P(j, q) - t.P(i, q)) ^ 2 end
            return t.M(j) * (t.P(j, c) - t.P(i, c)) / r ^ 1.5
          end, sizes.j)
        end,
      }
    end,
  },
  {
    name = "rbf_product",
    program = mr.program("rbf_product", function(p)
      local m, n, k, r = p:axes("m", "n", "k", "r")
      local X, Y, V, Z = p:input("X", {m, k}), p:input("Y", {n, k}), p:input("V", {n, r}), p:output("Z", {m, r}, "f32")
      local x = p:load("load_x", X)
      local xx = p:task("squares_x", function() return (x * x):rowsum(k) end)
      local z = p:carry("z", {m, r}, 0)
      p:loop(n, function()
        local y = p:load("load_y", Y)
        local c = p:mma("mma", x, y)
        local w = p:task("kernel", function()
          local yy = (y * y):rowsum(k)
          return exp(-0.05 * max(xx + yy - 2 * c, 0)):to "bf16"
        end)
        z:add(p:mma("mma_v", w, p:load("load_v", V)))
      end)
      Z:store(z)
    end),
    small = {{m = 40, n = 50, k = 24, r = 8}},
    usual = {{m = 16384, n = 16384, k = 64, r = 64}},
    formula = function(t, sizes)
      return {
        Z = function(i, r)
          return sum(function(j)
            return math.exp(-0.05 * sum(function(k) return (t.X(i, k) - t.Y(j, k)) ^ 2 end, sizes.k)) * t.V(j, r)
          end, sizes.n)
        end,
      }
    end,
  },
  {
    name = "knn",
    program = mr.program("knn", function(p)
      local m, n, d = p:axes("m", "n", "d")
      local k = p:option("k", "integer", 8)
      local s, row, col = p:axis("s", k), p:axis("row", m.size), p:axis("col", n.size)    -- tiles of the second phase
      local X, Y = p:input("X", {m, d}), p:input("Y", {n, d})
      local At, Dist = p:output("At", {row, s}, "i32"), p:output("Dist", {row, s}, "f32")
      local T = p:temp("T", {m, n}, "f32")
      p:phase("distances", function()
        local x = p:load("load_x", X)
        local xx = p:task("squares_x", function() return (x * x):rowsum(d) end)
        local y = p:load("load_y", Y)
        local yy = p:task("squares_y", function() return (y * y):rowsum(d) end)
        local c = p:mma("mma", x, y)
        T:store("store_t", p:task("distance", function() return max(xx + yy - 2 * c, 0) end))
      end)
      p:phase("choose", function()
        local t = p:load("load_t", T, {row, col})
        local at, dist = p:task("choose", function()
          local left, at, dist = t, s:index() * 0, (s:index() * 0):to "f32"
          for r = 0, k - 1 do
            local best = left:rowmin(col)
            local which = where(left:eq(best), col:index(), n.size):rowmin(col)
            at, dist = where(s:index():eq(r), which, at), where(s:index():eq(r), best, dist)
            left = where(col:index():eq(which), math.huge, left)
          end
          return at, dist
        end)
        At:store(at)
        Dist:store(dist)
      end)
    end),
    small = {{m = 9, n = 50, d = 24, k = 3}},
    usual = {{m = 8192, n = 4096, d = 128}},
    formula = function(t, sizes)
      return {
        Dist = function(i, s)
          local l = {}
          for j = 0, sizes.n - 1 do l[#l + 1] = sum(function(k) return (t.X(i, k) - t.Y(j, k)) ^ 2 end, sizes.d) end
          table.sort(l)
          return l[s + 1]
        end,
      }
    end,
  },
  {
    name = "contraction",
    program = mr.program("contraction", function(p)
      local a, b, c, d, e, f = p:axes("a", "b", "c", "d", "e", "f")
      local X, Y, C = p:input("X", {a, b, c, d}), p:input("Y", {c, d, e, f}), p:output("C", {a, b, e, f}, "f32")
      local acc = p:carry("acc", {a, b, e, f}, 0)
      p:loop({c, d}, function() acc:add(p:mma("mma", p:load(X), p:load(Y))) end)
      C:store(acc)
    end),
    small = {{a = 4, b = 16, c = 3, d = 32, e = 2, f = 16}},
    usual = {{a = 64, b = 64, c = 64, d = 64, e = 64, f = 64}},
    formula = function(t, sizes)
      return {
        C = function(a, b, e, f)
          return sum(function(c) return sum(function(d) return t.X(a, b, c, d) * t.Y(c, d, e, f) end, sizes.d) end, sizes.c)
        end,
      }
    end,
  },
  {
    name = "kronecker",
    program = mr.program("kronecker", function(p)
      local i, j, k, l = p:axes("i", "j", "k", "l")
      local rows, cols = p:axis("rows", i.size * k.size), p:axis("cols", j.size * l.size)
      local A, B, Y = p:input("A", {i, j}), p:input("B", {k, l}), p:output("Y", {rows, cols}, "f32")
      local a, b = p:load(A), p:load(B)
      Y:store(p:task("product", function() return a * b end), {i * k.size + k, j * l.size + l})
    end),
    small = {{i = 4, j = 5, k = 6, l = 8}},
    usual = {{i = 64, j = 64, k = 128, l = 128}},
    formula = function(t, sizes)
      return {Y = function(r, c) return t.A(r // sizes.k, c // sizes.l) * t.B(r % sizes.k, c % sizes.l) end}
    end,
  },
}
