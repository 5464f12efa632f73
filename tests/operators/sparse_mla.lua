-- Attention of heads that share one latent vector a key, over the keys that a list of each query names:
--
--   O[b,i,h,:] = sum over t of softmax_t(scale Q[b,i,h,:] . KV[b,Keys[b,i,t],:]) KV[b,Keys[b,i,t],:d],
--   Lse[b,i,h] = log2 of the sum over t of exp(scale Q . KV)
--
-- where the last r elements of Q and KV are the rotated part, which values do not have. Keys behind the query do not count.
-- DeepSeek-V3.2 and GLM-5 attend to the 2048 keys that an indexer has chosen.
local mr = require "millrace"
local max, exp2, log2, where, rowmax, rowsum = mr.max, mr.exp2, mr.log2, mr.where, mr.rowmax, mr.rowsum

local LOG2E <const> = 1.4426950408889634

local forward = mr.program("sparse_mla", function(p)
  local b, i, h, n, t, d, r = p:axes("b", "i", "h", "n", "t", "d", "r")
  local c = p:axis("c", d.size + r.size)                -- of a latent vector and its rotated part
  local scale = LOG2E / math.sqrt(c.size)
  local Q, KV = p:input("Q", {b, i, h, c}), p:input("KV", {b, n, c})
  local Keys = p:input("Keys", {b, i, t}, "i32")
  local O, Lse = p:output("O", {b, i, h, d}), p:output("Lse", {b, i, h}, "f32")
  p:batch(b, i)
  local q, rotated = p:load("load_q", Q, {b, i, h, d}), p:load("load_rotated", Q, {b, i, h, d.size + r})
  local mx, l, o = p:carry("mx", {h}, -1e30), p:carry("l", {h}, 0), p:carry("o", {h, d}, 0)
  p:loop(t, function()
    local key = p:load("load_keys", Keys)
    local kv = p:load("load_kv", KV, {b, key, d})
    local s = p:carry("s", {h, t}, 0)
    s:add(p:mma("mma_qk", q, kv))
    s:add(p:mma("mma_rotated", rotated, p:load("load_tail", KV, {b, key, d.size + r})))
    local pr, alpha = p:task("softmax", function()
      local s = where(key:le(i:index()), s * scale, -math.huge)
      local new = max(mx, rowmax(s, t))
      local pr, alpha = exp2(s - new), exp2(mx - new)
      l:set(l * alpha + rowsum(pr, t))
      mx:set(new)
      return pr:to "bf16", alpha
    end)
    p:task("rescale", function() o:set(o * alpha) end)
    o:add(p:mma("mma_pv", pr, kv))
  end)
  local out, lse = p:task("finish", function() return (o / l):to "bf16", log2(l) + mx end)
  O:store("store_o", out)
  Lse:store("store_lse", lse)
end)

-- Lists with different keys, of which the last ones are behind queries with fewer keys than the list has space for.
local function keys(sizes, _, i, t) return t <= i and (t * 7 + i) % (i + 1) or sizes.n end

local function attention(T, sizes)
  local width, known = sizes.d + sizes.r, {}
  return function(b, i, h)
    local name = ("%d %d %d"):format(b, i, h)
    if known[name] then return known[name] end
    local weight, key, sum = {}, {}, 0
    for t = 0, sizes.t - 1 do
      local j = T.Keys(b, i, t)
      if j <= i then
        local s = 0
        for c = 0, width - 1 do s = s + T.Q(b, i, h, c) * T.KV(b, j, c) end
        key[#key + 1], weight[#weight + 1] = j, math.exp(s / math.sqrt(width))
        sum = sum + weight[#weight]
      end
    end
    known[name] = {weight = weight, key = key, sum = sum}
    return known[name]
  end
end

return {
  program = forward,
  small = {{b = 1, i = 2, h = 64, n = 48, t = 64, d = 64, r = 16}, {b = 2, i = 3, h = 16, n = 40, t = 24, d = 32, r = 16}},
  usual = {{b = 1, i = 4096, h = 128, n = 8192, t = 2048, d = 512, r = 64}},
  fill = {Keys = keys},
  formula = function(T, sizes)
    local row = attention(T, sizes)
    return {
      O = function(b, i, h, d)
        local at, sum = row(b, i, h), 0
        for s = 1, #at.key do sum = sum + at.weight[s] * T.KV(b, at.key[s], d) end
        return sum / at.sum
      end,
      Lse = function(b, i, h) return math.log(row(b, i, h).sum, 2) end,
    }
  end,
}
