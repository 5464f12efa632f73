-- fp4_gemm: C[m,n] = sum over k of A[m,k] W[n,k] S[n, k // group]: weights of 4-bit floats, of which a group along k
-- shares a scale.
--
-- W is e2m1, two to a byte. A task converts it to A's type, with the scale, before the product.
--
-- sizes    m, n, k: k a multiple of the group
-- options  format  "nvfp4" (default): groups of 16, scales of e4m3
--                  "mxfp4" (OCP): groups of 32, scales of e8m0, powers of two
--          dtype  of A ("bf16")
--          out    of C (dtype)
local mr = require "millrace"

local formats = {nvfp4 = {group = 16, scale = "e4m3"}, mxfp4 = {group = 32, scale = "e8m0"}}

return mr.program("fp4_gemm", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local format = p:check(formats[p.format or "nvfp4"], 'format must be "nvfp4" or "mxfp4"')
  local group, dtype = format.group, p.dtype or "bf16"
  local out = p.out or dtype
  p:check(k.size % group == 0, "k must be a multiple of " .. group)
  local kg = p:axis("kg", k.size // group)

  local A, W, S = p:input("A", {m, k}, dtype), p:input("W", {n, k}, "e2m1"), p:input("S", {n, kg}, format.scale)
  local C = p:output("C", {m, n}, out)

  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function()
    local w, s = p:load("load_w", W), p:load("load_s", S, {n, k // group})
    local x = p:task("dequant", function() return (w * s):to(dtype) end)
    c:add(p:mma("mma", p:load("load_a", A), x))
  end)
  C:store("store_c", p:task("convert", function() return c:to(out) end))
end)
