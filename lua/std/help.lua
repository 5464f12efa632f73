-- help.lua - help(topic): a short text for everything a script or the shell can call, for fields,
-- words, problems and keys. The texts are those of topics.lua; an example's help is the comment at
-- the head of its file.

local core = require "millrace.core"

local sections = {}                                     -- in order: {title, names...}
local topics = {}                                       -- name -> {call, text}

local function section(title)
  return function(entries)
    local names = {title = title}
    for i, entry in ipairs(entries) do
      names[i] = entry[1]
      topics[entry[1]] = {call = entry[3] and entry[2], text = entry[3] or entry[2]}
    end
    sections[#sections + 1] = names
  end
end

section "The shell" {
  {"start", [[
A tile program says what to compute. Binding sizes makes it concrete, a tile shape
makes it a graph of sTasks, a plan says which unit runs which sTask when, and the
simulator plays the plan against a model of the device:
  bound = mr.examples.gemm{m=4096, n=4096, k=4096}
  found = mr.search(bound, mr.device "h200", {seconds=10})
  found.plan
  found.plan:simulate():print()]]},
  {"shell", [[
A line that is an expression shows its value, and `_` holds the last one. A chunk that
is not finished goes on after the prompt >>. TAB completes names, fields, methods and
files; the arrows and Ctrl-R search the history; Ctrl-C drops the line or stops what
runs (twice within a second ends the shell); quit(), exit or Ctrl-D leaves.]]},
  {"explorer", [[
tl:show(), plan:show(), graph:show(), k:show() and mr.show(a, b) take the terminal to show
a timeline, plan, graph or kernel, or two beside each other: to look at, step through and
edit. ? has its keys, mr.keys() too; q leaves. Without a terminal they print.]]},
  {"mr.show", "mr.show(x[, y])", "The explorer on a timeline, plan, graph or kernel; on two, compared."},
  {"mr.keys", "mr.keys()", "The keys of the explorer: a list of {group=, keys=, help=}."},
  {"mr.strict", "mr.strict([on])", [[
Makes reading a global or field that there is not an error, in all code; in the shell it is one in
what is typed. mr.strict(false) ends that. rawget(_G, "name") asks whether there is a global.]]},
  {"mr.lesson", 'mr.lesson(name[, {all=true}])', [[
Plays a lesson of examples/lessons: in a terminal step by step (Enter: on, b: back, q: leave),
with all=true, or elsewhere, in one go. What its code makes is there afterwards: plan:show().
mr.lesson{title=, idea=, steps...} says one; docs/reference.md has the steps.]]},
  {"mr.lessons", "mr.lessons()", "The lessons on software pipelining, in order: a list, shown with names and titles."},
  {"lesson", "What mr.lessons() has. Fields: name, number, title, idea."},
  {"lesson:pages", "lesson:pages{width=}", [[
Does all steps of a lesson: a list of {kind=, ...}, and a table of the names that its code makes.]]},
  {"help", "help(topic)", [[
Text about a topic, a function or an object: help "plan", help(mr.search), help(bound).]]},
}

section "Devices and programs" {
  {"mr.version", "The version of Millrace, a string."},
  {"mr.home", "The folder that has hw/ and examples/, a string."},
  {"mr.devices", "mr.devices()", "Names of the devices that hw/ describes."},
  {"mr.device", "mr.device([name or path], [changes])", [[
A device as a scheduler sees it: units, memories, limits, read from hw/NAME.lua.
Without a name, the one that is attached, which must be as the file says; or, if none is,
the H200 as a model. What if it had other numbers: {["seu.cuda.ops.sfu"]=32}.]]},
  {"mr.attached", "mr.attached()", [[
The GPU of this machine: {name=, arch=, sms=, memory=, partition=, driver=, power_limit=,
trouble=}; or nil and why there is none. trouble: why times taken now cannot be trusted.]]},
  {"mr.calibrate", "mr.calibrate(path)", [[
Measures the attached device with kernels made of plans, and writes its file: that of
hw/ with the numbers that were measured. Takes a minute or two.]]},
  {"device", [[
What mr.device gives. Fields: name, title, arch, eus, clock_hz, seus. Shown as a table
of all numbers the model uses; device:number "memory.l2.rate" is one of them.]]},
  {"mr.examples", [[
The programs that come with Millrace, from examples/: mr.examples.gemm{m=..., n=...,
k=...} is a bound program. help "gemm" tells its sizes and options.]]},
  {"mr.program", "mr.program(name, function(p) ... end)", [[
A tile program. The function runs when sizes are bound; see help "p".]]},
  {"program", "What mr.program gives: program:bind{...}, or program{...}, makes it concrete."},
  {"program:bind", "program:bind{m=4096, n=4096, dtype=\"bf16\"}", [[
The program with concrete sizes, by the names of its axes, and options. A key that the
program does not know is an error.]]},
  {"bound", [[
A program with sizes. Fields: name, axes, tensors. Methods: graph, inputs, reference.]]},
  {"bound:graph", "bound:graph{tile={m=128, n=256, k=64}}", [[
Propagate the tile shape through the program: the sTask-graph.]]},
  {"bound:inputs", "bound:inputs{seed=1}", "Random arrays for every input, by name."},
  {"bound:reference", "bound:reference(inputs[, {tile=, round=, on=, limit=, seed=}])", [[
The answer in double precision, by a plain interpreter on the CPU. on="host" or "device":
by a plain kernel made from the program alone, for larger sizes. With round=true, values
are rounded to their dtypes as a kernel would.]]},
  {"mr.array", "mr.array(dtype, {size, ...}[, fill])", [[
An array of zeros, or filled by a number, a table of all elements, or a function of the
position.]]},
  {"array", [[
Elements packed by type, row-major. a[i] counts from 1. Field: dtype. Methods: get, set,
shape, copy, fill, max_error.]]},
  {"array:get", "a:get(i, j, ...)", "One element, positions counted from 1."},
  {"array:set", "a:set(value, i, j, ...)", "Set one element."},
  {"array:shape", "a:shape()", "The sizes of all dimensions."},
  {"array:copy", "a:copy([dtype])", "A new array with the same elements, converted if asked."},
  {"array:fill", "a:fill(number, table or function)", "Set all elements."},
  {"array:max_error", "a:max_error(b)", "Two numbers: the largest difference, and the relative one (norms)."},
}

section "The tile language" {
  {"p", [[
What the function of a program is given. It makes axes and tensors, loads and stores
tiles, and groups work into sTasks. p.NAME is an option given to bind, or nil.
A value is a tile over named axes; arithmetic matches axes by name and broadcasts.]]},
  {"p:axes", 'p:axes("m", "n", ...)', "Axes whose sizes bind gives."},
  {"p:axis", "p:axis(name, size)", "An axis with a size that the program computes."},
  {"p:input", "p:input(name, dims[, dtype])", [[
A tensor in global memory, row-major, the last dimension contiguous; dtype is p.dtype or
"bf16" unless given.]]},
  {"p:output", "p:output(name, dims[, dtype])", "A tensor that the program writes."},
  {"p:temp", "p:temp(name, dims[, dtype])", "A tensor that passes from one phase to a later one."},
  {"p:batch", "p:batch(b, h)", "A tile has exactly one value of these axes."},
  {"p:load", "p:load([name,] tensor[, index])", [[
A tile of a tensor. index: one affine expression a dimension, of axes and numbers with
+ - * and, by numbers, // and %. Outside the tensor is zero.]]},
  {"p:mma", "p:mma([name,] a, b)", "Matrix product: contracts every axis that both have; f32."},
  {"p:loop", "p:loop(axis or {axes}[, {from=, upto=}], function() ... end)", [[
The tiles of the axes in order. Tiles wholly outside [from, upto] are not visited.]]},
  {"p:carry", "p:carry(name, axes, init)", [[
A tile-valued variable; c:set(v) assigns, c:add(v) accumulates.]]},
  {"p:task", "p:task(name, function() ... return v end)", [[
Element-wise work that is one sTask; returns what the function returns.]]},
  {"p:phase", "p:phase(name, function() ... end)", "A grid of its own; phases run one after another."},
  {"p:option", "p:option(name, kind[, default])", [[
An option that bind was given: a "number", a "whole" number or a "boolean"; of another kind it
is blamed on bind.]]},
  {"p:check", "p:check(condition, message)", "What the program asks of its sizes, blamed on bind."},
  {"tensor", "What p:input, p:output and p:temp give."},
  {"tensor:store", "tensor:store([name,] value[, index])", "Write a tile."},
  {"axis", "A named dimension. Fields: name, size."},
  {"axis:index", "axis:index()", "The global index along the axis, i32."},
  {"value", [[
A tile over named axes. + - * / and unary -, & | ~ << >> on i32, element by element.
Comparisons are methods: a:lt(b) le gt ge eq ne. Each function of one value is a method
too: x:exp2(), s:rowmax(n).]]},
  {"value:to", "v:to(dtype)", [[
Cast: f64 f32 tf32 f16 bf16 e4m3 e5m2 e2m1 i32 i8 i4.]]},
  {"carry", "A tile-valued variable of p:carry; used as a value, it is what it holds there."},
  {"carry:set", "c:set(v)", "Assign."},
  {"carry:add", "c:add(v)", "Add; a matrix product then accumulates in place."},
  {"mr.where", "mr.where(c, x, y)", "x where c, else y."},
  {"mr.max", "mr.max(a, b, ...)", "Element-wise maximum."},
  {"mr.min", "mr.min(a, b, ...)", "Element-wise minimum."},
  {"mr.exp2", "mr.exp2(x)", "Two to the power of x; the fast one on GPUs."},
  {"mr.exp", "mr.exp(x)", "e to the power of x."},
  {"mr.log2", "mr.log2(x)", "Logarithm to base two."},
  {"mr.log", "mr.log(x)", "Natural logarithm."},
  {"mr.sqrt", "mr.sqrt(x)", "Square root."},
  {"mr.rsqrt", "mr.rsqrt(x)", "One over the square root."},
  {"mr.tanh", "mr.tanh(x)", "Hyperbolic tangent."},
  {"mr.abs", "mr.abs(x)", "Absolute value."},
  {"mr.floor", "mr.floor(x)", "Round towards minus infinity."},
  {"mr.sigmoid", "mr.sigmoid(x)", "1 / (1 + exp(-x))."},
  {"mr.silu", "mr.silu(x)", "x * sigmoid(x)."},
  {"mr.gelu", "mr.gelu(x)", "Gaussian error linear unit, its tanh form."},
  {"mr.rowsum", "mr.rowsum(v, axis)", "Sum along an axis."},
  {"mr.rowmax", "mr.rowmax(v, axis)", "Maximum along an axis."},
  {"mr.rowmin", "mr.rowmin(v, axis)", "Minimum along an axis."},
  {"mr.cumsum", "mr.cumsum(v, axis)", "Inclusive running sum along an axis."},
  {"mr.cummax", "mr.cummax(v, axis)", "Running maximum along an axis."},
  {"mr.cummin", "mr.cummin(v, axis)", "Running minimum along an axis."},
  {"mr.unpack", "mr.unpack(v, from, to, dtype)", [[
i32 words over the axis `from` as elements over the axis `to`, lowest bits first.]]},
}

section "Graphs and plans" {
  {"graph", [[
What Propagate makes of a program: sTasks, the buffers between them, and what each waits
for. Plain tables: graph.tasks, graph.edges, graph.buffers, graph.tile. Numbers:
graph.tiles, graph.flops, graph.bytes. graph.program is the program. Shown as a table.]]},
  {"graph:table", "graph:table{width=, ascii=, color=}", "Axes, sTasks, buffers and dependences as text."},
  {"graph:show", "graph:show()", "The explorer on it: help \"explorer\""},
  {"graph:drawing", "graph:drawing{width=, ascii=, color=}", "The graph drawn in layers, as text."},
  {"graph:png", "graph:png(path[, {...}])", "The graph as a picture; graph:svg, graph:pdf. help \"pictures\""},
  {"graph:svg", "graph:svg(path[, {...}])", "The graph as a picture whose text stays text. help \"pictures\""},
  {"graph:pdf", "graph:pdf(path[, {...}])", "The graph as a picture for print. help \"pictures\""},
  {"graph:dot", "graph:dot()", "The graph as text for Graphviz."},
  {"mr.plan", "mr.plan(graph[, device])", "An empty plan for a graph on a device."},
  {"plan", [[
Who runs what, when, waiting for whom: an order of sTasks for every lane. Fields: tasks,
edges, tile (as they are after splits), rings, usage, graph, device. Shown as a table.]]},
  {"plan:lane", "plan:lane(name, {warps=, registers=, turns=})", [[
Declare a lane or change it. registers: of a thread; without it, what the lane needs.
turns=n: n such lanes, which take the output tiles in turn.]]},
  {"plan:append", 'plan:append(task, {seu="tensor", lane="c0", at=1})', [[
Give an sTask to a unit and a lane, after what was appended before. at: how many
iterations ahead it runs. Without options: the unit that such work goes to, lane "p0"
for copies, else "c0".]]},
  {"plan:move", 'plan:move(task, {at=, before=, after=, lane=, seu=, settle=})', [[
Change the offset of an sTask, its place in the order, its lane or unit; what is not named
stays. "mma" moves all parts mma.0, mma.1, ... alike. Waits that are needed then come,
needless ones go, and versions rise to what the order needs, unless settle=false.]]},
  {"plan:insert", 'plan:insert(task, {at=, before=, after=, lane=, seu=, settle=})', [[
Append an sTask at a place, on the lane of the one beside it; then as plan:move.]]},
  {"plan:remove", "plan:remove(task)", "Take an sTask out of the plan."},
  {"plan:wait", 'plan:wait(task, {other, {other, distance=1, when="issued"}, ...})', [[
Let a task wait for others. Without a distance, for the iterations that the graph's
dependences between the two name. when: "complete" unless given, or "issued".]]},
  {"plan:unwait", "plan:unwait(task, other)", "Take out the waits of one task for another."},
  {"plan:fill_waits", "plan:fill_waits()", "Add the waits that are missing; how many."},
  {"plan:buffers", "plan:buffers{k=3, v=3}", "How many versions each buffer has."},
  {"plan:grid", 'plan:grid{raster="rows", group=8, eus=, longest_first=, cluster=}', [[
How output tiles go over the EUs. raster: "rows" or "columns"; group: so many of them are
walked together; longest_first: tiles with most iterations first; cluster: so many EUs
take neighbouring tiles together and load what is the same for all of them once.]]},
  {"plan:split", "plan:split(axis, ways[, {task, ...}])", [[
Divide tasks along an axis: mma becomes mma.0, mma.1, ... Without a list, every task
but loads that has the axis. Before these are appended.]]},
  {"plan:cut", "plan:cut(value, task)", [[
The last step to a value, such as a conversion, is an sTask of its own, called `task`. So it
can come later than the rest. Before it is split or appended.]]},
  {"plan:place", "plan:place{value=other, ...}", [[
A value lies where another one was, once that has been read: in its registers, or in the
room of its ring.]]},
  {"plan:propagate", "plan:propagate{m=128, n=256, k=64}", "Change tile extents."},
  {"plan:undo", "plan:undo()", "Take the last edit back; plan:redo() makes it again."},
  {"plan:redo", "plan:redo()", "Make an undone edit again."},
  {"plan:copy", "plan:copy()", "A plan of its own with the same statements, whose edits can be undone, too."},
  {"plan:diff", "plan:diff(other)", [[
What to take out of a plan and to put in to have the other: a list of {"-" or "+", statement}.
Shown with the lines around.]]},
  {"plan:try", "plan:try(function(p) ... end[, {keep=true}])", [[
Edit the plan, see what that brings, and take it back: .diff .came .went (waits) .ok .problems
.before .after (timelines) .gain .tie; .keep() makes the edits again.]]},
  {"plan:check", "plan:check()", [[
true or false, and a list of problems {code=, message=, hint=, task=, other=, edge=,
place=}.]]},
  {"plan:table", "plan:table{width=, ascii=, color=}", "Lanes, waits, rings and problems as text."},
  {"plan:png", "plan:png(path[, {...}])", "The plan as a table of turns; plan:svg, plan:pdf. help \"pictures\""},
  {"plan:svg", "plan:svg(path[, {...}])", "The plan as a table of turns. help \"pictures\""},
  {"plan:pdf", "plan:pdf(path[, {...}])", "The plan as a table of turns. help \"pictures\""},
  {"plan:script", "plan:script()", "Lua text that rebuilds exactly this plan."},
  {"mr.load_plan", "mr.load_plan(path or name[, bound])", [[
A plan from the text that plan:script() gave, or by name one of examples/, such as
"attention_pingpong". bound: another program, or other sizes.]]},
  {"plan:show", "plan:show()", "The explorer on it; returned if it was edited. help \"explorer\""},
  {"plan:simulate", "plan:simulate{events=}", [[
Play the plan against the device's model: a timeline. events: how many to keep.]]},
  {"plan:compile", 'plan:compile{target="cuda", text=, without=}', [[
Generate and build the kernel. text=true: its text alone. without={"clear", "parts", "before"}:
leave out passes of lowering, to see what they bring.]]},
  {"plan:kernel", 'plan:kernel{target="cuda"}', [[
The role program: what each lane does, operation by operation, and why each wait is there.
tostring() is the dump, .text too.]]},
  {"mr.search", "mr.search(bound[, device[, {seconds=60, trials=2000}]])", [[
Find a good plan by simulating many. Ctrl-C stops it and keeps the best so far. Gives
.plan (a copy at each reading) .timeline .seconds .ii .bound .gap .bound_seconds .proven
.trials .shapes .pruned .ended and why(); or nil and a message.]]},
}

section "Timelines and kernels" {
  {"pictures", [[
tl:png(path), plan:png, graph:png, mr.compare(a, b):png, mr.roofline{k, ...}:png, and svg and
pdf of each, write a picture, with the script that makes it in the file. Options: width=,
height= (pixels), theme="light" or "dark", title=, scale= (of a png: file's pixels for one);
of timelines also by="lane", "seu" or "ring", phase=, tile=, from=, to=, rings=true. A png with
show=true comes up in the terminal, where that can be: tl:png{show=true}.]]},
  {"timeline", [[
What ran when. Fields: cycles, seconds, tflops, ii, bound, res_mii, rec_mii, utilization,
events, phases, measured, unit, program, unpriced, cache, played; of a trace also overhead,
clock_hz, kernel. Shown as a drawing.]]},
  {"timeline:print", 'timeline:print{width=, by="lane", phase=, tile=, from=, to=, ascii=, color=}', [[
Draw it on the standard output. by: "lane" or "seu". It begins with a tile or a cycle.]]},
  {"timeline:show", "timeline:show()", "The explorer on it; an edited plan is returned. help \"explorer\""},
  {"timeline:text", "timeline:text{...}", "What timeline:print writes, as a string."},
  {"timeline:png", 'timeline:png(path[, {by=, from=, to=, tile=, phase=, rings=, theme=, ...}])', [[
The timeline as a picture. help "pictures"]]},
  {"timeline:svg", "timeline:svg(path[, {animate=true, seconds=12, ...}])", [[
The timeline as a picture whose text stays text and whose bars tell about themselves when they
are pointed at; animate: time passes. help "pictures"]]},
  {"timeline:pdf", "timeline:pdf(path[, {...}])", "The timeline as a picture for print. help \"pictures\""},
  {"timeline:frames", 'timeline:frames(folder[, {count=24, format="png", from=, to=, ...}])', [[
A pipeline that fills up, as numbered pictures; their paths.]]},
  {"timeline:trace", "timeline:trace(path)", [[
A file for Perfetto or chrome://tracing: lanes, units, flows from cause to effect, rings.]]},
  {"timeline:summary", "timeline:summary{width=, ascii=, color=}", "The numbers without the drawing."},
  {"kernel", [[
What plan:compile gives. Fields: source, target, registers, spills, smem, problems, warnings,
plan.]]},
  {"kernel:run", "kernel:run(inputs[, {seed=, limit=}])", [[
Run it; gives the outputs by name. Inputs nil: random ones, which a device makes itself.]]},
  {"kernel:check", "kernel:check{seed=, reference=}", [[
Compare with the reference: .relative .max_abs .ok, and which reference it was: .reference.]]},
  {"kernel:show", "kernel:show()", "The explorer on its plan and what it is lowered to: help \"explorer\""},
  {"kernel:trace", "kernel:trace{seed=, inputs=, eu=, seconds=}", [[
Run it with time stamps: a timeline like that of plan:simulate, but measured. On the host,
which has no clock, it tells the order. eu: whose events are wanted.]]},
  {"mr.compare", "mr.compare(predicted, measured)", [[
Two timelines of one program, sTask by sTask: how long, how often, waiting, and what adds
most to the difference, with the causes that grew or shrank most. .rows and .causes for
scripts.]]},
  {"mr.compare:png", "mr.compare(a, b):png(path[, {...}])", [[
Both on one axis, one above the other, and how long each sTask takes; also svg and pdf. trace(path):
two processes in one file for Perfetto. help "pictures"]]},
  {"mr.roofline", "mr.roofline{x, ...}", [[
Kernels, plans or timelines between what the device can compute and what it can move; {x, name=,
ms=} names one, or gives its time. .points; png(path), svg, pdf. A kernel for the attached device
is timed; anything else is predicted.]]},
  {"timeline.blame", "timeline.blame", [[
Where the time of each lane goes, by sTask: rows with .lane .task .share and, by cause, .issue
.pipe .dependence .shared .l2 .global .slot .turn .sync .power; .parts says whom it is about.
Shown as a table.]]},
  {"timeline:why", "timeline:why()", [[
What binds a simulated timeline, and what would help by how much: other rings, tiles, lanes,
orders and grids are tried. Gives a text, and all that was tried, best first: .change .gain
.script.]]},
  {"kernel:bench", "kernel:bench{seconds=}", [[
Time it: .ms (median) .tflops .gbps .min .max .runs; .watts, the mean power, or nil; .cache,
"cold L2" or "warm L2".]]},
  {"kernel:export", "kernel:export(dir[, {name=}])", [[
Write it as files that stand alone: source, binary, C launcher, Python module for torch.
Of a kernel for the CPU: source, runtime, a driver and its makefile. Gives their paths.]]},
}
local explain = require "millrace.explain"
local known = require "millrace.topics"
local topics, sections = known.topics, known.sections

---- finding a topic -----------------------------------------------------------

-- Names by which our kinds of objects know themselves, where the topic has another.
local kinds = {["millrace.program"] = "bound", ["millrace.tile_program"] = "program",
  ["millrace.index"] = "p:load", ["millrace.search"] = "mr.search"}

-- "plan:move(task, ...)" -> "plan:move"; "steady state" stays, as there is such a topic.
local function trim(name)
  name = name:match "^%s*(.-)%s*$"
  return topics[name] and name or (name:gsub("[%s%(%{].*$", ""))
end

-- The comment at the head of examples/NAME.lua.
local function example(name)
  local file = name:find "^[%w_]+$" and io.open(core.home() .. "/examples/" .. name .. ".lua")
  if not file then return nil end
  local lines = {}
  for line in file:lines() do
    local text = line:match "^%-%- ?(.*)"
    if not text then break end
    lines[#lines + 1] = text
  end
  file:close()
  if lines[1] then return table.concat(lines, "\n") end
end

-- What objects are called in the texts -> what their topics begin with.
local short = {tl = "timeline", k = "kernel", r = "found", prog = "program", a = "array", e = "event",
  kernel = "kernel", v = "value", c = "carry", b = "benched"}

-- Topics that a text means: of that name, also a problem's; mr's; else a field or method anywhere.
local function find(name)
  local found = {topics[name], topics["check." .. name]}
  if not topics[name] then found = {topics["check." .. name]} end
  if #found == 0 then found[1] = topics["mr." .. name] end
  if #found > 0 then return found end
  for _, section in ipairs(sections) do
    for _, topic in ipairs(section) do
      for _, full in ipairs(topic.names) do
        local point = full:sub(-#name - 1, -#name - 1)
        if full:sub(-#name) == name and (point == "." or point == ":") and found[#found] ~= topic then
          found[#found + 1] = topic
        end
      end
    end
  end
  return found
end

local function name_of_function(f)
  for name, value in pairs(require "millrace") do
    if value == f then return "mr." .. name end
  end
  if f == _G.help then return "help" end
end

local function name_of_object(x)
  if x == require("millrace").examples then return "mr.examples" end
  if x == require "millrace" then return nil end
  local meta = debug.getmetatable(x)
  if type(meta) ~= "table" or type(x) == "string" then return nil end
  local kind = rawget(meta, "__metatable")
  kind = type(kind) == "string" and kind or rawget(meta, "__name")
  if type(kind) ~= "string" then return nil end
  if kind == "millrace.tile_program" and example(x.name) then return x.name end
  return kinds[kind] or kind:gsub("^millrace%.", "")
end

---- showing it ----------------------------------------------------------------

-- In the shell, a screen at a time.
local function put(text) (core.page or print)(text) end

local function show_all() put(explain.all(core.terminal().width)) end

local function unknown(name)
  local names, fields = {}, {}
  for full, topic in pairs(topics) do
    local list = topic.kind == "fields" and fields or names
    list[#list + 1] = full
    list[#list + 1] = full:match "[.:](.*)$"
  end
  table.sort(names)
  table.sort(fields)
  local near = core.hint(name, names)                   -- fields are many and short: after all else
  local text = ("no help about '%s'%s"):format(name, near ~= "" and near or core.hint(name, fields))
  print(table.concat(explain.fill(text, 0, core.terminal().width), "\n"))
end

local function help(...)
  local x = ...
  if select("#", ...) == 0 then return show_all() end
  if x == nil then return print "that is nil: nothing to tell about it" end
  if x == require "millrace" then return show_all() end
  local name = type(x) == "string" and trim(x)
    or type(x) == "function" and name_of_function(x) or name_of_object(x)
  if not name then return print("a " .. type(x) .. " of your own or of Lua's: no help about it") end
  local first, rest = name:match "^(%a+)([.:].+)$"
  if first and not topics[name] and short[first] then name = short[first] .. rest end
  local found = find(name)
  local texts = {}
  for i, topic in ipairs(found) do texts[i] = explain.topic(topic, core.terminal().width) end
  if #found > 0 then return put(table.concat(texts, "\n")) end
  local text = example(name)
  if text then put(text) else unknown(name) end
end

return help
