-- stages.lua - what pipelining through shared memory brings: the plan that a search finds, with 1 to 6 versions of what it loads.
--
--   millrace tests/perf/stages.lua [DEVICE [TRIALS]]     plans for DEVICE (a100), searched in the model with so many trials (160)
--
-- The kernels run on the attached device. A line a program: milliseconds by versions; - where the plan is not legal with so many.
-- The fastest one is compared with the reference. Exits with 1 if one is wrong.
local mr = require "millrace"
local device, trials = arg[1] or "a100", tonumber(arg[2] or 160)
local MOST <const> = 6

local programs = {
  {"gemm", {m = 512, n = 3072, k = 768}}, {"gemm", {m = 512, n = 768, k = 3072}}, {"gemm", {m = 4096, n = 4096, k = 4096}},
  {"conv2d", {n = 16, c = 64, h = 56, w = 56, k = 64, r = 3, s = 3, pad = 1}},
  {"conv2d", {n = 16, c = 256, h = 14, w = 14, k = 256, r = 3, s = 3, pad = 1}},
}

-- The plan with so many versions of what loads in the loop make, if it is legal.
local function staged(plan, versions)
  local p, rings = plan:copy(), {}
  for _, t in ipairs(p.tasks) do
    if t.kind == "load" and t.loop then rings[t.writes[1]] = versions end
  end
  local ok = pcall(function()
    p:buffers(rings)
    p:fill_waits()
    assert(p:check())
  end)
  return ok and p or nil
end

local wrong = 0
for _, x in ipairs(programs) do
  local bound, sizes = mr.examples[x[1]](x[2]), {}
  for axis, n in pairs(x[2]) do sizes[#sizes + 1] = ("%s=%d"):format(axis, n) end
  table.sort(sizes)
  local plan, cells, best, least = assert(mr.search(bound, device, {trials = trials, measure = false})).plan, {}, nil, math.huge
  for versions = 1, MOST do
    local p = staged(plan, versions)
    local k = p and p:compile()
    local ms = k and k:bench{seconds = 0.2}.ms
    cells[#cells + 1] = ms and ("%.4f"):format(ms) or "-"
    if ms and ms < least then best, least = k, ms end
  end
  local right = best and best:check().ok
  if not right then wrong = wrong + 1 end
  print(("%s %s: %s %s"):format(x[1], table.concat(sizes, " "), table.concat(cells, " "), right and "right" or "WRONG"))
end
os.exit(wrong == 0)
