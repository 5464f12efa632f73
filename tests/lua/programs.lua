-- Programs of many kinds that are not shipped, for the tests: `dofile(...)(check)` calls
-- check(name, sizes, tiles, body, formula) for each. `body` is the program's, its output Y; the
-- formula gives all of Y from the sizes and the inputs, which are functions of positions.
local mr = require "millrace"

local exp2, where = mr.exp2, mr.where
local rowsum, rowmax, rowmin, cumsum, cummax = mr.rowsum, mr.rowmax, mr.rowmin, mr.cumsum, mr.cummax

-- f at every position of a box, the last index fastest.
local function over(n, ...)
  local sizes, f = {...}, select(-1, ...)
  local out, at = {}, {}
  local function walk(d)
    if d > n then
      out[#out + 1] = f(table.unpack(at, 1, n))
      return
    end
    for i = 0, sizes[d] - 1 do at[d] = i; walk(d + 1) end
  end
  walk(1)
  return out
end

local function sum(n, f)
  local s = 0
  for i = 0, n - 1 do s = s + f(i) end
  return s
end

return function(check)

-- Normalisation: several passes over a row ------------------------------------------------------

check("rmsnorm", {m = 13, n = 150}, {{m = 4, n = 32}, {m = 8, n = 7}}, function(p)
  local m, n = p:axes("m", "n")
  local X, W, Y = p:input("X", {m, n}), p:input("W", {n}), p:output("Y", {m, n})
  local ss = p:carry("ss", {m}, 0)
  p:loop(n, function()
    local x = p:load("load_x", X)
    ss:add(rowsum(x * x, n))
  end)
  local scale = mr.rsqrt(ss / n.size + 1e-5)
  p:loop(n, function()
    Y:store((p:load("load_again", X) * scale * p:load(W)):to "bf16")
  end)
end, function(z, t)
  return over(2, z.m, z.n, function(i, j)
    local square = sum(z.n, function(k) return t.X(i, k) ^ 2 end)
    return t.X(i, j) * t.W(j) / math.sqrt(square / z.n + 1e-5)
  end)
end)

check("layernorm", {m = 6, n = 70}, {{m = 4, n = 32}, {n = 9}}, function(p)
  local m, n = p:axes("m", "n")
  local X, G, B = p:input("X", {m, n}), p:input("G", {n}), p:input("B", {n})
  local Y = p:output("Y", {m, n})
  local total, square = p:carry("total", {m}, 0), p:carry("square", {m}, 0)
  p:loop(n, function() total:add(p:load(X):rowsum(n)) end)
  local mean = total / n.size
  p:loop(n, function()
    local x = p:load(X) - mean
    square:add((x * x):rowsum(n))
  end)
  local inv = mr.rsqrt(square / n.size + 1e-5)
  p:loop(n, function() Y:store((p:load(X) - mean) * inv * p:load(G) + p:load(B)) end)
end, function(z, t)
  return over(2, z.m, z.n, function(i, j)
    local mean = sum(z.n, function(k) return t.X(i, k) end) / z.n
    local var = sum(z.n, function(k) return (t.X(i, k) - mean) ^ 2 end) / z.n
    return (t.X(i, j) - mean) / math.sqrt(var + 1e-5) * t.G(j) + t.B(j)
  end)
end)

-- The complete row in one tile, and online in two passes.
local function softmax(z, t)
  return over(2, z.m, z.n, function(i, j)
    return math.exp(t.X(i, j)) / sum(z.n, function(k) return math.exp(t.X(i, k)) end)
  end)
end
check("softmax_rows", {m = 9, n = 100}, {{m = 4}}, function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m, n})
  local x = p:load(X)
  local e = mr.exp(x - rowmax(x, n))
  Y:store(e / rowsum(e, n))
end, softmax)
check("softmax_online", {m = 9, n = 100}, {{m = 4, n = 16}}, function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m, n})
  local mx, l = p:carry("mx", {m}, -math.huge), p:carry("l", {m}, 0)
  p:loop(n, function()
    local x = p:load(X)
    p:task("online", function()
      local new = mr.max(mx, rowmax(x, n))
      l:set(l * mr.exp(mx - new) + rowsum(mr.exp(x - new), n))
      mx:set(new)
    end)
  end)
  p:loop(n, function() Y:store(mr.exp(p:load(X) - mx) / l) end)
