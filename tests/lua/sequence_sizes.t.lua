-- Sequences whose sizes are left to the launch: one set of kernels is compared with the reference at many sizes; predictions, scripts and
-- texts; what is refused.
local tap = dofile(os.getenv "MILLRACE_HOME" .. "/tests/lua/tap.lua")
local any, gemm = mr.any, mr.examples.gemm

local fails = tap.fails_with

-- Each call with a plan in its program's order.
local function planned(seq, tiles)
  local sp = mr.sequence_plan(seq, "h200")
  for _, c in ipairs(sp.calls) do
    local plan = mr.plan(seq:program(c.name):graph{tile = tiles and tiles[c.name] or {m = 64, n = 32, k = 32}}, "h200")
    for _, t in ipairs(plan.tasks) do
      if not t.entry then pcall(plan.append, plan, t.name) end
    end
    plan:fill_waits()
    sp:use(c.name, plan)
  end
  sp:arena()
  local good, problems = sp:check()
  tap.ok(good, seq.name .. ": the plan is legal", tostring(problems))
  return sp
end

local function text_of(at)
  local list = {}
  for name, n in pairs(at) do list[#list + 1] = ("%s=%d"):format(name, n) end
  table.sort(list)
  return table.concat(list, " ")
end

local function right(sp, list)
  local k = sp:compile{target = "host"}
  for seed, at in ipairs(list) do
    local ran, found = pcall(k.check, k, {sizes = at, seed = seed, race = seed % 2 == 1})
    tap.ok(ran and found.ok, ("%s is right at %s"):format(sp.sequence.name, text_of(at)), tostring(found))
  end
  return k
end

---- one size ------------------------------------------------------------------------------------

local mlp = mr.sequence("mlp", function(s)
  local m, d, f = s:sizes("m", "d", "f")
  local x, w1, w2 = s:input("x", {m, d}), s:input("w1", {f, d}), s:input("w2", {d, f})
  local h, y = s:temp("h", {m, f}), s:output("y", {m, d})
  s:call("up", gemm{m = m, n = f, k = d, activation = "silu"}, {A = x, B = w1, C = h})
  s:call("down", gemm{m = m, n = d, k = f}, {A = h, B = w2, C = y})
end)
local seq = mlp{m = any{max = 200, multiple = 8, typical = {16, 64}}, d = 32, f = 64}
local sp = planned(seq)
local k = right(sp, {{m = 8}, {m = 16}, {m = 64}, {m = 72}, {m = 128}, {m = 192}, {m = 200}})
tap.is(sp.arena_bytes, 200 * 64 * 2 // 256 * 256 + 256 * (200 * 64 * 2 % 256 > 0 and 1 or 0), "the arena is for the largest size")
tap.is(tostring(seq):match "^[^\n]*\n[^\n]*", "sequence mlp, any m up to 200 in steps of 8\n  input   x bf16 {m, 32}", "a sequence says its sizes")
tap.is(tostring(k), "kernels of sequence mlp for the CPU, any m up to 200 in steps of 8: up, down", "kernels say for which sizes they are")
tap.is(seq:program "up".axes.m, 200, "programs are for the largest size")

local inputs = seq:at_sizes{m = 40}:inputs{seed = 3}
local out = k:run(inputs)
tap.is(out.y:shape()[1], 40, "the arrays' shapes say the size")
tap.ok(select(2, out.y:max_error(seq:reference(inputs).y)) < 1e-2, "the reference takes the size from the arrays")
tap.ok(select(2, k:run(inputs, {m = 40}).y:max_error(out.y)) == 0, "the size may be given, too")
tap.is(k:run().y:shape()[1], 200, "without arrays it is the largest one")
tap.is(seq:at_sizes{m = 40}, seq:at_sizes{m = 40}, "the sequence at a size is made once")
tap.is(seq:at_sizes{m = 40}.tensors[1].shape[1], 40, "it has the shapes of that size")
local fixed = mlp{m = 40, d = 32, f = 64}
tap.is(fixed:at_sizes{}, fixed, "a sequence that leaves nothing to the launch is itself at its sizes")
tap.is(tostring(mlp{m = any{max = 64, multiple = 64}, d = 32, f = 64}):match "^[^\n]*", "sequence mlp", "a size of one value is a number")

tap.ok(sp:simulate().seconds == sp:simulate{m = 200}.seconds, "a prediction is for the largest size")
local large = planned(mlp{m = any{max = 65536, multiple = 64}, d = 128, f = 512}, {up = {m = 64, n = 64, k = 64}, down = {m = 64, n = 64, k = 64}})
local times = {}
for i, m in ipairs{64, 4096, 65536} do times[i] = large:simulate{sizes = {m = m}} end
tap.ok(times[1].seconds < times[2].seconds and times[2].seconds < times[3].seconds, "or for others, which take their time")
tap.is(times[2].flops, 2 * 2 * 4096 * 128 * 512, "of which it has the operations")
tap.is(times[2].plan.sequence.tensors[1].shape[1], 4096, "a timeline says its sizes")
tap.is(times[2].plan:script(), large:script(), "the script of its plan is that of the plan for all sizes")

tap.ok(k:trace{seed = 1}.measured, "a trace is of the largest size")

---- texts ---------------------------------------------------------------------------------------

local path = os.tmpname()
sp:save(path, {overwrite = true})
tap.is(mr.load_plan(path, mlp):script(), sp:script(), "a script makes the same plan")
tap.is(mr.load_plan(path, seq):script(), sp:script(), "also for the bound sequence")
os.remove(path)
tap.ok(sp:json():find('"m": "mr.any{', 1, true) or sp:json():find("mr.any", 1, true), "JSON has the sizes that are left to the launch", sp:json():sub(1, 300))

---- several sizes, views, rows, states, streams -------------------------------------------------

-- Rows of b sequences of m tokens as one axis; parts of a state and of a temporary by rows that depend on m.
local parts = mr.sequence("parts", function(s)
  local b, m = s:sizes("b", "m")
  local x, w, c = s:input("x", {b, m, 32}), s:input("w", {3, 32, 32}), s:state("c", {2 * b * m, 32})
  local h, y = s:temp("h", {2, b * m, 32}), s:output("y", {b * m, 32})
  s:call("left", gemm{m = b * m, n = 32, k = 32}, {A = x, B = w:rows(0, 1), C = h:rows(0, 1)})
  s:call("right", gemm{m = b * m, n = 32, k = 32}, {A = x, B = w:rows(1, 1), C = h:rows(1, 1)})
  s:call("keep", gemm{m = b * m, n = 32, k = 32}, {A = h:rows(1, 1), B = w:rows(2, 1), C = c:rows(b * m, b * m)})
  s:call("last", gemm{m = 2 * b * m, n = 32, k = 32}, {A = h, B = w:rows(2, 1), C = s:temp("g", {2 * b * m, 32})})
  s:call("sum", gemm{m = b * m, n = 32, k = 32, residual = true}, {A = h:rows(0, 1), B = w:rows(1, 1), R = c:rows(b * m, b * m), C = y})
end)
local both = parts{b = any{max = 3, typical = {2}}, m = any{max = 72, multiple = 8}}
local psp = planned(both)
psp:launch("right", {stream = 1, early = false})
psp:launch("keep", {stream = 1, early = true})
psp:launch("last", {stream = 0, early = false, after = {"right"}})
psp:launch("sum", {stream = 0, early = false, after = {"keep"}})
psp:arena()
tap.ok(psp:check(), "a plan with two streams is legal", tostring(select(2, psp:check())))
right(psp, {{b = 1, m = 8}, {b = 3, m = 72}, {b = 2, m = 40}, {b = 1, m = 72}, {b = 3, m = 8}, {b = 3}, {m = 64}})
tap.is(tostring(both):match "\n[^\n]*temp    h[^\n]*", "\n  temp    h bf16 {2, b * m, 32}", "shapes are products of sizes")

-- Causal attention: two axes of a program have one size, and are one.
local attend = mr.sequence("attend", function(s)
  local m = s:sizes("m")
  local q, k, v, o = s:input("q", {1, 2, m, 64}), s:input("k", {1, 2, m, 64}), s:input("v", {1, 2, m, 64}), s:output("o", {1, m, 2, 64})
  s:call("attend", mr.examples.flash_attention{b = 1, h = 2, m = m, n = m, d = 64, causal = true, o = "bmhd"}, {Q = q, K = k, V = v, O = o})
end){m = any{max = 160}}
right(planned(attend, {attend = {m = 64, n = 32}}), {{m = 1}, {m = 64}, {m = 77}, {m = 160}})

---- the shipped layers --------------------------------------------------------------------------

local small = {d = 256, f = 512, hq = 4, hkv = 2, hd = 64}
local function layer(name, o)
  local values = {}
  for _, from in ipairs{small, o} do
    for key, x in pairs(from) do values[key] = x end
  end
  return mr.examples[name](values)
end
local prefill = layer("llama3_layer", {b = 2, m = any{max = 128, multiple = 8}, nmax = 192, block = 128})
tap.is(tostring(prefill):match "temp    y1s[^\n]*", "temp    y1s f32 {2 * m, 2}", "llama3_layer leaves m to the launch")
local decode = layer("llama3_decode", {b = any{max = 16}, nmax = 256, squares = "store", splits = 4})
tap.is(tostring(decode):match "state   k[^\n]*", "state   k bf16 {b, 2, 256, 64}", "llama3_decode leaves b to the launch")

---- what is refused -----------------------------------------------------------------------------

fails("too large", function() return k:check{m = 208} end, "check: size 'm' is 208; the sequence is for m up to 200 in steps of 8",
  "sequence_sizes.t.lua")
fails("no multiple", function() return k:run(nil, {m = 12}) end, "run: size 'm' is 12; the sequence is for m up to 200 in steps of 8")
fails("no integer", function() return sp:simulate{m = "x"} end, "simulate: size 'm' is 'x'")
fails("another name", function() return k:check{sizes = {n = 8}} end, "check: sequence 'mlp' leaves no size 'n' to the launch")
fails("another option", function() return k:check{n = 8} end, "unknown option 'n'")
fails("nothing is left", function() return fixed:at_sizes{m = 8} end, "at_sizes: the sequence leaves no size to the launch, and was given 'm'")
fails("arrays", function() return k:run(inputs, {m = 48}) end, "run: input 'x' is bf16 {40, 32}, the sequence wants bf16 {48, 32}")
fails("like", function() return mlp{m = any{max = 64}, d = any{like = "m"}, f = 64} end, "size 'd' of sequence 'mlp' would be that of 'm'")

local function refused(what, body, ...) fails(what, function() return mr.sequence("broken", body){m = any{max = 64}} end, ...) end
local function one(s, m, o, shape)
  local x, w, y = s:input("x", {m, 32}), s:input("w", {32, 32}), s:output("y", shape or {m, 32})
  o.m, o.n, o.k = m, 32, 32
  s:call("a", gemm(o), {A = x, B = w, C = y, S = o.squares and s:output("s", {m, 32 // o.squares}, "f32") or nil})
end
refused("a bound program", function(s) s:call("a", gemm{m = any{max = 64}, n = 32, k = 32}, {}) end,
  "the program of 'a' has sizes that are known at launch; give it the numbers that s:sizes returns", "broken{m = mr.any{...}}")
refused("a ratio", function(s)
  local m = s:sizes("m")
  s:temp("t", {(m + 7) // 8, 8})
  one(s, m, {})
end, "no call uses 't'")
refused("a comparison", function(s)
  local m = s:sizes("m")
  one(s, m, {activation = m > 8 and "silu" or nil})
end, "call: option 'activation' of 'a' is", "at m=1, and 'silu' at m=64", "sequence_sizes.t.lua")
refused("another shape", function(s)
  local m = s:sizes("m")
  local x, w, y = s:input("x", {math.max(m, 8), 32}), s:input("w", {32, 32}), s:output("y", {math.max(m, 8), 32})
  s:call("a", gemm{m = math.max(m, 8), n = 32, k = 32}, {A = x, B = w, C = y})
end, "size 1 of 'x' is 8 at m=1, and 64 at m=64: no sum of products", "sequence_sizes.t.lua")
refused("between", function(s)
  local m = s:sizes("m")
  one(s, m == 32 and 34 or m, {})
end, "size 1 of 'x' is 1 at m=1, and 64 at m=64, and 34 at m=32: no sum of products")
fails("between, where it is run", function()
  return mr.sequence("broken", function(s)
    local m = s:sizes("m")
    one(s, m == 40 and 41 or m, {})
  end){m = any{max = 64}}:at_sizes{m = 40}
end, "at_sizes: at m=40 size 1 of 'x' is not what follows from the sizes at which bind has run the function")
fails("a dependence", function()
  return mr.sequence("broken", function(s)
    local m = s:sizes("m")
    local x, w, c = s:input("x", {m, 32}), s:input("w", {32, 32}), s:state("c", {64, 32})
    s:call("a", gemm{m = m, n = 32, k = 32}, {A = x, B = w, C = c:rows(0, m)})
    s:call("b", gemm{m = 8, n = 32, k = 32}, {A = s:input("z", {8, 32}), B = w, C = c:rows(8, 8)})
  end){m = any{max = 64, multiple = 8}}
end, "bind: calls 'a' and 'b' depend on each other at m=64, and not at all sizes that are left to the launch")
fails("an address", function()
  return mr.sequence("broken", function(s)
    local m = s:sizes("m")
    local x, w, c = s:input("x", {m, 32}), s:input("w", {4, 32}), s:state("c", {2 * m + 2, 4})
    s:call("a", gemm{m = m, n = 4, k = 32}, {A = x, B = w, C = c:rows(m + 1, m)})
  end){m = any{max = 129}}
end, "bind: 'C' of call 'a' would begin at element 4 * m + 4 of 'c', which is not at all sizes at a multiple of 16 bytes")
refused("another call", function(s)
  local m = s:sizes("m")
  one(s, m, {})
  if m > 8 then s:call("b", gemm{m = m, n = 32, k = 32}, {A = s:input("x2", {m, 32}), B = s:input("w2", {32, 32}), C = s:output("y2", {m, 32})}) end
end, "'x2' is not there at m=1; a sequence is the same for all sizes that are left to the launch")
refused("an option", function(s)
  local m = s:sizes("m")
  local x, w = s:input("x", {64, 32}), s:input("w", {64, 32})
  s:call("a", gemm{m = 64, n = 64, k = 32, squares = m}, {A = x, B = w, C = s:output("y", {64, 64}), S = s:output("s", {64, 64 // m}, "f32")})
end, "size 2 of 's' is 64 at m=1, and 1 at m=64")
refused("too many sizes", function(s) one(s, (s:sizes("m", "a", "b", "c", "d")), {}) end, "size 'a' is missing")
fails("five sizes", function()
  return mr.sequence("broken", function(s) one(s, (s:sizes("m", "a", "b", "c", "d")), {}) end){m = any{max = 8}, a = any{max = 8}, b = any{max = 8},
    c = any{max = 8}, d = any{max = 8}}
end, "bind: sequence 'broken' has 5 sizes that are left to the launch, 4 at most")
fails("a step that is left out", function()
  return mr.sequence("broken", function(s)
    local m = s:sizes("m")
    local w, h, y = s:input("w", {32, 32}), s:temp("h", {64, 32}), s:output("y", {64, 32})
    s:call("a", gemm{m = 64, n = 32, k = 32}, {A = s:input("x", {64, 32}), B = w, C = h})
    s:call("b", gemm{m = m, n = 32, k = 32}, {A = h:rows(0, m), B = w, C = y:rows(0, m)})
  end){m = any{max = 64}}
end, "no call writes all of 'y'")


-- Rows that move past those of another call: apart at m=4, 32 and 64, at which bind runs the function, and the same ones at m=12.
local passing = mr.sequence("passing", function(s)
  local m = s:sizes("m")
  local x, w, c = s:input("x", {8, 32}), s:input("w", {32, 32}), s:state("c", {160, 32})
  s:call("write", gemm{m = 8, n = 32, k = 32}, {A = x, B = w, C = c:rows(2 * m, 8)})
  s:call("read", gemm{m = 8, n = 32, k = 32}, {A = c:rows(24, 8), B = w, C = s:output("y", {8, 32})})
end)
local good, why = pcall(passing.bind, passing, {m = any{max = 64, multiple = 4}})
tap.ok(not good and why:find("bind: 'C' of call 'write' and 'A' of call 'read' pass each other in 'c' between m=4 and m=64", 1, true),
  "rows that pass each other are refused", why)
good, why = pcall(passing.bind, passing, {m = any{max = 8, multiple = 4}})
tap.ok(good, "where they do not, they are taken", why)
tap.done_testing()
