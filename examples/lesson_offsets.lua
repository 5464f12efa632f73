-- Lesson: an order, an offset, a version. Softmax under products in four steps.
--
-- In each turn of its loop a lane runs its entries in order. An entry with at=1 runs one
-- iteration ahead of the others. Nothing else is needed to pipeline a loop in software:
-- the prologue is the turn in which only entries with at=1 have something to do, the
-- epilogue the turn in which they have nothing left.
local mr = require "millrace"
local device = mr.device "h200"
local bound = mr.examples.flash_attention{b=2, h=16, m=8192, d=128}
local graph = bound:graph{tile={m=64, n=128}}

-- order: {{sTask, offset}, ...} of the loop on the consumers' lane
local function attention(versions, order)
  local plan = mr.plan(graph, device)
  plan:lane("c0", {warps=4})
  plan:buffers(versions)
  for _, load in ipairs{"load_q", "load_k", "load_v"} do plan:append(load) end
  for _, entry in ipairs(order) do plan:append(entry[1], {at=entry[2]}) end
  for _, task in ipairs{"normalise", "store_o"} do plan:append(task) end
  plan:fill_waits()
  return plan
end

local function report(title, plan)
  local ok, problems = plan:check()
  print("\n" .. title)
  if not ok then return print(problems) end
  local tl = plan:simulate()
  print(("%.0f TFLOP/s, II %.0f cycles, tensor cores busy %.0f %%, %d registers a thread")
    :format(tl.tflops, tl.ii, 100 * tl.utilization.tensor, plan.usage.lanes.c0))
  return tl
end

local one = attention({k=2, v=2}, {{"mma_qk"}, {"softmax"}, {"rescale"}, {"mma_pv"}})
report("1. Program order. The tensor cores idle during every softmax.", one)

local two = attention({k=2, v=2},
  {{"mma_qk", 1}, {"softmax", 1}, {"rescale"}, {"mma_pv"}})
report("2. Scores and softmax one iteration ahead. Is that all?", two)
print [[
The softmax of the next block comes before the product that still reads this
one's probabilities. A value that is alive over two turns needs two versions.]]

two:buffers{softmax=2, softmax_2=2}
report("3. With two versions it is legal, and no faster.", two)
print [[
In a turn the lane waits for the scores, does the softmax, and only then issues
the product. The tensor cores have nothing to do in between. The order has to
change, too.]]

local four = attention({k=2, v=2, softmax_2=2},
  {{"mma_qk", 1}, {"mma_pv"}, {"softmax", 1}, {"rescale", 1}})
local tl = report("4. Issue both products first, then do the softmax.", four)
tl:print{width = 76, from = 4000}

four:buffers{softmax_2=1}
four:fill_waits()
report("5. The same with one version. Now the softmax waits for the product.", four)

print [[

To try:
- Give the last order other offsets: mma_qk at 2, softmax and rescale at 1. Which
  buffers need versions, and do they fit the registers?
- A second warpgroup computes what the first multiplies, whatever the order: tiles of 128
  rows and a lane of eight warps, or plan:split("m", 2) and two lanes of four.]]
