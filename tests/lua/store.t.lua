-- mr.store: what is put is found, as a list, the best, the nearest; rows give their plans back; what makes
-- no sense is refused.
local here = arg[0]:match "^(.*/)" or "./"

-- The file is known when the shell begins: once more, with one of its own.
if not (os.getenv "MILLRACE_STORE" or ""):find "^/tmp/lua_" then
  local path = os.tmpname()
  os.remove(path)
  local good = os.execute(("MILLRACE_STORE='%s.db' '%s' '%s'"):format(path, os.getenv "MILLRACE", arg[0]))
  os.remove(path .. ".db")
  os.exit(good and 0 or 1)
end

local mr = require "millrace"
local tap = dofile(here .. "tap.lua")
local parse = dofile(here .. "lib/parse_json.lua")
local ok, is, like = tap.ok, tap.is, tap.like

local function gemm(m, n, k, dtype) return mr.examples.gemm{m = m, n = n, k = k, dtype = dtype} end
local function plan_for(bound) return mr.load_plan("gemm_cooperative", bound) end

-- The message of a refusal, without its location.
local function refused(f, ...)
  local good, message = pcall(f, ...)
  return good and "not refused" or (message:gsub("^[^:]*:%d+: ", ""))
end

---- nothing yet ---------------------------------------------------------------------------------

