-- Every plan that a call returns loads from its script, and is the same: equal scripts, equal kernel texts. So is a plan that
-- was made by the same statements in another order, where their order means nothing.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")

-- The text without comments, which tell where in a script things are.
local function kernel_of(plan)
  local good, kernel = pcall(function() return plan:compile{target = "cuda", text = true}.source end)
  return good and kernel:gsub("/%*.-%*/", ""):gsub("//[^\n]*", "") or "no kernel"
end

-- What differs between a plan and the one that its script builds; nil: nothing.
local function difference(plan)
  local script = plan:script()
  local chunk, message = load(script)
  local good, again = pcall(chunk or error, chunk and plan.graph.program or message)
  if not good then return again end
  if again:script() ~= script then return "another script: " .. again:script() end
  return kernel_of(plan) ~= kernel_of(again) and "another kernel" or nil
end

local function same(plan, what)
  local wrong = difference(plan)
  tap.ok(not wrong, what, wrong, plan:script())
end

---- another device ---------------------------------------------------------------------------

do
  local plan = mr.load_plan("attention_overlap", {device = "h100"})
  tap.is(plan.device.name, "h100", "a plan is loaded for another device")
  tap.ok(plan:check(), "  and checked for it")
  tap.is(plan.path, nil, "  and is no longer that of the file")
  tap.like(plan:script(), 'mr.device "h100"', "  which its script names")
  local prog = mr.examples.flash_attention{b = 1, h = 2, m = 256, n = 256, d = 128}
  plan = mr.load_plan("attention_overlap", prog, {device = mr.device "h100"})
  tap.ok(plan.device.name == "h100" and plan.graph.program.axes.b == 1, "a program may stand before it")
  tap.refuses('mr.load_plan("attention_overlap", {device = "a100"})', mr.home .. "/examples/attention_overlap.lua:14: 'a100' has no sEU 'tma' (the plan is loaded for a100); "
    .. 'mr.search(program, mr.device "a100") finds a plan for its units',
    "a plan that needs other units is refused")
  tap.refuses('mr.load_plan("attention_overlap", {devise = "a100"})', "user.lua:1: load_plan: unknown option 'devise'; did you mean 'device'?", "options are checked")
  tap.refuses('mr.load_plan("attention_overlap", {device = 3})', "user.lua:1: load_plan: device expected, got 3", "  and their values")
  local small = mr.device("h200", {["memory.shared.bytes"] = 65536})
  local good, problems = mr.load_plan("attention_overlap", {device = small}):check()
  tap.ok(not good and problems[1].code == "shared_memory", "check says what does not fit there", tostring(problems))
end

---- edits ------------------------------------------------------------------------------------

