/* Running the kernels of a sequence. */
#include "lkernel.h"
#include "lsequence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run/run_sequence.h"
#include "run/trace.h"

/* What a run is given and gives: arrays by name. */
struct arrays {
	int inputs, outputs;		/* stack indices */
};

static void dims_of(const struct seq_tensor *t, char *buf, size_t size)
{
	array_show_shape(buf, size, t->rank, t->dim);
}

/* Push the array of an input or state, of the right type and shape. */
static struct array *push_given(lua_State *L, int inputs, const struct seq_tensor *t)
{
	char has[SHOW_MAX], wants[SHOW_MAX];
	struct array *a;

	if (lua_getfield(L, inputs, t->name) == LUA_TNIL)
		throw_msg(L, "run: %s '%s' is missing", seq_role_names[t->role], t->name);
	a = check_array(L, -1, "run");
	dims_of(t, wants, sizeof(wants));
	array_show_shape(has, sizeof(has), a->rank, a->dim);
	if (a->type != t->type || strcmp(has, wants) != 0)
		throw_msg(L, "run: %s '%s' is %s %s, the sequence wants %s %s", seq_role_names[t->role], t->name,
			dtype_name(a->type), has, dtype_name(t->type), wants);
	return a;
}

static void *new_array(lua_State *L, int table, const struct seq_tensor *t)
{
	void *data = array_new(L, "run", t->type, t->rank, t->dim)->data;

	lua_setfield(L, table, t->name);
	return data;
}

/* By tensor: where its elements are; NULL for temporaries. A state begins with the given one, in an array of its
 * own. */
static void **tensor_data(lua_State *L, const struct sequence *s, const struct arrays *x, struct arena *a)
{
	void **data = ARENA_ARRAY(a, s->tensors.n, void *);

	for (int i = 0; i < s->tensors.n; i++) {
		const struct seq_tensor *t = &s->tensors.v[i];
		struct array *given = NULL;

		if (t->role == SEQ_INPUT || t->role == SEQ_STATE)
			given = push_given(L, x->inputs, t);
		if (t->role == SEQ_INPUT)
			data[i] = given->data;
		else if (t->role != SEQ_TEMP)
			data[i] = new_array(L, x->outputs, t);
		if (t->role == SEQ_STATE)
			memcpy(data[i], given->data, t->bytes);
		if (given)
			lua_pop(L, 1);
	}
	return data;
}

static struct built **kernels_at(lua_State *L, int list, int n, const char *what, struct arena *a)
{
	struct built **kernels = ARENA_ARRAY(a, n, struct built *);

	for (int i = 0; i < n; i++) {
		lua_rawgeti(L, list, i + 1);
		kernels[i] = check_built(L, -1, what);
		lua_pop(L, 1);
	}
	return kernels;
}

/* core.sequence_run(sp, {kernel, ...}, inputs, {limit=, seconds=, seed=, race=, graph=}) -> outputs, list of
 * milliseconds or nil, how. The kernels are those of the calls, in order of the sequence. graph=false: on the
 * device, launch the kernels one after the other, and wait for each unless timed; else all together, as a graph.
 * Raises what the CPU's runtime finds wrong. */
