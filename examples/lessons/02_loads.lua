-- Lesson 2: loads under compute. A load costs nothing if it is asked for early enough; a second
-- version has memory for it, an offset requests it.
local mr = require "millrace"

return mr.lesson{
  title = "How do loads get under the products?",
  idea = "A load is hidden if it is asked for before the product that is to hide it. Memory for two tiles is not enough.",
  {text = [[
A matrix product loads a tile of A and one of B, multiplies them, and loads the next. Every tutorial says: use double buffering.
So we give both buffers two versions. Here one lane of four warps does everything.]]},
  {code = [[
bound = mr.examples.gemm{m=4096, n=4096, k=4096}
graph = bound:graph{tile={m=128, n=128, k=64}}
function product(versions)
  local plan = mr.plan(graph, mr.device "h200")
  plan:buffers{a=versions, b=versions}
  for _, t in ipairs(graph.tasks) do plan:append(t.name, {lane="c0"}) end
  plan:fill_waits()
  return plan
end
single, plan = product(1):simulate(), product(2)
double = plan:simulate()]]},
  {text = "With one version, an iteration takes $(single.ii) cycles (that is II, the interval from one iteration to the next)."},
  {ask = "How many cycles does it take with two versions?", unit = "cycles", answer = "double.ii",
    because = "Not one cycle less. Look at what the lane does."},
  {show = "double", options = {to = 9000}, brief = true, name = "loads_serial"},
  {claim = "a second version alone brings nothing", that = "double.ii == single.ii"},
  {text = [[
The lane asks for a and b, waits for them, and issues m. Then it comes to the loads of the next iteration and asks for these.
The second slot is free all the time, and nobody uses it: a load is issued only when the lane comes to it.

An offset changes when it comes to it. With at=1 an sTask belongs to the iteration after that of the others. In each iteration of its
loop the lane now asks for the tiles of the next iteration first, and then multiplies what it has.]]},
  {ask = "What is II with the loads one iteration ahead?", unit = "cycles", answer = "ahead().ii"},
  {code = [[
plan:move("load_a", {at=1})
plan:move("load_b", {at=1})
ahead_tl = plan:simulate()]]},
  {show = "ahead_tl", options = {to = 9000}, name = "loads_ahead"},
  {claim = "II at least halves", that = "2 * ahead_tl.ii <= double.ii"},
  {text = [[
The rows of the copy engine and of the tensor cores now have bars above each other. II fell from $(double.ii) to $(ahead_tl.ii)
cycles, and the kernel takes $(us(ahead_tl.seconds)) instead of $(us(double.seconds)).

A round trip, load and product, takes as long as before. But two iterations are under way at a time, one in each slot, and share
it. The tensor cores need $(ahead_tl.res_mii) cycles for an iteration, so there is time for more: an offset of two, and a third
version.]]},
  {claim = "there is more to gain", that = "ahead_tl.ii > 1.5 * ahead_tl.res_mii"},
  {try = {
    {'plan:buffers{a=3, b=3}\nplan:move("load_a", {at=2})\nplan:move("load_b", {at=2})',
      "Two iterations ahead. What is II, and is it the product's time yet?",
      that = "r.after.ii < r.before.ii"},
    {'plan:move("load_a", {lane="p0"})\nplan:move("load_b", {lane="p0"})',
      "A lane of its own for the loads. Which offsets does it need?"},
  }},
  setup = [[
function ahead()
  local copy = plan:copy()
  copy:move("load_a", {at=1})
  copy:move("load_b", {at=1})
  return copy:simulate()
end]],
}
