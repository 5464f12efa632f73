-- search_time.lua - what a measured search does with its time.
--
--   millrace tests/perf/search_time.lua SECONDS [PATTERN ...]      families of sweep-h200.jsonl whose names have one
--                                                                  of the patterns (Lua); some of each kind unless given
--
-- On the attached device: a search of so many seconds, afresh, then a race of its answer against the fastest other plan of the family.
-- For each row: seconds in the model, in emitting texts, waiting for compilers, in the reference and comparisons, in
-- races, and others; then a line for each row measured (second of the search, status, ms, best so far); last a table:
-- the seconds until the first plan that was verified, and until the best so far was within 1 % of the final race's best; the
-- plans measured; the answer's time, and the known plan's time over it. CHECK=1 in the environment checks the answer.
local mr = require "millrace"
local core = require "millrace.core"
local measured = dofile((arg[0]:match "^(.*/)" or "./") .. "measured.lua")

local USUAL <const> = {"^gemm 8192x28672x8192$", "^gemm 2048x2048x2048$", "^attention 128, 8192 keys$",
  "^attention 128, 2048 keys, causal$",
  "^chunk_scan s8192$", "^dequant m4096$"}
local seconds, patterns = tonumber(arg[1] or 16), #arg > 1 and table.move(arg, 2, #arg, 1, {}) or USUAL

local used, depth, searched = {}, 0, nil
local function watch(name, what)
  local f = core[name]
  core[name] = function(...)
    local began = core.clock()
    searched = searched or name == "compile_begin" and began
    depth = depth + 1
    local r = table.pack(pcall(f, ...))
    depth = depth - 1
    if depth == 0 then used[what] = (used[what] or 0) + core.clock() - began end
    if not r[1] then error(r[2], 0) end
    return table.unpack(r, 2, r.n)
  end
end
for name, what in pairs{compile_begin = "emit", compile_wait = "wait", reference_allowing = "reference", verify = "verify",
  run = "run", race = "race", compare = "compare"} do
  if core[name] then watch(name, what) end
end

local function matches(name)
  for _, p in ipairs(patterns) do if name:find(p) then return true end end
end

local families, names = {}, {}
for _, row in ipairs(measured.plans(measured.sweep)) do
  local name = row.family
  if matches(name) then
    if not families[name] then families[name], names[#names + 1] = {}, name end
    table.insert(families[name], row)
  end
end

-- Plans of the family, the fastest first, as they were measured.
local function known_plans(rows)
  table.sort(rows, function(a, b) return a.ms < b.ms end)
  local list = {}
  for i = 1, math.min(#rows, 2) do
    local good, plan = pcall(function() return assert(load(rows[i].script, "=" .. rows[i].name, "t"))() end)
    if good then list[#list + 1] = {name = rows[i].name, plan = plan} end
  end
  return list
end

local rows = {}
for _, name in ipairs(names) do
  local others = known_plans(families[name])
  local bound = others[1].plan.graph.program
  local log, first, began = {}, nil, core.clock()
  used, searched = {}, nil
  local r, why = mr.search(bound, mr.device(), {measure = true, fresh = true, seconds = seconds, progress = function(state)
    local at, last = core.clock() - began, state.last
    if last and last.status == "ok" and last.relative and not first then first = at end
    log[#log + 1] = {at = at, status = last and last.status, ms = last and (last.score or last.ms), best = state.best and state.best.score}
  end})
  local took = core.clock() - began
  if r then
    local sum, parts = 0, {}
    for _, what in ipairs{"emit", "wait", "reference", "verify", "run", "compare", "race"} do
      sum = sum + (used[what] or 0)
      parts[#parts + 1] = ("%s %.2f"):format(what, used[what] or 0)
    end
    print(("%s: %.1f s, first compilation after %.2f s, %d plans in the model; %s, others %.2f; %s"):format(name, took,
      searched and searched - began or 0, r.trials, table.concat(parts, ", "), took - sum, r.ended))
    for _, x in ipairs(log) do
      print(("  %6.2f s %-8s %s  best %s"):format(x.at, x.status, x.ms and ("%.4f"):format(x.ms) or "-",
        x.best and ("%.4f"):format(x.best) or "-"))
    end
    for _, x in ipairs(r.measurements) do if x.status ~= "ok" then print("  " .. x.status .. ": " .. tostring(x.why):sub(1, 150)) end end
    local list = {searched = r.plan}
    for _, x in ipairs(others) do list[x.name] = x.plan end
    local race, mine, known = mr.race(list, {base = "searched"}), nil, nil
    for _, x in ipairs(race) do
      if x.name == "searched" then mine = x elseif not known or x.ms < known.ms then known = x end
    end
    local until_good
    for _, x in ipairs(log) do
      if x.best and r.measured and x.best <= r.measured.ms * 1.01 then until_good = until_good or x.at end
    end
    local ok = os.getenv "CHECK" and r.plan:compile():check{seed = 7}
    rows[#rows + 1] = ("%-34s first %5.2f s, 99 %% of its end %5.2f s, end %5.2f s, %3d measured; %.4f ms, known %.4f %s, "
      .. "ratio %.3f, %s"):format(
      name, first or -1, until_good or -1, took, #r.measurements, mine.ms, known and known.ms or 0, known and known.name or "-",
      known and known.ratio or 0, ok and (ok.ok and "right" or "WRONG") or "")
  else
    rows[#rows + 1] = name .. ": " .. tostring(why)
  end
  print(rows[#rows])
  io.stdout:flush()
end
print(("\n%s"):format(table.concat(rows, "\n")))
