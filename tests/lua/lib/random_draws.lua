-- random_draws.lua - programs for plans drawn at random, with sizes and a tile that are drawn, too.
--
-- of[name](ways) gives a bound program and its tile, whose rows may be split so many ways; wild[name]() one with tiles that
-- are narrow or odd. `programs`, `wild_programs` and `length_programs`, of which the last two are wild, are their names.
local mr = require "millrace"

local dir = debug.getinfo(1, "S").source:match "^@(.*/)"
local own, rare = dofile(dir .. "programs.lua"), dofile(dir .. "wild_programs.lua")

local M = {}
local random = math.random

local function choose(list) return list[random(#list)] end
local function chance(p) return random() < p end

local draws = {}

-- The size of an axis with 1 to `most` tiles, of which the last may be shorter.
local function size(tile, most, ...)
  local n = random(most)
  return tile * n - (n > 1 and choose{0, ...} or 0)
end

-- Rows for a tile of 64 times so many lanes.
local function rows(ways)
  local tile = 64 * ways * choose{1, 1, 1, 2}
  return size(tile, tile == 64 and choose{2, 2, 5} or 2, 0, 8, 24), tile
end

function draws.gemm(ways)
  local m, tm = rows(ways)
  local tn, tk = choose{32, 64, 64, 128}, choose{16, 32, 64}
  local epilogue = choose{"none", "none", "relu", "gelu", "silu"}
  local sizes = {m = m, n = size(tn, 2, 0, 8, 28), k = size(tk, 5, 0, 4, 8),
    dtype = choose{"bf16", "bf16", "f16"}, out = chance(0.3) and "f32" or nil,
    bias = chance(0.3) or nil, a = choose{"mk", "mk", "km"}, b = choose{"nk", "nk", "kn"},
    activation = epilogue ~= "none" and epilogue or nil}
  return mr.examples.gemm(sizes), {m = tm, n = tn, k = tk}
end

function draws.attention(ways)
  local m, tm = rows(ways)
  local tn = choose{32, 64, 64, 128}
  local sizes = {b = 1, h = random(2), m = m, n = size(tn, 4, 0, 8, 24), d = choose{32, 64, 64},
    causal = chance(0.5) or nil, window = chance(0.25) and random(20, 150) or nil,
    softcap = chance(0.1) and 20 or nil, hkv = chance(0.2) and 1 or nil}
  return mr.examples.flash_attention(sizes), {m = tm, n = tn}
end

-- Sizes and tile of what contracts k over rows m and columns n.
local function product(ways)
  local m, tm = rows(ways)
  local tn, tk = choose{32, 64}, choose{16, 32, 64}
  return {m = m, n = size(tn, 2, 0, 8), k = size(tk, 5, 0, 8)}, {m = tm, n = tn, k = tk}
end

for _, name in ipairs{"normed", "gated", "highest"} do
  draws[name] = function(ways)
    local sizes, tile = product(ways)
    return own[name](sizes), tile
  end
end

function draws.two_pass(ways)
  local m, tm = rows(ways)
  local tn = choose{32, 64}
  return own.two_pass{m = m, n = size(tn, 4, 0, 8), d = 64}, {m = tm, n = tn}
end

function draws.mlp(ways)
  local sizes, tile = product(ways)
  sizes.n, sizes.d = size(tile.n, 3, 0, 8), choose{32, 64}
  return own.mlp(sizes), tile
end

function draws.recurrent(ways)
  local sizes, tile = product(ways)
  sizes.n, sizes.d, tile.n = 64, choose{32, 64}, nil
  return own.recurrent(sizes), tile
end

-- Sums of the rows of A B^T: a loop in a loop, and a store of one element a row.
function draws.sums(ways)
  local sizes, tile = product(ways)
  sizes.n = size(tile.n, 3, 0, 8)
  return mr.examples.matmul_sum(sizes), tile
end

-- Weights of four bits, unpacked by the lane that multiplies.
function draws.unpacked(ways)
  local m, tm = rows(ways)
  return mr.examples.dequant_gemm{m = m, n = choose{64, 72}, k = 64 * random(3), group = 64},
    {m = tm, n = 64, k = 64}
end

function draws.scan(ways)
  local m, tm = rows(ways)
  return own.scan{m = m, n = size(64, 3, 0, 8), d = choose{32, 64}}, {m = tm, n = 64}
end

-- Without any loop.
function draws.blend(ways)
  local m, tm = rows(ways)
  return own.blend{m = m, n = size(64, 3, 0, 8)}, {m = tm, n = 64}
end

function draws.project(ways)
  local m, tm = rows(ways)
  return own.project{m = m, n = size(64, 2, 0, 8), k = choose{16, 32, 64}}, {m = tm, n = 64}
end

M.programs = {}
for name in pairs(draws) do M.programs[#M.programs + 1] = name end
table.sort(M.programs)

-- Of those that are drawn by name alone.
function draws.scaled(ways)
  local sizes, tile = product(ways)
  sizes.k, tile.k = 64 * random(4) - choose{0, 0, 8}, nil
  return own.scaled(sizes), tile
end

---- wild programs: sizes and tile ----------------------------------------------

local wild_draws = {}

-- The extent of a tile, mostly narrow and often odd.
local function extent() return choose{8, 16, 16, 24, 32, 32, 48, 64, 64, 96, 128} end

-- Few rows and columns, as products on CUDA cores are slow; full axes now and then.
local function sizes_of(tile, most)
  local sizes = {}
  local names = {}
  for name in pairs(tile) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    sizes[name] = math.max(1, size(tile[name], tile[name] > 64 and 1 or most, 0, 4, 7, 8))
    if chance(0.1) then tile[name] = nil end
  end
  return sizes
end

local function operands(sizes)
  sizes.dtype = choose{"bf16", "bf16", "f16", "f32"}
  return sizes
end

function wild_draws.gemm()
  local tile = {m = extent(), n = extent(), k = extent()}
  local sizes = operands(sizes_of(tile, 2))
  sizes.a, sizes.b = choose{"mk", "mk", "km"}, choose{"nk", "nk", "kn"}
  sizes.out, sizes.bias = chance(0.4) and "f32" or nil, chance(0.3) or nil
  sizes.activation = choose{nil, "relu", "silu"}
  return mr.examples.gemm(sizes), tile
end

function wild_draws.attention()
  local tile = {m = extent(), n = extent()}
  local sizes = operands(sizes_of(tile, 3))
  sizes.b, sizes.h, sizes.d = 1, random(2), choose{16, 24, 32, 64}
  sizes.causal = chance(0.4) or nil
  return mr.examples.flash_attention(sizes), tile
end

-- Two products in a row; the last axis is a full axis or in tiles.
for _, name in ipairs{"twice", "qkv", "dq"} do
  wild_draws[name] = function()
    local tile = {m = extent(), n = extent(), d = choose{16, 24, 32, 64}}
    local sizes = operands(sizes_of(tile, 2))
    if chance(0.7) then tile.d = nil end
    return rare[name](sizes), tile
  end
end

-- One product, and something along its rows or columns.
for _, name in ipairs{"norms", "columns", "fold"} do
  wild_draws[name] = function()
    local tile = {m = extent(), n = extent(), k = choose{16, 32, 40, 64}}
    local sizes = operands(sizes_of(tile, 2))
    if name == "columns" then tile.m = nil end
    if name == "fold" then tile.k = nil end
    return rare[name](sizes), tile
  end
end

function wild_draws.window()
  local tile = {m = extent(), n = extent(), k = choose{16, 32, 40, 64}}
  local sizes = operands(sizes_of(tile, 2))
  return rare.window(random(-5, 5), random(-9, 9))(sizes), tile
end

function wild_draws.outer()
  local tile = {m = extent(), n = extent()}
  local sizes = operands(sizes_of(tile, 2))
  sizes.k = choose{8, 16, 20, 64}
  return rare.outer(sizes), tile
end

function wild_draws.stats()
  local tile = {m = extent(), n = extent()}
  local sizes = operands(sizes_of(tile, 3))
  return rare.stats(sizes), tile
end

local unary = {"rowsum", "rowmax", "rowmin", "cumsum", "cummax", "cummin"}

-- Axes that are not reduced or scanned are in tiles, or full.
function wild_draws.unary()
  local axes = choose{"m", "mn", "mn", "mn", "mnk"}
  local at = random(#axes)
  local along, tile = axes:sub(at, at), {}
  for name in axes:gmatch "." do tile[name] = #axes == 3 and choose{4, 8, 16} or extent() end
  local sizes = operands(sizes_of(tile, 3))
  tile[along] = nil
  local functions = {choose(unary)}
  if chance(0.3) then functions[2] = choose(unary) end
  local of_product = axes == "mn" and chance(0.4)
  sizes.d = of_product and choose{16, 24, 32} or nil
  local use, other = choose{"alone", "against", "carried"}, nil
  if #axes > 1 and use ~= "carried" and chance(0.2) then
    other = axes:sub(at % #axes + 1, at % #axes + 1)
    tile[other] = nil
  end
  return rare.unary(functions, axes, along, use, other, of_product)(sizes), tile
end

M.wild_programs = {}
for name in pairs(wild_draws) do M.wild_programs[#M.wild_programs + 1] = name end
table.sort(M.wild_programs)

-- Programs with lengths; they are no part of the wild ones, so that these stay what they were.
local lengths = dofile(dir .. "length_programs.lua")
M.length_programs = {}
for name, program in pairs(lengths) do
  M.length_programs[#M.length_programs + 1] = "length_" .. name
  wild_draws["length_" .. name] = function()
    local tile = {m = extent(), n = extent(), k = extent()}
    local sizes = operands(sizes_of(tile, 3))
    sizes.g, sizes.d = 3, choose{16, 24, 32, 64}
    if name == "blocks" then
      sizes.b, sizes.g, sizes.mb, sizes.j, sizes.keys = 2, nil, 2, 3, 3 * sizes.n
      sizes.k, tile.k, tile.j = nil, nil, choose{1, 1, 1, 2}
    end
    if name == "attention" then sizes.b, sizes.g, sizes.causal = 3, nil, chance(0.4) or nil end
    if name == "groups" or name == "products" then sizes.a, sizes.b = choose{"mk", "km"}, choose{"nk", "kn"} end
    if name == "nested" then sizes.both = chance(0.7) or nil end
    if name == "rows" then sizes.out = choose{"bf16", "f32"} end
    if name == "parts" then sizes.s, sizes.scan = 3, chance(0.3) or nil end
    if name ~= "attention" and name ~= "rows" and name ~= "blocks" then sizes.d = nil end
    if name == "attention" or name == "rows" or name == "parts" then sizes.k, tile.k = nil, nil end
    if name == "rows" then sizes.n, tile.n = nil, nil end
    if name == "varying" then
      sizes, tile = {m = sizes.m, n = sizes.n, l = sizes.k, kb = 3}, {m = tile.m, n = tile.n, l = tile.k}
    end
    if name == "kept" then
      sizes, tile = {g = 2, kb = 4, m = sizes.m, n = sizes.n, k = choose{16, 32, 64}}, {m = tile.m, n = tile.n}
      if chance(0.5) then sizes.mask = "i32" else sizes.both = chance(0.5) or nil end
    end
    if name == "mask" then
      local ks, flat = choose{16, 32, 64}, chance(0.5) or nil
      sizes = {bm = 2, bn = 2, bk = 3, rows = sizes.m, cols = sizes.n, ks = ks, flat = flat}
      tile = {rows = tile.m, cols = tile.n, key = flat and choose{ks, ks // 2, 2 * ks, 16}}
    end
    if name == "unpacked" then sizes.dtype = choose{"bf16", "f16"} end
    if name == "unpacked" and tile.k then tile.k = (tile.k + 7) // 8 * 8 end
    return program(sizes), tile
  end
end
table.sort(M.length_programs)

M.choose, M.chance, M.of, M.wild = choose, chance, draws, wild_draws

return M
