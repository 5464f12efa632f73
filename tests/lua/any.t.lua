-- any.t.lua - sizes that are known at launch (mr.any): one kernel for all of them is compared with the reference at the least,
-- the largest and ragged sizes, of shipped programs, of others, and of random ones; wrong sizes, refusals, scripts, predictions;
-- a kernel without a guard is found.
--
--   millrace any.t.lua [cuda] [FIRST LAST]     kernels run on the CPU, or on a device; random programs of these numbers alone
local mr = require "millrace"
local core = require "millrace.core"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")
local random_programs = dofile(dir .. "lib/random_programs.lua")
local any, examples, dev = mr.any, mr.examples, mr.device "h200"
local target = arg[1] == "cuda" and table.remove(arg, 1) or "host"

local function sizes_text(sizes)
  local list = {}
  for axis, n in pairs(sizes) do list[#list + 1] = ("%s=%d"):format(axis, n) end
  table.sort(list)
  return table.concat(list, " ")
end

-- A plan in the program's order, in whose lanes and grid `build` may have a say.
local function plan_of(bound, tile, build)
  local plan = mr.plan(bound:graph{tile = tile}, dev)
  if build then build(plan) end
  for _, t in ipairs(plan.tasks) do
    if not t.entry then pcall(plan.append, plan, t.name) end
  end
  plan:fill_waits()
  return plan
end

-- One kernel of the plan is right at all sizes, the odd ones with an eye on races.
local function right(what, plan, list)
  local good, problems = plan:check()
  if not tap.ok(good, what .. ": the plan is legal", tostring(problems)) then return end
  local k = plan:compile{target = target}
  for i, sizes in ipairs(list) do
    local ran, found = pcall(k.check, k, {sizes = sizes, seed = i, race = i % 2 == 1})
    tap.ok(ran and found.ok, ("%s, %s"):format(what, sizes_text(sizes)), tostring(found))
  end
  return k
end

---- products: each axis, and all of them ------------------------------------------

local function gemm(what, sizes, list, tile)
  return right("gemm, " .. what, plan_of(examples.gemm:bind(sizes), tile or {m = 64, n = 64, k = 64}), list)
end

if not arg[1] then

local rows = gemm("any m", {m = any{max = 320}, n = 64, k = 96}, {{m = 1}, {m = 64}, {m = 320}, {m = 100}, {m = 319}})
gemm("m a multiple of 8", {m = any{max = 320, multiple = 8}, n = 64, k = 96}, {{m = 8}, {m = 72}, {m = 320}})
gemm("any n", {m = 72, n = any{max = 200}, k = 96}, {{n = 1}, {n = 7}, {n = 64}, {n = 200}, {n = 131}})
gemm("n a multiple of 8", {m = 72, n = any{max = 200, multiple = 8}, k = 96}, {{n = 8}, {n = 64}, {n = 200}, {n = 136}})
gemm("any k", {m = 72, n = 64, k = any{max = 200}}, {{k = 1}, {k = 7}, {k = 64}, {k = 65}, {k = 200}})
gemm("k a multiple of 16", {m = 72, n = 64, k = any{max = 208, multiple = 16}}, {{k = 16}, {k = 48}, {k = 64}, {k = 208}})
gemm("all", {m = any{max = 130}, n = any{max = 140}, k = any{max = 150}},
  {{m = 1, n = 1, k = 1}, {m = 130, n = 3, k = 64}, {m = 65, n = 140, k = 149}, {m = 130, n = 140, k = 150}})
gemm("all multiples of 64", {m = any{max = 128, multiple = 64}, n = any{max = 128, multiple = 64}, k = any{max = 192, multiple = 64}},
  {{m = 64, n = 64, k = 64}, {m = 128, n = 64, k = 192}, {m = 64, n = 128, k = 128}})
gemm("transposed", {m = any{max = 128, multiple = 8}, n = any{max = 128, multiple = 8}, k = any{max = 128, multiple = 8}, a = "km", b = "kn",
  bias = true, out = "f32"}, {{m = 8, n = 8, k = 8}, {m = 72, n = 128, k = 40}, {m = 128, n = 64, k = 128}})

-- Tiles that all sizes fill need no guards.
local function guards(multiple)
  local plan = plan_of(examples.gemm:bind{m = any{max = 256, multiple = multiple}, n = 60, k = 64}, {m = 64, n = 64, k = 64})
  local _, n = plan:compile{target = "cuda", text = true}.source:gsub("size_m", "")
  return n
end
tap.ok(guards(8) > guards(64), "a multiple of the tile leaves guards out", guards(8), guards(64))

tap.is(tostring(rows):match "[^\n]*", ("kernel of gemm for %s, any m up to 320"):format(
  target == "host" and "the CPU" or "h200"), "a kernel says for which sizes it is")

-- Sizes of the arrays.
local bound = rows.plan.graph.program
local inputs = bound:at_sizes{m = 100}:inputs()
tap.is(tostring(rows:run(inputs).C):match "{.-}", "{100, 64}", "the arrays' shapes say the size")
tap.is(tostring(rows:run(inputs, {m = 100}).C):match "{.-}", "{100, 64}", "a size may be given, too")
tap.is(select(2, pcall(rows.run, rows, inputs, {m = 99})):match "run: .*", "run: input 'A' has shape {100, 96}, the program wants {99, 96}",
  "a size that is not that of the arrays")

-- Grids: clusters along the axis and across it, other orders, few EUs.
for _, raster in ipairs{"rows", "columns"} do
  for cluster = 1, 2 do
    right(("a grid by %s in clusters of %d"):format(raster, cluster), plan_of(examples.gemm:bind{m = any{max = 640, multiple = 8},
      n = 256, k = 64}, {m = 64, n = 64, k = 64}, function(plan)
        plan:lane("p0", {})
        plan:grid{eus = 8, raster = raster, group = 3, cluster = cluster}
        plan:buffers{a = 2, b = 2}
      end), {{m = 8}, {m = 640}, {m = 328}, {m = 128}})
  end
end

---- rows, attention ----------------------------------------------------------------

local softmax = mr.program("softmax", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}, "f32"), p:output("Y", {m, n}, "f32")
  local top, sum = p:carry("top", {m}, -math.huge), p:carry("sum", {m}, 0)
  p:loop(n, function()
    local x = p:load("load_x", X)
    p:task("sums", function()
      local new = mr.max(top, mr.rowmax(x, n))
      sum:set(sum * mr.exp(top - new) + mr.rowsum(mr.exp(x - new), n))
      top:set(new)
    end)
  end)
  p:loop(n, function()
    local x = p:load("load_again", X)
    Y:store(p:task("weights", function() return mr.exp(x - top) / sum end))
  end)
