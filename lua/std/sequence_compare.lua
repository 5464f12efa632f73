-- sequence_compare.lua - mr.compare of two timelines of a sequence: kernel by kernel.

local core = require "millrace.core"
local record = require("millrace.record").of
local raise, show, entry = core.raise, core.show, core.entry

local row_fields = record("row of a comparison of sequences", "kernel first second ratio")
local methods = {}

local comparison

-- c:text([{width=, ascii=, color=}])
methods.text = entry(function(c, options)
  if getmetatable(c) ~= comparison then raise("text: comparison of sequences expected, got " .. show(c)) end
  return core.sequence_pair_text(c.first, c.second, c.names[1], c.names[2], options)
end)

comparison = record("comparison of sequences", "first second names rows ratio", {methods = methods,
  __name = "millrace.sequence_comparison",
  __tostring = function(c) return (core.sequence_pair_text(c.first, c.second, c.names[1], c.names[2]):gsub("\n$", "")) end})

-- names: what the two are called
return function(one, other, names)
  if one.plan.sequence.name ~= other.plan.sequence.name then
    raise(("compare: the timelines are of different sequences: %s and %s"):format(one.plan.sequence.name, other.plan.sequence.name))
  end
  local rows, of = {}, {}
  for _, k in ipairs(one.kernels) do
    local r = setmetatable({kernel = k.name, first = k}, row_fields)
    rows[#rows + 1], of[k.name] = r, r
  end
  for _, k in ipairs(other.kernels) do
    local r = of[k.name]
    if r then
      r.second, r.ratio = k, k.seconds / r.first.seconds
    else
      rows[#rows + 1] = setmetatable({kernel = k.name, second = k}, row_fields)
    end
  end
  return setmetatable({first = one, second = other, names = names, rows = rows, ratio = other.seconds / one.seconds}, comparison)
end
