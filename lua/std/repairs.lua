-- repairs.lua - the problems of plan:check() as everything shows them: what one statement repairs is one problem, with that statement.

local core = require "millrace.core"
local draft = require "millrace.draft"
local record = require "millrace.record"
local repair = require "millrace.repair"
local is_missing_wait = repair.is_missing_wait

local repairs = {}

local origin = setmetatable({}, {__mode = "k"})         -- by list of problems: its plan, and where in its history that was
local found = setmetatable({}, {__mode = "k"})          -- by problem without a hint of its own yet: its list, and the hint it was found with

-- The hint that the problem was found with.
local function hint_of(p)
  local from = found[p]
  if from then return from.hint end
  return rawget(p, "hint")
end

-- The plan as it was checked, to try repairs on; nil if it has changed since.
local function copy_of(list)
  local from = origin[list]
  return from and core.is_at(from.plan, from.mark) and from.plan:copy() or nil
end

-- "load_a for mma; mma for load_a and load_b": the waits that a plan has and another one lacks, how many, the statement if there is
-- one, and their sTasks as a set of "task other".
local function waits_text(plan, before)
  local has, names, list, count = {}, {}, {}, 0
  for _, s in draft.each(draft.read(before), "wait") do
    for _, on in ipairs(s[3]) do has[s[2] .. " " .. (type(on) == "string" and on or draft.literal(on))] = true end
  end
  for _, s in draft.each(draft.read(plan), "wait") do
    for _, on in ipairs(s[3]) do
      if type(on) == "string" and not has[s[2] .. " " .. on] then
        if not list[s[2]] then names[#names + 1], list[s[2]] = s[2], {} end
        table.insert(list[s[2]], on)
        count = count + 1
      end
    end
  end
  local texts, statement, pairs_of = {}, nil, {}
  for _, name in ipairs(names) do
    for _, on in ipairs(list[name]) do pairs_of[name .. " " .. on] = true end
  end
  for i, name in ipairs(names) do texts[i] = ("%s for %s"):format(name, table.concat(list[name], " and ")) end
  if count == 1 then statement = draft.statement{"wait", names[1], list[names[1]]} end
  return table.concat(texts, "; "), count, statement, pairs_of
end

-- All missing waits as one problem; nil if there are not several.
local function missing_waits(list)
  local first, count = nil, 0
  for _, p in ipairs(list) do
    if is_missing_wait(p) then first, count = first or p, count + 1 end
  end
  local plan = count > 1 and copy_of(list)
  if not plan or plan:fill_waits() == 0 then return nil end
  local texts, n, statement, named = waits_text(plan, origin[list].plan)
  for i = #list, 1, -1 do                               -- one of the waits that are named, if a dependence is kept by just that
    local p = list[i]
    if is_missing_wait(p) and p.task and p.other and named[p.task .. " " .. p.other] then first = p end
  end
  return {of = first, location = first.location, code = "missing_wait", hint = statement or "plan:fill_waits()", task = first.task,
    other = first.other,
    message = ("%d dependences are not kept, and %d wait%s them: %s. The first one: %s"):format(count, n,
      n == 1 and " keeps" or "s keep", texts, first.message)}
end

-- Does the plan not fit an EU, so that no statement about a single ring or lane helps? What else is wrong may be otherwise with
-- another tile.
function repairs.is_too_large(p)
  return (p.code == "shared_memory" or p.code == "registers") and not draft.is_code(hint_of(p))
end

-- The problems in fewer: all missing waits as one, and those that one hint repairs; first that the tile is too large, if it is.
-- A problem that is not as it was in the list has the one that it begins with in `of`, and all have the hint that they were found with.
-- Returns also where each one of the list is among those shown.
function repairs.grouped(list)
  local shown, alike, group, shown_as = {}, {}, missing_waits(list), {}
  for _, x in ipairs(list) do
    local p = group and is_missing_wait(x) and group or x
    local key = hint_of(p) or p
    local same = alike[key]
    if not same then
      same = {of = p, count = 0}
      shown[#shown + 1], alike[key] = same, same
    elseif p ~= group and same.of.code == p.code then
      same.count = same.count + 1
    elseif p ~= group then
      same = {of = p, count = 0}
      shown[#shown + 1] = same
    end
    shown_as[x] = same
  end
  for i, s in ipairs(shown) do
    local p = s.of
    local text = s.count == 0 and p.message or ("%s, and so on: %d more are repaired alike"):format(p.message, s.count)
    s.shown = {of = p.of or p, location = p.location, code = p.code, hint = hint_of(p), task = p.task, other = p.other, message = text}
    shown[i] = s.shown
  end
  for x, s in pairs(shown_as) do shown_as[x] = s.shown end
  local first = {}
  for i = #shown, 1, -1 do
    if repairs.is_too_large(shown[i]) then table.insert(first, 1, table.remove(shown, i)) end
  end
  return table.move(shown, 1, #shown, #first + 1, first), shown_as
end

-- Is there more to do about the problem, one of those shown, than its hint says? Of missing waits the hint says all, also if
-- other problems come up when they are there.
local function needs_more(p, shown)
  if not p.hint or is_missing_wait(p) then return false end
  return #shown == 1 or not draft.is_code(hint_of(p))
end

-- The problems as everything shows them: grouped; and where hints are no statements, or do not suffice, with the first suggestion of
-- plan:suggest() instead, if it makes the plan legal. Returns also where each one of the list is among these.
function repairs.shown(list)
  local from = origin[list]
  if from and from.shown then return from.shown, from.shown_as end
  local shown, shown_as = repairs.grouped(list)
  local first
  for _, p in ipairs(shown) do
    local plan = first == nil and needs_more(p, shown) and copy_of(list)
    if plan then first = require("millrace.suggest").suggest(plan)[1] or false end
    if first and first.seconds and needs_more(p, shown) then
      local costs = require("millrace.suggest").costs(first)
      p.instead = costs and ("%s  -- %s"):format(first.text, costs) or first.text
    end
  end
  for _, p in ipairs(shown) do p.hint, p.instead = p.instead or p.hint, nil end
  if from and core.is_at(from.plan, from.mark) then from.shown, from.shown_as = shown, shown_as end
  return shown, shown_as
end

-- A field that a problem has not: its hint, if that has to be looked for first.
local function late_hint(p, name)
  local from = name == "hint" and found[p]
  if not from then return nil end
  local _, shown_as = repairs.shown(from.list)
  p.hint, found[p] = shown_as[p].hint, nil
  return p.hint
end

repairs.problem = record.of("problem", "code message hint task other edge location file line place", { -- deprecated: place
  __name = "millrace.problem",
  __pairs = function(p)
    local _ = p.hint
    return next, p
  end,
  __tostring = core.entry(function(p) return core.problems_text{p} end)}, late_hint)

-- The problems as they were found, with hints for each alone, for those who try repairs.
function repairs.raw(plan)
  local good, list = core.check(plan)
  if not good then origin[list] = {plan = plan, mark = core.mark(plan)} end
  return good, list
end

-- plan:check(). The hints are those that are shown, and are looked for when one is read; but each missing wait has its own.
function repairs.check(plan)
  local good, list = repairs.raw(plan)
  for _, p in ipairs(list) do
    if not is_missing_wait(p) then
      found[p] = {list = list, hint = p.hint}
      p.hint = nil
    end
    setmetatable(p, repairs.problem)
  end
  for _, p in ipairs(list.notes or {}) do setmetatable(p, repairs.problem) end
  return good, list
end

-- The notes about the plan itself: not that its device has no kernels, which is so for all plans of the device.
function repairs.notes(list)
  local out = {}
  for _, note in ipairs(list.notes or {}) do
    if note.code ~= "model_only" then out[#out + 1] = note end
  end
  return out
end

-- "'a'"; "'a' and 'b'"; "'a', 'b' and 'c'"
local function listed(names)
  if #names == 1 then return names[1] end
  return ("%s and %s"):format(table.concat(names, ", ", 1, #names - 1), names[#names])
end

-- Such notes as people read them: loads that threads copy for the same reason are in one, also if that is about the rows of a tensor
-- of each. It has the location of the first.
function repairs.joined(notes)
  local out, alike = {}, {}
  for _, note in ipairs(notes) do
    local name, reason = note.message:match "^('[^']*') is( copied by the threads .*)$"
    local tensor = reason and reason:match "rows of ('[^']*') have"
    if tensor then reason = reason:gsub("rows of '[^']*' have", "rows of %%s have") end
    local key = note.code == "by_threads" and name and ("%s\n%s"):format(reason, note.hint)
    local same = key and alike[key]
    if same then
      same.names[#same.names + 1] = name
      if tensor and same.seen[tensor] == nil then same.tensors[#same.tensors + 1], same.seen[tensor] = tensor, true end
      local why = reason:gsub("%f[%a]its%f[%A]", "their"):gsub("rows of %%s have", function()
        return ("rows of %s have"):format(listed(same.tensors))
      end)
      out[same.at] = {location = same.location, code = note.code, hint = note.hint,
        message = ("%s are%s"):format(listed(same.names), why)}
    else
      out[#out + 1] = note
      if key then
        alike[key] = {names = {name}, tensors = {tensor}, seen = tensor and {[tensor] = true}, at = #out, location = note.location}
      end
    end
  end
  return out
end

-- How many problems a plan that is not legal has, as they are shown, and the first one.
function repairs.first(plan)
  local _, list = repairs.raw(plan)
  local shown = repairs.shown(list)
  return #shown, shown[1]
end

return repairs
