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
for _, call in ipairs(sp.calls) do sp:launch(call.name, {stream = 0, early = call.name ~= "gate", after = {}}) end
sp:arena()
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

---- pictures and traces -------------------------------------------------------------------------

local folder = os.tmpname()
os.remove(folder)
local function read(path)
  local f = assert(io.open(path))
  local all = f:read "a"
  f:close()
  os.remove(path)
  return all
end
local function written(x, format, options)
  local path = folder .. "." .. format
  x[format](x, path, options)
  return read(path)
end
for name, x in pairs{timeline = two, plan = sp} do
  local light, dark = written(x, "svg"), written(x, "svg", {theme = "dark", width = 700})
  tap.ok(light:find "^<svg" and light:find "</svg>%s*$" and light ~= dark, name .. " as svg, light and dark")
  for _, k in ipairs(two.kernels) do tap.ok(light:find(">" .. k.name .. "<", 1, true), ("%s: %s is named"):format(name, k.name)) end
  tap.ok(light:find("sp:order{", 1, true), name .. ": the script that draws it again")
  tap.ok(written(x, "png", {scale = 0.5}):find "^\x89PNG" and written(x, "pdf"):find "^%%PDF", name .. " as png and pdf")
  tap.ok(written(x, "svg", {preset = "slide"}):find "</svg>", name .. " as a slide")
end

two:trace(folder .. ".json")
local trace = json.decode(read(folder .. ".json"))
local process, range = {}, {}
for _, e in ipairs(trace.traceEvents) do
  if e.ph == "M" and e.name == "process_name" then process[e.pid] = e.args.name end
  if e.ph == "X" then
    local r = range[e.pid] or {math.huge, 0}
    range[e.pid] = {math.min(r[1], e.ts), math.max(r[2], e.ts + e.dur)}
  end
end
tap.is(process[1], "mlp", "a process with the streams")
for i, k in ipairs(two.kernels) do
  tap.is(process[1 + i], k.name .. ": gemm", "a process for " .. k.name)
  tap.ok(range[1 + i][1] >= k.begins * 1e6 - 1e-3 and range[1 + i][2] <= k.ends * 1e6 + 1e-3, k.name .. " where it is on the axis")
end
local slices = {}
for _, e in ipairs(trace.traceEvents) do
  if e.pid == 1 and e.ph == "X" then slices[e.name] = e end
end
for _, k in ipairs(two.kernels) do
  tap.ok(math.abs(slices[k.name].ts - k.begins * 1e6) < 1e-3 and math.abs(slices[k.name].dur - k.seconds * 1e6) < 1e-3, k.name .. " in its stream")
end

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
