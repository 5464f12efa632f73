-- clusters.lua - what clusters along an axis that the search does not take bring: heads that share keys and values, C and C B.
--
--   millrace tests/perf/clusters.lua
--
-- For each program the best plan of a search by the model, and the same plan in clusters of 2 and 4 heads: predicted milliseconds,
-- and, unless NO_DEVICE=1 is in the environment, measured ones, of all three in one race. Kernels are compared with each other by
-- the race and, at small sizes, with the reference by tests/gpu/kernels.lua.
local mr = require "millrace"
local predicts = os.getenv "NO_DEVICE" ~= nil

local cases = {
  {"chunk_scan", {b = 8, s = 8192, h = 80, p = 64, n = 128}}, {"chunk_state", {b = 8, s = 8192, h = 80, p = 64, n = 128}},
  {"flash_attention", {b = 4, h = 32, hkv = 8, m = 4096, d = 128}},
  {"flash_attention", {b = 4, h = 32, hkv = 8, m = 4096, d = 128, causal = true}},
}

for _, case in ipairs(cases) do
  local bound = mr.examples[case[1]](case[2])
  local kernels, plans = {}, {mr.search(bound, "h200", {measure = false, compile = true}).plan}
  for _, size in ipairs{2, 4} do
    local plan = plans[1]:copy()
    plan:grid{cluster = size, along = "h"}
    plans[#plans + 1] = plan
  end
  local ms = {}
  for i, plan in ipairs(plans) do
    local legal, problems = plan:check()
    if legal then
      print(("%-16s clusters of %d: %.4f ms predicted"):format(case[1], 1 << i - 1, plan:simulate().seconds * 1e3))
      kernels["k" .. i] = not predicts and plan:compile() or nil
    else
      print(case[1], problems)
    end
  end
  if not predicts then
    for _, racer in ipairs(mr.race(kernels, {seconds = 2})) do ms[racer.name] = racer.ms end
    for i = 1, #plans do print(("%-16s clusters of %d: %.4f ms measured"):format(case[1], 1 << i - 1, ms["k" .. i] or 0 / 0)) end
  end
end
