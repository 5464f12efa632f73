-- Splits of some sTasks, and axes that one user has in tiles and another one as full axes: slices that share
-- a ring, products that begin within an operand, loads and stores in slices, narrow slices.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local random_plans, rare = dofile(dir .. "lib/random_plans.lua"), dofile(dir .. "lib/wild_programs.lua")
random_plans.target = arg[1] or "host"

local SEEDS <const> = {1, 2}                            -- accesses are watched with the first

-- `parts`: what is split, by axis: {m = {2, {"mma", ...}}}, without names all but loads. Parts
-- are on lanes of their own if `apart`, else all on one.
local function schedule(bound, tile, parts, apart, options)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  for axis, split in pairs(parts or {}) do plan:split(axis, table.unpack(split)) end
  for name, lane in pairs(options and options.lanes or {}) do plan:lane(name, lane) end
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, apart and t.kind ~= "load" and {lane = "c" .. (t.name:match "%.(%d+)$" or 0)} or nil)
  end
  if options and options.rings then plan:buffers(options.rings) end
  plan:grid{eus = 1}
  plan:fill_waits()
  return plan
end

local function correct(what, ...) random_plans.correct(tap, what, schedule(...), SEEDS) end

local function refused(what, pattern, ...)
  local plan = schedule(...)
  local lowered, why = pcall(plan.compile, plan, {target = "cuda", text = true})
  if lowered then
    local good, problems = plan:check()
    lowered, why = good, problems[1] and problems[1].message
  end
  tap.ok(not lowered and why:find(pattern), what, tostring(why))
end

---- one product contracts what another one's result has in tiles ------------------

for _, d in ipairs{64, 16} do
  correct(("an operand with all of d, a product with tiles of %d"):format(d),
    rare.twice{m = 64, n = 72, d = 128}, {m = 64, n = 16, d = d})
end
correct("an operand with all of a ragged axis, a product with tiles of it", rare.twice{m = 64, n = 64, d = 100},
  {m = 64, n = 64, d = 32})

-- The first operand is there before the loop, each iteration multiplies some of it.
local ahead = mr.program("ahead", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", p.turned and {k, m} or {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32")
  local a, c = p:load("load_a", A), p:carry("c", {m, n}, 0)
  if p.computed then a = p:task("round", function() return (a:to "f32" * 0.5):to "bf16" end) end
  p:loop(k, function() c:add(p:mma("mma", a, p:load("load_b", B))) end)
  C:store("store_c", p:task("finish", function() return c + 0 end))
end)
for _, how in ipairs{"", "turned", "computed"} do
  correct(("steps of 16 columns of an operand %s"):format(how),
    ahead{m = 72, n = 40, k = 64, turned = how == "turned" or nil, computed = how == "computed" or nil}, {m = 64, n = 32, k = 16})
end
correct("steps of 64 columns of 72", ahead{m = 72, n = 40, k = 72}, {m = 64, n = 32, k = 64})
refused("a remainder that is no complete step", "'mma' multiplies 24 of 'k' in an iteration, and 'a' holds all",
  ahead{m = 72, n = 40, k = 64}, {m = 64, n = 32, k = 24})

---- parts of an operand ---------------------------------------------------------

for _, apart in ipairs{false, true} do
  local where = apart and "a lane each" or "one lane"
  for _, split in ipairs{{2, 8}, {3, 24}, {2, 64}} do
    local ways, part = table.unpack(split)
    correct(("weights in %d parts of %d, %s"):format(ways, part, where),
      rare.qkv{m = 64, n = ways * part + 8, d = 64}, {m = 64, n = ways * part}, {n = {ways}}, apart)
  end
  correct("weights of two products in parts, " .. where, rare.dq{m = 64, n = 64, d = 64}, {m = 64, n = 48},
    {n = {2}}, apart)
  correct("columns in parts of half a panel, " .. where, rare.qkv{m = 64, n = 64, d = 32}, {m = 64, n = 32},
    {d = {2}}, apart)
  correct("rows in parts of 8, " .. where, rare.twice{m = 40, n = 32, d = 32}, {m = 32, n = 32}, {m = {4}}, apart)
end
correct("parts that lie together, in rings of one slot and of two", rare.qkv{m = 64, n = 200, d = 64}, {m = 64, n = 64},
  {n = {2}}, true, {rings = {["narrow.0"] = 2, k = 2}})
