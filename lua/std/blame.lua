-- blame.lua - tl.blame: where the time of each lane goes, by sTask and cause.

local core = require "millrace.core"
local record = require("millrace.record").of
local entry = core.entry

local row = record("row", "lane task share issue pipe shared l2 global slot dependence turn sync power parts feeds lane_cycles")
local part = record("part", "cause on unit share")

local function percent(x) return x > 0 and ("%.1f %%"):format(100 * x) or "" end

-- The parts of one sTask, as a row: shares by cause, all of them, and the parts.
local function rows_of(parts, causes)
  local rows, of = {}, {}
  for _, p in ipairs(parts) do
    local r = of[p.task]
    if not r then
      r = setmetatable({lane = p.lane, task = p.task, share = 0, feeds = p.feeds, lane_cycles = p.lane_cycles, parts = {}}, row)
      for _, cause in ipairs(causes) do r[cause] = 0 end
      of[p.task], rows[#rows + 1] = r, r
    end
    r[p.cause], r.share = r[p.cause] + p.share, r.share + p.share
    table.insert(r.parts, setmetatable({cause = p.cause, on = p.on, unit = p.unit, share = p.share}, part))
  end
  local position = {}
  for i, r in ipairs(rows) do position[r.lane] = position[r.lane] or i end
  for i, r in ipairs(rows) do position[r] = i end
  table.sort(rows, function(a, b)
    if a.lane ~= b.lane then return position[a.lane] < position[b.lane] end
    return position[a] < position[b]
  end)
  return rows
end

-- Columns that have nothing in any row are left out.
local function text_of(rows, causes)
  local columns, lines = {"lane", "sTask", "of lane"}, {}
  for _, cause in ipairs(causes) do
    local any = false
    for _, r in ipairs(rows) do any = any or r[cause] >= 0.0005 end
    if any then columns[#columns + 1] = cause end
  end
  lines[1] = columns
  for _, r in ipairs(rows) do
    local line = {r.lane, r.task, percent(r.share)}
    for i = 4, #columns do line[i] = percent(r[columns[i]]) end
    lines[#lines + 1] = line
  end
  local width, out = {}, {}
  for _, line in ipairs(lines) do
    for i, text in ipairs(line) do width[i] = math.max(width[i] or 0, #text) end
  end
  for n, line in ipairs(lines) do
    local cells = {}
    for i, text in ipairs(line) do
      local blank = (" "):rep(width[i] - #text)
      cells[i] = i <= 2 and text .. blank or blank .. text
    end
    out[n] = table.concat(cells, "  "):gsub("%s+$", "")
  end
  return table.concat(out, "\n")
end

local function blame(tl)
  local parts, causes = core.blame(tl)
  local rows = rows_of(parts, causes)
  return setmetatable(rows, {__name = "millrace.blame",
    __tostring = function() return text_of(rows, causes) end})
end

return function()
  core.field("millrace.timeline", "blame", entry(blame))
  return {}
end
