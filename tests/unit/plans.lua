-- plans.lua - plans of unit tests in C. script_run (script.h) runs a script that sees these functions as globals.
local mr = require "millrace"
local home = require "millrace.core".home()

local P = {mr = mr, device = mr.device "h200"}
P.mma_sync = dofile(home .. "/tests/lua/lib/mma_sync.lua")     -- the device whose products are of single warps

function P.example(name, bound) return mr.load_plan(home .. "/examples/" .. name .. ".lua", table.unpack{bound}) end

-- An example on one EU.
function P.on_one_eu(name, bound)
  local plan = P.example(name, bound)
  plan:grid{eus = 1}
  return plan
end

function P.attention_of(sizes)
  return mr.examples.flash_attention{b = 1, h = sizes.h or 1, m = sizes.m, n = sizes.n, d = sizes.d or 64, causal = sizes.causal}
end

-- The sTasks in the program's order. lane_of(sTask) gives its lane; nil: the default. o:
--   device    else h200
--   lanes     {name, options} of each lane that is declared, in order
--   rings     versions, by buffer
--   loads     the unit of loads, else the default
--   at        offsets, by sTask
--   eus       1 unless given
function P.plan(bound, tile, lane_of, o)
  local plan = mr.plan(bound:graph{tile = tile}, o.device or P.device)
  for _, lane in ipairs(o.lanes or {}) do plan:lane(lane[1], lane[2]) end
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = lane_of and lane_of(t) or nil, at = o.at and o.at[t.name] or 0,
      seu = t.kind == "load" and o.loads or nil})
  end
  plan:buffers(o.rings or {})
  if o.eus ~= false then plan:grid{eus = o.eus or 1} end
  plan:fill_waits()
  return plan
end

-- Lanes by default.
function P.simple(bound, tile, rings) return P.plan(bound, tile, nil, {rings = rings}) end

-- The same, with the last steps to a value as an sTask of their own.
function P.split_off(bound, tile, value, task, steps, rings)
  local plan = mr.plan(bound:graph{tile = tile}, P.device)
  plan:split_off(value, task, steps)
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:buffers(rings)
  plan:grid{eus = 1}
  plan:fill_waits()
  return plan
end

-- The same, with the operands of a product exchanged.
function P.swapped(bound, tile, product, rings)
  local plan = mr.plan(bound:graph{tile = tile}, P.device)
  plan:swap(product)
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:buffers(rings)
  plan:grid{eus = 1}
  plan:fill_waits()
  return plan
end

-- Products of single warps.
function P.of_warps(bound, tile, rings)
  return P.plan(bound, tile, nil, {device = P.mma_sync, lanes = {{"c0", {warps = 2}}}, rings = rings})
end

-- Loads and all else on a lane each, on the device of that name.
function P.on_device(name, bound, tile, rings, warps)
  return P.plan(bound, tile, nil, {device = mr.device(name), lanes = {{"p0", {warps = 1}}, {"c0", {warps = warps or 2}}}, rings = rings})
end

-- One lane copies what it multiplies.
function P.on_one_lane(name, bound, tile, rings, at, warps)
  return P.plan(bound, tile, function() return "c0" end, {device = mr.device(name), lanes = {{"c0", {warps = warps or 2}}}, rings = rings,
    at = at})
end

-- Loads without registers, on the lane that multiplies, or on one of their own.
function P.by_dma(bound, tile, rings, at, apart)
  return P.plan(bound, tile, function(t) return apart and t.kind == "load" and "p0" or "c0" end, {device = mr.device "mi300x",
    lanes = {{"c0", {warps = 2}}, apart and {"p0", {warps = 1}}}, rings = rings, at = at, loads = "lds_dma"})
end

-- Loads on p0, of `loading` warps; sTasks of `on` on c1, all others on c0. eus: false for all.
local function on_lanes(bound, tile, rings, on, loading, eus)
  local lanes = {{"p0", {warps = loading or 1}}, {"c0", {warps = 4}}, next(on) and {"c1", {warps = 4}}}
  return P.plan(bound, tile, function(t) return t.kind == "load" and "p0" or on[t.name] and "c1" or "c0" end,
    {lanes = lanes, rings = rings, eus = eus})
end

-- A program of lib/length_programs.lua, with loads on a lane of `loading` warps (1). eus: false for all.
function P.with_lengths(name, sizes, tile, rings, loading, eus)
  return on_lanes(dofile(home .. "/tests/lua/lib/length_programs.lua")[name](sizes), tile, rings, {}, loading, eus)
end

---- verify ---------------------------------------------------------------------------

