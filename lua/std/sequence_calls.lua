-- sequence_calls.lua - the launches of a compiled sequence, by its plan, as text of a launcher in C and of a module in Python.

local core = require "millrace.core"
local text = require "millrace.export_text"
local bytes_of, joined, torch_shape, tuple = text.bytes_of, text.joined, text.torch_shape, text.tuple
local identifier, python = text.identifier, text.python

-- The numbers of the plan's streams, from 0, the caller's, and how many more there are.
local function streams_of(sp)
  local number, numbers = {[0] = 0}, 0
  for _, c in ipairs(sp.calls) do
    if not number[c.stream] then
      numbers = numbers + 1
      number[c.stream] = numbers
    end
  end
  return number, numbers
end

-- The calls that others wait for.
local function waited_for(sp)
  local waited = {}
  for _, c in ipairs(sp.calls) do
    for _, other in ipairs(c.after) do waited[other] = true end
  end
  return waited
end

-- The arguments of a kernel's launch in order: {tensor, first element as terms of the sizes, t of the program}.
local function arguments(seq, sizes, call, roles)
  local by, list = {}, {}
  for _, x in ipairs(core.sequence_args(seq, call)) do by[x.own] = x end
  for _, role in ipairs(roles) do
    for _, t in ipairs(seq:program(call).tensors) do
      local x = by[t.name]
      if t.role == role then list[#list + 1] = {tensor = x.tensor, own = t, first = sizes:first(call, t.name, x.offset)} end
    end
  end
  return list
end

-- Where an argument begins, in bytes from `at` on, as C; 0 if it is that.
local function bytes_text(sizes, a, at)
  local bits = core.dtype_bits(a.own.dtype)
  if a.first:is_constant() then return ("%d"):format(at + bytes_of(a.own.dtype, a.first:at{})) end
  return ("%d + %s"):format(at, bits < 8 and ("(%s) / 2"):format(sizes:c(a.first, true)) or sizes:c(a.first:times(bits // 8), true))
end

-- The launches in C: a[i] is the tensor with argument[name] == i, s0 the caller's stream. late: by call, does the launcher of its kernel
-- have one that is not early?
local function c_body(k, sizes, kernel_of, argument, late)
  local sp = k.plan
  local seq, offsets, number, numbers = sp.sequence, sp.offsets, streams_of(sp)
  local lines, event, waited, events = {}, {}, waited_for(sp), 0
  local function stream(n) return number[n] == 0 and "s0" or ("s[%d]"):format(number[n]) end
  local function add(text) lines[#lines + 1] = "	code = code ? code : " .. text .. ";" end
  local function record(n, s) add(("of_driver(event_record(e[%d], %s), \"cuEventRecord\")"):format(n, s)) end
  local function wait(s, n) add(("of_driver(stream_wait(%s, e[%d], 0), \"cuStreamWaitEvent\")"):format(s, n)) end
  if numbers > 0 then
    events = 1
    record(0, "s0")
    for i = 1, numbers do wait(("s[%d]"):format(i), 0) end
  end
  for _, c in ipairs(sp.calls) do
    for _, other in ipairs(c.after) do wait(stream(c.stream), event[other]) end
    local list = {stream(c.stream)}
    for _, a in ipairs(arguments(seq, sizes, c.name, {"input", "output"})) do
      local at = bytes_text(sizes, a, offsets[a.tensor] or 0)
      local base = offsets[a.tensor] and "t + " .. at or ("a[%d]"):format(argument[a.tensor])
      if at ~= "0" and not offsets[a.tensor] then base = ("(const char *)%s + %s"):format(base, at) end
      list[#list + 1] = a.own.role == "output" and not offsets[a.tensor] and ("(void *)(uintptr_t)(%s)"):format(base) or base
    end
    local between = {}
    for _, t in ipairs(seq:program(c.name).tensors) do
      if t.role == "temp" then between[#between + 1] = ("t + %d"):format(offsets[c.name .. "." .. t.name]) end
    end
    for _, x in ipairs(sizes:launched(c.name)) do list[#list + 1] = sizes:c(x[2]) end
    local how = late[c.name] and not c.early and "_late" or ""
    if #between > 0 then
      how = "_with"
      table.insert(list, 1, ("%d, (void *const[]){ %s }"):format(c.early and 1 or 0, table.concat(between, ", ")))
    end
    add(("of_kernel(%s_launch%s(%s),\n		%s_error())"):format(kernel_of[c.name], how, table.concat(list, ", "), kernel_of[c.name]))
    if waited[c.name] then
      event[c.name] = events
      record(events, stream(c.stream))
      events = events + 1
    end
  end
  for i = 1, numbers do
    record(events, ("s[%d]"):format(i))
    wait("s0", events)
    events = events + 1
  end
  return table.concat(lines, "\n"), numbers, math.max(events, 1)
end

local function python_body(k, sizes, module_of, late)
  local sp = k.plan
  local seq, offsets, shapes, lines = sp.sequence, sp.offsets, {}, {}
  local number, numbers = streams_of(sp)
  for _, t in ipairs(seq.tensors) do shapes[t.name] = t end
  local event, waited = {}, waited_for(sp)
  local function add(text) lines[#lines + 1] = "    " .. text end
  local function sized_value(call, a)
    local shape, first, same = sizes:own_shape(call, a.own), sizes:python(a.first), true
    local of = sizes:shape(shapes[a.tensor])
    for d, x in ipairs(shape) do same = same and of[d] and of[d]:text() == x:text() end
    if not offsets[a.tensor] and same and #of == #shape and first == "0" then return python(a.tensor) end
    return ("_part(%s, %s, %s)"):format(offsets[a.tensor] and ("temporaries[%d:TEMPORARIES].view(torch.%s)"):format(offsets[a.tensor],
      core.torch_type(a.own.dtype)) or python(a.tensor), core.dtype_bits(a.own.dtype) == 4 and ("(%s) // 2"):format(first) or first,
      sizes:torch_shape(a.own.dtype, shape))
  end
  local function value(call, a)
    if #sizes.names > 0 then return sized_value(call, a) end
    local shape, offset = tuple(torch_shape(a.own)), a.first:at{}
    if offsets[a.tensor] then
      local at = offsets[a.tensor] + bytes_of(a.own.dtype, offset)
      local n = 1
      for _, size in ipairs(a.own.shape) do n = n * size end
      return ("temporaries[%d:%d].view(torch.%s).view(%s)"):format(at, at + bytes_of(a.own.dtype, n), core.torch_type(a.own.dtype), shape)
    end
    local t = shapes[a.tensor]
    if offset == 0 and table.concat(t.shape, " ") == table.concat(a.own.shape, " ") then return python(a.tensor) end
    return ("_part(%s, %d, %s)"):format(python(a.tensor), core.dtype_bits(a.own.dtype) == 4 and offset // 2 or offset, shape)
  end
  if numbers > 0 then
    add "streams = [torch.cuda.current_stream(device)] + _streams_of(device.index)"
    add "for s in streams[1:]:"
    add "    s.wait_stream(streams[0])"
  end
  for _, c in ipairs(sp.calls) do
    local inputs, outs = {}, {}
    for i, a in ipairs(arguments(seq, sizes, c.name, {"input"})) do inputs[i] = value(c.name, a) end
    for i, a in ipairs(arguments(seq, sizes, c.name, {"output"})) do outs[i] = value(c.name, a) end
    local launched = joined(sizes:launched(c.name), function(x) return ("%q: %s"):format(x[1], sizes:python(x[2])) end)
    local call = ("%s.run(%s, out=(%s,)%s%s)"):format(module_of[c.name], table.concat(inputs, ", "), table.concat(outs, ", "),
      launched ~= "" and (", sizes={%s}"):format(launched) or "", late[c.name] and not c.early and ", early=False" or "")
    if numbers == 0 then
      add(call)
    else
      for _, other in ipairs(c.after) do add(("streams[%d].wait_event(%s)"):format(number[c.stream], event[other])) end
      add(("with torch.cuda.stream(streams[%d]):"):format(number[c.stream]))
      add("    " .. call)
      if waited[c.name] then
        event[c.name] = "end_" .. identifier(c.name)
        add(("%s = streams[%d].record_event()"):format(event[c.name], number[c.stream]))
      end
    end
  end
  if numbers > 0 then
    add "for s in streams[1:]:"
    add "    streams[0].wait_stream(s)"
  end
  return table.concat(lines, "\n")
end

return {c = c_body, python = python_body}
