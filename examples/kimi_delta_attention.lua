-- kimi_delta_attention: the delta rule with a decay of each key dim. For each batch and head, position by position,
--
--   S[x,:] = exp(g[t,x]) S[x,:],   S = S + k[t] (beta[t] (v[t] - k[t] S)),   out[t] = scale q[t] S
--
-- with S over {k, v}, the dims of keys and values (Kimi Linear, 2025). It is computed in chunks, as gated_delta_rule. Here
-- A[i,j] = beta[i] sum over x of k[i,x] exp(G[i,x] - G[j,x]) k[j,x], with the running sums G of g. To be a product, the
-- exponential is divided between both sides: exp(G[i] - R) and exp(R - G[j]), where R is G in the middle of the chunk.
-- So the decay of half a chunk must be within what floats can hold: g is about -2.5 at least, in the mean over half a chunk of 64.
--
-- sizes    b batch, s sequence, h heads, k and v head dims of keys and values
-- options  chunk  (64)
--          init   true: with the state before the first position; else it is zero (false)
--          scale  (1 / sqrt(k))
--          dtype  of q, k, v, out and of what is between the phases ("bf16")
--          decay  dtype of g, beta and of sums and states that are kept in full ("f32"; "f64" if dtype is)
local mr = require "millrace"
local exp2, where, rowsum = mr.exp2, mr.where, mr.rowsum

local LOG2E <const> = 1.4426950408889634

