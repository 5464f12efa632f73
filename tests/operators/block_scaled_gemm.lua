-- C[m,n] = sum over b of SA[m,b] SB[n,b] (sum over the k of block b of A[m,k] B[n,k]): products of 8 and 4 bits of which the rows of
-- both operands have a scale for each block along k, as mxfp8, mxfp4 and nvfp4 have it. Scales of a byte are the bits of an exponent.
--
-- mxfp8_gemm, grouped_mxfp8_gemm: blocks of 128 and four scales to a word, as DeepGEMM has them; fp8_fp4_gemm: rows of activations in
-- fp4; nvfp4_gemm: fp4 on both sides, blocks of 16; fp8_gemm_in_blocks: no scales, but sums in f32 of products over 128, for the
-- tensor cores add fp8 with fewer bits.
local mr = require "millrace"

local function power(byte) return mr.exp2((byte & 255) - 127.0) end

-- The scale of block b in words of four, over the axes of the word.
local function scale(word, b) return power(word >> b:index() % 4 * 8) end

local function exponent(word, b) return 2.0 ^ ((word >> b % 4 * 8 & 255) - 127) end

-- Words of four exponents near 0.
local function words(_, group, row)
  local word = 0
  for i = 0, 3 do word = word | 124 + (row + 3 * group + 5 * i) % 7 << 8 * i end
  return word >= 1 << 31 and word - (1 << 32) or word
end

