-- Attention with sinks: O[b,h,i,:] = sum over j of w[j] V[b,hk,j,:] with w[j] = exp(scale Q[b,h,i,:] . K[b,hk,j,:] - L[b,h,i]) and
-- L[b,h,i] = log(exp(Sink[h]) + sum over j of exp(scale Q[b,h,i,:] . K[b,hk,j,:])), over the keys j <= i + n - m, of which with a window
-- those that are less than so many before that; hk = h // (h / hkv).
--
-- gpt-oss: each head has a logit of its own for "no key", and every other layer a window of 128. The backward is that of attention, with
-- dSink[h] = - sum over b, i of exp(Sink[h] - L[b,h,i]) Delta[b,h,i], Delta = rowsum(dO * O).
local mr = require "millrace"
local max, exp2, where, rowsum = mr.max, mr.exp2, mr.where, mr.rowsum

local LOG2E <const> = 1.4426950408889634

local function axes(p)
  local b, h, m, d = p:axes("b", "h", "m", "d")
  local n, hkv = p:axis("n", p.n or m.size), p:axis("hkv", p.hkv or h.size)
  p:check(h.size % hkv.size == 0, "hkv must divide h")
  p:check(n.size >= m.size, "n must be at least m")
  return b, h, m, n, d, hkv, p:option("window", "integer"), n.size - m.size
end

local forward = mr.program("sink_attention", function(p)
  local b, h, m, n, d, hkv, window, shift = axes(p)
  local Q, O = p:input("Q", {b, h, m, d}), p:output("O", {b, h, m, d})
  local K, V = p:input("K", {b, hkv, n, d}), p:input("V", {b, hkv, n, d})
  local Sink, L = p:input("Sink", {h}), p:output("L", {b, h, m}, "f32")
  p:batch(b, h)
  local head = h // (h.size // hkv.size)
  local q, sink = p:load("load_q", Q), p:load("load_sink", Sink)
  local mx, l, o = p:carry("mx", {m}, -1e30), p:carry("l", {m}, 0), p:carry("o", {m, d}, 0)
  p:loop(n, {from = window and m + (shift - window + 1), upto = m + shift}, function()
    local s = p:mma("mma_qk", q, p:load("load_k", K, {b, head, n, d}))
    local pr, alpha = p:task("softmax", function()
      local i, j = m:index() + shift, n:index()
      local x = where(j:le(i), s * (LOG2E / math.sqrt(d.size)), -1e30)
      if window then x = where(j:gt(i - window), x, -1e30) end
      local new = max(mx, x:rowmax(n))
      local pr, alpha = exp2(x - new), exp2(mx - new)
      l:set(l * alpha + pr:rowsum(n))
      mx:set(new)
      return pr:to "bf16", alpha
    end)
    p:task("rescale", function() o:set(o * alpha) end)
    o:add(p:mma("mma_pv", pr, p:load("load_v", V, {b, head, n, d})))
  end)
  local out, lse = p:task("finish", function()
    local none = sink * LOG2E
    local top = max(mx, none)
    local keep = exp2(mx - top)
    local sum = l * keep + exp2(none - top)
    return (o * (keep / sum)):to "bf16", (top + mr.log2(sum)) * (1 / LOG2E)
  end)
  O:store("store_o", out)
  L:store("store_l", lse)
end)

