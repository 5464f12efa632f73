-- Loss[m] = log(sum over v of exp(X[m] . W[v])) - X[m] . W[Target[m]]: the last layer of a language model and its loss, for
-- which no logits are stored (fused linear cross entropy). The vocabulary is divided into
-- s parts, so that there are tiles for all of the device. Targets below 0 do not count.
local mr = require "millrace"

local LOG2E <const> = 1.4426950408889634

return {
  program = mr.program("linear_cross_entropy", function(p)
    local m, v, k = p:axes("m", "v", "k")
    local s = p:axis("s", p.s or 1)
    local part = p:axis("part", v.size // s.size)
    local X, W, Target = p:input("X", {m, k}), p:input("W", {v, k}), p:input("Target", {m}, "i32")
    local Loss = p:output("Loss", {m}, "f32")
    local Most, Sum, Chosen = p:temp("Most", {s, m}, "f32"), p:temp("Sum", {s, m}, "f32"), p:temp("Chosen", {s, m}, "f32")
    p:phase("parts", function()
      p:batch(s)
      local target = p:load("load_target", Target)
      local most, sum, chosen = p:carry("most", {m}, -math.huge), p:carry("sum", {m}, 0), p:carry("chosen", {m}, 0)
      p:loop(part, function()
        local logits = p:carry("logits", {m, part}, 0)
        p:loop(k, function()
          logits:add(p:mma("mma", p:load("load_x", X), p:load("load_w", W, {s * part.size + part, k})))
        end)
        p:task("online", function()
          local new = mr.max(most, logits:rowmax(part))
          sum:set(sum * mr.exp2((most - new) * LOG2E) + mr.exp2((logits - new) * LOG2E):rowsum(part))
          chosen:add(mr.where((part:index() + s:index() * part.size):eq(target), logits, 0):rowsum(part))
          most:set(new)
        end)
      end)
      Most:store("store_most", most)
      Sum:store("store_sum", sum)
      Chosen:store("store_chosen", chosen)
    end)
    p:phase("combine", function()
      local target = p:load("load_t", Target)
      local most, sum, chosen = p:load("load_most", Most), p:load("load_sum", Sum), p:load("load_chosen", Chosen)
      Loss:store(p:task("loss", function()
        local new = most:rowmax(s)
        local lse = new + mr.log((sum * mr.exp2((most - new) * LOG2E)):rowsum(s))
        return mr.where(target:ge(0), lse - chosen:rowsum(s), 0)
      end))
    end)
  end),
  small = {{m = 64, v = 256, k = 64, s = 2}, {m = 40, v = 120, k = 72}},
  usual = {{m = 4096, v = 128256, k = 4096, s = 4}, {m = 8192, v = 32000, k = 4096, s = 2}},
  fill = {Target = function(sizes, i) return i % 5 == 3 and -100 or i * 7919 % sizes.v end},
  formula = function(t, sizes)
    return {Loss = function(i)
      if t.Target(i) < 0 then return 0 end
      local logits, most, sum = {}, -math.huge, 0
      for v = 0, sizes.v - 1 do
        local x = 0
        for k = 0, sizes.k - 1 do x = x + t.X(i, k) * t.W(v, k) end
        logits[v], most = x, math.max(most, x)
      end
      for v = 0, sizes.v - 1 do sum = sum + math.exp(logits[v] - most) end
      return most + math.log(sum) - logits[t.Target(i)]
    end}
  end,
}
