-- Addresses of elements, and the registers that compilers have for them. Where a lane has none for all, operations of an sTask compute the
-- coordinates of the thread again.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")

-- Two operations read four rings, in which the swizzled part of an element's address is the same.
local four = mr.program("four", function(p)
  local m, c = p:axes("m", "c")
  local tensors, loads = {}, {}
  for i = 1, 4 do
    tensors[i] = p:input("X" .. i, {m, c})
    loads[i] = p:load("load_" .. i, tensors[i])
  end
  local W, Y = p:input("W", {m}, "f32"), p:output("Y", {m}, "f32")
  local w = p:load("load_w", W)
  Y:store(p:task("mix", function()
    local a, b = loads[1] * w, loads[2] * w
    local most = mr.max(a, b):rowmax(c)
    local d, e = loads[3] - most, loads[4] - most
    return (a * d + b * e):rowsum(c)
  end))
end)

local function text(registers)
  local plan = mr.plan(four:bind{m = 4096, c = 64}:graph{tile = {m = 64}}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 4, registers = registers})
  for i = 1, 4 do plan:append("load_" .. i, {lane = "p0"}) end
  plan:append("load_w", {lane = "p0"})
  plan:append("mix", {lane = "c0"})
  plan:append("store_Y", {lane = "c0"})
  plan:fill_waits()
  return plan:compile{target = "cuda", text = true}.source
end

local function count(source) return select(2, source:gsub("= recomputed%(THREAD, %d+%)", "")) end

tap.is(count(text(112)), 2, "both operations that read rings do so")
tap.is(count(text(240)), 0, "neither, if there are registers for what they compute alike")

-- An sTask of which an iteration that is unrolled has several copies: ptxas would keep the addresses of the swizzled ring that it writes from
-- one to the next.
local widened = mr.program("widened", function(p)
  local m, n, k, i = p:axes("m", "n", "k", "i")
  local A, B = p:input("A", {m, k, i}, "e2m1"), p:input("B", {n, k, i}, "e4m3")
  local C, c = p:output("C", {m, n}), p:carry("c", {m, n}, 0)
  p:loop(k, {batch = true}, function()
    local a = p:load("load_a", A)
    local x = p:mma("mma", p:task("widen", function() return a:to "e4m3" end), p:load("load_b", B))
    p:task("scale", function() c:set(c + x * 0.5) end)
  end)
  C:store("store", p:task("convert", function() return c:to "bf16" end))
end)
for _, n in ipairs{64, 128} do
  local plan = mr.plan(widened:bind{m = 64, n = 128, k = 4, i = 128}:graph{tile = {m = 64, n = n}}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 4, registers = 232})
  plan:buffers{a = 2, b = 2, mma = 2}
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0", at = (t.name == "widen" or t.name == "mma") and 1 or 0})
  end
  plan:fill_waits()
  local _, again = plan:compile{target = "cuda", text = true}.source:gsub("recomputed%(THREAD, %d+%)", "")
  tap.is(again > 1, n == 128, ("copies of an sTask, and two versions of %d columns"):format(n))
  local r = plan:compile{target = "host"}:check{seed = 3}
  tap.ok(r.ok, "  right", tostring(r.relative))
end

