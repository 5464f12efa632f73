-- measure.lua - which of many plans to measure, in what order, and when to stop.
--
-- The candidates most likely to be the fastest are measured first, each alternately with the best so far. The measured
-- times tell how far the model's predictions are off (belief.lua). When no candidate is likely to beat the best, neighbours of the
-- fastest become candidates, too. It ends when the probability that any one left would beat the best by more than `gain` is `risk` at most. The
-- measuring is done by servers (queue.lua).

local core = require "millrace.core"
local new_belief = require "millrace.belief"
local similarity = new_belief(0).similarity
local new_queue = require "millrace.queue"
local FASTER <const> = require("millrace.paired").FASTER

local GAIN, RISK = 0.005, 0.02
-- When no candidate left has a greater chance than LIKELY (or `risk`), the neighbours of a plan within AS_GOOD times the best score become
-- candidates, of at most REFINED plans.
local LIKELY <const>, AS_GOOD <const>, REFINED <const> = 0.1, 1.03, 12
local HOPELESS <const> = 0.1                            -- work in progress whose chance is less than this part of `risk` may be withdrawn
local UNCERTAINTY = 0.1                                       -- if the model's uncertainty is not known
local WORST = 1.25                                      -- candidates predicted to take more than this times the best are ignored
local SHARP <const> = 8                                 -- whether kernels spill depends more closely on likeness than their speed does
local SPARE <const>, TRIALS_OF_SPARE <const> = 8, 16    -- items that a server gets beyond its capacity: at most; one for so many trials
local BUSY <const> = 8                                  -- with so many items under way, the device is not idle while another is begun
-- The candidates of the last race: those whose scores are within NEAR of the best one's; one for each TRIALS_OF_FINALIST rows with a time, but
-- at least MIN and at most MAX.
local NEAR, TRIALS_OF_FINALIST, FINALISTS_MIN, FINALISTS_MAX = 1.06, 4, 8, 16

-- The candidates left, sorted by predicted time, and the known chances of each.
local source = {}
source.__index = source

