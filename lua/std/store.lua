-- store.lua - mr.store: a file with all measurements.
--
-- A search goes on without the file: put, best and near report an error of it once, and behave as if it were empty.
-- list, json, export and prune raise the error.

local core = require "millrace.core"
local columns_of = require "millrace.columns"
local json = require "millrace.json"
local loader = require "millrace.loader"
local options = require "millrace.options"
local sequences = require "millrace.sequence"
local record = require("millrace.record").of
local raise, show, entry, expect = core.raise, core.show, core.entry, core.expect

local SHOWN <const> = 1000                              -- the default limit of list

local columns = core.store_columns()
local names = "id " .. table.concat(columns, " ")
local file = core.store()                               -- the only one
local mr = require "millrace"

---- errors of the file -------------------------------------------------------------------------

local reported = {}

-- Show a message to the user, each one once.
local function report(message)
  if message ~= "" and not reported[message] then io.stderr:write("millrace: ", message, "\n") end
  reported[message] = true
end

-- Call a function of the core, and report what happened to the file. -> its result, or nil and a message
local function call(f, ...)
  local result, message = f(file, ...)
  report(core.store_notice(file))
  return result, message
end

local function must(result, message)
  if result == nil then raise(message) end
  return result
end

---- options ------------------------------------------------------------------------------------

local function is_bound(x) return core.is(x, "millrace.program") or core.is(x, "millrace.sequence") end

local function check_bound(x, what) expect(is_bound(x), what, "program with sizes", x) end

-- Hash, hash without sizes, and sizes of a program or of a sequence.
local function identity(x)
  if core.is(x, "millrace.sequence") then return sequences.identity(x) end
  return core.identity(x)
end

-- What a plan is for: a program or a sequence.
local function subject(p) return core.is(p, "millrace.sequence_plan") and p.sequence or p.graph.program end

-- The name of a device that is given as its name, as a device, or as nil (the one of mr.device()).
local function device_name(d, what)
  if d == nil then return mr.device().name end
  if type(d) ~= "string" and not core.is(d, "millrace.device") then
    raise(("%s: device or its name expected, got %s"):format(what, show(d)))
  end
  return type(d) == "string" and d or d.name
end

