-- stages.lua - what pipelining through shared memory, and from there to registers, brings: ALCOP's experiment (Huang et al., MLSys 2023).
--
--   millrace tests/perf/stages.lua [DEVICE [TRIALS]]
--   millrace tests/perf/stages.lua levels [DEVICE [NUMBER ...]]
--
-- Plans are for DEVICE (a100); the kernels run on the attached one. The first form searches a plan in the model with so many trials (160),
-- and prints a line a program: milliseconds by versions of what it loads, 1 to 6; - where the plan is not legal with so many. The fastest
-- one is compared with the reference.
--
-- The second form makes all plans of a small space for each program, or for those with these numbers: tiles, warps that multiply, the
-- columns that they stand in, versions of what is loaded, and operands fetched by the product itself or by sTasks of their own a step
-- ahead of it (plan:fetch). The model is DEVICE's units with the numbers of the attached board. It times all plans whose kernels do not
-- spill, and prints the best milliseconds without pipelining, with the shared level alone and with both levels, and the gain of each
-- level; then which rank the plan has that the model puts first, and what share of the best one's speed is reached by it, by the best of
-- the first fortieth of the model's order, and by what the search that measures would have found with a fortieth of the trials, replayed on
-- the times taken. The best of each level is compared with the reference.
--
-- With NO_DEVICE=1 in the environment nothing runs: the times are the model's, and the best of each level is compiled, where there is a
-- compiler. With LIST=1 all plans are listed, on standard error. With COMPILE_PART=i/n the kernels of every n-th plan are compiled for the
-- cache, and no more.
--
-- Exits with 1 if one is wrong, or spills registers.
local mr = require "millrace"
local measure = require "millrace.measure"
local levels = arg[1] == "levels"
local first = levels and 2 or 1
local device_name = arg[first] or "a100"
local part, parts = (os.getenv "COMPILE_PART" or ""):match "^(%d+)/(%d+)$"
local MOST <const>, FORTIETH <const> = 6, 40
local predicts = os.getenv "NO_DEVICE" ~= nil

-- The device, with what the attached board has in common with it: number of EUs, clock, memory, costs of synchronization, how sure the
-- model is, and the rate of the same matrix instructions.
local SHARED <const> = {"eus", "clock_ghz", "memory.global.rate", "memory.global.latency", "memory.l2.bytes", "memory.l2.rate",
  "memory.l2.eu_rate", "memory.l2.thread_rate", "memory.l2.warp_rate", "memory.l2.again", "memory.l2.latency", "memory.shared.rate",
  "sync.wait_cost", "sync.tell_cost", "sync.warp_cost", "sync.flag_latency", "sync.issue_order_latency", "sync.launch_seconds",
  "sync.tile_overhead", "uncertainty.products", "uncertainty.other"}
local function on_board(name)
  local board, changes = mr.device(), {}
  if board.name == name then return board end
  for _, path in ipairs(SHARED) do changes[path] = board:number(path) end
  for _, type in ipairs{"bf16", "f16"} do changes["seu.tensor.flops." .. type] = board:number("seu.mma_sync.flops." .. type) end
  changes["seu.tensor.efficiency"] = board:number "seu.mma_sync.efficiency"
  return mr.device(name, changes)
end
local device = levels and on_board(device_name) or device_name

