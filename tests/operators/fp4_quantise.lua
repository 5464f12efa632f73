-- S[m,b] = the least power of two >= max |X[m,b,j]| over j / 6; Y[m,b,j] = X[m,b,j] / S[m,b], as e2m1: activations
-- of DeepSeek-V4 before a product with the experts' weights in fp4. Scales are f32, or e8m0, as mxfp4 has them.
local mr = require "millrace"

local block = 32

-- Of 0, 0.5, 1, 1.5, 2, 3, 4, 6 the nearest, of two such that of which the bits are even.
local values = {[0] = 0, 0.5, 1, 1.5, 2, 3, 4, 6}
local function e2m1(x)
  local best = 0
  for i = 1, 7 do
    local here, before = math.abs(math.abs(x) - values[i]), math.abs(math.abs(x) - values[best])
    if here < before or here == before and i % 2 == 0 then best = i end
  end
  return x < 0 and -values[best] or values[best]
end

local function exponent(t, i, b)
  local largest = 6 * 2.0 ^ -126
  for j = 0, block - 1 do largest = math.max(largest, math.abs(t.X(i, b, j))) end
  return math.ceil(math.log(largest / 6, 2))
end

return {
  program = mr.program("fp4_quantise", function(p)
    local m, b = p:axes("m", "b")
    local j = p:axis("j", block)
    local bytes = p:option("bytes", "boolean")
    local X, Y, S = p:input("X", {m, b, j}), p:output("Y", {m, b, j}, "e2m1"), p:output("S", {m, b}, bytes and "e8m0" or "f32")
    local x = p:load("load_x", X)
    local y, s = p:task("quantise", function()
      local least = mr.max(x:abs():rowmax(j), 6 * 2.0 ^ -126) * (1 / 6)
      local below = least:to "e8m0":to "f32"
      local s = mr.where(below:lt(least), 2 * below, below)
      return mr.min(mr.max(x / s, -6), 6):to "e2m1", bytes and s:to "e8m0" or s
    end)
    Y:store("store_y", y)
    S:store("store_s", s)
  end),
  small = {{m = 32, b = 8}, {m = 21, b = 3, bytes = true}},
  usual = {{m = 4096, b = 224}, {m = 8192, b = 256, bytes = true}},
  formula = function(t, sizes)
    return {
      Y = function(i, b, j) return e2m1(t.X(i, b, j) / 2.0 ^ exponent(t, i, b)) end,
      S = function(i, b) return 2.0 ^ exponent(t, i, b) end,
    }
  end,
}
