-- Products of two values of 16 bits that are rounded to their type: two at once, in that type (src/lower/select/pairs.c). Where that
-- can be, that what such an operand reads is read before it waits for the product before, and that kernels are right on the CPU.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local target = arg[1] or "host"

-- A GEMM whose first operand is the product of a tile with a row (`by` "k"), a column ("m"), or another tile.
local program = mr.program("scaled", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local X, W, C = p:input("X", {m, k}, p.dtype), p:input("W", {n, k}, p.dtype), p:output("C", {m, n}, "f32")
  local by = p.by or "k"
  local G = p:input("G", by == "k" and {k} or by == "m" and {m} or {m, k}, p.scale or p.dtype)
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function()
    local x, w, g = p:load("load_x", X), p:load("load_w", W), p:load("load_g", G)
    local rows = p:task("scale", function()
      local y = p:option("plus", "boolean", false) and x * g + 1 or x * g
      return y:to(p.dtype)
    end)
    c:add(p:mma("mma", rows, w))
  end)
  C:store("store_c", c)
end)

local function planned(sizes, tile, device, o)
  local plan = mr.plan(program(sizes):graph{tile = tile}, mr.device(device))
  plan:lane("p0", {warps = o.copying or 1})
  if o.slices then plan:split("m", o.slices) end
  for i = 0, (o.slices or 1) - 1 do plan:lane("c" .. i, {warps = 4}) end
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or "c" .. (t.name:match "%.(%d+)$" or 0)})
  end
  plan:buffers{x = 2, g = 2, w = 2}
  plan:fill_waits()
  return plan
end

-- pairs: how the text multiplies; false: one by one.
local function case(what, sizes, tile, pairs, device, o)
  local good, plan = pcall(planned, sizes, tile, device or "h200", o or {})
  if not tap.ok(good and plan:check(), what .. ": legal", tostring(good and select(2, plan:check()) or plan)) then return end
  local text = plan:compile{target = "cuda", text = true}.source
  tap.is(text:match "= (mul_pair_[%w_]+)%(" or false, pairs, "  multiplied in pairs, or not")
  for seed = 1, 2 do
    local result = plan:compile{target = target}:check{race = target == "host", seed = seed}
    tap.ok(result.ok, ("  right, seed %d"):format(seed), tostring(result))
  end
  return plan, text
end

local sizes, tile = {m = 128, n = 64, k = 256}, {m = 64, n = 64, k = 64}
local function with(x)
  for key, value in pairs(sizes) do x[key] = x[key] or value end
  return x
end
local here <const> = "mul_pair_bf16_here"
local plan, text = case("a tile and a row", with{dtype = "bf16"}, tile, here)
local scale = text:match "/%* scale, iteration .-\n(.-)/%* mma, iteration"
local wait = scale:find("GROUPS_WAIT(0)", 1, true)
tap.ok(wait, "it waits for the product before")
tap.ok(scale:find("shared_matrices(x, ", 1, true) < wait and not scale:find("shared_u32(", wait, true) and
  not scale:find("fence_async", wait, true), "  and has read everything then", scale)
tap.ok(scale:find(here, 1, true) > wait, "  but multiplies behind it", scale)
tap.like(text, 'asm volatile%("fma.rn.bf16x2', "  by an instruction that compilers do not move")
tap.like(tostring(plan:kernel{}), "pack r_scale%[0%] = bf16%(mul%(m0, m1%)%)", "  into the registers that the product reads")

local good, message = pcall(function() mr.plan(plan.graph, plan.device):split_off("scale", "x", 2) end)
tap.ok(not good and message:find "'scale' does nothing else than make 'scale'", "an sTask keeps something to do", tostring(message))

case("f16", with{dtype = "f16"}, tile, "mul_pair_f16_here")
case("a tile and a column", with{dtype = "bf16", by = "m"}, tile, here)
case("two tiles", with{dtype = "bf16", by = "tile"}, tile, here)
case("slices", with{dtype = "bf16", m = 256}, {m = 128, n = 64, k = 64}, here, nil, {slices = 2})
case("two blocks of rows", with{dtype = "bf16", m = 256}, {m = 128, n = 64, k = 64}, here)
case("a narrow tile", with{dtype = "bf16"}, {m = 64, n = 64, k = 16}, here)
case("ragged rows", with{dtype = "bf16", m = 100}, tile, here)
case("ragged columns", with{dtype = "bf16", k = 200}, tile, here)
case("an odd number of columns", with{dtype = "bf16", k = 199}, tile, here)
case("a scale of another type", with{dtype = "bf16", scale = "f32"}, tile, false)
case("a scale of another type of 16 bits", with{dtype = "bf16", scale = "f16"}, tile, false)
case("a sum behind the product", with{dtype = "bf16", plus = true}, tile, false)
case("a result in shared memory", with{dtype = "bf16"}, {m = 64, n = 64, k = 64}, "mul_pair_bf16", "a100", {copying = 4})

---- a value that is split off with its product -------------------------------------------------------

local rows = mr.examples.rmsnorm_gemm{m = 256, n = 256, k = 192}
local function norm(steps)
  local p = mr.plan(rows:graph{tile = {m = 128, n = 128, k = 64}}, mr.device "h200")
  if steps > 0 then p:split_off("squares", "convert", steps) end
  p:split("m", 2)
  p:lane("p0", {warps = 1})
  for i = 0, 1 do p:lane("c" .. i, {warps = 4}) end
  for _, t in ipairs(p.tasks) do p:append(t.name, {lane = t.kind == "load" and "p0" or "c" .. t.name:match "%.(%d+)$"}) end
  p:buffers{x = 3, g = 3, w = 3}
  p:fill_waits()
  return p
end
for steps, pairs in pairs{[0] = here, [1] = false, [2] = here} do
  local p = norm(steps)
  tap.is(p:compile{target = "cuda", text = true}.source:match "= (mul_pair_[%w_]+)%(" or false, pairs,
    ("%d steps split off: in pairs, or not"):format(steps))
  local result = p:compile{target = target}:check{race = target == "host"}
  tap.ok(result.ok, "  right", tostring(result))
end
tap.done_testing()
