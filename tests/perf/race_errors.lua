-- race_errors.lua - how far off races are, by how long their samples are.
--
--   millrace tests/perf/race_errors.lua [plans=24] [rounds=16] [PATTERN ...]
--
-- On the attached H200: of each row of rows.py whose name has a pattern (Lua; a product, a deep one and an attention unless given) the
-- plans that the model likes best are compiled and raced together in many rounds with samples of 50 ms, whose mean ratios count as
-- true; then in short races of eight and the first one, as in a search, of each of FORMS. A line of each row and form:
--   s a plan   seconds of the race for each plan
--   error      the standard deviation of the logarithms of a race's ratios from the true ones, without what all plans of it share
--   bias       that part of it which is the same in each race of a plan, so that more races do not make it smaller
--   fastest    how much slower than the fastest of its race the truly fastest plan seems to be, on average
-- Needs python3.
local mr = require "millrace"
local core = require "millrace.core"
local dir = arg[0]:match "^(.*/)" or "./"
local program_of = dofile(dir .. "program_of.lua")

local FORMS <const> = {
  {seconds = 0, sample = 0.012, warmup = 0, rounds = 2}, {seconds = 0, sample = 0.03, warmup = 0.003, rounds = 2},
  {seconds = 0, sample = 0.03, warmup = 0.003, rounds = 4}, {seconds = 0, sample = 0.05, warmup = 0.003, rounds = 2},
  {seconds = 0, sample = 0.1, warmup = 0.003, rounds = 2},
}
local TRUE <const> = {sample = 0.05, warmup = 0.04}      -- seconds is set below: without it a race ends after 10 s
local TIMES <const>, TOGETHER <const> = 4, 8            -- races of each plan and form; plans of a race that are compared with the first one
local options, rows = dofile(dir .. "row_arguments.lua")({plans = 24, rounds = 16},
  {"^gemm 4096 x 4096 x 4096$", "^gemm 1024 x 1024 x 16384$", "^attention d128 s2048$"})

-- Kernels of the best plans of a search, without those that spill.
local function kernels_of(bound, device)
  local search, compiling, kernels, seen = core.search(bound, device, nil, true), {}, {}, {}
  search:run(math.maxinteger, 20)
  for _, x in ipairs(search:found()) do
    if x.priced and #compiling < 2 * options.plans then
      local statements, tile = search:plan(x.trial)
      local plan = core.plan(bound:graph{tile = tile}, device)
      assert(load("local plan = ...\n" .. statements))(plan)
      if not seen[plan:script()] then compiling[#compiling + 1] = core.compile_begin(plan) end
      seen[plan:script()] = true
    end
  end
  for _, x in ipairs(compiling) do
    local good, k = core.try(x.kernel, x)
    if good and #k.problems == 0 and #kernels < options.plans then kernels[#kernels + 1] = k end
  end
  core.compile_end_idle()
  return kernels
end

-- The logarithms of the mean ratios of kernels, by their numbers, to the first of the list.
local function race(kernels, list, how)
  local of, names, o = {}, {}, {}
  for key, value in pairs(how) do o[key] = value end
  for i, k in ipairs(list) do of[i], names[i] = kernels[k], "plan " .. k end
  local began, rounds, found = core.clock(), core.race(of, names, o), {}
  for i, k in ipairs(list) do
    local sum = 0
    for _, round in ipairs(rounds) do sum = sum + math.log(round[i] / round[1]) end
    found[k] = sum / #rounds
  end
  return found, core.clock() - began
end

local function mean(list)
  local sum = 0
  for _, x in ipairs(list) do sum = sum + x end
  return sum / #list
end

local function spread(list)
  local sum = 0
  for _, x in ipairs(list) do sum = sum + x * x end
  return math.sqrt(sum / #list)
end

-- The numbers 2 to n in a random order.
local function shuffled(n)
  local list = {}
  for i = 2, n do table.insert(list, math.random(#list + 1), i) end
  return list
end

print(("%-34s %-16s %8s %7s %7s %8s"):format("row", "form", "s a plan", "error", "bias", "fastest"))
math.randomseed(1)
for _, row in ipairs(rows) do
  local kernels = kernels_of(program_of(row.program)(row.sizes), mr.device "h200")
  local all, fastest = {}, 1
  for i = 1, #kernels do all[i] = i end
  TRUE.rounds, TRUE.seconds = options.rounds, options.rounds * TRUE.sample / 2
  local truth = race(kernels, all, TRUE)
  for i = 2, #kernels do if truth[i] < truth[fastest] then fastest = i end end
  for _, form in ipairs(FORMS) do
    local errors, of_plan, seconds, n, behind = {}, {}, 0, 0, {}
    for _ = 1, TIMES do
      local order = shuffled(#kernels)
      for first = 1, #order - 1, TOGETHER do            -- of one plan alone nothing is left without what it shares
        local list, off = {1}, {}
        table.move(order, first, math.min(first + TOGETHER - 1, #order), 2, list)
        local found, took = race(kernels, list, form)
        seconds, n = seconds + took, n + #list - 1
        for i = 2, #list do off[i - 1] = found[list[i]] - truth[list[i]] end
        local shared, least, k = mean(off), 0, #off     -- 0: the first plan
        for i, x in ipairs(off) do
          local id, e = list[i + 1], (x - shared) * math.sqrt(k / (k - 1))
          errors[#errors + 1], of_plan[id] = e, of_plan[id] or {}
          table.insert(of_plan[id], e)
          least = math.min(least, found[id])
        end
        if found[fastest] then behind[#behind + 1] = found[fastest] - least end
      end
    end
    local means, error_of_one = {}, spread(errors)
    for _, list in pairs(of_plan) do means[#means + 1] = mean(list) end
    local bias = math.sqrt(math.max(0, (TIMES * spread(means) ^ 2 - error_of_one ^ 2) / (TIMES - 1)))
    print(("%-34s %d of %3.0f ms%5s %8.3f %6.2f%% %6.2f%% %7.2f%%"):format(row.case, form.rounds, form.sample * 1e3, "", seconds / n,
      100 * error_of_one, 100 * bias, 100 * mean(behind)))
  end
end