local function text_of(x)
  local sizes = {}
  for axis, n in pairs(x[2]) do sizes[#sizes + 1] = ("%s=%d"):format(axis, n) end
  table.sort(sizes)
  return x[1] .. " " .. table.concat(sizes, " ")
end

---- versions of a searched plan -------------------------------------------------------------------

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

local function print_versions(x, trials)
  local bound = mr.examples[x[1]](x[2])
  local plan, cells, best, least = assert(mr.search(bound, device, {trials = trials, measure = false})).plan, {}, nil, math.huge
  for versions = 1, MOST do
    local p = staged(plan, versions)
    local k = p and p:compile()
    local ms = k and k:bench{seconds = 0.2}.ms
    cells[#cells + 1] = ms and ("%.4f"):format(ms) or "-"
    if ms and ms < least then best, least = k, ms end
  end
  local right = best and best:check().ok
  print(("%s: %s %s"):format(text_of(x), table.concat(cells, " "), right and "right" or "WRONG"))
  return right
end

---- a space with both levels ----------------------------------------------------------------------

local shapes = {
  {"gemm", {m = 512, n = 3072, k = 768}}, {"gemm", {m = 512, n = 768, k = 3072}}, {"gemm", {m = 1024, n = 64, k = 2048}},
  {"gemm", {m = 2048, n = 2048, k = 2048}}, {"gemm", {m = 4096, n = 4096, k = 4096}},
  {"conv2d", {n = 16, c = 64, h = 56, w = 56, k = 64, r = 3, s = 3, pad = 1}},
  {"conv2d", {n = 16, c = 128, h = 28, w = 28, k = 128, r = 3, s = 3, pad = 1}},
  {"conv2d", {n = 16, c = 256, h = 14, w = 14, k = 256, r = 3, s = 3, pad = 1}},
}
local ROWS <const>, COLUMNS <const>, DEPTHS <const>, WARPS <const>, VERSIONS <const> = {64, 128, 256}, {64, 128, 256}, {32, 64}, {4, 8},
  {1, 2, 4, 6}
local COPYING <const>, ACROSS <const> = 4, {false, 2, 4}       -- warps; columns that warps stand in: by the tile, or so many
local SUMS_MOST <const> = 128 * 256                     -- elements of a tile
local STEP <const> = 16                                 -- elements of 16 bits that an instruction contracts

-- The greatest divisor of n that is at most `most`.
local function divisor(n, most)
  local d = math.max(math.min(n, most), 1)
  while n % d > 0 do d = d - 1 end
  return d
end

-- The tile of about so many rows and columns, and the axis that it is contracted along in steps.
local function tile_of(x, rows, columns, depth)
  local s = x[2]
  if x[1] == "gemm" then return {m = math.min(rows, s.m), n = math.min(columns, s.n), k = depth}, "k" end
  local q, p = divisor(s.w, rows), divisor(s.h, rows // divisor(s.w, rows))
  return {n = divisor(s.n, rows // (p * q)), p = p, q = q, k = math.min(columns, s.k), r = 1, s = 1, c = depth}, "c"
end

-- The plan with these numbers, if it is legal. ahead: operands are fetched a step ahead.
local function make(bound, o)
  local plan, rings, values, list = mr.plan(bound:graph{tile = o.tile}, device), {}, {}, {"mma"}
  local ways = o.tile[o.axis] // STEP
  for _, t in ipairs(plan.tasks) do
    if t.kind == "load" then values[#values + 1], rings[t.writes[1]] = t.writes[1], o.versions end
  end
  if o.ahead then
    plan:fetch("mma", values)
    for _, value in ipairs(values) do list[#list + 1] = "fetch_" .. value end
    plan:split(o.axis, ways, list)
  end
  plan:lane("p0", {warps = COPYING})
  plan:lane("c0", {warps = o.warps, columns = o.across or nil})
  local done = false
  for _, t in ipairs(plan.tasks) do
    if not o.ahead or (t.kind ~= "mma" and not t.name:find "^fetch_") then
      plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"})
    elseif not done then
      for step = 0, ways - 1 do
        for _, value in ipairs(values) do
          plan:append(("fetch_%s.%d"):format(value, (step + 1) % ways), {lane = "c0", at = step == ways - 1 and 1 or 0})
        end
        plan:append("mma." .. step, {lane = "c0"})
      end
      done = true
    end
  end
  plan:buffers(rings)
  plan:grid{group = 8}
  plan:fill_waits()
  return plan:check() and plan or nil
end

local function log2(n) return math.log(n, 2) end

-- All legal plans, with what the model says, the fastest first.
local function space_of(x)
  local bound, list, known = mr.examples[x[1]](x[2]), {}, {}
  local function add(o)
    local good, plan = pcall(make, bound, o)
    local script = good and plan and plan:script()
    if not script or known[script] then return end
    known[script] = true
    list[#list + 1] = {plan = plan, level = o.level, versions = o.versions, script = script,
      predicted = plan:simulate{events = 0}.seconds * 1e3,
      text = ("%d x %d x %d, %d warps%s, %d versions"):format(o.rows, o.columns, o.depth, o.warps,
        o.across and (" in %d columns"):format(o.across) or "", o.versions),
      traits = {["tile m"] = log2(o.rows), ["tile n"] = log2(o.columns), ["tile k"] = log2(o.depth), warps = o.warps / 4,
        depth = log2(o.versions) / 2, level = o.level, warp_columns = (o.across or 0) / 4}}
  end
  for _, rows in ipairs(ROWS) do
    for _, columns in ipairs(COLUMNS) do
      for _, depth in ipairs(DEPTHS) do
        local tile, axis = tile_of(x, rows, columns, depth)
        for _, warps in ipairs(rows * columns <= SUMS_MOST and WARPS or {}) do
          for _, versions in ipairs(VERSIONS) do
            for level = versions == 1 and 1 or 2, versions == 1 and 1 or 3 do
              for _, across in ipairs(ACROSS) do
                add{tile = tile, axis = axis, rows = rows, columns = columns, depth = depth, warps = warps, versions = versions,
                  level = level, ahead = level == 3, across = across}
              end
            end
          end
        end
      end
    end
  end
  table.sort(list, function(a, b)
    if a.predicted ~= b.predicted then return a.predicted < b.predicted end
    if a.versions ~= b.versions then return a.versions > b.versions end       -- for latencies that the model does not know
    return a.script < b.script
  end)
  return list
end

-- The milliseconds of the best plan that the policy of the search that measures finds with so many trials, if each takes what it took.
local function tuned(list, trials)
  local candidates, of = {}, {}
  for _, y in ipairs(list) do
    if y.ms then
      candidates[#candidates + 1] = {script = y.script, predicted = y.predicted * 1e-3, traits = y.traits}
      of[y.script] = y.ms
    end
  end
  local server = {capacity = 1, wait = function() end}
  function server:begin(item)                           -- luacheck: ignore self
    local ms = of[item.script]
    return {drop = function() end, poll = function() return {id = item.id, status = "ok", ms = ms, min = ms, max = ms} end}
  end
  return measure(nil, device, candidates, {server = server, trials = trials, final = false, gain = 0, risk = 0}).best.ms
end

-- Without the plans whose kernels the compiler spills, which need not be run to know.
local function without_spills(list)
  local good = {}
  for _, y in ipairs(list) do
    local compiled, k = pcall(y.plan.compile, y.plan, {target = "cuda"})
    if compiled and k.spills == 0 then
      good[#good + 1], y.kernel = y, k
    end
  end
  return good
end

-- Times all of them, a part at a time, since a race has inputs and outputs for each.
local function time(list)
  local PART <const> = 24
  for from = 1, predicts and 0 or #list, PART do
    local kernels = {}
    for i = from, math.min(from + PART - 1, #list) do kernels[tostring(i)] = list[i].kernel end
    local good, result = pcall(mr.race, kernels, {seconds = 0.05, sample = 0.01})
    for _, racer in ipairs(good and result or {}) do list[math.tointeger(tonumber(racer.name))].ms = racer.ms end
    for i in pairs(good and {} or kernels) do           -- one of them cannot run
      local x = list[math.tointeger(tonumber(i))]
      local ran, b = pcall(x.kernel.bench, x.kernel, {seconds = 0.05})
      x.ms = ran and b.ms or nil
    end
  end
  for _, x in ipairs(predicts and list or {}) do x.ms = x.predicted end
end

-- Is the plan's kernel right, as far as it can be known here?
local function is_right(plan)
  local k = plan:compile()
  return k.spills == 0 and (predicts or k:check().ok)
end

local function print_levels(x)
  local list = space_of(x)
  if part then
    for i = 1 + tonumber(part), #list, tonumber(parts) do pcall(list[i].plan.compile, list[i].plan, {target = "cuda"}) end
    return true
  end
  if not predicts then list = without_spills(list) end
  time(list)
  if not list[1] then
    print(text_of(x) .. ": no plan whose kernel keeps its registers")
    return false
  end
  local best, all, right, cells = {}, math.huge, true, {}
  for _, y in ipairs(list) do
    if y.ms and (not best[y.level] or y.ms < best[y.level].ms) then best[y.level] = y end
    all = math.min(all, y.ms or all)
  end
  for level, name in ipairs{"none", "shared", "both"} do
    local y = best[level]
    cells[level] = y and ("%s %.4f"):format(name, y.ms) or name .. " -"
    right = right and (not y or is_right(y.plan))
  end
  local function gain(a, b) return a and b and ("%.2f"):format(a.ms / b.ms) or "-" end
  if os.getenv "LIST" then
    for _, y in ipairs(list) do io.stderr:write(("%s|%d|%s|%s|%.6f\n"):format(text_of(x), y.level, y.text, y.ms, y.predicted)) end
  end
  local few, rank, reached = math.ceil(#list / FORTIETH), 1, math.huge
  for i, y in ipairs(list) do
    rank = rank + (y.ms and list[1].ms and y.ms < list[1].ms and 1 or 0)
    if i <= few then reached = math.min(reached, y.ms or reached) end
  end
  print(("%s: %s; gain of shared %s, of registers %s; %d plans, the model's first is number %d, at %.1f %% of the best; "
    .. "the best of its first %d at %.1f %%, of %d tuned at %.1f %%; %s"):format(text_of(x), table.concat(cells, ", "),
    gain(best[1], best[2]), gain(best[2], best[3]), #list, rank, 100 * all / (list[1].ms or math.huge), few, 100 * all / reached, few,
    100 * all / tuned(list, few), right and "right" or "WRONG"))
  for level = 1, 3 do
    if best[level] then print(("    %s: %s, predicted %.4f"):format(cells[level], best[level].text, best[level].predicted)) end
  end
  return right
end

local wrong = 0
if levels then
  local wanted = {table.unpack(arg, first + 1)}
  for i, x in ipairs(shapes) do
    local is_wanted = #wanted == 0
    for _, number in ipairs(wanted) do is_wanted = is_wanted or tonumber(number) == i end
    if is_wanted and not print_levels(x) then wrong = wrong + 1 end
  end
else
  for _, x in ipairs(programs) do
    if not print_versions(x, tonumber(arg[2] or 160)) then wrong = wrong + 1 end
  end
end
os.exit(wrong == 0)
