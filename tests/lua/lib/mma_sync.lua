-- mma_sync.lua - an H200 whose products are each warp's own, synchronous, and out of registers:
-- the device of the target of that name (src/target/mma_sync.c).
local mr = require "millrace"
local core = require "millrace.core"

local file = assert(io.open(core.home() .. "/hw/h200.lua"))
local text = file:read "a"
file:close()
for old, new in pairs{['arch = "sm_90a"'] = 'arch = "mma_sync"', ["min_m = 64"] = "min_m = 16",
  ['kind = "matrix", async = true'] = 'kind = "matrix", async = false'} do
  local n
  text, n = text:gsub(old, new)
  assert(n == 1, old)
end
local path = os.tmpname()
os.remove(path)
file = assert(io.open(path .. ".lua", "w"))
file:write(text)
file:close()
local device = mr.device(path .. ".lua")
os.remove(path .. ".lua")
return device
