-- Random legal plans in which last steps are cut off and values lie in the place of others, on the
-- CPU: each that the checker accepts is lowered, and right.
local run = dofile((arg[0]:match "^(.*/)" or "./") .. "lib/plans_test.lua")

run("shaped", {"attention", "blend", "gated", "gemm", "mlp", "normed", "norms", "project", "recurrent", "stats",
  "two_pass", "unpacked"}, 200, {
  "split off 0", "split off 1", "split off 2", "placed 0", "placed 1", "placed 2", "parts 2",
}, nil, true, true)
