-- C[r,n] = sum over k of A[r,k] B[Group[r],n,k], where the 128 rows of a block have one group, or -1, that of rows of padding: the
-- contiguous layout of DeepGEMM, whose groups are padded to blocks.
--
-- Prefill of mixtures of experts, DeepSeek-V3's. The table has an element for each row, of which a block reads its first. The fp8 form has
-- scales of 128 elements of a row of A, and of 128 x 128 elements of B.
local mr = require "millrace"

local ROWS <const>, BLOCK <const> = 128, 128

-- The group of row r: blocks are divided among g groups, and the last of them has none.
local function group(sizes, r)
  local blk, blocks = r // ROWS, sizes.m // ROWS
  return blk == blocks - 1 and -1 or blk * sizes.g // blocks
end

return {
  {
    name = "grouped_contiguous_gemm",
    program = mr.program("grouped_contiguous_gemm", function(p)
      local m, g, n, k = p:axes("m", "g", "n", "k")
      local blk, i = p:axis("blk", m.size // ROWS), p:axis("i", ROWS)
      p:check(m.size % ROWS == 0, "m must be a multiple of 128")
      local A, B, Group = p:input("A", {m, k}), p:input("B", {g, n, k}), p:input("Group", {m}, "i32", {sorted = true})
      local C = p:output("C", {m, n})
      p:batch(blk)
      local group = p:load("load_group", Group, {blk * ROWS})
      local c = p:carry("c", {i, n}, 0)
      p:loop(k, function()
        c:add(p:mma("mma", p:load("load_a", A, {blk * ROWS + i, k}), p:load("load_b", B, {group, n, k})))
      end)
      C:store("store_c", p:task("round", function() return c:to "bf16" end), {blk * ROWS + i, n})
    end),
    small = {{m = 384, g = 2, n = 64, k = 64}, {m = 256, g = 3, n = 40, k = 72}},
    usual = {{m = 8192, g = 8, n = 4096, k = 7168}, {m = 8192, g = 32, n = 7168, k = 2048}},
    fill = {Group = group},
    formula = function(t, sizes)
      return {C = function(r, n)
        local sum, g = 0, t.Group(r)
        if g < 0 then return 0 end
        for k = 0, sizes.k - 1 do sum = sum + t.A(r, k) * t.B(g, n, k) end
        return sum
      end}
    end,
  },
  {
    name = "grouped_contiguous_gemm_fp8",
    program = mr.program("grouped_contiguous_gemm_fp8", function(p)
      local m, g, n, k = p:axes("m", "g", "n", "k")
      local blk, i = p:axis("blk", m.size // ROWS), p:axis("i", ROWS)
      local kb, l = p:axis("kb", k.size // BLOCK), p:axis("l", BLOCK)
      local nb = p:axis("nb", math.ceil(n.size / BLOCK))
      p:check(m.size % ROWS == 0 and k.size % BLOCK == 0, "m and k must be multiples of 128")
      local A, B, Group = p:input("A", {m, k}, "e4m3"), p:input("B", {g, n, k}, "e4m3"), p:input("Group", {m}, "i32", {sorted = true})
      local SA, SB = p:input("SA", {kb, m}, "f32"), p:input("SB", {g, nb, kb}, "f32")
      local C = p:output("C", {m, n})
      p:batch(blk)
      local group = p:load("load_group", Group, {blk * ROWS})
      local c = p:carry("c", {i, n}, 0)
      p:loop(kb, {batch = true}, function()
        local a, b = p:load("load_a", A, {blk * ROWS + i, kb * BLOCK + l}), p:load("load_b", B, {group, n, kb * BLOCK + l})
        local sa, sb = p:load("load_sa", SA, {kb, blk * ROWS + i}), p:load("load_sb", SB, {group, n // BLOCK, kb})
        local part = p:mma("mma", a, b)
        p:task("scale", function() c:add(part * sa * sb) end)
      end)
      C:store("store_c", p:task("round", function() return c:to "bf16" end), {blk * ROWS + i, n})
    end),
    small = {{m = 384, g = 2, n = 64, k = 256}},
    usual = {{m = 8192, g = 8, n = 4096, k = 7168}, {m = 8192, g = 32, n = 7168, k = 2048}},
    fill = {Group = group},
    formula = function(t, sizes)
      return {C = function(r, n)
        local sum, g = 0, t.Group(r)
        if g < 0 then return 0 end
        for k = 0, sizes.k - 1 do
          sum = sum + t.A(r, k) * t.B(g, n, k) * t.SA(k // BLOCK, r) * t.SB(g, n // BLOCK, k // BLOCK)
        end
        return sum
      end}
    end,
  },
}
