-- O[b,h,:] = sum over j < Length[b] of softmax_j(scale (Q[b,h,:] . KV(b,j) + R[b,h,:] . P(b,j))) KV(b,j): one query of a sequence
-- against a cache of latent vectors KV and rotated parts P in pages, which all heads share: key j of sequence b is
-- [Table[b, j // page], j % page].
--
-- Decoding of DeepSeek-V2, V3 and R1 (FlashMLA). The keys are divided into `splits` parts, whose sums the second phase adds.
local mr = require "millrace"
local max, exp2, where, rowmax, rowsum = mr.max, mr.exp2, mr.where, mr.rowmax, mr.rowsum

local LOG2E <const> = 1.4426950408889634

return {
  program = mr.program("mla_paged_decoding", function(p)
    local b, h, n, d, r, page = p:axes("b", "h", "n", "d", "r", "page")
    local split, typical = p:axis("split", p:option("splits", "integer", 1)), p:option("typical", "integer")
    local pages = p:axis("pages", b.size * (n.size // page.size))
    local blocks = p:axis("blocks", n.size // page.size)
    p:check(n.size % (split.size * page.size) == 0, "splits must have complete pages")
    local key = p:axis("key", n.size // split.size)
    local scale = LOG2E / math.sqrt(d.size + r.size)

    local Q, R = p:input("Q", {b, h, d}), p:input("R", {b, h, r})
    local KV, P = p:input("KV", {pages, page, d}), p:input("P", {pages, page, r})
    local Table, Length = p:input("Table", {b, blocks}, "i32"), p:input("Length", {b}, "i32")
    local O = p:output("O", {b, h, d})

    local function attend(at, length)
      local q, rotated = p:load("load_q", Q), p:load("load_r", R)
      local mx, l, o = p:carry("mx", {h}, -1e30), p:carry("l", {h}, 0), p:carry("o", {h, d}, 0)
      p:loop(key, {length = length, typical = typical}, function()
        local index = p:load("load_table", Table, {b, at // page.size})
        local kv = p:load("load_kv", KV, {index, key % page.size, d})
        local s = p:carry("s", {h, key}, 0)
        s:add(p:mma("mma_qk", q, kv))
        s:add(p:mma("mma_rp", rotated, p:load("load_p", P, {index, key % page.size, r})))
        local pr, alpha = p:task("softmax", function()
          local s = s * scale
          local new = max(mx, rowmax(s, key))
          local pr, alpha = exp2(s - new), exp2(mx - new)
          l:set(l * alpha + rowsum(pr, key))
          mx:set(new)
          return pr:to "bf16", alpha
        end)
        p:task("rescale", function() o:set(o * alpha) end)
        o:add(p:mma("mma_pv", pr, kv))
      end)
      return mx, l, o
    end

    if split.size == 1 then
      p:batch(b)
      local _, l, o = attend(0 + key, p:load("load_length", Length))
      O:store("store_o", p:task("finish", function() return (o / max(l, 1e-30)):to "bf16" end))
      return
    end
    local Mx, L = p:temp("Mx", {b, h, split}, "f32"), p:temp("L", {b, h, split}, "f32")
    local Part = p:temp("Part", {b, h, split, d}, "f32")
    p:phase("parts", function()
      p:batch(b, split)
      local mx, l, o = attend(split * key.size + key, p:load("load_length", Length) - split * key.size)
      Mx:store("store_mx", mx)
      L:store("store_l", l)
      Part:store("store_part", o)
    end)
    p:phase("combine", function()
      local head = p:axis("head", h.size)               -- h, one at a time
      p:batch(b, head)
      local mx, l = p:load("load_mx", Mx, {b, head, split}), p:load("load_l", L, {b, head, split})
      local o = p:load("load_part", Part, {b, head, split, d})
      O:store("store_o", p:task("combine", function()
        local weight = where(l:gt(0), exp2(mx - rowmax(mx, split)), 0)
        return (rowsum(o * weight, split) / max(rowsum(l * weight, split), 1e-30)):to "bf16"
      end), {b, head, d})
    end)
  end),
  small = {
    {b = 2, h = 64, n = 128, d = 64, r = 16, page = 64},
    {b = 3, h = 16, n = 64, d = 32, r = 16, page = 16, splits = 2},
  },
  usual = {
    {b = 128, h = 128, n = 8448, d = 512, r = 64, page = 64, typical = 8320},
    {b = 4, h = 128, n = 8192, d = 512, r = 64, page = 64, splits = 16, typical = 8192},
  },
  fill = {
    Table = function(sizes, b, j)
      local blocks = sizes.n // sizes.page
      return (b * blocks + j) * 5 % (sizes.b * blocks)
    end,
    Length = function(sizes, b) return sizes.n - 13 * b % (sizes.n // 2) end,
  },
  formula = function(T, sizes)
    local known = {}
    local function row(b, h)
      local name = ("%d %d"):format(b, h)
      if known[name] then return known[name] end
      local all = {sum = 0}
      for j = 0, T.Length(b) - 1 do
        local page, slot, s = T.Table(b, j // sizes.page), j % sizes.page, 0
        for d = 0, sizes.d - 1 do s = s + T.Q(b, h, d) * T.KV(page, slot, d) end
        for r = 0, sizes.r - 1 do s = s + T.R(b, h, r) * T.P(page, slot, r) end
        all[j] = math.exp(s / math.sqrt(sizes.d + sizes.r))
        all.sum = all.sum + all[j]
      end
      known[name] = all
      return all
    end
    return {O = function(b, h, d)
      local weight, sum = row(b, h), 0
      for j = 0, T.Length(b) - 1 do
        sum = sum + weight[j] * T.KV(T.Table(b, j // sizes.page), j % sizes.page, d)
      end
      return sum / weight.sum
    end}
  end,
}
