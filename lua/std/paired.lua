-- paired.lua - statistics of times that were measured in the same rounds.

local paired = {}

-- A plan whose ratio to the incumbent, which plans are compared with, is at most this, in a second race too, becomes the incumbent. The first
-- race has no incumbent, and no second race.
paired.FASTER = 0.99

function paired.median(list)
  local sorted = table.move(list, 1, #list, 1, {})
  table.sort(sorted)
  local n = #sorted
  return (sorted[(n + 1) // 2] + sorted[n // 2 + 1]) / 2
end

-- The mean of the middle half of the values: nearly as exact as the mean of all, but a quarter of them may be off by far on each side.
function paired.midmean(list)
  local sorted = table.move(list, 1, #list, 1, {})
  table.sort(sorted)
  local left_out, sum = #sorted // 4, 0
  for i = 1 + left_out, #sorted - left_out do sum = sum + sorted[i] end
  return sum / (#sorted - 2 * left_out)
end

-- The rank k so that the k-th smallest and the k-th largest of n values are a 95 % confidence interval of the
-- median, whatever the distribution (David and Nagaraja, Order Statistics, 7.1). 0: there are too few values.
local function rank(n)
  local term, sum = 0.5 ^ n, 0
  for k = 0, n do
    sum = sum + term
    if sum > 0.025 then return k end
    term = term * (n - k) / (k + 1)
  end
end

-- The median and its 95 % confidence interval. With fewer than six values the interval is their range, and the
-- confidence less.
function paired.interval(list)
  local sorted = table.move(list, 1, #list, 1, {})
  table.sort(sorted)
  local k = math.max(rank(#sorted), 1)
  return paired.median(sorted), sorted[k], sorted[#sorted + 1 - k]
end

-- The times of contestant c. rounds: a list of lists of times, each in the order of the contestants.
function paired.times(rounds, c)
  local list = {}
  for i, round in ipairs(rounds) do list[i] = round[c] end
  return list
end

-- The ratios of the times of c to those of `base`, one for each two rounds. The second round has the reverse order of
-- the first, so a clock that rises or falls steadily cancels out.
function paired.ratios(rounds, c, base)
  local list = {}
  for i = 1, #rounds - 1, 2 do
    local there, back = rounds[i], rounds[i + 1]
    list[#list + 1] = math.sqrt(there[c] / there[base] * (back[c] / back[base]))
  end
  return list
end

return paired
