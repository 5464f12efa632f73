-- Steps of optimisers: muon_step, a polynomial of X X^T times X (Newton and Schulz); adafactor, second moments by rows and columns;
-- clip_by_norm, gradients divided by their norm.
local mr = require "millrace"
local min = mr.min
local sum = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua").sum_below

return {
  {
    name = "muon_step",
    program = mr.program("muon_step", function(p)
      local m, n = p:axes("m", "n")
      local k, j = p:axis("k", m.size), p:axis("j", m.size)
      local X, A, B, Y = p:input("X", {m, n}), p:temp("A", {m, k}), p:temp("B", {m, k}), p:output("Y", {m, n})
      p:phase("gram", function()
        local c = p:carry("c", {m, k}, 0)
        p:loop(n, function() c:add(p:mma("mma_a", p:load("load_x", X), p:load("load_xt", X, {k, n}))) end)
        A:store("store_a", c)
      end)
      p:phase("poly", function()
        local c = p:carry("c2", {m, k}, 0)
        p:loop(j, function() c:add(p:mma("mma_b", p:load("load_a", A, {m, j}), p:load("load_at", A, {j, k}))) end)
        local a = p:load("load_a_tile", A)
        B:store("store_b", p:task("poly", function() return -4.775 * a + 2.0315 * c end))
      end)
      p:phase("apply", function()
        local c = p:carry("c3", {m, n}, 0)
        p:loop(k, function() c:add(p:mma("mma_x", p:load("load_b", B), p:load("load_xk", X, {k, n}))) end)
        local x = p:load("load_x_tile", X)
        Y:store("store_y", p:task("sum", function() return 3.4445 * x + c end))
      end)
    end),
    small = {{m = 40, n = 72}},
    usual = {{m = 4096, n = 4096}, {m = 2048, n = 8192}},
    tolerance = 0.03,
    fill = {X = function(sizes, i, j) return math.sin(i * 3 + j * 7) / math.sqrt(sizes.m * sizes.n) * 3 end},
    formula = function(t, sizes)
      local A = {}
      for i = 0, sizes.m - 1 do
        A[i] = {}
        for k = 0, sizes.m - 1 do A[i][k] = sum(function(q) return t.X(i, q) * t.X(k, q) end, sizes.n) end
      end
      return {
        Y = function(i, q)
          return 3.4445 * t.X(i, q) + sum(function(k)
            return (-4.775 * A[i][k] + 2.0315 * sum(function(l) return A[i][l] * A[l][k] end, sizes.m)) * t.X(k, q)
          end, sizes.m)
        end,
      }
    end,
  },
  {
    name = "adafactor",
    program = mr.program("adafactor", function(p)
      local m, n = p:axes("m", "n")
      local W, G, R0, C0 = p:input("W", {m, n}, "f32"), p:input("G", {m, n}), p:input("R0", {m}, "f32"), p:input("C0", {n}, "f32")
      local R, R1, C1, C, Sum, NW = p:output("R", {m}, "f32"), p:temp("R1", {m}, "f32"), p:temp("C1", {n}, "f32"), p:output("C",
        {n}, "f32"), p:temp("Sum", {}, "f32"), p:output("NW", {m, n}, "f32")
      local T = p:temp("T", {n}, "f32")
      p:phase("zero", function() T:store("store_zero", p:carry("zero", {n}, 0)) end)
      p:phase("zero_sum", function() Sum:store("store_zero_sum", p:carry("zero_sum", {}, 0)) end)
      p:phase("rows", function()
        local g, r0 = p:load("load_g", G), p:load("load_r0", R0)
        local r, s = p:task("means", function()
          local r = 0.9 * r0 + 0.1 * (g * g + 1e-30):rowsum(n) / n.size
          return r, r:rowsum(m)
        end)
        R:store("store_r", r)
        R1:store("store_r1", r)
        Sum:add("add_sum", s)
      end)
      p:phase("column_sums", function()
        local g = p:load("load_gc", G)
        T:add("add_c", p:task("squares", function() return (g * g + 1e-30):rowsum(m) end))
      end)
      p:phase("columns", function()
        local t, c0 = p:load("load_t", T), p:load("load_c0", C0)
        local c = p:task("column", function() return 0.9 * c0 + 0.1 * t / m.size end)
        C:store("store_c", c)
        C1:store("store_c1", c)
      end)
      p:phase("update", function()
        local w, g, r, c, s = p:load("load_w", W), p:load("load_g2", G), p:load("load_r", R1), p:load("load_c", C1),
          p:load("load_sum", Sum)
        NW:store("store_w", p:task("update", function() return w - 0.01 * g * mr.rsqrt(r * c / (s / m.size)) end))
      end)
    end),
    small = {{m = 9, n = 50}},
    usual = {{m = 8192, n = 4096}},
    fill = {R0 = function(sizes, i) return 1 + i / sizes.m end, C0 = function(sizes, i) return 1 + i / sizes.n end},
    formula = function(t, sizes)
      local function R(i) return 0.9 * t.R0(i) + 0.1 * sum(function(j) return t.G(i, j) ^ 2 end, sizes.n) / sizes.n end
      local function C(j) return 0.9 * t.C0(j) + 0.1 * sum(function(i) return t.G(i, j) ^ 2 end, sizes.m) / sizes.m end
      return {
        R = R,
        C = C,
        NW = function(i, j) return t.W(i, j) - 0.01 * t.G(i, j) / math.sqrt(R(i) * C(j) / (sum(R, sizes.m) / sizes.m)) end,
      }
    end,
  },
  {
    name = "clip_by_norm",
    program = mr.program("clip_by_norm", function(p)
      local t, i = p:axes("t", "i")
      local G, Y, Norm = p:input("G", {t, i}), p:output("Y", {t, i}), p:output("Norm", {}, "f32")
      local S, N = p:temp("S", {}, "f32"), p:temp("N", {}, "f32")
      p:phase("zero", function() S:store("store_zero", p:carry("zero", {}, 0)) end)
      p:phase("norm", function()
        local g = p:load("load_g", G)
        S:add("add_s", p:task("squares", function() return (g * g):rowsum(i):rowsum(t) end))
      end)
      p:phase("root", function()
        local s = p:load("load_s", S)
        local n = p:task("root", function() return s:sqrt() end)
        Norm:store("store_norm", n)
        N:store("store_n", n)
      end)
      p:phase("scale", function()
        local g, n = p:load("load_g2", G), p:load("load_norm", N)
        Y:store("store_y", p:task("scale", function() return g * min(1, 1.5 / (n + 1e-6)) end))
      end)
    end),
    small = {{t = 3, i = 50}},
    usual = {{t = 8, i = 1 << 22}},
    formula = function(t, sizes)
      local function n()
        return math.sqrt(sum(function(a) return sum(function(b) return t.G(a, b) ^ 2 end, sizes.i) end, sizes.t))
      end
      return {Norm = n, Y = function(a, b) return t.G(a, b) * math.min(1, 1.5 / (n() + 1e-6)) end}
    end,
  },
}
