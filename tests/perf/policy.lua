-- policy.lua - how soon a measured search finds the best, in worlds that err as it believes.
--
--   millrace tests/perf/policy.lua [SEEDS]
--
-- Needs no device. The candidates are those of ten searches; in each world the errors of their predictions are drawn from
-- the process of belief.lua, with about what 1,180 plans measured in 19 searches and spaces make most likely: a bias, errors that plans
-- share by their traits, and what is a plan's own. Races are off by what those of serve.lua and finals.lua are. Prints a line of each program:
-- the mean share of the best that the first trial, the best of eight and the answer reach over so many worlds (20), the share of the worlds
-- whose answer is within 1 % of the best, and how many trials there were.
local mr = require "millrace"
local core = require "millrace.core"
local measure = require "millrace.measure"
local similarity = require "millrace.belief"(0).similarity
local dir = arg[0]:match "^(.*/)" or "./"
local table_server, normal = dofile(dir .. "table_server.lua"), dofile(dir .. "../lua/lib/normal.lua")

local BIAS <const>, SHAPE <const>, OWN <const> = 0.14, 0.07, 0.016
local RACE <const>, FINAL <const> = 0.009, 0.003        -- standard deviations of the errors of times; a ratio has 0.013
local TRIALS <const>, MOST <const> = 160, 250

local programs <const> = {
  "flash_attention b=2 h=16 m=8192 d=128", "flash_attention b=8 h=16 m=2048 d=128", "flash_attention b=2 h=32 m=8192 d=64 causal=1",
  "flash_attention b=32 h=8 m=512 d=256", "gemm m=4096 n=4096 k=4096", "gemm m=8192 n=8192 k=512", "gemm m=128 n=8192 k=28672",
  "gemm m=1024 n=1024 k=16384", "chunk_state b=8 s=8192 h=80 p=64 n=128", "dequant_gemm m=16 n=8192 k=8192",
}

local function bind(text)
  local sizes = {}
  for name, value in text:gmatch "(%w+)=(%w+)" do sizes[name] = name == "causal" or math.tointeger(value) end
  return mr.examples[text:match "%S+"](sizes)
end

local function candidates(bound, device)
  local list, s = {}, core.search(bound, device, nil, true)
  s:run(math.maxinteger, math.huge)
  for rank, x in ipairs(s:found()) do
    if x.priced and #list < MOST then list[#list + 1] = {script = "plan " .. rank, predicted = x.seconds, traits = x.traits} end
  end
  return list
end

---- worlds ------------------------------------------------------------------------------------------

-- The Cholesky factor of what plans share.
local function factor(list)
  local rows = {}
  for i = 1, #list do
    rows[i] = {}
    for j = 1, i do
      local s = SHAPE ^ 2 * similarity(list[i].traits, list[j].traits)
      for k = 1, j - 1 do s = s - rows[i][k] * rows[j][k] end
      rows[i][j] = i == j and math.sqrt(math.max(s, 1e-10)) or s / rows[j][j]
    end
  end
  return rows
end

-- The candidates with their times, and the best of those.
local function world(list, rows, draw)
  local bias, z, made, best = BIAS * draw(), {}, {}, math.huge
  for i = 1, #list do z[i] = draw() end
  for i, c in ipairs(list) do
    local x = bias + OWN * draw()
    for k = 1, i do x = x + rows[i][k] * z[k] end
    made[i] = {script = c.script, predicted = c.predicted, traits = c.traits, ms = c.predicted * 1e3 * math.exp(x)}
    best = math.min(best, made[i].ms)
  end
  return made, best
end

---- the table -----------------------------------------------------------------------------------------

-- After the first trial, after eight, at the end, as shares of the best; 1 if the end is within 1 %; and trials.
local function play(list, best, device, draw)
  local found, at, answer = math.huge, {}, nil
  local server = table_server(function() return RACE * draw() end, function() return FINAL * draw() end)
  local r = measure(nil, device, list, {trials = TRIALS, server = server, put = function(row)
    found = math.min(found, row.candidate.ms)
    at[#at + 1] = best / found
  end})
  for _, c in ipairs(list) do if c.script == r.best.script then answer = best / c.ms end end
  return {at[1], at[8] or at[#at], answer, answer >= 0.99 and 1 or 0, r.trials}
end

local seeds, all = tonumber(arg[1]) or 20, {0, 0, 0, 0, 0}
local device = mr.device "h200"
print(("%-44s %6s %6s %6s %6s %6s"):format("", "first", "eight", "end", "> 0.99", "trials"))
for i, text in ipairs(programs) do
  local list, sums = candidates(bind(text), device), {0, 0, 0, 0, 0}
  local rows = factor(list)
  for seed = 1, seeds do
    local made, best = world(list, rows, normal(1000 * seed + i))
    for k, x in ipairs(play(made, best, device, normal(77777 * seed + i))) do
      sums[k], all[k] = sums[k] + x / seeds, all[k] + x / seeds / #programs
    end
  end
  print(("%-44s %6.3f %6.3f %6.3f %6.2f %6.1f"):format(text, table.unpack(sums)))
end
print(("%-44s %6.3f %6.3f %6.3f %6.2f %6.1f"):format("all", table.unpack(all)))
