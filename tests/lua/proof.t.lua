-- tl:proof(): a bound that no simulation is below, reasons that make it, and eases that are solved again.
local mr = require "millrace"
local core = require "millrace.core"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, measured = dofile(dir .. "tap.lua"), dofile(dir .. "../perf/measured.lua")
local ok, is, near, like = tap.ok, tap.is, tap.near, tap.like
local h200 = mr.device "h200"

-- Every sTask on the lane of its slice; loads on p0. o: split, rings, registers
local function lanes(bound, tile, o)
  local plan = mr.plan(bound:graph{tile = tile}, h200)
  if o.split then plan:split("m", o.split) end
  plan:lane("p0", {warps = 1})
  for i = 0, (o.split or 1) - 1 do plan:lane("c" .. i, {warps = 4, registers = o.registers}) end
  if o.rings then plan:buffers(o.rings) end
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or "c" .. (t.name:match "%.(%d)$" or 0)})
  end
  plan:fill_waits()
  return plan
end

local function gemm(o)
  return lanes(mr.examples.gemm{m = 4096, n = 4096, k = 4096}, o.tile or {m = 128, n = 256, k = 64}, o)
end

-- in the order of the program, both lanes alike
local function attention(d)
  return lanes(mr.examples.flash_attention{b = 1, h = 132, m = 2048, d = d}, {m = 128, n = 128},
    {split = 2, registers = 240, rings = {k = 2, v = 2}})
end

local function find(list, key, of)
  for _, x in ipairs(list) do
    if x[key] == of then return x end
  end
end

---- never below: plans of all families, good and bad ones ------------------------------------------

