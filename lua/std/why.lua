-- why.lua - tl:why(): what binds a simulated timeline, and what would help, tried.

local core = require "millrace.core"
local raise, entry = core.raise, core.entry

local LEAST <const> = 0.005                             -- of the time: less is not worth a line
local BINDS <const> = 0.85                              -- of the time a unit is at work that binds

-- Changes of one thing: {text, edit}.
local function changes(plan)
  local list = {}
  local function add(text, edit) list[#list + 1] = {text = text, edit = edit} end
  local function rings(names)
    for more = 1, 2 do
      local depth, text = {}, {}
      for i, name in ipairs(names) do
        depth[name] = (plan.rings[name] or 1) + more
        text[i] = ("%s=%d"):format(name, depth[name])
      end
      add(("plan:buffers{%s}"):format(table.concat(text, ", ")), function(p) p:buffers(depth) end)
    end
  end
  -- each ring, and all of a loop together: a product waits for the shallowest
  local loops, together = {}, {}
  for _, b in ipairs(plan.graph.buffers) do
    if b.loop and b.scope == "shared" then
      if not together[b.loop] then loops[#loops + 1], together[b.loop] = b.loop, {} end
      table.insert(together[b.loop], b.name)
      rings({b.name})
    end
  end
  for _, loop in ipairs(loops) do
    if #together[loop] > 1 then rings(together[loop]) end
  end
  for _, group in ipairs{1, 4, 8, 16} do
    add(("plan:grid{group=%d}"):format(group), function(p) p:grid{group = group} end)
  end
  for _, raster in ipairs{"rows", "columns"} do
    add(("plan:grid{raster=%q}"):format(raster), function(p) p:grid{raster = raster} end)
  end
  for _, first in ipairs{true, false} do
    add(("plan:grid{longest_first=%s}"):format(first), function(p) p:grid{longest_first = first} end)
  end
  return list
end

-- Seconds with the change; nil if it makes no legal plan.
local function try(make, bound, edit)
  local ok, seconds = pcall(function()
    local copy = make(bound)
    edit(copy)
    return copy:check() and copy:simulate{events = 0}.seconds or nil
  end)
  return ok and seconds or nil
end

local function what_binds(tl, device)
  local unit, share
  for name, x in pairs(tl.utilization) do
    if not share or x > share or x == share and name < unit then unit, share = name, x end
  end
  local said = share > BINDS and ("%s binds: it is at work %.0f %% of the time"):format(unit, 100 * share) or
    ("no unit binds: %s is at work %.0f %% of the time, and lanes wait"):format(unit, 100 * share)
  if tl.power and tl.power > 0.999 * device:number "power.limit" then
    said = ("%s; power holds the clock at %.2f of %.2f GHz"):format(said, tl.clock_hz / 1e9, device.clock_hz / 1e9)
  end
  return said
end

local function why(tl)
  if not core.is(tl, "millrace.timeline") then raise "why: timeline expected" end
  if tl.measured then raise "why: this timeline is measured; ask the simulated one" end
  local plan = core.plan_of(tl)
  local make, bound = assert(load(plan:script())), plan.graph.program
  local now = plan:check() and plan:simulate{events = 0}.seconds
  if now ~= tl.seconds then raise "why: the plan has changed since" end
  local found = {}
  for _, c in ipairs(changes(plan)) do
    local seconds = try(make, bound, c.edit)
    if seconds then found[#found + 1] = {change = c.text, gain = 1 - seconds / now} end
  end
  for i, f in ipairs(found) do f.place = i end
  table.sort(found, function(a, b)
    if a.gain ~= b.gain then return a.gain > b.gain end
    return a.place < b.place
  end)
  local out = {what_binds(tl, plan.device)}
  for i = 1, math.min(2, #found) do
    if found[i].gain >= LEAST then
      out[#out + 1] = ("%s would take %.1f %% less time"):format(found[i].change, 100 * found[i].gain)
    end
  end
  if #out == 1 then
    out[2] = ("no other ring or order of tiles would take %.1f %% less time (%d tried)"):format(100 * LEAST, #found)
  end
  for _, f in ipairs(found) do f.place = nil end
  return table.concat(out, "\n"), found
end

return function()
  core.method("millrace.timeline", "why", entry(why))
  return {}
end