local function blocks_of(p, k, block)
  p:check(k.size % block == 0, "k must be a multiple of " .. block)
  return p:axis("b", k.size // block), p:axis("i", block)
end

return {
  {
    name = "fp8_gemm_in_blocks",
    program = mr.program("fp8_gemm_in_blocks", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local b, i = blocks_of(p, k, 128)
      local A, B, C = p:input("A", {m, k}, p.dtype), p:input("B", {n, k}, p.dtype), p:output("C", {m, n}, "f32")
      local c = p:carry("c", {m, n}, 0)
      p:loop(b, {batch = true}, function()
        local part = p:mma("mma", p:load("load_a", A, {m, b * 128 + i}), p:load("load_b", B, {n, b * 128 + i}))
        p:task("add", function() c:set(c + part) end)
      end)
      C:store("store_c", c)
    end),
    small = {{m = 64, n = 64, k = 256, dtype = "e4m3"}, {m = 40, n = 72, k = 128, dtype = "e5m2"}},
    usual = {{m = 1024, n = 1024, k = 8192, dtype = "e4m3"}, {m = 1024, n = 1024, k = 8192, dtype = "e5m2"}},
    formula = function(t, sizes)
      return {C = function(i, j)
        local sum = 0
        for k = 0, sizes.k - 1 do sum = sum + t.A(i, k) * t.B(j, k) end
        return sum
      end}
    end,
  },
  {
    name = "mxfp8_gemm",
    program = mr.program("mxfp8_gemm", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local b, i = blocks_of(p, k, 128)
      local word = p:axis("word", (b.size + 3) // 4)
      local A, B, C = p:input("A", {m, k}, "e4m3"), p:input("B", {n, k}, "e4m3"), p:output("C", {m, n}, "bf16")
      local SA, SB = p:input("SA", {word, m}, "i32"), p:input("SB", {word, n}, "i32")
      local c = p:carry("c", {m, n}, 0)
      p:loop(b, {batch = true}, function()
        local sa, sb = p:load("load_sa", SA, {b // 4, m}), p:load("load_sb", SB, {b // 4, n})
        local part = p:mma("mma", p:load("load_a", A, {m, b * 128 + i}), p:load("load_b", B, {n, b * 128 + i}))
        p:task("scale", function() c:set(c + part * scale(sa, b) * scale(sb, b)) end)
      end)
      C:store("store_c", c)
    end),
    small = {{m = 64, n = 64, k = 256}, {m = 40, n = 72, k = 640}},
    usual = {{m = 8192, n = 8192, k = 8192}, {m = 512, n = 8192, k = 8192}},
    fill = {SA = words, SB = words},
    formula = function(t, sizes)
      return {C = function(i, j)
        local sum = 0
        for k = 0, sizes.k - 1 do
          local b = k // 128
          sum = sum + t.A(i, k) * t.B(j, k) * exponent(t.SA(b // 4, i), b) * exponent(t.SB(b // 4, j), b)
        end
        return sum
      end}
    end,
  },
  {
    name = "grouped_mxfp8_gemm",                             -- group g has rows First[g] to First[g + 1] - 1 of A and C
    program = mr.program("grouped_mxfp8_gemm", function(p)
      local g, m, n, k = p:axes("g", "m", "n", "k")
      local b, i = blocks_of(p, k, 128)
      local word, r, bound = p:axis("word", (b.size + 3) // 4), p:axis("r", m.size), p:axis("bound", g.size + 1)
      local A, B, C = p:input("A", {m, k}, "e4m3"), p:input("B", {g, n, k}, "e4m3"), p:output("C", {m, n}, "bf16")
      local SA, SB = p:input("SA", {word, m}, "i32"), p:input("SB", {word, g, n}, "i32")
      local First = p:input("First", {bound}, "i32")
      p:batch(g)
      local first, last = p:load("load_first", First, {g}), p:load("load_last", First, {g + 1})
      p:loop(r, {length = last - first, typical = m.size // g.size}, function()
        local c = p:carry("c", {r, n}, 0)
        p:loop(b, {batch = true}, function()
          local sa, sb = p:load("load_sa", SA, {b // 4, first + r}), p:load("load_sb", SB, {b // 4, g, n})
          local a = p:load("load_a", A, {first + r, b * 128 + i})
          local part = p:mma("mma", a, p:load("load_b", B, {g, n, b * 128 + i}))
          p:task("scale", function() c:set(c + part * scale(sa, b) * scale(sb, b)) end)
        end)
        C:store("store_c", c, {first + r, n})
      end)
    end),
    small = {{g = 3, m = 100, n = 64, k = 256}},
    usual = {{g = 4, m = 5120, n = 8192, k = 8192}},
    fill = {
      SA = words, SB = function(sizes, group, g, row) return words(sizes, group, g + row) end,
      First = function(sizes, g) return (sizes.g == 4 and {0, 512, 1536, 3072, 5120} or {0, 33, 36, 100})[g + 1] end,
    },
    formula = function(t, sizes)
      return {C = function(i, j)
        local g, sum = 0, 0
        while i >= t.First(g + 1) do g = g + 1 end
        for k = 0, sizes.k - 1 do
          local b = k // 128
          sum = sum + t.A(i, k) * t.B(g, j, k) * exponent(t.SA(b // 4, i), b) * exponent(t.SB(b // 4, g, j), b)
        end
        return sum
      end}
    end,
  },
  {
    name = "fp8_fp4_gemm",                                   -- early: A is widened once, in a phase before
    program = mr.program("fp8_fp4_gemm", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local b, i = blocks_of(p, k, 128)
      local word, early = p:axis("word", (b.size + 3) // 4), p:option("early", "boolean")
      local A, B, C = p:input("A", {m, k}, "e2m1"), p:input("B", {n, k}, "e4m3"), p:output("C", {m, n}, "bf16")
      local SA, SB = p:input("SA", {word, m}, "i32"), p:input("SB", {word, n}, "i32")
      local function multiply(load_a)
        local c = p:carry("c", {m, n}, 0)
        p:loop(b, {batch = true}, function()
          local sa, sb = p:load("load_sa", SA, {b // 4, m}), p:load("load_sb", SB, {b // 4, n})
          local part = p:mma("mma", load_a(), p:load("load_b", B, {n, b * 128 + i}))
          p:task("scale", function() c:set(c + part * scale(sa, b) * scale(sb, b)) end)
        end)
        C:store("store_c", c)
      end
      if early then
        local wide = p:temp("wide", {m, k}, "e4m3")
        p:phase("widen", function() wide:store(p:load("load_a", A)) end)
        p:phase("multiply", function()
          multiply(function() return p:load("load_wide", wide, {m, b * 128 + i}) end)
        end)
      else
        multiply(function()
          local x = p:load("load_a", A, {m, b * 128 + i})
          return p:task("widen", function() return x:to "e4m3" end)
        end)
      end
    end),
    small = {{m = 64, n = 64, k = 256}, {m = 40, n = 72, k = 640}, {m = 40, n = 72, k = 256, early = true}},
    usual = {{m = 512, n = 8192, k = 8192}, {m = 8192, n = 8192, k = 8192}, {m = 8192, n = 8192, k = 8192, early = true}},
    fill = {SA = words, SB = words},
    formula = function(t, sizes)
      return {C = function(i, j)
        local sum = 0
        for k = 0, sizes.k - 1 do
          local b = k // 128
          sum = sum + t.A(i, k) * t.B(j, k) * exponent(t.SA(b // 4, i), b) * exponent(t.SB(b // 4, j), b)
        end
        return sum
      end}
    end,
  },
  {
    name = "nvfp4_gemm",
    program = mr.program("nvfp4_gemm", function(p)
      local m, n, k = p:axes("m", "n", "k")
      p:check(k.size % 16 == 0, "k must be a multiple of 16")
      local block = p:axis("block", k.size // 16)
      local A, B, C = p:input("A", {m, k}, "e2m1"), p:input("B", {n, k}, "e2m1"), p:output("C", {m, n}, "bf16")
      local SA, SB = p:input("SA", {m, block}, "e4m3"), p:input("SB", {n, block}, "e4m3")
      local c = p:carry("c", {m, n}, 0)
      p:loop(k, function()
        local a, sa = p:load("load_a", A), p:load("load_sa", SA, {m, k // 16})
        local b, sb = p:load("load_b", B), p:load("load_sb", SB, {n, k // 16})
        local wide_a = p:task("widen_a", function() return (a * sa):to "bf16" end)
        local wide_b = p:task("widen_b", function() return (b * sb):to "bf16" end)
        c:add(p:mma("mma", wide_a, wide_b))
      end)
      C:store("store_c", c)
    end),
    small = {{m = 64, n = 64, k = 128}, {m = 40, n = 72, k = 192}},
    usual = {{m = 2048, n = 2048, k = 2048}, {m = 8192, n = 8192, k = 8192}},
    formula = function(t, sizes)
      return {C = function(i, j)
        local sum = 0
        for k = 0, sizes.k - 1 do sum = sum + t.A(i, k) * t.SA(i, k // 16) * t.B(j, k) * t.SB(j, k // 16) end
        return sum
      end}
    end,
  },
}
