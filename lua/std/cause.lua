-- cause.lua - the causes of tl.blame in words.

local cause = {}

-- Is the lane at work itself, or kept from it by nobody? part: {cause=, on=, unit=}.
function cause.is_busy(part)
  return part.cause == "issue" or part.cause == "power" or part.cause == "pipe" and not part.on
end

-- "products of its own (mma_qk)": what it is to wait for that. own: `on` is on the same lane.
function cause.awaited(part, own)
  local on = part.on or "others"
  if part.cause == "pipe" and own then return ("products of its own (%s)"):format(on) end
  if part.cause == "pipe" then return ("%s, at work on %s"):format(part.unit, on) end
  if part.cause == "shared" then return ("shared memory, with operands of %s"):format(on) end
  if part.cause == "l2" then return ("L2, with %s"):format(on) end
  if part.cause == "global" then return ("device memory, with %s"):format(on) end
  if part.cause == "slot" then return ("a free slot, after %s"):format(on) end
  if part.cause == "turn" then return ("its turn after %s"):format(on) end
  return part.cause == "sync" and ("news of %s"):format(on) or on
end

-- "softmax for products of its own (mma_qk)", "softmax on cuda", "softmax issuing"
function cause.text(task, part, own)
  if not cause.is_busy(part) then return ("%s for %s"):format(task, cause.awaited(part, own)) end
  if part.cause == "pipe" then return ("%s on %s"):format(task, part.unit) end
  return ("%s %s"):format(task, part.cause == "issue" and "issuing" or "by power")
end

return cause
