-- tune.lua - mr.tune: a search for each of many programs and sizes, one after the other, or at the same time on the ranks of a farm.
--
-- A row is one program with sizes, and one task of a farm (ranks.lua): all that is measured of it is measured on one device, alternately.
-- Each measurement is in the store before the next one begins, so that a run that was ended goes on where it was: rows whose search had
-- come to its end are answered by the store, and of others what was measured is not measured again.

local core = require "millrace.core"
local columns = require "millrace.columns"
local farm_devices = require "millrace.farm_devices"
local helpers = require "millrace.helpers"
local json = require "millrace.json"
local new_progress = require("millrace.farm_progress").new
local loader = require "millrace.loader"
local shared_ranks = require("millrace.ranks").shared
local options = require "millrace.options"
local record = require("millrace.record").of
local search = require "millrace.search"
local sequences = require "millrace.sequence"
local store_of = require "millrace.store"
local tile = require "millrace.tile"
local trials = require "millrace.trials"
local mr = require "millrace"
local raise, show, entry, expect = core.raise, core.show, core.entry, core.expect

local SEARCH <const> = {"seconds", "trials", "measure", "compile", "dynamic", "seed", "fresh"}   -- options that each search gets

---- rows ------------------------------------------------------------------------------------------

-- The bound program of an entry: one, or {program, m=, n=, ...}.
local function bound_of(entry_of, i)
  if core.is(entry_of, "millrace.program") then return entry_of end
  if tile.is_program(entry_of) then
    raise(("tune: row %d is a program without sizes: {program, m=, ...} is one with sizes"):format(i))
  end
  if type(entry_of) ~= "table" or entry_of[1] == nil then
    raise(("tune: row %d must be a program with sizes, or {program, m=, ...}, not %s"):format(i, show(entry_of)))
  end
  if not (tile.is_program(entry_of[1]) or sequences.is_sequence(entry_of[1]) or type(entry_of[1]) == "function") then
    raise(("tune: row %d begins with %s; a row is {program, m=, ...}, as in {mr.examples.gemm, m=128, n=128, k=128}")
      :format(i, show(entry_of[1])))
  end
  local sizes = {}
  for key, value in pairs(entry_of) do if key ~= 1 then sizes[key] = value end end
  local good, bound = core.try(function() return entry_of[1](sizes) end)
  if not good then raise(("tune: row %d: %s"):format(i, (tostring(bound):gsub("^[^:]+:%d+: ", "")))) end
  if not core.is(bound, "millrace.program") then
    raise(("tune: row %d is of %s, not of a program; seq:plan{} plans a sequence"):format(i, show(bound)))
  end
  return bound
end

-- The bound programs of a list. Nothing in it is passed over: neither what is behind a nil, nor an option.
local function bounds_of(list)
  local bounds, n = {}, 0
  for key in pairs(list) do
    if math.type(key) ~= "integer" or key < 1 then
      raise(("tune: the list of rows has %s, which is no number of a row: each row is {program, m=, ...}, and options are behind the list")
        :format(show(key)))
    end
    n = math.max(n, key)
  end
  if n == 0 then raise "tune: there is no row: mr.tune{{program, m=, ...}, ...}" end
  for i = 1, n do bounds[i] = bound_of(list[i], i) end
  return bounds
end

-- "m=4096 n=4096", and with the options that were given, "m=4096 n=4096 causal=true", which may be all that rows differ in.
local function sizes_text(bound) return select(3, core.identity(bound)) end
local function call_text(bound)
  local _, _, sizes, given = core.identity(bound)
  return given == "" and sizes or sizes .. " " .. given
end

local function name_of(bound) return ("%s %s"):format(bound.name, call_text(bound)) end

-- Why there is no plan, in a line: what ends with a colon is about the lines behind it.
local function why_in_a_line(why) return ((why or ""):match "^[^\n]*":gsub("; [^;]*:$", "")) end

