#include "search/loop.h"

#include <math.h>

#include "plan/fit.h"
#include "search/contention.h"
#include "search/indices.h"
#include "sim/bounds.h"

enum {
	REGISTER_VERSIONS = 2,		/* most versions of a value in registers ... */
	RING_VERSIONS = 8,		/* ... and in shared memory */
};

/* A problem in the making. */
struct statement {
	struct arena *a;
	const struct plan *p;
	const struct entry_cost *costs;
	int loop;
	int *of;			/* by sTask: its task of the problem; NONE */
	VEC(int) task;			/* by task: its sTask; NONE */
	VEC(int) buffer;		/* by value */
	VEC(struct modulo_task) tasks;
	VEC(struct modulo_dep) deps;
	VEC(struct modulo_value) values;
	struct modulo_lane lanes[LANES_MAX];
	struct modulo_unit units[LOOP_UNITS];
	struct loop_unit unit[LOOP_UNITS];
	int nunits;
	struct modulo_memory memory;
};

/* Why the loop cannot be stated; NULL if it can. */
static const char *why_unstated(const struct plan *p, int loop)
{
	const struct graph *g = p->graph;
	int n = 0;

	if (loop == NONE)
		return "it has no loop inside its tiles";
	for (int l = 0; l < g->program->loops.n; l++)
		if (g->program->loops.v[l].parent == loop)
			return "there is a loop inside it";
	for (int t = 0; t < g->tasks.n; t++) {
		int entry = plan_entry_of(p, t);

		if (g->tasks.v[t].loop != loop)
			continue;
		if (entry == NONE)
			return "some of its sTasks are on no lane";
		if (p->lanes.v[p->entries.v[entry].lane].replicas > 1)
			return "its lanes have replicas";
		n++;
	}
	return n == 0 ? "it has no sTasks" : n + LOOP_DEMANDS > MODULO_TASKS_MAX ||
		p->lanes.n > MODULO_LANES_MAX ? "it has too many sTasks or lanes" : NULL;
}

/* The number of parts in which a product arrives at its unit; 0: not known, or warpgroups of its lane run separately. */
static double parts_of(const struct statement *s, int entry)
{
	const struct entry_cost *c = &s->costs[entry];
	const struct seu *u = &s->p->device->seu[s->p->entries.v[entry].seu];

	if (u->kind != SEU_MATRIX || !u->async || c->groups > 1 || c->steps <= 0)
		return 0;
	return ceil(c->steps * PRODUCT_PARTS_AHEAD / u->depth);
}

/* Do products of one lane exclude each other on the unit?
 *
 * Issued work queues for a unit, and the unit alternates between its parts. So only the sum of all work bounds an interval
 * in general. But a lane may have only few parts of products at their unit, and waits until the last part of a product has
 * arrived. Let the start of a product be that time, less what its earlier parts take. It is not before the lane issues the
 * product. Nor is it before the lane's previous product is complete, if every product has at least as many parts as may be
 * there. */
static bool excludes(const struct statement *s, int unit)
{
	bool all = true;

	for (int i = 0; i < s->tasks.n; i++)
		if (s->tasks.v[i].unit == unit && s->task.v[i] != NONE)
			all &= parts_of(s, plan_entry_of(s->p, s->task.v[i])) >= PRODUCT_PARTS_AHEAD;
	return all && s->p->device->seu[unit].kind == SEU_MATRIX && s->p->device->seu[unit].async;
}

static void state_units(struct statement *s)
{
	for (int u = 0; u < s->p->device->nseus; u++) {
		s->units[u].share = excludes(s, u) ? MODULO_LANES_MIX : MODULO_MIX;
		s->unit[u] = (struct loop_unit){ .seu = u, .lane = NONE };
	}
	s->nunits = s->p->device->nseus;
	for (int l = 0; l < s->p->lanes.n; l++)
		s->lanes[l] = (struct modulo_lane){ .memory = MODULO_NONE };
}

/* The cycles for which an entry holds its lane; of a product, at least until all but its last parts are complete. */
static double hold_of(const struct statement *s, int entry)
{
	const struct entry_cost *c = &s->costs[entry];
	double hold = bounds_hold(s->p, s->costs, entry), parts = parts_of(s, entry);

	if (parts <= PRODUCT_PARTS_AHEAD)
		return hold;
	return fmax(hold, c->before + c->cost.busy * (parts - PRODUCT_PARTS_AHEAD) / parts + c->after);
}

