-- options.lua - tables that calls take: of options, and of things by name.

local core = require "millrace.core"
local raise, show, hint, expect = core.raise, core.show, core.hint, core.expect

local options = {}

-- The table that was given, or an empty one; it has no other names than those known.
function options.check(o, what, known)
  expect(o == nil or type(o) == "table", what, "table of options", o)
  for key in pairs(o or {}) do
    local found = false
    for _, name in ipairs(known) do found = found or name == key end
    if not found then
      local near = hint(key, known)
      raise(("%s: unknown option %s%s"):format(what, show(key), near ~= "" and near
        or (" (known: %s)"):format(table.concat(known, ", "))))
    end
  end
  return o or {}
end

-- What a method is given as (device, options), of which both may be left out: the device, which may be its name, and the options.
function options.device(mr, device, given)
  if type(device) == "table" and given == nil and not core.is(device, "millrace.device") then device, given = nil, device end
  if type(device) == "string" then device = mr.device(device) end
  return device or mr.device(), given
end

-- An option that is a number of at least 0.
function options.number(o, what, key, default)
  local v = o[key]
  if v == nil then return default end
  if type(v) ~= "number" or v ~= v or v < 0 then
    raise(("%s: %s must be a number of at least 0, not %s"):format(what, key, show(v)))
  end
  return v
end

-- Options that are seconds, if they are there.
function options.seconds(o, what, keys)
  for _, key in ipairs(keys) do
    local v = o[key]
    if v ~= nil and not (math.type(v) and v > 0) then
      raise(("%s: %s must be a number of seconds, got %s"):format(what, key, show(v)))
    end
  end
end

-- Keys of a table of things: those of its list by number first, the others by the alphabet.
function options.names(given, what)
  local names, others, n = {}, {}, rawlen(given)        -- a __len may say anything
  for i = 1, n do names[i] = i end
  for key in pairs(given) do
    if type(key) == "string" then
      others[#others + 1] = key
    elseif not (math.type(key) == "integer" and key >= 1 and key <= n) then
      raise(what .. ": names are strings, got " .. show(key))
    end
  end
  table.sort(others)
  return table.move(others, 1, #others, #names + 1, names)
end

return options
