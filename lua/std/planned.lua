-- planned.lua - records about a plan that was found: `plan` is a copy at each reading, so that nobody changes what
-- the other fields are about.

local record = require "millrace.record"

-- A metatable as record gives it, and where the plan of each record goes: plans[r].
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