local worst, at = 0, {}
local function check(name, plan)
  local tl = plan:simulate{events = 0}
  local p = tl:proof()
  local good = p.bound <= tl.ii and p.bound > 0 and p.gap >= 0 and math.abs(p.gap - (tl.ii / p.bound - 1)) < 1e-12
  for _, e in ipairs(p.eases or {}) do good = good and e.bound <= p.bound and e.bound > 0 end
  if not good then at[#at + 1] = ("%s: %.9g < %.9g"):format(name, tl.ii, p.bound) end
  -- ResMII is of any order
  if p.bound < tl.res_mii * (1 - 1e-5) then at[#at + 1] = name .. ": below ResMII" end
  worst = math.max(worst, p.gap)
end
local n = 0
for _, row in ipairs(measured.plans(measured.sweep)) do
  n = n + 1
  check(row.family .. " " .. row.name, assert(load(row.script))())
end
for _, name in ipairs(core.list(mr.home .. "/examples/plans", ".lua")) do
  n = n + 1
  check(name, mr.load_plan(mr.home .. "/examples/plans/" .. name .. ".lua"))
end
for _, name in ipairs{"attention_overlap", "attention_pingpong", "attention_serial", "gemm_cooperative"} do
  n = n + 1
  check(name, mr.load_plan(name))
end
ok(n > 180, n .. " plans")
is(table.concat(at, "\n"), "", "none has an interval below its bound, or an ease above it")
ok(worst > 0.2, "some are far above it")

---- a product: the unit is the reason ------------------------------------------------------------

local plan = gemm{split = 2, rings = {a = 4, b = 4}}
local tl = plan:simulate()
local p = tl:proof()
is(p.bound, tl.res_mii, "the bound of a product is ResMII")
ok(p.proven and p.exact and p.gap == 0, "  which its plan reaches")
is(p.loop, "k", "  over k")
is(#p.core, 1, "  one requirement is enough")
is(p.core[1].unit, "tensor", "  the tensor cores")
near(p.core[1].cycles, p.bound, 1e-6, "  which are at work all the time")
is(p.core.irreducible, true, "  and nothing can be spared")
near(find(p.eases, "unit", "tensor").bound, p.bound / 2, p.bound / 4, "  twice as fast, the loop is, too, or nearly")
for _, e in ipairs(p.eases) do
  if e.unit == "tensor" and e.times < 2 then near(e.bound, p.bound / e.times, 1e-3, "  10 % faster: 1/1.1") end
  if e.buffer then is(e.gain, 0.0, "  no more for another version of " .. e.buffer) end
end
like(tostring(p), "^loop over k: II %d+, proven least with these lanes", "  in words")
like(tostring(p), "tensor is at work %d+ cycles", "  with the reason")

---- shared memory for one version of each ring ------------------------------------------------------

p = gemm{tile = {m = 128, n = 256, k = 256}, split = 2}:simulate():proof()
local kinds = {}
for _, x in ipairs(p.core) do kinds[x.kind] = true end
ok(kinds["shared memory"], "if rings of two do not fit, the core has that reason", tostring(p))
local memory = find(p.eases, "memory", "shared memory")
ok(memory and memory.gain > 0.1, "  and more of it would help", tostring(p))
for _, e in ipairs(p.eases) do
  if e.memory and e.times >= 2 then
    local wide = gemm{tile = {m = 128, n = 256, k = 128}, split = 2, rings = {a = 2, b = 2}}:simulate():proof()
    near(e.bound, 2 * wide.bound, 1, "  twice as much: as with half as long an iteration")
  end
end

---- a recurrence --------------------------------------------------------------------------------

local fading = mr.program("fading", function(q)
  local m, n, t = q:axes("m", "n", "t")
  local A, B = q:input("A", {t, m}), q:input("B", {t, n})
  local G, S = q:input("G", {t}, "f32"), q:output("S", {m, n})
  local s, low = q:carry("s", {m, n}, 0), q:carry("low", {}, 0)
  q:loop(t, function()
    local g, a = q:load("load_g", G), q:load("load_a", A)
    local now = q:task("fade", function()
      local new = mr.min(low, g:rowmin(t))
      s:set(s * mr.exp2(new - low))
      low:set(new)
      return new
    end)
    local w = q:task("weigh", function() return (a * mr.exp2(now - g)):to "bf16" end)
    s:add(q:mma("mma", w, q:load("load_b", B)))
  end)
  S:store("store_s", q:task("round", function() return s:to "bf16" end))
end)
tl = lanes(fading{m = 4096, n = 4096, t = 4096}, {m = 64, n = 256, t = 64}, {rings = {a = 3, b = 3, g = 3}}):simulate()
p = tl:proof()
ok(p.bound > 1.2 * tl.res_mii, "a recurrence forbids more than units do", tostring(p))
local circle = {}
for _, name in ipairs(p.circle) do circle[name] = true end
ok(circle.fade and circle.weigh and circle.mma and #p.circle == 3, "  the circle is fade, weigh and mma",
  table.concat(p.circle, " "))
is(p.circle.iterations, 1, "  over one iteration")
near(p.circle.cycles, p.bound, 1, "  of as many cycles as the bound has")
local all = #p.core > 0
for _, x in ipairs(p.core) do all = all and x.kind == "dependence" and circle[x.from] and circle[x.to] end
ok(all and #p.core == 3, "  all that is needed are its dependences", tostring(p))
like(tostring(p):gsub("\n *", " "), "are a circle of %d+ cycles over 1 iteration", "  in words")
local parts = 0
for _, name in ipairs{"fade", "weigh", "mma"} do
  local e = find(p.eases, "task", name)
  ok(e and e.gain > 0.001 and e.gain <= 0.1 + 1e-9, "  10 % less of " .. name .. " is its part of the circle", tostring(p))
  parts = parts + (e and e.gain or 0)
end
ok(parts <= 0.1 + 1e-9, "  all three together: no more than 10 %")
for _, x in ipairs(p.eases) do
  if x.buffer then is(x.gain, 0.0, "  no version opens it: " .. x.buffer) end
end

---- what is eased more never brings less ------------------------------------------------------------

for _, d in ipairs{64, 128} do
  p = attention(d):simulate{events = 0}:proof()
  local by = {}
  for _, e in ipairs(p.eases) do
    if e.unit or e.memory then
      local of = e.unit or e.memory
      by[of] = by[of] or {}
      by[of][e.times < 2 and 1 or 2] = e.bound
    end
  end
  local good, seen = true, 0
  for _, v in pairs(by) do good, seen = good and v[2] <= v[1], seen + 1 end
  ok(good and seen >= 3, ("d=%d: twice as fast is no slower than 10 %% faster"):format(d))
  local sorted = true
  for i = 2, #p.eases do sorted = sorted and p.eases[i - 1].bound <= p.eases[i].bound end
  ok(sorted, "  the best comes first")
end

---- unhinted: what people have found by hand comes out of the problem ---------------------------------

-- Does a product run while softmax does? Iteration i of an sTask starts at y + i, in intervals. own: of the same lane,
-- then of another iteration, as its own can be no earlier and the next no later than softmax allows.
local function runs_under(q, product, softmax)
  local x, s = find(q.tasks, "name", product), find(q.tasks, "name", softmax)
  local from, to = s.stage + s.start / q.best, s.stage + (s.start + s.hold) / q.best
  for i = -8, 8 do
    local begins = x.stage + x.start / q.best + i
    if begins < to - 1e-6 and begins + x.latency / q.best > from + 1e-6 then return true, i end
  end
  return false
end

-- One lane: in the program's order its softmax waits for a product, and the next product for softmax. The bound is less
-- than that circle takes, so a schedule that has it must go on with another iteration's products.
do
  local one = lanes(mr.examples.flash_attention{b = 1, h = 132, m = 2048, d = 128}, {m = 64, n = 128},
    {registers = 240, rings = {k = 2, v = 2}})
  local q = one:simulate{events = 0}:proof()
  local sum = 0
  for _, name in ipairs{"mma_qk", "softmax", "mma_pv"} do sum = sum + find(q.tasks, "name", name).latency end
  ok(q.best < 0.95 * sum, "attention on one lane: less than a product, softmax and a product after one another")
  local qk, i = runs_under(q, "mma_qk", "softmax")
  local pv, k = runs_under(q, "mma_pv", "softmax")
  ok(qk or pv, "  products run under softmax")
  ok((not qk or i ~= 0) and (not pv or k ~= 0), "  of another iteration than theirs")
end

-- Two lanes whose products take all of the tensor cores' time: one computes while the other multiplies.
for _, d in ipairs{64, 128} do
  local q = attention(d):simulate{events = 0}:proof()
  ok(q.best < 0.9 * q.ii, ("attention, d=%d: the plan in program order is far from the schedule found"):format(d))
  if d == 128 then is(q.core[1].unit, "tensor", "  whose tensor cores always work") end
  for c = 0, 1 do
    local other = 1 - c
    ok(runs_under(q, "mma_qk." .. other, "softmax." .. c) or runs_under(q, "mma_pv." .. other, "softmax." .. c),
      ("  c%d computes under products of c%d"):format(c, other))
  end
  local x, y = find(q.tasks, "name", "softmax.0"), find(q.tasks, "name", "softmax.1")
  local apart = (x.start - y.start) / q.best % 1
  ok(apart > 0.25 and apart < 0.75, "  their softmaxes are half an interval apart, or nearly", ("%.2f"):format(apart))
end

---- no plan at all -----------------------------------------------------------------------------------

local none, message = mr.search(mr.examples.flash_attention{b = 1, h = 8, m = 1024, d = 256}, h200, {tile = {m = 256, n = 256}})
is(none, nil, "a tile that is too large has no plan")
like(message, "one version of everything takes 294912 bytes of shared memory, 'h200' has 232448", "  and says by how much")
none, message = mr.search(mr.examples.gemm{m = 4096, n = 4096, k = 4096}, h200, {tile = {m = 512, n = 512, k = 64}})
is(none, nil, "a tile of too many sums has no plan")
like(message, "262144 sums, the registers of an EU of 'h200' hold 65536", "  likewise")

---- of a search --------------------------------------------------------------------------------------

local r = mr.search(mr.examples.gemm{m = 2048, n = 2048, k = 2048}, h200, {trials = 40})
local q = r.timeline:proof()
is(r.bound, q.bound, "a search's bound is its timeline's")
is(r.gap, q.gap, "  and its gap")
is(r.proven, r.ii <= 1.001 * r.bound, "  proven: the interval is at it")
like(r.why(), "^loop over k: .*\nother tile shapes: none of %d+ can be under", "  why() tells both")

---- whom it does not answer ---------------------------------------------------------------------------

local good, err = pcall(tl.proof, 1)
ok(not good, "a number is no timeline")
like(err, "proof: timeline expected", "  and says so")
for _, row in ipairs(measured.plans(measured.sweep)) do
  if row.name == "128x128t2s6" then
    p = assert(load(row.script))():simulate{events = 0}:proof()
    break
  end
end
is(p.unstated, "its lanes have replicas", "lanes with replicas are not solved")
ok(p.bound > 0 and not p.exact and not p.eases[1], "  they have ResMII and RecMII")
like(tostring(p), "the loop is not solved", "  which is said")

tap.done_testing()