end)
local weights = right("softmax of rows", plan_of(softmax:bind{m = any{max = 100}, n = any{max = 200}}, {m = 16, n = 64}),
  {{m = 1, n = 1}, {m = 16, n = 64}, {m = 100, n = 200}, {m = 33, n = 129}, {m = 99, n = 63}})
right("softmax of rows, 4 columns at once", plan_of(softmax:bind{m = any{max = 100}, n = any{max = 200, multiple = 4}}, {m = 16, n = 64}),
  {{m = 1, n = 4}, {m = 16, n = 64}, {m = 100, n = 200}, {m = 33, n = 132}})

local attention = examples.flash_attention
right("attention, any queries", plan_of(attention:bind{b = 1, h = 2, m = any{max = 192}, n = 160, d = 64}, {m = 64, n = 64}),
  {{m = 1}, {m = 64}, {m = 192}, {m = 77}})
right("attention, any keys", plan_of(attention:bind{b = 1, h = 2, m = 100, n = any{max = 192}, d = 64}, {m = 64, n = 64}),
  {{n = 1}, {n = 64}, {n = 192}, {n = 77}})
right("attention, any batch", plan_of(attention:bind{b = any{max = 3}, h = 2, m = 70, d = 64}, {m = 64, n = 64}), {{b = 1}, {b = 2}, {b = 3}})
local causal = attention:bind{b = 1, h = 2, m = any{max = 192, typical = {64, 100}}, n = any{like = "m"}, d = 64, causal = true}
right("causal attention", plan_of(causal, {m = 64, n = 32}, function(plan) plan:grid{longest_first = true, eus = 2} end),
  {{m = 1}, {m = 64}, {m = 192}, {m = 77}, {m = 161}})
