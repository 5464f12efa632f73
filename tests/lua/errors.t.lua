-- Wrong input of every kind: each mistake gives one message with a location, and after it everything
-- still works. Nothing here may crash, hang or leak; run it under the sanitizers, too.
local mr = require "millrace"
local tap = dofile((arg[0]:match "^(.*/)" or "./") .. "tap.lua")
local ok, is, like, refuses = tap.ok, tap.is, tap.like, tap.refuses
local is_object = require("millrace.core").is            -- of that class?

local device = mr.device "h200"
local gemm = mr.program("gemm", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B, C = p:input("A", {m, k}), p:input("B", {n, k}), p:output("C", {m, n})
  local c = p:carry("c", {m, n}, 0)
  p:loop(k, function() c:add(p:mma("mma", p:load("load_a", A), p:load("load_b", B))) end)
  C:store("store_c", p:task("out", function() return c:to "bf16" end))
end)

local function new_plan(graph)
  local plan = mr.plan(graph, device)
  plan:buffers{a = 2, b = 2}
  for _, t in ipairs(graph.tasks) do plan:append(t.name) end
  plan:fill_waits()
  return plan
end

-- A short session through everything, as text.
local function session()
  local bound = gemm{m = 128, n = 64, k = 64}
  local plan = new_plan(bound:graph{tile = {m = 64, n = 64, k = 32}})
  local out = bound:reference(bound:inputs{seed = 1}, {tile = {m = 64, k = 32}}).C
  plan:undo()
  local broken = plan:check()
  plan:redo()
  return table.concat({tostring(bound), plan:script(), tostring(plan), tostring(plan:simulate()),
    tostring(out), tostring(broken), tostring(plan:check()), plan.graph:dot()}, "\n")
end
local sound <const> = session()

local function still_works(after)
  is(session(), sound, "after " .. after .. " all works as before")
end

-- Running code that begins on line 1 of user.lua raises exactly this.
local function bad(code, said)
  refuses('local mr = require "millrace"; ' .. code, "user.lua:1: " .. said, code)
end

-- Every function with every wrong argument ----------------------------------------------

-- Objects for the calls; new ones where the call may have changed them.
local bound = gemm{m = 128, n = 128, k = 128}
local graph = bound:graph{tile = {m = 64, n = 64, k = 32}}
local line = new_plan(graph):simulate()
local function new_array() return mr.array("f32", {2, 3}, 1) end

local wrong <const> = {
  {"nil"}, {"true", true}, {"0", 0}, {"1.5", 1.5}, {"-1", -1}, {"1e300", 1e300},
  {"2^53", 2 ^ 53}, {"mininteger", math.mininteger}, {"nan", 0 / 0}, {"inf", math.huge},
  {'""', ""}, {'"x"', "x"}, {'"a\\0b"', "a\0b"}, {"10,000 characters", ("x"):rep(10000)},
  {"{}", {}}, {"{1}", {1}}, {"{{}}", {{}}}, {"{x = 1}", {x = 1}}, {"function", function() end},
  {"thread", coroutine.create(print)}, {"file", io.stdout}, {"array", new_array()},
  {"device", device}, {"program", bound}, {"graph", graph}, {"plan", new_plan(graph)},
  {"timeline", line}, {"mr", mr}, {"unbound program", gemm},
}

-- What calls it: line 2 of a file of the user's.
local user <const> = assert(load([[local f, args = ...
local results = table.pack(f(table.unpack(args, 1, args.n)))
return results]], "=user.lua"))

local calls, refused = 0, 0
local function good_end(f, args)
  local good, message = pcall(user, f, args)
  calls, refused = calls + 1, refused + (good and 0 or 1)
  return good or type(message) == "string" and message:find "^user%.lua:2: [^\n]" and
    not message:find "attempt to", tostring(message)
end

