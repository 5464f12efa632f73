-- What the model predicts where lanes meet at the block's barrier, as on an MI300X: no lane goes on before all have come. Checks
-- intervals that follow by hand from the lengths of sTasks, that products of two groups alternate, that what waits says for which
-- lane, and that intervals are above their bounds.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like = tap.ok, tap.is, tap.like

local device <const> = mr.device "mi300x"
local meeting <const> = device:number "sync.issue_order_latency"

-- The cycles of each sTask's lane in the steady state, and its events by name.
local function read(tl)
  local held, of = {}, {}
  for _, e in ipairs(tl.events) do
    of[e.task] = of[e.task] or {}
    table.insert(of[e.task], e)
    if e.iteration == 4 then held[e.task] = e["end"] - e.issue end
  end
  return held, of
end

local function near(got, expected, what)
  ok(math.abs(got - expected) <= 2, what, got, expected)   -- events are in cycles, costs in parts of them
end

local function is_bounded(tl, what)
  ok(tl.ii >= tl.res_mii - 0.01 and tl.ii >= tl.rec_mii - 0.01, what, tl.ii, tl.res_mii, tl.rec_mii)
end

-- A lane that is longer ------------------------------------------------------------------

-- One lane fills slots, the other one multiplies. They meet once in an iteration, so the shorter one waits.
local function fed(bound, versions, unit)
  local p = mr.plan(bound:graph{tile = {m = 128, n = 128, k = 32}}, device)
  p:lane("p0", {warps = 4})
  p:lane("c0", {warps = 4})
  for _, task in ipairs{"load_a", "load_b"} do p:append(task, {lane = "p0", seu = unit}) end
  for _, task in ipairs{"mma", "epilogue", "store_c"} do p:append(task, {lane = "c0"}) end
  p:buffers{a = versions, b = versions}
  ok(p:fill_waits() and p:check(), "a plan of two lanes is legal")
  return p
end

local bound <const> = mr.examples.gemm{m = 512, n = 256, k = 512}
for versions = 2, 3 do
  local p = fed(bound, versions, "valu")
  local tl = p:simulate()
  local held, of = read(tl)

  like(tostring(p:kernel{}), "lanes meet at the block's barrier, 1 time in an iteration")
  near(tl.ii, math.max(held.load_a + held.load_b, held.mma) + meeting, "the longer lane and a meeting make an iteration")
  ok(held.load_a + held.load_b > held.mma, "  which here is that of the loads")
  is(of.mma[5].cause .. " " .. of.mma[5].on, "barrier load_b", "  the other one waits at the barrier")
  like(tl:text(), "mma at a barrier for p0", "  and the drawing says for whom")
  is(of.mma[5].issue, of.load_b[5]["end"] + meeting, "  until the other lane has come")
  is_bounded(tl, "  above the bounds")
end

-- Two groups that alternate --------------------------------------------------------------

local function pair(unit)
  local p = mr.plan(bound:graph{tile = {m = 256, n = 128, k = 32}}, device)

  p:split_off("a", "put_a")
  p:split_off("b", "put_b")
  p:split("m", 2, {"load_a", "put_a", "mma", "epilogue", "store_c"})
  for i = 0, 1 do
    p:lane("c" .. i, {warps = 4})
    p:append("mma." .. i, {lane = "c" .. i})
    for _, task in ipairs{"put_a." .. i, i == 0 and "put_b" or nil} do p:append(task, {lane = "c" .. i, at = 1}) end
    p:append("load_a." .. i, {lane = "c" .. i, at = 2})
    if i == 0 then p:append("load_b", {lane = "c0", at = 2, seu = unit}) end
    for _, task in ipairs{"epilogue.", "store_c."} do p:append(task .. i, {lane = "c" .. i}) end
  end
  p:buffers{a = 2, b = 2}
  p:wait("mma.1", {{"mma.0", distance = 0}})
  p:wait("mma.0", {{"mma.1", distance = 1}})
  ok(p:fill_waits() and p:check(), "two groups that alternate are a legal plan")
  return p
end

for _, unit in ipairs{"vmem", "valu"} do
  local tl = pair(unit):simulate()
  local held, of = read(tl)
  local copies = held["put_a.0"] + held.put_b + held["load_a.0"] + held.load_b

  near(tl.ii, held["mma.0"] + math.max(held["mma.1"], copies) + 2 * meeting, "an iteration has both products and two meetings")
  for n = 2, 8 do
    local a, b, next = of["mma.0"][n], of["mma.1"][n], of["mma.0"][n + 1]

    ok(a["end"] <= b.start and b["end"] <= next.start, "  products of both groups are never under way at the same time")
    ok(of["put_a.1"][n].start == a.start, "  one begins to copy when the other one begins to multiply")
  end
  is(of["mma.1"][5].cause, "barrier", "  a product waits at the barrier")
  is(of["mma.1"][5].on, "mma.0", "  for the other group's")
  is_bounded(tl, "  above the bounds")
end

-- Loads that are under way at meetings ----------------------------------------------------

-- What waits for the issue of a load does not wait until it is complete: the lane may leave it under way at one meeting more.
local function after(when)
  local p = mr.plan(bound:graph{tile = {m = 128, n = 64, k = 32}}, device)

  for _, lane in ipairs{"c0", "p0", "p1"} do p:lane(lane, {warps = 4}) end
  for _, task in ipairs{"mma", "epilogue", "store_c"} do p:append(task, {lane = "c0"}) end
  p:append("load_a", {lane = "p0", seu = "lds_dma", at = 1})
  p:append("load_b", {lane = "p1", seu = "lds_dma", at = 1})
  p:buffers{a = 3, b = 3}
  p:wait("load_b", {{"load_a", when = when, distance = 0}})
  ok(p:fill_waits() and p:check(), "a load that waits for another one is a legal plan")
  return p
end

local issued <const>, complete <const> = after "issued", after "complete"
like(tostring(issued:kernel{}), "copies_wait until 8 under way", "a load whose issue is awaited remains under way")
ok(not tostring(complete:kernel{}):find "copies_wait until 8", "  and one that must be complete does not")
for _, p in ipairs{issued, complete} do
  local tl = p:simulate()
  local _, of = read(tl)

  is_bounded(tl, "  above the bounds")
  ok(of.mma[5].issue >= of.load_a[5]["end"] + meeting - 1, "  its product begins a meeting after its load", of.mma[5].issue)
end

tap.done_testing()
