-- random_plans.lua - legal plans drawn at random, and what is done with them.
--
-- draw(seed) gives a plan that the checker accepts, of one of the programs of random_draws.lua, with
-- tiles, splits, lanes, orders, offsets, versions, waits and a grid of its own. The same
-- seed gives the same plan on every machine. verify(plan) runs it. A wild plan is of one of the
-- wild programs, and also has units, warps, registers, idle lanes, splits along any axis, and
-- tiles that are narrow or odd. In a shaped plan last steps are split off, and values are aliases
-- of others.
local mr = require "millrace"
local core = require "millrace.core"
local within = require "millrace.within"

local dir = debug.getinfo(1, "S").source:match "^@(.*/)"

-- `target`: what verify compiles for; `device`: what plans are drawn for; `shapes`: whether plans
-- are shaped; `staged`: whether loads are divided in two sTasks; `dma`: whether some copy without registers, on the device's
-- unit for that; `fetches`: whether sTasks fetch operands of products; `directs`: whether tasks make operands where these are
-- multiplied.
local M = {target = "host", device = mr.device "h200"}
local random = math.random

local draws = dofile(dir .. "random_draws.lua")
local choose, chance = draws.choose, draws.chance
M.programs, M.wild_programs, M.length_programs = draws.programs, draws.wild_programs, draws.length_programs

