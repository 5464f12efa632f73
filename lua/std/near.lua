-- near.lua - are two predicted times too near to call? True, or nil where that is not known.

return function(one, other)
  local a, b = one.seconds or 1, other.seconds or 1
  local apart = math.max(a, b) / math.min(a, b) - 1
  return one.noise and other.noise and apart < math.max(one.noise, other.noise) or nil
end
