-- change_lanes.lua - changes of a plan that concern its lanes: how many compute and load, with what, and which sTasks each has.
--
-- Each function adds its changes to the list x (change_list.lua); changes.lua says in which order.

local draft = require "millrace.draft"
local list_of = require "millrace.change_list"
local add, names_of, one, lane_options = list_of.add, list_of.names_of, list_of.one, list_of.lane_options

local CONSIDERABLE <const> = 0.1                        -- of the loaded bytes: if threads copy less, it hardly matters how

-- The statements that give lanes so many warps and replicas, and the registers of the first one. If there are more threads than
-- before, registers are left to the plan.
local function lane_statements(x, names, warps, replicas, more)
  local list = {}
  for i, name in ipairs(names) do
    local now, registers = lane_options(x, name), lane_options(x, names[1]).registers
    if more then registers = now.registers and false end
    local columns
    if now.columns and warps % now.columns > 0 then columns = false end
    list[i] = {"lane", name, {warps = warps, columns = columns, replicas = (replicas > 1 or now.replicas) and replicas or nil, registers = registers}}
  end
  return list
end

-- Other computing lanes: so many (ways) with a slice each along the axis, each with so many warps and replicas.
local function share(x, now, axis, ways, replicas, extent, warps)
  if extent % ways > 0 or warps % 4 > 0 or warps < 4 then return end
  local list, lanes = {}, {now.lane}
  local p = x.plan:copy()
  local function append(s)
    list[#list + 1] = s
    draft.apply(p, s)
  end
  if extent ~= (x.draft.tile[axis] or x.plan.graph.program.axes[axis]) then append{"propagate", {[axis] = extent}} end
  if ways ~= now.ways then append{"split", axis, ways} end
  local d = draft.read(p)
  lanes = ways == 1 and lanes or now.ways > 1 and draft.shared(d) or draft.lane_names(d, now.lane, ways)
  for _, s in ipairs(lane_statements(x, lanes, warps, replicas, ways * replicas * warps > now.warps * now.ways * now.replicas)) do
    append(s)
  end
  for i = 2, now.ways == 1 and ways or 1 do             -- the slices of what was one go to a lane each
    local names = {}
    for _, s in draft.each(d, "append") do
      local _, slice = draft.slice_of(s[2])
      if slice == i - 1 and s[3].lane == now.lane then names[#names + 1] = s[2] end
    end
    append{"move", one(names), {lane = lanes[i]}}
  end
  add(x, ways * replicas > now.ways * now.replicas and "one lane computes while another one multiplies" or
    "fewer lanes leave each more registers", list)
end

-- One lane more or fewer, with slices of the same extent, or with the same tile divided among them; and replicas that
-- take tiles in round robin instead of slices, and the other way round.
local function shares(x, now, axis)
  local extent = x.draft.tile[axis] or x.plan.graph.program.axes[axis]    -- a tile has all of an axis without an extent
  if not extent then return end
  local each = extent // now.ways
  local function try(...) pcall(share, x, now, axis, ...) end    -- not every axis can be split
  for _, ways in ipairs{now.ways + 1, now.ways - 1} do
    if ways >= 1 and now.replicas == 1 then
      try(ways, 1, each * ways, now.warps)
      try(ways, 1, extent, now.ways * now.warps // ways)
      if ways > now.ways then try(ways, 1, extent, now.warps) end
    end
  end
  if now.replicas == 1 then
    try(1, math.max(now.ways, 2), each, now.warps)
  else
    try(now.replicas, 1, each * now.replicas, now.warps)
  end
end

-- The computing lane, {lane=, ways=, warps=, replicas=}; of lanes that share a tile, the first one, and the split axis.
-- nil if different lanes compute different sTasks.
local function consumer(x)
  local shared, split = draft.shared(x.draft)
  local lane = shared and shared[1]
  for _, s in draft.each(x.draft, "append") do
    local computes = not shared and x.task[s[2]].kind ~= "load"
    if computes and lane and lane ~= s[3].lane then return nil end
    if computes then lane = s[3].lane end
  end
  if not lane then return nil end
  local o = lane_options(x, lane)
  return {lane = lane, ways = shared and split[3] or 1, warps = o.warps or 4, replicas = o.replicas or 1}, shared and split[2]
end

local function lanes(x)
  local now, axis = consumer(x)
  if not now then return end
  for _, a in ipairs(axis and {axis} or draft.keys(x.draft.tile)) do shares(x, now, a) end
end

-- Loads on a lane of their own, if all are on lanes that also compute.
local function producer(x)
  local computes = {}
  for _, s in draft.each(x.draft, "append") do
    if x.task[s[2]].kind ~= "load" then computes[s[3].lane] = true end
  end
  for _, s in draft.each(x.draft, "append") do
    if computes.p0 or x.task[s[2]].kind == "load" and not computes[s[3].lane] then return end
  end
  local loads = names_of(x, function(_, task) return task.kind == "load" end)
  if #loads == 0 then return end
  add(x, "a lane that only loads never waits for a computation", {{"move", one(loads), {lane = "p0", at = 0}}})
end

-- Lanes that do nothing but load, in order, each with its loads: {{lane=, tasks=}, ...}.
local function loading_lanes(x)
  local list, by = {}, {}
  for _, s in draft.each(x.draft, "append") do
    local lane, task = s[3].lane, x.task[s[2]]
    if not by[lane] then
      by[lane] = {lane = lane, tasks = {}}
      list[#list + 1] = by[lane]
    end
    by[lane].computes = by[lane].computes or task.kind ~= "load"
    table.insert(by[lane].tasks, task)
  end
  local out = {}
  for _, l in ipairs(list) do out[#out + 1] = not l.computes and l or nil end
  return out
end

-- Do threads copy a considerable part of what these sTasks load? The registers that they can use for it, 0: none; nil: no.
local function copied(x, tasks)
  local all, copied, most, loops = 0, 0, 0, false
  for _, task in ipairs(tasks) do loops = loops or task.loop end
  for _, task in ipairs(tasks) do
    local registers = x.copies[task.name]
    if task.loop or not loops then
      all, copied, most = all + task.bytes, copied + (registers and task.bytes or 0), math.max(most, registers or 0)
    end
  end
  return copied > CONSIDERABLE * all and most or nil
end

-- Every other load of a lane, of those of one loop, on a lane of its own with as many threads.
local function divide_loads(x, l, warps, registers)
  local taken, names, before, i = {}, {}, {}, 0
  for _, s in draft.each(x.draft, "append") do taken[s[3].lane] = true end
  for _, task in ipairs(l.tasks) do
    local key = task.loop or ""
    before[key] = (before[key] or 0) + 1
    if before[key] % 2 == 0 then names[#names + 1] = task.name end
  end
  while taken[("p%d"):format(i)] do i = i + 1 end
  local other = ("p%d"):format(i)
  local list = {{"lane", other, {warps = warps, registers = registers}}, {"move", one(names), {lane = other}}}
  if warps ~= x.plan:lane(l.lane).warps then table.insert(list, 1, {"lane", l.lane, {warps = warps}}) end
  if #names > 0 then add(x, "two lanes copy at the same time", list) end
end

-- Where threads copy: lanes that load with other numbers of warps, with registers for what they have in flight, and two of them.
local function copiers(x)
  for _, l in ipairs(loading_lanes(x)) do
    local most = copied(x, l.tasks)
    local now = most and x.plan:lane(l.lane) or {}
    local registers = most and most > (now.registers or 0) and most or nil
    local seen = {}
    for _, n in ipairs(most and {4, 8, now.warps, 2 * now.warps, now.warps // 2} or {}) do
      for _, with in ipairs(registers and {registers, false} or {false}) do
        local key = n .. " " .. tostring(with)
        if n >= 1 and n <= 16 and not seen[key] and (n ~= now.warps or with) then
          add(x, "so many threads copy what no engine can bring", {{"lane", l.lane, {warps = n, registers = with or nil}}})
        end
        seen[key] = true
      end
    end
    for _, n in ipairs(most and (now.warps == 4 and {4} or {now.warps, 4}) or {}) do divide_loads(x, l, n, now.registers) end
  end
end

-- Lanes that only load: with half and with twice the warps, if an engine does it.
local function loaders(x)
  for _, l in ipairs(loading_lanes(x)) do
    local warps = lane_options(x, l.lane).warps
    for _, n in ipairs(warps and warps > 1 and not copied(x, l.tasks) and {2 * warps, warps // 2} or {}) do
      add(x, "so many threads issue the loads", {{"lane", l.lane, {warps = n}}})
    end
  end
end

-- The slices of a split on lanes of their own, if one lane has them all: each with its share of the warps, or with as many.
local function apart(x)
  local lane_of, ways, names, first = {}, 1, {}, nil
  for _, s in draft.each(x.draft, "append") do
    local _, slice = draft.slice_of(s[2])
    if slice then
      names[slice] = names[slice] or {}
      table.insert(names[slice], s[2])
      ways, first, lane_of[s[3].lane] = math.max(ways, slice + 1), first or s[3].lane, true
    end
  end
  if ways == 1 or next(lane_of, next(lane_of)) then return end
  local lanes, now = draft.lane_names(x.draft, first, ways), lane_options(x, first).warps or 4
  local shared = math.max(4, (now // ways + 3) // 4 * 4)
  for _, warps in ipairs(shared < now and {shared, now} or {now}) do
    local list = lane_statements(x, lanes, warps, 1, ways * warps > now)
    for i = 2, ways do list[#list + 1] = {"move", one(names[i - 1]), {lane = lanes[i]}} end
    add(x, "each slice has a lane of its own, with registers of its own", list)
  end
end

-- All that a lane computes and stores, on the lane that makes what it reads.
local function merges(x)
  local maker, computes, names, target, shared = {}, {}, {}, {}, draft.shared(x.draft)
  for _, s in draft.each(x.draft, "append") do
    for _, value in ipairs(x.task[s[2]].writes) do maker[value] = maker[value] or s[3].lane end
    computes[s[3].lane] = computes[s[3].lane] or x.task[s[2]].kind ~= "load"
  end
  for _, s in draft.each(x.draft, "append") do
    local lane = s[3].lane
    names[lane] = names[lane] or {}
    table.insert(names[lane], s[2])
    for _, value in ipairs(x.task[s[2]].reads) do
      local from = maker[value]
      if from and from ~= lane and computes[from] then target[lane] = target[lane] or from end
    end
  end
  for _, s in draft.each(x.draft, "lane") do
    local lane = s[2]
    if computes[lane] and target[lane] and not shared then
      add(x, "values stay in the registers of the lane that makes them", {{"move", one(names[lane]), {lane = target[lane]}}})
    end
  end
end

-- Lanes that compute, with half and with twice the warps.
local function warps(x)
  local shared = draft.shared(x.draft)
  local now = consumer(x)
  if not now then return end
  for _, n in ipairs{(now.warps // 2 + 3) // 4 * 4, 2 * now.warps} do
    if n >= 4 and n <= 16 and n ~= now.warps then
      local statements = lane_statements(x, shared or {now.lane}, n, now.replicas, n > now.warps)
      add(x, ("%d warps compute, not %d"):format(n, now.warps), statements, true)
    end
  end
end

-- Is a product of the lane made by single warps?
local function multiplies_by_warps(x, lane)
  local async = {}
  for _, unit in ipairs(x.plan.device.seus) do async[unit.name] = unit.kind ~= "matrix" or unit.async end
  for _, s in draft.each(x.draft, "append") do
    if s[3].lane == lane and x.task[s[2]].kind == "mma" and not async[s[3].seu] then return true end
  end
end

-- Warps that multiply by themselves, in twice and half as many columns.
local function columns(x)
  local shared = draft.shared(x.draft)
  local now = consumer(x)
  if not now or not multiplies_by_warps(x, now.lane) then return end
  local have = lane_options(x, now.lane).columns or 1
  for _, n in ipairs{2 * have, have // 2} do
    if n >= 1 and now.warps % n == 0 then
      local list = {}
      for i, lane in ipairs(shared or {now.lane}) do list[i] = {"lane", lane, {columns = n > 1 and n}} end
      add(x, n > have and "a warp fetches less of second operands" or "a warp fetches less of first operands", list)
    end
  end
end

return {
  lanes = lanes, producer = producer, copiers = copiers, loaders = loaders, apart = apart, merges = merges, warps = warps,
  columns = columns,
}
