-- Random legal plans, as in plans_wild.t.lua, of programs whose loops have lengths that are values, on the CPU.
local dir = (arg[0]:match "^(.*/)" or "./") .. "lib/"
local run = dofile(dir .. "plans_test.lua")
local names = dofile(dir .. "random_plans.lua").length_programs

run("lengths", names, 375, {
  "load on tma", "load on cuda", "store on tma", "store on cuda", "mma on tensor-bf16", "mma on cuda-f32",
  "replicas 2", "lanes 1", "lanes 2", "lanes 3", "split m", "split n", "parts 2", "parts 3",
  "tile 8", "tile 24", "tile 48", "offset -1", "offset 0", "offset 1", "offset 2", "tile-offset -1", "tile-offset 1",
  "ring 1", "ring 2", "ring 3", "ragged m", "ragged n", "ragged k", "waits filled", "waits hand", "waits both",
}, nil, true)
