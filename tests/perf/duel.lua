-- duel.lua - searched kernels against the best plans made by hand, in the same run.
--
--   millrace tests/perf/duel.lua [PATTERN [I N]]
--
-- On the attached device, for each family of sweep-h200.jsonl whose name has PATTERN (Lua), or the I-th of N parts of them, from 0:
-- a measured search, afresh; then its answer is raced against the three fastest other plans of the family, and once more, longer,
-- against the best of them alone: the best of three would be who was lucky. Further shapes of products have the plans of
-- all families of products, the three that the model likes best. Prints a line of each: ms of the answer, of the best other,
-- ratio (the other's over the answer's: 1 or more is no worse) and its interval, what was tried, seconds of the search,
-- spills and warnings of the answer's kernel, why the search ended; and last the geometric mean and how many are under 0.99.
local mr = require "millrace"

local OTHERS <const> = 3
local more = {{m=5120, n=5120, k=5120}, {m=333, n=4096, k=4096}}

local pattern, part, parts = arg[1] or "", tonumber(arg[2] or 0), tonumber(arg[3] or 1)
local measured = dofile((arg[0]:match "^(.*/)" or "./") .. "measured.lua")

local families, names = {}, {}
for _, row in ipairs(measured.plans(measured.sweep)) do
  local name = row.family
  if not families[name] then families[name], names[#names + 1] = {}, name end
  table.insert(families[name], row)
end

local function plan_of(row, bound) return assert(load(row.script, "=" .. row.name, "t"))(bound) end

-- The fastest as they were measured.
local function others_of(rows)
  table.sort(rows, function(a, b) return a.ms < b.ms end)
  local list = {}
  for i = 1, math.min(#rows, OTHERS) do list[i] = {name = rows[i].name, plan = plan_of(rows[i])} end
  return list[1].plan.graph.program, list
end

-- What else there is of products, with these sizes.
local function others_of_products(bound)
  local list, seen = {}, {}
  for _, name in ipairs(names) do
    for _, row in ipairs(name:find "^gemm" and families[name] or {}) do
      local good, plan = pcall(plan_of, row, bound)
      local script = good and plan:script()
      if good and not seen[script] and plan:check() then
        seen[script] = true
        list[#list + 1] = {name = row.name, plan = plan, predicted = plan:simulate{events = 0}.seconds}
      end
    end
  end
  table.sort(list, function(a, b) return a.predicted < b.predicted end)
  return table.move(list, 1, OTHERS, 1, {})
end

local product, rows, low = 0, 0, 0

local function duel(name, bound, others)
  local began = os.time()
  local r, why = mr.search(bound, mr.device(), {measure = true, fresh = true})
  if not r then return print(("%-36s no plan: %s"):format(name, why)) end
  local seconds, kernel = os.difftime(os.time(), began), r.plan:compile()
  local list = {searched = kernel}
  for i, x in ipairs(others) do list[("%s %d"):format(x.name, i)] = x.plan end
  local rival
  for _, x in ipairs(mr.race(list, {base = "searched"})) do
    if x.name ~= "searched" then rival = rival or x end
  end
  local race, mine, best = mr.race({searched = kernel, [rival.name] = rival.kernel}, {base = "searched", seconds = 1.5}), nil, nil
  for _, x in ipairs(race) do
    if x.name == "searched" then mine = x else best = x end
  end
  local ratio = best.ratio
  product, rows, low = product + math.log(ratio), rows + 1, low + (ratio < 0.99 and 1 or 0)
  print(("%-36s %9.4f %9.4f %-12s %6.3f (%.3f to %.3f)  %3d measured of %4d %5.0f s  spills %d, %d warnings; %s"):format(name,
    mine.ms, best.ms, best.name, ratio, best.low, best.high, #r.measurements, r.trials, seconds, kernel.spills or 0, #kernel.problems,
    r.ended))
  io.stdout:flush()
end

local jobs = {}
for _, name in ipairs(names) do
  jobs[#jobs + 1] = {name = name, make = function() return others_of(families[name]) end}
end
for _, sizes in ipairs(more) do
  local bound = mr.examples.gemm(sizes)
  jobs[#jobs + 1] = {name = ("gemm %dx%dx%d"):format(sizes.m, sizes.n, sizes.k), make = function()
    return bound, others_of_products(bound)
  end}
end
for i, job in ipairs(jobs) do
  if job.name:find(pattern) and (i - 1) % parts == part then duel(job.name, job.make()) end
end
print(("%d rows, geometric mean %.4f, %d under 0.99"):format(rows, math.exp(product / math.max(rows, 1)), low))
