#include "search/starts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/build.h"
#include "search/limits.h"

enum {
	SHAPES_MOST = 48,		/* of a program without products */
	PRODUCT_STARTS_MOST = 4096,	/* choices of one with products */
};

#define USUAL_BYTES 32768.0		/* that a tile loads and stores: enough in flight, and few enough for registers */

/* The choices of a tile shape: `n` of them from `first` on. */
struct shape {
	int first, n;
	double seconds;			/* a bound, in steps; INFINITY: it has no plan */
	double cost;			/* of equal bounds the least first: how far its tiles are from the usual size, in powers of two; of
					 * products all that they load and store, in bytes */
};

static void rate(const struct space *s, const struct choice *c, struct graph **graph, struct shape *x)
{
	const struct vdevice *d = s->device;
	struct err e;

	x->seconds = INFINITY;
	if (!build_graph(s, c, graph, &e) && limit_shared(*graph) <= d->shared_bytes && !limit_sums(*graph)) {
		double bytes = limit_traffic(*graph), tiles = 0;

		for (int ph = 0; ph < s->program->phases.n; ph++)
			tiles += (double)(*graph)->grids[ph].total;
		x->seconds = limit_in_steps(fmax(limit_seconds(s, NULL, *graph),
			bytes / d->l2_rate / d->clock_hz));
		x->cost = s->has_products ? bytes : fabs(log2(bytes / tiles / USUAL_BYTES));
	}
	graph_free(*graph);
	*graph = NULL;
}

/* Is the axis tiled, and in no phase that has products? */
static bool is_elsewhere(const struct program *p, int axis)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->op == OP_MMA && n->task != NONE &&
		    program_axis_role(p, p->tasks.v[n->task].phase, axis) != AXIS_UNUSED)
			return false;
	}
	return true;
}

/* How far the tiles of phases that tile the axis are from the usual size, in powers of two. */
static double unusual_along(const struct program *p, const struct graph *g, int axis)
{
	double most = 0;

	for (int ph = 0; ph < p->phases.n; ph++) {
		double bytes = 1;

		if (program_axis_role(p, ph, axis) == AXIS_UNUSED)
			continue;
		for (int i = 0; i < g->tasks.n; i++)
			if (g->tasks.v[i].phase == ph)
				bytes += g->tasks.v[i].work.global_bytes * graph_runs(g, g->tasks.v[i].loop, NONE);
		most = fmax(most, fabs(log2(bytes / USUAL_BYTES)));
	}
	return most;
}

/* The first choice, but for axes that phases with products tile, too: of these, the greatest extent to start from. What
 * is too large with that would leave no plans to large tiles of those phases. */
static struct choice largest_choice(const struct space *s)
{
	struct choice c = space_first_choice(s);

	for (int i = 0; i < s->ndims; i++) {
		const struct dim *d = &s->dims[i];

		for (int k = 0; k < d->n && !d->side && !is_elsewhere(s->program, d->axis); k++)
			if (d->starts >> k & 1)
				c.tiling.extent[d->axis] = d->extent[k];
	}
	return c;
}

/* The start of the dimension, of those that have a graph, whose tiles are best. NONE: none has. */
static int best_start(const struct space *s, const struct dim *d, struct graph **graph)
{
	struct choice c = largest_choice(s);
	double seconds = INFINITY, unusual = INFINITY;
	int best = NONE;
	struct err e;

	for (int k = 0; k < d->n; k++) {
		c.tiling.extent[d->axis] = d->extent[k];
		if (d->starts >> k & 1 && !build_graph(s, &c, graph, &e)) {
			double x = limit_in_steps(limit_seconds(s, NULL, *graph));
			double y = unusual_along(s->program, *graph, d->axis);

			if (x < seconds || (x == seconds && y < unusual)) {
				seconds = x;
				unusual = y;
				best = k;
			}
		}
		graph_free(*graph);
		*graph = NULL;
	}
	return best;
}

void starts_choose_elsewhere(struct space *s, struct graph **graph)
{
	for (int i = 0; i < s->ndims && s->has_products; i++) {
		struct dim *d = &s->dims[i];
		int best = d->wanted || d->side || !is_elsewhere(s->program, d->axis) ? NONE : best_start(s, d, graph);

		if (best != NONE)
			d->starts = 1u << best;
	}
}

static int compare_shapes(const void *a, const void *b)
{
	const struct shape *x = a, *y = b;

	if (x->seconds != y->seconds)
		return x->seconds < y->seconds ? -1 : 1;
	if (x->cost != y->cost)
		return x->cost < y->cost ? -1 : 1;
	return x->first - y->first;
}

void starts_choose(const struct space *s, struct arena *a, struct graph **graph, struct choices *starts)
{
	VEC(struct shape) shapes = { 0 };
	struct choices chosen = { 0 };
	int most = s->has_products ? PRODUCT_STARTS_MOST : INT32_MAX;

	if (s->has_products && starts->v.n <= most)
		return;

	for (int i = 0; i < starts->v.n; i++) {
		const struct choice *c = &starts->v.v[i];

		if (!i || memcmp(&c->tiling, &c[-1].tiling, sizeof(c->tiling))) {
			VEC_PUSH(a, &shapes, ((struct shape){ .first = i }));
			rate(s, c, graph, &shapes.v[shapes.n - 1]);
		}
		shapes.v[shapes.n - 1].n++;
	}
	if (shapes.n)
		qsort(shapes.v, (size_t)shapes.n, sizeof(*shapes.v), compare_shapes);
	for (int i = 0; i < shapes.n && (s->has_products ? chosen.v.n + shapes.v[i].n <= most : i < SHAPES_MOST); i++)
		for (int k = 0; k < shapes.v[i].n; k++)
			VEC_PUSH(a, &chosen.v, starts->v.v[shapes.v[i].first + k]);
	*starts = chosen;
}
