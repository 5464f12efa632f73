-- Programs without loops, of rows that each tile has in full: what the loop over the tiles refills is searched and suggested as rings of
-- loops are, tiles that do the same are noted, and so is why threads copy.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like = tap.ok, tap.is, tap.like
local device = mr.device "h200"

-- softmax of the rows of X, and R
local function softmax(m, n, dtype)
  return mr.program("softmax", function(p)
    local m, n = p:axes("m", "n")
    local X, R, O = p:input("X", {m, n}, dtype), p:input("R", {m, n}, dtype), p:output("O", {m, n}, dtype)
    local x, r = p:load("x", X), p:load("r", R)
    O:store("o", p:task("softmax", function()
      local v = x:to "f32"
      local e = mr.exp(v - mr.rowmax(v, n))
      return e / mr.rowsum(e, n) + r:to "f32"
    end):to(dtype))
  end){m = m, n = n}
end

-- As a person begins: one lane loads, one computes.
local function by_hand(bound, tile, versions, warps)
  local plan = mr.plan(bound:graph{tile = tile}, device)
  plan:lane("c0", {warps = warps or 4})
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
  for _, name in ipairs{"x", "r"} do if plan.rings[name] then plan:buffers{[name] = versions} end end
  plan:fill_waits()
  return plan
end

local function seconds_of(plan) return plan:check() and plan:simulate{events = 0}.seconds or math.huge end

local bound = softmax(8192, 2048, "bf16")

---- a value in full, and a tile that has all of it ------------------------------------------------------

local plan = by_hand(bound, {m = 8, n = 2048}, 1)
ok(plan:check() and plan.usage.shared_bytes < 70000, "the tile's sum needs no copy of the tile in shared memory", plan.usage.shared_bytes)
ok(by_hand(softmax(20, 200, "f32"), {m = 8, n = 200}, 2):compile{target = "host"}:check{}.ok, "  and is right")

---- rings of tiles ------------------------------------------------------------------------------------------

local function has(list, text)
  for _, s in ipairs(list) do
    if s.text == text then return true end
  end
end

local deeper = by_hand(bound, {m = 8, n = 2048}, 2)
ok(seconds_of(deeper) < 0.7 * seconds_of(plan), "a second version of what a tile loads pays")
ok(has(plan:suggest(), "plan:buffers{r=2, x=2}"), "  suggest() tries it", plan:suggest())
like(plan:simulate():why(), "plan:buffers{r=%d, x=%d} would take", "  and why()")
local better = plan:improve{pin = {tile = true}, trials = 60}
ok(better.seconds <= seconds_of(deeper), "  and improve{}", better)

---- the search ------------------------------------------------------------------------------------------------

local function search(b, tile) return mr.search(b, device, {tile = tile, measure = false}) end

-- Of the device's memory, which EUs that take rows by a counter have all of, if the share `written` of the bytes is written.
local function memory_seconds(bytes, written)
  local rate = device:number "memory.global.rate" * (1 + device:number "memory.global.uneven")
  local switching = 1 + 2 * written * (1 - written) * device:number "memory.global.switching"
  return device:number "sync.launch_seconds" + bytes * switching / rate
end
local fast = search(bound).seconds
ok(fast < 1.01 * memory_seconds(3 * 8192 * 2048 * 2, 1 / 3), "a search gets near the bound by device memory", fast)
local alone = search(mr.program("alone", function(p)
  local m, n = p:axes("m", "n")
  local x = p:load("x", p:input("X", {m, n}))
  p:output("O", {m, n}):store("o", p:task("softmax", function()
    local e = mr.exp(x:to "f32" - mr.rowmax(x:to "f32", n))
    return (e / mr.rowsum(e, n)):to "bf16"
  end))
end){m = 8192, n = 4096})
ok(alone.seconds < 1.02 * memory_seconds(2 * 8192 * 4096 * 2, 1 / 2), "  also where most of the work is to divide by the sum, which is to multiply", alone)
for _, tile in ipairs{{m = 8}, {m = 8, n = 2048}} do
  local r = search(bound, tile)
  ok(r and r.plan.tile.n == 2048 and r.seconds < 0.95 * seconds_of(deeper), "  with a pinned tile, too", r)