is(#mr.store, 0, "a new store is empty")
is(tostring(mr.store), mr.store.path .. ": 0 rows", "  and says so")
is(tostring(mr.store:list{}), "no rows", "  there is nothing to list")
is(mr.store:best(gemm(512, 512, 512), "h200"), nil, "  no best")
is(#mr.store:near(gemm(512, 512, 512), "h200"), 0, "  nothing near")
is(mr.store:json(), "[]\n", "  and an empty list in JSON")
is(mr.store:prune{keep = 1}, 0, "  nothing to prune")
ok(not io.open(mr.store.path), "and there is no file")

---- putting ---------------------------------------------------------------------------------------

local bound = gemm(1024, 1024, 512)
local plan = plan_for(bound)
local kernel, tl = plan:compile{text = true}, plan:simulate()
ok(mr.store:put{plan = plan, kernel = kernel, timeline = tl, kind = "search", seed = 7, bound = 1e-6,
  bench = {ms = 0.5, min = 0.4, max = 0.6, runs = 9, watts = 600.5, cache = "cold L2"},
  check = {ok = true, relative = 0.001}, driver = "580.1", time = "2026-01-31T12:00:00Z"}, "a row is put")
local row = mr.store:list{}[1]
local core = require "millrace.core"
local hash, family, sizes = core.identity(bound)
local want = {id = 1, kind = "search", status = "ok", program = "gemm", sizes = "m=1024 n=1024 k=512", device = "h200",
  title = plan.device.title, version = mr.version, script = plan:script(), tile = "m=128 n=256 k=64",
  predicted = tl.seconds, bound = 1e-6, ms = 0.5, min = 0.4, max = 0.6, runs = 9, watts = 600.5, cache = "cold L2",
  correct = true, error = 0.001, seed = 7, driver = "580.1", time = "2026-01-31T12:00:00Z", hash = hash, family = family,
  kernel = core.hash(kernel.source)}
for name, value in pairs(want) do is(row[name], value, "its " .. name) end
for name in pairs(row) do ok(want[name] ~= nil, "it has no more than that: " .. name) end
is(sizes, want.sizes, "sizes are listed in the program's order")

ok(hash ~= core.identity(gemm(1024, 1024, 1024)), "other sizes are another program")
is(select(2, core.identity(gemm(64, 64, 64))), family, "  of the same family")
ok(select(2, core.identity(gemm(64, 64, 64, "f16"))) ~= family, "  another type is another one")
local function scaled(x)
  return mr.program("scaled", function(p)
    local n = p:axes "n"
    p:output("Y", {n}, "f32"):store(p:load(p:input("X", {n}, "f32")) * x)
  end){n = 64}
end
is(core.identity(scaled(0.1)), core.identity(scaled(0.1)), "the same program is the same, wherever it is written")
ok(core.identity(scaled(0.1)) ~= core.identity(scaled(0.1 + 1e-16)), "the last digit of a number counts")

is(refused(mr.store.put, mr.store, {plan = plan, kind = "x", mss = 1}), "put: unknown option 'mss'; did you mean 'ms'?",
  "an unknown field is refused")
is(refused(mr.store.put, mr.store, {plan = plan, kind = "x", ms = "fast"}), "put: ms must be a number, got 'fast'")
like(refused(mr.store.put, mr.store, {plan = plan, kind = "x", seed = 1.5}), "^put: seed must be an integer")
is(refused(mr.store.put, mr.store, {plan = plan, kind = "x", correct = 1}), "put: correct must be true or false, got 1")
is(refused(mr.store.put, mr.store, {plan = plan}), "put: a row needs kind, such as \"search\"")
is(refused(mr.store.put, mr.store, {kind = "x"}), "put: a row needs program; plan= gives it")
is(refused(mr.store.put, mr.store, {plan = bound, kind = "x"}), "put: plan must be a plan, got millrace.program")
is(refused(mr.store.put, mr.store, {kernel = 3, kind = "x"}), "put: kernel must be a kernel or the hash of its text, got 3")
is(refused(mr.store.put, mr.store), "put: a row is expected: mr.store:put{plan=, kind=, ...}")
is(refused(mr.store.list, {}), "list: write mr.store:list{...}")
is(#mr.store, 1, "what is refused is not there")

---- finding ---------------------------------------------------------------------------------------

local day = 0
local function put(b, ms, o)
  day = day + 1
  local r = {plan = plan_for(b), kind = "bench", ms = ms, time = ("2026-02-%02dT00:00:00Z"):format(day)}
  for name, value in pairs(o or {}) do r[name] = value end
  assert(mr.store:put(r))
end
put(bound, 0.3)
put(bound, 0.2, {status = "wrong", correct = false, error = 0.9})
put(bound, nil, {predicted = 1e-9})
put(bound, nil, {status = "failed", message = "the compiler ran out of patience\nand more"})
put(gemm(2048, 1024, 512), 0.9)
put(gemm(8192, 8192, 8192), 9)
put(gemm(1024, 1024, 256), 0.2)
put(gemm(1024, 1024, 512, "f16"), 0.01)

local function ids(rows)
  local list = {}
  for i, r in ipairs(rows) do list[i] = r.id end
  return table.concat(list, " ")
end
local function list(o) return ids(mr.store:list(o)) end
is(list(), "9 8 7 6 5 4 3 2 1", "the newest come first")
is(list{limit = 2}, "9 8", "so many")
is(list{program = "gemm", kind = "search"}, "1", "by kind")
is(list{program = bound}, "5 4 3 2 1", "by program and its sizes")
is(list{sizes = {m = 8192}}, "7", "by a size")
is(list{sizes = "k=256 m=1024"}, "8", "by two")
is(list{status = "wrong"}, "3", "by status")
is(list{device = mr.device "a100"}, "", "by device")
is(list{before = "2026-02-01"}, "1", "by day")
is(list{before = os.time{year = 2026, month = 2, day = 2, hour = 12}}, "3 2 1", "by the system's time")
like(refused(mr.store.list, mr.store, {before = "yesterday"}), "^list: before must be a day, \"2026%-01%-31\"")
is(refused(mr.store.list, mr.store, {programm = "x"}), "list: unknown option 'programm'; did you mean 'program'?")
like(refused(mr.store.list, mr.store, {sizes = {m = "x"}}), "^list: sizes are integers by axis")
is(refused(mr.store.list, mr.store, {limit = 0}), "list: limit must be an integer of at least 1, got 0")

is(tostring(mr.store:list{program = bound}), ([[
gemm m=1024 n=1024 k=512 on h200
      time              tile              predicted   ms
  #5  2026-02-04 00:00  m=128 n=256 k=64          -    -  failed: the compiler ran out of patience
  #4  2026-02-03 00:00  m=128 n=256 k=64      1e-06    -  bench
  #3  2026-02-02 00:00  m=128 n=256 k=64          -  0.2  wrong
  #2  2026-02-01 00:00  m=128 n=256 k=64          -  0.3  bench, best
  #1  2026-01-31 12:00  m=128 n=256 k=64  %9.4g  0.5  search]]):format(tl.seconds * 1e3), "a list is shown as a table")
like(tostring(mr.store), ": 9 rows\ngemm m=1024", "the store shows the newest")
like(tostring(row), "^gemm m=1024 n=1024 k=512 on h200: 0.5 ms\n  id         1\n", "a row shows its fields")

is(mr.store:best(bound, "h200").id, 2, "the best is right and measured")
is(mr.store:best(bound, mr.device "h200", {kind = "search"}).id, 1, "of a kind")
is(mr.store:best(bound, "h100"), nil, "of a device")
is(mr.store:best(gemm(1024, 1024, 512, "f16"), "h200").id, 9, "of exactly this program")
local near = mr.store:near(gemm(1024, 1024, 512), "h200")
is(ids(near), "2 8 6", "the nearest sizes, each with its best")
is(("%g %g %g"):format(near[1].distance, near[2].distance, near[3].distance), "0 1 1", "  and how far they are")
is(ids(mr.store:near(gemm(4096, 8192, 8192), "h200", 1)), "7", "  so many")
is(refused(mr.store.near, mr.store, bound, "h200", 0), "near: the number of rows must be an integer of at least 1, not 0")
is(refused(mr.store.best, mr.store, "gemm"), "best: program with sizes expected, got 'gemm'")
is(refused(mr.store.best, mr.store, bound, 3), "best: device or its name expected, got 3")

---- plans -----------------------------------------------------------------------------------------

is(row:plan():script(), plan:script(), "a row gives its plan back")
local saved = os.tmpname()
row:plan():save(saved, {overwrite = true})
like(assert(io.open(saved)):read "a", "\n%-%- predicted [%d.]+ ms, measured 0.3 ms\n", "  a file of it says what was measured")
os.remove(saved)
local larger = row:plan(gemm(4096, 2048, 512))
is(larger.graph.program.axes.m, 4096, "for other sizes, too")
ok(larger:check(), "  a legal one")
is(refused(row.plan, row, gemm(1024, 1024, 512, "f16")),
  "plan: row 1 is of another program: 'gemm' with other statements or types than the one given")
like(refused(row.plan, row, mr.examples.matmul_sum{m = 64, n = 64, k = 64}), "^plan: row 1 is of another program")
is(refused(row.plan, row, 3), "plan: program with sizes expected, got 3")
local own = scaled(2)
local p = mr.plan(own:graph{tile = {n = 64}}, mr.device "h200")
for _, task in ipairs(p.tasks) do p:append(task.name) end
p:fill_waits()
mr.store:put{plan = p, kind = "x", predicted = 1e-6}
local mine = mr.store:best(own, "h200")
is(refused(mine.plan, mine), ("plan: row %d is of a program of your own; give it: row:plan(bound)"):format(mine.id))
is(mine:plan(own):script(), p:script(), "a program of one's own has to be given")
mr.store:put{plan = p, kind = "x", script = "while"}
local odd = mr.store:list{limit = 1}[1]
like(refused(odd.plan, odd, own), "^plan: row %d+:1: ", "an invalid script is reported, with its row")
mr.store:put{plan = p, kind = "x", script = "os.exit(3)"}
odd = mr.store:list{limit = 1}[1]
like(refused(odd.plan, odd, own), "os", "a script sees no more than plans need")
mr.store:put{kind = "x", program = "p", sizes = "", hash = "h", family = "f", device = "d"}
odd = mr.store:list{limit = 1}[1]
is(refused(odd.plan, odd), ("plan: row %d has no plan"):format(odd.id))

---- JSON -------------------------------------------------------------------------------------------

local function same(got, r)
  for _, name in ipairs(core.store_columns()) do
    local value = r[name]
    if value == nil then value = parse.null end
    if got[name] ~= value then return false end
  end
  return got.id == r.id
end
local rows = mr.store:list{}
local got, order = parse(rows:json())
local good = #got == #rows
for i, r in ipairs(rows) do good = good and same(got[i], r) end
ok(good, "rows as JSON say what the rows say")
is(table.concat(order[got[1]], " "), "id " .. table.concat(core.store_columns(), " "), "in a fixed order")
ok(same(parse(row:json()), row), "so does one")
is(mr.store:json{}, rows:json(), "and the store")

---- pruning ----------------------------------------------------------------------------------------

is(refused(mr.store.prune, mr.store, {}),
  "prune: say which rows to remove: before=, program=, version=, ..., or keep=, how many of the best stay")
is(mr.store:prune{program = "p"}, 1, "rows of a program are removed")
is(mr.store:prune{program = bound, before = "2026-02-02", keep = 1}, 1, "old ones but for the best")
is(list{program = bound}, "5 4 3 2", "  and the others stay")
is(mr.store:prune{program = bound, keep = 2}, 2, "all but the two best")
is(list{program = bound}, "4 2", "  which are right")
is(mr.store:prune{version = "0.0.1"}, 0, "by version")
is(refused(mr.store.prune, mr.store, {keep = -1}), "prune: keep must be an integer of at least 0, got -1")
is(refused(mr.store.prune, mr.store, {limit = 3}),
  "prune: unknown option 'limit' (known: program, device, sizes, kind, status, version, before, keep)")

---- a walk that is disturbed ---------------------------------------------------------------------------

local before = #mr.store
local file = mr.store
is(refused(core.store_find, file, "list", {}, function() local _ = #file end), "store: it was used while its rows were being read",
  "an interrupted list of rows is an error")
is(refused(core.store_find, file, "list", {}, function() error "enough" end):match "enough", "enough", "an error ends it")
is(#mr.store, before, "and the store can be used")

---- what searches ended with ----------------------------------------------------------------------------

-- A search that may not give tiles by a counter has answers of its own.
do
  local trials = require "millrace.trials"
  local searched = gemm(1024, 1024, 256)
  local function keep(kind, ms, message, driver)
    mr.store:put{plan = plan_for(searched), kind = kind, ms = ms, message = message, driver = driver or "d"}
  end
  local function found(dynamic, wanted)
    local _, row = trials.remembered(searched, mr.device "h200", {driver = "d"}, wanted or 32, {dynamic = dynamic})
    return row and row.ms
  end
  keep("searched", 4, "no more than 8 plans were measured")
  keep("searched", 3, "its outputs were compared by a sample alone: x; no more than 3 plans were measured")
  is(found(nil), nil, "a search does not end with what one found that measured fewer plans than it may")
  is(found(nil, 9), nil, "  by one")
  is(found(nil, 8), 3, "  but with the best that any found, if one of them measured as many")
  keep("searched", 5, nil, "other driver")
  is(found(nil, 9), nil, "  with the same driver")
  mr.store:prune{kind = "searched"}
  keep("searched static", 1)
  is(found(nil), nil, "a search does not end with what one with dynamic=false found")
  keep("searched", 2)
  is(found(nil), 2, "  but with what one like it found")
  is(found(true), 2, "  also one with dynamic=true")
  is(found(false), 1, "  and one with dynamic=false with its own")
end
---- plans of sequences ------------------------------------------------------------------------------

do
  local gemm = mr.examples.gemm
  local seq = mr.sequence("two", function(s)
    local m = s:sizes "m"
    local x, h, y = s:input("x", {m, 64}), s:temp("h", {m, 64}), s:output("y", {m, 64})
    local w = s:input("w", {64, 64})
    s:call("one", gemm{m = m, n = 64, k = 64}, {A = x, B = w, C = h})
    s:call("other", gemm{m = m, n = 64, k = 64}, {A = h, B = w, C = y})
  end)
  local bound = seq{m = 64}
  local sp = bound:plan("h200", {trials = 30, measure = false})
  mr.store:put{plan = sp, timeline = sp:simulate(), kind = "test"}
  local row = mr.store:best(bound, "h200")
  ok(row and row.program == "two" and row.sizes == "m=64" and row.predicted == sp:simulate().seconds, "a sequence's plan is put")
  ok(row and row:plan(bound):script() == sp:script(), "and read again")
  ok(bound:plan("h200"):script() == sp:script(), "seq:plan() takes it")
  ok(not pcall(row.plan, row, seq{m = 128}) , "not for other sizes")
  ok(#mr.store:list{program = bound} == 1 and #mr.store:list{program = seq{m = 128}} == 0, "rows of a sequence")
end

tap.done_testing()
