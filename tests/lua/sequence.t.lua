-- Sequences of kernels: what is refused, plans, scripts, the arena, and results on the CPU.
local tap = dofile(os.getenv "MILLRACE_HOME" .. "/tests/lua/tap.lua")

local gemm = mr.examples.gemm

local fails = tap.fails_with

-- Two layers of two products; h is used twice.
local mlp = mr.sequence("mlp", function(s)
  local m, d, f = s:sizes("m", "d", "f")
  local x, w1, w2 = s:input("x", {m, d}), s:input("w1", {f, d}), s:input("w2", {d, f})
  local h, g, i = s:temp("h", {m, f}), s:temp("g", {m, d}), s:temp("i", {m, f})
  local y = s:output("y", {m, d})
  s:call("up", gemm{m = m, n = f, k = d}, {A = x, B = w1, C = h})
  s:call("down", gemm{m = m, n = d, k = f}, {A = h, B = w2, C = g})
  s:call("up2", gemm{m = m, n = f, k = d}, {A = g, B = w1, C = i})
  s:call("down2", gemm{m = m, n = d, k = f}, {A = i, B = w2, C = y})
end)

---- what a sequence says ------------------------------------------------------------------------

local function broken(body) return function() return mr.sequence("broken", body)() end end

fails("missing size", function() return mlp{m = 64, d = 64} end, "mlp: size 'f' is missing", "sequence.t.lua")
fails("unknown size", function() return mlp{m = 64, d = 64, f = 64, n = 1} end, "unknown size or option 'n' of 'mlp'")
fails("no call", broken(function() end), "sequence 'broken' has no call")
fails("unused", broken(function(s)
  local x, w, y = s:input("x", {64, 64}), s:input("w", {64, 64}), s:output("y", {64, 64})
  s:input("z", {64, 64})
  s:call("a", gemm{m = 64, n = 64, k = 64}, {A = x, B = w, C = y})
end), "no call uses 'z'")
fails("read before", broken(function(s)
  local w, h, y = s:input("w", {64, 64}), s:temp("h", {64, 64}), s:output("y", {64, 64})
  s:call("a", gemm{m = 64, n = 64, k = 64}, {A = h, B = w, C = y})
end), "'a' reads 'h', and no call before it has written it")
fails("half of it", broken(function(s)
  local w, h, y = s:input("w", {64, 64}), s:temp("h", {128, 64}), s:output("y", {128, 64})
  s:call("a", gemm{m = 64, n = 64, k = 64}, {A = w, B = w, C = h:rows(0, 64)})
  s:call("b", gemm{m = 128, n = 64, k = 64}, {A = h, B = w, C = y})
end), "'b' reads 'h', and no call before it has written all of that")
fails("output", broken(function(s)
  local w, y = s:input("w", {64, 64}), s:output("y", {128, 64})
  s:call("a", gemm{m = 64, n = 64, k = 64}, {A = w, B = w, C = y:rows(64, 64)})
end), "no call writes 'y'")

-- Programs that store only some of what they are given.
local function half(into)
  return mr.program("half", function(p)
    local m, n = p:axes("m", "n")
    local x = p:load("load", p:input("X", {m, n}, "f32"))
    p:output("Y", {m, p:axis("wide", n.size * 2)}, "f32"):store("store", p:task("work", function() return x * 2 end), {m, n * 2 + into})
  end){m = 8, n = 8}
end
local complete = mr.program("complete", function(p)
  local m, n = p:axes("m", "n")
  p:output("Y", {m, n}, "f32"):store("store", p:load("load", p:input("X", {m, n}, "f32")))
end)
local function halves(role, ...)
  local list = {...}
  return function(s)
    local x, t = s:input("x", {8, 8}, "f32"), s[role](s, "t", {16, 16}, "f32")
    for i, into in ipairs(list) do s:call("half" .. i, half(into), {X = x, Y = t:rows(8, 8)}) end
    s:call("first", complete{m = 8, n = 16}, {X = s:input("z", {8, 16}, "f32"), Y = t:rows(0, 8)})
    s:call("all", complete{m = 256, n = 1}, {X = t, Y = s:output("y", {256}, "f32")})
  end
