-- Editing: plan:move and plan:insert with all that hangs on them, copies, differences, tries, and the
-- plan of a search, which nobody changes.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like = tap.ok, tap.is, tap.like

local device = mr.device "h200"

local function statements(plan)
  return plan:script():match "\nlocal plan = [^\n]*\n(.*)return plan\n$"
end

local function undone_to(plan, script)
  while plan:script() ~= script and plan:undo() do end
  return plan:script() == script
end

---- one move ---------------------------------------------------------------------------

local plan = mr.load_plan "attention_pingpong"
local before = plan:script()
local undone, why = plan:undo()
ok(undone == false and why == "nothing to undo since this was loaded" and plan:script() == before, "loading a plan is no edit", why)
plan:move("load_v", {at = 1})
like(statements(plan), 'plan:append%("load_v", {seu="tma", lane="p0", at=1}%)', "an offset, in one call")
ok(plan:check(), "  and the plan is legal", select(2, plan:check()))
ok(plan:undo() and plan:script() == before, "  and one edit")
plan:buffers{k = 3}
plan:move("load_v", {at = 1})
ok(plan:undo() and plan:undo() and not plan:undo() and plan:script() == before, "edits after loading are undone one by one")
ok(plan:redo() and plan:redo() and not plan:redo() and plan:undo() and plan:undo(), "  and made again")
ok(not plan:copy():undo(), "  of a copy the same")
plan:propagate{n = 64}
ok(plan:undo() and not plan:undo() and plan:script() == before, "  also one of the tile")
plan = load(before)()
ok(plan:undo() and plan:script() ~= before, "a script that is plain Lua is edits")
plan:redo()

-- A list of sTasks, as one edit; of one that fails, nothing stays.
do
  local made = mr.plan(plan.graph, device)
  made:append("load_q")
  local one = made:script()
  made:append({"load_k", "load_v"}, {lane = "p1"})
  like(made:script(), 'append%("load_k", {seu="tma", lane="p1"}%)\nplan:append%("load_v", {seu="tma", lane="p1"}%)', "append takes a list")
  ok(made:undo() and made:script() == one, "  as one edit")
  made:redo()
  local two = made:script()
  local good, message = pcall(made.append, made, {"mma_qk", "load_x"})
  ok(not good and message:find("there is no sTask 'load_x'", 1, true), "  of a list with a wrong name, the error is about that", message)
  is(made:script(), two, "  and nothing is appended")
  ok(made:undo() and made:script() == one, "  not even as an edit")
end

plan:move("mma_qk", {after = "mma_pv"})
like(statements(plan), 'append%("mma_pv%.0", [^\n]*\nplan:append%("mma_qk%.0", [^\n]*\nplan:append%("softmax%.0"',
  "the parts of an sTask behind the parts of another")
like(statements(plan), 'append%("mma_pv%.1", [^\n]*\nplan:append%("mma_qk%.1", [^\n]*\nplan:append%("softmax%.1"',
  "  each behind that of its number")
ok(plan:check(), "  and the plan is legal", select(2, plan:check()))
like(statements(plan), '"mma_qk%.0", {{"mma_pv%.1", distance=2, when="issued"}, "load_q", "load_k"}',
  "  waits with a distance, or for issue, are as they were")
ok(not statements(plan):find 'wait%("rescale', "  a wait that is needless now is gone")
plan:move("mma_qk", {before = "mma_pv"})
like(statements(plan), 'wait%("rescale%.0", {"mma_pv%.0"}%)', "  and comes again")
ok(plan:check(), "  and the plan is legal", select(2, plan:check()))
ok(undone_to(plan, before), "  and all is undone")

