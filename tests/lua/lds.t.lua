-- Shared memory on gfx942, the LDS: a kernel has all of it. Counters at which lanes synchronize take some, but only in kernels that
-- have such lanes, which the kernel is asked. What has no space is refused, and what is accepted has space.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, changed_device = dofile(dir .. "tap.lua"), dofile(dir .. "lib/changed_device.lua")
local random_plans = dofile(dir .. "lib/random_plans.lua")

local LDS <const> = 65536
local BIN <const> = "/usr/lib/llvm-22/bin/"

local function with_lds(bytes) return changed_device("mi300x", {["bytes = 65536,"] = ("bytes = %d,"):format(bytes)}) end
local function problems_of(plan) return tostring(select(2, plan:check())) end
local function counters_in(k) return k.source:find("const u32 counters = ", 1, true) ~= nil end

-- Two lanes of four waves, which multiply alternately: two slots of 256 x 256 x 32 take all of the LDS.
local function alternately(size, device)
  local plan = mr.plan(mr.examples.gemm{m = size, n = size, k = 160}:graph{tile = {m = 256, n = 256, k = 32}}, device)
  plan:split_off("a", "put_a")
  plan:split_off("b", "put_b")
  plan:split("m", 2, {"load_a", "put_a", "mma", "epilogue", "store_c"})
  for i = 0, 1 do
    local lane, both = "c" .. i, i == 0
    plan:lane(lane, {warps = 4, columns = 4})
    plan:append("mma." .. i, {lane = lane})
    plan:append("put_a." .. i, {lane = lane, at = 1})
    if both then plan:append("put_b", {lane = lane, at = 1}) end
    plan:append("load_a." .. i, {lane = lane, at = 2})
    if both then plan:append("load_b", {lane = lane, at = 2}) end
    for _, task in ipairs{"epilogue.", "store_c."} do plan:append(task .. i, {lane = lane}) end
  end
  plan:buffers{a = 2, b = 2}
  plan:fill_waits()
  plan:wait("mma.1", {{"mma.0", distance = 0}})
  plan:wait("mma.0", {{"mma.1", distance = 1}})
  return plan
end

local full = alternately(256, mr.device "mi300x")
local good, problems = full:check()
tap.ok(good, "two slots of 256 x 256 x 32 are accepted", tostring(problems))
tap.is(full.usage.shared_bytes, LDS, "they take all of the LDS")
local text = full:compile{text = true}
tap.is(text.smem, LDS, "so does what is launched")
tap.ok(not counters_in(text), "there are no counters")
local host = full:compile{target = "host"}
for race = 0, 1 do
  local result = host:check{race = race == 1}
  tap.ok(result.ok, race == 1 and "without a race" or "right on the CPU", tostring(result))
end
if os.execute("clang-22 --version >/dev/null 2>&1") and os.execute(BIN .. "llvm-objdump --version >/dev/null 2>&1") then
  local k = full:compile()
  tap.is(k.spills, 0, "nothing is in scratch memory")
else
  tap.ok(true, "compiled # SKIP there is no clang-22")
end
tap.like(problems_of(alternately(256, with_lds(LDS - 8))), "needs 65536 bytes of shared[ \n]+memory", "a slot more than there is is refused")

-- Flags are counters, too: where lanes signal by them there is no space for as much.
local function by_flags(tile, device)
  local plan = mr.plan(mr.examples.gemm{m = 256, n = 256, k = 96}:graph{tile = tile}, device)
  plan:lane("c0", {warps = 4})
  plan:lane("p0", {warps = 2, replicas = 2})
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, t.kind == "load" and {lane = "p0", seu = "valu"} or {lane = "c0"})
  end
  plan:buffers{a = 2, b = 2}
  plan:fill_waits()
  return plan
end
tap.like(problems_of(by_flags({m = 256, n = 256, k = 32}, mr.device "mi300x")),
  "needs 65584 bytes.-65536 for rings, 48 for flags", "with flags it is too much")
local function exactly(what, make, counted)
  local plan = make(mr.device "mi300x")
  local k = plan:compile{text = true}
  tap.is(counters_in(k), counted, what .. (counted and ": lanes synchronize at counters" or ": no lane synchronizes at a counter"))
  tap.is(plan.usage.shared_bytes, k.smem, "  what check counts is launched", k.smem)
  random_plans.correct(tap, "  right", plan, {1, 2})
  tap.ok(make(with_lds(k.smem)):check(), "  as much is enough", problems_of(make(with_lds(k.smem))))
  tap.like(problems_of(make(with_lds(k.smem - 4))),
    ("needs %d bytes.*%s"):format(k.smem, counted and "for[ \n]+counters[ \n]+at[ \n]+which[ \n]+lanes[ \n]+synchronize" or ""),
    "  less is refused")
  return plan
end
local flagged = exactly("flags", function(device) return by_flags({m = 128, n = 64, k = 32}, device) end, true)
local result = flagged:compile{target = "host"}:trace{}
tap.ok(#result.events > 0, "  stamps of a traced kernel and counters are apart")

-- Warps that join what each has reduced synchronize where they meet the other lane at the block's barrier, too.
local function softmax(device)
  local plan = mr.plan(mr.examples.flash_attention{b = 1, h = 1, m = 64, n = 128, d = 64}:graph{tile = {m = 64, n = 64}}, device)
  plan:split("m", 2)
  plan:lane("p0", {warps = 1})
  for i = 0, 1 do plan:lane("c" .. i, {warps = 2, columns = 2}) end
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, t.kind == "load" and {lane = "p0", seu = "valu"} or {lane = "c" .. (t.name:match "%.(%d)$" or 0)})
  end
  plan:fill_waits()
  return plan
end
local joined = exactly("joined rows", softmax, true)
tap.like(tostring(joined:kernel{}), "lanes meet at the block's barrier.-lanes synchronize at counters: %d+ bytes at %d+", "  although all lanes meet")

-- A search leaves nothing for flags: two slots of keys and of values, and the queries, take all of the LDS.
local found = mr.search(mr.examples.flash_attention{b = 16, h = 16, m = 4096, n = 4096, d = 128}, mr.device "mi300x", {measure = false})
tap.is(("%d %d %d"):format(found.plan.usage.shared_bytes, found.plan.rings.k, found.plan.rings.v), LDS .. " 2 2", "a search fills all of the LDS")

-- Whatever plans there are: what is accepted has space.
random_plans.device = mr.device "mi300x"
local most, with, accepted = 0, 0, 0
for seed = 1, 60 do
  local plan = random_plans.draw(seed, nil, seed % 2 == 0, seed % 3 == 0)
  if plan:check() then
    local k = plan:compile{text = true}
    accepted, most, with = accepted + 1, math.max(most, k.smem), with + (counters_in(k) and 1 or 0)
  end
end
tap.ok(most <= LDS and with > 0 and with < accepted, "random plans", most, with, accepted)
tap.done_testing()
