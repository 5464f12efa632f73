-- C[r,n] = sum over k of A[r,k] B[g,k,n] for the rows r of group g, Size[g] rows from First[g] on: the rows of all groups in sequence, without
-- padding, as those of the experts of a mixture are after sorting.
--
-- The grid is made of blocks of `rows` rows: those of group g begin with block Block[g], and what a group leaves of its last block is
-- not stored. grouped_rows_gemm_backward is the gradient of B: dB[g,k,n] = sum over the rows r of g of A[r,k] dC[r,n].
local mr = require "millrace"
local rowsum, where = mr.rowsum, mr.where

local function rows(sizes) return sizes.rows or 64 end  -- of a block

-- Rows of group i, of g, and of all groups before: the sizes differ, and one is none.
local function size(sizes, i) return sizes.g > 2 and i == 1 and 0 or (sizes.mean * (2 * i + 1) // sizes.g) end
local function first(sizes, i)
  local sum = 0
  for j = 0, i - 1 do sum = sum + size(sizes, j) end
  return sum
end
local function block(sizes, i)
  local sum = 0
  for j = 0, i - 1 do sum = sum + (size(sizes, j) + rows(sizes) - 1) // rows(sizes) end
  return sum
end
local function group_of(t, sizes, r)
  for i = 0, sizes.g - 1 do
    if r >= t.First(i) and r < t.First(i) + t.Size(i) then return i end
  end
end

return {
  {
    name = "grouped_rows_gemm",
    program = mr.program("grouped_rows_gemm", function(p)
      local g, n, k = p:axes("g", "n", "k")
      local rows = p:option("rows", "integer", 64)
      local r = p:axis("r", p.mean * g.size)
      local blk, i = p:axis("blk", r.size // rows + g.size), p:axis("i", rows)
      local A, B = p:input("A", {r, k}, "f16"), p:input("B", p.trans_b and {g, n, k} or {g, k, n}, "f16")
      local Size, First, Block = p:input("Size", {g}, "i32"), p:input("First", {g}, "i32"), p:input("Block", {g}, "i32")
      local C = p:output("C", {r, n}, "f16")
      p:batch(blk)
      local begin = p:load("load_begin", Block)
      local group = p:task("group", function() return rowsum(where(begin:le(blk:index()), 1, 0), g) - 1 end)
      local size, first = p:load("load_size", Size, {group}), p:load("load_first", First, {group})
      local from = p:load("load_block", Block, {group})
      local start, row = p:task("row", function()
        local at = (blk:index() - from) * rows
        return first + at, where((at + i:index()):lt(size), first + at + i:index(), -1)
      end)
      local c = p:carry("c", {i, n}, 0)
      p:loop(k, function()
        c:add(p:mma("mma", p:load("load_a", A, {start + i, k}), p:load("load_b", B, p.trans_b and {group, n, k} or {group, k, n})))
      end)
      C:store("store_c", p:task("round", function() return c:to "f16" end), {row, n})
    end),
    small = {{g = 3, n = 64, k = 96, mean = 50}, {g = 4, n = 40, k = 64, mean = 80, trans_b = true}},
    usual = {{g = 4, n = 8192, k = 8192, mean = 256}, {g = 8, n = 4096, k = 7168, mean = 4096, rows = 128, trans_b = true}},
    fill = {Size = size, First = first, Block = block},
    formula = function(t, sizes)
      return {C = function(r, n)
        local g, sum = group_of(t, sizes, r), 0
        if not g then return nil end
        for k = 0, sizes.k - 1 do sum = sum + t.A(r, k) * (sizes.trans_b and t.B(g, n, k) or t.B(g, k, n)) end
        return sum
      end}
    end,
  },
  {
    name = "grouped_rows_gemm_backward",
    program = mr.program("grouped_rows_gemm_backward", function(p)
      local g, k, n, r = p:axes("g", "k", "n", "r")
      local rows = p:axis("rows", p.mean * g.size)
      local A, dC = p:input("A", {rows, k}, "f16"), p:input("dC", {rows, n}, "f16")
      local Size, First = p:input("Size", {g}, "i32"), p:input("First", {g}, "i32")
      local dB = p:output("dB", {g, k, n}, "f16")
      p:batch(g)
      local first = p:load("load_first", First)
      local b = p:carry("b", {k, n}, 0)
      p:loop(r, {length = p:load("load_size", Size), typical = p.mean}, function()
        b:add(p:mma("mma", p:load("load_a", A, {first + r, k}), p:load("load_dc", dC, {first + r, n})))
      end)
      dB:store("store_db", p:task("round", function() return b:to "f16" end))
    end),
    small = {{g = 3, k = 96, n = 64, r = 100, mean = 50}},
    usual = {{g = 4, k = 8192, n = 8192, r = 512, mean = 256}, {g = 8, k = 7168, n = 4096, r = 8192, mean = 4096}},
    fill = {Size = size, First = first},
    formula = function(t, sizes)
      return {dB = function(g, k, n)
        local sum = 0
        for r = t.First(g), t.First(g) + t.Size(g) - 1 do sum = sum + t.A(r, k) * t.dC(r, n) end
        return sum
      end}
    end,
  },
}
