-- Tiles of 16 bits in shared memory that sTasks compute with are fetched to registers by ldmatrix (src/lower/select/fetched.c): where
-- that can be, and that kernels are right on the CPU without a race.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")

-- The rows' sums of squares and their product with a column, of which one or both lie in shared memory.
local program = mr.program("squares", function(p)
  local m, n = p:axes("m", "n")
  local X, G = p:input("X", {m, n}), p:input("G", p.by_column and {n, m} or {n})
  local Y, S = p:output("Y", {m, n}), p:output("S", {m}, "f32")
  local s = p:carry("s", {m}, 0)
  p:loop(n, function()
    local x, g = p:load("load_x", X), p:load("load_g", G)
    local y = p:task("scale", function()
      s:add(mr.rowsum(x * x, n))
      return (x * g):to(p.dtype or "bf16")
    end)
    Y:store("store_y", y)
  end)
  S:store("store_s", s)
end)

local function planned(device, x)
  local plan = mr.plan(program(x.sizes):graph{tile = x.tile}, device)
  plan:lane("p0", {warps = x.copying or 1})
  if x.slices then plan:split("m", x.slices) end
  for i = 0, (x.slices or 1) - 1 do plan:lane("c" .. i, {warps = x.warps or 4, columns = x.columns}) end
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or "c" .. (t.name:match "%.(%d+)$" or 0)})
  end
  plan:buffers{x = x.versions or 2, g = 2}
  plan:fill_waits()
  return plan
end

-- Does the kernel's text fetch matrices, of elements with which an sTask computes?
local function fetches(plan) return plan:compile{target = "cuda", text = true}.source:find("u32 x[4]; shared_matrices(", 1, true) ~= nil end

local devices = {h200 = mr.device "h200", a100 = mr.device "a100"}
local function case(what, on, x, by_matrices)
  local good, plan = pcall(planned, devices[on], x)
  if not tap.ok(good and plan:check(), ("%s on %s: legal"):format(what, on), tostring(good and select(2, plan:check()) or plan)) then return end
  tap.is(fetches(plan), by_matrices, "  fetched by matrices, or not")
  for seed = 1, 2 do
    local result = plan:compile{target = "host"}:check{race = true, seed = seed}
    tap.ok(result.ok, ("  right, seed %d"):format(seed), tostring(result))
  end
end

for _, on in ipairs{"h200", "a100"} do
  local copying = on == "a100" and 4 or 1
  local function try(what, x, by_matrices)
    x.copying = copying
    case(what, on, x, by_matrices)
  end
  try("one panel", {sizes = {m = 128, n = 192}, tile = {m = 64, n = 64}}, true)
  try("f16", {sizes = {m = 128, n = 192, dtype = "f16"}, tile = {m = 64, n = 64}}, true)
  try("two panels", {sizes = {m = 128, n = 256}, tile = {m = 64, n = 128}}, true)
  try("a narrow row", {sizes = {m = 64, n = 96}, tile = {m = 64, n = 16}}, true)
  try("rows of 32 columns", {sizes = {m = 64, n = 96}, tile = {m = 64, n = 32}}, true)
  try("several blocks of rows", {sizes = {m = 256, n = 128}, tile = {m = 128, n = 64}}, true)
  try("slices", {sizes = {m = 256, n = 128}, tile = {m = 128, n = 64}, slices = 2}, true)
  try("eight warps", {sizes = {m = 256, n = 128}, tile = {m = 128, n = 64}, warps = 8}, true)
  try("ragged rows", {sizes = {m = 100, n = 128}, tile = {m = 64, n = 64}}, true)
  try("ragged columns", {sizes = {m = 64, n = 104}, tile = {m = 64, n = 64}}, true)
  try("eight columns", {sizes = {m = 64, n = 64}, tile = {m = 64, n = 8}}, false)
  try("f32", {sizes = {m = 64, n = 128, dtype = "f32"}, tile = {m = 64, n = 64}}, false)
  try("another operand with its rows as columns", {sizes = {m = 64, n = 128, by_column = true}, tile = {m = 64, n = 64}}, true)
end
tap.done_testing()
