/* Chooses the depth of each flag: the number of mbarriers in its ring.
 *
 * Instance n of the flag's sTask completes generation n / depth of barrier n mod depth. (For a flag of runs, n counts
 * runs. A run of a loop is all its iterations within one iteration of the loop around it.) An mbarrier shows only the
 * parity of its generation. So a lane that waits for generation g must know that g - 1 is complete, or it may go on too
 * early; and g + 1 must not complete before the lane has looked, or it may wait for ever. In a deeper ring, generations
 * of one barrier are more instances apart, so fewer waits of the plan suffice to guarantee both.
 *
 * Depths grow until that is proven for windows. A window is a few consecutive tiles in which loops make few iterations;
 * its relation (plan/events.h) knows what comes first in all executions. docs/internals/check.md: why few suffice.
 *
 * "Phase" is a phase of the program here, never that of an mbarrier. passes.h describes functions for other files. */
#include "lower/refine.h"
#include "lower/passes.h"

#include <string.h>

enum {
	WINDOW_TILES = 3,		/* least tiles of each lane replica in a window */
	WINDOW_ITERATIONS = 4,		/* least that lower_window_iterations gives, without the margin */
	WINDOW_MARGIN = 2,		/* iterations */
	WINDOW_INSTANCES = 1 << 16,	/* of a window, iterations of loops included; more would take seconds */
};

void lower_relation(struct kernel *k, struct arena *a, const int64_t *trips, int ntiles, struct walk *w, struct relation *r)
{
	const struct graph *g = k->plan->graph;
	int nloops = g->program->loops.n;
	int64_t *iterations = ARENA_ARRAY(a, nloops * ntiles, int64_t);

	for (int i = 0; i < nloops * ntiles; i++)
		iterations[i] = trips[i / ntiles];
	walk_init_counts(a, w, g, k->phase, ntiles, iterations);
	relation_build(a, k->plan, w, NULL, r);
}