local backward = mr.program("sink_attention_backward", function(p)
  local b, h, m, n, d, hkv, window, shift = axes(p)
  local g, scale = p:axis("g", h.size // hkv.size), 1 / math.sqrt(d.size)
  local Q, O, dO = p:input("Q", {b, h, m, d}), p:input("O", {b, h, m, d}), p:input("dO", {b, h, m, d})
  local K, V = p:input("K", {b, hkv, n, d}), p:input("V", {b, hkv, n, d})
  local Sink, L = p:input("Sink", {h}), p:input("L", {b, h, m}, "f32")
  local dQ, dSink = p:output("dQ", {b, h, m, d}, "f32"), p:output("dSink", {h}, "f32")
  local dK, dV = p:output("dK", {b, hkv, n, d}), p:output("dV", {b, hkv, n, d})
  local Delta = p:temp("Delta", {b, h, m}, "f32")

  p:phase("begin", function()
    dSink:store("zero_dsink", p:task("zeros", function() return (h:index() * 0):to "f32" end))
  end)

  p:phase("rows", function()
    p:batch(b, h)
    local o, go = p:load("load_o", O), p:load("load_go", dO)
    local delta, zero = p:task("rows", function() return rowsum(o * go, d), (m:index() + d:index()):to "f32" * 0 end)
    Delta:store("store_delta", delta)
    dQ:store("zero_dq", zero)
  end)

  p:phase("sinks", function()
    p:batch(b, h)
    local sink, l, delta = p:load("load_sink", Sink), p:load("load_l", L), p:load("load_delta", Delta)
    dSink:add("add_dsink", p:task("part", function() return rowsum(-exp2((sink - l) * LOG2E) * delta, m) end))
  end)

  p:phase("gradients", function()
    p:batch(b, hkv)
    local head = hkv * g.size + g
    local k, v = p:load("load_k", K), p:load("load_v", V)
    local dk, dv = p:carry("dk", {n, d}, 0), p:carry("dv", {n, d}, 0)
    p:loop(g, function()
      p:loop(m, {from = n - shift, upto = window and n + (window - 1 - shift)}, function()
        local q, go = p:load("load_q", Q, {b, head, m, d}), p:load("load_go2", dO, {b, head, m, d})
        local l, delta = p:load("load_l2", L, {b, head, m}), p:load("load_delta2", Delta, {b, head, m})
        local s, dp = p:mma("mma_s", k, q), p:mma("mma_dp", v, go)
        local weights, ds = p:task("softmax", function()
          local i, j = m:index() + shift, n:index()
          local w = where(j:le(i), exp2((s * scale - l) * LOG2E), 0)
          if window then w = where(j:gt(i - window), w, 0) end
          return w:to "bf16", (w * (dp - delta) * scale):to "bf16"
        end)
        dv:add(p:mma("mma_dv", weights, go))
        dk:add(p:mma("mma_dk", ds, q))
        dQ:add("add_dq", p:mma("mma_dq", ds, k), {b, head, m, d})
      end)
    end)
    local of_k, of_v = p:task("round", function() return dk:to "bf16", dv:to "bf16" end)
    dK:store("store_dk", of_k)
    dV:store("store_dv", of_v)
  end)
end)

-- The keys that query i sees, from and to.
local function seen(sizes, i)
  local last = i + (sizes.n or sizes.m) - sizes.m
  return sizes.window and math.max(0, last - sizes.window + 1) or 0, last
end

local function dot(a, b, d)
  local sum = 0
  for x = 0, d - 1 do sum = sum + a(x) * b(x) end
  return sum
end

local function scores(t, sizes)                         -- of query i and the key j
  local each, scale = sizes.h // (sizes.hkv or sizes.h), 1 / math.sqrt(sizes.d)
  return function(b, h, i, j)
    return scale * dot(function(x) return t.Q(b, h, i, x) end, function(x) return t.K(b, h // each, j, x) end, sizes.d)
  end
end

local function forward_formula(t, sizes)
  local score, each = scores(t, sizes), sizes.h // (sizes.hkv or sizes.h)
  local function row(b, h, i, d)
    local first, last = seen(sizes, i)
    local over, under = 0, math.exp(t.Sink(h))
    for j = first, last do
      local w = math.exp(score(b, h, i, j))
      over, under = over + w * (d and t.V(b, h // each, j, d) or 0), under + w
    end
    return over / under, math.log(under)
  end
  return {
    O = function(b, h, i, d) return (row(b, h, i, d)) end,
    L = function(b, h, i) return (select(2, row(b, h, i))) end,
  }
end

-- O and L are those that are given, which need not be of the same Q, K and V.
local function backward_formula(t, sizes)
  local score, each = scores(t, sizes), sizes.h // (sizes.hkv or sizes.h)
  local function delta(b, h, i)
    return dot(function(x) return t.dO(b, h, i, x) end, function(x) return t.O(b, h, i, x) end, sizes.d)
  end
  local function weight(b, h, i, j) return math.exp(score(b, h, i, j) - t.L(b, h, i)) end
  local function ds(b, h, i, j)
    local dp = dot(function(x) return t.dO(b, h, i, x) end, function(x) return t.V(b, h // each, j, x) end, sizes.d)
    return weight(b, h, i, j) * (dp - delta(b, h, i)) / math.sqrt(sizes.d)
  end
  local function of_key(b, hk, j, f)                    -- sums over the queries that see key j
    local sum = 0
    for h = hk * each, (hk + 1) * each - 1 do
      for i = 0, sizes.m - 1 do
        local first, last = seen(sizes, i)
        if j >= first and j <= last then sum = sum + f(h, i) end
      end
    end
    return sum
  end
  return {
    dQ = function(b, h, i, d)
      local first, last, sum = seen(sizes, i)
      sum = 0
      for j = first, last do sum = sum + ds(b, h, i, j) * t.K(b, h // each, j, d) end
      return sum
    end,
    dK = function(b, hk, j, d) return of_key(b, hk, j, function(h, i) return ds(b, h, i, j) * t.Q(b, h, i, d) end) end,
    dV = function(b, hk, j, d) return of_key(b, hk, j, function(h, i) return weight(b, h, i, j) * t.dO(b, h, i, d) end) end,
    dSink = function(h)
      local sum = 0
      for b = 0, sizes.b - 1 do
        for i = 0, sizes.m - 1 do sum = sum - math.exp(t.Sink(h) - t.L(b, h, i)) * delta(b, h, i) end
      end
      return sum
    end,
  }
end

return {
  {
    name = "sink_attention",
    program = forward,
    small = {
      {b = 1, h = 4, hkv = 2, m = 64, d = 32, window = 20}, {b = 2, h = 2, m = 70, n = 100, d = 64},
    },
    usual = {
      {b = 1, h = 64, hkv = 8, m = 8192, d = 64}, {b = 1, h = 64, hkv = 8, m = 8192, d = 64, window = 128},
      {b = 8, h = 32, m = 4096, d = 128}, {b = 1, h = 64, hkv = 8, m = 4096, n = 16384, d = 128, window = 1024},
    },
    formula = forward_formula,
  },
  {
    name = "sink_attention_backward",
    program = backward,
    small = {
      {b = 1, h = 4, hkv = 2, m = 40, d = 32, window = 20}, {b = 1, h = 2, m = 64, n = 80, d = 32},
    },
    usual = {
      {b = 1, h = 64, hkv = 8, m = 4096, d = 128, window = 128}, {b = 1, h = 64, hkv = 8, m = 4096, d = 64},
      {b = 1, h = 64, m = 4096, d = 128},
    },
    fill = {L = function(_, b, h, i) return 2 + (b + h + i) % 3 / 4 end},
    formula = backward_formula,
  },
}
