-- Traced kernels: what the stamps say about what ran when. Here on the CPU, where a stamp is
-- a number in order; where a GPU is attached, there as well.
local mr = require "millrace"
local core = require "millrace.core"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like, refuses = tap.ok, tap.is, tap.like, tap.refuses

local home = core.home()

local function gemm(swap, sizes, device, replicas, late)
  local bound = mr.examples.gemm(sizes or {m = 128, n = 128, k = 256})
  local plan = mr.plan(bound:graph{tile = {m = 64, n = 64, k = 32}}, device or mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 4, replicas = replicas})
  plan:buffers{a = 3, b = 3, epilogue = late and 2 or nil}
  plan:append(swap and "load_b" or "load_a", {seu = "tma", lane = "p0"})
  plan:append(swap and "load_a" or "load_b", {seu = "tma", lane = "p0"})
  plan:append("mma", {seu = "tensor", lane = "c0"})
  plan:append("epilogue", {seu = "cuda", lane = "c0"})
  plan:append("store_c", {seu = "tma", lane = "c0", at = late and -1 or nil})
  plan:fill_waits()
  return plan
end

local function attention(name, sizes)
  sizes = sizes or {b = 1, h = 2, m = 256, n = 512, d = 64}
  return mr.load_plan(("%s/examples/attention_%s.lua"):format(home, name), mr.examples.flash_attention(sizes))
end

-- Lane -> its sTasks in the order in which they were issued, as "load_a 0".
local function orders(tl)
  local lanes = {}
  for _, e in ipairs(tl.events) do
    local lane = ("%s.%s"):format(e.lane, e.copy)
    lanes[lane] = lanes[lane] or {}
    table.insert(lanes[lane], ("%s %d"):format(e.task, e.iteration))
  end
  for lane, list in pairs(lanes) do lanes[lane] = table.concat(list, ", ") end
  return lanes
end

