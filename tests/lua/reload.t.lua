-- Every plan that a call returns loads from its script, and is the same: equal scripts, equal kernel texts.
--
-- A plan has its waits in the order of adding, its script by entry. Flags get their addresses in the order of waits, so
-- these are not compared; of random plans, whose waits are added in any order, the predicted cycles are.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")

-- The text without comments and addresses of flags; flags that are initialised are in the order of the alphabet.
local function kernel_of(plan)
  local good, kernel = pcall(function() return plan:compile{target = "cuda", text = true}.source end)
  if not good then return "no kernel" end
  local flags = {}
  local text = kernel:gsub("/%*.-%*/", ""):gsub("//[^\n]*", ""):gsub("[^\n]+", function(line)
    if not line:find "flag_" and not line:find "u32 full =" then return line end
    line = line:gsub("%-?%d+", "#"):gsub("[()]", "")
    if not line:find "flag_init" then return line end
    flags[#flags + 1] = line
    return ""
  end)
  table.sort(flags)
  return table.concat(flags, "\n") .. text
end

-- What differs between a plan and the one that its script builds; nil: nothing.
local function difference(plan, is_random)
  local script = plan:script()
  local chunk, message = load(script)
  local good, again = pcall(chunk or error, chunk and plan.graph.program or message)
  if not good then return again end
  if again:script() ~= script then return "another script: " .. again:script() end
  if is_random then
    local cycles, other = plan:simulate().cycles, again:simulate().cycles
    if cycles ~= other then return ("%d cycles, then %d"):format(cycles, other) end
    return (kernel_of(plan) == "no kernel") ~= (kernel_of(again) == "no kernel") and "a kernel for one alone" or nil
  end
  return kernel_of(plan) ~= kernel_of(again) and "another kernel" or nil
end

local function same(plan, what)
  local wrong = difference(plan)
  tap.ok(not wrong, what, wrong, plan:script())
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

---- random plans ---------------------------------------------------------------------------------

local count = math.min(math.tointeger(tonumber(os.getenv "MILLRACE_PLANS")) or 20, 20)
local wrong = {}
for _, kind in ipairs{"plain", "wild", "shaped"} do
  random_plans.shapes = kind == "shaped"
  for seed = 1, count do
    local names = kind ~= "wild" and {"attention", "gemm", "gated", "mlp", "two_pass", "normed"} or nil
    local plan = random_plans.draw(seed, names, nil, kind ~= "plain")
    local why = difference(plan, true)
    if why then wrong[#wrong + 1] = ("%s, seed %d: %s\n%s"):format(kind, seed, why, plan:script()) end
  end
end
tap.is(table.concat(wrong, "\n"), "", "random plans")
tap.done_testing()