end
ok(search(bound, {m = 16}), "  also with one of which hardly anything else fits")
local sums = search(mr.program("sums", function(p)
  local m, n = p:axes("m", "n")
  local X, O, s = p:input("X", {m, n}), p:output("O", {n}, "f32"), p:carry("s", {n}, 0)
  p:loop(m, function()
    local x = p:load("x", X)
    p:task("add", function() s:add(mr.rowsum(x:to "f32", m)) end)
  end)
  O:store("o", s + 0)
end){m = 65536, n = 256})
-- 16 columns of bf16 are a complete sector.
ok(sums.seconds < 200e-6 and sums.plan.graph.tiles >= 16, "sums of few columns use more EUs", sums)

local none, why = search(softmax(8192, 2048, "f32"), {m = 16})
like(why, "\n  try: without tile=, or with tile={m=%d, n=2048}, of which there is a plan of 0%.0%d+ ms$", "no legal plan: another tile has one")
none, why = search(softmax(256, 65536, "f32"))
like(why, "\n  try: change the program: a loop over 'n' with carries", "  or the program needs a loop")
is(none, nil, "  and no plan")

local began = os.clock()
none, why = search(softmax(8192, 65536, "bf16"))
like(why, "p:loop%(n, ", "rows of which no tile fits need a loop in the program")
ok(os.clock() - began < 20, "  which the search says at once, not when it has tried millions of tiles", os.clock() - began)

local apart = search(mr.program("apart", function(p)
  local m, n = p:axes("m", "n")
  local x = p:load("x", p:input("X", {m, n}))
  local top = p:task("top", function() return mr.rowmax(x:to "f32", n) end)
  local sum = p:task("sum", function() return mr.rowsum(mr.exp(x:to "f32" - top), n) end)
  p:output("O", {m, n}):store("o", p:task("softmax", function() return (mr.exp(x:to "f32" - top) / sum):to "bf16" end))
end){m = 8192, n = 65536})
ok(apart and apart.plan.tile.n == 65536, "unless its elements are computed again for each use: then a thread has registers for its part", apart)

---- what tiles repeat -----------------------------------------------------------------------------------------

local repeated = "'n' is divided among 4 tiles, each of which needs all of it for 'softmax': 'x' is loaded 4 times, 96 MiB more in all; "
  .. "'softmax' is computed 4 times"
