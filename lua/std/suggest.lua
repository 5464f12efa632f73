-- suggest.lua - plan:suggest(): the next best statements for a plan, tried; and suggestions as values, of which those that
-- tl:why() gives are some.

local core = require "millrace.core"
local become = require "millrace.become"
local changes = require "millrace.changes"
local draft = require "millrace.draft"
local options = require "millrace.options"
local record = require("millrace.record").of
local repair = require "millrace.repair"
local shown_problems = require "millrace.repairs"
local grouped, is_too_large = shown_problems.grouped, shown_problems.is_too_large
local raise, expect = core.raise, core.expect

local suggest = {}

suggest.LEAST = 0.005                                   -- of the time: less is not worth a line
local SHOWN <const> = 5
local FIRST <const> = 3                                 -- changes tried with others where none helps alone
local REPAIRS <const> = 12                              -- the most further statements that make a plan legal
local TILES <const>, ENOUGH <const> = 64, 8             -- other tiles tried at most, and as many that are legal are enough
-- Trying stops when so many events have been played; making and checking a plan counts as some.
local EVENTS <const>, EVENTS_A_TRY <const>, EVENTS_A_PLAN <const> = 3300000, 20000, 50000
local ALL_EVENTS <const> = 2 * EVENTS                   -- of all changes, each alone

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

local function gain_text(gain) return ("%.1f %% %s time"):format(100 * math.abs(gain), gain < 0 and "more" or "less") end

local suggestion = record("suggestion", "text change gain reason seconds script", {__name = "millrace.suggestion",
  methods = {apply = core.entry(apply)},
  __tostring = function(s)
    if not s.gain then return s.text end
    return ("%s  -- %s"):format(s.text, gain_text(s.gain))
  end})

-- What a suggestion changes, as the method that does it: "move", also if versions come with the move.
function suggest.kind(s) return origin[s].kind end

-- What tiles would repeat, as a sentence; nil: nothing more than before.
function suggest.costs(s) return origin[s].costs end

-- A suggestion for the plan: fields gain, reason, seconds, script. mark: it may only be applied to the plan as it is there.
-- costs: what it has tiles repeat that they did not before, as a sentence, or nil.
function suggest.new(plan, list, fields, mark, kind, costs)
  local s = {}
  for key, value in pairs(fields) do s[key] = value end
  s.text = draft.text(list)
  s.change = s.text
  origin[s] = {plan = plan, list = list, mark = mark, kind = kind, costs = costs}
  return setmetatable(s, suggestion)
end

---- trying ----------------------------------------------------------------------------------------

