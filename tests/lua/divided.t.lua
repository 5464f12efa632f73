-- divided.t.lua - clusters whose EUs divide the iterations of a loop: kernels on the CPU, half of them with accesses watched;
-- what is refused, scripts and undo.
--
--   millrace divided.t.lua [cuda] [PATTERN]   runs the cases whose names match, on the attached device
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")
random_plans.target = arg[1] == "cuda" and table.remove(arg, 1) or "host"
local only = arg[1]
local h200 = mr.device "h200"

-- Loads on p0, all else on lanes c0, c1, ... by slices; `how`: split (axis, ways), grid, buffers, warps, columns, replicas, at
-- (offsets by sTask), seu (by sTask).
local function plan_of(bound, tile, grid, how)
  how = how or {}
  local plan = mr.plan(bound:graph{tile = tile}, h200)
  if how.split then plan:split(table.unpack(how.split)) end
  plan:lane("p0", {warps = 1})
  for i = 0, (how.split and how.split[2] or 1) - 1 do
    plan:lane("c" .. i, {warps = how.warps or 4, columns = how.columns, replicas = how.replicas})
  end
  for _, t in ipairs(plan.tasks) do
    local slice = t.name:match "%.(%d+)$" or "0"
    plan:append(t.name, {lane = t.kind == "load" and "p0" or "c" .. slice, at = how.at and how.at[t.name],
      seu = how.seu and how.seu[t.name]})
  end
  plan:buffers(how.buffers or {a = 3, b = 3})
  plan:grid(grid)
  plan:fill_waits()
  return plan
end

local function right(name, plan, seeds)
  if only and not name:find(only) then return end
  random_plans.correct(tap, name, plan, seeds or {1, 2})
end

---- products ------------------------------------------------------------------

local gemm = mr.examples.gemm
for _, c in ipairs{2, 3, 4, 8} do
  right(("clusters of %d, several tiles of each"):format(c), plan_of(gemm{m = 256, n = 256, k = 32 * 24}, {m = 64, n = 64, k = 32},
    {cluster = c, divide = "k", eus = 2 * c}))
end
right("rows, columns and the last iteration end within tiles", plan_of(gemm{m = 130, n = 136, k = 32 * 7 + 8}, {m = 64, n = 64, k = 32},
  {cluster = 4, divide = "k", eus = 8, raster = "columns", group = 2}))
right("columns that the copy engine cannot store", plan_of(gemm{m = 100, n = 76, k = 256, a = "mk", b = "nk"}, {m = 64, n = 64, k = 64},
  {cluster = 2, divide = "k", eus = 2}))
right("shares of several sizes", plan_of(gemm{m = 64, n = 120, k = 32 * 10}, {m = 64, n = 40, k = 32}, {cluster = 2,
  divide = "k", eus = 4}))
right("more EUs than shares", plan_of(gemm{m = 64, n = 32, k = 32 * 16}, {m = 64, n = 16, k = 32}, {cluster = 8, divide = "k", eus = 8}))
right("one iteration of each EU", plan_of(gemm{m = 128, n = 64, k = 128}, {m = 64, n = 64, k = 32}, {cluster = 4, divide = "k", eus = 4}))
right("lanes of rows", plan_of(gemm{m = 256, n = 128, k = 256}, {m = 128, n = 64, k = 32}, {cluster = 2, divide = "k", eus = 4},
  {split = {"m", 2}}))
right("lanes of columns", plan_of(gemm{m = 128, n = 256, k = 256}, {m = 64, n = 128, k = 32}, {cluster = 4, divide = "k", eus = 4},
  {split = {"n", 2}}))
right("eight warps, parts of which have columns of their own", plan_of(gemm{m = 128, n = 256, k = 256}, {m = 64, n = 128, k = 32},
  {cluster = 2, divide = "k", eus = 2}, {warps = 8, columns = 2}))
right("two blocks of rows", plan_of(gemm{m = 256, n = 64, k = 256}, {m = 128, n = 32, k = 32}, {cluster = 2, divide = "k", eus = 2}))
right("replicas of a lane", plan_of(gemm{m = 256, n = 256, k = 256}, {m = 64, n = 64, k = 32}, {cluster = 2, divide = "k", eus = 2},
  {replicas = 2, buffers = {a = 4, b = 4}}))
right("stores by threads", plan_of(gemm{m = 128, n = 128, k = 256}, {m = 64, n = 64, k = 32}, {cluster = 2, divide = "k", eus = 2},
  {seu = {store_c = "cuda"}}))
right("an f32 result", plan_of(gemm{m = 128, n = 128, k = 256, out = "f32"}, {m = 64, n = 64, k = 32}, {cluster = 2,
  divide = "k", eus = 4}))

