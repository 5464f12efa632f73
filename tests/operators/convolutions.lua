-- conv_transpose2d: Y[n,y,x,k] = sum over r, s, c of X[n, (y + pad - r) / stride, (x + pad - s) / stride, c] F[k,r,s,c], of those r and s
--   at which the quotients are integers: the gradient of a convolution with stride, and the upsampling of decoders. Here the positions
--   y = stride i + u - pad are taken by phase u, for which only the r = u + stride a count.
-- conv3d: Y[n,z,y,x,k] = sum over q, r, s, c of X[n, z + q - pad, y + r - pad, x + s - pad, c] F[k,q,r,s,c] (video VAEs).
-- patch_embedding: Y[n,y,x,k] = Bias[k] + sum over r, s, c of X[n, c, y P + r, x P + s] W[k,c,r,s], images as NCHW (ViT).
local mr = require "millrace"

local function patches(t, sizes)
  local size = sizes.size or 16
  return {Y = function(n, y, x, k)
    local sum = t.Bias(k)
    for c = 0, sizes.c - 1 do
      for r = 0, size - 1 do
        for s = 0, size - 1 do sum = sum + t.X(n, c, y * size + r, x * size + s) * t.W(k, c, r, s) end
      end
    end
    return sum
  end}
end

return {
  {
    name = "conv_transpose2d",
    program = mr.program("conv_transpose2d", function(p)
      local n, h, w, c, k = p:axes("n", "h", "w", "c", "k")
      local stride, pad, size = p:option("stride", "integer", 2), p:option("pad", "integer", 1), p:option("size", "integer", 4)
      p:check(size % stride == 0 and pad < stride, "the filter's size must be a multiple of stride, and pad less")
      local r, s = p:axis("r", size), p:axis("s", size)
      local rows = p:axis("rows", (h.size - 1) * stride + size - 2 * pad)
      local columns = p:axis("columns", (w.size - 1) * stride + size - 2 * pad)
      local u, v = p:axis("u", stride), p:axis("v", stride)    -- phases, and the positions i, j of each
      local i, j = p:axis("i", (rows.size + pad + stride - 1) // stride),
        p:axis("j", (columns.size + pad + stride - 1) // stride)
      local a, b = p:axis("a", size // stride), p:axis("b", size // stride)
      local X, F, Y = p:input("X", {n, h, w, c}), p:input("F", {k, r, s, c}), p:output("Y", {n, rows, columns, k})
      local y = p:carry("y", {n, i, j, u, v, k}, 0)
      p:loop({a, b, c}, function()
        local x = p:load("load_x", X, {n, i - a, j - b, c})
        local f = p:load("load_f", F, {k, u + stride * a, v + stride * b, c})
        y:add(p:mma("mma", x, f))
      end)
      Y:store("store_y", p:task("round", function() return y:to "bf16" end), {n, stride * i + u - pad, stride * j + v - pad, k})
    end),
    small = {{n = 1, h = 8, w = 8, c = 64, k = 64}, {n = 2, h = 5, w = 6, c = 16, k = 24, stride = 2, pad = 0, size = 2}},
    usual = {{n = 16, h = 64, w = 64, c = 256, k = 128}, {n = 16, h = 128, w = 128, c = 64, k = 64, stride = 2, pad = 0, size = 2}},
    formula = function(t, sizes)
      local stride, pad, size = sizes.stride or 2, sizes.pad or 1, sizes.size or 4
      return {Y = function(n, y, x, k)
        local sum = 0
        for r = 0, size - 1 do
          for s = 0, size - 1 do
            if (y + pad - r) % stride == 0 and (x + pad - s) % stride == 0 then
              for c = 0, sizes.c - 1 do
                sum = sum + t.X(n, (y + pad - r) // stride, (x + pad - s) // stride, c) * t.F(k, r, s, c)
              end
            end
          end
        end
        return sum
      end}
    end,
  },
  {
    name = "conv3d",
    program = mr.program("conv3d", function(p)
      local n, d, h, w, c, k = p:axes("n", "d", "h", "w", "c", "k")
      local q, r, s = p:axis("q", 3), p:axis("r", 3), p:axis("s", 3)
      local z, y, x = p:axis("z", d.size), p:axis("y", h.size), p:axis("x", w.size)
      local X, F, Y = p:input("X", {n, d, h, w, c}), p:input("F", {k, q, r, s, c}), p:output("Y", {n, z, y, x, k})
      local sum = p:carry("sum", {n, z, y, x, k}, 0)
      p:loop({q, r, s, c}, function()
        sum:add(p:mma("mma", p:load("load_x", X, {n, z + q - 1, y + r - 1, x + s - 1, c}), p:load("load_f", F)))
      end)
      Y:store("store_y", p:task("round", function() return sum:to "bf16" end))
    end),
    small = {{n = 1, d = 2, h = 4, w = 8, c = 32, k = 64}, {n = 2, d = 3, h = 3, w = 5, c = 16, k = 24}},
    usual = {{n = 1, d = 16, h = 64, w = 64, c = 256, k = 256}},
    formula = function(t, sizes)
      return {Y = function(n, z, y, x, k)
        local sum = 0
        for q = 0, 2 do
          for r = 0, 2 do
            for s = 0, 2 do
              for c = 0, sizes.c - 1 do sum = sum + t.X(n, z + q - 1, y + r - 1, x + s - 1, c) * t.F(k, q, r, s, c) end
            end
          end
        end
        return sum
      end}
    end,
  },
  {
    name = "patch_embedding",
    program = mr.program("patch_embedding", function(p)
      local n, c, h, w, k = p:axes("n", "c", "h", "w", "k")
      local size = p:option("size", "integer", 16)
      local r, s, y, x = p:axis("r", size), p:axis("s", size), p:axis("y", h.size // size), p:axis("x", w.size // size)
      local X, W, Bias = p:input("X", {n, c, h, w}), p:input("W", {k, c, r, s}), p:input("Bias", {k})
      local Y = p:output("Y", {n, y, x, k})
      local sum = p:carry("sum", {n, y, x, k}, 0)
      p:loop({c, r, s}, function()
        sum:add(p:mma("mma", p:load("load_x", X, {n, c, y * size + r, x * size + s}), p:load("load_w", W)))
      end)
      local bias = p:load("load_bias", Bias)
      Y:store("store_y", p:task("bias", function() return (sum + bias):to "bf16" end))
    end),
    small = {{n = 2, c = 3, h = 64, w = 64, k = 64}, {n = 1, c = 2, h = 24, w = 40, k = 40, size = 8}},
    usual = {{n = 64, c = 3, h = 224, w = 224, k = 1024}, {n = 64, c = 3, h = 224, w = 224, k = 1280, size = 14}},
    formula = patches,
  },
  {
    name = "patch_embedding_copied",                           -- of patches whose rows of 14 pixels the copy engine cannot load
    program = mr.program("patch_embedding_copied", function(p)
      local n, c, h, w, k = p:axes("n", "c", "h", "w", "k")
      local size = p:option("size", "integer", 16)
      local r, s, y, x = p:axis("r", size), p:axis("s", size), p:axis("y", h.size // size), p:axis("x", w.size // size)
      local area = size * size
      local length = (c.size * area + 31) // 32 * 32           -- of a patch, filled up by zeros
      local e, f, l, m = p:axis("e", length), p:axis("f", length), p:axis("l", length), p:axis("m", k.size)
      local X, W, Bias = p:input("X", {n, c, h, w}), p:input("W", {k, c, r, s}), p:input("Bias", {k})
      local Patch, Weight, Y = p:temp("Patch", {n, y, x, l}), p:temp("Weight", {k, l}), p:output("Y", {n, y, x, k})
      p:phase("copy", function()
        Patch:store("store_p", p:load("load_x", X, {n, e // area, y * size + e // size % size, x * size + e % size}), {n, y, x, e})
      end)
      p:phase("copy_weights", function()
        Weight:store("store_w", p:load("load_w", W, {m, f // area, f // size % size, f % size}), {m, f})
      end)
      p:phase("product", function()
        local sum = p:carry("sum", {n, y, x, k}, 0)
        p:loop(l, function() sum:add(p:mma("mma", p:load("load_p", Patch), p:load("load_weight", Weight))) end)
        local bias = p:load("load_bias", Bias)
        Y:store("store_y", p:task("bias", function() return (sum + bias):to "bf16" end))
      end)
    end),
    small = {{n = 1, c = 3, h = 56, w = 70, k = 64, size = 14}, {n = 1, c = 2, h = 20, w = 40, k = 40, size = 10}},
    usual = {{n = 64, c = 3, h = 224, w = 224, k = 1280, size = 14}},
    formula = patches,
  },
}
