-- curve.lua - the best plan so far of measured searches, against seconds.
--
--   millrace tests/perf/curve.lua [total=100] [seconds=8] [csv=FILE] [PATTERN ...]
--
-- Searches rows of rows.py afresh on the attached device: those whose names have one of the patterns (Lua), or one of each kind (USUAL).
-- Each gets its share of the seconds that are left of `total`, at most `seconds` for measuring. A line of each row: the milliseconds that
-- the model predicts of what it puts first; seconds until the first plan that is measured; the time of the best plan so far after 1, 2, 3,
-- 4, 6 and 8 seconds over that of the last one, and after how many seconds it was within 5 and within 1 % of that; how many plans were
-- measured, the seconds of all, the answer's milliseconds, and why the search ended. The file gets each step of each curve: row, second,
-- ms. Needs python3.
local mr = require "millrace"
local core = require "millrace.core"
local dir = arg[0]:match "^(.*/)" or "./"
local program_of = dofile(dir .. "program_of.lua")

local USUAL <const> = {"^gemm 8192 x 8192 x 8192$", "^gemm 2048 x 2048 x 2048$", "^few rows 16 x", "^attention d128 s8192$",
  "^attention d128 s2048 causal$", "^decoding 16 x", "^chunk_scan 8 x 8192 x", "^dequant_gemm 16 x", "^conv2d 32 x", "^rmsnorm 8192 x"}
local AT <const> = {1, 2, 3, 4, 6, 8}
local OTHERS <const> = 3                                -- seconds of a row in the model, in its last race, and to start

local options, patterns = {total = 100, seconds = 8}, {}
for _, word in ipairs(arg) do
  local key, value = word:match "^(%l+)=(.*)$"
  if key == "total" or key == "seconds" then
    options[key] = assert(tonumber(value), word .. " is no number")
  elseif key == "csv" then
    options.csv = value
  else
    patterns[#patterns + 1] = word
  end
end
if #patterns == 0 then patterns = USUAL end

local rows = dofile(dir .. "matching_rows.lua")(patterns)

local function bind(row) return program_of(row.program)(row.sizes) end

-- The best time of a curve {{at=, ms=}, ...} after so many seconds, or nil.
local function best_at(curve, seconds)
  local best
  for _, x in ipairs(curve) do
    if x.at <= seconds then best = x.ms end
  end
  return best
end

-- The seconds until the curve is within that share of `ms`.
local function seconds_within(curve, ms, share)
  for _, x in ipairs(curve) do
    if x.ms <= ms * (1 + share) then return x.at end
  end
end

local function number(x, format) return x and format:format(x) or "-" end

local function search(row, seconds, csv)
  local bound, curve, began, predicted = bind(row), {}, core.clock(), nil
  local r, why = mr.search(bound, mr.device(), {measure = true, fresh = true, seconds = seconds, progress = function(state)
    local last, best = curve[#curve], state.best
    if best and not (last and last.ms <= best.score) then
      curve[#curve + 1] = {at = core.clock() - began, ms = best.score}
    end
    predicted = predicted or state.results[1].predicted
  end})
  local took = core.clock() - began
  if not r then return print(("%-40s no plan: %s"):format(row.case, why)) end
  local last = curve[#curve]
  local words = {}
  for i, at in ipairs(AT) do words[i] = ("%6s"):format(number(last and best_at(curve, at) and best_at(curve, at) / last.ms, "%.3f")) end
  print(("%-40s %9.4f %6s %s %6s %6s %5d %6.1f %9s %s"):format(row.case, (predicted or 0) * 1e3, number(curve[1] and curve[1].at, "%.2f"),
    table.concat(words, " "), number(last and seconds_within(curve, last.ms, 0.05), "%.2f"),
    number(last and seconds_within(curve, last.ms, 0.01), "%.2f"), #r.measurements, took,
    number(r.measured and r.measured.ms, "%.4f"), r.ended))
  for _, x in ipairs(csv and curve or {}) do csv:write(("%s,%.3f,%.5f\n"):format(row.case:gsub(",", ";"), x.at, x.ms)) end
end

if not mr.attached() then
  print "SKIP  no device is attached"
  os.exit(true)
end
print(("%-40s %9s %6s %6s %6s %6s %6s %6s %6s %6s %6s %5s %6s %9s %s"):format("row", "predicted", "first", "1 s", "2 s", "3 s", "4 s",
  "6 s", "8 s", "5 %", "1 %", "plans", "all s", "ms", "ended"))
local csv = options.csv and assert(io.open(options.csv, "w"))
local began, failed = core.clock(), 0
for i, row in ipairs(rows) do
  local left = options.total - (core.clock() - began)
  local seconds = math.min(options.seconds, left / (#rows - i + 1) - OTHERS)
  if seconds <= 0 then
    print(("%-40s no time left"):format(row.case))
  else
    local ok, problem = pcall(search, row, seconds, csv)
    if not ok then
      failed = failed + 1
      print(("%-40s failed: %s"):format(row.case, problem))
    end
  end
  io.stdout:flush()
end
if csv then csv:close() end
print(("%d rows in %.1f s"):format(#rows, core.clock() - began))
os.exit(failed == 0)
