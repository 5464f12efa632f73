-- changes.lua - the changes of a plan that tl:why(), plan:suggest() and plan:improve() try, each of one decision.
--
-- A change is {text=, list=, reason=, alone=}: statements, as text and as a list of {method, arguments...} (draft.lua), a
-- sentence that says what may be gained, and whether it is not worth further statements that make the plan legal again.
-- change_lanes.lua has the changes of lanes; repair.lua makes the changed plan. Changes that are
-- more likely to help come first, as there may not be time for all.

local core = require "millrace.core"
local draft = require "millrace.draft"
local list_of, by_lanes = require "millrace.change_list", require "millrace.change_lanes"
local statement = draft.statement
local describe, steps, add, one, lane_options = list_of.describe, list_of.steps, list_of.add, list_of.one, list_of.lane_options

local changes = {}

local PARTS <const>, PART_LEAST <const> = {4, 2}, 16    -- of a tile that is fetched; elements that a product contracts

-- Versions by name of the buffer; a split one by the name of all its slices.
local function by_base(depth)
  local out = {}
  for name, n in pairs(depth) do
    local base = draft.slice_of(name)
    out[base] = math.max(out[base] or 0, n)
  end
  return out
end

---- rings ------------------------------------------------------------------------------

-- How many EUs the plan uses.
local function eus_of(x)
  local _, s = draft.each(x.draft, "grid")()
  return s and s[2].eus or x.plan.device.eus
end

