-- serve.lua - a server of queue.lua that measures plans on the attached device.
--
-- Plans are compiled in the background, by as many workers as there are cores. Those that are compiled are timed together, eight at most,
-- and those that seem to be the fastest so far a second time. A kernel that may be the best has its outputs compared in the device's memory:
-- the first one with tiles of the reference that are drawn at random and those at the corners, each further one with all outputs of a right
-- kernel. A kernel that hangs or faults fails its candidate, no other.

local core = require "millrace.core"
local helpers = require "millrace.helpers"
local paired = require "millrace.paired"
local race_in_heats = require "millrace.finals"
local within = require "millrace.within"

-- A race: up to 16 rounds with samples of about 6 ms, until each plan has run for 96 ms, and at least six, where runs take longer (three, if a race
-- takes half a minute). A board at its power limit lowers its clock about 0.8 s after a load began, for 0.1 s and by far too much, which hits
-- whoever is sampled then. In short rounds it hits all alike, and few samples of each: the median of the ratios is off by 0.7 to 1.8 %, where in
-- two rounds of 50 ms it was by 4 to 9 %.
local RACE <const> = {seconds = 0.096, sample = 0.006, warmup = 0, rounds = 6, rounds_max = 16}
local TOGETHER <const> = 8                              -- items of a race at most
local LIMIT = 5                                         -- seconds that one kernel may take
local COMPILE_SECONDS = 30                              -- a candidate is skipped after that: all that took so long had spills
local SAMPLE <const> = 128                              -- tiles of the reference
local SLACK <const> = 8                                 -- the difference of two right kernels is at most so many times the first one's error
local APART <const> = 0.1                               -- ... and this share of the norm: one of 32 elements that is missing is 0.18 of it
local COMPLETE <const> = 2                              -- complete references before the end
local SOON <const> = 0.003                              -- seconds from a reply of the device until it is noticed
local REFUSALS <const> = 3                              -- comparisons that fail before the first one that does not: then the reference is at fault

local server = {}
server.__index = server
local handle = {}
handle.__index = handle

local function plan_of(item) return item.plan or assert(load(item.script, "=[millrace.serve]", "t"))(item.bound) end

-- Are the extents the same? Of nil, they are.
local function same(tile, other)
  for axis, extent in pairs(tile or {}) do
    if not other or other[axis] ~= extent then return false end
  end
  return true
end

-- A message without its location, which is that of the caller of the search.
local function unlocated(message) return message and (tostring(message):gsub("^[^:]+:%d+: ", "")) end

-- The row of an item.
local function answer(item, status, why) return {id = item.id, status = status, why = unlocated(why), script = item.script} end

