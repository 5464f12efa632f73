-- Manifold-constrained hyper-connections (mHC, DeepSeek): a layer has s residual streams X[t,s,:] instead of one. Before it, a product with
-- Fn over all streams of a token, divided by their root mean square, gives three mixes, each with a scale and a bias: Pre[s], by which the
-- streams are added to the layer's input; Post[s], by which its output is added to them; and Comb[i,o], which mixes the streams,
-- made doubly stochastic by rounds of division by the sums of rows and of columns (Sinkhorn and Knopp).
--
-- mhc_pre is a product by tf32, of each stream by itself, and all that follows from it; mhc_post gives the new streams: the sum
-- over i of Comb[t,i,o] X[t,i,h], and Post[t,o] L[t,h], where L is the layer's output. sinkhorn_backward is the gradient dM of M, if
-- R[t,i,o] = exp(M) U[t,i] V[t,o] is doubly stochastic: dM = (dR - x[i] - y[o]) R, where x and y are the solution of
-- x[i] + sum over o of R y[o] = sum over o of R dR and y[o] + sum over i of R x[i] = sum over i of R dR, found by conjugate gradients.
local mr = require "millrace"
local exp, rowmax, rowsum, rsqrt, sigmoid = mr.exp, mr.rowmax, mr.rowsum, mr.rsqrt, mr.sigmoid

local EPS <const>, TINY <const>, ROUNDS <const> = 1e-6, 1e-10, 10

-- A sum of cyclic permutations, whose weights differ with t and have the sum of 1.
local function doubly_stochastic(sizes, t, i, o)
  local n, shift, sum = sizes.n, (o - i) % sizes.n, 0
  for a = 0, n - 1 do sum = sum + 1 + (a * 7 + t) % 5 end
  return (1 + (shift * 7 + t) % 5) / sum
end