-- Swap some neighbours, or all of the list at random.
local function shuffle(list)
  if chance(0.35) then return end
  if chance(0.3) then
    for i = #list, 2, -1 do
      local j = random(i)
      list[i], list[j] = list[j], list[i]
    end
    return
  end
  for _ = 1, random(3) do
    local i = random(#list - 1)
    list[i], list[i + 1] = list[i + 1], list[i]
  end
end

-- What stands in the second of two loops over one axis.
local second = {load_k2 = true, mma_second = true, weights = true, load_v2 = true, mma_v = true}

---- the plan -------------------------------------------------------------------

-- Offsets that fall along the program's order, or anything.
local function offsets(tasks)
  local at, how = {}, random(10)
  local now = how <= 3 and 0 or random(0, 2)
  for _, t in ipairs(tasks) do
    if how > 8 then
      at[t.name] = random(-1, 2)
    else
      at[t.name] = now
      if how > 3 and chance(0.4) then now = now - 1 end
    end
  end
  return at
end

-- Of the tile loop: what stands before the program's loops ahead of them, what follows behind,
-- or anything.
local function tile_offsets(tasks)
  if chance(0.3) then return offsets(tasks) end
  local at, inside, now = {}, false, 0
  for _, t in ipairs(tasks) do
    if t.loop then
      inside, now = true, 0
    elseif not inside then
      at[t.name] = choose{0, 1, 1, 2}
    else
      if chance(0.5) then now = now - 1 end
      at[t.name] = now
    end
  end
  return inside and at or offsets(tasks)
end

local function part_of(task)
  return tonumber(task.name:match "%.(%d+)$" or 0)
end

local function lanes(plan, wide, spread)
  local spec = {loads = {}, warps = {}, replicas = {}}
  local producers = choose{0, 1, 1, 1, 1, 2}
  for i = 0, producers - 1 do
    spec.warps["p" .. i] = choose{1, 1, 1, 2, 4}
    spec.loads[#spec.loads + 1] = "p" .. i
  end
  if producers == 0 then spec.loads[1] = "c0" end
  spec.extra = chance(0.02) and "e0" or nil             -- element-wise work on a lane of its own
  if spread then spec.extra, spec.spread = "e0", true end -- ... and products, and stores
  for _, t in ipairs(plan.tasks) do
    if t.kind ~= "load" then spec.warps["c" .. part_of(t)] = 4 * wide end
  end
  -- replicas, if there are enough registers; with a producer, as replicas do not share loads
  if producers > 0 and wide == 1 and not spec.warps.c1 and chance(0.2) then spec.replicas.c0 = random(2, 3) end
  return spec
end

-- Units, warps and registers that nobody would choose, and lanes on which nothing is.
local function wild_lanes(plan, spec)
  spec.seu, spec.registers, spec.idle = {}, {}, {}
  spec.extra = chance(0.15) and "e0" or nil
  spec.spread = spec.extra and chance(0.5)
  spec.together = chance(0.25)                          -- parts of a split on one lane
  local loads, products, stores = chance(0.35) and 0.7 or 0, chance(0.3) and 0.8 or 0, chance(0.2) and 0.7 or 0
  if loads > 0 and chance(0.4) then spec.loads = {"c0"} end
  for _, t in ipairs(plan.tasks) do
    local share = t.kind == "load" and loads or t.kind == "mma" and products or t.kind == "store" and stores or 0
    if chance(share) then spec.seu[t.name] = "cuda" end
  end
  local names = {}
  for name in pairs(spec.warps) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    if name:find "^p" then spec.warps[name] = choose{1, 1, 2, 4, 8} end
    if name:find "^c" then spec.warps[name] = chance(0.35) and random(12) or choose{4, 4, 4, 8} end
    if chance(0.15) then spec.registers[name] = random(24, 255) end
    if chance(0.06) then spec.replicas[name] = random(2, 3) end
  end
  if chance(0.12) then
    spec.idle = {first = chance(0.5), warps = random(5), replicas = chance(0.5) and random(3) or nil,
      registers = chance(0.2) and random(24, 255) or nil}
  end
end

local function lane_of(task, spec)
  if spec.staged and spec.staged[task.name] then return "c0" end
  if task.kind == "load" then return choose(spec.loads) end
  if spec.extra and (spec.spread or task.kind == "compute") and chance(0.3) then
    spec.warps[spec.extra] = 4
    return spec.extra
  end
  return spec.together and "c0" or "c" .. part_of(task)
end

local function declare_idle(plan, spec, first)
  if spec.idle and spec.idle.warps and spec.idle.first == first then
    plan:lane("idle", {warps = spec.idle.warps, replicas = spec.idle.replicas, registers = spec.idle.registers})
  end
end

local function multiplies_at_once()
  for _, u in ipairs(M.device and M.device.seus or {}) do
    if u.kind == "matrix" then return not u.async end
  end
end

-- Warps in columns, where products are of single warps and all of a lane's have columns for each. Elsewhere nothing is drawn, so that
-- the plans of a seed stay what they are.
local function put_in_columns(plan, of, spec)
  if not multiplies_at_once() then return end
  for _, name in ipairs{"c0", "c1", "e0"} do
    local warps, columns, many = spec.warps[name] or 4, choose{1, 2, 2, 4}, false
    for _, t in ipairs(plan.tasks) do
      if of[t.name] == name and t.kind == "mma" and not (spec.seu and spec.seu[t.name]) then
        many = true
        if t.n % (32 * columns) > 0 then columns = 1 end
      end
    end
    if many and warps % columns == 0 and chance(0.5) then plan:lane(name, {columns = columns}) end
  end
end

local function append_all(plan, spec)
  local order, inner, free = {}, {}, {}
  for _, t in ipairs(plan.tasks) do
    order[#order + 1] = t
    if t.loop then
      local of = t.kind == "load" and free or inner
      of[#of + 1] = t
    end
  end
  local at = offsets(inner)
  for name, x in pairs(chance(0.3) and offsets(free) or {}) do at[name] = x end
  if chance(0.3) then
    local tiles = tile_offsets(plan.tasks)
    for _, t in ipairs(plan.tasks) do at[t.name] = t.loop and at[t.name] or tiles[t.name] end
  end
  shuffle(order)
  declare_idle(plan, spec, true)
  local of = {}
  for _, t in ipairs(order) do
    of[t.name] = lane_of(t, spec)
    plan:append(t.name, {lane = of[t.name], at = at[t.name] or 0,
      seu = spec.seu and spec.seu[t.name] or t.kind == "load" and spec.staged and spec.staged[t.name] or nil,
      by_rows = M.by_rows and t.kind == "load"})
  end
  local names = {}
  for name in pairs(spec.warps) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    plan:lane(name, {warps = spec.warps[name], replicas = spec.replicas[name],
      registers = spec.registers and spec.registers[name]})
  end
  put_in_columns(plan, of, spec)
  declare_idle(plan, spec, false)
  return at
end

local function loaded(plan, value)
  for _, t in ipairs(plan.tasks) do
    if t.kind == "load" and t.writes[1]:match "^[^.]*" == value then return true end
  end
end

-- at: offsets; rings of what is loaded ahead are mostly deep enough. alias_of: the values that values are aliases
-- of: all of them have the same number of versions, which is one in registers.
local function rings(plan, at, alias_of)
  local names, versions = {}, {}
  for name in pairs(plan.rings) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local ahead = at["load_" .. name] or 0
    if chance(0.5) then versions[name] = choose{1, 2, 2, 3, 4} end
    if ahead > 0 and chance(0.6) then versions[name] = math.max(versions[name] or 1, 1 + ahead) end
  end
  for _, b in ipairs(plan.graph.buffers) do             -- a carry has one version
    if b.carry then
      for name in pairs(versions) do
        if name == b.name or name:match "^(.*)%.%d+$" == b.name then versions[name] = 1 end
      end
    end
  end
  local many = {}
  for _, name in ipairs(names) do
    local of = alias_of and alias_of[name:match "^[^.]*"]
    if of then
      many[of] = many[of] or (loaded(plan, of) and choose{1, 1, 2, 3} or 1)
      versions[name] = many[of]
    end
  end
  plan:buffers(versions)
end

-- Values by name, without those of the parts of a split; and what is loaded.
local function values(plan, loaded)
  local list, known = {}, {}
  for _, t in ipairs(plan.tasks) do
    for _, name in ipairs(t.kind == "load" and not loaded and {} or t.writes) do
      name = name:match "^[^.]*"
      if not known[name] then list[#list + 1] = name end
      known[name] = true
    end
  end
  return list
end

-- Split off last steps and make values aliases of others, where that is possible.
local function shape(plan, info)
  info.split_offs, info.aliases, info.alias_of = 0, 0, {}
  for _, name in ipairs(values(plan)) do
    if chance(0.6) and pcall(plan.split_off, plan, name, "last_" .. name, chance(0.3) and 2 or 1) then info.split_offs = info.split_offs + 1 end
  end
  for _, t in ipairs(plan.tasks) do
    if t.kind == "mma" and not t.name:find ".%." and chance(0.2) and pcall(plan.swap, plan, t.name) then
      info.swaps = (info.swaps or 0) + 1
    end
  end
  if chance(0.3) then return end
  for _, name in ipairs(values(plan)) do
    for _, of in ipairs(values(plan, true)) do
      if chance(0.5) and pcall(plan.alias, plan, {[name] = of}) then
        info.aliases, info.alias_of[name], info.alias_of[of] = info.aliases + 1, of, of
      end
    end
  end
end

-- Divide loads in two sTasks. Returns the units of loads that are divided, by name; true of what puts them.
local function stage(plan, info)
  local staged, unit, vector = {}, nil, nil
  for _, u in ipairs(plan.device.seus) do
    if u.kind == "copy" and u.name == "vmem" then unit = u.name end
    if u.kind == "vector" then vector = u.name end
  end
  for _, t in ipairs(plan.tasks) do
    if t.kind == "load" and chance(0.7) and pcall(plan.split_off, plan, t.writes[1], "put_" .. t.name) then
      staged[t.name], staged["put_" .. t.name] = chance(0.8) and unit or vector, true
      info.staged = (info.staged or 0) + 1
    end
  end
  return staged
end

-- Let loads that are not divided copy without registers, on the device's unit for that. Adds these to `units`.
local function copy_by_dma(plan, info, units)
  for _, t in ipairs(plan.tasks) do
    if t.kind == "load" and not units[t.name] and chance(0.8) then
      units[t.name], info.dma = "lds_dma", (info.dma or 0) + 1
    end
  end
  return units
end

-- Let sTasks fetch operands of products, perhaps in parts of what these contract.
local function fetch(plan, info, in_parts)
  local extents = {}
  for _, b in ipairs(plan.graph.buffers) do extents[b.name] = b.shape end
  for _, t in ipairs(plan.tasks) do
    local list, axis = {t.name}, nil
    for _, value in ipairs(t.kind == "mma" and t.reads or {}) do
      if chance(0.6) and pcall(plan.fetch, plan, t.name, {value}) then
        info.fetches = (info.fetches or 0) + 1
        for name, extent in pairs(extents[value]) do
          if not t.shape[name] and extent > 1 then axis = name end
        end
      end
    end
    for _, other in ipairs(axis and in_parts and chance(0.5) and plan.tasks or {}) do
      if other.name:find "^fetch_" and other.shape[axis] and other.loop == t.loop then list[#list + 1] = other.name end
    end
    if #list > 1 and pcall(plan.split, plan, axis, choose{2, 2, 4}, list) then info.fetch_parts = (info.fetch_parts or 0) + 1 end
  end
end

-- Let tasks make operands of products where these take them.
local function direct(plan, info)
  for _, t in ipairs(plan.tasks) do
    if t.kind == "compute" and chance(0.8) and pcall(plan.direct, plan, {t.writes[1]}) then info.directs = (info.directs or 0) + 1 end
  end
end

-- What the statements of a plan say, as lists of the calls' arguments.
function M.calls(plan)
  local calls = {}
  local record = setmetatable({}, {__index = function(_, name)
    return function(_, ...) calls[#calls + 1] = {name, ...} end
  end})
  assert(load("local plan = ...\n" .. core.statements(plan)))(record)
  return calls
end

-- All waits of a plan: {task=, on=, distance=, when=}.
function M.waits(plan)
  local list = {}
  for _, call in ipairs(M.calls(plan)) do
    if call[1] == "wait" then
      for _, w in ipairs(call[3]) do
        list[#list + 1] = type(w) == "string" and {task = call[2], on = w} or
          {task = call[2], on = w[1], distance = w.distance, when = w.when}
      end
    end
  end
  return list
end

local function legal(plan) return (plan:check()) end

-- Do an edit, and take it back unless the plan stays legal.
local function attempt(plan, edit)
  if not pcall(edit) then return false end
  if legal(plan) then return true end
  plan:undo()
  return false
end

-- By hand: a wait for each dependence that one can be written for, then the others out.
local function wait_for_all(plan)
  local done = {}
  for _, e in ipairs(plan.edges) do
    local key = e.to .. "<" .. e.from
    if e.from ~= e.to and not done[key] and chance(0.8) then
      done[key] = true
      pcall(plan.wait, plan, e.to, {e.from})
    end
  end
end

-- Issue orders, explicit distances, unnecessary waits; between sTasks of one loop, or now
-- and then of any.
local function vary_waits(plan, info)
  local tasks, loop_of = plan.tasks, {}
  for _, t in ipairs(tasks) do
    local again = second[t.name:match "^[^.]*"] and "#2" or ""
    loop_of[t.name] = (t.loop or "tile") .. again
  end
  local function related(a, b) return loop_of[a] == loop_of[b] or chance(0.02) end
  for _ = 1, random(0, 3) do
    local a, b = choose(tasks), choose(tasks)
    local w = {b.name, distance = random(0, 2), when = chance(0.6) and "issued" or "complete"}
    if a ~= b and (b.kind ~= "store" or chance(0.05)) and related(a.name, b.name) and
      attempt(plan, function() plan:wait(a.name, {w}) end) then
      info[w.when] = (info[w.when] or 0) + 1
    end
  end
  for _, w in ipairs(M.waits(plan)) do
    if not w.distance and chance(0.15) and related(w.task, w.on) then
      local before = plan:script()
      plan:unwait(w.task, w.on)
      plan:wait(w.task, {{w.on, distance = random(0, 2), when = w.when}})
      if legal(plan) then
        info.distance = (info.distance or 0) + 1
      else
        plan:undo()
        plan:undo()
        assert(plan:script() == before, "undo")
      end
    end
  end
end

local function make_legal(plan, info)
  info.waits = chance(0.3) and "hand" or "filled"
  if info.waits == "hand" then wait_for_all(plan) end
  if not legal(plan) then
    plan:fill_waits()
    if info.waits == "hand" then info.waits = "both" end
  end
  for _ = 1, 6 do                                       -- rings that are too short for the offsets
    local good, problems = plan:check()
    if good then return true end
    local p = problems[1]
    if p.code ~= "versions" then return false, p.code end
    local name = p.edge.buffer
    local now = plan.rings[name] or plan.rings[name .. ".0"]
    if not now or now >= 5 then return false, p.code end
    plan:buffers{[plan.rings[name] and name or name .. ".0"] = now + 1}
    plan:fill_waits()
  end
  return false, "versions"
end

local function grid(plan)
  local g = {}
  if chance(0.3) then g.raster = choose{"rows", "columns"} end
  if chance(0.3) then g.group = random(3) end
  if chance(0.6) then g.eus = random(3) end
  if chance(0.2) then
    g.longest_first = true
    if chance(0.5) then g.section = random(6) end
  end
  local chiplets = math.tointeger(plan.device:number "limits.chiplets")
  if chiplets > 1 and chance(0.5) then g.chiplets = chiplets end
  plan:grid(g)
  if chance(0.3) then                                    -- neighbours one after the other, where tiles load the same bytes
    local axes = {}
    for axis in pairs(plan.tile) do axes[#axes + 1] = axis end
    table.sort(axes)
    local set = pcall(plan.grid, plan, {keep = random(4) + 1, along = choose(axes)})
    local _, problems = plan:check()
    if set and problems[1] and problems[1].code == "keep" then plan:undo() end
  end
end

-- Parts along any axis, where the tile and the program let it; perhaps only of some tasks.
local function wild_split(plan, info)
  local axes = {}
  for _, t in ipairs(plan.tasks) do
    for axis in pairs(t.shape) do axes[axis] = true end
  end
  local names = {}
  for axis in pairs(axes) do names[#names + 1] = axis end
  table.sort(names)
  local axis, ways, some = choose(names), choose{2, 2, 3, 4}, nil
  if chance(0.2) then
    some = {}
    for _, t in ipairs(plan.tasks) do
      if t.kind ~= "load" and t.shape[axis] and chance(0.6) then some[#some + 1] = t.name end
    end
  end
  if some and #some == 0 then return end
  if pcall(plan.split, plan, axis, ways, some) then
    local extent = plan.tile[axis] or plan.graph.program.axes[axis]
    info.ways, info.split, info.part = ways, axis, extent // ways
  end
end

-- Tiles by a counter, of some of the plans that can have them. No random number: other plans stay as they were.
local function take_tiles(plan)
  if not plan:script():find "eus=2" then return end
  if pcall(plan.grid, plan, {dynamic = true}) and not plan:check() then plan:grid{dynamic = false} end
end

-- What plans say of launches, of some of them. No random number: other plans stay as they were.
local function launch(plan)
  local key, ready = #plan:script(), {}
  if key % 3 > 0 then return end
  for i, t in ipairs(plan.graph.program.tensors) do
    if t.role == "input" and (key // 3 + i) % 2 == 0 then ready[#ready + 1] = t.name end
  end
  plan:launch{ready = ready, next = ({"auto", "start", "loaded", "end"})[key // 6 % 4 + 1]}
  assert(plan:check())
end

-- An axis along which clusters may lie, or false: that of the raster.
local function cluster_axis(bound)
  local axes = {}
  for name, size in pairs(bound.axes) do axes[#axes + 1] = size > 1 and name or nil end
  table.sort(axes)
  return chance(0.5) and #axes > 0 and choose(axes)
end

-- An axis over which a loop runs, and into how many parts clusters may divide it; or nil.
local function divided_axis(plan)
  local axes = {}
  for _, t in ipairs(plan.graph.tasks) do
    local axis = t.loop
    local size, tile = axis and plan.graph.program.axes[axis], axis and plan.graph.tile[axis] or plan.graph.program.axes[axis]
    if size then
      local trips = (size + (tile or size) - 1) // (tile or size)
      for _, parts in ipairs{2, 3, 4} do
        if trips % parts == 0 then axes[#axes + 1] = {axis, parts} end
      end
    end
  end
  return table.unpack(#axes > 0 and choose(axes) or {})
end

-- One try of a wild plan: the plan and what is special about it, or nil and why there is none. What an edit refuses is no
-- plan.
function M.try_wild(name, bound, tile)
  local info = {program = name, ways = 1, wide = 1, wild = true, dtype = bound.tensors[1].dtype}
  local plan
  local good, why = pcall(function()
    plan = mr.plan(bound:graph{tile = tile}, M.device)
    for _, loads in ipairs(M.windows or {}) do plan:window(loads) end
    if M.shapes then shape(plan, info) end
    if M.directs then direct(plan, info) end
    if M.fetches then fetch(plan, info, true) end
    if chance(0.4) then wild_split(plan, info) end
    local spec = lanes(plan, 1)
    wild_lanes(plan, spec)
    rings(plan, append_all(plan, spec), info.alias_of)
    grid(plan)
    if chance(0.06) then plan:grid{cluster = choose{2, 2, 4}, eus = choose{4, 8}, keep = 1, along = cluster_axis(bound)} end
    if M.divides then
      local axis, parts = divided_axis(plan)
      assert(axis, "no loop")
      plan:grid{cluster = parts, eus = parts * choose{1, 2}, keep = 1, along = false, divide = axis}
      info.divided = parts
    end
  end)
  if not good then return nil, why end
  good, why = make_legal(plan, info)
  if not good then return nil, why end
  vary_waits(plan, info)
  take_tiles(plan)
  launch(plan)
  return plan, info
end

-- One try: a legal plan, or nil and why not.
local function try(name, spread)
  local ways = choose{1, 1, 1, 2, 2}
  local wide = ways == 1 and chance(0.15) and 2 or 1    -- warpgroups of a lane
  local bound, tile = draws.of[name](ways * wide)
  local plan = mr.plan(bound:graph{tile = tile}, M.device)
  local info = {program = name, ways = ways, wide = wide}
  if M.shapes then shape(plan, info) end
  local staged = M.staged and (not M.dma or chance(0.4)) and stage(plan, info)
  if M.dma then staged = copy_by_dma(plan, info, staged or {}) end
  if M.directs then direct(plan, info) end
  if M.fetches then fetch(plan, info, ways == 1) end
  if ways > 1 then plan:split("m", ways) end
  local spec = lanes(plan, wide, spread)
  spec.staged = staged or nil
  rings(plan, append_all(plan, spec), info.alias_of)
  grid(plan)
  local good, why = make_legal(plan, info)
  if not good then return nil, why end
  vary_waits(plan, info)
  take_tiles(plan)
  launch(plan)
  return plan, info
end

-- A legal plan, what is special about it, and how many tries it took. `names`: of which
-- programs; any, if nil. spread: what hangs together is on several lanes. wild: a wild plan;
-- info.refusals says why the other tries were none.
function M.draw(seed, names, spread, wild)
  math.randomseed(seed)
  local name = choose(names or wild and M.wild_programs or M.programs)
  local refusals = {}
  for tries = 1, 200 do
    local plan, info
    if wild then
      plan, info = M.try_wild(name, (draws.wild[name] or draws.of[name])(1))
    else
      plan, info = try(name, spread)
    end
    if plan then
      info.tries, info.refusals = tries, refusals
      return plan, info
    end
    refusals[#refusals + 1] = info
  end
  error(("no legal plan of %s for seed %d"):format(name, seed), 0)
end

-- What only wild plans vary.
local function wild_features(plan, info, add)
  local kinds, appended = {}, {}
  for _, t in ipairs(plan.tasks) do kinds[t.name] = t end
  local calls = M.calls(plan)
  for _, call in ipairs(calls) do
    if call[1] == "append" then
      local t, o = kinds[call[2]], call[3]
      local unit = o.seu or "default"
      if t.kind == "mma" then unit = unit .. "-" .. t.dtype end
      add(t.kind .. " on", unit)
      appended[o.lane] = (appended[o.lane] or "") .. (t.kind == "load" and "l" or t.kind == "mma" and "m" or "e")
    end
  end
  for _, call in ipairs(calls) do
    local what, name, o = call[1], call[2], call[3]
    if what == "lane" then
      local has = appended[name]
      add("registers of a lane", o.registers and (o.registers % 8 == 0 and "by-8" or "odd") or "needed")
      if not has then add("idle", (o.replicas or 1) > 1 and "replicas" or "plain") end
      if has and has:find "^l+$" then add("warps of loads", o.warps or "default") end
      if has and has:find "^e+$" then add("warps of element-wise work", o.warps or "default") end
    end
  end
  if info.split then
    add("split", info.split)
    add("part", info.part)
  end
  for axis, extent in pairs(plan.tile) do
    if axis ~= "k" and extent % 64 ~= 0 then add("tile", extent) end
  end
end

-- Structure of a plan, as counts by words such as "offset -1" and "lanes 3".
function M.features(plan, info)
  local f, in_loop, lanes, unroll = {}, {}, 0, {}
  local function add(...) local key = table.concat({...}, " ") f[key] = (f[key] or 0) + 1 end
  for _, t in ipairs(plan.tasks) do in_loop[t.name] = t.loop end
  for _, call in ipairs(M.calls(plan)) do
    local what, name, o = call[1], call[2], call[3]
    if what == "append" then add(in_loop[name] and "offset" or "tile-offset", o.at or 0) end
    if what == "lane" then
      lanes = lanes + 1
      add("warps", o.warps or "default")
      add("replicas", o.replicas or 1)
    end
  end
  for _, b in ipairs(plan.graph.buffers) do
    local versions = plan.rings[b.name]
    if versions then add(b.scope == "shared" and "ring" or "registers", versions) end
    if versions and b.scope ~= "shared" and not b.carry then unroll[versions] = true end
  end
  add("lanes", lanes)
  add("parts", info.ways)
  add("warpgroups a lane", info.wide)
  add("waits", info.waits)
  if info.divided then add("divided", info.divided) end
  if info.split_offs then add("split off", info.split_offs) end
  if info.swaps then add("swapped", info.swaps) end
  if info.aliases then add("aliases", info.aliases) end
  for _, kind in ipairs{"issued", "complete", "distance"} do
    if info[kind] then add("waits", kind) end
  end
  for axis, tile in pairs(plan.tile) do
    local size = plan.graph.program.axes[axis]
    if axis ~= "m" then add("trips", (size + tile - 1) // tile) end
    if size % tile ~= 0 then add("ragged", axis) end
  end
  local way = 1
  for v in pairs(unroll) do way = way * v end
  add("unrolled", way)
  if info.wild then wild_features(plan, info, add) end
  return f
end

---- running --------------------------------------------------------------------

-- Compile and run under some seeds, every other one looking for races. "ok"; "refused"
-- and why it is not lowered; or "failed" and what went wrong. options: target, else M.target; kernels for AMD run on the CPU where that is CUDA.
function M.verify(plan, seeds, options)
  local lowered, why = pcall(plan.compile, plan, {text = true})
  if not lowered then return "refused", why end
  local target = options and options.target or M.target
  if target == "cuda" and plan.device.name == "mi300x" then target = "host" end
  local built, k = pcall(plan.compile, plan, {target = target})
  if not built then return "failed", k end
  local bound = plan.graph.program
  local inputs = bound:inputs{seed = seeds[1]}
  local want, allowed = core.reference_allowing(bound, inputs, {tile = core.adds(bound) and plan.graph.tile or nil})
  for i, seed in ipairs(seeds) do
    local ran, got = pcall(k.run, k, inputs, {seed = seed, race = i % 2 == 1, limit = 600})
    if not ran then return "failed", ("seed %d: %s"):format(seed, got) end
    local found = within(bound, got, want, allowed, plan.tile)
    if not found.ok then
      return "failed", ("seed %d: %s is wrong in %d elements, relative error %g"):format(seed, found.worst.output, found.wrong,
        found.relative)
    end
  end
  return "ok"
end

-- What messages have in common that say the same of other sTasks, lines and numbers.
function M.kind_of(message)
  local wrong = message:match "is wrong in .*relative error (%S+)"
  if wrong then return wrong:find "nan" and "wrong on the CPU, not a number" or "wrong on the CPU" end
  local compiler = message:match "host: the C compiler failed.-error: ([^\n]*)"
  if compiler then message = "the C compiler: " .. compiler:gsub("‘[^’]*’", "'...'") end
  return (message:gsub("^seed %d+: ", ""):gsub("^%S+:%d+: ", ""):gsub("'[^']*'", "'...'"):gsub("%f[%w_]%d+", "N")
    :gsub(" in iteration N of tile N", ""):gsub(" of tile N", ""):gsub("\n.*", ""))
end

-- As checks of a test: the plan is legal, and all its outputs are right.
function M.correct(tap, what, plan, seeds)
  local good, problems = plan:check()
  if not tap.ok(good, what .. ": legal", tostring(problems)) then return end
  local result, message = M.verify(plan, seeds)
  tap.ok(result == "ok", what, message, plan:script())
end

return M