plan = mr.load_plan "attention_serial"
plan:propagate{n = 64}
before = plan:script()
plan:move("mma_qk", {at = 1})
is(plan.rings.mma_qk, 2, "the order needs more versions")
ok(plan:check(), "  and the plan is legal", select(2, plan:check()))
plan:move("mma_qk", {at = 0})
is(plan.rings.mma_qk, 2, "  which stay when it does not")
ok(undone_to(plan, before) and plan.rings.mma_qk == 1, "  undone, there are as many as before")
plan:move("mma_qk", {at = 1, repair_waits = false})
is(plan.rings.mma_qk, 1, "  waits are not repaired")
ok(not plan:check(), "  and the plan is not legal")
plan = mr.load_plan "attention_overlap"
before = plan:script()
plan:move("mma_pv", {seu = "tma"})
sound, problems = plan:check()
ok(not sound and problems[1].code == "wrong_seu", "a unit that cannot do it: the edit stands", problems)
is(problems[1].hint, 'plan:move("mma_pv", {seu="tensor"})', "  what would repair it is another")
plan:move("mma_pv", {seu = "tensor"})
is(plan:script(), before, "  and does")
plan:move("softmax", {before = "mma_qk", at = 0})
sound, problems = plan:check()
ok(not sound and problems[1].code == "offset", "an order that cannot be: the edit stands", problems)
ok(undone_to(plan, before), "  until it is undone")

local gemm = mr.load_plan "gemm_cooperative"
before = gemm:script()
gemm:move("load_a", {lane = "p1"})
like(statements(gemm), 'append%("load_a", {seu="tma", lane="p1"}%)', "another lane, which is declared")
ok(gemm:check(), "  and the plan is legal", select(2, gemm:check()))
gemm:move("load_a", {lane = "p0"})
like(statements(gemm), 'append%("load_b"[^\n]*\nplan:append%("load_a"', "  back, at the end of that lane's order")
ok(gemm:check(), "  and the plan is legal", select(2, gemm:check()))
gemm:move("load_a", {lane = "p1"})
gemm:move("load_a", {lane = "p0", before = "load_b"})
like(statements(gemm), 'append%("load_a"[^\n]*\nplan:append%("load_b"', "  or at the given position")
ok(undone_to(gemm, before), "  and all is undone")

---- insert -------------------------------------------------------------------------------

before = plan:script()
plan:remove "softmax"
plan:insert("softmax", {after = "mma_pv", at = 1})
is(plan:script(), before, "insert: what was taken out, with its waits")
plan:remove "softmax"
plan:insert("softmax", {before = "rescale", lane = "c0", seu = "cuda", at = 1, repair_waits = false})
is(plan:script(), before, "  which are still there")
plan = mr.load_plan "attention_pingpong"
before = plan:script()
plan:remove "softmax.0"
plan:remove "softmax.1"
plan:insert("softmax", {before = "rescale", at = 1})
is(plan:script(), before, "  all slices of a split sTask, each on the lane of the neighbouring slice")
plan = mr.plan(mr.examples.gemm{m = 512, n = 512, k = 512}:graph{tile = {m = 128, n = 128, k = 64}}, device)
for _, task in ipairs{"load_a", "load_b", "mma", "store_c"} do plan:insert(task) end
ok(not statements(plan):find "wait", "  an incomplete plan has no waits")
plan:insert("epilogue", {before = "store_c"})
ok(plan:check(), "  one that is gets them all", select(2, plan:check()))

---- random moves -------------------------------------------------------------------------

