-- O[b,h,i,:] = sum over j of softmax_j(scale Q[b,h,i,:] . K[b,h,j,:]) V[b,h,j,:] for the queries i of a block i // size, over the keys
-- j <= i of the runs of `size` keys that begin at Start[b,h,i // size,:Runs[b,h,i // size]], and the single keys
-- Column[b,h,i // size,:Columns[b,h,i // size]], which are before the block.
--
-- MInference, "vertical-slash": long prompts attend along some diagonals, which are runs of keys for a block of queries, and to some
-- columns, whose rows of K and V are gathered one by one.
local mr = require "millrace"
local max, exp2, where = mr.max, mr.exp2, mr.where

local LOG2E <const> = 1.4426950408889634

-- Run i of block mb: its own, and others before that, which need not begin at a multiple of the size.
local function start(sizes, b, h, mb, i) return mb * sizes.size - i * (sizes.size + 3 + h) end

local function runs(sizes, b, h, mb) return math.min(mb * sizes.size // (sizes.size + 3 + h) + 1, sizes.s - (b + h) % 2) end

-- Columns are in the first half of the keys before the block.
local function columns(sizes, b, h, mb) return math.min(sizes.c, (mb + b) * sizes.size // 5) end

return {
  program = mr.program("vertical_slash_attention", function(p)
    local b, h, m, s, c, d = p:axes("b", "h", "m", "s", "c", "d")                 -- up to s runs, c columns
    local size = p.size
    local mb, i, j = p:axis("mb", -(-m.size // size)), p:axis("i", size), p:axis("j", size)
    local Q, K, V = p:input("Q", {b, h, m, d}), p:input("K", {b, h, m, d}), p:input("V", {b, h, m, d})
    local Runs, Start = p:input("Runs", {b, h, mb}, "i32"), p:input("Start", {b, h, mb, s}, "i32")
    local Columns, Column = p:input("Columns", {b, h, mb}, "i32"), p:input("Column", {b, h, mb, c}, "i32")
    local O = p:output("O", {b, h, m, d})
    p:batch(b, h, mb)
    local query = mb * size + i
    local q = p:load("load_q", Q, {b, h, query, d})
    local mx, l, o = p:carry("mx", {i}, -1e30), p:carry("l", {i}, 0), p:carry("o", {i, d}, 0)
    local function attend(name, row, over, mask)
      local qk = p:mma("mma_qk_" .. name, q, p:load("load_k_" .. name, K, {b, h, row, d}))
      local pr, alpha = p:task("softmax_" .. name, function()
        local x = qk * (LOG2E / math.sqrt(d.size))
        if mask then x = where(mask(), x, -math.huge) end
        local new = max(mx, x:rowmax(over))
        local pr, alpha = exp2(x - new), exp2(mx - new)
        l:set(l * alpha + pr:rowsum(over))
        mx:set(new)
        return pr:to "bf16", alpha
      end)
      p:task("rescale_" .. name, function() o:set(o * alpha) end)
      o:add(p:mma("mma_pv_" .. name, pr, p:load("load_v_" .. name, V, {b, h, row, d})))
    end
    p:loop(s, {batch = true, length = p:load(Runs), typical = p.typical_s}, function()
      local first = p:load("load_start", Start)
      attend("run", first + j, j, function() return (first + j:index()):le(mb:index() * size + i:index()) end)
    end)
    p:loop(c, {length = p:load(Columns), typical = p.typical_c}, function()
      attend("column", p:load("load_column", Column), c)
    end)
    O:store("store_o", p:task("finish", function() return (o / l):to "bf16" end), {b, h, query, d})
  end),
  small = {
    {b = 1, h = 2, m = 150, s = 2, c = 20, d = 32, size = 32},
    {b = 2, h = 1, m = 192, s = 3, c = 40, d = 32, size = 64},
  },
  usual = {
    {b = 1, h = 32, m = 16384, s = 200, c = 1000, d = 64, size = 64, typical_s = 60, typical_c = 500},
    {b = 1, h = 32, m = 131072, s = 100, c = 1000, d = 128, size = 64},
  },
  fill = {
    Runs = runs, Columns = columns, Start = start,
    Column = function(sizes, b, h, mb, i) return (i * 5 + h) % math.max(mb * sizes.size, 1) end,
  },
  formula = function(t, sizes)
    return {O = function(b, h, i, d)
      local over, under, mb = 0, 0, i // sizes.size
      local function visit(j)
        local score = 0
        for x = 0, sizes.d - 1 do score = score + t.Q(b, h, i, x) * t.K(b, h, j, x) end
        local weight = math.exp(score / math.sqrt(sizes.d))
        over, under = over + weight * t.V(b, h, j, d), under + weight
      end
      for r = 0, t.Runs(b, h, mb) - 1 do
        local first = t.Start(b, h, mb, r)
        for j = first, math.min(first + sizes.size - 1, i) do visit(j) end
      end
      for r = 0, t.Columns(b, h, mb) - 1 do visit(t.Column(b, h, mb, r)) end
      return over / under
    end}
  end,
}
