-- Lesson 4: the initiation interval and its two bounds. Resources ask so much of each iteration,
-- circles of dependences so much; the greater says what kind of change can help.
local mr = require "millrace"

return mr.lesson{
  title = "Can this plan get any faster?",
  idea = "II has two lower bounds: ResMII, by resources, and RecMII, by circles. Which one binds says what to change.",
  {text = [[
A kernel runs at some speed. Is it worth another day of work? Two numbers answer that before you try.

II, the initiation interval, is the time from one iteration to the next in the steady state. A loop of T iterations takes about
T times II. ResMII is the most that one iteration asks of a resource: a unit, a lane, memory. RecMII is the longest circle of
dependences, divided by the iterations that it spans. II is never less than either.

Tensor cores of the H200 do 4,096 operations a cycle and SM on 16 bits. A product of m x n x k is 2 m n k operations.]]},
  {code = [[
bound = mr.examples.gemm{m=4096, n=4096, k=4096}
function product(m, n, versions)
  local plan = mr.plan(bound:graph{tile={m=m, n=n, k=64}}, mr.device "h200")
  plan:lane("c0", {warps=n == 256 and 8 or 4})
  plan:buffers{a=versions, b=versions}
  for _, task in ipairs(plan.tasks) do plan:append(task.name) end
  plan:fill_waits()
  return plan
end]]},
  {ask = "What does a tile of 128 x 128 x 64 ask of the tensor cores, in cycles?", unit = "cycles",
    answer = "2 * 128 * 128 * 64 / 4096"},
  {code = "shallow = product(128, 128, 2):simulate()\nprint(shallow:summary{width=78})"},
  {text = [[
ResMII is that product. But II is $(shallow.ii): the other bound is higher. RecMII is $(shallow.rec_mii), by the circle of a
ring with two versions. Where RecMII binds, versions help, and another unit would not.]]},
  {ask = "With six versions, what is II?", unit = "cycles", answer = "product(128, 128, 6):simulate().ii"},
  {code = "plan = product(128, 128, 6)\ndeep = plan:simulate()\nprint(deep:summary{width=78})"},
  {claim = "RecMII bound the first plan", that = "shallow.rec_mii > 1.5 * shallow.res_mii"},
  {claim = "II at least halves", that = "2 * deep.ii <= shallow.ii"},
  {claim = "the second plan is at its bound", that = "deep.ii < 1.02 * deep.bound"},
  {text = [[
Now II is at the bound, and that bound is ResMII. No order, no offset, no ring makes this tile faster: the tensor cores are at
work all the time. Only another tile, or less work, can.

What about smaller tiles? 64 x 64 is a quarter of the product.]]},
  {ask = "A tile of 64 x 64 x 64 asks for 128 cycles of the tensor cores. With eight versions, what is II?", unit = "cycles",
    answer = "product(64, 64, 8):simulate().ii"},
  {code = "small = product(64, 64, 8):simulate()\nprint(small:summary{width=78})"},
  {claim = "another resource binds a small tile", that = "small.ii >= 1.5 * 2 * 64 * 64 * 64 / 4096"},
  {text = [[
Near the bound again, but the resource behind ResMII is another one, the one in brackets. A tile of half the sides has a
quarter of the product and half of the bytes. That is why large tiles are used: $(number(deep.seconds * 1e6)) us against
$(number(small.seconds * 1e6)).

  II above both bounds    an order or an offset may hide the remainder
  at RecMII               more versions, or shorter circles (the next lesson)
  at ResMII               another tile, other lanes, less work]]},
  {show = "small", options = {to = 5000}, brief = true, name = "interval_small"},
  {try = {
    {"plan:buffers{a=3, b=3}", "Which bound binds? And is II at it?", that = "r.after.rec_mii > r.after.res_mii"},
    {'plan:lane("c0", {warps=8})\nplan:propagate{n=256}\nplan:buffers{a=4, b=4}',
      "Twice the product. Compute ResMII before you look.",
      that = "r.after.res_mii == 1024"},
  }},
}