-- What the tiles of a changed plan repeat that they did not before, for the end of a sentence; nil: nothing.
local function repeats_text(plan, made)
  local before, new = {}, {}
  for _, r in ipairs(core.repeats(plan)) do before[r.axis] = r.tiles end
  for _, r in ipairs(core.repeats(made)) do new[#new + 1] = r.tiles > (before[r.axis] or 1) and r.text or nil end
  return new[1] and table.concat(new, "; ")
end

-- The statements of a plan that are no waits, as texts in one; and its waits, as a set of {task, other} by their texts.
local function parts_of(plan)
  local others, waits = {}, {}
  for _, s in ipairs(draft.read(plan).list) do
    for _, on in ipairs(s[1] == "wait" and s[3] or {}) do
      local other = type(on) == "table" and on[1] or on
      waits[("%s %s"):format(s[2], draft.literal{on})] = {s[2], other}
    end
    if s[1] ~= "wait" then others[#others + 1] = draft.statement(s) end
  end
  return table.concat(others, "\n"), waits
end

-- The unwait statements that make a plan the changed one, whose text is `script`; with the name of all slices where they can have
-- that. nil if the plans differ in anything but waits that are gone.
local function unwaits(plan, made, script)
  local others, waits = parts_of(plan)
  local made_others, kept = parts_of(made)
  if others ~= made_others then return nil end
  for key in pairs(kept) do
    if not waits[key] then return nil end
  end
  for _, base in ipairs{draft.slice_of, function(name) return name end} do
    local list, seen, copy = {}, {}, plan:copy()
    for _, key in ipairs(draft.keys(waits)) do
      local task, other = base(waits[key][1]), base(waits[key][2])
      local s = {"unwait", task, other}
      local text = draft.statement(s)
      if not kept[key] and not seen[text] then list[#list + 1], seen[text] = s, true end
    end
    local good = pcall(function()
      for _, s in ipairs(list) do draft.apply(copy, s) end
    end)
    if good and #list > 0 and copy:script() == script then return list end
  end
end

-- Suggestions that come of changes of a plan, best first. now: its seconds; nil if it is not legal, then `most` repairs may
-- make it so. limits: at most so many `trials`, and until so many `events` have been played (EVENTS unless given) or suggestions `found`.
function suggest.try(plan, list, now, most, limits)
  local found, played, mark, seen = {}, 0, core.mark(plan), {[plan:script()] = true}
  local trials, events = limits and limits.trials or math.huge, limits and limits.events or EVENTS
  local enough = limits and limits.found or math.huge
  for i, change in ipairs(list) do
    if played > events or i > trials or #found >= enough then break end
    local good, made, statements = core.try(repair.make, {plan = plan}, change, most)
    played = played + EVENTS_A_TRY
    local script = good and made and made:script()
    if script and not seen[script] then
      local tl, costs = made:simulate{events = 0}, repeats_text(plan, made)
      local fewer = now and unwaits(plan, made, script)  -- a move there and back, say, that takes waits along
      local last, reason = change.list[#change.list], change.reason
      if fewer then
        statements, last = fewer, fewer[1]
        reason = #fewer == 1 and "every dependence is kept without this wait" or "every dependence is kept without these waits"
      end
      seen[script] = true
      found[#found + 1] = suggest.new(plan, statements, {gain = now and 1 - tl.seconds / now, seconds = tl.seconds,
        reason = costs and reason and ("%s; but %s"):format(reason, costs) or reason, script = script}, mark,
        last and last[1], costs)
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

-- All changes of a legal plan, each alone, best first. now: its timeline. tl:why() gives these, and plan:suggest() first.
function suggest.alone(plan, now, trials)
  return suggest.try(plan, changes.of(plan, changes.state(now)), now.seconds, nil, {trials = trials or math.huge, events = ALL_EVENTS})
end

---- what to suggest -------------------------------------------------------------------------------

-- What is wrong, by codes: "9 problems: missing_wait, registers"; and the codes as a set.
local function what_is_wrong(problems)
  local codes, seen = {}, {}
  for _, p in ipairs(problems) do
    if not seen[p.code] then codes[#codes + 1], seen[p.code] = p.code, true end
  end
  return ("%d problem%s: %s"):format(#problems, #problems == 1 and "" or "s", table.concat(codes, ", ")), seen
end

-- All statements of hints; nil if one is none.
local function all_hints(problems)
  local all = {}
  for _, p in ipairs(problems) do
    if not draft.is_code(p.hint) then return nil end
    local list = draft.parse(p.hint).list
    table.move(list, 1, #list, #all + 1, all)
  end
  return all
end

-- The statements that bring all missing sTasks, in the order of the program; nil if there is one, or if they do not go together.
local function all_missing(plan, problems)
  local list = {}
  for _, p in ipairs(problems) do
    if p.code ~= "missing_task" or not draft.is_code(p.hint) then return nil end
    table.move(draft.parse(p.hint).list, 1, 1, #list + 1, list)
  end
  local copy = plan:copy()
  local function append() for _, s in ipairs(list) do draft.apply(copy, s) end end
  return #list > 1 and core.try(append) and list or nil
end

-- Of a plan that is not legal: what makes it so, alone or with a change; else the repairs of single problems.
local function repairs(plan, problems, limits)
  local shown, seen = grouped(problems), select(2, what_is_wrong(problems))
  local what = what_is_wrong(shown)                     -- as many as plan:check() and the explorer say
  local reason = "makes the plan legal; it has " .. what
  local why = shown[1] and is_too_large(shown[1]) and shown[1].message
  local function try(list, most, limits)
    local found = suggest.try(plan, list, nil, most, limits)
    for i, s in ipairs(found) do
      s.reason = i == 1 and why and ("%s; it makes the plan legal"):format(why) or reason
      if origin[s].costs then s.reason = ("%s; but %s"):format(s.reason, origin[s].costs) end
    end
    return found
  end
  local found, hints = {}, all_hints(shown)
  if not (seen.missing_task or seen.duplicate_task or seen.wrong_seu) then
    if hints then found = try({{list = hints}}, 0) end
    if #found == 0 then found = try({{list = {}}}, REPAIRS) end
    if #found == 0 then found = try(changes.of(plan), REPAIRS, limits) end
    if #found == 0 then found = try(changes.tiles(plan, TILES), REPAIRS, {found = ENOUGH}) end
    if #found == 0 then found = try({{list = {}, shrink = true}}, 2 * REPAIRS) end
  end
  local missing = all_missing(plan, problems)
  if missing then
    found[1] = suggest.new(plan, missing, {reason = ("%d sTasks are not in the plan; here they are in the order of the program"):format(#missing)})
  end
  seen = {}
  for _, p in ipairs((missing or #found == 0) and shown or {}) do
    if draft.is_code(p.hint) and not seen[p.hint] then
      seen[p.hint] = true
      found[#found + 1] = suggest.new(plan, draft.parse(p.hint).list, {reason = p.message})
    end
  end
  return found
end

-- The suggestions that save at least LEAST, best first; but the first one is the shortest of those that are as good within LEAST.
function suggest.helpful(found)
  local out, first = {}, 1
  for i, s in ipairs(found) do
    if s.gain >= suggest.LEAST then out[i] = s end
    if out[i] and s.gain > found[1].gain - suggest.LEAST and #s.text < #out[first].text then first = i end
  end
  if out[1] then table.insert(out, 1, table.remove(out, first)) end
  return out
end

-- Where no change helps alone: each of the best few with any other one.
local function pairs_of(plan, found, now, most)
  local out = {}
  for i = 1, math.min(#found, FIRST) do
    if #out >= most then break end
    local first = origin[found[i]].list
    local made = repair.make({plan = plan}, {list = first})
    for _, change in ipairs(made and changes.of(made, now) or {}) do
      local both = table.move(change.list, 1, #change.list, #first + 1, table.move(first, 1, #first, 1, {}))
      out[#out + 1] = {list = both, reason = ("%s; and %s"):format(found[i].reason, change.reason)}
    end
  end
  return out
end

local list = {__name = "millrace.suggestions"}

-- Each line is code or a comment, so that any of them can be pasted.
function list.__tostring(found)
  local lines = {}
  for i = 1, math.min(#found, SHOWN) do
    local s = found[i]
    local then_takes = not s.gain and s.seconds and ("; then it takes %.4g ms"):format(s.seconds * 1e3) or ""
    lines[#lines + 1] = ("-- %d. %s%s%s"):format(i, s.gain and gain_text(s.gain) .. ": " or "", s.reason, then_takes)
    lines[#lines + 1] = s.text
  end
  if #found > SHOWN then
    lines[#lines + 1] = ("-- %d more: for i, s in ipairs(plan:suggest()) do print(i, s) end"):format(#found - SHOWN)
  end
  if #found > 0 then lines[#lines + 1] = "-- plan:suggest()[1]:apply() does the first one; all of it is one edit" end
  return #found > 0 and table.concat(lines, "\n") or found.none
end
list.__index = {none = "no change that was tried makes the plan legal; plan:check() lists its problems"}

-- What a search did apart from the changes, and what a longer one may do, for the end of the sentence that none helps; "" without a search.
local function search_text(searched, now)
  if not searched then return "" end
  if searched.seconds and searched.seconds < now * (1 - suggest.LEAST) then
    return ("; a search found a plan that takes %.1f %% less, to which no statements lead: mr.search(plan.graph.program, plan.device) gives it")
      :format(100 * (1 - searched.seconds / now))
  end
  return ("; nor is any of %d plans of a search faster%s"):format(searched.trials,
    searched.complete and "" or ", and plan:improve() lets it try more")
end

-- The next best steps for a plan, best first: what is missing, what makes it legal, or what makes it faster.
function suggest.suggest(plan, given)
  expect(core.is(plan, "millrace.plan"), "suggest", "plan", plan)
  local limits = {trials = options.number(options.check(given, "suggest", {"trials"}), "suggest", "trials", math.huge),
    events = ALL_EVENTS}
  local good, problems = shown_problems.raw(plan)
  if not good then return setmetatable(repairs(plan, problems, limits), list) end
  local tl = plan:simulate{events = 0}
  local now, all = tl.seconds, suggest.alone(plan, tl, limits.trials)
  local tried, found, searched = #all, suggest.helpful(all), nil
  if #found == 0 then
    local change
    if limits.trials >= become.trials(plan) then change, searched = become.found(plan, now) end
    if change then
      all = suggest.try(plan, {change}, now, REPAIRS)
    elseif not searched or searched.seconds and searched.seconds < now then
      all = suggest.try(plan, pairs_of(plan, all, changes.state(tl), limits.trials), now, nil, {trials = limits.trials, events = EVENTS})
    else
      all = {}
    end
    tried, found = tried + #all, suggest.helpful(all)
  end
  found.none = ("none of %d changes tried would take %.1f %% less time; plan:improve() tries them one after the other, and together%s")
    :format(tried, 100 * suggest.LEAST, search_text(searched, now))
  return setmetatable(found, list)
end

return suggest