end
local here = debug.getinfo(1, "l").currentline - 3      -- of "all"
fails("some elements", broken(halves("temp", 0)), ("sequence.t.lua:%d: call: 'all' reads element [8, 1] of 't' (counted from 0), and no "
  .. "call before it stores that: 'half1' (%s:%d) is given it, but its program stores only other elements"):format(here,
  debug.getinfo(1, "S").short_src, here - 2))
fails("others", broken(halves("temp", 1, 1)), "'all' reads element [8, 0] of 't' (counted from 0)", "'half2' (")
tap.ok(pcall(broken(halves("temp", 0, 1))), "both halves are all of it")
tap.ok(pcall(broken(halves("state", 0))), "a state has elements from the start")
fails("some elements of an output", broken(function(s)
  s:call("half", half(1), {X = s:input("x", {8, 8}, "f32"), Y = s:output("y", {8, 16}, "f32")})
end), "output: no call stores element [0, 0] of 'y' (counted from 0): 'half' (", "is given it, but its program stores only other elements")
local spread = mr.program("spread", function(p)
  local m, n = p:axes("m", "n")
  local x, at = p:load("load", p:input("X", {m, n}, "f32")), p:load("load_at", p:input("At", {m}, "i32"))
  p:output("Y", {m, n}, "f32"):store("store", x, {at, n})
end){m = 16, n = 16}
tap.ok(pcall(broken(function(s)
  local t = s:temp("t", {16, 16}, "f32")
  s:call("spread", spread, {X = s:input("x", {16, 16}, "f32"), At = s:input("at", {16}, "i32"), Y = t})
  s:call("all", complete{m = 16, n = 16}, {X = t, Y = s:output("y", {16, 16}, "f32")})
end)), "at indices of an input, which only a run shows")

fails("input written", broken(function(s)
  local w = s:input("w", {64, 64})
  s:call("a", gemm{m = 64, n = 64, k = 64}, {A = w, B = w, C = w})
end), "'a' would write 'w', which is an input; s:state is read and written by calls")
fails("alias", broken(function(s)
  local x, w = s:state("x", {64, 64}), s:input("w", {64, 64})
  s:call("a", gemm{m = 64, n = 64, k = 64}, {A = x, B = w, C = x})
end), "'A' and 'C' of 'a' are the same bytes of 'x'")
fails("elements", broken(function(s)
  local x, w, y = s:input("x", {64, 32}), s:input("w", {64, 64}), s:output("y", {64, 64})
  s:call("a", gemm{m = 64, n = 64, k = 64}, {A = x, B = w, C = y})
end), "'A' of 'a' has 4096 elements, 'x' {64, 32} has 2048")
fails("type", broken(function(s)
  local x, w, y = s:input("x", {64, 64}, "f16"), s:input("w", {64, 64}), s:output("y", {64, 64})
  s:call("a", gemm{m = 64, n = 64, k = 64}, {A = x, B = w, C = y})
end), "'A' of 'a' is of bf16, 'x' of f16")
fails("name", broken(function(s)
  local x, w = s:input("x", {64, 64}), s:input("w", {64, 64})
  s:call("a", gemm{m = 64, n = 64, k = 64}, {A = x, B = w, D = s:output("y", {64, 64})})
end), "program 'gemm' of 'a' has no input or output 'D'")
fails("not given", broken(function(s)
  s:call("a", gemm{m = 64, n = 64, k = 64}, {A = s:input("x", {64, 64}), C = s:output("y", {64, 64})})
end), "'B' of 'a' is not given: {B=...}")
fails("twice", broken(function(s)
  s:input("x", {64})
  s:input("x", {64})
end), "there is a tensor 'x' already")
fails("no sizes", broken(function(s) s:call("a", gemm, {}) end), "'a' is given a program without sizes; write gemm{...}")
fails("rows", broken(function(s) s:input("x", {64, 2}):rows(60, 5) end), "rows 60 to 64 of 'x', which has 64")
fails("of another", broken(function(s)
  local other
  pcall(mr.sequence("other", function(o) other = o:input("x", {64, 64}) end))
  s:call("a", gemm{m = 64, n = 64, k = 64}, {A = other, B = other, C = other})
end), "'x' belongs to another sequence")

