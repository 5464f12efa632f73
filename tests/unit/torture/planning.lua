-- A graph; a plan and its edits, each of which must leave the plan unchanged if it fails; its check, text and timeline.
local mr = require "millrace"
local bound, device = mr.examples.gemm{m=256, n=256, k=256}, mr.device "h200"
local graph = bound:graph{tile={m=128, n=128, k=64}}
assert(#graph.tasks == 5 and #graph.edges > 0 and #graph.buffers > 0)
assert(#graph:dot() > 0 and #graph:drawing() > 0 and #tostring(graph) > 0)
local plan, text = mr.plan(graph, device), require "millrace.core".statements
local function edit(f, ...)
  local before = text(plan)
  local good, message = pcall(plan[f], plan, ...)
  if good then return end
  assert(text(plan) == before, "a failed edit changed the plan")
  assert(not plan:redo(), "a failed edit can be redone")
  assert(not plan:undo() or plan:redo() and text(plan) == before, "the log is lost")
  error(message, 0)
end
edit("split", "m", 2)
edit("lane", "p0", {warps=1})
edit("buffers", {a=2, b=2})
edit("append", "load_a")
edit("append", "load_b")
for i = 0, 1 do
  for _, task in ipairs{"mma.", "epilogue.", "store_c."} do
    edit("append", task .. i, {lane="c" .. i})
  end
end
edit("wait", "mma.0", {"load_a", {"load_b", distance=0}})
edit("unwait", "mma.0", "load_b")
edit("grid", {group=2})
edit("fill_waits")
edit("move", "load_b", {before="load_a", at=1})
edit("propagate", {k=32})
edit("remove", "load_a")
local removed = text(plan)
assert(plan:undo())
local good, message = pcall(plan.buffers, plan, {a=3, b=3})
if not good then
  assert(plan:redo() and text(plan) == removed, "a failed edit took what was undone")
  error(message, 0)
end
local ok, problems = plan:check()
assert(ok and #tostring(problems) > 0 and plan.usage.threads > 0 and #plan:script() > 0)
assert(#tostring(plan) > 0 and #plan:table() > 0 and #plan.tasks == 8 and plan.rings.a == 3)
local tl = plan:simulate()
assert(tl.cycles > 0 and #tl.events > 0 and #tl.phases == 1 and tl.utilization.tensor)
assert(#tostring(tl) > 0 and #tl:summary() > 0)
local copy = plan:copy()
assert(text(copy) == text(plan) and #plan:diff(copy) == 0)
edit("unwait", "mma.0", "load_a")
ok, problems = plan:check()
assert(not ok and #tostring(problems) > 0)