right("attention in a window", plan_of(attention:bind{b = 1, h = 1, m = any{max = 192}, n = any{like = "m"}, d = 64, causal = true,
  window = 70}, {m = 64, n = 32}), {{m = 1}, {m = 64}, {m = 192}, {m = 77}})

---- two phases, loads by values, additions, a loop over two axes, batch loops --------

local two = mr.program("two", function(p)
  local m, n = p:axes("m", "n")
  local X, I, S, Y = p:input("X", {n, m}), p:input("I", {m}, "i32"), p:temp("S", {n, m}, "f32"), p:output("Y", {m, n}, "f32")
  p:phase("first", function()
    local x = p:load("load_x", X)
    S:store(p:task("twice", function() return x:to "f32" * 2 end))
  end)
  p:phase("second", function()
    local i = p:load("load_i", I)
    Y:store(p:load("load_s", S, {n, i}), {m, n})
  end)
end)
right("two phases, rows by values", plan_of(two:bind{m = any{max = 80}, n = any{max = 100}}, {m = 16, n = 32}),
  {{m = 1, n = 1}, {m = 80, n = 100}, {m = 17, n = 33}, {m = 64, n = 64}})

local pairs_of = mr.program("pairs", function(p)
  local g, m, n = p:axes("g", "m", "n")
  local X, Y = p:input("X", {g, m, n}, "f32"), p:output("Y", {g}, "f32")
  p:batch(g)
  local sum = p:carry("sum", {}, 0)
  p:loop({m, n}, function()
    local x = p:load("load_x", X)
    p:task("add", function() sum:add(mr.rowsum(mr.rowsum(x, n), m)) end)
  end)
  Y:store(p:task("all", function() return sum * 1 end))
end)
right("a loop over two axes", plan_of(pairs_of:bind{g = any{max = 3}, m = any{max = 40}, n = any{max = 50}}, {m = 16, n = 32}),
  {{g = 1, m = 1, n = 1}, {g = 3, m = 40, n = 50}, {g = 2, m = 17, n = 32}, {g = 1, m = 16, n = 33}})

local lengths = mr.program("lengths", function(p)
  local g, m, n = p:axes("g", "m", "n")
  local X, L, Y = p:input("X", {g, m, n}, "f32"), p:input("L", {g}, "i32"), p:output("Y", {g, m}, "f32")
  p:batch(g)
  local sum = p:carry("sum", {m}, 0)
  p:loop(n, {length = p:load("load_l", L)}, function()
    local x = p:load("load_x", X)
    p:task("add", function() sum:add(mr.rowsum(x, n)) end)
  end)
  Y:store(p:task("all", function() return sum * 1 end))
end)
right("lengths within sizes", plan_of(lengths:bind{g = any{max = 4}, m = any{max = 20}, n = any{max = 50}}, {m = 16, n = 16}),
  {{g = 1, m = 1, n = 1}, {g = 4, m = 20, n = 50}, {g = 3, m = 16, n = 33}, {g = 2, m = 7, n = 16}})

---- a kernel without a guard ---------------------------------------------------------

if target == "host" then
local text = weights.source
tap.ok(text:find "size_m" and text:find "size_n", "guards ask for the sizes")
for what, pattern in pairs{["rows end"] = "< size_m", ["columns end"] = "< size_n"} do
  local spoiled = core.build(weights.plan, true, function(source)
    return (source:gsub(pattern, "< 1000000"))
  end, nil, "host")
  local ran, found = pcall(spoiled.check, spoiled, {sizes = {m = 33, n = 129}, race = true})
  tap.ok(not (ran and found.ok), "a kernel that does not see where " .. what .. " is wrong", tostring(found))
end
local stuck = core.build(weights.plan, true, function(source) return (source:gsub("%(size_n %+ 63%) / 64", "1")) end, nil, "host")
local ran, found = pcall(stuck.check, stuck, {sizes = {m = 33, n = 100}})
tap.ok(not (ran and found.ok), "a kernel that makes too few iterations is wrong", tostring(found))
end