local split = by_hand(bound, {m = 8, n = 512}, 2)
local good, problems = split:check()
ok(good and #problems.notes == 1 and problems.notes[1].code == "repeated", "tiles that do the same are noted", problems)
is(problems.notes[1].message, repeated, "  with what, and how often")
local function flat(x) return (tostring(x):gsub("%s+", " ")) end
ok(flat(problems):find(repeated, 1, true) and flat(split):find(repeated, 1, true) and flat(split.graph):find(repeated, 1, true) and
  flat(split:simulate():why()):find(repeated, 1, true), "  by check(), print(plan), print(graph) and why()")
is(split:suggest()[1].text, "plan:propagate{n=2048}", "  and the first suggestion ends it")
is(select(2, plan:check()).notes, nil, "  not if a tile has all of the axis")
is(select(2, mr.load_plan "gemm_cooperative":check()).notes, nil, "  nor that tiles of a product share what they load")
local large = by_hand(bound, {m = 64, n = 2048}, 1)
ok(not large:check() and select(2, large:check())[1].hint:find("m=%d+") and not select(2, large:check())[1].hint:find "n=",
  "what is too large is repaired by fewer rows, not by parts of a row", select(2, large:check())[1].hint)

---- tiles of a product that another phase gives it ---------------------------------------------------------------

do
  local two = mr.program("two", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local row, col = m, n
    if p.apart then row, col = p:axis("row", m.size), p:axis("col", n.size) end
    local A, B, T = p:input("A", {m, k}), p:input("B", {n, k}), p:temp("T", {m, n}, "f32")
    local Y = p:output("Y", p.rows and {row, col} or {row}, "f32")
    p:phase("product", function()
      local c = p:carry("c", {m, n}, 0)
      p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
      T:store("store_t", c)
    end)
    p:phase("rows", function()
      local t = p:load("load_t", T, {row, col})
      Y:store("store_y", p:task("norm", function()
        local r = mr.rsqrt(mr.rowsum(t * t, col))
        return p.rows and t * r or r
      end))
    end)
  end)
  local function tied(plan)
    local good, problems = plan:check()
    for _, note in ipairs(good and problems.notes or {}) do
      if note.code == "tied" then return note end
    end
    return good and "none" or problems
  end
  local function planned(tile, apart, n, rows)
    local plan = mr.plan(two{m = rows and 64 or 256, n = n or 2048, k = 128, apart = apart, rows = rows}:graph{tile = tile}, device)
    plan:lane("c0", {warps = 16})
    for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
    plan:fill_waits()
    return plan
  end
  local small = tied(planned{m = 16, n = 128, k = 64})
  like(small.message, "^tiles have 16 of 'm' in each phase: 'norm' of phase 'rows' %(line %d+%) needs all 2048 of 'n' with them, "
    .. "and 'mma' of phase 'product' %(line %d+%) has the same tiles$",
    "rows that one phase needs in full make another's tiles small, which is noted")
  like(small.hint, "an axis of its own instead of 'm': p:axis%(\"m_2\", m.size%)$", "  with what to do")
  is(tied(planned({m = 64, n = 128, k = 64, row = 8}, true)), "none", "  not where it has axes of its own")
  like(tied(planned({m = 64, k = 32}, nil, 512, true)).message, "^tiles have all 512 of 'n' in each phase: 'norm' of phase 'rows' %(line %d+%) "
    .. "needs them, and 'mma' of phase 'product' %(line %d+%) has the same tiles$", "  nor do a product's tiles have all of a row unnoted")
  like(mr.search(two{m = 256, n = 2048, k = 128}, device, {trials = 40, measure = false}),
    "\ntied: tiles have %d+ of 'm' in each phase: 'norm'",
    "  a search says it")
end

---- why threads copy ----------------------------------------------------------------------------------------

local few = by_hand(bound, {m = 4, n = 2048}, 1)
is(select(2, few:check()).notes, nil, "a few long rows are loaded by the copy engine")
like(tostring(few:kernel{}), "load_boxes X in boxes of 4 x 256, 8, 16384 bytes", "  in boxes of as many elements as these can have")
local one_row = by_hand(softmax(64, 16384, "bf16"), {m = 1, n = 16384}, 1)
is(select(2, one_row:check()).notes, nil, "a single row is, too")
like(tostring(one_row:kernel{}), "load_boxes X in boxes of 1 x 256, 64, 32768 bytes", "  box after box")
local alike = by_hand(softmax(4096, 1000, "bf16"), {m = 4, n = 1000}, 1)
local text = tostring(select(2, alike:check())):gsub("%s+", " ")
like(text, "note: by_threads: 'x' and 'r' are copied by the threads of their lane, .*: rows of more than 256 elements are loaded in "
  .. "parts of a multiple of 64, their tile has 1000 try: ", "a note says why threads copy, loads with the same reason are one note as text")
is(select(2, text:gsub("by_threads", "")), 1, "  and no second one")
is(#select(2, alike:check()).notes, 2, "  but each has its own in the list")
local narrow = mr.plan(mr.program("twice", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m, n})
  local x = p:load("x", X)
  Y:store("y", p:task("twice", function() return x * 2 end))
end){m = 64, n = 2048}:graph{tile = {m = 4, n = 264}}, device)
for _, t in ipairs(narrow.tasks) do narrow:append(t.name) end
narrow:fill_waits()
local note = select(2, narrow:check()).notes[1]
like(note.hint, "^plan:propagate{n=320}  %-%- or give lane 'p0' more warps$", "  and which tile the engine loads")
load("local plan = ...\n" .. note.hint, "=hint", "t", {})(narrow)
is(select(2, narrow:check()).notes, nil, "  which is so")
note = select(2, by_hand(softmax(4096, 1000, "bf16"), {m = 8, n = 1000}, 1):check()).notes[1]
like(note.hint, "^pad rows with zeros to a multiple of 64 elements, or ", "rows that are no multiple: it says to pad them")

