/* Loads that the blocks of a cluster share: how a ring is divided among the blocks, and which flags count the arrivals
 * of all blocks, because a block writes to the memory of the others. */
#include "lower/passes.h"
#include "plan/cluster.h"

enum { FENCE_BYTES = 1024 };		/* what an EU gets from L2 during a fence, or less */

/* Can each block load an equal share of the rows of a panel? */
static bool rows_divide(const struct ring *r, int blocks, const struct shared_layout *l)
{
	int64_t rows = r->full_rows / blocks;

	return r->shape.nrow == 1 && !r->reordered && r->full_rows % blocks == 0 &&
		rows % shared_pattern_rows(l) == 0 && r->box_bytes / blocks % l->copy_align == 0;
}

/* Rings are made once, and shared at each attempt to make the kernel. */
static void share_ring(struct ring *r, int blocks, const struct shared_layout *l)
{
	if (r->share != SHARE_NONE)
		return;
	/* of a part of the slot there may be panels that no block brings */
	r->share = r->boxes % blocks && r->box_rows == r->full_rows && rows_divide(r, blocks, l) ?
		SHARE_ROWS : SHARE_PANELS;
	if (r->share == SHARE_ROWS)
		r->box_rows = r->full_rows / blocks;
}

/* Where blocks share what threads read, each of these fences in each iteration before the slot is filled again (select/fences.c).
 * That takes longer than to load a few rows again: in a kernel of RMSNorm and product, clusters with 128 bytes of gains took 4 %
 * longer than blocks by themselves. */
static bool is_cheaper_alone(const struct kernel *k, const struct ring *r)
{
	const struct graph *g = k->plan->graph;
	bool computed_with = false;

	for (int i = 0; i < g->tasks.n; i++)
		computed_with |= g->tasks.v[i].kind == TASK_COMPUTE && stask_reads(&g->tasks.v[i], r->buffer);
	return computed_with && r->boxes * r->box_bytes <= FENCE_BYTES;
}

/* all: share also what is cheaper alone. */
static void share_rings(struct kernel *k, const struct cluster *c, bool all)
{
	const struct graph *g = k->plan->graph;

	for (int i = 0; i < g->tasks.n; i++) {
		struct ring *r;

		if (g->tasks.v[i].phase != k->phase || !cluster_shares(k->plan, c, i) ||
		    k->ring_of[g->tasks.v[i].writes.v[0]] == NONE)
			continue;
		r = &k->rings.v[k->ring_of[g->tasks.v[i].writes.v[0]]];
		if (!r->engine || r->by_rows || (!all && is_cheaper_alone(k, r)))
			continue;
		share_ring(r, c->size, &k->target->shared);
		k->cluster = c->size;
	}
}

static bool loads_for_all(const struct kernel *k, int lane)
{
	for (int i = 0; i < k->rings.n; i++) {
		const struct ring *r = &k->rings.v[i];

		if (r->share != SHARE_NONE && lane_of(k, k->plan->graph->buffers.v[r->buffer].first) == lane)
			return true;
	}
	return false;
}

/* What a lane waits for before it writes to the memory of other blocks must have happened in all of them, so those
 * flags count the arrivals of all blocks. A slot may be released by any wait of the lane, not only the load's. */
static void share_flags(struct kernel *k)
{
	const struct plan *p = k->plan;

	for (int i = 0; i < p->waits.n; i++) {
		const struct wait *w = &p->waits.v[i];
		struct flag_demand part;

		if (stask_at(k, w->task)->phase != k->phase || !needs_flag(k, w) || is_async_load(k, w->on) ||
		    !loads_for_all(k, lane_of(k, w->task)))
			continue;
		for (int n = 0; lower_next_demand(k, w, &n, &part);) {
			struct flag *f = &k->flags.v[lower_demand_flag(k, w, &part)];

			f->arrivals *= f->all_blocks ? 1 : k->cluster;
			f->all_blocks = true;
		}
	}
}

void lower_cluster(struct kernel *k)
{
	struct cluster c = plan_cluster(k->plan, k->phase);

	if (cluster_divides(&c))
		k->cluster = c.size;
	if (c.size == 1 || cluster_divides(&c))
		return;
	share_rings(k, &c, false);
	if (k->cluster == 1)
		share_rings(k, &c, true);
	share_flags(k);
}
