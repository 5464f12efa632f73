-- sequence_run.lua - the reference of a sequence; compiling and running its kernels.

local core = require "millrace.core"
local options = require "millrace.options"
local record = require("millrace.record").of
local launch_sizes = require "millrace.sequence_sizes"
local late = core.late
local within = require "millrace.within"
local plan_key = require("millrace.sequence").plan_key
local raise, entry, expect = core.raise, core.entry, core.expect

local NAMED <const> = 8                                 -- calls that a text of kernels names

---- the reference ---------------------------------------------------------------------------------

-- Of arrays by name of the sequence's tensors: what a call's program is given, by its own names and in its shapes.
local function arguments(seq, call, arrays, role)
  local bound, tensors, list = seq:program(call), {}, {}
  for _, t in ipairs(bound.tensors) do tensors[t.name] = t end
  for _, x in ipairs(core.sequence_args(seq, call)) do
    local t = tensors[x.own]
    if t.role == role then list[x.own] = core.array_part(arrays[x.tensor], x.offset, t.shape) end
  end
  return list
end

-- What the sequence computes: its programs one after the other, each by its reference in double precision, whose results are
-- rounded to the types of the tensors that they are stored to. -> arrays by name, of outputs and states
local function reference(seq, inputs, given)
  expect(core.is(seq, "millrace.sequence"), "reference", "sequence with sizes", seq)
  expect(type(inputs) == "table", "reference", "table of inputs", inputs)
  local o = options.check(given, "reference", {"on", "limit", table.unpack(launch_sizes.options(seq))})
  seq = launch_sizes.at(seq, launch_sizes.launched(seq, o, inputs, "reference") or {})
  local arrays, out = {}, {}
  for _, t in ipairs(seq.tensors) do
    local is_given = t.role == "input" or t.role == "state"
    if is_given and not core.is(inputs[t.name], "millrace.array") then raise(("reference: %s '%s' is missing"):format(t.role, t.name)) end
    arrays[t.name] = is_given and inputs[t.name] or core.array(t.dtype, t.shape)
    if t.role == "state" then arrays[t.name] = arrays[t.name]:copy() end
    if t.role == "output" or t.role == "state" then out[t.name] = arrays[t.name] end
  end
  for _, call in ipairs(core.sequence_call_names(seq)) do
    local want, allowed = core.reference_allowing(seq:program(call), arguments(seq, call, arrays, "input"), {on = o.on, limit = o.limit})
    for _, x in ipairs(core.sequence_args(seq, call)) do
      if x.writes then core.array_store(arrays[x.tensor], x.offset, want[x.own], allowed[x.own]) end
    end
  end
  return out
end

---- compiled sequences ----------------------------------------------------------------------------

local kernel

local function check_kernel(k, what) expect(getmetatable(k) == kernel, what, "compiled sequence", k) end

local function inputs_of(sp, given, seed) return given or sp.sequence:inputs{seed = seed} end

