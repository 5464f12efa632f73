-- methods.lua - what another program can ask of Millrace: `millrace serve`. One table says each method's name, what it does, its
-- parameters and its answer; dispatch, MCP's tools and docs/serve.schema.json come from it.
--
-- A method calls what a script or the shell would call, so that all get the same answers.

local core = require "millrace.core"
local known = require "millrace.topics"
local loader = require "millrace.loader"
local json = require "millrace.json"
local membrane = require "millrace.membrane"
local results = require "millrace.results"
local rpc = require "millrace.rpc"
local schema = require "millrace.schema"
local session = require "millrace.session"
local mr = require "millrace"
local object, list, map, any = schema.object, schema.list, schema.map, schema.any
local text, integer, number, flag = schema.text, schema.integer, schema.number, schema.flag

-- A search of a server ends after so many plans, before the seconds have passed: its answer is then always the same.
local SEARCH_TRIALS <const>, SEARCH_SECONDS <const> = 300, 10
local EVENTS_MOST <const> = 10000
local CHANGES <const> = 5

---- parameters ---------------------------------------------------------------------------------------

local program_properties = {
  {"program", text "name of an example, see `examples`; or the id of a bound program, \"program 1\"", true},
  {"source", text "instead of program: Lua text that ends with return mr.program(name, function(p) ... end)", true},
  {"sizes", map(any({"number", "string", "boolean"}), "the sizes of its axes, and its options, by name"), true},
  {"call", text "if the example is a sequence of kernels: the call whose program is meant", true},
}

