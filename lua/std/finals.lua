-- finals.lua - the last race of a measured search: which of the plans that seemed the fastest is the fastest.
--
-- At its power limit a board varies its clock by 3 %. A plan that draws more power gets a lower clock, but only after some milliseconds. So
-- the short samples of the search are off by 1 to 3 %, and a sample of 50 ms, of which the later half counts, by 1 %. Smaller differences
-- need many samples. So finalists are raced in heats, each with fewer plans and more rounds, and the samples of all heats count.

local core = require "millrace.core"
local paired = require "millrace.paired"

-- After each heat, plans go on whose time over all heats so far is at most 1 + `within` times the least. At most `most` of them do, or the
-- share `share` of all finalists if that is more.
local HEATS <const> = {
  {how = {seconds = 0, sample = 0.05, warmup = 0.04, rounds = 4}, within = 0.02, most = 3, share = 3 / 8},
  {how = {seconds = 0, sample = 0.06, warmup = 0.02, rounds = 8}, within = 0.01, most = 3, share = 0},
  {how = {seconds = 0, sample = 0.06, warmup = 0.02, rounds = 12}},
}

-- Add the times of a heat to the lists of those of each item. Every second round has the reverse order, so a clock that rises or falls
-- steadily cancels out in an even number of rounds.
local function add(times, items, rounds)
  local n = #rounds > 1 and #rounds - #rounds % 2 or 1
  for i, item in ipairs(items) do
    local list = times[item] or {}
    times[item] = list
    for k = 1, n do
      if not (rounds[k][i] > 0) then core.raise "finals: a kernel took no time" end
      list[#list + 1] = rounds[k][i]
    end
  end
end

-- The ratio of the times of an item to those of a base that took part in all of its heats: the geometric mean, so that ratios to different
-- bases agree.
local function ratio(times, item, base)
  local sum, of_base = 0, times[base]
  for k, ms in ipairs(times[item]) do sum = sum + math.log(ms / of_base[k]) end
  return math.exp(sum / #times[item])
end

-- Items that took part in the same heats, the fastest first; of equal ones, those that were in front stay there.
local function ranked(times, items)
  local order, ratios, index = table.move(items, 1, #items, 1, {}), {}, {}
  for i, item in ipairs(items) do ratios[item], index[item] = ratio(times, item, items[1]), i end
  table.sort(order, function(a, b)
    if ratios[a] ~= ratios[b] then return ratios[a] < ratios[b] end
    return index[a] < index[b]
  end)
  return order
end

-- race(items, run) -> order, results, n, why
--
-- items: {id=}, one or more. run(items, how) -> rounds, as core.race for the kernels of these items. An error of it in the first heat is one of
-- this function; one in a later heat ends the race, and is `why`.
-- order: the items, the fastest first. n: how many of these were in the last heat, also if that failed; 1 if all others were too slow after
-- an earlier one. results: by id {ms=, min=, max=, ratio=}: the median, least and greatest time over all heats of the item, and its time
-- relative to that of order[1] in those heats, 1 or more.
return function(items, run)
  local times, results, racing, n, order, why = {}, {}, items, 0, table.move(items, 1, #items, 1, {}), nil
  for k, heat in ipairs(HEATS) do
    local good, rounds = true, nil
    if k == 1 then rounds = run(racing, heat.how) else good, rounds = core.try(run, racing, heat.how) end
    if not good then
      why = rounds
      break
    end
    add(times, racing, rounds)
    for i, item in ipairs(racing) do
      local r = results[item.id] or {min = math.huge, max = 0}
      results[item.id], r.min, r.max = r, math.min(r.min, rounds.min[i]), math.max(r.max, rounds.max[i])
    end
    local list = ranked(times, racing)
    table.move(list, 1, #list, 1, order)                -- those left behind in earlier heats stay behind these
    racing = {}
    local most = k < #HEATS and math.max(heat.most, math.floor(heat.share * #items)) or 0
    for i = 1, math.min(most, #list) do
      if ratio(times, list[i], list[1]) <= 1 + heat.within then racing[i] = list[i] end
    end
    n = k < #HEATS and #racing or #list
    if #racing <= 1 then break end
  end
  for _, item in ipairs(items) do
    local r = results[item.id]
    r.ms, r.ratio = paired.median(times[item]), math.max(1, ratio(times, item, order[1]))   -- rounding may say less of equal ones
  end
  return order, results, n, why
end
