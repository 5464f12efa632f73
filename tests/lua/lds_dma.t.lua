-- Loads from global memory straight to shared memory, without registers (unit `lds_dma` of the MI300X): how plans choose them, that
-- kernels are right for late copies and without a race, by which counts lanes wait for them, and what is in the machine code.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local on_waves = dofile(dir .. "lib/on_waves.lua")
local device = mr.device "mi300x"

local BIN <const> = "/usr/lib/llvm-22/bin/"
local has_tools = os.execute(BIN .. "llvm-objdump --version >/dev/null 2>&1 && clang-22 --version >/dev/null 2>&1 && python3 --version >/dev/null 2>&1")

-- A plan on one lane: what is not loaded, in program order, then the loads, `ahead` iterations before.
local function one_lane(bound, tile, o)
  local plan = mr.plan(bound:graph{tile = tile}, device)
  plan:lane("c0", {warps = o.warps})
  for _, loads in ipairs{false, true} do
    for _, t in ipairs(plan.tasks) do
      if (t.kind == "load" and t.loop ~= nil) == loads then
        plan:append(t.name, {lane = "c0", at = loads and o.ahead or nil, seu = t.kind == "load" and (o.seu or "lds_dma") or nil})
      end
    end
  end
  plan:buffers(o.buffers)
  plan:fill_waits()
  return plan
end

local function right(what, plan)
  local good, problems = plan:check()
  if not tap.ok(good, what .. ": check", tostring(problems)) then return "" end
  local k = plan:compile{target = "host"}
  for seed = 1, 2 do
    local result = k:check{race = true, seed = seed}
    tap.ok(result.ok, ("  right on the CPU, without a race, seed %d"):format(seed), tostring(result))
  end
  return tostring(plan:kernel{})
end

