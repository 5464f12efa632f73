-- why.lua - tl:why(): what binds a simulated timeline, and what would help, tried.

local core = require "millrace.core"
local changes = require "millrace.changes"
local suggest = require "millrace.suggest"
local raise = core.raise

local LEAST <const> = suggest.LEAST
local BINDS <const> = 0.85                              -- of the time a unit is at work that binds
local LANE_BINDS <const> = 0.95                         -- the same of a lane: less, and others may be worth more

---- what binds -----------------------------------------------------------------------------

-- The greatest value of a table and its key; of equal ones, that which comes first by name.
local function greatest(t)
  local most, key
  for name, x in pairs(t) do
    if not most or x > most or x == most and name < key then most, key = x, name end
  end
  return key, most
end

-- "product 62 %, l2 9 %"
local function power_of(energy)
  local sum, names, texts = 0, {}, {}
  for name, joules in pairs(energy) do
    if name ~= "idle" then names[#names + 1] = name end
    sum = sum + joules
  end
  table.sort(names, function(a, b)
    if energy[a] ~= energy[b] then return energy[a] > energy[b] end
    return a < b
  end)
  for i = 1, 2 do texts[i] = ("%s %.0f %%"):format(names[i], 100 * energy[names[i]] / sum) end
  return table.concat(texts, ", ")
end

-- The lane that waits least, of those that do not only feed others: it is critical. Its name, the share of the time that it is at
-- work, and the sTask that takes most of that; then of its waiting, that which takes most, and its share.
local function critical(tl)
  local busy, waits, works = {}, {}, {}
  for _, part in ipairs((core.blame(tl))) do
    local lane = part.lane
    if not part.feeds then
      busy[lane], waits[lane], works[lane] = busy[lane] or 0, waits[lane] or {}, works[lane] or {}
      local sums, key = works[lane], part.task
      if part.awaited then sums, key = waits[lane], part.awaited else busy[lane] = busy[lane] + part.share end
      sums[key] = (sums[key] or 0) + part.share
    end
  end
  local lane, share = greatest(busy)
  return lane, share, (greatest(lane and works[lane] or {})), greatest(lane and waits[lane] or {})
end

local function what_binds(tl)
  local unit, share = greatest(tl.utilization)
  local text = ("%s binds: it is at work %.0f %% of the time"):format(unit, 100 * share)
  if share <= BINDS then
    local lane, busy, work, awaited, most = critical(tl)
    if busy and busy > LANE_BINDS then
      text = ("lane %s binds: it is at work %.0f %% of the time, most of it with %s, while %s is %.0f %%"):format(lane, 100 * busy,
        work, unit, 100 * share)
    else
      text = ("no unit binds: %s is at work %.0f %% of the time, and %s"):format(unit, 100 * share,
        awaited and ("%s waits %.0f %% of the time for %s"):format(lane, 100 * most, awaited) or "lanes wait")
    end
  end
  if tl.clock_hz and tl.clock_hz < tl.full_clock_hz then
    text = ("%s; power holds the clock at %.2f of %.2f GHz (%s of it)"):format(text, tl.clock_hz / 1e9,
      tl.full_clock_hz / 1e9, power_of(tl.energy))
  end
  return text
end

---- what would help ---------------------------------------------------------------------------

-- The result: what binds, and suggestions. It was a text before, so it takes methods of strings.
local answer = {__name = "millrace.why", __tostring = function(w) return w.text end,
  __concat = function(a, b) return tostring(a) .. tostring(b) end, __index = {}}
for _, name in ipairs{"find", "match", "gmatch", "gsub", "sub"} do
  answer.__index[name] = function(w, ...) return w.text[name](w.text, ...) end
end

-- All that was tried, as the prompt shows it: in one line.
local all_tried = {__name = "millrace.tried_changes", __tostring = function(found)
  return ("%d changes tried, best first; `why, tried = tl:why()` keeps them, and print(tried[1].text) shows one"):format(#found)
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
  local found = suggest.try(plan, changes.of(plan, false, now.seconds), now.seconds)
  local out, lines, kind = {binds = what_binds(now)}, {}, nil
  lines[1] = out.binds
  for _, s in ipairs(suggest.helpful(found)) do         -- the best, and the best of another kind
    local other = suggest.kind(s)
    if #out < 2 and other ~= kind then
      out[#out + 1] = s
      lines[#lines + 1] = ("%s would take %.1f %% less time"):format(s.text, 100 * s.gain)
      kind = other
    end
  end
  if #out == 0 then
    lines[2] = ("none of %d other rings, orders, lanes and tiles would take %.1f %% less time")
      :format(#found, 100 * LEAST)
  end
  out.text = table.concat(lines, "\n")
  return setmetatable(out, answer), setmetatable(found, all_tried)
end

return {why = why}
