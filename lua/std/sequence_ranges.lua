-- sequence_ranges.lua - seq:ranges: a size that is left to the launch, divided into ranges, each with the plan that is predicted to be
-- fast there.
--
-- Plans are made where the size is the largest, half of that, and so on. Each is a plan for all sizes, and is predicted at many. Then the
-- fewest ranges are taken whose plans lose little, at each of these sizes, against the best of all plans there.

local core = require "millrace.core"
local options = require "millrace.options"
local loader = require "millrace.loader"
local columns = require "millrace.columns"
local record = require("millrace.record").of
local any = require "millrace.tile_sizes"
local sequences = require "millrace.sequence"
local launch_sizes = require "millrace.sequence_sizes"
local raise, show, entry, expect, late = core.raise, core.show, core.entry, core.expect, core.late

local LOSS <const>, AT_MOST <const>, TRIALS <const> = 0.02, 4, 40
local ALL <const>, OF_DOUBLING <const> = 128, 12        -- sizes at which plans are predicted: all if there are so few; else so many until a
                                                        -- size is doubled

---- sizes ----------------------------------------------------------------------------------------

-- The same sequence up to another size. At least two steps, so that the size is left to the launch.
local function up_to(seq, name, most)
  local origin, given = sequences.origin(seq)
  local values, typical = {}, {}
  for key, x in pairs(given) do values[key] = x end
  local multiple = values[name].multiple
  most = math.max(most, 2 * multiple)
  for _, n in ipairs(values[name].typical or {}) do
    if n <= most then typical[#typical + 1] = n end
  end
  values[name] = any{max = most, multiple = multiple, typical = #typical > 0 and typical or nil}
  return origin:bind(values)
end

local function sorted_set(list, multiple, most)
  local seen, out = {}, {}
  for _, n in ipairs(list) do
    n = (n + multiple - 1) // multiple * multiple
    if n >= multiple and n <= most and not seen[n] then
      seen[n] = true
      out[#out + 1] = n
    end
  end
  table.sort(out)
  return out
end

-- Where plans are made: the largest size, half of it, and so on, and typical ones.
local function made_at(b, name)
  local most, multiple, list = b.largest[name], b.multiples[name], {}
  local n = most
  while n >= 2 * multiple do
    list[#list + 1] = n
    n = n // 2
  end
  for _, at in ipairs(b.typical) do list[#list + 1] = math.max(at[name], 2 * multiple) end
  return sorted_set(list, multiple, most)
end

-- Where plans are predicted. Behind each size at which one is made a tile may begin, so the next size is among them.
local function predicted_at(b, name, made)
  local most, multiple, list = b.largest[name], b.multiples[name], {most, multiple}
  if most // multiple <= ALL then
    for n = multiple, most, multiple do list[#list + 1] = n end
  end
  local octave = multiple
  while octave <= most do
    for i = 0, OF_DOUBLING - 1 do list[#list + 1] = octave + octave * i // OF_DOUBLING end
    octave = 2 * octave
  end
  for _, n in ipairs(made) do
    list[#list + 1] = n
    list[#list + 1] = n + multiple
  end
  for _, at in ipairs(b.typical) do list[#list + 1] = at[name] end
  return sorted_set(list, multiple, most)
end

local function sizes_option(list, what, b, name)
  expect(type(list) == "table" and #list > 0, what, "list of sizes", list)
  for _, n in ipairs(list) do
    local x = core.integer(n)
    if not x or x < 1 or x > b.largest[name] or x % b.multiples[name] ~= 0 then
      raise(("%s: %s is not a size '%s' of the sequence, which is for %s"):format(what, show(n), name, launch_sizes.range_text(b, name)))
    end
  end
  return sorted_set(list, b.multiples[name], b.largest[name])
end

---- choosing -------------------------------------------------------------------------------------

-- Divide sizes 1 to n into `count` ranges, each with one of the plans. loss[p][i]: of plan p at size i. Returns a list of {first, last,
-- plan}, and the greatest loss, the least that there is, and the least sum of losses among those.
local function divide(loss, n, count)
  local before = {[0] = {worst = 0, sum = 0}}
  for k = 1, count do
    local now = {}
    for first = 1, n do
      local front = before[first - 1]
      for p, own in ipairs(front and loss or {}) do
        local worst, sum = front.worst, front.sum
        for last = first, n do
          worst, sum = math.max(worst, own[last]), sum + own[last]
          local best = now[last]
          if not best or worst < best.worst or worst == best.worst and sum < best.sum then
            now[last] = {worst = worst, sum = sum, front = front, first = first, last = last, plan = p}
          end
        end
      end
    end
    before = now
    if k == count then break end
  end
  local list, at = {}, before[n]
  local worst = at and at.worst
  while at and at.front do
    table.insert(list, 1, at)
    at = at.front
  end
  return list, worst
end

-- The fewest ranges that lose no more than `most`, or `at_most` of them.
local function choose(loss, n, most, at_most)
  local list, worst
  for count = 1, math.min(at_most, n) do
    local found, of = divide(loss, n, count)
    if of and (not worst or of < worst) then list, worst = found, of end
    if worst <= most then break end
  end
  return list, worst
end

---- what it gives --------------------------------------------------------------------------------

local row_fields = record("range of sizes", "from to at plan seconds loss", {__name = "millrace.sequence_range"})
local ranges, compiled

local function check_ranges(r, what) expect(getmetatable(r) == ranges, what, "ranges of a sequence", r) end
local function check_compiled(k, what) expect(getmetatable(k) == compiled, what, "compiled ranges of a sequence", k) end

local function row_of(r, n)
  for i, row in ipairs(r.rows) do
    if n <= row.to then return i end
  end
end

-- The options of a call with those that say the size; the number of the range, and the sizes.
local function launched(r, given, what, arrays, names)
  local list = launch_sizes.options(r.sequence)
  local o = options.check(given, what, table.move(list, 1, #list, #names + 1, names))
  local at, own = launch_sizes.launched(r.sequence, o, arrays or o.inputs, what), {}
  for key, x in pairs(o) do own[key] = x end
  own[r.size], own.sizes = nil, at
  return own, row_of(r, at[r.size])
end

-- r:plan(m): the plan of the range that has this size
local function plan_for(r, n)
  check_ranges(r, "plan")
  local _, i = launched(r, {sizes = {[r.size] = n}}, "plan", nil, {})
  return r.rows[i].plan
end

-- r:simulate{m=512}: the timeline of that plan at this size
local function simulate(r, given)
  check_ranges(r, "simulate")
  local o, i = launched(r, given, "simulate", nil, {})
  return r.rows[i].plan:simulate{sizes = o.sizes}
end

-- r:compile{target=}
local function compile(r, given)
  check_ranges(r, "compile")
  local o, kernels = options.check(given, "compile", {"target"}), {}
  for i, row in ipairs(r.rows) do kernels[i] = row.plan:compile{target = o.target} end
  return setmetatable({ranges = r, kernels = kernels, target = kernels[1].target}, compiled)
end

local function range_lines(r)
  local rows = {{r.size, "planned for", "us at the first", "at the last", "loss"}}
  for _, row in ipairs(r.rows) do
    rows[#rows + 1] = {("%d to %d"):format(row.from, row.to), row.at and ("%d"):format(row.at) or "given",
      ("%.4g"):format(row.seconds[1] * 1e6), ("%.4g"):format(row.seconds[2] * 1e6), ("%.2g %%"):format(100 * row.loss)}
  end
  return columns(rows, function(i) return i > 2 end)
end

ranges = record("ranges of a sequence", "sequence device size rows loss sizes", {__name = "millrace.sequence_ranges",
  methods = {plan = entry(plan_for), simulate = entry(simulate), compile = entry(compile)},
  __tostring = function(r)
    return ("sequence %s on %s: %d range%s of %s; predicted to be at most %.2g %% slower than the best of the plans, at each of %d sizes\n%s")
      :format(r.sequence.name, r.device.name, #r.rows, #r.rows == 1 and "" or "s", r.size, 100 * r.loss, #r.sizes,
        table.concat(range_lines(r), "\n"))
  end})

compiled = record("compiled ranges of a sequence", "ranges kernels target", {__name = "millrace.sequence_ranges_kernel", methods = {
  -- k:run([inputs[, {seed=, limit=, race=, sizes=}]]), as of a compiled sequence, with the kernels of the range
  run = entry(function(k, inputs, given)
    check_compiled(k, "run")
    local o, i = launched(k.ranges, given, "run", inputs, {"seed", "limit", "race"})
    return k.kernels[i]:run(inputs, o)
  end),
  check = entry(function(k, given)
    check_compiled(k, "check")
    local o, i = launched(k.ranges, given, "check", nil, {"seed", "limit", "race", "inputs", "reference"})
    return k.kernels[i]:check(o)
  end),
  bench = entry(function(k, given)
    check_compiled(k, "bench")
    local o, i = launched(k.ranges, given, "bench", nil, {"seconds", "limit", "inputs", "graph"})
    return k.kernels[i]:bench(o)
  end),
  export = late("sequence_export", "export_ranges"),
}, __tostring = function(k)
  return ("kernels of %s"):format(tostring(k.ranges))
end})

---- making ---------------------------------------------------------------------------------------

return function(mr)
  -- A plan of the sequence that another plan's script makes; nil, and why, if there is none, or it is not legal.
  local function carried(sp, seq)
    local good, other = core.try(loader.of_text, mr, sp:script(), "a plan of a range", seq)
    if not good then return nil, tostring(other) end
    other:arena()
    local legal, problems = other:check()
    if not legal then return nil, problems[1].message end
    return other
  end

  -- The plans among which is chosen: {plan for all sizes, size for which it was made or nil}.
  local function candidates(seq, device, name, o, made)
    local list, why = {}, nil
    for _, sp in ipairs(o.plans or {}) do
      expect(core.is(sp, "millrace.sequence_plan"), "ranges: plans", "plan of a sequence", sp)
      if sp.device.name ~= device.name then raise(("ranges: a plan is for device '%s', not '%s'"):format(sp.device.name, device.name)) end
      local other, wrong = carried(sp, seq)
      if not other then raise("ranges: a plan is not one for all sizes: " .. wrong) end
      list[#list + 1] = {other}
    end
    for _, n in ipairs(o.plans and {} or made) do
      local sp, wrong = carried(up_to(seq, name, n):plan(device, {trials = o.trials or not o.seconds and TRIALS or nil,
        seconds = o.seconds, measure = o.measure, fresh = o.fresh}), seq)
      if sp then list[#list + 1] = {sp, n} end
      why = why or wrong
    end
    if #list == 0 then raise("ranges: there is no plan for all sizes: " .. tostring(why)) end
    return list
  end

  -- seq:ranges([device[, {at_most=4, loss=0.02, at=, sizes=, plans=, trials=, seconds=, measure=, fresh=}]])
  core.method("millrace.sequence", "ranges", entry(function(seq, device, given)
    expect(core.is(seq, "millrace.sequence"), "ranges", "sequence with sizes", seq)
    device, given = options.device(mr, device, given)
    local o = options.check(given, "ranges", {"at_most", "loss", "at", "sizes", "plans", "trials", "seconds", "measure", "fresh"})
    local b = launch_sizes.of(seq)
    if not b or #b.names ~= 1 then
      raise(("ranges: sequence '%s' leaves %s to the launch; ranges are of one size: bind it with mr.any{max=} for one, and with numbers "
        .. "otherwise"):format(seq.name, b and table.concat(b.names, " and ") or "no size"))
    end
    local name, at_most, loss = b.names[1], core.integer(o.at_most or AT_MOST), o.loss or LOSS
    if not at_most or at_most < 1 then raise("ranges: at_most must be an integer of at least 1, got " .. show(o.at_most)) end
    if type(loss) ~= "number" or not (loss >= 0) then
      raise("ranges: loss must be a share of the time, 0.02 for 2 %, got " .. show(o.loss))
    end
    expect(o.plans == nil or type(o.plans) == "table" and #o.plans > 0, "ranges: plans", "list of plans of the sequence", o.plans)
    local made = o.at and sizes_option(o.at, "ranges: at", b, name) or made_at(b, name)
    local at = o.sizes and sizes_option(o.sizes, "ranges: sizes", b, name) or predicted_at(b, name, made)
    if at[#at] ~= b.largest[name] then at[#at + 1] = b.largest[name] end
    local plans, seconds, lost = candidates(seq, device, name, o, made), {}, {}
    for p, x in ipairs(plans) do
      seconds[p], lost[p] = {}, {}
      for i, n in ipairs(at) do seconds[p][i] = x[1]:simulate{sizes = {[name] = n}}.seconds end
    end
    for i in ipairs(at) do
      local best = math.huge
      for p in ipairs(plans) do best = math.min(best, seconds[p][i]) end
      for p in ipairs(plans) do lost[p][i] = seconds[p][i] / best - 1 end
    end
    local list, worst = choose(lost, #at, loss, at_most)
    local rows = {}
    for i, x in ipairs(list) do
      local most = 0
      for k = x.first, x.last do most = math.max(most, lost[x.plan][k]) end
      local own, from = plans[x.plan], i == 1 and b.multiples[name] or rows[i - 1].to + b.multiples[name]
      local plan = carried(own[1], up_to(seq, name, at[x.last])) or own[1]
      local function seconds_at(n) return plan:simulate{sizes = {[name] = n}}.seconds end
      rows[i] = setmetatable({from = from, to = at[x.last], at = own[2], loss = most, plan = plan,
        seconds = {seconds_at(from), seconds_at(at[x.last])}}, row_fields)
    end
    return setmetatable({sequence = seq, device = device, size = name, rows = rows, loss = worst, sizes = at}, ranges)
  end))
  return {}
end
