-- Whether what is launched behind a kernel may begin while it runs (src/lower/select/program.c): not where each block has one tile and L2
-- brings the same bytes to several blocks.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")

local function lets_begin(m, n, k, tile)
  local plan = mr.plan(mr.examples.gemm{m = m, n = n, k = k}:graph{tile = tile}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 4})
  for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
  plan:buffers{a = 4, b = 4}
  plan:fill_waits()
  local text = plan:compile{text = true}.source
  tap.ok(text:find("LAST_PHASE_WAIT();", 1, true), "a kernel waits for what was launched before")
  return text:find("\tNEXT_PHASE_MAY_BEGIN();", 1, true) ~= nil
end

tap.is(lets_begin(320, 4096, 4096, {m = 64, n = 160, k = 64}), false, "one tile a block, whose rows and columns others load, too: it ends first")
tap.is(lets_begin(2048, 2048, 2048, {m = 64, n = 256, k = 64}), true, "two tiles a block: the next launch may begin")
tap.is(lets_begin(16, 8192, 8192, {m = 16, n = 64, k = 128}), true, "one tile a block, and most bytes are loaded once: it may, too")
-- Compilers load through restricted pointers ahead of the wait.
local scale = mr.program("scale", function(p)
  local m, n = p:axes("m", "n")
  local A, B, C = p:input("A", {m, n}), p:input("B", {m}, "f32"), p:output("C", {m, n})
  local a, b = p:load("load_a", A), p:load("load_b", B)
  C:store("store_c", p:task("work", function() return (a:to "f32" * b):to "bf16" end))
end){m = 1000, n = 1001}
local text = mr.search(scale, "h200", {trials = 40, measure = false}).plan:compile{text = true}.source
tap.ok(text:find("const u16 *tensor_A", 1, true) and not text:find("__restrict__ tensor", 1, true), "no tensor is restricted")
tap.done_testing()
