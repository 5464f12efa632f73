-- race.lua - mr.race: several kernels of one program, timed in turns.

local core = require "millrace.core"
local options = require "millrace.options"
local paired = require "millrace.paired"
local record = require "millrace.record"
local raise, show, hint = core.raise, core.show, core.hint

-- Each kernel's. Who draws more power than the board has is slowed down, but not at once: in turns of 10 ms an H200 gives all
-- the same clock, and products that are 1 % slower win by 1.6 %. What counts is the later half of a turn, 30 ms.
local SECONDS, TURN, WARMUP = 0.5, 0.06, 0.05
local LEAST = 12                                        -- rounds: six pairs, for an interval that is one

local known = {"seconds", "turn", "base", "seed", "limit"}

-- Names and contestants: those of a list by their numbers first, the others by the alphabet.
local function contestants(given)
  if type(given) ~= "table" then raise("race: table of kernels expected, got " .. show(given)) end
  local names, list = options.names(given, "race"), {}
  if #names == 0 then raise "race: there is no kernel to race" end
  for i, name in ipairs(names) do
    local x = given[name]
    if not core.is(x, "millrace.kernel") and not core.is(x, "millrace.plan") then
      raise(("race: kernel or plan expected as %s, got %s"):format(show(name),
        core.is(x, "millrace.on_host") and "a kernel for the CPU" or show(x)))
    end
    list[i], names[i] = x, tostring(name)
  end
  return list, names
end

-- Plans become kernels, all at the same time.
local function compile(list, names)
  local begun = {}
  for i, x in ipairs(list) do
    if core.is(x, "millrace.plan") then begun[i] = core.compile_begin(x) end
  end
  for i, x in pairs(begun) do list[i] = x:kernel() end
  if next(begun) then core.compile_end_idle() end
  for i, k in ipairs(list) do
    if k.registers == 0 then raise(("race: %s is text alone; compile it without text=true"):format(names[i])) end
  end
end

local row_fields = record("row of a race", "name kernel ms min max ratio low high tflops gbps")
local race = record("race", "base rounds cache", {__name = "millrace.race"})

function race.__tostring(r)
  local rows = {{"", "ms", "min", "max", "of " .. r.base, "19 of 20 times in", "TFLOP/s"}}
  for _, x in ipairs(r) do
    rows[#rows + 1] = {x.name, ("%.4g"):format(x.ms), ("%.4g"):format(x.min), ("%.4g"):format(x.max),
      ("%.4f"):format(x.ratio), ("%.4f to %.4f"):format(x.low, x.high), ("%.4g"):format(x.tflops)}
  end
  local widths, lines = {}, {}
  for _, cells in ipairs(rows) do
    for i, cell in ipairs(cells) do widths[i] = math.max(widths[i] or 0, utf8.len(cell) or #cell) end
  end
  for n, cells in ipairs(rows) do
    for i, cell in ipairs(cells) do
      local gap = (" "):rep(widths[i] - (utf8.len(cell) or #cell))
      cells[i] = i == 1 and cell .. gap or gap .. cell
    end
    lines[n] = table.concat(cells, "  ")
  end
  return ("%s, %d rounds in turns%s\n%s"):format(r[1].kernel.plan.graph.program.name, r.rounds,
    r.cache and ", " .. r.cache or "", table.concat(lines, "\n"))
end

local function run(given, o)
  o = options.check(o, "race", known)
  options.seconds(o, "race", {"seconds", "turn", "limit"})
  local list, names = contestants(given)
  local base = 1
  if o.base ~= nil then
    base = nil
    for i, name in ipairs(names) do if name == tostring(o.base) then base = i end end
    if not base then raise(("race: there is no %s to compare with%s"):format(show(o.base), hint(tostring(o.base), names))) end
  end
  compile(list, names)
  local rounds = core.race(list, names, {seconds = o.seconds or SECONDS, turn = o.turn or TURN, warmup = WARMUP,
    rounds = LEAST, seed = o.seed, limit = o.limit})
  local medians = {}
  for c in ipairs(list) do medians[c] = paired.median(paired.times(rounds, c)) end
  if not o.base then for c, ms in ipairs(medians) do if ms < medians[base] then base = c end end end
  local r = {base = names[base], rounds = #rounds, cache = rounds.cache}
  for c, k in ipairs(list) do
    local graph, ratio, low, high = k.plan.graph, paired.interval(paired.ratios(rounds, c, base))
    r[c] = setmetatable({name = names[c], kernel = k, ms = medians[c], min = rounds.min[c], max = rounds.max[c],
      ratio = ratio, low = low, high = high, tflops = graph.flops / medians[c] / 1e9,
      gbps = graph.bytes / medians[c] / 1e6}, row_fields)
  end
  table.sort(r, function(a, b)
    if a.ratio ~= b.ratio then return a.ratio < b.ratio end
    return a.name < b.name
  end)
  return setmetatable(r, race)
end

return {race = run}
