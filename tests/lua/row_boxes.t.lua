-- row_boxes.t.lua - loads of which the copy engine brings each row by itself (by_rows of plan:append): programs against
-- formulas in plain Lua, plans of them with accesses watched, the text, and refusals.
--
--   millrace row_boxes.t.lua [PATTERN]   runs the cases whose names match
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")
local tensors = dofile(dir .. "lib/tensors.lua")
local tensor, mixed = tensors.tensor, tensors.mixed
local follows = dofile(dir .. "lib/follows.lua")(tap)
random_plans.target = "host"
local only = arg[1]
local SEEDS <const> = {1, 2}

-- The plan with all loads by rows. p: the lane of loads, q: that of tables; warps: of p.
local function plan_of(bound, tile, lanes)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device(lanes.device or "h200"))
  plan:lane("c0", {warps = 4})
  if lanes.split then plan:split(lanes.split, 2) end
  for _, t in ipairs(plan.tasks) do
    local lane = t.kind ~= "load" and (t.name:find "%.1$" and "c1" or "c0") or t.name:find "^load_t" and lanes.q or lanes.p
    plan:append(t.name, {lane = lane, by_rows = t.kind == "load" and lanes.rows ~= false})
  end
  if lanes.p ~= "c0" then plan:lane(lanes.p, {warps = lanes.warps or 1}) end
  plan:grid{eus = 1}
  plan:fill_waits()
  if lanes.versions then
    plan:buffers(lanes.versions)
    plan:fill_waits()
  end
  return plan
end

-- How many boxes bring tensor x, and of how many rows each; nil: threads copy it.
local function rows_of(plan, x)
  local text = tostring(plan:kernel{})
  return text:match("load_boxes " .. x .. "[^\n]*in boxes of ([%d x]+), %d+ for each of %d+ rows"),
    tonumber(text:match("load_boxes " .. x .. "[^\n]*, %d+ for each of (%d+) rows"))
end

-- box: what is expected of tensor `of`; false: threads copy it.
local function correct(name, bound, tile, lanes, of, box, rows)
  if only and not name:find(only) then return end
  local plan = plan_of(bound, tile, lanes)
  random_plans.correct(tap, name, plan, SEEDS)
  local got, n = rows_of(plan, of)
  tap.is(got or false, box, "  its boxes")
  if rows then tap.is(n, rows, "  for so many rows") end
end

---- rows that a table names ----------------------------------------------------

local gathered = mr.program("gathered", function(p)
  local m, n, d = p:axes("m", "n", "d")
  local r = p:axis("r", 50)
  local A, T = p:input("A", {m, d}), p:input("T", {n}, "i32")
  local X, Y = p:input("X", {r, d}), p:output("Y", {m, n}, "f32")
  local acc = p:carry("acc", {m, n}, 0)
  local t = p:load("load_t", T)
  p:loop(d, function() acc:add(p:mma("mma", p:load("load_a", A), p:load("load_x", X, {t, d}))) end)
  Y:store(acc)
end)

-- Rows that are contracted: behind the end of the table, and where it says so, there are zeros.
local weighted = mr.program("weighted", function(p)
  local b, m, n, d = p:axes("b", "m", "n", "d")
  local r = p:axis("r", 30)
  local A, T = p:input("A", {b, m, n}), p:input("T", {b, n}, "i32")
  local X, Y = p:input("X", {b, r, d}), p:output("Y", {b, m, d}, "f32")
  p:batch(b)
  local acc = p:carry("acc", {m, d}, 0)
  local function body()
    local t = p:load("load_t", T)
    acc:add(p:mma("mma", p:load("load_a", A), p:load("load_x", X, {b, p.shift and t + p.shift or t, d})))
  end
  if p.length then
    p:loop(n, {length = p:load(p:input("L", {b}, "i32")), typical = 20}, body)
  else
    p:loop(n, body)
  end
  Y:store(acc)
end)

local function small(...) return math.floor(mixed(...) * 3 + 0.5) % 3 - 1 end
local A, a = tensor("bf16", {2, 16, 40}, small)
local T, t = tensor("i32", {2, 40}, function(b, n) return (b * 5 + n * 13) % 35 - 3 end)        -- some are outside
local X, x = tensor("bf16", {2, 30, 64}, small)
for _, shift in ipairs{0, -2, 4} do
  follows("contracted rows, some of them outside, shifted by " .. shift, weighted{b = 2, m = 16, n = 40, d = 64, shift = shift},
    {A = A, T = T, X = X}, function(b, m, d)
      local sum = 0
      for n = 0, 39 do sum = sum + a(b, m, n) * x(b, t(b, n) + shift, d) end
      return sum
    end, true)
end

for _, c in ipairs{{p = "p0", q = "p1"}, {p = "p0", q = "p1", warps = 3}, {p = "p0", q = "p0", warps = 4}, {p = "c0", q = "c0"},
  {p = "p0", q = "c0", warps = 2}} do
  local lanes = ("rows on %s by %d warps, table on %s"):format(c.p, c.warps or 1, c.q)
  if c.q ~= "p1" then                                    -- the table is loaded once for the loop of the rows
    correct("a product, " .. lanes, gathered{m = 128, n = 72, d = 128}, {m = 64, n = 32, d = 64}, c, "X", "1 x 64", 32)
    correct("a product of 24 columns, " .. lanes, gathered{m = 64, n = 72, d = 128}, {m = 64, n = 24, d = 128}, c, "X", "1 x 64", 24)
  end
  correct("contracted rows, " .. lanes, weighted{b = 2, m = 64, n = 70, d = 64}, {m = 64, n = 32, d = 64}, c, "X", "1 x 1 x 64", 32)
  correct("contracted rows with a shift, " .. lanes, weighted{b = 2, m = 64, n = 72, d = 128, shift = -2},
    {m = 64, n = 24, d = 128}, c, "X", "1 x 1 x 64", 32)              -- 8 of zeros, as products take 16
  correct("contracted rows up to a length, " .. lanes, weighted{b = 2, m = 64, n = 96, d = 64, length = true},
    {m = 64, n = 32, d = 64}, c, "X", "1 x 1 x 64", 32)
