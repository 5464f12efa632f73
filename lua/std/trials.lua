-- trials.lua - measure what a search found on the attached device, and keep every measurement in the store.
--
-- The candidates are the plans that the search priced, and plans that were best for other sizes of the program. measure.lua
-- chooses which of them to measure. When none that is left is likely to be faster than the best, the neighbours of the plans that are
-- about as fast as that become candidates, too.

local core = require "millrace.core"
local draft = require "millrace.draft"
local measure = require "millrace.measure"
local script = require "millrace.script"
local store = require "millrace.store"

local mr = require "millrace"

local trials = {}

local OTHER_SIZES <const> = 4                           -- the most plans that were best for other sizes
local KIND <const> = "search"                           -- of the rows that are measurements
trials.KIND = KIND

-- The attached device if `device` models it; otherwise nil and why not.
function trials.attached(device)
  local other, why
  for _, target in ipairs{"cuda", "hip"} do
    local found, missing = core.attached(target)
    for word in (found and found.name or ""):lower():gmatch "%w+" do
      if word == device.name then return found end
    end
    other, why = other or found, why or missing
  end
  return nil, other and ("the attached %s is not what '%s' is a model of"):format(other.name, device.name) or why
end

---- the store ------------------------------------------------------------------------------------

local function is_current(row, driver) return row.version == mr.version and row.driver == driver end

-- Earlier measurements of this program with the same version and driver, by the body of the script; none if the search is to be fresh.
function trials.known(bound, device, driver, fresh)
  local rows = {}
  if fresh then return rows end
  for _, row in ipairs(store.is_there() and mr.store:list{program = bound, device = device.name, kind = KIND} or {}) do
    local body = row.script and is_current(row, driver) and script.body(row.script)
    if body then rows[body] = rows[body] or row end
  end
  return rows
end

-- The kind of the rows that searches end with: those without tiles by a counter (dynamic=false), with operands that are fetched ahead, or
-- with inputs that are ready, have another one.
local function kind_of_answers(o)
  return KIND .. "ed" .. (o.dynamic == false and " static" or "") .. (o.fetch and " fetch" or "")
    .. (o.ready and " ready " .. table.concat(o.ready, ",") or "")
end

-- Part of the message of an answer whose search was ended by a limit of trials or seconds.
local LIMITED <const> = "no more than %d plans were measured"
local PATTERN <const> = (LIMITED:gsub("%%d", "(%%d+)"))

-- How many plans the search of an answer could measure at most; math.huge: it ended by itself.
local function most_measured(row)
  return math.tointeger((row.message or ""):match(PATTERN)) or math.huge
end

-- Has a search ended by itself, or measured as many plans as are wanted?
local function is_thorough(bound, device, driver, kind, wanted)
  for _, row in ipairs(mr.store:list{program = bound, device = device.name, kind = kind, version = mr.version}) do
    if row.driver == driver and most_measured(row) >= wanted then return true end
  end
  return false
end

-- The plan and the row that an earlier search for the same ended with, unless it could only measure fewer plans than are wanted now.
function trials.remembered(bound, device, found, wanted, o)
  local kind = kind_of_answers(o)
  local row = store.is_there() and mr.store:best(bound, device, {kind = kind, version = mr.version})
  if row and row.ms and row.driver == found.driver and is_thorough(bound, device, found.driver, kind, wanted) then
    local good, plan = core.try(function() return row:plan(bound) end)
    if good then return plan, row end
  end
end

local status_words = {ok = "ok", wrong = "wrong", failed = "failed", skipped = "spills"}

-- nil: the output was not checked, as the kernel was slower than the best.
local function is_correct(row)
  if row.status == "wrong" then return false end
  return row.relative and true or nil
end

local function scored(row) return {ms = row.score or row.ms, min = row.min, max = row.max} end

-- The times of the row of an answer: {ms=, min=, max=}, of the last race if there was one.
function trials.times(row) return row.final or scored(row) end

-- Keep a row. times: {ms=, min=, max=} to keep; nil: the row's score and extremes. message: nil: the row's reason.
local function keep(row, kind, driver, seed, bound, times, message)
  local plan = row.plan
  if not plan then return end
  times = times or scored(row)
  mr.store:put{plan = plan, kind = kind, status = status_words[row.status] or row.status, message = message or row.why,
    predicted = row.predicted, ms = times.ms, min = times.min, max = times.max, error = row.relative,
    correct = is_correct(row), driver = driver, seed = seed, bound = bound}
end

-- The message of an answer: the reason of its best row, and the limit that ended the search; nil: neither. limited: seconds= ended the
-- search in the model, so that there were few candidates.
local function message_of(r, most, limited)
  local limit = r.ended == "trials" and most or (r.ended == "seconds" or limited) and #r.results
  if not limit then return nil end
  return (r.best.why and r.best.why .. "; " or "") .. LIMITED:format(limit)
end

-- Is the best plan of a search the answer of later ones for the same? Not if the search was interrupted or lost its devices, or was one of
-- given tiles alone.
local function is_answer(r, o) return r.best and r.ended ~= "interrupted" and r.ended ~= "lost" and not o.tile end

-- Keep a row that was measured before the search had come to its end, so that its bound is not known yet.
function trials.keep(row, found, seed) keep(row, KIND, found.driver, seed) end

---- candidates -------------------------------------------------------------------------------------

