-- Values that lanes pass to each other through shared memory: the accumulator of a product
-- whose epilogue is another lane's, a carry that one lane updates and another reads in the
-- next iteration, the statistics of a softmax on a second lane; rings of one and of three
-- versions, loops of no, one, two and five iterations, interior and ragged tiles.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local random_plans, programs = dofile(dir .. "lib/random_plans.lua"), dofile(dir .. "lib/programs.lua")
random_plans.target = arg[1] or "host"

local SEEDS <const> = {1, 2, 3, 4}

-- The sTasks of `on` where it says, other loads on p0, all others on c0; `at` are offsets.
local function schedule(bound, tile, on, rings, at)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  local lanes = {p0 = 1, c0 = 4}
  for _, t in ipairs(plan.tasks) do
    local lane = on[t.name] or t.kind == "load" and "p0" or "c0"
    lanes[lane] = lanes[lane] or 4
    plan:append(t.name, {lane = lane, at = at and at[t.name] or 0})
  end
  for name, warps in pairs(lanes) do plan:lane(name, {warps = warps}) end
  plan:buffers(rings)
  plan:grid{eus = 1}
  plan:fill_waits()
  return plan
end

local function correct(what, plan) random_plans.correct(tap, what, plan, SEEDS) end

-- Does the plan say that the buffer is in shared memory?
local function is_shared(plan, buffer)
  return tostring(plan):find("\n  " .. buffer .. " +%d+ .-shared") ~= nil
end

---- values of any type ----------------------------------------------------------

for _, dtype in ipairs{"f32", "tf32", "bf16", "f16", "e4m3", "e5m2", "e8m0", "i32", "i8", "u8", "bool"} do
  local handed = mr.program("handed", function(p)
    local m, n = p:axes("m", "n")
    local A, C = p:input("A", {m, n}, "f32"), p:output("C", {m, n}, "f32")
    local a = p:load("load_a", A)
    local x = p:task("first", function() 
      local all_have = mr.floor(mr.max(-4, mr.min(a * 2, 4)))
      return dtype == "bool" and a:gt(0) or dtype == "f32" and all_have or all_have:to(dtype)
    end)
    C:store("store_c", p:task("second", function()
      return dtype == "bool" and mr.where(x, 1, 2) * 1.5 or (dtype == "f32" and x or x:to "f32") * 2
    end))
  end)
  local plan = schedule(handed{m = 72, n = 40}, {m = 32, n = 16}, {first = "c1"}, {first = 2})
  tap.ok(is_shared(plan, "first"), dtype .. " is in shared memory")
  correct(dtype .. " on its way from lane to lane", plan)
end

---- the accumulator on one lane, the epilogue on another -----------------------

for _, tile in ipairs{{m = 64, n = 64, k = 32}, {m = 128, n = 32, k = 64}} do
  for _, trips in ipairs{1, 2, 5} do
    for _, ring in ipairs{1, 3} do
      local bound = mr.examples.gemm{m = 2 * tile.m + 24, n = 2 * tile.n - 8, k = tile.k * trips,
        activation = "relu"}
      local plan = schedule(bound, tile, {epilogue = "c1", store_c = "c1"}, {a = 2, b = 2, c = ring})
      tap.ok(is_shared(plan, "c"), "the accumulator is in shared memory")
      correct(("an epilogue on another lane, tile %d x %d, %d iterations, a ring of %d"):format(tile.m,
        tile.n, trips, ring), plan)
    end
  end
end
for _, tile in ipairs{64, 128} do
  for _, ring in ipairs{1, 3} do
    correct(("an epilogue on another lane, 0 to 4 iterations of %d rows, a ring of %d"):format(tile, ring),
      schedule(programs.triangle{m = 5 * tile, n = 64, k = 5 * tile}, {m = tile, n = 64, k = tile},
      {convert = "c1", store_c = "c1"}, {a = 2, b = 2, c = ring}))
  end
end
correct("an operand from one lane, the product on a second, the epilogue on a third", schedule(
  programs.triangle{m = 320, n = 64, k = 320}, {m = 64, n = 64, k = 64},
  {mask = "c1", convert = "c2", store_c = "c2"}, {a = 2, b = 2, mask = 2}))
