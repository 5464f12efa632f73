-- in_order.lua - a plan of all sTasks in the program's order, on the lanes and units that Append takes by default.
local mr = require "millrace"

-- warps: of the lane that computes. rings: versions by buffer.
return function(device, bound, tile, warps, rings)
  local plan = mr.plan(bound:graph{tile = tile}, device)
  plan:lane("c0", {warps = warps})
  plan:buffers(rings or {})
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  return plan
end
