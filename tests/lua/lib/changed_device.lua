-- changed_device.lua - a device that comes with Millrace, with changes of its file.
local mr = require "millrace"
local core = require "millrace.core"

-- changes: by Lua pattern, what replaces the only match.
return function(name, changes)
  local file = assert(io.open(("%s/hw/%s.lua"):format(core.home(), name)))
  local text = file:read "a"
  file:close()
  for old, new in pairs(changes) do
    local n
    text, n = text:gsub(old, new)
    assert(n == 1, old)
  end
  local path = os.tmpname()
  os.remove(path)
  path = path .. ".lua"
  file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
  local device = mr.device(path)
  os.remove(path)
  return device
end
