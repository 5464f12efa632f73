-- O[b,h,:] = sum over j of w[b,h,j] V[begin + j,hk,:] and S[b,h,c] = the greatest w[b,h,j] of the block j // size = c, where
-- w[b,h,j] = exp(scale Q[b,h,:] . K[begin + j,hk,:]) / (sum over i of exp(...) + exp(Sink[h])), with one query a head, over the keys of
-- sequence b: those from begin = Begin[b] to Begin[b + 1] - 1 of all keys. hk = h // (h / hkv); Sink is optional.
--
-- Decoding that leaves what a gate learns from, or a cache drops keys by: which blocks of keys had weight (SeerAttention-R). A block
-- behind the sequence has 0.
local mr = require "millrace"
local max, exp2, where = mr.max, mr.exp2, mr.where

local LOG2E <const> = 1.4426950408889634

local function program(name, sinks)
  return mr.program(name, function(p)
    local b, h, hkv, n, d, all = p:axes("b", "h", "hkv", "n", "d", "all")       -- n keys of a sequence at most, all in all
    local g, key, bounds = p:axis("g", h.size // hkv.size), p:axis("key", p.size), p:axis("bounds", b.size + 1)
    local c = p:axis("c", -(-n.size // key.size))                               -- blocks of a sequence
    local Q, O = p:input("Q", {b, h, d}), p:output("O", {b, h, d})
    local K, V = p:input("K", {all, hkv, d}), p:input("V", {all, hkv, d})
    local Begin, Sink = p:input("Begin", {bounds}, "i32"), sinks and p:input("Sink", {h}, "f32")
    local S, Top = p:output("S", {b, h, c}), p:temp("Top", {b, h, c}, "f32")
    local Lse = p:temp("Lse", {b, h}, "f32")

    p:phase("attend", function()
      p:batch(b, hkv)
      local head = hkv * g.size + g
      local begin = p:load("load_begin", Begin, {b})
      local length = p:load(Begin, {b + 1}) - p:load(Begin, {b})
      local q, sink = p:load("load_q", Q, {b, head, d}), sinks and p:load("load_sink", Sink, {head})
      local mx, l, o = p:carry("mx", {g}, -1e30), p:carry("l", {g}, 0), p:carry("o", {g, d}, 0)
      p:loop(c, {batch = true, length = (length + (p.size - 1)) // p.size}, function()
        local at = c * key.size + key
        local s = p:mma("mma_qk", q, p:load("load_k", K, {begin + at, hkv, d}))
        local pr, alpha, top = p:task("softmax", function()
          local x = where((c:index() * key.size + key:index()):lt(length), s * (LOG2E / math.sqrt(d.size)), -math.huge)
          local top = x:rowmax(key)
          local new = max(mx, top)
          local pr, alpha = exp2(x - new), exp2(mx - new)
          l:set(l * alpha + pr:rowsum(key))
          mx:set(new)
          return pr:to "bf16", alpha, top
        end)
        Top:store("store_top", top, {b, head, c})
        p:task("rescale", function() o:set(o * alpha) end)
        o:add(p:mma("mma_pv", pr, p:load("load_v", V, {begin + at, hkv, d})))
      end)
      local out, lse = p:task("finish", function()
        local sum = sinks and l + exp2(sink * LOG2E - mx) or l
        return (o / sum):to "bf16", mx + mr.log2(sum)
      end)
      O:store("store_o", out, {b, head, d})
      Lse:store("store_lse", lse, {b, head})
    end)

    p:phase("weigh", function()
      p:batch(b, h)
      local top, lse = p:load("load_top", Top), p:load("load_lse", Lse)
      local length = p:load("load_end", Begin, {b + 1}) - p:load("load_first", Begin, {b})
      S:store("store_s", p:task("weights", function()
        return where((c:index() * p.size):lt(length), exp2(top - lse), 0):to "bf16"
      end))
    end)
  end)
end

-- Sequences of n keys, or somewhat fewer.
local function begin(sizes, b)
  local all = 0
  for i = 0, b - 1 do all = all + sizes.n - i * 37 % (sizes.n // 2) end
  return all
end

local function formula(t, sizes)
  local rows = {}
  local function weights(b, h)                          -- of the keys of b, from 0
    local at = b * sizes.h + h
    if not rows[at] then
      local w, all, from, hk = {}, t.Sink and math.exp(t.Sink(h)) or 0, begin(sizes, b), h // (sizes.h // sizes.hkv)
      for j = 0, begin(sizes, b + 1) - from - 1 do
        local sum = 0
        for x = 0, sizes.d - 1 do sum = sum + t.Q(b, h, x) * t.K(from + j, hk, x) end
        w[j] = math.exp(sum / math.sqrt(sizes.d))
        all = all + w[j]
      end
      for j in pairs(w) do w[j] = w[j] / all end
      rows[at] = w
    end
    return rows[at]
  end
  return {
    O = function(b, h, d)
      local sum, hk = 0, h // (sizes.h // sizes.hkv)
      for j, w in pairs(weights(b, h)) do sum = sum + w * t.V(begin(sizes, b) + j, hk, d) end
      return sum
    end,
    S = function(b, h, c)
      local most = 0
      for j = c * sizes.size, (c + 1) * sizes.size - 1 do most = math.max(most, weights(b, h)[j] or 0) end
      return most
    end,
  }
end

local small = {
  {b = 2, h = 8, hkv = 2, n = 150, d = 32, size = 32, all = 263}, {b = 1, h = 16, hkv = 1, n = 256, d = 64, size = 64, all = 256},
}
local usual = {
  {b = 1, h = 32, hkv = 8, n = 8192, d = 128, size = 128, all = 8192},
  {b = 32, h = 32, hkv = 8, n = 8192, d = 128, size = 128, all = 32 * 8192},
}

return {
  {
    name = "block_weight_decoding",
    program = program("block_weight_decoding", false),
    small = small, usual = usual, fill = {Begin = begin}, formula = formula,
  },
  {
    name = "block_weight_decoding_sink",
    program = program("block_weight_decoding_sink", true),
    small = small, usual = usual, fill = {Begin = begin}, formula = formula,
  },
}
