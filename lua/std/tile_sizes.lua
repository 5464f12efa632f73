-- tile_sizes.lua - mr.any: sizes of axes that are known at launch.

local core = require "millrace.core"
local draft = require "millrace.draft"
local objects = require "millrace.tile_objects"
local raise, hint, show, expect = core.raise, core.hint, core.show, core.expect
local class, new, ANY <const> = objects.class, objects.new, objects.ANY

local function no_number()
  raise "a size that is known at launch is no number to compute with; declare an axis of it, and compute with axis:index()"
end

class(ANY, "size", {}, {
  __add = no_number, __sub = no_number, __mul = no_number, __div = no_number, __idiv = no_number, __mod = no_number,
  __unm = no_number, __pow = no_number, __lt = no_number, __le = no_number, __concat = no_number,
  __index = function() return nil end,                  -- no typical ones
  __tostring = function(any) return "mr.any" .. draft.literal(draft.copy(any)) end,
})

-- mr.any{max=, multiple=1, typical={...}}, or mr.any{like="m"}
local function any(given)
  local known = {"max", "multiple", "typical", "like"}
  expect(type(given) == "table" and getmetatable(given) == nil, "any", "table {max=, multiple=, typical=}", given)
  for _, key in ipairs(draft.keys(given)) do
    local found = false
    for _, name in ipairs(known) do found = found or name == key end
    if not found then
      local near = hint(key, known)
      raise(("any: unknown option '%s'%s"):format(key, near ~= "" and near or " (known: " .. table.concat(known, ", ") .. ")"))
    end
  end
  if given.like ~= nil then
    expect(type(given.like) == "string", "any: like", "name of an axis", given.like)
    if given.max or given.multiple or given.typical then
      raise(("any: max, multiple and typical sizes are those of axis '%s'; leave them out"):format(given.like))
    end
    return new(ANY, {like = given.like})
  end
  local function positive(x, what)
    local n = core.integer(x)
    if not n or n < 1 then raise(("any: %s must be an integer of at least 1, got %s"):format(what, show(x))) end
    return n
  end
  local multiple, typical, most = positive(given.multiple or 1, "multiple"), {}, 0
  if given.typical ~= nil and type(given.typical) ~= "table" then
    raise(("any: typical is a list of sizes, as in typical={%s}, got %s"):format(core.integer(given.typical) or 512, show(given.typical)))
  end
  for i, n in ipairs(given.typical or {}) do
    typical[i] = positive(n, "a typical size")
    most = math.max(most, n)
  end
  if given.max == nil and most == 0 then raise "any: max is missing, the largest size that a kernel is for" end
  local max = given.max == nil and most or positive(given.max, "max")
  if max % multiple > 0 then raise(("any: max is %d, which is no multiple of %d"):format(max, multiple)) end
  for _, n in ipairs(typical) do
    if n > max or n % multiple > 0 then
      raise(("any: a typical size is %d; it is a multiple of %d, and max, %d, at most"):format(n, multiple, max))
    end
  end
  return new(ANY, {max = max, multiple = multiple, typical = #typical > 0 and typical or nil})
end

return any
