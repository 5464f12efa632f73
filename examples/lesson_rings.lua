-- Lesson: what the depth of a ring does.
--
-- A matrix product loads a tile of A and one of B for each step along k, multiplies them,
-- and loads the next. The tiles lie in rings in shared memory. A ring with one version is
-- a single buffer: load, wait, multiply, and only then load again. With more versions,
-- loads run ahead while the tensor cores work.
--
-- How many versions are enough? Two bounds answer.
--
--   ResMII  what one step asks of the busiest resource: tensor cores, or the memory. No
--           ring helps against that.
--   RecMII  a slot goes around in a circle: it is filled, used, and free again. A circle
--           takes a time L (the latency of the load, mostly). With V versions, V steps fit
--           into one circle, so a step takes at least L / V.
--
-- The ring is deep enough when L / V is below ResMII. Beyond, it only costs memory.
local mr = require "millrace"
local device = mr.device "h200"
local bound = mr.examples.gemm{m=4096, n=4096, k=4096}
local graph = bound:graph{tile={m=128, n=128, k=64}}

local function plan_with(versions)
  local plan = mr.plan(graph, device)
  plan:buffers{a=versions, b=versions}
  for _, task in ipairs(graph.tasks) do plan:append(task.name) end
  plan:fill_waits()
  assert(plan:check())
  return plan
end

-- Cycles from one product to the next, over 60 of the first tile's 64 steps.
local function interval(tl)
  local at = {}
  for _, e in ipairs(tl.events) do
    if e.task == "mma" and e.tile == 0 then at[e.iteration] = e["end"] end
  end
  return (at[63] - at[3]) / 60
end

print "versions  shared memory  cycles a step  ResMII  RecMII  tensor cores busy"
for versions = 1, 6 do
  local plan = plan_with(versions)
  local tl = plan:simulate()
  print(("%8d  %9.0f KiB  %13.0f  %6.0f  %6.0f  %15.0f %%"):format(versions,
    plan.usage.shared_bytes / 1024, interval(tl), tl.res_mii, tl.rec_mii,
    100 * tl.utilization.tensor))
end

print [[

Both are bounds: a step can take longer. With three versions it does, because the
load of B queues behind that of A, and RecMII counts only one of them.]]

print "\nOne version: every product waits for a whole load."
plan_with(1):simulate():print{width = 76, to = 9000}
print "\nFour versions: the loads run ahead, and memory is the limit."
plan_with(4):simulate():print{width = 76, to = 9000}

print [[

To try:
- Take tile={m=128, n=256, k=64} and plan:lane("c0", {warps=8}). Why is the gap
  between ResMII and the tensor cores' own time smaller?
- Take k=32. What happens to L / V, and why?
- Print tl.utilization.memory beside the rest. When does it stop to grow?]]
