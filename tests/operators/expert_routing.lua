-- Around the products of a mixture of experts:
--   grouped_topk: DeepSeek-V3's choice, the k experts with the greatest biased sigmoid in the groups whose two best are the greatest;
--   moe_align_block_size: pairs of tokens and experts sorted by expert, each expert's filled up to blocks;
--   moe_permute: rows copied to where their experts have them, and added up again with weights.
local mr = require "millrace"
local where = mr.where
local sum = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua").sum_below

return {
  {
    name = "grouped_topk",
    program = mr.program("grouped_topk", function(p)
      local t, g, i = p:axes("t", "g", "i")
      local groups, k = p:option("groups", "integer", 4), p:option("k", "integer", 8)
      local e, s = p:axis("e", g.size * i.size), p:axis("s", k)
      local X, Bias = p:input("X", {t, e}, "f32"), p:input("Bias", {e}, "f32")
      local At, W = p:output("At", {t, s}, "i32"), p:output("W", {t, s}, "f32")
      local x, b = p:load(X, {t, g * i.size + i}), p:load(Bias, {g * i.size + i})
      local at, w = p:task("choose", function()
        local score = x:sigmoid()
        local biased = score + b
        local first = biased:rowmax(i)
        local position = where(biased:eq(first), i:index(), i.size):rowmin(i)
        local second = where(i:index():eq(position), -1e30, biased):rowmax(i)
        local merit = first + second
        local keep = g:index():lt(0)
        for _ = 1, groups do
          local best = where(keep, -1e30, merit):rowmax(g)
          local at = where(where(keep, -1e30, merit):eq(best), g:index(), g.size):rowmin(g)
          keep = keep | g:index():eq(at)
        end
        local left = where(keep, biased, -1e30)
        local number = g:index() * i.size + i:index()
        local at, w = s:index() * 0, (s:index() * 0):to "f32"
        local total = nil
        for r = 0, k - 1 do
          local best = left:rowmax(i):rowmax(g)
          local where_ = where(left:eq(best), number, e.size):rowmin(i):rowmin(g)
          local v = where(number:eq(where_), score, 0):rowsum(i):rowsum(g)
          at = where(s:index():eq(r), where_, at)
          w = where(s:index():eq(r), v, w)
          left = where(number:eq(where_), -1e30, left)
          total = total and total + v or v
        end
        return at, w / total * 2.5
      end)
      At:store(at)
      W:store(w)
    end),
    small = {{t = 5, g = 8, i = 8, k = 4, groups = 3}},
    usual = {{t = 8192, g = 8, i = 32}},
    formula = function(t, sizes)
      local function all(r)
        local E = sizes.g * sizes.i
        local function sc(e) return 1 / (1 + math.exp(-t.X(r, e))) end
        local merit = {}
        for g = 0, sizes.g - 1 do
          local l = {}
          for i = 0, sizes.i - 1 do l[#l + 1] = sc(g * sizes.i + i) + t.Bias(g * sizes.i + i) end
          table.sort(l, function(a, b) return a > b end)
          merit[#merit + 1] = {g, l[1] + l[2]}
        end
        table.sort(merit, function(a, b) return a[2] > b[2] end)
        local list = {}
        for q = 1, sizes.groups or 4 do
          for i = 0, sizes.i - 1 do
            local e = merit[q][1] * sizes.i + i
            list[#list + 1] = {e, sc(e) + t.Bias(e), sc(e)}
          end
        end
        table.sort(list, function(a, b) return a[2] > b[2] end)
        return list
      end
      return {
        At = function(r, s) return all(r)[s + 1][1] end,
        W = function(r, s)
          local l, tot = all(r), 0
          for q = 1, sizes.k or 8 do tot = tot + l[q][3] end
          return l[s + 1][3] / tot * 2.5
        end,
      }
    end,
  },
  {
    name = "moe_align_block_size",
    program = mr.program("moe_align_block_size", function(p)
      local i, e = p:axes("i", "e")                -- pairs, experts
      local size = p:option("size", "integer", 16)
      local rows = p:axis("rows", (i.size + e.size * (size - 1) + size - 1) // size * size)
      local blocks = p:axis("blocks", rows.size // size)
      local Expert = p:input("Expert", {i}, "i32")
      local Sorted, Of, Total = p:output("Sorted", {rows}, "i32"), p:output("Of", {blocks}, "i32"), p:output("Total", {}, "i32")
      local First = p:temp("First", {e}, "i32")
      p:phase("count", function()
        local c = p:carry("c", {e}, 0)
        p:loop(i, function()
          local x = p:load("load_e", Expert)
          p:task("count", function() c:add(where(x:eq(e:index()), 1, 0):rowsum(i)) end)
        end)
        local first, total = p:task("pad", function()
          local full = (c:to "i32" + size - 1) // size * size
          return full:cumsum(e) - full, full:rowsum(e)
        end)
        First:store("store_first", first)
        Total:store("store_total", total)
      end)
      p:phase("fill", function()
        Sorted:store("fill", p:task("none", function() return rows:index() * 0 + i.size end))
      end)
      p:phase("experts", function()
        local first = p:load("load_first", First)
        Of:store("store_of", p:task("find", function()
          return where(first:le(blocks:index() * size), 1, 0):rowsum(e) - 1
        end))
      end)
      p:phase("sort", function()
        local run = p:carry("run", {e}, 0)
        local first = p:load("load_first2", First)
        p:loop(i, function()
          local x = p:load("load_e2", Expert)
          local at = p:task("rank", function()
            local mine = where(x:eq(e:index()), 1, 0)
            local at = where(mine:eq(1), first + run:to "i32" + mine:cumsum(i) - 1, 0):rowsum(e)
            run:add(mine:rowsum(i))
            return at
          end)
          Sorted:store("store_id", i:index(), {at})
        end)
      end)
    end),
    small = {{i = 37, e = 4, size = 8}},
    usual = {{i = 8192, e = 256, size = 64}},
    tolerance = 0,
    fill = {Expert = function(sizes, i) return (i * i + 3) % sizes.e end},
    formula = function(t, sizes)
      local size = sizes.size or 16
      local sorted, of, rows = {}, {}, 0
      for e = 0, sizes.e - 1 do
        local first = rows
        for i = 0, sizes.i - 1 do
          if t.Expert(i) == e then
            sorted[rows] = i
            rows = rows + 1
          end
        end
        rows = (rows + size - 1) // size * size
        for r = first // size, rows // size - 1 do of[r] = e end
      end
      return {
        Sorted = function(r) return sorted[r] or sizes.i end,
        Of = function(b) return of[b] end,
        Total = function() return rows end,
      }
    end,
  },
  {
    name = "moe_permute",
    program = mr.program("moe_permute", function(p)
      local t, k, d = p:axes("t", "k", "d")
      local rows = p:axis("rows", t.size * k.size)
      local X, To, W = p:input("X", {t, d}), p:input("To", {t, k}, "i32"), p:input("W", {t, k}, "f32")
      local P, Y = p:temp("P", {rows, d}), p:output("Y", {t, d})
      p:phase("permute", function()
        local to, x = p:load("load_to", To), p:load("load_x", X)
        local xs = p:task("copies", function() return (x + 0 * to):to "bf16" end)
        P:store("store_p", xs, {to, d})
      end)
      p:phase("unpermute", function()
        local to, w = p:load("load_to2", To), p:load("load_w", W)
        local x = p:load("load_p", P, {to, d})
        Y:store("store_y", p:task("sum", function() return (x * w):rowsum(k) end))
      end)
    end),
    small = {{t = 7, k = 2, d = 64}},
    usual = {{t = 8192, k = 8, d = 7168}},
    fill = {
      To = function(sizes, t, k)
        local n = sizes.t * sizes.k
        return (t * sizes.k + k) * 5 % n % n
      end,
    },
    formula = function(t, sizes) return {Y = function(i, d) return t.X(i, d) * sum(function(k) return t.W(i, k) end, sizes.k) end} end,
  },
}
