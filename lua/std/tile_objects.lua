-- tile_objects.lua - the kinds of objects of the tile language, for tile.lua and what it consists of.
--
-- Objects are tables whose metatable shows only the name of their kind, so that getmetatable(x) says what x is and no
-- script changes how it behaves. `id` is the builder's, `owner` the p of the program that the object belongs to.

local core = require "millrace.core"
local draft = require "millrace.draft"
local raise, hint, entry = core.raise, core.hint, core.entry

local objects = {
  P = "millrace.p", PROGRAM = "millrace.tile_program", AXIS = "millrace.axis", INDEX = "millrace.index", TENSOR = "millrace.tensor",
  VALUE = "millrace.value", CARRY = "millrace.carry", ANY = "millrace.any",
  building = nil,                                       -- the p of the program whose function runs, if one does
}
local VALUE <const>, CARRY <const> = objects.VALUE, objects.CARRY

-- Keys of what p keeps to itself; every other key is an option or a method.
for _, key in ipairs{"BUILDER", "GIVEN", "READ", "LOCATION", "NAME", "LOOPS", "SIZES", "DEFAULTS", "TASK", "ALIKE"} do objects[key] = {} end

-- Lua ends what is nested deeper than 200 calls through C, and only says "C stack overflow".
local DEEPEST <const> = 150
local depth = 0
local leave = core.at_close(function() depth = depth - 1 end)

function objects.nest(what)
  if depth == DEEPEST then
    raise(("%s: programs, and the blocks inside, are nested more than %d deep; does one bind itself?"):format(what, DEEPEST))
  end
  depth = depth + 1
  return leave
end

local metatables = {}
local functions = {}                                    -- of mr: mr.max and the like
objects.functions = functions

-- What others call the reductions along an axis.
local along <const> = {max = "rowmax", amax = "rowmax", reduce_max = "rowmax", rowmax = "rowmax",
  sum = "rowsum", reduce_sum = "rowsum", rowsum = "rowsum"}
objects.along = along

-- name: as messages say it. Methods become C functions that call them, because Lua
-- forgets who made a tail call of a Lua function.
function objects.class(kind, name, methods, meta)
  for key, method in pairs(methods) do methods[key] = entry(method) end
  meta.__name, meta.__metatable = name, kind
  meta.methods = methods                                -- for completion
  meta.__index = meta.__index or function(_, key)
    local method = methods[key]
    if method == nil and type(key) == "string" then
      local reduction = (kind == VALUE or kind == CARRY) and along[key]
      if reduction then
        raise(("%s has no '%s'; along an axis it is mr.%s(x, axis)%s"):format(name, key, reduction,
          functions[key] and (", of several values mr.%s(x, ...)"):format(key) or ""))
      end
      if (kind == VALUE or kind == CARRY) and functions[key] then
        raise(("%s has no '%s', which takes several values; write mr.%s(x, ...)"):format(name, key, key))
      end
      raise(("%s has no '%s'%s"):format(name, key, hint(key, draft.keys(methods))))
    end
    return method
  end
  metatables[kind] = meta
end

-- Is it the same value? nan is nan.
function objects.same(x, y) return rawequal(x, y) or x ~= x and y ~= y end

function objects.new(kind, object) return setmetatable(object, metatables[kind]) end

return objects
