-- ahead.lua - what the compilers and the device do while the model is still searched for plans to measure.
--
-- The best plans so far are compiled, as is what compares outputs with the reference. And one of them is measured as soon as both are
-- there, so that a right kernel is known after seconds, even if the search in the model takes longer or is interrupted.

local core = require "millrace.core"
local helpers = require "millrace.helpers"
local scripts = require "millrace.script"
local serve = require "millrace.serve"

local PLANS <const>, AT_ONCE <const> = 8, 2             -- of the best plans so far are compiled, and begun at a time ...
local SECONDS <const> = 0.4                             -- ... of so many seconds
local ATTEMPTS <const> = 3                              -- plans to measure until the first right one

local ahead = {}
ahead.__index = ahead

-- Begin to compile the plan's kernel, unless that was done.
function ahead:compile(plan, script)
  local good, compiling = core.try(helpers.compile_begin, plan)
  self.jobs[script] = good and compiling or nil         -- else it has no kernel
  self.begun[script] = true
end

-- Measure a plan of a search's found list if it is compiled. "interrupted" if Ctrl-C ended that.
function ahead:measure(plan, script, found)
  local item = {id = #self.rows + 1, script = script, plan = plan, bound = self.bound, seed = self.seed,
    candidate = {plan = plan, script = script, predicted = found.seconds, traits = found.traits}}
  local finished, row = core.heed(self.server.measure_early, self.server, item)
  if not finished then return "interrupted" end
  if not row then return end
  row.predicted, row.plan = found.seconds, plan
  self.rows[item.id] = {item = item, row = row}
  if self.put then self.put(row) end
  if row.status == "ok" then
    row.score = row.ms
    self.best = row
    if self.progress then
      self.progress{trials = #self.rows, best = row, last = row, results = self:results(), device_seconds = row.device_seconds}
    end
  end
end

-- The rows so far.
function ahead:results()
  local list = {}
  for i, x in ipairs(self.rows) do list[i] = x.row end
  return list
end

-- Called now and then while a search runs in the model. Plans of the first search alone are measured. "interrupted" if Ctrl-C ended that.
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
    elseif script and is_first and not self.best and #self.rows < ATTEMPTS and not self.known[scripts.body(script)]
        and self:measure(plan, script, x) then
      return "interrupted"
    end
  end
  self.due = core.clock() + SECONDS
end

-- What is still being compiled is dropped.
function ahead:__close()
  for _, compiling in pairs(self.jobs) do compiling:drop() end
  self.server:end_idle()
end

-- A server of the attached device, and what it has to do; declare it <close>. make(search, trial) -> a plan, or nil. o: seed=, put=
-- (each row, at once), known= (rows by the bodies of scripts, of plans that were measured before), progress= (called with a state as
-- measure.lua's is, once there is a right kernel).
return function(bound, device, make, o)
  local jobs = {}
  local server = serve(bound, device, {seed = o.seed, ahead = jobs})
  server:prepare()
  return setmetatable({bound = bound, server = server, seed = o.seed, make = make, put = o.put, known = o.known or {},
    progress = o.progress, jobs = jobs, begun = {}, rows = {}, due = core.clock() + SECONDS}, ahead)
end
