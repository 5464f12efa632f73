-- millrace serve: each method answers what the Lua call gives, as the schema says; and what is wrong is an error that says so.
local mr = require "millrace"
local json = require "millrace.json"
local loader = require "millrace.loader"
local methods = require "millrace.methods"
local repairs = require "millrace.repairs"
local rpc = require "millrace.rpc"
local session = require "millrace.session"
local here = arg[0]:match "^(.*/)" or "./"
local tap = dofile(here .. "tap.lua")
local parse = dofile(here .. "lib/parse_json.lua")
local check_schema = dofile(here .. "lib/check_schema.lua")
local ok, is, like = tap.ok, tap.is, tap.like
local null = parse.null

---- the schema ----------------------------------------------------------------------------------

tap.golden("docs/serve.schema.json", json.encode(methods.schema()) .. "\n", "docs/serve.schema.json is what millrace serve --schema prints")
local root = parse(json.encode(methods.schema()))
local check = check_schema(root, parse)
local used = {}
local function references(x)
  if type(x) ~= "table" then return end
  if x["$ref"] then used[x["$ref"]:match "[^/]*$"] = true end
  for _, inner in pairs(x) do references(inner) end
end
references(root)
local missing = {}
for name in pairs(used) do missing[#missing + 1] = not root["$defs"][name] and name or nil end
is(table.concat(missing, " "), "", "all that it refers to is there")
is(#root.properties.method.enum, 14, "it has 14 methods")

---- asking -----------------------------------------------------------------------------------------

local s = session.new()
local function answer(line) return rpc.answer(line, function(name, params) return methods.call(s, name, params) end) end

-- The answer to a request, read back; every answer is held to the schema.
local function ask(name, params)
  local line = json.line{jsonrpc = "2.0", id = 1, method = name, params = params}
  local text = answer(line)
  local got, order = parse(text)
  if got.result then
    local why = check({["$ref"] = "#/$defs/" .. name .. ".result"}, got.result, order)
    if why then ok(false, name .. " answers as the schema says", why, text:sub(1, 500)) end
  end
  return got.result, got.error, text
end

local function fails(name, params, code, message, what)
  local _, e = ask(name, params)
  ok(e and e.code == code and e.message == message, what or message, "  got: " .. (e and e.code .. " " .. e.message or "no error"),
    " want: " .. code .. " " .. message)
  return e
end

-- Of a quantity.
local function says(q, value, evidence, uncertainty, what)
  ok(q.value == (value or null) and q.evidence == evidence and q.uncertainty == (uncertainty or null), what,
    ("  got: %s %s %s"):format(tostring(q.value), q.evidence, tostring(q.uncertainty)))
end

---- devices and programs ------------------------------------------------------------------------------

local got = ask "devices"
local names = {}
for i, d in ipairs(got.devices) do names[i] = d.name end
is(table.concat(names, " "), table.concat(mr.devices(), " "), "devices: their names")
ok(got.devices[3].clock_hz == mr.device(names[3]).clock_hz and #got.devices[3].seus == #mr.device(names[3]).seus, "  what they are")
got = ask "examples"
names = {}
for i, e in ipairs(got.programs) do names[i] = e.name end
is("examples\n  " .. table.concat(names, "\n  "), tostring(mr.examples), "examples: their names")
like(got.programs[4].text, "sizes", "  their sizes and options")
local wrong = {}
for _, name in ipairs(got.plans) do
  if not pcall(mr.load_plan, name) then wrong[#wrong + 1] = name end
end
ok(#got.plans >= 9 and #wrong == 0, "  names of plans that load", table.unpack(wrong))

local SIZES <const> = {m = 1024, n = 512, k = 256}
local bound = mr.examples.gemm(SIZES)
got = ask("bind", {program = "gemm", sizes = SIZES})
ok(got.program == "program 1" and got.text == tostring(bound) and got.sizes.k == 256 and got.tensors[2].name == "B", "bind: an example")
local SOURCE <const> = [[
local mr = require "millrace"
return mr.program("scale", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m, n})
  local x = p:load("load", X)
  Y:store("store", p:task("scale", function() return (x * p.factor):to "bf16" end))
end)]]
local own = load(SOURCE)()
got = ask("bind", {source = SOURCE, sizes = {m = 64, n = 64, factor = 2.5}})
is(got and got.text, tostring(own{m = 64, n = 64, factor = 2.5}), "  a program of one's own")

local graph = bound:graph{tile = {m = 128, n = 128, k = 64}}
got = ask("graph", {program = "program 1", tile = {m = 128, n = 128, k = 64}, drawing = true})
ok(got.tiles == graph.tiles and got.flops == graph.flops and #got.edges == #graph.edges and got.tasks[3].name == "mma"
  and got.tasks[3].location.line > 0, "graph: what the graph is")
is(got.drawing, graph:drawing{width = 100, ascii = true}, "  and a drawing")

---- plans ------------------------------------------------------------------------------------------------

-- The plan of an answer by the Lua calls.
local function made(answered, of) return loader.of_text(mr, answered.script, answered.plan, of) end

local function same_problems(list, problems)
  local differ = #list ~= #problems
  for i, p in ipairs(problems) do
    local g = list[i] or {}
    local location = g.location and g.location ~= null and ("%s:%d"):format(g.location.file, g.location.line) or nil
    if p.code == "missing_task" then location = p.location end    -- where the plan was begun: here, or nowhere
    differ = differ or g.code ~= p.code or g.message ~= p.message or location ~= p.location or g.hint ~= (p.hint or null)
  end
  return not differ
end

local TILE <const> = {m = 128, n = 128, k = 64}
got = ask("plan", {program = "program 1", tile = TILE, device = "h200"})
local empty = mr.plan(graph, mr.device "h200")
is(got.script, empty:script(), "plan: an empty one")
local legal, problems = empty:check()
ok(got.plan == "plan 1" and got.legal == legal and same_problems(got.problems, repairs.shown(problems)),
  "  with its id and its problems, as check() shows them")

local id, edits = "plan 1", 0
while edits < 25 do                                     -- do what the repairs say
  local p = ask("check", {plan = id})
  if p.legal then break end
  edits = edits + 1
  id = ask("edit", {plan = id, edits = p.problems[1].repair}).plan.plan
end
got = ask("plan", {plan = id})
ok(got.legal and edits < 25, ("from an empty plan the repairs alone lead to a legal one, in %d edits"):format(edits))
ok(not ask("check", {plan = "plan 1"}).legal, "edits leave the plan as it was that they were made of")

got = ask("plan", {plan = "gemm_cooperative"})
local plan = mr.load_plan "gemm_cooperative"
local cooperative = got.plan
is(got.script, plan:script(), "plan: one that comes with Millrace")
got = ask("plan", {plan = plan:script(), program = "gemm", sizes = SIZES})
is(got.script, mr.load_plan("gemm_cooperative", bound):script(), "  from its script, for another program")
got = ask("edit", {plan = cooperative, edits = 'plan:unwait("mma.0", "load_a")\nplan:buffers{a=3}'})
local copy = plan:copy()
copy:unwait("mma.0", "load_a")
copy:buffers{a = 3}
ok(got.plan.script == copy:script() and got.diff == plan:diff(copy).text, "edit: statements")
local broken = got.plan.plan
_, problems = made(got.plan):check()
ok(not got.plan.legal and same_problems(got.plan.problems, repairs.shown(problems)), "  the problems of the edited plan")
do
  local several = ask("edit", {plan = "attention_pingpong",
    edits = 'plan:unwait("mma_qk.0", "load_k")\nplan:unwait("load_v", "mma_pv.1")'}).plan.problems
  ok(#several == 1 and several[1].repair == "plan:fill_waits()" and several[1].task ~= null, "  waits that are missing are one problem",
    #several)
end
is(got.plan.script:match(("[^\n]*\n"):rep(got.plan.problems[1].location.line - 1) .. "([^\n]*)"),
  'plan:append("mma.0", {seu="tensor", lane="c0"})',
  "  whose locations are lines of its script")
got = ask("edit", {plan = broken, edits = {{method = "wait", arguments = {"mma.0", {{on = "load_a", distance = 0}}}},
  {method = "fill_waits"}}})
copy = made{script = ask("plan", {plan = broken}).script, plan = "x"}
copy:wait("mma.0", {{"load_a", distance = 0}})
copy:fill_waits()
is(got.plan.script, copy:script(), "  as methods and arguments")
local function again(id) return made{script = ask("plan", {plan = id}).script, plan = "x"} end
is(ask("diff", {plan = cooperative, other = broken}).text, plan:diff(again(broken)).text, "diff")

---- predictions --------------------------------------------------------------------------------------------

local tl = plan:simulate{events = 100}
got = ask("predict", {plan = cooperative, events = 100, drawing = true})
says(got.seconds, tl.seconds, "predicted", tl.uncertainty, "predict: the time, with its uncertainty")
says(got.ii, tl.ii, "predicted", nil, "  the interval")
says(got.rec_mii, tl.rec_mii, "bound", nil, "  its bounds")
says(got.utilization.tensor, tl.utilization.tensor, "predicted", nil, "  the units")
says(got.under_way.tma, tl.under_way.tma, "predicted", nil, "  the transfers under way")
local event = got.events.list[7]
ok(#got.events.list == #tl.events and event.task == tl.events[7].task and event.issue == tl.events[7].issue, "  events")
is(got.drawing, plan:simulate{events = 100}:text{width = 100, ascii = true}, "  a drawing")
local on_amd = mr.plan(bound:graph{tile = TILE}, mr.device "mi300x")
for _, task in ipairs(on_amd.tasks) do on_amd:append(task.name, {lane = "c0"}) end
on_amd:fill_waits()
got, tl = ask("predict", {plan = on_amd:script()}), on_amd:simulate()
says(got.seconds, tl.seconds, "predicted", tl.uncertainty, "  on a device without power numbers")
if not tl.power then says(got.power, nil, "unknown", nil, "  power is then unknown, and no number") end

local said, found = plan:simulate():why()
got = ask("why", {plan = cooperative, most = 3})
ok(got.text == tostring(said) and got.binds == said.binds and got.tried == #found and #got.changes == 3
  and got.changes[1].script == found[1].script and got.changes[1].statements == found[1].text, "why: what tl:why() says")
says(got.changes[1].gain, found[1].gain, "predicted", nil, "  and the gains")
got = ask("suggest", {plan = broken})
found = again(broken):suggest()
ok(not got.legal and got.text == tostring(found) and got.suggestions[1].statements == found[1].text, "suggest: how to make a plan legal")
says(got.suggestions[1].gain, nil, "unknown", nil, "  whose gain is not known")
got, found = ask("suggest", {plan = cooperative, most = 1}), plan:suggest()
ok(got.legal and #got.suggestions == math.min(1, #found) and got.text == tostring(found), "  and how to make it faster")

-- Doing what is suggested, from an empty plan on.
local next_plan, steps = ask("plan", {program = "program 1", tile = TILE, device = "h200"}), 0
while not next_plan.legal and steps < 20 do
  local first = ask("suggest", {plan = next_plan.plan, most = 1}).suggestions[1]
  next_plan, steps = ask("edit", {plan = next_plan.plan, edits = first.statements}).plan, steps + 1
end
ok(next_plan.legal, ("  %d suggestions lead from an empty plan to a legal one"):format(steps))

---- searches and kernels -------------------------------------------------------------------------------------

local r = mr.search(bound, mr.device "h200", {trials = 40, measure = false})
got = ask("search", {program = "program 1", device = "h200", trials = 40})
ok(got.plan.script == r.plan:script() and got.trials == r.trials and got.why == r.why() and got.proven == r.proven, "search: the same plan")
says(got.seconds, r.seconds, "predicted", r.timeline.uncertainty, "  its time")
says(got.bound_seconds, r.bound_seconds, "bound", nil, "  the bound of others")
says(got.measured, nil, "unknown", nil, "  what was not measured is unknown")
local small = ask("plan", {plan = "gemm_cooperative", program = "gemm", sizes = {m = 128, n = 256, k = 64}}).plan
local k = mr.load_plan("gemm_cooperative", mr.examples.gemm{m = 128, n = 256, k = 64}):compile{text = true}
got = ask("compile", {plan = small})
ok(got.source == k.source and got.registers == null and got.check == null, "compile: the text")
k = k.plan:compile{target = "host"}
got = ask("compile", {plan = small, target = "host", check = true})
ok(got.source == k.source and got.check.ok, "  for the CPU, where it is checked")
says(got.check.relative, k:check().relative, "measured", nil, "  with its error")
local attached, reason = mr.attached()
if not attached then fails("measure", {plan = small}, rpc.MILLRACE, "measure: " .. reason, "measure: an error without a device") end
local results = require "millrace.results"
local timed = parse(json.line(require "millrace.schema".shaped(results.benchmark_schema,
  results.benchmark("plan 1", {ms = 0.5, min = 0.4, max = 0.75, runs = 20, tflops = 660.5, gbps = 100}))))
says(timed.seconds, 0.5e-3, "measured", nil, "  what is measured says so")
says(timed.power, nil, "unknown", nil, "  and what the board does not report is unknown")

---- errors of methods ---------------------------------------------------------------------------------------------

local e = fails("chek", {}, rpc.METHOD, "there is no method 'chek'; did you mean 'check'?")
is(e.data.nearest, "check", "  its nearest name")
e = fails("check", {plam = "plan 1"}, rpc.PARAMS, "check: unknown parameter 'plam'; did you mean 'plan'?")
ok(e.data.parameter == "plam" and e.data.nearest == "plan", "  for programs, too")
fails("check", {}, rpc.PARAMS, "check: 'plan' is missing: string expected")
e = fails("graph", {program = "gemm", sizes = SIZES, tile = {m = 1.5}}, rpc.PARAMS,
  "graph: 'tile.m': integer of at least 1 expected, got 1.5")
is(e.data.expected, "integer of at least 1", "  what was expected")
fails("compile", {plan = small, target = "cude"}, rpc.PARAMS,
  [[compile: 'target': one of "cuda", "hip", "host" expected, got 'cude'; did you mean 'cuda'?]])
fails("bind", {sizes = SIZES}, rpc.PARAMS, "'program' or 'source' is missing")
fails("check", {plan = "plan 999"}, rpc.PARAMS, "there is no plan 999")
fails("check", {plan = "gem_cooperative"}, rpc.PARAMS, "no plan 'gem_cooperative' comes with Millrace; did you mean 'gemm_cooperative'?")
fails("bind", {program = "program 9"}, rpc.PARAMS, "there is no program 9")
e = fails("bind", {program = "llama3_decode", sizes = {b = 1}}, rpc.PARAMS,
  "'llama3_decode' is a sequence of 5 kernels: 'call' must name one of them, such as 'qkv'")
is(e.data.parameter, "call", "  which is the parameter to give")
e = fails("search", {program = "llama3_decode", sizes = {b = 1}, call = "oout"}, rpc.PARAMS,
  "sequence 'llama3_decode' has no call 'oout'; did you mean 'out'?")
is(e.data.nearest, "out", "  and the nearest call")
fails("bind", {program = "gemm", sizes = SIZES, call = "out"}, rpc.PARAMS, "'gemm' is a program, of which there are no calls")
is(ask("bind", {program = "llama3_decode", sizes = {b = 1}, call = "out"}).name, "gemm", "the program of a call is bound")
fails("plan", {program = "program 1", tile = TILE, device = "../hw/h200.lua"}, rpc.PARAMS, "'device' is the name of a device, not a path")
fails("plan", {program = "program 1", tile = TILE, device = "h300"}, rpc.MILLRACE,
  "device: unknown device 'h300'; did you mean 'h100'? (known: " .. table.concat(mr.devices(), ", ") .. ")")
e = fails("edit", {plan = cooperative, edits = 'plan:buffers{a=3}\nplan:wait("mma.2", {"load_a"})'}, rpc.MILLRACE,
  "there is no sTask 'mma.2'; did you mean 'mma.0'?")
ok(e.data.location.file == "edit" and e.data.location.line == 2, "  with its location in the edits")
is(ask("plan", {plan = cooperative}).script, plan:script(), "  and nothing is edited")
fails("edit", {plan = cooperative, edits = 'plan:script()'}, rpc.MILLRACE, "edit: there is no statement plan:script")
fails("edit", {plan = cooperative, edits = 'os.exit()'}, rpc.MILLRACE, "attempt to index a nil value (global 'os')")
fails("edit", {plan = cooperative, edits = 'while true do end'}, rpc.MILLRACE, "edit: it takes more than 5 million steps")
e = fails("bind", {source = SOURCE:gsub("p.factor", "nothing"), sizes = {m = 64, n = 64}}, rpc.MILLRACE,
  "*: value expected, got nil")
ok(e.data.location.file == "program" and e.data.location.line == 6, "  with its location in the source")
fails("bind", {source = "return os.getenv 'HOME'"}, rpc.MILLRACE, "attempt to index a nil value (global 'os')")
fails("bind", {source = "error({})"}, rpc.MILLRACE, "(error object is a table value)")
fails("bind", {source = "return 7"}, rpc.MILLRACE, "program: the source returns 7, not a program")
fails("bind", {source = "local t = {} for i = 1, 1e9 do t[i] = {i} end"}, rpc.MILLRACE, "program: it takes more than 5 million steps")
fails("bind", {source = "return ('x'):rep(1 << 40)"}, rpc.MILLRACE,
  "code that came from elsewhere cannot use 'rep' of a text, which may take for ever")
fails("plan", {plan = "local mr = require 'millrace' mr.store:prune{}"}, rpc.MILLRACE,
  "a plan's file is data and cannot use mr.store: it has mr.plan, mr.device, mr.examples, mr.bound, mr.load_plan, mr.any, mr.sequence_plan, and nothing that runs, "
  .. "measures or writes")
fails("bind", {source = "local s = 'x' while true do s = s .. s end"}, rpc.MILLRACE, "program: it takes more than 256 MiB")
local _, refusal = pcall(function() again(broken):simulate() end)
fails("predict", {plan = broken}, rpc.MILLRACE, refusal:match "%d: (.*)", "predict: an illegal plan is an error that names the problem")

---- the protocol -----------------------------------------------------------------------------------------------------

local function line_is(line, want, what) is(answer(line), want, what) end
local function code(line)
  local got = answer(line)
  return got and parse(got).error and parse(got).error.code
end
is(code '{"jsonrpc": "2.0", "method"', rpc.PARSE, "what is no JSON")
line_is("nonsense", '{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "no JSON: byte 8: invalid token near '
  .. [['nonsense'"}}]], "  is an error that says where")
line_is('[]', '{"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "an empty batch"}}', "an empty batch")
is(code '{"jsonrpc": "1.0", "method": "devices", "id": 1}', rpc.REQUEST, "another version")
is(code '{"jsonrpc": "2.0", "method": 1, "id": 1}', rpc.REQUEST, "a method that is no text")
is(code '{"jsonrpc": "2.0", "method": "devices", "id": {}}', rpc.REQUEST, "an id that is none")
is(code '{"jsonrpc": "2.0", "method": "devices", "params": "x", "id": 1}', rpc.REQUEST, "parameters that are none")
is(code '{"jsonrpc": "2.0", "method": "check", "params": ["plan 1"], "id": 1}', rpc.PARAMS, "parameters by position")
is(code '17', rpc.REQUEST, "a number is no request")
is(answer '{"jsonrpc": "2.0", "method": "devices"}', nil, "a notification has no answer")
is(answer '[{"jsonrpc": "2.0", "method": "devices"}, {"jsonrpc": "2.0", "method": "nothing"}]', nil, "nor have many")
local batch = parse(answer(json.line{{jsonrpc = "2.0", id = "a", method = "check", params = {plan = "plan 1"}},
  {jsonrpc = "2.0", method = "devices"}, 1, {jsonrpc = "2.0", id = 2, method = "devices"}}))
ok(#batch == 3 and batch[1].id == "a" and batch[1].result.plan == "plan 1" and batch[2].error.code == rpc.REQUEST and batch[3].id == 2,
  "a batch is answered in its order, without notifications")
tap.done_testing()
