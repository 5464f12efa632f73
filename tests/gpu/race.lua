-- race.lua - the pool, races and measure() with products of 4096 cubed; TAP. For race.t.
--
-- Times are printed as comments. The checks hold on any device that no other process uses.
local mr = require "millrace"
local core = require "millrace.core"
local measure = require "millrace.measure"
local tap = dofile "tests/lua/tap.lua"

local bound = mr.examples.gemm{m=4096, n=4096, k=4096}
local device = mr.device "h200"

-- `ways` lanes share the rows, or one lane has `replicas`.
local function gemm(o)
  local plan = mr.plan(bound:graph{tile={m=o[1], n=o[2], k=64}}, device)
  if o.ways then plan:split("m", o.ways) end
  plan:lane("p0", {warps=1})
  for i = 0, (o.ways or 1) - 1 do plan:lane("c" .. i, {warps=4, replicas=o.replicas}) end
  plan:grid{group=o.group or 8, cluster=o.cluster}
  plan:buffers{a=o.stages, b=o.stages}
  plan:append("load_a", {lane="p0"})
  plan:append("load_b", {lane="p0"})
  for i = 0, (o.ways or 1) - 1 do
    for _, task in ipairs{"mma", "epilogue", "store_c"} do
      plan:append(task .. (o.ways and "." .. i or ""), {lane="c" .. i})
    end
  end
  plan:fill_waits()
  return plan
end

local function tell(...) print("# " .. tostring(select("#", ...) == 1 and ... or string.format(...)):gsub("\n", "\n# ")) end

-- compiling in the background, with nothing in the cache
local large, replicated, small = gemm{128, 256, ways=2, stages=4}, gemm{128, 128, replicas=2, stages=6}, gemm{64, 128, stages=8}
local began = core.clock()
local begun = {core.compile_begin(large), core.compile_begin(replicated), core.compile_begin(small)}
local given = core.clock() - began
local most = 0
while not (begun[1]:done() and begun[2]:done() and begun[3]:done()) do
  core.compile_wait(1)
  most = math.max(most, (select(2, core.compile_state())))
end
tell("three plans: given away in %.3f s, compiled in %.2f s by %d workers", given, core.clock() - began, most)
tap.is(most, math.min(3, (core.compile_state())), "three plans compile at the same time")
local kernels = {}
for i, x in ipairs(begun) do kernels[i] = x:kernel() end
core.compile_end_idle()
tap.is(select(2, core.compile_state()), 0, "and their workers go")
tap.ok(kernels[1].registers > 0 and kernels[1].spills == 0 and #kernels[1].problems == 0, "the kernels are complete")
tap.ok(kernels[1]:check().ok, "and right")

-- races
local r = mr.race({large=kernels[1], replicated=kernels[2], small=kernels[3]})
tell(r)
tap.ok(r.rounds >= 12 and r.cache == "cold L2", "a race of three has its rounds", r.rounds, r.cache)
for i, x in ipairs(r) do
  tap.ok(x.min <= x.ms and x.ms <= x.max and x.low <= x.ratio and x.ratio <= x.high and (i == 1 or x.ratio >= r[i - 1].ratio),
    "its numbers are in order: " .. x.name)
end
tap.is(r[#r].name, "small", "the smallest tiles are the slowest")
for _, x in ipairs(r) do
  local b = x.kernel:bench{seconds=0.5}
  tell("%s alone: %.4f ms; in the race %.4f", x.name, b.ms, x.ms)
end
local again = mr.race({large=kernels[1], replicated=kernels[2], small=kernels[3]}, {base=r.base})
local function ratio_of(race, name)
  for _, x in ipairs(race) do if x.name == name then return x.ratio end end
end
for _, x in ipairs(r) do
  tap.near(ratio_of(again, x.name) / x.ratio, 1, 0.06, "a second race has about the same ratio: " .. x.name)
end
local same = mr.race({a=kernels[1], b=kernels[1]}, {base="a"})
tell(same)
tap.near(ratio_of(same, "b"), 1, 0.01, "a kernel is as fast as itself")
began = core.clock()
core.race({kernels[1], kernels[2]}, {"large", "replicated"}, {seconds=0.03, sample=0.003, warmup=0.01, rounds=12})
tell("a short race of two took %.0f ms, all in all", 1e3 * (core.clock() - began))

-- measuring
local shapes = {{128, 256, ways=2, stages=4}, {256, 128, ways=2, stages=4}, {128, 128, ways=2, stages=6},
  {192, 128, ways=3, stages=4}, {128, 192, ways=2, stages=5}, {64, 256, replicas=2, stages=4}, {128, 128, replicas=2, stages=6},
  {64, 128, stages=8}, {128, 256, ways=2, stages=4, cluster=2}, {128, 256, ways=2, stages=3, group=1}}
local candidates = {}
for i, shape in ipairs(shapes) do
  local plan = gemm(shape)
  if plan:check() then candidates[#candidates + 1] = {plan=plan, predicted=plan:simulate().seconds, n=i} end
end
table.sort(candidates, function(a, b) return a.predicted < b.predicted end)
local function run(o)
  local puts, started = 0, core.clock()
  o.put = function() puts = puts + 1 end
  local found = measure(bound, device, candidates, o)
  for _, row in ipairs(found.results) do
    tell("%-7s predicted %.4f ms, measured %s, ratio %s, %.0f ms of the device%s", row.status, row.predicted * 1e3,
      row.score and ("%.4f"):format(row.score) or "-", row.ratio and ("%.4f (%.4f to %.4f)"):format(row.ratio, row.low, row.high)
      or "-", 1e3 * (row.device_seconds or 0), row.why and ": " .. row.why or "")
  end
  tell("%d of %d measured in %.1f s, %.2f s of the device; ended: %s; bias %.1f %%, spread %.1f %%", found.trials,
    #candidates, core.clock() - started, found.device_seconds, found.why, 100 * found.bias, 100 * found.spread)
  tap.is(puts, #found.results, "every row is put")
  return found
end
local all = run{risk=-1}
tap.is(all.ended, "done", "all are measured, if asked")
for _, row in ipairs(all.results) do
  tap.ok(row.status == "ok" or row.status == "skipped", "a row is as it should be", row.status, row.why)
end
local few = run{}
tap.ok(few.trials <= all.trials, "until none is likely to win takes no more trials")
local last = mr.race({all=all.best.plan, few=few.best.plan}, {base="all"})
tell(last)
tap.ok(ratio_of(last, "few") < 1.02, "and finds one as good, within 2 %")

tap.done_testing()
