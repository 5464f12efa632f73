-- One step of AdamW: M = b1 M + (1 - b1) g, V = b2 V + (1 - b2) g^2,
-- W = W (1 - lr decay) - lr (M / (1 - b1^t)) / (sqrt(V / (1 - b2^t)) + eps), in f32, with a copy of W in bf16 for the next pass.
-- The learning rate and the two corrections are in Step, as they change at each step; M and V are new tensors here.
local mr = require "millrace"

local b1 <const>, b2 <const>, eps <const>, decay <const> = 0.9, 0.95, 1e-8, 0.1

return {
  program = mr.program("adamw", function(p)
    local n, three = p:axes("n"), p:axis("three", 3)
    local W, G, M, V = p:input("W", {n}, "f32"), p:input("G", {n}), p:input("M", {n}, "f32"), p:input("V", {n}, "f32")
    local Step = p:input("Step", {three}, "f32")               -- lr, 1 / (1 - b1^t), 1 / (1 - b2^t)
    local NewW, NewM, NewV = p:output("NewW", {n}, "f32"), p:output("NewM", {n}, "f32"), p:output("NewV", {n}, "f32")
    local Copy = p:output("Copy", {n})
    local w, g, m, v = p:load("load_w", W), p:load("load_g", G), p:load("load_m", M), p:load("load_v", V)
    local lr, first, second = p:load("load_lr", Step, {0}), p:load("load_first", Step, {1}), p:load("load_second", Step, {2})
    local new, new_m, new_v, copy = p:task("step", function()
      local m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
      local new = w * (1 - lr * decay) - lr * (m * first) / (mr.sqrt(v * second) + eps)
      return new, m, v, new:to "bf16"
    end)
    NewW:store("store_w", new)
    NewM:store("store_m", new_m)
    NewV:store("store_v", new_v)
    Copy:store("store_copy", copy)
  end),
  small = {{n = 1024}, {n = 1000}},
  usual = {{n = 1 << 26}},
  fill = {
    V = function(_, i) return i % 17 / 8 end,
    Step = function(_, i) return ({0.01, 1 / (1 - b1 ^ 5), 1 / (1 - b2 ^ 5)})[i + 1] end,
  },
  formula = function(t)
    local function m(i) return b1 * t.M(i) + (1 - b1) * t.G(i) end
    local function v(i) return b2 * t.V(i) + (1 - b2) * t.G(i) ^ 2 end
    local function w(i)
      return t.W(i) * (1 - t.Step(0) * decay) - t.Step(0) * m(i) * t.Step(1) / (math.sqrt(v(i) * t.Step(2)) + eps)
    end
    return {NewW = w, NewM = m, NewV = v, Copy = w}
  end,
}
