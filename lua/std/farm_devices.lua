-- farm_devices.lua - which ranks of a farm measure: those with the device, if they are alike.

local core = require "millrace.core"
local trials = require "millrace.trials"

local mr = require "millrace"

local devices = {}

local APART <const> = 0.02                              -- the share by which a device may be slower or faster than the usual one
local SECONDS <const>, TRIALS <const>, SIZE <const> = 0.3, 40, 2048   -- of the benchmark, and of the search for its plan; its product

-- The GPU of this rank, counted from 0. Those of a host are divided by local rank, where rank 0 takes none; where a scheduler lets a
-- rank see one alone, it is that.
local function use_gpu(farm)
  for _, name in ipairs{"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"} do
    local visible = os.getenv(name)
    if visible and visible ~= "" and not visible:find(",", 1, true) then return core.use_gpu(0) end
  end
  core.use_gpu(farm:local_rank() - (farm:with_rank_0() and 1 or 0))
end

-- When a farm begins, before its script does, which may ask for the device.
function devices.enter()
  local farm = core.farm()
  if farm:rank() > 0 then use_gpu(farm) end
end

local reference_ms = {}                                 -- by the name of a device

-- Milliseconds of a product whose plan the model chooses, the same on each rank: what tells that clocks differ, or that somebody else
-- uses the device. nil: it fails.
local function reference(device)
  local ms = reference_ms[device.name]
  if ms == nil then
    local good, found = core.try(function()
      local bound = mr.examples.gemm{m = SIZE, n = SIZE, k = SIZE}
      local r = assert(mr.search(bound, device, {trials = TRIALS, measure = false, show = false}))
      return r.plan:compile():bench{seconds = SECONDS}.ms
    end)
    ms = good and found or false
    reference_ms[device.name] = ms
  end
  return ms or nil
end

-- What a rank offers to measure for the device: {driver=, name=, ms= of the reference}; nil: nothing.
function devices.offer(ranks, device)
  local found = trials.attached(device)
  return found and {driver = found.driver, name = found.name, ms = ranks.size > 2 and reference(device) or nil}
end

-- The kind of device that most ranks have: its name and driver.
local function usual_kind(list)
  local count, best = {}, nil
  for _, x in ipairs(list) do
    count[x.kind] = (count[x.kind] or 0) + 1
    if not best or count[x.kind] > count[best] then best = x.kind end
  end
  return best
end

-- The median of the times that there are; nil: none.
local function usual_time(list)
  local times = {}
  for _, x in ipairs(list) do if x.ms then times[#times + 1] = x.ms end end
  table.sort(times)
  return times[(#times + 1) // 2]
end

-- Why a device is not like the others, or nil. Alone it need not be.
local function difference(x, kind, ms, n)
  if x.kind ~= kind then return ("it is a %s, most are a %s"):format(x.kind, kind) end
  if n == 1 then return nil end
  if not x.ms then return "the product by which devices are compared fails there" end
  if math.abs(x.ms / ms - 1) > APART then
    return ("it takes %.2f of the median time for the product by which devices are compared"):format(x.ms / ms)
  end
end

-- The ranks that measure, {[rank]=true}, by what they offer: those with like devices, as their times are compared. warn(text) for each that
-- has one which is different. Empty: no rank has a device.
function devices.choose(offers, warn)
  local list, chosen = {}, {}
  for rank, x in pairs(offers) do
    if x.offer then
      list[#list + 1] = {rank = rank, host = x.host, ms = x.offer.ms, kind = ("%s, driver %s"):format(x.offer.name, x.offer.driver)}
    end
  end
  table.sort(list, function(a, b) return a.rank < b.rank end)
  local kind, same = usual_kind(list), {}
  for _, x in ipairs(list) do if x.kind == kind then same[#same + 1] = x end end
  local ms = usual_time(same)
  for _, x in ipairs(list) do
    local why = difference(x, kind, ms, #same)
    if why then warn(("rank %d on %s measures nothing: its device is different: %s"):format(x.rank, x.host, why)) else chosen[x.rank] = true end
  end
  return chosen
end

return devices
