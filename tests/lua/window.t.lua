-- plan:window makes one load of loads whose windows overlap: what it does to the graph and the script, what it refuses, that kernels of
-- stencils are right on the CPU (or on the target that the argument names), at random tiles too, and that a search takes it.
local mr = require "millrace"
local core = require "millrace.core"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local target = arg[1] or "host"
local h200 = mr.device "h200"

---- the statement ------------------------------------------------------------------------------------

local laplace = mr.program("laplace", function(p)
  local i, j = p:axes("i", "j")
  local X, Y = p:input("X", {i, j}, "f32"), p:output("Y", {i, j}, "f32")
  local up, down = p:load("up", X, {i - 1, j}), p:load("down", X, {i + 1, j})
  local left, right, mid = p:load("left", X, {i, j - 1}), p:load("right", X, {i, j + 1}), p:load("mid", X, {i, j})
  Y:store("store_y", p:task("add", function() return up + down + left + right - 4 * mid end))
end)
local ALL = {"up", "down", "left", "right", "mid"}
local bound = laplace{i = 20, j = 48}
local function fresh() return mr.plan(bound:graph{tile = {i = 4, j = 16}}, h200) end
local function load_of(plan, name)
  for _, t in ipairs(plan.tasks) do if t.name == name then return t end end
end
local function loads(plan)
  local list = {}
  for _, t in ipairs(plan.tasks) do if t.kind == "load" then list[#list + 1] = t.name end end
  return table.concat(list, " ")
end
local plan = fresh()
local before = plan:script()
plan:window(ALL)
tap.is(loads(plan), "up", "one load is left, the first")
tap.is(load_of(plan, "up").bytes, (4 + 2) * (16 + 8) * 4, "  of the box, whose rows are multiples of 16 bytes")
tap.like(plan:script(), '\nplan:window{"up", "down", "left", "right", "mid"}\n', "the script says so")
tap.is(load(plan:script())(bound):script(), plan:script(), "  and makes the same plan")
plan:undo()
tap.is(plan:script(), before, "undo takes it back")
plan:redo()
tap.is(loads(plan), "up", "redo")
plan:propagate{i = 5}
tap.is(load_of(plan, "up").bytes, (5 + 2) * (16 + 8) * 4, "another tile has another box")
plan = fresh()
plan:window{"mid", "down"}
tap.is(loads(plan), "up down left right", "a window of two: the first of them in the program loads it")
plan:window{"right", "left"}
tap.is(loads(plan), "up down left", "a second window")

plan = fresh()
plan:lane("p0", {warps = 1})
plan:lane("c0", {warps = 4})
for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
plan:buffers{up = 2, down = 3, mid = 2}
plan:fill_waits()
tap.ok(plan:check(), "a plan with five loads")
plan:window(ALL)
tap.is(loads(plan), "up", "  and with a window")
plan:fill_waits()
tap.ok(plan:check(), "  what it said of the others is left out", plan:script())
tap.ok(not plan:script():find "mid=", "  in its script, too")
tap.ok(not pcall(plan.append, plan, "mid", {lane = "p0"}), "  but the others cannot be appended any more")
plan:undo()
plan:undo()
tap.is(loads(plan), "up down left right mid", "  undone")
tap.ok(plan:check(), "  all is there again")

local function refused(what, pattern, edit, of, windows)
  local p = of or fresh()
  if windows then p:window(windows) end
  local text = p:script()
  local good, message = pcall(edit, p)
  tap.ok(not good and tostring(message):gsub("%s+", " "):find(pattern), what, tostring(message))
  tap.is(p:script(), text, "  and nothing has changed")
end
refused("no such task", "program 'laplace' has no task 'upper'", function(p) p:window{"upper"} end)
refused("no load", "'add' is no load: it has no window", function(p) p:window{"up", "add"} end)
refused("no list", "window: ", function(p) p:window "up" end)
refused("an empty list", "a window needs a load, at least", function(p) p:window{} end)
refused("twice the same", "'up' is in a window already", function(p) p:window{"up", "up"} end)
refused("in two windows", "'up' is in a window already", function(p) p:window{"up", "down"} end, nil, {"up", "mid"})
refused("as another load", "'mid' is in a window already", function(p) p:window{"down", "mid"} end, nil, {"up", "mid"})
refused("nothing overlaps", "'mid' loads no element twice in a tile: a window would bring nothing", function(p) p:window{"mid"} end)
refused("a load that is gone", "'down' is loaded with the other loads of its window, so it cannot be split", function(p)
  p:split("i", 2, {"down"})
end, nil, ALL)
local two = mr.program("two", function(p)
  local i, j = p:axes("i", "j")
  local X, Z, Y = p:input("X", {i, j}), p:input("Z", {i, j}), p:output("Y", {i, j})
  local x, z, t = p:load("x", X), p:load("z", Z, {i + 1, j}), p:load("t", X, {i * 2, j})
  Y:store(p:task("add", function() return x + z + t end))
  local S, N = p:output("S", {i}, "f32"), p:load("all", X, {i, j + 1})
  S:store(p:task("sum", function() return mr.rowsum(N, j) end))
end){i = 16, j = 32}
local function second() return mr.plan(two:graph{tile = {i = 4, j = 16}}, h200) end
refused("of two tensors", "'x' and 'z' have no common window: they are loads of one tensor, in one loop", function(p) p:window{"x", "z"} end, second())
refused("of other strides", "'x' and 't' have no common window", function(p) p:window{"x", "t"} end, second())
refused("of all of an axis", "each tile needs all of axis 'j' of 'all': it has no window", function(p) p:window{"x", "all"} end, second())
local product = mr.program("product", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32")
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function()
    local b = p:load("b", B)
    c:add(p:mma("one", p:load("a", A), b))
    c:add(p:mma("next", p:load("a1", A, {m + 1, k}), b))
  end)
  C:store(c)
end){m = 64, n = 64, k = 64}
refused("operands of products", "'a' has no window: its indices are values, or not only tasks that compute use it", function(p) p:window{"a", "a1"} end,
  mr.plan(product:graph{tile = {m = 64, n = 64, k = 32}}, h200))

