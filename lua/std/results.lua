-- results.lua - what the methods of a server answer: the schemas, and the values, from objects of Millrace.
--
-- A number that was not counted has its evidence with it: measured, predicted by the model, a bound that is proven, or unknown, and
-- then it is null.

local draft = require "millrace.draft"
local json = require "millrace.json"
local repairs = require "millrace.repairs"
local rpc = require "millrace.rpc"
local schema = require "millrace.schema"
local object, list, map, text, integer, number, flag = schema.object, schema.list, schema.map, schema.text, schema.integer,
  schema.number, schema.flag
local nullable, named = schema.nullable, schema.named

local results = {}

local maybe_text, maybe_integer = nullable(text()), nullable(integer())
local texts, sizes = list(text()), map(integer())

---- quantities -----------------------------------------------------------------------------------

local quantity_schema = named("quantity", object({
  {"value", nullable(number "null: it is not known")},
  {"unit", text "s, cycles, Hz, W, J, TFLOP/s, GB/s; \"share\" of 1"},
  {"evidence", text("measured; predicted by the model; bound: proven that less is impossible in the model; unknown",
    {enum = {"measured", "predicted", "bound", "unknown"}})},
  {"uncertainty", nullable(number "a share of the value: nine of ten measured ones are nearer; null: it is not known")},
}, "A number with its evidence."))

-- The number, or nil if JSON cannot have it.
local function finite(x) return x == x and math.abs(x) ~= math.huge and x or nil end

local function quantity(value, unit, evidence, uncertainty)
  local known = value and value == value and math.abs(value) ~= math.huge
  return {value = known and value or nil, unit = unit, evidence = known and evidence or "unknown",
    uncertainty = known and uncertainty or nil}
end

-- All values of a table, by name.
local function quantities(t, unit, evidence)
  local out = {}
  for name, value in pairs(t or {}) do out[name] = quantity(value, unit, evidence) end
  return out
end

---- problems -------------------------------------------------------------------------------------

local location = named("location", object({
  {"file", text "the id of a plan, \"program\", \"edit\", \"sizes\": the script, source, statements or sizes that were given; or a path"},
  {"line", integer("from 1", 1)},
}, "Where something was written."))

local problem_schema = named("problem", object({
  {"code", text "the kind of problem, such as \"deadlock\""},
  {"message", text "a sentence"},
  {"location", nullable(location)},
  {"repair", nullable(text "statements for `edit` that repair it; null: none are known")},
  {"hint", nullable(text "the same, or the repair in words")},
  {"task", maybe_text}, {"other", maybe_text},
}, "A reason why a plan is not legal; of notes: what one should know, and what forbids nothing."))
local problem_list = list(problem_schema)

local function problems_of(problems)
  local out = {}
  for i, p in ipairs(problems or {}) do
    local _, at = rpc.located((p.location or "") .. ": ")
    out[i] = {code = p.code, message = p.message, location = at, repair = draft.is_code(p.hint) and p.hint or nil,
      hint = p.hint, task = p.task, other = p.other}
  end
  return out
end

results.check_schema = object{{"plan", maybe_text}, {"legal", flag "true: no execution of it can go wrong"},
  {"problems", problem_list}, {"notes", problem_list}}

function results.check(id, plan)
  local legal, problems = plan:check()
  return {plan = id, legal = legal, problems = problems_of(repairs.shown(problems)), notes = problems_of(problems.notes)}
end

---- programs, graphs, plans --------------------------------------------------------------------------

local program = named("program", object({{"name", text()}, {"sizes", sizes}, {"hash", text "of the complete program"},
  {"family", text "of the program without sizes"}}, "A program with sizes."))

results.bound_schema = object{
  {"program", text "its id, for other methods"}, {"name", text()}, {"sizes", sizes},
  {"tensors", list(object{{"name", text()}, {"role", text(nil, {enum = {"input", "output", "temp"}})}, {"dtype", text()},
    {"shape", list(integer())}, {"axes", texts}})},
  {"text", text "the program as Millrace has understood it"}}

-- Its text says which tensors are given by addresses.
function results.bound(id, bound)
  local tensors = bound.tensors
  for _, t in ipairs(tensors) do t.pointers = nil end
  return {program = id, name = bound.name, sizes = bound.axes, tensors = tensors, text = tostring(bound)}
end

