-- load_boxes.t.lua - loads whose indices are not axes alone, and which boxes of the copy engine bring: blocks of an axis, strides,
-- windows that begin before the tensor, scales of chunks. Plans with accesses watched, the text, and what threads copy.
--
--   millrace load_boxes.t.lua [PATTERN]   runs the cases whose names match
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")
random_plans.target = "host"
local only = arg[1]
local SEEDS <const> = {1, 2}

-- One plan with loads on lane p0. boxes: what is expected of the load of X; false: threads copy it. more: {split=, cluster=, warps=}
local function case(name, bound, tile, boxes, more)
  if only and not name:find(only) then return end
  more = more or {}
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  if more.split then plan:split(more.split, 2, more.tasks) end
  plan:lane("c0", {warps = 4})
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or t.name:find "%.1$" and "c1" or "c0"})
  end
  plan:grid{eus = more.cluster or 1, cluster = more.cluster}
  plan:fill_waits()
  random_plans.correct(tap, name, plan, SEEDS)
  local text = tostring(plan:kernel{}):match "load_boxes X[^\n]*in boxes of ([%d x]+, %d+)" or false
  tap.is(text, boxes, "  its boxes")
  return plan
end

---- copies -------------------------------------------------------------------

-- Y[a,b,c] = 2 X[index(a, b, c)]; dims(p, a, b, c) are the dimensions of X.
local function copy(index, dims)
  return mr.program("copy", function(p)
    local a, b, c = p:axes("a", "b", "c")
    local X, Y = p:input("X", dims(p, a, b, c), p.dtype or "bf16"), p:output("Y", {a, b, c}, "f32")
    local x = p:load("load_x", X, index(a, b, c))
    Y:store(p:task("double", function() return x * 2 end))
  end)
end
local function blocks_of(block, columns)
  return copy(function(a, b, c) if columns then return {a, b * block + c} end return {a * block + b, c} end,
    function(p, a, b, c)
      if columns then return {a, p:axis("s", b.size * block)} end
      return {p:axis("s", a.size * block), c}
    end)
end
local function strided(step, before, more)
  return copy(function(a, b, c) return {b, a * step - before, c} end,
    function(p, a, b, c) return {b, p:axis("s", a.size * step + (more or 0)), c} end)
end

case("blocks of columns", blocks_of(64, true){a = 40, b = 6, c = 64}, {a = 16, b = 2, c = 64}, "16 x 64, 2")
case("blocks of columns, a part of each", blocks_of(64, true){a = 40, b = 6, c = 64}, {a = 16, b = 2, c = 32}, false)
case("a part of one block of columns", blocks_of(64, true){a = 40, b = 6, c = 64}, {a = 16, b = 1, c = 32}, "16 x 32, 1")
case("blocks of rows", blocks_of(16){a = 5, b = 16, c = 64}, {a = 2, b = 16, c = 64}, "32 x 64, 1")
case("blocks of rows, a part of each", blocks_of(16){a = 5, b = 16, c = 64}, {a = 2, b = 8, c = 64}, "2 x 8 x 64, 1")
case("blocks of rows, of which there are fewer", blocks_of(16){a = 5, b = 13, c = 64}, {a = 4, b = 8, c = 64}, "4 x 8 x 64, 1")
case("blocks of 20 rows", blocks_of(20){a = 5, b = 20, c = 64}, {a = 2, b = 8, c = 64}, "2 x 8 x 64, 1")
case("blocks of rows that are not apart", blocks_of(8){a = 5, b = 10, c = 64}, {a = 2, b = 8, c = 64}, "16 x 64, 1")
case("blocks of rows in slices", blocks_of(16){a = 8, b = 16, c = 64}, {a = 4, b = 16, c = 64}, "64 x 64, 1", {split = "a"})
case("blocks of rows, loaded in slices", blocks_of(16){a = 8, b = 16, c = 64}, {a = 4, b = 16, c = 64}, "32 x 64, 1",
  {split = "a", tasks = {"load_x", "double", "store_Y"}})
case("more rows than a dimension of a box has", strided(1, 1){a = 150, b = 5, c = 32}, {a = 128, b = 4, c = 32}, "4 x 128 x 32, 1")
case("more rows in blocks than a dimension of a box has", blocks_of(128){a = 5, b = 128, c = 32}, {a = 3, b = 128, c = 32}, false)
for _, before in ipairs{0, 1, 5} do
  case("every second row, from before " .. before, strided(2, before){a = 37, b = 3, c = 64}, {a = 16, b = 2, c = 64},
    "2 x 16 x 1 x 64, 1")
  case("every third row, from before " .. before, strided(3, before){a = 37, b = 3, c = 64}, {a = 16, b = 2, c = 64},
    before == 0 and "2 x 16 x 1 x 64, 1" or false)         -- an index that may be negative is divided by powers of two alone
  case("rows one after the other, from before " .. before, strided(1, before){a = 37, b = 3, c = 64}, {a = 16, b = 2, c = 64},
    "2 x 16 x 64, 1")