int64_t lower_fitting_trips(const struct kernel *k, int64_t trips, int64_t tiles)
{
	const struct graph *g = k->plan->graph;

	for (; trips > 1; trips--) {
		int64_t sum = 0;

		for (int t = 0; t < g->tasks.n; t++) {
			int64_t n = g->tasks.v[t].phase == k->phase ? tiles : 0;

			for (int l = g->tasks.v[t].loop; l != NONE && n <= WINDOW_INSTANCES; l = g->program->loops.v[l].parent)
				n *= min_i64(trips, g->trips[l].most);
			sum += n;
		}
		if (sum <= WINDOW_INSTANCES)
			break;
	}
	return trips;
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

/* A ring's slot is used again after as many iterations as the ring has versions. Two more show an instance before and
 * one behind. Windows have up to twice as many iterations. All this is generous, not derived: if a window is too small
 * after all, verify finds it in the finished kernel, and the next attempt makes the flag deeper (refine.h). */
int64_t lower_window_iterations(const struct kernel *k)
{
	int64_t n = WINDOW_ITERATIONS;

	for (int i = 0; i < k->plan->graph->buffers.n; i++)
		n = max_i64(n, k->plan->versions[i] + 2);
	return n + WINDOW_MARGIN;
}

static enum event_of flag_event(const struct flag *f)
{
	return f->issued ? AT_ISSUE : AT_END;
}

/* What the proof for one flag in one window uses. Instances and runs are named by their sequence number. */
struct proof {
	struct kernel *k;
	const struct relation *r;
	const struct flag *f;
	int64_t n;			/* instances of the flag's sTask, or runs of its loop, in the window */
	bool *awaited;			/* by instance: some wait is for it */
	bool *seen;			/* by instance: an earlier replica saw it by the wait at hand */
	int *end;			/* by run, of a flag of runs: ends_of_runs */
};

static int flag_instance(const struct proof *p, int64_t n)
{
	return relation_instance(p->r, p->f->task, n);
}

/* With this depth, can instance `waiter` (an index into the relation) test the barrier of instance n? */
static bool wait_holds(const struct proof *p, int depth, int waiter, int64_t n)
{
	if (n + depth < p->n && !relation_before(p->r, waiter, AT_ISSUE, flag_instance(p, n + depth), flag_event(p->f)))
		return false;		/* the next generation may be complete when the waiter looks */
	if (n < depth || p->seen[n - depth])
		return true;
	/* waiter - 1 is the instance before in the order of the lane replica: what it knows, the waiter knows */
	return p->r->inst[waiter].position &&
		relation_before(p->r, flag_instance(p, n - depth), flag_event(p->f), waiter - 1, AT_ISSUE);
}

/* When the warps of the lane arrive for instance n, does each know that all have arrived for n - depth? Otherwise a
 * fast warp could arrive twice in one generation, and complete it for a slow one. The warps know it if another lane
 * replica has seen n - depth complete, and they have waited for that replica since. That a load is complete they may
 * have seen themselves: each of them makes the lane's waits. */
static bool arrival_holds(const struct proof *p, int depth, int64_t n)
{
	const struct relation *r = p->r;
	int old = flag_instance(p, n - depth), now = flag_instance(p, n);
	bool own = is_async_load(p->k, p->f->task) && !p->f->issued;

	/* Of each replica, the last instance before `now` knows most; those before `now` are its first ones. */
	for (int l = 0; l < r->nlanes; l++) {
		int first = r->lane_first[l], end = r->lane_first[l + 1];

		if (l == r->inst[old].lane_replica && !own)
			continue;
		while (first < end) {
			int middle = first + (end - first) / 2;

			if (relation_before(r, middle, AT_ISSUE, now, AT_ISSUE))
				first = middle + 1;
			else
				end = middle;
		}
		if (first > r->lane_first[l] && relation_before(r, old, flag_event(p->f), first - 1, AT_ISSUE))
			return true;
	}
	return false;
}

/* Could a wait notice that a warp, arriving for instance n, is counted in the generation before? That is complete too
 * early: for a wait for it, and for one for its predecessor that has not looked yet. All later generations shift. */
static bool is_awaited(const struct proof *p, int depth, int64_t n)
{
	for (int64_t x = n < 2 * depth ? n % depth : n - 2 * depth; x < p->n; x += depth)
		if (p->awaited[x])
			return true;
	return false;
}

/* A demand is what a wait asks of a flag: that some instance, or some run, is complete or issued. */
bool lower_has_demand(struct kernel *k, const struct wait *w, const struct flag *f, struct flag_demand *first)
{
	for (int i = 0; w->on == f->task && needs_flag(k, w) && lower_next_demand(k, w, &i, first);)
		if (f->runs ? first->runs == f->loop && !f->issued :
		    first->runs == NONE && (w->when == WAIT_ISSUED) == f->issued)
			return true;
	return false;
}

/* With this depth, does each instance of the waiting sTask see the right generation? */
static bool wait_is_safe(const struct proof *p, const struct wait *w, int depth)
{
	const struct plan *plan = p->k->plan;
	int64_t count = walk_count(p->r->walk, stask_at(p->k, w->task)->loop);
	bool has_replicas = plan->lanes.v[lane_of(p->k, w->task)].replicas > 1;

	memset(p->seen, 0, (size_t)p->n * sizeof(*p->seen));
	for (int64_t s = 0; s < count; s++) {
		int waiter = relation_instance(p->r, w->task, s);
		struct span spans[SPANS_MAX];
		int ns = walk_wait_spans(p->r->walk, plan, w, s, spans);

		for (int i = 0; i < ns; i++) {
			int64_t n = spans[i].last - 1;	/* complete after all others of the span */

			if (!lower_shown_by_flag(p->k, w, p->r, waiter, flag_instance(p, n)))
				continue;
			p->awaited[n] = true;
			if (!wait_holds(p, depth, waiter, n))
				return false;
			/* A replica begins its tile when the one before has made all waits of its tile. The relation
			 * does not know that: it is a wait of the kernel, not of the plan. */
			p->seen[n] = has_replicas;
		}
	}
	return true;
}

/* For each run of the flag's loop, the last instance that the flag's lane issues in it, as an index into the relation;
 * NONE: the run has none. */
static int *ends_of_runs(const struct proof *p)
{
	const struct program *g = p->k->plan->graph->program;
	int outer = g->loops.v[p->f->loop].parent, lane = lane_of(p->k, p->f->task);
	int *end = arena_ints(&p->k->arena, (int)p->n, NONE);

	for (int i = 0; i < p->r->n; i++) {
		int loop = stask_at(p->k, p->r->inst[i].task)->loop;

		if (p->r->inst[i].lane == lane && program_loop_within(g, loop, p->f->loop))
			end[walk_outer(p->r->walk, loop, p->r->inst[i].seq, outer)] = i;
	}
	return end;
}

/* The same for a demand on a flag of runs. A waiter sees the runs one after the other, so it knows that the generation
 * before is complete. What remains: the run `depth` runs after the awaited one must not end before the waiter has
 * looked. The relation has no events for runs without an iteration. Waits behind the loop put those in order
 * (lower_run_waits), and verify checks them. */
static bool run_wait_is_safe(const struct proof *p, const struct wait *w, const struct flag_demand *demand, int depth)
{
	int loop = stask_at(p->k, w->task)->loop;
	int64_t count = walk_count(p->r->walk, loop);

	for (int64_t s = 0; s < count; s++) {
		int64_t awaited = walk_outer(p->r->walk, loop, s, demand->loop) - demand->back, later = awaited + depth;
		int end = awaited < 0 || later >= p->n ? NONE : p->end[later];

		if (end != NONE && !relation_before(p->r, relation_instance(p->r, w->task, s), AT_ISSUE, end, AT_ISSUE))
			return false;
	}
	return true;
}

/* With this depth, can no wait on the flag and no arrival at it mistake one generation for another? If one can, *wait
 * is a wait on the flag: the one that can, or the last one if it is an arrival. On a flag of runs a wait's first demand
 * is tested: what makes others safe are often waits that the relation lacks (lower_run_waits). verify checks all. */
static bool depth_holds(const struct proof *p, int depth, int *wait)
{
	const struct plan *plan = p->k->plan;

	memset(p->awaited, 0, (size_t)p->n * sizeof(*p->awaited));
	for (int i = 0; i < plan->waits.n; i++) {
		const struct wait *w = &plan->waits.v[i];
		struct flag_demand demand;

		if (!lower_has_demand(p->k, w, p->f, &demand))
			continue;
		*wait = i;
		if (!(p->f->runs ? run_wait_is_safe(p, w, &demand, depth) : wait_is_safe(p, w, depth)))
			return false;
	}
	/* Where one arrival completes a generation, two arrivals in the wrong order do no harm: by wait_is_safe, the waiter
	 * for the first is done before the second, and the waiter for the second knows that the first is complete.
	 * (Handover waits are not in the relation; see lower_depths.) Arrivals of runs are left to verify. */
	for (int64_t n = depth; n < p->n && p->f->arrivals > 1 && !p->f->runs; n++)
		if (is_awaited(p, depth, n) && !arrival_holds(p, depth, n))
			return false;
	return true;
}

/* The tiles of a window if loops make `trips` iterations: enough that each lane replica gets several, that rings of the
 * tile loop wrap around, and that loops make as many iterations in all as the longest window of one loop. Never more
 * than an EU gets: what happens only with more tiles does not happen. */
static int tiles_in_window(struct kernel *k, int64_t trips)
{
	const struct graph *g = k->plan->graph;
	int64_t least = WINDOW_TILES;

	for (int l = 0; l < g->program->loops.n; l++)
		if (g->program->loops.v[l].phase == k->phase)
			trips = min_i64(trips, max_i64(1, g->trips[l].most));
	for (int i = 0; i < k->plan->lanes.n; i++)
		least = max_i64(least, WINDOW_TILES * k->plan->lanes.v[i].replicas);
	for (int i = 0; i < g->buffers.n; i++)
		if (g->buffers.v[i].loop == NONE && k->plan->versions[i] > 1)
			least = max_i64(least, 2 * (k->plan->versions[i] + 1));
	least += 2 * lower_tile_spread(k);
	return (int)min_i64(k->most_tiles, max_i64(least, ceil_div(2 * lower_window_iterations(k), trips)));
}

/* The iterations of a loop in a window of `trips`, of which the longest window has `last`: as near as the loop can make.
 * 1 at least, as the relation has no events for empty runs. */
static int64_t trips_in_window(const struct kernel *k, int loop, int64_t trips, int64_t last)
{
	int64_t least = max_i64(1, min_i64(k->plan->graph->trips[loop].least, last));

	return min_i64(max_i64(trips, least), k->plan->graph->trips[loop].most);
}

/* Does some loop make more iterations in a window of `trips` than in the one before? */
static bool is_new_window(const struct kernel *k, int64_t trips, int64_t last)
{
	for (int l = 0; l < k->plan->graph->program->loops.n; l++)
		if (k->plan->graph->program->loops.v[l].phase == k->phase && trips_in_window(k, l, trips, last) !=
		    trips_in_window(k, l, trips - 1, last))
			return true;
	return trips == 1;
}

/* In a window all loops make `trips` iterations, or as nearly as many as they can make, so that short runs of one stand
 * next to long ones of another. The windows end with the longest loop, or where more iterations show nothing new, or
 * where loops in one another would make too many: verify finds what these would show. If a loop must make more, it
 * makes as many as in the longest window, which is enough to show what more would. */
bool lower_all_windows(struct kernel *k, bool (*holds)(void *ctx, const struct relation *r), void *ctx)
{
	const struct graph *g = k->plan->graph;
	int64_t last = 1;
	bool all = true;

	for (int l = 0; l < g->program->loops.n; l++)
		if (g->program->loops.v[l].phase == k->phase)
			last = max_i64(last, g->trips[l].most);
	last = min_i64(last, 2 * lower_window_iterations(k));
	last = lower_fitting_trips(k, last, tiles_in_window(k, last));
	for (int64_t trips = 1; trips <= last && all && !stop_asked(k->stop); trips++) {
		struct arena_mark mark = arena_mark(&k->arena);
		int64_t *counts = ARENA_ARRAY(&k->arena, g->program->loops.n, int64_t);
		struct relation r;
		struct walk w;

		for (int l = 0; l < g->program->loops.n; l++)
			counts[l] = trips_in_window(k, l, trips, last);
		if (is_new_window(k, trips, last)) {
			lower_relation(k, &k->arena, counts, tiles_in_window(k, trips), &w, &r);
			all = holds(ctx, &r);
		}
		arena_reset(&k->arena, mark);
	}
	return all && !stop_asked(k->stop);
}

struct deepening {
	struct kernel *k;
	int *unserved;			/* a wait for which even DEPTH_MAX mbarriers are too few; NONE */
};

/* Deepen each flag until this window proves its depth. Always true, so that all windows are looked at. Of the waits that
 * no depth serves, the last is held back in the next attempt, and mostly that serves the others, too (refine.c). */
static bool deepen(void *ctx, const struct relation *r)
{
	struct deepening *d = ctx;
	struct kernel *k = d->k;
	int wait = NONE;

	for (int i = 0; i < k->flags.n; i++) {
		struct flag *f = &k->flags.v[i];
		int region = f->runs ? k->plan->graph->program->loops.v[f->loop].parent : stask_at(k, f->task)->loop;
		int64_t n = walk_count(r->walk, region);
		struct proof p = { k, r, f, n, ARENA_ARRAY(&k->arena, n, bool), ARENA_ARRAY(&k->arena, n, bool), NULL };

		p.end = f->runs ? ends_of_runs(&p) : NULL;
		while (f->depth <= DEPTH_MAX && !depth_holds(&p, f->depth, &wait))
			if (++f->depth > DEPTH_MAX)
				*d->unserved = wait;
	}
	return true;
}

bool lower_same_flag(const struct flag *a, const struct flag *b)
{
	return a->task == b->task && a->issued == b->issued && a->runs == b->runs && a->loop == b->loop;
}

/* Does the flag let the next replica of its lane go on, or may it? A lane without offsets in the tile loop has one such
 * flag; in a lane with such offsets each step of the tile loop has its own (lower_step_handover), so any flag of an
 * issue may be one. */
static bool may_hand_over(const struct kernel *k, int flag)
{
	int lane = lane_of(k, k->flags.v[flag].task), least;

	return k->handover_flag_of[lane] == flag || (k->flags.v[flag].issued && k->handover_flag_of[lane] == NONE &&
		lower_tile_offsets(k, lane, &least));
}

/* A ring that asynchronous loads fill has a barrier for each slot. */
static enum err_code check_load_ring(struct kernel *k, const struct flag *f, struct err *e)
{
	int buffer, versions;

	if (f->issued || !is_async_load(k, f->task))
		return OK;
	buffer = stask_at(k, f->task)->writes.v[0];
	versions = k->rings.v[k->ring_of[buffer]].versions;
	if (versions <= DEPTH_MAX)
		return OK;
	k->refusal.task = f->task;
	return err_set(e, ERR_ILLEGAL, k->plan->versions_loc, "'%s' has %d versions; a ring that asynchronous loads fill has "
		"%s %s for each, and may have %d", k->plan->graph->buffers.v[buffer].name, versions,
		k->target->shared.polled ? "a" : "an", target_flag_name(k->target), DEPTH_MAX);
}

static enum err_code check_depths(struct kernel *k, struct err *e)
{
	for (int i = 0; i < k->flags.n; i++) {
		const struct flag *f = &k->flags.v[i];

		TRY(check_load_ring(k, f, e));
		if (f->depth <= DEPTH_MAX)
			continue;
		k->refusal.task = f->task;
		return err_set(e, ERR_ILLEGAL, k->plan->entries.v[plan_entry_of(k->plan, f->task)].loc, "the flag of "
			"'%s' needs %d %ss, and may have %d: use fewer versions of its value, a shorter distance "
			"of waits for it, or fewer replicas of its lane", stask_at(k, f->task)->name, f->depth,
			target_flag_name(k->target), DEPTH_MAX);
	}
	return OK;
}

enum err_code lower_depths(struct kernel *k, int *unserved, struct err *e)
{
	struct deepening d = { k, unserved };

	*unserved = NONE;
	refined_set_depths(k);
	TRY(check_depths(k, e));	/* a load's flag begins with its ring's versions, which may be too many */
	lower_all_windows(k, deepen, &d);
	if (*unserved != NONE) {
		const struct wait *w = &k->plan->waits.v[*unserved];
		const char *on = stask_at(k, w->on)->name, *waiter = stask_at(k, w->task)->name;

		return err_set(e, ERR_ILLEGAL, w->loc, "'%s' may run so far ahead of '%s', which waits for it, that "
			"a ring of %d %ss cannot tell its iterations apart: let '%s' wait for '%s', or wait at a "
			"shorter distance", on, waiter, DEPTH_MAX, target_flag_name(k->target), on, waiter);
	}
	/* Tile t uses barrier t mod depth. If the depth is a multiple of the number of replicas, it is the same replica
	 * that arrives at a barrier each time, so the arrivals are in order. */
	for (int i = 0; i < k->flags.n; i++)
		if (may_hand_over(k, i))
			k->flags.v[i].depth = (int)round_up(k->flags.v[i].depth,
				k->plan->lanes.v[lane_of(k, k->flags.v[i].task)].replicas);
	TRY(check_depths(k, e));
	for (int i = 0; i < k->flags.n; i++) {
		k->flags.v[i].offset = k->shared_bytes;
		k->shared_bytes += (int64_t)k->flags.v[i].depth * k->target->shared.flag;
	}
	return OK;
}
