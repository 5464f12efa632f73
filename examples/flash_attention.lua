-- flash_attention: O[b,h,i,:] = sum over j of softmax_j(scale Q[b,h,i,:] . K[b,hk,j,:]) V[b,hk,j,:]
-- with hk = h // (h / hkv): grouped queries share the keys and values of a head.
--
-- One pass over the keys with a running maximum `mx` and sum `l` of each row (Milakov and
-- Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al.,
-- "FlashAttention", 2022). Exponentials are to base 2: exp(scale s) = exp2(to_log2 s).
--
-- sizes    b batch, h heads, m queries, n keys, d head dim
-- options  n        keys (m)
--          hkv      heads of K and V; must divide h (h)
--          causal   query i sees the keys j <= i + n - m: the last query sees the last key
--          window   query i sees the keys j > i + n - m - window
--          softcap  scores become softcap * tanh(score / softcap)
--          scale    of the scores (1 / sqrt(d)); positive
--          nmax     rows that K and V have for each head, as caches do; at least n (n)
--          o        axis order of O in memory: "bhmd" (default), or "bmhd", which a product of rows takes
--          dtype    of all tensors ("bf16") but L, which lse=true adds: logarithms of the softmax's sums, f32, for attention_backward
-- A query that sees no key at all gets zeros.
local mr = require "millrace"
local max, exp2, where, rowmax, rowsum = mr.max, mr.exp2, mr.where, mr.rowmax, mr.rowsum

local LOG2E <const> = 1.4426950408889634

return mr.program("flash_attention", function(p)
  local b, h, m, d = p:axes("b", "h", "m", "d")
  local n, hkv = p:axis("n", p.n or m.size), p:axis("hkv", p.hkv or h.size)
  local dtype = p.dtype or "bf16"
  local scale = p:option("scale", "number", 1 / math.sqrt(d.size))
  local softcap, window = p:option("softcap", "number"), p:option("window", "integer")
  local causal, lse = p:option("causal", "boolean"), p:option("lse", "boolean")
  p:check(h.size % hkv.size == 0, "hkv must divide h")
  p:check(scale > 0, "scale must be positive")
  p:check(not softcap or softcap > 0, "softcap must be positive")
  p:check(not window or window >= 1, "window must be an integer from 1")

  local order = ({bhmd = {b, h, m, d}, bmhd = {b, m, h, d}})[p.o or "bhmd"]
  local rows = p:option("nmax", "integer")
  p:check(not rows or rows >= n.size, "nmax must be at least n")
  local keys = rows and rows > n.size and p:axis("nmax", rows) or n
  local Q, O = p:input("Q", {b, h, m, d}), p:output("O", p:check(order, 'o must be "bhmd" or "bmhd"'))
  local K, V, L = p:input("K", {b, hkv, keys, d}), p:input("V", {b, hkv, keys, d}), lse and p:output("L", {b, h, m}, "f32")
  p:batch(b, h)                                         -- one tile is one batch and one head

  local head = h // (h.size // hkv.size)
  local shift = n.size - m.size                         -- query i stands at key i + shift
  local first = window and m + (shift - window + 1)     -- least and greatest key of a query
  local last = causal and m + shift
  -- Can a row have seen no key yet where a tile was visited? Its maximum is -inf then.
  local blind = window or causal and shift < 0
  local to_log2 = (softcap or scale) * LOG2E

  local q = p:load("load_q", Q)
  local mx, l, o = p:carry("mx", {m}, -math.huge), p:carry("l", {m}, 0), p:carry("o", {m, d}, 0)
  p:loop(n, {from = first, upto = last}, function()
    local qk = p:mma("mma_qk", q, p:load("load_k", K, {b, head, n, d}))
    local pr, alpha = p:task("softmax", function()
      local s = softcap and mr.tanh(qk * (scale / softcap)) or qk
      local i, j = shift == 0 and m:index() or m:index() + shift, n:index()
      if last then s = where(j:le(i), s, -math.huge) end
      if first then s = where(j:gt(i - window), s, -math.huge) end
      local new = max(mx, rowmax(s, n))
      local top = (blind and where(new:eq(-math.huge), 0, new) or new) * to_log2
      local pr, alpha = exp2(s * to_log2 - top), exp2(mx * to_log2 - top)
      l:set(l * alpha + rowsum(pr, n))
      mx:set(new)
      return pr:to(dtype), alpha
    end)
    p:task("rescale", function() o:set(o * alpha) end)
    o:add(p:mma("mma_pv", pr, p:load("load_v", V, {b, head, n, d})))
  end)
  local out, sums = p:task("normalise", function()
    local by = blind and where(l:eq(0), 1, l) or l
    local top = lse and (blind and where(mx:eq(-math.huge), 0, mx) or mx)
    return (o * (1 / by)):to(dtype), lse and top * (softcap or scale) + mr.log(by) or nil
  end)
  O:store("store_o", out)
  if lse then L:store("store_l", sums) end
end)
