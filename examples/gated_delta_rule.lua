-- gated_delta_rule: attention that is linear in the sequence, with a state that forgets and corrects itself. For each
-- batch and head, position by position,
--
--   S = exp(g[t]) S,   S = S + k[t] (beta[t] (v[t] - k[t] S)),   out[t] = scale q[t] S
--
-- with S over {k, v}, the dims of keys and values (Yang et al., "Gated Delta Networks", 2024). It is computed in chunks.
-- In a chunk, let G be the running sums of g, and A[i,j] = beta[i] exp(G[i] - G[j]) (k[i] . k[j]) for j < i. Then
-- with T = (I + A)^-1 the corrections of all positions are V = T (beta v) - T (beta exp(G) k) S at once. T is found in
-- blocks of a quarter of the chunk: with D, the inverses of the diagonal blocks of I + A, and M, which is D times the
-- blocks of A below them, T = (I + M)^-1 D = (I + M^2) (I - M) D, as M^4 is zero. The phases:
--
--   decay     G, and beta, by head
--   values    for each chunk A; D, by forward substitution: a row after the other is taken from all rows of its block
--             below it; M, (I - M) D and T; and with it U = T (beta v) and W = T (beta exp(G) k)
--   output    from chunk to chunk: V = U - W S, the state S behind the chunk, and, of the state before it,
--             scale (exp(G) q S + (q k^T exp(G[i] - G[j]), for j <= i) V)
--
-- Products contract axes by name, so a matrix that is an operand of several has several names: i or l or n for the rows of
-- D, which x:at(i, l) changes.
--
-- sizes    b batch, s sequence, h heads, k and v head dims of keys and values
-- options  hk     heads of q and k; must divide h (h)
--          chunk  (64)
--          init   true: with the state before the first position; else it is zero (false)
--          scale  (1 / sqrt(k))
--          dtype  of q, k, v, out and of what is between the phases ("bf16")
--          decay  dtype of g, beta and of sums and states that are kept in full ("f32"; "f64" if dtype is)
local mr = require "millrace"
local exp2, where = mr.exp2, mr.where

local LOG2E <const> = 1.4426950408889634

