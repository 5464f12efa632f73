-- Lesson 3: how deep a ring? Deep enough that its circle, divided by its versions, is shorter than
-- what an iteration asks of the busiest unit; deeper only costs memory.
local mr = require "millrace"

return mr.lesson{
  title = "How deep must a ring be?",
  idea = "A ring of V versions lets V iterations share one round trip. It is deep enough if its share is below an iteration's work.",
  {text = [[
How many stages should a pipeline have? People try 2, 3, 4 and keep the fastest. It can be computed.

A ring is a buffer with several versions, used round robin. A slot goes round in a circle: it is filled, used, and free again. Here
a lane of one warp loads, another multiplies, and each ring has one slot.]]},
  {code = [[
bound = mr.examples.gemm{m=4096, n=4096, k=4096}
graph = bound:graph{tile={m=128, n=128, k=64}}
function with_versions(v)
  local plan = mr.plan(graph, mr.device "h200")
  plan:buffers{a=v, b=v}
  for _, task in ipairs(graph.tasks) do plan:append(task.name) end
  plan:fill_waits()
  return plan
end
one = with_versions(1):simulate()]]},
  {show = "one", options = {to = 9000}, name = "rings_one"},
  {text = [[
Two numbers of the last lines matter. ResMII, $(one.res_mii) cycles: what an iteration asks of the busiest resource, here the
tensor cores. No ring helps against that. RecMII, $(one.rec_mii) cycles: the longest circle, here a slot's. Most of it is the
latency of a load.

With V versions, V iterations fit into one circle, so an iteration takes at least the circle divided by V.]]},
  {ask = "From how many versions on is that less than ResMII?", answer = "math.ceil(one.rec_mii / one.res_mii)",
    because = "The circle of $(one.rec_mii) cycles divided by $(one.res_mii) is $(number(one.rec_mii / one.res_mii))."},
  {ask = "With that many, how busy are the tensor cores?", unit = "%",
    answer = "100 * with_versions(math.ceil(one.rec_mii / one.res_mii)):simulate().utilization.tensor"},
  {code = [[
print "versions  KiB    II  ResMII  RecMII  tensor cores"
tls = {}
for v = 1, 6 do
  local plan = with_versions(v)
  local tl = plan:simulate()
  print(("%8d  %3.0f  %4.0f  %6.0f  %6.0f  %10.0f %%"):format(v,
    plan.usage.shared_bytes / 1024, tl.ii, tl.res_mii, tl.rec_mii,
    100 * tl.utilization.tensor))
  tls[v] = tl
end]]},
  {claim = "with five versions II is at ResMII", that = "tls[5].ii < 1.02 * tls[5].res_mii"},
  {claim = "II falls to less than a third", that = "3 * tls[4].ii < tls[1].ii"},
  {claim = "a sixth version brings nothing", that = "tls[6].ii > 0.98 * tls[5].ii"},
  {claim = "from four versions on another circle is the longest", that = "tls[4].rec_mii == tls[6].rec_mii"},
  {text = [[
From four versions on RecMII stays at $(tls[4].rec_mii): the longest circle is then that of mma, which adds to the sums of the
iteration before.

The bound was right about where to look, and one version too low for the last $(percent(tls[4].ii / tls[5].ii - 1)); with two
versions II is even $(percent(tls[2].ii / tls[2].rec_mii - 1)) above it. It counts one circle alone, and here two loads queue for
one engine, and slots are signaled free a little late. A bound says what cannot be. The simulator says what is.

The sixth version only costs shared memory. And with fewer versions than needed no order helps, as RecMII is a bound for every
order.]]},
  {code = "plan = with_versions(5)\nfive = plan:simulate()"},
  {show = "five", options = {to = 9000}, brief = true, name = "rings_five"},
  {try = {
    {"plan:buffers{a=2}", "One shallow ring among deep ones. Which one sets RecMII?",
      that = "r.after.rec_mii > r.before.rec_mii"},
    {"plan:propagate{k=32}", "Half as much a stage. Latency is what it was: how many versions would it need now?",
      that = "r.after.ii > r.after.bound"},
  }},
}