function server:begin(item)
  local h = setmetatable({server = self, item = item, began = core.clock()}, handle)
  if item.finalists then return h end
  local good, x = core.try(function()
    local plan = plan_of(item)
    local script = item.script or plan:script()
    local begun = self.begun[script]
    self.begun[script] = nil
    return begun or helpers.compile_begin(plan)
  end)
  if good then h.compiling = x else h.problem = x end
  self.handles[#self.handles + 1] = h
  self:prepare()
  self:prepare(0)
  return h
end

-- Have what compares outputs with the reference compiled in the background, as that takes as long as some kernels: for so many of its
-- tiles (SAMPLE), 0: all.
function server:prepare(tiles)
  tiles = tiles or SAMPLE
  if self.ahead[tiles] then return end
  self.ahead[tiles] = {}
  if core.adds(self.bound) then return end
  local good, reference, inputs = core.try(core.verify_begin, self.bound, {seed = self.seed, tiles = tiles})
  self.ahead[tiles] = good and {reference, inputs} or {}    -- an error is that of the comparison, too
  core.compile_wait(0)
end

-- Is what compares outputs with the reference's sample compiled? Never of programs with additions, whose reference is that of a tile.
function server:is_prepared()
  local jobs = self.ahead[SAMPLE] or {}
  for _, job in ipairs(jobs) do
    if not job:done() then return false end
  end
  return #jobs > 0
end

function server:wait(seconds) helpers.compile_wait(seconds) end

function server:end_idle()
  for _, list in pairs(self.ahead) do
    for _, x in ipairs(list) do x:drop() end
  end
  self.ahead = {}
  core.compile_end_idle()
end

function server:forget(h)
  for i, other in ipairs(self.handles) do
    if other == h then return table.remove(self.handles, i) end
  end
end

---- outputs ------------------------------------------------------------------------------------

-- The reference's outputs, and how far those of a kernel may be from them. A program with additions has others for each tile shape, of
-- which the last are kept.
function server:reference(k)
  local tile = k.plan.graph.tile
  if not self.want or not same(tile, self.tile) then
    self.want, self.allowed = core.reference_allowing(self.bound, nil, {on = "device", seed = self.seed, tile = tile})
    self.tile = tile
  end
  return self.want, self.allowed
end

-- What core.verify finds, or an error of the kernel.
function server:compare(k, other, o)
  o.seed, o.limit = self.seed, o.reference == false and self.limit or 60 * self.limit
  return core.verify(k, other, o)
end

-- {why= nil or why the outputs are wrong, relative=, complete= are all of them compared? full= with the reference?}
local function verdict(found, complete)
  local off, wrong = 0, false
  for _, x in pairs(found) do
    if off == off and not (x.relative <= off) then off = x.relative end   -- NaN stays
    wrong = wrong or x.wrong > 0
  end
  return {why = wrong and ("its result is off by %.3g"):format(off) or nil, relative = off, complete = complete, full = complete}
end

-- Do the outputs of two kernels agree, as well as the right one of them agreed with the reference where that was computed? `chunk`: its
-- error there, by output. An element that both leave NaN may be one that none has computed.
local function agree(found, chunk)
  for name, x in pairs(found) do
    local allowed = SLACK * chunk[name]
    if not (allowed < APART and x.apart <= allowed and x.unwritten == 0) then return false end
  end
  return true
end

-- The verdict of an item whose outputs are compared with the reference: all of them, or a sample.
function server:judge(k, tiles)
  if core.adds(self.bound) then
    local got = core.run(k, nil, {seed = self.seed, limit = self.limit})
    local want, allowed = self:reference(k)
    local found = within(self.bound, got, want, allowed, {})
    return {why = not found.ok and ("its result is off by %.3g"):format(found.relative) or nil, relative = found.relative, complete = true,
      full = true}
  end
  local found, complete = self:compare(k, nil, {tiles = tiles})
  local v = verdict(found, complete)
  v.chunk = {}
  for name, x in pairs(found) do v.chunk[name] = x.chunk end
  return v
end

-- Can all outputs of a kernel be compared with those of another one, which was found right (the memory may not be enough for both), and do
-- they agree?
function server:agrees(k, other)
  local compared, found = core.try(self.compare, self, k, self.kernels[other], {reference = false, tiles = SAMPLE})
  return compared, compared and agree(found, self.verdicts[other].chunk)
end

-- The verdict of an item, for good: it is right if a sample is and all of its outputs agree with those of another kernel that is right
-- by a sample, or all of the reference's. Two kernels that do not agree are compared with all of it. `surely`: a sample alone is not
-- enough.
function server:verdict_of(item, surely)
  local k, known = self:kernel(item), self.verdicts[item.id]
  if known and (known.why or known.complete or not surely) then return known end
  if not known and not self.right then known = self:judge(k, SAMPLE) end
  if not known or (surely and not known.why and not known.complete) then
    local other, compared, agrees = self:other_than(item), false, false
    if other then compared, agrees = self:agrees(k, other) end
    if agrees then
      local right = self.verdicts[self.right]
      known = {relative = (known or self.verdicts[other]).relative, complete = true, chunk = known and known.chunk}
      if right then right.complete = true end
    else
      -- Where right kernels do not agree again and again, a sample is enough until the end.
      local complete = surely or self.complete < COMPLETE
      known = self:judge(k, complete and 0 or SAMPLE)
      if complete then self.complete = self.complete + 1 end
      if complete and not known.why and compared then self:distrust() end
    end
  end
  self.verdicts[item.id] = known
  if known.why then
    self.kernels[item.id] = nil
    if self.right == item.id then self:distrust() end
  elseif not self.right then
    self.right = item.id
  end
  return known
end

-- The right one is wrong, or one is right that does not agree with it: what agreed with it may be wrong.
function server:distrust()
  self.right = nil
  for _, v in pairs(self.verdicts) do v.complete = v.full end
end

-- The id of a kernel to compare an item's with: the right one, or else another one that was found right by the reference.
function server:other_than(item)
  local function suits(id)
    local known = self.verdicts[id]
    return id ~= item.id and known and not known.why and known.chunk and self.kernels[id]
  end
  if self.right and suits(self.right) then return self.right end
  local least
  for id in pairs(self.kernels) do
    if suits(id) and (not least or id < least) then least = id end
  end
  return least
end

-- What the kernel does wrong if it runs alone: an error, or nil.
function server:fault_of(k)
  local good, why = core.try(core.run, k, nil, {seed = self.seed, limit = self.limit})
  return not good and why or nil
end

-- The verdict of an item, as verdict_of, and also where its outputs cannot be compared (the kernel faults then, or the memory is not
-- enough): then it counts as right, with a note, if a sample was right before, and otherwise it failed. If no kernel can be
-- compared although each runs alone, the reference is at fault, which is an error.
function server:try_verdict(item, surely)
  local good, found = core.try(self.verdict_of, self, item, surely)
  if good then
    self.refused = 0
    return found
  end
  local k, known = self.kernels[item.id], self.verdicts[item.id]
  local fault = k and self:fault_of(k)
  if known and not known.why and not fault then
    known.note = "its outputs were compared by a sample alone: " .. unlocated(found)
    return known
  end
  self.refused = self.refused + (fault and 0 or 1)
  if self.refused == REFUSALS and not next(self.verdicts) then error(found, 0) end
  if self.right == item.id then self:distrust() end
  self.kernels[item.id], self.verdicts[item.id] = nil, nil
  return {why = unlocated(fault or "its outputs cannot be compared: " .. unlocated(found)), failed = true}
end

---- times --------------------------------------------------------------------------------------

-- The kernel of an item that was measured before, perhaps by another run or on another rank.
function server:kernel(item)
  self:compile{item}
  return self.kernels[item.id]
end

-- Compile the kernels of those items that have none, at the same time. If some fail, the other kernels are kept, and the first error is raised.
function server:compile(items)
  local compiling, problem = {}, nil
  local function attempt(f, ...)
    local good, x = core.try(f, ...)
    if good then return x end
    problem = problem or x
  end
  for i, item in ipairs(items) do
    compiling[i] = not self.kernels[item.id] and attempt(function() return helpers.compile_begin(plan_of(item)) end)
  end
  for i, item in ipairs(items) do
    local x = compiling[i]
    if x then self.kernels[item.id] = attempt(x.kernel, x) end
  end
  if problem then error(problem, 0) end
end

function server:race(items, how)
  self:compile(items)
  local list, names = {}, {}
  for i, item in ipairs(items) do list[i], names[i] = self.kernels[item.id], "plan " .. item.id end
  local o = {seed = self.seed, limit = self.limit}
  for key, value in pairs(how) do o[key] = value end
  local rounds = core.race(list, names, o)
  -- If it ended under work_meanwhile, the device was idle for about half of that.
  if self.worked_until and core.clock() - self.worked_until < SOON then self.idle_seconds = self.idle_seconds + self.worked / 2 end
  return rounds
end

-- Race the items against the incumbent, or against the first of them if there is none. Fills their rows.
function server:time(rows, items, incumbent)
  local all, base = table.move(items, 1, #items, 1, {}), incumbent or items[1]
  if incumbent then table.insert(all, 1, incumbent) end
  local rounds = self:race(all, RACE)
  for i, item in ipairs(all) do
    local row = rows[item.id]
    if row then
      row.ms = paired.median(paired.times(rounds, i))
      row.min, row.max, row.rounds, row.cache = rounds.min[i], rounds.max[i], #rounds, rounds.cache
      if item ~= base then
        row.against = base.id
        row.ratio, row.low, row.high = paired.interval(paired.ratios(rounds, i, 1))
      end
    end
  end
end

local function ratio_of(row) return row.ratio or 1 end

-- The items by the ratios of their rows, or results, then by number.
local function fastest_first(rows, items)
  local order = table.move(items, 1, #items, 1, {})
  table.sort(order, function(a, b)
    local x, y = ratio_of(rows[a.id]), ratio_of(rows[b.id])
    if x ~= y then return x < y end
    return a.id < b.id
  end)
  return order
end

-- The rows of items that are raced together, by id. With an incumbent, those that would be what others are compared with from then on are raced
-- a second time, which counts: one of many is the fastest by luck.
function server:times(items, incumbent)
  local rows = {}
  for _, item in ipairs(items) do
    local k, row = self:kernel(item), answer(item, "ok")
    row.registers, row.spills, row.problems = k.registers, k.spills, #k.problems
    rows[item.id] = row
  end
  self:time(rows, items, incumbent)
  local faster = {}
  for _, item in ipairs(incumbent and items or {}) do
    if ratio_of(rows[item.id]) <= paired.FASTER then faster[#faster + 1] = item end
  end
  if faster[1] then self:time(rows, faster, incumbent) end
  return rows
end

-- Compare the outputs of those that seem to be faster than the incumbent, the fastest first, until one is right. A slower plan shows
-- how far the model is off, and for that needs no correct outputs.
function server:check_fastest(rows, items, incumbent)
  local order = fastest_first(rows, items)
  for _, item in ipairs(order) do
    local row = rows[item.id]
    if incumbent and ratio_of(row) >= 1 then break end
    local found = self:try_verdict(item)
    row.relative, row.why = found.relative, found.why
    if not found.why then break end
    row.status, row.ms, row.ratio = found.failed and "failed" or "wrong", nil, nil
  end
end

-- While the device measures: give compilers their next work, and have the policy begin another item.
function server:work_meanwhile()
  local began = core.clock()
  helpers.compile_wait(0)
  if self.meanwhile then self.meanwhile() end
  self.worked_until = core.clock()
  self.worked = self.worked_until - began
end

-- Measure the items; returns their rows by id.
function server:measure(items, incumbent)
  local began = core.clock()
  self.idle_seconds = 0
  local good, rows = core.try(self.times, self, items, incumbent)
  if not good and #items > 1 then                       -- one of them fails: each by itself
    rows = {}
    for _, item in ipairs(items) do
      rows[item.id] = self:measure({item}, incumbent)[item.id]
    end
    return rows
  end
  local item = items[1]
  if not good then                                      -- a kernel is to blame for a failed race if it fails alone, too
    local k = self.kernels[item.id]
    local fault = k and self:fault_of(k)
    self.kernels[item.id] = nil
    return {[item.id] = answer(item, "failed", fault or rows)}
  end
  self:check_fastest(rows, items, incumbent)
  for _, x in ipairs(items) do rows[x.id].device_seconds = (core.clock() - began - self.idle_seconds) / #items end
  return rows
end

---- handles ------------------------------------------------------------------------------------

-- Those of the items that fault if they run alone go to `failed`, with the reason. -> the others
function server:without_faults(items, failed)
  local sound = {}
  for _, item in ipairs(items) do
    local fault = self:fault_of(self.kernels[item.id])
    if fault then failed[item.id] = unlocated(fault) else sound[#sound + 1] = item end
  end
  return sound
end

-- Race finalists. If that fails, those that cannot be compiled, or else those that fault alone, are left out; if there are none (the memory may
-- be too small for all outputs), the slower half is. -> as finals.lua, without those that fault; nil: none is left. failed: by id, why
-- one faults.
function server:race_finalists(items, failed)
  while items[1] do
    local good, order, results, n, why = core.try(race_in_heats, items, function(list, how) return self:race(list, how) end)
    if good then
      if why then                                       -- who is to blame for a later heat that failed
        local sound = self:without_faults(table.move(order, 1, n, 1, {}), failed)
        local kept = #sound
        order, n = table.move(order, n + 1, #order, kept + 1, sound), kept
      end
      for id in pairs(failed) do results[id] = nil end
      return order, results, n
    end
    local sound = {}
    for _, item in ipairs(items) do if self.kernels[item.id] then sound[#sound + 1] = item end end   -- the race has compiled what it could
    if #sound == #items then sound = self:without_faults(items, failed) end
    if #sound == #items then
      if #items == 1 then error(order, 0) end           -- the message
      sound = table.move(items, 1, #items // 2, 1, {})
    end
    items = sound
  end
end

-- The last race, of all finalists, also of one alone, for its time. The fastest one is verified; if it is wrong, the next one is, of those in the
-- last heat. row.right: the one that is right; nil: all of these are wrong or fault, and the others had too few rounds to be compared.
function handle:finals()
  local s, row, began = self.server, answer(self.item, "ok"), core.clock()
  row.wrong, row.failed, row.notes = {}, {}, {}
  local order, results, n = s:race_finalists(self.item.finalists, row.failed)
  for i = 1, order and n or 0 do
    local item = order[i]
    local found = s:try_verdict(item, true)
    if not found.why then
      row.right, row.notes[item.id] = item.id, found.note
      break
    end
    row[found.failed and "failed" or "wrong"][item.id], results[item.id] = found.why, nil
  end
  row.results = row.right and results or {}
  row.device_seconds = core.clock() - began
  return row
end

-- Get the kernel; sets .row where there is none to be measured. True if there is one.
function handle:compiled()
  local item = self.item
  if self.row or self.problem then
    self.row = self.row or answer(item, "failed", self.problem)
    return false
  end
  if self.server.kernels[item.id] then return true end
  if not self.compiling:done() then
    -- It may have waited for a compiler: there may be more items than compilers.
    local s = self.server
    if item.anyway or core.clock() - self.began < COMPILE_SECONDS * math.max(1, #s.handles / s.capacity) then return false end
    self:drop()
    self.row = answer(item, "skipped", ("its compiler takes more than %d s"):format(COMPILE_SECONDS))
    return false
  end
  local good, k = core.try(self.compiling.kernel, self.compiling)
  if not good then
    self.row = answer(item, "failed", k)
  elseif #k.problems > 0 and not item.anyway then
    self.row = answer(item, "skipped", k.problems[1].message)
    self.row.registers, self.row.spills, self.row.problems = k.registers, k.spills, #k.problems
  else
    self.server.kernels[item.id] = k
    return true
  end
  return false
end

function handle:poll(incumbent)
  local s, item = self.server, self.item
  if item.finalists then
    local good, row = core.try(self.finals, self)
    return good and row or answer(item, "failed", row)
  end
  if self:compiled() then                               -- with it, others that are compiled
    local items, of = {item}, {[item.id] = self}
    for _, h in ipairs(table.move(s.handles, 1, #s.handles, 1, {})) do   -- compiled() may drop one
      if #items < TOGETHER and h ~= self and h:compiled() then
        items[#items + 1], of[h.item.id] = h.item, h
      end
    end
    local rows = core.meanwhile(function() s:work_meanwhile() end, s.measure, s, items, incumbent)
    for id, row in pairs(rows) do of[id].row = row end
  end
  if self.row then s:forget(self) end
  return self.row
end

function handle:drop()
  self.server:forget(self)
  if self.compiling then self.compiling:drop() end
end

-- The row of an item whose script is one of those being compiled ahead; nil if that, or what compares its outputs, is not compiled yet.
function server:measure_early(item)
  local compiling = self.begun[item.script]
  if not (compiling and compiling:done() and self:is_prepared()) then return nil end
  return self:begin(item):poll()
end

-- serve(bound, device, {seed=, limit=, ahead=}) -> a server. ahead: kernels that are being compiled, by script
return function(bound, _, o)
  local found, why = core.attached()
  if not found then core.raise("measure: " .. why) end
  local workers, seed = helpers.workers(), o and o.seed or 1
  return setmetatable({bound = bound, seed = seed, begun = o and o.ahead or {}, limit = o and o.limit or LIMIT, handles = {},
    ahead = {}, capacity = math.max(workers, 2), kernels = {}, verdicts = {}, complete = 0, refused = 0, idle_seconds = 0,
    busy_thread = true}, server)
end
