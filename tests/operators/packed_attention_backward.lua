-- The gradients of attention of sequences that lie one after the other, by those of its output: for query i and key j of sequence b, which
-- are the rows a + i and c + j, a = BeginQ[b], c = BeginK[b], and w = exp(scale Q[a+i,h,:] . K[c+j,hk,:] - L[h,a+i]),
--     dV[c+j,hk,:] = sum of w dO[a+i,h,:],  ds = w (dO[a+i,h,:] . V[c+j,hk,:] - rowsum(dO O)[a+i,h]) scale,
--     dQ[a+i,h,:] = sum of ds K[c+j,hk,:],  dK[c+j,hk,:] = sum of ds Q[a+i,h,:],
-- over the keys j that query i sees: causal, those j <= i + keys - queries, and with a window only so many of these. With sinks also
-- dSink[h] = - sum of exp(Sink[h] - L[h,r]) rowsum(dO O)[r,h] over all rows r. hk = h // (h / hkv).
--
-- Training on packed documents. A tile of keys goes over the queries that see it, of all heads that share these keys.
local mr = require "millrace"
local max, min, exp2, where, rowsum = mr.max, mr.min, mr.exp2, mr.where, mr.rowsum

local LOG2E <const> = 1.4426950408889634

local function program(name, sinks)
  return mr.program(name, function(p)
    local b, h, m, n, d, v = p:axes("b", "h", "m", "n", "d", "v")             -- m queries and n keys of a sequence at most
    local hkv, queries, keys = p:axis("hkv", p.hkv or h.size), p:axis("queries", p.queries), p:axis("keys", p.keys)
    local g, w, i = p:axis("g", h.size // hkv.size), p:axis("w", v.size), p:axis("i", 128)
    local block, bounds = p:axis("block", -(-n.size // i.size)), p:axis("bounds", b.size + 1)       -- of keys
    local causal, window = p:option("causal", "boolean"), p:option("window", "integer")
    local scale = 1 / math.sqrt(d.size)
    local Q, K, V = p:input("Q", {queries, h, d}), p:input("K", {keys, hkv, d}), p:input("V", {keys, hkv, v})
    local O, dO, L = p:input("O", {queries, h, v}), p:input("dO", {queries, h, v}), p:input("L", {h, queries}, "f32")
    local BeginQ, BeginK = p:input("BeginQ", {bounds}, "i32"), p:input("BeginK", {bounds}, "i32")
    local dQ, dK = p:output("dQ", {queries, h, d}, "f32"), p:output("dK", {keys, hkv, d})
    local dV, Delta = p:output("dV", {keys, hkv, v}), p:temp("Delta", {h, queries}, "f32")
    local Sink, dSink = sinks and p:input("Sink", {h}), sinks and p:output("dSink", {h}, "f32")

    p:phase("rows", function()
      p:batch(h)
      local o, go = p:load("load_o", O, {queries, h, w}), p:load("load_go", dO, {queries, h, w})
      local delta, zero = p:task("rows", function()
        return rowsum(o * go, w), (queries:index() + d:index()):to "f32" * 0
      end)
      Delta:store("store_delta", delta)
      dQ:store("zero_dq", zero)
      if sinks then dSink:store("zero_dsink", p:task("zeros", function() return (h:index() * 0):to "f32" end)) end
    end)

    if sinks then
      p:phase("sinks", function()
        p:batch(h)
        local sink, l, delta = p:load("load_sink", Sink), p:load("load_l_sink", L), p:load("load_delta_sink", Delta)
        dSink:add("add_dsink", p:task("part", function() return rowsum(-exp2((sink - l) * LOG2E) * delta, queries) end))
      end)
    end

    p:phase("gradients", function()
      p:batch(b, hkv, block)
      local head = hkv * g.size + g
      local first_q, first_k = p:load("load_first_q", BeginQ, {b}), p:load("load_first_k", BeginK, {b})
      local rows, count = p:load("load_end_q", BeginQ, {b + 1}) - first_q, p:load("load_end_k", BeginK, {b + 1}) - first_k
      local shift, before = causal and count - rows, block:index() * i.size
      -- The queries of a block: from the first one that sees its first key to the last one that sees its last key.
      local start = causal and max(0, before - shift) or 0
      local upto = window and min(rows, before - shift + (i.size + window - 1)) or rows
      local seen, from = where(before:lt(count), upto - start, 0), first_q + start

      local row_k = first_k + (block * i.size + i)
      local k, val = p:load("load_k", K, {row_k, hkv, d}), p:load("load_v", V, {row_k, hkv, w})
      local dk, dv = p:carry("dk", {i, d}, 0), p:carry("dv", {i, w}, 0)
      p:loop(g, function()
        p:loop(m, {length = seen, typical = p.typical}, function()
          local row = from + m
          local q, go = p:load("load_q", Q, {row, head, d}), p:load("load_go2", dO, {row, head, w})
          local l, delta = p:load("load_l", L, {head, row}), p:load("load_delta", Delta, {head, row})
          local s, dp = p:mma("mma_s", k, q), p:mma("mma_dp", val, go)
          local weights, ds = p:task("softmax", function()
            local x, key = exp2((s * scale - l) * LOG2E), before + i:index()
            x = where(key:lt(count), x, 0)
            if causal then
              local at = m:index() + start + shift
              x = where(key:le(at), x, 0)
              if window then x = where(key:gt(at - window), x, 0) end
            end
            return x:to "bf16", (x * (dp - delta) * scale):to "bf16"
          end)
          dv:add(p:mma("mma_dv", weights, go))
          dk:add(p:mma("mma_dk", ds, q))
          dQ:add("add_dq", p:mma("mma_dq", ds, k), {row, head, d})
        end)
      end)
      local row = p:task("rows_of_keys", function()
        local key = before + i:index()
        return where(key:lt(count), first_k + key, -1)
      end)
      dK:store("store_dk", p:task("round_dk", function() return dk:to "bf16" end), {row, hkv, d})
      p:loop(v, function()                                                    -- so that tiles do not go along v, and each add dQ
        dV:store("store_dv", p:task("round_dv", function() return dv:at(w, v):to "bf16" end), {row, hkv, v})
      end)
    end)
  end)
end

-- Where sequence b begins: sequences of different lengths, the last of which ends at `all`.
local function begin(all, sizes, b)
  return b == sizes.b and all or all * b * (b + 2) // (sizes.b * (sizes.b + 2))
end

local function begin_q(sizes, b) return begin(sizes.queries, sizes, b) end
local function begin_k(sizes, b) return begin(sizes.keys, sizes, b) end

-- O and L are those that are given, which need not be of the same Q, K and V.
local function formula(t, sizes)
  local each = sizes.h // (sizes.hkv or sizes.h)
  local function sequence(begins, row)
    local b = 0
    while begins(sizes, b + 1) <= row do b = b + 1 end
    return b
  end
  local function weight(h, r, c)                        -- of the rows r of queries and c of keys
    local b = sequence(begin_q, r)
    if sequence(begin_k, c) ~= b then return 0 end
    if sizes.causal then
      local at, key = r - begin_q(sizes, b + 1) + begin_k(sizes, b + 1), c
      if key > at or sizes.window and key <= at - sizes.window then return 0 end
    end
    local sum = 0
    for x = 0, sizes.d - 1 do sum = sum + t.Q(r, h, x) * t.K(c, h // each, x) end
    return math.exp(sum / math.sqrt(sizes.d) - t.L(h, r))
  end
  local function ds(h, r, c)
    local w, sum = weight(h, r, c), 0
    for x = 0, w > 0 and sizes.v - 1 or -1 do sum = sum + t.dO(r, h, x) * (t.V(c, h // each, x) - t.O(r, h, x)) end
    return w * sum / math.sqrt(sizes.d)
  end
  local function of_key(hk, f)
    local sum = 0
    for h = hk * each, (hk + 1) * each - 1 do
      for r = 0, sizes.queries - 1 do sum = sum + f(h, r) end
    end
    return sum
  end
  return {
    dQ = function(r, h, x)
      local sum = 0
      for c = 0, sizes.keys - 1 do sum = sum + ds(h, r, c) * t.K(c, h // each, x) end
      return sum
    end,
    dK = function(c, hk, x) return of_key(hk, function(h, r) return ds(h, r, c) * t.Q(r, h, x) end) end,
    dV = function(c, hk, x) return of_key(hk, function(h, r) return weight(h, r, c) * t.dO(r, h, x) end) end,
    dSink = function(h)
      local sum = 0
      for r = 0, sizes.queries - 1 do
        for x = 0, sizes.v - 1 do sum = sum - math.exp(t.Sink(h) - t.L(h, r)) * t.dO(r, h, x) * t.O(r, h, x) end
      end
      return sum
    end,
  }
end

local fill = {BeginQ = begin_q, BeginK = begin_k, L = function(_, h, r) return 2 + (h + r) % 3 / 4 end}

return {
  {
    name = "packed_attention_backward",
    program = program("packed_attention_backward", false),
    small = {
      {b = 2, h = 2, hkv = 1, m = 60, n = 60, d = 48, v = 32, queries = 80, keys = 80, causal = true},
      {b = 2, h = 1, m = 60, n = 140, d = 32, v = 32, queries = 70, keys = 180},
    },
    usual = {
      {b = 8, h = 32, hkv = 2, m = 1024, n = 1024, d = 192, v = 128, queries = 4096, keys = 4096, typical = 384},
      {b = 8, h = 32, hkv = 2, m = 1024, n = 1024, d = 192, v = 128, queries = 4096, keys = 4096, causal = true, typical = 192},
    },
    fill = fill, formula = formula,
  },
  {
    name = "packed_sink_attention_backward",
    program = program("packed_sink_attention_backward", true),
    small = {{b = 2, h = 2, hkv = 1, m = 60, n = 60, d = 32, v = 32, queries = 80, keys = 80, causal = true, window = 20}},
    usual = {
      {b = 8, h = 64, hkv = 4, m = 2048, n = 2048, d = 128, v = 128, queries = 8192, keys = 8192, causal = true, typical = 384},
      {b = 8, h = 64, hkv = 8, m = 2048, n = 2048, d = 64, v = 64, queries = 8192, keys = 8192, causal = true, window = 128, typical = 160},
    },
    fill = fill, formula = formula,
  },
}
