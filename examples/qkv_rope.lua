-- qkv_rope: queries, keys and values of attention from rows that are normalised first (RMSNorm), with rotary positions
-- (RoPE; Su et al., "RoFormer", 2021), in one kernel: of a row x[m,:] with norm r = 1 / sqrt(mean of x^2 + eps)
--   y[h,:] = r sum over k of x[k] W[h,:,k]     for the hq heads of queries, then the hkv of keys, then the hkv of values,
-- of which those of queries and keys are rotated by angles that a table has: elements i and i + d/2 of a head are a pair, as
-- in LLAMA's weights of Hugging Face: (a, b) becomes (a cos - b sin, b cos + a sin).
--
-- The two halves of a head are two sums, so that each thread has both elements of a pair. A head is in one of Q, K and V: each
-- half is stored to all three, at indices that are outside of two of them, where nothing is stored.
-- The gains of the norm are part of W.
--
-- sizes    b batch, m rows of each, k, hq and hkv heads, d their dimension
-- options  nmax   rows that K and V have for each head, at least m, as caches do (m): the first m are stored
--          sums   X's sums of squares are an input S[b, m, sums], parts of the sum of each row, as gemm{squares=} and
--                 row_squares make them (none: this kernel adds them up)
--          eps    (1e-6)
--          dtype  of X, W, Q, K and V ("bf16")
--          table  of Cos and Sin ("f32")
local mr = require "millrace"

return mr.program("qkv_rope", function(p)
  local b, m, k, hq, hkv = p:axes("b", "m", "k", "hq", "hkv")
  local d, eps = p:option("d", "integer", 128), p:option("eps", "number", 1e-6)
  local rows = p:option("nmax", "integer", m.size)
  p:check(d >= 2 and d % 2 == 0, "d must be even")
  p:check(rows >= m.size, "nmax must be at least m")
  p:check(eps >= 0, "eps must be at least 0")
  local dtype, table = p.dtype or "bf16", p.table or "f32"
  local keys, values = hq.size, hq.size + hkv.size      -- the first heads of each
  local h, two, half, nmax = p:axis("h", values + hkv.size), p:axis("two", 2), p:axis("half", d // 2), p:axis("nmax", rows)
  local X, W = p:input("X", {b, m, k}, dtype), p:input("W", {h, two, half, k}, dtype)
  local Cos, Sin = p:input("Cos", {m, half}, table), p:input("Sin", {m, half}, table)
  local sums = p:option("sums", "integer")
  p:check(not sums or sums >= 1, "sums must be at least 1")
  local part = sums and p:axis("part", sums)
  local S = part and p:input("S", {b, m, part}, "f32")
  local Q = p:output("Q", {b, hq, m, two, half}, dtype)
  local K, V = p:output("K", {b, hkv, nmax, two, half}, dtype), p:output("V", {b, hkv, nmax, two, half}, dtype)
  p:batch(b)

  local y0, y1 = p:carry("y0", {m, h, half}, 0), p:carry("y1", {m, h, half}, 0)
  local square = S and p:load("load_s", S) or p:carry("square", {m}, 0)
  p:loop(k, function()
    local x = p:load("load_x", X)
    local w0, w1 = p:load("load_w0", W, {h, 0, half, k}), p:load("load_w1", W, {h, 1, half, k})
    if not S then p:task("squares", function() square:add(mr.rowsum(x * x, k)) end) end
    y0:add(p:mma("mma0", x, w0))
    y1:add(p:mma("mma1", x, w1))
  end)
  local cos, sin = p:load("load_cos", Cos), p:load("load_sin", Sin)
  local norm = p:task("norm", function()
    return mr.rsqrt((S and mr.rowsum(square, part) or square) / k.size + eps)
  end)
  -- One value after the other, so that the registers of each are free for the next.
  local first = p:task("rotate0", function() return ((y0 * cos - y1 * sin) * norm):to(dtype) end)
  Q:store("store_q0", first, {b, h, m, 0, half})
  K:store("store_k0", first, {b, h - keys, m, 0, half})
  local second = p:task("rotate1", function() return ((y1 * cos + y0 * sin) * norm):to(dtype) end)
  Q:store("store_q1", second, {b, h, m, 1, half})
  K:store("store_k1", second, {b, h - keys, m, 1, half})
  V:store("store_v0", p:task("value0", function() return (y0 * norm):to(dtype) end), {b, h - values, m, 0, half})
  V:store("store_v1", p:task("value1", function() return (y1 * norm):to(dtype) end), {b, h - values, m, 1, half})
end)