static void state_tasks(struct statement *s)
{
	const struct graph *g = s->p->graph;

	for (int t = 0; t < g->tasks.n; t++) {
		int entry = plan_entry_of(s->p, t);

		s->of[t] = NONE;
		if (g->tasks.v[t].loop != s->loop)
			continue;
		s->of[t] = s->tasks.n;
		VEC_PUSH(s->a, &s->task, t);
		VEC_PUSH(s->a, &s->tasks, ((struct modulo_task){ .unit = s->p->entries.v[entry].seu,
			.busy = s->costs[entry].cost.busy, .lanes = UINT32_C(1) << s->p->entries.v[entry].lane,
			.hold = hold_of(s, entry),
			.latency = bounds_latency(s->p, s->costs, entry) }));
	}
}

static void state_demand(struct statement *s, struct loop_unit unit, double cycles)
{
	if (cycles <= 0 || s->nunits == LOOP_UNITS)
		return;
	s->units[s->nunits].share = MODULO_MIX;
	s->unit[s->nunits] = unit;
	VEC_PUSH(s->a, &s->task, NONE);
	VEC_PUSH(s->a, &s->tasks, ((struct modulo_task){ .unit = s->nunits++, .busy = cycles }));
}

/* What an iteration asks of the memories, and of units of which one lane cannot use all. */
static void state_demands(struct statement *s)
{
	const struct plan *p = s->p;
	double l2 = 0, global = 0, own[LANES_MAX][SEU_MAX] = { { 0 } }, all[LANES_MAX][SEU_MAX] = { { 0 } };

	for (int i = 0; i < p->entries.n; i++) {
		const struct entry *e = &p->entries.v[i];

		if (s->of[e->task] == NONE)
			continue;
		l2 += s->costs[i].cost.l2;
		global += s->costs[i].cost.global;
		own[e->lane][e->seu] += bounds_group(p, s->costs, i).cost.alone;
		all[e->lane][e->seu] += s->costs[i].cost.busy;
	}
	state_demand(s, (struct loop_unit){ .seu = NONE, .lane = NONE }, l2);
	state_demand(s, (struct loop_unit){ .seu = NONE, .lane = NONE, .global = true }, global);
	for (int l = 0; l < p->lanes.n; l++)
		for (int u = 0; u < p->device->nseus; u++)
			if (p->device->seu[u].async && own[l][u] > all[l][u])
				state_demand(s, (struct loop_unit){ .seu = u, .lane = l }, own[l][u]);
}

static void state_contention(struct statement *s)
{
	const struct plan *p = s->p;

	for (int u = 0; u < p->device->nseus; u++) {
		struct contention b = { .device = p->device, .unit = u };
		int n = s->tasks.n;

		if (!contention_matters(p->device, u))
			continue;
		for (int i = 0; i < n; i++) {
			const struct modulo_task *t = &s->tasks.v[i];
			int entry = s->task.v[i] == NONE ? NONE : plan_entry_of(p, s->task.v[i]);
			struct entry_cost part;

			if (entry == NONE)
				continue;
			part = bounds_group(p, s->costs, entry);
			contention_add(&b, p->entries.v[entry].lane, t->unit, &part, t->busy, t->hold, 1);
		}
		for (int l = 0; l < p->lanes.n; l++)
			state_demand(s, (struct loop_unit){ .seu = u, .lane = l, .contended = true },
				contention_lane(&b, l));
		state_demand(s, (struct loop_unit){ .seu = u, .lane = NONE, .contended = true }, contention_unit(&b));
	}
}

/* The further cycles of a dependence if its sTasks are on different lanes. */
static double crossing(const struct statement *s, const struct edge *e)
{
	const struct vdevice *d = s->p->device;
	const struct graph *g = s->p->graph;
	int from = plan_entry_of(s->p, e->from);
	double more = fmin(d->flag_latency, d->issue_order_latency);

	if (s->p->entries.v[from].lane != s->p->entries.v[plan_entry_of(s->p, e->to)].lane)
		return 0;		/* they do: it is counted */
	if (e->kind == EDGE_FLOW && plan_scope(s->p, e->buffer) == SCOPE_REGISTERS)
		more += d->handoff_latency + (double)g->buffers.v[e->buffer].bytes / d->handoff_rate;
	return more + fmax(bounds_latency(s->p, s->costs, from) - bounds_lag(s->p, s->costs, e), 0);
}

