-- space.lua - measures a complete space of plans, and how soon each policy finds the best one.
--
--   millrace tests/perf/space.lua list PROGRAM SIZE=... [tile.AXIS=EXTENT,...] [every=N]
--   millrace tests/perf/space.lua measure PROGRAM ...
--   millrace tests/perf/space.lua curve PROGRAM ... [seeds=200] [parts=N] [uncertainty=X]
--   millrace tests/perf/space.lua save PROGRAM ...
--
-- The space: all plans with kernels that mr.search reaches with each of the tiles, or one of every N
-- of them, by predicted time. `list` prints how many there are and the best. `measure` runs on the attached device what the
-- store (MILLRACE_STORE) and spaces-h200.csv do not have yet, as mr.search does, but all of it; Ctrl-C keeps what there is.
-- `save` prints what both have as lines of that file. `curve` needs no device: of these rows it prints the best time
-- found after so many trials, as a share of the best of all (1 is the best plan itself):
--
--   random     plans in random order: the mean of so many seeds, and the worst of ten of them
--   greedy     in the order in which the search comes to them, tile by tile
--   model      by predicted time
--   measured   by predicted time, corrected by what was measured, until no other is likely to win; ends at |
--
-- and after how many trials each is within 1 % of the best; and, as one space is one case, after how many the last of
-- them is in so many random parts of 60 % of the rows. E. g.
--
--   gemm m=4096 n=4096 k=4096 tile.m=64,128,192,256 tile.n=64,128,192,256 tile.k=64,128 every=4
--   flash_attention b=8 h=16 m=2048 d=128 tile.m=64,128,192 tile.n=64,96,128,160,176 every=3, and every=8
--   chunk_state b=8 s=8192 h=80 p=64 n=128 tile.l=32,64,128,256 tile.n=64,128 tile.p=32,64 every=6
local mr = require "millrace"
local core = require "millrace.core"
local draft = require "millrace.draft"
local measure = require "millrace.measure"
local folder <const> = arg[0]:match "^(.*/)" or "./"
local table_server, measured_lists = dofile(folder .. "table_server.lua"), dofile(folder .. "measured.lua")

local KIND <const> = "space"

-- what is asked ---------------------------------------------------------------------------------

local function usage()
  io.stderr:write "usage: millrace tests/perf/space.lua list|measure|curve|save PROGRAM SIZE=... [tile.AXIS=...] [every=N]\n"
  os.exit(2)
end

