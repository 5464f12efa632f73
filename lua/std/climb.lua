-- climb.lua - a search of the plans around one: what differs from the best in one thing, and so on.
--
-- Best first: of the plans found, the fastest whose changes were not tried yet is next. One that is somewhat
-- slower than the best may be next, too, as many a change pays only with another one. It ends if that has
-- brought nothing for some time.

local core = require "millrace.core"
local changes = require "millrace.changes"
local draft = require "millrace.draft"
local pins = require "millrace.pins"
local repair = require "millrace.repair"

local GAIN <const> = 0.002                              -- of the time: a plan is better by that, or it is not
local SLACK <const> = 0.03                              -- slower than the best by more, and it is left alone
local SAME <const> = 1e-5                               -- a change that makes less of a difference has none
local PATIENCE <const> = 4                             -- plans tried in vain until it ends

-- A plan that was found, without the plan: there may be many.
local function node_of(plan, seconds, before, change)
  return {text = core.statements(plan), tile = plan.tile, seconds = seconds, before = before, change = change,
    depth = before and before.depth + 1 or 0}
end

local function draft_of(node) return draft.parse(node.text, node.tile) end

local function key_of(node) return draft.literal(node.tile) .. "\n" .. node.text end

-- The fastest that was not tried; of equal ones that with fewer changes, then the one found first.
local function next_of(open)
  local best
  for i, node in ipairs(open) do
    local other = open[best]
    if not other or node.seconds < other.seconds or node.seconds == other.seconds and node.depth < other.depth then
      best = i
    end
  end
  return best and table.remove(open, best)
end

-- Is a budget used up? Then it ends by that.
local function spent(run)
  local o = run.o
  if run.trials >= o.trials then run.ended = "trials" end
  if o.late and o.clock() >= o.late then run.ended = "seconds" end
  return run.ended
end

local function try(run, x, node, change)
  local good, plan, text = core.try(repair.make, x, change)
  if not good or not plan or not pins.hold(run.o.pins, plan) then return end
  local found = node_of(plan, 0, node, text)
  local key = key_of(found)
  if run.seen[key] then return end
  run.seen[key], run.trials = true, run.trials + 1
  found.seconds = plan:simulate{events = 0}.seconds
  if math.abs(found.seconds / node.seconds - 1) > SAME then table.insert(run.open, found) end
  if found.seconds < run.best.seconds * (1 - GAIN) then run.best = found end
  if run.o.progress then run.o.progress(run.trials, run.best.seconds) end
end

-- All that differs from a plan in one thing.
local function expand(run, node)
  local x = {draft = draft_of(node), bound = run.bound, device = run.device, pinned = {rings = run.o.pins.rings or {}}}
  for _, change in ipairs(changes.of(draft.make(x.draft, x.bound, x.device), true)) do
    try(run, x, node, change)
    if spent(run) then return end
  end
end

local function loop(run)
  local vain = 0
  while not spent(run) do
    local node, best = next_of(run.open), run.best
    if not node or vain >= PATIENCE or node.seconds > best.seconds * (1 + SLACK) then return end
    expand(run, node)
    vain = run.best ~= best and 0 or vain + 1
  end
end

-- The plan of a node, and the changes that made it, the first one first.
local function answer(run)
  local path, node = {}, run.best
  while node.before do
    table.insert(path, 1, {change = node.change, seconds = node.seconds, gain = 1 - node.seconds / node.before.seconds})
    node = node.before
  end
  return draft.make(draft_of(run.best), run.bound, run.device), path
end

-- plan: a legal one, which stays as it is. o: {pins=, trials=, late=, clock=, progress=}; late: when `clock`
-- says so it ends. Returns {plan=, changes=, trials=, ended=}.
return function(plan, o)
  local start = node_of(plan, plan:simulate{events = 0}.seconds)
  local run = {o = o, bound = plan.graph.program, device = plan.device, trials = 0, open = {start}, best = start,
    seen = {[key_of(start)] = true}}
  if not core.heed(loop, run) then run.ended = "interrupted" end
  local best, path = answer(run)
  return {plan = best, changes = path, trials = run.trials, ended = run.ended or "done"}
end
