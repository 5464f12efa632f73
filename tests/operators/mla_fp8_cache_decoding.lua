-- O[b,h,:] = sum over j of softmax_j(scale (Q[b,h,:] . KV[b,j,:] + R[b,h,:] . P[b,j,:])) KV[b,j,:]: one query of a sequence against
-- latent vectors KV in fp8 and rotated parts P in bf16, which all heads share.
--
-- Decoding of DeepSeek-V2 and V3 with a quantised cache: the products are of bf16, to which a task converts KV.
local mr = require "millrace"
local max, exp2, rowmax, rowsum = mr.max, mr.exp2, mr.rowmax, mr.rowsum

return {
  program = mr.program("mla_fp8_cache_decoding", function(p)
    local b, h, n, d, r = p:axes("b", "h", "n", "d", "r")
    local scale = 1.4426950408889634 / math.sqrt(d.size + r.size)
    local Q, R = p:input("Q", {b, h, d}), p:input("R", {b, h, r})
    local KV, P = p:input("KV", {b, n, d}, "e4m3"), p:input("P", {b, n, r})
    local O = p:output("O", {b, h, d})
    p:batch(b)
    local q, rotated = p:load("load_q", Q), p:load("load_r", R)
    local mx, l, o = p:carry("mx", {h}, -1e30), p:carry("l", {h}, 0), p:carry("o", {h, d}, 0)
    p:loop(n, function()
      local packed = p:load("load_kv", KV)
      local kv = p:task("dequant", function() return packed:to "bf16" end)
      local s = p:carry("s", {h, n}, 0)
      s:add(p:mma("mma_qk", q, kv))
      s:add(p:mma("mma_rp", rotated, p:load("load_p", P)))
      local pr, alpha = p:task("softmax", function()
        local s = s * scale
        local new = max(mx, rowmax(s, n))
        local pr, alpha = exp2(s - new), exp2(mx - new)
        l:set(l * alpha + rowsum(pr, n))
        mx:set(new)
        return pr:to "bf16", alpha
      end)
      p:task("rescale", function() o:set(o * alpha) end)
      o:add(p:mma("mma_pv", pr, kv))
    end)
    O:store("store_o", p:task("finish", function() return (o / l):to "bf16" end))
  end),
  small = {{b = 1, h = 64, n = 128, d = 64, r = 16}, {b = 2, h = 24, n = 72, d = 32, r = 16}},
  usual = {{b = 132, h = 128, n = 8192, d = 512, r = 64}},
  formula = function(T, sizes)
    local known = {}
    local function row(b, h)
      local name = ("%d %d"):format(b, h)
      if known[name] then return known[name] end
      local all = {sum = 0}
      for j = 0, sizes.n - 1 do
        local s = 0
        for d = 0, sizes.d - 1 do s = s + T.Q(b, h, d) * T.KV(b, j, d) end
        for r = 0, sizes.r - 1 do s = s + T.R(b, h, r) * T.P(b, j, r) end
        all[j] = math.exp(s / math.sqrt(sizes.d + sizes.r))
        all.sum = all.sum + all[j]
      end
      known[name] = all
      return all
    end
    return {O = function(b, h, d)
      local weight, sum = row(b, h), 0
      for j = 0, sizes.n - 1 do sum = sum + weight[j] * T.KV(b, j, d) end
      return sum / weight.sum
    end}
  end,
}
