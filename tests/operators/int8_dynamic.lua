-- int8_quantise: S[m] = max over k of |X[m,k]| / 127, Y[m,k] = X[m,k] / S[m], rounded to the nearest or even: activations by token.
-- int8_linear: C[m,n] = S[m] Scale[n] sum over k of Y[m,k] W[n,k], both in one program: x is quantised, then multiplied in
-- integers (W8A8 of vLLM, LLM.int8 without outliers).
-- int8_weight_linear: C[m,n] = Scale[n] sum over k of X[m,k] W[n,k]: only weights are int8, widened to bf16 (W8A16).
-- dequantise_by_group: W[n,k] = (Q[n,k] - Zero[n, k // 128]) Scale[n, k // 128], of uint4 as GPTQ and AWQ have it, two a byte.
local mr = require "millrace"

local group <const> = 128

local function nearest(x)
  local low = math.floor(x)
  if x - low > 0.5 or x - low == 0.5 and low % 2 == 1 then low = low + 1 end
  return low
end

local function scale(t, sizes, i)
  local most = 1e-6
  for k = 0, sizes.k - 1 do most = math.max(most, math.abs(t.X(i, k))) end
  return most / 127
end

local function quantise(x, k)
  local s = mr.max(x:abs():rowmax(k), 1e-6) / 127
  return (x / s):to "i8", s
end

return {
  {
    name = "int8_quantise",
    tolerance = 0.01,                                          -- a number may be rounded up here, and down there
    program = mr.program("int8_quantise", function(p)
      local m, k = p:axes("m", "k")
      local X, Y, S = p:input("X", {m, k}), p:output("Y", {m, k}, "i8"), p:output("S", {m}, "f32")
      local x = p:load("load_x", X)
      local y, s = p:task("quantise", function() return quantise(x, k) end)
      Y:store("store_y", y)
      S:store("store_s", s)
    end),
    small = {{m = 64, k = 256}, {m = 37, k = 136}},
    usual = {{m = 8192, k = 4096}, {m = 8192, k = 8192}},
    formula = function(t, sizes)
      return {
        Y = function(i, k) return nearest(t.X(i, k) / scale(t, sizes, i)) end,
        S = function(i) return scale(t, sizes, i) end,
      }
    end,
  },
  {
    name = "int8_linear",
    program = mr.program("int8_linear", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local r, c = p:axis("r", m.size), p:axis("c", k.size)
      local X, W, Scale = p:input("X", {m, k}), p:input("W", {n, k}, "i8"), p:input("Scale", {n}, "f32")
      local Y, S, C = p:temp("Y", {m, k}, "i8"), p:temp("S", {m}, "f32"), p:output("C", {m, n})
      p:phase("quantise", function()
        local x = p:load("load_x", X, {r, c})
        local y, s = p:task("quantise", function() return quantise(x, c) end)
        Y:store("store_y", y, {r, c})
        S:store("store_s", s, {r})
      end)
      p:phase("product", function()
        local sum = p:carry("sum", {m, n}, 0)
        p:loop(k, function() sum:add(p:mma("mma", p:load("load_y", Y), p:load("load_w", W))) end)
        local s, w = p:load("load_s", S), p:load("load_scale", Scale)
        C:store("store_c", p:task("scale", function() return (sum * s * w):to "bf16" end))
      end)
    end),
    small = {{m = 64, n = 64, k = 128}, {m = 40, n = 72, k = 160}},
    usual = {{m = 4096, n = 4096, k = 4096}, {m = 8192, n = 8192, k = 8192}},
    fill = {W = function(_, j, k) return (j * 37 + k * 11) % 255 - 127 end},
    formula = function(t, sizes)
      return {C = function(i, j)
        local s, sum = scale(t, sizes, i), 0
        for k = 0, sizes.k - 1 do sum = sum + nearest(t.X(i, k) / s) * t.W(j, k) end
        return sum * s * t.Scale(j)
      end}
    end,
  },
  {
    name = "int8_weight_linear",
    program = mr.program("int8_weight_linear", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local X, W, Scale = p:input("X", {m, k}), p:input("W", {n, k}, "i8"), p:input("Scale", {n}, "f32")
      local C = p:output("C", {m, n})
      local sum = p:carry("sum", {m, n}, 0)
      p:loop(k, function()
        local w = p:load("load_w", W)
        local wide = p:task("widen", function() return w:to "bf16" end)
        sum:add(p:mma("mma", p:load("load_x", X), wide))
      end)
      local s = p:load("load_scale", Scale)
      C:store("store_c", p:task("scale", function() return (sum * s):to "bf16" end))
    end),
    small = {{m = 64, n = 64, k = 128}, {m = 16, n = 72, k = 160}},
    usual = {{m = 16, n = 4096, k = 4096}, {m = 4096, n = 4096, k = 4096}},
    fill = {W = function(_, j, k) return (j * 37 + k * 11) % 255 - 127 end},
    formula = function(t, sizes)
      return {C = function(i, j)
        local sum = 0
        for k = 0, sizes.k - 1 do sum = sum + t.X(i, k) * t.W(j, k) end
        return sum * t.Scale(j)
      end}
    end,
  },
  {
    name = "dequantise_by_group",
    program = mr.program("dequantise_by_group", function(p)
      local n, k = p:axes("n", "k")
      local g = p:axis("g", k.size // group)
      local Q, Zero, Scale = p:input("Q", {n, k}, "i4"), p:input("Zero", {n, g}, "i8"), p:input("Scale", {n, g})
      local W = p:output("W", {n, k})
      local q, zero, s = p:load("load_q", Q), p:load("load_zero", Zero, {n, k // group}), p:load("load_s", Scale, {n, k // group})
      W:store("store_w", p:task("widen", function() return (((q:to "i32" & 15) - zero:to "i32") * s):to "bf16" end))
    end),
    small = {{n = 64, k = 256}, {n = 37, k = 384}},
    usual = {{n = 14336, k = 4096}},
    fill = {Zero = function(_, n, g) return (n + g) % 16 end},
    formula = function(t)
      return {W = function(n, k)
        local q = t.Q(n, k)
        return ((q < 0 and q + 16 or q) - t.Zero(n, k // group)) * t.Scale(n, k // group)
      end}
    end,
  },
}
