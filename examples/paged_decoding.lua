-- paged_decoding: O[b,h,:] = sum over j < length(b) of softmax_j(scale Q[b,h,:] . K(b,j)) V(b,j),
-- with one query a head against a cache in pages: key j of sequence b is
-- K[Table[b, j // page], j % page, hk, :], hk = h // (h / hkv), and V alike.
--
-- Kwon et al., "Efficient memory management for large language model serving with
-- PagedAttention", 2023. Length[b] (context_lens) keys of a sequence count, at least 1 and at
-- most n; what lies behind them is not read, so that the table may have anything there. The keys
-- are split over the machine, as in flash_decoding: a split without keys that count has a
-- maximum of -1e30, and so the weight 0 when the splits are combined.
--
-- sizes    b batch, h heads, n keys of a sequence at most, d head dim
-- options  hkv     heads of K and V; must divide h (h)
--          page    keys of a page; must divide n (16)
--          pages   in the cache (as many as all sequences take at most)
--          splits  parts of the keys (so many that some 500 tiles are there to share, of
--                  128 keys or more, and 4 at least). 1: there is no second phase
--          positions  true: instead of Length there is Pos[b], where the query is: keys 0 to Pos[b] count
--          typical keys of a sequence that predictions assume (n)
--          scale   of the scores (1 / sqrt(d)); positive
--          dtype   of Q, K, V and O ("bf16")
local mr = require "millrace"
local max, min, exp2, rowmax, rowsum = mr.max, mr.min, mr.exp2, mr.rowmax, mr.rowsum

local LOG2E <const>, NOTHING <const> = 1.4426950408889634, -1e30

local function parts(tiles, keys)
  local each = 128
  while each < keys / 4 and 512 * each < keys * tiles do each = 2 * each end
  return math.ceil(keys / each)
end

return mr.program("paged_decoding", function(p)
  local b, h, n, d = p:axes("b", "h", "n", "d")
  local hkv, page = p:axis("hkv", p.hkv or h.size), p:axis("page", p.page or 16)
  p:check(h.size % hkv.size == 0, "hkv must divide h")
  p:check(n.size % page.size == 0, "page must divide n")
  local blocks = p:axis("blocks", n.size // page.size)  -- pages of a sequence
  local pages = p:axis("pages", p.pages or b.size * blocks.size)
  local split = p:axis("splits", p.splits or parts(b.size * hkv.size, n.size))
  local g = p:axis("g", h.size // hkv.size)             -- a query of a kv head
  local least = math.ceil(n.size / split.size)          -- keys of a split: complete pages, and so
  local unit = page.size                                -- many that large tiles do not cross its end
  while unit < math.min(least, 128) do unit = 2 * unit end
  local per = math.ceil(least / unit) * unit
  local key = p:axis("key", per)
  local dtype = p.dtype or "bf16"
  local wide = dtype == "f64" and "f64" or "f32"
  local to_log2 = p:option("scale", "number", 1 / math.sqrt(d.size)) * LOG2E
  local typical = p:option("typical", "integer")
  p:check(to_log2 > 0, "scale must be positive")
  p:check(not typical or typical >= 1, "typical must be at least 1")

  local Q, O = p:input("Q", {b, h, d}), p:output("O", {b, h, d})
  local K, V = p:input("K", {pages, page, hkv, d}), p:input("V", {pages, page, hkv, d})
  local positions = p:option("positions", "boolean")
  local Table, Length = p:input("Table", {b, blocks}, "i32"), p:input(positions and "Pos" or "Length", {b}, "i32")
  local Mx, L, Part
  if split.size > 1 then
    Mx, L = p:temp("Mx", {b, h, split}, wide), p:temp("L", {b, h, split}, wide)
    Part = p:temp("Part", {b, h, split, d}, wide)
  end

  p:phase("split", function()
    p:batch(b, hkv, split)
    local head, at = hkv * g.size + g, split * per + key
    local q, last = p:load("load_q", Q, {b, head, d}), p:load(positions and "load_pos" or "load_length", Length)
    local length = max(1, min(n.size, positions and last + 1 or last))
    local mx, l, o = p:carry("mx", {g}, NOTHING), p:carry("l", {g}, 0), p:carry("o", {g, d}, 0)
    p:loop(key, {length = length - split * per, typical = typical}, function()
      local index = p:load("load_table", Table, {b, at // page.size})
      local qk = p:mma("mma_qk", q, p:load("load_k", K, {index, key % page.size, hkv, d}))
      local pr, alpha = p:task("softmax", function()
        local s = qk * to_log2
        local new = max(mx, rowmax(s, key))
        local pr, alpha = exp2(s - new), exp2(mx - new)
        l:set(l * alpha + rowsum(pr, key))
        mx:set(new)
        return pr:to(dtype), alpha
      end)
      p:task("rescale", function() o:set(o * alpha) end)
      o:add(p:mma("mma_pv", pr, p:load("load_v", V, {index, key % page.size, hkv, d})))
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
      local weight = exp2(mx - rowmax(mx, split))
      return (rowsum(o * weight, split) / rowsum(l * weight, split)):to(dtype)
    end))
  end)
end)
