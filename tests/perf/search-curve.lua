-- search-curve.lua - how soon each way to choose finds the best of a space that was measured whole.
--
--   millrace tests/perf/search-curve.lua FILE [PATTERN] [words=0] [doubt=0.07] [seeds=200] [noise=0]
--
-- FILE has a JSON object a line, or an array of them: {"predicted": or "predicted_ms":, "ms":, "name":,
-- "family":, ...} of every plan of one space or of several; spaces are told apart by "family", or by the first
-- so many words of "name". PATTERN, of Lua, chooses names. Prints for each space the best time found so far after so many trials,
-- as a share of the best of all (1 is the best plan itself):
--
--   random   plans in random order: the mean of so many seeds, and the worst of ten of them
--   list     in the order of the file
--   model    by predicted time
--   measure  lua/std/measure.lua, by predicted time until no other is likely to win; ends at |
--
-- and after how many trials each is within 1 % of the best. noise: a share, of each measurement.
local mr = require "millrace"
local measure = require "millrace.measure"

local path, pattern
local set = {words = 0, doubt = 0.07, seeds = 200, noise = 0}
for _, word in ipairs(arg) do
  local key, value = word:match "^(%a+)=([%d.e-]+)$"
  if key and set[key] then
    set[key] = tonumber(value)
  elseif not path then
    path = word
  else
    pattern = word
  end
end
if not path then
  io.stderr:write "usage: millrace tests/perf/search-curve.lua FILE [PATTERN] [words=] [doubt=] [seeds=] [noise=]\n"
  os.exit(2)
end

-- the rows -------------------------------------------------------------------------------------

local function number(text, key) return tonumber(text:match('"' .. key .. '"%s*:%s*([%d.eE+-]+)')) end
local function word(text, key) return text:match('"' .. key .. '"%s*:%s*"([^"]*)"') end

local function family_of(object, name)
  return word(object, "family") or set.words > 0 and name:match("^" .. ("%S+ ?"):rep(set.words)) or "all"
end

