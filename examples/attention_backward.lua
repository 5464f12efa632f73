-- attention_backward: the gradients of attention, dQ, dK and dV, by those of its output O.
--
-- With P = exp(scale Q K^T - L), where L is the logarithm of the sums that the softmax divides by,
--     dV = P^T dO,   dS = P * (dO V^T - Delta) scale,   Delta = rowsum(dO * O),
--     dK = dS^T Q,   dQ = dS K
-- (Dao, "FlashAttention-2", 2023, algorithm 2). A tile of keys goes over all queries, and keeps
-- its rows of dK and dV. It has only a part of each row of dQ, and adds that to the parts of
-- other tiles in memory; so the last bits of dQ depend on the order in which tiles run.
--
-- sizes    b batch, h heads, m queries, d head dim
-- options  n       keys (m)
--          hkv     heads of K and V; must divide h (h)
--          causal  query i sees keys up to i + n - m (false)
--          scale   of the scores (1 / sqrt(d)); positive
--          dtype   of all but L, which is f32 ("bf16")
local mr = require "millrace"
local exp2, where, rowsum = mr.exp2, mr.where, mr.rowsum

local LOG2E <const> = 1.4426950408889634

return mr.program("attention_backward", function(p)
  local b, h, m, d = p:axes("b", "h", "m", "d")
  local n, hkv = p:axis("n", p.n or m.size), p:axis("hkv", p.hkv or h.size)
  p:check(h.size % hkv.size == 0, "hkv must divide h")
  local g = p:axis("g", h.size // hkv.size)             -- a query head of a kv head
  local causal, dtype = p:option("causal", "boolean"), p.dtype or "bf16"
  local scale = p:option("scale", "number", 1 / math.sqrt(d.size))
  p:check(scale > 0, "scale must be positive")

  local Q, O, dO = p:input("Q", {b, h, m, d}), p:input("O", {b, h, m, d}), p:input("dO", {b, h, m, d})
  local K, V, L = p:input("K", {b, hkv, n, d}), p:input("V", {b, hkv, n, d}), p:input("L", {b, h, m}, "f32")
  local dQ, dK, dV = p:output("dQ", {b, h, m, d}), p:output("dK", {b, hkv, n, d}), p:output("dV", {b, hkv, n, d})
  local Delta, Sum = p:temp("Delta", {b, h, m}, "f32"), p:temp("Sum", {b, h, m, d}, "f32")

  p:phase("delta", function()
    p:batch(b, h)
    local o, go = p:load("load_o", O), p:load("load_go", dO)
    local delta, zero = p:task("rows", function() return rowsum(o * go, d), (m:index() + d:index()):to "f32" * 0 end)
    Delta:store("store_delta", delta)
    Sum:store("zero_dq", zero)
  end)

  p:phase("gradients", function()
    p:batch(b, hkv)
    local head = hkv * g.size + g
    local k, v = p:load("load_k", K), p:load("load_v", V)
    local dk, dv = p:carry("dk", {n, d}, 0), p:carry("dv", {n, d}, 0)
    p:loop(g, function()
      p:loop(m, {from = causal and n + (m.size - n.size)}, function()
        local q, go = p:load("load_q", Q, {b, head, m, d}), p:load("load_go2", dO, {b, head, m, d})
        local l, delta = p:load("load_l", L, {b, head, m}), p:load("load_delta", Delta, {b, head, m})
        local s, dp = p:mma("mma_s", k, q), p:mma("mma_dp", v, go)       -- {n, m}, a row for each key
        local weights, ds = p:task("softmax", function()
          local w = exp2((s * scale - l) * LOG2E)
          if causal then w = where(n:index():le(m:index() + (n.size - m.size)), w, 0) end
          return w:to(dtype), (w * (dp - delta) * scale):to(dtype)
        end)
        dv:add(p:mma("mma_dv", weights, go))
        dk:add(p:mma("mma_dk", ds, q))
        Sum:add("add_dq", p:mma("mma_dq", ds, k), {b, head, m, d})
      end)
    end)
    local of_k, of_v = p:task("round", function() return dk:to(dtype), dv:to(dtype) end)
    dK:store("store_dk", of_k)
    dV:store("store_dv", of_v)
  end)

  p:phase("cast", function()
    p:batch(b, h)
    local sum = p:load("load_dq", Sum)
    dQ:store("store_dq", p:task("round_dq", function() return sum:to(dtype) end))
  end)
end)
