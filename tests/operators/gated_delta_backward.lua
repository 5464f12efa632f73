-- The gradients of gated delta networks, kernel by kernel (Yang et al., 2024; training of Qwen3-Next). Names are those of
-- gated_delta_forward; S[c] is the state before a chunk, dS[c] the gradient of the state behind it:
--
--   state    from the last chunk to the first: dnew = k dS exp(G[last] - G) + what the output's kernel gives,
--            then dS = exp(G[last]) dS + sum over i of scale exp(G) q[i] dO[i] - W[i] dnew[i]
--   output   with P[i,j] = scale exp(G[i] - G[j]) (dO[i] . new[j]) for j <= i: dq = scale exp(G) dO S + P k,
--            dk = exp(G[last] - G) new dS + P^T q, dW = -dnew S, and dG
--   values   of U = T (beta v) and W = T (beta exp(G) k), where T = (I + A)^-1 and A = beta exp(G[i] - G[j]) (k[i] . k[j])
--            for j < i: dT = dW (beta exp(G) k)^T + dU (beta v)^T, dA = -T^T dT T^T, and with these dk, dv, dbeta and dG
local mr = require "millrace"
local formulas = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua")
local sum, once = formulas.sum, formulas.once
local exp, where = mr.exp, mr.where

local function axes(p)
  local b, s, h, k, v = p:axes("b", "s", "h", "k", "v")
  local chunk = p:option("chunk", "integer", 64)
  p:check(s.size % chunk == 0, "s must be a multiple of chunk")
  return b, s, h, k, v, p:axis("c", s.size // chunk), p:axis("i", chunk), p:axis("j", chunk)
end

-- Running sums as a model has them: they fall in each chunk.
local function falling(_, b, s, h) return -0.03 * (s % 64 + 1) * (1 + h % 3) - 0.01 * (s % 5) end

local state = {
  name = "gated_delta_state_gradient",
  program = mr.program("gated_delta_state_gradient", function(p)
    local b, s, h, k, v, c, i = axes(p)
    local Q, K, W = p:input("Q", {b, s, h, k}), p:input("K", {b, s, h, k}), p:input("W", {b, s, h, k})
    local G, dO, Part = p:input("G", {b, s, h}, "f32"), p:input("dO", {b, s, h, v}), p:input("Part", {b, s, h, v})
    local dFinal = p:input("dFinal", {b, h, k, v})
    local dState, dNew = p:output("dState", {b, c, h, k, v}), p:output("dNew", {b, s, h, v})
    local dInit = p:output("dInit", {b, h, k, v}, "f32")
    p:batch(b, h)
    local final, state = p:load("load_final", dFinal), p:carry("state", {k, v}, 0)
    p:task("begin", function() state:set(final) end)
    p:loop(c, {batch = true}, function()
      local from = c.size - 1 - c
      local row = from * i.size + i
      local after = p:task("after", function() return state:to "bf16" end)
      dState:store("store_state", after, {b, from, h, k, v})
      local kd = p:mma("mma_kd", p:load("load_k", K, {b, row, h, k}), after)
      local g, last = p:load("load_g", G, {b, row, h}), p:load("load_last", G, {b, from * i.size + i.size - 1, h})
      local part, q = p:load("load_part", Part, {b, row, h, v}), p:load("load_q", Q, {b, row, h, k})
      local dnew = p:task("add", function() return (kd * exp(mr.min(last - g, 0)) + part):to "bf16" end)
      dNew:store("store_new", dnew, {b, row, h, v})
      local scaled = p:task("scale_q", function() return (q * exp(g) * k.size ^ -0.5):to "bf16" end)
      local qdo = p:mma("mma_q", scaled, p:load("load_do", dO, {b, row, h, v}))
      local wd = p:mma("mma_w", p:load("load_w", W, {b, row, h, k}), dnew)
      p:task("step", function() state:set(state * exp(last) + qdo - wd) end)
    end)
    dInit:store("store_init", state)
  end),
  small = {{b = 1, s = 128, h = 2, k = 64, v = 64}, {b = 2, s = 64, h = 1, k = 64, v = 40}},
  usual = {{b = 1, s = 4096, h = 32, k = 128, v = 128}, {b = 4, s = 8192, h = 8, k = 128, v = 128}},
  -- A gradient that W takes too much from grows without bound, as no model's does.
  fill = {G = falling, W = function(_, _, s, _, k) return ((s * 7 + k * 3) % 11 - 5) / 256 end},
  formula = function(t, n)
    local run = once(function(b, h)
      local d, dnew, after = {}, {}, {}
      for k = 0, n.k - 1 do
        d[k] = {}
        for v = 0, n.v - 1 do d[k][v] = t.dFinal(b, h, k, v) end
      end
      for c = n.s // 64 - 1, 0, -1 do
        local old, next = d, {}
        local last = t.G(b, c * 64 + 63, h)
        after[c] = old
        for x = c * 64, c * 64 + 63 do
          dnew[x] = {}
          local weight = {}
          for k = 0, n.k - 1 do weight[k] = t.K(b, x, h, k) * math.exp(last - t.G(b, x, h)) end
          for v = 0, n.v - 1 do
            dnew[x][v] = t.Part(b, x, h, v) + sum(0, n.k - 1, function(k) return weight[k] * old[k][v] end)
          end
        end
        for k = 0, n.k - 1 do
          next[k] = {}
          for v = 0, n.v - 1 do next[k][v] = old[k][v] * math.exp(last) end
          for x = c * 64, c * 64 + 63 do
            local q, w = n.k ^ -0.5 * math.exp(t.G(b, x, h)) * t.Q(b, x, h, k), t.W(b, x, h, k)
            for v = 0, n.v - 1 do next[k][v] = next[k][v] + q * t.dO(b, x, h, v) - w * dnew[x][v] end
          end
        end
        d = next
      end
      return {after = after, dnew = dnew, init = d}
    end)
    return {
      dState = function(b, c, h, k, v) return run(b, h).after[c][k][v] end,
      dNew = function(b, s, h, v) return run(b, h).dnew[s][v] end,
      dInit = function(b, h, k, v) return run(b, h).init[k][v] end,
    }
  end,
}

local output = {
  name = "gated_delta_output_gradient",
  program = mr.program("gated_delta_output_gradient", function(p)
    local b, s, h, k, v, c, i, j = axes(p)
    local size = p:option("part", "integer", k.size)      -- of k: a tile has so many keys, and dG is a sum over the parts
    p:check(k.size % size == 0, "part must divide k")
    local part, x = p:axis("part", k.size // size), p:axis("x", size)
    local scale, row, col, key = k.size ^ -0.5, c * i.size + i, c * i.size + j, part * size + x
    local Q, K, New = p:input("Q", {b, s, h, k}), p:input("K", {b, s, h, k}), p:input("New", {b, s, h, v})
    local G, dO, dNew = p:input("G", {b, s, h}, "f32"), p:input("dO", {b, s, h, v}), p:input("dNew", {b, s, h, v})
    local State, dState = p:input("State", {b, c, h, k, v}), p:input("dState", {b, c, h, k, v})
    local dQ, dK, dW = p:output("dQ", {b, s, h, k}), p:output("dK", {b, s, h, k}), p:output("dW", {b, s, h, k})
    local dG = p:output("dG", {part, b, s, h}, "f32")
    p:batch(b, c, h, part)
    local q, ki = p:load("load_q", Q, {b, row, h, key}), p:load("load_k", K, {b, row, h, key})
    local g, gj, last = p:load(G, {b, row, h}), p:load(G, {b, col, h}), p:load(G, {b, c * i.size + i.size - 1, h})
    local dq, dk, dw = p:carry("dq", {i, x}, 0), p:carry("dk", {i, x}, 0), p:carry("dw", {i, x}, 0)
    local dp, dlast = p:carry("dp", {i, j}, 0), p:carry("dlast", {}, 0)
    p:loop(v, function()
      local state, dstate = p:load("load_state", State, {b, c, h, key, v}), p:load("load_dstate", dState, {b, c, h, key, v})
      local new, dout = p:load("load_new", New, {b, row, h, v}), p:load("load_do", dO, {b, row, h, v})
      dw:add(p:mma("mma_dw", p:load("load_dnew", dNew, {b, row, h, v}), state))
      dq:add(p:mma("mma_dq", dout, state))
      dk:add(p:mma("mma_dk", new, dstate))
      dp:add(p:mma("mma_dp", dout, new:at(i, j)))
      p:task("sum_last", function() dlast:add((state * dstate):rowsum(x):rowsum(v)) end)
    end)
    dW:store("store_dw", p:task("negate", function() return -dw end), {b, row, h, key})
    local qk = p:mma("mma_qk", q, ki:at(i, j))
    local dg, weights = p:task("weights", function()
      dq:set(dq * exp(g) * scale)
      dk:set(dk * exp(mr.min(last - g, 0)))
      local inside = where(j:index():le(i:index()), dp * exp(mr.min(g - gj, 0)) * scale, 0)
      local score, kept = inside * qk, (dk * ki):rowsum(x)
      local dg = (dq * q):rowsum(x) - kept + score:rowsum(j) - score:rowsum(i):at(j, i)
      return dg + where(i:index():eq(i.size - 1), dlast * exp(last) + kept:rowsum(i), 0), inside:to "bf16"
    end)
    dG:store("store_dg", dg, {part, b, row, h})
    dq:add(p:mma("mma_dq_inside", weights, ki:at(i, j)))
    local dkj = p:mma("mma_dk_inside", weights, q)         -- {j, x}
    dQ:store("store_dq", dq, {b, row, h, key})
    dK:store("store_dk", p:task("add", function() return dk + dkj:at(j, i) end), {b, row, h, key})
  end),
  small = {{b = 1, s = 128, h = 2, k = 64, v = 64}, {b = 1, s = 64, h = 1, k = 64, v = 40, part = 32}},
  usual = {{b = 1, s = 32768, h = 8, k = 128, v = 128, part = 64}},
  fill = {G = falling},
  formula = function(t, n)
    local scale = n.k ^ -0.5
    local function dot(size, x, y) return sum(0, size - 1, function(m) return x(m) * y(m) end) end
    local function weight(b, h, x, y)
      return scale * math.exp(t.G(b, x, h) - t.G(b, y, h)) *
        dot(n.v, function(v) return t.dO(b, x, h, v) end, function(v) return t.New(b, y, h, v) end)
    end
    weight = once(weight)
    local function dq(b, x, h, k)
      local before = scale * math.exp(t.G(b, x, h)) *
        dot(n.v, function(v) return t.dO(b, x, h, v) end, function(v) return t.State(b, x // 64, h, k, v) end)
      return before + sum(x - x % 64, x, function(y) return weight(b, h, x, y) * t.K(b, y, h, k) end)
    end
    local function behind(b, x, h, k)
      return math.exp(t.G(b, x - x % 64 + 63, h) - t.G(b, x, h)) *
        dot(n.v, function(v) return t.New(b, x, h, v) end, function(v) return t.dState(b, x // 64, h, k, v) end)
    end
    local function dk(b, y, h, k)
      return behind(b, y, h, k) + sum(y, y - y % 64 + 63, function(x) return weight(b, h, x, y) * t.Q(b, x, h, k) end)
    end
    return {
      dQ = dq, dK = dk,
      dW = function(b, x, h, k)
        return -dot(n.v, function(v) return t.dNew(b, x, h, v) end, function(v) return t.State(b, x // 64, h, k, v) end)
      end,
      dG = function(part, b, x, h)                        -- the scores of a row scale with exp(G), those of a column with exp(-G)
        local size = n.part or n.k
        local from, to = part * size, (part + 1) * size - 1
        local at = sum(from, to, function(k) return t.Q(b, x, h, k) * dq(b, x, h, k) - t.K(b, x, h, k) * dk(b, x, h, k) end)
        if x % 64 < 63 then return at end
        return at + sum(from, to, function(k)
          return sum(x - 63, x, function(y) return t.K(b, y, h, k) * behind(b, y, h, k) end) + math.exp(t.G(b, x, h)) *
            dot(n.v, function(v) return t.State(b, x // 64, h, k, v) end, function(v) return t.dState(b, x // 64, h, k, v) end)
        end)
      end,
    }
  end,
}

local values = {
  name = "gated_delta_values_gradient",
  program = mr.program("gated_delta_values_gradient", function(p)
    local b, s, h, k, v, c, i, j = axes(p)
    local l, row, col = p:axis("l", i.size), c * i.size + i, c * i.size + j
    local K, V, T = p:input("K", {b, s, h, k}), p:input("V", {b, s, h, v}), p:input("T", {b, s, h, j})
    local Beta, G = p:input("Beta", {b, s, h}), p:input("G", {b, s, h}, "f32")
    local dW, dU = p:input("dW", {b, s, h, k}), p:input("dU", {b, s, h, v})
    local dK, dV = p:output("dK", {b, s, h, k}), p:output("dV", {b, s, h, v})
    local dBeta, dG = p:output("dBeta", {b, s, h}), p:output("dG", {b, s, h}, "f32")
    p:batch(b, c, h)
    local t = p:load("load_t", T, {b, row, h, j})
    local beta, g, gi = p:load(Beta, {b, col, h}), p:load(G, {b, col, h}), p:load(G, {b, row, h})
    local dt, kk = p:carry("dt", {i, j}, 0), p:carry("kk", {l, j}, 0)
    local dbeta, dg = p:carry("dbeta", {j}, 0), p:carry("dg", {j}, 0)
    p:loop(k, function()
      local kj = p:load("load_k", K, {b, col, h, k})
      local kb, kg = p:task("rate_k", function()
        local kb = kj * beta
        return kb:to "bf16", (kb * exp(g)):to "bf16"
      end)
      dt:add(p:mma("mma_dtw", p:load("load_dw", dW, {b, row, h, k}), kg))
      kk:add(p:mma("mma_kk", kj:at(j, l), kb))
    end)
    p:loop(v, function()
      local vj, du = p:load("load_v", V, {b, col, h, v}), p:load("load_du", dU, {b, row, h, v})
      dt:add(p:mma("mma_dtu", du, p:task("rate_v", function() return (vj * beta):to "bf16" end)))
      local dvb = p:mma("mma_dvb", t, du)
      p:task("sum_v", function() dbeta:add((dvb * vj):rowsum(v)) end)
      dV:store("store_dv", p:task("scale_dv", function() return dvb * beta end), {b, col, h, v})
    end)
    -- dA = -T^T dT T^T
    local below = p:task("below", function() return where(j:index():lt(i:index()), dt, 0):to "bf16" end)
    local dtt = p:mma("mma_dtt", below, t:at(i, l))                                       -- {i, l}
    local ttt = p:mma("mma_ttt", t, p:task("round", function() return dtt:to "bf16" end)) -- {j, l}: rows and columns of dA
    local da = p:task("inverse", function()
      local da = where(l:index():lt(j:index()), -ttt * exp(mr.min(g - gi:at(i, l), 0)), 0)
      local score = da * kk
      dg:set(score:rowsum(l) - score:rowsum(j):at(l, j))
      return da:to "bf16"
    end)
    p:loop(k, function()
      local kj, dw = p:load("load_k2", K, {b, col, h, k}), p:load("load_dw2", dW, {b, row, h, k})
      local kb = p:task("rate_k2", function() return (kj * beta):to "bf16" end)
      local dkg = p:mma("mma_dkg", t, dw)                                                 -- {j, k}
      local dak, dakb = p:mma("mma_dak", da, kj:at(j, l)), p:mma("mma_dakb", da, kb)      -- {j, k} and {l, k}
      local dk = p:task("sums", function()
        local old = dkg * exp(g)
        local keys = (old * kj):rowsum(k)
        dbeta:add(keys + (dak * kj):rowsum(k))
        dg:add(keys * beta)
        return (old + dak) * beta + dakb:at(l, j)
      end)
      dK:store("store_dk", dk, {b, col, h, k})
    end)
    dBeta:store("store_dbeta", dbeta, {b, col, h})
    dG:store("store_dg", dg, {b, col, h})
  end),
  small = {{b = 1, s = 64, h = 1, k = 64, v = 64}, {b = 1, s = 128, h = 1, k = 32, v = 40}},
  usual = {{b = 1, s = 32768, h = 8, k = 128, v = 128}},
  -- T is the inverse of a triangular matrix with ones.
  fill = {G = falling, T = function(_, b, s, h, j)
    local x = s % 64
    return x == j and 1 or x < j and 0 or ((s * 5 + j * 3 + h) % 13 - 6) / 64
  end},
  formula = function(t, n)
    local function outer(b, c, h, x, y)                   -- dT
      local at = c * 64 + y
      local rate = t.Beta(b, at, h)
      return sum(0, n.k - 1, function(k) return t.dW(b, c * 64 + x, h, k) * t.K(b, at, h, k) end) * rate * math.exp(t.G(b, at, h)) +
        sum(0, n.v - 1, function(v) return t.dU(b, c * 64 + x, h, v) * t.V(b, at, h, v) end) * rate
    end
    local inverse = once(function(b, c, h)                -- dA, times exp(G[x] - G[y])
      local dt, half, da = {}, {}, {}
      for x = 0, 63 do
        dt[x], half[x], da[x] = {}, {}, {}
        for y = 0, x - 1 do dt[x][y] = outer(b, c, h, x, y) end
        for z = 0, 63 do half[x][z] = sum(0, x - 1, function(y) return dt[x][y] * t.T(b, c * 64 + z, h, y) end) end
      end
      for y = 0, 63 do
        for z = 0, y - 1 do
          da[y][z] = -sum(0, 63, function(x) return t.T(b, c * 64 + x, h, y) * half[x][z] end) *
            math.exp(t.G(b, c * 64 + y, h) - t.G(b, c * 64 + z, h))
        end
      end
      return da
    end)
    local function dkg(b, y, h, k)
      return sum(0, 63, function(x) return t.T(b, y - y % 64 + x, h, y % 64) * t.dW(b, y - y % 64 + x, h, k) end)
    end
    local function dvb(b, y, h, v)
      return sum(0, 63, function(x) return t.T(b, y - y % 64 + x, h, y % 64) * t.dU(b, y - y % 64 + x, h, v) end)
    end
    local function rows(b, y, h, k)                       -- dA k
      local da = inverse(b, y // 64, h)[y % 64]
      return sum(0, y % 64 - 1, function(z) return da[z] * t.K(b, y - y % 64 + z, h, k) end)
    end
    local function columns(b, z, h, k)                    -- dA^T (beta k)
      local da = inverse(b, z // 64, h)
      return sum(z % 64 + 1, 63, function(y)
        local at = z - z % 64 + y
        return da[y][z % 64] * t.Beta(b, at, h) * t.K(b, at, h, k)
      end)
    end
    local function keys(b, y, h)
      return math.exp(t.G(b, y, h)) * sum(0, n.k - 1, function(k) return dkg(b, y, h, k) * t.K(b, y, h, k) end)
    end
    return {
      dV = function(b, y, h, v) return dvb(b, y, h, v) * t.Beta(b, y, h) end,
      dK = function(b, y, h, k)
        return (dkg(b, y, h, k) * math.exp(t.G(b, y, h)) + rows(b, y, h, k)) * t.Beta(b, y, h) + columns(b, y, h, k)
      end,
      dBeta = function(b, y, h)
        return keys(b, y, h) + sum(0, n.v - 1, function(v) return dvb(b, y, h, v) * t.V(b, y, h, v) end) +
          sum(0, n.k - 1, function(k) return rows(b, y, h, k) * t.K(b, y, h, k) end)
      end,
      dG = function(b, y, h)
        return keys(b, y, h) * t.Beta(b, y, h) + sum(0, n.k - 1, function(k)
          return (rows(b, y, h, k) * t.Beta(b, y, h) - columns(b, y, h, k)) * t.K(b, y, h, k)
        end)
      end,
    }
  end,
}

return {state, output, values}
