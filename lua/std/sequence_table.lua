-- sequence_table.lua - compiled sequences of several sizes as one launcher in C and one module for torch, which choose among them by the
-- sizes that a call gives.

local core = require "millrace.core"
local sequences = require "millrace.sequence"
local raise, expect = core.raise, core.expect

local header <const> = [[
/* @NAME@.h - the kernels of sequence @SEQUENCE@ for several sizes on the GPU, made by Millrace from plans for @DEVICE@.
 *
 * Sizes: @SIZES@. Each has files of its own, which are built with this one; the functions are as there.
 */
#ifndef MILLRACE_@NAME@_H
#define MILLRACE_@NAME@_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct @STREAM@;

/* Load the binaries of all sizes. */
int @NAME@_load(int device);

/* Bytes of device memory for the temporaries of a launch with these sizes; 0: there is none. */
size_t @NAME@_temporaries(@SIZEPARAMETERS@);
@?ONE@
@?ONE@/* The smallest size that is there and at least so large; 0: there is none. Whoever has fewer rows than that gives tensors of that size. */
@?ONE@int @NAME@_fit(int size);

/* The launch of the kernels for exactly these sizes, and as a graph. */
int @NAME@_launch(struct @STREAM@ *stream, @SIZEPARAMETERS@,
@ARGUMENTS@
	void *temporaries);
int @NAME@_graph_launch(struct @STREAM@ *stream, @SIZEPARAMETERS@,
@ARGUMENTS@
	void *temporaries);

void @NAME@_unload(int device);
const char *@NAME@_error(void);

#ifdef __cplusplus
}
#endif
#endif
]]

local launcher <const> = [[
/* @NAME@.c - chooses among the launchers of sequence @SEQUENCE@; see @NAME@.h. */
#include "@NAME@.h"

#include <stdio.h>
@INCLUDES@

static _Thread_local char failure[600];

/* What the launcher of one of the sizes returned. */
static int of_one(int code, const char *why)
{
	if (code)
		snprintf(failure, sizeof(failure), "%s", why);
	return code;
}

static int no_such_size(void)
{
	snprintf(failure, sizeof(failure), "@NAME@: there are no kernels for these sizes; there are some for @SIZES@");
	return -1;
}

int @NAME@_load(int device)
{
	int code = 0;

@LOADS@
	return code;
}

size_t @NAME@_temporaries(@SIZEPARAMETERS@)
{
@BYTES@
	return 0;
}

@?ONE@int @NAME@_fit(int size)
@?ONE@{
@?ONE@	static const int sizes[] = { @SORTED@ };
@?ONE@
@?ONE@	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
@?ONE@		if (sizes[i] >= size)
@?ONE@			return sizes[i];
@?ONE@	return 0;
@?ONE@}
@?ONE@
int @NAME@_launch(struct @STREAM@ *stream, @SIZEPARAMETERS@,
@PARAMETERLIST@
	void *temporaries)
{
@LAUNCHES@
	return no_such_size();
}

int @NAME@_graph_launch(struct @STREAM@ *stream, @SIZEPARAMETERS@,
@PARAMETERLIST@
	void *temporaries)
{
@GRAPHS@
	return no_such_size();
}

void @NAME@_unload(int device)
{
@UNLOADS@
}

const char *@NAME@_error(void)
{
	return failure;
}
]]

local module <const> = [[
"""The kernels of sequence @SEQUENCE@ for several sizes on torch tensors, made by Millrace from plans for @DEVICE@.

    import @NAME@
    @RESULTS@ = @NAME@.run(@PARAMETERS@)

The shapes of the tensors say which kernels run; SIZES says which there are: @SIZES@. Each has a module of its own in
this folder.
"""
@IMPORTS@

NAME = "@NAME@"
SIZES = (@SIZETABLES@)
_modules = (@MODULES@)
_by_shapes = {tuple([shape for _, shape, _ in m.INPUTS + m.STATES]): m for m in _modules}


def load(device=None):
    """Load all binaries onto a device, torch's current one by default."""
    for module in _modules:
        module.load(device)


@?ONE@def fit(size):
@?ONE@    """The smallest size that is there and at least so large; None: there is none."""
@?ONE@    return min([n for n in (@SORTED@,) if n >= size], default=None)
@?ONE@
@?ONE@
def run(@PARAMETERS@, out=None, temporaries=None):
    """Launch the kernels for the shapes of these tensors; as run of their module."""
    module = _by_shapes.get(tuple([tuple(x.shape) for x in (@TUPLE@)]))
    if module is None:
        raise ValueError(f"{NAME}: there are no kernels for tensors of these shapes; there are some for @SIZES@")
    return module.run(@PARAMETERS@, out=out, temporaries=temporaries)
]]

