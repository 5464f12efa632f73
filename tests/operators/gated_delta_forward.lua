-- The kernels of gated delta networks (Yang et al., 2024; Qwen3-Next) as training runs them, one for each step, since the backward
-- pass needs what is between them. Chunks have 64 positions; i and j are two of a chunk, G the running sums of the gate in it:
--
--   sums    G[i] = sum over j <= i of g[j], or over j >= i
--   scores  A[i,j] = beta[i] exp(G[i] - G[j]) (k[i] . k[j]) for j < i
--   values  U = T (beta v), W = T (beta exp(G) k), where T = (I + A)^-1 is given
--   state   new = U - W S, then S = exp(G[last]) S + sum over i of k[i] exp(G[last] - G[i]) new[i], from chunk to chunk
--   output  o[i] = scale (exp(G[i]) q[i] S + sum over j <= i of exp(G[i] - G[j]) (q[i] . k[j]) new[j])
local mr = require "millrace"
local formulas = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua")
local sum, axes = formulas.sum, formulas.chunk_axes
local exp, where = mr.exp, mr.where

-- Running sums as a model has them: they fall in each chunk.
local function falling(_, b, s, h) return -0.03 * (s % 64 + 1) * (1 + h % 3) - 0.01 * (s % 5) end

local function first(x) return x - x % 64 end

local sums = {
  name = "gated_delta_sums",
  program = mr.program("gated_delta_sums", function(p)
    local b, s, h, c, i, _, row = axes(p)
    local G, Sum = p:input("G", {b, s, h}, "f32"), p:output("Sum", p:option("head_first", "boolean") and {b, h, s} or {b, s, h}, "f32")
    p:batch(b, c)
    local g = p:load("load_g", G, {b, row, h})
    local sums = p:task("sums", function()
      local sums = g:cumsum(i)
      return p:option("reverse", "boolean") and g:rowsum(i) - sums + g or sums
    end)
    Sum:store("store_sum", sums, p.head_first and {b, h, row} or {b, row, h})
  end),
  small = {{b = 1, s = 128, h = 3, reverse = true}, {b = 2, s = 64, h = 5, head_first = true}},
  usual = {{b = 1, s = 32768, h = 32, reverse = true}, {b = 1, s = 32768, h = 32, head_first = true}},
  formula = function(t, n)
    local function at(b, s, h)
      return sum(n.reverse and s or first(s), n.reverse and first(s) + 63 or s, function(x) return t.G(b, x, h) end)
    end
    return {Sum = function(b, x, y) if n.head_first then return at(b, y, x) else return at(b, x, y) end end}
  end,
}

local scores = {
  name = "gated_delta_scores",
  program = mr.program("gated_delta_scores", function(p)
    local b, s, h, c, i, j, row, col = axes(p)
    local k = p:axes("k")
    local K, Beta, G = p:input("K", {b, s, h, k}), p:input("Beta", {b, s, h}), p:input("G", {b, s, h}, "f32")
    local A = p:output("A", {b, s, h, j})
    p:batch(b, c, h)
    local ki = p:load("load_k", K, {b, row, h, k})
    local beta, gi, gj = p:load(Beta, {b, row, h}), p:load(G, {b, row, h}), p:load(G, {b, col, h})
    local kb, kj = p:task("rate", function() return (ki * beta):to "bf16", ki:at(i, j) end)
    local kk = p:mma("mma_kk", kb, kj)
    local a = p:task("decay", function()
      return where(j:index():lt(i:index()), kk * exp(mr.min(gi - gj, 0)), 0):to "bf16"
    end)
    A:store("store_a", a, {b, row, h, j})
  end),
  small = {{b = 1, s = 128, h = 2, k = 64}, {b = 2, s = 64, h = 1, k = 40}},
  usual = {{b = 1, s = 32768, h = 32, k = 128}},
  fill = {G = falling},
  formula = function(t, n)
    return {A = function(b, s, h, j)
      local other = first(s) + j
      if other >= s then return 0 end
      local dot = sum(0, n.k - 1, function(k) return t.K(b, s, h, k) * t.K(b, other, h, k) end)
      return t.Beta(b, s, h) * math.exp(t.G(b, s, h) - t.G(b, other, h)) * dot
    end}
  end,
}

