-- suggest.lua - plan:suggest(): the next best statements for a plan, tried; and suggestions as values, of which those that
-- tl:why() gives are some.

local core = require "millrace.core"
local changes = require "millrace.changes"
local draft = require "millrace.draft"
local options = require "millrace.options"
local record = require("millrace.record").of
local repair = require "millrace.repair"
local raise, expect = core.raise, core.expect

local suggest = {}

suggest.LEAST = 0.005                                   -- of the time: less is not worth a line
local SHOWN <const> = 5
local FIRST <const> = 3                                 -- changes tried with others where none helps alone
local REPAIRS <const> = 12                              -- the most further statements that make a plan legal
-- Trying stops when so many events have been played; making and checking a plan counts as some.
local EVENTS <const>, EVENTS_A_TRY <const>, EVENTS_A_PLAN <const> = 3300000, 20000, 50000

---- a suggestion ------------------------------------------------------------------------------

local origin = setmetatable({}, {__mode = "k"})         -- by suggestion: the plan, and where in its history it was made

local function apply(s)
  local from = origin[s]
  if not from then raise "apply: suggestion expected" end
  local plan, list = from.plan, from.list
  if from.mark and not core.is_at(plan, from.mark) then
    raise "apply: the plan has changed since; ask again for what helps now"
  end
  local mark, edits = core.mark(plan), core.edits(plan)
  local good, message = pcall(function()
    for _, one in ipairs(list) do draft.apply(plan, one) end
  end)
  if not good then
    core.back(plan, mark)
    error(message, 0)
  end
  core.join(plan, core.edits(plan) - edits)
  return plan
end

local suggestion = record("suggestion", "text change gain reason seconds script", {__name = "millrace.suggestion",
  methods = {apply = core.entry(apply)},
  __tostring = function(s)
    if not s.gain then return s.text end
    return ("%s  -- %.1f %% %s time"):format(s.text, 100 * math.abs(s.gain), s.gain < 0 and "more" or "less")
  end})

-- What a suggestion changes, as the method that does it: "move", also if versions come with the move.
function suggest.kind(s) return origin[s].kind end

-- A suggestion for the plan: fields gain, reason, seconds, script. mark: it may only be applied to the plan as it is there.
function suggest.new(plan, list, fields, mark, kind)
  local s = {}
  for key, value in pairs(fields) do s[key] = value end
  s.text = draft.text(list)
  s.change = s.text
  origin[s] = {plan = plan, list = list, mark = mark, kind = kind}
  return setmetatable(s, suggestion)
end

---- trying ----------------------------------------------------------------------------------------

-- Suggestions that come of changes of a plan, best first. now: its seconds; nil if it is not legal, then `most` repairs may
-- make it so. limits: at most so many `trials`, and until so many `events` have been played, EVENTS unless given.
function suggest.try(plan, list, now, most, limits)
  local found, played, mark = {}, 0, core.mark(plan)
  local trials, events = limits and limits.trials or math.huge, limits and limits.events or EVENTS
  for i, change in ipairs(list) do
    if played > events or i > trials then break end
    local good, made, statements = core.try(repair.make, {plan = plan}, change, most)
    played = played + EVENTS_A_TRY
    if good and made then
      local tl = made:simulate{events = 0}
      found[#found + 1] = suggest.new(plan, statements, {gain = now and 1 - tl.seconds / now, seconds = tl.seconds,
        reason = change.reason, script = made:script()}, mark, #change.list > 0 and change.list[#change.list][1] or nil)
      played = played + EVENTS_A_PLAN + tl.played
    end
  end
  local position = {}
  for i, f in ipairs(found) do position[f] = i end
  table.sort(found, function(a, b)
    if a.seconds ~= b.seconds then return a.seconds < b.seconds end
    if #a.text ~= #b.text then return #a.text < #b.text end
    return position[a] < position[b]
  end)
  return found
end

---- what to suggest -------------------------------------------------------------------------------

