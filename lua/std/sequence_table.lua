-- sequence_table.lua - compiled sequences of several sizes, or of ranges of a size, as one launcher in C and one module for torch, which
-- choose among them by the sizes that a call gives.

local core = require "millrace.core"
local export_sizes = require "millrace.export_sizes"
local text = require "millrace.export_text"
local sequences = require "millrace.sequence"
local fill, joined, of_role, identifier, python = text.fill, text.joined, text.of_role, text.identifier, text.python
local raise, expect = core.raise, core.expect

-- The numbers that the sequences were given by the same name, and that differ: their names, and for each sequence their values.
local function differing(kernels)
  local first, given = sequences.origin(kernels[1].plan.sequence)
  local names, values, seen = {}, {}, {}
  for i, k in ipairs(kernels) do
    local of, own = sequences.origin(k.plan.sequence)
    if of ~= first then raise(("export: others: compiled sequence %d is of another sequence than the first"):format(i)) end
    if k.target ~= kernels[1].target or k.plan.device.name ~= kernels[1].plan.device.name then
      raise(("export: others: compiled sequence %d is for another device or target than the first"):format(i))
    end
    values[i] = own
    for _, from in ipairs{own, given} do
      for name in pairs(from) do
        if own[name] ~= given[name] and not seen[name] then
          seen[name] = true
          names[#names + 1] = name
        end
      end
    end
  end
  table.sort(names)
  local taken = {}
  for i, own in ipairs(values) do
    local list = {}
    for j, name in ipairs(names) do
      list[j] = core.integer(own[name]) or raise(("export: others: '%s' is not an integer in all compiled sequences, so that no size chooses among them"):format(name))
    end
    local key = table.concat(list, " ")
    if taken[key] then raise(("export: others: compiled sequences %d and %d have the same sizes"):format(taken[key], i)) end
    taken[key], values[i] = i, list
  end
  return names, values
end

-- Parameters in C of tensors; end_of(t): what follows each.
local function parameters(tensors, end_of)
  return joined(tensors, function(t)
    return ("	%svoid *d_%s,%s"):format(t.role == "input" and "const " or "", identifier(t.name), end_of(t))
  end, "\n")
end

local function role_comment(t) return ("		/* %s */"):format(t.role) end
local function nothing() return "" end

-- Write the launcher and the module of parts of a sequence, {name=, ...} each, by a template. words: those that its templates have alone.
-- paths: those of the parts, to which it adds its own.
local function write_files(template, words, seq, parts, dir, paths)
  local all, given = of_role(seq.tensors, "input", "state", "output"), of_role(seq.tensors, "input", "state")
  local function each(f) return joined(parts, f, "\n") end
  words.SEQUENCE = seq.name
  words.ARGUMENTS, words.PARAMETERLIST = parameters(all, role_comment), parameters(all, nothing)
  words.INCLUDES = each(function(p) return ("#include \"%s.h\""):format(p.name) end)
  words.LOADS = each(function(p) return ("	code = code ? code : of_one(%s_load(device), %s_error());"):format(p.name, p.name) end)
  words.UNLOADS = each(function(p) return ("	%s_unload(device);"):format(p.name) end)
  words.RESULTS = joined(of_role(seq.tensors, "output"), function(t) return python(t.name) end)
  words.PARAMETERS = joined(given, function(t) return python(t.name) end)
  words.IMPORTS = each(function(p) return "import " .. p.name end)
  for _, ending in ipairs{"h", "c", "py"} do
    text.write(dir, words.NAME .. "." .. ending, fill(template .. "." .. ending, words), paths)
  end
  table.sort(paths)
  return paths
end

-- Write compiled sequences of one function, which differ in sizes. export: of sequence_export, for each of them.
local function write_sizes(kernels, dir, name, export)
  for _, k in ipairs(kernels) do expect(getmetatable(k) == getmetatable(kernels[1]), "export: others", "compiled sequence", k) end
  local sizes, values = differing(kernels)
  local paths, parts, shapes = {}, {}, {}
  for i, k in ipairs(kernels) do
    local suffix = {}
    for j, size in ipairs(sizes) do suffix[j] = identifier(size) .. values[i][j] end
    parts[i] = {name = name .. "_" .. table.concat(suffix, "_"), values = values[i], kernel = k}
    local key = joined(of_role(k.plan.sequence.tensors, "input", "state"), function(t) return table.concat(t.shape, " ") end)
    if shapes[key] then raise "export: others: inputs and states of two have the same shapes, which no call could distinguish" end
    shapes[key] = true
  end
  table.sort(parts, function(a, b)
    for j in ipairs(sizes) do
      if a.values[j] ~= b.values[j] then return a.values[j] < b.values[j] end
    end
    return false
  end)
  for _, p in ipairs(parts) do
    for _, path in ipairs(export(p.kernel, dir, {name = p.name})) do paths[#paths + 1] = path end
  end
  local first = kernels[1]
  local seq = first.plan.sequence
  local all, given = of_role(seq.tensors, "input", "state", "output"), of_role(seq.tensors, "input", "state")
  local function each(f) return joined(parts, f, "\n") end
  local function is(p)
    local list = {}
    for j, size in ipairs(sizes) do list[j] = ("size_%s == %d"):format(identifier(size), p.values[j]) end
    return table.concat(list, " && ")
  end
  local function said(p)
    local list = {}
    for j, size in ipairs(sizes) do list[j] = ("%s=%d"):format(size, p.values[j]) end
    return table.concat(list, " ")
  end
  local function launches(how)
    return each(function(p)
      return ("	if (%s)\n		return of_one(%s_%s(stream, %s, temporaries),\n			%s_error());"):format(is(p), p.name, how,
        joined(all, function(t) return "d_" .. identifier(t.name) end), p.name)
    end)
  end
  local words = {
    NAME = name, DEVICE = first.plan.device.name, HIP = first.target == "hip",
    ONE = #sizes == 1, SIZES = joined(parts, said), SORTED = joined(parts, function(p) return ("%d"):format(p.values[1]) end),
    SIZEPARAMETERS = joined(sizes, function(x) return "int size_" .. identifier(x) end),
    BYTES = each(function(p) return ("	if (%s)\n		return %s_TEMPORARIES;"):format(is(p), p.name) end),
    LAUNCHES = launches "launch", GRAPHS = launches "graph_launch",
    TUPLE = joined(given, function(t) return python(t.name) .. "," end, " "), MODULES = joined(parts, function(p) return p.name .. "," end, " "),
    SIZETABLES = joined(parts, function(p)
      local list = {}
      for j, size in ipairs(sizes) do list[j] = ("%q: %d"):format(size, p.values[j]) end
      return "{" .. table.concat(list, ", ") .. "},"
    end, " "),
  }
  return write_files("sequence_table", words, seq, parts, dir, paths)
end

-- Write the kernels of ranges of a size (sequence_ranges.lua), k:export of them. export: of sequence_export, for each range.
local function write_ranges(k, dir, name, export)
  local r, paths, parts, bytes = k.ranges, {}, {}, 256
  for i, row in ipairs(r.rows) do
    parts[i] = {name = ("%s_to%d"):format(name, row.to), to = row.to, from = row.from}
    for _, path in ipairs(export(k.kernels[i], dir, {name = parts[i].name})) do paths[#paths + 1] = path end
    bytes = math.max(bytes, row.plan.arena_bytes)
  end
  local seq, last = r.sequence, parts[#parts].name
  local all, given = of_role(seq.tensors, "input", "state", "output"), of_role(seq.tensors, "input", "state")
  local sizes, size = export_sizes.of(seq), "size_" .. identifier(r.size)
  local function each(f) return joined(parts, f, "\n") end
  -- A statement for each range; of the last without a condition, as the size was checked.
  local function chosen(f)
    return each(function(p) return p.name == last and "	" .. f(p) or ("	if (%s <= %d)\n		%s"):format(size, p.to, f(p)) end)
  end
  local function launches(how)
    return chosen(function(p)
      return ("return of_one(%s_%s(stream, %s, temporaries, %s),\n			%s_error());"):format(p.name, how,
        joined(all, function(t) return "d_" .. identifier(t.name) end), size, p.name)
    end)
  end
  local own = sizes:words(given, all, {})
  local words = {
    NAME = name, DEVICE = r.device.name, HIP = k.target == "hip", SIZE = size, SIZENAME = r.size, LAST = last,
    MOST = ("%d"):format(r.rows[#r.rows].to), MULTIPLE = ("%d"):format(sizes.any.multiples[r.size]), BYTES = ("%d"):format(bytes),
    RANGETEXT = joined(parts, function(p) return ("%d to %d"):format(p.from, p.to) end),
    TEMPORARIES = chosen(function(p) return ("return %s_TEMPORARIES;"):format(p.name) end),
    PREPARES = chosen(function(p) return ("return of_one(%s_prepare(%s), %s_error());"):format(p.name, size, p.name) end),
    LAUNCHES = launches "launch", GRAPHS = launches "graph_launch",
    RANGES = joined(parts, function(p) return ("(%d, %s),"):format(p.to, p.name) end, " "), SIZEVALUE = own.SIZEVALUES,
  }
  return write_files("sequence_ranges", words, seq, parts, dir, paths)
end

return {sizes = write_sizes, ranges = write_ranges}