local seed = 1
local function random(n)
  seed = (seed * 1103515245 + 12345) % 2^31
  return math.tointeger(seed // 65536 % n) + 1
end

-- The sTask that comes after another one on its lane, in its loop; nil: none does.
local function position_of(p, task)
  local loop, found, own = {}, nil, nil
  for _, t in ipairs(p.tasks) do loop[t.name] = ("%s %s"):format(t.phase, t.loop) end
  local lane = statements(p):match(('append%%("%s", {[^}]*lane="(%%w+)"'):format((task:gsub("%p", "%%%0"))))
  for name, on in statements(p):gmatch 'append%("([^"]+)", {[^}]*lane="(%w+)"' do
    if own and not found and on == lane and loop[name] == loop[task] then found = name end
    own = own or name == task
  end
  return found, lane
end

local function offset_of(p, task)
  local entry = statements(p):match(('append%%("%s", {([^}]*)}'):format((task:gsub("%p", "%%%0"))))
  return tonumber(entry:match "at=(%-?%d+)") or 0
end

-- A move of some sTask, and that back again.
local function any_move(p)
  local task, other = p.tasks[random(#p.tasks)].name, p.tasks[random(#p.tasks)].name
  local follower, lane = position_of(p, task)
  local back = {at = offset_of(p, task), lane = lane, before = follower}
  local kind = random(4)
  if kind == 1 then return task, {at = random(4) - 2}, back end
  if kind == 2 then return task, {before = other}, back end
  if kind == 3 then return task, {after = other, at = random(3) - 2}, back end
  return task, {lane = select(2, position_of(p, other))}, back
end

local slowest, moved, accepted, legal_back = 0, 0, 0, 0
local shipped = {"attention_pingpong", "attention_overlap", "attention_serial", "gemm_cooperative"}
for _, name in ipairs(shipped) do
  local p = mr.load_plan(name)
  local first, wrong = p:script(), {}
  for _ = 1, 60 do
    local task, change, back = any_move(p)
    local began = os.clock()
    local good = pcall(p.move, p, task, change)
    slowest = math.max(slowest, os.clock() - began)
    moved = moved + (good and 1 or 0)
    if good and p:check() then
      accepted = accepted + 1
      p:move(task, back)
      local there = position_of(p, task)
      if there ~= back.before and back.before then wrong[#wrong + 1] = task .. " is elsewhere" end
      if p:check() then legal_back = legal_back + 1 else wrong[#wrong + 1] = task .. ": " .. tostring(select(2, p:check())) end
      p:undo()
    end
    if good then p:undo() end
    if p:script() ~= first then wrong[#wrong + 1] = task .. " is not undone" end
  end
  is(table.concat(wrong, "\n"), "", name .. ": 60 moves there and back, and undone")
end
ok(moved > 60 and accepted > 20, "  of which enough are legal", moved, accepted)
is(legal_back, accepted, "  and back they are legal again")
ok(true, ("  the slowest took %.1f ms"):format(slowest * 1e3))

-- Plans that moves make, and that the checker accepts, compute what the program says.
local mlp = mr.program("mlp", function(p)
  local m, h, k, d = p:axes("m", "h", "k", "d")
  local X, U, V = p:input("X", {m, k}), p:input("U", {h, k}), p:input("V", {d, h})
  local Y = p:output("Y", {m, d})
  local x = p:load("load_x", X)
  local y = p:carry("y", {m, d}, 0)
  p:loop(h, function()
    local a = p:mma("up", x, p:load("load_u", U))
    local b = p:task("act", function() return mr.max(a, 0):to "bf16" end)
    y:add(p:mma("down", b, p:load("load_v", V)))
  end)
  Y:store("store_y", p:task("out", function() return y:to "bf16" end))
end):bind{m = 128, h = 256, k = 64, d = 64}

local function computes(bound, tile, what)
  local p = mr.plan(bound:graph{tile = tile}, device)
  for _, task in ipairs(p.tasks) do p:append(task.name) end
  p:fill_waits()
  ok(p:check(), what .. ": a plan in the order of the program", select(2, p:check()))
  local done, scripts = 0, {}
  for _ = 1, 60 do
    local task, change = any_move(p)
    local good = pcall(p.move, p, task, change)
    if good and p:check() and not scripts[p:script()] and done < 5 then
      scripts[p:script()], done = true, done + 1
      local err = p:compile{target = "host"}:check()
      ok(err.ok, ("  moved %s, it computes the same"):format(task), err.relative, p:script())
    elseif good then
      p:undo()
    end
  end
  is(done, 5, "  in five ways")
end
computes(mlp, {m = 64, h = 64}, "a program that is not shipped")
computes(mr.examples.gemm{m = 128, n = 128, k = 192}, {m = 64, n = 64, k = 64}, "gemm")

---- copies -------------------------------------------------------------------------------

plan = load(mr.load_plan("attention_pingpong"):script())()   -- so that its statements are edits
before = plan:script()
local copy = plan:copy()
is(copy:script(), before, "copy: the same plan")
ok(copy.graph == plan.graph and copy.device == plan.device and #copy.tasks == #plan.tasks,
  "  of the same graph and device")
copy:move("softmax", {lane = "c0"})
ok(copy:script() ~= before and plan:script() == before, "  but another plan")
copy:undo()
local edits, own = 0, 0
while copy:undo() do edits = edits + 1 end
while plan:undo() do own = own + 1 end
ok(edits == own and edits > 20, "  with the edits, to be undone", edits, own)
ok(not plan:copy():redo(), "  but for those that were")
while plan:redo() do end
is(plan:script(), before, "  those of the first are its own")
ok(not mr.plan(plan.graph, device):copy():undo(), "  of an empty plan, too")
copy = mr.load_plan "attention_serial"
copy:unwait("mma_pv", "load_v")
like(select(2, copy:copy():check())[1].location, "attention_serial.lua:%d+$", "  with the locations of its edits")

---- differences ----------------------------------------------------------------------------

local function text(d) return tostring(d) end

copy = plan:copy()
local d = plan:diff(copy)
ok(#d == 0 and text(d) == "no difference", "diff: none", d)
copy:move("load_v", {at = 1, repair_waits = false})
d = plan:diff(copy)
is(text(d), [[
  plan:append("load_k", {seu="tma", lane="p0"})
- plan:append("load_v", {seu="tma", lane="p0"})
+ plan:append("load_v", {seu="tma", lane="p0", at=1})
  plan:append("mma_qk.0", {seu="tensor", lane="c0", at=1})]], "  of an offset")
ok(#d == 2 and d[1][1] == "-" and d[2][1] == "+" and
  d[2][2] == 'plan:append("load_v", {seu="tma", lane="p0", at=1})', "  as a list")
is(text(copy:diff(plan)):match "\n%- ([^\n]*)", d[2][2], "  and the other way round")
copy:undo()
copy:propagate{n = 64}
is(text(plan:diff(copy)), '- plan:propagate{n=128}\n+ plan:propagate{n=64}\n  plan:split("m", 2)', "  of a tile")
copy:undo()
copy:move("load_k", {after = "load_v", repair_waits = false})
d = plan:diff(copy)
ok(#d == 2 and d[1][2] == d[2][2], "  of an order: one line that moves", d)
local h100 = mr.load_plan "attention_serial"
d = mr.plan(h100.graph, mr.device "h100"):diff(mr.plan(h100.graph, device))
is(text(d), '- mr.plan(graph, mr.device "h100")\n+ mr.plan(graph, mr.device "h200")', "  of devices")
local good, message = pcall(plan.diff, plan, gemm)
ok(not good and message:find "diff: the plans are of different programs: 'flash_attention' and 'gemm'$",
  "  of programs: an error", message)
local function small(m) return mr.plan(mr.examples.gemm{m = m, n = 128, k = 128}:graph{}, device) end
is(text(small(128):diff(small(128))), "no difference", "  of a program that was bound twice: none")
good, message = pcall(plan.diff, small(128), small(256))
ok(not good and message:find "diff: the plans are of 'gemm' with different sizes or options; m=128 and m=256$", "  of sizes: an error", message)

---- tries ------------------------------------------------------------------------------------

plan = mr.load_plan "attention_pingpong"
before = plan:script()
local seen
local r = plan:try(function(p)
  p:move("mma_qk", {after = "mma_pv"})
  seen = p
end)
is(seen, plan, "try: the function gets the plan")
is(plan:script(), before, "  and all is undone")
ok(not plan:redo(), "  with nothing to be redone")
ok(r.ok and #r.problems == 0 and not r.kept, "  it was legal", r.problems)
is(#r.diff, 6, "  what differed")
is(#r.came, 0, "  the waits that came")
is(#r.went, 2, "  and went")
ok(r.went[1].task == "rescale.0" and r.went[1].on == "mma_pv.0" and r.went[1].when == "complete" and
  not r.went[1].distance, "  by name")
ok(r.before.seconds == plan:simulate().seconds and r.after.seconds > r.before.seconds and
  math.abs(r.gain - (1 - r.after.seconds / r.before.seconds)) < 1e-12, "  and the times")
like(r, "\nwaits that went: rescale%.0 for mma_pv%.0, rescale%.1 for mma_pv%.1\n" ..
  "II %d+ %-> %d+ cycles %(%+%d+%.%d %%%), time [%d.]+ %-> [%d.]+ ms %(%+%d+%.%d %%%)[^\n]*\n" ..
  "the checker accepts it\nundone; keep%(%) makes it again$", "  as text")
r.keep()
ok(r.kept and plan:script() ~= before, "keep: makes it again")
like(r, "\nkept$", "  and says so")
good, message = pcall(r.keep)
ok(not good and message:find "keep: it is kept$", "  once", message)
ok(plan:undo() and plan:script() == before, "  as the edit that it was")

r = plan:try(function(p) p:move("load_v", {at = 1}) end)
plan:buffers{v = 3}
good, message = pcall(r.keep)
ok(not good and message:find "keep: the plan has changed since it was tried$", "  unless the plan has changed", message)
plan:undo()
r.keep()
ok(statements(plan):find "at=1}%)\nplan:append%(\"mma_qk.0", "  and is not as it was again", statements(plan))
plan:undo()

r = plan:try(function(p)
  p:move("load_v", {at = 1})
  p:move("load_v", {at = 2})
end, {keep = true})
ok(r.kept and plan:script() ~= before, "keep=true leaves the edits")
plan:undo()
like(statements(plan), '"load_v", {seu="tma", lane="p0", at=1}', "  each one to be undone")
plan:undo()

r = plan:try(function(p) p:move("softmax", {at = 0}) end)
ok(not r.ok and r.after == nil and r.gain == nil and r.before, "a try that is not legal has no timeline")
like(r, "\n[^\n]*offset: ", "  and tells why not")
r = plan:try(function(p) p:propagate{n = 64} end)
like(r, "\ntime [%d.]+ %-> [%d.]+ ms %(%+", "of another tile no II is compared: an iteration is other work")
ok(not tostring(r):find "II", "  nor named")
r = plan:try(function() end)
ok(r.ok and r.gain == 0, "a try of nothing brings nothing")
like(r, "^no difference\nII .* ms %(0 %%%)", "  as text")
local tied = r.before.noise and true or nil
is(r.within_noise, tied, "  which is too near to call")
like(r, tied and ": too near to call\n" or "%%%)\n", "  and said to be")

plan:move("load_v", {at = 1})
plan:undo()
good, message = pcall(plan.try, plan, function(p)
  p:undo()
  p:undo()
  p:move("mma_pv", {at = 1})
  p:move("mma_pvv", {at = 1})
end)
ok(not good and message:find "edit%.t%.lua:%d+: there is no sTask 'mma_pvv'; did you mean 'mma_pv'%?$",
  "an error in it is raised again, with its location", message)
is(plan:script(), before, "  and all is undone, even what it undid")
ok(plan:redo() and statements(plan):find 'lane="p0", at=1}', "  and can be redone as before")
plan:undo()
local raised = {}
good, message = pcall(plan.try, plan, function() error(raised) end)
ok(not good and message == raised, "  whatever was raised")
r = plan:try(function(p)
  local inner = p:try(function(q) q:move("load_v", {at = 1, repair_waits = false}) end, {keep = true})
  p:try(function(q) q:move("load_k", {at = 1}) end)
  ok(inner.kept, "a try in a try")
end)
is(#r.diff, 2, "  is a part of it")
is(plan:script(), before, "  and undone with it")

local empty = mr.plan(plan.graph, device)
r = empty:try(function(p)
  p:append "load_q"
end)
ok(not r.ok and r.before == nil, "of a plan that is not legal there are no times")

---- versions, one after the other -------------------------------------------------------------

local programs = dofile((arg[0]:match "^(.*/)" or "./") .. "lib/programs.lua")
local gated = programs.gated{m = 1024, n = 1024, k = 1024}:graph{tile = {m = 128, n = 128, k = 64}}

-- stated: a wait that the user writes.
local function new_gated(stated)
  local p = mr.plan(gated, device)
  p:lane("c0", {warps = 8})
  for _, task in ipairs{"load_a", "load_g", "load_h"} do p:append(task, {lane = "p0"}) end
  for _, task in ipairs{"mma_g", "mma_h", "gate", "store_c"} do p:append(task, {lane = "c0"}) end
  if stated then p:wait("load_g", {"mma_g"}) end
  p:fill_waits()
  return p
end

for _, stated in ipairs{false, true} do
  local at_once = new_gated(stated)
  at_once:buffers{a = 4, g = 4, h = 4}
  for _, order in ipairs{{"a", "g", "h"}, {"h", "g", "a"}, {"g", "a", "h"}} do
    local p = new_gated(stated)
    for _, buffer in ipairs(order) do
      for n = 2, 4 do p:buffers{[buffer] = n} end
      if buffer == order[1] then
        ok(p:check(), "one ring is deeper: legal")
        before = p:script()
      end
    end
    is(statements(p), statements(at_once), ("rings made deeper in the order %s leave no wait behind"):format(table.concat(order, ", ")))
    is(statements(p):find('wait("load_g", {"mma_g"})', 1, true) ~= nil, stated, "  and the waits that the user wrote")
    ok(undone_to(p, before) and p:redo(), "  and can be undone")
  end
end

---- the plan of a search ----------------------------------------------------------------------

local found = mr.search(mr.examples.gemm{m = 512, n = 512, k = 512}, device, {trials = 20})
before = found.plan:script()
local mine = found.plan
mine:undo()
ok(mine:script() ~= before, "the plan of a search is edited")
is(found.plan:script(), before, "  but that is a copy")
is(found.plan:simulate().cycles, found.timeline.cycles, "  and the answer stays what it was")
like(found, "^gemm on h200: [%d.]+ ms %+%- [%d.]+ %%, [%d.]+ TFLOP/s, .*predicted\n", "  as text: what was found comes first")
like(found, "\ngo on with r%.plan:show%(%)", "  and how to go on last")
ok(found.timeline:why(), "  whose timeline is that of its plan")
local fields = {}
for key in pairs(found) do fields[key] = true end
ok(fields.plan and fields.timeline and fields.why, "  all fields are there")
local began = os.clock()
for _ = 1, 20 do mine = found.plan end
ok((os.clock() - began) / 20 < 0.02, ("  a copy took %.2f ms"):format((os.clock() - began) / 20 * 1e3))

-- What an object gives as a copy can only be read: setting a field of it would be without effect.
do
  local made, bound = mr.load_plan "gemm_cooperative", mr.load_plan("gemm_cooperative").graph.program
  local head = 'local plan = require "millrace".load_plan "gemm_cooperative" '
  tap.refuses(head .. "plan.rings.a = 5", "user.lua:1: plan.rings is a copy: 'a' cannot be set in it; plan:buffers{a=5} does it")
  tap.refuses(head .. "plan.rings.x = nil", "user.lua:1: plan.rings is a copy: 'x' cannot be set in it; plan:buffers{...} does it")
  tap.refuses(head .. "plan.tile.m = 64", "user.lua:1: plan.tile is a copy: 'm' cannot be set in it; plan:propagate{m=64} does it")
  tap.refuses(head .. "plan.graph.tile.m = 64", "user.lua:1: graph.tile is a copy: 'm' cannot be set in it; bound:graph{tile={m=64}} does it")
  tap.refuses(head .. "plan.graph.program.axes.m = 64", "user.lua:1: bound.axes is a copy: 'm' cannot be set in it; prog:bind{m=64} does it")
  tap.refuses(head .. "table.insert(plan.tile, 64)", "user.lua:1: plan.tile is a copy: 1 cannot be set in it; plan:propagate{...} does it")
  local copies = {
    ["plan.lanes[1].warps = 8"] = [[plan.lanes[1] is a copy: 'warps' cannot be set in it; plan:lane("p0", {...}) changes the lane]],
    ["plan.lanes[3] = {name = 'c2'}"] = "plan.lanes is a copy: 3 cannot be set in it; plan:lane(name, {...}) adds a lane",
    ["plan.entries[1].at = 1"] = [[plan.entries[1] is a copy: 'at' cannot be set in it; plan:move("load_a", {...}) moves the sTask]],
    ["plan.waits[1].distance = 2"] = "plan.waits[1] is a copy: 'distance' cannot be set in it; plan:unwait(",
    ["table.insert(plan.waits, {})"] = "cannot be set in it; plan:wait and plan:unwait do it",
    ["plan.usage.threads = 8"] = "plan.usage is a copy: 'threads' cannot be set in it; it follows from the plan, which plan:lane, ",
    ["plan.usage.lanes.c0 = 8"] = "plan.usage.lanes is a copy: 'c0' cannot be set in it; plan:lane(name, {warps=, registers=}) changes",
  }
  for code, message in pairs(copies) do
    local good, got = pcall(load(head .. code, "=user.lua"))
    ok(not good and tostring(got):find(message, 1, true), "a copy is not set: " .. code, got)
  end
  local n_waits = 0
  for i, w in ipairs(made.waits) do n_waits = n_waits + 1; ok(made.waits[i].task == w.task and w.on, "  lists are read as ever") end
  ok(n_waits == #made.waits and n_waits > 0, "  and have a length")
  like(mr.json(made.lanes), '^%[%s*{"name": "p0", "replicas": 1', "  as JSON")
  for field, message in pairs{["tile.m = 64"] = "plan.tile is a copy: 'm' cannot be set in it; plan:propagate{m=64} does it",
    ["rings.a = 5"] = "plan.rings is a copy: 'a' cannot be set in it; plan:buffers{a=5} does it"} do
    local path = os.tmpname()
    local file <close> = io.open(path, "w")
    file:write((made:script():gsub("return plan\n$", "plan." .. field .. "\nreturn plan\n")))
    file:flush()
    local good, got = pcall(mr.load_plan, path)
    os.remove(path)
    ok(not good and tostring(got):find(message, 1, true), "  in a plan's file, too: " .. field, got)
  end
  is(mr.json(made.tile), '{"k": 64, "m": 128, "n": 256}\n', "  as JSON")
  is(#made.tile, 0, "  as long as ever")
  is(made.tile[next(made.tile)], select(2, next(made.tile)), "  next gives a field of it")
  ok(next(made.tile) ~= nil, "  where there is one")
  local n = 0
  for name, versions in pairs(made.rings) do n = n + versions; is(made.rings[name], versions, "  pairs and fields agree") end
  ok(n > 0, "  pairs gives all")
  is(made.rings.no_such_ring, nil, "  and a field that is not there is nil")
  is(mr.json(bound:graph{tile = made.tile}.tile), mr.json(made.tile), "  where a tile is taken, such a copy is taken")
  made:buffers(made.rings)
  made:propagate(made.tile)
  is(mr.json(mr.examples.gemm(bound.axes).axes), mr.json(bound.axes), "  and where sizes are")
  is(mr.json(mr.search(bound, mr.device "h200", {trials = 20, tile = made.tile}).plan.tile), mr.json(made.tile), "  also by a search")
end

tap.done_testing()
