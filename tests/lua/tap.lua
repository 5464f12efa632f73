-- tap.lua - checks that print TAP. `local tap = dofile(...)`, at the end tap.done_testing().
local tap = {}
local run, failed = 0, 0

-- The line of the test file that called, as "file:line".
local function caller_location()
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

-- The further arguments are printed if the check fails.
function tap.ok(good, what, ...)
  run = run + 1
  print(("%s %d - %s"):format(good and "ok" or "not ok", run, what))
  if good then return true end
  failed = failed + 1
  comment("failed at " .. caller_location())
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

-- The call raises a message that matches the Lua pattern.
function tap.fails(what, pattern, f, ...)
  local done, e = pcall(f, ...)
  return tap.like(done and "no error" or tostring(e), pattern, what)
end

-- The function raises a message that has each of the texts: a check for each.
function tap.fails_with(what, f, ...)
  local good, message = pcall(f)
  for _, part in ipairs{...} do
    tap.ok(not good and tostring(message):find(part, 1, true) ~= nil, ("%s: %s"):format(what, part), tostring(message))
  end
end

local function read_all(path)
  local file = io.open(path)
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

local function write_all(path, text)
  local file = assert(io.open(path, "w"))
  assert(file:write(text))
  file:close()
end

-- What `diff` says of a golden file and the text, at most 60 lines.
local function difference(path, text)
  local got = os.tmpname()
  write_all(got, text)
  local pipe = io.popen(("diff -u --label '%s' --label got '%s' '%s' 2>&1 | head -n 60"):format(path,
    read_all(path) and path or "/dev/null", got))
  local lines = pipe:read "a"
  pipe:close()
  os.remove(got)
  return (lines:gsub("\n$", ""))
end

-- The text is that of the file. With BLESS=1 in the environment the file is written first.
function tap.golden(path, text, what)
  if os.getenv "BLESS" then write_all(path, text) end
  return read_all(path) == text and tap.ok(true, what) or tap.ok(false, what, difference(path, text))
end

function tap.done_testing()
  collectgarbage()
  collectgarbage()
  print("1.." .. run)
  if failed > 0 then error(("%d of %d checks failed"):format(failed, run), 0) end
end

return tap
