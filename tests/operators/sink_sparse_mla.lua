-- Attention of heads that share one vector a key, which is its value, too, over a list of keys of each query:
--
--   O[b,i,h,:] = sum over t of W_t KV[b,Keys[b,i,t],:],   W_t = exp(scale Q[b,i,h,:] . KV[b,Keys[b,i,t],:]) / sum,
--   sum = exp(Sink[h]) + sum over t of exp(scale Q . KV)
--
-- A key of -1 is none. DeepSeek-V4 has the rotation in the last part of the vectors, and a sink for each head.
local mr = require "millrace"
local max, exp2, where, rowmax, rowsum = mr.max, mr.exp2, mr.where, mr.rowmax, mr.rowsum

local LOG2E <const> = 1.4426950408889634

return {
  program = mr.program("sink_sparse_mla", function(p)
    local b, i, h, n, t, d = p:axes("b", "i", "h", "n", "t", "d")
    local scale = LOG2E / math.sqrt(d.size)
    local Q, KV = p:input("Q", {b, i, h, d}), p:input("KV", {b, n, d})
    local Keys, Sink = p:input("Keys", {b, i, t}, "i32"), p:input("Sink", {h})
    local O = p:output("O", {b, i, h, d})
    p:batch(b, i)
    local q, sink = p:load("load_q", Q), p:load("load_sink", Sink)
    local mx, l, o = p:carry("mx", {h}, -1e30), p:carry("l", {h}, 0), p:carry("o", {h, d}, 0)
    p:loop(t, function()
      local key = p:load("load_keys", Keys)
      local kv = p:load("load_kv", KV, {b, key, d})
      local s = p:mma("mma_qk", q, kv)
      local pr, alpha = p:task("softmax", function()
        local s = where(key:ge(0), s * scale, -math.huge)
        local new = max(mx, rowmax(s, t))
        local pr, alpha = exp2(s - new), exp2(mx - new)
        l:set(l * alpha + rowsum(pr, t))
        mx:set(new)
        return pr:to "bf16", alpha
      end)
      p:task("rescale", function() o:set(o * alpha) end)
      o:add(p:mma("mma_pv", pr, kv))
    end)
    O:store("store_o", p:task("finish", function()
      return (o / (l + exp2(sink * LOG2E - mx))):to "bf16"
    end))
  end),
  small = {
    {b = 1, i = 2, h = 64, n = 80, t = 64, d = 64},
    {b = 2, i = 3, h = 24, n = 40, t = 33, d = 32},
  },
  usual = {{b = 1, i = 4096, h = 128, n = 8192, t = 1024, d = 512}, {b = 1, i = 1024, h = 8, n = 1024, t = 256, d = 64}},
  fill = {Keys = function(sizes, _, i, t) return (t + i) % 5 == 0 and -1 or (t * 7 + i * 3) % sizes.n end},
  formula = function(T, sizes)
    local known = {}
    local function row(b, i, h)
      local name = ("%d %d %d"):format(b, i, h)
      if known[name] then return known[name] end
      local all = {sum = math.exp(T.Sink(h))}
      for t = 0, sizes.t - 1 do
        local j, s = T.Keys(b, i, t), 0
        for d = 0, sizes.d - 1 do s = s + T.Q(b, i, h, d) * T.KV(b, j, d) end
        all[t] = j < 0 and 0 or math.exp(s / math.sqrt(sizes.d))
        all.sum = all.sum + all[t]
      end
      known[name] = all
      return all
    end
    return {O = function(b, i, h, d)
      local weight, sum = row(b, i, h), 0
      for t = 0, sizes.t - 1 do sum = sum + weight[t] * T.KV(b, T.Keys(b, i, t), d) end
      return sum / weight.sum
    end}
  end,
}
