-- softmax(scale Q K^T + Bias) V, with what models add to scores:
--   alibi_attention: -slope(h) (m - j), causal (MPT, BLOOM);
--   bias_attention: a tensor {h, m, n} of relative positions, the same for all of the batch (T5; pair bias of AlphaFold has one of b, too);
--   mask_attention: an additive mask {b, m, n} of the batch, -inf where a key is not seen (torch's attn_mask);
--   cross_attention: each sequence has a length of its keys, and rows of keys are packed one sequence behind the other;
--   tree_attention: tokens of a draft see the keys of the cache and, of each other, their ancestors in a tree: a bit mask of each
--   (Medusa, EAGLE, SpecInfer).
local mr = require "millrace"
local max = mr.max
local shared = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/attention.lua")
local online, carries = shared.online, shared.carries

local LOG2E <const> = 1.4426950408889634

-- The rows' answer, of functions of the key: its score (nil: not seen) and its value.
local function attention(n, score, value)
  local s, most, sum, total = {}, -math.huge, 0, 0
  for j = 0, n - 1 do
    s[j] = score(j)
    most = math.max(most, s[j] or most)
  end
  for j = 0, n - 1 do
    if s[j] then
      sum, total = sum + math.exp(s[j] - most), total + math.exp(s[j] - most) * value(j)
    end
  end
  return total / sum
end

local function dot(d, x, y)
  local sum = 0
  for i = 0, d - 1 do sum = sum + x(i) * y(i) end
  return sum / math.sqrt(d)
end

-- Programs with Q, K, V {b, h, ., d}: bias(p, axes) gives load() of what a tile adds, and which keys are seen.
local function dense(name, bias, options)
  local operator = {
    name = name,
    program = mr.program(name, function(p)
      local b, h, m, n, d = p:axes("b", "h", "m", "n", "d")
      local Q, K, V = p:input("Q", {b, h, m, d}), p:input("K", {b, h, n, d}), p:input("V", {b, h, n, d})
      local O = p:output("O", {b, h, m, d})
      p:batch(b, h)
      local load, limits = bias(p, b, h, m, n)
      local q = p:load("load_q", Q)
      local mx, l, o = carries(p, m, d)
      p:loop(n, limits or {}, function()
        local qk = p:mma("mma_qk", q, p:load("load_k", K))
        local add = load()
        online(p, "", mx, l, o, n, function() return add(qk * (1 / math.sqrt(d.size))) * LOG2E end, function(pr)
          return p:mma("mma_pv", pr, p:load("load_v", V))
        end)
      end)
      O:store("store_o", p:task("normalise", function() return (o / l):to "bf16" end))
    end),
    formula = function(t, sizes)
      return {O = function(b, h, m, d)
        return attention(sizes.n, function(j)
          local s = dot(sizes.d, function(i) return t.Q(b, h, m, i) end, function(i) return t.K(b, h, j, i) end)
          return options.score(t, sizes, s, b, h, m, j)
        end, function(j) return t.V(b, h, j, d) end)
      end}
    end,
    small = {{b = 1, h = 2, m = 64, n = 128, d = 64}, {b = 2, h = 1, m = 40, n = 40, d = 72}},
  }
  if name == "alibi_attention" then operator.small[1].n = 64 end
  for key, value in pairs(options) do if key ~= "score" then operator[key] = value end end
  return operator
end

return {
  dense("alibi_attention", function(p, _, h, m, n)
    local Slope = p:input("Slope", {h}, "f32")
    local slope = p:load("load_slope", Slope)
    return function()
      return function(s) return mr.where(n:index():le(m:index()), s - slope * (m:index() - n:index()), -1e30) end
    end, {upto = m}
  end, {
    usual = {{b = 4, h = 32, m = 4096, n = 4096, d = 128}},
    fill = {Slope = function(sizes, h) return 2 ^ (-8 * (h + 1) / sizes.h) end},
    score = function(t, _, s, _, h, m, j) return j <= m and s - t.Slope(h) * (m - j) or nil end,
  }),
  dense("bias_attention", function(p, _, h, m, n)
    local Bias = p:input("Bias", {h, m, n})
    return function()
      local bias = p:load("load_bias", Bias)
      return function(s) return s + bias end
    end
  end, {
    usual = {{b = 8, h = 16, m = 1024, n = 1024, d = 64}, {b = 2, h = 32, m = 4096, n = 4096, d = 128}},
    score = function(t, _, s, _, h, m, j) return s + t.Bias(h, m, j) end,
  }),
  dense("mask_attention", function(p, b, _, m, n)
    local Mask = p:input("Mask", {b, m, n})
    return function()
      local mask = p:load("load_mask", Mask)
      return function(s) return mr.max(s + mask, -1e30) end
    end
  end, {
    usual = {{b = 4, h = 32, m = 2048, n = 2048, d = 128}},
    fill = {Mask = function(_, b, m, n) return (m * 7 + n * 3 + b) % 5 == 1 and n > 0 and -math.huge or (n % 3) / 4 end},
    score = function(t, _, s, b, _, m, j) return t.Mask(b, m, j) > -math.huge and s + t.Mask(b, m, j) or nil end,
  }),
  {
    name = "cross_attention",
    program = mr.program("cross_attention", function(p)
      local b, h, m, n, d = p:axes("b", "h", "m", "n", "d")     -- n: the longest sequence of keys
      local c, e = p:axis("c", p.rows), p:axis("e", b.size + 1)
      local Q, K, V = p:input("Q", {b, m, h, d}), p:input("K", {c, h, d}), p:input("V", {c, h, d})
      local First, O = p:input("First", {e}, "i32"), p:output("O", {b, m, h, d})
      p:batch(b, h)
      local q, first = p:load("load_q", Q), p:load("load_first", First, {b})
      local length = p:load(First, {b + 1}) - p:load(First, {b})
      local mx, l, o = carries(p, m, d)
      p:loop(n, {length = length, typical = p.typical}, function()
        local qk = p:mma("mma_qk", q, p:load("load_k", K, {first + n, h, d}))
        online(p, "", mx, l, o, n, function() return qk * (LOG2E / math.sqrt(d.size)) end, function(pr)
          return p:mma("mma_pv", pr, p:load("load_v", V, {first + n, h, d}))
        end)
      end)
      O:store("store_o", p:task("normalise", function() return (o / max(l, 1e-30)):to "bf16" end))
    end),
    small = {{b = 3, h = 1, m = 64, n = 128, d = 64, rows = 200}, {b = 2, h = 2, m = 20, n = 60, d = 72, rows = 60}},
    usual = {{b = 16, h = 16, m = 1024, n = 512, d = 64, rows = 4096, typical = 256}},
    fill = {First = function(sizes, b)                         -- the first sequence has the most keys, those behind it as many each
      local most = math.min(sizes.n, sizes.rows // sizes.b + 20)
      return b == 0 and 0 or most + (b - 1) * (sizes.rows - most) // math.max(1, sizes.b - 1)
    end},
    formula = function(t, sizes)
      return {O = function(b, m, h, d)
        local first = t.First(b)
        return attention(math.min(sizes.n, t.First(b + 1) - first), function(j)
          return dot(sizes.d, function(i) return t.Q(b, m, h, i) end, function(i) return t.K(first + j, h, i) end)
        end, function(j) return t.V(first + j, h, d) end)
      end}
    end,
  },
  {
    name = "tree_attention",
    program = mr.program("tree_attention", function(p)
      local b, hkv, g, m, n, d = p:axes("b", "hkv", "g", "m", "n", "d")       -- g queries a kv head, m tokens of a draft, at most 32
      local j, h = p:axis("j", m.size), p:axis("h", hkv.size * g.size)
      local Q, K, V = p:input("Q", {b, m, h, d}), p:input("K", {b, n, hkv, d}), p:input("V", {b, n, hkv, d})
      local DraftK, DraftV = p:input("DraftK", {b, j, hkv, d}), p:input("DraftV", {b, j, hkv, d})
      local Length, Tree = p:input("Length", {b}, "i32"), p:input("Tree", {b, m}, "i32")
      local O = p:output("O", {b, m, h, d})
      p:batch(b, hkv)
      local q, length = p:load("load_q", Q, {b, m, hkv * g.size + g, d}), p:load("load_length", Length)
      local tree = p:load("load_tree", Tree)
      local mx, l, o = p:carry("mx", {m, g}, -1e30), p:carry("l", {m, g}, 0), p:carry("o", {m, g, d}, 0)
      local to_log2 = LOG2E / math.sqrt(d.size)
      p:loop(n, {length = length, typical = p.typical}, function()
        local qk = p:mma("mma_qk", q, p:load("load_k", K))
        online(p, "", mx, l, o, n, function() return qk * to_log2 end, function(pr)
          return p:mma("mma_pv", pr, p:load("load_v", V))
        end)
      end)
      local qk = p:mma("mma_draft", q, p:load("load_dk", DraftK))
      online(p, "_draft", mx, l, o, j, function()
        return mr.where((tree >> j:index() & 1):ne(0), qk * to_log2, -1e30)
      end, function(pr) return p:mma("mma_draft_pv", pr, p:load("load_dv", DraftV)) end)
      O:store("store_o", p:task("normalise", function() return (o / l):to "bf16" end), {b, m, hkv * g.size + g, d})
    end),
    small = {{b = 2, hkv = 1, g = 4, m = 16, n = 100, d = 64}, {b = 1, hkv = 2, g = 2, m = 7, n = 40, d = 72}},
    usual = {{b = 16, hkv = 8, g = 4, m = 32, n = 8192, d = 128, typical = 4096}},
    fill = {
      Length = function(sizes, b) return math.max(1, sizes.n // 2 - 3 * b) end,
      Tree = function(_, b, m)                                 -- each token and its ancestors: the parent of token i is (i - 1) // 2
        local bits = 0
        while m > 0 do bits, m = bits | 1 << m, (m - 1) // (2 + b % 2) end
        bits = bits | 1
        return bits >= 1 << 31 and bits - (1 << 32) or bits
      end,
    },
    formula = function(t, sizes)
      return {O = function(b, m, h, d)
        local length, kv = t.Length(b), h // sizes.g
        local function at(K, Draft, j, i)
          if j < length then return K(b, j, kv, i) end
          return Draft(b, j - length, kv, i)
        end
        return attention(length + sizes.m, function(j)
          if j >= length and t.Tree(b, m) >> (j - length) & 1 == 0 then return nil end
          return dot(sizes.d, function(i) return t.Q(b, m, h, i) end, function(i) return at(t.K, t.DraftK, j, i) end)
        end, function(j) return at(t.V, t.DraftV, j, d) end)
      end}
    end,
  },
}