local function read(name)
  local file = assert(io.open(name))
  local spaces, order = {}, {}
  for object in file:read "a":gmatch "%b{}" do
    local plan, predicted, ms = word(object, "name") or "", number(object, "predicted") or number(object, "predicted_ms"),
      number(object, "ms")
    local family = family_of(object, plan)
    if predicted and ms and (not pattern or (family .. " " .. plan):find(pattern)) then
      if not spaces[family] then spaces[family], order[#order + 1] = {}, family end
      table.insert(spaces[family], {name = plan, predicted = predicted, ms = ms})
    end
  end
  file:close()
  return spaces, order
end

-- Predictions in seconds, whatever they were in: the median ratio to what was measured is about one.
local function to_seconds(rows)
  local ratios = {}
  for i, row in ipairs(rows) do ratios[i] = row.predicted / row.ms end
  table.sort(ratios)
  local unit = ratios[(#ratios + 1) // 2] > 0.03 and 1e-3 or 1
  for _, row in ipairs(rows) do row.predicted = row.predicted * unit end
end

-- the ways ---------------------------------------------------------------------------------------

local function random(seed)
  local state = seed * 2654435761 + 1
  return function(n)
    state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
    return (state >> 20) % n + 1
  end
end

-- Best so far after each trial, as a share of the best of all.
local function curve(rows, best)
  local list, found = {}, math.huge
  for i, row in ipairs(rows) do
    found = math.min(found, row.ms)
    list[i] = best / found
  end
  return list
end

local function shuffled(rows, seed)
  local list, below = table.move(rows, 1, #rows, 1, {}), random(seed)
  for i = #list, 2, -1 do
    local k = below(i)
    list[i], list[k] = list[k], list[i]
  end
  return list
end

local function of_random(rows, best)
  local mean, low, all = {}, {}, {}
  for seed = 1, set.seeds do all[seed] = curve(shuffled(rows, seed), best) end
  for i = 1, #rows do
    local at = {}
    for seed = 1, set.seeds do at[seed] = all[seed][i] end
    table.sort(at)
    local sum = 0
    for _, x in ipairs(at) do sum = sum + x end
    mean[i], low[i] = sum / #at, at[math.max(#at // 10, 1)]
  end
  return mean, low
end

local function by_model(rows)
  local list = table.move(rows, 1, #rows, 1, {})
  table.sort(list, function(a, b)
    if a.predicted ~= b.predicted then return a.predicted < b.predicted end
    return a.name < b.name
  end)
  return list
end

-- A server that looks the times up.
local function table_server(noise)
  local below = random(1)
  local function jitter() return 1 + noise * (below(1 << 30) / (1 << 29) - 1) end
  return {
    room = 1, wait = function() end,
    begin = function(_, item)
      return {
        drop = function() end,
        poll = function(_, incumbent)
          local ms = item.candidate.ms * jitter()
          local row = {id = item.id, status = "ok", ms = ms, candidate = item.candidate}
          if incumbent then row.against, row.ratio = incumbent.id, ms / incumbent.candidate.ms end
          return row
        end,
      }
    end,
  }
end

local function by_measure(rows)
  local order = {}
  local r = measure(nil, nil, by_model(rows), {doubt = set.doubt, final = false, server = table_server(set.noise),
    put = function(row) order[#order + 1] = row.candidate end})
  return order, r
end

-- the table --------------------------------------------------------------------------------------

local function first_within(list, share)
  for i, x in ipairs(list) do if x >= share then return i end end
end

local function show(family, rows)
  to_seconds(rows)
  local best = math.huge
  for _, row in ipairs(rows) do best = math.min(best, row.ms) end
  local mean, low = of_random(rows, best)
  local order, r = by_measure(rows)
  local ways = {{"random", mean}, {"  1 of 10", low}, {"list", curve(rows, best)}, {"model", curve(by_model(rows), best)},
    {"measure", curve(order, best)}}
  local columns, head = {}, {}
  for n = 1, #rows do
    if n <= 8 or n == #rows or (n & (n - 1)) == 0 or n % 3 == 0 and ((n // 3) & (n // 3 - 1)) == 0 then
      columns[#columns + 1] = n
      head[#head + 1] = ("%6d"):format(n)
    end
  end
  print(("%s: %d plans, the best %.4g ms"):format(family, #rows, best))
  print(("%-10s%s   99 %% after"):format("trials", table.concat(head)))
  for _, way in ipairs(ways) do
    local cells = {}
    for i, n in ipairs(columns) do
      local x = way[2][n]
      cells[i] = x and ("%6.3f"):format(x) or (columns[i - 1] or 0) <= #way[2] and "     |" or "      "
    end
    print(("%-10s%s   %s"):format(way[1], table.concat(cells), first_within(way[2], 0.99) or "-"))
  end
  local found = curve(order, best)
  print(("measure ends after %d of %d: %s; its best is %.3f of the best; bias %+.1f %%, spread %.1f %%"):format(#order, #rows,
    r.ended, found[#found] or 0, 100 * (math.exp(r.bias) - 1), 100 * r.spread))
  print ""
  return {within = first_within(ways[5][2], 0.99), model = first_within(ways[4][2], 0.99), random = first_within(mean, 0.99),
    trials = #order, plans = #rows, share = found[#found] or 0}
end

local spaces, order = read(path)
if #order == 0 then
  io.stderr:write(("search-curve.lua: %s has no rows with a prediction and a time\n"):format(path))
  os.exit(1)
end
local trials, plans, product = 0, 0, 1
for _, family in ipairs(order) do
  local row = show(family, spaces[family])
  trials, plans, product = trials + row.trials, plans + row.plans, product * row.share
end
print(("all: %d trials of %d plans, on average %.4f of the best (geometric)"):format(trials, plans, product ^ (1 / #order)))