static int run_l(lua_State *L)
{
	struct host *h = enter(L);
	const struct seqplan *p = check_seqplan(L, 1, "run");
	const struct sequence *s = p->s;
	struct on_host_options o = { .limit = 60, .race = true };
	struct gpu_bench bench = { .warmup = 0.05 };
	struct stop stop = stop_of(h);
	struct sequence_job job = { .plan = p };
	struct gpu_result r = { 0 };
	struct built **kernels;
	const char *report = NULL;
	struct arrays x = { 3, 5 };
	bool timed, on_host, graph = true;
	int64_t seed = 1;
	struct arena *a;
	struct err e;

	lua_settop(L, 4);
	OPTIONS_CHECK(L, 4, "run", "limit", "seconds", "seed", "race", "graph");
	lua_newtable(L);
	arrays_describe(L);
	option_integer(L, 4, "run", "seed", INT64_MIN, INT64_MAX, &seed);
	option_real(L, 4, "run", "limit", &o.limit);
	option_bool(L, 4, "run", "race", &o.race);
	option_bool(L, 4, "run", "graph", &graph);
	job.graph = graph;
	timed = option_real(L, 4, "run", "seconds", &bench.seconds);
	if (lua_type(L, 3) != LUA_TTABLE)
		throw_type(L, 3, "run", "table of inputs");
	a = scratch_push(L);
	kernels = kernels_at(L, 2, s->calls.n, "run", a);
	o.seed = (uint64_t)seed;
	job.kernels = kernels;
	job.data = tensor_data(L, s, &x, a);
	on_host = kernels[0]->backend == BACKEND_HOST;
	enter(L);
	raise_if(L, on_host ? sequence_on_host(&job, &o, &stop, a, &report, &e) :
		sequence_on_device(&job, gpu_of(L), o.limit, timed ? &bench : NULL, &stop, a, &r, &e), &e);
	if (report)
		throw_msg(L, "run: %s", report);
	lua_pushvalue(L, x.outputs);
	if (on_host)
		return 1;
	PUSH_LIST(L, i, r.runs, lua_pushnumber(L, r.ms[i]));
	lua_createtable(L, 0, 3);
	lua_pushboolean(L, r.graph);
	lua_setfield(L, -2, "graph");
	set_text(L, "cache", gpu_cache_name(r.cache));
	if (r.watts > 0)
		set_real(L, "watts", r.watts);
	return 3;
}

/* ---- a call alone ---- */

/* core.sequence_arrays(sequence, inputs) -> arrays of all tensors by name, as they are before the first call: the
 * given inputs, copies of the given states, outputs and temporaries filled with poison; none of what a program
 * keeps between its phases */
static int arrays_l(lua_State *L)
{
	const struct sequence *s = check_sequence(L, 1, "run");

	lua_settop(L, 2);
	if (lua_type(L, 2) != LUA_TTABLE)
		throw_type(L, 2, "run", "table of inputs");
	lua_newtable(L);
	arrays_describe(L);
	for (int i = 0; i < s->tensors.n; i++) {
		const struct seq_tensor *t = &s->tensors.v[i];

		if (t->role == SEQ_INPUT) {
			push_given(L, 2, t);
			lua_setfield(L, 3, t->name);
		} else if (t->role == SEQ_STATE) {
			const struct array *given = push_given(L, 2, t);

			memcpy(new_array(L, 3, t), given->data, t->bytes);
			lua_pop(L, 1);
		} else if (t->call == NONE) {
			memset(new_array(L, 3, t), SEQUENCE_POISON_BYTE, t->bytes);
		}
	}
	return 1;
}

/* core.sequence_run_call(sp, {kernel, ...}, call, arrays, {limit=, seed=, race=}): run one call alone, on
 * the arrays of its tensors, which sequence_arrays has made. Raises as sequence_run does. */
