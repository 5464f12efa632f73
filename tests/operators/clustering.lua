-- kmeans_step: of each point X[m,:] the nearest centre of Y[n,:], and of each centre the sum and number of its points;
-- cosine_similarity: of all pairs of rows, their norms being computed along with the product.
local mr = require "millrace"
local formulas = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua")
local sum, once = formulas.sum_below, formulas.once
local where = mr.where

return {
  {
    name = "kmeans_step",
    program = mr.program("kmeans_step", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local X, Y, Square = p:input("X", {m, k}), p:input("Y", {n, k}), p:input("Square", {n}, "f32")
      local Of, Sum, Count = p:output("Of", {m}, "i32"), p:output("Sum", {n, k}, "f32"), p:output("Count", {n}, "i32")
      p:phase("zero_sums", function() Sum:store("zero_sum", p:full({n, k}, 0)) end)
      p:phase("zero_counts", function() Count:store("zero_count", p:full({n}, 0, "i32")) end)
      p:phase("assign", function()
        local x = p:load("load_x", X)
        local best, at = p:carry("best", {m}, 1e30), p:carry("at", {m}, 0, "i32")
        p:loop(n, function()
          local c, square = p:mma("mma", x, p:load("load_y", Y)), p:load("load_square", Square)
          p:task("least", function()
            local d = square - 2 * c
            local least = d:rowmin(n)
            local i = where(d:eq(least), n:index(), n.size):rowmin(n)
            at:set(where(least:lt(best), i, at))
            best:set(mr.min(best, least))
          end)
        end)
        Of:store("store_of", at)
        Sum:add("add_sum", p:task("widen", function() return x:to "f32" end), {at, k})
        Count:add("add_count", p:task("ones", function() return m:index() * 0 + 1 end), {at})
      end)
    end),
    small = {{m = 50, n = 19, k = 40}, {m = 1, n = 1, k = 16}},
    usual = {{m = 262144, n = 1024, k = 128}},
    fill = {
      X = function(_, m, k) return ((m * 7 + k * k * 3) % 11 - 5) / 4 end,    -- sums that are exact, so that the nearest is, too
      Y = function(_, n, k) return ((n * 5 + k * n) % 13 - 6) / 4 end,
      Square = function(sizes, n) return sum(function(k) return (((n * 5 + k * n) % 13 - 6) / 4) ^ 2 end, sizes.k) end,
    },
    formula = function(t, sizes)
      local nearest = once(function(m)
        local best, at = math.huge, nil
        for n = 0, sizes.n - 1 do
          local d = t.Square(n) - 2 * sum(function(k) return t.X(m, k) * t.Y(n, k) end, sizes.k)
          if d < best then best, at = d, n end
        end
        return at
      end)
      local function over(n, f) return sum(function(m) return nearest(m) == n and f(m) or 0 end, sizes.m) end
      return {
        Of = nearest,
        Sum = function(n, k) return over(n, function(m) return t.X(m, k) end) end,
        Count = function(n) return over(n, function() return 1 end) end,
      }
    end,
  },
  {
    name = "cosine_similarity",
    program = mr.program("cosine_similarity", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local X, Y, C = p:input("X", {m, k}), p:input("Y", {n, k}), p:output("C", {m, n})
      local c, xx, yy = p:carry("c", {m, n}, 0), p:carry("xx", {m}, 0), p:carry("yy", {n}, 0)
      p:loop(k, function()
        local x, y = p:load("load_x", X), p:load("load_y", Y)
        c:add(p:mma("mma", x, y))
        p:task("squares", function()
          xx:add((x * x):rowsum(k))
          yy:add((y * y):rowsum(k))
        end)
      end)
      C:store("store_c", p:task("scale", function() return c * mr.rsqrt(xx + 1e-12) * mr.rsqrt(yy + 1e-12) end))
    end),
    small = {{m = 50, n = 72, k = 40}, {m = 1, n = 40, k = 17}},
    usual = {{m = 8192, n = 8192, k = 1024}},
    formula = function(t, sizes)
      local function dot(a, b) return sum(function(k) return a(k) * b(k) end, sizes.k) end
      return {C = function(m, n)
        local function x(k) return t.X(m, k) end
        local function y(k) return t.Y(n, k) end
        return dot(x, y) / math.sqrt(dot(x, x) * dot(y, y))
      end}
    end,
  },
}