-- Of a plan that is not legal: what makes it so, alone or with a change; else the repairs of single problems.
local function repairs(plan, problems, limits)
  local codes, seen = {}, {}
  for _, p in ipairs(problems) do
    if not seen[p.code] then codes[#codes + 1], seen[p.code] = p.code, true end
  end
  local what = ("%d problem%s: %s"):format(#problems, #problems == 1 and "" or "s", table.concat(codes, ", "))
  local complete = not (seen.missing_task or seen.duplicate_task or seen.wrong_seu)
  local found = complete and suggest.try(plan, {{list = {}, reason = "makes the plan legal; it has " .. what}}, nil, REPAIRS) or {}
  if complete and #found == 0 then
    found = suggest.try(plan, changes.of(plan, true), nil, REPAIRS, limits)
    for _, s in ipairs(found) do s.reason = "makes the plan legal; it has " .. what end
  end
  if complete and #found == 0 then
    found = suggest.try(plan, {{list = {}, shrink = true, reason = "makes the plan legal; it has " .. what}}, nil, 2 * REPAIRS)
  end
  seen = {}
  for _, p in ipairs(#found == 0 and problems or {}) do
    if draft.is_code(p.hint) and not seen[p.hint] then
      seen[p.hint] = true
      found[#found + 1] = suggest.new(plan, draft.parse(p.hint).list, {reason = p.message})
    end
  end
  return found
end

-- The suggestions that save at least LEAST.
local function helpful(found)
  local out = {}
  for i, s in ipairs(found) do
    if s.gain >= suggest.LEAST then out[i] = s end      -- the best come first
  end
  return out
end

-- Where no change helps alone: each of the best few with any other one.
local function pairs_of(plan, found)
  local out = {}
  for i = 1, math.min(#found, FIRST) do
    local first = origin[found[i]].list
    local made = repair.make({plan = plan}, {list = first})
    for _, change in ipairs(made and changes.of(made, true) or {}) do
      local both = table.move(change.list, 1, #change.list, #first + 1, table.move(first, 1, #first, 1, {}))
      out[#out + 1] = {list = both, reason = ("%s; and %s"):format(found[i].reason, change.reason)}
    end
  end
  return out
end

local list = {__name = "millrace.suggestions"}

function list.__tostring(found)
  local lines = {}
  for i = 1, math.min(#found, SHOWN) do
    local s = found[i]
    lines[#lines + 1] = ("%d. %s"):format(i, s)
    lines[#lines + 1] = "   " .. s.reason
  end
  if #found > SHOWN then lines[#lines + 1] = ("%d more: plan:suggest()[%d] and so on"):format(#found - SHOWN, SHOWN + 1) end
  if #found > 0 then lines[#lines + 1] = "plan:suggest()[1]:apply() does the first one; all of it is one edit" end
  return #found > 0 and table.concat(lines, "\n") or found.none
end
list.__index = {none = "no change that was tried makes the plan legal; plan:check() lists its problems"}

-- The next best steps for a plan, best first: what is missing, what makes it legal, or what makes it faster.
function suggest.suggest(plan, given)
  expect(core.is(plan, "millrace.plan"), "suggest", "plan", plan)
  local limits = {trials = options.number(options.check(given, "suggest", {"trials"}), "suggest", "trials", math.huge),
    events = 2 * EVENTS}
  local good, problems = plan:check()
  if not good then return setmetatable(repairs(plan, problems, limits), list) end
  local now = plan:simulate{events = 0}.seconds
  local all = suggest.try(plan, changes.of(plan, true), now, nil, limits)
  local tried, found = #all, helpful(all)
  if #found == 0 then
    all = suggest.try(plan, pairs_of(plan, all), now, nil, {trials = limits.trials, events = EVENTS})
    tried, found = tried + #all, helpful(all)
  end
  found.none = ("none of %d changes tried would take %.1f %% less time; plan:improve() tries them one after the other, and together")
    :format(tried, 100 * suggest.LEAST)
  return setmetatable(found, list)
end

return suggest
