-- Attention of heads that share one latent vector a key, over the keys that a list of each query names:
--
--   O[b,i,h,:] = sum over t of softmax_t(scale Q[b,i,h,:] . KV[b,Keys[b,i,t],:]) KV[b,Keys[b,i,t],:d],
--   Lse[b,i,h] = log2 of the sum over t of exp(scale Q . KV)
--
-- where the last r elements of Q and KV are the rotated part, which values do not have. Keys behind the query do not count.
-- DeepSeek-V3.2 and GLM-5 attend to the 2048 keys that an indexer has chosen. A list names a key once at most, and has n where it has none.
--
--   sparse_mla           for a batch; with `stride`, a key stands for so many tokens, and query i is token first + i
--   sparse_mla_varlen    sequences of a batch are packed: Sequence[i] is that of query i, which begins at Begin[Sequence[i]]
--   sparse_mla_weights   Sum[i,t] = the sum over h of the weights of the t-th listed key, from which its indexer learns
--   sparse_mla_backward  the gradients of Q and KV, by those of O: with W = exp(scale Q . KV - Lse),
--                        dS = scale W (dO . KV - Delta), Delta = sum of dO * O over d, dQ = sum over t of dS KV, and each listed
--                        key gets dS Q, and W dO in the part that values have
local mr = require "millrace"
local max, exp2, log2, where, rowmax, rowsum = mr.max, mr.exp2, mr.log2, mr.where, mr.rowmax, mr.rowsum

local LOG2E <const> = 1.4426950408889634

-- The products of heads of a query with listed keys, and attention over these keys.
local function scores(p, q, rotated, kv, tail, h, t)
  local s = p:carry("s", {h, t}, 0)
  s:add(p:mma("mma_qk", q, kv))
  s:add(p:mma("mma_rotated", rotated, tail))
  return s
end

local function attend(p, axes, scale, load_keys, load_kv, load_tail, q, rotated, last)
  local h, t, d = axes.h, axes.t, axes.d
  local mx, l, o = p:carry("mx", {h}, -1e30), p:carry("l", {h}, 0), p:carry("o", {h, d}, 0)
  p:loop(t, function()
    local key = load_keys()
    local kv = load_kv(key)
    local s = scores(p, q, rotated, kv, load_tail(key), h, t)
    local pr, alpha = p:task("softmax", function()
      local s = where(key:le(last()), s * scale, -math.huge)
      local new = max(mx, rowmax(s, t))
      local pr, alpha = exp2(s - new), exp2(mx - new)
      l:set(l * alpha + rowsum(pr, t))
      mx:set(new)
      return pr:to "bf16", alpha
    end)
    p:task("rescale", function() o:set(o * alpha) end)
    o:add(p:mma("mma_pv", pr, kv))
  end)
  return p:task("finish", function() return (o / l):to "bf16", log2(l) + mx end)
end

