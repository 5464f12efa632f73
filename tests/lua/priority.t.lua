-- plan:lane{priority=}: on gfx942 the waves of a lane have this priority while they multiply. The compiler moves no product out of
-- the part that has it, nor anything else into it.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")

local function plan_of(device, tile)
  local plan = mr.plan(mr.examples.gemm{m = 256, n = 256, k = 256}:graph{tile = tile or {m = 128, n = 64, k = 64}}, mr.device(device))
  plan:split("m", 2)
  plan:lane("p0", {warps = 2})
  plan:append("load_a", {lane = "p0"})
  plan:append("load_b", {lane = "p0"})
  for i = 0, 1 do
    plan:lane("c" .. i, {warps = 4})
    for _, task in ipairs{"mma.", "epilogue.", "store_c."} do plan:append(task .. i, {lane = "c" .. i}) end
  end
  plan:buffers{a = 2, b = 2}
  plan:fill_waits()
  return plan
end
local function count(text, pattern) return select(2, text:gsub(pattern, "")) end
local plan = plan_of "mi300x"
local plain = plan:compile{text = true}.source
tap.ok(not plain:find "PRIORITY", "without a priority the text has none")
for i = 0, 1 do plan:lane("c" .. i, {priority = 1}) end
local text = plan:compile{text = true}.source
tap.ok(count(text, "PRIORITY%(1%);") > 0 and count(text, "PRIORITY%(1%);") == count(text, "PRIORITY%(0%);"), "it is raised and lowered")
tap.is(text:gsub("[^\n]*PRIORITY%([01]%);\n", ""):gsub("/%* Of the waves of a SIMD.-while %(0%)\n", ""), plain, "nothing else changes")
tap.ok(plan:script():find('plan:lane("c1", {warps=4, priority=1})', 1, true), "the script has it")
tap.is(load("local mr = require 'millrace' " .. plan:script())():script(), plan:script(), "and is read again")
tap.like(tostring(plan), "products at priority 1", "so has what is shown of the plan")
tap.like(tostring(plan:kernel{}), "lane c0[^\n]*, products at priority 1", "and the role program")
tap.is(plan:lane "c0".priority, 1, "and the lane")
tap.ok(plan:compile{target = "host"}:check{}.ok, "the kernel is right")
local other = plan:copy()
other:lane("c1", {priority = 2})
tap.like(other:compile{text = true}.source, "PRIORITY%(2%);.*", "lanes of different priorities are not merged")
tap.ok(other:compile{target = "host"}:check{}.ok, "... and are right")
other:lane("c1", {priority = false})
other:lane("c0", {priority = false})
tap.is(other:compile{text = true}.source, plain, "false takes it back")

local function refused(device, n) return select(2, pcall(plan_of(device).lane, plan_of(device), "c0", {priority = n})) end
tap.like(refused("mi300x", 4), "a priority on 'mi300x' is 1 to 3, not 4", "it is limited")
for _, name in ipairs{"h200", "a100"} do
  tap.like(refused(name, 1), ("lane 'c0': warps of '%s' have no priorities"):format(name), name .. " has none")
end

-- What the compiler makes of it.
local assembly_of = dofile(dir .. "lib/gfx942_assembly.lua")
local function compiled(p)
  local lines = assembly_of(p)
  if not lines then return nil end
  local raised, inside, outside, changes = false, 0, 0, 0
  for _, line in ipairs(lines) do
    local n = line:match "^%s+s_setprio (%d)"
    if n then raised, changes = n ~= "0", changes + 1 end
    if line:find "^%s+v_mfma" then
      if raised then inside = inside + 1 else outside = outside + 1 end
    end
  end
  return inside, outside, changes
end
local has_clang = os.execute "clang-22 --version >/dev/null 2>&1"
for _, tile in ipairs{{m = 128, n = 64, k = 64}, {m = 128, n = 128, k = 32}, {m = 256, n = 64, k = 32}} do
  local what = ("%d x %d x %d: "):format(tile.m, tile.n, tile.k)
  if not has_clang then
    tap.ok(true, what .. "compiled # SKIP there is no clang-22")
  else
    local p = plan_of("mi300x", tile)
    local _, all = compiled(p)
    for i = 0, 1 do p:lane("c" .. i, {priority = 1}) end
    local inside, outside, changes = compiled(p)
    tap.ok(inside == all and all > 0 and outside == 0 and changes > 0, what .. "all products are where the priority is raised",
      ("%d of %d inside, %d outside, %d changes"):format(inside, all, outside, changes))
  end
end
tap.done_testing()