---- kernels ------------------------------------------------------------------------------------------

-- A plan with the windows of the lists, its loads on a lane of their own.
local function planned(b, tile, windows, o)
  local p = mr.plan(b:graph{tile = tile}, mr.device(o.device or "h200"))
  for _, w in ipairs(windows) do p:window(w) end
  if o.split then p:split(o.split, 2) end
  p:lane("p0", {warps = o.copying or 1})
  for i = 0, o.split and 1 or 0 do p:lane("c" .. i, {warps = o.warps or 4, replicas = o.replicas}) end
  for _, t in ipairs(p.tasks) do
    p:append(t.name, {lane = t.kind == "load" and "p0" or "c" .. (o.split and t.name:match "%.(%d+)$" or 0), seu = t.kind == "load" and o.loads or nil})
  end
  for _, t in ipairs(p.tasks) do
    if t.kind == "load" then p:buffers{[t.writes[1]] = o.depth or 2} end
  end
  p:fill_waits()
  return p
end

local function case(what, b, tile, windows, o)
  o = o or {}
  local ok, p = pcall(planned, b, tile, windows, o)
  if not tap.ok(ok and p:check(), what .. ": legal", tostring(ok and select(2, p:check()) or p)) then return end
  local k = p:compile{target = target}
  if o.engine ~= nil and target == "host" then tap.is(k.source:find "tma_load_%dd%(slot_" ~= nil, o.engine, "  the copy engine brings the box, or not") end
  local result = k:check{race = target == "host"}
  tap.ok(result.ok, "  right", tostring(result))
end

case("Laplace", bound, {i = 4, j = 16}, {ALL}, {engine = true})
case("Laplace, ragged", laplace{i = 19, j = 52}, {i = 5, j = 24}, {ALL}, {engine = true})
case("Laplace, rows that are no multiple of 16 bytes", laplace{i = 9, j = 27}, {i = 4, j = 8}, {ALL}, {engine = false})
case("Laplace by threads", bound, {i = 4, j = 16}, {ALL}, {loads = "cuda", copying = 2, engine = false})
case("Laplace on two lanes", bound, {i = 4, j = 16}, {ALL}, {split = "i"})
case("Laplace by two replicas", bound, {i = 2, j = 16}, {ALL}, {replicas = 2, depth = 3})
case("Laplace in two windows", bound, {i = 4, j = 16}, {{"up", "mid", "down"}, {"left", "right"}})
case("Laplace of one tile", bound, {}, {ALL})
if target == "host" then
  case("Laplace on sm_80", bound, {i = 4, j = 16}, {ALL}, {device = "a100", copying = 4})
  case("Laplace on gfx942", bound, {i = 4, j = 16}, {ALL}, {device = "mi300x", copying = 1, warps = 1})
