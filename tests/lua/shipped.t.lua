-- All shipped programs run correctly on the CPU: at three sizes, one of them ragged, from two
-- different plans each and from the one that the search finds. With the argument "cuda", on
-- the attached device (tests/gpu/shipped.t).
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")

local SEEDS <const> = {1, 2}
local target = arg[1] or "host"

-- Sizes of each program, the last one ragged, the tile of hand-made plans, and how many plans a search tries (200).
local programs = {
  matmul_sum = {tile = {m = 64, n = 64, k = 32},
    {m = 64, n = 64, k = 64}, {m = 128, n = 192, k = 96}, {m = 100, n = 136, k = 72}},
  gemm = {tile = {m = 64, n = 64, k = 32},
    {m = 64, n = 64, k = 64}, {m = 192, n = 128, k = 160, bias = true, activation = "gelu"},
    {m = 100, n = 72, k = 88}},
  flash_attention = {tile = {m = 64, n = 64},
    {b = 1, h = 1, m = 128, d = 64}, {b = 2, h = 2, hkv = 1, m = 128, n = 256, d = 64, causal = true},
    {b = 1, h = 2, m = 100, n = 136, d = 64, causal = true}},
  flash_decoding = {tile = {n = 64, key = 128},
    {b = 1, h = 64, hkv = 1, n = 256, d = 64, splits = 2}, {b = 1, h = 16, hkv = 2, n = 512, d = 64, splits = 4},
    {b = 1, h = 8, hkv = 1, n = 328, d = 64, splits = 2}},
  attention_backward = {tile = {m = 64, n = 64, g = 1},
    {b = 1, h = 2, m = 128, d = 64}, {b = 1, h = 2, hkv = 1, m = 100, d = 64, causal = true}, {b = 1, h = 1, m = 64, n = 128, d = 128}},
  paged_decoding = {tile = {n = 64, key = 64},
    {b = 1, h = 64, hkv = 1, n = 256, d = 64, splits = 2}, {b = 2, h = 16, hkv = 2, n = 512, d = 64, splits = 4},
    {b = 2, h = 8, hkv = 1, n = 208, d = 64, splits = 2}},
  topk_routing = {tile = {m = 16}, {m = 32, n = 64}, {m = 20, n = 256, k = 3, dtype = "bf16"}, {m = 40, n = 20, k = 4, all = true}},
  block_sparse_attention = {tile = {rows = 64, key = 64},
    {b = 1, h = 1, m = 128, d = 64, rows = 64}, {b = 1, h = 2, hkv = 1, m = 128, n = 192, d = 64, rows = 64, keys = 32, causal = true},
    {b = 2, h = 1, m = 64, d = 40, rows = 32, keys = 16}},
  chunk_state = {tile = {},
    {b = 1, s = 128, h = 1, p = 64, n = 64, chunk = 64}, {b = 1, s = 256, h = 2, p = 64, n = 64, chunk = 128},
    {b = 1, s = 128, h = 2, p = 40, n = 72, chunk = 64}},
  chunk_scan = {tile = {},
    {b = 1, s = 128, h = 1, p = 64, n = 64, chunk = 64}, {b = 1, s = 256, h = 2, p = 64, n = 64, chunk = 64},
    {b = 1, s = 128, h = 2, p = 40, n = 72, chunk = 64}},
  dequant_gemm = {tile = {m = 64, n = 64, k = 64},
    {m = 64, n = 64, k = 128, group = 64}, {m = 128, n = 128, k = 256, group = 128},
    {m = 100, n = 72, k = 192, group = 64}},
  fp4_gemm = {tile = {m = 64, n = 64, k = 64},
    {m = 64, n = 64, k = 128}, {m = 128, n = 128, k = 256}, {m = 100, n = 72, k = 192}},
  cross_entropy = {tile = {m = 16, n = 64},
    {m = 64, n = 128}, {m = 48, n = 320, smoothing = 0.1}, {m = 37, n = 200}},
  rmsnorm_gemm = {tile = {m = 64, n = 64, k = 32},
    {m = 64, n = 64, k = 64}, {m = 128, n = 128, k = 160, gain = false}, {m = 100, n = 72, k = 88}},
  fp8_block_scales = {tile = {m = 64, j = 64},
    {m = 64, n = 64, k = 128}, {m = 128, n = 256, k = 384}, {m = 100, n = 200, k = 272}},
  mla_decoding = {tile = {h = 64, key = 64, d = 64},
    {b = 1, h = 64, n = 128, d = 64, r = 16, splits = 1}, {b = 2, h = 16, n = 256, d = 64, r = 16, splits = 2},
    {b = 1, h = 24, n = 200, d = 64, r = 32, splits = 2}},
  kimi_delta_attention = {tile = {head = 1, v = 64}, trials = 30,
    {b = 1, s = 24, h = 2, k = 32, v = 32, init = true, chunk = 16}},
  gated_delta_rule = {tile = {head = 1, v = 64}, trials = 30,
    {b = 1, s = 24, h = 2, hk = 1, k = 32, v = 32, init = true, chunk = 16}},
  mamba2 = {tile = {l = 64, head = 2}, trials = 60,
    {b = 1, s = 128, h = 1, p = 32, n = 32, chunk = 64}, {b = 1, s = 80, h = 2, g = 2, p = 32, n = 32, chunk = 32, init = true}},
  grouped_gemm = {tile = {n = 64, k = 64, i = 64},
    {m = 64, n = 64, k = 64, e = 2, block = 64, blocks = 3}, {m = 100, n = 128, k = 96, e = 5, blocks = 2, gated = true},
    {m = 40, n = 72, k = 88, e = 3, block = 32, blocks = 4}},
  conv2d = {tile = {c = 64, k = 64, r = 1, s = 1},
    {n = 1, c = 64, h = 8, w = 8, k = 64, r = 1, s = 1}, {n = 1, c = 64, h = 8, w = 8, k = 64, r = 3, s = 3, pad = 1},
    {n = 2, c = 64, h = 9, w = 7, k = 72, r = 3, s = 3, stride = 2, pad = 1}},
}

