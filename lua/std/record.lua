-- record.lua - metatables of plain tables that know their fields: where names are strict, reading
-- another one is an error. Optional fields are named, too, and are nil where they are not set.

local core = require "millrace.core"

local record = {}

-- names: "one two three". meta: what else the metatable has; its `methods`, if any, are functions by
-- name; its `aliases` are deprecated names of fields: {old = "new"}. getter(table, name): for fields that are
-- not in the table itself.
function record.of(kind, names, meta, getter)
  meta = meta or {}
  local known, methods, aliases = {}, meta.methods or {}, meta.aliases or {}
  meta.fields = {}                                      -- for completion, as are the methods
  for name in names:gmatch "%S+" do meta.fields[name], known[name] = true, true end
  for name in pairs(methods) do known[name] = true end
  for name in pairs(aliases) do known[name] = true end
  meta.__index = core.known(kind, known, function(t, name)
    if methods[name] then return methods[name] end
    if aliases[name] then return t[aliases[name]] end
    if getter then return getter(t, name) end
  end)
  return meta
end

-- The same for records about a plan that was found. Each reading of the field `plan` gives a copy, so that the caller
-- cannot change the plan that the other fields describe. Such a record also has its program, device and tile, and those fields
-- of its timeline that `of_timeline` names. Returns the metatable, and a table in which the plan of each record r is kept: plans[r].
function record.of_plan(kind, names, meta, of_timeline)
  local from = {}
  for name in (of_timeline or ""):gmatch "%S+" do from[name] = true end
  local plans = setmetatable({}, {__mode = "k"})
  function meta.__pairs(r)
    local all = {plan = r.plan}
    for key, value in next, r do all[key] = value end
    return next, all
  end
  return record.of(kind, ("%s program device tile %s"):format(names, of_timeline or ""), meta, function(r, key)
    if key == "plan" then return plans[r]:copy() end
    if key == "program" then return plans[r].graph.program end
    if key == "device" or key == "tile" then return plans[r][key] end
    if from[key] then return r.timeline[key] end
  end), plans
end

return record
