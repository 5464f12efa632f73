-- Scans and choices along the rows of X[m,n]: Y[m,n] = sum (cumsum) or product (cumprod) over j <= n of X[m,j]; the reverse and the
-- exclusive sum; the first position of the greatest or least element (argmax, argmin), as in greedy decoding; the k greatest
-- values (topk), descending, as for sampling.
local mr = require "millrace"

local function along(name, program, usual, formula, small)
  return {name = name, program = mr.program(name, program), small = small or {{m = 64, n = 128}, {m = 37, n = 200}}, usual = usual,
    formula = formula, fill = name == "cumprod" and {X = function(_, i, j) return 1 + (i * 31 + j * 17) % 23 / 230 - 0.045 end} or nil}
end

-- The extreme of a row and where it is first, in a loop over tiles.
local function position(name, extreme, init, better)
  return along(name, function(p)
    local m, n = p:axes("m", "n")
    local X, I = p:input("X", {m, n}), p:output("I", {m}, "i32")
    local best, at = p:carry("best", {m}, init), p:carry("at", {m}, 0)
    p:loop(n, function()
      local x = p:load("load_x", X):to "f32"
      p:task("compare", function()
        local here = extreme(x, n)
        local first = mr.rowmin(mr.where(x:eq(here), n:index(), n.size), n)
        local found = better(here, best)
        at:set(mr.where(found, first, at))
        best:set(mr.where(found, here, best))
      end)
    end)
    I:store(at:to "i32")
  end, {{m = 4096, n = 128256}, {m = 256, n = 32768}}, function(t, sizes)
    return {I = function(i)
      local at = 0
      for j = 1, sizes.n - 1 do
        local x, y = t.X(i, j), t.X(i, at)
        if name == "argmax" and x > y or name == "argmin" and x < y then at = j end
      end
      return at
    end}
  end)
end

return {
  along("cumsum", function(p)
    local m, n = p:axes("m", "n")
    local X, Y = p:input("X", {m, n}, "f32"), p:output("Y", {m, n}, "f32")
    local before = p:carry("before", {m}, 0)
    p:loop(n, function()
      local x = p:load("load_x", X)
      Y:store(p:task("sum", function()
        local y = x:cumsum(n) + before
        before:add(x:rowsum(n))
        return y
      end))
    end)
  end, {{m = 32768, n = 32768}, {m = 128, n = 4000}}, function(t)
    return {Y = function(i, j)
      local sum = 0
      for l = 0, j do sum = sum + t.X(i, l) end
      return sum
    end}
  end),
  along("cumsum_reverse", function(p)                          -- of all that is left of the row, with the element
    local m, n = p:axes("m", "n")
    local X, Y = p:input("X", {m, n}, "f32"), p:output("Y", {m, n}, "f32")
    local x = p:load("load_x", X)
    Y:store(p:task("sum", function() return x:rowsum(n) - x:cumsum(n) + x end))
  end, {{m = 8192, n = 4096}}, function(t, sizes)
    return {Y = function(i, j)
      local sum = 0
      for l = j, sizes.n - 1 do sum = sum + t.X(i, l) end
      return sum
    end}
  end),
  along("cumprod", function(p)                                 -- by products of neighbours at distances 1, 2, 4, ... of a row
    local m, n = p:axes("m", "n")
    local X, Y = p:input("X", {m, n}, "f32"), p:output("Y", {m, n}, "f32")
    local x = p:load("load_x", X)
    Y:store(p:task("product", function()
      local y, d = x, 1
      while d < n.size do
        y = y * mr.where(n:index():ge(d), y:at(n, n - d), 1)
        d = d * 2
      end
      return y
    end))
  end, {{m = 32768, n = 4096}}, function(t)
    return {Y = function(i, j)
      local product = 1
      for l = 0, j do product = product * t.X(i, l) end
      return product
    end}
  end),
  position("argmax", mr.rowmax, -math.huge, function(a, b) return a:gt(b) end),
  position("argmin", mr.rowmin, math.huge, function(a, b) return a:lt(b) end),
  along("topk_values", function(p)
    local m, n = p:axes("m", "n")
    local k = p:axis("k", p.k or 8)
    local X, Y = p:input("X", {m, n}, "f32"), p:output("Y", {m, k}, "f32")
    local x = p:load("load_x", X)
    Y:store(p:task("choose", function()
      local left, y = x, 0
      for s = 0, k.size - 1 do
        local most = left:rowmax(n)
        local first = mr.where(left:eq(most), n:index(), n.size):rowmin(n)
        left = mr.where(n:index():eq(first), -math.huge, left)
        y = mr.where(k:index():eq(s), most, y)
      end
      return y
    end))
  end, {{m = 8192, n = 256, k = 8}, {m = 256, n = 32768, k = 8}}, function(t, sizes)
    return {Y = function(i, k)
      local row = {}
      for j = 0, sizes.n - 1 do row[j + 1] = t.X(i, j) end
      table.sort(row, function(a, b) return a > b end)
      return row[k + 1]
    end}
  end, {{m = 64, n = 64, k = 4}, {m = 21, n = 100, k = 3}}),
}
