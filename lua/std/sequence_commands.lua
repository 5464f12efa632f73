-- sequence_commands.lua - millrace check, show, predict and run of files that return a plan of a sequence. commands.lua reads the command line
-- and the files, and calls these with (plan, path, text, options); each returns whether all is well.

local core = require "millrace.core"
local draft = require "millrace.draft"
local json = require "millrace.json"
local loader = require "millrace.loader"
local sequences = require "millrace.sequence"
local launch_sizes = require "millrace.sequence_sizes"
local mr = require "millrace"

local commands = {}

-- FILE:LINE of a problem: in the file itself; else where its last launch is, or its end.
local function location_of(location, path, text)
  local file, line = (location or ""):match "^(.*):(%d+)$"
  if file and (file == path or "./" .. file == path) then return path, math.tointeger(tonumber(line)) end
  local last, n = 1, 0
  for one in (text .. "\n"):gmatch "([^\n]*)\n" do
    n = n + 1
    if one:find "sp:launch%(" or one:find "mr%.sequence_plan%(" then last = n end
  end
  return path, last
end

local function problem_texts(list, path, text)
  local out = {}
  for i, p in ipairs(list) do
    local file, line = location_of(p.location, path, text)
    local _, other = location_of(p.other_location, path, text)
    out[i] = ("%s:%d: %s: %s%s"):format(file, line, p.code, p.message, p.other_location and p.other_location ~= p.location and other ~= line
      and ("; the other statement is in line %d"):format(other) or "")
    if p.hint then out[i] = ("%s\n  repair: %s"):format(out[i], p.hint) end
  end
  return out
end

local function problems_as_json(list, path, text)
  local out = {}
  for i, p in ipairs(list) do
    local file, line = location_of(p.location, path, text)
    local _, other = location_of(p.other_location, path, text)
    out[i] = json.object("file line other_line code message hint call other tensor other_tensor", {file = file, line = line,
      other_line = p.other_location and other, code = p.code, message = p.message, hint = p.hint, call = p.call, other = p.other,
      tensor = p.tensor, other_tensor = p.other_tensor})
  end
  return json.list(out)
end

