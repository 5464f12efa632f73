-- HISA, a hierarchical form of the indexer of DeepSeek-V3.2: means of blocks of keys are scored, and then the keys of the blocks
-- that were chosen. fp8_indexer scores the means.
--
--   pool_keys        Mean[b,:] = mean over j of Scale[128 b + j] K[128 b + j,:], as e4m3 and a scale max |Mean| / 448
--   mark_ends        Y[i,n] = X[i,n] for First[i] < n < End[i] - 1; inf at the first and the last of these, -inf outside
--   listed_indexer   S[i, 128 t + j] = sum over h of W[i,h] max(Scale[n] Q[i,h,:] . K[n,:], 0) for n = 128 Blocks[i,t] + j,
--                    or -inf outside of First[i] <= n < End[i]
local mr = require "millrace"
local max, where = mr.max, mr.where

local function e4m3(x)                                          -- to nearest or even
  if x == 0 then return 0 end
  local step = 2.0 ^ (math.max(math.floor(math.log(math.abs(x), 2)), -6) - 3)
  local steps, part = math.modf(math.abs(x) / step)
  if part > 0.5 or part == 0.5 and steps % 2 == 1 then steps = steps + 1 end
  return (x < 0 and -1 or 1) * steps * step
end

-- Packed sequences, of a quarter of the rows each: a row sees those up to itself.
local function first(sizes, i)
  local length = math.max(1, sizes.i // 4)
  return i // length * length * (sizes.n // sizes.i)
end

local function last(sizes, i) return (i + 1) * (sizes.n // sizes.i) end

return {
  {
    name = "pool_keys",
    program = mr.program("pool_keys", function(p)
      local n, d = p:axes("n", "d")
      local j = p:axis("j", p:option("block", "integer", 128))
      local b = p:axis("b", (n.size + j.size - 1) // j.size)
      local K, Scale = p:input("K", {n, d}, "e4m3"), p:input("Scale", {n}, "f32")
      local Mean, MeanScale = p:output("Mean", {b, d}, "e4m3"), p:output("MeanScale", {b}, "f32")
      local k, scale = p:load("load_k", K, {b * j.size + j, d}), p:load("load_scale", Scale, {b * j.size + j})
      local mean, s = p:task("pool", function()
        local count = mr.min(n.size - b:index() * j.size, j.size)
        local mean = (k * scale):rowsum(j) / count
        local s = max(mean:abs():rowmax(d) / 448, 1e-10)
        return (mean / s):to "e4m3", s
      end)
      Mean:store("store_mean", mean)
      MeanScale:store("store_scale", s)
    end),
    small = {{n = 256, d = 64, block = 64}, {n = 100, d = 32, block = 32}},
    usual = {{n = 16384, d = 128}, {n = 131072, d = 128}},
    tolerance = 0.08,                                           -- a step of e4m3 at its largest
    formula = function(T, sizes)
      local block, known = sizes.block or 128, {}
      local function mean(b, d)
        local sum, count = 0, math.min(block, sizes.n - b * block)
        for j = b * block, b * block + count - 1 do sum = sum + T.K(j, d) * T.Scale(j) end
        return sum / count
      end
      local function scale(b)
        if known[b] then return known[b] end
        local largest = 0
        for d = 0, sizes.d - 1 do largest = math.max(largest, math.abs(mean(b, d))) end
        known[b] = math.max(largest / 448, 1e-10)
        return known[b]
      end
      return {Mean = function(b, d) return e4m3(mean(b, d) / scale(b)) end, MeanScale = scale}
    end,
  },
  {
    name = "mark_ends",
    program = mr.program("mark_ends", function(p)
      local i, n = p:axes("i", "n")
      local X, Y = p:input("X", {i, n}, "f32"), p:output("Y", {i, n}, "f32")
      local First, End = p:input("First", {i}, "i32"), p:input("End", {i}, "i32")
      local x, from, upto = p:load("load_x", X), p:load("load_first", First), p:load("load_end", End)
      Y:store("store_y", p:task("mark", function()
        local at = n:index()
        local y = where(at:eq(from) | at:eq(upto - 1), math.huge, x)
        return where(at:lt(from) | at:ge(upto), -math.huge, y)
      end))
    end),
    small = {{i = 16, n = 64}, {i = 9, n = 45}},
    usual = {{i = 4096, n = 4096}, {i = 16384, n = 16384}},
    fill = {First = first, End = last},
    formula = function(T)
      return {Y = function(i, n)
        local from, upto = T.First(i), T.End(i)
        if n < from or n >= upto then return -math.huge end
        return (n == from or n == upto - 1) and math.huge or T.X(i, n)
      end}
    end,
  },
  {
    name = "listed_indexer",
    program = mr.program("listed_indexer", function(p)
      local i, h, n, t, d = p:axes("i", "h", "n", "t", "d")
      local j = p:axis("j", p:option("block", "integer", 128))
      local slot = p:axis("slot", t.size * j.size)
      local Q, K = p:input("Q", {i, h, d}, "e4m3"), p:input("K", {n, d}, "e4m3")
      local Scale, W = p:input("Scale", {n}, "f32"), p:input("W", {i, h}, "f32")
      local Blocks = p:input("Blocks", {i, t}, "i32")
      local First, End = p:input("First", {i}, "i32"), p:input("End", {i}, "i32")
      local S = p:output("S", {i, slot}, "f32")
      p:batch(i)
      local q, w = p:load("load_q", Q), p:load("load_w", W)
      local from, upto = p:load("load_first", First), p:load("load_end", End)
      p:loop(t, {batch = true}, function()
        local block = p:load("load_block", Blocks)
        local s = p:mma("mma", p:load("load_k", K, {block * j.size + j, d}), q)
        local scale = p:load("load_scale", Scale, {block * j.size + j})
        S:store("store_s", p:task("score", function()
          local sum, key = (max(s * scale, 0) * w):rowsum(h), block * j.size + j:index()
          return where(key:ge(from) & key:lt(upto), sum, -math.huge)
        end), {i, t * j.size + j})
      end)
    end),
    small = {{i = 4, h = 16, n = 256, t = 3, d = 64, block = 64}, {i = 5, h = 8, n = 100, t = 2, d = 32, block = 32}},
    usual = {{i = 4096, h = 64, n = 4096, t = 32, d = 128}, {i = 8192, h = 64, n = 8192, t = 64, d = 128}},
    fill = {
      Blocks = function(sizes, i, t)
        local block = sizes.block or 128
        return (t * 5 + i) % ((sizes.n + block - 1) // block)
      end,
      First = first, End = last,
    },
    formula = function(T, sizes)
      local block = sizes.block or 128
      return {S = function(i, slot)
        local key, sum = T.Blocks(i, slot // block) * block + slot % block, 0
        if key < T.First(i) or key >= T.End(i) then return -math.huge end
        for h = 0, sizes.h - 1 do
          local s = 0
          for d = 0, sizes.d - 1 do s = s + T.Q(i, h, d) * T.K(key, d) end
          sum = sum + T.W(i, h) * math.max(s * T.Scale(key), 0)
        end
        return sum
      end}
    end,
  },
}
