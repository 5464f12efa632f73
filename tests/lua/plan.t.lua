-- Plans: every edit and what it changes, undo and redo, the problems of check() and the repairs
-- that they name, text that builds the same plan again, tables, and every refusal.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like, near, refuses = tap.ok, tap.is, tap.like, tap.near, tap.refuses

local device = mr.device "h200"
local gemm = mr.examples.gemm{m = 512, n = 512, k = 512}
local graph = gemm:graph{tile = {m = 128, n = 128, k = 64}}
local attention = mr.examples.flash_attention{b = 1, h = 4, m = 1024, d = 128}
local attention_graph = attention:graph{tile = {m = 128, n = 128}}

local function line() return debug.getinfo(2, "l").currentline end

-- The statements of a plan, without what makes the program, the graph and the plan.
local function statements(plan)
  return plan:script():match "\nlocal plan = [^\n]*\n(.*)return plan\n$"
end

-- A legal plan of a GEMM, one lane for loads and one for the rest.
local function new_gemm()
  local plan = mr.plan(graph, device)
  plan:buffers{a = 3, b = 3}
  for _, task in ipairs{"load_a", "load_b", "mma", "epilogue", "store_c"} do plan:append(task) end
  plan:wait("mma", {"load_a", "load_b"})
  plan:wait("load_a", {"mma"})
  plan:wait("load_b", {"mma"})
  plan:wait("epilogue", {"mma", "store_c"})
  return plan
end

-- A legal plan of attention in program order, but for what `change` spoils.
local function new_attention(order, versions)
  local plan = mr.plan(attention_graph, device)
  plan:lane("c0", {warps = 8, registers = 240})
  plan:buffers(versions or {k = 2, v = 2})
  for _, task in ipairs{"load_q", "load_k", "load_v"} do plan:append(task) end
  for _, e in ipairs(order or {{"mma_qk"}, {"softmax"}, {"rescale"}, {"mma_pv"}}) do
    plan:append(e[1], {at = e[2]})
  end
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
]], "  and the rest to a consumer, each on the unit for such work")
plan:append("load_b", {eu = 0, seu = "tma", lane = "c0", at = -2})
plan:append("mma", {lane = "c1", at = 16.0})
like(statements(plan), 'load_b", {seu="tma", lane="c0", at=-2}%)\nplan:append%("mma", {seu="tensor"' ..
  ', lane="c1", at=16}', "  or as told")
plan:remove "mma"
ok(not statements(plan):find "mma", "remove takes all entries of an sTask")
like(statements(plan), 'plan:lane%("c1"', "  and leaves the lanes")

plan = mr.plan(graph, device)
plan:lane "c0"
plan:lane("p0", {warps = 1})
plan:lane("c0", {warps = 8, registers = 240, turns = 2})
is(statements(plan), [[
plan:lane("c0", {warps=8, registers=240, turns=2})
plan:lane("p0", {warps=1})
]], "lane declares a lane, or changes it")
plan:lane "c0"
is(statements(plan), 'plan:lane("c0", {})\nplan:lane("p0", {warps=1})\n', "  back to nothing given")

