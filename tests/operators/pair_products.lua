-- Products over pairs of residues, of AlphaFold's Evoformer:
-- outer_product_mean: Z[i,j,k] = Bias[k] + sum over c, e of W[k,c,e] (sum over s of A[s,i,c] B[s,j,e]) / S: the outer products of two
-- projections of an alignment, meaned over its S sequences, and a linear layer.
-- triangle_multiplication: Z[i,j,c] = G[i,j,c] sum over k of A[i,k,c] B[j,k,c] (outgoing edges) or A[k,i,c] B[k,j,c] (incoming ones):
-- a product for each channel, which is the last dimension.
local mr = require "millrace"

local function triangle(name, incoming)
  return {
    name = name,
    program = mr.program(name, function(p)
      local i, c = p:axes("i", "c")
      local j, k = p:axis("j", i.size), p:axis("k", i.size)
      local A = p:input("A", incoming and {k, i, c} or {i, k, c})
      local B = p:input("B", incoming and {k, j, c} or {j, k, c})
      local G, Z = p:input("G", {i, j, c}), p:output("Z", {i, j, c})
      p:batch(c)
      local z = p:carry("z", {i, j}, 0)
      p:loop(k, function() z:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
      local g = p:load("load_g", G)
      Z:store("store_z", p:task("gate", function() return (z * g):to "bf16" end))
    end),
    small = {{i = 64, c = 4}, {i = 40, c = 8}},
    usual = {{i = 384, c = 128}},
    formula = function(t, sizes)
      return {Z = function(i, j, c)
        local sum = 0
        for k = 0, sizes.i - 1 do
          sum = sum + (incoming and t.A(k, i, c) * t.B(k, j, c) or not incoming and t.A(i, k, c) * t.B(j, k, c))
        end
        return sum * t.G(i, j, c)
      end}
    end,
  }
end

local function outer_product_mean(t, sizes)
  return {Z = function(i, j, k)
    local z = t.Bias(k)
    for c = 0, sizes.c - 1 do
      for e = 0, sizes.c - 1 do
        local sum = 0
        for s = 0, sizes.s - 1 do sum = sum + t.A(s, i, c) * t.B(s, j, e) end
        z = z + t.W(k, c, e) * sum / sizes.s
      end
    end
    return z
  end}
end

return {
  {
    name = "outer_product_mean",
    program = mr.program("outer_product_mean", function(p)
      local s, i, c, k = p:axes("s", "i", "c", "k")
      local j, e, size = p:axis("j", i.size), p:axis("e", c.size), c.size
      local ic, je = p:axis("ic", i.size * size), p:axis("je", i.size * size)
      local A, B, W = p:input("A", {s, i, c}), p:input("B", {s, j, e}), p:input("W", {k, c, e})
      local Bias, Mean, Z = p:input("Bias", {k}), p:temp("Mean", {i, j, c, e}), p:output("Z", {i, j, k})
      p:phase("outer", function()
        local outer = p:carry("outer", {ic, je}, 0)
        p:loop(s, function()
          local a, b = p:load("load_a", A, {s, ic // size, ic % size}), p:load("load_b", B, {s, je // size, je % size})
          outer:add(p:mma("mma_outer", a, b))
        end)
        local mean = p:task("mean", function() return (outer / s.size):to "bf16" end)
        Mean:store("store_mean", mean, {ic // size, je // size, ic % size, je % size})
      end)
      p:phase("linear", function()
        local z = p:carry("z", {i, j, k}, 0)
        p:loop({c, e}, function() z:add(p:mma("mma_linear", p:load("load_mean", Mean), p:load("load_w", W))) end)
        local bias = p:load("load_bias", Bias)
        Z:store("store_z", p:task("bias", function() return (z + bias):to "bf16" end))
      end)
    end),
    small = {{s = 64, i = 8, c = 16, k = 32}, {s = 20, i = 5, c = 8, k = 24}},
    usual = {{s = 512, i = 384, c = 32, k = 128}},
    formula = outer_product_mean,
  },
  {
    name = "outer_product_mean_fused",                         -- in one phase: no product of a pair is stored
    program = mr.program("outer_product_mean_fused", function(p)
      local s, i, c, k = p:axes("s", "i", "c", "k")
      local j, e = p:axis("j", i.size), p:axis("e", c.size)
      local A, B, W = p:input("A", {s, i, c}), p:input("B", {s, j, e}), p:input("W", {k, c, e})
      local Bias, Z = p:input("Bias", {k}), p:output("Z", {i, j, k})
      local outer = p:carry("outer", {i, j, c, e}, 0)
      p:loop(s, function() outer:add(p:mma("mma_outer", p:load("load_a", A), p:load("load_b", B))) end)
      local mean = p:task("mean", function() return (outer / s.size):to "bf16" end)
      local z, bias = p:mma("mma_linear", mean, p:load("load_w", W)), p:load("load_bias", Bias)
      Z:store("store_z", p:task("bias", function() return (z + bias):to "bf16" end))
    end),
    small = {{s = 64, i = 8, c = 16, k = 32}, {s = 20, i = 5, c = 8, k = 24}},
    usual = {{s = 512, i = 384, c = 32, k = 128}},
    formula = outer_product_mean,
  },
  triangle("triangle_outgoing", false),
  triangle("triangle_incoming", true),
  {
    name = "triangle_by_channel",                              -- outgoing edges; between transpositions, matrices of a channel
    program = mr.program("triangle_by_channel", function(p)
      local i, c = p:axes("i", "c")
      local j, k = p:axis("j", i.size), p:axis("k", i.size)
      local x, y, ch = p:axis("x", i.size), p:axis("y", i.size), p:axis("ch", c.size)
      local A, B, G = p:input("A", {i, k, c}), p:input("B", {j, k, c}), p:input("G", {i, j, c})
      local TA, TB, TZ = p:temp("TA", {c, i, k}), p:temp("TB", {c, j, k}), p:temp("TZ", {c, i, j})
      local Z = p:output("Z", {i, j, c})
      p:phase("transpose", function()
        TA:store("store_ta", p:load("load_a", A, {x, y, ch}), {ch, x, y})
        TB:store("store_tb", p:load("load_b", B, {x, y, ch}), {ch, x, y})
      end)
      p:phase("product", function()
        p:batch(c)
        local z = p:carry("z", {i, j}, 0)
        p:loop(k, function() z:add(p:mma("mma", p:load("load_ta", TA), p:load("load_tb", TB))) end)
        TZ:store("store_tz", p:task("round", function() return z:to "bf16" end))
      end)
      p:phase("gate", function()
        local z, g = p:load("load_tz", TZ, {ch, x, y}), p:load("load_g", G, {x, y, ch})
        Z:store("store_z", p:task("gate", function() return (z * g):to "bf16" end), {x, y, ch})
      end)
    end),
    small = {{i = 64, c = 16}, {i = 40, c = 8}},
    usual = {{i = 384, c = 128}},
    formula = function(t, sizes)
      return {Z = function(i, j, c)
        local sum = 0
        for k = 0, sizes.i - 1 do sum = sum + t.A(i, k, c) * t.B(j, k, c) end
        return sum * t.G(i, j, c)
      end}
    end,
  },
}