-- The simulator shows the EU that finishes last, a trace the one that did: take the same.
local function same_order(simulated, traced, what)
  local a, b = orders(simulated), orders(traced)
  for lane, order in pairs(a) do is(b[lane], order, ("%s: lane %s ran what the plan says"):format(what, lane)) end
  is(#traced.events, #simulated.events, "  and every instance is there")
end

-- Times lie in order within an event and along a lane, and waits end after what they are for.
local function sound(tl, what)
  local last, finished, good = {}, {}, true
  for _, e in ipairs(tl.events) do
    local lane = ("%s.%s"):format(e.lane, e.copy)
    good = good and 0 <= e.ready and e.ready <= e.issue and e.issue <= e.start and e.start <= e["end"]
      and e.ready >= (last[lane] or 0) and e.issue >= e.ready and e["end"] <= tl.cycles
    last[lane] = e.issue
    finished[e.task .. e.iteration] = e
  end
  ok(good and #tl.events > 0, what .. ": times in order")
  good = true
  for _, e in ipairs(tl.events) do
    local load = e.task:find "^mma" and finished[(e.task:find "qk" and "load_k" or
      e.task:find "pv" and "load_v" or "load_a") .. e.iteration]
    if load then good = good and load["end"] <= e.issue end
  end
  ok(good, "  no product begins before its operand was seen")
end

---- on the host -------------------------------------------------------------------------------

local plans = {gemm = gemm(), serial = attention "serial", overlap = attention "overlap",
  pingpong = attention "pingpong"}
for _, name in ipairs{"gemm", "serial", "overlap", "pingpong"} do
  plans[name]:fill_waits()
  local tl = plans[name]:compile{target = "host"}:trace{}
  same_order(plans[name]:simulate(), tl, name)
  sound(tl, name)
end

-- A product whose result another lane reads is over when its lane has stored it.
local handed = mr.plan(mr.examples.gemm{m = 128, n = 64, k = 96}:graph{tile = {m = 64, n = 64, k = 32}},
  mr.device "h200")
for _, t in ipairs(handed.tasks) do
  handed:append(t.name, {lane = t.kind == "load" and "p0" or t.kind == "mma" and "c1" or "c0"})
end
handed:grid{eus = 1}
handed:fill_waits()
local tl = handed:compile{target = "host"}:trace{}
same_order(handed:simulate(), tl, "handed over")
local done = true
for _, e in ipairs(tl.events) do
  for _, later in ipairs(tl.events) do
    done = done and not (e.lane == "c1" and later.lane == "c1" and later.issue > e.issue and later.issue < e["end"])
  end
end
ok(done, "  its lane does nothing else before")

local causal = attention("overlap", {b = 1, h = 1, m = 384, n = 384, d = 64, causal = true})
causal:fill_waits()
local k = causal:compile{target = "host"}
for eu = 1, causal:simulate().phases[1].eus do sound(k:trace{eu = eu}, "causal, EU " .. eu) end

-- Several tiles an EU; the trace says of each event which.
local many = gemm(false, {m = 2048, n = 576, k = 64})
local tl = many:compile{target = "host"}:trace{}
sound(tl, "tiles in sequence")
is(tl.events[#tl.events].tile, math.ceil(32 * 9 / 132) - 1, "the EU that ended last has the most tiles")
is(tl.phases[1].tiles, 32 * 9, "tiles of the grid")

-- A lane with replicas, and nested loops.
local two_replicas = mr.plan(mr.examples.gemm{m = 640, n = 2304, k = 96}:graph{tile = {m = 64, n = 64, k = 32}}, mr.device "h200")
two_replicas:lane("p", {warps = 1})
two_replicas:lane("c", {warps = 4, replicas = 2})
two_replicas:buffers{a = 3, b = 3}
for _, task in ipairs{"load_a", "load_b"} do two_replicas:append(task, {seu = "tma", lane = "p"}) end
two_replicas:append("mma", {seu = "tensor", lane = "c"})
two_replicas:append("epilogue", {seu = "cuda", lane = "c"})
two_replicas:append("store_c", {seu = "tma", lane = "c"})
two_replicas:fill_waits()
local simulated = two_replicas:simulate()
tl = two_replicas:compile{target = "host"}:trace{eu = simulated.phases[1].eu}
is(#tl.events, #simulated.events, "two replicas: the trace has every instance")
local on_its_replica = true
for _, e in ipairs(tl.events) do on_its_replica = on_its_replica and (e.lane == "p" or e.replica == e.tile % 2) end
ok(on_its_replica, "  each on the replica that has its tile")

-- An H200 with less shared memory, or fewer EUs.
local changed_device = dofile(home .. "/tests/lua/lib/changed_device.lua")
local function h200_with(changes) return changed_device("h200", changes) end

-- Stamps of as many tiles as fit in shared memory are kept before they are written out; the trace has all tiles.
for replicas = 1, 2 do
  for _, late in ipairs{false, true} do
    local all
    for _, bytes in ipairs{232448, 39500 + 8192 * replicas, 34000 + 8192 * replicas} do
      local device = h200_with{["bytes = 232448"] = "bytes = " .. bytes, ["eus = 132"] = "eus = 1"}
      local plan = gemm(false, {m = 64, n = 192, k = 6400}, device, replicas, late)
      local tl = plan:compile{target = "host"}:trace{}
      local what = ("space for the stamps of %s tiles, %d replicas%s"):format(
        tl.kernel.source:match "stamps_held %+ tiles_stamped%+%+ %% (%d+)", replicas, late and ", stored late" or "")
      all = all or tl
      same_order(all, tl, what)
      sound(tl, what)
    end
  end
end

-- If the rings leave little shared memory, the first iterations of each tile are recorded.
local few = gemm(false, {m = 64, n = 64, k = 12800}, h200_with{["bytes = 232448"] = "bytes = 41032"})
  :compile{target = "host"}:trace{}
local counts = {}
for _, e in ipairs(few.events) do counts[e.task] = (counts[e.task] or 0) + 1 end
ok(counts.mma >= 100 and counts.mma < 400, "little shared memory: some of the 400 products", counts.mma)
is(counts.load_a, counts.mma, "  as many loads")
is(counts.store_c, 1, "  and what comes after them")
sound(few, "little shared memory")

---- the plan is the only source of truth --------------------------------------------------------

local function before(list, a, b) return (assert(list:find(a, 1, true))) < assert(list:find(b, 1, true)) end

-- Which load comes first in the text, the simulated and the traced timeline?
local function first_loads(plan, target)
  local kernel = plan:compile{target = target, text = target == "cuda" or nil}
  local said = {before(kernel.source, "/* load_a,", "/* load_b,"), before(orders(plan:simulate())["p0.0"], "load_a", "load_b")}
  if target == "host" or mr.attached() then
    said[3] = before(orders(plan:compile{target = target}:trace{})["p0.0"], "load_a", "load_b")
  end
  return said
end

for _, target in ipairs{"host", "cuda"} do
  for _, swap in ipairs{false, true} do
    for i, a_first in ipairs(first_loads(gemm(swap), target)) do
      is(a_first, not swap, ("%s, load_%s before load_%s in the %s"):format(target, swap and "b" or "a",
        swap and "a" or "b", ({"text", "simulated timeline", "traced timeline"})[i]))
    end
  end
end

---- the traced text ---------------------------------------------------------------------------

-- Statement for statement the same, but for the stamps.
local function body(text)
  local lines = {}
  for line in (text:match "\nKERNEL(.*)"):gmatch "[^\n]+" do
    if not line:find "stamp" and not line:find "trace" then lines[#lines + 1] = line end
  end
  return table.concat(lines, "\n")
end
for name, plan in pairs(plans) do
  for _, target in ipairs{"cuda", "host"} do
    local plain, traced = core.lower(plan, target)[1], core.lower(plan, target, true)[1]
    -- the trace is the last parameter
    local text = body(traced.text):gsub(",\n{", ")\n{"):gsub(", args%[%d+%]%);", ");")
    ok(text == body(plain.text), ("%s for %s: the traced text is the plain one and stamps"):format(name, target))
    is(#traced.params, #plain.params + 1, "  and takes one thing more")
  end
end

---- what is said of it ---------------------------------------------------------------------------

tl = plans.pingpong:compile{target = "host"}:trace{seed = 7}
is(tl.measured, true, "a traced timeline says that it is measured")
is(tl.unit, "stamps", "  and that it counts stamps")
is(plans.pingpong:simulate().unit, "cycles", "a simulated one counts cycles")
is(tl.seconds, nil, "  no seconds without a clock")
is(tl.bound, nil, "  and no bound")
is(tl.overhead, nil, "  and no overhead")
is(tl.cache, nil, "  and no L2")
like(tl.kernel.source:match "stamp%(warp == [^\n]*", "stamps %+ %d", "its kernel is the one with stamps")
ok(tl.kernel.plan, "  of this plan")
like(tl:text{from = 0}, "traced on the host, without a clock: stamps 0 to", "the drawing says so")
like(tl:summary(), "without a clock: [%d,]+ stamps;", "so do the numbers")
ok(tl.utilization.tensor > 0 and tl.utilization.tensor <= 1 and not tl.utilization.memory,
  "utilization is how much of the time an sEU had work")

local again = plans.pingpong:compile{target = "host"}:trace{seed = 7}
is(again:text(), tl:text(), "the same seed, the same trace")

-- A wait says what it was for.
local causes = {}
for _, e in ipairs(tl.events) do if e.cause then causes[e.cause .. " " .. e.task .. " " .. tostring(e.on)] = true end end
local waited = false
for _, slice in ipairs{"0", "1"} do
  for _, load in ipairs{"load_q", "load_k"} do waited = waited or causes[("wait mma_qk.%s %s"):format(slice, load)] end
end
ok(waited, "a product waited for a copy")
ok(causes["wait softmax.0 mma_qk.0"] or causes["wait softmax.1 mma_qk.1"], "a softmax waited for its product")

-- Inputs can be given; what is wrong is said.
local inputs = plans.gemm.graph.program:inputs{seed = 3}
is(plans.gemm:compile{target = "host"}:trace{inputs = inputs}.program, "gemm{m=128, n=128, k=256}", "with inputs of one's own")
G, U = plans.gemm:compile{target = "host"}, tl
refuses("G:trace{seconds=1}", 'user.lua:1: trace: unknown option \'seconds\' for target "host"')
refuses("G:trace{eu=99}", "user.lua:1: there is no EU 99: 4 EUs are at work")
refuses("G:trace(7)", "user.lua:1: trace: table of options expected, got 7")
refuses("U.kernel:export'/tmp'", "user.lua:1: export: a traced kernel needs memory for its stamps: export the kernel that was traced")
refuses("G.trace(7)", "user.lua:1: trace: kernel expected, got 7; it is called with a colon, as in kernel:trace(...)")

---- two timelines -------------------------------------------------------------------------------

local serial, overlap = plans.serial:simulate(), plans.overlap:simulate()
local c = mr.compare(serial, overlap)
is(#c.rows, 9, "a row for each sTask")
local adds = {}
for i, r in ipairs(c.rows) do
  adds[i] = math.abs(r.difference)
  ok(i == 1 or adds[i] <= adds[i - 1], ("row %d: %s does not add more than the one before"):format(i, r.task))
  ok(r.predicted.count == r.measured.count and r.predicted.duration > 0, "  counts and durations")
end
for line in (tostring(c) .. "\n"):gmatch "(.-)\n" do ok(#line <= 100, "a line of at most 100 columns", line) end
like(c, "^flash_attention: first [%d,]+ cycles, second [%d,]+, 0%.%d%d times as many", "it says how they differ")
local named = mr.compare(serial, overlap, {names = {"serial", "a step ahead"}})
like(named, "^flash_attention: serial [%d,]+ cycles, a step ahead [%d,]+,", "or by the names that they are given")
like(named, "\nsTask +lane +serial +a step%. ", "which stand above the columns, too")
for line in (tostring(named) .. "\n"):gmatch "(.-)\n" do ok(#line <= 100, "in at most 100 columns", line) end
local same = mr.compare(serial, serial)
for _, r in ipairs(same.rows) do ok(r.difference == 0 and r.ratio == 1, r.task .. " is as long as itself") end

-- What each sTask adds: over a lane it is the difference of the times, for other tiles and replicas, too.
local function with_tile(tile, replicas)
  local graph = mr.examples.gemm{m = 2048, n = 2048, k = 1024}:graph{tile = tile}
  local plan = mr.plan(graph, mr.device "h200")
  plan:lane("p0", {})
  plan:lane("c0", {warps = 8 // replicas, replicas = replicas})
  for _, task in ipairs(graph.tasks) do plan:append(task.name, {lane = task.kind == "load" and "p0" or "c0"}) end
  plan:buffers{a = 4, b = 4}
  plan:fill_waits()
  return plan
end
local base = with_tile({m = 128, n = 128, k = 64}, 1)
for what, other in pairs{["another tile"] = with_tile({m = 128, n = 256, k = 64}, 1),
    ["replicas"] = with_tile({m = 128, n = 128, k = 64}, 2)} do
  local one, two = base:simulate(), other:simulate()
  local sum = 0
  for _, r in ipairs(mr.compare(one, two).rows) do sum = sum + (r.lane == "c0" and r.difference or 0) end
  ok(math.abs(sum - (two.cycles - one.cycles)) < 0.01 * one.cycles, what .. ": what the sTasks of a lane add is what it takes longer")
end
local few = mr.compare(base:simulate(), with_tile({m = 128, n = 256, k = 64}, 1):simulate{events = 40})
ok(few.partial and few.rows[1].difference == nil, "of one only the first events are kept: nothing is said")
like(few, "\nwhat each adds is left out: of one only the first events are kept", "  and the table says so")
local moved = base:copy()
moved:lane("c1", {warps = 4})
moved:move("store_c", {lane = "c1"})
moved:fill_waits()
like(mr.compare(base:simulate(), moved:simulate()), "\nstore_c is in another lane: in c0 it takes [%d,]+ cycles in all, then in c1 [%d,]+",
  "of an sTask in another lane, both times")

-- Phases follow each other: no lane's time runs back at the seam.
local split = mr.search(mr.examples.flash_decoding{b = 1, h = 8, hkv = 1, n = 512, d = 64, splits = 8}, mr.device "h200", {trials = 40}).plan
local parts = split:compile{target = "host"}
for _, r in ipairs(mr.compare(parts:trace{}, parts:trace{seed = 4}).rows) do
  ok(r.predicted.lane_time >= 0 and r.measured.lane_time >= 0, "two phases: " .. r.task)
end

-- Means by hand.
local sum, n = 0, 0
for _, e in ipairs(serial.events) do
  if e.task == "softmax" then sum, n = sum + e["end"] - e.issue, n + 1 end
end
for _, r in ipairs(c.rows) do
  if r.task == "softmax" then tap.near(r.predicted.duration, sum / n, 1e-9, "the mean duration of softmax") end
end

-- Shares of a lane's time add up to it.
local shares = {}
for _, r in ipairs(c.rows) do shares[r.lane] = (shares[r.lane] or 0) + r.predicted.share end
for lane, share in pairs(shares) do tap.near(share, 1, 1e-9, "shares of lane " .. lane) end

S, T = serial, plans.gemm:simulate()
refuses("mr.compare(S, T)", "user.lua:1: compare: the timelines are of different programs: "
  .. "flash_attention{b=1, h=2, m=256, d=64, n=512, hkv=2} and gemm{m=128, n=128, k=256}")
refuses("mr.compare(S, U)", "user.lua:1: compare: one timeline counts cycles, the other stamps, "
  .. "which have no length: compare the order of their events")
refuses("mr.compare(S, 3)", "user.lua:1: compare: timeline expected as the second, got 3")
refuses("mr.compare()", "user.lua:1: compare: timeline expected as the first, got nil")

---- who copied ------------------------------------------------------------------------------------

-- A copy engine cannot copy rows of 72 bytes: threads do, and a trace says so, as the simulation does.
local odd = gemm(false, {m = 64, n = 36, k = 36}):compile{target = "host"}:trace{}
like(odd:text{width = 120, ascii = true}, "\nthreads %(tma%) ", "where threads do all, the row is theirs")
local perfetto = os.tmpname()
odd:trace(perfetto)
local file <close> = assert(io.open(perfetto))
like(file:read "a", '"threads %(tma%)"', "  in a trace for Perfetto, too")
os.remove(perfetto)

---- on a device -----------------------------------------------------------------------------------

if mr.attached() then
  for _, name in ipairs{"gemm", "serial", "overlap", "pingpong"} do
    local kernel = plans[name]:compile{}
    local traced = kernel:trace{}
    same_order(plans[name]:simulate(), traced, name .. " on the device")
    sound(traced, name .. " on the device")
    is(traced.unit, "cycles", "  in cycles")
    ok(traced.seconds > 0 and traced.cycles > 0 and traced.overhead, "  with its cost")
    is(traced.kernel.spills, kernel.spills, "  no register is spilled for it")
    is(#traced.kernel.warnings, #kernel.warnings, "  and no product serialized")
    for _, r in ipairs(mr.compare(plans[name]:simulate(), traced).rows) do
      ok(r.predicted and r.measured and r.ratio > 0, "  compared: " .. r.task)
    end
  end
end

collectgarbage "stop"
local held = attention("serial"):compile{target = "host"}:trace{}
collectgarbage "restart"
ok(tostring(held):find("flash_attention", 1, true), "a trace while the collector rests")
tap.done_testing()
