-- Many small matrices: Cholesky's and LU factors, without pivots; solutions of triangular systems; shortest paths between all nodes
-- (Floyd and Warshall); the 2^s-th power by squaring; fast weights that the delta rule updates.
local mr = require "millrace"
local min, where = mr.min, mr.where
local sum = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua").sum_below

return {
  {
    name = "cholesky",
    program = mr.program("cholesky", function(p)
      local b, i, j = p:axes("b", "i", "j")
      local A, L = p:input("A", {b, i, j}, "f32"), p:output("L", {b, i, j}, "f32")
      local a = p:load(A)
      L:store(p:task("factor", function()
        local a, l = a, nil
        for k = 0, j.size - 1 do
          local d = mr.sqrt(a:at(j, k):at(i, k))
          local c = where(i:index():ge(k), a:at(j, k) / d, 0)       -- column k
          l = where(j:index():eq(k), c, l or 0 * a)
          a = a - c * c:at(i, j)
        end
        return l
      end))
    end),
    small = {{b = 3, i = 6, j = 6}},
    usual = {{b = 65536, i = 16, j = 16}},
    tolerance = 1e-4,
    fill = {A = function(sizes, b, i, j) return (i == j and sizes.i + b or 0) + 1 / (1 + math.abs(i - j)) end},
    formula = function(t, sizes)
      return {
        L = function(b, i, j)
          local l = {}
          for k = 0, sizes.i - 1 do
            l[k] = {}
            for q = 0, sizes.i - 1 do l[k][q] = 0 end
          end
          for c = 0, sizes.i - 1 do
            for r = c, sizes.i - 1 do
              local s = t.A(b, r, c)
              for q = 0, c - 1 do s = s - l[r][q] * l[c][q] end
              l[r][c] = r == c and math.sqrt(s) or s / l[c][c]
            end
          end
          return l[i][j]
        end,
      }
    end,
  },
  {
    name = "lu",
    program = mr.program("lu", function(p)
      local b, i, j = p:axes("b", "i", "j")
      local A, Y = p:input("A", {b, i, j}, "f32"), p:output("Y", {b, i, j}, "f32")
      local a = p:load(A)
      Y:store(p:task("factor", function()
        local a = a
        for k = 0, j.size - 2 do
          local f = a:at(j, k) / a:at(j, k):at(i, k)
          local below = i:index():gt(k)
          a = where(below & j:index():gt(k), a - f * a:at(i, k), where(below & j:index():eq(k), f, a))
        end
        return a
      end))
    end),
    small = {{b = 3, i = 6, j = 6}},
    usual = {{b = 65536, i = 16, j = 16}},
    tolerance = 1e-4,
    fill = {A = function(sizes, b, i, j) return (i == j and sizes.i + b or 0) + 1 / (1 + i + 2 * j) end},
    formula = function(t, sizes)
      return {
        Y = function(b, i, j)
          local a = {}
          for r = 0, sizes.i - 1 do
            a[r] = {}
            for c = 0, sizes.i - 1 do a[r][c] = t.A(b, r, c) end
          end
          for k = 0, sizes.i - 1 do
            for r = k + 1, sizes.i - 1 do
              a[r][k] = a[r][k] / a[k][k]
              for c = k + 1, sizes.i - 1 do a[r][c] = a[r][c] - a[r][k] * a[k][c] end
            end
          end
          return a[i][j]
        end,
      }
    end,
  },
  {
    name = "triangular_solve",
    program = mr.program("triangular_solve", function(p)
      local b, i, j, n = p:axes("b", "i", "j", "n")
      local L, B, X = p:input("L", {b, i, j}, "f32"), p:input("B", {b, i, n}, "f32"), p:output("X", {b, i, n}, "f32")
      local l, r = p:load(L), p:load(B)
      X:store(p:task("solve", function()
        local r = r
        for k = 0, i.size - 1 do
          local x = r:at(i, k) / l:at(j, k):at(i, k)
          r = where(i:index():eq(k), x, where(i:index():gt(k), r - l:at(j, k) * x, r))
        end
        return r
      end))
    end),
    small = {{b = 3, i = 6, j = 6, n = 5}},
    usual = {{b = 65536, i = 16, j = 16, n = 16}},
    tolerance = 1e-4,
    fill = {L = function(sizes, b, i, j) return i == j and 2 + b or i > j and 1 / (1 + i + j) or 0 end},
    formula = function(t, sizes)
      return {
        X = function(b, i, n)
          local x = {}
          for r = 0, i do x[r] = (t.B(b, r, n) - sum(function(k) return t.L(b, r, k) * x[k] end, r)) / t.L(b, r, r) end
          return x[i]
        end,
      }
    end,
  },
  {
    name = "floyd_warshall",
    program = mr.program("floyd_warshall", function(p)
      local b, i, j = p:axes("b", "i", "j")
      local k = p:axis("k", i.size)
      local D, Y = p:input("D", {b, i, j}, "f32"), p:output("Y", {b, i, j}, "f32")
      local d0 = p:load(D)
      local d = p:carry("d", {b, i, j}, 0)
      p:task("begin", function() d:set(d0) end)
      p:loop(k, {batch = true}, function()
        p:task("step", function() d:set(min(d, d:at(j, k) + d:at(i, k))) end)
      end)
      Y:store(d)
    end),
    small = {{b = 2, i = 13, j = 13}},
    usual = {{b = 4096, i = 64, j = 64}},
    tolerance = 1e-5,
    fill = {D = function(sizes, b, i, j) return i == j and 0 or (i * 7 + j * 3 + b) % 11 + 1 end},
    formula = function(t, sizes)
      local got = {}
      local function run(b)
        local d = {}
        for i = 0, sizes.i - 1 do
          d[i] = {}
          for j = 0, sizes.i - 1 do d[i][j] = t.D(b, i, j) end
        end
        for k = 0, sizes.i - 1 do
          for i = 0, sizes.i - 1 do
            for j = 0, sizes.i - 1 do d[i][j] = math.min(d[i][j], d[i][k] + d[k][j]) end
          end
        end
        return d
      end
      return {
        Y = function(b, i, j)
          got[b] = got[b] or run(b)
          return got[b][i][j]
        end,
      }
    end,
  },
  {
    name = "matrix_power",
    program = mr.program("matrix_power", function(p)
      local b, i, j, s = p:axes("b", "i", "j", "s")
      local k = p:axis("k", i.size)
      local A, Y = p:input("A", {b, i, j}), p:output("Y", {b, i, j}, "f32")
      p:batch(b)
      local a = p:load(A)
      for q = 1, s.size do
        local x = p:task("round" .. q, function() return a:to "bf16" end)
        local l, r = p:task("names" .. q, function() return x:at(j, k), x:at(i, k) end)
        a = p:mma("square" .. q, l, r)
      end
      Y:store(a)
    end),
    small = {{b = 3, i = 16, j = 16, s = 2}},
    usual = {{b = 4096, i = 64, j = 64, s = 4}},
    tolerance = 0.03,
    fill = {A = function(sizes, b, i, j) return (i == j and 1 or 0) * 0.9 + 0.01 * math.sin(b + i * 3 + j) end},
    formula = function(t, sizes)
      local function power(b)
        local a = {}
        for i = 0, sizes.i - 1 do
          a[i] = {}
          for j = 0, sizes.i - 1 do a[i][j] = t.A(b, i, j) end
        end
        for _ = 1, sizes.s do
          local c = {}
          for i = 0, sizes.i - 1 do
            c[i] = {}
            for j = 0, sizes.i - 1 do c[i][j] = sum(function(k) return a[i][k] * a[k][j] end, sizes.i) end
          end
          a = c
        end
        return a
      end
      local got = {}
      return {
        Y = function(b, i, j)
          got[b] = got[b] or power(b)
          return got[b][i][j]
        end,
      }
    end,
  },
  {
    name = "batch_outer_update",
    program = mr.program("batch_outer_update", function(p)
      local b, t, i, j = p:axes("b", "t", "i", "j")
      local K, V, E = p:input("K", {b, t, j}), p:input("V", {b, t, i}), p:input("E", {b, t}, "f32")
      local Y, W = p:output("Y", {b, t, i}), p:output("W", {b, i, j}, "f32")
      p:batch(b)
      local w = p:carry("w", {i, j}, 0)
      p:loop(t, {batch = true}, function()
        local k, v, e = p:load(K), p:load(V), p:load(E)
        Y:store(p:task("step", function()
          local y = (w * k):rowsum(j)
          w:add(e * (v - y) * k)
          return y
        end))
      end)
      W:store(w)
    end),
    small = {{b = 2, t = 5, i = 16, j = 16}},
    usual = {{b = 256, t = 1024, i = 64, j = 64}},
    fill = {E = function(sizes, b, t) return 0.1 + 0.05 * t % 1 end},
    formula = function(t, sizes)
      local function run(b, n)
        local w, y = {}, {}
        for i = 0, sizes.i - 1 do
          w[i] = {}
          for j = 0, sizes.j - 1 do w[i][j] = 0 end
        end
        for q = 0, n do
          for i = 0, sizes.i - 1 do y[i] = sum(function(j) return w[i][j] * t.K(b, q, j) end, sizes.j) end
          for i = 0, sizes.i - 1 do
            for j = 0, sizes.j - 1 do w[i][j] = w[i][j] + t.E(b, q) * (t.V(b, q, i) - y[i]) * t.K(b, q, j) end
          end
        end
        return y, w
      end
      return {
        Y = function(b, q, i) return run(b, q)[i] end,
        W = function(b, i, j) return select(2, run(b, sizes.t - 1))[i][j] end,
      }
    end,
  },
}