-- Each block ends for itself where it has one tile, as it awaits all that others signal to it.
if not only then
  local function ends_apart(m, replicas)
    local plan = plan_of(gemm{m = m, n = 64, k = 256}, {m = 64, n = 64, k = 32}, {cluster = 2, divide = "k", eus = 2},
      {replicas = replicas, buffers = {a = 4, b = 4}})
    local _, meetings = plan:compile{target = "host"}.source:gsub("CLUSTER_SYNC%(%);", "")
    return meetings == 1, tostring(plan:kernel{}):find("whose blocks end each for itself", 1, true) ~= nil
  end
  local apart, said = ends_apart(64)
  tap.ok(apart and said, "blocks with one tile meet only at the start")
  apart, said = ends_apart(128)
  tap.ok(not apart and not said, "those with two meet at the end, too")
  apart, said = ends_apart(128, 2)
  tap.ok(apart and said, "but not if two replicas have one each")
  right("one tile of each block", plan_of(gemm{m = 64, n = 64, k = 256}, {m = 64, n = 64, k = 32},
    {cluster = 4, divide = "k", eus = 4}))
  right("one tile of each replica", plan_of(gemm{m = 128, n = 64, k = 256}, {m = 64, n = 64, k = 32}, {cluster = 2, divide = "k", eus = 2},
    {replicas = 2, buffers = {a = 4, b = 4}}))
end

-- A product with a carry of its own, and what follows it.
local function carried(name, follow, more)
  return mr.program(name, function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, more and more.out or "bf16")
    local acc, other = p:carry("acc", {m, n}, more and more.init or 0), more and more.two and p:carry("other", {m, n}, 0)
    local E = more and more.two and p:input("E", {n, k})
    p:loop(k, function()
      local a = p:load("load_a", A)
      local part = p:mma("mma", a, p:load("load_b", B))
      if more and more.scaled then
        p:task("add", function() acc:set(acc + part * 0.5) end)
      else
        acc:add(part)
      end
      if other then other:add(p:mma("mma_e", a, p:load("load_e", E))) end
    end)
    follow(p, C, acc, other, m, n)
  end)
end

right("the carry is stored as it is", plan_of(carried("plain", function(_, C, acc) C:store("store", acc) end,
  {out = "f32"}){m = 128, n = 128,
  k = 256}, {m = 64, n = 64, k = 32}, {cluster = 2, divide = "k", eus = 4}))
local silu = carried("silu", function(p, C, acc) C:store("store", p:task("silu",
  function() return (acc / (1 + mr.exp2(-acc))):to "bf16" end)) end)
right("a sum that is used twice", plan_of(silu{m = 128, n = 128, k = 256}, {m = 64, n = 64, k = 32}, {cluster = 4, divide = "k", eus = 4}))
local gated = carried("gated", function(p, C, acc, other)
  C:store("store", p:task("gate", function() return (mr.max(acc, 0) * other):to "bf16" end))
end, {two = true})
right("two sums", plan_of(gated{m = 128, n = 128, k = 256}, {m = 64, n = 64, k = 32}, {cluster = 2, divide = "k", eus = 4},
  {buffers = {a = 3, b = 3, e = 3}}))
right("two sums of three replicas", plan_of(gated{m = 192, n = 256, k = 128}, {m = 64, n = 64, k = 32}, {cluster = 2, divide = "k", eus = 2},
  {replicas = 3, buffers = {a = 4, b = 4, e = 4}}))
local scaled = carried("scaled", function(p, C, acc) C:store("store", p:task("out", function() return acc:to "bf16" end)) end,
  {scaled = true})
right("a sum that threads add to", plan_of(scaled{m = 128, n = 128, k = 256}, {m = 64, n = 64, k = 32}, {cluster = 2,
  divide = "k", eus = 4}))
