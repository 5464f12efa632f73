-- curves.lua - mr.progress: the best so far of searches against trials, as a picture.

local core = require "millrace.core"
local options = require "millrace.options"
local picture = require "millrace.picture"
local raise, show, expect = core.raise, core.show, core.expect

local MOST = 12

-- A search result, {history=, bound_seconds=} or a list of entries -> history, bound, or nil. The history is a copy of what
-- the table has itself: __len and __index of a table of the caller may have no end.
local function history_of(x)
  if type(x) ~= "table" then return nil end
  local history, bound = rawget(x, "history"), rawget(x, "bound_seconds")
  if history == nil then history = x end
  if type(history) ~= "table" then return nil end
  local list = {}
  for i = 1, rawlen(history) do
    local entry = rawget(history, i)
    if type(entry) ~= "table" or not (entry.predicted or entry.measured or entry.status) then return nil, i end
    list[i] = entry
  end
  if history == x and #list == 0 and next(x) ~= nil then return nil end
  return list, type(bound) == "number" and bound or nil
end

local function check_history(name, x)
  local history, bound = history_of(x)
  if not history then raise(("progress: what a search tried expected as %s, got %s"):format(name, show(x))) end
  return {name = name, history = history, bound = bound}
end

local function is_one(x) return rawget(x, "history") ~= nil or type(rawget(x, 1)) == "table" and history_of(x) ~= nil end

-- The title of a search's own picture.
local function name_of(x)
  local meta = getmetatable(x)
  if type(meta) ~= "table" or meta.__name ~= "millrace.search" then return "" end
  local plan = x.plan
  return ("%s on %s"):format(plan.graph.program.name, plan.device.name)
end

local function curves_of(given)
  if is_one(given) then
    local curve = check_history("the search", given)
    curve.name = name_of(given)
    return {curve}
  end
  local names, curves = options.names(given, "progress"), {}
  if #names == 0 then raise "progress: there is no search to draw" end
  if #names > MOST then raise(("progress: at most %d searches are drawn, got %d"):format(MOST, #names)) end
  for i, name in ipairs(names) do curves[i] = check_history(tostring(name), given[name]) end
  return curves
end

---- the script, which has all numbers ----------------------------------------------------------

local fields <const> = {"trial", "predicted", "measured", "status", "best", "phase", "text"}

local function literal(v)
  if type(v) == "string" then return (("%q"):format(v):gsub("\n", "n")) end
  return math.type(v) == "integer" and ("%d"):format(v) or ("%.9g"):format(v)
end

local function is_plain(v)
  return type(v) == "string" or type(v) == "number" and v == v and v ~= math.huge and v ~= -math.huge
end

local function put_curve(lines, c)
  lines[#lines + 1] = ("  [%s] = {%shistory = {"):format(literal(c.name ~= "" and c.name or "search"),
    c.bound and ("bound_seconds = %s, "):format(literal(c.bound)) or "")
  for _, entry in ipairs(c.history) do
    local parts = {}
    for _, key in ipairs(fields) do
      local v = entry[key]
      if is_plain(v) then parts[#parts + 1] = key .. "=" .. literal(v) end
    end
    lines[#lines + 1] = "    {" .. table.concat(parts, ", ") .. "},"
  end
  lines[#lines + 1] = "  }},"
end

local function script_of(p, call)
  local lines = {'local mr = require "millrace"', "mr.progress{"}
  for _, c in ipairs(p.curves) do put_curve(lines, c) end
  lines[#lines + 1] = "}:" .. call
  return table.concat(lines, "\n") .. "\n"
end

---- the object ------------------------------------------------------------------------------------

local methods = {}
local progress = {__name = "millrace.progress", __index = methods}

-- "282 plans tried, 32 measured"
local function counts_of(history)
  local tried, measured = 0, 0
  for _, e in ipairs(history) do
    if e.phase == "device" then measured = measured + 1 else tried = tried + 1 end
  end
  local texts = {}
  if tried > 0 or measured == 0 then texts[1] = ("%d plan%s tried"):format(tried, tried == 1 and "" or "s") end
  if measured > 0 then texts[#texts + 1] = measured .. " measured" end
  return table.concat(texts, ", ")
end

-- The best of a history, and the trial that found it.
local function best_of(history)
  local best, at, measured
  for i, e in ipairs(history) do
    local good = e.status ~= "wrong" and e.status ~= "failed"
    local seconds = good and (e.measured or not measured and e.predicted)
    if seconds and (not best or e.measured and not measured or seconds < best) then
      best, at = seconds, e.trial or i
    end
    measured = measured or good and e.measured
  end
  return best, at, measured and "measured" or "predicted"
end

function progress.__tostring(p)
  local lines = {}
  for _, c in ipairs(p.curves) do
    local best, at, how = best_of(c.history)
    lines[#lines + 1] = ("%s: %s, %s"):format(c.name ~= "" and c.name or "search", counts_of(c.history),
      best and ("best %.4g ms %s, at trial %d"):format(best * 1e3, how, at) or "nothing found")
  end
  return table.concat(lines, "\n")
end

local function draw(p, format, path, options)
  if getmetatable(p) ~= progress then raise(("%s: what mr.progress gives expected, got %s"):format(format, show(p))) end
  local file, o, show_it = picture.where(format, path, options)
  local script = script_of(p, picture.call_of(format, file or "FILE"))
  picture.say(format, file, core.progress(format, file, o, script, p.curves, show_it))
end

local curves = {}

function curves.progress(given)
  expect(type(given) == "table", "progress", "table of searches", given)
  return setmetatable({curves = curves_of(given)}, progress)
end

-- Methods of mr.progress{...}, and functions of this module for what a search gives.
for _, format in ipairs(picture.formats) do
  methods[format] = core.entry(function(p, path, options) return draw(p, format, path, options) end)
  curves[format] = function(r, path, options)
    if type(r) ~= "table" or not history_of(r) or rawget(r, "history") == nil then
      raise(("%s: search with a history expected, got %s"):format(format, show(r)))
    end
    return draw(curves.progress(r), format, path, options)
  end
end

return curves
