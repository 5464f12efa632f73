-- Stores by the copy engine and by threads: for all element types and shapes of tiles, out of
-- registers and out of a ring that a lane of its own stores, with staging for all panels at
-- once and for few. They run on the CPU with several seeds, and detection of races.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")
random_plans.target = arg[1] or "host"

-- A product with a result of a type; twice: it is also stored a second time, in the middle of wider rows.
local function product(dtype, twice)
  return mr.program("product", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B = p:input("A", {m, k}), p:input("B", {n, k})
    local C = p:output("C", {m, twice and p:axes "wide" or n}, dtype)
    local c = p:carry("c", {m, n}, 0)
    p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
    local rounded = p:task("epilogue", function() return (c * 1):to(dtype) end)
    C:store("store_c", rounded, {m, n})
    if twice then C:store("store_again", rounded, {m, n + n.size}) end
  end)
end

-- load on p0, multiply on the lanes c0 ..., store there or on s0.
local function schedule(bound, tile, o)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  local ways = o.ways or 1
  if ways > 1 then plan:split("m", ways) end
  plan:lane("p0", {warps = 1})
  for i = 0, ways - 1 do plan:lane("c" .. i, {warps = o.warps or 4, replicas = o.replicas}) end
  if o.lane then plan:lane(o.lane, {warps = o.store_warps or 1}) end
  plan:buffers{a = o.ring or 2, b = o.ring or 2}
  plan:append("load_a", {seu = "tma", lane = "p0"})
  plan:append("load_b", {seu = "tma", lane = "p0"})
  for i = 0, ways - 1 do
    local part = ways > 1 and "." .. i or ""
    plan:append("mma" .. part, {seu = "tensor", lane = "c" .. i})
    plan:append("epilogue" .. part, {seu = "cuda", lane = "c" .. i})
    for _, task in ipairs(plan.tasks) do
      if task.kind == "store" and (ways == 1 or task.name:sub(-2) == part) then
        plan:append(task.name, {seu = o.seu or "tma", lane = o.lane or "c" .. i})
      end
    end
    if o.lane then plan:buffers{["epilogue" .. part] = o.versions or 1} end
  end
  plan:grid{eus = o.eus or 2}
  plan:fill_waits()
  return plan
end

-- by: what the text must have, "engine" or "threads"
local function try(what, by, bound, tile, o)
  local plan = schedule(bound, tile, o or {})
  local good, problems = plan:check()
  if not good then return tap.ok(false, what, tostring(problems)) end
  local text = plan:compile{target = "host"}.source
  tap.is(text:find "tma_store_" and "engine" or "threads", by, what .. ": by the " .. by)
  local result, message = random_plans.verify(plan, {1, 2, 3})
  tap.ok(result == "ok", what, message, plan:script())
end

local interior, ragged = {m = 192, n = 256, k = 64}, {m = 200, n = 136, k = 40}
for _, dtype in ipairs{"bf16", "f16", "f32"} do
  for name, sizes in pairs{["interior tiles"] = interior, ["ragged ones"] = ragged} do
    try(("%s, %s"):format(dtype, name), "engine", product(dtype)(sizes), {m = 64, n = 128, k = 32})
  end
end
try("two stores, one in the middle of rows", "engine", product("bf16", true){m = 128, n = 128, k = 32, wide = 256},
  {m = 64, n = 64, k = 32})
try("two stores that end within rows", "threads", product("bf16", true){m = 128, n = 100, k = 32, wide = 200},
  {m = 64, n = 64, k = 32})
try("two lanes", "engine", product "bf16"{m = 256, n = 128, k = 64}, {m = 128, n = 128, k = 32}, {ways = 2})
try("two blocks of rows a lane", "engine", product "bf16"{m = 256, n = 64, k = 64}, {m = 128, n = 64, k = 32})
try("replicas", "engine", product "bf16"{m = 512, n = 64, k = 64}, {m = 64, n = 64, k = 32}, {replicas = 2})
try("the last warps have no rows", "engine", product "bf16"{m = 64, n = 64, k = 32}, {m = 32, n = 64, k = 32})
try("rows that do not fill complete warps", "threads", product "bf16"{m = 80, n = 64, k = 32}, {m = 40, n = 64, k = 32})
for _, n in ipairs{16, 24, 40, 144} do               -- multiples of 8 columns, not all of 32
  try(("by threads, %d columns"):format(n), "threads", product "bf16"{m = 128, n = 2 * n - 8, k = 32}, {m = 64, n = n, k = 32}, {seu = "cuda"})
