-- repair.lua - make a changed plan, with the waits, versions and warps that it needs to be legal.

local draft = require "millrace.draft"

local repair = {}

local REPAIRS <const> = 3                               -- the most further statements of a change
local none <const> = {rings = {}}

---- repairs --------------------------------------------------------------------------------------

-- The versions that the order needs, of all slices of a buffer.
local function more_versions(plan, problems)
  local depth, any = {}, false
  for _, p in ipairs(problems) do
    for _, name in ipairs(p.code == "versions" and p.edge and draft.slices(p.edge.buffer, plan.rings) or {}) do
      depth[name], any = plan.rings[name] + 1, true
    end
  end
  return any and {"buffers", depth}
end

-- One version less of all rings of loops, except pinned ones.
local function fewer_versions(plan, pinned)
  local depth, any = {}, false
  for _, b in ipairs(plan.graph.buffers) do
    local n = plan.rings[b.name]
    if b.loop and b.scope == "shared" and n and n > 1 and not pinned[b.name] then depth[b.name], any = n - 1, true end
  end
  return any and {"buffers", depth}
end

-- Twice the warps for a lane whose registers do not suffice, if the tile is not split.
local function more_warps(d, problem)
  local _, s = draft.find(d, "append", problem.task or "")
  local _, lane = draft.find(d, "lane", s and s[3].lane or "")
  if not lane or draft.shared(d) then return end
  local options = draft.copy(lane[3])
  options.warps = 2 * (options.warps or 4)
  return options.warps <= 16 and {"lane", lane[2], options}
end

-- A statement that solves the first problem of the changed plan, or nil.
local function repair_of(d, plan, problems, pinned)
  local code = problems[1].code
  if code == "versions" then return more_versions(plan, problems) end
  if code == "shared_memory" then return fewer_versions(plan, pinned.rings) end
  if code == "registers" then return more_warps(d, problems[1]) end
end

---- the changed plan ------------------------------------------------------------------------------

-- Add a statement; one about a lane replaces the earlier one.
local function add(d, s)
  local i = s[1] == "lane" and draft.find(d, "lane", s[2])
  if i then d.list[i] = s else draft.add(d, table.unpack(s)) end
end

-- Make a change in a copy of x.draft, and repair the plan. Returns the plan and the text of all statements; nil if the plan
-- cannot be made legal. x: {draft=, bound=, device=, pinned=}; pinned.rings: names of rings that no repair may change.
function repair.make(x, change)
  local d, texts = draft.copy(x.draft), {change.text}
  local last
  change.edit(d)
  for _ = 0, REPAIRS do
    local plan = draft.make(d, x.bound, x.device)
    local filled = change.waits and plan:fill_waits() > 0
    local good, problems = plan:check()
    if good then
      if filled then texts[#texts + 1] = "plan:fill_waits()" end
      return plan, table.concat(texts, "; ")
    end
    local more = change.repair and repair_of(d, plan, problems, x.pinned or none)
    if not more then return nil end
    texts[last == more[1] and #texts or #texts + 1] = draft.statement(more)
    last = more[1]
    add(d, more)
  end
end

return repair
