-- Waits between lanes that have nothing else to do with each other: two products of one tile,
-- each with its own loads, and a few waits across, over loops, inside of them and outside,
-- drawn at random. One lane may run ahead of another without end but for what is waited for.
--
-- With arguments, FIRST [LAST], just these seeds are drawn, shown and run.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")
local random = math.random

local LOWERED <const>, RUN <const> = 1000, 80           -- seeds

local function choose(list) return list[random(#list)] end

---- programs -------------------------------------------------------------------

-- Of the first operand of each product; with `part`, what a loop up to m - 64 leaves of it.
local function operand(p, part, name, tensor, m, k)
  local a = p:load("load_" .. name, tensor)
  return part and p:task("mask_" .. name, function()
    return mr.where(k:index():le(m:index() - 64), a:to "f32", 0):to "bf16"
  end) or a
end

local function products(p, part, m, n, k, j)
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32")
  local E, F, D = p:input("E", {m, j}), p:input("F", {n, j}), p:output("D", {m, n}, "f32")
  local c, d = p:carry("c", {m, n}, 0), p:carry("d", {m, n}, 0)
  return function() c:add(p:mma("mma_c", operand(p, part, "a", A, m, k), p:load("load_b", B))) end,
    function() d:add(p:mma("mma_d", operand(p, part, "e", E, m, j), p:load("load_f", F))) end,
    function()
      C:store("store_c", p:task("out_c", function() return c + 0 end))
      D:store("store_d", p:task("out_d", function() return d + 0 end))
    end
end

-- A loop for each product; with `part`, the first tiles make no iterations.
local function two_loops(part)
  return mr.program("two_loops", function(p)
    local m, n, k, j = p:axes("m", "n", "k", "j")
    local first, second, stores = products(p, part, m, n, k, j)
    p:loop(k, {upto = part and m - 64 or nil}, first)
    p:loop(j, {upto = part and m - 64 or nil}, second)
    stores()
  end)
end

local function together(part)
  return mr.program("together", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local first, second, stores = products(p, part, m, n, k, k)
    p:loop(k, {upto = part and m - 64 or nil}, function()
      first()
      second()
    end)
    stores()
  end)
end

-- (A B^T) V and (E F^T) W: loops in a loop.
local nested = mr.program("nested", function(p)
  local m, n, k, d = p:axes("m", "n", "k", "d")
  local A, B, V = p:input("A", {m, k}), p:input("B", {n, k}), p:input("V", {n, d})
  local E, F, W = p:input("E", {m, k}), p:input("F", {n, k}), p:input("W", {n, d})
  local C, D = p:output("C", {m, d}, "f32"), p:output("D", {m, d}, "f32")
  local o, q = p:carry("o", {m, d}, 0), p:carry("q", {m, d}, 0)
  p:loop(n, function()
    local c, e = p:carry("c", {m, n}, 0), p:carry("e", {m, n}, 0)
    p:loop(k, function() c:add(p:mma("mma_c", p:load("load_a", A), p:load("load_b", B))) end)
    p:loop(k, function() e:add(p:mma("mma_d", p:load("load_e", E), p:load("load_f", F))) end)
    local h = p:task("half_c", function() return c:to "bf16" end)
    o:add(p:mma("mma_o", h, p:load("load_v", V)))
    local g = p:task("half_d", function() return e:to "bf16" end)
    q:add(p:mma("mma_q", g, p:load("load_w", W)))
  end)
  C:store("store_c", p:task("out_c", function() return o + 0 end))
  D:store("store_d", p:task("out_d", function() return q + 0 end))
end)

local draws = {
  function() return two_loops(false){m = 64 * random(4), n = 64, k = 32 * random(3), j = 32 * random(3)} end,
  function() return two_loops(true){m = 64 * random(4), n = 64, k = 128, j = 128} end,
  function() return together(false){m = 64 * random(4), n = 64, k = 32 * random(3)} end,
  function() return together(true){m = 64 * random(4), n = 64, k = 128} end,
  function() return nested{m = 64 * random(3), n = 32 * random(3), k = 32 * random(3), d = 64} end,
}

---- plans ----------------------------------------------------------------------

local first = {load_a = true, mask_a = true, load_b = true, mma_c = true, out_c = true, store_c = true, half_c = true,
  mma_o = true, load_v = true}

local function append_all(plan, tasks)
  local own = random() < 0.8                            -- producers of their own
  plan:lane("p0", {warps = choose{1, 1, 2, 4}})
  plan:lane("c0", {warps = 4, replicas = random() < 0.15 and 2 or nil})
  if own then plan:lane("p1", {warps = choose{1, 1, 2, 4}}) end
  plan:lane("c1", {warps = 4, replicas = random() < 0.15 and 2 or nil})
  for _ = 1, random(0, 4) do
    local i = random(#tasks - 1)
    tasks[i], tasks[i + 1] = tasks[i + 1], tasks[i]
  end
  for _, t in ipairs(tasks) do
    local number = first[t.name] and 0 or 1
    local lane = t.kind ~= "load" and "c" .. number or "p" .. (own and number or 0)
    plan:append(t.name, {lane = lane, at = t.loop and random() < 0.2 and random(-1, 1) or 0})
  end
end

local function rings(plan)
  local names, versions = {}, {}
  for name in pairs(plan.rings) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    if random() < 0.4 then versions[name] = random(3) end
  end
  for _, b in ipairs(plan.graph.buffers) do
    if b.carry then versions[b.name] = nil end
  end
  plan:buffers(versions)
end

local function add_waits(plan, tasks)
  local added = 0
  for _ = 1, 8 do
    local a, b = choose(tasks), choose(tasks)
    local w = {b.name, distance = random(0, 3), when = choose{"issued", "complete"}}
    if a ~= b and added < 3 and pcall(plan.wait, plan, a.name, {w}) then
      if plan:check() then added = added + 1 else plan:undo() end
    end
  end
end

-- A legal plan, or nil.
local function draw(seed)
  math.randomseed(seed)
  local bound = choose(draws)()
  local tile = {}
  for axis in pairs(bound.axes) do tile[axis] = axis == "m" and 64 or 32 end
  tile.d = nil
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  local tasks = {table.unpack(plan.tasks)}
  append_all(plan, tasks)
  rings(plan)
  plan:grid{eus = random(2)}
  plan:fill_waits()
  if not plan:check() then return nil end
  add_waits(plan, tasks)
  return plan
end

-- A nested loop whose iterations are all known, in a loop whose iterations each signal products to other lanes.
local function known_inside()
  local plan = mr.plan(nested{m = 128, n = 96, k = 32, d = 64}:graph{tile = {m = 64, n = 32, k = 32}}, mr.device "h200")
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = (t.kind == "load" and "p" or "c") .. (first[t.name] and 0 or 1),
      at = t.name == "mma_c" and -1 or 0})
  end
  for i = 0, 1 do plan:lane("p" .. i, {warps = 1}) end
  plan:buffers{a = 2, b = 2}
  plan:fill_waits()
  return plan
end

if arg[1] then
  for seed = tonumber(arg[1]), tonumber(arg[2] or arg[1]) do
    local plan = draw(seed)
    if plan then print(plan:script(), random_plans.verify(plan, {seed, seed + 1, seed + 2})) end
  end
  return
end

random_plans.correct(tap, "a loop of one iteration inside another loop", known_inside(), {1, 2, 3})

local plans, refused = 0, 0
for seed = 1, LOWERED do
  local plan = draw(seed)
  if plan then
    local lowered, why = pcall(plan.compile, plan, {target = "cuda", text = true})
    plans = plans + 1
    if not lowered then
      refused = refused + 1
      print(("# seed %d: %s"):format(seed, why))
    end
    if lowered and seed <= RUN then
      local result, message = random_plans.verify(plan, {seed, seed + 1, seed + 2})
      tap.ok(result == "ok", ("seed %d runs correctly"):format(seed), message, plan:script())
    end
  end
end
tap.ok(plans > LOWERED / 3, ("%d plans are legal"):format(plans))
tap.is(refused, 0, "all that are accepted are lowered")
tap.done_testing()