/* Is the buffer an alias, or has it one? Then it has one version, and edges order its accesses. */
static bool is_aliased(const struct graph *g, int buffer)
{
	bool has = g->buffers.v[buffer].alias_of != NONE;

	for (int b = 0; b < g->buffers.n; b++)
		has |= g->buffers.v[b].alias_of == buffer;
	return has;
}

static void state_deps(struct statement *s)
{
	const struct graph *g = s->p->graph;

	for (int i = 0; i < g->edges.n; i++) {
		const struct edge *e = &g->edges.v[i];
		bool fixed = !e->reuse || g->buffers.v[e->buffer].carry != NONE || is_aliased(g, e->buffer);

		if (e->loop != s->loop || s->of[e->from] == NONE || s->of[e->to] == NONE || !fixed)
			continue;
		VEC_PUSH(s->a, &s->deps, ((struct modulo_dep){ s->of[e->from], s->of[e->to],
			.distance = e->distance, .from_start = true,
			.lag = bounds_lag(s->p, s->costs, e), .cross = crossing(s, e) }));
	}
}

/* State a buffer that sTask `def` writes. Its uses are the accesses after which def may overwrite it. counts: its bytes
 * count, as they are not counted for another writer. */
static void state_value(struct statement *s, int buffer, int def, bool counts)
{
	const struct graph *g = s->p->graph;
	const struct buffer *b = &g->buffers.v[buffer];
	bool shared = plan_scope(s->p, buffer) == SCOPE_SHARED;
	VEC(struct modulo_use) uses = { 0 };

	for (int i = 0; i < g->edges.n; i++) {
		const struct edge *e = &g->edges.v[i];

		if (e->reuse && e->buffer == buffer && e->loop == s->loop && e->to == def && s->of[e->from] != NONE)
			VEC_PUSH(s->a, &uses, ((struct modulo_use){ .task = s->of[e->from],
				.from_start = true, .lag = bounds_lag(s->p, s->costs, e),
				.cross = crossing(s, e) }));
	}
	VEC_PUSH(s->a, &s->buffer, buffer);
	VEC_PUSH(s->a, &s->values, ((struct modulo_value){ .def = s->of[def], .uses = uses.v,
		.nuses = uses.n, .memory = shared && counts ? 0 : MODULO_NONE, .bytes = (double)b->bytes,
		.least = 1, .most = shared ? RING_VERSIONS : REGISTER_VERSIONS }));
}

static void state_values(struct statement *s)
{
	const struct graph *g = s->p->graph;
	int phase = g->program->loops.v[s->loop].phase;
	int64_t taken = fit_staging(s->p, phase);

	for (int b = 0; b < g->buffers.n; b++) {
		bool counts = true;

		if (g->buffers.v[b].carry == NONE && g->buffers.v[b].loop == s->loop && !is_aliased(g, b)) {
			for (int t = 0; t < g->tasks.n; t++)
				if (s->of[t] != NONE && ints_hold(g->tasks.v[t].writes.v, g->tasks.v[t].writes.n, b)) {
					state_value(s, b, t, counts);
					counts = false;
				}
		} else if (g->buffers.v[b].phase == phase && plan_scope(s->p, b) == SCOPE_SHARED &&
		    g->buffers.v[b].alias_of == NONE) {
			taken += g->buffers.v[b].bytes;
		}
	}
	s->memory.capacity = (double)max_i64(s->p->device->shared_bytes - taken, 0);
}

/* ---- an order from start times ---------------------------------------------------------------- */

/* The iteration of a start, if iterations of the lane begin at `phase`. Times are in units of the interval. */
static int iteration_at(double start, double phase)
{
	return (int)floor(start - phase + 1e-9);
}

struct started {
	int task;			/* of the problem */
	double start;
};

static bool by_phase(const struct started *x, const struct started *y, double phase)
{
	double p = x->start - phase - iteration_at(x->start, phase), q = y->start - phase -
		iteration_at(y->start, phase);

	return p != q ? p < q : x->task < y->task;
}

