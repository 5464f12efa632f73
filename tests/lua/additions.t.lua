-- tensor:add: what several tiles add to one element of a tensor.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")
local dev = mr.device "h200"
random_plans.target = arg[1] or "host"

local function zeros(p, tensor, ...)
  local axes = {...}
  p:phase("zero_" .. tensor.name, function()
    tensor:store(p:task("zeros_" .. tensor.name, function()
      local z = 0
      for _, axis in ipairs(axes) do z = z + axis:index() * 0 end
      return tensor.dtype == "i32" and z or z:to(tensor.dtype)
    end))
  end)
end

-- A plan in the order of the program, with stores on `seu`, and all on `lanes` lanes.
local function plan_of(bound, tile, seu, split, lanes)
  local plan = mr.plan(bound:graph{tile = tile}, dev)
  if split then plan:split(split, lanes) end
  for _, t in ipairs(plan.tasks) do
    local o = {}
    if t.kind == "store" then o.seu = seu end
    if split and t.kind ~= "load" then o.lane = t.name:find "%.1" and "c1" or "c0" end
    plan:append(t.name, o)
  end
  plan:fill_waits()
  return plan
end

local function check(what, bound, tile, split)
  for _, seu in ipairs{"tma", "cuda"} do
    random_plans.correct(tap, what .. ", by " .. seu, plan_of(bound, tile, seu, split, 2), {1, 2})
  end
end

---- what is allowed --------------------------------------------------------------------------------

-- Points and how many of them each centre gets: where to count is made of all of k, along which the points are added.
do
  local bound = mr.program("centres", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local X, Y, S, N = p:input("X", {m, k}), p:input("Y", {n, k}), p:output("S", {n, k}, "f32"), p:output("N", {n}, "i32")
    zeros(p, S, n, k)
    zeros(p, N, n)
    p:phase("assign", function()
      local x = p:load("load_x", X)
      local c = p:mma("mma", x, p:load("load_y", Y))
      local at = p:task("greatest", function()
        return mr.where(c:eq(c:rowmax(n)), n:index(), n.size):rowmin(n)
      end)
      S:add("add_s", p:task("widen", function() return x:to "f32" end), {at, k})
      N:add("add_n", p:task("ones", function() return m:index() * 0 + 1 end), {at})
    end)
  end){m = 40, n = 24, k = 32}
  check("sums and counts by index", bound, {m = 16, n = 8})
end

-- Each tile's part is rounded, here where parts cancel each other.
local cancel = mr.program("cancel", function(p)
  local m, n = p:axes("m", "n")
  local X, Y, S = p:input("X", {m, n}, "i8"), p:output("Y", {m, n}, "i8"), p:output("S", {m}, "f32")
  zeros(p, S, m)
  p:phase("sum", function()
    local x = p:load("x", X)
    Y:store("y", x)
    S:add("add", p:task("part", function() return (mr.rowsum(x:to "f32" * 1.37, n) * 8):to "f16":to "f32" end))
  end)
end)
local kernel = plan_of(cancel{m = 64, n = 96}, {m = 64, n = 16}, "tma"):compile{target = random_plans.target}
for seed = 1, 3 do
  local checked = kernel:check{seed = seed}
  tap.ok(checked.ok, "roundings of six parts of a sum are allowed", tostring(checked))
end

-- So is the rounding of what a store left, which is large where little is added to it.
do
  local onto = mr.program("onto", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local X, A, B, Y = p:input("X", {m, n}), p:input("A", {m, k}), p:input("B", {n, k}), p:output("Y", {m, n}, "f32")
    p:phase("store", function() Y:store("store_y", p:load("load_x", X)) end)
    p:phase("add", function()
      local c = p:carry("c", {m, n}, 0)
      p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
      Y:add("add", p:task("scale", function() return c * 1e-6 end))
    end)
  end)
  local checked = plan_of(onto{m = 64, n = 64, k = 64}, {m = 64, n = 64, k = 64}, "tma"):compile{target = random_plans.target}:check{}
  tap.ok(checked.ok, "the rounding of what is added to is allowed", tostring(checked))
end

