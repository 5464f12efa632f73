-- O[b,h,:] = sum over j of softmax_j(scale Q[b,h,:] . K(b,j,hk)) V(b,j,hk), one query a head, over the keys j < Length[b] of the blocks
-- j // size that are chosen for hk = h // (hq / hkv): those that Blocks[b,hk,:] lists (less than 0 is none), or that Mask[b,hk,:] keeps.
-- K(b,j,hk) is K[b,j,hk,:], or with pages K[Table[b,j // page],j % page,hk,:], and V alike.
--
-- Decoding with long contexts, where a gate chooses for each kv head the blocks that matter (SeerAttention-R, Quest). The lists are split
-- over the machine, and the parts combined.
local mr = require "millrace"
local max, exp2, where, rowmax, rowsum = mr.max, mr.exp2, mr.where, mr.rowmax, mr.rowsum

local LOG2E <const> = 1.4426950408889634

-- Of kind "list", "mask" or "pages".
local function program(name, kind)
  return mr.program(name, function(p)
    local b, hq, hkv, n, d = p:axes("b", "hq", "hkv", "n", "d")
    local g, key, split = p:axis("g", hq.size // hkv.size), p:axis("key", p.size), p:axis("split", p.splits)
    local listed = kind == "mask" and -(-n.size // p.size) or p.s
    local s, r = p:axis("s", listed), p:axis("r", -(-listed // split.size))       -- blocks of a list, of a split
    local dv = p:axis("dv", p.dv or d.size)
    local Q, O = p:input("Q", {b, hq, d}), p:output("O", {b, hq, dv})
    local Length, K, V, Table, Blocks, Mask = p:input("Length", {b}, "i32")
    if kind == "pages" then
      local pages, page, slots = p:axis("pages", p.pages), p:axis("page", p.page), p:axis("slots", -(-n.size // p.page))
      K, V = p:input("K", {pages, page, hkv, d}), p:input("V", {pages, page, hkv, dv})
      Table = p:input("Table", {b, slots}, "i32")
    else
      K, V = p:input("K", {b, n, hkv, d}), p:input("V", {b, n, hkv, dv})
    end
    if kind == "mask" then
      Mask = p:input("Mask", {b, hkv, s}, "bool")
    else
      Blocks = p:input("Blocks", {b, hkv, s}, "i32")
    end
    local Part, Sum = p:temp("Part", {b, hq, split, dv}, "f32"), p:temp("Sum", {b, hq, split}, "f32")
    local Top = p:temp("Top", {b, hq, split}, "f32")

    p:phase("parts", function()
      p:batch(b, hkv, split)
      local head, step = hkv * g.size + g, split * r.size + r
      local q, length = p:load("load_q", Q, {b, head, d}), p:load("load_length", Length)
      local mx, l, o = p:carry("mx", {g}, -1e30), p:carry("l", {g}, 0), p:carry("o", {g, dv}, 0)
      local function chosen()
        local at = split:index() * r.size + r:index()
        if kind == "mask" then return p:load("load_mask", Mask, {b, hkv, step}) & (at * p.size):lt(p:load(Length)) end
        return p:load("load_chosen", Blocks, {b, hkv, step}):ge(0) & at:lt(s.size)
      end
      p:loop(r, {when = chosen, typical = p.typical}, function()
        local block, row, k, v = nil, step * p.size, nil, nil
        if kind ~= "mask" then block = p:load("load_block", Blocks, {b, hkv, step}) end
        if kind == "list" then row = block * p.size end
        if kind == "pages" then
          local each = p.page // p.size                                           -- blocks of a page
          local at, first = p:load("load_table", Table, {b, block // each}), block % each * p.size
          k = p:load("load_k", K, {at, first + key, hkv, d})
          v = p:load("load_v", V, {at, first + key, hkv, dv})
        else
          k, v = p:load("load_k", K, {b, row + key, hkv, d}), p:load("load_v", V, {b, row + key, hkv, dv})
        end
        local qk = p:mma("mma_qk", q, k)
        local pr, alpha = p:task("softmax", function()
          local at = (block or split:index() * r.size + r:index()) * p.size + key:index()
          local x = where(at:lt(length), qk * (LOG2E / math.sqrt(d.size)), -math.huge)
          local new = max(mx, x:rowmax(key))
          local pr, alpha = exp2(x - new), exp2(mx - new)
          l:set(l * alpha + pr:rowsum(key))
          mx:set(new)
          return pr:to "bf16", alpha
        end)
        p:task("rescale", function() o:set(o * alpha) end)
        o:add(p:mma("mma_pv", pr, v))
      end)
      Part:store("store_part", o, {b, head, split, dv})
      Sum:store("store_sum", l, {b, head, split})
      Top:store("store_top", mx, {b, head, split})
    end)

    p:phase("combine", function()
      p:batch(b, hq)
      local part, sum, top = p:load("load_part", Part), p:load("load_sum", Sum), p:load("load_top", Top)
      O:store("store_o", p:task("combine", function()
        local weight = exp2(top - rowmax(top, split))
        return (rowsum(part * weight, split) / rowsum(sum * weight, split)):to "bf16"
      end))
    end)
  end)
end

local function length(sizes, b) return sizes.n - (b * 37) % (sizes.n // 2) end

-- Block i of a list: the last one, and some before it, in descending order.
local function block(sizes, b, h, i)
  local last = (length(sizes, b) - 1) // sizes.size
  if i > 0 and (b + h + i) % 7 == 0 then return -1 end
  return i <= last and last - i * (last // sizes.s > 1 and last // sizes.s or 1) or -1
end

local function formula(kind)
  return function(t, sizes)
    local function chosen(b, hk, j)
      if j >= t.Length(b) then return false end
      if kind == "mask" then
        local kept = t.Mask(b, hk, j // sizes.size)
        return kept == 1 or kept == true
      end
      for i = 0, sizes.s - 1 do
        if t.Blocks(b, hk, i) == j // sizes.size then return true end
      end
      return false
    end
    local function at(array, b, j, hk, x)
      if kind ~= "pages" then return array(b, j, hk, x) end
      return array(t.Table(b, j // sizes.page), j % sizes.page, hk, x)
    end
    return {O = function(b, h, d)
      local over, under, hk = 0, 0, h // (sizes.hq // sizes.hkv)
      for j = 0, sizes.n - 1 do
        if chosen(b, hk, j) then
          local score = 0
          for x = 0, sizes.d - 1 do score = score + t.Q(b, h, x) * at(t.K, b, j, hk, x) end
          local weight = math.exp(score / math.sqrt(sizes.d))
          over, under = over + weight * at(t.V, b, j, hk, d), under + weight
        end
      end
      return over / under
    end}
  end
end

return {
  {
    name = "sparse_gqa_decoding",
    program = program("sparse_gqa_decoding", "list"),
    small = {
      {b = 2, hq = 8, hkv = 2, n = 150, d = 32, size = 16, s = 5, splits = 2},
      {b = 2, hq = 16, hkv = 1, n = 256, d = 64, dv = 32, size = 32, s = 4, splits = 2},
    },
    usual = {
      {b = 8, hq = 32, hkv = 8, n = 8192, d = 128, size = 32, s = 52, splits = 4},
      {b = 64, hq = 32, hkv = 8, n = 8192, d = 128, size = 32, s = 52, splits = 1},
    },
    fill = {Length = length, Blocks = block},
    formula = formula "list",
  },
  {
    name = "sparse_gqa_decoding_mask",
    program = program("sparse_gqa_decoding_mask", "mask"),
    small = {{b = 2, hq = 8, hkv = 2, n = 150, d = 32, size = 16, splits = 2}},
    usual = {
      {b = 8, hq = 32, hkv = 8, n = 8192, d = 128, size = 32, splits = 4, typical = 13},
      {b = 64, hq = 32, hkv = 8, n = 8192, d = 128, size = 32, splits = 1, typical = 52},
    },
    fill = {
      Length = length,
      Mask = function(sizes, b, h, i) return ((length(sizes, b) - 1) // sizes.size - i) % (3 + h) == 0 and 1 or 0 end,
    },
    formula = formula "mask",
  },
  {
    name = "sparse_gqa_decoding_pages",
    program = program("sparse_gqa_decoding_pages", "pages"),
    small = {{b = 2, hq = 8, hkv = 2, n = 150, d = 32, size = 16, s = 5, splits = 2, page = 32, pages = 12}},
    usual = {{b = 8, hq = 32, hkv = 8, n = 8192, d = 128, size = 64, s = 128, splits = 4, page = 256, pages = 1024}},
    fill = {
      Length = length, Blocks = block,
      Table = function(sizes, b, i) return (b + i * sizes.b) * 5 % sizes.pages end,
    },
    formula = formula "pages",
  },
}
