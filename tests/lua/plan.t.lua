-- Plans: every edit and what it changes, undo and redo, the problems of check() and the repairs
-- that they name, text that builds the same plan again, tables, and every refusal.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like, refuses = tap.ok, tap.is, tap.like, tap.refuses

local device = mr.device "h200"
local gemm = mr.examples.gemm{m = 512, n = 512, k = 512}
local graph = gemm:graph{tile = {m = 128, n = 128, k = 64}}
local attention = mr.examples.flash_attention{b = 1, h = 4, m = 1024, d = 128}
local attention_graph = attention:graph{tile = {m = 128, n = 128}}

-- The line of the call, or one near it, as locations name it.
local function here(offset)
  local info = debug.getinfo(2, "Sl")
  return info.short_src:gsub("^%./", "") .. ":" .. info.currentline + (offset or 0)
end

-- The statements of a plan, without what makes the program, the graph and the plan.
local function statements(plan)
  return plan:script():match "\nlocal plan = [^\n]*\n(.*)return plan\n$"
end

-- A legal plan of a GEMM, one lane for loads and one for everything else.
local appended_at, made_at
local function new_gemm()
  made_at = here(1)
  local plan, tasks = mr.plan(graph, device), {"load_a", "load_b", "mma", "epilogue", "store_c"}
  plan:buffers{a = 3, b = 3}
  for _, task in ipairs(tasks) do plan:append(task); appended_at = here() end
  plan:wait("mma", {"load_a", "load_b"})
  plan:wait("load_a", {"mma"})
  plan:wait("load_b", {"mma"})
  plan:wait("epilogue", {"mma", "store_c"})
  return plan
end

-- Attention with the loop in this order, {{sTask, offset}, ...}, and all the waits it needs.
local function new_attention(order)
  local plan = mr.plan(attention_graph, device)
  plan:lane("c0", {warps = 8, registers = 240})
  plan:buffers{k = 2, v = 2}
  for _, task in ipairs{"load_q", "load_k", "load_v"} do plan:append(task) end
  for _, e in ipairs(order) do plan:append(e[1], {at = e[2]}); appended_at = here() end
  plan:append "normalise"
  plan:append "store_o"
  plan:fill_waits()
  return plan
end

-- Edits ---------------------------------------------------------------------------------

local plan = mr.plan(graph, device)
is(statements(plan), "", "an empty plan")
plan:append "load_a"
is(statements(plan), [[
plan:lane("p0", {})
plan:append("load_a", {seu="tma", lane="p0"})
]], "append: copies go to the copy unit and a lane for producers")
plan:append "mma"
plan:append("epilogue", {})
plan:append("store_c", nil)
is(statements(plan), [[
plan:lane("p0", {})
plan:lane("c0", {})
plan:append("load_a", {seu="tma", lane="p0"})
plan:append("mma", {seu="tensor", lane="c0"})
plan:append("epilogue", {seu="cuda", lane="c0"})
plan:append("store_c", {seu="tma", lane="c0"})
]], "  and all others to a consumer, each on the unit for its kind of work")
plan:append("load_b", {eu = 0, seu = "tma", lane = "c0", at = -2})
plan:append("mma", {lane = "c1", at = 16.0})
like(statements(plan), 'load_b", {seu="tma", lane="c0", at=%-2}%)\n.*plan:append%("mma", ' ..
  '{seu="tensor", lane="c1", at=16}%)', "  or with the given unit, lane and offset")
plan:remove "mma"
ok(not statements(plan):find "mma", "remove takes all entries of an sTask")
like(statements(plan), 'plan:lane%("c1"', "  and leaves the lanes")

plan = mr.plan(graph, device)
plan:lane "c0"
plan:lane("p0", {warps = 1})
plan:lane("c0", {warps = 8, registers = 240, replicas = 2})
is(statements(plan), [[
plan:lane("c0", {warps=8, registers=240, replicas=2})
plan:lane("p0", {warps=1})
]], "lane declares a lane, or changes it")
local before, lane = statements(plan), plan:lane "c0"
ok(statements(plan) == before and lane.name == "c0" and lane.warps == 8 and lane.registers == 240 and lane.replicas == 2,
  "without options it changes nothing and gives what the lane is")
plan:lane("c0", {warps = 4})
like(statements(plan), '^plan:lane%("c0", {warps=4, registers=240, replicas=2}%)', "  what is not given stays")
plan:lane("c0", {warps = false, registers = false, replicas = 1})
is(statements(plan), 'plan:lane("c0", {})\nplan:lane("p0", {warps=1})\n', "  back to nothing given")
is(plan:lane "c0".warps, 1, "  which is one warp as long as nothing computes there")
plan:lane("c0", {spare = 32})
is(statements(plan), 'plan:lane("c0", {spare=32})\nplan:lane("p0", {warps=1})\n', "registers left to the compiler are in the script")
is(plan:lane("c0").spare, 32, "  and among what a lane is")
like(plan:json(), '"spare": 32', "  and in JSON")
like(plan:table{width = 100, color = false}, "lane c0: 1 warp, 32 spare", "  and in the table")
plan:undo()
is(plan:lane("c0").spare, nil, "  which undo takes back")
like(select(2, pcall(plan.lane, plan, "c0", {spare = 256})), "at most 254 can be spare, not 256", "  fewer than a thread has")
plan:lane("c0", {spare = 0})
is(statements(plan), 'plan:lane("c0", {})\nplan:lane("p0", {warps=1})\n', "  none, unless given")
plan:lane("c0", {warps = 8, columns = 2})
is(statements(plan), 'plan:lane("c0", {warps=8, columns=2})\nplan:lane("p0", {warps=1})\n', "columns of warps are in the script")
is(plan:lane("c0").columns, 2, "  and among what a lane is")
like(plan:json(), '"columns": 2', "  and in JSON")
like(plan:table{width = 100, color = false}, "lane c0: 8 warps in 2 columns", "  and in the table")
plan:lane("c0", {columns = false})
is(plan:lane("c0").columns, nil, "  false leaves them to the products")
plan:undo()
is(plan:lane("c0").columns, 2, "  which undo takes back")
plan:undo()
is(plan:lane("c0").columns, nil, "  and what was given")
like(select(2, pcall(plan.lane, plan, "c0", {columns = 33})), "columns must be an integer from 1 to 32, got 33", "  no more than warps")

plan = mr.plan(graph, device)
plan:wait("mma", {"load_a", "load_b"})
plan:wait("mma", "load_a")
plan:wait("epilogue", {{"mma", distance = 0}, {"store_c", distance = 64, when = "issued"}})
plan:wait("load_a", {{"mma", when = "complete"}, {"mma", when = "issued"}})
plan:wait("store_c", {})
is(statements(plan), [[
plan:wait("load_a", {"mma", {"mma", when="issued"}})
plan:wait("mma", {"load_a", "load_b"})
plan:wait("epilogue", {{"mma", distance=0}, {"store_c", distance=64, when="issued"}})
]], "wait: by name, with a distance, for issue; an equal one again is none")
plan:unwait("load_a", "mma")
plan:unwait("mma", "load_a")
is(statements(plan), [[
plan:wait("mma", {"load_b"})
plan:wait("epilogue", {{"mma", distance=0}, {"store_c", distance=64, when="issued"}})
]], "unwait takes every wait of one sTask for another")

plan = mr.plan(graph, device)
plan:buffers{a = 4, mma_c = nil}
plan:buffers{b = 3.0, epilogue = 1}
is(statements(plan), "plan:buffers{a=4, b=3}\n", "buffers sets versions")
is(plan.rings.a .. plan.rings.b .. plan.rings.c .. plan.rings.epilogue, "4311", "  plan.rings")
plan:buffers{a = 1}
is(statements(plan), "plan:buffers{b=3}\n", "  one version is not written")
plan:buffers{}
is(statements(plan), "plan:buffers{b=3}\n", "  of nothing")

plan = mr.plan(graph, device)
plan:grid{raster = "columns", group = 4}
plan:grid{eus = 100, longest_first = true}
plan:grid{cluster = 2}
is(statements(plan),
  'plan:grid{raster="columns", group=4, eus=100, longest_first=true, cluster=2}\n',
  "grid: each call changes what it names")
