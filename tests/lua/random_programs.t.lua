-- Programs drawn at random: each is refused at one of its lines, or bound; plans of it in the program's order, at random and
-- by search are legal and right on the CPU, and are the same when their scripts are loaded again.
--
--   millrace random_programs.t.lua [FIRST [LAST [TARGET [DEVICE]]]]     these programs alone; TARGET is host or cuda, DEVICE
--                                                              what the plans are for, such as a100
--
-- Numbers below 0 are programs whose stores have other indices than their axes: shifted, in blocks, turned, outside of tensors.
-- MILLRACE_PROGRAMS in the environment is another number of programs. A fault is printed as the smallest program found that
-- still has it, with its plan.
local mr = require "millrace"
local within = require "millrace.within"
local dir = arg[0]:match "^(.*/)" or "./"
local tap, random_plans = dofile(dir .. "tap.lua"), dofile(dir .. "lib/random_plans.lua")
local random_programs = dofile(dir .. "lib/random_programs.lua")
local dev = mr.device(arg[4] or "h200")
random_plans.target, random_plans.device = arg[3] or "host", dev

local plans_few = tonumber(os.getenv "MILLRACE_PLANS" or 375) < 375
local first = tonumber(arg[1] or 1)
local last = tonumber(arg[2] or arg[1] or os.getenv "MILLRACE_PROGRAMS" or (plans_few and 4 or 40))

local EXTENTS <const> = {0, 0, 16, 16, 32, 64, 64, 128}           -- 0: the axis is not tiled

---- plans --------------------------------------------------------------------------

-- Each gives a plan, or nil and why there is none.
local methods = {}

function methods.order(case, bound)
  local why
  for _ = 1, 8 do
    local made, plan = pcall(function()
      local plan = mr.plan(bound:graph{tile = random_programs.draw_tile(case, EXTENTS)}, dev)
      for _, t in ipairs(plan.tasks) do plan:append(t.name) end
      plan:fill_waits()
      return plan
    end)
    if not made then
      why = plan
    else
      local good, problems = plan:check()
      if good then return plan end
      why = problems[1].message
    end
  end
  return nil, why
end

function methods.wild(case, bound)
  local why
  for _ = 1, 12 do
    local made, plan, info = pcall(random_plans.try_wild, "random", bound, random_programs.draw_tile(case, EXTENTS))
    if made and plan then return plan end
    why = made and info or plan
  end
  return nil, why
end

function methods.search(_, bound)
  local found, why = mr.search(bound, dev, {measure = false, trials = 30, seconds = 600})
  return found and found.plan, why
end

local ORDER <const> = {"order", "wild", "search"}

---- what must hold -----------------------------------------------------------------

-- The script makes the same plan of the same program.
local function reloads(plan, bound)
  local path = os.tmpname()
  local f <close> = assert(io.open(path, "w"))
  f:write(plan:script())
  f:close()
  local loaded, again = pcall(mr.load_plan, path, bound)
  os.remove(path)
  if not loaded then return nil, "its script is not loaded: " .. again end
  if again:script() ~= plan:script() then return nil, "its script is another after it was loaded" end
  return true
end

-- Outputs of which one tile is zero, or one element is off, are not taken for right ones.
local function notices(bound, plan)
  local core = require "millrace.core"
  local inputs = bound:inputs{}
  local want, allowed = core.reference_allowing(bound, inputs)
  for name, array in pairs(want) do
    local most, at = 0, nil
    for i = 1, #array do
      local share = math.abs(array[i]) / (allowed[name][i] + 1e-30)
      if share > most and share < math.huge then most, at = share, i end
    end
    if most > 1 then
      local spoiled = {}
      for other, a in pairs(want) do spoiled[other] = a:copy() end
      spoiled[name][at] = 0
      if within(bound, spoiled, want, allowed, plan.tile).ok then
        return nil, ("a wrong element of %s is taken for a right one"):format(name)
      end
    end
  end
  return true
end

-- "ok"; "unbound" and why; "none" and why there is no plan; "fault", why, and the plan.
local function outcome(case, method)
  local bound, why = random_programs.bind(case)
  if not bound then return "unbound", why end
  math.randomseed(case.seed)
  local plan, refusal = methods[method](case, bound)
  if not plan then return "none", refusal end
  local good, problems = plan:check()
  if not good then return "fault", "it is not legal: " .. problems[1].message, plan end
  local result, message = random_plans.verify(plan, {1, 2})
  if result ~= "ok" then return "fault", (result == "refused" and "not lowered: " or "") .. message, plan end
  good, why = reloads(plan, bound)
  if good and case.seed % 8 == 0 then good, why = notices(bound, plan) end
  if not good then return "fault", why, plan end
  return "ok"
end

-- The text of a fault, of the smallest program that has it.
local function report(case, method)
  local _, why = outcome(case, method)
  local kind = random_plans.kind_of(why)
  case = random_programs.shrink(case, function(smaller)
    local result, message = outcome(smaller, method)
    return result == "fault" and random_plans.kind_of(message) == kind
  end)
  local _, message, plan = outcome(case, method)
  return ("%s\n%s%s\n%s"):format(message, random_programs.text(case), random_programs.sizes_text(case), plan and plan:script() or "(no plan)")
end

---- the programs -------------------------------------------------------------------

-- Once their plans raced or were wrong, and few others found it.
local FOUND_ONCE <const> = {12465, 202465, 203971, 205580, 313899}

local seeds = arg[1] and {} or table.move(FOUND_ONCE, 1, #FOUND_ONCE, 1, {})
for seed = first, last do seeds[#seeds + 1] = seed end
for seed = 1, arg[1] and 0 or last // 4 do seeds[#seeds + 1] = -seed end      -- those whose stores are elsewhere

local counts, planned, missed, refusals = {}, 0, {}, {}
for _, seed in ipairs(seeds) do
  local case = random_programs.draw(math.abs(seed), seed < 0)
  local results, faults = {}, {}
  for _, method in ipairs(ORDER) do
    local result, why = outcome(case, method)
    results[method] = result
    counts[method .. " " .. result] = (counts[method .. " " .. result] or 0) + 1
    if result == "fault" then faults[#faults + 1] = report(case, method) end
    if result == "unbound" then
      refusals[random_plans.kind_of(why)] = (refusals[random_plans.kind_of(why)] or 0) + 1
      if not why:find "^program:%d+: " then faults[#faults + 1] = "refused without a line: " .. why end
      break
    end
  end
  tap.ok(#faults == 0, ("program %d"):format(seed), table.unpack(faults))
  local any
  for _, result in pairs(results) do any = any or result == "ok" or result == "fault" end
  if any then planned = planned + 1 end
  if any and results.search == "none" then missed[#missed + 1] = seed end
end

tap.ok(#missed <= math.max(1, planned * 0.03), "search finds a plan of nearly all that have one",
  "not of " .. table.concat(missed, ", "))
local lines = {}
for key, n in pairs(counts) do lines[#lines + 1] = ("# %d plans: %s"):format(n, key) end
for key, n in pairs(refusals) do lines[#lines + 1] = ("# %d refused: %s"):format(n, key) end
table.sort(lines)
print(table.concat(lines, "\n"))
tap.done_testing()
