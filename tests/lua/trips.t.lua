-- Loops of few iterations: none, one, two, one less than a ring is deep, as many, one more;
-- in a row on one EU and each on its own, with offsets before and behind.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local random_plans, programs = dofile(dir .. "lib/random_plans.lua"), dofile(dir .. "lib/programs.lua")
random_plans.target = arg[1] or "host"

local SEEDS <const> = {1, 2, 3}

-- Legal, with as many versions in registers as the offsets ask for.
local function make_legal(plan)
  plan:fill_waits()
  for _ = 1, 8 do
    local good, problems = plan:check()
    if good then return end
    local p = problems[1]
    assert(p.code == "versions", tostring(problems))
    plan:buffers{[p.edge.buffer] = plan.rings[p.edge.buffer] + 1}
    plan:fill_waits()
  end
end

-- Loads on a lane of their own, everything else on another, at these offsets.
local function schedule(bound, tile, rings, at, grid)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  plan:buffers(rings)
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0", at = at[t.name] or 0})
  end
  plan:lane("p0", {warps = 1})
  plan:grid(grid)
  make_legal(plan)
  return plan
end

local grids = {{"one EU", {eus = 1}}, {"longest first", {eus = 1, longest_first = true}}, {"many EUs", {}}}

local function runs(what, bound, tile, rings, at, trips)
  local most = math.max(2, trips)
  for _, g in ipairs(grids) do
    local plan = schedule(bound, tile, rings, at, g[2])
    if g[1] == "one EU" then
      tap.like(tostring(plan.graph), ("loop %%w+, 0 to %d iterations"):format(most),
        ("%s: 0 to %d iterations"):format(what, most))
    end
    local result, message = random_plans.verify(plan, SEEDS)
    tap.is(result, "ok", ("%s, %s"):format(what, g[1]))
    if result ~= "ok" then print("# " .. (message .. "\n" .. plan:script()):gsub("\n", "\n# ")) end
  end
end

-- Tile i of the rows makes i iterations, so all numbers up to the ring's depth and one more
-- are there.
for depth = 1, 4 do
  local most = math.max(2, depth + 1)
  local m = 64 * (most + 1)
  for offset = -1, 2 do
    local first, others = math.max(offset, 0), math.min(offset, 0)
    runs(("gemm, a ring of %d, offset %d"):format(depth, offset),
      programs.triangle{m = m, n = 64, k = m}, {m = 64, k = 64}, {a = depth, b = depth},
      {mask = first, mma = others}, depth + 1)
    runs(("attention, a ring of %d, offset %d"):format(depth, offset),
      mr.examples.flash_attention{b = 1, h = 1, m = m, n = m - 64, d = 64, causal = true},
      {m = 64, n = 64}, {k = depth, v = depth},
      {mma_qk = first, rescale = others, mma_pv = others}, depth + 1)
  end
end

-- Loops inside a loop, of which any may make no iteration in some of those around, or in all:
-- whoever touches a carry in shared memory first gives it its initial value.
local function inner(bounds, deep)
  return mr.program("inner", function(p)
    local m, r, k, j, s = p:axes("m", "r", "k", "j", "s")
    local A, B, C = p:input("A", {m, r, s, k}, "f32"), p:input("B", {m, r, s, j}, "f32"), p:output("C", {m}, "f32")
    local c = p:carry("c", {m}, 0.5)
    local function sum(name, X, over, upto)
      local a = p:load("load_" .. name, X)
      p:task(name, function()
        c:add(mr.rowsum(mr.rowsum(mr.rowsum(mr.where(over:index():le(upto(m:index(), r:index())), a, 0), over), s), r))
      end)
    end
    local function body()
      p:loop(k, {upto = bounds[1](m, r)}, function() sum("first", A, k, bounds[1]) end)
      p:loop(j, {upto = bounds[2](m, r)}, function() sum("second", B, j, bounds[2]) end)
    end
    p:loop(r, function() if deep then p:loop(s, body) else body() end end)
    C:store("store_c", p:task("finish", function() return c * 1 end))
  end){m = 12, r = 3, k = 16, j = 16, s = deep and 2 or 1}
end
for i, bounds in ipairs{
  {function(_, r) return r * 8 - 1 end, function(_, r) return r * 8 - 9 end},
  {function(_, r) return r * 8 - 9 end, function(_, r) return r * 8 - 1 end},
  {function(m, r) return m + r * 8 - 20 end, function(m, r) return 12 - m - r * 8 end},
  {function(m, r) return 12 - m * 2 - r * 8 end, function(m, r) return m * 2 + r * 8 - 20 end},
  {function(m) return m * 2 - 12 end, function(m, r) return m * 4 - r * 8 - 20 end},
} do
  for _, deep in ipairs{false, true} do
    local bound = inner(bounds, deep)
    for l, lanes in ipairs{{first = "c1"}, {second = "c1"}, {finish = "c1", store_c = "c1"}, {first = "c1", second = "c2"}} do
      local plan = mr.plan(bound:graph{tile = {m = 4, k = 8, j = 8, r = 1, s = 1}}, mr.device "h200")
      for _, t in ipairs(plan.tasks) do
        plan:append(t.name, {lane = lanes[t.name] or t.kind == "load" and "p0" or "c0"})
      end
      plan:buffers{c = l % 2 + 1}
      plan:grid{eus = l % 3 + 1}
      plan:fill_waits()
      random_plans.correct(tap, ("loops inside %d loops, bounds %d, lanes %d"):format(deep and 2 or 1, i, l), plan, SEEDS)
    end
  end
