-- on_host.lua - kernels on the CPU against the reference.
local core = require "millrace.core"

local M = {}

-- Worst relative error over seeds from 1, of which every second one watches accesses; and the first report if there is one.
function M.worst(plan, seeds)
  local kernel, bound = plan:compile{target = "host"}, plan.graph.program
  local inputs = bound:inputs{seed = 5}
  local want, worst = bound:reference(inputs), 0
  for seed = 1, seeds do
    local got, report = core.host_run(kernel, inputs, {seed = seed, race = seed % 2 == 0, limit = 600})
    if report then return math.huge, ("seed %d: %s"):format(seed, report) end
    for _, t in ipairs(bound.tensors) do
      if t.role == "output" then
        local _, relative = got[t.name]:max_error(want[t.name])
        worst = relative <= worst and worst or relative          -- a NaN stays
      end
    end
  end
  return worst
end

return M
