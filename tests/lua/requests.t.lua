-- Random requests to millrace serve: each is answered, as the schema says, and with what the Lua call gives, or its error. Damaged
-- ones get an error or an answer that is well formed. MILLRACE_REQUESTS is how many there are (150), MILLRACE_SEED the first of
-- the random numbers (1).
local mr = require "millrace"
local draft = require "millrace.draft"
local json = require "millrace.json"
local loader = require "millrace.loader"
local mcp = require "millrace.mcp"
local methods = require "millrace.methods"
local repairs = require "millrace.repairs"           -- problems as print(plan:check()) shows them
local rpc = require "millrace.rpc"
local session = require "millrace.session"
local here = arg[0]:match "^(.*/)" or "./"
local tap = dofile(here .. "tap.lua")
local parse = dofile(here .. "lib/parse_json.lua")
local check_schema = dofile(here .. "lib/check_schema.lua")
local null = parse.null

local COUNT = math.tointeger(os.getenv "MILLRACE_REQUESTS" or 150)
math.randomseed(math.tointeger(os.getenv "MILLRACE_SEED" or 1))
local random = math.random

local function chance(share) return random() < share end
local function pick(list) return list[random(#list)] end

local root = parse(json.encode(methods.schema()))
local check = check_schema(root, parse)
local s = session.new()
local function answer(line) return rpc.answer(line, function(name, params) return methods.call(s, name, params) end) end
local function answer_as_tool(line) return rpc.answer(line, function(name, params) return mcp(s, name, params) end) end

---- programs, and the plans there are ------------------------------------------------------------------

local SOURCE <const> = [[
return mr.program("scale", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m, n})
  local x = p:load("load", X)
  Y:store("store", p:task("scale", function() return (x * (p.factor or 2)):to "bf16" end))
end)]]
local scale = load(SOURCE, "=program")()

local function extent(most) return pick{16, 32, 64, 64, 128, 100, 1, most, most} end

-- A program as parameters, and as a function that binds it.
local function some_program()
  local kind = random(5)
  local sizes = kind <= 2 and {m = extent(512), n = extent(512), k = extent(256)}
    or kind == 3 and {b = 1, h = random(2), m = extent(256), n = extent(256), d = pick{64, 128}} or {m = extent(256), n = extent(128)}
  if chance(0.1) then sizes[pick{"m", "n", "q"}] = pick{0, -1, 7, "x", true, 1e9, 2.5} end
  if chance(0.05) then sizes.n = nil end
  if kind >= 4 then return {source = SOURCE, sizes = sizes}, function() return scale(sizes) end end
  local name = kind == 3 and "flash_attention" or chance(0.02) and "gem" or "gemm"
  return {program = name, sizes = sizes}, function() return mr.examples[name](sizes) end
end

local function some_tile(bound)
  local tile = {}
  local axes = draft.keys(bound and bound.axes or {m = 1, n = 1, k = 1})
  for _, axis in ipairs(axes) do
    if not axis:find "^[bhd]$" and chance(0.95) then tile[axis] = pick{16, 32, 64, 64, 128} end
  end
  if chance(0.05) then tile[pick{"m", "z"}] = pick{3, 0, -5, 1 << 40} end
  return tile
end

local plans = {}                                        -- {id=, script=, bound=} of the plans that were answered