-- The names of the rings in shared memory by what fills them again: {{names}, ...}, of each loop, and of the tiles of each phase if an
-- EU has several tiles.
local function rings_by_region(x)
  local list, of, has_tiles = {}, {}, x.plan.graph.tiles > eus_of(x)
  for _, b in ipairs(x.plan.graph.buffers) do
    local region = b.loop and "loop " .. b.loop or has_tiles and not b.carry and "tiles of " .. b.phase
    if region and b.scope == "shared" then
      if not of[region] then
        of[region] = {}
        list[#list + 1] = of[region]
      end
      table.insert(of[region], b.name)
    end
  end
  return list
end

local function deeper(x, names)
  for more = 1, 2 do
    local depth = {}
    for _, name in ipairs(names) do depth[name] = (x.plan.rings[name] or 1) + more end
    add(x, "loads may run further ahead", {{"buffers", by_base(depth)}}, true)
  end
end

-- Deeper rings: those of a loop, or of the tile loop, together, because a computation waits for the shallowest one; or each alone.
local function rings(x, together)
  for _, names in ipairs(rings_by_region(x)) do
    if together then deeper(x, names) end
    for _, name in ipairs(not together and #names > 1 and names or {}) do deeper(x, {name}) end
  end
end

---- tiles ------------------------------------------------------------------------------

-- The axes that products have, whose extents are multiples of 16; others are as they please.
local function product_axes(x)
  local of = {}
  for _, task in pairs(x.task) do
    for _, name in ipairs(task.kind == "mma" and task.reads or {}) do
      local b = x.buffer[draft.slice_of(name)]
      for axis in pairs(b and b.shape or {}) do of[axis] = true end
    end
  end
  return of
end

-- Each axis with other extents: others(extent, step, axis) gives them. any: of axes without products, also those
-- that are no multiples of 16.
local function tiles(x, others, any)
  local by, products = steps(x), product_axes(x)
  for _, axis in ipairs(draft.keys(x.draft.tile)) do
    local unit = any and not products[axis] and 1 or math.min(by[axis], 16)
    for _, extent in ipairs(others(x.draft.tile[axis], by[axis], axis)) do
      local text = statement{"propagate", {[axis] = extent}}
      if extent > 0 and extent % unit == 0 and not x.tiles_seen[text] then
        x.tiles_seen[text] = true
        add(x, "another tile divides the work and the memory otherwise", {{"propagate", {[axis] = extent}}})
      end
    end
  end
end

-- As many versions of all rings of loops, or of tiles if there are no loops, as fit if all have the same number, with half the extent of an
-- axis or (nil) as it is: a table by name; nil if there are no rings, or they have as many.
local function level(x, half)
  local space, sum, out, differs = x.space, 0, {}, half ~= nil
  for _, b in ipairs(x.plan.graph.buffers) do
    local task, now = x.writer[b.name], x.plan.rings[b.name]
    if x.leveled[b.name] and task and now then
      local bytes = b.bytes
      for axis, extent in pairs(task.shape) do bytes = bytes * extent / (b.shape[axis] or extent) end
      space, sum, out[b.name] = space + now * bytes, sum + (task.shape[half] and bytes / 2 or bytes), now
    end
  end
  local n = sum > 0 and math.tointeger(space // sum) or 0
  for name, now in pairs(out) do out[name], differs = n, differs or n ~= now end
  return n > 1 and differs and out or nil
end

-- The rings that are leveled, as a set of names.
local function to_level(x)
  local tiles, loops = {}, {}
  for _, names in ipairs(rings_by_region(x)) do
    for _, name in ipairs(names) do
      local set = x.buffer[name].loop and loops or tiles
      set[name] = true
    end
  end
  return next(loops) and loops or tiles
end

-- Rings of equal depth, as deep as fits: now, and with less of each axis that makes them smaller.
local function leveled(x)
  x.leveled = to_level(x)
  x.space = x.plan.device:number "memory.shared.bytes" - x.plan.usage.shared_bytes
  local by, products, now = steps(x), product_axes(x), level(x)
  if now then add(x, "all rings are as deep as fits", {{"buffers", now}}) end
  for _, axis in ipairs(draft.keys(x.draft.tile)) do
    local half, versions = x.draft.tile[axis] // 2, level(x, axis)
    local deeper = false
    for name, n in pairs(versions or {}) do deeper = deeper or n > x.plan.rings[name] end
    local unit = products[axis] and math.min(by[axis], 16) or 1
    if deeper and half >= unit and half % unit == 0 then
      add(x, "smaller slots leave memory for more of them", {{"propagate", {[axis] = half}}, {"buffers", versions}})
    end
  end
end

-- Where tiles repeat what they need all of an axis for: all of it in each tile, with as much less of another axis or as much as now.
local function complete(x)
  for _, r in ipairs(core.repeats(x.plan)) do
    local size, now = x.plan.graph.program.axes[r.axis], x.draft.tile[r.axis]
    local reason = "no tile repeats what others do; now " .. r.text
    add(x, reason, {{"propagate", {[r.axis] = size}}})
    for _, axis in ipairs(draft.keys(x.draft.tile)) do
      local less = x.draft.tile[axis] * now // size
      if axis ~= r.axis and less >= 1 then add(x, reason, {{"propagate", {[r.axis] = size, [axis] = less}}}) end
    end
  end
end

-- One load instead of several that read the same elements: each such, and all together.
local function windows(x)
  local list, all = core.windows(x.plan), {}
  for i, loads in ipairs(list) do
    all[i] = {"window", loads}
    if #list > 1 then add(x, "loads read the same elements", {{"window", loads}}) end
  end
  if all[1] then add(x, "loads read the same elements", all) end
end

local function doubled(n) return {2 * n, n // 2} end
local function wider(n, by) return {n + math.max(64, by), n - math.max(64, by)} end
local function finer(n, by)
  if by >= 64 then return {} end
  return {n + by, n - by, n + 2 * by, n - 2 * by, n + 3 * by, n - 3 * by}
end

---- orders -----------------------------------------------------------------------------

-- Move an entry and its slices to another offset, and behind another entry if one is given, with other versions if any are given.
local function move(x, reason, s, at, behind, versions)
  local list = {}
  if versions then list[1] = {"buffers", by_base(versions)} end
  list[#list + 1] = {"move", (draft.slice_of(s[2])), {at = at ~= (s[3].at or 0) and at or nil,
    after = behind and draft.slice_of(behind[2]) or nil}}
  add(x, reason, list)
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
  local later, earlier = "the end of one iteration overlaps the beginning of the next", "the next iteration begins before this one ends"
  for _, region in ipairs(x.regions) do
    local n = region.only_loads and 0 or #region
    local last, first = region[n], region[1]
    for i = 1, n - 2 do
      local at, versions = (last[3].at or 0) - 1, another_version(x, x.task[last[2]].reads)
      if versions then move(x, later, last, at, region[i], versions) end
      move(x, later, last, at, region[i])
    end
    for i = 2, n do
      local at, versions = (first[3].at or 0) + 1, another_version(x, x.task[first[2]].writes)
      if versions then move(x, earlier, first, at, region[i], versions) end
      move(x, earlier, first, at, region[i])
    end
  end
end

local function swaps(x)
  for _, region in ipairs(x.regions) do
    for i = 1, #region - 1 do move(x, "the other one need not wait for it", region[i], region[i][3].at or 0, region[i + 1]) end
  end
end

local function offsets(x)
  for _, region in ipairs(x.regions) do
    for _, s in ipairs(region.only_loads and {} or region) do
      for _, by in ipairs{1, -1} do move(x, "it overlaps other iterations", s, (s[3].at or 0) + by) end
    end
  end
end

---- the order of tiles -------------------------------------------------------------------

local function grid(x)
  local now = {raster = "rows", group = 1, longest_first = false, section = 0, cluster = 1, keep = 1}
  for _, s in draft.each(x.draft, "grid") do
    for key, value in pairs(s[2]) do now[key] = value end
  end
  for _, other in ipairs{{group = 1}, {group = 4}, {group = 8}, {group = 16}, {raster = "rows"},
      {raster = "columns"}, {cluster = 1}, {cluster = 2}, {raster = "rows", cluster = 2},
      {raster = "columns", cluster = 2}, {longest_first = true}, {longest_first = false}} do
    local changed = true
    for key, value in pairs(other) do changed = changed and now[key] ~= value end
    if changed then add(x, "EUs that work at the same time share more of what they load", {{"grid", other}}, true) end
  end
  for _, keep in ipairs(now.keep > 1 and {now.keep * 2, now.keep // 2} or {}) do
    add(x, "an EU has what its next tile loads", {{"grid", keep > 1 and {keep = keep} or {keep = 1, along = false}}}, true)
  end
  for _, tiles in ipairs(now.longest_first and {0, 1, 2, 4, 8, 16} or {2}) do    -- of an EU in each section
    local section = tiles * eus_of(x)
    if not now.longest_first or section ~= now.section then
      add(x, "EUs end together, and those that work at the same time share what they load",
        {{"grid", {longest_first = true, section = section}}}, true)
    end
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
    if #ends > 0 and #waits == #ends then add(x, "lanes use the matrix unit alternately: ping-pong", waits) end
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
  local p = x.plan:copy()
  local product
  p:split_off(value, name)
  for _, read in ipairs(x.task[s[2]].reads) do
    product = product or is_in(x, "mma", "writes", read) and draft.slice_of(read)
  end
  for _, task in ipairs(p.tasks) do
    if draft.slice_of(task.name) == name then return draft.slice_of(task.reads[1]), product end
  end
end

-- An operand of products is converted by an sTask of its own, which may wait for another product while the remainder of the
-- computation does not. What it converts is an alias of a product, or has registers of its own.
local function conversion(x, s, value)
  local name, base = new_task(x), draft.slice_of(s[2])
  local good, unconverted, product = pcall(alias_of, x, s, name, value)
  local list = {{"split_off", value, name}, {"insert", name, {at = s[3].at, after = base}}}
  local reason = "only the conversion waits for the product that reads its value"
  if not good or not unconverted then return end
  if product then add(x, reason, {list[1], {"alias", {[unconverted] = product}}, list[2]}) end
  add(x, reason, list)
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

-- Operands that a product finds in shared memory and that are loaded in its loop, and the axis that it contracts of which the tile
-- has most.
local function operands_of(x, task)
  local values, axis, extent = {}, nil, 0
  for _, value in ipairs(task.reads) do
    local b, writer = x.buffer[value], x.writer[value]
    if b and writer.kind == "load" and b.scope == "shared" and writer.loop == task.loop then
      values[#values + 1] = value
      for _, name in ipairs(draft.keys(b.shape)) do
        if not task.shape[name] and b.shape[name] > extent then axis, extent = name, b.shape[name] end
      end
    end
  end
  return values, axis, extent
end

-- Statements that take out the waits between a product and what loads its operands, which then are waits of other sTasks.
local function without_waits(x, task, values)
  local list, loads = {}, {}
  for _, value in ipairs(values) do loads[x.writer[value].name] = true end
  for _, s in draft.each(x.draft, "wait") do
    for _, on in ipairs(s[3]) do
      local other = type(on) == "table" and on[1] or on
      if loads[s[2]] and other == task.name or loads[other] and s[2] == task.name then list[#list + 1] = {"unwait", s[2], other} end
    end
  end
  return list
end

-- A synchronous product fetches its operands itself, and waits. If sTasks of their own do, each fetches a part of the tile while another
-- part is multiplied: the first part of the next tile while the last one of this tile is. Or all of the next tile.
local function fetch_ahead(x, s)
  local task, at = x.task[s[2]], s[3].at or 0
  local values, axis, extent = operands_of(x, task)
  if #values == 0 then return end
  local reason = "operands are fetched while others are multiplied"
  for _, ways in ipairs(PARTS) do
    if axis and extent % (ways * PART_LEAST) == 0 then
      local tasks, list = {task.name}, without_waits(x, task, values)
      for _, value in ipairs(values) do tasks[#tasks + 1] = "fetch_" .. value end
      list[#list + 1] = {"fetch", task.name, values}
      list[#list + 1] = {"split", axis, ways, tasks}
      for part = 0, ways - 1 do
        for _, value in ipairs(values) do
          list[#list + 1] = {"insert", ("fetch_%s.%d"):format(value, (part + 1) % ways),
            {at = part == ways - 1 and at + 1 or at, before = ("%s.%d"):format(task.name, part)}}
        end
      end
      add(x, reason, list)
    end
  end
  local list, versions = without_waits(x, task, values), {}
  list[#list + 1] = {"fetch", task.name, values}
  for _, value in ipairs(values) do
    list[#list + 1] = {"insert", "fetch_" .. value, {at = at + 1, before = task.name}}
    versions["fetch_" .. value] = 2
  end
  list[#list + 1] = {"buffers", versions}
  add(x, reason, list)
end

-- What the lane of a synchronous product computes as its operand is made where the product takes it. If the warps divide rows, each makes
-- all of a second operand; in columns each makes its own.
local function make_directly(x, s)
  for _, value in ipairs(x.task[s[2]].reads) do
    local name, made = (draft.slice_of(value)), nil
    local b, writer, lane = x.buffer[value] or x.buffer[name], x.writer[value] or x.writer[name], s[3].lane
    for _, other in draft.each(x.draft, "append") do
      made = made or writer and other[2] == writer.name and other[3].lane
    end
    if b and writer and b.scope == "shared" and writer.kind == "compute" and not writer.name:find "^fetch_" and made == lane and
      pcall(function() x.plan:copy():direct{name} end) then
      local reason, options = "an operand is made where it is multiplied", lane_options(x, lane)
      local warps = options.warps or 4
      add(x, reason, {{"direct", {name}}})
      if warps > 1 and options.columns ~= warps then
        add(x, reason .. ", by the warps in columns", {{"direct", {name}}, {"lane", lane, {columns = warps}}})
      end
    end
  end
end

-- directs: only operands that are made where they are multiplied.
local function fetches(x, directs)
  local synchronous, seen = {}, {}
  for _, unit in ipairs(x.plan.device.seus) do synchronous[unit.name] = unit.kind == "matrix" and not unit.async end
  for _, region in ipairs(x.regions) do
    for _, s in ipairs(region) do
      local base, slice = draft.slice_of(s[2])
      if x.task[s[2]].kind == "mma" and synchronous[s[3].seu] then
        if not slice and not directs then fetch_ahead(x, s) end
        if not seen[base] then make_directly(x, s) end
        seen[base] = true
      end
    end
  end
end

-- sTasks on other units that can run them: on those that such work goes to, all together and each; or on others, where the work
-- alone would not take longer than the plan does now, nor as long as on the usual unit if that is of the same kind. Loads may take as long
-- there: another copy unit brings them in another way. Then all together are tried, too.
local function units(x, usual)
  local together, each, seen, copies = {}, {}, {}, {}
  local appended = {}                                     -- stores, which come last, are tried first
  for _, s in draft.each(x.draft, "append") do table.insert(appended, 1, s) end
  for _, s in ipairs(appended) do
    local base = draft.slice_of(s[2])
    local able = not seen[base] and core.units_for(x.plan, s[2]) or {}
    local loads = (x.task[base] or x.task[base .. ".0"]).kind == "load"
    for i, unit in ipairs(able) do
      local slower = i > 1 and unit.alike and (unit.seconds > able[1].seconds or not loads and unit.seconds == able[1].seconds)
      if unit.name ~= s[3].seu and (i == 1) == usual and (usual or (unit.seconds < x.now and not slower)) then
        each[#each + 1] = {base, unit.name}
        copies[unit.name] = loads and unit.alike
        together[unit.name] = together[unit.name] or {}
        table.insert(together[unit.name], base)
      end
    end
    seen[base] = true
  end
  for _, unit in ipairs(draft.keys(together)) do
    if #together[unit] > 1 and (usual or copies[unit]) then
      add(x, (usual and "such work goes to %s" or "%s does it instead"):format(unit), {{"move", together[unit], {seu = unit}}})
    end
  end
  for _, e in ipairs(each) do
    local kind = x.task[e[1]] or x.task[e[1] .. ".0"]
    local reason = usual and "such work goes to %s" or "%s does it instead"
    if not usual and kind.kind == "store" then reason = "it is stored from registers, without a copy in shared memory" end
    add(x, reason:format(e[2]), {{"move", e[1], {seu = e[2]}}})
  end
end

-- One version less of a loop's value, of all its slices, or of a ring of tiles: its memory may hold something else then.
local function shallower(x)
  local seen, in_rings = {}, {}
  for _, names in ipairs(rings_by_region(x)) do
    for _, name in ipairs(names) do in_rings[name] = true end
  end
  for _, b in ipairs(x.plan.graph.buffers) do
    local base = draft.slice_of(b.name)
    local first, depth = x.plan.rings[b.name] and b.name or b.name .. ".0", {}
    for _, slice in ipairs((b.loop or in_rings[b.name]) and not seen[base] and draft.slices(first, x.plan.rings) or {}) do
      local n = x.plan.rings[slice]
      if n and n > 1 then depth[slice] = n - 1 end
    end
    seen[base] = true
    if next(depth) then add(x, "its memory can hold something else", {{"buffers", by_base(depth)}}) end
  end
end

---- all ----------------------------------------------------------------------------------

-- What changes.of wants to know of the timeline of a plan, {seconds=, copies=}; nil of none.
function changes.state(tl) return tl and {seconds = tl.seconds, copies = core.copies(tl)} end

-- The changes of a plan, all that there are. now: changes.state of its timeline; nil: there is none.
function changes.of(plan, now)
  local x = describe(plan)
  x.now, x.copies = now and now.seconds or math.huge, now and now.copies or {}
  units(x, true)
  by_lanes.copiers(x)
  by_lanes.apart(x)
  rings(x, true)
  overlaps(x)
  complete(x)
  windows(x)
  tiles(x, doubled, true)
  by_lanes.lanes(x)
  tiles(x, wider)
  by_lanes.producer(x)
  by_lanes.loaders(x)
  rings(x, false)
  grid(x)
  swaps(x)
  offsets(x)
  tiles(x, finer)
  by_lanes.merges(x)
  leveled(x)
  issue_order(x)
  conversions(x)
  fetches(x)
  shallower(x)
  by_lanes.warps(x)
  by_lanes.columns(x)
  units(x, false)
  return x.list
end

-- Fetches of operands by sTasks of their own, and operands that are made where they are multiplied, alone.
function changes.fetches(plan)
  local x = describe(plan)
  fetches(x)
  return x.list
end

-- The latter alone.
function changes.directs(plan)
  local x = describe(plan)
  fetches(x, true)
  return x.list
end

-- Other tiles: less and less of an axis, unless each tile needs all of it anyway; then those that a search begins with, with whatever
-- lanes and versions they need.
function changes.tiles(plan, most)
  local x, device, repeated = describe(plan), plan.device, {}
  for _, r in ipairs(core.repeats(plan)) do repeated[r.axis] = true end
  tiles(x, function(n, _, axis) return repeated[axis] and {} or {n // 4, n // 8, n // 16, n // 32} end, true)
  for _, t in ipairs(core.search(plan.graph.program, device, nil, false):tiles()) do
    local other = {}
    for axis, extent in pairs(t.tile) do
      if plan.tile[axis] ~= extent then other[axis] = extent end
    end
    if next(other) and #x.list < most then
      add(x, "a tile of which no unit and no memory takes longer", {{"propagate", other}})
    end
  end
  return x.list
end

return changes
