-- The unit that a plan gives to a load or a product executes it: loads by the lane's
-- threads, with accesses as wide as rows allow, and products by threads, for any type and order of
-- axes, on any number of warps.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")
local rare = dofile(dir .. "lib/wild_programs.lua")

local function with(a, b)
  local all = {}
  for k, v in pairs(a) do all[k] = v end
  for k, v in pairs(b or {}) do all[k] = v end
  return all
end

-- All sTasks, with the options that o[name] or o[kind] gives; o.lanes, o.rings, o.grid.
local function schedule(bound, tile, o)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  for _, lane in ipairs(o.lanes or {}) do plan:lane(lane[1], lane[2]) end
  plan:buffers(o.rings or {})
  plan:grid(o.grid or {eus = 1})
  for _, t in ipairs(plan.tasks) do plan:append(t.name, with(o[t.kind] or {}, o[t.name])) end
  plan:fill_waits()
  return plan
end

local function gemm(o)
  return schedule(mr.examples.gemm(with({m = 72, n = 40, k = 40}, o.sizes)), o.tile or {m = 64, n = 32, k = 32}, o)
end

local function right(what, plan) random_plans.correct(tap, what, plan, {1, 2}) end

-- Right, and the kernel has these lines and not those.
local function kernel(what, plan, has, lacks)
  right(what, plan)
  local text = tostring(plan:kernel{})
  for _, pattern in ipairs(has or {}) do tap.like(text, pattern, what .. ": has " .. pattern) end
  for _, pattern in ipairs(lacks or {}) do
    tap.ok(not text:find(pattern), what .. ": lacks " .. pattern, text:match("[^\n]*" .. pattern .. "[^\n]*"))
  end
end

local cuda = {seu = "cuda"}
local function on(lane, seu, at) return {lane = lane, seu = seu, at = at} end

---- loads ----------------------------------------------------------------------

for _, warps in ipairs{4, 8} do
  kernel(("loads by the %d warps that multiply"):format(warps), gemm{sizes = {m = 136, b = "kn"}, tile = {m = 128, n = 32, k = 32},
    lanes = {{"c0", {warps = warps}}}, load = on("c0", "cuda")},
    {"load_threads A", "load_threads B", "lane_sync *; all of the load is there"}, {"load_boxes", "load_a complete"})
end
kernel("loads by threads, an iteration ahead", gemm{rings = {a = 2, b = 2}, load = on("c0", "cuda", 1)}, {"load_threads A"})
for _, warps in ipairs{1, 3, 8} do
  kernel(("loads by a lane of %d warps"):format(warps), gemm{lanes = {{"p0", {warps = warps}}}, rings = {a = 2, b = 2},
    load = on("p0", "cuda")}, {("'load_b complete': 2 deep, %d arrivals? at"):format(warps)}, {"load_boxes"})
end
kernel("one of a lane's loads by threads, before the other", gemm{load = on "p0", load_a = cuda, lanes = {{"p0", {warps = 2}}}},
  {"load_threads A", "load_boxes B"})
kernel("one of a lane's loads by threads, behind the other", gemm{load = on "p0", load_b = cuda}, {"load_boxes A", "load_threads B"})
kernel("loads by threads of what the copy engine cannot bring", gemm{sizes = {k = 100, n = 35, b = "kn"}, load = on("c0", "cuda")},
  nil, {"complete': "})
kernel("loads that the plan has on the copy engine, which cannot", gemm{sizes = {k = 100}}, {"load_threads A", "load_a complete"})
right("loads by threads for a lane with replicas", gemm{sizes = {m = 200}, load = on("p0", "cuda"), lanes = {{"c0", {warps = 4, replicas = 2}}},
  rings = {a = 2, b = 2}})
right("loads by the threads of a lane with replicas", gemm{sizes = {m = 200}, load = on("p0", "cuda"), lanes = {{"p0", {warps = 2, replicas = 2}}}})
for replicas = 2, 3 do
  kernel(("loads by %d replicas, with more iterations than a flag has phases"):format(replicas),
    gemm{sizes = {m = 64 * 7, n = 8, k = 320}, tile = {m = 64, n = 8, k = 16}, load = on("p0", "tma"),
      lanes = {{"p0", {warps = 1, replicas = replicas}}}, rings = {a = 2, b = 2}},
    {"'load_a complete': 2 deep", "the replica that has the last tile has seen all flags"})
