-- conv2d: Y[n,p,q,k] = sum over r, s, c of
--         X[n, p stride + r - pad, q stride + s - pad, c] F[k,r,s,c]
--
-- A matrix product whose rows are the output pixels and whose reduction runs over the filter's
-- taps and the channels (implicit GEMM). X is zero outside. Images are NHWC, filters KRSC.
-- Tiles of one tap, r = 1 and s = 1, load boxes of the image.
--
-- sizes    n images, c channels, h and w of the image, k filters, r and s of the filter
-- options  stride  (1)
--          pad     zeros around the image (0)
--          dtype   of X, F and Y ("bf16")
--          out     of Y (dtype)
local mr = require "millrace"

return mr.program("conv2d", function(p)
  local n, c, h, w, k, r, s = p:axes("n", "c", "h", "w", "k", "r", "s")
  local stride, pad = p:option("stride", "integer", 1), p:option("pad", "integer", 0)
  p:check(stride >= 1 and pad >= 0, "stride must be at least 1 and pad at least 0")
  local height, width = h.size + 2 * pad - r.size, w.size + 2 * pad - s.size
  p:check(height >= 0 and width >= 0, "the filter is larger than the image")
  local y, x = p:axis("p", height // stride + 1), p:axis("q", width // stride + 1)
  local out = p.out or p.dtype or "bf16"

  local X, F = p:input("X", {n, h, w, c}), p:input("F", {k, r, s, c})
  local Y = p:output("Y", {n, y, x, k}, out)

  local acc = p:carry("acc", {n, y, x, k}, 0)
  p:loop({r, s, c}, function()
    local tap = p:load("load_x", X, {n, y * stride + r - pad, x * stride + s - pad, c})
    acc:add(p:mma("mma", tap, p:load("load_f", F)))
  end)
  Y:store("store_y", p:task("convert", function() return acc:to(out) end))
end)
