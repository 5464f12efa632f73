-- first_run.lua - from Lua source to the first run of flash_attention, part by part.
-- For first_run.sh:
--
--   millrace tests/perf/first_run.lua PLAN once     each part once, in this fresh shell
--   millrace tests/perf/first_run.lua PLAN again    that, and then again in the open shell
--   millrace tests/perf/first_run.lua PLAN empty    compile a kernel without contents
--
-- Prints "NAME MILLISECONDS". Inputs are there before the clock starts.
local mr, core = require "millrace", require "millrace.core"

local name, what = arg[1], arg[2]
local sizes = {b=2, h=16, m=1024, d=128}

local function ms(f, ...)
  local start = core.clock()
  local result = f(...)
  return (core.clock() - start) * 1e3, result
end

local function report(key, value) print(("%s %.3f"):format(key, value)) end

local function make_plan() return mr.load_plan(name, mr.examples.flash_attention(sizes)) end
local function compile(plan) return plan:compile{target="cuda"} end

local function run_once(inputs)
  local plan_ms, plan = ms(make_plan)
  local compile_ms, k = ms(compile, plan)
  local run_ms = ms(k.run, k, inputs)
  return {plan=plan_ms, compile=compile_ms, run=run_ms, total=plan_ms + compile_ms + run_ms}, k
end

if what == "empty" then
  local plan = make_plan()
  report("empty", ms(core.build, plan, true, function()
    return 'extern "C" __global__ void empty() {}'
  end))
  return
end

local inputs = mr.examples.flash_attention(sizes):inputs{}
local first, k = run_once(inputs)
first.second = ms(k.run, k, inputs)
first.text = ms(k.plan.compile, k.plan, {target="cuda", text=true})
first.ptxas = 0
for part in core.compile_log(k):gmatch "Compile time = ([%d.]+) ms" do first.ptxas = first.ptxas + part end
for key, value in pairs(first) do report(key, value) end

if what == "again" then
  local seen = {}
  for i = 1, 7 do seen[i] = run_once(inputs) end
  table.sort(seen, function(a, b) return a.total < b.total end)
  for key, value in pairs(seen[4]) do report("open_" .. key, value) end
  report("open_worst", seen[7].total)
end
