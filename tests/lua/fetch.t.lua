-- Operands of synchronous products that sTasks of their own fetch to registers (plan:fetch): kernels are right on the CPU, whatever
-- the offsets and versions, and what cannot be fetched is refused.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local random_plans = dofile(dir .. "lib/random_plans.lua")

local SEEDS <const> = {1, 2}

-- A plan in the order of the program, with loads on a lane of their own, and what is fetched `at` iterations ahead.
local function planned(x)
  local plan = mr.plan(x.bound:graph{tile = x.tile}, mr.device(x.on))
  for value, task in pairs(x.split_off or {}) do plan:split_off(value, task) end
  for product, values in pairs(x.fetch) do plan:fetch(product, values) end
  if x.split then plan:split(table.unpack(x.split)) end
  plan:lane("p0", {warps = 2})
  plan:lane("c0", {warps = x.warps or 4, columns = x.columns})
  local versions = {}
  for _, task in ipairs(plan.tasks) do
    local fetches = task.name:find "^fetch_"
    plan:append(task.name, {lane = task.kind == "load" and not x.one_lane and "p0" or "c0", at = fetches and x.at or nil,
      seu = task.kind == "mma" and x.seu or nil})
    if fetches then versions[task.writes[1]] = x.versions end
  end
  plan:buffers(versions)
  plan:buffers(x.rings or {})
  plan:fill_waits()
  return plan
end

local function right(what, x)
  local plan = planned(x)
  random_plans.device = mr.device(x.on)
  random_plans.correct(tap, what .. " on " .. x.on, plan, SEEDS)
  return plan
end

-- Offsets and versions, at both levels.
local GEMM <const> = {m = 128, n = 96, k = 160}
for _, on in ipairs{"a100", "mi300x"} do
  for _, v in ipairs{{16, 1, 0, 1}, {16, 2, 1, 3}, {16, 3, 2, 4}, {32, 2, 1, 2}, {32, 2, 0, 2}, {64, 1, 0, 1}} do
    local k, versions, at, stages = table.unpack(v)
    right(("k = %d, %d versions of what is fetched %d ahead, %d stages"):format(k, versions, at, stages), {on = on,
      bound = mr.examples.gemm(GEMM), tile = {m = 64, n = 32, k = k}, fetch = {mma = {"a", "b"}}, versions = versions, at = at,
      rings = {a = stages, b = stages}})
  end
end
-- Each warp has its rows of what is fetched, and its part's columns, also of the first operand in registers.
for _, on in ipairs{"a100", "mi300x"} do
  for columns, values in pairs{[2] = {"a", "b"}, [4] = {"a"}} do
    right(#values .. " fetched by warps in " .. columns .. " columns", {on = on, bound = mr.examples.gemm(GEMM), columns = columns,
      tile = {m = 64, n = 64, k = 32}, fetch = {mma = values}, versions = 2, at = 1, rings = {a = 3, b = 3}})
  end
end
local plan = planned{on = "a100", bound = mr.examples.gemm(GEMM), tile = {m = 64, n = 32, k = 16}, fetch = {mma = {"a", "b"}},
  versions = 2, at = 1, rings = {a = 3, b = 3}}
