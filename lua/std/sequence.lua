-- sequence.lua - mr.sequence: programs called one after the other on named tensors, and what binding them to sizes makes.
--
-- A sequence's function gets s, the sequence under construction; core.sequence holds it and checks what is said (src/seq).

local core = require "millrace.core"
local draft = require "millrace.draft"
local objects = require "millrace.tile_objects"
local tile = require "millrace.tile_bind"
local given_values = require "millrace.given"
local launch_sizes = require "millrace.sequence_sizes"
local raise, hint, show, entry, expect = core.raise, core.hint, core.show, core.entry, core.expect
local class, new, nest = objects.class, objects.new, objects.nest

local S <const>, SEQUENCE <const>, TENSOR <const> = "millrace.s", "millrace.tile_sequence", "millrace.sequence_tensor"
local BODY <const>, CORE <const>, GIVEN <const>, SIZES <const> = {}, {}, {}, {}

local function self_s(s, what)
  if getmetatable(s) ~= S then raise(("%s: to be called as s:%s(...)"):format(what, what)) end
  return s[CORE]
end

---- tensors -------------------------------------------------------------------

local function own(s, t, what)
  expect(getmetatable(t) == TENSOR, what, "tensor of the sequence", t)
  if t.owner ~= s then raise(("%s: '%s' belongs to another sequence"):format(what, t.name)) end
  return t
end

local function integer(x, what, least)
  local n = core.integer(x)
  if not n or n < least then raise(("%s must be an integer of at least %d, got %s"):format(what, least, show(x))) end
  return n
end

class(TENSOR, "tensor of a sequence", {
  rows = function(t, first, count)
    expect(getmetatable(t) == TENSOR, "rows", "tensor of the sequence", t)
    first, count = integer(first, "rows: the first row, counted from 0,", 0), integer(count, "rows: their number", 1)
    if first + count > t.count then
      raise(("rows: rows %d to %d of '%s', which has %d"):format(first, first + count - 1, t.name, t.count))
    end
    return new(TENSOR, {owner = t.owner, id = t.id, name = t.name, dtype = t.dtype, row = t.row, first = t.first + first, count = count, part = true})
  end,
}, {__tostring = function(t)
  return t.part and ("rows %d to %d of %s"):format(t.first, t.first + t.count - 1, t.name) or "tensor " .. t.name
end})

local function declare(role)
  return function(s, name, shape, dtype)
    local seq, sizes = self_s(s, role), {}
    expect(type(name) == "string", role, "name", name)
    expect(type(shape) == "table", role, "list of sizes", shape)
    for i, n in ipairs(shape) do sizes[i] = integer(n, ("%s: size %d of '%s'"):format(role, i, name), 1) end
    local id, row = core.sequence_tensor(seq, role, name, dtype or "bf16", sizes), 1
    for i = 2, #sizes do row = row * sizes[i] end
    if s[SIZES] then s[SIZES]:tensor(name, sizes) end
    return new(TENSOR, {owner = s, id = id, name = name, dtype = dtype or "bf16", row = row, first = 0, count = sizes[1] or 1, part = false})
  end
end

---- what a sequence's function says -------------------------------------------

local methods = {input = declare "input", output = declare "output", state = declare "state", temp = declare "temp"}

-- Numbers that bind was given, by name.
function methods.sizes(s, ...)
  self_s(s, "sizes")
  local list = table.pack(...)
  for i, name in ipairs(list) do
    expect(type(name) == "string", "sizes", "name", name)
    list[i] = s[GIVEN]:size(name)
  end
  return table.unpack(list, 1, list.n)
end

function methods.option(s, name, kind, default)
  self_s(s, "option")
  return s[GIVEN]:option(name, kind, default)
end

function methods.check(s, condition, message)
  self_s(s, "check")
  return s[GIVEN]:check(condition, message)
end

-- What a call is given, by name: checked to be tensors of the sequence.
local function check_tensors(s, name, tensors)
  expect(type(tensors) == "table", "call", "table of tensors by name", tensors)
  for key in pairs(tensors) do
    if type(key) ~= "string" then raise(("call: tensors of '%s' are given by name, {A=x}"):format(name)) end
  end
  for _, key in ipairs(draft.keys(tensors)) do own(s, tensors[key], "call: " .. key) end
