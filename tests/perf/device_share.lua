-- device_share.lua - for which share of a search the device measures.
--
--   millrace tests/perf/device_share.lua [trials=200] [seconds=600] [PATTERN ...]
--   mpirun -n 3 --bind-to none millrace --farm tests/perf/device_share.lua ...
--
-- One search each of the rows of rows.py whose names have a pattern (Lua; a product and an attention unless given), afresh, in which all of
-- the trials are measured, also those that are not worth it: so each run measures as many. In a farm rank 0 searches and the other ranks
-- measure and compile. The start of the driver, 1 to 2 s once for each process, is not counted. A line of each row: ranks; plans measured;
-- seconds of the search in the model, of all, and that devices were measuring, with what they compare; those over all, so 2 at most with two
-- devices; plans a minute; and the answer's milliseconds. Needs python3.
local core = require "millrace.core"
local measure = require "millrace.measure"
local dir = arg[0]:match "^(.*/)" or "./"
local program_of = dofile(dir .. "program_of.lua")

local last                                              -- what the last search has measured, and when that began
package.loaded["millrace.measure"] = function(bound, device, candidates, o)
  o.risk = -1
  local began = core.clock()
  last = measure(bound, device, candidates, o)
  last.began = began
  return last
end
for _, name in ipairs{"millrace.trials", "millrace.search"} do package.loaded[name] = nil end   -- they have the other one in a farm
local mr = require "millrace"

-- All ranks read the same list.
local options, rows = dofile(dir .. "row_arguments.lua")({trials = 200, seconds = 600},
  {"^gemm 4096 x 4096 x 4096$", "^attention d128 s2048 causal$"})

local farm = core.farm()
local ranks = farm and farm:size() or 1
if ranks == 1 or farm:rank() > 0 then mr.attached() end
local heading <const> = "%-34s %5s %5s %7s %7s %7s %6s %9s %9s"
print(heading:format("row", "ranks", "plans", "model s", "all s", "device", "share", "a minute", "ms"))
for _, row in ipairs(rows) do
  local began = core.clock()
  local r = assert(mr.search(program_of(row.program)(row.sizes), mr.device "h200",
    {measure = true, fresh = true, trials = options.trials, seconds = options.seconds, farm = ranks > 1, show = false}))
  local all = core.clock() - began
  if not farm or farm:rank() == 0 then
    local n, device = #r.measurements, last.device_seconds
    print(("%-34s %5d %5d %7.1f %7.1f %7.1f %6.3f %9.1f %9.4f"):format(row.case, ranks, n, last.began - began, all, device, device / all,
      n / all * 60, r.measured.ms))
  end
end
