-- planned.lua - records about a plan that was found. Each reading of the field `plan` gives a copy, so that the caller
-- cannot change the plan that the other fields describe.

local record = require "millrace.record"

-- Arguments as of record. Returns the metatable, and a table in which the plan of each record r is kept: plans[r].
return function(kind, names, meta)
  local plans = setmetatable({}, {__mode = "k"})
  function meta.__pairs(r)
    local all = {plan = r.plan}
    for key, value in next, r do all[key] = value end
    return next, all
  end
  return record(kind, names, meta, function(r, key)
    if key == "plan" then return plans[r]:copy() end
  end), plans
end
