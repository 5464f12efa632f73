-- operators.t.lua - the operators of tests/operators at small sizes: the search alone plans each, its kernel runs on the CPU and
-- agrees with the reference in each element, and in some with the operator's own formula.
--
--   millrace operators.t.lua [PATTERN]   those whose names match
--
-- In the environment, MILLRACE_OPERATORS=N takes every N-th operator alone, DEVICE=a100 plans for another device.
local mr = require "millrace"
local core = require "millrace.core"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, operators = dofile(dir .. "tap.lua"), dofile(dir .. "lib/operators.lua")
local every, device = tonumber(os.getenv "MILLRACE_OPERATORS" or 1), mr.device(os.getenv "DEVICE" or "h200")

local function wrong(operator, sizes)
  local bound = operator.program(sizes)
  local found, why = mr.search(bound, device, {measure = false, trials = operator.trials or 60})
  if not found then return tostring(why) end
  local k = found.plan:compile{target = "host"}
  local inputs = operators.inputs(operator, bound, sizes, 5)
  local got, report = core.host_run(k, inputs, {seed = 2, race = true, limit = 600})
  if report then return report end
  local check = k:check{inputs = inputs, reference = "interpreter"}
  if not check.ok then return tostring(check) end
  return operators.differs(operator, bound, sizes, inputs, got, 48)
end

for i, operator in ipairs(operators.list(dir .. "../operators/", arg[1])) do
  if i % every == 0 then
    for _, sizes in ipairs(operator.small) do
      local ok, said = pcall(wrong, operator, sizes)
      tap.ok(ok and not said, operators.describe(operator, sizes), said)
    end
  end
end
tap.done_testing()
