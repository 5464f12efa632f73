-- S[m,b] = max(|X[m, 128 b + j]| over j, 1e-4) / 448; Y[m, 128 b + j] = X[m, 128 b + j] / S[m,b], as e4m3: the rows of activations
-- before a product in fp8 with block scales, as DeepSeek-V3 has it. DeepSeek-V4 rounds S up to a power of two.
--
-- by_group: rows sorted by group, such as the expert; Size[g] says how many each has. Y and S have the same rows for each group,
-- zero behind those that the group has.
local mr = require "millrace"

local block = 128

local function quantise(p, x, j)
  local s = mr.max(x:abs():rowmax(j), 1e-4) / 448
  if p:option("round", "boolean") then s = mr.exp2(-mr.floor(-mr.log2(s))) end
  return mr.min(mr.max(x / s, -448), 448):to "e4m3", s
end

-- To the nearest of 3 bits behind the first, of two such to the even one.
local function e4m3(x)
  if x == 0 then return 0 end
  local step = 2.0 ^ (math.max(math.floor(math.log(math.abs(x), 2)), -6) - 3)
  local steps, part = math.modf(math.abs(x) / step)
  if part > 0.5 or part == 0.5 and steps % 2 == 1 then steps = steps + 1 end
  return (x < 0 and -1 or 1) * steps * step
end

local function scale_of(t, sizes, row, b)
  local largest = 1e-4
  for j = b * block, math.min(b * block + block, sizes.n) - 1 do largest = math.max(largest, math.abs(t.X(row, j))) end
  return sizes.round and 2.0 ^ math.ceil(math.log(largest / 448, 2)) or largest / 448
end

return {
  {
    name = "fp8_quantise",
    program = mr.program("fp8_quantise", function(p)
      local m, n = p:axes("m", "n")
      local b, j = p:axis("b", (n.size + block - 1) // block), p:axis("j", block)
      local X, Y, S = p:input("X", {m, n}), p:output("Y", {m, n}, "e4m3"), p:output("S", {m, b}, "f32")
      local x = p:load("load_x", X, {m, b * block + j})
      local y, s = p:task("quantise", function() return quantise(p, x, j) end)
      Y:store("store_y", y, {m, b * block + j})
      S:store("store_s", s)
    end),
    small = {{m = 64, n = 256, dtype = "f32"}, {m = 37, n = 320, round = true}},
    usual = {{m = 8192, n = 8192, dtype = "f32"}, {m = 4096, n = 7168, round = true}},
    formula = function(t, sizes)
      return {
        Y = function(i, j) return e4m3(t.X(i, j) / scale_of(t, sizes, i, j // block)) end,
        S = function(i, b) return scale_of(t, sizes, i, b) end,
      }
    end,
  },
  {
    name = "fp8_quantise_by_column",                          -- of the scales, which a product then loads contiguously along m
    program = mr.program("fp8_quantise_by_column", function(p)
      local m, n = p:axes("m", "n")
      local b, j = p:axis("b", (n.size + block - 1) // block), p:axis("j", block)
      local X, Y, S = p:input("X", {m, n}), p:output("Y", {m, n}, "e4m3"), p:output("S", {b, m}, "f32")
      local x = p:load("load_x", X, {m, b * block + j})
      local y, s = p:task("quantise", function() return quantise(p, x, j) end)
      Y:store("store_y", y, {m, b * block + j})
      S:store("store_s", s)
    end),
    small = {{m = 72, n = 256}},
    usual = {{m = 8192, n = 8192}},
    formula = function(t, sizes)
      return {
        Y = function(i, j) return e4m3(t.X(i, j) / scale_of(t, sizes, i, j // block)) end,
        S = function(b, i) return scale_of(t, sizes, i, b) end,
      }
    end,
  },
  {
    name = "fp8_quantise_by_group",
    program = mr.program("fp8_quantise_by_group", function(p)
      local g, m, n = p:axes("g", "m", "n")
      local r, other = p:axis("r", p:option("rows", "integer", m.size)), p:axis("other", g.size)
      local b, j = p:axis("b", n.size // block), p:axis("j", block)
      local X, Size = p:input("X", {m, n}), p:input("Size", {g}, "i32")
      local Y, S = p:output("Y", {g, r, n}, "e4m3"), p:output("S", {g, r, b}, "f32")
      p:batch(g, b)
      local size, sizes = p:load("load_size", Size), p:load("load_sizes", Size, {other})
      local first = p:task("first", function() return mr.where(other:index():lt(g:index()), sizes, 0):rowsum(other) end)
      local x = p:load("load_x", X, {first + r, b * block + j})
      local y, s = p:task("quantise", function()
        local y, s = quantise(p, x, j)
        local inside = r:index():lt(size)
        return mr.where(inside, y, 0), mr.where(inside, s, 0)
      end)
      Y:store("store_y", y, {g, r, b * block + j})
      S:store("store_s", s)
    end),
    small = {{g = 3, m = 80, n = 256, rows = 48}},
    usual = {{g = 2, m = 8192, n = 8192, rows = 6144}},
    fill = {Size = function(sizes, g) return sizes.g == 2 and ({2048, 6144})[g + 1] or ({30, 2, 48})[g + 1] end},
    formula = function(t, sizes)
      local function row(g, r)
        local first = 0
        for i = 0, g - 1 do first = first + t.Size(i) end
        return r < t.Size(g) and first + r
      end
      return {
        Y = function(g, r, j)
          local i = row(g, r)
          return i and e4m3(t.X(i, j) / scale_of(t, sizes, i, j // block)) or 0
        end,
        S = function(g, r, b)
          local i = row(g, r)
          return i and scale_of(t, sizes, i, b) or 0
        end,
      }
    end,
  },
}
