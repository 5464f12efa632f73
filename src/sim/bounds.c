/* ResMII by adding up the costs of a loop's entries per resource; RecMII as a maximum cycle ratio of its
 * dependences (bounds.h). */
#include "sim/bounds.h"

#include <math.h>

#include "sim/traffic.h"

/* The loop, and what its entries cost. */
struct loop_costs {
	const struct plan *p;
	const struct entry_cost *costs;
	int loop;
	const double *runs;		/* by sTask; NULL: as the graph has them */
	int *entry_of;			/* by sTask; NONE if it is outside of the loop */
};

static const struct entry *entry_at(const struct loop_costs *s, int i)
{
	return &s->p->entries.v[i];
}

struct entry_cost bounds_group(const struct plan *p, const struct entry_cost *costs, int entry)
{
	return price_group(&costs[entry], &p->device->seu[p->entries.v[entry].seu]);
}

/* ---- resources -------------------------------------------------------------------- */

static void raise_bound(struct bounds *out, double cycles, int binding)
{
	if (cycles > out->res_mii) {
		out->res_mii = cycles;
		out->binding_seu = binding;
	}
}

/* Work on a synchronous sEU occupies the lane until it is complete. */
double bounds_hold(const struct plan *p, const struct entry_cost *costs, int entry)
{
	const struct entry_cost *c = &costs[entry], part = bounds_group(p, costs, entry);
	const struct entry *en = &p->entries.v[entry];

	if (c->stored_to_shared)
		return c->before + traffic_latency(&part) + c->after;
	if (p->device->seu[en->seu].async)
		return c->before + c->cost.issue + c->after;
	return traffic_latency(&part) + (c->handover_loop == p->graph->tasks.v[en->task].loop ? c->handover : 0);
}

static void bound_resources(const struct loop_costs *s, struct bounds *out)
{
	const struct plan *p = s->p;
	double seu[SEU_MAX] = { 0 }, l2 = 0, global = 0;
	double lane[LANES_MAX] = { 0 }, own[LANES_MAX][SEU_MAX] = { { 0 } };

	for (int t = 0; t < p->graph->tasks.n; t++) {
		int i = s->entry_of[t];

		if (i == NONE)
			continue;
		int l = entry_at(s, i)->lane, u = entry_at(s, i)->seu;
		double n = s->runs ? s->runs[t] : graph_runs(p->graph, p->graph->tasks.v[t].loop, s->loop);
		seu[u] += n * s->costs[i].cost.busy;
		own[l][u] += n * bounds_group(p, s->costs, i).cost.alone / p->lanes.v[l].replicas;
		l2 += n * s->costs[i].cost.l2;
		global += n * s->costs[i].cost.global;
		lane[l] += n * bounds_hold(p, s->costs, i) / p->lanes.v[l].replicas;
	}
	for (int u = 0; u < p->device->nseus; u++) {
		raise_bound(out, seu[u], u);
		for (int l = 0; l < p->lanes.n; l++)
			if (p->device->seu[u].async)
				raise_bound(out, own[l][u], u);
	}
	raise_bound(out, fmax(l2, global), BINDING_MEMORY);
	for (int l = 0; l < p->lanes.n; l++) {
		if (s->loop == NONE && lane[l] > 0)
			lane[l] += p->device->tile_overhead / p->lanes.v[l].replicas;
		raise_bound(out, lane[l], BINDING_LANE + l);
	}
}

/* ---- recurrences ------------------------------------------------------------------ */

/* `to` of iteration i + distance starts at least `length` cycles after `from` of iteration i. */
struct arc {
	int from, to;
	double length, distance;
};

struct arcs {
	VEC(struct arc) v;
};

double bounds_latency(const struct plan *p, const struct entry_cost *costs, int entry)
{
	struct entry_cost part = bounds_group(p, costs, entry);

	return traffic_latency(&part) + (part.stored_to_shared ? part.after : 0);
}

/* A dependence between lanes takes at least the shorter of the two latencies of signals. */
double bounds_lag(const struct plan *p, const struct entry_cost *costs, const struct edge *e)
{
	int from = plan_entry_of(p, e->from), to = plan_entry_of(p, e->to);
	const struct entry *x = &p->entries.v[from], *y = &p->entries.v[to];
	const struct entry_cost c = bounds_group(p, costs, from);
	const struct seu *u = &p->device->seu[x->seu];

	if (x->seu == y->seu && (e->chain || (u->async && u->ordered && x->lane == y->lane)))
		return x->lane == y->lane ? fmax(c.cost.alone, c.cost.busy) : c.cost.busy;
	return bounds_latency(p, costs, from) +
		(c.handover_loop == p->graph->tasks.v[e->from].loop ? c.handover : 0) +
		(x->lane != y->lane ? fmin(p->device->flag_latency, p->device->issue_order_latency) : 0);
}

/* Find the dependences that constrain iterations of the loop. Those of an inner loop count if they are within
 * one iteration, since they order its first iterations too. */
