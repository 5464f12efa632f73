-- repair.lua - make a changed plan, with the waits, versions and warps that it needs to be legal.

local core = require "millrace.core"
local draft = require "millrace.draft"

local repair = {}

local REPAIRS <const> = 3                               -- the most further statements of a change
local none <const> = {rings = {}}

---- repairs --------------------------------------------------------------------------------------

-- The versions that the order needs, of all slices of a buffer.
local function more_versions(plan, problems)
  local depth = {}
  for _, p in ipairs(problems) do
    local buffer = p.code == "versions" and p.edge and p.edge.buffer
    if buffer then depth[(draft.slice_of(buffer))] = plan.rings[buffer] + 1 end
  end
  return next(depth) and {{"buffers", depth}}
end

-- One version less of all rings of loops, or of all, except pinned ones; of far too many, the share that fits.
local function fewer_versions(plan, pinned, all)
  local depth, share = {}, plan.device:number "memory.shared.bytes" / plan.usage.shared_bytes
  for _, b in ipairs(plan.graph.buffers) do
    local n = plan.rings[b.name]
    if (b.loop or all) and b.scope == "shared" and n and n > 1 and not pinned[b.name] then
      depth[b.name] = math.max(1, math.min(n - 1, share < 0.5 and math.floor(n * share) or n))
    end
  end
  return next(depth) and {{"buffers", depth}}
end

-- All lanes with as many registers as they need, if any number was given.
local function free_registers(plan)
  local list = {}
  for _, s in draft.each(draft.read(plan), "lane") do
    if s[3].registers then list[#list + 1] = {"lane", s[2], {registers = false}} end
  end
  return #list > 0 and list
end

-- The statement that gives a lane so many warps; nil if `seen` says that it had them with this tile.
local function with_warps(plan, lane, now, warps, seen)
  local function key(n) return ("%s %d %s"):format(lane, n, draft.literal(plan.tile)) end
  if seen[key(warps)] then return nil end
  seen[key(now)], seen[key(warps)] = true, true
  return {{"lane", lane, {warps = warps}}}
end

-- Twice the warps for a lane whose registers do not suffice, if the tile is not split over lanes.
local function more_warps(plan, problem, seen)
  local d = draft.read(plan)
  local _, s = draft.find(d, "append", problem.task or "")
  local _, lane = draft.find(d, "lane", s and s[3].lane or "")
  if not lane or draft.shared(d) then return nil end
  local now = lane[3].warps or 4
  return now <= 8 and with_warps(plan, lane[2], now, 2 * now, seen)
end

-- Half of the warps for the lane that has most.
local function fewer_warps(plan, seen)
  local widest
  for _, s in draft.each(draft.read(plan), "lane") do
    if (s[3].warps or 0) > (widest and widest[3].warps or 4) then widest = s end
  end
  return widest and with_warps(plan, widest[2], widest[3].warps, widest[3].warps // 2, seen)
end

-- Half of the longest of these extents by axis that can be shorter; nil.
local function halved(plan, extents)
  local axes = draft.keys(extents)
  table.sort(axes, function(a, b)
    local m, n = extents[a], extents[b]
    return m > n or m == n and a < b
  end)
  for _, axis in ipairs(axes) do
    local n = extents[axis]
    local half = {[axis] = n > 32 and (n // 2 + 15) // 16 * 16 or n // 2}
    if half[axis] > 0 and pcall(function() plan:copy():propagate(half) end) then return {{"propagate", half}} end
  end
end

-- A smaller tile of the sTask that a problem names; where it cannot be smaller itself, as its axes are made of others, of these.
local function smaller_tile(plan, problem)
  local all = {}
  for axis, size in pairs(plan.graph.program.axes) do all[axis] = plan.tile[axis] or size end
  for _, task in ipairs(plan.tasks) do
    local found = task.name == problem.task and halved(plan, task.shape)
    if found then return found end
  end
  return halved(plan, all)
end

-- Is a wait missing, or is it for another iteration?
function repair.is_missing_wait(p) return p.code == "missing_wait" or p.code == "misplaced_wait" end

local function lacks_waits(problems)
  for _, p in ipairs(problems) do
    if repair.is_missing_wait(p) then return true end
  end
end

-- The hint of the first problem that has statements for one, as such; of the first with that code, if one is given.
local function hinted(problems, code)
  for _, p in ipairs(problems) do
    if draft.is_code(p.hint) and (not code or p.code == code) then return draft.parse(p.hint).list end
  end
end

-- Registers: as many as the lanes need, then other warps.
local function other_registers(plan, problem, any, seen)
  return any and free_registers(plan) or more_warps(plan, problem, seen) or any and not problem.task and fewer_warps(plan, seen)
end

-- Statements that solve some of the problems, or nil. x: as of repair.make; how: {any=, shrink=, filled=, seen=}. any: whatever they
-- are, also what would only take the change back; shrink: by a smaller tile where nothing else helps; filled: plan:fill_waits()
-- was the last one.
local function repair_of(x, plan, problems, how)
  local code, any, found = problems[1].code, how.any, nil
  if lacks_waits(problems) and not how.filled then return {{"fill_waits"}} end
  found = any and hinted(problems, "threads")           -- before memory, as threads take some
  if found then return found end
  if code == "versions" then return more_versions(plan, problems) end
  if code == "shared_memory" then
    found = fewer_versions(plan, (x.pinned or none).rings, any) or any and hinted(problems)
  elseif code == "registers" then
    found = other_registers(plan, problems[1], any, how.seen)
  else
    return any and hinted(problems)
  end
  return found or how.shrink and smaller_tile(plan, problems[1])
end

---- the changed plan ------------------------------------------------------------------------------

-- Statements in which later ones about the same lane, the tile or versions, are one with those right before them.
local function joined(list)
  local out = {}
  for _, s in ipairs(list) do
    local last = out[#out]
    local same = last and last[1] == s[1] and (s[1] == "buffers" or s[1] == "propagate" or s[1] == "lane" and last[2] == s[2])
    for name, value in pairs(same and s[#s] or {}) do last[#last][name] = value end
    if not same then out[#out + 1] = draft.copy(s) end
  end
  return out
end

local function make(plan, list)
  for _, s in ipairs(list) do draft.apply(plan, s) end
  return plan
end

-- Make a change, {list=, alone=, shrink=}, in a copy of x.plan, and repair the plan by a few further edits; of a plan that was not legal
-- before, by any of no more than `most`. Returns the plan and
-- all statements, as a list; nil if the plan cannot be made legal. x: {plan=, pinned=}; pinned.rings: names of rings that no
-- repair may change.
function repair.make(x, change, most)
  local plan, list = make(x.plan:copy(), change.list), draft.copy(change.list)
  local how = {any = most, shrink = change.shrink, seen = {}}
  for _ = 0, change.alone and 0 or most or REPAIRS do
    local good, problems = core.check(plan)
    if good then
      local short = joined(list)
      if #short < #list then
        plan = make(x.plan:copy(), short)
        good = core.check(plan)
      end
      return good and plan or nil, short
    end
    local more = not change.alone and repair_of(x, plan, problems, how)
    if not more then return nil end
    how.filled = more[1][1] == "fill_waits"
    make(plan, more)
    table.move(more, 1, #more, #list + 1, list)
  end
end

return repair
