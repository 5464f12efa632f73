-- sequence_calls.lua - the launches of a compiled sequence, by its plan, as text of a launcher in C and of a module in Python.

local core = require "millrace.core"
local text = require "millrace.export_text"
local bytes_of, tuple, torch_shape, identifier, python = text.bytes_of, text.tuple, text.torch_shape, text.identifier, text.python

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

-- The arguments of a kernel's launch in order: {tensor, offset in elements, t of the program}.
local function arguments(seq, call, roles)
  local by, list = {}, {}
  for _, x in ipairs(core.sequence_args(seq, call)) do by[x.own] = x end
  for _, role in ipairs(roles) do
    for _, t in ipairs(seq:program(call).tensors) do
      if t.role == role then list[#list + 1] = {tensor = by[t.name].tensor, offset = by[t.name].offset, own = t} end
    end
  end
  return list
end

-- The launches in C: a[i] is the tensor with argument[name] == i, s0 the caller's stream. late: by call, does the launcher of its kernel have
-- one that is not early?
local function c_body(k, kernel_of, argument, late)
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
    for _, a in ipairs(arguments(seq, c.name, {"input", "output"})) do
      local at = bytes_of(a.own.dtype, a.offset)
      local base = offsets[a.tensor] and ("t + %d"):format(offsets[a.tensor] + at) or ("a[%d]"):format(argument[a.tensor])
      if at > 0 and not offsets[a.tensor] then base = ("(const char *)%s + %d"):format(base, at) end
      list[#list + 1] = a.own.role == "output" and not offsets[a.tensor] and ("(void *)(uintptr_t)(%s)"):format(base) or base
    end
    local between = {}
    for _, t in ipairs(seq:program(c.name).tensors) do
      if t.role == "temp" then between[#between + 1] = ("t + %d"):format(offsets[c.name .. "." .. t.name]) end
    end
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

local function python_body(k, module_of, late)
  local sp = k.plan
  local seq, offsets, shapes, lines = sp.sequence, sp.offsets, {}, {}
  local number, numbers = streams_of(sp)
  for _, t in ipairs(seq.tensors) do shapes[t.name] = t end
  local event, waited = {}, waited_for(sp)
  local function add(text) lines[#lines + 1] = "    " .. text end
  local function value(a)
    local shape = tuple(torch_shape(a.own))
    if offsets[a.tensor] then
      local at = offsets[a.tensor] + bytes_of(a.own.dtype, a.offset)
      local n = 1
      for _, size in ipairs(a.own.shape) do n = n * size end
      return ("temporaries[%d:%d].view(torch.%s).view(%s)"):format(at, at + bytes_of(a.own.dtype, n), core.torch_type(a.own.dtype), shape)
    end
    local t = shapes[a.tensor]
    if a.offset == 0 and table.concat(t.shape, " ") == table.concat(a.own.shape, " ") then return python(a.tensor) end
    return ("_part(%s, %d, %s)"):format(python(a.tensor), core.dtype_bits(a.own.dtype) == 4 and a.offset // 2 or a.offset, shape)
  end
  if numbers > 0 then
    add "streams = [torch.cuda.current_stream(device)] + _streams_of(device.index)"
    add "for s in streams[1:]:"
    add "    s.wait_stream(streams[0])"
  end
  for _, c in ipairs(sp.calls) do
    local inputs, outs = {}, {}
    for i, a in ipairs(arguments(seq, c.name, {"input"})) do inputs[i] = value(a) end
    for i, a in ipairs(arguments(seq, c.name, {"output"})) do outs[i] = value(a) end
    local call = ("%s.run(%s, out=(%s,)%s)"):format(module_of[c.name], table.concat(inputs, ", "), table.concat(outs, ", "),
      late[c.name] and not c.early and ", early=False" or "")
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
