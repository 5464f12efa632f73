-- Where tiles go round the blocks in a raster, a kernel computes which it has; elsewhere tables say it. Both must be what the plan
-- assigns.
local mr = require "millrace"
local core = require "millrace.core"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local in_order = dofile(dir .. "lib/in_order.lua")

-- What the text computes of a position, as a function; positions themselves, where the text has none.
local function tile_at(text)
  local body = text:match "DEV int tile_at_%w+%(int at%)\n{\n(.-)\n}\n"
  if not body then return function(at) return at end end
  body = body:gsub("const int", "local"):gsub("full %? (%w+%b()) : (%w+%b())", "choose(full, %1, %2)")
  return load("local quo, rem, choose = ...\nreturn function(at)\n" .. body .. "\nend")(function(a, b) return a // b end,
    function(a, b) return a % b end, function(when, a, b) if when then return a end return b end)
end

local function agrees(plan, target, text)
  local s = core.lower(plan, target)[1]
  local tile = tile_at(text)
  local blocks = #s.start - 1
  for b = 1, blocks do
    for at = s.start[b], s.start[b + 1] - 1 do
      if s.order[at + 1] ~= tile(b - 1 + (at - s.start[b]) * blocks) then return false end
    end
  end
  return true
end

local computed, by_table = 0, 0
for _, machine in ipairs{{"h200", "cuda"}, {"mi300x", "hip"}} do
  local device = mr.device(machine[1])
  for _, tiles in ipairs{{1, 1}, {1, 9}, {9, 1}, {5, 13}, {20, 31}, {400, 1}} do
    for _, grid in ipairs{{}, {raster = "columns"}, {group = 4}, {raster = "columns", group = 3}, {eus = 7}, {cluster = 2}, {cluster = 3}, {cluster = 3, group = 2}, {cluster = 2, group = 4},
      {cluster = 2, group = 3, along = "m"}, {cluster = 4, along = "n", raster = "columns", group = 3}, {chiplets = 8}, {longest_first = true}} do
      local bound = mr.examples.gemm{m = 64 * tiles[1], n = 64 * tiles[2], k = 32}
      local plan = in_order(device, bound, {m = 64, n = 64, k = 32}, 4, {a = 1, b = 1})
      local name = {}
      for k, v in pairs(grid) do name[#name + 1] = k .. "=" .. tostring(v) end
      table.sort(name)
      if pcall(plan.grid, plan, grid) and plan:check() then
        local text = plan:compile{target = machine[2], text = true}.source
        local what = ("%s, %d x %d tiles, %s: "):format(machine[1], tiles[1], tiles[2], table.concat(name, " "))
        if text:find("order[", 1, true) then
          by_table = by_table + 1
        else
          computed = computed + 1
          tap.ok(not text:find("start[", 1, true) and agrees(plan, machine[2], text), what .. "computed as assigned")
        end
        if not grid.chiplets and not grid.cluster then tap.ok(not text:find("order[", 1, true), what .. "no table") end
      end
    end
  end
end
tap.ok(by_table > 20 and computed > 20, "both ways occur", computed .. " computed, " .. by_table .. " by table")

-- Sizes that are known at launch: how many tiles there are, too, and so are the tables.
local any = mr.examples.gemm:bind{m = mr.any{max = 512, multiple = 64}, n = 64, k = 32}
local plan = in_order(mr.device "h200", any, {m = 64, n = 64, k = 32}, 4, {a = 1, b = 1})
tap.ok(plan:compile{text = true}.source:find("order[", 1, true), "a launch that says how many tiles there are has tables")
tap.done_testing()
