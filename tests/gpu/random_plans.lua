-- random_plans.lua - the random legal plans of tests/lua/plans_*.t.lua on the device; TAP. For
-- random_plans.t, or by hand:
--
--   build/millrace tests/gpu/random_plans.lua [FIRST [PLANS]]    from this seed on; 1, 100
local mr = require "millrace"
local tap = dofile "tests/lua/tap.lua"
local random_plans = dofile "tests/lua/lib/random_plans.lua"

local first = tonumber(arg[1] or 1)
local wanted = tonumber(arg[2] or arg[1] and 1 or os.getenv "MILLRACE_PLANS" or 100)

local found, why = mr.attached()
if not found then
  print("1..0 # SKIP " .. tostring(why))
  return
end

-- Behind those of any program a quarter as many of programs with lengths, and as many whose clusters divide a loop.
local dividing <const> = {"gemm", "gated", "dq", "qkv", "twice", "window"}
local quarter = wanted // 4
local ran, refused, seed = 0, 0, first - 1
while ran < wanted + 2 * quarter and refused <= wanted do
  seed = seed + 1
  random_plans.divides = ran >= wanted + quarter
  local names = random_plans.divides and dividing or ran >= wanted and random_plans.length_programs or nil
  local plan, info = random_plans.draw(seed, names, nil, names ~= nil)
  local result, message = random_plans.verify(plan, {seed, seed + 1}, {target = "cuda"})
  if result == "refused" then
    refused = refused + 1
    print(("# plan %d, of %s, is not lowered: %s"):format(seed, info.program, message))
  else
    ran = ran + 1
    tap.ok(result == "ok", ("plan %d, of %s"):format(seed, info.program), message, plan:script())
  end
end
tap.ok(refused <= 0.1 * (ran + refused) + 5, ("%d plans are not lowered"):format(refused))
tap.done_testing()
