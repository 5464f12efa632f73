-- Tiles that blocks take by a counter: plan:grid{dynamic=true}. The CPU runs one block after the other, and chooses at random
-- which tiles each takes, so that any assignment must give the right result; it reports a counter that is not 0 at the end.
local mr = require "millrace"
local core = require "millrace.core"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local in_order = dofile(dir .. "lib/in_order.lua")
local device = mr.device "h200"

---- the statement ------------------------------------------------------------------------------

local function statements(plan)
  return plan:script():match "plan:grid[^\n]*" or ""
end

local small = mr.examples.gemm{m = 256, n = 192, k = 64}
local plan = in_order(device, small, {m = 64, n = 64, k = 32}, 4, {a = 2, b = 2})
plan:grid{eus = 5, dynamic = true}
tap.is(statements(plan), 'plan:grid{raster="rows", group=1, eus=5, dynamic=true}', "a script says it")
local file = os.tmpname()
plan:save(file, {overwrite = true})
tap.is(statements(mr.load_plan(file, small)), statements(plan), "  and a plan that is loaded has it")
os.remove(file)
tap.like(tostring(plan), "taken as EUs come free", "a plan shows it")
plan:undo()
tap.is(statements(plan), "", "undo")
plan:grid{eus = 5, dynamic = true}
plan:grid{dynamic = false}
tap.is(statements(plan), 'plan:grid{raster="rows", group=1, eus=5}', "and back")
tap.fails("a number", "grid: dynamic must be true or false, got 1", plan.grid, plan, {dynamic = 1})
tap.fails("clusters", "with dynamic, cluster is 1, not 2", plan.grid, plan, {dynamic = true, cluster = 2, eus = 4})
tap.is(statements(plan), 'plan:grid{raster="rows", group=1, eus=5}', "  the plan is as before")
local any = mr.examples.gemm:bind{m = mr.any{max = 512, multiple = 64}, n = 64, k = 32}
tap.fails("sizes of a launch", "dynamic is for kernels of one size", mr.Plan and mr.Plan.grid or plan.grid,
  in_order(device, any, {m = 64, n = 64, k = 32}, 4, {a = 1, b = 1}), {dynamic = true})
tap.fails("chiplets", "with dynamic, chiplets is 1, not 8", plan.grid,
  in_order(mr.device "mi300x", small, {m = 64, n = 64, k = 32}, 4, {a = 1, b = 1}), {dynamic = true, chiplets = 8})

---- what has no kernel ---------------------------------------------------------------------------

local function refused(what, p, message)
  p:grid{dynamic = true}
  local legal, problems = p:check()
  tap.ok(not legal, what .. " are refused")
  tap.like(problems[1] and problems[1].message or "", message, "  and why")
  tap.ok(problems[1] and problems[1].code == "dynamic" and problems[1].hint == "plan:grid{dynamic=false}", "  and how to repair it")
end

refused("flags that are counters", in_order(mr.device "mi300x", small, {m = 64, n = 64, k = 32}, 4, {a = 1, b = 1}),
  "tiles cannot be dynamic: their numbers go through mbarriers")

local product = mr.program("product", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n})
  local c = p:mma("mma", p:load("load_a", A), p:load("load_b", B))
  C:store("store_c", p:task("scale", function() return (c * 0.5):to "bf16" end))
end)

local function one_product(lane, offset)
  local p = mr.plan(product:bind{m = 512, n = 256, k = 64}:graph{tile = {m = 64, n = 64}}, device)
  p:lane("p0", {warps = 1, replicas = lane.all})
  p:lane("c0", lane)
  p:buffers{a = 2, b = 2, mma = offset and 2 or 1}
  for _, load in ipairs{"load_a", "load_b"} do p:append(load, {lane = "p0"}) end
  p:append("mma", {lane = "c0", at = offset})
  for _, task in ipairs{"scale", "store_c"} do p:append(task, {lane = "c0"}) end
  p:fill_waits()
  return p
