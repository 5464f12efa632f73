-- sequence_export.lua - a compiled sequence as files that need no Millrace: each kernel's own (src/run/export), and a launcher in C and a
-- module for torch tensors that run all of them as the plan says.

local core = require "millrace.core"
local options = require "millrace.options"
local raise, show, expect = core.raise, core.show, core.expect

local torch_types <const> = {bf16 = "bfloat16", f16 = "float16", f32 = "float32", f64 = "float64", tf32 = "float32", i32 = "int32", i8 = "int8",
  u8 = "uint8", e4m3 = "float8_e4m3fn", e5m2 = "float8_e5m2", i4 = "uint8", e2m1 = "uint8", e8m0 = "float8_e8m0fnu", bool = "bool"}

-- @NAME@ in a text -> words.NAME. A line that begins with @?NAME@ is there if words.NAME is true.
local function fill(text, words)
  text = text:gsub("([^\n]*)\n", function(line)
    local flag, after = line:match "^@%?(%u+)@(.*)$"
    if flag and not words[flag] then return "" end
    return (flag and after or line) .. "\n"
  end)
  return (text:gsub("@(%u+)@", function(name) return words[name] or error("no word " .. name) end))
end

local header <const> = [[
/* @NAME@.h - the kernels of sequence @SEQUENCE@ on the GPU, made by Millrace from a plan for @DEVICE@.
 *
 * Build it with the files of its kernels by any C11 compiler; nothing else of CUDA's or HIP's is needed:
 *
 *	cc -std=c11 -O2 -c @SOURCES@
 *
 * All functions that return an int return 0 if all is well; otherwise @NAME@_error() says what went wrong.
 */
#ifndef MILLRACE_@NAME@_H
#define MILLRACE_@NAME@_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct @STREAM@;

/* Bytes of device memory for the temporaries of a launch, whose address is a multiple of 256. */
enum { @NAME@_TEMPORARIES = @BYTES@ };

/* Load all binaries onto this device. */
int @NAME@_load(int device);

/* Put all kernels on a stream of the device that is current in this thread, and return without waiting for them. Arguments are
 * addresses in the device's memory, multiples of 16; elements are packed, the last index is the fastest. Launches that may
 * run at the same time have temporaries of their own. The call may be captured into a graph.
@?FORKED@ * The plan has several streams: the others begin and end with this one. */
@?LINEAR@ */
int @NAME@_launch(struct @STREAM@ *stream,
@ARGUMENTS@
	void *temporaries);
@?TORCH@
@?TORCH@/* The same, for an operator of torch: the temporaries are the only one of a list. Which kernels begin early, the plan says. */
@?TORCH@int @NAME@_launch_with(int early, void *const *temporaries, struct @STREAM@ *stream,
@?TORCH@@LASTARGUMENTS@

/* The same as a graph, which the call launches at once. The first call captures and instantiates it, and so do those with other addresses,
 * until there are eight; then such a call gives the graph that was not used for the longest time its addresses. A call with
 * addresses that a graph has costs least. Two launches with the same addresses run one after the other, whatever their
 * streams. */
int @NAME@_graph_launch(struct @STREAM@ *stream,
@ARGUMENTS@
	void *temporaries);

/* Once nothing of it runs any more. */
void @NAME@_unload(int device);

/* What the last failure in this thread was; "" before the first. */
const char *@NAME@_error(void);

#ifdef __cplusplus
}
#endif
#endif
]]

