-- race.lua - mr.race: timing several kernels of one program alternately.

local core = require "millrace.core"
local columns = require "millrace.columns"
local options = require "millrace.options"
local paired = require "millrace.paired"
local record = require("millrace.record").of
local raise, show, hint, expect = core.raise, core.show, core.hint, core.expect

-- Seconds of each kernel, of a sample, and of the warm-up. A board at its power limit lowers the clock, but only after a
-- while: with samples of 10 ms an H200 gives all kernels the same clock, and products that are 1 % slower win by 1.6 %.
-- Of a sample of 60 ms the later half counts.
local SECONDS, SAMPLE, WARMUP = 0.5, 0.06, 0.05
local ROUNDS_MIN = 12                                   -- six pairs, the fewest that give a 95 % interval

local known = {"seconds", "sample", "turn", "base", "seed", "limit"}   -- turn: deprecated for sample

-- The kernels and their names, those of a list first, the others sorted by name.
local function contestants(given)
  expect(type(given) == "table", "race", "table of kernels", given)
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

-- Replace plans by kernels, which are compiled in parallel.
local function compile(list, names)
  local compiling = {}
  for i, x in ipairs(list) do
    if core.is(x, "millrace.plan") then compiling[i] = core.compile_begin(x) end
  end
  for i, x in pairs(compiling) do list[i] = x:kernel() end
  if next(compiling) then core.compile_end_idle() end
  for i, k in ipairs(list) do
    if k.registers == 0 then raise(("race: %s is text alone; compile it without text=true"):format(names[i])) end
  end
end

local row_fields = record("row of a race", "name kernel ms min max ratio low high tflops gbps")
local race = record("race", "base rounds cache", {__name = "millrace.race"})

function race.__tostring(r)
  local rows = {{"", "ms", "min", "max", "of " .. r.base, "95 % interval", "TFLOP/s"}}
  for _, x in ipairs(r) do
    rows[#rows + 1] = {x.name, ("%.4g"):format(x.ms), ("%.4g"):format(x.min), ("%.4g"):format(x.max),
      ("%.4f"):format(x.ratio), ("%.4f to %.4f"):format(x.low, x.high), ("%.4g"):format(x.tflops)}
  end
  return ("%s, %d rounds%s\n%s"):format(r[1].kernel.plan.graph.program.name, r.rounds,
    r.cache and ", " .. r.cache or "", table.concat(columns(rows, function(i) return i > 1 end), "\n"))
end

local function run(given, o)
  o = options.check(o, "race", known)
  options.seconds(o, "race", {"seconds", "sample", "turn", "limit"})  -- deprecated: turn
  local list, names = contestants(given)
  local base = 1
  if o.base ~= nil then
    base = nil
    for i, name in ipairs(names) do if name == tostring(o.base) then base = i end end
    if not base then
      local near = hint(tostring(o.base), names)
      raise(("race: there is no %s to compare with%s"):format(show(o.base), near ~= "" and near
        or (" (known: %s)"):format(table.concat(names, ", "))))
    end
  end
  compile(list, names)
  local rounds = core.race(list, names, {seconds = o.seconds or SECONDS, sample = o.sample or o.turn or SAMPLE,  -- deprecated: turn
    warmup = WARMUP, rounds = ROUNDS_MIN, seed = o.seed, limit = o.limit})
  local medians = {}
  for c in ipairs(list) do medians[c] = paired.median(paired.times(rounds, c)) end
  if not o.base then for c, ms in ipairs(medians) do if ms < medians[base] then base = c end end end
  local r = {base = names[base], rounds = #rounds, cache = rounds.cache}
  for c, k in ipairs(list) do
    local graph, ratio, low, high = k.plan.graph, paired.interval(paired.ratios(rounds, c, base))
    r[c] = setmetatable({name = names[c], kernel = k, ms = medians[c], min = rounds.min[c], max = rounds.max[c],
      ratio = ratio, low = low, high = high, tflops = graph.flops / medians[c] / 1e9, gbps = graph.bytes / medians[c] / 1e6}, row_fields)
  end
  table.sort(r, function(a, b)
    if a.ratio ~= b.ratio then return a.ratio < b.ratio end
    return a.name < b.name
  end)
  return setmetatable(r, race)
end

return {race = run}
