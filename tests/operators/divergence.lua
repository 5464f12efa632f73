-- Losses between two distributions over a vocabulary, of each row; Liger's and torch's losses for distillation.
-- kl_divergence, of log-probabilities: L[m] = sum over n of exp(Y[m,n]) (Y[m,n] - X[m,n]).
-- jensen_shannon, of log-probabilities, with M = beta P + (1 - beta) Q, P = exp(Y), Q = exp(X):
--   L[m] = beta KL(P | M) + (1 - beta) KL(Q | M).
-- distillation, of logits S of a student and T of a teacher at temperature t, in one pass over both:
--   L[m] = t^2 KL(softmax(T / t) | softmax(S / t)).
local mr = require "millrace"

local LOG2E <const> = 1.4426950408889634

local function log_softmax(x, i, n, t)
  local most, sum = -math.huge, 0
  for j = 0, n - 1 do most = math.max(most, x(i, j) / t) end
  for j = 0, n - 1 do sum = sum + math.exp(x(i, j) / t - most) end
  return function(j) return x(i, j) / t - most - math.log(sum) end
end

-- random numbers between -1 and 1 as logarithms of what is not far from probabilities
local function logs(salt)
  return function(sizes, i, j) return -math.log(sizes.n) + ((i * 37 + j * salt) % 101 / 50 - 1) end
end

return {
  {
    name = "kl_divergence",
    program = mr.program("kl_divergence", function(p)
      local m, n = p:axes("m", "n")
      local X, Y, L = p:input("X", {m, n}), p:input("Y", {m, n}), p:output("L", {m}, "f32")
      local sum = p:carry("sum", {m}, 0)
      p:loop(n, function()
        local x, y = p:load("load_x", X), p:load("load_y", Y)
        p:task("add", function() sum:add(mr.rowsum(mr.exp(y) * (y - x), n)) end)
      end)
      L:store(sum)
    end),
    small = {{m = 64, n = 256}, {m = 37, n = 200}},
    usual = {{m = 4096, n = 128256}},
    fill = {X = logs(29), Y = logs(53)},
    formula = function(t, sizes)
      return {L = function(i)
        local sum = 0
        for j = 0, sizes.n - 1 do sum = sum + math.exp(t.Y(i, j)) * (t.Y(i, j) - t.X(i, j)) end
        return sum
      end}
    end,
  },
  {
    name = "jensen_shannon",
    program = mr.program("jensen_shannon", function(p)
      local m, n = p:axes("m", "n")
      local beta = p:option("beta", "number", 0.5)
      local X, Y, L = p:input("X", {m, n}), p:input("Y", {m, n}), p:output("L", {m}, "f32")
      local sum = p:carry("sum", {m}, 0)
      p:loop(n, function()
        local x, y = p:load("load_x", X), p:load("load_y", Y)
        p:task("add", function()
          local P, Q = mr.exp(y), mr.exp(x)
          local middle = mr.log(beta * P + (1 - beta) * Q)
          sum:add(mr.rowsum(beta * P * (y - middle) + (1 - beta) * Q * (x - middle), n))
        end)
      end)
      L:store(sum)
    end),
    small = {{m = 64, n = 256}, {m = 37, n = 200, beta = 0.25}},
    usual = {{m = 4096, n = 128256}},
    fill = {X = logs(29), Y = logs(53)},
    formula = function(t, sizes)
      local beta = sizes.beta or 0.5
      return {L = function(i)
        local sum = 0
        for j = 0, sizes.n - 1 do
          local P, Q = math.exp(t.Y(i, j)), math.exp(t.X(i, j))
          local M = beta * P + (1 - beta) * Q
          sum = sum + beta * P * math.log(P / M) + (1 - beta) * Q * math.log(Q / M)
        end
        return sum
      end}
    end,
  },
  {
    name = "distillation",
    program = mr.program("distillation", function(p)
      local m, n = p:axes("m", "n")
      local t = p:option("t", "number", 1)
      local S, T, L = p:input("S", {m, n}), p:input("T", {m, n}), p:output("L", {m}, "f32")
      local most_s, sum_s = p:carry("most_s", {m}, -math.huge), p:carry("sum_s", {m}, 0)
      local most_t, sum_t = p:carry("most_t", {m}, -math.huge), p:carry("sum_t", {m}, 0)
      local cross = p:carry("cross", {m}, 0)            -- sum of exp(T - most_t) (T - S), to base 2
      p:loop(n, function()
        local s, u = p:load("load_s", S), p:load("load_t", T)
        p:task("online", function()
          local s, u = s * (LOG2E / t), u * (LOG2E / t)
          local new_s, new_t = mr.max(most_s, s:rowmax(n)), mr.max(most_t, u:rowmax(n))
          local w, alpha = mr.exp2(u - new_t), mr.exp2(most_t - new_t)
          sum_s:set(sum_s * mr.exp2(most_s - new_s) + mr.exp2(s - new_s):rowsum(n))
          sum_t:set(sum_t * alpha + w:rowsum(n))
          cross:set(cross * alpha + (w * (u - s)):rowsum(n))
          most_s:set(new_s)
          most_t:set(new_t)
        end)
      end)
      L:store(p:task("loss", function()
        local lse_s, lse_t = most_s + mr.log2(sum_s), most_t + mr.log2(sum_t)
        return (cross / sum_t + lse_s - lse_t) * (t * t / LOG2E)
      end))
    end),
    small = {{m = 64, n = 256}, {m = 37, n = 200, t = 2}},
    usual = {{m = 4096, n = 128256}},
    formula = function(t, sizes)
      local temperature = sizes.t or 1
      return {L = function(i)
        local s, u = log_softmax(t.S, i, sizes.n, temperature), log_softmax(t.T, i, sizes.n, temperature)
        local sum = 0
        for j = 0, sizes.n - 1 do sum = sum + math.exp(u(j)) * (u(j) - s(j)) end
        return sum * temperature ^ 2
      end}
    end,
  },
}
