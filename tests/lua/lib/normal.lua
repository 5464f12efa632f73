-- normal.lua - normal(seed) -> a function that draws numbers, normally distributed with mean 0 and spread 1 (Box and Muller 1958).
return function(seed)
  local state = seed * 2654435761 + 1
  local function uniform()
    state = state * 6364136223846793005 + 1442695040888963407
    return ((state >> 11) + 0.5) / 2^53
  end
  for _ = 1, 5 do uniform() end
  return function() return math.sqrt(-2 * math.log(uniform())) * math.cos(2 * math.pi * uniform()) end
end
