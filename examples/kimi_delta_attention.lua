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
  local l, n = p:axis("l", chunk), p:axis("n", chunk)
  local part = chunk % 4 == 0 and chunk // 4 or chunk
  local block = p:axis("block", chunk // part)            -- of the diagonal, with rows bi or br and columns bj
  local bi, bj, br = p:axis("bi", part), p:axis("bj", part), p:axis("br", part)
  local x = p:axis("x", dk.size)                          -- k, of which a tile has a part
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
  local U, W = p:temp("U", {b, c, h, i, dv}), p:temp("W", {b, c, h, i, dk})

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

  p:phase("values", function()
    p:batch(b, c, h)
    local ki, kc = p:load("load_ki", KFromMid), p:load("load_kc", KToMid, {b, c, h, dk, col})
    local rate, rate_c = p:load("load_rate", Rate), p:load("load_rate_c", Rate, {b, c, h, col})
    local kk = p:mma("mma_kk", ki, kc)                    -- {i, col}
    local a, below = p:task("scores", function()
      local a = where(col:index():lt(i:index()), kk * rate, 0):to(dtype)
      return a, where((i:index() // part):gt(col:index() // part), a, 0):to(dtype):at(col, l):at(i, n)
    end)
    local rows = p:carry("rows", {block, bi, bj}, 0)
    p:task("identity", function()
      rows:set(where(bi:index():eq(bj:index()), 1, 0) + (block:index() * 0):to "f32")
    end)
    p:loop(br, {batch = true}, function()
      p:task("substitute", function()
        local row = rowsum(where(bi:index():eq(br:index()), rows, 0), bi)           -- {block, bj}
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
    local tb = p:task("scale_t", function() return ((first + mm) * rate_c):to(dtype) end)
    local u = p:mma("mma_u", tb, p:load("load_v", V, {b, pos(col), h, dv}))
    local w = p:mma("mma_w", tb, p:load("load_ks", KFromStart, {b, c, h, dk, col}))
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
      local u, kept = p:load("load_u", U, {b, c, h, i, ds}), p:load("load_kept", Kept)
      local ws = p:mma("mma_ws", p:load("load_w", W), before)
      local new = p:task("correct", function() return (u - ws):to(dtype):at(i, j) end)
      p:task("forget", function() state:set(state * kept) end)
      state:add(p:mma("mma_s", p:load("load_ke", KToEnd, {b, c, h, dk, j}), new))

      local out = p:carry("o", {i, ds}, 0)
      out:add(p:mma("mma_qs", p:load("load_qs", QFromStart), before))
      local qk = p:mma("mma_qk", p:load("load_qm", QFromMid), p:load("load_km", KToMid, {b, c, h, dk, j}))
      local weights = p:task("weights", function() return where(j:index():le(i:index()), qk, 0):to(dtype) end)
      out:add(p:mma("mma_o", weights, new))
      Out:store("store_out", p:task("finish", function() return (out * scale):to(dtype) end), {b, pos(i), h, ds})
    end)
    Final:store("store_final", p:task("after", function() return state:to(decay) end), {b, h, dk, ds})
  end)
end)
