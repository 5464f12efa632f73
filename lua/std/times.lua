-- times.lua - the times of timelines, in short and compared.

local core = require "millrace.core"

local times = {}

local FULL <const> = 0.998                              -- of the full clock: power holds it below, if at all

-- "0.2032 ms +- 6.6 %, 676 TFLOP/s", or with the bytes a second where those count
-- brief: 1: without the share of the bandwidth; 2: with one speed.
function times.text(tl, brief)
  local speed = core.speed(tl)
  if brief and brief > 0 then speed = speed:gsub(", [%d.]+ %% of the bandwidth", "") end
  if brief and brief > 1 then speed = speed:gsub(", .*", "") end
  return ("%.4g ms%s, %s"):format(tl.seconds * 1e3, core.uncertainty_text(tl), speed)
end

-- "product 62 %, l2 9 %": what draws most of the power.
local function drawn(energy)
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

-- "power holds the clock at 1.53 of 1.79 GHz (product 55 %, l2 11 % of it)"; nil if it does not.
function times.power(tl)
  if not tl.clock_hz or tl.measured or tl.clock_hz >= FULL * tl.full_clock_hz then return nil end
  return ("power holds the clock at %.2f of %.2f GHz (%s of it)"):format(tl.clock_hz / 1e9, tl.full_clock_hz / 1e9, drawn(tl.energy))
end

-- A share as "+3.1 %"; "0 %" if that is what it rounds to.
function times.change(share) return math.abs(share) < 0.0005 and "0 %" or ("%+.1f %%"):format(100 * share) end

-- Are the predicted times of two timelines within noise? True if so; otherwise, or if it is not known, nil.
function times.near(one, other)
  local a, b = one.seconds or 1, other.seconds or 1
  local apart = math.max(a, b) / math.min(a, b) - 1
  return one.noise and other.noise and apart < math.max(one.noise, other.noise) or nil
end

return times
