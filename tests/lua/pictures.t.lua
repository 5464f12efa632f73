-- Pictures and traces of a program that is not shipped: every call writes its file, with the script
-- that makes it again; traces hold to the trace-event format.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like, refuses = tap.ok, tap.is, tap.like, tap.refuses

local dir = os.tmpname()
os.remove(dir)
os.execute("mkdir -p " .. dir)

local prog = mr.program("two_products", function(p)
  local m, n, k, l = p:axes("m", "n", "k", "l")
  local A, B, C = p:input("A", {m, k}), p:input("B", {k, n}), p:input("C", {n, l})
  local O = p:output("O", {m, l})
  local a = p:load("load_a", A)
  local o = p:carry("o", {m, l}, 0)
  p:loop(n, function()
    local s = p:mma("mma_s", a, p:load("load_b", B))
    local t = p:task("halve", function() return (s * 0.5):to "bf16" end)
    o:add(p:mma("mma_o", t, p:load("load_c", C)))
  end)
  O:store("store_o", o)
end)
local bound = prog:bind{m = 1024, n = 2048, k = 64, l = 64}
local graph = bound:graph{tile = {m = 128, n = 128}}

local function plan_with(rings)
  local plan = mr.plan(graph, mr.device "h200")
  plan:lane("p0", {warps = 1})
  plan:lane("c0", {warps = 8})
  plan:buffers{b = rings, c = rings}
  for _, task in ipairs(plan.tasks) do plan:append(task.name, {lane = task.kind == "load" and "p0" or "c0"}) end
  plan:fill_waits()
  return plan
end

local plan = plan_with(3)
local good, problems = plan:check()
ok(good, "the plan is legal", tostring(problems))
local tl, other = plan:simulate(), plan_with(1):simulate()

local function read(path)
  local file = io.open(path, "rb")
  if not file then return nil end
  local text = file:read "a"
  file:close()
  return text
end

---- which part is shown ------------------------------------------------------------

-- The first cycle of a drawing, and of a picture.
local function begins(text) return tonumber((text:match "cycles ([%d,]+) to":gsub(",", ""))) end
local function svg_begins(options)
  local path = dir .. "/begins.svg"
  tl:svg(path, options)
  return begins(read(path))
end

for name, first in pairs{text = function(o) return begins(tl:text(o)) end, svg = svg_begins} do
  ok(first() > 0, name .. ": the steady state comes first")
  is(first{from = 0}, 0, name .. ": from=0 begins with the prologue")
  is(first{to = 5000}, 0, name .. ": so does an end alone")
  is(first{from = 3000}, 3000, name .. ": any cycle can be first")
end
is(svg_begins{animate = true}, 0, "an animation begins with the prologue")
like(tl:text(), "the steady%s+state; from=0 begins with the prologue", "the drawing says how to see the prologue")

-- A steady state that is short, of the only tile, is no reason to show little else than its stores under way.
local short = mr.load_plan("gemm_cooperative", mr.examples.gemm{m = 2048, n = 2048, k = 128}):simulate()
short:svg(dir .. "/short.svg", {preset = "print"})
local last, from, to = 0, read(dir .. "/short.svg"):match "cycles ([%d,]+) to ([%d,]+) of"
for _, e in ipairs(short.events) do last = math.max(last, e.seu == "tma" and e.issue or e["end"]) end
local function cycles(text) return tonumber((text:gsub(",", ""))) end
ok(last - cycles(from) > 0.75 * (cycles(to) - cycles(from)), "lanes work in most of what is shown", from, to, last)
is(from, "0", "and has the prologue")

---- what the row of a copy engine shows -------------------------------------------------

local busy = tl:text{width = 120, ascii = true}
like(busy, ("\ntma +#[#.]+ +%.0f %%%% "):format(tl.under_way.tma * 100), "busy is the time with transfers under way")
ok(tl.under_way.tma > 0.5 and tl.utilization.tma < 0.1, "not the time that issuing takes")
like(busy, ("tma: the time with transfers under way; issuing %.1f %%%%"):format(tl.utilization.tma * 100), "which is given apart")
is(tl.under_way.tensor, tl.utilization.tensor, "other units have one figure")
local by_threads = mr.load_plan("gemm_by_threads"):simulate()
like(by_threads:text(), "\nthreads %(tma%) ", "a row says that threads copy instead of an engine")
by_threads:svg(dir .. "/threads.svg")
like(read(dir .. "/threads.svg"), ">threads %(tma%)<", "in pictures, too")

---- a title of the user's own, and slides -----------------------------------------------------

