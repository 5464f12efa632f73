-- O[b,h,:] = sum over the keys j that Mask[b,j,hk] keeps of softmax_j(scale Q[b,h,:] . K[b,j,hk,:]) V[b,j,hk,:], one query a head, with
-- hk = h // (h / hkv). The keys are split over the machine, and the parts are combined.
--
-- Decoding with grouped queries against a cache of which any keys may be left out, one by one.
local mr = require "millrace"
local max, exp2, where, rowmax, rowsum = mr.max, mr.exp2, mr.where, mr.rowmax, mr.rowsum

local LOG2E <const> = 1.4426950408889634

return {
  program = mr.program("masked_gqa_decoding", function(p)
    local b, h, hkv, n, d, split = p:axes("b", "h", "hkv", "n", "d", "split")
    local g, r = p:axis("g", h.size // hkv.size), p:axis("r", n.size // split.size)   -- queries of a kv head, keys of a split
    p:check(n.size % split.size == 0, "split must divide n")
    local Q, O = p:input("Q", {b, h, d}, "f16"), p:output("O", {b, h, d}, "f16")
    local K, V = p:input("K", {b, n, hkv, d}, "f16"), p:input("V", {b, n, hkv, d}, "f16")
    local Mask = p:input("Mask", {b, n, hkv}, "bool")
    local Part, Lse = p:temp("Part", {b, h, split, d}, "f32"), p:temp("Lse", {b, h, split}, "f32")

    p:phase("parts", function()
      p:batch(b, hkv, split)
      local head, at = hkv * g.size + g, split * r.size + r
      local q = p:load("load_q", Q, {b, head, d})
      local mx, l, o = p:carry("mx", {g}, -1e30), p:carry("l", {g}, 0), p:carry("o", {g, d}, 0)
      p:loop(r, function()
        local keep = p:load("load_mask", Mask, {b, at, hkv})
        local s = p:mma("mma_qk", q, p:load("load_k", K, {b, at, hkv, d}))
        local pr, alpha = p:task("softmax", function()
          local x = where(keep, s * (LOG2E / math.sqrt(d.size)), -math.huge)
          local new = max(mx, x:rowmax(r))
          local pr, alpha = exp2(x - new), exp2(mx - new)
          l:set(l * alpha + pr:rowsum(r))
          mx:set(new)
          return pr:to "f16", alpha
        end)
        p:task("rescale", function() o:set(o * alpha) end)
        o:add(p:mma("mma_pv", pr, p:load("load_v", V, {b, at, hkv, d})))
      end)
      local part, lse = p:task("divide", function()
        local sum = max(l, 1e-30)
        return o / sum, mx + mr.log2(sum)
      end)
      Part:store("store_part", part, {b, head, split, d})
      Lse:store("store_lse", lse, {b, head, split})
    end)

    p:phase("combine", function()
      p:batch(b, h)
      local part, lse = p:load("load_part", Part), p:load("load_lse", Lse)
      O:store("store_o", p:task("combine", function()
        local weight = exp2(lse - rowmax(lse, split))
        return (rowsum(part * weight, split) / rowsum(weight, split)):to "f16"
      end))
    end)
  end),
  small = {{b = 1, h = 8, hkv = 2, n = 200, d = 32, split = 2}, {b = 2, h = 16, hkv = 1, n = 256, d = 64, split = 4}},
  usual = {
    {b = 1, h = 32, hkv = 8, n = 8192, d = 128, split = 16}, {b = 64, h = 32, hkv = 8, n = 8192, d = 128, split = 2},
  },
  fill = {Mask = function(_, b, j, h) return (j * 7 + h * 3 + b) % 5 < 2 and 1 or 0 end},
  formula = function(t, sizes)
    return {O = function(b, h, d)
      local hk, over, under = h // (sizes.h // sizes.hkv), 0, 0
      for j = 0, sizes.n - 1 do
        local kept = t.Mask(b, j, hk)
        if kept == true or kept == 1 then
          local score = 0
          for x = 0, sizes.d - 1 do score = score + t.Q(b, h, x) * t.K(b, j, hk, x) end
          local weight = math.exp(score / math.sqrt(sizes.d))
          over, under = over + weight * t.V(b, j, hk, d), under + weight
        end
      end
      return over / under
    end}
  end,
}
