-- Kernels on the CPU: what plans lower to computes what the program says, in whatever order
-- the plan leaves open, and without accesses that nothing orders.
local mr = require "millrace"
local core = require "millrace.core"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, on_host = dofile(dir .. "tap.lua"), dofile(dir .. "lib/on_host.lua")

local home = core.home()

local function computes(what, plan, seeds)
  local good, worst, report = pcall(on_host.worst, plan, seeds or 4)
  tap.ok(good and worst <= 1e-2, what, "  relative error: " .. tostring(worst), report)
end

local function gemm(sizes, tile, ring, ways)
  local plan = mr.plan(mr.examples.gemm(sizes):graph{tile = tile}, mr.device "h200")
  if ways > 1 then plan:split("m", ways) end
  plan:lane("p0", {warps = 1})
  plan:buffers{a = ring, b = ring}
  plan:append("load_a", {seu = "tma", lane = "p0"})
  plan:append("load_b", {seu = "tma", lane = "p0"})
  for i = 0, ways - 1 do
    local lane, part = "c" .. i, ways > 1 and "." .. i or ""
    plan:lane(lane, {warps = 4})
    plan:append("mma" .. part, {seu = "tensor", lane = lane})
    plan:append("epilogue" .. part, {seu = "cuda", lane = lane})
    plan:append("store_c" .. part, {seu = "tma", lane = lane})
  end
  plan:fill_waits()
  return plan
end

-- Rows of several axes: a part of the outermost lies together.
local function conv2d(axis)
  local bound = mr.examples.conv2d{n = 4, c = 64, h = 8, w = 8, k = 64, r = 3, s = 3, pad = 1}
  local plan = mr.plan(bound:graph{tile = {n = 2, p = 8, q = 8, c = 64, k = 64, r = 1, s = 1}},
    mr.device "h200")
  plan:split(axis, 2, {"mma", "convert", "store_y"})
  plan:lane("p0", {warps = 1})
  plan:buffers{x = 2, f = 2}
  plan:append("load_x", {seu = "tma", lane = "p0"})
  plan:append("load_f", {seu = "tma", lane = "p0"})
  for i = 0, 1 do
    local lane = "c" .. i
    plan:lane(lane, {warps = 4})
    plan:append("mma." .. i, {seu = "tensor", lane = lane})
    plan:append("convert." .. i, {seu = "cuda", lane = lane})
    plan:append("store_y." .. i, {seu = "tma", lane = lane})
  end
  plan:fill_waits()
  return plan
end
computes("conv2d, split along its outermost row axis", conv2d "n", 2)
local good, message = pcall(core.build, conv2d "p", true, nil, nil, "host")
tap.ok(not good and tostring(message):find "whose rows are not contiguous",
  "conv2d, split along another, is refused", tostring(message))

for ring = 1, 4 do
  computes("gemm of ragged sizes, a ring of " .. ring,
    gemm({m = 200, n = 264, k = 136}, {m = 128, n = 128, k = 64}, ring, 2))
end
for trips = 1, 5 do
  computes("gemm, iterations: " .. trips,
    gemm({m = 64, n = 136, k = 32 * trips}, {m = 64, n = 64, k = 32}, 3, 1))
end
computes("gemm, 16 deep", gemm({m = 64, n = 64, k = 128}, {m = 64, n = 64, k = 16}, 2, 1), 12)
computes("gemm, many tiles an EU", gemm({m = 1024, n = 1152, k = 64}, {m = 64, n = 64, k = 32}, 2, 1), 2)

for _, name in ipairs{"serial", "overlap", "pingpong"} do
  for _, causal in ipairs{false, true} do
    local bound = mr.examples.flash_attention{b = 1, h = 2, m = 256, n = 256, d = 128, causal = causal}
    computes(("attention, %s%s"):format(name, causal and ", causal" or ""),
      mr.load_plan(("%s/examples/attention_%s.lua"):format(home, name), bound))
  end
  -- the first queries see no key, so their tile has no iteration
  local bound = mr.examples.flash_attention{b = 1, h = 1, m = 384, n = 200, d = 128, causal = true}
  local plan = mr.load_plan(("%s/examples/attention_%s.lua"):format(home, name), bound)
  plan:fill_waits()
  computes(("attention, %s, a tile without iterations"):format(name), plan)
end

