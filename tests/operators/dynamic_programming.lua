-- Tables in which an element depends on those before it: edit_distance, by diagonals (Needleman and Wunsch); viterbi, the most likely
-- path and where each state comes from; ctc_loss, all paths of labels with blanks between them, by logarithms.
local mr = require "millrace"
local max, min, exp, log, where = mr.max, mr.min, mr.exp, mr.log, mr.where

return {
  {
    name = "edit_distance",
    program = mr.program("edit_distance", function(p)
      local b, i, j = p:axes("b", "i", "j")                -- i: first sequence's positions 0 .. , j likewise
      local gap, miss = 2, 1
      local n, m = i.size, j.size
      local r, d = p:axis("r", n + 1), p:axis("d", n + m)
      local S, T, D = p:input("S", {b, i}, "i32"), p:input("T", {b, j}, "i32"), p:output("D", {b}, "i32")
      p:batch(b)
      local s = p:load("load_s", S, {b, r - 1})
      local last, before = p:carry("last", {r}, 0), p:carry("before", {r}, 0)     -- diagonals d and d - 1; at d = 0 the corner
      p:loop(d, {batch = true}, function()                  -- makes diagonal d + 1
        local t = p:load("load_t", T, {b, d - r})            -- element j - 1 = d + 1 - r - 1
        p:task("step", function()
          local left, up, corner = last, last:at(r, r - 1), before:at(r, r - 1)
          local col = d:index() + 1 - r:index()
          local new = min(left + gap, up + gap, corner + where(s:eq(t), 0, miss))
          new = where(r:index():eq(0), (d:index() + 1) * gap, where(col:eq(0), r:index() * gap, new))
          before:set(last)
          last:set(new)
        end)
      end)
      D:store(p:task("end", function() return last:at(r, n):to "i32" end))
    end),
    small = {{b = 4, i = 15, j = 9}},
    usual = {{b = 16384, i = 128, j = 128}},
    tolerance = 0,
    fill = {S = function(sizes, b, i) return (i * i + b) % 4 end, T = function(sizes, b, j) return (j * 3 + b * j) % 4 end},
    formula = function(t, sizes)
      return {
        D = function(b)
          local d = {}
          for i = 0, sizes.i do
            d[i] = {}
            for j = 0, sizes.j do
              if i == 0 or j == 0 then
                d[i][j] = (i + j) * 2
              else
                d[i][j] = math.min(d[i - 1][j] + 2, d[i][j - 1] + 2, d[i - 1][j - 1] + (t.S(b, i - 1) == t.T(b, j - 1) and 0 or 1))
              end
            end
          end
          return d[sizes.i][sizes.j]
        end,
      }
    end,
  },
  {
    name = "viterbi",
    program = mr.program("viterbi", function(p)
      local b, t, i, j = p:axes("b", "t", "i", "j")           -- from i to j
      local E, T = p:input("E", {b, t, j}, "f32"), p:input("T", {i, j}, "f32")
      local Score, Back = p:output("Score", {b}, "f32"), p:output("Back", {b, t, j}, "i32")
      p:batch(b)
      local tr = p:load("load_t", T)
      local s = p:carry("s", {i}, 0)
      p:loop(t, {batch = true}, function()
        local e = p:load("load_e", E)
        local back = p:task("step", function()
          local c = s + tr
          local best = c:rowmax(i)
          local from = where(c:eq(best), i:index(), i.size):rowmin(i)
          s:set((best + e):at(j, i))
          return from
        end)
        Back:store(back)
      end)
      Score:store(p:task("best", function() return s:rowmax(i) end))
    end),
    small = {{b = 2, t = 5, i = 12, j = 12}},
    usual = {{b = 1024, t = 256, i = 64, j = 64}},
    tolerance = 1e-4,
    formula = function(t, sizes)
      local function run(b)
        local s, back = {}, {}
        for i = 0, sizes.i - 1 do s[i] = 0 end
        for q = 0, sizes.t - 1 do
          local n = {}
          back[q] = {}
          for j = 0, sizes.j - 1 do
            local best, at = -math.huge, 0
            for i = 0, sizes.i - 1 do
              local v = s[i] + t.T(i, j)
              if v > best then best, at = v, i end
            end
            n[j], back[q][j] = best + t.E(b, q, j), at
          end
          s = n
        end
        local m = -math.huge
        for i = 0, sizes.i - 1 do m = math.max(m, s[i]) end
        return m, back
      end
      return {Score = function(b) return (run(b)) end, Back = function(b, q, j) return select(2, run(b))[q][j] end}
    end,
  },
  {
    name = "ctc_loss",
    program = mr.program("ctc_loss", function(p)
      local b, t, s, v = p:axes("b", "t", "s", "v")
      local P, L, Len, Loss = p:input("P", {b, t, v}, "f32"), p:input("L", {b, s}, "i32"), p:input("Len", {b}, "i32"),
        p:output("Loss", {b}, "f32")
      p:batch(b)
      local l, len = p:load("load_l", L), p:load("load_len", Len)
      local a = p:carry("a", {s}, -1e30)
      local skip = p:task("skips", function() return l:ne(0) & l:ne(l:at(s, s - 2)) end)
      local steps = p:axis("steps", t.size)
      p:loop(steps, {batch = true}, function()
        local lp = p:load("load_p", P, {b, steps, l})
        p:task("step", function()
          local i = s:index()
          local stay, one, two = a, where(i:ge(1), a:at(s, s - 1), -1e30), where(i:ge(2) & skip, a:at(s, s - 2), -1e30)
          local top = max(stay, one, two)
          local v = top + log(exp(stay - top) + exp(one - top) + exp(two - top))
          local first = where(i:lt(2), 0, -1e30)
          local new = max(where(steps:index():eq(0), first, v), -1e30) + lp
          a:set(where(steps:index():lt(len), new, a))
        end)
      end)
      Loss:store(p:task("loss", function()
        local x, y = a:at(s, s.size - 1), a:at(s, s.size - 2)
        local top = max(x, y)
        return -(top + log(exp(x - top) + exp(y - top)))
      end))
    end),
    small = {{b = 3, t = 9, s = 7, v = 8}},
    usual = {{b = 64, t = 512, s = 129, v = 64}},
    tolerance = 1e-3,
    fill = {
      L = function(sizes, b, s) return s % 2 == 0 and 0 or (s // 2 + b) % (sizes.v - 1) + 1 end,
      Len = function(sizes, b) return sizes.t - b end,
      P = function(sizes, b, t, v) return -1.5 - 0.5 * math.sin(b + t * 3 + v) end,
    },
    formula = function(t, sizes)
      return {
        Loss = function(b)
          local function lse(...)
            local m, s = -math.huge, 0
            for _, x in ipairs {...} do m = math.max(m, x) end
            if m == -math.huge then return m end
            for _, x in ipairs {...} do s = s + math.exp(x - m) end
            return m + math.log(s)
          end
          local a = {}
          for q = 0, t.Len(b) - 1 do
            local n = {}
            for s = 0, sizes.s - 1 do
              local l, v = t.L(b, s)
              if q == 0 then
                v = s < 2 and 0 or -math.huge
              else
                v = lse(a[s], a[s - 1] or -math.huge, s >= 2 and l ~= 0 and l ~= t.L(b, s - 2) and a[s - 2] or -math.huge)
              end
              n[s] = v + t.P(b, q, l)
            end
            a = n
          end
          return -lse(a[sizes.s - 1], a[sizes.s - 2])
        end,
      }
    end,
  },
}
