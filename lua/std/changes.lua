-- changes.lua - changes of one thing in a plan, for tl:why() and plan:improve() to try.
--
-- A change is {text=, edit=, waits=, repair=}: the statements that a user would write or change, what
-- it does to a draft, whether other waits may be needed then, and whether something else may make it
-- legal if it is not (repair.lua does both).
-- Those come first that are likeliest to help, as not all may be tried.

local draft = require "millrace.draft"
local statement = draft.statement

local changes = {}

-- What is there to be changed: the plan's own words, and of each lane and loop which sTasks it has.
local function look_at(plan)
  local x = {plan = plan, draft = draft.read(plan), task = {}, buffer = {}, regions = {}, list = {},
    told = {}}
  for _, task in ipairs(plan.tasks) do x.task[task.name] = task end
  for _, b in ipairs(plan.graph.buffers) do x.buffer[b.name] = b end
  local regions = {}
  for _, s in draft.each(x.draft, "append") do
    local task, lane = x.task[s[2]], s[3].lane
    local _, part = draft.part_of(s[2])
    local key = lane .. " " .. (task.loop or "")
    if task.loop and (not part or part == 0) then
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

local function add(x, text, edit, waits)
  x.list[#x.list + 1] = {text = text, edit = edit, waits = waits, repair = true}
end

-- One more statement, after all others, which stands or falls by itself.
local function add_statement(x, ...)
  local s = {...}
  local function edit(d) draft.add(d, table.unpack(draft.copy(s))) end
  x.list[#x.list + 1] = {text = statement(s), edit = edit}
end

---- rings ------------------------------------------------------------------------------

local function deeper(x, names)
  for more = 1, 2 do
    local depth = {}
    for _, name in ipairs(names) do depth[name] = (x.plan.rings[name] or 1) + more end
    add_statement(x, "buffers", depth)
  end
end

-- Those of a loop together, because a product waits for the shallowest; or each alone.
local function rings(x, together)
  local loops, of = {}, {}
  for _, b in ipairs(x.plan.graph.buffers) do
    if b.loop and b.scope == "shared" then
      if not of[b.loop] then loops[#loops + 1], of[b.loop] = b.loop, {} end
      table.insert(of[b.loop], b.name)
    end
  end
  for _, loop in ipairs(loops) do
    if together then deeper(x, of[loop]) end
    for _, name in ipairs(not together and #of[loop] > 1 and of[loop] or {}) do deeper(x, {name}) end
  end
end

---- tiles ------------------------------------------------------------------------------

local function axes_of(t)
  local axes = {}
  for axis in pairs(t) do axes[#axes + 1] = axis end
  table.sort(axes)
  return axes
end

-- What each axis of the tile grows by: rows of a product by 64 for each of its parts, others by 16.
local function steps(x)
  local by = {}
  for axis in pairs(x.draft.tile) do by[axis] = 16 end
  for _, task in pairs(x.task) do
    local first = task.kind == "mma" and x.buffer[draft.part_of(task.reads[1])]
    for axis in pairs(first and task.shape or {}) do
      if first.shape[axis] and by[axis] then by[axis] = 64 end
    end
  end
  for _, s in draft.each(x.draft, "split") do by[s[2]] = (by[s[2]] or 1) * s[3] end
  return by
end

-- Each axis with the other extents that `others` tells of the present one and its step.
local function tiles(x, others)
  local by = steps(x)
  for _, axis in ipairs(axes_of(x.draft.tile)) do
    for _, extent in ipairs(others(x.draft.tile[axis], by[axis])) do
      local text = statement{"propagate", {[axis] = extent}}
      if extent > 0 and extent % math.min(by[axis], 16) == 0 and not x.told[text] then
        x.told[text] = true
        add(x, text, function(d) d.tile[axis] = extent end)
      end
    end
  end
end

local function doubled(n) return {2 * n, n // 2} end
local function wider(n, by) return {n + math.max(64, by), n - math.max(64, by)} end
local function finer(n, by)
  if by >= 64 then return {} end
  return {n + by, n - by, n + 2 * by, n - 2 * by, n + 3 * by, n - 3 * by}
end

---- lanes ------------------------------------------------------------------------------

-- Warps of a lane, if it says how many; and the statement.
local function lane_of(x, name)
  local _, s = draft.find(x.draft, "lane", name)
  return s and s[3].warps or 4, s
end

-- Each lane with so many warps. Registers are what these need, if there are more threads than before.
local function set_lanes(d, names, warps, replicas, more)
  for _, name in ipairs(names) do
    local _, s = draft.find(d, "lane", name)
    if not s then
      s = {"lane", name, {}}
      table.insert(d.list, 1, s)
    end
    s[3].warps, s[3].replicas = warps, replicas > 1 and replicas or nil
    if more then s[3].registers = nil end
  end
end

local function lanes_text(x, names, warps, replicas, more)
  local texts = {}
  for i, name in ipairs(names) do
    local _, s = lane_of(x, names[1])
    texts[i] = statement{"lane", name, {warps = warps, replicas = replicas > 1 and replicas or nil,
      registers = not more and s and s[3].registers or nil}}
  end
  return table.concat(texts, "; ")
end

-- So many lanes of so many warps with a part each, or that take so many tiles in turn.
local function shared_by(x, now, axis, ways, replicas, extent, warps)
  local tile = x.draft.tile
  if extent % ways > 0 or warps % 4 > 0 or warps < 4 then return end
  local more = ways * replicas * warps > now.warps * now.ways * now.replicas
  local names = {now.lane}
  local function edit(d)
    d.tile[axis] = extent
    draft.join(d)
    names = ways > 1 and draft.split(d, x.plan.graph.program, x.plan.device, now.lane, axis, ways) or
      {now.lane}
    set_lanes(d, names, warps, replicas, more)
  end
  if not pcall(edit, draft.copy(x.draft)) then return end
  local texts = {}
  if extent ~= tile[axis] then texts[1] = statement{"propagate", {[axis] = extent}} end
  if ways ~= now.ways then
    texts[#texts + 1] = ways > 1 and statement{"split", axis, ways} or "no plan:split"
  end
  texts[#texts + 1] = lanes_text(x, names, warps, replicas, more)
  add(x, table.concat(texts, "; "), edit, true)
end

-- One lane more or less, each with as many rows as before or the same tile among them; and whole
-- tiles in turn instead of parts, and the other way round.
local function shares(x, now, axis)
  local extent = x.draft.tile[axis]
  local each = extent // now.ways
  local function try(...) shared_by(x, now, axis, ...) end
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

-- The lane that computes, if there is one, or its parts are alike.
local function consumer(x)
  local lanes, split = draft.shared(x.draft)
  if split then
    local warps, s = lane_of(x, lanes[1])
    return {lane = lanes[1], ways = split[3], warps = warps, replicas = s and s[3].replicas or 1}, split[2]
  end
  local found
  for _, s in draft.each(x.draft, "append") do
    local kind = x.task[s[2]].kind
    if kind ~= "load" and found and found ~= s[3].lane then return nil end
    if kind ~= "load" then found = s[3].lane end
  end
  local warps, s = lane_of(x, found or "")
  return found and {lane = found, ways = 1, warps = warps, replicas = s and s[3].replicas or 1}
end

local function lanes(x)
  local now, axis = consumer(x)
  if not now then return end
  for _, a in ipairs(axis and {axis} or axes_of(x.draft.tile)) do shares(x, now, a) end
end

-- Loads of lanes that do other things too go to one of their own.
local function producer(x)
  local mixed, others, texts = {}, {}, {}
  for _, s in draft.each(x.draft, "append") do
    if x.task[s[2]].kind ~= "load" then others[s[3].lane] = true end
  end
  for _, s in draft.each(x.draft, "append") do
    if x.task[s[2]].kind == "load" then
      if not others[s[3].lane] then return end
      local own = draft.copy(s)
      own[3].lane, own[3].at = "p0", nil
      mixed[s[2]], texts[#texts + 1] = own, statement(own)
    end
  end
  if #texts == 0 or others.p0 then return end
  add(x, table.concat(texts, "; "), function(d)
    for i, s in draft.each(d, "append") do d.list[i] = mixed[s[2]] or s end
  end, true)
end

-- Of lanes that only load: half and twice the warps.
local function loaders(x)
  local only = {}
  for _, s in draft.each(x.draft, "append") do
    if only[s[3].lane] ~= false then only[s[3].lane] = x.task[s[2]].kind == "load" end
  end
  for i, s in draft.each(x.draft, "lane") do
    local warps = s[3].warps
    for _, n in ipairs(only[s[2]] and warps and warps > 1 and {2 * warps, warps // 2} or {}) do
      local other = draft.copy(s)
      other[3].warps = n
      add(x, statement(other), function(d) d.list[i] = draft.copy(other) end)
    end
  end
end

---- orders -----------------------------------------------------------------------------

-- With so many versions, if any are named.
local function move(x, s, at, behind, versions)
  local own = draft.copy(s)
  own[3].at = at ~= 0 and at or nil
  local text = statement(own) .. (behind and (" behind %q"):format(behind[2]) or "")
  if select(2, draft.part_of(s[2])) then text = text .. ", other parts likewise" end
  if versions then text = text .. "; " .. statement{"buffers", versions} end
  add(x, text, function(d)
    draft.move(d, s[2], at, behind and behind[2])
    if versions then draft.add(d, "buffers", versions) end
  end, true)
end

-- One version more of what the sTask has in common with others of its loop, so that it need not
-- wait for them; nil if that is nothing.
local function another_version(x, names)
  local depth, any = {}, false
  for _, name in ipairs(names) do
    local b = x.buffer[draft.part_of(name)]             -- none: a value that a cut has made
    if not b or b.loop and not b.carry and b.scope == "registers" then
      for _, part in ipairs(draft.parts(name, x.plan.rings)) do
        depth[part], any = x.plan.rings[part] + 1, true
      end
    end
  end
  return any and depth or nil
end

-- The last of a loop an iteration later, under the first ones of the next, or the first one earlier:
-- what the lane waited for between them it waits for no longer.
local function overlaps(x)
  for _, region in ipairs(x.regions) do
    local n = region.only_loads and 0 or #region
    local last, first = region[n], region[1]
    for i = 1, n - 2 do
      local at, versions = (last[3].at or 0) - 1, another_version(x, x.task[last[2]].reads)
      if versions then move(x, last, at, region[i], versions) end
      move(x, last, at, region[i])
    end
    for i = 2, n do
      local at, versions = (first[3].at or 0) + 1, another_version(x, x.task[first[2]].writes)
      if versions then move(x, first, at, region[i], versions) end
      move(x, first, at, region[i])
    end
  end
end

local function swaps(x)
  for _, region in ipairs(x.regions) do
    for i = 1, #region - 1 do move(x, region[i], region[i][3].at or 0, region[i + 1]) end
  end
end

local function offsets(x)
  for _, region in ipairs(x.regions) do
    for _, s in ipairs(region.only_loads and {} or region) do
      for _, by in ipairs{1, -1} do move(x, s, (s[3].at or 0) + by) end
    end
  end
end

---- the order of tiles -------------------------------------------------------------------

local function grid(x)
  local now = {raster = "rows", group = 1, longest_first = false, cluster = 1}
  for _, s in draft.each(x.draft, "grid") do
    for key, value in pairs(s[2]) do now[key] = value end
  end
  for _, other in ipairs{{group = 1}, {group = 4}, {group = 8}, {group = 16}, {raster = "rows"},
      {raster = "columns"}, {cluster = 1}, {cluster = 2}, {raster = "rows", cluster = 2},
      {raster = "columns", cluster = 2}, {longest_first = true}, {longest_first = false}} do
    local changed = true
    for key, value in pairs(other) do changed = changed and now[key] ~= value end
    if changed then add_statement(x, "grid", other) end
  end
end

---- turns, conversions, stores --------------------------------------------------------------

-- The first and the last product of each part in a loop, as statements; nil if a part has none.
local function ends_of(x, loop, ways)
  local ends = {}
  for _, s in draft.each(x.draft, "append") do
    local task, _, part = x.task[s[2]], draft.part_of(s[2])
    if part and task.kind == "mma" and task.loop == loop then
      ends[part + 1] = {first = ends[part + 1] and ends[part + 1].first or s, last = s}
    end
  end
  return #ends == ways and ends or nil
end

local function has_turns(x)
  for _, s in draft.each(x.draft, "wait") do
    for _, on in ipairs(s[3]) do
      if type(on) == "table" and on.when == "issued" then return true end
    end
  end
end

-- Lanes that share a tile take turns on the matrix unit: each begins when the one before has issued
-- the last of its products; the first, of the turn before.
local function turns(x)
  local lanes, split = draft.shared(x.draft)
  local seen = {}
  if has_turns(x) then return end
  for _, task in ipairs(lanes and x.plan.tasks or {}) do
    local ends = task.loop and not seen[task.loop] and ends_of(x, task.loop, split[3])
    local waits, texts = {}, {}
    seen[task.loop or ""] = true
    for i = 1, ends and #ends or 0 do
      local first, last = ends[i].first, ends[(i - 2) % #ends + 1].last
      local distance = (first[3].at or 0) - (last[3].at or 0) + (i == 1 and 1 or 0)
      local s = {"wait", first[2], {{last[2], distance = distance, when = "issued"}}}
      waits[i] = distance >= 0 and s or nil
      texts[i] = ('plan:wait(%q, {{%q, distance=%d, when="issued"}})'):format(first[2], last[2], distance)
    end
    if ends and #waits == #ends then
      add(x, table.concat(texts, "; "), function(d)
        for _, s in ipairs(waits) do draft.add(d, table.unpack(draft.copy(s))) end
      end)
    end
  end
end

-- Names that no sTask has: "convert", "convert2".
local function new_task(x)
  local name, i = "convert", 1
  while x.task[name] or x.task[name .. ".0"] do
    i = i + 1
    name = ("convert%d"):format(i)
  end
  return name
end

-- The statements of a cut, and of the new sTask behind the one that it is cut off.
local function cut(d, base, name, value, place)
  table.insert(d.list, 1, {"cut", value, name})
  if place then
    local i = 1
    while d.list[i][1] == "cut" or d.list[i][1] == "split" do i = i + 1 end
    table.insert(d.list, i, {"place", place})
  end
  for i = #d.list, 1, -1 do
    local new = draft.copy(d.list[i])
    local of, part = draft.part_of(new[1] == "append" and new[2] or "")
    if of == base then
      new[2] = part and ("%s.%d"):format(name, part) or name
      table.insert(d.list, i + 1, new)
    end
  end
end

-- The sTask that makes a value, if it is of a kind.
local function maker(x, value, kind)
  for _, task in ipairs(x.plan.tasks) do
    for _, written in ipairs(task.kind == kind and task.writes or {}) do
      if written == value then return task end
    end
  end
end

local function is_operand(x, value)
  for _, task in ipairs(x.plan.tasks) do
    for _, read in ipairs(task.kind == "mma" and task.reads or {}) do
      if read == value then return true end
    end
  end
end

-- What a value that is cut off is made of, and the product that this may lie in the place of, if there is one.
local function place_of(x, s, name, value)
  local d = {tile = x.draft.tile, list = {{"cut", value, name}}}
  for _, own in ipairs(x.draft.list) do
    if own[1] == "cut" or own[1] == "split" then table.insert(d.list, own) end
  end
  local product
  for _, read in ipairs(x.task[s[2]].reads) do
    product = product or maker(x, read, "mma") and draft.part_of(read)
  end
  for _, task in ipairs(draft.make(d, x.plan.graph.program, x.plan.device).tasks) do
    if draft.part_of(task.name) == name then return draft.part_of(task.reads[1]), product end
  end
end

-- What a product reads is converted by an sTask of its own, which may wait for another product alone. Until
-- then it lies in the place of the product that it is made of, or has one of its own.
local function conversion(x, s, value)
  local name, base = new_task(x), draft.part_of(s[2])
  local good, before, of = pcall(place_of, x, s, name, value)
  local text = statement{"cut", value, name}
  local insert = ("; plan:insert(%q, {after=%q})"):format(name, base)
  if not good or not before then return end
  if of then
    local place = {[before] = of}
    add(x, text .. "; " .. statement{"place", place} .. insert, function(d) cut(d, base, name, value, place) end, true)
  end
  add(x, text .. insert, function(d) cut(d, base, name, value) end, true)
end

local function conversions(x)
  for _, region in ipairs(x.regions) do
    for _, s in ipairs(region) do
      local task = x.task[s[2]]
      for _, value in ipairs(task.kind == "compute" and task.writes or {}) do
        if is_operand(x, value) then conversion(x, s, (draft.part_of(value))) end
      end
    end
  end
end

local function vector_unit(device)
  for _, seu in ipairs(device.seus) do
    if seu.kind == "vector" then return seu.name end
  end
end

-- All stores by the lanes' threads in place of an engine.
local function stores(x)
  local unit, texts, own = vector_unit(x.plan.device), {}, {}
  for _, s in draft.each(x.draft, "append") do
    if x.task[s[2]].kind == "store" and s[3].seu ~= unit then
      own[s[2]] = draft.copy(s)
      own[s[2]][3].seu = unit
      texts[#texts + 1] = statement(own[s[2]])
    end
  end
  if unit and #texts > 0 then
    add(x, table.concat(texts, "; "), function(d)
      for i, s in draft.each(d, "append") do d.list[i] = draft.copy(own[s[2]]) or s end
    end, true)
  end
end

-- One version less of what a loop has, of all parts of it: there is room for something else then.
local function shallower(x)
  local told = {}
  for _, b in ipairs(x.plan.graph.buffers) do
    local base = draft.part_of(b.name)
    local depth, any = {}, false
    for _, part in ipairs(b.loop and not told[base] and draft.parts(x.plan.rings[b.name] and b.name or b.name .. ".0",
        x.plan.rings) or {}) do
      local n = x.plan.rings[part]
      if n and n > 1 then depth[part], any = n - 1, true end
    end
    told[base] = true
    if any then
      add(x, statement{"buffers", depth}, function(d) draft.add(d, "buffers", draft.copy(depth)) end, true)
    end
  end
end

---- all ----------------------------------------------------------------------------------

-- more: also what changes a plan in kind, and few plans gain by.
function changes.of(plan, more)
  local x = look_at(plan)
  rings(x, true)
  overlaps(x)
  tiles(x, doubled)
  lanes(x)
  tiles(x, wider)
  producer(x)
  loaders(x)
  rings(x, false)
  grid(x)
  swaps(x)
  offsets(x)
  tiles(x, finer)
  if more then
    turns(x)
    conversions(x)
    stores(x)
    shallower(x)
  end
  return x.list, x.draft
end

return changes
