-- cross_entropy: Loss[m] = Lse[m] - X[m, Target[m]], the loss of each row of logits by its target,
-- where Lse[m] = log(sum over n of exp(X[m,n])).
--
-- One pass over the logits: the maximum of a row and the sum of exponentials below it are corrected
-- from tile to tile (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018).
-- The target's logit is read by its index. A target that is no column, such as -100, means that the
-- row does not count: its loss is 0.
--
-- sizes    m rows, n classes
-- options  smoothing  the share of the loss that is the mean over all classes instead (0)
--          dtype      of X ("bf16")
local mr = require "millrace"
local exp2, where, rowmax, rowsum = mr.exp2, mr.where, mr.rowmax, mr.rowsum

local LOG2E <const> = 1.4426950408889634

return mr.program("cross_entropy", function(p)
  local m, n = p:axes("m", "n")
  local wide = p.dtype == "f64" and "f64" or "f32"
  local smoothing = p:option("smoothing", "number", 0)
  p:check(smoothing >= 0 and smoothing <= 1, "smoothing must be from 0 to 1")
  local X, Target = p:input("X", {m, n}), p:input("Target", {m}, "i32")
  local Loss, Lse = p:output("Loss", {m}, wide), p:output("Lse", {m}, wide)

  local target = p:load("load_target", Target)
  local chosen = p:load("load_chosen", X, {m, target})
  local mx, l = p:carry("mx", {m}, -math.huge), p:carry("l", {m}, 0)
  local total = smoothing > 0 and p:carry("total", {m}, 0)
  p:loop(n, function()
    local x = p:load("load_x", X)
    p:task("online", function()
      local new = mr.max(mx, rowmax(x, n))
      l:set(l * exp2((mx - new) * LOG2E) + rowsum(exp2((x - new) * LOG2E), n))
      mx:set(new)
      if total then total:add(rowsum(x, n)) end
    end)
  end)
  local loss, lse = p:task("loss", function()
    local lse = mx + mr.log(l)
    local loss = lse - chosen
    if total then loss = loss + smoothing * (chosen - total / n.size) end
    return where(target:ge(0) & target:lt(n.size), loss, 0):to(wide), lse:to(wide)
  end)
  Loss:store("store_loss", loss)
  Lse:store("store_lse", lse)
end)
