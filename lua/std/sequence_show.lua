-- sequence_show.lua - timelines of sequences as text.

local core = require "millrace.core"
local entry, expect = core.entry, core.expect

return function()
  core.method("millrace.sequence_timeline", "text", entry(function(tl, options)
    expect(core.is(tl, "millrace.sequence_timeline"), "text", "timeline of a sequence", tl)
    return core.sequence_timeline_text(tl, options)
  end))
  core.shown("millrace.sequence_timeline", function(tl) return (core.sequence_timeline_text(tl):gsub("\n$", "")) end)
  core.field("millrace.sequence_timeline", "utilization", core.sequence_utilization)
  core.field("millrace.sequence_timeline", "device", function(tl) return tl.plan.device end)
  return {}
end