-- A GEMM of `ways` slices, each on a lane.
function P.gemm(sizes, tile, ring, ways)
  local plan = mr.plan(mr.examples.gemm(sizes):graph{tile = tile}, P.device)
  if ways > 1 then plan:split("m", ways) end
  plan:lane("p0", {warps = 1})
  plan:buffers{a = ring, b = ring}
  for _, load in ipairs{"load_a", "load_b"} do plan:append(load, {lane = "p0"}) end
  for i = 0, ways - 1 do
    local lane, slice = "c" .. i, ways > 1 and "." .. i or ""
    plan:lane(lane, {warps = 4})
    for _, task in ipairs{"mma", "epilogue", "store_c"} do plan:append(task .. slice, {lane = lane}) end
  end
  plan:grid{eus = 1}
  plan:fill_waits()
  return plan
end

-- It waits for loads whose slots may hold others by then, so their flags are deeper than the rings.
function P.looking_back(sizes)
  local plan = P.gemm(sizes, {m = 64, n = 64, k = 32}, 1, 1)
  plan:wait("mma", {{"load_b", distance = 2}})
  plan:wait("load_a", {{"load_b", distance = 1}})
  return plan
end

function P.cluster(o)
  local plan = P.gemm({m = o.m or 256, n = o.n or 192, k = o.k or 96, b = o.b}, {m = 64, n = 64, k = 32}, o.ring or 2, 1)
  plan:grid{eus = o.size or 2, cluster = o.size or 2, group = o.group or 4}
  return plan
end

-- o: sizes, offsets by sTask, versions (q, k, v, probs, scores); p1: a lane of its own loads the queries; overlap:
-- everything but the last product is an iteration ahead, unless offsets say otherwise.
local overlap = {mma_qk = 1, softmax = 1, rescale = 1, probs = 2, order = {"mma_qk", "mma_pv", "softmax", "rescale"}}
function P.attention(o)
  if o.overlap then setmetatable(o, {__index = overlap}) end
  local bound = P.attention_of{h = o.h, m = o.m or 192, n = o.n or 256, causal = o.causal}
  local plan = mr.plan(bound:graph{tile = {m = 64, n = 64}}, P.device)
  plan:lane("p0", {warps = 1})
  if o.p1 then plan:lane("p1", {warps = 1}) end
  plan:lane("c0", {warps = 4})
  plan:buffers{q = o.q or 1, k = o.k or 2, v = o.v or 2, softmax_2 = o.probs or 1, mma_qk = o.scores or 1}
  plan:append("load_q", {lane = o.p1 and "p1" or "p0"})
  plan:append("load_k", {lane = "p0", at = o.load_k or 0})
  plan:append("load_v", {lane = "p0", at = o.load_v or 0})
  for _, task in ipairs(o.order or {"mma_qk", "softmax", "rescale", "mma_pv"}) do
    plan:append(task, {lane = "c0", at = o[task] or 0})
  end
  plan:append("normalise", {lane = "c0"})
  plan:append("store_o", {lane = "c0"})
  plan:grid{eus = 1}
  plan:fill_waits()
  return plan
end

-- A GEMM whose consumer has two replicas.
function P.replicas()
  return P.plan(mr.examples.gemm{m = 320, n = 64, k = 96}, {m = 64, n = 64, k = 32},
    function(t) return t.kind == "load" and "p0" or "c" end,
    {lanes = {{"p0", {warps = 1}}, {"c", {warps = 4, replicas = 2}}}, rings = {a = 2, b = 2}})
end

-- Offsets `at`; all on lane `on`, or loads on p0.
function P.shifted(bound, tile, rings, at, on, replicas)
  return P.plan(bound, tile, function(t) return on or t.kind == "load" and "p0" or "c0" end,
    {lanes = {{on or "p0", {warps = on and 4 or 1, replicas = on and replicas}}, {"c0", {warps = 4, replicas = replicas}}},
      rings = rings, at = at})
end

P.project = mr.program("project", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n})
  local c = p:mma("mma", p:load("load_a", A), p:load("load_b", B))
  C:store("store_c", p:task("scale", function() return (c * 0.5):to "bf16" end))
end)

-- The epilogue of a GEMM on a lane of its own.
function P.epilogue(sizes, rings)
  return on_lanes(mr.examples.gemm(sizes), {m = 64, n = 64, k = 32}, rings, {epilogue = true, store_c = true})
end

-- Attention with the sTasks of `on` on a second lane.
function P.statistics(o, on) return on_lanes(P.attention_of(o), {m = 64, n = 64}, {k = o.ring, v = o.ring}, on) end

