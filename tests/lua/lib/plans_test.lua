-- plans_test.lua - random legal plans of some programs run correctly on the CPU.
--
-- A test calls it with a title, programs, how many plans, and what must have been reached.
-- With arguments, FIRST [LAST], the test runs just these seeds and tells all about them.
-- MILLRACE_PLANS in the environment is another number of plans.
local dir = debug.getinfo(1, "S").source:match "^@(.*/)"
local tap, random_plans = dofile(dir .. "../tap.lua"), dofile(dir .. "random_plans.lua")

local REFUSED_MOST <const> = 0.1                        -- share of plans that are not lowered

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

local function replay(names, first, last, spread)
  for seed = first, last do
    local plan, info = random_plans.draw(seed, names, spread)
    print(("-- seed %d, %s, after %d tries"):format(seed, info.program, info.tries))
    print(plan:script())
    print("-- " .. table.concat({random_plans.verify(plan, seeds_of(seed))}, ": "))
  end
end

-- One plan's outcome; a failure is told with all it takes to see it again.
local function outcome(seed, plan, info)
  local result, message = random_plans.verify(plan, seeds_of(seed))
  if result == "failed" then
    tap.ok(false, ("plan %d, of %s, runs correctly"):format(seed, info.program), message, plan:script())
  end
  return result, message
end

local function kind_of(message)
  return (message:gsub("^%S+:%d+: ", ""):gsub("'[^']*'", "'...'"):gsub("%d+", "N"):gsub("\n.*", ""))
end

return function(title, names, count, reached, spread)
  if arg[1] then return replay(names, tonumber(arg[1]), tonumber(arg[2] or arg[1]), spread) end
  count = tonumber(os.getenv "MILLRACE_PLANS") or count
  local counts, by_program, kinds = {ok = 0, refused = 0, failed = 0}, {}, {}
  local seen, tries = {}, 0
  for seed = 1, count do
    local plan, info = random_plans.draw(seed, names, spread)
    local result, message = outcome(seed, plan, info)
    counts[result] = counts[result] + 1
    by_program[info.program] = (by_program[info.program] or 0) + 1
    tries = tries + info.tries
    if result == "ok" then add(seen, random_plans.features(plan, info)) end
    if result == "refused" then add(kinds, {[kind_of(message)] = 1}) end
  end
  tap.is(counts.failed, 0, ("%s: %d plans run correctly"):format(title, counts.ok))
  tap.ok(counts.refused <= REFUSED_MOST * count + 5, ("%s: %d plans are not lowered"):format(title,
    counts.refused))
  for kind, n in pairs(kinds) do tell(("%d times: %s"):format(n, kind)) end
  tell(("%d of %d drawn were legal, of %d programs"):format(count, tries, #names))
  coverage(seen)
  for _, name in ipairs(names) do
    tap.ok(by_program[name] or count < 50, ("%s: there are plans of %s"):format(title, name))
  end
  for _, what in ipairs(reached) do
    tap.ok(seen[what] or count < 500, ("%s: %s is among them"):format(title, what))
  end
  tap.done_testing()
end
