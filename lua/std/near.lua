-- near.lua - are the predicted times of two timelines within noise? True if so; otherwise, or if it is not known, nil.

return function(one, other)
  local a, b = one.seconds or 1, other.seconds or 1
  local apart = math.max(a, b) / math.min(a, b) - 1
  return one.noise and other.noise and apart < math.max(one.noise, other.noise) or nil
end