---- errors -----------------------------------------------------------------------------

local function refused(f, pattern, what)
  local passed, message = pcall(f)
  tap.ok(not passed and tostring(message):find(pattern, 1, true), what, tostring(message))
end
refused(function() rows:check{m = 321} end, "check: m is 321, and the program is for 1 to 320; bind the program with a larger max", "too large")
refused(function() rows:check{m = 0} end, "check: m is 0, and the program is for 1 to 320", "nothing")
refused(function() rows:check{m = 0} end, "for 1 to 320; give at least 1", "nothing needs no larger max")
refused(function() examples.gemm:bind{m = {16, 512}, n = 64, k = 64} end, "mr.any{max=512, typical={16, 512}} leaves it to the launch",
  "a list of sizes")
refused(function() any{max = 8, min = 1} end, "unknown option 'min' (known: max, multiple, typical, like)", "options that it has")
refused(function() any{max = 2000, typical = 1000} end, "any: typical is a list of sizes, as in typical={1000}, got 1000",
  "one typical size is a list, too")
refused(function() rows:check{m = 1.5} end, "check: the size of axis 'm' must be an integer", "no integer")
refused(function() rows:check{sizes = {n = 65}} end, "check: n is 65, and the program is for 64", "a size that was bound")
refused(function() rows:check{sizes = {x = 65}} end, "check: unknown axis 'x'", "no axis")
refused(function() rows:check{x = 65} end, "check: unknown option 'x'", "no option")
refused(function() bound:at_sizes{m = 400} end, "at_sizes: m is 400, and the program is for 1 to 320", "a program at a size it is not for")
refused(function() examples.gemm:bind{m = any{max = 320, multiple = 64}, n = 64, k = 64}:at_sizes{m = 100} end,
  "at_sizes: m is 100, and the program is for multiples of 64; fill it up to 128", "no multiple")
refused(function() any{max = 7, multiple = 2} end, "any: max is 7, which is no multiple of 2", "max is a multiple")
refused(function() any{max = 8, typical = {9}} end, "any: a typical size is 9", "typical sizes are possible ones")
refused(function() any{} end, "any: max is missing", "max is missing")
refused(function() any{max = 8, most = 9} end, "any: unknown option 'most'", "an unknown option")
refused(function() any{like = "m", max = 8} end, "any: max, multiple and typical sizes are those of axis 'm'", "like= says all")
tap.is(any{multiple = 8, typical = {16, 64}}.max, 64, "the largest typical size is max")
refused(function() attention:bind{b = 1, h = 1, m = any{max = 64}, d = 64} end, "axis 'n': it is not the same for m=1 as for m=64",
  "an axis that is made of a size")
refused(function() attention:bind{b = 1, h = 1, m = any{max = 64}, n = any{max = 64}, d = 64, causal = true} end,
  "it is not the same for", "axes that go together")
refused(function() attention:bind{b = 1, h = 1, m = 64, d = any{max = 64}} end, "task 'load_q' needs all of axis 'd' in every tile",
  "an axis that every tile has all of")
refused(function()
  mr.program("mean", function(p)
    local m, n = p:axes("m", "n")
    local X, Y, sum = p:input("X", {m, n}), p:output("Y", {m}), p:carry("sum", {m}, 0)
    p:loop(n, function() sum:add(mr.rowsum(p:load(X):to "f32", n)) end)
    Y:store((sum / n.size):to "bf16")
  end):bind{m = 64, n = any{max = 64}}
end, "this constant is 1 for n=1 and 64 for n=64, but one kernel serves all sizes; compute it from an input or from axis:index()",
  "a constant that is made of a size")
local function carried(what)
  return mr.program("carried", function(p)
    local m, k = p:axes("m", "k")
    local X, Y = p:input("X", {m, k}, "f32"), p:output("Y", {m}, "f32")
    local sum = p:carry("sum", {m}, what == "value" and k.size or 0)
    local other = what == "axes" and p:carry("other", k.size == 64 and {m} or {}, 0) or p:carry("other", {m}, 0)
    p:loop(k, function()
      local x = p:load("load_x", X)
      p:task("add", function() sum:add(mr.rowsum(x, k)) end)
    end)
    Y:store(p:task("all", function() return sum + other end))
  end):bind{m = 64, k = any{max = 256, multiple = 64}}
