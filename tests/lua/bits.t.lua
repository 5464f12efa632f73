-- Truth values that several operations use are bits of words where a lane has no registers for what they compare.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")

local keep = mr.program("keep", function(p)
  local m, n = p:axes("m", "n")
  local X, Y, Z = p:input("X", {m, n}), p:input("Y", {m, n}), p:output("Z", {m, n})
  local x, y = p:load("load_x", X), p:load("load_y", Y)
  Z:store(p:task("choose", function()
    local twice = x * 2
    local greater = twice:gt(y)
    local most = mr.where(greater, twice, 0):rowmax(n)
    return mr.where(greater, most, twice):to "bf16"
  end))
end)

local function kernel(registers, target)
  local plan = mr.plan(keep:bind{m = 128, n = 64}:graph{tile = {m = 64}}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 4, registers = registers})
  for _, task in ipairs{"load_x", "load_y"} do plan:append(task, {lane = "p0"}) end
  plan:append("choose", {lane = "c0"})
  plan:append("store_Z", {lane = "c0"})
  plan:fill_waits()
  return plan:compile{target = target, text = target == "cuda"}
end

tap.ok(not kernel(240, "cuda").source:find "u32 x%d+%[1%]%[1%] = { 0 }", "with registers each is a value of its own")
local source = kernel(96, "cuda").source
local name, words = source:match "u32 (x%d+)%[1%]%[(%d+)%] = { 0 }"
tap.is(words, "1", "without, 32 are bits of a word")
tap.ok(source:find(("EACH(rb, 1) PIN_U(%s[rb], 1);"):format(name or ""), 1, true), "which is pinned")
tap.ok(kernel(96, "host"):check().ok, "they are the same truth values")
tap.done_testing()
