-- llama3_decode: a decoder layer of LLAMA 3 for the next token of each of b sequences, as five kernels one after the other.
--
--   qkv     queries, keys and values of x, normalised and rotated; the new keys and values go into the caches
--   attend  attention of each query over the keys 0 to pos[b] of its sequence, in parts, which a second phase combines
--   out     y1 = x + the product with wo
--   gate    silu(gate) * up, of y1 normalised
--   down    y = y1 + the product with wd
--
-- The squares of a row, which normalise it, either are added up by each kernel that multiplies the row, or by the kernel that stores it,
-- for each 32 columns, which pays if there are many rows.
--
-- Gains of the norms are part of wqkv, and of wg and wu. wqkv has the rows of queries, then of keys, then of values. cos and
-- sin are the rows of the positions pos. Weights are inputs that no kernel writes, so that each kernel may load them before the
-- one in front of it has ended.
--
-- sizes    b sequences
-- options  nmax             keys that the caches have (8192)
--          page             keys of a page, a power of two that divides nmax: the caches are {pages, page, hkv, hd}, and
--                           table {b, nmax / page} names the pages of a sequence (no pages)
--          pages            in the caches (as many as all sequences take at most)
--          typical          keys of a sequence that predictions assume (nmax)
--          squares          who adds up squares: "load", or "store": out, for gate (more than 8 sequences), or "layers": also
--                           down, as ys, for the next layer, whose x then comes with such sums, xs
--          splits           parts of the keys, see flash_decoding
--          d, f             the model's dimension, that of its feed-forward layer (4096, 14336)
--          eps              of the norms (1e-5)
--          hq, hkv, hd      heads of queries, of keys, and their dimension (32, 8, 128)
local mr = require "millrace"
local ex = mr.examples

local BLOCK <const> = 32                                -- columns of y1 whose squares are added up

return mr.sequence("llama3_decode", function(s)
  local b, nmax = s:sizes("b"), s:option("nmax", "integer", 8192)
  local d, f = s:option("d", "integer", 4096), s:option("f", "integer", 14336)
  local hq, hkv, hd = s:option("hq", "integer", 32), s:option("hkv", "integer", 8), s:option("hd", "integer", 128)
  local typical, splits = s:option("typical", "integer"), s:option("splits", "integer")
  local who = s:option("squares", "string", b > 8 and "store" or "load")
  s:check(who == "load" or who == "store" or who == "layers", 'squares must be "load", "store" or "layers"')
  s:check(who == "load" or d % BLOCK == 0, "d must be a multiple of 32")
  local sums = d // BLOCK
  local inner, chained = who ~= "load", who == "layers"

  local x, pos = s:input("x", {b, d}), s:input("pos", {b}, "i32")
  local cos, sin = s:input("cos", {b, hd // 2}, "f32"), s:input("sin", {b, hd // 2}, "f32")
  local wqkv, wo = s:input("wqkv", {(hq + 2 * hkv) * hd, d}), s:input("wo", {d, hq * hd})
  local wg, wu, wd = s:input("wg", {f, d}), s:input("wu", {f, d}), s:input("wd", {d, f})
  local page, eps = s:option("page", "integer"), s:option("eps", "number", 1e-5)
  s:check(not page or page >= 1 and nmax % page == 0, "page must divide nmax")
  local pages = page and s:option("pages", "integer", b * nmax // page) or nil
  local dims = page and {pages, page, hkv, hd} or {b, hkv, nmax, hd}
  local k, v, table = s:state("k", dims), s:state("v", dims), page and s:input("table", {b, nmax // page}, "i32") or nil
  local q, a, h = s:temp("q", {b, hq * hd}), s:temp("a", {b, hq * hd}), s:temp("h", {b, f})
  local y1, y = s:temp("y1", {b, d}), s:output("y", {b, d})
  local xs, ys = chained and s:input("xs", {b, sums}, "f32") or nil, chained and s:output("ys", {b, sums}, "f32") or nil
  local y1s = inner and s:temp("y1s", {b, sums}, "f32") or nil

  s:call("qkv", ex.qkv_rope_step{b=b, k=d, hq=hq, hkv=hkv, d=hd, nmax=nmax, page=page, pages=pages, eps=eps, sums=chained and sums or nil},
    {X=x, S=xs, W=wqkv, Cos=cos, Sin=sin, Pos=pos, Table=table, Q=q, K=k, V=v})
  s:call("attend", ex[page and "paged_decoding" or "flash_decoding"]{b=b, h=hq, n=nmax, d=hd, hkv=hkv, page=page, pages=pages,
    positions=true, typical=typical, splits=splits}, {Q=q, K=k, V=v, Pos=pos, Table=table, O=a})
  s:call("out", ex.gemm{m=b, n=d, k=hq * hd, residual=true, squares=inner and BLOCK or nil}, {A=a, B=wo, R=x, C=y1, S=y1s})
  s:call("gate", ex.rmsnorm_swiglu{m=b, n=f, k=d, eps=eps, sums=inner and sums or nil}, {X=y1, G=wg, U=wu, S=y1s, C=h})
  s:call("down", ex.gemm{m=b, n=d, k=f, residual=true, squares=chained and BLOCK or nil}, {A=h, B=wd, R=y1, C=y, S=ys})
end)
