-- programs.lua - small tile programs that are not shipped: what schedules get wrong.
local mr = require "millrace"
local exp2, max, rowsum, rowmax = mr.exp2, mr.max, mr.rowsum, mr.rowmax

local P = {}

-- C = A B^T, every row divided by the norm of A's: a reduction of an operand of the product.
P.normed = mr.program("normed", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n})
  local c, squares = p:carry("c", {m, n}, 0), p:carry("squares", {m}, 0)
  p:loop(k, function()
    local a = p:load("load_a", A)
    p:task("square", function()
      local x = a:to "f32"
      squares:add(rowsum(x * x, k))
    end)
    c:add(p:mma("mma", a, p:load("load_b", B)))
  end)
  C:store("store_c", p:task("scale", function()
    return (c * mr.rsqrt(squares * (1 / k.size) + 1e-3)):to "bf16"
  end))
end)

-- A product in blocks of what is contracted, each of which is scaled before it is added to the sums: by a scale for each row
-- of one operand, and by one for all.
P.scaled = mr.program("scaled", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local b, i = p:axis("b", (k.size + 63) // 64), p:axis("i", 64)
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n})
  local SA, S = p:input("SA", {b, m}, "f32"), p:input("S", {b}, "f32")
  local c = p:carry("c", {m, n}, 0)
  p:loop(b, {batch = true}, function()
    local part = p:mma("mma", p:load("load_a", A, {m, b * 64 + i}), p:load("load_b", B, {n, b * 64 + i}))
    local sa, s = p:load("load_sa", SA), p:load("load_s", S)
    p:task("scale", function() c:set(c + part * sa * s) end)
  end)
  C:store("store_c", p:task("convert", function() return c:to "bf16" end))
end)

-- Softmax in two passes over the keys: the second loop reads what the first one made.
P.two_pass = mr.program("two_pass", function(p)
  local m, n, d = p:axes("m", "n", "d")
  local Q, K, V = p:input("Q", {m, d}), p:input("K", {n, d}), p:input("V", {n, d})
  local O = p:output("O", {m, d})
  local q = p:load("load_q", Q)
  local mx, l, o = p:carry("mx", {m}, -math.huge), p:carry("l", {m}, 0), p:carry("o", {m, d}, 0)
  p:loop(n, function()
    local s = p:mma("mma_first", q, p:load("load_k1", K))
    p:task("highest", function() mx:set(max(mx, rowmax(s, n))) end)
  end)
  p:loop(n, function()
    local s = p:mma("mma_second", q, p:load("load_k2", K))
    local pr = p:task("weights", function()
      local pr = exp2(s - mx)
      l:set(l + rowsum(pr, n))
      return pr:to "bf16"
    end)
    o:add(p:mma("mma_v", pr, p:load("load_v2", V)))
  end)
  O:store("store_o", p:task("divide", function() return (o / l):to "bf16" end))
end)

-- silu(A G) * (A H): two accumulators, one operand read by both products.
P.gated = mr.program("gated", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, G, H = p:input("A", {m, k}), p:input("G", {k, n}), p:input("H", {k, n})
  local C = p:output("C", {m, n}, "f32")
  local g, h = p:carry("g", {m, n}, 0), p:carry("h", {m, n}, 0)
  p:loop(k, function()
    local a = p:load("load_a", A)
    g:add(p:mma("mma_g", a, p:load("load_g", G)))
    h:add(p:mma("mma_h", a, p:load("load_h", H)))
  end)
  C:store("store_c", p:task("gate", function() return mr.silu(g) * h end))
end)

-- relu(A B^T) V with the hidden axis in tiles: a loop inside a loop.
P.mlp = mr.program("mlp", function(p)
  local m, n, k, d = p:axes("m", "n", "k", "d")
  local A, B, V = p:input("A", {m, k}), p:input("B", {n, k}), p:input("V", {n, d})
  local O = p:output("O", {m, d})
  local o = p:carry("o", {m, d}, 0)
  p:loop(n, function()
    local c = p:carry("c", {m, n}, 0)
    p:loop(k, function()
      c:add(p:mma("mma_in", p:load("load_a", A), p:load("load_b", B)))
    end)
    local h = p:task("relu", function() return max(c, 0):to "bf16" end)
    o:add(p:mma("mma_out", h, p:load("load_v", V)))
  end)
  O:store("store_o", p:task("convert", function() return o:to "bf16" end))
end)

