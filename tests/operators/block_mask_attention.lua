-- O[b,h,i,:] = sum over j of softmax_j(scale Q[b,h,i,:] . K[b,hk,j,:]) V[b,hk,j,:], over the keys j of the blocks that a mask keeps:
-- Mask[b,h,i // size,j // size]; causal: those up to i + n - m. hk = h // (hq / hkv). A query that sees no key has zeros.
--
-- Attention in prefill with blocks that a gate or a pooled estimate chooses, as in SeerAttention.
local mr = require "millrace"
local max, exp2, where = mr.max, mr.exp2, mr.where

local LOG2E <const> = 1.4426950408889634

return {
  program = mr.program("block_mask_attention", function(p)
    local b, hq, mb, nb, d = p:axes("b", "hq", "mb", "nb", "d")                   -- blocks of queries, of keys
    local size, hkv = p.size, p:axis("hkv", p.hkv or hq.size)
    local m, n = p:axis("m", p.m or mb.size * size), p:axis("n", p.n or nb.size * size)
    local i, j = p:axis("i", size), p:axis("j", size)
    local causal = p:option("causal", "boolean", true)
    local Q, O = p:input("Q", {b, hq, m, d}), p:output("O", {b, hq, m, d})
    local K, V = p:input("K", {b, hkv, n, d}), p:input("V", {b, hkv, n, d})
    local Mask = p:input("Mask", {b, hq, mb, nb}, "bool")
    p:batch(b, hq, mb)
    local query, key, head = mb * size + i, nb * size + j, hq // (hq.size // hkv.size)
    local q = p:load("load_q", Q, {b, hq, query, d})
    local mx, l, o = p:carry("mx", {i}, -1e30), p:carry("l", {i}, 0), p:carry("o", {i, d}, 0)
    local last = (mb * size + (size - 1 + n.size - m.size)) // size                -- block that the block of queries sees
    p:loop(nb, {upto = causal and last, when = function() return p:load("load_mask", Mask) end, typical = p.typical}, function()
      local qk = p:mma("mma_qk", q, p:load("load_k", K, {b, head, key, d}))
      local pr, alpha = p:task("softmax", function()
        local at, to = nb:index() * size + j:index(), mb:index() * size + i:index() + (n.size - m.size)
        local seen = at:lt(n.size)
        if causal then seen = seen & at:le(to) end
        local x = where(seen, qk * (LOG2E / math.sqrt(d.size)), -math.huge)
        local new = max(mx, x:rowmax(j))
        local pr, alpha = exp2(x - new), exp2(mx - new)
        l:set(l * alpha + pr:rowsum(j))
        mx:set(new)
        return pr:to "bf16", alpha
      end)
      p:task("rescale", function() o:set(o * alpha) end)
      o:add(p:mma("mma_pv", pr, p:load("load_v", V, {b, head, key, d})))
    end)
    O:store("store_o", p:task("finish", function() return where(l:gt(0), o / l, 0):to "bf16" end), {b, hq, query, d})
  end),
  small = {
    {b = 2, hq = 2, hkv = 1, mb = 2, nb = 3, d = 32, size = 64, m = 100, n = 170},
    {b = 1, hq = 2, mb = 3, nb = 3, d = 64, size = 32, causal = false},
  },
  usual = {
    {b = 1, hq = 32, hkv = 8, mb = 512, nb = 512, d = 128, size = 64, typical = 64},
    {b = 4, hq = 32, mb = 64, nb = 64, d = 64, size = 64, typical = 16},
    {b = 1, hq = 32, mb = 4, nb = 4, d = 64, size = 64, typical = 2},
  },
  fill = {Mask = function(sizes, b, h, mb, nb) return (nb == 0 or (b + h * 5 + mb * 3 + nb * 7) % 4 == 0) and mb ~= 1 and 1 or 0 end},
  formula = function(t, sizes)
    local m, n = sizes.m or sizes.mb * sizes.size, sizes.n or sizes.nb * sizes.size
    local group = sizes.hq // (sizes.hkv or sizes.hq)
    return {O = function(b, h, i, d)
      local over, under = 0, 0
      for j = 0, sizes.causal == false and n - 1 or math.min(n - 1, i + n - m) do
        local kept = t.Mask(b, h, i // sizes.size, j // sizes.size)
        if kept == 1 or kept == true then
          local score = 0
          for x = 0, sizes.d - 1 do score = score + t.Q(b, h, i, x) * t.K(b, h // group, j, x) end
          local weight = math.exp(score / math.sqrt(sizes.d))
          over, under = over + weight * t.V(b, h // group, j, d), under + weight
        end
      end
      return under > 0 and over / under or 0
    end}
  end,
}