plan:grid{section = 200}
is(statements(plan),
  'plan:grid{raster="columns", group=4, eus=100, longest_first=true, section=200, cluster=2}\n',
  "  sections of what is ordered longest first")
plan:grid{cluster = 1, dynamic = true}
is(statements(plan), 'plan:grid{raster="columns", group=4, eus=100, longest_first=true, section=200, dynamic=true}\n', "  by a counter")
plan:grid{dynamic = false}
plan:grid{raster = "rows", group = 1, longest_first = false, cluster = 1}
is(statements(plan), 'plan:grid{raster="rows", group=1, eus=100}\n', "  and back: without longest_first there are no sections")
plan:grid{cluster = 2, along = "n"}
is(statements(plan), 'plan:grid{raster="rows", group=1, eus=100, cluster=2, along="n"}\n', "  clusters along an axis")
plan:grid{along = false}
is(statements(plan), 'plan:grid{raster="rows", group=1, eus=100, cluster=2}\n', "  along that of the raster again")
plan:grid{along = "m"}
plan:grid{cluster = 1}
is(statements(plan), 'plan:grid{raster="rows", group=1, eus=100}\n', "  without clusters there is no axis")
plan:grid()
plan:grid{}

plan = mr.plan(graph, device)
plan:split("m", 2)
local names = {}
for i, t in ipairs(plan.tasks) do names[i] = t.name end
is(table.concat(names, " "), "load_a load_b mma.0 mma.1 epilogue.0 epilogue.1 store_c.0 store_c.1",
  "split: everything but loads that has the axis")
