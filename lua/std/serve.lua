-- serve.lua - a server of queue.lua that measures plans on the attached device.
--
-- Plans are compiled in the background, by as many workers as there are cores. The reference is computed once, on
-- the device, for one set of random inputs. The outputs of each kernel that may be the best are compared with it. A
-- kernel that hangs or faults fails its candidate, no other.

local core = require "millrace.core"
local paired = require "millrace.paired"
local within = require "millrace.within"

-- The options of races: samples as long as those of mr.race, for the same reason.
local SHORT = {seconds = 0.3, sample = 0.06, warmup = 0.05, rounds = 6, give_up = 1.06}
local LONG = {seconds = 0.6, sample = 0.06, warmup = 0.1, rounds = 12}
local LIMIT = 5                                         -- seconds that one kernel may take
local COMPILE_SECONDS = 30                              -- a candidate is skipped after that: all that took so long had spills

local server = {}
server.__index = server
local handle = {}
handle.__index = handle

local function plan_of(item) return item.plan or assert(load(item.script, "=[millrace.serve]", "t"))(item.bound) end

-- The row of an item. Drops the location from the message, which is that of the caller of the search.
-- Are the extents the same? Of nil, they are.
local function same(tile, other)
  for axis, extent in pairs(tile or {}) do
    if not other or other[axis] ~= extent then return false end
  end
  return true
end

local function answer(item, status, why)
  return {id = item.id, status = status, why = why and why:gsub("^[^:]+:%d+: ", ""), script = item.script}
end

function server:begin(item)
  local h = setmetatable({server = self, item = item, began = core.clock()}, handle)
  if item.finalists then return h end
  local good, x = core.try(function() return core.compile_begin(plan_of(item)) end)
  if good then h.compiling = x else h.problem = x end
  return h
end

function server:wait(seconds) core.compile_wait(seconds) end

function server:end_idle() core.compile_end_idle() end

-- The reference's outputs, and how far those of a kernel may be from them. Computed when the first kernel is compiled: by then
-- the compilers have other work. A program with additions has others for each tile shape, of which the last are kept.
function server:reference(k)
  local tile = core.adds(self.bound) and k.plan.graph.tile or nil
  if not self.want or not same(tile, self.tile) then
    self.want, self.allowed = core.reference_allowing(self.bound, nil, {on = "device", seed = self.seed, tile = tile})
    self.tile = tile
  end
  return self.want, self.allowed
end

-- The kernel of an item that was measured before, perhaps by another run.
function server:kernel(item)
  local k = self.kernels[item.id]
  if not k then
    k = core.compile_begin(plan_of(item)):kernel()
    self.kernels[item.id] = k
  end
  return k
end

function server:race(items, how)
  local list, names = {}, {}
  for i, item in ipairs(items) do list[i], names[i] = self:kernel(item), "plan " .. item.id end
  local began, o = core.clock(), {seed = self.seed, limit = self.limit}
  for key, value in pairs(how) do o[key] = value end
  local rounds = core.race(list, names, o)
  return rounds, core.clock() - began
end

-- Race the item against the incumbent, if there is one. Fills the row; returns the seconds taken.
function server:time(row, item, incumbent)
  local items = incumbent and {incumbent, item} or {item}
  local me, rounds, seconds = #items, self:race(items, SHORT)
  row.ms = paired.median(paired.times(rounds, me))
  row.min, row.max, row.rounds, row.cache = rounds.min[me], rounds.max[me], #rounds, rounds.cache
  if incumbent then
    row.against = incumbent.id
    row.ratio, row.low, row.high = paired.interval(paired.ratios(rounds, me, 1))
  end
  return seconds
end

-- Why the item's result is wrong, or nil; and its relative error. Each is compared only once, as comparing large results
-- takes longer than a race.
function server:wrong(item)
  local known = self.compared[item.id]
  if not known then
    local got = core.run(self:kernel(item), nil, {seed = self.seed, limit = self.limit})
    local want, allowed = self:reference(self:kernel(item))
    local found = within(self.bound, got, want, allowed, {})
    known = {why = not found.ok and ("its result is off by %.3g"):format(found.relative) or nil, relative = found.relative}
    self.compared[item.id] = known
    if not found.ok then self.kernels[item.id] = nil end
  end
  return known.why, known.relative
end

-- Race all finalists together. The fastest one is compared with the reference; if it is wrong, the next one is.
function handle:finals()
  local s, row, began = self.server, answer(self.item, "ok"), core.clock()
  local rounds, order = s:race(self.item.finalists, LONG), {}
  row.results, row.wrong = {}, {}
  for i, item in ipairs(self.item.finalists) do
    local ratio, low, high = paired.interval(paired.ratios(rounds, i, 1))
    row.results[item.id] = {ms = paired.median(paired.times(rounds, i)), ratio = ratio, low = low, high = high}
    order[i] = item
  end
  table.sort(order, function(a, b) return row.results[a.id].ratio < row.results[b.id].ratio end)
  for _, item in ipairs(order) do
    local why = s:wrong(item)
    if not why then break end
    row.wrong[item.id], row.results[item.id] = why, nil
  end
  row.device_seconds = core.clock() - began
  return row
end

-- A race failed: run the candidate alone, which raises its own error if it was to blame.
function server:blame(k, why)
  core.run(k, nil, {seed = self.seed, limit = self.limit})
  core.raise(why)
end

-- Time the candidate, and compare its result if it is the best so far. The time of a slower one only improves the belief.
function handle:trial(k, incumbent)
  local s, item, began = self.server, self.item, core.clock()
  local row = answer(item, "ok")
  row.registers, row.spills, row.problems = k.registers, k.spills, #k.problems
  s.kernels[item.id] = k
  for _ = 1, 2 do
    local good, why = core.try(s.time, s, row, item, incumbent)
    if not good then s:blame(k, why) end
    if not incumbent or row.ratio >= 1 then break end   -- if it seems faster, a second race counts
  end
  if not incumbent or row.ratio < 1 then
    row.why, row.relative = s:wrong(item)
    if row.why then row.status, row.ms = "wrong", nil end
  end
  row.device_seconds = core.clock() - began
  return row
end

function handle:poll(incumbent)
  local item, failed = self.item, nil
  if self.problem then return answer(item, "failed", self.problem) end
  if item.finalists then
    local good, row = core.try(self.finals, self)
    return good and row or answer(item, "failed", row)
  end
  if not self.compiling:done() then
    if item.anyway or core.clock() - self.began < COMPILE_SECONDS then return nil end
    self:drop()
    return answer(item, "skipped", ("its compiler takes more than %d s"):format(COMPILE_SECONDS))
  end
  local good, k = core.try(self.compiling.kernel, self.compiling)
  if not good then return answer(item, "failed", k) end
  if #k.problems > 0 and not item.anyway then
    local row = answer(item, "skipped", k.problems[1].message)
    row.registers, row.spills, row.problems = k.registers, k.spills, #k.problems
    return row
  end
  self.server:reference(k)                              -- here: its error is not the candidate's
  good, failed = core.try(self.trial, self, k, incumbent)
  return good and failed or answer(item, "failed", failed)
end

function handle:drop()
  if self.compiling then self.compiling:drop() end
end

-- serve(bound, device, {seed=, limit=}) -> a server
return function(bound, _, o)
  local found, why = core.attached()
  if not found then core.raise("measure: " .. why) end
  local workers = core.compile_state()
  return setmetatable({bound = bound, seed = o and o.seed or 1, limit = o and o.limit or LIMIT,
    capacity = math.max(workers, 2), kernels = {}, compared = {}}, server)
end