local values = {
  name = "gated_delta_values",
  program = mr.program("gated_delta_values", function(p)
    local b, s, h, c, i, j, row, col = axes(p)
    local k, v = p:axes("k", "v")
    local K, V, T = p:input("K", {b, s, h, k}), p:input("V", {b, s, h, v}), p:input("T", {b, s, h, j})
    local Beta, G = p:input("Beta", {b, s, h}), p:input("G", {b, s, h}, "f32")
    local W, U = p:output("W", {b, s, h, k}), p:output("U", {b, s, h, v})
    p:batch(b, c, h)
    local t, beta, g = p:load("load_t", T, {b, row, h, j}), p:load(Beta, {b, col, h}), p:load(G, {b, col, h})
    local kj, vj = p:load("load_k", K, {b, col, h, k}), p:load("load_v", V, {b, col, h, v})
    local kb, vb = p:task("rate", function() return (kj * beta * exp(g)):to "bf16", (vj * beta):to "bf16" end)
    W:store("store_w", p:mma("mma_w", t, kb), {b, row, h, k})
    U:store("store_u", p:mma("mma_u", t, vb), {b, row, h, v})
  end),
  small = {{b = 1, s = 128, h = 2, k = 64, v = 64}, {b = 2, s = 64, h = 1, k = 40, v = 72}},
  usual = {{b = 1, s = 32768, h = 32, k = 128, v = 128}},
  fill = {G = falling},
  formula = function(t)
    local function over(b, s, h, f) return sum(0, 63, function(j) return t.T(b, s, h, j) * f(first(s) + j) end) end
    return {
      W = function(b, s, h, k)
        return over(b, s, h, function(x) return t.Beta(b, x, h) * math.exp(t.G(b, x, h)) * t.K(b, x, h, k) end)
      end,
      U = function(b, s, h, v) return over(b, s, h, function(x) return t.Beta(b, x, h) * t.V(b, x, h, v) end) end,
    }
  end,
}

local state = {
  name = "gated_delta_state",
  program = mr.program("gated_delta_state", function(p)
    local b, s, h, c, i, _, row = axes(p)
    local k, v = p:axes("k", "v")
    local K, W, U = p:input("K", {b, s, h, k}), p:input("W", {b, s, h, k}), p:input("U", {b, s, h, v})
    local G = p:input("G", {b, s, h}, "f32")
    local Init = p:option("init", "boolean") and p:input("Init", {b, h, k, v})
    local Before, New, Final = p:output("Before", {b, c, h, k, v}), p:output("New", {b, s, h, v}), p:output("Final", {b, h, k, v}, "f32")
    p:batch(b, h)
    local state = p:carry("state", {k, v}, 0)
    if Init then
      local init = p:load("load_init", Init)
      p:task("begin", function() state:set(init) end)
    end
    p:loop(c, {batch = true}, function()
      local before = p:task("before", function() return state:to "bf16" end)
      Before:store("store_before", before)
      local u, ki = p:load("load_u", U, {b, row, h, v}), p:load("load_k", K, {b, row, h, k})
      local ws = p:mma("mma_ws", p:load("load_w", W, {b, row, h, k}), before)
      local g, last = p:load("load_g", G, {b, row, h}), p:load("load_last", G, {b, c * i.size + i.size - 1, h})
      local new, kept = p:task("correct", function()
        local new = u - ws
        return new:to "bf16", (new * exp(mr.min(last - g, 0))):to "bf16"
      end)
      New:store("store_new", new, {b, row, h, v})
      p:task("forget", function() state:set(state * exp(last)) end)
      state:add(p:mma("mma_state", ki, kept))
    end)
    Final:store("store_final", state)
  end),
  small = {{b = 1, s = 128, h = 2, k = 64, v = 64}, {b = 2, s = 64, h = 1, k = 64, v = 40, init = true}},
  usual = {{b = 1, s = 4096, h = 32, k = 128, v = 128}, {b = 8, s = 2048, h = 16, k = 128, v = 128, init = true}},
  -- A state that W takes too much from grows without bound, as no model's does.
  fill = {G = falling, W = function(_, _, s, _, k) return ((s * 7 + k * 3) % 11 - 5) / 256 end},
  formula = function(t, n)
    local function states(h, b)                           -- of one head: all states and new values, position by position
      local s, new, before = {}, {}, {}
      for k = 0, n.k - 1 do
        s[k] = {}
        for v = 0, n.v - 1 do s[k][v] = n.init and t.Init(b, h, k, v) or 0 end
      end
      for c = 0, n.s // 64 - 1 do
        local old = {}
        for k = 0, n.k - 1 do old[k] = table.move(s[k], 0, n.v - 1, 0, {}) end
        before[c] = old
        for x = c * 64, c * 64 + 63 do
          new[x] = {}
          for v = 0, n.v - 1 do
            new[x][v] = t.U(b, x, h, v) - sum(0, n.k - 1, function(k) return t.W(b, x, h, k) * old[k][v] end)
          end
        end
        local last = t.G(b, c * 64 + 63, h)
        for k = 0, n.k - 1 do
          local weight = {}
          for x = c * 64, c * 64 + 63 do weight[x] = t.K(b, x, h, k) * math.exp(last - t.G(b, x, h)) end
          for v = 0, n.v - 1 do
            s[k][v] = old[k][v] * math.exp(last) + sum(c * 64, c * 64 + 63, function(x) return weight[x] * new[x][v] end)
          end
        end
      end
      return {before = before, new = new, final = s}
    end
    local made = {}
    local function of(b, h)
      made[b * n.h + h] = made[b * n.h + h] or states(h, b)
      return made[b * n.h + h]
    end
    return {
      Before = function(b, c, h, k, v) return of(b, h).before[c][k][v] end,
      New = function(b, s, h, v) return of(b, h).new[s][v] end,
      Final = function(b, h, k, v) return of(b, h).final[k][v] end,
    }
  end,
}

