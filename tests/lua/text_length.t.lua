-- How long the text of a kernel may become: versions of values in registers and offsets make copies of sTasks, and check
-- refuses more of them than a compiler takes in a minute, before any text is made.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")
local own = dofile(dir .. "lib/programs.lua")

-- Two loops in one another, whose loads one lane divides in two or executes alone. versions: of values in registers.
local function nested(device, versions, at)
  local plan = mr.plan(own.mlp{m = 128, n = 96, k = 192, d = 64}:graph{tile = {m = 64, n = 32, k = 64}}, mr.device(device))
  local copies = device == "mi300x" and "vmem" or nil
  if copies then
    plan:split_off("a", "put_a")
    plan:split_off("v", "put_v")
  end
  plan:lane("c0", {warps = 4})
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = "c0", at = at and at[t.name] or 0, seu = (t.name == "load_a" or t.name == "load_v") and copies or nil})
  end
  plan:buffers(versions)
  plan:fill_waits()
  return plan
end
local function refusal(plan)
  local good, problems = plan:check()
  for _, p in ipairs(good and {} or problems) do
    if p.code == "copies" then return p end
  end
end
local behind = {relu = -1, put_v = -2, mma_out = -2, store_o = -1}
local function lines(plan) return select(2, plan:compile{text = true}.source:gsub("\n", "")) end

-- On an MI300X loads may be held in registers, and their versions multiply.
local small = nested("mi300x", {c = 2, relu = 3, load_a = 1, load_v = 3, convert = 2}, behind)
tap.ok(small:check(), "a few versions are accepted", select(2, small:check()))
local short = lines(small)
tap.ok(short < 8000, ("  which make %d lines"):format(short))
local large = nested("mi300x", {c = 2, relu = 3, load_a = 3, load_v = 4, convert = 2}, behind)
local why = refusal(large)
tap.ok(why, "many that have no common factor are refused", (large:check()))
tap.like(why.message, "the kernel would have %d+ copies of sTasks, of about %d%d%d%d%d+ instructions more than one of each where 32768 are", "  with both numbers")
tap.like(why.message, "lane 'c0'.-'relu' %(3%).-'load_v' %(4%).- meet again only after 12 iterations over 'n'", "  the versions of the outer loop")
tap.like(why.message, "'load_a' %(3%).- meet again only after 3 iterations over 'k'", "  and of the inner one")
tap.like(why.hint, "plan:buffers", "  and what to do")
tap.like(why.location, "text_length.t.lua:20$", "  at the line that says the versions")

-- The estimate does not count what is there once: a tile that is large for its lane is another matter.
local alone = nested("a100", {}, nil)
tap.ok(alone:check(), "one copy of each sTask is accepted", select(2, alone:check()))

-- Other targets count with limits of their own.
for _, device in ipairs{"a100", "h200"} do
  local accepted = nested(device, {c = 2, relu = 2, v = 3, convert = 2}, behind)
  tap.ok(accepted:check(), device .. ": a few versions are accepted", select(2, accepted:check()))
  local problem = refusal(nested(device, {c = 5, relu = 9, v = 3, convert = 3}, behind))
  tap.like(problem and problem.message, "about %d+ instructions more than one of each where 65536 are what compilers take", "  and many are refused")
end

-- Plans at random: none that is accepted has a text longer than compilers take.
random_plans.device, random_plans.staged = mr.device "mi300x", true
local longest = 0
for seed = 20025, 20035 do
  local plan = random_plans.draw(seed)
  longest = math.max(longest, lines(plan))
end
tap.ok(longest < 16000, "random plans have short texts", longest)
tap.done_testing()
