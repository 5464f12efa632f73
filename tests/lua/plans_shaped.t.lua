-- Random legal plans in which last steps are split off and values are aliases of others, on the
-- CPU: each that the checker accepts is lowered, with the right result.
local run = dofile((arg[0]:match "^(.*/)" or "./") .. "lib/plans_test.lua")

run("shaped", {"attention", "blend", "gated", "gemm", "mlp", "normed", "norms", "project", "recurrent", "stats",
  "two_pass", "unpacked"}, 200, {
  "split off 0", "split off 1", "split off 2", "aliases 0", "aliases 1", "aliases 2", "parts 2",
}, nil, true, true)