-- Two products of one tile, on lanes that share nothing but the waits {task, on, distance, when} of o.
function P.apart(o)
  local bound = mr.program("apart", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32")
    local E, F, D = p:input("E", {m, k}), p:input("F", {n, k}), p:output("D", {m, n}, "f32")
    local c, d = p:carry("c", {m, n}, 0), p:carry("d", {m, n}, 0)
    local function masked(name, a)                      -- the elements of an operand before `upto`
      return o.part and p:task(name, function() return mr.where(k:index():le(m:index() - 64), a, 0):to "bf16" end) or a
    end
    p:loop(k, {upto = o.part and m - 64 or nil}, function()
      c:add(p:mma("mma_c", masked("left_c", p:load("load_a", A)), p:load("load_b", B)))
      d:add(p:mma("mma_d", masked("left_d", p:load("load_e", E)), p:load("load_f", F)))
    end)
    C:store("store_c", p:task("out_c", function() return c + 0 end))
    D:store("store_d", p:task("out_d", function() return d + 0 end))
  end){m = 192, n = 64, k = 128}
  local lanes = {load_a = "p0", load_b = "p0", load_e = "p1", load_f = "p1"}
  local plan = P.plan(bound, {m = 64, n = 64, k = 32},
    function(t) return lanes[t.name] or t.name:find "_c$" and "c0" or "c1" end, {lanes = {
      {"p0", {warps = o.warps or 1}}, {"p1", {warps = 1}}, {"c0", {warps = 4}}, {"c1", {warps = 4}}}})
  for _, w in ipairs(o) do plan:wait(w[1], {{w[2], distance = w[3], when = w[4]}}) end
  return plan
end

-- Attention in two slices, of which one waits for a product of the other.
function P.split()
  local plan = mr.plan(P.attention_of{m = 128, n = 128}:graph{tile = {m = 128, n = 64}}, P.device)
  plan:split("m", 2)
  plan:lane("p0", {warps = 1})
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or "c" .. t.name:match "%d$"})
  end
  plan:fill_waits()
  plan:wait("softmax.1", {{"mma_pv.0", distance = 0}})
  return plan
end

---- price ---------------------------------------------------------------------------

-- A GEMM on all EUs. o: apart, whether the epilogue has a lane of its own; warps that load; versions of rings.
function P.large_gemm(k, o)
  o = o or {}
  return on_lanes(mr.examples.gemm{m = 1024, n = 1024, k = k}, {m = 64, n = 64, k = 64}, {a = o.rings or 3, b = o.rings or 3},
    o.apart and {epilogue = true, store_c = true} or {}, o.loading, false)
end

-- Attention on all EUs, with the sTasks of `on` on a second lane.
function P.large_attention(on)
  return on_lanes(P.attention_of{h = 4, m = 256, n = 512}, {m = 64, n = 64}, {k = 2, v = 2}, on, nil, false)
end

-- A product to which n products are added, whose layouts must be converted for that.
function P.flipped(n)
  local bound = mr.program("flipped", function(p)
    local m, cols, k = p:axes("m", "n", "k")
    local A, B, C = p:input("A", {m, k}), p:input("B", {cols, k}), p:output("C", {m, cols}, "f32")
    local a, b = p:load("load_a", A), p:load("load_b", B)
    local c = p:mma("mma", a, b)
    local d = n > 0 and p:mma("across", b, a) or 0
    local e = n > 1 and p:mma("again", b, a) or 0
    C:store("store_c", p:task("add", function() return c + d + e end))
  end){m = 256, n = 256, k = 64}
  return on_lanes(bound, {m = 64, n = 64}, {}, {}, nil, false)
end

-- So many versions in registers, in a loop of 1 to 200 iterations; each EU has one tile.
function P.many_versions(n)
  local bound = mr.program("triangle", function(p)
    local m, k = p:axes("m", "k")
    local X, Y = p:input("X", {m, k}, "f32"), p:output("Y", {m}, "f32")
    local sum = p:carry("sum", {m}, 0)
    p:loop(k, {upto = m}, function()
      local x = p:load("load", X)
      local half = p:task("half", function() return mr.where(k:index():le(m:index()), x * 0.5, 0) end)
      p:task("add", function() sum:add(mr.rowsum(half, k)) end)
    end)
    Y:store("store", sum)
  end){m = 100, k = 200}
  local plan = mr.plan(bound:graph{tile = {m = 1, k = 1}}, mr.device "h200")
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = "c0"}) end
  plan:buffers{half = n}
  plan:fill_waits()
  return plan
end

-- A loop of 40 iterations, and one of 1 to 40 behind it.
function P.two_loops()
  local bound = mr.program("two_loops", function(p)
    local m, k, n = p:axes("m", "k", "n")
    local X, Z, Y = p:input("X", {m, k}, "f32"), p:input("Z", {m, n}, "f32"), p:output("Y", {m}, "f32")
    local sum = p:carry("sum", {m}, 0)
    p:loop(k, function()
      local x = p:load("load_x", X)
      p:task("add_x", function() sum:add(mr.rowsum(x, k)) end)
    end)
    p:loop(n, {upto = m}, function()
      local z = p:load("load_z", Z)
      p:task("add_z", function() sum:add(mr.rowsum(mr.where(n:index():le(m:index()), z, 0), n)) end)
    end)
    Y:store("store", sum)
  end){m = 40, k = 40, n = 40}
  local plan = mr.plan(bound:graph{tile = {m = 1, k = 1, n = 1}}, mr.device "h200")
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
  plan:grid{eus = 1}
  plan:fill_waits()
  return plan
end

return P
