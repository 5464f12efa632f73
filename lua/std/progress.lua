-- progress.lua - the progress of a search: as a text, on a line of the terminal, on a screen of the explorer.
--
-- A state is {phase="model" or "device", trials=, shapes=, best=, bound=, gap=, chance=, device_seconds=,
-- under_way=, last=, history=, predicted=, measured=, most=, text=, ended=}, with times in seconds; each field may be
-- missing. predicted: prediction for the best plan; measured: how many were measured (default: trials); most: how many
-- may be; text: description of the best plan; last: the newest entry of the history, instead of all of it.

local core = require "millrace.core"

local progress = {}

local EVERY <const> = 0.2                               -- seconds between two updates
local SHARE <const> = 10                                -- updates take at most one part in so many of the time

---- numbers -----------------------------------------------------------------------------------

local units <const> = {{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}, {1e-9, "ns"}}

local function unit_of(seconds)
  for _, unit in ipairs(units) do
    if seconds >= unit[1] * 0.9995 then return unit end
  end
  return units[#units]
end

-- Three significant digits, without zeros at the end.
local function digits(v)
  local text = v < 9.995 and ("%.2f"):format(v) or v < 99.95 and ("%.1f"):format(v) or ("%.0f"):format(v)
  return text:find "%." and (text:gsub("0+$", ""):gsub("%.$", "")) or text
end

local function time(seconds, unit)
  local u = unit or unit_of(seconds)
  return digits(seconds / u[1]) .. (unit and "" or " " .. u[2])
end

local function percent(share)
  local p = math.abs(share) < 0.0005 and 0 or 100 * share  -- no "-0 %"
  return (math.abs(p) < 9.95 and p ~= 0 and "%.1f %%" or "%.0f %%"):format(p)
end

local function is_number(v) return type(v) == "number" and v == v and math.abs(v) ~= math.huge end
local function is_time(v) return is_number(v) and v > 0 end

local function count(n, what) return ("%d %s%s"):format(n, what, n == 1 and "" or "s") end

local function integer_of(v) return is_number(v) and math.tointeger(v // 1) or nil end

---- texts ---------------------------------------------------------------------------------------

local function model_parts(s)
  local parts = {}
  if is_number(s.trials) then
    parts[1] = count(integer_of(s.trials), "plan") .. (is_number(s.shapes) and " of " .. count(integer_of(s.shapes), "shape") or "")
  end
  if is_time(s.best) then parts[#parts + 1] = "best " .. time(s.best) end
  if is_time(s.bound) then
    parts[#parts + 1] = "bound " .. time(s.bound, is_time(s.best) and unit_of(s.best) or nil)
  end
  return parts
end

local function measured_part(s)
  local n = integer_of(s.measured or s.trials)
  if not n then return nil end
  local most = integer_of(s.most)
  return most and ("%d of at most %d measured"):format(n, most) or ("%d measured"):format(n)
end

local function device_parts(s)
  local parts = {measured_part(s)}
  if is_time(s.best) then
    parts[#parts + 1] = "best " .. time(s.best)
      .. (is_time(s.predicted) and (" (model said %s)"):format(time(s.predicted, unit_of(s.best))) or "")
  end
  if is_number(s.under_way) and s.under_way > 0 then parts[#parts + 1] = ("%d compiling"):format(integer_of(s.under_way)) end
  if is_number(s.chance) then parts[#parts + 1] = "chance of better " .. percent(s.chance) end
  if is_number(s.device_seconds) then parts[#parts + 1] = ("%.1f s of device time"):format(s.device_seconds) end
  return parts
end

-- A state in one line.
function progress.text(s)
  local device = s.phase == "device"
  local parts = device and device_parts(s) or model_parts(s)
  return (device and "device: " or "model: ") .. (#parts > 0 and table.concat(parts, ", ") or "nothing yet")
end

-- The first `width` columns of a text.
local function shorten(text, width)
  local n = utf8.len(text) or #text
  if n <= width then return text end
  return text:sub(1, (utf8.offset(text, math.max(width, 0) + 1) or #text + 1) - 1)
end

-- The entry of the best plan.
local function best_entry(s)
  local found
  for _, e in ipairs(s.history or {}) do
    local good = type(e) == "table" and e.status ~= "wrong" and e.status ~= "failed"
    local seconds = good and (e.measured or e.predicted)
    if is_time(s.best) and is_time(seconds) and math.abs(seconds - s.best) <= 1e-9 * s.best then found = e end
  end
  return found
end

-- Lines above the curve: the best plan, the bound, the effort.
local function facts(s)
  local list, e = {}, best_entry(s)
  if is_time(s.best) then
    local predicted = s.predicted or e and e.measured and e.predicted
    local measured = e and e.measured or not e and s.phase == "device" and is_number(s.measured) and s.measured > 0
    local how = is_time(predicted) and (" measured, the model said %s"):format(time(predicted, unit_of(s.best)))
      or measured and " measured" or " predicted"
    local what = s.text or e and e.text
    list[1] = "best " .. time(s.best) .. how .. (what and what ~= "" and ": " .. what or "")
  else
    list[1] = "no legal plan yet"
  end
  if is_time(s.bound) then
    local gap = is_time(s.best) and s.best / s.bound - 1 or is_number(s.gap) and s.gap
    list[2] = "bound " .. time(s.bound)
      .. (not gap and "" or gap > 0 and (", the best is %s above it"):format(percent(gap)) or ", which the best reaches")
  end
  local parts = {}
  if s.phase ~= "device" or s.measured then parts[1] = model_parts{trials = s.trials, shapes = s.shapes}[1] end
  if s.phase == "device" then
    for _, part in ipairs(device_parts{trials = s.trials, measured = s.measured, most = s.most, under_way = s.under_way,
        chance = s.chance, device_seconds = s.device_seconds}) do
      parts[#parts + 1] = part
    end
  end
  list[#list + 1] = #parts > 0 and table.concat(parts, ", ") or nil
  if s.ended then list[#list + 1] = "ended: " .. tostring(s.ended) end
  return list
end

-- A state as screen:update wants it.
function progress.view(s, title, ended)
  return {title = title, phase = ended and "ended" or s.phase or "model", facts = facts(s), bound = s.bound,
    history = s.history, keys = not ended and "q stops the search and keeps the best plan"
      or s.best and "Enter opens the best plan in the explorer, any other key leaves" or "any key leaves"}
end

---- watching -------------------------------------------------------------------------------------

-- Write a text over the last one on the line.
local function put_line(w, text)
  local n = utf8.len(text) or #text
  w.out:write("\r", text, (" "):rep(w.written - n))
  if w.written > n then w.out:write("\r", text) end
  w.written = n
  w.out:flush()
end

-- Clear the line, also of a ^C that the terminal may have added.
local function clear_line(w)
  if w.written > 0 then
    w.out:write("\r", (" "):rep(math.min(w.written + 2, w.columns - 1)), "\r")
    w.out:flush()
  end
  w.written = 0
end

-- The state with its history, which is collected here if the state has only the newest entry.
local function with_history(w, state)
  if state.history then return state end
  if state.last and state.last ~= w.last then
    w.last = state.last
    w.history[#w.history + 1] = state.last
  end
  return setmetatable({history = w.history}, {__index = state})
end

local watcher = {}
watcher.__index = watcher

-- Show a state; it may be called often. True: the search must stop. The flag of Ctrl-C is set then, so the caller must
-- return at once to code that checks it.
function watcher.__call(w, state)
  state = with_history(w, state)
  w.state = state
  local from = w.clock()
  if not (w.screen or w.columns > 0 or w.lines) or from < w.next then return false end
  if not w.screen then
    local text = progress.text(state)
    if w.ascii then text = text:gsub("µ", "u") end
    if w.columns == 0 then
      w.out:write(w.title, ": ", text, "\n")
      w.next = from + w.lines
      return false
    end
    put_line(w, shorten(text, w.columns - 1))
  else
    local stop = w.screen:update(progress.view(state, w.title))
    if stop then return w.screen:stop() end
  end
  local now = w.clock()
  w.next = now + math.max(EVERY, SHARE * (now - from))
  return false
end

-- The search has ended; fields of `result` replace those of the last state. A screen waits for a key and is closed;
-- returns "open" if that was Enter and there is a best plan.
function watcher:finish(result)
  clear_line(self)
  local screen = self.screen
  if not screen then return nil end
  self.screen = nil
  local before = self.state or {}
  local state = setmetatable({}, {__index = function(_, key)
    local v = result and rawget(result, key)
    if v == nil then v = before[key] end
    return v
  end})
  state.history = result and rawget(result, "history") or before.history or self.history
  local open = screen:finish(progress.view(state, self.title, true))
  return open and state.best and "open" or nil
end

-- However the search ends, also by an error.
watcher.__close = core.uninterrupted(function(self)
  clear_line(self)
  if self.screen then self.screen:close() end
  self.screen = nil
end)

-- watch{title=, show=} -> a watcher to call with states; declare it <close>. show: on a screen, if there is a terminal;
-- otherwise on a line of standard error, if that is a terminal; if it is none, lines= says after how many seconds there is another line, nil:
-- none. For tests: clock=, out=, columns=, ascii=.
function progress.watch(o)
  local terminal = core.terminal()
  local w = setmetatable({title = o.title or "search", clock = o.clock or core.clock, out = o.out or io.stderr,
    columns = o.columns or terminal.errors, ascii = o.ascii, written = 0, history = {}}, watcher)
  w.lines, w.next = o.lines, o.lines and w.columns == 0 and w.clock() + o.lines or 0
  if o.ascii == nil then w.ascii = not terminal.unicode end
  if o.show and core.search_screen then
    local screen, why = core.search_screen()
    w.screen = screen
    if why then io.stderr:write(why, "\n") end
  end
  return w
end

return progress
