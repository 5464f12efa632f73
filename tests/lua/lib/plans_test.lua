-- plans_test.lua - random legal plans of some programs run correctly on the CPU.
--
-- A test calls it with a title, programs, the number of plans, and the features that must have occurred.
-- With arguments, FIRST [LAST], the test runs only these seeds and prints all about them.
-- MILLRACE_PLANS in the environment is another number of plans.
--
-- No wild plan that the checker accepts may fail: each is lowered, for the GPU and for the
-- CPU, and its result on the CPU is right. Failures are reported by kind, with their number, and the seed, the program
-- and the script of the shortest plan.
local dir = debug.getinfo(1, "S").source:match "^@(.*/)"
local tap, random_plans = dofile(dir .. "../tap.lua"), dofile(dir .. "random_plans.lua")

local function seeds_of(seed) return {3 * seed, 3 * seed + 1, 3 * seed + 2} end

local function tell(text) print("# " .. tostring(text):gsub("\n", "\n# ")) end

local function add(counts, more)
  for key, n in pairs(more) do counts[key] = (counts[key] or 0) + n end
end

-- Counts as lines, one for each first word.
local function coverage(counts)
  local lines, keys = {}, {}
  for key in pairs(counts) do keys[#keys + 1] = key end
  table.sort(keys)
  for _, key in ipairs(keys) do
    local what, value = key:match "^(.*) (%S+)$"
    local line = ("%s: %d"):format(value, counts[key])
    if #lines > 0 and lines[#lines].what == what then
      table.insert(lines[#lines], line)
    else
      lines[#lines + 1] = {what = what, line}
    end
  end
  for _, line in ipairs(lines) do tell(("%-18s %s"):format(line.what, table.concat(line, ", "))) end
end

local function replay(names, first, last, spread, wild)
  for seed = first, last do
    local plan, info = random_plans.draw(seed, names, spread, wild)
    print(("-- seed %d, %s, after %d tries"):format(seed, info.program, info.tries))
    print("-- " .. tostring(plan.graph.program):gsub("\n", "\n-- "))
    print(plan:script())
    print("-- " .. table.concat({random_plans.verify(plan, seeds_of(seed))}, ": "))
  end
end

-- One plan's outcome; a failure is printed with all that is needed to reproduce it.
local function outcome(seed, plan, info)
  local result, message = random_plans.verify(plan, seeds_of(seed))
  if result == "failed" then
    tap.ok(false, ("plan %d, of %s, runs correctly"):format(seed, info.program), message, plan:script())
  end
  return result, message
end

-- Why draws came to nothing, in as few words.
local function refusal_of(why)
  return why:find "^[%l_]+$" and why or random_plans.kind_of(why)
end

-- Few plans need not reach all.
local function conclude(title, names, count, reached, by_program, seen)
  for _, name in ipairs(names) do
    tap.ok(by_program[name] or count < 50, ("%s: there are plans of %s"):format(title, name))
  end
  for _, what in ipairs(reached) do
    tap.ok(seen[what] or count < 375, ("%s: %s is among them"):format(title, what))
  end
  tap.done_testing()
end

-- Plans that all have to be right; what fails, by kinds.
local function demanding(title, names, count, reached)
  local kinds, order, seen, by_program, refusals, right = {}, {}, {}, {}, {}, 0
  for seed = 1, count do
    local plan, info = random_plans.draw(seed, names, nil, true)
    for _, why in ipairs(info.refusals) do add(refusals, {[refusal_of(why)] = 1}) end
    local result, message = random_plans.verify(plan, seeds_of(seed))
    by_program[info.program] = (by_program[info.program] or 0) + 1
    add(seen, random_plans.features(plan, info))
    if result == "ok" then
      right = right + 1
    else
      local key = (result == "refused" and "not lowered: " or "") .. random_plans.kind_of(message)
      local kind = kinds[key] or {key = key, count = 0}
      if not kinds[key] then order[#order + 1] = kind end
      kinds[key], kind.count = kind, kind.count + 1
      local script = tostring(plan.graph.program) .. "\n" .. plan:script()
      if not kind.script or #script < #kind.script then
        kind.seed, kind.program, kind.message, kind.script = seed, info.program, message, script
      end
    end
  end
  table.sort(order, function(a, b) return a.count > b.count or a.count == b.count and a.seed < b.seed end)
  for _, kind in ipairs(order) do
    tap.ok(false, ("%d of %d plans: %s; seed %d, %s"):format(kind.count, count, kind.key, kind.seed, kind.program),
      kind.message, kind.script)
  end
  tap.is(right, count, ("%s: all plans that are legal run correctly"):format(title))
  coverage(seen)
  for why, n in pairs(refusals) do tell(("%d draws were no plan: %s"):format(n, why)) end
  conclude(title, names, count, reached, by_program, seen)
end

-- shapes: last steps are split off and values are aliases of others; divides: clusters divide a loop.
return function(title, names, count, reached, spread, wild, shapes, divides)
  random_plans.shapes, random_plans.divides = shapes, divides
  if wild then names = names or random_plans.wild_programs end
  if arg[1] then return replay(names, tonumber(arg[1]), tonumber(arg[2] or arg[1]), spread, wild) end
  count = tonumber(os.getenv "MILLRACE_PLANS") or count
  if wild then return demanding(title, names, count, reached) end
  local counts, by_program, kinds = {ok = 0, refused = 0, failed = 0}, {}, {}
  local seen, tries = {}, 0
  for seed = 1, count do
    local plan, info = random_plans.draw(seed, names, spread)
    local result, message = outcome(seed, plan, info)
    counts[result] = counts[result] + 1
    by_program[info.program] = (by_program[info.program] or 0) + 1
    tries = tries + info.tries
    if result == "ok" then add(seen, random_plans.features(plan, info)) end
    if result == "refused" then add(kinds, {[random_plans.kind_of(message)] = 1}) end
  end
  tap.is(counts.failed, 0, ("%s: %d plans run correctly"):format(title, counts.ok))
  tap.is(counts.refused, 0, title .. ": all that are accepted are lowered")
  for kind, n in pairs(kinds) do tell(("%d times: %s"):format(n, kind)) end
  tell(("%d of %d drawn were legal, of %d programs"):format(count, tries, #names))
  coverage(seen)
  conclude(title, names, count, reached, by_program, seen)
end
