-- How general the tile language is: programs that are not shipped, of many kinds, each against
-- a formula in plain Lua.
local mr = require "millrace"
local here = arg[0]:match "^(.*/)" or "./"
local tap = dofile(here .. "tap.lua")

-- Elements of an array as t(i, j, ...), counted from 0.
local function view(array)
  local shape = array:shape()
  return function(...)
    local at = 0
    for d = 1, #shape do at = at * shape[d] + select(d, ...) end
    return array[at + 1]
  end
end

local function distance(got, want)
  local diff, norm = 0, 0
  if #got ~= #want then return math.huge end
  for i = 1, #want do
    diff, norm = diff + (got[i] - want[i]) ^ 2, norm + want[i] ^ 2
  end
  local d = norm > 0 and math.sqrt(diff / norm) or math.sqrt(diff)
  return d == d and d or math.huge
end

-- The program's output Y, with its own tiles and with each of `tiles`, equals
-- formula(sizes, inputs as views), flat.
local function check(name, sizes, tiles, body, formula)
  local bound = mr.program(name, body):bind(sizes)
  local inputs, views = bound:inputs{seed = 11}, {}
  for k, array in pairs(inputs) do views[k] = view(array) end
  local want = formula(sizes, views)
  table.insert(tiles, 1, false)
  for _, tile in ipairs(tiles) do
    local out = tile and bound:reference(inputs, {tile = tile}) or bound:reference(inputs)
    local d = distance(out.Y, want)
    tap.ok(d < 1e-12, name .. (tile and " in tiles" or ""), "distance " .. d)
  end
end

dofile(here .. "programs.lua")(check)

tap.done_testing()