local function new_source(candidates)
  local list = {}
  if type(candidates) == "function" then
    for c in candidates do list[#list + 1] = c end
  else
    table.move(candidates, 1, #candidates, 1, list)
  end
  return setmetatable({list = list, chances = {}}, source)
end

-- Learn from a candidate, by the likeness of others to it, whether their kernels will count (run without spills).
function source:teach(traits, counts)
  for _, c in ipairs(traits and self.list or {}) do
    local k = c.traits and similarity(c.traits, traits) ^ SHARP or 0
    c.like, c.fine = (c.like or 1) + k, (c.fine or 1) + (counts and k or 0)
  end
end

local function luck(c) return (c.fine or 1) / (c.like or 1) end

-- The best prediction among the candidates whose kernels will probably count.
function source:hopeful()
  for _, c in ipairs(self.list) do
    if luck(c) >= 0.5 then return c.predicted end
  end
  return self.list[1] and self.list[1].predicted
end

-- The candidate of the greatest expected improvement, the chance that any wins, as if they were independent, and the greatest chance of one;
-- candidates predicted beyond `most_seconds` have none. rate(c) -> its chance and its expected improvement; cached until `stamp` changes.
-- under_way(c): a factor below 1 for candidates like those being measured, which would tell little more.
function source:head(rate, stamp, under_way, most_seconds)
  if stamp ~= self.stamp then self.stamp, self.chances, self.promises = stamp, {}, {} end
  local top, none_wins, greatest, rank = nil, 1, 0, nil
  for i, c in ipairs(self.list) do
    if c.predicted > most_seconds then
      if not rank then top = i end
      break
    end
    if not self.chances[c] then
      local chance, promise = rate(c)
      self.chances[c], self.promises[c] = luck(c) * chance, luck(c) * promise
    end
    local value = self.promises[c]                      -- an upper bound; under_way is slow, so only those that could win get it
    if not rank or value > rank then value = value * under_way(c) end
    -- If all that could win are like those under way, one of these all the same.
    if not rank or value > rank or value == rank and self.promises[c] > self.promises[self.list[top]] then top, rank = i, value end
    none_wins, greatest = none_wins * (1 - self.chances[c]), math.max(greatest, self.chances[c])
  end
  self.top = top
  return self.list[top], math.max(1 - none_wins, greatest), greatest     -- the first is 0 if all are below 1e-16
end

function source:drop() table.remove(self.list, self.top) end

-- Insert it by its predicted time.
function source:put_back(c)
  local at = 1
  while self.list[at] and self.list[at].predicted < c.predicted do at = at + 1 end
  table.insert(self.list, at, c)
end

-- A legal plan with a wrong result is a fault of Millrace, which must be reported; or of one of many GPUs.
local function alarm(row)
  local farm = core.farm()
  local by = row.by or farm and farm:rank() > 0 and ("rank %d on %s"):format(farm:rank(), farm:host())
  io.stderr:write(("millrace: a plan that was measured%s gives a wrong result (%s): a fault of Millrace%s, please report "
    .. "its script:\n%s\n"):format(by and " by " .. by or "", row.why or "no reason",
    by and ", or of that GPU, if the plan is right on others" or "", row.script or "(none)"))
end

local run = {}
run.__index = run

-- The larger uncertainty of the device's file, as the kind of bottleneck is not known here.
local function uncertainty_of(device)
  local known = device and math.max(device:number "uncertainty.products", device:number "uncertainty.other") or 0
  return known > 0 and known or UNCERTAINTY
end

local function new_run(bound, device, candidates, o)
  local servers = o.server or require "millrace.serve"(bound, device, o)
  -- In a long search compilers always have work. A short one learns more if candidates are chosen late.
  local spare = math.min(SPARE, (o.trials or 0) // TRIALS_OF_SPARE)
  local r = setmetatable({
    bound = bound, o = o, queue = new_queue(servers.begin and {servers} or servers, spare), source = new_source(candidates),
    belief = new_belief(o.uncertainty or uncertainty_of(device)), results = {}, trials = 0, known = 0, device_seconds = 0, given = 0,
    seen = {}, reserve = {}, trusted = {}, scores = {}, refined = {n = 0}, gain = o.gain or GAIN, risk = o.risk or RISK, worst = o.worst or WORST,
    clock = o.clock or core.clock, most = o.trials or math.huge,
  }, run)
  for _, server in ipairs(r.queue.servers) do
    server.meanwhile = function() return not r:is_late() and r:feed(1) end
  end
  return r
end

-- Add to a server's row what is known about the candidate.
local function finish_row(row, c)
  row.predicted, row.bound_seconds, row.script, row.plan = c.predicted, c.bound, row.script or c.script, c.plan
  return row
end

-- `score`: the time, by ratios of races, at the clock of the first measurement. The noise of an incumbent's race is in all
-- later scores, and it is biased as the fastest was chosen: so the incumbent changes seldom.
function run:learn(row, item)
  local base = row.ratio and self.scores[row.against]
  if row.status == "ok" then row.score = base and row.ratio * base or row.ms end
  self.results[#self.results + 1] = row                 -- complete, as Ctrl-C may end what follows
  self.source:teach(item.candidate.traits, row.status == "ok")
  if row.status ~= "ok" then return end
  self.scores[row.id] = row.score
  self.belief:learn(item.candidate, row.score * 1e-3)
  self.trusted[#self.trusted + 1] = {row = row, item = item}
  if not self.best or row.score < self.best.score then self.best = row end
  if not self.incumbent or row.score <= self.scores[self.incumbent.id] * FASTER then self.incumbent = item end
end

-- The seconds below which a candidate beats all that were measured by more than the gain. Of many, the one with the least score was lucky, so
-- what counts is what the belief makes of the scores.
function run:target()
  if self.estimated ~= #self.results then
    self.estimated, self.least = #self.results, math.huge
    for _, x in ipairs(self.trusted) do
      if x.row.status == "ok" then self.least = math.min(self.least, self.belief:estimate(x.item.candidate, x.row.score * 1e-3)) end
    end
  end
  return self.least * (1 - self.gain)
end

-- The probability that the candidate is faster than the target.
function run:chance(c)
  if not c then return 0 end
  if not self.best or self.risk < 0 then return 1 end   -- measure all
  local target = self:target()
  if c.bound and c.bound >= target then return 0 end
  return self.belief:improvement_probability(c, target)
end

function run:item_of(c, anyway)
  self.given = self.given + 1
  return {id = self.given, script = c.script, plan = c.plan, bound = self.bound, candidate = c, anyway = anyway, seed = self.o.seed}
end

-- Was the same plan measured in this run? Two searches may find the same one.
function run:is_repeated(c)
  if not c.plan and c.make then c.plan = c.make() end
  c.script = c.script or c.plan:script()
  local seen = self.seen[c.script]
  self.seen[c.script] = true
  return seen
end

-- Use the row of a candidate that was measured by an earlier run. -> was there one?
function run:recall(c)
  local row = self.o.known and self.o.known(c.plan or c)
  if not row then return false end
  local copy = {}
  for key, value in pairs(row) do copy[key] = value end
  local item = self:item_of(c)
  copy.id, copy.known = item.id, true
  self.known = self.known + 1
  self:learn(finish_row(copy, c), item)
  return true
end

-- The candidate to measure next, the chance that any of those left wins, and the greatest chance of one; by predictions alone before the first
-- result.
function run:next_one()
  local pending = self.queue.under_way
  local function fresh(c)
    local share = 1
    for _, work in ipairs(pending) do
      local other = work.item.candidate
      if other and other.traits and c.traits then share = math.min(share, 1 - similarity(c.traits, other.traits)) end
    end
    return share
  end
  local first = self.source:hopeful()
  local function rate(c)
    local target = self.best and self:target() or first * (1 - self.gain)
    local chance = self.best and self:chance(c) or self.belief:improvement_probability(c, target)
    if self.risk < 0 then return chance, 1 end
    return chance, chance > 0 and self.belief:expected_improvement(c, target) or 0   -- none if its bound is beyond the target
  end
  local limit = self.worst * (first or 0)
  if self.best then                                     -- a model that predicts too slowly does so for those left, too
    limit = self.worst * self.best.score * 1e-3 * math.max(1, math.exp(-self.belief:unknown_error()))
  end
  local c, chance, greatest = self.source:head(rate, #self.results, fresh, limit)
  return c, self.best and chance or 1, greatest
end

-- Give the servers as many items as they can hold, and not more than `most`, as long as these are worth it. True if there is something left.
function run:feed(most)
  local given = 0
  while true do
    local c, chance = self:next_one()
    if not c or chance <= self.risk then return c ~= nil end
    local _, free = self.queue:freest()
    if self.trials + self.queue:count() >= self.most or free == 0 or given == most then return true end
    self.source:drop()
    if not self:is_repeated(c) and not self:recall(c) then
      local item = self:item_of(c)
      self.first = self.first or item
      self.queue:put(item)
      given = given + 1
    end
  end
end

-- The candidate to measure next; of all that are left or under way, the chance that any wins, and the greatest chance of one; and the chances
-- of those under way, by work.
function run:outlook()
  local c, any_wins, greatest = self:next_one()
  local chances = {}
  for _, work in ipairs(self.queue.under_way) do
    local chance = self:chance(work.item.candidate)
    chances[work], greatest = chance, math.max(greatest, chance)
    any_wins = math.max(1 - (1 - any_wins) * (1 - chance), chance)
  end
  return c, any_wins, greatest, chances
end

-- Withdraw work that is no longer worth it, the last one first: all of it if neither that nor what is left is likely to win, else what has next
-- to no chance, if something else is left that is better by far: otherwise it would be begun again.
function run:drop_hopeless()
  local next_one, any_wins, _, chances = self:outlook()
  local promise, hopeless = next_one and self.source.promises[next_one] or 0, {}
  for _, work in ipairs(self.queue.under_way) do
    local chance = chances[work]
    local is_hopeless = any_wins <= self.risk or chance == 0
      or chance <= HOPELESS * self.risk and self.belief:expected_improvement(work.item.candidate, self:target()) < HOPELESS * promise
    if is_hopeless and not work.item.anyway then table.insert(hopeless, 1, work.item) end
  end
  for _, item in ipairs(hopeless) do
    self.queue:drop(item)
    self.seen[item.script] = nil
    self.source:put_back(item.candidate)
  end
end

function run:report()
  if not self.o.progress then return end
  local mean, spread = self.belief:unknown_error()
  self.o.progress{trials = self.trials, best = self.best, last = self.results[#self.results], results = self.results, bias = mean, spread = spread,
    device_seconds = self.device_seconds, under_way = self.queue:count(), chance = select(2, self:next_one())}
end

-- Sort the work in progress by expected improvement: ready work is measured in this order.
function run:sort()
  if not self.best or self.risk < 0 then return end
  local target, value = self:target(), {}
  for i, work in ipairs(self.queue.under_way) do
    local c = work.item.candidate
    value[work] = {gain = c and self.belief:expected_improvement(c, target) or 0, index = i}
  end
  table.sort(self.queue.under_way, function(a, b)
    local x, y = value[a], value[b]
    if x.gain ~= y.gain then return x.gain > y.gain end
    return x.index < y.index
  end)
end

function run:take()
  self:sort()
  local row, item = self.queue:take(self.incumbent)
  if not row then return end
  self:count(row, item)
  if self.o.put then self.o.put(row) end
  self:report()
end

-- Count a row that was measured, and learn from it.
function run:count(row, item)
  self.device_seconds = self.device_seconds + (row.device_seconds or 0)
  if row.status == "skipped" then
    self.reserve[#self.reserve + 1] = item
  else
    self.trials = self.trials + 1
  end
  self:learn(finish_row(row, item.candidate), item)
  if row.status == "wrong" then (self.o.alarm or alarm)(row) end
end

-- Take over the rows that servers measured during the search in the model, which were put and reported then, and the items that they
-- still hold.
function run:take_early(early, under_way)
  local function begin(item) self.given, self.seen[item.script] = math.max(self.given, item.id), true end
  for _, x in ipairs(early) do
    begin(x.item)
    self:count(x.row, x.item)
  end
  for _, work in ipairs(under_way) do begin(work.item) end
  self.queue.under_way = under_way
end

-- The candidate with the best score whose neighbours are no candidates yet; nil if that is not within AS_GOOD.
function run:unrefined()
  local least, found = math.huge, nil
  for _, x in ipairs(self.trusted) do
    if x.row.status == "ok" and x.row.score < least and not self.refined[x.item.candidate] then
      least, found = x.row.score, x.item.candidate
    end
  end
  return least <= self.best.score * AS_GOOD and found or nil
end

-- When no candidate, left or under way, is likely to win, ask the search for the neighbours of a plan that is about as good as the best, of the
-- best first. Errors of races decide which plan is the best for now: if only that one had neighbours, another search of the same would come
-- to other kinds of plans. -> was the search asked, and "interrupted" if it was.
function run:refine()
  if not self.best or not self.o.more or self.refined.n == REFINED then return false end
  if self.trials + self.queue:count() >= self.most or not self.queue:has_server() then return false end
  local from = self:unrefined()
  if not from or select(3, self:outlook()) > math.max(self.risk, LIKELY) then return false end
  self.refined[from], self.refined.n = true, self.refined.n + 1
  local list, ended = self.o.more(from)
  for _, c in ipairs(list) do self.source:put_back(c) end
  return true, ended
end

-- Is the candidate that was the most promising before any result not measured yet?
function run:awaits_first()
  for _, work in ipairs(self.queue.under_way) do
    if work.item == self.first then return true end
  end
  return false
end

function run:is_late() return self.late and self.clock() >= self.late or false end

-- Measure until there is a reason to end, which it returns. When the time is used, the most promising candidate is measured all
-- the same: others may have been compiled before it, and be the fastest of few.
function run:loop()
  self.late = self.o.seconds and self.clock() + self.o.seconds
  while true do
    local is_late = self:is_late()
    -- Where this thread measures, it begins one item, and others while the device works.
    local waits = self.queue.servers[1].busy_thread and self.queue:count() >= BUSY
    local left = not is_late and self:feed(waits and 1 or nil)
    local refined, ended
    if not is_late then refined, ended = self:refine() end       -- behind feed, which may take the best from what is known
    if ended == "interrupted" then return ended end
    if refined then goto next end                       -- what was added is begun before anything is waited for
    if is_late and not self:awaits_first() then return "seconds" end
    if self.trials >= self.most then return "trials" end
    if self.queue:count() > 0 then
      -- The rows of all that were measured together, before others are begun: each changes what is worth it.
      repeat self:take() until not self.queue:has_row()
      self:drop_hopeless()
    else
      if not self.queue:has_server() then return "lost" end
      if left then return "sure" end
      if self.best or #self.reserve == 0 then return "done" end
      for _, item in ipairs(self.reserve) do             -- only skipped candidates are left
        item.anyway = true
        self.queue:put(item)
      end
      self.reserve = {}
    end
    ::next::
  end
end

-- Race the candidates that are too close to the best once more, all together and for longer, and have the winner's outputs compared
-- completely. True if none was right, and some are left for another race.
function run:final()
  local near = {}
  for i = #self.trusted, 1, -1 do
    if self.trusted[i].row.status ~= "ok" then table.remove(self.trusted, i) end
  end
  for _, x in ipairs(self.trusted) do
    if not self.best or x.row.score < self.best.score then self.best = x.row end
  end
  for _, x in ipairs(self.trusted) do
    if x.row.score <= self.best.score * NEAR then near[#near + 1] = x end
  end
  table.sort(near, function(a, b)
    if a.row.score ~= b.row.score then return a.row.score < b.row.score end
    return a.row.id < b.row.id
  end)
  local items, fresh = {}, false
  local most = math.max(FINALISTS_MIN, math.min(FINALISTS_MAX, #self.trusted // TRIALS_OF_FINALIST))
  for i = 1, math.min(#near, most) do items[i], fresh = near[i].item, fresh or not near[i].row.known end
  if not fresh then return false end
  self.queue:put{id = 0, bound = self.bound, finalists = items, seed = self.o.seed}
  local row = self.queue:take(self.incumbent)
  self.device_seconds = self.device_seconds + (row.device_seconds or 0)
  if row.status ~= "ok" then
    if self.best then self.best.why = "the last race failed: " .. tostring(row.why) end
    return false
  end
  local refuted = false
  self.estimated, self.source.stamp = nil, nil          -- as rows may count no longer
  for _, x in ipairs(near) do
    local wrong = row.wrong and row.wrong[x.item.id]
    local why = wrong or row.failed and row.failed[x.item.id]
    if why then
      refuted = true
      x.row.status, x.row.why, x.row.by, x.row.ms, x.row.score = wrong and "wrong" or "failed", why, row.by, nil, nil
      if self.best == x.row then self.best = nil end
      if self.o.put then self.o.put(x.row) end
      if wrong then (self.o.alarm or alarm)(x.row) end
    elseif row.results[x.item.id] then
      x.row.final, x.row.why = row.results[x.item.id], row.notes and row.notes[x.item.id]
      if x.item.id == row.right then self.best = x.row end
    end
  end
  return refuted and not row.right
end

local why = {
  sure = "that a candidate left beats the best by more than %.1f %% has a probability of %.0f %% at most",
  trials = "all %d trials are used", seconds = "the time is used", interrupted = "interrupted",
  done = "all candidates are measured", lost = "no device measures any more",
}

-- measure(bound, device, candidates, o) -> {best=, results=, ended=, why=, trials=, known=, bias=, spread=,
-- chance=, device_seconds=}
--
-- candidates: {plan=, predicted=, bound=, traits=} (seconds; bound, a lower bound of its time, and traits, numbers
-- by name that tell how like another it is, may be nil), sorted by predicted time: a list, or a function that
-- gives the next one. Instead of plan= there may be script=, or make=, a function that gives the plan.
-- ended: "sure", "done", "trials", "seconds", "interrupted", or "lost": no server takes items any more. why: the same in words.
-- o:
--   trials, seconds   limits;  limit   seconds that one kernel may take;  seed   of the inputs
--   gain, risk        when to end, see above; risk below 0: all are measured
--   uncertainty       of the model, a share;  worst   candidates predicted slower than this times the best are ignored
--   final=false       no last race
--   more              called when none left is likely to win, once for each candidate that is about as fast as the best, with that: gives a list
--                     of more candidates, and "interrupted" if it was
--   early             a list of {item=, row=}: what the server has measured already, with ids from 1; item.candidate as in candidates;
--                     neither put nor reported again
--   under_way         what the servers have to do already, as queue.lua's under_way
--   known             plan -> row or nil;  put   gets each row, at once;  progress   gets a state, after each row
--   alarm             gets a row with a wrong result
--   server            or a list of them
-- Rows:
--   id, status ("ok", "skipped", "wrong", "failed"), predicted, script, plan, device_seconds
--   by                which rank measured it, as a text; nil: this process
--   why               what is wrong or failed; of "ok", if not all outputs were compared, the reason
--   ms, min, max, ratio, low, high, against (an id), score (ms, by ratios), relative (error of the result). low and high:
--                     the least and the greatest ratio of a pair of rounds; both are `ratio` if there was one pair
--   final             {ms, min, max, ratio} of those that were in the last race: its samples are long, so its times are those of long use,
--                     while scores are comparable with each other
return function(bound, device, candidates, o)
  local r = new_run(bound, device, candidates, o or {})
  local good, ended = core.heed(function()
    r:take_early(r.o.early or {}, r.o.under_way or {})
    local reason = r:loop()
    r.queue:drop()
    if r.best and r.o.final ~= false then
      r.ended = reason                                  -- stays the reason if the last race is interrupted
      while r:final() do end
    end
    return reason
  end)
  if not good then ended = r.ended or "interrupted" end
  r.queue:drop()
  for _, server in ipairs(r.queue.servers) do
    server.meanwhile = nil
    if server.end_idle then server:end_idle() end
  end
  local mean, spread = r.belief:unknown_error()
  local text = ended == "sure" and why.sure:format(100 * r.gain, 100 * r.risk)
    or ended == "trials" and why.trials:format(r.most) or why[ended]
  return {best = r.best, results = r.results, ended = ended, why = text, trials = r.trials, known = r.known,
    bias = mean, spread = spread, chance = select(2, r:next_one()), device_seconds = r.device_seconds}
end
