/* Which entry writes the initial value of a carry in shared memory: the sTask that accesses a life of the carry first.
 * The graph's dependences (graph/deps.c) order it after all accesses to the slot's previous life, and before all other
 * accesses to this one. */
#include "lower/passes.h"

/* Does sTask y run at least once in each iteration of loop `around`? */
static bool runs_always(const struct graph *g, int y, int around)
{
	for (int l = g->tasks.v[y].loop; l != around; l = g->program->loops.v[l].parent)
		if (g->trips[l].least == 0)
			return false;
	return true;
}

/* May the entry be the first to access a life of the carry? Fills in b->loops_before, the loops that must be empty
 * then, and b->loops_behind: those that access the carry behind the entry, in an iteration of a loop around both. */
static bool find_start(struct kernel *k, const struct kentry *x, struct carry_start *b)
{
	const struct graph *g = k->plan->graph;
	const struct stask *s = stask_at(k, x->task);

	for (int y = 0; y < g->tasks.n; y++) {
		const struct stask *other = stask_at(k, y);
		int common = graph_common_loop(g, y, x->task);

		if (!stask_touches(other, b->buffer) || other->position == s->position)
			continue;
		if (other->position < s->position) {
			if (runs_always(g, y, common))
				return false;
			if (!ints_hold(b->loops_before.v, b->loops_before.n, other->loop))
				VEC_PUSH(&k->arena, &b->loops_before, other->loop);
		} else if (common != g->buffers.v[b->buffer].loop && common != s->loop &&
			   !ints_hold(b->loops_behind.v, b->loops_behind.n, other->loop)) {
			VEC_PUSH(&k->arena, &b->loops_behind, other->loop);
		}
	}
	return true;
}

void lower_carry_starts(struct kernel *k, struct kentry *x)
{
	const struct stask *s = stask_at(k, x->task);

	for (int i = 0; i < s->reads.n; i++) {
		struct carry_start b = { .buffer = s->reads.v[i] };

		if (k->plan->graph->buffers.v[b.buffer].carry != NONE &&
		    k->ring_of[b.buffer] != NONE && find_start(k, x, &b)) {
			b.number = k->ncarry_starts++;
			VEC_PUSH(&k->arena, &x->carry_starts, b);
		}
	}
}
