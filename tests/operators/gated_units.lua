-- Y[m,n] = f(X[m,n]) X[m,N+n], N the width of Y: the two halves of a row, of which one is the gate of the other.
--
-- SwiGLU, with f = silu, in Llama, Qwen and DeepSeek; GeGLU, with f = gelu by tanh, in Gemma and T5. The backward pass gives the
-- gradient dX of both halves from dY.
local mr = require "millrace"

local ROOT <const>, CUBE <const> = math.sqrt(2 / math.pi), 0.044715

-- By name: f of a value, f and its slope of a value, f and its slope of a number.
local units = {
  swiglu = {
    f = mr.silu,
    slope = function(a)
      local s = mr.sigmoid(a)
      return a * s, s * (1 + a * (1 - s))
    end,
    number = function(a)
      local s = 1 / (1 + math.exp(-a))
      return a * s, s * (1 + a * (1 - s))
    end,
  },
  geglu = {
    f = mr.gelu,
    slope = function(a)
      local th = mr.tanh(ROOT * (a + CUBE * a * a * a))
      return 0.5 * a * (1 + th), 0.5 * (1 + th) + 0.5 * a * (1 - th * th) * ROOT * (1 + 3 * CUBE * a * a)
    end,
    number = function(a)
      local e = math.exp(-2 * ROOT * (a + CUBE * a^3))
      local th = (1 - e) / (1 + e)
      return 0.5 * a * (1 + th), 0.5 * (1 + th) + 0.5 * a * (1 - th * th) * ROOT * (1 + 3 * CUBE * a * a)
    end,
  },
}

local function forward(name)
  return {
    name = name,
    program = mr.program(name, function(p)
      local m, n = p:axes("m", "n")
      local both = p:axis("both", 2 * n.size)
      local X, Y = p:input("X", {m, both}), p:output("Y", {m, n})
      local a, b = p:load("load_a", X, {m, n}), p:load("load_b", X, {m, n + n.size})
      Y:store("store_y", p:task("gate", function() return units[name].f(a) * b end))
    end),
    small = {{m = 20, n = 72}},
    usual = {{m = 8192, n = 14336}, {m = 64, n = 28672}},
    formula = function(t, sizes)
      return {Y = function(m, n) return units[name].number(t.X(m, n)) * t.X(m, n + sizes.n) end}
    end,
  }
end

local function backward(name)
  return {
    name = name .. "_backward",
    program = mr.program(name .. "_backward", function(p)
      local m, n = p:axes("m", "n")
      local both = p:axis("both", 2 * n.size)
      local X, dY, dX = p:input("X", {m, both}), p:input("dY", {m, n}), p:output("dX", {m, both})
      local a, b, dy = p:load("load_a", X, {m, n}), p:load("load_b", X, {m, n + n.size}), p:load("load_dy", dY)
      local da, db = p:task("gradients", function()
        local f, slope = units[name].slope(a:to "f32")
        return dy * b * slope, dy * f
      end)
      dX:store("store_da", da, {m, n})
      dX:store("store_db", db, {m, n + n.size})
    end),
    small = {{m = 20, n = 72}},
    usual = {{m = 8192, n = 14336}},
    formula = function(t, sizes)
      return {dX = function(m, i)
        local n = i % sizes.n
        local f, slope = units[name].number(t.X(m, n))
        return t.dY(m, n) * (i < sizes.n and t.X(m, n + sizes.n) * slope or f)
      end}
    end,
  }
end

return {forward "swiglu", backward "swiglu", forward "geglu", backward "geglu"}
