-- sequence_export.lua - a compiled sequence as files that need no Millrace: each kernel's own (src/run/export), and a launcher in C and a
-- module for torch tensors that run all of them as the plan says.

local core = require "millrace.core"
local options = require "millrace.options"
local calls_of = require "millrace.sequence_calls"
local text = require "millrace.export_text"
local fill, joined, of_role, identifier, python = text.fill, text.joined, text.of_role, text.identifier, text.python
local export_sizes = require "millrace.export_sizes"
local launch_sizes = require "millrace.sequence_sizes"
local raise, show, expect = core.raise, core.show, core.expect

-- The same as a package of a PyTorch operator (src/run/export_torch.h).
local function torch_package(k, dir, words, kernels, names, all)
  local tensors, sizes = {}, export_sizes.of(k.plan.sequence)
  for i, t in ipairs(all) do
    tensors[i] = {name = python(t.name), type = core.torch_type(t.dtype), role = t.role, shape = text.torch_shape(t), size_of = sizes:size_of(t)}
  end
  return core.export_torch_sequence(dir, {name = words.NAME, about = ("sequence %s from a plan for %s"):format(words.SEQUENCE, words.DEVICE),
    header = fill("sequence.h", words), launcher = fill("sequence.c", words), temporaries = math.tointeger(words.BYTES)}, kernels, names, tensors,
    sizes:ranges())
end