-- Edits of every kind, undone and made again; each state is looked at.
local function edited(name)
  local plan = mr.load_plan(name)
  local task = plan.tasks[1].name
  local edits = {
    function() plan:move(task, {at = 1}) end,
    function() plan:lane("spare", {warps = 1}) end,
    function() plan:grid{raster = "columns", group = 2} end,
    function() plan:remove(plan.tasks[#plan.tasks].name) end,
  }
  for i, edit in ipairs(edits) do
    local good = pcall(edit)
    if good then same(plan, ("%s after edit %d"):format(name, i)) end
  end
  for i = 1, #edits do
    if plan:undo() then same(plan, ("%s, %d undone"):format(name, i)) end
  end
  plan:redo()
  same(plan, name .. ", made again")
  same(plan:copy(), name .. ", a copy")
  plan:try(function(p) p:lane("tried", {warps = 1}) end, {keep = true})
  same(plan, name .. ", after a try that was kept")
end

for _, name in ipairs{"gemm_cooperative", "attention_pingpong", "attention_d128", "attention_d64"} do
  same(mr.load_plan(name), name)
  edited(name)
end

---- deprecated names -------------------------------------------------------------------------

local function named(split_off, alias, replicas, repair_waits)
  local plan = mr.load_plan "attention_serial"
  plan = mr.plan(plan.graph, plan.device)
  plan[split_off](plan, "softmax_2", "convert")
  plan[alias](plan, {softmax_3 = "mma_qk"})
  plan:lane("c0", {[replicas] = 2})
  for _, task in ipairs(plan.tasks) do plan:append(task.name) end
  plan:fill_waits()
  plan:move("load_k", {at = 1, [repair_waits] = false})
  return plan:script()
end
tap.is(named("cut", "place", "turns", "settle"),      -- deprecated
  named("split_off", "alias", "replicas", "repair_waits"),
  "deprecated names make the same plan")

---- improvements and searches ------------------------------------------------------------------

-- An improvement that is kept replaces all statements of a plan, those that shape the graph, too.
for _, name in ipairs{"attention_d128", "gemm_cooperative"} do
  local plan = mr.load_plan(name)
  local r = plan:improve{trials = 3}
  same(r.plan, name .. ", improved")
  if r.changes and #r.changes > 0 or r.plan:script() ~= plan:script() then
    local before = plan:script()
    r.keep()
    same(plan, name .. ", the improvement kept")
    plan:undo()
    tap.is(plan:script(), before, "  and undone")
    plan:redo()
    same(plan, "  and made again")
    r = plan:improve{trials = 2}
    if r.plan:script() ~= plan:script() then
      r.keep()
      same(plan, "  improved twice")
    end
    same(plan:copy(), "  its copy")
  end
end

for _, bound in ipairs{mr.examples.gemm{m = 512, n = 512, k = 512},
    mr.examples.flash_attention{b = 1, h = 4, m = 512, d = 64}} do
  local found = mr.search(bound, mr.device "h200", {trials = 30})
  same(found.plan, "found: " .. bound.name)
  same(found.plan:improve{trials = 2}.plan, "  and improved")
end

---- the same plan, made otherwise ----------------------------------------------------------------

-- Statements whose order means nothing in another order: appends of different lanes, and all waits, each by itself.
local function shuffled(plan)
  local first, lanes, waits, other = {}, {}, {}, mr.plan(plan.graph.program:graph{tile = plan.tile}, plan.device)
  for _, call in ipairs(random_plans.calls(plan)) do
    local name, task, o = table.unpack(call)
    if name == "append" then
      lanes[#lanes + 1] = lanes[o.lane] == nil and {} or nil
      lanes[o.lane] = lanes[o.lane] or lanes[#lanes]
      table.insert(lanes[o.lane], call)
    elseif name == "wait" then
      for _, w in ipairs(o) do table.insert(waits, math.random(#waits + 1), {"wait", task, {w}}) end
    else
      first[#first + 1] = call
    end
  end
  local function add(call) other[call[1]](other, table.unpack(call, 2)) end
  for _, call in ipairs(first) do add(call) end
  while #waits > 0 or #lanes > 0 do
    local i = math.random(#lanes + 1)
    local list = lanes[i] or waits
    if #list > 0 then add(table.remove(list, 1)) end
    if #list == 0 and list ~= waits then table.remove(lanes, i) end
  end
  return other
end

-- Its first waits taken out and put in again, an sTask moved there and back.
local function there_and_back(plan)
  local other = plan:copy()
  for i, w in ipairs(random_plans.waits(plan)) do
    if i > 3 then break end
    local same = {}
    for _, x in ipairs(random_plans.waits(plan)) do
      if x.task == w.task and x.on == w.on then same[#same + 1] = {x.on, distance = x.distance, when = x.when} end
    end
    other:unwait(w.task, w.on)
    other:wait(w.task, same)
  end
  local call
  for _, c in ipairs(random_plans.calls(plan)) do call = c[1] == "append" and c or call end
  local at = call[3].at or 0
  if pcall(other.move, other, call[2], {at = at + 1, repair_waits = false}) then
    other:move(call[2], {at = at, repair_waits = false})
  end
  return other
end

-- Does making it otherwise give the same script and kernel? The texts that differ, else nil.
local function made_otherwise(plan)
  for _, make in ipairs{shuffled, there_and_back} do
    local other = make(plan)
    if other:script() ~= plan:script() then return "another script: " .. other:script() end
    if kernel_of(other) ~= kernel_of(plan) then return "another kernel of the same script" end
  end
end

for _, name in ipairs{"attention_pingpong", "attention_d128"} do
  local plan = mr.load_plan(name)
  local wrong = made_otherwise(plan)
  tap.ok(not wrong, name .. ", made otherwise", wrong, plan:script())
end

-- Waits that a move repairs come back where they were.
local serial = mr.load_plan "attention_serial"
local before = serial:script()
for _, edit in ipairs{{"load_k", {at = 2}}, {"load_k", {at = 0}}, {"mma_qk", {at = 1}}, {"mma_qk", {at = 0}}} do
  serial:move(table.unpack(edit))
end
serial:buffers{k = 2, v = 2, softmax_2 = 1, mma_qk = 1}
tap.is(serial:script(), before, "moved there and back: the same script")

-- A changed offset is a changed line.
local changed = mr.load_plan "attention_overlap"
changed:move("load_k", {at = 1, repair_waits = false})
tap.is(#mr.load_plan "attention_overlap":diff(changed), 2, "another offset: one line goes, one comes")

---- random plans ---------------------------------------------------------------------------------

local count = math.min(math.tointeger(tonumber(os.getenv "MILLRACE_PLANS")) or 20, 20)
local wrong = {}
for _, kind in ipairs{"plain", "wild", "shaped"} do
  random_plans.shapes = kind == "shaped"
  for seed = 1, count do
    local names = kind ~= "wild" and {"attention", "gemm", "gated", "mlp", "two_pass", "normed"} or nil
    local plan = random_plans.draw(seed, names, nil, kind ~= "plain")
    local why = difference(plan) or made_otherwise(plan)
    if why then wrong[#wrong + 1] = ("%s, seed %d: %s\n%s"):format(kind, seed, why, plan:script()) end
  end
end
tap.is(table.concat(wrong, "\n"), "", "random plans")
tap.done_testing()
