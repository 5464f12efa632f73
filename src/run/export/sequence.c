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
@?CUDA@	static const char *const libraries[] = { "libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1" };
@?HIP@	static const char *const libraries[] = { "libamdhip64.so.7", "libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so" };
	static const struct {
		void *function;
		const char *name;
		int graphs;
	} wanted[] = {
		{ &current_device, "cuCtxGetDevice", 0 }, { &create_stream, "cuStreamCreate", 0 },
		{ &destroy_stream, "cuStreamDestroy_v2", 0 }, { &create_event, "cuEventCreate", 0 },
		{ &destroy_event, "cuEventDestroy_v2", 0 }, { &event_record, "cuEventRecord", 0 }, { &stream_wait, "cuStreamWaitEvent", 0 },
		{ &begin_capture, "cuStreamBeginCapture_v2", 1 }, { &end_capture, "cuStreamEndCapture", 1 },
		{ &instantiate, "cuGraphInstantiateWithFlags", 1 }, { &update, "cuGraphExecUpdate_v2", 1 }, { &launch_graph, "cuGraphLaunch", 1 },
		{ &destroy_graph, "cuGraphDestroy", 1 }, { &destroy_exec, "cuGraphExecDestroy", 1 },
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
@?ANY@enum { SIZES = @NSIZES@ };

/* A graph of all launches. */
struct graph {
	void *exec;			/* NULL: none */
	const void *at[ARGUMENTS + 1];	/* addresses of the tensors and of the temporaries that it has */
@?ANY@	int sizes[SIZES];
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
		code = o->streams[i] ? 0 : of_driver(create_stream(&o->streams[i], 1), "cuStreamCreate");
	for (int i = 0; i < EVENTS && !code; i++)
		code = o->events[i] ? 0 : of_driver(create_event(&o->events[i], 2), "cuEventCreate");
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

@?ANY@static int check_sizes(const int *z)
@?ANY@{
@?ANY@	static const struct {
@?ANY@		const char *name;
@?ANY@		int max, multiple;
@?ANY@	} ranges[SIZES] = { @RANGES@ };
@?ANY@	char text[160];
@?ANY@
@?ANY@	for (int i = 0; i < SIZES; i++) {
@?ANY@		if (z[i] >= 1 && z[i] <= ranges[i].max && z[i] % ranges[i].multiple == 0)
@?ANY@			continue;
@?ANY@		snprintf(text, sizeof(text), " is %d; it is to be from 1 to %d, and a multiple of %d", z[i], ranges[i].max,
@?ANY@			ranges[i].multiple);
@?ANY@		return failed(-1, ranges[i].name, text);
@?ANY@	}
@?ANY@	return 0;
@?ANY@}
@?ANY@
@?ANY@/* Lists of tiles, which launches may not make that are captured. */
@?ANY@static int prepare(const int *z)
@?ANY@{
@?ANY@	int code = 0;
@?ANY@
@?ANY@	(void)z;
@PREPARES@
@?ANY@	return code;
@?ANY@}
@?ANY@
@?ANY@int @NAME@_prepare(@PREPAREPARAMETERS@)
@?ANY@{
@?ANY@	const int z[SIZES] = { @SIZELIST@ };
@?ANY@	int code = check_sizes(z);
@?ANY@
@?ANY@	return code ? code : prepare(z);
@?ANY@}
@?ANY@
/* s: streams, of which the first is not used; e: events; a: tensors; t: temporaries@ZNOTE@. */
static int launch_all(void *s0, void *const *s, void *const *e, const void *const *a, char *t@ZPARAMETER@)
{
	int code = 0;

	(void)s, (void)e, (void)t;
@?ANY@	(void)z;
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

int @NAME@_launch(struct CUstream_st *stream,
@PARAMETERLIST@
	void *temporaries@SIZEPARAMETERS@)
{
	const void *const at[ARGUMENTS + 1] = { @ARGUMENTLIST@, temporaries };
@?FORKED@	struct own *o;
@?ANY@	const int z[SIZES] = { @SIZELIST@ };
	int code = check_addresses(at);

@?ANY@	code = code ? code : check_sizes(z);
	if (code)
		return code;
@?LINEAR@	return launch_all(stream, NULL, NULL, at, temporaries@ZTOO@);
@?FORKED@	o = take_own();
@?FORKED@	if (!o)
@?FORKED@		return -1;
@?FORKED@	code = launch_all(stream, o->streams, o->events, at, temporaries@ZTOO@);
@?FORKED@	atomic_flag_clear(&in_use);
@?FORKED@	return code;
}

@?TORCH@int @NAME@_launch_with(int early, void *const *temporaries, struct CUstream_st *stream,
@?TORCH@@LASTPARAMETERS@
@?TORCH@{
@?TORCH@	(void)early;
@?TORCH@	return @NAME@_launch(stream, @ARGUMENTLIST@, temporaries[0]@SIZEARGUMENTS@);
@?TORCH@}
@?TORCH@
/* ---- launching a graph ---------------------------------------------------------- */

static int capture(struct own *o, const void *const *at, void **graph@ZPARAMETER@)
{
	int code = of_driver(begin_capture(o->streams[0], 1), "cuStreamBeginCapture_v2"), ended;

	if (code)
		return code;
	code = launch_all(o->streams[0], o->streams, o->events, at, (char *)(uintptr_t)at[ARGUMENTS]@ZTOO@);
	ended = end_capture(o->streams[0], graph);
	return code ? code : of_driver(ended, "cuStreamEndCapture");
}

/* Does g have these addresses@ANDSIZES@? */
static int has(const struct graph *g, const void *const *at@ZPARAMETER@)
{
@?FIXED@	return g->exec && !memcmp(g->at, at, sizeof(g->at));
@?ANY@	return g->exec && !memcmp(g->at, at, sizeof(g->at)) && !memcmp(g->sizes, z, sizeof(g->sizes));
}

/* Let g have these addresses@ANDSIZES@. An update costs the host less than to instantiate another one; a driver may refuse it. */
static int set_graph(struct own *o, struct graph *g, const void *const *at@ZPARAMETER@)
{
@?CUDA@	uint64_t info[8];		/* CUgraphExecUpdateResultInfo */
@?HIP@	void *node;
@?HIP@	int why;
	void *graph = NULL;
@?FIXED@	int code = capture(o, at, &graph);
@?ANY@	int code = prepare(z);

@?ANY@	code = code ? code : capture(o, at, &graph, z);
@?CUDA@	if (!code && g->exec && update(g->exec, graph, info)) {
@?HIP@	if (!code && g->exec && update(g->exec, graph, &node, &why)) {
		destroy_exec(g->exec);
		g->exec = NULL;
	}
	if (!code && !g->exec)
		code = of_driver(instantiate(&g->exec, graph, 0), "cuGraphInstantiateWithFlags");
	if (graph)
		destroy_graph(graph);
	if (!code)
		memcpy(g->at, at, sizeof(g->at));
@?ANY@	if (!code)
@?ANY@		memcpy(g->sizes, z, sizeof(g->sizes));
	return code;
}

/* The graph with these addresses@ANDSIZES@; else one that is not in use, or that was not used for the longest time. */
static struct graph *find_graph(struct own *o, const void *const *at@ZPARAMETER@)
{
	struct graph *best = o->graphs;

	for (int i = 0; i < GRAPHS; i++) {
		struct graph *g = &o->graphs[i];

		if (has(g, at@ZTOO@))
			return g;
		if (best->exec && (!g->exec || g->used < best->used))
			best = g;
	}
	return best;
}

int @NAME@_graph_launch(struct CUstream_st *stream,
@PARAMETERLIST@
	void *temporaries@SIZEPARAMETERS@)
{
	const void *const at[ARGUMENTS + 1] = { @ARGUMENTLIST@, temporaries };
@?ANY@	const int z[SIZES] = { @SIZELIST@ };
	int code = check_addresses(at);
	struct graph *g;
	struct own *o;

@?ANY@	code = code ? code : check_sizes(z);
	if (code)
		return code;
	o = take_own();
	if (!o)
		return -1;
	code = launch_graph ? 0 : find_driver(1);
	g = find_graph(o, at@ZTOO@);
	if (!code && !has(g, at@ZTOO@))
		code = set_graph(o, g, at@ZTOO@);
	g->used = ++o->launches;
	code = code ? code : of_driver(launch_graph(g->exec, stream), "cuGraphLaunch");
	atomic_flag_clear(&in_use);
	return code;
}

const char *@NAME@_error(void)
{
	return failure;
}