return mr.program("gated_delta_rule", function(p)
  local b, s, h, dk, dv = p:axes("b", "s", "h", "k", "v")
  local chunk = p:option("chunk", "integer", 64)
  p:check(chunk >= 1, "chunk must be at least 1")
  local hk, c = p:axis("hk", p.hk or h.size), p:axis("c", (s.size + chunk - 1) // chunk)
  p:check(h.size % hk.size == 0, "hk must divide h")
  local i, j = p:axis("i", chunk), p:axis("j", chunk)     -- positions of a chunk
  local t, col = p:axis("t", chunk), p:axis("col", chunk)
  local l, n = p:axis("l", chunk), p:axis("n", chunk)
  local part = chunk % 4 == 0 and chunk // 4 or chunk
  local block = p:axis("block", chunk // part)            -- of the diagonal, with rows bi or br and columns bj
  local bi, bj, br = p:axis("bi", part), p:axis("bj", part), p:axis("br", part)
  local head = p:axis("head", h.size)                     -- h, of which a tile has several
  local ds = p:axis("vs", dv.size)                        -- v, of which a tile of the state has fewer
  local dtype = p.dtype or "bf16"
  local decay = p.decay or (dtype == "f64" and "f64" or "f32")
  local scale = p:option("scale", "number", 1 / math.sqrt(dk.size))
  local function pos(x) return c * chunk + x end
  local key_head = h // (h.size // hk.size)

  local Q, K = p:input("q", {b, s, hk, dk}), p:input("k", {b, s, hk, dk})
  local V, G, Beta = p:input("v", {b, s, h, dv}), p:input("g", {b, s, h}, decay), p:input("beta", {b, s, h}, decay)
  local Init = p:option("init", "boolean") and p:input("init", {b, h, dk, dv}, decay)
  local Out, Final = p:output("out", {b, s, h, dv}), p:output("final", {b, h, dk, dv}, decay)
  local Sum, Rate = p:temp("sum", {b, c, h, i}, decay), p:temp("rate", {b, c, h, i}, decay)
  local U, W = p:temp("U", {b, c, h, i, dv}), p:temp("W", {b, c, h, i, dk})

  p:phase("decay", function()
    p:batch(b, c)
    local g, beta = p:load("load_g", G, {b, pos(t), head}), p:load("load_beta", Beta, {b, pos(t), head})
    Sum:store("store_sum", p:task("sums", function() return mr.cumsum(g * LOG2E, t):to(decay) end), {b, c, head, t})
    Rate:store("store_rate", beta, {b, c, head, t})
  end)

  p:phase("values", function()
    p:batch(b, c, h)
    local ki, kc = p:load("load_ki", K, {b, pos(i), key_head, dk}), p:load("load_kc", K, {b, pos(col), key_head, dk})
    local si, sc = p:load("load_si", Sum), p:load("load_sc", Sum, {b, c, h, col})
    local rate, rate_c = p:load("load_rate", Rate), p:load("load_rate_c", Rate, {b, c, h, col})
    local kk = p:mma("mma_kk", ki, kc)                    -- {i, col}
    local a, below = p:task("scores", function()
      local a = where(col:index():lt(i:index()), kk * exp2(mr.min(si - sc, 0)) * rate, 0):to(dtype)
      return a, where((i:index() // part):gt(col:index() // part), a, 0):to(dtype):at(col, l):at(i, n)
    end)
    local rows = p:carry("rows", {block, bi, bj}, 0)
    p:task("identity", function()
      rows:set(where(bi:index():eq(bj:index()), 1, 0) + (block:index() * 0):to "f32")
    end)
    p:loop(br, {batch = true}, function()
      p:task("substitute", function()
        local row = mr.rowsum(where(bi:index():eq(br:index()), rows, 0), bi)           -- {block, bj}
        rows:set(rows - a:at(col, block * part + br):at(i, block * part + bi) * row)
      end)
    end)
    local d, dn, dl = p:task("round_d", function()
      local d = rows:at(block, i // part):at(bi, i % part):at(bj, col % part)
      local d = where((i:index() // part):eq(col:index() // part), d, 0):to(dtype)
      return d, d:at(col, n), d:at(i, l)
    end)
    local product = p:mma("mma_m", dn, below)             -- {i, l}
    local m = p:task("round_m", function() return product:to(dtype) end)
    local md = p:mma("mma_md", m, dl)                     -- {i, col}, as all that follow
    local first, fl = p:task("first", function()
      local first = (d - md):to(dtype)
      return first, first:at(i, l)
    end)
    local mf = p:mma("mma_mf", m, fl)
    local mm = p:mma("mma_mm", m, p:task("round_mf", function() return mf:to(dtype):at(i, l) end))
    local tv, tk = p:task("scale_t", function()
      local tv = (first + mm) * rate_c
      return tv:to(dtype), (tv * exp2(sc)):to(dtype)
    end)
    local u, w = p:mma("mma_u", tv, p:load("load_v", V, {b, pos(col), h, dv})), p:mma("mma_w", tk, kc)
    U:store("store_u", p:task("round_u", function() return u:to(dtype) end))
    W:store("store_w", p:task("round_w", function() return w:to(dtype) end))
  end)

  p:phase("output", function()
    p:batch(b, h)
    local state = p:carry("S", {dk, ds}, 0)
    if Init then
      local init = p:load("load_init", Init, {b, h, dk, ds})
      p:task("begin", function() state:set(init) end)
    end
    p:loop(c, {batch = true}, function()
      local before = p:task("before", function() return state:to(dtype) end)
      local sum, last = p:load("load_sum", Sum), p:load("load_last", Sum, {b, c, h, chunk - 1})
      local u, ws = p:load("load_u", U, {b, c, h, i, ds}), p:mma("mma_ws", p:load("load_w", W), before)
      local new, decayed = p:task("correct", function()
        local new = u - ws
        return new:to(dtype):at(i, j), (new * exp2(last - sum)):to(dtype):at(i, j)
      end)
      p:task("forget", function() state:set(state * exp2(last)) end)
      local k = p:load("load_kj", K, {b, pos(j), key_head, dk})
      state:add(p:mma("mma_s", k, decayed))

      local q, sumj = p:load("load_q", Q, {b, pos(i), key_head, dk}), p:load("load_sumj", Sum, {b, c, h, j})
      local out = p:carry("o", {i, ds}, 0)
      out:add(p:mma("mma_qs", q, before))
      p:task("scale_o", function() out:set(out * exp2(sum)) end)
      local qk = p:mma("mma_qk", q, k)
      local weights = p:task("weights", function()
        return where(j:index():le(i:index()), qk * exp2(mr.min(sum - sumj, 0)), 0):to(dtype)
      end)
      out:add(p:mma("mma_o", weights, new))
      Out:store("store_out", p:task("finish", function() return (out * scale):to(dtype) end), {b, pos(i), h, ds})
    end)
    Final:store("store_final", p:task("after", function() return state:to(decay) end), {b, h, dk, ds})
  end)
end)
