-- Gradients of attention whose heads share keys, where each tile is one query head and a block of keys: O[b,i,h,:] = sum over j of
-- w[i,j] V[b,j,hk,:], where w[i,j] = exp(scale Q[b,i,h,:] . K[b,j,hk,:] - L[b,h,i]) and hk = h // (h / hkv); causal: j <= i. The heads
-- of a group add their parts of dK[:,hk] and dV[:,hk] in memory, which a phase of its own rounds.
--
-- FlashAttention does so where few batches and key heads would leave most of the device idle.
local mr = require "millrace"
local exp2, where, rowsum = mr.exp2, mr.where, mr.rowsum

local LOG2E <const> = 1.4426950408889634

local program = mr.program("grouped_heads_backward", function(p)
  local b, h, hkv, m, d, v = p:axes("b", "h", "hkv", "m", "d", "v")
  local n, scale, causal = p:axis("n", m.size), 1 / math.sqrt(d.size), p:option("causal", "boolean")
  local Q, K, V = p:input("Q", {b, m, h, d}), p:input("K", {b, n, hkv, d}), p:input("V", {b, n, hkv, v})
  local O, dO, L = p:input("O", {b, m, h, v}), p:input("dO", {b, m, h, v}), p:input("L", {b, h, m}, "f32")
  local dQ, dK, dV = p:output("dQ", {b, m, h, d}), p:output("dK", {b, n, hkv, d}), p:output("dV", {b, n, hkv, v})
  local Delta, SumQ = p:temp("Delta", {b, h, m}, "f32"), p:temp("SumQ", {b, m, h, d}, "f32")
  local SumK, SumV = p:temp("SumK", {b, n, hkv, d}, "f32"), p:temp("SumV", {b, n, hkv, v}, "f32")

  p:phase("delta", function()
    p:batch(b, h)
    local o, go = p:load("load_o", O), p:load("load_go", dO)
    local delta, zero = p:task("rows", function() return rowsum(o * go, v), (m:index() + d:index()):to "f32" * 0 end)
    Delta:store("store_delta", delta)
    SumQ:store("zero_q", zero)
  end)
  p:phase("zeros", function()
    p:batch(b, hkv)
    local k, w = p:task("zero", function() return (n:index() + d:index()):to "f32" * 0, (n:index() + v:index()):to "f32" * 0 end)
    SumK:store("zero_k", k)
    SumV:store("zero_v", w)
  end)
  p:phase("gradients", function()
    p:batch(b, h)
    local hk = h // (h.size // hkv.size)
    local k, val = p:load("load_k", K, {b, n, hk, d}), p:load("load_v", V, {b, n, hk, v})
    local dk, dv = p:carry("dk", {n, d}, 0), p:carry("dv", {n, v}, 0)
    p:loop(m, {from = causal and n}, function()
      local q, go = p:load("load_q", Q), p:load("load_go2", dO)
      local l, delta = p:load("load_l", L), p:load("load_delta", Delta)
      local s, dp = p:mma("mma_s", k, q), p:mma("mma_dp", val, go)
      local weights, ds = p:task("softmax", function()
        local w = exp2((s * scale - l) * LOG2E)
        if causal then w = where(n:index():le(m:index()), w, 0) end
        return w:to "bf16", (w * (dp - delta) * scale):to "bf16"
      end)
      dv:add(p:mma("mma_dv", weights, go))
      dk:add(p:mma("mma_dk", ds, q))
      SumQ:add("add_q", p:mma("mma_dq", ds, k))
    end)
    SumK:add("add_k", dk, {b, n, hk, d})
    SumV:add("add_v", dv, {b, n, hk, v})
  end)
  p:phase("round_q", function()
    p:batch(b, h)
    dQ:store("store_q", p:load("load_sum_q", SumQ))
  end)
  p:phase("round_kv", function()
    p:batch(b, hkv)
    dK:store("store_k", p:load("load_sum_k", SumK))
    dV:store("store_v", p:load("load_sum_v", SumV))
  end)
end)

local training
for _, operator in ipairs(dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "attention_training.lua")) do
  if operator.name == "attention_training_backward" then training = operator end
end

return {
  program = program,
  small = {{b = 1, h = 4, hkv = 2, m = 40, d = 48, v = 32, causal = true}, {b = 1, h = 2, hkv = 1, m = 64, d = 32, v = 32}},
  usual = {
    {b = 1, h = 64, hkv = 4, m = 4096, d = 128, v = 128, causal = true}, {b = 1, h = 32, hkv = 8, m = 4096, d = 64, v = 64},
  },
  fill = training.fill, formula = training.formula,
}