local dump = tostring(plan:kernel{})
tap.like(dump, "fetch r_fetch_b%[1%] by matrices from slot_b", "an sTask fetches, to the version of its iteration")
tap.like(dump, "product r_c%[0%] %+= r_fetch_a%[0%] x r_fetch_b%[0%]", "a product takes both from registers")
tap.like(dump, "arrive 'fetch_a complete'", "who has fetched signals that the slot is free")
tap.ok(not dump:find "arrive 'mma complete'", "  not who multiplies")
tap.is(load(plan:script())(mr.examples.gemm(GEMM)):script(), plan:script(), "the script makes the plan again")
tap.like(plan:script(), 'plan:fetch%("mma", {"a", "b"}%)', "  by one statement")
plan:undo()
local before = mr.plan(mr.examples.gemm(GEMM):graph{}, mr.device "a100")
before:fetch("mma", {"b"})
tap.ok(before:undo() and #before.tasks == 5, "a fetch is undone")

-- One operand alone; other layouts in memory, ends within tiles, elements of 8 and 32 bits; splits.
for _, on in ipairs{"a100", "mi300x"} do
  for _, values in ipairs{{"a"}, {"b"}} do
    right(values[1] .. " alone", {on = on, bound = mr.examples.gemm(GEMM), tile = {m = 64, n = 32, k = 32}, fetch = {mma = values},
      fetch = {mma = {"a", "b"}}, versions = 2, at = 1, rings = {a = 2, b = 2}})
  end
  for _, sizes in ipairs{{m = 100, n = 72, k = 100}, {m = 100, n = 72, k = 100, a = "km", b = "kn"},
      {m = 33, n = 17, k = 19, out = "f32"}} do
    right(("%d x %d x %d"):format(sizes.m, sizes.n, sizes.k), {on = on, bound = mr.examples.gemm(sizes), tile = {m = 64, n = 32, k = 32},
      fetch = {mma = {"a", "b"}}, versions = 2, at = 1, rings = {a = 3, b = 2}, warps = 2})
  end
  right("parts of a lane", {on = on, bound = mr.examples.gemm{m = 32, n = 128, k = 96}, tile = {m = 16, n = 64, k = 32},
    fetch = {mma = {"a", "b"}}, versions = 2, at = 1, rings = {a = 2, b = 2}})
  local function typed(type)
    return mr.program("typed", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local A, B, C = p:input("A", {m, k}, type), p:input("B", {n, k}, type), p:output("C", {m, n}, type == "i8" and "i32" or "f32")
      local c = p:carry("c", {m, n}, 0)
      p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
      C:store("store_c", c)
    end)
  end
  for _, type in ipairs(on == "a100" and {"i8", "tf32"} or {"i8", "e4m3"}) do
    right(type, {on = on, bound = typed(type){m = 64, n = 64, k = 192}, tile = {m = 64, n = 64, k = type == "tf32" and 16 or 64},
      fetch = {mma = {"a", "b"}}, versions = 2, at = 1, rings = {a = 2, b = 2}})
  end
  right("halves", {on = on, bound = mr.examples.gemm(GEMM), tile = {m = 64, n = 32, k = 32}, fetch = {mma = {"a", "b"}}, split = {"m", 2},
    versions = 2, at = 1, rings = {a = 2, b = 2}, warps = 2})
  right("attention", {on = on, bound = mr.examples.flash_attention{b = 1, h = 1, m = 100, n = 100, d = 32}, tile = {m = 64, n = 32},
    fetch = {mma_qk = {"q", "k"}, mma_pv = {"v"}}, versions = 1, at = 0, rings = {k = 2, v = 2}})
end

-- A tile is loaded as one, and fetched and multiplied in steps, of which each is fetched before the one in front of it is multiplied: the
-- first of the next iteration's tile while the last of this one is.
local function in_steps(what, on, bound, tile, axis, ways, values, more)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device(on))
  if values[1] then plan:fetch("mma", values) end
  local tasks = {"mma"}
  for i, value in ipairs(values) do tasks[i + 1] = "fetch_" .. value end
  plan:split(axis, ways, tasks)
  plan:lane("p0", {warps = 2})
  plan:lane("c0", {warps = 4})
  local function fetch(step, at)
    for _, value in ipairs(values) do plan:append(("fetch_%s.%d"):format(value, step), {lane = "c0", at = at}) end
  end
  local rings = {}
  for _, task in ipairs(plan.tasks) do
    if task.kind == "load" then
      plan:append(task.name, {lane = "p0"})
      rings[task.writes[1]] = 3
    end
  end
  for step = 0, ways - 1 do
    fetch((step + 1) % ways, step == ways - 1 and 1 or 0)
    plan:append("mma." .. step, {lane = "c0", seu = more and more.seu})
  end
  for _, task in ipairs(plan.tasks) do
    if task.kind ~= "load" and not task.name:find "^fetch" and not task.name:find "^mma" then plan:append(task.name, {lane = "c0"}) end
  end
  plan:buffers(rings)
  plan:fill_waits()
  random_plans.device = mr.device(on)
  random_plans.correct(tap, ("%s in %d steps on %s"):format(what, ways, on), plan, SEEDS)
  return plan
end
for _, on in ipairs{"a100", "mi300x"} do
  local gemm, tile = mr.examples.gemm, {m = 64, n = 32, k = 32}
  in_steps("a tile", on, gemm(GEMM), tile, "k", 2, {"a", "b"})
  in_steps("a tile", on, gemm(GEMM), {m = 64, n = 32, k = 64}, "k", 4, {"a", "b"})
  in_steps("one operand", on, gemm(GEMM), tile, "k", 2, {"a"})
  in_steps("the other", on, gemm(GEMM), tile, "k", 2, {"b"})
  in_steps("neither", on, gemm(GEMM), tile, "k", 2, {})
  in_steps("ends within a tile", on, gemm{m = 100, n = 72, k = 100}, tile, "k", 2, {"a", "b"})
  in_steps("columns", on, gemm{m = 100, n = 72, k = 104, a = "km", b = "kn"}, tile, "k", 2, {"a", "b"})
  in_steps("threads", on, gemm(GEMM), tile, "k", 2, {}, {seu = on == "a100" and "cuda" or "valu"})
  in_steps("a convolution", on, mr.examples.conv2d{n = 2, c = 64, h = 8, w = 8, k = 32, r = 3, s = 3, pad = 1},
    {n = 1, p = 8, q = 8, k = 32, r = 1, s = 1, c = 32}, "c", 2, {"x", "f"})
  in_steps("parts of a lane", on, gemm{m = 32, n = 128, k = 96}, {m = 16, n = 64, k = 32}, "k", 2, {"a", "b"})
