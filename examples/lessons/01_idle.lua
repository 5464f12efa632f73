-- Lesson 1: why is my tensor core idle? A unit is idle because the lane that feeds it is busy
-- elsewhere or waits; the lane's row says which.
local mr = require "millrace"

return mr.lesson{
  title = "Why is my tensor core idle?",
  idea = "A unit idles because of the lane that feeds it. The lane's row shows what it did instead.",
  {text = [[
You have an attention kernel. A profiler says that its tensor cores are at work half of the time. What holds them up: memory,
the softmax, or the order of the work?

Here is such a plan on the model of an H200. One lane of four warps has 64 queries. For each block of 128 keys it computes
scores (mma_qk), a softmax, a correction of what it has so far (rescale), and the second product (mma_pv). Another lane loads.]]},
  {code = [[
bound = mr.examples.flash_attention{b=2, h=16, m=4096, d=128}
function attention(device)
  local plan = mr.plan(bound:graph{tile={m=64, n=128}}, device)
  plan:lane("c0", {warps=4})
  plan:buffers{k=2, v=2}
  for _, task in ipairs(plan.tasks) do plan:append(task.name) end
  plan:fill_waits()
  return plan
end
plan = attention(mr.device "h200")
tl = plan:simulate()]]},
  {ask = "Loads are said to be slow. Suppose L2 gave twice as many bytes a cycle. How much less time would it take, in per cent?",
    unit = "%", answer = "100 * (1 - twice_l2().seconds / tl.seconds)",
    because = [[
Memory was at work $(percent(tl.utilization.memory)) of the time, and loads are complete before the lane needs them.]]},
  {text = "Guessing at units does not help. Look at the lanes."},
  {show = "tl", options = {to = 8000}, name = "idle_serial"},
  {text = [[
Read the row of c0. It issues q, the scores, and can do nothing: the dots say that it waits for them. Then come softmax and
rescale, on the CUDA cores, and then p, the second product, is issued. The tensor cores get more work only in the lane's next
iteration. They are at work $(percent(tl.utilization.tensor)) of the time, and the CUDA cores
$(percent(tl.utilization.cuda)): hardly ever both at the same time. No unit is too slow. The lane does one thing after the other.

tl.blame says the same in numbers, of the time of each lane. The column pipe is the time in which it waits for a busy unit.]]},
  {show = "tl.blame"},
  {claim = "twice the rate of L2 brings nothing", that = "math.abs(twice_l2().seconds / tl.seconds - 1) < 0.01"},
  {claim = "the tensor cores are idle for a third or more", that = "tl.utilization.tensor < 0.67"},
  {claim = "little overlaps", that = "tl.utilization.tensor + tl.utilization.cuda < 1"},
  {text = [[
So give the tensor cores work of another warpgroup meanwhile. With 128 queries a tile and eight warps, the lane is two warpgroups.
Each has 64 rows, and they drift apart: one computes what the other multiplies.]]},
  {ask = "Twice the work a tile, and the tensor cores need twice as long for it. How busy will they be?", unit = "%",
    answer = "100 * two_groups().utilization.tensor"},
  {code = [[
plan:propagate{m=128}
plan:lane("c0", {warps=8})
plan:fill_waits()
better = plan:simulate()]]},
  {show = "better", options = {to = 8000}, brief = true, name = "idle_two_groups"},
  {claim = "two warpgroups keep them busier", that = "better.utilization.tensor > tl.utilization.tensor + 0.15"},
  {claim = "and take less time", that = "better.seconds < 0.85 * tl.seconds"},
  {text = [[
The same work takes $(us(better.seconds)) instead of $(us(tl.seconds)). No unit has become faster.

To find out by yourself: look at the busiest unit's gaps, then at the row of the lane that feeds it, then at what its dots wait
for. tl:why() does that, and tries changes.]]},
  {try = {
    {"plan:propagate{n=64}", "Half as many keys a block: the softmax is half as long, and so are the products. What is not?"},
    {'plan:move("mma_pv", {at=-1, after="mma_qk"})',
      "The second product of the iteration before, under the softmax of this one. Who waits now?"},
  }},
  -- what the questions ask of, made when it is asked for
  setup = [[
function twice_l2()
  local h200 = mr.device "h200"
  local twice = {}
  for _, name in ipairs{"rate", "eu_rate"} do twice["memory.l2." .. name] = 2 * h200:number("memory.l2." .. name) end
  return attention(mr.device("h200", twice)):simulate()
end
function two_groups()
  local copy = plan:copy()
  copy:propagate{m=128}
  copy:lane("c0", {warps=8})
  copy:fill_waits()
  return copy:simulate()
end]],
}
