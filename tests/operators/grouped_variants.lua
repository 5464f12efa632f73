-- Grouped products other than those of rows that lie one group behind the other: masked_grouped_gemm_fp8, groups of up to m rows of
-- which Rows[g] count, with scales of 128 (DeepGEMM); k_grouped_gemm, gradients of experts' weights, sums over the rows of a group.
local mr = require "millrace"
local max = mr.max
local sum = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua").sum_below

return {
  {
    name = "masked_grouped_gemm_fp8",
    program = mr.program("masked_grouped_gemm_fp8", function(p)
      local g, m, n, k = p:axes("g", "m", "n", "k")
      local kb, i, nb, j = p:axis("kb", k.size // 128), p:axis("i", 128), p:axis("nb", n.size // 128), p:axis("j", 128)
      local r, mb = p:axis("r", 64), p:axis("mb", (m.size + 63) // 64)
      local A, SA = p:input("A", {g, m, k}, "e4m3"), p:input("SA", {g, kb, m}, "f32")
      local B, SB = p:input("B", {g, n, k}, "e4m3"), p:input("SB", {g, nb, kb}, "f32")
      local Rows, C = p:input("Rows", {g}, "i32"), p:output("C", {g, m, n})
      p:batch(g, mb, nb)
      local rows = p:load("load_rows", Rows)
      local one = p:axis("one", 1)
      p:loop(one, {length = max(rows - mb:index() * 64, 0)}, function()
        local c = p:carry("c", {r, j}, 0)
        p:loop(kb, {batch = true}, function()
          local a, b = p:load("load_a", A, {g, mb * 64 + r, kb * 128 + i}), p:load("load_b", B, {g, nb * 128 + j, kb * 128 + i})
          local sa, sb = p:load("load_sa", SA, {g, kb, mb * 64 + r}), p:load("load_sb", SB)
          local part = p:mma("mma", a, b)
          p:task("scale", function() c:set(c + part * sa * sb) end)
        end)
        C:store(p:task("cast", function() return c:to "bf16" end), {g, mb * 64 + r, nb * 128 + j})
      end)
    end),
    small = {{g = 3, m = 100, n = 128, k = 256}},
    usual = {{g = 32, m = 1024, n = 4096, k = 7168}, {g = 32, m = 192, n = 7168, k = 2048}},
    tolerance = 0.02,
    fill = {Rows = function(sizes, g) return g * 45 end},
    formula = function(t, sizes)
      return {
        C = function(g, m, n)
          if m >= t.Rows(g) then return nil end
          return sum(function(k) return t.A(g, m, k) * t.B(g, n, k) * t.SA(g, k // 128, m) * t.SB(g, n // 128, k // 128) end, sizes.k)
        end,
      }
    end,
  },
  {
    name = "k_grouped_gemm",
    program = mr.program("k_grouped_gemm", function(p)
      local g, k, m, n = p:axes("g", "k", "m", "n")
      local bound = p:axis("bound", g.size + 1)
      local A, B, First = p:input("A", {k, m}), p:input("B", {k, n}), p:input("First", {bound}, "i32")
      local C = p:output("C", {g, m, n}, "f32")
      p:batch(g)
      local first, last = p:load("load_first", First, {g}), p:load("load_last", First, {g + 1})
      local c = p:carry("c", {m, n}, 0)
      p:loop(k, {length = last - first}, function()
        c:add(p:mma("mma", p:load("load_a", A, {first + k, m}), p:load("load_b", B, {first + k, n})))
      end)
      C:store(c)
    end),
    small = {{g = 3, k = 100, m = 64, n = 64}, {g = 2, k = 50, m = 40, n = 24}},
    usual = {{g = 8, k = 8192, m = 4096, n = 4096}},
    fill = {First = function(sizes, g) return g == sizes.g and sizes.k or g * (sizes.k // sizes.g - 3) end},
    formula = function(t, sizes)
      return {
        C = function(g, m, n)
          local s = 0
          for k = t.First(g), t.First(g + 1) - 1 do s = s + t.A(k, m) * t.B(k, n) end
          return s
        end,
      }
    end,
  },
}
