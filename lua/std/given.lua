-- given.lua - what bind was given: sizes and options by name, the kinds that options have, and which of them were read.

local core = require "millrace.core"
local draft = require "millrace.draft"
local raise, hint, show, expect = core.raise, core.hint, core.show, core.expect

local given = {}
given.__index = given

local kinds <const> = {
  number = {"a number", function(v) return math.type(v) and v - v == 0 and v end},
  integer = {"an integer", function(v) return type(v) == "number" and core.integer(v) end},
  boolean = {"true or false", function(v) return type(v) == "boolean" and v end},
  string = {"a string", function(v) return type(v) == "string" and v end},
}

local function check_kind(name, kind)
  expect(type(name) == "string", "option", "name", name)
  expect(kinds[kind], "option", '"number", "integer", "boolean" or "string"', kind)
end

-- An option: the value that bind was given, which must be of the kind, or the default if that is nil. An option that is no boolean may
-- also be false, which stands for none: then it is the default, too. of: the name of what is bound, for messages.
local function option(of, name, kind, value, default, location)
  if value == nil or value == false and kind ~= "boolean" then return default end
  local is = kinds[kind][2](value)
  if is or value == false then return is end
  if getmetatable(value) == "millrace.any" then
    raise(("%s: option %s must be %s: only sizes of axes are left to the launch"):format(of, name, kinds[kind][1]), location)
  end
  raise(("%s: %s must be %s, got %s"):format(of, name, kinds[kind][1], show(value)), location)
end

-- A value, or nil.
function given:get(key)
  if type(key) == "string" then self.read[key] = true end
  return self.values[key]
end

-- A size, which must be there.
function given:size(name)
  local v = self:get(name)
  if v == nil then raise(("%s: size '%s' is missing"):format(self.name, name), self.location) end
  local n = core.integer(v)
  if not n or n < 1 then
    raise(("%s: size '%s' must be an integer of at least 1, got %s"):format(self.name, name, show(v)), self.location)
  end
  return n
end

function given:option(name, kind, default)
  check_kind(name, kind)
  return option(self.name, name, kind, self:get(name), default, self.location)
end

function given:check(condition, message)
  if condition then return condition end
  raise(("%s: %s"):format(self.name, message or "these sizes do not fit"), self.location)
end

-- A key that was not read is a mistake, known only after the function has run. name: of what is bound; values, read: by key.
local function check_read(name, values, read, location)
  for _, key in ipairs(draft.keys(values)) do
    if not read[key] then
      local known = draft.keys(read)
      local near = hint(key, known)
      raise(("bind: unknown size or option '%s' of '%s'%s"):format(key, name, near ~= "" and near
        or (" (known: %s)"):format(table.concat(known, ", "))), location)
    end
  end
end

function given:check_read() check_read(self.name, self.values, self.read, self.location) end

-- Are they given by name?
local function check_keys(values)
  expect(type(values) == "table", "bind", "table of sizes", values)
  for key in pairs(values) do
    if type(key) ~= "string" then raise("bind: sizes and options are given by name, as in bind{m=4096, n=4096}") end
  end
end

-- name: of what is bound, for messages; location: of the call of bind.
local function new(name, values, location)
  check_keys(values)
  local copy = {}
  for key, value in pairs(values) do copy[key] = value end
  return setmetatable({name = name, values = copy, read = {}, location = location}, given)
end

return {new = new, check_keys = check_keys, check_read = check_read, check_kind = check_kind, option = option}
