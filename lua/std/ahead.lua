-- ahead.lua - what compilers and devices do while the model is still searched for plans to measure.
--
-- The best plans so far are compiled, as is what compares outputs with the reference. And one of them is measured as soon as both are
-- there, so that a right kernel is known after seconds, even if the search in the model takes longer or is interrupted. Other ranks of a
-- farm do nothing else meanwhile, so they measure more of the best plans so far.

local core = require "millrace.core"
local helpers = require "millrace.helpers"
local new_queue = require "millrace.queue"
local scripts = require "millrace.script"
local serve = require "millrace.serve"

local PLANS <const>, AT_ONCE <const> = 8, 2             -- how many of the best plans so far are compiled, and begun at one look
local SECONDS <const> = 0.4                             -- between two looks
local SECONDS_OF_RANKS <const> = 0.1                    -- between two looks at other ranks, which have nothing else to do
local ATTEMPTS <const> = 3                              -- plans to measure until the first right one
local SHORT <const>, SHARE <const> = 32, 4              -- other ranks measure ahead at most 1/SHARE of the trials beyond SHORT

local ahead = {}
ahead.__index = ahead

-- Begin to compile the plan's kernel, unless that was done.
function ahead:compile(plan, script)
  local good, compiling = core.try(helpers.compile_begin, plan)
  self.jobs[script] = good and compiling or nil         -- else it has no kernel
  self.begun[script] = true
end

function ahead:item_of(plan, script, found)
  self.given = self.given + 1
  return {id = self.given, script = script, plan = plan, bound = self.bound, seed = self.seed,
    candidate = {plan = plan, script = script, predicted = found.seconds, traits = found.traits}}
end

function ahead:is_known(script) return self.known[scripts.body(script)] ~= nil end

-- Keep the row of an item that was measured.
function ahead:learn(row, item)
  row.predicted, row.plan = item.candidate.predicted, item.plan
  self.rows[#self.rows + 1] = {item = item, row = row}
  self.device_seconds = self.device_seconds + (row.device_seconds or 0)
  if self.put then self.put(row) end
  if row.status ~= "ok" then return end
  local base = row.ratio and self.scores[row.against]
  row.score = base and row.ratio * base or row.ms
  self.scores[row.id], self.incumbent = row.score, self.incumbent or item
  if self.best and self.best.score <= row.score then return end
  self.best = row
  if self.progress then
    self.progress{trials = #self.rows, best = row, last = row, results = self:results(), device_seconds = self.device_seconds}
  end
end

-- Measure a plan of a search's found list if it is compiled.
function ahead:measure(plan, script, found)
  local item = self:item_of(plan, script, found)
  local row = self.server:measure_early(item)
  if row then self:learn(row, item) end
end

-- The rows so far.
function ahead:results()
  local list = {}
  for i, x in ipairs(self.rows) do list[i] = x.row end
  return list
end

-- Called now and then while a search runs in the model. Plans of the first search alone are measured.
function ahead:step(search, is_first)
  if core.clock() < self.due then return end
  helpers.compile_wait(0)
  local given = 0
  for rank, x in ipairs(search:found()) do
    if rank > PLANS or given == AT_ONCE then break end
    local plan = x.priced and self.make(search, x.trial)
    local script = plan and plan:script()
    if script and not self.begun[script] then
      self:compile(plan, script)
      given = given + 1
    elseif script and is_first and not self.best and #self.rows < ATTEMPTS and not self:is_known(script) then
      self:measure(plan, script, x)
    end
  end
  self.due = core.clock() + SECONDS
end

-- What is still being compiled is dropped.
ahead.__close = core.uninterrupted(function(self)
  for _, compiling in pairs(self.jobs) do compiling:drop() end
  self.server:end_idle()
end)

-- The items that are under way, for measure.lua to go on with. Here there are none.
function ahead:hand_over() return {} end

local function new(bound, make, o, class)
  return setmetatable({bound = bound, seed = o.seed, make = make, put = o.put, known = o.known or {}, progress = o.progress, begun = {}, rows = {},
    scores = {}, device_seconds = 0, given = 0, due = core.clock() + SECONDS}, class)
end

-- What the attached device does ahead; declare it <close>. .server: the device's, to go on with. make(search, trial) -> a plan, or nil. o:
-- seed=, put= (each row, at once), known= (rows by the bodies of scripts, of plans that were measured before), progress= (called with
-- trials, best, last, results and device_seconds of measure.lua's state, for each new best row).
local function of_device(bound, device, make, o)
  local a = new(bound, make, o, ahead)
  a.jobs = {}
  a.server = serve(bound, device, {seed = o.seed, ahead = a.jobs})
  a.server:prepare()
  return a
end

---- other ranks ---------------------------------------------------------------------------------------

local ahead_of_ranks = setmetatable({}, {__index = ahead})
ahead_of_ranks.__index = ahead_of_ranks

-- As ahead:step: learn from the rows that have come, and let ranks measure the best plans so far that they have not had.
function ahead_of_ranks:step(search, is_first)
  if core.clock() < self.due then return end
  for row, item in function() return self.queue:poll(self.incumbent) end do self:learn(row, item) end
  for rank, x in ipairs(is_first and search:found() or {}) do
    local _, free = self.queue:freest()
    if rank > PLANS or free == 0 or self.given >= self.most then break end
    local plan = x.priced and self.make(search, x.trial)
    local script = plan and plan:script()
    if script and not self.begun[script] and not self:is_known(script) then
      self.begun[script] = true
      self.queue:put(self:item_of(plan, script, x))
    end
  end
  self.due = core.clock() + SECONDS_OF_RANKS
end

function ahead_of_ranks:hand_over()
  local list = self.queue.under_way
  self.queue.under_way = {}
  return list
end

ahead_of_ranks.__close = core.uninterrupted(function(self) self.queue:drop() end)

-- The same for servers of other ranks. o.trials: of the complete search.
local function of_ranks(bound, servers, make, o)
  local a = new(bound, make, o, ahead_of_ranks)
  -- In a short search each trial counts, and what is the best plan so far in the first moments seldom is at the end.
  a.queue, a.most, a.due = new_queue(servers), math.max(0, o.trials - SHORT) // SHARE, core.clock() + SECONDS_OF_RANKS
  return a
end

return {of_device = of_device, of_ranks = of_ranks}
