-- plan:launch: what a kernel does while what is in front of it runs (src/plan/phases.h): which lanes wait, and where the next kernel may
-- begin. What a verifier refuses is in tests/unit/phase_waits.c.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")

local function gemm(lane_of_b, tile)
  local plan = mr.plan(mr.examples.gemm{m = 100, n = 200, k = 96}:graph{tile = tile or {m = 64, n = 64, k = 32}}, mr.device "h200")
  for _, name in ipairs{"p0", "p1"} do plan:lane(name, {warps = 1}) end
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.name == "load_b" and lane_of_b or t.kind == "load" and "p1" or "c0"}) end
  plan:buffers{a = 2, b = 2}
  plan:grid{eus = 2}
  plan:fill_waits()
  return plan
end

-- "start wait; c0 wait; p0 next": what stands where in the text of the kernel, of this phase, in order.
local function sites(plan, phase)
  local list, lane, kernel = {}, "start", nil
  for line in plan:compile{text = true}.source:gmatch "[^\n]+" do
    kernel = line:match "^KERNEL%(%w-_(%w+)" or kernel
    if line:find "^KERNEL" then lane = "start" end
    if phase and kernel ~= phase then goto continue end
    lane = line:match "/%* lanes? (%w+)" or lane
    if line:find "^%s+LAST_PHASE_WAIT%(%);" then list[#list + 1] = lane .. " wait" end
    if line:find "^%s+NEXT_PHASE_MAY_BEGIN%(%);" then list[#list + 1] = lane .. " next" end
    ::continue::
  end
  return table.concat(list, "; ")
end

local plan = gemm "p0"
tap.is(sites(plan), "start wait; start next", "without a statement all threads wait, then the next kernel may begin")
plan:launch{ready = {"B"}}
tap.is(sites(plan), "start next; c0 wait; p1 wait", "what is not ready waits: the lane that loads A, and the store")
plan:launch{ready = {"A", "B"}}
tap.is(sites(plan), "start next; c0 wait", "with all inputs ready only the store waits")
plan:launch{next = "loaded"}
tap.is(sites(plan), "c0 wait; p0 next", "behind the last loads of the lane that loads last")
plan:launch{next = "end"}
tap.is(sites(plan), "c0 wait", "never before the end")
tap.is(plan:script():match "plan:launch[^\n]*", 'plan:launch{next="end", ready={"A", "B"}}', "the script has both; what is not named stays")
tap.is(load(plan:script())():script(), plan:script(), "  and loads")
tap.is(sites(load(plan:script())()), "c0 wait", "  as the same kernel")
plan:launch{ready = {"B", "A", "B"}}
tap.is(plan:script():match "plan:launch[^\n]*", 'plan:launch{next="end", ready={"A", "B"}}', "an order of names, or one twice, means nothing")
plan:undo()
plan:undo()
tap.is(plan:script():match "plan:launch[^\n]*", 'plan:launch{next="loaded", ready={"A", "B"}}', "undo")
plan:launch{ready = {}, next = "auto"}
tap.is(plan:script():match "plan:launch", nil, "the usual is no statement")
tap.is(sites(plan), "start wait; start next", "  and the kernel of before")
plan:launch{next = "start"}
tap.is(sites(plan), "start next; c0 wait; p0 wait; p1 wait", "a next kernel at the start: then every lane waits by itself")
plan:launch{next = "loaded"}
tap.is(sites(plan), "start wait; p0 next", "with its last loads, behind a wait of all threads")

-- One lane that loads both.
local e
plan = gemm "p1"
plan:launch{ready = {"B"}}
tap.is(sites(plan), "start next; c0 wait; p1 wait", "a lane that loads both waits before the load that is not ready")
local text = plan:compile{text = true}.source
tap.ok(text:match "load_a, iteration.-LAST_PHASE_WAIT%(%);.-load_b, iteration", "  which comes first in its order")
plan:move("load_b", {before = "load_a"})
plan:move("load_b", {at = 1})
plan:lane("p0", false)
text = plan:compile{text = true}.source
tap.ok(text:match "load_b, iteration.-load_a, iteration.-LAST_PHASE_WAIT%(%);", "  or behind an iteration of what is ready")
e = plan:compile{target = "host"}:check()
tap.ok(e.ok, tostring(e))

-- A counter of tiles is the same for launches that may overlap.
plan = gemm "p0"
plan:grid{dynamic = true}
plan:launch{ready = {"A", "B"}}
local waits = sites(plan)
tap.ok(waits:find "p[01] wait", "the lane that takes tiles by a counter waits: " .. waits)

-- Names.
for _, x in ipairs{{{ready = {"C"}}, "'C' is written by 'gemm' itself"}, {{ready = {"Q"}}, "no tensor 'Q'"}, {{next = "now"}, "unknown next 'now'"},
  {{ready = "B"}, "list of tensors"}, {{early = true}, "early"}} do
  local good, why = pcall(plan.launch, plan, x[1])
  tap.ok(not good and why:find(x[2], 1, true), "refused: " .. x[2])
  if good or not why:find(x[2], 1, true) then tap.diag(tostring(why)) end
end
tap.is(sites(plan), waits, "a refused statement changes nothing")

-- A search of plans that have it.
local found = mr.search(mr.examples.gemm{m = 16, n = 4096, k = 4096}, "h200", {measure = false, trials = 60, ready = {"B"}})
tap.is(found.plan:script():match "plan:launch[^\n]*", 'plan:launch{ready={"B"}}', "a search gives plans what is ready")
local lane_of = {}
for _, x in ipairs(found.plan.entries) do lane_of[x.task] = x.lane end
tap.ok(lane_of.load_a ~= lane_of.load_b, "  and a lane of its own to load it")
tap.ok(found.plan:check(), "  they are legal")
-- A load that gives indices stands in the lane of the loads that take them, whichever of them are ready.
local experts = mr.examples.grouped_gemm{m = 4096, n = 2048, k = 1024, e = 8, blocks = 72, gated = true}
local free = mr.search(experts, "h200", {measure = false, trials = 200, seconds = 100}).seconds
for _, ready in ipairs{{"X", "W", "V"}, {"Token", "W"}, {"Expert", "X"}, {"Token"}, {"Token", "W", "V", "Expert"}} do
  local r, why = mr.search(experts, "h200", {measure = false, trials = 200, seconds = 100, ready = ready})
  tap.ok(r and r.seconds < 1.01 * free, "a plan whose tables or rows are ready alone: " .. table.concat(ready, " "), r and r.seconds or why)
end

for _, x in ipairs{{"B", "list of inputs"}, {{"C"}, "no input 'C'"}, {{1}, "name of a ready input"}} do
  local good, why = pcall(mr.search, found.plan.graph.program, "h200", {measure = false, trials = 1, ready = x[1]})
  tap.ok(not good and why:find(x[2], 1, true), "a search refuses: " .. x[2])
end

-- Further phases: without a statement they load inputs at once, as the first one has waited; where that no longer is so, what is ready.
local parts = mr.program("parts", function(p)
  local m, n, k, s = p:axes("m", "n", "k", "s")
  local r = p:axis("r", k.size // s.size)
  local A, B, C = p:input("A", {m, k}), p:input("B", {k, n}), p:output("C", {m, n}, "f32")
  p:phase("begin", function() C:store(p:task("zero", function() return (m:index() + n:index()):to "f32" * 0 end)) end)
  p:phase("add", function()
    p:batch(s)
    local c = p:carry("c", {m, n}, 0)
    p:loop(r, function()
      local at = s * r.size + r
      c:add(p:mma("mma", p:load("load_a", A, {m, at}), p:load("load_b", B, {at, n})))
    end)
    C:add(c)
  end)
end)
plan = mr.plan(parts{m = 64, n = 64, k = 128, s = 2}:graph{tile = {m = 64, n = 64, r = 32}}, mr.device "h200")
plan:lane("p0", {warps = 1})
plan:lane("p1", {warps = 1})
for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.name == "load_a" and "p0" or t.kind == "load" and "p1" or "c0"}) end
plan:fill_waits()
tap.is(sites(plan, "add"), "start next; c0 wait", "a further phase loads inputs at once")
tap.is(sites(plan, "begin"), "start wait; start next", "  behind a phase that has waited")
plan:launch{ready = {"A"}}
tap.is(sites(plan, "begin"), "start next; c0 wait", "with a statement the first one waits where it must")
tap.is(sites(plan, "add"), "start next; c0 wait; p1 wait", "  and so does the further one")
e = plan:compile{target = "host"}:check()
tap.ok(e.ok, tostring(e))
tap.done_testing()