local function write_illegal(list, path, text)
  io.write(json.line(json.object("file legal problems", {file = path, legal = #list == 0, problems = problems_as_json(list, path, text)})), "\n")
end

local function need_legal(sp, path, text)
  local good, list = sp:check()
  if not good then error(table.concat(problem_texts(list, path, text), "\n"), 0) end
end

-- "mlp{d=32, f=64, m=64}"
local function name_of(seq)
  local _, given = sequences.origin(seq)
  local list = {}
  for i, key in ipairs(draft.keys(given or {})) do list[i] = ("%s=%s"):format(key, tostring(given[key])) end
  return ("%s{%s}"):format(seq.name, table.concat(list, ", "))
end

local function given_of(seq)
  local _, given = sequences.origin(seq)
  return json.object(table.concat(draft.keys(given or {}), " "), given or {})
end

function commands.check(sp, path, text, o)
  local good, list = sp:check()
  if o.json then
    write_illegal(list, path, text)
    return good
  end
  for _, problem in ipairs(problem_texts(list, path, text)) do io.write(problem, "\n") end
  if good then io.write(path, o.device and (": legal on %s\n"):format(o.device.name) or ": legal\n") end
  return good
end

function commands.show(sp, path, text)
  need_legal(sp, path, text)
  sp:show()
  return true
end

function commands.predict(sp, path, text, o)
  local good, list = sp:check()
  if o.json and not good then
    write_illegal(list, path, text)
    return false
  end
  need_legal(sp, path, text)
  local tl = sp:simulate()
  if o.json then
    local kernels = {}
    for i, k in ipairs(tl.kernels) do
      kernels[i] = json.object("name stream begins seconds gap flops bytes", k)
    end
    io.write(json.line(json.object("file legal sequence given device evidence seconds idle flops bytes tflops kernels", {file = path, legal = true,
      sequence = sp.sequence.name, given = given_of(sp.sequence), device = sp.device.name, evidence = "predicted", seconds = tl.seconds,
      idle = tl.idle, flops = tl.flops, bytes = tl.bytes, tflops = tl.flops / tl.seconds / 1e12, kernels = json.list(kernels)})), "\n")
  else
    io.write(("%s: predicted %.4g ms, %.3g TFLOP/s, no kernel runs for %.2g %%; %s on %s\n"):format(path, tl.seconds * 1e3,
      tl.flops / tl.seconds / 1e12, 100 * tl.idle / tl.seconds, name_of(sp.sequence), sp.device.name))
    for _, at in ipairs(launch_sizes.typical(sp.sequence)) do
      local typical = sp:simulate{sizes = at}
      io.write(("%s: predicted %.4g ms, %.3g TFLOP/s at %s\n"):format(path, typical.seconds * 1e3, typical.flops / typical.seconds / 1e12,
        launch_sizes.at_text(at)))
    end
  end
  return true
end

---- run --------------------------------------------------------------------------------------------

local FEW <const> = 1e10                                -- flops: a quarter of a minute of a CPU

-- The plan for other sizes, of which those that are not given stay.
local function at_sizes(sp, path, sizes)
  local program, own = sequences.origin(sp.sequence)
  local all = {}
  for name, n in pairs(own) do all[name] = n end
  for name, n in pairs(sizes) do all[name] = n end
  local good, bound = core.try(program.bind, program, all)
  if not good then error(("%s: --sizes: %s"):format(path, tostring(bound)), 0) end
  local other = loader.evaluate(mr, "load_plan", path, {[program.name] = bound}, sp.device)
  other:arena()                                         -- the offsets of the file are for its own sizes
  return other
end

-- What was asked for, in sizes that the sequence leaves to the launch, nil if none are, and in others.
local function divided(seq, asked)
  local any, launch, bind = launch_sizes.of(seq), {}, {}
  for name, n in pairs(asked or {}) do
    if any and any.largest[name] then launch[name] = n else bind[name] = n end
  end
  return next(launch) and launch, next(bind) and bind
end

-- The sizes at which kernels are compared: those that were asked for; else the largest and the typical ones. {} stands for the largest.
local function compared(seq, asked)
  return asked and {asked} or {{}, table.unpack(launch_sizes.typical(seq))}
end

local function flops_of(sp)
  local sum = 0
  for _, call in ipairs(sp.calls) do sum = sum + sp:plan_of(call.name).graph.flops end
  return sum
end

-- -> a table with status, of which "agrees" is good; "slow" and "no device": nothing is known of the outputs
local function run_plan(sp, path, o, at)
  local asked = o.on or core.gpu_target(sp:plan_of(sp.calls[1].name))
  local attached, why = asked ~= "host" and core.attached(asked), nil
  if o.on and o.on ~= "host" and not attached then
    attached, why = core.attached(o.on)
    return {status = "no device", target = o.on, error = ("%s: no device is attached, so that nothing was run: %s; --on host runs it on the CPU")
      :format(path, tostring(why))}
  end
  local target = attached and asked or "host"
  if target == "host" and flops_of(sp) > FEW and not o.on then
    return {status = "slow", target = target, error = ("%s: no device is attached, and %.2g flops take the CPU long; --sizes NAME=N,... with smaller "
      .. "sizes is faster; --on host does it anyway"):format(path, flops_of(sp))}
  end
  local k = sp:compile{target = target}
  local any, result = launch_sizes.of(sp.sequence), nil
  for _, sizes in ipairs(compared(sp.sequence, at)) do
    result = k:check{limit = o.limit, sizes = any and sizes}
    if not result.ok then break end
  end
  return {status = result.ok and "agrees" or "differs", target = target, check = result,
    benchmark = target ~= "host" and result.ok and k:bench() or nil}
end

local function run_as_json(sp, path, r)
  local c, b, calls = r.check, r.benchmark, {}
  for i, x in ipairs(c and c.calls or {}) do calls[i] = json.object("name ok relative allowed", x) end
  return json.line(json.object("file legal sequence given device target status check benchmark error", {file = path, legal = true,
    sequence = sp.sequence.name, given = given_of(sp.sequence), device = sp.device.name, target = r.target, status = r.status,
    check = c and json.object("ok relative calls differs", {ok = c.ok, relative = c.relative, calls = json.list(calls), differs = json.list(c.differs)}),
    benchmark = b and json.object("ms min max runs tflops gbps watts cache predicted", b), error = r.error})) .. "\n"
end

-- Returns also whether nothing is known of the outputs.
function commands.run(sp, path, text, o)
  local good, list = sp:check()
  if o.json and not good then
    write_illegal(list, path, text)
    return false
  end
  need_legal(sp, path, text)
  local at, sizes = divided(sp.sequence, o.sizes_of[sp.sequence.name] or o.sizes)
  if sizes then
    sp = at_sizes(sp, path, sizes)
    need_legal(sp, path, text)
  end
  local r = run_plan(sp, path, o, at)
  if o.json then
    io.write(run_as_json(sp, path, r))
    return r.status == "agrees", r.error ~= nil
  end
  if r.error then
    io.stdout:flush()
    io.stderr:write(r.error, "\n")
    return false, true
  end
  io.write(("%s: on %s, it is %s\n"):format(path, r.target == "host" and "the CPU" or "the device", tostring(r.check)))
  if r.benchmark then io.write(("%s: measured %s\n"):format(path, tostring(r.benchmark))) end
  return r.status == "agrees"
end

return commands
