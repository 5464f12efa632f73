-- tl:why(): what it says binds, and that what it says would help does, by as much.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like = tap.ok, tap.is, tap.like

local function gemm(rings, k)
  local bound = mr.examples.gemm{m = 2048, n = 2048, k = k or 1024}
  local plan = mr.plan(bound:graph{tile = {m = 128, n = 256, k = 64}}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 8})
  plan:buffers{a = rings, b = rings}
  for _, task in ipairs(plan.tasks) do plan:append(task.name, {lane = task.kind == "load" and "p0" or "c0"}) end
  plan:fill_waits()
  return plan
end

local plan = gemm(1)
local tl = plan:simulate()
local text, tried = tl:why()
like(text, "^no unit binds: %w+ is at work %d+ %% of the time, and lanes wait", "a ring of one: lanes wait")
ok(text:find "\nplan:buffers{a=[23], b=[23]} would take %d+%.%d %% less time", "... and a deeper one helps", text)
ok(select(2, text:gsub("\n", "")) <= 2, "... in three lines", text)
is(plan:simulate().cycles, tl.cycles, "the plan stays as it was")

-- every change, made by hand
local right = true
for i, t in ipairs(tried) do
  local copy = gemm(1)
  assert(load("local plan = ... " .. t.change))(copy)
  local seconds = copy:check() and copy:simulate().seconds
  right = right and seconds and math.abs(1 - seconds / tl.seconds - t.gain) < 1e-12 and
    (i == 1 or tried[i - 1].gain >= t.gain)
end
ok(right and #tried >= 8, "each gain is that of the change, best first", #tried)

like(gemm(4, 16384):simulate():why(), "^tensor binds: it is at work %d+ %% of the time", "deep rings: products bind")
like(mr.load_plan "gemm_cooperative":simulate():why(),
  "^tensor binds: it is at work 99 %% of the time; power holds the clock at 1%.%d%d of 1%.80 GHz\n", "and power")

plan:buffers{a = 2}
local fine, message = pcall(tl.why, tl)
ok(not fine and message:find("why: the plan has changed since", 1, true), "a plan that was changed", message)
fine, message = pcall(tl.why, 1)
ok(not fine and message:find("why: timeline expected", 1, true), "no timeline", message)
local traced = gemm(2):compile{target = "host"}:trace{}
fine, message = pcall(traced.why, traced)
ok(not fine and message:find("why: this timeline is measured; ask the simulated one", 1, true), "a measured one", message)
tap.done_testing()
