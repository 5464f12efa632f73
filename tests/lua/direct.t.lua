-- Values that a task makes where synchronous products take them (plan:direct): kernels are right on the CPU, whatever the
-- program, the tile, the offsets and the parts of a lane, and what cannot be made there is refused.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local random_plans = dofile(dir .. "lib/random_plans.lua")
local mma_sync = dofile(dir .. "lib/mma_sync.lua")

local SEEDS <const> = {1, 2}
local devices = {a100 = mr.device "a100", mi300x = mr.device "mi300x", mma_sync = mma_sync}

-- Weights of 8 bits with a scale for each column of the result, and a bias before that.
local int8 = mr.program("int8", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, W, S, B = p:input("A", {m, k}), p:input("W", {n, k}, "i8"), p:input("S", {n}, "f32"), p:input("B", {k}, "f32")
  local C = p:output("C", {m, n})
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function()
    local w, s, b = p:load("load_w", W), p:load("load_s", S), p:load("load_b", B)
    c:add(p:mma("mma", p:load("load_a", A), p:task("dequant", function() return ((w + b) * s):to "bf16" end)))
  end)
  C:store("store_c", p:task("convert", function() return c:to "bf16" end))
end)
-- The weights are the first operand, and lie along the other axis.
local swapped = mr.program("swapped", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, W, S, C = p:input("A", {m, k}, "f16"), p:input("W", {k, n}, "e4m3"), p:input("S", {k}, "f32"), p:output("C", {n, m}, "f32")
  local c = p:carry("c", {n, m}, 0)
  p:loop(k, function()
    local w, s = p:load("load_w", W), p:load("load_s", S)
    c:add(p:mma("mma", p:task("dequant", function() return (w * s):to "f16" end), p:load("load_a", A)))
  end)
  C:store("store_c", c)
end)
-- Two products take the weights, over two contracted axes; the scales are made by another task.
local two = mr.program("two", function(p)
  local m, n, q, r = p:axes("m", "n", "q", "r")
  local A, B, W, S = p:input("A", {m, q, r}), p:input("B", {m, q, r}), p:input("W", {q, n, r}, "i8"), p:input("S", {n, q}, "f32")
  local C, D = p:output("C", {m, n}, "f32"), p:output("D", {m, n}, "f32")
  local c, d = p:carry("c", {m, n}, 0), p:carry("d", {m, n}, 0)
  p:loop(r, function()
    local w, s = p:load("load_w", W), p:load("load_s", S)
    local scale = p:task("scale", function() return s * 0.25 + 1 end)
    local x = p:task("dequant", function() return (w * scale + r:index() % 4):to "bf16" end)
    c:add(p:mma("mma_c", p:load("load_a", A), x))
    d:add(p:mma("mma_d", p:load("load_b", B), x))
  end)
  C:store("store_c", c)
  D:store("store_d", d)
end)

-- A plan in the order of the program, with loads on a lane of their own; the weights are made `at` iterations ahead.
local function planned(x)
  local plan = mr.plan(x.bound:graph{tile = x.tile}, devices[x.on] or mr.device(x.on))
  if x.swap then plan:swap "mma" end
  if x.direct ~= false then plan:direct{"dequant"} end
  if x.fetch then plan:fetch("mma", x.fetch) end
  if x.split then plan:split(table.unpack(x.split)) end
  plan:lane("p0", {warps = 2})
  plan:lane("c0", {warps = x.warps or 4, columns = x.columns})
  local rings = {}
  for _, task in ipairs(plan.tasks) do
    local makes = task.name:find "^dequant"
    plan:append(task.name, {lane = (task.kind == "load" or task.name == x.apart) and "p0" or "c0", at = makes and x.at or nil,
      seu = task.kind == "mma" and x.seu or nil})
    if task.kind == "load" then rings[task.writes[1]] = x.stages or 2 end
    if makes then rings[task.writes[1]] = x.versions end
  end
  plan:buffers(rings)
  plan:fill_waits()
  return plan
end

local function right(what, x)
  local plan = planned(x)
  random_plans.device = devices[x.on]
  random_plans.correct(tap, what .. " on " .. x.on, plan, SEEDS)
  return plan
end

