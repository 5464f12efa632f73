-- gather.t.lua - loads whose indices are values: programs against formulas in plain Lua, kernels against the reference,
-- families of plans, and refusals.
--
--   millrace gather.t.lua [PATTERN]   runs the families' cases whose names match
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")
local tensors = dofile(dir .. "lib/tensors.lua")
local tensor, mixed = tensors.tensor, tensors.mixed
local follows = dofile(dir .. "lib/follows.lua")(tap)
random_plans.target = "host"
local only = arg[1]
local SEEDS <const> = {1, 2}                            -- accesses are watched with the first

---- formulas -------------------------------------------------------------------

local rows = mr.program("rows", function(p)
  local n, d = p:axes("n", "d")
  local r = p:axis("r", 7)
  local T, X, Y = p:input("T", {n}, "i32"), p:input("X", {r, d}, p.dtype), p:output("Y", {n, d}, "f32")
  local x = p:load("load_x", X, {p:load("load_t", T), d})
  Y:store(p:task("double", function() return x * 2 end))
end)

for _, dtype in ipairs{"f32", "bf16", "e4m3"} do
  for _, d in ipairs{8, 19} do
    local T, t = tensor("i32", {13}, function(n) return (n * 5 + 2) % 11 - 2 end)      -- -2 to 8: some are outside
    local X, x = tensor(dtype, {7, d}, mixed)
    follows(("rows by a table, %s, %d columns"):format(dtype, d), rows{n = 13, d = d, dtype = dtype}, {T = T, X = X},
      function(n, j) return 2 * x(t(n), j) end)
  end
end

local T, t = tensor("i32", {4}, function(i) return ({2147483647, -2147483647 - 1, 3, -1})[i + 1] end)
local X, x = tensor("f32", {7, 8}, mixed)
follows("the greatest and least numbers are outside", rows{n = 4, d = 8, dtype = "f32"}, {T = T, X = X},
  function(n, j) return 2 * x(t(n), j) end)

