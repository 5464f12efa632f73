-- Attention with heads of other sizes for scores and values, as it is trained: O[b,i,h,:] = sum over j of w[i,j] V[b,j,hk,:], where
-- w[i,j] = exp(scale Q[b,i,h,:] . K[b,j,hk,:] - L[b,h,i]) and L the logarithm of the sum of exponentials, hk = h // (h / hkv); causal:
-- j <= i. The backward has dV = w^T dO, ds = w (dO V^T - rowsum(dO O)) scale, dQ = ds K, dK = ds^T Q, where dK and dV are sums over the
-- heads that share a key, over which the tile of these keys goes.
--
-- Multi-head latent attention (DeepSeek) multiplies 192 elements of queries and keys, and 128 of values.
local mr = require "millrace"
local max, exp2, where, rowsum = mr.max, mr.exp2, mr.where, mr.rowsum

local LOG2E <const> = 1.4426950408889634

local forward = mr.program("attention_training_forward", function(p)
  local b, h, hkv, m, d, v = p:axes("b", "h", "hkv", "m", "d", "v")
  local n, causal = p:axis("n", m.size), p:option("causal", "boolean")
  local Q, K, V = p:input("Q", {b, m, h, d}), p:input("K", {b, n, hkv, d}), p:input("V", {b, n, hkv, v})
  local O, L = p:output("O", {b, m, h, v}), p:output("L", {b, h, m}, "f32")
  p:batch(b, h)
  local head, q = h // (h.size // hkv.size), p:load("load_q", Q)
  local mx, l, o = p:carry("mx", {m}, -math.huge), p:carry("l", {m}, 0), p:carry("o", {m, v}, 0)
  p:loop(n, {upto = causal and m}, function()
    local s = p:mma("mma_qk", q, p:load("load_k", K, {b, n, head, d}))
    local pr, alpha = p:task("softmax", function()
      local x = s * (LOG2E / math.sqrt(d.size))
      if causal then x = where(n:index():le(m:index()), x, -math.huge) end
      local new = max(mx, x:rowmax(n))
      local pr, alpha = exp2(x - new), exp2(mx - new)
      l:set(l * alpha + pr:rowsum(n))
      mx:set(new)
      return pr:to "bf16", alpha
    end)
    p:task("rescale", function() o:set(o * alpha) end)
    o:add(p:mma("mma_pv", pr, p:load("load_v", V, {b, n, head, v})))
  end)
  local out, lse = p:task("finish", function() return (o / l):to "bf16", (mx + mr.log2(l)) * (1 / LOG2E) end)
  O:store("store_o", out)
  L:store("store_l", lse)
end)

