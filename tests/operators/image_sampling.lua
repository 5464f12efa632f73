-- Pixels between pixels, of images NHWC: bilinear_resize; bilinear_twice, of twice as many, whose four loads have affine indices;
-- grid_sample and roi_align, whose positions are data; deformable_convolution, taps with offsets that are data, and their product with
-- filters; overlap_bits, of sorted boxes those that overlap (for non-maximum
-- suppression); group_norm_convolution, three taps of what a group norm and silu make of the input.
local mr = require "millrace"
local max, min, where = mr.max, mr.min, mr.where

return {
  {
    name = "bilinear_resize",
    program = mr.program("bilinear_resize", function(p)
      local b, y, x, c = p:axes("b", "y", "x", "c")
      local h, w = p:axis("h", p.h), p:axis("w", p.w)
      local X, Y = p:input("X", {b, h, w, c}), p:output("Y", {b, y, x, c})
      local function position(axis, size)
        local f = max(min((axis:index() + 0.5) * (size / axis.size) - 0.5, size - 1), 0)
        local low = f:floor()
        return low:to "i32", min(low + 1, size - 1):to "i32", f - low
      end
      local y0, y1, fy = p:task("rows", function() return position(y, h.size) end)
      local x0, x1, fx = p:task("columns", function() return position(x, w.size) end)
      local v00, v01 = p:load("v00", X, {b, y0, x0, c}), p:load("v01", X, {b, y0, x1, c})
      local v10, v11 = p:load("v10", X, {b, y1, x0, c}), p:load("v11", X, {b, y1, x1, c})
      Y:store(p:task("mix", function()
        local top, bottom = v00 + (v01 - v00) * fx, v10 + (v11 - v10) * fx
        return top + (bottom - top) * fy
      end))
    end),
    small = {{b = 2, y = 7, x = 9, c = 8, h = 5, w = 12}},
    usual = {{b = 8, y = 256, x = 256, c = 64, h = 128, w = 128}},
    formula = function(t, sizes)
      return {
        Y = function(b, y, x, c)
          local function position(i, size, n)
            local f = math.max(math.min((i + 0.5) * (size / n) - 0.5, size - 1), 0)
            local l = math.floor(f)
            return l, math.min(l + 1, size - 1), f - l
          end
          local y0, y1, fy = position(y, sizes.h, sizes.y)
          local x0, x1, fx = position(x, sizes.w, sizes.x)
          local function row(r) return t.X(b, r, x0, c) * (1 - fx) + t.X(b, r, x1, c) * fx end
          return row(y0) * (1 - fy) + row(y1) * fy
        end,
      }
    end,
  },
  {
    name = "grid_sample",
    program = mr.program("grid_sample", function(p)
      local b, y, x, c = p:axes("b", "y", "x", "c")
      local h, w, two = p:axis("h", p.h), p:axis("w", p.w), p:axis("two", 2)
      local X, G, Y = p:input("X", {b, h, w, c}), p:input("G", {b, y, x, two}, "f32"), p:output("Y", {b, y, x, c})
      p:batch(b)
      local gx, gy = p:load("load_gx", G, {b, y, x, 0}), p:load("load_gy", G, {b, y, x, 1})
      local x0, y0, x1, y1, fx, fy = p:task("positions", function()
        local px, py = (gx + 1) * (w.size / 2) - 0.5, (gy + 1) * (h.size / 2) - 0.5
        local lx, ly = px:floor(), py:floor()
        local ix, iy = lx:to "i32", ly:to "i32"
        return ix, iy, ix + 1, iy + 1, px - lx, py - ly
      end)
      local v00, v01 = p:load("v00", X, {b, y0, x0, c}), p:load("v01", X, {b, y0, x1, c})
      local v10, v11 = p:load("v10", X, {b, y1, x0, c}), p:load("v11", X, {b, y1, x1, c})
      Y:store(p:task("mix", function()
        return v00 * (1 - fx) * (1 - fy) + v01 * fx * (1 - fy) + v10 * (1 - fx) * fy + v11 * fx * fy
      end))
    end),
    small = {{b = 2, y = 7, x = 9, c = 8, h = 5, w = 12}},
    usual = {{b = 8, y = 256, x = 256, c = 64, h = 256, w = 256}},
    fill = {G = function(sizes, b, y, x, k) return math.sin(b + y * 3 + x * 5 + k) * 1.1 end},
    formula = function(t, sizes)
      return {
        Y = function(b, y, x, c)
          local px, py = (t.G(b, y, x, 0) + 1) * sizes.w / 2 - 0.5, (t.G(b, y, x, 1) + 1) * sizes.h / 2 - 0.5
          local lx, ly = math.floor(px), math.floor(py)
          local fx, fy = px - lx, py - ly
          return t.X(b, ly, lx, c) * (1 - fx) * (1 - fy) + t.X(b, ly, lx + 1, c) * fx * (1 - fy) + t.X(b, ly + 1, lx, c) * (1 - fx)
            * fy + t.X(b, ly + 1, lx + 1, c) * fx * fy
        end,
      }
    end,
  },
  {
    name = "roi_align",
    program = mr.program("roi_align", function(p)
      local r, y, x, c = p:axes("r", "y", "x", "c")
      local b, h, w, five, s = p:axis("b", p.images), p:axis("h", p.h), p:axis("w", p.w), p:axis("five", 5), 2
      local X, R, Y = p:input("X", {b, h, w, c}), p:input("R", {r, five}, "f32"), p:output("Y", {r, y, x, c})
      p:batch(r)
      local v = {}
      for q = 0, 4 do v[q] = p:load("r" .. q, R, {r, q}) end
      local image = p:task("image", function() return v[0]:to "i32" end)
      local acc = p:carry("acc", {y, x, c}, 0)
      for sy = 0, s - 1 do for sx = 0, s - 1 do
        local n = sy .. sx
        local y0, y1, x0, x1, fy, fx = p:task("positions" .. n, function()
          local function position(low, high, axis, sub, size)
            local f = max(min(low + (axis:index() + (sub + 0.5) / s) * ((high - low) / axis.size) - 0.5, size - 1), 0)
            local l = f:floor()
            return l:to "i32", min(l + 1, size - 1):to "i32", f - l
          end
          local x0, x1, fx = position(v[1], v[3], x, sx, w.size)
          local y0, y1, fy = position(v[2], v[4], y, sy, h.size)
          return y0, y1, x0, x1, fy, fx
        end)
        local a, b2 = p:load("a" .. n, X, {image, y0, x0, c}), p:load("b" .. n, X, {image, y0, x1, c})
        local c2, d = p:load("c" .. n, X, {image, y1, x0, c}), p:load("d" .. n, X, {image, y1, x1, c})
        p:task("mix" .. n, function()
          acc:add((a * (1 - fx) + b2 * fx) * (1 - fy) + (c2 * (1 - fx) + d * fx) * fy)
        end)
      end end
      Y:store(p:task("mean", function() return acc / (s * s) end))
    end),
    small = {{r = 3, y = 4, x = 4, c = 16, images = 2, h = 12, w = 16}},
    usual = {{r = 1000, y = 7, x = 7, c = 256, images = 8, h = 64, w = 64}},
    fill = {R = function(sizes, r, q) return q == 0 and r % sizes.images or q < 3 and r * 1.3 + q or r * 1.7 + q * 2 end},
    formula = function(t, sizes)
      return {
        Y = function(r, y, x, c)
          local acc = 0
          local function position(low, high, i, n, sub, size)
            local f = math.max(math.min(low + (i + (sub + 0.5) / 2) * (high - low) / n - 0.5, size - 1), 0)
            local l = math.floor(f)
            return l, math.min(l + 1, size - 1), f - l
          end
          for sy = 0, 1 do
            for sx = 0, 1 do
              local x0, x1, fx = position(t.R(r, 1), t.R(r, 3), x, sizes.x, sx, sizes.w)
              local y0, y1, fy = position(t.R(r, 2), t.R(r, 4), y, sizes.y, sy, sizes.h)
              local b = t.R(r, 0) // 1 | 0
              acc = acc + (t.X(b, y0, x0, c) * (1 - fx) + t.X(b, y0, x1, c) * fx) * (1 - fy) + (t.X(b, y1, x0, c) * (1 - fx) + t.X(b,
                y1, x1, c) * fx) * fy
            end
          end
          return acc / 4
        end,
      }
    end,
  },
  {
    name = "deformable_convolution",
    program = mr.program("deformable_convolution", function(p)
      local n, y, x, c, o = p:axes("n", "y", "x", "c", "o")
      local h, w, tap, two = p:axis("h", y.size), p:axis("w", x.size), p:axis("tap", 9), p:axis("two", 2)
      local X, F, W, Y = p:input("X", {n, h, w, c}), p:input("F", {n, y, x, tap, two}, "f32"), p:input("W", {tap, o, c}),
        p:output("Y", {n, y, x, o})
      p:batch(n)
      local acc = p:carry("acc", {y, x, o}, 0)
      p:loop(tap, {batch = true}, function()
        local dy, dx = p:load("load_dy", F, {n, y, x, tap, 0}), p:load("load_dx", F, {n, y, x, tap, 1})
        local y0, x0, y1, x1, fy, fx = p:task("positions", function()
          local py, px = dy + y:index() + tap:index() * 0 , dx + x:index()
          local ly, lx = py:floor(), px:floor()
          return ly:to "i32", lx:to "i32", (ly + 1):to "i32", (lx + 1):to "i32", py - ly, px - lx
        end)
        local a, b = p:load("v00", X, {n, y0, x0, c}), p:load("v01", X, {n, y0, x1, c})
        local d, e = p:load("v10", X, {n, y1, x0, c}), p:load("v11", X, {n, y1, x1, c})
        local v = p:task("mix", function()
          return ((a * (1 - fx) + b * fx) * (1 - fy) + (d * (1 - fx) + e * fx) * fy):to "bf16"
        end)
        acc:add(p:mma("mma", v, p:load("load_w", W)))
      end)
      Y:store(acc)
    end),
    small = {{n = 1, y = 4, x = 8, c = 16, o = 16}},
    usual = {{n = 8, y = 64, x = 64, c = 256, o = 256}},
    fill = {F = function(sizes, n, y, x, q, k) return math.sin(n + y * 3 + x * 5 + q + k) * 2 end},
    formula = function(t, sizes)
      return {
        Y = function(n, y, x, o)
          local s = 0
          for q = 0, 8 do
            local py, px = y + t.F(n, y, x, q, 0), x + t.F(n, y, x, q, 1)
            local ly, lx = math.floor(py), math.floor(px)
            local fy, fx = py - ly, px - lx
            for c = 0, sizes.c - 1 do
              local v = (t.X(n, ly, lx, c) * (1 - fx) + t.X(n, ly, lx + 1, c) * fx) * (1 - fy) + (t.X(n, ly + 1, lx, c) * (1 - fx)
                + t.X(n, ly + 1, lx + 1, c) * fx) * fy
              s = s + v * t.W(q, o, c)
            end
          end
          return s
        end,
      }
    end,
  },
  {
    name = "overlap_bits",
    program = mr.program("overlap_bits", function(p)
      local i, w, j = p:axes("i", "w", "j")
      local four, n = p:axis("four", 4), p:axis("n", w.size * j.size)
      local B, M = p:input("B", {n, four}, "f32"), p:output("M", {i, w}, "i32")
      local function corners(name, rows)
        local v = {}
        for q = 0, 3 do v[q + 1] = p:load(name .. q, B, {rows, q}) end
        return v
      end
      local a, b = corners("a", i), corners("b", w * 32 + j)
      M:store(p:task("overlap", function()
        local wide = max(min(a[3], b[3]) - max(a[1], b[1]), 0)
        local high = max(min(a[4], b[4]) - max(a[2], b[2]), 0)
        local inter = wide * high
        local union = (a[3] - a[1]) * (a[4] - a[2]) + (b[3] - b[1]) * (b[4] - b[2]) - inter
        local on = inter:gt(union * 0.5) & (w:index() * 32 + j:index()):gt(i:index())
        return where(on, (i:index() * 0 + 1) << j:index(), 0):rowsum(j)
      end))
    end),
    small = {{i = 64, w = 2, j = 32}},
    usual = {{i = 4096, w = 128, j = 32}},
    tolerance = 0,
    fill = {
      B = function(sizes, n, q)
        local x, y = n * 7 % 10, n * 3 % 8
        return q == 0 and x or q == 1 and y or q == 2 and x + 3 + n % 3 or y + 4 + n % 2
      end,
    },
    formula = function(t, sizes)
      return {
        M = function(i, w)
          local r = 0
          for j = 0, 31 do
            local k = w * 32 + j
            local ww = math.max(math.min(t.B(i, 2), t.B(k, 2)) - math.max(t.B(i, 0), t.B(k, 0)), 0)
            local h = math.max(math.min(t.B(i, 3), t.B(k, 3)) - math.max(t.B(i, 1), t.B(k, 1)), 0)
            local u = (t.B(i, 2) - t.B(i, 0)) * (t.B(i, 3) - t.B(i, 1)) + (t.B(k, 2) - t.B(k, 0)) * (t.B(k, 3) - t.B(k, 1)) - ww * h
            if k > i and ww * h > u * 0.5 then r = r | (1 << j) end
          end
          return r >= 2 ^ 31 and r - 2 ^ 32 or r
        end,
      }
    end,
  },
  {
    name = "group_norm_convolution",
    program = mr.program("group_norm_convolution", function(p)
      local b, x, g, c, o = p:axes("b", "x", "g", "c", "o")
      local r = p:axis("r", 3)
      local X, W, Y = p:input("X", {b, x, g, c}), p:input("W", {r, g, c, o}), p:output("Y", {b, x, o})
      local M, R = p:temp("M", {b, g}, "f32"), p:temp("R", {b, g}, "f32")
      p:phase("stats", function()
        p:batch(b, g)
        local s, q = p:carry("s", {}, 0), p:carry("q", {}, 0)
        p:loop(x, function()
          local v = p:load("x", X)
          p:task("sum", function()
            s:add(v:to "f32":rowsum(c):rowsum(x))
            q:add((v * v):rowsum(c):rowsum(x))
          end)
        end)
        local m, rr = p:task("finish", function()
          local n = x.size * c.size
          return s / n, mr.rsqrt(q / n - (s / n) * (s / n) + 1e-5)
        end)
        M:store("store_m", m)
        R:store("store_r", rr)
      end)
      p:phase("conv", function()
        p:batch(b)
        local acc = p:carry("acc", {x, o}, 0)
        p:loop({r, g}, {batch = true}, function()
          local v, m, rr = p:load("x2", X, {b, x + r - 1, g, c}), p:load("m", M), p:load("rr", R)
          local a = p:task("act", function()
            local inside = (x:index() + r:index() - 1):ge(0) & (x:index() + r:index() - 1):lt(x.size)
            return where(inside, ((v - m) * rr):silu(), 0):to "bf16"
          end)
          acc:add(p:mma("mma", a, p:load("w", W)))
        end)
        Y:store("store_y", acc)
      end)
    end),
    small = {{b = 1, x = 9, g = 3, c = 8, o = 24}},
    usual = {{b = 16, x = 4096, g = 8, c = 64, o = 256}},
    formula = function(t, sizes)
      local function st(b, g)
        local n, s, q = sizes.x * sizes.c, 0, 0
        for x = 0, sizes.x - 1 do
          for c = 0, sizes.c - 1 do
            local v = t.X(b, x, g, c)
            s, q = s + v, q + v * v
          end
        end
        return s / n, 1 / math.sqrt(q / n - (s / n) ^ 2 + 1e-5)
      end
      return {
        Y = function(b, x, o)
          local y = 0
          for g = 0, sizes.g - 1 do
            local m, r = st(b, g)
            for q = 0, 2 do
              local k = x + q - 1
              if k >= 0 and k < sizes.x then
                for c = 0, sizes.c - 1 do
                  local v = (t.X(b, k, g, c) - m) * r
                  y = y + v / (1 + math.exp(-v)) * t.W(q, g, c, o)
                end
              end
            end
          end
          return y
        end,
      }
    end,
  },
  {
    name = "bilinear_twice",
    program = mr.program("bilinear_twice", function(p)
      local b, y, x, c = p:axes("b", "y", "x", "c")
      local h, w = p:axis("h", y.size // 2), p:axis("w", x.size // 2)
      local X, Y = p:input("X", {b, h, w, c}), p:output("Y", {b, y, x, c})
      local y1, x1 = (y + 1) // 2, (x + 1) // 2            -- what is next, and behind it what is before
      local v11, v01 = p:load("v11", X, {b, y1, x1, c}), p:load("v01", X, {b, y1 - 1, x1, c})
      local v10, v00 = p:load("v10", X, {b, y1, x1 - 1, c}), p:load("v00", X, {b, y1 - 1, x1 - 1, c})
      -- Of an axis' two elements the nearer counts three times as much; beyond the ends there is only the other.
      local function mixed(before, after, axis)
        local i = axis:index()
        local share = where((i & 1):eq(0), 0.25, 0.75)
        return where(i:eq(0), after, before) * share + where(i:eq(axis.size - 1), before, after) * (1 - share)
      end
      Y:store(p:task("mix", function() return mixed(mixed(v00, v10, y), mixed(v01, v11, y), x) end))
    end),
    small = {{b = 2, y = 6, x = 10, c = 8}, {b = 1, y = 16, x = 4, c = 24}},
    usual = {{b = 8, y = 256, x = 256, c = 64}},
    formula = function(t, sizes)
      local function around(i, n)
        local at = math.min(math.max((i + 0.5) / 2 - 0.5, 0), n - 1)
        local lo = math.floor(at)
        return lo, math.min(lo + 1, n - 1), at - lo
      end
      return {
        Y = function(b, y, x, c)
          local y0, y1, fy = around(y, sizes.y // 2)
          local x0, x1, fx = around(x, sizes.x // 2)
          local top = t.X(b, y0, x0, c) * (1 - fx) + t.X(b, y0, x1, c) * fx
          return top * (1 - fy) + (t.X(b, y1, x0, c) * (1 - fx) + t.X(b, y1, x1, c) * fx) * fy
        end,
      }
    end,
  },
}
