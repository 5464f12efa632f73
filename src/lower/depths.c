/* How deep a flag's ring of barriers must be that nobody takes one phase for another. The
 * relation of the plan's events over a few tiles decides, for each number of trips that may
 * make a difference. */
#include "lower/passes.h"

#include <string.h>

#include "sim/sim.h"

enum {
	FLAG_BYTES = 8,
	DEPTH_MAX = 16,
	TILES_MOST = 3,
};

void lower_relation(struct kernel *k, struct arena *a, int64_t trips, int ntiles,
	struct walk *w, struct relation *r)
{
	const struct graph *g = k->plan->graph;
	int nloops = g->program->loops.n;
	int64_t *t = ARENA_ARRAY(a, nloops * ntiles, int64_t);

	for (int l = 0; l < nloops; l++)
		for (int i = 0; i < ntiles; i++)
			t[l * ntiles + i] = max_i64(g->trips[l].least, min_i64(trips,
				g->trips[l].most));
	for (int l = 0; l < nloops; l++)
		for (int i = 0; i < ntiles; i++)
			t[l * ntiles + i] = min_i64(t[l * ntiles + i], trips);
	walk_init_counts(a, w, g, k->phase, ntiles, t);
	relation_build(a, k->plan, w, r);
}

int64_t lower_window(const struct kernel *k)
{
	int64_t n = 4;

	for (int i = 0; i < k->plan->graph->buffers.n; i++)
		n = max_i64(n, k->plan->versions[i] + 2);
	return n + 2;
}

static enum event_of flag_event(const struct flag *f)
{
	return f->issued ? AT_ISSUE : AT_END;
}

/* Under a depth, waiting instance j may look at the barrier of instance x: it knows that
 * the phase before is over, and is done before the next one is. */
static bool wait_holds(const struct relation *r, const struct flag *f, int depth, int j, int64_t x,
	int64_t n, const bool *seen)
{
	if (x + depth < n && !relation_before(r, j, AT_ISSUE, relation_instance(r, f->task, x +
	    depth), flag_event(f)))
		return false;
	if (x < depth || seen[x - depth])
		return true;
	return r->inst[j].place && relation_before(r, relation_instance(r, f->task, x - depth),
		flag_event(f), j - 1, AT_ISSUE);
}

/* Do all warps of the lane know that they all have arrived for instance x - depth when
 * they arrive for x? Only from another lane. */
static bool arrival_holds(const struct relation *r, const struct flag *f, int depth, int64_t x)
{
	int old = relation_instance(r, f->task, x - depth), now = relation_instance(r, f->task, x);

	for (int j = 0; j < r->n; j++)
		if (r->inst[j].lane != r->inst[now].lane && relation_before(r, old, flag_event(f),
		    j, AT_ISSUE) && relation_before(r, j, AT_ISSUE, now, AT_ISSUE))
			return true;
	return false;
}

/* Does somebody wait on the barrier of instance x, for it or one of the two before? */
static bool is_awaited(const bool *awaited, int64_t n, int depth, int64_t x)
{
	for (int64_t y = x < 2 * depth ? x % depth : x - 2 * depth; y < n; y += depth)
		if (awaited[y])
			return true;
	return false;
}

/* Can all who wait for instances of the flag's sTask tell the phases apart? */
static bool depth_holds(const struct kernel *k, const struct relation *r, const struct flag *f,
	int depth, bool *awaited, bool *seen)
{
	const struct plan *p = k->plan;
	int64_t n = walk_count(r->walk, stask_at(k, f->task)->loop);

	memset(awaited, 0, (size_t)n * sizeof(*awaited));
	for (int i = 0; i < p->waits.n; i++) {
		const struct wait *w = &p->waits.v[i];
		int64_t count;
		bool in_turn;
		int behind;

		if (w->on != f->task || (w->when == WAIT_ISSUED) != f->issued || !by_flag(k, w) ||
		    lower_waits_for_run(k, w, &behind))
			continue;
		count = walk_count(r->walk, stask_at(k, w->task)->loop);
		in_turn = p->lanes.v[lane_of(k, w->task)].turns > 1;
		memset(seen, 0, (size_t)n * sizeof(*seen));
		for (int64_t s = 0; s < count; s++) {
			struct span spans[SPANS_MAX];
			int ns = walk_wait_spans(r->walk, p, w, s, spans);

			for (int x = 0; x < ns; x++) {
				awaited[spans[x].last - 1] = true;
				if (!wait_holds(r, f, depth, relation_instance(r, w->task, s),
				    spans[x].last - 1, n, seen))
					return false;
				/* copies of a lane begin their tiles in turn */
				seen[spans[x].last - 1] = in_turn;
			}
		}
	}
	for (int64_t x = depth; x < n && f->arrivals > 1; x++)
		if (is_awaited(awaited, n, depth, x) && !arrival_holds(r, f, depth, x))
			return false;
	return true;
}

