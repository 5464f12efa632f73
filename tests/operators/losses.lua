-- Losses of training with their gradients:
--   total_variation: half the sum of |softmax(X) - softmax(T)|;
--   grpo_loss: a token's clipped ratio to the old policy times the advantage, and a distance to a reference (DeepSeekMath, DAPO);
--   dpo_loss: preference of a chosen to a rejected answer, by their log probabilities, with smoothed labels;
--   cross_entropy_smoothed: with smoothed labels, a penalty of the squared normaliser (z-loss), and rows that do not count;
--   linear_jensen_shannon: student's and teacher's logits are products that are made twice and never stored.
local mr = require "millrace"
local max, min, exp, log, where = mr.max, mr.min, mr.exp, mr.log, mr.where
local sum = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua").sum_below

local rows <const> = {{m = 24, n = 64}, {m = 13, n = 50}}

return {
  {
    name = "total_variation",
    program = mr.program("total_variation", function(p)
      local m, n = p:axes("m", "n")
      local X, T = p:input("X", {m, n}), p:input("T", {m, n})
      local Loss, dX = p:output("Loss", {m}, "f32"), p:output("dX", {m, n})
      local xm, xl, tm, tl = p:carry("xm", {m}, -1e30), p:carry("xl", {m}, 0), p:carry("tm", {m}, -1e30), p:carry("tl", {m}, 0)
      p:loop(n, function()
        local x, t = p:load("load_x", X), p:load("load_t", T)
        p:task("stats", function()
          local a, b = max(xm, x:rowmax(n)), max(tm, t:rowmax(n))
          xl:set(xl * exp(xm - a) + exp(x - a):rowsum(n))
          tl:set(tl * exp(tm - b) + exp(t - b):rowsum(n))
          xm:set(a)
          tm:set(b)
        end)
      end)
      local loss, s = p:carry("loss", {m}, 0), p:carry("s", {m}, 0)
      p:loop(n, function()
        local x, t = p:load("load_x2", X), p:load("load_t2", T)
        p:task("distance", function()
          local P, Q = exp(x - xm) / xl, exp(t - tm) / tl
          loss:add((P - Q):abs():rowsum(n) * 0.5)
          s:add(where(P:gt(Q), P, -P):rowsum(n) * 0.5)
        end)
      end)
      Loss:store(loss)
      p:loop(n, function()
        local x, t = p:load("load_x3", X), p:load("load_t3", T)
        dX:store(p:task("gradient", function()
          local P, Q = exp(x - xm) / xl, exp(t - tm) / tl
          return P * (where(P:gt(Q), 0.5, -0.5) - s)
        end))
      end)
    end),
    small = rows,
    usual = {{m = 4096, n = 32000}},
    formula = function(t, sizes)
      local function soft(f, i, j) return math.exp(f(i, j)) / sum(function(k) return math.exp(f(i, k)) end, sizes.n) end
      return {
        Loss = function(i) return 0.5 * sum(function(j) return math.abs(soft(t.X, i, j) - soft(t.T, i, j)) end, sizes.n) end,
      }
    end,
  },
  {
    name = "grpo_loss",
    program = mr.program("grpo_loss", function(p)   -- per token, logits in tiles, gradient of logits
      local b, s, v = p:axes("b", "s", "v")
      local low, high, beta = p:option("low", "number", 0.2), p:option("high", "number", 0.28), p:option("beta", "number", 0.04)
      local X, Token, Mask = p:input("X", {b, s, v}), p:input("Token", {b, s}, "i32"), p:input("Mask", {b, s}, "i32")
      local Old, Ref, Adv = p:input("Old", {b, s}, "f32"), p:input("Ref", {b, s}, "f32"), p:input("Adv", {b}, "f32")
      local Loss, dX = p:output("Loss", {b, s}, "f32"), p:output("dX", {b, s, v})
      p:batch(b)
      local mx, l, chosen = p:carry("mx", {s}, -1e30), p:carry("l", {s}, 0), p:carry("chosen", {s}, 0)
      local token, mask = p:load("load_token", Token), p:load("load_mask", Mask)
      p:loop(v, function()
        local x = p:load("load_x", X)
        p:task("stats", function()
          local new = max(mx, x:rowmax(v))
          l:set(l * exp(mx - new) + exp(x - new):rowsum(v))
          mx:set(new)
          chosen:add(where(v:index():eq(token), x, 0):rowsum(v))
        end)
      end)
      local old, ref, adv = p:load("load_old", Old), p:load("load_ref", Ref), p:load("load_adv", Adv)
      local loss, slope = p:task("loss", function()
        local logp = chosen - mx - log(l)
        local ratio = exp(logp - old)
        local clipped = min(max(ratio, 1 - low), 1 + high)
        local per = -min(ratio * adv, clipped * adv)
        local diff = ref - logp
        local kl = exp(diff) - diff - 1
        local live = (ratio * adv):le(clipped * adv)
        local g = where(live, -adv * ratio, 0) + beta * (1 - exp(diff))
        local on = mask:ne(0)
        return where(on, per + beta * kl, 0), where(on, g, 0)
      end)
      Loss:store(loss)
      p:loop(v, function()
        local x = p:load("load_x_again", X)
        dX:store(p:task("gradient", function()
          return slope * (where(v:index():eq(token), 1, 0) - exp(x - mx) / l)
        end))
      end)
    end),
    small = {{b = 2, s = 16, v = 64}, {b = 3, s = 9, v = 50}},
    usual = {{b = 8, s = 1024, v = 151936}},
    fill = {
      Token = function(sizes, b, s) return (b * 7 + s * 5) % sizes.v end,
      Mask = function(sizes, b, s) return s % 4 ~= 3 and 1 or 0 end,
      Old = function(sizes, b, s) return -4 + 0.3 * math.sin(b + s) end,
      Ref = function(sizes, b, s) return -4 + 0.2 * math.cos(b * s) end,
    },
    formula = function(t, sizes)
      local function all(b, s)
        local lse = math.log(sum(function(k) return math.exp(t.X(b, s, k)) end, sizes.v))
        local lp = t.X(b, s, t.Token(b, s)) - lse
        local r, A = math.exp(lp - t.Old(b, s)), t.Adv(b)
        local c = math.min(math.max(r, 0.8), 1.28)
        local d = t.Ref(b, s) - lp
        return lp, r, c, A, d, lse
      end
      return {
        Loss = function(b, s)
          if t.Mask(b, s) == 0 then return 0 end
          local lp, r, c, A, d = all(b, s)
          return -math.min(r * A, c * A) + 0.04 * (math.exp(d) - d - 1)
        end,
        dX = function(b, s, v)
          if t.Mask(b, s) == 0 then return 0 end
          local lp, r, c, A, d, lse = all(b, s)
          local g = (r * A <= c * A and -A * r or 0) + 0.04 * (1 - math.exp(d))
          return g * ((v == t.Token(b, s) and 1 or 0) - math.exp(t.X(b, s, v) - lse))
        end,
      }
    end,
  },
  {
    name = "dpo_loss",
    program = mr.program("dpo_loss", function(p)
      local b = p:axes("b")
      local pair = p:axis("pair", 2)      -- chosen, rejected
      local beta, smooth = p:option("beta", "number", 0.1), p:option("smooth", "number", 0.1)
      local Policy, Reference = p:input("Policy", {pair, b}, "f32"), p:input("Reference", {pair, b}, "f32")
      local Loss, Reward, dPolicy = p:output("Loss", {b}, "f32"), p:output("Reward", {pair, b}, "f32"), p:output("dPolicy", {pair,
        b}, "f32")
      local x, r = p:load(Policy), p:load(Reference)
      local loss, reward, d = p:task("loss", function()
        local reward = beta * (x - r)
        local h = reward:at(pair, 0) - reward:at(pair, 1)
        local function logsigmoid(v) return min(v, 0) - log(1 + exp(-v:abs())) end
        local g = -beta * ((1 - smooth) * mr.sigmoid(-h) - smooth * mr.sigmoid(h))
        return -(1 - smooth) * logsigmoid(h) - smooth * logsigmoid(-h), reward, where(pair:index():eq(0), g, -g)
      end)
      Loss:store(loss)
      Reward:store(reward)
      dPolicy:store(d)
    end),
    small = {{b = 16}, {b = 37}},
    usual = {{b = 4096}},
    formula = function(t, sizes)
      local function h(b) return 0.1 * (t.Policy(0, b) - t.Reference(0, b) - t.Policy(1, b) + t.Reference(1, b)) end
      local function ls(v) return -math.log(1 + math.exp(-v)) end
      return {
        Loss = function(b) return -0.9 * ls(h(b)) - 0.1 * ls(-h(b)) end,
        dPolicy = function(q, b)
          local g = -0.1 * (0.9 / (1 + math.exp(h(b))) - 0.1 / (1 + math.exp(-h(b))))
          return q == 0 and g or -g
        end,
      }
    end,
  },
  {
    name = "cross_entropy_smoothed",
    program = mr.program("cross_entropy_smoothed", function(p)
      local m, v = p:axes("m", "v")
      local eps, zl = p:option("eps", "number", 0.1), p:option("zl", "number", 1e-3)
      local X, T, Loss, dX = p:input("X", {m, v}, "f16"), p:input("T", {m}, "i32"), p:output("Loss", {m}, "f32"), p:output("dX", {m,
        v}, "f16")
      local t = p:load("load_t", T)
      local mx, l, s, c = p:carry("mx", {m}, -1e30), p:carry("l", {m}, 0), p:carry("s", {m}, 0), p:carry("c", {m}, 0)
      p:loop(v, function()
        local x = p:load("load_x", X)
        p:task("stats", function()
          local new = max(mx, x:rowmax(v))
          l:set(l * exp(mx - new) + exp(x - new):rowsum(v))
          mx:set(new)
          s:add(x:to "f32":rowsum(v))
          c:add(where(v:index():eq(t), x, 0):rowsum(v))
        end)
      end)
      local lse, on = p:task("loss", function() return mx + log(l), t:ge(0) end)
      Loss:store(p:task("total", function() return where(on, lse - (1 - eps) * c - eps * s / v.size + zl * lse * lse, 0) end))
      p:loop(v, function()
        local x = p:load("load_again", X)
        dX:store(p:task("gradient", function()
          local q = exp(x - lse)
          return where(on, q * (1 + 2 * zl * lse) - eps / v.size - where(v:index():eq(t), 1 - eps, 0), 0)
        end))
      end)
    end),
    small = {{m = 12, v = 64}, {m = 7, v = 101}},
    usual = {{m = 8192, v = 128256}},
    fill = {T = function(sizes, m) return m % 5 == 2 and -100 or m * 7 % sizes.v end},
    formula = function(t, sizes)
      local function lse(m) return math.log(sum(function(v) return math.exp(t.X(m, v)) end, sizes.v)) end
      return {
        Loss = function(m)
          local k = t.T(m)
          if k < 0 then return 0 end
          return lse(m) - 0.9 * t.X(m, k) - 0.1 * sum(function(v) return t.X(m, v) end, sizes.v) / sizes.v + 1e-3 * lse(m) ^ 2
        end,
        dX = function(m, v)
          local k = t.T(m)
          if k < 0 then return 0 end
          return math.exp(t.X(m, v) - lse(m)) * (1 + 2e-3 * lse(m)) - 0.1 / sizes.v - (k == v and 0.9 or 0)
        end,
      }
    end,
  },
  {
    name = "linear_jensen_shannon",
    program = mr.program("linear_jensen_shannon", function(p)
      local m, v, k, kt = p:axes("m", "v", "k", "kt")
      local X, W, XT, WT = p:input("X", {m, k}), p:input("W", {v, k}), p:input("XT", {m, kt}), p:input("WT", {v, kt})
      local Loss = p:output("Loss", {m}, "f32")
      local function logits(n)
        local s, t = p:carry("s" .. n, {m, v}, 0), p:carry("t" .. n, {m, v}, 0)
        p:loop(k, function() s:add(p:mma("student" .. n, p:load("load_x" .. n, X), p:load("load_w" .. n, W))) end)
        p:loop(kt, function() t:add(p:mma("teacher" .. n, p:load("load_xt" .. n, XT), p:load("load_wt" .. n, WT))) end)
        return s, t
      end
      local sm, sl, tm, tl = p:carry("sm", {m}, -1e30), p:carry("sl", {m}, 0), p:carry("tm", {m}, -1e30), p:carry("tl", {m}, 0)
      p:loop(v, function()
        local s, t = logits(1)
        p:task("stats", function()
          local a, b = max(sm, s:rowmax(v)), max(tm, t:rowmax(v))
          sl:set(sl * exp(sm - a) + exp(s - a):rowsum(v))
          tl:set(tl * exp(tm - b) + exp(t - b):rowsum(v))
          sm:set(a)
          tm:set(b)
        end)
      end)
      local loss = p:carry("loss", {m}, 0)
      p:loop(v, function()
        local s, t = logits(2)
        p:task("divergence", function()
          local lp, lq = s - sm - log(sl), t - tm - log(tl)
          local P, Q = exp(lp), exp(lq)
          local lm = log(0.5 * (P + Q))
          loss:add((0.5 * P * (lp - lm) + 0.5 * Q * (lq - lm)):rowsum(v))
        end)
      end)
      Loss:store(loss)
    end),
    small = {{m = 24, v = 50, k = 40, kt = 64}},
    usual = {{m = 4096, v = 32000, k = 1024, kt = 2048}},
    formula = function(t, sizes)
      return {
        Loss = function(m)
          local function soft(x, w, k)
            local l, tot = {}, 0
            for v = 0, sizes.v - 1 do
              l[v] = math.exp(sum(function(q) return x(m, q) * w(v, q) end, k))
              tot = tot + l[v]
            end
            for v = 0, sizes.v - 1 do l[v] = l[v] / tot end
            return l
          end
          local P, Q = soft(t.X, t.W, sizes.k), soft(t.XT, t.WT, sizes.kt)
          return sum(function(v)
            local M = (P[v] + Q[v]) / 2
            return 0.5 * P[v] * math.log(P[v] / M) + 0.5 * Q[v] * math.log(Q[v] / M)
          end, sizes.v)
        end,
      }
    end,
  },
}
