-- Sparse matrices and graphs: embedding_bag, weighted sums of rows that bags name; Y = A X with A in CSR or ELL; sampled products of the
-- rows of an edge's ends; attention over the edges of a node; sums over edges in any order; a histogram.
local mr = require "millrace"
local max, min, exp, where = mr.max, mr.min, mr.exp, mr.where
local sum = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua").sum_below

return {
  {
    name = "embedding_bag",
    program = mr.program("embedding_bag", function(p)
      local b, i, d = p:axes("b", "i", "d")
      local rows, all, bound = p:axis("rows", p.rows), p:axis("all", p.all), p:axis("bound", b.size + 1)
      local T, At, W = p:input("T", {rows, d}), p:input("At", {all}, "i32"), p:input("W", {all}, "f32")
      local First, Y = p:input("First", {bound}, "i32"), p:output("Y", {b, d}, "f32")
      p:batch(b)
      local first, last = p:load("load_first", First, {b}), p:load("load_last", First, {b + 1})
      local y = p:carry("y", {d}, 0)
      p:loop(i, {length = last - first, typical = 32}, function()
        local at, w = p:load("load_at", At, {first + i}), p:load("load_w", W, {first + i})
        local x = p:load("load_rows", T, {at, d})
        p:task("add", function() y:add((x * w):rowsum(i)) end)
      end)
      Y:store(y)
    end),
    small = {{b = 4, i = 10, d = 40, rows = 20, all = 30}},
    usual = {{b = 16384, i = 128, d = 128, rows = 1000000, all = 524288}},
    fill = {
      First = function(sizes, b) return b * (b + 1) // 2 * 2 end,
      At = function(sizes, i) return i * 7 % sizes.rows end,
    },
    formula = function(t, sizes)
      return {
        Y = function(b, d)
          local s = 0
          for i = t.First(b), math.min(t.First(b + 1), t.First(b) + sizes.i) - 1 do
            s = s + (i < sizes.all and t.W(i) * t.T(t.At(i), d) or 0)
          end
          return s
        end,
      }
    end,
  },
  {
    name = "spmm_csr",
    program = mr.program("spmm_csr", function(p)
      local m, j, n = p:axes("m", "j", "n")               -- j: the longest row
      local k, nnz, bound = p:axis("k", p.k), p:axis("nnz", p.nnz), p:axis("bound", m.size + 1)
      local Row, Col, Val = p:input("Row", {bound}, "i32"), p:input("Col", {nnz}, "i32"), p:input("Val", {nnz}, "f32")
      local X, Y = p:input("X", {k, n}), p:output("Y", {m, n})
      p:batch(m)
      local first = p:load("load_first", Row, {m})
      local y = p:carry("y", {n}, 0)
      p:loop(j, {length = p:load("load_last", Row, {m + 1}) - first, typical = math.max(1, p.nnz // m.size)}, function()
        local c, v = p:load("load_col", Col, {first + j}), p:load("load_val", Val, {first + j})
        local x = p:load("load_x", X, {c, n})
        p:task("add", function() y:add((x * v):rowsum(j)) end)
      end)
      Y:store(y)
    end),
    small = {{m = 6, j = 16, n = 64, k = 20, nnz = 40}},
    usual = {{m = 65536, j = 1024, n = 128, k = 65536, nnz = 65536 * 16}},
    fill = {
      Row = function(sizes, m) return math.min(sizes.nnz, m * 6 + m % 3) end,
      Col = function(sizes, i) return i * i % sizes.k end,
    },
    formula = function(t, sizes)
      return {
        Y = function(m, n)
          local s = 0
          for i = t.Row(m), t.Row(m + 1) - 1 do s = s + t.Val(i) * t.X(t.Col(i), n) end
          return s
        end,
      }
    end,
  },
  {
    name = "spmm_ell",
    program = mr.program("spmm_ell", function(p)
      local m, j, n = p:axes("m", "j", "n")
      local k = p:axis("k", p.k)
      local Col, Val = p:input("Col", {m, j}, "i32"), p:input("Val", {m, j}, "f32")
      local X, Y = p:input("X", {k, n}), p:output("Y", {m, n})
      local y = p:carry("y", {m, n}, 0)
      p:loop(j, {batch = true}, function()
        local c, v = p:load("load_col", Col), p:load("load_val", Val)
        local x = p:load("load_x", X, {c, n})
        p:task("add", function() y:add(x * v) end)
      end)
      Y:store(y)
    end),
    small = {{m = 9, j = 4, n = 40, k = 30}},
    usual = {{m = 65536, j = 16, n = 128, k = 65536}},
    fill = {Col = function(sizes, m, j) return (m + j * j) % 7 == 3 and -1 or (m * 3 + j * 5) % sizes.k end},
    formula = function(t, sizes)
      return {
        Y = function(m, n)
          return sum(function(j)
            local c = t.Col(m, j)
            return c < 0 and 0 or t.Val(m, j) * t.X(c, n)
          end, sizes.j)
        end,
      }
    end,
  },
  {
    name = "sddmm",
    program = mr.program("sddmm", function(p)
      local e, d = p:axes("e", "d")
      local n = p:axis("n", p.n)
      local A, B, U, V = p:input("A", {n, d}), p:input("B", {n, d}), p:input("U", {e}, "i32"), p:input("V", {e}, "i32")
      local S = p:output("S", {e}, "f32")
      local a, b = p:load("load_a", A, {p:load(U), d}), p:load("load_b", B, {p:load(V), d})
      S:store(p:task("dot", function() return (a * b):rowsum(d) end))
    end),
    small = {{e = 13, d = 40, n = 9}},
    usual = {{e = 1 << 20, d = 128, n = 65536}},
    formula = function(t, sizes)
      return {S = function(e) return sum(function(d) return t.A(t.U(e), d) * t.B(t.V(e), d) end, sizes.d) end}
    end,
  },
  {
    name = "gat_aggregate",
    program = mr.program("gat_aggregate", function(p)
      local m, h, j, d = p:axes("m", "h", "j", "d")
      local nodes, nnz, bound = p:axis("nodes", m.size), p:axis("nnz", p.nnz), p:axis("bound", m.size + 1)
      local Row, Col = p:input("Row", {bound}, "i32"), p:input("Col", {nnz}, "i32")
      local L, R, X, Y = p:input("L", {nodes, h}, "f32"), p:input("R", {m, h}, "f32"), p:input("X", {nodes, h, d}), p:output("Y", {m,
        h, d})
      p:batch(m)
      local first, last, r = p:load("load_first", Row, {m}), p:load("load_last", Row, {m + 1}), p:load("load_r", R)
      local mx, l, y = p:carry("mx", {h}, -1e30), p:carry("l", {h}, 0), p:carry("y", {h, d}, 0)
      p:loop(j, {length = last - first}, function()
        local c = p:load("load_col", Col, {first + j})
        local s, x = p:load("load_l", L, {c, h}), p:load("load_x", X, {c, h, d})
        p:task("softmax", function()
          local s = s + r
          s = where(s:gt(0), s, 0.2 * s)
          local new = max(mx, s:rowmax(j))
          local w, alpha = exp(s - new), exp(mx - new)
          l:set(l * alpha + w:rowsum(j))
          y:set(y * alpha + (x * w):rowsum(j))
          mx:set(new)
        end)
      end)
      Y:store(p:task("normalise", function() return y / max(l, 1e-30) end))
    end),
    small = {{m = 6, h = 2, j = 16, d = 32, nnz = 40}},
    usual = {{m = 65536, h = 8, j = 256, d = 16, nnz = 65536 * 16}},
    fill = {
      Row = function(sizes, m) return math.min(sizes.nnz, m * 6 + m % 3) end,
      Col = function(sizes, i) return i * i % sizes.m end,
    },
    formula = function(t, sizes)
      return {
        Y = function(m, h, d)
          local tot, y = 0, 0
          for i = t.Row(m), t.Row(m + 1) - 1 do
            local s = t.L(t.Col(i), h) + t.R(m, h)
            local w = math.exp(s > 0 and s or 0.2 * s)
            tot, y = tot + w, y + w * t.X(t.Col(i), h, d)
          end
          return tot > 0 and y / tot or 0
        end,
      }
    end,
  },
  {
    name = "edge_scatter",
    program = mr.program("edge_scatter", function(p)
      local e, d = p:axes("e", "d")
      local n = p:axis("n", p.n)
      local Src, Dst, W, X, Y = p:input("Src", {e}, "i32"), p:input("Dst", {e}, "i32"), p:input("W", {e}, "f32"), p:input("X", {n,
        d}), p:output("Y", {n, d}, "f32")
      p:phase("zero", function() Y:store(p:carry("zero", {n, d}, 0)) end)
      p:phase("edges", function()
        local s, t, w = p:load(Src), p:load(Dst), p:load(W)
        local x = p:load("load_x", X, {s, d})
        Y:add(p:task("weigh", function() return x * w end), {t, d})
      end)
    end),
    small = {{e = 13, d = 40, n = 9}},
    usual = {{e = 1 << 20, d = 128, n = 65536}},
    formula = function(t, sizes)
      return {
        Y = function(n, d) return sum(function(e) return t.Dst(e) == n and t.W(e) * t.X(t.Src(e), d) or 0 end, sizes.e) end,
      }
    end,
  },
  {
    name = "histogram",
    program = mr.program("histogram", function(p)
      local i, bin = p:axes("i", "bin")
      local X, H = p:input("X", {i}, "f32"), p:output("H", {bin}, "i32")
      p:phase("zero", function() H:store(p:full({bin}, 0, "i32")) end)
      p:phase("count", function()
        local x = p:load(X)
        local at, one = p:task("bin", function()
          return min(max(mr.floor((x + 2) * (bin.size / 4)), 0), bin.size - 1):to "i32", p:full({i}, 1, "i32")
        end)
        H:add(one, {at})
      end)
    end),
    small = {{i = 77, bin = 10}},
    usual = {{i = 1 << 24, bin = 256}},
    tolerance = 0,
    formula = function(t, sizes)
      return {
        H = function(b)
          return sum(function(i)
            local q = math.min(math.max(math.floor((t.X(i) + 2) * (sizes.bin / 4)), 0), sizes.bin - 1)
            return q == b and 1 or 0
          end, sizes.i)
        end,
      }
    end,
  },
}
