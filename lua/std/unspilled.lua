-- unspilled.lua - of plans in their order, the first whose kernels the compiler makes well: it keeps no registers in memory
-- (spills), does not serialize products, and grants lanes their registers. What compilers do is not in the model, so the plans are compiled; a plan that is
-- nearly good is repaired by statements on its lanes.

local unspilled = {}

local KINDS <const> = 12                               -- of plans compiled, as they are
local ALIKE <const> = 2                                -- of these, with the same tile and lanes
local MORE <const> = 24                                -- then of those that were passed over as alike
local SERIALIZED <const> = 1e6                         -- products that wait for each other, or lanes without their registers, cost more than any spill
local SPARE <const> = {16, 32, 48}                     -- registers of a thread, left to the compiler
local GRANTS <const> = {32, 40, 48}                    -- registers of a thread that only copies

-- 0 if the kernels are good; else more for what costs more time.
local function faults_of(plan)
  local k = plan:compile()
  local faults = k.spills
  for _, p in ipairs(k.problems) do faults = faults + ((p.code == "serialized" or p.code == "ungranted") and SERIALIZED or 0) end
  return faults
end

-- The names of lanes that only load and store, each in a list of its own, and that of the others.
local function groups_of(plan)
  local kind, computes, groups, others = {}, {}, {}, {}
  for _, t in ipairs(plan.tasks) do kind[t.name] = t.kind end
  for _, e in ipairs(plan.entries) do
    computes[e.lane] = computes[e.lane] or not (kind[e.task] == "load" or kind[e.task] == "store")
  end
  for _, l in ipairs(plan.lanes) do
    if computes[l.name] then others[#others + 1] = l.name else groups[#groups + 1] = {l.name} end
  end
  return groups, others
end

-- The plan with more registers left to the compiler, or for lanes that copy, as far as that makes it better.
local function repair(plan, faults)
  local function try(lanes, option, values)
    if #lanes == 0 then return end
    local best, text = plan, plan:compile{text = true}.source
    for _, n in ipairs(values) do
      if faults == 0 then break end
      local p = plan:copy()
      for _, lane in ipairs(lanes) do p:lane(lane, {[option] = n}) end
      if p:check() and p:compile{text = true}.source ~= text then   -- not where the machine grants no registers, for example
        local f = faults_of(p)
        if f < faults then best, faults = p, f end
      end
    end
    plan = best
  end
  local copying, computing = groups_of(plan)
  try(computing, "spare", SPARE)
  for _, lanes in ipairs(copying) do try(lanes, "registers", GRANTS) end
  return plan, faults
end

-- What a kernel's text depends on, but for the order of tiles and the depth of rings; and its tile and lanes alone.
function unspilled.kind_of(plan)
  local script = plan:script():gsub("plan:grid%b{}", ""):gsub("plan:buffers%b{}", "")
  local lanes = script:match "plan:lane.*plan:lane%b()" or script:match "plan:lane%b()" or ""
  return script, (script:match "tile=%b{}" or "") .. lanes
end

-- next_plan() gives one legal plan after the other. Returns the first that is good, repaired or not; if there is none, that
-- with the fewest faults; nil if there are no plans.
function unspilled.first(next_plan)
  local seen, alike, others, kinds, best, fewest, repaired = {}, {}, {}, 0, nil, math.huge, nil
  local function try(plan)
    local faults = faults_of(plan)
    if faults > 0 and not best then
      plan, faults = repair(plan, faults)
      repaired = plan
    end
    if faults < fewest then best, fewest = plan, faults end
  end
  for plan in next_plan do
    local kind, lanes = unspilled.kind_of(plan)
    if not seen[kind] then
      seen[kind], alike[lanes] = true, (alike[lanes] or 0) + 1
      if alike[lanes] > ALIKE then
        others[#others + 1] = plan
      else
        kinds = kinds + 1
        try(plan)
      end
    end
    if fewest == 0 or kinds == KINDS or #others == MORE then break end
  end
  for _, plan in ipairs(others) do
    if fewest == 0 then break end
    try(plan)
  end
  if best and fewest > 0 and best ~= repaired then best = repair(best, fewest) end
  return best
end

return unspilled
