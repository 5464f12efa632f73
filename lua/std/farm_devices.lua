-- farm_devices.lua - which ranks of a farm measure: those with the device, if they are alike.

local core = require "millrace.core"
local trials = require "millrace.trials"

local mr = require "millrace"

local devices = {}

local APART <const> = 0.02                              -- the share by which a device may be slower than the others
local SECONDS <const>, TRIALS <const>, SIZE <const> = 0.3, 40, 2048   -- of the benchmark, and of the search for its plan; its product

-- The GPU of this rank, counted from 0. Those of a host are divided by local rank, where rank 0 takes none; where a scheduler lets a
-- rank see one alone, it is that.
local function use_gpu(ranks, with_rank_0)
  for _, name in ipairs{"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"} do
    local visible = os.getenv(name)
    if visible and visible ~= "" and not visible:find(",", 1, true) then return core.use_gpu(0) end
  end
  core.use_gpu(ranks.farm:local_rank() - (with_rank_0 and 1 or 0))
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
function devices.offer(ranks, device, with_rank_0)
  use_gpu(ranks, with_rank_0)
  local found = trials.attached(device)
  return found and {driver = found.driver, name = found.name, ms = ranks.size > 2 and reference(device) or nil}
end

-- The ranks that measure, {[rank]=true}, by what they offer; say(text) for each that does not, though it has the device. Empty: no rank
-- has one.
function devices.choose(offers, say)
  local list, chosen = {}, {}
  for rank, x in pairs(offers) do
    if x.offer then list[#list + 1] = {rank = rank, host = x.host, ms = x.offer.ms or math.huge} end
  end
  table.sort(list, function(a, b)
    if a.ms ~= b.ms then return a.ms < b.ms end
    return a.rank < b.rank
  end)
  local usual = list[1] and list[(#list + 1) // 2].ms
  for _, x in ipairs(list) do
    if x.ms <= usual * (1 + APART) then
      chosen[x.rank] = true
    else
      say(("rank %d on %s is left out: its device takes %s of the time that others take for the same product"):format(x.rank, x.host,
        x.ms < math.huge and ("%.2f"):format(x.ms / usual) or "too much"))
    end
  end
  return chosen
end

return devices
