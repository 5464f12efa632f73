-- export_sizes.lua - what the files of an exported sequence say of sizes that it leaves to the launch: parameters, ranges, and numbers that
-- follow from them, as expressions in C and in Python.

local core = require "millrace.core"
local launch_sizes = require "millrace.sequence_sizes"
local size_terms = require "millrace.size_terms"
local text = require "millrace.export_text"
local raise = core.raise
local joined, identifier, tuple = text.joined, text.identifier, text.tuple

local export_sizes = {}
export_sizes.__index = export_sizes

-- Of a bound sequence.
function export_sizes.of(seq)
  local b, number = launch_sizes.of(seq), {}
  for i, name in ipairs(b and b.names or {}) do number[name] = i - 1 end
  return setmetatable({seq = seq, any = b, names = b and b.names or {}, number = number}, export_sizes)
end

local function parameter(name) return "size_" .. identifier(name) end

-- The first element of an argument of a call, counted from that of its tensor.
function export_sizes:first(call, own, offset)
  return self.any and self.any.offsets[call][own] or size_terms.constant(offset)
end

-- The sizes of the dimensions of a tensor of a call's program.
function export_sizes:own_shape(call, t)
  local any, list = core.any_axes(self.seq:program(call)) or {}, {}
  for d, n in ipairs(t.shape) do
    local axis = t.axes[d]
    list[d] = any[axis] and self.any.calls[call][any[axis].like or axis] or size_terms.constant(n)
  end
  return list
end