end
refused("offsets in the tile loop", one_product({warps = 4}, 1), "lane 'c0' has offsets in the tile loop")

local alone = mr.plan(product:bind{m = 512, n = 256, k = 64}:graph{tile = {m = 64, n = 64}}, device)
alone:lane("c0", {warps = 4, replicas = 2})
for _, t in ipairs(alone.tasks) do alone:append(t.name, {lane = "c0"}) end
alone:fill_waits()
if alone:check() then
  refused("replicas alone", alone, "all lanes have replicas")
end

---- results, whoever takes which tile --------------------------------------------------------------

local function right(what, p, seeds)
  local legal, problems = p:check()
  if not legal then return tap.ok(false, what, tostring(problems)) end
  local k = p:compile{target = "host"}
  local wrong
  for seed = 1, seeds or 6 do
    local result = k:check{race = seed % 2 == 0, seed = seed}
    wrong = wrong or not result.ok and ("seed %d: %s"):format(seed, tostring(result)) or nil
  end
  tap.ok(not wrong, what, wrong)
  return p:compile{target = "cuda", text = true}.source
end

local copy = mr.program("copy", function(p)
  local m, d = p:axes("m", "d")
  p:output("Y", {m, d}):store("store_y", p:load("load_x", p:input("X", {m, d})))
end)

local function rows(program, m, n, eus, versions)
  local bound = program:bind{m = m, [program == copy and "d" or "n"] = n}
  local p = mr.plan(bound:graph{tile = {m = 1, [program == copy and "d" or "n"] = n}}, device)
  p:lane("p0", {warps = 1})
  p:lane("c0", {warps = 4})
  for _, t in ipairs(p.tasks) do p:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
  for name in pairs(p.rings) do pcall(p.buffers, p, {[name] = versions}) end
  p:fill_waits()
  p:grid{dynamic = true, eus = eus}
  return p
end

