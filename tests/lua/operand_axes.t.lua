-- Values over several axes, in any order, as a program has them when it is first written: a plan in the program's order is
-- legal, and right. Products contract several axes, operands lie in memory in any order of their axes, or in blocks, axes have
-- one value, and an index is asked for anywhere in a task.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local where = mr.where

-- The sTasks in the program's order on one lane or, with `lanes`, loads on one and the others on two more.
local function schedule(bound, tile, lanes)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  for i, t in ipairs(plan.tasks) do
    plan:append(t.name, lanes and {lane = t.kind == "load" and "p0" or "c" .. i % 2} or {})
  end
  plan:fill_waits()
  return plan
end

local function right(what, bound, tile, lanes)
  local plan = schedule(bound, tile, lanes)
  local legal, problems = plan:check()
  if not tap.ok(legal, what .. ": legal", tostring(problems)) then return end
  local verdict = tostring(plan:compile{target = "host"}:check{})
  tap.ok(verdict:find "^agrees", what, verdict, plan:script())
end

-- The axes named by the letters of a word.
local function by_letters(axes, word)
  local list = {}
  for letter in word:gmatch "." do list[#list + 1] = axes[letter] end
  return list
end

-- An index -----------------------------------------------------------------------------------------

-- Wherever it stands in a task: before or after other values of the same axis, once, twice, or for both axes.
local masks = {
  last = function(c, s, i) return where(s:gt(0) & i():lt(50), c, 0) end,
  first = function(c, s, i) return where(i():lt(50) & s:gt(0), c, 0) end,
  twice = function(c, s, i) return where(i():ge(10) & i():lt(50) & s:gt(0), c, 0) end,
  kept = function(c, s, i)
    local at = i()
    return where(at:ge(10) & at:lt(50) & s:gt(0), c, 0)
  end,
  scaled = function(c, s, i) return c * (s * 2 + i():to "f32" * 0.125) end,
  between = function(c, s, i)
    local t = s * 2
    local at = i() * 3
    return c + mr.max(t, at:to "f32") * t
  end,
}
for name, mask in pairs(masks) do
  for _, axis in ipairs{"m", "n"} do
    for _, looped in ipairs{false, true} do
      local program = mr.program("index", function(p)
        local m, n, k = p:axes("m", "n", "k")
        local along = axis == "m" and m or n
        local A, B, S = p:input("A", {m, k}), p:input("B", {n, k}), p:input("S", {along}, "f32")
        local s, c = p:load("s", S), nil
        if looped then
          c = p:carry("c", {m, n}, 0)
          p:loop(k, function() c:add(p:mma("mma", p:load("a", A), p:load("b", B))) end)
        else
          c = p:mma("mma", p:load("a", A), p:load("b", B))
        end
        p:output("C", {m, n}, "f32"):store("store", p:task("mask", function()
          return mask(c, s, function() return along:index() end)
        end))
      end)
      right(("index %s of %s%s"):format(name, axis, looped and ", behind a loop" or ""), program{m = 72, n = 88, k = 32},
        {m = 64, n = 64})
    end
  end
end
-- The index of the only axis that is left.
for _, batch in ipairs{true, false} do
  local program = mr.program("find", function(p)
    local b, page, t = p:axes("b", "page", "t")
    local T, P = p:input("table", {b, t}, "i32"), p:output("found", {b, page}, "i32")
    if batch then p:batch(b, page) else p:batch(b) end
    local tab = p:load("tab", T)
    P:store("store", p:task("find", function()
      local i = t:index()
      return mr.rowmax(where(tab:eq(page:index()), i, -1), t)
    end))
  end)
  right(batch and "an index alone, by batch" or "an index alone, in one tile", program{b = 2, page = 6, t = 8})
end

-- Values of 16 bits ----------------------------------------------------------------------------------

-- Chosen as they are, without a cast behind that; a carry of them.
for _, dtype in ipairs{"bf16", "f16"} do
  local chosen = mr.program("chosen", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local a, b = p:load("a", p:input("A", {m, n}, dtype)), p:load("b", p:input("B", {m, n}, dtype))
    local c = p:mma("mma", p:load("u", p:input("U", {m, k})), p:load("w", p:input("W", {n, k})))
    p:output("Y", {m, n}, dtype):store("st_y", p:task("choose", function()
      return where(a:gt(b) & n:index():lt(20), a, b)
    end))
    p:output("Z", {m, n}, dtype):store("st_z", p:task("choose_more", function()
      local h = c:to(dtype)
      return where(h:gt(a), h, where(m:index():lt(n:index()), b, a))
    end))
  end)
  local operands = mr.program("operands", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local a, d = p:load("a", p:input("A", {m, k}, dtype)), p:load("d", p:input("D", {m, k}, dtype))
    local b, e = p:load("b", p:input("B", {n, k}, dtype)), p:load("e", p:input("E", {k}, dtype))
    local h = p:task("mask_a", function() return where(m:index():ge(k:index()), a, d) end)
    local g = p:task("mask_b", function() return where(b:gt(e), b, e) end)
    p:output("Y", {m, n}, "f32"):store("st", p:mma("mma", h, g))
  end)
  local carried = mr.program("carried", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local c = p:carry("c", {m, n}, 0)
    p:loop(k, function()
      local x = p:load("x", p:input("X", {k, m, n}, dtype))
      p:task("keep", function() c:set(mr.max(c:to "f32", mr.rowmax(x:to "f32", k)):to(dtype)) end)
    end)
    p:output("Y", {m, n}, dtype):store("st", p:task("choose", function() return where(c:gt(0.5), c, mr.where(c:lt(0), 1, 0)):to(dtype) end))
  end)
  for _, tile in ipairs{{}, {m = 64, n = 16}} do
    local what = (", %s, tile of %s"):format(dtype, tile.m)
    right("chosen" .. what, chosen{m = 72, n = 40, k = 32}, tile)
    right("chosen operands" .. what, operands{m = 72, n = 40, k = 24}, tile)
    right("carried" .. what, carried{m = 72, n = 40, k = 6}, tile)
  end
end

-- Products over two axes ---------------------------------------------------------------------------

-- a, b: the orders of the operands' axes in memory. loop: the axes of a loop, if any.
local function contract(a, b, loop, dtype)
  return mr.program("two", function(p)
    local axes = {}
    axes.m, axes.n, axes.q, axes.r = p:axes("m", "n", "q", "r")
    local A, B = p:input("A", by_letters(axes, a), dtype), p:input("B", by_letters(axes, b), dtype)
    local C = p:output("C", {axes.m, axes.n}, "f32")
    if not loop then
      C:store("store", p:mma("mma", p:load("a", A), p:load("b", B)))
      return
    end
    local c = p:carry("c", {axes.m, axes.n}, 0)
    p:loop(by_letters(axes, loop), function() c:add(p:mma("mma", p:load("a", A), p:load("b", B))) end)
    C:store("store", c)
  end)
end

local orders = {"mqr", "mrq", "qmr", "qrm", "rmq", "rqm"}
for i, a in ipairs(orders) do
  for _, b in ipairs{a:gsub("m", "n") .. "", (orders[i % 6 + 1]:gsub("m", "n"))} do
    local what = ("contracted, %s and %s"):format(a, b)
    right(what, contract(a, b){m = 72, n = 40, q = 6, r = 4}, {m = 64, n = 32})
    right(what .. ", in a loop", contract(a, b, "q"){m = 64, n = 24, q = 5, r = 16}, {m = 64, n = 24, q = 2})
  end
end
for _, s in ipairs{{32, 4, 8}, {3, 5, 2}, {1, 40, 1}, {40, 1, 16}, {4, 64, 1}, {7, 24, 3}} do
  for _, loop in ipairs{"q", "r", "qr"} do
    local q, r, part = table.unpack(s)
    right(("contracted, %d x %d, loop over %s"):format(q, r, loop), contract("mqr", "nqr", loop){m = 64, n = 64, q = q, r = r},
      {m = 64, n = 64, q = loop:find "q" and part or nil, r = loop:find "r" and 1 or nil})
  end
end
right("contracted, f16", contract("mqr", "rnq", "q", "f16"){m = 64, n = 64, q = 32, r = 4})
right("contracted, e4m3", contract("mqr", "rnq", "q", "e4m3"){m = 64, n = 64, q = 32, r = 4})
right("contracted, two lanes", contract("mqr", "qrn", "q"){m = 64, n = 64, q = 32, r = 4}, nil, true)

right("contracted, with 36 accumulators at once", contract("mqr", "qnr"){m = 2304, n = 8, q = 4, r = 4})

-- Types of which the matrix unit contracts columns alone: what is contiguous in memory is transposed.
for _, dtype in ipairs{"e4m3", "e5m2", "tf32"} do
  for _, order in ipairs{{"mqr", "qrn"}, {"qrm", "nrq"}, {"qmr", "rqn"}} do
    right(("contracted, %s, %s and %s"):format(dtype, order[1], order[2]),
      contract(order[1], order[2], "q", dtype){m = 64, n = 72, q = 6, r = 8}, {q = 4, m = 64, n = 64})
  end
end

-- The copy engine follows another order of axes, if neighbours in the ring are so in memory, too. If the tile has all of r, q and r
-- are one axis in memory.
for _, case in ipairs{{"mqr", "nqr", 16, 0}, {"qmr", "nqr", 16, 0}, {"qmr", "qnr", 32, 0}, {"rmq", "nqr", 16, 1}, {"mqr", "nqr", 4, 0},
  {"mqr", "qnr", 8, 1}, {"mrq", "rqn", 8, 1}, {"mrq", "rnq", 8, 2}} do
  local a, b, r, by_threads = table.unpack(case)
  local plan = schedule(contract(a, b, "q"){m = 64, n = 64, q = 8, r = r}, {m = 64, n = 64, q = 4})
  local _, problems = plan:check()
  tap.is(#(problems.notes or {}), by_threads, ("%s and %s of %d: loads by threads"):format(a, b, r), problems)
  local _, loads = plan:compile{target = "cuda", text = true}.source:gsub("tma_load_[once_]*%dd%(slot", "")
  tap.ok(by_threads == 2 or loads > 0, "  others by the copy engine", loads)
end

-- Own axes in another order than the result has them; a part of them, and all of what each iteration multiplies a tile of.
for _, order in ipairs{"ikl", "kil", "kli", "lik", "lki", "ilk"} do
  for _, tile in ipairs{{}, {i = 8}, {k = 1}, {i = 1, k = 1}} do
    local program = mr.program("own", function(p)
      local axes = {}
      axes.i, axes.k, axes.j, axes.l = p:axes("i", "k", "j", "l")
      local X, W = p:input("X", by_letters(axes, order)), p:input("W", by_letters(axes, order:find "^l" and "lj" or "jl"))
      local v = p:mma("mma", p:load("x", X), p:load("w", W))
      p:output("Y", by_letters(axes, "ikj"), "f32"):store("st", p:task("halve", function() return v * 0.5 end))
    end)
    right(("own axes, %s, tile %s x %s"):format(order, tile.i, tile.k), program{i = 16, k = 6, j = 24, l = 16}, tile)
  end
end

-- An axis of one value -----------------------------------------------------------------------------

for _, kind in ipairs{"loaded", "computed"} do
  for _, order in ipairs{"bcj", "bjc", "cbj"} do
    for _, s in ipairs{{3, 64}, {2, 40}, {1, 16}} do
      local program = mr.program("states", function(p)
        local axes = {}
        axes.b, axes.c, axes.j, axes.d, axes.e = p:axes("b", "c", "j", "d", "e")
        local b, c, d, e = axes.b, axes.c, axes.d, axes.e
        local K, W = p:input("K", by_letters(axes, order .. "d")), p:input("W", by_letters(axes, order .. "d"))
        local U, F = p:input("U", by_letters(axes, order .. "e")), p:output("F", {b, d, e}, "f32")
        local G, T = p:input("G", {b, c}, "f32"), p:output("T", {b, c}, "f32")
        p:phase("one_chunk", function()
          p:batch(b, c)
          T:store("put", p:load("get", G))
        end)
        p:phase("states", function()
          p:batch(b)
          local S = p:carry("S", {d, e}, 0)
          p:loop(c, function()
            local w, u, k = p:load("w", W), p:load("u", U), p:load("k", K)
            local s16 = p:task("round", function() return S:to "bf16" end)
            local x = p:mma("mma_ws", w, s16)
            local v = p:task("delta", function() return ((u - x) * 0.125):to "bf16" end)
            if kind == "computed" then
              local k0 = k
              k = p:task("minus", function() return (-k0):to "bf16" end)
            end
            S:add(p:mma("mma_kv", k, v))
          end)
          F:store("f", S)
        end)
      end)
      right(("one value, %s, %s, %d of %d"):format(kind, order, s[1], s[2]),
        program{b = 1, c = s[1], j = s[2], d = 64, e = 64})
    end
  end
end

-- Blocks -------------------------------------------------------------------------------------------

-- dims: where the number of the block (N, K) and the index in it (n, k) are found in memory.
local function blocks(dims, side, block)
  return mr.program("blocks", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local own = side == "B" and n or m
    local axis = {N = p:axis("no", own.size // block), K = p:axis("ko", k.size // block), n = p:axis("ni", block),
      k = p:axis("ki", block)}
    local at = {N = own // block, K = k // block, n = own % block, k = k % block}
    local T = p:input("T", by_letters(axis, dims))
    local O = p:input("O", {side == "B" and m or n, k})
    local C, c = p:output("C", {m, n}, "f32"), p:carry("c", {m, n}, 0)
    p:loop(k, function()
      local t, o = p:load("t", T, by_letters(at, dims)), p:load("o", O)
      c:add(side == "B" and p:mma("mma", o, t) or p:mma("mma", t, o))
    end)
    C:store("store", c)
  end)
end

for _, dims in ipairs{"NKnk", "KNnk"} do
  local plan = schedule(blocks(dims, "B", 16){m = 64, n = 64, k = 128}, {m = 64, n = 64})
  local _, problems = plan:check()
  tap.is(#(problems.notes or {}), 0, ("blocks of 16, %s: loaded by the copy engine"):format(dims), problems)
end
for _, dims in ipairs{"NKnk", "NKkn", "KNnk", "NnKk", "kKnN", "nNkK"} do
  for _, side in ipairs{"A", "B"} do
    for _, block in ipairs{8, 16} do
      right(("blocks of %d, %s of %s"):format(block, dims, side), blocks(dims, side, block){m = 64, n = 64, k = 128},
        {m = 64, n = 64, k = block == 8 and 64 or nil})
    end
  end
end

-- Computed operands ----------------------------------------------------------------------------------

-- The second product contracts one or two axes of what the first one makes; what is behind the last k step is zero.
for _, over in ipairs{"q", "r", "qr", "mq", "m"} do
  for _, first in ipairs{true, false} do
    for _, s in ipairs{{q = 4, r = 8}, {q = 3, r = 5}} do
      local program = mr.program("chained", function(p)
        local axes = {}
        axes.m, axes.q, axes.r, axes.k, axes.d = p:axes("m", "q", "r", "k", "d")
        local A, B = p:input("A", by_letters(axes, "mk")), p:input("B", by_letters(axes, "rkq"))
        local V = p:input("V", by_letters(axes, "d" .. over))
        local x = p:mma("mma_x", p:load("a", A), p:load("b", B))
        local h = p:task("narrow", function() return (x * 0.25):to "bf16" end)
        local v, left = p:load("v", V), ("mqr"):gsub("[" .. over .. "]", "")
        local y = first and p:mma("mma_y", h, v) or p:mma("mma_y", v, h)
        p:output("Y", by_letters(axes, left .. "d"), "f32"):store("st", p:task("add", function() return y + 1 end))
      end)
      right(("chained over %s, %s, %d x %d"):format(over, first and "first" or "second", s.q, s.r),
        program{m = 40, q = s.q, r = s.r, k = 24, d = 16})
    end
  end
end

-- One value that two products have as first operand, of which they contract different axes; in some types even one product reads it
-- from shared memory.
for _, dtype in ipairs{"bf16", "f16", "e4m3", "tf32"} do
  local narrow = dtype == "e4m3" or dtype == "tf32"      -- no ring has contracted axes as columns for both products
  for _, orders in ipairs{{"sn", narrow and "sn" or "sm"}, {"sn", "ns"}, {"sn", "sn"}} do
    local program = mr.program("twice", function(p)
      local m, n, k, d = p:axes("m", "n", "k", "d")
      local Q, K = p:input("Q", {m, k}), p:input("K", {n, k})
      local W, V = p:input("W", {n, d}, dtype), p:input("V", {m, d}, dtype)
      local s = p:mma("mma_s", p:load("q", Q), p:load("k", K))
      local h = p:task("narrow", function() return (s * 0.25):to(dtype) end)
      for i, order in ipairs(orders) do
        local by = order:find "n" and p:load("w" .. i, W) or p:load("v" .. i, V)
        local y = order:find "^s" and p:mma("mma_" .. i, h, by) or p:mma("mma_" .. i, by, h)
        p:output("Y" .. i, {order:find "n" and m or n, d}, "f32"):store("st" .. i, y)
      end
    end)
    right(("operand of two products, %s, %s and %s"):format(dtype, orders[1], orders[2]), program{m = 64, n = 72, k = 32, d = 64})
  end
end

-- Products that add to one carry, with its axes as rows in one, as columns in the other.
for _, second in ipairs{"ba", "ab"} do
  for _, inner in ipairs{false, true} do
    local program = mr.program("sum", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local A, B = p:input("A", {m, k}), p:input("B", {n, k})
      local c = p:carry("c", {m, n}, 0)
      local function add(x, y, name) c:add(p:mma(name, x, y)) end
      p:loop(k, function()
        local a, b = p:load("a", A), p:load("b", B)
        add(a, b, "mma_1")
        if inner then p:task("halve", function() c:set(c * 0.5 + c * 0.5) end) end
        add(second == "ba" and b or a, second == "ba" and a or b, "mma_2")
      end)
      p:output("C", {m, n}, "f32"):store("st", p:task("add", function() return c + 1 end))
    end)
    right(("sums of ab and %s%s"):format(second, inner and ", with a task between" or ""), program{m = 72, n = 64, k = 96},
      {m = 64, n = 64, k = 32})
  end
end

-- Both products are in slices of one element along an axis of their own.
do
  local program = mr.program("narrow", function(p)
    local b, m, n, k, d = p:axes("b", "m", "n", "k", "d")
    local A, B, C = p:input("A", {b, m, k}), p:input("B", {n, k}), p:input("C", {d, m})
    local s = p:mma("mma_s", p:load("a", A), p:load("b", B))
    local h = p:task("narrow", function() return (s * 0.25):to "bf16" end)
    p:output("Y", {d, b, n}, "f32"):store("st", p:mma("mma_y", p:load("c", C), h))
  end)
  local plan = mr.plan(program{b = 2, m = 24, n = 32, k = 16, d = 64}:graph{}, mr.device "h200")
  plan:split("b", 2)
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  local legal, problems = plan:check()
  tap.ok(legal, "slices of one element: legal", tostring(problems))
  tap.ok(legal and tostring(plan:compile{target = "host"}:check{}):find "^agrees", "slices of one element")
end

-- All of the contracted axis, computed in slices that are no multiples of a k step.
for _, d in ipairs{24, 32, 40, 56} do
  for _, where_from in ipairs{"dn", "nd"} do
    local program = mr.program("slices", function(p)
      local axes = {}
      axes.m, axes.n, axes.d, axes.f = p:axes("m", "n", "d", "f")
      local A, B, C = p:input("A", by_letters(axes, where_from)), p:input("B", {axes.m, axes.n}), p:input("C", {axes.f, axes.d})
      local s = p:mma("mma_s", p:load("a", A), p:load("b", B))
      local h = p:task("narrow", function() return (s * 0.25):to "bf16" end)
      p:output("Y", {axes.f, axes.m}, "f32"):store("st", p:mma("mma_y", p:load("c", C), h))
    end)
    local plan = mr.plan(program{m = 16, n = 16, d = d, f = 64}:graph{}, mr.device "h200")
    plan:split("d", 2, {"a", "mma_s", "narrow"})
    for _, t in ipairs(plan.tasks) do plan:append(t.name) end
    plan:fill_waits()
    tap.ok(tostring(plan:compile{target = "host"}:check{}):find "^agrees", ("%d in two slices, %s"):format(d, where_from))
  end
end
tap.done_testing()
