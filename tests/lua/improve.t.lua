-- plan:improve: what it finds is legal, as fast as it says, and keeps what is pinned; and mr.search of tile
-- extents that the caller names.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local core, draft = require "millrace.core", require "millrace.draft"
local changes, pins, repair = require "millrace.changes", require "millrace.pins", require "millrace.repair"
local ok, is, like = tap.ok, tap.is, tap.like

local serial, overlap = mr.load_plan "attention_serial", mr.load_plan "attention_overlap"
local orders = {tile = true, grid = true, rings = {"k", "v"}, lanes = true}    -- what attention_overlap leaves as it is

local good, message

local function lines_of(plan) return core.statements(plan):gmatch "[^\n]+" end

---- what it finds ----------------------------------------------------------------------------

local script = serial:script()
local r = serial:improve{pin = orders}
is(serial:script(), script, "the plan stays as it is")
ok(r.plan:check(), "what is found is legal")
is(r.plan:simulate().seconds, r.seconds, "  and as fast as it says")
is(r.timeline.seconds, r.seconds, "  as its timeline")
is(r.before.seconds, serial:simulate().seconds, "before: of the plan")
tap.near(r.gain, 1 - r.seconds / r.before.seconds, 1e-15, "gain")
ok(r.seconds <= overlap:simulate().seconds, "with the order alone free, it is as fast as the overlap by hand", r.seconds,
  overlap:simulate().seconds)
is(r.ended, "done", "  to the end")
is(r.within_noise, true, "too near to call, says the model")
is(r.diff.text, serial:diff(r.plan).text, "diff: from the plan to what is found")
local left = 1
for i, c in ipairs(r.changes) do
  left = left * (1 - c.gain)
  ok(c.change:find "^plan:" and c.seconds > 0, ("change %d is a statement"):format(i), c.change)
