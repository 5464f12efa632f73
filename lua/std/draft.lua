-- draft.lua - a plan as a list of statements, to be changed and made again.
--
-- A draft is {tile=, list=}; a statement is its method and its arguments: {"buffers", {a=2}}.
-- Parts of a split task, "mma.0" and "mma.1", are changed alike.

local core = require "millrace.core"

local draft = {}

-- Keys that come before all others, in this order.
local first <const> = {seu = 1, lane = 2, at = 3, warps = 1, columns = 2, registers = 3, spare = 4, replicas = 5, priority = 6, raster = 1, group = 2}

-- The names in a table by the alphabet.
function draft.keys(t)
  local keys = {}
  for key in pairs(t) do
    if type(key) == "string" then keys[#keys + 1] = key end
  end
  table.sort(keys)
  return keys
end

-- A table as Lua text: its list, then names and values: {"a", k=64, ["in"]=128}. Numbers read back exactly.
function draft.literal(t)
  local function text(x)
    if getmetatable(x) == "millrace.any" then return tostring(x) end
    return type(x) == "table" and draft.literal(x) or ("%q"):format(x)
  end
  local slices, keys = {}, draft.keys(t)
  for i, x in ipairs(t) do slices[i] = text(x) end
  table.sort(keys, function(a, b)
    local i, k = first[a] or 9, first[b] or 9
    return i < k or i == k and a < b
  end)
  for _, key in ipairs(keys) do
    local plain = key:find "^[%a_][%w_]*$" and load("local " .. key)    -- "in" is no name
    slices[#slices + 1] = ((plain and "%s" or "[%q]") .. "=%s"):format(key, text(t[key]))
  end
  return "{" .. table.concat(slices, ", ") .. "}"
end

local DEPTH_MAX <const> = 32                            -- of tables in tables; one that holds itself has no end

-- Does draft.literal give a text that reads back as the same value? Of numbers, texts, booleans, mr.any, and plain tables of these, that
-- have a list and names.
function draft.has_literal(x, depth)
  local kind = type(x)
  if kind == "number" or kind == "string" or kind == "boolean" or getmetatable(x) == "millrace.any" then return true end
  if kind ~= "table" or getmetatable(x) ~= nil or depth == DEPTH_MAX then return false end
  for key, value in pairs(x) do
    local listed = math.type(key) == "integer" and key >= 1 and key <= #x
    if not (listed or type(key) == "string") or not draft.has_literal(value, (depth or 0) + 1) then return false end
  end
  return true
end

-- A statement as Lua text: plan:lane("c0", {warps=4}).
function draft.statement(s)
  local arguments = {}
  for i = 2, #s do arguments[i - 1] = type(s[i]) == "table" and draft.literal(s[i]) or ("%q"):format(s[i]) end
  local lone = #s == 2 and type(s[2]) == "table"
  return ("plan:%s" .. (lone and "%s" or "(%s)")):format(s[1], table.concat(arguments, ", "))
end

-- Statements in one line of Lua.
function draft.text(list)
  local texts = {}
  for i, s in ipairs(list) do texts[i] = draft.statement(s) end
  return table.concat(texts, "; ")
end

-- Edit a plan by a statement.
function draft.apply(plan, s) return plan[s[1]](plan, table.unpack(s, 2)) end

-- Is the hint of a problem code, and not words? nil is none.
function draft.is_code(hint)
  return hint ~= nil and hint:find "^plan:" ~= nil and load("local plan = ... " .. hint, "=hint", "t") ~= nil
end

local function clone(x)
  if type(x) ~= "table" then return x end
  local copy = {}
  for key, value in pairs(x) do copy[key] = clone(value) end
  return copy
end

draft.copy = clone

-- Of statements as text, and a tile.
function draft.parse(text, tile)
  local list = {}
  local recorder = setmetatable({}, {__index = function(_, name)
    return function(_, ...) list[#list + 1] = {name, ...} end
  end})
  assert(load("local plan = ...\n" .. text, "=plan", "t", {}))(recorder)
  return {tile = tile, list = list}
end

function draft.read(plan) return draft.parse(core.statements(plan), plan.tile) end

function draft.make(d, bound, device)
  local plan = core.plan(bound:graph{tile = d.tile}, device)
  for _, s in ipairs(d.list) do draft.apply(plan, s) end
  return plan
end

-- The plan that these statements make, a text as core.statements and a search have it; they are executed as if typed by hand.
function draft.plan(bound, device, text, tile)
  local plan = core.plan(bound:graph{tile = tile}, device)
  assert(load("local plan = ...\n" .. text, "=[millrace.draft]", "t", {}))(plan)
  return plan
end

function draft.add(d, ...) d.list[#d.list + 1] = {...} end

-- Every statement of a method, with its index: for i, s in draft.each(d, "lane") do
function draft.each(d, method)
  local i = 0
  return function()
    repeat i = i + 1 until not d.list[i] or d.list[i][1] == method
    if d.list[i] then return i, d.list[i] end
  end
end

function draft.find(d, method, name)
  for i, s in draft.each(d, method) do
    if s[2] == name then return i, s end
  end
end

-- "mma.1" -> "mma", 1; "mma" -> "mma"
local function slice_of(name)
  local base, slice = name:match "^(.*)%.(%d+)$"
  return base or name, math.tointeger(slice)
end

draft.slice_of = slice_of

-- The names that the slices of an sTask, or of a buffer, have among `names`; itself if it is not split.
function draft.slices(name, has)
  local base, slice = slice_of(name)
  if not slice then return {name} end
  local names = {}
  for i = 0, 15 do
    local other = ("%s.%d"):format(base, i)
    if has[other] then names[#names + 1] = other end
  end
  return names
end

---- lanes that share a tile ----------------------------------------------------------------

-- The lanes of the slices: {"c0", "c1"}; and the split; nil if there is none, or several.
function draft.shared(d)
  local _, split = draft.each(d, "split")()
  local lanes, ways = {}, split and split[3]
  for i, s in draft.each(d, "append") do
    local _, slice = slice_of(s[2])
    if slice and lanes[slice + 1] == nil then lanes[slice + 1] = s[3].lane end
  end
  for i, s in draft.each(d, "split") do
    if s ~= split then return nil end
  end
  for i = 1, ways or 0 do
    if not lanes[i] then return nil end
    for k = 1, i - 1 do
      if lanes[i] == lanes[k] then return nil end
    end
  end
  return split and lanes, split
end

local function joined_waits(list)
  local out, has = {}, {}
  for _, on in ipairs(list) do
    local name = type(on) == "table" and on[1] or on
    local base, slice = slice_of(name)
    local order = type(on) == "table" and on.when == "issued" and slice and slice > 0
    if not order and not has[base] then
      has[base] = true
      if type(on) == "table" then on[1] = base end
      out[#out + 1] = type(on) == "table" and on or base
    end
  end
  return out
end

local function joined_versions(versions)
  local out = {}
  for name, n in pairs(versions) do out[slice_of(name)] = n end
  return out
end

-- Without the split: the first slice's lane does all of it.
function draft.join(d)
  local lanes = draft.shared(d)
  if not lanes then return end
  local gone, list = {}, {}
  for i = 2, #lanes do gone[lanes[i]] = true end
  for _, s in ipairs(d.list) do
    local method, slice = s[1], nil
    if method == "buffers" then s[2] = joined_versions(s[2]) end
    if method == "append" or method == "wait" then s[2], slice = slice_of(s[2]) end
    if method == "wait" then s[3] = joined_waits(s[3]) end
    local other = slice and slice > 0 or method == "lane" and gone[s[2]] or method == "split"
    if not other then list[#list + 1] = s end
  end
  d.list = list
end

-- The statements that shape the graph, which come first.
local shaping <const> = {window = true, split_off = true, fetch = true, direct = true, swap = true, split = true}

function draft.shaping(d)
  local list = {}
  for _, s in ipairs(d.list) do
    if shaping[s[1]] then list[#list + 1] = s end
  end
  return list
end

-- Names of the sTasks and buffers of the graph.
local function names_of(d, bound, device)
  local tasks, buffers = {}, {}
  local plan = draft.make({tile = d.tile, list = draft.shaping(d)}, bound, device)
  for _, task in ipairs(plan.tasks) do tasks[task.name] = true end
  for name in pairs(plan.rings) do buffers[name] = true end
  return tasks, buffers
end

-- Names of so many lanes: the one there is, and others that have no sTasks.
function draft.lane_names(d, first, ways)
  local taken, names, i = {[first] = true}, {first}, 0
  for _, s in draft.each(d, "append") do taken[s[3].lane] = true end
  while #names < ways do
    local name = ("c%d"):format(i)
    if not taken[name] then names[#names + 1] = name end
    i = i + 1
  end
  return names
end

local function split_waits(list, tasks, slice, ways)
  local out = {}
  for _, on in ipairs(list) do
    local name = type(on) == "table" and on[1] or on
    local from, to = slice or 0, slice or ways - 1
    if tasks[name] then from, to = 0, 0 end
    for i = from, to do
      local copy = clone(on)
      local full = tasks[name] and name or ("%s.%d"):format(name, i)
      if type(on) == "table" then copy[1] = full else copy = full end
      out[#out + 1] = copy
    end
  end
  return out
end

local function split_versions(versions, buffers, ways)
  local out = {}
  for name, n in pairs(versions) do
    for i = 0, buffers[name] and 0 or ways - 1 do
      out[buffers[name] and name or ("%s.%d"):format(name, i)] = n
    end
  end
  return out
end

-- The other slices of what stands in the list from `from` on as its first slice.
local function add_slices(list, own, lanes, tasks, ways)
  for i = 1, ways - 1 do
    for _, s in ipairs(own) do
      local copy = clone(s)
      copy[2] = ("%s.%d"):format(s[2], i)
      if s[1] == "append" then copy[3].lane = lanes[i + 1] end
      if s[1] == "wait" then copy[3] = split_waits(s[3], tasks, i, ways) end
      list[#list + 1] = copy
    end
  end
  for _, s in ipairs(own) do
    if s[1] == "wait" then s[3] = split_waits(s[3], tasks, 0, ways) end
    s[2] = s[2] .. ".0"
  end
end

-- Share the work of a lane with so many more, along the axis. Returns their names.
function draft.split(d, bound, device, lane, axis, ways)
  local at = 1
  while d.list[at] and d.list[at][1] ~= "split" and shaping[d.list[at][1]] do at = at + 1 end
  table.insert(d.list, at, {"split", axis, ways})
  local tasks, buffers = names_of(d, bound, device)
  local lanes, list, own, waits = draft.lane_names(d, lane, ways), {}, {}, {}
  for _, s in ipairs(d.list) do
    local method = s[1]
    if method == "buffers" then s[2] = split_versions(s[2], buffers, ways) end
    local shared = method ~= "append" and method ~= "wait" or tasks[s[2]]
    if not shared then
      own[#own + 1] = s
    elseif method == "wait" then
      s[3] = split_waits(s[3], tasks, nil, ways)
    end
    list[#list + 1] = s
    if method == "lane" and s[2] == lane then
      for i = 2, ways do
        local copy = clone(s)
        copy[2] = lanes[i]
        list[#list + 1] = copy
      end
    end
  end
  add_slices(list, own, lanes, tasks, ways)
  d.list = list
  return lanes
end

-- "; m=128 and m=256", what two plans of one program were bound with and differ in; "" if that is none of these.
local function difference_text(plan, other)
  local function parts(p)
    local of, order = {}, {}
    local _, _, sizes, given = core.identity(p.graph.program)
    for part in (sizes .. " " .. given):gmatch "%S+" do
      local key = part:match "^[^=]*"
      of[key], order[#order + 1] = part, key
    end
    return of, order
  end
  local a, first = parts(plan)
  local b, second = parts(other)
  local one, two, seen = {}, {}, {}
  for _, order in ipairs{first, second} do
    for _, key in ipairs(order) do
      if a[key] ~= b[key] and not seen[key] then
        seen[key], one[#one + 1], two[#two + 1] = true, a[key] or "no " .. key, b[key] or "no " .. key
      end
    end
  end
  return one[1] and ("; %s and %s"):format(table.concat(one, ", "), table.concat(two, ", ")) or ""
end

-- What two plans cannot be compared for, as a sentence: other programs, sizes or options; nil if they solve the same problem.
function draft.difference(plan, other)
  local a, b = plan.graph.program, other.graph.program
  if tostring(a) == tostring(b) then return nil end
  return a.name == b.name and ("the plans are of '%s' with different sizes or options%s"):format(a.name, difference_text(plan, other))
    or ("the plans are of different programs: '%s' and '%s'"):format(a.name, b.name)
end

return draft
