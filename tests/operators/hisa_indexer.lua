-- HISA's indexer: Keys[i,:] = up to `keys` keys of query i, by a score of all its heads that only the keys of `t` blocks get, relative to
-- First[i], in ascending order, then -1.
--
-- Means of blocks of keys, as fp8 with a scale each; their scores for each query; the t blocks with the greatest ones, among which the
-- first and the last block of the query's keys always are; the scores of the keys of these; the greatest of them. Instead of the indexer of
-- DeepSeek-V3.2, whose last two steps it has for all keys. Its stages stand alone in hisa.lua and topk_selector.lua.
local mr = require "millrace"
local max, where, rowmax, rowmin, rowsum, cumsum = mr.max, mr.where, mr.rowmax, mr.rowmin, mr.rowsum, mr.cumsum

-- What belongs to the greatest `count` of x: a bisection of the values, and the first of equal ones.
local function greatest(p, name, x, axis, inside, count)
  local round = p:axis(name .. "_round", 40)
  local low, high = p:carry(name .. "_low", {}, 0), p:carry(name .. "_high", {}, 0)
  p:task(name .. "_range", function()
    low:set(rowmin(where(inside(), x, math.huge), axis))
    high:set(rowmax(where(inside(), x, -math.huge), axis))
  end)
  p:loop(round, {batch = true}, function()
    p:task(name .. "_count", function()
      local middle = (low + high) * 0.5
      local enough = rowsum(where(inside() & x:ge(middle), 1, 0), axis):ge(count)
      low:set(where(enough, middle, low))
      high:set(where(enough, high, middle))
    end)
  end)
  return p:task(name .. "_list", function()
    local more, same = inside() & x:gt(low), inside() & x:eq(low)
    local free = count - rowsum(where(more, 1, 0), axis)
    local keep = more | same & cumsum(where(same, 1, 0), axis):le(free)
    return where(keep, cumsum(where(keep, 1, 0), axis) - 1, -1)
  end)
end

local function e4m3(x)                                          -- to nearest or even
  if x == 0 then return 0 end
  local step = 2.0 ^ (math.max(math.floor(math.log(math.abs(x), 2)), -6) - 3)
  local steps, part = math.modf(math.abs(x) / step)
  if part > 0.5 or part == 0.5 and steps % 2 == 1 then steps = steps + 1 end
  return (x < 0 and -1 or 1) * steps * step
end

