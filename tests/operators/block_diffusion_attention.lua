-- Attention of a text with noise and of the text itself behind it: rows 0 to m - 1 are noisy, rows m to 2 m - 1 clean. In blocks of
-- `size`, a noisy query sees the noisy keys of its own block and the clean keys of the blocks before; a clean one the clean keys of its
-- own block and of the blocks before. O[b,i,h,:] = sum over the keys j that i sees of softmax_j(scale Q[b,i,h,:] . K[b,j,h,:]) V[b,j,h,:].
--
-- Diffusion models of language are trained so, a block at a time (block diffusion, SDAR, LLaDA): each block is made from what is before.
-- The backward has a phase of queries for dQ and one of keys for dK and dV, and adds nothing in memory.
local mr = require "millrace"
local max, exp2, where, rowsum = mr.max, mr.exp2, mr.where, mr.rowsum

local LOG2E <const> = 1.4426950408889634

local function axes(p)
  local b, h, m, d = p:axes("b", "h", "m", "d")
  local half, rows, n = p:axis("half", 2), p:axis("rows", 2 * m.size), p:axis("n", m.size)
  return b, h, m, d, half, rows, n, p:option("size", "integer", 32)
end

-- Calls body(name, index, seen, options) for the clean and for the noisy keys n of queries m of a half: the index of the keys, a function
-- of a mask, and the bounds of a loop.
local function keys(p, body)
  local m, n, half, size = p.m, p.n, p.half, p.size
  body("clean", m.size + n, function()
    return (n:index() // size):lt(m:index() // size + half:index())
  end, {upto = m // size * size + half * size - 1})
  body("noisy", n, function()
    return (n:index() // size):eq(m:index() // size)
  end, {from = m // size * size + half * m.size, upto = m // size * size + (size - 1)})
end

local forward = mr.program("block_diffusion_attention", function(p)
  local b, h, m, d, half, rows, n, size = axes(p)
  local Q, K, V = p:input("Q", {b, rows, h, d}), p:input("K", {b, rows, h, d}), p:input("V", {b, rows, h, d})
  local O, L = p:output("O", {b, rows, h, d}), p:output("L", {b, h, rows}, "f32")
  p:batch(b, h, half)
  local at = half * m.size + m
  local q = p:load("load_q", Q, {b, at, h, d})
  local mx, l, o = p:carry("mx", {m}, -1e30), p:carry("l", {m}, 0), p:carry("o", {m, d}, 0)
  keys({m = m, n = n, half = half, size = size}, function(name, key, seen, options)
    p:loop(n, options, function()
      local s = p:mma("mma_qk_" .. name, q, p:load("load_k_" .. name, K, {b, key, h, d}))
      local pr, alpha = p:task("softmax_" .. name, function()
        local x = where(seen(), s * (LOG2E / math.sqrt(d.size)), -1e30)
        local new = max(mx, x:rowmax(n))
        local pr, alpha = exp2(x - new), exp2(mx - new)
        l:set(l * alpha + pr:rowsum(n))
        mx:set(new)
        return pr:to "bf16", alpha
      end)
      p:task("rescale_" .. name, function() o:set(o * alpha) end)
      o:add(p:mma("mma_pv_" .. name, pr, p:load("load_v_" .. name, V, {b, key, h, d})))
    end)
  end)
  local out, lse = p:task("finish", function() return (o / l):to "bf16", (mx + mr.log2(l)) * (1 / LOG2E) end)
  O:store("store_o", out, {b, at, h, d})
  L:store("store_l", lse, {b, h, at})
end)

local backward = mr.program("block_diffusion_attention_backward", function(p)
  local b, h, m, d, half, rows, n, size = axes(p)
  local scale = 1 / math.sqrt(d.size)
  local Q, K, V = p:input("Q", {b, rows, h, d}), p:input("K", {b, rows, h, d}), p:input("V", {b, rows, h, d})
  local O, dO, L = p:input("O", {b, rows, h, d}), p:input("dO", {b, rows, h, d}), p:input("L", {b, h, rows}, "f32")
  local dQ, dK, dV = p:output("dQ", {b, rows, h, d}), p:output("dK", {b, rows, h, d}), p:output("dV", {b, rows, h, d})
  local Delta = p:temp("Delta", {b, h, rows}, "f32")

  p:phase("delta", function()
    p:batch(b, h)
    local o, go = p:load("load_o", O), p:load("load_go", dO)
    Delta:store("store_delta", p:task("delta", function() return rowsum(o * go, d) end))
  end)

  p:phase("queries", function()
    p:batch(b, h, half)
    local at = half * m.size + m
    local q, go = p:load("load_q", Q, {b, at, h, d}), p:load("load_go_q", dO, {b, at, h, d})
    local l, delta = p:load("load_l", L, {b, h, at}), p:load("load_delta", Delta, {b, h, at})
    local dq = p:carry("dq", {m, d}, 0)
    keys({m = m, n = n, half = half, size = size}, function(name, key, seen, options)
      p:loop(n, options, function()
        local k, v = p:load("load_k_" .. name, K, {b, key, h, d}), p:load("load_v_" .. name, V, {b, key, h, d})
        local s, dp = p:mma("mma_qk_" .. name, q, k), p:mma("mma_dp_" .. name, go, v)
        local ds = p:task("softmax_" .. name, function()
          local w = where(seen(), exp2((s * scale - l) * LOG2E), 0)
          return (w * (dp - delta) * scale):to "bf16"
        end)
        dq:add(p:mma("mma_dq_" .. name, ds, k))
      end)
    end)
    dQ:store("store_dq", p:task("round_dq", function() return dq:to "bf16" end), {b, at, h, d})
  end)

  p:phase("keys", function()
    p:batch(b, h, half)
    local at = half * m.size + n
    local k, v = p:load("load_k", K, {b, at, h, d}), p:load("load_v", V, {b, at, h, d})
    local dk, dv = p:carry("dk", {n, d}, 0), p:carry("dv", {n, d}, 0)
    local function queries(name, row, seen, options)
      p:loop(m, options, function()
        local q, go = p:load("load_q_of_" .. name, Q, {b, row, h, d}), p:load("load_go_of_" .. name, dO, {b, row, h, d})
        local l, delta = p:load("load_l_of_" .. name, L, {b, h, row}), p:load("load_delta_of_" .. name, Delta, {b, h, row})
        local s, dp = p:mma("mma_s_of_" .. name, k, q), p:mma("mma_dp_of_" .. name, v, go)
        local weights, ds = p:task("softmax_of_" .. name, function()
          local w = where(seen(m:index() // size, n:index() // size), exp2((s * scale - l) * LOG2E), 0)
          return w:to "bf16", (w * (dp - delta) * scale):to "bf16"
        end)
        dv:add(p:mma("mma_dv_of_" .. name, weights, go))
        dk:add(p:mma("mma_dk_of_" .. name, ds, q))
      end)
    end
    -- Noisy queries see noisy keys of their own block, and clean ones of those before. Clean queries see no noisy keys.
    queries("noisy", m, function(i, j) return where(half:index():eq(0), i:eq(j), i:gt(j)) end,
      {from = n // size * size + half * size, upto = n // size * size + (size - 1) + half * m.size})
    queries("clean", m.size + m, function(i, j) return i:ge(j) end, {from = n // size * size + m.size - half * m.size})
    local of_k, of_v = p:task("round", function() return dk:to "bf16", dv:to "bf16" end)
    dK:store("store_dk", of_k, {b, at, h, d})
    dV:store("store_dv", of_v, {b, at, h, d})
  end)
end)

local function sees(sizes, i, j)
  local clean_i, clean_j = i >= sizes.m, j >= sizes.m
  local bi, bj = i % sizes.m // sizes.size, j % sizes.m // sizes.size
  if clean_i then return clean_j and bi >= bj end
  return clean_j and bi > bj or not clean_j and bi == bj
end

local function score(t, sizes, b, h, i, j)
  local sum = 0
  for x = 0, sizes.d - 1 do sum = sum + t.Q(b, i, h, x) * t.K(b, j, h, x) end
  return sum / math.sqrt(sizes.d)
end

local function forward_formula(t, sizes)
  local function row(b, h, i, x)
    local over, under = 0, 0
    for j = 0, 2 * sizes.m - 1 do
      if sees(sizes, i, j) then
        local w = math.exp(score(t, sizes, b, h, i, j))
        over, under = over + w * (x and t.V(b, j, h, x) or 0), under + w
      end
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
  local function weight(b, h, i, j) return sees(sizes, i, j) and math.exp(score(t, sizes, b, h, i, j) - t.L(b, h, i)) or 0 end
  local function ds(b, h, i, j)
    local w, sum = weight(b, h, i, j), 0
    for x = 0, w > 0 and sizes.d - 1 or -1 do sum = sum + t.dO(b, i, h, x) * (t.V(b, j, h, x) - t.O(b, i, h, x)) end
    return w * sum / math.sqrt(sizes.d)
  end
  local function all(f)
    local sum = 0
    for i = 0, 2 * sizes.m - 1 do sum = sum + f(i) end
    return sum
  end
  return {
    dQ = function(b, i, h, x) return all(function(j) return ds(b, h, i, j) * t.K(b, j, h, x) end) end,
    dK = function(b, j, h, x) return all(function(i) return ds(b, h, i, j) * t.Q(b, i, h, x) end) end,
    dV = function(b, j, h, x) return all(function(i) return weight(b, h, i, j) * t.dO(b, i, h, x) end) end,
  }
end

local usual = {{b = 1, h = 32, m = 4096, d = 128, size = 32}, {b = 2, h = 16, m = 2048, d = 64, size = 4}}

return {
  {
    name = "block_diffusion_attention",
    program = forward,
    small = {{b = 1, h = 2, m = 72, d = 32, size = 8}, {b = 1, h = 1, m = 128, d = 64, size = 32}},
    usual = usual,
    formula = forward_formula,
  },
  {
    name = "block_diffusion_attention_backward",
    program = backward,
    small = {{b = 1, h = 2, m = 40, d = 32, size = 8}, {b = 1, h = 1, m = 64, d = 32, size = 16}},
    usual = usual,
    fill = {L = function(_, b, h, i) return 2 + (b + h + i) % 3 / 4 end},
    formula = backward_formula,
  },
}
