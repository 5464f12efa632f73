-- Random legal plans whose clusters divide the iterations of a loop, on the CPU: each that the checker accepts is lowered, and
-- right.
local run = dofile((arg[0]:match "^(.*/)" or "./") .. "lib/plans_test.lua")

run("divided", {"gemm", "gated", "dq", "qkv", "twice", "window"}, 150,
  {"divided 2", "divided 3", "divided 4", "parts 2", "replicas 2"}, nil, true, false, true)
