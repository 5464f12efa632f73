-- Two products with an activation between them, whose result is never stored: dense_gelu_dense, with biases; swiglu_mlp.
local mr = require "millrace"
local sum = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua").sum_below

return {
  {
    name = "dense_gelu_dense",
    program = mr.program("dense_gelu_dense", function(p)
      local m, k, f, n = p:axes("m", "k", "f", "n")
      local X, W1, B1, W2, B2 = p:input("X", {m, k}), p:input("W1", {f, k}), p:input("B1", {f}), p:input("W2", {n, f}), p:input("B2", {n})
      local Y = p:output("Y", {m, n})
      local y = p:carry("y", {m, n}, 0)
      p:loop(f, function()
        local h = p:carry("h", {m, f}, 0)
        p:loop(k, function() h:add(p:mma("mma1", p:load("load_x", X), p:load("load_w1", W1))) end)
        local b = p:load("load_b1", B1)
        local a = p:task("gelu", function()
          local v = h + b
          return (v * 0.5 * (1 + (v * math.sqrt(0.5)):erf())):to "bf16"
        end)
        y:add(p:mma("mma2", a, p:load("load_w2", W2)))
      end)
      local b = p:load("load_b2", B2)
      Y:store(p:task("bias", function() return y + b end))
    end),
    small = {{m = 24, k = 40, f = 50, n = 40}},
    usual = {{m = 8192, k = 256, f = 1024, n = 256}},
    formula = function(t, sizes)
      return {
        Y = function(m, n)
          local function erf(x)
            local s, q = 0, 200
            for k = 0, q - 1 do
              local u = (k + 0.5) / q * x
              s = s + math.exp(-u * u) * x / q
            end
            return s * 2 / math.sqrt(math.pi)
          end
          return sum(function(f)
            local v = sum(function(k) return t.X(m, k) * t.W1(f, k) end, sizes.k) + t.B1(f)
            return v * 0.5 * (1 + erf(v * math.sqrt(0.5))) * t.W2(n, f)
          end, sizes.f) + t.B2(n)
        end,
      }
    end,
  },
  {
    name = "swiglu_mlp",
    program = mr.program("swiglu_mlp", function(p)
      local m, k, f, n = p:axes("m", "k", "f", "n")
      local X, G, U, D, Y = p:input("X", {m, k}), p:input("G", {f, k}), p:input("U", {f, k}), p:input("D", {n, f}), p:output("Y", {m, n})
      local x, y = p:load("load_x", X), p:carry("y", {m, n}, 0)
      p:loop(f, function()
        local g, u = p:mma("gate", x, p:load("load_g", G)), p:mma("up", x, p:load("load_u", U))
        local a = p:task("act", function() return (g:silu() * u):to "bf16" end)
        y:add(p:mma("down", a, p:load("load_d", D)))
      end)
      Y:store(y)
    end),
    small = {{m = 24, k = 40, f = 50, n = 40}},
    usual = {{m = 16384, k = 128, f = 512, n = 128}},
    formula = function(t, sizes)
      return {
        Y = function(m, n)
          return sum(function(f)
            local g, u = sum(function(k) return t.X(m, k) * t.G(f, k) end, sizes.k), sum(function(k)
              return t.X(m, k) * t.U(f, k)
            end, sizes.k)
            return g / (1 + math.exp(-g)) * u * t.D(n, f)
          end, sizes.f)
        end,
      }
    end,
  },
}
