-- wild_programs.lua - small tile programs with what is rare in a plan: axes that one use has in tiles
-- and another contracts, operands in several slices, reductions and scans along every axis. The
-- option dtype is the type of operands.
local mr = require "millrace"
local exp2, rowsum, rowmax = mr.exp2, mr.rowsum, mr.rowmax

local P = {}

-- Rounded to the type of operands.
local function narrow(p, v) return v:to(p.dtype or "bf16") end

-- O = (Q K^T) K: a product contracts the axis of K that the other one's result has.
P.twice = mr.program("twice", function(p)
  local m, n, d = p:axes("m", "n", "d")
  local Q, K, O = p:input("Q", {m, d}), p:input("K", {n, d}), p:output("O", {m, d}, "f32")
  local q, o = p:load("load_q", Q), p:carry("o", {m, d}, 0)
  p:loop(n, function()
    local k = p:load("load_k", K)
    local s = p:mma("mma_qk", q, k)
    o:add(p:mma("mma_pk", p:task("narrow", function() return narrow(p, s * 0.25) end), k))
  end)
  O:store("store_o", p:task("convert", function() return o + 0 end))
end)

-- O = (Q K^T) V: what one product makes is the first operand of the next.
P.qkv = mr.program("qkv", function(p)
  local m, n, d = p:axes("m", "n", "d")
  local Q, K, V, O = p:input("Q", {m, d}), p:input("K", {n, d}), p:input("V", {n, d}), p:output("O", {m, d}, "f32")
  local q, o = p:load("load_q", Q), p:carry("o", {m, d}, 0)
  p:loop(n, function()
    local s = p:mma("mma_qk", q, p:load("load_k", K))
    o:add(p:mma("mma_pv", p:task("narrow", function() return narrow(p, s * 0.25) end), p:load("load_v", V)))
  end)
  O:store("store_o", p:task("convert", function() return o + 0 end))
end)

-- Two products side by side, and one of what both have made.
P.dq = mr.program("dq", function(p)
  local m, n, d = p:axes("m", "n", "d")
  local Q, K, V, G = p:input("Q", {m, d}), p:input("K", {n, d}), p:input("V", {n, d}), p:input("G", {m, d})
  local O = p:output("O", {m, d}, "f32")
  local q, g, o = p:load("load_q", Q), p:load("load_g", G), p:carry("o", {m, d}, 0)
  p:loop(n, function()
    local k, v = p:load("load_k", K), p:load("load_v", V)
    local s, t = p:mma("mma_s", q, k), p:mma("mma_t", g, v)
    o:add(p:mma("mma_o", p:task("both", function() return narrow(p, exp2(s * 0.1) * t) end), k))
  end)
  O:store("store_o", p:task("convert", function() return o + 0 end))
end)

-- Softmax down the columns of a product, and its running sums.
P.columns = mr.program("columns", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32")
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
  local e = p:task("weigh", function() return exp2(c - rowmax(c, m)) end)
  C:store("store_c", p:task("divide", function() return mr.cumsum(e, m) / rowsum(e, m) end))
end)

-- A product of rows and columns that begin elsewhere than the tile: some are beyond either end.
function P.window(rows, columns)
  return mr.program("window", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B = p:input("A", {p:axis("rows", m.size), p:axis("columns", k.size)}), p:input("B", {n, k})
    local C, c = p:output("C", {m, n}, "f32"), p:carry("c", {m, n}, 0)
    p:loop(k, function()
      c:add(p:mma("mma", p:load("load_a", A, {m + rows, k + columns}), p:load("load_b", B)))
    end)
    C:store("store_c", p:task("convert", function() return c + 0 end))
  end)
end

-- A product whose rows go by in a loop; columns are summed up.
P.fold = mr.program("fold", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {n}, "f32")
  local b, c = p:load("load_b", B), p:carry("c", {n}, 0)
  p:loop(m, function()
    local s = p:mma("mma", p:load("load_a", A), b)
    p:task("sum", function() c:add(rowsum(s, m)) end)
  end)
  C:store("store_c", p:task("convert", function() return c + 0 end))
end)

-- Norms of the rows of both operands: one is a row of the result, the other a column.
P.norms = mr.program("norms", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32")
  local c, x, y = p:carry("c", {m, n}, 0), p:carry("x", {m}, 0), p:carry("y", {n}, 0)
  p:loop(k, function()
    local a, b = p:load("load_a", A), p:load("load_b", B)
    p:task("square", function()
      local fa, fb = a:to "f32", b:to "f32"
      x:add(rowsum(fa * fa, k))
      y:add(rowsum(fb * fb, k))
    end)
    c:add(p:mma("mma", a, b))
  end)
  C:store("store_c", p:task("scale", function() return c * mr.rsqrt(x + 1) * mr.rsqrt(y + 1) end))
end)

-- The greatest of the rows of one tensor times those of another, without a product.
P.outer = mr.program("outer", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n}, "f32")
  local a, b = p:load("load_a", A), p:load("load_b", B)
  C:store("store_c", p:task("multiply", function() return rowmax(a:to "f32", k) * rowmax(b:to "f32", k) end))
end)

-- Mean and variance of each row, in one pass.
P.stats = mr.program("stats", function(p)
  local m, n = p:axes("m", "n")
  local X, Mean, Var = p:input("X", {m, n}), p:output("mean", {m}, "f32"), p:output("var", {m}, "f32")
  local sum, squares = p:carry("sum", {m}, 0), p:carry("squares", {m}, 0)
  p:loop(n, function()
    local x = p:load("load_x", X)
    p:task("add_up", function()
      local f = x:to "f32"
      sum:add(rowsum(f, n))
      squares:add(rowsum(f * f, n))
    end)
  end)
  local mean, var = p:task("finish", function()
    local mean = sum * (1 / n.size)
    return mean, squares * (1 / n.size) - mean * mean
  end)
  Mean:store("store_mean", mean)
  Var:store("store_var", var)
end)

-- A reduction or scan, alone or together with its argument.
--   axes     the value's, "m" to "mnk"
--   along    one of them
--   use      "alone", "against" the value, or "carried" on by another sTask that sets it against
--            the value
--   other    another axis, along which the greatest of what there is then is taken
--   product  the value is that of a product over d, with axes "mn"
function P.unary(functions, axes, along, use, other, product)
  return mr.program("unary", function(p)
    local by_name, list = {}, {}
    for name in axes:gmatch "." do
      by_name[name] = p:axes(name)
      list[#list + 1] = by_name[name]
    end
    local x
    if product then
      local d = p:axes "d"
      local a, b = p:load("load_a", p:input("A", {by_name.m, d})), p:load("load_b", p:input("B", {by_name.n, d}))
      x = p:mma("mma", a, b)
    else
      x = p:load("load_x", p:input("X", list))
    end
    local function value() return (product or p.dtype == "f32") and x or x:to "f32" end
    for i, f in ipairs(functions) do
      local left = {}
      for _, axis in ipairs(list) do
        local gone = f:find "^row" and use == "alone" and axis.name == along
        if not gone and axis.name ~= other then left[#left + 1] = axis end
      end
      local y = p:task("t" .. i, function()
        local v = value()
        local y = mr[f](v, by_name[along])
        if use == "against" then y = v - y end
        return other and rowmax(y, by_name[other]) or y
      end)
      if use == "carried" then y = p:task("u" .. i, function() return value() * 0.5 - y end) end
      p:output("Y" .. i, left, "f32"):store("store_" .. i, y)
    end
  end)
end

return P