end
for replicas = 2, 3 do
  right(("all sTasks on a lane of %d replicas, which share the rings"):format(replicas), gemm{sizes = {m = 200, k = 32}, load = on("c0", "cuda"),
    mma = replicas == 3 and cuda or nil, lanes = {{"c0", {warps = 4, replicas = replicas}}}})
end
right("loads by threads in a cluster", gemm{sizes = {m = 256, n = 64, k = 64}, load_a = on("p0", "cuda"), lanes = {{"p0", {warps = 2}}}, rings = {a = 2, b = 2},
  grid = {raster = "rows", group = 8, cluster = 2, eus = 4}})

local softmax = mr.program("softmax", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}, "f32"), p:output("Y", {m, n}, "f32")
  local x = p:load("load_x", X)
  Y:store("store_y", p:task("weigh", function()
    local e = mr.exp2(x - mr.rowmax(x, n))
    return e / mr.rowsum(e, n)
  end))
end)
for _, warps in ipairs{1, 3} do
  kernel(("a load by %d warps for element-wise work"):format(warps), schedule(softmax{m = 70, n = 52}, {m = 32},
    {lanes = {{"c0", {warps = warps}}}, load = on("c0", "cuda")}), {"load_threads X"}, {"flag"})
end

do
  local plan = gemm{rings = {a = 2, b = 2}, load = on("p0", "cuda"), mma = on("c0", "cuda")}
  plan:wait("epilogue", {{"load_b", when = "issued"}})
  plan:wait("load_b", {{"mma", when = "issued", distance = 2}})
  kernel("an issue order of synchronous sTasks", plan, {"load_b issued", "mma issued"})
end

---- access widths --------------------------------------------------------------

for _, x in ipairs{
  {"bf16", 104, 16}, {"bf16", 100, 8}, {"bf16", 102, 4}, {"bf16", 101}, {"f32", 104, 16}, {"f32", 102, 8}, {"f32", 101, 4},
  {"e4m3", 48, 16}, {"e4m3", 104, 8}, {"e4m3", 100, 4}, {"e4m3", 102}, {"e4m3", 101},
} do
  local dtype, k, bytes = table.unpack(x)
  local plan = gemm{sizes = {k = k, dtype = dtype, out = "f32"}, load = on("c0", "cuda"), mma = cuda}
  right(("%d of %s in a row"):format(k, dtype), plan)
  local text = plan:compile{target = "cuda", text = true, without = {"unmask"}}.source:match "\nKERNEL.*"
  local function count(pattern) return select(2, text:gsub(pattern, "")) end
  tap.is(bytes and count(("copy_%d%%("):format(bytes)) or count "value%[u%]%)" + count "read_shifted%(", 2,
    ("... with accesses of %s"):format(bytes and bytes .. " bytes" or "an element, or shifted"))
end
-- Neighbours that are one element of the tensor: the matrix unit finds it as often as it multiplies it.
local repeated = mr.program("repeated", function(p)
  local m, n, k, rows, columns, by = p:axes("m", "n", "k", "rows", "columns", "by")
  local A, C = p:input("A", {m, k}, "f16"), p:output("C", {m, n}, "f32")
  local c = p:carry("c", {m, n}, 0)
  local B = p:input("B", {rows, columns}, "f16")
  local index = ({{n, k // 2 - 1}, {n // 4, k}, {k // 2, n}, {k, n // 8 - 1}, {n // 2, k // 32}})[by.size]
  p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B, index))) end)
  C:store("store_c", p:task("finish", function() return c * 1 end))
end)
for by = 1, 5 do
  for _, unit in ipairs{"tensor", "cuda"} do
    right(("neighbours that share an element, in a product on %s (%d)"):format(unit, by),
      schedule(repeated{m = 64, n = 40, k = 72, rows = 72, columns = 72, by = by}, {n = 32, k = 32},
        {rings = {a = 2, b = 2}, load = on("p0", "cuda"), mma = {seu = unit}}))
  end
end
right("accesses to a tile that ends within a panel", gemm{sizes = {n = 100, b = "kn", k = 96}, tile = {m = 64, n = 96, k = 32},
  load = on("c0", "cuda")})
