-- Attention of which a query sees some keys:
--   sliding_sink_attention: the last `window` keys and the first few, heads in groups, causal (StreamingLLM);
--   window_attention: tokens of one window of an image, with a bias of relative positions and a mask of shifted windows (Swin);
--   neighbourhood_attention: the 7 x 7 positions of an image around the query's (NATTEN);
--   packed_qkv_attention: queries, keys and values of all heads in one tensor, as one linear layer makes them (timm, GPT-2).
local mr = require "millrace"
local max, exp, exp2, where = mr.max, mr.exp, mr.exp2, mr.where
local sum = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua").sum_below
local shared = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/attention.lua")
local online, carries = shared.online, shared.carries

local LOG2E <const> = 1.4426950408889634

-- The mean of value(j) over keys 0 to n - 1, weighed by exp(score(j)); keys whose score is nil are not seen.
local function attention(n, score, value)
  local total, weights = 0, 0
  for j = 0, n - 1 do
    local s = score(j)
    local w = s and math.exp(s) or 0
    total, weights = total + (w > 0 and w * value(j) or 0), weights + w
  end
  return total / weights
end

return {
  {
    name = "sliding_sink_attention",
    program = mr.program("sliding_sink_attention", function(p)
      local b, h, m, d = p:axes("b", "h", "m", "d")
      local hkv, window = p:option("hkv", "integer", h.size), p:option("window", "integer", 128)
      local n, kv, first = p:axis("n", m.size), p:axis("kv", hkv), p:axis("first", p.first or 4)
      local Q, K, V = p:input("Q", {b, m, h, d}), p:input("K", {b, n, kv, d}), p:input("V", {b, n, kv, d})
      local O = p:output("O", {b, m, h, d})
      p:batch(b, h)
      local head, to_log2 = h // (h.size // hkv), LOG2E / math.sqrt(d.size)
      local q = p:load("load_q", Q)
      local mx, l, o = carries(p, m, d)
      local s = p:mma("mma_first", q, p:load("load_k_first", K, {b, first, head, d}))
      online(p, "_first", mx, l, o, first, function()
        return where(first:index():le(m:index()), s * to_log2, -1e30)
      end, function(pr) return p:mma("mma_pv_first", pr, p:load("load_v_first", V, {b, first, head, d})) end)
      p:loop(n, {from = m - (window - 1), upto = m}, function()
        local qk = p:mma("mma_qk", q, p:load("load_k", K, {b, n, head, d}))
        online(p, "", mx, l, o, n, function()
          local i, j = m:index(), n:index()
          return where(j:le(i) & j:gt(i - window) & j:ge(first.size), qk * to_log2, -1e30)
        end, function(pr) return p:mma("mma_pv", pr, p:load("load_v", V, {b, n, head, d})) end)
      end)
      O:store("store_o", p:task("normalise", function() return o / l end))
    end),
    small = {{b = 2, h = 4, hkv = 2, m = 70, d = 64, window = 20}, {b = 1, h = 1, m = 1, d = 40, window = 5}},
    usual = {{b = 1, h = 32, hkv = 8, m = 16384, d = 128, window = 4096}},
    formula = function(t, sizes)
      return {O = function(b, m, h, d)
        local kv = h // (sizes.h // (sizes.hkv or sizes.h))
        return attention(m + 1, function(j)
          if j >= 4 and j <= m - sizes.window then return nil end
          return sum(function(i) return t.Q(b, m, h, i) * t.K(b, j, kv, i) end, sizes.d) / math.sqrt(sizes.d)
        end, function(j) return t.V(b, j, kv, d) end)
      end}
    end,
  },
  {
    name = "window_attention",
    program = mr.program("window_attention", function(p)
      local w, h, m, d = p:axes("w", "h", "m", "d")
      local n, masks = p:axis("n", m.size), p:axis("masks", p.masks or 1)
      local Q, K, V = p:input("Q", {w, m, h, d}), p:input("K", {w, n, h, d}), p:input("V", {w, n, h, d})
      local Bias, Mask, O = p:input("Bias", {h, m, n}), p:input("Mask", {masks, m, n}), p:output("O", {w, m, h, d})
      p:batch(w, h)
      local s = p:mma("mma_qk", p:load("load_q", Q), p:load("load_k", K))
      local bias, mask = p:load("load_bias", Bias), p:load("load_mask", Mask, {w % masks.size, m, n})
      local pr, l = p:task("softmax", function()
        local x = s * (1 / math.sqrt(d.size)) + bias + mask
        local e = exp(x - x:rowmax(n))
        return e:to "bf16", e:rowsum(n)
      end)
      local o = p:mma("mma_pv", pr, p:load("load_v", V))
      O:store("store_o", p:task("normalise", function() return o / l end))
    end),
    small = {{w = 6, h = 2, m = 49, d = 32, masks = 4}, {w = 2, h = 1, m = 16, d = 16}},
    usual = {{w = 4096, h = 12, m = 49, d = 32, masks = 64}},
    formula = function(t, sizes)
      return {O = function(w, m, h, d)
        return attention(sizes.m, function(j)
          return sum(function(i) return t.Q(w, m, h, i) * t.K(w, j, h, i) end, sizes.d) / math.sqrt(sizes.d) + t.Bias(h, m, j) +
            t.Mask(w % (sizes.masks or 1), m, j)
        end, function(j) return t.V(w, j, h, d) end)
      end}
    end,
  },
  {
    name = "neighbourhood_attention",
    program = mr.program("neighbourhood_attention", function(p)
      local b, h, y, x, d = p:axes("b", "h", "y", "x", "d")
      local r, s = p:axis("r", 7), p:axis("s", 7)
      local Q, K, V = p:input("Q", {b, h, y, x, d}), p:input("K", {b, h, y, x, d}), p:input("V", {b, h, y, x, d})
      local O = p:output("O", {b, h, y, x, d})
      p:batch(b, h, y)
      local q = p:load("load_q", Q)
      local mx, l, o = carries(p, x, d)
      p:loop({r, s}, {batch = true}, function()
        local at = {b, h, y + r - 3, x + s - 3, d}
        local k, v = p:load("load_k", K, at), p:load("load_v", V, at)
        p:task("step", function()
          local row, column = y:index() + r:index() - 3, x:index() + s:index() - 3
          local inside = row:ge(0) & row:lt(y.size) & column:ge(0) & column:lt(x.size)
          local score = where(inside, (q * k):rowsum(d) * (1 / math.sqrt(d.size)), -1e30)
          local new = max(mx, score)
          local alpha, weight = exp(mx - new), where(inside, exp(score - new), 0)
          o:set(o * alpha + weight * v)
          l:set(l * alpha + weight)
          mx:set(new)
        end)
      end)
      O:store("store_o", p:task("normalise", function() return o / l end))
    end),
    small = {{b = 1, h = 1, y = 3, x = 9, d = 32}},
    usual = {{b = 16, h = 8, y = 56, x = 56, d = 32}},
    formula = function(t, sizes)
      return {O = function(b, h, y, x, d)
        return attention(49, function(j)
          local row, column = y + j // 7 - 3, x + j % 7 - 3
          if row < 0 or row >= sizes.y or column < 0 or column >= sizes.x then return nil end
          return sum(function(i) return t.Q(b, h, y, x, i) * t.K(b, h, row, column, i) end, sizes.d) / math.sqrt(sizes.d)
        end, function(j) return t.V(b, h, y + j // 7 - 3, x + j % 7 - 3, d) end)
      end}
    end,
  },
  {
    name = "packed_qkv_attention",
    program = mr.program("packed_qkv_attention", function(p)
      local b, h, m, d = p:axes("b", "h", "m", "d")
      local width = h.size * d.size
      local n, all, out = p:axis("n", m.size), p:axis("all", 3 * width), p:axis("out", width)
      local X, O = p:input("X", {b, n, all}), p:output("O", {b, m, out})
      p:batch(b, h)
      local q = p:load("load_q", X, {b, m, h * d.size + d})
      local mx, l, o = carries(p, m, d)
      p:loop(n, function()
        local qk = p:mma("mma_qk", q, p:load("load_k", X, {b, n, h * d.size + d + width}))
        online(p, "", mx, l, o, n, function() return qk * (LOG2E / math.sqrt(d.size)) end, function(pr)
          return p:mma("mma_pv", pr, p:load("load_v", X, {b, n, h * d.size + d + 2 * width}))
        end)
      end)
      O:store("store_o", p:task("normalise", function() return o / l end), {b, m, h * d.size + d})
    end),
    small = {{b = 1, h = 2, m = 40, d = 20}, {b = 1, h = 3, m = 37, d = 24}, {b = 1, h = 3, m = 7, d = 5}},
    usual = {{b = 4, h = 16, m = 4096, d = 64}, {b = 64, h = 16, m = 197, d = 80}},
    formula = function(t, sizes)
      local width = sizes.h * sizes.d
      return {O = function(b, m, e)
        local first = e // sizes.d * sizes.d
        return attention(sizes.m, function(j)
          return sum(function(i) return t.X(b, m, first + i) * t.X(b, j, first + i + width) end, sizes.d) / math.sqrt(sizes.d)
        end, function(j) return t.X(b, j, e + 2 * width) end)
      end}
    end,
  },
}
