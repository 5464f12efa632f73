-- Y[i,:] = H X[i,:], H[a,b] = (-1)^(number of ones in the bits of a & b): the Hadamard transform of rows, whose length is a power of two.
--
-- Rotates activations before they are quantised (QuaRot, SpinQuant), and queries and keys of an indexer (DeepSeek-V3.2). Rows
-- that are too long for one tile are transformed in two phases, along the low and the high bits of the index: hadamard_transform_long.
local mr = require "millrace"

-- The sum over b of x(b), with signs by the bits of a & b.
local function signed(a, length, x)
  local sum = 0
  for b = 0, length - 1 do
    local both, sign = a & b, 1
    while both > 0 do both, sign = both & both - 1, -sign end
    sum = sum + sign * x(b)
  end
  return sum
end

-- x transformed along an axis.
local function transform(x, j)
  local y, bit = x:to "f32", 1
  while bit < j.size do
    y = y:at(j, j ~ bit) + mr.where((j:index() & bit):eq(0), y, -y)
    bit = bit * 2
  end
  return y
end

return {
  {
    name = "hadamard_transform",
    program = mr.program("hadamard_transform", function(p)
      local i, j = p:axes("i", "j")
      local X, Y = p:input("X", {i, j}), p:output("Y", {i, j})
      p:check(j.size & j.size - 1 == 0, "j must be a power of two")
      local x = p:load("load_x", X)
      Y:store("store_y", p:task("transform", function() return transform(x, j) end))
    end),
    small = {{i = 24, j = 64, dtype = "f32"}, {i = 5, j = 256}},
    usual = {{i = 65536, j = 128}, {i = 4096, j = 4096}, {i = 4096, j = 8192, dtype = "f32"}},
    formula = function(t, sizes)
      return {Y = function(i, j)
        return signed(j, sizes.j, function(b) return t.X(i, b) end)
      end}
    end,
  },
  {
    name = "hadamard_transform_long",
    program = mr.program("hadamard_transform_long", function(p)
      local i, a, b = p:axes("i", "a", "b")
      local high, low = p:axis("high", a.size), p:axis("low", b.size)
      local X, T, Y = p:input("X", {i, a, b}), p:temp("T", {i, a, b}, "f32"), p:output("Y", {i, a, b})
      p:check(a.size & a.size - 1 == 0 and b.size & b.size - 1 == 0, "a and b must be powers of two")
      p:phase("low_bits", function()
        local x = p:load("load_x", X)
        T:store("store_t", p:task("transform_b", function() return transform(x, b) end))
      end)
      p:phase("high_bits", function()
        local t = p:load("load_t", T, {i, high, low})
        Y:store("store_y", p:task("transform_a", function() return transform(t, high) end), {i, high, low})
      end)
    end),
    small = {{i = 3, a = 8, b = 32, dtype = "f32"}},
    usual = {{i = 64, a = 128, b = 256, dtype = "f32"}},
    formula = function(t, sizes)
      local low = sizes.b
      return {Y = function(i, a, b)
        return signed(a * low + b, sizes.a * low, function(at) return t.X(i, at // low, at % low) end)
      end}
    end,
  },
}