right("accesses to one operand in slices", (function()
  local plan = mr.plan(mr.examples.gemm{m = 128, n = 48, k = 96}:graph{tile = {m = 128, n = 48, k = 32}}, mr.device "h200")
  plan:split("m", 2)
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, t.kind == "load" and on("p0", "cuda") or on("c" .. t.name:match "%d$"))
  end
  plan:fill_waits()
  return plan
end)())

---- products -------------------------------------------------------------------

for i, l in ipairs{{"mk", "nk"}, {"mk", "kn"}, {"km", "nk"}, {"km", "kn"}} do
  for j, dtype in ipairs{"bf16", "f16", "f32", "e4m3", "i8"} do
    local odd = (i + j) % 2 == 0
    kernel(("a product of %s by threads, of %s by %s"):format(dtype, l[1], l[2]), gemm{mma = cuda,
      sizes = {a = l[1], b = l[2], dtype = dtype, out = dtype == "i8" and "i32" or "f32", k = odd and 21 or 40},
      tile = {m = 64, n = 32, k = not odd and 32 or nil}}, {"sum_product r_c"}, {"groups_wait"})
  end
end
for _, warps in ipairs{1, 3, 6, 12} do
  right(("a product by %d warps"):format(warps), gemm{mma = cuda, lanes = {{"c0", {warps = warps}}}})
end
do
  local plan = gemm{sizes = {dtype = "f32", out = "f32", k = 100}}
  kernel("a product of f32, nothing said", plan, {"sum_product"})
  local r = plan:compile{target = "host"}:check{seed = 3}
  tap.ok(r.relative < 1e-6, "... adds up in f32", tostring(r.relative))
end
right("products by the threads of a lane with replicas", gemm{sizes = {m = 200}, mma = cuda, lanes = {{"c0", {warps = 4, replicas = 2}}}, rings = {a = 2, b = 2}})
right("a product by threads whose result another lane takes", gemm{mma = cuda, epilogue = on "c1", store = on "c1"})

-- Rows, columns and a number: what is left of the operands' axes.
for _, x in ipairs{{"rows", true, false}, {"columns", false, true}, {"a number", false, false}} do
  local what, rows, cols = table.unpack(x)
  right("a product that is " .. what, schedule(mr.program("vector", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A = p:input("A", rows and {m, k} or {k}, "f32")
    local B, X = p:input("B", cols and {n, k} or {k}, "f32"), p:input("X", {m, n}, "f32")
    local C, c = p:output("C", {m, n}, "f32"), p:carry("c", rows and {m} or cols and {n} or {}, 0)
    p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
    local x = p:load("load_x", X)
    C:store("store_c", p:task("finish", function() return x * c end))
  end){m = 40, n = 24, k = 50}, {m = 32, n = 16, k = 16}, {}))
end

-- Several contracted axes; both operands computed by lanes; an operand loaded completely before the loop.
local rich = mr.program("rich", function(p)
  local h, m, n, k = p:axes("h", "m", "n", "k")
  local A, B = p:input("A", {h, m, k}), p:input("B", {n, h, k})
  local C, c = p:output("C", {m, n}, "f32"), p:carry("c", {m, n}, 1)
  local a = p:load("load_a", A)
  if p.made then a = p:task("make_a", function() return (a:to "f32" * 2):to "bf16" end) end
  p:loop(k, function()
    local b = p:load("load_b", B)
    if p.made then b = p:task("make_b", function() return (b:to "f32" + 1):to "bf16" end) end
    c:add(p:mma("mma", a, b))
  end)
  C:store("store_c", p:task("finish", function() return c + 0 end))
end)
right("a product along two axes", schedule(rich{h = 3, m = 40, n = 20, k = 36}, {m = 32, n = 16, k = 16}, {mma = cuda}))
kernel("operands that the lane makes", schedule(rich{h = 2, m = 40, n = 20, k = 36, made = true}, {m = 8, n = 16, k = 16},
  {mma = cuda, load = on("c0", "cuda")}), {"ring make_a", "ring make_b"})
right("operands that another lane makes", schedule(rich{h = 2, m = 40, n = 20, k = 36, made = true}, {m = 8, n = 16, k = 16},
  {mma = cuda, make_a = on "c1", make_b = on "c1"}))