---- a plan --------------------------------------------------------------------------------------

local seq = mlp{m = 64, d = 32, f = 64}
local sp = seq:plan("h200", {trials = 60, measure = false})
local function problems()
  local ok, list = sp:check()
  return ok, list
end

tap.ok(problems(), "the plan is legal")
tap.is(#sp.calls, 4, "a call each")
tap.ok(sp.calls[2].early and not sp.calls[1].early, "all but the first are launched early")
tap.is(sp.arena_bytes, 64 * 64 * 2 + 64 * 32 * 2, "i takes the bytes of h")

local tl = sp:simulate()
tap.is(#tl.kernels, 4, "kernels of the timeline")
local gaps, busy = 0, 0
for i, k in ipairs(tl.kernels) do
  gaps, busy = gaps + k.gap, busy + k.seconds
  tap.ok(k.ends > k.begins and (i == 1 or k.begins >= tl.kernels[i - 1].ends), k.name .. " comes after the one before")
end
tap.ok(math.abs(gaps + busy - tl.seconds) < 1e-12 and math.abs(gaps - tl.idle) < 1e-12, "gaps and kernels are all of the time")
tap.ok(tostring(tl):find "^mlp on h200, predicted: ", "as a chart")

local cold = sp:plan_of "up2":simulate()
tap.ok(tl.kernels[3].timeline.seconds < cold.seconds, "what the kernel before has stored is in L2")
fails("warm", function() return sp:plan_of "down":simulate{warm = {"X"}} end, "warm: program 'gemm' has no tensor 'X'")

-- One after the other without streams; down2 on another stream needs a wait.
sp:launch("down2", {stream = 1, early = false})
local ok, list = problems()
tap.ok(not ok and list[1].code == "order" and list[1].message:find "'down2' reads 'i', which 'up2' writes, and nothing orders them",
  "a missing dependency", list[1] and list[1].message)
tap.ok(list[1].location:find "sequence.t.lua:%d+$" and list[1].other_location:find "sequence.t.lua:%d+$"
  and list[1].location ~= list[1].other_location, "both statements")
sp:launch("down2", {stream = 1, after = {"up2"}})
tap.ok(problems(), "with the wait")
sp:launch("down2", {stream = 1, early = true})
ok, list = problems()
tap.ok(not ok and list[1].code == "early", "early and a wait for another stream")
sp:launch("down2", {stream = 0, early = true, after = {}})
sp:order{"up", "down", "down2", "up2"}
ok, list = problems()
tap.ok(not ok and list[1].code == "order" and list[1].message:find "in the sequence 'up2' comes first", "the wrong order",
  list[1] and list[1].message)
sp:order{"up", "down", "up2", "down2"}
tap.ok(problems(), "the right order")

-- The arena.
local offsets = sp.offsets
sp:arena({h = 0, g = 4096, i = 16384})
ok, list = problems()
tap.ok(not ok and #list == 1 and list[1].code == "arena" and list[1].message:find "'h', bytes 0 to 8192 of the arena, and 'g'"
  and list[1].tensor == "h" and list[1].other_tensor == "g", "temporaries that are in use at once", list[1] and list[1].message)
sp:arena({h = 0, g = 8192, i = 0}, {bytes = 8192})
ok, list = problems()
tap.ok(not ok and list[1].code == "bounds" and list[1].message:find "'g' ends at byte 12288 of an arena of 8192", "outside")
fails("alignment", function() sp:arena{h = 8} end, "'h' would begin at byte 8; a multiple of 256 is needed")
fails("no temporary", function() sp:arena{x = 0} end, "'x' is no temporary, but an input")
sp:arena()
tap.ok(problems() and sp.offsets.h == offsets.h and sp.offsets.g == offsets.g, "placed again")

fails("plan of others", function() sp:use("up", mr.plan(mr.examples.gemm{m = 128, n = 64, k = 32}:graph{tile = {}}, "h200")) end,
  "use: the plan is for other sizes than those of call 'up'")
fails("other device", function() sp:use("up", mr.plan(seq:program "up":graph{tile = {}}, "a100")) end, "use: the plan is for device 'a100'")
fails("no such call", function() sp:use("u", sp:plan_of "up") end, "unknown call 'u'")
local empty = mr.sequence_plan(seq, "h200")
ok, list = empty:check()
tap.ok(not ok and #list == 4 and list[1].code == "no_plan", "without plans")
fails("simulate", function() return empty:simulate() end, "the plan of the sequence is not legal (4 problems; sp:check() lists them): no_plan")

---- what is ready -------------------------------------------------------------------------------

local down = sp:plan_of "down2"
tap.ok(down:script():find('plan:launch{ready={"B"}', 1, true) ~= nil, "weights are ready", down:script())
down:launch{ready = {"A", "B"}}
sp:use("down2", down)
ok, list = problems()
tap.ok(not ok and #list == 1 and list[1].code == "ready" and list[1].message:find "A is ready .* that is 'i', which 'up2' writes"
  and list[1].location and list[1].other_location, "what a call writes is not", list[1] and list[1].message)
local late = mr.sequence("late", function(s)
  local x, w, y = s:state("x", {64, 64}), s:input("w", {64, 64}), s:output("y", {2, 64, 64})
  s:call("a", gemm{m = 64, n = 64, k = 64}, {A = w, B = w, C = y:rows(0, 1)})
  s:call("b", gemm{m = 64, n = 64, k = 64}, {A = x, B = w, C = y:rows(1, 1)})
  s:call("c", gemm{m = 64, n = 64, k = 64}, {A = w, B = w, C = x})
end)():plan("h200", {trials = 60, measure = false})
for _, name in ipairs{"a", "b", "c"} do late:launch(name, {stream = 0, early = name ~= "a", after = {}}) end
tap.ok(late:check(), "a state that is written behind a call that reads it")
local reads = late:plan_of "b"
reads:launch{ready = {"A"}}
late:use("b", reads)
local fine, found = late:check()
tap.ok(not fine and #found == 1 and found[1].code == "ready" and found[1].other == "c", "  is not ready, either", tostring(found))
late:use("b", mr.plan(late.sequence:program "b":graph{tile = {m = 64, n = 64, k = 32}}, mr.device "h200"))
fine, found = late:check()
tap.ok(not fine and #found == 1 and found[1].code == "kernel" and found[1].call == "b", "a kernel's plan that is not legal", tostring(found))
sp:launch("down2", {early = false})
tap.ok(problems(), "but for a kernel that begins when those in front have ended")
down:launch{ready = {"B"}}
sp:use("down2", down)
sp:launch("down2", {early = true})
tap.ok(problems(), "legal again")

---- programs of one name -------------------------------------------------------------------------

-- Their plans have equal scripts; their kernels are not the same.
local function named_same(f)
  return mr.program("same", function(p)
    local m, n = p:axes("m", "n")
    local x = p:load("load", p:input("X", {m, n}, "f32"))
    p:output("Y", {m, n}, "f32"):store("store", p:task("work", function() return f(x) end))
  end){m = 16, n = 16}
end
local twins = mr.sequence("twins", function(s)
  local x, t, y = s:input("x", {16, 16}, "f32"), s:temp("t", {16, 16}, "f32"), s:output("y", {16, 16}, "f32")
  s:call("a", named_same(function(v) return v * 2 end), {X = x, Y = t})
  s:call("b", named_same(function(v) return v + 5 end), {X = t, Y = y})
end)()
local two = twins:plan("h200", {trials = 20, measure = false})
local twice = two:compile{target = "host"}:check{}
tap.ok(twice.ok, "each call runs its own program", tostring(twice))
tap.is(select(2, two:script():gsub("local plan = ", "")), 2, "and has a plan of its own in the script")
fails("use of the other one", function() two:use("b", two:plan_of "a") end, "use: the plan is for another program of the name 'same'")

---- what stays as it was --------------------------------------------------------------------------

local before_edit = two:script()
local fixed, line, other = two:compile{target = "host"}, two:simulate(), two:copy()
two:launch("b", {stream = 1, early = false, after = {}})
two:arena({t = 1 << 30}, {bytes = 256})
tap.ok(not two:check() and fixed.plan:check() and line.plan:check() and other:check(), "edits are of one plan")
for seed = 1, 6 do tap.ok(fixed:check{seed = seed}.ok, "kernels run by the plan they were compiled of, seed " .. seed) end
tap.is(fixed.plan:script(), before_edit, "which they have")
tap.is(other:script(), before_edit, "as a copy has")
fails("launch of a fixed plan", function() fixed.plan:launch("b", {stream = 2}) end, "launch: this plan is that of compiled kernels")
fails("arena of one", function() fixed.plan:arena() end, "arena: this plan")
fails("order of one", function() fixed.plan:order{"a", "b"} end, "order: this plan")
fails("use of one", function() line.plan:use("a", other:plan_of "a") end, "use: this plan")
other:launch("b", {stream = 2, early = false, after = {"a"}})
tap.ok(other:check() and other:script() ~= before_edit, "a copy can be edited")

local kept
local complete = mr.sequence("complete", function(s)
  kept = s
  s:call("up", gemm{m = 64, n = 64, k = 32}, {A = s:input("x", {64, 32}), B = s:input("w", {64, 32}), C = s:output("y", {64, 64})})
end)()
fails("tensor of a complete one", function() kept:temp("z", {4}) end, "temp: sequence 'complete' is complete")
fails("call of one", function() kept:call("again", gemm{m = 64, n = 64, k = 32}, {}) end, "call: sequence 'complete' is complete")
tap.is(#complete.tensors, 3, "nothing was added")

---- scripts -------------------------------------------------------------------------------------

local path = os.tmpname()
os.remove(path)
sp:save(path)
fails("save", function() sp:save(path) end, "exists; sp:save(")
local again = mr.load_plan(path, seq)
tap.is(again:script(), sp:script(), "the script makes the plan again")
tap.is(mr.load_plan(path, mlp):script(), sp:script(), "and with the sizes of the script")
fails("elsewhere", function() return mr.load_plan(path) end, "this plan is for program 'mlp'")
os.remove(path)

-- Options that no text gives: as of a program, the plan is loaded for the sequence with sizes.
local chain = mr.sequence("chain", function(s)
  local m, f, prog, more = s:sizes "m", s.f, s.prog, s.more or {}
  local own = mr.program("own", function(p)
    local a, b = p:axes("a", "b")
    local x = p:load("load", p:input("X", {a, b}, "f32"))
    p:output("Y", {a, b}, "f32"):store("store", p:task("work", function() return f and f(x) or x + (more.add or 1) end))
  end)
  local x, t, y = s:input("x", {m, 16}, "f32"), s:temp("t", {m, 16}, "f32"), s:output("y", {m, 16}, "f32")
  s:call("first", own{a = m, b = 16}, {X = x, Y = t})
  s:call("second", (prog or own){a = m, b = 16}, {X = t, Y = y})
end)
local function negate(v) return -v end
local minus = mr.program("minus", function(p)
  local a, b = p:axes("a", "b")
  local x = p:load("load", p:input("X", {a, b}, "f32"))
  p:output("Y", {a, b}, "f32"):store("store", p:task("work", function() return -x end))
end)
for title, given in pairs{f = {m = 16, f = negate}, prog = {m = 16, prog = minus}, more = {m = 16, more = {add = 2, of = {negate}}}} do
  local bound = chain(given)
  local of = bound:plan("h200", {trials = 20, measure = false})
  local file <close> = setmetatable({path = os.tmpname()}, {__close = function(t) os.remove(t.path) end})
  of:save(file.path, {overwrite = true})
  tap.ok(of:script():find('local seq = mr.bound(..., "chain")  -- with sizes and options: no text gives ' .. title .. "\n", 1, true) ~= nil,
    "a script says what is not in it: " .. title, of:script())
  tap.is(mr.load_plan(file.path, bound):script(), of:script(), "and is loaded for the sequence with sizes: " .. title)
  fails("not for one without: " .. title, function() return mr.load_plan(file.path, chain) end,
    "the sizes of sequence 'chain' are not in this plan: give mr.load_plan the sequence with sizes")
end
local with_table = chain{m = 16, more = {add = 2, of = {1, "x", {true}}}}
local of_table = with_table:plan("h200", {trials = 20, measure = false})
path = os.tmpname()
of_table:save(path, {overwrite = true})
tap.is(mr.load_plan(path, chain):script(), of_table:script(), "a table of numbers and texts is in the script")
os.remove(path)

---- results -------------------------------------------------------------------------------------

local k = sp:compile{target = "host"}
local checked = k:check{seed = 5}
tap.ok(checked.ok and #checked.calls == 4, "right on the CPU", tostring(checked))
local inputs = seq:inputs{seed = 2}
local _, relative = k:run(inputs).y:max_error(seq:reference(inputs).y)
tap.ok(relative < 1e-2, "as the reference", relative)
fails("input", function() return k:run{x = inputs.x} end, "input 'w1' is missing")

local measured = k:trace{seed = 5}
tap.ok(measured.measured and #measured.kernels == 4, "traced on the CPU")
local last = 0
for i, x in ipairs(measured.kernels) do
  tap.ok(x.name == sp.calls[i].name and x.begins == last and x.ends > x.begins and x.gap == 0, x.name .. " follows the one before")
  tap.ok(x.timeline.measured and math.abs(x.seconds - x.timeline.cycles * 1e-9) < 1e-15, "with its own timeline")
  last = x.ends
end
tap.is(measured.seconds, last, "all of it")
fails("inputs of a trace", function() k:trace{inputs = {x = inputs.x}} end, "run: input 'w1' is missing")

-- A state that is written in part, rows of tensors, and two streams.
local parts = mr.sequence("parts", function(s)
  local x, w, c = s:input("x", {64, 32}), s:input("w", {2, 32, 32}), s:state("c", {3, 64, 32})
  local y = s:output("y", {64, 32})
  s:call("left", gemm{m = 64, n = 32, k = 32}, {A = x, B = w:rows(0, 1), C = c:rows(1, 1)})
  s:call("right", gemm{m = 64, n = 32, k = 32}, {A = x, B = w:rows(1, 1), C = c:rows(0, 1)})
  s:call("both", gemm{m = 64, n = 32, k = 32}, {A = c:rows(1, 1), B = w:rows(1, 1), C = y})
end)()
local pp = parts:plan("h200", {trials = 60, measure = false})
pp:launch("right", {stream = 3, early = false})
tap.ok(pp:check(), "independent calls on two streams")
tap.ok(parts:plan("h200", {trials = 60, measure = false}):check(), "with streams that the plan chooses")
local kp = pp:compile{target = "host"}
for seed = 1, 4 do tap.ok(kp:check{seed = seed}.ok, "right in any order, seed " .. seed) end
local given = parts:inputs{seed = 7}
local got, want = kp:run(given), parts:reference(given)
tap.ok(select(2, got.c:max_error(want.c)) < 1e-2, "the state")
tap.ok(got.c:get(3, 5, 7) == given.c:get(3, 5, 7), "what no call writes stays")
tap.ok(select(2, got.y:max_error(want.y)) < 1e-2, "the output")


-- Further phases of a kernel load inputs at once unless its plan says what is ready: a statement that leaves one out would cost a launch.
local tiled = dofile((arg[0]:match "^(.*/)" or "./") .. "../operators/tiled_sum_gemm.lua")
tiled = (tiled[1] or tiled).program
local phased = mr.sequence("phased", function(s)
  local x, w, a, y = s:input("x", {256, 512}), s:input("w", {512, 512}), s:temp("a", {256, 512}), s:output("y", {256, 1024}, "f32")
  s:call("first", gemm{m = 256, n = 512, k = 512}, {A = x, B = w, C = a})
  s:call("second", tiled{m = 256, n = 1024, k = 512}, {A = a, B = s:input("v", {1024, 512}), C = y})
end){}
local plan = phased:plan("h200", {trials = 40, seconds = 100, measure = false}):plan_of "second"
tap.ok(not plan:script():find("launch", 1, true), "a plan of several phases for which a part is ready", plan:script())
tap.done_testing()
