-- race_errors.lua - how far off the races of a search are, by their samples.
--
--   millrace tests/perf/race_errors.lua [plans=24] [rounds=16] [PATTERN ...]
--
-- On the attached H200: of each row of rows.py whose name has a pattern (Lua; a product, one with few rows and an attention unless given) the
-- plans that the model likes best are compiled and raced together in many rounds with samples of 50 ms, whose median ratios count as
-- true. Then nine of them at a time, drawn at random, are raced in each of FORMS, as in a search: after the device was idle for a while, and
-- eight are compared with the first one. A line of each row and form:
--   s a plan   seconds of the race for each plan that is compared
--   error      the root mean square of the logarithms of the ratios to the first one, relative to the true ones
--   nine of ten   errors are less than this
--   shared     that part of the error which all plans of a race share, as it is the first one's
-- Needs python3.
local mr = require "millrace"
local core = require "millrace.core"
local draft = require "millrace.draft"
local paired = require "millrace.paired"
local dir = arg[0]:match "^(.*/)" or "./"
local program_of = dofile(dir .. "program_of.lua")

local FORMS <const> = {
  {seconds = 0, sample = 0.012, warmup = 0, rounds = 8}, {seconds = 0, sample = 0.006, warmup = 0, rounds = 16},
  {seconds = 0, sample = 0.025, warmup = 0, rounds = 4}, {seconds = 0, sample = 0.05, warmup = 0.003, rounds = 2},
}
local TRUE <const> = {sample = 0.05, warmup = 0.04}      -- seconds is set below: without it a race ends after 10 s
local TIMES <const>, TOGETHER <const> = 8, 9            -- races of each form; plans of a race
local IDLE <const> = {0.02, 0.06}                       -- seconds before a race, alternately
local options, rows = dofile(dir .. "row_arguments.lua")({plans = 24, rounds = 16},
  {"^gemm 4096 x 4096 x 4096$", "^gemm 128 x 8192 x 28672$", "^attention d128 s2048$"})

-- Kernels of the best plans of a search, without those that spill.
local function kernels_of(bound, device)
  local search, compiling, kernels, seen = core.search(bound, device, nil, true), {}, {}, {}
  search:run(math.maxinteger, 20)
  for _, x in ipairs(search:found()) do
    if x.priced and #compiling < 2 * options.plans then
      local plan = draft.plan(bound, device, search:plan(x.trial))
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

-- The logarithms of the ratios of kernels, by their numbers, to the first of the list, and the seconds that it took.
local function race(kernels, list, how)
  local of, names = {}, {}
  for i, k in ipairs(list) do of[i], names[i] = kernels[k], "plan " .. k end
  local began, rounds, found = core.clock(), core.race(of, names, how), {}
  for i, k in ipairs(list) do found[k] = math.log(paired.median(paired.ratios(rounds, i, 1))) end
  return found, core.clock() - began
end

local function wait(seconds)
  local ends = core.clock() + seconds
  while core.clock() < ends do end
end

local function root_mean_square(list)
  local sum = 0
  for _, x in ipairs(list) do sum = sum + x * x end
  return math.sqrt(sum / #list)
end

-- `most` of the numbers 1 to n, or all, in a random order.
local function draw(n, most)
  local list = {}
  for i = 1, n do table.insert(list, math.random(#list + 1), i) end
  return table.move(list, 1, math.min(most, n), 1, {})
end

print(("%-34s %-16s %8s %7s %11s %7s"):format("row", "form", "s a plan", "error", "nine of ten", "shared"))
math.randomseed(1)
for _, row in ipairs(rows) do
  local kernels = kernels_of(program_of(row.program)(row.sizes), mr.device "h200")
  TRUE.rounds, TRUE.seconds = options.rounds, options.rounds * TRUE.sample / 2
  local truth = race(kernels, draw(#kernels, #kernels), TRUE)
  local of_form = {}
  for n = 1, TIMES do
    for f, form in ipairs(FORMS) do
      local x = of_form[f] or {errors = {}, shared = {}, seconds = 0}
      local list, sum = draw(#kernels, TOGETHER), 0
      wait(IDLE[n % #IDLE + 1])
      local found, took = race(kernels, list, form)
      for i = 2, #list do
        local off = found[list[i]] - (truth[list[i]] - truth[list[1]])
        x.errors[#x.errors + 1], sum = math.abs(off), sum + off
      end
      x.shared[n], x.seconds, of_form[f] = sum / (#list - 1), x.seconds + took, x
    end
  end
  for f, form in ipairs(FORMS) do
    local x = of_form[f]
    table.sort(x.errors)
    print(("%-34s %2d of %2.0f ms%6s %8.3f %6.2f%% %10.2f%% %6.2f%%"):format(row.case, form.rounds, form.sample * 1e3, "", x.seconds / #x.errors,
      100 * root_mean_square(x.errors), 100 * x.errors[math.ceil(0.9 * #x.errors)], 100 * root_mean_square(x.shared)))
  end
end
