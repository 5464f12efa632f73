-- Random legal plans that spread what hangs together over lanes, on the CPU: products,
-- element-wise work and stores pass their values and carries through shared memory.
local run = dofile((arg[0]:match "^(.*/)" or "./") .. "lib/plans_test.lua")

run("handover", {"gemm", "attention", "two_pass", "mlp", "recurrent", "highest", "normed", "gated", "scan"}, 120, {
  "offset -1", "offset 0", "offset 1", "ring 1", "ring 2", "ring 3", "lanes 3", "lanes 4", "parts 2",
}, true)
