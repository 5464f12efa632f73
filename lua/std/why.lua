-- why.lua - tl:why(): what binds a simulated timeline, and what would help, tried.

local core = require "millrace.core"
local suggest = require "millrace.suggest"
local times = require "millrace.times"
local raise = core.raise

local LEAST <const> = suggest.LEAST
local BINDS <const> = 0.85                              -- of the time a unit is at work that binds
local ALIKE <const> = 0.02                              -- shares of the time nearer than this are the same
local LANE_BINDS <const> = 0.95                         -- the same of a lane: less, and others may be worth more
local CONTRADICTS <const> = 0.1                         -- of the time of a lane: with shorter waits its work is still what binds
local IDLE <const> = 0.1                                -- of the EUs: if fewer have no tile, it is no cause
local MANY <const> = 0.5                                -- of the EUs: if fewer idle, parts of a tile would not be worth it

---- what binds -----------------------------------------------------------------------------

-- The greatest value of a table and its key; of equal ones, that which comes first by name.
local function greatest(t)
  local most, key
  for name, x in pairs(t) do
    if not most or x > most or x == most and name < key then most, key = x, name end
  end
  return key, most
end

-- The sTasks of a phase, as a set of names.
local function tasks_of(plan, phase)
  local set = {}
  for _, task in ipairs(plan.tasks) do set[task.name] = task.phase == phase.name or nil end
  return set
end

-- By lane, of the events of a phase: the share of its time in which it waits, and for which sTask most, and that share. A wait counts
-- whatever the awaited sTask did meanwhile; blame gives it to what made it long, which may be the work of this lane before it.
local function waited(tl, of_phase)
  local lanes = {}
  for _, e in ipairs(tl.events) do
    if of_phase[e.task] then
      local x = lanes[e.lane] or {from = math.huge, to = 0, replicas = 0, all = 0, on = {}}
      lanes[e.lane] = x
      local wait = e.issue - e.ready
      x.from, x.to, x.replicas = math.min(x.from, e.ready), math.max(x.to, e["end"]), math.max(x.replicas, e.replica + 1)
      x.all = x.all + wait
      if e.on and e.cause == "wait" then x.on[e.on] = (x.on[e.on] or 0) + wait end
    end
  end
  for _, x in pairs(lanes) do
    local time = math.max((x.to - x.from) * x.replicas, 1)
    local on, most = greatest(x.on)
    x.share, x.awaited, x.most = x.all / time, on, (most or 0) / time
  end
  return lanes
end

-- Of a phase: the lane that waits least, of those that do not only feed others: its name, the share of its time there that it is at work,
-- and the sTask that takes most of that; then of its waiting, that which takes most, and its share.
local function critical(tl, phase)
  local busy, waits, works, all, of_phase = {}, {}, {}, {}, tasks_of(core.plan_of(tl), phase)
  local parts = core.blame(tl)
  for _, part in ipairs(parts) do                       -- shares are of the time of a lane in all phases
    if of_phase[part.task] then all[part.lane] = (all[part.lane] or 0) + part.share end
  end
  for _, part in ipairs(parts) do
    local lane = part.lane
    if not part.feeds and of_phase[part.task] and all[lane] > 0 then
      local share = #tl.phases > 1 and part.share / all[lane] or part.share
      busy[lane], waits[lane], works[lane] = busy[lane] or 0, waits[lane] or {}, works[lane] or {}
      local sums, key = works[lane], part.task
      if part.awaited then sums, key = waits[lane], part.awaited else busy[lane] = busy[lane] + share end
      sums[key] = (sums[key] or 0) + share
    end
  end
  local by_events, late = waited(tl, of_phase), {}
  for lane, share in pairs(busy) do
    local x = by_events[lane]
    if x and share > 1 - x.share + CONTRADICTS then busy[lane], late[lane] = 1 - x.share, x end
  end
  local lane, share = greatest(busy)
  local task = greatest(lane and works[lane] or {})
  if late[lane] and late[lane].awaited then return lane, share, task, late[lane].awaited, late[lane].most end
  return lane, share, task, greatest(lane and waits[lane] or {})
