-- Operands of 8 bits are converted in registers for MFMA on gfx942. What that takes is in the prediction: as many
-- instructions as clang makes of it.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local in_order, assembly_of = dofile(dir .. "lib/in_order.lua"), dofile(dir .. "lib/gfx942_assembly.lua")
local WARPS <const>, THREADS <const>, SLOTS <const>, SHARE <const> = 4, 256, 64, 0.9
local TYPES <const> = {{"e5m2", "e5m2"}, {"e4m3", "e4m3"}, {"e4m3", "e5m2"}, {"e5m2", "e4m3"}}

local function plan_of(a, b, tile)
  local bound = mr.program("product", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B, C = p:input("A", {m, k}, a), p:input("B", {n, k}, b), p:output("C", {m, n}, "f32")
    local acc = p:carry("acc", {m, n}, 0)
    p:loop(k, function() acc:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
    C:store("store_c", p:task("twice", function() return acc * 2 end))
  end):bind{m = 512, n = 512, k = 1024}
  return in_order(mr.device "mi300x", bound, tile, WARPS)
end

-- Instructions of the vector unit in the block that has the most products, without these.
local function instructions(plan)
  local lines = assembly_of(plan)
  if not lines then return nil end
  local most, found, products, vector = 0, 0, 0, 0
  for _, line in ipairs(lines) do
    if line:find "^[%w_.$]+:" then
      if products > most then most, found = products, vector end
      products, vector = 0, 0
    elseif line:find "^%s+v_mfma" then
      products = products + 1
    elseif line:find "^%s+v_" then
      vector = vector + 1
    end
  end
  return products > most and vector or found
end

local has_clang = os.execute "clang-22 --version >/dev/null 2>&1"
for _, tile in ipairs{{m = 64, n = 64, k = 32}, {m = 64, n = 128, k = 64}, {m = 128, n = 64, k = 64}} do
  local first_count, first_cycles
  for _, t in ipairs(TYPES) do
    local plan = plan_of(t[1], t[2], tile)
    local what = ("%s x %s, %d x %d x %d"):format(t[1], t[2], tile.m, tile.n, tile.k)
    local cycles = plan:simulate().rec_mii
    -- The matrix unit is as fast for all of these but e4m3 alone.
    local products = 2 * tile.m * tile.n * tile.k / 0.8 / (t[1] == "e4m3" and t[2] == "e4m3" and 4096 or 2048)
    if not has_clang then
      tap.ok(true, what .. " # SKIP there is no clang-22")
    else
      local count = instructions(plan)
      first_count, first_cycles = first_count or count, first_cycles or cycles - products
      local counted, predicted = count - first_count, (cycles - products - first_cycles) * SLOTS * SHARE / THREADS
      tap.ok(math.abs(counted - predicted) <= 4 + 0.1 * counted, what .. ": instructions more than of e5m2",
        ("%d counted, %.1f predicted"):format(counted, predicted))
    end
  end
end
tap.done_testing()