-- The counts of a lane's waits for its copies, in order.
local function waits(dump)
  local list = {}
  for n in dump:gmatch "copies_wait until (%d+)" do list[#list + 1] = n end
  return table.concat(list, " ")
end

---- one lane -----------------------------------------------------------------------

local e <const> = mr.examples
local gemm = e.gemm{m = 256, n = 128, k = 160}
local TILE <const> = {m = 128, n = 64, k = 32}
local plan = one_lane(gemm, TILE, {warps = 4, ahead = 2, buffers = {a = 3, b = 3}})
local dump = right("gemm", plan)
tap.like(dump, "load_threads A, 4096 elements, 2 at once, without registers", "  4 bytes at once")
tap.like(dump, "lanes meet at the block's barrier, 1 time in an iteration", "  once an iteration all threads meet")
tap.ok(not dump:find "flag '", "  nothing is signaled by a flag")
-- Of the tile of an iteration a thread copies eight and four words. The next tile is under way where one is read, at the end none.
tap.is(waits(dump), "12 12 0 0", "  the next tile is under way while one is multiplied")
tap.is(load(plan:script())(gemm):script(), plan:script(), "  the script makes the same plan")

dump = right("three tiles ahead", one_lane(e.gemm{m = 128, n = 64, k = 192}, TILE, {warps = 4, ahead = 3, buffers = {a = 4, b = 4}}))
tap.is(waits(dump), "24 24 12 0 0", "  two are under way, fewer where the loop ends")
dump = right("one tile ahead", one_lane(gemm, TILE, {warps = 4, ahead = 1, buffers = {a = 2, b = 2}}))
tap.is(waits(dump), "0 0 0", "  it is there before it is multiplied")
dump = right("one slot", one_lane(gemm, TILE, {warps = 4, ahead = 1, buffers = {a = 1, b = 1}}))
tap.like(dump, "2 times in an iteration", "  the slot is read before it is written")
for k = 32, 160, 32 do
  right(("%d iterations"):format(k // 32), one_lane(e.gemm{m = 128, n = 64, k = k}, TILE, {warps = 4, ahead = 2, buffers = {a = 3, b = 3}}))
end
dump = right("one wave", one_lane(e.gemm{m = 32, n = 32, k = 96}, {m = 32, n = 32, k = 32}, {warps = 1, ahead = 2, buffers = {a = 3, b = 3}}))
tap.like(dump, "without registers", "  has no other waves")
-- Zeros are written where the tile has more than the tensor.
dump = right("ragged sizes", one_lane(e.gemm{m = 200, n = 104, k = 72}, TILE, {warps = 4, ahead = 2, buffers = {a = 3, b = 3}}))
tap.like(dump, "without registers", "  without registers")
-- Rows of 64 and 128 bytes have a swizzle, and a wider tile several panels.
for _, k in ipairs{64, 128} do
  dump = right(("rows of %d bytes"):format(2 * k), one_lane(e.gemm{m = 64, n = 32, k = 3 * k}, {m = 32, n = 32, k = k},
    {warps = 2, ahead = 1, buffers = {a = 2, b = 2}}))
  tap.like(dump, "without registers", "  without registers")
end
right("operands across rows", one_lane(e.gemm{m = 128, n = 128, k = 96, b = "kn"}, {m = 64, n = 128, k = 32},
  {warps = 4, ahead = 2, buffers = {a = 3, b = 3}}))
right("bytes", one_lane(e.gemm{m = 64, n = 64, k = 256, dtype = "i8", out = "i32"}, {m = 64, n = 64, k = 64},
  {warps = 4, ahead = 2, buffers = {a = 3, b = 3}}))
dump = right("attention", one_lane(e.flash_attention{b = 1, h = 1, m = 64, n = 192, d = 64}, {m = 64, n = 64},
  {warps = 4, ahead = 1, buffers = {k = 2, v = 2}}))
tap.is(select(2, dump:gsub("without registers", "")) >= 3, true, "  before the loop, too")

---- several lanes ------------------------------------------------------------------

-- A lane that copies and one that multiplies.
local apart = mr.plan(gemm:graph{tile = TILE}, device)
apart:lane("c0", {warps = 4})
apart:lane("p0", {warps = 2})
for _, t in ipairs(apart.tasks) do
  local loads = t.kind == "load"
  apart:append(t.name, {lane = loads and "p0" or "c0", seu = loads and "lds_dma" or nil})
end
apart:buffers{a = 3, b = 3}
apart:fill_waits()
dump = right("a lane that only copies", apart)
tap.like(dump, "lanes meet at the block's barrier", "  meets the other one")

-- Each of two lanes loads its half of a; they multiply alternately.
local pair = mr.plan(gemm:graph{tile = TILE}, device)
pair:split("m", 2, {"load_a", "mma", "epilogue", "store_c"})
for i = 0, 1 do
  local lane = "c" .. i
  pair:lane(lane, {warps = 2})
  for _, task in ipairs{"mma", "epilogue", "store_c"} do pair:append(task .. "." .. i, {lane = lane}) end
  pair:append("load_a." .. i, {lane = lane, at = 2, seu = "lds_dma"})
  if i == 0 then pair:append("load_b", {lane = lane, at = 2, seu = "lds_dma"}) end
end
pair:buffers{a = 3, b = 3}
pair:fill_waits()
dump = right("two lanes", pair)
pair:wait("mma.1", {{"mma.0", distance = 0}})
pair:wait("mma.0", {{"mma.1", distance = 1}})
dump = right("ping-pong", pair)
tap.like(dump, "2 times in an iteration", "  meets twice")
tap.ok(dump:find "copies_wait until [1-9]", "  with copies under way at meetings", waits(dump))

-- One load by each way of copying.
local mixed = mr.plan(gemm:graph{tile = TILE}, device)
mixed:split_off("b", "put_b")
mixed:lane("c0", {warps = 4})
for _, x in ipairs{{"mma"}, {"epilogue"}, {"store_c"}, {"load_a", 2, "lds_dma"}, {"put_b", 1}, {"load_b", 2}} do
  mixed:append(x[1], {lane = "c0", at = x[2], seu = x[3]})
end
mixed:buffers{a = 3, b = 2}
mixed:fill_waits()
right("with a load in two sTasks", mixed)

-- The unit stores, too: as others do, by threads.
local stored = one_lane(gemm, TILE, {warps = 4, ahead = 2, buffers = {a = 3, b = 3}})
stored:move("store_c", {seu = "lds_dma"})
stored:fill_waits()
right("a store on the unit", stored)

---- where it is not possible ---------------------------------------------------------

-- Lanes that cannot meet: the lane waits for its copies at once.
local replicas = mr.plan(gemm:graph{tile = TILE}, device)
replicas:lane("c0", {warps = 2})
replicas:lane("p0", {warps = 2, replicas = 2})
for _, t in ipairs(replicas.tasks) do
  local loads = t.kind == "load"
  replicas:append(t.name, {lane = loads and "p0" or "c0", seu = loads and "lds_dma" or nil})
end
replicas:fill_waits()
dump = right("lanes with replicas", replicas)
tap.ok(dump:find "without registers" and dump:find "flag '" and not dump:find "copies_wait until [1-9]", "  wait at once, and signal by flags")
-- What has no neighbours of 4 bytes is copied by way of registers.
local function note_of(p)
  local _, problems = p:check()
  return tostring(problems):gsub("%s+", " ")
end
tap.like(note_of(one_lane(e.gemm{m = 128, n = 64, k = 97}, TILE, {warps = 4, ahead = 2, buffers = {a = 3, b = 3}})),
  "'load_a' is copied by way of registers: 4 bytes are not neighbours", "a note says why not")
tap.like(note_of(one_lane(e.gemm{m = 48, n = 64, k = 96}, {m = 48, n = 64, k = 32}, {warps = 8, ahead = 2, buffers = {a = 3, b = 3}})),
  "'load_a' is copied by way of registers: the warps of lane 'c0' do not have equally many copies of 256 bytes", "  and another one")
dump = right("odd rows", one_lane(e.gemm{m = 128, n = 64, k = 97}, TILE, {warps = 4, ahead = 2, buffers = {a = 3, b = 3}}))
tap.ok(not dump:find "without registers", "  go by registers")
dump = right("waves without a part", one_lane(e.gemm{m = 48, n = 64, k = 96}, {m = 48, n = 64, k = 32}, {warps = 8, ahead = 2,
  buffers = {a = 3, b = 3}}))
tap.ok(dump:find "A, %d+ elements, 8 at once" and dump:find "B, %d+ elements, 2 at once, without registers", "  so does a tile of which waves have no equal parts")
-- Copies on the unit complete in order, so who waits for the second load waits for the first one, too.
dump = right("one load without registers, and one with", one_lane(e.gemm{m = 64, n = 48, k = 96}, {m = 64, n = 48, k = 32}, {warps = 8,
  ahead = 2, buffers = {a = 3, b = 3}}))
tap.ok(dump:find "B, %d+ elements, 8 at once" and dump:find "A, %d+ elements, 2 at once, without registers" and waits(dump) == "2 2 0 0",
  "  the lane waits for the first, too", waits(dump))
dump = tostring(one_lane(e.gemm{m = 2^20, n = 64, k = 2048}, TILE, {warps = 4, ahead = 2, buffers = {a = 3, b = 3}}):kernel{})
tap.ok(dump:find "A, %d+ elements, 8 at once" and dump:find "without registers", "  and a tensor of 2 GiB")
do
  local p = mr.plan(gemm:graph{tile = TILE}, device)
  p:split_off("a", "put_a")
  p:lane("c0", {warps = 4})
  for _, t in ipairs(p.tasks) do p:append(t.name, {lane = "c0", seu = t.name == "load_a" and "lds_dma" or nil}) end
  p:fill_waits()
  local _, problems = p:check()
  tap.like(tostring(problems), "'lds_dma' copies to shared memory", "it keeps nothing in registers")
end

---- suggested ---------------------------------------------------------------------------

do
  local held = one_lane(e.gemm{m = 4096, n = 4096, k = 4096}, {m = 128, n = 128, k = 32}, {warps = 4, ahead = 1, buffers = {a = 2, b = 2}, seu = "vmem"})
  held:move({"load_a", "load_b"}, {before = "mma"})
  held:fill_waits()
  local found
  for _, s in ipairs(held:suggest()) do
    if tostring(s):find 'plan:move%({"load_%a", "load_%a"}, {seu="lds_dma"}%)' then found = s end
  end
  if tap.ok(found, "suggested for copies that hold a lane which multiplies") then
    found:apply()
    tap.ok(held:check() and tostring(held:kernel{}):find "copies_wait", "  makes a legal plan")
  end
end

---- plans drawn at random ------------------------------------------------------------

local random_plans = dofile(dir .. "lib/random_plans.lua")
random_plans.device, random_plans.dma, random_plans.staged = device, true, true
local PLANS <const> = tonumber(os.getenv "MILLRACE_PLANS" or 40)
do
  local loads, under_way, wrong = 0, 0, {}
  for seed = 1, PLANS do
    local p, info = random_plans.draw(seed)
    local result, why = random_plans.verify(p, {1, 2})
    loads = loads + (info.dma or 0)
    if result ~= "ok" then
      wrong[#wrong + 1] = ("seed %d: %s"):format(seed, why)
    elseif tostring(p:kernel{}):find "copies_wait until [1-9]" then
      under_way = under_way + 1
    end
  end
  tap.ok(loads >= PLANS, ("%d plans with %d such loads, %d with copies under way at a meeting"):format(PLANS, loads, under_way), loads)
  tap.is(table.concat(wrong, "\n"), "", "  none refused once it is legal, wrong or racing")
end

-- Lanes that meet, with loads as far ahead as their slots allow, in any order.
do
  local random = math.random
  local function drawn(seed)
    math.randomseed(seed)
    local lanes, k = random(1, 2), 32 * random(1, 6) - (random(4) == 1 and 8 or 0)
    local p = mr.plan(e.gemm{m = 64 * random(1, 3) + 8 * random(0, 4), n = 64, k = k}:graph{tile = {m = 64, n = 64, k = 32}}, device)
    local halves = lanes == 2 and random(2) == 1
    if halves then p:split("m", 2, {"load_a", "mma", "epilogue", "store_c"}) end
    for i = 0, lanes - 1 do p:lane("c" .. i, {warps = random(0, 1) + 1}) end
    local list, rings = {}, {a = random(1, 4), b = random(1, 4)}
    for _, t in ipairs(p.tasks) do
      local lane = t.name:match "%.(%d)$" or t.kind == "load" and random(0, lanes - 1) or 0
      local of = t.name:match "^load_(%a)"
      list[#list + 1] = {t.name, {lane = "c" .. lane, at = of and random(rings[of] > 1 and 1 or 0, rings[of]) or nil,
        seu = of and (random(8) == 1 and "vmem" or "lds_dma") or nil}}
    end
    for i = #list, 2, -1 do
      local j = random(1, i)
      list[i], list[j] = list[j], list[i]
    end
    for _, x in ipairs(list) do p:append(x[1], x[2]) end
    p:buffers(rings)
    if halves and random(2) == 1 then
      p:wait("mma.1", {{"mma.0", distance = 0}})
      p:wait("mma.0", {{"mma.1", distance = 1}})
    end
    p:fill_waits()
    return p
  end
  local legal, under_way, wrong, seed = 0, 0, {}, 0
  while legal < PLANS do
    seed = seed + 1
    local p = drawn(seed)
    if p:check() then
      legal = legal + 1
      local result, why = random_plans.verify(p, {1, 2})
      if result ~= "ok" then
        wrong[#wrong + 1] = ("seed %d: %s"):format(seed, why)
      elseif tostring(p:kernel{}):find "copies_wait until [1-9]" then
        under_way = under_way + 1
      end
    end
  end
  tap.ok(under_way >= PLANS // 8, ("%d of %d such plans, %d with copies under way at a meeting"):format(legal, seed, under_way), under_way)
  tap.is(table.concat(wrong, "\n"), "", "  none wrong or racing")
end

---- machine code -----------------------------------------------------------------------

if not has_tools then
  tap.ok(true, "machine code # SKIP there is no clang-22, llvm-objdump or python3")
  return tap.done_testing()
end
do
  local k = plan:compile{}
  tap.is(k.spills, 0, "compiled for gfx942: nothing in scratch memory")
  local lines = dofile(dir .. "lib/gfx942_assembly.lua")(plan)
  local function count(pattern)
    local n = 0
    for _, line in ipairs(lines) do n = n + (line:find(pattern) and 1 or 0) end
    return n
  end
  tap.is(count "buffer_load_dword .*lds", 36, "  twelve copies of a thread, in the prologue twice and in the loop")
  tap.is(count "global_load_dwordx4", 0, "  none by way of registers")
  tap.is(count "s_waitcnt vmcnt%(12%)", 2, "  the plan's waits")
  tap.is(count "vmcnt%(0%)", 2, "  and none that it does not ask for")
end
local small = {m = 64, n = 32, k = 32}
for _, x in ipairs{
  {"gemm", one_lane(e.gemm{m = 64, n = 32, k = 160}, small, {warps = 2, ahead = 2, buffers = {a = 3, b = 3}}), true},
  {"ragged", one_lane(e.gemm{m = 40, n = 28, k = 72}, small, {warps = 2, ahead = 2, buffers = {a = 3, b = 3}})},
  {"panels", one_lane(e.gemm{m = 32, n = 32, k = 256}, {m = 32, n = 32, k = 128}, {warps = 2, ahead = 1, buffers = {a = 2, b = 2}})},
} do
  local what, p, spoil = table.unpack(x)
  for seed = 1, 3 do
    local wrong = on_waves.wrong(p, seed)
    tap.ok(not wrong, ("%s: its machine code is right where memory answers late, seed %d"):format(what, seed), wrong)
  end
  if spoil then
    local wrong, report = on_waves.wrong(p, 1, 6)
    tap.ok(not wrong and report and not report:find "not found", what .. ": each wait is needed, or it is known why not", wrong or report)
    tap.like(report, "vmcnt, all: %d+ found: ", "  waits for copies are found")
    tap.like(report, "loop: %d+ products, 0 vmcnt", "  and the loop does not wait for all")
    for line in report:gmatch "[^\n]+" do print("# " .. line) end
  end
end

tap.done_testing()
