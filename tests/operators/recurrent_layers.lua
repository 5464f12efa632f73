-- gru_cell: one step of a GRU, six products in two loops and the gates in one kernel;
-- wkv4: the recurrence of RWKV-4 in log space, a position after the other: Y[t] is the mean of the values up to t, weighed by
--   exp(K) exp(-(t - s) exp(W)), that of t itself by exp(U + K);
-- gated_retention: chunks of linear attention whose state is forgotten by a gate of each position, as in mLSTM, GLA and Mamba-2;
-- conv_state_update: one position of a causal convolution, with the last three of each channel as its state (decoding of Mamba).
local mr = require "millrace"
local formulas = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua")
local sum = formulas.sum_below
local max, min, exp, where = mr.max, mr.min, mr.exp, mr.where

local function sigmoid(x) return 1 / (1 + math.exp(-x)) end

return {
  {
    name = "gru_cell",
    program = mr.program("gru_cell", function(p)
      local b, h, i, j = p:axes("b", "h", "i", "j")
      local gates = p:axis("gates", 3)
      local X, H, Wx, Wh = p:input("X", {b, i}), p:input("H", {b, j}), p:input("Wx", {gates, h, i}), p:input("Wh", {gates, h, j})
      local New = p:output("New", {b, h})
      local r, z = p:carry("r", {b, h}, 0), p:carry("z", {b, h}, 0)
      local nx, nh = p:carry("nx", {b, h}, 0), p:carry("nh", {b, h}, 0)
      local function part(tag, axis, x, W, n)
        p:loop(axis, function()
          local v = p:load("load_" .. tag, x)
          for g, c in ipairs{r, z, n} do
            c:add(p:mma(("mma_%s%d"):format(tag, g), v, p:load(("load_w%s%d"):format(tag, g), W, {g - 1, h, axis})))
          end
        end)
      end
      part("x", i, X, Wx, nx)
      part("h", j, H, Wh, nh)
      local old = p:load("load_old", H, {b, h})
      New:store("store_new", p:task("gates", function()
        local keep = z:sigmoid()
        return (1 - keep) * (nx + r:sigmoid() * nh):tanh() + keep * old
      end))
    end),
    small = {{b = 20, h = 40, i = 24, j = 40}, {b = 1, h = 8, i = 3, j = 8}},
    usual = {{b = 256, h = 1024, i = 1024, j = 1024}},
    formula = function(t, sizes)
      return {New = function(b, h)
        local function x(g) return sum(function(i) return t.X(b, i) * t.Wx(g, h, i) end, sizes.i) end
        local function y(g) return sum(function(j) return t.H(b, j) * t.Wh(g, h, j) end, sizes.j) end
        local keep, a = sigmoid(x(1) + y(1)), x(2) + sigmoid(x(0) + y(0)) * y(2)
        return (1 - keep) * (2 * sigmoid(2 * a) - 1) + keep * t.H(b, h)
      end}
    end,
  },
  {
    name = "wkv4",
    program = mr.program("wkv4", function(p)
      local b, t, c = p:axes("b", "t", "c")
      local K, V, Y = p:input("K", {b, t, c}), p:input("V", {b, t, c}), p:output("Y", {b, t, c})
      local W, U = p:input("W", {c}, "f32"), p:input("U", {c}, "f32")
      p:batch(b)
      local num, den, mx = p:carry("num", {c}, 0), p:carry("den", {c}, 0), p:carry("mx", {c}, -1e30)
      local w, u = p:load("load_w", W), p:load("load_u", U)
      p:loop(t, {batch = true}, function()
        local k, v = p:load("load_k", K), p:load("load_v", V)
        Y:store("store_y", p:task("step", function()
          local top = max(mx, u + k)
          local before, now = exp(mx - top), exp(u + k - top)
          local y = (before * num + now * v) / (before * den + now)
          local next = max(mx - exp(w), k)
          local keep, add = exp(mx - exp(w) - next), exp(k - next)
          num:set(keep * num + add * v)
          den:set(keep * den + add)
          mx:set(next)
          return y
        end))
      end)
    end),
    small = {{b = 2, t = 13, c = 70}, {b = 1, t = 1, c = 1}},
    usual = {{b = 8, t = 1024, c = 4096}},
    formula = function(t, _)
      return {Y = function(b, s, c)
        local num, den = 0, 0
        for e = 0, s do
          local weight = math.exp(t.K(b, e, c) + (e == s and t.U(c) or -(s - 1 - e) * math.exp(t.W(c))))
          num, den = num + weight * t.V(b, e, c), den + weight
        end
        return num / den
      end}
    end,
  },
  {
    name = "gated_retention",
    program = mr.program("gated_retention", function(p)
      local b, h, s, k, v = p:axes("b", "h", "s", "k", "v")
      local chunk = p:option("chunk", "integer", 64)
      local c, i, j = p:axis("c", (s.size + chunk - 1) // chunk), p:axis("i", chunk), p:axis("j", chunk)
      local Q, K, V = p:input("Q", {b, s, h, k}), p:input("K", {b, s, h, k}), p:input("V", {b, s, h, v})
      local Gate, O = p:input("Gate", {b, h, s}, "f32"), p:output("O", {b, s, h, v})          -- logarithms of what is kept
      p:batch(b, h)
      local state = p:carry("state", {k, v}, 0)
      p:loop(c, {batch = true}, function()
        local q, kj = p:load("load_q", Q, {b, c * chunk + i, h, k}), p:load("load_k", K, {b, c * chunk + j, h, k})
        local vj = p:load("load_v", V, {b, c * chunk + j, h, v})
        local gi, gj = p:load("load_gi", Gate, {b, h, c * chunk + i}), p:load("load_gj", Gate, {b, h, c * chunk + j})
        local qk = p:mma("mma_qk", q, kj)
        local earlier = p:mma("mma_before", q, p:task("before", function() return state:to "bf16" end))
        local weights, kept = p:task("weights", function()
          local at, since = gi:cumsum(i), gj:cumsum(j)
          return where(j:index():le(i:index()), qk * exp(min(at - since, 0)), 0):to "bf16", exp(at)
        end)
        local decayed, total = p:task("decay", function()
          local all = gj:rowsum(j)
          return (kj * exp(all - gj:cumsum(j))):to "bf16", exp(all)
        end)
        local here = p:mma("mma_here", weights, vj)
        p:task("forget", function() state:set(state * total) end)
        state:add(p:mma("mma_state", decayed, vj))
        O:store("store_o", p:task("sum", function() return earlier * kept + here end), {b, c * chunk + i, h, v})
      end)
    end),
    small = {{b = 1, h = 2, s = 128, k = 32, v = 32}, {b = 1, h = 1, s = 70, k = 64, v = 16, chunk = 32}},
    usual = {{b = 4, h = 16, s = 4096, k = 128, v = 128}},
    fill = {Gate = function(_, b, h, s) return -((b + 3 * h + 5 * s) % 7) / 16 end},
    formula = function(t, sizes)
      return {O = function(b, s, h, v)
        local total, kept = 0, 0
        for e = s, 0, -1 do
          total = total + math.exp(kept) * sum(function(k) return t.Q(b, s, h, k) * t.K(b, e, h, k) end, sizes.k) * t.V(b, e, h, v)
          kept = kept + t.Gate(b, h, e)
        end
        return total
      end}
    end,
  },
  {
    name = "conv_state_update",
    program = mr.program("conv_state_update", function(p)
      local b, d = p:axes("b", "d")
      local w, s = p:axis("w", 4), p:axis("s", 3)
      local X, State, W, Bias = p:input("X", {b, d}), p:input("State", {b, d, s}), p:input("W", {d, w}), p:input("Bias", {d})
      local Y, Next = p:output("Y", {b, d}), p:output("Next", {b, d, s})
      local x, weight, bias = p:load("load_x", X), p:load("load_w", W), p:load("load_bias", Bias)
      local last, later = p:load("load_last", State, {b, d, w}), p:load("load_later", State, {b, d, s + 1})
      Y:store("store_y", p:task("convolve", function()
        return mr.silu((where(w:index():eq(3), x, last) * weight):rowsum(w) + bias)
      end))
      Next:store("store_next", p:task("shift", function() return where(s:index():eq(2), x, later) end))
    end),
    small = {{b = 3, d = 77}, {b = 1, d = 1}},
    usual = {{b = 256, d = 8192}},
    formula = function(t, _)
      local function at(b, d, i) return i == 3 and t.X(b, d) or t.State(b, d, i) end
      return {
        Y = function(b, d)
          local y = sum(function(i) return at(b, d, i) * t.W(d, i) end, 4) + t.Bias(d)
          return y * sigmoid(y)
        end,
        Next = function(b, d, i) return at(b, d, i + 1) end,
      }
    end,
  },
}
