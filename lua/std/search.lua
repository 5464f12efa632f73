-- search.lua - mr.search: find a fast plan in the model (src/search), and have the best candidates measured (trials.lua) if
-- the device is attached.

local core = require "millrace.core"
local draft = require "millrace.draft"
local farm_devices = require "millrace.farm_devices"
local loader = require "millrace.loader"
local ahead_of = require "millrace.ahead"
local options = require "millrace.options"
local repair = require "millrace.repair"
local remote = require "millrace.remote"
local repairs = require "millrace.repairs"
local shared_ranks = require("millrace.ranks").shared
local suggest = require "millrace.suggest"
local planned = require("millrace.record").of_plan
local times = require "millrace.times"
local trials = require "millrace.trials"
local unspilled = require "millrace.unspilled"
local changes = require "millrace.changes"
local mr = require "millrace"
local raise, show, late, expect = core.raise, core.show, core.late, core.expect

local SIMULATED <const>, MEASURED <const> = 2000, 32   -- trials, unless the caller gives a number
local FEW <const> = 200                                -- trials, to find a tile that has a plan
local EQUAL <const> = 0.001                            -- relative: times nearer than this are equal
local CHECKED <const> = 64                             -- of the best plans, if check() refuses one after the other
local OPERANDS <const> = 32                            -- of the best plans, tried with operands made or fetched otherwise
local SWAPS <const>, CLEARLY <const> = 8, 0.03         -- plans with operands exchanged, at most; and what they must bring in the model
local SWAPS_OF_TILE <const> = 3                        -- ... of them with the same tile
local COUNTED <const>, COUNTED_OF_TILE <const> = 16, 4 -- plans tried with tiles that EUs take by a counter; ... with the same tile
local COUNTED_AMONG <const> = 200                      -- ... of so many of the best
local RIVALS <const> = 300                             -- trials of each of two searches, before the better one goes on
local IN_VAIN <const> = 4                              -- ... unless the first few have none that could be

local LINES <const> = 30                               -- seconds between two lines about a search of ranks

local known = {"seconds", "trials", "measure", "tile", "seed", "fresh", "show", "progress", "compile", "fetch", "dynamic", "ready", "farm"}

local function number(o, key, default) return options.number(o, "search", key, default) end

-- Why the interval cannot be less (proof.lua), and the bound of other tile shapes.
local function why(r, proof)
  local below = 1 - r.bound_seconds / r.seconds
  if r.bound_seconds == 0 then return proof end
  return ("%s\nother tile shapes: none of %d can be under %.4g ms in the model%s"):format(proof, r.shapes,
    r.bound_seconds * 1e3, below > 0.001 and (", %.1f %% less"):format(100 * below) or ": this is optimal there")
end

local result, plans = planned("search result", "plan timeline seconds ii bound gap bound_seconds proven trials shapes pruned ended why "
  .. "measured measurements history edited", {__name = "millrace.search",
  methods = {json = late("report", "search"), png = late("curves", "png"), svg = late("curves", "svg"), pdf = late("curves", "pdf")}},
  "tflops gbps bandwidth_share uncertainty uncertainty_least uncertainty_reason")

local function tile_text(tile)
  local texts = draft.keys(tile)
  for i, axis in ipairs(texts) do texts[i] = ("%s=%d"):format(axis, tile[axis]) end
  return table.concat(texts, " ")
end

local function count(n, what) return ("%d %s%s"):format(n, what, n == 1 and "" or "s") end

local HOW <const> = {failed = "fails", wrong = "gives a wrong result", skipped = "spills"}