local task = object{{"name", text()}, {"kind", text()}, {"phase", maybe_text}, {"loop", maybe_text}, {"shape", sizes}, {"dtype", text()},
  {"flops", integer "of one instance"}, {"bytes", integer "of global memory"}, {"shared_bytes", integer()},
  {"m", maybe_integer}, {"n", maybe_integer}, {"k", maybe_integer}, {"reads", texts}, {"writes", texts}, {"location", nullable(location)}}
local buffer = object{{"name", text()}, {"phase", maybe_text}, {"loop", maybe_text}, {"dtype", text()}, {"scope", text()}, {"shape", sizes},
  {"bytes", integer "of one version"}, {"carry", flag()}}
local edge = object{{"from", text()}, {"to", text()}, {"kind", text(nil, {enum = {"flow", "anti", "output"}})}, {"buffer", maybe_text},
  {"distance", integer "iterations of the loop"}, {"loop", maybe_text},
  {"reuse", flag "the distance counts times the versions of the buffer"}}

results.graph_schema = object{
  {"program", program}, {"tile", sizes}, {"tiles", integer "output tiles, of all phases"},
  {"flops", integer "of all products"}, {"bytes", integer "of all tensors, each once"},
  {"tasks", list(task)}, {"buffers", list(buffer)}, {"edges", list(edge)}, {"drawing", maybe_text}}

function results.graph(graph, drawing)
  local t = json.decode(graph:json())
  for _, x in ipairs(t.tasks) do
    local _, at = rpc.located((x.location ~= json.null and x.location or "") .. ": ")
    x.location = at
  end
  t.drawing = drawing and graph:drawing{width = 100, ascii = true, color = false} or nil
  return t
end

local lane = object{{"name", text()}, {"warps", maybe_integer},
  {"columns", nullable(integer "of warps; null: as products need")}, {"registers", nullable(integer "of a thread; null: what it needs")},
  {"spare", nullable(integer "of these, left to the compiler")}, {"replicas", integer()}}
local entry = object{{"task", text()}, {"lane", text()}, {"seu", text()}, {"at", integer "the iteration offset"}}
local wait = object{{"task", text()}, {"on", text()}, {"distance", nullable(integer "null: as the dependences say")},
  {"when", text(nil, {enum = {"complete", "issued"}})}}

results.plan_schema = named("plan", object({
  {"plan", text "its id, for other methods"}, {"script", text "the plan as text"}, {"legal", flag()},
  {"problems", problem_list}, {"notes", problem_list},
  {"program", program}, {"device", text()}, {"tile", sizes}, {"lanes", list(lane)}, {"entries", list(entry)}, {"waits", list(wait)},
  {"rings", map(integer "the versions of a buffer")}, {"grid", map(schema.any({"integer", "string", "boolean"}), "as plan:grid takes it")},
}, "A plan, as text and in parts."))

function results.plan(id, plan)
  local t, checked = json.decode(plan:json()), results.check(id, plan)
  t.plan, t.legal, t.problems, t.notes = id, checked.legal, checked.problems, checked.notes
  return t
end

results.edit_schema = object{{"plan", results.plan_schema}, {"diff", text "what came and went"}}

local difference = object{{"sign", text(nil, {enum = {"-", "+"}})}, {"statement", text()}}
results.diff_schema = object{{"text", text "the lines that differ, with those around them"}, {"statements", list(difference)}}

function results.diff(d)
  local out = {}
  for i, row in ipairs(d) do out[i] = {sign = row[1], statement = row[2]} end
  return {text = d.text, statements = out}
end

---- predictions ----------------------------------------------------------------------------------

local phase = object{{"name", maybe_text}, {"tiles", integer()}, {"eus", integer()}, {"cycles", quantity_schema}, {"ii", quantity_schema},
  {"res_mii", quantity_schema}, {"rec_mii", quantity_schema}}
local event = object{{"task", text()}, {"lane", text()}, {"replica", integer()}, {"seu", text()}, {"phase", integer()},
  {"iteration", integer()}, {"tile", integer()}, {"ready", number()}, {"issue", number()}, {"start", number()}, {"end", number()},
  {"cause", maybe_text}, {"on", maybe_text},
  {"warpgroups", nullable(list(object{{"ready", number()}, {"issue", number()}, {"start", number()}, {"end", number()}}),
    "what each does of it, where those of the lane run separately; the times above are the last one's")}}

