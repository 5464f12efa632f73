-- compare.lua - mr.compare: two timelines of one program, sTask by sTask; those of sequences are in sequence_compare.lua.

local core = require "millrace.core"
local record = require("millrace.record").of
local sequences = require "millrace.sequence_compare"
local options = require "millrace.options"
local times = require "millrace.times"
local raise, show, entry = core.raise, core.show, core.entry

local WIDTH = 100                                       -- columns of the table, at most
local ALL <const> = 0.9                                 -- of the time of a phase, that has events if all are kept

local row_fields = record("row", "task lane predicted measured ratio difference moved")
local mean_fields = record("side of a row", "count duration wait lane_time interval share late")

-- What an event took of its lane: until the lane came to the next one.
local function lane_times(events)
  local last, times = {}, {}
  for _, e in ipairs(events) do
    local lane = ("%s.%d.%d"):format(e.lane, e.replica, e.phase)
    local before = last[lane]
    if before then times[before] = e.ready - before.ready end
    last[lane] = e
  end
  for _, e in pairs(last) do times[e] = math.max(e["end"] - e.ready, 0) end
  return times
end

-- By lane and phase, the replica that ends last: its time is that of the lane.
local function last_replicas(events)
  local last = {}
  for _, e in ipairs(events) do
    local key = ("%s.%d"):format(e.lane, e.phase)
    if not last[key] or e["end"] > last[key]["end"] then last[key] = e end
  end
  return last
end

