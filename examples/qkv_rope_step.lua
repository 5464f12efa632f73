-- qkv_rope_step: the queries, keys and values of one token of each of b sequences, in one kernel: a row X[b,:], normalised
-- (RMSNorm), is multiplied by the weights of all heads, queries and keys are rotated (RoPE; Su et al., "RoFormer", 2021), and
-- the new key and value are written to the caches, which keep all else that they have:
--   y[h,:] = r sum over k of X[b,k] W[h,:,k], where r = 1 / sqrt(mean over k of X[b,k]^2 + eps),
-- for the hq heads of queries, then the hkv of keys, then the hkv of values. Elements i and i + d/2 of a head are a pair, as in
-- LLAMA's weights of Hugging Face: (x, z) becomes (x cos - z sin, z cos + x sin), of queries and keys. Pos[b] is the token's
-- position: K[b,:,Pos[b],:] and V[b,:,Pos[b],:] are stored, and nothing if it is outside of the cache. Of caches in pages it is
-- slot Pos[b] % page of the page that Table[b, Pos[b] // page] names.
--
-- A head is in one of Q, K and V: it is stored to all three, at indices that are outside of two of them, where nothing is stored.
-- Gains of the norm are part of W.
--
-- sizes    b sequences, k, hq and hkv heads
-- options  d      of a head, even (128)
--          nmax   keys of a sequence at most (8192)
--          page   keys of a page, a power of two that divides nmax: K and V are {pages, page, hkv, d} (no pages)
--          pages  in the caches (as many as all sequences take at most)
--          eps    (1e-6)
--          sums   a number: the squares of a row are the sum over S[b,:], so many numbers (no S)
--          dtype  of X, W, Q, K and V ("bf16")
--          table  of Cos and Sin, the rows of the tokens' positions ("f32")
local mr = require "millrace"

return mr.program("qkv_rope_step", function(p)
  local b, k, hq, hkv = p:axes("b", "k", "hq", "hkv")
  local d, eps = p:option("d", "integer", 128), p:option("eps", "number", 1e-6)
  local sums = p:option("sums", "integer")
  p:check(d >= 2 and d % 2 == 0, "d must be even")
  p:check(eps >= 0, "eps must be at least 0")
  p:check(not sums or sums >= 1, "sums must be at least 1")
  local dtype, table = p.dtype or "bf16", p.table or "f32"
  local keys, values = hq.size, hq.size + hkv.size      -- the first heads of each
  local h, two, half = p:axis("h", values + hkv.size), p:axis("two", 2), p:axis("half", d // 2)
  local nmax, page = p:axis("nmax", p:option("nmax", "integer", 8192)), p:option("page", "integer")
  p:check(not page or page >= 1 and page & page - 1 == 0 and nmax.size % page == 0, "page must be a power of two that divides nmax")
  local X, W = p:input("X", {b, k}, dtype), p:input("W", {h, two, half, k}, dtype)
  local Cos, Sin = p:input("Cos", {b, half}, table), p:input("Sin", {b, half}, table)
  local Pos, Q = p:input("Pos", {b}, "i32"), p:output("Q", {b, hq, two, half}, dtype)
  local dims, Table = {b, hkv, nmax, two, half}, nil
  if page then
    local pages = p:axis("pages", p:option("pages", "integer", b.size * nmax.size // page))
    dims = {pages, p:axis("page", page), hkv, two, half}
    Table = p:input("Table", {b, p:axis("blocks", nmax.size // page)}, "i32")
  end
  local K, V = p:output("K", dims, dtype), p:output("V", dims, dtype)

  local part = sums and p:axis("part", sums)
  local S = sums and p:input("S", {b, part}, "f32")

  local y, square = p:carry("y", {b, h, two, half}, 0), not sums and p:carry("square", {b}, 0)
  p:loop(k, function()
    local x, w = p:load("load_x", X), p:load("load_w", W)
    if square then p:task("squares", function() square:add(mr.rowsum(x * x, k)) end) end
    y:add(p:mma("mma", x, w))
  end)
  local cos, sin, pos = p:load("load_cos", Cos), p:load("load_sin", Sin), p:load("load_pos", Pos)
  local s = S and p:load("load_s", S)
  local out = p:task("rotate", function()
    local x = y * mr.rsqrt((s and mr.rowsum(s, part) or square) / k.size + eps)
    local turned = h:index():lt(values)
    local other = x:at(two, two ~ 1) * mr.where(two:index():eq(0), -sin, sin)
    return (x * mr.where(turned, cos, 1) + mr.where(turned, other, 0)):to(dtype)
  end)
  local at = Table and p:load("load_table", Table, {b, pos // page})
  local slot = Table and pos % page
  local function row(first) return Table and {at, slot, h - first, two, half} or {b, h - first, pos, two, half} end
  Q:store("store_q", out, {b, h, two, half})
  K:store("store_k", out, row(keys))
  V:store("store_v", out, row(values))
end)
