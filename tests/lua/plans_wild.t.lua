-- Random legal plans with units, lanes, tiles and splits that nobody would choose, of programs
-- with rare uses of their axes, on the CPU: each that the checker accepts is lowered, and right.
local run = dofile((arg[0]:match "^(.*/)" or "./") .. "lib/plans_test.lua")

run("wild", nil, 375, {
  "load on tma", "load on cuda", "store on tma", "store on cuda",
  "mma on tensor-bf16", "mma on tensor-f16", "mma on cuda-bf16", "mma on cuda-f16", "mma on cuda-f32",
  "warps of loads 1", "warps of loads 2", "warps of loads 4", "warps of loads 8",
  "warps of element-wise work 1", "warps of element-wise work 3", "warps of element-wise work 7",
  "warps of element-wise work 12", "registers of a lane odd", "registers of a lane by-8", "registers of a lane needed",
  "idle plain", "idle replicas", "replicas 2", "replicas 3", "lanes 1", "lanes 2", "lanes 3", "lanes 4",
  "split m", "split n", "split d", "parts 2", "parts 3", "parts 4",
  "part 4", "part 8", "part 12", "part 16", "part 24", "part 32", "part 64",
  "tile 8", "tile 16", "tile 24", "tile 32", "tile 48", "tile 96",
  "offset -1", "offset 0", "offset 1", "tile-offset -1", "tile-offset 1", "ring 1", "ring 2", "ring 3", "ring 4",
  "ragged m", "ragged n", "ragged k", "waits filled", "waits hand", "waits both",
}, nil, true)