correct("an accumulator of a loop inside a loop", schedule(programs.mlp{m = 136, n = 160, k = 96, d = 64},
  {m = 64, n = 64, k = 32}, {relu = "c1"}, {a = 2, b = 2, v = 2, c = 2, relu = 2}))
correct("two accumulators, one of them another lane's", schedule(programs.gated{m = 136, n = 72, k = 96},
  {m = 64, n = 64, k = 32}, {mma_h = "c1"}, {}))

---- carries that lanes update and read alternately -----------------------------

for _, trips in ipairs{1, 2, 5} do
  local sizes, tile = {m = 136, n = 72, k = 32 * trips}, {m = 64, n = 64, k = 32}
  correct(("a carry read on a lane before another overwrites it, %d iterations"):format(trips),
    schedule(programs.highest(sizes), tile, {before = "c1"}, {a = 2, b = 2, before = 2}))
  correct(("a product that another lane reads, %d iterations"):format(trips),
    schedule(programs.highest(sizes), tile, {before = "c1", after = "c1", join = "c1", store_c = "c1"},
    {a = 2, b = 2, mma = 3}))
  correct(("sums that a second lane keeps, %d iterations"):format(trips),
    schedule(programs.normed(sizes), tile, {square = "c1"}, {a = 2, b = 2}))
  sizes = {m = 136, n = 64, k = 32 * trips, d = 64}
  correct(("an accumulator set by one lane, summed up by another, read by a third, %d iterations")
    :format(trips), schedule(programs.recurrent(sizes), {m = 64, k = 32}, {rows = "c1", read = "c2"},
    {a = 2, b = 2, read = 2}))
end

---- attention: statistics of the softmax on a second lane -----------------------

for _, causal in ipairs{false, true} do
  local bound = mr.examples.flash_attention{b = 1, h = 2, m = 200, n = 200, d = 64, causal = causal}
  for _, ring in ipairs{1, 3} do
    correct(("a softmax on a second lane, %s, a ring of %d"):format(causal and "causal" or "full", ring),
      schedule(bound, {m = 64, n = 64}, {softmax = "c1"},
      {k = 2, v = 2, mma_qk = ring, softmax = ring, softmax_2 = ring}))
  end
  correct(("a softmax and all that scales on a second lane, %s"):format(causal and "causal" or "full"),
    schedule(bound, {m = 128, n = 32}, {softmax = "c1", rescale = "c1"}, {k = 2, v = 2}))
  correct(("scores ahead of a softmax on a second lane, %s"):format(causal and "causal" or "full"),
    schedule(bound, {m = 64, n = 64}, {softmax = "c1"},
    {k = 2, v = 2, mma_qk = 2, softmax = 2, softmax_2 = 2}, {mma_qk = 1, softmax = 1}))
end

---- who loads has other work -----------------------------------------------------

-- That it is done is seen by the next copy, although one thread of one warp issues that.
local two_pass = {load_q = "c0", load_k1 = "c0", load_k2 = "c0", load_v2 = "c0", mma_first = "c1",
  mma_v = "c1", divide = "c1", store_o = "c1"}
for ahead = 0, 1 do
  correct(("a value overwritten once the next copy is there, products %d ahead"):format(ahead), schedule(
    programs.two_pass{m = 64, n = 128, d = 64}, {m = 64, n = 32}, two_pass, {mma_second = 2},
    {mma_first = ahead, weights = -1, mma_v = -1}))
end
for _, ring in ipairs{1, 2} do
  correct(("statistics read before the next tile's copies, rings of %d"):format(ring), schedule(
    mr.examples.flash_attention{b = 1, h = 2, m = 120, n = 120, d = 32, causal = true}, {m = 64, n = 64},
    {load_q = "c0", load_k = "c0", load_v = "c0", mma_qk = "c1", softmax = "c1", mma_pv = "c1"},
    {q = ring, k = 4, v = 3, softmax = 4, softmax_2 = 2}))
end

-- Runs of a loop that makes none in some tiles, of sTasks that one lane awaits by two ways.
for _, m in ipairs{248, 504} do
  local bound = mr.examples.flash_attention{b = 1, h = 1, m = m, n = 128, d = 64, causal = true}
  correct(("sums of a loop without iterations on a lane that loads, %d rows"):format(m), schedule(bound,
    {m = 128, n = 64}, {load_q = "c1", load_k = "c1", load_v = "c1", normalise = "c1", store_o = "c1"},
    {k = 3, softmax = 2, softmax_2 = 3, normalise = 3}))