is(plan.tasks[3].shape.m .. " " .. plan.tasks[3].m, "64 64", "  in halves")
is(#graph.tasks .. " " .. #plan.graph.tasks, "5 5", "  and leaves the graph as it was")
is(statements(plan), 'plan:split("m", 2)\n', "  as text")
plan = mr.plan(attention_graph, device)
plan:split("m", 4, {"mma_qk", "softmax", "rescale", "mma_pv", "normalise", "store_o"})
is(statements(plan), 'plan:split("m", 4)\n', "  which may be named")
is(plan.rings["softmax_2.3"], 1, "  and its buffers")
plan = mr.plan(graph, device)
plan:split("n", 2, {"store_c"})
plan:split("m", 4, {"epilogue", "mma"})
is(statements(plan), 'plan:split("m", 4, {"mma", "epilogue"})\nplan:split("n", 2, {"store_c"})\n', "  or some of these")

plan = new_gemm()
plan:propagate{k = 32}
is(plan.tile.k .. " " .. plan.tile.m, "32 128", "propagate changes the tile")
is(graph.tile.k, 64, "  not the graph's")
like(plan:script(), "tile={k=32, m=128, n=128}", "  as text")
ok(plan:check(), "  what was appended stays")
plan:propagate{}
is(plan.tile.k, 32, "  of nothing")

-- Undo ----------------------------------------------------------------------------------

plan = mr.plan(graph, device)
is(plan:undo(), false, "nothing to undo")
is(plan:redo(), false, "nothing to redo")
local edits <const> = {
  {"split", "m", 2}, {"lane", "c0", {warps = 4}}, {"buffers", {a = 2, b = 3}},
  {"append", "load_a"}, {"append", "load_b", {lane = "p1"}}, {"append", "mma.0", {at = 1}},
  {"append", "mma.1", {lane = "c1"}}, {"wait", "mma.0", {"load_a", "load_b"}},
  {"wait", "mma.1", {"load_a", {"load_b", distance = 1}}}, {"unwait", "mma.0", "load_a"},
  {"grid", {group = 8}}, {"propagate", {k = 32}}, {"remove", "mma.1"}, {"lane", "c0", {warps = 8}},
  {"append", "mma.1"}, {"grid", {raster = "columns"}},
}
local scripts, changed = {plan:script()}, true
for i, edit in ipairs(edits) do
  plan[edit[1]](plan, table.unpack(edit, 2))
  scripts[i + 1] = plan:script()
  changed = changed and scripts[i + 1] ~= scripts[i]
end
ok(changed, "every edit changes the text")
local undone, redone = true, true
for i = #edits, 1, -1 do undone = plan:undo() and plan:script() == scripts[i] and undone end
ok(undone, "every edit is undone, to the letter")
is(plan:undo(), false, "  as far as the beginning")
for i = 2, #scripts do redone = plan:redo() and plan:script() == scripts[i] and redone end
ok(redone, "and made again")
is(plan:redo(), false, "  as far as the end")

local good, message
do
  local other = mr.plan(graph, device)
  other:append("load_a", {lane = "c0"})
  other:append("mma", {lane = "c0"})
  other:append("mma", {lane = "c1"})
  other:remove "mma"
  other:append("mma", {lane = "c0"})
  other:move("load_a", {after = "mma"})
  other:append("mma", {lane = "c1"})
  local before = other:script()
  good, message = pcall(function() other:split("m", 2) end)
  like(message, "^" .. here(-1):gsub("%p", "%%%0") .. ": after this, line %d+ would fail: 'mma.1' is not in the plan",
    "an edit that those before it do not allow")
  is(other:script(), before, "  changes nothing")
end
plan:undo()
plan:undo()
good = pcall(plan.append, plan, "nothing")
ok(not good and plan:redo() and plan:script() == scripts[#scripts - 1],
  "an edit that fails forgets nothing")
plan:buffers{a = 5}
is(plan:redo(), false, "a new edit forgets what was undone")
for _ = 1, 100 do plan:undo(); plan:redo() end
is(plan.rings.a, 5, "to and fro")
plan:undo()
is(plan:script(), scripts[#scripts - 1], "  and is undone itself")

plan = mr.plan(attention_graph, device)
plan:buffers{k = 2, v = 2}
plan:lane("c0", {warps = 8})
for _, t in ipairs(plan.tasks) do plan:append(t.name) end
local before = plan:script()
local added = plan:fill_waits()
ok(added > 5 and plan:script() ~= before, "fill_waits says how many it added", added)
ok(plan:check(), "  which make the plan legal", select(2, plan:check()))
ok(plan:undo() and plan:script() == before, "  and is one edit")
is(plan:redo() and plan:fill_waits(), 0, "  the second time there are none")
local needless = {}
for task, list in plan:script():gmatch 'plan:wait%("([^"]+)", (%b{})%)' do
  for on in list:gmatch '"([^"]+)"' do
    plan:unwait(task, on)
    if plan:check() then needless[#needless + 1] = task .. " " .. on end
    plan:undo()
  end
end
is(table.concat(needless, ", "), "", "  and each is needed")
is(mr.plan(graph, device):fill_waits(), 0, "an empty plan needs no waits")

-- Names of all slices, and splits of what is appended already --------------------------------

local function made_by(edit)
  local p = mr.plan(graph, device)
  edit(p)
  return require "millrace.core".statements(p)
end
local function by_slice(lane)
  return function(p)
    p:split("m", 2)
    for _, t in ipairs{"load_a", "load_b", "mma.0", "mma.1", "epilogue.0", "epilogue.1", "store_c.0", "store_c.1"} do
      p:append(t, {lane = t:find "1$" and lane or nil, at = t:find "^mma" and -1 or nil})
    end
    p:buffers{["epilogue.0"] = 2, ["epilogue.1"] = 2, a = 3}
    p:wait("mma.0", {"load_a", "load_b"})
    p:wait("mma.1", {"load_a", "load_b"})
    p:wait("load_a", {"mma.0", "mma.1"})
    p:wait("epilogue.0", {"mma.0", {"store_c.0", distance = 2, when = "issued"}})
    p:wait("epilogue.1", {"mma.1", {"store_c.1", distance = 2, when = "issued"}})
  end
end
local function by_name(after, both)
  return function(p)
    if not after then p:split("m", 2) end
    for _, t in ipairs{"load_a", "load_b", "mma", "epilogue", "store_c"} do
      p:append(t, {at = t == "mma" and -1 or nil})
      if both and not t:find "load" then p:append(t, {lane = "c1", at = t == "mma" and -1 or nil}) end
    end
    p:buffers{epilogue = 2, a = 3}
    p:wait("mma", {"load_a", "load_b", "epilogue"})
    p:unwait("mma", "epilogue")
    p:wait("load_a", {"mma"})
    p:wait("epilogue", {"mma", {"store_c", distance = 2, when = "issued"}})
    for _, seu in ipairs(both and {} or {"cuda", "tma"}) do p:move("store_c", {seu = seu, repair_waits = false}) end
    if after then p:split("m", 2) end
  end
end
is(made_by(by_name(false)), made_by(by_slice()), "append, wait, unwait, buffers and move take the name of all slices")
is(made_by(by_name(true)), made_by(by_slice()), "  also of what is split later")
is(made_by(by_name(true, true)), made_by(by_slice "c1"), "appended as often as it is split: each slice on the lane it was given")
is(made_by(function(p) by_slice()(p) p:remove "mma" end), made_by(function(p) by_slice()(p) p:remove "mma.0" p:remove "mma.1" end),
  "  remove, too")
is(made_by(function(p) by_slice()(p) p:move({"mma.1", "epilogue.1"}, {lane = "c1", repair_waits = false}) end),
  made_by(function(p)
    by_slice()(p)
    for _, t in ipairs{"mma.1", "epilogue.1"} do p:move(t, {lane = "c1", repair_waits = false}) end
  end), "move takes a list")
plan = mr.plan(graph, device)
for _, t in ipairs{"load_a", "load_b", "mma", "epilogue", "store_c"} do plan:append(t) end
plan:lane("c0", {warps = 8})
plan:fill_waits()
plan:split("m", 2)
ok(plan:check() and plan:undo() and plan:check() and plan.tasks[3].name == "mma", "a plan that is split stays legal, and the split is undone",
  select(2, plan:check()))

-- A plan that is legal ------------------------------------------------------------------

plan = new_gemm()
local legal, problems = plan:check()
is(legal, true, "check: a legal plan")
is(#problems, 0, "  has no problems")
is(tostring(problems), "no problems", "  as text")
local usage = plan.usage
is(usage.threads, 2 * 128, "usage: a producer warp, whose warpgroup is filled up, and a warpgroup")
is(usage.shared_bytes, 3 * 2 * 128 * 64 * 2 + 1024 + 128 * 128 * 2 + 1024,
  "  rings, flags, staging of the store, and padding to begin at a multiple of 1024")
ok(usage.lanes.c0 >= 128 + 24 and usage.lanes.c0 <= 255, "  registers of a thread", usage.lanes.c0)
is(usage.lanes.p0, 24, "  of a producer's")
is(usage.registers, (240 + 40) * 128, "  and of the EU: what its lanes are given, by warpgroups")
plan:lane("c0", {warps = 4, registers = 200})
is(plan.usage.lanes.c0, usage.lanes.c0, "  which are what its values need, whatever registers= says")
is(plan.usage.registers, (200 + 40) * 128, "  and given")

-- Problems ------------------------------------------------------------------------------

-- Run the statements that hints name, of what they bring about, too; is the plan legal then?
local function follow(p)
  for _ = 1, 20 do
    local sound, list = p:check()
    local hint
    for _, x in ipairs(list) do hint = hint or x.hint:find "^plan:%a+[%({]" and x.hint end
    if not hint then return sound, list end
    for _, call in ipairs{"plan:%a+%b()", "plan:%a+%b{}"} do
      for statement in hint:gmatch(call) do assert(load("local plan = ... " .. statement))(p) end
    end
  end
end

-- The first problem of that code, with the message `said`, a location that ends with `location`, and
-- the fields `want`. `repair`: "hint" if its hint is a statement, else a function.
local codes = {}
local function problem(p, code, location, said, want, repair)
  local sound, list = p:check()
  local found
  for _, x in ipairs(list) do found = found or x.code == code and x end
  codes[code] = true
  if not ok(not sound and found, code, list) then return end
  is(found.message, said, "  the message")
  is(tostring(found.location):sub(-#location), location, "  the location")
  for _, key in ipairs{"task", "other"} do
    is(found[key], want[key], "  " .. key)
    ok(not found[key] or code == "shared_memory" or said:find("'" .. found[key] .. "'", 1, true),
      "  whose name is given")
  end
  is(found.edge and found.edge.kind .. " " .. found.edge.buffer, want.edge, "  edge")
  local shown = tostring(list):gsub("\n *", " ")
  ok(shown:find("try: " .. found.hint, 1, true) or shown:find "keeps? them: .*try: plan:wait" or not found.hint:find "^plan:" and
    shown:find "try: plan:", "  and a hint", shown)
  if repair == "hint" then
    ok(follow(p), "  the hint, followed, makes it legal", select(2, p:check()))
  else
    ok(not found.hint:find "^plan:%a+[%({]", "  which is no statement", found.hint)
    repair(p)
    ok(p:check(), "  what it says makes it legal", select(2, p:check()))
  end
end

plan = new_gemm()
plan:unwait("mma", "load_b")
problem(plan, "missing_wait", appended_at, "'mma' reads 'b', but does not wait until 'load_b' has written that",
  {task = "mma", other = "load_b", edge = "flow b"}, "hint")
plan = new_gemm()
plan:unwait("load_a", "mma")
problem(plan, "missing_wait", appended_at, "'load_a' overwrites 'a' of 3 iterations before, but does not wait until " ..
  "'mma' has read that",
  {task = "load_a", other = "mma", edge = "anti a"}, "hint")
do                                                      -- each of the first hints, one after the other
  local two = new_gemm()
  two:unwait("load_a", "mma")
  local _, list = two:check()
  is(list[#list].edge.kind, "output", "  what another wait would keep, too, comes last")
  while not two:check() do assert(load("local plan = ... " .. select(2, two:check())[1].hint))(two) end
  is(two:script(), new_gemm():script(), "  so that the hints, followed, give no wait too many")
end

plan = new_gemm()
plan:unwait("load_a", "mma")
plan:wait("load_a", {{"mma", distance = 5}})
problem(plan, "misplaced_wait", appended_at, "'load_a' overwrites 'a' of 3 iterations before, but its wait for 'mma' is for " ..
  "another iteration than the one that has read that",
  {task = "load_a", other = "mma", edge = "anti a"}, "hint")

plan = new_gemm()
plan:wait("load_b", {{"mma", distance = 0}})
problem(plan, "deadlock", appended_at, "the lanes wait for each other for ever: 'load_b' after " ..
  "'mma' after 'load_b'", {task = "load_b", other = "mma"}, "hint")

plan = new_gemm()
plan:remove "mma"
plan:append("mma", {seu = "tma", lane = "c0"})
problem(plan, "wrong_seu", here(-1),
  "'mma' (mma of bf16) cannot run on sEU 'tma'", {task = "mma"}, "hint")

plan = new_attention{{"mma_qk", 1}, {"softmax", 1}, {"rescale"}, {"mma_pv"}}
problem(plan, "versions", appended_at, "'softmax' overwrites the buffer 'softmax' of the iteration before although 'rescale' has not " ..
  "read that yet: 1 version of 'softmax' is too few for this order",
  {task = "softmax", other = "rescale", edge = "anti softmax"}, "hint")

plan = new_attention{{"softmax"}, {"mma_qk"}, {"rescale"}, {"mma_pv"}}
problem(plan, "offset", appended_at, "'softmax' reads the buffer 'mma_qk', but the order has it come before 'mma_qk' has written that",
  {task = "softmax", other = "mma_qk", edge = "flow mma_qk"}, "hint")

plan = new_gemm()
plan:lane("c0", {registers = 24})
problem(plan, "registers", here(-1),
  ("lane 'c0' needs %d registers a thread, for what it has in 'store_c'; it has 24"):format(usage.lanes.c0),
  {task = "store_c"}, "hint")
-- Two lanes work on values, but one of them on a few indices alone: the other one is given more than an equal share, 128.
do
  local chosen = mr.program("chosen", function(p)
    local m, n, k, r = p:axes("m", "n", "k", "r")
    local A, B, At, C = p:input("A", {r, k}), p:input("B", {n, k}), p:input("At", {m}, "i32"), p:output("C", {m, n})
    local acc, at = p:carry("acc", {m, n}, 0), p:load("load_at", At)
    local row = p:task("rows", function() return at * 2 end)
    p:loop(k, function() acc:add(p:mma("mma", p:load("load_a", A, {row, k}), p:load("load_b", B))) end)
    C:store("store_c", p:task("round", function() return acc:to "bf16" end))
  end)
  local by_need = mr.plan(chosen:bind{m = 1920, n = 1920, k = 256, r = 4000}:graph{tile = {m = 192, n = 224, k = 32}}, device)
  by_need:lane("p0", {warps = 1})
  by_need:lane("c0", {warps = 12})
  for _, t in ipairs(by_need.tasks) do
    by_need:append(t.name, {lane = (t.kind == "load" or t.name == "rows") and "p0" or "c0"})
  end
  by_need:fill_waits()
  local good, why = by_need:check()
  ok(good, "registers are shared by need where an equal share is too little", tostring(why))
  local given = {}
  for n in tostring(by_need:kernel()):gmatch "\n  registers (%d+)" do given[#given + 1] = tonumber(n) end
  ok(given[1] < 128 and given[2] > 128 and given[1] + 3 * given[2] <= 4 * 128, "  of those that there are", table.concat(given, " "))
end
plan = new_gemm()
plan:lane("c0", {warps = 16, registers = 255})
problem(plan, "registers", here(-1),
  ("the lanes need %d registers, an EU of 'h200' has %d for 640 threads"):format(248 * 512 + 24 * 128, 96 * 640), {},
  "hint")
plan = new_gemm()
plan:lane("c0", {registers = 24})
do                                                      -- a hint is what is shown, also to a script
  local _, list = plan:check()
  local hint = list[1].hint
  ok(hint:find "^plan:lane", "the hint is the statement that is shown", hint)
  ok(tostring(list):find("try: " .. hint, 1, true), "  the same", tostring(list))
  is(require "millrace.json".decode(list:json())[1].hint, hint, "  and in JSON")
  is(tostring(list[1]), tostring(list), "a problem as text")
  local seen
  for key, value in pairs(select(2, plan:check())[1]) do seen = seen or key == "hint" and value end
  is(seen, hint, "  and in pairs()")
  plan:lane("c0", {warps = 8, registers = 24})
  is(list[1].hint, hint, "  also when the plan has changed")
end

plan = new_gemm()
plan:buffers{a = 12}
problem(plan, "shared_memory", here(-1),
  ("the plan needs %d bytes of shared memory, 'h200' has 232448: %d for rings, %d to stage stores, %d for mbarriers")
    :format(15 * 128 * 64 * 2 + 128 * 128 + (12 + 3) * 2 * 8, 15 * 128 * 64 * 2, 128 * 128, (12 + 3) * 2 * 8),
  {task = "load_a"}, "hint")
-- Staging takes more than rings and stores alone let expect: the number of the problem is that of the plan.
do
  local tight = mr.plan(mr.examples.gemm{m = 4096, n = 4096, k = 4096}:graph{tile = {m = 64, n = 80, k = 48}}, device)
  for _, t in ipairs(tight.tasks) do tight:append(t.name) end
  tight:fill_waits()
  tight:buffers{a = 16, b = 16}
  local _, list = tight:check()
  is(tostring(tight.usage.shared_bytes), list[1].message:match "^the kernel needs (%d+) bytes", "  the usage of a plan whose kernel is too large")
  ok(tostring(tight):find "shared memory%s+241 KiB", "  the same in its table", tostring(tight))
end
ok(not tostring(plan):find(" 0 registers", 1, true), "the table does not say that lanes need no registers, where it is not known")

plan = new_gemm()
plan:lane("c0", {warps = 32})
problem(plan, "threads", here(-1),
  "the lanes have 1056 threads, an EU of 'h200' takes 1024", {}, "hint")

plan = new_gemm()
for d = 1, 17 do plan:wait("load_a", {{"mma", distance = d, when = "issued"}}) end
problem(plan, "barriers", here(-1),
  "the issue orders need 17 named barriers, 'h200' has 16", {}, "hint")

plan = new_gemm()
plan:remove "mma"
problem(plan, "missing_task", made_at, "sTask 'mma' is not in the plan",
  {task = "mma"}, "hint")
plan = new_attention{{"mma_qk"}, {"softmax"}, {"rescale"}, {"mma_pv"}}
do
  local full, empty = plan:copy(), mr.plan(attention_graph, device)
  for _, task in ipairs(full.tasks) do empty:append(task.name) end
  local _, missing = empty:check()
  ok(#missing > 10, "many missing waits")
  like(tostring(missing):gsub("\n *", " "), ": missing_wait: " .. #missing .. " dependences are not kept, and %d+ waits keep them: " ..
    "load_q for mma_qk; .* The first one: 'mma_qk' reads 'q', but does not wait until 'load_q' has written that " ..
    "try: plan:fill_waits%(%)$", "  are one paragraph, and one statement")
  like(tostring(empty):gsub("\n *", " "), "1 problem 1%. missing_wait: " .. #missing .. " dependences are not kept, and %d+ waits keep them: .*" ..
    " %S+ plan:fill_waits%(%) ?$", "  of the plan as text, too")
  like(empty, "\n  of one EU, at least\n  threads ", "  whose usage is what is known without a kernel")
  local alone = mr.plan(attention_graph, device)
  alone:append "load_q"
  alone:append "load_q"
  ok(not tostring(alone):find "of one EU", "  or none, if nothing is counted", tostring(alone))
  empty:fill_waits()
  like(select(2, empty:check())[1].location, "plan%.t%.lua:%d+$", "registers: a line of the plan, not of the program")
  like(tostring(select(2, empty:check())):gsub("\n *", " "), "registers: lane 'c0' needs .* try: plan:", "registers: statements that were tried")
  -- the first one is one that the list names, not one that another wait of it keeps as well
  local p = mr.plan(attention_graph, device)
  p:lane("p0", {warps = 1})
  p:lane("c0", {warps = 4})
  for _, t in ipairs(p.tasks) do p:append(t.name, {lane = (t.kind == "load" or t.kind == "store") and "p0" or "c0"}) end
  for task, on in pairs{mma_qk = {"load_q", "load_k"}, mma_pv = {"load_v"}, load_k = {"mma_qk"}, load_v = {"mma_pv"}, softmax = {"mma_qk"}} do
    p:wait(task, on)
  end
  like(tostring(select(2, p:check())):gsub("\n *", " "), "normalise for mma_pv and store_o; store_o for normalise%. The first one: 'normalise' reads 'o'",
    "the first missing wait is one of those that are listed")
  -- a move without a second version, and the version later: its waits come with it
  full:move("mma_pv", {at = -1, after = "mma_qk"})
  ok(full:check(), "a move")
  local waits = select(2, full:script():gsub("plan:wait", ""))
  full:buffers{softmax_2 = 2}
  ok(full:check(), "  and then another version: the waits that it needs come with it", select(2, full:check()))
  full:undo()
  is(select(2, full:script():gsub("plan:wait", "")), waits, "  as one edit")
end
plan = mr.plan(graph, device)
is(#select(2, plan:check()), 5, "an empty plan misses every sTask")
ok(follow(plan), "  the hints alone make a plan", select(2, plan:check()))
ok(plan:simulate().cycles > 0, "  that runs")

plan = new_gemm()
plan:append("mma", {lane = "c1"})
problem(plan, "duplicate_task", here(-1),
  "sTask 'mma' is appended 2 times", {task = "mma"}, "hint")

do
  local two = mr.plan(attention_graph, device)
  for _, t in ipairs(two.tasks) do
    two:append(t.name)
    if t.kind ~= "load" then two:append(t.name, {lane = "c1"}) end
  end
  local _, list = two:check()
  like(tostring(list):gsub("\n *", " "), "'mma_qk' is appended 2 times, and so on: 5 more are repaired alike try: plan:split%(\"m\", 2%)$",
    "appended on two lanes: a split, reported once")
  two:split("m", 2)
  two:fill_waits()
  two:buffers{k = 2}
  local _, now = two:check()
  ok(#now == 0, "  which gives each lane a slice", now)
  is(made_by(function(p) for _, t in ipairs{"mma", "epilogue"} do p:append(t) p:append(t, {lane = "c1"}) end p:split("m", 2) end),
    'plan:split("m", 2)\nplan:lane("c0", {})\nplan:lane("c1", {})\n' ..
    'plan:append("mma.0", {seu="tensor", lane="c0"})\nplan:append("epilogue.0", {seu="cuda", lane="c0"})\n' ..
    'plan:append("mma.1", {seu="tensor", lane="c1"})\nplan:append("epilogue.1", {seu="cuda", lane="c1"})\n', "  in the order of each")
end

-- Clusters: what their EUs load together, and which tiles cannot go together.
plan = new_gemm()
plan:grid{eus = 1, cluster = 2}
problem(plan, "cluster", here(-1), "a cluster of 2 takes as many EUs, the plan uses 1", {}, "hint")
local small = mr.plan(mr.examples.gemm{m = 128, n = 128, k = 64}:graph{tile = {m = 128, n = 128, k = 64}}, device)
for _, task in ipairs(small.tasks) do small:append(task.name); appended_at = here() end
small:fill_waits()
small:grid{cluster = 2}
problem(small, "cluster", here(-1), "there are no neighbouring tiles for clusters of 2", {},
  "hint")
local own = mr.plan(graph, device)
for _, task in ipairs(own.tasks) do own:append(task.name, {lane = "c0"}); appended_at = here() end
own:fill_waits()
own:grid{cluster = 2}
problem(own, "cluster", here(-1), "clusters of 2 along 'n' have nothing to share: no copy engine brings " ..
  "neighbours the same tile on a lane of which nobody reads it", {}, "hint")
plan = mr.load_plan("attention_serial", mr.examples.flash_attention{b = 1, h = 2, m = 1024, d = 128, causal = true})
plan:grid{cluster = 2}
problem(plan, "cluster", here(-1), "clusters of 2 take neighbours along 'm' together, but a loop over 'n' " ..
  "does not run over the same tiles in all of them", {}, "hint")
plan = mr.load_plan("attention_serial", mr.examples.flash_attention{b = 1, h = 2, m = 1024, d = 128})
plan:grid{cluster = 2}
ok(plan:check(), "attention whose loops all run alike may form clusters", select(2, plan:check()))
like(tostring(plan:table()), "clusters of 2%s+along 'm'", "  which the table tells")
plan = new_gemm()
plan:grid{cluster = 2}
ok(plan:simulate().cycles > 0, "clusters are simulated")
plan = mr.load_plan("attention_serial", mr.examples.flash_attention{b = 1, h = 2, m = 1024, d = 128, causal = true})
plan:grid{cluster = 2, along = "h"}
problem(plan, "cluster", here(-1), "clusters of 2 along 'h' have nothing to share: no copy engine brings " ..
  "neighbours the same tile on a lane of which nobody reads it", {}, "hint")
plan:grid{cluster = 2, along = "b"}
problem(plan, "cluster", here(-1), "there are no neighbouring tiles along 'b' for clusters of 2", {}, "hint")
plan:grid{cluster = 2, along = "d"}
problem(plan, "cluster", here(-1), "there are no neighbouring tiles along 'd' for clusters of 2", {}, "hint")
plan = mr.load_plan("attention_serial", mr.examples.flash_attention{b = 1, h = 4, hkv = 2, m = 1024, d = 128, causal = true})
plan:grid{cluster = 2, along = "h"}
ok(plan:check(), "causal attention of grouped queries may form clusters of heads", select(2, plan:check()))
like(tostring(plan:table()), "clusters of 2%s+along 'h'", "  which the table tells")
plan:grid{cluster = 4, along = "h"}
problem(plan, "cluster", here(-1), "clusters of 4 along 'h' have nothing to share: no copy engine brings " ..
  "neighbours the same tile on a lane of which nobody reads it", {}, "hint")

local all = {}
for code in pairs(codes) do all[#all + 1] = code end
table.sort(all)
is(table.concat(all, " "), "barriers cluster deadlock duplicate_task misplaced_wait missing_task " ..
  "missing_wait offset registers shared_memory threads versions wrong_seu", "every code is met")

plan = new_gemm()
plan:unwait("mma", "load_b")
plan:append "mma"
_, problems = plan:check()
is(tostring(problems):gsub("\n%s*", " "), problems[1].location .. ": duplicate_task: sTask 'mma' " ..
  'is appended 2 times try: plan:remove("mma"); plan:append("mma", {seu="tensor", lane="c0"})', "problems as text")
good, message = pcall(plan.simulate, plan)
like(message, "simulate: the plan is not legal %(1 problem; plan:check%(%) lists them%): " ..
  "duplicate_task: sTask 'mma' is appended 2 times; try plan:remove", "  and in an error")
plan = new_gemm()
plan:unwait("mma", "load_b")
plan:unwait("load_a", "mma")
good, message = pcall(plan.simulate, plan)
like(message, "simulate: the plan is not legal %(1 problem; plan:check%(%) lists them%): missing_wait: %d+ dependences are not kept, .*" ..
  "; try plan:fill_waits%(%)$", "  in an error as check() shows them")

-- Simulation and tables -----------------------------------------------------------------

plan = new_gemm()
local tl = plan:simulate()
local cycles, events = tl.cycles, #tl.events
is(math.type(cycles), "integer", "simulate: cycles")
is(tl.seconds > cycles / device.clock_hz, true, "  seconds, with the launch")
is(tl.cache, "cold L2", "  and what is in L2")
is(tl.measured, false, "  measured")
is(#tl.phases, 1, "  phases")
is(tl.phases[1].tiles .. " " .. tl.phases[1].eus .. " " .. tl.phases[1].name, "16 16 main",
  "  of one")
is(tl.phases[1].cycles, cycles, "  that takes all the time")
is(events, 8 * 3 + 2, "  events of an EU")
local order, first = true, tl.events[1]
for i = 2, events do order = order and tl.events[i - 1].issue <= tl.events[i].issue end
ok(order, "  in order of issue")
is(("%s %s %s %d %d"):format(first.task, first.lane, first.seu, first.iteration, first.tile),
  "load_a p0 tma 0 0", "  which tell what, where and when")
ok(first.ready <= first.issue and first.issue <= first.start and first.start < first["end"],
  "  and when")
is(#plan:simulate{events = 3}.events, 3, "events: so many are kept")
is(#plan:simulate{events = 0}.events, 0, "  or none")
plan:buffers{a = 1, b = 1}
ok(plan:simulate().cycles > cycles, "shorter rings take longer")
plan:remove "mma"
is(tl.cycles .. " " .. #tl.events, cycles .. " " .. events, "a timeline is of the plan as it was")
like(tostring(tl), "^gemm on h200, simulated", "  as text")
plan = nil
collectgarbage()
collectgarbage()
like(tl:summary(), "tensor", "  without the plan")

plan = new_gemm()
names = {}
for i, t in ipairs(plan.tasks) do names[i] = t.name .. " " .. t.kind end
is(table.concat(names, ", "), "load_a load, load_b load, mma mma, epilogue compute, store_c store",
  "plan.tasks")
local task = plan.tasks[3]
is(("%s %s %d %d %d %s %s %s"):format(task.phase, task.loop, task.m, task.n, task.k, task.dtype,
  table.concat(task.reads, "+"), table.concat(task.writes, "+")), "main k 128 128 64 bf16 a+b+c c",
  "  each with its numbers")
is(task.flops, 2 * 128 * 128 * 64.0, "  and flops")
local edges = {}
for _, e in ipairs(plan.edges) do
  edges[#edges + 1] = ("%s>%s %s %d"):format(e.from, e.to, e.kind, e.distance)
end
like(table.concat(edges, ", "), "load_a>mma flow 0", "plan.edges")
is(#plan.edges, #graph.edges, "  are the graph's")
is(plan.graph, graph, "plan.graph")
local retiled = plan:copy()
retiled:propagate{n = 64}
is(("%d %d %s"):format(retiled.graph.tile.n, retiled.graph.tile.m, retiled.graph == retiled.graph), "64 128 true",
  "  has the tile of the plan")
like(retiled:script(), 'bound:graph{tile={k=64, m=128, n=64}}', "  as its script begins")
is(mr.plan(retiled.graph, device).tile.n, 64, "  and plans can be made of it")
retiled:undo()
is(retiled.graph, graph, "  and is the one given where that has it")
is(plan.device, device, "plan.device")
is(plan.tile.m .. plan.tile.n .. plan.tile.k, "12812864", "plan.tile")
local tasks = plan.tasks
tasks[1].name = "other"
is(plan.tasks[1].name, "load_a", "tables are copies")

local function widest(text)
  local most = 0
  for l in text:gmatch "[^\n]+" do most = math.max(most, utf8.len(l)) end
  return most
end
for _, width in ipairs{40, 60, 80, 120} do
  local text = plan:table{width = width, ascii = true}
  ok(widest(text) <= width and not text:find "[\128-\255]", "table of width " .. width, text)
end
like(plan:table{color = true}, "\27%[", "  with colour if color=true")
for _, name in ipairs{"lane p0", "lane c0", "load_a", "epilogue", "tensor", "shared"} do
  ok(tostring(plan):find(name, 1, true), "tostring tells of " .. name)
end

-- Text ----------------------------------------------------------------------------------

local path = os.tmpname()
local function written(text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  return path
end

-- The plan's text builds a plan with the same text, as legal and as fast.
local function round_trip(p, what, bound)
  local script = p:script()
  local again, why = mr.load_plan(written(script), table.unpack{bound})
  is(again:script(), script, what .. ": the same text again", why)
  local sound, list = p:check()
  local also, others = again:check()
  is(also, sound, "  as legal")
  is(#others, #list, "  with as many problems")
  if sound then is(again:simulate().cycles, p:simulate().cycles, "  and as fast") end
end

local files = {}
for _, name in ipairs(require "millrace.core".list(mr.home .. "/examples", ".lua")) do
  local file = assert(io.open(mr.home .. "/examples/" .. name .. ".lua"))
  if file:read "a":find "\nreturn plan%s*$" then files[#files + 1] = name end
  file:close()
end
table.sort(files)
ok(#files >= 4, "plans in examples/", #files)
for _, name in ipairs(files) do round_trip(mr.load_plan(name), name) end

for _, case in ipairs{
  {"gemm", {m = 512, n = 768, k = 512, bias = true, activation = "gelu"}},
  {"matmul_sum", {m = 256, n = 256, k = 256}},
  {"flash_attention", {b = 1, h = 2, hkv = 1, m = 512, d = 64, causal = true, scale = 0.1}},
  {"flash_decoding", {b = 2, h = 8, hkv = 2, n = 1024, d = 64, splits = 8}},
  {"chunk_state", {b = 1, s = 512, h = 2, p = 64, n = 64}},
  {"chunk_scan", {b = 1, s = 512, h = 2, p = 64, n = 64, z = true}},
  {"dequant_gemm", {m = 128, n = 256, k = 512, wtype = "e2m1"}},
  {"conv2d", {n = 2, c = 64, h = 14, w = 14, k = 64, r = 3, s = 3, pad = 1}},
} do
  local bound = mr.examples[case[1]](case[2])
  local r, why = mr.search(bound, device, {trials = 5, seconds = 600})
  if ok(r, case[1] .. ": a search finds a plan", why) then
    ok(r.plan:check(), "  that is legal", select(2, r.plan:check()))
    is(r.trials, 5, "  after the given number of trials")
    is(r.timeline.cycles, r.plan:simulate().cycles, "  with its timeline")
    round_trip(r.plan, "  its text")
    local second = mr.search(bound, device, {trials = 5, seconds = 600})
    is(second.plan:script(), r.plan:script(), "  and the same plan the next time")
  end
end

-- Every statement at once; other splits, a plan that is not legal, one that is empty.
plan = mr.plan(graph, device)
for _, edit in ipairs(edits) do plan[edit[1]](plan, table.unpack(edit, 2)) end
round_trip(plan, "every kind of edit")
round_trip(mr.plan(graph, device), "an empty plan")
plan = mr.plan(gemm:graph{}, device)
plan:append("load_a", {at = -16})
round_trip(plan, "without a tile shape")

-- A program of one's own: its text wants the program. Names that are words of Lua.
local own = mr.program("own", function(p)
  local rows, inner = p:axes("in", "end")
  local X, Y = p:input("local", {rows, inner}), p:output("return", {rows})
  local s = p:carry("while", {rows}, 0)
  p:loop(inner, function() s:add(p:load("load_for", X):rowsum(inner)) end)
  Y:store("store", p:task("repeat", function() return s * 2 end))
end):bind{["in"] = 64, ["end"] = 256, dtype = "f32"}
plan = mr.plan(own:graph{tile = {["in"] = 8, ["end"] = 64}}, device)
for _, t in ipairs(plan.tasks) do plan:append(t.name) end
plan:buffers{["for"] = 2, ["repeat"] = 2}
plan:fill_waits()
round_trip(plan, "names that are words of Lua", own)
like(plan:script(), 'tile={%["end"%]=64, %["in"%]=8}', "  stand in brackets")
good, message = pcall(mr.load_plan, written(plan:script()))
like(message, ":3: this plan is for program 'own': mr%.load_plan%(path, program%)$",
  "a plan of one's own program wants the program")
local same_name = mr.program("gemm", function(p)
  local n = p:axes "n"
  p:output("Y", {n}):store(n:index())
end):bind{n = 64}
like(mr.plan(same_name:graph{}, device):script(), 'local bound = mr%.bound%(%.%.%., "gemm", {n=64}%)\n',
  "  so does one that is named like a shipped one")

-- Options come back exactly; what has no text does not.
local odd = mr.examples.flash_attention{b = 1, h = 1, m = 64, d = 16, scale = 0.1, causal = false,
  window = 2.0, dtype = "f16"}
round_trip(mr.plan(odd:graph{tile = {m = 64, n = 64}}, device), "options of every type")
local mine = mr.program("mine", function(p)
  local n = p:axes "n"
  p:output("Y", {n}):store(n:index() + (p.offsets and p.offsets[1] or 0))
end)
rawset(mr.examples, "mine", mine)
local open = mine{n = 64, offsets = {5}}
plan = mr.plan(open:graph{}, device)
like(plan:script(), 'mr%.bound%(%.%.%., "mine"%)\n', "an option that has no text: the program with sizes is wanted")
round_trip(plan, "  and then it is the same", open)
rawset(mr.examples, "mine", nil)

-- The same plan for other sizes.
plan = mr.load_plan("gemm_cooperative", mr.examples.gemm{m = 512, n = 512, k = 256})
is(plan.graph.program.axes.k, 256, "load_plan with another program")
ok(plan:check(), "  is legal", select(2, plan:check()))
round_trip(plan, "  and so is its text")

-- A device of one's own.
local file = assert(io.open(mr.home .. "/hw/h200.lua"))
local hw = file:read "a":gsub("eus = 132,", "eus = 66,")
file:close()
local hw_path = os.tmpname()
os.remove(hw_path)
hw_path = hw_path .. ".lua"
file = assert(io.open(hw_path, "w"))
file:write(hw)
file:close()
plan = mr.plan(graph, mr.device(hw_path))
for _, t in ipairs(plan.tasks) do plan:append(t.name) end
plan:fill_waits()
round_trip(plan, "a device that was read from a path")
is(mr.load_plan(written(plan:script())).device.eus, 66, "  is read from there again")
os.remove(hw_path)

-- What is no plan.
for _, case in ipairs{
  {"return 1", "load_plan: .* returns 1, not a plan"},
  {"", "load_plan: .* returns nil, not a plan"},
  {"return", "load_plan: .* returns nil, not a plan"},
  {"x =", "load_plan: .*unexpected symbol near <eof>"},
  {"error 'x'", "attempt to call a nil value %(global 'error'%)"},
  {"io.open('x')", "attempt to index a nil value %(global 'io'%)"},
  {"require 'os'", "a plan may only require \"millrace\", not 'os'"},
  {"require(nil)", "a plan may only require \"millrace\", not nil"},
  {"\27Lua", "load_plan: .*attempt to load a binary chunk"},
  {"return require 'millrace'", "load_plan: .* returns table, not a plan"},
  {"assert(false)", "assertion failed!"},
} do
  good, message = pcall(function() return mr.load_plan(written(case[1])) end)
  ok(not good, "load_plan refuses " .. case[1]:gsub("%c", "?"))
  like(message, case[2], "  and says why")
end
os.remove(path)

-- Refusals ------------------------------------------------------------------------------

local start <const> = [[
local mr = require "millrace"
local bound = mr.examples.gemm{m = 512, n = 512, k = 512}
local graph = bound:graph{tile = {m = 128, n = 128, k = 64}}
local plan = mr.plan(graph, mr.device "h200")
]]
local function bad(code, said) refuses(start .. code, "user.lua:5: " .. said, code) end

bad("mr.plan()", "plan: graph expected, got nil")
bad("mr.plan(bound)", "plan: graph expected, got millrace.program; prog:graph{tile={...}} makes one of it")
is(mr.plan(graph, "h100").device.name, "h100", "a plan takes the name of a device")
bad("mr.plan(graph, 7)", "plan: device expected, got 7")
bad("mr.plan(graph):append(mr.plan(graph).tasks)", "append: sTasks are given by their names, the first here 'load_a': task.name of each")
bad("mr.plan(graph):append('nothing')", "there is no sTask 'nothing'; there are load_a, load_b, mma, epilogue, store_c")
bad("plan:append()", "append: sTask must be a string, got nothing")
bad("plan:append('mna')", "there is no sTask 'mna'; did you mean 'mma'?")
bad("plan:append('mma', 1)", "append: table of options expected, got 1")
bad("plan:lane('c0', {num_warps = 4})", "lane: unknown option 'num_warps'; did you mean 'warps'?")
bad("plan:move('mma', {offset = 1})", "move: unknown option 'offset'; did you mean 'at'?")
bad("plan:wait('lo', {'mma'})", "there is no sTask 'lo'; did you mean 'load_a'?")
bad("plan:append('mma', {lnae = 'c0'})", "append: unknown option 'lnae'; did you mean 'lane'?")
bad("plan:append('mma', {'c0'})", "append: options are given by name: append{eu=...}")
bad("plan:append('mma', {seu = 'tensr'})", "'h200' has no sEU 'tensr'; did you mean 'tensor'?")
bad("plan:append('mma', {seu = 1})", "append: seu must be a string, got 1")
bad("plan:append('mma', {lane = 'c 0'})", "'c 0' is no name for a lane: use letters, digits and _")
bad("plan:append('mma', {lane = ''})", "'' is no name for a lane: use letters, digits and _")
bad("plan:append('mma', {at = 17})", "append: at must be an integer from -16 to 16, got 17")
bad("plan:append('mma', {at = 1e9})",
  "append: at must be an integer from -16 to 16, got 1000000000")
bad("plan:append('mma', {at = 0.5})", "append: at must be an integer from -16 to 16, got 0.5")
bad("plan:append('mma', {eu = 132})", "append: eu must be an integer from 0 to 131, got 132")
bad("for i = 0, 16 do plan:append('mma', {lane = 'c' .. i}) end", "a plan has at most 16 lanes")
bad("plan:remove('mma')", "'mma' is not in the plan")
bad("plan:remove('mna')", "there is no sTask 'mna'; did you mean 'mma'?")
bad("plan:move('mma', {at = 1})", "'mma' is not in the plan")
bad("plan:move('mna', {at = 1})", "there is no sTask 'mna'; did you mean 'mma'?")
bad("plan:move()", "move: sTask must be a string, got nothing")
bad("plan:append('mma'); plan:move('mma')",
  "'mma': nothing to change: give at=, before=, after=, lane=, seu= or by_rows=")
bad("plan:move('mma', 1)", "move: table of options expected, got 1")
bad("plan:move('mma', {lnae = 'c1'})", "move: unknown option 'lnae'; did you mean 'lane'?")
bad("plan:move('mma', {befor = 'load_a'})", "move: unknown option 'befor'; did you mean 'before'?")
bad("plan:move('mma', {1})", "move: options are given by name: move{at=...}")
bad("plan:move('mma', {at = 17})", "move: at must be an integer from -16 to 16, got 17")
bad("plan:move('mma', {repair_waits = 1})", "move: repair_waits must be true or false, got 1")
bad("plan:move('mma', {before = 1})", "move: before must be a string, got 1")
bad("plan:append('mma'); plan:move('mma', {before = 'load_a', after = 'load_b'})",
  "'mma': before= or after=, not both")
bad("plan:append('mma'); plan:move('mma', {before = 'mma'})", "'mma' cannot come before itself")
bad("plan:append('mma'); plan:move('mma', {after = 'laod_a'})",
  "there is no sTask 'laod_a'; did you mean 'load_a'?")
bad("plan:append('mma'); plan:move('mma', {after = 'load_a'})", "'load_a' is not in the plan")
bad("plan:append('mma'); plan:append('load_a'); plan:move('mma', {after = 'load_a'})",
  "'load_a' is on lane 'p0', and 'mma' is to be on 'c0': before= and after= name an sTask of the same " ..
  'lane; or give lane="p0", too')
bad("plan:append('mma'); plan:append('epilogue'); plan:move('mma', {before = 'epilogue'})",
  "'mma' and 'epilogue' are not in the same loop: before= and after= name an sTask that runs as often")
bad("plan:append('mma'); plan:append('mma'); plan:move('mma', {at = 1})",
  "'mma' is appended 2 times: remove it, and append it once")
bad("plan:append('mma'); plan:move('mma', {lane = 'c 0'})",
  "'c 0' is no name for a lane: use letters, digits and _")
bad("plan:append('mma'); plan:move('mma', {seu = 'tensr'})",
  "'h200' has no sEU 'tensr'; did you mean 'tensor'?")
bad("plan:split('m', 2); plan:move('maa', {at = 1})", "there is no sTask 'maa'; did you mean 'mma'?")
bad("plan:split('m', 2); plan:append('mma.0'); plan:append('load_a'); plan:move('load_a', {after = 'mma'})",
  "'mma.1' is not in the plan")
bad("plan:split('m', 2); plan:append('mma.0'); plan:move('mma', {at = 1})", "'mma.1' is not in the plan")
bad("plan:append('mma'); plan:insert('mma')", "'mma' is in the plan already: plan:move changes it")
bad("plan:insert('mna')", "there is no sTask 'mna'; did you mean 'mma'?")
bad("plan:insert('mma', {befor = 'load_a'})", "insert: unknown option 'befor'; did you mean 'before'?")
bad("plan:insert('mma', {before = 'load_a'})", "'load_a' is not in the plan")
bad("plan.move('mma')", "move: plan expected, got 'mma'; it is called with a colon, as in plan:move(...)")
bad("plan.insert('mma')", "insert: plan expected, got 'mma'; it is called with a colon, as in plan:insert(...)")
bad("plan.copy()", "copy: plan expected, got nothing; it is called with a colon, as in plan:copy()")
bad("plan:diff()", "diff: plan expected, got nil")
bad("plan:diff(graph)", "diff: plan expected, got millrace.graph")
bad("plan.diff(1, plan)", "diff: plan expected, got 1; it is called with a colon, as in plan:diff(...)")
bad("plan:try()", "try: function expected, got nil")
bad("plan:try(print, 1)", "try: table of options expected, got 1")
bad("plan:try(print, {kep = true})", "try: unknown option 'kep'; did you mean 'keep'?")
bad("plan:try(print, {keep = 1})", "try: keep must be true or false, got 1")
bad("plan.try(print, print)", "try: plan expected, got function; it is called with a colon, as in plan:try(...)")
bad("plan:lane('c0', {warps = 33})", "lane: warps must be an integer from 1 to 32, got 33")
bad("plan:lane('c0', {warps = 0})", "lane: warps must be an integer from 1 to 32, got 0")
bad("plan:lane('c0', {registers = 256})", "lane 'c0': a thread has at most 255 registers, not 256")
bad("plan:lane('c0', {replicas = 9})", "lane 'c0': 1 to 8 replicas, not 9")
bad("plan:lane('')", "'' is no name for a lane: use letters, digits and _")
bad("plan:lane(('x'):rep(64))",
  "'" .. ("x"):rep(60) .. "' is no name for a lane: use letters, digits and _")
bad("plan:wait('mma')", "wait: list of sTasks expected, got nil")
bad("plan:wait('mma', {'load_c'})", "there is no sTask 'load_c'; did you mean 'load_a'?")
bad("plan:wait('nma', {'load_a'})", "there is no sTask 'nma'; did you mean 'mma'?")
bad("plan:wait('mma', {1})", "wait: each element names an sTask, or is a table as in " ..
  '{"mma_qk", distance=1, when="issued"}')
bad("plan:wait('mma', {'load_a', distance = 1})", "wait: distance= and when= stand in a table " ..
  'of their own, as in {{"mma_qk", distance=1}}')
bad("plan:wait('mma', {{'load_a', distanc = 1}})", "wait: a table in the list has an sTask, " ..
  "distance= and when=, and nothing else")
bad("plan:wait('mma', {{'load_a', distance = 65}})",
  "wait: distance must be an integer from 0 to 64, got 65")
bad("plan:wait('mma', {{'load_a', distance = -1}})",
  "wait: distance must be an integer from 0 to 64, got -1")
bad("plan:wait('mma', {{'load_a', when = 'start'}})", "wait: unknown when 'start' (known: complete, issued)")
bad("plan:unwait('mma', 'load_a')", "'mma' does not wait for 'load_a'")
bad("plan:unwait('mma')", "unwait: sTask must be a string, got nothing")
bad("plan:buffers()", "buffers: table of versions by buffer expected, got nil")
bad("plan:buffers{4}", "buffers: versions are given by name, as in {k=3}")
bad("plan:buffers{load_a = 2}", "there is no buffer 'load_a'")
bad("plan:buffers{a = 0}", "buffers: a must be an integer from 1 to 64, got 0")
bad("plan:buffers{a = 1e9}", "buffers: a must be an integer from 1 to 64, got 1000000000")
bad("plan:grid{rastr = 'rows'}", "grid: unknown option 'rastr'; did you mean 'raster'?")
bad("plan:grid{raster = 'row'}", "grid: unknown raster 'row'; did you mean 'rows'?")
bad("plan:grid{eus = 133}", "grid: eus must be an integer from 1 to 132, got 133")
bad("plan:grid{group = 0}", "grid: group must be an integer from 1 to 65536, got 0")
bad("plan:grid{cluster = 9}", "a cluster on 'h200' is 1 to 8 EUs, not 9")
bad("plan:grid{cluster = 2, along = 'M'}", "grid: unknown along 'M'; did you mean 'm'?")
bad("plan:grid{along = 'm'}", "along is for clusters and for keep, whose tiles are neighbours there")
bad("plan:grid{longest_first = 1}", "grid: longest_first must be true or false, got 1")
bad("plan:grid{section = 5}", "a section is for longest_first, which orders its tiles")
bad("plan:grid{longest_first = false, section = 5}", "a section is for longest_first, which orders its tiles")
bad("plan:grid{longest_first = true, section = -1}", "grid: section must be an integer from 0 to 1048576, got -1")
bad("plan:grid{dynamic = 1}", "grid: dynamic must be true or false, got 1")
bad("plan:grid{dynamic = true, cluster = 2}", "EUs of a cluster take neighbouring tiles together: with dynamic, cluster is 1, not 2")
bad("plan:split('m')", "split: ways must be an integer from 1 to 2147483647, got nothing")
bad("plan:split('m', 17)", "a split has 1 to 16 ways, not 17")
bad("plan:split('m', 3)", "'mma' cannot be split 3 ways along 'm': its tile has 128 there")
bad("plan:split('k', 2)",
  "nothing but loads of 'gemm' has axis 'k' in its result: there is nothing to split")
bad("plan:split('q', 2)", "program 'gemm' has no axis 'q'")
bad("plan:split('m', 2, 'mma')", "split: list of tasks expected, got 'mma'")
bad("plan:split('m', 2, {'nma'})", "program 'gemm' has no task 'nma'")
bad("plan:split('m', 2, {'mma'})",
  "'epilogue' uses 'c', which other sTasks use in 2 slices: split all that use it alike")
bad("plan:split('m', 2); plan:split('n', 2)", "'mma' is split already")
bad("plan:move({}, {at = 1})", "move: the list names no sTask")
bad("plan:move({'mma', 1}, {at = 1})", "move: sTask must be a string, got 1")
bad("plan:propagate()", "propagate: table of tile extents expected, got nothing")
bad("plan:propagate{q = 1}", "propagate: unknown axis 'q' (known: m, n, k)")
bad("plan:propagate{m = 0}",
  "propagate: tile extent of axis 'm' must be an integer of at least 1, got 0")
bad("plan:split('m', 2); plan:propagate{m = 33}",
  "'mma' cannot be split 2 ways along 'm': its tile has 33 there")
bad("plan:simulate{event = 1}", "simulate: unknown option 'event'; did you mean 'events'?")
bad("plan:simulate{from = 1}", "simulate: unknown option 'from' (known: events); for a window of the timeline use tl:print{from=, to=}")
bad("plan:simulate()", "simulate: the plan is not legal (5 problems; plan:check() lists them): " ..
  "missing_task: sTask 'load_a' is not in the plan; " ..
  'try plan:append("load_a", {seu="tma", lane="p0"})')
bad("plan:table{width = 10}", "table: width must be an integer from 20 to 1000, got 10")
bad("mr.load_plan()", "load_plan: path expected, got nil")
bad("mr.load_plan('/nowhere/x.lua')",
  "load_plan: cannot open /nowhere/x.lua: No such file or directory")
bad("mr.load_plan('/nowhere/x.lua', 5)", "load_plan: program expected, got 5")
bad("plan.append('mma')", "append: plan expected, got 'mma'; it is called with a colon, as in plan:append(...)")
bad("plan.check(graph)", "check: plan expected, got millrace.graph")
bad("plan.script()", "script: plan expected, got nothing; it is called with a colon, as in plan:script()")

local split = mr.examples.flash_decoding{b = 1, h = 2, n = 64, d = 16, splits = 8}
good, message = pcall(function()
  mr.plan(split:graph{}, device):wait("load_mx", {"store_mx"})
end)
like(message, "'load_mx' and 'store_mx' are in different phases, which run one after the other: " ..
  "there is nothing to wait for", "waits from phase to phase")

-- Plans, their parts and timelines are collected.
local live = setmetatable({}, {__mode = "k"})
for _ = 1, 50 do
  local p = new_gemm()
  p:split("m", 1)
  live[p], live[p:simulate()], live[p.tasks] = true, true, true
end
collectgarbage()
collectgarbage()
is(next(live), nil, "plans and timelines are collected")

---- what looks like a call or an assignment, and is none ---------------------------------------

do
  local with = 'local plan = require "millrace".load_plan "attention_overlap" '
  local function says(code, want) tap.refuses(with .. code, "user.lua:1: " .. want, code) end
  says("plan.foo = 3", "plan: 'foo' cannot be set, its fields are read only; methods change a plan: help \"Plans\"")
  says("plan.graph.foo = 3", "graph: 'foo' cannot be set, its fields are read only")
  says("plan.buffers{k = 2}", "buffers: plan expected, got table; it is called with a colon, as in plan:buffers{...}")
  says("plan.suggest{}", "suggest: plan expected, got table; it is called with a colon, as in plan:suggest{...}")
  says('plan.append("softmax", {})', "append: plan expected, got 'softmax'; it is called with a colon, as in plan:append(...)")
  says('require "millrace".load_plan(plan:script())', "load_plan: path expected, got the text of a script: load(text)() makes its "
    .. "plan; plan:save(path) writes a file for mr.load_plan")
end

tap.done_testing()
