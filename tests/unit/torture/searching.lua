-- A search, whose candidates fail for lack of memory in every part of planning.
local mr = require "millrace"
local found = mr.search(mr.examples.gemm{m=256, n=64, k=64}, mr.device "h200",
  {trials=3, seconds=600, measure=false, tile={m={64, 128}, n=64, k=64}})
assert(found.trials == 3 and #found.why() > 0 and #found.plan:script() > 0)
