/* Loads that leave out what their slots have already: which rings have words that say what a slot has. */
#include "lower/passes.h"
#include "plan/keep.h"

enum { WORD = 4 };

void lower_kept(struct kernel *k)
{
	const struct graph *g = k->plan->graph;
	struct cluster c = plan_keep(k->plan, k->phase);

	for (int i = 0; i < k->rings.n; i++) {
		struct ring *r = &k->rings.v[i];

		r->kept = r->engine && !r->by_rows && !r->run && !r->ends_by_threads && r->share == SHARE_NONE && !r->one_slice &&
			keep_holds(k->plan, &c, g->buffers.v[r->buffer].first);
		if (!r->kept)
			continue;
		r->words = k->shared_bytes;
		k->shared_bytes += round_up((int64_t)r->versions * WORD, k->target->shared.flag);
	}
}