local function with_program(...)
  local properties = table.move(program_properties, 1, #program_properties, 1, {})
  return object(table.move({...}, 1, select("#", ...), #properties + 1, properties))
end

local plan_property = {"plan", text "its id, \"plan 1\"; the name of one that comes with Millrace, \"gemm_cooperative\"; or a script"}
local tile_property = {"tile", map(integer(nil, 1), "extents by axis")}
local maybe_tile = {"tile", tile_property[2], true}
local maybe_plan = {"plan", plan_property[2], true}
local device_property = {"device", text "its name, see `devices`; unless given, the attached one, or h200", true}
local most_property = {"most", integer(("how many to list, unless given %d"):format(CHANGES), 0, 100), true}
local drawing_property = {"drawing", flag "also draw it, in characters", true}

---- devices and programs ------------------------------------------------------------------------------

local device = object{{"name", text()}, {"title", text()}, {"arch", text()}, {"eus", integer()}, {"clock_hz", integer()},
  {"seus", list(object{{"name", text()}, {"kind", text(nil, {enum = {"copy", "matrix", "vector"}})}, {"async", flag()}})}}

local function devices()
  local out = {}
  for i, name in ipairs(mr.devices()) do out[i] = mr.device(name) end
  local found, why = mr.attached()
  return {devices = out, attached = found and found.name, reason = why}
end

local function examples()
  local out = {}
  for name in pairs(mr.examples) do out[#out + 1] = {name = name, text = known.example(name)} end
  return {programs = out, plans = loader.plan_names()}
end

local function bind(s, p)
  local bound = s:bound(p)
  return results.bound(s:keep("program", bound), bound)
end

local function graph(s, p) return results.graph(s:bound(p):graph{tile = p.tile}, p.drawing) end

---- plans -----------------------------------------------------------------------------------------------

local function keep(s, plan) return results.plan(s:add_plan(plan)) end

local function plan(s, p)
  local named = p.program or p.source
  if p.plan then
    for _, name in ipairs{"tile", "device"} do
      if p[name] then session.refuse(name, ("'%s' is that of 'plan'"):format(name)) end
    end
    return keep(s, (s:plan(p.plan, named and s:bound(p))))
  end
  if not p.tile then session.refuse("tile", "'tile' is missing: extents by axis, such as {\"m\": 128}") end
  return keep(s, mr.plan(s:bound(p):graph{tile = p.tile}, session.device(p.device)))
end

local edit_property = {"edits", any({"string", "array"}, "statements of a script, such as plan:wait(\"mma\", {\"load_a\"}); or a list of "
    .. "methods and arguments, in which a wait for more than a name is {\"on\": name, \"distance\": 1, \"when\": \"issued\"}",
  {items = object{{"method", text(nil, {enum = membrane.EDITS})},
    {"arguments", list(any{"string", "number", "object", "array", "null"}), true}}})}

local function edit(s, p)
  local before = s:plan(p.plan)
  local after = before:copy()
  session.edit(after, p.edits)
  return {plan = keep(s, after), diff = before:diff(after).text}
end

local function check(s, p)
  local of, id = s:plan(p.plan)
  return results.check(id, of)
end

local function predict(s, p)
  local of, id = s:plan(p.plan)
  local tl = of:simulate{events = p.events or p.drawing and 4096 or 0}
  return results.timeline(id, tl, p.events ~= nil and p.events > 0, p.drawing)
end

local function why(s, p)
  local of, id = s:plan(p.plan)
  return results.why(id, of:simulate(), p.most or CHANGES)
end

local function suggest(s, p)
  local of, id = s:plan(p.plan)
  return results.suggest(id, of, p.most or CHANGES)
end

local function diff(s, p) return results.diff((s:plan(p.plan)):diff((s:plan(p.other)))) end

---- searches and kernels ------------------------------------------------------------------------------------

local function search(s, p)
  local r, reason = mr.search(s:bound(p), session.device(p.device), {seconds = p.seconds or SEARCH_SECONDS,
    trials = p.trials or SEARCH_TRIALS, tile = p.tile, measure = p.measure or false})
  if not r then core.raise("search: " .. reason) end
  local id, of = s:add_plan(r.plan)
  return results.search(id, of, r)
end

local function compile(s, p)
  local of, id = s:plan(p.plan)
  local target = p.target or core.target_for(of)
  local k = of:compile{target = target, text = target ~= "host" and p.text ~= false and not p.check or nil}
  return results.kernel(id, k, p.check and k:check{seed = p.seed, limit = p.limit or 10} or nil)
end

local function measure(s, p)
  local of, id = s:plan(p.plan)
  local target = core.gpu_target(of)
  local found, reason = core.attached(target)
  if not found then core.raise("measure: " .. reason) end
  return results.benchmark(id, of:compile{target = target}:bench{seconds = p.seconds})
end

---- the table -----------------------------------------------------------------------------------------------

local methods = {}

-- about: what it does, for those who choose among methods.
local function method(name, run, params, result, about)
  methods[#methods + 1] = {name = name, run = run, params = params, result = result, about = about}
end

method("devices", devices, object{}, object{{"devices", list(device)},
  {"attached", schema.nullable(text "the attached GPU; null: none, see reason")}, {"reason", schema.nullable(text())}},
  "The devices that Millrace has a model of, and which one is attached.")
method("examples", examples, object{}, object{
  {"programs", list(object{{"name", text()}, {"text", text "sizes and options"}})}, {"plans", list(text())}},
  "Programs that come with Millrace, with their sizes and options, and names of plans for them.")
method("bind", bind, with_program(), results.bound_schema,
  "Give a program its sizes: an example, or one of your own in the tile language.")
method("graph", graph, with_program(tile_property, drawing_property), results.graph_schema,
  "The sTasks of a program with a tile shape, the buffers between them and their dependences.")
method("plan", plan, with_program(maybe_tile, device_property, maybe_plan), results.plan_schema,
  "Begin an empty plan of a program with a tile shape, or read one: by name, or from its script. Says whether it is legal, and how to "
  .. "repair it.")
method("edit", edit, object{plan_property, edit_property}, results.edit_schema,
  "Edit a plan by statements. The edited plan is a new one; the first stays as it is.")
method("check", check, object{plan_property}, results.check_schema,
  "Whether a plan is legal: the problems, where they are, and the statements that repair them.")
method("predict", predict, object{plan_property, {"events", integer("so many events, too", 0, EVENTS_MOST), true}, drawing_property},
  results.timeline_schema, "The time of a legal plan on the model of its device, and what bounds it.")
method("why", why, object{plan_property, most_property}, results.why_schema,
  "What limits a legal plan, and which changes would help by how much: each was tried.")
method("suggest", suggest, object{plan_property, most_property}, results.suggest_schema,
  "The next statements: those that make a plan legal, or those that make it faster, best first.")
method("diff", diff, object{plan_property, {"other", plan_property[2]}}, results.diff_schema,
  "The statements to take out of a plan, and to put in, to have another one of the same program.")
method("search", search, with_program(device_property,
    {"tile", map(any({"integer", "array"}, nil, {items = integer(nil, 1), minimum = 1}), "an extent, or several to try, by axis"), true},
    {"trials", integer(("most plans tried, unless given %d"):format(SEARCH_TRIALS), 1, 100000), true},
    {"seconds", number(("when to end, unless given %d"):format(SEARCH_SECONDS), 0, 3600), true},
    {"measure", flag "measure the best ones on the attached device; an error if there is none", true}), results.search_schema,
  "Search for a good plan of a program: on the model, and if asked, on the attached device.")
method("compile", compile, object{plan_property, {"target", text("unless given the GPU's", {enum = {"cuda", "hip", "host"}}), true},
    {"text", flag "false: for cuda, compile the text as well", true},
    {"check", flag "run it, and compare the results with the reference's", true}, {"seed", integer "of the random inputs", true},
    {"limit", number("seconds that the kernel may run, unless given 10", 0.001, 600), true}}, results.kernel_schema,
  "The kernel of a legal plan, as text for CUDA, or compiled for the CPU, where it can be run and checked.")
method("measure", measure, object{plan_property, {"seconds", number("how long to measure, unless given 1", 0.001, 60), true}},
  results.benchmark_schema, "Compile a legal plan and time it on the attached device; an error if there is none.")

local by_name, names = {}, {}
for i, m in ipairs(methods) do by_name[m.name], names[i] = m, m.name end

-- Call a method with its parameters, a table as json.decode gives it. Returns its result, for json.line.
function methods.call(s, name, params)
  local m = by_name[name]
  if not m then
    local near = core.hint(name, names)
    rpc.fail(rpc.METHOD, ("there is no method '%s'%s"):format(name, near), {nearest = near:match "'(.*)'", methods = names})
  end
  local wrong = schema.problem(m.params, params)
  if wrong then
    rpc.fail(rpc.PARAMS, ("%s: %s"):format(name, wrong.message),
      {parameter = wrong.path, expected = wrong.expected, nearest = wrong.nearest})
  end
  return schema.shaped(m.result, m.run(s, params))
end

---- as documents ----------------------------------------------------------------------------------------------

-- All methods as one JSON Schema, of requests; the results are among its definitions: "#/$defs/plan.result".
function methods.schema()
  local defs, requests = {}, {}
  for i, m in ipairs(methods) do
    defs[m.name .. ".params"] = schema.written(m.params, defs)
    defs[m.name .. ".result"] = schema.written(m.result, defs)
    requests[i] = json.object("description properties required", {description = m.about, required = {"method"},
      properties = json.object("method params", {method = {const = m.name}, params = {["$ref"] = ("#/$defs/%s.params"):format(m.name)}})})
  end
  return json.object("$schema title description type properties required oneOf $defs", {
    ["$schema"] = "https://json-schema.org/draft/2020-12/schema",
    title = "Requests of millrace serve",
    description = "A request is one line of JSON-RPC 2.0. The result of a method NAME is #/$defs/NAME.result.",
    type = "object",
    properties = json.object("jsonrpc id method params", {jsonrpc = {const = "2.0"}, id = {type = {"string", "number", "null"}},
      method = {enum = names}, params = {type = "object"}}),
    required = {"jsonrpc", "method"}, oneOf = requests, ["$defs"] = defs})
end

return methods
