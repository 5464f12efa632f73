-- pins.lua - what of a plan must stay while the rest of it is searched.
--
-- A pin is read as a list of lines that say all about what it holds: another plan keeps it if it gives
-- the same lines. So it does not matter how the other plan came about.

local core = require "millrace.core"
local draft = require "millrace.draft"
local raise, show, hint = core.raise, core.show, core.hint

local pins = {}

local kinds <const> = {"tasks", "lanes", "rings", "tile", "grid"}
local one <const> = {tasks = "sTask", lanes = "lane", rings = "buffer", tile = "tile axis"}

local function sorted(set)
  local list = {}
  for name in pairs(set) do list[#list + 1] = name end
  table.sort(list)
  return list
end

---- what a plan says ---------------------------------------------------------------------------

-- {tasks=, lanes=, rings=, tile=}: by name; order: of each lane, its sTasks; grid.
local function read(plan)
  local x = {tasks = {}, lanes = {}, rings = plan.rings, tile = plan.tile, order = {}, grid = {raster = "rows", group = 1,
    eus = 0, longest_first = false, cluster = 1}}
  local of = {}
  for _, task in ipairs(plan.tasks) do of[task.name] = task end
  for _, s in ipairs(draft.read(plan).list) do
    local what, name, o = s[1], s[2], s[3]
    if what == "lane" then
      x.lanes[name] = o
    elseif what == "grid" then
      for key, value in pairs(name) do x.grid[key] = value end
    elseif what == "append" then
      x.order[o.lane] = x.order[o.lane] or {}
      table.insert(x.order[o.lane], name)
      x.tasks[name] = {o = o, task = of[name]}
    end
  end
  for lane in pairs(x.order) do x.lanes[lane] = x.lanes[lane] or {} end
  return x
end

local lines_of = {}

-- What it does, where and when; and of each lane, in which order it has those that are pinned.
function lines_of.tasks(x, names, out)
  for _, name in ipairs(sorted(names)) do
    local t = x.tasks[name]
    if not t then return false end
    out[#out + 1] = ("%s %s: %s -> %s"):format(name, draft.literal(t.o), table.concat(t.task.reads, " "),
      table.concat(t.task.writes, " "))
  end
  for _, lane in ipairs(sorted(x.order)) do
    local list = {}
    for _, name in ipairs(x.order[lane]) do list[#list + 1] = names[name] and name end
    if #list > 0 then out[#out + 1] = ("%s: %s"):format(lane, table.concat(list, " ")) end
  end
  return true
end

-- Its warps, registers and replicas, and which sTasks it has, in whatever order.
function lines_of.lanes(x, names, out)
  for _, name in ipairs(sorted(names)) do
    if not x.lanes[name] then return false end
    local list = table.move(x.order[name] or {}, 1, #(x.order[name] or {}), 1, {})
    table.sort(list)
    out[#out + 1] = ("%s %s: %s"):format(name, draft.literal(x.lanes[name]), table.concat(list, " "))
  end
  return true
end

local function numbers(kind)
  return function(x, names, out)
    for _, name in ipairs(sorted(names)) do out[#out + 1] = ("%s %s"):format(name, x[kind][name]) end
    return true
  end
end

lines_of.rings, lines_of.tile = numbers "rings", numbers "tile"

function lines_of.grid(x, _, out)
  out[#out + 1] = draft.literal(x.grid)
  return true
end

-- All names of a kind that are pinned as a whole: others must not come, either.
local function text_of(p, plan)
  local x, out = read(plan), {}
  for _, kind in ipairs(kinds) do
    local names = p[kind]
    if names and p.all[kind] and kind ~= "grid" then out[#out + 1] = table.concat(sorted(x[kind]), " ") end
    if names and not lines_of[kind](x, names, out) then return nil end
  end
  return table.concat(out, "\n")
end

---- what is pinned --------------------------------------------------------------------------------

-- The names that one means: of a split sTask or value, its parts.
local function add_name(set, kind, name, known)
  if type(name) ~= "string" then
    raise(("improve: pin: %s: names expected, got %s"):format(kind, show(name)))
  end
  local any = known[name]
  if any then set[name] = true end
  for _, part in ipairs(not any and (kind == "tasks" or kind == "rings") and draft.parts(name .. ".0", known) or {}) do
    set[part], any = true, true
  end
  if not any then
    local names = sorted(known)
    local near = #name > 1 and hint(name, names) or ""
    raise(("improve: pin: no %s '%s'%s"):format(one[kind], name, near ~= "" and near or "; there are " ..
      table.concat(names, ", ")))
  end
end

local function names_of(kind, given, known)
  local set = {}
  if given == true then
    for name in pairs(known) do set[name] = true end
  elseif type(given) == "string" then
    add_name(set, kind, given, known)
  elseif type(given) == "table" then
    for key in pairs(given) do
      if math.type(key) ~= "integer" then
        raise(("improve: pin: %s: list of names expected, got the field %s"):format(kind, show(key)))
      end
    end
    for _, name in ipairs(given) do add_name(set, kind, name, known) end
  else
    raise(("improve: pin: %s: list of names or true expected, got %s"):format(kind, show(given)))
  end
  return set
end

-- given: {tasks={names} or true, lanes=, rings=, tile=, grid=true}, or nil.
function pins.of(plan, given)
  local p, x = {all = {}}, read(plan)
  if given ~= nil and type(given) ~= "table" then
    raise("improve: pin: table of what stays expected, got " .. show(given))
  end
  for key, value in pairs(given or {}) do
    if not lines_of[key] then raise(("improve: pin: unknown kind %s%s"):format(show(key), hint(key, kinds))) end
    if key == "grid" and type(value) ~= "boolean" then
      raise("improve: pin: grid: true or false expected, got " .. show(value))
    end
  end
  for _, kind in ipairs(kinds) do
    local value = given and given[kind]
    if kind == "grid" then
      p.grid = value and {} or nil
    elseif value ~= nil and value ~= false then
      p[kind], p.all[kind] = names_of(kind, value, x[kind]), value == true
    end
  end
  p.text = text_of(p, plan)
  return p
end

-- Does a plan keep them?
function pins.hold(p, plan) return text_of(p, plan) == p.text end

-- "tasks softmax; tile"; "nothing"
function pins.text(p)
  local parts = {}
  for _, kind in ipairs(kinds) do
    if p[kind] and (kind == "grid" or next(p[kind])) then
      local all = kind == "grid" or p.all[kind]
      parts[#parts + 1] = all and kind or ("%s %s"):format(kind, table.concat(sorted(p[kind]), " "))
    end
  end
  return #parts > 0 and table.concat(parts, ", ") or "nothing"
end

return pins