static int run_call_l(lua_State *L)
{
	struct host *h = enter(L);
	const struct seqplan *p = check_seqplan(L, 1, "run");
	const struct sequence *s = p->s;
	struct on_host_options o = { .limit = 60, .race = true };
	struct sequence_job job = { .plan = p };
	int call = check_call(L, 3, "run", s);
	struct stop stop = stop_of(h);
	const char *report = NULL;
	struct gpu_result r;
	int64_t seed = 1;
	struct arena *a;
	void **data;
	struct err e;

	lua_settop(L, 5);
	OPTIONS_CHECK(L, 5, "run", "limit", "seed", "race");
	option_integer(L, 5, "run", "seed", INT64_MIN, INT64_MAX, &seed);
	option_real(L, 5, "run", "limit", &o.limit);
	option_bool(L, 5, "run", "race", &o.race);
	o.seed = (uint64_t)seed + (uint64_t)call;
	if (lua_type(L, 4) != LUA_TTABLE)
		throw_type(L, 4, "run", "table of arrays");
	a = scratch_push(L);
	job.kernels = kernels_at(L, 2, s->calls.n, "run", a);
	job.data = data = ARENA_ARRAY(a, s->tensors.n, void *);
	for (int i = 0; i < s->calls.v[call].program->tensors.n; i++) {
		const struct seq_tensor *t = &s->tensors.v[s->calls.v[call].args[i].tensor];

		if (t->call != NONE)
			continue;
		data[s->calls.v[call].args[i].tensor] = push_given(L, 4, t)->data;
		lua_pop(L, 1);
	}
	enter(L);
	raise_if(L, job.kernels[call]->backend == BACKEND_HOST ? sequence_call_on_host(&job, call, &o, &stop, a, &report, &e) :
		sequence_call_on_device(&job, call, gpu_of(L), o.limit, &stop, a, &r, &e), &e);
	if (report)
		throw_msg(L, "run: %s", report);
	return 0;
}

/* ---- traces ---- */

/* Build kernel i of the list at 2 with stamps of its own, and put an empty timeline that keeps it into the list at
 * `into`. */
static struct timeline **push_traced(lua_State *L, int i, int into, struct built **out)
{
	struct host *h = enter(L);
	int top = lua_gettop(L);
	struct stop stop = stop_of(h);
	struct timeline **t;
	struct built *of;
	void **box;
	struct err e;

	lua_rawgeti(L, 2, i + 1);
	of = check_built(L, -1, "trace");
	box = box_new(L, of->backend == BACKEND_HOST ? ON_HOST_CLASS : KERNEL_CLASS, 2);
	lua_getiuservalue(L, top + 1, 1);
	keep(L, top + 2, 1, top + 3);	/* the plan */
	keep(L, top + 2, 2, top + 1);
	t = timeline_box(L, top + 2);
	lua_rawseti(L, into, i + 1);
	enter(L);
	built_new_traced(&h->mem, of, (struct built **)box);
	*out = *box;
	raise_if(L, built_emit(*out, NULL, NULL, &stop, &e), &e);
	raise_if(L, built_compile(*out, gpu_of(L), &stop, &e), &e);
	lua_settop(L, top);
	return t;
}

/* Run the traced kernels in a benchmark of the planned run, whose last run is that of the stamps; before and after
 * it the others, for the overhead of stamps. */
static enum err_code run_traced(struct sequence_job *job, struct built *const *plain, struct built *const *traced,
	struct gpu *g, double limit,
	const struct gpu_bench *bench, const struct stop *stop, struct arena *a, struct trace_options *o, struct err *e)
{
	double ms[3];

	for (int i = 0; i < 3; i++) {
		struct gpu_result r = { 0 };

		job->kernels = i == 1 ? traced : plain;
		TRY(sequence_on_device(job, g, limit, bench, stop, a, &r, e));
		ms[i] = median_ms(&r);
		o->cache = gpu_cache_name(r.cache);
	}
	o->overhead = ms[1] / ((ms[0] + ms[2]) / 2) - 1;
	return OK;
}

/* Set begin[call] and end[call], in seconds from the first begin. On the CPU, which has no clock, a step of a
 * kernel is a nanosecond, and one kernel follows the other in the order of launches. */
static void find_spans(const struct sequence_job *job, struct timeline **const *lines, bool logical, double *begin,
	double *end)
{
	int n = job->plan->s->calls.n;
	uint64_t first = UINT64_MAX;
	double at = 0;

	for (int i = 0; i < n && !logical; i++) {
		struct trace_span s = trace_span(job->kernels[i]);

		first = s.begin < first ? s.begin : first;
	}
	for (int i = 0; i < n; i++) {
		int call = job->plan->order[i];
		struct trace_span s = { 0 };

		if (!logical)
			s = trace_span(job->kernels[call]);
		begin[call] = logical ? at : (double)(s.begin - first) * 1e-9;
		end[call] = logical ? at + (double)(*lines[call])->cycles * 1e-9 : (double)(s.end - first) * 1e-9;
		at = end[call];
	}
}

