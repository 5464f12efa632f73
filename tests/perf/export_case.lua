-- export_case.lua - compile one kernel and put it where Python finds it. For
-- against_torch.py:
--
--   millrace tests/perf/export_case.lua FOLDER PLAN PROGRAM KEY=VALUE...
--
-- PLAN: a path, a name in examples or examples/plans, or "search", a new search of SEARCH_SECONDS (20), an environment variable, on the
-- attached device; then the plan's script is in FOLDER/plan.lua. PROGRAM: a name for program_of.lua.
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

local program_of = dofile((arg[0]:match "^(.*/)" or "./") .. "program_of.lua")
local bound, plan, said = program_of(program)(sizes), nil, ""
if name == "search" then
  local found = assert(mr.search(bound, mr.device "h200", {seconds=tonumber(os.getenv "SEARCH_SECONDS" or 20), fresh=true}))
  plan, said = found.plan, ("; %d trials, predicted %.4f ms"):format(found.trials, found.plan:simulate().seconds * 1e3)
else
  plan = mr.load_plan(name, bound)
end
local k = plan:compile{target="cuda"}
k:export(folder, {name="kernel"})
if name == "search" then
  local script = assert(io.open(folder .. "/plan.lua", "w"))
  script:write(plan:script())
  script:close()
end
print(("%d registers, %d bytes of spills%s%s"):format(k.registers, k.spills,
  #k.warnings > 0 and "; " .. table.concat(k.warnings, "; ") or "", said))
