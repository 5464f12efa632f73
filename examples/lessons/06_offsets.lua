-- Lesson 6: offsets and the prologue. An offset moves an sTask to an earlier iteration; prologue and
-- epilogue follow, and a value that lives over k iterations needs k + 1 versions.
local mr = require "millrace"

return mr.lesson{
  title = "Who writes the prologue?",
  idea = "An order and an offset for each sTask are a complete software pipeline. Prologue, epilogue and versions follow from them.",
  {text = [[
Written by hand, a software pipeline is three loops: a prologue that starts the first loads, a steady state, and an epilogue
that drains what is under way. They are where the mistakes are. A plan has none of them.

A lane runs a source loop of T iterations as a pipelined loop. In iteration j of the pipelined loop it performs its entries in
order, each for iteration j + at of the source loop, if there is such an iteration. Here is attention with four blocks of keys. All
offsets are 0. Each line lists an iteration of the pipelined loop: sTasks, each with its iteration of the source loop.]]},
  {code = [[
bound = mr.examples.flash_attention{b=1, h=1, m=64, n=256, d=128}
plan = mr.plan(bound:graph{tile={m=64, n=64}}, mr.device "h200")
plan:buffers{k=2, v=2}
for _, task in ipairs(plan.tasks) do plan:append(task.name) end
plan:fill_waits()

at = {mma_qk=0, softmax=0, rescale=0, mma_pv=0}
function by_iteration()
  local list = {}
  for _, e in ipairs(plan:simulate().events) do
    if at[e.task] then
      local j = e.iteration - at[e.task]
      list[j] = (list[j] or ("iteration %2d:"):format(j)) ..
        ("  %s %d"):format(e.task, e.iteration)
    end
  end
  for j = -2, 3 do
    if list[j] then print(list[j]) end
  end
end
by_iteration()]]},
  {text = "Now the scores get at=1: they are computed an iteration ahead of all other sTasks."},
  {ask = "The source loop has four iterations, and one sTask is one ahead. How many iterations does the pipelined loop have?",
    answer = "count(moved(1), {mma_qk=1})",
    because = "One more than the source loop. They are numbered from minus the greatest offset to T - 1 minus the least."},
  {code = 'plan:move("mma_qk", {at=1})\nat.mma_qk = 1\nby_iteration()'},
  {claim = "one offset, one more iteration", that = "count(plan, at) == 5"},
  {text = [[
Iteration -1 has only the sTask that is ahead: that is the prologue. The last iteration has all but this one: the epilogue. Both
follow from the offset; nobody wrote them.

An offset also makes values live longer. The scores of source iteration i are now computed in iteration i - 1 of the pipelined
loop, and read in iteration i, when those of i + 1 have been computed already. So they need two versions, and plan:move gave them:
mma_qk has $(plan.rings.mma_qk). In general a value that is alive over k iterations needs k + 1 versions.]]},
  {claim = "the move brought a version", that = "plan.rings.mma_qk == 2 and plan:check()"},
  {ask = "And with the scores two iterations ahead: how many versions do they need?", answer = "moved(2).rings.mma_qk"},
  {code = [[
print(plan.rings.mma_qk, plan.usage.lanes.c0 .. " registers a thread")
plan:move("mma_qk", {at=2})
print(plan.rings.mma_qk, plan.usage.lanes.c0 .. " registers a thread")]]},
  {claim = "a version more, and more registers",
    that = "plan.rings.mma_qk == 3 and plan:check() and plan.usage.lanes.c0 > moved(1).usage.lanes.c0"},
  {claim = "the second version took 32 registers", that = "moved(1).usage.lanes.c0 - moved(0).usage.lanes.c0 == 32"},
  {text = [[
Scores of 64 x 64 take 32 registers of every thread. What a lane needs is what is in use at its fullest moment. The second version
came on top of all else there: $(moved(0).usage.lanes.c0) registers became $(moved(1).usage.lanes.c0). With the third the fullest moment is another one, at
which less else is in use, and it costs $(plan.usage.lanes.c0 - moved(1).usage.lanes.c0) more. An offset costs registers.

Back to an offset of one, then, and a look at the first iterations in time: one q in iteration -1, and then one q and one p in
each.]]},
  {code = 'plan:undo()\ntl = plan:simulate()'},
  {show = "tl", options = {to = 8000}, brief = true, name = "offsets_prologue"},
  {text = [[
The prologue and the epilogue cost time, too: with an offset, the pipelined loop has more iterations than the source loop. If that
has four, it is a fourth more; if it has 64, the difference does not show. Whether an offset hides anything depends on the order
within an iteration. That is the next lesson.]]},
  {try = {
    {'plan:move("softmax", {at=1})', "Which buffers get versions now, and why not the scores?", that = "r.ok"},
    {'plan:move("load_v", {at=1})', "A load an iteration earlier, on the lane that loads. Does it change what c0 does?"},
  }},
  setup = [[
function moved(at)
  local copy = plan:copy()
  copy:move("mma_qk", {at=at})
  return copy
end
function count(plan, at)
  local seen, n = {}, 0
  for _, e in ipairs(plan:simulate().events) do
    local j = e.iteration - (at[e.task] or 0)
    if e.lane == "c0" and not seen[j] and (e.task:find "^mma" or e.task == "softmax") then seen[j], n = true, n + 1 end
  end
  return n
end]],
}
