-- block_sparse_attention: O[b,h,i,:] = sum over j of softmax_j(scale Q[b,h,i,:] . K[b,hk,j,:]) V[b,hk,j,:],
-- over the keys j of the blocks that the query's block lists: j // keys is Blocks[b, h, i // rows, t] for
-- a t < Count[b, h, i // rows]; hk = h // (h / hkv).
--
-- Guo et al., "Block Sparse Attention", 2024; Jiang et al., "MInference 1.0", 2024. A list names each
-- block once at most; what lies behind its Count is not read. Only the listed blocks are loaded and
-- multiplied. K and V are given as blocks: key j is [j // keys, j % keys], which is the same memory.
--
-- sizes    b batch, h heads, m queries, d head dim
-- options  n        keys (m)
--          hkv      heads of K and V; must divide h (h)
--          rows     queries per block; must divide m (128)
--          keys     keys per block; must divide n (64)
--          longest  blocks that a list has space for (as many as there are)
--          typical  blocks of a list that predictions assume (longest)
--          causal   query i sees the keys j <= i + n - m of its blocks; keys must be a power of two
--          scale    of the scores (1 / sqrt(d)); positive
--          dtype    of Q, K, V and O ("bf16")
-- A query that sees no key at all gets zeros.
local mr = require "millrace"
local max, min, exp2, where, rowmax, rowsum = mr.max, mr.min, mr.exp2, mr.where, mr.rowmax, mr.rowsum

local LOG2E <const> = 1.4426950408889634

return mr.program("block_sparse_attention", function(p)
  local b, h, m, d = p:axes("b", "h", "m", "d")
  local n, hkv = p:option("n", "integer") or m.size, p:axis("hkv", p.hkv or h.size)
  local rows, keys = p:axis("rows", p.rows or 128), p:axis("keys", p.keys or 64)
  p:check(h.size % hkv.size == 0, "hkv must divide h")
  p:check(m.size % rows.size == 0, "rows must divide m")
  p:check(n % keys.size == 0, "keys must divide n")
  local block = p:axis("block", m.size // rows.size)    -- of queries
  local blocks = p:axis("blocks", n // keys.size)
  local longest = p:axis("longest", p.longest or blocks.size)
  local key = p:axis("key", longest.size * keys.size)   -- of a list, one block after the other
  local dtype = p.dtype or "bf16"
  local to_log2 = p:option("scale", "number", 1 / math.sqrt(d.size)) * LOG2E
  local typical, causal = p:option("typical", "integer"), p:option("causal", "boolean")
  p:check(not causal or (keys.size & (keys.size - 1)) == 0, "with causal, keys must be a power of two")
  p:check(to_log2 > 0, "scale must be positive")
  p:check(not typical or typical >= 1, "typical must be at least 1")

  local Q, O = p:input("Q", {b, h, m, d}), p:output("O", {b, h, m, d})
  local K, V = p:input("K", {b, hkv, blocks, keys, d}), p:input("V", {b, hkv, blocks, keys, d})
  local Blocks = p:input("Blocks", {b, h, block, longest}, "i32")
  local Count = p:input("Count", {b, h, block}, "i32")
  p:batch(b, h, block)                                  -- one tile is (a part of) one block of queries

  local head, i = h // (h.size // hkv.size), block * rows.size + rows
  local q = p:load("load_q", Q, {b, h, i, d})
  local count = max(0, min(longest.size, p:load("load_count", Count)))
  local mx, l, o = p:carry("mx", {rows}, -math.huge), p:carry("l", {rows}, 0), p:carry("o", {rows, d}, 0)
  p:loop(key, {length = count * keys.size, typical = typical and typical * keys.size}, function()
    local listed = p:load("load_blocks", Blocks, {b, h, block, key // keys.size})
    local qk = p:mma("mma_qk", q, p:load("load_k", K, {b, head, listed, key % keys.size, d}))
    local pr, alpha = p:task("softmax", function()
      local s = qk
      if causal then
        local at = listed * keys.size + (key:index() & (keys.size - 1))
        local last = (block:index() * rows.size + rows:index()) + (n - m.size)
        s = where(at:le(last), s, -math.huge)
      end
      local new = max(mx, rowmax(s, key))
      local top = where(new:eq(-math.huge), 0, new) * to_log2
      local pr, alpha = exp2(s * to_log2 - top), exp2(mx * to_log2 - top)
      l:set(l * alpha + rowsum(pr, key))
      mx:set(new)
      return pr:to(dtype), alpha
    end)
    p:task("rescale", function() o:set(o * alpha) end)
    o:add(p:mma("mma_pv", pr, p:load("load_v", V, {b, head, listed, key % keys.size, d})))
  end)
  local out = p:task("finish", function() return where(l:gt(0), o / l, 0):to(dtype) end)
  O:store("store_o", out, {b, h, i, d})
end)
