-- Lesson 7: softmax under products. An offset alone hides nothing: the product has to be issued before
-- the lane begins the softmax, and what lives longer needs a second version.
local mr = require "millrace"

return mr.lesson{
  title = "How does a softmax hide under products?",
  idea = "Issue what is asynchronous before you begin what is not. The order hides work; the offset makes that order possible.",
  {text = [[
Attention has two kinds of work: products on the tensor cores, and a softmax on the CUDA cores. A lane issues a product and goes
on; at a softmax it stays until that is done. How much of the softmax can disappear?

Here are four warps and 64 queries, in the order of the program. The list is the loop of the lane that computes: sTasks and
offsets.]]},
  {code = [[
bound = mr.examples.flash_attention{b=2, h=16, m=4096, d=128}
graph = bound:graph{tile={m=64, n=128}}
function attention(versions, order)
  local plan = mr.plan(graph, mr.device "h200")
  plan:lane("c0", {warps=4})
  plan:buffers(versions)
  for _, t in ipairs{"load_q", "load_k", "load_v"} do plan:append(t) end
  for _, entry in ipairs(order) do plan:append(entry[1], {at=entry[2]}) end
  for _, task in ipairs{"normalise", "store_o"} do plan:append(task) end
  plan:fill_waits()
  return plan
end
serial = attention({k=2, v=2},
  {{"mma_qk"}, {"softmax"}, {"rescale"}, {"mma_pv"}}):simulate()]]},
  {show = "serial", options = {to = 8000}, brief = true, name = "softmax_serial"},
  {text = [[
The tensor cores are at work $(percent(serial.utilization.tensor)) of the time, and II is $(serial.ii). Now the scores and the
softmax of the next block come one iteration ahead. The softmax then comes before the product that reads the last one's
probabilities, so both of its values need two versions.]]},
  {ask = "Does II become less, more, or stay as it is?", choices = {"less", "the same", "more"},
    answer = "ahead_only().ii < 0.98 * serial.ii and 'less' or ahead_only().ii > 1.02 * serial.ii and 'more' or 'the same'"},
  {code = [[
ahead = attention({k=2, v=2, softmax=2, softmax_2=2},
  {{"mma_qk", 1}, {"softmax", 1}, {"rescale"}, {"mma_pv"}}):simulate()]]},
  {show = "ahead", options = {to = 8000}, brief = true, name = "softmax_ahead"},
  {claim = "an offset alone hides nothing", that = "ahead.ii > serial.ii"},
  {text = [[
$(ahead.ii) cycles. In each iteration the lane still issues the scores, waits for them, does the softmax, and only then issues p.
While it computes, the tensor cores have nothing: the order within the iteration is as bad as before, and the loads come at a worse
time.

The offset made another order possible. Issue both products first: the next scores, and the product of this block, whose
probabilities are there already. Then do the softmax.]]},
  {ask = "And now, what is II?", unit = "cycles", answer = "overlapped().ii"},
  {code = [[
plan = attention({k=2, v=2, softmax_2=2},
  {{"mma_qk", 1}, {"mma_pv"}, {"softmax", 1}, {"rescale", 1}})
overlap = plan:simulate()]]},
  {show = "overlap", options = {to = 8000}, name = "softmax_overlap"},
  {claim = "the order does", that = "overlap.ii < 0.93 * serial.ii and overlap.ii < 0.75 * ahead.ii"},
  {claim = "the tensor cores are busier", that = "overlap.utilization.tensor > serial.utilization.tensor + 0.03"},
  {text = [[
p is at work while s is: $(overlap.ii) cycles instead of $(serial.ii). Of the softmax only a part disappears, as its scores have
to be there before, and they are computed while nothing else is. During a product the CUDA cores are slower, too: both want the
same registers.

What it costs is a second version of the probabilities. Without it the same order is legal, but the softmax waits for p.]]},
  {ask = "With one version of softmax_2, what is II?", unit = "cycles", answer = "one_version().ii",
    because = "As if nothing had been moved: the slot is a circle through softmax and product."},
  {claim = "one version undoes it", that = "math.abs(one_version().ii / serial.ii - 1) < 0.02"},
  {try = {
    {'plan:move("rescale", {at=0, before="mma_pv"})',
      "rescale before the product that adds to what it scales. What does that do to the softmax?"},
    {"plan:buffers{k=3, v=3}", "Deeper rings. Do the loads hold it up?", that = "r.after.ii <= r.before.ii"},
  }},
  setup = [[
local both = {{"mma_qk", 1}, {"mma_pv"}, {"softmax", 1}, {"rescale", 1}}
function ahead_only()
  return attention({k=2, v=2, softmax=2, softmax_2=2}, {{"mma_qk", 1}, {"softmax", 1}, {"rescale"}, {"mma_pv"}}):simulate()
end
function overlapped() return attention({k=2, v=2, softmax_2=2}, both):simulate() end
function one_version() return attention({k=2, v=2}, both):simulate() end]],
}
