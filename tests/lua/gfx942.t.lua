-- gfx942, whose warps have 64 threads and whose products give a thread four neighbouring columns: plans for the MI300X
-- have kernels, which are right on the CPU. If clang-22 is there, their texts are compiled for gfx942, as HIP and as C.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")
local shipped = dofile(dir .. "lib/shipped_sizes.lua")
local device = mr.device "mi300x"
random_plans.device = device

local SEEDS <const> = {1, 2}
local PLANS <const> = tonumber(os.getenv "MILLRACE_PLANS" or 40) // 3

local in_order = dofile(dir .. "lib/in_order.lua")
local function all(...) return in_order(device, ...) end

local plan = all(mr.examples.gemm{m = 64, n = 64, k = 96}, {m = 64, n = 64, k = 32}, 4, {a = 2, b = 2})
local dump = tostring(plan:kernel{})
tap.like(dump, "product r_c%[0%] %+= a%d+ x b%d+, bf16, mfma 16x16, 4 at once", "products are the machine's")
tap.like(dump, ": 320 threads, .*lanes meet at the block's barrier, 1 time in an iteration.*lane p0: warps 4 to 4",
  "how lanes wait is said, and a warp has 64 threads")

-- As text.
local hip = plan:compile{text = true}
tap.is(hip.target, "hip", "a plan for the MI300X is compiled to HIP unless one says otherwise")
tap.like(hip.source, "__builtin_amdgcn_mfma_f32_16x16x16bf16_1k", "... with its products")
tap.like(tostring(hip), "HIP, text alone, not measured by us", "... of which is said that it was not measured")
tap.is(plan:kernel{}.target, "hip", "so is the role program's target")
local function refuses(what, ...)
  local good, message = pcall(...)
  tap.ok(not good and tostring(message):find(what, 1, true), what, message)
end
refuses([[compile: kernels for 'mi300x' are HIP, not CUDA: say target="hip", or target="host" to run them on the CPU]],
  plan.compile, plan, {target = "cuda", text = true})
refuses([[compile: kernels for 'h200' are CUDA, not HIP: say target="cuda", or target="host" to run them on the CPU]],
  plan.compile, mr.load_plan "gemm_cooperative", {target = "hip"})
for _, method in ipairs{"run", "check", "bench", "trace", "export"} do
  refuses(method .. ": this kernel is text alone; compile it without text=true", hip[method], hip, method == "export" and "." or nil)
end

local BIN <const> = "/usr/lib/llvm-22/bin/"
local has_clang = os.execute("clang-22 --version >/dev/null 2>&1")
local has_objdump = os.execute(BIN .. "llvm-objdump --version >/dev/null 2>&1")
local as_c <const> = "clang-22 -x c --target=amdgcn-amd-amdhsa -mcpu=gfx942 -O3 -std=c11 -ffreestanding -nogpulib -w -o "
local scratch = os.tmpname()
if not has_clang then
  refuses("compile: HIP needs clang (clang-22, or ROCm's) or hiprtc (libhiprtc.so), and neither is there", plan.compile, plan)
end

-- How many of these instructions the code object has.
local function count(object, instruction)
  local pipe = io.popen(("%sllvm-objdump -d %s | grep -c '^\t%s'"):format(BIN, object, instruction))
  local n = tonumber(pipe:read "a")
  pipe:close()
  return n
end

-- Compiled by clang: nothing in scratch memory, and the same as C.
local function compiles(what, p, products, form, sums, type)
  if not has_clang then return tap.ok(true, what .. ": compiled for gfx942 # SKIP there is no clang-22") end
  local good, k = pcall(p.compile, p)
  if not tap.ok(good, what .. ": compiled as HIP", k) then return end
  tap.ok(k.registers > 0 and k.spills == 0, ("  %d registers, nothing in scratch memory"):format(k.registers), k.spills)
  local file = assert(io.open(scratch, "w"))
  file:write(k.source)
  file:close()
  tap.ok(os.execute(("%s%s.co %s 2>%s.log"):format(as_c, scratch, scratch, scratch)), "  and as C",
    assert(io.open(scratch .. ".log")):read(2000))
  if has_objdump then
    tap.is(count(scratch .. ".co", "scratch_"), 0, "  whose code has no access to scratch memory")
    tap.is(count(scratch .. ".co", "flat_"), 0, "  or to memory of an unknown kind")
    if products then
      local name = ("v_mfma_%s_%s_%s"):format(sums or "f32", form or "16x16x16", type or "bf16")
      tap.is(count(scratch .. ".co", name), products, "  and as many products as unrolled")
    end
  end
