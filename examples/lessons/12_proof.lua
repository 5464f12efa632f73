-- Lesson 12: proofs. How far a plan is from the best that its lanes allow, what forbids less, and what would
-- not help: each of them solved, not guessed.
local mr = require "millrace"

return mr.lesson{
  title = "Is there a better plan at all?",
  idea = "A proof tells the least II of all orders, and what forbids less. Change that: nothing else can help.",
  {text = [[
You have moved sTasks about for an hour, and II does not fall any more. Is that you, or is it the program? ResMII and RecMII are
bounds of the plan as it is, and each looks at one thing. tl:proof() asks a harder question: of all orders, offsets and
versions that these lanes could have, which one has the least II? It solves that, as an optimal modulo schedule, with the costs
that the simulator plays.

Here is attention on two lanes in the order of the program, each with 64 queries.]]},
  {code = [[
bound = mr.examples.flash_attention{b=1, h=132, m=2048, d=128}
plan = mr.plan(bound:graph{tile={m=128, n=128}}, mr.device "h200")
plan:split("m", 2)
plan:lane("p0", {warps=1})
for i = 0, 1 do plan:lane("c" .. i, {warps=4, registers=240}) end
plan:buffers{k=2, v=2}
for _, t in ipairs(plan.tasks) do
  local part = t.name:match "%.(%d)$" or 0
  plan:append(t.name, {lane=t.kind == "load" and "p0" or "c" .. part})
end
plan:fill_waits()
tl = plan:simulate()]]},
  {show = "tl", options = {to = 9000}, name = "proof_program_order"},
  {ask = "II is $(tl.ii). The four products of an iteration take 512 cycles each. What is the least II of any order?",
    unit = "cycles", answer = "tl:proof().bound",
    because = [[
Units add up whatever the order: the tensor cores are asked for 4 * 512 cycles. What the solver adds is that nothing else
forbids that: there is a schedule of the loop that has it.]]},
  {code = "proof = tl:proof()\nprint(proof)"},
  {claim = "the tensor cores forbid less",
    that = "#proof.core == 1 and proof.core[1].unit == 'tensor' and proof.exact and proof.gap > 0.2"},
  {text = [[
Read it from the top. II is $(percent(proof.gap)) above the least. One requirement is enough to forbid less. Then comes what
would allow less, if the thing named were changed and nothing else: each line is the complete problem solved again. The last line
is worth most. Another version of any buffer brings nothing, nor does faster memory: you need not try.]]},
  {ask = "With tensor cores that are twice as fast, the products take half as long. By how much can II fall?", unit = "%",
    answer = "100 * twice('tensor').gain",
    because = [[
Not by half. With faster products the lanes are in the way: what they compute on the CUDA cores is slower while products are at
work. A proof of a change is worth more than the share that a unit is busy.]]},
  {claim = "another thing binds then", that = "twice('tensor').gain < 0.4 and twice('tensor').gain > 0.1"},
  {text = [[
The gap says that there may be a better order, not that there is one: the model's lanes also spend time on flags and signals, and wait
for their own products. The best order known for this loop has products first, softmax an iteration ahead, and lanes with an issue order.]]},
  {code = [[
better = mr.load_plan("attention_pingpong", bound):simulate()
print(better:proof())]]},
  {claim = "a better order is nearer", that = "better:proof().gap < proof.gap and better.ii < tl.ii"},
  {text = [[
Now a product alone: here a plan can be at its bound, and then the proof says that you are done.]]},
  {code = [[
gemm = mr.examples.gemm{m=4096, n=4096, k=4096}
plan = mr.load_plan("gemm_cooperative", gemm)
done = plan:simulate()
print(done:proof())]]},
  {ask = "What if a and b have one version each?", choices = {"the bound rises", "II rises", "both rise"}, answer = "2",
    because = [[
The bound is one of all versions, so it does not know how many this plan has. RecMII does: tl.rec_mii.]]},
  {code = [[
plan:buffers{a=1, b=1}
plan:fill_waits()
single = plan:simulate()
print(single.ii, single.rec_mii, single:proof().bound)]]},
  {claim = "the bound is of all versions",
    that = "single:proof().bound == done:proof().bound and single.ii > 1.5 * done.ii"},
  {text = [[
So a gap says: go on with orders, offsets, rings. No gap says: go on with lanes and tiles, or with what the core names. A search
says it of its answer, too: found.why().]]},
  {try = {
    {"plan:buffers{a=2, b=2}", "How far from the bound are two versions?",
      that = "r.after.ii < r.before.ii"},
    {"plan:propagate{k=128}", "Longer iterations. Is the bound of an iteration twice as long?"},
  }},
  setup = [[
function twice(unit)
  for _, e in ipairs(tl:proof().eases) do
    if e.unit == unit and e.times == 2 then return e end
  end
end]],
}
