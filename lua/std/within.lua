-- within.lua - are outputs as right as their types allow?

-- Relative error that an output's element type allows, and what it was computed in.
local tolerance = {bf16 = 1e-2, f16 = 2e-3, f32 = 5e-3, tf32 = 5e-3, f64 = 1e-12, e4m3 = 0.1, e5m2 = 0.2}

-- within(bound, got, want) -> right?, the relative error (Frobenius), the largest one, the relative one that is
-- allowed
return function(bound, got, want)
  local right, relative, max_abs, allowed = true, 0, 0, math.huge
  for _, t in ipairs(bound.tensors) do
    if t.role == "output" then
      local largest, share = got[t.name]:max_error(want[t.name])
      if not (largest <= max_abs) then max_abs = largest end        -- NaN stays
      if not (share <= relative) then relative = share end
      local most = tolerance[t.dtype] or 1e-2
      allowed = math.min(allowed, most)
      if not (share <= most) then right = false end
    end
  end
  return right, relative, max_abs, allowed
end
