-- O = (exp(La - L) A + exp(Lb - L) B), L = log(exp(La) + exp(Lb)): two answers of attention over different keys and the logarithms of
-- their sums become one, as ring attention does after each step, and prefix caching with a cascade of prefixes.
-- attention_merge_all: O = sum over s of exp(Lse[s] - L) X[s], of s parts at once, of which -inf means a part without keys.
local mr = require "millrace"

return {
  {
    name = "attention_merge",
    program = mr.program("attention_merge", function(p)
      local t, h, d = p:axes("t", "h", "d")
      local A, B = p:input("A", {t, h, d}, "f32"), p:input("B", {t, h, d})
      local La, Lb = p:input("La", {t, h}, "f32"), p:input("Lb", {t, h}, "f32")
      local O, L = p:output("O", {t, h, d}, "f32"), p:output("L", {t, h}, "f32")
      local a, b, la, lb = p:load("load_a", A), p:load("load_b", B), p:load("load_la", La), p:load("load_lb", Lb)
      local o, l = p:task("merge", function()
        local share = mr.sigmoid(lb - la)
        return a + share * (b - a), la - mr.log(1 - share)
      end)
      O:store("store_o", o)
      L:store("store_l", l)
    end),
    small = {{t = 64, h = 4, d = 64}, {t = 37, h = 3, d = 40}},
    usual = {{t = 8192, h = 32, d = 128}},
    formula = function(t)
      local function lse(i, h) return math.log(math.exp(t.La(i, h)) + math.exp(t.Lb(i, h))) end
      return {
        O = function(i, h, d)
          local l = lse(i, h)
          return math.exp(t.La(i, h) - l) * t.A(i, h, d) + math.exp(t.Lb(i, h) - l) * t.B(i, h, d)
        end,
        L = lse,
      }
    end,
  },
  {
    name = "attention_merge_all",
    program = mr.program("attention_merge_all", function(p)
      local s, t, h, d = p:axes("s", "t", "h", "d")
      local X, Lse = p:input("X", {s, t, h, d}), p:input("Lse", {s, t, h}, "f32")
      local O, L = p:output("O", {t, h, d}), p:output("L", {t, h}, "f32")
      local x, lse = p:load("load_x", X), p:load("load_lse", Lse)
      local o, l = p:task("merge", function()
        local most = lse:rowmax(s)
        local w = mr.exp(lse - most)
        local sum = w:rowsum(s)
        return ((x * w):rowsum(s) / sum):to "bf16", most + mr.log(sum)
      end)
      O:store("store_o", o)
      L:store("store_l", l)
    end),
    small = {{s = 4, t = 32, h = 4, d = 64}, {s = 3, t = 11, h = 2, d = 40}},
    usual = {{s = 8, t = 2048, h = 32, d = 128}},
    fill = {Lse = function(_, s, t, h) return (s + t) % 5 == 1 and s > 0 and -math.huge or (s * 3 + t + h) % 7 / 2 end},
    formula = function(t, sizes)
      local function lse(i, h)
        local sum = 0
        for s = 0, sizes.s - 1 do sum = sum + math.exp(t.Lse(s, i, h)) end
        return math.log(sum)
      end
      return {
        O = function(i, h, d)
          local l, sum = lse(i, h), 0
          for s = 0, sizes.s - 1 do sum = sum + math.exp(t.Lse(s, i, h) - l) * t.X(s, i, h, d) end
          return sum
        end,
        L = lse,
      }
    end,
  },
}