-- What is added is also summed up: each tile has all of it.
local twice = mr.program("twice", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}, "f32"), p:output("Y", {m, n}, "f32")
  local Z, S = p:output("Z", {m, n}, "f32"), p:output("S", {n}, "f32")
  zeros(p, Z, m, n)
  p:phase("sum", function()
    local x = p:load("x", X)
    Z:add("add", x)
    Y:store("y", x)
    S:store("s", p:task("sum", function() return mr.rowsum(x, m) end))
  end)
end){m = 6, n = 8}
for _, tile in ipairs{{n = 4}, {m = 2}} do            -- 'm' is divided where nothing is added
  random_plans.correct(tap, "what is added and summed up, in one tile", plan_of(twice, tile, "tma"), {1, 2})
end

-- What is made of all of an axis is added once, not by each tile of the axis: the axis is not divided, although stores have it.
do
  local once = mr.program("once", function(p)
    local m, n, d, e = p:axes("m", "n", "d", "e")
    local A, B, C, G = p:input("A", {m, d}), p:input("B", {n, d}), p:input("C", {m, e}), p:input("G", {n, e})
    local dA, dB, dC = p:output("dA", {m, d}, "f32"), p:output("dB", {n, d}, "f32"), p:output("dC", {m, e})
    zeros(p, dA, m, d)
    zeros(p, dB, n, d)
    p:phase("main", function()
      local a, b, c = p:load("a", A), p:load("b", B), p:load("c", C)
      local s, t = p:mma("mma_s", a, b), p:mma("mma_t", c, p:load("g", G))
      local w = p:task("weights", function() return mr.tanh(s * t):to "bf16" end)
      dA:add("add_a", p:mma("mma_a", w, b))             -- each tile adds its part of 'd', and one that of all of 'e'
      dB:add("add_b", p:mma("mma_b", w, a))
      dC:store("store_c", p:task("double", function() return c + c end))
    end)
  end)
  local bound = once{m = 64, n = 64, d = 32, e = 32}
  for _, tile in ipairs{{}, {m = 32, d = 16}} do
    random_plans.correct(tap, "what is made of all of an axis is added once", plan_of(bound, tile, "tma"), {1, 2})
  end
  local good, message = pcall(bound.graph, bound, {tile = {e = 16}})
  tap.ok(not good and message:find("what is added in memory is made of all of it", 1, true), "and not where that is all", message)
end

---- what is right -----------------------------------------------------------------------------------

