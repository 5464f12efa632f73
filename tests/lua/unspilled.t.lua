-- mr.search{compile=true}: of plans in their order, the first whose kernels the compiler makes well. The compiler is pretended:
-- each plan here says what its kernel would spill, so that the choice alone is tested.
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local unspilled = require "millrace.unspilled"
local ok, is = tap.ok, tap.is

local compiled

-- A plan of one tile, with a lane that copies and one that computes; spills(lanes) are the bytes of its kernel. Plans with the same
-- sTask differ in their rings and the order of their tiles.
local number = 0
local function plan_of(name, tile, spills, serialized)
  number = number + 1
  local rings = number
  local plan = {name = name, lanes = {{name = "p0"}, {name = "c0"}}, tasks = {{name = "load", kind = "load"}, {name = "mma", kind = "mma"}},
    entries = {{task = "load", lane = "p0"}, {task = "mma", lane = "c0"}}, options = {p0 = {}, c0 = {}}, legal = true}
  function plan:script()
    return ('plan = {tile={m=%d}}\nplan:lane("p0", {})\nplan:lane("c0", {})\nplan:buffers{a=%d}\nplan:grid{group=%d}\nplan:append "%s"'):format(tile,
      rings, rings, name)
  end
  function plan:copy()
    local p = setmetatable({options = {p0 = {}, c0 = {}}}, {__index = self})
    for lane, options in pairs(self.options) do for k, v in pairs(options) do p.options[lane][k] = v end end
    return p
  end
  function plan:lane(lane, options) for k, v in pairs(options) do self.options[lane][k] = v end end
  function plan:check() return self.legal end
  function plan:compile(o)
    if o and o.text then
      local p0, c0 = self.options.p0, self.options.c0
      return {source = ("%s %s %s"):format(p0.registers or p0.spare, c0.registers, c0.spare)}
    end
    compiled[#compiled + 1] = name
    return {spills = spills(self.options), problems = {serialized and {code = serialized} or {code = "note"}}}
  end
  return plan
end

local function spills(n) return function() return n end end

local function first(plans)
  local i = 0
  compiled = {}
  local best = unspilled.first(function() i = i + 1 return plans[i] end)
  return best, #compiled
end

local best, n = first{plan_of("a", 64, spills(0)), plan_of("b", 32, spills(0))}
is(best.name, "a", "a good plan is taken at once")
is(n, 1, "  and no other one compiled")
is(first{}, nil, "no plan of none")

best = first{plan_of("a", 64, function(o) return o.c0.spare == 32 and 0 or 40 end), plan_of("b", 32, spills(0))}
ok(best.name == "a" and best.options.c0.spare == 32 and not best.options.p0.spare, "lanes that compute leave registers to the compiler")
best = first{plan_of("a", 64, function(o) return o.p0.registers == 40 and 0 or 40 end), plan_of("b", 32, spills(0))}
ok(best.name == "a" and best.options.p0.registers == 40 and not best.options.c0.spare, "lanes that copy are granted more")
best = first{plan_of("a", 64, function(o) return (o.c0.spare == 16 and 20 or 40) - (o.p0.registers == 48 and 20 or 0) end)}
ok(best.options.c0.spare == 16 and best.options.p0.registers == 48, "both, where one of them is not enough")

best = first{plan_of("a", 64, spills(40)), plan_of("b", 32, spills(0)), plan_of("c", 16, spills(0))}
is(best.name, "b", "else the next plan is taken")
for _, fault in ipairs{"serialized", "ungranted"} do
  best = first{plan_of("a", 64, spills(0), fault), plan_of("b", 32, spills(400)), plan_of("c", 16, spills(500))}
  is(best.name, "b", ("that with the fewest faults, if all have some; '%s' is worse than spills"):format(fault))
end

local same = {plan_of("a", 64, spills(40)), plan_of("a", 64, spills(0)), plan_of("b", 32, spills(0))}
is(first(same).name, "b", "plans that differ in rings or the order of tiles alone are compiled once")

local alike = {}
for i = 1, 10 do alike[i] = plan_of("p" .. i, 64, spills(40)) end
alike[11] = plan_of("other", 32, spills(0))
best, n = first(alike)
is(best.name, "other", "other tiles come before more plans of a tile")
ok(n <= 2 + 6 + 1, "  of which two are compiled, and the repairs of the first", n)
alike[11] = nil
alike[9] = plan_of("ninth", 64, spills(0))
is(first(alike).name, "ninth", "if there are none, these are compiled, too")

-- The patterns that compare plans are of scripts as they are.
do
  local mr = require "millrace"
  local function real(rings, warps)
    local plan = mr.plan(mr.examples.gemm{m = 512, n = 512, k = 512}:graph{tile = {m = 128, n = 128, k = 64}}, mr.device "h200")
    plan:lane("c0", {warps = warps})
    plan:buffers{a = rings, b = rings}
    plan:grid{raster = "rows", group = rings}
    for _, t in ipairs(plan.tasks) do plan:append(t.name) end
    return unspilled.kind_of(plan)
  end
  local kind, lanes = real(2, 4)
  local other_rings, same_lanes = real(3, 4)
  local _, other_lanes = real(2, 8)
  ok(kind == other_rings and lanes == same_lanes, "rings and the order of tiles make no other kind of plan")
  ok(lanes ~= other_lanes and lanes:find("tile={k=64, m=128, n=128}", 1, true), "  tiles and lanes do", lanes)
end

local refused = plan_of("a", 64, function(o) return (o.c0.spare or o.p0.registers) and 0 or 40 end)
refused.legal = false
best = first{refused, plan_of("b", 32, spills(8))}
is(best.name, "b", "a repair that check() refuses is none")

tap.done_testing()
