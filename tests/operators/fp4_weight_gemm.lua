-- C[n,m] = sum over k of A[m,k] W[n,k]: W of fp4, which a task widens to the type of A.
--
-- mxfp4_weight_gemm: each 32 along k of W share a scale of e8m0, and the sums begin with Bias[m,n]: experts of
-- gpt-oss. twiddled: four elements lie in 16 bits so that each is one mask away from a bf16, 2^126 times too small: sign and the
-- other bits of elements 0 to 2 at 15 and 6 to 8, 12 and 3 to 5, 9 and 0 to 2, those of element 3 at 14, 10 and 11, and 13.
local mr = require "millrace"

local values = {[0] = 0, 0.5, 1, 1.5, 2, 3, 4, 6}

-- An element of 16 bits, twiddled: bits of an e2m1, as an integer of 4 bits.
local function twiddled_bits(word, at)
  if at < 3 then return (word >> 15 - 3 * at & 1) << 3 | word >> 6 - 3 * at & 7 end
  return (word >> 14 & 1) << 3 | (word >> 10 & 3) << 1 | word >> 13 & 1
end

return {
  {
    name = "fp4_weight_gemm",
    program = mr.program("fp4_weight_gemm", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local dtype = p.dtype or "f16"
      local A, W, C = p:input("A", {m, k}, dtype), p:input("W", {n, k}, "e2m1"), p:output("C", {n, m}, dtype)
      local c = p:carry("c", {m, n}, 0)
      p:loop(k, function()
        local w = p:load("load_w", W)
        local x = p:task("widen", function() return w:to(dtype) end)
        c:add(p:mma("mma", p:load("load_a", A), x))
      end)
      C:store("store_c", c)
    end),
    small = {{m = 64, n = 64, k = 128}, {m = 40, n = 72, k = 192, dtype = "bf16"}},
    usual = {{m = 4096, n = 4096, k = 4096}, {m = 256, n = 256, k = 256, dtype = "bf16"}},
    formula = function(t, sizes)
      return {C = function(j, i)
        local sum = 0
        for k = 0, sizes.k - 1 do sum = sum + t.A(i, k) * t.W(j, k) end
        return sum
      end}
    end,
  },
  {
    name = "mxfp4_weight_gemm",
    program = mr.program("mxfp4_weight_gemm", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local b = p:axis("b", k.size // 32)
      local A, W, S = p:input("A", {m, k}), p:input("W", {n, k}, "e2m1"), p:input("S", {n, b}, "e8m0")
      local Bias, C = p:input("Bias", {m, n}), p:output("C", {m, n})
      local c = p:carry("c", {m, n}, 0)
      p:loop(k, function()
        local w, s = p:load("load_w", W), p:load("load_s", S, {n, k // 32})
        local x = p:task("widen", function() return (w * s):to "bf16" end)
        c:add(p:mma("mma", p:load("load_a", A), x))
      end)
      local bias = p:load("load_bias", Bias)
      C:store("store_c", p:task("bias", function() return (c + bias):to "bf16" end))
    end),
    small = {{m = 64, n = 64, k = 128}, {m = 40, n = 72, k = 192}},
    usual = {{m = 4096, n = 4096, k = 4096}, {m = 256, n = 5760, k = 2880}},
    fill = {S = function(_, n, b) return 2.0 ^ ((n + 3 * b) % 13 - 7) end},
    formula = function(t, sizes)
      return {C = function(i, j)
        local sum = t.Bias(i, j)
        for k = 0, sizes.k - 1 do sum = sum + t.A(i, k) * t.W(j, k) * t.S(j, k // 32) end
        return sum
      end}
    end,
  },
  {
    name = "twiddled_fp4_weight_gemm",
    program = mr.program("twiddled_fp4_weight_gemm", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local byte = p:axis("byte", k.size // 2)
      local A, W, C = p:input("A", {m, k}), p:input("W", {n, byte}, "i8"), p:output("C", {m, n})
      local c = p:carry("c", {m, n}, 0)
      p:loop(k, function()
        local high, low = p:load("load_high", W, {n, k // 4 * 2}), p:load("load_low", W, {n, k // 4 * 2 + 1})
        local x = p:task("widen", function()
          local word, at = (high:to "i32" & 255) << 8 | low:to "i32" & 255, k:index() % 4
          local last = at:eq(3)
          local shift = 3 * at
          local sign = mr.where(last, word >> 14, word >> 15 - shift) & 1
          local exponent = mr.where(last, word >> 10, word >> 7 - shift) & 3
          local half = mr.where(last, word >> 13, word >> 6 - shift) & 1
          local size = mr.where(exponent:eq(0), half * 0.5, (1 + half * 0.5) * mr.exp2(exponent - 1))
          return mr.where(sign:eq(1), -size, size):to "bf16"
        end)
        c:add(p:mma("mma", p:load("load_a", A), x))
      end)
      C:store("store_c", c)
    end),
    small = {{m = 64, n = 64, k = 128}, {m = 40, n = 72, k = 192}},
    usual = {{m = 4096, n = 4096, k = 4096}},
    formula = function(t, sizes)
      return {C = function(i, j)
        local sum = 0
        for k = 0, sizes.k - 1 do
          local word = (t.W(j, k // 4 * 2) & 255) << 8 | t.W(j, k // 4 * 2 + 1) & 255
          local bits = twiddled_bits(word, k % 4)
          sum = sum + t.A(i, k) * (bits >= 8 and -values[bits - 8] or values[bits])
        end
        return sum
      end}
    end,
  },
}
