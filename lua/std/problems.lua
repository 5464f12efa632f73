-- problems.lua - plan:check(), and its problems as text: what one statement repairs is one paragraph.

local core = require "millrace.core"
local draft = require "millrace.draft"
local entry = core.entry

local origin = setmetatable({}, {__mode = "k"})         -- by list of problems: its plan, and where in its history that was

-- The plan as it was checked, to try repairs on; nil if it has changed since.
local function copy_of(list)
  local from = origin[list]
  return from and core.is_at(from.plan, from.mark) and from.plan:copy() or nil
end

local function is_missing_wait(p) return p.code == "missing_wait" or p.code == "misplaced_wait" end

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
local function grouped(list)
  local first, count = nil, 0
  for _, p in ipairs(list) do
    if is_missing_wait(p) then first, count = first or p, count + 1 end
  end
  local plan = count > 1 and copy_of(list)
  if not plan or plan:fill_waits() == 0 then return nil end
  local texts, n, statement = waits_text(plan, origin[list].plan)
  return {location = first.location, code = "missing_wait", hint = statement or "plan:fill_waits()",
    message = ("%d dependences are not kept, and %d wait%s them: %s. The first one: %s"):format(count, n,
      n == 1 and " keeps" or "s keep", texts, first.message)}
end

-- A problem whose hint is no statement, with the statements that were tried and make the plan legal, if there are some.
local function tried(list, p)
  local plan = p.hint and not draft.is_code(p.hint) and copy_of(list)
  local first = plan and require("millrace.suggest").suggest(plan)[1]
  return first and {location = p.location, code = p.code, message = p.message, hint = first.text} or p
end

-- The problems as they are shown: all missing waits as one, and those that one hint repairs.
local function shown_of(list)
  local shown, alike, group = {}, {}, grouped(list)
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
    shown[i] = s.count == 0 and p or {location = p.location, code = p.code, hint = p.hint,
      message = ("%s, and so on: %d more are repaired alike"):format(p.message, s.count)}
  end
  return shown
end

local function text_of(list, ...)
  local shown = shown_of(list)
  if #shown == 1 and shown[1] == list[1] then shown[1] = tried(list, shown[1]) end
  return core.problems_text(shown, ...)
end

local function check(plan)
  local good, list = core.check(plan)
  if not good then origin[list] = {plan = plan, mark = core.mark(plan)} end
  return good, list
end

return function()
  core.method("millrace.plan", "check", entry(check))
  core.shown("millrace.problems", entry(text_of))
  return {}
end
