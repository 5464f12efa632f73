-- Products that are scaled and added to sums by threads: scales of rows that are multiplied by each other are read before the lane
-- waits for the product.
local mr = require "millrace"
local here = arg[0]:match "^(.*/)" or "./"
local tap = dofile(here .. "tap.lua")
local on_host = dofile(here .. "lib/on_host.lua")
local ok = tap.ok

-- C[m,n] = sum over blocks of 64 of (A B) times scales; `scale` has the tensors and says how they are multiplied.
local function program(name, scale)
  return mr.program(name, function(p)
    local m, n, k = p:axes("m", "n", "k")
    local b, i = p:axis("b", (k.size + 63) // 64), p:axis("i", 64)
    local A, B, C = p:input("A", {m, k}, "e4m3"), p:input("B", {n, k}, "e4m3"), p:output("C", {m, n}, "f32")
    local load, apply = scale(p, m, n, b)
    local c = p:carry("c", {m, n}, 0)
    p:loop(b, {batch = true}, function()
      local part = p:mma("mma", p:load("load_a", A, {m, b * 64 + i}), p:load("load_b", B, {n, b * 64 + i}))
      local scales = load()
      p:task("scale", function() c:set(c + apply(part, scales)) end)
    end)
    C:store("store_c", c)
  end)
end

local function in_order(p, m, n, b)                          -- of rows, then one for all
  local SA, S = p:input("SA", {b, m}, "f32"), p:input("S", {b}, "f32")
  return function() return {p:load("load_sa", SA), p:load("load_s", S)} end, function(x, s) return x * s[1] * s[2] end
end
local function multiplied(p, m, n, b)
  local SA, S = p:input("SA", {b, m}, "bf16"), p:input("S", {b}, "f32")
  return function() return {p:load("load_sa", SA), p:load("load_s", S)} end, function(x, s) return x * (s[1] * s[2]) end
end
local function rows_and_columns(p, m, n, b)
  local SA, SB = p:input("SA", {m, b}, "f32"), p:input("SB", {b, n}, "bf16")
  return function() return {p:load("load_sa", SA), p:load("load_sb", SB)} end, function(x, s) return x * s[1] * s[2] end
end
local function exponents(p, m, n, b)
  local SA = p:input("SA", {b, m}, "e8m0")
  return function() return {p:load("load_sa", SA)} end, function(x, s) return x * s[1] end
end

local function schedule(bound, tile, warps)
  local plan = mr.plan(bound:graph{tile = tile}, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = warps})
  local rings = {a = 2, b = 2}
  for _, t in ipairs(plan.tasks) do
    plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"})
    if t.name:find "^load_s" then rings[t.name:sub(6)] = 2 end
  end
  plan:buffers(rings)
  plan:fill_waits()
  return plan
end

-- The text of the sTask that scales in the kernel's steady state.
local function scaled(plan)
  return plan:compile{text = true}.source:match "/%* scale, iteration j_0.-\n(.-)\n\t+r_c%b[]" or
    plan:compile{text = true}.source:match "/%* scale, iteration j_0.-\n(.*)"
end

local cases = {
  {"of rows, then one for all", in_order}, {"of rows times one for all", multiplied, true},
  {"of rows and of columns", rows_and_columns}, {"exponents of rows", exponents},
}
for i, case in ipairs(cases) do
  local made = program("scaled" .. i, case[2])
  local text = scaled(schedule(made{m = 256, n = 256, k = 512}, {m = 128, n = 64}, 8))
  local before, behind = text:match "^(.-)GROUPS_WAIT(.-)flag_arrive_warp.-flag_arrive_warp"
  if case[3] then
    ok(before:find "shared_%w+%(slot_sa" and not behind:find "shared_%w+%(slot_s", "scales " .. case[1] ..
      ": what is made of them alone is made before the product is awaited", text)
  end
  for _, z in ipairs{{m = 128, n = 128, k = 256}, {m = 100, n = 72, k = 200}, {m = 33, n = 16, k = 64}} do
    local plan = schedule(made(z), {m = 128, n = 64}, 8)
    local error, report = on_host.worst(plan, 4)
    ok(error < 1e-6, ("scales %s, %d x %d x %d, are right"):format(case[1], z.m, z.n, z.k), error, report)
  end
end

tap.done_testing()
