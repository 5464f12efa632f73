/* The order in which a plan keeps what has no order, so that equal plans are equal in every list. */
#include "plan/plan.h"

#include <string.h>

#include "plan/order.h"

/* ---- entries --------------------------------------------------------------------------------- */

/* Append the entries of a region of the lane, and of the loops inside, in the order in which the lane has them. */
static void add_region(const struct plan *p, struct arena *a, int lane, int phase, int loop, struct entry *out, int *n)
{
	struct order_step *steps;
	int least, most, nsteps = order_steps(a, p, lane, phase, loop, &steps, &least, &most);

	for (int i = 0; i < nsteps; i++)
		if (steps[i].is_loop)
			add_region(p, a, lane, phase, steps[i].id, out, n);
		else
			out[(*n)++] = p->entries.v[steps[i].id];
}

static void sort_entries(struct plan *p)
{
	struct arena_mark mark = arena_mark(&p->arena);
	struct entry *out = ARENA_ARRAY(&p->arena, p->entries.n, struct entry);
	int n = 0;

	for (int lane = 0; lane < p->lanes.n; lane++)
		for (int phase = 0; phase < p->graph->program->phases.n; phase++)
			add_region(p, &p->arena, lane, phase, NONE, out, &n);
	if (n)
		memcpy(p->entries.v, out, (size_t)n * sizeof(*out));
	arena_reset(&p->arena, mark);
}

/* ---- waits ----------------------------------------------------------------------------------- */

/* The first dependence that a wait may serve; NONE: it only sets an order. */
static int dependence_of(const struct graph *g, const struct wait *w)
{
	int best = NONE;

	for (int i = g->first_in[w->task]; i != NONE; i = g->next_in.v[i])
		if (g->edges.v[i].from == w->on && (best == NONE || i < best))
			best = i;
	return best;
}

static bool is_before(const struct graph *g, const struct wait *a, const struct wait *b)
{
	int x, y;

	if (a->task != b->task)
		return a->task < b->task;
	x = dependence_of(g, a);
	y = dependence_of(g, b);
	if (x != y)
		return x < y;
	if (a->on != b->on)
		return a->on < b->on;
	return a->distance != b->distance ? a->distance < b->distance : a->when < b->when;
}

static void sort_waits(struct plan *p)
{
	for (int i = 1; i < p->waits.n; i++) {
		struct wait w = p->waits.v[i];
		int k = i;

		for (; k > 0 && is_before(p->graph, &w, &p->waits.v[k - 1]); k--)
			p->waits.v[k] = p->waits.v[k - 1];
		p->waits.v[k] = w;
	}
}

void plan_sort(struct plan *p)
{
	sort_entries(p);
	sort_waits(p);
}
