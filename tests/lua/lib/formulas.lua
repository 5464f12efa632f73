-- formulas.lua - what the formulas of tests/operators share.
local M = {}

-- The sum over n from..to of f(n).
function M.sum(from, to, f)
  local total = 0
  for n = from, to do total = total + f(n) end
  return total
end

-- The sum of f(0) to f(n - 1).
function M.sum_below(f, n) return M.sum(0, n - 1, f) end

-- The greatest of f(0) to f(n - 1).
function M.greatest_below(f, n)
  local greatest = -math.huge
  for i = 0, n - 1 do greatest = math.max(greatest, f(i)) end
  return greatest
end

-- f(...), computed once for the same arguments.
function M.once(f)
  local made = {}
  return function(...)
    local key = table.concat({...}, " ")
    made[key] = made[key] or f(...)
    return made[key]
  end
end

-- The axes of sequences in chunks of 64, or of the option `chunk`: batch, position, head, chunk, and a chunk's positions in two roles;
-- behind them the position in the sequence of each role.
function M.chunk_axes(p)
  local b, s, h = p:axes("b", "s", "h")
  local chunk = p:option("chunk", "integer", 64)
  p:check(s.size % chunk == 0, "s must be a multiple of chunk")
  local c, i, j = p:axis("c", s.size // chunk), p:axis("i", chunk), p:axis("j", chunk)
  return b, s, h, c, i, j, c * chunk + i, c * chunk + j
end

return M
