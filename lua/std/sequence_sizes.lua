-- sequence_sizes.lua - sequences with sizes that are left to the launch: bind{m = mr.any{max=, multiple=}}.
--
-- The function of a sequence computes with numbers. So it is run at all combinations of the least and largest sizes, in between and
-- at typical ones, and what differs between these runs must follow from the sizes (size_terms.lua): shapes, rows, and sizes of the programs
-- that are called, which are then bound with mr.any. The sequence that this makes has the shapes of the largest sizes. What is run,
-- compared or predicted at some sizes is the sequence that its function makes there, at_sizes, by the plan that is made for all.

local core = require "millrace.core"
local draft = require "millrace.draft"
local tile = require "millrace.tile_bind"
local any = require "millrace.tile_sizes"
local terms = require "millrace.size_terms"
local raise, show, expect = core.raise, core.show, core.expect

local MOST <const> = 4                                  -- sizes that are left to the launch: 2^4 runs of the function
local ALIGN <const> = 128                               -- bits

local sizes = {}
local info = setmetatable({}, {__mode = "k"})           -- bound sequence -> what of it is left to the launch
local bases = setmetatable({}, {__mode = "k"})          -- a sequence at sizes -> the one that leaves them to the launch

local function size_text(at)
  local list = {}
  for i, name in ipairs(draft.keys(at)) do list[i] = ("%s=%d"):format(name, at[name]) end
  return table.concat(list, ", ")
end

---- at some sizes ---------------------------------------------------------------------------------

-- What was given, with numbers for the sizes.
local function numbers(given, at)
  local values = {}
  for name, x in pairs(given) do values[name] = at[name] or x end
  return values
end

-- A sequence at sizes, and what it says, by name.
local function sample(f, given, at)
  local seq = f.bind(numbers(given, at))
  local tensors, calls = {}, {}
  for _, t in ipairs(seq.tensors) do tensors[t.name] = t end
  for _, name in ipairs(core.sequence_call_names(seq)) do
    local args, _, own = {}, tile.origin(seq:program(name))
    for _, x in ipairs(core.sequence_args(seq, name)) do args[x.own] = x end
    calls[name] = {program = seq:program(name), given = own, args = args}
  end
  return {at = at, seq = seq, tensors = tensors, calls = calls}
end

