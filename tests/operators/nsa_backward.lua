-- Gradients of attention over the blocks of keys that each query chooses. With weights P[h,j] = exp(scale Q[t,h,:] . K[j,hk,:] - L[t,h])
-- for the keys j <= t of the blocks that Blocks[t,hk,:] names, hk = h // g,
--   dV[j] = sum over t, h of P dO[t,h],  dS = P (dO[t,h] . V[j] - Delta[t,h]) scale,  Delta[t,h] = O[t,h] . dO[t,h],
--   dK[j] = sum over t, h of dS Q[t,h],  dQ[t,h] = sum over j of dS K[j].
--
-- Native sparse attention (DeepSeek), the backward pass. A block of keys visits the queries that chose it, by a mask that a phase before
-- makes of the lists. L is the logarithm to base 2 of the sums of the softmax.
local mr = require "millrace"
local exp2, where, rowsum, rowmax = mr.exp2, mr.where, mr.rowsum, mr.rowmax

local LOG2E <const> = 1.4426950408889634

local function chosen(t, sizes, at, hk, key)
  if key > at then return false end
  for i = 0, sizes.s - 1 do
    if t.Blocks(0, at, hk, i) == key // sizes.size then return true end
  end
  return false
end

local function dot(a, b, size, i, j, k, l)
  local sum = 0
  for d = 0, size - 1 do sum = sum + a(0, i, j, d) * b(0, k, l, d) end
  return sum
end

-- The weight and its gradient, or nil. Sums over the same elements are needed for many outputs.
local known = setmetatable({}, {__mode = "k"})

local function compute(t, sizes, at, h, key)
  local hk, d, scale = h // (sizes.hq // sizes.hkv), sizes.d, 1 / math.sqrt(sizes.d)
  if not chosen(t, sizes, at, hk, key) then return end
  local weight = 2 ^ (dot(t.Q, t.K, d, at, h, key, hk) * scale * LOG2E - t.L(0, at, h))
  local delta = dot(t.O, t.dO, d, at, h, at, h)
  return weight, weight * (dot(t.dO, t.V, d, at, h, key, hk) - delta) * scale
end

local function of(t, sizes, at, h, key)
  local memo, name = known[t] or {}, (at * sizes.hq + h) * sizes.t + key
  known[t], memo[name] = memo, memo[name] or {compute(t, sizes, at, h, key)}
  return memo[name][1], memo[name][2]
end