end, softmax)

-- Scans -----------------------------------------------------------------------------------------

-- y[t] = a[t] y[t-1] + x[t] with a = 2^g: within a tile y = 2^c (y_before + cumsum(x 2^-c)), where
-- c is the running sum of g.
check("linear_recurrence", {b = 3, t = 50, d = 5}, {{t = 8, d = 2}, {t = 7, d = 3}}, function(p)
  local b, t, d = p:axes("b", "t", "d")
  local G, X, Y = p:input("G", {b, t, d}), p:input("X", {b, t, d}), p:output("Y", {b, t, d})
  p:batch(b)
  local state = p:carry("state", {d}, 0)
  p:loop(t, function()
    local g, x = p:load(G), p:load(X)
    local y = p:task("scan", function()
      local c = cumsum(g, t)
      local y = exp2(c) * (state + cumsum(x * exp2(-c), t))
      local total = rowsum(g, t)
      state:set(exp2(total) * (state + rowsum(x * exp2(-c), t)))
      return y
    end)
    Y:store(y)
  end)
end, function(z, t)
  local last = {}
  return over(3, z.b, z.t, z.d, function(b, i, d)
    local y = (i > 0 and last[d] or 0) * 2 ^ t.G(b, i, d) + t.X(b, i, d)
    last[d] = y
    return y
  end)
end)

-- y[t] = y[t-1] / 2 + sum over d of x[t,d], one t after the other: a tile of several has no meaning.
check("steps", {b = 3, t = 11, d = 7}, {{d = 2}, {d = 3, t = 1}}, function(p)
  local b, t, d = p:axes("b", "t", "d")
  local X, Y = p:input("X", {t, b, d}), p:output("Y", {t, b})
  local state = p:carry("state", {b}, 0)
  p:loop(t, {batch = true}, function()
    local total = p:carry("total", {b}, 0)
    p:loop(d, function() total:add(rowsum(p:load("load_x", X), d)) end)
    p:task("step", function() state:set(state * 0.5 + total + t:index() * 0) end)
    Y:store(state)
  end)
end, function(z, t)
  local last = {}
  return over(2, z.t, z.b, function(i, b)
    last[b] = (last[b] or 0) / 2 + sum(z.d, function(d) return t.X(i, b, d) end)
    return last[b]
  end)
end)