-- Candidates from the store: plans that were best for other sizes, if they are plans for these sizes, too.
local function from_other_sizes(bound, device, o)
  local list = {}
  for _, row in ipairs(store.is_there() and mr.store:near(bound, device, OTHER_SIZES, {kind = kind_of_answers(o)}) or {}) do
    local good, plan = core.try(function() return row:plan(bound) end)
    if good then
      local tl = plan:simulate{events = 0}
      list[#list + 1] = {plan = plan, predicted = tl.seconds, text = "best of " .. row.sizes}
    end
  end
  return list
end

local function has_tile(traits, tile)
  for axis, extent in pairs(tile) do
    local x = traits["tile " .. axis]
    if x and math.abs(x - math.log(extent, 2)) > 1e-6 then return false end
  end
  return true
end

-- Add a candidate from the store, unless its plan is in the list. Its traits are not known: those of the candidate with the
-- same tile and the nearest prediction are most likely right, so that its measurement tells about such candidates.
local function add_from_store(list, new)
  local best, script = math.huge, new.plan:script()
  for _, c in ipairs(list) do
    local off = math.abs(c.predicted - new.predicted)
    if off <= best and c.traits and has_tile(c.traits, new.plan.tile) then
      if off == 0 then
        c.plan = c.plan or c.make()
        if c.plan:script() == script then return end
      end
      best, new.traits = off, c.traits
    end
  end
  list[#list + 1] = new
end

-- Append what a search found, best first, to the list; `added` holds the trials that were appended before.
-- make(search, trial): the plan. order: what traits of orders are called, as searches number orders differently, apart from
-- the program's order, which has no trait.
local function add_found(list, search, added, make, order)
  for rank, x in ipairs(search:found()) do
    if x.priced and not added[x.trial] then
      added[x.trial] = true
      local traits = {}
      for name, value in pairs(x.traits) do traits[(name:gsub("^order", order))] = value end
      list[#list + 1] = {predicted = x.seconds, traits = traits, rank = rank, search = search, trial = x.trial,
        make = function() return make(search, x.trial) end}
    end
  end
  return list
end

-- The first candidates, by predicted time. o.others: plans that changes make of the search's.
local function candidates(search, added, bound, device, make, o)
  local list = add_found({}, search, added, make, "order")
  for _, c in ipairs(o.others or {}) do list[#list + 1] = c end
  for _, c in ipairs(from_other_sizes(bound, device, o)) do add_from_store(list, c) end
  table.sort(list, function(a, b)
    if a.predicted ~= b.predicted then return a.predicted < b.predicted end
    return (a.rank or 0) < (b.rank or 0)
  end)
  return list
end

-- The trial of a search that has the candidate's plan; nil if there is none.
local function trial_of(c, search, make)
  for _, x in ipairs(search:found()) do
    if x.seconds == c.predicted and make(search, x.trial):script() == c.script then return x.trial end
  end
end

-- Returns a function: a candidate -> further candidates, and why the search for them ended. The first search tried
-- few plans near it where the model prefers others, or sees no difference. So a second search is made of the
-- candidate's tile alone, and all neighbours of the candidate are tried in the search that found it.
local function refiner(first, added, bound, device, o)
  local refined, of_tile = {}, {}
  local function search_of(tile)
    local key = draft.literal(tile)
    local search = of_tile[key]
    if search then return search end
    search = core.search(bound, device, tile, true, false, o.ready)
    of_tile[key], added[search] = search, {}
    return search, o.search(search)
  end
  return function(c)
    if refined[c.script] then return {}, "done" end
    refined[c.script] = true
    local second, ended = search_of(c.plan.tile)
    local from = c.search or second
    local trial = c.trial or trial_of(c, second, o.make)
    if trial and ended ~= "interrupted" then
      from:neighbours(trial)
      ended = o.search(from)
    end
    local list = add_found({}, second, added[second], o.make, "order of its tile")
    return from == first and add_found(list, first, added[first], o.make, "order") or list, ended
  end
end

-- Measure what a search found; returns what measure() does. o:
--   trials, seconds, seed, progress   as measure() takes them
--   dynamic, fetch, ready, tile       what the search was for, as mr.search takes it
--   known      rows, as trials.known gives them, which it does unless they are given
--   bound      of all shapes, in seconds
--   make       search, trial -> plan
--   others     further candidates, or nil
--   search     runs a search, and returns why it ended
--   limited    true: seconds= ended the search
--   server     nil: that of the attached device
--   early, under_way   what the server has measured while the search ran, and has to do, as measure() takes these
function trials.run(search, bound, device, found, o)
  local seed, added = o.seed or 1, {[search] = {}}
  local known = o.known or trials.known(bound, device, found.driver)
  local r = measure(bound, device, candidates(search, added[search], bound, device, o.make, o), {
    trials = o.trials, seconds = o.seconds, seed = seed, progress = o.progress, server = o.server, early = o.early, under_way = o.under_way,
    known = function(plan)
      local row = known[script.body(plan:script())]
      return row and row.ms and {status = row.status, ms = row.ms, min = row.min, max = row.max, relative = row.error}
    end,
    put = function(row) keep(row, KIND, found.driver, seed, o.bound) end,
    more = refiner(search, added, bound, device, o),
  })
  if is_answer(r, o) then
    keep(r.best, kind_of_answers(o), found.driver, seed, o.bound, trials.times(r.best), message_of(r, o.trials, o.limited))
  end
  return r
end

return trials