-- The options of a call, also those that say sizes that the sequence leaves to the launch; the plan at the sizes that they or the arrays
-- say, and these sizes, nil if the sequence leaves none.
local function launch(k, given, what, inputs, names)
  local seq = k.plan.sequence
  local o = options.check(given, what, table.move(launch_sizes.options(seq), 1, #launch_sizes.options(seq), #names + 1, names))
  local at = launch_sizes.launched(seq, o, inputs or o.inputs, what)
  return o, launch_sizes.plan_at(k.plan, at), at
end

-- sk:run([inputs[, {seed=, limit=, race=, sizes=}]]) -> outputs and states, by name
local function run(k, inputs, given)
  check_kernel(k, "run")
  local o, sp = launch(k, given, "run", inputs, {"seed", "limit", "race"})
  return (core.sequence_run(sp, k.kernels, inputs_of(sp, inputs, o.seed), {seed = o.seed, limit = o.limit, race = o.race}))
end

local checked = record("comparison of a sequence with the references of its programs", "ok relative calls differs",
  {__name = "millrace.sequence_check", __tostring = function(e)
    local lines = {("%s; the greatest relative error of a call is %.2g"):format(e.ok and "right" or "wrong", e.relative)}
    for _, c in ipairs(e.calls) do
      if not c.ok then lines[#lines + 1] = ("%s: relative error %.2g, of %.2g allowed%s"):format(c.name, c.relative, c.allowed,
        c.stray and "; " .. c.stray or "") end
    end
    for _, name in ipairs(e.differs) do
      lines[#lines + 1] = ("'%s' differs between the run as planned and the calls run one by one with separate memory for each temporary"):format(name)
    end
    return table.concat(lines, "\n")
  end})

-- Run a call on the arrays of all tensors, and compare its outputs with the reference on what it was given: before it runs all that it
-- may overwrite is copied. states: which tensors are states.
local function compare_call(k, sp, call, arrays, states, how, o)
  local seq = sp.sequence
  local bound = seq:program(call)
  local inputs = arguments(seq, call, arrays, "input")
  local had, shape = {}, {}                              -- what the call's outputs had: known of states, which keep what is not stored
  for _, t in ipairs(bound.tensors) do shape[t.name] = t.shape end
  for _, x in ipairs(core.sequence_args(seq, call)) do
    had[x.own] = x.writes and states[x.tensor] and core.array_part(arrays[x.tensor], x.offset, shape[x.own])
  end
  core.sequence_run_call(sp, k.kernels, call, arrays, how)
  local want, allowed = core.reference_allowing(bound, inputs, {on = o.reference, limit = o.limit})
  local found = within(bound, arguments(seq, call, arrays, "output"), want, allowed, {}, had)
  return {name = call, ok = found.ok, relative = found.relative, allowed = found.allowed, worst = found.worst, stray = found.stray}
end

-- sk:check([{seed=, limit=, race=, inputs=, reference=, sizes=}]): is it right? The calls run one by one, with memory for each temporary, and
-- each is compared with the reference of its program on what it got; then the run as planned must give the same bits, or, where a program
-- adds in memory in any order, nearly the same. reference=false leaves out the first.
local function check(k, given)
  check_kernel(k, "check")
  local o, sp = launch(k, given, "check", nil, {"seed", "limit", "race", "inputs", "reference"})
  local seq, how = sp.sequence, {seed = o.seed, limit = o.limit, race = o.race}
  local inputs, adds = inputs_of(sp, o.inputs, o.seed), false
  local found = {ok = true, relative = 0, calls = {}, differs = {}}
  local arrays, states = core.sequence_arrays(seq, inputs), {}
  for _, t in ipairs(seq.tensors) do states[t.name] = t.role == "state" end
  for i, call in ipairs(core.sequence_call_names(seq)) do
    adds = adds or core.adds(seq:program(call))
    if o.reference == false then
      core.sequence_run_call(sp, k.kernels, call, arrays, how)
    else
      local one = compare_call(k, sp, call, arrays, states, how, o)
      found.calls[i], found.ok = one, found.ok and one.ok
      found.relative = math.max(found.relative, one.relative)
    end
  end
  for name, got in pairs((core.sequence_run(sp, k.kernels, inputs, how))) do
    local same = core.array_equal(got, arrays[name])
    if not same and adds then same = select(2, got:max_error(arrays[name])) < 1e-2 end
    if not same then found.differs[#found.differs + 1] = name end
  end
  table.sort(found.differs)
  found.ok = found.ok and #found.differs == 0
  return setmetatable(found, checked)
end

local timed = record("benchmark of a sequence", "ms min max runs tflops gbps watts cache graph predicted",
  {__name = "millrace.sequence_bench", __tostring = function(b)
    return ("%.4g ms (predicted %.4g), %.3g TFLOP/s, %.3g GB/s\n%d runs, %.4g to %.4g ms%s%s%s"):format(b.ms, b.predicted, b.tflops, b.gbps,
      b.runs, b.min, b.max, b.graph and "; as a graph" or "", b.cache and "; " .. b.cache or "", b.watts and ("; %.0f W"):format(b.watts) or "")
  end})

-- sk:bench([{seconds=, limit=, inputs=, graph=true, sizes=}])
local function bench(k, given)
  check_kernel(k, "bench")
  local o, sp, at = launch(k, given, "bench", nil, {"seconds", "limit", "inputs", "graph"})
  options.seconds(o, "bench", {"seconds", "limit"})
  if k.target == "host" then
    raise "bench: kernels for the CPU are for results, their time says nothing about the device: sp:simulate() predicts it"
  end
  local _, ms, how = core.sequence_run(sp, k.kernels, inputs_of(sp, o.inputs), {seconds = o.seconds or 1, limit = o.limit, graph = o.graph})
  table.sort(ms)
  local middle, tl = ms[(#ms + 1) // 2], k.plan:simulate(at and {sizes = at})
  return setmetatable({ms = middle, min = ms[1], max = ms[#ms], runs = #ms, tflops = tl.flops / middle / 1e9,
    gbps = tl.bytes / middle / 1e6, watts = how.watts, cache = how.cache, graph = how.graph, predicted = tl.seconds * 1e3}, timed)
end

-- sk:trace([{seed=, limit=, inputs=, seconds=}]) -> the measured timeline of all kernels, at the largest sizes if some are left to the launch
local function trace(k, given)
  check_kernel(k, "trace")
  local o = options.check(given, "trace", {"seed", "limit", "inputs", "seconds"})
  options.seconds(o, "trace", {"seconds", "limit"})
  local lines, begins, ends = core.sequence_trace(k.plan, k.kernels, inputs_of(k.plan, o.inputs, o.seed),
    {seed = o.seed, limit = o.limit, seconds = o.seconds})
  return core.sequence_timeline(k.plan, lines, begins, ends)
end

kernel = record("compiled sequence", "plan target kernels source", {__name = "millrace.sequence_kernel",
  methods = {show = entry(function(k)
    check_kernel(k, "show")
    return k.plan:show()
  end), run = entry(run), check = entry(check), bench = entry(bench), trace = entry(trace), export = late("sequence_export", "export")},
  __tostring = function(k)
    local any, names = launch_sizes.text(k.plan.sequence), core.sequence_call_names(k.plan.sequence)
    if #names > NAMED then names[NAMED + 1] = ("%d more"):format(#names - NAMED) end
    return ("kernels of sequence %s for %s%s: %s"):format(k.plan.sequence.name, k.target == "host" and "the CPU" or k.plan.device.name,
      any ~= "" and ", " .. any or "", table.concat(names, ", ", 1, math.min(#names, NAMED + 1)))
  end})

-- sp:compile([{target=, text=, kernels=}]). Calls with equal plans share a kernel. kernels: of the calls in order of the sequence, compiled
-- of their plans before.
local function compile(sp, given)
  expect(core.is(sp, "millrace.sequence_plan"), "compile", "plan of a sequence", sp)
  core.check_sequence_plan(sp, "compile")
  sp = core.sequence_fixed(sp)                           -- kernels run as this plan says, whatever becomes of the user's
  local o, made, kernels, sources = options.check(given, "compile", {"target", "text", "kernels"}), {}, {}, {}
  for i, p in ipairs(core.sequence_plans(sp)) do
    local text = plan_key(p)
    if not made[text] and o.kernels and core.target(o.kernels[i]) and plan_key(o.kernels[i].plan) == text then
      made[text] = o.kernels[i]
      sources[#sources + 1] = made[text].source
    elseif not made[text] then
      made[text] = p:compile{target = o.target, text = o.text}
      sources[#sources + 1] = made[text].source
    end
    kernels[i] = made[text]
  end
  return setmetatable({plan = sp, target = kernels[1].target, kernels = kernels, source = table.concat(sources, "\n")}, kernel)
end

local compiled = setmetatable({}, {__mode = "k"})       -- plan of a sequence -> {statements, its kernels}

-- Methods of the plan that first compile it, if it has changed since.
local function of_plan(f, what)
  return function(sp, ...)
    expect(core.is(sp, "millrace.sequence_plan"), what, "plan of a sequence", sp)
    local text, known = sp:script(), compiled[sp]
    if not known or known[1] ~= text then
      known = {text, compile(sp)}
      compiled[sp] = known
    end
    return f(known[2], ...)
  end
end

return function()
  core.method("millrace.sequence", "reference", entry(reference))
  core.method("millrace.sequence", "at_sizes", entry(launch_sizes.at))
  core.method("millrace.sequence", "inputs", entry(function(seq, given)
    return core.sequence_inputs(seq, options.check(given, "inputs", {"seed"}).seed)
  end))
  core.method("millrace.sequence_plan", "compile", entry(compile))
  core.method("millrace.sequence_plan", "run", entry(of_plan(run, "run")))
  core.method("millrace.sequence_plan", "bench", entry(of_plan(bench, "bench")))
  core.method("millrace.sequence_plan", "trace", entry(of_plan(trace, "trace")))
  core.method("millrace.sequence_plan", "export", entry(of_plan(late("sequence_export", "export"), "export")))
  return {}
end
