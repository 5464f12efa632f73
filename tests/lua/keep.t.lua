-- Tiles that an EU takes one after the other since they load the same bytes: plan:grid{keep=, along=}. What a slot has already is not
-- copied again; kernels are right on the CPU, in any order of tiles, and check for races.
local mr = require "millrace"
local core = require "millrace.core"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local device = mr.device "h200"

local function schedule(bound, o)
  local plan = mr.plan(bound:graph{tile = o.tile}, o.device or device)
  plan:lane("p0", {warps = 1, replicas = o.loaders})
  if o.apart then plan:lane("p1", {warps = 1}) end
  plan:lane("c0", {warps = 4, replicas = o.replicas})
  for _, t in ipairs(plan.tasks) do
    local load = t.kind == "load" and (o.apart == t.name and "p1" or "p0")
    plan:append(t.name, {lane = load or "c0", seu = t.kind == "load" and o.loads or nil})
  end
  plan:buffers(o.rings or {})
  plan:grid(o.grid)
  plan:fill_waits()
  return plan
end

local function statements(plan) return plan:script():match "plan:grid[^\n]*" or "" end

-- How many loads of the kernel leave out copies.
local function kept(plan)
  return select(2, plan:compile{target = "cuda", text = true}.source:gsub("if %(shared_u32%(word%) == key%)", ""))
end

local function right(what, plan, n)
  local legal, problems = plan:check()
  tap.ok(legal, what .. ": legal" .. (legal and "" or ": " .. tostring(problems)))
  if not legal then return end
  tap.is(kept(plan), n, "  loads that are kept")
  local e = plan:compile{target = "host"}:check{race = true}
  tap.ok(e.ok, "  right" .. (e.ok and "" or ": " .. tostring(e)))
end

---- programs -----------------------------------------------------------------------------------