end

-- The tensor of this sequence that is tensor `t` of another one, of which a call has the given name.
local function tensor_for(s, name, t, tensors)
  local given = tensors[t.name]
  if t.role == "temp" then return methods.temp(s, name .. "_" .. t.name, t.shape, t.dtype) end
  if not given then raise(("call: '%s' of '%s' is not given: {%s=...}"):format(t.name, name, t.name)) end
  local n = 1
  for _, size in ipairs(t.shape) do n = n * size end
  if given.dtype ~= t.dtype then
    raise(("call: '%s' of '%s' is of %s, '%s' of %s"):format(t.name, name, t.dtype, given.name, given.dtype))
  end
  if given.count * given.row ~= n then
    raise(("call: '%s' of '%s' has %d elements, %s has %d"):format(t.name, name, n, tostring(given), given.count * given.row))
  end
  return given
end

-- list: {{name, number of the tensor, first row, rows (0: all), first element of these, elements (0: all)}, ...}.
local function add_call(s, name, program, list)
  core.sequence_call(s[CORE], name, s[SIZES] and s[SIZES]:call(name, program) or program, list)
end

-- The calls of another sequence, each by the name of this call and its own: "layer0_qkv". So are its temporaries.
local function call_sequence(s, name, inner, tensors)
  if launch_sizes.of(inner) then
    raise(("call: sequence '%s' of '%s' has sizes that are known at launch; give it the numbers that s:sizes returns, and leave sizes of the "
      .. "outer sequence to the launch: %s{m = mr.any{...}}"):format(inner.name, name, s[GIVEN].name))
  end
  local of, names, is_known = {}, {}, {}
  for _, t in ipairs(inner.tensors) do
    if not t.name:find(".", 1, true) then               -- a name with a dot is a temporary inside a program: the call makes its own
      of[t.name] = tensor_for(s, name, t, tensors)
      if t.role ~= "temp" then names[#names + 1], is_known[t.name] = t.name, true end
    end
  end
  for _, key in ipairs(draft.keys(tensors)) do
    if not is_known[key] then
      raise(("call: sequence '%s' of '%s' has no input, output or state '%s'%s"):format(inner.name, name, key, hint(key, names)))
    end
  end
  for _, call in ipairs(core.sequence_call_names(inner)) do
    local list = {}
    for i, x in ipairs(core.sequence_args(inner, call)) do
      local t = of[x.tensor]
      list[i] = {x.own, t.id, t.first, t.part and t.count or 0, x.offset, x.count}
    end
    add_call(s, name .. "_" .. call, inner:program(call), list)
  end
end

-- A call of a program with sizes, or of a sequence with sizes; tensors: by the name of each of its inputs, outputs and states.
function methods.call(s, name, called, tensors)
  self_s(s, "call")
  expect(type(name) == "string", "call", "name", name)
  if getmetatable(called) == objects.PROGRAM or getmetatable(called) == SEQUENCE then
    raise(("call: '%s' is given a %s without sizes; write %s{...}, with a number for each"):format(name,
      getmetatable(called) == SEQUENCE and "sequence" or "program", called.name))
  end
  if not core.is(called, "millrace.sequence") then expect(core.is(called, "millrace.program"), "call", "program or sequence with sizes", called) end
  check_tensors(s, name, tensors)
  if core.is(called, "millrace.sequence") then return call_sequence(s, name, called, tensors) end
  if core.any_axes(called) then
    raise(("call: the program of '%s' has sizes that are known at launch; give it the numbers that s:sizes returns, and leave sizes of the "
      .. "sequence to the launch: %s{m = mr.any{...}}"):format(name, s[GIVEN].name))
  end
  local list = {}
  for _, key in ipairs(draft.keys(tensors)) do
    local t = tensors[key]
    list[#list + 1] = {key, t.id, t.first, t.part and t.count or 0, 0, 0}
  end
  add_call(s, name, called, list)
end

class(S, "sequence under construction", methods, {
  __index = function(s, key)
    if methods[key] ~= nil then return methods[key] end
    return s[GIVEN]:get(key)
  end,
  __newindex = function(_, key) raise(("s.%s cannot be set: s holds what bind was given"):format(tostring(key))) end,
})

---- binding -------------------------------------------------------------------

local origins = setmetatable({}, {__mode = "k"})        -- bound sequence -> {the sequence, what it was given}

-- Run the function with these values. sizes: what makes it one for all sizes that are left to the launch; nil: none is.
local function build(seq, values, sizes)
  local given = given_values.new(seq.name, values, core.location())
  local bound = core.sequence(seq.name)
  seq[BODY](new(S, {[CORE] = bound, [GIVEN] = given, [SIZES] = sizes or false}))
  given:check_read()
  core.sequence_finish(bound)
  if sizes then sizes:finish(bound) end
  origins[bound] = {seq, sizes and sizes.given or given.values}
  return bound
end

local function bind(seq, given)
  expect(getmetatable(seq) == SEQUENCE, "bind", "sequence", seq)
  local values = given == nil and {} or given
  given_values.check_keys(values)
  local _ <close> = nest "bind"
  local sizes, fixed = launch_sizes.begin({name = seq.name, bind = function(numbers) return build(seq, numbers) end}, values)
  return build(seq, fixed or values, sizes)
end

-- A method of a bound sequence, of one that needs no sizes, too.
local function of_bound(name)
  return function(seq, ...)
    expect(getmetatable(seq) == SEQUENCE, name, "sequence", seq)
    local bound = seq:bind{}
    return bound[name](bound, ...)
  end
end

local shorthand = {bind = bind}
for _, name in ipairs{"plan", "check", "simulate", "run", "bench", "inputs", "reference"} do
  shorthand[name] = of_bound(name)
end

class(SEQUENCE, "sequence", shorthand, {
  __call = entry(bind),
  __tostring = function(seq) return "sequence " .. seq.name end,
})

local function sequence(name, body)
  expect(type(name) == "string", "sequence", "name", name)
  if not name:find "^[%a_][%w_]*$" then
    raise(("sequence: '%s' cannot name a sequence; use letters, digits and '_'"):format(name))
  end
  expect(type(body) == "function", "sequence", "function", body)
  return new(SEQUENCE, {name = name, [BODY] = body})
end

-- What a sequence with sizes is, for the store: a hash of all that it says; one of what other sizes have in common; sizes as "d=64 m=128".
local function identity(bound)
  local all, family, sizes = {bound.name}, {bound.name}, {}
  for _, t in ipairs(bound.tensors) do
    all[#all + 1] = ("%s %s %s %s"):format(t.role, t.name, t.dtype, table.concat(t.shape, " "))
    family[#family + 1] = ("%s %s %s"):format(t.role, t.name, t.dtype)
  end
  for _, call in ipairs(core.sequence_call_names(bound)) do
    local hash, kin = core.identity(bound:program(call))
    all[#all + 1], family[#family + 1] = call .. " " .. hash, call .. " " .. kin
    for _, x in ipairs(core.sequence_args(bound, call)) do
      all[#all + 1] = ("%s=%s+%d"):format(x.own, x.tensor, x.offset)
      family[#family + 1] = ("%s=%s"):format(x.own, x.tensor)
    end
  end
  for _, key in ipairs(draft.keys(origins[bound][2])) do
    local x = origins[bound][2][key]
    local n = core.integer(x) or tile.is_any(x) and x.max
    if n then sizes[#sizes + 1] = ("%s=%d"):format(key, n) end
  end
  return core.hash(table.concat(all, "\n")), core.hash(table.concat(family, "\n")), table.concat(sizes, " ")
end

-- A text that is the same for two plans of kernels if these compute the same in the same way. Scripts are not enough: programs that
-- compute different things may have one name.
local function plan_key(plan) return core.identity(plan.graph.program) .. "\n" .. plan:script() end

return {
  sequence = entry(sequence),
  plan_key = plan_key,
  identity = identity,
  is_sequence = function(x) return getmetatable(x) == SEQUENCE end,
  -- the sequence and the sizes that a bound one was made of
  origin = function(bound)
    if origins[bound] then return table.unpack(origins[bound]) end
  end,
}