local biased = mr.program("biased", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, V, R = p:input("A", {m, k}), p:input("B", {n, k}), p:input("V", {n}), p:input("R", {m, n})
  local C = p:output("C", {m, n})
  local acc = p:carry("acc", {m, n}, 0)
  p:loop(k, function() acc:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
  local v, r = p:load("load_v", V), p:load("load_r", R)
  C:store("store", p:task("out", function() return (acc + v + r):to "bf16" end))
end)
right("a bias and a residual", plan_of(biased{m = 128, n = 128, k = 256}, {m = 64, n = 64, k = 32}, {cluster = 4, divide = "k", eus = 4}))
right("offsets in the tile loop", plan_of(gemm{m = 256, n = 256, k = 128}, {m = 64, n = 64, k = 32}, {cluster = 2, divide = "k", eus = 2},
  {at = {store_c = -1}, buffers = {a = 3, b = 3, epilogue = 2}}))

local added = mr.program("added", function(p)
  local b, m, n, k = p:axes("b", "m", "n", "k")
  local A, B, C = p:input("A", {b, m, k}), p:input("B", {b, n, k}), p:output("C", {m, n}, "f32")
  p:phase("zero", function() C:store("zero", p:full({m, n}, 0)) end)
  p:phase("main", function()
    p:batch(b)
    local acc = p:carry("acc", {m, n}, 0)
    p:loop(k, function() acc:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
    C:add("add_c", acc)
  end)
end)
for _, seu in ipairs{"cuda", "tma"} do
  right("shares are added in memory by " .. seu, plan_of(added{b = 3, m = 64, n = 64, k = 256}, {m = 64, n = 64, k = 32},
    {cluster = 2, divide = "k", eus = 2}, {seu = {add_c = seu}}))
end
right("sums of integers", plan_of(mr.program("integers", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}, "i8"), p:input("B", {n, k}, "i8"), p:output("C", {m, n}, "i32")
  local acc = p:carry("acc", {m, n}, 0)
  p:loop(k, function() acc:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
  C:store("store_c", acc)
end){m = 128, n = 64, k = 512}, {m = 64, n = 64, k = 64}, {cluster = 2, divide = "k", eus = 2}))

---- what is refused ---------------------------------------------------------------

local function refused(name, plan, words, hint)
  if only and not name:find(only) then return end
  local good, found = plan:check()
  tap.ok(not good and found[1].code == "cluster" and found[1].message:find(words, 1, true) and found[1].hint:find(hint, 1, true),
  "refused: " .. name,
    tostring(found))
end
local all = "plan:grid{cluster=1}"
local small = {m = 64, n = 64, k = 32}
refused("no multiple", plan_of(gemm{m = 64, n = 64, k = 32 * 6}, small, {cluster = 4, divide = "k"}),
  "the 6 iterations of the loop over 'k' are no multiple of the 4 EUs of a cluster", "plan:grid{cluster=3}")
refused("no loop", plan_of(gemm{m = 64, n = 64, k = 128}, small, {cluster = 2, divide = "m"}), "no loop over 'm' alone", all)
refused("too few EUs", plan_of(gemm{m = 64, n = 64, k = 128}, small, {cluster = 4, divide = "k", eus = 3}),
  "a cluster of 4 takes as many EUs, the plan uses 3", "plan:grid{eus=4}")
refused("no plain sum", plan_of(mr.program("greatest", function(p)
  local m, k = p:axes("m", "k")
  local A, C = p:input("A", {m, k}), p:output("C", {m}, "f32")
  local most = p:carry("most", {m}, -math.huge)
  p:loop(k, function()
    local a = p:load("load_a", A)
    p:task("join", function() most:set(mr.max(most, mr.rowmax(a, k))) end)
  end)
  C:store("store", most)
end){m = 64, k = 128}, {m = 64, k = 32}, {cluster = 2, divide = "k"}, {buffers = {a = 3}}), "'most', which is not just added to", all)
refused("a sum that begins at 1", plan_of(carried("begun", function(p, C, acc) C:store(p:task("out",
  function() return acc:to "bf16" end)) end,
  {init = 1}){m = 64, n = 64, k = 128}, small, {cluster = 2, divide = "k"}), "does not begin at 0", all)
refused("a reduction behind the sum", plan_of(carried("rows", function(p, C, acc, _, _, n)
  C:store(p:task("out", function() return (acc / mr.rowsum(acc, n)):to "bf16" end))
end){m = 64, n = 64, k = 128}, small, {cluster = 2, divide = "k"}), "only element-wise sTasks and stores may follow", all)
refused("two readers", plan_of(mr.program("twice", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C, D = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32"), p:output("D", {m, n}, "f32")
  local acc = p:carry("acc", {m, n}, 0)
  p:loop(k, function() acc:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
  C:store("store_c", acc)
  D:store("store_d", acc)
end){m = 64, n = 64, k = 128}, small, {cluster = 2, divide = "k"}), "is used by several sTasks", all)

---- the statement ------------------------------------------------------------------

local plan = plan_of(gemm{m = 128, n = 128, k = 256}, small, {cluster = 4, divide = "k"})
local script = plan:script()
tap.ok(script:find('cluster=4, divide="k"', 1, true), "the script has it", script)
tap.is(load(script)():script(), script, "  and makes the same plan")
plan:grid{cluster = 2}
tap.ok(plan:script():find('cluster=2, divide="k"', 1, true), "another size divides, too")
plan:undo()
tap.is(plan:script(), script, "undo")
plan:grid{divide = false, cluster = 2}
tap.ok(not plan:script():find("divide", 1, true), "divide=false")
plan:undo()
plan:grid{cluster = 1}
tap.ok(not plan:script():find("divide", 1, true), "clusters of one divide nothing")
plan:undo()
tap.is(plan:script(), script, "undo again")
plan:propagate{n = 128}
tap.ok(plan:check() and plan:script():find('divide="k"', 1, true), "other tiles")
local good, why = pcall(plan.grid, plan, {divide = "q"})
tap.ok(not good and tostring(why):find "divide", "an axis that is not there", why)
local plain = mr.plan(gemm{m = 128, n = 128, k = 256}:graph{tile = small}, h200)
good, why = pcall(plain.grid, plain, {divide = "k"})
tap.ok(not good and tostring(why):find("divide is for clusters", 1, true), "without clusters", why)

-- What a graph says of all tiles is what all EUs do.
for _, parts in ipairs{1, 2, 4} do
  local graph = plan_of(gemm{m = 128, n = 128, k = 512}, small, parts > 1 and {cluster = parts, divide = "k"} or {}).graph
  tap.is(graph.flops, 2.0 * 128 * 128 * 512, ("flops of %d parts"):format(parts))
  tap.is(graph.bytes, 2.0 * (2 * 128 * 512 + 128 * 128), "  and bytes")
end
tap.done_testing()