-- What is kept of a search, as plain values.
local function plain(r)
  return {script = r.plan:script(), predicted = r.seconds, ms = r.measured and r.measured.ms, trials = r.trials,
    measured = #r.measurements, ended = r.ended, why = search.without_time(r)}
end

local plans = setmetatable({}, {__mode = "k"})          -- by row; each reading of row.plan is a copy
local function row_text(row)
  local name = name_of(row.bound)
  if not row.seconds then return ("%s: no plan: %s"):format(name, row.why) end
  local times = ("predicted %.4g ms"):format(row.seconds * 1e3)
  if row.ms then times = ("%.4g ms, %s"):format(row.ms, times) end
  return ("%s: %s; %.4g TFLOP/s, %.4g GB/s; %d measured; ended: %s%s"):format(name, times, row.tflops, row.gbps, row.measured, row.ended,
    row.why and "; " .. row.why or "")
end

local row_class = record("row of mr.tune", "bound plan ms seconds tflops gbps trials measured ended why",
  {__name = "millrace.tuned_row", __tostring = row_text},
  function(row, key) return key == "plan" and plans[row] and plans[row]:copy() or nil end)

local function row_of(bound, device, x)
  local row = setmetatable({bound = bound, why = x.why}, row_class)
  local value = x.good and x.value
  if not value then return row end
  row.why = value.why
  if not value.script then return row end
  local plan = loader.of_text(mr, value.script, "mr.tune", bound)
  plans[row] = plan
  row.ms, row.seconds, row.trials, row.measured, row.ended = value.ms, value.predicted, value.trials, value.measured, value.ended
  local seconds = row.ms and row.ms * 1e-3 or row.seconds
  row.tflops, row.gbps = plan.graph.flops / seconds * 1e-12, plan.graph.bytes / seconds * 1e-9
  return row
end

---- the result --------------------------------------------------------------------------------------

local function number(x, format) return x and format:format(x) or "-" end

-- How the search of a row ended, and why it has no time; without a plan, why there is none.
local function ending_of(row)
  if not row.ended then return why_in_a_line(row.why) end
  return row.why and row.ended .. "; " .. row.why or row.ended
end

local function is_number(column) return column > 2 and column < 8 end

local function text_of(t)
  local cells = {{"program", "sizes", "predicted", "ms", "TFLOP/s", "GB/s", "measured", "ended"}}
  for _, row in ipairs(t) do
    cells[#cells + 1] = {row.bound.name, call_text(row.bound), number(row.seconds and row.seconds * 1e3, "%.4g"), number(row.ms, "%.4g"),
      number(row.tflops, "%.4g"), number(row.gbps, "%.4g"), number(row.measured, "%d"), ending_of(row)}
  end
  return ("%d row%s on %s, ms\n%s"):format(#t, #t == 1 and "" or "s", t.device.name, table.concat(columns(cells, is_number), "\n"))
end

local row_fields <const> = "program sizes options predicted ms tflops gbps trials measured ended why script"

local function row_as_json(row)
  return json.object(row_fields, {
    program = row.bound.name,
    sizes = sizes_text(row.bound),
    options = select(4, core.identity(row.bound)),
    predicted = row.seconds,
    ms = row.ms,
    tflops = row.tflops,
    gbps = row.gbps,
    trials = row.trials,
    measured = row.measured,
    ended = row.ended,
    why = row.why,
    script = plans[row] and plans[row]:script(),
  })
end

local function as_json(t)
  local list = {}
  for i, row in ipairs(t) do list[i] = row_as_json(row) end
  local all = {format = "millrace tuned 1", device = t.device.name, rows = json.list(list)}
  return json.encode(json.object("format device rows", all)) .. "\n"
end

local result = record("result of mr.tune", "device", {__name = "millrace.tuned", __tostring = text_of, methods = {json = entry(as_json)}})

---- tuning ------------------------------------------------------------------------------------------------

-- Tell the user of a row that is done, where there are many.
local function report(name, count, rank, x, n)
  local value = x.good and x.value or {}
  local what = value.ms and ("%.4g ms"):format(value.ms) or value.predicted and ("%.4g ms, predicted"):format(value.predicted * 1e3)
    or "no plan: " .. why_in_a_line(value.why or x.why)
  if value.predicted and value.why then what = what .. "; " .. value.why end
  io.stderr:write(("%s%s: %s%s%s\n"):format(n == "again" and "once more: " or ("%d of %d: "):format(n, count), name, what,
    value.ended == "remembered" and ", remembered" or "", rank > 0 and (", rank %d"):format(rank) or ""))
end

-- What the user should know of a rank.
local function warn(text) io.stderr:write(text, "\n") end

-- Ranks with the device get rows; where none has it, all do, by the model alone.
local function choose(offers, o, ranks)
  local chosen, wrong = farm_devices.choose(offers, warn)
  if wrong then raise("tune: " .. wrong) end
  if next(chosen) then return chosen end
  local without, silent = farm_devices.without(offers), ranks:silent()
  without = without and silent and without .. "; " .. silent or without or silent
  farm_devices.report_no_device("tune", o.measure, (o.measure or next(offers)) and without, warn)
  for rank in pairs(offers) do chosen[rank] = true end
  return chosen
end

local known = table.move(SEARCH, 1, #SEARCH, 2, {"device"})

local function tune(list, given)
  expect(type(list) == "table" and not getmetatable(list), "tune", "list of programs with sizes", list)
  local o = options.check(given, "tune", known)
  search.check_values(o, "tune")
  local device = o.device or mr.device()
  if type(device) == "string" then device = mr.device(device) end
  expect(core.is(device, "millrace.device"), "tune", "device", device)
  local of_search, bounds, names = {show = false}, bounds_of(list), {}
  for _, key in ipairs(SEARCH) do of_search[key] = o[key] end
  for i, bound in ipairs(bounds) do names[i] = ("%s on %s"):format(name_of(bound), device.name) end

  local ranks = shared_ranks()
  local hashes, tasks, task_of, first = {}, {}, {}, {}    -- equal rows are one task
  for i, bound in ipairs(bounds) do
    local hash = core.identity(bound)
    if not task_of[hash] then
      tasks[#tasks + 1] = names[i] .. " " .. hash
      task_of[hash], hashes[#tasks], first[#tasks] = #tasks, hash, i
    end
    task_of[i] = task_of[hash]
  end
  local function name_of_task(task) return names[first[task]] end
  if o.measure and ranks.size == 1 then
    local attached, why = trials.attached(device)
    if not attached then raise("tune: measure=true needs an attached device: " .. why) end
  end
  local progress = new_progress(name_of_task)
  local _ <close> = core.at_close(function() store_of.share(nil) end)
  store_of.share(ranks, hashes, function(rank, row)
    if row.kind == trials.KIND then progress:count(rank, "measured") end
  end)
  local between <const>, stop <const> = helpers.serve(ranks)
  local _ <close> = core.at_close(stop)
  local found = ranks:map(tasks, function(i, with)
    local helped <close> = helpers.use(ranks, with)
    local r, why = mr.search(bounds[first[i]], device, of_search)
    -- Ctrl-C of one rank: another one does the row.
    if r and r.ended == "interrupted" and ranks.rank > 0 then error("interrupted", 0) end
    return r and plain(r) or {why = why}
  end, {
    offer = function()
      if o.measure == false then return nil end
      return farm_devices.offer(ranks, device)
    end,
    compilers = helpers.compilers,
    choose = function(offers)
      local chosen = choose(offers, o, ranks)
      return chosen, helpers.assign(offers, chosen)
    end,
    between = between,
    -- A GPU that fails while the others work would otherwise take row after row, and soon have all of them.
    suspects = function(value) return value.script and not value.ms and value.measured > 0 end,
    report = function(task, rank, x, n)
      report(name_of_task(task), #tasks, rank, x, n)
      if n ~= "again" then progress:count(rank, "rows") end
    end,
    watch = function(state) progress:step(state) end,
    warn = warn,
    silence = 3600 + 4 * (o.seconds or 0),              -- a search in the model sends nothing
  })
  progress:finish()
  local t = setmetatable({device = device}, result)
  for i, bound in ipairs(bounds) do t[i] = row_of(bound, device, found[task_of[i]]) end
  return t
end

return {tune = tune}