results.timeline_schema = object{
  {"plan", maybe_text}, {"program", program}, {"device", text()},
  {"seconds", quantity_schema}, {"cycles", quantity_schema}, {"tflops", quantity_schema},
  {"gbps", quantity_schema}, {"bandwidth_share", quantity_schema},
  {"ii", quantity_schema}, {"bound", quantity_schema}, {"res_mii", quantity_schema}, {"rec_mii", quantity_schema},
  {"clock", quantity_schema}, {"power", quantity_schema}, {"energy", map(quantity_schema, "by kind")},
  {"utilization", map(quantity_schema, "of each unit, and of memory; of a copy engine, the time that issuing takes")},
  {"under_way", map(quantity_schema, "of each unit; of a copy engine, the time with transfers under way")},
  {"uncertainty_least", nullable(number "where no uncertainty is known: it is no smaller than this share")},
  {"uncertainty_reason", nullable(text "why the uncertainty of these numbers is not known; null: it is")},
  {"noise", nullable(number "a share: two predictions that differ by more are in the right order")},
  {"cache", maybe_text}, {"unpriced", nullable(text "why no kernel can be made of the plan, so that its costs are not in the times")},
  {"phases", list(phase)},
  {"events", nullable(object({{"unit", text()}, {"evidence", text()}, {"list", list(event)}}, "What ran when on one EU."))},
  {"drawing", maybe_text}}

-- Of a simulated timeline.
function results.timeline(id, tl, events, drawing)
  local t, phases = json.decode(tl:json{events = false}), {}
  for i, p in ipairs(tl.phases) do
    phases[i] = {name = p.name, tiles = p.tiles, eus = p.eus, cycles = quantity(p.cycles, "cycles", "predicted"),
      ii = quantity(p.ii, "cycles", "predicted"), res_mii = quantity(p.res_mii, "cycles", "bound"),
      rec_mii = quantity(p.rec_mii, "cycles", "bound")}
  end
  return {plan = id, program = t.program, device = t.device,
    seconds = quantity(tl.seconds, "s", "predicted", tl.uncertainty), cycles = quantity(tl.cycles, "cycles", "predicted"),
    tflops = quantity(tl.tflops, "TFLOP/s", "predicted", tl.uncertainty),
    gbps = quantity(tl.gbps, "GB/s", "predicted", tl.uncertainty),
    bandwidth_share = quantity(tl.bandwidth_share, "share", "predicted", tl.uncertainty), ii = quantity(tl.ii, "cycles", "predicted"),
    bound = quantity(tl.bound, "cycles", "bound"), res_mii = quantity(tl.res_mii, "cycles", "bound"),
    rec_mii = quantity(tl.rec_mii, "cycles", "bound"), clock = quantity(tl.clock_hz, "Hz", "predicted"),
    power = quantity(tl.power, "W", "predicted"), energy = quantities(tl.energy, "J", "predicted"),
    utilization = quantities(tl.utilization, "share", "predicted"), under_way = quantities(tl.under_way, "share", "predicted"),
    uncertainty_least = tl.uncertainty_least, uncertainty_reason = tl.uncertainty_reason,
    noise = tl.noise, cache = tl.cache, unpriced = tl.unpriced,
    phases = phases, events = events and {unit = tl.unit, evidence = "predicted", list = tl.events} or nil,
    drawing = drawing and tl:text{width = 100, ascii = true, color = false} or nil}
end

local suggestion = named("suggestion", object({{"statements", text "for `edit`"}, {"reason", maybe_text}, {"gain", quantity_schema},
  {"within_noise", nullable(flag "true: too near to call")}, {"seconds", quantity_schema},
  {"script", nullable(text "the changed plan; null: it was not tried")}}, "A change of a plan."))

results.why_schema = object{{"plan", maybe_text}, {"text", text "what limits the plan, and what would help"},
  {"binds", text "what limits it"}, {"seconds", quantity_schema}, {"tried", integer "how many changes are legal"}, {"changes", list(suggestion)}}
results.suggest_schema = object{{"plan", maybe_text}, {"legal", flag()}, {"text", text "the first of them, in words"},
  {"suggestions", list(suggestion)}}

