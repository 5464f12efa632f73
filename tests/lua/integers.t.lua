-- Products of integers of 8 bits, signed or not, or one of each, by both matrix units of an h200 and by that of an a100.
local mr = require "millrace"
local here = arg[0]:match "^(.*/)" or "./"
local tap = dofile(here .. "tap.lua")
local on_host = dofile(here .. "lib/on_host.lua")
local ok = tap.ok

local function product(a, b)
  return mr.program("product", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local A, B, C = p:input("A", {m, k}, a), p:input("B", {n, k}, b), p:output("C", {m, n}, "i32")
    local c = p:carry("c", {m, n}, 0)
    p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
    C:store("store_c", c)
  end)
end

local function schedule(bound, device, unit)
  local plan = mr.plan(bound:graph{tile = {m = 64, n = 72, k = 64}}, mr.device(device))
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 4})
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0", seu = t.name == "mma" and unit or nil})
  end
  plan:buffers{a = 2, b = 2}
  plan:fill_waits()
  return plan
end

local signs = {i8 = "s8", u8 = "u8"}
for _, on in ipairs{{"h200", "tensor", "wgmma.mma_async.sync.aligned.m64n64k32.s32.%s.%s "},
    {"h200", "mma_sync", "mma.sync.aligned.m16n8k32.row.col.s32.%s.%s.s32"}, {"a100", "tensor", "mma.sync.aligned.m16n8k32.row.col.s32.%s.%s.s32"}} do
  for _, a in ipairs{"i8", "u8"} do
    for _, b in ipairs{"i8", "u8"} do
      local plan = schedule(product(a, b){m = 100, n = 72, k = 160}, on[1], on[2])
      local what = ("%s x %s on '%s' of an %s"):format(a, b, on[2], on[1])
      local error, report = on_host.worst(plan, 2)
      ok(error == 0, what .. " is exact", error, report)
      ok(plan:compile{text = true}.source:find(on[3]:format(signs[a], signs[b]), 1, true), "  by an instruction of these types")
    end
  end
end

-- Sums that do not fit wrap around, as the instructions' do; what is unsigned is no negative number.
do
  local bound = product("u8", "i8"){m = 64, n = 72, k = 64}
  local A, B = mr.array("u8", {64, 64}, 255), mr.array("i8", {72, 64}, -128)
  local got = schedule(bound, "h200", "tensor"):compile{target = "host"}:run{A = A, B = B}
  ok(got.C[1] == -255 * 128 * 64, "255 times -128, 64 times", got.C[1])
end

tap.done_testing()