local backward = mr.program("attention_training_backward", function(p)
  local b, h, hkv, m, d, v = p:axes("b", "h", "hkv", "m", "d", "v")
  local n, g, scale = p:axis("n", m.size), p:axis("g", h.size // hkv.size), 1 / math.sqrt(d.size)
  local causal = p:option("causal", "boolean")
  local Q, K, V = p:input("Q", {b, m, h, d}), p:input("K", {b, n, hkv, d}), p:input("V", {b, n, hkv, v})
  local O, dO, L = p:input("O", {b, m, h, v}), p:input("dO", {b, m, h, v}), p:input("L", {b, h, m}, "f32")
  local dQ = p:output("dQ", {b, m, h, d}, "f32")
  local dK, dV = p:output("dK", {b, n, hkv, d}), p:output("dV", {b, n, hkv, v})
  local Delta = p:temp("Delta", {b, h, m}, "f32")

  p:phase("delta", function()
    p:batch(b, h)
    local o, go = p:load("load_o", O), p:load("load_go", dO)
    local delta, zero = p:task("rows", function() return rowsum(o * go, v), (m:index() + d:index()):to "f32" * 0 end)
    Delta:store("store_delta", delta)
    dQ:store("zero_dq", zero)
  end)

  p:phase("gradients", function()
    p:batch(b, hkv)
    local head = hkv * g.size + g
    local k, val = p:load("load_k", K), p:load("load_v", V)
    local dk, dv = p:carry("dk", {n, d}, 0), p:carry("dv", {n, v}, 0)
    p:loop(g, function()
      p:loop(m, {from = causal and n}, function()
        local q, go = p:load("load_q", Q, {b, m, head, d}), p:load("load_go2", dO, {b, m, head, v})
        local l, delta = p:load("load_l", L, {b, head, m}), p:load("load_delta", Delta, {b, head, m})
        local s, dp = p:mma("mma_s", k, q), p:mma("mma_dp", val, go)
        local weights, ds = p:task("softmax", function()
          local w = exp2((s * scale - l) * LOG2E)
          if causal then w = where(n:index():le(m:index()), w, 0) end
          return w:to "bf16", (w * (dp - delta) * scale):to "bf16"
        end)
        dv:add(p:mma("mma_dv", weights, go))
        dk:add(p:mma("mma_dk", ds, q))
        dQ:add("add_dq", p:mma("mma_dq", ds, k), {b, m, head, d})
      end)
    end)
    dK:store("store_dk", p:task("round_dk", function() return dk:to "bf16" end))
    dV:store("store_dv", p:task("round_dv", function() return dv:to "bf16" end))
  end)
end)

local function score(t, sizes, b, h, i, j)
  local sum, hk = 0, h // (sizes.h // sizes.hkv)
  for x = 0, sizes.d - 1 do sum = sum + t.Q(b, i, h, x) * t.K(b, j, hk, x) end
  return sum / math.sqrt(sizes.d)
end

local function forward_formula(t, sizes)
  local each = sizes.h // sizes.hkv
  local function row(b, h, i, x)
    local over, under = 0, 0
    for j = 0, sizes.causal and i or sizes.m - 1 do
      local w = math.exp(score(t, sizes, b, h, i, j))
      over, under = over + w * (x and t.V(b, j, h // each, x) or 0), under + w
    end
    return over / under, math.log(under)
  end
  return {
    O = function(b, i, h, x) return (row(b, h, i, x)) end,
    L = function(b, h, i) return (select(2, row(b, h, i))) end,
  }
end

-- O and L are those that are given, which need not be of the same Q, K and V.
local function backward_formula(t, sizes)
  local each = sizes.h // sizes.hkv
  local function weight(b, h, i, j)
    return (not sizes.causal or j <= i) and math.exp(score(t, sizes, b, h, i, j) - t.L(b, h, i)) or 0
  end
  local function ds(b, h, i, j)
    local sum = 0
    for x = 0, sizes.v - 1 do sum = sum + t.dO(b, i, h, x) * (t.V(b, j, h // each, x) - t.O(b, i, h, x)) end
    return weight(b, h, i, j) * sum / math.sqrt(sizes.d)
  end
  local function of_key(hk, f)                          -- the sum over all queries of the heads that share a key
    local sum = 0
    for h = hk * each, (hk + 1) * each - 1 do
      for i = 0, sizes.m - 1 do sum = sum + f(h, i) end
    end
    return sum
  end
  return {
    dQ = function(b, i, h, x)
      local sum = 0
      for j = 0, sizes.m - 1 do sum = sum + ds(b, h, i, j) * t.K(b, j, h // each, x) end
      return sum
    end,
    dK = function(b, j, hk, x) return of_key(hk, function(h, i) return ds(b, h, i, j) * t.Q(b, i, h, x) end) end,
    dV = function(b, j, hk, x) return of_key(hk, function(h, i) return weight(b, h, i, j) * t.dO(b, i, h, x) end) end,
  }
end

return {
  {
    name = "attention_training_forward",
    program = forward,
    small = {{b = 1, h = 4, hkv = 2, m = 70, d = 48, v = 32, causal = true}, {b = 1, h = 2, hkv = 1, m = 64, d = 64, v = 32}},
    usual = {
      {b = 8, h = 32, hkv = 2, m = 1024, d = 192, v = 128}, {b = 8, h = 32, hkv = 2, m = 4096, d = 192, v = 128, causal = true},
      {b = 1, h = 64, hkv = 4, m = 4096, d = 128, v = 128, causal = true}, {b = 1, h = 8, hkv = 8, m = 4096, d = 128, v = 128},
    },
    formula = forward_formula,
  },
  {
    name = "attention_training_backward",
    program = backward,
    small = {
      {b = 1, h = 4, hkv = 2, m = 40, d = 48, v = 32, causal = true}, {b = 1, h = 2, hkv = 2, m = 64, d = 32, v = 32},
    },
    usual = {
      {b = 8, h = 32, hkv = 2, m = 1024, d = 192, v = 128}, {b = 8, h = 32, hkv = 2, m = 4096, d = 192, v = 128, causal = true},
      {b = 8, h = 32, hkv = 32, m = 1024, d = 64, v = 64}, {b = 1, h = 8, hkv = 8, m = 4096, d = 128, v = 128},
    },
    fill = {L = function(_, b, h, i) return 3 + (b + h + i) % 3 / 4 end},
    formula = backward_formula,
  },
}