---- few rows in wide boxes ---------------------------------------------------------------------------------------

-- Plain panels one behind the other: right for any number of rows, types, ends of axes, slices, and stores from the ring.
local function wide(dtype, change)
  return mr.program("wide", function(p)
    local m, n = p:axes("m", "n")
    local X, Y = p:input("X", {m, n}, dtype), p:output("Y", {m, n}, dtype)
    local x = p:load("x", X)
    Y:store("y", change and p:task("ew", function() return (x:to "f32" + x:to "f32" * 0.5):to(dtype) end) or x)
  end)
end
for _, dtype in ipairs{"bf16", "f32", "e4m3"} do
  for _, tile in ipairs{{1, 1024}, {2, 512}, {3, 1024}, {4, 640}, {6, 384}, {12, 512}, {20, 1024}} do
    for _, how in ipairs{"computed", "copied", "rows split", "columns split"} do
      local m, n = table.unpack(tile)
      local by = how == "rows split" and m % 2 == 0 and "m" or how == "columns split" and "n"
      if how ~= "rows split" or by then
        local plan = mr.plan(wide(dtype, how ~= "copied"){m = 29, n = 2048}:graph{tile = {m = m, n = n}}, device)
        if by then plan:split(by, 2, {"x"}) end
        plan:lane("c0", {warps = how == "computed" and m % 4 == 0 and 8 or 4})
        for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
        plan:fill_waits()
        local good, why = plan:check()
        local result = good and plan:compile{target = "host"}:check{seed = 1, race = true}
        ok(good and result.ok, ("%s, %d x %d, %s"):format(dtype, m, n, how), why)
      end
    end
  end
end

-- Threads store from the ring by words of as many neighbours as the tensor's rows are aligned for.
for _, row in ipairs{{2048, 8}, {2044, 4}, {2046, 2}, {2047, 1}} do
  local n, width = table.unpack(row)
  for _, tile in ipairs{{1, 2048}, {5, 2048}, {3, 256}, {2, 24}} do
    local plan = mr.plan(wide("bf16"){m = 13, n = n}:graph{tile = {m = tile[1], n = math.min(tile[2], n)}}, device)
    plan:append("x", {lane = "p0"})
    plan:append("y", {lane = "c0", seu = "cuda"})
    plan:fill_waits()
    assert(plan:check())
    local how = tostring(plan:kernel{}):match "store_ring Y, %d+ elements ([^\n]*)"
    is(how, width == 1 and "one by one" or width .. " at once", ("rows of %d in %d x %d: stored %s"):format(n, tile[1], tile[2], how))
    ok(plan:compile{target = "host"}:check{seed = 1, race = true}.ok, "  and right")
    local text = plan:compile{text = true}.source
    for call in text:gmatch "[%s;](shared_%d+)%(y, " do
      if not text:find("DEV void " .. call .. "(", 1, true) then ok(false, "  and CUDA's text has " .. call) end
    end
  end
end

---- values of one axis ----------------------------------------------------------------------------------------

