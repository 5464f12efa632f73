-- mma_sync.lua - an H200 whose products are each warp's own, synchronous, and out of registers:
-- the device of the target of that name (src/target/mma_sync.c).
local home = require "millrace.core".home()

return dofile(home .. "/tests/lua/lib/changed_device.lua")("h200", {['arch = "sm_90a"'] = 'arch = "mma_sync"',
  ["min_m = 64"] = "min_m = 16", ['kind = "matrix", async = true'] = 'kind = "matrix", async = false'})
