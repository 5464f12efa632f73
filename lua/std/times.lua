-- times.lua - the times of timelines, in short and compared.

local times = {}

-- "0.2032 ms +- 6.6 %, 676 TFLOP/s"
function times.text(tl)
  local text = ("%.4g ms"):format(tl.seconds * 1e3)
  if tl.uncertainty then text = ("%s +- %.2g %%"):format(text, 100 * tl.uncertainty) end
  return ("%s, %.3g TFLOP/s"):format(text, tl.tflops)
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