-- Each thread has neighbours of its own: none is computed twice, and pairs are stored.
local scale = mr.program("scale", function(p)
  local n = p:axes("n")
  local X, G, Y = p:input("X", {n}), p:input("G", {n}, "f32"), p:output("Y", {n})
  local x, g = p:load("load_x", X), p:load("load_g", G)
  Y:store("store_y", p:task("scale", function() return (x * g + 1):to "bf16" end))
end)
for _, n in ipairs{4096, 4097, 37} do
  for _, tile in ipairs{2048, 512, 24} do
    for _, warps in ipairs{1, 4} do
      local plan = by_hand(scale{n = n}, {n = tile}, 1, warps)
      local good, why = plan:check()
      ok(good, ("one axis: %d in tiles of %d, %d warps"):format(n, tile, warps), why)
      local result = good and plan:compile{target = "host"}:check{seed = 1, race = true}
      ok(result and result.ok, "  right", tostring(result))
    end
  end
end
-- The text for a device has what it calls: words are stored and read several at once by functions of the prelude.
for _, dtype in ipairs{"f32", "i32", "bf16", "e4m3"} do
  local count = mr.program("count", function(p)
    local n = p:axes("n")
    p:output("Y", {n}, dtype):store("store_y", p:task("number", function() return (n:index() & 15):to(dtype) end))
  end){n = 4096}
  local text = by_hand(count, {n = 4096}, 1, 4):compile{text = true}.source
  for _, name in ipairs{"float_bits", "bits_float", "store_8", "store_16", "shared_8", "shared_16"} do
    if text:find("[^%w_]" .. name .. "%(") then
      ok(text:find("DEV %w+ " .. name .. "%("), ("%s: the text has %s, which it calls"):format(dtype, name))
    end
  end
end
local dump = tostring(by_hand(scale{n = 4096}, {n = 2048}, 1, 4):kernel{})
like(dump, "fragment r_scale, 1 x 2048 bf16", "a thread has elements of its own, two in a register")
like(dump, "store_threads Y from r_scale%[0%], 8 neighbours at once", "  and stores eight at once")
like(dump, "load_boxes X in boxes of 256, 8, 4096 bytes", "  which the copy engine loads")

---- the epilogue of a product ------------------------------------------------------------

-- A softmax of a product's rows: the copy of the accumulator that the maximum reads takes no registers of its own.
local function product_rows(n, warps)
  local bound = mr.program("product_rows", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local X, W, Y = p:input("X", {m, k}), p:input("W", {n, k}), p:output("Y", {m, n})
    local acc = p:carry("acc", {m, n}, 0)
    p:loop(k, function() acc:add(p:mma("mma", p:load("x", X), p:load("w", W))) end)
    local e = mr.exp(acc - mr.rowmax(acc, n))
    Y:store("put", e / mr.rowsum(e, n))
  end){m = 128, n = n, k = 96}
  return by_hand(bound, {m = 64, k = 32}, 1, warps)
end
for _, n in ipairs{128, 256, 320} do
  local plan = product_rows(n)
  local good, problems = plan:check()
  ok(good, ("softmax of a product's rows of %d: fits into registers"):format(n), problems)
  is(tonumber(tostring(plan:kernel()):match "values in (%d+) registers at most"), n // 2 + 2, "  the accumulator and two numbers a row")
  local result = plan:compile{target = "host"}:check{seed = 1, race = true}
  ok(result.ok, "  right", tostring(result))
end
-- Twice the warps divide the columns of 512. For 1024 neither these nor sixteen suffice.
local good, problems = product_rows(512):check()
ok(not good, "rows of 512 do not fit into four warps")
like(tostring(problems):gsub("%s+", " "), "try: plan:lane%(\"c0\", {warps=8}%)", "  and the hint is to give twice the warps", problems)
local repaired = product_rows(512, 8)
good, problems = repaired:check()
ok(good, "  which fits", problems)
local result = repaired:compile{target = "host"}:check{seed = 1, race = true}
ok(result.ok, "  right", tostring(result))
for _, warps in ipairs{4, 8, 16} do
  good, problems = product_rows(1024, warps):check()
  ok(not good, ("rows of 1024 do not fit into %d warps"):format(warps))
  like(tostring(problems):gsub("%s+", " "), "each tile has all of 'n'.*:to \"bf16\".*a loop or phase over 'n'",
    "  and the hint says what would help", problems)
end

tap.done_testing()