local what, program = arg[1], arg[2]
if not program or not ({list = true, measure = true, curve = true, save = true})[what] then usage() end
local sizes, tile, axes, set = {}, {}, {}, {every = 1, seeds = 200, parts = 0, uncertainty = 0}
for i = 3, #arg do
  local key, value = arg[i]:match "^([%w_.]+)=(.+)$"
  local axis = key and key:match "^tile%.(.+)$"
  if axis then
    tile[axis], axes[#axes + 1] = {}, axis
    for x in value:gmatch "%d+" do table.insert(tile[axis], math.tointeger(x)) end
  elseif set[key] then
    set[key] = tonumber(value)
  elseif key then
    sizes[key] = value == "true" and true or value ~= "false" and (math.tointeger(value) or value)
  else
    usage()
  end
end
if what == "curve" or what == "save" then set.every = 1 end -- rows say which: elsewhere, equal times may sort otherwise
local bound, device = mr.examples[program](sizes), mr.device "h200"
local uncertainty <const> = set.uncertainty > 0 and set.uncertainty or math.max(device:number "uncertainty.products", device:number "uncertainty.other")

-- the space ---------------------------------------------------------------------------------------

-- Of one tile: {{script=, predicted=, traits=, trial=, plan=}, ...}
local function of_tile(list, seen, fixed)
  local s = core.search(bound, device, fixed, true)
  s:run(math.maxinteger, math.huge)
  for _, x in ipairs(s:found()) do
    local plan = draft.plan(bound, device, s:plan(x.trial))
    local script = plan:script()
    if x.priced and not seen[script] then
      seen[script] = true
      list[#list + 1] = {script = script, plan = plan, predicted = x.seconds, traits = x.traits, trial = x.trial}
    end
  end
end

local function each_tile(at, fixed, visit)
  local axis = axes[at]
  if not axis then return visit(fixed) end
  for _, extent in ipairs(tile[axis]) do
    fixed[axis] = extent
    each_tile(at + 1, fixed, visit)
  end
end

local function by_model(rows)
  local list = table.move(rows, 1, #rows, 1, {})
  table.sort(list, function(a, b)
    if a.predicted ~= b.predicted then return a.predicted < b.predicted end
    return a.script < b.script
  end)
  return list
end

-- Sorted by predicted time, one of every so many; each knows where the search came to it.
local function space()
  local all, seen, before = {}, {}, 0
  each_tile(1, {}, function(fixed)
    local n = #all
    of_tile(all, seen, fixed)
    for i = n + 1, #all do all[i].order = before + all[i].trial end
    before = before + 1000000
  end)
  local list = {}
  for i, c in ipairs(by_model(all)) do
    if (i - 1) % set.every == 0 then list[#list + 1] = c end
  end
  return list, #all
end

-- the rows ------------------------------------------------------------------------------------------

-- What the store has of these plans: by script.
local function known_rows()
  local rows = {}
  for _, row in ipairs(mr.store:list{program = bound, device = device.name, kind = KIND, limit = 100000}) do
    if row.version == mr.version and row.script and not rows[row.script] then rows[row.script] = row end
  end
  return rows
end

local title <const> = ("%s %s"):format(program, (select(3, core.identity(bound))))

-- The hash by which spaces-h200.csv names a plan: that of its script as version 0.1.0 wrote it, by deprecated names.
local old_names <const> = {["plan:split_off"] = "plan:cut", ["plan:alias"] = "plan:place", ["replicas="] = "turns="} -- deprecated
local function short_hash(script)
  for new, old in pairs(old_names) do script = script:gsub(new, old) end
  return core.hash(script):sub(1, 12)
end

-- Of these plans, by script: {status=, ms=} of the store, or else of the file.
local function rows_of(list)
  local rows, saved = known_rows(), measured_lists.space(measured_lists.spaces, title)
  for _, c in ipairs(list) do
    local ms = saved[short_hash(c.script)]
    if ms and not rows[c.script] then
      rows[c.script] = ms == "spills" and {status = ms} or {ms = ms, status = "ok"}
    end
  end
  return rows
end

local function save(list)
  local rows = rows_of(list)
  for _, c in ipairs(list) do
    local row = rows[c.script]
    if row then print(("%s,%s,%s"):format(title, short_hash(c.script), row.ms and ("%.5f"):format(row.ms) or row.status)) end
  end
end

local function measure_all(list)
  local found = assert(core.attached())
  local known, words = rows_of(list), {skipped = "spills"}
  return measure(bound, device, list, {risk = -1, worst = math.huge, final = false,
    known = function(plan)
      local row = known[plan:script()]
      return row and {status = row.status == "spills" and "skipped" or row.status, ms = row.ms, relative = row.error}
    end,
    put = function(row)
      mr.store:put{plan = row.plan, kind = KIND, status = words[row.status] or row.status, message = row.why, predicted = row.predicted,
        ms = row.score or row.ms, min = row.min, max = row.max, error = row.relative, driver = found.driver, seed = 1}
    end,
    progress = function(p)
      io.stderr:write(("\r%d of %d, the best %.4g ms, %.0f s of the device "):format(#p.results, #list, p.best and p.best.score or 0,
        p.device_seconds))
    end})
end

-- the ways to choose ----------------------------------------------------------------------------------

local function random(seed)
  local state = seed * 2654435761 + 1
  return function(n)
    state = (state * 6364136223846793005 + 1442695040888963407) & 0x7fffffffffffffff
    return (state >> 20) % n + 1
  end
end

-- Best so far after each trial, as a share of the best of all.
local function curve(rows, best)
  local list, found = {}, math.huge
  for i, row in ipairs(rows) do
    found = math.min(found, row.ms)
    list[i] = best / found
  end
  return list
end

local function shuffled(rows, seed)
  local list, below = table.move(rows, 1, #rows, 1, {}), random(seed)
  for i = #list, 2, -1 do
    local k = below(i)
    list[i], list[k] = list[k], list[i]
  end
  return list
end

local function of_random(rows, best)
  local mean, low, all = {}, {}, {}
  for seed = 1, set.seeds do all[seed] = curve(shuffled(rows, seed), best) end
  for i = 1, #rows do
    local at, sum = {}, 0
    for seed = 1, set.seeds do
      at[seed] = all[seed][i]
      sum = sum + at[seed]
    end
    table.sort(at)
    mean[i], low[i] = sum / #at, at[math.max(#at // 10, 1)]
  end
  return mean, low
end

local function greedy(rows)
  local list = table.move(rows, 1, #rows, 1, {})
  table.sort(list, function(a, b) return a.order < b.order end)
  return list
end

local function measured(rows)
  local order = {}
  local r = measure(nil, nil, by_model(rows), {uncertainty = uncertainty, final = false, server = table_server(),
    put = function(row) order[#order + 1] = row.candidate end})
  return order, r
end

local function best_of(rows)
  local best = math.huge
  for _, row in ipairs(rows) do best = math.min(best, row.ms) end
  return best
end

local function first_within(list, share)
  for i, x in ipairs(list) do if x >= share then return i end end
end

-- After how many trials each of n random parts of the rows is within 1 % of its best; sorted.
local function of_parts(rows, n)
  local after = {}
  for seed = 1, n do
    local part = table.move(shuffled(rows, seed), 1, #rows * 6 // 10, 1, {})
    after[seed] = first_within(curve((measured(part)), best_of(part)), 0.99) or math.huge
  end
  table.sort(after)
  return after
end

-- the table ---------------------------------------------------------------------------------------------

local function columns_of(n)
  local list = {}
  for i = 1, n do
    if i <= 8 or i == n or (i & (i - 1)) == 0 or i % 3 == 0 and ((i // 3) & (i // 3 - 1)) == 0 then list[#list + 1] = i end
  end
  return list
end

local function show_line(name, list, columns)
  local cells = {}
  for i, n in ipairs(columns) do
    local x = list[n]
    cells[i] = x and ("%6.3f"):format(x) or (columns[i - 1] or 0) <= #list and "     |" or "      "
  end
  print(("%-10s%s   %s"):format(name, table.concat(cells), first_within(list, 0.99) or "-"))
end

local function show(rows)
  local best, columns, head = best_of(rows), columns_of(#rows), {}
  for i, n in ipairs(columns) do head[i] = ("%6d"):format(n) end
  local mean, low = of_random(rows, best)
  local order, r = measured(rows)
  print(("%s: %d plans, the best %.4g ms"):format(bound.name, #rows, best))
  print(("%-10s%s   99 %% after"):format("trials", table.concat(head)))
  show_line("random", mean, columns)
  show_line("  1 of 10", low, columns)
  show_line("greedy", curve(greedy(rows), best), columns)
  show_line("model", curve(by_model(rows), best), columns)
  show_line("measured", curve(order, best), columns)
  local found = curve(order, best)
  local within = first_within(found, 0.99)
  print(("measured ends after %d: %s; its best is %.3f of the best; 99 %% after %s, 1 / %s of all; bias %+.1f %%, spread %.1f %%")
    :format(#order, r.ended, found[#found], within or "-", within and ("%.0f"):format(#rows / within) or "-",
    100 * (math.exp(r.bias) - 1), 100 * r.spread))
  local after = of_parts(rows, set.parts)
  if #after > 0 then
    print(("of %d parts of 60 %%: 99 %% after %g in the median, %g in nine of ten, %g at most"):format(#after, after[(#after + 1) // 2],
      after[math.ceil(#after * 0.9)], after[#after]))
  end
end

local list, all = space()
if what == "save" then return save(list) end
print(("%d of %d plans of %d tiles and more, the best predicted %.4g ms"):format(#list, all, #axes > 0 and #tile[axes[1]] or 1,
  list[1].predicted * 1e3))
if what == "measure" then
  local r = measure_all(list)
  io.stderr:write "\n"
  print(("%d measured now, %d known, ended: %s"):format(r.trials, r.known, r.ended))
end
if what == "measure" or what == "curve" then
  local known, rows, n = rows_of(list), {}, 0
  for _, c in ipairs(list) do
    local row = known[c.script]
    n = n + (row and 1 or 0)
    if row and row.ms then
      c.ms = row.ms
      rows[#rows + 1] = c
    end
  end
  print(("%d of them were measured, %d with a time"):format(n, #rows))
  if #rows > 1 then show(rows) end
end
