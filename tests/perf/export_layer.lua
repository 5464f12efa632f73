-- export_layer.lua - plan a layer, compile it and put it where Python finds it. For layers.py:
--
--   millrace tests/perf/export_layer.lua FOLDER CASE SEQUENCE KEY=VALUE...
--
-- SEQUENCE: a name of examples. Its plan is the script LAYER_PLANS/CASE.lua (layer_plans), or else the best one of the store, or else what
-- searches find, SEARCH_SECONDS (10) for each kernel; both are environment variables. The modules are CASE.py and CASE_CALL.py. With
-- OPERATOR=1 in the environment there is the package CASE of a PyTorch operator, too.
local mr = require "millrace"

local folder, case, name = arg[1], arg[2], arg[3]
local sizes = {}
for i = 4, #arg do
  local key, value = arg[i]:match "^([%w_]+)=(.*)$"
  assert(key, "KEY=VALUE expected")
  sizes[key] = math.tointeger(value) or tonumber(value) or (value == "true" and true or value)
end
local seq = mr.examples[name](sizes)
local path = ("%s/%s.lua"):format(os.getenv "LAYER_PLANS" or (arg[0]:match "^(.*/)" or "./") .. "layer_plans", case)
local file, plan = io.open(path)
if file then
  file:close()
  plan = mr.load_plan(path, seq)
else
  plan = seq:plan("h200", {seconds = tonumber(os.getenv "SEARCH_SECONDS" or 10)})
end
local kernels = plan:compile{target = "cuda"}
kernels:export(folder, {name = case})
if os.getenv "OPERATOR" == "1" then kernels:export(folder .. "/operator", {torch = true, name = case}) end
plan:save(folder .. "/plan.lua", {overwrite = true})
print(("predicted %.4f ms, %s"):format(plan:simulate().seconds * 1e3, file and "the plan of " .. path or "planned now, or by the store"))