-- Call f with each wrong argument in each position, and with too few; `make` gives the right
-- ones. With `class`, f is only called with what is not of that class.
local function every(what, f, make, class)
  local failures = {}
  local function try(args, how)
    local good, message = good_end(f, args)
    if not good then failures[#failures + 1] = ("%s: %s"):format(how, message) end
  end
  local n = make().n
  for at = 1, class and 1 or math.max(4, n) do
    for _, value in ipairs(wrong) do
      local args = make()
      args[at], args.n = value[2], math.max(n, at)
      if not class or not is_object(args[1], "millrace." .. class) then
        try(args, ("%s as argument %d"):format(value[1], at))
      end
    end
  end
  for few = 0, class and 0 or n - 1 do
    local args = make()
    args.n = few
    try(args, few .. " arguments")
  end
  ok(#failures == 0, what, table.unpack(failures, 1, 5))
end

local function maker(...)
  local makers = table.pack(...)
  return function()
    local args = {n = makers.n}
    for i = 1, makers.n do
      local x = makers[i]
      if type(x) == "function" then x = x() end
      args[i] = x
    end
    return args
  end
end

-- By class: an object, and the arguments of each method. Methods that are not listed here run
-- kernels, draw files or take the terminal: of them only the object is checked.
local classes <const> = {
  plan = {function() return new_plan(graph) end, {
    append = {"load_a", {}}, remove = {"mma"}, lane = {"c0", {warps = 4}},
    wait = {"mma", {"load_a"}}, unwait = {"mma", "load_a"}, fill_waits = {},
    buffers = {{a = 2}}, grid = {{group = 2}}, split = {"m", 2, {"mma"}},
    propagate = {{k = 64}}, undo = {}, redo = {}, check = {}, script = {},
    table = {{width = 80}}, simulate = {{events = 3}},
  }},
  graph = {graph, {table = {{width = 80}}, drawing = {{}}, dot = {}}},
  timeline = {line, {text = {{width = 80}}, summary = {{}}}},
  program = {bound, {
    inputs = {{seed = 1}}, reference = {bound:inputs(), {round = true}},
    graph = {{tile = {m = 64}}},
  }},
  array = {new_array, {
    get = {1, 1}, set = {1, 1, 1}, shape = {}, copy = {"f16"}, fill = {1}, max_error = {new_array},
  }},
  device = {device, {}},
  kernel = {new_plan(graph):compile{text = true}, {}},
}

local function sorted(t)
  local keys = {}
  for key in pairs(t) do keys[#keys + 1] = key end
  table.sort(keys)
  return keys
end

local function ordered(t)
  local keys, i = sorted(t), 0
  return function()
    i = i + 1
    if keys[i] then return keys[i], t[keys[i]] end
  end
end

for _, class in ipairs(sorted(classes)) do
  local object, arguments = table.unpack(classes[class])
  local meta = debug.getmetatable(type(object) == "function" and object() or object)
  for _, name in ipairs(sorted(meta.methods)) do
    local given = arguments[name]
    every(("%s:%s"):format(class, name), meta.methods[name],
      maker(object, table.unpack(given or {})), not given and class)
  end
  for _, name in ipairs(sorted(meta.fields)) do
    every(("%s.%s"):format(class, name), meta.fields[name], maker(object), class)
  end
  if meta.__tostring then
    every("tostring of a " .. class, meta.__tostring, maker(object), class)
  end
  for name in ordered(arguments) do ok(meta.methods[name], class .. ":" .. name .. " is there") end
  still_works("all calls of " .. class)
end

local arguments <const> = {
  device = {"h200"}, devices = {}, program = {"x", function() return function() end end},
  plan = {graph, device}, search = {bound, device, {trials = 1, seconds = 600}},
  array = {"f32", {2}, 1}, load_plan = false, attached = false,
}
for _, name in ipairs(sorted(mr)) do
  if type(mr[name]) == "function" and arguments[name] ~= false then
    every("mr." .. name, mr[name], maker(table.unpack(arguments[name] or {})))
  end
end
every("program:bind", gemm.bind, maker(gemm, {m = 1, n = 1, k = 1}))
every("program()", gemm, maker{m = 1, n = 1, k = 1})
still_works "all calls of mr"

-- In a program under construction; every object of one is a wrong argument, too.
local inside = mr.program("inside", function(p)
  local m, n, k = p:axes("m", "n", "k")
  local A, B = p:input("A", {m, k}), p:input("B", {n, k})
  local a, b, c = p:load(A), p:load(B), p:carry("c", {m, n}, 0)
  for _, kind in ipairs{{"axis", m}, {"value", a}, {"carry", c}, {"tensor", A}, {"p", p},
    {"index expression", m + 1}} do
    wrong[#wrong + 1] = kind
  end
  local function nothing() end
  local given = {
    axes = {"z"}, axis = {"z", 3}, input = {"I", {m}}, output = {"O", {m}}, temp = {"T", {m}},
    batch = {m}, load = {"load", A, {m, k}}, mma = {"mma", a, b}, carry = {"carry", {m}, 0},
    loop = {k, {upto = m}, function() return nothing end},
    task = {"task", function() return nothing end},
    phase = {"phase", function() return nothing end}, check = {true, "x"},
    option = {"x", "integer", 1},
  }
  local methods = debug.getmetatable(p).methods
  for _, name in ipairs(sorted(methods)) do
    -- sizes and checks are blamed on bind
    if name ~= "axes" and name ~= "check" then
      every("p:" .. name, methods[name], maker(function() return p end, table.unpack(given[name])))
    end
  end
  for _, object in ipairs{{"axis", m}, {"value", a}, {"carry", c}, {"tensor", A}} do
    local x = object[2]
    for name, f in ordered(debug.getmetatable(x).methods) do
      every(object[1] .. ":" .. name, f, maker(function() return x end, function() return k end,
        function() return m end, "i4"))
    end
  end
  for _, op in ipairs{"+", "-", "*", "/", "//", "%", "&", "|", "~", "<<", ">>", "<", "<=", "..",
    "^"} do
    local f = assert(load(("return function(a, b) return a %s b end"):format(op)))()
    local failures = {}
    for _, object in ipairs{m, a, c, m + 1} do
      for _, value in ipairs(wrong) do
        for _, args in ipairs{{object, value[2]}, {value[2], object}} do
          local good, message = pcall(f, args[1], args[2])
          if not good and (type(message) ~= "string" or not message:find ":%d+: ") then
            failures[#failures + 1] = value[1] .. ": " .. tostring(message)
          end
        end
      end
    end
    ok(#failures == 0, "operator " .. op, table.unpack(failures, 1, 5))
  end
end)
pcall(inside, {m = 4, n = 4, k = 8})
ok(calls > 10000 and refused > calls // 2, "so many calls", calls, refused)
still_works "all calls of a program under construction"

-- Every option --------------------------------------------------------------------------

for _, case in ipairs{
  {"plan:append", function(o) new_plan(graph):append("mma", o) end, "eu", "seu", "lane", "at"},
  {"plan:lane", function(o) new_plan(graph):lane("c0", o) end, "warps", "registers", "turns"},           -- "turns" is deprecated
  {"plan:grid", function(o) new_plan(graph):grid(o) end, "raster", "group", "eus",
    "longest_first", "section", "dynamic", "cluster", "along", "divide", "chiplets"},
  {"plan:buffers", function(o) new_plan(graph):buffers(o) end, "a", "out", "none"},
  {"plan:propagate", function(o) new_plan(graph):propagate(o) end, "m", "k", "none"},
  {"plan:wait", function(o) new_plan(graph):wait("mma", {{"load_a", distance = o.distance,
    when = o.when}}) end, "distance", "when"},
  {"plan:wait list", function(o) new_plan(graph):wait("mma", {o.x, {o.y}}) end, "x", "y"},
  {"plan:split list", function(o) mr.plan(graph, device):split("m", o.ways or 2, o.list and
    {o.list}) end, "ways", "list"},
  {"plan:table", function(o) new_plan(graph):table(o) end, "width", "ascii", "color"},
  {"graph:drawing", function(o) graph:drawing(o) end, "width", "ascii", "color"},
  {"timeline:text", function(o) line:text(o) end, "width", "ascii", "color", "by", "phase",
    "tile", "from", "to"},
  {"plan:simulate", function(o) new_plan(graph):simulate(o) end, "events"},
  {"bound:graph", function(o) bound:graph{tile = o} end, "m", "k", "none"},
  {"bound:reference", function(o) gemm{m = 4, n = 4, k = 4}:reference(bound:inputs(), o) end,
    "tile", "round"},
  {"bound:inputs", function(o) bound:inputs(o) end, "seed"},
  {"mr.search", function(o) mr.search(bound, device, {trials = o.trials and
    math.type(o.trials) ~= "float" and o.trials or 1, seconds = o.seconds or 600,
    measure = o.measure}) end, "seconds", "measure"},
  {"plan:improve", function(o) mr.load_plan "attention_serial":improve{pin = o.pin or {tasks = o.tasks, lanes = o.lanes,
    rings = o.rings, tile = o.tile, grid = o.grid}, trials = o.trials and math.type(o.trials) ~= "float" and o.trials or 0,
    seconds = o.seconds, progress = o.progress} end, "pin", "tasks", "lanes", "rings", "tile", "grid", "seconds", "progress"},
  {"bind", function(o) gemm{m = o.m or 1, n = 1, k = o.k or 1, dtype = o.dtype, x = o.x} end,
    "m", "k", "dtype", "x"},
} do
  local failures = {}
  for at = 3, #case do
    for _, value in ipairs(wrong) do
      local good, message = pcall(case[2], {[case[at]] = value[2]})
      if not good and not tostring(message):find "^tests/lua/errors%.t%.lua:%d+: [^\n]" then
        failures[#failures + 1] = ("%s = %s: %s"):format(case[at], value[1], tostring(message))
      end
    end
  end
  ok(#failures == 0, "options of " .. case[1], table.unpack(failures, 1, 5))
end
still_works "all options"

-- Sizes ---------------------------------------------------------------------------------

-- Running code that begins on line 1 of user.lua raises what matches, at once.
local function refused_like(code, pattern)
  local good, message = pcall(assert(load('local mr = require "millrace"; ' .. code, "=user.lua")))
  ok(not good, code)
  like(message, pattern, "  says why")
end

for _, size in ipairs{"0", "-5", "1.5", "1e300", "'4'", "true", "{}", "0 / 0", "math.huge",
  "math.mininteger"} do
  refused_like(("mr.examples.gemm{m = 4, n = %s, k = 4}"):format(size),
    "^user%.lua:1: bind: size of axis 'n' must be an integer of at least 1, got [^\n]+$")
end
bad("mr.examples.gemm{m = 4, n = 4}", "bind: size of axis 'k' is missing")
bad("mr.examples.gemm{m = 2^40 + 1, n = 1, k = 1}",
  "bind: axis 'm' has size 1099511627777; sizes are 1 to 2^40")
bad("mr.examples.gemm{m = 1 << 62, n = 1, k = 1}",
  "bind: axis 'm' has size 4611686018427387904; sizes are 1 to 2^40")
bad("mr.examples.gemm{m = 1, n = 1, k = 1, q = 1}",
  "bind: unknown size or option 'q' of 'gemm' (known: a, activation, b, bias, dtype, k, m, n, out, residual, squares)")
for _, sizes in ipairs{"m = 2^40, n = 2^40, k = 1", "m = 2^40, n = 2^40, k = 2^40",
  "m = 2^25, n = 2^24, k = 1"} do
  refused_like(("mr.examples.gemm{%s}"):format(sizes),
    "^.*examples/gemm%.lua:%d+: tensor '.' has [%d.]+e%+%d+ elements; at most 2%^48 are possible$")
end
refused_like("mr.examples.gemm{m = 1e12, n = 1, k = 1}:inputs()",
  "^user%.lua:1: inputs: bf16 {1000000000000, 1} takes 1907349 MiB, but only %d+ of %d+ MiB")
refused_like("mr.array('f32', {1e12})", "^user%.lua:1: array: f32 {1000000000000} takes")
bad("mr.array('f32', {2^40, 2^40})", "array: f32 {1099511627776, 1099511627776} is too large")
bad("mr.array('f32', {2^62})", "array: f32 {4611686018427387904} is too large")
bad("mr.array('f32', {2^32, 2^32, 2^32})",
  "array: f32 {4294967296, 4294967296, 4294967296} is too large")
bad("mr.array('f32', {0})", "array: dimension 1 must be an integer of at least 1, got 0")
bad("mr.array('f32', {1, 1, 1, 1, 1, 1, 1, 1, 1})",
  "array: a shape has at most 8 dimensions, got 9")
bad("mr.examples.gemm{m = 64, n = 64, k = 64}:graph{m = 32, n = 32}",
  "graph: 'm' is an axis, whose extent belongs in tile=: graph{tile={m=32, ...}}")
bad("mr.examples.gemm{m = 64, n = 64, k = 64}:graph{mm = 32}", "graph: unknown option 'mm' (known: tile)")
bad("mr.examples.gemm{m = 2^40, n = 1, k = 1}:graph{tile = {m = 1}}",
  "the grid of phase 'main' has too many tiles; choose larger ones")
bad("mr.examples.gemm{m = 2^24, n = 2^24, k = 1}:graph{tile = {m = 2^24, n = 2^24}}",
  "a value in task 'mma' has 2.81e+14 elements in every tile; use smaller tiles or a loop")
bad("mr.load_plan('gemm_cooperative', mr.examples.gemm{m = 2^20, n = 2^20, k = 2^20}):simulate()",
  "phase 'main' takes more than 200000000 events to simulate; choose larger tiles or a smaller " ..
  "problem")
for _, size in ipairs{"m = 256, n = 256, k = 2^40", "m = 256, n = 256, k = 2^34"} do
  bad(("mr.load_plan('gemm_cooperative', mr.examples.gemm{%s}):simulate()"):format(size),
    "phase 'main' takes more than 200000000 events to simulate; choose larger tiles or a " ..
    "smaller problem")
end
bad("mr.load_plan('attention_pingpong', mr.examples.flash_attention{b = 1, h = 1, m = 2^30, " ..
  "n = 2^30, d = 128, causal = true}):simulate()", "phase 'main' takes more than 200000000 " ..
  "events to simulate; choose larger tiles or a smaller problem")
bad("mr.examples.gemm{m = 4, n = 4, k = 4}:graph{tile = {q = 1}}",
  "graph: unknown axis 'q' (known: m, n, k)")
bad("mr.examples.gemm{m = 4, n = 4, k = 4}:graph{tile = {4, 4}}",
  "graph: tile extents are given by axis name: {m=128, n=128}")
is(mr.examples.gemm{m = 4, n = 4, k = 4}:graph{tile = {m = 1 << 62, n = 2 ^ 62}}.tasks[3].m, 4,
  "a tile larger than the axis is the axis")
ok(mr.load_plan("gemm_cooperative", mr.examples.gemm{m = 2 ^ 20, n = 2 ^ 20, k = 2 ^ 20}):check(),
  "checking a plan of 2^40 tiles and iterations is done at once")

-- Options of the examples with every wrong type: the error names the line of the user's call.
local examples <const> = {
  chunk_scan = {{b = 1, s = 64, h = 2, p = 16, n = 16}, "g", "chunk", "D", "z", "dtype", "decay"},
  chunk_state = {{b = 1, s = 64, h = 2, p = 16, n = 16}, "g", "chunk", "dtype", "decay", "out"},
  conv2d = {{n = 1, c = 8, h = 8, w = 8, k = 8, r = 3, s = 3}, "stride", "pad", "dtype", "out"},
  dequant_gemm = {{m = 16, n = 16, k = 32}, "wtype", "group", "dtype", "out"},
  flash_attention = {{b = 1, h = 2, m = 16, d = 16}, "n", "hkv", "causal", "window", "softcap",
    "scale", "nmax", "o", "dtype", "lse"},
  flash_decoding = {{b = 1, h = 2, n = 16, d = 16}, "hkv", "splits", "positions", "typical", "scale", "dtype"},
  gemm = {{m = 16, n = 16, k = 16}, "a", "b", "bias", "activation", "residual", "squares", "dtype", "out"},
  matmul_sum = {{m = 16, n = 16, k = 16}, "dtype", "out"},
  attention_backward = {{b = 1, h = 2, m = 16, d = 16}, "n", "hkv", "causal", "scale", "dtype"},
  paged_decoding = {{b = 1, h = 2, n = 16, d = 16}, "hkv", "page", "pages", "splits", "positions", "typical", "scale", "dtype"},
  topk_routing = {{m = 16, n = 16}, "k", "all", "dtype"},
  block_sparse_attention = {{b = 1, h = 2, m = 16, d = 16, rows = 16, keys = 16}, "n", "hkv", "rows", "keys", "longest", "typical",
    "causal", "scale", "dtype"},
  cross_entropy = {{m = 16, n = 16}, "smoothing", "dtype"},
  fp4_gemm = {{m = 16, n = 16, k = 32}, "format", "dtype", "out"},
  fp8_block_scales = {{m = 16, n = 16, k = 128}, "block", "dtype", "out"},
  gated_delta_rule = {{b = 1, s = 64, h = 2, k = 16, v = 16}, "hk", "chunk", "init", "scale", "dtype", "decay"},
  kimi_delta_attention = {{b = 1, s = 64, h = 2, k = 16, v = 16}, "chunk", "init", "scale", "dtype", "decay"},
  grouped_gemm = {{m = 16, n = 16, k = 16, e = 2}, "blocks", "block", "gated", "permute", "dtype", "out"},
  mamba2 = {{b = 1, s = 64, h = 2, p = 16, n = 16}, "g", "chunk", "init", "D", "z", "dtype", "decay"},
  mla_decoding = {{b = 1, h = 2, n = 16}, "d", "r", "splits", "scale", "dtype"},
  qkv_rope = {{b = 1, m = 16, k = 16, hq = 2, hkv = 1}, "d", "nmax", "sums", "eps", "dtype", "table"},
  row_squares = {{m = 16, k = 16}, "dtype"},
  qkv_rope_step = {{b = 4, k = 16, hq = 2, hkv = 1}, "d", "nmax", "page", "pages", "eps", "sums", "dtype", "table"},
  rmsnorm_swiglu = {{m = 16, n = 16, k = 16}, "norm", "eps", "sums", "dtype"},
  rmsnorm_gemm = {{m = 16, n = 16, k = 16}, "gain", "eps", "dtype", "out"},
  rmsnorm = {{m = 16, n = 16}, "eps", "dtype"},
  rmsnorm_backward = {{m = 16, n = 16}, "rows", "eps", "dtype"},
  swiglu = {{m = 16, n = 16}, "dtype"},
  swiglu_backward = {{m = 16, n = 16}, "dtype"},
}
is(table.concat(sorted(examples), " "), table.concat(dofile((arg[0]:match "^(.*/)" or "./") .. "lib/example_names.lua"), " "),
  "these are all examples that are programs")
-- Numbers that are as good as others.
local any_scale <const> = "scale = 1e+300, scale = -1, scale = -1.5"
local accepts <const> = {
  flash_attention = "softcap = 1e+300, scale = 1e+300", flash_decoding = "scale = 1e+300", paged_decoding = "scale = 1e+300",
  block_sparse_attention = "scale = 1e+300", mla_decoding = "scale = 1e+300", attention_backward = "scale = 1e+300", gated_delta_rule = any_scale,
  kimi_delta_attention = any_scale, rmsnorm_gemm = "eps = 1e+300", qkv_rope = "eps = 1e+300", qkv_rope_step = "eps = 1e+300", rmsnorm_swiglu = "eps = 1e+300",
  rmsnorm = "eps = 1e+300", rmsnorm_backward = "eps = 1e+300",
}
for name, case in ordered(examples) do
  local failures, accepted = {}, {}
  local keys = sorted(case[1])
  table.move(case, 2, #case, #keys + 1, keys)
  for _, key in ipairs(keys) do
    for _, value in ipairs{{}, {1}, print, device, "no such thing", 0 / 0, math.huge, 1e300, -1, -1.5,
      mr.examples, coroutine.create(print)} do
      local sizes = {[key] = value}
      for k, v in pairs(case[1]) do if k ~= key then sizes[k] = v end end
      local good, message = pcall(mr.examples[name], sizes)
      if good then
        accepted[#accepted + 1] = ("%s = %s"):format(key, tostring(value))
      elseif not message:find "^tests/lua/errors%.t%.lua:%d+: " then
        failures[#failures + 1] = ("%s = %s: %s"):format(key, tostring(value), message)
      end
    end
  end
  ok(#failures == 0, "wrong sizes and options of " .. name, table.unpack(failures, 1, 5))
  is(table.concat(accepted, ", "), accepts[name] or "", "  no other is accepted")
end
bad("mr.examples.flash_attention{b = 1, h = 1, m = 4, d = 4, scale = 'x'}",
  "flash_attention: scale must be a number, got 'x'")
bad("mr.examples.flash_attention{b = 1, h = 1, m = 4, d = 4, causal = 1}",
  "flash_attention: causal must be true or false, got 1")
bad("mr.examples.conv2d{n = 1, c = 1, h = 1, w = 1, k = 1, r = 1, s = 1, pad = 0.5}",
  "conv2d: pad must be an integer, got 0.5")
bad("mr.program('t', function(p) p:option('x', 'text') end){}",
  "option: \"number\", \"integer\", \"boolean\" or \"string\" expected, got 'text'")
bad("mr.program('t', function(p) p:option('mode', 'string') end){mode = 1}", "t: mode must be a string, got 1")
local mode
pcall(mr.program("t", function(p) mode = p:option("mode", "string", "slow") end), {mode = "fast"})
is(mode, "fast", "an option may be a string")
ok(mr.examples.flash_attention{b = 1, h = 1, m = 4, d = 4, window = false, softcap = false},
  "an option that is false is none")

local function body(code)
  return ("mr.program('t', function(p) local a, b = p:axis('a', 4), p:axis('b', 2^20); %s end){}")
    :format(code)
end
bad(body "p:axis('c', 2^40 + 1)", "axis: axis 'c' has size 1099511627777; sizes are 1 to 2^40")
bad(body "p:load(p:input('X', {a, b, a, b, a, b, a, b, a}))", "8 axes at most, got 9")
bad(body "p:load(p:input('X', {b}), {b * 2^59})",
  "an index reaches 6.04e+23; at most 2^60 is possible")
bad(body "p:load(p:input('X', {b}), {b * 2^30 * 2^30})",
  "an index expression has a factor or offset beyond 2^59")
bad(body "p:load(p:input('X', {b}), {b + math.mininteger})",
  "an index expression has a factor or offset beyond 2^59")
bad(body "p:load(p:input('X', {b}), {b // 0})", "an index is divided by 0; use a positive integer")
bad(body "p:load(p:input('X', {b}), {b % -3})",
  "an index is taken modulo by -3; use a positive integer")
bad(body "p:load(p:input('X', {a}), {a, b})", "load: 'X' has 1 dimensions, the index has 2")
bad(body "p:mma(p:load('x', p:input('X', {a})), p:load('y', p:input('Y', {b})))",
  "mma: its operands share no axis; one has {a}, the other {b}")
bad(body "p:output('Y', {a}):store(b:index())", "a value over {b} cannot be stored to 'Y', " ..
  "which is indexed by {a}; reduce or broadcast it to the same axes")
bad("mr.array('f32', {2, 2}):get(1)",
  "get: the array has 2 dimensions, 1 position is given")
bad("mr.array('f32', {2, 2}):get(3, 1)",
  "get: position 1 must be an integer from 1 to 2, got 3")
still_works "all sizes"

-- Recursion and nests -------------------------------------------------------------------

local itself
itself = mr.program("itself", function() itself{} end)
local good, message = pcall(itself, {})
like(message, "^tests/lua/errors%.t%.lua:%d+: bind: programs, and the blocks inside, are nested " ..
  "more than 150 deep; does one bind itself%?$", "a program that binds itself")
itself = mr.program("itself", function(p)
  p:phase("t", function() p:loop(p:axis("n", 2), function() itself{} end) end)
end)
good, message = pcall(itself, {})
like(message, "^tests/lua/errors%.t%.lua:%d+: %w+: programs, and the blocks inside, are nested " ..
  "more than 150 deep; does one bind itself%?$", "  inside a loop")
itself = mr.program("itself", function(p)
  p:task("t", function() p:loop(p:axis("n", 2), function() itself:bind{} end) end)
end)
good, message = pcall(itself, {})
ok(not good, "  inside a task", message)
itself = mr.program("itself", function(p)
  local inner = (p.depth or 0) < 20 and itself{depth = (p.depth or 0) + 1}
  local n = p:axis("n", 2)
  p:output("Y", {n}):store(n:index() + (inner and #inner.tensors or 0))
end)
is(itself{}.name, "itself", "a program that binds itself twenty times over is none the worse")
itself = mr.program("itself", function(p)
  pcall(itself, {})
  local n = p:axis("n", 2)
  p:output("Y", {n}):store(n:index())
end)
is(itself{}.name, "itself", "  nor one that binds itself as often as can be")
local function endless(p) return endless(p) + 1 end
good, message = pcall(mr.program("endless", endless), {})
like(message, "tests/lua/errors%.t%.lua:%d+: stack overflow", "endless recursion")
good, message = pcall(mr.program("nest", function(p)
  local function nest() p:task("t", nest) end
  nest()
end), {})
like(message, ":%d+: task 't' begins inside task 't'", "tasks in tasks")

-- A nest of loops with its sTask inside.
local function nest(depth, size)
  return mr.program("nest", function(p)
    local m, axes, dims = p:axis("m", 64), {}, {}
    for i = 1, depth do axes[i] = p:axis("a" .. i, size or 2) end
    dims = table.move(axes, 1, 7, 2, {m})
    local X, Y, c = p:input("X", dims), p:output("Y", {m}), p:carry("c", {m}, 0)
    local function enter(i)
      if axes[i] then return p:loop(axes[i], function() enter(i + 1) end) end
      local v = p:load("load_x", X)
      for d = 1, math.min(depth, 7) do v = v:rowmax(axes[d]) end
      c:set(mr.max(c, v))
    end
    enter(1)
    Y:store(c)
  end){}
end
for _, depth in ipairs{1, 4, 8} do
  local b = nest(depth)
  local g = b:graph{tile = {m = 32, a1 = 1, a2 = depth > 1 and 1 or nil}}
  local plan = mr.plan(g, device)
  for _, t in ipairs(g.tasks) do plan:append(t.name) end
  plan:fill_waits()
  ok(plan:check() and plan:simulate().cycles > 0, depth .. " loops, one in another")
  ok(#tostring(plan) > 0 and #g:drawing() > 0 and #g:dot() > 0, "  are drawn")
  ok(b:reference(b:inputs()).Y, "  and computed")
end
is(#nest(16):graph{}.tasks, 4, "16 loops are the most")
do
  local deep = nest(16, 4)
  local plan = mr.plan(deep:graph{}, device)
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  ok(plan:check() == false, "  whose check needs full axes")
  local tile = {}
  for i = 1, 16 do tile["a" .. i] = 1 end
  plan = mr.plan(deep:graph{tile = tile}, device)
  for _, t in ipairs(plan.tasks) do plan:append(t.name) end
  for _, name in ipairs{"check", "fill_waits", "simulate"} do
    good, message = pcall(plan[name], plan)
    like(message, "^tests/lua/errors%.t%.lua:%d+: checking the plan takes more than 1048576 " ..
      "instances of sTasks; put fewer loops in one another", "  4^16 iterations are too many to " ..
      name)
  end
  like(tostring(plan), "not checked: checking the plan takes more than", "  but shown")
end
good, message = pcall(nest, 17)
like(message, ":%d+: loops nest at most 16 deep; one loop may run over several axes",
  "  17 too many")
good, message = pcall(nest, 30)
like(message, ":%d+: loops nest at most 16 deep", "  30, too")
still_works "nests"

-- What is large -------------------------------------------------------------------------

local chain = mr.program("chain", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m, n})
  p:loop(n, function()
    local v = p:load("load_x", X)
    for i = 1, 198 do v = p:task("t" .. i, function() return v + i end) end
    Y:store("store_y", v)
  end)
end){m = 512, n = 512}
local plan = mr.plan(chain:graph{tile = {m = 64, n = 64}}, device)
for _, t in ipairs(plan.tasks) do plan:append(t.name) end
is(#plan.tasks, 200, "a program of 200 sTasks")
ok(plan:fill_waits() > 0 and plan:check(), "  has a legal plan")
ok(plan:simulate().cycles > 0, "  is simulated")
is(select(2, tostring(plan):gsub("\n    t%d", "")), 198, "  and shown")
is(#select(2, mr.plan(plan.graph, device):check()), 200, "  as many problems")

-- Each of 800 sTasks reads three others; drawn, it takes as long as its text does.
local dense = mr.program("dense", function(p)
  local m, n = p:axes("m", "n")
  local X, Y = p:input("X", {m, n}), p:output("Y", {m, n})
  p:loop(n, function()
    local v = {p:load("load_x", X)}
    for i = 1, 798 do
      v[i + 1] = p:task("t" .. i, function() return v[i] + v[math.max(1, i - 3)] + v[i // 2 + 1] end)
    end
    Y:store("store_y", v[#v])
  end)
end){m = 512, n = 512}:graph{tile = {m = 64, n = 64}}
for name, size in pairs{drawing = 20000, dot = 400000, table = 300000} do
  ok(#dense[name](dense) > size, "a graph of 800 sTasks as " .. name, #dense[name](dense))
end

plan = mr.plan(graph, device)
local texts = {}
for i = 1, 500 do
  texts[i] = plan:script()
  if i % 5 == 0 then plan:buffers{a = i % 64 + 1}
  elseif i % 5 == 1 then plan:append("mma", {at = i % 17})
  elseif i % 5 == 2 then plan:wait("mma", {{"load_a", distance = i % 65}})
  elseif i % 5 == 3 then plan:lane("c" .. i % 15, {warps = i % 32 + 1})
  else plan:propagate{k = i % 64 + 1} end
end
local last, back = plan:script(), 0
for i = 500, 1, -1 do back = back + (plan:undo() and plan:script() == texts[i] and 1 or 0) end
is(back, 500, "500 edits and 500 undone")
while plan:redo() do end
is(plan:script(), last, "  and made again")
ok(not plan:check() and #tostring(plan) > 0, "  a plan that makes no sense is checked and shown")

local wide = mr.program("wide", function(p)
  local m, n = p:axis("m", 64), p:axis("n", 1024)
  local Y = p:output("Y", {m, n})
  p:loop(n, function()
    local values = table.pack(p:task("many", function()
      local v = {}
      for i = 1, 60 do v[i] = n:index() + m:index() * i end
      return table.unpack(v)
    end))
    Y:store("store_y", p:task("one", function()
      local sum = values[1]
      for i = 2, 60 do sum = sum + values[i] end
      return sum
    end))
  end)
end){}
plan = mr.plan(wide:graph{tile = {m = 8, n = 8}}, device)
for i, name in ipairs{"many", "one", "store_y"} do plan:append(name, {lane = "c" .. i}) end
local versions = {}
for name in ordered(plan.rings) do
  versions[#versions + 1] = name
  plan:buffers{[name] = #versions}
end
is(#versions, 61, "60 values between two sTasks, each with versions of its own")
plan:wait("many", {"one"})
plan:wait("one", {"many", "store_y"})
plan:wait("store_y", {"one"})
local _, all = plan:check()
is(#all .. " " .. all[1].code, "1 shared_memory", "  a wait serves them all")
bad("local p = mr.plan(mr.examples.gemm{m = 4, n = 4, k = 4}:graph{}); " ..
  "local list = {}; for i = 1, 2e6 do list[i] = 'mma' end; p:wait('mma', list)",
  "wait: 2000000 sTasks are too many")
still_works "large programs and plans"

-- Kernels -------------------------------------------------------------------------------

-- A load by k // group brings one scale for all of k: there is nothing to split.
plan = mr.plan(mr.examples.dequant_gemm{m = 4, n = 128, k = 32}:graph{tile = {m = 4}}, device)
plan:split("k", 2, {"load_scale"})
for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = t.kind == "load" and "p0" or "c0"}) end
plan:fill_waits()
local legal, problems = plan:check()
ok(not legal and problems[1].code == "layout", "a plan that splits a load along an axis that its tensor has not")
good, message = pcall(plan.compile, plan, {text = true})
like(message, ":%d+: compile: the plan is not legal %(1 problem; .*: layout: 'scale%.0' is loaded in slices that cannot share a ring, "
  .. "and read by one sTask; do not split its load; try ", "  is not compiled")

-- A tensor without dimensions has no last one.
local scaled = mr.program("scaled", function(p)
  local n = p:axes "n"
  local X, S = p:input("X", {n}, "f32"), p:input("S", {}, "f32")
  local Y = p:output("Y", {n}, "f32")
  Y:store("store_y", p:load("load_x", X) * p:load("load_s", S))
end){n = 256}
plan = mr.plan(scaled:graph{tile = {n = 128}}, device)
for _, t in ipairs(plan.tasks) do plan:append(t.name) end
plan:fill_waits()
ok(plan:compile{target = "host"}:check().ok, "a tensor of one element is loaded")
scaled = mr.program("scaled", function(p)
  local m, n = p:axes("m", "n")
  local X, S, Y = p:input("X", {m, n}), p:input("S", {}, "f32"), p:output("Y", {m, n})
  Y:store("store_y", p:load("load_x", X) * p:load("load_s", S))
end){m = 16, n = 64}
plan = mr.plan(scaled:graph{tile = {m = 1, n = 64}}, device)
for _, t in ipairs(plan.tasks) do plan:append(t.name) end
plan:fill_waits()
legal, problems = plan:check()
like(tostring(problems.notes[1]), "by_threads: 'load_s' is copied by the threads", "  and a note says by what")

-- Text alone is neither run nor are inputs made for it, which here would be 2 TiB.
bad("mr.load_plan('gemm_cooperative', mr.examples.gemm{m = 2^20, n = 2^20, k = 2^10})" ..
  ":compile{text = true}:check()", "check: this kernel is text alone; compile it without text=true")
local text_alone <const> = mr.load_plan("gemm_cooperative", mr.examples.gemm{m = 256, n = 256, k = 64})
  :compile{text = true}
for _, name in ipairs{"run", "check", "bench", "trace"} do
  good, message = pcall(text_alone[name], text_alone)
  like(message, "^tests/lua/errors%.t%.lua:%d+: " .. name .. ": this kernel is text alone",
    name .. " of a kernel that is text alone")
end
for _, value in ipairs{-1, 0, 0 / 0, "x", {}} do
  good, message = pcall(text_alone.run, text_alone, {}, {limit = value})
  like(message, "^tests/lua/errors%.t%.lua:%d+: run: limit must be a number of seconds, got ",
    "a limit of " .. tostring(value):sub(1, 5))
end
bad("mr.array('f32', {n = 4})", "array: a shape is a list of sizes, as in {128, 64}")
bad("mr.search(mr.examples.gemm{m = 1, n = 1, k = 1}, mr.device(), {trials = -1})",
  "search: trials must be a number of at least 0, not -1")
still_works "kernels"

-- Names ---------------------------------------------------------------------------------

-- Names go into generated code and into messages.
for _, name in ipairs{"", " ", "a b", "1a", "a.b", "a-b", "\u{e4}", "a\0b", "a\nb", ("x"):rep(64),
  ("x"):rep(100000), "\27[31m", "%s%n", "'"} do
  local shown = ("%q"):format(name:sub(1, 12)):gsub("[%c\127-\255]", "?")
  for _, case in ipairs{
    {"axis", function(p) p:axis(name, 2) end},
    {"tensor", function(p) p:input(name, {p:axis("n", 2)}) end},
    {"task", function(p)
      local n = p:axis("n", 2)
      p:task(name, function() return n:index() + 1 end)
    end},
    {"load", function(p) p:load(name, p:input("X", {p:axis("n", 2)})) end},
    {"store", function(p)
      local n = p:axis("n", 2)
      p:output("Y", {n}):store(name, n:index())
    end},
    {"carry", function(p) p:carry(name, {p:axis("n", 2)}, 0) end},
    {"phase", function(p) p:phase(name, function() end) end},
  } do
    local good, message = pcall(mr.program("t", case[2]), {})
    ok(not good and message:find "^tests/lua/errors%.t%.lua:%d+: .* cannot name an? "
      or message:find "^tests/lua/errors%.t%.lua:%d+: a name has no zero bytes, and 'a%.%.%.' has$",
      case[1] .. " " .. shown, message)
  end
  local plan = mr.plan(graph, device)
  for _, f in ipairs{"append", "remove", "lane"} do
    local good, message = pcall(plan[f], plan, name)
    ok(not good and message:find "^tests/lua/errors%.t%.lua:%d+: "
      or f == "lane" and name == "1a", "plan:" .. f .. " " .. shown, message)
  end
  local good, message = pcall(mr.device, name)
  ok(not good and type(message) == "string", "mr.device " .. shown, message)
end
for _, name in ipairs{"", "a b", "1", "\u{e4}", "a\0b", "a.b"} do
  local good, message = pcall(mr.program, name, print)
  like(message, "^tests/lua/errors%.t%.lua:%d+: program: '", "program " .. ("%q"):format(name))
end
local function long(c) return c .. ("x"):rep(62) end
local names_of = mr.program(("x"):rep(10000), function(p)
  local n = p:axis(long "n", 64)
  local x = p:load(long "l", p:input(long "X", {n}))
  p:output(long "Y", {n}):store(long "s", p:task(long "t", function() return x * 2 end))
end){}
local plan = new_plan(gemm{m = 64, n = 64, k = 64}:graph{})
plan:lane(long "c")
ok(#tostring(plan) > 0, "a lane with a name of 63 characters")
plan = mr.plan(names_of:graph{}, device)
for _, t in ipairs(plan.tasks) do plan:append(t.name, {lane = long(t.name:sub(1, 1))}) end
plan:fill_waits()
ok(plan:check(), "names of 63 characters, a program's of 10,000", select(2, plan:check()))
ok(#tostring(plan) > 0 and #tostring(plan.graph) > 0 and #plan.graph:drawing() > 0 and
  #plan.graph:dot() > 0 and #tostring(plan:simulate()) > 0, "  are shown")
plan:unwait(long "t", long "l")
message = select(2, plan:check())
like(message, "plan:wait%(\"t" .. ("x"):rep(62) .. '",%s+{"l', "  and reported")
still_works "names"

-- Errors of the user's own --------------------------------------------------------------

local thrown = setmetatable({}, {__tostring = function() error "again" end})
for _, value in ipairs{"text", 1, true, thrown, {false}} do
  value = type(value) == "table" and value[1] == false and nil or value
  local function throw() error(value, 0) end
  for _, callback in ipairs{
    {"the program", mr.program("t", throw)},
    {"a loop", mr.program("t", function(p) p:loop(p:axis("n", 2), throw) end)},
    {"a task", mr.program("t", function(p) p:task("t", throw) end)},
    {"a phase", mr.program("t", function(p) p:phase("t", throw) end)},
    {"filling an array", function() mr.array("f32", {2}, throw) end},
    {"a table of inputs", function()
      bound:reference(setmetatable({}, {__index = throw}))
    end},
  } do
    local good, got = pcall(callback[2], {})
    ok(not good and rawequal(got, value), ("%s in %s comes through"):format(type(value), callback[1]),
      type(got))
  end
end
good, message = pcall(mr.array, "f32", {2}, function() return "x" end)
like(message, "errors%.t%.lua:%d+: array: an element must be a number, got 'x'$", "no element")
still_works "errors of functions"

-- Objects of others, or whose time is over ----------------------------------------------

local kept
mr.program("kept", function(p)
  local n = p:axis("n", 4)
  local X, Y, c = p:input("X", {n}), p:output("Y", {n}), p:carry("c", {n}, 0)
  local x = p:load(X)
  c:add(x)
  Y:store(x + c)
  kept = {p = p, axis = n, input = X, output = Y, carry = c, value = x, index = n + 1}
end){}
local after <const> = "errors%.t%.lua:%d+: the program is complete; p is of use only while its " ..
  "function runs$"
for what, f in ordered{
  ["p:axis"] = function(o) o.p:axis("m", 2) end,
  ["p:input"] = function(o) o.p:input("Z", {o.axis}) end,
  ["p:load"] = function(o) o.p:load(o.input) end,
  ["p:mma"] = function(o) o.p:mma(o.value, o.value) end,
  ["p:loop"] = function(o) o.p:loop(o.axis, function() end) end,
  ["p:task"] = function(o) o.p:task("t", function() end) end,
  ["p:carry"] = function(o) o.p:carry("d", {o.axis}, 0) end,
  ["p:batch"] = function(o) o.p:batch(o.axis) end,
  ["p:phase"] = function(o) o.p:phase("q", function() end) end,
  ["store"] = function(o) o.output:store(o.value) end,
  ["c:add"] = function(o) o.carry:add(o.value) end,
  ["c:set"] = function(o) o.carry:set(o.value) end,
  ["a carry"] = function(o) return o.carry + 1 end,
  ["a value"] = function(o) return o.value + 1 end,
  ["a function"] = function(o) return mr.exp2(o.value) end,
  ["a method"] = function(o) return o.value:rowsum(o.axis) end,
  ["axis:index"] = function(o) return o.axis:index() end,
  ["tostring"] = function(o) return tostring(o.value) end,
} do
  local good, said = pcall(f, kept)
  ok(not good, what .. " after the program is complete")
  like(said, after, "  says so")
end
mr.program("other", function(p)
  local n = p:axis("n", 4)
  local v, X, Y = n:index() + 1, p:input("X", {n}), p:output("Y", {n})
  for what, f in ordered{
    ["value + value"] = function() return v + kept.value end,
    ["axis + axis"] = function() return n + kept.axis end,
    ["a value in mma"] = function() return p:mma(v, kept.value) end,
    ["a tensor in load"] = function() return p:load(kept.input) end,
    ["an index in load"] = function() return p:load(X, {kept.index}) end,
    ["an axis in input"] = function() return p:input("Z", {kept.axis}) end,
    ["an axis in loop"] = function() return p:loop(kept.axis, function() end) end,
    ["a bound of a loop"] = function() p:loop(p:axis("m", 2), {upto = kept.axis}, print) end,
    ["an axis in rowsum"] = function() return v:rowsum(kept.axis) end,
    ["an axis in batch"] = function() return p:batch(kept.axis) end,
    ["an axis in carry"] = function() return p:carry("c", {kept.axis}, 0) end,
    ["a value in a carry"] = function() return p:carry("d", {n}, 0):set(kept.value) end,
    ["a value in where"] = function() return mr.where(v:lt(1), v, kept.value) end,
    ["a value in max"] = function() return mr.max(v, 1, kept.carry) end,
    ["a value in store"] = function() return Y:store(kept.value) end,
  } do
    local good, said = pcall(f)
    ok(not good, "another program's: " .. what)
    like(said, what == "axis + axis" and "errors%.t%.lua:%d+: %+: axes of different programs$"
      or "errors%.t%.lua:%d+: .*another program$", "  says so")
  end
  Y:store(v + p:load(X))
end){}
still_works "objects of others"

-- Metatables ----------------------------------------------------------------------------

local objects <const> = {plan = new_plan(graph), graph = graph, timeline = line, program = bound,
  device = device, array = new_array()}
for what, object in ordered(objects) do
  is(getmetatable(object), false, what .. ": the metatable is hidden")
  good = pcall(setmetatable, object, {})
  ok(not good, "  and not replaced")
  good = pcall(rawset, object, "x", 1)
  ok(not good, "  no raw fields")
  good, message = pcall(function() object.x = 1 end)
  ok(not good and message:find "^tests/lua/errors", "  and no others", message)
  for name, f in ordered{["#"] = function(x) return what ~= "array" and #x or x + 1 end,
    call = function(x) x() end, ["+"] = function(x) return x + 1 end,
    [".."] = function(x) return x .. "" end, ["<"] = function(x) return x < x end,
    pairs = function(x) for _ in pairs(x) do end end} do
    good, message = pcall(f, object)
    ok(not good and message:find "^tests/lua/errors", "  " .. name .. " is refused", message)
  end
  local text = tostring(object)
  local free = debug.getmetatable(object).__gc
  for _, call in ipairs{free, coroutine.wrap(free), function(x) pcall(free, x) end} do
    pcall(call, object)
  end
  setmetatable({}, {__gc = function() free(object) end})
  setmetatable({}, {__gc = free})
  setmetatable({}, {__close = free, __index = free})
  collectgarbage()
  for _, hook in ipairs{free, function() free(object) end, function() return free(object) end} do
    local co = coroutine.create(function() for _ = 1, 100 do local _ = {} end end)
    debug.sethook(co, hook, "", 1)
    coroutine.resume(co)
  end
  is(tostring(object), text, "  __gc called by a script frees nothing")
end
for _, name in ipairs{"getregistry", "setlocal", "setmetatable", "setupvalue", "setuservalue",
  "upvaluejoin"} do
  is(debug[name], nil, "there is no debug." .. name)
end
-- Bytecode ------------------------------------------------------------------------------

-- Lua runs what it is given without looking: wrong bytecode would end the shell.
do
  local bytecode <const> = string.dump(function() return 6 * 7 end)
  local path = os.tmpname()
  local file = assert(io.open(path, "wb"))
  file:write(bytecode)
  file:close()
  local function in_chunks(text)
    local at = 0
    return function()
      at = at + 1
      return at <= #text and text:sub(at, at) or nil
    end
  end
  local no <const> = "attempt to load a binary chunk %(mode is 't'%)"
  for what, f in ordered{
    ["load"] = function() return load(bytecode) end,
    ["load with a mode"] = function() return load(bytecode, "x", "bt") end,
    ["load with a function"] = function() return load(in_chunks(bytecode), "x", "tb", {}) end,
    ["loadfile"] = function() return loadfile(path) end,
    ["loadfile with a mode"] = function() return loadfile(path, "bt") end,
  } do
    local f, said = f()
    is(f, nil, what .. " takes no bytecode")
    like(said, no, "  and says so")
  end
  is(load(bytecode, "x", "b"), nil, "  nor where nothing else is allowed")
  is(loadfile(path, "b"), nil, "  nor from a file")
  good, message = pcall(dofile, path)
  like(message, no, "nor does dofile")
  package.path = path .. ";" .. package.path
  good, message = pcall(require, "bytecode_of_nobody")
  like(message, "^error loading module 'bytecode_of_nobody' from file '", "nor require")
  like(message, no, "  which says so")
  file = assert(io.open(path, "w"))
  file:write "local name, from = ... return {name or 0, from or 0, x}"
  file:close()
  x = 5
  is(table.concat(dofile(path), " "), "0 0 5", "text is run by dofile")
  is(table.concat(loadfile(path, "bt", {x = 6})(), " "), "0 0 6", "  by loadfile, with a table")
  is(table.concat(require "text_of_somebody", " "), "text_of_somebody " .. path .. " 5",
    "  by require")
  is(load(in_chunks "return x", "=chunk", "t", {x = 8})(), 8, "  and in chunks by load")
  is(load("return x", "=x", nil, nil) and pcall(load("return x", "=x", nil, nil)), false,
    "  with nil for a table, too")
  is(select(2, load("x y", "=text")), "text:1: syntax error near 'y'", "  or reports what is wrong")
  is(select(2, pcall(load)), "bad argument #1 to 'load' (function expected, got no value)",
    "  as Lua does")
  is(coroutine.wrap(function() return dofile(path)[3] end)(), 5, "  in a coroutine")
  package.path, x = package.path:sub(#path + 2), nil
  os.remove(path)
end
do
  local inside = {}
  local function look()
    for level = 1, 20 do
      if not debug.getinfo(level) then break end
      for n = 1, 20 do
        local name, value = debug.getlocal(level, n)
        if not name then break end
        inside[#inside + 1] = name == "(C temporary)" and tostring(value) or nil
      end
    end
  end
  setmetatable({}, {__gc = look})
  mr.array("f32", {2}, function() collectgarbage() look() return 1 end)
  is(inside[1], nil, "debug.getlocal shows nothing of C functions")
  local function own(y) return debug.getlocal(1, 1) end
  is(table.concat({own(7)}, " "), "y 7", "  but what functions of Lua have")
  is(debug.getlocal(look, 1), nil, "  parameters of a function")
  is(debug.getlocal(function(a, b) return a, b end, 2), "b", "  by name")
  local co = coroutine.create(function(y) coroutine.yield(y) end)
  coroutine.resume(co, 9)
  is(debug.getlocal(co, 0, 1), nil, "  nothing of yield in a coroutine")
  is(select(2, debug.getlocal(co, 1, 1)), 9, "  but of what yields")
end
local _, problems = mr.plan(graph, device):check()
is(getmetatable(problems), false, "problems: the metatable is hidden")
local tostring_problems = debug.getmetatable(problems).__tostring
for _, value in ipairs{1, "x", {1}, {{}}, {{message = {}, code = print}}, print} do
  good, message = pcall(tostring_problems, value)
  ok(type(message) == "string", "  a wrong list is no harm")
end
for what, change in ordered{
  ["without an id"] = function(o) o.value.id = nil end,
  ["a large id"] = function(o) o.value.id = 1e9 end,
  ["a negative id"] = function(o) o.value.id = -1 end,
  ["a word for an id"] = function(o) o.value.id = "x" end,
  ["a fraction for an id"] = function(o) o.value.id = 0.5 end,
  ["an axis with another id"] = function(o) o.axis.id = 60 end,
  ["an axis without an expression"] = function(o) o.axis.expr = nil end,
  ["an axis with a word for it"] = function(o) o.axis.expr = "x" end,
  ["an axis with another's expression"] = function(o)
    o.axis.expr = require("millrace.core").index_axis(63)
  end,
  ["without an owner"] = function(o) o.value.owner = nil end,
  ["with a table for an owner"] = function(o) o.value.owner = {} end,
  ["a tensor without dimensions"] = function(o) o.input.dims = nil end,
  ["a tensor with others"] = function(o) o.input.dims = {o.axis, o.axis} end,
  ["a tensor with another id"] = function(o) o.input.id = 7 end,
  ["a carry with another id"] = function(o) o.carry.id = 7 end,
  ["without p's own"] = function(o) for k in next, o.p do rawset(o.p, k, nil) end end,
  ["with p's own mixed up"] = function(o) for k in next, o.p do rawset(o.p, k, o.p) end end,
  ["a forged value"] = function(o)
    o.value = setmetatable({id = 99, owner = o.p}, {__metatable = "millrace.value"})
  end,
  ["a forged axis"] = function(o)
    o.axis = setmetatable({id = 99, owner = o.p}, {__metatable = "millrace.axis"})
  end,
} do
  good, message = pcall(mr.program("forged", function(p)
    local n = p:axis("n", 4)
    local o = {p = p, axis = n, value = n:index(), input = p:input("X", {n}),
      carry = p:carry("c", {n}, 0)}
    change(o)
    o.carry:add(o.value)
    p:output("Y", {o.axis}):store(o.value + o.carry + p:load(o.input, {o.axis}))
    p:load("again", o.input)
  end), {})
  ok(not good and type(message) == "string", "forged: " .. what, message)
end
still_works "metatables"

refuses("local mr = require 'millrace'; mr.plan(mr.examples.gemm)", "user.lua:1: plan: graph expected, got program; with sizes and " ..
  "a tile it gives one, as in prog{m=4096, n=4096}:graph{tile={m=128}}")
refuses("local mr = require 'millrace'; mr.strict(); local p <close> = setmetatable({}, {__close = function() mr.strict(false) end}); " ..
  "mr.load_plan 'gemm_cooperative':why()", "user.lua:1: plan has no 'why'; did you mean plan:simulate():why()?")

-- What scripts do while the collector runs, and with tables that change -----------------

for _ = 1, 30 do
  local p = new_plan(graph)
  p:split("m", 1)
  for j = 1, 10 do
    setmetatable({}, {__gc = function() p:undo(); p:undo(); p:redo() end})
    local _ = {p:check(), p.tasks, p.edges, p.rings, p.usage, p.tile, tostring(p), p:script()}
    if j % 5 == 0 then pcall(p.simulate, p) end
  end
end
do
  local p, cycles = new_plan(graph), 0
  local function watch() setmetatable({}, {__gc = function() cycles = cycles + 1; watch() end}) end
  watch()
  for _ = 1, 1000 do local _ = p.tile end
  ok(cycles < 10, "reading fields of a plan collects no more often than memory is used", cycles)
  for _ = 1, 300 do p:simulate() end
  ok(cycles > 0, "  what is outside of Lua counts", cycles)
end
do
  local function memory_in_use()
    collectgarbage()
    collectgarbage()
    return select(2, require "millrace.core".cap_memory(0))
  end
  local p, steps, list = new_plan(graph), 0, {}
  local before = memory_in_use()
  collectgarbage "stop"
  for _ = 1, 300 do p:copy() end
  debug.sethook(function() steps = steps + 1 end, "", 1)
  collectgarbage "restart"
  for i = 1, 100000 do list[i] = i end                  -- takes memory, and leaves it to the next hook to collect
  debug.sethook()
  list = nil
  local bytes = memory_in_use() - before
  ok(steps > 300 and bytes < 20000, "what is collected between a hook and its function is freed", bytes)
end
for what, trick in ordered{
  ["wait"] = function(p)
    local list = {{"load_a"}, {"load_b"}}
    setmetatable({}, {__gc = function()
      for i = 1, 1000 do list[i] = i end
      list[1], list[2] = nil, nil
    end})
    return p.wait, "mma", list
  end,
  ["buffers"] = function(p)
    local versions = {a = 3, b = 3}
    setmetatable({}, {__gc = function() for i = 1, 100 do versions["x" .. i] = 2 end end})
    return p.buffers, versions
  end,
  ["append"] = function(p)
    local options = {lane = "c" .. 1, seu = ("tensor"):sub(1)}
    setmetatable({}, {__gc = function() options.lane, options.seu = nil, nil end})
    return p.append, "mma", options
  end,
} do
  for _ = 1, 20 do
    local p = new_plan(graph)
    local f, first, second = trick(p)
    for _ = 1, 200 do
      pcall(f, p, first, second)
      local _ = ("x"):rep(100)
    end
  end
  ok(true, "tables that change under " .. what)
end
local many = mr.array("bf16", {4096, 128})
local reads = 0
local some = gemm{m = 4, n = 4, k = 128}
local few = mr.array("bf16", {4, 128})
good, message = pcall(some.reference, some, setmetatable({}, {__index = function()
  reads = reads + 1
  return reads > 2 and many or few
end}))
ok(good and message.C, "inputs that change between two looks are read once", message)
local own = mr.array("f32", {4}, 1)
own:fill(function(i)
  own:fill(0)
  debug.getmetatable(own).__gc(own)
  return i
end)
is(own[4], 4.0, "an array that is filled while it is filled")
collectgarbage "stop"
ok(new_plan(graph):check(), "with the collector stopped")
ok(not collectgarbage "isrunning", "  which stays stopped")
collectgarbage "restart"
ok(collectgarbage "isrunning", "and with it running")
local dead = coroutine.create(function() return mr.plan(graph):simulate() end)
ok(not coroutine.resume(dead) and new_plan(graph) and collectgarbage "isrunning", "it runs after an error that ended a coroutine")
still_works "changing tables"

-- Coroutines ----------------------------------------------------------------------------

local co = coroutine.wrap(function() return gemm{m = 64, n = 64, k = 64} end)
local born = co()
co = nil
collectgarbage()
ok(born:graph{tile = {m = 8}}, "a program bound in a coroutine that is gone")
co = coroutine.wrap(function() return new_plan(graph) end)
local p = co()
co = nil
collectgarbage()
ok(p:check() and p:simulate(), "  a plan")
for _, where in ipairs{"task", "phase", "loop"} do
  for _ = 1, 10 do
    local stays = coroutine.create(function()
      mr.program("t", function(q)
        local n = q:axis("n", 4)
        q[where](q, where == "loop" and n or "x", coroutine.yield)
      end){}
    end)
    good, message = coroutine.resume(stays)
    if not good or coroutine.status(stays) ~= "suspended" then ok(false, where, message) end
  end
  collectgarbage()
  ok(true, where .. ": suspended for ever")
end
local steps = {}
co = coroutine.wrap(function()
  return mr.program("slow", function(q)
    local m, n = q:axes("m", "n")
    coroutine.yield "axes"
    local X, Y, c = q:input("X", {m, n}), q:output("Y", {m}), q:carry("c", {m}, 0)
    q:loop(n, function()
      coroutine.yield "loop"
      c:add(q:task("t", function()
        coroutine.yield "task"
        return n:index():to "f32":rowsum(n)
      end))
    end)
    Y:store(c)
  end):bind{m = 4, n = 4}
end)
for step = 1, 4 do
  steps[step] = co()
  still_works("a pause of a program, " .. step)
end
ok(steps[1] == "axes" and steps[2] == "loop" and steps[3] == "task", "a program in several functions")
good = pcall(steps[4].graph, steps[4])
ok(good, "  is complete in the end")
for what, f in ordered{
  ["filling an array"] = function() mr.array("f32", {3}, function() coroutine.yield() end) end,
  ["a table of inputs"] = function()
    bound:reference(setmetatable({}, {__index = function() coroutine.yield() end}))
  end,
} do
  good, message = pcall(coroutine.wrap(f))
  like(message, "attempt to yield across a C%-call boundary", "no yield while " .. what)
end
local together = {}
for k = 1, 20 do
  together[k] = coroutine.wrap(function()
    return mr.program("t" .. k, function(q)
      local n = q:axis("n", k)
      coroutine.yield()
      q:output("Y", {n}):store(n:index())
      coroutine.yield()
    end){}
  end)
end
for _ = 1, 2 do for k = 1, 20 do together[k]() end end
local sum = 0
for k = 1, 20 do sum = sum + together[k]().axes.n end
is(sum, 210, "twenty programs at the same time")
still_works "coroutines"

-- Nothing is kept: what failed is collected.
local live = setmetatable({}, {__mode = "k"})
for _ = 1, 50 do
  pcall(mr.program("t", function(q)
    live[q] = true
    live[q:axis("n", 4)] = true
    error {}
  end), {})
  local q = new_plan(graph)
  live[q] = true
  pcall(q.append, q, "nothing")
  pcall(q.simulate, q)
end
collectgarbage()
collectgarbage()
is(next(live), nil, "what failed is collected")

---- bounds of loops --------------------------------------------------------------

-- A bound by an axis that another loop runs over, inside this one or next to it, has no value where the loop begins.
for _, inside in ipairs{true, false} do
  local program = mr.program("bounds", function(p)
    local i, j = p:axes("i", "j")
    local X, Y = p:input("X", {i, j}), p:output("Y", {i, j}, "f32")
    local function copy() p:loop(j, function() Y:store("put", p:load("get", X)) end) end
    if inside then return p:loop(i, {from = j + 5}, copy) end
    copy()
    local Z = p:output("Z", {j}, "f32")
    local z = p:carry("z", {j}, 0)
    p:loop(i, {upto = j + 1}, function() z:add(mr.rowsum(p:load("again", X), i)) end)
    Z:store("sums", z)
  end)
  local good, message = pcall(program.bind, program, {i = 8, j = 16})
  ok(not good, "a bound by the axis of a loop " .. (inside and "inside" or "next to it"))
  like(message, "errors%.t%.lua:%d+: '" .. (inside and "from" or "upto") .. "' of the loop over 'i' depends on 'j', but this " ..
    "loop is not inside the loop over {j} at line %d+", "  says which loop and axis")
end

tap.done_testing()
