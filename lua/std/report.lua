-- report.lua - timelines, plans, graphs, searches and others as JSON, for other programs.
-- docs/reference.md lists the fields. `format` says what an object is, with a number that changes if fields do;
-- what is not known is null.

local core = require "millrace.core"
local draft = require "millrace.draft"
local json = require "millrace.json"
local options = require "millrace.options"
local sequences = require "millrace.sequence"
local raise, show, expect = core.raise, core.show, core.expect

local report = {}

local function list(t, of)
  local out = {}
  for i, x in ipairs(t) do out[i] = of(x) end
  return json.list(out)
end

local function fields(names)
  return function(x) return json.object(names, x) end
end

---- shared parts --------------------------------------------------------------------------------

-- Axes in the program's order.
local function program(bound)
  local hash, family, sizes, given = core.identity(bound)
  local order, size = {}, {}
  for name, n in sizes:gmatch "(%S+)=(%d+)" do order[#order + 1], size[name] = name, math.tointeger(n) end
  return json.object("name sizes options hash family", {name = bound.name, options = given, hash = hash, family = family,
    sizes = json.object(table.concat(order, " "), size)})
end

-- The text of an object with these fields: of `parts`, else of x.
local function text_of(names, parts, x)
  return json.encode(json.object(names, setmetatable(parts, {__index = x}))) .. "\n"
end

local task = fields "name kind phase loop shape dtype flops bytes shared_bytes m n k reads writes location place"  -- deprecated: place
local lane = fields "name warps columns registers spare replicas turns"                   -- deprecated: turns
local edge = fields "from to kind buffer distance loop reuse"
local buffer = fields "name phase loop dtype scope shape bytes carry"

local function task_of(t)
  local copy = {reads = json.list(t.reads), writes = json.list(t.writes)}
  return task(setmetatable(copy, {__index = t}))
end

---- one function for each kind ------------------------------------------------------------------

local phase = fields "name cycles tiles eus eu ii res_mii rec_mii"
local event = fields "task lane replica copy seu phase iteration tile ready issue start end cause on late warpgroups"

-- The plan that was simulated, or of the kernel that was traced.
local function plan_of(tl) return tl.measured and tl.kernel.plan or core.plan_of(tl) end

function report.timeline(tl, given)
  expect(core.is(tl, "millrace.timeline"), "json", "timeline", tl)
  local o = options.check(given, "json", {"events"})
  if o.events ~= nil and type(o.events) ~= "boolean" then
    raise("json: events must be true or false, got " .. show(o.events))
  end
  local parts = {
    format = "millrace timeline 1", program = program(plan_of(tl).graph.program), device = tl.device.name,
    phases = list(tl.phases, phase), lanes = list(tl.lanes, lane),
    events = o.events ~= false and list(tl.events, event) or json.null,
  }
  return text_of("format program device measured unit cycles seconds clock_hz full_clock_hz power energy uncertainty uncertainty_least uncertainty_reason noise "
    .. "doubt tie "                                     -- deprecated
    .. "cache overhead tflops gbps bandwidth_share ii res_mii rec_mii bound utilization under_way played unpriced phases lanes events", parts, tl)
end

function report.graph(g)
  expect(core.is(g, "millrace.graph"), "json", "graph", g)
  return text_of("format program tile tiles flops bytes tasks buffers edges", {
    format = "millrace graph 1", program = program(g.program), tile = g.tile, tiles = g.tiles, flops = g.flops,
    bytes = g.bytes, tasks = list(g.tasks, task_of), buffers = list(g.buffers, buffer), edges = list(g.edges, edge)})
end

-- The statements of a plan, by kind.
local function statements(plan)
  local lanes, entries, waits, grid = {}, {}, {}, {}
  for _, s in ipairs(draft.read(plan).list) do
    local what, of, o = s[1], s[2], s[3] or {}
    if what == "lane" then
      lanes[#lanes + 1] = {name = of, warps = o.warps, columns = o.columns, registers = o.registers, spare = o.spare,
        replicas = o.replicas or 1, turns = o.replicas or 1}                        -- deprecated
    elseif what == "append" then
      entries[#entries + 1] = {task = of, lane = o.lane, seu = o.seu, at = o.at or 0}
    elseif what == "grid" then
      grid = of
    elseif what == "wait" then
      for _, on in ipairs(o) do
        local w = type(on) == "table" and on or {on}
        waits[#waits + 1] = {task = of, on = w[1], distance = w.distance, when = w.when or "complete"}
      end
    end
  end
  return lanes, entries, waits, grid
end

function report.plan(p)
  expect(core.is(p, "millrace.plan"), "json", "plan", p)
  local lanes, entries, waits, grid = statements(p)
  return text_of("format program device tile lanes rings entries waits grid script", {
    format = "millrace plan 1", program = program(p.graph.program), device = p.device.name, tile = p.tile,
    lanes = list(lanes, lane), rings = p.rings,
    entries = list(entries, fields "task lane seu at"), waits = list(waits, fields "task on distance when"),
    grid = grid, script = p:script()})
end

-- The fields of plans and timelines that they have as JSON and nowhere else.
function report.add_fields()
  local function add(kind, name, value)
    core.field("millrace." .. kind, name, function(x)
      expect(core.is(x, "millrace." .. kind), name, kind, x)
      return value(x)
    end)
  end
  add("plan", "program", function(p) return p.graph.program end)
  -- A list of copies, of which setting a field would be without effect. how(element), how(): what to do instead.
  local function closed(name, elements, how)
    for i, x in ipairs(elements) do elements[i] = core.closed(x, ("plan.%s[%d]"):format(name, i), how(x)) end
    return core.closed(elements, "plan." .. name, how())
  end
  add("plan", "lanes", function(p)
    return closed("lanes", (statements(p)), function(x) return ("plan:lane(%s, {...}) %s"):format(x and ("%q"):format(x.name) or "name",
      x and "changes the lane" or "adds a lane") end)
  end)
  add("plan", "entries", function(p)
    return closed("entries", select(2, statements(p)), function(x)
      return x and ("plan:move(%q, {...}) moves the sTask"):format(x.task) or "plan:append, plan:move and plan:remove do it"
    end)
  end)
  add("plan", "waits", function(p)
    return closed("waits", select(3, statements(p)), function(x)
      return x and ("plan:unwait(%q, %q) and plan:wait do it"):format(x.task, x.on) or "plan:wait and plan:unwait do it"
    end)
  end)
  add("timeline", "device", function(tl) return plan_of(tl).device end)
  add("timeline", "lanes", core.lanes)
end

local sequence_problem = fields "code message hint call other tensor other_tensor location other_location file line"

local function problem(p)
  local file, line = (p.location or ""):match "^(.*):(%d+)$"
  if rawget(p, "call") then return sequence_problem(setmetatable({file = file, line = math.tointeger(line)}, {__index = p})) end
  local parts = {file = file, line = math.tointeger(line), edge = p.edge and edge(p.edge)}
  local names = "code message hint task other edge location place file line"  -- deprecated: place
  return json.object(names, setmetatable(parts, {__index = p}))
end

function report.problems(list_of) return json.encode(list(list_of, problem)) .. "\n" end

-- Of mr.search: r.plan is what it found.
function report.search(r)
  expect(getmetatable(r) and getmetatable(r).__name == "millrace.search", "json", "search result", r)
  return text_of("format program device tile seconds tflops gbps bandwidth_share uncertainty uncertainty_least uncertainty_reason "
    .. "ii bound gap bound_seconds proven trials shapes "
    .. "pruned ended why plan", {
      format = "millrace search 1", program = program(r.program), device = r.device.name, why = r.why(), plan = r.plan:script()}, r)
end

-- Of plan:improve.
function report.improved(r)
  return text_of("format program device tile before seconds gain within_noise "
    .. "tie "                                           -- deprecated
    .. "trials ended pinned changes diff plan", {
      format = "millrace improved 1", program = program(r.program), device = r.device.name, before = r.before.seconds,
      changes = list(r.changes, fields "change seconds gain"), diff = r.diff.text, plan = r.plan:script()}, r)
end

-- Of k:bench{} and k:check{}.
function report.benchmark(b)
  return text_of("format ms min max runs tflops gbps bandwidth_share watts cache", {format = "millrace benchmark 1"}, b)
end

function report.comparison(c)
  return text_of("format ok relative max_abs reference allowed wrong worst notes", {format = "millrace check 1",
    notes = json.list(table.move(c.notes, 1, #c.notes, 1 + (c.stray and 1 or 0), {c.stray}))}, c)
end

---- sequences -----------------------------------------------------------------------------------

-- Name, and what it was bound with.
local function sequence_of(seq)
  local _, given = sequences.origin(seq)
  return json.object("name given", {name = seq.name, given = json.object(table.concat(draft.keys(given or {}), " "), given or {})})
end

function report.sequence_plan(sp)
  expect(core.is(sp, "millrace.sequence_plan"), "json", "plan of a sequence", sp)
  local seq = sp.sequence
  local function call(c)
    return json.object("name program stream early after reads writes", {name = c.name, program = program(seq:program(c.name)),
      stream = c.stream, early = c.early, after = json.list(c.after), reads = json.list(c.reads), writes = json.list(c.writes)})
  end
  local function tensor(t)
    return json.object("name role dtype shape bytes offset", setmetatable({offset = sp.offsets[t.name], shape = json.list(t.shape)}, {__index = t}))
  end
  return text_of("format sequence device calls tensors arena_bytes script", {format = "millrace sequence plan 1", sequence = sequence_of(seq),
    device = sp.device.name, calls = list(sp.calls, call), tensors = list(seq.tensors, tensor), script = sp:script()}, sp)
end

function report.sequence_timeline(tl, given)
  expect(core.is(tl, "millrace.sequence_timeline"), "json", "timeline of a sequence", tl)
  local o = options.check(given, "json", {"events"})
  if o.events ~= nil and type(o.events) ~= "boolean" then
    raise("json: events must be true or false, got " .. show(o.events))
  end
  local bounds, kernels = core.sequence_bounds(tl), {}
  for i, k in ipairs(tl.kernels) do
    kernels[i] = json.object("name stream begins ends seconds gap after flops bytes bound timeline", setmetatable({
      bound = bounds[i] ~= "" and bounds[i] or nil, timeline = json.decode(report.timeline(k.timeline, {events = o.events == true}))}, {__index = k}))
  end
  return text_of("format sequence device measured seconds idle flops bytes clock_hz power utilization kernels", {
    format = "millrace sequence timeline 1", sequence = sequence_of(tl.plan.sequence), device = tl.device.name, kernels = json.list(kernels)}, tl)
end

---- values of the user ---------------------------------------------------------------------------

local DEEPEST <const> = 64                              -- tables within each other

local plain

-- A table without methods of its own: a list if its keys are 1 to n, else an object.
local function plain_table(t, where, depth)
  if depth > DEEPEST then raise(("json: tables are nested deeper than %d, or contain themselves"):format(DEEPEST)) end
  t = core.contents(t)
  local out, n, count = {}, rawlen(t), 0
  for key, value in pairs(t) do
    local index = math.type(key) == "integer" and key >= 1 and key <= n
    if not index and (n > 0 or type(key) ~= "string") then
      raise(("json: %s has %s %s; JSON has lists, from 1 on without holes, and objects, whose keys are texts"):format(where,
        n > 0 and "elements and also the key" or "the key", show(key)))
    end
    count = count + 1
    out[key] = plain(value, index and ("%s[%d]"):format(where, key) or ("%s.%s"):format(where, key), depth + 1)
  end
  for i = 1, count < n and n or 0 do
    if rawget(t, i) == nil then
      raise(("json: %s[%d] is nil, and %s[%d] is not: a list has no holes; false or a text may stand for what is missing"):format(where, i,
        where, n))
    end
  end
  return n > 0 and json.list(out, n) or out
end

-- As json.encode takes it: what has a method json as that gives it.
function plain(x, where, depth)
  local kind = type(x)
  if kind == "string" or kind == "number" or kind == "boolean" or x == json.null then return x end
  local good, method = pcall(function() return not (kind == "table" and rawget(x, "json")) and debug.getmetatable(x) and x.json end)
  if good and type(method) == "function" then return json.decode(method(x)) end
  if kind == "table" then return plain_table(x, where, depth) end
  raise(("json: %s is %s, which has no JSON"):format(where, kind == "userdata" and show(x) or "a " .. kind))
end

-- mr.json: a value of the user's own as JSON.
function report.value(...)
  core.at_most(1, ...)
  local x = ...
  if select("#", ...) == 0 then raise "json: value expected, got nothing" end
  return json.encode(x == nil and json.null or plain(x, "value", 1)) .. "\n"
end

return report
