-- O[b,t,h,:] = sum over j of softmax_j(scale Q[b,t,h,:] . K[b,j,hk,:]) V[b,j,hk,:], over the keys j <= t of the blocks that query t and
-- kv head hk = h // g choose: j // size is Blocks[b,t,hk,i] for an i. Less than 0, or a block behind the query, is none.
--
-- The branch of selected blocks of native sparse attention (DeepSeek): each query has a list of its own, and its heads of a group share
-- the keys. L[b,t,h], the logarithm to base 2 of the sums, is for the backward pass. While decoding a sequence has one query, at its end.
local mr = require "millrace"
local max, exp2, where, log2 = mr.max, mr.exp2, mr.where, mr.log2

local LOG2E <const> = 1.4426950408889634

-- Block i of query t: its own, and a few before that.
local function block(sizes, t, h, i)
  local own = (t + (sizes.n or sizes.t) - sizes.t) // sizes.size
  if i == 0 then return own end
  local other = (i * 7 + h * 3 + t // 5) % (own + 1)
  return i <= own and other ~= own and (other + i) % 5 ~= 0 and other or -1
end

-- What the lists of a query name, each block as often as it is there.
local function attention(t, sizes, b, h, at)
  local g, scale = sizes.hq // sizes.hkv, 1 / math.sqrt(sizes.d)
  local last = at + (sizes.n or sizes.t) - sizes.t
  local scores, keys, top = {}, {}, -math.huge
  for i = 0, sizes.s - 1 do
    local first = t.Blocks(b, at, h // g, i) * sizes.size
    for key = math.max(first, 0), math.min(first + sizes.size - 1, last) do
      local s = 0
      for d = 0, sizes.d - 1 do s = s + t.Q(b, at, h, d) * t.K(b, key, h // g, d) end
      scores[#scores + 1], keys[#keys + 1], top = s * scale, key, math.max(top, s * scale)
    end
  end
  local sum = 0
  for i = 1, #scores do
    scores[i] = math.exp(scores[i] - top)
    sum = sum + scores[i]
  end
  return scores, keys, sum, top
end

local function weighted(t, sizes, b, h, d, scores, keys, sum)
  local o, g = 0, sizes.hq // sizes.hkv
  for i = 1, #scores do o = o + scores[i] * t.V(b, keys[i], h // g, d) end
  return o / sum
end

return {
  program = mr.program("nsa_selected_attention", function(p)
    local b, t, hkv, s, d = p:axes("b", "t", "hkv", "s", "d")
    local hq, g, key = p:axis("hq", p.hq), p:axis("g", p.hq // hkv.size), p:axis("key", p.size)
    local n = p:axis("n", p.n or t.size)                  -- keys; the queries are the last of them
    local behind = n.size - t.size
    local Q, K, V = p:input("Q", {b, t, hq, d}), p:input("K", {b, n, hkv, d}), p:input("V", {b, n, hkv, d})
    local Blocks = p:input("Blocks", {b, t, hkv, s}, "i32")
    local O, L = p:output("O", {b, t, hq, d}), p:output("L", {b, t, hq}, "f32")
    p:batch(b, t, hkv)
    local head = hkv * g.size + g
    local q = p:load("load_q", Q, {b, t, head, d})
    local mx, l, o = p:carry("mx", {g}, -1e30), p:carry("l", {g}, 0), p:carry("o", {g, d}, 0)
    local function seen()
      local first = p:load(Blocks) * key.size
      return first:ge(0) & first:le(t:index() + behind)
    end
    p:loop(s, {when = seen, typical = p.typical}, function()
      local first = p:load("load_blocks", Blocks) * key.size
      local qk = p:mma("mma_qk", q, p:load("load_k", K, {b, first + key, hkv, d}))
      local pr, alpha = p:task("softmax", function()
        local x = where((first + key:index()):le(t:index() + behind), qk * (LOG2E / math.sqrt(d.size)), -math.huge)
        local new = max(mx, x:rowmax(key))
        local pr, alpha = exp2(x - new), exp2(mx - new)
        l:set(l * alpha + pr:rowsum(key))
        mx:set(new)
        return pr:to "bf16", alpha
      end)
      p:task("rescale", function() o:set(o * alpha) end)
      o:add(p:mma("mma_pv", pr, p:load("load_v", V, {b, first + key, hkv, d})))
    end)
    local out, sums = p:task("finish", function() return (o / l):to "bf16", log2(l) + mx end)
    O:store("store_o", out, {b, t, head, d})
    L:store("store_l", sums, {b, t, head})
  end),
  small = {
    {b = 1, t = 40, hkv = 2, hq = 32, s = 3, d = 32, size = 16},
    {b = 3, t = 1, n = 167, hkv = 1, hq = 16, s = 4, d = 64, size = 32},
  },
  usual = {
    {b = 1, t = 8192, hkv = 4, hq = 64, s = 16, d = 128, size = 64},
    {b = 2, t = 64, hkv = 1, hq = 16, s = 1, d = 32, size = 32},
    {b = 64, t = 1, n = 8192, hkv = 4, hq = 64, s = 16, d = 128, size = 64},
  },
  fill = {Blocks = function(sizes, b, t, h, i) return block(sizes, t, h, i) end},
  formula = function(t, sizes)
    return {
      O = function(b, at, h, d)
        return weighted(t, sizes, b, h, d, attention(t, sizes, b, h, at))
      end,
      L = function(b, at, h)
        local _, _, sum, top = attention(t, sizes, b, h, at)
        return math.log(sum, 2) + top * LOG2E
      end,
    }
  end,
}
