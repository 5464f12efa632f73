-- topk_routing: Experts[i, s] = the expert with the s-th greatest of the logits X[i, :], and
-- Weights[i, s] its share: exp(X[i, Experts[i, s]]), over the sum of those of all that are chosen.
--
-- The router of a mixture of experts (Shazeer et al., "Outrageously large neural networks",
-- 2017); grouped_gemm multiplies what it sends to the experts. Each round finds the greatest that
-- is left, and its expert as the least index that has it, so of equal logits the first counts.
-- At least k logits of a token must be greater than -inf, and none NaN.
--
-- sizes    m tokens, n experts
-- options  k      experts of a token, at most n (2)
--          all    the shares are of the sum over all experts, not of those that are chosen (false)
--          dtype  of X ("f32"); Weights have it, too, Experts are i32
local mr = require "millrace"
local exp, where, rowmax, rowmin, rowsum = mr.exp, mr.where, mr.rowmax, mr.rowmin, mr.rowsum

return mr.program("topk_routing", function(p)
  local m, n = p:axes("m", "n")
  local all, dtype = p:option("all", "boolean"), p.dtype or "f32"
  local slot = p:axis("k", p.k or math.min(2, n.size))  -- of a token's experts
  p:check(slot.size <= n.size, "k must be at most n")
  local X = p:input("X", {m, n}, dtype)
  local Weights, Experts = p:output("Weights", {m, slot}, dtype), p:output("Experts", {m, slot}, "i32")

  local x = p:load("load_x", X)
  local chosen = table.pack(p:task("select", function()
    local left, most, sum, share, expert = x, nil, 0, {}, {}
    for s = 1, slot.size do
      local greatest = rowmax(left, n)
      expert[s] = rowmin(where(left:eq(greatest), n:index(), n.size), n)
      left = where(n:index():eq(expert[s]), -math.huge, left)
      most = most or greatest
      share[s] = exp(greatest - most)
      sum = sum + share[s]
    end
    if all then sum = rowsum(exp(x - most), n) end
    local results = {}
    for s = 1, slot.size do
      results[2 * s - 1], results[2 * s] = (share[s] / sum):to(dtype), expert[s]
    end
    return table.unpack(results)
  end))
  for s = 1, slot.size do
    Weights:store("store_weight" .. s, chosen[2 * s - 1], {m, s - 1})
    Experts:store("store_expert" .. s, chosen[2 * s], {m, s - 1})
  end
end)