local paged = mr.program("paged", function(p)
  local b, n, d = p:axes("b", "n", "d")
  local pages, slot, blocks = p:axis("pages", 9), p:axis("slot", 4), p:axis("blocks", (n.size + 3) // 4)
  local T, K = p:input("T", {b, blocks}, "i32"), p:input("K", {pages, slot, d}, "bf16")
  local Y = p:output("Y", {b, n, d}, "f32")
  p:batch(b)
  local k = p:load("load_k", K, {p:load("load_t", T, {b, n // 4}), n % 4, d})
  Y:store(p:task("double", function() return k * 2 end))
end)
T, t = tensor("i32", {3, 5}, function(b, i) return (b * 5 + i * 7 + 4) % 11 - 1 end)
X, x = tensor("bf16", {9, 4, 16}, mixed)
follows("pages, of which a table is given for each batch", paged{b = 3, n = 18, d = 16}, {T = T, K = X},
  function(b, n, j) return 2 * x(t(b, n // 4), n % 4, j) end)

-- One row of the values' axes for each of the rows, a sum of a value and an expression, and element-wise work.
local shifted = mr.program("shifted", function(p)
  local g, m, d = p:axes("g", "m", "d")
  local r = p:axis("r", 40)
  local First, X, Y = p:input("First", {g}, "i32"), p:input("X", {r, d}, "f32"), p:output("Y", {g, m, d}, "f32")
  p:batch(g)
  local first = p:load("load_t", First)
  local y
  if p.form == "index" then
    y = p:load("load_x", X, {first + m * 2 - 1, d})
  elseif p.form == "before" then
    y = p:load("load_x", X, {m * 2 - 1 + first, d})
  else
    local at = p:task("at", function() return first + m:index() * 2 - 1 end)
    y = p:load("load_x", X, {at, d})
  end
  Y:store(p:task("double", function() return y * 2 end))
end)
X, x = tensor("f32", {40, 8}, mixed)
T, t = tensor("i32", {3}, function(g) return ({0, 11, 30})[g + 1] end)
for _, form in ipairs{"index", "before", "value"} do
  follows("rows from a first one on, by " .. form, shifted{g = 3, m = 11, d = 8, form = form}, {First = T, X = X},
    function(g, m, j) return 2 * x(t(g) + 2 * m - 1, j) end)
end

-- Two values, over two axes, and over the contiguous dimension; a value used twice.
local both = mr.program("both", function(p)
  local n, m = p:axes("n", "m")
  local r, s = p:axis("r", 6), p:axis("s", 10)
  local T, U = p:input("T", {n, m}, "i32"), p:input("U", {m}, "i32")
  local X, Y = p:input("X", {r, s}, "f32"), p:output("Y", {n, m}, "f32")
  local i, j = p:load("load_t", T), p:load("load_u", U)
  local y = p:load("load_x", X, {i, p.twice and i + 2 or j})
  Y:store(p:task("double", function() return y * 2 end))
end)
T, t = tensor("i32", {5, 9}, function(n, m) return (n * 9 + m * 5) % 7 end)
local U, u = tensor("i32", {9}, function(m) return (m * 7) % 12 - 1 end)
X, x = tensor("f32", {6, 10}, mixed)
follows("elements by two values", both{n = 5, m = 9}, {T = T, U = U, X = X}, function(n, m) return 2 * x(t(n, m), u(m)) end)
local twice = mr.program("twice", function(p)
  local n = p:axes("n")
  local r, c = p:axis("r", 6), p:axis("c", 6)
  local T, X, Y = p:input("T", {n}, "i32"), p:input("X", {r, c}, "f32"), p:output("Y", {n}, "f32")
  local i = p:load("load_t", T)
  local y = p:load("load_x", X, {i, i + n % 2})
  Y:store(p:task("double", function() return y * 2 end))
end)
T, t = tensor("i32", {9}, function(n) return (n * 5) % 7 end)
X, x = tensor("f32", {6, 6}, mixed)
follows("one value for two dimensions", twice{n = 9}, {T = T, X = X}, function(n) return 2 * x(t(n), t(n) + n % 2) end)

-- A table in a table, and one that a carry moves on: the sum of the elements that a chain of n leads to.
local chained = mr.program("chained", function(p)
  local n, m = p:axes("n", "m")
  local r = p:axis("r", 8)
  local T, U, X = p:input("T", {m}, "i32"), p:input("U", {r}, "i32"), p:input("X", {r}, "f32")
  local Y = p:output("Y", {m}, "f32")
  local y = p:load("load_x", X, {p:load("load_u", U, {p:load("load_t", T)})})
  Y:store(p:task("double", function() return y * 2 + n.size end))
end)
T, t = tensor("i32", {11}, function(m) return (m * 3) % 9 end)
U, u = tensor("i32", {8}, function(i) return (i * 5 + 1) % 8 end)
X, x = tensor("f32", {8}, mixed)
follows("a table of a table", chained{n = 2, m = 11}, {T = T, U = U, X = X}, function(m) return 2 * x(u(t(m))) + 2 end)

-- In a loop: a product with rows that a table names, and an index that a carry counts on.
local gathered = mr.program("gathered", function(p)
  local m, n, d = p:axes("m", "n", "d")
  local r, s = p:axis("r", 50), p:axis("s", 16)
  local A, T = p:input("A", {m, d}), p:input("T", {n}, "i32")
  local X, Y = p:input("X", {r, d}), p:output("Y", {m, n}, "f32")
  local acc = p:carry("acc", {m, n}, 0)
  local rows_of = p:load("load_t", T)
  p:loop(d, function() acc:add(p:mma("mma", p:load("load_a", A), p:load("load_x", X, {rows_of, d}))) end)
  Y:store(acc)
end)
local counted = mr.program("counted", function(p)
  local n, k = p:axes("n", "k")
  local r = p:axis("r", 12)
  local First, X, Y = p:input("First", {n}, "i32"), p:input("X", {r}, "f32"), p:output("Y", {n}, "f32")
  local sum, at = p:carry("sum", {n}, 0), p:carry("at", {n}, 0)
  at:set(p:load("load_t", First))
  p:loop(k, function()
    local x = p:load("load_x", X, {at - 1 + k})
    sum:add(mr.rowsum(x, k))
  end)
  Y:store(sum)
end)
T, t = tensor("i32", {10}, function(n) return (n * 3) % 11 end)
X, x = tensor("f32", {12}, mixed)
follows("rows from a carry on", counted{n = 10, k = 5}, {First = T, X = X}, function(n)
  local sum = 0
  for k = 0, 4 do sum = sum + x(t(n) - 1 + k) end
  return sum
end)
T, t = tensor("i32", {16}, function(n) return (n * 13) % 53 - 1 end)
local A, a = tensor("bf16", {16, 32}, mixed)
X, x = tensor("bf16", {50, 32}, mixed)
follows("a product with rows of a table", gathered{m = 16, n = 16, d = 32}, {A = A, T = T, X = X}, function(m, n)
  local sum = 0
  for d = 0, 31 do sum = sum + a(m, d) * x(t(n), d) end
  return sum
end)

---- families of plans ----------------------------------------------------------

-- Case `name` if it is asked for: build(plan) sets lanes and appends what it likes; all else goes to lane "c0".
local function correct(name, bound, tile, build)
  if only and not name:find(only) then return end
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  build(plan)
  plan:grid{eus = 1}                                    -- one EU has all tiles, one after the other
  plan:fill_waits()
  random_plans.correct(tap, name, plan, SEEDS)
end

-- Which lane has which sTask, by name; what is not named is on "c0".
local function lanes_of(tables, rows_from, warps)
  return function(plan)
    local made = {}
    for _, t in ipairs(plan.tasks) do
      local stem = t.name:gsub("%.%d+$", "")
      local lane = stem == "load_t" and tables or t.kind == "load" and rows_from or "c0"
      if not made[lane] then plan:lane(lane, lane:find "^c" and {warps = warps} or {}) end
      made[lane] = true
      plan:append(t.name, {lane = lane})
    end
  end
end

local widths = {{"bf16", 64}, {"f32", 32}, {"e4m3", 48}, {"bf16", 20}, {"bf16", 7}}
for _, w in ipairs(widths) do
  for _, tile in ipairs{16, 48, 64} do
    for _, lanes in ipairs{{"c0", "c0"}, {"p0", "p0"}, {"p0", "p1"}, {"c0", "p0"}} do
      local name = ("rows of %d %s, tiles of %d, table on %s, rows on %s"):format(w[2], w[1], tile, lanes[1], lanes[2])
      correct(name, rows{n = 104, d = w[2], dtype = w[1]}, {n = tile, d = w[2]}, lanes_of(lanes[1], lanes[2], 4))
    end
  end
end
for _, tile in ipairs{8, 32, 36} do
  for i, split in ipairs{{}, {"double", "store_Y"}, {"load_k", "double", "store_Y"}, {"load_t", "load_k", "double", "store_Y"}} do
    for _, lanes in ipairs{{"c0", "c0"}, {"p0", "p1"}} do
      correct(("pages, tiles of %d, %d tasks split, lanes %s and %s"):format(tile, #split, lanes[1], lanes[2]),
        paged{b = 2, n = 66, d = 64}, {n = tile, d = 64}, function(plan)
          if i > 1 then plan:split("n", 2, split) end
          lanes_of(lanes[1], lanes[2], 4)(plan)
        end)
    end
  end
end
for _, tile in ipairs{{m = 64, n = 64, d = 32}, {m = 64, n = 32, d = 64}, {m = 64, n = 24, d = 64}} do
  for _, lanes in ipairs{{"p0", "p0"}, {"c0", "p0"}} do
    for versions = 1, 3 do
      correct(("a product, tiles of %d x %d x %d, lanes %s and %s, %d versions"):format(tile.m, tile.n, tile.d, lanes[1],
        lanes[2], versions), gathered{m = 128, n = 72, d = 128}, tile, function(plan)
        lanes_of(lanes[1], lanes[2], 4)(plan)
        plan:fill_waits()
        plan:buffers{x = versions, a = versions}
      end)
    end
  end
end
for _, form in ipairs{"index", "value"} do
  correct("rows from a first one on, by " .. form, shifted{g = 3, m = 90, d = 24, form = form}, {m = 32, d = 24},
    lanes_of("p0", "p0", 4))
end
for _, lane in ipairs{"c0", "p0"} do
  correct("two values, tables on " .. lane, both{n = 40, m = 24}, {n = 16, m = 8}, lanes_of(lane, "p0", 4))
  correct("a carry, table on " .. lane, counted{n = 40, k = 20}, {n = 16, k = 8}, lanes_of(lane, lane, 4))
end

-- Plans that the search makes by itself.
for name, bound in pairs{pages = paged{b = 2, n = 96, d = 64}, product = gathered{m = 128, n = 64, d = 128}} do
  if not only then
    local found = mr.search(bound, mr.device "h200", {seconds = 3, trials = 2, measure = false})
    random_plans.correct(tap, name .. " of a search", found.plan, SEEDS)
    tap.ok(found.plan:script():find(('append("load_t", {seu="tma", lane="%s"})'):format(name == "pages" and "p1" or "p0"), 1, true),
      "  has a lane of its own for indices of the same loop", found.plan:script())
  end
end

---- boxes: rows that the copy engine brings, as many as a value is the same for -------------

-- Two products with keys and values in pages of 16, and a product of each group with rows from a first one on.
local cached = mr.program("cached", function(p)
  local b, m, n, d = p:axes("b", "m", "n", "d")
  local pages, slot, blocks = p:axis("pages", 11), p:axis("slot", 16), p:axis("blocks", n.size // 16)
  local Q, T, Y = p:input("Q", {b, m, d}), p:input("T", {b, blocks}, "i32"), p:output("Y", {b, m, d}, "f32")
  local K, V = p:input("K", {pages, slot, d}), p:input("V", {pages, slot, d})
  p:batch(b)
  local q, y = p:load("load_q", Q), p:carry("y", {m, d}, 0)
  p:loop(n, function()
    local page = p:load("load_t", T, {b, n // 16})
    if p.next then page = p:task("next", function() return page + 1 end) end
    local s = p:mma("mma_qk", q, p:load("load_k", K, {page, n % 16, d}))
    local s = p:task("halve", function() return (s * 0.5):to "bf16" end)
    y:add(p:mma("mma_pv", s, p:load("load_v", V, {p.next and page or page + 0 * b, n % 16, d})))
  end)
  Y:store(p:task("round", function() return y * 1 end))
end)
local grouped = mr.program("grouped", function(p)
  local g, m, n, k = p:axes("g", "m", "n", "k")
  local r = p:axis("r", 150)
  local First, X, W = p:input("First", {g}, "i32"), p:input("X", {r, k}), p:input("W", {g, n, k})
  local Y = p:output("Y", {g, m, n}, "f32")
  p:batch(g)
  local first, acc = p:load("load_t", First), p:carry("acc", {m, n}, 0)
  p:loop(k, function() acc:add(p:mma("mma", p:load("load_x", X, {first + m - 2, k}), p:load("load_w", W))) end)
  Y:store(acc)
end)

local function small(...) return math.floor(mixed(...) * 3 + 0.5) % 3 - 1 end       -- what is made of it needs no rounding
local Q, q = tensor("bf16", {2, 16, 32}, small)
local K, kk = tensor("bf16", {11, 16, 32}, small)
local V, v = tensor("bf16", {11, 16, 32}, mixed)
T, t = tensor("i32", {2, 3}, function(b, i) return (b * 5 + i * 4) % 13 - 1 end)
local scores = {}
follows("keys and values in pages", cached{b = 2, m = 16, n = 48, d = 32}, {Q = Q, K = K, V = V, T = T}, function(b, m, d)
  local sum = 0
  for n = 0, 47 do
    local s, key = 0, (b * 16 + m) * 48 + n
    for i = 0, scores[key] and -1 or 31 do s = s + q(b, m, i) * kk(t(b, n // 16), n % 16, i) end
    scores[key] = scores[key] or s * 0.5
    sum = sum + scores[key] * v(t(b, n // 16), n % 16, d)
  end
  return sum
end)

T, t = tensor("i32", {4}, function(g) return ({0, 61, 140, -3})[g + 1] end)
X, x = tensor("bf16", {150, 32}, mixed)
local W, w = tensor("bf16", {4, 8, 32}, mixed)
follows("groups of rows", grouped{g = 4, m = 20, n = 8, k = 32}, {First = T, X = X, W = W}, function(g, m, n)
  local sum = 0
  for k = 0, 31 do sum = sum + x(t(g) + m - 2, k) * w(g, n, k) end
  return sum
end)

local function boxes_of(plan, load)
  return tostring(plan:kernel{}):match("load_boxes " .. load .. "[^\n]*in boxes of ([%d x]+), (%d+)")
end

for _, case in ipairs{{16, "1 x 16 x 64, 1"}, {32, "1 x 16 x 64, 2"}, {48, "1 x 16 x 64, 3"}, {64, "1 x 16 x 64, 4"}} do
  for _, of in ipairs{"load", "task"} do
    for versions = 1, 2 do
      correct(("pages by boxes, tiles of %d, indices of a %s, %d versions"):format(case[1], of, versions),
        cached{b = 2, m = 64, n = 192, d = 64, next = of == "task" or nil}, {m = 64, n = case[1]}, function(plan)
          lanes_of("p0", "p1", 4)(plan)
          plan:buffers{k = versions, v = versions, t = versions}
          plan:fill_waits()
          tap.is(table.concat({boxes_of(plan, "K")}, ", "), case[2], "its boxes")
        end)
    end
  end
end
correct("pages in tiles of 8, less than a page", cached{b = 2, m = 64, n = 96, d = 64}, {m = 64, n = 8}, lanes_of("p0", "p1", 4))
correct("pages in tiles of 24, which pages do not divide", cached{b = 2, m = 64, n = 96, d = 64}, {m = 64, n = 24},
  lanes_of("p0", "p1", 4))
correct("pages, a table on the lane of the products", cached{b = 2, m = 64, n = 96, d = 128}, {m = 64, n = 32},
  lanes_of("c0", "p1", 4))
correct("pages, all on one lane", cached{b = 2, m = 64, n = 96, d = 128}, {m = 64, n = 32}, lanes_of("c0", "c0", 4))
correct("pages, a ragged last tile", cached{b = 2, m = 64, n = 80, d = 64}, {m = 64, n = 32}, lanes_of("p0", "p0", 4))
for _, lanes in ipairs{{"p0", "p0"}, {"c0", "p0"}, {"c0", "c0"}} do
  for _, tile in ipairs{{m = 64, n = 64, k = 32}, {m = 128, n = 32, k = 64}} do
    correct(("groups by boxes, tiles of %d x %d x %d, lanes %s and %s"):format(tile.m, tile.n, tile.k, lanes[1], lanes[2]),
      grouped{g = 3, m = 100, n = 64, k = 128}, tile, lanes_of(lanes[1], lanes[2], 4))
  end
end

-- Blocks of columns that a list names, a multiple of 64 elements or not known to be one.
local columns = mr.program("columns", function(p)
  local m, n, k, kb, l = p:axes("m", "n", "k", "kb", "l")
  local A, B, Y = p:input("A", {m, k}), p:input("B", {n, k}), p:output("Y", {m, n}, "f32")
  local List = p:input("List", {kb}, "i32")
  local c = p:carry("c", {m, n}, 0)
  p:loop(kb, {batch = true}, function()
    local at = p:load("load_t", List)
    if p.scale > 1 then at = at * p.scale end
    c:add(p:mma("mma", p:load("load_a", A, {m, at + l}), p:load("load_b", B, {n, at + l})))
  end)
  Y:store("store", p:task("round", function() return c + 0 end))
end)
A, a = tensor("bf16", {24, 144}, mixed)
local B, b = tensor("bf16", {8, 144}, mixed)
T, t = tensor("i32", {5}, function(i) return ({2, 0, -1, 4, 9})[i + 1] end)
follows("blocks of columns", columns{m = 24, n = 8, k = 144, kb = 5, l = 32, scale = 32}, {A = A, B = B, List = T}, function(m, n)
  local sum = 0
  for i = 0, 4 do
    for l = 0, 31 do sum = sum + a(m, t(i) * 32 + l) * b(n, t(i) * 32 + l) end
  end
  return sum
end)
for _, case in ipairs{{64, 64, true}, {8, 64, true}, {4, 64, false}, {1, 64, false}, {128, 128, true}, {32, 16, true}} do
  local scale, l, boxes = table.unpack(case)
  for _, lanes in ipairs{{"p0", "p1"}, {"c0", "c0"}} do
    correct(("columns at %d times a value and the next %d, lanes %s and %s"):format(scale, l, lanes[1], lanes[2]),
      columns{m = 128, n = 64, k = 320, kb = 5, l = l, scale = scale}, {m = 64, n = 64}, function(plan)
        lanes_of(lanes[1], lanes[2], 4)(plan)
        plan:fill_waits()
        tap.is(boxes_of(plan, "A") ~= nil and boxes_of(plan, "B") ~= nil, boxes, "  by the engine or not")
      end)
  end
end

---- stores ---------------------------------------------------------------------

-- Rows of X go where a table says, from a lane that computes them or out of a load; and products, by rows or elements.
local scattered = mr.program("scattered", function(p)
  local n, d = p:axes("n", "d")
  local r = p:axis("r", p.rows or n.size)
  local T, X, Y = p:input("T", {n}, "i32"), p:input("X", {n, d}, p.dtype), p:output("Y", {r, d}, p.out or "f32")
  local row, x = p:load("load_t", T), p:load("load_x", X)
  local y = p.copied and x or p:task("double", function() return x * 2 end)
  Y:store("store_y", y, {p.shift and row + 1 or row, d})
end)
local function row_of(n) return (n * 7) % 23 - 3 end
for _, copied in ipairs{false, true} do
  for _, d in ipairs{8, 19} do
    local T, t = tensor("i32", {13}, row_of)
    local X, x = tensor("f32", {13, d}, mixed)
    local from = {}
    for n = 0, 12 do from[t(n) + 1] = n end
    follows(("rows go where a table says, %d columns, %s"):format(d, copied and "copied" or "computed"),
      scattered{n = 13, d = d, rows = 17, shift = true, copied = copied or nil, dtype = "f32"}, {T = T, X = X}, function(r, j)
        return from[r] and (copied and 1 or 2) * x(from[r], j)
      end)
  end
end
-- In a loop that takes one index after the other, what each of its iterations stores is an element of its own.
do
  local rows = mr.program("rows", function(p)
    local c, i = p:axes("c", "i")
    local r = p:axis("r", c.size * i.size)
    local X, Row, Y = p:input("X", {c, i}, "f32"), p:input("Row", {c, i}, "i32"), p:output("Y", {r}, "f32")
    p:loop(c, {batch = true}, function()
      local row, x = p:load("load_row", Row), p:load("load_x", X)
      Y:store("store_y", p:task("double", function() return x * 2 end), {row})
    end)
  end){c = 3, i = 5}
  local X, x = tensor("f32", {3, 5}, mixed)
  local Row = mr.array("i32", {3, 5}, function(c, i) return (c - 1 + 3 * (i - 1)) end)
  follows("rows of each iteration", rows, {X = X, Row = Row}, function(r) return 2 * x(r % 3, r // 3) end)
  Row:set(Row:get(1, 2), 3, 4)
  local good, why = pcall(rows.reference, rows, {X = X, Row = Row})
  tap.ok(not good and why:find("'store_y' stores two elements at one index of 'Y'", 1, true), "  but not at one index", why)
end

-- Additions at the same indices add up.
local summed = mr.program("summed", function(p)
  local n, d = p:axes("n", "d")
  local r = p:axis("r", 6)
  local T, X, Y = p:input("T", {n}, "i32"), p:input("X", {n, d}, "f32"), p:output("Y", {r, d}, "f32")
  p:phase("clear", function() Y:store(p:task("zero", function() return d:index() * 0.0 + r:index() * 0.0 end)) end)
  p:phase("add", function()
    local row, x = p:load("load_t", T), p:load("load_x", X)
    Y:add("add_y", p:task("double", function() return x * 2 end), {row, d})
  end)
end)
T, t = tensor("i32", {21}, function(n) return (n * 5) % 8 - 1 end)
X, x = tensor("f32", {21, 8}, mixed)
follows("rows are added where a table says", summed{n = 21, d = 8}, {T = T, X = X}, function(r, j)
  local sum = 0
  for n = 0, 20 do sum = sum + (t(n) == r and 2 * x(n, j) or 0) end
  return sum
end)
local produced = mr.program("produced", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local r = p:axis("r", p.columns and n.size or m.size)
  local A, B = p:input("A", {m, k}), p:input("B", {n, k})
  local T, Y = p:input("T", p.columns and {n} or {m}, "i32"), p:output("Y", {r, p.columns and m or n}, p.out or "f32")
  local acc, row = p:carry("acc", {m, n}, 0), p:load("load_t", T)
  p:loop(k, function() acc:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
  Y:store("store_y", p:task("out", function() return acc:to(p.out or "f32") end), {row, p.columns and m or n})
end)
for _, out in ipairs{"f32", "bf16"} do
  for _, columns in ipairs{false, true} do
    for _, lane in ipairs{"p0", "c0"} do
      for _, m in ipairs{128, 100} do
        correct(("products to rows by values, %s, table of %s on %s, %d rows"):format(out, columns and "columns" or "rows", lane, m),
          produced{m = m, n = 64, k = 64, out = out, columns = columns or nil}, {m = 64, n = 32, k = 32}, lanes_of(lane, "p0", 4))
      end
    end
  end
end
for _, w in ipairs(widths) do
  for _, copied in ipairs{false, true} do
    correct(("rows to rows by values, %d of %s, %s"):format(w[2], w[1], copied and "copied" or "computed"),
      scattered{n = 100, d = w[2], dtype = w[1], out = copied and w[1] or nil, copied = copied or nil}, {n = 32, d = w[2]},
      lanes_of("p0", "p0", 4))
  end
end
correct("rows added by values", summed{n = 100, d = 32}, {n = 32, d = 32}, lanes_of("p0", "p0", 4))
for name, bound in pairs{scattered = scattered{n = 128, d = 64}, produced = produced{m = 128, n = 64, k = 64}} do
  if not only then
    local found = mr.search(bound, mr.device "h200", {seconds = 3, trials = 2, measure = false})
    random_plans.correct(tap, name .. " of a search", found.plan, SEEDS)
    tap.ok(found.plan:compile{target = "host"}:check{}.ok, "  and its check agrees")
  end
end
-- A phase with a store of fewer axes: tiles of the others store the same elements again.
local with_indices = mr.program("with_indices", function(p)
  local n, d = p:axes("n", "d")
  local r = p:axis("r", n.size)
  local T, X = p:input("T", {n}, "i32"), p:input("X", {n, d}, "f32")
  local Y, Z = p:output("Y", {r}, "f32"), p:output("Z", {n, d}, "f32")
  local row, x = p:load("load_t", T), p:load("load_x", X)
  Z:store("store_z", p:task("double", function() return x * 2 end))
  Y:store("store_y", p:task("number", function() return n:index() * 1.5 end), {row})
end)
T, t = tensor("i32", {8}, function(n) return (n * 3) % 8 end)
local reversed = with_indices{n = 8, d = 200}:reference({T = T, X = mr.array("f32", {8, 200}, 1)}, {tile = {n = 4, d = 50}}).Y
local right = true
for n = 0, 7 do right = right and reversed[t(n) + 1] == n * 1.5 end
tap.ok(right, "elements that several tiles store are no two elements")

local good, why = pcall(function()
  local T = mr.array("i32", {4}, {0, 3, 1, 3})
  return scattered{n = 4, d = 8, dtype = "f32"}:reference{T = T, X = mr.array("f32", {4, 8}, 1)}
end)
tap.ok(not good and why:find("'store_y' stores two elements at one index of 'Y', and which of them stays is not defined", 1, true),
  "the reference refuses two elements at one index", why)
good, why = pcall(function()
  local bound = scattered{n = 8, d = 64}
  local k = mr.search(bound, mr.device "h200", {trials = 2, measure = false}).plan:compile{target = "host"}
  local inputs = bound:inputs{}
  inputs.T = mr.array("i32", {8}, {0, 3, 1, 3, 2, 4, 5, 6})
  return k:check{inputs = inputs, reference = "interpreter"}
end)
tap.ok(not good and why:find("stores two elements at one index of 'Y', and", 1, true), "  a check says the same of the same tensor", why)
local apart, seen = true, {}
for _, v in ipairs(scattered{n = 100, d = 8}:inputs{}.T) do
  apart = apart and not seen[v] and v >= 0 and v < 100
  seen[v] = true
end
tap.ok(apart, "random indices of stores are inside, and differ")
tap.like(tostring(scattered{n = 100, d = 8}), "Y%[%%0, d%] := %%", "a listing shows the index")

---- what inputs are ------------------------------------------------------------

local inputs = paged{b = 3, n = 64, d = 16}:inputs{}
local inside = true
for _, v in ipairs(inputs.T) do inside = inside and v >= 0 and v < 9 end
tap.ok(inside, "random tables name pages that there are")
inside = true
for _, v in ipairs(shifted{g = 50, m = 11, d = 8, form = "index"}:inputs{}.First) do inside = inside and v >= 0 and v < 40 - 19 end
tap.ok(inside, "and first rows such that all that follow are there")
tap.like(tostring(paged{b = 3, n = 64, d = 16}), "load K%[%%0, n %% 4, d%]", "a listing shows the value")
tap.like(tostring(shifted{g = 3, m = 11, d = 8, form = "index"}), "load X%[%%0 %+ 2%*m %- 1, d%]", "and what is added to it")

---- sorted numbers ----------------------------------------------------------------

-- Weights that blocks of rows choose: sorted choices are read about once, and the kernel is the same.
local function chosen(sorted)
  return mr.program("chosen", function(p)
    local e, n, k, blk, i = p:axes("e", "n", "k", "blk", "i")
    local E = p:input("E", {blk}, "i32", sorted and {sorted = true} or nil)
    local X, W, Y = p:input("X", {blk, i, k}), p:input("W", {e, n, k}), p:output("Y", {blk, i, n})
    p:batch(blk)
    local c = p:carry("c", {i, n}, 0)
    local expert = p:load("expert", E)
    p:loop(k, function() c:add(p:mma("mma", p:load("x", X), p:load("w", W, {expert, n, k}))) end)
    Y:store("y", p:task("convert", function() return c:to "bf16" end))
  end)
end
do
  local sizes, times, texts = {e = 64, n = 4096, k = 4096, blk = 256, i = 128}, {}, {}
  for _, sorted in ipairs{false, true} do
    local plan = mr.plan(chosen(sorted)(sizes):graph{tile = {n = 128, k = 64}}, mr.device "h200")
    for _, t in ipairs(plan.tasks) do plan:append(t.name) end
    plan:buffers{x = 4, w = 4}
    plan:fill_waits()
    times[#times + 1] = plan:simulate().seconds
    texts[#texts + 1] = tostring(plan:compile{text = true}.source)
  end
  tap.ok(times[2] < 0.9 * times[1], "sorted choices of weights are predicted to be faster", table.concat(times, ", "))
  tap.is(texts[1], texts[2], "  by the same kernel")
  local E = chosen(true){e = 5, n = 8, k = 16, blk = 100, i = 8}:inputs{seed = 3}.E
  local ascends, all = true, {}
  for j = 1, #E do
    ascends = ascends and (j == 1 or E[j] >= E[j - 1])
    all[E[j]] = true
  end
  tap.ok(ascends and all[0] and all[4] and not all[5], "random numbers ascend through all there are", tostring(E))
end
for text, message in pairs{
  ['p:input("X", {m}, "bf16", {sorted = true})'] = "'X' cannot be sorted: that is promised of an input of i32 with a dimension",
  ['p:input("X", {m}, "i32", {sorted = 1})'] = "input: sorted: true or false expected, got 1",
  ['p:input("X", {m}, "i32", {sort = true})'] = "input: unknown option 'sort'; did you mean 'sorted'?",
  ['p:output("X", {m}, "i32", {sorted = true})'] = "output: nothing behind the dtype, or of an input {sorted = true}, expected, got table",
} do
  tap.refuses('local mr = require "millrace"\nmr.program("bad", function(p) local m = p:axes("m")\n' .. text .. "\nend){m = 8}",
    "user.lua:3: " .. message, text)
end

---- all of an axis ----------------------------------------------------------------

-- All rows are summed up, so that each tile stores all of them, at all indices.
do
  local bound = mr.program("summed", function(p)
    local m, n = p:axes("m", "n")
    local X, T = p:input("X", {m, n}, "f32"), p:input("T", {m}, "i32")
    local Y, S = p:output("Y", {p:axis("rows", 9), n}, "f32"), p:output("S", {n}, "f32")
    local x = p:load("x", X)
    Y:store("y", x, {p:load("t", T), n})
    S:store("s", p:task("sum", function() return mr.rowsum(x, m) end))
  end){m = 5, n = 8}
  local plan = mr.plan(bound:graph{tile = {m = 2}}, mr.device "h200")
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  random_plans.correct(tap, "rows that are summed up and stored by a table", plan, SEEDS)
end

---- fewer elements than threads --------------------------------------------------

-- A table has no index for threads that load nothing.
do
  local bound = mr.program("few", function(p)
    local n, k = p:axes("n", "k")
    local T, X = p:input("T", {n}, "i32"), p:input("X", {p:axis("rows", 64), k}, "i8")
    local Y = p:output("Y", {n, k}, "f32")
    local x = p:load("x", X, {p:load("t", T), k})
    Y:store("y", p:task("v", function() return x:to "f32" end))
  end){n = 8, k = 3}
  local plan = mr.plan(bound:graph{}, mr.device "h200")
  plan:lane("c0", {warps = 8})
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = "c0", seu = "cuda"}) end
  random_plans.correct(tap, "8 rows of a table, by 256 threads", plan, SEEDS)
end

-- Rows from a first one on that a table names: tiles of other rows load others, so no more than the bandwidth is used.
do
  local bound = mr.program("first", function(p)
    local g, r, d = p:axes("g", "r", "d")
    local X, F = p:input("X", {p:axis("m", 8192), d}), p:input("F", {g}, "i32")
    p:batch(g)
    local first, Y = p:load("load_first", F), p:output("Y", {g, r, d}, "e4m3")
    local x = p:load("load_x", X, {first + r, d})
    Y:store("store_y", p:task("double", function() return (x * 2):to "e4m3" end))
  end){g = 2, r = 6144, d = 8192}
  local found = mr.search(bound, mr.device "h200", {measure = false, trials = 40, tile = {r = 16, d = 2048}})
  tap.ok(found.timeline.bandwidth_share <= 1, "rows added to a value are other rows", found.timeline.bandwidth_share)
  tap.ok(found.bound_seconds > 0, "so no plan is faster than the bound", found.bound_seconds)
end

---- clusters ------------------------------------------------------------------

-- The blocks of a cluster share the rows and the weights; each has a table of its own, because its copies free it in one block.
do
  local bound = mr.examples.grouped_gemm{m = 40, n = 128, k = 64, e = 3, block = 32, permute = true}
  local plan = mr.plan(bound:graph{tile = {i = 32, k = 32, n = 64}}, mr.device "h200")
  plan:lane("p0", {})
  plan:lane("p1", {})
  plan:lane("c0", {warps = 4})
  plan:buffers{token = 2, x = 2, rows = 3, w = 3}
  plan:grid{cluster = 2}
  for task, lane in pairs{load_token = "p1", load_x = "p0", load_rows = "p0", load_w = "p0", store_rows = "c0"} do
    plan:append(task, {seu = "tma", lane = lane})
  end
  plan:append("load_expert", {seu = "cuda", lane = "p0"})
  plan:append("mma", {seu = "tensor", lane = "c0"})
  plan:append("convert", {seu = "cuda", lane = "c0"})
  plan:append("store_y", {seu = "tma", lane = "c0"})
  plan:fill_waits()
  local legal, problems = plan:check()
  if tap.ok(legal, "a table of indices in a cluster is legal", tostring(problems)) then
    local worst, report = dofile(dir .. "lib/on_host.lua").worst(plan, 4)
    tap.ok(worst < 0.01, "and right", report or worst)
  end
end

---- refusals -------------------------------------------------------------------

local head = [[
local mr = require "millrace"
mr.program("bad", function(p)
  local n, d, a, c = p:axes("n", "d", "a", "c")
  local T, F, B = p:input("T", {n}, "i32"), p:input("F", {n}, "f32"), p:input("B", {n}, "bool")
  local X, Z, Y = p:input("X", {n, d}), p:input("Z", {n, d, a, c}), p:output("Y", {n, d})
  local t, f, b = p:load(T), p:load(F), p:load(B)
  ]]
local function refused(line, message)
  tap.refuses(head .. line .. "\nend){n=8, d=8, a=8, c=8}", "user.lua:7: " .. message, line)
end
---- what is fetched once ---------------------------------------------------------

-- Products of rows that a table names for a block, of weights that another one chooses: the seconds of the same plan. The rows are
-- the same in all tiles of a block, unless each tile has a table of its own; of few weights, most tiles have the same.
local function seconds(weights, own_table)
  local bound = mr.program("grouped", function(p)
    local b, i, c, j, k = p:axes("b", "i", "c", "j", "k")
    local e, m = p:axis("e", weights), p:axis("m", b.size * i.size)
    local X, W = p:input("X", {m, k}), p:input("W", {e, c, j, k})
    local Row, Expert, Y = p:input("Row", {b, c, i}, "i32"), p:input("Expert", {b}, "i32"), p:output("Y", {b, i, c, j})
    p:batch(b, c)
    local row, expert = p:load("load_row", Row, {b, own_table and c or 0, i}), p:load("load_expert", Expert)
    local y = p:carry("y", {i, j}, 0)
    p:loop(k, function() y:add(p:mma("mma", p:load("load_x", X, {row, k}), p:load("load_w", W, {expert, c, j, k}))) end)
    Y:store("store_y", p:task("convert", function() return y:to "bf16" end))
  end){b = 64, i = 64, c = 32, j = 128, k = 8192}
  local plan = mr.plan(bound:graph{tile = {k = 64}}, mr.device "h200")
  plan:lane("p0", {warps = 4})
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:buffers{x = 4, w = 4}
  plan:fill_waits()
  return plan:simulate{events = 0}.seconds
end
local few, many, own = seconds(2), seconds(64), seconds(64, true)
tap.ok(few < 0.97 * many, "tiles that choose among few weights load the same ones", few, many)
tap.ok(many < 0.97 * own, "tiles of which one table names the rows load the same ones", many, own)

refused("p:load(X, {f, d})", "'load_F', an index of dimension 'n' of 'X', is f32; an index is i32: cast it with :to \"i32\"")
refused("p:load(X, {b, d})",
  "'load_B', an index of dimension 'n' of 'X', is bool; an index is i32: choose between two with where")
refused("p:load(Z, {t, t + 1, t + 2, t + 3})",
  "tensor 'Z' is indexed by more than 3 values; let one value give several of its indices, or reshape the tensor")
refused("p:load(X, {(t + n) * 2, d})",
  "an index is the sum of a value and an expression of axes; compute the value itself first, as in (table * 16)")
refused("p:load(X, {(n - t) // 2, d})",
  "an index is the sum of a value and an expression of axes; compute the value itself first, as in (table * 16)")
refused("p:load(X, {(t + n) + t, d})", "an index has two values; add the values themselves first")
refused("p:loop(d, {upto = t}, function() end)", "loop: 'upto' is an index made of axes and numbers; for a value, write length = ..., at which the axis ends")
refused("p:loop(d, {upto = t + n}, function() end)", "loop: 'upto' is an index made of axes and numbers; for a value, write length = ..., at which the axis ends")
refused("Z:store(p:load(X), {t, t + 1, t + 2, d})", "'Z' is an input and cannot be stored; declare an output or a temporary")
refused("p:output('W', {n, d, a, c}):store(t, {t, t + 1, t + 2, 0})",
  "'W' is stored at indices of more than 2 values; let one value give several of them, or reshape the tensor")
refused("Y:store(p:load(X), {f, d})", "'load_F', an index of dimension 'n' of 'Y', is f32; an index is i32: cast it with :to \"i32\"")
refused("mr.exp2(t + n)", "exp2: value expected, got index expression a value + n; axis:index() is the index along an axis as a value")

tap.done_testing()