refused("parts within a granule", "'mma_pv.1' reads 'v' in tiles of 8 along 'd'.*or split 'load_v' too",
  rare.qkv{m = 64, n = 32, d = 16}, {m = 64, n = 32}, {d = {2}})
correct("the same with a load that is split, too", rare.qkv{m = 64, n = 32, d = 16}, {m = 64, n = 32},
  {d = {2, {"load_v", "mma_pv", "convert", "store_o"}}}, true)

---- one sTask is split, all others are not -------------------------------------

for _, x in ipairs{{"qkv", "mma_qk", "n"}, {"qkv", "narrow", "n"}, {"qkv", "narrow", "m"}, {"qkv", "store_o", "d"},
  {"norms", "store_c", "m"}, {"outer", "multiply", "n"}, {"fold", "mma", "m"}} do
  local program, task, axis = table.unpack(x)
  for _, apart in ipairs{false, true} do
    local sizes = {m = 72, n = 72, d = program == "qkv" and 64 or nil, k = program ~= "qkv" and 32 or nil}
    correct(("only %s of %s along %s, %s"):format(task, program, axis, apart and "a lane each" or "one lane"),
      rare[program](sizes), {m = 64, n = 32, k = program == "norms" and 32 or nil}, {[axis] = {2, {task}}}, apart)
  end
end

---- loads in parts -------------------------------------------------------------

for _, layout in ipairs{{"mk", "nk"}, {"km", "kn"}} do
  for _, with in ipairs{true, false} do
    for _, axis in ipairs{"m", "n"} do
      local load = axis == "m" and "load_a" or "load_b"
      correct(("%s in parts, of %s by %s, %s"):format(load, layout[1], layout[2], with and "all others, too" or "alone"),
        mr.examples.gemm{m = 136, n = 80, k = 64, a = layout[1], b = layout[2]}, {m = 48, n = 48, k = 32},
        {[axis] = {2, with and {load, "mma", "epilogue", "store_c"} or {load}}}, with)
    end
  end
end

---- columns that make no equal instructions ------------------------------------

for _, layout in ipairs{"nk", "kn"} do
  correct("344 columns, the second operand " .. layout, mr.examples.gemm{m = 64, n = 344, k = 32, b = layout},
    {m = 64, n = 344, k = 16}, nil, false, {lanes = {c0 = {warps = 8}}})
end

---- parts narrower than a wide store --------------------------------------------

local halves = mr.program("halves", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local X, Y = p:input("X", {n, k, m}, "f32"), p:output("Y", {m, n, k}, "f16")
  local x = p:load("x", X)
  Y:store("store_y", p:task("convert", function() return (x * 2):to "f16" end))
end)
for _, columns in ipairs{8, 12, 24, 40} do
  correct(columns .. " columns in two parts", halves{m = 16, n = 8, k = columns}, {m = 16, n = 8}, {k = {2}}, true)
end

---- slices of all of an axis, and of the tile -------------------------------------

-- A product needs v of all m; another task of the tile's m alone. Its second slice has rows of the first half of v.
local shared = mr.program("shared", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local x = p:load("load_x", p:input("X", {m, k}, "f32"))
  local v = p:task("v", function() return mr.exp(-x):to "bf16" end)
  local low = p:task("low", function() return mr.cummin(v:to "f32", k) end)
  local s = p:mma("mma", p:load("load_a", p:input("A", {n, m})), v)
  p:output("Y", {m, k}, "f32"):store("store_y", low)
  p:output("Z", {n, k}, "f32"):store("store_z", p:task("out", function() return s + 0 end))
end)
do
  local plan = mr.plan(shared{m = 64, n = 64, k = 8}:graph{tile = {m = 32}}, mr.device "h200")
  plan:split("m", 2)
  plan:lane("p0", {})
  plan:lane("c0", {warps = 4})
  plan:lane("c1", {warps = 4})
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or t.name:find "%.1$" and "c1" or "c0"})
  end
  local _, problems = plan:check()
  tap.like(tostring(problems), "v%.0 for .*low%.1", "a slice of the tile waits for the slice of all that has its rows")
  plan:fill_waits()
  random_plans.correct(tap, "slices of all of an axis and of the tile", plan, SEEDS)
end

tap.done_testing()