end

-- What clang makes of a text is executed, instruction by instruction; so are the definitions in front of it. These take a
-- few seconds each, and all have been tried.
local on_waves = dofile(dir .. "lib/on_waves.lua")
local has_python = os.execute("python3 --version >/dev/null 2>&1")
local executed = {}
for name in ("gemm flash_attention topk_routing dequant_gemm cross_entropy grouped_gemm fp4_gemm conv2d chunk_state"):gmatch "%S+" do
  executed[name] = true
end
local function executes(what, p)
  if not executed[p.graph.program.name] then return end
  if not (has_clang and has_objdump and has_python) then
    return tap.ok(true, what .. ": executed # SKIP there is no clang-22, llvm-objdump or python3")
  end
  local wrong = on_waves.wrong(p, 1)
  tap.ok(not wrong, what .. ": its machine code is right", wrong)
end
-- A warp has 16 rows and four groups of columns, and two steps of 16.
compiles("gemm", plan, 8)
-- Products of the wide form, where all of a kernel's products make complete blocks of 32 x 32.
local wide = all(mr.examples.gemm{m = 128, n = 64, k = 96}, {m = 128, n = 64, k = 32}, 4, {a = 2, b = 2})
tap.like(tostring(wide:kernel{}), "bf16, mfma 32x32, 2 at once", "complete blocks of 32 rows and columns are made by half as many products")
compiles("wide gemm", wide, 8, "32x32x8")
random_plans.correct(tap, "wide gemm", wide, SEEDS)
-- Operands of two products are fetched at once, 16 bytes a thread, where a tile has a multiple of both steps, and registers suffice.
local function fetched(p)
  return tostring(p:kernel{}):match "product r_c%[0%] %+= [^\n]+" or "no product", select(2, p:compile{text = true}.source:gsub("shared_16%(&[ab]%d", ""))
end
do
  local both, n = fetched(wide)
  tap.like(both, "2 at once, 2 steps", "16 bytes are fetched for two products")
  tap.ok(n > 0 and n == select(2, fetched(all(mr.examples.gemm{m = 64, n = 64, k = 64}, {m = 64, n = 64, k = 32}, 4))),
    "  of the narrow form, too", n)
  for what, p in pairs{
    ["an odd number of steps"] = all(mr.examples.gemm{m = 64, n = 64, k = 96}, {m = 64, n = 64, k = 48}, 4),
    ["a ragged tile that ends within 16 bytes"] = all(mr.examples.gemm{m = 64, n = 64, k = 36}, {m = 64, n = 64, k = 32}, 4),
    ["an operand across rows"] = all(mr.examples.gemm{m = 64, n = 64, k = 64, b = "kn"}, {m = 64, n = 64, k = 32}, 4)} do
    tap.is(select(2, fetched(p)), 0, "  not of " .. what)
    random_plans.correct(tap, "  but right: " .. what, p, SEEDS)
  end
  local tight = all(mr.examples.gemm{m = 256, n = 256, k = 64}, {m = 128, n = 128, k = 32}, 4)
  local before = select(2, fetched(tight))
  tight:lane("c0", {spare = 400})
  tap.ok(before > 0 and select(2, fetched(tight)) == 0, "  not where the lane leaves its registers to the compiler", before)
end
-- Of eight warps in four columns each has 128 x 64 of a 256 x 256 tile: for 32 products it fetches 8 + 4 times 16 bytes of a thread, and
-- not 2 + 16 times as with rows of its own.
do
  local function fetches(columns)
    local p = mr.plan(mr.examples.gemm{m = 512, n = 512, k = 512}:graph{tile = {m = 256, n = 256, k = 32}}, device)
    p:lane("c0", {warps = 8, columns = columns})
    for _, t in ipairs(p.tasks) do p:append(t.name, {lane = "c0", seu = t.kind == "load" and "valu" or nil}) end
    p:fill_waits()
    compiles(("256 x 256 on 8 warps, %s"):format(columns and columns .. " columns" or "rows alone"), p, 32, "32x32x8")
    return has_clang and has_objdump and count(scratch .. ".co", "ds_read_b128")
  end
  local rows, columns = fetches(), fetches(4)
  tap.ok(not rows or rows == 18 and columns == 12, "warps in columns fetch less", rows, columns)
