-- The kernels of Kimi delta attention (Kimi Linear, 2025) as training runs them, one for each step: the delta rule with a decay
-- of each key dim. Chunks have 64 positions, in blocks of 16; i and j are two of a chunk, G the running sums of the gate in it, times
-- log2(e). Exponents G[i] - G[j] are never computed as a quotient of two powers, which may be too large: between blocks both
-- sides are taken relative to the first position of the later block, and in a block each pair has an exponent of its own.
--
--   sums      G[i,x] = sum over j <= i of g[j,x], of each chunk, or of all positions
--   diagonal  P[i,j] = scale (sum over x of q[i,x] 2^(G[i,x] - G[j,x]) k[j,x]) for j <= i, and
--             A[i,j] = beta[i] (sum over x of k[i,x] 2^(G[i,x] - G[j,x]) k[j,x]) for j < i, of i and j in the same block
--   solve     P and A of all other blocks, and T = (I + A)^-1
--   values    U = T (beta v), W = T (beta 2^G k), and k 2^(G[last] - G)
--   state     new = U - W S, then S = 2^G[last] S + sum over i of (k 2^(G[last] - G))[i] new[i], from chunk to chunk
--   output    o[i] = scale (q[i] 2^G[i]) S + sum over j <= i of P[i,j] new[j]
local mr = require "millrace"
local formulas = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua")
local sum, once, axes = formulas.sum, formulas.once, formulas.chunk_axes
local exp2, where, min = mr.exp2, mr.where, mr.min

local function first(x) return x - x % 64 end

local sums = {
  name = "kimi_delta_sums",
  program = mr.program("kimi_delta_sums", function(p)
    local b, s, h, c, i, _, row = axes(p)
    local k = p:axes("k")
    local G, Sum = p:input("G", {b, s, h, k}, "f32"), p:output("Sum", {b, s, h, k}, "f32")
    p:batch(b, c, h)
    local g = p:load("load_g", G, {b, row, h, k})
    local sums = p:task("sums", function()
      local g = g * 1.4426950408889634
      local sums = g:cumsum(i)
      return p:option("reverse", "boolean") and g:rowsum(i) - sums + g or sums
    end)
    Sum:store("store_sum", sums, {b, row, h, k})
  end),
  small = {{b = 1, s = 128, h = 2, k = 64}, {b = 2, s = 64, h = 1, k = 40, reverse = true}},
  usual = {{b = 1, s = 8192, h = 64, k = 128}, {b = 1, s = 8192, h = 64, k = 128, reverse = true}},
  formula = function(t, n)
    return {Sum = function(b, s, h, k)
      local from, to = n.reverse and s or first(s), n.reverse and first(s) + 63 or s
      return 1.4426950408889634 * sum(from, to, function(x) return t.G(b, x, h, k) end)
    end}
  end,
}

local running = {
  name = "kimi_delta_running_sums",
  program = mr.program("kimi_delta_running_sums", function(p)
    local b, s, h, k = p:axes("b", "s", "h", "k")
    local G, Sum = p:input("G", {b, s, h, k}, "f32"), p:output("Sum", {b, s, h, k}, "f32")
    p:batch(b, h)
    local before = p:carry("before", {k}, 0)
    p:loop(s, function()
      local g = p:load("load_g", G)
      Sum:store("store_sum", p:task("sums", function()
        local sums = before + g:cumsum(s)
        before:add(g:rowsum(s))
        return sums
      end))
    end)
  end),
  small = {{b = 1, s = 200, h = 2, k = 32}},
  usual = {{b = 1, s = 8192, h = 64, k = 128}},
  formula = function(t)
    return {Sum = function(b, s, h, k) return sum(0, s, function(x) return t.G(b, x, h, k) end) end}
  end,
}

-- sum over x of a[i,x] 2^(G[i,x] - G[j,x]) k[j,x], at positions
local function decayed(t, n, b, h, a, i, j)
  return sum(0, n.k - 1, function(k) return a(b, i, h, k) * t.K(b, j, h, k) * 2 ^ (t.G(b, i, h, k) - t.G(b, j, h, k)) end)
