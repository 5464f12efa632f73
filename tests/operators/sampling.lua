-- What is done to logits and probabilities before a token is chosen, and the choice (vLLM, SGLang, FlashInfer):
--   top_p_renormalise: the least set of the greatest probabilities whose sum is P or more, divided by it;
--   min_p_sample: temperature, no token with less than MinP of the greatest probability, and the choice by a number U from 0 to 1;
--   rejection_sample: how many tokens of a draft are accepted, and the one behind them, from what the draft gave too little;
--   penalties: of tokens that were there before, by counts of them;
--   token_bitmask: a soft cap, a temperature, and bits of the tokens that a grammar allows;
--   beam_topk: the k best pairs of a beam and a token, by a list that each tile's best enter;
--   two_stage_argmax: greedy choice from parts of a long row.
local mr = require "millrace"
local max, min, exp, where = mr.max, mr.min, mr.exp, mr.where
local sum = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua").sum_below

return {
  {
    name = "top_p_renormalise",
    program = mr.program("top_p_renormalise", function(p)
      local b, v = p:axes("b", "v")
      local step = p:axis("step", 24)
      local X, P, Y = p:input("X", {b, v}, "f32"), p:input("P", {b}, "f32"), p:output("Y", {b, v}, "f32")
      local top = p:load("load_p", P)
      local low, high, kept = p:carry("low", {b}, 0), p:carry("high", {b}, 1), p:carry("kept", {b}, 1)
      p:loop(step, {batch = true}, function()
        local s = p:carry("s", {b}, 0)
        p:loop(v, function()
          local x = p:load("load_x", X)
          p:task("count", function()
            local mid = (low + high) * 0.5
            s:add(where(x:ge(mid), x, 0):rowsum(v))
          end)
        end)
        p:task("halve", function()
          local mid = (low + high) * 0.5
          local enough = s:ge(top)
          kept:set(where(enough, s, kept))
          low:set(where(enough, mid, low))
          high:set(where(enough, high, mid))
        end)
      end)
      p:loop(v, function()
        local x = p:load("load_again", X)
        Y:store(p:task("weigh", function() return where(x:ge(low), x / kept, 0) end))
      end)
    end),
    small = {{b = 3, v = 100}},
    usual = {{b = 256, v = 128256}},
    fill = {
      X = function(sizes, b, v) return 2 * (v * 7 % sizes.v + 1) / sizes.v / (sizes.v + 1) end,
      P = function(sizes, b) return 0.5 + 0.1 * b end,
    },
    formula = function(t, sizes)
      return {
        Y = function(b, v)
          local list = {}
          for k = 0, sizes.v - 1 do list[#list + 1] = t.X(b, k) end
          table.sort(list, function(a, c) return a > c end)
          local s, last = 0, 0
          for _, x in ipairs(list) do
            s = s + x
            last = x
            if s >= t.P(b) then break end
          end
          return t.X(b, v) >= last and t.X(b, v) / s or 0
        end,
      }
    end,
  },
  {
    name = "min_p_sample",
    program = mr.program("min_p_sample", function(p)
      local b, v = p:axes("b", "v")
      local X, T, MinP, U = p:input("X", {b, v}), p:input("T", {b}, "f32"), p:input("MinP", {b}, "f32"), p:input("U", {b}, "f32")
      local Token = p:output("Token", {b}, "i32")
      local temp, minp, u = p:load(T), p:load(MinP), p:load(U)
      local mx = p:carry("mx", {b}, -1e30)
      p:loop(v, function()
        local x = p:load("load_x", X)
        p:task("greatest", function() mx:set(max(mx, (x / temp):rowmax(v))) end)
      end)
      local total = p:carry("total", {b}, 0)
      p:loop(v, function()
        local x = p:load("load_x2", X)
        p:task("sum", function()
          local e = exp(x / temp - mx)
          total:add(where(e:ge(minp), e, 0):rowsum(v))
        end)
      end)
      local run, token = p:carry("run", {b}, 0), p:carry("token", {b}, v.size)
      p:loop(v, function()
        local x = p:load("load_x3", X)
        p:task("choose", function()
          local e = exp(x / temp - mx)
          local w = where(e:ge(minp), e, 0)
          local c = run + w:cumsum(v)
          token:set(min(token, where(c:gt(u * total), v:index(), v.size):rowmin(v)))
          run:add(w:rowsum(v))
        end)
      end)
      Token:store(p:task("cast", function() return token:to "i32" end))
    end),
    small = {{b = 3, v = 100}},
    usual = {{b = 256, v = 128256}},
    tolerance = 0,
    fill = {
      T = function(sizes, b) return 0.5 + 0.3 * b end,
      MinP = function(sizes, b) return 0.1 end,
      U = function(sizes, b) return 0.17 + 0.2 * b end,
    },
    formula = function(t, sizes)
      return {
        Token = function(b)
          local mx, tot, run = -math.huge, 0, 0
          for k = 0, sizes.v - 1 do mx = math.max(mx, t.X(b, k) / t.T(b)) end
          local function w(k)
            local e = math.exp(t.X(b, k) / t.T(b) - mx)
            return e >= t.MinP(b) and e or 0
          end
          tot = sum(w, sizes.v)
          for k = 0, sizes.v - 1 do
            run = run + w(k)
            if run > t.U(b) * tot then return k end
          end
        end,
      }
    end,
  },
  {
    name = "rejection_sample",
    program = mr.program("rejection_sample", function(p)
      local b, s, v = p:axes("b", "s", "v")           -- s drafts
      local last = p:axis("positions", s.size + 1)
      local Target, Draft = p:input("Target", {b, last, v}, "f32"), p:input("Draft", {b, s, v}, "f32")
      local Token, U, U2 = p:input("Token", {b, s}, "i32"), p:input("U", {b, s}, "f32"), p:input("U2", {b}, "f32")
      local Accepted, Next = p:output("Accepted", {b}, "i32"), p:output("Next", {b}, "i32")
      local N = p:temp("N", {b}, "i32")
      p:phase("count", function()
        p:batch(b)
        local token, u = p:load("load_token", Token), p:load("load_u", U)
        local q, d = p:load("load_target", Target, {b, s, token}), p:load("load_draft", Draft, {b, s, token})
        local n = p:task("accept", function()
          local reject = (u * d):gt(q)
          return where(reject, s:index(), s.size):rowmin(s)
        end)
        N:store("store_n", n)
        Accepted:store(n)
      end)
      p:phase("sample", function()
        p:batch(b)
        local n, u = p:load("load_n", N), p:load("load_u2", U2)
        local total, run, token = p:carry("total", {}, 0), p:carry("run", {}, 0), p:carry("token", {}, v.size)
        p:loop(v, function()
          local q, d = p:load("load_q", Target, {b, n, v}), p:load("load_d", Draft, {b, n, v})   -- zero at n = s
          p:task("sum", function() total:add(max(q - d, 0):rowsum(v)) end)
        end)
        p:loop(v, function()
          local q, d = p:load("load_q2", Target, {b, n, v}), p:load("load_d2", Draft, {b, n, v})
          p:task("choose", function()
            local w = max(q - d, 0)
            local c = run + w:cumsum(v)
            token:set(min(token, where(c:gt(u * total), v:index(), v.size):rowmin(v)))
            run:add(w:rowsum(v))
          end)
        end)
        Next:store(p:task("cast", function() return token:to "i32" end))
      end)
    end),
    small = {{b = 3, s = 5, v = 100}},
    usual = {{b = 64, s = 5, v = 128256}},
    tolerance = 0,
    fill = {
      Target = function(sizes, b, s, v) return ((v * 7 + s + b) % sizes.v + 1) / sizes.v end,
      Draft = function(sizes, b, s, v) return ((v * 5 + 3 * s + b) % sizes.v + 1) / sizes.v end,
      Token = function(sizes, b, s) return (b * 11 + s * 17) % sizes.v end,
      U = function(sizes, b, s) return 0.2 + 0.1 * b end,
      U2 = function(sizes, b) return 0.3 + 0.2 * b end,
    },
    formula = function(t, sizes)
      local function n(b)
        for s = 0, sizes.s - 1 do
          local k = t.Token(b, s)
          if t.U(b, s) * t.Draft(b, s, k) > t.Target(b, s, k) then return s end
        end
        return sizes.s
      end
      return {
        Accepted = n,
        Next = function(b)
          local i = n(b)
          local function w(k) return math.max(t.Target(b, i, k) - t.Draft(b, i, k), 0) end
          local tot, run = sum(w, sizes.v), 0
          for k = 0, sizes.v - 1 do
            run = run + w(k)
            if run > t.U2(b) * tot then return k end
          end
        end,
      }
    end,
  },
  {
    name = "penalties",
    program = mr.program("penalties", function(p)
      local b, s, v = p:axes("b", "s", "v")
      local X, Token, Length = p:input("X", {b, v}), p:input("Token", {b, s}, "i32"), p:input("Length", {b}, "i32")
      local Rep, Freq, Pres = p:input("Rep", {b}, "f32"), p:input("Freq", {b}, "f32"), p:input("Pres", {b}, "f32")
      local Count, Y = p:temp("Count", {b, v}, "i32"), p:output("Y", {b, v}, "f32")
      p:phase("zero", function() Count:store(p:task("zeros", function() return b:index() * 0 + v:index() * 0 end)) end)
      p:phase("count", function()
        p:batch(b)
        p:loop(s, {length = p:load(Length)}, function()
          local t = p:load("load_token", Token)
          Count:add(p:task("ones", function() return t * 0 + 1 end), {b, t})
        end)
      end)
      p:phase("apply", function()
        local x, c, r, f, q = p:load(X), p:load(Count), p:load(Rep), p:load(Freq), p:load(Pres)
        Y:store(p:task("penalise", function()
          local seen = c:gt(0)
          local y = where(seen, where(x:gt(0), x / r, x * r), x)
          return y - f * c - where(seen, q, 0)
        end))
      end)
    end),
    small = {{b = 2, s = 33, v = 50}},
    usual = {{b = 64, s = 4096, v = 128256}},
    fill = {
      Token = function(sizes, b, s) return (s * s + b) % sizes.v end,
      Length = function(sizes, b) return sizes.s - b * 5 end,
      Rep = function() return 1.2 end,
    },
    formula = function(t, sizes)
      return {
        Y = function(b, v)
          local c = 0
          for s = 0, t.Length(b) - 1 do
            if t.Token(b, s) == v then c = c + 1 end
          end
          local x = t.X(b, v)
          if c > 0 then x = x > 0 and x / 1.2 or x * 1.2 end
          return x - t.Freq(b) * c - (c > 0 and t.Pres(b) or 0)
        end,
      }
    end,
  },
  {
    name = "token_bitmask",
    program = mr.program("token_bitmask", function(p)
      local b, v = p:axes("b", "v")
      local w = p:axis("w", (v.size + 31) // 32)
      local X, Bits, T, Y = p:input("X", {b, v}), p:input("Bits", {b, w}, "i32"), p:input("T", {b}, "f32"), p:output("Y", {b, v}, "f32")
      local x, bits, temp = p:load(X), p:load("load_bits", Bits, {b, v // 32}), p:load(T)
      Y:store(p:task("mask", function()
        local on = ((bits >> (v:index() % 32)) & 1):ne(0)
        return where(on, (x / 30):tanh() * 30 / temp, -math.huge)
      end))
    end),
    small = {{b = 2, v = 100}},
    usual = {{b = 256, v = 128256}},
    fill = {
      Bits = function(sizes, b, w) return (b * 1664525 + w * 1013904223 + 12345) % 2 ^ 32 // 1 - 2 ^ 31 end,
      T = function(sizes, b) return 0.5 + b end,
    },
    formula = function(t, sizes)
      return {
        Y = function(b, v)
          if (math.tointeger(t.Bits(b, v // 32)) >> (v % 32)) & 1 == 0 then return -math.huge end
          local x = t.X(b, v) / 30
          local e = math.exp(2 * x)
          return (e - 1) / (e + 1) * 30 / t.T(b)
        end,
      }
    end,
  },
  {
    name = "beam_topk",
    program = mr.program("beam_topk", function(p)
      local b, w, v = p:axes("b", "w", "v")
      local k = p:option("k", "integer", 4)
      local s = p:axis("s", k)
      local X, S = p:input("X", {b, w, v}, "f32"), p:input("S", {b, w}, "f32")
      local Beam, Token, Score = p:output("Beam", {b, s}, "i32"), p:output("Token", {b, s}, "i32"), p:output("Score", {b, s}, "f32")
      local best, at = p:carry("best", {b, s}, -1e30), p:carry("at", {b, s}, 0, "i32")
      local sc = p:load("load_s", S)
      p:loop(v, function()
        local x = p:load("load_x", X)
        p:task("merge", function()
          local y = x + sc
          local number = w:index() * v.size + v:index()
          local nb, na = best, at
          for _ = 1, k do        -- the best of what is left of the tile takes the least of the list, if it is greater
            local top = y:rowmax(v):rowmax(w)
            local which = where(y:eq(top), number, w.size * v.size):rowmin(v):rowmin(w)
            local low = nb:rowmin(s)
            local slot = where(nb:eq(low), s:index(), k):rowmin(s)
            local take = s:index():eq(slot) & top:gt(low)
            nb, na = where(take, top, nb), where(take, which, na)
            y = where(number:eq(which), -1e30, y)
          end
          best:set(nb)
          at:set(na)
        end)
      end)
      local beam, token, score = p:task("sort", function()
        local left, a, sc2 = best, s:index() * 0, best * 0
        for r = 0, k - 1 do
          local top = left:rowmax(s)
          local slot = where(left:eq(top), s:index(), k):rowmin(s)
          local n = where(s:index():eq(slot), at, 0):rowsum(s)
          a, sc2 = where(s:index():eq(r), n, a), where(s:index():eq(r), top, sc2)
          left = where(s:index():eq(slot), -1e30, left)
        end
        local q = (a:to "f32" / v.size):floor():to "i32"
        return q, a - q * v.size, sc2
      end)
      Beam:store(beam)
      Token:store(token)
      Score:store(score)
    end),
    small = {{b = 2, w = 3, v = 50, k = 3}},
    usual = {{b = 64, w = 4, v = 32000}},
    formula = function(t, sizes)
      return {
        Score = function(b, s)
          local l = {}
          for w = 0, sizes.w - 1 do
            for v = 0, sizes.v - 1 do l[#l + 1] = t.X(b, w, v) + t.S(b, w) end
          end
          table.sort(l, function(x, y) return x > y end)
          return l[s + 1]
        end,
        Token = function(b, s)
          local l = {}
          for w = 0, sizes.w - 1 do
            for v = 0, sizes.v - 1 do l[#l + 1] = {t.X(b, w, v) + t.S(b, w), v} end
          end
          table.sort(l, function(x, y) return x[1] > y[1] end)
          return l[s + 1][2]
        end,
      }
    end,
  },
  {
    name = "two_stage_argmax",
    program = mr.program("two_stage_argmax", function(p)
      local b, s, i = p:axes("b", "s", "i")
      local v = p:axis("v", s.size * i.size)
      local X, V, A = p:input("X", {b, v}), p:temp("V", {b, s}, "f32"), p:temp("A", {b, s}, "i32")
      local At = p:output("At", {b}, "i32")
      p:phase("parts", function()
        p:batch(s)
        local best, at = p:carry("best", {b}, -math.huge), p:carry("at", {b}, 0, "i32")
        p:loop(i, function()
          local x = p:load("x", X, {b, s * i.size + i})
          p:task("compare", function()
            local top = x:rowmax(i)
            local first = where(x:eq(top), s:index() * i.size + i:index(), v.size):rowmin(i)
            at:set(where(top:gt(best), first, at))
            best:set(max(best, top))
          end)
        end)
        V:store("store_v", best)
        A:store("store_a", at)
      end)
      p:phase("combine", function()
        local x, a = p:load("xv", V), p:load("xa", A)
        At:store("store_at", p:task("least", function() return where(x:eq(x:rowmax(s)), a, v.size):rowmin(s) end))
      end)
    end),
    small = {{b = 5, s = 3, i = 40}},
    usual = {{b = 16, s = 16, i = 8016}},
    tolerance = 0,
    formula = function(t, sizes)
      return {
        At = function(b)
          local best, at = -math.huge, 0
          for v = 0, sizes.s * sizes.i - 1 do
            if t.X(b, v) > best then best, at = t.X(b, v), v end
          end
          return at
        end,
      }
    end,
  },
}