-- An element of a tensor that an axis is divided for: the tile's first index is divided by itself, so that others differ by constants. What
-- repeats from group to group of columns is the same by constants alone if nvcc does not know it, as of no power of two.
local plan, source
for _, d in ipairs{32, 24} do
  local parts = mr.program("parts", function(p)
    local m, n, b, d = p:axes("m", "n", "b", "d")
    local X, Y = p:input("X", {m, n}), p:output("Y", {m, b, d})
    local x = p:load("load", X)
    Y:store("store", p:task("double", function() return (x * 2):to "bf16" end), {m, n // d.size, n % d.size})
  end)
  plan = mr.plan(parts:bind{m = 128, n = 384, b = 384 // d, d = d}:graph{tile = {m = 64, n = 96}}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 4})
  plan:append("load", {lane = "p0"})
  plan:append("double", {lane = "c0"})
  plan:append("store", {lane = "c0", seu = "cuda"})
  plan:fill_waits()
  source = plan:compile{target = "cuda", text = true}.source
  tap.is(source:match "i1 = (.-);", ("lo_n / %d + (8 * j + col0 + e) / %d"):format(d, d), "a quotient of an index")
  tap.is(source:match "i2 = (.-);", d == 32 and "(8 * j + col0 + e) % 32" or "(8 * j % 24 + col0 + e) % 24", "a remainder")
  tap.ok(plan:compile{target = "host"}:check().ok, "and the results are right")
end

-- Threads behind the last column of a ring read its slot where it begins: compilers would join branches around the reads of all rows.
local narrow = mr.program("narrow", function(p)
  local m, h, j, d = p:axes("m", "h", "j", "d")
  local X, W, Y = p:input("X", {m, j, h}, "f32"), p:input("W", {m, j, h, d}, "f32"), p:output("Y", {m, h, d}, "f32")
  p:batch(m)
  local mx, y = p:carry("mx", {h}, -1e30), p:carry("y", {h, d}, 0)
  p:loop(j, function()
    local x, w = p:load("load_x", X), p:load("load_w", W)
    p:task("add", function()
      local new = mr.max(mx, x:rowmax(j))
      y:set(y * mr.exp2(mx - new) + (w * mr.exp2(x - new)):rowsum(j))
      mx:set(new)
    end)
  end)
  Y:store(y)
end)
plan = mr.plan(narrow:bind{m = 2, h = 8, j = 48, d = 16}:graph{tile = {j = 16}}, mr.device "h200")
plan:lane("p0", {warps = 1})
plan:lane("c0", {warps = 4})
for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
plan:fill_waits()
source = plan:compile{target = "cuda", text = true}.source
tap.ok(source:find "shared_%d+%(v%d, [^;]- < 8 %? slot_x [^;]- : slot_x%)", "threads behind the last column read where the slot begins")
tap.ok(plan:compile{target = "host"}:check().ok, "and the results are right")

-- A number of each element that several operations use: each computes it, so that it takes no register.
local numbered = mr.program("numbered", function(p)
  local m, n = p:axes("m", "n")
  local X, Y, First = p:input("X", {m, n}), p:output("Y", {m}), p:output("First", {m}, "i32")
  local x = p:load("load", X)
  local second, first = p:task("find", function()
    local twice, number = x * 2, m:index() * n.size + n:index()
    local most = twice:rowmax(n)
    local first = mr.where(twice:eq(most), number, m.size * n.size):rowmin(n)
    local second = mr.where(number:eq(first), -1e30, twice):rowmax(n)
    return second:to "bf16", first
  end)
  Y:store(second)
  First:store(first)
end)
plan = mr.plan(numbered:bind{m = 128, n = 60}:graph{tile = {m = 64, n = 60}}, mr.device "h200")
plan:lane("p0", {warps = 1})
plan:lane("c0", {warps = 4})
plan:append("load", {lane = "p0"})
plan:append("find", {lane = "c0"})
plan:append("store_Y", {lane = "c0"})
plan:append("store_First", {lane = "c0"})
plan:fill_waits()
source = plan:compile{target = "cuda", text = true}.source
tap.is(select(2, source:gsub("%(u32%)60", "")), 2, "the number is in two operations")
tap.ok(source:find("const int x = (", 1, true) and source:find(" ? x : 2147483647;", 1, true), "a choice within another one is made before it")
tap.ok(plan:compile{target = "host"}:check().ok, "and the results are right")

-- A number that is doubled again and again: what each operation computes by itself has few operations, not twice as many each time.
local doubled = mr.program("doubled", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m, n}, "f32")
  local x = p:load("load", X)
  Y:store(p:task("act", function()
    local number = m:index() + n:index()
    for _ = 1, 12 do number = number + number end
    return mr.where(number:lt(100000), x * number, x - x:rowsum(n))
  end))
end)
plan = mr.plan(doubled:bind{m = 64, n = 64}:graph{tile = {m = 64, n = 64}}, mr.device "h200")
plan:lane("p0", {warps = 1})
plan:lane("c0", {warps = 4})
plan:append("load", {lane = "p0"})
plan:append("act", {lane = "c0"})
plan:append("store_Y", {lane = "c0"})
plan:fill_waits()
source = plan:compile{target = "cuda", text = true}.source
tap.ok(#source < 40000, ("12 doublings of a number have a text of %d bytes"):format(#source))
tap.ok(plan:compile{target = "host"}:check().ok, "and the results are right")

-- Neighbours of a thread begin at a multiple of their number: all have the quotient of the first one.
local words = mr.program("words", function(p)
  local b, v = p:axes("b", "v")
  local w = p:axis("w", (v.size + 31) // 32)
  local X, Bits, Y = p:input("X", {b, v}), p:input("Bits", {b, w}, "i32"), p:output("Y", {b, v})
  local x, bits = p:load(X), p:load("load_bits", Bits, {b, v // 32})
  Y:store(p:task("mask", function()
    return mr.where(((bits >> (v:index() % 32)) & 1):ne(0), x, 0):to "bf16"
  end))
end)
plan = mr.search(words:bind{b = 64, v = 4096}, mr.device "h200", {measure = false}).plan
source = plan:compile{target = "cuda", text = true}.source
tap.ok(source:find("col0 / 32", 1, true) and not source:find("(col0 + e) / 32", 1, true), "neighbours read one word")
tap.done_testing()
