-- Attention of sequences that lie one after the other: O[a + i,h,:] = sum over j of softmax_j(scale Q[a + i,h,:] . K[c + j,hk,:])
-- V[c + j,hk,:], for query i and key j of sequence b, whose queries begin at a = BeginQ[b] and end before BeginQ[b + 1], and whose keys
-- begin at c = BeginK[b], likewise; hk = h // (h / hkv). Causal: j <= i + keys - queries, so that the last query sees the last key, and
-- with a window only so many of these keys. With sinks, exp(Sink[h]) is added to the sum that the softmax divides by.
--
-- Training on packed documents, and prompts of several requests of which a part is in the cache (vLLM, SGLang). A query without keys
-- has zeros.
local mr = require "millrace"
local max, min, exp2, where = mr.max, mr.min, mr.exp2, mr.where

local LOG2E <const> = 1.4426950408889634

local function program(name, sinks)
  return mr.program(name, function(p)
    local b, h, m, n, d = p:axes("b", "h", "m", "n", "d")                     -- m queries and n keys of a sequence at most
    local hkv, queries, keys = p:axis("hkv", p.hkv or h.size), p:axis("queries", p.queries), p:axis("keys", p.keys)
    local i, bounds = p:axis("i", 128), p:axis("bounds", b.size + 1)
    local block = p:axis("block", -(-m.size // i.size))                       -- of queries
    local causal, window = p:option("causal", "boolean"), p:option("window", "integer")
    local Q, O = p:input("Q", {queries, h, d}), p:output("O", {queries, h, d})
    local K, V = p:input("K", {keys, hkv, d}), p:input("V", {keys, hkv, d})
    local BeginQ, BeginK = p:input("BeginQ", {bounds}, "i32"), p:input("BeginK", {bounds}, "i32")
    local Sink = sinks and p:input("Sink", {h})
    p:batch(b, h, block)
    local head = h // (h.size // hkv.size)
    local first_q, first_k = p:load("load_first_q", BeginQ, {b}), p:load("load_first_k", BeginK, {b})
    local rows, count = p:load("load_end_q", BeginQ, {b + 1}) - first_q, p:load("load_end_k", BeginK, {b + 1}) - first_k
    local shift = causal and count - rows
    local before = block:index() * i.size                                     -- queries of the blocks before
    -- The keys of a block: from the first one that its first query sees to the last one of its last query.
    local start = window and max(0, before + shift - (window - 1)) or 0
    local upto = causal and min(count, before + shift + i.size) or count
    local seen = where(before:lt(rows), upto - start, 0)
    local from = first_k + start

    local q, sink = p:load("load_q", Q, {first_q + (block * i.size + i), h, d}), sinks and p:load("load_sink", Sink)
    local mx, l, o = p:carry("mx", {i}, -1e30), p:carry("l", {i}, 0), p:carry("o", {i, d}, 0)
    p:loop(n, {length = seen, typical = p.typical}, function()
      local row = from + n
      local s = p:mma("mma_qk", q, p:load("load_k", K, {row, head, d}))
      local pr, alpha = p:task("softmax", function()
        local x = s * (LOG2E / math.sqrt(d.size))
        if causal then
          local at, key = before + i:index() + shift, n:index() + start
          x = where(key:le(at), x, -1e30)
          if window then x = where(key:gt(at - window), x, -1e30) end
        end
        local new = max(mx, x:rowmax(n))
        local pr, alpha = exp2(x - new), exp2(mx - new)
        l:set(l * alpha + pr:rowsum(n))
        mx:set(new)
        return pr:to "bf16", alpha
      end)
      p:task("rescale", function() o:set(o * alpha) end)
      o:add(p:mma("mma_pv", pr, p:load("load_v", V, {row, head, d})))
    end)
    local out, row = p:task("finish", function()
      local at = before + i:index()
      local some = mx:gt(-1e29)                                               -- of queries that see a key
      local sum = sinks and l + exp2(sink * LOG2E - mx) or l
      return where(some, o / sum, 0):to "bf16", where(at:lt(rows), first_q + at, -1)
    end)
    O:store("store_o", out, {row, h, d})
  end)
end

-- Where sequence b begins: sequences of different lengths, the last of which ends at `all`.
local function begin(all, sizes, b)
  return b == sizes.b and all or all * b * (b + 2) // (sizes.b * (sizes.b + 2))
end

local function begin_q(sizes, b) return begin(sizes.queries, sizes, b) end
local function begin_k(sizes, b) return begin(sizes.keys, sizes, b) end

local function formula(t, sizes)
  return {O = function(row, h, d)
    local b = 0
    while begin_q(sizes, b + 1) <= row do b = b + 1 end
    local i, first = row - begin_q(sizes, b), begin_k(sizes, b)
    local count = begin_k(sizes, b + 1) - first
    local at = i + count - (begin_q(sizes, b + 1) - begin_q(sizes, b))
    local hk, over, under = h // (sizes.h // (sizes.hkv or sizes.h)), 0, t.Sink and math.exp(t.Sink(h)) or 0
    for j = sizes.window and math.max(0, at - sizes.window + 1) or 0, sizes.causal and math.min(at, count - 1) or count - 1 do
      local score = 0
      for x = 0, sizes.d - 1 do score = score + t.Q(row, h, x) * t.K(first + j, hk, x) end
      local w = math.exp(score / math.sqrt(sizes.d))
      over, under = over + w * t.V(first + j, hk, d), under + w
    end
    return under > 0 and over / under or 0
  end}
end

local fill = {BeginQ = begin_q, BeginK = begin_k}

return {
  {
    name = "packed_attention",
    program = program("packed_attention", false),
    small = {
      {b = 3, h = 2, hkv = 1, m = 150, n = 150, d = 32, queries = 200, keys = 200, causal = true},
      {b = 2, h = 2, m = 130, n = 150, d = 64, queries = 130, keys = 200},
    },
    usual = {
      {b = 8, h = 64, hkv = 4, m = 2048, n = 2048, d = 128, queries = 8192, keys = 8192, typical = 768},
      {b = 8, h = 64, hkv = 4, m = 2048, n = 2048, d = 128, queries = 8192, keys = 8192, causal = true, typical = 384},
      {b = 8, h = 32, hkv = 8, m = 2048, n = 8192, d = 128, queries = 8192, keys = 40960, causal = true, typical = 2560},
    },
    fill = fill, formula = formula,
  },
  {
    name = "packed_sink_attention",
    program = program("packed_sink_attention", true),
    small = {
      {b = 3, h = 2, hkv = 1, m = 150, n = 150, d = 32, queries = 200, keys = 200, causal = true, window = 20},
      {b = 2, h = 2, m = 150, n = 150, d = 64, queries = 130, keys = 150},
    },
    usual = {
      {b = 8, h = 64, hkv = 4, m = 2048, n = 2048, d = 128, queries = 8192, keys = 8192, causal = true, typical = 384},
      {b = 8, h = 64, hkv = 8, m = 8192, n = 8192, d = 64, queries = 16384, keys = 16384, causal = true, window = 128, typical = 256},
    },
    fill = fill, formula = formula,
  },
}