-- What the launcher of a call's kernel is given as sizes, in its order: a list of {axis, terms}.
function export_sizes:launched(call)
  local program = self.seq:program(call)
  local any, list = core.any_axes(program) or {}, {}
  for _, axis in ipairs(core.axis_names(program)) do
    if any[axis] and not any[axis].like then list[#list + 1] = {axis, self.any.calls[call][axis]} end
  end
  return list
end

-- As C: of ints z[0], z[1], ...; wide: of 64 bits.
function export_sizes:c(t, wide)
  return t:text(function(name) return ("%sz[%d]"):format(wide and "(int64_t)" or "", self.number[name]) end)
end

function export_sizes:python(t) return t:text(parameter) end

-- A shape that torch sees, of terms: of 4-bit elements two are a byte.
function export_sizes:torch_shape(dtype, list)
  local out = {}
  for d, t in ipairs(list) do
    local half = d == #list and core.dtype_bits(dtype) == 4
    out[d] = not half and self:python(t) or t:is_constant() and ("%d"):format(t:at{} // 2) or ("(%s) // 2"):format(self:python(t))
  end
  return tuple(out)
end

-- The shape of a tensor of the sequence, as terms.
function export_sizes:shape(t)
  local list = {}
  for d, n in ipairs(t.shape) do list[d] = self.any and self.any.tensors[t.name][d] or size_terms.constant(n) end
  return list
end

-- Of an operator of torch, whose dimensions are numbers or sizes: the number of the size, from 1, that each dimension of a tensor is.
function export_sizes:size_of(t)
  local list = {}
  for d, x in ipairs(self:shape(t)) do
    local of, factor = x:single()
    if not x:is_constant() and (factor ~= 1 or d == #t.shape and core.dtype_bits(t.dtype) < 8) then
      raise(("export: size %d of '%s' is %s: of an operator of torch it is a number or a size that is left to the launch; without "
        .. "torch=true there is a module that computes it"):format(d, t.name, x:text()))
    end
    list[d] = of and self.number[of] + 1
  end
  return list
end

-- {{name=, max=, multiple=}, ...}
function export_sizes:ranges()
  local list = {}
  for i, name in ipairs(self.names) do
    list[i] = {name = identifier(name), max = self.any.largest[name], multiple = self.any.multiples[name]}
  end
  return list
end

-- As the tables of a module say it: {"m", 64}, of text for what depends on sizes.
function export_sizes:shape_words(t)
  local list = {}
  for d, x in ipairs(self:shape(t)) do
    local half = d == #t.shape and core.dtype_bits(t.dtype) == 4
    list[d] = x:is_constant() and ("%d"):format(half and x:at{} // 2 or x:at{})
      or ("%q"):format(half and ("(%s) // 2"):format(x:text()) or x:text())
  end
  return tuple(list)
end

-- The first of the tensors that has a size, or a multiple of it: tensor, dimension from 0, factor; nil: none has.
function export_sizes:source(name, tensors)
  for _, t in ipairs(tensors) do
    for d, x in ipairs(self:shape(t)) do
      local of, factor = x:single()
      if of == name then return t, d - 1, factor end
    end
  end
end

-- Words of the templates, which are "" if no size is left to the launch. given: the tensors that a caller gives; all: outputs, too;
-- kernel_of: the name of its kernel by call, {} if no words of kernels are wanted.
function export_sizes:words(given, all, kernel_of)
  local any, names = #self.names > 0, self.names
  local function list(f, separator) return joined(names, f, separator) end
  local function if_any(x) return any and x or "" end
  local prepares, known, calls = {}, {}, next(kernel_of) and core.sequence_call_names(self.seq) or {}
  for _, call in ipairs(calls) do
    local sizes = joined(self:launched(call), function(x) return self:c(x[2]) end)
    local line = ("	code = code ? code : of_kernel(%s_prepare(%s), %s_error());"):format(kernel_of[call], sizes, kernel_of[call])
    if sizes ~= "" and not known[line] then
      known[line] = true
      prepares[#prepares + 1] = line
    end
  end
  local loads, done = {}, {}
  for _, call in ipairs(calls) do
    local sizes = joined(self:launched(call), function(x) return ("%q: %s"):format(x[1], self:python(x[2])) end)
    local line = ("        %s.load(device, {%s})"):format(kernel_of[call], sizes)
    if sizes ~= "" and not done[line] then
      done[line] = true
      loads[#loads + 1] = line
    end
  end
  local in_order = {}
  for _, call in ipairs(calls) do
    if not in_order[kernel_of[call]] then
      in_order[kernel_of[call]] = true
      in_order[#in_order + 1] = ("    %s.load(device)"):format(kernel_of[call])
    end
  end
  return {
    ANY = any, FIXED = not any, NSIZES = ("%d"):format(#names),
    SIZEPARAMETERS = if_any(", " .. list(function(x) return "int " .. parameter(x) end)),
    PREPAREPARAMETERS = list(function(x) return "int " .. parameter(x) end),
    SIZELIST = list(parameter), SIZEARGUMENTS = if_any(", " .. list(parameter)),
    ZPARAMETER = if_any ", const int *z", ZTOO = if_any ", z", ZNOTE = if_any "; z: sizes",
    ANDSIZES = if_any " and sizes", ORSIZES = if_any " or sizes", SIZESNONE = if_any ", sizes=None",
    RANGETEXT = launch_sizes.text(self.seq):gsub("^any ", ""),
    RANGES = list(function(x) return ("{ %q, %d, %d }"):format(x, self.any.largest[x], self.any.multiples[x]) end),
    PREPARES = table.concat(prepares, "\n"),
    FIRSTSIZE = names[1] or "",
    SIZETABLE = list(function(x) return ("(%q, %d, %d),"):format(x, self.any.largest[x], self.any.multiples[x]) end, " "),
    SIZENOTE = if_any " Sizes of a launch\nare those of the tensors, in whose shapes they stand by name; SIZES says which there are.",
    LOADCALLS = if_any(table.concat(in_order, "\n")
      .. (#loads > 0 and "\n    if given:\n" .. ("        %s, = given\n"):format(list(parameter)) .. table.concat(loads, "\n") or "")),
    SIZEVALUES = list(function(x)
      local t, d, factor = self:source(x, given)
      return ("_size(%q, sizes, %s, %q, %d, %d)"):format(x, t and text.python(t.name) or "None", t and t.name or "", d or 0, factor or 1)
    end),
    SHAPES = joined(all, function(t) return ("%q: %s"):format(t.name, self:torch_shape(t.dtype, self:shape(t))) end),
    OUTPUTSAT = any and "_at(OUTPUTS, shapes)" or "OUTPUTS",
  }
end

return export_sizes
