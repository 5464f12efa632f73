-- Vectors of signs, 32 in a word: of two of them the words differ in as many bits as there are unequal signs.
--
-- hamming_distances counts them for each query and code of a set, as FAISS's IndexBinaryFlat; binary_linear is the product of such
-- matrices, of which each element is the number of signs less twice that (Rastegari et al., XNOR-Net, 2016).
local mr = require "millrace"

local function differences(p, kind)
  local m, n, w = p:axes("m", "n", "w")
  local A, B, Y = p:input("A", {m, w}, "i32"), p:input("B", {n, w}, "i32"), p:output("Y", {m, n}, kind)
  local sum = p:carry("sum", {m, n}, 0, "i32")
  p:loop(w, function()
    local a, b = p:load("load_a", A), p:load("load_b", B)
    p:task("count", function() sum:set(sum + (a ~ b):popcount():rowsum(w)) end)
  end)
  return w, Y, sum
end

local function words(sizes, i, w) return (i * 0x9E3779B9 + w * 0x85EBCA6B + i * w * 77 ~ sizes.w) % (1 << 32) - (1 << 31) end

local function counts(T, sizes, of)
  return {Y = function(m, n)
    local sum = 0
    for w = 0, sizes.w - 1 do
      local x = T.A(m, w) ~ T.B(n, w)
      while x & 0xffffffff ~= 0 do
        x, sum = x & x - 1, sum + 1
      end
    end
    return of(sum)
  end}
end

return {
  {
    name = "hamming_distances",
    program = mr.program("hamming_distances", function(p)
      local _, Y, sum = differences(p, "i32")
      Y:store("store_y", sum)
    end),
    small = {{m = 5, n = 33, w = 8}, {m = 16, n = 40, w = 3}},
    usual = {{m = 128, n = 65536, w = 8}},
    fill = {A = words, B = words},
    tolerance = 0,
    formula = function(T, sizes)
      return counts(T, sizes, function(sum) return sum end)
    end,
  },
  {
    name = "binary_linear",
    program = mr.program("binary_linear", function(p)
      local w, Y, sum = differences(p, "f16")
      Y:store("store_y", p:task("scale", function() return 32 * w.size - 2 * sum end):to "f16")
    end),
    small = {{m = 5, n = 33, w = 8}},
    usual = {{m = 64, n = 4096, w = 128}},
    fill = {A = words, B = words},
    formula = function(T, sizes)
      return counts(T, sizes, function(sum) return 32 * sizes.w - 2 * sum end)
    end,
  },
}
