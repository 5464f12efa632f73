-- broken_plans.lua - from random legal plans one wait is taken. The checker refuses what is
-- left if and only if the CPU target finds it wrong: by a race, by a deadlock, or by what it
-- computes. tests/unit/broken.c runs this and gives it
--
--   force(plan[, task, on])   the kernels of a plan that is refused; without the wait of
--                             `task` for `on`, if given; and what the protocol check says of
--                             them; or nil and why the plan cannot be lowered
--
-- A kernel may wait where its plan does not say so: for a store, which is complete when the lane
-- goes on, or for an own product that it must signal to others. Then nothing goes wrong, and the
-- protocol check agrees.
--
-- The number of plans is fixed: the share of kernels that wait anyway is bounded below, and that
-- of fewer plans is chance.
local mr = require "millrace"
local core = require "millrace.core"
local within = require "millrace.within"
local dir = debug.getinfo(1, "S").source:match "^@(.*/)"
local tap, random_plans = dofile(dir .. "../tap.lua"), dofile(dir .. "random_plans.lua")

local PLANS <const> = 120
local SEEDS <const> = 8                                 -- orders tried of a plan that is refused

local function tell(text) print("# " .. tostring(text):gsub("\n", "\n# ")) end

-- The same plan once more, and the program's tiles on one EU, so that rings go around.
local function copy(plan)
  local bound = plan.graph.program
  local new = mr.plan(bound:graph{tile = plan.tile}, plan.device)
  assert(load("local plan = ...\n" .. core.statements(plan)))(new)
  new:grid{eus = 1}
  return new
end

-- Waits as pairs of sTasks, by the alphabet, so that what is drawn does not depend on how a plan lists its waits: unwait takes all
-- waits between two.
local function pairs_of_waits(plan)
  local list, seen = {}, {}
  for _, w in ipairs(random_plans.waits(plan)) do
    local key = w.task .. "<" .. w.on
    if not seen[key] then list[#list + 1] = w end
    seen[key] = true
  end
  table.sort(list, function(a, b)
    if a.task ~= b.task then return a.task < b.task end
    return a.on < b.on
  end)
  return list
end

-- "race", "deadlock", "other report" or "wrong result", and what was said; nil if all is well.
local function fault(kernel, plan)
  local bound = plan.graph.program
  local inputs = bound:inputs{seed = 7}
  local want, allowed = core.reference_allowing(bound, inputs)
  for seed = 1, SEEDS do
    local got, report = core.host_run(kernel, inputs, {seed = seed, race = seed % 4 ~= 0, limit = 30})
    if report then
      return report:find "race in shared" and "race" or report:find "deadlock" and "deadlock" or
        "other report", report
    end
    local found = within(bound, got, want, allowed, plan.tile)
    if not found.ok then return "wrong result", ("%d elements, relative error %g"):format(found.wrong, found.relative) end
  end
end

local counts, refused, accepted, harmless = {}, 0, 0, 0
local function count(what) counts[what] = (counts[what] or 0) + 1 end

-- What the checks refuse goes wrong on the CPU: the plan without the wait or, if it cannot be
-- lowered, the plan's kernel without it.
local function must_fail(seed, plan, broken, w)
  local name = ("plan %d: '%s' without its wait for '%s'"):format(seed, w.task, w.on)
  local kernel, wrong = force(broken)
  if not kernel then
    count "not lowered without the wait"
    kernel, wrong = force(plan, w.task, w.on)
  end
  local what, report = fault(kernel, broken)
  refused = refused + 1
  count(what or "nothing")
  if not wrong then harmless = harmless + 1 end
  if not what and wrong and tostring(wrong):find("is not pinned behind the wait", 1, true) then
    return count "a pin is missing"                       -- by which a compiler may read registers too early, but the CPU never
  end
  tap.is(what ~= nil, wrong ~= nil, name .. (wrong and " goes wrong" or " waits anyway"))
  if (what ~= nil) ~= (wrong ~= nil) then tell((report or wrong) .. "\n" .. plan:script()) end
  if what == "race" then
    tap.like(report, "'%S+' iteration %d+ %a+ what '%S+' iteration %d+ %a+",
      name .. ": the report names both sTasks and iterations")
  end
end

-- What they accept does not.
local function must_work(seed, broken, w)
  local built, kernel = pcall(broken.compile, broken, {target = "host"})
  if not built then return count "needless, but then not lowered" end
  local what, report = fault(kernel, broken)
  accepted = accepted + 1
  tap.ok(not what, ("plan %d: '%s' needs no wait for '%s'"):format(seed, w.task, w.on), report,
    broken:script())
end

local seed, done = 0, 0
while done < PLANS do
  seed = seed + 1
  local drawn = random_plans.draw(seed)
  local plan = copy(drawn)
  if plan:check() and force(plan) and pcall(plan.compile, plan, {text = true}) then
    local waits = pairs_of_waits(plan)
    math.randomseed(seed)
    local needed, needless
    while #waits > 0 and not (needed and needless) do
      local w = table.remove(waits, math.random(#waits))
      local broken = copy(plan)
      broken:unwait(w.task, w.on)
      if broken:check() then
        if not needless then must_work(seed, broken, w) end
        needless = true
      elseif not needed then
        must_fail(seed, plan, broken, w)
        needed = true
      end
    end
    done = done + 1
  end
end
tap.ok(refused >= PLANS * 0.9, ("%d plans were refused, %d accepted"):format(refused, accepted))
tap.ok(harmless <= refused * 0.3, ("%d kernels wait anyway"):format(harmless))
for what, n in pairs(counts) do tell(("%d times: %s"):format(n, what)) end
tap.done_testing()