for _, case in ipairs{{40, 1, 3}, {40, 3, 1}, {40, 7, 5}, {7, 7, 2}, {8, 7, 2}, {13, 7, 8}, {14, 7, 8}, {15, 7, 8}, {20, 7, 2}, {20, 7, 3}, {21, 7, 3}, {300, 2, 8}} do
  local m, eus, versions = table.unpack(case)
  local text = right(("copy of %d rows, %d EUs, %d versions"):format(m, eus, versions), rows(copy, m, 128, eus, versions))
  if text then
    tap.ok(not text:find("order[", 1, true) and not text:find("start", 1, true), "  the numbers are the tiles")
    local own = math.max(1, versions * eus >= m and m // eus or math.min(versions, m // (2 * eus)))
    local numbers = math.max(0, m - own * eus) + eus
    tap.like(text, ("tile_ask%%(counter, %d%%)"):format(numbers - 1), "  as many numbers as tiles that are asked for, and blocks")
  end
end

for _, case in ipairs{{21, 7, 3}, {20, 7, 3}} do
  local m, eus, versions = table.unpack(case)
  local p = rows(copy, m, 128, eus, versions)
  local counted = p:simulate().cycles
  p:grid{dynamic = false}
  local more = counted - p:simulate().cycles
  tap.ok(more < 300, ("copy of %d rows, %d EUs, %d versions: an EU does not wait for numbers of tiles that it begins with"):format(m, eus, versions), more)
end

local softmax = mr.program("softmax", function(p)
  local m, n = p:axes("m", "n")
  local x = p:load("load_x", p:input("X", {m, n}))
  p:output("Y", {m, n}):store("store_y", p:task("softmax", function()
    local e = mr.exp2(x - mr.rowmax(x, n))
    return e / mr.rowsum(e, n)
  end))
end)
right("softmax", rows(softmax, 50, 256, 6, 4))

for _, grid in ipairs{{}, {group = 2}, {raster = "columns"}, {raster = "columns", group = 3}, {eus = 1}, {eus = 12}} do
  local name = {}
  for k, v in pairs(grid) do name[#name + 1] = k .. "=" .. tostring(v) end
  table.sort(name)
  local p = in_order(device, small, {m = 64, n = 64, k = 32}, 4, {a = 2, b = 2})
  p:grid{eus = 5}
  p:grid(grid)
  p:grid{dynamic = true}
  local text = right("product, " .. table.concat(name, " "), p)
  local s = core.lower(p, "cuda")[1]
  tap.is(#s.order, 12, "  a table has the tiles in their order, or their numbers are those of the grid")
  tap.ok(text and not text:find("order[", 1, true), "  the kernel computes them")
  tap.is(text and text:find("tile_at_main(at)", 1, true) ~= nil, grid.group ~= nil or grid.raster == "columns", "  where they are not the numbers themselves")
end

local causal = mr.examples.flash_attention{b = 1, h = 2, m = 384, d = 64, causal = true}
for _, grid in ipairs{{}, {longest_first = true}, {longest_first = true, section = 3}} do
  local p = mr.load_plan("attention_pingpong", causal)
  p:grid{eus = 3, dynamic = true}
  p:grid(grid)
  local text = right("causal attention" .. (grid.section and ", in sections" or grid.longest_first and ", longest first" or ""), p, 3)
  tap.ok(text and not text:find("taken < ", 1, true), "  of tiles that differ an EU asks for its second")
end

local replicas = mr.plan(mr.examples.gemm{m = 320, n = 448, k = 96}:graph{tile = {m = 64, n = 64, k = 32}}, device)
replicas:lane("p0", {warps = 1})
replicas:lane("c", {warps = 4, replicas = 2})
replicas:buffers{a = 3, b = 3}
for _, task in ipairs(replicas.tasks) do replicas:append(task.name, {lane = task.kind == "load" and "p0" or "c"}) end
replicas:fill_waits()
replicas:grid{eus = 3, dynamic = true}
right("replicas next to a lane that loads", replicas, 3)

---- faults that the CPU must find ------------------------------------------------------------------

local function finds(what, p, pattern, by, message)
  local changed
  local spoiled = core.build(p, true, function(source)
    local text, n = source:gsub(pattern, by)
    changed = n > 0
    return text
  end, nil, "host")
  local found
  for seed = 1, 12 do
    local ran, result = pcall(spoiled.check, spoiled, {race = true, seed = seed})
    if not ran or not result.ok then found = tostring(result) break end
  end
  tap.ok(changed, what .. ": the text has it")
  tap.ok(found, "  it is found", found)
  if message then tap.like(found or "", message, "  as what it is") end
end

local p = rows(copy, 60, 128, 4, 4)
local function one_more(n) return ("tile_ask(counter, %d)"):format(n + 1) end
finds("a counter that begins again too late", p, "tile_ask%(counter, (%d+)%)", one_more, "the counter of tiles is %d+ at the end")

-- Two lanes that have nothing to do with the one that asks: only the ring of numbers holds that back.
local copies = mr.program("copies", function(p)
  local m, d = p:axes("m", "d")
  p:output("Y", {m, d}):store("store_y", p:load("load_x", p:input("X", {m, d})))
  p:output("Z", {m, d}):store("store_z", p:load("load_w", p:input("W", {m, d})))
end)
p = mr.plan(copies:bind{m = 120, d = 128}:graph{tile = {m = 1, d = 128}}, device)
for _, x in ipairs{{"p0", "load_x"}, {"c0", "store_y"}, {"p1", "load_w"}, {"c1", "store_z"}} do
  p:lane(x[1], {warps = x[1]:find "p" and 1 or 4})
  p:append(x[2], {lane = x[1]})
end
p:fill_waits()
p:grid{dynamic = true, eus = 4}
right("lanes that nothing else holds together", p)
finds("a number that is overwritten before all have read it", p, "if %(n >= slots%) flag_wait", "if (n >= 1000) flag_wait")
finds("a number that is read before it is there", p, "\tflag_wait%(ring %+ 8 %* at, quo%(n, slots%)%);\n", "")

---- what the model assumes -----------------------------------------------------------------------------

p = mr.load_plan("attention_pingpong", mr.examples.flash_attention{b = 32, h = 16, m = 512, d = 128, causal = true})
p:grid{longest_first = false}
local before = p:simulate().seconds
p:grid{dynamic = true}
tap.ok(p:simulate().seconds < before, "uneven tiles in order go to EUs as they come free", p:simulate().seconds, before)

-- Rows, of which device memory is the limit: what the device says that EUs lose as they end one after the other.
local changed_device = dofile(dir .. "lib/changed_device.lua")
local scaled = mr.program("scaled", function(p)
  local m, n = p:axes("m", "n")
  local x = p:load("load_x", p:input("X", {m, n}))
  p:output("Y", {m, n}):store("store_y", p:task("scale", function() return (x * 2):to "bf16" end))
end):bind{m = 8192, n = 8192}
local gain = {}
for _, share in ipairs{0, 0.041, 0.2} do
  local d = changed_device("h200", {["uneven = [%d.]+"] = "uneven = " .. share})
  local usual, counted = mr.search(scaled, d, {measure = false, dynamic = false}), mr.search(scaled, d, {measure = false})
  gain[share] = 1 - counted.seconds / usual.seconds
  tap.ok(not statements(usual.plan):find "dynamic", ("a search with dynamic=false takes no counter, %g"):format(share), statements(usual.plan))
  tap.is(statements(counted.plan):find "dynamic=true" ~= nil, share > 0, "  another one does where that pays", statements(counted.plan))
  tap.ok(counted.plan:check(), "  and the plan is legal")
  tap.ok(counted.bound_seconds > 0.9 * counted.seconds and counted.bound_seconds <= counted.seconds, "  and near the bound of such plans",
    counted.seconds, counted.bound_seconds)
  tap.ok(usual.bound_seconds >= counted.bound_seconds, "  which is no greater than that of others")
end
tap.is(gain[0], 0, "nothing is gained where EUs are alike")
local product_plan = mr.search(mr.examples.gemm{m = 4096, n = 4096, k = 4096}, device, {measure = false, trials = 60}).plan
tap.is(product_plan:script():find "dynamic", nil, "a product, which memory does not limit, has tiles from the start")
tap.ok(gain[0.041] > 0.025 and gain[0.041] < 0.041, "as much as is uneven, but for the tiles that an EU begins with", gain[0.041])
tap.ok(gain[0.2] > 0.12 and gain[0.2] < 0.2, "  also if it is much", gain[0.2])
-- The best plans of a norm compute a row while the one before is stored: the order is that of the program where tiles are taken.
local norm = mr.program("norm", function(p)
  local m, n = p:axes("m", "n")
  local x = p:load("load_x", p:input("X", {m, n}))
  p:output("Y", {m, n}):store("store_y", p:task("norm", function()
    return (x * mr.rsqrt(mr.rowsum(x * x, n) / n.size + 1e-6)):to "bf16"
  end))
end):bind{m = 8192, n = 8192}
local usual, counted = mr.search(norm, device, {measure = false, dynamic = false}), mr.search(norm, device, {measure = false})
tap.ok(counted.seconds < 0.975 * usual.seconds, "a plan whose order spans tiles is tried in the program's order", counted.seconds, usual.seconds)
tap.is(counted.plan:script():find("at=", 1, true), nil, "  in which nothing has an offset", counted.plan:script())
tap.ok(usual.plan:script():find("at=", 1, true), "  as it had before", usual.plan:script())
tap.fails("an option that is no boolean", "search: dynamic must be true or false", mr.search, scaled, device, {dynamic = 1})

tap.fails("a trace", "which tiles an EU takes is known only when the kernel runs", function()
  return rows(copy, 40, 128, 3, 4):compile{target = "host"}:trace()
end)
tap.done_testing()