end
case("every second row, beyond the end", strided(2, -9){a = 37, b = 3, c = 64}, {a = 16, b = 1, c = 64}, "1 x 16 x 1 x 64, 1")
case("every second of an odd number of rows", strided(2, 0, 1){a = 37, b = 3, c = 64}, {a = 16, b = 2, c = 64}, false)
case("every second row of two, on both sides of them", strided(2, 2, -6){a = 4, b = 3, c = 64}, {a = 4, b = 1, c = 64}, false)
case("every second row, in slices", strided(2, 1){a = 64, b = 1, c = 64}, {a = 32, b = 1, c = 64}, "1 x 32 x 1 x 64, 1", {split = "a"})
case("every second row, loaded in slices", strided(2, 1){a = 64, b = 1, c = 64}, {a = 32, b = 1, c = 64}, "1 x 16 x 1 x 64, 1",
  {split = "a", tasks = {"load_x", "double", "store_Y"}})

-- Another dimension whose size is known at launch: the strides of the map follow from it, the blocks do not.
if not only then
  local plan = case("every second row, a batch of any size", strided(2, 1){a = 37, b = mr.any{max = 5}, c = 64},
    {a = 16, b = 2, c = 64}, "2 x 16 x 1 x 64, 1")
  local k = plan:compile{target = "host"}
  for b = 1, 5 do tap.ok(k:check{sizes = {b = b}, race = true}.ok, "  a batch of " .. b) end
end

---- scales of chunks -----------------------------------------------------------

