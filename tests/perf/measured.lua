-- measured.lua - reads the lists of measured plans in this folder.
--
--   sweep-h200.jsonl    Plans that the model was calibrated with: an H200 SXM of 700 W, driver 580.159, CUDA 13.0, November 2026.
--   unseen-h200.jsonl   The same for other shapes, head dimensions and tiles. Nothing in hw/h200.lua was fitted to them.
--   searched-h200.jsonl Plans that searches of rows.py found (`rows.py --table ... --plans`), with their times in that table; programs
--                       that are not shipped are named, as program_of.lua takes them.
--   spaces-h200.csv     Complete spaces of plans, for `space.lua curve`: milliseconds, or "spills" if the kernel keeps registers in
--                       memory. Measured on 2026-11-23 in rounds of 10 ms, 12 rounds and more against the best so far (driver
--                       580.159.04); the slower third of chunk_state and a fifth of attention a day later, in 6 rounds of 60 ms.
--
-- `sweep.lua measure` writes the lines of the first two. Their scripts stay as they were written: tests/lua/old_scripts.t.lua shows
-- that today's Millrace makes the same kernels of them.
local dir = debug.getinfo(1, "S").source:match "^@(.*/)" or "./"
local parse_json = dofile(dir .. "../lua/lib/parse_json.lua")

local M = {}

-- {{family=, name=, ms=, cycles=, clock_hz=, script=}, ...}. A family is one program at one size; ms is the median of a pass, cycles
-- and clock_hz are of a traced run and may be missing. Raises if the file cannot be read.
function M.plans(path)
  local rows = {}
  for line in io.lines(path) do rows[#rows + 1] = parse_json(line) end
  return rows
end

-- {[script's hash, 12 digits] = ms or "spills"} of one program of a space file.
function M.space(path, program)
  local times = {}
  for line in io.lines(path) do
    local name, hash, ms = line:match "^(.*),(%x+),(.*)$"
    if name == program then times[hash] = tonumber(ms) or ms end
  end
  return times
end

M.sweep, M.unseen, M.spaces = dir .. "sweep-h200.jsonl", dir .. "unseen-h200.jsonl", dir .. "spaces-h200.csv"
M.searched = dir .. "searched-h200.jsonl"

return M