for _, sizes in ipairs{{b = 1, h = 8, hkv = 2, n = 300, d = 64, splits = 2}, {b = 1, h = 2, n = 256, d = 128, splits = 5}} do
  local plan = mr.load_plan(home .. "/examples/decoding_split.lua", mr.examples.flash_decoding(sizes))
  plan:fill_waits()                     -- a part without keys has no iteration
  computes(("decoding_split, %d keys in %d parts"):format(sizes.n, sizes.splits), plan)
end

-- Replicas of a consumer.
local function with_replicas(sizes, tile, ring, replicas)
  local plan = mr.plan(mr.examples.gemm(sizes):graph{tile = tile}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c", {warps = 4, replicas = replicas})
  plan:buffers{a = ring, b = ring}
  plan:append("load_a", {seu = "tma", lane = "p0"})
  plan:append("load_b", {seu = "tma", lane = "p0"})
  plan:append("mma", {seu = "tensor", lane = "c"})
  plan:append("epilogue", {seu = "cuda", lane = "c"})
  plan:append("store_c", {seu = "tma", lane = "c"})
  plan:fill_waits()
  return plan
end

for replicas = 2, 3 do
  for ring = 1, 3, 2 do
    computes(("gemm by %d replicas, with a ring of %d"):format(replicas, ring),
      with_replicas({m = 640, n = 2304, k = 96}, {m = 64, n = 64, k = 32}, ring, replicas), 2)
  end
end

-- Rows: the next replica begins when this one has made the waits of its tile, not behind its arithmetic and its store.
local normalised = mr.program("normalised", function(p)
  local m, n = p:axes("m", "n")
  local x = p:load("load_x", p:input("X", {m, n}))
  p:output("Y", {m, n}):store("store_y", p:task("divide", function() return (x / mr.rowsum(x * x, n)):to "bf16" end))
end)
for replicas = 2, 3 do
  local plan = mr.plan(normalised{m = 1100, n = 512}:graph{tile = {m = 2, n = 512}}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c", {warps = 4, replicas = replicas})
  plan:buffers{x = 3}
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c"}) end
  plan:fill_waits()
  local text = plan:compile{target = "host"}.source
  local flag = text:match 'flag_init%(shared %+ (%d+) %+ 8 %* i, 4, "divide issued", i%)'
  local signals = flag and text:find(("flag_arrive_warp(shared + %s + 8 * rem(t,"):format(flag), 1, true)
  local work, store = text:find "shuffle_xor%(y", text:find 'AT%("store_y", t%)'
  tap.ok(signals and work and store and signals < work and work < store, ("rows by %d replicas: the next one begins first"):format(replicas))
  computes(("rows by %d replicas"):format(replicas), plan, 2)
end

-- More warpgroups than registers divide among: 640 threads get 96 each, and no more to share.
plan = with_replicas({m = 128, n = 64, k = 64}, {m = 64, n = 64, k = 32}, 2, 3)
plan:lane("idle", {warps = 4})
computes("gemm, five warpgroups", plan, 2)

-- Tiles of one, and others that no instruction has.
local function in_order(bound, tile)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  for _, task in ipairs(plan.tasks) do plan:append(task.name) end
  plan:fill_waits()
  return plan
end
for _, tile in ipairs{{m = 64, n = 1}, {m = 64, n = 8}, {m = 1, n = 64}, {m = 64, n = 1, d = 8}, {m = 64, n = 64, d = 1}} do
  computes(("attention, tiles of %d x %d, %s columns"):format(tile.m, tile.n, tile.d or "all"),
    in_order(mr.examples.flash_attention{b = 1, h = 1, m = 70, n = 20, d = 64}, tile), 2)
end
for _, order in ipairs{{"mk", "nk"}, {"km", "kn"}} do
  local function by_tiles(m, n, k, tile)
    computes(("gemm of %s and %s, tiles of %d x %d x %d"):format(order[1], order[2], tile.m, tile.n, tile.k),
      in_order(mr.examples.gemm{m = m, n = n, k = k, a = order[1], b = order[2]}, tile), 2)
  end
  for _, tile in ipairs{{m = 64, n = 64, k = 1}, {m = 64, n = 1, k = 64}, {m = 64, n = 64, k = 3}} do by_tiles(70, 20, 40, tile) end
  by_tiles(22, 15, 9, {m = 1, n = 1, k = 1})            -- 330 tiles: some EUs have several
end

-- What the matrix unit multiplies; sums are exact but for the order.
for _, dtype in ipairs{"bf16", "f16", "tf32", "e4m3", "e5m2"} do
  local bound = mr.examples.gemm{m = 100, n = 72, k = 200, dtype = dtype, out = "f32"}
  local plan = mr.search(bound, mr.device "h200", {trials = 20}).plan
  local good, worst = pcall(on_host.worst, plan, 2)
  tap.ok(good and worst <= 1e-6, "gemm of " .. dtype, tostring(worst))
end

-- Numbers of a type: zeros, the least one, half of it, midpoints between two, the greatest one, and beyond.
for _, dtype in ipairs{"bf16", "f16", "tf32", "e4m3", "e5m2"} do
  local values = {0, -0.0, 1, -1, 0x1p-9, 0x1p-10, 0x3p-11, -0x1p-16, 0x1p-17, 0x1p-24, 0x1p-25, 1.0625, 1.1875, 0.2, -3.3, 447, 448,
    57344, 1e-30, -1e-40}
  local narrow = mr.program("narrow", function(p)
    local n = p:axes "n"
    local X, Y = p:input("X", {n}, "f32"), p:output("Y", {n}, "f32")
    local x = p:load("load_x", X)
    Y:store("store_y", p:task("round", function() return x:to(dtype):to "f32" + 0 end))
  end)
  local bound = narrow{n = #values}
  local inputs = bound:inputs{seed = 1}
  for i, x in ipairs(values) do inputs.X[i] = x end
  local want = bound:reference(inputs, {round = true}).Y
  local got = in_order(bound, {}):compile{target = "host"}:run(inputs).Y
  local wrong = {}
  for i, x in ipairs(values) do
    if got[i] ~= want[i] then wrong[#wrong + 1] = ("%a: %a, not %a"):format(x, got[i], want[i]) end
  end
  tap.is(table.concat(wrong, "; "), "", "numbers of " .. dtype)
end
local wide = mr.program("double", function(p)
  local m, n = p:axes("m", "n")
  local A, B = p:input("A", {m, n}, "f64"), p:output("B", {m, n}, "f64")
  local a = p:load("load_a", A)
  B:store("store_b", p:task("twice", function() return a * 2 end))
end):bind{m = 64, n = 64}
local plan = mr.plan(wide:graph{tile = {m = 64, n = 64}}, mr.device "h200")
plan:lane("p0", {warps = 1})
plan:append("load_a", {seu = "tma", lane = "p0"})
plan:append("twice", {seu = "cuda", lane = "c0"})
plan:append("store_b", {seu = "tma", lane = "c0"})
plan:fill_waits()
local _, problem = pcall(plan.compile, plan, {target = "host"})
tap.like(problem, "'load_a' works on f64, which is not lowered", "a type that no register holds")
for _, x in ipairs{
  {"f64", nil, "f64 is for the interpreter alone, kernels compute in f32"},
  {"e2m1", "bf16", "let the tensor be an input whose last dimension is a multiple of 8", 60},
  {"i4", "bf16", "let the tensor be an input whose last dimension is a multiple of 8", 60},
  {"bf16", "e2m1", "kernels store elements of 4 bits as bytes of two; let the last dimension of the output be even", 63},
} do
  local bound = mr.program("typed", function(p)
    local m, n = p:axes("m", "n")
    local A, B = p:input("A", {m, n}, x[1]), p:output("B", {m, n}, x[2] or x[1])
    local a = p:load("load_a", A)
    B:store("store_b", p:task("convert", function() return a:to(x[2] or x[1]) end))
  end):bind{m = 64, n = x[4] or 64}
  local found, message = mr.search(bound, mr.device "h200", {trials = 4, measure = false})
  tap.ok(not found and message:find("\n  try: change the program: .*" .. x[3]:gsub("%p", "%%%0") .. "$"),
    ("%s to %s: a search says what to write"):format(x[1], x[2] or x[1]), message)
end

-- Blocks that load together: along either axis, ring by ring, where tiles do not divide.
local function clustered(sizes, tile, ring, ways, grid)
  local plan = gemm(sizes, tile, ring, ways)
  plan:grid(grid)
  return plan
end
local function name_of(grid)
  return ("a cluster of %d, %s in groups of %d"):format(grid.cluster, grid.raster or "rows", grid.group)
end
for ring = 1, 4 do
  local grid = {cluster = ring % 2 == 0 and 4 or 2, eus = 4, group = ring > 2 and 1 or 8}
  computes(("gemm of ragged sizes, a ring of %d, %s"):format(ring, name_of(grid)),
    clustered({m = 600, n = 712, k = 136}, {m = 128, n = 128, k = 64}, ring, 2, grid), 2)
end
for trips = 1, 4 do
  computes(("gemm in a cluster, iterations: %d"):format(trips), clustered({m = 256, n = 136, k = 32 * trips},
    {m = 64, n = 64, k = 32}, 3, 1, {cluster = 2, eus = 2, group = 2}), 2)
end
for _, grid in ipairs{{cluster = 2, eus = 4, group = 8}, {cluster = 2, eus = 4, group = 8, raster = "columns"},
    {cluster = 3, eus = 7, group = 8}} do
  local plan = clustered({m = 392, n = 400, k = 200, a = "km", b = "kn"}, {m = 128, n = 128, k = 64}, 3, 2, grid)
  computes("gemm of transposed operands, " .. name_of(grid), plan, 2)
  tap.like(plan:compile{target = "host"}.source, "tma_load_all_2d", "  one of which all bring to all")
end
for _, name in ipairs{"overlap", "pingpong"} do
  local bound = mr.examples.flash_attention{b = 1, h = 2, m = 600, n = 200, d = 64}
  local plan = mr.load_plan(("%s/examples/attention_%s.lua"):format(home, name), bound)
  plan:grid{cluster = 2, eus = 2}
  computes(("attention, %s, keys and values for two blocks"):format(name), plan, 2)
end

-- Heads that share what they load, with tiles of other lengths, and a last cluster that is not complete.
local function heads(name, sizes, tile, rings, grid)
  local plan = in_order(mr.examples[name](sizes), tile)
  plan:buffers(rings)
  plan:grid(grid)
  computes(("%s, a cluster of %d along h"):format(name, grid.cluster), plan, 2)
  tap.like(plan:compile{target = "host"}.source, "tma_load_all_%dd", "  all bring a part to all")
end
heads("flash_attention", {b = 2, h = 4, hkv = 2, m = 200, n = 136, d = 64, causal = true}, {m = 64, n = 64}, {k = 2, v = 2},
  {cluster = 2, eus = 4, along = "h", longest_first = true})
heads("flash_attention", {b = 1, h = 8, hkv = 1, m = 72, n = 136, d = 64}, {m = 64, n = 64}, {k = 2, v = 1},
  {cluster = 4, eus = 8, along = "h"})
heads("chunk_scan", {b = 2, s = 200, h = 3, p = 64, n = 64, chunk = 128}, {l = 64, k = 64}, {cb = 2, x = 2},
  {cluster = 2, eus = 4, along = "h", raster = "columns", group = 2})

-- Every shipped program where nothing divides: values are filled up to what instructions take.
local odd = {
  {"matmul_sum", {m = 100, n = 200, k = 72}}, {"gemm", {m = 33, n = 201, k = 77}},
  {"flash_attention", {b = 1, h = 2, m = 70, n = 130, d = 40, causal = true}},
  {"flash_decoding", {b = 2, h = 8, hkv = 2, n = 500, d = 64, splits = 8}},
  {"chunk_state", {b = 1, s = 100, h = 2, p = 40, n = 24, chunk = 64}},
  {"chunk_scan", {b = 1, s = 100, h = 4, g = 2, p = 40, n = 48, chunk = 64, z = true}},
  {"dequant_gemm", {m = 70, n = 72, k = 264, wtype = "e2m1", group = 32}},
  {"conv2d", {n = 1, c = 20, h = 9, w = 11, k = 10, r = 3, s = 3, stride = 2, pad = 1}},
}
for _, case in ipairs(odd) do
  local found = mr.search(mr.examples[case[1]](case[2]), mr.device "h200", {trials = 20})
  computes(case[1] .. " of odd sizes, as searched", found.plan, 2)
end

-- Fields of packed words where a thread has one element a row, and no neighbours.
for _, case in ipairs{{"dequant_gemm", {m = 4, n = 5, k = 256}}, {"fp4_gemm", {m = 4, n = 5, k = 64}}} do
  local plan = mr.plan(mr.examples[case[1]](case[2]):graph{tile = {m = 1, n = 1, k = 64}}, mr.device "h200")
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  computes(case[1] .. " in tiles of one row and column", plan, 1)
end

-- Every function of one value, in a kernel.
for _, name in ipairs{"exp2", "log2", "sqrt", "rsqrt", "tanh", "erf", "sin", "cos", "abs", "floor"} do
  local bound = mr.program(name, function(p)
    local m, n = p:axes("m", "n")
    local X, Y = p:input("X", {m, n}, "f32"), p:output("Y", {m, n}, "f32")
    local x = p:load(X) * 3
    Y:store(mr[name]((name:find "log" or name:find "sqrt") and x:abs() + 0.25 or x))
  end):bind{m = 70, n = 90}
  local plan = mr.plan(bound:graph{tile = {m = 32, n = 32}}, mr.device "h200")
  plan:lane("c0", {warps = 4})
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  computes("a kernel with " .. name, plan, 1)
end

-- What the runtime reports comes back as text, and outputs as they are.
local plan = gemm({m = 64, n = 64, k = 64}, {m = 64, n = 64, k = 32}, 2, 1)
local kernel = plan:compile{target = "host"}
local timed, why = pcall(function() kernel:bench() end)
tap.ok(not timed and why:find("bench: a kernel for the CPU is for its results", 1, true) and why:find("plan:simulate() predicts it", 1, true),
  "it has no time, and says where there is one", why)
tap.like(kernel.source, "HOST_ENTRY%(gemm_main, %d+%)", "the source is the kernel's")
-- The phases of a program are one text, in which no name is defined twice.
do
  local text, seen, twice = mr.load_plan "decoding_split":compile{target = "cuda", text = true}.source, {}, {}
  for definition in ("\n" .. text):gmatch "\n(DEV [^\n]-%b())" do
    if seen[definition] then twice[#twice + 1] = definition end
    seen[definition] = true
  end
  for _, what in ipairs{"} TensorMap;", "#define KERNEL", "KERNEL%(flash_decoding_split", "KERNEL%(flash_decoding_combine"} do
    tap.is(select(2, text:gsub(what, "")), 1, ("the text of two phases has '%s' once"):format(what))
  end
  tap.is(table.concat(twice, "\n"), "", "  and each function")
  tap.ok(seen["DEV u32 shared_base(void)"], "  of which there are some")
end
local inputs = plan.graph.program:inputs{}
local a, b = core.host_run(kernel, inputs, {seed = 1}), core.host_run(kernel, inputs, {seed = 2})
tap.is(a.C:max_error(b.C), 0, "the order of a run does not change the result")

-- A second's work in the time of a blink.
plan = gemm({m = 1024, n = 1024, k = 512}, {m = 64, n = 64, k = 32}, 2, 1)
local _, report = core.host_run(plan:compile{target = "host"}, plan.graph.program:inputs{}, {limit = 0.01})
tap.like(report, "^the kernel did not finish within 0%.01 s$", "a time limit")

-- The same through the plan.
local k = plan:compile{target = "host"}
tap.is(k.target, "host", "plan:compile has the target")
local err = k:check{seed = 4}
tap.ok(err.ok and err.relative < 1e-2, "k:check agrees with the reference")
tap.ok(err.allowed > 0.0039 and err.allowed < 0.0041, "by what its roundings allow: one to bf16 for the most part", err.allowed)
tap.like(tostring(err), "^agrees with the reference %(interpreter%): relative error [%d.e-]+, of 0%.004 allowed; greatest difference",
  "and says so in a line")
err.ok = false
tap.like(tostring(err), "^differs from the reference", "or that it does not")
tap.ok(not pcall(function() plan:compile{target = "abacus"} end), "an unknown target is refused")

do
  local plan = mr.plan(mr.examples.gemm{m = 64, n = 64, k = 64}:graph{tile = {m = 64, n = 64, k = 64}}, mr.device "h200")
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  local kernel = plan:compile{target = "host"}
  for _, options in ipairs{false, {seconds = 1}} do
    local good, message = pcall(function() return kernel:bench(options or nil) end)
    tap.ok(not good and message:find("its time says nothing about the device", 1, true), "a kernel for the CPU is not timed", message)
  end
end

---- plans of which no kernel can be made ------------------------------------------------------

do
  local plan = mr.load_plan("attention_pingpong", mr.examples.flash_attention{b = 1, h = 1, m = 100, n = 50, d = 64})
  for _, what in ipairs{"compile", "kernel"} do
    local good, message = pcall(plan[what], plan, {target = "host"})
    tap.ok(not good and message:find("host.t.lua:%d+: " .. what .. ": the plan is not legal %(1 problem; plan:check%(%) lists them%): product: 'mma_qk.1' begins"),
      what .. " of a plan that no kernel can be made of says so at the call", message)
  end
end

tap.done_testing()
