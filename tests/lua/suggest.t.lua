-- plan:suggest(): from an empty plan to a fast one by what it says alone; and all that it, tl:why() and plan:check() say is code that
-- does what is promised.
--
-- MILLRACE_PLANS in the environment is the number of plans, at most 50 of each sort.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local programs = dofile((arg[0]:match "^(.*/)" or "./") .. "lib/programs.lua")
local changes, core = require "millrace.changes", require "millrace.core"
local ok, is, like = tap.ok, tap.is, tap.like
local device = mr.device "h200"

local function run(plan, text)
  local copy = plan:copy()
  assert(load("local plan = ...\n" .. text, "=suggestion", "t", {}))(copy)
  return copy
end

local function seconds_of(plan) return plan:check() and plan:simulate{events = 0}.seconds end

---- what a change comes to ----------------------------------------------------------------------------

-- A unit there and back, which takes a needless wait along: that wait is what is taken out.
do
  local plan = mr.load_plan("gemm_cooperative", mr.examples.gemm{m = 1024, n = 1024, k = 512})
  plan:wait("epilogue", {"load_a"})
  local found = require "millrace.suggest".try(plan, {{reason = "there and back",
    list = {{"move", "epilogue", {seu = "tma"}}, {"move", "epilogue", {seu = "cuda"}}}}}, plan:simulate{events = 0}.seconds)
  is(#found, 1, "a move there and back that changes waits is a change")
  is(found[1] and found[1].text, 'plan:unwait("epilogue", "load_a")', "  which is said as what it comes to")
  is(found[1] and found[1].reason, "every dependence is kept without this wait", "  and why")
  is(found[1] and run(plan, found[1].text):script(), found[1] and found[1].script, "  and that gives the same plan")
end

-- As many problems as plan:check() prints: missing waits are one.
do
  local plan = mr.plan(mr.examples.gemm{m = 1024, n = 1024, k = 512}:graph{tile = {m = 128, n = 128, k = 64}}, device)
  plan:suggest()[1]:apply()
  local _, problems = plan:check()
  ok(#problems > 1, "several waits are missing")
  ok(tostring(plan:suggest()):find(("; then it takes %.4g ms\n"):format(plan:suggest()[1].seconds * 1e3), 1, true), "a repair says how fast the plan is then",
    tostring(plan:suggest()))
  is(plan:suggest()[1].reason:match "it has (%d+ problems?)", tostring(problems):match "^(%d+ problems?)" or "1 problem", "  which are so many problems")
end

---- from an empty plan ------------------------------------------------------------------------------

-- Do the first suggestion until there is none, or until the plan takes no more than so many seconds. Returns the plan and how
-- many statements that were.
local function follow(bound, tile, most)
  local plan, statements = mr.plan(bound:graph{tile = tile}, device), 0
  for _ = 1, 40 do
    local s = not (most and (seconds_of(plan) or math.huge) <= most) and plan:suggest()[1]
    if not s then break end
    local _, n = s.text:gsub("plan:", "")
    statements = statements + n
    plan = run(plan, s.text)                            -- as if it were pasted
  end
  return plan, statements
end

local pingpong = mr.load_plan "attention_pingpong"
local by_hand = pingpong:simulate().seconds
local plan, statements = follow(pingpong.graph.program, {m = 128, n = 128}, by_hand / 0.97)
local share = by_hand / (seconds_of(plan) or math.huge)
ok(share >= 0.97 and statements <= 25, ("attention: %.3f of the speed of ping-pong in %d statements"):format(share, statements), plan:script())
local square = mr.examples.gemm{m = 4096, n = 4096, k = 4096}
by_hand = mr.load_plan("gemm_cooperative", square):simulate().seconds
plan, statements = follow(square, {m = 128, n = 256, k = 64}, by_hand / 0.97)
share = by_hand / (seconds_of(plan) or math.huge)
ok(share >= 0.97 and statements <= 25, ("a product: %.3f of the speed of the cooperative one in %d statements"):format(share, statements))
local gated = programs.gated{m = 2048, n = 2048, k = 2048}
plan, statements = follow(gated, {m = 128, n = 128, k = 64})
local tl = plan:simulate()
ok(tl.ii <= 1.1 * tl.bound and statements <= 25, ("a program of one's own: near its bound in %d statements"):format(statements), tl.ii, tl.bound)
like(plan:suggest(), "^none of %d+ changes tried would take 0%.5 %% less time; plan:improve%(%)", "then there is nothing to suggest")

plan, statements = follow(mr.examples.chunk_scan{b = 2, s = 2048, h = 8, p = 64, n = 64}, {}, 1)
ok(plan:check() and statements > 12 and next(plan.tile), "without any tile that fits: to a legal plan, with a smaller tile", plan)

---- programs of one's own, as a new user begins ---------------------------------------------------------

-- gelu(X W^T + B + R)
local residual = mr.program("residual", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local X, W, B, R = p:input("X", {m, k}), p:input("W", {n, k}), p:input("B", {n}, "f32"), p:input("R", {m, n})
  local O, acc = p:output("O", {m, n}), p:carry("acc", {m, n}, 0)
  p:loop(k, function() acc:add(p:mma("mma", p:load("load_x", X), p:load("load_w", W))) end)
  local b, r = p:load("load_b", B), p:load("load_r", R)
  O:store("store_o", p:task("finish", function() return mr.gelu(acc + b + r:to "f32"):to "bf16" end))
end)

-- softmax of the rows of X / 8, in two passes
local softmax = mr.program("softmax", function(p)
  local m, n = p:axes("m", "n")
  local X, O = p:input("X", {m, n}), p:output("O", {m, n})
  local top, sum = p:carry("top", {m}, -1e30), p:carry("sum", {m}, 0)
  p:loop(n, function()
    local x = p:load("load_x", X)
    p:task("add", function()
      local s = x:to "f32" * 0.125
      local new = mr.max(top, mr.rowmax(s, n))
      sum:set(sum * mr.exp(top - new) + mr.rowsum(mr.exp(s - new), n))
      top:set(new)
    end)
  end)
  p:loop(n, function()
    local x = p:load("load_x2", X)
    O:store("store_o", p:task("scale", function() return (mr.exp(x:to "f32" * 0.125 - top) / sum):to "bf16" end))
  end)
end)

-- From no tile at all, to within a twentieth of what a search finds.
for name, bound in pairs{residual = residual{m = 1024, n = 1024, k = 512}, softmax = softmax{m = 1024, n = 1024}} do
  plan = follow(bound, {})
  local best = mr.search(bound, device, {measure = false}).seconds
  local ratio = (seconds_of(plan) or math.huge) / best
  ok(ratio <= 1.05, ("%s: followed to the end, %.3f of the time of what a search finds"):format(name, ratio), plan:script())
end

-- All sTasks in program order, loads on p0; options: lanes by name, rings, edit (before the waits)
local function planned(bound, tile, o)
  local p = mr.plan(bound:graph{tile = tile}, device)
  for lane, options in pairs(o.lanes or {}) do p:lane(lane, options) end
  for _, t in ipairs(p.tasks) do p:append(t.name) end
  if o.rings then p:buffers(o.rings) end
  if o.edit then o.edit(p) end
  p:fill_waits()
  return p
end

-- The first suggestion, and what comes of it.
local function first_of_list(p)
  local s = p:suggest()[1]
  return s and s.text, s and run(p, s.text)
end

local small = programs.gated{m = 1024, n = 1024, k = 1024}
for _, tile in ipairs{{m = 256, n = 256, k = 64}, {m = 512, n = 128, k = 64}, {m = 128}, {}} do
  local text, made = first_of_list(planned(small, tile, {}))
  ok(made and made:check() and text:find "^plan:propagate{", "from a tile that is too large: to a smaller one", text)
end
local large = mr.plan(small:graph{tile = {m = 512, n = 512, k = 512}}, device)
for _, t in ipairs(large.tasks) do large:append(t.name) end
local _, problems = large:check()
like(problems, "^%S+:%d+: shared_memory: the tile does not fit: with one\n? *version of each value it\n? *needs %d+ bytes",
  "what is said first of a plan without waits: that the tile does not fit")
like(problems, "\n    try: plan:propagate{", "  and a statement")
like(large:suggest()[1].reason, "^the tile does not fit: with one version of each value it needs %d+ bytes", "  suggest() says so, too")
local rows = mr.program("rows", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local X, W, R, Y = p:input("X", {m, k}), p:input("W", {n, k}), p:input("R", {m, n}), p:output("Y", {m, n})
  local acc = p:carry("acc", {m, n}, 0)
  p:loop(k, function() acc:add(p:mma("mma", p:load("load_x", X), p:load("load_w", W))) end)
  local r = p:load("load_r", R)
  Y:store("store_y", p:task("softmax", function()
    local e = mr.exp(acc + r - mr.rowmax(acc + r, n))
    return (e / mr.rowsum(e, n)):to "bf16"
  end))
end){m = 4096, n = 4096, k = 2048}
for _, tile in ipairs{{m = 128, k = 64}, {m = 128, n = 256, k = 64}} do
  _, problems = planned(rows, tile, {}):check()
  like(tostring(problems):gsub("\n *", " "), "'r' takes most, 1048576, as every tile has all 4096 of 'n': 'softmax' needs them " ..
    "try: change the program: a loop over 'n' with carries, or 'softmax' in a phase of its own that loops over it, has less of it at a time",
    "a tile that cannot fit: what the program has to change")
end
local _, made = first_of_list(planned(mr.examples.conv2d{n = 2, h = 28, w = 28, c = 64, k = 64, r = 3, s = 3, pad = 1}, {}, {}))
ok(made and made:check(), "  also of a convolution without any tile")
for axis, tile in pairs{n = {m = 128, k = 64}, m = {n = 256, k = 64}} do
  local p = mr.plan(mr.examples.gemm{m = 4096, n = 4096, k = 4096}:graph{tile = tile}, device)
  p:split(axis, 2)
  for i = 0, 1 do p:lane("c" .. i, {warps = 4}) end
  for _, name in ipairs{"load_a", "load_b"} do p:append(name) end
  for i = 0, 1 do
    for _, name in ipairs{"mma", "epilogue", "store_c"} do p:append(name .. "." .. i, {lane = "c" .. i}) end
  end
  p:fill_waits()
  like(select(2, p:check()), "the tile does not fit.*\n    try: plan:propagate{", "  and where the axis that lanes share is not in the tile: " .. axis)
  local text, made = first_of_list(p)
  ok(made and made:check(), "  which suggest() mends", text)
end
bare = mr.plan(gated:graph{tile = {m = 128, n = 128, k = 64}}, device)
for _, t in ipairs(bare.tasks) do bare:append(t.name) end
like(bare:suggest()[1].text, "^plan:fill_waits%(%)", "missing waits come by one statement")

local fast = {lanes = {p0 = {warps = 1}, c0 = {warps = 8}}, rings = {a = 4, g = 4, h = 4}}
local narrow = {m = 128, n = 128, k = 64}
plan = planned(gated, narrow, fast)
plan:move("mma_h", {seu = "cuda"})
is(plan:suggest()[1].text, 'plan:move("mma_h", {seu="tensor"})', "a product on the wrong unit is moved")
is(plan:simulate():why()[1].text, plan:suggest()[1].text, "  says why, too")
is(plan:improve{trials = 1}.changes[1].change, plan:suggest()[1].text, "  and improve tries it first")
plan = planned(gated, narrow, {lanes = fast.lanes})
plan:move({"gate", "store_c"}, {lane = "e0"})
is(plan:suggest()[1].text, 'plan:move({"gate", "store_c"}, {lane="c0"})', "an epilogue on another lane comes back")
plan = planned(residual{m = 2048, n = 2048, k = 2048}, {m = 128, n = 256, k = 128}, {lanes = fast.lanes})
like(plan:suggest()[1].text, "^plan:propagate{k=%d+}; plan:buffers{w=%d+, x=%d+}$", "shorter tiles and deeper rings, where neither helps alone")

---- one repair for one problem ----------------------------------------------------------------------------

-- What check() prints, what the plan prints, the first suggestion and `millrace check` say.
local function repairs_of(p)
  local function after(text, sign) return (tostring(text):gsub("\n *", " "):match(sign .. " (plan:.-) *$")) end
  local path = os.tmpname()
  p:save(path, {overwrite = true})
  local pipe = io.popen(("MILLRACE_STORE=none %s check %s"):format(os.getenv "MILLRACE" or "build/millrace", path))
  local printed = pipe:read "a"
  pipe:close()
  os.remove(path)
  return after(select(2, p:check()), "try:"), after(p, "[>\u{2192}]+"), p:suggest()[1].text, after(printed, "repair:")
end

local function same_repair(p, want, what)
  local checked, shown, suggested, command = repairs_of(p)
  is(checked, want, what .. ": check()")
  is(shown, want, "  print(plan)")
  is(suggested, want, "  suggest()")
  is(command, want, "  millrace check")
end

local product, tile = mr.examples.gemm{m = 2048, n = 2048, k = 2048}, {m = 128, n = 256, k = 64}
local eight = {lanes = fast.lanes, rings = {a = 4, b = 4}}
plan = planned(product, tile, eight)
plan:unwait("load_a", "mma")
same_repair(plan, 'plan:wait("load_a", {"mma"})', "a wait")
plan = planned(product, tile, eight)
plan:lane("c0", {warps = 3})
same_repair(plan, 'plan:lane("c0", {warps=8})', "three warps for a product")
plan = planned(product, tile, eight)
plan:split("m", 2)
is(plan:check(), true, "slices of 64 rows on a lane of eight warps, which divide their columns")
plan = planned(product, {m = 128, n = 248, k = 64}, eight)     -- columns that two groups of warps cannot divide
plan:split("m", 2)
same_repair(plan, 'plan:lane("c0", {warps=4}); plan:lane("c1", {warps=4}); plan:move({"mma.1", "epilogue.1", "store_c.1"}, {lane="c1"})',
  "slices on one lane")
plan:lane("c1", {warps = 4})
like(plan:suggest()[1].text, '{lane="c1"}%)$', "  and if the lane is there, they go there")

---- values ------------------------------------------------------------------------------------------

plan = mr.load_plan "attention_serial"
local script, first = plan:script(), plan:suggest()[1]
ok(first.gain > 0.03 and first.text == first.change and #first.reason > 10, "a suggestion has a gain and a reason", first.reason)
is(tostring(first), ("%s  -- %.1f %% less time"):format(first.text, 100 * first.gain), "  and is shown with it")
is(first:apply(), plan, "apply() returns the plan")
is(plan:script(), run(mr.load_plan "attention_serial", first.text):script(), "  and does what its text does")
ok(load("local plan = ...\n" .. tostring(mr.load_plan "attention_serial":suggest())), "a list prints as code and comments")
ok(plan:undo() and plan:script() == script, "  as one edit")
local why = plan:simulate():why()
like(why.binds, "^no unit binds", "why is a list with its text")
is(why[1].text, first.text, "  of suggestions")
plan:buffers{k = 3}
local good, message = pcall(why[1].apply, why[1])
ok(not good and message:find("apply: the plan has changed since; ask again for what helps now", 1, true), "not of a plan that has changed", message)
local function empty() return mr.plan(gated:graph{tile = {m = 128, n = 128, k = 64}}, device) end
local bare = empty()
local appended = {'plan:append("load_a", {seu="tma", lane="p0"})', 'plan:append("load_g", {seu="tma", lane="p0"})',
  'plan:append("mma_g", {seu="tensor", lane="c0"})', 'plan:append("load_h", {seu="tma", lane="p0"})',
  'plan:append("mma_h", {seu="tensor", lane="c0"})', 'plan:append("gate", {seu="cuda", lane="c0"})',
  'plan:append("store_c", {seu="tma", lane="c0"})'}
is(bare:suggest()[1].text, table.concat(appended, "; "), "an empty plan: all sTasks in the order of the program")
like(bare:suggest()[1].reason, "^7 sTasks are not in the plan", "  says how many")
is(bare:suggest()[2].text, appended[1], "  then each of them")
ok(bare:suggest()[1]:apply() == bare and #core.statements(bare) > 0 and bare:suggest()[1].text:find "^plan:fill_waits", "  then their waits")
bare = empty()
for _, name in ipairs{"load_a", "load_g", "load_h", "mma_h", "gate", "store_c"} do
  bare:append(name, {at = name:find "[hg]$" and 1 or nil})
end
is(bare:suggest()[1].text, 'plan:insert("mma_g", {seu="tensor", lane="c0", before="mma_h"})', "  or where it belongs")
tap.refuses("require 'millrace'.load_plan('attention_serial'):suggest(1)", "user.lua:1: suggest: table of options expected, got 1")
tap.refuses("require 'millrace'.load_plan('attention_serial'):suggest{trial = 1}",
  "user.lua:1: suggest: unknown option 'trial'; did you mean 'trials'?")

---- searched plans ------------------------------------------------------------------------------------

-- Plans that searches have found, of smaller sizes, so that much can be tried.
local MOST <const> = {b = 1, h = 2, hkv = 2, m = 512, n = 512, k = 512, s = 512, c = 64}
local PLANS <const> = math.min(50, tonumber(os.getenv "MILLRACE_PLANS") or 50)

local function searched()
  local list = {}
  for line in io.lines(mr.home .. "/tests/perf/sweep-h200.jsonl") do
    local text = line:find('"name": "search', 1, true) and require("millrace.json").decode(line).script
    local name, given = (text or ""):match "mr%.examples%.([%w_]+)(%b{})"
    local sizes = name and load("return " .. given)()
    for axis, most in pairs(sizes and MOST or {}) do
      if math.type(sizes[axis]) == "integer" then sizes[axis] = math.min(sizes[axis], most) end
    end
    local bound, found = name and select(2, pcall(mr.examples[name], sizes)), nil
    if core.is(bound, "millrace.program") then good, found = pcall(load(text), bound) end
    if found and good and found:check() then list[#list + 1] = found end
  end
  return list
end

local plans = searched()
ok(#plans >= 20, "there are searched plans", #plans)

-- Other changes are tried of each plan, as there is not time for all of all.
local all_changes, shift = changes.of, 0
function changes.of(...)
  local list = all_changes(...)
  local out = {}
  for i = 1, #list do out[i] = list[(i + shift - 1) % #list + 1] end
  return out
end

local function judge(plan, s, now)
  local good, made = pcall(run, plan, s.text)
  if not good then return "fails: " .. made end
  local seconds = seconds_of(made)
  if s.seconds ~= nil and seconds ~= s.seconds then return ("takes %s, not %s"):format(seconds, s.seconds) end
  if s.gain and math.abs(1 - seconds / now - s.gain) > 1e-12 then return "gains otherwise" end
  if s.script and made:script() ~= s.script then return "makes another plan" end
end

local wrong, count = nil, 0
for i = 1, PLANS do
  local plan = plans[(i - 1) % #plans + 1]
  shift = 11 * i
  local now = seconds_of(plan)
  for _, s in ipairs(plan:suggest{trials = 3}) do
    count = count + 1
    local problem = judge(plan, s, now)
    if problem then wrong = s.text .. " " .. problem .. "\n" .. plan:script() end
  end
end
ok(not wrong and count >= 0.5 * PLANS, ("%d suggestions for searched plans are code that does what they say"):format(count), wrong)

---- broken plans --------------------------------------------------------------------------------------

local function first_of(plan, kind)
  for _, t in ipairs(plan.tasks) do
    if t.kind == kind then return t.name end
  end
end

local breaks = {
  function(p)
    local task, on = core.statements(p):match 'plan:wait%("([^"]+)", {"([^"]+)"'
    p:unwait(task, on)
  end,
  function(p) p:remove(first_of(p, "mma") or p.tasks[1].name) end,
  function(p) p:append(p.tasks[#p.tasks].name) end,
  function(p) p:move(first_of(p, "load"), {seu = "tensor", repair_waits = false}) end,
  function(p)
    for _, b in ipairs(p.graph.buffers) do
      if b.scope == "shared" and p.rings[b.name] then p:buffers{[b.name] = 40} end
    end
  end,
  function(p) p:lane("c0", {warps = 4, registers = 24}) end,
  function(p) p:lane("c0", {warps = 32}) end,
  function(p) p:grid{eus = 1, cluster = 2} end,
  function(p)                                           -- all waits
    for task, list in core.statements(p):gmatch 'plan:wait%("([^"]+)", (%b{})' do
      for on in list:gmatch '"([%w_%.]+)"' do
        if on ~= "issued" then pcall(p.unwait, p, task, on) end
      end
    end
  end,
  function(p) p:wait(first_of(p, "load"), {{first_of(p, "mma"), distance = 0}}) end,
  function(p) p:move(first_of(p, "mma"), {at = 3, repair_waits = false}) end,
  function(p) for i = #p.tasks, 3, -1 do p:remove(p.tasks[i].name) end end,
}

-- The statements behind each "try:" of the printed problems.
local function printed(problems)
  local list = {}
  for text in (tostring(problems):gsub("\n +try: ", "\0"):gsub("\n +", " ") .. "\n"):gmatch "\0([^\n]*)\n" do list[#list + 1] = text end
  return list
end

local broken, followed, legal, tries, worse = 0, 0, 0, 0, nil
wrong = nil
for i = 1, PLANS do
  local plan = plans[(i * 7) % #plans + 1]:copy()
  local how = (i - 1) % #breaks + 1
  shift = 7 * i
  pcall(breaks[how], plan)
  local fine, problems = plan:check()
  if not fine then
    broken = broken + 1
    local list = plan:suggest{trials = 8}
    for k = 1, math.min(#list, 5) do
      local problem = judge(plan, list[k])
      if problem then wrong = list[k].text .. " " .. problem .. "\n" .. plan:script() end
    end
    for _, text in ipairs(i % 3 == 0 and printed(problems) or {}) do
      tries = tries + 1
      local good, made = true, nil
      if text:find "^plan:" then good, made = pcall(run, plan, text) end
      if not good then wrong = ("try: %s: %s\n%s\n%s"):format(text, made, problems, plan:script()) end
    end
    followed = followed + (#list > 0 and 1 or 0)
    local seen = 0
    while not fine and list[1] and seen < 12 do         -- one after the other they lead to a legal plan
      plan, seen = run(plan, list[1].text), seen + 1
      fine = plan:check()
      list = fine and {} or plan:suggest{trials = 8}
    end
    legal = legal + (fine and 1 or 0)
    if not fine then worse = ("break %d: %s\n%s"):format(how, select(2, plan:check()), plan:script()) end
  end
end
ok(not wrong and tries > 0, ("what is printed about %d broken plans is code, too"):format(broken), wrong)
ok(broken >= 0.9 * PLANS and followed == broken, "there are suggestions for each of them", followed)
ok(legal == broken, "  and the first ones, followed, make all of them legal", legal, worse)
changes.of = all_changes
tap.done_testing()
