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

return function()
  core.method("millrace.plan", "check", entry(repairs.check))
  core.method("millrace.plan", "table", plan_text "plan_table")
  core.shown("millrace.plan", plan_text "plan_tostring")
  core.shown("millrace.problems", entry(function(list) return core.problems_text(repairs.shown(list), nil, repairs.joined(repairs.notes(list))) end))
  core.shown("millrace.problem", entry(function(p) return core.problems_text{p} end))
  core.illegal(repairs.first)
  return {}
end
