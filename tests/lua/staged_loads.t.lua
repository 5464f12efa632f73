-- Loads in two sTasks: to registers, and from there to shared memory. What split_off makes of a load, what it refuses, that
-- the kernels are right for each machine, and what is counted in their machine code.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local on_waves = dofile(dir .. "lib/on_waves.lua")

-- A plan on one lane: `ahead` iterations before the product its tile is loaded, one before that it is put to shared memory.
local function one_lane(bound, tile, device, o)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device(device))
  for _, load in ipairs(o.loads) do plan:split_off(load:gsub("^load_", ""), (load:gsub("^load_", "put_"))) end
  plan:lane("c0", {warps = o.warps})
  local put, loaded = {}, {}
  for _, load in ipairs(o.loads) do
    put[load:gsub("^load_", "put_")], loaded[load] = true, true
  end
  -- in program order, but what makes the next tiles comes behind what reads the present ones
  local function append(which, options)
    for _, t in ipairs(plan.tasks) do
      if which(t) then
        options.seu = loaded[t.name] and o.seu or nil
        plan:append(t.name, options)
      end
    end
  end
  append(function(t) return not put[t.name] and not loaded[t.name] end, {lane = "c0"})
  append(function(t) return put[t.name] end, {lane = "c0", at = 1})
  append(function(t) return loaded[t.name] end, {lane = "c0", at = o.ahead or 2})
  plan:buffers(o.buffers)
  plan:fill_waits()
  return plan
end

local function right(what, plan)
  local good, problems = plan:check()
  if not tap.ok(good, what .. ": check", tostring(problems)) then return end
  local k = plan:compile{target = "host"}
  local result = k:check{race = true}
  tap.ok(result.ok, "  right on the CPU, without a race", tostring(result))
  return k
end

---- the graph ------------------------------------------------------------------

local gemm = mr.examples.gemm{m = 256, n = 128, k = 160}
local ab = {"load_a", "load_b"}
local plan = one_lane(gemm, {m = 128, n = 64, k = 32}, "mi300x", {loads = ab, warps = 4, buffers = {a = 2, b = 2}})
local of = {}
for _, t in ipairs(plan.tasks) do of[t.name] = t end
tap.is(table.concat(of.put_a.reads, " ") .. " -> " .. table.concat(of.put_a.writes, " "), "load_a -> a",
  "what is loaded has the load's name, and the value in shared memory keeps its own")
tap.is(of.put_a.kind .. " " .. of.put_a.loop, "compute k", "it is work of the threads in the same loop")
tap.is(load(plan:script())(gemm):script(), plan:script(), "the script makes the same plan")
local waits = {}
for _, w in ipairs(plan.waits) do waits[w.task .. " " .. w.on] = true end
tap.ok(waits["put_a load_a"] and waits["put_b load_b"], "a put waits for its load")

---- kernels ---------------------------------------------------------------------

local k = right("gemm on mi300x", plan)
tap.ok(not k.source:find "flag_", "  nothing is signaled: there is one lane, whose threads meet at barriers")
local function meetings(text) return select(2, text:match("steady_0; .-mma, iteration trips"):gsub("BLOCK_SYNC", "")) end
tap.is(meetings(k.source), 1, "  once an iteration: the slot that is written was read before they last met")
local single = right("a slot that is still read", one_lane(gemm, {m = 128, n = 64, k = 32}, "mi300x",
  {loads = ab, warps = 4, buffers = {a = 2, b = 1}}))
tap.is(meetings(single.source), 2, "  twice an iteration, for both values together")
right("two versions in registers", one_lane(gemm, {m = 128, n = 64, k = 32}, "mi300x",
  {loads = ab, warps = 4, ahead = 3, buffers = {a = 2, b = 2, load_a = 2, load_b = 2}}))
right("ragged sizes", one_lane(mr.examples.gemm{m = 200, n = 104, k = 72}, {m = 128, n = 64, k = 32}, "mi300x",
  {loads = ab, warps = 4, buffers = {a = 2, b = 2}}))