local forward = mr.program("sparse_mla", function(p)
  local b, i, h, n, t, d, r = p:axes("b", "i", "h", "n", "t", "d", "r")
  local stride, first = p:option("stride", "integer", 1), p:option("first", "integer", 0)
  local c = p:axis("c", d.size + r.size)                -- of a latent vector and its rotated part
  local scale = LOG2E / math.sqrt(c.size)
  local Q, KV = p:input("Q", {b, i, h, c}), p:input("KV", {b, n, c})
  local Keys = p:input("Keys", {b, i, t}, "i32")
  local O, Lse = p:output("O", {b, i, h, d}), p:output("Lse", {b, i, h}, "f32")
  p:batch(b, i)
  local q, rotated = p:load("load_q", Q, {b, i, h, d}), p:load("load_rotated", Q, {b, i, h, d.size + r})
  local out, lse = attend(p, {h = h, t = t, d = d}, scale,
    function() return p:load("load_keys", Keys) end,
    function(key) return p:load("load_kv", KV, {b, key, d}) end,
    function(key) return p:load("load_tail", KV, {b, key, d.size + r}) end,
    q, rotated, function() return (i:index() + (first + 1 - stride)) // stride end)
  O:store("store_o", out)
  Lse:store("store_lse", lse)
end)

local varlen = mr.program("sparse_mla_varlen", function(p)
  local i, h, n, t, d, r, b = p:axes("i", "h", "n", "t", "d", "r", "b")
  local c, ends = p:axis("c", d.size + r.size), p:axis("ends", b.size + 1)
  local Q, KV = p:input("Q", {i, h, c}), p:input("KV", {n, c})
  local Keys, Sequence = p:input("Keys", {i, t}, "i32"), p:input("Sequence", {i}, "i32")
  local Begin = p:input("Begin", {ends}, "i32")
  local O, Lse = p:output("O", {i, h, d}), p:output("Lse", {i, h}, "f32")
  p:batch(i)
  local q, rotated = p:load("load_q", Q, {i, h, d}), p:load("load_rotated", Q, {i, h, d.size + r})
  local begin = p:load("load_begin", Begin, {p:load("load_sequence", Sequence)})
  local out, lse = attend(p, {h = h, t = t, d = d}, LOG2E / math.sqrt(c.size),
    function()
      local key = p:load("load_keys", Keys)
      return p:task("rows", function() return begin + key end)
    end,
    function(row) return p:load("load_kv", KV, {row, d}) end,
    function(row) return p:load("load_tail", KV, {row, d.size + r}) end,
    q, rotated, function() return i:index() end)
  O:store("store_o", out)
  Lse:store("store_lse", lse)
end)

local weights = mr.program("sparse_mla_weights", function(p)
  local i, h, n, t, d, r = p:axes("i", "h", "n", "t", "d", "r")
  local c = p:axis("c", d.size + r.size)
  local Q, KV = p:input("Q", {i, h, c}), p:input("KV", {n, c})
  local Keys, Lse = p:input("Keys", {i, t}, "i32"), p:input("Lse", {i, h}, "f32")
  local Sum = p:output("Sum", {i, t}, "f32")
  p:batch(i)
  local q, rotated = p:load("load_q", Q, {i, h, d}), p:load("load_rotated", Q, {i, h, d.size + r})
  local key, lse = p:load("load_keys", Keys), p:load("load_lse", Lse)
  local kv, tail = p:load("load_kv", KV, {key, d}), p:load("load_tail", KV, {key, d.size + r})
  local s = scores(p, q, rotated, kv, tail, h, t)
  Sum:store("store_sum", p:task("weights", function()
    return where(key:le(i:index()), exp2(s * (LOG2E / math.sqrt(c.size)) - lse), 0):rowsum(h)
  end))
end)

-- Gradients are over e, which is c for results, so that tiles may divide it: :at reads operands over e. dO is zero where values end.
local backward = mr.program("sparse_mla_backward", function(p)
  local i, h, n, t, d, r = p:axes("i", "h", "n", "t", "d", "r")
  local c, e = p:axis("c", d.size + r.size), p:axis("e", d.size + r.size)
  local scale = 1 / math.sqrt(c.size)
  local Q, KV, Keys = p:input("Q", {i, h, c}), p:input("KV", {n, c}), p:input("Keys", {i, t}, "i32")
  local O, dO, Lse = p:input("O", {i, h, d}), p:input("dO", {i, h, d}), p:input("Lse", {i, h}, "f32")
  local dQ, dKV = p:output("dQ", {i, h, c}), p:output("dKV", {n, c})
  local Sum, Delta = p:temp("Sum", {n, c}, "f32"), p:temp("Delta", {i, h}, "f32")
  local query, head, key, all = p:axis("query", i.size), p:axis("head", h.size), p:axis("key", n.size), p:axis("all", c.size)

  p:phase("begin", function()
    Sum:store("zero", p:task("zeros", function() return (key:index() + all:index()):to "f32" * 0 end), {key, all})
  end)
  p:phase("delta", function()
    local o, go = p:load("load_o", O, {query, head, d}), p:load("load_go", dO, {query, head, d})
    Delta:store("store_delta", p:task("delta", function() return rowsum(o * go, d) end), {query, head})
  end)
  p:phase("gradients", function()
    p:batch(i)
    local q, go = p:load("load_q", Q), p:load("load_go2", dO, {i, h, c})
    local lse, delta = p:load("load_lse", Lse), p:load("load_delta", Delta)
    local dq = p:carry("dq", {h, e}, 0)
    p:loop(t, function()
      local key = p:load("load_keys", Keys)
      local kv = p:load("load_kv", KV, {key, c})
      local s, dp = p:mma("mma_s", q, kv), p:mma("mma_dp", go, kv)
      local w, ds = p:task("softmax", function()
        local w = where(key:le(i:index()), exp2(s * (scale * LOG2E) - lse), 0)
        return w:to "bf16", (w * (dp - delta) * scale):to "bf16"
      end)
      dq:add(p:mma("mma_dq", ds, kv:at(c, e)))
      local dkv = p:carry("dkv", {t, e}, 0)
      dkv:add(p:mma("mma_dk", ds, q:at(c, e)))
      dkv:add(p:mma("mma_dv", w, go:at(c, e)))
      Sum:add("add_dkv", dkv, {key, e})
    end)
    dQ:store("store_dq", p:task("round_dq", function() return dq:to "bf16" end), {i, h, e})
  end)
  p:phase("cast", function()
    local sum = p:load("load_sum", Sum, {key, all})
    dKV:store("store_dkv", p:task("round", function() return sum:to "bf16" end), {key, all})
  end)
end)

-- Lists with different keys, of which the last ones are behind queries with fewer keys than the list has space for.
local function keys(sizes, _, i, t) return t <= i and (t + i // 2) % (i + 1) or sizes.n end

-- Weights of a query's keys, by the keys' rows.
local function attention(T, sizes, last)
  local width, known = sizes.d + sizes.r, {}
  return function(b, i, h)
    local name = ("%d %d %d"):format(b, i, h)
    if known[name] then return known[name] end
    local weight, key, sum = {}, {}, 0
    for t = 0, sizes.t - 1 do
      local j = T.Keys(b, i, t)
      if j <= (last and last(i) or i) then
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

-- The same with T.Q and others that have a batch.
local function unbatched(T)
  return {
    Q = function(_, ...) return T.Q(...) end, KV = function(_, ...) return T.KV(...) end, Keys = function(_, ...) return T.Keys(...) end,
  }
end

local function forward_formula(T, sizes, row)
  return {
    O = function(b, i, h, d)
      local at, sum = row(b, i, h), 0
      for s = 1, #at.key do sum = sum + at.weight[s] * T.KV(b, at.key[s], d) end
      return #at.key > 0 and sum / at.sum or nil
    end,
    Lse = function(b, i, h)
      local at = row(b, i, h)
      return #at.key > 0 and math.log(at.sum, 2) or nil
    end,
  }
end

-- Two sequences, of which the first is a little shorter.
local function begin(sizes, b) return ({0, sizes.i // 2 - 1, sizes.i})[b + 1] end
local function sequence(sizes, i) return i < begin(sizes, 1) and 0 or 1 end

return {
  {
    name = "sparse_mla",
    program = forward,
    small = {
      {b = 1, i = 2, h = 64, n = 48, t = 64, d = 64, r = 16},
      {b = 2, i = 3, h = 16, n = 40, t = 24, d = 32, r = 16},
      {b = 1, i = 4, h = 16, n = 40, t = 24, d = 32, r = 16, stride = 4, first = 37},
    },
    usual = {{b = 1, i = 4096, h = 128, n = 8192, t = 2048, d = 512, r = 64}},
    fill = {Keys = function(sizes, b, i, t) return keys(sizes, b, i + (sizes.first or 0) // (sizes.stride or 1), t) end},
    formula = function(T, sizes)
      local stride = sizes.stride or 1
      return forward_formula(T, sizes, attention(T, sizes, function(i) return (i + (sizes.first or 0) + 1 - stride) // stride end))
    end,
  },
  {
    name = "sparse_mla_varlen",
    program = varlen,
    small = {{i = 8, h = 16, n = 8, t = 8, d = 32, r = 16, b = 2}},
    usual = {{i = 4096, h = 128, n = 4096, t = 1024, d = 512, r = 64, b = 2}},
    fill = {
      Keys = function(sizes, i, t) return keys(sizes, 0, i - begin(sizes, sequence(sizes, i)), t) end,
      Sequence = sequence, Begin = begin,
    },
    formula = function(T, sizes)
      local row = {}
      for b = 0, sizes.b - 1 do
        local first = T.Begin(b)
        local at = {
          Q = function(_, i, ...) return T.Q(first + i, ...) end, KV = function(_, j, ...) return T.KV(first + j, ...) end,
          Keys = function(_, i, ...) return T.Keys(first + i, ...) end,
        }
        row[b] = {first = first, formula = forward_formula(at, sizes, attention(at, sizes))}
      end
      local function of(name)
        return function(i, ...)
          local s = row[T.Sequence(i)]
          return s.formula[name](0, i - s.first, ...)
        end
      end
      return {O = of "O", Lse = of "Lse"}
    end,
  },
  {
    name = "sparse_mla_weights",
    program = weights,
    small = {{i = 4, h = 64, n = 48, t = 32, d = 64, r = 16}, {i = 5, h = 16, n = 40, t = 24, d = 32, r = 16}},
    usual = {{i = 2048, h = 16, n = 2048, t = 128, d = 512, r = 64}, {i = 4096, h = 128, n = 4096, t = 1024, d = 512, r = 64}},
    fill = {Keys = function(sizes, i, t) return keys(sizes, 0, i, t) end, Lse = function() return 5 end},
    formula = function(T, sizes)
      local row = attention(unbatched(T), sizes)
      return {Sum = function(i, t)
        if T.Keys(i, t) > i then return 0 end
        local sum = 0
        for h = 0, sizes.h - 1 do
          local at = row(0, i, h)
          for s = 1, #at.key do
            if at.key[s] == T.Keys(i, t) then sum = sum + at.weight[s] / 2.0 ^ T.Lse(i, h) end
          end
        end
        return sum
      end}
    end,
  },
  {
    name = "sparse_mla_backward",
    program = backward,
    small = {{i = 3, h = 64, n = 32, t = 32, d = 64, r = 16}, {i = 5, h = 16, n = 24, t = 8, d = 32, r = 16}},
    usual = {{i = 4096, h = 64, n = 8192, t = 2048, d = 512, r = 64}},
    fill = {Keys = function(sizes, i, t) return keys(sizes, 0, i, t) end, Lse = function() return 3 end},
    formula = function(T, sizes)
      local row, width = attention(unbatched(T), sizes), sizes.d + sizes.r
      local function gradient(i, h, s)                          -- w and dS of the s-th key that counts
        local at, delta, dp = row(0, i, h), 0, 0
        at.ds, at.w = at.ds or {}, at.w or {}
        if not at.ds[s] then
          for d = 0, sizes.d - 1 do
            delta, dp = delta + T.dO(i, h, d) * T.O(i, h, d), dp + T.dO(i, h, d) * T.KV(at.key[s], d)
          end
          at.w[s] = at.weight[s] / 2.0 ^ T.Lse(i, h)
          at.ds[s] = at.w[s] * (dp - delta) / math.sqrt(width)
        end
        return at.w[s], at.ds[s]
      end
      return {
        dQ = function(i, h, c)
          local at, sum = row(0, i, h), 0
          for s = 1, #at.key do
            local _, ds = gradient(i, h, s)
            sum = sum + ds * T.KV(at.key[s], c)
          end
          return sum
        end,
        dKV = function(j, c)
          local sum = 0
          for i = 0, sizes.i - 1 do
            for h = 0, sizes.h - 1 do
              local at = row(0, i, h)
              for s = 1, #at.key do
                if at.key[s] == j then
                  local w, ds = gradient(i, h, s)
                  sum = sum + ds * T.Q(i, h, c) + (c < sizes.d and w * T.dO(i, h, c) or 0)
                end
              end
            end
          end
          return sum
        end,
      }
    end,
  },
}
