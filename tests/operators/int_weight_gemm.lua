-- C[m,n] = sum over k of A[m,k] W[n,k], for integers: A of 8 bits, or 16-bit floats, W of 8, 4 or 2 bits. Weights of fewer bits are
-- widened where they are multiplied. What BitNet b1.58 (W of -1, 0, 1, stored as 0, 1, 2), W4A8 and W8A8 models multiply by;
-- with one row of A, as they decode, sums along k.
local mr = require "millrace"

local function product(a, w, sizes)
  return function(i, j)
    local sum = 0
    for k = 0, sizes.k - 1 do sum = sum + a(i, k) * w(j, k) end
    return sum
  end
end

local function gemm(name, weights, transposed)              -- transposed: C is over n and m
  return mr.program(name, function(p)
    local m, n, k = p:axes("m", "n", "k")
    local dtype, out = p.dtype or "i8", p.out or "i32"
    local load_w = weights(p, n, k, dtype)
    local A, C = p:input("A", {m, k}, dtype), p:output("C", transposed and {n, m} or {m, n}, out)
    local c = p:carry("c", {m, n}, 0)
    p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), load_w())) end)
    C:store("store_c", c)
  end)
end

local function i8(p, n, k)
  local W = p:input("W", {n, k}, "i8")
  return function() return p:load("load_w", W) end
end

local function i4(p, n, k, dtype)
  local W = p:input("W", {n, k}, "i4")
  return function()
    local w = p:load("load_w", W)
    return p:task("widen", function() return w:to(dtype) end)
  end
end

local function u4(p, n, k, dtype)
  local W = p:input("W", {n, k}, "i4")
  return function()
    local w = p:load("load_w", W)
    return p:task("widen", function() return (w:to "i32" & 15):to(dtype) end)
  end
end