local function chunks(rows, size)
  return copy(function(a, b, c) if rows then return {a // size, b, c} end return {a, b, c // size} end,
    function(p, a, b, c)
      if rows then return {p:axis("s", (a.size + size - 1) // size), b, c} end
      return {a, b, p:axis("s", (c.size + size - 1) // size)}
    end)
end
case("chunks of rows", chunks(true, 8){a = 40, b = 3, c = 64, dtype = "f32"}, {a = 16, b = 2, c = 64}, "2 x 2 x 64, 1")
case("a chunk of more rows than a tile has", chunks(true, 128){a = 300, b = 3, c = 64, dtype = "f32"}, {a = 64, b = 2, c = 64},
  "1 x 2 x 64, 1")
case("chunks that tiles do not divide", chunks(true, 24){a = 40, b = 3, c = 64, dtype = "f32"}, {a = 16, b = 2, c = 64}, false)
case("chunks of columns", chunks(false, 16){a = 40, b = 3, c = 256, dtype = "f32"}, {a = 16, b = 2, c = 128}, "16 x 2 x 8, 1")
case("chunks of columns, too few for 16 bytes", chunks(false, 32){a = 40, b = 3, c = 256, dtype = "f32"}, {a = 16, b = 2, c = 64}, false)

---- operands -----------------------------------------------------------------

local conv = mr.program("conv", function(p)
  local b, t, c, o, w = p:axes("b", "t", "c", "o", "w")
  local s = p:axis("s", t.size * p.stride)
  local X, W, Y = p:input("X", {b, s, c}), p:input("W", {w, o, c}), p:output("Y", {b, t, o}, "f32")
  p:batch(b)
  local acc = p:carry("acc", {t, o}, 0)
  p:loop(w, {batch = true}, function()
    p:loop(c, function()
      acc:add(p:mma("mma", p:load("load_x", X, {b, t * p.stride + w - p.before, c}), p:load("load_w", W)))
    end)
  end)
  Y:store(acc)
end)
local sizes = {b = 2, t = 100, c = 128, o = 64, w = 3}
local function of(more)
  for k, v in pairs(sizes) do more[k] = v end
  return conv(more)
end
case("a convolution with stride 2", of{stride = 2, before = 1}, {t = 64, o = 64, c = 64}, "1 x 64 x 1 x 64, 1")
case("a causal convolution", of{stride = 1, before = 2}, {t = 64, o = 64, c = 64}, "1 x 64 x 64, 1")
case("a convolution of stride 2, the weights shared", of{stride = 2, before = 0}, {t = 64, o = 64, c = 64}, "1 x 64 x 1 x 64, 1",
  {cluster = 2})

-- Rows from a first one on, columns in blocks.
local grouped = mr.program("grouped", function(p)
  local g, m, n, kb, l = p:axes("g", "m", "n", "kb", "l")
  local r, k = p:axis("r", 150), p:axis("k", kb.size * l.size)
  local First, X, W = p:input("First", {g}, "i32"), p:input("X", {r, k}), p:input("W", {g, n, k})
  local Y = p:output("Y", {g, m, n}, "f32")
  p:batch(g)
  local first, acc = p:load("load_t", First), p:carry("acc", {m, n}, 0)
  p:loop(kb, function()
    acc:add(p:mma("mma", p:load("load_x", X, {first + m - 2, kb * l.size + l}), p:load("load_w", W, {g, n, kb * l.size + l})))
  end)
  Y:store(acc)
end)
for _, kb in ipairs{1, 2} do
  case("groups of rows, blocks of columns, at once " .. kb, grouped{g = 3, m = 100, n = 64, kb = 4, l = 64},
    {m = 64, n = 64, kb = kb, l = 64}, "64 x 64, " .. kb)
end

-- ... of several heads at once.
local heads = mr.program("heads", function(p)
  local g, m, h, d = p:axes("g", "m", "h", "d")
  local r, all = p:axis("r", 90), p:axis("all", h.size * g.size)
  local First, X, Y = p:input("First", {g}, "i32"), p:input("X", {r, all, d}), p:output("Y", {g, m, h, d}, "f32")
  p:batch(g)
  local first = p:load("load_t", First)
  local x = p:load("load_x", X, {first + m - 2, g * h.size + h, d})
  Y:store(p:task("double", function() return x * 2 end))
end)
case("rows of several heads", heads{g = 4, m = 40, h = 4, d = 64}, {m = 16, h = 2, d = 64}, "16 x 2 x 64, 1")
case("rows of several heads, in slices", heads{g = 4, m = 40, h = 4, d = 128}, {m = 32, h = 4, d = 128}, "16 x 4 x 64, 2",
  {split = "m", tasks = {"load_x", "double", "store_Y"}})

---- what leaves L2 first --------------------------------------------------------

-- Where a phase leaves a tensor for a later one, what its tiles load once is to leave L2 first; not what several tiles load. Where
-- as much is stored nothing is: RMSNorms took 4 % longer so on an H200.
local phases = mr.program("phases", function(p)
  local m, n = p:axes("m", "n")
  local X, G, T, Y = p:input("X", {m, n}), p:input("G", {n}), p:temp("T", {m, n}), p:output("Y", {m, n})
  p:phase("first", function()
    local x, g = p:load("load_x", X), p:load("load_g", G)
    T:store("store_t", p:task("scale", function() return (x * g):to "bf16" end))
  end)
  p:phase("second", function()
    local t = p:load("load_t", T)
    Y:store("store_y", p:task("double", function() return (t * 2):to "bf16" end))
  end)
end)
local plan = case("two phases", phases{m = 64, n = 64}, {m = 16, n = 64}, "16 x 64, 1")
if plan then
  local loads = {}
  for how, of in plan:compile{target = "cuda", text = true}.source:gmatch "tma_load_(%a*_?)%dd%(slot_(%a+)" do loads[of] = how end
  tap.is(loads.x, "once_", "what a tile loads of a phase that leaves a tensor leaves L2 first")
  tap.is(loads.g, "", "  what all tiles load stays")
  tap.is(loads.t, "", "  and so does all of the last phase")
end

-- So is what is loaded once where at most a sixteenth of it is stored.
local sums = mr.program("sums", function(p)
  local m, n = p:axes("m", "n")
  local X, G, Y = p:input("X", {m, n}), p:input("G", {n}), p:output("Y", {m}, "f32")
  local x, g = p:load("load_x", X), p:load("load_g", G)
  Y:store("store_y", p:task("sum", function() return mr.rowsum(x * g, n) end))
end)
for _, x in ipairs{{64, "once_"}, {32, "once_"}, {24, ""}} do
  local n, how = table.unpack(x)
  plan = case("sums of " .. n, sums{m = 64, n = n}, {m = 16, n = n}, ("16 x %d, 1"):format(n))
  if plan then
    local loads = {}
    for word, of in plan:compile{target = "cuda", text = true}.source:gmatch "tma_load_(%a*_?)%dd%(slot_(%a+)" do loads[of] = word end
    tap.is(loads.x, how, ("  %d bytes of which 4 are stored %s"):format(2 * n, how == "" and "stay" or "leave L2 first"))
    tap.is(loads.g, "", "  what all tiles load stays")
  end
end

tap.done_testing()