end
local stepped = in_steps("a tile", "a100", mr.examples.gemm(GEMM), {m = 64, n = 32, k = 32}, "k", 2, {"a", "b"})
tap.is(load(stepped:script())(mr.examples.gemm(GEMM)):script(), stepped:script(), "the script makes such a plan again")
local dumped = tostring(stepped:kernel{})
tap.like(dumped, "arrive 'fetch_a.1 complete'", "the slot is free when its last step is fetched")
tap.ok(not dumped:find "arrive 'fetch_a.0 complete'" and not dumped:find "arrive 'mma", "  and not before, nor later")

-- Slices on lanes of their own, each with fetches of its own, also of the operand that both take.
for _, on in ipairs{"a100", "mi300x"} do
  local plan = mr.plan(mr.examples.gemm(GEMM):graph{tile = {m = 64, n = 32, k = 32}}, mr.device(on))
  plan:fetch("mma", {"a", "b"})
  plan:split("m", 2, {"mma", "fetch_a", "fetch_b", "epilogue", "store_c"})
  plan:lane("p0", {warps = 2})
  for slice = 0, 1 do
    local lane = "c" .. slice
    plan:lane(lane, {warps = 2})
    for _, value in ipairs{"a", "b"} do plan:append(("fetch_%s.%d"):format(value, slice), {lane = lane, at = 1}) end
    for _, task in ipairs{"mma", "epilogue", "store_c"} do plan:append(("%s.%d"):format(task, slice), {lane = lane}) end
  end
  for _, load in ipairs{"load_a", "load_b"} do plan:append(load, {lane = "p0"}) end
  plan:buffers{a = 2, b = 2, ["fetch_a.0"] = 2, ["fetch_a.1"] = 2, ["fetch_b.0"] = 2, ["fetch_b.1"] = 2}
  plan:fill_waits()
  random_plans.device = mr.device(on)
  random_plans.correct(tap, "slices on two lanes, on " .. on, plan, SEEDS)
  tap.is(load(plan:script())(mr.examples.gemm(GEMM)):script(), plan:script(), "  the script makes that plan again")
end

-- Whatever plans there are: several lanes, offsets, versions, splits.
random_plans.fetches = true
local fetching, mma_sync = 0, dofile(dir .. "lib/mma_sync.lua")
for seed = 1, 36 do
  random_plans.device = ({mr.device "a100", mr.device "mi300x", mma_sync})[seed % 3 + 1]
  local drawn, info = random_plans.draw(seed, nil, seed % 2 == 0, seed % 3 == 0)
  if info.fetches and drawn:script():find "plan:fetch" then
    fetching = fetching + 1
    random_plans.correct(tap, ("plan %d, %s on %s"):format(seed, info.program, random_plans.device.name), drawn, SEEDS)
  end
end
random_plans.fetches = nil
tap.ok(fetching > 10, "plans at random fetch", fetching)

-- With a load in two sTasks, too.
local both = right("both levels in registers", {on = "mi300x", bound = mr.examples.gemm(GEMM), tile = {m = 64, n = 32, k = 32},
  split_off = {a = "put_a"}, fetch = {mma = {"a"}}, versions = 1, at = 0, rings = {a = 2, b = 2}, one_lane = true})
tap.is(load(both:script())(mr.examples.gemm(GEMM)):script(), both:script(), "  the script makes that plan again")

-- The model reads an operand once: where it is fetched.
local function bytes(fetch)
  local of = {}
  for _, task in ipairs(planned{on = "a100", bound = mr.examples.gemm(GEMM), tile = {m = 64, n = 32, k = 32}, fetch = fetch}.tasks) do
    of[task.name] = task.shared_bytes
  end
  return of
end
local with, without = bytes{mma = {"a", "b"}}, bytes{}
tap.is(with.mma, 0, "a product whose operands are fetched reads nothing")
tap.is(with.fetch_a + with.fetch_b, without.mma, "  who fetches reads what it would have")

