-- Recurrences, one step after the other: RWKV-6's state with decays of channels, Mamba's selective scan, a biquad filter, words of a
-- generator (xorshift); based_attention, whose weights are 1 + s + s^2 / 2 of scores s; finite impulse responses.
local mr = require "millrace"
local min, exp, log, where = mr.min, mr.exp, mr.log, mr.where
local sum = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua").sum_below

-- The low 32 bits as an i32.
local function signed(x)
  x = x & 0xffffffff
  return x >= 1 << 31 and x - (1 << 32) or x
end

return {
  {
    name = "rwkv6",
    program = mr.program("rwkv6", function(p)
      local b, h, t, k, v = p:axes("b", "h", "t", "k", "v")
      local R, K, V, W = p:input("R", {b, t, h, k}), p:input("K", {b, t, h, k}), p:input("V", {b, t, h, v}), p:input("W", {b, t, h,
        k}, "f32")
      local U, Y, S = p:input("U", {h, k}, "f32"), p:output("Y", {b, t, h, v}), p:output("S", {b, h, k, v}, "f32")
      p:batch(b, h)
      local u = p:load("load_u", U)
      local s = p:carry("s", {k, v}, 0)
      p:loop(t, {batch = true}, function()
        local r, kk, vv, w = p:load("load_r", R), p:load("load_k", K), p:load("load_v", V), p:load("load_w", W)
        local y = p:task("step", function()
          local kv = kk * vv
          local y = (r * (s + u * kv)):rowsum(k)
          s:set(s * exp(-exp(w)) + kv)
          return y
        end)
        Y:store("store_y", y)
      end)
      S:store(s)
    end),
    small = {{b = 1, h = 2, t = 6, k = 16, v = 16}},
    usual = {{b = 8, h = 32, t = 2048, k = 64, v = 64}},
    formula = function(t, sizes)
      local function run(b, h, v, upto)
        local s, y = {}, 0
        for k = 0, sizes.k - 1 do s[k] = 0 end
        for q = 0, upto do
          y = 0
          for k = 0, sizes.k - 1 do
            local kv = t.K(b, q, h, k) * t.V(b, q, h, v)
            y = y + t.R(b, q, h, k) * (s[k] + t.U(h, k) * kv)
            s[k] = s[k] * math.exp(-math.exp(t.W(b, q, h, k))) + kv
          end
        end
        return y, s
      end
      return {
        Y = function(b, q, h, v) return (run(b, h, v, q)) end,
        S = function(b, h, k, v) return select(2, run(b, h, v, sizes.t - 1))[k] end,
      }
    end,
  },
  {
    name = "selective_scan",
    program = mr.program("selective_scan", function(p)
      local b, t, d, n = p:axes("b", "t", "d", "n")
      local X, Dt, Z = p:input("X", {b, t, d}), p:input("Dt", {b, t, d}), p:input("Z", {b, t, d})
      local A, B, C = p:input("A", {d, n}, "f32"), p:input("B", {b, t, n}), p:input("C", {b, t, n})
      local D, Bias, Y = p:input("D", {d}, "f32"), p:input("Bias", {d}, "f32"), p:output("Y", {b, t, d})
      p:batch(b)
      local a, dd, bias = p:load(A), p:load(D), p:load(Bias)
      local h = p:carry("h", {d, n}, 0)
      p:loop(t, {batch = true}, function()
        local x, dt, z, bb, cc = p:load(X), p:load(Dt), p:load(Z), p:load(B), p:load(C)
        Y:store(p:task("step", function()
          local v = dt + bias
          local dt = where(v:gt(20), v, log(1 + exp(min(v, 20))))
          local new = h * exp(dt * -exp(a)) + dt * x * bb
          h:set(new)
          return ((new * cc):rowsum(n) + dd * x) * z:silu()
        end))
      end)
    end),
    small = {{b = 1, t = 5, d = 33, n = 8}},
    usual = {{b = 8, t = 2048, d = 4096, n = 16}},
    formula = function(t, sizes)
      return {
        Y = function(b, q, d)
          local h, y = {}, 0
          for n = 0, sizes.n - 1 do h[n] = 0 end
          for s = 0, q do
            local dt = math.log(1 + math.exp(t.Dt(b, s, d) + t.Bias(d)))
            y = t.D(d) * t.X(b, s, d)
            for n = 0, sizes.n - 1 do
              h[n] = h[n] * math.exp(-dt * math.exp(t.A(d, n))) + dt * t.X(b, s, d) * t.B(b, s, n)
              y = y + h[n] * t.C(b, s, n)
            end
          end
          local g = t.Z(b, q, d)
          return y * g / (1 + math.exp(-g))
        end,
      }
    end,
  },
  {
    name = "biquad",
    program = mr.program("biquad", function(p)
      local t, c = p:axes("t", "c")
      local X, Y = p:input("X", {t, c}, "f32"), p:output("Y", {t, c}, "f32")
      local x1, x2, y1, y2 = p:carry("x1", {c}, 0), p:carry("x2", {c}, 0), p:carry("y1", {c}, 0), p:carry("y2", {c}, 0)
      p:loop(t, {batch = true}, function()
        local x = p:load(X)
        Y:store(p:task("step", function()
          local y = 0.2 * x + 0.4 * x1 + 0.2 * x2 + 0.5 * y1 - 0.3 * y2
          x2:set(x1)
          x1:set(x)
          y2:set(y1)
          y1:set(y)
          return y
        end))
      end)
    end),
    small = {{t = 9, c = 33}},
    usual = {{t = 4096, c = 16384}},
    tolerance = 1e-4,
    formula = function(t, sizes)
      return {
        Y = function(i, c)
          local y1, y2 = 0, 0
          for s = 0, i do y1, y2 = 0.2 * t.X(s, c) + 0.4 * t.X(s - 1, c) + 0.2 * t.X(s - 2, c) + 0.5 * y1 - 0.3 * y2, y1 end
          return y1
        end,
      }
    end,
  },
  {
    name = "xorshift",
    program = mr.program("xorshift", function(p)
      local i, t = p:axes("i", "t")
      local S, Y, U = p:input("S", {i}, "i32"), p:output("Y", {i}, "i32"), p:output("U", {t, i}, "f32")
      local seed, s = p:load("load_s", S), p:carry("s", {i}, 0, "i32")
      p:task("begin", function() s:set(seed) end)
      p:loop(t, {batch = true}, function()
        U:store("store_u", p:task("step", function()
          local x = s ~ (s << 13)
          x = x ~ ((x >> 17) & 0x7fff)
          x = x ~ (x << 5)
          s:set(x)
          return ((x >> 8) & 0xffffff):to "f32" * 2^-24
        end))
      end)
      Y:store("store_y", s)
    end),
    small = {{i = 33, t = 3}},
    usual = {{i = 1 << 20, t = 16}},
    tolerance = 0,
    fill = {S = function(_, i) return signed((i + 1) * 2654435761) end},
    formula = function(t, sizes)
      local function run(i, n)
        local x = math.tointeger(t.S(i)) & 0xffffffff
        for _ = 1, n do
          x = (x ~ (x << 13)) & 0xffffffff
          x = x ~ (x >> 17)
          x = (x ~ (x << 5)) & 0xffffffff
        end
        return x
      end
      return {
        Y = function(i) return signed(run(i, sizes.t)) end,
        U = function(q, i) return (run(i, q + 1) >> 8) / 2 ^ 24 end,
      }
    end,
  },
  {
    name = "based_attention",
    program = mr.program("based_attention", function(p)
      local b, h, m, n, f, d = p:axes("b", "h", "m", "n", "f", "d")
      local Q, K, V, O = p:input("Q", {b, h, m, f}), p:input("K", {b, h, n, f}), p:input("V", {b, h, n, d}), p:output("O", {b, h, m, d})
      p:batch(b, h)
      local q = p:load("load_q", Q)
      local l, o = p:carry("l", {m}, 0), p:carry("o", {m, d}, 0)
      p:loop(n, {upto = m}, function()
        local s = p:mma("mma_qk", q, p:load("load_k", K))
        local w = p:task("feature", function()
          local s = s * f.size ^ -0.5
          local w = where(n:index():le(m:index()), 1 + s + s * s * 0.5, 0)
          l:add(w:rowsum(n))
          return w:to "bf16"
        end)
        o:add(p:mma("mma_pv", w, p:load("load_v", V)))
      end)
      O:store(p:task("normalise", function() return o / l end))
    end),
    small = {{b = 2, h = 1, m = 40, n = 40, f = 16, d = 64}},
    usual = {{b = 4, h = 16, m = 8192, n = 8192, f = 16, d = 64}},
    formula = function(t, sizes)
      return {
        O = function(b, h, m, d)
          local tot, o = 0, 0
          for n = 0, m do
            local s = sum(function(k) return t.Q(b, h, m, k) * t.K(b, h, n, k) end, sizes.f) * sizes.f ^ -0.5
            local w = 1 + s + s * s / 2
            tot, o = tot + w, o + w * t.V(b, h, n, d)
          end
          return o / tot
        end,
      }
    end,
  },
  {
    name = "fir",
    program = mr.program("fir", function(p)
      local c, t, k = p:axes("c", "t", "k")
      local X, H, Y = p:input("X", {c, t}, "f32"), p:input("H", {k}, "f32"), p:output("Y", {c, t}, "f32")
      local y = p:carry("y", {c, t}, 0)
      p:loop(k, {batch = true}, function()
        local x, h = p:load(X, {c, t - k}), p:load(H)
        p:task("tap", function() y:add(x * h) end)
      end)
      Y:store(y)
    end),
    small = {{c = 2, t = 50, k = 5}},
    usual = {{c = 64, t = 1 << 18, k = 64}},
    tolerance = 1e-3,
    formula = function(t, sizes) return {Y = function(c, i) return sum(function(k) return t.X(c, i - k) * t.H(k) end, sizes.k) end} end,
  },
}