-- Both units on one accumulator, and one behind the other.
local both = mr.program("both", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, D = p:input("A", {m, k}), p:input("B", {n, k}), p:input("D", {n, k})
  local O, o = p:output("O", {m, n}, "f32"), p:carry("o", {m, n}, 0)
  p:loop(k, function()
    local a, b = p:load("load_a", A), p:load("load_b", B)
    o:add(p:mma("mma_first", a, b))
    o:add(p:mma("mma_second", a, p:load("load_d", D)))
  end)
  O:store("store_o", p:task("finish", function() return o * 0.5 end))
end)
for _, first in ipairs{"first", "second"} do
  kernel(("both units on one accumulator, the %s by threads"):format(first), schedule(both{m = 72, n = 40, k = 80},
    {m = 64, n = 32, k = 32}, {["mma_" .. first] = cuda}), {" product r_o", "sum_product r_o"})
end
for _, name in ipairs{"mma_qk", "mma_pv"} do
  local bound = mr.examples.flash_attention{b = 1, h = 2, m = 80, n = 96, d = 32, causal = true}
  local plan = mr.plan(bound:graph{tile = {m = 64, n = 32}}, mr.device "h200")
  plan:buffers{k = 2, v = 2}
  local found = false
  for _, t in ipairs(plan.tasks) do
    found = found or t.name == name
    plan:append(t.name, t.name == name and cuda or nil)
  end
  plan:fill_waits()
  right(("attention with %s by threads"):format(name), plan)
  tap.ok(found, name .. " is a product of it")
end

-- A launch of 896 threads gives each 72 registers, too few for an instruction of 128 columns.
local crowd = mr.plan(mr.examples.gemm{m = 128, n = 256, k = 160}:graph{tile = {m = 64, n = 128, k = 64}}, mr.device "h200")
crowd:lane("p0", {warps = 8, replicas = 3})
crowd:lane("c0", {warps = 4})
for _, t in ipairs(crowd.tasks) do crowd:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
crowd:fill_waits()
random_plans.correct(tap, "a product among very many threads", crowd, {1, 2})
tap.ok(tostring(crowd:kernel{target = "cuda"}):find("64 columns, 4 steps, in 2", 1, true), "  in instructions that few registers do for")

---- rows that the copy engine cannot bring --------------------------------------

