#include "plan/sized.h"

const struct plan *plan_at_sizes(struct arena *a, const struct plan *p, const int64_t *sizes)
{
	struct plan *s = arena_copy(a, p, 1, sizeof(*p));

	s->graph = graph_at_sizes(a, p->graph, sizes);
	s->largest = p;
	return s;
}

const struct plan *plan_at_same_sizes(struct arena *a, const struct plan *p, const struct plan *at)
{
	const struct program *g = at->graph->program;
	int64_t sizes[AXES_MAX];

	for (int i = 0; i < g->axes.n; i++)
		sizes[i] = g->axes.v[i].size;
	return plan_at_sizes(a, p, sizes);
}

/* The number that a tile of `from` has in `to`, a grid of the same axes with at least as many tiles along each. */
static int64_t number_in(const struct grid *from, const struct grid *to, int64_t tile)
{
	int64_t number = 0, below = 1;

	for (int i = from->n - 1; i >= 0; i--) {
		number += tile % from->tiles[i] * below;
		tile /= from->tiles[i];
		below *= to->tiles[i];
	}
	return number;
}

void plan_launch_tiles(struct arena *a, const struct plan *p, int phase, struct tile_assignment *out)
{
	plan_assign_tiles(a, p, phase, out);
	if (p->grid.dynamic) {		/* the first word behind the tiles is the counter by which blocks take them */
		out->order = plan_order_tiles(a, p, phase);
		for (int i = 0; i <= out->eus; i++)
			out->start[i] = 0;
	}
	for (int64_t i = 0; i < out->total && p->largest; i++)
		out->order[i] = number_in(&p->graph->grids[phase], &p->largest->graph->grids[phase], out->order[i]);
}
