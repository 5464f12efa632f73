-- tap.lua - checks that print TAP. `local tap = dofile(...)`, at the end tap.done_testing().
local tap = {}
local run, failed = 0, 0

-- The line of the test file that called.
local function place()
  for level = 3, 20 do
    local info = debug.getinfo(level, "Sl")
    if not info then return "?" end
    if info.currentline > 0 and not info.short_src:find "tap%.lua$" then
      return info.short_src .. ":" .. info.currentline
    end
  end
end

local function comment(text)
  print("# " .. tostring(text):gsub("\n", "\n# "))
end

-- The further arguments are told if the check fails.
function tap.ok(good, what, ...)
  run = run + 1
  print(("%s %d - %s"):format(good and "ok" or "not ok", run, what))
  if good then return true end
  failed = failed + 1
  comment("failed at " .. place())
  for _, text in ipairs {...} do comment(text) end
  return false
end

function tap.is(got, want, what)
  return tap.ok(got == want, what or want, "  got: " .. tostring(got), " want: " .. tostring(want))
end

function tap.near(got, want, tolerance, what)
  local good = type(got) == "number" and (got == want or math.abs(got - want) <= tolerance)
  return tap.ok(good, what, "  got: " .. tostring(got), " want: " .. tostring(want))
end

-- The text matches the Lua pattern.
function tap.like(got, pattern, what)
  return tap.ok(tostring(got):find(pattern) ~= nil, what or pattern, "  got: " .. tostring(got),
    " want: " .. pattern)
end

-- Running the code, whose lines count from 1 in "user.lua", raises exactly the message.
function tap.refuses(code, message, what)
  local chunk, problem = load(code, "=user.lua", "t")
  if not chunk then return tap.ok(false, what or message, problem) end
  local good, got = pcall(chunk)
  return tap.ok(not good and got == message, what or message, "  got: " .. tostring(got),
    " want: " .. message)
end

function tap.done_testing()
  collectgarbage()
  collectgarbage()
  print("1.." .. run)
  if failed > 0 then error(("%d of %d checks failed"):format(failed, run), 0) end
end

return tap