-- The first of some suggestions, which come best first. noise: of the timeline that they were compared with, or nil.
local function suggestions_of(found, most, noise)
  local out = {}
  for i = 1, math.min(most, #found) do
    local s = found[i]
    out[i] = {statements = s.text, reason = s.reason, gain = quantity(s.gain, "share", "predicted"),
      seconds = quantity(s.seconds, "s", "predicted"), script = s.script}
    if noise and s.gain then out[i].within_noise = math.abs(s.gain) <= noise end
  end
  return out
end

function results.why(id, tl, most)
  local said, found = tl:why()
  return {plan = id, text = tostring(said), binds = said.binds, seconds = quantity(tl.seconds, "s", "predicted", tl.uncertainty),
    tried = #found, changes = suggestions_of(found, most, tl.noise)}
end

function results.suggest(id, plan, most)
  local legal, found = plan:check(), plan:suggest()
  return {plan = id, legal = legal, text = tostring(found),
    suggestions = suggestions_of(found, most, legal and plan:simulate{events = 0}.noise or nil)}
end

---- searches and kernels --------------------------------------------------------------------------

results.search_schema = object{
  {"plan", results.plan_schema}, {"seconds", quantity_schema}, {"measured", quantity_schema}, {"ii", quantity_schema},
  {"bound", quantity_schema}, {"gap", quantity_schema}, {"bound_seconds", quantity_schema},
  {"proven", flag "true: with these lanes no order, offsets or versions have a shorter interval"},
  {"trials", integer()}, {"shapes", integer()}, {"pruned", integer()}, {"ended", text "why the search ended"},
  {"why", text "the proof, in words"}}

function results.search(id, plan, r)
  return {plan = results.plan(id, plan), seconds = quantity(r.seconds, "s", "predicted", r.timeline.uncertainty),
    measured = quantity(r.measured and r.measured.ms * 1e-3, "s", "measured"), ii = quantity(r.ii, "cycles", "predicted"),
    bound = quantity(r.bound, "cycles", "bound"), gap = quantity(r.gap, "share", "predicted"),
    bound_seconds = quantity(r.bound_seconds, "s", "bound"), proven = r.proven, trials = r.trials, shapes = r.shapes, pruned = r.pruned,
    ended = r.ended, why = r.why()}
end

local maybe_number = nullable(number "null: it is infinite or not a number")
local element = object({{"output", text()}, {"index", list(integer "from 1")}, {"tile", map(integer "from 0", "by axis")},
  {"got", maybe_number}, {"want", maybe_number}, {"allowed", maybe_number}},
  "The element that is off by the greatest share of what roundings explain.")
local comparison = object({{"ok", flag()}, {"relative", quantity_schema},
  {"allowed", nullable(number "the relative error if each element were off by what roundings explain")}, {"max_abs", quantity_schema},
  {"reference", text()}, {"wrong", integer "how many elements are off by more than roundings explain"}, {"worst", nullable(element)}},
  "Its results compared with the reference's.")

results.kernel_schema = object{
  {"plan", maybe_text}, {"target", text()}, {"source", text "the text of the kernel"},
  {"registers", nullable(integer "of a thread; null: it was not compiled for a device")},
  {"spills", nullable(integer "bytes of a thread")}, {"shared_bytes", maybe_integer},
  {"problems", problem_list}, {"warnings", texts}, {"check", nullable(comparison)}}

-- compared: what k:check{} gave, or nil.
function results.kernel(id, k, compared)
  local compiled = k.target ~= "host" and k.registers > 0
  local t = {plan = id, target = k.target, source = k.source, problems = problems_of(compiled and k.problems),
    warnings = compiled and k.warnings or {}}
  if compiled then t.registers, t.spills, t.shared_bytes = k.registers, k.spills, k.smem end
  local worst = compared and compared.worst
  t.check = compared and {ok = compared.ok, relative = quantity(compared.relative, "share", "measured"),
    allowed = finite(compared.allowed), max_abs = quantity(compared.max_abs, "of an element", "measured"),
    reference = compared.reference, wrong = compared.wrong,
    worst = worst and {output = worst.output, index = worst.index, tile = worst.tile, got = finite(worst.got),
      want = finite(worst.want), allowed = finite(worst.allowed)}}
  return t
end

results.benchmark_schema = object{{"plan", maybe_text}, {"seconds", quantity_schema}, {"least", quantity_schema}, {"most", quantity_schema},
  {"runs", integer()}, {"tflops", quantity_schema}, {"gbps", quantity_schema}, {"bandwidth_share", quantity_schema},
  {"power", quantity_schema}, {"cache", maybe_text}}

function results.benchmark(id, b)
  return {plan = id, seconds = quantity(b.ms * 1e-3, "s", "measured"), least = quantity(b.min * 1e-3, "s", "measured"),
    most = quantity(b.max * 1e-3, "s", "measured"), runs = b.runs, tflops = quantity(b.tflops, "TFLOP/s", "measured"),
    gbps = quantity(b.gbps, "GB/s", "measured"), bandwidth_share = quantity(b.bandwidth_share, "share", "measured"),
    power = quantity(b.watts, "W", "measured"), cache = b.cache}
end

return results
