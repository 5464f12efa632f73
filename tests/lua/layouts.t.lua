-- Values whose axes are rows and columns in one use and the reverse in another:
-- their lane converts the layout through shared memory.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local random_plans = dofile(dir .. "lib/random_plans.lua")
random_plans.target = arg[1] or "host"
local max, where, rowsum, rowmax, rsqrt = mr.max, mr.where, mr.rowsum, mr.rowmax, mr.rsqrt

local SEEDS <const> = {1, 2, 3, 4}

-- A product and its transposed twin, added up: rows m in one, rows n in the other.
local twins = mr.program("twins", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32")
  local c, d = p:carry("c", {m, n}, 0), p:carry("d", {m, n}, 0)
  p:loop(k, function()
    local a, b = p:load("load_a", A), p:load("load_b", B)
    c:add(p:mma("mma_ab", a, b))
    local y = p:mma("mma_ba", b, a)
    p:task("sum", function() d:set(d + y * 0.5) end)
  end)
  C:store("store_c", p:task("join", function() return c + where((c + d):gt(0), d, d * 0.25) end))
end)

-- An accumulator that is set to what lies the other way round, and read back.
local crossed = mr.program("crossed", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n})
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function()
    local a, b = p:load("load_a", A), p:load("load_b", B)
    local y = p:mma("mma_ba", b, a)
    p:task("keep", function() c:set(c + y * 0.5) end)
    p:task("take", function() c:set(c - y * 0.25) end)
    c:add(p:mma("mma_ab", a, b))
  end)
  local h = p:task("narrow", function() return c:to "bf16" end)
  C:store("store_c", p:task("widen", function() return (h:to "f32" + 1):to "bf16" end))
end)

-- What a product has as columns is what the next one has as rows of its first operand.
local chained = mr.program("chained", function(p)
  local m, n, k, d = p:axes("m", "n", "k", "d")
  local A, B, V = p:input("A", {m, k}), p:input("B", {n, k}), p:input("V", {m, d})
  local O, o = p:output("O", {n, d}, "f32"), p:carry("o", {n, d}, 0)
  local b = p:load("load_b", B)
  p:loop(m, function()
    local s = p:mma("mma_s", p:load("load_a", A), b)
    local h = p:task("relu", function() return max(s, 0):to "bf16" end)
    o:add(p:mma("mma_o", h, p:load("load_v", V)))
  end)
  O:store("store_o", p:task("convert", function() return o + 0 end))
end)

-- Norms of the rows of both operands: one is a row of the result, the other a column.
local normed = mr.program("normed_both", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32")
  local c, x, y = p:carry("c", {m, n}, 0), p:carry("x", {m}, 0), p:carry("y", {n}, 0)
  p:loop(k, function()
    local a, b = p:load("load_a", A), p:load("load_b", B)
    p:task("norms", function()
      local fa, fb = a:to "f32", b:to "f32"
      x:add(rowsum(fa * fa, k))
      y:add(rowsum(fb * fb, k))
    end)
    c:add(p:mma("mma", a, b))
  end)
  C:store("store_c", p:task("scale", function() return c * rsqrt(x + 1) * rsqrt(y + 1) end))
end)

-- The maxima of a product's columns are needed along its twin's rows.
local shifted = mr.program("shifted", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32")
  local a, b = p:load("load_a", A), p:load("load_b", B)
  local s, t = p:mma("mma_ab", a, b), p:mma("mma_ba", b, a)
  local top = p:task("top", function() return rowmax(s, n) end)
  C:store("store_c", p:task("shift", function() return t - top + (m:index() - n:index()):to "f32" * 0.125 end))
end)

-- A value with a full axis, of which each iteration uses a tile.
local weighed = mr.program("weighed", function(p)
  local m, n, d = p:axes("m", "n", "d")
  local Q, K, S = p:input("Q", {m, d}), p:input("K", {n, d}), p:input("S", {n}, "f32")
  local O, o = p:output("O", {m}, "f32"), p:carry("o", {m}, 0)
  local q, s = p:load("load_q", Q), p:load("load_s", S)
  local weights = p:task("weights", function() return mr.exp2(s) end)
  p:loop(n, function()
    local qk = p:mma("mma", q, p:load("load_k", K))
    p:task("sum", function() o:add(rowsum(qk * weights, n)) end)
  end)
  O:store("store_o", p:task("convert", function() return o + 0 end))
end)

-- Loads are on p0, all others on c0; slice i of a split sTask is on ci.
local function schedule(bound, tile, parts, axis)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  if parts then plan:split(axis, parts) end
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or "c" .. (t.name:match "%.(%d+)$" or 0)})
  end
  plan:lane("p0", {warps = 1})
  plan:grid{eus = 1}
  plan:fill_waits()
  return plan
end

local function correct(what, plan) random_plans.correct(tap, what, plan, SEEDS) end