end
-- Rows of an operand that another lane computes have anything beyond the end of the contracted axis: zeros are fetched there.
do
  local doubled = mr.program("doubled", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32")
    local acc = p:carry("acc", {m, n}, 0)
    p:loop(k, function()
      local a, b = p:load("load_a", A), p:load("load_b", B)
      acc:add(p:mma("mma", p:task("double", function() return (a:to "f32" * 2):to "bf16" end), b))
    end)
    C:store("store", acc)
  end)
  for _, k in ipairs{64, 40} do
    local p = mr.plan(doubled{m = 64, n = 32, k = k}:graph{tile = {m = 64, n = 32, k = 32}}, device)
    p:lane("c0", {warps = 2})
    p:lane("c1", {warps = 2})
    for _, t in ipairs(p.tasks) do p:append(t.name, {lane = t.kind == "load" and "p0" or t.name == "double" and "c1" or "c0"}) end
    p:fill_waits()
    tap.ok(select(2, fetched(p)) > 0 and (k == 64) == (p:compile{text = true}.source:find("else EACH(i, 4) (&a", 1, true) == nil),
      ("16 bytes of what a lane computes, k = %d"):format(k))
    random_plans.correct(tap, "  right", p, SEEDS)
  end
end
-- Threads of a lane with all of the block's meet at the block's barrier. So do several lanes that execute one loop; others signal
-- by flags, which are counters, and the threads of each of them meet at a counter.
do
  local function loaded_by(lane, warps, program)
    local p = mr.plan((program or mr.examples.gemm{m = 64, n = 64, k = 96}):graph{tile = {m = 64, n = 64, k = 32}}, device)
    p:lane("c0", {warps = 2})
    if lane ~= "c0" then p:lane(lane, {warps = 2, replicas = warps}) end
    for _, t in ipairs(p.tasks) do p:append(t.name, {lane = t.kind == "load" and lane or "c0", seu = t.kind == "load" and "valu" or nil}) end
    p:fill_waits()
    random_plans.correct(tap, "loads on lane " .. lane, p, SEEDS)
    local text = p:compile{text = true}.source:match "\nKERNEL%(.*"
    return select(2, text:gsub("BLOCK_SYNC", "")), select(2, text:gsub("lane_sync%(", "")), select(2, text:gsub("flag_wait%(", "")),
      tostring(p:kernel{})
  end
  local blocks, counters, flags = loaded_by "c0"
  tap.ok(blocks > 1 and counters == 0 and flags == 0, "the lane with all threads takes the block's barrier", blocks, counters, flags)
  blocks, counters, flags = loaded_by "p0"
  tap.ok(blocks > 1 and counters == 0 and flags == 0, "so do two lanes that execute one loop", blocks, counters, flags)
  local function dump_of(...) return (select(4, loaded_by(...))) end
  tap.like(dump_of("p0", 2), "2 arrivals.-flags are counters, which waiting warps read again and again: lanes are at different tiles",
    "lanes with replicas do not")
  local lengths = dofile(dir .. "lib/length_programs.lua")
  tap.like(dump_of("p0", 1, lengths.groups{m = 64, n = 64, k = 64, g = 3, a = "mk", b = "nk"}), "again: ", "nor those whose loop may end early")
end
executes("wide gemm, executed", all(mr.examples.gemm{m = 64, n = 32, k = 40, dtype = "f16"}, {m = 64, n = 32, k = 32}, 2))
local wide_attention = all(mr.examples.flash_attention{b = 1, h = 1, m = 64, n = 64, d = 64}, {m = 64, n = 32}, 2)
tap.like(tostring(wide_attention:kernel{}), "r_mma_qk.-mfma 32x32, 1 at once.-r_o%[0%] %+= r_softmax.-mfma 32x32, 2 at once",
  "sums of the wide form are the first operand of the next product as they lie")
random_plans.correct(tap, "wide attention", wide_attention, SEEDS)
executes("wide attention", wide_attention)
for _, g in ipairs{{m = 96, n = 64, tile = 96, warps = 2}, {m = 64, n = 48, tile = 64, warps = 2}} do
  tap.like(tostring(all(mr.examples.gemm{m = g.m, n = g.n, k = 32}, {m = g.tile, n = g.n, k = 32}, g.warps):kernel{}),
    "mfma 16x16", ("%d x %d on two warps is not made of complete blocks"):format(g.m, g.n))
