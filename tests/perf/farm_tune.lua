-- farm_tune.lua - twenty products and attentions tuned by mr.tune, and what two such runs have found.
--
--   millrace tests/perf/farm_tune.lua tune FILE.json [trials=32]                    one process
--   mpirun -n 3 --bind-to none millrace --farm tests/perf/farm_tune.lua tune FILE.json     two GPUs
--   millrace tests/perf/farm_tune.lua compare ONE.json MANY.json                    races the plans of both, on the attached device
--
-- farm_tune.sh does all of it. tune: writes a line: GPUs, rows, plans measured, seconds, plans a minute. compare: a line for each row: ms as
-- each run has measured its plan, and the second plan's time over the first one's in a race; ends with how many are as good, and the worst.
local mr = require "millrace"
local core = require "millrace.core"
local json = require "millrace.json"
local ex = mr.examples

local list = {}
for _, s in ipairs{{1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 1024}, {8192, 8192, 8192}, {1024, 8192, 8192},
    {4096, 1024, 16384}, {3072, 5120, 2048}, {128, 8192, 28672}, {16, 8192, 8192}} do
  list[#list + 1] = ex.gemm{m = s[1], n = s[2], k = s[3]}
end
for _, s in ipairs{{512, 64}, {1024, 64}, {2048, 64}, {2048, 128}, {4096, 128}} do
  for _, causal in ipairs{false, true} do
    list[#list + 1] = ex.flash_attention{b = 16384 // s[1], h = 2048 // s[2], m = s[1], d = s[2], causal = causal}
  end
end

local LONG <const> = {base = "one", seconds = 2, sample = 0.03}               -- a race of two: 33 pairs of rounds, whose median is known to 0.3 %
local NEAR <const> = 0.01                               -- relative: a plan that is no more than this slower counts as equally good

local function tune(path, trials)
  local farm, began = core.farm(), core.clock()
  local t = mr.tune(list, {device = "h200", trials = trials, measure = true})
  local seconds, measured = core.clock() - began, 0
  if farm and farm:rank() > 0 then return end
  for _, row in ipairs(t) do measured = measured + (row.measured or 0) end
  local file = assert(io.open(path, "w"))
  file:write(t:json())
  file:close()
  print(("%d GPUs: %d rows, %d plans measured, %.1f s, %.1f a minute"):format(farm and farm:size() - 1 or 1, #t, measured, seconds, measured / seconds * 60))
end

local function read(path)
  local file = assert(io.open(path))
  local found = assert(json.decode(file:read "a"))
  file:close()
  assert(#found.rows == #list, path .. " has other rows")
  return found.rows
end

local function time(row) return row.ms ~= json.null and ("%.4f"):format(row.ms) or "-" end

local function compare(one, many)
  local rows, others, worst, same, near = read(one), read(many), 1, 0, 0
  print(("%-18s %-34s %9s %9s %7s %s"):format("program", "sizes", "one, ms", "many, ms", "race", "95 % interval"))
  for i, x in ipairs(rows) do
    local y, ratio, shown = others[i], 1, "same"
    assert(x.script ~= json.null and y.script ~= json.null, x.program .. ": a run has no plan")
    if x.script == y.script then
      same = same + 1
    else
      local function plan(text) return assert(load(text, "=farm_tune", "t"))(list[i]) end
      for _, row in ipairs(mr.race({one = plan(x.script), many = plan(y.script)}, LONG)) do
        if row.name == "many" then ratio, shown = row.ratio, ("%.4f %.4f to %.4f"):format(row.ratio, row.low, row.high) end
      end
      near = near + (ratio <= 1 + NEAR and 1 or 0)
    end
    worst = math.max(worst, ratio)
    print(("%-18s %-34s %9s %9s %7s"):format(x.program, x.sizes, time(x), time(y), shown))
  end
  print(("%d of %d plans are the same, %d others within %g %% or faster; at worst %.4f"):format(same, #rows, near, 100 * NEAR, worst))
end

if arg[1] == "tune" and arg[2] then
  tune(arg[2], tonumber((arg[3] or ""):match "^trials=(%d+)$") or 32)
elseif arg[1] == "compare" and arg[3] then
  compare(arg[2], arg[3])
else
  error("tune FILE.json, or compare ONE.json MANY.json", 0)
end