end
refused(function() carried "value" end, "the first value of carry 'sum' is 64 for k=64 and 256 for k=256, but one kernel serves all sizes",
  "a carry that begins with a size")
refused(function() carried "axes" end, "carry 'other': it is not the same for k=64 as for k=256", "a carry whose axes are made of a size")
tap.ok(pcall(carried), "and one of which nothing is")
refused(function()
  mr.program("last", function(p)
    local n = p:axes("n")
    local A, Y = p:input("A", {n}, "f32"), p:output("Y", {n}, "f32")
    Y:store(p:load("load_a", A) + (p.n == 128 and 1 or 2))
  end):bind{n = any{max = 128}}
end, "this constant is 1 for n=128 and 2 for n=128", "a constant that compares a size with the largest")
refused(function()
  mr.program("batched", function(p)
    local g, m = p:axes("g", "m")
    local A, Y = p:input("A", {g, m}, "f32"), p:output("Y", {g, m}, "f32")
    if g.size > 2 then p:batch(g) end
    Y:store(p:load("load_a", A) * 2)
  end):bind{g = any{max = 8}, m = 64}
end, "p:batch of axis 'g': it is not the same for g=1 as for g=8", "an axis that is a batch axis at some sizes")
refused(function()
  mr.program("sorted", function(p)
    local m, n = p:axes("m", "n")
    local A, I, Y = p:input("A", {n, m}, "f32"), p:input("I", {m}, "i32", {sorted = m.size > 8}), p:output("Y", {m}, "f32")
    Y:store(p:load("load_a", A, {p:load("load_i", I), m}))
  end):bind{m = any{max = 64}, n = 16}
end, "tensor 'I': it is not the same for m=1 as for m=64", "an input that is promised to ascend at some sizes")
refused(function() mr.program("p", function(p) p:axis("m", p.n + 1) end):bind{n = any{max = 4}} end,
  "a size that is known at launch is no number to compute with", "a size is no number")

---- scripts, listings, predictions -------------------------------------------------------

local plan = plan_of(causal, {m = 64, n = 64})
local path = os.tmpname()
local f = assert(io.open(path, "w"))
f:write(plan:script())
f:close()
tap.is(mr.load_plan(path):script(), plan:script(), "a script has the sizes")
tap.like(tostring(causal), "axis n, 1 to 192 at launch, as many as m", "a listing, too")
tap.like(tostring(examples.gemm:bind{m = any{max = 320, multiple = 8}, n = 64, k = 64}), "axis m, 8 to 320 at launch, a multiple of 8\n",
  "and multiples")
local out = io.popen(("%s predict %s"):format(os.getenv "MILLRACE" or "build/millrace", path)):read "a"
local json = io.popen(("%s predict --json %s"):format(os.getenv "MILLRACE" or "build/millrace", path)):read "a"
os.remove(path)
tap.like(json, '"typical": %[{"sizes": {"m": 64, "n": 64}, "seconds": [%d.e-]+, .*{"sizes": {"m": 100, "n": 100}, "seconds": ', "in JSON, too")
tap.like(out, "predicted .- b=1 h=2 m<=192 d=64 n<=192 hkv=2.*\n.* for m=64, n=64: predicted .*\n.* for m=100, n=100: predicted ",
  "a prediction for each typical size")
local large, small = plan:simulate{events = 0}, plan:simulate{events = 0, sizes = {m = 64, n = 64}}
tap.ok(small.seconds < large.seconds, "fewer tiles take less time", small.seconds, large.seconds)
tap.is(plan:simulate{events = 0, sizes = {m = 192, n = 192}}.seconds, large.seconds, "the largest sizes are those of the plan")
for m = 16, 136, 40 do
  local tl = plan_of(examples.gemm:bind{m = any{max = 320}, n = 100, k = 90}, {m = 64, n = 64, k = 64}):simulate{events = 0, sizes = {m = m}}
  tap.near(tl.tflops, 2 * m * 100 * 90 / tl.seconds / 1e12, 1e-6 * tl.tflops, ("TFLOP/s for m=%d are of elements that are there"):format(m))
