-- random_conversions.lua - products of which a task converts one operand, drawn at random, and plans in which it makes that where the
-- product takes it (plan:direct).
--
-- draw(seed, device) gives a plan that the checker accepts, and what it is in words. The same seed gives the same plan on every machine.
local mr = require "millrace"

local M = {}
local random = math.random

local function choose(list) return list[random(#list)] end
local function chance(p) return random() < p end

local WEIGHTS <const> = {"i4", "i4", "e2m1", "e2m1", "words", "i8", "i8", "u8", "e4m3", "e5m2", "bf16", "f16", "f32"}
local SCALES <const> = {"bf16", "bf16", "f16", "f32", "e4m3", "e8m0"}
-- Of the weights w, a scale s, a bias b and the index of what is contracted.
local FORMULAS <const> = {
  function(w, s) return w * s end, function(w, s) return s * w end, function(w) return w * 0.5 end, function(w) return w * 0.3 end,
  function(w, s, b) return (w - b) * s end, function(w, s, b) return w * s + b end, function(w, s) return -w * (s * 0.25) end,
  function(w, s, b, k) return mr.where(k:index():lt(7), w * s, b) end, function(w, s, b) return mr.max(w * s, b):exp2() * 0.1 end,
  function(w) return w + 0 end, function(w) return w end,
}

-- A program and its sizes; text says what it is.
local function program()
  local first, across, weights, scale = chance(0.3), chance(0.25), choose(WEIGHTS), choose(SCALES)
  local dtype, number = choose{"bf16", "bf16", "f16"}, random(#FORMULAS)
  local field = choose{"i4", "e2m1"}
  local packed = weights == "i4" or weights == "e2m1" or weights == "words"
  local group, of = choose{8, 16, 32, 128}, choose{"n", "k", "nk", "group", "group", "none"}
  across = across and not packed
  local m, n = choose{1, 3, 8, 16, 20, 33}, 8 * random(12)
  local k = packed and 8 * random(24) or random(180)
  local text = ("%s weights%s%s, scale %s of %s, formula %d, %s"):format(weights, first and " first" or "", across and " across" or "", scale,
    of, number, dtype)
  local built = mr.program("conversion", function(p)
    local m, n, k = p:axes("m", "n", "k")
    local words, groups = p:axis("words", math.max(k.size // 8, 1)), p:axis("groups", (k.size + group - 1) // group)
    local A, C = p:input("A", {m, k}, dtype), p:output("C", first and {n, m} or {m, n}, "f32")
    local W = weights == "words" and p:input("W", {n, words}, "i32") or p:input("W", across and {k, n} or {n, k}, weights)
    local axes = {n = {n}, k = {k}, nk = {n, k}, group = {n, groups}, none = {}}
    local S, B = p:input("S", axes[of], scale), p:input("B", {k}, "f32")
    local c = p:carry("c", first and {n, m} or {m, n}, 0)
    p:loop(k, function()
      local w, b = p:load("load_w", W), p:load("load_b", B)
      local s = of == "group" and p:load("load_s", S, {n, k // group}) or p:load("load_s", S)
      local x = p:task("dequant", function()
        local v = weights == "words" and mr.unpack(w, words, k, field) or w
        return FORMULAS[number](v, s, b, k):to(dtype)
      end)
      local a = p:load("load_a", A)
      c:add(first and p:mma("mma", x, a) or p:mma("mma", a, x))
    end)
    C:store("store_c", c)
  end)
  return built{m = m, n = n, k = k}, text .. (", m=%d n=%d k=%d"):format(m, n, k)
end

local function planned(bound, device)
  local tile = {m = choose{8, 16, 16, 32}, n = choose{16, 16, 32, 64, 64}, k = choose{16, 32, 64, 64, 128}}
  local plan = mr.plan(bound:graph{tile = tile}, device)
  plan:direct{"dequant"}
  local steps, warps = choose{1, 1, 1, 2}, choose{1, 2, 4, 4}
  if steps > 1 then plan:split("k", steps, {"dequant", "mma"}) end
  plan:lane("p0", {warps = choose{1, 2, 4}})
  plan:lane("c0", {warps = warps, columns = choose{false, warps, warps}})
  local rings, ahead, unit = {}, chance(0.4), nil
  for _, u in ipairs(device.seus) do unit = u.kind == "matrix" and not u.async and u.name or unit end
  for _, t in ipairs(plan.tasks) do
    local makes = t.name:find "^dequant"
    plan:append(t.name, {lane = t.kind == "load" and chance(0.9) and "p0" or "c0", at = makes and ahead and 1 or nil,
      seu = t.kind == "mma" and unit or nil})
    if t.kind == "load" and t.loop then rings[t.writes[1]] = random(3) end
    if makes then rings[t.writes[1]] = ahead and 2 or random(2) end
  end
  plan:buffers(rings)
  plan:fill_waits()
  return plan
end

function M.draw(seed, device)
  math.randomseed(seed)
  local why
  for _ = 1, 200 do
    local good, plan, text = pcall(function()
      local bound, text = program()
      return planned(bound, device), text
    end)
    if good then
      local legal, problems = plan:check()
      if legal then return plan, text end
      plan = tostring(problems)
    end
    why = plan
  end
  error(("no legal plan for seed %d: %s"):format(seed, tostring(why)), 0)
end

return M
