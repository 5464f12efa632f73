-- Pixels from pixels around them: the median of 3 x 3, a blur along columns and then rows, a step of heat in three dimensions, sums of
-- all above and to the left in i32, a grid of sub-pixels from channels, and bytes of RGB to NV12.
local mr = require "millrace"
local max, min = mr.max, mr.min

return {
  {
    name = "median_filter",
    program = mr.program("median_filter", function(p)
      local y, x = p:axes("y", "x")
      local X, Y = p:input("X", {y, x}, "u8"), p:output("Y", {y, x}, "u8")
      local v = {}
      for a = -1, 1 do
        for b = -1, 1 do v[#v + 1] = p:load("load_" .. #v, X, {y + a, x + b}) end
      end
      Y:store(p:task("median", function()
        local function sort3(a, b, c)
          local lo, hi = min(a, b), max(a, b)
          return min(lo, c), max(lo, min(hi, c)), max(hi, c)
        end
        local lo1, mi1, hi1 = sort3(v[1], v[2], v[3])
        local lo2, mi2, hi2 = sort3(v[4], v[5], v[6])
        local lo3, mi3, hi3 = sort3(v[7], v[8], v[9])
        local lo = max(lo1, lo2, lo3)
        local hi = min(hi1, hi2, hi3)
        local _, mi = sort3(mi1, mi2, mi3)
        local _, m = sort3(lo, mi, hi)
        return m:to "u8"
      end))
    end),
    small = {{y = 7, x = 33}},
    usual = {{y = 4096, x = 4096}},
    tolerance = 0,
    formula = function(t)
      return {
        Y = function(y, x)
          local l = {}
          for a = -1, 1 do
            for b = -1, 1 do l[#l + 1] = t.X(y + a, x + b) end
          end
          table.sort(l)
          return l[5]
        end,
      }
    end,
  },
  {
    name = "gaussian_blur",
    program = mr.program("gaussian_blur", function(p)
      local y, x = p:axes("y", "x")
      local w = {0.0625, 0.25, 0.375, 0.25, 0.0625}
      local X, Y = p:input("X", {y, x}, "f32"), p:output("Y", {y, x}, "f32")
      local v = {}
      for a = -2, 2 do v[a] = p:load("l" .. a + 2, X, {y + a, x}) end
      Y:store(p:task("blur", function()
        local c = nil
        for a = -2, 2 do local q = v[a] * w[a + 3] c = c and c + q or q end
        local r = nil
        for b = -2, 2 do local q = c:at(x, x + b) * w[b + 3] r = r and r + q or q end
        return r
      end))
    end),
    small = {{y = 7, x = 33}},
    usual = {{y = 4096, x = 2048}},
    tolerance = 1e-5,
    formula = function(t)
      local w = {0.0625, 0.25, 0.375, 0.25, 0.0625}
      return {
        Y = function(y, x)
          local s = 0
          for a = -2, 2 do
            for b = -2, 2 do s = s + w[a + 3] * w[b + 3] * t.X(y + a, x + b) end
          end
          return s
        end,
      }
    end,
  },
  {
    name = "stencil3d",
    program = mr.program("stencil3d", function(p)
      local x, y, z = p:axes("x", "y", "z")
      local U, V = p:input("U", {x, y, z}, "f32"), p:output("V", {x, y, z}, "f32")
      local c = p:load("c", U)
      local l, r = p:load("l", U, {x - 1, y, z}), p:load("r", U, {x + 1, y, z})
      local d, u = p:load("d", U, {x, y - 1, z}), p:load("u", U, {x, y + 1, z})
      local f, b = p:load("f", U, {x, y, z - 1}), p:load("b", U, {x, y, z + 1})
      V:store(p:task("heat", function() return c + 0.1 * (l + r + d + u + f + b - 6 * c) end))
    end),
    small = {{x = 8, y = 9, z = 20}},
    usual = {{x = 512, y = 512, z = 512}},
    tolerance = 1e-4,
    formula = function(t)
      return {
        V = function(x, y, z)
          local s = t.U(x - 1, y, z) + t.U(x + 1, y, z) + t.U(x, y - 1, z) + t.U(x, y + 1, z) + t.U(x, y, z - 1) + t.U(x, y, z + 1)
          return t.U(x, y, z) + 0.1 * (s - 6 * t.U(x, y, z))
        end,
      }
    end,
  },
  {
    name = "integral_image",
    program = mr.program("integral_image", function(p)
      local b, y, x = p:axes("b", "y", "x")
      local X, T, S = p:input("X", {b, y, x}, "u8"), p:temp("T", {b, y, x}, "i32"), p:output("S", {b, y, x}, "i32")
      p:phase("rows", function()
        local run = p:carry("run", {b, y}, 0, "i32")
        p:loop(x, function()
          local v = p:load("load_x", X)
          local s = p:task("scan", function()
            local c = v:to "i32":cumsum(x)
            local s = c + run
            run:add(v:to "i32":rowsum(x))
            return s
          end)
          T:store("store_t", s)
        end)
      end)
      p:phase("columns", function()
        local run = p:carry("run2", {b, x}, 0, "i32")
        p:loop(y, function()
          local v = p:load("load_t", T)
          local s = p:task("scan2", function()
            local s = v:cumsum(y) + run
            run:add(v:rowsum(y))
            return s
          end)
          S:store("store_s", s)
        end)
      end)
    end),
    small = {{b = 1, y = 9, x = 50}},
    usual = {{b = 8, y = 2048, x = 2048}},
    tolerance = 0,
    formula = function(t, sizes)
      return {
        S = function(b, y, x)
          local s = 0
          for i = 0, y do
            for j = 0, x do s = s + t.X(b, i, j) end
          end
          return s
        end,
      }
    end,
  },
  {
    name = "pixel_shuffle",
    program = mr.program("pixel_shuffle", function(p)
      local b, c, r, s, y, x = p:axes("b", "c", "r", "s", "y", "x")
      local cc, h, w = p:axis("cc", c.size * r.size * s.size), p:axis("h", y.size * r.size), p:axis("w", x.size * s.size)
      local X, Y = p:input("X", {b, cc, y, x}), p:output("Y", {b, c, h, w})
      Y:store(p:load(X, {b, c * (r.size * s.size) + r * s.size + s, y, x}), {b, c, y * r.size + r, x * s.size + s})
    end),
    small = {{b = 2, c = 1, r = 3, s = 3, y = 5, x = 7}},
    usual = {{b = 16, c = 64, r = 2, s = 2, y = 128, x = 128}},
    tolerance = 0,
    formula = function(t, sizes)
      return {
        Y = function(b, c, h, w)
          return t.X(b, c * sizes.r * sizes.s + h % sizes.r * sizes.s + w % sizes.s, h // sizes.r, w // sizes.s)
        end,
      }
    end,
  },
  {
    name = "rgb_to_nv12",
    program = mr.program("rgb_to_nv12", function(p)
      local y, x, v, u = p:axes("y", "x", "v", "u")          -- 2 y + v, 2 x + u
      local h, w, w2, c = p:axis("h", 2 * y.size), p:axis("w", 2 * x.size), p:axis("w2", 2 * x.size), p:axis("c", 3)
      local X = p:input("X", {h, w, c}, "u8")
      local Y, UV = p:output("Y", {h, w}, "u8"), p:output("UV", {y, w2}, "u8")
      local function channel(q) return p:load("load_" .. q, X, {2 * y + v, 2 * x + u, q}) end
      local r, g, b = channel(0), channel(1), channel(2)
      local luma, cb, cr = p:task("convert", function()
        local r, g, b = r:to "f32", g:to "f32", b:to "f32"
        local l = 0.299 * r + 0.587 * g + 0.114 * b
        local mean = function(q) return q:rowsum(u):rowsum(v) * 0.25 end
        return (l + 0.5):floor():to "u8", (mean((b - l) * 0.564) + 128.5):floor():to "u8", (mean((r - l) * 0.713) + 128.5):floor():to "u8"
      end)
      Y:store("store_y", luma, {2 * y + v, 2 * x + u})
      UV:store("store_u", cb, {y, 2 * x})
      UV:store("store_v", cr, {y, 2 * x + 1})
    end),
    small = {{y = 5, x = 7, v = 2, u = 2}},
    usual = {{y = 1080, x = 1920, v = 2, u = 2}},
    tolerance = 0.006,
    formula = function(t, sizes)
      local function l(h, w) return 0.299 * t.X(h, w, 0) + 0.587 * t.X(h, w, 1) + 0.114 * t.X(h, w, 2) end
      return {
        Y = function(h, w) return math.floor(l(h, w) + 0.5) end,
        UV = function(y, w)
          local x, s = w // 2, 0
          for v = 0, 1 do
            for u = 0, 1 do
              local h, q = 2 * y + v, 2 * x + u
              s = s + (w % 2 == 0 and (t.X(h, q, 2) - l(h, q)) * 0.564 or (t.X(h, q, 0) - l(h, q)) * 0.713)
            end
          end
          return math.floor(s / 4 + 128.5)
        end,
      }
    end,
  },
}