return {
  {
    name = "mhc_pre",
    program = mr.program("mhc_pre", function(p)
      local t, s, h = p:axes("t", "s", "h")
      local mixes, three = p:axis("mixes", s.size * (2 + s.size)), p:axis("three", 3)
      local u, v, i, o = p:axis("u", s.size), p:axis("v", s.size), p:axis("i", s.size), p:axis("o", s.size)
      local row, token = p:axis("row", t.size), p:axis("token", t.size)      -- tokens, in phases with tiles of their own
      local X, Fn = p:input("X", {t, s, h}), p:input("Fn", {mixes, s, h}, "f32")
      local Scale, Base = p:input("Scale", {three}, "f32"), p:input("Base", {mixes}, "f32")
      local Mix, Square, Pre = p:temp("Mix", {s, t, mixes}, "f32"), p:temp("Square", {s, t}, "f32"), p:temp("Pre", {t, s}, "f32")
      local Post, Comb = p:output("Post", {t, s}, "f32"), p:output("Comb", {t, i, o}, "f32")
      local Layer = p:output("Layer", {t, h})

      p:phase("product", function()
        p:batch(u)
        local mix, square = p:carry("mix", {t, mixes}, 0), p:carry("square", {t}, 0)
        p:loop(h, function()
          local x, fn = p:load("load_x", X, {t, u, h}), p:load("load_fn", Fn, {mixes, u, h})
          local wide, weights = p:task("convert", function()
            square:add(rowsum(x * x, h))
            return x:to "tf32", fn:to "tf32"
          end)
          mix:add(p:mma("mma", wide, weights))
        end)
        Mix:store("store_mix", mix, {u, t, mixes})
        Square:store("store_square", square, {u, t})
      end)

      p:phase("mixes", function()
        local square = p:load("load_square", Square, {v, row})
        local function part(name, number, index)
          local scale, base = p:load("scale_" .. name, Scale, {number}), p:load("base_" .. name, Base, {index})
          local mix = p:load("mix_" .. name, Mix, {v, row, index})
          return function() return rowsum(mix, v) * rsqrt(rowsum(square, v) / (s.size * h.size) + EPS) * scale + base end
        end
        local pre, post = part("pre", 0, s), part("post", 1, s + s.size)
        local comb = part("comb", 2, i * s.size + o + 2 * s.size)
        local before, after, mixed = p:task("mixes", function()
          local c = comb()
          c = exp(c - rowmax(c, o))
          c = c / rowsum(c, o) + EPS
          c = c / (rowsum(c, i) + EPS)
          for _ = 2, ROUNDS do
            c = c / (rowsum(c, o) + EPS)
            c = c / (rowsum(c, i) + EPS)
          end
          return sigmoid(pre()) + EPS, sigmoid(post()), c
        end)
        Pre:store("store_pre", before, {row, s})
        Post:store("store_post", after, {row, s})
        Comb:store("store_comb", mixed, {row, i, o})
      end)

      p:phase("layer", function()
        local x, pre = p:load("load_streams", X, {token, s, h}), p:load("load_pre", Pre, {token, s})
        Layer:store("store_layer", p:task("add", function() return rowsum(x * pre, s) end), {token, h})
      end)
    end),
    small = {{t = 20, s = 4, h = 64}},
    usual = {{t = 2048, s = 4, h = 4096}, {t = 8192, s = 4, h = 2560}},
    formula = function(T, sizes)
      local s, k, known = sizes.s, sizes.s * sizes.h, {}
      local function mix(t, j)
        if not known[t] then
          local square = 0
          for l = 0, k - 1 do square = square + T.X(t, l // sizes.h, l % sizes.h)^2 end
          known[t] = {scale = 1 / math.sqrt(square / k + EPS)}
        end
        if not known[t][j] then
          local sum = 0
          for l = 0, k - 1 do sum = sum + T.X(t, l // sizes.h, l % sizes.h) * T.Fn(j, l // sizes.h, l % sizes.h) end
          known[t][j] = sum * known[t].scale * T.Scale(j < s and 0 or j < 2 * s and 1 or 2) + T.Base(j)
        end
        return known[t][j]
      end
      local function divide(c, of)  -- by the sums of its rows or columns, by a function that gives positions
        for a = 1, s do
          local sum = EPS
          for b = 1, s do
            local y, x = of(a, b)
            sum = sum + c[y][x]
          end
          for b = 1, s do
            local y, x = of(a, b)
            c[y][x] = c[y][x] / sum
          end
        end
      end
      local function row(a, b) return a, b end
      local function column(a, b) return b, a end
      return {
        Post = function(t, j) return 1 / (1 + math.exp(-mix(t, s + j))) end,
        Layer = function(t, h)
          local sum = 0
          for j = 0, s - 1 do sum = sum + T.X(t, j, h) * (1 / (1 + math.exp(-mix(t, j))) + EPS) end
          return sum
        end,
        Comb = function(t, i, o)
          local c = {}
          for a = 1, s do
            local sum = 0
            c[a] = {}
            for b = 1, s do
              c[a][b] = math.exp(mix(t, 2 * s + (a - 1) * s + b - 1))
              sum = sum + c[a][b]
            end
            for b = 1, s do c[a][b] = c[a][b] / sum + EPS end
          end
          divide(c, column)
          for _ = 2, ROUNDS do
            divide(c, row)
            divide(c, column)
          end
          return c[i + 1][o + 1]
        end,
      }
    end,
  },
  {
    name = "mhc_post",
    program = mr.program("mhc_post", function(p)
      local t, s, h = p:axes("t", "s", "h")
      local i = p:axis("i", s.size)
      local X, L = p:input("X", {t, i, h}), p:input("L", {t, h})
      local Post, Comb = p:input("Post", {t, s}, "f32"), p:input("Comb", {t, i, s}, "f32")
      local Y = p:output("Y", {t, s, h})
      local x, l, post, comb = p:load("load_x", X), p:load("load_l", L), p:load("load_post", Post), p:load("load_comb", Comb)
      Y:store("store_y", p:task("mix", function() return post * l + rowsum(comb * x, i) end))
    end),
    small = {{t = 20, s = 4, h = 64}, {t = 3, s = 4, h = 72}},
    usual = {{t = 4096, s = 4, h = 2560}, {t = 4096, s = 4, h = 7168}},
    formula = function(T, sizes)
      return {Y = function(t, o, h)
        local sum = T.Post(t, o) * T.L(t, h)
        for i = 0, sizes.s - 1 do sum = sum + T.Comb(t, i, o) * T.X(t, i, h) end
        return sum
      end}
    end,
  },
  {
    name = "sinkhorn_backward",
    program = mr.program("sinkhorn_backward", function(p)
      local t, n = p:axes("t", "n")
      local i, o, round = p:axis("i", n.size), p:axis("o", n.size), p:axis("round", 2 * n.size)
      local R, dR, dM = p:input("R", {t, i, o}, "f32"), p:input("dR", {t, i, o}, "f32"), p:output("dM", {t, i, o}, "f32")
      local r, dr = p:load("load_r", R), p:load("load_dr", dR)
      local function scalar(a, b) return rowsum(a, i) + rowsum(b, o) end

      local x, y = p:carry("x", {t, i}, 0), p:carry("y", {t, o}, 0)
      local left, right = p:carry("left", {t, i}, 0), p:carry("right", {t, o}, 0)    -- what is missing of both equations
      local dx, dy = p:carry("dx", {t, i}, 0), p:carry("dy", {t, o}, 0)              -- the direction
      local square = p:carry("square", {t}, 0)
      p:task("begin", function()
        local a, b = rowsum(r * dr, o), rowsum(r * dr, i)
        left:set(a)
        right:set(b)
        dx:set(a)
        dy:set(b)
        square:set(scalar(a * a, b * b))
      end)
      p:loop(round, {batch = true}, function()
        p:task("round", function()
          local a, b = dx + rowsum(r * dy, o), dy + rowsum(r * dx, i)
          local step = square / (scalar(dx * a, dy * b) + TINY)
          local l, s = left - step * a, right - step * b
          local new = scalar(l * l, s * s)
          local keep = new / (square + TINY)
          x:add(step * dx)
          y:add(step * dy)
          left:set(l)
          right:set(s)
          square:set(new)
          dx:set(l + keep * dx)
          dy:set(s + keep * dy)
        end)
      end)
      dM:store("store_dm", p:task("gradient", function() return (dr - x - y) * r end))
    end),
    small = {{t = 20, n = 4}},
    usual = {{t = 65536, n = 16}, {t = 65536, n = 4}},
    fill = {R = doubly_stochastic},
    -- By elimination: x + C y = a, y + C' x = b is (1 - C' C) y = b - C' a, of one dimension less, as x + 1, y - 1 is the same.
    formula = function(T, sizes)
      local n, known = sizes.n, {}
      local function solve(t)
        local a, b, m = {}, {}, {}
        for i = 1, n do
          a[i], b[i] = 0, 0
          for o = 1, n do
            a[i] = a[i] + T.R(t, i - 1, o - 1) * T.dR(t, i - 1, o - 1)
            b[i] = b[i] + T.R(t, o - 1, i - 1) * T.dR(t, o - 1, i - 1)
          end
        end
        for i = 1, n - 1 do
          m[i] = {}
          for o = 1, n - 1 do
            m[i][o] = i == o and 1 or 0
            for l = 1, n do m[i][o] = m[i][o] - T.R(t, l - 1, i - 1) * T.R(t, l - 1, o - 1) end
          end
          m[i][n] = b[i]
          for l = 1, n do m[i][n] = m[i][n] - T.R(t, l - 1, i - 1) * a[l] end
        end
        for c = 1, n - 1 do
          for i = 1, n - 1 do
            local factor = i ~= c and m[i][c] / m[c][c] or 0
            for o = c, n do m[i][o] = m[i][o] - factor * m[c][o] end
          end
        end
        local x, y = {}, {}
        for o = 1, n do y[o] = o < n and m[o][n] / m[o][o] or 0 end
        for i = 1, n do
          x[i] = a[i]
          for o = 1, n do x[i] = x[i] - T.R(t, i - 1, o - 1) * y[o] end
        end
        return {x, y}
      end
      return {dM = function(t, i, o)
        known[t] = known[t] or solve(t)
        return (T.dR(t, i, o) - known[t][1][i + 1] - known[t][2][o + 1]) * T.R(t, i, o)
      end}
    end,
  },
}
