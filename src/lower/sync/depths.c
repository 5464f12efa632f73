/* How deep a flag's ring of mbarriers must be so that no waiter mistakes one phase for another. The relation of the
 * plan's events over a few tiles decides that, for each number of iterations that may make a difference. */
#include "lower/refine.h"
#include "lower/passes.h"

#include <string.h>

enum { TILES_MOST = 3 };

void lower_relation(struct kernel *k, struct arena *a, int64_t trips, int ntiles, struct walk *w, struct relation *r)
{
	const struct graph *g = k->plan->graph;
	int nloops = g->program->loops.n;
	int64_t *t = ARENA_ARRAY(a, nloops * ntiles, int64_t);

	for (int i = 0; i < nloops * ntiles; i++) {
		const struct trips *x = &g->trips[i / ntiles];

		t[i] = min_i64(max_i64(x->least, min_i64(trips, x->most)), trips);
	}
	walk_init_counts(a, w, g, k->phase, ntiles, t);
	relation_build(a, k->plan, w, NULL, r);
}

int lower_tile_offsets(const struct kernel *k, int lane, int *least)
{
	const struct plan *p = k->plan;
	int most = -OFFSET_MAX;

	*least = OFFSET_MAX;
	for (int i = 0; i < p->entries.n; i++) {
		const struct stask *s = stask_at(k, p->entries.v[i].task);
		int at = s->loop == NONE ? p->entries.v[i].at : 0;

		if (p->entries.v[i].lane != lane || s->phase != k->phase)
			continue;
		*least = at < *least ? at : *least;
		most = at > most ? at : most;
	}
	return most < *least ? 0 : most - *least;
}