end

local filter = mr.program("filter", function(p)            -- seven taps along the only axis, of which each is another element of the tile
  local t, w = p:axis("t", p.t), p:axis("w", 7)
  local X, W, Y = p:input("X", {t}, "f32"), p:input("W", {w}, "f32"), p:output("Y", {t}, "f32")
  local x, f = p:load("load_x", X, {t + w - 3}), p:load("load_w", W)
  Y:store(p:task("filter", function() return mr.rowsum(x * f, w) end))
end)
case("a filter of seven taps", filter{t = 512}, {t = 128}, {{"load_x"}}, {engine = true})
case("a filter of seven taps, ragged", filter{t = 300}, {t = 64}, {{"load_x"}})
local causal = mr.program("causal", function(p)
  local b, t, c = p:axes("b", "t", "c")
  local w = p:axis("w", 4)
  local X, W, Y = p:input("X", {b, t, c}), p:input("W", {c, w}), p:output("Y", {b, t, c})
  local x, f = p:load("load_x", X, {b, t + w - 3, c}), p:load("load_w", W)
  Y:store(p:task("filter", function() return mr.rowsum(x * f, w) end))
end)
case("a causal filter of channels", causal{b = 2, t = 40, c = 64}, {b = 1, t = 16, c = 32}, {{"load_x"}}, {engine = true})

local pool = mr.program("pool", function(p)                -- the mean of 3 x 3 x 3, at every second element
  local z, y, x, c = p:axes("z", "y", "x", "c")
  local d, h, w = p:axis("d", 2 * z.size), p:axis("h", 2 * y.size), p:axis("w", 2 * x.size)
  local q, r, s = p:axis("q", 3), p:axis("r", 3), p:axis("s", 3)
  local X, Y = p:input("X", {d, h, w, c}), p:output("Y", {z, y, x, c}, "f32")
  local v = p:load("load_x", X, {2 * z + q - 1, 2 * y + r - 1, 2 * x + s - 1, c})
  Y:store(p:task("mean", function() return mr.rowsum(mr.rowsum(mr.rowsum(v, s), r), q) * (1 / 27) end))
end)
case("a pool of three dimensions", pool{z = 3, y = 4, x = 4, c = 8}, {z = 1, y = 2, x = 2, c = 8}, {{"load_x"}})

-- In a loop, of which each iteration has a window of its own; and a value that is read at other indices again.
local sums = mr.program("sums", function(p)
  local i, j = p:axes("i", "j")
  local X, Y = p:input("X", {i, j}), p:output("Y", {i}, "f32")
  local y = p:carry("y", {i}, 0)
  p:loop(j, function()
    local a, b = p:load("a", X, {i, j - 1}), p:load("b", X, {i, j + 1})
    p:task("add", function() y:set(y + mr.rowsum(a * b, j)) end)
  end)
  Y:store(y)
end)
case("windows of a loop", sums{i = 32, j = 128}, {i = 16, j = 32}, {{"a", "b"}})
local flipped = mr.program("flipped", function(p)
  local i, j = p:axes("i", "j")
  local X, Y = p:input("X", {i, j}, "f32"), p:output("Y", {i, j}, "f32")
  local a, b = p:load("a", X, {i, j}), p:load("b", X, {i + 1, j})
  Y:store(p:task("add", function() return a:at(j, j ~ 1) + b end))
end)
case("read at other indices again", flipped{i = 16, j = 32}, {i = 4}, {{"a", "b"}})

-- Four dimensions with two axes each, as many as a value may have, and one of which each load reads another element.
local pairs_of = mr.program("pairs_of", function(p)
  local axes, dims, here, there = {}, {}, {}, {}
  for d = 1, 4 do
    local a, b = p:axis("a" .. d, 2), p:axis("b" .. d, 2)
    axes[2 * d - 1], axes[2 * d] = a, b
    dims[d], here[d], there[d] = p:axis("d" .. d, 4), a + b, a + b + 1
  end
  dims[5], here[5], there[5] = p:axis("e", 4), 0, 2
  local X, Y = p:input("X", dims, "f32"), p:output("Y", axes, "f32")
  local x, z = p:load("x", X, here), p:load("z", X, there)
  Y:store(p:task("sub", function() return x - z * 2 end))
end)
case("eight axes in four dimensions", pairs_of{}, {}, {{"x", "z"}})