end
try("two panels at a time", "engine", product "bf16"{m = 128, n = 256, k = 64}, {m = 64, n = 256, k = 64}, {ring = 5})
try("eight panels at a time", "engine", product "f32"{m = 128, n = 128, k = 64}, {m = 64, n = 128, k = 64}, {ring = 9})
try("narrow panels", "engine", product "bf16"{m = 64, n = 96, k = 32}, {m = 64, n = 48, k = 32})
try("narrower ones", "engine", product "bf16"{m = 64, n = 32, k = 32}, {m = 64, n = 16, k = 32})
try("a tensor whose rows are not aligned", "threads", product "bf16"{m = 64, n = 100, k = 32}, {m = 64, n = 64, k = 32})
try("threads, as the plan says", "threads", product "bf16"(interior), {m = 64, n = 128, k = 32}, {seu = "cuda"})
for versions = 1, 3 do
  try(("a lane of its own, ring of %d"):format(versions), "engine", product "bf16"{m = 256, n = 256, k = 64},
    {m = 64, n = 128, k = 32}, {lane = "s0", versions = versions, eus = 1})
end
try("a lane of its own, ragged", "engine", product "bf16"(ragged), {m = 64, n = 64, k = 32}, {lane = "s0", versions = 2})
try("a lane of its own, f32", "engine", product "f32"(interior), {m = 64, n = 64, k = 32}, {lane = "s0"})
try("four warps store", "engine", product "bf16"(interior), {m = 64, n = 64, k = 32}, {lane = "s0", store_warps = 4})
try("one lane stores for two", "engine", product "bf16"{m = 256, n = 128, k = 64}, {m = 128, n = 128, k = 32},
  {ways = 2, lane = "s0", versions = 2})
try("the lane that loads stores", "engine", product "bf16"(interior), {m = 64, n = 64, k = 32}, {lane = "p0"})

-- What is loaded, stored as it is. Where an index is a quotient, neighbours share what is loaded, and each is stored.
local function load_and_store(what, at, sizes, tile, o)
  local prog = mr.program("copy", function(p)
    local i, j, n, m = p:axes("i", "j", "n", "m")
    local X, Y = p:input("X", {n, m}, o.dtype), p:output("Y", o.turned and {j, i} or {i, j}, o.dtype)
    Y:store("put", p:load("get", X, at(i, j)))
  end)
  local plan = mr.plan(prog(sizes):graph{tile = tile}, mr.device "h200")
  if o.ways then plan:split(o.ways, 2) end
  plan:lane("c0", {warps = o.warps})
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, t.kind == "load" and {lane = "p0"} or {lane = "c0", seu = o.seu})
  end
  plan:fill_waits()
  local result, message = random_plans.verify(plan, {1})
  tap.ok(result == "ok", what, message, plan:script())