end
for versions = 2, 3 do
  correct(("a product, %d versions"):format(versions), gathered{m = 128, n = 72, d = 192}, {m = 64, n = 32, d = 64},
    {p = "p0", q = "p0", warps = 2, versions = {x = versions, a = versions}}, "X", "1 x 64", 32)
end

---- rows that expressions name -------------------------------------------------

-- A convolution along t with stride, and rows before the first one.
local strided = mr.program("strided", function(p)
  local b, t, c, o, w = p:axes("b", "t", "c", "o", "w")
  local s = p:axis("s", t.size * p.stride)
  local X, W, Y = p:input("X", {b, s, c}), p:input("W", {o, w, c}), p:output("Y", {b, t, o}, "f32")
  p:batch(b)
  local acc = p:carry("acc", {t, o}, 0)
  p:loop({w, c}, {batch = p.all == nil}, function()
    acc:add(p:mma("mma", p:load("load_x", X, {b, t * p.stride + w - p.before, c}), p:load("load_w", W)))
  end)
  Y:store(acc)
end)

local pooled = mr.program("pooled", function(p)
  local y, x, c = p:axes("y", "x", "c")
  local h, w = p:axis("h", y.size * 2), p:axis("w", x.size * 2)
  local u, v = p:axis("u", 3), p:axis("v", 3)
  local X, Y = p:input("X", {h, w, c}), p:output("Y", {y, x, c}, "f32")
  local in_tile = p:load("load_x", X, {y * 2 + u - 1, x * 2 + v - 1, c})
  Y:store(p:task("sum", function() return mr.rowsum(mr.rowsum(in_tile:to "f32", u), v) end))
end)
X, x = tensor("bf16", {8, 6, 64}, small)
follows("sums of 3 x 3 with stride 2", pooled{y = 4, x = 3, c = 64}, {X = X}, function(i, j, k)
  local sum = 0
  for u = 0, 2 do
    for v = 0, 2 do
      local h, w = 2 * i + u - 1, 2 * j + v - 1
      if h >= 0 and h < 8 and w >= 0 and w < 6 then sum = sum + x(h, w, k) end
    end
  end
  return sum
end, true)
for _, c in ipairs{{p = "p0"}, {p = "p0", warps = 3}, {p = "c0"}} do
  local lanes = (", loads on %s by %d warps"):format(c.p, c.warps or 1)
  correct("sums of 3 x 3 with stride 2" .. lanes, pooled{y = 5, x = 6, c = 128}, {y = 2, x = 4, c = 64}, c, "X", "1 x 1 x 64")
end

---- what it cannot bring, and why ------------------------------------------------

local function note(bound, tile, lanes, load)
  for _, n in ipairs(select(2, plan_of(bound, tile, lanes):check()).notes) do
    if n.task == load then return n.message:gsub("%s+", " "), n.hint and n.hint:gsub("%s+", " ") end
  end
end
if not only then
  local lanes = {p = "p0", q = "p0"}
  local m, h = note(gathered{m = 64, n = 64, d = 128}, {m = 64, n = 32, d = 32}, lanes, "load_x")
  tap.is(m, "'load_x' is copied by the threads of its lane, 16 bytes at a time: the copy engine begins rows at multiples of 128 bytes of "
    .. "shared memory, rows of its tile have 64", "rows that are too short")
  tap.ok(h and h:find "plan:propagate{d=64}", "  what would do", h)
  lanes.rows = false
  m, h = note(gathered{m = 64, n = 64, d = 128}, {m = 64, n = 32, d = 64}, lanes, "load_x")
  tap.is(m, "'load_x' is copied by the threads of its lane, 16 bytes at a time: the copy engine cannot follow its indices", "not asked for")
  tap.ok(h and h:find('plan:move("load_x", {by_rows=true})', 1, true), "  what would do", h)

  local plan = plan_of(gathered{m = 64, n = 64, d = 128}, {m = 64, n = 32, d = 64}, {p = "p0", q = "p0", warps = 2})
  local script = plan:script()
  tap.ok(script:find('plan:append("load_x", {seu="tma", lane="p0", by_rows=true})', 1, true), "a script says it", script)
  plan:move("load_x", {by_rows = false})
  tap.ok(not plan:script():find('load_x", {seu="tma", lane="p0", by_rows', 1, true), "a move takes it back")
  plan:undo()
  tap.is(plan:script(), script, "and is undone")
  local good, why = pcall(plan.move, plan, "mma", {by_rows = true})
  tap.ok(not good and tostring(why):find "'mma' is no load: by_rows= says how a copy engine loads a tile", "of a product", why)
  local source = plan:compile{target = "cuda"}.source
  tap.ok(source:find("if (elect()) flag_expect(full, 2048);", 1, true), "each warp expects its own bytes", source)
  tap.ok(source:find("tma_load_2d(slot_x + row0 * 128, &map", 1, true) or source:find("tma_load_2d(slot_x + (row0 * 128", 1, true),
    "a copy for each row", source:match "/%* load_x.-\n\t\t\t\t}")
end

tap.done_testing()