-- The sizes at which the function is run: corners, then those in between and typical ones, of {m=512, ...} each.
local function samples_of(f, given, names, ranges)
  local list, middle = {}, {}
  for i, at in ipairs(terms.corners(names, ranges)) do list[i] = sample(f, given, at) end
  local corners, most = #list, 0
  for _, name in ipairs(names) do
    local step = given[name].multiple
    middle[name] = math.max((ranges[name][2] // step + 1) // 2, 1) * step
    most = math.max(most, given[name].typical and #given[name].typical or 0)
  end
  local more, typical = {middle}, {}
  for i = 1, most do
    typical[i] = {}
    for _, name in ipairs(names) do typical[i][name] = given[name].typical and given[name].typical[i] or ranges[name][2] end
    more[#more + 1] = typical[i]
  end
  for _, at in ipairs(more) do list[#list + 1] = sample(f, given, at) end
  return list, corners, typical
end

---- the sequence for all of them ------------------------------------------------------------------

local building = {}
building.__index = building

-- What gives a number that read(sample) says; raises if no product of sizes does. what: as in "size 1 of 'x'".
function building:terms(what, read)
  local values = {}
  for i, s in ipairs(self.samples) do values[i] = read(s) end
  local found = terms.fit(self.names, self.ranges, table.move(values, 1, self.corners, 1, {}))
  local wrong = found and found:grows() and 0 or self.corners    -- the sample that shows it
  for i, s in ipairs(self.samples) do
    if wrong == 0 and found:at(s.at) ~= values[i] then wrong = i end
  end
  if wrong == 0 then return found end
  local shown, texts = {}, {}
  for _, i in ipairs{1, self.corners, wrong} do
    if not shown[i] then texts[#texts + 1], shown[i] = ("%d at %s"):format(values[i], size_text(self.samples[i].at)), true end
  end
  raise(("%s is %s: no sum of products of different sizes with integers that are not negative; give it, or the option that it follows from, "
    .. "a value that does not depend on sizes that are left to the launch"):format(what, table.concat(texts, ", and ")))
end

-- Of a sample what the sequence has by this name; raises if it is not there.
function building:part(kind, what, name)
  for _, s in ipairs(self.samples) do
    if not s[kind][name] then
      raise(("%s: '%s' is not there at %s; a sequence is the same for all sizes that are left to the launch"):format(what, name,
        size_text(s.at)))
    end
  end
end

-- Called for each tensor.
function building:tensor(name, shape)
  self:part("tensors", "tensor", name)
  local list = {}
  for i in ipairs(shape) do
    for _, s in ipairs(self.samples) do
      if #s.tensors[name].shape ~= #shape then
        raise(("tensor '%s' has another number of dimensions at %s"):format(name, size_text(s.at)))
      end
    end
    list[i] = self:terms(("size %d of '%s'"):format(i, name), function(s) return s.tensors[name].shape[i] end)
  end
  self.tensors[name] = list
end

local function same(a, b)
  local plain = type(a) == "table" and type(b) == "table" and not getmetatable(a) and not getmetatable(b)
  return a == b or plain and draft.has_literal(a) and draft.has_literal(b) and draft.literal(a) == draft.literal(b)
end

local function own_text(x) return math.type(x) == "integer" and ("%d"):format(x) or show(x) end

-- What bind of the program is given at this call instead of numbers, {m = mr.any{...}}; empty if all is the same at all sizes.
function building:program_sizes(name, bound)
  local first, found, by_text = self.samples[self.corners].calls[name], {}, {}
  local differs = {}
  for _, s in ipairs(self.samples) do
    local own = s.calls[name]
    if own.program.name ~= bound.name then
      raise(("call: '%s' runs program '%s' at %s, and '%s' at %s; a sequence is the same for all sizes that are left to the launch"):format(
        name, own.program.name, size_text(s.at), bound.name, size_text(self.samples[self.corners].at)))
    end
    for _, from in ipairs{own.given, first.given} do
      for key in pairs(from) do
        if not same(own.given[key], first.given[key]) then differs[key] = s end
      end
    end
  end
  local order = {}
  for _, axis in ipairs(core.axis_names(bound)) do
    if differs[axis] then order[#order + 1] = axis end
  end
  for _, key in ipairs(draft.keys(differs)) do
    local s = differs[key]
    if bound.axes[key] ~= first.given[key] then
      raise(("call: option '%s' of '%s' is %s at %s, and %s at %s: the program would not be the same for all sizes that are left to the "
        .. "launch; give it a value that does not depend on them"):format(key, name, own_text(s.calls[name].given[key]), size_text(s.at),
          own_text(first.given[key]), size_text(self.samples[self.corners].at)))
    end
  end
  for _, axis in ipairs(order) do
    local t = self:terms(("call: size '%s' of '%s'"):format(axis, name), function(s) return s.calls[name].given[axis] end)
    local text, typical = t:text(), {}
    for i, at in ipairs(self.typical) do typical[i] = t:at(at) end
    found[axis] = by_text[text] and any{like = by_text[text]} or any{max = t:at(self.largest), multiple = t:divisor(self.multiples),
      typical = #typical > 0 and typical or nil}
    by_text[text] = by_text[text] or axis
    self.calls[name] = self.calls[name] or {}
    self.calls[name][axis] = t
  end
  return found
end

-- Called for each call: the program for all sizes, instead of the one at the largest.
function building:call(name, bound)
  self:part("calls", "call", name)
  local own = self:program_sizes(name, bound)
  if not next(own) then return bound end
  local prog, given = tile.origin(bound)
  local values = {}
  for key, x in pairs(given) do values[key] = own[key] or x end
  return prog:bind(values)
end


-- The pairs of calls that depend on each other, as a set.
local function edges_of(seq)
  local set, names = {}, core.sequence_call_names(seq)
  for _, e in ipairs(core.sequence_edges(seq)) do set[names[e.from] .. " " .. names[e.to]] = true end
  return set
end

-- Arguments that share no bytes at any sample may share some at other sizes, if they pass each other in between. If the same one is in front at
-- all corners they do not, as the distance between them is linear in each size. all: edges_of the sequence, which orders its pairs of calls.
function building:check_apart(names, all)
  local of_tensor, largest = {}, self.samples[self.corners]
  for _, name in ipairs(names) do
    local args = largest.calls[name].args
    for _, own in ipairs(draft.keys(args)) do
      local list = of_tensor[args[own].tensor] or {}
      list[#list + 1] = {call = name, own = own, writes = args[own].writes}
      of_tensor[args[own].tensor] = list
    end
  end
  for _, tensor in ipairs(draft.keys(of_tensor)) do
    local list = of_tensor[tensor]
    for i, a in ipairs(list) do
      for j = i + 1, #list do
        local b = list[j]
        local free = (a.writes or b.writes) and not all[a.call .. " " .. b.call] and not all[b.call .. " " .. a.call]
        local in_front = nil
        for c = 1, free and self.corners or 0 do
          local x, y = self.samples[c].calls[a.call].args[a.own], self.samples[c].calls[b.call].args[b.own]
          local first = x.offset + x.count <= y.offset
          if c > 1 and first ~= in_front then
            raise(("bind: '%s' of call '%s' and '%s' of call '%s' pass each other in '%s' between %s and %s; at sizes in between they are the same "
              .. "bytes"):format(a.own, a.call, b.own, b.call, tensor, size_text(self.samples[1].at), size_text(self.samples[c].at)))
          end
          in_front = first
        end
      end
    end
  end
end

-- Must be called when the sequence for all sizes is complete. What each argument's first element is; that nothing else differs.
function building:finish(bound)
  local names, all = core.sequence_call_names(bound), edges_of(bound)
  for _, s in ipairs(self.samples) do
    if table.concat(core.sequence_call_names(s.seq), " ") ~= table.concat(names, " ") then
      raise(("bind: at %s there are other calls, or they are in another order"):format(size_text(s.at)))
    end
    for _, name in ipairs(names) do
      local args = self.samples[self.corners].calls[name].args
      for _, own in ipairs(draft.keys(args)) do
        local x, other = args[own], s.calls[name].args[own]
        if not other or other.tensor ~= x.tensor then
          raise(("bind: '%s' of call '%s' is another tensor at %s"):format(own, name, size_text(s.at)))
        end
      end
    end
    local here = edges_of(s.seq)
    for _, pair in ipairs{{all, here, size_text(self.samples[self.corners].at)}, {here, all, size_text(s.at)}} do
      for _, key in ipairs(draft.keys(pair[1])) do
        if not pair[2][key] then
          raise(("bind: calls '%s' and '%s' depend on each other at %s, and not at all sizes that are left to the launch"):format(
            key:match "^%S+", key:match "%S+$", pair[3]))
        end
      end
    end
  end
  self:check_apart(names, all)
  local bits = {}
  for _, t in ipairs(bound.tensors) do bits[t.name] = core.dtype_bits(t.dtype) end
  for _, name in ipairs(names) do
    self.offsets[name] = {}
    for _, own in ipairs(draft.keys(self.samples[self.corners].calls[name].args)) do
      self.offsets[name][own] = self:terms(("bind: the first element of '%s' of call '%s'"):format(own, name),
        function(s) return s.calls[name].args[own].offset end)
      local first, tensor = self.offsets[name][own], self.samples[self.corners].calls[name].args[own].tensor
      if not first:is_constant() and first:times(bits[tensor]):divisor(self.multiples) % ALIGN ~= 0 then
        raise(("bind: '%s' of call '%s' would begin at element %s of '%s', which is not at all sizes at a multiple of 16 bytes: kernels could "
          .. "not copy it"):format(own, name, first:text(), tensor))
      end
    end
  end
  info[bound], self.samples = self, nil
end

-- f: {name=, bind=}, the name of a sequence, and what makes it of numbers; given: what bind was given. Returns what the sequence for
-- all sizes is built with, and the numbers that its function gets for that; nil if no size is left to the launch.
function sizes.begin(f, given)
  local names, ranges, multiples, largest = {}, {}, {}, {}
  for _, name in ipairs(draft.keys(given)) do
    local x = given[name]
    if tile.is_any(x) then
      if x.like then
        raise(("bind: size '%s' of sequence '%s' would be that of '%s': give both one name in the sequence"):format(name, f.name, x.like))
      end
      largest[name] = x.max
      if x.max > x.multiple then
        names[#names + 1], ranges[name] = name, {x.multiple, x.max}
      end
      multiples[name] = x.multiple
    end
  end
  if not next(largest) then return nil end
  if #names > MOST then raise(("bind: sequence '%s' has %d sizes that are left to the launch, %d at most"):format(f.name, #names, MOST)) end
  local fixed = numbers(given, largest)
  for _, name in ipairs(names) do fixed[name] = given[name] end
  if #names == 0 then return nil, fixed end
  local b = setmetatable({f = f, given = fixed, names = names, ranges = ranges, multiples = multiples, largest = {}, tensors = {},
    calls = {}, offsets = {}, made = setmetatable({}, {__mode = "v"})}, building)
  for _, name in ipairs(names) do b.largest[name] = largest[name] end
  b.samples, b.corners, b.typical = samples_of(f, fixed, names, ranges)
  return b, numbers(fixed, b.largest)
end

---- what is asked of it ---------------------------------------------------------------------------

-- What of a bound sequence is left to the launch: names of the sizes; largest and multiples by name; typical, a list of {m=512};
-- tensors, terms of their shapes by name; calls, terms of the axes that a program leaves open by call and axis; offsets, terms of the first
-- elements by call and name. nil: nothing is.
function sizes.of(seq) return info[seq] end

-- "m up to 4096 in steps of 8", of one size
function sizes.range_text(b, name)
  return ("%s up to %d%s"):format(name, b.largest[name], b.multiples[name] > 1 and (" in steps of %d"):format(b.multiples[name]) or "")
end

-- "b=2, m=512"
sizes.at_text = size_text

-- Sizes at which the sequence is typically run: a list of {m=512}, empty if it leaves none to the launch.
function sizes.typical(seq) return info[seq] and info[seq].typical or {} end

-- Of all: "any m up to 4096 in steps of 8"; "" if no size is left to the launch.
function sizes.text(seq)
  local b, list = info[seq], {}
  for i, name in ipairs(b and b.names or {}) do list[i] = sizes.range_text(b, name) end
  return #list > 0 and "any " .. table.concat(list, ", ") or ""
end

-- Complete sizes, of those that were given; those that are not are the largest.
local function complete(b, given, what)
  local at = {}
  for name, n in pairs(given) do
    if not b.largest[name] then
      raise(("%s: sequence '%s' leaves no size '%s' to the launch%s"):format(what, b.f.name, tostring(name),
        core.hint(tostring(name), b.names)))
    end
    local x = core.integer(n)
    if not x or x < 1 or x > b.largest[name] or x % b.multiples[name] ~= 0 then
      raise(("%s: size '%s' is %s; the sequence is for %s"):format(what, name, x and ("%d"):format(x) or show(n),
        sizes.range_text(b, name)))
    end
    at[name] = x
  end
  for _, name in ipairs(b.names) do at[name] = at[name] or b.largest[name] end
  return at
end

-- The sequence at sizes. It must be what the kernels compute.
local function made_at(b, at, seq)
  local key = size_text(at)
  if b.made[key] then return b.made[key] end
  local s = sample(b.f, b.given, at)
  local function must(good, what)
    if not good then
      raise(("at_sizes: at %s %s is not what follows from the sizes at which bind has run the function"):format(key, what))
    end
  end
  for _, name in ipairs(draft.keys(b.tensors)) do       -- in an order, so that the message is the same each time
    local t, shape = s.tensors[name], b.tensors[name]
    must(t and #t.shape == #shape, ("tensor '%s'"):format(name))
    for i, x in ipairs(shape) do must(t.shape[i] == x:at(at), ("size %d of '%s'"):format(i, name)) end
  end
  local here, all = edges_of(s.seq), edges_of(seq)
  for _, name in ipairs(core.sequence_call_names(seq)) do
    local call = s.calls[name]
    must(call, ("call '%s'"):format(name))
    local own = {}
    for _, axis in ipairs(draft.keys(b.calls[name] or {})) do
      local x = b.calls[name][axis]
      must(call.given[axis] == x:at(at), ("size '%s' of call '%s'"):format(axis, name))
      own[axis] = x:at(at)
    end
    if next(own) then core.check_same(seq:program(name), call.program) end
    for _, arg in ipairs(draft.keys(b.offsets[name])) do
      local x = b.offsets[name][arg]
      must(call.args[arg] and call.args[arg].offset == x:at(at), ("the first element of '%s' of call '%s'"):format(arg, name))
    end
  end
  for _, pair in ipairs(draft.keys(here)) do
    if not all[pair] then
      raise(("at_sizes: at %s calls '%s' and '%s' depend on each other, and at the largest sizes they do not"):format(key, pair:match "^%S+",
        pair:match "%S+$"))
    end
  end
  b.made[key], bases[s.seq] = s.seq, seq
  return s.seq
end

-- The sizes that a call's options and arrays say, {m=512}; nil: no size is left to the launch. o.sizes and o[name] are options; arrays: by
-- name of the tensor, or nil: then sizes that are not given are the largest.
function sizes.launched(seq, o, arrays, what)
  local b, given = info[seq], {}
  if not b then return nil end
  expect(o.sizes == nil or type(o.sizes) == "table", what .. ": sizes", "table of sizes by name", o.sizes)
  for name, n in pairs(o.sizes or {}) do given[name] = n end
  for _, name in ipairs(b.names) do
    if o[name] ~= nil then given[name] = o[name] end
    for _, t in ipairs(given[name] == nil and type(arrays) == "table" and seq.tensors or {}) do
      local array = (t.role == "input" or t.role == "state") and arrays[t.name]
      for d, x in ipairs(core.is(array, "millrace.array") and b.tensors[t.name] or {}) do
        local of, factor = x:single()
        local n = of == name and array:shape()[d]
        if n and n % factor == 0 then given[name] = given[name] or n // factor end
      end
    end
    if arrays ~= nil and given[name] == nil then
      raise(("%s: size '%s' is known at launch, and no array that was given has it; write sizes={%s=...}"):format(what, name, name))
    end
  end
  return complete(b, given, what)
end

-- The sequence that leaves sizes to the launch, of one at sizes; any other one itself.
function sizes.base(seq) return bases[seq] or seq end

-- The shape of a tensor, with words for sizes that are left to the launch, {"m", 64}.
function sizes.shape(seq, t)
  local b, list = info[seq], {}
  for i, n in ipairs(t.shape) do list[i] = b and b.tensors[t.name] and b.tensors[t.name][i]:text() or ("%d"):format(n) end
  return list
end

-- The names of options that say sizes.
function sizes.options(seq)
  local b = info[seq]
  return b and {"sizes", table.unpack(b.names)} or {}
end

-- seq:at_sizes{m=512}: the sequence at sizes that it leaves to the launch; those that are not given are the largest.
function sizes.at(seq, given)
  expect(core.is(seq, "millrace.sequence"), "at_sizes", "sequence with sizes", seq)
  expect(type(given) == "table", "at_sizes", "table of sizes by name", given)
  local b = info[seq]
  if not b then
    for name in pairs(given) do
      raise(("at_sizes: the sequence leaves no size to the launch, and was given '%s'"):format(tostring(name)))
    end
    return seq
  end
  return made_at(b, complete(b, given, "at_sizes"), seq)
end

-- The plan of a sequence at sizes, as `launched` gives them; nil: it leaves none to the launch, and the plan is as it is.
function sizes.plan_at(sp, at)
  if not at then return sp end
  return core.sequence_plan_at(sp, made_at(info[sp.sequence], at, sp.sequence))
end

return sizes
