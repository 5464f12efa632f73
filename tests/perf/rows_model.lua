-- rows_model.lua - the rows of rows.py without a device: what a search finds in the model, and what the compiler makes of it.
--
--   millrace tests/perf/rows_model.lua [PATTERN ...]      rows whose names have one of the patterns (Lua); all unless given
--
-- Needs CUDA's compiler, and python3. A line of each row: predicted milliseconds of the plan of a search of 5 seconds for an H200 with
-- compile=true; the seconds that it took, kernels included, and plans tried; seconds to compile the answer afresh, its registers, bytes
-- of spills, and codes of what the compiler did badly; then the best rival's milliseconds, if known (rivals-h200.txt: measured on one
-- H200 SXM of 700 W, driver 580.159, CUDA 13.0, PyTorch 2.11, cuDNN, FlashAttention 3 and 4, mamba_ssm, in November 2026, in
-- CUDA graphs over inputs of more than twice the L2; FlashAttention-4's backward at twice the heads, halved), its ratio to the
-- prediction, and the ratio that is the goal. Then come the rows predicted below their goals, with what binds. In the environment,
-- SECONDS=5 is how long a search takes in the model, DEVICE=h200 what it is for, PART=2/4 every fourth row, from the second on,
-- PLANS=FOLDER where scripts of the plans stay. Exits with 1 if a row
-- fails or has no plan, or if its kernel spills, has another problem of the compiler's or takes more than 5 s to compile; not if it misses its goal.
local mr = require "millrace"
local core = require "millrace.core"
local dir = arg[0]:match "^(.*/)" or "./"
local parse_json, program_of = dofile(dir .. "../lua/lib/parse_json.lua"), dofile(dir .. "program_of.lua")

local SLOW <const> = 5                                  -- seconds to compile
local seconds, device = tonumber(os.getenv "SECONDS" or 5), mr.device(os.getenv "DEVICE" or "h200")
local part, parts = (os.getenv "PART" or "1/1"):match "^(%d+)/(%d+)$"
local plans = os.getenv "PLANS"

local function matches(name)
  for _, pattern in ipairs(arg) do if name:find(pattern) then return true end end
  return #arg == 0
end

-- {row's name = {name=, ms=}} of lines "row: rival: ms".
local function read_rivals()
  local rivals = {}
  for line in io.lines(dir .. "rivals-h200.txt") do
    local row, name, ms = assert(line:match "^(.-): (.*): ([%d.]+)$")
    rivals[row] = {name = name, ms = tonumber(ms)}
  end
  return rivals
end

local function bind(row) return program_of(row.program)(row.sizes) end

-- The seconds of a compilation that no cache has.
local function seconds_to_compile(plan)
  local began = core.clock()
  core.build(plan, true, function(text) return ("%s\n// %.6f\n"):format(text, began) end)
  return core.clock() - began
end

local bad = {["no plan"] = 0, spills = 0, serialized = 0, ungranted = 0, slow = 0, failed = 0}
local slower = {}

local function try(row, rival)
  local bound, began = bind(row), core.clock()
  local found, why = mr.search(bound, device, {measure = false, compile = true, fresh = true, seconds = seconds})
  local took = core.clock() - began
  if not found then
    bad["no plan"] = bad["no plan"] + 1
    print(("%-42s no plan: %s"):format(row.case, why))
    return
  end
  local plan, codes = found.plan, {}
  if plans then
    local file = assert(io.open(("%s/%s.lua"):format(plans, row.case:gsub("[^%w]+", "_")), "w"))
    file:write(plan:script())
    file:close()
  end
  local k, compiled = plan:compile(), seconds_to_compile(plan)
  for _, p in ipairs(k.problems) do
    codes[#codes + 1] = p.code
    bad[p.code] = (bad[p.code] or 0) + 1
  end
  if compiled > SLOW then bad.slow = bad.slow + 1 end
  local ms = found.seconds * 1e3
  local ratio = rival and rival.ms / ms
  print(("%-42s %8.4f %6.1f %5d %7.1f %5d %6d %-11s%s"):format(row.case, ms, took, found.trials, compiled, k.registers, k.spills,
    #codes > 0 and table.concat(codes, ",") or "-", rival and (" %-18s %8.4f %6.3f %5.2f%s"):format(rival.name, rival.ms, ratio, row.goal,
    ratio < row.goal and " *" or "") or ""))
  if rival and ratio < row.goal then slower[#slower + 1] = {row = row, ratio = ratio, found = found} end
end

print(("%-42s %8s %6s %5s %7s %5s %6s %-11s %-18s %8s %6s %5s"):format("row", "ms", "search", "plans", "compile", "regs", "spills",
  "problems", "rival", "ms", "ratio", "goal"))
local rivals, n = read_rivals(), 0
local list = assert(io.popen(("python3 '%srows.py' --programs"):format(dir)))
for line in list:lines() do
  local row = parse_json(line)
  if matches(row.case) then
    n = n + 1
    if n % parts == part % parts then
      local ok, problem = pcall(try, row, rivals[row.case])
      if not ok then
        bad.failed = bad.failed + 1
        print(("%-42s failed: %s"):format(row.case, problem))
      end
      io.stdout:flush()
    end
  end
end
assert(list:close(), "rows.py --programs failed")

for _, x in ipairs(slower) do
  print(("\n%s: ratio %.3f, goal %.2f; bound %.4f ms"):format(x.row.case, x.ratio, x.row.goal, x.found.bound_seconds * 1e3))
  print((tostring(x.found.why()):gsub("[^\n]+", "    %0")))
end
local sum, words = 0, {}
for what, count in pairs(bad) do
  sum = sum + count
  words[#words + 1] = ("%s %d"):format(what, count)
end
table.sort(words)
print(("\n%d rows; %s; %d predicted below their goals"):format(n, table.concat(words, ", "), #slower))
os.exit(sum == 0)