/* Tiles in a row that tell all there is to know when loops make that many trips, or as
 * many as one EU gets. */
static int tiles_in_window(struct kernel *k, int64_t trips)
{
	const struct graph *g = k->plan->graph;
	struct dealing d;
	int64_t most = 1, least = TILES_MOST;

	for (int l = 0; l < g->program->loops.n; l++)
		if (g->program->loops.v[l].phase == k->phase)
			trips = min_i64(trips, max_i64(1, g->trips[l].most));
	sim_deal(&k->arena, k->plan, k->phase, &d);
	for (int i = 0; i < d.eus; i++)
		most = max_i64(most, d.start[i + 1] - d.start[i]);
	for (int i = 0; i < k->plan->lanes.n; i++)
		least = max_i64(least, TILES_MOST * k->plan->lanes.v[i].turns);
	return (int)min_i64(most, max_i64(least, ceil_div(2 * lower_window(k), trips)));
}

/* Deepen flags until phases can be told apart with so many trips. */
static void deepen(struct kernel *k, int64_t trips)
{
	struct arena_mark mark = arena_mark(&k->arena);
	struct relation r;
	struct walk w;
	bool *awaited, *seen;

	lower_relation(k, &k->arena, trips, tiles_in_window(k, trips), &w, &r);
	awaited = ARENA_ARRAY(&k->arena, r.n, bool);
	seen = ARENA_ARRAY(&k->arena, r.n, bool);
	for (int i = 0; i < k->flags.n; i++) {
		struct flag *f = &k->flags.v[i];

		while (!f->runs && f->depth <= DEPTH_MAX && !depth_holds(k, &r, f, f->depth, awaited, seen))
			f->depth++;
	}
	arena_reset(&k->arena, mark);
}

enum err_code lower_depths(struct kernel *k, struct err *e)
{
	const struct graph *g = k->plan->graph;
	const char *late = NULL;
	int64_t few = 1, most = 1;

	for (int l = 0; l < g->program->loops.n; l++)
		if (g->program->loops.v[l].phase == k->phase)
			few = max_i64(few, g->trips[l].least);
	for (int l = 0; l < g->program->loops.n; l++)
		if (g->program->loops.v[l].phase == k->phase)
			most = max_i64(most, g->trips[l].most);
	most = min_i64(most, 2 * lower_window(k));
	for (int64_t trips = min_i64(few, most); trips <= most; trips++)
		deepen(k, trips);
	for (int l = 0; l < k->plan->lanes.n; l++)
		if (k->turn_of[l] != NONE)
			k->flags.v[k->turn_of[l]].depth = (int)round_up(k->flags.v[k->turn_of[l]].depth,
				k->plan->lanes.v[l].turns);
	for (int i = 0; i < k->flags.n; i++) {
		struct flag *f = &k->flags.v[i];

		if (f->depth > DEPTH_MAX)
			late = stask_at(k, f->task)->name;
		f->offset = k->shared_bytes;
		k->shared_bytes += (int64_t)f->depth * FLAG_BYTES;
	}
	return late ? err_set(e, ERR_ILLEGAL, NOWHERE, "'%s' may run so far ahead of those that wait "
		"for it that they cannot tell its iterations apart", late) : OK;
}