-- The numbers that the sequences were given by the same name, and that differ: their names, and for each sequence their values.
local function differing(kernels)
  local first, given = sequences.origin(kernels[1].plan.sequence)
  local names, values, seen = {}, {}, {}
  for i, k in ipairs(kernels) do
    local of, own = sequences.origin(k.plan.sequence)
    if of ~= first then raise "export: others: all are of one sequence, at other sizes" end
    if k.target ~= kernels[1].target or k.plan.device.name ~= kernels[1].plan.device.name then
      raise "export: others: all are compiled for one device"
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
      list[j] = core.integer(own[name]) or raise(("export: others: '%s' differs and is no size"):format(name))
    end
    local key = table.concat(list, " ")
    if taken[key] then raise "export: others: two are of the same sizes" end
    taken[key], values[i] = true, list
  end
  return names, values
end

-- Write compiled sequences of one function, which differ in sizes. tools: of sequence_export.
return function(kernels, dir, name, tools)
  local fill, joined, of_role, identifier, python = tools.fill, tools.joined, tools.of_role, tools.identifier, tools.python
  for _, k in ipairs(kernels) do expect(getmetatable(k) == getmetatable(kernels[1]), "export: others", "compiled sequence", k) end
  local sizes, values = differing(kernels)
  local paths, parts, shapes = {}, {}, {}
  for i, k in ipairs(kernels) do
    local suffix = {}
    for j, size in ipairs(sizes) do suffix[j] = identifier(size) .. values[i][j] end
    parts[i] = {name = name .. "_" .. table.concat(suffix, "_"), values = values[i], kernel = k}
    local text = joined(of_role(k.plan.sequence.tensors, "input", "state"), function(t) return table.concat(t.shape, " ") end)
    if shapes[text] then raise "export: others: inputs and states of two have the same shapes, which no call could distinguish" end
    shapes[text] = true
  end
  table.sort(parts, function(a, b)
    for j in ipairs(sizes) do
      if a.values[j] ~= b.values[j] then return a.values[j] < b.values[j] end
    end
    return false
  end)
  for _, p in ipairs(parts) do
    for _, path in ipairs(tools.export(p.kernel, dir, {name = p.name})) do paths[#paths + 1] = path end
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
  local function parameters(end_of)
    return joined(all, function(t)
      return ("	%svoid *d_%s,%s"):format(t.role == "input" and "const " or "", identifier(t.name), end_of(t))
    end, "\n")
  end
  local words = {
    NAME = name, SEQUENCE = seq.name, DEVICE = first.plan.device.name, STREAM = first.target == "hip" and "ihipStream_t" or "CUstream_st",
    ONE = #sizes == 1, SIZES = joined(parts, said), SORTED = joined(parts, function(p) return ("%d"):format(p.values[1]) end),
    SIZEPARAMETERS = joined(sizes, function(x) return "int size_" .. identifier(x) end),
    ARGUMENTS = parameters(function(t) return ("		/* %s */"):format(t.role) end), PARAMETERLIST = parameters(function() return "" end),
    INCLUDES = each(function(p) return ("#include \"%s.h\""):format(p.name) end),
    LOADS = each(function(p) return ("	code = code ? code : of_one(%s_load(device), %s_error());"):format(p.name, p.name) end),
    BYTES = each(function(p) return ("	if (%s)\n		return %s_TEMPORARIES;"):format(is(p), p.name) end),
    LAUNCHES = launches "launch", GRAPHS = launches "graph_launch",
    UNLOADS = each(function(p) return ("	%s_unload(device);"):format(p.name) end),
    RESULTS = joined(of_role(seq.tensors, "output"), function(t) return python(t.name) end),
    PARAMETERS = joined(given, function(t) return python(t.name) end), TUPLE = joined(given, function(t) return python(t.name) .. "," end, " "),
    IMPORTS = each(function(p) return "import " .. p.name end), MODULES = joined(parts, function(p) return p.name .. "," end, " "),
    SIZETABLES = joined(parts, function(p)
      local list = {}
      for j, size in ipairs(sizes) do list[j] = ("%q: %d"):format(size, p.values[j]) end
      return "{" .. table.concat(list, ", ") .. "},"
    end, " "),
  }
  for ending, text in pairs{h = header, c = launcher, py = module} do
    tools.write(dir, name .. "." .. ending, fill(text, words), paths)
  end
  table.sort(paths)
  return paths
end