plan = mr.plan(graph, device)
plan:wait("mma", {"load_a", "load_b"})
plan:wait("mma", "load_a")
plan:wait("epilogue", {{"mma", distance = 0}, {"store_c", distance = 64, when = "issued"}})
plan:wait("load_a", {{"mma", when = "complete"}, {"mma", when = "issued"}})
plan:wait("store_c", {})
is(statements(plan), [[
plan:wait("mma", {"load_a", "load_b"})
plan:wait("epilogue", {{"mma", distance=0}, {"store_c", distance=64, when="issued"}})
plan:wait("load_a", {"mma", {"mma", when="issued"}})
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
is(statements(plan), "plan:buffers{b=3}\n", "  one version is not told")
plan:buffers{}
is(statements(plan), "plan:buffers{b=3}\n", "  of nothing")

plan = mr.plan(graph, device)
plan:grid{raster = "columns", group = 4}
plan:grid{eus = 100, longest_first = true}
plan:grid{cluster = 2}
is(statements(plan), 'plan:grid{raster="columns", group=4, eus=100, longest_first=true, cluster=2}\n',
  "grid: each call changes what it names")
plan:grid{raster = "rows", group = 1, longest_first = false, cluster = 1}
is(statements(plan), 'plan:grid{raster="rows", group=1, eus=100}\n', "  and back")
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
is(statements(plan), 'plan:split("m", 4, {"mma_qk", "softmax", "rescale", "mma_pv", "normalise", ' ..
  '"store_o"})\n', "  or what is named")
is(plan.rings["softmax_2.3"], 1, "  and its buffers")

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
  {"split", "n", 2, {"load_b"}}, {"grid", {raster = "columns"}},
}
local scripts = {plan:script()}
local good, message
for i, edit in ipairs(edits) do
  good, message = pcall(plan[edit[1]], plan, table.unpack(edit, 2))
  scripts[i + 1] = plan:script()
  if not good then break end
end
like(message, "after this, line %d+ would fail: 'load_b' is split: name a part, as in 'load_b%.0'",
  "an edit that the ones before do not allow")
is(scripts[#scripts], scripts[#scripts - 1], "  changes nothing")
for i = #scripts, #edits do
  local edit = edits[i]
  if i > #scripts - 1 and edit[1] ~= "split" then plan[edit[1]](plan, table.unpack(edit, 2)) end
end
table.remove(scripts)
scripts[#scripts + 1] = plan:script()
local n = #scripts
local undone, redone = true, true
for i = n - 1, 1, -1 do undone = plan:undo() and plan:script() == scripts[i] and undone end
ok(undone and n == #edits, "every edit is undone, to the letter")
is(plan:undo(), false, "  as far as the beginning")
for i = 2, n do redone = plan:redo() and plan:script() == scripts[i] and redone end
ok(redone and not plan:redo(), "and made again")
plan:undo()
plan:undo()
plan:buffers{a = 5}
is(plan:redo(), false, "a new edit forgets what was undone")
plan:undo()
is(plan:script(), scripts[n - 2], "  and is undone itself")
good = pcall(plan.append, plan, "nothing")
ok(plan:redo() and plan.rings.a == 5, "an edit that fails forgets nothing")
for _ = 1, 100 do
  plan:undo()
  plan:redo()
end
is(plan.rings.a, 5, "to and fro")

plan = mr.plan(attention_graph, device)
for _, t in ipairs(plan.tasks) do plan:append(t.name) end
local before = plan:script()
local added = plan:fill_waits()
ok(added > 5 and plan:script() ~= before, "fill_waits says how many it added")
ok(plan:undo() and plan:script() == before, "  and is one edit")
is(plan:redo() and plan:fill_waits(), 0, "  the second time there are none")

-- A plan that is legal ------------------------------------------------------------------

plan = new_gemm()
local legal, problems = plan:check()
is(legal, true, "check: a legal plan")
is(#problems, 0, "  has no problems")
is(tostring(problems), "no problems", "  as text")
local usage = plan.usage
is(usage.threads, 5 * 32, "usage: a producer warp and a warpgroup")
is(usage.shared_bytes, 3 * 2 * 128 * 64 * 2 + 128 * 128 + 4 * 3 * 8,
  "  rings, a panel for the store, a flag for each version of what crosses lanes")
ok(usage.lanes.c0 >= 128 + 24 and usage.lanes.c0 <= 255 and usage.lanes.p0 == 24,
  "  registers of each lane", usage.lanes.c0, usage.lanes.p0)
is(usage.registers, (usage.lanes.c0 + usage.lanes.p0) * 128, "  and of the EU, by warpgroups")
plan:lane("c0", {warps = 4, registers = 200})
is(plan.usage.lanes.c0, 200, "  or as told")

-- Problems ------------------------------------------------------------------------------

-- The first problem of that code. `at`: the line of this file that its place names, or a place;
-- `said`: what the message says. With `follow`, the statements of its hint are run, those of
-- the hints for what they bring about, too, until the plan has none of the code.
local seen = {}
local function problem(p, code, at, said, fields, follow)
  local sound, list = p:check()
  local found
  for _, x in ipairs(list) do found = found or x.code == code and x end
  seen[code] = true
  if not ok(not sound and found, code, list) then return end
  like(found.message, said, "  the message")
  is(found.place, type(at) == "number" and "tests/lua/plan.t.lua:" .. at or at, "  the place")
  for key, want in pairs(fields or {}) do is(found[key], want, "  " .. key) end
  local named = true
  for _, name in ipairs{found.task or false, found.other or false} do
    if name then named = named and found.message:find("'" .. name .. "'", 1, true) end
  end
  ok(named or code == "shared_memory", "  names the sTasks", found.message)
  ok(#found.hint > 10 and tostring(list):find("try: ", 1, true), "  has a hint", found.hint)
  if not follow then return end
  for _ = 1, 20 do
    for statement in found.hint:gmatch "plan:%a+%b()" do
      assert(load("local plan = ... " .. statement))(p)
    end
    for statement in found.hint:gmatch "plan:%a+%b{}" do
      assert(load("local plan = ... " .. statement))(p)
    end
    sound, list = p:check()
    found = nil
    for _, x in ipairs(list) do found = found or x.hint:find "^plan:%a+[%({]" and x end
    if not found then break end
  end
  ok(sound, "  and the hint followed makes it legal", list)
end

plan = new_gemm()
plan:unwait("mma", "load_b")
problem(plan, "missing_wait", line() - 87, "", nil)
