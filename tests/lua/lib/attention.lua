-- attention.lua - what operators of tests/operators that compute attention online share.
local mr = require "millrace"
local max, exp2 = mr.max, mr.exp2

local M = {}

-- The running maximum, sum and output of rows of m, of width d; tag distinguishes several.
function M.carries(p, m, d, tag)
  tag = tag or ""
  return p:carry("mx" .. tag, {m}, -1e30), p:carry("l" .. tag, {m}, 0), p:carry("o" .. tag, {m, d}, 0)
end

-- One step over a tile of keys n: score() gives scores to base 2, pv(pr) the product of their weights with values.
function M.online(p, tag, mx, l, o, n, score, pv)
  local pr, alpha = p:task("softmax" .. tag, function()
    local s = score()
    local new = max(mx, s:rowmax(n))
    local pr, alpha = exp2(s - new), exp2(mx - new)
    l:set(l * alpha + pr:rowsum(n))
    mx:set(new)
    return pr:to "bf16", alpha
  end)
  p:task("rescale" .. tag, function() o:set(o * alpha) end)
  o:add(pv(pr))
end

return M
