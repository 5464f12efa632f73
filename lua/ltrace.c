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

	o->eu = option_whole(L, 3, "trace", "eu", 1, INT32_MAX, &eu) ? (int)eu - 1 : NONE;
}

/* The times of the plain kernel before and after those of the traced one, which are the
 * last to leave stamps. */
static enum err_code time_both(struct built *plain, struct built *traced, struct gpu *g,
	void *const *data, double limit, const struct gpu_bench *bench, const struct stop *stop,
	struct arena *a, struct trace_options *o, struct err *e)
{
	double ms[3];

	for (int i = 0; i < 3; i++) {
		struct gpu_result r;

		TRY(built_run(i == 1 ? traced : plain, g, data, limit, bench, stop, a, &r, e));
		ms[i] = median(&r);
	}
	o->seconds = ms[1] * 1e-3;
	o->overhead = ms[1] / ((ms[0] + ms[2]) / 2) - 1;
	return OK;
}

/* Places on the stack below the results. */
enum { OUTPUTS = 4, TIMELINE = 7 };	/* between them what holds finalizers, and the kernel */

/* core.trace(kernel, inputs, {limit=, seconds=, eu=}) -> timeline */
static int trace_l(lua_State *L)
{
	static const char *const names[] = { "limit", "seconds", "eu" };
	struct host *h = enter(L);
	struct built *b = box_get(L, 1, KERNEL_CLASS, "trace"), *t;
	struct gpu_bench bench = { .warmup = 0.05, .seconds = 0.1 };
	struct trace_options o = { .overhead = NAN };
	struct stop stop = stop_of(h);
	struct trace_input *in;
	struct timeline **out;
	double limit = 10;
	struct arena *a;
	void **data, **box;
	struct err e;

	lua_settop(L, 3);
	check_inputs(L, 2, "trace", b->graph->program);
	options_check(L, 3, "trace", names, LEN(names));
	option_real(L, 3, "trace", "limit", &limit);
	option_real(L, 3, "trace", "seconds", &bench.seconds);
	read_eu(L, &o);
	lua_newtable(L);
	hold_finalizers(L);
	box = traced_new(L, KERNEL_CLASS);
	out = timeline_box(L, -1);
	a = scratch_push(L);
	enter(L);
	data = tensor_pointers(L, b->graph->program, 2, OUTPUTS, a);
	enter(L);
	built_new_traced(&h->mem, b, (struct built **)box);
	t = *box;
	if (built_emit(t, &e) || built_compile(t, gpu_of(L), &stop, &e))
		throw_err(L, &e);
	in = ARENA_ARRAY(a, t->nphases, struct trace_input);
	for (int i = 0; i < t->nphases; i++)
		in[i] = (struct trace_input){ t->phases[i].kernel, t->phases[i].stamps };
	if (time_both(b, t, gpu_of(L), data, limit, &bench, &stop, a, &o, &e) ||
	    trace_read(&h->mem, t->plan, in, &o, a, out, &e))
		throw_err(L, &e);
	lua_pushvalue(L, TIMELINE);
	return 1;
}

/* core.host_trace(kernel, inputs, {seed=, limit=, eu=}) -> timeline, or nil and a report */
static int host_trace_l(lua_State *L)
{
	static const char *const names[] = { "seed", "limit", "eu" };
	struct host *h = enter(L);
	struct on_host *k = box_get(L, 1, ON_HOST_CLASS, "trace"), *t;
	struct trace_options o = { .logical = true, .overhead = NAN };
	struct on_host_options run = { .limit = 60 };
	struct stop stop = stop_of(h);
	struct trace_input *in;
	struct timeline **out;
	const char *report;
	int64_t seed = 1;
	struct arena *a;
	void **data, **box;
	struct err e;

	lua_settop(L, 3);
	check_inputs(L, 2, "trace", k->graph->program);
	options_check(L, 3, "trace", names, LEN(names));
	option_whole(L, 3, "trace", "seed", INT64_MIN, INT64_MAX, &seed);
	option_real(L, 3, "trace", "limit", &run.limit);
	run.seed = (uint64_t)seed;
	read_eu(L, &o);
	lua_newtable(L);
	hold_finalizers(L);
	box = traced_new(L, ON_HOST_CLASS);
	out = timeline_box(L, -1);
	a = scratch_push(L);
	enter(L);
	data = tensor_pointers(L, k->graph->program, 2, OUTPUTS, a);
	enter(L);
	on_host_new_traced(&h->mem, k, (struct on_host **)box);
	t = *box;
	if (on_host_compile(t, &stop, &e) || on_host_run(t, data, &run, &stop, a, &report, &e))
		throw_err(L, &e);
	if (report) {
		lua_pushnil(L);
		lua_pushstring(L, report);
		return 2;
	}
	in = ARENA_ARRAY(a, t->nphases, struct trace_input);
	for (int i = 0; i < t->nphases; i++)
		in[i] = (struct trace_input){ t->lowered[i], t->stamps[i] };
	if (trace_read(&h->mem, t->plan, in, &o, a, out, &e))
		throw_err(L, &e);
	lua_pushvalue(L, TIMELINE);
	return 1;
}

void lua_open_trace(lua_State *L)
{
	static const luaL_Reg functions[] = {
		{ "trace", trace_l }, { "host_trace", host_trace_l }, { NULL, NULL } };

	luaL_setfuncs(L, functions, 0);
}
