-- Lesson 9: clusters and L2. What the EUs load at one time decides how much of it is the same; the
-- order of tiles serves device memory, clusters serve L2.
local mr = require "millrace"

return mr.lesson{
  title = "Why does the same kernel slow down on a larger matrix?",
  idea = "Memory is shared by all EUs. The order of tiles decides what comes from device memory, clusters what comes from L2.",
  {text = [[
A kernel does well on a square matrix. On one with eight times the columns each tile is the same, with the same plan, and it
slows down. An EU does not know what happened: its loads just take longer.

132 EUs work on 132 tiles at a time. What they load together comes from device memory once, and to all others from L2. So it
matters which tiles these are.]]},
  {code = [[
bound = mr.examples.gemm{m=4096, n=32768, k=4096}
plan = mr.plan(bound:graph{tile={m=128, n=256, k=64}}, mr.device "h200")
plan:lane("c0", {warps=8})
plan:buffers{a=4, b=4}
for _, task in ipairs(plan.tasks) do plan:append(task.name) end
plan:fill_waits()
rows = plan:simulate()]]},
  {show = "rows", options = {to = 12000}, name = "clusters_rows"},
  {text = [[
The tiles are walked along complete rows, of 128 tiles. So the EUs have one or two rows of A between them, and all of B: that is
fetched again for every row. ResMII is memory's, $(rows.res_mii) cycles, and the tensor cores are at work
$(percent(rows.utilization.tensor)) of the time.

With group=8, eight rows are walked together: down the eight, then to the next column. 132 EUs then have 8 rows and some 17
columns between them.]]},
  {ask = "The product of a tile needs $(number(2 * 128 * 256 * 64 / 4096)) cycles. What is II with group=8?",
    unit = "cycles", answer = "grouped().ii"},
  {code = "plan:grid{group=8}\ngroup = plan:simulate()\nprint(group:summary{width=78})"},
  {claim = "groups free the memory",
    that = "group.ii < 0.9 * rows.ii and group.utilization.memory < 0.8 * rows.utilization.memory"},
  {claim = "and then products bind", that = "group.ii < 1.02 * group.bound and group.res_mii == 1024"},
  {claim = "device memory takes a fraction of the energy", that = "group.energy.global < 0.4 * rows.energy.global"},
  {text = [[
Not one sTask of the plan has moved. The energy says how many bytes came from device memory: $(number(rows.energy.global * 1e3))
mJ before, $(number(group.energy.global * 1e3)) now. L2 gave the same to the EUs: $(number(rows.energy.l2 * 1e3)) and
$(number(group.energy.l2 * 1e3)) mJ.

L2 can become the limit itself, with small tiles: they load more for each product. Here are tiles of 64 x 96, in groups.]]},
  {code = [[
bound = mr.examples.gemm{m=4096, n=4096, k=4096}
plan = mr.plan(bound:graph{tile={m=64, n=96, k=64}}, mr.device "h200")
plan:buffers{a=8, b=8}
plan:grid{group=8}
for _, task in ipairs(plan.tasks) do plan:append(task.name) end
plan:fill_waits()
alone = plan:simulate()
print(alone:summary{width=78})]]},
  {claim = "L2 binds small tiles", that = "alone.utilization.memory > 0.95 and alone.res_mii > 1.2 * 192"},
  {text = [[
The product needs 192 cycles, and memory asks for $(alone.res_mii). In a cluster of two, EUs take neighbouring tiles in
lockstep. What is the same for both is loaded once, each bringing a half for both.]]},
  {ask = "Two tiles of 64 x 96 that share the columns of B. By how much do the bytes from L2 become less, in per cent?",
    unit = "%",
    answer = "100 * (1 - (64 + 96 / 2) / (64 + 96))",
      because = "64 rows of A each, and 96 columns of B for both: 112 instead of 160 rows of k."},
  {code = "plan:grid{cluster=2}\npair = plan:simulate()\nprint(pair:summary{width=78})"},
  {claim = "a pair frees L2", that = "pair.ii < 0.92 * alone.ii and pair.seconds < 0.97 * alone.seconds"},
  {text = [[
$(us(pair.seconds)) instead of $(us(alone.seconds)): II fell by $(percent(1 - pair.ii / alone.ii)), the time by
$(percent(1 - pair.seconds / alone.seconds)). More work at a time takes more power, and the clock went from
$(number(alone.clock_hz / 1e9)) to $(number(pair.clock_hz / 1e9)) GHz.

Take this gain with care. The model is near what an H200 takes for such tiles: 238 us for those of 64 x 128
(tests/perf/sweep-h200.jsonl), where it says 233. But it does not price what a pair costs in waiting for each other;
with large tiles an H200 gains 0 to 2 % by pairs (docs/internals/simulator.md). Is the uncertainty of a time, $(percent(pair.uncertainty)),
more than the gain? The next lesson is about that.]]},
  {try = {
    {"plan:grid{cluster=4}", "Clusters of four fit only on 120 of the 132 EUs. Do fewer bytes make up for that?",
      that = "r.after.seconds > r.before.seconds"},
    {'plan:grid{raster="columns", cluster=2}', "The other direction: now the pair shares A. Why is that less?",
      that = "r.after.ii > r.before.ii"},
  }},
  setup = [[
function grouped()
  local copy = plan:copy()
  copy:grid{group=8}
  return copy:simulate()
end]],
}
