-- export_case.lua - compile one kernel and put it where Python finds it. For
-- against_torch.py:
--
--   millrace tests/perf/export_case.lua FOLDER PLAN PROGRAM KEY=VALUE...
--
-- PLAN: a path, a name in examples or examples/plans, or "search".
local mr = require "millrace"

local folder, name, program = arg[1], arg[2], arg[3]
local sizes = {}
for i = 4, #arg do
  local key, value = arg[i]:match "^([%w_]+)=(.*)$"
  assert(key, "KEY=VALUE expected")
  if value == "true" or value == "false" then
    sizes[key] = value == "true"
  else
    sizes[key] = tonumber(value) or value
  end
end

local bound, plan = mr.examples[program](sizes), nil
if name == "search" then
  plan = mr.search(bound, mr.device "h200", {seconds=20}).plan
else
  plan = mr.load_plan(name, bound)
end
local k = plan:compile{target="cuda"}
k:export(folder, {name="kernel"})
print(("%d registers, %d bytes of spills%s"):format(k.registers, k.spills,
  #k.warnings > 0 and "; " .. table.concat(k.warnings, "; ") or ""))
