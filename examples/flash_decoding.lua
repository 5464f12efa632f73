-- flash_decoding: O[b,h,:] = sum over j of softmax_j(scale Q[b,h,:] . K[b,hk,j,:]) V[b,hk,j,:]
-- with hk = h // (h / hkv): one query a head, against a long cache.
--
-- The keys are split over the machine (Dao et al., "Flash-Decoding for long-context
-- inference", 2023). Phase "split" handles one part of the keys for all queries of a kv
-- head, which are the rows of its tile, and leaves a partial output with the maximum and
-- the sum of its softmax. Phase "combine" weighs the parts by the log-sum-exp rule:
-- O = sum_s 2^(mx_s - mx) o_s / sum_s 2^(mx_s - mx) l_s, where mx = max_s mx_s.
--
-- sizes    b batch, h heads, n keys, d head dim
-- options  hkv     heads of K and V; must divide h (h)
--          splits  parts of the keys (so many that some 500 tiles are there to share, of
--                  128 keys or more, and 4 at least); need not divide n. 1: there is no second phase
--          positions  true: of the n keys of a cache those of sequence b count that are not behind
--                  its query, which is at Pos[b]: keys 0 to Pos[b], at least one (false: all n)
--          typical keys of a sequence that predictions assume, if positions (n)
--          scale   of the scores (1 / sqrt(d)); positive
--          dtype   of Q, K, V and O ("bf16")
local mr = require "millrace"
local max, min, exp2, where, rowmax, rowsum = mr.max, mr.min, mr.exp2, mr.where, mr.rowmax, mr.rowsum

local LOG2E <const> = 1.4426950408889634
local NOTHING <const> = -1e30                           -- maximum of a part of which no key counts: its weight will be 0

local function parts(tiles, keys)
  local each = 128
  while each < keys / 4 and 512 * each < keys * tiles do each = 2 * each end
  return math.ceil(keys / each)
end

return mr.program("flash_decoding", function(p)
  local b, h, n, d = p:axes("b", "h", "n", "d")
  local hkv = p:axis("hkv", p.hkv or h.size)
  local split = p:axis("splits", p.splits or parts(b.size * hkv.size, n.size))
  p:check(h.size % hkv.size == 0, "hkv must divide h")
  local g = p:axis("g", h.size // hkv.size)             -- a query of a kv head
  local least = math.ceil(n.size / split.size)          -- keys of a split, so many that tiles
  local unit = 1                                        -- of a power of two do not cross its end
  while unit < math.min(least, 128) do unit = 2 * unit end
  local per = math.ceil(least / unit) * unit
  local key = p:axis("key", per)
  local dtype = p.dtype or "bf16"
  local wide = dtype == "f64" and "f64" or "f32"
  local to_log2 = p:option("scale", "number", 1 / math.sqrt(d.size)) * LOG2E
  p:check(to_log2 > 0, "scale must be positive")
  local typical = p:option("typical", "integer")
  p:check(not typical or typical >= 1, "typical must be at least 1")

  local Q, O = p:input("Q", {b, h, d}), p:output("O", {b, h, d})
  local K, V = p:input("K", {b, hkv, n, d}), p:input("V", {b, hkv, n, d})
  local Pos = p:option("positions", "boolean") and p:input("Pos", {b}, "i32")
  local Mx, L, Part
  if split.size > 1 then
    Mx, L = p:temp("Mx", {b, h, split}, wide), p:temp("L", {b, h, split}, wide)
    Part = p:temp("Part", {b, h, split, d}, wide)
  end

  p:phase("split", function()
    p:batch(b, hkv, split)
    local ragged = per * split.size ~= n.size           -- the last split has fewer keys, or none
    local head, at = hkv * g.size + g, split * per + key
    local q = p:load("load_q", Q, {b, head, d})
    local length = Pos and max(1, min(n.size, p:load("load_pos", Pos) + 1))
    local mx, l, o = p:carry("mx", {g}, Pos and NOTHING or -math.huge), p:carry("l", {g}, 0), p:carry("o", {g, d}, 0)
    local bounds = Pos and {length = length - split * per, typical = typical}
      or {upto = ragged and n.size - 1 - split * per}
    p:loop(key, bounds, function()
      local qk = p:mma("mma_qk", q, p:load("load_k", K, {b, hkv, at, d}))
      local pr, alpha = p:task("softmax", function()
        local s = qk * to_log2
        if ragged and not Pos then s = where((split:index() * per + key:index()):lt(n.size), s, -math.huge) end
        local new = max(mx, rowmax(s, key))
        local pr, alpha = exp2(s - new), exp2(mx - new) -- the first key of a visited tile exists
        l:set(l * alpha + rowsum(pr, key))
        mx:set(new)
        return pr:to(dtype), alpha
      end)
      p:task("rescale", function() o:set(o * alpha) end)
      o:add(p:mma("mma_pv", pr, p:load("load_v", V, {b, hkv, at, d})))
    end)
    if split.size == 1 then                             -- nothing to combine
      O:store("store_o", p:task("normalise", function() return (o / l):to(dtype) end), {b, head, d})
      return
    end
    Part:store("store_part", o, {b, head, split, d})
    Mx:store("store_mx", mx, {b, head, split})
    L:store("store_l", l, {b, head, split})
  end)

  if split.size == 1 then return end
  p:phase("combine", function()
    p:batch(b, h)
    local mx, l, o = p:load("load_mx", Mx), p:load("load_l", L), p:load("load_part", Part)
    O:store("store_o", p:task("combine", function()
      local weight = exp2(mx - rowmax(mx, split))       -- 0 for a split without keys
      return (rowsum(o * weight, split) / rowsum(l * weight, split)):to(dtype)
    end))
  end)
end)
