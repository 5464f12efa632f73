-- mla_decoding: O[b,h,:] = sum over j of softmax_j(scale (Q[b,h,:] . C[b,j,:] + R[b,h,:] . P[b,j,:])) C[b,j,:]:
-- one query a head, against a cache of latent vectors that all heads share.
--
-- DeepSeek-V2's multi-head latent attention (2024) with the projections of keys and values absorbed
-- into Q and into what follows O: key j is the latent vector C[b,j] of d elements with a rotated part P[b,j] of r,
-- and its value is C[b,j] again, so that a tile of the cache is loaded once for both products. The
-- cache is split over the machine, as in flash_decoding.
--
-- sizes    b batch, h heads, n keys
-- options  d       latent dim (512)
--          r       rotated dim (64)
--          splits  parts of the keys (so many that some 132 tiles of heads are there to share)
--          scale   of the scores (1 / sqrt(128 + r), of the dims before the projections are absorbed)
--          dtype   of Q, R, C, P and O ("bf16")
local mr = require "millrace"
local max, exp2, where, rowmax, rowsum = mr.max, mr.exp2, mr.where, mr.rowmax, mr.rowsum

local LOG2E <const> = 1.4426950408889634

local function parts(tiles, keys)
  return math.max(1, math.min(math.ceil(132 / tiles), math.ceil(keys / 256)))
end

return mr.program("mla_decoding", function(p)
  local b, h, n = p:axes("b", "h", "n")
  local d, r = p:axis("d", p.d or 512), p:axis("r", p.r or 64)
  local split = p:axis("splits", p.splits or parts(b.size * math.ceil(h.size / 64), n.size))
  local per = math.ceil(math.ceil(n.size / split.size) / 64) * 64
  local key, head = p:axis("key", per), p:axis("head", h.size)  -- h, one at a time
  local dtype = p.dtype or "bf16"
  local wide = dtype == "f64" and "f64" or "f32"
  local to_log2 = p:option("scale", "number", 1 / math.sqrt(128 + r.size)) * LOG2E
  p:check(to_log2 > 0, "scale must be positive")

  local Q, R, O = p:input("Q", {b, h, d}), p:input("R", {b, h, r}), p:output("O", {b, h, d})
  local C, P = p:input("C", {b, n, d}), p:input("P", {b, n, r})
  local Mx, L = p:temp("Mx", {b, split, h}, wide), p:temp("L", {b, split, h}, wide)
  local Part = p:temp("Part", {b, split, h, d}, wide)

  p:phase("split", function()
    p:batch(b, split)
    local ragged = per * split.size ~= n.size
    local at = split * per + key
    local q, rq = p:load("load_q", Q), p:load("load_r", R)
    local mx, l, o = p:carry("mx", {h}, -math.huge), p:carry("l", {h}, 0), p:carry("o", {h, d}, 0)
    p:loop(key, {upto = ragged and n.size - 1 - split * per}, function()
      local c = p:load("load_c", C, {b, at, d})
      local s = p:carry("s", {h, key}, 0)
      s:add(p:mma("mma_qc", q, c))
      s:add(p:mma("mma_rp", rq, p:load("load_p", P, {b, at, r})))
      local pr, alpha = p:task("softmax", function()
        local s = s * to_log2
        if ragged then s = where((split:index() * per + key:index()):lt(n.size), s, -math.huge) end
        local new = max(mx, rowmax(s, key))
        local pr, alpha = exp2(s - new), exp2(mx - new)
        l:set(l * alpha + rowsum(pr, key))
        mx:set(new)
        return pr:to(dtype), alpha
      end)
      p:task("rescale", function() o:set(o * alpha) end)
      o:add(p:mma("mma_pc", pr, c))
    end)
    Part:store("store_part", o)
    Mx:store("store_mx", mx)
    L:store("store_l", l)
  end)

  p:phase("combine", function()
    p:batch(b)
    local mx, l = p:load("load_mx", Mx, {b, split, head}), p:load("load_l", L, {b, split, head})
    local o = p:load("load_part", Part, {b, split, head, d})
    O:store("store_o", p:task("combine", function()
      local weight = exp2(mx - rowmax(mx, split))       -- 0 for a split without keys
      return (rowsum(o * weight, split) / rowsum(l * weight, split)):to(dtype)
    end), {b, head, d})
  end)
end)
