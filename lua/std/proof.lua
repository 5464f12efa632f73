-- proof.lua - tl:proof(): the least interval that the loop of a simulated timeline could have, why it cannot be less, and what
-- would make it less. src/search/proof.c computes it; here it becomes a record and a text.

local core = require "millrace.core"
local record = require("millrace.record").of
local times = require "millrace.times"
local raise = core.raise

local REACHED <const> = 1.001                           -- times the bound: an interval up to that is at the bound
local LEAST <const> = 0.0005                            -- of the bound: a smaller gain is none
local WIDTH <const> = 78                                -- columns of the text
local LINES <const> = 6                                 -- most lines about what would help

local need = record("need", "kind from to distance cycles buffer most bytes lane unit contention", 
  {aliases = {beside = "contention"}})                    -- deprecated
local task = record("sTask of a proof", "name lane unit hold busy latency start stage")
local circle = record("circle", "cycles iterations")

---- in words -------------------------------------------------------------------------------

local function list(names, last)
  if #names < 2 then return names[1] or "" end
  return table.concat(names, ", ", 1, #names - 1) .. (last or " and ") .. names[#names]
end

-- Wrap a line; further lines are indented more.
local function wrapped(line)
  local out, indent = {}, line:match "^ *" .. "  "
  for word in line:gmatch "%s*%S+" do
    local last = out[#out]
    if last and #last + #word <= WIDTH then
      out[#out] = last .. word
    else
      out[#out + 1] = last and indent .. word:match "%S+" or word
    end
  end
  return table.concat(out, "\n")
end

local function cycles(x) return ("%.0f"):format(x) end

local function is_circle(p)
  if #p.core == 0 or #p.circle == 0 then return false end
  for _, n in ipairs(p.core) do
    if n.kind ~= "dependence" and n.kind ~= "versions" then return false end
  end
  return true
end

local function need_text(n)
  if n.kind == "dependence" then
    local apart = n.distance > 0 and (" of %d iteration%s before"):format(n.distance, n.distance > 1 and "s" or "") or ""
    return ("%s begins %s cycles after %s%s"):format(n.to, cycles(n.cycles), n.from, apart)
  elseif n.kind == "versions" then
    return ("%s has at most %d versions"):format(n.buffer, n.most)
  elseif n.kind == "shared memory" then
    return ("its rings have %d bytes of shared memory"):format(n.bytes)
  elseif n.kind == "lane" then
    return ("lane %s is held %s cycles an iteration"):format(n.lane, cycles(n.cycles))
  elseif n.contention and n.lane then
    return ("lane %s needs %s cycles an iteration, as it is slower on %s next to products"):format(n.lane, cycles(n.cycles), n.unit)
  elseif n.contention then
    return ("%s needs %s cycles an iteration, as lanes are slower on it next to products"):format(n.unit, cycles(n.cycles))
  elseif n.lane then
    return ("%s takes %s cycles an iteration for %s alone"):format(n.unit, cycles(n.cycles), n.lane)
  end
  return ("%s is at work %s cycles an iteration"):format(n.unit, cycles(n.cycles))
end

-- Why the interval cannot be less: one sentence, or several requirements that forbid it together.
local function reasons(p, out)
  if p.unstated then
    out[#out + 1] = ("nothing shorter: %s takes %s cycles (the loop is not solved: %s)"):format(p.binding, cycles(p.bound), p.unstated)
  elseif p.tile then
    out[#out + 1] = ("nothing shorter: so much a tile asks for, over its few iterations; the loop alone could have %s")
      :format(cycles(p.best_loop))
  elseif is_circle(p) then
    out[#out + 1] = ("nothing shorter: %s are a circle of %s cycles over %d iteration%s"):format(list(p.circle),
      cycles(p.circle.cycles), p.circle.iterations, p.circle.iterations == 1 and "" or "s")
  elseif #p.core == 1 then
    out[#out + 1] = "nothing shorter: " .. need_text(p.core[1])
  elseif #p.core > 0 then
    out[#out + 1] = p.core.irreducible and "nothing shorter: these forbid it together, and no fewer of them do"
      or "nothing shorter: these forbid it together"
    for _, n in ipairs(p.core) do out[#out + 1] = "  " .. need_text(n) end
  end
end

local function ease_text(e)
  if e.buffer then return "one more version of " .. e.buffer end
  if e.task then return ("%s %.0f %% less"):format(e.task, 100 * (1 - 1 / e.times)) end
  if e.lane and not e.unit then return "a further lane like " .. e.lane end
  local what = e.memory or e.unit
  return e.times < 2 and ("%s %.0f %% %s"):format(what, 100 * (e.times - 1), e.memory and "larger" or "faster")
    or ("%s %g times as %s"):format(what, e.times, e.memory and "large" or "fast")
end

-- Eases that gain nothing, as a text: names by the kind of ease, each once.
local function useless_text(eases)
  local kinds, of, seen = {}, {}, {}
  for _, e in ipairs(eases) do
    local name = e.buffer or e.task or e.memory or e.unit or e.lane
    local kind = e.buffer and "a version more of " or e.task and "less of " or e.lane and not e.unit and "a lane more like "
      or "more of "
    if not of[kind] then kinds[#kinds + 1], of[kind] = kind, {} end
    if not seen[kind .. name] then
      seen[kind .. name] = true
      table.insert(of[kind], name)
    end
  end
  for i, kind in ipairs(kinds) do kinds[i] = kind .. list(of[kind], " or ") end
  return table.concat(kinds, "; ")
end

local function helps(p, out)
  local shown, useless, seen = 0, {}, {}
  for _, e in ipairs(p.eases) do
    local of = e.gain >= LEAST and (e.memory or e.unit)
    local again = of and seen[of] == cycles(e.bound)      -- 10 % more gain as much as twice as much
    if of then seen[of] = cycles(e.bound) end
    if e.gain < LEAST then
      useless[#useless + 1] = e
    elseif shown < LINES and not again then
      if shown == 0 then
        out[#out + 1] = p.power and ("what would allow fewer cycles, each solved again, and less time, as %s:"):format(p.power)
          or "what would allow less, each solved again:"
      end
      shown = shown + 1
      local most = e.exact and "" or "at most "
      out[#out + 1] = ("  %-32s %6s cycles, %s%.1f %%"):format(ease_text(e), cycles(e.bound), most, 100 * e.gain)
      if e.time_gain then out[#out] = ("%s; time: %s%.1f %%"):format(out[#out], most, 100 * e.time_gain) end
    end
  end
  if #useless > 0 then out[#out + 1] = "nothing: " .. useless_text(useless) end
end

local function text_of(p)
  local out = {}
  local of = p.loop and ("loop over %s"):format(p.loop) or "tiles"
  local with = p.unstated and "these lanes and versions" or "these lanes"
  if p.proven then
    out[1] = ("%s: II %s, proven least with %s"):format(of, cycles(p.ii), with)
  else
    out[1] = ("%s: II %s, %.1f %% above what is proven least with %s, %s"):format(of, cycles(p.ii), 100 * p.gap, with, cycles(p.bound))
  end
  reasons(p, out)
  if not p.unstated then
    if not p.proven and p.exact then
      out[#out + 1] = "the loop has a schedule of that: more is this order's, or left out here"
    elseif not p.proven and p.best then
      out[#out + 1] = ("the best schedule found, of one sTask at a time on each unit, has %s"):format(cycles(p.best))
    end
    if not p.proven and p.rec_of_plan and p.rec_of_plan > p.bound * REACHED then
      out[#out + 1] = ("this plan's versions allow no less than %s"):format(cycles(p.rec_of_plan))
    end
    helps(p, out)
  end
  for i, line in ipairs(out) do out[i] = wrapped(line) end
  return table.concat(out, "\n")
end

---- the record --------------------------------------------------------------------------------

local ease = record("ease", "buffer memory unit task lane times bound gain exact time_gain",
  {aliases = {room = "memory"}, __tostring = ease_text})  -- deprecated: room
need.__tostring = need_text

local proof = record("proof", "loop ii bound gap proven best exact solver unstated tile tasks versions circle core eases "
  .. "binding best_loop rec_of_plan power", {__name = "millrace.proof", __tostring = text_of})

local function each(v, meta)
  for _, x in ipairs(v or {}) do setmetatable(x, meta) end
  return v or {}
end

local function make(tl)
  if not core.is(tl, "millrace.timeline") then raise("proof: timeline expected, got " .. core.show(tl)) end
  local p = core.proof(tl)
  p.gap = math.max(p.ii / p.bound - 1, 0)
  p.proven = p.ii <= p.bound * REACHED
  p.tasks, p.core, p.eases = each(p.tasks, task), each(p.core, need), each(p.eases, ease)
  p.versions, p.exact = p.versions or {}, p.exact or false
  p.power = times.power(tl)
  for _, e in ipairs(p.power and p.eases or {}) do      -- the same work in fewer cycles draws more power; less work does not
    e.time_gain = not e.task and 1 - core.seconds_at(tl, tl.cycles * (1 - e.gain)) / tl.seconds or nil
  end
  p.circle = setmetatable(p.circle or {cycles = 0, iterations = 0}, circle)
  return setmetatable(p, proof)
end

return {proof = make}
