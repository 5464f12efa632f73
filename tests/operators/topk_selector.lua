-- At[b,:] = the indices n of the k greatest X[b,n] with First[b] <= n < End[b], in ascending order, then -1 if there are fewer; of equal
-- values the first ones. DeepSeek-V3.2 chooses 2048 keys of a query so.
--
-- A bisection finds the least value that belongs to these: `low` always has k elements or more that are not less. A second phase scans
-- the row again, and counts those that it keeps.
local mr = require "millrace"
local where, rowmax, rowmin, rowsum, cumsum = mr.where, mr.rowmax, mr.rowmin, mr.rowsum, mr.cumsum

return {
  program = mr.program("topk_selector", function(p)
    local b, n = p:axes("b", "n")
    local slot, round = p:axis("slot", p:option("k", "integer", 2048)), p:axis("round", 40)
    local row, slots = p:axis("row", b.size), p:axis("slots", slot.size)
    local key = p:axis("key", n.size)
    local X, First, End = p:input("X", {b, n}, "f32"), p:input("First", {b}, "i32"), p:input("End", {b}, "i32")
    local At = p:output("At", {b, slot}, "i32")
    local Low, Free = p:temp("Low", {b}, "f32"), p:temp("Free", {b}, "i32")
    p:phase("clean", function()
      At:store("store_none", p:task("none", function() return (row:index() + slots:index()) * 0 - 1 end), {row, slots})
    end)
    p:phase("select", function()
      p:batch(b)
      local x, first, last = p:load("load_x", X), p:load("load_first", First), p:load("load_end", End)
      local function inside() return n:index():ge(first) & n:index():lt(last) end
      local low, high = p:carry("low", {}, 0), p:carry("high", {}, 0)
      p:task("range", function()
        low:set(rowmin(where(inside(), x, math.huge), n))
        high:set(rowmax(where(inside(), x, -math.huge), n))
      end)
      p:loop(round, {batch = true}, function()
        p:task("count", function()
          local middle = (low + high) * 0.5
          local enough = rowsum(where(inside() & x:ge(middle), 1, 0), n):ge(slot.size)
          low:set(where(enough, middle, low))
          high:set(where(enough, high, middle))
        end)
      end)
      Low:store("store_low", low)
      Free:store("store_free", p:task("free", function()
        return slot.size - rowsum(where(inside() & x:gt(low), 1, 0), n)
      end))
    end)
    p:phase("list", function()
      p:batch(b)
      local low, free = p:load("load_low", Low), p:load("load_free", Free)
      local first, last = p:load("load_first2", First), p:load("load_end2", End)
      local kept, equal = p:carry("kept", {}, 0), p:carry("equal", {}, 0)     -- in the tiles before
      p:loop(key, function()
        local x = p:load("load_x2", X, {b, key})
        local at = p:task("list", function()
          local inside = key:index():ge(first) & key:index():lt(last)
          local more, same = inside & x:gt(low), inside & x:eq(low)
          local one = where(same, 1, 0)
          local keep = where(more | same & (cumsum(one, key) + equal):le(free), 1, 0)
          local at = where(keep:eq(1), cumsum(keep, key) + (kept - 1), -1)
          kept:add(rowsum(keep, key))
          equal:add(rowsum(one, key))
          return at:to "i32"
        end)
        At:store("store_at", key:index(), {b, at})
      end)
    end)
  end),
  small = {{b = 2, n = 256, k = 32}, {b = 3, n = 100, k = 40}},
  usual = {{b = 64, n = 32768, k = 2048}},
  fill = {
    First = function(sizes, b) return b * 7 % (sizes.n // 2) end,
    End = function(sizes, b) return sizes.n - b * 5 % (sizes.n // 4) end,
  },
  formula = function(T, sizes)
    local known = {}
    local function row(b)
      if not known[b] then
        local order, list = {}, {}
        for n = T.First(b), T.End(b) - 1 do order[#order + 1] = n end
        table.sort(order, function(i, j)
          local x, y = T.X(b, i), T.X(b, j)
          return x > y or x == y and i < j
        end)
        for s = 1, math.min(sizes.k, #order) do list[s] = order[s] end
        table.sort(list)
        known[b] = list
      end
      return known[b]
    end
    return {At = function(b, s) return row(b)[s + 1] or -1 end}
  end,
}
