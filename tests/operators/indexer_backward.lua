-- The gradients of DeepSeek-V3.2's indexer by the difference between its distribution over the listed keys and that of attention: with
-- L[i,t,h] = scale Q[i,h,:] . K[Keys[i,t],:], G[i,t] = Index[i,t] - Attention[i,t] and D[i,t,h] = G[i,t] W[i,h] where L > 0, else 0,
--
--   dW[i,h] = sum over t of G[i,t] max(L[i,t,h], 0),   dQ[i,h,:] = scale (sum over t of D[i,t,h] K[Keys[i,t],:]),
--   dK[n,:] = scale (sum over the i, t that list n, and over h, of D[i,t,h] Q[i,h,:])
--
-- Sequences are packed: Begin[i] is where that of query i begins, and Keys are relative to it, with -1 for none.
local mr = require "millrace"
local max, where, rowsum = mr.max, mr.where, mr.rowsum

local function keys(sizes, i, t)
  local at = i - (i < sizes.i // 2 and 0 or sizes.i // 2)
  return t <= at and (t + at // 2) % (at + 1) or -1
end

return {
  program = mr.program("indexer_backward", function(p)
    local i, h, n, t, d = p:axes("i", "h", "n", "t", "d")
    local scale = 1 / math.sqrt(d.size)
    local Q, K, W = p:input("Q", {i, h, d}), p:input("K", {n, d}), p:input("W", {i, h})
    local Keys, Begin = p:input("Keys", {i, t}, "i32"), p:input("Begin", {i}, "i32")
    local Index, Attention = p:input("Index", {i, t}, "f32"), p:input("Attention", {i, t}, "f32")
    local dQ, dW, dK = p:output("dQ", {i, h, d}), p:output("dW", {i, h}), p:output("dK", {n, d}, "f32")
    local key, all = p:axis("key", n.size), p:axis("all", d.size)
    p:phase("begin", function()
      dK:store("zero", p:task("zeros", function() return (key:index() + all:index()):to "f32" * 0 end), {key, all})
    end)
    p:phase("gradients", function()
      p:batch(i)
      local q, w, begin = p:load("load_q", Q), p:load("load_w", W), p:load("load_begin", Begin)
      local dq, dw = p:carry("dq", {h, d}, 0), p:carry("dw", {h}, 0)
      p:loop(t, function()
        local listed = p:load("load_keys", Keys)
        local row = p:task("rows", function() return where(listed:ge(0), begin + listed, -1) end)
        local k = p:load("load_k", K, {row, d})
        local index, attention = p:load("load_index", Index), p:load("load_attention", Attention)
        local logits = p:mma("mma_qk", k, q)
        local ds = p:task("slope", function()
          local g = index - attention
          dw:add(rowsum(max(logits, 0) * g, t) * scale)
          return where(logits:gt(0), g * w * scale, 0):to "bf16"
        end)
        dq:add(p:mma("mma_dq", ds, k))
        dK:add("add_dk", p:mma("mma_dk", ds, q), {row, d})
      end)
      dQ:store("store_dq", p:task("round_dq", function() return dq:to "bf16" end))
      dW:store("store_dw", p:task("round_dw", function() return dw:to "bf16" end))
    end)
  end),
  small = {{i = 6, h = 16, n = 6, t = 16, d = 64}, {i = 5, h = 8, n = 5, t = 24, d = 32}},
  usual = {{i = 2048, h = 16, n = 2048, t = 64, d = 128}, {i = 4096, h = 64, n = 4096, t = 2048, d = 128}},
  fill = {Keys = keys, Begin = function(sizes, i) return i < sizes.i // 2 and 0 or sizes.i // 2 end},
  formula = function(T, sizes)
    local known, scale = {}, 1 / math.sqrt(sizes.d)
    local function of(i, t, h)                                  -- the key, G, L and D of a listed key, or nil
      local name = (i * sizes.t + t) * sizes.h + h
      if known[name] == nil then
        known[name] = false
        if T.Keys(i, t) >= 0 then
          local key, logit, g = T.Begin(i) + T.Keys(i, t), 0, T.Index(i, t) - T.Attention(i, t)
          for d = 0, sizes.d - 1 do logit = logit + T.Q(i, h, d) * T.K(key, d) end
          known[name] = {key = key, g = g, logit = logit * scale, slope = logit > 0 and g * T.W(i, h) or 0}
        end
      end
      return known[name]
    end
    return {
      dQ = function(i, h, d)
        local sum = 0
        for t = 0, sizes.t - 1 do
          local at = of(i, t, h)
          if at then sum = sum + at.slope * T.K(at.key, d) * scale end
        end
        return sum
      end,
      dW = function(i, h)
        local sum = 0
        for t = 0, sizes.t - 1 do
          local at = of(i, t, h)
          if at then sum = sum + at.g * math.max(at.logit, 0) end
        end
        return sum
      end,
      dK = function(n, d)
        local sum = 0
        for i = 0, sizes.i - 1 do
          for t = 0, sizes.t - 1 do
            for h = 0, sizes.h - 1 do
              local at = of(i, t, h)
              if at and at.key == n then sum = sum + at.slope * T.Q(i, h, d) * scale end
            end
          end
        end
        return sum
      end,
    }
  end,
}
