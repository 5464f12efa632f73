-- change_list.lua - the list of changes of a plan, and what those who add to it look up (changes.lua, change_lanes.lua).

local draft = require "millrace.draft"

-- A plan, its statements, its sTasks by name and by what they write, its buffers by name; and regions: the "append" statements of
-- each lane in each loop, of split sTasks the first slice only.
local function describe(plan)
  local x = {plan = plan, draft = draft.read(plan), task = {}, writer = {}, buffer = {}, regions = {}, list = {}, tiles_seen = {}}
  for _, task in ipairs(plan.tasks) do
    x.task[task.name] = task
    for _, value in ipairs(task.writes) do x.writer[value] = x.writer[value] or task end
  end
  for _, b in ipairs(plan.graph.buffers) do x.buffer[b.name] = b end
  local regions = {}
  for _, s in draft.each(x.draft, "append") do
    local task, lane = x.task[s[2]], s[3].lane
    local _, slice = draft.slice_of(s[2])
    local key = lane .. " " .. (task.loop or "")
    if task.loop and (slice or 0) == 0 then
      if not regions[key] then
        regions[key] = {only_loads = true}
        table.insert(x.regions, regions[key])
      end
      table.insert(regions[key], s)
      regions[key].only_loads = regions[key].only_loads and task.kind == "load"
    end
  end
  return x
end

-- The step of each axis of the tile: 64 for rows of a product, 16 for others; of a split axis, for each slice.
local function steps(x)
  local by = {}
  for axis in pairs(x.draft.tile) do by[axis] = 16 end
  for _, task in pairs(x.task) do
    local first = task.kind == "mma" and x.buffer[draft.slice_of(task.reads[1])]
    for axis in pairs(first and task.shape or {}) do
      if first.shape[axis] and by[axis] then by[axis] = 64 end
    end
  end
  for _, s in draft.each(x.draft, "split") do by[s[2]] = (by[s[2]] or 1) * s[3] end
  return by
end

-- Do the statements make a tile longer that then is a step or more longer than its axis? All of that would be empty.
local function is_too_long(x, list)
  for _, s in ipairs(list) do
    for axis, extent in pairs(s[1] == "propagate" and s[2] or {}) do
      local size, now = x.plan.graph.program.axes[axis], x.draft.tile[axis]
      x.steps = x.steps or steps(x)
      if size and now and extent > now and extent - x.steps[axis] >= size then return true end
    end
  end
  return false
end

local function add(x, reason, list, alone)
  if is_too_long(x, list) then return end
  x.list[#x.list + 1] = {text = draft.text(list), list = list, reason = reason, alone = alone}
end

-- The names of the sTasks for which wanted(options, task) holds; of split ones whose slices all are, the name of them all.
local function names_of(x, wanted)
  local names, seen = {}, {}
  for _, s in draft.each(x.draft, "append") do
    local base = draft.slice_of(s[2])
    if wanted(s[3], x.task[s[2]]) and not seen[base] then names[#names + 1], seen[base] = base, true end
  end
  return names
end

local function one(names) return #names == 1 and names[1] or names end

-- The options of a lane; empty if no statement gives any.
local function lane_options(x, name)
  local _, s = draft.find(x.draft, "lane", name)
  return s and s[3] or {}
end

return {describe = describe, steps = steps, add = add, names_of = names_of, one = one, lane_options = lane_options}
