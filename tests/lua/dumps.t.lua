-- The dumps of role programs of some plans are those of tests/lua/dumps/. Where lowering changes
-- on purpose, `BLESS=1 build/millrace tests/lua/dumps.t.lua` writes them again.
local dir = (arg[0]:match "^(.*/)" or "./")
local tap = dofile(dir .. "tap.lua")
local mr = require "millrace"

local function all(plan, options)
  for _, t in ipairs(plan.tasks) do plan:append(t.name, options and options[t.name]) end
  plan:fill_waits()
  return plan
end

local function gemm(sizes, tile, lanes, rings, grid)
  local plan = mr.plan(mr.examples.gemm(sizes):graph{tile = tile}, mr.device "h200")
  for name, o in pairs(lanes or {}) do plan:lane(name, o) end
  plan:buffers(rings or {})
  if grid then plan:grid(grid) end
  return plan
end

local attention = {b = 1, h = 1, m = 256, n = 512, d = 64}

local plans = {
  gemm_one_lane = function()
    return all(gemm({m = 64, n = 64, k = 96}, {m = 64, n = 64, k = 32}), {load_a = {lane = "c0"}, load_b = {lane = "c0"}})
  end,
  gemm_cooperative = function()
    return mr.load_plan("gemm_cooperative", mr.examples.gemm{m = 256, n = 512, k = 256})
  end,
  gemm_cluster = function()
    local plan = mr.load_plan("gemm_cooperative", mr.examples.gemm{m = 4096, n = 4096, k = 256})
    plan:grid{raster = "rows", group = 8, cluster = 2}
    return plan
  end,
  gemm_replicas = function()
    local plan = gemm({m = 640, n = 2304, k = 96}, {m = 64, n = 64, k = 32}, {c = {warps = 4, replicas = 2}}, {a = 3, b = 3})
    return all(plan, {mma = {lane = "c"}, epilogue = {lane = "c"}, store_c = {lane = "c"}})
  end,
  gemm_handed_over = function()
    return all(gemm({m = 128, n = 64, k = 64}, {m = 64, n = 64, k = 32}, {c1 = {warps = 4}}),
      {epilogue = {lane = "c1"}, store_c = {lane = "c1"}})
  end,
  gemm_ragged = function()
    return all(gemm({m = 100, n = 72, k = 100, bias = true, activation = "gelu"}, {m = 64, n = 64, k = 64}))
  end,
  attention_serial = function() return mr.load_plan("attention_serial", mr.examples.flash_attention(attention)) end,
  attention_overlap = function() return mr.load_plan("attention_overlap", mr.examples.flash_attention(attention)) end,
  attention_pingpong_causal = function()
    return mr.load_plan("attention_pingpong", mr.examples.flash_attention{b = 1, h = 1, m = 256, n = 512, d = 64, causal = true})
  end,
  decoding_split = function() return mr.load_plan "decoding_split" end,
  -- Running sums down the columns of a product: line by line in the lane's scratch.
  scan_of_product = function()
    local sums = mr.program("sums", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32")
      local c = p:mma("mma", p:load("load_a", A), p:load("load_b", B))
      C:store("store_c", p:task("sum", function() return mr.cumsum(c, m) end))
    end)
    return all(mr.plan(sums{m = 80, n = 40, k = 32}:graph{tile = {n = 16}}, mr.device "h200"))
  end,
  dequant = function()
    local plan = mr.plan(mr.examples.dequant_gemm{m = 64, n = 64, k = 128, group = 64}:graph{tile = {m = 64, n = 64, k = 64}},
      mr.device "h200")
    return all(plan)
  end,
}

local names = {}
for name in pairs(plans) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  local good, kernel = pcall(function() return plans[name]():kernel{} end)
  tap.golden(("%sdumps/%s.txt"):format(dir, name), tostring(kernel), name .. ": the dump is as it was")
  if not good then tap.ok(false, name .. ": has a role program", kernel) end
end
-- A sum whose lane lacks registers for what it held in the tile before, and for what is computed then, is set where a tile begins.
for n, want in pairs{[192] = true, [128] = false} do
  local plan = mr.plan(mr.examples.gemm{m = 256, n = 2 * n, k = 64, activation = "relu"}:graph{tile = {m = 128, n = n, k = 64}}, mr.device "h200")
  plan:lane("c", {warps = 4, replicas = 2})
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p" or "c"}) end
  plan:fill_waits()
  tap.is(tostring(plan:kernel()):find "init r_c%[0%] = 0" ~= nil, want, ("a sum of %d words is set: %s"):format(n, want))
  if want then tap.ok(plan:compile{target = "host"}:check().ok, "  and the kernel is right") end
end

tap.done_testing()
