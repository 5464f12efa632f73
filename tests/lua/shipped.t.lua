-- All shipped programs run correctly on the CPU: at three sizes, one of them ragged, from two
-- different plans each and from the one that the search finds. With the argument "cuda", on
-- the attached device (tests/gpu/shipped.t).
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")

local SEEDS <const> = {1, 2}
local target = arg[1] or "host"

local programs = dofile(dir .. "lib/shipped_sizes.lua")

-- Everything in the program's order on the lanes that the device chooses.
local function simple(plan)
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
end

-- Rings of two for what loops load, loads alternately on two lanes, few EUs.
local function deep(plan)
  local loads = 0
  plan:grid{eus = 2}
  for _, t in ipairs(plan.tasks) do
    if t.kind == "load" then
      plan:append(t.name, {lane = "p" .. loads % 2})
      loads = loads + 1
      if t.loop then plan:buffers{[t.writes[1]] = 2} end
    else
      plan:append(t.name)
    end
  end
  plan:fill_waits()
end

local function describe(sizes)
  local list = {}
  for name, size in pairs(sizes) do list[#list + 1] = ("%s=%s"):format(name, size) end
  table.sort(list)
  return table.concat(list, " ")
end

local function correct(what, plan)
  local good, problems = plan:check()
  if not good then return tap.ok(false, what, tostring(problems)) end
  local result, message = random_plans.verify(plan, SEEDS, {target = target})
  tap.ok(result == "ok", what, message, plan:script())
end

local names = dofile(dir .. "lib/example_names.lua")
for _, name in ipairs(names) do
  local of = programs[name]
  if tap.ok(of, name .. " has sizes here") then
    for _, sizes in ipairs(of) do
      local bound, what = mr.examples[name](sizes), ("%s %s"):format(name, describe(sizes))
      for how, make in ipairs{simple, deep} do
        local plan = mr.plan(bound:graph{tile = of.tile}, mr.device "h200")
        make(plan)
        correct(("%s, plan %d"):format(what, how), plan)
      end
      local found, why = mr.search(bound, mr.device "h200", {trials = of.trials or 200, seconds = 20})
      if tap.ok(found, what .. ": the search finds a plan", why) then
        correct(what .. ", as searched", found.plan)
      end
    end
  end
end
tap.is(#names, 29, "twenty-nine programs are shipped")
tap.done_testing()
