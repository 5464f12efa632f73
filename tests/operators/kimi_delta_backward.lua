-- The gradients of Kimi delta attention, kernel by kernel (Kimi Linear, 2025). Names are those of kimi_delta_forward, with G the running
-- sums times log2(e); S is the state before a chunk, dS the gradient of the state behind it:
--
--   new      dnew[j] = sum over i >= j of P[i,j] dO[i], the part of the chunk itself
--   scores   dP[i,j] = scale (dO[i] . new[j]) for j <= i
--   state    from the last chunk to the first: dnew = k dS + the part above, then dS = 2^G[last] dS + scale q^T dO - W^T dnew
--   output   dq = scale 2^G (dO S), dk = 2^(G[last] - G) (new dS), dW = -dnew S, dG of these
--   values   of U = T (beta v) and W = T (beta 2^G k), T = (I + A)^-1: dT = dW (beta 2^G k)^T + dU (beta v)^T,
--            dA = -T^T dT T^T below the diagonal, dk, dv, dbeta and dG
--   pairs    of P[i,j] = q[i] 2^(G[i] - G[j]) k[j] and A[i,j] = beta[i] k[i] 2^(G[i] - G[j]) k[j]: dq, dk, dbeta and dG, between
--            blocks of 16 positions by products, relative to a position between both, in a block pair by pair
local mr = require "millrace"
local formulas = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua")
local sum, once, axes = formulas.sum, formulas.once, formulas.chunk_axes
local exp2, where, min = mr.exp2, mr.where, mr.min

local function first(x) return x - x % 64 end

local new = {
  name = "kimi_delta_new_gradient",
  program = mr.program("kimi_delta_new_gradient", function(p)
    local b, s, h, c, i, j, row, col = axes(p)
    local v = p:axes("v")
    local dO, P, dNew = p:input("dO", {b, s, h, v}, "f32"), p:input("P", {b, s, h, j}), p:output("dNew", {b, s, h, v})
    p:batch(b, c, h)
    local pp, dout = p:load("load_p", P, {b, row, h, j}), p:load("load_do", dO, {b, row, h, v})
    local weights, dout = p:task("mask", function() return where(j:index():le(i:index()), pp, 0):to "bf16", dout:to "bf16" end)
    dNew:store("store_new", p:mma("mma_new", weights, dout), {b, col, h, v})
  end),
  small = {{b = 1, s = 128, h = 2, v = 64}, {b = 2, s = 64, h = 1, v = 40}},
  usual = {{b = 1, s = 8192, h = 64, v = 128}},
  formula = function(t)
    return {dNew = function(b, s, h, v)
      return sum(s, first(s) + 63, function(x) return t.P(b, x, h, s % 64) * t.dO(b, x, h, v) end)
    end}
  end,
}

local scores = {
  name = "kimi_delta_scores_gradient",
  program = mr.program("kimi_delta_scores_gradient", function(p)
    local b, s, h, c, i, j, row, col = axes(p)
    local v = p:axes("v")
    local dO, New, dP = p:input("dO", {b, s, h, v}), p:input("New", {b, s, h, v}), p:output("dP", {b, s, h, j}, "f32")
    p:batch(b, c, h)
    local dp = p:mma("mma_dp", p:load("load_do", dO, {b, row, h, v}), p:load("load_new", New, {b, col, h, v}))
    dP:store("store_dp", p:task("mask", function()
      return where(j:index():le(i:index()), dp * v.size ^ -0.5, 0)
    end), {b, row, h, j})
  end),
  small = {{b = 1, s = 128, h = 2, v = 64}, {b = 2, s = 64, h = 1, v = 40}},
  usual = {{b = 1, s = 8192, h = 64, v = 128}},
  formula = function(t, n)
    return {dP = function(b, s, h, j)
      if j > s % 64 then return 0 end
      return n.v ^ -0.5 * sum(0, n.v - 1, function(v) return t.dO(b, s, h, v) * t.New(b, first(s) + j, h, v) end)
    end}
  end,
}