/* core.sequence_trace(sp, {kernel, ...}, inputs, {limit=, seconds=, seed=}) -> timelines of the calls in order of
 * the sequence, when each began, when it ended, in seconds, and the overhead of stamps as a share, or nil. Kernels
 * as for sequence_run. */
static int trace_l(lua_State *L)
{
	struct host *h = enter(L);
	const struct seqplan *p = check_seqplan(L, 1, "trace");
	int n = p->s->calls.n;
	struct on_host_options o = { .limit = 60 };
	struct gpu_bench bench = { .warmup = 0.05, .seconds = 0.05 };
	struct trace_options t = { .eu = NONE, .overhead = NAN };
	struct stop stop = stop_of(h);
	struct sequence_job job = { .plan = p, .graph = true };
	struct built **plain, **traced;
	const char *report = NULL;
	struct timeline ***lines;
	struct arrays x = { 3, 5 };
	double *begin, *end;
	int64_t seed = 1;
	struct arena *a;
	struct err e;

	lua_settop(L, 4);
	OPTIONS_CHECK(L, 4, "trace", "limit", "seconds", "seed");
	lua_newtable(L);
	arrays_describe(L);
	option_integer(L, 4, "trace", "seed", INT64_MIN, INT64_MAX, &seed);
	option_real(L, 4, "trace", "limit", &o.limit);
	option_real(L, 4, "trace", "seconds", &bench.seconds);
	if (lua_type(L, 3) != LUA_TTABLE)
		throw_type(L, 3, "trace", "table of inputs");
	hold_finalizers(L);
	lua_createtable(L, n, 0);	/* of timelines, at 7 */
	a = scratch_push(L);
	plain = kernels_at(L, 2, n, "trace", a);
	traced = ARENA_ARRAY(a, n, struct built *);
	lines = ARENA_ARRAY(a, n, struct timeline **);
	begin = ARENA_ARRAY(a, n, double);
	end = ARENA_ARRAY(a, n, double);
	for (int i = 0; i < n; i++)
		lines[i] = push_traced(L, i, lua_gettop(L) - 1, &traced[i]);
	o.seed = (uint64_t)seed;
	job.kernels = traced;
	job.data = tensor_data(L, p->s, &x, a);
	t.logical = plain[0]->backend == BACKEND_HOST;
	enter(L);
	raise_if(L, t.logical ? sequence_on_host(&job, &o, &stop, a, &report, &e) :
		run_traced(&job, plain, traced, gpu_of(L), o.limit, &bench, &stop, a, &t, &e), &e);
	if (report)
		throw_msg(L, "trace: %s", report);
	job.kernels = traced;
	for (int i = 0; i < n; i++) {
		struct trace_span s = trace_span(traced[i]);

		t.seconds = t.logical ? 0 : (double)(s.end - s.begin) * 1e-9;
		raise_if(L, trace_read(&h->mem, traced[i], &t, a, lines[i], &e), &e);
	}
	find_spans(&job, lines, t.logical, begin, end);
	lua_pushvalue(L, -2);
	PUSH_LIST(L, i, n, lua_pushnumber(L, begin[i]));
	PUSH_LIST(L, i, n, lua_pushnumber(L, end[i]));
	if (t.overhead == t.overhead)
		lua_pushnumber(L, t.overhead);
	else
		lua_pushnil(L);
	return 4;
}

/* core.sequence_inputs(sequence, seed) -> arrays of random elements for all inputs and states, by name, as the
 * program that reads each first would get them */