static void sort(struct started *v, int n, double phase)
{
	for (int i = 1; i < n; i++) {
		struct started x = v[i];
		int k = i;

		for (; k > 0 && by_phase(&x, &v[k - 1], phase); k--)
			v[k] = v[k - 1];
		v[k] = x;
	}
}

/* An iteration of the lane may begin with any of its sTasks. This is the start of the one with which least runs ahead. */
static double best_phase(const struct started *v, int n)
{
	int least = 0;
	double best = 0;

	for (int i = 0; i < n; i++) {
		int most = INT32_MIN, ahead = 0;

		for (int k = 0; k < n; k++)
			most = (int)max_i64(most, iteration_at(v[k].start, v[i].start));
		for (int k = 0; k < n; k++)
			ahead += most - iteration_at(v[k].start, v[i].start);
		if (i == 0 || ahead < least) {
			least = ahead;
			best = v[i].start;
		}
	}
	return best;
}

static void read_order(const struct plan *p, const struct loop_answer *x, struct order *out)
{
	const struct graph *g = p->graph;
	struct started v[ORDER_TASKS];
	int n = 0, most = INT32_MIN;
	double phase;

	*out = (struct order){ 0 };
	for (int i = 0; i < x->problem.ntasks; i++) {
		const struct stask *t = x->task[i] == NONE ? NULL : &g->tasks.v[x->task[i]];

		if (t && t->kind != TASK_LOAD && !computes_indices(g, x->task[i]) && t->slice == 0 && n < ORDER_TASKS)
			v[n++] = (struct started){ i, x->answer.start[i] };
	}
	phase = best_phase(v, n);
	sort(v, n, phase);
	for (int i = 0; i < n; i++)
		most = (int)max_i64(most, iteration_at(v[i].start, phase));
	for (int i = 0; i < n; i++) {
		out->v[out->n].task = g->tasks.v[x->task[v[i].task]].task;
		out->v[out->n++].at = most - iteration_at(v[i].start, phase);
	}
}

void loop_state(struct arena *a, const struct plan *p, const struct entry_cost *costs, int loop,
	enum loop_aim aim, struct loop_answer *out)
{
	struct statement *s = ARENA_NEW(a, struct statement);

	*out = (struct loop_answer){ .ii = INFINITY, .unstated = why_unstated(p, loop) };
	out->stated = !out->unstated;
	if (!out->stated)
		return;
	s->a = a;
	s->p = p;
	s->costs = costs;
	s->loop = loop;
	s->of = ARENA_ARRAY(a, p->graph->tasks.n, int);
	state_tasks(s);
	state_units(s);
	if (aim == LOOP_BOUND) {
		state_demands(s);
		state_contention(s);
	}
	state_deps(s);
	state_values(s);
	out->problem = (struct modulo_problem){ .tasks = s->tasks.v, .ntasks = s->tasks.n,
		.units = s->units, .nunits = s->nunits, .lanes = s->lanes, .nlanes = p->lanes.n,
		.memories = &s->memory, .nmemories = 1, .deps = s->deps.v, .ndeps = s->deps.n,
		.values = s->values.v, .nvalues = s->values.n };
	out->task = s->task.v;
	out->buffer = s->buffer.v;
	out->unit = s->unit;
}

enum err_code loop_solve(struct arena *a, const struct plan *p, const struct entry_cost *costs,
	int loop, enum loop_aim aim, const struct modulo_effort *effort, const struct stop *stop,
	struct loop_answer *out, struct err *e)
{
	enum err_code code;

	loop_state(a, p, costs, loop, aim, out);
	if (!out->stated)
		return OK;
	code = modulo_solve(a, &out->problem, effort, stop, &out->answer, e);
	if (code == ERR_LIMIT || code == ERR_INPUT) {
		out->stated = false;	/* too many tasks, or numbers that no device has */
		out->unstated = "its numbers are beyond any device's";
		return OK;
	}
	out->bound = out->answer.bound;
	out->ii = out->answer.ii;
	out->proven = out->answer.proven;
	if (out->answer.status == MODULO_FOUND)
		read_order(p, out, &out->order);
	return code;
}