end
executes("gemm with gelu", all(mr.examples.gemm{m = 40, n = 32, k = 64, bias = true, activation = "gelu"},
  {m = 32, n = 32, k = 32}, 2))

-- Operands of 8 bits, of which a thread has eight neighbours: sums of integers are exact. With strides of which a word has no
-- neighbours the operands come element by element.
for _, g in ipairs{
  {{m = 64, n = 64, k = 128}, {m = 64, n = 48, k = 64}, 4, "i8, mfma 16x16, 3 at once", 6, "16x16x32"},
  {{m = 64, n = 64, k = 128}, {m = 64, n = 64, k = 64}, 2, "i8, mfma 32x32, 2 at once", 8, "32x32x16"},
  {{m = 40, n = 36, k = 80, b = "kn"}, {m = 48, n = 48, k = 40}, 3, "i8, mfma 16x16, 3 at once", 6, "16x16x32"},
  {{m = 33, n = 17, k = 19}, {m = 33, n = 17, k = 19}, 2, "i8, mfma 16x16, 4 at once", 4, "16x16x32"},
} do
  local sizes, tile, warps, form, products, name = table.unpack(g)
  sizes.dtype, sizes.out = "i8", "i32"
  local bytes = all(mr.examples.gemm(sizes), tile, warps, {a = 2, b = 2})
  local what = ("bytes %d x %d x %d on %d warps"):format(sizes.m, sizes.n, sizes.k, warps)
  tap.like(tostring(bytes:kernel{}), form, what)
  compiles(what, bytes, products, name, "i32", "i8")
  random_plans.correct(tap, what, bytes, SEEDS)
  executes(what, bytes)
end

-- Floats of 8 bits. The machine has another encoding of them, to which operands of e4m3 are converted in registers; those of e5m2
-- are multiplied as f16.
local function of_small(sizes, tile, warps)
  return all(mr.program("of_small", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B, C = p:input("A", {m, k}, sizes.a), p:input("B", {n, k}, sizes.b), p:output("C", {m, n}, "f32")
    local c = p:carry("c", {m, n}, 0)
    p:loop(k, function() c:add(p:mma("mma", p:load("a", A), p:load("b", B))) end)
    C:store("st", c)
  end){m = sizes.m, n = sizes.n, k = sizes.k}, tile, warps, {a = 2, b = 2})
end
executed.of_small = true
for _, g in ipairs{
  {{m = 64, n = 32, k = 128, a = "e4m3", b = "e4m3"}, {m = 64, n = 32, k = 64}, 4, 4, "16x16x32", "fp8_fp8"},
  {{m = 64, n = 64, k = 128, a = "e4m3", b = "e4m3"}, {m = 64, n = 64, k = 64}, 2, 8, "32x32x16", "fp8_fp8"},
  {{m = 40, n = 20, k = 50, a = "e4m3", b = "e4m3"}, {m = 40, n = 20, k = 50}, 2, 8, "16x16x32", "fp8_fp8"},
  {{m = 64, n = 32, k = 128, a = "e5m2", b = "e5m2"}, {m = 64, n = 32, k = 64}, 4, 8, "16x16x16", "f16"},
  {{m = 64, n = 64, k = 128, a = "e5m2", b = "e4m3"}, {m = 64, n = 64, k = 64}, 2, 16, "32x32x8", "f16"},
  {{m = 32, n = 32, k = 64, a = "e4m3", b = "e5m2"}, {m = 32, n = 32, k = 64}, 2, 8, "16x16x16", "f16"},
} do
  local sizes, tile, warps, products, form, type = table.unpack(g)
  local small = of_small(sizes, tile, warps)
  local what = ("%s x %s, %d x %d x %d"):format(sizes.a, sizes.b, sizes.m, sizes.n, sizes.k)
  compiles(what, small, products, form, "f32", type)
  random_plans.correct(tap, what, small, SEEDS)
  executes(what, small)
