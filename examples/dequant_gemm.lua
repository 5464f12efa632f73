-- dequant_gemm: C[m,n] = sum over k of A[m,k] W[n,k] scale[n, k // group].
--
-- W is stored as 32-bit words, each with 32 / bits weights next to each other along k, the
-- lowest bits first. A weight is unpacked, scaled and converted to A's type before the product.
--
-- sizes    m, n, k: k a multiple of the weights in a word
-- options  wtype  "i4" (default), "e2m1" (fp4) or "i8"
--          group  weights along k that share a scale (128)
--          dtype  of A, scale and C ("bf16")
--          out    of C (dtype)
local mr = require "millrace"

local bits = {i4 = 4, e2m1 = 4, i8 = 8}

return mr.program("dequant_gemm", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local wtype, group, dtype = p.wtype or "i4", p:option("group", "integer", 128), p.dtype or "bf16"
  local out = p.out or dtype
  local each = 32 // p:check(bits[wtype], 'wtype must be "i4", "e2m1" or "i8"')
  p:check(k.size % each == 0, "k must be a multiple of " .. each)
  p:check(group >= 1, "group must be at least 1")
  local word = p:axis("word", k.size // each)
  local kg = p:axis("kg", (k.size + group - 1) // group)

  local A, W = p:input("A", {m, k}), p:input("W", {n, word}, "i32")
  local Scale = p:input("scale", {n, kg})
  local C = p:output("C", {m, n}, out)

  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function()
    local packed = p:load("load_w", W)
    local scale = p:load("load_scale", Scale, {n, k // group})
    local w = p:task("dequant", function()
      return (mr.unpack(packed, word, k, wtype) * scale):to(dtype)
    end)
    c:add(p:mma("mma", p:load("load_a", A), w))
  end)
  C:store("store_c", p:task("convert", function() return c:to(out) end))
end)
