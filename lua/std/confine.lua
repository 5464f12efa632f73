-- confine.lua - run code that came from elsewhere: what it sees, and for how long.

local core = require "millrace.core"

local confine = {}

-- Steps of Lua, and bytes in addition to what is in use. A program or a plan needs some thousand steps.
local STEPS <const>, BYTES <const> = 5000000, 1 << 28

-- What f(...) returns. It is ended when it takes too many steps or too much memory; its errors are raised again.
function confine.call(what, f, ...)
  local thread = coroutine.create(f)
  debug.sethook(thread, function()
    core.raise(("%s: it takes more than %d million steps"):format(what, STEPS // 1000000))
  end, "", STEPS)
  local cap, used = 0, 0
  local _ <close> = core.at_close(function() core.cap_memory(cap) end)
  cap, used = core.cap_memory(0)
  local limited = cap == 0 or used + BYTES < cap
  core.cap_memory(limited and used + BYTES or cap)
  local result = table.pack(coroutine.resume(thread, ...))
  core.cap_memory(cap)
  coroutine.close(thread)                               -- after an error: ends what is to be closed
  if result[1] then return table.unpack(result, 2, result.n) end
  if limited and tostring(result[2]):find("not enough memory", 1, true) then
    collectgarbage()
    core.raise(("%s: it takes more than %d MiB"):format(what, BYTES >> 20))
  end
  error(result[2], 0)
end

-- Functions of strings that take no longer than the text that they make.
confine.STRINGS = {"format", "sub", "upper", "lower", "len", "byte", "char", "reverse"}

local function copy(t, ...)
  local out = {}
  for key, value in pairs(t) do out[key] = value end
  for _, name in ipairs{...} do out[name] = nil end
  return out
end

-- The globals of a tile program: the tile language, and what of Lua computes and changes nothing.
function confine.language()
  local tile = require "millrace.tile"
  local mr, strings = copy(tile.functions), {}
  mr.program = tile.program
  for _, name in ipairs(confine.STRINGS) do strings[name] = string[name] end
  return {
    mr = mr, assert = assert, error = error, ipairs = ipairs, pairs = pairs, select = select, tonumber = tonumber, tostring = tostring,
    type = type, math = copy(math, "random", "randomseed"), string = strings, table = copy(table),
    require = function(name)
      if name == "millrace" then return mr end
      core.raise(("a program may only require \"millrace\", not %s"):format(core.show(name)))
    end,
  }
end

return confine
