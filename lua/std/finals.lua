-- finals.lua - the last race of a measured search: which of the plans that seemed the fastest is the fastest.
--
-- Plans near to each other differ by less than a race of the search can tell. So finalists are raced in heats, each with fewer plans and more
-- rounds, and the samples of all heats count. At its power limit a board varies its clock by 3 %, and a plan that draws more power gets a
-- lower clock, but only after some milliseconds: of a sample of 25 ms the later half counts. About 0.8 s after a load began the clock may be
-- lower by a third, for 0.1 s, so of all ratios the middle half counts.

local core = require "millrace.core"
local paired = require "millrace.paired"

-- After each heat, plans go on whose time over all heats so far is at most 1 + `within` times the least. At most `most` of them do, or the
-- share `share` of all finalists if that is more.
local HEATS <const> = {
  {how = {seconds = 0, sample = 0.025, warmup = 0.04, rounds = 8}, within = 0.02, most = 3, share = 3 / 8},
  {how = {seconds = 0, sample = 0.03, warmup = 0.02, rounds = 16}, within = 0.01, most = 3, share = 0},
  {how = {seconds = 0, sample = 0.03, warmup = 0.02, rounds = 24}},
}

-- Add the times of a heat to the lists of those of each item. Every second round has the reverse order, so a clock that rises or falls
-- steadily cancels out in an even number of rounds.
local function add(times, items, rounds)
  local n = #rounds - #rounds % 2                       -- a race has three rounds at least
  for i, item in ipairs(items) do
    local list = times[item] or {}
    times[item] = list
    for k = 1, n do
      if not (rounds[k][i] > 0) then core.raise "finals: a kernel took no time" end
      list[#list + 1] = rounds[k][i]
    end
  end
end

-- By item, the logarithm of its time relative to the mean of all of them, which took part in the same heats: of each two rounds, which have
-- opposite orders, the mean; of these, that of the middle half.
local function scores_of(times, items)
  local logs, scores, n = {}, {}, #times[items[1]]
  for k = 1, n, 2 do
    local pair, sum = {}, 0
    for i, item in ipairs(items) do
      local list = times[item]
      pair[i] = math.log(list[k] * list[k + 1]) / 2
      sum = sum + pair[i]
    end
    for i, item in ipairs(items) do
      logs[item] = logs[item] or {}
      table.insert(logs[item], pair[i] - sum / #items)
    end
  end
  for _, item in ipairs(items) do scores[item] = paired.midmean(logs[item]) end
  return scores
end

-- The fastest first; of equal ones, those that were in front stay there.
local function ranked(scores, items)
  local order, index = table.move(items, 1, #items, 1, {}), {}
  for i, item in ipairs(items) do index[item] = i end
  table.sort(order, function(a, b)
    if scores[a] ~= scores[b] then return scores[a] < scores[b] end
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
  local last_scores = {}                                -- by item, those of its last heat
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
    local scores = scores_of(times, racing)
    for _, item in ipairs(racing) do last_scores[item] = scores end
    local list = ranked(scores, racing)
    table.move(list, 1, #list, 1, order)                -- those left behind in earlier heats stay behind these
    racing = {}
    local most = k < #HEATS and math.max(heat.most, math.floor(heat.share * #items)) or 0
    for i = 1, math.min(most, #list) do
      if math.exp(scores[list[i]] - scores[list[1]]) <= 1 + heat.within then racing[i] = list[i] end
    end
    n = k < #HEATS and #racing or #list
    if #racing <= 1 then break end
  end
  for _, item in ipairs(items) do
    local r, scores = results[item.id], last_scores[item]
    r.ms, r.ratio = paired.median(times[item]), math.exp(scores[item] - scores[order[1]])
  end
  return order, results, n, why
end
