-- Products and what follows them, in one kernel: with x = sum over k of A[m,k] B[n,k],
--   gemm_bias_gelu_residual: C = R + gelu(x + b[n]), the second half of a block of a transformer;
--   gemm_softmax: C[m,:] = softmax(x[m,:]) and gemm_layer_norm: C[m,:] = (x - mean) / sqrt(var + eps) g + b, along all n of a row, and
--   gemm_then_softmax, gemm_then_layer_norm: the same of longer rows than one tile has, in a second phase;
--   gemm_row_extremes: Max[m] = max over n of x, Sum[m] = sum over n of x, for which x is not stored.
local mr = require "millrace"

local function product(t, sizes)
  return function(i, j)
    local sum = 0
    for k = 0, sizes.k - 1 do sum = sum + t.A(i, k) * t.B(j, k) end
    return sum
  end
end

local function gelu(x) return 0.5 * x * (1 + (2 / (1 + math.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x ^ 3))) - 1)) end

return {
  {
    name = "gemm_bias_gelu_residual",
    program = mr.program("gemm_bias_gelu_residual", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local A, B, Bias, R = p:input("A", {m, k}), p:input("B", {n, k}), p:input("Bias", {n}), p:input("R", {m, n})
      local C = p:output("C", {m, n})
      local x = p:carry("x", {m, n}, 0)
      p:loop(k, function() x:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
      local b, r = p:load("load_bias", Bias), p:load("load_r", R)
      C:store("store_c", p:task("finish", function() return (r + mr.gelu(x + b)):to "bf16" end))
    end),
    small = {{m = 64, n = 64, k = 64}, {m = 50, n = 72, k = 88}},
    usual = {{m = 8192, n = 4096, k = 4096}, {m = 8192, n = 1024, k = 4096}},
    formula = function(t, sizes)
      local x = product(t, sizes)
      return {C = function(i, j) return t.R(i, j) + gelu(x(i, j) + t.Bias(j)) end}
    end,
  },
  {
    name = "gemm_softmax",
    program = mr.program("gemm_softmax", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n})
      local x = p:carry("x", {m, n}, 0)
      p:loop(k, function() x:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
      C:store("store_c", p:task("softmax", function()
        local e = mr.exp(x - x:rowmax(n))
        return (e / e:rowsum(n)):to "bf16"
      end))
    end),
    small = {{m = 64, n = 128, k = 64}, {m = 50, n = 72, k = 88}},
    usual = {{m = 8192, n = 256, k = 1024}},
    formula = function(t, sizes)
      local x = product(t, sizes)
      return {C = function(i, j)
        local sum = 0
        for l = 0, sizes.n - 1 do sum = sum + math.exp(x(i, l)) end
        return math.exp(x(i, j)) / sum
      end}
    end,
  },
  {
    name = "gemm_layer_norm",
    program = mr.program("gemm_layer_norm", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local A, B, G, Bias = p:input("A", {m, k}), p:input("B", {n, k}), p:input("G", {n}), p:input("Bias", {n})
      local C = p:output("C", {m, n})
      local x = p:carry("x", {m, n}, 0)
      p:loop(k, function() x:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
      local g, b = p:load("load_g", G), p:load("load_bias", Bias)
      C:store("store_c", p:task("normalise", function()
        local d = x - x:rowsum(n) / n.size
        return (d * mr.rsqrt((d * d):rowsum(n) / n.size + 1e-5) * g + b):to "bf16"
      end))
    end),
    small = {{m = 64, n = 128, k = 64}, {m = 50, n = 72, k = 88}},
    usual = {{m = 8192, n = 256, k = 1024}},
    formula = function(t, sizes)
      local x = product(t, sizes)
      return {C = function(i, j)
        local mean, square = 0, 0
        for l = 0, sizes.n - 1 do mean = mean + x(i, l) / sizes.n end
        for l = 0, sizes.n - 1 do square = square + (x(i, l) - mean) ^ 2 / sizes.n end
        return (x(i, j) - mean) / math.sqrt(square + 1e-5) * t.G(j) + t.Bias(j)
      end}
    end,
  },
  {
    name = "gemm_then_softmax",
    program = mr.program("gemm_then_softmax", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local r, c = p:axis("r", m.size), p:axis("c", n.size)
      local A, B = p:input("A", {m, k}), p:input("B", {n, k})
      local T, C = p:temp("T", {m, n}), p:output("C", {m, n})
      p:phase("product", function()
        local x = p:carry("x", {m, n}, 0)
        p:loop(k, function() x:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
        T:store("store_t", x)
      end)
      p:phase("rows", function()
        local x = p:load("load_t", T, {r, c})
        C:store("store_c", p:task("softmax", function()
          local e = mr.exp(x - x:rowmax(c))
          return (e / e:rowsum(c)):to "bf16"
        end), {r, c})
      end)
    end),
    small = {{m = 64, n = 128, k = 64}, {m = 50, n = 72, k = 88}},
    usual = {{m = 8192, n = 1024, k = 1024}, {m = 8192, n = 8192, k = 1024}},
    formula = function(t, sizes)
      local x = product(t, sizes)
      return {C = function(i, j)
        local sum = 0
        for l = 0, sizes.n - 1 do sum = sum + math.exp(x(i, l)) end
        return math.exp(x(i, j)) / sum
      end}
    end,
  },
  {
    name = "gemm_then_layer_norm",
    program = mr.program("gemm_then_layer_norm", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local r, c = p:axis("r", m.size), p:axis("c", n.size)
      local A, B = p:input("A", {m, k}), p:input("B", {n, k})
      local G, Bias = p:input("G", {n}), p:input("Bias", {n})
      local T, C = p:temp("T", {m, n}), p:output("C", {m, n})
      p:phase("product", function()
        local x = p:carry("x", {m, n}, 0)
        p:loop(k, function() x:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
        T:store("store_t", x)
      end)
      p:phase("rows", function()
        local x = p:load("load_t", T, {r, c})
        local g, b = p:load("load_g", G, {c}), p:load("load_bias", Bias, {c})
        C:store("store_c", p:task("normalise", function()
          local d = x - x:rowsum(c) / n.size
          return (d * mr.rsqrt((d * d):rowsum(c) / n.size + 1e-5) * g + b):to "bf16"
        end), {r, c})
      end)
    end),
    small = {{m = 64, n = 128, k = 64}, {m = 50, n = 72, k = 88}},
    usual = {{m = 8192, n = 1024, k = 1024}, {m = 8192, n = 8192, k = 1024}},
    formula = function(t, sizes)
      local x = product(t, sizes)
      return {C = function(i, j)
        local mean, square = 0, 0
        for l = 0, sizes.n - 1 do mean = mean + x(i, l) / sizes.n end
        for l = 0, sizes.n - 1 do square = square + (x(i, l) - mean) ^ 2 / sizes.n end
        return (x(i, j) - mean) / math.sqrt(square + 1e-5) * t.G(j) + t.Bias(j)
      end}
    end,
  },
  {
    name = "gemm_row_extremes",
    program = mr.program("gemm_row_extremes", function(p)
      local m, n, k = p:axes("m", "n", "k")
      local A, B = p:input("A", {m, k}), p:input("B", {n, k})
      local Max, Sum = p:output("Max", {m}, "f32"), p:output("Sum", {m}, "f32")
      local most, sum = p:carry("most", {m}, -math.huge), p:carry("sum", {m}, 0)
      p:loop(n, function()
        local x = p:carry("x", {m, n}, 0)
        p:loop(k, function() x:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
        p:task("rows", function()
          most:set(mr.max(most, x:rowmax(n)))
          sum:add(x:rowsum(n))
        end)
      end)
      Max:store("store_max", most)
      Sum:store("store_sum", sum)
    end),
    small = {{m = 64, n = 128, k = 64}, {m = 50, n = 72, k = 88}},
    usual = {{m = 16384, n = 8192, k = 4096}},
    formula = function(t, sizes)
      local x = product(t, sizes)
      return {
        Max = function(i)
          local most = -math.huge
          for l = 0, sizes.n - 1 do most = math.max(most, x(i, l)) end
          return most
        end,
        Sum = function(i)
          local sum = 0
          for l = 0, sizes.n - 1 do sum = sum + x(i, l) end
          return sum
        end,
      }
    end,
  },
}