-- With so many columns in memory, accesses of so many bytes; whether copies arrive at their flag by themselves.
for _, x in ipairs{{68, 8, true}, {66, 4, true}, {65, 2, false}, {72, nil, false}} do
  local k, bytes, arrive = table.unpack(x)
  for _, warps in ipairs{1, 3, 4} do
    local plan = gemm{sizes = {m = 136, n = 72, k = k}, tile = {m = 128, n = 64, k = 32}, rings = {a = 3, b = 2},
      lanes = {{"p0", {warps = warps}}, {"c0", {warps = 4}}}}
    local what = ("rows of %d elements, %d warp%s"):format(k, warps, warps == 1 and "" or "s")
    local has = bytes and {("load_threads A, 4096 elements%s"):format(bytes > 2 and ", " .. bytes // 2 or
      warps ~= 3 and ", 8 at once, shifted" or " one by one")} or {"load_boxes"}
    if arrive then
      has[#has + 1] = ("'load_a complete': 3 deep, %d arrivals"):format(32 * warps)
      has[#has + 1] = "fence +; threads have copied it"
    end
    kernel(what, plan, has, arrive and {} or {"threads have copied it"})
    local _, problems = plan:check()
    local note = problems.notes and problems.notes[1]
    tap.is(note and note.code, bytes and "by_threads", "  check says so")
    if bytes then
      tap.like(note.message .. "; " .. note.hint, ("%s: rows of 'A' have %d bytes.*pad axis 'k' with zeros to a multiple of 8")
        :format(bytes > 2 and bytes .. " bytes at a time" or "through registers", 2 * k), "  and what would bring it")
    end
  end
end

-- Shifted accesses, at every address at which a row can begin; some tiles and rows end within an access.
for _, x in ipairs{{"bf16", 101, 64}, {"bf16", 67, 32}, {"e4m3", 101, 32}, {"e4m3", 98, 64}} do
  local dtype, k, tile = table.unpack(x)
  for _, n in ipairs{35, 64} do
    kernel(("%d of %s in a row, shifted"):format(k, dtype), gemm{sizes = {m = 136, n = n, k = k, dtype = dtype, out = "f32"},
      tile = {m = 64, n = 32, k = tile}, lanes = {{"p0", {warps = 4}}}, rings = {a = 2, b = 2}}, {"shifted"})
  end
end

-- Some rows of the tile are beyond the tensor's end; each is tested.
kernel("accesses to ragged rows", gemm{sizes = {m = 100, n = 40, k = 132}, tile = {m = 64, n = 32, k = 64},
  lanes = {{"p0", {warps = 2}}}}, {"4 at once, on 'load_a complete'"})

-- Rows and accesses that begin before the tensor, or end behind it.
for _, x in ipairs{{100, "bf16", "4 at once, on 'load_a complete'"}, {97, "bf16", "shifted"}, {98, "e4m3", "shifted"}, {99, "f32", "load_threads"}} do
  local k, dtype, how = table.unpack(x)
  for _, by in ipairs{{3, 0}, {-3, 0}, {0, 1}, {0, -1}, {-2, 4}, {5, -9}} do
    kernel(("%d of %s, from row %d and column %d on"):format(k, dtype, by[1], by[2]), schedule(
      rare.window(by[1], by[2]){m = 128, n = 64, k = k, dtype = dtype}, {m = 128, n = 64, k = 64},
      {lanes = {{"p0", {warps = 4}}}, rings = {a = 2, b = 2}, load = on "p0"}), by[2] % 4 == 0 and {how} or nil)
  end
end
for _, c in ipairs{67, 68} do
  right(("conv2d of %d channels"):format(c), schedule(mr.examples.conv2d{n = 1, c = c, h = 5, w = 64, k = 64, r = 3, s = 3, pad = 1},
    {n = 1, p = 1, q = 64, k = 64, r = 1, s = 1, c = 64}, {lanes = {{"p0", {warps = 4}}}, load = on "p0"}))
end

-- Asynchronous copies of one replica would wait for those of others, so they do not arrive by themselves.
kernel("copies of rows of 68 elements by replicas", gemm{sizes = {m = 301, n = 72, k = 580}, tile = {m = 128, n = 64, k = 32},
  lanes = {{"p0", {warps = 2, replicas = 2}}}, rings = {a = 3, b = 2}, load = on "p0"}, {"4 at once"}, {"threads have copied it"})

-- Another lane has seen that the keys are there: the one whose engine reads them fences, too.
do
  local plan = mr.plan(rare.dq{m = 64, n = 200, d = 68}:graph{tile = {m = 64, n = 64}}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 4})
  plan:lane("e0", {warps = 4})
  plan:buffers{g = 2, v = 2, mma_s = 3, convert = 3}
  for _, t in ipairs(plan.tasks) do
    local on_c0 = t.name == "mma_s" or t.name == "both"
    plan:append(t.name, {lane = t.kind == "load" and "p0" or on_c0 and "c0" or "e0", seu = t.name == "mma_s" and "cuda" or nil})
  end
  plan:fill_waits()
  kernel("keys that others have seen", plan, {"threads have copied what others have signaled"})
end

-- The last index may add blocks: the heads of a row next to each other. So many elements are copied at once as all that is added,
-- and the size of the row, are multiples of.
for _, x in ipairs{{16, 0, 8}, {16, 4, 4}, {12, 0, 4}, {10, -2, 2}, {9, 0, 1}, {16, 1, 1}} do
  local size, shift, width = table.unpack(x)
  local bound = mr.program("heads", function(p)
    local m, h, d = p:axes("m", "h", "d")
    local e = p:axis("e", 3 * size)
    local X, Y = p:input("X", {m, e}), p:output("Y", {h, m, d})
    p:batch(h)
    Y:store("store_y", p:load("load_x", X, {m, h * size + d + shift}))
  end){m = 40, h = 3, d = size}
  local plan = schedule(bound, {m = 16, d = size}, {load = {seu = "cuda"}, store = {seu = "cuda"}})
  local how = width > 1 and ("%d at once"):format(width) or "one by one"
  tap.like(tostring(plan:kernel()):match "load_threads X[^\n]*", how, ("heads of %d, %d behind: %s"):format(size, shift, how))
  random_plans.correct(tap, "  the plan", plan, {1, 2})
end

tap.done_testing()