end
for what, at in pairs{
  ["i // 2, j"] = function(i, j) return {i // 2, j} end, ["i // 4, j // 2"] = function(i, j) return {i // 4, j // 2} end,
  ["i, j // 4"] = function(i, j) return {i, j // 4} end, ["i // 32, j"] = function(i, j) return {i // 32, j} end,
  ["i // 3, j"] = function(i, j) return {i // 3, j} end, ["i % 8, j"] = function(i, j) return {i % 8, j} end,
  ["i * 2 + 1, j // 8"] = function(i, j) return {i * 2 + 1, j // 8} end, ["j // 8, i // 8"] = function(i, j) return {j // 8, i // 8} end,
  ["i // 2 % 3, j"] = function(i, j) return {i // 2 % 3, j} end, ["i // 4 * 16 + j, 0"] = function(i, j) return {i // 4 * 16 + j, 0} end,
} do
  for k, tile in ipairs{{i = 16}, {i = 16, j = 4}, {i = 5, j = 8}, {i = 48}} do
    local o = {dtype = ({"f16", "f32", "i8"})[k % 3 + 1], seu = k % 2 == 0 and "cuda" or "tma", turned = k == 2,
      warps = k == 4 and 4 or 1, ways = k % 3 == 1 and "i" or k == 2 and "j" or nil}
    load_and_store(("X[%s], %s, tile %s x %s"):format(what, o.dtype, tile.i, tile.j), at, {i = 48, j = 16, n = 196, m = 48}, tile, o)
  end
end
-- A part of the value has as many rows as the ring, as neighbours share these: the copy engine cannot store it from there.
load_and_store("halves of rows of which two share what is loaded", function(i, j) return {i // 2, j} end,
  {i = 128, j = 64, n = 64, m = 64}, {i = 64}, {dtype = "bf16", seu = "tma", warps = 4, ways = "i"})
-- Truth values are a byte each in memory: masks that are loaded, conditions that are stored, copies.
do
  local masks = mr.program("masks", function(p)
    local m, n, d = p:axes("m", "n", "d")
    local M, K = p:input("M", {m, n}, "bool"), p:input("K", {n, d})
    local q, bound = p:load("load_q", p:input("Q", {m, d})), p:load("load_b", p:input("B", {m}, "f32"))
    local o = p:carry("o", {m, d}, 0)
    local Above, Copy = p:output("Above", {n, m}, "bool"), p:output("Copy", {m, n}, "bool")
    p:loop(n, function()
      local k, mask = p:load("load_k", K), p:load("load_m", M)
      local s = p:mma("mma_s", q, k)
      local w, above = p:task("weigh", function()
        return mr.where(mask, s, 0):to "bf16", s:gt(bound) & mask
      end)
      Above:store("store_above", above)
      Copy:store("store_copy", mask)
      o:add(p:mma("mma_o", w, k))
    end)
    p:output("O", {m, d}, "f32"):store("store_o", p:task("finish", function() return o + 0 end))
  end)
  for _, z in ipairs{{m = 64, n = 64, d = 64}, {m = 70, n = 52, d = 40}} do
    for _, seu in ipairs{"tma", "cuda"} do
      local plan = mr.plan(masks(z):graph{tile = {m = 64, n = 32}}, mr.device "h200")
      plan:lane("c0", {warps = 4})
      for _, t in ipairs(plan.tasks) do
        plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0", seu = (t.kind == "load" or t.kind == "store") and seu or nil})
      end
      plan:fill_waits()
      random_plans.correct(tap, ("truth values of %d x %d, moved by %s"):format(z.m, z.n, seu), plan, {1, 2})
    end
  end
end

---- values that no task makes ----------------------------------------------------

do
  local scatter = mr.program("scatter", function(p)
    local m, n = p:axes("m", "n")
    p:batch(m)
    local x = p:load("load_x", p:input("X", {m, n}, "f32"))
    local at = p:task("rank", function()
      local taken = mr.where(x:gt(0), 1, 0)
      return mr.where(x:gt(0), mr.cumsum(taken, n) - 1, n.size - mr.cumsum(1 - taken, n))
    end)
    p:output("I", {m, n}, "i32"):store("store_n", n:index(), {m, at})
    p:output("M", {m}, "i32"):store("store_m", m:index())
    p:output("C", {m}, "f32"):store("store_c", 2.5)
  end)
  local plan = mr.plan(scatter{m = 4, n = 64}:graph{}, mr.device "h200")
  plan:lane("c0", {warps = 4})
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = "c0", seu = t.kind == "load" and "cuda" or nil}) end
  plan:fill_waits()
  random_plans.correct(tap, "an index that is stored, at values, of a batch axis, and a constant", plan, {1, 2})
end

---- what the program does not store ---------------------------------------------

-- Rows of a larger tensor, at indices of which some are outside: the others keep what they have.
local function cache(rows)
  return mr.program("cache", function(p)
    local b, h, d = p:axes("b", "h", "d")
    local n = p:axis("n", 7)
    local X, Pos = p:input("X", {b, h, d}), p:input("Pos", {b}, "i32")
    local x, pos = p:load("load_x", X), p:load("load_pos", Pos)
    local y = p:task("twice", function() return (x * 2):to "bf16" end)
    p:output("Y", {b, n, p:axis("heads", 5), d}):store("store_y", y, {b, pos, h - 1, d})
    p:output("Z", {b, p:axis("more", 9), d}):store("store_z", y, {b, h + rows, d})
  end)
end

for _, seu in ipairs{"tma", "cuda"} do
  for _, z in ipairs{{b = 3, h = 4, d = 64}, {b = 5, h = 6, d = 40}, {b = 2, h = 8, d = 8}} do
    local plan = mr.plan(cache(2)(z):graph{tile = {b = 2, h = 4}}, mr.device "h200")
    plan:lane("p0", {warps = 1})
    plan:lane("c0", {warps = 4})
    for _, t in ipairs(plan.tasks) do
      plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0", seu = t.kind == "store" and seu or nil})
    end
    plan:fill_waits()
    random_plans.correct(tap, ("parts of tensors, of %d x %d x %d, by %s"):format(z.b, z.h, z.d, seu), plan, {1, 2})
    -- The same plan of another program, which stores to other rows, writes what this one does not store.
    local within, core = require "millrace.within", require "millrace.core"
    local bound = plan.graph.program
    local inputs = bound:inputs{seed = 1}
    local want, allowed = core.reference_allowing(bound, inputs)
    local here = within(bound, plan:compile{target = "host"}:run(inputs), want, allowed, plan.tile)
    tap.ok(here.ok and here.stray == nil, "  no element is written that the program does not store", here.stray)
    local other = load(plan:script())(cache(1)(z)):compile{target = "host"}:run(inputs)
    here = within(bound, other, want, allowed, plan.tile)
    tap.ok(not here.ok and (here.stray or ""):find "^Z%[1, 2, 1%] is written", "  ... and one that is would be wrong", here.stray)
  end
end

tap.done_testing()
