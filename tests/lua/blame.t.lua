-- tl.blame: all of a lane's time is accounted for, and what is blamed goes when it is relieved.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, near, like = tap.ok, tap.is, tap.near, tap.like

local causes = {"issue", "pipe", "dependence", "shared", "l2", "global", "slot", "turn", "sync", "power"}

local function gemm(o)
  local bound = mr.examples.gemm{m = o.m or 2048, n = o.n or 4096, k = o.k or 2048}
  local plan = mr.plan(bound:graph{tile = o.tile or {m = 128, n = 256, k = 64}}, mr.device(o.device or "h200"))
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 8, replicas = o.replicas})
  plan:buffers{a = o.rings, b = o.rings}
  for _, task in ipairs(plan.tasks) do
    plan:append(task.name, {lane = task.kind == "load" and (o.loads or "p0") or "c0"})
  end
  plan:fill_waits()
  return plan
end

---- sums ------------------------------------------------------------------------------------

-- Over a lane shares add up to 1, over causes and over parts to that of the sTask.
local function check_sums(tl, what)
  local lanes, right, last = {}, true, nil
  for _, row in ipairs(tl.blame) do
    local by_cause, by_part = 0, 0
    for _, cause in ipairs(causes) do
      right = right and row[cause] >= 0
      by_cause = by_cause + row[cause]
    end
    for _, part in ipairs(row.parts) do by_part = by_part + part.share end
    right = right and math.abs(by_cause - row.share) < 1e-12 and math.abs(by_part - row.share) < 1e-12
    lanes[row.lane] = (lanes[row.lane] or 0) + row.share
    right = right and row.lane_cycles <= tl.cycles + 2
    last = row
  end
  for _, sum in pairs(lanes) do right = right and math.abs(sum - 1) < 1e-9 end
  ok(right and last, what .. ": all of each lane's time, once", tl.blame)
end

for _, name in ipairs{"attention_serial", "attention_pingpong", "attention_d64", "gemm_cooperative", "gemm_by_threads",
    "decoding_split"} do
  check_sums(mr.load_plan(name):simulate(), name)
end
check_sums(mr.load_plan "attention_d128":simulate{events = 1000}, "the first 1000 events")
check_sums(gemm{rings = 4, replicas = 2, tile = {m = 128, n = 128, k = 64}}:simulate(), "replicas")
check_sums(gemm{rings = 2, loads = "c0"}:simulate(), "a lane that loads and computes")
for _, device in ipairs{"mi300x", "a100"} do
  local bound = mr.examples.gemm{m = 1024, n = 1024, k = 1024}
  local found = mr.search(bound, mr.device(device), {seconds = 60, trials = 3})
  check_sums(found.timeline, device)
end
is(#gemm{rings = 2}:simulate{events = 0}.blame, 0, "no events, nothing to say")

-- How much of the first lane that computes goes to each cause, or unit; and the greatest of them.
local function blamed(tl)
  local of, lane = {}, nil
  for _, row in ipairs(tl.blame) do
    if not row.feeds then lane = lane or row.lane end
    for _, part in ipairs(row.lane == lane and row.parts or {}) do
      local key = part.cause == "pipe" and part.unit or part.cause
      of[key] = (of[key] or 0) + part.share
    end
  end
  local most
  for key, share in pairs(of) do
    if not most or share > of[most] then most = key end
  end
  return of, most
end

---- who is to blame, and what relief brings --------------------------------------------------------

-- What is as many times more, and as many times less, where a unit is faster.
local numbers = {
  tensor = {{"seu.tensor.flops.bf16", "memory.shared.rate"}, {}},   -- operands come as much faster
  cuda = {{"seu.cuda.ops.fma", "seu.cuda.ops.alu", "seu.cuda.ops.sfu", "seu.cuda.ops.cvt", "seu.cuda.slots"},
    {"seu.cuda.latency", "seu.cuda.chain"}},
  global = {{"memory.global.rate"}, {}},
  l2 = {{"memory.l2.rate", "memory.l2.eu_rate", "memory.l2.thread_rate"}, {}},
}
local h200 = mr.device "h200"

-- The H200 with some units n times as fast, and power for all of it.
local function faster(times)
  local changes = {["power.limit"] = 1e5}
  for unit, n in pairs(times) do
    for _, path in ipairs(numbers[unit][1]) do changes[path] = h200:number(path) * n end
    for _, path in ipairs(numbers[unit][2]) do changes[path] = h200:number(path) / n end
  end
  return mr.device("h200", changes)
end

local function seconds_with(plan, times)
  local script = plan:script():gsub("mr%.device \"[^\"]*\"", "changed")
  local names = setmetatable({changed = faster(times)}, {__index = _G})
  local tl = load(script, "=plan", "t", names)(plan.graph.program):simulate()
  return tl.seconds, tl
end

-- The unit is blamed for `least` of the time. One twice as fast can take half of that away, and takes
-- most of this; one eight times as fast takes more than half of all, if nothing else binds then. `also`: units
-- that are faster from the start.
local function check_relief(plan, unit, least, what, alone, also)
  local function with(n)
    local times = {[unit] = n}
    for key, more in pairs(also or {}) do times[key] = more end
    return seconds_with(plan, times)
  end
  local before, tl = with(1)
  local share = blamed(tl)[unit] or 0
  ok(share >= least, ("%s: %s takes %.0f %%"):format(what, unit, 100 * share), tl.blame)
  local fall = 1 - with(2) / before
  ok(fall >= 0.7 * share / 2 and fall <= share, ("%s: twice the %s, %.0f %% less time"):format(what, unit, 100 * fall))
  if not alone then return end
  fall = 1 - with(8) / before
  ok(fall >= share / 2 and fall <= share + 0.05, ("%s: eight times the %s, %.0f %% less time"):format(what, unit, 100 * fall))
end

-- One warpgroup: of two, one computes what the other multiplies.
local function attention()
  local bound = mr.examples.flash_attention{b = 1, h = 16, m = 8192, d = 128}
  local plan = mr.plan(bound:graph{tile = {m = 64, n = 128}}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 4})
  plan:buffers{k = 2, v = 2, softmax_2 = 1}
  for _, task in ipairs{"load_q", "load_k", "load_v"} do plan:append(task, {lane = "p0"}) end
  for _, task in ipairs{"mma_qk", "softmax", "rescale", "mma_pv", "normalise", "store_o"} do
    plan:append(task, {lane = "c0"})
  end
  plan:fill_waits()
  return plan