-- Why there is no measured time, in a line, though plans were tried on the device; nil: there is one, or none was tried.
local function without_time(r)
  local row = not r.measured and r.measurements[1]
  return row and ("no time was measured: of %s tried on the device the first %s: %s"):format(count(#r.measurements, "plan"), HOW[row.status],
    (row.why or "no reason is known"):match "^[^\n]*") or nil
end

-- A line about what was measured; nil if nothing was.
local function measured_text(r)
  if not r.measured then return without_time(r) end
  local good = 0
  for _, row in ipairs(r.measurements) do good = good + (row.status == "ok" and 1 or 0) end
  local off = 100 * (r.measured.ms * 1e-3 / r.seconds - 1)
  local compared = math.abs(off) < 0.05 and "as predicted"
    or ("%.1f %% %s than predicted"):format(math.abs(off), off < 0 and "less" or "more")
  return ("measured %.4g ms, %s, %s; the fastest of %s measured%s"):format(r.measured.ms,
    core.speed_at(plans[r].graph, plans[r].device, r.measured.ms * 1e-3), compared, count(good, "plan"),
    #r.measurements > good and (", %d more did not count"):format(#r.measurements - good) or "")
end

-- Why a search ended, by r.ended, where it measured nothing; nil: as measure() says.
local endings <const> = {
  done = "no neighbour of the fastest plans is faster", trials = "no more were allowed",
  seconds = "the time is used; seconds= gives it more", interrupted = "interrupted",
  repaired = "no candidate is a legal plan; this is the nearest, as plan:suggest() repairs it, and r.plan:improve() goes on",
  remembered = "an earlier search was the same; fresh=true searches again",
}
local endings_of = setmetatable({}, {__mode = "k"})

local function ending(ended) return endings[ended] end

-- What was tried, and why no more.
local function effort_text(r)
  local text = ("%s of %s tried"):format(count(r.trials, "plan"), count(r.shapes, "tile shape"))
  if r.pruned > 0 then text = ("%s, %d more not, as their shapes cannot be faster"):format(text, r.pruned) end
  return r.ended == "remembered" and "ended: " .. endings.remembered or text .. "\nended: " .. endings_of[r]
end

-- Which loads threads copy, as the copy engine cannot, what tiles do alike, and which tiles another phase gives a product: a line each.
local function notes_text(plan)
  local _, problems = core.check(plan)
  local names, lines = {}, {}
  for _, note in ipairs(repairs.notes(problems)) do
    if note.code == "by_threads" then names[#names + 1] = note.task end
    if note.code == "repeated" or note.code == "tied" then lines[#lines + 1] = note.code .. ": " .. note.message end
  end
  if names[1] then
    table.insert(lines, 1, ("by_threads: the copy engine cannot do %s; r.plan:check() says why, and what to do")
      :format(table.concat(names, ", ")))
  end
  return lines
end

-- Which products are on another kind of unit than the one that computes them fastest; nil: none.
local function products_text(plan)
  local is_product, names, unit, best = {}, {}, nil, nil
  for _, task in ipairs(plan.tasks) do is_product[task.name] = task.kind == "mma" end
  for _, s in draft.each(draft.read(plan), "append") do
    local usual, same = nil, false
    for i, u in ipairs(is_product[s[2]] and core.units_for(plan, s[2]) or {}) do
      usual, same = usual or u.name, same or (u.name == s[3].seu and (i == 1 or u.alike))
    end
    if usual and not same then names[#names + 1], unit, best = s[2], s[3].seu, usual end
  end
  return names[1] and ("products on %s, not on %s, which is made for them: %s; no legal plan tried has them there, other tiles may")
    :format(unit, best, table.concat(names, ", "))
end

-- What was found, how good it is, how the search went, and what to do next.
function result.__tostring(r)
  local plan, tl = plans[r], r.timeline
  local above = r.gap > 0.001 and (", %.1f %% above its bound %.0f"):format(100 * r.gap, r.bound) or ", at its bound"
  local below = 1 - r.bound_seconds / r.seconds
  local lines = {("%s on %s: %s, predicted"):format(plan.graph.program.name, plan.device.name, times.text(tl))}
  lines[#lines + 1] = measured_text(r)
  lines[#lines + 1] = ("tile %s; II %.0f%s"):format(tile_text(plan.tile), r.ii, above)
  lines[#lines + 1] = times.power(tl) or core.no_power(tl)
  if r.bound_seconds > 0 then
    lines[#lines + 1] = ("no tile shape tried can be under %.4g ms in the model%s"):format(r.bound_seconds * 1e3,
      below <= 0.001 and ": this is optimal there"
      or (", %.1f %% less: its busiest unit or device memory works that long%s"):format(100 * below,
        times.power(tl) and ", as fast as power allows" or ""))
  end
  lines[#lines + 1] = products_text(plan)
  table.move(notes_text(plan), 1, 3, #lines + 1, lines)
  lines[#lines + 1] = effort_text(r)
  lines[#lines + 1] = "go on with r.plan:show(), r.plan:script(), r.plan:compile(), r.why()"
  return table.concat(lines, "\n")
end

---- the history --------------------------------------------------------------------------------------

-- The best time so far after each trial: first of the plans that these searches tried in the model, then of measured ones.
-- In the model, trials are numbered as they are counted: a plan without a kernel is one, a candidate that is no plan is not.
local function history_of(searches, measured)
  local list, best = {}, nil
  for _, s in ipairs(searches) do
    for _, seconds in ipairs(s:tried()) do
      if seconds then best = math.min(best or seconds, seconds) end
      list[#list + 1] = {trial = #list + 1, predicted = seconds or nil, best = best, phase = "model",
        status = seconds and "predicted" or "failed"}
    end
  end
  best = nil
  for i, row in ipairs(measured and measured.results or {}) do
    local seconds = row.status == "ok" and row.score * 1e-3 or nil
    if seconds then best = math.min(best or seconds, seconds) end
    list[#list + 1] = {trial = i, predicted = row.predicted, measured = seconds, best = best, phase = "device", status = row.status}
  end
  return list
end

---- the search -----------------------------------------------------------------------------------------

-- The device to measure on; nil: plans are not measured.
local function where_to_measure(o, device)
  if o.measure == false then return nil end
  local found, why = trials.attached(device)
  if not found and o.measure then raise("search: measure=true needs an attached device: " .. why) end
  return found
end

-- Does a plan have the tile that was asked for?
local function has_tile(plan, wanted)
  for axis, extents in pairs(wanted or {}) do
    local is = false
    for _, n in ipairs(type(extents) == "table" and extents or {extents}) do
      is = is or plan.tile[axis] == math.min(n, plan.graph.program.axes[axis])
    end
    if not is then return false end
  end
  return true
end

-- The best tile of a short search for any, and its seconds; nil: it finds none.
local function without_wanted(bound, device)
  local s = core.search(bound, device, nil, false)
  s:run(FEW, number({}, "seconds", 60))
  local best = s:found()[1]
  if not best then return nil end
  local _, tile = s:plan(best.trial)
  return tile, best.seconds
end

-- Where no candidate is legal: what plan:suggest() makes of that with the fewest problems, if it has the tile that was asked for. Else nil,
-- and lines that say what is wrong with that candidate, and what to do: another tile that has a plan, or another program.
local function nearest(s, bound, device, wanted)
  local statements, tile = s:nearest()
  if not statements then return nil, "" end
  local plan = draft.plan(bound, device, statements, tile)
  local repeats, legal, problems = core.repeats(plan)[1], plan:check()
  if legal then return plan end
  local lines = {("\nthe nearest is a tile of %s: %s"):format(tile_text(tile), problems[1].message)}
  local first = suggest.suggest(plan)[1]
  if first and first.seconds then
    first:apply()
    if has_tile(plan, wanted) then return plan end
  end
  local free, seconds = nil, nil
  if (problems[1].hint or ""):find "^change the program: " then
    return nil, ("%s\n  try: %s"):format(lines[1], problems[1].hint)
  end
  if wanted then free, seconds = without_wanted(bound, device) end
  if free then
    lines[2] = ("\n  try: without tile=, or with tile=%s, of which there is a plan of %.4g ms"):format(draft.literal(free), seconds * 1e3)
  elseif first and first.seconds then
    lines[2] = ("\n  try: tile=%s, of which there is a plan of %.4g ms"):format(draft.literal(plan.tile), first.seconds * 1e3)
    repeats = core.repeats(plan)[1]
    lines[3] = repeats and ", though " .. repeats.text
  elseif repeats then
    lines[2] = ("\n  %s\n  try: let the program reduce it in a loop over '%s', p:loop(%s, function() ... end), of which a tile has a part "
      .. "at a time"):format(repeats.text, repeats.axis, repeats.axis)
  else
    lines[2] = "\n  try: smaller tiles, tile={...}; or a loop in the program, so that a tile has less of an axis at a time"
  end
  return nil, table.concat(lines)
end

-- Does a matrix unit that holds its lane make the products of a plan with these traits?
local function is_synchronous(device, traits)
  if traits.unit > 0 then return true end               -- the second unit, which is synchronous
  for _, unit in ipairs(device.seus) do
    if unit.kind == "matrix" then return not unit.async end
  end
  return false
end

-- The traits of a plan that a change makes of one with these traits: another tile, if it has one.
local function changed_traits(traits, plan)
  local all = {made = 2}
  for name, value in pairs(traits) do
    local axis = name:match "^tile (.*)"
    all[name] = axis and plan.tile[axis] and math.log(plan.tile[axis], 2) or value
  end
  return all
end

-- What the best plans with synchronous products are if operands are made where they are multiplied, or also fetched ahead if o.fetch
-- (changes.lua): a list of {plan=, predicted=, traits=}, the fastest first. The search itself knows neither.
local function with_other_operands(s, bound, device, o)
  local list, tried, known = {}, 0, {}
  -- Adds what the change makes of the plan, if that is legal, and returns it. repaired: a larger tile gets shallower rings.
  local function add(plan, change, traits, repaired)
    local p, good = plan:copy(), nil
    if repaired then
      good, p = core.try(repair.make, {plan = plan}, change)
      good = good and p
    else
      good = pcall(function()
        for _, statement in ipairs(change.list) do p[statement[1]](p, table.unpack(statement, 2)) end
      end)
    end
    local script = good and p:script()
    if not script or known[script] or not p:check() then return end
    known[script] = true
    local simulated, tl = core.try(p.simulate, p, {events = 0})
    if not simulated then return end                    -- of too many events
    list[#list + 1] = {plan = p, predicted = tl.seconds, traits = changed_traits(traits, p)}
    return list[#list]
  end
  for _, x in ipairs(s:found()) do
    if tried == OPERANDS or (tried == IN_VAIN and not list[1]) then break end
    if x.priced and is_synchronous(device, x.traits) then
      local plan = draft.plan(bound, device, s:plan(x.trial))
      tried = tried + 1
      for _, change in ipairs((o.fetch and changes.fetches or changes.directs)(plan)) do add(plan, change, x.traits) end
    end
  end
  -- Where values need no slots any more, other tiles fit, and rings of other depths.
  local function is_faster(a, b) return a.predicted < b.predicted end
  table.sort(list, is_faster)
  local best = list[1]
  while best do
    local from = best
    for _, change in ipairs(o.tile and {} or changes.of(from.plan)) do
      local method = change.list[1][1]
      local new = (method == "propagate" or method == "buffers") and add(from.plan, change, from.traits, true)
      if new and is_faster(new, best) then best = new end
    end
    if not (best.predicted < (1 - EQUAL) * from.predicted) then break end
  end
  table.sort(list, is_faster)
  return list
end

-- The counts of searches of the same, added up. The bound is that of all plans, unless searches.static: of those without a counter.
local function counts_of(searches)
  local sum = searches[1]:counts()
  sum.bound_seconds = searches.static and sum.bound_seconds or sum.counted_seconds
  for i = 2, #searches do
    local more = searches[i]:counts()
    for _, name in ipairs{"trials", "shapes", "pruned"} do sum[name] = sum[name] + more[name] end
  end
  return sum
end

local function best_of(s)
  local best = s:found()[1]
  return best and best.seconds or math.huge
end

-- Run searches of the same in the model, until all are done, or budget.trials or the time until budget.ends is used, and show the progress
-- of all. Of two, each begins with RIVALS trials; then the one that found the faster plan is run to its end, and the other has what is
-- left; the first is, if it has found none, as plans of the second alone are no answer. The second is not run once the best plan of the
-- first takes hardly more time than memory does. each(s, seconds): called now and then with the search that runs and its best time, if it
-- has one; it ends all if it returns "interrupted". Returns why the first ended, or "interrupted" if any was.
local function run_in_model(searches, budget, watch, each)
  local ended = {}
  local function run(i, most)
    local s = searches[i]
    local allowed = budget.trials - (counts_of(searches).trials - s:counts().trials)
    if i == 2 and searches[1]:counts().at_memory then ended[2] = "done" end
    if ended[i] or ended.by_user then return end
    if allowed <= s:counts().trials then ended[i] = "trials" return end
    local why_ended = s:run(math.min(most, allowed), math.max(budget.ends - core.clock(), 0), function(_, _, seconds)
      local best, counts = seconds > 0 and seconds or nil, counts_of(searches)
      if each and best and each(s, best) == "interrupted" then return true end
      watch{phase = "model", trials = counts.trials, shapes = counts.shapes, best = best, bound = counts.bound_seconds,
        history = history_of(searches)}
    end)
    ended.by_user = why_ended == "interrupted"
    local paused = why_ended == "trials" and most < allowed and s:counts().trials >= most
    if not paused then ended[i] = why_ended end
  end
  if searches[2] then
    run(1, RIVALS)
    run(2, RIVALS)
    local first, second = best_of(searches[1]), best_of(searches[2])
    if first < math.huge and second < first then run(2, math.maxinteger) end
  end
  for i in ipairs(searches) do run(i, math.maxinteger) end
  return ended.by_user and "interrupted" or ended[1]
end

-- The best plans with operands of products exchanged (src/search/swaps.h), which a search of its own has found, `other`: a list as
-- with_other_operands has it, of those that are clearly faster than the best of the first search, s, and these others.
local function with_swaps(s, other, others, bound, device)
  local list = {}
  local best = s:found()[1]
  local least = math.min(best and best.priced and best.seconds or math.huge, others[1] and others[1].predicted or math.huge)
  local of_tile = {}                                    -- plans, by the tile's text: no tile has all of them
  for _, x in ipairs(other:found()) do
    if #list == SWAPS or not x.priced or x.seconds > (1 - CLEARLY) * least then break end
    local statements, tile = other:plan(x.trial)
    local text = tile_text(tile)
    of_tile[text] = (of_tile[text] or 0) + 1
    local plan = of_tile[text] <= SWAPS_OF_TILE and draft.plan(bound, device, statements, tile)
    if plan and plan:check() then
      local traits = changed_traits(x.traits, plan)
      traits.made = 3
      list[#list + 1] = {plan = plan, predicted = x.seconds, traits = traits}
    end
  end
  return list
end

-- Let EUs take tiles by a counter. No lane may then have offsets in the tile loop, so its sTasks there come in the program's order.
local function in_order_by_counter(plan)
  local last, entry, moved = {}, {}, false
  for _, e in ipairs(plan.entries) do entry[e.task] = e end
  for _, task in ipairs(plan.tasks) do moved = moved or not task.loop and entry[task.name].at ~= 0 end
  for _, task in ipairs(plan.tasks) do
    if not task.loop then
      local lane = entry[task.name].lane
      plan:move(task.name, {at = 0, after = moved and last[lane] or nil, repair_waits = true})
      last[lane] = task.name
    end
  end
  plan:grid{cluster = 1, keep = 1, along = false, dynamic = true}
end

-- The best plans with tiles that EUs take by a counter, of several tiles, where that pays in the model: a list as with_other_operands
-- has it. The search itself has no such choice: a counter changes little of what makes a plan good.
local function with_counter(s, bound, device)
  local list, known, of_tile, tried = {}, {}, {}, 0
  for rank, x in ipairs(s:found()) do
    if tried == COUNTED or rank > COUNTED_AMONG then break end
    local statements, tile = s:plan(x.trial)
    local text = tile_text(tile)
    local plan = x.priced and (of_tile[text] or 0) < COUNTED_OF_TILE and draft.plan(bound, device, statements, tile)
    local good = plan and pcall(in_order_by_counter, plan)
    local script = good and plan:script():gsub('raster="%a+", group=%d+, ', "")  -- of several walks the first, which is the best one
    if script and not known[script] then
      known[script], of_tile[text], tried = true, (of_tile[text] or 0) + 1, tried + 1
      local simulated, tl = core.try(plan.simulate, plan, {events = 0})
      if simulated and tl.seconds < x.seconds and plan:check() then
        local traits = changed_traits(x.traits, plan)
        traits.made = 4
        list[#list + 1] = {plan = plan, predicted = tl.seconds, traits = traits}
      end
    end
  end
  return list
end

-- All candidates but those of the first search, the fastest first. Unless the caller says so, tiles by a counter are tried only where
-- the best plan takes hardly more time than memory does, as the simulations take a part of the time of a search.
local function other_plans(searches, bound, device, o)
  local list = with_other_operands(searches[1], bound, device, o)
  local swapped = searches[2] and with_swaps(searches[1], searches[2], list, bound, device) or {}
  table.move(swapped, 1, #swapped, #list + 1, list)
  if o.dynamic or (o.dynamic == nil and searches[1]:counts().at_memory) then
    local counted = with_counter(searches[1], bound, device)
    table.move(counted, 1, #counted, #list + 1, list)
  end
  table.sort(list, function(a, b) return a.predicted < b.predicted end)
  return list
end

-- The best plan that check() accepts, too. The search itself checks the plan and prices its kernel, but leaves out the proof
-- that the kernel is right, and takes plans without a kernel last. Plans with other operands come by their time. With o.compile: the
-- best whose kernel the compiler makes well (unspilled.lua). nil and why not: check() refuses each of the best.
local function best_legal(s, bound, device, o, others)
  local rank, other, refused, found = 0, 1, nil, s:found()
  local function next_legal()
    while rank < math.min(#found, (o.compile and 4 or 1) * CHECKED) do
      if others[other] and (others[other].predicted < found[rank + 1].seconds or not found[rank + 1].priced) then
        other = other + 1
        return others[other - 1].plan
      end
      rank = rank + 1
      local plan = draft.plan(bound, device, s:plan(found[rank].trial))
      local good, problems = plan:check()
      if good then return plan end
      refused = refused or ("no legal plan found; the fastest of %s: %s"):format(count(#found, "candidate"), tostring(problems))
    end
    other = other + 1
    return others[other - 1] and others[other - 1].plan
  end
  local best = nil
  if o.compile then best = unspilled.first(next_legal) else best = next_legal() end
  return best, refused
end

-- Search in the model. Returns the searches, of which there are two if operands can be exchanged, why they ended, and their counts, also a
-- plan if none of the first one's own is legal; or nil and why there is no legal plan.
local function find(bound, device, o, budget, ahead, watch)
  local s = core.search(bound, device, o.tile, budget.measured, false, o.ready)
  local searches = {s, core.search(bound, device, o.tile, budget.measured, true, o.ready), static = o.dynamic == false}
  local ended = run_in_model(searches, budget, watch, ahead and function(running)
    if not core.heed(ahead.step, ahead, running, running == s) then return "interrupted" end
  end)
  local counts = counts_of(searches)
  if counts.found == 0 then
    local plan, lines = nearest(s, bound, device, o.tile)
    if plan then return searches, ended, counts, plan end
    return nil, ("no legal plan found for %s%s%s"):format(count(counts.shapes, "tile shape"),
      ended == "done" and "" or "; ended: " .. ending(ended),
      counts.refusals ~= "" and "; what stood in the way, by how many candidates:\n" .. counts.refusals .. lines or "")
  end
  return searches, ended, counts
end

-- searches: takes the searches that are made of other tiles, too. others: further candidates. from: {make=, server=, early=, under_way=,
-- known=, limited=}, as trials.run takes them.
local function measure(searches, others, bound, device, found, counts, o, most, from, watch)
  local listed, began = {}, core.clock()
  for _, x in ipairs(searches) do listed[x] = true end
  return trials.run(searches[1], bound, device, found, {trials = most, seconds = o.seconds, seed = o.seed, known = from.known, dynamic = o.dynamic,
    fetch = o.fetch, ready = o.ready, tile = o.tile, limited = from.limited, server = from.server, early = from.early, under_way = from.under_way,
    bound = counts.bound_seconds, others = others, make = from.make,
    search = function(search)
      local ended = search:run(math.maxinteger, math.max(number(o, "seconds", 60) - (o.seconds and core.clock() - began or 0), 0))
      if not listed[search] then listed[search], searches[#searches + 1] = true, search end
      counts.trials = 0
      for _, x in ipairs(searches) do counts.trials = counts.trials + x:counts().trials end
      return ended
    end,
    progress = function(state)
      if o.progress then o.progress(state) end
      return watch{phase = "device", trials = counts.trials, shapes = counts.shapes, measured = state.trials, most = most,
        best = state.best and state.best.score * 1e-3, predicted = state.best and state.best.predicted, bound = counts.bound_seconds,
        chance = state.chance, device_seconds = state.device_seconds, under_way = state.under_way, history = history_of(searches, state)}
    end})
end

-- why_ended: in words; nil: of the search in the model.
local function answer(plan, counts, ended, why_ended, fields)
  local tl, too_long = core.simulated(plan)
  if not tl then return nil, ("the best plan cannot be simulated to its end: %s"):format(too_long) end
  local proof = tl:proof()
  -- The simulation and the bound count memory in different ways. Where the plan is faster than the bound, it is none.
  local bound_seconds = counts.bound_seconds <= tl.seconds * (1 + EQUAL) and counts.bound_seconds or 0
  local r
  r = setmetatable({
    timeline = tl, ii = tl.ii, bound = proof.bound, gap = proof.gap, proven = proof.proven,
    bound_seconds = bound_seconds, seconds = tl.seconds,
    trials = counts.trials, shapes = counts.shapes, pruned = counts.pruned, ended = ended,
    why = function() return why(r, proof) end,
  }, result)
  for key, value in pairs(fields) do r[key] = value end
  plans[r], endings_of[r] = plan, why_ended or ending(ended)
  return r
end

-- The most trials: of plans that are measured where there is a device, or else simulated.
local function most_trials(o, found)
  return math.tointeger(math.min(number(o, "trials", found and MEASURED or SIMULATED), 2^53) // 1)
end

-- The result of an earlier search for the same, from the store. Who gives seconds= does not ask for a number of trials.
local function remembered(bound, device, found, o)
  local plan, row = trials.remembered(bound, device, found, o.seconds and 0 or most_trials(o, found), o)
  if not plan then return nil end
  -- A plan that is not legal any more, or cannot be simulated, is no answer: the search finds another one.
  local good, r = core.try(answer, plan, {bound_seconds = row.bound or 0, trials = 0, shapes = 0, pruned = 0}, "remembered", nil,
    {measured = {ms = row.ms, min = row.min, max = row.max}, measurements = {row}, history = {}})
  return good and r or nil
end

-- Refuse values that no search takes, before anything is searched, and on all ranks alike. what: "search" or "tune".
local function check_values(o, what)
  for _, name in ipairs{"measure", "show", "fresh", "compile", "fetch", "dynamic", "farm"} do
    if o[name] ~= nil and type(o[name]) ~= "boolean" then
      raise(("%s: %s must be true or false, not %s"):format(what, name, show(o[name])))
    end
  end
  for _, name in ipairs{"seconds", "trials"} do options.number(o, what, name) end
  if o.seed ~= nil and math.type(o.seed) ~= "integer" then raise(("%s: seed must be an integer, not %s"):format(what, show(o.seed))) end
end

-- The same of all options of mr.search.
local function check_options(o)
  check_values(o, "search")
  if o.ready ~= nil and type(o.ready) ~= "table" then
    raise(("search: ready must be a list of inputs, as in {\"W\"}, not %s"):format(show(o.ready)))
  end
  if o.progress ~= nil and type(o.progress) ~= "function" then
    raise("search: progress must be a function, not " .. show(o.progress))
  end
end

-- Search, then measure. watch: shows the progress. servers: those of other ranks, which measure instead of this process.
local function search(bound, device, found, o, watch, servers)
  local most = most_trials(o, found)
  -- Where plans are measured, trials counts these.
  local budget = {trials = found and math.maxinteger or most, ends = core.clock() + number(o, "seconds", 60), measured = found ~= nil}
  local function make(s, trial) return draft.plan(bound, device, s:plan(trial)) end
  local known = found and trials.known(bound, device, found.driver, o.fresh)
  local early = {seed = o.seed, known = known, progress = o.progress, trials = most, put = function(row) trials.keep(row, found, o.seed or 1) end}
  local ahead <close> = servers and ahead_of.of_ranks(bound, servers, make, early) or found and ahead_of.of_device(bound, device, make, early) or nil
  local searches, ended, counts, only = find(bound, device, o, budget, ahead, watch)
  if not searches then return nil, ended end
  if only then return answer(only, counts, ended, endings.repaired, {history = history_of(searches), measurements = {}}) end
  local others = ended ~= "interrupted" and other_plans(searches, bound, device, o) or {}
  local m = nil
  if found and ended ~= "interrupted" then
    m = measure(searches, others, bound, device, found, counts, o, most,
      {make = make, server = servers or ahead.server, early = ahead.rows, under_way = ahead:hand_over(), known = known,
        limited = o.seconds and ended == "seconds"}, watch)
  elseif ahead and ahead.best then
    m = {best = ahead.best, results = ahead:results()}
  end
  local best = m and m.best
  local plan, problems = best and best.plan
  if not plan then plan, problems = best_legal(searches[1], bound, device, o, others) end
  if not plan then return nil, problems end
  return answer(plan, counts, m and m.ended or ended, m and m.why, {history = history_of(searches, m),
    measured = best and trials.times(best), measurements = m and m.results or {}})
end

-- What an earlier search found, or else a new one, which is watched.
local function in_view(bound, device, found, o, servers)
  local old = found and not o.fresh and not o.tile and remembered(bound, device, found, o)
  if old then return old end
  -- Processes of mpirun have no terminal, so a search of ranks writes lines, with its sizes, as others may follow.
  local title = ("%s%s on %s"):format(bound.name, servers and " " .. select(3, core.identity(bound)) or "", device.name)
  local watch <close> = require "millrace.progress".watch{title = title, show = o.show, lines = servers and LINES}
  local r, reason = search(bound, device, found, o, watch, servers)
  if not r then
    core.last_refusal = reason                          -- for the shell, which sees no second result that an assignment drops
    return nil, reason
  end
  local best = r.measured and r.measured.ms * 1e-3 or r.seconds
  if watch:finish{best = best, bound = r.bound_seconds, trials = r.trials, shapes = r.shapes, ended = endings_of[r],
      history = r.history} == "open" then
    r.edited = r.plan:show()
  end
  return r
end

-- A search on rank 0 of a farm, for which the other ranks measure. They get its result, without the history.
local function on_ranks(ranks, bound, device, o)
  local name = ("%s %s on %s"):format(bound.name, core.identity(bound), device.name)
  if ranks.rank > 0 then
    local x = remote.work(ranks, name, bound, device, o)
    if not x.script then return nil, x.why end
    return answer(loader.of_text(mr, x.script, "mr.search", bound), x, x.ended, x.why, {history = {}, measured = x.measured, measurements = {}})
  end
  local function warn(text) io.stderr:write(text, "\n") end
  local group = remote.begin(ranks, name, warn)
  local measures = group.servers[1] ~= nil
  local good, r, reason = core.try(function()
    if not measures then farm_devices.report_no_device("search", o.measure, group.without, warn) end
    return in_view(bound, device, measures and {driver = group.driver} or nil, o, measures and group.servers or nil)
  end)
  if not good then group:fail(r) end
  group:finish(r and {script = plans[r]:script(), bound_seconds = r.bound_seconds, trials = r.trials, shapes = r.shapes, pruned = r.pruned,
    ended = r.ended, why = endings_of[r], measured = r.measured} or {why = reason})
  if r then return r end                                -- one value, as without a farm
  return nil, reason
end

local function run(...)
  core.at_most(3, ...)
  local bound, device, given = ...
  if select("#", ...) >= 2 and device == nil then
    raise("search: device expected, got nil; " .. (given == nil and "mr.search(program)" or "mr.device(), as in mr.search(program, mr.device(), {...}),")
      .. " takes the attached device, or the model h200 if there is none")
  end
  local o = options.check(given, "search", known)
  check_options(o)
  if type(device) == "string" then device = mr.device(device) end
  expect(device == nil or core.is(device, "millrace.device"), "search", "device", device)
  device = device or mr.device()
  if o.ready then                                      -- by the alphabet, as the store knows it
    o.ready = table.move(o.ready, 1, #o.ready, 1, {})
    for _, name in ipairs(o.ready) do expect(type(name) == "string", "search", "name of a ready input", name) end
    table.sort(o.ready)
    if #o.ready == 0 then o.ready = nil end
  end
  if core.is(bound, "millrace.plan") then
    raise "search: program with sizes expected, got a plan; plan:improve() goes on from a plan, and plan.graph.program is its program"
  end
  expect(core.is(bound, "millrace.program"), "search", "program with sizes", bound)
  local ranks = o.farm and shared_ranks()
  if ranks and ranks.size > 1 then return on_ranks(ranks, bound, device, o) end
  return in_view(bound, device, where_to_measure(o, device), o)
end

return {search = run, check_values = check_values, without_time = without_time}
