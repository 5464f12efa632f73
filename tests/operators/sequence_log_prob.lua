-- LogP[b] = sum over t of X[b,t,Token[b,t]] - log(sum over n of exp(X[b,t,n])), of the tokens of the answer, those that are not
-- below 0: what a model gives a chosen and a rejected answer, for losses of preference (DPO, GRPO; TRL).
local mr = require "millrace"

local LOG2E <const> = 1.4426950408889634

return {
  program = mr.program("sequence_log_prob", function(p)
    local b, t, n = p:axes("b", "t", "n")
    local X, Token, LogP = p:input("X", {b, t, n}), p:input("Token", {b, t}, "i32"), p:output("LogP", {b}, "f32")
    local Each = p:output("Each", {b, t}, "f32")              -- of each token
    p:phase("zero", function()
      LogP:store(p:task("zeros", function() return b:index():to "f32" * 0 end))
    end)
    p:phase("add", function()
      p:batch(b)
      local token = p:load("load_token", Token)
      local chosen = p:load("load_chosen", X, {b, t, token})
      local most, sum = p:carry("most", {t}, -math.huge), p:carry("sum", {t}, 0)
      p:loop(n, function()
        local x = p:load("load_x", X)
        p:task("online", function()
          local new = mr.max(most, x:rowmax(n))
          sum:set(sum * mr.exp2((most - new) * LOG2E) + mr.exp2((x - new) * LOG2E):rowsum(n))
          most:set(new)
        end)
      end)
      local each, all = p:task("log_prob", function()
        local each = mr.where(token:ge(0), chosen - most - mr.log(sum), 0)
        return each, each:rowsum(t)
      end)
      Each:store("store_each", each)
      LogP:add("add", all)
    end)
  end),
  small = {{b = 2, t = 64, n = 128}, {b = 3, t = 19, n = 200}},
  usual = {{b = 8, t = 1024, n = 128256}},
  fill = {Token = function(sizes, b, t) return t < 5 and -1 or (b * 31 + t * 7919) % sizes.n end},
  formula = function(t, sizes)
    local function each(b, i)
      if t.Token(b, i) < 0 then return 0 end
      local sum = 0
      for j = 0, sizes.n - 1 do sum = sum + math.exp(t.X(b, i, j)) end
      return t.X(b, i, t.Token(b, i)) - math.log(sum)
    end
    return {Each = each, LogP = function(b)
      local total = 0
      for i = 0, sizes.t - 1 do total = total + each(b, i) end
      return total
    end}
  end,
}
