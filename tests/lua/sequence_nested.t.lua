-- Sequences that call sequences: a model of layers. The inner calls and temporaries get names of their own, and the result is
-- that of the same calls written out.
local mr = require "millrace"
local dir = arg[0]:match "^(.*/)" or "./"
local tap = dofile(dir .. "tap.lua")
local gemm = mr.examples.gemm

local fails = tap.fails_with

-- y = x + the rows of a state, which gets what is between two products: one of everything that a call can be given
local add = mr.program("add", function(p)
  local m, n = p:axes("m", "n")
  local a, b = p:load(p:input("A", {m, n})), p:load(p:input("B", {m, n}))
  p:output("C", {m, n}):store(p:task("add", function() return (a + b):to "bf16" end))
end)
local layer = mr.sequence("layer", function(s)
  local m, d, f = s:sizes("m", "d", "f")
  local x, w, last, y = s:input("x", {m, d}), s:input("w", {2, f, d}), s:state("last", {m, d}), s:output("y", {m, d})
  local h, g = s:temp("h", {m, f}), s:temp("g", {m, d})
  s:call("up", gemm{m = m, n = f, k = d}, {A = x, B = w:rows(0, 1), C = h})
  s:call("down", gemm{m = m, n = d, k = f, b = "kn"}, {A = h, B = w:rows(1, 1), C = g})
  s:call("add", add{m = m, n = d}, {A = g, B = last, C = y})
  s:call("keep", gemm{m = m, n = d, k = d}, {A = y, B = s:input("keep", {d, d}), C = last})
end)
local model = mr.sequence("model", function(s)
  local m, d, f, layers = s:sizes("m", "d", "f", "layers")
  local w, keep, last = s:input("w", {layers, 2, f, d}), s:input("keep", {d, d}), s:state("last", {layers * m, d})
  local from, y = s:input("x", {m, d}), s:output("y", {m, d})
  for l = 0, layers - 1 do
    local to = l == layers - 1 and y or s:temp("x" .. l, {m, d})
    s:call("layer" .. l, layer{m = m, d = d, f = f}, {x = from, w = w:rows(l, 1), keep = keep, last = last:rows(l * m, m), y = to})
    from = to
  end
end)

local sizes = {m = 64, d = 32, f = 64, layers = 3}
local seq = model(sizes)
local sp = seq:plan("h200", {trials = 20, seconds = 100, measure = false})
local names = {}
for i, c in ipairs(sp.calls) do names[i] = c.name end
tap.is(table.concat(names, " "), "layer0_up layer0_down layer0_add layer0_keep layer1_up layer1_down layer1_add layer1_keep "
  .. "layer2_up layer2_down layer2_add layer2_keep", "each call has the name of the layer in front of its own")
local roles = {}
for _, t in ipairs(seq.tensors) do roles[t.name] = t.role end
tap.is(roles.layer1_h, "temp", "so have temporaries")
tap.is(roles.h, nil, "  which are not shared")
tap.ok(sp:check(), "the plan is legal")
tap.is(sp:plan_of("layer1_up"):script(), sp:plan_of("layer2_up"):script(), "equal calls have equal plans")
local result = sp:compile{target = "host"}:check{seed = 3}
tap.ok(result.ok, "right on the CPU", tostring(result))

-- the reference of the model against that of the layer alone, called for one layer after the other
local one = layer{m = 64, d = 32, f = 64}
local inputs = seq:inputs{seed = 5}
local out = seq:reference(inputs)
local function part(array, number, shape)               -- of equal parts, counted from 0
  local n, values = 1, {}
  for _, size in ipairs(shape) do n = n * size end
  for i = 1, n do values[i] = array[number * n + i] end
  return mr.array(array.dtype, shape, values)
end
local x, error = inputs.x, 0
for l = 0, 2 do
  local alone = one:reference{x = x, w = part(inputs.w, l, {2, 64, 32}), keep = inputs.keep, last = part(inputs.last, l, {64, 32})}
  error = math.max(error, alone.last:max_error(part(out.last, l, {64, 32})))
  x = alone.y