-- Everything in the program's order on the lanes that the device chooses.
local function simple(plan)
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
end

-- Rings of two for what loops load, loads alternately on two lanes, few EUs.
local function deep(plan)
  local loads = 0
  plan:grid{eus = 2}
  for _, t in ipairs(plan.tasks) do
    if t.kind == "load" then
      plan:append(t.name, {lane = "p" .. loads % 2})
      loads = loads + 1
      if t.loop then plan:buffers{[t.writes[1]] = 2} end
    else
      plan:append(t.name)
    end
  end
  plan:fill_waits()
end

local function describe(sizes)
  local list = {}
  for name, size in pairs(sizes) do list[#list + 1] = ("%s=%s"):format(name, size) end
  table.sort(list)
  return table.concat(list, " ")
end

local function correct(what, plan)
  local good, problems = plan:check()
  if not good then return tap.ok(false, what, tostring(problems)) end
  local result, message = random_plans.verify(plan, SEEDS, {target = target})
  tap.ok(result == "ok", what, message, plan:script())
end

local names = {}
for name in pairs(mr.examples) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  local of = programs[name]
  if tap.ok(of, name .. " has sizes here") then
    for _, sizes in ipairs(of) do
      local bound, what = mr.examples[name](sizes), ("%s %s"):format(name, describe(sizes))
      for how, make in ipairs{simple, deep} do
        local plan = mr.plan(bound:graph{tile = of.tile}, mr.device "h200")
        make(plan)
        correct(("%s, plan %d"):format(what, how), plan)
      end
      local found, why = mr.search(bound, mr.device "h200", {trials = of.trials or 200, seconds = 20})
      if tap.ok(found, what .. ": the search finds a plan", why) then
        correct(what .. ", as searched", found.plan)
      end
    end
  end
end
tap.is(#names, 21, "twenty-one programs are shipped")
tap.done_testing()
