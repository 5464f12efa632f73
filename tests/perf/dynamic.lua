-- dynamic.lua - what tiles by a counter bring (plan:grid{dynamic=true}) against tiles from the start: milliseconds of both in one race.
--
--   millrace tests/perf/dynamic.lua [PROGRAM ...]
--
-- A line a program: predicted and measured milliseconds of each, and what is gained, in per cent. Kernels are compared with the
-- reference first, and launched several times, as the counter must be 0 again behind each launch. With NO_DEVICE=1 in the environment
-- nothing runs: the times are the model's, and kernels are compiled, where there is a compiler. On an H200 it should take less than a
-- minute.
--
-- The model predicts what tiles of unequal work gain, and, where device memory binds, memory.global.uneven of the device, which
-- was computed from what an H200 gained here: 2.4, 3.0 and 4.3 % for the copy, rmsnorm and gelu.
--
-- Exits with 1 if a kernel is wrong, or spills registers.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local rows = dofile(dir .. "row_programs.lua")
local predicts = os.getenv "NO_DEVICE" ~= nil
local device = mr.device "h200"
local failed = false

local copy = mr.program("copy", function(p)
  local m, n = p:axes("m", "n")
  p:output("Y", {m, n}):store("store_y", p:load("load_x", p:input("X", {m, n})))
end)

-- Two rows a tile: a warp loads, and lanes of four warps, which are replicas of one, compute and store.
local function by_rows(program, replicas)
  return function()
    local plan = mr.plan(program:bind{m = 8192, n = 8192}:graph{tile = {m = 2, n = 8192}}, device)
    plan:lane("p0", {warps = 1})
    plan:lane("c0", {warps = 4, replicas = replicas})
    for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
    for _, name in ipairs{"x", "g", "load_x"} do
      if plan.rings[name] then plan:buffers{[name] = 4} end
    end
    plan:fill_waits()
    return plan
  end
end

local function causal(grid)
  return function()
    local plan = mr.load_plan("attention_d128_causal", mr.examples.flash_attention{b = 8, h = 16, m = 2048, d = 128, causal = true})
    plan:grid(grid)
    return plan
  end
end

local cases = {
  {"copy", by_rows(copy, 2)}, {"rmsnorm", by_rows(rows.rmsnorm, 2)}, {"gelu", by_rows(rows.gelu, 3)}, {"softmax", by_rows(rows.softmax, 3)},
  {"causal, sections", causal{longest_first = true, section = 528}}, {"causal, in order", causal{longest_first = false}},
  {"grouped_gemm", function()
    return mr.search(mr.examples.grouped_gemm{m = 8192, n = 4096, k = 2048, e = 16}, device, {trials = 60, measure = false}).plan
  end},
}

local function chosen(name)
  for _, pattern in ipairs(arg) do
    if name:find(pattern, 1, true) then return true end
  end
  return #arg == 0
end

local function compiled(name, plan)
  local k = plan:compile{target = "cuda", text = predicts and not pcall(plan.compile, plan)}
  if k.spills and k.spills > 0 then
    print(("%s: spills %d bytes"):format(name, k.spills))
    failed = true
  end
  return k
end

print(("%-20s %10s %10s %8s"):format("", "static", "dynamic", "gain"))
for _, case in ipairs(cases) do
  local name, make = case[1], case[2]
  if chosen(name) then
    local static, dynamic = make(), make()
    for _, t in ipairs(dynamic.tasks) do               -- no lane may have offsets in the tile loop
      if not t.loop then dynamic:move(t.name, {at = 0, repair_waits = true}) end
    end
    dynamic:grid{cluster = 1, dynamic = true}
    local legal, problems = dynamic:check()
    if not legal then
      print(name, problems)
      failed = true
    else
      local s, d = static:simulate().seconds * 1e3, dynamic:simulate().seconds * 1e3
      print(("%-20s %10.4f %10.4f %7.1f%% predicted"):format(name, s, d, 100 * (1 - d / s)))
      local ks, kd = compiled(name, static), compiled(name .. ", dynamic", dynamic)
      if not predicts then
        for seed = 1, 3 do
          local result = kd:check{seed = seed}
          if not result.ok then
            print(name, seed, result)
            failed = true
          end
        end
        local ms = {}
        for _, racer in ipairs(mr.race({static = ks, dynamic = kd}, {seconds = 2})) do ms[racer.name] = racer.ms end
        print(("%-20s %10.4f %10.4f %7.1f%% measured"):format(name, ms.static, ms.dynamic, 100 * (1 - ms.dynamic / ms.static)))
      end
    end
  end
end
os.exit(failed and 1 or 0)
