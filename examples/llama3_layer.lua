-- llama3_layer: a decoder layer of LLAMA 3 for m tokens of each of b sequences, from their beginning (prefill), as kernels one
-- after the other. llama3_decode is the same for one token more.
--
--   squares  the sum of the squares of each row of x, which normalises it
--   qkv      queries, keys and values of x, normalised and rotated; keys and values go into the caches
--   attend   causal attention
--   out      y1 = x + the product with wo, and the squares of its rows in parts
--   gate     silu(gate) * up, of y1 normalised
--   down     y = y1 + the product with wd
--
-- Gains of the norms are part of wqkv, and of wg and wu. wqkv has the rows of queries, then of keys, then of values. cos and sin are
-- the rows of the positions 0 to m - 1, of which transformers makes as many for the two halves of a head.
--
-- sizes    b sequences, m tokens of each
-- options  nmax        keys that the caches have (m)
--          layers      true: down stores squares, too, as ys, for the next layer, whose x then comes with them, as xs, so that
--                      there is no kernel squares (false)
--          block       columns of y1, and of y, whose squares are added up: of a tile (256, or 128 of less than 2048 rows)
--          d, f        the model's dimension, that of its feed-forward layer (4096, 14336)
--          hq, hkv, hd heads of queries, of keys, and their dimension (32, 8, 128)
--          table       type of cos and sin: "f32", or as transformers has them ("bf16")
local mr = require "millrace"
local ex = mr.examples

return mr.sequence("llama3_layer", function(s)
  local b, m = s:sizes("b", "m")
  local nmax, layers = s:option("nmax", "integer", m), s:option("layers", "boolean")
  local d, f = s:option("d", "integer", 4096), s:option("f", "integer", 14336)
  local hq, hkv, hd = s:option("hq", "integer", 32), s:option("hkv", "integer", 8), s:option("hd", "integer", 128)
  local rows, table = b * m, s:option("table", "string", "bf16")
  local block = s:option("block", "integer", rows >= 2048 and 256 or 128)
  s:check(nmax >= m, "nmax must be at least m")
  s:check(block >= 1 and d % block == 0, "block must divide d")
  local parts = d // block

  local x, cos, sin = s:input("x", {b, m, d}), s:input("cos", {m, hd // 2}, table), s:input("sin", {m, hd // 2}, table)
  local wqkv, wo = s:input("wqkv", {(hq + 2 * hkv) * hd, d}), s:input("wo", {d, hq * hd})
  local wg, wu, wd = s:input("wg", {f, d}), s:input("wu", {f, d}), s:input("wd", {d, f})
  local k, v = s:state("k", {b, hkv, nmax, hd}), s:state("v", {b, hkv, nmax, hd})
  local q, a, h = s:temp("q", {b, hq, m, hd}), s:temp("a", {b, m, hq * hd}), s:temp("h", {b, m, f})
  local y1, y1s, y = s:temp("y1", {b, m, d}), s:temp("y1s", {rows, parts}, "f32"), s:output("y", {b, m, d})
  local xs = layers and s:input("xs", {rows, parts}, "f32") or s:temp("xs", {rows, 1}, "f32")
  local ys = layers and s:output("ys", {rows, parts}, "f32") or nil

  if not layers then s:call("squares", ex.row_squares{m=rows, k=d}, {X=x, S=xs}) end
  s:call("qkv", ex.qkv_rope{b=b, m=m, k=d, hq=hq, hkv=hkv, d=hd, nmax=nmax, sums=layers and parts or 1, table=table},
    {X=x, S=xs, W=wqkv, Cos=cos, Sin=sin, Q=q, K=k, V=v})
  s:call("attend", ex.flash_attention{b=b, h=hq, hkv=hkv, m=m, n=m, d=hd, causal=true, nmax=nmax, o="bmhd"}, {Q=q, K=k, V=v, O=a})
  s:call("out", ex.gemm{m=rows, n=d, k=hq * hd, residual=true, squares=block}, {A=a, B=wo, R=x, C=y1, S=y1s})
  s:call("gate", ex.rmsnorm_swiglu{m=rows, n=f, k=d, sums=parts}, {X=y1, G=wg, U=wu, S=y1s, C=h})
  s:call("down", ex.gemm{m=rows, n=d, k=f, residual=true, squares=layers and block or nil}, {A=h, B=wd, R=y1, C=y, S=ys})
end)