local function i2(p, n, k, dtype)                            -- four to a byte, the first in the lowest bits
  local W = p:input("W", {n, p:axis("byte", k.size // 4)}, "i8")
  return function()
    local w = p:load("load_w", W, {n, k // 4})
    return p:task("widen", function() return (((w:to "i32" >> (k:index() % 4 * 2)) & 3) - 1):to(dtype) end)
  end
end

local both = {{m = 64, n = 64, k = 128}, {m = 40, n = 72, k = 192}}

return {
  {
    name = "int8_gemm", program = gemm("int8_gemm", i8), small = both,
    usual = {{m = 4096, n = 4096, k = 4096}, {m = 16384, n = 16384, k = 16384}, {m = 1, n = 8192, k = 8192}},
    formula = function(t, sizes) return {C = product(t.A, t.W, sizes)} end,
  },
  {
    name = "int4_weight_gemm", program = gemm("int4_weight_gemm", i4, true), small = both,
    usual = {{m = 4096, n = 4096, k = 4096}, {m = 512, n = 512, k = 512}},
    formula = function(t, sizes)
      local c = product(t.A, t.W, sizes)
      return {C = function(j, i) return c(i, j) end}
    end,
  },
  {
    name = "uint4_weight_gemm", program = gemm("uint4_weight_gemm", u4),
    small = {{m = 64, n = 64, k = 128, dtype = "f16", out = "f16"}, {m = 40, n = 72, k = 192}},
    usual = {
      {m = 4096, n = 4096, k = 4096, dtype = "f16", out = "f16"}, {m = 4096, n = 4096, k = 4096},
    },
    formula = function(t, sizes) return {C = product(t.A, function(j, k) return t.W(j, k) % 16 end, sizes)} end,
  },
  {
    name = "int2_weight_gemm", program = gemm("int2_weight_gemm", i2),
    small = both,
    usual = {{m = 256, n = 2560, k = 6912}, {m = 4096, n = 4096, k = 4096}},
    formula = function(t, sizes)
      return {C = product(t.A, function(j, k) return (t.W(j, k // 4) >> (k % 4 * 2) & 3) - 1 end, sizes)}
    end,
  },
  {
    name = "uint4_weight_gemv",
    program = mr.program("uint4_weight_gemv", function(p)
      local n, k = p:axes("n", "k")
      local A, W, C = p:input("A", {k}, "f16"), p:input("W", {n, k}, "i4"), p:output("C", {n}, "f16")
      local c = p:carry("c", {n}, 0)
      p:loop(k, function()
        local a, w = p:load("load_a", A), p:load("load_w", W)
        p:task("multiply", function() c:add((a * (w:to "i32" & 15)):rowsum(k)) end)
      end)
      C:store("store_c", c)
    end),
    small = {{n = 48, k = 256}, {n = 21, k = 72}},
    usual = {{n = 8192, k = 8192}},
    formula = function(t, sizes)
      local c = product(function(_, k) return t.A(k) end, function(j, k) return t.W(j, k) % 16 end, sizes)
      return {C = function(j) return c(0, j) end}
    end,
  },
  {
    name = "int2_weight_gemv",
    program = mr.program("int2_weight_gemv", function(p)
      local n, k = p:axes("n", "k")
      local A, C = p:input("A", {k}, "i8"), p:output("C", {n}, "i32")
      local W = p:input("W", {n, p:axis("byte", k.size // 4)}, "i8")
      local c = p:carry("c", {n}, 0)
      p:loop(k, function()
        local a, w = p:load("load_a", A), p:load("load_w", W, {n, k // 4})
        p:task("multiply", function()
          c:add((a:to "i32" * (((w:to "i32" >> (k:index() % 4 * 2)) & 3) - 1)):rowsum(k))
        end)
      end)
      C:store("store_c", c)
    end),
    small = {{n = 48, k = 256}, {n = 21, k = 72}},
    usual = {{n = 2560, k = 6912}, {n = 16384, k = 16384}},
    formula = function(t, sizes)
      local c = product(function(_, k) return t.A(k) end,
        function(j, k) return (t.W(j, k // 4) >> (k % 4 * 2) & 3) - 1 end, sizes)
      return {C = function(j) return c(0, j) end}
    end,
  },
  {                                                          -- an element of each quarter of a row to a byte
    name = "int2_weight_gemv_by_quarters",
    program = mr.program("int2_weight_gemv_by_quarters", function(p)
      local n, k = p:axes("n", "k")
      local q = p:axis("q", k.size // 4)
      local A, W, C = p:input("A", {k}, "i8"), p:input("W", {n, q}, "i8"), p:output("C", {n}, "i32")
      local c = p:carry("c", {n}, 0)
      p:loop(q, function()
        local w, a = p:load("load_w", W), {}
        for s = 0, 3 do a[s] = p:load("load_a" .. s, A, {q + s * q.size}) end
        p:task("multiply", function()
          local w, sum = w:to "i32", 0
          for s = 0, 3 do sum = sum + a[s]:to "i32" * ((w >> 2 * s & 3) - 1) end
          c:add(sum:rowsum(q))
        end)
      end)
      C:store("store_c", c)
    end),
    small = {{n = 48, k = 256}},
    usual = {{n = 2560, k = 6912}, {n = 16384, k = 16384}},
    formula = function(t, sizes)
      local quarter = sizes.k // 4
      local c = product(function(_, k) return t.A(k) end,
        function(j, k) return (t.W(j, k % quarter) >> (k // quarter * 2) & 3) - 1 end, sizes)
      return {C = function(j) return c(0, j) end}
    end,
  },
  {
    name = "int4_gemm",                                      -- A, too, is of 4 bits; early: widened once, in a phase before
    program = mr.program("int4_gemm", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local early = p:option("early", "boolean")
      local A, B, C = p:input("A", {m, k}, "i4"), p:input("B", {n, k}, "i4"), p:output("C", {m, n}, "i32")
      local wide_A, wide_B = early and p:temp("wide_A", {m, k}, "i8"), early and p:temp("wide_B", {n, k}, "i8")
      local function multiply(load_a, load_b)
        local c = p:carry("c", {m, n}, 0)
        p:loop(k, function() c:add(p:mma("mma", load_a(), load_b())) end)
        C:store("store_c", c)
      end
      if early then
        p:phase("widen_a", function() wide_A:store(p:load("load_a", A)) end)
        p:phase("widen_b", function() wide_B:store(p:load("load_b", B)) end)
        p:phase("multiply", function()
          multiply(function() return p:load("load_wide_a", wide_A) end, function() return p:load("load_wide_b", wide_B) end)
        end)
      else
        local function widened(name, tensor)
          return function()
            local x = p:load("load_" .. name, tensor)
            return p:task("widen_" .. name, function() return x:to "i8" end)
          end
        end
        multiply(widened("a", A), widened("b", B))
      end
    end),
    small = {{m = 64, n = 64, k = 128}, {m = 40, n = 72, k = 192}, {m = 40, n = 72, k = 192, early = true}},
    usual = {{m = 1024, n = 1024, k = 1024}, {m = 4096, n = 4096, k = 4096}, {m = 4096, n = 4096, k = 4096, early = true}},
    formula = function(t, sizes) return {C = product(t.A, t.B, sizes)} end,
  },
}
