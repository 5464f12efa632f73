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
  local t, r, col = p:axis("t", chunk), p:axis("r", chunk), p:axis("col", chunk)
  local head, x = p:axis("head", h.size), p:axis("x", dk.size)    -- h and k, of which a tile has a part
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
  local At, T = p:temp("At", {b, c, h, r, i}, decay), p:temp("T", {b, c, h, i, j})
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
    At:store("store_at", p:task("scores", function()
      return where(col:index():lt(i:index()), kk * beta, 0):to(decay)
    end), {b, c, h, col, i})
  end)

  p:phase("inverse", function()
    p:batch(b, c)
    local rows = p:carry("rows", {head, i, j}, 0)
    p:task("identity", function() rows:set(where(i:index():eq(j:index()), 1, 0) + (head:index() * 0):to "f32") end)
    p:loop(r, {batch = true}, function()
      local a = p:load("load_at", At, {b, c, head, r, i})
      p:task("substitute", function()
        local row = rowsum(where(i:index():eq(r:index()), rows, 0), i)            -- {head, j}
        rows:set(rows - a * row)
      end)
    end)
    T:store("store_t", p:task("round_t", function() return rows:to(dtype) end), {b, c, head, i, j})
  end)

  p:phase("values", function()
    p:batch(b, c, h)
    local rows, beta = p:load("load_t", T), p:load("load_bj", Rate, {b, c, h, j})
    local tb = p:task("scale_t", function() return (rows * beta):to(dtype) end)
    local u = p:mma("mma_u", tb, p:load("load_v", V, {b, pos(j), h, dv}))
    local w = p:mma("mma_w", tb, p:load("load_ks", KFromStart, {b, c, h, dk, j}))
    U:store("store_u", p:task("round_u", function() return u:to(dtype) end))
    W:store("store_w", p:task("round_w", function() return w:to(dtype) end))
  end)

  p:phase("state", function()
    p:batch(b, h)
    local state = p:carry("S", {dk, dv}, 0)
    if Init then
      local init = p:load("load_init", Init)
      p:task("begin", function() state:set(init) end)
    end
    p:loop(c, {batch = true}, function()
      local before = p:task("before", function() return state:to(dtype) end)
      State:store("store_state", before)
      local u, kept = p:load("load_u", U), p:load("load_kept", Kept)
      local ws = p:mma("mma_ws", p:load("load_w", W), before)
      local new = p:task("correct", function() return (u - ws):to(dtype) end)
      New:store("store_new", new)
      p:task("forget", function() state:set(state * kept) end)
      state:add(p:mma("mma_s", p:load("load_ke", KToEnd), new))
    end)
    Final:store("store_final", p:task("after", function() return state:to(decay) end))
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
