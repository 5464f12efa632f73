#include "search/rings.h"

#include "plan/fit.h"
#include "plan/keep.h"
#include "search/indices.h"
#include "target/target.h"

enum {
	TILE_RING_MAX = 4,		/* versions of a ring that is filled once a tile and that no loop reads */
	FLAG_BYTES = 1024,		/* reserved for mbarriers: 128 of 8 bytes, generously */
};

/* Bytes that are reserved for flags. Where flags are counters, most kernels have none, as their lanes meet at the block's
 * barrier. Only the kernel says which: if one takes more than there is, the search makes its rings shallower
 * (`unpriced_bytes` in evaluate.c). */
static int64_t flag_bytes(const struct plan *p)
{
	return target_of(p->device)->shared.polled ? 0 : FLAG_BYTES;
}

/* What slots take beyond their bytes in a kernel, which aligns them: much, where tables of indices have many
 * versions. */
static int64_t between_slots(const struct plan *p, int phase)
{
	int64_t bytes = 0, align = target_of(p->device)->shared.align;

	for (int i = 0; i < p->graph->buffers.n; i++) {
		const struct buffer *b = &p->graph->buffers.v[i];

		if (b->phase == phase && b->alias_of == NONE && plan_scope(p, i) == SCOPE_SHARED)
			bytes += (round_up(b->bytes, align) - b->bytes) * p->versions[i];
	}
	return bytes;
}

int64_t search_rings_bytes(const struct plan *p)
{
	int64_t most = 0;

	for (int ph = 0; ph < p->graph->program->phases.n; ph++)
		most = max_i64(most, fit_shared(p, ph) + between_slots(p, ph) + flag_bytes(p));
	return most;
}

static bool is_loaded(const struct plan *p, int buffer)
{
	int from = p->graph->buffers.v[buffer].first;

	return plan_scope(p, buffer) == SCOPE_SHARED &&
		(p->graph->tasks.v[from].kind == TASK_LOAD || computes_indices(p->graph, from));
}

/* Does a load fill it in each iteration of a loop? */
static bool is_loaded_in_loop(const struct plan *p, int buffer)
{
	return p->graph->buffers.v[buffer].loop != NONE && is_loaded(p, buffer);
}

static bool loop_reads(const struct graph *g, int buffer)
{
	for (int t = 0; t < g->tasks.n; t++)
		for (int k = 0; k < g->tasks.v[t].reads.n; k++)
			if (g->tasks.v[t].reads.v[k] == buffer && g->tasks.v[t].loop != NONE)
				return true;
	return false;
}

/* Rings of one kind get equally many versions; set_deeper gives some one more. Those of tiles are loaded once a tile,
 * and are of a kind only if EUs have several tiles, so that the next tile can be loaded ahead. FOR_LOOPS: a loop
 * reads them. ALONE: no load of the program is in a loop, so the loop over the tiles is what they run ahead in. */
enum kind { OF_LOOPS, OF_TILES_FOR_LOOPS, OF_TILES_ALONE, OF_TILES };

static bool loads_in_loop(const struct plan *p)
{
	for (int i = 0; i < p->graph->buffers.n; i++)
		if (is_loaded_in_loop(p, i))
			return true;
	return false;
}

static bool is_kind(const struct plan *p, int buffer, enum kind kind)
{
	const struct buffer *b = &p->graph->buffers.v[buffer];
	enum kind own = OF_LOOPS;

	if (kind == OF_LOOPS || b->loop != NONE)
		return kind == OF_LOOPS && is_loaded_in_loop(p, buffer);
	if (!is_loaded(p, buffer) || p->graph->grids[b->phase].total <= p->device->eus)
		return false;
	own = loop_reads(p->graph, buffer) ? OF_TILES_FOR_LOOPS : loads_in_loop(p) ? OF_TILES : OF_TILES_ALONE;
	return kind == own;
}

/* Are the values indices of a load? Their slot is free only when that load is complete, not when it is issued. So as many loads as
 * there are slots for can be under way only if indices have a slot more. */
static bool has_indices_of_load(const struct graph *g, int buffer)
{
	for (int t = 0; t < g->tasks.n; t++)
		if (g->tasks.v[t].kind == TASK_LOAD && stask_reads(&g->tasks.v[t], buffer))
			return true;
	return false;
}

static void set_depth(struct plan *p, enum kind kind, int depth)
{
	for (int i = 0; i < p->graph->buffers.n; i++)
		if (is_kind(p, i, kind))
			p->versions[i] = depth + (kind == OF_LOOPS && depth > 1 && has_indices_of_load(p->graph, i));
}

/* One version after the other, as long as they all take no more than so many bytes. */
static void deepen(struct plan *p, enum kind kind, int most, int64_t bytes)
{
	for (int depth = 2; depth <= most; depth++) {
		set_depth(p, kind, depth);
		if (search_rings_bytes(p) > bytes) {
			set_depth(p, kind, depth - 1);
			return;
		}
	}
}

/* Does not ask whether these fit: plan_check does. */
static void set_deeper(struct plan *p, unsigned rings)
{
	for (int i = 0; i < p->graph->buffers.n && rings; i++)
		if (is_kind(p, i, OF_LOOPS) || is_kind(p, i, OF_TILES_ALONE)) {
			p->versions[i] += rings & 1;
			rings >>= 1;
		}
}

/* Slots that a loop fills have the bytes of the tile before if they are a multiple of its iterations (plan/keep.h): fewer then, or as
 * many as the loop has iterations. */
static void fit_kept(struct plan *p, int64_t bytes)
{
	const struct graph *g = p->graph;

	for (int i = 0; i < g->buffers.n && p->grid.keep > 1; i++) {
		const struct buffer *b = &g->buffers.v[i];
		struct cluster c = plan_keep(p, b->phase);
		int own = p->versions[i];
		int64_t trips;

		if (!is_loaded_in_loop(p, i) || !keep_holds(p, &c, b->first) || g->program->loops.v[b->loop].naxes > 1)
			continue;
		trips = extent_tiles(&g->extents, g->program->loops.v[b->loop].axis[0]);
		p->versions[i] = own >= trips ? own - (int)(own % trips) : trips <= VERSIONS_MAX ? (int)trips : own;
		if (search_rings_bytes(p) > bytes)
			p->versions[i] = own;
	}
}

void search_rings(struct plan *p, int depth, unsigned deeper, int tiles, int64_t bytes)
{
	deepen(p, OF_LOOPS, depth, bytes);
	deepen(p, OF_TILES_ALONE, depth, bytes);
	set_deeper(p, deeper);
	fit_kept(p, bytes);
	deepen(p, OF_TILES_FOR_LOOPS, tiles, bytes);
	deepen(p, OF_TILES, TILE_RING_MAX, bytes);
}
