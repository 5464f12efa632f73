-- Blocks of models that join what others have one by one:
--   bert_embedding: rows of three tables, added and normalised;
--   squeeze_excite: means of an image's channels, two small layers, and each channel times its gate, in three phases;
--   top2_gating: a softmax over experts, its two greatest, and how many tokens each expert gets (GShard);
--   int8_zero_points: a product of u8 and i8 with scales of rows and columns, and zero points of rows.
local mr = require "millrace"
local formulas = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua")
local sum, once = formulas.sum_below, formulas.once
local exp, where = mr.exp, mr.where

return {
  {
    name = "bert_embedding",
    program = mr.program("bert_embedding", function(p)
      local b, s, d, v = p:axes("b", "s", "d", "v")
      local kinds = p:axis("kinds", 2)
      local Token, Kind = p:input("Token", {b, s}, "i32"), p:input("Kind", {b, s}, "i32")
      local Words, Positions, Kinds = p:input("Words", {v, d}), p:input("Positions", {s, d}), p:input("Kinds", {kinds, d})
      local G, B, Y = p:input("G", {d}), p:input("B", {d}), p:output("Y", {b, s, d})
      local word = p:load("load_word", Words, {p:load("load_token", Token), d})
      local kind = p:load("load_kinds", Kinds, {p:load("load_kind", Kind), d})
      local position, g, bias = p:load("load_position", Positions), p:load("load_g", G), p:load("load_b", B)
      Y:store("store_y", p:task("norm", function()
        local x = word + kind + position
        local away = x - x:rowsum(d) / d.size
        return away * mr.rsqrt((away * away):rowsum(d) / d.size + 1e-12) * g + bias
      end))
    end),
    small = {{b = 2, s = 13, d = 72, v = 50}, {b = 1, s = 1, d = 40, v = 3}},
    usual = {{b = 32, s = 512, d = 1024, v = 30522}},
    formula = function(t, sizes)
      local function x(b, s, d) return t.Words(t.Token(b, s), d) + t.Kinds(t.Kind(b, s), d) + t.Positions(s, d) end
      return {Y = function(b, s, d)
        local mean = sum(function(i) return x(b, s, i) end, sizes.d) / sizes.d
        local square = sum(function(i) return (x(b, s, i) - mean) ^ 2 end, sizes.d) / sizes.d
        return (x(b, s, d) - mean) / math.sqrt(square + 1e-12) * t.G(d) + t.B(d)
      end}
    end,
  },
  {
    name = "squeeze_excite",
    program = mr.program("squeeze_excite", function(p)
      local n, x, c, r = p:axes("n", "x", "c", "r")
      local all, out = p:axis("all", c.size), p:axis("out", c.size)
      local X, W1, W2, Y = p:input("X", {n, x, c}), p:input("W1", {r, all}), p:input("W2", {out, r}), p:output("Y", {n, x, c})
      local Mean, Gate = p:temp("Mean", {n, c}), p:temp("Gate", {n, out})
      p:phase("means", function()
        p:batch(n)
        local total = p:carry("total", {c}, 0)
        p:loop(x, function() total:add(p:load("load_image", X):rowsum(x)) end)
        Mean:store("store_mean", p:task("mean", function() return total / x.size end))
      end)
      p:phase("layers", function()
        local hidden = p:mma("mma_1", p:load("load_mean", Mean, {n, all}), p:load("load_w1", W1))
        local a = p:task("relu", function() return mr.max(hidden, 0):to "bf16" end)
        local gate = p:mma("mma_2", a, p:load("load_w2", W2))
        Gate:store("store_gate", p:task("gate", function() return gate:sigmoid() end))
      end)
      p:phase("scale", function()
        p:batch(n)
        local v, gate = p:load("load_x", X), p:load("load_gate", Gate, {n, c})
        Y:store("store_y", p:task("times", function() return v * gate end))
      end)
    end),
    small = {{n = 3, x = 50, c = 40, r = 10}, {n = 1, x = 1, c = 8, r = 2}},
    usual = {{n = 64, x = 3136, c = 256, r = 16}},
    formula = function(t, sizes)
      local mean = once(function(n, c) return sum(function(x) return t.X(n, x, c) end, sizes.x) / sizes.x end)
      local hidden = once(function(n, r)
        return math.max(0, sum(function(c) return mean(n, c) * t.W1(r, c) end, sizes.c))
      end)
      return {Y = function(n, x, c)
        return t.X(n, x, c) / (1 + math.exp(-sum(function(r) return hidden(n, r) * t.W2(c, r) end, sizes.r)))
      end}
    end,
  },
  {
    name = "top2_gating",
    program = mr.program("top2_gating", function(p)
      local t, e = p:axes("t", "e")
      local X = p:input("X", {t, e}, "f32")
      local W1, W2, I1, I2 = p:output("W1", {t}, "f32"), p:output("W2", {t}, "f32"), p:output("I1", {t}, "i32"), p:output("I2", {t}, "i32")
      local First, Share = p:output("First", {e}, "i32"), p:output("Share", {e}, "f32")
      p:phase("zero", function()
        First:store("zero_first", p:full({e}, 0, "i32"))
        Share:store("zero_share", p:full({e}, 0))
      end)
      p:phase("gate", function()
        local x = p:load("load_x", X)
        local w1, w2, i1, i2, first, share = p:task("choose", function()
          local weight = exp(x - x:rowmax(e))
          local pr = weight / weight:rowsum(e)
          local top = pr:rowmax(e)
          local i = where(pr:eq(top), e:index(), e.size):rowmin(e)
          local others = where(e:index():eq(i), -1, pr)
          local second = others:rowmax(e)
          local j = where(others:eq(second), e:index(), e.size):rowmin(e)
          return top / (top + second), second / (top + second), i, j, where(e:index():eq(i), 1, 0):rowsum(t), pr:rowsum(t)
        end)
        W1:store(w1)
        W2:store(w2)
        I1:store(i1)
        I2:store(i2)
        First:add("add_first", first)
        Share:add("add_share", share)
      end)
    end),
    small = {{t = 70, e = 8}, {t = 1, e = 5}},
    usual = {{t = 32768, e = 64}, {t = 8192, e = 8}},
    formula = function(t, sizes)
      local function ordered(i)
        local list = {}
        for e = 0, sizes.e - 1 do list[e + 1] = e end
        table.sort(list, function(a, b) return t.X(i, a) > t.X(i, b) end)
        return list[1], list[2]
      end
      local function weight(i)
        local a, b = ordered(i)
        return 1 / (1 + math.exp(t.X(i, b) - t.X(i, a)))
      end
      return {
        W1 = weight,
        W2 = function(i) return 1 - weight(i) end,
        I1 = function(i) return (ordered(i)) end,
        I2 = function(i) return select(2, ordered(i)) end,
        First = function(e) return sum(function(i) return ordered(i) == e and 1 or 0 end, sizes.t) end,
        Share = function(e)
          return sum(function(i)
            return math.exp(t.X(i, e)) / sum(function(f) return math.exp(t.X(i, f)) end, sizes.e)
          end, sizes.t)
        end,
      }
    end,
  },
  {
    name = "int8_zero_points",
    program = mr.program("int8_zero_points", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local A, B, C = p:input("A", {m, k}, "u8"), p:input("B", {n, k}, "i8"), p:output("C", {m, n})
      local Sa, Za, Sb, Zb = p:input("Sa", {m}, "f32"), p:input("Za", {m}, "i32"), p:input("Sb", {n}, "f32"), p:input("Zb", {n}, "i32")
      local c, rows, cols = p:carry("c", {m, n}, 0, "i32"), p:carry("rows", {m}, 0, "i32"), p:carry("cols", {n}, 0, "i32")
      p:loop(k, function()
        local a, b = p:load("load_a", A), p:load("load_b", B)
        c:add(p:mma("mma", a, b))
        p:task("sums", function()
          rows:add(a:to "i32":rowsum(k))
          cols:add(b:to "i32":rowsum(k))
        end)
      end)
      local sa, za, sb, zb = p:load("load_sa", Sa), p:load("load_za", Za), p:load("load_sb", Sb), p:load("load_zb", Zb)
      C:store("store_c", p:task("scale", function()
        return (c - za * cols - zb * rows + za * zb * k.size):to "f32" * (sa * sb)
      end))
    end),
    small = {{m = 50, n = 72, k = 96}, {m = 1, n = 40, k = 17}},
    usual = {{m = 4096, n = 4096, k = 4096}},
    fill = {Za = function(_, m) return 120 + m % 9 end, Zb = function(_, n) return n % 5 - 2 end},
    formula = function(t, sizes)
      return {C = function(m, n)
        return t.Sa(m) * t.Sb(n) * sum(function(k) return (t.A(m, k) - t.Za(m)) * (t.B(n, k) - t.Zb(n)) end, sizes.k)
      end}
    end,
  },
}
