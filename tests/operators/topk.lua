-- Y[i,s] = the s-th greatest of X[i,:] and At[i,s] its index, the least one of those that have this value: experts of a token, before the
-- softmax of their logits. `k` rounds each find the greatest that is left.
local mr = require "millrace"
local where, rowmax, rowmin = mr.where, mr.rowmax, mr.rowmin

return {
  program = mr.program("topk", function(p)
    local i, n = p:axes("i", "n")
    local slot = p:axis("slot", p:option("k", "integer", 6))
    local X = p:input("X", {i, n}, "f32")
    local Y, At = p:output("Y", {i, slot}, "f32"), p:output("At", {i, slot}, "i32")
    local x = p:load("load_x", X)
    local found = table.pack(p:task("select", function()
      local left, all = x, {}
      for s = 1, slot.size do
        local value = rowmax(left, n)
        local at = rowmin(where(left:eq(value), n:index(), n.size), n)
        left = where(n:index():eq(at), -math.huge, left)
        all[2 * s - 1], all[2 * s] = value, at
      end
      return table.unpack(all)
    end))
    for s = 1, slot.size do
      Y:store("store_value" .. s, found[2 * s - 1], {i, s - 1})
      At:store("store_at" .. s, found[2 * s], {i, s - 1})
    end
  end),
  small = {{i = 64, n = 128, k = 3}, {i = 37, n = 60, k = 4}},
  usual = {{i = 320, n = 128, k = 6}, {i = 16384, n = 256, k = 8}},
  formula = function(T, sizes)
    local known = {}
    local function row(i)
      if not known[i] then
        local order = {}
        for n = 0, sizes.n - 1 do order[n + 1] = n end
        table.sort(order, function(a, b)
          local x, y = T.X(i, a), T.X(i, b)
          return x > y or x == y and a < b
        end)
        known[i] = order
      end
      return known[i]
    end
    return {
      Y = function(i, s) return T.X(i, row(i)[s + 1]) end,
      At = function(i, s) return row(i)[s + 1] end,
    }
  end,
}
