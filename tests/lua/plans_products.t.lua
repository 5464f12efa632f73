-- Random legal plans of programs around one product, or none, on the CPU.
local run = dofile((arg[0]:match "^(.*/)" or "./") .. "lib/plans_test.lua")

run("products", {"gemm", "gated", "normed", "highest", "unpacked", "project", "blend", "scaled"}, 375, {
  "offset -2", "offset -1", "offset 0", "offset 1", "offset 2",
  "tile-offset -2", "tile-offset -1", "tile-offset 1", "tile-offset 2",
  "ring 1", "ring 2", "ring 3", "ring 4", "registers 2", "registers 3", "unrolled 2", "unrolled 6",
  "lanes 1", "lanes 2", "lanes 3", "lanes 4", "replicas 2", "replicas 3", "parts 2", "warpgroups a lane 2",
  "trips 1", "trips 2", "trips 3", "trips 4", "trips 5", "ragged m", "ragged n", "ragged k",
  "waits filled", "waits hand", "waits both", "waits issued", "waits complete", "waits distance",
})
