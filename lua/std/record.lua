-- record.lua - metatables of plain tables that know their fields: where names are strict, reading
-- another one is an error. Optional fields are named, too, and are nil where they are not set.

local core = require "millrace.core"

-- names: "one two three". meta: what else the metatable has. getter(table, name): for fields that
-- are not in the table itself.
return function(kind, names, meta, getter)
  meta = meta or {}
  meta.fields = {}                                      -- for completion
  for name in names:gmatch "%S+" do meta.fields[name] = true end
  meta.__index = core.known(kind, meta.fields, getter)
  return meta
end
