/* Traced kernels: core.trace and core.host_trace. */
#include "lkernel.h"

#include <math.h>
#include <stdlib.h>

#include "run/trace.h"

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

static double median(struct gpu_result *r)
{
	qsort(r->ms, (size_t)r->runs, sizeof(*r->ms), by_value);
	return r->runs ? r->ms[(r->runs - 1) / 2] : NAN;
}

/* A new kernel of the kind at index 1, which keeps that one and its plan. */
static void **traced_new(lua_State *L, const char *class_name)
{
	void **box = box_new(L, class_name, 2);
	int at = lua_gettop(L);

	lua_getiuservalue(L, 1, 1);
	keep(L, at, 1, at + 1);
	lua_pop(L, 1);
	keep(L, at, 2, 1);
	return box;
}

static void read_eu(lua_State *L, struct trace_options *o)
{
	int64_t eu;

	o->eu = option_integer(L, 3, "trace", "eu", 1, INT32_MAX, &eu) ? (int)eu - 1 : NONE;
}

/* The times of the plain kernel before and after those of the traced one, which are the
 * last to leave stamps. */
static enum err_code time_both(struct built *plain, struct built *traced, struct gpu *g,
	const struct feed *in, double limit, const struct gpu_bench *bench, const struct stop *stop,
	struct arena *a, struct trace_options *o, struct err *e)
{
	double ms[3];

	for (int i = 0; i < 3; i++) {
		struct gpu_result r;

		TRY(built_run(i == 1 ? traced : plain, g, in, limit, bench, stop, a, &r, e));
		ms[i] = median(&r);
		o->cache = gpu_cache_name(r.cache);
	}
	o->seconds = ms[1] * 1e-3;
	o->overhead = ms[1] / ((ms[0] + ms[2]) / 2) - 1;
	return OK;
}

enum { OUTPUTS = 4 };			/* place on the stack of the table of outputs */

/* A trace under way, of a kernel of either kind. */
struct tracing {
	struct host *host;
	void **box;			/* of the traced kernel */
	struct timeline **out;
	int timeline;			/* its place on the stack */
	struct trace_input *in;		/* by phase */
	void **data;			/* of the program's tensors */
	struct arena *a;
};

/* Arguments: kernel, inputs, options. The options are read by then. */
static struct tracing tracing_begin(lua_State *L, const char *class_name, const struct graph *g)
{
	struct tracing t;

	lua_newtable(L);
	hold_finalizers(L);
	t.box = traced_new(L, class_name);
	t.out = timeline_box(L, -1);
	t.timeline = lua_gettop(L);
	t.a = scratch_push(L);
	enter(L);
	t.data = tensor_pointers(L, g->program, 2, OUTPUTS, t.a);
	t.host = enter(L);
	t.in = ARENA_ARRAY(t.a, g->program->phases.n, struct trace_input);
	return t;
}

static int tracing_end(lua_State *L, const struct tracing *t, const struct plan *p,
	const struct trace_options *o)
{
	struct err e;

	if (trace_read(&t->host->mem, p, t->in, o, t->a, t->out, &e))
		throw_err(L, &e);
	lua_pushvalue(L, t->timeline);
	return 1;
}

/* core.trace(kernel, inputs or nil, {limit=, seconds=, eu=, seed=}) -> timeline */
static int trace_l(lua_State *L)
{
	static const char *const names[] = { "limit", "seconds", "eu", "seed" };
	struct host *h = enter(L);
	struct built *b = box_get(L, 1, KERNEL_CLASS, "trace"), *traced;
	struct gpu_bench bench = { .warmup = 0.05, .seconds = 0.1 };
	struct trace_options o = { .overhead = NAN };
	struct stop stop = stop_of(h);
	double limit = 10;
	int64_t seed = 1;
	struct tracing t;
	struct feed in;
	struct err e;

	lua_settop(L, 3);
	if (!lua_isnil(L, 2))
		check_inputs(L, 2, "trace", b->graph->program);
	options_check(L, 3, "trace", names, LEN(names));
	option_integer(L, 3, "trace", "seed", INT64_MIN, INT64_MAX, &seed);
	option_real(L, 3, "trace", "limit", &limit);
	option_real(L, 3, "trace", "seconds", &bench.seconds);
	read_eu(L, &o);
	t = tracing_begin(L, KERNEL_CLASS, b->graph);
	built_new_traced(&h->mem, b, (struct built **)t.box);
	traced = *t.box;
	in = (struct feed){ t.data, (uint64_t)seed };
	if (built_emit(traced, &e) || built_compile(traced, gpu_of(L), &stop, &e) ||
	    time_both(b, traced, gpu_of(L), &in, limit, &bench, &stop, t.a, &o, &e))
		throw_err(L, &e);
	for (int i = 0; i < traced->nphases; i++)
		t.in[i] = (struct trace_input){ traced->phases[i].kernel, traced->phases[i].stamps };
	return tracing_end(L, &t, traced->plan, &o);
}

/* core.host_trace(kernel, inputs, {seed=, limit=, eu=}) -> timeline, or nil and a report */
static int host_trace_l(lua_State *L)
{
	static const char *const names[] = { "seed", "limit", "eu" };
	struct host *h = enter(L);
	struct on_host *k = box_get(L, 1, ON_HOST_CLASS, "trace"), *traced;
	struct trace_options o = { .logical = true, .overhead = NAN };
	struct on_host_options run = { .limit = 60 };
	struct stop stop = stop_of(h);
	const char *report;
	struct tracing t;
	int64_t seed = 1;
	struct err e;

	lua_settop(L, 3);
	check_inputs(L, 2, "trace", k->graph->program);
	options_check(L, 3, "trace", names, LEN(names));
	option_integer(L, 3, "trace", "seed", INT64_MIN, INT64_MAX, &seed);
	option_real(L, 3, "trace", "limit", &run.limit);
	run.seed = (uint64_t)seed;
	read_eu(L, &o);
	t = tracing_begin(L, ON_HOST_CLASS, k->graph);
	on_host_new_traced(&h->mem, k, (struct on_host **)t.box);
	traced = *t.box;
	if (on_host_compile(traced, &stop, &e) ||
	    on_host_run(traced, t.data, &run, &stop, t.a, &report, &e))
		throw_err(L, &e);
	if (report) {
		lua_pushnil(L);
		lua_pushstring(L, report);
		return 2;
	}
	for (int i = 0; i < traced->nphases; i++)
		t.in[i] = (struct trace_input){ traced->lowered[i], traced->stamps[i] };
	return tracing_end(L, &t, traced->plan, &o);
}

void lua_open_trace(lua_State *L)
{
	static const luaL_Reg functions[] = {
		{ "trace", trace_l }, { "host_trace", host_trace_l }, { NULL, NULL } };

	luaL_setfuncs(L, functions, 0);
}
