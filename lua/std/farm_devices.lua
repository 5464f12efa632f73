-- farm_devices.lua - which ranks of a farm measure: those with the device, if they are alike, and one for each board.

local core = require "millrace.core"
local trials = require "millrace.trials"

local mr = require "millrace"

local devices = {}

local APART <const> = 0.02                              -- the share by which a device may be slower or faster than the usual one
local SECONDS <const>, TRIALS <const>, SIZE <const> = 0.3, 40, 2048   -- of the benchmark, and of the search for its plan; its product
local SHARED <const> = "it has the same GPU as rank %d; unset CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES there, or start fewer ranks"

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

local references = {}                                   -- by the name of a device: {ms=} or {fails=}

-- Milliseconds of a product whose plan the model chooses, the same on each rank: what tells that clocks differ, or that somebody else
-- uses the device. {ms=}, or {fails= why}.
local function reference(device)
  if not references[device.name] then
    local good, found = core.try(function()
      local bound = mr.examples.gemm{m = SIZE, n = SIZE, k = SIZE}
      local r = assert(mr.search(bound, device, {trials = TRIALS, measure = false, show = false}))
      return r.plan:compile():bench{seconds = SECONDS}.ms
    end)
    references[device.name] = good and {ms = found} or {fails = (tostring(found):gsub("^[^\n]-:%d+: ", ""):match "^[^\n]*")}
  end
  return references[device.name]
end

-- What a rank offers to measure for the device: {driver=, name=, bus= of its board, ms= of the reference, or fails=}; or nil and why not.
-- Partitions of a board have the same one, so theirs is left out.
function devices.offer(ranks, device)
  local found, why = trials.attached(device)
  if not found then return nil, why end
  local compared = ranks.size > 2 and reference(device) or {}
  return {driver = found.driver, name = found.name, bus = not found.partition and found.bus or nil, ms = compared.ms, fails = compared.fails}
end

-- Where no rank offers a device, why the first of them does not, as a text; nil: some rank does, or none was asked.
function devices.without(offers)
  local first
  for rank, x in pairs(offers) do
    if x.offer then return nil end
    if x.why and (not first or rank < first) then first = rank end
  end
  return first and ("rank %d on %s: %s"):format(first, offers[first].host, offers[first].why)
end

-- No rank has a device. If measure=true this raises an error in the name of `caller`, "tune" or "search". If measure was not given, and the
-- reason is known, the user is warned.
function devices.report_no_device(caller, measure, why, warn)
  if measure then core.raise(("%s: measure=true needs a device, and no rank has one%s"):format(caller, why and ": " .. why or "")) end
  if why and measure == nil then warn("no rank has the device, so nothing is measured, and plans are by the model alone: " .. why) end
end

-- Those of a list in the order of ranks that are the first with their board, and by the others that first one: both would measure at the
-- same time. A board that is not known is no other one's.
local function divide_by_board(list)
  local first, alone, sharing = {}, {}, {}
  for _, x in ipairs(list) do
    local board = x.bus and x.host .. " " .. x.bus or x
    sharing[x] = first[board]
    if first[board] then first[board].shared = true end
    if not first[board] then first[board], alone[#alone + 1] = x, x end
  end
  return alone, sharing
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
  for _, x in ipairs(list) do if x.ms and not x.shared then times[#times + 1] = x.ms end end
  table.sort(times)
  return times[(#times + 1) // 2]
end

-- Why a device that no earlier rank has is not fit to measure with the others, or nil. Alone it need not be like others. ms: the median of
-- n devices of the kind.
local function unfit(x, kind, ms, n)
  if x.kind ~= kind then return ("its device is different: it is a %s, most are a %s"):format(x.kind, kind) end
  if n == 1 then return nil end
  if x.shared then return nil end                       -- two ranks timed the product there at the same time
  if not x.ms then return "the product by which devices are compared fails there" .. (x.fails and ": " .. x.fails or "") end
  if math.abs(x.ms / ms - 1) > APART then
    return ("its device is different: it takes %.2f of the median time for the product by which devices are compared"):format(x.ms / ms)
  end
end

-- The ranks that measure, {[rank]=true}, by what they offer: those with like devices, as their times are compared, and of those with the
-- same device the first one. warn(text) for each that has a device and does not measure. Empty: no rank has a device. nil and a message: there
-- are some, and none is fit to measure, which is an error, as the user does not want to have plans of the model alone then.
function devices.choose(offers, warn)
  local list, chosen = {}, {}
  for rank, x in pairs(offers) do
    if x.offer then
      list[#list + 1] = {rank = rank, host = x.host, bus = x.offer.bus, ms = x.offer.ms, fails = x.offer.fails,
        kind = ("%s, driver %s"):format(x.offer.name, x.offer.driver)}
    end
  end
  table.sort(list, function(a, b) return a.rank < b.rank end)
  local alone, sharing = divide_by_board(list)
  local kind, same = usual_kind(alone), {}
  for _, x in ipairs(alone) do if x.kind == kind then same[#same + 1] = x end end
  local ms = usual_time(same)
  for _, x in ipairs(list) do
    local why
    if sharing[x] then why = SHARED:format(sharing[x].rank) else why = unfit(x, kind, ms, #same) end
    if why then warn(("rank %d on %s measures nothing: %s"):format(x.rank, x.host, why)) else chosen[x.rank] = true end
  end
  if list[1] and not next(chosen) then return nil, "no rank measures, for the reasons above; measure=false searches in the model alone" end
  return chosen
end

return devices