for _, o in ipairs{{title = "Mine"}, {title = "Mine", preset = "slide"}, {title = "Mine", preset = "print"}} do
  for name, x in pairs{timeline = tl, plan = plan, compare = mr.compare(tl, other), graph = graph} do
    x:svg(dir .. "/titled.svg", o)
    local text = read(dir .. "/titled.svg")
    like(text, ">Mine<", ("%s: the title that was asked for"):format(name))
    like(text, ">two_products{m=1024, .*l=64}" .. (name == "graph" and "" or o.preset == "slide" and " on h200" or " on NVIDIA H200"), "  and the program with its sizes below it")
  end
end
for _, width in ipairs{false, 641, 700, 800, 1000, 1919} do
  local wrong
  for name, x in pairs{timeline = tl, plan = plan, compare = mr.compare(tl, other), graph = graph, roofline = mr.roofline{tl}} do
    x:png(dir .. "/slide.png", {preset = "slide", width = width or nil})
    local w, h = string.unpack(">I4I4", read(dir .. "/slide.png"), 17)
    if w ~= 1920 or h ~= 1080 then wrong = ("%s: %d x %d"):format(name, w, h) end
  end
  is(wrong, nil, ("slides have the pixels of a screen%s"):format(width and (" at a width of %d"):format(width) or ""))
end

---- every call ---------------------------------------------------------------------

local starts = {svg = "^<svg ", png = "^\x89PNG\r\n", pdf = "^%%PDF"}

local function writes(x, name, script)
  for format, start in pairs(starts) do
    local path = ("%s/%s.%s"):format(dir, name, format)
    is(x[format](x, path), nil, ("%s: %s"):format(name, format))
    local text = read(path) or ""
    ok(text:find(start) ~= nil and #text > 1000, ("%s is a file of %s"):format(path, format))
    if format ~= "pdf" then
      ok(text:find(script, 1, true) ~= nil, ("%s.%s has its script"):format(name, format))
    end
  end
end

writes(tl, "timeline", "local tl = plan:simulate()")
writes(plan, "plan", "plan:append(")
writes(graph, "graph", "bound:graph{tile=")
writes(mr.compare(tl, other, {names = {"three slots", "one <slot>"}}), "compare",
  "mr.compare(first, second, {names={")
for _, text in ipairs{"three slots and one &lt;slot&gt;: two_products{", "three slots above one &lt;slot&gt;, which takes", ">one &lt;slot&gt;: ",
    ": three slots | one &lt;slot&gt;"} do
  ok(read(dir .. "/compare.svg"):find(text, 1, true) ~= nil, "a comparison says which plan is which: " .. text)
end
writes(mr.roofline{tl, plan, {plan, name = "mine", ms = 0.5}}, "roofline", "mr.roofline{")

-- What has no products is in the list of a roofline, if not in its plot.
local double = mr.program("double", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m, n}, "bf16")
  local x = p:load("load_x", X)
  Y:store("store_y", p:task("twice", function() return (x * 2):to "bf16" end))
end)
local doubled = mr.plan(double:bind{m = 1024, n = 128}:graph{tile = {m = 128, n = 128}}, mr.device "h200")
doubled:lane("p0", {warps = 1})
doubled:lane("c0", {warps = 8})
for _, task in ipairs(doubled.tasks) do doubled:append(task.name, {lane = task.kind == "load" and "p0" or "c0"}) end
doubled:fill_waits()
for _, o in ipairs{{}, {preset = "slide"}} do
  mr.roofline{tl, doubled:simulate()}:svg(dir .. "/none.svg", o)
  like(read(dir .. "/none.svg"), ">2 double</text>.*, has no products<", "a roofline says what has no products")
end

local tried = {{trial = 1, predicted = 3e-3, text = "m=64"}, {trial = 2, predicted = 2e-3, status = "failed", text = 'a "b"\n'},
  {trial = 3, predicted = 2e-3, measured = 2.5e-3, phase = "device"}}
