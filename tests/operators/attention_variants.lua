-- Attention: triangle_attention, of a pair representation with a bias, a mask and a gate (AlphaFold); cascade_decoding, keys that all
-- sequences share and keys of their own; fp8_cache_decoding, e4m3 with scales of heads; multi_token_attention, scores that a window
-- mixes; int8_attention, scores of i8 with scales of blocks (SageAttention).
local mr = require "millrace"
local max, exp, exp2, where = mr.max, mr.exp, mr.exp2, mr.where
local sum = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua").sum_below

return {
  {
    name = "triangle_attention",
    program = mr.program("triangle_attention", function(p)
      local h, i, m, n, d = p:axes("h", "i", "m", "n", "d")
      local Q, K, V, G = p:input("Q", {i, m, h, d}), p:input("K", {i, n, h, d}), p:input("V", {i, n, h, d}), p:input("G", {i, m, h, d})
      local Bias, Mask, O = p:input("Bias", {h, m, n}), p:input("Mask", {i, n}, "bool"), p:output("O", {i, m, h, d})
      p:batch(h, i)
      local q, g = p:load("load_q", Q), p:load("load_g", G)
      local mx, l, o = p:carry("mx", {m}, -1e30), p:carry("l", {m}, 0), p:carry("o", {m, d}, 0)
      p:loop(n, function()
        local s = p:mma("mma_qk", q, p:load("load_k", K))
        local b, on = p:load("load_bias", Bias), p:load("load_mask", Mask)
        local pr, alpha = p:task("softmax", function()
          local s = where(on, s * d.size ^ -0.5 + b, -1e30)
          local new = max(mx, s:rowmax(n))
          local pr, alpha = where(on, exp(s - new), 0), exp(mx - new)
          l:set(l * alpha + pr:rowsum(n))
          mx:set(new)
          return pr:to "bf16", alpha
        end)
        p:task("rescale", function() o:set(o * alpha) end)
        o:add(p:mma("mma_pv", pr, p:load("load_v", V)))
      end)
      O:store(p:task("gate", function() return o / max(l, 1e-30) * g:sigmoid() end))
    end),
    small = {{h = 1, i = 3, m = 40, n = 40, d = 16}},
    usual = {{h = 4, i = 384, m = 384, n = 384, d = 32}},
    fill = {Mask = function(sizes, i, n) return (i + n) % 5 ~= 2 end},
    formula = function(t, sizes)
      return {
        O = function(i, m, h, d)
          local tot, o = 0, 0
          for n = 0, sizes.n - 1 do
            if (i + n) % 5 ~= 2 then
              local w = math.exp(sum(function(k) return t.Q(i, m, h, k) * t.K(i, n, h, k) end, sizes.d) * sizes.d ^ -0.5 + t.Bias(h,
                m, n))
              tot, o = tot + w, o + w * t.V(i, n, h, d)
            end
          end
          return o / tot / (1 + math.exp(-t.G(i, m, h, d)))
        end,
      }
    end,
  },
  {
    name = "cascade_decoding",
    program = mr.program("cascade_decoding", function(p)
      local b, hk, g, n, s, d = p:axes("b", "hk", "g", "n", "s", "d")   -- n: shared keys; s: own ones
      local Q, K, V = p:input("Q", {b, hk, g, d}), p:input("K", {hk, n, d}), p:input("V", {hk, n, d})
      local K2, V2, Length = p:input("K2", {b, s, hk, d}), p:input("V2", {b, s, hk, d}), p:input("Length", {b}, "i32")
      local O1, L1, O = p:temp("O1", {hk, b, g, d}, "f32"), p:temp("L1", {hk, b, g}, "f32"), p:output("O", {b, hk, g, d})
      local scale = 1.4426950408889634 / math.sqrt(d.size)
      p:phase("shared", function()
        p:batch(hk)
        local q = p:load("load_q", Q)
        local mx, l, o = p:carry("mx", {b, g}, -1e30), p:carry("l", {b, g}, 0), p:carry("o", {b, g, d}, 0)
        p:loop(n, function()
          local s = p:mma("mma_qk", q, p:load("load_k", K))
          local pr, alpha = p:task("softmax", function()
            local s = s * scale
            local new = max(mx, s:rowmax(n))
            local pr, alpha = exp2(s - new), exp2(mx - new)
            l:set(l * alpha + pr:rowsum(n))
            mx:set(new)
            return pr:to "bf16", alpha
          end)
          p:task("rescale", function() o:set(o * alpha) end)
          o:add(p:mma("mma_pv", pr, p:load("load_v", V)))
        end)
        local out, lse = p:task("finish", function() return o / l, mx + l:log2() end)
        O1:store("store_o1", out)
        L1:store("store_l1", lse)
      end)
      p:phase("own", function()
        p:batch(b, hk)
        local q, o1, l1 = p:load("load_q2", Q), p:load("load_o1", O1), p:load("load_l1", L1)
        local mx, l, o = p:carry("mx2", {g}, -1e30), p:carry("l2", {g}, 0), p:carry("o2", {g, d}, 0)
        p:loop(s, {length = p:load(Length)}, function()
          local sc = p:mma("mma_qk2", q, p:load("load_k2", K2))
          local pr, alpha = p:task("softmax2", function()
            local sc = sc * scale
            local new = max(mx, sc:rowmax(s))
            local pr, alpha = exp2(sc - new), exp2(mx - new)
            l:set(l * alpha + pr:rowsum(s))
            mx:set(new)
            return pr:to "bf16", alpha
          end)
          p:task("rescale2", function() o:set(o * alpha) end)
          o:add(p:mma("mma_pv2", pr, p:load("load_v2", V2)))
        end)
        O:store(p:task("merge", function()
          local top = max(mx, l1)
          local a, b2 = exp2(mx - top), exp2(l1 - top)
          return (o * a + o1 * b2) / (l * a + b2)
        end))
      end)
    end),
    small = {{b = 3, hk = 1, g = 8, n = 50, s = 40, d = 64}},
    usual = {{b = 64, hk = 8, g = 8, n = 8192, s = 512, d = 128}},
    fill = {Length = function(sizes, b) return b * 11 end},
    formula = function(t, sizes)
      return {
        O = function(b, h, g, d)
          local tot, o = 0, 0
          local function key(f, v)
            local w = math.exp(sum(function(k) return t.Q(b, h, g, k) * f(k) end, sizes.d) / math.sqrt(sizes.d))
            tot, o = tot + w, o + w * v
          end
          for n = 0, sizes.n - 1 do key(function(k) return t.K(h, n, k) end, t.V(h, n, d)) end
          for s = 0, t.Length(b) - 1 do key(function(k) return t.K2(b, s, h, k) end, t.V2(b, s, h, d)) end
          return o / tot
        end,
      }
    end,
  },
  {
    name = "fp8_cache_decoding",
    program = mr.program("fp8_cache_decoding", function(p)
      local b, hk, g, n, d = p:axes("b", "hk", "g", "n", "d")
      local Q, K, V = p:input("Q", {b, hk, g, d}), p:input("K", {b, n, hk, d}, "e4m3"), p:input("V", {b, n, hk, d}, "e4m3")
      local KS, VS, O = p:input("KS", {hk}, "f32"), p:input("VS", {hk}, "f32"), p:output("O", {b, hk, g, d})
      p:batch(b, hk)
      local q, ks, vs = p:load("load_q", Q), p:load("load_ks", KS), p:load("load_vs", VS)
      local mx, l, o = p:carry("mx", {g}, -1e30), p:carry("l", {g}, 0), p:carry("o", {g, d}, 0)
      p:loop(n, function()
        local k, v = p:load("load_k", K), p:load("load_v", V)
        local s = p:mma("mma_qk", q, p:task("widen_k", function() return k:to "bf16" end))
        local pr, alpha = p:task("softmax", function()
          local s = s * ks * (1.4426950408889634 / math.sqrt(d.size))
          local new = max(mx, s:rowmax(n))
          local pr, alpha = exp2(s - new), exp2(mx - new)
          l:set(l * alpha + pr:rowsum(n))
          mx:set(new)
          return pr:to "bf16", alpha
        end)
        p:task("rescale", function() o:set(o * alpha) end)
        o:add(p:mma("mma_pv", pr, p:task("widen_v", function() return v:to "bf16" end)))
      end)
      O:store(p:task("finish", function() return o * vs / l end))
    end),
    small = {{b = 1, hk = 1, g = 8, n = 50, d = 64}},
    usual = {{b = 64, hk = 8, g = 8, n = 8192, d = 128}},
    formula = function(t, sizes)
      return {
        O = function(b, h, g, d)
          local tot, o = 0, 0
          for n = 0, sizes.n - 1 do
            local w = math.exp(sum(function(k) return t.Q(b, h, g, k) * t.K(b, n, h, k) end, sizes.d) * t.KS(h) / math.sqrt(sizes.d))
            tot, o = tot + w, o + w * t.V(b, n, h, d)
          end
          return o / tot * t.VS(h)
        end,
      }
    end,
  },
  {
    name = "multi_token_attention",
    program = mr.program("multi_token_attention", function(p)
      local b, h, m, n, d = p:axes("b", "h", "m", "n", "d")
      local a, c = p:axis("a", 3), p:axis("c", 3)          -- window of queries (back) and keys (around)
      local Q, K, V, W = p:input("Q", {b, h, m, d}), p:input("K", {b, h, n, d}), p:input("V", {b, h, n, d}), p:input("W", {h, a,
        c}, "f32")
      local S, O = p:temp("S", {b, h, m, n}), p:output("O", {b, h, m, d})
      p:phase("scores", function()
        p:batch(b, h)
        local s = p:mma("mma_qk", p:load("load_q", Q), p:load("load_k", K))
        S:store("store_s", p:task("mask", function() return where(n:index():le(m:index()), s * d.size ^ -0.5, 0) end))
      end)
      p:phase("attend", function()
        p:batch(b, h)
        local mx, l, o = p:carry("mx", {m}, -1e30), p:carry("l", {m}, 0), p:carry("o", {m, d}, 0)
        p:loop(n, {upto = m}, function()
          local conv = p:carry("conv", {m, n}, 0)
          p:loop({a, c}, {batch = true}, function()
            local s, w = p:load("load_s", S, {b, h, m - a, n + c - 1}), p:load("load_w", W)
            p:task("tap", function() conv:add(s * w) end)
          end)
          local pr, alpha = p:task("softmax", function()
            local s = where(n:index():le(m:index()), conv, -1e30)
            local new = max(mx, s:rowmax(n))
            local pr, alpha = exp(s - new), exp(mx - new)
            l:set(l * alpha + pr:rowsum(n))
            mx:set(new)
            return pr:to "bf16", alpha
          end)
          p:task("rescale", function() o:set(o * alpha) end)
          o:add(p:mma("mma_pv", pr, p:load("load_v", V)))
        end)
        O:store("store_o", p:task("normalise", function() return o / l end))
      end)
    end),
    small = {{b = 1, h = 1, m = 40, n = 40, d = 16}},
    usual = {{b = 1, h = 16, m = 2048, n = 2048, d = 128}},
    formula = function(t, sizes)
      return {
        O = function(b, h, m, d)
          local function S(i, j)
            if i < 0 or j < 0 or j > i then return 0 end
            return sum(function(k) return t.Q(b, h, i, k) * t.K(b, h, j, k) end, sizes.d) * sizes.d ^ -0.5
          end
          local tot, o = 0, 0
          for n = 0, m do
            local s = 0
            for a = 0, 2 do
              for c = 0, 2 do
                if n + c - 1 < sizes.n then s = s + S(m - a, n + c - 1) * t.W(h, a, c) end
              end
            end
            local w = math.exp(s)
            tot, o = tot + w, o + w * t.V(b, h, n, d)
          end
          return o / tot
        end,
      }
    end,
  },
  {
    name = "int8_attention",
    program = mr.program("int8_attention", function(p)
      local b, h, m, n, d = p:axes("b", "h", "m", "n", "d")
      local mb, nb = p:axis("mb", (m.size + 15) // 16), p:axis("nb", (n.size + 15) // 16)
      local Q, K, V = p:input("Q", {b, h, m, d}, "i8"), p:input("K", {b, h, n, d}, "i8"), p:input("V", {b, h, n, d}, "f16")
      local QS, KS, O = p:input("QS", {b, h, mb}, "f32"), p:input("KS", {b, h, nb}, "f32"), p:output("O", {b, h, m, d}, "f16")
      p:batch(b, h)
      local q, qs = p:load("q", Q), p:load("qs", QS, {b, h, m // 16})
      local mx, l, o = p:carry("mx", {m}, -1e30), p:carry("l", {m}, 0), p:carry("o", {m, d}, 0)
      p:loop(n, function()
        local s, ks = p:mma("qk", q, p:load("k", K)), p:load("ks", KS, {b, h, n // 16})
        local pr, alpha = p:task("softmax", function()
          local s = s * qs * ks
          local new = max(mx, s:rowmax(n))
          local pr, alpha = exp2(s - new), exp2(mx - new)
          l:set(l * alpha + pr:rowsum(n))
          mx:set(new)
          return pr:to "f16", alpha
        end)
        p:task("rescale", function() o:set(o * alpha) end)
        o:add(p:mma("pv", pr, p:load("v", V)))
      end)
      O:store(p:task("norm", function() return o / l end))
    end),
    small = {{b = 1, h = 1, m = 40, n = 50, d = 64}},
    usual = {{b = 4, h = 32, m = 4096, n = 4096, d = 128}},
    fill = {
      Q = function(sizes, b, h, m, d) return (m * 7 + d * 3 + h) % 31 - 15 end,
      K = function(sizes, b, h, n, d) return (n * 5 + d * 11 + b) % 29 - 14 end,
      QS = function() return 0.05 end,
      KS = function(sizes, b, h, n) return 0.02 + 0.01 * n end,
    },
    formula = function(t, sizes)
      return {
        O = function(b, h, m, d)
          local w, mx, tot, o = {}, -math.huge, 0, 0
          for n = 0, sizes.n - 1 do
            w[n] = sum(function(k) return t.Q(b, h, m, k) * t.K(b, h, n, k) end, sizes.d) * 0.05 * t.KS(b, h, n // 16)
            mx = math.max(mx, w[n])
          end
          for n = 0, sizes.n - 1 do
            local e = 2 ^ (w[n] - mx)
            tot, o = tot + e, o + e * t.V(b, h, n, d)
          end
          return o / tot
        end,
      }
    end,
  },
}
