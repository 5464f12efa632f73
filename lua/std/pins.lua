-- pins.lua - what of a plan must stay while plan:improve searches around it.
--
-- A pin is a text that says all about what it holds. Another plan keeps the pin if it gives the same text, however that
-- plan was made. So changes need not know pins.

local core = require "millrace.core"
local draft = require "millrace.draft"
local raise, show, hint, expect = core.raise, core.show, core.hint, core.expect

local pins = {}

local kinds <const> = {"tasks", "lanes", "rings", "tile", "grid"}
local singular <const> = {tasks = "sTask", lanes = "lane", rings = "buffer", tile = "tile axis"}

---- what a plan says ---------------------------------------------------------------------------

-- {tasks=, lanes=, rings=, tile=} by name, grid, and order: the names of each lane's sTasks.
local function read(plan)
  local x = {tasks = {}, lanes = {}, rings = plan.rings, tile = plan.tile, order = {}, grid = {raster = "rows", group = 1,
    eus = 0, longest_first = false, section = 0, dynamic = false, cluster = 1, keep = 1, along = false, divide = false, chiplets = 1}}
  local task_of = {}
  for _, task in ipairs(plan.tasks) do task_of[task.name] = task end
  for _, s in ipairs(draft.read(plan).list) do
    local method, name, o = s[1], s[2], s[3]
    if method == "lane" then
      x.lanes[name] = o
    elseif method == "grid" then
      for key, value in pairs(name) do x.grid[key] = value end
    elseif method == "append" then
      x.order[o.lane] = x.order[o.lane] or {}
      table.insert(x.order[o.lane], name)
      x.tasks[name] = {options = o, task = task_of[name]}
    end
  end
  for lane in pairs(x.order) do x.lanes[lane] = x.lanes[lane] or {} end
  return x
end

-- line_of[kind](x, name): what plan x says about one name.
local line_of = {}

function line_of.tasks(x, name)
  local t = x.tasks[name]
  return ("%s: %s -> %s"):format(draft.literal(t.options), table.concat(t.task.reads, " "), table.concat(t.task.writes, " "))
end

-- With the sTasks of the lane, in whatever order.
function line_of.lanes(x, name)
  local names = table.move(x.order[name] or {}, 1, #(x.order[name] or {}), 1, {})
  table.sort(names)
  return draft.literal(x.lanes[name]) .. ": " .. table.concat(names, " ")
end

function line_of.rings(x, name) return x.rings[name] end
function line_of.tile(x, name) return x.tile[name] end

-- The text of all pins; nil if a name is not there. Where all names of a kind are pinned, no other may be added. Of pinned
-- sTasks their order on each lane stays, too.
local function text_of(p, plan)
  local x, out = read(plan), {}
  for _, kind in ipairs(kinds) do
    local names = p[kind]
    if names and kind == "grid" then
      out[#out + 1] = draft.literal(x.grid)
    elseif names then
      if p.all[kind] then out[#out + 1] = table.concat(draft.keys(x[kind]), " ") end
      for _, name in ipairs(draft.keys(names)) do
        if not x[kind][name] then return nil end
        out[#out + 1] = ("%s %s"):format(name, line_of[kind](x, name))
      end
    end
    for _, lane in ipairs(names and kind == "tasks" and draft.keys(x.order) or {}) do
      local list = {}
      for _, name in ipairs(x.order[lane]) do list[#list + 1] = names[name] and name end
      if #list > 0 then out[#out + 1] = ("%s: %s"):format(lane, table.concat(list, " ")) end
    end
  end
  return table.concat(out, "\n")
end

---- what is pinned --------------------------------------------------------------------------------

-- Add a name to the set; of a split sTask or value, its slices.
local function add_name(set, kind, name, known)
  if type(name) ~= "string" then raise(("improve: pin: %s: names expected, got %s"):format(kind, show(name))) end
  local sliced = not known[name] and (kind == "tasks" or kind == "rings")
  local found = known[name] and {name} or sliced and draft.slices(name .. ".0", known) or {}
  for _, each in ipairs(found) do set[each] = true end
  if #found == 0 then
    local names = draft.keys(known)
    local near = #name > 1 and hint(name, names) or ""
    raise(("improve: pin: no %s '%s'%s"):format(singular[kind], name, near ~= "" and near or "; there are " .. table.concat(names, ", ")))
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
  expect(given == nil or type(given) == "table", "improve", "pin: table of what stays", given)
  for key, value in pairs(given or {}) do
    if key == "grid" and type(value) ~= "boolean" then
      raise("improve: pin: grid: true or false expected, got " .. show(value))
    elseif key ~= "grid" and not singular[key] then
      raise(("improve: pin: unknown kind %s%s"):format(show(key), hint(key, kinds)))
    end
  end
  for _, kind in ipairs(kinds) do
    local value = given and given[kind]
    if value then p[kind], p.all[kind] = kind == "grid" and {} or names_of(kind, value, x[kind]), value == true end
  end
  p.text = text_of(p, plan)
  return p
end

-- Does a plan keep them?
function pins.hold(p, plan) return text_of(p, plan) == p.text end

-- "tasks softmax; tile"; "nothing"
function pins.text(p)
  local texts = {}
  for _, kind in ipairs(kinds) do
    if p.all[kind] and (kind == "grid" or next(p[kind])) then
      texts[#texts + 1] = kind
    elseif p[kind] and next(p[kind]) then
      texts[#texts + 1] = ("%s %s"):format(kind, table.concat(draft.keys(p[kind]), " "))
    end
  end
  return #texts > 0 and table.concat(texts, ", ") or "nothing"
end

return pins
