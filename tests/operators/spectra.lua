-- Transforms: fft, radix 2, by exchanges within a row; dft_by_products, with two matrices and factors between them (Monarch); log_mel,
-- frames of a signal, their power and a bank of filters; haar_wavelet, one level.
local mr = require "millrace"
local max, where = mr.max, mr.where
local sum = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua").sum_below

return {
  {
    name = "fft",
    program = mr.program("fft", function(p)
      local m, n = p:axes("m", "n")
      local X, Re, Im = p:input("X", {m, n}, "f32"), p:output("Re", {m, n}, "f32"), p:output("Im", {m, n}, "f32")
      local bits = math.floor(math.log(n.size, 2) + 0.5)
      local x = p:load(X, {m, p:task("reverse", function()
        local r = n:index() * 0
        for b = 0, bits - 1 do r = r | ((n:index() >> b & 1) << (bits - 1 - b)) end
        return r
      end)})
      local function cosine(v)     -- of an f32 value of an angle in circles, from -1/2, by a polynomial: there is no cos
        local y = v * v
        local c, term = 1, 1
        local f = 1
        for q = 1, 7 do
          term = term * y * (-(2 * math.pi) ^ 2)
          f = f * (2 * q - 1) * (2 * q)
          c = c + term / f
        end
        return c
      end
      local re, im = p:task("fft", function()
        local re, im, h = x, 0 * x, 1
        while h < n.size do
          local k = (n:index() & (h - 1)):to "f32" * (-0.5 / h)       -- circles
          local c = cosine(k)
          local s = cosine(k + 0.25) -- cos(a + pi / 2) = -sin a
          local up = (n:index() & h):eq(0)
          local ore, oim = re:at(n, n ~ h), im:at(n, n ~ h)
          -- t = w * odd
          local odr, odi = where(up, ore, re), where(up, oim, im)
          local evr, evi = where(up, re, ore), where(up, im, oim)
          local tr, ti = odr * c + odi * s, odi * c - odr * s
          re, im = where(up, evr + tr, evr - tr), where(up, evi + ti, evi - ti)
          h = h * 2
        end
        return re, im
      end)
      Re:store(re)
      Im:store(im)
    end),
    small = {{m = 3, n = 16}},
    usual = {{m = 65536, n = 256}},
    tolerance = 1e-3,
    formula = function(t, sizes)
      return {
        Re = function(i, k) return sum(function(j) return t.X(i, j) * math.cos(2 * math.pi * j * k / sizes.n) end, sizes.n) end,
        Im = function(i, k) return -sum(function(j) return t.X(i, j) * math.sin(2 * math.pi * j * k / sizes.n) end, sizes.n) end,
      }
    end,
  },
  {
    name = "dft_by_products",
    program = mr.program("dft_by_products", function(p)
      local b, i, j, u, v = p:axes("b", "i", "j", "u", "v")        -- n = i * J + j, k = u + I * v
      local FR, FI = p:input("FR", {u, i}), p:input("FI", {u, i})     -- over i
      local GR, GI = p:input("GR", {v, j}), p:input("GI", {v, j})
      local TR, TI = p:input("TR", {u, j}, "f32"), p:input("TI", {u, j}, "f32")
      local X, YR, YI = p:input("X", {b, i, j}), p:output("YR", {b, v, u}, "f32"), p:output("YI", {b, v, u}, "f32")
      p:batch(b)
      local x, fr, fi = p:load(X), p:load(FR), p:load(FI)
      local ar, ai = p:mma("first_re", fr, x), p:mma("first_im", fi, x)         -- u, j
      local tr, ti, gr, gi = p:load(TR), p:load(TI), p:load(GR), p:load(GI)
      local br, bi, nbi = p:task("twiddle", function()
        local re, im = ar * tr - ai * ti, ar * ti + ai * tr
        return re:to "bf16", im:to "bf16", (-im):to "bf16"
      end)
      local yr, yi = p:carry("yr", {u, v}, 0), p:carry("yi", {u, v}, 0)
      yr:add(p:mma("rr", br, gr))
      yr:add(p:mma("ii", nbi, gi))
      yi:add(p:mma("ri", br, gi))
      yi:add(p:mma("ir", bi, gr))
      YR:store(yr)
      YI:store(yi)
    end),
    small = {{b = 1, i = 16, j = 32, u = 16, v = 32}},
    usual = {{b = 8192, i = 64, j = 64, u = 64, v = 64}},
    fill = {
      FR = function(sizes, u, i) return math.cos(2 * math.pi * u * i / sizes.i) end,
      FI = function(sizes, u, i) return -math.sin(2 * math.pi * u * i / sizes.i) end,
      GR = function(sizes, u, i) return math.cos(2 * math.pi * u * i / sizes.j) end,
      GI = function(sizes, u, i) return -math.sin(2 * math.pi * u * i / sizes.j) end,
      TR = function(sizes, u, j) return math.cos(2 * math.pi * u * j / (sizes.i * sizes.j)) end,
      TI = function(sizes, u, j) return -math.sin(2 * math.pi * u * j / (sizes.i * sizes.j)) end,
    },
    formula = function(t, sizes)
      local N = sizes.i * sizes.j
      local function y(f, sign)
        return function(b, v, u)
          local k = u + sizes.i * v
          return sign * sum(function(n) return t.X(b, n // sizes.j, n % sizes.j) * f(2 * math.pi * n * k / N) end, N)
        end
      end
      return {YR = y(math.cos, 1), YI = y(math.sin, -1)}
    end,
  },
  {
    name = "log_mel",
    program = mr.program("log_mel", function(p)
      local b, t, n, k, m = p:axes("b", "t", "n", "k", "m")
      local hop, s = p:option("hop", "integer", 16), p:axis("s", p.samples)
      local X, W, FR, FI = p:input("X", {b, s}, "f32"), p:input("W", {n}, "f32"), p:input("FR", {k, n}), p:input("FI", {k, n})
      local M, Y = p:input("M", {m, k}), p:output("Y", {b, m, t}, "f32")
      p:batch(b)
      local y = p:carry("y", {m, t}, 0)
      local x, w = p:load("load_x", X, {b, t * hop + n}), p:load("load_w", W)
      local f = p:task("window", function() return (x * w):to "bf16" end)
      p:loop(k, function()
        local re, im = p:mma("re", f, p:load(FR)), p:mma("im", f, p:load(FI))
        local power = p:task("power", function() return (re * re + im * im):to "bf16" end)
        y:add(p:mma("mel", power, p:load(M)))
      end)
      Y:store(p:task("log", function() return max(y, 1e-10):log() * 0.4342944819 end))
    end),
    small = {{b = 2, t = 9, n = 64, k = 33, m = 20, samples = 200}},
    usual = {{b = 16, t = 3000, n = 400, k = 201, m = 80, samples = 480400, hop = 160}},
    tolerance = 0.05,
    fill = {
      FR = function(sizes, k, n) return math.cos(2 * math.pi * k * n / sizes.n) end,
      FI = function(sizes, k, n) return math.sin(2 * math.pi * k * n / sizes.n) end,
      W = function(sizes, n) return 0.5 - 0.5 * math.cos(2 * math.pi * n / sizes.n) end,
      M = function(sizes, m, k) return math.max(0, 1 - math.abs(m - k * sizes.m / sizes.k)) end,
    },
    formula = function(t, sizes)
      return {
        Y = function(b, m, q)
          local y = sum(function(k)
            local re, im = 0, 0
            for n = 0, sizes.n - 1 do
              local v = t.X(b, q * (sizes.hop or 16) + n) * t.W(n)
              re, im = re + v * t.FR(k, n), im + v * t.FI(k, n)
            end
            return (re * re + im * im) * t.M(m, k)
          end, sizes.k)
          return math.log(math.max(y, 1e-10)) / math.log(10)
        end,
      }
    end,
  },
  {
    name = "haar_wavelet",
    program = mr.program("haar_wavelet", function(p)
      local m, n, h = p:axes("m", "n", "h")
      local X, A, D = p:input("X", {m, n}, "f32"), p:output("A", {m, h}, "f32"), p:output("D", {m, h}, "f32")
      local x = p:load(X)
      local a, d = p:task("level", function()
        local l, r = x:at(n, 2 * h), x:at(n, 2 * h + 1)
        return (l + r) * 0.5, (l - r) * 0.5
      end)
      A:store(a)
      D:store(d)
    end),
    small = {{m = 7, n = 26, h = 13}},
    usual = {{m = 65536, n = 1024, h = 512}},
    tolerance = 1e-5,
    formula = function(t, sizes)
      return {
        A = function(i, j) return (t.X(i, 2 * j) + t.X(i, 2 * j + 1)) / 2 end,
        D = function(i, j) return (t.X(i, 2 * j) - t.X(i, 2 * j + 1)) / 2 end,
      }
    end,
  },
}
