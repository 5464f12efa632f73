-- Lesson 6: offsets and the prologue. An offset moves an sTask to an earlier iteration; prologue and
-- epilogue follow, and a value that lives over k iterations needs k + 1 versions.
local mr = require "millrace"

return mr.lesson{
  title = "Who writes the prologue?",
  idea = "An order and an offset for each sTask are a complete software pipeline. Prologue, epilogue and versions follow from them.",
  {text = [[
Written by hand, a software pipeline is three loops: a prologue that starts the first loads, a steady state, and an epilogue
that drains what is under way. They are where the mistakes are. A plan has none of them.

A lane runs a loop of T iterations as a pipelined loop. In iteration j of that it does its entries in order, each for
iteration j + at of the source loop, if there is such an iteration. Attention with four blocks of keys; all offsets are 0.]]},
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
  {text = "Now the scores get at=1: they are computed an iteration ahead of all others."},
  {ask = "Four iterations, one sTask one ahead. How many iterations does the lane's pipelined loop have?",
    answer = "count(moved(1), {mma_qk=1})",
    because = "One more than the source loop: they go from minus the greatest offset to T - 1 minus the least."},
  {code = 'plan:move("mma_qk", {at=1})\nat.mma_qk = 1\nby_iteration()'},
  {claim = "one offset, one more iteration", that = "count(plan, at) == 5"},
  {text = [[
Iteration -1 has only what is ahead: that is the prologue. The last one lacks it: the epilogue. Nobody wrote them.

An offset also makes values live longer. The scores of iteration i are now made in iteration i - 1 and read in
iteration i, when those of i + 1 have been made already. So they need two versions, and plan:move gave them: mma_qk has $(plan.rings.mma_qk). In general a
value that is alive over k iterations needs k + 1.]]},
  {claim = "the move brought a version", that = "plan.rings.mma_qk == 2 and plan:check()"},
  {ask = "And with the scores two iterations ahead: how many versions do they need?", answer = "moved(2).rings.mma_qk"},
  {code = [[
print(plan.rings.mma_qk, plan.usage.lanes.c0 .. " registers a thread")
plan:move("mma_qk", {at=2})
print(plan.rings.mma_qk, plan.usage.lanes.c0 .. " registers a thread")]]},
  {claim = "a version more, and more registers",
    that = "plan.rings.mma_qk == 3 and plan:check() and plan.usage.lanes.c0 > moved(1).usage.lanes.c0"},
  {text = [[
Scores of 64 x 64 take 32 registers of every thread, and each further version takes as many. An offset costs registers.

Back to one, then, and a look at the first iterations in time: q of iteration -1, and then one q and one p in each.]]},
  {code = 'plan:undo()\ntl = plan:simulate()'},
  {show = "tl", options = {to = 8000}, brief = true, name = "offsets_prologue"},
  {text = [[
The prologue and the epilogue cost time, too: a lane with an offset has more iterations. With four iterations that is a fourth more;
with 64 nobody sees it. Whether an offset hides anything is a question of the order within an iteration. That is the next lesson.]]},
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
