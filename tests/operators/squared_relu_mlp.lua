-- Y[m,d] = sum over f of max(0, sum over k of X[m,k] W[f,k])^2 V[d,f]: the feed-forward layer of Primer and Nemotron, in two phases.
local mr = require "millrace"

return {
  program = mr.program("squared_relu_mlp", function(p)
    local m, d, f = p:axes("m", "d", "f")
    local k = p:axis("k", d.size)
    local X, W, V = p:input("X", {m, k}), p:input("W", {f, k}), p:input("V", {d, f})
    local H, Y = p:temp("H", {m, f}), p:output("Y", {m, d})
    p:phase("up", function()
      local h = p:carry("h", {m, f}, 0)
      p:loop(k, function() h:add(p:mma("mma_up", p:load("load_x", X), p:load("load_w", W))) end)
      H:store("store_h", p:task("square", function()
        local r = mr.max(h, 0)
        return (r * r):to "bf16"
      end))
    end)
    p:phase("down", function()
      local y = p:carry("y", {m, d}, 0)
      p:loop(f, function() y:add(p:mma("mma_down", p:load("load_h", H), p:load("load_v", V))) end)
      Y:store("store_y", p:task("round", function() return y:to "bf16" end))
    end)
  end),
  small = {{m = 64, d = 64, f = 128}, {m = 30, d = 40, f = 136}},
  usual = {{m = 4096, d = 4096, f = 16384}},
  formula = function(t, sizes)
    return {Y = function(i, d)
      local sum = 0
      for f = 0, sizes.f - 1 do
        local h = 0
        for k = 0, sizes.d - 1 do h = h + t.X(i, k) * t.W(f, k) end
        sum = sum + math.max(h, 0) ^ 2 * t.V(d, f)
      end
      return sum
    end}
  end,
}
