-- problems.lua - plan:check(), and its problems as text: in a list, and in the text of a plan.

local core = require "millrace.core"
local repairs = require "millrace.repairs"
local entry = core.entry

-- plan:table and tostring(plan); without problems if they cannot be found.
local function plan_text(what)
  return entry(function(plan, options)
    local good, legal, list = core.try(repairs.check, plan)
    return core[what](plan, options, good and not legal and repairs.shown(list) or nil)
  end)
end

---- those of a sequence's plan -------------------------------------------------------------------

local function of_sequence(p) return rawget(p, "call") ~= nil end

-- Each with the other one of two statements that do not agree.
local function with_others(list)
  local out = {}
  for i, p in ipairs(list) do
    local other = p.other_location ~= p.location and p.other_location
    out[i] = {code = p.code, hint = p.hint, location = p.location, message = other and ("%s; the other statement is %s"):format(p.message, other)
      or p.message}
  end
  return out
end

return function()
  core.method("millrace.plan", "check", entry(repairs.check))
  core.method("millrace.plan", "table", plan_text "plan_table")
  core.shown("millrace.plan", plan_text "plan_tostring")
  core.shown("millrace.problems", entry(function(list)
    if list[1] and of_sequence(list[1]) then return core.problems_text(with_others(list)) end
    return core.problems_text(repairs.shown(list), nil, repairs.joined(repairs.notes(list)))
  end))
  core.shown("millrace.sequence_problem", entry(function(p) return core.problems_text(with_others{p}) end))
  core.shown("millrace.problem", entry(function(p) return core.problems_text{p} end))
  core.illegal(repairs.first)
  return {}
end
