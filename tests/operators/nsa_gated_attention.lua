-- O = Chosen gate * O1 + Near gate * O2 for each query t and head h, where O1 is attention over the keys j <= t of the blocks that
-- Blocks[b,t,hk,:Count[b,t,hk]] lists, and O2 over the last `window` keys, t - window < j <= t; hk = h // (hq / hkv).
--
-- Native sparse attention (DeepSeek): the branches of chosen blocks and of the sliding window, and the gates that a model learns for each
-- token and head.
local mr = require "millrace"
local max, exp2, where = mr.max, mr.exp2, mr.where

local LOG2E <const> = 1.4426950408889634

local function count(sizes, b, t, h) return math.min(t // sizes.size + 1, sizes.s - (b + t + h) % 2) end

return {
  program = mr.program("nsa_gated_attention", function(p)
    local b, t, hkv, s, d = p:axes("b", "t", "hkv", "s", "d")
    local hq, g, key = p:axis("hq", p.hq), p:axis("g", p.hq // hkv.size), p:axis("key", p.size)
    local n = p:axis("n", t.size)
    local Q, K, V = p:input("Q", {b, t, hq, d}), p:input("K", {b, n, hkv, d}), p:input("V", {b, n, hkv, d})
    local Blocks, Count = p:input("Blocks", {b, t, hkv, s}, "i32"), p:input("Count", {b, t, hkv}, "i32")
    local Chosen, Near = p:input("Chosen", {b, t, hq}), p:input("Near", {b, t, hq})
    local O = p:output("O", {b, t, hq, d})
    p:batch(b, t, hkv)
    local head = hkv * g.size + g
    local q = p:load("load_q", Q, {b, t, head, d})
    local function carries(name) return p:carry("mx_" .. name, {g}, -1e30), p:carry("l_" .. name, {g}, 0), p:carry("o_" .. name, {g, d}, 0) end
    local function attend(name, mx, l, o, row, over, seen)
      local qk = p:mma("mma_qk_" .. name, q, p:load("load_k_" .. name, K, {b, row, hkv, d}))
      local pr, alpha = p:task("softmax_" .. name, function()
        local x = where(seen(), qk * (LOG2E / math.sqrt(d.size)), -math.huge)
        local new = max(mx, x:rowmax(over))
        local pr, alpha = exp2(x - new), exp2(mx - new)
        l:set(l * alpha + pr:rowsum(over))
        mx:set(new)
        return pr:to "bf16", alpha
      end)
      p:task("rescale_" .. name, function() o:set(o * alpha) end)
      o:add(p:mma("mma_pv_" .. name, pr, p:load("load_v_" .. name, V, {b, row, hkv, d})))
    end
    local mx1, l1, o1 = carries "chosen"
    p:loop(s, {batch = true, length = p:load(Count)}, function()
      local first = p:load("load_blocks", Blocks) * key.size
      attend("chosen", mx1, l1, o1, first + key, key, function() return (first + key:index()):le(t:index()) end)
    end)
    local mx2, l2, o2 = carries "near"
    p:loop(n, {from = t - (p.window - 1), upto = t}, function()
      attend("near", mx2, l2, o2, n, n, function() return n:index():le(t:index()) & n:index():gt(t:index() - p.window) end)
    end)
    local chosen, near = p:load("load_chosen", Chosen, {b, t, head}), p:load("load_near", Near, {b, t, head})
    O:store("store_o", p:task("finish", function()
      return (o1 * (chosen / l1) + o2 * (near / l2)):to "bf16"
    end), {b, t, head, d})
  end),
  small = {
    {b = 1, t = 40, hkv = 2, hq = 32, s = 3, d = 32, size = 16, window = 12},
    {b = 1, t = 33, hkv = 1, hq = 16, s = 2, d = 64, size = 16, window = 20},
  },
  usual = {{b = 1, t = 8192, hkv = 4, hq = 64, s = 16, d = 128, size = 64, window = 512}},
  fill = {Count = count, Blocks = function(sizes, _, t, _, i) return math.max(t // sizes.size - i, 0) end},
  formula = function(t, sizes)
    return {O = function(b, at, h, d)
      local hk = h // (sizes.hq // sizes.hkv)
      local function attention(seen)
        local over, under = 0, 0
        for j = 0, at do
          local times = seen(j)
          if times > 0 then
            local score = 0
            for x = 0, sizes.d - 1 do score = score + t.Q(b, at, h, x) * t.K(b, j, hk, x) end
            local weight = times * math.exp(score / math.sqrt(sizes.d))
            over, under = over + weight * t.V(b, j, hk, d), under + weight
          end
        end
        return over / under
      end
      local chosen = attention(function(j)
        local times = 0
        for i = 0, t.Count(b, at, hk) - 1 do
          if t.Blocks(b, at, hk, i) == j // sizes.size then times = times + 1 end
        end
        return times
      end)
      local near = attention(function(j) return j > at - sizes.window and 1 or 0 end)
      return t.Chosen(b, at, h) * chosen + t.Near(b, at, h) * near
    end}
  end,
}