-- A product of blocks, each with its scale, and upto a block of its row: X and W have an axis that no value has.
check("scaled_blocks", {m = 9, n = 6, k = 20}, {{m = 4, n = 4}, {n = 5, i = 4}}, function(p)
  local m, n, k = p:axes("m", "n", "k")
  local kb, i = p:axis("kb", k.size // 4), p:axis("i", 4)
  local X, W, S, Y = p:input("X", {m, k}), p:input("W", {n, k}), p:input("S", {kb, m}), p:output("Y", {m, n})
  local y = p:carry("y", {m, n}, 0)
  p:loop(kb, {batch = true, upto = m // 2}, function()
    local part = p:mma(p:load(X, {m, kb * 4 + i}), p:load(W, {n, kb * 4 + i}))
    local s = p:load(S)
    p:task("scale", function() y:set(y + where(kb:index():le(m:index() >> 1), part * s, 0)) end)
  end)
  Y:store(y)
end, function(z, t)
  return over(2, z.m, z.n, function(r, c)
    return sum(math.min(z.k // 4, r // 2 + 1), function(kb)
      return t.S(kb, r) * sum(4, function(i) return t.X(r, kb * 4 + i) * t.W(c, kb * 4 + i) end)
    end)
  end)
end)

-- How far a row is below its running maximum, tile by tile.
check("drawdown", {m = 5, n = 60}, {{n = 16, m = 2}, {n = 11}}, function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m, n})
  local top = p:carry("top", {m}, -math.huge)
  p:loop(n, function()
    local x = p:load(X)
    Y:store(mr.max(top, cummax(x, n)) - x)
    top:set(mr.max(top, rowmax(x, n)))
  end)
end, function(z, t)
  local top
  return over(2, z.m, z.n, function(i, j)
    top = j == 0 and t.X(i, 0) or math.max(top, t.X(i, j))
    return top - t.X(i, j)
  end)
end)

-- Products --------------------------------------------------------------------------------------

check("outer", {b = 3, m = 20, n = 33}, {{m = 8, n = 16}}, function(p)
  local b, m, n = p:axes("b", "m", "n")
  local U, V, Y = p:input("U", {b, m}), p:input("V", {b, n}), p:output("Y", {b, m, n})
  p:batch(b)
  Y:store(p:load(U) * p:load(V))
end, function(z, t)
  return over(3, z.b, z.m, z.n, function(b, i, j) return t.U(b, i) * t.V(b, j) end)
end)

-- Y = (A B) C, the first product by tiles of its reduction, then used as an operand.
local tiles = {{m = 8, k = 16, n = 8}, {m = 16, k = 7}}
check("chain", {m = 21, k = 40, r = 12, n = 30}, tiles, function(p)
  local m, k, r, n = p:axes("m", "k", "r", "n")
  local A, B, C = p:input("A", {m, k}), p:input("B", {k, r}), p:input("C", {r, n})
  local Y = p:output("Y", {m, n})
  local ab = p:carry("ab", {m, r}, 0)
  p:loop(k, function() ab:add(p:mma("mma_ab", p:load(A), p:load(B))) end)
  Y:store(p:mma("mma_abc", ab:to "bf16", p:load(C)):to "bf16")
end, function(z, t)
  return over(2, z.m, z.n, function(i, j)
    return sum(z.r, function(r)
      return sum(z.k, function(k) return t.A(i, k) * t.B(k, r) end) * t.C(r, j)
    end)
  end)
end)

-- Gated MLP layer: two products of one loop share an operand.
check("swiglu", {m = 18, n = 20, k = 50}, {{m = 8, n = 8, k = 16}}, function(p)
  local m, n, k = p:axes("m", "n", "k")
  local X, G, U = p:input("X", {m, k}), p:input("G", {n, k}), p:input("U", {n, k})
  local Y = p:output("Y", {m, n})
  local gate, up = p:carry("gate", {m, n}, 0), p:carry("up", {m, n}, 0)
  p:loop(k, function()
    local x = p:load(X)
    gate:add(p:mma("mma_gate", x, p:load(G)))
    up:add(p:mma("mma_up", x, p:load(U)))
  end)
  Y:store((mr.silu(gate) * up):to "bf16")
end, function(z, t)
  return over(2, z.m, z.n, function(i, j)
    local g = sum(z.k, function(k) return t.X(i, k) * t.G(j, k) end)
    return g / (1 + math.exp(-g)) * sum(z.k, function(k) return t.X(i, k) * t.U(j, k) end)
  end)
end)

-- Rows in groups of equal size, each with weights of its own, several of which share a bias.
check("grouped_gemm", {e = 4, r = 10, n = 15, k = 24}, {{r = 4, n = 8, k = 8}}, function(p)
  local e, r, n, k = p:axes("e", "r", "n", "k")
  local m, half = p:axis("m", e.size * r.size), p:axis("half", e.size // 2)
  local A, B, bias = p:input("A", {m, k}), p:input("B", {e, n, k}), p:input("bias", {half, n})
  local Y = p:output("Y", {m, n})
  p:batch(e)
  local row, c = e * r.size + r, p:carry("c", {r, n}, 0)
  p:loop(k, function() c:add(p:mma(p:load(A, {row, k}), p:load(B))) end)
  Y:store(c + p:load(bias, {e // 2, n}), {row, n})
end, function(z, t)
  return over(2, z.e * z.r, z.n, function(i, j)
    local e = i // z.r
    return sum(z.k, function(k) return t.A(i, k) * t.B(e, j, k) end) + t.bias(e // 2, j)
  end)
end)

check("fp8_gemm", {m = 19, n = 23, k = 64}, {{m = 8, n = 16, k = 32}}, function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B = p:input("A", {m, k}, "e4m3"), p:input("B", {n, k}, "e5m2")
  local sa, sb = p:input("sa", {m}, "f32"), p:input("sb", {n}, "f32")
  local Y, c = p:output("Y", {m, n}), p:carry("c", {m, n}, 0)
  p:loop(k, function() c:add(p:mma(p:load(A), p:load(B))) end)
  Y:store((c * p:load(sa) * p:load(sb)):to "bf16")
end, function(z, t)
  return over(2, z.m, z.n, function(i, j)
    return sum(z.k, function(k) return t.A(i, k) * t.B(j, k) end) * t.sa(i) * t.sb(j)
  end)
end)

-- The reduction split over the grid: partial sums pass through a temporary.
check("split_k", {m = 12, n = 14, k = 100}, {{m = 8, n = 8, kk = 16}, {m = 5, kk = 6}}, function(p)
  local m, n, k = p:axes("m", "n", "k")
  local s = p:axis("s", 4)
  local kk = p:axis("kk", (k.size + s.size - 1) // s.size)
  local A, B = p:input("A", {m, k}), p:input("B", {n, k})
  local Part, Y = p:temp("Part", {s, m, n}, "f32"), p:output("Y", {m, n})
  p:phase("part", function()
    p:batch(s)
    local c = p:carry("c", {m, n}, 0)
    p:loop(kk, function()
      c:add(p:mma(p:load(A, {m, s * kk.size + kk}), p:load(B, {n, s * kk.size + kk})))
    end)
    Part:store(c)
  end)
  p:phase("total", function()
    local c = p:carry("total", {m, n}, 0)
    p:loop(s, function() c:add(rowsum(p:load(Part), s)) end)
    Y:store(c)
  end)
end, function(z, t)
  return over(2, z.m, z.n, function(i, j)
    return sum(z.k, function(k) return t.A(i, k) * t.B(j, k) end)
  end)
end)

-- A band of a triangular product: loops bounded on both sides.
tiles = {{i = 8, j = 8}, {i = 16, j = 4, d = 4}, {i = 3, j = 16}}
check("band", {n = 45, d = 6}, tiles, function(p)
  local n, d = p:axes("n", "d")
  local i, j, width = p:axis("i", n.size), p:axis("j", n.size), 9
  local W, X, Y = p:input("W", {i, j}), p:input("X", {j, d}), p:output("Y", {i, d})
  local y = p:carry("y", {i, d}, 0)
  p:loop(j, {from = i - width, upto = i}, function()
    local inside = j:index():le(i:index()) & j:index():ge(i:index() - width)
    y:add(p:mma(where(inside, p:load(W), 0):to "bf16", p:load(X)))
  end)
  Y:store(y)
end, function(z, t)
  return over(2, z.n, z.d, function(i, x)
    local s = 0
    for j = math.max(i - 9, 0), i do s = s + t.W(i, j) * t.X(j, x) end
    return s
  end)
end)

-- Windows ---------------------------------------------------------------------------------------

local function padded(t, h, w)
  return function(n, y, x, c)
    return y >= 0 and y < h and x >= 0 and x < w and t(n, y, x, c) or 0
  end
end

tiles = {{n = 1, p = 4, q = 4, c = 4, r = 1, s = 1}, {p = 3, r = 2}}
check("depthwise", {n = 2, h = 9, w = 8, c = 10}, tiles, function(p)
  local n, h, w, c = p:axes("n", "h", "w", "c")
  local r, s, y, x = p:axis("r", 3), p:axis("s", 3), p:axis("p", h.size), p:axis("q", w.size)
  local X, F, Y = p:input("X", {n, h, w, c}), p:input("F", {r, s, c}), p:output("Y", {n, y, x, c})
  local acc = p:carry("acc", {n, y, x, c}, 0)
  p:loop({r, s}, function()
    local v = p:load(X, {n, y + r - 1, x + s - 1, c}) * p:load(F)
    acc:add(rowsum(rowsum(v, r), s))
  end)
  Y:store(acc)
end, function(z, t)
  local X = padded(t.X, z.h, z.w)
  return over(4, z.n, z.h, z.w, z.c, function(n, y, x, c)
    return sum(3, function(r)
      return sum(3, function(s) return X(n, y + r - 1, x + s - 1, c) * t.F(r, s, c) end)
    end)
  end)
end)

-- Stride 2, window 3, padding 1: what lies outside is the least element, not zero.
check("max_pool", {n = 2, h = 11, w = 8, c = 6}, {{n = 1, p = 2, q = 3, c = 4}}, function(p)
  local n, h, w, c = p:axes("n", "h", "w", "c")
  local r, s = p:axis("r", 3), p:axis("s", 3)
  local y, x = p:axis("p", (h.size - 1) // 2 + 1), p:axis("q", (w.size - 1) // 2 + 1)
  local X, Y = p:input("X", {n, h, w, c}), p:output("Y", {n, y, x, c})
  local v = p:load(X, {n, y * 2 + r - 1, x * 2 + s - 1, c})
  local i, j = y:index() * 2 + r:index() - 1, x:index() * 2 + s:index() - 1
  local inside = i:ge(0) & i:lt(h.size) & j:ge(0) & j:lt(w.size)
  Y:store(rowmax(rowmax(where(inside, v, -math.huge), r), s))
end, function(z, t)
  return over(4, z.n, (z.h + 1) // 2, (z.w + 1) // 2, z.c, function(n, y, x, c)
    local top = -math.huge
    for i = math.max(2 * y - 1, 0), math.min(2 * y + 1, z.h - 1) do
      for j = math.max(2 * x - 1, 0), math.min(2 * x + 1, z.w - 1) do
        top = math.max(top, t.X(n, i, j, c))
      end
    end
    return top
  end)
end)

-- Words -----------------------------------------------------------------------------------------

-- Bits by hand: bytes of a word, its sign bit, and their parity, in integers.
check("bits", {m = 12, n = 20}, {{m = 8, n = 8}}, function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}, "i32"), p:output("Y", {m, n}, "i32")
  local x = p:load(X)
  local bytes = (x & 255) + (x >> 8 & 255) + (x >> 16 & 255) + (x >> 24 & 255)
  Y:store(where((x ~ bytes):lt(0) & ~(bytes & 1):eq(0), ~bytes, bytes | (n:index() << 12)))
end, function(z, t)
  return over(2, z.m, z.n, function(i, j)
    local x = math.tointeger(t.X(i, j)) & 0xffffffff
    local bytes = (x & 255) + (x >> 8 & 255) + (x >> 16 & 255) + (x >> 24)
    return x >> 31 == 1 and bytes % 2 == 1 and -bytes - 1 or bytes | j << 12
  end)
end)

-- Four signed bytes in a word, products in integers, one scale a row.
check("int8_gemm", {m = 17, n = 20, k = 48}, {{m = 8, n = 8, k = 16}}, function(p)
  local m, n, k = p:axes("m", "n", "k")
  local word = p:axis("word", k.size // 4)
  local A, W = p:input("A", {m, k}, "i8"), p:input("W", {n, word}, "i32")
  local S, Y, c = p:input("S", {m}, "f32"), p:output("Y", {m, n}), p:carry("c", {m, n}, 0)
  p:loop(k, function()
    c:add(p:mma(p:load(A), mr.unpack(p:load(W), word, k, "i8")))
  end)
  Y:store(c * p:load(S))
end, function(z, t)
  return over(2, z.m, z.n, function(i, j)
    return t.S(i) * sum(z.k, function(k)
      local b = math.tointeger(t.W(j, k // 4)) >> (k % 4 * 8) & 255
      return t.A(i, k) * (b < 128 and b or b - 256)
    end)
  end)
end)

-- The least and the spread of every row, selected by the row's own index.
check("rows_of_two_kinds", {m = 15, n = 40}, {{m = 4, n = 16}, {n = 9}}, function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m})
  local least, most = p:carry("least", {m}, math.huge), p:carry("most", {m}, -math.huge)
  p:loop(n, function()
    local x = p:load(X)
    least:set(mr.min(least, rowmin(x, n)))
    most:set(mr.max(most, rowmax(x, n)))
  end)
  Y:store(where((m:index() & 1):eq(0), least, most - least))
end, function(z, t)
  return over(1, z.m, function(i)
    local least, most = math.huge, -math.huge
    for j = 0, z.n - 1 do least, most = math.min(least, t.X(i, j)), math.max(most, t.X(i, j)) end
    return i % 2 == 0 and least or most - least
  end)
end)

end