-- ... and what is fetched for the product behind the next one costs its lane little.
local function cycles(versions, at)
  return planned{on = "a100", bound = mr.examples.gemm{m = 128, n = 128, k = 4096}, tile = {m = 128, n = 128, k = 16},
    fetch = {mma = {"a", "b"}}, versions = versions, at = at, rings = {a = 4, b = 4}, warps = 8}:simulate().cycles
end
tap.ok(cycles(2, 1) < 0.95 * cycles(1, 0), "a product covers the fetches for the next one", cycles(2, 1) .. " " .. cycles(1, 0))

-- Suggestions have it, with all that it takes.
local in_order = dofile(dir .. "lib/in_order.lua")
local alone = in_order(mr.device "a100", mr.examples.gemm{m = 2048, n = 2048, k = 2048}, {m = 128, n = 128, k = 32}, 4, {a = 4, b = 4})
local _, tried = alone:simulate():why()
local found
for _, change in ipairs(tried) do found = found or change.text:find "plan:fetch" and change end
tap.ok(found and found.seconds < alone:simulate().seconds, "why() tries fetches, which help", found and found.text)
if found then
  local text = found.text:gsub("plan:", "alone:")
  load("local alone = ...; " .. text)(alone)
  tap.ok(alone:check() and alone:script():find 'plan:split%("k", %d, {"fetch_a", "fetch_b", "mma"}%)', "  a part of the tile at a time",
    alone:script())
end

-- A search tries them if it is asked to: where a tile has one step, nothing else covers its fetches.
local square = mr.examples.gemm{m = 512, n = 512, k = 2048}
local plain = mr.search(square, "mi300x", {trials = 40, measure = false, tile = {m = 64, n = 64, k = 16}})
local ahead = mr.search(square, "mi300x", {trials = 40, measure = false, tile = {m = 64, n = 64, k = 16}, fetch = true})
tap.ok(not plain.plan:script():find "plan:fetch" and ahead.plan:script():find "plan:fetch" and ahead.plan:check(),
  "a search fetches ahead if it is asked to", ahead.plan:script())
tap.ok(ahead.seconds < plain.seconds, "  where that is faster", ahead.seconds .. " " .. plain.seconds)
tap.is(mr.search(square, "h200", {trials = 20, measure = false, fetch = true}).plan:script(),
  mr.search(square, "h200", {trials = 20, measure = false}).plan:script(), "  and not for an asynchronous product")

-- What cannot be.
local function refused(what, pattern, x)
  local good, problems = planned(x):check()
  tap.ok(not good and problems[1].code == "product", what .. ": refused", tostring(problems))
  tap.like(tostring(problems):gsub("%s+", " "), pattern, "  with the reason")
end
local gemm = {bound = mr.examples.gemm(GEMM), tile = {m = 64, n = 32, k = 32}, fetch = {mma = {"b"}}}
local function with_fields(more)
  local x = {}
  for k, v in pairs(gemm) do x[k] = v end
  for k, v in pairs(more) do x[k] = v end
  return x
end
refused("the second operand of an asynchronous product", "asynchronous, and reads the second operand of 'mma' from shared memory itself",
  with_fields{on = "h200"})
refused("an operand of a product by threads", "the threads of 'cuda' read operands from shared memory as they multiply 'mma'",
  with_fields{on = "a100", seu = "cuda"})
refused("a fetch for slices that is not split", "in registers of one lane, in the slices in which 'mma.0' takes it",
  with_fields{on = "a100", fetch = {mma = {"a"}}, split = {"m", 2, {"mma", "epilogue", "store_c"}}})
right("the first operand of an asynchronous product", with_fields{on = "h200", fetch = {mma = {"a"}}, tile = {m = 64, n = 96, k = 64}})
local function fails(what, message, bound, product, values)
  local good, why = pcall(function() mr.plan(bound:graph{}, mr.device "a100"):fetch(product, values) end)
  tap.ok(not good and tostring(why):find(message, 1, true), what .. " is refused", tostring(why))
end
local attention = mr.examples.flash_attention{b = 1, h = 1, m = 64, n = 64, d = 32}
fails("what is no operand", "'c' is no operand of 'mma'", gemm.bound, "mma", {"c"})
fails("the same twice", "'a' is fetched for 'mma' already", gemm.bound, "mma", {"a", "a"})
fails("what is made in registers", "'softmax_2' is made in registers, where 'mma_pv' takes it", attention, "mma_pv", {"softmax_2"})
fails("what is no product", "'softmax' is no product: it has no operands to fetch", attention, "softmax", {"v"})
fails("a task that is not there", "has no task 'mma_q'", attention, "mma_q", {"v"})
tap.done_testing()
