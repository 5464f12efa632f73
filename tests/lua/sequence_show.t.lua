-- Sequences as a person sees them: timelines as text, two of them compared, JSON.
local tap = dofile(os.getenv "MILLRACE_HOME" .. "/tests/lua/tap.lua")
local json = require "millrace.json"

local gemm = mr.examples.gemm

local mlp = mr.sequence("mlp", function(s)
  local m, d, f = s:sizes("m", "d", "f")
  local x, w1, w2 = s:input("x", {m, d}), s:input("w1", {f, d}), s:input("w2", {d, f})
  local h, g, y = s:temp("h", {m, f}), s:temp("g", {m, f}), s:output("y", {m, d})
  s:call("gate", gemm{m = m, n = f, k = d}, {A = x, B = w1, C = h})
  s:call("up", gemm{m = m, n = f, k = d}, {A = x, B = w1, C = g})
  s:call("down", gemm{m = m, n = d, k = f}, {A = h, B = w2, C = y})
  s:call("again", gemm{m = m, n = d, k = f}, {A = g, B = w2, C = y})
end)
local seq = mlp{m = 256, d = 128, f = 512}
local sp = seq:plan("h200", {trials = 60, measure = false})
local tl = sp:simulate()

---- text ----------------------------------------------------------------------------------------

local function widest(text)
  local most = 0
  for line in text:gmatch "[^\n]+" do most = math.max(most, utf8.len(line)) end
  return most
end

local good = true
for width = 20, 250 do
  local text, ascii = tl:text{width = width, ascii = false}, tl:text{width = width, ascii = true}
  if widest(text) > width or widest(ascii) > width or ascii:find "[\x80-\xff]" then
    good = false
    tap.ok(false, ("fits into %d columns"):format(width), text)
  end
end
tap.ok(good, "fits into 20 to 250 columns, as UTF-8 and ASCII")

local text = tl:text{width = 100, ascii = false}
for _, part in ipairs{"mlp on h200, predicted: ", "\nstream 0 ", "\nidle ", "\ntensor ", "\nmemory ", "bound by", "no kernel runs for", "not at work of "} do
  tap.ok(text:find(part, 1, true), "the text has " .. part:gsub("\n", ""), text)
end
for _, k in ipairs(tl.kernels) do tap.ok(text:find("\n" .. k.name .. " +[%d.]+ +[%d.]+"), "a row of the table for " .. k.name) end
tap.ok(not text:find "stream 1", "one stream")
tap.ok(tl:text{width = 80, ascii = false, color = true}:find "\27%[", "in colour")
tap.ok(not tl:text{width = 80}:find "\27%[", "and without")
tap.is(tostring(tl) .. "\n", tl:text(), "printed as text")

-- The rows say what the kernels' own timelines say: the same kernels with the same shares.
local line = text:match "\ntensor ([^\n]*)"
tap.ok(line:find "%d %%$", "the share is at the right", line)
local want = 0
for _, k in ipairs(tl.kernels) do want = want + k.timeline.utilization.tensor * k.timeline.phases[1].eus / tl.device.eus * k.seconds end
tap.ok(math.abs(tl.utilization.tensor - want / tl.seconds) < 0.01 * want / tl.seconds + 1e-9, "utilization of the tensor cores",
  tl.utilization.tensor, want / tl.seconds)
local memory = 0
for _, k in ipairs(tl.kernels) do memory = memory + k.timeline.utilization.memory * k.seconds end
tap.ok(math.abs(tl.utilization.memory - memory / tl.seconds) < 1e-6, "and of memory", tl.utilization.memory, memory / tl.seconds)

-- With two streams; the timeline stays as it was made when the plan is edited.
sp:launch("up", {stream = 1, early = false})
sp:launch("again", {stream = 1, after = {"down"}, early = false})
local two = sp:simulate()
tap.ok(two:text{width = 100}:find "\nstream 1 ", "a row for each stream")
tap.is(tl:text{width = 100, ascii = false}, text, "edits of the plan do not change a timeline")

---- two of them ---------------------------------------------------------------------------------

local c = mr.compare(tl, two, {names = {"one stream", "two"}})
tap.ok(math.abs(c.ratio - two.seconds / tl.seconds) < 1e-12, "ratio")
tap.is(#c.rows, 4, "a row for each kernel")
for i, name in ipairs{"gate", "up", "down", "again"} do
  tap.ok(c.rows[i].kernel == name and math.abs(c.rows[i].ratio - c.rows[i].second.seconds / c.rows[i].first.seconds) < 1e-12, "row of " .. name)
end
local both = c:text{width = 100, ascii = false}
tap.ok(both:find("mlp one stream ", 1, true) and both:find "\nall " and both:find "\nagain ", "as text", both)
for width = 20, 250, 23 do tap.ok(widest(c:text{width = width, ascii = true}) <= math.max(width, 40), "compared in " .. width) end
tap.is(c.names[2], "two", "names")
tap.is(mr.compare(tl, two).names[1], "first", "without names")
local good, message = pcall(mr.compare, tl, tl.kernels[1].timeline)
tap.ok(not good and tostring(message):find "compare: timeline expected as the first", "no other timeline", tostring(message))

---- JSON ----------------------------------------------------------------------------------------

local t = json.decode(tl:json())
tap.is(t.format, "millrace sequence timeline 1", "format of a timeline")
tap.ok(t.seconds == tl.seconds and #t.kernels == 4 and t.kernels[2].name == "up" and t.kernels[2].timeline.cycles == tl.kernels[2].timeline.cycles,
  "numbers")
tap.ok(t.kernels[1].timeline.events == json.null and #json.decode(tl:json{events = true}).kernels[1].timeline.events > 0, "events if asked for")
tap.ok(type(t.kernels[1].bound) == "string" and t.sequence.name == "mlp" and t.sequence.given.m == 256, "bound, sequence")
local p = json.decode(sp:json())
tap.is(p.format, "millrace sequence plan 1", "format of a plan")
tap.ok(p.script == sp:script() and #p.calls == 4 and p.calls[4].after[1] == "down" and p.arena_bytes == sp.arena_bytes, "calls, arena, script")
for _, x in ipairs(p.tensors) do
  tap.ok(x.offset == (sp.offsets[x.name] or json.null), "offset of " .. x.name)
end
sp:launch("again", {stream = 1, after = {}})
local _, problems = sp:check()
local q = json.decode(problems:json())
tap.ok(#q == #problems and q[1].code == "order" and q[1].call == "again" and q[1].other and q[1].tensor and q[1].line and q[1].other_location,
  "problems with both statements", problems:json())
tap.ok(tostring(problems):gsub("%s+", " "):find "; the other statement is [^ ]*sequence_show.t.lua:%d+", "and as text", tostring(problems))

tap.done_testing()
