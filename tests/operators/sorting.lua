-- Rows sorted by networks of exchanges, which v:at(n, n ~ bit) is: bitonic_sort, of numbers with their positions; sparsemax, the
-- projection of a row to the simplex. rank_sort compares each with all, and stores it where it belongs. segmented_scan: sums that begin
-- again where F is set, by doubling steps.
local mr = require "millrace"
local max, min, where = mr.max, mr.min, mr.where

return {
  {
    name = "bitonic_sort",
    program = mr.program("bitonic_sort", function(p)
      local m, n = p:axes("m", "n")
      local X, Y, At = p:input("X", {m, n}, "f32"), p:output("Y", {m, n}, "f32"), p:output("At", {m, n}, "i32")
      local x = p:load(X)
      local y, at = p:task("sort", function()
        local v, a, i = x, n:index() + m:index() * 0, n:index()
        local k = 2
        while k <= n.size do
          local j = k // 2
          while j >= 1 do
            local o, oa = v:at(n, n ~ j), a:at(n, n ~ j)
            local low = ((i & j):eq(0)):eq((i & k):eq(0))      -- this one takes the less
            local less = v:lt(o) | (v:eq(o) & a:lt(oa))
            local keep = low:eq(less)
            v, a = where(keep, v, o), where(keep, a, oa)
            j = j // 2
          end
          k = k * 2
        end
        return v, a
      end)
      Y:store(y)
      At:store(at)
    end),
    small = {{m = 6, n = 64}, {m = 3, n = 32}},
    usual = {{m = 8192, n = 512}},
    tolerance = 0,
    formula = function(t, sizes)
      local function sorted(i)
        local l = {}
        for j = 0, sizes.n - 1 do l[#l + 1] = {t.X(i, j), j} end
        table.sort(l, function(a, b) return a[1] < b[1] or (a[1] == b[1] and a[2] < b[2]) end)
        return l
      end
      return {Y = function(i, j) return sorted(i)[j + 1][1] end, At = function(i, j) return sorted(i)[j + 1][2] end}
    end,
  },
  {
    name = "sparsemax",
    program = mr.program("sparsemax", function(p)
      local m, n = p:axes("m", "n")
      local X, Y = p:input("X", {m, n}, "f32"), p:output("Y", {m, n}, "f32")
      local x = p:load(X)
      Y:store(p:task("sparsemax", function()
        local v, i = x, n:index()
        local k = 2
        while k <= n.size do
          local j = k // 2
          while j >= 1 do
            local o = v:at(n, n ~ j)
            local up = ((i & j):eq(0)):eq((i & k):eq(0))      -- descending overall
            v = where(up, max(v, o), min(v, o))
            j = j // 2
          end
          k = k * 2
        end
        local c = v:cumsum(n)
        local inside = (1 + (i + 1) * v):gt(c)
        local count = where(inside, 1, 0):rowsum(n)
        local total = where(inside, v, 0):rowsum(n)
        local tau = (total - 1) / count
        return max(x - tau, 0)
      end))
    end),
    small = {{m = 8, n = 64}},
    usual = {{m = 8192, n = 256}},
    formula = function(t, sizes)
      return {
        Y = function(i, j)
          local v = {}
          for k = 0, sizes.n - 1 do v[#v + 1] = t.X(i, k) end
          table.sort(v, function(a, b) return a > b end)
          local s, tau = 0, 0
          for k = 1, sizes.n do
            s = s + v[k]
            if 1 + k * v[k] > s then tau = (s - 1) / k end
          end
          return math.max(t.X(i, j) - tau, 0)
        end,
      }
    end,
  },
  {
    name = "rank_sort",
    program = mr.program("rank_sort", function(p)
      local m, n = p:axes("m", "n")
      local other = p:axis("other", n.size)
      local X, Y = p:input("X", {m, n}, "f32"), p:output("Y", {m, n}, "f32")
      p:batch(m)
      local x = p:load("load_x", X)
      local rank = p:carry("rank", {n}, 0)
      p:loop(other, function()
        local o = p:load("load_other", X, {m, other})
        p:task("compare", function()
          rank:add(where(o:lt(x) | (o:eq(x) & other:index():lt(n:index())), 1, 0):rowsum(other))
        end)
      end)
      Y:store(x, {m, p:task("cast", function() return rank:to "i32" end)})
    end),
    small = {{m = 2, n = 50}},
    usual = {{m = 1024, n = 2048}},
    tolerance = 0,
    formula = function(t, sizes)
      return {
        Y = function(i, j)
          local l = {}
          for k = 0, sizes.n - 1 do l[#l + 1] = t.X(i, k) end
          table.sort(l)
          return l[j + 1]
        end,
      }
    end,
  },
  {
    name = "segmented_scan",
    program = mr.program("segmented_scan", function(p)
      local m, n = p:axes("m", "n")
      local X, F, Y = p:input("X", {m, n}, "f32"), p:input("F", {m, n}, "bool"), p:output("Y", {m, n}, "f32")
      local x, f = p:load(X), p:load(F)
      Y:store(p:task("scan", function()
        -- the sum up to here less the sum before the last flag: the last flag's index by cummax, its sum by doubling steps
        local v, stop, d = x, f, 1
        while d < n.size do
          local pv, ps = v:at(n, n - d), where(stop, 1, 0):at(n, n - d)
          local outside = n:index():lt(d)
          v = where(stop, v, v + pv)
          stop = stop | ps:ne(0) | outside
          d = d * 2
        end
        return v
      end))
    end),
    small = {{m = 3, n = 37}},
    usual = {{m = 8192, n = 1024}},
    tolerance = 1e-4,
    fill = {F = function(sizes, m, n) return (n * n + m) % 7 == 0 end},
    formula = function(t, sizes)
      return {
        Y = function(m, n)
          local s = 0
          for k = 0, n do
            if (k * k + m) % 7 == 0 then s = 0 end
            s = s + t.X(m, k)
          end
          return s
        end,
      }
    end,
  },
}
