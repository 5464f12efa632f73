-- tl:why(): what it says binds, and that what it says would help does, by as much.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like = tap.ok, tap.is, tap.like

-- options: sizes and tile of a product; rings; split and warps of the lanes; loads on `loads`
local function gemm(o)
  local bound = mr.examples.gemm{m = 2048, n = 2048, k = o.k or 1024}
  local plan = mr.plan(bound:graph{tile = o.tile or {m = 128, n = 256, k = 64}}, mr.device "h200")
  if o.split then plan:split("m", o.split) end
  plan:lane("p0", {warps = 1})
  for i = 0, (o.split or 1) - 1 do plan:lane("c" .. i, {warps = o.warps or 8}) end
  plan:buffers{a = o.rings, b = o.rings}
  for _, task in ipairs(plan.tasks) do
    plan:append(task.name, {lane = task.kind == "load" and (o.loads or "p0") or "c" .. (task.name:match "%.(%d)$" or 0)})
  end
  plan:fill_waits()
  return plan
end

-- attention in the order of the program, by so many lanes
local function attention(lanes, tile)
  local bound = mr.examples.flash_attention{b = 1, h = 8, m = 4096, d = 128}
  local plan = mr.plan(bound:graph{tile = tile or {m = 128, n = 128}}, mr.device "h200")
  if lanes > 1 then plan:split("m", lanes) end
  plan:buffers{k = 2, v = 2}
  for i = 0, lanes - 1 do plan:lane("c" .. i, {warps = tile and 4 or 8 // lanes, registers = 240}) end
  for _, task in ipairs(plan.tasks) do
    plan:append(task.name, {lane = task.kind ~= "load" and "c" .. (task.name:match "%.(%d)$" or 0) or nil})
  end
  plan:fill_waits()
  return plan
end

---- what comes of a change ------------------------------------------------------------------

-- The text of a suggestion as code, run on a copy of the plan.
local function by_hand(plan, text)
  local copy = plan:copy()
  assert(load("local plan = ...\n" .. text, "=suggestion", "t", {}))(copy)
  return copy
end

local function seconds_of(plan) return plan:check() and plan:simulate{events = 0}.seconds end

-- Each change makes a legal plan and has the reported gain; the best comes first.
local function judge(plan, what)
  local tl = plan:simulate()
  local text, tried = tl:why()
  local right, same_by_hand, kinds = true, true, {}
  for i, t in ipairs(tried) do
    local again = seconds_of(load(t.script)(plan.graph.program))
    right = right and again and math.abs(1 - again / tl.seconds - t.gain) < 1e-12 and
      (i == 1 or tried[i - 1].gain >= t.gain)
    local edited = by_hand(plan, t.text)
    if edited:script() ~= t.script then same_by_hand = ok(false, what .. ": " .. t.text .. ", by hand", edited:script(), t.script) end
    kinds[t.text:match "^plan:(%a+)"] = true
  end
  ok(right and #tried >= 8, what .. ": each gain is that of the change, best first", #tried)
  ok(same_by_hand, what .. ": and of its text, run as code")
  is(plan:simulate().seconds, tl.seconds, what .. ": the plan stays as it was")
  ok(select(2, text:gsub("\n", "")) <= 2, what .. ": in three lines", text)
  return text, tried, kinds
end

---- bad plans, and the repair of each ---------------------------------------------------------

local text, tried, kinds = judge(gemm{rings = 1}, "rings of one")
like(text, "^no unit binds: tensor is at work %d+ %% of the time, and c0 waits %d+ %% of the time for a free slot, after mma\n",
  "lanes wait for a free slot")
like(text, "\nplan:buffers{a=[23], b=[23]} would take %d+%.%d %% less time", "deeper ones help")
for _, kind in ipairs{"buffers", "propagate", "grid", "move", "split"} do
  ok(kinds[kind], "tried: " .. kind)
end

text = judge(gemm{rings = 6, tile = {m = 64, n = 128, k = 64}, warps = 4}, "a small tile")
like(text, "^memory binds", "memory binds")
like(text, "\nplan:propagate{m=128}", "twice the rows help")
text = judge(gemm{rings = 6, tile = {m = 128, n = 64, k = 64}, split = 2, warps = 4}, "a narrow tile")
like(text, "\nplan:propagate{n=%d+} would", "a wider one helps")
-- twice the depth only fits with a ring that is less deep
text, tried = judge(gemm{rings = 6, tile = {m = 128, n = 256, k = 16}, split = 2, warps = 4}, "a short tile")
like(text, "\nplan:propagate{k=%d+}", "a longer one helps")
local pair
for _, t in ipairs(tried) do pair = pair or t.change == "plan:propagate{k=64}; plan:buffers{a=4, b=4}" and t end
ok(pair and pair.gain > 0.02, "... the longest with fewer versions", pair and pair.gain)


-- A tile that has all of an axis is not made longer.
local square = mr.program("square", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m, n})
  local x = p:load("load_x", X)
  Y:store("store_y", p:task("square", function() return (x * x):to "bf16" end))
end)
local all_of_n = mr.plan(square{m = 4096, n = 100}:graph{tile = {m = 8, n = 100}}, mr.device "h200")
for _, t in ipairs(all_of_n.tasks) do all_of_n:append(t.name) end
all_of_n:fill_waits()
text, tried = judge(all_of_n, "all of an axis")
local longest, rows = 0, 0
for _, t in ipairs(tried) do
  longest = math.max(longest, tonumber(t.change:match "%f[%w]n=(%d+)") or 0)
  rows = math.max(rows, tonumber(t.change:match "%f[%w]m=(%d+)") or 0)
end
ok(longest < 116 and rows > 8, "no tile is longer than its axis by a step", longest)

text, tried = judge(attention(1, {m = 64, n = 128}), "one lane of four warps")
like(text, "^no unit binds: tensor is at work 5%d %% of the time, and c0 waits %d+ %% of the time for products of its own %(mma_qk%)",
  "it waits for its own products")
like(text, '\nplan:propagate{m=128}; plan:lane%("c0", {warps=8}%) would', "twice the rows and warps help")
tap.near(1 - tried[1].gain, seconds_of(attention(1)) / seconds_of(attention(1, {m = 64, n = 128})), 1e-12, "... by hand")
text, tried = judge(attention(1), "one lane of two warpgroups")
local two
for _, t in ipairs(tried) do two = two or t.change:find('plan:split("m", 2); plan:lane("c0"', 1, true) == 1 and t end
tap.near(two and 1 - two.gain, seconds_of(attention(2)) / seconds_of(attention(1)), 1e-12, "a lane of each is tried, by hand")
text = judge(attention(2), "one thing after the other")
like(text, '\nplan:buffers{softmax_2=2}; plan:move%("mma_pv", {at=%-1, after="mma_qk"}%)', "the products of an iteration under the softmax of the next")
text = judge(gemm{rings = 3, tile = {m = 128, n = 128, k = 64}, loads = "c0"}, "a lane that loads and computes")
like(text, '\nplan:move%(.-"load_[ab]".-, {', "loads elsewhere, or earlier, help")

---- what binds --------------------------------------------------------------------------------

like(gemm{rings = 4, k = 16384}:simulate():why(), "^tensor binds: it is at work %d+ %% of the time", "deep rings: products bind")
like(mr.load_plan "gemm_cooperative":simulate():why(), "^tensor binds: it is at work 9[89] %% of the time; " ..
  "power holds the clock at 1%.%d%d of 1%.[78]%d GHz %(product %d+ %%, l2 %d+ %% of it%)\n", "and power, with what takes it")
local serial = mr.plan(mr.examples.gemm{m = 1024, n = 1024, k = 1024}:graph{tile = {m = 128, n = 128, k = 64}}, mr.device "h200")
for _, t in ipairs(serial.tasks) do serial:append(t.name) end
serial:fill_waits()
serial:move("mma", {seu = "cuda"})
like(serial:simulate():why(), "^68 of 132 EUs idle, 52 %% of the machine, as there are 64 tiles; of the others, lane c0 binds: it is at work %d+ %% of the time, most of it with mma, while cuda is %d+ %%",
  "a product on CUDA cores: the lane that computes it binds")
local tl = mr.load_plan "attention_d128":simulate{events = 0}
like(tl:why(), "^no unit binds: tensor.*\nplan:", "a timeline without events")
is(tostring(tl:why()), tostring(tl:why()), "says the same again")
local _, all = tl:why()
-- print has a line for the second result, where it would stand behind the last word of the first.
local printed = {}
for _, x in ipairs{tl:why()} do printed[#printed + 1] = tostring(x) end
like(table.concat(printed, "\t"), "time\t\n%d+ changes tried, best first; ", "print shows both results in lines of their own")
like(require "millrace.inspect"(all, 80), ("^%d changes tried, best first; [^\n]*$"):format(#all), "what was tried is shown in a line")
like(all[#all], "  %-%- %d+%.%d %% more time$", "what takes more time says so")

-- A lane that waits half of its time for copies, whose slots it reads itself, is not at work, though what it did before is the cause.
for _, warps in ipairs{4, 8} do
  local plan = mr.plan(mr.examples.gemm{m = 4096, n = 4096, k = 4096}:graph{tile = {m = 128, n = 128, k = 64}}, mr.device "a100")
  plan:lane("c0", {warps = warps})
  for _, task in ipairs(plan.tasks) do plan:append(task.name) end
  plan:fill_waits()
  local tl = plan:simulate()
  local share = tostring(tl:summary()):match "waiting: mma for load_b (%d+) %% of c0"
  like(tl:why(), "^no unit binds: tensor is at work %d+ %% of the time, and c0 waits " .. share .. " %% of the time for load_b\n",
    ("a lane of %d warps that waits for copies does not bind; it waits as long as the summary says"):format(warps))
end

-- On an A100 with a slower L2, products of this tile take as long as what they read takes from there.
local both = mr.plan(mr.examples.gemm{m = 8192, n = 8192, k = 4096}:graph{tile = {m = 128, n = 192, k = 32}},
  mr.device("a100", {["memory.l2.rate"] = 2570}))
both:split("n", 2)
both:lane("p0", {warps = 4})
both:buffers{a = 6, b = 6}
both:grid{group = 8}
for _, load in ipairs{"load_a", "load_b"} do both:append(load, {lane = "p0"}) end
for i = 0, 1 do
  both:lane("c" .. i, {warps = 4})
  for _, task in ipairs{"mma.", "epilogue.", "store_c."} do both:append(task .. i, {lane = "c" .. i}) end
end
both:fill_waits()
tl = both:simulate()
ok(tl.utilization.memory > tl.utilization.tensor, "memory is at work a little longer than what the bound names",
  tl.utilization.memory .. " " .. tl.utilization.tensor)
like(tl:summary(), "ResMII [%d,]+ %(tensor%)", "the bound names one of two units that bind")
like(tl:why(), "^tensor and memory bind: each is at work 9?[%d to]+ %% of the time", "why() names both, first what the bound does")

---- loads that threads copy ------------------------------------------------------------------------

-- Rows of 1,026 bytes, copied by one warp: the summary and why() name the same lane.
local copied = mr.load_plan("gemm_by_threads", mr.examples.gemm{m = 2048, n = 2048, k = 513})
copied:lane("p0", {warps = 1, registers = false})
tl = copied:simulate()
like(tl:summary(), "ResMII [%d,]+ %(p0%)", "one warp that copies: the summary says that its lane binds")
text, tried = judge(copied, "one warp that copies")
like(text, "^lane p0 binds: it is at work 9%d %% of the time, copying load_a and load_b by threads, while memory is %d+ %%", "so does why()")
like(text, '\nplan:lane%("p0", {warps=4, registers=88}%) would take 8%d%.%d %% less time', "more warps help, with registers for what is in flight")
local another
for _, t in ipairs(tried) do another = another or t.text:find('plan:move("load_b", {lane="p1"})', 1, true) and t.gain end
ok(another and another > 0.5, "and so does another lane", another)

---- fewer tiles than EUs ------------------------------------------------------------------------------

local function few(k, rings)
  local plan = mr.plan(mr.examples.gemm{m = 128, n = 128, k = 16384}:graph{tile = {m = 64, n = 32, k = k}}, mr.device "h200")
  plan:buffers{a = rings, b = rings}
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  plan:fill_waits()
  return plan:simulate():why()
end
local share <const> = "\nEUs that idle could share the loop over k: one phase makes parts, another one combines them; or tensor:add$"
text = few(128, 9)
like(text, "^124 of 132 EUs idle, 94 %% of the machine, as there are 8 tiles; of the others, memory binds: each is at work %d+ %% of the time " ..
  "on what an EU can get of it, which is [1-9] %% of the device memory\n", "few tiles: EUs idle, and memory is that of an EU")
like(text, share, "parts of the sum would give them work")
text = few(256, 4)
like(text, "^124 of 132 EUs idle.-\nplan:propagate{n=16}[^\n]+ would take 2%d%.%d %% less time\n", "so do smaller tiles")
like(text, share, "  and parts")

---- several phases --------------------------------------------------------------------------------

-- What is said is of the phase that takes longest, and says so.
local two_phases = dofile((arg[0]:match "^(.*/)" or "./") .. "lib/two_phases.lua")
text = tostring((two_phases.by_hand():simulate():why()))
like(text, "^phase softmax, 57 %% of the time: 100 of 132 EUs idle, 76 %% of the machine, as there are 32 tiles; of the others, no unit binds: " ..
  "cuda is at work 51 %% of the time, and c1 waits %d+ %% of the time for [^\n]*load_s2?\n", "of two phases: the one that takes longest")
like(text, "\nEUs that idle could share the loop over n: ", "  and its loop")
text = tostring((two_phases.plan{m = 128, n = 128, k = 64}:simulate():why()))
like(text, "^phase product, 66 %% of the time: no unit binds: [^\n]* for a free slot, after mma\n" ..
  "phase softmax, 34 %% of the time: 100 of 132 EUs idle, 76 %% of the machine, as there are 32 tiles\n", "  and where EUs idle in the other")

---- mistakes ------------------------------------------------------------------------------------

local plan = gemm{rings = 1}
tl = plan:simulate()
plan:buffers{a = 2}
local fine, message = pcall(tl.why, tl)
ok(not fine and message:find("why: the plan has changed since", 1, true), "a plan that was changed", message)
plan = mr.load_plan "attention_serial"
plan:lane("c0", {registers = 144})
tl = plan:simulate()
fine, message = pcall(tl.why, tl)
ok(not fine and message:find("why: the plan is not legal: registers: lane 'c0' needs", 1, true), "a plan that never was legal", message)
fine, message = pcall(tl.why, 1)
ok(not fine and message:find("why: timeline expected", 1, true), "no timeline", message)
local traced = gemm{rings = 2}:compile{target = "host"}:trace{}
fine, message = pcall(traced.why, traced)
ok(not fine and message:find("why: this timeline is measured; ask the simulated one", 1, true), "a measured one", message)
tap.done_testing()
