-- DeepSeek-V3.2's indexer in training: of the scores S[i,n] = scale sum over h of W[i,h] max(Q[i,h,:] . K[Begin[i] + n,:], 0) of the keys
-- n <= i - Begin[i] of a packed sequence, the k greatest, as Keys[i,:] in ascending order, -1 if there are fewer, and their
-- softmax as P[i,:], 0 behind these.
--
-- The first phase scores the keys up to the query's own; the second finds the least score that belongs to the greatest k by a bisection.
local mr = require "millrace"
local max, exp, where = mr.max, mr.exp, mr.where
local rowmax, rowmin, rowsum, cumsum = mr.rowmax, mr.rowmin, mr.rowsum, mr.cumsum

local function begin(sizes, i) return i < sizes.i // 2 and 0 or sizes.i // 2 end

return {
  program = mr.program("indexer_topk", function(p)
    local i, h, n, d = p:axes("i", "h", "n", "d")             -- n: keys of a sequence at most
    local slot, round = p:axis("slot", p:option("k", "integer", 64)), p:axis("round", 32)
    local scale = 1 / math.sqrt(d.size)
    local Q, K, W = p:input("Q", {i, h, d}), p:input("K", {p:axis("rows", i.size), d}), p:input("W", {i, h})
    local Begin = p:input("Begin", {i}, "i32")
    local Keys, P = p:output("Keys", {i, slot}, "i32"), p:output("P", {i, slot}, "f32")
    local S = p:temp("S", {i, n}, "f32")
    local query, slots, key = p:axis("query", i.size), p:axis("slots", slot.size), p:axis("key", n.size)

    p:phase("scores", function()
      p:batch(i)
      local q, w, begin = p:load("load_q", Q), p:load("load_w", W), p:load("load_begin", Begin)
      p:loop(n, {length = i:index() + 1 - begin}, function()
        local s = p:mma("mma", p:load("load_k", K, {begin + n, d}), q)
        S:store("store_s", p:task("score", function() return (max(s, 0) * w):rowsum(h) * scale end))
      end)
    end)
    p:phase("none", function()
      local none, zero = p:task("none", function()
        local none = (query:index() + slots:index()) * 0 - 1
        return none, (none + 1):to "f32"
      end)
      Keys:store("store_none", none, {query, slots})
      P:store("store_zero", zero, {query, slots})
    end)
    p:phase("select", function()
      p:batch(query)
      local s, begin = p:load("load_s", S, {query, key}), p:load("load_begin2", Begin, {query})
      local inside = function() return key:index():le(query:index() - begin) end
      local low, high = p:carry("low", {}, 0), p:carry("high", {}, 0)
      p:task("range", function()
        low:set(rowmin(where(inside(), s, math.huge), key))
        high:set(rowmax(where(inside(), s, -math.huge), key))
      end)
      p:loop(round, {batch = true}, function()
        p:task("count", function()
          local middle = (low + high) * 0.5
          local enough = rowsum(where(inside() & s:ge(middle), 1, 0), key):ge(slot.size)
          low:set(where(enough, middle, low))
          high:set(where(enough, high, middle))
        end)
      end)
      local at, share = p:task("list", function()
        local more, same = inside() & s:gt(low), inside() & s:eq(low)
        local free = slot.size - rowsum(where(more, 1, 0), key)
        local keep = more | same & cumsum(where(same, 1, 0), key):le(free)
        local e = where(keep, exp(s - rowmax(where(inside(), s, -math.huge), key)), 0)
        return where(keep, cumsum(where(keep, 1, 0), key) - 1, -1), e / rowsum(e, key)
      end)
      Keys:store("store_keys", key:index(), {query, at})
      P:store("store_p", share, {query, at})
    end)
  end),
  small = {{i = 32, h = 16, n = 16, d = 64, k = 4}, {i = 22, h = 8, n = 11, d = 32, k = 6}},
  usual = {{i = 2048, h = 64, n = 2048, d = 128, k = 64}, {i = 4096, h = 64, n = 4096, d = 128, k = 1024}},
  fill = {Begin = begin},
  formula = function(T, sizes)
    local known = {}
    local function row(i)
      if known[i] then return known[i] end
      local order, score, sum = {}, {}, 0
      for n = 0, i - T.Begin(i) do
        order[n + 1], score[n] = n, 0
        for h = 0, sizes.h - 1 do
          local s = 0
          for d = 0, sizes.d - 1 do s = s + T.Q(i, h, d) * T.K(T.Begin(i) + n, d) end
          score[n] = score[n] + T.W(i, h) * math.max(s, 0) / math.sqrt(sizes.d)
        end
      end
      table.sort(order, function(a, b) return score[a] > score[b] or score[a] == score[b] and a < b end)
      local list = {}
      for s = 1, math.min(sizes.k, #order) do
        list[s] = order[s]
        sum = sum + math.exp(score[order[s]])
      end
      table.sort(list)
      known[i] = {list = list, share = function(n) return math.exp(score[n]) / sum end}
      return known[i]
    end
    return {
      Keys = function(i, s) return row(i).list[s + 1] or -1 end,
      P = function(i, s)
        local n = row(i).list[s + 1]
        return n and row(i).share(n) or 0
      end,
    }
  end,
}