local state = {
  name = "kimi_delta_state_gradient",
  program = mr.program("kimi_delta_state_gradient", function(p)
    local b, s, h, c, i = axes(p)
    local k, v = p:axes("k", "v")
    local Q, K, W = p:input("Q", {b, s, h, k}), p:input("K", {b, s, h, k}), p:input("W", {b, s, h, k})
    local G, dO, Part = p:input("G", {b, s, h, k}, "f32"), p:input("dO", {b, s, h, v}), p:input("Part", {b, s, h, v})
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
      local part, last = p:load("load_part", Part, {b, row, h, v}), p:load("load_last", G, {b, from * i.size + i.size - 1, h, k})
      local dnew = p:task("add", function() return (kd + part):to "bf16" end)
      dNew:store("store_new", dnew, {b, row, h, v})
      local qdo = p:mma("mma_q", p:load("load_q", Q, {b, row, h, k}), p:load("load_do", dO, {b, row, h, v}))
      local wd = p:mma("mma_w", p:load("load_w", W, {b, row, h, k}), dnew)
      p:task("step", function() state:set(state * exp2(last) + qdo * k.size ^ -0.5 - wd) end)
    end)
    dInit:store("store_init", state)
  end),
  small = {{b = 1, s = 128, h = 2, k = 64, v = 64}, {b = 2, s = 64, h = 1, k = 64, v = 40}},
  usual = {{b = 1, s = 4096, h = 32, k = 128, v = 128}, {b = 1, s = 2048, h = 64, k = 128, v = 128}},
  -- A gradient that W takes too much from grows without bound, as no model's does.
  fill = {W = function(_, _, s, _, k) return ((s * 7 + k * 3) % 11 - 5) / 256 end},
  formula = function(t, n)
    local run = once(function(b, h)
      local d, dnew, after = {}, {}, {}
      for k = 0, n.k - 1 do
        d[k] = {}
        for v = 0, n.v - 1 do d[k][v] = t.dFinal(b, h, k, v) end
      end
      for c = n.s // 64 - 1, 0, -1 do
        local old, next = d, {}
        after[c] = old
        for x = c * 64, c * 64 + 63 do
          local key = {}
          dnew[x] = {}
          for k = 0, n.k - 1 do key[k] = t.K(b, x, h, k) end
          for v = 0, n.v - 1 do
            dnew[x][v] = t.Part(b, x, h, v) + sum(0, n.k - 1, function(k) return key[k] * old[k][v] end)
          end
        end
        for k = 0, n.k - 1 do
          local keep = 2 ^ t.G(b, c * 64 + 63, h, k)
          next[k] = {}
          for v = 0, n.v - 1 do next[k][v] = old[k][v] * keep end
          for x = c * 64, c * 64 + 63 do
            local q, w = n.k ^ -0.5 * t.Q(b, x, h, k), t.W(b, x, h, k)
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
  name = "kimi_delta_output_gradient",
  program = mr.program("kimi_delta_output_gradient", function(p)
    local b, s, h, c, i, _, row = axes(p)
    local k, v = p:axes("k", "v")
    local scale = k.size ^ -0.5
    local Q, K, G = p:input("Q", {b, s, h, k}), p:input("K", {b, s, h, k}), p:input("G", {b, s, h, k}, "f32")
    local New, dO, dNew = p:input("New", {b, s, h, v}), p:input("dO", {b, s, h, v}), p:input("dNew", {b, s, h, v})
    local State, dState = p:input("State", {b, c, h, k, v}), p:input("dState", {b, c, h, k, v})
    local dQ, dK, dW = p:output("dQ", {b, s, h, k}, "f32"), p:output("dK", {b, s, h, k}, "f32"), p:output("dW", {b, s, h, k})
    local dG = p:output("dG", {b, s, h, k}, "f32")
    p:batch(b, c, h)
    local dq, dk, dw = p:carry("dq", {i, k}, 0), p:carry("dk", {i, k}, 0), p:carry("dw", {i, k}, 0)
    local product = p:carry("product", {k}, 0)
    p:loop(v, function()
      local state, dstate = p:load("load_state", State), p:load("load_dstate", dState)
      dw:add(p:mma("mma_dw", p:load("load_dnew", dNew, {b, row, h, v}), state))
      dq:add(p:mma("mma_dq", p:load("load_do", dO, {b, row, h, v}), state))
      dk:add(p:mma("mma_dk", p:load("load_new", New, {b, row, h, v}), dstate))
      p:task("product", function() product:add((state * dstate):rowsum(v)) end)
    end)
    local q, ki, g = p:load("load_q", Q, {b, row, h, k}), p:load("load_k", K, {b, row, h, k}), p:load("load_g", G, {b, row, h, k})
    local last = p:load("load_last", G, {b, c * i.size + i.size - 1, h, k})
    local dqs, dks, dws, dgs = p:task("gates", function()
      local dq, dk = dq * exp2(g) * scale, dk * exp2(last - g)
      local dlast = (dk * ki):rowsum(i) + product * exp2(last)
      return dq, dk, -dw, q * dq - ki * dk + where(i:index():eq(i.size - 1), dlast, 0)
    end)
    dQ:store("store_dq", dqs, {b, row, h, k})
    dK:store("store_dk", dks, {b, row, h, k})
    dW:store("store_dw", dws, {b, row, h, k})
    dG:store("store_dg", dgs, {b, row, h, k})
  end),
  small = {{b = 1, s = 128, h = 2, k = 64, v = 64}, {b = 1, s = 64, h = 1, k = 64, v = 40}},
  usual = {{b = 1, s = 8192, h = 64, k = 128, v = 128}},
  formula = function(t, n)
    local function dot(x, y) return sum(0, n.v - 1, function(v) return x(v) * y(v) end) end
    local function of(b, c, h, k, array) return function(v) return array(b, c, h, k, v) end end
    local function dq(b, s, h, k)
      return n.k ^ -0.5 * 2 ^ t.G(b, s, h, k) * dot(function(v) return t.dO(b, s, h, v) end, of(b, s // 64, h, k, t.State))
    end
    local function dk(b, s, h, k)
      return 2 ^ (t.G(b, first(s) + 63, h, k) - t.G(b, s, h, k)) *
        dot(function(v) return t.New(b, s, h, v) end, of(b, s // 64, h, k, t.dState))
    end
    return {
      dQ = dq, dK = dk,
      dW = function(b, s, h, k) return -dot(function(v) return t.dNew(b, s, h, v) end, of(b, s // 64, h, k, t.State)) end,
      dG = function(b, s, h, k)
        local at = t.Q(b, s, h, k) * dq(b, s, h, k) - t.K(b, s, h, k) * dk(b, s, h, k)
        if s % 64 < 63 then return at end
        return at + sum(s - 63, s, function(x) return t.K(b, x, h, k) * dk(b, x, h, k) end) +
          2 ^ t.G(b, s, h, k) * dot(of(b, s // 64, h, k, t.State), of(b, s // 64, h, k, t.dState))
      end,
    }
  end,
}

local values = {
  name = "kimi_delta_values_gradient",
  program = mr.program("kimi_delta_values_gradient", function(p)
    local b, s, h, c, i, j, row, col = axes(p)
    local k, v = p:axes("k", "v")
    local l = p:axis("l", i.size)
    local K, V, T = p:input("K", {b, s, h, k}), p:input("V", {b, s, h, v}), p:input("T", {b, s, h, j})
    local Beta, G = p:input("Beta", {b, s, h}), p:input("G", {b, s, h, k}, "f32")
    local dW, dU = p:input("dW", {b, s, h, k}), p:input("dU", {b, s, h, v})
    local dKPart, dGPart = p:input("dKPart", {b, s, h, k}, "f32"), p:input("dGPart", {b, s, h, k}, "f32")  -- of the output's kernel
    local dA, dK, dV = p:output("dA", {b, s, h, l}, "f32"), p:output("dK", {b, s, h, k}, "f32"), p:output("dV", {b, s, h, v})
    local dBeta, dG = p:output("dBeta", {b, s, h}, "f32"), p:output("dG", {b, s, h, k}, "f32")
    p:batch(b, c, h)
    local t, beta = p:load("load_t", T, {b, row, h, j}), p:load("load_beta", Beta, {b, col, h})
    local dt, dbeta = p:carry("dt", {i, j}, 0), p:carry("dbeta", {j}, 0)
    p:loop(k, function()
      local kj, g = p:load("load_k", K, {b, col, h, k}), p:load("load_g", G, {b, col, h, k})
      local dw, kg = p:load("load_dw", dW, {b, row, h, k}), p:task("rate_k", function() return (kj * beta * exp2(g)):to "bf16" end)
      dt:add(p:mma("mma_dtw", dw, kg))
      local dkg = p:mma("mma_dkg", t, dw)                                                 -- {j, k}
      local oldk, oldg = p:load("load_dk", dKPart, {b, col, h, k}), p:load("load_dg", dGPart, {b, col, h, k})
      local dk, dg = p:task("keys", function()
        local kept = dkg * exp2(g)
        dbeta:add((kept * kj):rowsum(k))
        return kept * beta + oldk, kept * beta * kj + oldg
      end)
      dK:store("store_dk", dk, {b, col, h, k})
      dG:store("store_dg", dg, {b, col, h, k})
    end)
    p:loop(v, function()
      local vj, du = p:load("load_v", V, {b, col, h, v}), p:load("load_du", dU, {b, row, h, v})
      dt:add(p:mma("mma_dtu", du, p:task("rate_v", function() return (vj * beta):to "bf16" end)))
      local dvb = p:mma("mma_dvb", t, du)
      dV:store("store_dv", p:task("values", function()
        dbeta:add((dvb * vj):rowsum(v))
        return dvb * beta
      end), {b, col, h, v})
    end)
    dBeta:store("store_dbeta", dbeta, {b, col, h})
    local below = p:task("below", function() return where(j:index():lt(i:index()), dt, 0):to "bf16" end)
    local dtt = p:mma("mma_dtt", below, t:at(i, l))                                       -- {i, l}
    local ttt = p:mma("mma_ttt", t, p:task("round", function() return dtt:to "bf16" end)) -- {j, l}: rows and columns of dA
    dA:store("store_da", p:task("negate", function() return where(l:index():lt(j:index()), -ttt, 0) end), {b, col, h, l})
  end),
  small = {{b = 1, s = 64, h = 1, k = 64, v = 64}, {b = 1, s = 128, h = 1, k = 32, v = 40}},
  usual = {{b = 1, s = 32768, h = 8, k = 128, v = 128}},
  -- T is the inverse of a triangular matrix with ones.
  fill = {T = function(_, b, s, h, j)
    local x = s % 64
    return x == j and 1 or x < j and 0 or ((s * 5 + j * 3 + h) % 13 - 6) / 64
  end},
  formula = function(t, n)
    local inverse = once(function(b, c, h)
      local key, value, half, da = {}, {}, {}, {}
      for y = 0, 63 do
        local at = c * 64 + y
        key[y], value[y], da[y] = {}, {}, {}
        for k = 0, n.k - 1 do key[y][k] = t.Beta(b, at, h) * t.K(b, at, h, k) * 2 ^ t.G(b, at, h, k) end
        for v = 0, n.v - 1 do value[y][v] = t.Beta(b, at, h) * t.V(b, at, h, v) end
      end
      for x = 0, 63 do
        local at, dt, dw, du = c * 64 + x, {}, {}, {}
        half[x] = {}
        for k = 0, n.k - 1 do dw[k] = t.dW(b, at, h, k) end
        for v = 0, n.v - 1 do du[v] = t.dU(b, at, h, v) end
        for y = 0, x - 1 do
          dt[y] = sum(0, n.k - 1, function(k) return dw[k] * key[y][k] end) + sum(0, n.v - 1, function(v) return du[v] * value[y][v] end)
        end
        for z = 0, 63 do half[x][z] = sum(0, x - 1, function(y) return dt[y] * t.T(b, c * 64 + z, h, y) end) end
      end
      for y = 0, 63 do
        for z = 0, y - 1 do
          da[y][z] = -sum(y, 63, function(x) return t.T(b, c * 64 + x, h, y) * half[x][z] end)
        end
      end
      return da
    end)
    local function over(b, y, h, of, n)                   -- T^T of
      return sum(0, 63, function(x) return t.T(b, first(y) + x, h, y % 64) * of(b, first(y) + x, h, n) end)
    end
    local function kept(b, y, h, k) return 2 ^ t.G(b, y, h, k) * over(b, y, h, t.dW, k) end
    return {
      dA = function(b, y, h, z) return z < y % 64 and inverse(b, y // 64, h)[y % 64][z] or 0 end,
      dK = function(b, y, h, k) return kept(b, y, h, k) * t.Beta(b, y, h) + t.dKPart(b, y, h, k) end,
      dV = function(b, y, h, v) return over(b, y, h, t.dU, v) * t.Beta(b, y, h) end,
      dBeta = function(b, y, h)
        return sum(0, n.k - 1, function(k) return kept(b, y, h, k) * t.K(b, y, h, k) end) +
          sum(0, n.v - 1, function(v) return over(b, y, h, t.dU, v) * t.V(b, y, h, v) end)
      end,
      dG = function(b, y, h, k) return kept(b, y, h, k) * t.Beta(b, y, h) * t.K(b, y, h, k) + t.dGPart(b, y, h, k) end,
    }
  end,
}

local both = {
  name = "kimi_delta_pairs_gradient",
  program = mr.program("kimi_delta_pairs_gradient", function(p)
    local b, s, h, k = p:axes("b", "s", "h", "k")
    local part = p:option("block", "integer", 16)
    local c, r, d = p:axis("c", s.size // (4 * part)), p:axis("r", 3), p:axis("d", part)       -- chunks of four blocks
    local i, j, l = p:axis("i", 4 * part), p:axis("j", 4 * part), p:axis("l", 4 * part)
    local Q, K, G = p:input("Q", {b, s, h, k}), p:input("K", {b, s, h, k}), p:input("G", {b, s, h, k}, "f32")
    local Beta, dP, dA = p:input("Beta", {b, s, h}), p:input("dP", {b, s, h, j}), p:input("dA", {b, s, h, j})
    local dQPart, dKPart = p:input("dQPart", {b, s, h, k}, "f32"), p:input("dKPart", {b, s, h, k}, "f32")
    local dGPart = p:input("dGPart", {b, s, h, k}, "f32")
    local dQ, dK = p:output("dQ", {b, s, h, k}, "f32"), p:output("dK", {b, s, h, k}, "f32")
    local dG, dBeta = p:output("dG", {b, s, h, k}, "f32"), p:output("dBeta", {b, s, h}, "f32")
    p:batch(b, c, h)
    local start = c * i.size
    local row = start + i
    local function block(x) return x:index() // part end
    local beta = p:load("load_beta", Beta, {b, row, h})
    local pp, aa = p:load("load_p", dP, {b, row, h, j}), p:load("load_a", dA, {b, row, h, j})
    local pt, at = p:load("load_pt", dP, {b, start + l, h, i}), p:load("load_at", dA, {b, start + l, h, i})
    local dbeta = p:carry("dbeta", {i}, 0)
    p:loop(k, function()
      local q, ki, g = p:load("load_q", Q, {b, row, h, k}), p:load("load_k", K, {b, row, h, k}), p:load("load_g", G, {b, row, h, k})
      local dq, dk, dt = p:carry("dq", {i, k}, 0), p:carry("dk", {i, k}, 0), p:carry("dt", {i, k}, 0)
      p:loop(r, {batch = true}, function()                -- rows of block r + 1 with earlier ones, and block r with later ones
        local from = p:load("load_from", G, {b, start + (r + 1) * part, h, k})
        local last = p:load("load_last", G, {b, start + r * part + part - 1, h, k})
        local kept, qs, ks = p:task("relative", function()
          local up, later = exp2(min(g - last, 0)), block(i):gt(r:index())
          local kept = where(block(i):le(r:index()), ki * exp2(min(from - g, 0)), 0):to "bf16"
          return kept:at(i, j), where(later, q * up, 0):to "bf16":at(i, l), where(later, ki * beta * up, 0):to "bf16":at(i, l)
        end)
        local pr, ar, pc, ac = p:task("own", function()
          local rows, columns = block(i):eq(r:index() + 1), block(i):eq(r:index())
          return where(rows, pp, 0):to "bf16", where(rows, aa, 0):to "bf16",
            where(columns, pt, 0):to "bf16", where(columns, at, 0):to "bf16"
        end)
        dq:add(p:mma("mma_dq", pr, kept))
        dk:add(p:mma("mma_dk", ar, kept))
        dt:add(p:mma("mma_qt", pc, qs))
        dt:add(p:mma("mma_kt", ac, ks))
      end)
      local from = p:load("load_own_from", G, {b, start + i // part * part, h, k})
      local last = p:load("load_own_last", G, {b, start + i // part * part + part - 1, h, k})
      p:task("scale", function()
        local up = exp2(min(g - from, 0))
        dq:set(dq * up)
        dk:set(dk * up)
        dt:set(dt * exp2(min(last - g, 0)))
      end)
      p:loop(d, {batch = true}, function()                -- all positions of a block with its position d
        p:task("pairs", function()
          local other = i // part * part + d
          local qd, kd, gd = q:at(i, other), ki:at(i, other), g:at(i, other)
          local x, down, up = i:index() % part - d:index(), kd * exp2(min(g - gd, 0)), exp2(min(gd - g, 0))
          dq:add(where(x:ge(0), pp:at(j, other) * down, 0))
          dk:add(where(x:gt(0), aa:at(j, other) * down, 0))
          dt:add((where(x:le(0), pt:at(l, other) * qd, 0) + where(x:lt(0), at:at(l, other) * kd * beta:at(i, other), 0)) * up)
        end)
      end)
      local oldq, oldk = p:load("load_oldq", dQPart, {b, row, h, k}), p:load("load_oldk", dKPart, {b, row, h, k})
      local oldg = p:load("load_oldg", dGPart, {b, row, h, k})
      local newq, newk, newg = p:task("add", function()
        local scaled = dk * beta
        dbeta:add((dk * ki):rowsum(k))
        return dq + oldq, scaled + dt + oldk, q * dq + (scaled - dt) * ki + oldg
      end)
      dQ:store("store_dq", newq, {b, row, h, k})
      dK:store("store_dk", newk, {b, row, h, k})
      dG:store("store_dg", newg, {b, row, h, k})
    end)
    dBeta:store("store_dbeta", dbeta, {b, row, h})
  end),
  small = {{b = 1, s = 64, h = 2, k = 64}, {b = 1, s = 128, h = 1, k = 40}},
  usual = {{b = 1, s = 8192, h = 8, k = 128}},
  fill = {G = function(_, _, s, h, k) return -0.03 * (s % 64 + 1) * (1 + (h + k) % 3) end},
  formula = function(t, n)
    local function pair(b, x, y, h, k) return 2 ^ (t.G(b, x, h, k) - t.G(b, y, h, k)) end
    local function dq(b, x, h, k)
      return sum(first(x), x, function(y) return t.dP(b, x, h, y % 64) * t.K(b, y, h, k) * pair(b, x, y, h, k) end)
    end
    local function dk(b, x, h, k)                         -- as the earlier factor's, without beta
      return sum(first(x), x - 1, function(y) return t.dA(b, x, h, y % 64) * t.K(b, y, h, k) * pair(b, x, y, h, k) end)
    end
    local function dt(b, y, h, k)
      return sum(y, first(y) + 63, function(x)
        local a = x > y and t.dA(b, x, h, y % 64) * t.Beta(b, x, h) * t.K(b, x, h, k) or 0
        return (a + t.dP(b, x, h, y % 64) * t.Q(b, x, h, k)) * pair(b, x, y, h, k)
      end)
    end
    return {
      dQ = function(b, x, h, k) return dq(b, x, h, k) + t.dQPart(b, x, h, k) end,
      dK = function(b, x, h, k) return dk(b, x, h, k) * t.Beta(b, x, h) + dt(b, x, h, k) + t.dKPart(b, x, h, k) end,
      dBeta = function(b, x, h) return sum(0, n.k - 1, function(k) return dk(b, x, h, k) * t.K(b, x, h, k) end) end,
      dG = function(b, x, h, k)
        return t.Q(b, x, h, k) * dq(b, x, h, k) + t.dGPart(b, x, h, k) +
          t.K(b, x, h, k) * (dk(b, x, h, k) * t.Beta(b, x, h) - dt(b, x, h, k))
      end,
    }
  end,
}

return {new, scores, state, output, values, both}