local function keep(result, bound)
  plans[#plans + 1] = {id = result.plan, script = result.script, bound = bound}
  if #plans > 40 then table.remove(plans, 1 + random(39)) end
end

local function plan_of(p) return loader.of_text(mr, p.script, p.id, p.bound) end

---- edits ------------------------------------------------------------------------------------------------

local function names_of(list)
  local names = {}
  for i, x in ipairs(list) do names[i] = x.name end
  return names
end

-- A random edit of the plan: a method and its arguments.
local function some_edit(plan)
  local tasks, buffers = names_of(plan.tasks), draft.keys(plan.rings)
  tasks[#tasks + 1], buffers[#buffers + 1] = pick{"mma", "nothing"}, pick{"a", "none"}
  local task, other, lane = pick(tasks), pick(tasks), pick{"p0", "c0", "c1", "c2"}
  local edits = {
    function() return "append", task, {lane = lane, at = chance(0.2) and random(-2, 2) or nil} end,
    function() return "append", task end,
    function() return "move", task, {at = random(-1, 2), after = chance(0.3) and other or nil} end,
    function() return "insert", task, {before = other} end,
    function() return "remove", task end,
    function() return "wait", task, {other} end,
    function() return "wait", task, {{other, distance = random(0, 2), when = pick{"issued", "complete"}}, pick(tasks)} end,
    function() return "unwait", task, other end,
    function() return "fill_waits" end,
    function() return "fill_waits" end,
    function() return "buffers", {[pick(buffers)] = random(0, 6)} end,
    function() return "grid", {raster = pick{"rows", "columns", "round"}, group = random(0, 8)} end,
    function() return "lane", lane, {warps = pick{1, 4, 8, 33}, registers = chance(0.3) and pick{64, 240, 7} or nil} end,
    function() return "split", pick{"m", "n", "k"}, random(1, 4) end,
    function() return "split_off", pick(buffers), "tail" end,
    function() return "alias", {[pick(buffers)] = pick(buffers)} end,
    function() return "propagate", some_tile(plan.graph.program) end,
    function() return "script" end,
  }
  return {pick(edits)()}
end

-- Its arguments as JSON has them.
local function in_json(x)
  if type(x) ~= "table" then return x end
  local out = {}
  for key, value in pairs(x) do out[key == 1 and next(x, #x > 0 and #x or nil) and x.distance and "on" or key] = in_json(value) end
  return out
end

---- what the Lua call gives --------------------------------------------------------------------------------

-- Without the location in this file, and that in a text.
local function message_of(e) return (rpc.located((rpc.located(tostring(e))))) end

-- A problem, location and all, as one text.
local function problem_text(p)
  local at = p.location
  if type(at) == "table" and at ~= null then at = ("%s:%d"):format(at.file, at.line) end
  local function text(x) return x == null and "nil" or tostring(x) end
  return table.concat({p.code, p.message, text(at), text(p.hint), text(p.task), text(p.other)}, "|")
end

local function problems_text(list)
  local texts = {}
  for i, p in ipairs(list) do texts[i] = problem_text(p) end
  return table.concat(texts, "\n")
end

-- Where two lists of values differ; nil: nowhere.
local function differs(...)
  local list = table.pack(...)
  for i = 1, list.n, 3 do
    local what, got, want = list[i], list[i + 1], list[i + 2]
    if want == nil then want = null end
    if got ~= want then return ("%s: got %s, want %s"):format(what, tostring(got), tostring(want)) end
  end
end

local function same_plan(got, plan, bound)
  local id = got.plan
  local again = loader.of_text(mr, plan:script(), id, bound)
  local legal, problems = again:check()
  keep(got, bound)
  return differs("script", got.script, plan:script(), "legal", got.legal, legal,
    "problems", problems_text(got.problems), problems_text(repairs.shown(problems)),
    "notes", problems_text(got.notes), problems_text(problems.notes or {}))
end

local function same_seconds(got, tl)
  return differs("seconds", got.seconds.value, tl.seconds, "uncertainty", got.seconds.uncertainty, tl.uncertainty,
    "ii", got.ii.value, tl.ii, "bound", got.bound.value, tl.bound, "power", got.power.value, tl.power,
    "tflops", got.tflops.value, tl.tflops)
end

---- requests -----------------------------------------------------------------------------------------------

-- Each gives a method, parameters, and a function that makes the Lua call and returns what differs from the result that it is given; if
-- the call fails, its error must be that of the answer.
local requests = {}

local function request(weight, f)
  for _ = 1, weight do requests[#requests + 1] = f end
end

-- What takes long: another request stands in for most of them.
local function rarely(f)
  request(1, function() return (chance(0.7) and pick(requests) or f)() end)
end

request(1, function()
  return "devices", nil, function(got)
    return differs("devices", table.concat(names_of(got.devices), " "), table.concat(mr.devices(), " "))
  end
end)
request(1, function() return "examples", nil, function(got) return differs("first", got.programs[1].name, "attention_backward") end end)
request(10, function()
  local params, bind = some_program()
  return "bind", params, function(got) return differs("text", got.text, tostring(bind())) end
end)
request(8, function()
  local params, bind = some_program()
  local good, bound = pcall(bind)
  params.tile, params.drawing = some_tile(good and bound), chance(0.3) or nil
  return "graph", params, function(got)
    local graph = bind():graph{tile = params.tile}
    return differs("tiles", got.tiles, graph.tiles, "tasks", #got.tasks, #graph.tasks, "edges", #got.edges, #graph.edges,
      "bytes", got.bytes, graph.bytes, "drawing", got.drawing, params.drawing and graph:drawing{width = 100, ascii = true} or nil)
  end
end)
request(8, function()
  local params, bind = some_program()
  local good, bound = pcall(bind)
  params.tile, params.device = some_tile(good and bound), pick{"h200", "h100", "mi300x", "h20"}
  return "plan", params, function(got)
    local of = bind()
    return same_plan(got, mr.plan(of:graph{tile = params.tile}, mr.device(params.device)), of)
  end
end)
request(4, function()
  local name = pick{"gemm_cooperative", "gemm_by_threads"}
  local sizes = {m = extent(512), n = extent(512), k = extent(256)}
  return "plan", {plan = name, program = "gemm", sizes = sizes}, function(got)
    local of = mr.examples.gemm(sizes)
    return same_plan(got, mr.load_plan(name, of), of)
  end
end)
request(4, function()
  local p = pick(plans)
  local script = p.script
  if chance(0.5) then                                   -- a byte too few, or one that is another
    local at = random(#script)
    script = script:sub(1, at - 1) .. pick{"", "}", "x", "\n", '"'} .. script:sub(at + 1)
  end
  local program = p.bound.name ~= "gemm" and {source = SOURCE, sizes = p.bound.axes} or {program = "gemm", sizes = p.bound.axes}
  if p.bound.name == "flash_attention" then program = {program = "flash_attention", sizes = p.bound.axes} end
  program.plan = script
  return "plan", program, function(got)
    local of = program.source and scale(program.sizes) or mr.examples[program.program](program.sizes)
    return same_plan(got, loader.of_text(mr, script, "script", of), of)
  end
end)
request(30, function()
  local p = pick(plans)
  local base, list, texts, calls = plan_of(p), {}, {}, {}
  for i = 1, random(3) do list[i] = some_edit(base) end
  for i, e in ipairs(list) do
    texts[i] = draft.statement(e)
    calls[i] = {method = e[1], arguments = in_json{table.unpack(e, 2)}}
    if #calls[i].arguments == 0 then calls[i].arguments = nil end
  end
  local as_text = chance(0.5)
  for _, e in ipairs(list) do as_text = as_text or e[1] == "script" end
  return "edit", {plan = p.id, edits = as_text and table.concat(texts, "\n") or calls}, function(got)
    local plan = base:copy()
    for _, e in ipairs(list) do
      if e[1] == "script" then error("edit: there is no statement plan:script", 0) end
      plan[e[1]](plan, table.unpack(e, 2))
    end
    return differs("diff", got.diff, base:diff(plan).text) or same_plan(got.plan, plan, p.bound)
  end
end)
request(12, function()
  local p = pick(plans)
  return "check", {plan = p.id}, function(got)
    local legal, problems = plan_of(p):check()
    return differs("legal", got.legal, legal, "problems", problems_text(got.problems), problems_text(repairs.shown(problems)))
  end
end)
request(12, function()
  local p, events = pick(plans), chance(0.3) and random(0, 200) or nil
  return "predict", {plan = p.id, events = events, drawing = chance(0.2) or nil}, function(got)
    local tl = plan_of(p):simulate{events = events}
    return same_seconds(got, tl) or (events or 0) > 0 and differs("events", #got.events.list, #tl.events)
  end
end)
rarely(function()
  local p, most = pick(plans), random(0, 6)
  return "why", {plan = p.id, most = most}, function(got)
    local said, found = plan_of(p):simulate():why()
    return differs("text", got.text, tostring(said), "tried", got.tried, #found, "changes", #got.changes, math.min(most, #found))
  end
end)
rarely(function()
  local p = pick(plans)
  return "suggest", {plan = p.id, most = 100}, function(got)
    local plan = plan_of(p)
    local found = plan:suggest()
    for _, x in ipairs(got.suggestions) do session.edit(plan:copy(), x.statements) end   -- each can be followed
    return differs("text", got.text, tostring(found), "suggestions", #got.suggestions, #found, "legal", got.legal, (plan:check()))
  end
end)
request(8, function()
  local p, q = pick(plans), pick(plans)
  return "diff", {plan = p.id, other = q.id}, function(got) return differs("text", got.text, plan_of(p):diff(plan_of(q)).text) end
end)
request(1, function()
  local params, bind = some_program()
  params.trials, params.device = random(8), "h200"
  return "search", params, function(got)
    local of = bind()
    local r, reason = mr.search(of, mr.device "h200", {trials = params.trials, seconds = 10, measure = false})
    if not r then error("search: " .. reason, 0) end
    return differs("why", got.why, r.why(), "seconds", got.seconds.value, r.seconds) or same_plan(got.plan, r.plan, of)
  end
end)
request(3, function()
  local p = pick(plans)
  return "compile", {plan = p.id}, function(got) return differs("source", got.source, plan_of(p):compile{text = true}.source) end
end)
rarely(function()
  local p = pick(plans)
  return "compile", {plan = p.id, target = "host"}, function(got)
    return differs("source", got.source, plan_of(p):compile{target = "host"}.source)
  end
end)
if not mr.attached() then
  request(1, function() return "measure", {plan = pick(plans).id}, function() error("measure: " .. select(2, mr.attached()), 0) end end)
end

---- what is damaged -------------------------------------------------------------------------------------------

local junk <const> = {0, -1, 1.5, "", "plan 1", true, json.null, 1e300, {}, {a = 1}, {1, 2}, "\u{FFFD}\0", ("x"):rep(3000)}

local function damaged(line, name, params)
  if chance(0.4) then                                   -- a parameter is something else
    local copy = {}
    for key, value in pairs(params or {}) do copy[key] = value end
    local keys = draft.keys(copy)
    copy[chance(0.7) and keys[1] and pick(keys) or pick{"plan", "tile", "size", "edits"}] = pick(junk)
    return json.line{jsonrpc = "2.0", id = pick{1, "a", json.null}, params = copy,
      method = chance(0.9) and name or pick{"chek", "", "call"}}
  end
  for _ = 1, random(3) do
    local at, kind = random(#line), random(4)
    if kind == 1 then line = line:sub(1, at) end
    if kind == 2 then line = line:sub(1, at - 1) .. string.char(random(0, 255)) .. line:sub(at + 1) end
    if kind == 3 then line = line:sub(1, at) .. pick{"{", "}", "[", "]", ",", '"', "null", "1e9"} .. line:sub(at + 1) end
    if kind == 4 then line = "[" .. line .. "," .. line .. "]" end
    if #line == 0 then break end
  end
  return line
end

local CODES <const> = {[rpc.PARSE] = true, [rpc.REQUEST] = true, [rpc.METHOD] = true, [rpc.PARAMS] = true, [rpc.MILLRACE] = true}

-- Why the answer to any text at all is not well formed; nil if it is.
local function malformed(text)
  if text == nil then return nil end
  if text:find "\n" then return "more than a line" end
  local good, got = pcall(parse, text)
  if not good then return got end
  for _, one in ipairs(got[1] and got or {got}) do
    local e = one.error
    if one.jsonrpc ~= "2.0" or (e == nil) == (one.result == nil) then return "neither a result nor an error" end
    if e and not (CODES[e.code] and type(e.message) == "string") then return "no error of ours: " .. tostring(e.code) end
    if e and e.message:find "%[millrace" then return "an error within Millrace: " .. e.message end
    if e and type(e.data) == "table" and type(e.data.location) == "table" and tostring(e.data.location.file):find "^%[millrace" then
      return "an error within Millrace: " .. e.message
    end
  end
end

---- the test ------------------------------------------------------------------------------------------------------

local begun = mr.load_plan("gemm_cooperative", mr.examples.gemm{m = 256, n = 256, k = 128})
keep(parse(answer(json.line{jsonrpc = "2.0", id = 0, method = "plan", params = {plan = begun:script(), program = "gemm",
  sizes = begun.graph.program.axes}})).result, begun.graph.program)

-- Why a tool of MCP answers something else than the method did; nil if it does not.
local function differs_as_tool(name, params, text)
  local line = json.line{jsonrpc = "2.0", id = 1, method = "tools/call", params = {name = name, arguments = params}}
  local result = parse(answer_as_tool(line)).result
  local inner = text:match '^{"jsonrpc": "2.0", "id": %d+, "result": (.*)}$' or text:match '"error": (.*)}$'
  return differs("the tool's answer", result.content[1].text, inner, "isError", result.isError, parse(text).error ~= nil)
end

local wrong, results, errors = {}, 0, 0
local function report(line, text, why) wrong[#wrong + 1] = ("%s\n  %s\n  %s"):format(why, line:sub(1, 600), tostring(text):sub(1, 600)) end

for i = 1, COUNT do
  local name, params, call = pick(requests)()
  local line = json.line{jsonrpc = "2.0", id = i, method = name, params = params}
  if chance(0.2) then
    line = damaged(line, name, params)
    local text = answer(line)
    local why = malformed(text)
    if why then report(line, text, why) end
  else
    local text = answer(line)
    local why = malformed(text)
    local got, order = parse(text)
    if not why and got.result then
      results = results + 1
      why = check({["$ref"] = "#/$defs/" .. name .. ".result"}, got.result, order)
    end
    if not why then
      local good, differ = pcall(call, got.result or setmetatable({}, {__index = function(t) return t end}))
      if got.result and not good then why = "the Lua call fails: " .. tostring(differ) end
      if got.result and good then why = differ end
      if not got.result then
        errors = errors + 1
        if good and got.error.code ~= rpc.PARAMS then why = "the Lua call does not fail" end
        if not good and got.error.code ~= rpc.PARAMS and message_of(differ) ~= got.error.message then
          why = "the Lua call says: " .. message_of(differ)
        end
      end
    end
    if not why and (name == "check" or name == "diff") then why = differs_as_tool(name, params, text) end
    if why then report(line, text, why) end
  end
  if #wrong >= 10 then break end
end
tap.ok(#wrong == 0, ("%d random requests are answered as the Lua calls are"):format(COUNT), table.unpack(wrong))
tap.ok(collectgarbage "isrunning", "  and leave the collector running")
tap.ok(results > COUNT / 4 and errors > COUNT / 20, ("  among them results and errors"), ("%d results, %d errors"):format(results, errors))
tap.done_testing()
