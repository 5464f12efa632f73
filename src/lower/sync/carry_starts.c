/* Which entry writes the initial value of a carry in shared memory: the sTask that accesses a life of the carry first.
 * The graph's dependences (graph/deps.c) order it after all accesses to the slot's previous life, and before all other
 * accesses to this one. */
#include "lower/passes.h"

static bool touches(const struct stask *s, int buffer)
{
	return stask_touches(s, buffer);
}

/* Does sTask y run at least once in each iteration of loop `around`? */
static bool runs_always(const struct graph *g, int y, int around)
{
	for (int l = g->tasks.v[y].loop; l != around; l = g->program->loops.v[l].parent)
		if (g->trips[l].least == 0)
			return false;
	return true;
}

/* May the entry be the first to access a life of the carry? Fills in b->loops_before, the loops that must be empty
 * then. */
static bool may_begin(struct kernel *k, const struct kentry *x, struct carry_start *b)
{
	const struct graph *g = k->plan->graph;

	for (int y = 0; y < g->tasks.n; y++) {
		if (g->tasks.v[y].position >= stask_at(k, x->task)->position || !touches(&g->tasks.v[y], b->buffer))
			continue;
		if (runs_always(g, y, graph_common_loop(g, y, x->task)))
			return false;
		if (!ints_hold(b->loops_before.v, b->loops_before.n, g->tasks.v[y].loop))
			VEC_PUSH(&k->arena, &b->loops_before, g->tasks.v[y].loop);
	}
	return true;
}

/* Fills in b->loops_behind: loops that access the carry behind the entry, in an iteration of a loop around both. */
static void find_behind(struct kernel *k, const struct kentry *x, struct carry_start *b)
{
	const struct graph *g = k->plan->graph;

	for (int y = 0; y < g->tasks.n; y++) {
		int common = graph_common_loop(g, y, x->task);

		if (g->tasks.v[y].position > stask_at(k, x->task)->position && touches(&g->tasks.v[y], b->buffer) &&
		    common != g->buffers.v[b->buffer].loop && common != stask_at(k, x->task)->loop &&
		    !ints_hold(b->loops_behind.v, b->loops_behind.n, g->tasks.v[y].loop))
			VEC_PUSH(&k->arena, &b->loops_behind, g->tasks.v[y].loop);
	}
}

void lower_carry_starts(struct kernel *k, struct kentry *x)
{
	const struct stask *s = stask_at(k, x->task);

	for (int i = 0; i < s->reads.n; i++) {
		struct carry_start b = { .buffer = s->reads.v[i] };

		if (k->plan->graph->buffers.v[b.buffer].carry != NONE &&
		    k->ring_of[b.buffer] != NONE && may_begin(k, x, &b)) {
			find_behind(k, x, &b);
			b.number = k->ncarry_starts++;
			VEC_PUSH(&k->arena, &x->carry_starts, b);
		}
	}
}