local function first(sizes, i)
  local length = math.max(1, sizes.i // 2)
  return i // length * length * (sizes.n // sizes.i)
end

return {
  program = mr.program("hisa_indexer", function(p)
    local i, h, n, d, t = p:axes("i", "h", "n", "d", "t")
    local j = p:axis("j", p:option("block", "integer", 128))
    p:check(n.size % j.size == 0, "the block must divide n")
    local b, slot = p:axis("b", n.size // j.size), p:axis("slot", t.size * j.size)
    local chosen = p:axis("chosen", p:option("keys", "integer", 256))
    local Q, K = p:input("Q", {i, h, d}, "e4m3"), p:input("K", {n, d}, "e4m3")
    local Scale, W = p:input("Scale", {n}, "f32"), p:input("W", {i, h}, "f32")
    local First, End = p:input("First", {i}, "i32"), p:input("End", {i}, "i32")
    local Keys = p:output("Keys", {i, chosen}, "i32")
    local Mean, MeanScale = p:temp("Mean", {b, d}, "e4m3"), p:temp("MeanScale", {b}, "f32")
    local Rough, Blocks = p:temp("Rough", {i, b}, "f32"), p:temp("Blocks", {i, t}, "i32")
    local Fine = p:temp("Fine", {i, slot}, "f32")
    local pooled = p:axis("pooled", b.size)                     -- b, in other tiles; so are the axes of what none are
    local any, some, listed = p:axis("any", i.size), p:axis("some", chosen.size), p:axis("listed", t.size)

    p:phase("pool", function()
      local at = pooled * j.size + j
      local k, scale = p:load("load_k", K, {at, d}), p:load("load_scale", Scale, {at})
      local mean, s = p:task("pool", function()
        local mean = (k * scale):rowsum(j) / j.size
        local s = max(mean:abs():rowmax(d) / 448, 1e-10)
        return (mean / s):to "e4m3", s
      end)
      Mean:store("store_mean", mean, {pooled, d})
      MeanScale:store("store_scale", s, {pooled})
    end)
    p:phase("none", function()
      Keys:store("store_none", p:task("no_keys", function() return (any:index() + some:index()) * 0 - 1 end), {any, some})
      Blocks:store("store_none2", p:task("no_blocks", function() return (any:index() + listed:index()) * 0 - 1 end), {any, listed})
    end)
    p:phase("rough", function()
      p:batch(i)
      local s = p:mma("mma_rough", p:load("load_mean", Mean), p:load("load_q", Q))
      local scale, w = p:load("load_means_scale", MeanScale), p:load("load_w", W)
      Rough:store("store_rough", p:task("rough", function() return (max(s * scale, 0) * w):rowsum(h) end))
    end)
    p:phase("blocks", function()
      p:batch(i)
      local s, from, upto = p:load("load_rough", Rough), p:load("load_first", First), p:load("load_end", End)
      local function inside() return (b:index() * j.size + (j.size - 1)):ge(from) & (b:index() * j.size):lt(upto) end
      local marked = p:task("mark", function()
        local ends = b:index():eq(from // j.size) | b:index():eq((upto - 1) // j.size)
        return where(ends, rowmax(s, b) + 1, s)
      end)
      Blocks:store("store_blocks", b:index(), {i, greatest(p, "blocks", marked, b, inside, t.size)})
    end)
    p:phase("fine", function()
      p:batch(i)
      local q, w = p:load("load_q2", Q), p:load("load_w2", W)
      local from, upto = p:load("load_first2", First), p:load("load_end2", End)
      p:loop(t, {batch = true}, function()
        local block = p:load("load_block", Blocks)
        local s = p:mma("mma_fine", p:load("load_k2", K, {block * j.size + j, d}), q)
        local scale = p:load("load_scale2", Scale, {block * j.size + j})
        Fine:store("store_fine", p:task("fine", function()
          local sum, key = (max(s * scale, 0) * w):rowsum(h), block * j.size + j:index()
          return where(key:ge(from) & key:lt(upto), sum, -math.huge)
        end), {i, t * j.size + j})
      end)
    end)
    p:phase("keys", function()
      p:batch(i)
      local s, from = p:load("load_fine", Fine), p:load("load_first3", First)
      local block = p:load("load_blocks", Blocks, {i, slot // j.size})
      local at = greatest(p, "keys", s, slot, function() return s:gt(-math.huge) end, chosen.size)
      Keys:store("store_keys", p:task("relative", function() return block * j.size + slot:index() % j.size - from end), {i, at})
    end)
  end),
  small = {{i = 8, h = 16, n = 256, d = 32, t = 3, block = 32, keys = 24}, {i = 6, h = 8, n = 96, d = 32, t = 2, block = 16, keys = 40}},
  usual = {{i = 1024, h = 64, n = 1024, d = 128, t = 8, keys = 256}, {i = 4096, h = 64, n = 4096, d = 128, t = 32, keys = 1024}},
  fill = {First = first, End = function(sizes, i) return (i + 1) * (sizes.n // sizes.i) end},
  formula = function(T, sizes)
    local block, known, means = sizes.block or 128, {}, {}
    local function mean(b)
      if means[b] then return means[b] end
      local m, largest = {}, 0
      for d = 0, sizes.d - 1 do
        local sum = 0
        for k = b * block, b * block + block - 1 do sum = sum + T.K(k, d) * T.Scale(k) end
        m[d] = sum / block
        largest = math.max(largest, math.abs(m[d]))
      end
      local scale = math.max(largest / 448, 1e-10)
      for d = 0, sizes.d - 1 do m[d] = e4m3(m[d] / scale) end
      means[b] = {m = m, scale = scale}
      return means[b]
    end
    local function score(i, key, scale)
      local sum = 0
      for h = 0, sizes.h - 1 do
        local s = 0
        for d = 0, sizes.d - 1 do s = s + T.Q(i, h, d) * key(d) end
        sum = sum + T.W(i, h) * math.max(s * scale, 0)
      end
      return sum
    end
    local function best(score, count)                           -- indices of the greatest, ascending
      local order = {}
      for at in pairs(score) do order[#order + 1] = at end
      table.sort(order, function(x, y) return score[x] > score[y] or score[x] == score[y] and x < y end)
      for s = count + 1, #order do order[s] = nil end
      table.sort(order)
      return order
    end
    local function row(i)
      if known[i] then return known[i] end
      local from, upto, rough, fine = T.First(i), T.End(i), {}, {}
      for b = from // block, (upto - 1) // block do
        local m = mean(b)
        rough[b] = score(i, function(d) return m.m[d] end, m.scale)
      end
      rough[from // block], rough[(upto - 1) // block] = math.huge, math.huge
      for _, b in ipairs(best(rough, sizes.t)) do
        for k = math.max(from, b * block), math.min(upto, b * block + block) - 1 do
          fine[k] = score(i, function(d) return T.K(k, d) end, T.Scale(k))
        end
      end
      known[i] = best(fine, sizes.keys)
      return known[i]
    end
    return {Keys = function(i, s)
      local key = row(i)[s + 1]
      return key and key - T.First(i) or -1
    end}
  end,
}
