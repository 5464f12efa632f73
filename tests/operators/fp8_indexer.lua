-- The indexer of DeepSeek-V3.2, which chooses the keys that a query attends to: a score of each key for each query,
--
--   S[i,n] = Scale[n] sum over h of W[i,h] max(Q[i,h,:] . K[n,:], 0), or -inf outside of First[i] <= n < End[i],
--
-- of queries and keys in fp8 (Scale is that of a key; those of queries are in W). HISA scores the means of blocks of keys so.
--
-- fp8_indexer_by_batch: the form without bounds, with a batch.
local mr = require "millrace"
local max = mr.max

local function score(T, i, n, sizes, Q, K)
  local sum = 0
  for h = 0, sizes.h - 1 do
    local s = 0
    for d = 0, sizes.d - 1 do s = s + Q(h, d) * K(d) end
    sum = sum + T.W(i, h) * math.max(s, 0)
  end
  return sum * T.Scale(n)
end

-- Sequences of a quarter of the queries each, packed, of which a query sees its own up to itself.
local function first(sizes, i)
  local length = math.max(1, sizes.i // 4)
  return i // length * length * sizes.n // sizes.i
end

return {
  {
    name = "fp8_indexer",
    program = mr.program("fp8_indexer", function(p)
      local i, h, n, d = p:axes("i", "h", "n", "d")
      local Q, K = p:input("Q", {i, h, d}, "e4m3"), p:input("K", {n, d}, "e4m3")
      local Scale, W = p:input("Scale", {n}, "f32"), p:input("W", {i, h}, "f32")
      local First, End = p:input("First", {i}, "i32"), p:input("End", {i}, "i32")
      local S = p:output("S", {i, n}, "f32")
      local row, key = p:axis("row", i.size), p:axis("key", n.size)     -- i and n, in other tiles
      p:phase("clean", function()
        S:store("store_none", p:task("none", function() return (row:index() + key:index()):to "f32" * 0 - math.huge end), {row, key})
      end)
      p:phase("scores", function()
        p:batch(i)
        local q, w, from = p:load("load_q", Q), p:load("load_w", W), p:load("load_first", First)
        p:loop(n, {length = p:load("load_end", End) - from, typical = n.size // 8}, function()
          local s = p:mma("mma", p:load("load_k", K, {from + n, d}), q)
          local scale = p:load("load_scale", Scale, {from + n})
          S:store("store_s", p:task("score", function() return (max(s, 0) * w):rowsum(h) * scale end), {i, from + n})
        end)
      end)
    end),
    small = {{i = 16, h = 8, n = 128, d = 64}, {i = 5, h = 16, n = 72, d = 32}},
    usual = {{i = 4096, h = 32, n = 8192, d = 64}, {i = 4096, h = 64, n = 8192, d = 128}, {i = 32768, h = 64, n = 256, d = 128}},
    fill = {First = first, End = function(sizes, i) return math.max(first(sizes, i), (i + 1) * sizes.n // sizes.i) end},
    formula = function(T, sizes)
      return {S = function(i, n)
        if n < T.First(i) or n >= T.End(i) then return -math.huge end
        return score(T, i, n, sizes, function(h, d) return T.Q(i, h, d) end, function(d) return T.K(n, d) end)
      end}
    end,
  },
  {
    name = "fp8_indexer_by_batch",
    program = mr.program("fp8_indexer_by_batch", function(p)
      local b, i, h, n, d = p:axes("b", "i", "h", "n", "d")
      local Q, K = p:input("Q", {b, i, h, d}, "e4m3"), p:input("K", {b, n, d}, "e4m3")
      local Scale, W = p:input("Scale", {b, n}, "f32"), p:input("W", {b, i, h}, "f32")
      local S = p:output("S", {b, i, n}, "f32")
      p:batch(b, i)
      local s = p:mma("mma", p:load("load_k", K), p:load("load_q", Q))
      local scale, w = p:load("load_scale", Scale), p:load("load_w", W)
      S:store("store_s", p:task("score", function() return (max(s, 0) * w):rowsum(h) * scale end))
    end),
    small = {{b = 2, i = 3, h = 16, n = 72, d = 32}},
    usual = {{b = 1, i = 4096, h = 64, n = 8192, d = 128}, {b = 128, i = 1, h = 64, n = 32768, d = 128}},
    formula = function(T, sizes)
      return {S = function(b, i, n)
        local at = {W = function(_, h) return T.W(b, i, h) end, Scale = function() return T.Scale(b, n) end}
        return score(at, i, n, sizes, function(h, d) return T.Q(b, i, h, d) end, function(d) return T.K(b, n, d) end)
      end}
    end,
  },
}