-- An accumulation that later iterations read back: `rows` sets it to more before a product
-- adds to it, and by how much its square has grown is the first operand of another product.
P.recurrent = mr.program("recurrent", function(p)
  local m, n, k, d = p:axes("m", "n", "k", "d")
  local A, B, V = p:input("A", {m, k}), p:input("B", {n, k}), p:input("V", {n, d})
  local O = p:output("O", {m, d})
  local c, o = p:carry("c", {m, n}, 0), p:carry("o", {m, d}, 0)
  local v = p:load("load_v", V)
  p:loop(k, function()
    local a = p:load("load_a", A)
    local old = p:task("rows", function()
      local old = c + 0
      c:set(c + rowsum(a:to "f32", k))
      return old
    end)
    c:add(p:mma("mma_in", a, p:load("load_b", B)))
    local grown = p:task("read", function() return (c * c - old * old):to "bf16" end)
    o:add(p:mma("mma_out", grown, v))
  end)
  O:store("store_o", p:task("convert", function() return o:to "bf16" end))
end)

-- A value that an iteration reads and then overwrites, and that is read after the loop: the
-- product so far, and its square, which is summed up by how much it grows.
P.highest = mr.program("highest", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32")
  local top, sum = p:carry("top", {m, n}, 0), p:carry("sum", {m, n}, 0)
  p:loop(k, function()
    local c = p:mma("mma", p:load("load_a", A), p:load("load_b", B))
    local old = p:task("before", function() return top + 0 end)
    p:task("after", function()
      top:set(old + c)
      sum:add((old * 2 + c) * c)
    end)
  end)
  C:store("store_c", p:task("join", function() return top + sum * 0.25 end))
end)

-- A B^T where only what A has left of the 64th diagonal below the main one counts: the
-- first rows make no iteration.
P.triangle = mr.program("triangle", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32")
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, {upto = m - 64}, function()
    local a = p:load("load_a", A)
    local left = p:task("mask", function()
      return mr.where(k:index():le(m:index() - 64), a:to "f32", 0):to "bf16"
    end)
    c:add(p:mma("mma", left, p:load("load_b", B)))
  end)
  C:store("store_c", p:task("convert", function() return c + 0 end))
end)

-- X and half of Y, no loop at all.
P.blend = mr.program("blend", function(p)
  local m, n = p:axes("m", "n")
  local X, Y, Z = p:input("X", {m, n}), p:input("Y", {n}), p:output("Z", {m, n})
  local x, y = p:load("load_x", X), p:load("load_y", Y)
  Z:store("store_z", p:task("blend", function() return (x:to "f32" + y:to "f32" * 0.5):to "bf16" end))
end)

-- A B^T of one block, scaled and rounded: a product once a tile, no loop.
P.project = mr.program("project", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n})
  local c = p:mma("mma", p:load("load_a", A), p:load("load_b", B))
  C:store("store_c", p:task("scale", function() return (mr.silu(c) * 0.5):to "bf16" end))
end)

-- Running sums along the keys, which go on from tile to tile, weigh the values.
P.scan = mr.program("scan", function(p)
  local m, n, d = p:axes("m", "n", "d")
  local X, V, O = p:input("X", {m, n}), p:input("V", {n, d}), p:output("O", {m, d})
  local sum, o = p:carry("sum", {m}, 0), p:carry("o", {m, d}, 0)
  p:loop(n, function()
    local x = p:load("load_x", X)
    local w = p:task("weigh", function()
      local f = x:to "f32" * 0.125
      local w = (mr.cumsum(f, n) + sum):to "bf16"
      sum:add(rowsum(f, n))
      return w
    end)
    o:add(p:mma("mma", w, p:load("load_v", V)))
  end)
  O:store("store_o", p:task("convert", function() return o:to "bf16" end))
end)

-- Products of g pairs of matrices, each at an address of its own.
P.products_of_parts = mr.program("products", function(p)
  local g, m, n, k = p:axes("g", "m", "n", "k")
  local A, W = p:input("A", {g, m, k}, "bf16", {pointers = g}), p:input("W", {g, n, k}, p.wtype, {pointers = g})
  local C = p:output("C", {g, m, n}, "f32")
  p:batch(g)
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function()
    local w = p:load("load_w", W)
    if p.wtype then w = p:task("dequant", function() return w:to "bf16" end) end
    c:add(p:mma("mma", p:load("load_a", A), w))
  end)
  C:store("store_c", c)
end)

-- A product in one phase, and in a second one twice what a tensor between them keeps of it.
P.two = mr.program("two", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, S, Y = p:input("A", {m, k}), p:input("B", {n, k}), p:temp("S", {m, n}), p:output("Y", {m, n}, "f32")
  p:phase("first", function()
    local acc = p:carry("acc", {m, n}, 0)
    p:loop(k, function() acc:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
    S:store("store_s", p:task("round", function() return acc:to "bf16" end))
  end)
  p:phase("second", function()
    local s = p:load("load_s", S)
    Y:store("store_y", p:task("twice", function() return s:to "f32" * 2 end))
  end)
end)

return P
