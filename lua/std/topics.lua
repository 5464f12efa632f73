-- topics.lua - a text about every name: the only source of help, of the manual page and of the generated parts of
-- docs/reference.md.
--
-- An entry has a name or several, for a call how it is written, and a text. A name with a point or colon is listed under
-- the topic before that sign. Lines of a text that begin with two spaces are kept as they are; the others are filled to
-- the width of the output. `fix` of a problem says how to repair it.

local core = require "millrace.core"

local sections = {}                                     -- in order: {title=, kind=, entries...}
local topics = {}                                       -- name -> {title=, call=, text=, fix=, note=, kind=}

-- kind: "fields", "problems", "words", "options", "environment", "keys"; none: calls and objects.
local function section(title, kind)
  return function(entries)
    local s = {title = title, kind = kind}
    for i, entry in ipairs(entries) do
      local topic = {title = entry[1], call = entry[3] and entry[2], text = entry[3] or entry[2], kind = kind,
        fix = entry.fix, note = entry.note, names = {}}
      for name in entry[1]:gmatch "[^,]+" do
        name = name:match "^%s*(.*)$"
        topics[name], topic.names[#topic.names + 1] = topic, name
      end
      s[i] = topic
    end
    sections[#sections + 1] = s
  end
end

-- The entries, and those of the functions that are operations (src/tile/ops.def).
local function with_operations(entries)
  for _, op in ipairs(core.operations()) do
    if op.help then entries[#entries + 1] = {op.call:match "^[%w.]+", op.call, op.help} end
  end
  return entries
end

section("The shell") {
  {"start", [[
A tile program says what to compute. Sizes make it concrete, a tile shape makes it a
graph of sTasks, a plan says which unit runs which sTask when, and the simulator runs the
plan on a model of the device:
  bound = mr.examples.gemm{m=4096, n=4096, k=4096}
  found = mr.search(bound, mr.device "h200", {seconds=10})
  found.plan
  found.plan:simulate():print()]]},
  {"shell", [[
A line that is an expression shows its value; `_` is the last one. An unfinished chunk
continues after the prompt >>. TAB completes names, fields, methods and files; the arrows and
Ctrl-R search the history, in which a chunk of several lines is one entry; lines such as :time
and :save are commands of the shell: help "commands". Ctrl-C drops the line or interrupts the
running chunk (twice within a second it ends the shell); quit(), exit or Ctrl-D leaves.]]},
  {"explorer", [[
tl:show(), plan:show(), graph:show(), k:show() and mr.show(a, b) show a timeline, plan, graph or
kernel, or two of them compared, on the whole terminal, to look at, step through and edit. ? lists
the keys, and so does mr.keys(); q leaves. Without a terminal they print. A running search can be
watched in the same way: help "watching".]]},
  {"watching", [[
mr.search(bound, device, {show=true}) shows the search on the whole terminal: the best so far, the
bound, the curve of the best against trials, the best and the last candidates. q or Ctrl-C stops it
and keeps the best. At the end any key leaves; Enter opens the best plan in the explorer. Without
show, or without a terminal, a line on standard error shows the progress.]]},
  {"mr.show", "mr.show(x[, y])", "The explorer on a timeline, plan, graph or kernel; on two, compared."},
  {"mr.keys", "mr.keys()", "The keys of the explorer: a list of {group=, keys=, help=}."},
  {"mr.strict", "mr.strict([on])", [[
Makes it an error to read a global or field that does not exist, in all code; in the shell, typed
lines are always strict. mr.strict(false) ends that. rawget(_G, "name") tests whether a global exists.]]},
  {"mr.lesson", 'mr.lesson(name[, {all=true}])', [[
Plays a lesson of examples/lessons: in a terminal step by step (Enter: on, b: back, q: leave);
elsewhere, or with all=true, without stopping. The objects that its code makes are there afterwards:
plan:show(). mr.lesson{title=, idea=, steps...} defines a lesson; docs/reference.md lists the steps.]]},
  {"mr.lessons", "mr.lessons()", "The lessons on software pipelining, in order: a list, shown with names and titles."},
  {"lesson", "An element of mr.lessons(). Fields: name, number, title, idea."},
  {"lesson:pages", "lesson:pages{width=}", [[
Runs all steps of a lesson: a list of {kind=, ...}, and a table of the variables that its code makes.]]},
  {"help", "help(topic)", [[
Text about a topic, a function or an object: help "plan", help(mr.search), help(bound).]]},
}

section("Devices and programs") {
  {"mr.version", "The version of Millrace, a string."},
  {"mr.home", "The folder that has hw/ and examples/, a string."},
  {"mr.devices", "mr.devices()", "Names of the devices that hw/ describes."},
  {"mr.device", "mr.device([name or path], [changes])", [[
A device as a scheduler sees it: units, memories, limits, read from hw/NAME.lua.
Without a name, the attached device, which must agree with its file; or, if none is
attached, the H200 as a model. changes: other numbers, {["seu.cuda.ops.sfu"]=32}.]]},
  {"mr.attached", "mr.attached()", [[
The GPU of this machine: {name=, arch=, sms=, memory=, partition=, driver=, power_limit=,
trouble=}; or nil and the reason. trouble: why times measured now cannot be trusted.]]},
  {"mr.calibrate", "mr.calibrate(path)", [[
Measures the attached device with kernels generated from plans, and writes a device file: the one
of hw/ with the measured numbers. Takes a minute or two.]]},
  {"device", [[
The result of mr.device. Fields: name, title, arch, eus, clock_hz, seus. Shown as a table
of all numbers the model uses; device:number "memory.l2.rate" is one of them.]]},
  {"device:number", "device:number(path)", "A number of its file: device:number \"memory.l2.rate\". help \"hw\" lists the paths."},
  {"mr.examples", [[
The programs that come with Millrace, from examples/: mr.examples.gemm{m=..., n=...,
k=...} is a bound program. help "gemm" lists its sizes and options.]]},
  {"mr.program", "mr.program(name, function(p) ... end)", [[
A tile program. The function runs when sizes are bound; see help "p".]]},
  {"program", "The result of mr.program: program:bind{...}, or program{...}, binds sizes."},
  {"program:bind", "program:bind{m=4096, n=4096, dtype=\"bf16\"}", [[
The program with sizes, by the names of its axes, and options. A key that the program
does not have is an error.]]},
  {"bound", [[
A program with sizes. Fields: name, axes, tensors. Methods: graph, inputs, reference.]]},
  {"bound:graph", "bound:graph{tile={m=128, n=256, k=64}}", [[
Propagate the tile shape through the program: the sTask-graph.]]},
  {"bound:inputs", "bound:inputs{seed=1}", "Random arrays for every input, by name."},
  {"bound:reference", "bound:reference(inputs[, {tile=, round=, on=, limit=, seed=}])", [[
The expected outputs in double precision, from an interpreter on the CPU. on="host" or "device":
from a simple kernel that is generated without a plan, for larger sizes. With round=true, values
are rounded to their dtypes as in a kernel.]]},
  {"mr.array", "mr.array(dtype, {size, ...}[, fill])", [[
An array of zeros, or filled with a number, a table of all elements, or a function of the
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

section("The tile language")(with_operations {
  {"p", [[
The builder: the argument of a program's function. It makes axes and tensors, loads and stores
tiles, and groups work into sTasks. p.NAME is an option given to bind, or nil.
A value is a tile over named axes; arithmetic matches axes by name and broadcasts.]]},
  {"p:axes", 'p:axes("m", "n", ...)', "Axes whose sizes bind gives."},
  {"p:axis", "p:axis(name, size)", "An axis with a size that the program computes."},
  {"p:input", "p:input(name, dims[, dtype])", [[
A tensor in global memory, row-major, the last dimension contiguous; dtype is p.dtype or
"bf16" unless given.]]},
  {"p:output", "p:output(name, dims[, dtype])", "A tensor that the program writes."},
  {"p:temp", "p:temp(name, dims[, dtype])", "A tensor that one phase writes and a later one reads."},
  {"p:batch", "p:batch(b, h)", "Batch axes: a tile has exactly one index of each."},
  {"p:load", "p:load([name,] tensor[, index])", [[
A tile of a tensor. index: one affine expression for each dimension, of axes and numbers with
+ - * and, by numbers, // and %. Elements outside the tensor are zero.]]},
  {"p:mma", "p:mma([name,] a, b)", "Matrix product: contracts every axis that both operands have; the result is f32."},
  {"p:loop", "p:loop(axis or {axes}[, {from=, upto=}], function() ... end)", [[
A loop over the tiles of the axes. Tiles outside [from, upto] are skipped.]]},
  {"p:carry", "p:carry(name, axes, init)", [[
A tile-valued variable; c:set(v) assigns, c:add(v) accumulates.]]},
  {"p:task", "p:task(name, function() ... return v end)", [[
Element-wise work that is one sTask; returns what the function returns.]]},
  {"p:phase", "p:phase(name, function() ... end)", "A grid of its own; phases run one after another."},
  {"p:option", "p:option(name, kind[, default])", [[
An option given to bind: a "number", an integer ("whole") or a "boolean". A value of another kind is an
error at bind.]]},
  {"p:check", "p:check(condition, message)", "A requirement of sizes or options; an error at bind if it does not hold."},
  {"tensor", "The result of p:input, p:output and p:temp."},
  {"tensor:store", "tensor:store([name,] value[, index])", "Write a tile."},
  {"axis", "A named dimension. Fields: name, size."},
  {"axis:index", "axis:index()", "The global index along the axis, i32."},
  {"value", [[
A tile over named axes. + - * / and unary -, & | ~ << >> on i32, element by element.
Comparisons are methods: a:lt(b) le gt ge eq ne. Each function of one value is a method
too: x:exp2(), s:rowmax(n).]]},
  {"value:to", "v:to(dtype)", [[
Cast: f64 f32 tf32 f16 bf16 e4m3 e5m2 e2m1 i32 i8 i4.]]},
  {"carry", "A tile-valued variable of p:carry; used as a value, it is its present value."},
  {"carry:set", "c:set(v)", "Assign."},
  {"carry:add", "c:add(v)", "Add; a matrix product then accumulates in place."},
  {"mr.exp", "mr.exp(x)", "e to the power of x."},
  {"mr.log", "mr.log(x)", "Natural logarithm."},
  {"mr.sigmoid", "mr.sigmoid(x)", "1 / (1 + exp(-x))."},
  {"mr.silu", "mr.silu(x)", "x * sigmoid(x)."},
  {"mr.gelu", "mr.gelu(x)", "Gaussian error linear unit, its tanh form."},
  {"mr.unpack", "mr.unpack(v, from, to, dtype)", [[
i32 words along the axis from, read as elements along the axis to, lowest bits first.]]},
})

section("Graphs and plans") {
  {"graph", [[
The result of Propagate: the sTasks of a program, the buffers between them, and their
dependences. Plain tables: graph.tasks, graph.edges, graph.buffers, graph.tile. Numbers:
graph.tiles, graph.flops, graph.bytes. graph.program is the program. Shown as a table.]]},
  {"graph:table", "graph:table{width=, ascii=, color=}", "Axes, sTasks, buffers and dependences as text."},
  {"graph:show", "graph:show()", "Opens the explorer: help \"explorer\""},
  {"graph:png", "graph:png(path[, {...}])", "The graph as a picture; graph:svg, graph:pdf. help \"pictures\""},
  {"graph:svg", "graph:svg(path[, {...}])", "The graph as a picture with selectable text. help \"pictures\""},
  {"graph:pdf", "graph:pdf(path[, {...}])", "The graph as a picture for print. help \"pictures\""},
  {"graph:drawing", "graph:drawing{width=, ascii=, color=}", "The graph drawn in layers, as text."},
  {"graph:dot", "graph:dot()", "The graph as text for Graphviz."},
  {"graph:json", "graph:json()", "sTasks, buffers and dependences as JSON. help \"json\""},
  {"mr.plan", "mr.plan(graph[, device])", "An empty plan for a graph on a device."},
  {"plan", [[
Who runs what, when, waiting for whom: an order of sTasks for every lane. Fields: tasks,
edges, tile (as they are after splits), rings, usage, graph, device. Shown as a table.]]},
  {"plan:lane", "plan:lane(name, {warps=, registers=, replicas=})", [[
Declare a lane or change it. registers: of a thread; without it, what the lane needs.
replicas=n: n such lanes, which take the output tiles in turn.]]},
  {"plan:append", 'plan:append(task, {seu="tensor", lane="c0", at=1})', [[
Give an sTask to a unit and a lane, after those appended before. at: how many
iterations ahead it runs. Without options: the unit for such work, lane "p0" for copies,
else "c0".]]},
  {"plan:move", 'plan:move(task, {at=, before=, after=, lane=, seu=, repair_waits=})', [[
Change the offset of an sTask, its place in the order, its lane or unit; what is not named
stays. "mma" moves all slices mma.0, mma.1, ... alike. Waits that are needed then come,
needless ones go, and versions rise to what the order needs, unless repair_waits=false.]]},
  {"plan:insert", 'plan:insert(task, {at=, before=, after=, lane=, seu=, repair_waits=})', [[
Append an sTask at a place, on the lane of the one beside it; then as plan:move.]]},
  {"plan:remove", "plan:remove(task)", "Remove an sTask from the plan."},
  {"plan:wait", 'plan:wait(task, {other, {other, distance=1, when="issued"}, ...})', [[
Let a task wait for others. Without a distance: for the iterations that the dependences
between the two need. when: "complete" (the default) or "issued".]]},
  {"plan:unwait", "plan:unwait(task, other)", "Remove the waits of one task for another."},
  {"plan:fill_waits", "plan:fill_waits()", "Add the waits that are missing; returns how many."},
  {"plan:buffers", "plan:buffers{k=3, v=3}", "Set the number of versions of each buffer."},
  {"plan:grid", 'plan:grid{raster="rows", group=8, eus=, longest_first=, cluster=}', [[
The order of output tiles, and the EUs that compute them. raster: "rows" or "columns"; group: how
many of them are walked together; longest_first: tiles with most iterations first; cluster: how
many EUs take neighbouring tiles together and load the data that they share once.]]},
  {"plan:split", "plan:split(axis, ways[, {task, ...}])", [[
Divide tasks along an axis: mma becomes mma.0, mma.1, ... Without a list: every task that has
the axis, except loads. Only before they are appended.]]},
  {"plan:split_off", "plan:split_off(value, task)", [[
The last step to a value, such as a conversion, is an sTask of its own, called task. So it
can come later than the rest. Before it is split or appended.]]},
  {"plan:cut", "plan:cut(value, task)", "The old name of plan:split_off."},
  {"plan:alias", "plan:alias{value=other, ...}", [[
A value uses the storage of another one, once that has been read: its registers, or the
memory of its ring.]]},
  {"plan:place", "plan:place{value=other, ...}", "The old name of plan:alias."},
  {"plan:propagate", "plan:propagate{m=128, n=256, k=64}", "Change tile extents."},
  {"plan:undo", "plan:undo()", "Undo the last edit; plan:redo() makes it again."},
  {"plan:redo", "plan:redo()", "Make an undone edit again."},
  {"plan:copy", "plan:copy()", "An independent plan with the same statements, which can also be undone."},
  {"plan:diff", "plan:diff(other)", [[
The statements to remove from a plan and to add to get the other one: a list of {"-" or "+", statement}.
Shown with the lines around them.]]},
  {"plan:try", "plan:try(function(p) ... end[, {keep=true}])", [[
Edit the plan, see the effect, and undo the edits: .diff .came .went (waits) .ok .problems
.before .after (timelines) .gain .within_noise; .keep() makes the edits again.]]},
  {"plan:check", "plan:check()", [[
true or false, and a list of problems {code=, message=, hint=, task=, other=, edge=,
location=}.]]},
  {"problems:json", "problems:json()", "The list of plan:check() as JSON. help \"json\""},
  {"plan:table", "plan:table{width=, ascii=, color=}", "Lanes, waits, rings and problems as text."},
  {"plan:script", "plan:script()", "Lua text that rebuilds exactly this plan."},
  {"plan:json", "plan:json()", "Its lanes, order, waits and rings as JSON, with the script. help \"json\""},
  {"mr.load_plan", "mr.load_plan(path or name[, bound])", [[
A plan from a file with the text of plan:script(), or from examples/ by name, such as
"attention_pingpong". bound: another program, or other sizes.]]},
  {"plan:show", "plan:show()", "Opens the explorer; returns the plan if it was edited. help \"explorer\""},
  {"plan:png", "plan:png(path[, {...}])", "The plan as a table of turns; plan:svg, plan:pdf. help \"pictures\""},
  {"plan:svg", "plan:svg(path[, {...}])", "The plan as a table of turns. help \"pictures\""},
  {"plan:pdf", "plan:pdf(path[, {...}])", "The plan as a table of turns. help \"pictures\""},
  {"plan:simulate", "plan:simulate{events=}", [[
Run the plan on the model of the device: a timeline. events: how many to keep.]]},
  {"plan:compile", 'plan:compile{target="cuda", text=, without=}', [[
Generate and compile the kernel. text=true: its text alone. without={"hoist", "unmask", "partial_sums"}:
skip passes of lowering, to see their effect.]]},
  {"plan:kernel", 'plan:kernel{target="cuda", after="peel"}', [[
The role program: what each lane does, operation by operation, and why each wait is there.
tostring() and .text are the dump. after: as it is behind that pass of lowering: build, stamp, peel, hoist,
unroll, signal, pin, select or unmask.]]},
  {"plan:improve", "plan:improve{pin={tasks=, lanes=, rings=, tile=, grid=}, trials=1000, seconds=60, progress=}", [[
Search from a plan: other rings, tiles, lanes, orders, grids, one change after the other. What pin
names is kept: help "pin". The plan itself is not changed; the result is .plan, and r.keep() applies it to the
plan. Ctrl-C stops the search and keeps the best. progress(trials, seconds) is called after each plan tried. help "improved"]]},
  {"pin", [[
What plan:improve does not change: {tasks={"softmax"}, lanes={"c0"}, rings={"k"}, tile={"m"}, grid=true};
true instead of a list: all of them. A pinned sTask keeps unit, lane, offset, operands and results,
and pinned ones on a lane their order, though others may come between; "mma" means all slices mma.0,
mma.1, ... A lane keeps its warps, registers, replicas and sTasks, in whatever order; a buffer its
versions, an axis its extent.]]},
  {"improved:json", "improved:json()", "The result as JSON, with the changes and the plan's script. help \"json\""},
  {"mr.search", "mr.search(bound[, device[, {seconds=60, trials=, tile=, measure=, seed=, fresh=, show=}]])", [[
Find a good plan: simulate many and, if a device is attached, measure the best ones. tile:
{m=128, n={64, 128}}, extents to try; measure=false: use the model alone; fresh=true: ignore the results in
mr.store; show=true: watch it on the whole terminal; trials: most plans simulated (2000), or
measured (32). Ctrl-C stops it and keeps the best so far. r:png(path), svg, pdf draw its progress. Returns
.plan (a copy at each reading) .timeline .seconds .ii .bound .gap .bound_seconds .proven .trials
.shapes .pruned .ended .measured .measurements .history and why(); or nil and a message with the reason
and the nearest repair.]]},
  {"found:png, found:svg, found:pdf", "found:png(path[, {...}])", "The progress of the search: the best against trials. help \"pictures\""},
  {"found:json", "found:json()", "The result as JSON, with the plan's script. help \"json\""},
}

section("Timelines and kernels") {
  {"pictures", [[
tl:png(path), plan:png, graph:png, mr.compare(a, b):png, mr.roofline{k, ...}:png,
mr.progress{name=r, ...}:png, and svg and pdf of each, write a picture, with the script that makes it in the file. Options: width=,
height= (pixels), theme="light" or "dark", title=, scale= (of a png: file's pixels for one);
of timelines also by="lane", "seu" or "ring", phase=, tile=, from=, to=, rings=true. With show=true
a png is shown in the terminal, if that can show pictures: tl:png{show=true}.]]},
  {"timeline", [[
Which instance ran when. Fields: cycles, seconds, tflops, ii, bound, res_mii, rec_mii, utilization,
events, phases, measured, unit, program, unpriced, cache, played; of a trace also overhead,
clock_hz, kernel. Shown as a drawing.]]},
  {"timeline:print", 'timeline:print{width=, by="lane", phase=, tile=, from=, to=, ascii=, color=}', [[
Draw it on standard output. by: "lane" or "seu". tile, from: where it begins.]]},
  {"timeline:show", "timeline:show()", "Opens the explorer; returns the plan if it was edited. help \"explorer\""},
  {"timeline:png", 'timeline:png(path[, {by=, from=, to=, tile=, phase=, rings=, theme=, ...}])', [[
The timeline as a picture. help "pictures"]]},
  {"timeline:svg", "timeline:svg(path[, {animate=true, seconds=12, ...}])", [[
The timeline as a picture with selectable text, and a description of each bar under the mouse;
animate: as time passes. help "pictures"]]},
  {"timeline:pdf", "timeline:pdf(path[, {...}])", "The timeline as a picture for print. help \"pictures\""},
  {"timeline:frames", 'timeline:frames(folder[, {count=24, format="png", from=, to=, ...}])', [[
Numbered pictures of a pipeline that fills up; returns their paths.]]},
  {"timeline:trace", "timeline:trace(path)", [[
A file for Perfetto or chrome://tracing: lanes, units, flows from cause to effect, rings.]]},
  {"timeline:text", "timeline:text{...}", "The text of timeline:print as a string."},
  {"timeline:summary", "timeline:summary{width=, ascii=, color=}", "The numbers without the drawing."},
  {"timeline:json", "timeline:json{events=false}", "Numbers, lanes, phases and, by default, events as JSON. help \"json\""},
  {"kernel", [[
The result of plan:compile. Fields: source, target, registers, spills, smem, problems, warnings,
plan.]]},
  {"kernel:run", "kernel:run(inputs[, {seed=, limit=}])", [[
Run it; returns the outputs by name. Inputs nil: random ones, which a device makes itself.]]},
  {"kernel:check", "kernel:check{seed=, reference=}", [[
Compare with the reference: .relative .max_abs .ok; .reference says which reference was used.]]},
  {"kernel:show", "kernel:show()", "Opens the explorer with the plan and its role program: help \"explorer\""},
  {"kernel:trace", "kernel:trace{seed=, inputs=, eu=, seconds=}", [[
Run it with time stamps: a timeline like that of plan:simulate, but measured. On the host,
which has no clock, it shows the order. eu: the EU whose events are kept.]]},
  {"mr.compare", "mr.compare(predicted, measured)", [[
Two timelines of one program, compared by sTask: durations, counts, waits, the largest parts of
the difference, and the causes that grew or shrank most. .rows and .causes for
scripts.]]},
  {"timeline.blame", "timeline.blame", [[
Where the time of each lane goes, by sTask: rows with .lane .task .share and, by cause, .issue
.pipe .dependence .shared .l2 .global .slot .turn .sync .power; .parts names the sTasks and units
that cause it. Shown as a table.]]},
  {"timeline:proof", "timeline:proof()", [[
How short the interval of the loop could be with the plan's lanes, in any order, with any offsets and versions:
the bound, why no interval is shorter, and what would allow a shorter one, each solved again. Only for simulated
timelines. help "proof" lists the fields.]]},
  {"timeline:why", "timeline:why()", [[
What limits a simulated timeline, and which changes would help by how much: other rings, tiles, lanes,
orders and grids are tried. Returns a text and a list of all changes tried, best first: .change .gain
.script.]]},
  {"kernel:bench", "kernel:bench{seconds=}", [[
Time it: .ms (median) .tflops .gbps .min .max .runs; .watts, the mean power, or nil; .cache,
"cold L2" or "warm L2". Shown as two lines.]]},
  {"benched:json", "benched:json()", "The result of k:bench{} as JSON. help \"json\""},
  {"checked:json", "checked:json()", "The result of k:check{} as JSON. help \"json\""},
  {"mr.race", "mr.race({a=k1, b=k2, ...}[, {seconds=0.5, sample=0.06, base=, seed=, limit=}])", [[
Time kernels of one program alternately, on the same inputs, so that they are compared at the same clock;
plans among them are compiled first, in parallel. Returns a list, the fastest first: .name .ms .ratio .low
.high. Shown as a table. help "race"]]},
  {"kernel:export", "kernel:export(dir[, {name=}])", [[
Write it as files that need no Millrace: source, binary, C launcher, Python module for torch.
For a kernel for the CPU: source, runtime, a driver and its makefile. Returns their paths.]]},
  {"mr.compare:png", "mr.compare(a, b):png(path[, {...}])", [[
Both on one time axis, one above the other, and how long each sTask takes; also svg and pdf. trace(path):
two processes in one file for Perfetto. help "pictures"]]},
  {"mr.roofline", "mr.roofline{x, ...}", [[
Kernels, plans or timelines under the limits of computing and of memory bandwidth; {x, name=,
ms=} sets a name, or the time. .points; png(path), svg, pdf. A kernel for the attached device
is timed; others are predicted.]]},
  {"mr.progress", "mr.progress{name=r, ...}", [[
The best so far of searches against trials; of a single search, mr.progress(r), also every candidate.
Instead of a search: {history=, bound_seconds=}, or the list alone, of {trial=, predicted=,
measured=, status=, best=, phase=, text=}. .curves; png(path), svg, pdf. help "pictures"]]},
}

section("The store") {
  {"mr.store", [[
All measurements, in a file: plans with predicted and measured times, newest
last. print(mr.store) shows the newest, #mr.store is how many there are. help "store"]]},
  {"store", [[
The type of mr.store. Field: path. Methods: list, best, near, put, prune, export, json. The file is
$XDG_DATA_HOME/millrace/store.db unless MILLRACE_STORE names another, or "none".]]},
  {"store:list", 'mr.store:list{program=, device=, sizes=, kind=, status=, version=, before=, limit=1000}', [[
Rows, newest first; shown as a table, in which the best of each program, sizes and device is marked.
program: a name, or a program with sizes. sizes: "m=4096", or {m=4096}.]]},
  {"store:best", "mr.store:best(bound[, device[, {kind=, version=}]])", [[
The fastest row with status "ok" of exactly this program, its sizes and the device; nil if there is none.
Measured rows come before predicted ones.]]},
  {"store:near", "mr.store:near(bound[, device[, n=3[, {kind=, version=}]]])", [[
The best row of each of the n nearest sizes of this program, nearest first; row.distance is the sum
of |log2| of the ratios of all sizes.]]},
  {"store:put", 'mr.store:put{plan=, kernel=, timeline=, bench=, check=, kind="search", ...}', [[
Add a row with the numbers of these objects; any field of "stored" can be given and overrides them. Returns
true when the row is on the disk, or nil and the reason.]]},
  {"store:prune", "mr.store:prune{before=, keep=, program=, device=, sizes=, kind=, status=, version=}", [[
Remove rows; returns how many. before: a day, "2026-01-31", or a value of os.time(). keep: how many of
the best of each program, sizes and device are kept.]]},
  {"store:export", 'mr.store:export(path[, {program=, ..., limit=}])', [[
Write rows to a file that ends in .csv or .json; returns how many. Same options as mr.store:list, but without
a limit by default.]]},
  {"store:json", "mr.store:json{program=, ..., limit=}", "The same rows as text, a list in JSON."},
  {"rows", "The result of mr.store:list{} and mr.store:near: a list of rows."},
  {"rows:json", "rows:json()", "The rows as text, a list in JSON."},
  {"stored", [[
A row of the store: mr.store:list{}, mr.store:best(bound). Shown field by field.]]},
  {"stored:plan", "row:plan([bound])", [[
The plan, built from its script and checked; also for the same program with other sizes. An error if
it does not fit. bound is needed for programs that are not from examples/.]]},
  {"stored:json", "row:json()", "The row as JSON."},
  {"json", [[
Text for other programs: r:json() of a search, tl:json(), plan:json(), graph:json(), problems:json(),
b:json() of k:bench{}, err:json() of k:check{}, rows:json(). The fields are those of the Lua objects, in a
fixed order; unknown values are null. "format" names the kind of object. docs/reference.md lists them all.]]},
}

section("Words", "words") {
  {"words", "The words used here, those of PipeThreader (OSDI 2025) and of software pipelining."},
  {"EU", "An execution unit: an SM, a CU. A device has many, all alike, and each runs the same plan."},
  {"sEU", [[
A specialised unit inside an EU: the copy engine (tma), the tensor cores (tensor), the CUDA cores
(cuda). Different ones work at the same time. help "device"]]},
  {"lane", [[
A context that issues sTasks inside an EU: a producer warp, a consumer warpgroup. It issues its sTasks one after
the other, in the plan's order. help "plan:lane"]]},
  {"tile", "What one EU computes at a time; also the extents by axis that divide the program into such tiles."},
  {"ring", [[
A buffer with several versions, used in rotation, so that one can be filled while others are read.
plan:buffers sets how many; plan.rings has them.]]},
  {"version", "One of the copies of a ring's buffer: iteration i uses version i modulo their number."},
  {"occupancy", [[
Of a ring: how many of its versions hold data that is still to be read, at a moment. A full ring
makes its producer wait (cause "slot"), an empty one its consumers.]]},
  {"offset", [[
How many iterations ahead an sTask runs: at= of plan:append and plan:move. In iteration j of the pipelined loop
an sTask with offset 1 works on iteration j + 1. PipeThreader calls it the stage.]]},
  {"Stage", "PipeThreader's word for the iteration offset of an sTask: help \"offset\"."},
  {"turn", [[
One round of a lane through its order. In turn j each sTask runs for iteration j + its offset, if there
is such an iteration.]]},
  {"replicas", [[
Lanes alike that take the output tiles of an EU in round robin: replicas= of plan:lane.]]},
  {"prologue", "The first iterations of a pipelined loop, in which only those sTasks run that are ahead."},
  {"steady state", "The iterations of a pipelined loop in which every sTask of it runs."},
  {"epilogue", [[
The last iterations of a pipelined loop, in which the sTasks that were ahead have no more work. Also the work of a
program on a tile after its loop.]]},
  {"II", [[
Initiation interval: cycles from one iteration of a loop to the next, in the steady state: timeline.ii. A
schedule tries to make it short.]]},
  {"ResMII", [[
A lower bound of the II by resources: the work of the busiest unit or memory in an iteration.
timeline.res_mii]]},
  {"RecMII", [[
A lower bound of the II by recurrences: over all cycles of dependences and orders, the largest ratio of latency
to distance. timeline.rec_mii]]},
  {"bound of the II", "The greater of ResMII and RecMII; no order of these lanes and versions is shorter: timeline.bound."},
  {"Propagate", [[
From a tile shape to the shapes of all sTasks: bound:graph{tile={...}}, plan:propagate. With Append and
Wait the three primitives of PipeThreader.]]},
  {"Append", "To give an sTask to a unit and a lane, after those that it already has: plan:append."},
  {"Wait", "To let an sTask be issued only when others are complete, or issued: plan:wait."},
  {"dependence of a loop", [[
Iteration s of one sTask needs iteration s - d of another; d is the distance. It is carried by the loop
if d is not 0.]]},
  {"repair waits", [[
To add the waits that a move makes necessary, drop those that it makes needless, and raise versions.
plan:move(task, {..., repair_waits=false}) does not. settle= is its old name.]]},
  {"slack", [[
How much later an event could be without making the end later; 0 on the critical chain. The explorer
shows it.]]},
  {"critical chain", "The last event, the event it waited for, and so on to the start. In the explorer: c."},
  {"cluster", [[
EUs that take neighbouring tiles together and load the data that they share once: plan:grid{cluster=2}.]]},
  {"raster", "The order of output tiles: plan:grid{raster=, group=}."},
  {"uncertainty", "How wrong a prediction may be: nine of ten measured times are nearer. timeline.uncertainty"},
  {"within noise", [[
Of two predictions: so near to each other that the order may be the other way round, "too near to call".
timeline.noise]]},
  {"role program", "The lowered form of a plan: what each lane does, operation by operation. plan:kernel, help \"kernel\""},
}

section("Fields", "fields") {
  {"program.name", "A string."},
  {"bound.name", "A string."},
  {"bound.axes", "Table: size by name."},
  {"bound.tensors", [[
List of {name=, role=, dtype=, shape=, axes=}; role is "input", "output" or "temp".]]},
  {"array.dtype", "The type of its elements, a string."},
  {"device.name, device.title, device.arch", "Strings."},
  {"device.eus", "Number of EUs."},
  {"device.clock_hz", "The clock of its EUs when power does not limit it."},
  {"device.seus", "List of {name=, kind=, async=}; kind is \"copy\", \"matrix\" or \"vector\"."},
  {"graph.tasks", "List of sTasks, in program order."},
  {"graph.edges", "List of dependences."},
  {"graph.buffers", "List of buffers."},
  {"graph.tile", "The tile extents given."},
  {"graph.tiles", "Output tiles, over all phases."},
  {"graph.flops, graph.bytes", [[
Floating-point operations of all products; bytes of all tensors, each once.]]},
  {"graph.program", "The bound program."},
  {"plan.tasks, plan.edges, plan.tile", "As of a graph, after splits and propagate."},
  {"plan.graph, plan.device", "The arguments of mr.plan."},
  {"plan.rings", "Table: versions by buffer."},
  {"plan.usage", "{threads=, registers=, shared_bytes=, lanes={name=registers a thread}} of one EU."},
  {"timeline.cycles", "From the start to the end of the last EU."},
  {"timeline.seconds", "Cycles at the clock, plus the launch of each phase."},
  {"timeline.clock_hz", [[
The clock: of a trace, the measured one; else the one that the power limit allows if the kernel runs again and again;
nil if it is not known.]]},
  {"timeline.full_clock_hz", [[
Of a simulated timeline: the clock without a power limit. On an H200 it is lower while products
run.]]},
  {"timeline.power", [[
The power of the device in W; nil if measured, or if the device file has no power numbers.]]},
  {"timeline.energy", "Energy of a run in J: .product, .vector, .l2, .global, .idle; nil if tl.power is."},
  {"timeline.uncertainty", [[
A share of tl.seconds: nine of ten measured times are nearer than this; nil if it is not known.]]},
  {"timeline.noise", [[
A share of a time: two predictions that differ by more are in the right order in 19 of 20 cases; nil if it is
not known.]]},
  {"timeline.doubt, timeline.tie", "Deprecated names of timeline.uncertainty and timeline.noise."},
  {"timeline.cache", [[
The state of the L2 cache at the start: "cold L2" for every simulation; of a trace as b.cache;
nil if it is not known.]]},
  {"timeline.tflops", "The program's operations over seconds, in 10^12 a second."},
  {"timeline.ii", "Cycles per iteration of the innermost loop that runs most, in the steady state."},
  {"timeline.res_mii, timeline.rec_mii", "Lower bounds of ii: by resources, by recurrences."},
  {"timeline.bound", "The greater of the two, with the versions of the plan. For any versions: timeline:proof()."},
  {"timeline.utilization", [[
Share of the time, 0 to 1, by name of the sEU, and memory: of the EU's share of the bandwidth.]]},
  {"timeline.phases", [[
List of {name=, cycles=, tiles=, eus=, eu=, ii=, res_mii=, rec_mii=}; eu: the one whose events are
kept, from 1.]]},
  {"timeline.measured", "True: it was traced; false: it was simulated."},
  {"timeline.unpriced", "If it was simulated without a kernel: why there is none; else nil."},
  {"timeline.played", [[
The number of simulated events, of all EUs that were simulated, kept or not.]]},
  {"timeline.unit", "\"cycles\", or \"stamps\" where there was no clock."},
  {"timeline.program", "String: the program with its sizes."},
  {"timeline.events", "List of events, in order of issue, of the EU that finishes last."},
  {"timeline.overhead", [[
Of a trace: the share by which its time is longer than that of the kernel without stamps, measured right before and
after.]]},
  {"timeline.kernel", "Of a trace: the traced kernel; nil of a simulated timeline."},
  {"kernel.target", "\"cuda\" or \"host\"."},
  {"kernel.source", "String: the text; every statement block names its sTask and iteration."},
  {"kernel.registers, kernel.spills, kernel.smem", [[
Registers a thread at launch; bytes of spills a thread; bytes of dynamic shared memory; the most
of all phases.]]},
  {"kernel.warnings", [[
Array of strings: warnings of the compiler, such as that products were serialized.]]},
  {"kernel.problems", [[
List like that of plan:check(): "spills", registers that a thread keeps in memory; "serialized",
matrix products that the compiler lets wait for each other, with the sTask in whose text they are.]]},
  {"kernel.plan", "The plan."},
  {"kernel.text", "Of plan:kernel: the dump, as tostring gives it."},
  {"sTask", [[
An element of graph.tasks and plan.tasks: an operation on one tile for one sEU: a load, a
product, element-wise work or a store.]]},
  {"sTask.name", "The program's, with .0, .1, ... for the slices of a split."},
  {"sTask.kind", "\"load\", \"mma\", \"compute\" or \"store\"."},
  {"sTask.phase, sTask.loop", "Names; no loop means once a tile."},
  {"sTask.shape", "Extents of its result, by axis."},
  {"sTask.dtype", "Of the operands or elements."},
  {"sTask.flops, sTask.bytes, sTask.shared_bytes", [[
Of one instance: operations, bytes of global memory, bytes of shared memory.]]},
  {"sTask.m, sTask.n, sTask.k", "Of a product."},
  {"sTask.reads, sTask.writes", "Lists of names of buffers."},
  {"sTask.location", "\"FILE:LINE\" in the program."},
  {"sTask.place", "The old name of sTask.location."},
  {"dependence", [[
An element of graph.edges: every instance of from in iteration s - distance comes before every
instance of to in iteration s.]]},
  {"dependence.from, dependence.to", "sTasks: the one that comes first, and the one that depends on it."},
  {"dependence.kind", "\"flow\", \"anti\" or \"output\"."},
  {"dependence.buffer", "The buffer that causes it."},
  {"dependence.distance", "Iterations of loop from one to the other."},
  {"dependence.loop", "The loop whose iterations the distance counts; nil: it counts tiles."},
  {"dependence.reuse", "true: the distance is multiplied by the versions of the buffer."},
  {"buffer", [[
An element of graph.buffers: a value that passes from sTask to sTask, in shared memory or registers.]]},
  {"buffer.name, buffer.phase, buffer.loop", "Names; loop: every iteration of it makes a new value."},
  {"buffer.dtype", "The type of its elements."},
  {"buffer.scope", "\"shared\", or \"registers\" if producer and users are in one lane."},
  {"buffer.shape, buffer.bytes", "Extents by axis; bytes of one version."},
  {"buffer.carry", "true if it is a carry, which lives through the loop."},
  {"problem", [[
An element of the list of plan:check(). help "problems" lists the codes and their repair.]]},
  {"problem.code", "The kind of problem, such as \"deadlock\": help \"problems\"."},
  {"problem.message", "A sentence."},
  {"problem.hint", "A repair, as a statement where possible."},
  {"problem.task, problem.other", "sTasks concerned."},
  {"problem.edge", "The dependence, as in plan.edges."},
  {"problem.location", "\"FILE:LINE\" of the entry, wait or task."},
  {"problem.place", "The old name of problem.location."},
  {"tried", [[
The result of plan:try; tried.keep() makes the edits again.]]},
  {"tried.diff", "The difference of the statements, as by plan:diff."},
  {"tried.came, tried.went", [[
Lists of waits: {task=, on=, distance=, when=}; distance is nil if it is open.]]},
  {"tried.ok, tried.problems", "The results of plan:check() after the edits."},
  {"tried.before, tried.after", "Timelines; nil if the plan is not legal."},
  {"tried.gain", [[
The share of the time that is saved, negative if it is slower; nil without both timelines.]]},
  {"tried.within_noise", "True if the times are too near to call, by tl.noise. Deprecated name: tried.tie."},
  {"tried.kept", "True if the edits were kept."},
  {"event", [[
An element of timeline.events: one instance of an sTask, and when it was issued, ran and ended.]]},
  {"event.task, event.lane, event.seu", "Names."},
  {"event.iteration", "In the sequence of its region, over all tiles of the EU."},
  {"event.tile", "Of the EU."},
  {"event.ready", "The cycle in which its lane reached it."},
  {"event.issue", "The cycle in which its waits were satisfied."},
  {"event.start", "The cycle in which its unit began."},
  {"event.end", "The cycle in which its completion could be seen."},
  {"event.cause", [[
Of the longest delay: "wait" for completion of on, "turn" for its issue, "seu": the unit was busy
with on, "memory", "drain": the kernel has its lane wait for on, a product of its own; nil: none.]]},
  {"event.on", "An sTask."},
  {"event.late", [[
True: of a trace, and its completion was seen by a lane that came later, so that the true end may be
before ["end"].]]},
  {"event.replica", "Which of the replicas of its lane, from 0."},
  {"event.copy", "The deprecated name of event.replica."},
  {"event.phase", "Of the program, from 1."},
  {"blame", [[
An element of timeline.blame: a row for each sTask of each lane. The causes: help "cause".]]},
  {"blame.lane, blame.task", "Names."},
  {"blame.share", "A share of the lane's time; the shares of a lane add up to 1."},
  {"blame.issue, blame.pipe, blame.shared, blame.l2, blame.global, blame.slot, blame.dependence, blame.turn, blame.sync, blame.power", [[
The parts of share by cause; they add up to it. help "cause"]]},
  {"blame.parts", [[
List of {cause=, on=, unit=, share=}, the greatest first: on is the sTask that is waited for, unit
the sEU that is busy.]]},
  {"blame.feeds", "True if the lane does nothing but feed a copy engine, so that waiting is its normal state."},
  {"blame.lane_cycles", "The time of the lane; of a lane with replicas, of one of them."},
  {"cause", [[
Why time passes in a lane, in timeline.blame and mr.compare.]]},
  {"cause.issue", "The lane's own work: testing waits, issuing, signalling, and between tiles."},
  {"cause.pipe", "unit is busy: with work of the lane itself (no on), or with on, while the lane waits."},
  {"cause.shared", "The same, as far as shared memory is slower than the unit."},
  {"cause.l2, cause.global", "The EU's share of the bandwidth of L2, of device memory, is in use."},
  {"cause.slot", "The slot to be overwritten is still to be read: a deeper ring would avoid this."},
  {"cause.dependence", "The latency of on; of a trace, the whole wait for it."},
  {"cause.turn", "The wait for the issue of on."},
  {"cause.sync", "on was complete, but the signal, or the handover of its value, came later."},
  {"cause.power", "The clock is lower than the device's, because of the power limit. It does not lengthen l2 and global."},
  {"compared", [[
The result of mr.compare, and the fields of its rows.]]},
  {"compared.rows, compared.causes", [[
A row for each sTask; and the causes that take more or less of the lanes' time, the largest first.]]},
  {"compared.within_noise", "True if both are predicted and the times too near to call. Deprecated name: .tie."},
  {"compared.title, compared.times", "Texts: the two timelines that are compared; both times, and whether they agree within the uncertainty."},
  {"compared.task, compared.lane", "Names."},
  {"compared.predicted, compared.measured", [[
The numbers of the first and of the second timeline; nil if it has no such event.]]},
  {"compared.duration", "Mean cycles from issue to end."},
  {"compared.interval", [[
Mean cycles from one issue to the next one within a tile, or to that of the next tile if it is issued once
a tile.]]},
  {"compared.wait", "Mean cycles from ready to issue."},
  {"compared.lane_time, compared.share", [[
Mean cycles until its lane reached the next sTask; the sum of them as a share of the lane's time.]]},
  {"compared.count, compared.late", "Events; share of them that are late."},
  {"compared.ratio", "Of the durations."},
  {"compared.difference", [[
The difference of the time that the sTask takes of its lane: that of lane_time, times count. Over a lane
they add up.]]},
  {"change", [[
An element of the list of timeline:why(): a change of the plan that was tried.]]},
  {"change.change", [[
The statements to write, or, of plan:append, plan:lane and plan:split, to change, followed by the statement
after which it then stands.]]},
  {"change.gain", "The share of the time that is saved, negative if it is slower."},
  {"change.script", "The text of the changed plan, for load(script)(bound)."},
  {"proof", [[
The result of timeline:proof(). It is about the model: no simulation of a plan with these lanes has a shorter
interval in its steady state. Shown as a text.]]},
  {"proof.loop", "The axis of the loop that timeline.ii is about; nil: the interval is that of tiles."},
  {"proof.ii, proof.bound, proof.gap", [[
Cycles of the simulated interval; the least possible; ii / bound - 1, never negative.]]},
  {"proof.proven", "True if ii is at the bound, within 0.1 %: no order, offsets or versions are better."},
  {"proof.best, proof.exact, proof.solver", [[
Cycles of the best schedule found with one sTask at a time on each unit; true if that is the bound; what decided it: "bounds",
"search" or "cbc".]]},
  {"proof.unstated", "Why the loop is not solved and bound is timeline.bound; nil if it is solved."},
  {"proof.tile", "True if a tile has work outside its iterations; the bound includes it."},
  {"proof.tasks", [[
List of {name=, lane=, unit=, hold=, busy=, latency=, start=, stage=}: cycles that an sTask occupies its lane, occupies its unit,
and until it is complete; when the best schedule starts it in its interval, and how many intervals later.]]},
  {"proof.versions", "How many versions of each buffer of the loop the best schedule needs."},
  {"proof.circle", [[
Names of the sTasks of the critical cycle of dependences, with cycles and iterations.]]},
  {"proof.core", [[
List of requirements that together forbid a shorter interval, each with a kind: "dependence" (from, to, distance, cycles),
"versions" (buffer, most), "shared memory" (bytes), "lane" (lane, cycles), "unit" (unit, cycles; lane: as that lane can use
it; contention: slower while products run). core.irreducible: without any one of them the others would allow it.]]},
  {"proof.eases", [[
List of changes that would allow a shorter interval, best first: {times=, bound=, gain=, exact=} and one of buffer (one more
version), task (its work, 1 - 1 / times less), unit, memory (times as fast, as large), lane (another one like it). bound: of the
problem solved again. exact=false: the gain may be smaller.]]},
  {"proof.binding, proof.best_loop, proof.rec_of_plan", [[
What determines timeline.bound; the bound of the loop alone; timeline.rec_mii, with the plan's versions.]]},
  {"found", [[
The result of mr.search; found.why() is a text: the proof of its interval, and the bounds of other tile shapes.]]},
  {"found.plan", [[
The best plan, checked again. Each reading gives a new copy, so that edits do not change the result. To
edit it, keep a copy: local p = r.plan.]]},
  {"found.timeline", "Its timeline."},
  {"found.seconds, found.ii", "Of the timeline."},
  {"found.bound, found.gap", [[
The bound of its proof, help "proof": no order, offsets or versions give the plan's lanes a shorter interval; ii / bound - 1.]]},
  {"found.bound_seconds", [[
A lower bound of the time of all plans of all tile shapes considered: the work of the busiest unit, without
waiting.]]},
  {"found.proven", "True if the plan's interval is at its bound, within 0.1 %."},
  {"found.trials, found.shapes, found.pruned", [[
Plans simulated, tile shapes considered, shapes not tried because of their bound.]]},
  {"found.ended", "\"done\", \"trials\", \"seconds\" or \"interrupted\"."},
  {"found.measured", [[
{ms=, min=, max=} of the plan, measured alternately with the others, at the same clock; nil: nothing was measured.]]},
  {"found.measurements", [[
All measurements, in order: rows with status ("ok", "skipped", "wrong", "failed"), why, score (ms, by
ratios to the best at that time), predicted (seconds), script.]]},
  {"found.history", [[
All candidates, in order: {trial=, phase="model" or "device", predicted=, measured=, best=, status=}, seconds.]]},
  {"found.edited", "With show=true: the copy of the plan that was edited in the explorer; else nil."},
  {"improved", [[
The result of plan:improve; improved.keep() applies it to the plan, as one edit.]]},
  {"improved.plan", "The best plan: a copy at each reading."},
  {"improved.before, improved.timeline", "Timelines of the plan as it was, and of the best."},
  {"improved.seconds, improved.gain, improved.within_noise", [[
Seconds of the best; the share of the time that is saved; true if both times are too near to call, by
tl.noise. Deprecated name: .tie.]]},
  {"improved.trials, improved.ended", "Plans simulated; \"done\", \"trials\", \"seconds\" or \"interrupted\"."},
  {"improved.changes", [[
List of {change=, seconds=, gain=}, in order: the statements as in timeline:why(), the time with
them, and the share that each saves.]]},
  {"improved.diff", "The difference of the statements, as by plan:diff."},
  {"improved.pinned", "Text: what was pinned."},
  {"attached", [[
The result of mr.attached().]]},
  {"attached.name, attached.arch, attached.sms", "As CUDA has them: \"NVIDIA H200\", \"sm_90a\", 132."},
  {"attached.memory", "Bytes free."},
  {"attached.partition", "True: it is a part of a board (MIG)."},
  {"attached.driver", "String: the driver's version, \"580.159.03\"; nil if it is not known."},
  {"attached.power_limit", "The power limit of the board in W; nil if it is not known."},
  {"attached.trouble", [[
String: why times measured now cannot be trusted, "another process (pid 71) is on it, 40 %
in use"; nil: no reason is known.]]},
  {"benched", [[
The result of kernel:bench.]]},
  {"benched.ms, benched.min, benched.max", "Milliseconds of one pass over all phases: the median, the least, the most."},
  {"benched.runs", "How many were timed."},
  {"benched.tflops, benched.gbps", "The program's operations, and bytes, over ms: 10^12, 10^9 a second."},
  {"benched.watts", [[
Mean power of the board during the measurement; nil if the board does not report it, or for less than
0.3 s.]]},
  {"benched.cache", "The state of the L2 cache before each run: \"cold L2\" or \"warm L2\"."},
  {"race", "The result of mr.race: a list of racers, the fastest first."},
  {"race.base", "The name of the baseline: base=, or the fastest."},
  {"race.rounds", "The number of rounds; in each, every kernel runs once for a while."},
  {"race.cache", "The state of the L2 cache before each run: \"cold L2\" or \"warm L2\"."},
  {"racer.name, racer.kernel", "The key in the table given; the kernel."},
  {"racer.ms, racer.min, racer.max", "Milliseconds of a run: the median of its rounds; the least and the most of any run."},
  {"racer.ratio", "Its time over that of the baseline: the median over pairs of rounds, which a drifting clock does not affect."},
  {"racer.low, racer.high", "The 95 % confidence interval of ratio. Two kernels differ if 1 is outside."},
  {"racer.tflops, racer.gbps", "The program's operations, and bytes, over ms: 10^12, 10^9 a second."},
  {"checked", [[
The result of kernel:check.]]},
  {"checked.relative, checked.max_abs", "The error: relative to the norm (Frobenius), and the largest one of an element."},
  {"checked.ok", "true if the error is within what the type of the outputs allows."},
  {"checked.allowed", "The relative error that is allowed; of several outputs the least."},
  {"checked.reference", "The reference used: \"interpreter\", \"device\" or \"host\"."},
  {"store.path", "The file, a string; nil: there is none."},
  {"stored.id", "Counts up, in order of writing."},
  {"stored.time", "When it was written, UTC: \"2026-01-31T12:00:00Z\"."},
  {"stored.kind", "The origin: \"search\", \"bench\", \"check\", or the kind given to put."},
  {"stored.status", [[
"ok", or the problem: "wrong" results, "failed", "spills", ...; stored.message says more.]]},
  {"stored.message", "A text, or nil."},
  {"stored.program, stored.sizes", "Name; \"m=4096 n=4096 k=4096\", all axes in the program's order."},
  {"stored.hash, stored.family", [[
Of the whole program; of the program without its sizes. 32 digits.]]},
  {"stored.device, stored.title, stored.driver", "As mr.device has them; the driver's version, if there was one."},
  {"stored.version", "The version of Millrace."},
  {"stored.kernel", "Hash of the kernel's text."},
  {"stored.script, stored.tile", "The plan as text, as plan:script() gives it; \"m=128 n=256 k=64\"."},
  {"stored.predicted, stored.bound", "Seconds: predicted by the model, and its lower bound."},
  {"stored.ms, stored.min, stored.max, stored.runs", "Measured milliseconds: the median, the least, the most, of so many runs."},
  {"stored.cache, stored.clock_hz, stored.watts", [[
The state of the device, as far as it is known: "cold L2" or "warm L2", clock, mean power.]]},
  {"stored.correct, stored.error", "True if the output agrees with the reference; its relative error."},
  {"stored.seed", "The seed of the inputs."},
  {"stored.distance", "Of mr.store:near: how far its sizes are from those given."},
  {"hw", [[
The fields of a device file, hw/NAME.lua, which returns one table. help "memory.l2.rate" describes one.
device:number reads them by the same names.]]},
  {"hw.title, hw.arch", "Texts."},
  {"hw.eus", "SMs, CUs."},
  {"hw.clock_ghz", "GHz when power does not limit it."},
  {"hw.limits.warp", "Threads of a warp or wave."},
  {"hw.limits.max_threads", "Of a block."},
  {"hw.limits.registers", "32-bit registers of an EU."},
  {"hw.limits.thread_registers, hw.limits.register_step", [[
Most registers of a thread; their number is a multiple of the step.]]},
  {"hw.limits.reserved_registers", "Registers of a thread for addresses, counters, barriers."},
  {"hw.limits.named_barriers, hw.limits.max_cluster", "Of a block; EUs of a cluster."},
  {"hw.limits.cluster_eus", [[
EUs that clusters of more than two can use at once; all unless given.]]},
  {"hw.memory.global.bytes, hw.memory.global.rate, hw.memory.global.latency", [[
Bytes; bytes a second of the device; cycles.]]},
  {"hw.memory.l2.bytes, hw.memory.l2.rate, hw.memory.l2.eu_rate, hw.memory.l2.latency", [[
Bytes; bytes a cycle of the device, and of one EU; cycles.]]},
  {"hw.memory.l2.thread_rate", [[
Bytes a cycle of loads by the threads of an EU, counted in sectors of 32; .eu_rate unless
given.]]},
  {"hw.memory.l2.warp_rate", "As memory.l2.thread_rate, of one warp; half of .thread_rate unless given."},
  {"hw.memory.shared.bytes, hw.memory.shared.rate", "Bytes of a block; bytes a cycle of an EU."},
  {"hw.sync.wait_cost", "Cycles of a wait whose condition already holds."},
  {"hw.sync.drain_cost", "As sync.wait_cost, for the lane's own products; .wait_cost unless given."},
  {"hw.sync.tell_cost, hw.sync.warp_cost, hw.sync.fence_cost", [[
Cycles of a lane: an arrival at a flag; a synchronisation of a warp; a fence between writes of threads
and reads of an engine.]]},
  {"hw.sync.flag_latency, hw.sync.issue_order_latency", [[
Cycles from completion, or issue, until another lane sees it. Deprecated name of the second:
sync.turn_latency.]]},
  {"hw.sync.handoff_latency, hw.sync.handoff_rate", [[
Cycles, and bytes a cycle, of a register tile to another lane.]]},
  {"hw.sync.launch_seconds, hw.sync.tile_overhead", [[
Seconds to launch a kernel; cycles of a lane between two tiles.]]},
  {"hw.uncertainty.products, hw.uncertainty.other, hw.uncertainty.order", [[
Shares: tl.uncertainty where products are the bottleneck, and elsewhere; tl.noise. 0 (not known)
unless given. Deprecated name of the table: doubt.]]},
  {"hw.power.limit, hw.power.idle", [[
W: the limit of the device, and the power it always draws; without a limit the clock is always
clock_ghz.]]},
  {"hw.power.product, hw.power.vector, hw.power.l2, hw.power.global", [[
pJ at the full clock: of a flop of products with 16-bit operands, of an operation of a thread, of a byte
from L2, of a byte from device memory; needed if there is a limit.]]},
  {"hw.seu", [[
List of units, each with name, kind, async, ordered, issue (lane cycles to issue one operation), latency
(cycles from the end of the work to completion).]]},
  {"hw.seu.copy.box_bytes, hw.seu.copy.box_interval", [[
Most bytes of one instruction; cycles between instructions.]]},
  {"hw.seu.matrix.flops.TYPE, hw.seu.matrix.efficiency", [[
Dense flop a cycle of an EU by type of the operands; the share of it that long runs reach.]]},
  {"hw.seu.matrix.step, hw.seu.matrix.depth", [[
Lane cycles to issue each further instruction of a product; how many of a lane may be in flight;
0 and unlimited unless given.]]},
  {"hw.seu.matrix.min_m, hw.seu.matrix.min_n, hw.seu.matrix.min_k", [[
Granularity: rows, columns, bytes.]]},
  {"hw.seu.vector.ops.CLASS", [[
Elements a cycle, of the classes fma alu sfu cvt div reduce scan move.]]},
  {"hw.seu.vector.slots, hw.seu.vector.lane_share, hw.seu.vector.contention, hw.seu.vector.by_age, hw.seu.vector.chain", [[
Elements a cycle over all classes; the share that a lane of 4 warps can use; the share of that
while a matrix unit is busy (1 unless given; deprecated name: beside); the share of the cycles in
which the lane that came first is served first (0 unless given); cycles from an instruction to the next
one that needs its result.]]},
}

section("Problems of plans", "problems") {
  {"problems", [[
The problems that plan:check() and kernel.problems find; each has a message, and a hint how to repair it.]]},
  {"check.missing_wait", fix = "the wait in the hint",
    "in some execution, task in the iteration named is issued before other in its iteration is complete, although it depends on it"},
  {"check.misplaced_wait", fix = "the wait without a distance",
    "the same, and there is a wait of task for other, but for another iteration"},
  {"check.deadlock", fix = "take a wait out, raise its distance, more versions, another order",
    "the lanes wait for each other in a cycle, which the message lists"},
  {"check.wrong_seu", fix = "the sEU in the hint",
    "the sEU cannot do this work"},
  {"check.versions", fix = "more versions, or another order",
    "the order has task overwrite a slot before other has used it"},
  {"check.offset", fix = "another order, or a smaller at",
    "the order has task come before other, on which it depends"},
  {"check.registers", fix = "split, smaller tile, more warps",
    "a lane needs more registers than it or a thread can have, for what it has in the sTask named, or all lanes more than the EU has"},
  {"check.shared_memory", fix = "fewer versions, smaller tile",
    "rings and staging of stores exceed what a block can have"},
  {"check.barriers", fix = "wait for completion instead",
    "turns between lanes need more named barriers than there are"},
  {"check.threads", fix = "fewer warps",
    "the lanes have more threads than a block can have"},
  {"check.missing_task", fix = "append it",
    "an sTask is not in the plan"},
  {"check.duplicate_task", fix = "remove it, append it once; split it to run it on several lanes",
    "an sTask is appended more than once"},
  {"check.alias", fix = "as many versions; one lane for all sTasks that make and use both; or no plan:alias",
    "a value and its alias have other versions, or are not in registers of one lane"},
  {"check.cluster", fix = "no clusters, or another raster or group",
    "clusters with too few EUs, with nothing to share, or whose tiles have loops that run otherwise"},
  {"check.layout", fix = "another lane, so that the value lies in shared memory, or another tile",
    "no layout of the value suits all sTasks that use it"},
  {"check.product", fix = "another tile, split or number of warps, or the CUDA cores",
    "the unit has no instruction for the product with these layouts of its operands"},
  {"check.waits", fix = "wait for an sTask that reads what is loaded, or fewer versions",
    "a wait that no flag can implement"},
  {"check.kernel", fix = "report it with plan:script()",
    "the kernel would break its own rules: a bug of Millrace"},
  {"check.spills", fix = "more warps, a smaller tile, or plan:split",
    "registers that a thread of the compiled kernel keeps in memory"},
  {"check.serialized", fix = "another order of the sTask named; the text of the kernel shows what stands between",
    "matrix products that the compiler lets wait for each other"},
  {"check.by_threads", note = true,
    "a load that the copy engine cannot do, for example because its rows in memory are not aligned: the threads of its lane copy instead. The hint says what the copy engine would need. Rows not aligned to 4 bytes are read in aligned words of 8 bytes: up to 7 bytes before and after the tensor's memory, never on another page"},
  {"check.model_only", note = true,
    "kernels cannot be generated for the device: plans are checked, simulated and searched"},
}

section("The command line", "options") {
  {"options", "millrace [options] [FILE.lua [arguments]]; without a script the shell opens."},
  {"-e", "-e CODE", "Run CODE; may be given again, before the script."},
  {"-s", "Strict names, as by mr.strict()."},
  {"-i", "Open the shell after the script."},
  {"-v, --version", "Print the version."},
  {"-h, --help", "Print the options."},
  {"-", "Run standard input as a script."},
  {"--", "End of the options."},
}

section("Environment", "environment") {
  {"environment", "The variables that Millrace reads."},
  {"MILLRACE_HOME", [[
The folder that has hw/ and examples/; unless given, the folder of the program, one above it, or
share/millrace.]]},
  {"MILLRACE_MEMORY", [[
The most memory to use, in MiB; unless given, three quarters of what the machine or the container has.]]},
  {"MILLRACE_LIBCUDA, MILLRACE_LIBNVRTC, MILLRACE_LIBNVML", [[
Files of NVIDIA's driver (libcuda.so.1), run-time compiler (libnvrtc) and management library
(libnvidia-ml.so.1), instead of those that the loader or the usual folders have. Without the last one,
only the state of the board is not known.]]},
  {"MILLRACE_LIBCBC", [[
The file of the solver CBC (libCbcSolver.so.3), instead of the one that the loader finds; none: no solver.
CBC continues where our own search of modulo schedules gives up.]]},
  {"NO_COLOR", "No colours."},
  {"MILLRACE_HISTORY", "The file of the shell's history, instead of that under XDG_STATE_HOME; empty: none."},
  {"MILLRACE_PAGER, PAGER", [[
The pager for values, timelines and help that are longer than the screen: MILLRACE_PAGER (empty for
none), else PAGER, else less.]]},
  {"LESS", "Options of less; FRX unless given: it ends if all fits, shows colours, and leaves the text on the screen."},
  {"XDG_STATE_HOME", "The shell keeps its history in millrace/history there; ~/.local/state unless given."},
  {"XDG_CACHE_HOME", "Compiled kernels are kept in millrace/cubin there; ~/.cache unless given."},
  {"MILLRACE_STORE", [[
The file of the store of measurements, instead of that under XDG_DATA_HOME; none: no store.]]},
  {"XDG_DATA_HOME", "Measurements are kept in millrace/store.db there; ~/.local/share unless given."},
  {"CC", "The C compiler that makes kernels for the CPU; cc unless given."},
  {"TMPDIR", "The folder for its temporary files; /tmp unless given."},
  {"TERM", "The terminal, for the explorer."},
  {"LC_ALL, LC_CTYPE, LANG", "The first one that is set says whether the terminal shows UTF-8."},
  {"HOME", "The folder of history, compiled kernels and measurements, unless the variables above say otherwise."},
}

section("Commands of the shell", "commands") {
  {"commands", "Lines that begin with a colon are for the shell itself."},
  {":help", ":help [NAME]", "As help(\"NAME\"); alone, this list."},
  {":time", ":time CHUNK", "Run the chunk, and print how long that took."},
  {":save", ":save FILE.lua", [[
Write the lines typed in this session as a script, without chunks that failed, commands, and expressions that
are not statements. :save! overwrites a file.]]},
}

section("Keys of the shell", "keys") {
  {"keys", "The keys of the shell's line. Those of the explorer: help \"explorer\", mr.keys()."},
  {"TAB", [[
Complete the word, or list the candidates: names, fields, methods; in a call of Millrace also sTasks, lanes,
units, buffers, axes, devices, plans and topics, options after {, and files.]]},
  {"Ctrl-R", "Search the history backwards."},
  {"Up, Down", "The line before and after in the history."},
  {"Ctrl-C", "Drop the line, or interrupt the running chunk; twice within a second ends the shell."},
  {"Ctrl-D", "On an empty line: leave."},
  {"Ctrl-L", "Clear the screen."},
  {"Ctrl-A, Ctrl-E", "To the beginning and the end of the line."},
}

return {sections = sections, topics = topics}