end

---- copies of a lane -------------------------------------------------------------

-- A lane with replicas: rings that they share, with other lanes or alone.
local function with_replicas(replicas, plan)
  plan:lane("c0", {warps = 4, replicas = replicas})
  plan:fill_waits()
  return plan
end
for replicas = 2, 3 do
  for behind = -1, 0 do
    correct(("a carry between %d replicas and a lane, stores at %d"):format(replicas, behind), with_replicas(replicas, schedule(
      programs.highest{m = 256, n = 64, k = 160}, {m = 64, n = 32, k = 64}, {after = "c1"},
      {join = 1 - behind}, {store_c = behind})))
  end
  for ahead = 0, 1 do
    correct(("weights unpacked by %d replicas, %d tiles behind"):format(replicas, ahead), with_replicas(replicas, schedule(
      mr.examples.dequant_gemm{m = 232, n = 72, k = 128, group = 64}, {m = 64, n = 64, k = 64}, {},
      {scale = 2, a = 3, c = 1 + ahead, convert = 1 + ahead},
      {dequant = 0, convert = -ahead, store_c = -ahead})))
    local plan = with_replicas(replicas, schedule(
      mr.examples.gemm{m = 200, n = 128, k = 96}, {m = 64, n = 64, k = 32}, {load_a = "c0", load_b = "c0"},
      {a = 2, b = 3, c = 1 + ahead}, {epilogue = -ahead, store_c = -ahead}))
    correct(("%d replicas that load for themselves, stores at %d"):format(replicas, -ahead), plan)
    plan:wait("load_b", {{"load_a", distance = 1}})
    correct(("%d replicas that wait for earlier loads, stores at %d"):format(replicas, -ahead), plan)
  end
end

-- A replica goes on when the one before has seen the last flag of its tile, which here is what the output is made of, and not only
-- when that has stored the tile.
do
  local plan = mr.plan(mr.examples.chunk_scan{b = 1, s = 500, h = 3, p = 64, n = 64}:graph{tile = {l = 64, k = 64, p = 64}}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 4, replicas = 2})
  for _, task in ipairs(plan.tasks) do plan:append(task.name, {lane = task.kind == "load" and "p0" or "c0"}) end
  plan:buffers{da = 2, cb = 3, x = 3, dt = 3, dak = 3}
  plan:fill_waits()
  correct("two replicas whose last flags are those behind the loop", plan)
  local text = tostring(plan:kernel())
  local tells, stores = text:find "arrive 'finish issued' t", text:find "task 'store_out'"
  tap.ok(tells and stores and tells < stores, "  the next one goes on before the tile is stored", text)
end

---- what a replica waits for, in the model ----------------------------------------------------------

-- A replica begins a tile when the one that has the tile before has issued the last sTask that waits there.
do
  local scaled = mr.program("scaled", function(p)
    local m, n = p:axes("m", "n")
    local x, b = p:load("load_x", p:input("X", {m, n})), p:load("load_b", p:input("B", {m, n}))
    local y = p:task("first", function() return mr.exp2(x) end)
    p:output("Y", {m, n}):store("store_y", p:task("last", function() return y + b end))
  end)
  local plan = mr.plan(scaled:bind{m = 8192, n = 1024}:graph{tile = {m = 8, n = 1024}}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c", {warps = 4, replicas = 2})
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c"}) end
  plan:buffers{x = 4, b = 4}
  plan:fill_waits()
  local begun, issued, early, tiles = {}, {}, {}, 0
  for _, e in ipairs(plan:simulate().events) do
    if e.task == "first" then begun[e.tile] = e.start elseif e.task == "last" then issued[e.tile] = e.issue end
  end
  for tile, at in pairs(begun) do
    if issued[tile - 1] then
      tiles = tiles + 1
      if at < issued[tile - 1] then early[#early + 1] = tile end
    end
  end
  tap.ok(tiles > 4 and #early == 0, "a replica begins a tile behind the waits of the tile before", tiles, table.concat(early, " "))
end

tap.done_testing()