int lower_tile_spread(const struct kernel *k)
{
	const struct plan *p = k->plan;
	int sum = 0;

	for (int l = 0; l < p->lanes.n; l++) {
		int least;

		sum += lower_tile_offsets(k, l, &least) * p->lanes.v[l].replicas;
	}
	return sum;
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

/* With this depth, can waiting instance j test the barrier of instance x? An mbarrier shows only the parity of its
 * phase. So j must know that the phase before is complete, and the next one must not complete before j has gone on. */
static bool wait_holds(const struct relation *r, const struct flag *f, int depth, int j, int64_t x,
	int64_t n, const bool *seen)
{
	if (x + depth < n && !relation_before(r, j, AT_ISSUE, relation_instance(r, f->task, x + depth), flag_event(f)))
		return false;
	if (x < depth || seen[x - depth])
		return true;
	return r->inst[j].position && relation_before(r, relation_instance(r, f->task, x - depth),
		flag_event(f), j - 1, AT_ISSUE);
}

/* When the warps of the lane arrive for instance x, does each know that all have arrived for x - depth? Else a fast
 * warp could arrive twice in one phase. They know it if another lane has seen x - depth, and they waited for that
 * lane. */
static bool arrival_holds(const struct relation *r, const struct flag *f, int depth, int64_t x)
{
	int old = relation_instance(r, f->task, x - depth), now = relation_instance(r, f->task, x);

	for (int j = 0; j < r->n; j++)
		if (r->inst[j].lane_replica != r->inst[old].lane_replica && relation_before(r, old, flag_event(f),
		    j, AT_ISSUE) && relation_before(r, j, AT_ISSUE, now, AT_ISSUE))
			return true;
	return false;
}

/* Is there a wait on the barrier of instance x, for x or one of the two instances before on that barrier? */
static bool is_awaited(const bool *awaited, int64_t n, int depth, int64_t x)
{
	for (int64_t y = x < 2 * depth ? x % depth : x - 2 * depth; y < n; y += depth)
		if (awaited[y])
			return true;
	return false;
}

bool lower_demands(struct kernel *k, const struct wait *w, const struct flag *f, struct flag_demand *part)
{
	for (int i = 0; w->on == f->task && needs_flag(k, w) && lower_next_demand(k, w, &i, part);)
		if (f->runs ? part->runs == f->loop && !f->issued : part->runs == NONE &&
		    (w->when == WAIT_ISSUED) == f->issued)
			return true;
	return false;
}

/* What the proof for one flag under one relation uses. */
struct proof {
	struct kernel *k;
	const struct relation *r;
	const struct flag *f;
	int64_t n;			/* phases */
	bool *awaited, *seen;		/* by phase: by any wait; by the wait at hand */
};

/* Can all instances of the waiting sTask tell the phases apart? */
static bool wait_is_safe(const struct proof *p, const struct wait *w, int depth)
{
	const struct plan *plan = p->k->plan;
	int64_t count = walk_count(p->r->walk, stask_at(p->k, w->task)->loop);
	bool has_replicas = plan->lanes.v[lane_of(p->k, w->task)].replicas > 1;

	memset(p->seen, 0, (size_t)p->n * sizeof(*p->seen));
	for (int64_t s = 0; s < count; s++) {
		struct span spans[SPANS_MAX];
		int ns = walk_wait_spans(p->r->walk, plan, w, s, spans);

		for (int x = 0; x < ns; x++) {
			if (!lower_shown_by_flag(p->k, w, p->r, relation_instance(p->r, w->task, s),
			    relation_instance(p->r, w->on, spans[x].last - 1)))
				continue;
			p->awaited[spans[x].last - 1] = true;
			if (!wait_holds(p->r, p->f, depth, relation_instance(p->r, w->task, s),
			    spans[x].last - 1, p->n, p->seen))
				return false;
			/* replicas begin their tiles in issue order */
			p->seen[spans[x].last - 1] = has_replicas;
		}
	}
	return true;
}

/* The last instance that the flag's lane issues in a run; NONE: the run is empty. */
static int end_of_run(const struct proof *p, int64_t run)
{
	const struct program *g = p->k->plan->graph->program;
	int outer = g->loops.v[p->f->loop].parent, last = NONE;

	for (int i = 0; i < p->r->n; i++) {
		int loop = stask_at(p->k, p->r->inst[i].task)->loop;

		if (p->r->inst[i].lane == lane_of(p->k, p->f->task) && program_loop_within(g, loop,
		    p->f->loop) && walk_outer(p->r->walk, loop, p->r->inst[i].seq, outer) == run)
			last = i;
	}
	return last;
}

/* The same for a flag of runs. A waiter sees the runs one after the other. The relation has no events for runs without
 * an iteration; waits behind the loop order those (lower_run_waits), and verify checks them. */
static bool run_wait_is_safe(const struct proof *p, const struct wait *w, const struct flag_demand *part, int depth)
{
	int mine = stask_at(p->k, w->task)->loop;
	int64_t count = walk_count(p->r->walk, mine);

	for (int64_t s = 0; s < count; s++) {
		int64_t run = walk_outer(p->r->walk, mine, s, part->loop) - part->back + depth;
		int end = run - depth < 0 || run >= p->n ? NONE : end_of_run(p, run);

		if (end != NONE && !relation_before(p->r, relation_instance(p->r, w->task, s), AT_ISSUE, end, AT_ISSUE))
			return false;
	}
	return true;
}

/* With this depth, can all waiters on the flag tell its phases apart, and all warps that arrive? Else *wait is the last
 * wait that was looked at. */
static bool depth_holds(const struct proof *p, int depth, int *wait)
{
	const struct plan *plan = p->k->plan;

	memset(p->awaited, 0, (size_t)p->n * sizeof(*p->awaited));
	for (int i = 0; i < plan->waits.n; i++) {
		const struct wait *w = &plan->waits.v[i];
		struct flag_demand part;

		if (!lower_demands(p->k, w, p->f, &part))
			continue;
		*wait = i;
		if (!(p->f->runs ? run_wait_is_safe(p, w, &part, depth) : wait_is_safe(p, w, depth)))
			return false;
	}
	for (int64_t x = depth; x < p->n && p->f->arrivals > 1 && !p->f->runs; x++)
		if (is_awaited(p->awaited, p->n, depth, x) && !arrival_holds(p->r, p->f, depth, x))
			return false;
	return true;
}

/* So many consecutive tiles show all interactions if loops make `trips` iterations; at most as many as an EU gets. */
static int tiles_in_window(struct kernel *k, int64_t trips)
{
	const struct graph *g = k->plan->graph;
	int64_t least = TILES_MOST;

	for (int l = 0; l < g->program->loops.n; l++)
		if (g->program->loops.v[l].phase == k->phase)
			trips = min_i64(trips, max_i64(1, g->trips[l].most));
	for (int i = 0; i < k->plan->lanes.n; i++)
		least = max_i64(least, TILES_MOST * k->plan->lanes.v[i].replicas);
	for (int i = 0; i < g->buffers.n; i++)	/* a ring of the tile loop must wrap around */
		if (g->buffers.v[i].loop == NONE && k->plan->versions[i] > 1)
			least = max_i64(least, 2 * (k->plan->versions[i] + 1));
	least += 2 * lower_tile_spread(k);
	return (int)min_i64(k->most_tiles, max_i64(least, ceil_div(2 * lower_window(k), trips)));
}

bool lower_all_windows(struct kernel *k, bool (*holds)(void *ctx, const struct relation *r), void *ctx)
{
	const struct graph *g = k->plan->graph;
	int64_t few = 1, most = 1;
	bool all = true;

	for (int l = 0; l < g->program->loops.n; l++) {
		if (g->program->loops.v[l].phase != k->phase)
			continue;
		few = max_i64(few, g->trips[l].least);
		most = max_i64(most, g->trips[l].most);
	}
	most = min_i64(most, 2 * lower_window(k));
	for (int64_t trips = min_i64(few, most); trips <= most && all; trips++) {
		struct arena_mark mark = arena_mark(&k->arena);
		struct relation r;
		struct walk w;

		lower_relation(k, &k->arena, trips, tiles_in_window(k, trips), &w, &r);
		all = holds(ctx, &r);
		arena_reset(&k->arena, mark);
	}
	return all;
}

struct deepening {
	struct kernel *k;
	int unserved;			/* a wait that no depth serves; NONE */
};

/* Deepen flags until waiters can tell their phases apart in these tiles. */
static bool deepen(void *ctx, const struct relation *r)
{
	struct deepening *d = ctx;
	struct kernel *k = d->k;
	int wait = NONE;

	for (int i = 0; i < k->flags.n; i++) {
		struct flag *f = &k->flags.v[i];
		int64_t n = walk_count(r->walk, f->runs ? k->plan->graph->program->loops.v[
			f->loop].parent : stask_at(k, f->task)->loop);
		struct proof p = { k, r, f, n, ARENA_ARRAY(&k->arena, n, bool),
			ARENA_ARRAY(&k->arena, n, bool) };

		while (f->depth <= DEPTH_MAX && !depth_holds(&p, f->depth, &wait))
			if (++f->depth > DEPTH_MAX)
				d->unserved = wait;
	}
	return true;
}

bool lower_same_flag(const struct flag *a, const struct flag *b)
{
	return a->task == b->task && a->issued == b->issued && a->runs == b->runs && a->loop == b->loop;
}

/* May the flag hand over between the replicas of its lane? Then its depth must be a multiple of their number. */
static bool is_handover(const struct kernel *k, int flag)
{
	int lane = lane_of(k, k->flags.v[flag].task), least;

	return k->handover_flag_of[lane] == flag || (k->flags.v[flag].issued && k->handover_flag_of[lane] == NONE &&
		lower_tile_offsets(k, lane, &least));
}

enum err_code lower_depths(struct kernel *k, int *unserved, struct err *e)
{
	struct deepening d = { k, NONE };
	const char *ahead = NULL;

	refined_set_depths(k);
	lower_all_windows(k, deepen, &d);
	for (int i = 0; i < k->flags.n; i++)
		if (is_handover(k, i))
			k->flags.v[i].depth = (int)round_up(k->flags.v[i].depth,
				k->plan->lanes.v[lane_of(k, k->flags.v[i].task)].replicas);
	for (int i = 0; i < k->flags.n; i++) {
		struct flag *f = &k->flags.v[i];

		if (f->depth > DEPTH_MAX)
			ahead = stask_at(k, f->task)->name;
		f->offset = k->shared_bytes;
		k->shared_bytes += (int64_t)f->depth * k->target->shared.flag;
	}
	*unserved = d.unserved;
	return ahead ? err_set(e, ERR_ILLEGAL, NOWHERE, "'%s' may run so far ahead of those that wait "
		"for it that they cannot tell its iterations apart", ahead) : OK;
}