local launcher <const> = [[
/* @NAME@.c - launches the kernels of sequence @SEQUENCE@; see @NAME@.h. */
#include "@NAME@.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
@INCLUDES@

static _Thread_local char failure[512];

static int failed(int code, const char *what, const char *why)
{
	snprintf(failure, sizeof(failure), "@NAME@: %s%s", what, why);
	return code;
}

/* What a kernel's launcher returned. */
static int of_kernel(int code, const char *why)
{
	return code ? failed(code, "", why) : 0;
}

/* What the driver returned. */
static int of_driver(int code, const char *function)
{
	return code ? failed(code, function, " failed") : 0;
}

/* ---- the driver ----------------------------------------------------------------- */

static int (*current_device)(int *);
static int (*create_stream)(void **, unsigned), (*destroy_stream)(void *);
static int (*create_event)(void **, unsigned), (*destroy_event)(void *);
static int (*event_record)(void *, void *), (*stream_wait)(void *, void *, unsigned);
static int (*begin_capture)(void *, int), (*end_capture)(void *, void **);
static int (*instantiate)(void **, void *, unsigned long long);
@?CUDA@static int (*update)(void *, void *, void *);
@?HIP@static int (*update)(void *, void *, void *, void *);
static int (*launch_graph)(void *, void *), (*destroy_graph)(void *), (*destroy_exec)(void *);

/* Find its functions in the library that the kernels' launchers have opened. graphs: those of graphs, too, which older drivers lack. */
static int find_driver(int graphs)
{
	static const char *const libraries[] = { @LIBRARIES@ };
	static const struct {
		void *function;
		const char *name;
		int graphs;
	} wanted[] = {
		{ &current_device, "@CURRENT@", 0 }, { &create_stream, "@CREATESTREAM@", 0 },
		{ &destroy_stream, "@DESTROYSTREAM@", 0 }, { &create_event, "@CREATEEVENT@", 0 },
		{ &destroy_event, "@DESTROYEVENT@", 0 }, { &event_record, "@RECORD@", 0 }, { &stream_wait, "@WAIT@", 0 },
		{ &begin_capture, "@BEGINCAPTURE@", 1 }, { &end_capture, "@ENDCAPTURE@", 1 },
		{ &instantiate, "@INSTANTIATE@", 1 }, { &update, "@UPDATE@", 1 }, { &launch_graph, "@LAUNCHGRAPH@", 1 },
		{ &destroy_graph, "@DESTROYGRAPH@", 1 }, { &destroy_exec, "@DESTROYEXEC@", 1 },
	};
	void *library = NULL;

	for (int i = 0; i < 3 && !library; i++)
		library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
	for (unsigned i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
		*(void **)wanted[i].function = library ? dlsym(library, wanted[i].name) : NULL;
		if (!*(void **)wanted[i].function && (graphs || !wanted[i].graphs))
			return failed(-1, "the driver has no ", wanted[i].name);
	}
	return 0;
}

/* ---- what each device has ------------------------------------------------------- */

enum { DEVICES = 64, STREAMS = @STREAMS@, EVENTS = @EVENTS@, ARGUMENTS = @NARGUMENTS@, GRAPHS = 8 };

/* A graph of all launches. */
struct graph {
	void *exec;			/* NULL: none */
	const void *at[ARGUMENTS + 1];	/* addresses of the tensors and of the temporaries that it has */
	unsigned long used;		/* when it was launched last, by own.launches */
};

/* Stream 0 captures, the others are those of the plan in addition to the caller's. A launch that needs any of it has all for itself. */
static struct own {
	int ready;
	void *streams[STREAMS], *events[EVENTS];
	struct graph graphs[GRAPHS];
	unsigned long launches;
} own[DEVICES];
static atomic_flag in_use = ATOMIC_FLAG_INIT;

static int make_streams(struct own *o)
{
	int code = 0;

	for (int i = 0; i < STREAMS && !code; i++)
		code = o->streams[i] ? 0 : of_driver(create_stream(&o->streams[i], 1), "@CREATESTREAM@");
	for (int i = 0; i < EVENTS && !code; i++)
		code = o->events[i] ? 0 : of_driver(create_event(&o->events[i], 2), "@CREATEEVENT@");
	o->ready = !code;
	return code;
}

int @NAME@_load(int device)
{
	int code = 0;

@LOADS@
	code = code ? code : device >= 0 && device < DEVICES ? find_driver(0) : failed(-1, "there is no such device", "");
	code = code ? code : make_streams(&own[device]);
	if (code)
		@NAME@_unload(device);
	return code;
}

void @NAME@_unload(int device)
{
	struct own *o = &own[device >= 0 && device < DEVICES ? device : 0];

	if (device >= 0 && device < DEVICES) {
		for (int i = 0; i < GRAPHS; i++)
			if (o->graphs[i].exec)
				destroy_exec(o->graphs[i].exec);
		for (int i = 0; i < STREAMS; i++)
			if (o->streams[i])
				destroy_stream(o->streams[i]);
		for (int i = 0; i < EVENTS; i++)
			if (o->events[i])
				destroy_event(o->events[i]);
		memset(o, 0, sizeof(*o));
	}
@UNLOADS@
}

/* ---- launching ------------------------------------------------------------------ */

/* s: streams, of which the first is not used; e: events; a: tensors; t: temporaries. */
static int launch_all(void *s0, void *const *s, void *const *e, const void *const *a, char *t)
{
	int code = 0;

	(void)s, (void)e, (void)t;
@CALLS@
	return code;
}

static int check_addresses(const void *const *at)
{
	static const char *const names[ARGUMENTS] = { @ARGUMENTNAMES@ };

	for (int i = 0; i < ARGUMENTS; i++)
		if (!at[i] || (uintptr_t)at[i] % 16)
			return failed(-1, names[i], ": its address is no multiple of 16, or NULL");
	if (!at[ARGUMENTS] || (uintptr_t)at[ARGUMENTS] % 256)
		return failed(-1, "temporaries", ": their address is no multiple of 256, or NULL");
	return 0;
}

/* What the device that is current has, for this thread alone; NULL: it is not loaded there. */
static struct own *take_own(void)
{
	int device = -1;

	if (!current_device || current_device(&device) || device < 0 || device >= DEVICES || !own[device].ready) {
		failed(-1, "not loaded on the device that is current: call @NAME@_load first", "");
		return NULL;
	}
	while (atomic_flag_test_and_set(&in_use))
		;
	return &own[device];
}

int @NAME@_launch(struct @STREAM@ *stream,
@PARAMETERLIST@
	void *temporaries)
{
	const void *const at[ARGUMENTS + 1] = { @ARGUMENTLIST@, temporaries };
@?FORKED@	struct own *o;
	int code = check_addresses(at);

	if (code)
		return code;
@?LINEAR@	return launch_all(stream, NULL, NULL, at, temporaries);
@?FORKED@	o = take_own();
@?FORKED@	if (!o)
@?FORKED@		return -1;
@?FORKED@	code = launch_all(stream, o->streams, o->events, at, temporaries);
@?FORKED@	atomic_flag_clear(&in_use);
@?FORKED@	return code;
}

@?TORCH@int @NAME@_launch_with(int early, void *const *temporaries, struct @STREAM@ *stream,
@?TORCH@@LASTPARAMETERS@
@?TORCH@{
@?TORCH@	(void)early;
@?TORCH@	return @NAME@_launch(stream, @ARGUMENTLIST@, temporaries[0]);
@?TORCH@}
@?TORCH@
/* ---- launching a graph ---------------------------------------------------------- */

static int capture(struct own *o, const void *const *at, void **graph)
{
	int code = of_driver(begin_capture(o->streams[0], 1), "@BEGINCAPTURE@"), ended;

	if (code)
		return code;
	code = launch_all(o->streams[0], o->streams, o->events, at, (char *)(uintptr_t)at[ARGUMENTS]);
	ended = end_capture(o->streams[0], graph);
	return code ? code : of_driver(ended, "@ENDCAPTURE@");
}

/* Let g have these addresses. An update costs the host less than to instantiate another one; a driver may refuse it. */
static int set_graph(struct own *o, struct graph *g, const void *const *at)
{
@?CUDA@	uint64_t info[8];		/* CUgraphExecUpdateResultInfo */
@?HIP@	void *node;
@?HIP@	int why;
	void *graph = NULL;
	int code = capture(o, at, &graph);

@?CUDA@	if (!code && g->exec && update(g->exec, graph, info)) {
@?HIP@	if (!code && g->exec && update(g->exec, graph, &node, &why)) {
		destroy_exec(g->exec);
		g->exec = NULL;
	}
	if (!code && !g->exec)
		code = of_driver(instantiate(&g->exec, graph, 0), "@INSTANTIATE@");
	if (graph)
		destroy_graph(graph);
	if (!code)
		memcpy(g->at, at, sizeof(g->at));
	return code;
}

/* The graph with these addresses; else one that is not in use, or that was not used for the longest time. */
static struct graph *find_graph(struct own *o, const void *const *at)
{
	struct graph *best = o->graphs;

	for (int i = 0; i < GRAPHS; i++) {
		struct graph *g = &o->graphs[i];

		if (g->exec && !memcmp(g->at, at, sizeof(g->at)))
			return g;
		if (best->exec && (!g->exec || g->used < best->used))
			best = g;
	}
	return best;
}

int @NAME@_graph_launch(struct @STREAM@ *stream,
@PARAMETERLIST@
	void *temporaries)
{
	const void *const at[ARGUMENTS + 1] = { @ARGUMENTLIST@, temporaries };
	int code = check_addresses(at);
	struct graph *g;
	struct own *o;

	if (code)
		return code;
	o = take_own();
	if (!o)
		return -1;
	code = launch_graph ? 0 : find_driver(1);
	g = find_graph(o, at);
	if (!code && (!g->exec || memcmp(g->at, at, sizeof(g->at))))
		code = set_graph(o, g, at);
	g->used = ++o->launches;
	code = code ? code : of_driver(launch_graph(g->exec, stream), "@LAUNCHGRAPH@");
	atomic_flag_clear(&in_use);
	return code;
}

const char *@NAME@_error(void)
{
	return failure;
}
]]

local module <const> = [[
"""The kernels of sequence @SEQUENCE@ on torch tensors, made by Millrace from a plan for @DEVICE@.

    import @NAME@
    @RESULTS@ = @NAME@.run(@PARAMETERS@)

INPUTS, STATES, which the kernels read and write, and OUTPUTS say names, shapes and types. All are contiguous, on one device. A call does not
wait for the kernels; it can be captured into a CUDA graph once load() or run() was called before. There is no gradient. The
modules of the kernels are in the same folder: @KERNELS@.
"""
import torch

@IMPORTS@

NAME = "@NAME@"
FLOPS = @FLOPS@
BYTES = @ACCESSED@
INPUTS = (@INPUTS@)
STATES = (@STATES@)
OUTPUTS = (@OUTPUTS@)
TEMPORARIES = @BYTES@  # bytes


def load(device=None):
    """Load all binaries onto a device, torch's current one by default."""
    for kernel in (@MODULES@):
        kernel.load(device)
@?FORKED@    _streams_of(torch.cuda.current_device() if device is None else torch.device(device).index or 0)


@?FORKED@_streams = {}
@?FORKED@
@?FORKED@
@?FORKED@def _streams_of(index):
@?FORKED@    if index not in _streams:
@?FORKED@        _streams[index] = [torch.cuda.Stream(torch.device("cuda", index)) for _ in range(@MORESTREAMS@)]
@?FORKED@    return _streams[index]
@?FORKED@
@?FORKED@
def _check(tensors, wanted):
    for x, (name, shape, dtype) in zip(tensors, wanted):
        if not isinstance(x, torch.Tensor) or x.dtype != dtype or tuple(x.shape) != shape or not x.is_contiguous():
            raise ValueError(f"{NAME}: {name} must be a contiguous tensor of {dtype} with shape {shape}")


def _part(x, offset, shape):
    """Elements of a tensor from `offset` on, in another shape."""
    n = 1
    for size in shape:
        n *= size
    return x.view(-1)[offset:offset + n].view(shape)


def run(@PARAMETERS@, out=None, temporaries=None):
    """Launch all kernels; return the output (several: a tuple of them).

    out: where to put it. temporaries: TEMPORARIES bytes, uint8, that no other launch uses at the same time. New ones otherwise.
    """
    _check((@TUPLE@), INPUTS + STATES)
    device = @FIRST@.device
    out = (out,) if isinstance(out, torch.Tensor) else out
    if out is None:
        out = tuple([torch.empty(shape, dtype=dtype, device=device) for _, shape, dtype in OUTPUTS])
    _check(out, OUTPUTS)
    if temporaries is None:
        temporaries = torch.empty((TEMPORARIES,), dtype=torch.uint8, device=device)
    _check((temporaries,), (("temporaries", (TEMPORARIES,), torch.uint8),))
@OUTS@
@BODY@
    return out[0] if len(out) == 1 else out
]]

---- what they say ---------------------------------------------------------------------------------

local function shape_text(shape)
  return ("(%s%s)"):format(table.concat(shape, ", "), #shape == 1 and "," or "")
end

local bits <const> = {f64 = 64, f32 = 32, tf32 = 32, i32 = 32, bf16 = 16, f16 = 16, i4 = 4, e2m1 = 4}
local function bytes_of(dtype, n) return n * (bits[dtype] or 8) // 8 end

-- The shape that torch sees: of 4-bit elements two are a byte.
local function torch_shape(t)
  local shape = {table.unpack(t.shape)}
  if bits[t.dtype] == 4 then shape[#shape] = shape[#shape] // 2 end
  return shape
end

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

local function identifier(name) return (name:gsub("[^%w_]", "_")) end

-- Python's name of a tensor.
local keywords = {}
for word in ("and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or "
  .. "pass raise return try while with yield None True False out temporaries torch device run load s streams tuple isinstance NAME FLOPS BYTES "
  .. "INPUTS STATES OUTPUTS TEMPORARIES"):gmatch "%S+" do keywords[word] = true end
local function python(name) return keywords[name] and name .. "_" or name end

-- The launches in C: a[i] is tensor i of `numbers`, s0 the caller's stream. late: by call, does the launcher of its kernel have one that is not
-- early?
local function c_body(k, kernel_of, argument, late)
  local sp = k.plan
  local seq, offsets, number, numbers = sp.sequence, sp.offsets, streams_of(sp)
  local lines, event, waited, events = {}, {}, waited_for(sp), 0
  local function stream(n) return number[n] == 0 and "s0" or ("s[%d]"):format(number[n]) end
  local function add(text) lines[#lines + 1] = "	code = code ? code : " .. text .. ";" end
  local function record(n, s) add(("of_driver(event_record(e[%d], %s), \"@RECORD@\")"):format(n, s)) end
  local function wait(s, n) add(("of_driver(stream_wait(%s, e[%d], 0), \"@WAIT@\")"):format(s, n)) end
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
    local shape = shape_text(torch_shape(a.own))
    if offsets[a.tensor] then
      local at = offsets[a.tensor] + bytes_of(a.own.dtype, a.offset)
      local n = 1
      for _, size in ipairs(a.own.shape) do n = n * size end
      return ("temporaries[%d:%d].view(torch.%s).view(%s)"):format(at, at + bytes_of(a.own.dtype, n), torch_types[a.own.dtype], shape)
    end
    local t = shapes[a.tensor]
    if a.offset == 0 and table.concat(t.shape, " ") == table.concat(a.own.shape, " ") then return python(a.tensor) end
    return ("_part(%s, %d, %s)"):format(python(a.tensor), bits[a.own.dtype] == 4 and a.offset // 2 or a.offset, shape)
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

local function write(dir, name, text, paths)
  local path = ("%s/%s"):format(dir, name)
  local good, why = core.replace_file(path, text)
  if not good then raise(("export: cannot write %s: %s"):format(path, why)) end
  paths[#paths + 1] = path
end

local function of_role(tensors, ...)
  local list = {}
  for _, role in ipairs{...} do
    for _, t in ipairs(tensors) do
      if t.role == role then list[#list + 1] = t end
    end
  end
  return list
end

local function joined(list, f, separator)
  local texts = {}
  for i, x in ipairs(list) do texts[i] = f(x) end
  return table.concat(texts, separator or ", ")
end

local tools = {fill = fill, joined = joined, of_role = of_role, identifier = identifier, python = python, write = write}

-- The same as a package of a PyTorch operator (src/run/export_torch.h).
local function torch_package(k, dir, words, kernels, names, all)
  local tensors = {}
  for i, t in ipairs(all) do
    tensors[i] = {name = python(t.name), type = torch_types[t.dtype], role = t.role, shape = torch_shape(t)}
  end
  return core.export_torch_sequence(dir, {name = words.NAME, about = ("sequence %s from a plan for %s"):format(words.SEQUENCE, words.DEVICE),
    header = fill(header, words), launcher = fill(launcher, words), temporaries = math.tointeger(words.BYTES)}, kernels, names, tensors)
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
    return require("millrace.sequence_table")({k, table.unpack(o.others)}, dir, name, tools)
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
  local tensors, tl = seq.tensors, sp:simulate()
  local given_tensors, all = of_role(tensors, "input", "state"), of_role(tensors, "input", "state", "output")
  local argument = {}
  for i, t in ipairs(all) do argument[t.name] = i - 1 end
  local calls, streams, events = c_body(k, kernel_of, argument, late)
  local hip = k.target == "hip"
  local function tuples(list)
    return joined(list, function(t)
      return ("(%q, %s, torch.%s),"):format(t.name, shape_text(torch_shape(t)), torch_types[t.dtype])
    end, " ")
  end
  local function parameter(t) return ("	%svoid *d_%s"):format(t.role == "input" and "const " or "", identifier(t.name)) end
  local words = {
    NAME = name, SEQUENCE = seq.name, DEVICE = sp.device.name, BYTES = ("%d"):format(math.max(sp.arena_bytes, 256)),
    STREAM = hip and "ihipStream_t" or "CUstream_st", TORCH = o.torch == true, FORKED = streams > 0, LINEAR = streams == 0, CUDA = not hip, HIP = hip,
    STREAMS = ("%d"):format(streams + 1), MORESTREAMS = ("%d"):format(streams), NARGUMENTS = ("%d"):format(#all), EVENTS = ("%d"):format(events), 
    LIBRARIES = hip and '"libamdhip64.so.7", "libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so"'
      or '"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"',
    CURRENT = hip and "hipGetDevice" or "cuCtxGetDevice", CREATESTREAM = hip and "hipStreamCreateWithFlags" or "cuStreamCreate",
    DESTROYSTREAM = hip and "hipStreamDestroy" or "cuStreamDestroy_v2",
    CREATEEVENT = hip and "hipEventCreateWithFlags" or "cuEventCreate", DESTROYEVENT = hip and "hipEventDestroy" or "cuEventDestroy_v2",
    RECORD = hip and "hipEventRecord" or "cuEventRecord", WAIT = hip and "hipStreamWaitEvent" or "cuStreamWaitEvent",
    BEGINCAPTURE = hip and "hipStreamBeginCapture" or "cuStreamBeginCapture_v2", ENDCAPTURE = hip and "hipStreamEndCapture" or "cuStreamEndCapture",
    INSTANTIATE = hip and "hipGraphInstantiateWithFlags" or "cuGraphInstantiateWithFlags",
    UPDATE = hip and "hipGraphExecUpdate" or "cuGraphExecUpdate_v2", LAUNCHGRAPH = hip and "hipGraphLaunch" or "cuGraphLaunch",
    DESTROYGRAPH = hip and "hipGraphDestroy" or "cuGraphDestroy", DESTROYEXEC = hip and "hipGraphExecDestroy" or "cuGraphExecDestroy",
    SOURCES = name .. ".c " .. joined(kernels, function(x) return x .. ".c" end, " "),
    INCLUDES = joined(kernels, function(x) return ("#include \"%s.h\""):format(x) end, "\n"),
    ARGUMENTS = joined(all, function(t)
      return ("	%svoid *d_%s,		/* %s, %s */"):format(t.role == "input" and "const " or "", identifier(t.name), t.role, ("%s {%s}"):format(
        t.dtype, table.concat(t.shape, ", ")))
    end, "\n"),
    PARAMETERLIST = joined(all, parameter, ",\n") .. ",", LASTPARAMETERS = joined(all, parameter, ",\n") .. ")",
    LASTARGUMENTS = joined(all, parameter, ",\n") .. ");",
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
    BODY = python_body(k, kernel_of, late),
  }
  words.CALLS = fill(calls .. "\n", words):sub(1, -2)
  if o.torch then return torch_package(k, dir, words, built, kernels, all) end
  local outs = of_role(tensors, "output")
  words.OUTS = #outs > 0 and ("    %s, = out"):format(joined(outs, function(t) return python(t.name) end)) or ""
  write(dir, name .. ".h", fill(header, words), paths)
  write(dir, name .. ".c", fill(launcher, words), paths)
  write(dir, name .. ".py", fill(module, words), paths)
  table.sort(paths)
  return paths
end

tools.export = export

return {export = export}