-- Sums by sTask, in the order in which they first appear.
local function gather(tl)
  local events, sums, order, lanes = tl.events, {}, {}, {}
  local last = last_replicas(events)
  local times, before = lane_times(events), {}
  for _, e in ipairs(events) do
    local s = sums[e.task]
    if not s then
      s = {task = e.task, lane = e.lane, n = 0, duration = 0, wait = 0, held = 0, late = 0, steps = 0, interval = 0,
        of_last = 0, n_last = 0}
      sums[e.task], order[#order + 1] = s, s
    end
    s.n, s.duration = s.n + 1, s.duration + e["end"] - e.issue
    s.wait, s.held = s.wait + e.issue - e.ready, s.held + times[e]
    if last[("%s.%d"):format(e.lane, e.phase)].replica == e.replica then
      s.of_last, s.n_last = s.of_last + times[e], s.n_last + 1
    end
    s.late = s.late + (e.late and 1 or 0)
    lanes[e.lane] = (lanes[e.lane] or 0) + times[e]
    -- the interval is that of the loop, so the first one of a tile has none, unless it is once a tile
    local b = before[e.task]
    if b and (b.tile == e.tile or b.iteration == b.tile) and e.iteration == b.iteration + 1 then
      s.steps, s.interval = s.steps + 1, s.interval + e.issue - b.issue
    end
    before[e.task] = e
  end
  return sums, order, lanes
end

local function means(s, lanes)
  if not s then return nil end
  return setmetatable({
    count = s.n, duration = s.duration / s.n, wait = s.wait / s.n, lane_time = s.held / s.n,
    interval = s.steps > 0 and s.interval / s.steps or nil,
    share = lanes[s.lane] > 0 and s.held / lanes[s.lane] or 0,
    late = s.late / s.n,
  }, mean_fields)
end

-- comparable: all events are kept, or the same number of each sTask. Else the parts of the time that are kept are of different work.
local function row(task, p, m, plane, mlane, comparable)
  local a, b = means(p, plane), means(m, mlane)
  local r = setmetatable({task = task, lane = (m or p).lane, predicted = a, measured = b}, row_fields)
  if a and b then
    r.ratio = a.duration > 0 and b.duration / a.duration or nil
    r.difference = p.lane == m.lane and m.of_last - p.of_last or nil
  else
    r.difference = a and -p.of_last or m.of_last
  end
  if not comparable then r.difference = nil end
  if p and m and p.lane ~= m.lane then r.moved = {from = p.lane, first = p.of_last, second = m.of_last} end
  return r
end

---- causes -------------------------------------------------------------------------

-- Of each sTask and cause how long, on average over the lanes that do not only feed others; parts of an
-- sTask count as one. Seconds of what is simulated, else cycles, of which a trace knows fewer sorts.
local function lane_costs(tl, events_only)
  local of, order, lanes, n = {}, {}, {}, 0
  for _, p in ipairs((core.blame(tl, events_only))) do
    if not p.feeds then
      if not lanes[p.lane] then lanes[p.lane], n = true, n + 1 end
      if not of[p.text] then order[#order + 1] = p.text end
      of[p.text] = (of[p.text] or 0) + p.share * p.lane_cycles / (events_only and 1 or tl.clock_hz)
    end
  end
  for text, time in pairs(of) do of[text] = time / n end
  return of, order
end

-- What grew or shrank, most first, as a share of the first one's time.
local function changes(one, other)
  local events_only = one.measured or other.measured or not (one.clock_hz and other.clock_hz)
  local a, first = lane_costs(one, events_only)
  local b, order = lane_costs(other, events_only)
  for _, text in ipairs(first) do
    if not b[text] then order[#order + 1] = text end
  end
  local list, position, total = {}, {}, events_only and one.cycles or one.cycles / one.clock_hz
  for i, text in ipairs(order) do
    local was, is = (a[text] or 0) / total, (b[text] or 0) / total
    list[i] = {what = text, first = was, second = is, difference = is - was}
    position[text] = i
  end
  table.sort(list, function(x, y)
    local dx, dy = math.abs(x.difference), math.abs(y.difference)
    if dx ~= dy then return dx > dy end
    return position[x.what] < position[y.what]
  end)
  return list
end

local function changes_text(list)
  local texts = {}
  for i = 1, math.min(3, #list) do
    local c = list[i]
    if math.abs(c.difference) >= 0.005 then
      texts[#texts + 1] = ("  %s: %.0f %% of the time, then %.0f"):format(c.what, 100 * c.first, 100 * c.second)
    end
  end
  return texts
end

---- as text ---------------------------------------------------------------------

local function count(x)
  if not x then return "-" end
  local digits = ("%.0f"):format(x):gsub("^%-0$", "0")
  return (digits:reverse():gsub("(%d%d%d)", "%1,"):reverse():gsub("^(%-?),", "%1"))
end

local function percent(x) return x and (math.abs(x) < 0.005 and "0 %" or ("%.0f %%"):format(x * 100)) or "-" end

local function cells(r)
  local p, m = r.predicted or {}, r.measured or {}
  local late = m.late and m.late > 0.5 and "<" or ""
  return {r.task, r.lane, count(p.duration), late .. count(m.duration), r.ratio and ("%.2f"):format(r.ratio) or "-",
    count(p.interval), count(m.interval), count(p.wait), count(m.wait), percent(p.share), percent(m.share),
    r.difference and (r.difference > 0 and "+" or "") .. count(r.difference) or "-"}
end

-- Widths of the columns, and what is between them: less if there is too much of it.
local function layout(lines)
  local width, total, gap = {}, 0, "  "
  for _, line in ipairs(lines) do
    for i, text in ipairs(line) do width[i] = math.max(width[i] or 0, #text) end
  end
  for _, w in ipairs(width) do total = total + w end
  if total + #gap * (#width - 1) > WIDTH then gap = " " end
  total = total + #gap * (#width - 1)
  if total > WIDTH then                                 -- long names lose something before their last two letters: "softmax.1"
    width[1] = math.max(width[1] - (total - WIDTH), 8)
  end
  return width, gap
end

local function text_of(c)
  local lines = {
    {"", "", "duration", "", "", "interval", "", "wait", "", "of lane", "", ""},
    {"sTask", "lane", "one", "other", "ratio", "one", "other", "one", "other", "one", "other", "adds"}}
  for i, text in ipairs(lines[2]) do
    lines[2][i] = text == "one" and c.brief[1] or text == "other" and c.brief[2] or text
  end
  for _, r in ipairs(c.rows) do lines[#lines + 1] = cells(r) end
  local out, width, gap = {}, layout(lines)
  for n, line in ipairs(lines) do
    local parts = {}
    for i, text in ipairs(line) do
      local left = i <= 2 or n == 1
      if #text > width[i] then text = text:sub(1, width[i] - 2) .. text:sub(-2) end
      parts[i] = left and text .. (" "):rep(width[i] - #text) or (" "):rep(width[i] - #text) .. text
    end
    out[n] = table.concat(parts, gap):gsub("%s+$", "")
  end
  return out
end

local function comparison_text(c)
  local out = text_of(c)
  local late = false
  for _, r in ipairs(c.rows) do late = late or r.measured and r.measured.late > 0.5 end
  table.insert(out, 1, "")
  for i, text in ipairs(changes_text(c.causes)) do table.insert(out, i, text) end
  if c.within_noise then table.insert(out, 1, "too near to call: these times may be the other way round") end
  if c.times then table.insert(out, 1, c.times) end
  table.insert(out, 1, c.title)
  if c.partial then
    out[#out + 1] = "what each adds is left out: of one only the first events are kept; plan:simulate{events=1000000} keeps more"
  end
  for _, r in ipairs(c.partial and {} or c.rows) do
    if not r.difference then
      out[#out + 1] = ("%s is in another lane: in %s it takes %s cycles in all, then in %s %s"):format(r.task, r.moved.from,
        count(r.moved.first), r.lane, count(r.moved.second))
    end
  end
  if late then out[#out + 1] = "< it had ended when its lane looked: at most so long" end
  return table.concat(out, "\n")
end

local methods = {}                                      -- those that write pictures (pictures.lua)
local comparison = record("comparison", "partial within_noise rows causes names brief ratio title times png svg pdf trace", {methods = methods,
  aliases = {tie = "within_noise"},                     -- deprecated
  __name = "millrace.comparison", __tostring = comparison_text}, function(_, name) return methods[name] end)

---- the comparison ----------------------------------------------------------------

local function check(tl, which)
  if not core.is(tl, "millrace.timeline") then
    raise(("compare: timeline expected as the %s, got %s%s"):format(which, show(tl),
      core.is(tl, "millrace.plan") and "; plan:simulate() gives one" or ""))
  end
end

-- Are there events of all that a simulated timeline plays? It keeps the first ones of each phase.
local function is_complete(tl)
  local last = {}
  for _, e in ipairs(tl.events) do last[e.phase] = math.max(last[e.phase] or 0, e["end"]) end
  local first, from = math.huge, {}
  for _, e in ipairs(tl.events) do from[e.phase] = math.min(from[e.phase] or first, e.ready) end
  for i, phase in ipairs(tl.phases) do
    if (last[i] or 0) - (from[i] or 0) < ALL * phase.cycles then return false end
  end
  return true
end

-- Have both the same number of events of each sTask?
local function has_same_counts(a, b)
  for _, pair in ipairs{{a, b}, {b, a}} do
    for task, s in pairs(pair[1]) do
      local other = pair[2][task]
      if other and s.n_last ~= other.n_last then return false end
    end
  end
  return true
end

local function kind(tl) return tl.measured and "measured" or "predicted" end
local brief = {measured = "meas.", predicted = "pred."}
local NAME = 7                                          -- letters of a name above a column, at most

-- What the two are called: as the user says, else how they were made, if they differ in that.
local function names_of(one, other, o)
  local given = options.check(o, "compare", {"names"}).names
  if given == nil then
    local a, b = kind(one), kind(other)
    if a == b then a, b = "first", "second" end
    if kind(one) == kind(other) and one.device.name ~= other.device.name then a, b = one.device.name, other.device.name end
    return {a, b}
  end
  if type(given) ~= "table" or #given ~= 2 or type(given[1]) ~= "string" or type(given[2]) ~= "string" then
    raise(('compare: names are two texts, as in {names={"serial", "overlap"}}, got %s'):format(show(given)))
  end
  for _, name in ipairs(given) do
    if not name:find "%S" or name:find "%c" then raise(("compare: %s is no name"):format(show(name))) end
  end
  if given[1] == given[2] then raise(("compare: both are called %s"):format(show(given[1]))) end
  return {given[1], given[2]}
end

local LINE <const> = 80                                 -- columns of both times, at most, if speeds can be shorter

local function is_short(name) return not utf8.len(name) or utf8.len(name) <= NAME end

-- The beginning of a long name, or its end.
local function shorten(name, keeps_end)
  if is_short(name) then return name end
  if keeps_end then return "." .. name:sub(utf8.offset(name, 1 - NAME)) end
  return name:sub(1, utf8.offset(name, NAME) - 1) .. "."
end

-- Two names as short as columns need, which differ: without folders, the ending, and the words that both begin with.
local function brief_names(names)
  local a, b = brief[names[1]] or names[1], brief[names[2]] or names[2]
  local function drop(pattern)
    if is_short(a) and is_short(b) then return end
    local x, y = a:gsub(pattern, ""), b:gsub(pattern, "")
    if x ~= y and x ~= "" and y ~= "" then a, b = x, y end
  end
  drop "^.*/"
  drop "%.lua$"
  while not (is_short(a) and is_short(b)) do
    local first = a:match "^[^_%-./]+[_%-./]+"
    if not first or b:sub(1, #first) ~= first or #a == #first or #b == #first then break end
    a, b = a:sub(#first + 1), b:sub(#first + 1)
  end
  for _, keeps_end in ipairs{false, true} do
    local x, y = shorten(a, keeps_end), shorten(b, keeps_end)
    if x ~= y then return {x, y} end
  end
  return {"first", "second"}
end

-- Both times; of a prediction and a measurement, whether they agree as far as the model claims.
local function times_text(names, one, other)
  if not (one.seconds and other.seconds) then return nil end
  local text
  for brief = 0, 2 do                                   -- as long as it fits into a line
    text = ("%s %s; %s %s"):format(names[1], times.text(one, brief), names[2], times.text(other, brief))
    if #text <= LINE then break end
  end
  local guess, truth = one.measured and other or one, one.measured and one or other
  if guess.measured or not truth.measured or not guess.uncertainty then return text end
  local off = math.abs(truth.seconds / guess.seconds - 1)
  return ("%s: %s the uncertainty"):format(text, off <= guess.uncertainty and "within" or "beyond")
end

-- Name and sizes: plans of a program with other options can be compared, too.
local function program_of(tl)
  local bound = (tl.measured and tl.kernel.plan or core.plan_of(tl)).graph.program
  return ("%s %s"):format(bound.name, select(3, core.identity(bound)))
end

local function compare(one, other, o)
  if core.is(one, "millrace.sequence_timeline") and core.is(other, "millrace.sequence_timeline") then
    return sequences(one, other, names_of(one, other, o))
  end
  check(one, "first")
  check(other, "second")
  if program_of(one) ~= program_of(other) then
    raise(("compare: the timelines are of different programs: %s and %s"):format(one.program, other.program))
  end
  if one.unit ~= other.unit then
    raise(("compare: one timeline counts %s, the other %s, which have no length: compare the order of their events")
      :format(one.unit == "stamps" and other.unit or one.unit, "stamps"))
  end
  local names = names_of(one, other, o)
  local a, _, alanes = gather(one)
  local b, order, blanes = gather(other)
  local rows = {}
  local comparable = has_same_counts(a, b) or is_complete(one) and is_complete(other)
  for _, s in ipairs(order) do rows[#rows + 1] = row(s.task, a[s.task], s, alanes, blanes, comparable) end
  for _, s in ipairs(select(2, gather(one))) do
    if not b[s.task] then rows[#rows + 1] = row(s.task, s, nil, alanes, blanes, comparable) end
  end
  for i, r in ipairs(rows) do r.position = i end
  table.sort(rows, function(x, y)
    local dx, dy = math.abs(x.difference or 0), math.abs(y.difference or 0)
    if dx ~= dy then return dx > dy end
    return x.position < y.position
  end)
  for _, r in ipairs(rows) do r.position = nil end
  return setmetatable({
    times = times_text(names, one, other),
    within_noise = times.near(one, other), rows = rows, partial = not comparable, causes = changes(one, other),
    names = names, brief = brief_names(names), ratio = other.cycles / one.cycles,
    title = ("%s: %s %s %s, %s %s, %.2f times as many; II %s and %s%s"):format(one.program:match "^[^{]*", names[1],
      count(one.cycles), one.unit, names[2], count(other.cycles), other.cycles / one.cycles, count(one.ii), count(other.ii),
      core.iterates_alike(one, other) and "" or ", of different iterations"),
  }, comparison)
end

return function() return {compare = entry(compare)} end
