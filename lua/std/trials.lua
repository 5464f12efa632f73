-- trials.lua - what a search found, measured on the attached device, and every measurement kept.

local core = require "millrace.core"
local measure = require "millrace.measure"

local mr = require "millrace"

local trials = {}

local NEIGHBOURS <const> = 4                            -- plans of other sizes to begin with
local KIND <const> = "search"

-- The attached device if that is what the model is of; else nil and why not.
function trials.attached(device)
  local found, why = core.attached()
  if not found then return nil, why end
  for word in found.name:lower():gmatch "%w+" do
    if word == device.name then return found end
  end
  return nil, ("the attached %s is not what '%s' is a model of"):format(found.name, device.name)
end

---- the store ------------------------------------------------------------------------------------

local function is_present(row, driver) return row.version == mr.version and row.driver == driver end

-- What was measured of these plans before, with the same driver: by script.
local function known_rows(bound, device, driver)
  local rows = {}
  for _, row in ipairs(mr.store.path and mr.store:list{program = bound, device = device.name, kind = KIND} or {}) do
    if row.script and is_present(row, driver) and not rows[row.script] then rows[row.script] = row end
  end
  return rows
end

-- The answer of an earlier search for the same: its best row, whose status says that it was the end of one.
function trials.remembered(bound, device, found)
  local row = mr.store.path and mr.store:best(bound, device, {kind = KIND .. "ed", version = mr.version})
  if row and row.ms and row.driver == found.driver then
    local good, plan = core.try(function() return row:plan(bound) end)
    if good then return plan, row end
  end
end

local words = {ok = "ok", wrong = "wrong", failed = "failed", skipped = "spills"}

-- nil: its output was not compared, as it was slower than the best.
local function is_correct(row)
  if row.status == "wrong" then return false end
  return row.relative and true or nil
end

local function keep(row, kind, driver, seed, bound)
  local plan = row.plan
  if not plan then return end
  mr.store:put{plan = plan, kind = kind, status = words[row.status] or row.status, message = row.why,
    predicted = row.predicted, ms = row.score or row.ms, min = row.min, max = row.max, error = row.relative,
    correct = is_correct(row), driver = driver, seed = seed, bound = bound}
end

---- candidates -------------------------------------------------------------------------------------

-- Plans that were best at other sizes, where they fit here.
local function neighbours(bound, device)
  local list = {}
  for _, row in ipairs(mr.store.path and mr.store:near(bound, device, NEIGHBOURS, {kind = KIND .. "ed"}) or {}) do
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

-- Add a plan from elsewhere, unless it is there. What it is like is not known: most likely the candidate of its tile whose
-- prediction is nearest; so that what it takes teaches of that kind.
local function add_neighbour(list, new)
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

-- Of a search of core's, what is not in `told` yet, best first; make(search, trial): the plan. Orders have numbers of the
-- search's own (but for the program's order, which has none): `order` is what their traits are called.
local function found_by(list, search, told, make, order)
  for rank, x in ipairs(search:found()) do
    if x.priced and not told[x.trial] then
      told[x.trial] = true
      local traits = {}
      for name, value in pairs(x.traits) do traits[(name:gsub("^order", order))] = value end
      list[#list + 1] = {predicted = x.seconds, traits = traits, rank = rank, search = search, trial = x.trial,
        make = function() return make(search, x.trial) end}
    end
  end
  return list
end

-- What it found, by prediction, and neighbours.
local function candidates(search, told, bound, device, make)
  local list = found_by({}, search, told, make, "order")
  for _, c in ipairs(neighbours(bound, device)) do add_neighbour(list, c) end
  table.sort(list, function(a, b)
    if a.predicted ~= b.predicted then return a.predicted < b.predicted end
    return (a.rank or 0) < (b.rank or 0)
  end)
  return list
end

local function same(a, b)
  for axis, extent in pairs(a) do
    if b[axis] ~= extent then return false end
  end
  return true
end

-- Where a search found the candidate, by its predicted time; nil: nowhere.
local function trial_of(c, search, make)
  for _, x in ipairs(search:found()) do
    if x.seconds == c.predicted and make(search, x.trial):script() == c.script then return x.trial end
  end
end

-- What is like the best has been looked at little where the model prefers another, or sees no difference. So further candidates
-- are what a search of its tile alone finds, and all that lies beside it. That is where it was found: no other search
-- need come to it. Gives a function: the best candidate -> list, and why the search ended.
local function refiner(first, told, bound, device, o)
  local looked, of_tile = {}, {}
  local function search_of(tile)
    for _, x in ipairs(of_tile) do
      if same(x.tile, tile) then return x.search end
    end
    local search = core.search(bound, device, tile, true)
    of_tile[#of_tile + 1], told[search] = {tile = tile, search = search}, {}
    return search, o.search(search)
  end
  return function(c)
    if looked[c.script] then return {}, "done" end
    looked[c.script] = true
    local near, ended = search_of(c.plan.tile)
    local from = c.search or near
    local trial = c.trial or trial_of(c, near, o.make)
    if trial and ended ~= "interrupted" then
      from:neighbours(trial)
      ended = o.search(from)
    end
    local list = found_by({}, near, told[near], o.make, "order of its tile")
    return from == first and found_by(list, first, told[first], o.make, "order") or list, ended
  end
end

-- Measure them. o has trials, seconds, seed, fresh, progress, the bound of all shapes, in seconds, make (search, trial -> plan), and
-- search, which runs one and gives why it ended; server: the attached device's, unless given. Gives what measure() does.
function trials.run(search, bound, device, found, o)
  local seed, told = o.seed or 1, {[search] = {}}
  local known = o.fresh and {} or known_rows(bound, device, found.driver)
  local r = measure(bound, device, candidates(search, told[search], bound, device, o.make), {
    trials = o.trials, seconds = o.seconds, seed = seed, progress = o.progress, server = o.server,
    known = function(plan)
      local row = known[plan:script()]
      return row and row.ms and {status = row.status, ms = row.ms, min = row.min, max = row.max, relative = row.error}
    end,
    put = function(row) keep(row, KIND, found.driver, seed, o.bound) end,
    more = refiner(search, told, bound, device, o),
  })
  if r.best and r.ended ~= "interrupted" then keep(r.best, KIND .. "ed", found.driver, seed, o.bound) end
  return r
end

return trials