local transposed = mr.program("transposed", function(p)
  local m, n, kk = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {kk, m}), p:input("B", {kk, n}), p:output("C", {m, n}, "f32")
  local c = p:carry("c", {m, n}, 0)
  p:loop(kk, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
  C:store("store_c", c)
end):bind{m = 128, n = 128, k = 96}
for _, device in ipairs{"mi300x", "a100", "h200"} do
  local seu = device ~= "mi300x" and "cuda" or nil
  right("one transposed on " .. device, one_lane(transposed, {m = 64, n = 64, k = 32}, device,
    {loads = ab, warps = 4, seu = seu, buffers = {a = 2, b = 2}}))
  right("attention on " .. device, one_lane(mr.examples.flash_attention{b = 1, h = 1, m = 64, n = 192, d = 64},
    {m = 64, n = 64}, device, {loads = {"load_k", "load_v"}, warps = 4, seu = seu, buffers = {k = 2, v = 2}}))
end

-- Each of two lanes loads and puts its half of a; the first one all of b.
local halves = mr.plan(gemm:graph{tile = {m = 128, n = 64, k = 32}}, mr.device "mi300x")
halves:split_off("a", "put_a")
halves:split_off("b", "put_b")
halves:split("m", 2, {"load_a", "put_a", "mma", "epilogue", "store_c"})
for i = 0, 1 do
  local lane = "c" .. i
  halves:lane(lane, {warps = 2})
  for _, task in ipairs{"mma", "epilogue", "store_c"} do halves:append(task .. "." .. i, {lane = lane}) end
  halves:append("put_a." .. i, {lane = lane, at = 1})
  if i == 0 then halves:append("put_b", {lane = lane, at = 1}) end
  halves:append("load_a." .. i, {lane = lane, at = 2})
  if i == 0 then halves:append("load_b", {lane = lane, at = 2}) end
