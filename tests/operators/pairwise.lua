-- Of rows X[m,:] and Y[n,:]: cdist, their distances D[m,n] = sqrt(sum over k of (X[m,k] - Y[n,k])^2), from products and squares, and
-- cdist_l1, sum over k of |X[m,k] - Y[n,k]|; rbf_gram, K[m,n] = exp(-gamma D^2) of kernel methods; nearest_row, the n of the least
-- distance, for which D is not stored: assignments of k-means and of vector-quantised codes.
local mr = require "millrace"

local function square(t, sizes, i, j)
  local sum = 0
  for k = 0, sizes.k - 1 do sum = sum + (t.X(i, k) - t.Y(j, k)) ^ 2 end
  return sum
end

-- Of a product c and sums of squares: |x|^2 + |y|^2 - 2 x y, by which small distances lose digits.
local function distances(p, X, Y, m, n, k)
  local c, xx, yy = p:carry("c", {m, n}, 0), p:carry("xx", {m}, 0), p:carry("yy", {n}, 0)
  p:loop(k, function()
    local x, y = p:load("load_x", X), p:load("load_y", Y)
    p:task("squares", function()
      xx:add((x * x):rowsum(k))
      yy:add((y * y):rowsum(k))
    end)
    c:add(p:mma("mma", x, y))
  end)
  return function() return mr.max(xx + yy - 2 * c, 0) end
end

return {
  {
    name = "cdist",
    program = mr.program("cdist", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local X, Y, D = p:input("X", {m, k}), p:input("Y", {n, k}), p:output("D", {m, n}, "f32")
      local d = distances(p, X, Y, m, n, k)
      D:store("store_d", p:task("root", function() return mr.sqrt(d()) end))
    end),
    small = {{m = 64, n = 64, k = 64}, {m = 40, n = 72, k = 88}},
    usual = {{m = 8192, n = 8192, k = 128}, {m = 8192, n = 8192, k = 1024}},
    formula = function(t, sizes) return {D = function(i, j) return math.sqrt(square(t, sizes, i, j)) end} end,
  },
  {
    name = "cdist_l1",
    program = mr.program("cdist_l1", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local X, Y, D = p:input("X", {m, k}, "f32"), p:input("Y", {n, k}, "f32"), p:output("D", {m, n}, "f32")
      local d = p:carry("d", {m, n}, 0)
      p:loop(k, function()
        local x, y = p:load("load_x", X), p:load("load_y", Y)
        p:task("add", function() d:add((x - y):abs():rowsum(k)) end)
      end)
      D:store("store_d", d)
    end),
    small = {{m = 64, n = 64, k = 64}, {m = 40, n = 72, k = 88}},
    usual = {{m = 2048, n = 2048, k = 128}},
    formula = function(t, sizes)
      return {D = function(i, j)
        local sum = 0
        for k = 0, sizes.k - 1 do sum = sum + math.abs(t.X(i, k) - t.Y(j, k)) end
        return sum
      end}
    end,
  },
  {
    name = "rbf_gram",
    program = mr.program("rbf_gram", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local gamma = p:option("gamma", "number", 0.02)
      local X, Y, K = p:input("X", {m, k}), p:input("Y", {n, k}), p:output("K", {m, n}, "f32")
      local d = distances(p, X, Y, m, n, k)
      K:store("store_k", p:task("kernel", function() return mr.exp(-gamma * d()) end))
    end),
    small = {{m = 64, n = 64, k = 64}, {m = 40, n = 72, k = 88}},
    usual = {{m = 8192, n = 8192, k = 256}},
    formula = function(t, sizes) return {K = function(i, j) return math.exp(-0.02 * square(t, sizes, i, j)) end} end,
  },
  {
    name = "nearest_row",
    program = mr.program("nearest_row", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local X, Y = p:input("X", {m, k}), p:input("Y", {n, k})
      local I, D = p:output("I", {m}, "i32"), p:output("D", {m}, "f32")
      local best, at, xx = p:carry("best", {m}, 1e30), p:carry("at", {m}, 0), p:carry("xx", {m}, 0)
      p:loop(n, function()
        local c, yy = p:carry("c", {m, n}, 0), p:carry("yy", {n}, 0)
        p:loop(k, function()
          local x, y = p:load("load_x", X), p:load("load_y", Y)
          p:task("squares", function() yy:add((y * y):rowsum(k)) end)
          c:add(p:mma("mma", x, y))
        end)
        p:task("compare", function()
          local d = yy - 2 * c
          local least = d:rowmin(n)
          local first = mr.where(d:eq(least), n:index(), n.size):rowmin(n)
          at:set(mr.where(least:lt(best), first, at))
          best:set(mr.min(least, best))
        end)
      end)
      p:loop(k, function()
        local x = p:load("load_x_again", X)
        p:task("squares_x", function() xx:add((x * x):rowsum(k)) end)
      end)
      local i, d = p:task("result", function() return at:to "i32", best + xx end)
      I:store("store_i", i)
      D:store("store_d", d)
    end),
    small = {{m = 64, n = 128, k = 64}, {m = 40, n = 72, k = 88}},
    usual = {{m = 65536, n = 8192, k = 256}},
    formula = function(t, sizes)
      local function nearest(i)
        local at, least = 0, math.huge
        for j = 0, sizes.n - 1 do
          local d = square(t, sizes, i, j)
          if d < least then at, least = j, d end
        end
        return at, least
      end
      return {I = function(i) return (nearest(i)) end, D = function(i) return select(2, nearest(i)) end}
    end,
  },
}
