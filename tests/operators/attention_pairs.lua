-- Attention of two scores, or of scores from rotated halves:
--   differential_attention: the difference of two softmaxes times V, normalised by its rows (Ye et al., 2024);
--   rope_attention: rotary embedding of queries and keys, whose halves two products contract, in the same kernel;
--   attention_probabilities: the weights themselves, for which scores are computed twice.
local mr = require "millrace"
local max, exp2, where = mr.max, mr.exp2, mr.where
local formulas = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua")
local sum, once = formulas.sum_below, formulas.once
local shared = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/attention.lua")
local online, carries = shared.online, shared.carries

local LOG2E <const> = 1.4426950408889634

-- Of keys 0 to n - 1 the mean of value(j), weighed by exp(score(j)).
local function attention(n, score, value)
  local weights = 0
  local total = sum(function(j)
    local w = math.exp(score(j))
    weights = weights + w
    return w * value(j)
  end, n)
  return total / weights
end

return {
  {
    name = "differential_attention",
    program = mr.program("differential_attention", function(p)
      local b, h, m, d, v = p:axes("b", "h", "m", "d", "v")
      local n, two = p:axis("n", m.size), p:axis("two", 2)
      local Q, K, V = p:input("Q", {b, h, two, m, d}), p:input("K", {b, h, two, n, d}), p:input("V", {b, h, n, v})
      local Lambda, G, O = p:input("Lambda", {h}, "f32"), p:input("G", {v}), p:output("O", {b, h, m, v})
      p:batch(b, h)
      local q1, q2 = p:load("load_q1", Q, {b, h, 0, m, d}), p:load("load_q2", Q, {b, h, 1, m, d})
      local mx1, l1, o1 = carries(p, m, v, "1")
      local mx2, l2, o2 = carries(p, m, v, "2")
      p:loop(n, {upto = m}, function()
        local s1 = p:mma("mma_s1", q1, p:load("load_k1", K, {b, h, 0, n, d}))
        local s2 = p:mma("mma_s2", q2, p:load("load_k2", K, {b, h, 1, n, d}))
        local values = p:load("load_v", V)
        local function masked(s)
          return function() return where(n:index():le(m:index()), s * (LOG2E / math.sqrt(d.size)), -1e30) end
        end
        online(p, "1", mx1, l1, o1, n, masked(s1), function(pr) return p:mma("mma_o1", pr, values) end)
        online(p, "2", mx2, l2, o2, n, masked(s2), function(pr) return p:mma("mma_o2", pr, values) end)
      end)
      local lambda, g = p:load("load_lambda", Lambda), p:load("load_g", G)
      O:store("store_o", p:task("finish", function()
        local o = o1 / l1 - lambda * (o2 / l2)
        return o * mr.rsqrt((o * o):rowsum(v) / v.size + 1e-5) * g * 0.2
      end))
    end),
    small = {{b = 1, h = 2, m = 70, d = 32, v = 64}, {b = 1, h = 1, m = 13, d = 64, v = 128}},
    usual = {{b = 4, h = 16, m = 4096, d = 64, v = 128}},
    formula = function(t, sizes)
      local score = once(function(b, h, which, m, j)
        return sum(function(i) return t.Q(b, h, which, m, i) * t.K(b, h, which, j, i) end, sizes.d) / math.sqrt(sizes.d)
      end)
      local part = once(function(b, h, which, m, v)
        return attention(m + 1, function(j) return score(b, h, which, m, j) end, function(j) return t.V(b, h, j, v) end)
      end)
      return {O = function(b, h, m, v)
        local function o(c) return part(b, h, 0, m, c) - t.Lambda(h) * part(b, h, 1, m, c) end
        return o(v) / math.sqrt(sum(function(c) return o(c) ^ 2 end, sizes.v) / sizes.v + 1e-5) * t.G(v) * 0.2
      end}
    end,
  },
  {
    name = "rope_attention",
    program = mr.program("rope_attention", function(p)
      local b, h, m, d = p:axes("b", "h", "m", "d")
      local half = d.size // 2
      local n, j = p:axis("n", m.size), p:axis("j", half)
      local Q, K, V = p:input("Q", {b, m, h, d}), p:input("K", {b, n, h, d}), p:input("V", {b, n, h, d})
      local Cos, Sin, O = p:input("Cos", {n, j}), p:input("Sin", {n, j}), p:output("O", {b, m, h, d})
      p:batch(b, h)
      local function rotated(tag, x, y, cos, sin)
        return p:task("rotate_" .. tag, function() return (x * cos - y * sin):to "bf16", (y * cos + x * sin):to "bf16" end)
      end
      local q1, q2 = p:load("load_q1", Q, {b, m, h, j}), p:load("load_q2", Q, {b, m, h, j + half})
      local first, second = rotated("q", q1, q2, p:load("load_cos_q", Cos, {m, j}), p:load("load_sin_q", Sin, {m, j}))
      local mx, l, o = carries(p, m, d, "")
      p:loop(n, {upto = m}, function()
        local k1, k2 = p:load("load_k1", K, {b, n, h, j}), p:load("load_k2", K, {b, n, h, j + half})
        local ka, kb = rotated("k", k1, k2, p:load("load_cos", Cos), p:load("load_sin", Sin))
        local qk = p:carry("qk", {m, n}, 0)
        qk:add(p:mma("mma_first", first, ka))
        qk:add(p:mma("mma_second", second, kb))
        online(p, "", mx, l, o, n, function()
          return where(n:index():le(m:index()), qk * (LOG2E / math.sqrt(d.size)), -1e30)
        end, function(pr) return p:mma("mma_pv", pr, p:load("load_v", V)) end)
      end)
      O:store("store_o", p:task("normalise", function() return o / l end))
    end),
    small = {{b = 1, h = 2, m = 70, d = 64}, {b = 1, h = 1, m = 13, d = 32}},
    usual = {{b = 2, h = 16, m = 4096, d = 128}},
    formula = function(t, sizes)
      local half = sizes.d // 2
      local function rotated(x, at, i)
        local j = i % half
        return x(i) * t.Cos(at, j) + (i < half and -x(i + half) or x(i - half)) * t.Sin(at, j)
      end
      return {O = function(b, m, h, d)
        return attention(m + 1, function(n)
          return sum(function(i)
            return rotated(function(e) return t.Q(b, m, h, e) end, m, i) * rotated(function(e) return t.K(b, n, h, e) end, n, i)
          end, sizes.d) / math.sqrt(sizes.d)
        end, function(n) return t.V(b, n, h, d) end)
      end}
    end,
  },
  {
    name = "attention_probabilities",
    program = mr.program("attention_probabilities", function(p)
      local b, h, m, n, d = p:axes("b", "h", "m", "n", "d")
      local Q, K, P = p:input("Q", {b, h, m, d}), p:input("K", {b, h, n, d}), p:output("P", {b, h, m, n})
      p:batch(b, h)
      local q, to_log2 = p:load("load_q", Q), LOG2E / math.sqrt(d.size)
      local mx, l = p:carry("mx", {m}, -1e30), p:carry("l", {m}, 0)
      p:loop(n, function()
        local s = p:mma("mma_sums", q, p:load("load_k_sums", K))
        p:task("sums", function()
          local new = max(mx, (s * to_log2):rowmax(n))
          l:set(l * exp2(mx - new) + exp2(s * to_log2 - new):rowsum(n))
          mx:set(new)
        end)
      end)
      p:loop(n, function()
        local s = p:mma("mma_qk", q, p:load("load_k", K))
        P:store("store_p", p:task("weights", function() return exp2(s * to_log2 - mx) / l end))
      end)
    end),
    small = {{b = 1, h = 2, m = 50, n = 70, d = 32}, {b = 1, h = 1, m = 1, n = 3, d = 64}},
    usual = {{b = 4, h = 16, m = 2048, n = 2048, d = 64}},
    formula = function(t, sizes)
      return {P = function(b, h, m, n)
        return attention(sizes.n, function(j)
          return sum(function(i) return t.Q(b, h, m, i) * t.K(b, h, j, i) end, sizes.d) / math.sqrt(sizes.d)
        end, function(j) return j == n and 1 or 0 end)
      end}
    end,
  },
}