end
halves:buffers{a = 2, b = 2}
halves:fill_waits()
right("two lanes", halves)
local function syncs(p)
  local lanes = {}
  for name, text in tostring(p:kernel{}):gmatch "lane (c%d)(.-)\n  *task 'store_c" do
    local prologue, steady = text:match "^(.-)(loop j_0.*)$"
    lanes[#lanes + 1] = name .. " " .. select(2, prologue:gsub("block_sync", "")) .. " " ..
      select(2, steady:match "^(.-)\n *task[^\n]*iteration trips":gsub("block_sync", ""))
  end
  return table.concat(lanes, ", ")
end
tap.like(tostring(halves:kernel{}), "lanes meet at the block's barrier, 1 time in an iteration", "  meet once in an iteration")
tap.is(syncs(halves), "c0 3 1, c1 3 1", "  both alike")
-- The products of one lane, then those of the other.
local pair = halves:copy()
pair:wait("mma.1", {{"mma.0", distance = 0}})
pair:wait("mma.0", {{"mma.1", distance = 1}})
right("ping-pong", pair)
tap.like(tostring(pair:kernel{}), "lanes meet at the block's barrier, 2 times in an iteration", "  they meet twice in an iteration")
tap.is(syncs(pair), "c0 5 2, c1 6 2", "  and one lane is later by one meeting")
local order = {}
for what, name in tostring(pair:kernel{}):match "lane c0.-loop j_0[^\n]*(\n.-)\n *task[^\n]*iteration trips":gmatch "\n +(%l[_%l]*) ?'?([%l_]*)" do
  if what == "task" or what == "block_sync" then order[#order + 1] = what == "task" and name or "|" end
end
tap.is(table.concat(order, " "), "mma | put_a put_b load_a load_b |", "  between them stands what copies")

-- Lanes with replicas cannot meet.
local function all_lanes_apart()
  local q = mr.plan(gemm:graph{tile = {m = 64, n = 64, k = 32}}, mr.device "mi300x")
  q:lane("c0", {warps = 2})
  q:lane("p0", {warps = 2, replicas = 2})
  for _, t in ipairs(q.tasks) do q:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
  q:fill_waits()
  return q
end

---- lanes that meet -----------------------------------------------------------------

local function meet(what, plan)
  plan:fill_waits()
  local k = right(what, plan)
  if k then tap.like(tostring(plan:kernel{}), "lanes meet at the block's barrier", "  by meetings") end
end
local function two_lanes(bound)
  local p = mr.plan(bound:graph{tile = {m = 64, n = 64, k = 32}}, mr.device "mi300x")
  p:lane("c0", {warps = 2})
  p:lane("c1", {warps = 2})
  return p
end

-- A lane that neither multiplies nor copies, and for which a product waits.
local p = two_lanes(mr.program("stored", function(b)
  local m, n, kk = b:axes("m", "n", "k")
  local A, B, C, Y = b:input("A", {m, kk}), b:input("B", {n, kk}), b:output("C", {m, n}, "f32"), b:output("Y", {m, kk}, "f32")
  local c = b:carry("c", {m, n}, 0)
  b:loop(kk, function()
    c:add(b:mma("mma", b:load("load_a", A), b:load("load_b", B)))
    Y:store("store_y", (m:index() + kk:index()):to "f32")
  end)
  C:store("store_c", c)
end):bind{m = 128, n = 64, k = 160})
for _, t in ipairs(p.tasks) do
  if t.kind ~= "load" then p:append(t.name, {lane = (t.loop and t.name ~= "mma") and "c1" or "c0"}) end
end
for _, name in ipairs(ab) do p:append(name, {lane = "c0", at = 1}) end
p:buffers{a = 2, b = 2}
p:wait("mma", {{"store_y", distance = 0}})
meet("a lane that only stores", p)

-- A copy for which no product waits stands behind what waits for another copy.
p = two_lanes(mr.program("copied", function(b)
  local m, n, kk = b:axes("m", "n", "k")
  local A, B, C = b:input("A", {m, kk}), b:input("B", {n, kk}), b:output("C", {m, n}, "f32")
  local Z, Y, X = b:input("Z", {m, kk}), b:output("Y", {m, kk}), b:output("X", {m, kk})
  local c = b:carry("c", {m, n}, 0)
  b:loop(kk, function()
    c:add(b:mma("mma", b:load("load_a", A), b:load("load_b", B)))
    local z = b:load("load_z", Z)
    X:store("store_x", z)
    Y:store("store_y", z)
  end)
  C:store("store_c", c)
end):bind{m = 128, n = 64, k = 320})
for _, t in ipairs(p.tasks) do
  if t.name == "mma" or not t.loop then p:append(t.name, {lane = "c0"}) end
end
for _, name in ipairs(ab) do p:append(name, {lane = "c0", at = 2}) end
p:append("store_x", {lane = "c1"})
p:append("store_y", {lane = "c1", at = 2})
p:append("load_z", {lane = "c1", at = 3})
p:buffers{a = 4, b = 4, z = 5}
p:wait("store_y", {{"load_a", distance = 0}})
meet("a copy without a product", p)

-- The lane reads a slot through an alias.
p = two_lanes(mr.program("halved", function(b)
  local m, n, kk = b:axes("m", "n", "k")
  local A, B, A2, B2 = b:input("A", {m, kk}), b:input("B", {n, kk}), b:input("A2", {m, kk}), b:input("B2", {n, kk})
  local C, D = b:output("C", {m, n}, "f32"), b:output("D", {m, n}, "f32")
  local c, d = b:carry("c", {m, n}, 0), b:carry("d", {m, n}, 0)
  b:loop(kk, function()
    d:add(b:mma("mma2", b:load("load_a2", A2), b:load("load_b2", B2)))
    local right_side, a = b:load("load_b", B), b:load("load_a", A)
    local x = b:task("first", function() return a:to "f32" * 0.5 end)
    c:add(b:mma("mma", b:task("halve", function() return x:to "bf16" end), right_side))
  end)
  C:store("store_c", c)
  D:store("store_d", d)
end):bind{m = 64, n = 64, k = 320})
p:alias{halve = "a"}
for _, name in ipairs{"mma2", "first", "halve", "mma"} do p:append(name, {lane = "c0"}) end
p:append("load_a", {lane = "c0", at = 2})
p:append("load_b", {lane = "c1"})
for _, name in ipairs{"load_a2", "load_b2"} do p:append(name, {lane = "c1", at = 1}) end
for _, t in ipairs(p.tasks) do
  if not t.loop then p:append(t.name, {lane = "c0"}) end
end
p:buffers{a = 2, b = 2, a2 = 3, b2 = 3, halve = 2}
meet("an alias of a slot", p)

-- Where lanes do not meet, none waits for the others where a tile ends.
local by_flags = tostring(all_lanes_apart():kernel{})
tap.ok(by_flags:find "flags are counters" and not by_flags:find "the tile ends", "no meeting where lanes signal by flags", by_flags)

---- plans drawn at random ---------------------------------------------------------

local random_plans = dofile(dir .. "lib/random_plans.lua")
random_plans.staged = true
local PLANS <const> = tonumber(os.getenv "MILLRACE_PLANS" or 40) // 2
for _, device in ipairs{"mi300x", "a100", "h200"} do
  random_plans.device = mr.device(device)
  local divided, wrong = 0, {}
  for seed = 1, PLANS do
    local p, info = random_plans.draw(seed)
    local result, why = random_plans.verify(p, {1, 2})
    divided = divided + (info.staged or 0)
    if result ~= "ok" then wrong[#wrong + 1] = ("seed %d: %s"):format(seed, why) end
  end
  tap.ok(divided >= PLANS // 2, ("%s: %d plans with %d divided loads"):format(device, PLANS, divided), divided)
  tap.is(table.concat(wrong, "\n"), "", "  none refused once it is legal, wrong or racing")
end

-- Two lanes each put a slice of an operand that both read: a slot has all slices.
for device, o in pairs{mi300x = {seu = "vmem", warps = 4}, a100 = {seu = "cuda", warps = 8}} do
  local p = mr.plan(mr.examples.gemm{m = 256, n = 256, k = 160}:graph{tile = {m = 128, n = 128, k = 32}}, mr.device(device))
  p:split_off("a", "put_a")
  p:split_off("b", "put_b")
  p:split("m", 2, {"load_a", "put_a", "mma", "epilogue", "store_c"})
  p:split("n", 2, {"load_b", "put_b"})
  for i = 0, 1 do
    local lane = "c" .. i
    p:lane(lane, {warps = 4})
    p:append("mma." .. i, {lane = lane})
    for _, put in ipairs{"put_a.", "put_b."} do p:append(put .. i, {lane = lane, at = 1}) end
    for _, loaded in ipairs{"load_a.", "load_b."} do p:append(loaded .. i, {lane = lane, at = 2, seu = o.seu}) end
    for _, task in ipairs{"epilogue.", "store_c."} do p:append(task .. i, {lane = lane}) end
  end
  p:buffers{a = 2, b = 2}
  p:fill_waits()
  right("slices that are read together, on " .. device, p)
  tap.like(tostring(p:kernel{}), "ring b_0: 2 of 8192 bytes at (%d+)\n  ring b_1: 2 of 8192 bytes at %1\n", "  which have the same slots")
end

---- machine code ------------------------------------------------------------------

local BIN <const> = "/usr/lib/llvm-22/bin/"
if os.execute(BIN .. "llvm-objdump --version >/dev/null 2>&1 && clang-22 --version >/dev/null 2>&1 && python3 --version >/dev/null 2>&1") then
  local wrong = on_waves.wrong(plan, 1)
  tap.ok(not wrong, "its machine code is right where memory answers late", wrong)
else
  tap.ok(true, "machine code # SKIP there is no clang-22, llvm-objdump or python3")
end

---- what is refused -----------------------------------------------------------------

local function refused(what, pattern, edit)
  local p = mr.plan(gemm:graph{tile = {m = 128, n = 64, k = 32}}, mr.device "mi300x")
  local good, message = pcall(edit, p)
  if good then good, message = message:check() end
  tap.like((tostring(message):gsub("%s+", " ")), pattern, what)
end
local function two_lanes(p)
  p:split_off("a", "put_a")
  p:lane("c0", {warps = 4})
  p:lane("c1", {warps = 4})
  p:append("load_a", {lane = "c1"})
  for _, task in ipairs{"put_a", "load_b", "mma", "epilogue", "store_c"} do p:append(task, {lane = "c0"}) end
  p:fill_waits()
  return p
end
refused("two lanes", "registers of its threads: both must be on one lane", two_lanes)
refused("other slices", "'load_a' has 1 slice, and 'put_a.0' 2: split both alike", function(p)
  p:split_off("a", "put_a")
  p:split("m", 2, {"put_a"})
  p:lane("c0", {warps = 4})
  for _, t in ipairs(p.tasks) do p:append(t.name, {lane = "c0"}) end
  p:fill_waits()
  return p
end)
refused("narrow rows", "cannot keep in registers what it loads: a thread does not copy at least 4 bytes at once", function()
  return one_lane(mr.examples.gemm{m = 128, n = 64, k = 97}, {m = 128, n = 64, k = 32}, "mi300x",
    {loads = {"load_a"}, warps = 4, buffers = {a = 2}})
end)
refused("too many threads", "accesses of 16 bytes are no multiple of the lane's 512 threads", function()
  return one_lane(gemm, {m = 128, n = 64, k = 32}, "mi300x", {loads = {"load_b"}, warps = 8, buffers = {b = 2}})
end)
refused("an engine that does not write registers", "'async_copy' copies to shared memory, but 'load_a' keeps in registers", function()
  return one_lane(gemm, {m = 128, n = 64, k = 32}, "a100", {loads = {"load_a"}, warps = 4, buffers = {a = 2}})
end)


tap.done_testing()
