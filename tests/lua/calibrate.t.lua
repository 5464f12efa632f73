-- Calibration, without a device: every kernel that it runs, what each shows, and the file it writes.
local mr = require "millrace"
local fit, hwfile = require "millrace.fit", require "millrace.hwfile"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like = tap.ok, tap.is, tap.like

local device = mr.device "h200"
local entries = require "millrace.probes"(mr, device)

-- Kernels ---------------------------------------------------------------------------------

for i, x in ipairs(entries) do
  if not x.run.tried then
    local full = x.run.plan(x.run.program(x.run.sizes(device)), device)
    is(full:check(), true, x.why .. ": the plan is legal")
    is(full:simulate{events=0}.unpriced, nil, "  and there is a kernel of it")
    local err = x.run.plan(x.run.program(x.run.small), device):compile{target="host"}:check()
    ok(err.ok, ("  which the CPU computes right (%.2g)"):format(err.relative))
    x.run.tried = true
  end
end

-- What each shows -------------------------------------------------------------------------

-- By how much of a change of a number the prediction changes.
local function tells(x, number)
  local by = number:find "lane_share" and 0.95 or 1.05
  local other = mr.device("h200", {[number]=device:number(number) * by})
  return math.abs(fit.predict(x, other) / fit.predict(x, device) - 1) / math.abs(by - 1)
end

for i, x in ipairs(entries) do
  ok(tells(x, x.number) >= 0.1, ("%s shows in its kernel (%.2f)"):format(x.number, tells(x, x.number)))
  local most, which = 0, ""
  for k = i + 1, #entries do
    local by = tells(x, entries[k].number)
    if by > most then most, which = by, entries[k].number end
  end
  -- of power, several passes over the list make up for it
  ok(most <= (x.number:find "^power" and 0.3 or 0.1), ("  and little of the numbers behind it (%.2f %s)"):format(most, which))
end

-- Numbers are found again -----------------------------------------------------------------

local true_numbers, start, seen = {}, {}, {}
for i, x in ipairs(entries) do
  start[x.number] = device:number(x.number)
  true_numbers[x.number] = start[x.number] * (x.number:find "lane_share" and 0.9 or x.number:find "^power" and 1.08 or
    i % 2 == 0 and 1.15 or 0.87)
end
-- what two clocks, and a limit, leave to tell the others by
true_numbers["seu.tensor.clock_ghz"], true_numbers["power.limit"] = 1.5, 740
true_numbers["memory.shared.rate"] = 100                -- beyond 128 it does not bind
local real = mr.device("h200", true_numbers)
for i, x in ipairs(entries) do seen[i] = fit.predict(x, real) end
local found = fit.all(entries, seen, start, function(changes) return mr.device("h200", changes) end, 3)
for _, x in ipairs(entries) do
  local off = found[x.number] / true_numbers[x.number] - 1
  ok(math.abs(off) < 0.02, ("%s is found, %.2f %% off"):format(x.number, 100 * off))
end
is(fit.number(function(v) return v end, 100, 1e6), nil, "a number that is out of reach is not found")
is(fit.number(function() return 5 end, 100, 6), nil, "  nor one that does not tell")
is(fit.number(function(v) return v <= 110 and 1 / v or nil end, 100, 1 / 105) // 1, 104, "  one near the end of what can be is")

-- The file --------------------------------------------------------------------------------

local home = os.getenv "MILLRACE_HOME" or "."
local text = assert(io.open(home .. "/hw/h200.lua")):read "a"
local paths = 0
for _, line in ipairs(hwfile.read_lines(text)) do
  if line.path and pcall(device.number, device, line.path) then paths = paths + 1 end
end
ok(paths > 60, "every line of a device's file is understood")
local numbers = {}
for _, x in ipairs(entries) do numbers[x.number] = {value=("%.6g"):format(true_numbers[x.number]), comment="seen"} end
local changed = hwfile.rewrite(text, numbers, "--   calibrated  somewhere")
local path = os.tmpname() .. ".lua"
local file = assert(io.open(path, "w"))
file:write(changed)
file:close()
local again = mr.device(path)
local right = 0
for number, v in pairs(true_numbers) do
  if math.abs(again:number(number) / v - 1) < 1e-5 then right = right + 1 end
end
is(right, #entries, "a file with other numbers is read as such")
is(again:number "limits.registers", 65536, "  and the others stay")
like(changed, "sfu = [%d.]+, +%-%- seen\n", "  with what is said of them")
like(changed, "\n%-%-   calibrated  somewhere\n", "  and where they come from")
is(hwfile.rewrite(changed, numbers, "--   calibrated  somewhere"), changed, "written twice, it is the same")
os.remove(path)
local fine, message = pcall(hwfile.rewrite, text, {["memory.l3.rate"]={value="1", comment=""}}, "")
ok(not fine and tostring(message):find "no line for memory.l3.rate", "a number that the file does not give is an error")

-- No device -------------------------------------------------------------------------------

local function refused(...)
  local done, why = pcall(mr.calibrate, ...)
  return not done and tostring(why) or "it went well"
end
like(refused(), "calibrate: path of a file expected, got nil", "a path is needed")
if not mr.attached() then like(refused "/nowhere/x.lua", "calibrate: no device to measure: ", "and a device") end
tap.done_testing()