-- A product for each head, whose second matrix a group of heads shares.
local shared = mr.program("shared_product", function(p)
  local b, h, m, n, k = p:axes("b", "h", "m", "n", "k")
  local each = p:option("each", "integer", 4)
  local g = p:axis("g", (h.size + each - 1) // each)
  local A, B, C = p:input("A", {b, h, m, k}), p:input("B", {b, g, k, n}), p:output("C", {b, h, m, n})
  p:batch(b, h)
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B, {b, h // each, k, n}))) end)
  C:store("store_c", p:task("round", function() return c:to "bf16" end))
end)

-- Attention with a bias for each pair of a query and a key, which all heads share.
local biased = mr.program("biased_attention", function(p)
  local b, h, m, n, d = p:axes("b", "h", "m", "n", "d")
  local Q, K, V = p:input("Q", {b, h, m, d}), p:input("K", {b, h, n, d}), p:input("V", {b, h, n, d})
  local Bias, O = p:input("Bias", {m, n}), p:output("O", {b, h, m, d})
  p:batch(b, h)
  local q = p:load("load_q", Q)
  local l, o = p:carry("l", {m}, 0), p:carry("o", {m, d}, 0)
  local causal = p:option("causal", "boolean", false)
  p:loop(n, {upto = causal and m or nil}, function()
    local s = p:mma("score", q, p:load("load_k", K))
    local bias = p:load("load_bias", Bias)
    local w = p:task("weigh", function()
      local weight = mr.exp2(mr.min(s * 0.125 + bias, 4))
      return (causal and mr.where(n:index():le(m:index()), weight, 0) or weight):to "bf16"
    end)
    p:task("sum", function() l:set(l + mr.rowsum(w:to "f32", n)) end)
    o:add(p:mma("mix", w, p:load("load_v", V)))
  end)
  O:store("store_o", p:task("scale", function() return (o / l):to "bf16" end))
end)

local heads = shared:bind{b = 2, h = 10, m = 64, n = 64, k = 128}
local tile = {m = 64, n = 64, k = 64}

---- the statement ------------------------------------------------------------------------------

local plan = schedule(heads, {tile = tile, rings = {a = 2, b = 2}, grid = {eus = 3, keep = 4, along = "h"}})
tap.is(statements(plan), 'plan:grid{raster="rows", group=1, eus=3, keep=4, along="h"}', "a script says it")
local file = os.tmpname()
plan:save(file, {overwrite = true})
tap.is(statements(mr.load_plan(file, heads)), statements(plan), "  and a plan that is loaded has it")
os.remove(file)
tap.like(tostring(plan), "4 neighbours along\n  'h' one after the other on an EU", "a plan shows it")
plan:undo()
plan:grid{keep = 1, along = false}
tap.is(statements(plan), 'plan:grid{raster="rows", group=1, eus=3}', "and back")

tap.fails("with clusters", "with keep, cluster is 1", plan.grid, plan, {keep = 2, cluster = 2, eus = 4})
tap.fails("with a counter", "with keep, dynamic is false", plan.grid, plan, {keep = 2, dynamic = true})
tap.fails("none", "keep must be", plan.grid, plan, {keep = 0})
tap.fails("along nothing", "along is for clusters and for keep", plan.grid, plan, {keep = 1, along = "h", cluster = 1})

local function refused(what, p, message)
  local legal, problems = p:check()
  tap.ok(not legal, what .. ": refused")
  tap.like(problems[1] and problems[1].message or "", message, "  and why")
  tap.ok(problems[1] and problems[1].code == "keep" and problems[1].hint == "plan:grid{keep=1}", "  and how to repair it")
end
refused("heads with matrices of their own",
  schedule(shared:bind{b = 2, h = 6, m = 64, n = 64, k = 64, each = 1}, {tile = tile, grid = {keep = 2, along = "h"}}),
  "tiles that are neighbours along 'h' have nothing to keep")
refused("loads by threads", schedule(heads, {tile = tile, loads = "cuda", grid = {keep = 2, along = "h"}}), "nothing to keep")
refused("loads of replicas", schedule(heads, {tile = tile, loaders = 2, grid = {keep = 2, along = "h"}}), "nothing to keep")

---- kernels ------------------------------------------------------------------------------------

-- By number of slots: those of a loop that has two iterations have the bytes of the tile before, or not.
for versions = 1, 4 do
  for _, keep in ipairs{2, 4, 10} do
    right(("keep %d, %d slots"):format(keep, versions), schedule(heads, {tile = tile, rings = {a = 2, b = versions},
      grid = {eus = 3, keep = keep, along = "h"}}), 1)
  end
end
right("a lane of its own", schedule(heads, {tile = tile, rings = {a = 2, b = 2}, apart = "load_b", grid = {keep = 4, along = "h"}}), 1)
right("replicas that multiply", schedule(heads, {tile = tile, rings = {a = 4, b = 2}, replicas = 2, grid = {eus = 2, keep = 4, along = "h"}}), 1)
right("rows of one matrix", schedule(mr.examples.gemm{m = 320, n = 128, k = 128}, {tile = tile, rings = {a = 2, b = 2},
  grid = {eus = 2, keep = 3, along = "m"}}), 1)
right("columns", schedule(mr.examples.gemm{m = 128, n = 320, k = 128}, {tile = tile, rings = {a = 2, b = 2},
  grid = {eus = 3, keep = 3, along = "n"}}), 1)
right("tiles that end within", schedule(shared:bind{b = 1, h = 7, m = 40, n = 72, k = 136}, {tile = tile, rings = {a = 2, b = 3},
  grid = {eus = 2, keep = 7, along = "h"}}), 1)
local attention = {tile = {m = 64, n = 64, d = 64}, rings = {k = 2, v = 2, bias = 2}, grid = {eus = 3, keep = 3, along = "h"}}
right("attention with a bias", schedule(biased:bind{b = 1, h = 6, m = 128, n = 128, d = 64}, attention), 1)
attention.grid = {eus = 2, keep = 6, along = "h", longest_first = true, section = 4}
right("causal, longest first", schedule(biased:bind{b = 1, h = 6, m = 256, n = 256, d = 64, causal = true}, attention), 1)
right("chunk_state", schedule(mr.examples.chunk_state{b = 1, s = 512, h = 4, p = 64, n = 64},
  {tile = {l = 128, n = 64, p = 64}, rings = {b = 2}, grid = {eus = 1, keep = 4, along = "h"}}), 1)
right("chunk_scan", schedule(mr.examples.chunk_scan{b = 1, s = 512, h = 4, p = 64, n = 64},
  {tile = {l = 64, k = 64, p = 64}, rings = {cb = 2}, grid = {eus = 2, keep = 4, along = "h", longest_first = true}}), 2)

right("an axis that another phase has in a loop", schedule(mr.examples.rmsnorm_backward{m = 20, n = 64, rows = 2},
  {tile = {row = 1, column = 64, part = 4}, rings = {x = 2, dy = 2}, grid = {eus = 2, keep = 5, along = "part"}}), 1)

-- A word that another ring's copy leaves alone is what this rests on: with one word for all slots results are wrong.
local two = schedule(heads, {tile = tile, rings = {a = 2, b = 2}, grid = {eus = 1, keep = 4, along = "h"}})
local spoiled = core.build(two, true, function(text)
  return (text:gsub("(key = )[^\n]*;", "%1 1;"))
end, nil, "host")
tap.ok(not spoiled:check{}.ok, "copies that are left out too often are found")

---- predictions --------------------------------------------------------------------------------

local function cycles(bound, o) return schedule(bound, o):simulate{events = 0}.cycles end
local large = shared:bind{b = 32, h = 64, m = 64, n = 128, k = 256, each = 64}
local apart = {tile = {m = 64, n = 128, k = 64}, rings = {a = 6, b = 4}, apart = "load_b", grid = {}}
local without = cycles(large, apart)
apart.grid = {keep = 16, along = "h"}
tap.ok(cycles(large, apart) < 0.9 * without, "copies that are left out take no time in the model")
apart.rings.b = 3
local three = cycles(large, apart)
apart.rings.b = 4
tap.ok(cycles(large, apart) < three, "  where versions are no multiple of the iterations, none is left out")
tap.done_testing()
