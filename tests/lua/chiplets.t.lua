-- plan:grid{chiplets=}: where blocks go round the chiplets of a device, each chiplet takes consecutive tiles, for any numbers
-- of tiles and blocks. Kernels get the same tiles in another order.
local mr = require "millrace"
local core = require "millrace.core"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local device = mr.device "mi300x"
local in_order = dofile(dir .. "lib/in_order.lua")
local CHIPLETS <const> = 8

local function gemm(rows, columns)
  return in_order(device, mr.examples.gemm{m = 64 * rows, n = 64 * columns, k = 32}, {m = 64, n = 64, k = 32}, 4, {a = 1, b = 1})
end
-- The tiles of each block, in their order.
local function blocks_of(plan)
  local s = core.lower(plan, "hip")[1]
  local blocks = {}
  for b = 1, #s.start - 1 do blocks[b] = table.move(s.order, s.start[b] + 1, s.start[b + 1], 1, {}) end
  return blocks, s
end

local bad = {}
for _, case in ipairs{{1, 1}, {1, 7}, {2, 4}, {3, 3}, {4, 10, 20}, {5, 13, 7}, {7, 11, 19}, {19, 17}, {20, 31, 303}, {20, 31}} do
  local plan = gemm(case[1], case[2])
  plan:grid{group = 4, eus = case[3]}
  local plain = blocks_of(plan)
  plan:grid{chiplets = CHIPLETS}
  local blocks = blocks_of(plan)
  -- Each round's tiles are the same; each chiplet's are consecutive among them, and as many as those of the others, or one more.
  local what = ("%d x %d tiles on %d blocks"):format(case[1], case[2], #blocks)
  if #blocks ~= #plain then bad[#bad + 1] = what .. ": other blocks" end
  for round = 1, #plain[1] do
    local nth, seen, least, most = {}, 0, math.huge, 0
    for b, tiles in ipairs(plain) do
      if tiles[round] then nth[tiles[round]] = b end
    end
    local expected = 1
    for chiplet = 1, CHIPLETS do
      local n = 0
      for b = chiplet, #blocks, CHIPLETS do
        local tile = blocks[b][round]
        if tile and nth[tile] ~= expected then bad[#bad + 1] = what .. ": not the next tile" end
        if tile then expected, n = expected + 1, n + 1 end
      end
      seen, least, most = seen + n, math.min(least, n), math.max(most, n)
    end
    local all = 0
    for _ in pairs(nth) do all = all + 1 end
    if seen ~= all then bad[#bad + 1] = ("%s: %d of %d tiles"):format(what, seen, all) end
    if most - least > 1 then bad[#bad + 1] = what .. ": uneven" end
  end
end
tap.is(table.concat(bad, "\n"), "", "each chiplet has consecutive tiles of each round")

local plan = gemm(3, 5)
plan:grid{eus = 9, group = 2}
local simulated = plan:simulate().seconds
plan:grid{chiplets = CHIPLETS}
local text = plan:compile{text = true}.source
tap.ok(text:find("order[at]", 1, true), "a kernel reads from tables which tiles its chiplet has")
local other = gemm(3, 5)
other:grid{eus = 9, group = 3, chiplets = CHIPLETS}
tap.is(other:compile{text = true}.source, text, "  and its text is the same for another order")
tap.is(plan:simulate().seconds, simulated, "so is the prediction, which knows one cache for all")
tap.ok(plan:compile{target = "host"}:check{}.ok, "the kernel is right")
tap.like(plan:script(), 'plan:grid{raster="rows", group=2, eus=9, chiplets=8}', "the script says it")
tap.is(load("local mr = require 'millrace' " .. plan:script())():script(), plan:script(), "and is read again")
tap.like((tostring(plan):gsub("%s+", " ")), "neighbours on one of 8 chiplets", "what is shown of the plan says it")
plan:undo()
tap.ok(not plan:script():find "chiplets", "undo")

-- Tiles of different work: the longest first, each to the block with the least.
local causal = mr.examples.flash_attention{b = 1, h = 3, m = 512, n = 512, d = 64, causal = true}
local uneven = in_order(device, causal, {m = 64, n = 64}, 4)
uneven:grid{longest_first = true, eus = 10}
local function work_of(p)
  local sums, seen = {}, 0
  for b, tiles in ipairs((blocks_of(p))) do
    sums[b] = 0
    for _, tile in ipairs(tiles) do sums[b], seen = sums[b] + tile % 8 + 1, seen + 1 end
  end
  table.sort(sums)
  return table.concat(sums, " ") .. " of " .. seen
end
local before = work_of(uneven)
uneven:grid{chiplets = CHIPLETS}
tap.is(work_of(uneven), before, "longest first: the blocks have as much work as without")
tap.ok(uneven:compile{target = "host"}:check{}.ok, "... and are right")

local function refused(of, n)
  local p = in_order(mr.device(of), mr.examples.gemm{m = 64, n = 64, k = 64}, {m = 64, n = 64, k = 32}, 4)
  return select(2, pcall(p.grid, p, {chiplets = n}))
end
tap.like(refused("h200", 8), "'h200' has no chiplets, so chiplets is 1, not 8", "a device without chiplets refuses them")
tap.like(refused("mi300x", 4), "'mi300x' has 8 chiplets, so chiplets is that or 1, not 4", "other numbers are refused")
tap.is(refused("h200", 1), nil, "1 is none")
tap.is(mr.device("a100"):number "limits.chiplets", 1, "a device has one unless its file says otherwise")

-- The search.
for name, wanted in pairs{mi300x = 8, h200 = false, a100 = false} do
  local found = mr.search(mr.examples.gemm{m = 512, n = 512, k = 128}, mr.device(name), {trials = 20}).plan
  tap.is(tonumber(found:script():match "chiplets=(%d+)") or false, wanted, "a search for " .. name)
end
tap.done_testing()
