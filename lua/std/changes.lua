-- changes.lua - the changes of a plan that tl:why() and plan:improve() try, each of one decision.
--
-- A change is {text=, edit=, waits=, repair=}: the statements that a user would write or change, a function that makes
-- the change in a draft (draft.lua), whether other waits may be necessary then, and whether further statements may make
-- the plan legal again. repair.lua makes the changed plan. Changes that are more likely to help come first, as there may
-- not be time for all.

local draft = require "millrace.draft"
local statement = draft.statement

local changes = {}

-- The plan as a draft, its sTasks and buffers by name; and regions: the "append" statements of each lane in each loop,
-- of split sTasks the first slice only.
local function describe(plan)
  local x = {plan = plan, draft = draft.read(plan), task = {}, buffer = {}, regions = {}, list = {}, tiles_seen = {}}
  for _, task in ipairs(plan.tasks) do x.task[task.name] = task end
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

local function add(x, text, edit, waits)
  x.list[#x.list + 1] = {text = text, edit = edit, waits = waits, repair = true}
end

-- Further statements at the end of the plan.
local function add_statements(x, list, waits)
  local texts = {}
  for i, s in ipairs(list) do texts[i] = statement(s) end
  add(x, table.concat(texts, "; "), function(d)
    for _, s in ipairs(list) do draft.add(d, table.unpack(draft.copy(s))) end
  end, waits)
end

-- A further statement that nothing else needs to repair.
local function add_independent(x, ...)
  add_statements(x, {{...}})
  x.list[#x.list].repair = nil
end

-- Other options of entries: edit(options, task) changes a copy of the options; it returns false if they stay.
local function change_entries(x, edit, waits)
  local own, texts = {}, {}
  for _, s in draft.each(x.draft, "append") do
    local changed = draft.copy(s)
    if edit(changed[3], x.task[s[2]]) then own[s[2]], texts[#texts + 1] = changed, statement(changed) end
  end
  if #texts == 0 then return end
  add(x, table.concat(texts, "; "), function(d)
    for i, s in draft.each(d, "append") do d.list[i] = draft.copy(own[s[2]]) or s end
  end, waits)
end

---- rings ------------------------------------------------------------------------------

local function deeper(x, names)
  for more = 1, 2 do
    local depth = {}
    for _, name in ipairs(names) do depth[name] = (x.plan.rings[name] or 1) + more end
    add_independent(x, "buffers", depth)
  end
end

-- Deeper rings: those of a loop together, because a product waits for the shallowest one; or each alone.
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

-- Each axis with other extents: others(extent, step) gives them.
local function tiles(x, others)
  local by = steps(x)
  for _, axis in ipairs(draft.keys(x.draft.tile)) do
    for _, extent in ipairs(others(x.draft.tile[axis], by[axis])) do
      local text = statement{"propagate", {[axis] = extent}}
      if extent > 0 and extent % math.min(by[axis], 16) == 0 and not x.tiles_seen[text] then
        x.tiles_seen[text] = true
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

-- The options of a lane; empty if no statement gives any.
local function lane_options(x, name)
  local _, s = draft.find(x.draft, "lane", name)
  return s and s[3] or {}
end

-- The warps of each lane. If there are more threads than before, registers are left to the plan.
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
    texts[i] = statement{"lane", name, {warps = warps, replicas = replicas > 1 and replicas or nil,
      registers = not more and lane_options(x, names[1]).registers or nil}}
  end
  return table.concat(texts, "; ")
end

-- Other computing lanes: so many (ways) with a slice each along the axis, each with so many warps and replicas.
local function share(x, now, axis, ways, replicas, extent, warps)
  if extent % ways > 0 or warps % 4 > 0 or warps < 4 then return end
  local more = ways * replicas * warps > now.warps * now.ways * now.replicas
  local names
  local function edit(d)
    d.tile[axis] = extent
    draft.join(d)
    names = ways > 1 and draft.split(d, x.plan.graph.program, x.plan.device, now.lane, axis, ways) or {now.lane}
    set_lanes(d, names, warps, replicas, more)
  end
  if not pcall(edit, draft.copy(x.draft)) then return end
  local texts = {}
  if extent ~= x.draft.tile[axis] then texts[1] = statement{"propagate", {[axis] = extent}} end
  if ways ~= now.ways then texts[#texts + 1] = ways > 1 and statement{"split", axis, ways} or "no plan:split" end
  texts[#texts + 1] = lanes_text(x, names, warps, replicas, more)
  add(x, table.concat(texts, "; "), edit, true)
end

-- One lane more or fewer, with slices of the same extent, or with the same tile divided among them; and replicas that
-- take tiles in round robin instead of slices, and the other way round.
local function shares(x, now, axis)
  local extent = x.draft.tile[axis]
  local each = extent // now.ways
  local function try(...) share(x, now, axis, ...) end
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
  change_entries(x, function(options, task)
    if task.kind ~= "load" then return false end
    options.lane, options.at = "p0", nil
    return true
  end, true)
end

-- Lanes that only load: with half and with twice the warps.
local function loaders(x)
  local only_loads = {}
  for _, s in draft.each(x.draft, "append") do
    if only_loads[s[3].lane] ~= false then only_loads[s[3].lane] = x.task[s[2]].kind == "load" end
  end
  for i, s in draft.each(x.draft, "lane") do
    local warps = s[3].warps
    for _, n in ipairs(only_loads[s[2]] and warps and warps > 1 and {2 * warps, warps // 2} or {}) do
      local other = draft.copy(s)
      other[3].warps = n
      add(x, statement(other), function(d) d.list[i] = draft.copy(other) end)
    end
  end
end

---- orders -----------------------------------------------------------------------------

-- Move an entry to another offset, and behind another entry if one is given, with other versions if any are given.
local function move(x, s, at, behind, versions)
  local own = draft.copy(s)
  own[3].at = at ~= 0 and at or nil
  local text = statement(own) .. (behind and (" behind %q"):format(behind[2]) or "")
  if select(2, draft.slice_of(s[2])) then text = text .. ", other slices likewise" end
  if versions then text = text .. "; " .. statement{"buffers", versions} end
  add(x, text, function(d)
    draft.move(d, s[2], at, behind and behind[2])
    if versions then draft.add(d, "buffers", versions) end
  end, true)
end

-- One version more of each of these values that is in registers and that others of the loop use, so that the sTask need
-- not wait for them. nil if there is no such value.
local function another_version(x, names)
  local depth, any = {}, false
  for _, name in ipairs(names) do
    local b = x.buffer[draft.slice_of(name)]             -- nil: what split_off made
    if not b or b.loop and not b.carry and b.scope == "registers" then
      for _, slice in ipairs(draft.slices(name, x.plan.rings)) do
        depth[slice], any = x.plan.rings[slice] + 1, true
      end
    end
  end
  return any and depth or nil
end

-- Software pipelining by one entry: the last of a loop an iteration later, overlapping the first ones of the next
-- iteration; or the first one an iteration earlier. The lane no longer waits for what was between them.
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
    if changed then add_independent(x, "grid", other) end
  end
end

---- issue order, conversions, stores ---------------------------------------------------------

-- The first and the last product of each slice in a loop, as statements; nil if a slice has none.
local function ends_of(x, loop, ways)
  local ends = {}
  for _, s in draft.each(x.draft, "append") do
    local task, _, slice = x.task[s[2]], draft.slice_of(s[2])
    if slice and task.kind == "mma" and task.loop == loop then
      ends[slice + 1] = {first = ends[slice + 1] and ends[slice + 1].first or s, last = s}
    end
  end
  return #ends == ways and ends or nil
end

local function has_issue_order(x)
  for _, s in draft.each(x.draft, "wait") do
    for _, on in ipairs(s[3]) do
      if type(on) == "table" and on.when == "issued" then return true end
    end
  end
end

-- Lanes that share a tile agree on who issues products: a lane begins when the one before it has issued its last product
-- of the iteration; the first lane, when the last one has issued that of the iteration before.
local function issue_order(x)
  local lanes, split = draft.shared(x.draft)
  local seen = {}
  if not lanes or has_issue_order(x) then return end
  for _, task in ipairs(x.plan.tasks) do
    local ends = task.loop and not seen[task.loop] and ends_of(x, task.loop, split[3]) or {}
    local waits = {}
    seen[task.loop or ""] = true
    for i, this in ipairs(ends) do
      local first, last = this.first, ends[(i - 2) % #ends + 1].last
      local distance = (first[3].at or 0) - (last[3].at or 0) + (i == 1 and 1 or 0)
      if distance < 0 then break end
      waits[i] = {"wait", first[2], {{last[2], distance = distance, when = "issued"}}}
    end
    if #ends > 0 and #waits == #ends then add_statements(x, waits) end
  end
end

-- A name that no sTask has: "convert", "convert2".
local function new_task(x)
  local name, i = "convert", 1
  while x.task[name] or x.task[name .. ".0"] do
    i = i + 1
    name = ("convert%d"):format(i)
  end
  return name
end

-- Split the last step towards a value off sTask `base`, and insert the new sTask (its slices) behind it.
local function split_off(d, base, name, value, alias)
  table.insert(d.list, 1, {"split_off", value, name})
  if alias then table.insert(d.list, #draft.shaping(d) + 1, {"alias", alias}) end
  for i = #d.list, 1, -1 do
    local new = draft.copy(d.list[i])
    local of, slice = draft.slice_of(new[1] == "append" and new[2] or "")
    if of == base then
      new[2] = slice and ("%s.%d"):format(name, slice) or name
      table.insert(d.list, i + 1, new)
    end
  end
end

-- Has an sTask of the kind the value among what it reads or writes (list)?
local function is_in(x, kind, list, value)
  for _, task in ipairs(x.plan.tasks) do
    for _, name in ipairs(task.kind == kind and task[list] or {}) do
      if name == value then return true end
    end
  end
end

-- What the split-off step reads; and the product that this value is computed from, of which it may be an alias.
local function alias_of(x, s, name, value)
  local d = {tile = x.draft.tile, list = draft.shaping(x.draft)}
  table.insert(d.list, 1, {"split_off", value, name})
  local product
  for _, read in ipairs(x.task[s[2]].reads) do
    product = product or is_in(x, "mma", "writes", read) and draft.slice_of(read)
  end
  for _, task in ipairs(draft.make(d, x.plan.graph.program, x.plan.device).tasks) do
    if draft.slice_of(task.name) == name then return draft.slice_of(task.reads[1]), product end
  end
end

-- An operand of products is converted by an sTask of its own, which may wait for another product while the remainder of the
-- computation does not. What it converts is an alias of a product, or has registers of its own.
local function conversion(x, s, value)
  local name, base = new_task(x), draft.slice_of(s[2])
  local good, unconverted, product = pcall(alias_of, x, s, name, value)
  local text = statement{"split_off", value, name}
  local insert = ("; plan:insert(%q, {after=%q})"):format(name, base)
  if not good or not unconverted then return end
  if product then
    local alias = {[unconverted] = product}
    add(x, text .. "; " .. statement{"alias", alias} .. insert, function(d) split_off(d, base, name, value, alias) end, true)
  end
  add(x, text .. insert, function(d) split_off(d, base, name, value) end, true)
end

local function conversions(x)
  for _, region in ipairs(x.regions) do
    for _, s in ipairs(region) do
      local task = x.task[s[2]]
      for _, value in ipairs(task.kind == "compute" and task.writes or {}) do
        if is_in(x, "mma", "reads", value) then conversion(x, s, (draft.slice_of(value))) end
      end
    end
  end
end

-- All stores by the threads of lanes, not by a copy engine.
local function stores(x)
  local unit
  for _, seu in ipairs(x.plan.device.seus) do unit = unit or seu.kind == "vector" and seu.name end
  if not unit then return end
  change_entries(x, function(options, task)
    if task.kind ~= "store" or options.seu == unit then return false end
    options.seu = unit
    return true
  end, true)
end

-- One version less of a loop's value, of all its slices: its memory may hold something else then.
local function shallower(x)
  local seen = {}
  for _, b in ipairs(x.plan.graph.buffers) do
    local base = draft.slice_of(b.name)
    local first, depth = x.plan.rings[b.name] and b.name or b.name .. ".0", {}
    for _, slice in ipairs(b.loop and not seen[base] and draft.slices(first, x.plan.rings) or {}) do
      local n = x.plan.rings[slice]
      if n and n > 1 then depth[slice] = n - 1 end
    end
    seen[base] = true
    if next(depth) then add_statements(x, {{"buffers", depth}}, true) end
  end
end

---- all ----------------------------------------------------------------------------------

-- The changes of a plan, and its draft. more: also changes of another kind, which fewer plans gain by.
function changes.of(plan, more)
  local x = describe(plan)
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
    issue_order(x)
    conversions(x)
    stores(x)
    shallower(x)
  end
  return x.list, x.draft
end

return changes
