#include "sim/bounds.h"

#include <math.h>

#include "sim/traffic.h"

struct side {
	const struct plan *p;
	const struct entry_cost *costs;
	int phase, loop;
	const double *runs;		/* by sTask; NULL: as the graph has them */
	int *entry_of;			/* by sTask, if it is inside the loop; else NONE */
};

static const struct entry *entry_at(const struct side *s, int i)
{
	return &s->p->entries.v[i];
}

/* What one of the groups of the entry's lane takes of it. */
struct entry_cost bounds_group(const struct plan *p, const struct entry_cost *costs, int entry)
{
	return price_group(&costs[entry], price_group_pace(&p->device->seu[p->entries.v[entry].seu],
		costs[entry].groups));
}

static const struct stask *task_of(const struct side *s, int entry)
{
	return &s->p->graph->tasks.v[entry_at(s, entry)->task];
}

static void find_entries(struct arena *a, struct side *s)
{
	const struct graph *g = s->p->graph;

	s->entry_of = ARENA_ARRAY(a, g->tasks.n, int);
	for (int i = 0; i < g->tasks.n; i++)
		s->entry_of[i] = g->tasks.v[i].phase == s->phase &&
			program_loop_within(g->program, g->tasks.v[i].loop, s->loop) ?
			plan_entry_of(s->p, i) : NONE;
}

/* ---- resources -------------------------------------------------------------------- */

static void offer(struct bounds *out, double cycles, int binding)
{
	if (cycles > out->res_mii) {
		out->res_mii = cycles;
		out->binding_seu = binding;
	}
}

/* All of it on a synchronous sEU. Of groups, each does its part. */
double bounds_hold(const struct plan *p, const struct entry_cost *costs, int entry)
{
	const struct entry_cost *c = &costs[entry], part = bounds_group(p, costs, entry);
	const struct entry *en = &p->entries.v[entry];

	if (c->stored_to_shared)
		return c->before + traffic_latency(&part) + c->after;
	if (p->device->seu[en->seu].async)
		return c->before + c->cost.issue + c->after;
	return traffic_latency(&part) + (c->handoff_loop == p->graph->tasks.v[en->task].loop ?
		c->handoff : 0);
}

static void bound_resources(const struct side *s, struct bounds *out)
{
	const struct plan *p = s->p;
	double seu[SEU_MAX] = { 0 }, l2 = 0, global = 0;
	double lane[LANES_MAX] = { 0 }, own[LANES_MAX][SEU_MAX] = { { 0 } };

	for (int t = 0; t < p->graph->tasks.n; t++) {
		int i = s->entry_of[t], l, u;
		double n;

		if (i == NONE)
			continue;
		n = s->runs ? s->runs[t] : graph_runs(p->graph, task_of(s, i)->loop, s->loop);
		l = entry_at(s, i)->lane;
		u = entry_at(s, i)->seu;
		seu[u] += n * s->costs[i].cost.busy;
		own[l][u] += n * bounds_group(p, s->costs, i).cost.alone / p->lanes.v[l].replicas;
		l2 += n * s->costs[i].cost.l2;
		global += n * s->costs[i].cost.global;
		lane[l] += n * bounds_hold(p, s->costs, i) / p->lanes.v[l].replicas;
	}
	for (int u = 0; u < p->device->nseus; u++) {
		offer(out, seu[u], u);
		for (int l = 0; l < p->lanes.n; l++)
			if (p->device->seu[u].async)
				offer(out, own[l][u], u);
	}
	offer(out, fmax(l2, global), BINDING_MEMORY);
	for (int l = 0; l < p->lanes.n; l++) {
		if (s->loop == NONE && lane[l] > 0)
			lane[l] += p->device->tile_overhead / p->lanes.v[l].replicas;
		offer(out, lane[l], BINDING_LANE + l);
	}
}

/* ---- recurrences ------------------------------------------------------------------ */

/* `to` starts no earlier than `length` after `from`, `distance` iterations later. */
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

