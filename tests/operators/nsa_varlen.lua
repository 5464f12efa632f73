-- O[c,h,:] = sum over j of softmax_j(scale Q[c,h,:] . K[begin + j,hk,:]) V[begin + j,hk,:], for token c of sequences that lie one after
-- the other: it is number t of sequence e, (e, t) = Tokens[c], which begins at Offsets[e]; hk = h // g. The keys j <= t are those of the
-- blocks j // size = Blocks[c,hk,i], i < Count[c,hk]. Less than 0, or a block behind the query, is none.
--
-- Native sparse attention (DeepSeek) in training on packed sequences. A query that chooses no block has zeros.
local mr = require "millrace"
local max, exp2, where = mr.max, mr.exp2, mr.where

local LOG2E <const> = 1.4426950408889634

-- Sequences of increasing lengths, the last of which has what the others leave.
local function begin(sizes, e)
  return e == sizes.e and sizes.c or sizes.c * e * (e + 1) // (sizes.e * (sizes.e + 1)) // 2 * 2
end

local function sequence(sizes, c)
  for e = sizes.e - 1, 0, -1 do
    if c >= begin(sizes, e) then return e, c - begin(sizes, e) end
  end
end

return {
  program = mr.program("nsa_varlen", function(p)
    local c, e, hkv, s, d = p:axes("c", "e", "hkv", "s", "d")
    local hq, g, key = p:axis("hq", p.hq), p:axis("g", p.hq // hkv.size), p:axis("key", p.size)
    local bounds, pair = p:axis("bounds", e.size + 1), p:axis("pair", 2)
    local Q, K, V = p:input("Q", {c, hq, d}), p:input("K", {c, hkv, d}), p:input("V", {c, hkv, d})
    local Blocks, Count = p:input("Blocks", {c, hkv, s}, "i32"), p:input("Count", {c, hkv}, "i32")
    local Offsets, Tokens = p:input("Offsets", {bounds}, "i32"), p:input("Tokens", {c, pair}, "i32")
    local O = p:output("O", {c, hq, d})
    p:batch(c, hkv)
    local head = hkv * g.size + g
    local q, at = p:load("load_q", Q, {c, head, d}), p:load("load_at", Tokens, {c, 1})
    local begin = p:load("load_begin", Offsets, {p:load("load_sequence", Tokens, {c, 0})})
    local mx, l, o = p:carry("mx", {g}, -1e30), p:carry("l", {g}, 0), p:carry("o", {g, d}, 0)
    local function seen()
      local first = p:load(Blocks) * key.size
      return first:ge(0) & first:le(p:load(Tokens, {c, 1}))
    end
    p:loop(s, {length = p:load(Count), when = seen, typical = p.typical}, function()
      local first = p:load("load_blocks", Blocks) * key.size
      local row = begin + first
      local qk = p:mma("mma_qk", q, p:load("load_k", K, {row + key, hkv, d}))
      local pr, alpha = p:task("softmax", function()
        local x = where((first + key:index()):le(at), qk * (LOG2E / math.sqrt(d.size)), -math.huge)
        local new = max(mx, x:rowmax(key))
        local pr, alpha = exp2(x - new), exp2(mx - new)
        l:set(l * alpha + pr:rowsum(key))
        mx:set(new)
        return pr:to "bf16", alpha
      end)
      p:task("rescale", function() o:set(o * alpha) end)
      o:add(p:mma("mma_pv", pr, p:load("load_v", V, {row + key, hkv, d})))
    end)
    O:store("store_o", p:task("finish", function() return where(l:gt(0), o / l, 0):to "bf16" end), {c, head, d})
  end),
  small = {
    {c = 50, e = 3, hkv = 2, hq = 32, s = 3, d = 32, size = 16}, {c = 64, e = 2, hkv = 1, hq = 16, s = 2, d = 64, size = 32},
  },
  usual = {{c = 16384, e = 8, hkv = 4, hq = 64, s = 16, d = 128, size = 64}},
  fill = {
    Offsets = begin,
    Tokens = function(sizes, c, i) return (select(1 + i, sequence(sizes, c))) end,
    Count = function(sizes, c, h) return (c + h) % (sizes.s + 1) end,
    Blocks = function(sizes, c, h, i)
      local _, t = sequence(sizes, c)
      local own = t // sizes.size
      return own - i + (c + h + i) % 7 // 6
    end,
  },
  formula = function(t, sizes)
    return {O = function(c, h, d)
      local e, at = sequence(sizes, c)
      local hk, scale, from = h // (sizes.hq // sizes.hkv), 1 / math.sqrt(sizes.d), begin(sizes, e)
      local over, under = 0, 0
      for i = 0, t.Count(c, hk) - 1 do
        local first = t.Blocks(c, hk, i) * sizes.size
        for key = math.max(first, 0), math.min(first + sizes.size - 1, at) do
          local score = 0
          for x = 0, sizes.d - 1 do score = score + t.Q(c, h, x) * t.K(from + key, hk, x) end
          local weight = math.exp(score * scale)
          over, under = over + weight * t.V(from + key, hk, d), under + weight
        end
      end
      return under > 0 and over / under or 0
    end}
  end,
}
