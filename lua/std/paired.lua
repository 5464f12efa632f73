-- paired.lua - what times say that were taken in the same rounds.

local paired = {}

function paired.median(list)
  local sorted = table.move(list, 1, #list, 1, {})
  table.sort(sorted)
  local n = #sorted
  return (sorted[(n + 1) // 2] + sorted[n // 2 + 1]) / 2
end

-- The rank below which one value of n in 40 lies, at most, by chance: the values of that rank from either
-- end hold the true median in 19 of 20 cases, whatever the distribution (David and Nagaraja, Order
-- Statistics, 7.1). 0: there are too few values.
local function rank(n)
  local term, sum = 0.5 ^ n, 0
  for k = 0, n do
    sum = sum + term
    if sum > 0.025 then return k end
    term = term * (n - k) / (k + 1)
  end
end

-- The median, and an interval that holds the true one in 19 of 20 cases; with fewer than six values, all
-- there is, which is less sure.
function paired.interval(list)
  local sorted = table.move(list, 1, #list, 1, {})
  table.sort(sorted)
  local k = math.max(rank(#sorted), 1)
  return paired.median(sorted), sorted[k], sorted[#sorted + 1 - k]
end

-- Of rounds, lists of times in one order: those of contestant c.
function paired.times(rounds, c)
  local list = {}
  for i, round in ipairs(rounds) do list[i] = round[c] end
  return list
end

-- Their ratios to those of `base`, two rounds at a time: the second is run in the reverse order of the
-- first, so that in the mean of both a clock that falls or rises steadily is the same for all.
function paired.ratios(rounds, c, base)
  local list = {}
  for i = 1, #rounds - 1, 2 do
    local there, back = rounds[i], rounds[i + 1]
    list[#list + 1] = math.sqrt(there[c] / there[base] * (back[c] / back[base]))
  end
  return list
end

return paired
