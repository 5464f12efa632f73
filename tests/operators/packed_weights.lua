-- Products with packed weights: gptq_gemm, words of eight 4-bit weights along k with zero points; awq_gemm, words along n in AWQ's order
-- of bits; nf4_gemm, codes that a table of 16 explains, one scale for 64; smoothquant_gemm, i8 with zero points of rows; binary_gemm,
-- signs as bits, counted by arithmetic.
local mr = require "millrace"
local sum = dofile(debug.getinfo(1, "S").source:match "^@(.*/)" .. "../lua/lib/formulas.lua").sum_below

-- The low 32 bits as an i32.
local function signed(x)
  x = x & 0xffffffff
  return x >= 1 << 31 and x - (1 << 32) or x
end

return {
  {
    name = "gptq_gemm",
    program = mr.program("gptq_gemm", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local w, zw, g = p:axis("w", k.size // 8), p:axis("zw", n.size // 8), p:axis("g", k.size // 128)
      local A, W = p:input("A", {m, k}, "f16"), p:input("W", {w, n}, "i32")
      local Z, S, C = p:input("Z", {g, zw}, "i32"), p:input("S", {g, n}, "f16"), p:output("C", {m, n}, "f16")
      local c = p:carry("c", {m, n}, 0)
      p:loop(k, function()
        local q, s = p:load("load_w", W), p:load("load_s", S, {k // 128, n})
        local z = p:load("load_z", Z, {k // 128, n // 8})
        local x = p:task("dequant", function()
          local v = mr.unpack(q, w, k, "i4"):to "i32" & 15
          local zero = (z >> (n:index() % 8 * 4)) & 15
          return ((v - zero - 1) * s):to "f16"
        end)
        c:add(p:mma("mma", p:load("load_a", A), x))
      end)
      C:store(c)
    end),
    small = {{m = 24, n = 40, k = 128}},
    usual = {{m = 16, n = 4096, k = 4096}, {m = 4096, n = 4096, k = 4096}},
    fill = {
      W = function(sizes, w, n) return (w * 1664525 + n * 1013904223 + 12345) % 2 ^ 32 // 1 - 2 ^ 31 end,
      Z = function(sizes, g, w) return (g * 69069 + w * 22695477 + 777) % 2 ^ 32 // 1 - 2 ^ 31 end,
    },
    formula = function(t, sizes)
      return {
        C = function(m, n)
          return sum(function(k)
            local v = (math.tointeger(t.W(k // 8, n)) >> (k % 8 * 4)) & 15
            local zero = (math.tointeger(t.Z(k // 128, n // 8)) >> (n % 8 * 4)) & 15
            return t.A(m, k) * (v - zero - 1) * t.S(k // 128, n)
          end, sizes.k)
        end,
      }
    end,
  },
  {
    name = "awq_gemm",
    program = mr.program("awq_gemm", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local w, g = p:axis("w", n.size // 8), p:axis("g", k.size // 128)
      local A, W = p:input("A", {m, k}, "f16"), p:input("W", {k, w}, "i32")
      local Z, S, C = p:input("Z", {g, w}, "i32"), p:input("S", {g, n}, "f16"), p:output("C", {m, n}, "f16")
      local c = p:carry("c", {m, n}, 0)
      p:loop(k, function()
        local q, s = p:load("load_w", W, {k, n // 8}), p:load("load_s", S, {k // 128, n})
        local z = p:load("load_z", Z, {k // 128, n // 8})
        local x = p:task("dequant", function()
          local j = n:index() % 8
          local at = ((j >> 1) + (j & 1) * 4) * 4
          return ((((q >> at) & 15) - ((z >> at) & 15)) * s):to "f16"
        end)
        c:add(p:mma("mma", p:load("load_a", A), x))
      end)
      C:store(c)
    end),
    small = {{m = 24, n = 40, k = 128}},
    usual = {{m = 16, n = 4096, k = 4096}, {m = 4096, n = 4096, k = 4096}},
    fill = {
      W = function(sizes, w, n) return (w * 1664525 + n * 1013904223 + 12345) % 2 ^ 32 // 1 - 2 ^ 31 end,
      Z = function(sizes, g, w) return (g * 69069 + w * 22695477 + 777) % 2 ^ 32 // 1 - 2 ^ 31 end,
    },
    formula = function(t, sizes)
      return {
        C = function(m, n)
          local j = n % 8
          local at = ((j >> 1) + (j & 1) * 4) * 4
          return sum(function(k)
            local v = (math.tointeger(t.W(k, n // 8)) >> at) & 15
            local zero = (math.tointeger(t.Z(k // 128, n // 8)) >> at) & 15
            return t.A(m, k) * (v - zero) * t.S(k // 128, n)
          end, sizes.k)
        end,
      }
    end,
  },
  {
    name = "nf4_gemm",
    program = mr.program("nf4_gemm", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local c, g = p:axis("c", 16), p:axis("g", k.size // 64)
      local A, W, Table, S = p:input("A", {m, k}), p:input("W", {n, k}, "i4"), p:input("Table", {c}, "f32"), p:input("S", {n, g})
      local C = p:output("C", {m, n})
      local acc = p:carry("acc", {m, n}, 0)
      p:loop(k, function()
        local w, s = p:load("load_w", W), p:load("load_s", S, {n, k // 64})
        local at = p:task("code", function() return w:to "i32" & 15 end)
        local v = p:load("load_table", Table, {at})
        local x = p:task("scale", function() return (v * s):to "bf16" end)
        acc:add(p:mma("mma", p:load("load_a", A), x))
      end)
      C:store(acc)
    end),
    small = {{m = 24, n = 40, k = 192}},
    usual = {{m = 16, n = 4096, k = 4096}, {m = 4096, n = 4096, k = 4096}},
    fill = {Table = function(sizes, c) return ((c - 7.5) / 7.5) ^ 3 end},
    formula = function(t, sizes)
      return {
        C = function(m, n)
          return sum(function(k) return t.A(m, k) * t.Table(math.tointeger(t.W(n, k)) & 15) * t.S(n, k // 64) end, sizes.k)
        end,
      }
    end,
  },
  {
    name = "smoothquant_gemm",
    program = mr.program("smoothquant_gemm", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local A, B = p:input("A", {m, k}, "i8"), p:input("B", {n, k}, "i8")
      local SA, ZA, SB, CB, Bias = p:input("SA", {m}, "f32"), p:input("ZA", {m}, "i32"), p:input("SB", {n}, "f32"), p:input("CB",
        {n}, "i32"), p:input("Bias", {n})
      local C = p:output("C", {m, n})
      local c = p:carry("c", {m, n}, 0)
      p:loop(k, function() c:add(p:mma("mma", p:load(A), p:load(B))) end)
      local sa, za, sb, cb, bias = p:load(SA), p:load(ZA), p:load(SB), p:load(CB), p:load(Bias)
      C:store(p:task("scale", function() return (c - za * cb) * sa * sb + bias end))
    end),
    small = {{m = 24, n = 40, k = 80}},
    usual = {{m = 4096, n = 4096, k = 4096}},
    fill = {ZA = function(sizes, m) return m % 7 - 3 end, CB = function(sizes, n) return n * 5 % 100 - 50 end},
    formula = function(t, sizes)
      return {
        C = function(m, n)
          return (sum(function(k) return t.A(m, k) * t.B(n, k) end, sizes.k) - t.ZA(m) * t.CB(n)) * t.SA(m) * t.SB(n) + t.Bias(n)
        end,
      }
    end,
  },
  {
    name = "binary_gemm",
    program = mr.program("binary_gemm", function(p)
      local m, n, w = p:axes("m", "n", "w")
      local A, B, C = p:input("A", {m, w}, "i32"), p:input("B", {n, w}, "i32"), p:output("C", {m, n}, "i32")
      local c = p:carry("c", {m, n}, 0, "i32")
      p:loop(w, function()
        local a, b = p:load(A), p:load(B)
        p:task("count", function()
          local x = a ~ b
          x = x - ((x >> 1) & 0x55555555)
          x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
          x = (x + (x >> 4)) & 0x0f0f0f0f
          c:add(((x * 0x01010101) >> 24):rowsum(w))
        end)
      end)
      C:store(p:task("sum", function() return w.size * 32 - 2 * c end))
    end),
    small = {{m = 7, n = 13, w = 3}},
    usual = {{m = 4096, n = 4096, w = 128}},
    tolerance = 0,
    fill = {
      A = function(sizes, i, j) return signed(i * 1664525 * (j + 3) + 1013904223 * j) end,
      B = function(sizes, i, j) return signed(i * 22695477 * (j + 5) + 777 * j + 99) end,
    },
    formula = function(t, sizes)
      return {
        C = function(i, j)
          return sizes.w * 32 - 2 * sum(function(k)
            local x, n = (math.tointeger(t.A(i, k)) ~ math.tointeger(t.B(j, k))) & 0xffffffff, 0
            while x > 0 do
              n = n + (x & 1)
              x = x >> 1
            end
            return n
          end, sizes.w)
        end,
      }
    end,
  },
}