return {
  program = mr.program("nsa_backward", function(p)
    local b, t, hkv, s, d = p:axes("b", "t", "hkv", "s", "d")
    local hq, g, key = p:axis("hq", p.hq), p:axis("g", p.hq // hkv.size), p:axis("key", p.size)
    local block = p:axis("block", -(-t.size // key.size))
    -- Axes t and block, where their tiles need not be of one as in the last phase.
    local query, column = p:axis("query", t.size), p:axis("column", block.size)
    local Q, O, dO = p:input("Q", {b, t, hq, d}), p:input("O", {b, t, hq, d}), p:input("dO", {b, t, hq, d})
    local K, V, L = p:input("K", {b, t, hkv, d}), p:input("V", {b, t, hkv, d}), p:input("L", {b, t, hq}, "f32")
    local Blocks = p:input("Blocks", {b, t, hkv, s}, "i32")
    local dQ, dK, dV = p:output("dQ", {b, t, hq, d}, "f32"), p:output("dK", {b, t, hkv, d}), p:output("dV", {b, t, hkv, d})
    local Delta, Mask = p:temp("Delta", {b, t, hq}, "f32"), p:temp("Mask", {b, hkv, block, t}, "i32")
    local scale = 1 / math.sqrt(d.size)
    p:phase("delta", function()
      p:batch(b)
      local at = {b, query, hq, d}
      local o, go = p:load("load_o", O, at), p:load("load_go", dO, at)
      local delta, zero = p:task("rows", function()
        return rowsum(o * go, d), (query:index() + hq:index() + d:index()):to "f32" * 0
      end)
      Delta:store("store_delta", delta, {b, query, hq})
      dQ:store("zero_dq", zero, at)
    end)
    p:phase("mask", function()
      p:batch(b, hkv)
      local named = p:load("load_blocks", Blocks, {b, query, hkv, s})
      Mask:store("store_mask", p:task("mask", function()
        return rowmax(where(named:eq(column:index()) & (column:index() * key.size):le(query:index()), 1, 0), s)
      end), {b, hkv, column, query})
    end)
    p:phase("gradients", function()
      p:batch(b, hkv, block)
      local at, head = block * key.size + key, hkv * g.size + g
      local k, v = p:load("load_k", K, {b, at, hkv, d}), p:load("load_v", V, {b, at, hkv, d})
      local dk, dv = p:carry("dk", {key, d}, 0), p:carry("dv", {key, d}, 0)
      local function wanted() return p:load("load_mask", Mask) end
      p:loop(t, {from = block * key.size, when = wanted, typical = p.typical}, function()
        local q, go = p:load("load_q", Q, {b, t, head, d}), p:load("load_go2", dO, {b, t, head, d})
        local l, delta = p:load("load_l", L, {b, t, head}), p:load("load_delta", Delta, {b, t, head})
        local qk, dp = p:mma("mma_s", k, q), p:mma("mma_dp", v, go)               -- {key, g}, a row for each key
        local weights, ds = p:task("softmax", function()
          local w = exp2(qk * (scale * LOG2E) - l)
          w = where((block:index() * key.size + key:index()):le(t:index()), w, 0)
          return w:to "bf16", (w * (dp - delta) * scale):to "bf16"
        end)
        dv:add(p:mma("mma_dv", weights, go))
        dk:add(p:mma("mma_dk", ds, q))
        dQ:add("add_dq", p:mma("mma_dq", ds, k), {b, t, head, d})
      end)
      local of_k, of_v = p:task("round", function() return dk:to "bf16", dv:to "bf16" end)
      dK:store("store_dk", of_k, {b, at, hkv, d})
      dV:store("store_dv", of_v, {b, at, hkv, d})
    end)
  end),
  small = {
    {b = 1, t = 36, hkv = 1, hq = 16, s = 2, d = 16, size = 16}, {b = 1, t = 24, hkv = 2, hq = 8, s = 1, d = 32, size = 8},
  },
  usual = {{b = 1, t = 8192, hkv = 4, hq = 64, s = 16, d = 128, size = 64, typical = 1024}},
  fill = {
    Blocks = function(sizes, _, t, h, i)
      local own = t // sizes.size
      return i == 0 and own or own - i - (t + h) % 3
    end,
    L = function(_, _, t, h) return 3 + math.sin(t * 3 + h) end,
  },
  formula = function(t, sizes)
    local g = sizes.hq // sizes.hkv
    return {
      dQ = function(_, at, h, d)
        local sum = 0
        for key = 0, at do
          local _, ds = of(t, sizes, at, h, key)
          if ds then sum = sum + ds * t.K(0, key, h // g, d) end
        end
        return sum
      end,
      dK = function(_, key, hk, d)
        local sum = 0
        for at = key, sizes.t - 1 do
          for h = hk * g, hk * g + g - 1 do
            local _, ds = of(t, sizes, at, h, key)
            if ds then sum = sum + ds * t.Q(0, at, h, d) end
          end
        end
        return sum
      end,
      dV = function(_, key, hk, d)
        local sum = 0
        for at = key, sizes.t - 1 do
          for h = hk * g, hk * g + g - 1 do
            local weight = of(t, sizes, at, h, key)
            if weight then sum = sum + weight * t.dO(0, at, h, d) end
          end
        end
        return sum
      end,
    }
  end,
}