end
tap.is(math.max(error, x:max_error(out.y)), 0, "the reference is that of the layers one after the other")
tap.ok(x:max_error(inputs.x) > 0, "  which is not the input")

local text = sp:script()
tap.is(load(text)(seq):script(), text, "its script loads as the same plan")

-- Of many calls those with one kernel share a row of a table.
local deep = model{m = 64, d = 32, f = 64, layers = 7}
local dsp = deep:plan("h200", {trials = 20, seconds = 100, measure = false})
local rows = {}
for line in tostring(dsp:simulate()):gmatch "\n(layer%S+[^\n]*)" do rows[#rows + 1] = line:match "^%S+ +%d+" end
tap.is(table.concat(rows, ", "):gsub(" +", " "), "layer0_up 1, layer0_down 7, layer0_add 7, layer0_keep 1, layer1_up 6, layer1_keep 6",
  "a row for each kernel, not for each of 28 calls")
tap.like(tostring(dsp:compile{target = "host"}), "layer1_down, layer1_add, layer1_keep, 20 more$", "their kernels name the first of them")

-- sizes that are left to the launch
local open = model{m = mr.any{max = 64, multiple = 8}, d = 32, f = 64, layers = 2}
local k = open:plan("h200", {trials = 20, seconds = 100, measure = false}):compile{target = "host"}
for _, m in ipairs{8, 40, 64} do tap.ok(k:check{sizes = {m = m}}.ok, ("one plan for all sizes, m=%d"):format(m)) end

---- errors ----------------------------------------------------------------------------------------------

local function with(f)
  return function()
    mr.sequence("outer", function(s)
      local x, w, keep = s:input("x", {64, 32}), s:input("w", {2, 64, 32}), s:input("keep", {32, 32})
      f(s, {x = x, w = w, keep = keep, last = s:state("last", {64, 32}), y = s:output("y", {64, 32})})
    end){}
  end
end
fails("a sequence without sizes", with(function(s, t) s:call("a", layer, t) end), "call: 'a' is given a sequence without sizes; write layer{...}")
fails("an input that is not given", with(function(s, t)
  t.w = nil
  s:call("a", one, t)
end), "call: 'w' of 'a' is not given: {w=...}")
fails("a tensor that it has not", with(function(s, t)
  t.lasts = t.last
  s:call("a", one, t)
end), "call: sequence 'layer' of 'a' has no input, output or state 'lasts'; did you mean 'last'?")
fails("a temporary of it", with(function(s, t)
  t.h = t.x
  s:call("a", one, t)
end), "call: sequence 'layer' of 'a' has no input, output or state 'h'")
fails("another type", with(function(s, t)
  t.x = s:input("z", {64, 32}, "f32")
  s:call("a", one, t)
end), "call: 'x' of 'a' is of bf16, 'z' of f32")
fails("another number of elements", with(function(s, t)
  t.x = t.x:rows(0, 32)
  s:call("a", one, t)
end), "call: 'x' of 'a' has 2048 elements, rows 0 to 31 of x has 1024")
fails("a state that is an input", with(function(s, t)
  t.last = s:input("z", {64, 32})
  s:call("a", one, t)
end), "'a_keep' would write 'z', which is an input")
fails("a state that nothing has written", with(function(s, t)
  t.last = s:temp("z", {64, 32})
  s:call("a", one, t)
end), "call: 'a_add' reads 'z', and no call before it has written it")
fails("a name that is there", with(function(s, t)
  s:call("a", one, t)
  s:call("a", one, t)
end), "there is a tensor 'a_h' already")
fails("sizes of an inner sequence that are left to the launch", with(function(s, t)
  s:call("a", layer{m = mr.any{max = 64, multiple = 8}, d = 32, f = 64}, t)
end), "call: sequence 'layer' of 'a' has sizes that are known at launch; give it the numbers that s:sizes returns")
fails("no program and no sequence", with(function(s, t) s:call("a", 7, t) end), "call: program or sequence with sizes expected, got 7")
tap.done_testing()
