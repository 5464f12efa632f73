-- operators.lua - the operators of tests/operators at the sizes at which people run them.
--
--   millrace tests/perf/operators.lua [PATTERN]   those whose lines have PATTERN (Lua)
--
-- Each is searched for an H200 by the model alone and compiled, for which CUDA's compiler must be there. If a device is attached,
-- the kernel runs: it is compared with the reference, and timed. A line of each: name and sizes; plans tried and the CPU seconds of
-- the search; predicted milliseconds and their ratio to the bound; bytes that a thread stores and loads for spills; measured milliseconds,
-- and whether the result is right. In the environment, DEVICE names another device, NO_DEVICE=1 has nothing run, NO_BENCH=1 nothing
-- timed, COMPILE=1 has searches look for kernels without spills and serialized products, and PART=2/8 is every eighth line, from the second on. Exits with 1 if one has no plan, spills, is serialized or is wrong.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local operators = dofile(dir .. "../lua/lib/operators.lua")
local device, attached = mr.device(os.getenv "DEVICE" or "h200"), os.getenv "NO_DEVICE" == nil and mr.attached() ~= nil

local bad = {["no plan"] = 0, spills = 0, serialized = 0, wrong = 0, failed = 0}
local part, parts = (os.getenv "PART" or "1/1"):match "^(%d+)/(%d+)$"
local lines, seen = 0, 0

local function count(what, message)
  bad[what] = bad[what] + 1
  if message then print("    " .. what .. ": " .. tostring(message)) end
end

local function row(line, searched, tried, predicted, ratio, spills, measured, right)
  print(("%-84s %7s %6s %9s %5s %6s %9s %s"):format(line, tried, searched, predicted, ratio, spills, measured, right))
end

local function run(k, operator, bound, sizes)
  local inputs = operators.inputs(operator, bound, sizes)
  local checked = k:check{inputs = inputs}
  if not checked.ok then count("wrong", checked) end
  return os.getenv "NO_BENCH" and 0 or k:bench{seconds = 0.3, inputs = inputs}.ms, checked.ok and "right" or "WRONG"
end

local function try(line, operator, sizes)
  local bound, start = operator.program(sizes), os.clock()
  local found, why = mr.search(bound, device, {measure = false, seconds = 10, fresh = true, compile = os.getenv "COMPILE" ~= nil})
  local searched = ("%.1f s"):format(os.clock() - start)
  if not found then
    row(line, searched, "", "", "", "", "", "")
    return count("no plan", why)
  end
  local k = found.plan:compile()
  local measured, right = "", ""
  if attached then
    local ok, ms, said = pcall(run, k, operator, bound, sizes)
    if ok then measured, right = ("%.4f"):format(ms), said else count("failed", ms) end
  end
  row(line, searched, found.trials, ("%.4f"):format(found.seconds * 1e3),
    ("%.2f"):format(found.seconds / found.bound_seconds), k.spills, measured, right)
  if k.spills > 0 then count "spills" end
  for _, p in ipairs(k.problems) do
    if p.code == "serialized" then count("serialized", p.message) else print("    " .. p.message) end
  end
end

row("operator", "search", "tried", "predicted", "ratio", "spills", "measured", "")
for _, operator in ipairs(operators.list(dir .. "../operators/")) do
  for _, sizes in ipairs(operator.usual) do
    local line = operators.describe(operator, sizes)
    if line:find(arg[1] or "") then seen = seen + 1 end
    if line:find(arg[1] or "") and seen % parts == part % parts then
      lines = lines + 1
      local ok, why = pcall(try, line, operator, sizes)
      if not ok then
        row(line, "", "", "", "", "", "", "")
        count("failed", why)
      end
    end
  end
end
local total, words = 0, {}
for _, what in ipairs{"no plan", "failed", "spills", "serialized", "wrong"} do
  total = total + bad[what]
  words[#words + 1] = ("%s %d"):format(what, bad[what])
end
print(("%d lines; %s"):format(lines, table.concat(words, ", ")))
os.exit(total == 0)