static void find_arcs(struct arena *a, const struct loop_costs *s, struct arcs *out)
{
	const struct graph *g = s->p->graph;

	for (int i = 0; i < g->edges.n; i++) {
		const struct edge *e = &g->edges.v[i];
		int from = s->entry_of[e->from];

		if (from == NONE || s->entry_of[e->to] == NONE || (e->loop != s->loop && e->distance) ||
		    !program_loop_within(g->program, e->loop, s->loop))
			continue;
		/* from the first start of e->from in an iteration to the first of e->to */
		double length = fmax(graph_runs(g, g->tasks.v[e->from].loop, e->loop) - 1, 0) *
			bounds_group(s->p, s->costs, from).cost.busy + bounds_lag(s->p, s->costs, e);
		VEC_PUSH(a, &out->v, ((struct arc){ e->from, e->to, length, edge_distance(s->p, e) }));
	}
}

/* Bellman-Ford: is there a cycle whose sum of length - ii * distance is positive? If so, a task on it is
 * returned, and into[] has the arcs of it (by task, the arc by which it was reached last); else NONE. */
static int find_positive_cycle(const struct arcs *arcs, double ii, int n, double *at, int *into)
{
	int last = NONE;

	for (int i = 0; i < n; i++)
		at[i] = 0;
	for (int round = 0; round <= n; round++) {
		last = NONE;
		for (int k = 0; k < arcs->v.n; k++) {
			const struct arc *x = &arcs->v.v[k];
			double t = at[x->from] + x->length - ii * x->distance;

			if (t > at[x->to] + 1e-6) {
				at[x->to] = t;
				into[x->to] = k;
				last = x->to;
			}
		}
		if (last == NONE)
			return NONE;
	}
	for (int i = 0; i < n; i++)
		last = arcs->v.v[into[last]].from;
	return last;
}

/* Store the cycle through `start` in *out; returns its length over its distance. */
static double read_cycle(const struct arcs *arcs, const int *into, int start, struct bounds *out)
{
	double length = 0, distance = 0;
	int t = start, n = 0;

	do {
		const struct arc *x = &arcs->v.v[into[t]];

		length += x->length;
		distance += x->distance;
		t = x->from;
		if (n < LEN(out->cycle))
			out->cycle[n++] = t;
	} while (t != start);
	for (int i = 0; i < n / 2; i++) {
		int x = out->cycle[i];

		out->cycle[i] = out->cycle[n - 1 - i];
		out->cycle[n - 1 - i] = x;
	}
	out->ncycle = n;
	return distance > 0 ? length / distance : HUGE_VAL;
}

/* The maximum ratio of length to distance over all cycles: start with 0, and while some cycle has a greater
 * ratio, continue with that (Dinkelbach's method; compared with others by Dasdan, TODAES 9, 2004). */
static void bound_recurrences(struct arena *a, const struct loop_costs *s, struct bounds *out)
{
	int n = s->p->graph->tasks.n, replicas = 1;
	double *at = ARENA_ARRAY(a, n, double);
	int *into = ARENA_ARRAY(a, n, int), start;
	struct arcs arcs = { 0 };

	find_arcs(a, s, &arcs);
	while ((start = find_positive_cycle(&arcs, out->rec_mii, n, at, into)) != NONE) {
		double ratio = read_cycle(&arcs, into, start, out);

		if (!(ratio > out->rec_mii))
			break;
		out->rec_mii = ratio;
		if (isinf(ratio))
			break;
	}
	/* copies of a lane with replicas work on different tiles at the same time */
	for (int i = 0; i < n; i++)
		if (s->entry_of[i] != NONE)
			replicas = (int)max_i64(replicas, s->p->lanes.v[entry_at(s, s->entry_of[i])->lane].replicas);
	out->rec_mii /= replicas;
}

void bounds_of_costs(struct arena *a, const struct plan *p, const struct entry_cost *costs,
	int phase, int loop, const double *runs, struct bounds *out)
{
	struct arena_mark scratch = arena_mark(a);
	const struct graph *g = p->graph;
	struct loop_costs s = { .p = p, .costs = costs, .loop = loop, .runs = runs,
		.entry_of = ARENA_ARRAY(a, g->tasks.n, int) };

	*out = (struct bounds){ 0 };
	for (int i = 0; i < g->tasks.n; i++)
		s.entry_of[i] = g->tasks.v[i].phase == phase && program_loop_within(g->program, g->tasks.v[i].loop,
			loop) ? plan_entry_of(p, i) : NONE;
	bound_resources(&s, out);
	bound_recurrences(a, &s, out);
	arena_reset(a, scratch);
}

void plan_bounds(struct arena *a, const struct plan *p, int phase, int loop, struct bounds *out)
{
	struct arena_mark scratch = arena_mark(a);
	struct tile_assignment d;

	plan_assign_tiles(a, p, phase, &d);
	bounds_of_costs(a, p, traffic_plain(a, p, phase, &d), phase, loop, NULL, out);
	arena_reset(a, scratch);
}

const char *binding_name(const struct plan *p, int binding)
{
	if (binding < p->device->nseus)
		return p->device->seu[binding].name;
	if (binding >= BINDING_LANE && binding - BINDING_LANE < p->lanes.n)
		return p->lanes.v[binding - BINDING_LANE].name;
	return "memory";
}
