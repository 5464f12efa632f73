-- become.lua - the statements that make a plan another one of the same program: what a search finds, as a change.
--
-- The statements are done on a copy one after the other, and each follows from what the copy is then.

local core = require "millrace.core"
local draft = require "millrace.draft"

local become = {}

local TASKS <const> = 2000                              -- in all plans that a search tries

-- The statements of a method, as a set of texts.
local function texts_of(d, method)
  local has = {}
  for _, s in draft.each(d, method) do has[draft.statement(s)] = s end
  return has
end

-- Has one all statements of these methods that the other has?
local function has_all(one, other, ...)
  for _, method in ipairs{...} do
    local has = texts_of(one, method)
    for text in pairs(texts_of(other, method)) do
      if not has[text] then return false end
    end
  end
  return true
end

---- shapes --------------------------------------------------------------------------------------

-- The tile, the split, sTasks of their own, aliases. False: no statements lead there.
local function shape(x)
  local now, want = draft.read(x.plan), x.want
  local _, split = draft.each(now, "split")()
  local _, wanted = draft.each(want, "split")()
  local same = split and wanted and draft.statement(split) == draft.statement(wanted)
  if not has_all(want, now, "window", "split_off", "fetch", "direct", "swap", "alias") or split and not same and not draft.shared(now) then return false end
  if split and not same then x.apply{"split", split[2], 1} end
  local tile = {}
  for axis, extent in pairs(want.tile) do
    if x.plan.tile[axis] ~= extent then tile[axis] = extent end
  end
  if next(tile) then x.apply{"propagate", tile} end
  for _, method in ipairs{"window", "split_off", "fetch", "direct", "swap", "split", "alias"} do
    local has = texts_of(draft.read(x.plan), method)
    for _, s in draft.each(want, method) do
      if not has[draft.statement(s)] then x.apply(draft.copy(s)) end
    end
  end
  return true
end

---- lanes and orders --------------------------------------------------------------------------------

-- By sTask: the statement that appends it; and the names of each lane's sTasks in order, by loop.
local function entries(d, plan)
  local of, orders, loop = {}, {}, {}
  for _, task in ipairs(plan.tasks) do loop[task.name] = task.loop or "" end
  for _, s in draft.each(d, "append") do
    local key = s[3].lane .. " " .. loop[s[2]]
    of[s[2]], orders[key] = s, orders[key] or {}
    table.insert(orders[key], s[2])
  end
  return of, orders
end

-- The lanes of the plan that are to be those of the wanted one: those that have their sTasks now.
local function rename_lanes(x)
  local now, mine, taken = draft.read(x.plan), {}, {}
  local of = entries(now, x.plan)
  for _, s in draft.each(x.want, "append") do
    local lane = of[s[2]] and of[s[2]][3].lane
    if lane and not mine[s[3].lane] and not taken[lane] then mine[s[3].lane], taken[lane] = lane, true end
  end
  for _, s in draft.each(x.want, "append") do
    if not mine[s[3].lane] then
      local names = draft.lane_names(now, s[3].lane, 16)
      for i = 1, #names do
        if not taken[names[i]] and not mine[s[3].lane] then mine[s[3].lane], taken[names[i]] = names[i], true end
      end
    end
    s[3].lane = mine[s[3].lane]
  end
  for _, s in draft.each(x.want, "lane") do
    s[3].warps = x.other:lane(s[2]).warps
    s[2] = mine[s[2]] or s[2]
  end
end

local function lanes(x)
  for _, s in draft.each(x.want, "lane") do
    local _, now = draft.find(draft.read(x.plan), "lane", s[2])
    local has, options = now and x.plan:lane(s[2]) or {}, {}
    for _, name in ipairs{"warps", "columns", "registers", "spare", "replicas", "priority"} do
      local wanted = s[3][name] or name == "replicas" and 1 or nil
      if has[name] ~= wanted then options[name] = wanted or false end
    end
    if not now or next(options) then x.apply{"lane", s[2], options} end
  end
end

local function one(names) return #names == 1 and names[1] or names end

-- sTasks that are new, which split_off made: behind that which comes before in the wanted order of all.
local function insert(x)
  local before
  for _, s in draft.each(x.want, "append") do
    if not draft.find(draft.read(x.plan), "append", s[2]) then
      x.apply{"insert", s[2], {seu = s[3].seu, at = s[3].at, after = before[2]}}
    end
    before = s
  end
end