for _, on in ipairs{"a100", "mi300x", "mma_sync"} do
  for _, m in ipairs{1, 3, 16, 33} do
    right("i4, warps in columns, m = " .. m, {on = on, bound = mr.examples.dequant_gemm{m = m, n = 64, k = 256},
      tile = {m = 16, n = 64, k = 64}, columns = 4})
    right("fp4, made ahead, m = " .. m, {on = on, bound = mr.examples.fp4_gemm{m = m, n = 48, k = 128}, tile = {m = 16, n = 16, k = 64},
      warps = 1, at = 1, versions = 2, stages = 3})
    right("i8 with a scale a column, m = " .. m, {on = on, bound = int8{m = m, n = 48, k = 128}, tile = {m = 16, n = 16, k = 32},
      warps = 1})
    right("the first operand, m = " .. m, {on = on, bound = swapped{m = m, n = 64, k = 96}, tile = {m = 16, n = 32, k = 32}, warps = 2})
  end
  right("ends within tiles", {on = on, bound = mr.examples.dequant_gemm{m = 20, n = 40, k = 264, group = 32, wtype = "i8"},
    tile = {m = 32, n = 32, k = 64}, warps = 2})
  right("ends within words", {on = on, bound = int8{m = 5, n = 27, k = 53}, tile = {m = 16, n = 32, k = 64}, warps = 1})
  right("mxfp4", {on = on, bound = mr.examples.fp4_gemm{m = 7, n = 64, k = 192, format = "mxfp4"}, tile = {m = 16, n = 64, k = 64},
    columns = 2})
  right("two products", {on = on, bound = two{m = 20, n = 32, q = 3, r = 48}, tile = {m = 32, n = 32, q = 3, r = 32}, warps = 2})
  local i4 = mr.examples.dequant_gemm{m = 16, n = 64, k = 256}
  right("slices of what is contracted", {on = on, bound = i4, tile = {m = 16, n = 64, k = 128}, columns = 4,
    split = {"k", 2, {"dequant", "mma"}}})
  right("slices of columns", {on = on, bound = i4, tile = {m = 16, n = 64, k = 64}, split = {"n", 2}, columns = 2})
  right("the other operand is fetched", {on = on, bound = i4, tile = {m = 16, n = 64, k = 64}, fetch = {"a"}, columns = 4})
end

-- What clang makes of it for gfx942 is executed, and nvcc finds registers for it.
local on_waves = dofile(dir .. "lib/on_waves.lua")
local has_clang = os.execute "(clang-22 --version && /usr/lib/llvm-22/bin/llvm-objdump --version && python3 --version) >/dev/null 2>&1"
local has_nvcc = os.execute "nvcc --version >/dev/null 2>&1"
local function compiles(what, x)
  x.on = "mi300x"
  local wrong = has_clang and on_waves.wrong(planned(x), 1)
  tap.ok(not wrong, what .. ": machine code for gfx942 is right" .. (has_clang and "" or " # SKIP there is no clang-22 or python3"), wrong)
  for _, on in ipairs{"a100", "h200"} do
    x.on, x.seu = on, on == "h200" and "mma_sync" or nil
    local spills = has_nvcc and planned(x):compile{target = "cuda"}.spills
    tap.ok(not spills or spills == 0, what .. ": no spills on " .. on .. (has_nvcc and "" or " # SKIP there is no nvcc"), spills)
  end
end
compiles("i4", {bound = mr.examples.dequant_gemm{m = 16, n = 64, k = 256}, tile = {m = 16, n = 64, k = 128}, columns = 4})
compiles("fp4", {bound = mr.examples.fp4_gemm{m = 5, n = 64, k = 128}, tile = {m = 16, n = 64, k = 64}, columns = 4})
compiles("i8", {bound = int8{m = 3, n = 64, k = 128}, tile = {m = 16, n = 64, k = 64}, columns = 4})

-- Nothing is written to shared memory in between, and the sTask has slots free where it has read them.
local plan = planned{on = "a100", bound = mr.examples.dequant_gemm{m = 16, n = 64, k = 256}, tile = {m = 16, n = 64, k = 64}, columns = 4}
local dump = tostring(plan:kernel{})
tap.like(dump, "product r_c%[0%] %+= a%d+ x r_dequant%[0%]", "a product takes what is made out of registers")
tap.ok(not dump:find "slot_dequant", "  and nothing of it is in shared memory")
local narrow = {on = "a100", bound = mr.examples.dequant_gemm{m = 16, n = 64, k = 256}, tile = {m = 16, n = 64, k = 32}, columns = 4}
tap.like(tostring(planned(narrow):kernel{}), "field of shared 4 i32", "  of packed words four are read at once")

