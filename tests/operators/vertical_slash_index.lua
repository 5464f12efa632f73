-- Which keys a block of 64 queries looks at, from two lists for each head: the columns that all queries see, Column[b,h,:], and the
-- diagonals, Slash[b,h,:], of which offset o has the keys i - o of queries i. Blocks[b,h,r,:] are the first keys of the blocks of 64 that
-- a diagonal meets, in order, Count[b,h,r] of them; Others[b,h,r,:] the columns in no such block, in the order of Column, Left[b,h,r] of
-- them; both up to the block of the queries themselves.
--
-- MInference and vLLM make these lists on the device, for attention over vertical lines and slashes, where a thread merges two sorted
-- lists. Here each column and each block is compared with all diagonals, and a running sum says where in its list it belongs.
local mr = require "millrace"
local max, where = mr.max, mr.where

local SIZE <const> = 64

local program = mr.program("vertical_slash_index", function(p)
  local b, h, r, v, s = p:axes("b", "h", "r", "v", "s")                     -- r blocks of queries, v columns, s diagonals
  local c, at, to = p:axis("c", r.size), p:axis("block", r.size), p:axis("column", v.size)
  local Column, Slash = p:input("Column", {b, h, v}, "i32"), p:input("Slash", {b, h, s}, "i32")
  local Blocks, Count = p:output("Blocks", {b, h, r, at}, "i32"), p:output("Count", {b, h, r}, "i32")
  local Others, Left = p:output("Others", {b, h, r, to}, "i32"), p:output("Left", {b, h, r}, "i32")
  p:batch(b, h, r)
  local column = p:load("load_column", Column)
  local met, covered = p:carry("met", {c}, 0, "i32"), p:carry("covered", {v}, 0, "i32")
  p:loop(s, function()
    local offset = p:load("load_slash", Slash)
    p:task("meet", function()
      local first = r:index() * SIZE - offset                               -- of the keys of a diagonal in the block of queries
      local function meets(block)
        return where((block * SIZE):lt(first + SIZE) & (block * SIZE):gt(first - SIZE), 1, 0)
      end
      met:set(max(met, meets(c:index()):rowmax(s)))
      covered:set(max(covered, meets(column // SIZE):rowmax(s)))
    end)
  end)
  local to_block, count, to_column, left = p:task("lists", function()
    local block = met:gt(0) & c:index():le(r:index())
    local alone = covered:eq(0) & (column // SIZE):le(r:index())
    local one, other = where(block, 1, 0), where(alone, 1, 0)
    return where(block, one:cumsum(c) - 1, -1), one:rowsum(c), where(alone, other:cumsum(v) - 1, -1), other:rowsum(v)
  end)
  Blocks:store("store_blocks", p:task("first_keys", function() return c:index() * SIZE end), {b, h, r, to_block})
  Count:store("store_count", count)
  Others:store("store_others", column, {b, h, r, to_column})
  Left:store("store_left", left)
end)

-- Lists of each head: ascending columns, and descending offsets down to 0.
local function column(sizes, _, h, v) return (v * sizes.r * SIZE + 7 * h) // sizes.v end
local function slash(sizes, _, h, s) return (sizes.s - 1 - s) * (sizes.r * SIZE // (2 * sizes.s) + 3 * h) end

local function meets(t, sizes, b, h, r, block)
  for s = 0, sizes.s - 1 do
    local first = r * SIZE - t.Slash(b, h, s)
    if block * SIZE < first + SIZE and block * SIZE > first - SIZE then return true end
  end
  return false
end

local function blocks(t, sizes, b, h, r)
  local list = {}
  for block = 0, r do
    if meets(t, sizes, b, h, r, block) then list[#list + 1] = block * SIZE end
  end
  return list
end

local function columns(t, sizes, b, h, r)
  local list = {}
  for v = 0, sizes.v - 1 do
    local x = t.Column(b, h, v)
    if x // SIZE <= r and not meets(t, sizes, b, h, r, x // SIZE) then list[#list + 1] = x end
  end
  return list
end

return {
  program = program,
  small = {{b = 1, h = 2, r = 12, v = 20, s = 5}, {b = 1, h = 1, r = 40, v = 64, s = 33}},
  usual = {{b = 1, h = 32, r = 512, v = 1024, s = 512}},
  fill = {Column = column, Slash = slash},
  formula = function(t, sizes)
    return {
      Blocks = function(b, h, r, i) return blocks(t, sizes, b, h, r)[i + 1] end,
      Count = function(b, h, r) return #blocks(t, sizes, b, h, r) end,
      Others = function(b, h, r, i) return columns(t, sizes, b, h, r)[i + 1] end,
      Left = function(b, h, r) return #columns(t, sizes, b, h, r) end,
    }
  end,
}