/* A dependence that crosses lanes is seen no sooner than the quicker of the two ways to tell. */
double bounds_lag(const struct plan *p, const struct entry_cost *costs, const struct edge *e)
{
	int from = plan_entry_of(p, e->from), to = plan_entry_of(p, e->to);
	const struct entry *x = &p->entries.v[from], *y = &p->entries.v[to];
	const struct entry_cost part = bounds_group(p, costs, from), *c = &part;
	const struct seu *u = &p->device->seu[x->seu];
	double lag;

	if (x->seu == y->seu && (e->chain || (u->async && u->ordered && x->lane == y->lane)))
		return x->lane == y->lane ? fmax(c->cost.alone, c->cost.busy) : c->cost.busy;
	lag = bounds_latency(p, costs, from);
	if (c->handoff_loop == p->graph->tasks.v[e->from].loop)
		lag += c->handoff;
	if (x->lane != y->lane)
		lag += fmin(p->device->flag_latency, p->device->issue_order_latency);
	return lag;
}

/* From the first start of e->from to the first of e->to. */
static double arc_length(const struct side *s, const struct edge *e)
{
	int from = s->entry_of[e->from];
	struct entry_cost part = bounds_group(s->p, s->costs, from);

	return fmax(graph_runs(s->p->graph, task_of(s, from)->loop, e->loop) - 1, 0) * part.cost.busy +
		bounds_lag(s->p, s->costs, e);
}

/* The edges that bind iterations of the loop; of an inner loop, those within one
 * iteration, which order its first iterations too. */
static void find_arcs(struct arena *a, const struct side *s, struct arcs *out)
{
	const struct graph *g = s->p->graph;

	for (int i = 0; i < g->edges.n; i++) {
		const struct edge *e = &g->edges.v[i];

		if (s->entry_of[e->from] == NONE || s->entry_of[e->to] == NONE ||
		    !program_loop_within(g->program, e->loop, s->loop) ||
		    (e->loop != s->loop && e->distance))
			continue;
		VEC_PUSH(a, &out->v, ((struct arc){ e->from, e->to, arc_length(s, e),
			edge_distance(s->p, e) }));
	}
}

/* Bellman and Ford: is there a cycle on which the lengths, less `ii` for each
 * iteration, sum to more than nothing? If so, into[] (the arc by which each task is
 * reached last) contains one, and a task on it is returned; else NONE. */
static int find_gain(const struct arcs *arcs, double ii, int n, double *at, int *into)
{
	int last = NONE;

	for (int i = 0; i < n; i++) {
		at[i] = 0;
		into[i] = NONE;
	}
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

/* Note the cycle through `start`; returns its length over its distance. */
static double take_cycle(const struct arcs *arcs, const int *into, int start,
	struct bounds *out)
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

/* The greatest ratio of length to distance over all cycles: start from 0, and as long
 * as some cycle has more, go on with what that one has (Dinkelbach's method; Dasdan,
 * TODAES 9, 2004 compares it with others). */
static void bound_recurrences(struct arena *a, const struct side *s, struct bounds *out)
{
	int n = s->p->graph->tasks.n, replicas = 1;
	double *at = ARENA_ARRAY(a, n, double);
	int *into = ARENA_ARRAY(a, n, int), start;
	struct arcs arcs = { 0 };

	find_arcs(a, s, &arcs);
	while ((start = find_gain(&arcs, out->rec_mii, n, at, into)) != NONE) {
		double ratio = take_cycle(&arcs, into, start, out);

		if (!(ratio > out->rec_mii))
			break;
		out->rec_mii = ratio;
		if (isinf(ratio))
			break;
	}
	/* copies of a lane with replicas work on different tiles at the same time */
	for (int i = 0; i < n; i++)
		if (s->entry_of[i] != NONE)
			replicas = (int)max_i64(replicas,
				s->p->lanes.v[entry_at(s, s->entry_of[i])->lane].replicas);
	out->rec_mii /= replicas;
}

void bounds_of_costs(struct arena *a, const struct plan *p, const struct entry_cost *costs,
	int phase, int loop, const double *runs, struct bounds *out)
{
	struct arena_mark scratch = arena_mark(a);
	struct side s = { .p = p, .costs = costs, .phase = phase, .loop = loop, .runs = runs };

	*out = (struct bounds){ 0 };
	find_entries(a, &s);
	bound_resources(&s, out);
	bound_recurrences(a, &s, out);
	arena_reset(a, scratch);
}

void plan_bounds(struct arena *a, const struct plan *p, int phase, int loop,
	struct bounds *out)
{
	struct arena_mark scratch = arena_mark(a);
	struct dealing d;

	plan_deal(a, p, phase, &d);
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
