-- kernel.lua - plan:compile and what a kernel does.

local core = require "millrace.core"
local given_options = require "millrace.options"
local record = require("millrace.record").of
local repairs = require "millrace.repairs"
local tile = require "millrace.tile"
local within = require "millrace.within"
local raise, show, entry, late, expect = core.raise, core.show, core.entry, core.late, core.expect

-- Which reference check() uses: the flops a second of the interpreter and of the plain kernel on one core; the
-- interpreter if it takes at most SOON seconds; an error if the CPU would take more than LATE seconds.
local INTERPRETER, HOST, SOON, LATE = 1.3e9, 5e9, 2, 300
local A_BYTE <const> = 50                               -- element-wise work on one, as so many operations of products

local function median(list)
  table.sort(list)
  return list[(#list + 1) // 2]
end

local ON_HOST <const> = "plan:compile{target=\"host\"} runs the same text on the CPU"

local function bound_of(k) return k.plan.graph.program end

-- The options of a call; of a kernel also the names of axes whose sizes are known at launch.
local function options(o, what, ...)
  o = given_options.check(o, what, {...})
  given_options.seconds(o, what, {"limit", "seconds"})
  return o
end

-- What a call is for: its options, and the sizes that the launch has, by axis; nil if the program knows all. The sizes are
-- those of the options, of the inputs' shapes, or else, without inputs, the largest.
local function launch(k, given, what, inputs, ...)
  local names, any = {...}, core.any_axes(bound_of(k))
  names[#names + 1] = any and "sizes" or nil
  for axis in pairs(any or {}) do names[#names + 1] = axis end
  local o = options(given, what, table.unpack(names))
  inputs = inputs or o.inputs
  if not any then return o, nil end
  expect(o.sizes == nil or type(o.sizes) == "table", what .. ": sizes", "table of sizes by axis", o.sizes)
  local sizes = {}
  for axis, n in pairs(o.sizes or {}) do sizes[axis] = n end
  for axis, range in pairs(any) do
    if o[axis] ~= nil then sizes[axis] = o[axis] end
    for _, t in ipairs(sizes[axis] == nil and not range.like and type(inputs) == "table" and bound_of(k).tensors or {}) do
      for d, name in ipairs(t.axes) do
        local x = name == axis and t.role == "input" and inputs[t.name]
        if sizes[axis] == nil and core.is(x, "millrace.array") then sizes[axis] = x:shape()[d] end
      end
    end
    if sizes[axis] == nil and not range.like and inputs ~= nil then
      raise(("%s: the size of axis '%s' is known at launch, and no input that was given has it; write sizes={%s=...}"):format(what,
        axis, axis))
    end
    if not range.like then sizes[axis] = sizes[axis] or range.max end
  end
  for axis, range in pairs(any) do sizes[axis] = sizes[axis] or sizes[range.like] end
  core.check_sizes(bound_of(k), what, {sizes = sizes})
  tile.at_sizes(bound_of(k), sizes)
  return o, sizes
end

-- The program at these sizes.
local function bound_at(k, sizes) return sizes and tile.at_sizes(bound_of(k), sizes) or bound_of(k) end

local function check_kernel(k, what)
  if not core.target(k) then raise(("%s: kernel expected, got %s"):format(what, show(k))) end
end

-- Called before inputs are made. A compiled kernel has registers.
local function check_compiled(k, what)
  if k.target ~= "host" and k.registers == 0 then
    raise(what .. ": this kernel is text alone; compile it without text=true")
  end
  if k.target ~= "hip" then return end
  local found, why = core.attached "hip"
  if not found then raise(("%s: no AMD GPU to run it on: %s; %s"):format(what, why, ON_HOST)) end
end

-- The outputs of one run, on the device or on the CPU. inputs nil: random ones of the seed, which the device makes
-- itself. Raises what the CPU's runtime finds wrong (a race, a deadlock, an unbalanced barrier).
local function execute(k, inputs, o, sizes)
  inputs = inputs or sizes and bound_at(k, sizes):inputs{seed = o.seed}
  if k.target ~= "host" then return (core.run(k, inputs, {limit = o.limit, seed = o.seed, sizes = sizes})) end
  inputs = inputs or bound_of(k):inputs{seed = o.seed}
  local outputs, report = core.host_run(k, inputs, {seed = o.seed, limit = o.limit, race = o.race ~= false, sizes = sizes})
  if report then raise("run: " .. report) end
  return outputs
end

-- A tile of the program's, at smaller sizes.
local function tile_within(tile, bound)
  local small = {}
  for axis, n in pairs(tile) do small[axis] = math.min(n, bound.axes[axis]) end
  return small
end

-- The fastest reference that is there.
local function reference_for(k, bound)
  local graph = bound == bound_of(k) and k.plan.graph or bound:graph{tile = tile_within(k.plan.graph.tile, bound)}
  local flops = graph.flops + A_BYTE * graph.bytes
  if flops / INTERPRETER <= SOON then return "interpreter" end
  if k.target == "cuda" or core.attached() then return "device" end
  if flops / HOST > LATE then
    raise(("check: the reference for %.3g operations takes this CPU about %.0f minutes; check the plan at smaller "
      .. "sizes, or say check{reference=\"host\"} and wait"):format(flops, flops / HOST / 60))
  end
  return "host"
end

local element = record("element", "output index tile got want allowed", {__name = "millrace.element", __tostring = function(w)
  local tile = {}
  for axis, i in pairs(w.tile) do tile[#tile + 1] = ("%s=%d"):format(axis, i) end
  table.sort(tile)
  return ("%s[%s]%s is %.5g instead of %.5g, off by %.2g; its roundings allow %.2g"):format(w.output, table.concat(w.index, ", "),
    #tile > 0 and (" in tile {%s}"):format(table.concat(tile, ", ")) or "", w.got, w.want, math.abs(w.got - w.want), w.allowed)
end})

local checked = record("comparison with the reference", "relative max_abs ok reference allowed wrong worst stray notes",
  {methods = {json = late("report", "comparison")}, __name = "millrace.check", __tostring = function(e)
    local text = ("%s the reference (%s): relative error %.2g, of %.2g allowed; greatest difference %.2g"):format(
      e.ok and "agrees with" or "differs from", e.reference, e.relative, e.allowed, e.max_abs)
    for _, note in ipairs(e.notes) do text = ("%s\nnote: %s; k:check{inputs=} takes others"):format(text, note) end
    if e.ok then return text end
    return ("%s\n%d element%s wrong; %s"):format(text, e.wrong, e.wrong == 1 and " is" or "s are",
      e.stray or "the worst: " .. tostring(e.worst))
  end})

local function check(k, given)
  check_kernel(k, "check")
  local o, sizes = launch(k, given, "check", nil, "seed", "limit", "race", "reference", "inputs")
  local where = o.reference
  if where ~= nil and where ~= "interpreter" and where ~= "host" and where ~= "device" then
    raise(("check: there is no reference %s (known: \"interpreter\", \"host\", \"device\")"):format(show(where)))
  end
  check_compiled(k, "check")
  local bound = bound_at(k, sizes)
  where = where or reference_for(k, bound)
  local on_device = k.target ~= "host" and where == "device" and not sizes
  local inputs = o.inputs
  if inputs == nil and not on_device then inputs = bound:inputs{seed = o.seed} end
  local got = execute(k, inputs, o, sizes)
  local want, allowed = core.reference_allowing(bound, inputs,
    {on = where, seed = o.seed, tile = core.adds(bound) and tile_within(k.plan.graph.tile, bound) or nil})
  local found = within(bound, got, want, allowed, k.plan.graph.tile)
  found.reference = where
  if found.worst then setmetatable(found.worst, element) end
  return setmetatable(found, checked)
end

local memory_counts = setmetatable({}, {__mode = "k"})  -- benchmarks in which the bytes count

local timed = record("benchmark", "ms min max runs tflops gbps bandwidth_share watts cache",
  {methods = {json = late("report", "benchmark")}, __name = "millrace.bench", __tostring = function(b)
    local how = {("%d run%s, %.4g to %.4g ms"):format(b.runs, b.runs == 1 and "" or "s", b.min, b.max)}
    how[#how + 1] = b.cache
    how[#how + 1] = b.watts and ("%.0f W"):format(b.watts)
    local speed = {("%.4g ms"):format(b.ms)}
    if b.tflops > 0 then speed[2] = ("%.3g TFLOP/s"):format(b.tflops) end
    speed[#speed + 1] = ("%.3g GB/s"):format(b.gbps)
    if memory_counts[b] then speed[#speed + 1] = ("%.0f %% of the bandwidth"):format(100 * b.bandwidth_share) end
    return ("%s\n%s"):format(table.concat(speed, ", "), table.concat(how, "; "))
  end})

local function bench(k, given)
  check_kernel(k, "bench")
  local o, sizes = launch(k, given, "bench", nil, "seconds", "limit", "inputs")
  check_compiled(k, "bench")
  local bound, graph = bound_at(k, sizes), k.plan.graph
  local inputs = o.inputs or (sizes and bound:inputs()) or nil
  if sizes then graph = bound:graph{tile = tile_within(graph.tile, bound)} end
  local _, ms, how = core.run(k, inputs, {seconds = o.seconds or 1, limit = o.limit, sizes = sizes})
  local runs, middle = #ms, median(ms)
  local speed, share = core.speed_at(graph, k.plan.device, middle * 1e-3)
  local b = setmetatable({ms = middle, min = ms[1], max = ms[runs], runs = runs, tflops = graph.flops / middle / 1e9,
    gbps = graph.bytes / middle / 1e6, bandwidth_share = share, watts = how.watts, cache = how.cache}, timed)
  memory_counts[b] = speed:find "bandwidth" and true or nil
  return b
end

local function run(k, inputs, given)
  check_kernel(k, "run")
  local o, sizes = launch(k, given, "run", inputs, "seed", "limit", "race")
  check_compiled(k, "run")
  return execute(k, inputs, o, sizes)
end

-- How names of single files end that somebody may take the folder for.
local file_endings <const> = {cu = true, cuh = true, c = true, h = true, hip = true, cpp = true, py = true, so = true, cubin = true, ptx = true}

-- {X = "Y"} of an option as {"X", "Y"}, in the order of the alphabet.
local function names_of(o, key)
  local list = {}
  expect(o[key] == nil or type(o[key]) == "table", "export", key .. ": table of names", o[key])
  for of, is in pairs(o[key] or {}) do
    if type(of) ~= "string" or type(is) ~= "string" then
      raise(("export: %s are names of tensors by names, got %s = %s"):format(key, show(of), show(is)))
    end
    list[#list + 1] = of
  end
  table.sort(list)
  for i = #list, 1, -1 do table.insert(list, i + 1, o[key][list[i]]) end
  return list
end

local function export(k, dir, given)
  check_kernel(k, "export")
  if type(dir) == "string" and file_endings[dir:match "%.(%w+)$" or ""] and core.file_kind(dir) ~= "folder" then
    raise(("export: %s would be a folder, as a kernel is several files: name one, as in k:export(%q); k.source is the text of the kernel alone")
      :format(show(dir), (dir:gsub("%.%w+$", ""))))
  end
  local o = options(given, "export", "name", "torch", "backward", "gradients", "saved")
  expect(o.torch == nil or type(o.torch) == "boolean", "export", "torch: true or false", o.torch)
  for _, key in ipairs{"backward", "gradients", "saved"} do
    if o[key] ~= nil and not (key == "backward" and o.torch or key ~= "backward" and o.backward) then
      raise(("export: %s= goes with %s"):format(key, key == "backward" and "torch=true" or "backward="))
    end
  end
  if not o.torch then return core.export(k, dir, o.name) end
  if o.backward ~= nil then check_kernel(o.backward, "export") end
  return core.export(k, dir, o.name, true, o.backward, names_of(o, "gradients"), names_of(o, "saved"))
end

-- The option target=, by default the one that prints for the plan's device.
local function target_of(plan, o, what)
  local targets = core.targets()
  if o.target == nil then return core.target_for(plan) end
  for i, name in ipairs(targets) do
    if o.target == name then return name end
    targets[i] = ("%q"):format(name)
  end
  raise(("%s: there is no target %s (known: %s)"):format(what, show(o.target), table.concat(targets, ", ")))
end

-- The role program of a plan: tostring() is the dump, lane by lane.
local role_program = record("role program", "target text", {__name = "millrace.role_program", __tostring = function(k) return k.text end})

-- What passes were called before; deprecated.
local renamed = {clear = "unmask", before = "hoist", parts = "partial_sums"}

-- The number of a pass of lowering that `is` holds for, from its name.
local function pass_of(what, name, is, that)
  local known = {}
  for i, p in ipairs(core.passes()) do
    if p[is] then
      if p.name == (renamed[name] or name) then return i end
      known[#known + 1] = p.name
    end
  end
  raise(("%s: there is no pass %s%s%s (known: %s)"):format(what, show(name), that, core.hint(tostring(name), known),
    table.concat(known, ", ")))
end

-- What f(plan, ...) returns. If it fails because no kernel can be made of the plan, that is said as of any plan that is not legal, at
-- the call and not at the line of the program that the kernel would be for.
local function lowered(what, f, plan, ...)
  local good, result = core.try(f, plan, ...)
  if good then return result end
  local message = tostring(result)
  if core.is(plan, "millrace.plan") and not message:find("the plan is not legal", 1, true) then
    local count, first = repairs.first(plan)
    if count > 0 and first.code ~= "kernel" then
      raise(("%s: the plan is not legal (%d problem%s; plan:check() lists them): %s: %s; try %s"):format(what, count,
        count == 1 and "" or "s", first.code, first.message, first.hint))
    end
  end
  error(result, 0)
end

local function role(plan, given)
  local o = options(given, "kernel", "target", "after")
  local after = o.after ~= nil and pass_of("kernel", o.after, "tree", " that makes a tree") or nil
  return setmetatable({target = target_of(plan, o, "kernel"), text = lowered("kernel", core.role_text, plan, after)}, role_program)
end

-- The bits of passes of lowering, from their names.
local function passes(what, names)
  local bits = 0
  if names ~= nil and type(names) ~= "table" then
    raise(("%s: without must be a list of passes, got %s"):format(what, show(names)))
  end
  for _, name in ipairs(names or {}) do
    bits = bits | 1 << pass_of(what, name, "optional", " that can be left out") - 1
  end
  return bits
end

local function compile(plan, given)
  local o = options(given, "compile", "target", "text", "without")
  local without, target = passes("compile", o.without), target_of(plan, o, "compile")
  return lowered("compile", core.build, plan, target == "host" or not o.text, nil, without, target)
end

-- The description of a kernel: what it is, its problems, and what to do next.
local function as_text(k)
  if not core.target(k) then return "kernel" end
  local sizes = {}
  for axis, range in pairs(core.any_axes(bound_of(k)) or {}) do
    sizes[#sizes + 1] = range.like and ("%s as %s"):format(axis, range.like)
      or ("%s up to %d%s"):format(axis, range.max, range.multiple > 1 and (" in steps of %d"):format(range.multiple) or "")
  end
  table.sort(sizes)
  local lines = {("kernel of %s for %s%s"):format(bound_of(k).name, k.target == "host" and "the CPU" or k.plan.device.name,
    #sizes > 0 and ", any " .. table.concat(sizes, ", ") or "")}
  if k.target == "host" then
    lines[2] = "go on with k:check(), k:run(), k:trace(), k:show(), k:export(dir)"
  elseif k.target == "hip" then
    lines[2] = k.registers == 0 and "HIP, text alone, not measured by us; go on with k.source, plan:compile(), plan:compile{target=\"host\"}" or
      ("HIP, not measured by us: %d registers a thread, %s, %.4g KiB of shared memory"):format(k.registers,
        k.spills > 0 and k.spills .. " bytes of scratch memory" or "no spills", k.smem / 1024)
    lines[3] = k.registers > 0 and "go on with k:check(), k:bench(), k.source, plan:compile{target=\"host\"}" or nil
  elseif k.registers == 0 then
    lines[2] = "text alone, not compiled; go on with k.source, k:show(), plan:compile()"
  else
    lines[2] = ("%d registers a thread, %s, %.4g KiB of shared memory%s"):format(k.registers,
      k.spills > 0 and k.spills .. " bytes of spills" or "no spills", k.smem / 1024,
      #k.problems > 0 and ("; %d problem%s: k.problems"):format(#k.problems, #k.problems == 1 and "" or "s") or "")
    lines[3] = "go on with k:check(), k:bench(), k:trace(), k:show(), k:export(dir)"
  end
  return table.concat(lines, "\n")
end

return function()
  core.shown("millrace.kernel", as_text)
  core.shown("millrace.on_host", as_text)
  for _, class in ipairs{"millrace.kernel", "millrace.on_host"} do
    core.method(class, "run", entry(run))
    core.method(class, "check", entry(check))
    core.method(class, "export", entry(export))
  end
  core.method("millrace.kernel", "bench", entry(bench))
  core.method("millrace.on_host", "bench", entry(function(k, _)
    if core.target(k) ~= "host" then raise("bench: kernel expected, got " .. show(k)) end
    raise("bench: a kernel for the CPU is for its results and the order of its sTasks, its time says nothing about the device: "
      .. "plan:simulate() predicts it; on a machine with the device, plan:compile() gives a kernel with k:bench()")
  end))
  core.method("millrace.plan", "compile", entry(compile))
  core.method("millrace.plan", "kernel", entry(role))
  return {attached = entry(function() return core.attached() end)}
end
