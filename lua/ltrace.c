/* Traced kernels: core.trace and core.host_trace. */
#include "lkernel.h"

#include <math.h>
#include <stdlib.h>

#include "run/lengths.h"
#include "run/trace.h"

static void read_eu(lua_State *L, struct trace_options *o)
{
	int64_t eu;

	o->eu = option_integer(L, 3, "trace", "eu", 1, INT32_MAX, &eu) ? (int)eu - 1 : NONE;
}

/* Time the plain kernel, the traced one, and the plain one again, for the overhead of stamps. */
static enum err_code time_both(struct built *plain, struct built *traced, struct gpu *g,
	const struct feed *in, double limit, const struct gpu_bench *bench, const struct stop *stop,
	struct arena *a, struct trace_options *o, struct err *e)
{
	double ms[3];

	for (int i = 0; i < 3; i++) {
		struct gpu_result r;

		TRY(built_run(i == 1 ? traced : plain, plain->plan, g, in, limit, bench, stop, a, &r, e));
		ms[i] = median_ms(&r);
		o->cache = gpu_cache_name(r.cache);
	}
	o->seconds = ms[1] * 1e-3;
	o->overhead = ms[1] / ((ms[0] + ms[2]) / 2) - 1;
	return OK;
}

/* A trace in progress, of a kernel of either backend. */
struct tracing {
	struct host *host;
	struct stop stop;
	struct built *traced;
	struct timeline **out;
	int timeline;			/* its index on the stack */
	void **data;			/* of the program's tensors */
	struct arena *a;
};

/* Build the kernel at 1 with stamps. Inputs are at 2; the options at 3 have been read. */
static struct tracing tracing_begin(lua_State *L, const struct built *b, const char *class_name)
{
	struct tracing t;
	struct err e;
	void **box;
	int at;

	lua_newtable(L);		/* of outputs, at 4 */
	hold_finalizers(L);
	box = box_new(L, class_name, 2);
	at = lua_gettop(L);
	lua_getiuservalue(L, 1, 1);
	keep(L, at, 1, at + 1);		/* the plan */
	lua_pop(L, 1);
	keep(L, at, 2, 1);
	t.out = timeline_box(L, -1);
	t.timeline = lua_gettop(L);
	t.a = scratch_push(L);
	enter(L);
	t.data = tensor_pointers(L, b->graph->program, 2, 4, t.a);
	t.host = enter(L);
	t.stop = stop_of(t.host);
	built_new_traced(&t.host->mem, b, (struct built **)box);
	t.traced = *box;
	if (lengths_check(b->graph, t.data, &e) || built_emit(t.traced, NULL, NULL, &t.stop, &e) || built_compile(t.traced, gpu_of(L), &t.stop, &e))
		throw_err(L, &e);
	return t;
}

static int tracing_end(lua_State *L, const struct tracing *t, const struct trace_options *o)
{
	struct err e;

	raise_if(L, trace_read(&t->host->mem, t->traced, o, t->a, t->out, &e), &e);
	lua_pushvalue(L, t->timeline);
	return 1;
}

/* core.trace(kernel, inputs or nil, {limit=, seconds=, eu=, seed=}) -> timeline */
static int trace_l(lua_State *L)
{
	struct built *b = box_get(L, 1, KERNEL_CLASS, "trace");
	struct gpu_bench bench = { .warmup = 0.05, .seconds = 0.1 };
	struct trace_options o = { .overhead = NAN };
	double limit = 10;
	int64_t seed = 1;
	struct tracing t;
	struct feed in;
	struct err e;

	lua_settop(L, 3);
	if (!lua_isnil(L, 2))
		check_inputs(L, 2, "trace", b->graph->program);
	OPTIONS_CHECK(L, 3, "trace", "limit", "seconds", "eu", "seed");
	option_integer(L, 3, "trace", "seed", INT64_MIN, INT64_MAX, &seed);
	option_real(L, 3, "trace", "limit", &limit);
	option_real(L, 3, "trace", "seconds", &bench.seconds);
	read_eu(L, &o);
	t = tracing_begin(L, b, KERNEL_CLASS);
	in = (struct feed){ t.data, (uint64_t)seed };
	raise_if(L, time_both(b, t.traced, gpu_of(L), &in, limit, &bench, &t.stop, t.a, &o, &e), &e);
	return tracing_end(L, &t, &o);
}

/* core.host_trace(kernel, inputs, {seed=, limit=, eu=}) -> timeline, or nil and a report */
static int host_trace_l(lua_State *L)
{
	const struct built *b = box_get(L, 1, ON_HOST_CLASS, "trace");
	struct trace_options o = { .logical = true, .overhead = NAN };
	struct on_host_options run = { .limit = 60 };
	const char *report;
	struct tracing t;
	int64_t seed = 1;
	struct err e;

	lua_settop(L, 3);
	check_inputs(L, 2, "trace", b->graph->program);
	OPTIONS_CHECK(L, 3, "trace", "seed", "limit", "eu");
	option_integer(L, 3, "trace", "seed", INT64_MIN, INT64_MAX, &seed);
	option_real(L, 3, "trace", "limit", &run.limit);
	run.seed = (uint64_t)seed;
	read_eu(L, &o);
	t = tracing_begin(L, b, ON_HOST_CLASS);
	raise_if(L, on_host_run(t.traced, t.traced->plan, t.data, &run, &t.stop, t.a, &report, &e), &e);
	if (!report)
		return tracing_end(L, &t, &o);
	lua_pushnil(L);
	lua_pushstring(L, report);
	return 2;
}

/* core.typical_lengths(program) -> table: by name of the input, the length that all its elements should be in a trace; nil
 * if no loop has a length */
static int typical_lengths_l(lua_State *L)
{
	const struct program *p = check_program(L, 1, "trace");
	bool any = false;

	for (int i = 0; i < p->loops.n; i++)
		any |= p->loops.v[i].has_length;
	if (!any)
		return 0;
	lua_newtable(L);
	for (int i = 0; i < p->tensors.n; i++) {
		int64_t n = lengths_typical(p, i);

		if (!n || p->tensors.v[i].role != TENSOR_INPUT)
			continue;
		lua_pushinteger(L, n);
		lua_setfield(L, -2, p->tensors.v[i].name);
	}
	return 1;
}

void lua_open_trace(lua_State *L)
{
	static const luaL_Reg functions[] = { { "trace", trace_l }, { "host_trace", host_trace_l },
		{ "typical_lengths", typical_lengths_l }, { NULL, NULL } };

	luaL_setfuncs(L, functions, 0);
}