end
ok(#r.changes > 0, "there are changes")
tap.near(1 - left, r.gain, 1e-12, "  that make up the gain")
is(r.changes[#r.changes].seconds, r.seconds, "  the last of them has the time")
local copy = r.plan
copy:buffers{k = 1}
is(r.plan.rings.k, 2, "r.plan is a copy")

local text = tostring(r)
like(text, "^flash_attention on h200: 1%.8%d+ ms, then 1%.7%d+ ms", "as text: both times")
like(text, "\n%d%.%d %% less time; II 2724 %-> %d+ cycles: too near to call\n", "  what is gained")
like(text, "\n1%. plan:.-%(%-%d%.%d %%%)\n", "  the changes")
ok(text:find(r.diff.text, 1, true), "  the difference")
like(text, "\n%d+ plans tried; ended: no change of the fastest plans is an improvement; pinned: lanes, rings k v, tile, grid\n", "  and how it was found")
local report = r:json()
like(report, '"format": ?"millrace improved 1"', "as JSON")
like(report, '"changes": ?%[', "  with the changes")

local short = mr.examples.flash_attention{b = 1, h = 8, m = 2048, d = 128}
local short_serial = mr.load_plan("attention_serial", short)
local free = short_serial:improve{}
ok(free.seconds <= short_serial:improve{pin = orders}.seconds, "with all free it finds no less")
is(free.pinned, "nothing", "  as nothing is pinned")
local once, again = serial:improve{pin = orders}, r
is(once.plan:script(), again.plan:script(), "the same again: the same plan")
is(once.trials, again.trials, "  after as many trials")
again = free.plan:improve{}
is(#again.changes, 0, "from there it finds nothing")
like(tostring(again), "\nnothing better was found\n%d+ plans tried; ended: no change of the fastest plans is an improvement; pinned: nothing$", "  and says so")
local shallow = mr.load_plan "gemm_cooperative"
shallow:buffers{a = 1, b = 1}
ok(shallow:improve{pin = {tile = true, tasks = true, lanes = true, grid = true}}.gain > 0.25,
  "a product with rings of one: deeper ones")

-- From an order by hand that no single change improves: what why(), suggest() and improve() say agrees.
local stuck = mr.plan(short:graph{tile = {m = 128, n = 128}}, mr.device "h200")
stuck:lane("c0", {warps = 8})
for _, t in ipairs(stuck.tasks) do stuck:append(t.name) end
stuck:buffers{k = 2, v = 2}
stuck:fill_waits()
stuck:move("mma_qk", {at = 1, after = "softmax"})
local said = stuck:simulate():why()
like(said, "\nnone of %d+ other rings, orders, lanes and tiles would take 0%.5 %% less time; plan:suggest%(%) tries a search, and two together$",
  "none alone helps, says why(), and who tries more")
local suggested = stuck:suggest()[1]
ok(suggested and suggested.gain > 0.005, "suggest() finds more", suggested)
r = stuck:improve()
ok(r.seconds <= suggested.seconds and r.plan:check(), "  and improve() no less", r.seconds, suggested.seconds)
is(#r.plan:suggest(), 0, "  after which there is nothing to suggest")

-- Where changes end, a search that is longer than that of suggest() goes on; what was tried is said.
local two_phases = dofile((arg[0]:match "^(.*/)" or "./") .. "lib/two_phases.lua")
local by_hand = two_phases.by_hand()
like(by_hand:suggest(), "^none of %d+ changes tried would take 0%.5 %% less time; plan:improve%(%) tries " ..
  "them one after the other, and together; nor is any of %d+ plans of a search faster, and plan:improve%(%) lets it try more$", "no change helps, nor does a short search")
r = by_hand:improve()
local searched = mr.search(by_hand.graph.program, two_phases.device, {measure = false})
ok(r.seconds <= searched.timeline.seconds * 1.01 and r.gain > 0.15, "  improve() is as fast as a search", r.seconds, searched.timeline.seconds)
ok(not tostring(r):find "II %d+ %->", "  no II is compared with that of another tile")

-- The way to a plan has no step that it is as fast without.
local linear = mr.program("linear", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local X, W, B, Y = p:input("X", {m, k}), p:input("W", {n, k}), p:input("B", {n}), p:output("Y", {m, n})
  local acc = p:carry("acc", {m, n}, 0)
  p:loop(k, function() acc:add(p:mma("mma", p:load("load_x", X), p:load("load_w", W))) end)
  local b = p:load("load_b", B)
  Y:store("store_y", p:task("epilogue", function() return mr.gelu(acc + b):to "bf16" end))
end)
local bent = mr.plan(linear{m = 8192, n = 8192, k = 4096}:graph{tile = {m = 128, n = 256, k = 64}}, mr.device "h200")
bent:lane("c0", {warps = 8})
for _, name in ipairs{"mma", "epilogue", "store_y", "load_x", "load_w", "load_b"} do bent:append(name) end
bent:buffers{x = 3, w = 4}
bent:fill_waits()
r = bent:improve{trials = 400}
local idle = 0
for _, c in ipairs(r.changes) do idle = idle + (math.abs(c.gain) < 5e-4 and 1 or 0) end
ok(#r.changes > 1 and idle == 0, "no step of the way is without effect", tostring(r))
ok(r.plan:check() and math.abs(r.plan:simulate().seconds / r.changes[#r.changes].seconds - 1) < 1e-9, "  and its times are those of the plan")

---- pins -----------------------------------------------------------------------------------------

-- What a script says of each kind, read by ourselves.
local function statement_of(plan, pattern)
  local list = {}
  for line in lines_of(plan) do
    if line:find(pattern) then list[#list + 1] = line end
  end
  return table.concat(list, "\n")
end

local function order_of(plan, lane, names)
  local list = {}
  for line in lines_of(plan) do
    local name, on = line:match 'plan:append%("([^"]+)", {seu="%w+", lane="(%w+)"'
    if on == lane and (not names or names[name]) then list[#list + 1] = name end
  end
  return table.concat(list, " ")
end

r = serial:improve{pin = {tasks = {"softmax", "mma_pv"}}}
is(statement_of(r.plan, '^plan:append%("softmax"'), statement_of(serial, '^plan:append%("softmax"'), "a pinned sTask stays")
is(statement_of(r.plan, '^plan:append%("mma_pv"'), statement_of(serial, '^plan:append%("mma_pv"'), "  and another one")
is(order_of(r.plan, "c0", {softmax = true, mma_pv = true}), "softmax mma_pv", "  in their order")
r = serial:improve{pin = {rings = {"v", "softmax_2"}}}
is(r.plan.rings.v, 2, "a pinned ring stays")
is(r.plan.rings.softmax_2, 1, "  one of registers, too")
ok(r.gain > 0.03, "  and something else is found", r.gain)
r = shallow:improve{pin = {tile = {"m", "n"}, rings = {"a"}}}
is(r.plan.tile.m .. " " .. r.plan.tile.n, "128 256", "pinned axes stay")
is(r.plan.rings.a, 1, "  and a ring with them")
ok(r.plan.tile.k ~= 64, "  another axis may change", r.plan.tile.k)
r = shallow:improve{pin = {tile = "k"}}
is(r.plan.tile.k, 64, "one name needs no list")
r = overlap:improve{pin = {grid = true, rings = true}}
is(statement_of(r.plan, "^plan:grid"), "", "a pinned grid stays")
ok(statement_of(overlap:improve{pin = {rings = true}}.plan, "^plan:grid") ~= "", "  that would change otherwise")
local small = mr.examples.gemm{m = 512, n = 512, k = 512}
local narrow = mr.plan(small:graph{tile = {m = 64, n = 64, k = 64}}, mr.device "h200")
narrow:lane("p0", {warps = 1})
narrow:lane("c0", {warps = 4})
for _, task in ipairs(narrow.tasks) do narrow:append(task.name) end
narrow:fill_waits()
r = narrow:improve{pin = {lanes = {"c0"}}}
is(statement_of(r.plan, '^plan:lane%("c0"'), 'plan:lane("c0", {warps=4})', "a pinned lane stays")
is(order_of(r.plan, "c0"), "mma epilogue store_c", "  with its sTasks")
local split = mr.load_plan "attention_pingpong"
r = split:improve{pin = {tasks = {"mma_qk"}}, trials = 40}
is(statement_of(r.plan, '^plan:append%("mma_qk'), statement_of(split, '^plan:append%("mma_qk'), "a name stands for all slices")
r = serial:improve{pin = {tasks = {}, rings = false, grid = false}, trials = 5}
is(r.pinned, "nothing", "empty lists pin nothing")
r = serial:improve{pin = {tasks = true, lanes = true, rings = true, tile = true, grid = true}}
is(r.plan:script(), serial:script(), "with all pinned the plan is the same")
is(r.trials, 0, "  without a trial")
is(tostring(r.diff), "no difference", "  nor a difference")

-- Every change that there is to a plan, and what it does to each pin: the pin holds if and only if what it
-- pins is the same, as far as a script says it.
local function same(plan, other, kind)
  if kind == "grid" then return statement_of(plan, "^plan:grid") == statement_of(other, "^plan:grid") end
  if kind == "tile" then return draft.literal(plan.tile) == draft.literal(other.tile) end
  if kind == "rings" then return draft.literal(plan.rings) == draft.literal(other.rings) end
  local function list(p)
    local names, by = {}, {}
    for line in lines_of(p) do
      local lane = line:match '^plan:append.*lane="(%w+)"'
      if lane and not by[lane] then by[lane], names[#names + 1] = {}, lane end
      if lane then table.insert(by[lane], kind == "tasks" and line or line:match '"([^"]+)"') end
    end
    table.sort(names)
    for i, lane in ipairs(names) do
      if kind == "lanes" then table.sort(by[lane]) end
      names[i] = lane .. ": " .. table.concat(by[lane], "\n") .. (kind == "lanes" and statement_of(p, ('^plan:lane%%("%s"'):format(lane)) or "")
    end
    if kind == "tasks" then                             -- what each reads and makes
      for _, t in ipairs(p.tasks) do
        names[#names + 1] = t.name .. table.concat(t.reads, " ") .. ">" .. table.concat(t.writes, " ")
      end
    end
    return table.concat(names, "\n")
  end
  return list(plan) == list(other)
end

for name, plan in pairs{serial = serial, pingpong = split, gemm = shallow, narrow = narrow} do
  local list = changes.of(plan)
  local wrong, held, broken, made = nil, {}, {}, 0
  for _, change in ipairs(list) do
    local made_it, other = pcall(repair.make, {plan = plan}, change)
    for _, kind in ipairs(made_it and other and {"tasks", "lanes", "rings", "tile", "grid"} or {}) do
      local holds, want = pins.hold(pins.of(plan, {[kind] = true}), other), same(plan, other, kind)
      if holds ~= want then wrong = kind .. ": " .. change.text end
      made, held[kind], broken[kind] = made + 1, held[kind] or holds, broken[kind] or not holds
    end
  end
  ok(not wrong and made > 100, name .. ": pins hold for what stays, and for nothing else", wrong, made)
  for _, kind in ipairs{"tasks", "lanes", "rings", "tile", "grid"} do
    ok(held[kind] and (broken[kind] or kind == "grid"), ("  both came up of %s"):format(kind))
  end
end

---- changes that only a search tries ------------------------------------------------------------------

local function find(plan, text)
  for _, change in ipairs(changes.of(plan)) do
    if change.text:find(text, 1, true) then
      return repair.make({plan = plan}, change), change.text
    end
  end
end

local split_off, text_of_change = find(serial, "plan:split_off")
is(text_of_change, 'plan:split_off("softmax_2", "convert"); plan:alias{softmax_3="mma_qk"}; plan:insert("convert", {after="softmax"})',
  "a conversion is split off, as an alias of the scores")
ok(split_off and split_off:check() and order_of(split_off, "c0") == "mma_qk softmax convert rescale mma_pv normalise store_o",
  "  behind the sTask that it comes from", split_off and order_of(split_off, "c0"))
split_off = find(split, "plan:split_off")
ok(split_off and split_off:check() and order_of(split_off, "c1"):find("softmax.1 convert.1", 1, true), "  of each slice",
  split_off and order_of(split_off, "c1"))
is(find(mr.load_plan "attention_d128", "plan:split_off"), nil, "  once")
is(find(split, 'when="issued"'), nil, "lanes with an issue order need no other one")
for _, pair in ipairs{{"mma_qk.0", "mma_pv.1"}, {"mma_qk.1", "mma_pv.0"}} do split:unwait(pair[1], pair[2]) end
local ordered = find(split, 'when="issued"')
is(ordered and core.statements(ordered), core.statements(mr.load_plan "attention_pingpong"),
  "others get that of the shipped ping-pong plan")
local stores = find(shallow, 'seu="cuda"')
like(stores and core.statements(stores), 'plan:append%("store_c%.0", {seu="cuda"', "stores by threads")

---- keep --------------------------------------------------------------------------------------------------

local kept = mr.load_plan "attention_serial"
r = kept:improve{trials = 80}
local found = r.plan:script()
r.keep()
is(kept:script(), found, "keep: the plan is what was found")
ok(kept:check(), "  and legal")
is(kept:undo() and kept:script(), serial:script(), "  undone by one undo")
is(kept:redo() and kept:script(), found, "  and done again")
kept:move("load_v", {at = 1})
good, message = pcall(r.keep)
ok(not good and message:find("keep: the plan has changed since it was searched from", 1, true), "not of a plan that has changed",
  message)
shallow:grid{group = 4}
r = shallow:improve{trials = 60}
r.keep()
is(shallow.tile.k, r.plan.tile.k, "with another tile")
is(shallow:script(), r.plan:script(), "  and all else")
is(shallow:copy():script(), r.plan:script(), "  as has a copy")

---- ends -------------------------------------------------------------------------------------------------

is(serial:improve{trials = 7}.trials, 7, "so many trials")
is(serial:improve{trials = 7}.ended, "trials", "  and says so")
is(serial:improve{trials = 0}.trials, 0, "none")
is(serial:improve{seconds = 0}.ended, "seconds", "no time")
is(serial:improve{seconds = 0}.gain, 0.0, "  is the plan itself")
local seen = {}
r = serial:improve{trials = 30, progress = function(n, seconds) seen[n] = seconds end}
is(#seen, 30, "progress is reported after each trial")
is(seen[30], r.seconds, "  with the best time")

-- Ctrl-C while it runs, sent to ourselves.
r = serial:improve{progress = function(n) if n == 20 then io.popen("kill -INT $PPID"):close() end end}
is(r.ended, "interrupted", "Ctrl-C ends it")
is(r.trials, 20, "  at once")
is(r.seconds, serial:improve{trials = 20}.seconds, "  with the best so far")
ok(r.gain > 0 and r.plan:check(), "  which is a plan", r.gain)

---- mistakes ---------------------------------------------------------------------------------------------

plan = serial
local function bad(code, message) tap.refuses(code, "user.lua:1: " .. message, code) end
bad("plan:improve(1)", "improve: table of options expected, got 1")
bad("plan.improve(1)", "improve: plan expected, got 1; it is called with a colon, as in plan:improve(...)")
bad("plan:improve{pins = {}}", "improve: unknown option 'pins'; did you mean 'pin'?")
bad("plan:improve{trials = -1}", "improve: trials must be a number of at least 0, not -1")
bad("plan:improve{seconds = 'x'}", "improve: seconds must be a number of at least 0, not 'x'")
bad("plan:improve{measure = true}", "improve: it predicts and measures nothing; leave measure= out, or measure with mr.search")
bad("plan:improve{progress = 1}", "improve: progress must be a function, not 1")
bad("plan:improve{pin = 1}", "improve: pin: table of what stays expected, got 1")
bad("plan:improve{pin = {task = {}}}", "improve: pin: unknown kind 'task'; did you mean 'tasks'?")
bad("plan:improve{pin = {'softmax'}}", "improve: pin: unknown kind 1")
bad("plan:improve{pin = {tasks = {'sofmax'}}}", "improve: pin: no sTask 'sofmax'; did you mean 'softmax'?")
bad("plan:improve{pin = {lanes = 'c1'}}", "improve: pin: no lane 'c1'; did you mean 'c0'?")
bad("plan:improve{pin = {rings = {'softmax_22'}}}", "improve: pin: no buffer 'softmax_22'; did you mean 'softmax_2'?")
bad("plan:improve{pin = {tile = {'d'}}}", "improve: pin: no tile axis 'd'; there are m, n")
bad("plan:improve{pin = {tile = {m = 128}}}", "improve: pin: tile: list of names expected, got the field 'm'")
bad("plan:improve{pin = {rings = {1}}}", "improve: pin: rings: names expected, got 1")
bad("plan:improve{pin = {rings = 1}}", "improve: pin: rings: list of names or true expected, got 1")
bad("plan:improve{pin = {grid = {}}}", "improve: pin: grid: true or false expected, got table")
plan = serial:copy()
plan:unwait("mma_pv", "load_v")
good, message = pcall(plan.improve, plan)
ok(not good and message:find("improve: the plan is not legal: ", 1, true), "a plan that is not legal", message)

---- tile extents that are named --------------------------------------------------------------------------

local device = mr.device "h200"
bound = mr.examples.gemm{m = 512, n = 512, k = 512}
for _, case in ipairs{{tile = {m = 64}}, {tile = {m = 128, n = {64, 192}}}, {tile = {m = {64}, n = 32, k = {32, 48}}}} do
  local found = assert(mr.search(bound, device, {trials = 30, seconds = 600, tile = case.tile}))
  local fits = true
  for axis, want in pairs(case.tile) do
    local any = false
    for _, extent in ipairs(type(want) == "table" and want or {want}) do any = any or found.plan.tile[axis] == extent end
    fits = fits and any
  end
  ok(fits, "the result has one of the extents", tostring(found))
end
local one = mr.search(bound, device, {trials = 200, seconds = 600, tile = {m = 64, n = 64, k = 32}})
is(one.shapes, 1, "all named: one shape")
local extents = {}
for i = 1, 25 do extents[i] = 16 * i end
many = extents
bad("mr.search(bound, misspelt)",
  "search: device expected, got nil; mr.search(program) takes the attached device, or the model h200 if there is none")
ok(mr.search(bound, "h200", {trials = 2, measure = false}), "the name of a device does for it, as for mr.load_plan")
bad("mr.search(bound, mr.device(), {tile = {x = 64}})", "search: unknown axis 'x' (known: m, n, k)")
bad("mr.search(bound, mr.device(), {tile = {m = many}})", "search: 1 to 24 extents of axis 'm' can be tried, not 25")
bad("mr.search(bound, mr.device(), {tile = {m = {}}})", "search: 1 to 24 extents of axis 'm' can be tried, not 0")
bad("mr.search(bound, mr.device(), {tile = {m = 0}})", "search: tile extent must be an integer of at least 1, got 0")
bad("mr.search(bound, mr.device(), {tile = {m = 1.5}})", "search: tile extent must be an integer of at least 1, got 1.5")
bad("mr.search(bound, mr.device(), {tile = 64})", "search: table of tile extents expected, got 64")
bad("mr.search(mr.examples.flash_attention{b = 1, h = 2, m = 512, d = 64}, mr.device(), {tile = {b = 1}})",
  "axis 'b' is not tiled: every tile has all of it")
tap.done_testing()