end
check_relief(attention(), "tensor", 0.35, "attention in order", true)
check_relief(attention(), "cuda", 0.4, "attention in order", true)
-- Rows of many exponentials, the next ones loaded meanwhile.
local function rows()
  local program = mr.program("rows", function(p)
    local m, n = p:axes("m", "n")
    local X, Y = p:input("X", {m, n}), p:output("Y", {m, n})
    local x = p:load("load_x", X)
    Y:store("store_y", p:task("work", function()
      local y = x
      for _ = 1, 24 do y = mr.exp2(-y) end
      return y:to "bf16"
    end))
  end)
  local plan = mr.plan(program{m = 65536, n = 1024}:graph{tile = {m = 64, n = 128}}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 4})
  plan:buffers{x = 3}
  plan:append("load_x", {lane = "p0"})
  plan:append("work", {lane = "c0"})
  plan:append("store_y", {lane = "c0"})
  plan:fill_waits()
  return plan
end
check_relief(rows(), "cuda", 0.7, "rows of exponentials", true)
check_relief(gemm{m = 4096, rings = 4}, "tensor", 0.7, "a large product", true, {l2 = 8, global = 8})
check_relief(gemm{m = 64, n = 65536, k = 8192, rings = 4, tile = {m = 64, n = 256, k = 64}}, "global", 0.8,
  "few rows", true, {l2 = 8})
check_relief(mr.load_plan "decoding_split", "global", 0.3, "decoding")
check_relief(mr.load_plan "gemm_by_threads", "l2", 0.7, "copies by threads")

---- the greatest cause ---------------------------------------------------------------------------

local function is_greatest(plan, cause, what)
  local tl = plan:simulate()
  local of, most = blamed(tl)
  is(most, cause, what, tl.blame)
  return of[most], tl
end

local slot, shallow = is_greatest(gemm{rings = 1}, "slot", "a ring of one: its slot")
local deep = gemm{rings = 4}:simulate().seconds
ok(1 - deep / shallow.seconds >= slot / 2, "... deeper, the time falls by that", slot, 1 - deep / shallow.seconds)
like(shallow:why(), "c0 waits %d+ %% of the time for a free slot, after mma\n", "... why() says so")
is_greatest(gemm{m = 4096, rings = 4}, "tensor", "a large product: the tensor cores")
is_greatest(gemm{m = 128, n = 65536, k = 8192, rings = 5, tile = {m = 128, n = 128, k = 64}}, "global",
  "few rows: device memory")
is_greatest(gemm{rings = 3, loads = "c0", tile = {m = 128, n = 128, k = 64}}, "dependence",
  "loads of the lane itself: what is loaded")

-- power: what the limit takes
local pingpong = mr.load_plan "attention_pingpong"
local limited = pingpong:simulate()
local power = blamed(limited).power
local full = pingpong.device:number "seu.tensor.clock_ghz" * 1e9
near(power, (1 - limited.clock_hz / full), 0.01, "power takes what the clock is lower by")
local back = 1 - seconds_with(pingpong, {}) / limited.seconds
ok(back >= 0.7 * power and back <= power + 0.01, "... and gives most of it back without a limit", back, power)
is(blamed(select(2, seconds_with(pingpong, {}))).power, nil, "... where nothing is blamed on it")

---- how it is shown --------------------------------------------------------------------------------

local text = tostring(shallow.blame)
like(text, "^lane  sTask +of lane +issue +pipe +dependence .* slot", "a table")
like(text, "\nc0    mma ", "... a row for each sTask")
local row = shallow.blame[1]
ok(row.lane == "p0" and row.task == "load_a" and row.feeds and row.parts[1].share > 0, "rows")

local serial_tl = mr.load_plan "attention_serial":simulate()
local c = mr.compare(serial_tl, limited)
is(c.causes[1].what, "softmax for products of its own (mma_qk)", "what shrank most")
ok(c.causes[1].difference < -0.2 and c.causes[1].second < 0.1, "... by how much", c.causes[1].difference)
like(c, "\n  softmax for products of its own %(mma_qk%): %d+ %% of the time, then %d+\n", "... in the text")
local sum = 0
for _, x in ipairs(c.causes) do sum = sum + x.difference end
near(sum, limited.seconds / serial_tl.seconds - 1, 0.02, "all of them are the difference")

-- a trace: what its stamps tell
local small = mr.examples.flash_attention{b = 1, h = 2, m = 256, n = 512, d = 64}
local traced = mr.load_plan("attention_overlap", small):compile{target = "host"}:trace{}
check_sums(traced, "a trace")
for _, r in ipairs(traced.blame) do
  if r.shared + r.l2 + r.global + r.sync + r.power > 0 then ok(false, "a trace knows " .. r.task) end
end
ok(blamed(traced).dependence > 0.2, "a trace knows who waits for whom", traced.blame)

tap.done_testing()