static int inputs_l(lua_State *L)
{
	const struct sequence *s = check_sequence(L, 1, "inputs");
	uint64_t seed = (uint64_t)luaL_optinteger(L, 2, 1);

	lua_settop(L, 2);
	lua_newtable(L);
	arrays_describe(L);
	for (int i = 0; i < s->tensors.n; i++) {
		const struct seq_tensor *t = &s->tensors.v[i];
		int64_t below = 0, row = 0;
		enum dtype as = t->type;
		bool distinct = false;

		if (t->role != SEQ_INPUT && t->role != SEQ_STATE)
			continue;
		for (int k = 0; k < t->uses.n; k++) {
			const struct seq_call *c = &s->calls.v[t->uses.v[k].call];

			for (int m = 0; m < c->program->tensors.n; m++) {
				const struct tensor *own = &c->program->tensors.v[m];

				if (c->args[m].tensor != i || own->role != TENSOR_INPUT)
					continue;
				as = own->type;
				if (own->index_below && (!below || own->index_below < below))
					below = own->index_below;
				distinct |= own->index_distinct;
				row = row ? row : tensor_sorted_row(c->program, m);
			}
		}
		array_random(L, array_new(L, "inputs", t->type, t->rank, t->dim), as, seed, t->name, below, distinct, row);
		lua_setfield(L, 3, t->name);
	}
	return 1;
}

/* core.array_part(array, offset, {size, ...}) -> a new array of the elements from `offset` on, counted from 0 */
static int part_l(lua_State *L)
{
	struct array *a = check_array(L, 1, "part"), *out;
	int64_t from = lua_tointeger(L, 2), dim[RANK_MAX];
	int rank = (int)lua_rawlen(L, 3);

	for (int i = 0; i < rank && i < RANK_MAX; i++) {
		lua_rawgeti(L, 3, i + 1);
		dim[i] = lua_tointeger(L, -1);
		lua_pop(L, 1);
	}
	out = array_new(L, "part", a->type, rank, dim);
	if (from < 0 || from > a->n - out->n)
		throw_msg(L, "part: elements %lld to %lld of %lld", (long long)from, (long long)(from + out->n), (long long)a->n);
	memcpy(out->data, (const char *)a->data + dtype_bytes(a->type, (size_t)from), out->bytes);
	return 1;
}

/* core.array_store(array, offset, want, allowed): put the elements of `want`, rounded, into the array from
 * `offset` on; those for which nothing is allowed, as no store reaches them (core.reference_allowing), stay. */
static int store_l(lua_State *L)
{
	struct array *a = check_array(L, 1, "store");
	const struct array *want = check_array(L, 3, "store"), *allowed = check_array(L, 4, "store");
	int64_t from = lua_tointeger(L, 2);

	if (from < 0 || from > a->n - want->n || want->n != allowed->n)
		throw_msg(L, "store: elements %lld to %lld of %lld", (long long)from, (long long)(from + want->n), (long long)a->n);
	for (int64_t i = 0; i < want->n; i++)
		if (dtype_load(allowed->type, allowed->data, (size_t)i) != 0)
			dtype_store(a->type, a->data, (size_t)(from + i), dtype_load(want->type, want->data, (size_t)i));
	return 0;
}

/* core.array_equal(a, b): the same bits */
static int equal_l(lua_State *L)
{
	const struct array *a = check_array(L, 1, "compare"), *b = check_array(L, 2, "compare");

	lua_pushboolean(L, a->bytes == b->bytes && !memcmp(a->data, b->data, a->bytes));
	return 1;
}

void lua_open_seqrun(lua_State *L)
{
	static const luaL_Reg functions[] = { { "sequence_run", run_l }, { "sequence_arrays", arrays_l },
		{ "sequence_run_call", run_call_l }, { "sequence_trace", trace_l }, { "sequence_inputs", inputs_l },
		{ "array_part", part_l }, { "array_store", store_l }, { "array_equal", equal_l }, { NULL, NULL } };

	luaL_setfuncs(L, functions, 0);
}
