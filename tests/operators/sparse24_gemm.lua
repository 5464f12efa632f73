-- C[m,n] = sum over k of A[m,k] B[k,n], of an A of which each four neighbours along k have two that are not 0: Kept[m,:] has these, and
-- Meta[m,k // 8] two bits for each, lowest first, which of the four it is.
--
-- Weights with 2:4 sparsity, expanded to all of their elements: by loads at indices of k; in blocks of the sum, by elements of a
-- block at other indices; by mr.expand, in a task or in the product itself; and Y[m,n] = sum over k of X[m,k] W[n,k], of a W that is so.
local mr = require "millrace"
local where = mr.where

-- The pairs (0, 1), (0, 2), ... (2, 3), in two halves of a byte.
local function pair(_, i, j)
  local pairs = {4, 8, 12, 9, 13, 14}
  local byte = pairs[(i + j) % 6 + 1] | pairs[(i * 5 + j * 3) % 6 + 1] << 4
  return byte < 128 and byte or byte - 256
end

local function formula(size, kept, meta, b)
  return function(t, sizes)
    return {C = function(i, j)
      local sum = 0
      for group = 0, size(sizes) // 4 - 1 do
        local bits = math.tointeger(meta(t, i, group // 2)) >> group % 2 * 4
        for each = 0, 1 do sum = sum + kept(t, i, group * 2 + each) * b(t, group * 4 + (bits >> each * 2 & 3), j) end
      end
      return sum
    end}
  end
end

local by_index = {
  name = "sparse24_gemm",
  program = mr.program("sparse24_gemm", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local half, eighth = p:axis("half", k.size // 2), p:axis("eighth", k.size // 8)
    local Kept, Meta = p:input("Kept", {m, half}, "f16"), p:input("Meta", {m, eighth}, "i8")
    local B, C = p:input("B", {k, n}, "f16"), p:output("C", {m, n}, "f32")
    local c = p:carry("c", {m, n}, 0)
    p:loop(k, function()
      local first, second = p:load("load_first", Kept, {m, k // 4 * 2}), p:load("load_second", Kept, {m, k // 4 * 2 + 1})
      local meta = p:load("load_meta", Meta, {m, k // 8})
      local a = p:task("expand", function()
        local at, two = k:index() & 3, where((k:index() & 4):eq(0), meta:to "i32", meta:to "i32" >> 4)
        return where((two & 3):eq(at), first, where((two >> 2 & 3):eq(at), second, 0)):to "f16"
      end)
      c:add(p:mma("mma", a, p:load("load_b", B)))
    end)
    C:store("store_c", c)
  end),
  small = {{m = 64, n = 64, k = 64}, {m = 40, n = 72, k = 136}},
  usual = {{m = 1024, n = 1024, k = 1024}, {m = 16384, n = 16384, k = 16384}},
  fill = {Meta = pair},
  formula = formula(function(sizes) return sizes.k end,
    function(t, i, x) return t.Kept(i, x) end, function(t, i, x) return t.Meta(i, x) end, function(t, k, j) return t.B(k, j) end),
}

local by_blocks = {
  name = "sparse24_gemm_blocks",
  program = mr.program("sparse24_gemm_blocks", function(p)
    local m, n, block = p:axes("m", "n", "block")
    local i, half, eighth = p:axis("i", 64), p:axis("half", 32), p:axis("eighth", 8)
    local Kept, Meta = p:input("Kept", {m, block, half}, "f16"), p:input("Meta", {m, block, eighth}, "i8")
    local B, C = p:input("B", {block, i, n}, "f16"), p:output("C", {m, n}, "f32")
    local c = p:carry("c", {m, n}, 0)
    p:loop(block, {batch = true}, function()
      local kept, meta = p:load("load_kept", Kept), p:load("load_meta", Meta)
      local a = p:task("expand", function()
        local at, bits = i:index() & 3, meta:to "i32":at(eighth, i // 8)
        local two = where((i:index() & 4):eq(0), bits, bits >> 4)
        local second = where((two >> 2 & 3):eq(at), kept:at(half, i // 4 * 2 + 1), 0)
        return where((two & 3):eq(at), kept:at(half, i // 4 * 2), second):to "f16"
      end)
      c:add(p:mma("mma", a, p:load("load_b", B)))
    end)
    C:store("store_c", c)
  end),
  small = {{m = 64, n = 64, block = 2}, {m = 40, n = 72, block = 3}},
  usual = {{m = 1024, n = 1024, block = 16}, {m = 16384, n = 16384, block = 256}},
  fill = {Meta = function(_, i, block, j) return pair(_, i, block * 8 + j) end},
  formula = formula(function(sizes) return sizes.block * 64 end,
    function(t, i, x) return t.Kept(i, x // 32, x % 32) end, function(t, i, x) return t.Meta(i, x // 8, x % 8) end,
    function(t, k, j) return t.B(k // 64, k % 64, j) end),
}

local function expands(name, in_task)
  return {
    name = name,
    program = mr.program(name, function(p)
      local m, n, k = p:axes("m", "n", "k")
      local half, eighth = p:axis("half", k.size // 2), p:axis("eighth", k.size // 8)
      local Kept, Meta = p:input("Kept", {m, half}, "f16"), p:input("Meta", {m, eighth}, "i8")
      local B, C = p:input("B", {k, n}, "f16"), p:output("C", {m, n}, "f32")
      local c = p:carry("c", {m, n}, 0)
      p:loop(k, function()
        local kept, meta, b = p:load("load_kept", Kept), p:load("load_meta", Meta), p:load("load_b", B)
        local a = in_task and p:task("expand", function() return kept:expand(meta, k) end) or kept:expand(meta, k)
        c:add(p:mma("mma", a, b))
      end)
      C:store("store_c", c)
    end),
    small = {{m = 64, n = 64, k = 64}, {m = 40, n = 72, k = 136}},
    usual = by_index.usual,
    fill = {Meta = pair},
    formula = by_index.formula,
  }
end

local linear = {
  name = "sparse24_linear",
  program = mr.program("sparse24_linear", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local half, eighth = p:axis("half", k.size // 2), p:axis("eighth", k.size // 8)
    local X, Kept, Meta = p:input("X", {m, k}), p:input("Kept", {n, half}), p:input("Meta", {n, eighth}, "u8")
    local Y = p:output("Y", {m, n})
    local y = p:carry("y", {m, n}, 0)
    p:loop(k, function()
      local x, w = p:load("load_x", X), p:load("load_kept", Kept):expand(p:load("load_meta", Meta), k)
      y:add(p:mma("mma", x, w))
    end)
    Y:store("store_y", p:task("convert", function() return y:to "bf16" end))
  end),
  small = {{m = 64, n = 64, k = 64}, {m = 40, n = 72, k = 136}},
  usual = {{m = 4096, n = 4096, k = 4096}, {m = 16, n = 16384, k = 4096}},
  fill = {Meta = function(_, i, j) return pair(_, i, j) % 256 end},
  formula = function(t, sizes)
    return {Y = function(i, j)
      local sum = 0
      for group = 0, sizes.k // 4 - 1 do
        local bits = math.tointeger(t.Meta(j, group // 2)) >> group % 2 * 4
        for each = 0, 1 do sum = sum + t.Kept(j, group * 2 + each) * t.X(i, group * 4 + (bits >> each * 2 & 3)) end
      end
      return sum
    end}
  end,
}

return {by_index, by_blocks, expands("sparse24_gemm_expand", true), expands("sparse24_gemm_native", false), linear}
