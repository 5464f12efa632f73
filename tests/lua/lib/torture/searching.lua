-- A search, whose candidates fail for lack of memory in every part of planning.
local mr = require 'millrace'
local gemm = mr.program('gemm', function(p)
  local m, n, k = p:axes('m', 'n', 'k')
  local A, B, C = p:input('A', {m, k}), p:input('B', {n, k}), p:output('C', {m, n})
  local c = p:carry('c', {m, n}, 0)
  p:loop(k, function() c:add(p:mma('mma', p:load('load_a', A), p:load('load_b', B))) end)
  C:store('store_c', p:task('out', function() return c:to 'bf16' end))
end)
local found = mr.search(gemm{m=256, n=64, k=64}, mr.device 'h200', {trials=3, measure=false, tile={m={64, 128}, n=64, k=64}})
assert(found.trials == 3 and #found.why() > 0 and #found.plan:script() > 0)
