-- tensors.lua - inputs of tests that are compared with formulas in plain Lua.
local mr = require "millrace"

local M = {}

-- An array and a function of positions from 0, which is 0 outside.
function M.tensor(dtype, shape, f)
  local a = mr.array(dtype, shape, function(...)
    local at = {...}
    for i = 1, #at do at[i] = at[i] - 1 end
    return f(table.unpack(at))
  end)
  return a, function(...)
    local at = {...}
    for i = 1, #at do
      if at[i] < 0 or at[i] >= shape[i] then return 0 end
      at[i] = at[i] + 1
    end
    return a:get(table.unpack(at))
  end
end

-- A number that differs from position to position.
function M.mixed(...)
  local x = 17
  for _, v in ipairs{...} do x = (x * 31 + v * 7 + 3) % 101 end
  return x / 64 - 0.75
end

return M