-- Axes of a box: four of dimensions of which loads read different elements, and six of those that have no window.
local many = mr.program("many", function(p)
  local axes, dims, here, there = {}, {}, {}, {}
  for d = 1, 4 do dims[d], here[d], there[d] = p:axis("e" .. d, 2), 0, 1 end
  for d = 5, 7 do
    local a, b = p:axis("a" .. d, 2), p:axis("b" .. d, 2)
    axes[#axes + 1], axes[#axes + 2] = a, b
    dims[d], here[d], there[d] = p:axis("d" .. d, 4), 2 * a + b, 2 * a + b
  end
  local X, Y = p:input("X", dims, "f32"), p:output("Y", axes, "f32")
  local x, z = p:load("x", X, here), p:load("z", X, there)
  Y:store(p:task("sub", function() return x - z * 2 end))
end){}
refused("a box with too many axes", "a window of 'X' would have more than 8 axes", function(p) p:window{"x", "z"} end, mr.plan(many:graph{}, h200))

-- A size that a launch says.
for _, x in ipairs{{i = mr.any{max = 40, multiple = 1}, j = 24}, {i = 12, j = mr.any{max = 64, multiple = 8}}} do
  local p = planned(laplace(x), {i = 4, j = 16}, {ALL}, {})
  local k = p:compile{target = target}
  for _, n in ipairs{8, 24, 40} do
    local result = k:check{sizes = {[x.j == 24 and "i" or "j"] = n}, race = target == "host"}
    tap.ok(result.ok, ("%d of axis '%s' at launch"):format(n, x.j == 24 and "i" or "j"), tostring(result))
  end
end

---- random stencils ----------------------------------------------------------------------------------

-- Loads of one tensor of up to three dimensions at random constants, strides and tiles; some with an axis of taps; what is added is weighed,
-- so that no two loads can be exchanged.
local state = 12345
local function random(n)
  state = (state * 1103515245 + 12345) % 2147483648
  return state // 65536 % n + 1
end
local function stencil(seed)
  state = seed * 7919 + 17
  local rank, ntaps = random(3), 1 + random(4)
  local sizes, tile, strides, shifts = {}, {}, {}, {}
  local taps = random(3) == 1 and random(3) + 1 or nil
  for d = 1, rank do
    sizes["a" .. d] = d == rank and 8 * (1 + random(4)) or 2 + random(9)
    tile["a" .. d] = d == rank and 8 * random(3) or random(5)
    strides[d] = random(4) == 1 and 2 or 1
  end
  for k = 1, ntaps do
    shifts[k] = {}
    for d = 1, rank do shifts[k][d] = random(5) - 3 end
  end
  shifts[2][random(rank)] = 3                              -- so one differs from all others
  local type = ({"f32", "bf16", "f16"})[random(3)]
  local names = {}
  local program = mr.program("stencil" .. seed, function(p)
    local axes, dims = {}, {}
    for d = 1, rank do
      axes[d] = p:axis("a" .. d, sizes["a" .. d])
      dims[d] = p:axis("d" .. d, sizes["a" .. d] * strides[d])
    end
    local w = taps and p:axis("w", taps)
    local X, Y = p:input("X", dims, type), p:output("Y", axes, "f32")
    local x = {}
    for k = 1, ntaps do
      local index = {}
      for d = 1, rank do index[d] = axes[d] * strides[d] + shifts[k][d] end
      if w then index[1] = index[1] + w end
      names[k] = "x" .. k
      x[k] = p:load(names[k], X, index)
    end
    Y:store(p:task("add", function()
      local sum = 0
      for k = 1, ntaps do sum = sum + x[k] * (k / 2) end
      return w and mr.rowsum(sum, w) or sum
    end))
  end)
  return program{}, tile, names
end
for seed = 1, tonumber(os.getenv "MILLRACE_STENCILS" or 30) do
  local b, tile, names = stencil(seed)
  local o = {copying = random(2), loads = random(4) == 1 and "cuda" or nil, replicas = random(3) == 1 and 2 or nil, depth = 1 + random(3)}
  case(("random stencil %d"):format(seed), b, tile, {names}, o)
end

-- Plans at random of such stencils: lanes, slices, offsets, rings, orders, clusters.
local random_plans = dofile(dir .. "lib/random_plans.lua")
random_plans.target, random_plans.device, random_plans.shapes = target, h200, true
local made = 0
for seed = 1001, 1000 + tonumber(os.getenv "MILLRACE_STENCILS" or 30) do
  local b, tile, names = stencil(seed)
  math.randomseed(seed)
  random_plans.windows = {names}
  for _ = 1, 12 do
    local good, p, info = pcall(random_plans.try_wild, "stencil", b, tile)
    if good and p then
      local result, why = random_plans.verify(p, {1, 2})
      made = made + 1
      tap.ok(result == "ok", ("random plan of stencil %d"):format(seed), tostring(why) .. "\n" .. p:script())
      break
    elseif not good then
      tap.ok(false, ("random plan of stencil %d"):format(seed), tostring(p or info))
    end
  end
end
tap.ok(made >= 20, "most of them have a plan", made)

---- the model and the search -------------------------------------------------------------------------

local depthwise
for _, x in ipairs(dofile(dir .. "../operators/depthwise_conv3x3.lua")) do
  if x.name == "depthwise_conv3x3_taps" then depthwise = x.program{n = 16, h = 56, w = 56, c = 256} end
end
plan = planned(depthwise, {n = 1, y = 8, x = 8, c = 64}, {}, {})
local before_it = plan:simulate{events = 0}.seconds
local first = plan:suggest()[1]
tap.like(first.text, '^plan:window{"x00", "x01", "x02", "x10"', "a suggestion for a plan with nine loads")
first:apply()
tap.ok(plan:check() and plan:simulate{events = 0}.seconds < 0.6 * before_it, "  which takes clearly less time")
local s = core.search(depthwise, h200, nil, true, true)
s:run(60, 60)
local best = s:found()[1]
tap.like(best and s:plan(best.trial) or "", 'plan:window{"x00", "x01"', "a search of its own has plans with windows")
local once = mr.program("once", function(p)
  local i, j = p:axes("i", "j")
  p:output("Y", {i, j}):store(p:load(p:input("X", {i, j})) * 2)
end){i = 64, j = 64}
tap.ok(core.search(once, h200, nil, true, true) == nil, "there is none of loads that read nothing twice")
local found = mr.search(depthwise, h200, {trials = 600, seconds = 60, measure = false})
tap.like(found.plan:script(), "plan:window", "mr.search takes such a plan, which is faster in the model")
local plain = core.search(depthwise, h200, nil, true)
plain:run(60, 60)
tap.ok(best.seconds < 0.85 * plain:found()[1].seconds, "  by a sixth, at least", ("%.4g and %.4g ms"):format(best.seconds * 1e3, plain:found()[1].seconds * 1e3))

-- columns of a wider tensor: memory has to move those, not the others
local columns = mr.program("columns", function(p)
  local b, t, c, w, width = p:axes("b", "t", "c", "w", "width")
  local X = p:input("X", {b, t, width})
  local x, taps = p:load("load_x", X, {b, t + w - (w.size - 1), 64 + c}), p:load("load_w", p:input("W", {c, w}))
  p:output("Y", {b, t, c}):store(p:task("filter", function() return mr.rowsum(x * taps, w):to "bf16" end))
end){b = 1, t = 4096, c = 5376, w = 4, width = 10576}
tap.is(columns:graph{tile = {b = 1, t = 64, c = 64}}.bytes, 2 * (2 * 4096 * 5376 + 5376 * 4), "the bytes of a graph are those of columns that are loaded")
found = mr.search(columns, h200, {trials = 600, seconds = 60, measure = false})
tap.like(found.plan:script(), 'plan:window{"load_x"}', "mr.search finds a window in them")
local both = mr.program("both", function(p)
  local i, j, width = p:axes("i", "j", "width")
  local X = p:input("X", {i, width})
  local a, b, again = p:load("a", X, {i, j}), p:load("b", X, {i, 64 + j}), p:load("again", X, {i, j})
  p:output("Y", {i, j}):store(p:task("sum", function() return a + b * again end))
end){i = 256, j = 64, width = 256}
tap.is(both:graph{tile = {i = 64, j = 64}}.bytes, 2 * (256 * 128 + 256 * 64), "two parts of a tensor count once each")
tap.done_testing()