-- {m=64, n=64} as "m=64 n=64".
local function sizes_text(sizes, what)
  if type(sizes) == "string" then return sizes end
  if type(sizes) ~= "table" then raise(("%s: sizes must be a text or a table, got %s"):format(what, show(sizes))) end
  local words = {}
  for axis, n in pairs(sizes) do
    if type(axis) ~= "string" or not core.integer(n) then
      raise(("%s: sizes are integers by axis, as in {m=4096}"):format(what))
    end
    words[#words + 1] = ("%s=%d"):format(axis, core.integer(n))
  end
  table.sort(words)
  return table.concat(words, " ")
end

-- The text of a point in time that is given as a day, a date with time, or seconds of os.time().
local function moment(t, what)
  if math.type(t) and t == t and math.abs(t) < 1e11 then return os.date("!%Y-%m-%dT%H:%M:%SZ", math.floor(t)) end
  if type(t) == "string" and (t:find "^%d%d%d%d%-%d%d%-%d%d$" or t:find "^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%dZ$") then
    return t
  end
  raise(("%s: before must be a day, \"2026-01-31\", a time, \"2026-01-31T12:00:00Z\", or a result of os.time(), not %s")
    :format(what, show(t)))
end

local chosen = {"program", "device", "sizes", "kind", "status", "version", "before"}

local function filter(given, what, more)
  local known = table.move(chosen, 1, #chosen, 1, {})
  for _, name in ipairs(more) do known[#known + 1] = name end
  local o, f = options.check(given, what, known), {}
  for key, value in pairs(o) do f[key] = value end
  if is_bound(f.program) then f.hash, f.program = identity(f.program), nil end
  if f.device ~= nil then f.device = device_name(f.device, what) end
  if f.sizes ~= nil then f.sizes = sizes_text(f.sizes, what) end
  if f.before ~= nil then f.before = moment(f.before, what) end
  return f
end

---- rows ----------------------------------------------------------------------------------------

local row_fields = json.object(names, {}).order

local function as_json(row) return json.object(names, row) end

local function ms(x) return x and ("%.4g"):format(x) or "-" end

-- The result of a row in a few words.
local function outcome(row)
  if row.status == "ok" then return row.kind end
  return row.message and ("%s: %s"):format(row.status, row.message:match "^[^\n]*") or row.status
end

local function row_text(row)
  local lines = {("%s %s on %s: %s"):format(row.program, row.sizes, row.device, row.ms and ms(row.ms) .. " ms"
    or row.predicted and ms(row.predicted * 1e3) .. " ms, predicted" or outcome(row))}
  for _, name in ipairs(row_fields) do
    local value = row[name]
    if value ~= nil and name ~= "script" then lines[#lines + 1] = ("  %-10s %s"):format(name, tostring(value)) end
  end
  lines[#lines + 1] = "go on with row:plan(), row.script, row:json()"
  return table.concat(lines, "\n")
end

-- Check the program for which a row's plan is wanted; nil: that of the row, which must be an example.
local function check_given(row, bound)
  if bound == nil then
    if row.script:find("or mr.examples.", 1, true) then return end
    raise(("plan: row %d is of a program of your own; give it: row:plan(bound)"):format(row.id))
  end
  check_bound(bound, "plan")
  local _, family = identity(bound)
  if family ~= row.family then
    raise(("plan: row %d is of another program: '%s' with other statements or types than the one given"):format(row.id, row.program))
  end
end

-- The plan of a row, for its own program or the same one with other sizes.
local function rebuild(row, bound)
  if not row.script then raise(("plan: row %d has no plan"):format(row.id)) end
  check_given(row, bound)
  local p = loader.of_text(mr, row.script, ("row %d"):format(row.id), bound)
  if not bound and identity(subject(p)) ~= row.hash then
    raise(("plan: examples/%s.lua has changed since row %d was written; give the program: row:plan(bound)"):format(row.program, row.id))
  end
  local ok, problems = p:check()
  if not ok then
    local first = problems[1]
    raise(("plan: the plan of row %d does not fit here: %s: %s"):format(row.id, first.code, first.message))
  end
  return p
end

local row_class = record("row of the store", names .. " distance", {
  __name = "millrace.stored", __tostring = row_text,
  methods = {plan = entry(rebuild), json = entry(function(row) return json.encode(as_json(row)) .. "\n" end)},
})

---- lists of rows ---------------------------------------------------------------------------------

local function faster(a, b)
  if (a.ms == nil) ~= (b.ms == nil) then return a.ms ~= nil end
  return (a.ms or a.predicted) < (b.ms or b.predicted)
end

local function timed(row) return row.status == "ok" and (row.ms or row.predicted) end

local function group_lines(rows, best)
  local cells = {{"", "time", "tile", "predicted", "ms", ""}}
  for _, row in ipairs(rows) do
    cells[#cells + 1] = {"#" .. row.id, (row.time:sub(1, 16):gsub("T", " ")), row.tile or "",
      ms(row.predicted and row.predicted * 1e3), ms(row.ms), outcome(row) .. (row == best and ", best" or "")}
  end
  return columns_of(cells, function(i) return i == 4 or i == 5 end)
end

-- Rows grouped by program, sizes and device, the group with the newest row first; the best row of each is marked.
local function list_text(rows)
  local groups, of, out = {}, {}, {}
  for _, row in ipairs(rows) do
    local name = ("%s %s on %s"):format(row.program, row.sizes, row.device)
    if not of[name] then
      of[name] = {name = name}
      groups[#groups + 1] = of[name]
    end
    local g = of[name]
    g[#g + 1] = row
    if timed(row) and (not g.best or faster(row, g.best)) then g.best = row end
  end
  for _, g in ipairs(groups) do
    out[#out + 1] = g.name
    for _, line in ipairs(group_lines(g, g.best)) do out[#out + 1] = "  " .. line end
  end
  return #rows > 0 and table.concat(out, "\n") or "no rows"
end

local function list_json(rows)
  local out = {}
  for i, row in ipairs(rows) do out[i] = as_json(row) end
  return json.encode(json.list(out)) .. "\n"
end

local list_methods = {json = entry(list_json)}
local list_class = {__name = "millrace.rows", __tostring = list_text, __index = list_methods, methods = list_methods, __metatable = false}

-- Is this a rank of a farm that leaves the file to rank 0, which does the same?
local function is_other_rank()
  local farm = core.farm()
  return farm and farm:rank() > 0
end

local sharing                                           -- {ranks=, hashes=, newest=} while mr.tune runs

-- The rows of a query as plain tables, or nil and a message. seen(row): is it one of the result?
local function read(query, f, seen)
  local rows = {}
  local good, message = call(core.store_find, query, f, function(row)
    if not seen or seen(row) then rows[#rows + 1] = row end
  end)
  if not good then return nil, message end
  return rows
end

-- The rows of a query, or nil and a message.
local function find(query, f)
  local rows, message
  if sharing and sharing.ranks.task then
    rows = sharing.ranks:ask("store rows", {query = query, filter = f})
  else
    rows, message = read(query, f)
    if not rows then return nil, message end
  end
  for _, row in ipairs(rows) do setmetatable(row, row_class) end
  return setmetatable(rows, list_class)
end

---- one store for the ranks of a farm ----------------------------------------------------------------

-- The rows that a task sees: those from before mr.tune began, and its own. Others depend on which tasks have ended, and so would the answer.
local function rows_for(task, query, f)
  return read(query, f, function(row) return row.id <= sharing.newest or row.hash == sharing.hashes[task] end)
end

-- While ranks do tasks (ranks.lua), rank 0 reads and writes the file for all of them. hashes: of the program of each task, as identity
-- gives it. put(rank, row): called for each row that a rank puts, also if the disk is full. ranks nil: no longer.
local function share(ranks, hashes, put)
  sharing = ranks and {ranks = ranks, hashes = hashes, newest = 0}
  if not sharing or ranks.rank > 0 then return end
  for _, row in ipairs(read("list", {limit = 1}) or {}) do sharing.newest = row.id end
  ranks:serve("store rows", function(x, task)
    local rows, message = rows_for(task, x.query, x.filter)
    if not rows then report(message) end
    return rows or {}
  end)
  ranks:serve_together("store row", function(asked)
    local rows, answers = {}, {}
    for i, x in ipairs(asked) do rows[i] = x.value end
    local good, message = call(core.store_put_rows, rows)
    if not good then report(message) end
    for i, x in ipairs(asked) do
      put(x.rank, x.value)
      answers[i] = {good = good, message = message}
    end
    return answers
  end)
end

---- the methods -----------------------------------------------------------------------------------

local store = {}

local function check_self(s, what)
  if s ~= file then raise(("%s: write mr.store:%s{...}"):format(what, what)) end
end

function store.list(s, given)
  check_self(s, "list")
  local f = filter(given, "list", {"limit"})
  f.limit = f.limit or SHOWN
  return must(find("list", f))
end

function store.json(s, given)
  check_self(s, "json")
  return list_json(must(find("list", filter(given, "json", {"limit"}))))
end

-- The rows of a query; none if the file cannot be read, which is reported.
local function find_quietly(query, f)
  local rows, message = find(query, f)
  if not rows then report(message) end
  return rows or setmetatable({}, list_class)
end

function store.best(s, bound, device, given)
  check_self(s, "best")
  check_bound(bound, "best")
  local o = options.check(given, "best", {"kind", "version"})
  return find_quietly("best", {hash = identity(bound), device = device_name(device, "best"), kind = o.kind,
    version = o.version, limit = 1})[1]
end

local function sizes_of(text)
  local sizes = {}
  for axis, n in text:gmatch "(%S+)=(%d+)" do sizes[axis] = tonumber(n) end
  return sizes
end

-- How different sizes are: the sum of the binary logarithms of the ratios of all axes.
local function distance(a, b)
  local sum = 0
  for axis, n in pairs(a) do sum = sum + math.abs(math.log(n / (b[axis] or n), 2)) end
  return sum
end

function store.near(s, bound, device, n, given)
  check_self(s, "near")
  check_bound(bound, "near")
  local most = n == nil and 3 or core.integer(n)
  if not most or most < 1 then raise("near: the number of rows must be an integer of at least 1, not " .. show(n)) end
  local o = options.check(given, "near", {"kind", "version"})
  local _, family, text = identity(bound)
  local rows, here = find_quietly("near", {family = family, device = device_name(device, "near"), kind = o.kind,
    version = o.version}), sizes_of(text)
  for _, row in ipairs(rows) do row.distance = distance(here, sizes_of(row.sizes)) end
  table.sort(rows, function(a, b)
    if a.distance ~= b.distance then return a.distance < b.distance end
    return a.id > b.id
  end)
  for i = #rows, most + 1, -1 do rows[i] = nil end
  return rows
end

function store.prune(s, given)
  check_self(s, "prune")
  local f = filter(given, "prune", {"keep"})
  if next(f) == nil then
    raise("prune: say which rows to remove: before=, program=, version=, ..., or keep=, how many of the best stay")
  end
  return is_other_rank() and 0 or must(call(core.store_prune, f))
end

---- putting rows ------------------------------------------------------------------------------------

local objects = {plan = "millrace.plan", timeline = "millrace.timeline"}
local accepted = {"plan", "timeline", "bench", "check"}
for _, name in ipairs(columns) do accepted[#accepted + 1] = name end

-- Extents in the order of the program's axes.
local function tile_text(tile, sizes)
  local words = {}
  for axis in sizes:gmatch "(%S+)=" do
    if tile[axis] then words[#words + 1] = ("%s=%d"):format(axis, tile[axis]) end
  end
  return table.concat(words, " ")
end

local drivers = {}

-- The driver version of the attached device, read once; nil: there is no device.
local function driver()
  if not drivers.known then drivers.known, drivers.attached = true, core.attached() or nil end
  return drivers.attached and drivers.attached.driver
end

-- Set columns of a row from an object that was given.
local derive = {}

function derive.plan(p, row)
  local bound = subject(p)
  row.program = bound.name
  row.hash, row.family, row.sizes = identity(bound)
  row.device, row.title = p.device.name, p.device.title
  row.script = p:script()
  row.tile = core.is(p, "millrace.plan") and tile_text(p.tile, row.sizes) or nil
end

function derive.timeline(tl, row) row.predicted = tl.seconds end

function derive.bench(b, row)
  row.ms, row.min, row.max, row.runs, row.watts, row.cache = b.ms, b.min, b.max, b.runs, b.watts, b.cache
  row.driver, row.kind = driver(), "bench"
end

function derive.check(c, row)
  row.correct, row.error, row.status, row.kind = c.ok, c.relative, c.ok and "ok" or "wrong", row.kind or "check"
end

local function check_objects(o)
  for name, class in pairs(objects) do
    if o[name] ~= nil and not core.is(o[name], class) and not core.is(o[name], class:gsub("%.", ".sequence_")) then
      raise(("put: %s must be a %s, got %s"):format(name, name, show(o[name])))
    end
  end
  for _, name in ipairs{"bench", "check"} do
    if o[name] ~= nil and type(o[name]) ~= "table" then
      raise(("put: %s must be a result of k:%s{}, got %s"):format(name, name, show(o[name])))
    end
  end
  if o.kernel ~= nil and type(o.kernel) ~= "string" and not core.target(o.kernel) then
    raise("put: kernel must be a kernel or the hash of its text, got " .. show(o.kernel))
  end
end

local function make_row(o)
  local row = {time = os.date "!%Y-%m-%dT%H:%M:%SZ", version = mr.version, status = "ok"}
  local is_kernel = o.kernel ~= nil and core.target(o.kernel)
  local plan = o.plan or is_kernel and o.kernel.plan or nil
  if plan then derive.plan(plan, row) end
  for _, name in ipairs{"timeline", "bench", "check"} do
    if o[name] ~= nil then derive[name](o[name], row) end
  end
  for _, name in ipairs(columns) do
    if o[name] ~= nil then row[name] = o[name] end
  end
  if is_kernel then row.kernel = core.hash(o.kernel.source) end
  return row
end

local needed = {"program", "sizes", "hash", "family", "device", "kind"}

function store.put(s, given)
  check_self(s, "put")
  if given == nil then raise "put: a row is expected: mr.store:put{plan=, kind=, ...}" end
  local o = options.check(given, "put", accepted)
  check_objects(o)
  local row = make_row(o)
  for _, name in ipairs(needed) do
    if row[name] == nil then
      raise(("put: a row needs %s%s"):format(name, name ~= "kind" and "; plan= gives it" or ", such as \"search\""))
    end
  end
  if sharing and sharing.ranks.task then
    local x = sharing.ranks:ask("store row", row)
    return x.good, x.message
  end
  if not file.path then return false end
  if is_other_rank() then return true end
  local good, message = call(core.store_put, row)
  if not good then report(message) end
  return good, message
end

---- files -------------------------------------------------------------------------------------------

local function csv_cell(value)
  if value == nil then return "" end
  if type(value) == "number" then
    local text = json.number(value)
    return text == "null" and "" or text
  end
  local text = json.clean(tostring(value)):gsub("\0", "\u{FFFD}")
  return text:find '[,"\r\n]' and '"' .. text:gsub('"', '""') .. '"' or text
end

local writers = {}

function writers.csv(write)
  write(table.concat(row_fields, ","), "\n")
  return function(row)
    local cells = {}
    for i, name in ipairs(row_fields) do cells[i] = csv_cell(row[name]) end
    write(table.concat(cells, ","), "\n")
  end, function() end
end

function writers.json(write)
  local between = "[\n "
  return function(row)
    write(between, json.encode(as_json(row), " "))
    between = ",\n "
  end, function() write(between:find "%[" and "[]\n" or "\n]\n") end
end

-- Write to another file and rename it at the end, so that the path never has an incomplete file.
local function write(path, writer, f)
  local part, n = path .. ".part", 0
  local out <close>, why = io.open(part, "w")
  if not out then raise("export: " .. why) end
  out:setvbuf "full"
  local failed                                          -- why a write failed: later ones may succeed
  local put_row, finish = writer(function(...)
    local good, message = out:write(...)
    failed = failed or not good and message
  end)
  local done, good, message = pcall(call, core.store_find, "list", f, function(row)
    n = n + 1
    put_row(row)
    if failed then error(failed, 0) end
  end)
  if done and good then
    finish()
    good, message = out:flush()
    if good then good, message = out:close() end
    if good and not failed then good, message = os.rename(part, path) end
  end
  if done and good and not failed then return n end
  os.remove(part)
  if failed or done then message = failed or message end
  if not message then error(good, 0) end
  raise((message:find "^store" and "%s" or "export: %s, so %s stays as it was"):format(message, path))
end

function store.export(s, path, given)
  check_self(s, "export")
  expect(type(path) == "string", "export", "path", path)
  local writer = writers[path:match "%.(%a+)$"]
  if not writer then raise(("export: %s must end in .csv or .json, which is the format to write"):format(show(path))) end
  return write(path, writer, filter(given, "export", {"limit"}))
end

---- the object ----------------------------------------------------------------------------------------

local function as_text(s)
  if not s.path then return "no store: MILLRACE_STORE is \"none\", or there is no home folder" end
  local n, message = call(core.store_count)
  if not n then return message end
  local head = ("%s: %d row%s"):format(s.path, n, n == 1 and "" or "s")
  if n == 0 then return head end
  local rows = find("list", {limit = 10})
  return ("%s%s\n%s\ngo on with mr.store:list{}, :best(bound), :export(path), :prune{}"):format(head,
    n > 10 and "; the newest ten" or "", rows and list_text(rows) or "")
end

store.text, store.share = as_text, share

-- Is there a store?
function store.is_there() return file.path ~= nil or sharing ~= nil and sharing.ranks.task ~= nil end

function store.size() return must(call(core.store_count)) end

return store
