-- Warpgroups of one lane that run separately: what the drawings, the events and the trace show of them agrees.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like = tap.ok, tap.is, tap.like

local bound = mr.examples.flash_attention{b = 8, h = 16, m = 4096, n = 4096, d = 64}
local plan = mr.plan(bound:graph{tile = {m = 128, n = 128}}, mr.device "h200")
for _ = 1, 2 do plan:suggest()[1]:apply() end
plan:buffers{k = 2, v = 2}
plan:move("mma_qk", {at = 1, after = "softmax"})
local tl = plan:simulate()

---- events ---------------------------------------------------------------------------------

local peak = 4096                                       -- flops a cycle
local flops = 2 * 128 * 128 * 64
local parts, early, fast = 0, 0, 0
for _, e in ipairs(tl.events) do
  if e.lane == "c0" then
    local w = e.warpgroups or {}
    parts = math.max(parts, #w)
    local last = w[#w] or {}
    for _, key in ipairs{"ready", "issue", "start", "end"} do
      if last[key] ~= e[key] then parts = 100 end
    end
    for _, g in ipairs(w) do
      if g.start < g.issue or g.issue < g.ready then early = early + 1 end
      if e.seu == "tensor" and flops / #w / (g["end"] - g.start) > peak then fast = fast + 1 end
    end
  elseif e.warpgroups then
    parts = 100
  end
end
is(parts, 2, "an event has the times of both warpgroups, and its own are those of the last")
is(early, 0, "  neither works before it was issued")
is(fast, 0, "  nor faster than the unit can")

---- drawings -------------------------------------------------------------------------------

local text = tl:text{from = 4800, to = 9000, ascii = true, width = 100}
like(text, "\nc0 wg0 .*\nc0 wg1 ", "warpgroups that drift apart have rows")
like(text, "wg0, wg1: warpgroups of a lane that%s+drift apart", "  which the legend explains")
like(text, "\ntensor [^\n]*\n +%-", "bars of a unit that works in order do not overlap")

-- An issue is not drawn behind what the lane did after it, however little space there is.
local rank = {s = 1, q = 2, r = 3, p = 4}
for _, window in ipairs{{}, {from = 4800, to = 9000}, {from = 7500, to = 60000}} do
  for width = 50, 200, 7 do
    local rows, wrong = tl:text{from = window.from, to = window.to, ascii = true, width = width}, nil
    for row in rows:gmatch "\nc0 ?w?g?%d? +([^\n]*)" do
      local names = row:gsub("w:[%w_]+", ""):gsub("sof?t?m?a?x?", "s"):gsub("re?s?c?a?l?e?", "r"):gsub("[^sqrp]", "")
      local before = "s"
      for letter in names:gmatch "." do
        if rank[letter] < rank[before] and letter ~= "s" then wrong = row end
        before = letter
      end
    end
    is(wrong, nil, ("the order of issue at a width of %d"):format(width))
  end
end

local function read(path)
  local file <close> = assert(io.open(path))
  return file:read "a"
end
local path = os.tmpname()
tl:svg(path, {from = 4800, to = 9000})
local svg = read(path)
local function number(s) return tonumber((s:gsub(",", ""))) end
local bars, before = 0, 0
for issue, start in svg:gmatch "mma_%a+ %d+ of c0 wg%d on tensor: issued ([%d,]+), at work ([%d,]+)" do
  bars = bars + 1
  if number(start) < number(issue) then before = before + 1 end
end
ok(bars >= 8 and before == 0, "no bar of a picture begins before its issue", bars, before)
like(svg, "warpgroups of a lane that drift apart", "whose legend says so")
tl:trace(path)
like(read(path), '"lane c0 wg0".*"lane c0 wg1"', "a trace has a thread for each warpgroup")
os.remove(path)

---- in step --------------------------------------------------------------------------------

local gemm = mr.plan(mr.examples.gemm{m = 4096, n = 4096, k = 4096}:graph{tile = {m = 128, n = 256, k = 64}}, mr.device "h200")
for _ = 1, 2 do gemm:suggest()[1]:apply() end
local together = gemm:simulate()
ok(together.events[#together.events] and not together:text():find "wg0", "warpgroups in step have one row")

tap.done_testing()