end
tap.is(plan_of(examples.gemm{m = 100, n = 70, k = 90}, {m = 64, n = 64, k = 64}).graph.flops, 2.0 * 100 * 70 * 90, "of a fixed size, too")
local found_plan = mr.search(examples.gemm:bind{m = any{max = 512, multiple = 8}, n = 128, k = 256}, dev,
  {measure = false, trials = 40, seconds = 60})
right("a plan of a search", found_plan.plan, {{m = 8}, {m = 512}, {m = 328}})
end

---- loads that the copy engine cannot bring for each size ------------------------------------------

-- A product whose contracted axis is known at launch, with the tile, and its notes.
local function contracted(multiple, tile)
  local plan = mr.plan(examples.gemm{m = 128, n = 128, k = any{max = 512, multiple = multiple}}:graph{tile = {m = 64, n = 64, k = tile}}, dev)
  for _, task in ipairs(plan.tasks) do plan:append(task.name) end
  plan:fill_waits()
  local good, list = plan:check()
  tap.ok(good, "legal", list)
  return list.notes or {}
end
for multiple, why in pairs{[1] = "may have any multiple of 2 bytes at launch, the copy engine takes multiples of 16",
    [8] = "may have only 8 elements at launch, boxes of the copy engine .* have more"} do
  for _, tile in ipairs{64, 128} do
    local notes = contracted(multiple, tile)
    tap.is(#notes, 2, ("steps of %d, tile k=%d: threads copy both"):format(multiple, tile), notes)
    tap.like(notes[1] and notes[1].message, ": its rows " .. why .. "$", "  and why")
    tap.like(notes[1] and notes[1].hint, "^bind 'k' with mr%.any{max=512, multiple=16}, .*; or give lane 'p0' more warps$",
      "  and the multiple that helps, no tile")
  end
end
tap.is(#contracted(16, 64), 0, "that multiple helps")
tap.is(#contracted(16, 128), 0, "that multiple helps, with a longer tile, too")

---- random programs -------------------------------------------------------------------------

local EXTENTS <const> = {0, 16, 16, 32, 64, 64, 128}

local function draw_plan(case, made)
  for _ = 1, 12 do
    local drawn, p = pcall(random_plans.try_wild, "random", made, random_programs.draw_tile(case, EXTENTS))
    if drawn and p then return p end
  end
end

local tried = 0
for seed = tonumber(arg[1] or 1), tonumber(arg[2] or arg[1] or 24) do
  local case, ranges = random_programs.draw(seed), {}
  math.randomseed(seed * 7 + 3)
  for _, axis in ipairs(case.axes) do
    local multiple = ({1, 1, 2, 4, 8, 8, 16, 64})[math.random(8)]
    if math.random() < 0.6 and case.sizes[axis] >= multiple then
      ranges[axis] = {max = case.sizes[axis] // multiple * multiple, multiple = multiple}
      case.sizes[axis] = any(ranges[axis])
    end
  end
  local made = next(ranges) and random_programs.bind(case)
  local drawn = made and draw_plan(case, made)
  if drawn and pcall(drawn.compile, drawn, {target = "cuda", text = true}) then
    tried = tried + 1
    local k, faults = drawn:compile{target = target}, {}
    for i = 1, 3 do
      local sizes = {}
      for axis, r in pairs(ranges) do
        local n = r.max // r.multiple
        sizes[axis] = r.multiple * (i == 1 and n or i == 2 and 1 or math.random(n))
      end
      local ran, r = pcall(k.check, k, {sizes = sizes, seed = i, race = i % 2 == 1})
      if not (ran and r.ok) then faults = {sizes_text(sizes), tostring(r), random_programs.text(case), drawn:script()} end
    end
    tap.ok(#faults == 0, ("random program %d"):format(seed), table.unpack(faults))
  end
end
tap.ok(arg[1] or tried > 10, "most random programs have plans", tried)
tap.done_testing()
