-- repairs.lua - the problems of plan:check() as everything shows them: what one statement repairs is one problem, with that statement.

local core = require "millrace.core"
local draft = require "millrace.draft"
local repair = require "millrace.repair"
local is_missing_wait = repair.is_missing_wait

local origin = setmetatable({}, {__mode = "k"})         -- by list of problems: its plan, and where in its history that was

-- The plan as it was checked, to try repairs on; nil if it has changed since.
local function copy_of(list)
  local from = origin[list]
  return from and core.is_at(from.plan, from.mark) and from.plan:copy() or nil
end

-- "load_a for mma; mma for load_a and load_b": the waits that a plan has and another one lacks, how many, and the statement if
-- there is one.
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
  local texts, statement = {}, nil
  for i, name in ipairs(names) do texts[i] = ("%s for %s"):format(name, table.concat(list[name], " and ")) end
  if count == 1 then statement = draft.statement{"wait", names[1], list[names[1]]} end
  return table.concat(texts, "; "), count, statement
end

-- All missing waits as one problem; nil if there are not several.
local function missing_waits(list)
  local first, count = nil, 0
  for _, p in ipairs(list) do
    if is_missing_wait(p) then first, count = first or p, count + 1 end
  end
  local plan = count > 1 and copy_of(list)
  if not plan or plan:fill_waits() == 0 then return nil end
  local texts, n, statement = waits_text(plan, origin[list].plan)
  return {of = first, location = first.location, code = "missing_wait", hint = statement or "plan:fill_waits()", task = first.task,
    other = first.other,
    message = ("%d dependences are not kept, and %d wait%s them: %s. The first one: %s"):format(count, n,
      n == 1 and " keeps" or "s keep", texts, first.message)}
end

local repairs = {}

-- Does the plan not fit an EU, so that no statement about a single ring or lane helps? What else is wrong may be otherwise with
-- another tile.
function repairs.is_too_large(p)
  return (p.code == "shared_memory" or p.code == "registers") and not draft.is_code(p.hint)
end

-- The problems in fewer: all missing waits as one, and those that one hint repairs; first that the tile is too large, if it is.
-- A problem that is not as it was in the list has the one that it begins with in `of`.
function repairs.grouped(list)
  local shown, alike, group = {}, {}, missing_waits(list)
  for _, p in ipairs(list) do
    if group and is_missing_wait(p) then p = group end
    local key = p.hint or p
    local same = alike[key]
    if not same then
      same = {of = p, count = 0}
      shown[#shown + 1], alike[key] = same, same
    elseif p ~= group and same.of.code == p.code then
      same.count = same.count + 1
    elseif p ~= group then
      shown[#shown + 1] = {of = p, count = 0}
    end
  end
  for i, s in ipairs(shown) do
    local p = s.of
    shown[i] = s.count == 0 and p or {of = p.of or p, location = p.location, code = p.code, hint = p.hint, task = p.task, other = p.other,
      message = ("%s, and so on: %d more are repaired alike"):format(p.message, s.count)}
  end
  local first = {}
  for i = #shown, 1, -1 do
    if repairs.is_too_large(shown[i]) then table.insert(first, 1, table.remove(shown, i)) end
  end
  return table.move(shown, 1, #shown, #first + 1, first)
end

-- Is there more to do about the problem, one of those shown, than its hint says? Of missing waits the hint says all, also if
-- other problems come up when they are there.
local function needs_more(p, shown)
  if not p.hint or is_missing_wait(p) then return false end
  return #shown == 1 or not draft.is_code(p.hint)
end

-- The problems as everything shows them: grouped; and where hints are no statements, or do not suffice, with the first suggestion of
-- plan:suggest() instead, if it makes the plan legal.
function repairs.shown(list)
  local from, shown, first = origin[list], repairs.grouped(list), nil
  if from and from.shown and core.is_at(from.plan, from.mark) then return from.shown end
  for i, p in ipairs(shown) do
    local plan = first == nil and needs_more(p, shown) and copy_of(list)
    if plan then first = require("millrace.suggest").suggest(plan)[1] or false end
    if first and first.seconds and needs_more(p, shown) then
      shown[i] = {of = p.of or p, location = p.location, code = p.code, message = p.message, task = p.task, other = p.other,
        hint = first.text}
    end
  end
  if from then from.shown = shown end
  return shown
end

-- plan:check()
function repairs.check(plan)
  local good, list = core.check(plan)
  if not good then origin[list] = {plan = plan, mark = core.mark(plan)} end
  return good, list
end

return repairs
