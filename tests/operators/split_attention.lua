-- O[b,i,h,:] = sum over j of softmax_j(scale Q[b,i,h,:] . K[b,j,h,:]) V[b,j,h,:] for few queries, all of which see all keys. The keys are
-- split over the machine; each part leaves its result and the logarithm of its sum, by which the parts are combined.
--
-- A long cache and a step of some hundred queries, as in speculative decoding, chunks of a prompt, and encoders that attend to it.
local mr = require "millrace"
local max, exp2, rowmax, rowsum = mr.max, mr.exp2, mr.rowmax, mr.rowsum

local LOG2E <const> = 1.4426950408889634

return {
  program = mr.program("split_attention", function(p)
    local b, h, m, n, d, split = p:axes("b", "h", "m", "n", "d", "split")
    local r = p:axis("r", n.size // split.size)
    p:check(n.size % split.size == 0, "split must divide n")
    local Q, O = p:input("Q", {b, m, h, d}, "f16"), p:output("O", {b, m, h, d}, "f16")
    local K, V = p:input("K", {b, n, h, d}, "f16"), p:input("V", {b, n, h, d}, "f16")
    local Part, Lse = p:temp("Part", {b, h, split, m, d}, "f16"), p:temp("Lse", {b, h, split, m}, "f32")

    p:phase("parts", function()
      p:batch(b, h, split)
      local q, at = p:load("load_q", Q), split * r.size + r
      local mx, l, o = p:carry("mx", {m}, -math.huge), p:carry("l", {m}, 0), p:carry("o", {m, d}, 0)
      p:loop(r, function()
        local s = p:mma("mma_qk", q, p:load("load_k", K, {b, at, h, d}))
        local pr, alpha = p:task("softmax", function()
          local x = s * (LOG2E / math.sqrt(d.size))
          local new = max(mx, x:rowmax(r))
          local pr, alpha = exp2(x - new), exp2(mx - new)
          l:set(l * alpha + pr:rowsum(r))
          mx:set(new)
          return pr:to "f16", alpha
        end)
        p:task("rescale", function() o:set(o * alpha) end)
        o:add(p:mma("mma_pv", pr, p:load("load_v", V, {b, at, h, d})))
      end)
      local part, lse = p:task("divide", function() return (o / l):to "f16", mx + mr.log2(l) end)
      Part:store("store_part", part)
      Lse:store("store_lse", lse)
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
  small = {{b = 1, h = 2, m = 40, n = 150, d = 32, split = 2}, {b = 1, h = 1, m = 64, n = 256, d = 64, split = 4}},
  usual = {{b = 1, h = 32, m = 128, n = 8192, d = 128, split = 4}, {b = 4, h = 16, m = 16, n = 65536, d = 128, split = 16}},
  formula = function(t, sizes)
    return {O = function(b, i, h, d)
      local over, under = 0, 0
      for j = 0, sizes.n - 1 do
        local score = 0
        for x = 0, sizes.d - 1 do score = score + t.Q(b, i, h, x) * t.K(b, j, h, x) end
        local weight = math.exp(score / math.sqrt(sizes.d))
        over, under = over + weight * t.V(b, j, h, d), under + weight
      end
      return over / under
    end}
  end,
}