writes(mr.progress{history = tried, bound_seconds = 1e-3}, "progress", "mr.progress{")
writes(mr.progress{tried, other = {history = tried}}, "progresses", "history = {")
is(tostring(mr.progress(tried)), "search: 2 plans tried, 1 measured, best 2.5 ms measured, at trial 3", "what came of a search")
is(#mr.progress{tried, other = tried}.curves, 2, "of several there are as many curves")

-- The script in the file makes the same file.
local script = read(dir .. "/progress.svg"):match "<metadata>(.-)</metadata>":gsub("&quot;", '"'):gsub("&lt;", "<")
  :gsub("&gt;", ">"):gsub("&amp;", "&")
local again = script:gsub('svg%(".-"%)', ("svg(%q, {title=\"Search\"})"):format(dir .. "/again.svg"))
assert(load(again, "=again"))()
local function shapes(path) return (read(path):gsub("<metadata>.-</metadata>", "")) end
is(shapes(dir .. "/again.svg"), shapes(dir .. "/progress.svg"), "the script makes the same picture")

local svg = read(dir .. "/timeline.svg")
for _, text in ipairs{"two_products{", "mma_s", "halve", "steady state", "II ", "cycles", ">tensor<", "waits"} do
  ok(svg:find(text, 1, true) ~= nil, "the timeline has " .. text)
end
ok(not svg:find "<animate", "and stands still")
tl:svg(dir .. "/animated.svg", {animate = true, rings = true, seconds = 5})
like(read(dir .. "/animated.svg"), '<animate attributeName="width" dur="5s"', "an animated one moves")
like(read(dir .. "/animated.svg"), ">being filled<.*>number: which life of the buffer<", "and shows its rings")
for _, options in ipairs{{theme = "dark"}, {by = "seu"}, {by = "ring"}, {tile = 1}, {from = 1000, to = 1500},
    {width = 400, height = 300}, {title = "an <other> title"}, {to = 1 << 40}} do
  tl:svg(dir .. "/o.svg", options)
  ok(#read(dir .. "/o.svg") > 500, "options " .. next(options))
end
-- The head of a slide says in words what its numbers are; the legend of a graph has the colours of its boxes alone.
plan:svg(dir .. "/plan.svg", {preset = "slide"})
local head = read(dir .. "/plan.svg")
for _, text in ipairs{">two_products on ", ">sizes m=1024, n=2048, k=64, l=64<", ">tile m=128, n=128; predicted time "} do
  ok(head:find(text, 1, true) ~= nil, "the slide of a plan has " .. text)
end
-- Lanes stand next to each other, where a sheet is wide enough for two with all their waits.
mr.load_plan "attention_pingpong":svg(dir .. "/lanes.svg", {preset = "slide"})
local lanes = read(dir .. "/lanes.svg")
local first, last = lanes:match '<text x="([%d.]+)"[^>]*>c0<', lanes:match '<text x="([%d.]+)"[^>]*>c1<'
ok(first and last and tonumber(last) - tonumber(first) > 250, "a slide of three lanes has the last one in its right half")
-- They fill the slide, with text that is as large as it can be: what one waits for, too.
for name, waits in pairs{attention_pingpong = "load_v", attention_d128 = "load_q, load_k", gemm_cooperative = "mma.1, store_c.1 +1"} do
  mr.load_plan(name):svg(dir .. "/lanes.svg", {preset = "slide"})
  local text, lowest, rightmost, size = read(dir .. "/lanes.svg"), 0, 0, 0
  for x, y, attributes, what in text:gmatch '<text x="([%d.]+)" y="([%d.]+)"([^>]*)>([^<]*)<' do
    lowest, rightmost = math.max(lowest, tonumber(y)), math.max(rightmost, tonumber(x))
    if what == waits and tonumber(x) > 200 then size = tonumber(attributes:match 'font%-size="([%d.]+)"') end
  end
  ok(size >= 9, name .. ": waits can be read on a slide", size)
  ok(lowest > 0.92 * 360 and rightmost > 0.7 * 640, "  and it is full", lowest, rightmost)
end
-- A bar says which sTask it waited for, also if all that it waits for was complete and only the waits themselves took time.
for _, name in ipairs{"attention_pingpong", "attention_overlap", "gemm_cooperative", "attention_d128"} do
  mr.load_plan(name):simulate{events = 3000}:svg(dir .. "/waits.svg", {from = 0})
  local text = read(dir .. "/waits.svg")
  ok(text:find "waited %d+ for %a" and not text:find "for another<", name .. ": waits say for what", text:match "[^<>]* for another<")
end
graph:svg(dir .. "/graph.svg", {preset = "slide"})
local boxes, legend = {}, {}
for tag in read(dir .. "/graph.svg"):gmatch "<rect([^>]*)>" do
  local fill, wide = tag:match ' fill="(#%x+)"', tonumber(tag:match ' width="([%d.]+)"')
  if fill and tag:find "rx=" and wide < 10 then legend[fill] = true elseif fill and tag:find "rx=" then boxes[fill] = true end
end
ok(next(legend) ~= nil, "there is a legend")
for fill in pairs(legend) do ok(boxes[fill], "the legend of a graph explains what is drawn: " .. fill) end
local points = {}
for i = 1, 8 do points[i] = {plan, ms = i / 10} end
-- A slide has the shape of a screen, whatever is on it; what needs more space has smaller letters.
for i, x in ipairs{tl, plan, graph, mr.compare(tl, other), mr.roofline{tl}, mr.roofline(points), mr.progress{tried}} do
  x:svg(dir .. "/slide.svg", {preset = "slide", title = "Two products"})
  local slide, least = read(dir .. "/slide.svg"), 100
  for size in slide:gmatch 'font%-size="([%d.]+)"' do least = math.min(least, tonumber(size)) end
  like(slide, '^<svg [^>]*width="640" height="360"', "a slide has the shape of a screen")
  ok(least >= (i == 1 and 11 or 7.5), "its least text can be read on it", least)
end
tl:png(dir .. "/slide.png", {preset = "slide", width = 1280, height = 720})
is(("%dx%d"):format((">I4I4"):unpack(read(dir .. "/slide.png"), 17)), "1920x1080", "with the pixels of a screen, whatever its width")
tl:svg(dir .. "/print.svg", {preset = "print"})
like(read(dir .. "/print.svg"), '^<svg [^>]*width="640"', "as wide as a page")
tl:svg(dir .. "/print.svg", {preset = "print", width = 700})
like(read(dir .. "/print.svg"), '^<svg [^>]*width="700"', "or as one says")
graph:svg(dir .. "/print.svg", {preset = "print"})
like(read(dir .. "/print.svg"), '^<svg [^>]*width="640"', "so are graphs")
-- The longest title is there to its end, and so are the headings of a comparison, which have one size.
local split = mr.load_plan "decoding_split":simulate()
mr.compare(split, split, {names = {"the one", "the other one"}}):svg(dir .. "/print.svg", {preset = "print"})
local title, sizes = {}, {}
for size, text in read(dir .. "/print.svg"):gmatch 'font%-size="([%d.]+)"[^>]*font%-weight="bold"[^>]*>([^<]*)<' do
  if size == "18" then title[#title + 1] = text elseif text:find " cycles, " then sizes[size] = true end
end
title = table.concat(title, " ")
like(title, "^the one and the other one: flash_decoding{.*} on NVIDIA H200 SXM$", "a title goes on in more lines")
ok(next(sizes) ~= nil and next(sizes, next(sizes)) == nil, "both headings have one size")
mr.compare(tl, tl, {names = {"a", "the other one of both"}}):svg(dir .. "/slide.svg", {preset = "slide"})
sizes = {}
for size in read(dir .. "/slide.svg"):gmatch 'font%-size="([%d.]+)"[^>]*font%-weight="bold"[^>]*>[^<]*: [^<]* cycles, ' do sizes[size] = true end
ok(next(sizes) ~= nil and next(sizes, next(sizes)) == nil, "on a slide, too")
-- A page has no empty band below.
mr.progress{tried}:svg(dir .. "/print.svg", {preset = "print"})
local page, lowest = read(dir .. "/print.svg"), 0
for y in page:gmatch '<text [^>]*y="([%d.]+)"' do lowest = math.max(lowest, tonumber(y)) end
ok(tonumber(page:match 'height="([%d.]+)"') - lowest < 48, "the list of a search ends where the page does", lowest)
-- What a legend of a slide leaves out nobody can know.
tl:svg(dir .. "/slide.svg", {preset = "slide"})
like(read(dir .. "/slide.svg"), ">from issue to work<", "a slide says what its lines are")
mr.load_plan("attention_overlap"):simulate():svg(dir .. "/slide.svg", {preset = "slide"})
like(read(dir .. "/slide.svg"), ">bound 2 x 2,048<", "and of how many iterations a bracket is")
tl:svg(dir .. "/a.svg", {to = 3000})
tl:svg(dir .. "/b.svg", {to = 3000})
is(read(dir .. "/a.svg"), read(dir .. "/b.svg"):gsub("b%.svg", "a.svg"), "the same picture twice is the same file")

local frames = tl:frames(dir .. "/frames", {count = 3, scale = 0.5, to = 4000})
is(#frames, 3, "as many frames as were asked for")
is(frames[3], dir .. "/frames/0003.png", "numbered")
like(read(frames[3]), "^\x89PNG", "of PNG")
frames = tl:frames(dir .. "/frames", {count = 2, format = "svg", to = 4000})
like(read(frames[1]), "frame 1 of 2: cycle 2,000", "or SVG, which say when")

---- mistakes ------------------------------------------------------------------------

_G.tl, _G.plan, _G.graph, _G.other = tl, plan, graph, other
refuses('tl:png("/dev/full")', "user.lua:1: cannot write /dev/full: No space left on device")
refuses('plan:svg("/nowhere/x.svg")', "user.lua:1: cannot write /nowhere/x.svg: No such file or directory")
refuses('tl:png("x.jpg")', "user.lua:1: png: 'x.jpg' would have the wrong ending: this writes .png; pictures are written as svg, png, pdf, "
  .. "each by a method of that name")
-- The plan with two versions has no two starts of one sTask that are one interval apart, so its bar spans two; that of the other
-- one, too, as bars one above the other are compared by their length.
local serial_and_overlap = mr.compare(mr.load_plan("attention_serial"):simulate(), mr.load_plan("attention_overlap"):simulate())
serial_and_overlap:svg(dir .. "/alike.svg")
local steps = {}
for n in read(dir .. "/alike.svg"):gmatch ">II (%d+) x [%d,]+<" do steps[#steps + 1] = n end
is(table.concat(steps, " "), "2 2", "bars of II in a comparison span as many iterations")
refuses('mr.compare(tl, other):svg("a/x.PNG")', "user.lua:1: svg: 'a/x.PNG' would have the wrong ending: this writes .svg; pictures are "
  .. "written as svg, png, pdf, each by a method of that name")
refuses("mr.compare(tl, plan)", "user.lua:1: compare: timeline expected as the second, got millrace.plan; plan:simulate() gives one")
refuses("tl:png()", "user.lua:1: png: path of a file expected, got nil")
refuses('graph:pdf("x", {by="lane"})', "user.lua:1: pdf: unknown option 'by' (known: show, width, height, theme, title, scale, preset)")
refuses('tl:svg("x", {theme="drak"})', "user.lua:1: svg: unknown theme 'drak'; did you mean 'dark'?")
refuses('tl:svg("x", {preset="slides"})', "user.lua:1: svg: unknown preset 'slides'; did you mean 'slide'?")
refuses('tl:png("x", {animate=true})', "user.lua:1: png: only the svg of one timeline can be animated; tl:frames writes "
  .. "single pictures")
refuses('tl:png("x", {from=10, to=10})', "user.lua:1: png: `to` must be after `from`, got from 10 to 10")
refuses('tl:png("x", {from=1e9, to=2e9})', ("user.lua:1: png: `from` is 1000000000, and the timeline ends at %d"):format(tl.cycles))
refuses('mr.compare(tl, other, {names={"a"}})', 'user.lua:1: compare: names are two texts, as in {names={"serial", "overlap"}}, got table')
refuses('mr.compare(tl, other, {names={"a", "a"}})', "user.lua:1: compare: both are called 'a'")
refuses('mr.compare(tl, other, {name="a"})', "user.lua:1: compare: unknown option 'name'; did you mean 'names'?")
refuses("mr.roofline{}", "user.lua:1: roofline: list of kernels expected, got table")
refuses("mr.roofline{3}", "user.lua:1: roofline: kernel, plan or timeline expected as entry 1, got 3")
refuses("mr.progress(3)", "user.lua:1: progress: table of searches expected, got 3")
refuses("mr.progress{}", "user.lua:1: progress: there is no search to draw")
refuses("mr.progress{a=3}", "user.lua:1: progress: what a search tried expected as a, got 3")
refuses("mr.progress(setmetatable({}, {__len = function() return 1 << 40 end}))", "user.lua:1: progress: there is no search to draw")
local endless = setmetatable({}, {__index = function() return {predicted = 1} end, __len = function() return 1 << 40 end})
is(tostring(mr.progress{endless = endless}),
  "endless: 0 plans tried, nothing found", "a table without end has what is in it")
refuses("mr.progress{a={{}}}", "user.lua:1: progress: what a search tried expected as a, got table")
refuses("mr.progress{[true]={}}", "user.lua:1: progress: names are strings, got true")
refuses("local t = {} for i = 1, 13 do t['s' .. i] = {} end mr.progress(t)",
  "user.lua:1: progress: at most 12 searches are drawn, got 13")
refuses('mr.progress{a={}}:svg("x", {rings=true})', "user.lua:1: svg: unknown option 'rings' (known: show, width, height, theme, title, scale, preset)")
refuses('mr.progress{a={}}:svg()', "user.lua:1: svg: path of a file expected, got nil")
refuses('tl:frames("/nowhere/x")', "user.lua:1: cannot create the folder /nowhere/x: No such file or directory")

refuses('tl:svg{show=true}', "user.lua:1: svg: only a png can be shown")
refuses('tl:png{show=1}', "user.lua:1: png: show must be true or false, got 1")
if not require "millrace.core".terminal().color then
  refuses('tl:png{show=true}', "user.lua:1: png: the picture cannot be shown here: standard output is not a terminal")
end

---- traces ---------------------------------------------------------------------------

-- JSON as far as traces have it.
local function parse(text)
  local at = 1
  local value
  local function skip() at = text:find("[^ \n\r\t]", at) or #text + 1 end
  local function expect(c)
    skip()
    if text:sub(at, at) ~= c then error(("%s expected at %d"):format(c, at)) end
    at = at + 1
  end
  local function string()
    expect '"'
    local parts = {}
    while true do
      local from, to, plain, c = text:find('^([^"\\]*)(["\\])', at)
      if not from then error "string without end" end
      parts[#parts + 1] = plain
      at = to + 1
      if c == '"' then return table.concat(parts) end
      parts[#parts + 1] = text:sub(at, at)
      at = at + 1
    end
  end
  local function list(close, item)
    at = at + 1
    skip()
    if text:sub(at, at) == close then at = at + 1 return end
    while true do
      item()
      skip()
      local c = text:sub(at, at)
      at = at + 1
      if c == close then return end
      if c ~= "," then error("comma expected at " .. at) end
    end
  end
  function value()
    skip()
    local c = text:sub(at, at)
    if c == '"' then return string() end
    if c == "{" then
      local t = {}
      list("}", function() skip() local key = string() expect ":" t[key] = value() end)
      return t
    elseif c == "[" then
      local t = {}
      list("]", function() t[#t + 1] = value() end)
      return t
    end
    local from, to = text:find("^%-?%d+%.?%d*", at)
    if not from then error("value expected at " .. at) end
    at = to + 1
    return tonumber(text:sub(from, to))
  end
  local v = value()
  skip()
  if at <= #text then error "more after the end" end
  return v
end

local function check_trace(path, processes, rings)
  local events = parse(read(path)).traceEvents
  local tracks, flows, names, counters, overlaps, unnamed, halves, backward = {}, {}, {}, {}, 0, 0, 0, 0
  for _, e in ipairs(events) do
    local track = ("%d/%d"):format(e.pid, e.tid)
    if e.ph == "X" then
      tracks[track] = tracks[track] or {}
      table.insert(tracks[track], e)
    elseif e.ph == "s" or e.ph == "f" then
      flows[e.id] = flows[e.id] or {}
      flows[e.id][e.ph] = e
    elseif e.ph == "M" and e.name == "thread_name" then
      names[track] = e.args.name
    elseif e.ph == "M" and e.name == "process_name" then
      names[e.pid] = e.args.name
    elseif e.ph == "C" then
      counters[e.name] = (counters[e.name] or 0) + 1
      if e.args.full < 0 or e.args.full > 3 or e.args["being filled"] < 0 then counters.wrong = true end
    end
  end
  local n, issued, lanes = 0, 0, {}
  for track, list in pairs(tracks) do
    if not names[track] then unnamed = unnamed + 1 end
    lanes[names[track] or ""] = true
    table.sort(list, function(a, b) return a.ts < b.ts end)
    for _, e in ipairs(list) do if e.cat == "issue" then issued = issued + 1 end end
    for i = 2, #list do
      if list[i].ts < list[i - 1].ts + list[i - 1].dur - 1e-7 then overlaps = overlaps + 1 end
    end
    n = n + #list
  end
  local inside, issues = 0, 0
  for _, f in pairs(flows) do
    if not f.s or not f.f then halves = halves + 1 elseif f.f.ts < f.s.ts then backward = backward + 1 end
    if f.f then
      for _, e in ipairs(tracks[("%d/%d"):format(f.f.pid, f.f.tid)]) do
        if e.ts <= f.f.ts and f.f.ts < e.ts + e.dur then inside = inside + 1 break end
      end
      if f.f.name == "issue" then issues = issues + 1 end
    end
  end
  local count = 0
  for _ in pairs(flows) do count = count + 1 end
  ok(n > 100 and count > 50, path .. " has events and flows", n, count)
  is(overlaps, 0, "nothing overlaps on a track")
  is(halves, 0, "every flow has both ends")
  is(backward, 0, "no flow leads back in time")
  is(inside, count, "each leads into an event")
  ok(issued > 20, "asynchronous sTasks are issued", issued)
  is(issues, issued, "and a flow leads from each issue to its work")
  is(unnamed, 0, "every track has a name")
  ok((lanes["lane c0"] or lanes["lane c0 wg0"] and lanes["lane c0 wg1"]) and lanes["lane p0"] and lanes.tensor and lanes.tma, "lanes and units are named")
  for ring in (rings or "b c"):gmatch "%w+" do ok(counters["ring " .. ring], "a counter for ring " .. ring) end
  ok(not counters.wrong, "no ring holds more than its versions")
  for i, name in ipairs(processes) do like(names[i], name, "process " .. i) end
  is(names[#processes + 1], nil, "no other process")
end

tl:trace(dir .. "/one.json")
check_trace(dir .. "/one.json", {"^predicted: two_products on h200"})
-- A program of two phases, of which the second takes longer.
local two = mr.program("two_phases", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, T, C = p:input("A", {m, k}), p:input("B", {k, n}), p:temp("T", {m, k}), p:output("C", {m, n})
  p:phase("scale", function() T:store("store_t", (p:load("load_a", A) * 2):to "bf16") end)
  p:phase("product", function()
    local c = p:carry("c", {m, n}, 0)
    p:loop(k, function() c:add(p:mma("mma", p:load("load_t", T), p:load("load_b", B))) end)
    C:store("store_c", c)
  end)
end)
local phased = mr.plan(two:bind{m = 2048, n = 2048, k = 2048}:graph{tile = {m = 128, n = 128, k = 64}}, mr.device "h200")
phased:lane("c0", {warps = 8})
for _, task in ipairs(phased.tasks) do phased:append(task.name, {lane = "c0"}) end
phased:fill_waits()
phased = phased:simulate()
ok(phased.phases[2].cycles > phased.phases[1].cycles, "the second phase takes longer")
like(phased:text(), "phase product:", "the phase that takes longest is drawn")
like(phased:text{phase = "scale"}, "phase scale:", "  another one by its name")
is(phased:text{phase = 1}, phased:text{phase = "scale"}, "  or by its number")
for phase, o in pairs{product = {}, scale = {phase = "scale"}} do
  o.preset = "slide"
  phased:svg(dir .. "/phase.svg", o)
  like(read(dir .. "/phase.svg"), "phase " .. phase .. ", %d", "a slide says which phase it shows: " .. phase)
  mr.compare(phased, phased, {names = {"a", "b"}}):svg(dir .. "/phase.svg", o)
  like(read(dir .. "/phase.svg"), "phase " .. phase .. "<", "  that of a comparison, too")
end
do
  local function on(device)
    local p = mr.plan(graph, mr.device(device))
    p:lane("c0", {warps = 4})
    p:propagate{m = 64, n = 64}
    for _, task in ipairs(p.tasks) do p:append(task.name, {lane = "c0"}) end
    p:fill_waits()
    return p:simulate()
  end
  local one, two = on "a100", on "h200"
  local c = mr.compare(one, two)
  is(table.concat(c.names, " "), "a100 h200", "timelines on two devices are called by these")
  c:svg(dir .. "/devices.svg", {preset = "slide"})
  local text = read(dir .. "/devices.svg")
  like(text, ("a100 above h200, which takes %.2f times as long"):format(two.seconds / one.seconds), "  a slide, too, with times instead of cycles")
  ok(not text:find "two_products on NVIDIA", "  and no device in its title")
end
do
  local p = mr.plan(mr.examples.topk_routing{m = 16384, n = 256, k = 2}:graph{tile = {m = 16}}, mr.device "h200")
  p:lane("p0", {warps = 1})
  p:lane("c0", {warps = 4, replicas = 2})
  for _, task in ipairs(p.tasks) do p:append(task.name, {lane = task.kind == "load" and "p0" or "c0"}) end
  p:fill_waits()
  p:wait("select", {"store_weight1", "store_expert1", "store_weight2", "store_expert2"})
  p:svg(dir .. "/waits.svg", {preset = "slide"})
  local text = read(dir .. "/waits.svg")
  ok(not text:find("\u{2026}", 1, true) and select(2, text:gsub(">[^<]*store_expert2", "")) >= 2, "a slide with space shows all waits")
end
do
  local function plan_of(sizes, tile)
    local p = mr.plan(prog:bind(sizes):graph{tile = tile}, mr.device "h200")
    p:lane("p0", {warps = 1})
    p:lane("c0", {warps = 8})
    for _, task in ipairs(p.tasks) do p:append(task.name, {lane = task.kind == "load" and "p0" or "c0"}) end
    p:fill_waits()
    return p
  end
  local r = mr.roofline{plan_of({m = 1024, n = 2048, k = 64, l = 64}, {m = 128, n = 128}), plan_of({m = 1024, n = 4096, k = 64, l = 64},
    {m = 128, n = 128}), {plan, name = "mine"}}
  is(r.points[1].name .. ", " .. r.points[2].name .. ", " .. r.points[3].name, "two_products n=2048, two_products n=4096, mine",
    "names of a roofline say which sizes differ")
  r = mr.roofline{plan, plan_of({m = 1024, n = 2048, k = 64, l = 64}, {m = 64, n = 128})}
  is(r.points[1].name .. ", " .. r.points[2].name, "two_products tile m=128, two_products tile m=64", "  or which tile")
  mr.roofline{plan, plan_with(2), plan_with(1)}:svg(dir .. "/alike.svg", {preset = "slide"})
  local text = read(dir .. "/alike.svg")
  is(select(2, text:gsub(">%d two_products</text>", "")), 3, "  and where nothing does, the list alone has the name")
  local number, lines, without = {}, 0, 0
  for at in text:gmatch '<text x="([%d.]+)" [^>]*text%-anchor="middle"[^>]*>[%d,]+</text>' do number[at] = true end
  for x0, x1 in text:gmatch '<line x1="([%d.]+)" y1="[%d.]+" x2="([%d.]+)" y2="[%d.]+" stroke="#dfe2e6"' do
    if x0 == x1 then lines, without = lines + 1, without + (number[x0] and 0 or 1) end
  end
  ok(lines >= 3 and without == 0, "  and each line of the grid has a number", without .. " of " .. lines .. " have none")
end
do  -- an iteration that is long for its sTasks: the window has all of it
  local p = mr.plan(mr.examples.gemm{m = 1024, n = 1024, k = 2048}:graph{tile = {m = 64, n = 64, k = 64}}, mr.device "h200")
  p:lane("p0", {warps = 1})
  p:lane("c0", {warps = 4})
  for _, task in ipairs(p.tasks) do p:append(task.name, {lane = task.kind == "load" and "p0" or "c0"}) end
  p:fill_waits()
  local long = p:simulate()
  local from, to = long:text{width = 40}:gsub(",", ""):match "cycles (%d+) to%s+(%d+)"
  ok(to - from >= math.floor(long.ii), "a window shows an iteration at least", ("%s to %s, II %.0f"):format(from, to, long.ii))
end
do  -- a unit takes the next product before the result of the last one is seen; a cycle of rounding is no second row
  mr.load_plan "attention_overlap":simulate():svg(dir .. "/row.svg", {preset = "slide"})
  local heights, n = {}, 0
  for y in read(dir .. "/row.svg"):gmatch '<text x="[%d.]+" y="([%d.]+)" font%-size="[%d.]+" text%-anchor="middle" fill="%#ffffff">p%d</text>' do
    n = n + (heights[y] and 0 or 1)
    heights[y] = true
  end
  is(n, 1, "products that follow each other are on one row")
  ok(not read(dir .. "/row.svg"):find "to its result", "  and the legend has no mark that the next bar hides")
end
local wrong, message = pcall(phased.text, phased, {phase = "scal"})
like(not wrong and message, "text: unknown phase 'scal'; did you mean 'scale'%?", "a phase that is not there")

mr.compare(tl, other):trace(dir .. "/two.json")
check_trace(dir .. "/two.json", {"^first: ", "^second: "})
-- A lane of two groups issues its second part while the unit already works at the first.
local serial = mr.load_plan("attention_serial", mr.examples.flash_attention{b = 1, h = 1, m = 512, n = 2048, d = 128})
serial:simulate():trace(dir .. "/groups.json")
check_trace(dir .. "/groups.json", {"^predicted: flash_attention on h200"}, "q k v")
refuses('tl:trace("/dev/full")', "user.lua:1: cannot write /dev/full: No space left on device")

-- What was measured on the host, where a stamp is all the time there is.
local small = prog:bind{m = 128, n = 256, k = 64, l = 64}
local p2 = mr.plan(small:graph{tile = {m = 128, n = 128}}, mr.device "h200")
p2:lane("p0", {warps = 1})
p2:lane("c0", {warps = 8})
for _, task in ipairs(p2.tasks) do p2:append(task.name, {lane = task.kind == "load" and "p0" or "c0"}) end
p2:fill_waits()
local measured = p2:compile{target = "host"}:trace()
measured:svg(dir .. "/measured.svg")
like(read(dir .. "/measured.svg"), "measured: ", "a measured timeline says so")
measured:trace(dir .. "/measured.json")
ok(parse(read(dir .. "/measured.json")).traceEvents[1] ~= nil, "its trace parses")

os.execute("rm -rf " .. dir)
tap.done_testing()