-- Groups of columns are interwoven: a thread makes all weights of a word, and reads as much of the other operand at once.
local function woven(x)
  x.on, x.bound = x.on or "mma_sync", x.bound or mr.examples.dequant_gemm{m = 16, n = 64, k = 256}
  x.tile, x.columns = x.tile or {m = 16, n = 64, k = 128}, x.columns or 4
  local source = planned(x):compile{target = "host"}.source
  return source:find "shared_16%(x, slot_a" ~= nil and not source:find "shared_matrices%(x, slot_a", source
end
local is_woven, source = woven{}
tap.ok(is_woven and source:find "u32 v0%[1%]; { const int j = first, e = 0; v0%[0%] = shared_u32%(slot_w",
  "groups are interwoven: a word is read once for its weights, and sixteen bytes of the other operand", source)
local scale = source:find("v1[0] = shared_u16(slot_scale", 1, true)
local word = source:find("EACH(jj, 4) {", 1, true)
tap.ok(scale and word and scale < word and source:find("shared_u32(slot_w", word, true),
  "  and a scale once for the four words that it is of", source)
tap.ok(woven{on = "a100"}, "  on an A100, too")
tap.ok(not woven{tile = {m = 16, n = 64, k = 32}}, "  not where a tile is less than a line of shared memory")
tap.ok(not woven{tile = {m = 16, n = 16, k = 832}, bound = mr.examples.dequant_gemm{m = 16, n = 16, k = 1664}, warps = 1, columns = 1},
  "  nor where registers are missing for more of the other operand")
tap.ok(not woven{bound = two{m = 16, n = 16, q = 4, r = 64}, tile = {m = 16, n = 16, q = 4, r = 64}, columns = 1},
  "  nor where two products take what is made")
for _, m in ipairs{1, 5, 16, 33} do
  for _, group in ipairs{32, 64, 128} do
    right(("interwoven, m = %d, groups of %d"):format(m, group), {on = "mma_sync", tile = {m = 16, n = 64, k = 128}, columns = 4,
      bound = mr.examples.dequant_gemm{m = m, n = 64, k = 384, group = group}})
  end
  right("interwoven weights of i8, m = " .. m, {on = "mma_sync", tile = {m = 16, n = 64, k = 64}, columns = 4,
    bound = mr.examples.dequant_gemm{m = m, n = 64, k = 256, wtype = "i8"}})
  right("interwoven, the weights as rows, m = " .. m, {on = "mma_sync", tile = {m = 16, n = 64, k = 64}, swap = true,
    bound = mr.examples.dequant_gemm{m = m, n = 64, k = 256}})
end
tap.like(plan:compile{target = "host"}.source, "mul_pair_bf16%(i4_pair_bf16%(", "  and multiplied in pairs")
tap.like(dump, "arrive 'dequant complete'", "slots are free where they have been read")
tap.is(load(plan:script())(plan.graph.program):script(), plan:script(), "the script makes the plan again")
tap.like(plan:script(), 'plan:direct{"dequant"}', "  by one statement")
local before = mr.plan(mr.examples.dequant_gemm{m = 16, n = 64, k = 256}:graph{}, mr.device "a100")
before:direct{"dequant"}
tap.ok(before:script():find "direct" and before:undo() and not before:script():find "direct", "it is undone")

-- Whatever plans there are of it.
random_plans.directs = true
local made = 0
for seed = 1, 15 do
  random_plans.device = ({devices.a100, devices.mi300x, mma_sync})[seed % 3 + 1]
  local drawn, info = random_plans.draw(seed, {"unpacked"}, seed % 2 == 0)
  if info.directs and drawn:script():find "plan:direct" then
    made = made + 1
    random_plans.correct(tap, ("plan %d, %s on %s"):format(seed, info.program, random_plans.device.name), drawn, SEEDS)
  end
end
random_plans.directs = nil
tap.ok(made > 5, "plans at random have it", made)

