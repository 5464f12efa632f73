-- divided.lua - what clusters that divide a loop bring: products with fewer tiles than EUs, with and without.
--
--   millrace tests/perf/divided.lua [PATTERN]         on the attached device: races them
--   millrace tests/perf/divided.lua [PATTERN] model   without a device: predictions for an H200, spills and seconds of nvcc
--
-- For each shape the best plans of a few tiles by hand, undivided and in clusters of 2, 4 and 8, as the model ranks them: of each the best.
-- Prints a line of each: microseconds predicted and measured, the tile, stages, tiles of the grid.
local mr = require "millrace"

local pattern, model = arg[1] or "", arg[2] == "model"
if pattern == "model" then pattern, model = "", true end
local device = model and mr.device "h200" or mr.device()
local shapes = {{333, 4096, 4096}, {1024, 1024, 16384}, {16, 8192, 8192}, {128, 8192, 28672}, {2048, 2048, 2048}, {512, 512, 16384},
  {256, 256, 16384}}

-- Rows of a tile are divided among lanes of 64; of fewer than 64 rows the columns of the product are rows of the instruction.
local function plan_of(bound, tile, parts, stages, raster)
  local plan = mr.plan(bound:graph{tile = tile}, device)
  local axis = tile.m >= 64 and "m" or "n"
  local ways = math.max(tile[axis] // 64, 1)
  if ways > 1 then plan:split(axis, ways) end
  plan:lane("p0", {warps = 1})
  for i = 0, ways - 1 do plan:lane("c" .. i, {warps = 4}) end
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or "c" .. (t.name:match "%.(%d+)$" or "0")})
  end
  plan:buffers{a = stages, b = stages}
  plan:grid{raster = raster, group = 8, cluster = parts, divide = parts > 1 and "k"}
  plan:fill_waits()
  return plan
end

-- The plan with the most stages that fit.
local function deepest(bound, tile, parts, raster)
  for stages = 8, 2, -1 do
    local made, plan = pcall(plan_of, bound, tile, parts, stages, raster)
    if not made then return end
    if plan:check() then return plan, stages end
  end
end

local function best_of(bound, size, parts)
  local best
  local function try(tile, raster)
    local tiles = -(-size.m // tile.m) * -(-size.n // tile.n)
    if tile.m * tile.n > 128 * 256 or tiles * parts > 2 * device.eus then return end
    local plan, stages = deepest(bound, tile, parts, raster)
    local seconds = plan and plan:simulate{events = 0}.seconds
    if not seconds or best and best.seconds <= seconds then return end
    best = {plan = plan, seconds = seconds, text = ("%d x %d x %d, %d stages, %d tiles"):format(tile.m, tile.n, tile.k, stages, tiles)}
  end
  for _, m in ipairs(size.m < 64 and {size.m} or {64, 128, 192, 256}) do
    for _, n in ipairs{32, 64, 96, 128, 192, 256} do
      for _, k in ipairs{64, 128} do
        for _, raster in ipairs{"rows", "columns"} do try({m = m, n = n, k = k}, raster) end
      end
    end
  end
  return best
end

for _, s in ipairs(shapes) do
  local name, size = ("%d x %d x %d"):format(s[1], s[2], s[3]), {m = s[1], n = s[2], k = s[3]}
  if name:find(pattern) then
    local bound, kernels, found = mr.examples.gemm(size), {}, {}
    for _, parts in ipairs{1, 2, 4, 8} do
      local x = best_of(bound, size, parts)
      if x then
        found[#found + 1] = {name = parts == 1 and "undivided" or "clusters of " .. parts, best = x}
        kernels[found[#found].name] = not model and x.plan:compile() or nil
      end
    end
    local ms = {}
    for _, x in ipairs(model and {} or mr.race(kernels)) do ms[x.name] = x.ms end
    for _, f in ipairs(found) do
      local measured = ms[f.name] and (" %8.2f us measured"):format(ms[f.name] * 1e3) or ""
      print(("%-22s %-14s %8.2f us predicted%s  %s"):format(name, f.name, f.best.seconds * 1e6, measured, f.best.text))
      if model and os.getenv "MILLRACE_NVCC" then
        local began = os.time()
        local k = f.best.plan:compile{target = "cuda"}
        print(("%-37s %d registers, %d bytes spilled, %d s"):format("", k.registers, k.spills, os.difftime(os.time(), began)))
      end
    end
  end
end
