#include "search/starts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search/build.h"
#include "search/limits.h"

enum { SHAPES_MOST = 48 };

#define USUAL_BYTES 32768.0		/* that a tile loads and stores: enough in flight, and few enough for registers */
#define STEP 1.05			/* times nearer than this are equal, as these are bounds only */

/* The choices of a tile shape: `n` of them from `first` on. */
struct shape {
	int first, n;
	double seconds;			/* a bound, in steps; INFINITY: it has no plan */
	double unusual;			/* how far its tiles are from the usual size, in powers of two */
};

static void rate(const struct space *s, const struct choice *c, struct graph **graph, struct shape *x)
{
	const struct vdevice *d = s->device;
	struct err e;

	x->seconds = INFINITY;
	if (!build_graph(s, c, graph, &e) && limit_shared(*graph) <= d->shared_bytes) {
		double bytes = limit_traffic(*graph), tiles = 0;

		for (int ph = 0; ph < s->program->phases.n; ph++)
			tiles += (double)(*graph)->grids[ph].total;
		x->seconds = ceil(log(fmax(limit_seconds(s->program, d, *graph), bytes / d->l2_rate / d->clock_hz)) / log(STEP));
		x->unusual = fabs(log2(bytes / tiles / USUAL_BYTES));
	}
	graph_free(*graph);
	*graph = NULL;
}

static int compare_shapes(const void *a, const void *b)
{
	const struct shape *x = a, *y = b;

	if (x->seconds != y->seconds)
		return x->seconds < y->seconds ? -1 : 1;
	if (x->unusual != y->unusual)
		return x->unusual < y->unusual ? -1 : 1;
	return x->first - y->first;
}

void starts_choose(const struct space *s, struct arena *a, struct graph **graph, struct choices *starts)
{
	VEC(struct shape) shapes = { 0 };
	struct choices chosen = { 0 };

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
	for (int i = 0; i < shapes.n && i < SHAPES_MOST; i++)
		for (int k = 0; k < shapes.v[i].n; k++)
			VEC_PUSH(a, &chosen.v, starts->v.v[shapes.v[i].first + k]);
	*starts = chosen;
}
