-- finals.lua - the last race of a measured search: which of the plans that seemed the fastest is the fastest.
--
-- A board at its power limit moves its clock up and down by 3 %, and gives a plan that draws more power a lower one, but only after some
-- milliseconds. So the times of the search, of short samples, are off by 1 to 3 %, and even one of the later half of 50 ms by 1 %: only many
-- samples tell plans apart that differ by less. The finalists are raced in heats, each of fewer plans and for longer, and what was
-- sampled in earlier heats counts in later ones.

local core = require "millrace.core"
local paired = require "millrace.paired"

-- After a heat those go on that are behind its fastest by no more than the share `within`: at most `share` of the finalists, or `most` if
-- these are more.
local HEATS <const> = {
  {how = {seconds = 0, sample = 0.05, warmup = 0.04, rounds = 4}, within = 0.02, share = 3 / 8, most = 3},
  {how = {seconds = 0, sample = 0.06, warmup = 0.02, rounds = 8}, within = 0.01, share = 0, most = 3},
  {how = {seconds = 0, sample = 0.06, warmup = 0.02, rounds = 12}},
}

local finals = {}
finals.__index = finals

-- Keep the times of a heat: those of each two rounds, which have opposite orders, as one, so that a clock that rises or falls steadily
-- cancels out.
function finals:add(items, rounds)
  for i, item in ipairs(items) do
    local r = self.results[item.id] or {min = math.huge, max = 0, times = {}}
    self.results[item.id] = r
    r.min, r.max = math.min(r.min, rounds.min[i]), math.max(r.max, rounds.max[i])
    for _, round in ipairs(rounds) do r.times[#r.times + 1] = round[i] end
    r.ms = paired.median(r.times)
  end
  for k = 1, #rounds - 1, 2 do
    local pair = {}
    for i, item in ipairs(items) do pair[item.id] = math.sqrt(rounds[k][i] * rounds[k + 1][i]) end
    self.pairs[#self.pairs + 1] = pair
  end
end

-- Set ratio, low and high of items that took part in all heats so far: to the fastest of them, which comes first in the list that is
-- returned. In between they are ratios to the mean of all, as one of them would add its own error to each.
function finals:rank(items)
  local lists, order = {}, table.move(items, 1, #items, 1, {})
  for _, item in ipairs(items) do lists[item] = {} end
  for k, pair in ipairs(self.pairs) do
    local sum = 0
    for _, item in ipairs(items) do sum = sum + math.log(pair[item.id]) end
    for _, item in ipairs(items) do lists[item][k] = pair[item.id] / math.exp(sum / #items) end
  end
  local least = math.huge
  for _, item in ipairs(items) do
    local r = self.results[item.id]
    r.ratio, r.low, r.high = paired.interval(lists[item])
    least = math.min(least, r.ratio)
  end
  for _, item in ipairs(items) do self:scale(item, 1 / least) end
  table.sort(order, function(a, b)
    local x, y = self.results[a.id].ratio, self.results[b.id].ratio
    if x ~= y then return x < y end
    return a.id < b.id
  end)
  return order
end

function finals:scale(item, by)
  local r = self.results[item.id]
  r.ratio, r.low, r.high = r.ratio * by, r.low * by, r.high * by
end

-- The first of an order that go on after a heat; the others are added to `behind`, with the fastest one, to which their ratios are.
function finals:leave_behind(order, heat, most)
  local left = {}
  for i, item in ipairs(order) do
    if i <= most and self.results[item.id].ratio <= 1 + heat.within then
      left[i] = item
    else
      table.insert(self.behind, {item = item, fastest = order[1]})
    end
  end
  return left
end

-- race(items, run) -> results
--
-- items: {id=}, one or more. run(items, how) -> rounds: as core.race, for the kernels of these items; an error of it in the first heat is one of
-- this function, and ends the race in a later one. results: by id {ms=, min=, max=, ratio=, low=, high=}, the ratios to the fastest
-- one, and with it none below 1.
return function(items, run)
  local f = setmetatable({results = {}, pairs = {}, behind = {}}, finals)
  local left, heats = items, 0
  for k, heat in ipairs(HEATS) do
    local good, rounds = true, nil
    if k == 1 then rounds = run(left, heat.how) else good, rounds = core.try(run, left, heat.how) end
    if not good then break end
    f:add(left, rounds)
    left = f:rank(left)
    if HEATS[k + 1] then left = f:leave_behind(left, heat, math.max(heat.most, math.floor(heat.share * #items))) end
    if #left == 1 then break end
  end
  f:rank(left)                                          -- without those that were left behind
  for i = #f.behind, 1, -1 do f:scale(f.behind[i].item, f.results[f.behind[i].fastest.id].ratio) end
  return f.results
end
