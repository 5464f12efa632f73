-- O[b,i,h,:] = sum over j of softmax_j(scale Q[b,i,h,:] . K[b,j,h,:]) V[b,j,h,:], where a new maximum of a row counts only if it is more
-- than 2^8 times the old one: else the old one stays, so that the factor of the sums before is exactly 1. The weights are then up to 2^8,
-- and the result is the same, as the sum that it is divided by has the same factor.
--
-- FlashAttention-4 does so, because rescaling is work on a path that tensor cores wait for.
local mr = require "millrace"
local max, exp2, where = mr.max, mr.exp2, mr.where

local LOG2E <const> = 1.4426950408889634

return {
  program = mr.program("lazy_rescale_attention", function(p)
    local b, h, m, d = p:axes("b", "h", "m", "d")
    local n, causal = p:axis("n", p.n or m.size), p:option("causal", "boolean")
    local Q, O = p:input("Q", {b, m, h, d}), p:output("O", {b, m, h, d})
    local K, V = p:input("K", {b, n, h, d}), p:input("V", {b, n, h, d})
    p:batch(b, h)
    local q = p:load("load_q", Q)
    local mx, l, o = p:carry("mx", {m}, -1e30), p:carry("l", {m}, 0), p:carry("o", {m, d}, 0)
    p:loop(n, {upto = causal and m}, function()
      local s = p:mma("mma_qk", q, p:load("load_k", K))
      local pr, alpha = p:task("softmax", function()
        local x = s * (LOG2E / math.sqrt(d.size))
        if causal then x = where(n:index():le(m:index()), x, -1e30) end
        local new = max(mx, x:rowmax(n))
        new = where((new - mx):le(8), mx, new)
        local pr, alpha = exp2(x - new), exp2(mx - new)
        l:set(l * alpha + pr:rowsum(n))
        mx:set(new)
        return pr:to "bf16", alpha
      end)
      p:task("rescale", function() o:set(o * alpha) end)
      o:add(p:mma("mma_pv", pr, p:load("load_v", V)))
    end)
    O:store("store_o", p:task("normalise", function() return (o * (1 / l)):to "bf16" end))
  end),
  small = {{b = 1, h = 2, m = 70, d = 32, causal = true}, {b = 1, h = 1, m = 64, n = 200, d = 64}},
  usual = {{b = 1, h = 16, m = 16384, d = 128}, {b = 1, h = 16, m = 16384, d = 128, causal = true}},
  formula = function(t, sizes)
    return {O = function(b, i, h, x)
      local over, under = 0, 0
      for j = 0, sizes.causal and i or (sizes.n or sizes.m) - 1 do
        local score = 0
        for y = 0, sizes.d - 1 do score = score + t.Q(b, i, h, y) * t.K(b, j, h, y) end
        local w = math.exp(score / math.sqrt(sizes.d))
        over, under = over + w * t.V(b, j, h, x), under + w
      end
      return over / under
    end}
  end,
}