local output = {
  name = "gated_delta_output",
  program = mr.program("gated_delta_output", function(p)
    local b, s, h, c, i, j, row, col = axes(p)
    local k, v = p:axes("k", "v")
    local Q, K, New = p:input("Q", {b, s, h, k}), p:input("K", {b, s, h, k}), p:input("New", {b, s, h, v})
    local State, G, O = p:input("State", {b, c, h, k, v}), p:input("G", {b, s, h}, "f32"), p:output("O", {b, s, h, v})
    p:batch(b, c, h)
    local q, kj = p:load("load_q", Q, {b, row, h, k}), p:load("load_k", K, {b, col, h, k})
    local gi, gj = p:load(G, {b, row, h}), p:load(G, {b, col, h})
    local qs, qk = p:mma("mma_qs", q, p:load("load_state", State)), p:mma("mma_qk", q, kj)
    local o = p:carry("o", {i, v}, 0)
    local weights = p:task("decay", function()
      o:set(qs * exp(gi))
      return where(j:index():le(i:index()), qk * exp(mr.min(gi - gj, 0)), 0):to "bf16"
    end)
    o:add(p:mma("mma_o", weights, p:load("load_new", New, {b, col, h, v})))
    O:store("store_o", p:task("scale", function() return o * k.size ^ -0.5 end), {b, row, h, v})
  end),
  small = {{b = 1, s = 128, h = 2, k = 64, v = 64}, {b = 2, s = 64, h = 1, k = 40, v = 72}},
  usual = {{b = 1, s = 32768, h = 32, k = 128, v = 128}},
  fill = {G = falling},
  formula = function(t, n)
    return {O = function(b, s, h, v)
      local before = sum(0, n.k - 1, function(k) return t.Q(b, s, h, k) * t.State(b, s // 64, h, k, v) end)
      local inside = sum(first(s), s, function(x)
        local dot = sum(0, n.k - 1, function(k) return t.Q(b, s, h, k) * t.K(b, x, h, k) end)
        return dot * math.exp(t.G(b, s, h) - t.G(b, x, h)) * t.New(b, x, h, v)
      end)
      return n.k ^ -0.5 * (before * math.exp(t.G(b, s, h)) + inside)
    end}
  end,
}

-- Sequences of a batch behind each other: where each begins, and the number of its first chunk.
local function starts(n, x) return x == n.n and n.s or n.s * x // n.n + x * 37 % 23 end

local function chunks(n, x) return sum(1, x, function(y) return (starts(n, y) - starts(n, y - 1) + 63) // 64 end) end

local packed = {
  name = "gated_delta_state_packed",
  program = mr.program("gated_delta_state_packed", function(p)
    local n, s, h, k, v = p:axes("n", "s", "h", "k", "v")
    local chunk, ends = 64, p:axis("ends", n.size + 1)
    local c, i = p:axis("c", (s.size + chunk - 1) // chunk), p:axis("i", chunk)
    local all = p:axis("all", p.chunks)                   -- of all sequences
    local K, W, U = p:input("K", {s, h, k}), p:input("W", {s, h, k}), p:input("U", {s, h, v})
    local G, First, Chunk = p:input("G", {s, h}, "f32"), p:input("First", {ends}, "i32"), p:input("Chunk", {ends}, "i32")
    local Before, New, Final = p:output("Before", {all, h, k, v}), p:output("New", {s, h, v}), p:output("Final", {n, h, k, v}, "f32")
    p:batch(n, h)
    local state = p:carry("state", {k, v}, 0)
    local count = p:load(Chunk, {n + 1}) - p:load(Chunk, {n})
    p:loop(c, {batch = true, length = count, typical = math.max(c.size // n.size, 1)}, function()
      local before = p:task("before", function() return state:to "bf16" end)
      local first, behind, number = p:load(First, {n}), p:load(First, {n + 1}), p:load("load_chunk", Chunk, {n})
      Before:store("store_before", before, {number + c, h, k, v})
      local row = first + c * chunk + i
      local inside, at, last = p:task("rows", function()
        local at = first + (c:index() * chunk + i:index())
        return at:lt(behind), where(at:lt(behind), at, -1), mr.min(first + (c:index() * chunk + chunk - 1), behind - 1)
      end)
      local u, ki = p:load("load_u", U, {row, h, v}), p:load("load_k", K, {row, h, k})
      local ws = p:mma("mma_ws", p:load("load_w", W, {row, h, k}), before)
      local g, glast = p:load("load_g", G, {row, h}), p:load("load_last", G, {last, h})
      local new, kept = p:task("correct", function()
        local new = u - ws
        return new:to "bf16", where(inside, new * exp(mr.min(glast - g, 0)), 0):to "bf16"
      end)
      New:store("store_new", new, {at, h, v})
      p:task("forget", function() state:set(state * exp(glast)) end)
      state:add(p:mma("mma_state", ki, kept))
    end)
    Final:store("store_final", state)
  end),
  small = {{n = 3, s = 170, h = 1, k = 64, v = 64, chunks = 4}, {n = 2, s = 150, h = 2, k = 64, v = 40, chunks = 3}},
  usual = {{n = 8, s = 4096, h = 32, k = 128, v = 128, chunks = 67}},
  fill = {
    First = starts, Chunk = chunks,
    G = function(_, s, h) return -0.03 * (s % 64 + 1) * (1 + h % 3) end,
    W = function(_, s, _, k) return ((s * 7 + k * 3) % 11 - 5) / 256 end,
  },
  formula = function(t, n)
    local made = {}
    local function run(q, h)
      local key = q * n.h + h
      if made[key] then return made[key] end
      local s, new, before, from = {}, {}, {}, starts(n, q)
      for k = 0, n.k - 1 do
        s[k] = {}
        for v = 0, n.v - 1 do s[k][v] = 0 end
      end
      for at = from, starts(n, q + 1) - 1, 64 do
        local old, next, to = s, {}, math.min(at + 63, starts(n, q + 1) - 1)
        before[(at - from) // 64] = old
        for x = at, to do
          new[x] = {}
          for v = 0, n.v - 1 do
            new[x][v] = t.U(x, h, v) - sum(0, n.k - 1, function(k) return t.W(x, h, k) * old[k][v] end)
          end
        end
        local last = t.G(to, h)
        for k = 0, n.k - 1 do
          next[k] = {}
          for v = 0, n.v - 1 do next[k][v] = old[k][v] * math.exp(last) end
          for x = at, to do
            local weight = t.K(x, h, k) * math.exp(math.min(last - t.G(x, h), 0))
            for v = 0, n.v - 1 do next[k][v] = next[k][v] + weight * new[x][v] end
          end
        end
        s = next
      end
      made[key] = {before = before, new = new, final = s}
      return made[key]
    end
    local function sequence(x)
      for q = 0, n.n - 1 do
        if x < starts(n, q + 1) then return q end
      end
    end
    return {
      Before = function(c, h, k, v)
        for q = 0, n.n - 1 do
          if c < chunks(n, q + 1) then return run(q, h).before[c - chunks(n, q)][k][v] end
        end
      end,
      New = function(s, h, v) return run(sequence(s), h).new[s][v] end,
      Final = function(q, h, k, v) return run(q, h).final[k][v] end,
    }
  end,
}

return {sums, scores, values, state, packed, output}
