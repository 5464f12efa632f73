#include "search/rings.h"

enum {
	TILE_RING_MAX = 4,		/* versions of a ring that is filled once a tile */
	FLAG_BYTES = 1024,
};

/* Bytes for rings: all but flags, and where an engine stores, but what is staged for it. */
static int64_t room(const struct plan *p)
{
	bool staged = false;

	for (int i = 0; i < p->entries.n; i++)
		staged |= p->graph->tasks.v[p->entries.v[i].task].kind == TASK_STORE &&
			p->device->seu[p->entries.v[i].seu].kind == SEU_COPY;
	return staged ? p->device->shared_bytes * 7 / 8 : p->device->shared_bytes - FLAG_BYTES;
}

/* Is it filled by a load in each iteration of a loop? */
static bool is_ring(const struct plan *p, int buffer)
{
	const struct buffer *b = &p->graph->buffers.v[buffer];

	return b->loop != NONE && plan_scope(p, buffer) == SCOPE_SHARED &&
		p->graph->tasks.v[b->first].kind == TASK_LOAD;
}

/* Deepen the rings that loads fill, evenly, as far as shared memory goes. */
static void set_rings(struct plan *p, int most)
{
	const struct graph *g = p->graph;

	for (int depth = 2; depth <= most; depth++) {
		for (int ph = 0; ph < g->program->phases.n; ph++) {
			int64_t bytes = 0;

			for (int i = 0; i < g->buffers.n; i++)
				if (g->buffers.v[i].phase == ph &&
				    plan_scope(p, i) == SCOPE_SHARED)
					bytes += g->buffers.v[i].bytes * (is_ring(p, i) ? depth :
						p->versions[i]);
			if (bytes > room(p))
				return;
		}
		for (int i = 0; i < g->buffers.n; i++)
			if (is_ring(p, i))
				p->versions[i] = depth;
	}
}

static bool loop_reads(const struct graph *g, int buffer)
{
	for (int t = 0; t < g->tasks.n; t++)
		for (int k = 0; k < g->tasks.v[t].reads.n; k++)
			if (g->tasks.v[t].reads.v[k] == buffer && g->tasks.v[t].loop != NONE)
				return true;
	return false;
}

/* Is it loaded once a tile, and read by no loop, or by some? */
static bool is_of_tile(const struct graph *g, int buffer, bool by_loop)
{
	const struct buffer *b = &g->buffers.v[buffer];

	return b->loop == NONE && g->tasks.v[b->first].kind == TASK_LOAD && loop_reads(g, buffer) == by_loop;
}

/* Then those of whole tiles, where an EU has more tiles than one: the next tile's values
 * come while this one is worked on. What a loop reads is one of many rings there, and has its
 * depth evenly with others of its kind, at most `most`. */
static void set_tile_rings(struct plan *p, bool by_loop, int most)
{
	const struct graph *g = p->graph;

	for (int ph = 0; ph < g->program->phases.n; ph++) {
		int64_t fixed = 0, each = 0, depth;

		for (int i = 0; i < g->buffers.n; i++)
			if (g->buffers.v[i].phase == ph && plan_scope(p, i) == SCOPE_SHARED)
				*(is_of_tile(g, i, by_loop) ? &each : &fixed) += g->buffers.v[i].bytes *
					(is_of_tile(g, i, by_loop) ? 1 : p->versions[i]);
		if (g->grids[ph].total <= p->device->eus || !each)
			continue;
		depth = (room(p) - fixed) / each;
		for (int i = 0; i < g->buffers.n && depth > 1; i++)
			if (g->buffers.v[i].phase == ph && plan_scope(p, i) == SCOPE_SHARED &&
			    is_of_tile(g, i, by_loop))
				p->versions[i] = (int)min_i64(depth, most);
	}
}

/* Whether they fit is for the check to say: of some plans nothing but rings is in shared memory. */
static void set_deeper(struct plan *p, int n)
{
	const struct graph *g = p->graph;

	for (int i = 0; i < g->buffers.n && n > 0; i++)
		if (is_ring(p, i)) {
			p->versions[i]++;
			n--;
		}
}

void search_rings(struct plan *p, int depth, int deeper, int tiles)
{
	set_rings(p, depth);
	set_deeper(p, deeper);
	set_tile_rings(p, true, tiles);
	set_tile_rings(p, false, TILE_RING_MAX);
}