end

local diagonal = {
  name = "kimi_delta_diagonal",
  program = mr.program("kimi_delta_diagonal", function(p)
    local b, s, h, k = p:axes("b", "s", "h", "k")
    local block = p:option("block", "integer", 16)
    local c, i, j = p:axis("c", s.size // block), p:axis("i", block), p:axis("j", block)
    local Q, K, G = p:input("Q", {b, s, h, k}), p:input("K", {b, s, h, k}), p:input("G", {b, s, h, k}, "f32")
    local Beta = p:input("Beta", {b, s, h})
    local P, A = p:output("P", {b, s, h, j}), p:output("A", {b, s, h, j}, "f32")
    p:batch(b, c, h)
    local row, col = c * block + i, c * block + j
    local beta = p:load("load_beta", Beta, {b, row, h})
    local pp, aa = p:carry("pp", {i, j}, 0), p:carry("aa", {i, j}, 0)
    p:loop(k, function()
      local q, ki, gi = p:load("load_q", Q, {b, row, h, k}), p:load("load_ki", K, {b, row, h, k}), p:load("load_gi", G, {b, row, h, k})
      local kj, gj = p:load("load_kj", K, {b, col, h, k}), p:load("load_gj", G, {b, col, h, k})
      p:task("pairs", function()
        local kept = kj * exp2(min(gi - gj, 0))           -- {i, j, k}
        pp:add((q * kept):rowsum(k))
        aa:add((ki * kept):rowsum(k))
      end)
    end)
    P:store("store_p", where(j:index():le(i:index()), pp * k.size ^ -0.5, 0), {b, row, h, j})
    A:store("store_a", where(j:index():lt(i:index()), aa * beta, 0), {b, row, h, j})
  end),
  small = {{b = 1, s = 64, h = 2, k = 64}, {b = 2, s = 32, h = 1, k = 40}},
  usual = {{b = 1, s = 8192, h = 64, k = 128}},
  fill = {G = function(_, _, s, h, k) return -0.03 * (s % 64 + 1) * (1 + (h + k) % 3) end},
  formula = function(t, n)
    return {
      P = function(b, s, h, j)
        local other = s - s % 16 + j
        return other > s and 0 or n.k ^ -0.5 * decayed(t, n, b, h, t.Q, s, other)
      end,
      A = function(b, s, h, j)
        local other = s - s % 16 + j
        return other >= s and 0 or t.Beta(b, s, h) * decayed(t, n, b, h, t.K, s, other)
      end,
    }
  end,
}

local solve = {
  name = "kimi_delta_solve",
  program = mr.program("kimi_delta_solve", function(p)
    local b, s, h, c, i, j, row = axes(p)
    local k = p:axes("k")
    local part = i.size // 4
    local d, l, n = p:axis("d", part), p:axis("l", i.size), p:axis("n", i.size)
    local block, bi, bj, br = p:axis("block", 4), p:axis("bi", part), p:axis("bj", part), p:axis("br", part)
    local r = p:axis("r", 4)                              -- the block of the rows
    local Q, K, G = p:input("Q", {b, s, h, k}), p:input("K", {b, s, h, k}), p:input("G", {b, s, h, k}, "f32")
    local Beta = p:input("Beta", {b, s, h})
    local PD, AD = p:input("PD", {b, s, h, d}), p:input("AD", {b, s, h, d}, "f32")       -- the diagonal blocks
    local P, T = p:output("P", {b, s, h, j}), p:output("T", {b, s, h, j})
    p:batch(b, c, h)
    local q, ki, g = p:load("load_q", Q, {b, row, h, k}), p:load("load_k", K, {b, row, h, k}), p:load("load_g", G, {b, row, h, k})
    local pp, aa = p:carry("pp", {i, j}, 0), p:carry("aa", {i, j}, 0)
    p:loop(r, {batch = true}, function()
      local from = p:load("load_from", G, {b, c * i.size + r * part, h, k})
      local qs, ks, kt = p:task("scale", function()
        local up, own = exp2(min(g - from, 0)), (i:index() // part):eq(r:index())
        return where(own, q * up, 0):to "bf16", where(own, ki * up, 0):to "bf16",
          where((i:index() // part):lt(r:index()), ki * exp2(min(from - g, 0)), 0):to "bf16":at(i, j)
      end)
      pp:add(p:mma("mma_p", qs, kt))
      aa:add(p:mma("mma_a", ks, kt))
    end)
    local beta = p:load("load_beta", Beta, {b, row, h})
    local ad, pd = p:load("load_ad", AD, {b, row, h, d}), p:load("load_pd", PD, {b, row, h, d})
    local below = p:task("below", function()
      return (aa * beta):to "bf16":at(j, l):at(i, n)
    end)
    P:store("store_p", p:task("scores", function()
      local same = (i:index() // part):eq(j:index() // part)
      return where(same, pd:at(d, j % part), pp * k.size ^ -0.5)
    end), {b, row, h, j})
    local rows = p:carry("rows", {block, bi, bj}, 0)
    p:task("identity", function()
      rows:set(where(bi:index():eq(bj:index()), 1, 0) + (block:index() * 0):to "f32")
    end)
    p:loop(br, {batch = true}, function()                 -- forward substitution of all diagonal blocks
      p:task("substitute", function()
        local row = where(bi:index():eq(br:index()), rows, 0):rowsum(bi)                  -- {block, bj}
        local column = where(bi:index():gt(br:index()), ad:at(d, br):at(i, block * part + bi), 0)
        rows:set(rows - column * row)
      end)
    end)
    local inv, invn, invl = p:task("round", function()
      local inv = rows:at(block, i // part):at(bi, i % part):at(bj, j % part)
      local inv = where((i:index() // part):eq(j:index() // part), inv, 0):to "bf16"
      return inv, inv:at(j, n), inv:at(i, l)
    end)
    local product = p:mma("mma_m", invn, below)           -- M = D A, of blocks below the diagonal; T = (I + M^2) (I - M) D
    local m = p:task("round_m", function() return product:to "bf16" end)
    local md = p:mma("mma_md", m, invl)
    local one = p:task("first", function() return (inv - md):to "bf16" end)
    local mf = p:mma("mma_mf", m, one:at(i, l))
    local mm = p:mma("mma_mm", m, p:task("round_mf", function() return mf:to "bf16":at(i, l) end))
    T:store("store_t", p:task("add", function() return one + mm end), {b, row, h, j})
  end),
  small = {{b = 1, s = 128, h = 1, k = 64}, {b = 1, s = 64, h = 2, k = 40}},
  usual = {{b = 1, s = 8192, h = 64, k = 128}},
  fill = {
    G = function(_, _, s, h, k) return -0.03 * (s % 64 + 1) * (1 + (h + k) % 3) end,
    Beta = function(_, _, s, h) return ((s * 5 + h) % 7 + 1) / 64 end,
    AD = function(_, _, s, h, d) return d < s % 16 and ((s * 5 + h + d * 3) % 9 - 4) / 32 or 0 end,
  },
  formula = function(t, n)
    local inverse = once(function(b, h, c)
      local rows = {}
      for x = 0, 63 do
        local a, at = {}, c * 64 + x
        for y = 0, x - 1 do
          a[y] = y // 16 == x // 16 and t.AD(b, at, h, y % 16) or t.Beta(b, at, h) * decayed(t, n, b, h, t.K, at, c * 64 + y)
        end
        rows[x] = {}
        for z = 0, 63 do
          rows[x][z] = (x == z and 1 or 0) - sum(z, x - 1, function(y) return a[y] * rows[y][z] end)
        end
      end
      return rows
    end)
    return {
      T = function(b, s, h, j) return inverse(b, h, s // 64)[s % 64][j] end,
      P = function(b, s, h, j)
        local x = s % 64
        if j // 16 == x // 16 then return t.PD(b, s, h, j % 16) end
        return j > x and 0 or n.k ^ -0.5 * decayed(t, n, b, h, t.Q, s, first(s) + j)
      end,
    }
  end,
}

local values = {
  name = "kimi_delta_values",
  program = mr.program("kimi_delta_values", function(p)
    local b, s, h, c, i, j, row, col = axes(p)
    local k, v = p:axes("k", "v")
    local K, V, T = p:input("K", {b, s, h, k}), p:input("V", {b, s, h, v}), p:input("T", {b, s, h, j})
    local Beta, G = p:input("Beta", {b, s, h}), p:input("G", {b, s, h, k}, "f32")
    local W, U, Kept = p:output("W", {b, s, h, k}), p:output("U", {b, s, h, v}), p:output("Kept", {b, s, h, k})
    p:batch(b, c, h)
    local t, beta = p:load("load_t", T, {b, row, h, j}), p:load("load_beta", Beta, {b, col, h})
    local kj, g = p:load("load_k", K, {b, col, h, k}), p:load("load_g", G, {b, col, h, k})
    local last, vj = p:load("load_last", G, {b, c * i.size + i.size - 1, h, k}), p:load("load_v", V, {b, col, h, v})
    local kb, kept, vb = p:task("rate", function()
      return (kj * beta * exp2(g)):to "bf16", kj * exp2(last - g), (vj * beta):to "bf16"
    end)
    Kept:store("store_kept", kept, {b, col, h, k})
    W:store("store_w", p:mma("mma_w", t, kb), {b, row, h, k})
    U:store("store_u", p:mma("mma_u", t, vb), {b, row, h, v})
  end),
  small = {{b = 1, s = 128, h = 2, k = 64, v = 64}, {b = 2, s = 64, h = 1, k = 40, v = 72}},
  usual = {{b = 1, s = 8192, h = 64, k = 128, v = 128}},
  formula = function(t)
    local function over(b, s, h, f) return sum(0, 63, function(j) return t.T(b, s, h, j) * f(first(s) + j) end) end
    return {
      W = function(b, s, h, k)
        return over(b, s, h, function(x) return t.Beta(b, x, h) * 2 ^ t.G(b, x, h, k) * t.K(b, x, h, k) end)
      end,
      U = function(b, s, h, v) return over(b, s, h, function(x) return t.Beta(b, x, h) * t.V(b, x, h, v) end) end,
      Kept = function(b, s, h, k) return t.K(b, s, h, k) * 2 ^ (t.G(b, first(s) + 63, h, k) - t.G(b, s, h, k)) end,
    }
  end,
}

local state = {
  name = "kimi_delta_state",
  program = mr.program("kimi_delta_state", function(p)
    local b, s, h, c, i, _, row = axes(p)
    local k, v = p:axes("k", "v")
    local K, W, U = p:input("K", {b, s, h, k}), p:input("W", {b, s, h, k}), p:input("U", {b, s, h, v})
    local G, Init = p:input("G", {b, s, h, k}, "f32"), p:input("Init", {b, h, k, v})
    local Before, New, Final = p:output("Before", {b, c, h, k, v}), p:output("New", {b, s, h, v}), p:output("Final", {b, h, k, v}, "f32")
    p:batch(b, h)
    local init, state = p:load("load_init", Init), p:carry("state", {k, v}, 0)
    p:task("begin", function() state:set(init) end)
    p:loop(c, {batch = true}, function()
      local before = p:task("before", function() return state:to "bf16" end)
      Before:store("store_before", before)
      local u, last = p:load("load_u", U, {b, row, h, v}), p:load("load_last", G, {b, c * i.size + i.size - 1, h, k})
      local ws = p:mma("mma_ws", p:load("load_w", W, {b, row, h, k}), before)
      local new = p:task("correct", function() return (u - ws):to "bf16" end)
      New:store("store_new", new, {b, row, h, v})
      p:task("forget", function() state:set(state * exp2(last)) end)
      state:add(p:mma("mma_state", p:load("load_k", K, {b, row, h, k}), new))
    end)
    Final:store("store_final", state)
  end),
  small = {{b = 1, s = 128, h = 2, k = 64, v = 64}, {b = 2, s = 64, h = 1, k = 64, v = 40}},
  usual = {{b = 1, s = 4096, h = 32, k = 128, v = 128}, {b = 1, s = 2048, h = 64, k = 128, v = 128}},
  -- A state that W takes too much from grows without bound, as no model's does.
  fill = {W = function(_, _, s, _, k) return ((s * 7 + k * 3) % 11 - 5) / 256 end},
  formula = function(t, n)
    local run = once(function(b, h)
      local s, new, before = {}, {}, {}
      for k = 0, n.k - 1 do
        s[k] = {}
        for v = 0, n.v - 1 do s[k][v] = t.Init(b, h, k, v) end
      end
      for c = 0, n.s // 64 - 1 do
        local old, next = s, {}
        before[c] = old
        for x = c * 64, c * 64 + 63 do
          local w = {}
          new[x] = {}
          for k = 0, n.k - 1 do w[k] = t.W(b, x, h, k) end
          for v = 0, n.v - 1 do new[x][v] = t.U(b, x, h, v) - sum(0, n.k - 1, function(k) return w[k] * old[k][v] end) end
        end
        for k = 0, n.k - 1 do
          local keep = 2 ^ t.G(b, c * 64 + 63, h, k)
          next[k] = {}
          for v = 0, n.v - 1 do next[k][v] = old[k][v] * keep end
          for x = c * 64, c * 64 + 63 do
            local kx = t.K(b, x, h, k)
            for v = 0, n.v - 1 do next[k][v] = next[k][v] + kx * new[x][v] end
          end
        end
        s = next
      end
      return {before = before, new = new, final = s}
    end)
    return {
      Before = function(b, c, h, k, v) return run(b, h).before[c][k][v] end,
      New = function(b, s, h, v) return run(b, h).new[s][v] end,
      Final = function(b, h, k, v) return run(b, h).final[k][v] end,
    }
  end,
}

local output = {
  name = "kimi_delta_output",
  program = mr.program("kimi_delta_output", function(p)
    local b, s, h, c, i, j, row, col = axes(p)
    local k, v = p:axes("k", "v")
    local Q, P, New = p:input("Q", {b, s, h, k}), p:input("P", {b, s, h, j}), p:input("New", {b, s, h, v})
    local State, G, O = p:input("State", {b, c, h, k, v}), p:input("G", {b, s, h, k}, "f32"), p:output("O", {b, s, h, v})
    p:batch(b, c, h)
    local q, g = p:load("load_q", Q, {b, row, h, k}), p:load("load_g", G, {b, row, h, k})
    local pp = p:load("load_p", P, {b, row, h, j})
    local qg, weights = p:task("scale", function()
      return (q * exp2(g) * k.size ^ -0.5):to "bf16", where(j:index():le(i:index()), pp, 0):to "bf16"
    end)
    local o = p:carry("o", {i, v}, 0)
    o:add(p:mma("mma_qs", qg, p:load("load_state", State)))
    o:add(p:mma("mma_o", weights, p:load("load_new", New, {b, col, h, v})))
    O:store("store_o", o, {b, row, h, v})
  end),
  small = {{b = 1, s = 128, h = 2, k = 64, v = 64}, {b = 2, s = 64, h = 1, k = 40, v = 72}},
  usual = {{b = 1, s = 8192, h = 64, k = 128, v = 128}},
  formula = function(t, n)
    return {O = function(b, s, h, v)
      return sum(0, n.k - 1, function(k)
        return n.k ^ -0.5 * t.Q(b, s, h, k) * 2 ^ t.G(b, s, h, k) * t.State(b, s // 64, h, k, v)
      end) + sum(first(s), s, function(x) return t.P(b, s, h, x % 64) * t.New(b, x, h, v) end)
    end}
  end,
}

return {sums, running, diagonal, solve, values, state, output}