for _, case in ipairs{{"twins", twins}, {"crossed", crossed}, {"normed", normed}} do
  local name, program = case[1], case[2]
  for _, tile in ipairs{{m = 64, n = 64, k = 32}, {m = 128, n = 64, k = 64}, {m = 64, n = 128, k = 32}} do
    for _, trips in ipairs{1, 3} do
      correct(("%s, tile %d x %d, %d iterations"):format(name, tile.m, tile.n, trips), schedule(
        program{m = tile.m + 24, n = 2 * tile.n - 8, k = trips * tile.k}, tile))
    end
  end
end
correct("twins, split over two lanes", schedule(twins{m = 200, n = 72, k = 96}, {m = 128, n = 64, k = 32}, 2, "m"))
correct("twins, split along the other axis", schedule(twins{m = 136, n = 200, k = 96},
  {m = 64, n = 128, k = 32}, 2, "n"))
correct("chained", schedule(chained{m = 200, n = 136, k = 64, d = 64}, {m = 64, n = 64}))
correct("chained, wide", schedule(chained{m = 104, n = 200, k = 40, d = 72}, {m = 32, n = 128}))
correct("chained, split over two lanes", schedule(chained{m = 104, n = 200, k = 40, d = 64},
  {m = 32, n = 128}, 2, "n"))
correct("shifted", schedule(shifted{m = 100, n = 72, k = 32}, {m = 64, n = 72}))
correct("shifted, wide", schedule(shifted{m = 200, n = 56, k = 32}, {m = 128, n = 56}))
for _, n in ipairs{64, 128, 150} do
  correct(("weights of %d keys"):format(n), schedule(weighed{m = 72, n = n, d = 64}, {m = 64, n = 64}))
end


-- Rows of a product that are two axes, in each order in memory, with tiles of one. A value that is reduced along an axis has all of
-- it, whatever the tile of the output.
for _, order in ipairs{{"k", "i"}, {"i", "k"}} do
  local prog = mr.program("rows", function(p)
    local axis = {}
    axis.i, axis.k = p:axes("i", "k")
    local j, l = p:axes("j", "l")
    local X, W, Y = p:input("X", {axis[order[1]], axis[order[2]], l}), p:input("W", {j, l}), p:output("Y", {axis.i, axis.k, j}, "f32")
    local v = p:mma("mma", p:load("x", X), p:load("w", W))
    Y:store("st", v - rowsum(v, axis.i) * 0.25)
  end)
  for _, s in ipairs{{i = 16, k = 8, j = 8, l = 16}, {i = 64, k = 2, j = 16, l = 16}} do
    for _, tile in ipairs{{}, {i = 1}, {i = 8}, {k = 1}, {i = 1, k = 1}} do
      local plan = mr.plan(prog(s):graph{tile = tile}, mr.device "h200")
      for _, t in ipairs(plan.tasks) do plan:append(t.name) end
      plan:fill_waits()
      correct(("rows %s, %s of %d and %d, tile %s x %s"):format(order[1], order[2], s.i, s.k, tile.i, tile.k), plan)
    end
  end
end
---- axes with one element -----------------------------------------------------------

-- The rows or columns of a value may have an axis more of which the tile has one element, as scores of a group of heads have for a mask
-- of positions. That moves nothing, so nothing is converted through shared memory.
for what, mask in pairs{
  ["a mask"] = function(x, m, n) return mr.where(m:index():ge(n:index()), x * 2, 0) end,
  ["masks of a computed index"] = function(x, m, n)
    local i = m:index() + 0
    return mr.where((i - 16):lt(n:index()), mr.where(i:ge(n:index()), x * 2, 0), 0)
  end,
} do
  local bound = mr.program("masked", function(p)
    local h, g, n, m, d = p:axes("h", "g", "n", "m", "d")
    local K, Q, S = p:input("K", {h, n, d}), p:input("Q", {h, g, m, d}), p:output("S", {h, n, d}, "f32")
    p:batch(h)
    local k, s = p:load("load_k", K), p:carry("s", {n, d}, 0)
    p:loop(g, function()
      p:loop(m, function()
        local q = p:load("load_q", Q)
        local x = p:mma("mma", k, q)
        s:add(p:mma("mma2", p:task("mask", function() return mask(x, m, n):to "bf16" end), q))
      end)
    end)
    S:store("store_s", p:task("out", function() return s + 0 end))
  end):bind{h = 1, g = 2, n = 64, m = 128, d = 64}
  local plan = mr.plan(bound:graph{tile = {g = 1, n = 64, m = 64}}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 4})
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
  plan:fill_waits()
  tap.is(select(2, tostring(plan:kernel()):gsub("lane_sync", "")), 0, what .. " for a group of heads: nothing is converted")
  local checked = plan:compile{target = "host"}:check{seed = 1}
  tap.ok(checked.ok, "  right", tostring(checked))
end

tap.done_testing()