local split_k = mr.program("split_k", function(p)
  local m, n, k, s = p:axes("m", "n", "k", "s")
  local part = p:axis("part", k.size // s.size)
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32")
  zeros(p, C, m, n)
  p:phase("sum", function()
    p:batch(s)
    local c = p:carry("c", {m, n}, 0)
    p:loop(part, function()
      c:add(p:mma("mma", p:load("a", A, {m, s * part.size + part}), p:load("b", B, {n, s * part.size + part})))
    end)
    C:add("add", c)
  end)
end)
check("parts of a product", split_k{m = 128, n = 64, k = 192, s = 3}, {m = 64, n = 64, part = 64})
check("parts of a product with ragged tiles", split_k{m = 100, n = 72, k = 256, s = 4}, {m = 64, n = 64, part = 32})
check("parts of a product on two lanes", split_k{m = 128, n = 64, k = 128, s = 2}, {m = 128, n = 64, part = 64}, "m")

-- No store has the axis, but all that is stored are sums over it: then each tile has a part of it.
local contracted = mr.program("contracted", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32")
  zeros(p, C, m, n)
  p:phase("sum", function()
    local c = p:carry("c", {m, n}, 0)
    c:add(p:mma("mma", p:load("a", A), p:load("b", B)))
    C:add("add", c)
  end)
end)
check("a product of which each tile contracts a part", contracted{m = 100, n = 64, k = 200}, {m = 64, n = 64, k = 64})
check("and another number of tiles", contracted{m = 100, n = 64, k = 200}, {n = 64, k = 32})
local moments = mr.program("moments", function(p)
  local m, h, n = p:axes("m", "h", "n")
  local X, S, Q = p:input("X", {m, h, n}), p:output("S", {n}, "f32"), p:output("Q", {n}, "f32")
  zeros(p, S, n)
  zeros(p, Q, n)
  p:phase("sums", function()
    local x = p:load("x", X)
    local s, q = p:task("sum", function()
      local v = x:to "f32"
      return mr.rowsum(mr.rowsum(v, m), h), mr.rowsum(mr.rowsum(v * v, h), m)
    end)
    S:add("add_s", s)
    Q:add("add_q", q)
  end)
end)
check("moments of which each tile has a part", moments{m = 40, h = 6, n = 48}, {m = 16, h = 2, n = 32})
-- What does not add up keeps its axis in full.
local norms = mr.program("norms", function(p)
  local m, n = p:axes("m", "n")
  local X, S = p:input("X", {m, n}), p:output("S", {n}, "f32")
  zeros(p, S, n)
  p:phase("sums", function()
    local x = p:load("x", X)
    S:add("add", p:task("norm", function() return mr.sqrt(mr.rowsum(x:to "f32" * x, m)) end))
  end)
end)
local good, message = pcall(function() return norms{m = 40, n = 48}:graph{tile = {m = 16}} end)
tap.ok(not good and message:find("axis 'm' is complete in every tile", 1, true), "a root of a sum has all of it", message)
check("which is right", norms{m = 40, n = 48}, {n = 16})

-- The value is over rows, over columns, or over nothing: registers of several threads hold each element.
local function sums_of(name, axes)
  return mr.program(name, function(p)
    local m, n, s = p:axes("m", "n", "s")
    local axis = {m = m, n = n}
    local X = p:input("X", {s, m, n}, "f32")
    local dims = {}
    for i, a in ipairs(axes) do dims[i] = axis[a] end
    if #dims == 0 then dims[1] = p:axis("one", 1) end
    local S = p:output("S", dims, "f32")
    zeros(p, S, table.unpack(dims))
    p:phase("sum", function()
      p:batch(s)
      local x = p:load("x", X)
      local v = p:task("square", function()
        local v = x * x
        if not axis.n or axes[1] ~= "n" and axes[2] ~= "n" then v = mr.rowsum(v, n) end
        if axes[1] ~= "m" then v = mr.rowsum(v, m) end
        return v
      end)
      if #axes == 0 then S:add("add", v, {0}) else S:add("add", v) end
    end)
  end)
end
for _, axes in ipairs{{"m", "n"}, {"m"}, {"n"}, {}} do
  local bound = sums_of("sums_" .. table.concat(axes), axes){m = 64, n = 48, s = 5}
  for _, warps in ipairs{4, 8} do
    local plan = mr.plan(bound:graph{tile = {}}, dev)
    plan:lane("c0", {warps = warps})
    for _, t in ipairs(plan.tasks) do
      plan:append(t.name, t.kind ~= "load" and {lane = "c0", seu = t.kind == "store" and "cuda" or nil} or nil)
    end
    plan:fill_waits()
    random_plans.correct(tap, ("sums over {%s}, on %d warps"):format(table.concat(axes, ", "), warps), plan, {1, 2})
  end
end

-- In each iteration, as the gradient of queries: each tile of keys adds its part of a product to all rows.
local gradient = mr.program("gradient", function(p)
  local m, n, d = p:axes("m", "n", "d")
  local Q, K = p:input("Q", {m, d}), p:input("K", {n, d})
  local D, N, Y = p:temp("D", {m, d}, "f32"), p:output("N", {n}, "f32"), p:output("Y", {m, d})
  zeros(p, D, m, d)
  p:phase("keys", function()
    local k, most = p:load("load_k", K), p:carry("most", {n}, -math.huge)
    p:loop(m, function()
      local s = p:mma("mma_s", p:load("load_q", Q), k)
      local w = p:task("weights", function()
        most:set(mr.max(most, mr.rowmax(s, m)))
        return (s * 0.125):to "bf16"
      end)
      D:add("add_d", p:mma("mma_d", w, k))
    end)
    N:store("store_n", most)
  end)
  p:phase("cast", function()
    local d = p:load("load_d", D)
    Y:store("store_y", p:task("round", function() return d:to "bf16" end))
  end)
end)

-- Several elements of one tile, and of others, have one index.
local counts = mr.program("counts", function(p)
  local m, n = p:axes("m", "n")
  local group = p:axis("group", (m.size + 5) // 6)
  local X, C = p:input("X", {m, n}, "i32"), p:output("C", {group}, "i32")
  zeros(p, C, group)
  p:phase("count", function()
    local x = p:load("x", X)
    local c = p:task("select", function() return mr.rowsum(mr.where(x:gt(0), 1, 0), n) end)
    C:add("add", c, {m // 6})
  end)
end)
check("counts of groups of rows", counts{m = 70, n = 16}, {m = 16})

do
  local bound = counts{m = 70, n = 16}
  local x = mr.array("i32", {70, 16}, function(i, j) return (i * 7 + j * 3) % 5 - 2 end)
  local out = plan_of(bound, {m = 16}):compile{target = random_plans.target}:run{X = x}
  local want = {}
  for i = 1, 70 do
    for j = 1, 16 do
      local group = (i - 1) // 6 + 1
      want[group] = (want[group] or 0) + (x:get(i, j) > 0 and 1 or 0)
    end
  end
  local same = true
  for g = 1, #want do same = same and out.C[g] == want[g] end
  tap.ok(same, "counts are those of a formula")
end

local function texts(plan)
  return plan:compile{target = "cuda", text = true}.source
end
local bound = split_k{m = 128, n = 64, k = 192, s = 3}
tap.like(texts(plan_of(bound, {m = 64, n = 64, part = 64}, "tma")), "cp%.reduce%.async%.bulk%.tensor%.2d%.global%.shared::cta%.add",
  "the copy engine adds boxes")
-- Of each axis that a loop takes one by one a tile has one element: boxes are as large without it.
local by_head = mr.program("by_head", function(p)
  local h, m, n, k = p:axes("h", "m", "n", "k")
  local A, B = p:input("A", {h, m, k}), p:input("B", {n, k})
  local C, D = p:output("C", {h, m, n}, "f32"), p:output("D", {h, m, n})
  zeros(p, C, h, m, n)
  p:phase("main", function()
    local b = p:load("load_b", B)
    p:loop(h, function()
      p:loop(m, function()
        local c = p:mma("mma", p:load("load_a", A), b)
        C:add("add", c)
        D:store("store_d", p:task("round", function() return c:to "bf16" end))
      end)
    end)
  end)
end){h = 3, m = 128, n = 128, k = 64}
for _, lanes in ipairs{1, 2} do
  local tile, split = {h = 1, m = lanes * 64, n = 64}, lanes > 1 and "m" or nil
  local text = texts(plan_of(by_head, tile, "tma", split, lanes))
  tap.like(text:match "/%* add[^,]*, iteration.*", "tma_add_3d%(&map", "boxes of one head are added by the copy engine")
  tap.like(text:match "/%* store_d[^,]*, iteration.*", "tma_store_3d%(&map", "... and stored")
  check(("boxes of one head, %d lanes"):format(lanes), by_head, tile, split)
end

tap.like(texts(plan_of(bound, {m = 64, n = 64, part = 64}, "cuda")), "add_to_2%(&tensor_C", "threads add elements, two that are neighbours at once")
tap.ok(not texts(plan_of(mr.examples.gemm{m = 64, n = 64, k = 64}, {m = 64, n = 64, k = 64})):find "add_to", "where nothing is added, neither is there")

local found = mr.search(split_k{m = 256, n = 256, k = 2048, s = 4}, dev, {trials = 30, measure = false})
tap.ok(found and found.plan:check(), "a search finds a plan")
random_plans.correct(tap, "a plan by search", mr.search(bound, dev, {trials = 30, measure = false}).plan, {1})

for _, sizes in ipairs{{m = 128, n = 128, d = 64}, {m = 100, n = 150, d = 64}, {m = 64, n = 40, d = 32}} do
  check(("each tile of %d adds its part of a product, %d iterations"):format(sizes.n, sizes.m // 64 + 1), gradient(sizes), {m = 64, n = 64})
end

-- A sum over the axis that an output's tiles go along, as the gradient of a norm's weights.
local weights = mr.program("weights", function(p)
  local m, n = p:axes("m", "n")
  local X, W, Y, G = p:input("X", {m, n}, "f32"), p:input("W", {n}, "f32"), p:output("Y", {m, n}), p:output("G", {n}, "f32")
  zeros(p, G, n)
  p:phase("rows", function()
    local x, w = p:load("x", X), p:load("w", W)
    local y, g = p:task("norm", function()
      local r = mr.rsqrt(mr.rowsum(x * x, n) * (1 / n.size) + 1e-5)
      return (x * r * w):to "bf16", mr.rowsum(x * r, m)
    end)
    Y:store("store_y", y)
    G:add("add_g", g)
  end)
end)
for _, sizes in ipairs{{m = 64, n = 32}, {m = 50, n = 40}} do
  check(("sums over tiles of %d rows"):format(sizes.m), weights(sizes), {m = 16})
end

-- Of a sum that is converted, each tile converts its part.
do
  local counts = mr.program("counts", function(p)
    local m, n = p:axes("m", "n")
    local X, S, C = p:input("X", {m, n}, p.to), p:output("S", {m}, p.to), p:output("C", {n}, p.to)
    p:phase("zero", function()
      S:store(p:task("zero", function() return (m:index() * 0):to(p.to) end))
      C:store(p:task("none", function() return (n:index() * 0):to(p.to) end))
    end)
    p:phase("add", function()
      local x = p:load("load_x", X)
      S:add("add_s", p:task("sum", function() return x:rowsum(n):to(p.to) end))
      if p.both then C:add("add_c", p:task("other", function() return x:rowsum(m):to(p.to) end)) end
    end)
  end)
  local bound = counts{m = 3, n = 4, to = "i32", both = true}
  local x = {X = mr.array("i32", {3, 4}, function(i, j) return i == 2 and 1 << 30 or i * j end)}
  for _, on in ipairs{"interpreter", "host"} do
    local got = bound:reference(x, {on = on, tile = {n = 1}})
    tap.is(("%d %d %d %.0f"):format(got.S[1], got.S[2], got.S[3], got.C[2]), "10 0 30 1073741832", "sums of i32 wrap around, by the " .. on)
  end
  for _, to in ipairs{"i32", "f32"} do
    check("a sum converted to " .. to, counts{m = 70, n = 200, to = to}, {m = 16, n = 64})
    check("  along axes that other additions have", counts{m = 70, n = 200, to = to, both = true}, {m = 16, n = 64})
  end
end

-- In clusters: where they do not divide the grid, several blocks have its last tile.
do
  local function clustered(m)
    local plan = mr.plan(split_k{m = m, n = 64, k = 128, s = 2}:graph{tile = {m = 64, n = 64, part = 64}}, dev)
    plan:grid{cluster = 2, raster = "columns"}
    for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
    plan:fill_waits()
    return plan
  end
  random_plans.correct(tap, "clusters that divide the grid", clustered(256), {1})
  local good, found = clustered(192):check()
  tap.ok(not good and found[1].code == "cluster", "clusters that do not are refused", found)
  tap.like(found[1] and found[1].message or "", "several EUs have the last one, and 'add' would add it several times", "... with the reason")
end

---- sums of what loops made ---------------------------------------------------------------------------

-- The rows whose greatest elements are summed up are divided into tiles: each tile's loop has rows of its own.
do
  local greatest = mr.program("greatest", function(p)
    local b, t, n = p:axes("b", "t", "n")
    local X, S = p:input("X", {b, t, n}), p:output("S", {b}, "f32")
    zeros(p, S, b)
    p:phase("add", function()
      p:batch(b)
      local most = p:carry("most", {t}, -1e30)
      p:loop(n, function()
        local x = p:load("load_x", X)
        p:task("max", function() most:set(mr.max(most, x:rowmax(n))) end)
      end)
      S:add("add", p:task("sum", function() return most:rowsum(t) end))
    end)
  end)
  check("sums over rows of which a loop makes values", greatest{b = 3, t = 80, n = 64}, {t = 32, n = 16})
end

---- a missed addition is noticed --------------------------------------------------------------------

do
  local within, core = require "millrace.within", require "millrace.core"
  local inputs = bound:inputs{seed = 1}
  local want, allowed = core.reference_allowing(bound, inputs)
  local A = inputs.A:copy()
  for i = 1, 128 do
    for k = 65, 128 do A:set(0, i, k) end
  end
  tap.ok(within(bound, bound:reference(inputs, {round = true}), want, allowed, {}).ok, "sums that are rounded at each addition are right")
  tap.ok(within(bound, bound:reference{A = A, B = inputs.B}, want, allowed, {}).wrong > 8000, "without one part they are wrong")
end

---- what is refused ---------------------------------------------------------------------------------

local function refused(what, message, f)
  local ok, e = pcall(function()
    return mr.program("refused", function(p)
      local m, n = p:axes("m", "n")
      f(p, m, n, p:input("X", {m, n}, "f32"), p:output("Y", {m, n}, "f32"))
    end){m = 8, n = 8}
  end)
  tap.ok(not ok and tostring(e):gsub("%s+", " "):find(message, 1, true), what, e)
end

refused("before any store", "'Y' is added to before any phase stores it; store what it begins with, such as zeros, in an earlier phase",
  function(p, _, _, X, Y) Y:add(p:load(X)) end)
refused("behind a store of the same phase", "'Y' is stored and added to in one phase, whose tiles run in any order", function(p, m, n, X, Y)
  zeros(p, Y, m, n)
  p:phase("sum", function()
    local x = p:load(X)
    Y:store(x)
    Y:add(x)
  end)
end)
refused("before a store of the same phase", "'Y' is stored and added to in one phase, whose tiles run in any order", function(p, m, n, X, Y)
  zeros(p, Y, m, n)
  p:phase("sum", function()
    local x = p:load(X)
    Y:add(x)
    Y:store(x)
  end)
end)
refused("to what is not stored", "'add_Y' adds to element 1 along 'n' of output 'Y', which no store writes", function(p, m, n, X, Y)
  p:phase("zero", function() Y:store(p:task("zeros", function() return (m:index() * 0):to "f32" end), {m, 0}) end)
  p:phase("sum", function() Y:add(p:load(X)) end)
end)
refused("to 16 bits", "'Z' holds bf16, and only f32 and i32 are added to in memory", function(p, m, n, X, Y)
  local Z = p:output("Z", {m, n})
  zeros(p, Y, m, n)
  zeros(p, Z, m, n)
  p:phase("sum", function() Z:add(p:load(X)) end)
end)
refused("a value over other axes", "a value over {m, n} cannot be added to 'Y', which is indexed by {m}", function(p, m, n, X, Y)
  zeros(p, Y, m, n)
  p:phase("sum", function() Y:add(p:load(X), {m, 0}) end)
end)
refused("to an input", "'X' is an input and cannot be stored", function(p, m, n, X, Y)
  zeros(p, Y, m, n)
  p:phase("sum", function() X:add(p:load(X)) end)
end)
local greatest = mr.program("greatest", function(p)
  local m, n = p:axes("m", "n")
  local X, Y, S = p:input("X", {m, n}), p:output("Y", {m, n}, "f32"), p:output("S", {m}, "f32")
  zeros(p, S, m)
  p:phase("sum", function()
    local x = p:load("x", X)
    Y:store("y", x)
    S:add("s", p:task("all", function() return mr.rowmax(x, n) end))
  end)
end)
check("the greatest of a row is added once", greatest{m = 40, n = 48}, {m = 16})

-- Stores in a loop get the wide panels, where shared memory has no space for those of all.
do
  local program = mr.program("in_loop", function(p)
    local m, n, d = p:axes("m", "n", "d")
    local A, B, C, D = p:input("A", {m, d}), p:input("B", {n, d}), p:output("C", {m, d}, "f32"), p:output("D", {n, d}, "f32")
    zeros(p, C, m, d)
    p:phase("main", function()
      local b, sum = p:load("load_b", B), p:carry("sum", {n, d}, 0)
      p:loop(m, function()
        local a = p:load("load_a", A)
        local product = p:mma("scores", b, a)
        local w = p:task("round", function() return product:to "bf16" end)
        sum:add(p:mma("mma_sum", w, a))
        C:add("add_c", p:mma("mma_c", w, b))
      end)
      D:store("store_d", sum)
    end)
  end)
  for _, case in ipairs{{60, 16, 16}, {64, 32, 8}, {68, 32, 16}, {76, 32, 32}} do
    local plan = mr.plan(program{m = 128, n = 128, d = 128}:graph{tile = {m = 64, n = 64}},
      mr.device("h200", {["memory.shared.bytes"] = case[1] * 1024}))
    for _, t in ipairs(plan.tasks) do plan:append(t.name, {seu = t.kind == "store" and "tma" or nil}) end
    plan:fill_waits()
    local text = texts(plan)
    tap.like(text, ("tma_add_2d%%(&map%%d+, to, lo_d %%+ n %%* %d,"):format(case[2]), ("of %d KiB the loop's panels have %d columns"):format(case[1],
      case[2]))
    tap.like(text:match "/%* store_d.*", ("tma_store_2d%%(&map%%d+, to, lo_d %%+ n %%* %d,"):format(case[3]), ("... the others %d"):format(case[3]))
    random_plans.correct(tap, "... and sums are right", plan, {1})
  end
end

-- Threads that have eight neighbours each add full sectors.
local squares = mr.program("squares", function(p)
  local m, n = p:axes("m", "n")
  local X, Y, S = p:input("X", {m, n}), p:output("Y", {m, n}), p:output("S", {n}, "f32")
  zeros(p, S, n)
  p:phase("sum", function()
    local x = p:load("x", X)
    local y, s = p:task("square", function() return x * 2, mr.rowsum(x * x, m) end)
    Y:store("y", y)
    S:add("s", s)
  end)
end)
tap.like(texts(plan_of(squares{m = 6, n = 1024}, {m = 2, n = 1024}, "cuda")), "swap_halves%(z.-add_to_4%(&tensor_S",
  "two threads exchange what they add")
for _, n in ipairs{1024, 520, 516} do check(("squares of %d columns"):format(n), squares{m = 6, n = n}, {m = 2, n = n}) end

---- what they cost ------------------------------------------------------------

-- Many tiles that add to the same ones: the rate of additions bounds them.
do
  local bound = mr.program("sums", function(p)
    local b, m, n = p:axes("b", "m", "n")
    local Y = p:output("Y", {m, n}, "f32")
    p:phase("zero", function() Y:store(p:task("zeros", function() return (m:index() + n:index()):to "f32" * 0 end)) end)
    p:phase("main", function()
      p:batch(b)
      Y:add(p:task("ones", function() return (m:index() + n:index()):to "f32" * 0 + 1 end), {m, n})
    end)
  end){b = 512, m = 512, n = 512}
  local function seconds(changes)
    local plan = mr.plan(bound:graph{tile = {m = 64, n = 64}}, mr.device("h200", changes))
    for _, t in ipairs(plan.tasks) do plan:append(t.name) end
    plan:fill_waits()
    return plan:simulate{events = 0}.seconds
  end
  local bytes, clock = 512 * 512 * 512 * 4, mr.device "h200".clock_hz
  for _, rate in ipairs{500, 1000} do
    local least, got = bytes / rate / clock, seconds{["memory.l2.add_rate"] = rate}
    tap.ok(got > least and got < 1.2 * least, ("%d bytes a cycle are added"):format(rate), got, least)
  end
  local least, got = 512 * 10000 / clock, seconds{["memory.l2.add_interval"] = 10000}
  tap.ok(got > 0.9 * least and got < 1.2 * least, "512 tiles add to each element, each 10000 cycles after the one before", got, least)
  least, got = bytes / (16 * 32 * 4) / 132 * 1000 / clock, seconds{["seu.tma.add_interval"] = 1000}
  tap.ok(got > 0.9 * least and got < 1.2 * least, "a box of 16 rows of 32 floats every 1000 cycles", got, least)
end

tap.done_testing()
