-- calibrate.lua - mr.calibrate(path): the numbers of the attached device, from kernels made of plans.
--
-- Each entry of probes.lua says what one number shows in. Its kernel is run, and the number is that for
-- which the simulator predicts what was measured: so whatever else the simulator knows of the kernel
-- is subtracted, and nothing is fitted that has no mechanism. All kernels are run one after the other, several times;
-- how far apart the numbers are that come of each time is their spread.

local core = require "millrace.core"
local fit = require "millrace.fit"
local hwfile = require "millrace.hwfile"
local mr = require "millrace"
local raise, expect = core.raise, core.expect

local ROUNDS <const> = 3
local SECONDS <const> = 0.3                             -- of a run
local STEADY <const> = 2.0                              -- of one whose power is asked: its counter is slow
local TRACED <const> = 0.2
local PASSES <const> = 3                                -- over the list: of power some hang on those behind

-- On a terminal, one line that is written over and over.
local function say(text)
  if core.terminal().color then io.stderr:write("\r\27[K", text or "") end
end

-- Different runs of the entries, in order, with what is asked of each.
local function runs_of(entries)
  local runs = {}
  for _, x in ipairs(entries) do
    if not x.run.asked then
      x.run.asked = {}
      runs[#runs + 1] = x.run
    end
    x.run.asked[x.of] = x.number
  end
  return runs
end

local function compile(run, device)
  local kernel = run.plan(run.program(run.sizes(device)), device):compile{target = "cuda"}
  if #kernel.problems > 0 then raise("calibrate: " .. kernel.problems[1]) end
  return kernel
end

-- What a kernel shows of the device: {seconds=, watts=, cycles=, clock_hz=}, those that are asked. At the limit of
-- power a clock is not the same twice: that of many runs is their cycles over their time.
local function measure(kernel, asked, launch)
  local took = kernel:bench{seconds = (asked.watts or asked.clock_hz) and STEADY or SECONDS}
  local seen = {seconds = took.ms / 1e3, watts = took.watts}
  if asked.cycles or asked.clock_hz then
    local tl = kernel:trace{seconds = TRACED}
    seen.cycles = tl.cycles / (1 + math.max(tl.overhead, 0))
    seen.clock_hz = seen.cycles / (seen.seconds - launch)
  end
  return seen
end

-- By round and entry, what was measured. A limit of power that the board tells is better known than what it
-- draws at it.
local function measure_all(entries, device, gpu)
  local runs, rounds = runs_of(entries), {}
  for i, run in ipairs(runs) do
    say(("compiling %d of %d kernels"):format(i, #runs))
    run.kernel = compile(run, device)
  end
  for round = 1, ROUNDS do
    local seen = {}
    for i, run in ipairs(runs) do
      say(("round %d of %d: kernel %d of %d"):format(round, ROUNDS, i, #runs))
      run.seen = measure(run.kernel, run.asked, device:number "sync.launch_seconds")
    end
    for i, x in ipairs(entries) do
      seen[i] = x.number == "power.limit" and gpu.power_limit or x.run.seen[x.of]
    end
    rounds[round] = seen
  end
  return rounds
end

-- By path: {value=, spread=}, from what each round says.
local function summary(entries, fits)
  local numbers = {}
  for _, x in ipairs(entries) do
    local values = {}
    for i, found in ipairs(fits) do values[i] = found[x.number] end
    table.sort(values)
    local middle = values[(#values + 1) // 2]
    numbers[x.number] = {value = middle, spread = (values[#values] - values[1]) / middle, why = x.why}
  end
  return numbers
end

local function short(v) return (("%.4g"):format(v):gsub("e%+?0*", "e")) end

local function write(path, text)
  local file, problem = io.open(path, "w")
  if not file or not file:write(text) or not file:close() then
    raise(("calibrate: cannot write %s: %s"):format(path, problem or "is the disk full?"))
  end
end

local calibration = {__name = "millrace.calibration", __tostring = function(c)
  local lines = {("%s, %s, driver %s"):format(c.name, c.date, c.driver)}
  for _, path in ipairs(c.order) do
    local x = c.numbers[path]
    lines[#lines + 1] = ("%-26s %10s  +- %4.1f %%, was %10s  %s"):format(path, short(x.value), 100 * x.spread, short(x.was), x.why)
  end
  return table.concat(lines, "\n")
end}

local function calibrate(path)
  expect(type(path) == "string", "calibrate", "path of a file", path)
  local gpu, missing = core.attached "cuda"
  if not gpu then raise("calibrate: no device to measure: " .. missing) end
  if gpu.trouble then raise(("calibrate: not now on this %s: %s"):format(gpu.name, gpu.trouble)) end
  local model = mr.device()
  local entries, numbers = require "millrace.probes"(mr, model), {}
  for _, x in ipairs(entries) do numbers[x.number] = model:number(x.number) end

  local fits, function_of = {}, function(changes) return mr.device(model.name, changes) end
  for round, seen in ipairs(measure_all(entries, model, gpu)) do
    say(("fitting, round %d"):format(round))
    fits[round] = fit.all(entries, seen, numbers, function_of, PASSES)
  end
  say()
  local c = setmetatable({name = gpu.name, date = os.date "!%Y-%m-%d", driver = gpu.driver, order = {},
    numbers = summary(entries, fits)}, calibration)
  local texts = {}
  for i, x in ipairs(entries) do
    local n = c.numbers[x.number]
    c.order[i], n.was = x.number, numbers[x.number]
    texts[x.number] = {value = short(n.value), comment = ("calibrated, +- %.1f %%: %s"):format(100 * n.spread, x.why)}
  end
  local file = assert(io.open(("%s/hw/%s.lua"):format(core.home(), model.name)))
  local text = file:read "a"
  file:close()
  write(path, hwfile.rewrite(text, texts, ("--   calibrated  by mr.calibrate, on %s, %s, driver %s; +-: the spread of %d rounds")
    :format(gpu.name, c.date, c.driver, ROUNDS)))
  mr.device(path)                                     -- is it one?
  return c
end

return {calibrate = calibrate}