end

-- "load_a and load_b"
local function listed(names)
  return #names < 2 and names[1] or table.concat(names, ", ", 1, #names - 1) .. " and " .. names[#names]
end

-- The lane that the summary says binds by its ResMII, the share of the interval for which it is held, and what it does; nil.
local function held(tl)
  local kind, lane, holds = core.binding(tl)
  local busy = tl.ii > 0 and math.min(tl.res_mii / tl.ii, 1) or 0
  if kind ~= "lane" or busy < LANE_BINDS then return nil end
  local copied, by_task = {}, {}
  for _, h in ipairs(holds) do
    copied[#copied + 1] = h.by_threads and h.task or nil
    by_task[h.task] = h.hold
  end
  return lane, busy, #copied > 0 and ("copying %s by threads"):format(listed(copied)) or "most of it with " .. greatest(by_task)
end

-- If a considerable part of the EUs has no tile of the phase, the share of the machine that idles; nil.
local function idle_share(tl, phase)
  local idle = 1 - phase.eus / core.plan_of(tl).device.eus
  return idle >= IDLE and idle or nil
end

-- The phase that takes longest, and idle_share of it.
local function longest(tl)
  local most
  for _, phase in ipairs(tl.phases) do
    if not most or phase.cycles > most.cycles then most = phase end
  end
  return most, idle_share(tl, most)
end

local function idle_text(tl, phase, idle)
  local eus = core.plan_of(tl).device.eus
  return ("%d of %d EUs idle, %.0f %% of the machine, as there are %d tiles"):format(eus - phase.eus, eus, 100 * idle, phase.tiles)
end

-- Of a program with several phases, which one it is about: "phase sum, 62 % of the time: "; of one, "".
local function phase_text(tl, phase)
  return #tl.phases > 1 and ("phase %s, %.0f %% of the time: "):format(phase.name, 100 * phase.cycles / tl.cycles) or ""
end

-- The units that bind, at least `unit`, which is at work most: what the bound of II names first, as the summary does, then those
-- that are at work as long as `unit`: with more of one alone, the plan would be as slow.
local function binding_units(tl, unit)
  local named = select(2, core.binding(tl))
  local units = {}
  for name, share in pairs(tl.utilization) do
    if share > BINDS and (name == named or share > tl.utilization[unit] - ALIKE) then units[#units + 1] = name end
  end
  table.sort(units, function(a, b)
    local x, y = tl.utilization[a], tl.utilization[b]
    if (a == named) ~= (b == named) then return a == named end
    return x > y or x == y and a < b
  end)
  return units
end

local function unit_text(tl, unit, share)
  local units = binding_units(tl, unit)
  if #units > 1 then
    local shares = {}
    for i, name in ipairs(units) do shares[i] = ("%.0f"):format(100 * tl.utilization[name]) end
    table.sort(shares, function(a, b) return tonumber(a) < tonumber(b) end)
    return ("%s bind: each is at work %s %% of the time"):format(listed(units),
      shares[1] == shares[#shares] and shares[1] or shares[1] .. " to " .. shares[#shares])
  end
  local text = ("%s binds: it is at work %.0f %% of the time"):format(unit, 100 * share)
  if unit ~= "memory" or not select(2, longest(tl)) then return text end
  local plan = core.plan_of(tl)                         -- each of few EUs can have no more than its own share
  local device = plan.graph.bytes / tl.seconds / plan.device:number "memory.global.rate"
  return ("memory binds: each is at work %.0f %% of the time on what an EU can get of it, which is %.0f %% of the device memory"):format(
    100 * share, 100 * math.min(device, 1))
end

local function what_binds(tl)
  local phase, idle = longest(tl)
  local unit, share = greatest(tl.utilization)
  local lane, busy, work = held(tl)
  local text = not lane and share > BINDS and unit_text(tl, unit, share)
  if not text and not lane then
    local critical, at_work, task, awaited, most = critical(tl, phase)
    if at_work and at_work > LANE_BINDS then
      lane, busy, work = critical, at_work, "most of it with " .. task
    else
      text = ("no unit binds: %s is at work %.0f %% of the time, and %s"):format(unit, 100 * share,
        awaited and ("%s waits %.0f %% of the time for %s"):format(critical, 100 * most, awaited) or "lanes wait")
    end
  end
  text = text or ("lane %s binds: it is at work %.0f %% of the time, %s, while %s is %.0f %%"):format(lane, 100 * busy, work, unit,
    100 * share)
  text = phase_text(tl, phase) .. (idle and idle_text(tl, phase, idle) .. "; of the others, " or "") .. text
  return table.concat({text, times.power(tl) or core.no_power(tl)}, "; ")
end

-- Lines about other phases that take a considerable part of the time and leave EUs idle.
local function other_phases(tl, lines)
  local most = longest(tl)
  for _, phase in ipairs(tl.phases) do
    local idle = idle_share(tl, phase)
    if phase.name ~= most.name and idle and phase.cycles > IDLE * tl.cycles then
      lines[#lines + 1] = phase_text(tl, phase) .. idle_text(tl, phase, idle)
    end
  end
end

-- The loop of the longest phase that could be divided among EUs if many idle: a line about that; nil.
local function divide_text(tl)
  local phase, idle = longest(tl)
  local plan, most, axis = core.plan_of(tl), 1, nil
  for _, task in ipairs(idle and idle >= MANY and plan.tasks or {}) do
    local size = task.phase == phase.name and task.loop and plan.graph.program.axes[task.loop]
    local trips = size and plan.tile[task.loop] and size // plan.tile[task.loop] or 1
    if trips > most then most, axis = trips, task.loop end
  end
  return axis and ("EUs that idle could share the loop over %s: one phase makes parts, another one combines them; or tensor:add")
    :format(axis)
end

---- what would help ---------------------------------------------------------------------------

-- The result: what binds, and suggestions. It was a text before, so it takes methods of strings.
local answer = {__name = "millrace.why", __tostring = function(w) return w.text end,
  __concat = function(a, b) return tostring(a) .. tostring(b) end, __index = {}}
for _, name in ipairs{"find", "match", "gmatch", "gsub", "sub"} do
  answer.__index[name] = function(w, ...) return w.text[name](w.text, ...) end
end

-- All that was tried, as the prompt shows it: in one line. It begins with the end of the line before, because print writes it
-- behind the first result of tl:why().
local all_tried = {__name = "millrace.tried_changes", __tostring = function(found)
  return ("\n%d changes tried, best first; `why, tried = tl:why()` keeps them, and print(tried[1].text) shows one"):format(#found)
end}

local function why(tl)
  if not core.is(tl, "millrace.timeline") then raise "why: timeline expected" end
  if tl.measured then raise "why: this timeline is measured; ask the simulated one" end
  local plan = core.plan_of(tl)
  local legal, problems = plan:check()
  local good, now = core.try(plan.simulate, plan)
  if not good or now.seconds ~= tl.seconds then raise "why: the plan has changed since; simulate it again" end
  if not legal then
    raise(("why: the plan is not legal: %s: %s; plan:suggest() says what makes it so"):format(problems[1].code, problems[1].message))
  end
  local found = suggest.alone(plan, now)
  local out, lines, kind = {binds = what_binds(now)}, {}, nil
  lines[1] = out.binds
  other_phases(now, lines)
  for _, s in ipairs(suggest.helpful(found)) do         -- the best, and the best of another kind
    local other = suggest.kind(s)
    if #out < 2 and other ~= kind then
      out[#out + 1] = s
      lines[#lines + 1] = ("%s would take %.1f %% less time"):format(s.text, 100 * s.gain)
      kind = other
    end
  end
  if #out == 0 then
    lines[2] = ("none of %d other rings, orders, lanes and tiles would take %.1f %% less time; plan:suggest() tries a search, and two "
      .. "together"):format(#found, 100 * LEAST)
  end
  lines[#lines + 1] = divide_text(now)
  for _, r in ipairs(core.repeats(plan)) do lines[#lines + 1] = r.text end
  out.text = table.concat(lines, "\n")
  return setmetatable(out, answer), setmetatable(found, all_tried)
end

return {why = why}