-- sTasks whose lane, unit or offset differs.
local function move(x)
  local of, list = entries(draft.read(x.plan), x.plan), {}
  for _, s in draft.each(x.want, "append") do
    local now = of[s[2]]
    local lane = now[3].lane ~= s[3].lane and s[3].lane
    local group = lane and list[lane] or {}
    if lane then
      if not list[lane] then list[#list + 1], list[lane] = lane, group end
      group[#group + 1] = s[2]
    end
  end
  for _, lane in ipairs(list) do x.apply{"move", one(list[lane]), {lane = lane}} end
  of = entries(draft.read(x.plan), x.plan)
  local others, names = {}, {}
  for _, s in draft.each(x.want, "append") do
    local now, options, base = of[s[2]], {}, draft.slice_of(s[2])
    if now[3].seu ~= s[3].seu then options.seu = s[3].seu end
    if (now[3].at or 0) ~= (s[3].at or 0) then options.at = s[3].at or 0 end
    if not others[base] then names[#names + 1], others[base] = base, {} end
    table.insert(others[base], {"move", s[2], options})
  end
  for _, base in ipairs(names) do                       -- slices are moved alike
    local list, alike = others[base], true
    for _, s in ipairs(list) do alike = alike and draft.literal(s[3]) == draft.literal(list[1][3]) end
    if alike then list = {{"move", base, list[1][3]}} end
    for _, s in ipairs(list) do
      if next(s[3]) then x.apply(s) end
    end
  end
end

-- Each lane's order in each loop.
local function order(x)
  local _, wanted = entries(x.want, x.plan)
  for _, key in ipairs(draft.keys(wanted)) do
    for i, name in ipairs(wanted[key]) do
      local _, now = entries(draft.read(x.plan), x.plan)
      local there = now[key] and now[key][i]
      if there and there ~= name then
        x.apply{"move", name, {before = there}}
      end
    end
  end
end

local function rings(x)
  local versions = {}
  for name, n in pairs(x.rings) do
    if x.plan.rings[name] and x.plan.rings[name] ~= n then versions[name] = n end
  end
  if next(versions) then x.apply{"buffers", versions} end
end

local function grid(x)
  local _, now = draft.each(draft.read(x.plan), "grid")()
  local _, wanted = draft.each(x.want, "grid")()
  local options, usual = {}, {raster = "rows", group = 1, longest_first = false, section = 0, dynamic = false, cluster = 1, keep = 1,
    along = false, divide = false, chiplets = 1}
  for name, value in pairs(usual) do
    local is, to = now and now[2][name], wanted and wanted[2][name]
    if is == nil then is = value end
    if to == nil then to = value end
    if is ~= to then options[name] = to end
  end
  if next(options) then x.apply{"grid", options} end
end

local function launch(x)
  local _, now = draft.each(draft.read(x.plan), "launch")()
  local _, wanted = draft.each(x.want, "launch")()
  local is, to = now and now[2] or {}, wanted and wanted[2] or {}
  if is.next ~= to.next or table.concat(is.ready or {}, " ") ~= table.concat(to.ready or {}, " ") then
    x.apply{"launch", {next = to.next or "auto", ready = to.ready or {}}}
  end
end

-- Waits for an issue, which nothing else brings.
local function issue_orders(x)
  for _, s in draft.each(x.want, "wait") do
    local issued = {}
    for _, on in ipairs(s[3]) do issued[#issued + 1] = type(on) == "table" and on.when == "issued" and on or nil end
    if #issued > 0 then x.apply{"wait", s[2], issued} end
  end
end

-- The waits, if those that the statements before have left and made are not right: only those of the wanted plan, and what is missing.
local function waits(x)
  if x.plan:check() then return end
  local has = {}
  for _, s in draft.each(x.want, "wait") do
    for _, on in ipairs(s[3]) do has[s[2] .. " " .. (type(on) == "table" and on[1] or on)] = true end
  end
  for _, s in draft.each(draft.read(x.plan), "wait") do
    for _, on in ipairs(s[3]) do
      local name = type(on) == "table" and on[1] or on
      if not has[s[2] .. " " .. name] then x.apply{"unwait", s[2], name} end
    end
  end
  x.apply{"fill_waits"}
end

-- The statements that make the plan like another one; nil if there are none.
function become.statements(plan, other)
  local list = {}
  local x = {plan = plan:copy(), other = other, want = draft.read(other), rings = other.rings}
  function x.apply(s)
    draft.apply(x.plan, s)
    list[#list + 1] = s
  end
  if not shape(x) then return nil end
  rename_lanes(x)
  for _, step in ipairs{lanes, insert, move, order, grid, launch, rings, issue_orders, waits} do step(x) end
  return list
end

local searched = setmetatable({}, {__mode = "k"})       -- by program, then by the text of the device: what a search has found

-- What a search of at most so many plans finds: {seconds=, plan=: of the best one, or nil; trials=: how many it tried; complete=: not
-- ended by `most`}. What the time ended is not kept.
local function search(bound, device, most, seconds)
  local by, key = searched[bound] or {}, tostring(device)
  local known = by[key]
  searched[bound] = by
  if known and (known.complete or known.trials >= most) then return known end
  local s = core.search(bound, device, nil, false)
  local ended = s:run(most, seconds or math.huge)
  local best = s:found()[1]
  local found = {seconds = best and best.seconds, trials = s:counts().trials, plan = best and {s:plan(best.trial)},
    complete = ended ~= "trials"}
  if ended ~= "seconds" and ended ~= "interrupted" then by[key] = found end
  return found
end

-- How many plans a search tries: fewer of a program whose plans take longer to try.
function become.trials(plan) return TASKS // #plan.graph.tasks end

-- What a search finds, as a change of the plan, which takes so many seconds; nil if it finds nothing better, or no statements lead
-- there. Then also what the search found ({seconds=, trials=, complete=: it was not ended by `most`}).
-- seconds: at most so many for the search; most: at most so many plans, as many as become.trials unless given.
function become.found(plan, now, seconds, most)
  local bound, device = plan.graph.program, plan.device
  local best = search(bound, device, most or become.trials(plan), seconds)
  if not best.seconds or best.seconds >= now then return nil, best end
  local statements, tile = table.unpack(best.plan)
  local good, list = core.try(become.statements, plan, draft.make(draft.parse(statements, tile), bound, device))
  if not good or not list or #list == 0 then return nil, best end
  return {text = draft.text(list), list = list, trials = best.trials,
    reason = ("the fastest plan that a search of %d plans found; no change that is smaller helps"):format(best.trials)}, best
end

return become
