#include "search/rings.h"

enum {
	RING_MAX = 6,			/* versions of a ring in shared memory */
	TILE_RING_MAX = 4,		/* ... of one that is filled once a tile */
};

/* Deepen the rings that loads fill, evenly, as far as shared memory goes. */
static void set_rings(struct plan *p)
{
	const struct graph *g = p->graph;

	for (int depth = 2; depth <= RING_MAX; depth++) {
		for (int ph = 0; ph < g->program->phases.n; ph++) {
			int64_t bytes = 0;

			for (int i = 0; i < g->buffers.n; i++)
				if (g->buffers.v[i].phase == ph &&
				    plan_scope(p, i) == SCOPE_SHARED)
					bytes += g->buffers.v[i].bytes * (g->buffers.v[i].loop ==
						NONE ? p->versions[i] : depth);
			/* leave room for staging stores and flags */
			if (bytes > p->device->shared_bytes * 7 / 8)
				return;
		}
		for (int i = 0; i < g->buffers.n; i++)
			if (g->buffers.v[i].loop != NONE && plan_scope(p, i) == SCOPE_SHARED &&
			    g->tasks.v[g->buffers.v[i].first].kind == TASK_LOAD)
				p->versions[i] = depth;
	}
}

/* Is it loaded once a tile, and read once a tile? One that a loop reads is let go by an
 * sTask that may be many iterations ahead, which flags cannot always tell. */
static bool is_of_tile(const struct graph *g, int buffer)
{
	const struct buffer *b = &g->buffers.v[buffer];

	if (b->loop != NONE || g->tasks.v[b->first].kind != TASK_LOAD)
		return false;
	for (int t = 0; t < g->tasks.n; t++)
		for (int k = 0; k < g->tasks.v[t].reads.n; k++)
			if (g->tasks.v[t].reads.v[k] == buffer && g->tasks.v[t].loop != NONE)
				return false;
	return true;
}

/* Then those of whole tiles, where an EU has more tiles than one: the next tile's values
 * come while this one is worked on. */
static void set_tile_rings(struct plan *p)
{
	const struct graph *g = p->graph;

	for (int ph = 0; ph < g->program->phases.n; ph++) {
		int64_t fixed = 0, each = 0, depth;

		for (int i = 0; i < g->buffers.n; i++)
			if (g->buffers.v[i].phase == ph && plan_scope(p, i) == SCOPE_SHARED)
				*(is_of_tile(g, i) ? &each : &fixed) += g->buffers.v[i].bytes *
					(is_of_tile(g, i) ? 1 : p->versions[i]);
		if (g->grids[ph].total <= p->device->eus || !each)
			continue;
		depth = (p->device->shared_bytes * 7 / 8 - fixed) / each;
		for (int i = 0; i < g->buffers.n && depth > 1; i++)
			if (g->buffers.v[i].phase == ph && plan_scope(p, i) == SCOPE_SHARED &&
			    is_of_tile(g, i))
				p->versions[i] = (int)min_i64(depth, TILE_RING_MAX);
	}
}

void search_rings(struct plan *p)
{
	set_rings(p);
	set_tile_rings(p);
}
