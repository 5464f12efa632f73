-- Activations and states of few bits: silu_and_mul_fp8_by_token and _by_group, a gated unit with a scale of each row or of 128 elements;
-- hadamard_quantise, rows rotated in groups and rounded to i8; transpose_cast, a tensor and its transpose in e5m2 with the greatest
-- magnitudes of rows; mxfp8_quantise; adam_8bit, a step whose moment is a byte that a table explains, with a scale of each block.
local mr = require "millrace"
local max, where = mr.max, mr.where
local formulas = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua")
local sum, maxof = formulas.sum_below, formulas.greatest_below

return {
  {
    name = "silu_and_mul_fp8_by_token",
    program = mr.program("silu_and_mul_fp8_by_token", function(p)
      local m, n = p:axes("m", "n")
      local both = p:axis("both", 2 * n.size)
      local X, Y, S = p:input("X", {m, both}), p:output("Y", {m, n}, "e4m3"), p:output("S", {m}, "f32")
      local g, u = p:load("load_g", X, {m, n}), p:load("load_u", X, {m, n + n.size})
      local y, s = p:task("act", function()
        local a = g:silu() * u
        local s = max(a:abs():rowmax(n), 1e-10) / 448
        return a / s, s
      end)
      Y:store(y)
      S:store(s)
    end),
    small = {{m = 7, n = 40}},
    usual = {{m = 8192, n = 2048}, {m = 8192, n = 14336}},
    tolerance = 0.08,
    formula = function(t, sizes)
      local function a(i, j)
        local g = t.X(i, j)
        return g / (1 + math.exp(-g)) * t.X(i, j + sizes.n)
      end
      local function s(i)
        local m = 0
        for j = 0, sizes.n - 1 do m = math.max(m, math.abs(a(i, j))) end
        return m / 448
      end
      return {S = s, Y = function(i, j) return a(i, j) / s(i) end}
    end,
  },
  {
    name = "silu_and_mul_fp8_by_group",
    program = mr.program("silu_and_mul_fp8_by_group", function(p)
      local m, n = p:axes("m", "n")
      local g, i, both = p:axis("g", n.size // 128), p:axis("i", 128), p:axis("both", 2 * n.size)
      local X, Y, S = p:input("X", {m, both}), p:output("Y", {m, n}, "e4m3"), p:output("S", {m, g}, "f32")
      local a, u = p:load("load_g", X, {m, g * 128 + i}), p:load("load_u", X, {m, g * 128 + i + n.size})
      local y, s = p:task("act", function()
        local a = a:silu() * u
        local s = max(a:abs():rowmax(i), 1e-10) / 448
        return a / s, s
      end)
      Y:store(y, {m, g * 128 + i})
      S:store(s)
    end),
    small = {{m = 12, n = 256}},
    usual = {{m = 8192, n = 2048}},
    tolerance = 0.08,
    formula = function(t, sizes)
      local function a(i, j)
        local g = t.X(i, j)
        return g / (1 + math.exp(-g)) * t.X(i, j + sizes.n)
      end
      local function s(i, g)
        local m = 0
        for j = g * 128, g * 128 + 127 do m = math.max(m, math.abs(a(i, j))) end
        return m / 448
      end
      return {S = s, Y = function(i, j) return a(i, j) / s(i, j // 128) end}
    end,
  },
  {
    name = "hadamard_quantise",
    program = mr.program("hadamard_quantise", function(p)
      local m, g, j = p:axes("m", "g", "j")
      local X, Y, S = p:input("X", {m, g, j}), p:output("Y", {m, g, j}, "i8"), p:output("S", {m}, "f32")
      local x = p:load(X)
      local y, s = p:task("rotate", function()
        local y, bit = x:to "f32", 1
        while bit < j.size do
          y = y:at(j, j ~ bit) + where((j:index() & bit):eq(0), y, -y)
          bit = bit * 2
        end
        y = y / math.sqrt(j.size)
        local s = max(y:abs():rowmax(j):rowmax(g), 1e-8) / 127
        local r = y / s
        return (r + where(r:ge(0), 0.5, -0.5)):to "i8", s
      end)
      Y:store(y)
      S:store(s)
    end),
    small = {{m = 6, g = 3, j = 64}},
    usual = {{m = 8192, g = 64, j = 64}},
    tolerance = 0.02,
    formula = function(t, sizes)
      local function bits(v)
        local n = 0
        while v > 0 do
          n = n + (v & 1)
          v = v >> 1
        end
        return n
      end
      local function H(m, g, j)
        return sum(function(k) return t.X(m, g, k) * (bits(k & j) % 2 == 0 and 1 or -1) end, sizes.j) / math.sqrt(sizes.j)
      end
      return {
        S = function(m)
          return maxof(function(g) return maxof(function(j) return math.abs(H(m, g, j)) end, sizes.j) end, sizes.g) / 127
        end,
      }
    end,
  },
  {
    name = "transpose_cast",
    program = mr.program("transpose_cast", function(p)
      local m, n = p:axes("m", "n")
      local X, S, Y, T, A = p:input("X", {m, n}), p:input("S", {}, "f32"), p:output("Y", {m, n}, "e5m2"), p:output("T", {n,
        m}, "e5m2"), p:output("A", {m}, "f32")
      local x, s = p:load(X), p:load(S)
      local y, a = p:task("cast", function() return x * s, x:abs():rowmax(n) end)
      Y:store(y)
      T:store(y)
      A:store(a)
    end),
    small = {{m = 7, n = 40}},
    usual = {{m = 8192, n = 4096}},
    tolerance = 0.13,
    formula = function(t, sizes)
      return {
        Y = function(m, n) return t.X(m, n) * t.S() end,
        T = function(n, m) return t.X(m, n) * t.S() end,
        A = function(m) return maxof(function(n) return math.abs(t.X(m, n)) end, sizes.n) end,
      }
    end,
  },
  {
    name = "mxfp8_quantise",
    program = mr.program("mxfp8_quantise", function(p)
      local m, b, i = p:axes("m", "b", "i")
      local X, Y, S = p:input("X", {m, b, i}), p:output("Y", {m, b, i}, "e4m3"), p:output("S", {m, b}, "e8m0")
      local x = p:load(X)
      local y, s = p:task("quantise", function()
        local s = (max(x:abs():rowmax(i), 1e-30) / 256):to "e8m0"
        return x / s, s
      end)
      Y:store(y)
      S:store(s)
    end),
    small = {{m = 6, b = 3, i = 32}},
    usual = {{m = 8192, b = 128, i = 32}},
    tolerance = 0.08,
    formula = function(t, sizes)
      local function s(m, b)
        return 2 ^ math.floor(math.log(maxof(function(i) return math.abs(t.X(m, b, i)) end, sizes.i) / 256, 2))
      end
      return {S = s, Y = function(m, b, i) return math.min(math.max(t.X(m, b, i) / s(m, b), -448), 448) end}
    end,
  },
  {
    name = "adam_8bit",
    program = mr.program("adam_8bit", function(p)
      local b, i = p:axes("b", "i")
      local c, d = p:axis("c", 256), 16
      local W, G, M, S, Code = p:input("W", {b, i}, "f32"), p:input("G", {b, i}), p:input("M", {b, i}, "u8"), p:input("S",
        {b}, "f32"), p:input("Code", {c}, "f32")
      local NW, NM, NS = p:output("NW", {b, i}, "f32"), p:output("NM", {b, i}, "u8"), p:output("NS", {b}, "f32")
      local w, g, q, s = p:load(W), p:load(G), p:load(M), p:load(S)
      local at = p:task("widen", function() return q:to "i32" end)
      local code = p:load("load_code", Code, {at})
      local nw, nm, ns = p:task("step", function()
        local m = 0.9 * code * s + 0.1 * g
        local top = max(m:abs():rowmax(i), 1e-12)
        return w - 0.01 * m, ((m / top + 1) * 127.5 + 0.5):floor():to "u8", top
      end)
      NW:store(nw)
      NM:store(nm)
      NS:store(ns)
    end),
    small = {{b = 2, i = 50}},
    usual = {{b = 65536, i = 256}},
    tolerance = 0.02,
    fill = {Code = function(sizes, c) return c / 127.5 - 1 end},
    formula = function(t, sizes)
      local function m(b, i) return 0.9 * t.Code(t.M(b, i)) * t.S(b) + 0.1 * t.G(b, i) end
      local function top(b) return maxof(function(i) return math.abs(m(b, i)) end, sizes.i) end
      return {
        NS = top,
        NW = function(b, i) return t.W(b, i) - 0.01 * m(b, i) end,
        NM = function(b, i) return math.floor((m(b, i) / top(b) + 1) * 127.5 + 0.5) end,
      }
    end,
  },
}
