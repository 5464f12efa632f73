-- Lesson 8: ping-pong. Two lanes in step want each unit at the same time; out of step each computes
-- what the other multiplies. An issue order is a wait for issue.
local mr = require "millrace"

return mr.lesson{
  title = "What is ping-pong, and what is it worth?",
  idea = "Two lanes fill each other's gaps if they are out of step. Waits decide whether they are.",
  {text = [[
Two warpgroups share the tensor cores and the CUDA cores. If both multiply, then both compute, each unit is idle half of the
time, as with one. If one multiplies while the other computes, both are at work.

The tile of 128 queries is split into two halves of 64 rows: mma_qk becomes mma_qk.0 and mma_qk.1, and so on. Each half has a
lane. First the two in step: the softmax of either waits for the scores of both, as after a barrier.]]},
  {code = [[
bound = mr.examples.flash_attention{b=2, h=16, m=4096, d=128}
graph = bound:graph{tile={m=128, n=128}}
function attention(versions, order)
  local plan = mr.plan(graph, mr.device "h200")
  plan:split("m", 2)
  for i = 0, 1 do
    plan:lane("c" .. i, {warps=4})
    for name, v in pairs(versions) do plan:buffers{[name .. "." .. i]=v} end
  end
  plan:buffers{k=2, v=2}
  for _, t in ipairs{"load_q", "load_k", "load_v"} do plan:append(t) end
  for i = 0, 1 do
    for _, e in ipairs(order) do
      plan:append(e[1] .. "." .. i, {lane="c" .. i, at=e[2]})
    end
  end
  plan:fill_waits()
  return plan
end
plan = attention({}, {{"mma_qk"}, {"softmax"}, {"rescale"}, {"mma_pv"},
  {"normalise"}, {"store_o"}})
plan:wait("softmax.0", {{"mma_qk.1", distance=0}})
plan:wait("softmax.1", {{"mma_qk.0", distance=0}})
step = plan:simulate()]]},
  {show = "step", options = {to = 9000}, name = "pingpong_in_step"},
  {text = [[
The bars of s and S stand above each other, and below them the tensor cores are idle. They are at work
$(percent(step.utilization.tensor)) of the time.]]},
  {ask = "Without these two waits, which the program does not need, how busy will they be?", unit = "%",
    answer = "100 * free_running().utilization.tensor"},
  {code = [[
plan:unwait("softmax.0", "mma_qk.1")
plan:unwait("softmax.1", "mma_qk.0")
plan:fill_waits()
free = plan:simulate()]]},
  {claim = "they drift apart",
    that = "free.seconds < 0.97 * step.seconds and free.utilization.tensor > step.utilization.tensor + 0.04"},
  {text = [[
$(percent(free.utilization.tensor)), and $(us(free.seconds)) instead of $(us(step.seconds)). Nothing tells the lanes to be out
of step. They get there because the tensor cores serve one product after the other, so that one lane has its scores earlier.

Together with the order of the lesson before, products first and the softmax an iteration ahead, both units have work nearly
always. To be sure who comes first, the lanes agree on an issue order: a lane issues its two products only when the other has
issued its own. That is a wait for issue, not for completion: the tensor cores take work in order, so it is enough to be in the queue.]]},
  {ask = "How busy are the tensor cores then?", unit = "%",
    answer = "100 * mr.load_plan('attention_pingpong', bound):simulate().utilization.tensor"},
  {code = [[
plan = attention({softmax_2=2}, {{"mma_qk", 1}, {"mma_pv"}, {"softmax", 1},
  {"rescale", 1}, {"normalise"}, {"store_o"}})
plan:wait("mma_qk.0", {{"mma_pv.1", distance=2, when="issued"}})
plan:wait("mma_qk.1", {{"mma_pv.0", distance=1, when="issued"}})
pingpong = plan:simulate()]]},
  {show = "pingpong", options = {to = 9000}, name = "pingpong_order"},
  {claim = "ping-pong beats lanes in step", that = "pingpong.seconds < 0.87 * step.seconds and pingpong.ii < 0.75 * step.ii"},
  {claim = "both units have more to do",
    that = "pingpong.utilization.tensor > 0.75 and pingpong.utilization.cuda > step.utilization.cuda + 0.1"},
  {text = [[
$(us(pingpong.seconds)), II $(pingpong.ii) against $(step.ii) in step; the bound is $(pingpong.bound).]]},
  {ask = "What does the issue order itself bring, in per cent of the time?", unit = "%",
    answer = "100 * (1 - pingpong.seconds / without_order().seconds)",
    because = [[
In the model nothing, or less: lanes without an issue order are out of step already. On a device nothing guarantees that they
are, and a wait costs little. An H200 took 1.69 ms without it and 1.72 ms with it, for 8192 queries (tests/perf/sweep-h200.jsonl).
It took 1.69 ms in the order of the program, too, without an issue order: its lanes drift further apart than the
model's, and hide nearly all of the softmax. What brings the gain is that the lanes are apart.]]},
  {claim = "the issue order is worth little", that = "math.abs(1 - pingpong.seconds / without_order().seconds) < 0.03"},
  {try = {
    {'plan:move("softmax", {before="mma_pv"})',
      "Softmax before the second product again, for both lanes. How much of the gain was the order's?",
      that = "r.after == nil or r.after.ii >= r.before.ii"},
    {'plan:unwait("mma_qk.0", "mma_pv.1")', "One wait less. Who may go first now?"},
  }},
  setup = [[
function free_running()
  local copy = plan:copy()
  copy:unwait("softmax.0", "mma_qk.1")
  copy:unwait("softmax.1", "mma_qk.0")
  copy:fill_waits()
  return copy:simulate()
end
function without_order()
  local copy = plan:copy()
  copy:unwait("mma_qk.0", "mma_pv.1")
  copy:unwait("mma_qk.1", "mma_pv.0")
  copy:fill_waits()
  return copy:simulate()
end]],
}
