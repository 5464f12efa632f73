-- Pairs of elements of queries and keys, rotated by angles that grow with the position: (a, b) becomes (a cos - b sin,
-- b cos + a sin), where cos and sin are those of row Position[t] and of the number of the pair.
--
-- RoPE (Su et al., 2021). The pairs are elements of both halves of a head in Llama, Qwen and Mistral (rope_halves), and neighbours
-- in GPT-J and DeepSeek (rope_neighbours). Cosines and sines are tables, or computed of angle position / base^(2 j / d) (rope_angles).
local mr = require "millrace"

local function tables(p, t, d)
  local position, j = p:axis("position", p.positions or 4096), p:axis("j", d // 2)
  local Position = p:input("Position", {t}, "i32")
  return j, p:input("Cos", {position, j}, "f32"), p:input("Sin", {position, j}, "f32"), p:load("load_position", Position)
end

local function position(sizes, t) return (t * 5 + 3) % (sizes.positions or 4096) end

return {
  {
    name = "rope_halves",
    program = mr.program("rope_halves", function(p)
      local t, h, d = p:axes("t", "h", "d")
      local X, Y = p:input("X", {t, h, d}), p:output("Y", {t, h, d})
      local j, Cos, Sin, row = tables(p, t, d.size)
      local a, b = p:load("load_a", X, {t, h, j}), p:load("load_b", X, {t, h, j + d.size // 2})
      local cos, sin = p:load("load_cos", Cos, {row, j}), p:load("load_sin", Sin, {row, j})
      local first, second = p:task("rotate", function() return a * cos - b * sin, b * cos + a * sin end)
      Y:store("store_a", first, {t, h, j})
      Y:store("store_b", second, {t, h, j + d.size // 2})
    end),
    small = {{t = 20, h = 3, d = 64, positions = 100}},
    usual = {{t = 8192, h = 40, d = 128}, {t = 128, h = 80, d = 128}},
    fill = {Position = position},
    formula = function(T, sizes)
      local half = sizes.d // 2
      return {Y = function(t, h, d)
        local at, j = T.Position(t), d % half
        return T.X(t, h, d) * T.Cos(at, j) + (d < half and -T.X(t, h, d + half) or T.X(t, h, d - half)) * T.Sin(at, j)
      end}
    end,
  },
  {
    name = "rope_neighbours",
    program = mr.program("rope_neighbours", function(p)
      local t, h, d = p:axes("t", "h", "d")
      local X, Y = p:input("X", {t, h, d}), p:output("Y", {t, h, d})
      local _, Cos, Sin, row = tables(p, t, d.size)
      local x, cos, sin = p:load("load_x", X), p:load("load_cos", Cos, {row, d // 2}), p:load("load_sin", Sin, {row, d // 2})
      Y:store("store_y", p:task("rotate", function()
        return x * cos + mr.where((d:index() & 1):eq(0), -sin, sin) * x:at(d, d ~ 1)
      end))
    end),
    small = {{t = 20, h = 3, d = 64, positions = 100}},
    usual = {{t = 8192, h = 40, d = 128}, {t = 4096, h = 128, d = 64}},
    fill = {Position = position},
    formula = function(T)
      return {Y = function(t, h, d)
        local at, j = T.Position(t), d // 2
        return T.X(t, h, d) * T.Cos(at, j) + (d % 2 == 0 and -T.X(t, h, d + 1) or T.X(t, h, d - 1)) * T.Sin(at, j)
      end}
    end,
  },
  {
    name = "rope_angles",
    program = mr.program("rope_angles", function(p)
      local t, h, d = p:axes("t", "h", "d")
      local half = d.size // 2
      local j, slope = p:axis("j", half), -math.log(p:option("base", "number", 10000.0), 2) / half
      local X, Position, Y = p:input("X", {t, h, d}), p:input("Position", {t}, "i32"), p:output("Y", {t, h, d})
      local a, b = p:load("load_a", X, {t, h, j}), p:load("load_b", X, {t, h, j + half})
      local position = p:load("load_position", Position)
      local first, second = p:task("rotate", function()
        local angle = position * mr.exp2(j:index() * slope)
        local cos, sin = angle:cos(), angle:sin()
        return a * cos - b * sin, b * cos + a * sin
      end)
      Y:store("store_a", first, {t, h, j})
      Y:store("store_b", second, {t, h, j + half})
    end),
    small = {{t = 20, h = 3, d = 64}, {t = 9, h = 2, d = 32, base = 500000.0}},
    usual = {{t = 8192, h = 40, d = 128}, {t = 128, h = 80, d = 128}},
    fill = {Position = position},
    formula = function(T, sizes)
      local half = sizes.d // 2
      return {Y = function(t, h, d)
        local angle = T.Position(t) * (sizes.base or 10000.0) ^ -(d % half / half)
        local other = d < half and -T.X(t, h, d + half) or T.X(t, h, d - half)
        return T.X(t, h, d) * math.cos(angle) + other * math.sin(angle)
      end}
    end,
  },
}