return mr.program("kimi_delta_attention", function(p)
  local b, s, h, dk, dv = p:axes("b", "s", "h", "k", "v")
  local chunk = p:option("chunk", "integer", 64)
  p:check(chunk >= 1, "chunk must be at least 1")
  local c = p:axis("c", (s.size + chunk - 1) // chunk)
  local i, j = p:axis("i", chunk), p:axis("j", chunk)     -- positions of a chunk
  local t, col = p:axis("t", chunk), p:axis("col", chunk)
  local l, m, n = p:axis("l", chunk), p:axis("m", chunk), p:axis("n", chunk)
  local part = chunk % 4 == 0 and chunk // 4 or chunk
  local block = p:axis("block", chunk // part)            -- of the diagonal, with rows bi or br and columns bj
  local bi, bj, br = p:axis("bi", part), p:axis("bj", part), p:axis("br", part)
  local head, x = p:axis("head", h.size), p:axis("x", dk.size)    -- h and k, of which a tile has a part
  local ds = p:axis("vs", dv.size)                        -- v, of which a tile of the state has fewer
  local dtype = p.dtype or "bf16"
  local decay = p.decay or (dtype == "f64" and "f64" or "f32")
  local scale = p:option("scale", "number", 1 / math.sqrt(dk.size))
  local function pos(x) return c * chunk + x end

  local Q, K, V = p:input("q", {b, s, h, dk}), p:input("k", {b, s, h, dk}), p:input("v", {b, s, h, dv})
  local G, Beta = p:input("g", {b, s, h, dk}, decay), p:input("beta", {b, s, h}, decay)
  local Init = p:option("init", "boolean") and p:input("init", {b, h, dk, dv}, decay)
  local Out, Final = p:output("out", {b, s, h, dv}), p:output("final", {b, h, dk, dv}, decay)
  -- A sum along the positions has these in the columns of its tile; so they are contiguous in what is made of it.
  local function keys(name) return p:temp(name, {b, c, h, dk, i}) end
  local QFromMid, QFromStart = keys "q_from_mid", keys "q_from_start"             -- q times exp(G - R), exp(G)
  local KFromMid, KFromStart = keys "k_from_mid", keys "k_from_start"
  local KToMid, KToEnd = keys "k_to_mid", keys "k_to_end"                         -- k times exp(R - G), exp(G of the end - G)
  local Kept, Rate = p:temp("kept", {b, c, h, dk}, decay), p:temp("rate", {b, c, h, i}, decay)
  local At, D = p:temp("At", {b, c, h, col, i}), p:temp("D", {b, c, h, i, j})
  local M, First = p:temp("M", {b, c, h, i, l}), p:temp("First", {b, c, h, i, j})
  local U, W = p:temp("U", {b, c, h, i, dv}), p:temp("W", {b, c, h, i, dk})
  local New, State = p:temp("new", {b, c, h, i, dv}), p:temp("state", {b, c, h, dk, dv})

  p:phase("gates", function()
    p:batch(b, c, h)
    local function load(name, tensor) return p:load(name, tensor, {b, pos(t), h, x}) end
    local g, q, k, beta = load("load_g", G), load("load_q", Q), load("load_k", K), p:load("load_beta", Beta, {b, pos(t), h})
    local made = {p:task("gates", function()
      local g = g * LOG2E
      local sum, mid, last = mr.cumsum(g, t), rowsum(where(t:index():le(chunk // 2), g, 0), t), rowsum(g, t)
      local from_mid, from_start, to_mid = exp2(sum - mid), exp2(sum), exp2(mid - sum)
      return (q * from_mid):to(dtype), (q * from_start):to(dtype), (k * from_mid):to(dtype), (k * from_start):to(dtype),
        (k * to_mid):to(dtype), (k * exp2(last - sum)):to(dtype), exp2(last):to(decay)
    end)}
    for n, tensor in ipairs{QFromMid, QFromStart, KFromMid, KFromStart, KToMid, KToEnd} do
      tensor:store("store_keys" .. n, made[n], {b, c, h, x, t})
    end
    Kept:store("store_kept", made[7], {b, c, h, x})
    Rate:store("store_rate", beta, {b, c, h, t})
  end)

  p:phase("scores", function()
    p:batch(b, c, h)
    local kc, ki = p:load("load_kc", KToMid, {b, c, h, dk, col}), p:load("load_ki", KFromMid)
    local beta, kk = p:load("load_rate", Rate), p:mma("mma_kk", kc, ki)           -- {col, i}
    D:store("store_zeros", p:task("zeros", function() return (kk * 0):to(dtype) end), {b, c, h, col, i})
    At:store("store_at", p:task("scores", function()
      return where(col:index():lt(i:index()), kk * beta, 0):to(dtype)
    end), {b, c, h, col, i})
  end)

  p:phase("diagonal", function()
    p:batch(b, c, block)
    local rows = p:carry("rows", {head, bi, bj}, 0)
    p:task("identity", function()
      rows:set(where(bi:index():eq(bj:index()), 1, 0) + (head:index() * 0):to "f32")
    end)
    p:loop(br, {batch = true}, function()
      local a = p:load("load_ab", At, {b, c, head, block * part + br, block * part + bi})
      p:task("substitute", function()
        local row = rowsum(where(bi:index():eq(br:index()), rows, 0), bi)        -- {head, bj}
        rows:set(rows - a * row)
      end)
    end)
    local d = p:task("round_d", function() return rows:to(dtype) end)
    D:store("store_d", d, {b, c, head, block * part + bi, block * part + bj})
  end)

  p:phase("join", function()
    p:batch(b, c, h)
    local a = p:load("load_a", At, {b, c, h, l, n})
    local below = p:task("below", function()
      return where((n:index() // part):gt(l:index() // part), a, 0):to(dtype)
    end)
    local product = p:mma("mma_m", p:load("load_dn", D, {b, c, h, i, n}), below)     -- {i, l}
    local m = p:task("round_m", function() return product:to(dtype) end)
    M:store("store_m", m)
    local md, d = p:mma("mma_md", m, p:load("load_dl", D, {b, c, h, l, j})), p:load("load_d", D)
    First:store("store_first", p:task("first", function() return (d - md):to(dtype) end))
  end)

  p:phase("values", function()
    p:batch(b, c, h)
    local mx = p:mma("mma_mf", p:load("load_m", M, {b, c, h, l, m}), p:load("load_fm", First, {b, c, h, m, j}))
    local more = p:task("round_mf", function() return mx:to(dtype) end)               -- {l, j}
    local mm, first = p:mma("mma_mm", p:load("load_ml", M), more), p:load("load_f", First)
    local beta = p:load("load_bj", Rate, {b, c, h, j})
    local tb = p:task("scale_t", function() return ((first + mm) * beta):to(dtype) end)
    local u = p:mma("mma_u", tb, p:load("load_v", V, {b, pos(j), h, dv}))
    local w = p:mma("mma_w", tb, p:load("load_ks", KFromStart, {b, c, h, dk, j}))
    U:store("store_u", p:task("round_u", function() return u:to(dtype) end))
    W:store("store_w", p:task("round_w", function() return w:to(dtype) end))
  end)

  p:phase("state", function()
    p:batch(b, h)
    local state = p:carry("S", {dk, ds}, 0)
    if Init then
      local init = p:load("load_init", Init, {b, h, dk, ds})
      p:task("begin", function() state:set(init) end)
    end
    p:loop(c, {batch = true}, function()
      local before = p:task("before", function() return state:to(dtype) end)
      State:store("store_state", before, {b, c, h, dk, ds})
      local u, kept = p:load("load_u", U, {b, c, h, i, ds}), p:load("load_kept", Kept)
      local ws = p:mma("mma_ws", p:load("load_w", W), before)
      local new = p:task("correct", function() return (u - ws):to(dtype) end)
      New:store("store_new", new, {b, c, h, i, ds})
      p:task("forget", function() state:set(state * kept) end)
      state:add(p:mma("mma_s", p:load("load_ke", KToEnd), new))
    end)
    Final:store("store_final", p:task("after", function() return state:to(decay) end), {b, h, dk, ds})
  end)

  p:phase("output", function()
    p:batch(b, c, h)
    local out = p:carry("o", {i, dv}, 0)
    out:add(p:mma("mma_qs", p:load("load_qs", QFromStart), p:load("load_state", State)))
    local qk = p:mma("mma_qk", p:load("load_qm", QFromMid), p:load("load_km", KToMid, {b, c, h, dk, j}))
    local weights = p:task("weights", function() return where(j:index():le(i:index()), qk, 0):to(dtype) end)
    out:add(p:mma("mma_o", weights, p:load("load_new", New, {b, c, h, j, dv})))
    Out:store("store_out", p:task("finish", function() return (out * scale):to(dtype) end), {b, pos(i), h, dv})
  end)
end)