end
-- All bytes, as products get them, and as casts make them.
if has_clang then
  local text, file = {}, assert(io.open(scratch, "w"))
  local source = of_small({m = 16, n = 16, k = 32, a = "e4m3", b = "e4m3"}, {m = 16, n = 16, k = 32}, 1):compile{text = true}.source
  for _, name in ipairs{"#define memcpy", "#define fabsf", "#define fmaxf", "#define fminf", "DEV u32 float_bits", "DEV float bits_float",
      "DEV int max_of", "DEV float from_f16", "DEV int to_nearest"} do
    text[#text + 1] = source:match("(" .. name .. "[^\n]*\n)")
  end
  for _, name in ipairs{"DEV u8 to_small", "DEV u32 e4m3_fnuz", "DEV u32 e4m3_halves", "DEV float from_e4m3"} do
    text[name] = source:match("(" .. name .. ".-\n}\n)")
  end
  for _, name in ipairs{"DEV u8 to_e4m3", "DEV u8 to_e5m2", "DEV u32 e5m2_halves", "DEV float from_e5m2"} do
    text[name] = source:match("(" .. name .. "[^\n]*\n)")
  end
  file:write(table.concat(text), text["DEV u8 to_small"], text["DEV u8 to_e4m3"], text["DEV u8 to_e5m2"], text["DEV u32 e4m3_fnuz"],
    text["DEV u32 e5m2_halves"], text["DEV u32 e4m3_halves"], text["DEV float from_e4m3"], text["DEV float from_e5m2"])
  file:close()
  local command <const> = "clang-22 -O1 -w '-DDEFINITIONS=\"%s\"' -o %s.co %slib/gfx942_small.c -lm >%s.log 2>&1 && %s.co"
  local pipe = io.popen(command:format(scratch, scratch, dir, scratch, scratch))
  tap.is(pipe:read "a", "0", "all bytes of e4m3 and e5m2 are what they should be: multiplied, and cast")
  pipe:close()
end

for _, g in ipairs{
  {{m = 64, n = 64, k = 64}, {m = 64, n = 64, k = 32}, 4},
  {{m = 128, n = 256, k = 128}, {m = 128, n = 128, k = 64}, 8},
  {{m = 100, n = 72, k = 100, b = "kn"}, {m = 48, n = 48, k = 32}, 1},
  {{m = 40, n = 24, k = 40, dtype = "f16"}, {m = 40, n = 24, k = 40}, 2},
  {{m = 33, n = 17, k = 19, out = "f32"}, {m = 33, n = 17, k = 19}, 3},
  {{m = 70, n = 50, k = 36, b = "kn", bias = true, activation = "gelu"}, {m = 32, n = 16, k = 12}, 2},
} do
  local sizes, tile, warps = table.unpack(g)
  random_plans.correct(tap, ("gemm %d x %d x %d on %d warps"):format(sizes.m, sizes.n, sizes.k, warps),
    all(mr.examples.gemm(sizes), tile, warps), SEEDS)
end
for _, a in ipairs{
  {{b = 1, h = 1, m = 64, n = 64, d = 64}, {m = 64, n = 64}, 4},
  {{b = 1, h = 2, m = 100, n = 72, d = 40}, {m = 32, n = 32}, 2},
  {{b = 1, h = 1, m = 130, n = 130, d = 64, causal = true}, {m = 64, n = 32}, 4},
  {{b = 1, h = 1, m = 50, n = 90, d = 24, dtype = "f16"}, {m = 16, n = 48}, 1},
} do
  local sizes, tile, warps = table.unpack(a)
  random_plans.correct(tap, ("attention %d x %d x %d on %d warps"):format(sizes.m, sizes.n, sizes.d, warps),
    all(mr.examples.flash_attention(sizes), tile, warps), SEEDS)
end

-- Every program, by the plan that a search finds.
for _, name in ipairs((dofile(dir .. "lib/example_names.lua"))) do
  local found, why = mr.search(mr.examples[name](shipped[name][1]), device, {measure = false, trials = 5})
  if tap.ok(found, name .. ": the search finds a plan", why) then
    random_plans.correct(tap, name, found.plan, {1})
    compiles("  " .. name, found.plan)
    executes("  " .. name, found.plan)
  end
end

-- Whatever plans there are.
for seed = 1, PLANS do
  local drawn, info = random_plans.draw(seed, nil, seed % 2 == 0, seed % 5 == 0)
  random_plans.correct(tap, ("plan %d, %s"):format(seed, info.program), drawn, SEEDS)
end

for _, ending in ipairs{"", ".co", ".log"} do os.remove(scratch .. ending) end
tap.done_testing()