-- Whatever conversions there are.
local random_conversions = dofile(dir .. "lib/random_conversions.lua")
for seed = 1, 32 do
  random_plans.device = ({devices.a100, devices.mi300x, mma_sync, mr.device "h200"})[seed % 4 + 1]
  local drawn, text = random_conversions.draw(seed, random_plans.device)
  random_plans.correct(tap, ("seed %d on %s: %s"):format(seed, random_plans.device.name, text), drawn, {1})
end

-- Suggestions have it.
local in_order = dofile(dir .. "lib/in_order.lua")
local staged = in_order(mr.device "a100", mr.examples.dequant_gemm{m = 16, n = 4096, k = 4096}, {m = 16, n = 64, k = 256}, 4,
  {a = 3, w = 3, scale = 3})
local _, tried = staged:simulate():why()
local found
for _, change in ipairs(tried) do found = found or change.text:find 'plan:direct{"dequant"}' and change end
tap.ok(found and found.seconds < 0.9 * staged:simulate().seconds, "why() tries it, and it helps", found and found.text)

-- What cannot be.
local function refused(what, pattern, x)
  local good, problems = planned(x):check()
  tap.ok(not good and problems[1].code == "product", what .. ": refused", tostring(problems))
  tap.like(tostring(problems):gsub("%s+", " "), pattern, "  with the reason")
end
local gemm = {bound = mr.examples.dequant_gemm{m = 16, n = 64, k = 256}, tile = {m = 16, n = 64, k = 64}, columns = 4}
local function with_fields(more)
  local x = {}
  for k, v in pairs(gemm) do x[k] = v end
  for k, v in pairs(more) do x[k] = v end
  return x
end
refused("the second operand of an asynchronous product", "asynchronous, and reads the second operand of 'mma' from shared memory itself",
  with_fields{on = "h200", columns = false})
refused("an operand of 32 bits", "it is of tf32, and one of 16 bits can be made there", {on = "a100", warps = 1,
  tile = {m = 16, n = 16, k = 16},
  bound = mr.program("tf32", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B, C = p:input("A", {m, k}, "tf32"), p:input("B", {n, k}, "bf16"), p:output("C", {m, n}, "f32")
    local b = p:load("load_b", B)
    local x = p:task("dequant", function() return (b * 2):to "tf32" end)
    C:store("store_c", p:mma("mma", p:load("load_a", A), x))
  end){m = 16, n = 16, k = 16}})
refused("on another lane", "takes the operand out of registers of its own lane", with_fields{on = "a100", apart = "dequant"})
refused("an operand of a product by threads", "the threads of 'cuda' read operands from shared memory as they multiply 'mma'",
  with_fields{on = "a100", seu = "cuda"})
local function fails(what, message, bound, value, fetched)
  local good, why = pcall(function()
    local p = mr.plan(bound:graph{}, mr.device "a100")
    if fetched then p:fetch(fetched, {value}) end
    p:direct{value}
  end)
  tap.ok(not good and tostring(why):find(message, 1, true), what .. " is refused", tostring(why))
end
fails("what is loaded", "'a' is not made element by element by a task", gemm.bound, "a")
local attention = mr.examples.flash_attention{b = 1, h = 1, m = 64, n = 64, d = 32}
fails("what reduces", "'softmax_2' is not made element by element", attention, "softmax_2")
fails("what no product takes", "'scale' is no operand of a product", two{m = 16, n = 16, q = 2, r = 16}, "scale")
fails("what is fetched", "'dequant' is fetched for 'mma', out of shared memory", gemm.bound, "dequant", "mma")
fails("a carry", "'c' is a carry", gemm.bound, "c")
---- lanes that share the columns ----------------------------------------------------

-- Warps that convert weights hide each other's latencies, but each reads all of A from shared memory, which is shared: the search finds
-- two lanes, and smaller sizes compute the same.
local few = mr.search(mr.examples.dequant_gemm{m = 16, n = 8192, k = 8192}, mr.device "h200", {measure = false})
local slices = 0
for _, t in ipairs(few.plan.tasks) do slices = slices + (t.name:find "^mma" and 1 or 0) end
tap.is(slices, 2, "weights of 16 rows: the search divides the columns among two lanes")
local small = load(few.plan:script())(mr.examples.dequant_gemm{m = 16, n = 192, k = 4096})
tap.ok(small:check(), "and its script holds for smaller sizes")
tap.ok(small:compile{target = "host"}:check{seed = 3}.ok, "which are computed right")

tap.done_testing()
