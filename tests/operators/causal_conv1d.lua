-- Y[b,t,c] = silu(B[c] + sum over w of W[c,w] X[b, t + w - 3, c]): each channel's last four elements, X before the sequence being zero.
--
-- The short convolution of Mamba, and of models with gated delta rules (Qwen3-Next, Kimi Linear). In causal_conv1d a tile has all taps, in
-- causal_conv1d_loop they are a loop, and in causal_conv1d_channels the sequence is the last dimension, as Mamba's kernel has it.
local mr = require "millrace"

local WIDTH <const> = 4

local function formula(x)
  return function(T)
    return function(b, t, c)
      local sum = T.B(c)
      for w = 0, WIDTH - 1 do sum = sum + T.W(c, w) * x(T, b, t + w - WIDTH + 1, c) end
      return sum / (1 + math.exp(-sum))
    end
  end
end
local rows = formula(function(T, b, t, c) return T.X(b, t, c) end)
local channels = formula(function(T, b, t, c) return T.X(b, c, t) end)

return {
  {
    name = "causal_conv1d",
    program = mr.program("causal_conv1d", function(p)
      local b, t, c = p:axes("b", "t", "c")
      local w = p:axis("w", WIDTH)
      local X, W, B, Y = p:input("X", {b, t, c}), p:input("W", {c, w}), p:input("B", {c}), p:output("Y", {b, t, c})
      local x, weights, bias = p:load("load_x", X, {b, t + w - WIDTH + 1, c}), p:load("load_w", W), p:load("load_b", B)
      Y:store("store_y", p:task("filter", function() return mr.silu(mr.rowsum(x * weights, w) + bias) end))
    end),
    small = {{b = 2, t = 20, c = 72}},
    usual = {{b = 4, t = 4096, c = 4096}, {b = 1, t = 8192, c = 8192}},
    formula = function(T) return {Y = rows(T)} end,
  },
  {
    name = "causal_conv1d_loop",
    program = mr.program("causal_conv1d_loop", function(p)
      local b, t, c = p:axes("b", "t", "c")
      local w = p:axis("w", WIDTH)
      local X, W, B, Y = p:input("X", {b, t, c}), p:input("W", {c, w}), p:input("B", {c}), p:output("Y", {b, t, c})
      local bias, sum = p:load("load_b", B), p:carry("sum", {b, t, c}, 0)
      p:loop(w, function()
        local x, weights = p:load("load_x", X, {b, t + w - WIDTH + 1, c}), p:load("load_w", W)
        p:task("add", function() sum:add(mr.rowsum(x * weights, w)) end)
      end)
      Y:store("store_y", p:task("silu", function() return mr.silu(sum + bias) end))
    end),
    small = {{b = 2, t = 20, c = 72}},
    usual = {{b = 4, t = 4096, c = 4096}, {b = 1, t = 8192, c = 8192}},
    formula = function(T) return {Y = rows(T)} end,
  },
  {
    name = "causal_conv1d_channels",
    program = mr.program("causal_conv1d_channels", function(p)
      local b, t, c = p:axes("b", "t", "c")
      local w = p:axis("w", WIDTH)
      local X, W, B, Y = p:input("X", {b, c, t}), p:input("W", {c, w}), p:input("B", {c}), p:output("Y", {b, c, t})
      local bias, sum = p:load("load_b", B), p:carry("sum", {b, c, t}, 0)
      p:loop(w, function()
        local x, weights = p:load("load_x", X, {b, c, t + w - WIDTH + 1}), p:load("load_w", W)
        p:task("add", function() sum:add(mr.rowsum(x * weights, w)) end)
      end)
      Y:store("store_y", p:task("silu", function() return mr.silu(sum + bias) end))
    end),
    small = {{b = 2, t = 72, c = 20}},
    usual = {{b = 4, t = 4096, c = 4096}},
    formula = function(T)
      local y = channels(T)
      return {Y = function(b, c, t) return y(b, t, c) end}
    end,
  },
}
