-- Offsets in the tile loop: entries that run tiles ahead of others of their lane, or behind.
-- Programs with one loop, two, one inside another, or none; on producers and consumers, on
-- replicas of a lane, in clusters and in several phases; so that an EU gets one tile, two,
-- three or seven, of ragged sizes. Each runs under several seeds, every other one with races
-- looked for.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local random_plans, programs = dofile(dir .. "lib/random_plans.lua"), dofile(dir .. "lib/programs.lua")
random_plans.target = arg[1] or "host"

local SEEDS <const> = {1, 2, 3}

-- Loads on p0, all others on c0, but for what `on` has; `at`: offsets; `lanes`: their options.
local function schedule(bound, tile, at, spec)
  spec = spec or {}
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  if spec.split then plan:split("m", spec.split) end
  local lanes, on = {}, spec.on or {}
  for _, t in ipairs(plan.tasks) do
    local name, part = t.name:match "^([^.]*)%.?(%d*)$"
    local lane = on[name] or (t.kind == "load" and "p0" or "c" .. (part == "" and 0 or part))
    lanes[lane] = lanes[lane] or {warps = t.kind == "load" and 1 or 4}
    if t.kind ~= "load" then lanes[lane].warps = 4 end
    plan:append(t.name, {lane = lane, at = at[name] or 0})
  end
  for name, options in pairs(lanes) do
    plan:lane(name, {warps = options.warps, replicas = name == "c0" and spec.replicas or nil})
  end
  local names = {}
  for name in pairs(plan.rings) do names[#names + 1] = name end
  table.sort(names)
  local one = {}
  for _, name in ipairs(names) do one[name] = 1 + math.max(at["load_" .. name] or 0, 0) end
  plan:buffers(one)
  plan:grid(spec.grid or {eus = 1})
  plan:fill_waits()
  for _ = 1, 40 do                                      -- as many versions as the offsets need
    local good, problems = plan:check()
    if good then return plan end
    local p = problems[1]
    assert(p.code == "versions", tostring(p.message))
    local name = p.edge.buffer
    if not plan.rings[name] then name = name .. ".0" end
    plan:buffers{[name] = plan.rings[name] + 1}
    plan:fill_waits()
  end
  error "no number of versions is enough"
end

local function correct(what, plan)
  local result, message = random_plans.verify(plan, SEEDS)
  tap.ok(result == "ok", what, message, plan:script())
end

local function describe_offsets(at)
  local list = {}
  for name, x in pairs(at) do list[#list + 1] = ("%s %+d"):format(name, x) end
  table.sort(list)
  return table.concat(list, ", ")
end

-- bound(tiles): so many tiles, the last one ragged. So many on one EU, and seven on three.
local GRIDS <const> = {{1, 1}, {2, 1}, {3, 1}, {7, 1}, {3, 2}, {7, 3}}

local function each_grid(title, bound, tile, offsets, spec)
  for _, at in ipairs(offsets) do
    for _, grid in ipairs(spec and spec.grids or GRIDS) do
      local tiles, eus = grid[1], grid[2]
      local with = setmetatable({grid = {eus = eus}}, {__index = spec})
      correct(("%s, %s: %d tiles on %d EUs"):format(title, describe_offsets(at), tiles, eus),
        schedule(bound(tiles), tile, at, with))
    end
  end
end

---- no loop --------------------------------------------------------------------

local FEW <const> = {{1, 1}, {2, 1}, {7, 1}, {7, 3}}

local function blend(tiles) return programs.blend{m = 64 * tiles - 8, n = 64} end
local function project(tiles) return programs.project{m = 64 * tiles - 8, n = 64, k = 32} end

each_grid("sums of two loads", blend, {m = 64, n = 64}, {
  {load_x = 1, load_y = 1}, {load_x = 2, load_y = 1}, {store_z = -1}, {blend = -1, store_z = -2},
  {load_x = 2, load_y = 2, blend = 1}})
each_grid("sums of two loads on one lane", blend, {m = 64, n = 64}, {
  {load_x = 1, load_y = 1}, {load_x = 2, load_y = 1, store_z = -1}},
  {on = {load_x = "c0", load_y = "c0"}})
each_grid("a product once a tile", project, {m = 64, n = 64}, {
  {mma = 1}, {mma = 2, scale = 1}, {store_c = -1}, {mma = 1, store_c = -1}, {load_a = 1}})
each_grid("a product once a tile, all on one lane", project, {m = 64, n = 64}, {
  {load_a = 2, load_b = 2, mma = 1}, {load_a = 1, load_b = 1}},
  {on = {load_a = "c0", load_b = "c0"}, grids = FEW})

---- one loop -------------------------------------------------------------------

local function gemm(tiles)
  return mr.examples.gemm{m = 64 * tiles - 24, n = 64, k = 88, bias = true, activation = "relu"}
end
local function attention(tiles)
  return mr.examples.flash_attention{b = 1, h = 1, m = 64 * tiles, n = 152, d = 64}
end
local function causal(tiles)
  return mr.examples.flash_attention{b = 1, h = 1, m = 64 * tiles, n = 64 * tiles, d = 64, causal = true}
end
local function triangle(tiles)
  return programs.triangle{m = 64 * tiles, n = 64, k = 64 * tiles}
end

each_grid("gemm", gemm, {m = 64, n = 64, k = 32}, {{store_c = -1}, {epilogue = -1, store_c = -1},
  {epilogue = -1, store_c = -2}, {load_bias = 1}, {load_bias = 2, store_c = -1}},
  {grids = FEW})
each_grid("attention", attention, {m = 64, n = 64}, {{load_q = 1}, {load_q = 2},
  {normalise = -1, store_o = -1}, {load_q = 1, store_o = -1}}, {grids = FEW})
each_grid("attention of many lengths", causal, {m = 64, n = 64}, {{load_q = 1},
  {normalise = -1, store_o = -2}}, {grids = FEW})
each_grid("a loop that may make no iteration", triangle, {m = 64, n = 64, k = 64}, {
  {convert = -1, store_c = -1}, {store_c = -2}}, {grids = FEW})
each_grid("an epilogue on another lane", gemm, {m = 64, n = 64, k = 32}, {
  {store_c = -1}, {epilogue = 1, store_c = 0}}, {on = {epilogue = "c1", store_c = "c1"}, grids = FEW})

---- several loops --------------------------------------------------------------

local function two_pass(tiles) return programs.two_pass{m = 64 * tiles - 8, n = 88, d = 64} end
local function mlp(tiles) return programs.mlp{m = 64 * tiles - 8, n = 96, k = 48, d = 32} end

each_grid("two passes", two_pass, {m = 64, n = 64}, {{load_q = 1}, {divide = -1, store_o = -1},
  {store_o = -2}}, {grids = FEW})
each_grid("a loop in a loop", mlp, {m = 64, n = 64, k = 32}, {{convert = -1, store_o = -1}},
  {grids = FEW})

---- replicas, slices, clusters, phases -----------------------------------------

for replicas = 2, 3 do
  local with = {replicas = replicas, grids = {{1, 1}, {2, 1}, {3, 1}, {7, 1}, {7, 2}}}
  each_grid(("gemm on %d replicas"):format(replicas), gemm, {m = 64, n = 64, k = 32},
    {{epilogue = -1, store_c = -1}, {load_bias = 1, store_c = -1}}, with)
  each_grid(("a product once a tile on %d replicas"):format(replicas), project, {m = 64, n = 64},
    {{mma = 1}, {store_c = -1}}, with)
end
each_grid("attention of many lengths on replicas", causal, {m = 64, n = 64}, {{normalise = -1, store_o = -2}},
  {replicas = 2, grids = {{1, 1}, {2, 1}, {5, 1}}})

for _, grid in ipairs{{1, 1}, {3, 1}, {7, 2}} do
  local plan = schedule(mr.examples.gemm{m = 128 * grid[1], n = 56, k = 88, activation = "relu"},
    {m = 128, n = 64, k = 32}, {epilogue = -1, store_c = -1}, {split = 2, grid = {eus = grid[2]}})
  correct(("gemm in two parts, %d tiles on %d EUs"):format(grid[1], grid[2]), plan)
  tap.like(plan:compile{target = "cuda", text = true}.source, "const int who", "  which share their text")
end

for _, grid in ipairs{{cluster = 2, eus = 2, group = 8}, {cluster = 2, eus = 4, group = 8, raster = "columns"}} do
  correct(("gemm in a cluster of %d, %s"):format(grid.cluster, grid.raster or "rows"), schedule(
    mr.examples.gemm{m = 248, n = 184, k = 72, bias = true}, {m = 64, n = 64, k = 32},
    {load_bias = 1, epilogue = -1, store_c = -1}, {grid = grid}))
  correct(("a product once a tile in a cluster of %d, %s"):format(grid.cluster, grid.raster or "rows"),
    schedule(programs.project{m = 248, n = 192, k = 32}, {m = 64, n = 64}, {load_a = 1, load_b = 1,
    store_c = -1}, {grid = grid}))
end

for eus = 1, 3 do
  local bound = mr.examples.flash_decoding{b = 2, h = 8, hkv = 2, n = 500, d = 64, splits = 3}
  correct(("two phases with offsets of their own, on %d EUs"):format(eus), schedule(bound, {key = 64},
    {load_q = 1, store_part = -1, load_mx = 2, load_l = 2, load_part = 1, store_o = -1},
    {grid = {eus = eus}}))
end

---- what the simulator says ----------------------------------------------------

-- Alone on a lane, a load that runs ahead hides behind the tile before.
local function cycles(at)
  return schedule(blend(7), {m = 64, n = 64}, at, {on = {load_x = "c0", load_y = "c0"}}):simulate().cycles
end
local plain, ahead = cycles{}, cycles{load_x = 1, load_y = 1}
tap.ok(ahead < 0.7 * plain, "loads one tile ahead are simulated to save a third and more",
  ("%d cycles, and %d without"):format(ahead, plain))

-- The iterations of the tile loop follow the order and the offsets.
local order = {}
for _, e in ipairs(schedule(project(3), {m = 64, n = 64}, {mma = 1, store_c = -1}):simulate().events) do
  if e.lane == "c0" then order[#order + 1] = e.task .. " " .. e.tile end
end
tap.is(table.concat(order, ", "), "mma 0, mma 1, scale 0, mma 2, scale 1, store_c 0, scale 2, store_c 1, store_c 2",
  "prologue, steady state and epilogue of the tile loop")

---- traces ---------------------------------------------------------------------

-- Lane and copy -> its sTasks in the order in which they were issued.
local function orders(tl)
  local lanes = {}
  for _, e in ipairs(tl.events) do
    local lane = e.lane .. "/" .. (e.copy or 0)
    lanes[lane] = (lanes[lane] or "") .. (" %s.%d@%d"):format(e.task, e.iteration, e.tile)
  end
  return lanes
end

for _, case in ipairs{
  {"no loop", blend(7), {m = 64, n = 64}, {load_x = 2, load_y = 1, store_z = -1}},
  {"a product once a tile", project(7), {m = 64, n = 64}, {mma = 1, store_c = -1}},
  {"gemm", gemm(4), {m = 64, n = 64, k = 32}, {load_bias = 1, epilogue = -1, store_c = -1}},
  {"attention of many lengths", causal(4), {m = 64, n = 64}, {load_q = 1, normalise = -1, store_o = -2}},
  {"a loop in a loop", mlp(3), {m = 64, n = 64, k = 32}, {convert = -1, store_o = -1}},
  {"gemm on two copies", gemm(5), {m = 64, n = 64, k = 32}, {epilogue = -1, store_c = -1}, {replicas = 2}},
} do
  local plan = schedule(case[2], case[3], case[4], case[5])
  local want, traced = plan:simulate(), plan:compile{target = "host"}:trace{}
  local a, b = orders(want), orders(traced)
  for lane, list in pairs(a) do tap.is(b[lane], list, ("trace of %s: lane %s"):format(case[1], lane)) end
  tap.is(#traced.events, #want.events, "  and every instance is there")
  local good = true
  for _, e in ipairs(traced.events) do
    good = good and 0 <= e.ready and e.ready <= e.issue and e.issue <= e.start and e.start <= e["end"] and
      e["end"] <= traced.cycles
  end
  tap.ok(good, "  with times in order")
end

---- registers whose versions a product still reads when the next tile's loop begins ------

for _, n in ipairs{64, 136, 192} do
  local plan = mr.plan(programs.scan{m = 312, n = n, d = 32}:graph{tile = {m = 64, n = 64}}, mr.device "h200")
  plan:lane("c0", {warps = 4})
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = "c0", at = t.loop and 0 or -1}) end
  plan:buffers{weigh = 2, o = 2}
  plan:grid{eus = 1}
  plan:fill_waits()
  correct(("two versions of an operand in registers, %d columns"):format(n), plan)
end

tap.done_testing()