-- sk:export(dir[, {name=, torch=, others={sk, ...}}]) -> the paths written. torch: true: a package of a PyTorch operator. others: of the same
-- sequence, compiled at other sizes; then the launcher and the module choose among all of them.
local function export(k, dir, given)
  local o = options.check(given, "export", {"name", "torch", "backward", "others"})
  local sp = k.plan
  local seq = sp.sequence
  expect(type(dir) == "string" and dir ~= "", "export", "folder", dir)
  expect(o.name == nil or type(o.name) == "string", "export: name", "name", o.name)
  expect(o.torch == nil or type(o.torch) == "boolean", "export", "torch: true or false", o.torch)
  if o.backward ~= nil then
    raise("export: an operator of a sequence has no gradient: export that of the gradients by a name of its own, and join both with " ..
      "torch.library.register_autograd")
  end
  if o.torch and o.others then raise "export: an operator has the sizes of one compiled sequence, so others= does not go with torch=true" end
  if k.target == "host" then
    raise "export: a sequence is exported for a GPU; its kernels for the CPU are exported one by one, k.kernels[1]:export(dir)"
  end
  local name = identifier(o.name or seq.name)
  if not name:find "^[%a_]" then raise(("export: %s cannot be the name of a module"):format(show(name))) end
  if o.others then
    expect(type(o.others) == "table" and #o.others > 0, "export: others", "list of compiled sequences", o.others)
    return require("millrace.sequence_table").sizes({k, table.unpack(o.others)}, dir, name, export)
  end
  local paths, made, kernel_of, kernels, late, built = {}, {}, {}, {}, {}, {}
  for i, call in ipairs(core.sequence_call_names(seq)) do
    local kernel = k.kernels[i]
    if not made[kernel] then
      made[kernel] = ("%s_%s"):format(name, identifier(call))
      kernels[#kernels + 1] = made[kernel]
      built[#built + 1] = kernel
      if not o.torch then
        for _, path in ipairs(core.export(kernel, dir, made[kernel])) do paths[#paths + 1] = path end
      end
    end
    kernel_of[call], late[call] = made[kernel], core.exported_early(kernel)
  end
  local tensors, tl, sizes = seq.tensors, sp:simulate(), export_sizes.of(seq)
  local given_tensors, all = of_role(tensors, "input", "state"), of_role(tensors, "input", "state", "output")
  local argument = {}
  for i, t in ipairs(all) do argument[t.name] = i - 1 end
  local calls, streams, events = calls_of.c(k, sizes, kernel_of, argument, late)
  local hip = k.target == "hip"
  local function tuples(list)
    return joined(list, function(t)
      return ("(%q, %s, torch.%s),"):format(t.name, sizes:shape_words(t), core.torch_type(t.dtype))
    end, " ")
  end
  local function parameter(t) return ("	%svoid *d_%s"):format(t.role == "input" and "const " or "", identifier(t.name)) end
  local last = joined(sizes.names, function(x) return ",\n	int size_" .. identifier(x) end, "")
  local words = {
    NAME = name, SEQUENCE = seq.name, DEVICE = sp.device.name, BYTES = ("%d"):format(math.max(sp.arena_bytes, 256)),
    TORCH = o.torch == true, FORKED = streams > 0, LINEAR = streams == 0, CUDA = not hip, HIP = hip,
    STREAMS = ("%d"):format(streams + 1), MORESTREAMS = ("%d"):format(streams), NARGUMENTS = ("%d"):format(#all), EVENTS = ("%d"):format(events),
    SOURCES = name .. ".c " .. joined(kernels, function(x) return x .. ".c" end, " "),
    INCLUDES = joined(kernels, function(x) return ("#include \"%s.h\""):format(x) end, "\n"),
    ARGUMENTS = joined(all, function(t)
      return ("	%svoid *d_%s,		/* %s, %s */"):format(t.role == "input" and "const " or "", identifier(t.name), t.role, ("%s {%s}"):format(
        t.dtype, table.concat(launch_sizes.shape(seq, t), ", ")))
    end, "\n"),
    PARAMETERLIST = joined(all, parameter, ",\n") .. ",", LASTPARAMETERS = joined(all, parameter, ",\n") .. last .. ")",
    LASTARGUMENTS = joined(all, parameter, ",\n") .. last .. ");",
    ARGUMENTNAMES = joined(all, function(t) return ("%q"):format(t.name) end),
    ARGUMENTLIST = joined(all, function(t) return "d_" .. identifier(t.name) end),
    LOADS = joined(kernels, function(x)
      return ("	code = code ? code : of_kernel(%s_load(device), %s_error());"):format(x, x)
    end, "\n"),
    UNLOADS = joined(kernels, function(x) return ("	%s_unload(device);"):format(x) end, "\n"),
    PARAMETERS = joined(given_tensors, function(t) return python(t.name) end),
    TUPLE = joined(given_tensors, function(t) return python(t.name) .. "," end, " "),
    RESULTS = joined(of_role(tensors, "output"), function(t) return python(t.name) end),
    FIRST = python(given_tensors[1] and given_tensors[1].name or "out"),
    KERNELS = table.concat(kernels, ", "), IMPORTS = joined(kernels, function(x) return "import " .. x end, "\n"),
    MODULES = joined(kernels, function(x) return x .. "," end, " "),
    FLOPS = ("%d"):format(tl.flops // 1 | 0), ACCESSED = ("%d"):format(tl.bytes // 1 | 0),
    INPUTS = tuples(of_role(tensors, "input")), STATES = tuples(of_role(tensors, "state")), OUTPUTS = tuples(of_role(tensors, "output")),
    CALLS = calls, BODY = calls_of.python(k, sizes, kernel_of, late),
  }
  for word, x in pairs(sizes:words(given_tensors, all, kernel_of)) do words[word] = x end
  if o.torch then return torch_package(k, dir, words, built, kernels, all) end
  local outs = of_role(tensors, "output")
  words.OUTS = #outs > 0 and ("    %s, = out"):format(joined(outs, function(t) return python(t.name) end)) or ""
  text.write(dir, name .. ".h", fill("sequence.h", words), paths)
  text.write(dir, name .. ".c", fill("sequence.c", words), paths)
  text.write(dir, name .. ".py", fill("sequence.py", words), paths)
  table.sort(paths)
  return paths
end

-- k:export(dir[, {name=}]) of the compiled ranges of a sequence -> the paths written
local function export_ranges(k, dir, given)
  expect(type(k) == "table" and rawget(k, "ranges") ~= nil, "export", "compiled ranges of a sequence", k)
  local o = options.check(given, "export", {"name"})
  expect(type(dir) == "string" and dir ~= "", "export", "folder", dir)
  expect(o.name == nil or type(o.name) == "string", "export: name", "name", o.name)
  local name = identifier(o.name or k.ranges.sequence.name)
  if not name:find "^[%a_]" then raise(("export: %s cannot be the name of a module"):format(show(name))) end
  return require("millrace.sequence_table").ranges(k, dir, name, export)
end

return {export = export, export_ranges = export_ranges}
