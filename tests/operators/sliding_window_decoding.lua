-- O[b,h] = sum over j of softmax_j(scale Q[b,h] . K[b,j]) V[b,j] for one new query of each sequence, which sees the last `window` of
-- the Length[b] keys of the cache alone (Mistral, Gemma, gpt-oss).
-- sliding_window_decoding: the cache has all keys. ring_cache_decoding: it has `window` slots, key j in slot j % window.
local mr = require "millrace"
local max, min, exp2 = mr.max, mr.min, mr.exp2

local LOG2E <const> = 1.4426950408889634

local function decoding(name, ring)
  return {
    name = name,
    program = mr.program(name, function(p)
      local b, hkv, g, n, d = p:axes("b", "hkv", "g", "n", "d")
      local window = p:option("window", "integer")
      local w, h = p:axis("w", window), p:axis("h", hkv.size * g.size)
      local slots = ring and p:axis("slots", window) or n
      local Q, O = p:input("Q", {b, h, d}), p:output("O", {b, h, d})
      local K, V = p:input("K", {b, slots, hkv, d}), p:input("V", {b, slots, hkv, d})
      local Length = p:input("Length", {b}, "i32")
      p:batch(b, hkv)
      local head = hkv * g.size + g
      local q, first = p:load("load_q", Q, {b, head, d}), nil
      if not ring then
        local length = p:load("load_length", Length)
        first = p:task("first", function() return max(length - window, 0) end)
      end
      local mx, l, o = p:carry("mx", {g}, -1e30), p:carry("l", {g}, 0), p:carry("o", {g, d}, 0)
      p:loop(w, {length = min(p:load(Length), window)}, function()
        local at = ring and w or first + w
        local qk = p:mma("mma_qk", q, p:load("load_k", K, {b, at, hkv, d}))
        local pr, alpha = p:task("softmax", function()
          local s = qk * (LOG2E / math.sqrt(d.size))
          local new = max(mx, s:rowmax(w))
          local pr, alpha = exp2(s - new), exp2(mx - new)
          l:set(l * alpha + pr:rowsum(w))
          mx:set(new)
          return pr:to "bf16", alpha
        end)
        p:task("rescale", function() o:set(o * alpha) end)
        o:add(p:mma("mma_pv", pr, p:load("load_v", V, {b, at, hkv, d})))
      end)
      O:store("store_o", p:task("normalise", function() return (o / l):to "bf16" end), {b, head, d})
    end),
    small = {{b = 3, hkv = 1, g = 4, n = 200, d = 64, window = 64}, {b = 2, hkv = 2, g = 3, n = 90, d = 40, window = 50}},
    usual = {{b = 64, hkv = 8, g = 4, n = 32768, d = 128, window = 4096}, {b = 128, hkv = 8, g = 8, n = 8192, d = 64, window = 128}},
    fill = {Length = function(sizes, b) return b == 0 and sizes.window // 2 or math.max(1, sizes.n - 13 * b) end},
    formula = function(t, sizes)
      return {O = function(b, h, d)
        local length, hkv, scores, sum, total = t.Length(b), h // sizes.g, {}, 0, 0
        for j = math.max(0, length - sizes.window), length - 1 do
          local at, s = ring and j % sizes.window or j, 0
          for i = 0, sizes.d - 1 do s = s + t.Q(b, h, i) * t.K(b, at, hkv, i) end
          scores[j] = math.exp(s / math.sqrt(sizes.d))
          sum, total = sum + scores[j], total + scores[j] * t.V(b, at, hkv, d)
        end
        return total / sum
      end}
    end,
  }
end

return {decoding("sliding_window_decoding", false), decoding("ring_cache_decoding", true)}