end

-- Loops that make no iteration in any tile: what the carry begins with is stored, whatever else the
-- plan says of the sTasks inside and who waits for them.
local never = mr.program("never", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}, "bf16"), p:input("B", {n, k}, "bf16"), p:output("C", {m}, "f32")
  local a, c = p:load("load_a", A), p:carry("c", {m}, 0.5)
  p:loop(n, {upto = m - 10000}, function()
    local s = p:mma("mma", a, p:load("load_b", B))
    p:task("sum", function() c:add(mr.rowsum(mr.where(n:index():le(m:index() - 10000), s, 0), n)) end)
  end)
  C:store("store_c", p:task("finish", function() return c * 3 end))
end){m = 1300, n = 32, k = 32}
for at = -1, 1 do
  for versions = 1, 2 do
    for _, lane in ipairs{"p0", "c0"} do
      local plan = mr.plan(never:graph{tile = {m = 16, n = 16}}, mr.device "h200")
      for _, t in ipairs(plan.tasks) do
        plan:append(t.name, {lane = t.kind == "load" and lane or t.kind == "mma" and "c1" or "c0", at = not t.loop and t.kind ~= "load" and at or 0})
      end
      plan:buffers{a = versions}
      plan:grid{eus = 2}
      make_legal(plan)
      random_plans.correct(tap, ("a loop that never runs, loads on %s, %d versions, others at %d"):format(lane, versions, at), plan, SEEDS)
      if lane == "p0" then
        plan:wait("load_a", {"mma"})
        random_plans.correct(tap, "  and loads wait for it", plan, SEEDS)
      end
    end
  end
end

-- Bounds that come again and again along an axis, rise and fall; in tiles that hold a part of
-- that, just all, and one and a half.
local function around(bounds, batch)
  return mr.program("around", function(p)
    local m, r, k = p:axes("m", "r", "k")
    if batch then p:batch(m) end
    local A, C = p:input("A", {m, r, k}, "f32"), p:output("C", {m, r}, "f32")
    local c = p:carry("c", batch and {r} or {m, r}, 0)
    local function of(axis, remainder) return bounds(axis, function(x, by) return remainder and x & by - 1 or x % by end) end
    p:loop(k, of(m), function()
      local a = p:load("load_a", A)
      p:task("sum", function()
        local inside = of(m:index(), true)
        if inside.upto then a = mr.where(k:index():le(inside.upto), a, 0) end
        if inside.from then a = mr.where(k:index():ge(inside.from), a, 0) end
        c:add(mr.rowsum(a, k))
      end)
    end)
    C:store("store_c", p:task("finish", function() return c * 1 end))
  end){m = 23, r = 4, k = 40}
end
for _, x in ipairs{
  {"rise to", function(m, mod) return {upto = mod(m, 4) * 8 + 3} end},
  {"fall to", function(m, mod) return {upto = 35 - mod(m, 4) * 8} end},
  {"rise from", function(m, mod) return {from = mod(m, 4) * 8} end},
  {"fall from", function(m, mod) return {from = 30 - mod(m, 4) * 8} end},
  {"rise from and to", function(m, mod) return {from = mod(m, 4) * 8 - 3, upto = mod(m, 8) * 4 + 6} end},
} do
  for _, tile in ipairs{false, 1, 2, 3, 4, 6, 23} do
    local bound = around(x[2], not tile)
    local plan = schedule(bound, {k = 8, r = 4, m = tile or nil}, {}, {}, {eus = 2})
    random_plans.correct(tap, ("bounds that %s, %s"):format(x[1], tile and "tiles of " .. tile or "each row for itself"), plan, SEEDS)
  end
end

-- A sum over all rows needs the loops of all of them, in each tile of the rows.
do
  local bound = mr.program("rows", function(p)
    local m, k = p:axes("m", "k")
    local X, Y, S = p:input("X", {m, k}, "f32"), p:output("Y", {m}, "f32"), p:output("S", {p:axis("one", 1)}, "f32")
    local c = p:carry("c", {m}, 0)
    p:loop(k, {upto = m}, function()
      local x = p:load("x", X)
      p:task("add", function() c:add(mr.rowsum(mr.where(k:index():le(m:index()), x, 0), k)) end)
    end)
    Y:store("y", p:task("out", function() return c + 0 end))
    S:store("s", p:task("sum", function() return mr.rowsum(c, m) end), {0})
  end){m = 24, k = 24}
  local plan = mr.plan(bound:graph{tile = {m = 8, k = 4}}, mr.device "h200")
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  random_plans.correct(tap, "bounds by rows of which all are needed", plan, {1, 2})
  local inputs = bound:inputs{}
  local one, other = bound:reference(inputs, {tile = {m = 8, k = 4}}), bound:reference(inputs, {on = "host", tile = {m = 8, k = 4}})
  tap.ok(one.S:max_error(bound:reference(inputs).S) < 1e-12 and other.S:max_error(one.S) < 1e-12, "  also in both references")
end

tap.done_testing()
