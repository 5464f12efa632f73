/* The waits of the kernel (k->own): those of the plan with two changes. Each order that the plan guarantees still
 * holds.
 *
 * A flag shows a wait if the wait can be made as a test of one of the flag's mbarriers. A few waits cannot be shown:
 * they are removed if other waits imply them, else replaced, else the plan is refused (lower_remove_hidden_waits).
 *
 * A flag has a limited number of mbarriers, so a lane that runs far ahead of those that wait for it would use
 * one again whose last generation these have not seen. It gets additional waits (lower_hold_back).
 *
 * Whether waits imply others or make a deadlock is decided on the relation of events over a few tiles, for small
 * numbers of iterations (lower_all_windows). */
#include "lower/passes.h"

#include <string.h>

enum {
	/* how many instances a lane may be ahead of a waiter: the numbers that lower_hold_back tries */
	AHEAD_FIRST = DEPTH_MAX / 2, AHEAD_LAST = DEPTH_MAX,
	WAITS_MOST = 256,		/* with more, the plan's included, none is added: attempts must end */
};

void lower_copy_waits(struct kernel *k)
{
	struct plan *own = ARENA_NEW(&k->arena, struct plan);

	*own = *k->plan;
	own->waits.v = arena_copy(&k->arena, own->waits.v, (size_t)own->waits.n, sizeof(*own->waits.v));
	own->waits.cap = own->waits.n;
	k->plan = k->own = own;
}

static void remove_wait(struct kernel *k, int i)
{
	struct wait *w = &k->own->waits.v[i];

	memmove(w, w + 1, (size_t)(--k->own->waits.n - i) * sizeof(*w));
}

static void insert_wait(struct kernel *k, int i, struct wait w)
{
	VEC_PUSH(&k->arena, &k->own->waits, w);
	memmove(&k->own->waits.v[i + 1], &k->own->waits.v[i], (size_t)(k->own->waits.n - 1 - i) * sizeof(w));
	k->own->waits.v[i] = w;
}

/* waits that no flag shows ---------------------------------------------------------- */

/* The tile of the window in which instance `seq` of the sTask is. */
static int64_t tile_of(const struct relation *r, int task, int64_t seq)
{
	return walk_outer(r->walk, r->plan->graph->tasks.v[task].loop, seq, NONE);
}

struct checked_wait {
	struct wait w;
	bool other_tiles_only;		/* awaited instances in the tile of the waiting one need not be implied */
};

/* In this relation, from which wait x has been removed: do the other waits imply that each instance that x awaits is
 * complete (issued, if x awaits that) before the waiting instance is issued? */
static bool is_implied(void *ctx, const struct relation *r)
{
	const struct checked_wait *x = ctx;
	const struct wait *w = &x->w;
	int64_t n = walk_count(r->walk, r->plan->graph->tasks.v[w->task].loop);

	for (int64_t s = 0; s < n && !r->ncycle; s++) {
		struct span spans[SPANS_MAX];
		int ns = walk_wait_spans(r->walk, r->plan, w, s, spans), waiting = relation_instance(r, w->task, s);

		for (int i = 0; i < ns; i++)
			for (int64_t on = spans[i].first; on < spans[i].last; on++)
				if (!(x->other_tiles_only && tile_of(r, w->on, on) == tile_of(r, w->task, s)) &&
				    !relation_before(r, relation_instance(r, w->on, on), w->when == WAIT_ISSUED ?
				    AT_ISSUE : AT_END, waiting, AT_ISSUE))
					return false;
	}
	return !r->ncycle;
}

static bool has_no_cycle(void *ctx, const struct relation *r)
{
	(void)ctx;
	return !r->ncycle;
}

/* Does the wait await all copies in a run of a loop, by one generation for the run? No flag shows that: the copy engine
 * completes a generation with each instance of a load, and no lane knows when the last one is complete. */
static bool is_hidden(struct kernel *k, const struct wait *w)
{
	struct flag_demand part;
	bool hidden = false;

	if (stask_at(k, w->task)->phase != k->phase ||
	    !needs_flag(k, w) || !is_async_load(k, w->on) || w->when == WAIT_ISSUED)
		return false;
	for (int i = 0; lower_next_demand(k, w, &i, &part);)
		hidden |= part.runs != NONE;
	return hidden;
}

/* Replaces wait number i, which is `w` and has been removed, by a wait for an sTask of the load's loop that reads
 * what is loaded in the same iteration, so has waited for it. False: every such wait would be a deadlock. A wait
 * without a distance awaits what its dependences say, which are not those of the reader, so it is not replaced. */
static bool wait_for_reader(struct kernel *k, int i, struct wait w)
{
	const struct graph *g = k->plan->graph;

	for (int t = 0; t < g->tasks.n; t++) {
		struct wait to = w;

		if (!stask_reads(&g->tasks.v[t], g->tasks.v[w.on].writes.v[0]) || t == w.task ||
		    g->tasks.v[t].loop != g->tasks.v[w.on].loop || w.distance == DISTANCE_AUTO)
			continue;
		to.on = t;
		insert_wait(k, i, to);
		if (lower_all_windows(k, has_no_cycle, NULL))
			return true;
		remove_wait(k, i);
	}
	return false;
}

/* Wait i looks `distance` iterations back, in a lane with replicas. In the first iterations of a tile these are the
 * last ones of the replica's tile before, and a replica does not know how many that had. So the kernel waits only for
 * instances of the same tile. Mostly other waits imply the earlier ones; if not, the plan is refused. The others are
 * taken in full, even if the kernel shortens or removes them, too; verify checks that no dependence is lost. */
static enum err_code check_last_tile(struct kernel *k, int i, struct err *e)
{
	struct wait w = k->plan->waits.v[i];
	bool implied;

	remove_wait(k, i);
	implied = lower_all_windows(k, is_implied, &(struct checked_wait){ w, true });
	insert_wait(k, i, w);
	return implied ? OK : err_set(e, ERR_ILLEGAL, w.loc, "in the first iterations of a tile '%s' waits "
		"for the last iterations of '%s' in an earlier tile, which the replicas of lane '%s' cannot count: "
		"wait without distance=, or let another lane perform '%s'", stask_at(k, w.task)->name,
		stask_at(k, w.on)->name, k->plan->lanes.v[lane_of(k, w.task)].name, stask_at(k, w.on)->name);
}

enum err_code lower_remove_hidden_waits(struct kernel *k, struct err *e)
{
	for (int i = k->plan->waits.n - 1; i >= 0; i--) {
		struct wait w = k->plan->waits.v[i];

		if (stask_at(k, w.task)->phase == k->phase && lower_awaits_last_tile(k, &w))
			TRY(check_last_tile(k, i, e));
		if (!is_hidden(k, &w))
			continue;
		remove_wait(k, i);
		if (!lower_all_windows(k, is_implied, &(struct checked_wait){ w, false }) && !wait_for_reader(k, i, w))
			return err_set(e, ERR_ILLEGAL, w.loc, "'%s' waits until the copies of '%s' in all iterations "
				"of a loop are complete, which no flag can show: wait for an sTask that reads what "
				"is loaded", stask_at(k, w.task)->name, stask_at(k, w.on)->name);
	}
	return OK;
}

/* lanes that run ahead ---------------------------------------------------------------- */

static bool has_wait(const struct plan *p, const struct wait *w)
{
	for (int i = 0; i < p->waits.n; i++)
		if (p->waits.v[i].task == w->task && p->waits.v[i].on == w->on &&
		    p->waits.v[i].distance == w->distance && p->waits.v[i].when == w->when)
			return true;
	return false;
}

/* Adds the reverse of a wait: if instance i of sTask A awaits instance i - back of B, then instance j of B is to await
 * instance j - (ahead - back) of A. So B runs ahead of the instance that A awaits next by fewer than `ahead` instances
 * (with DISTANCE_AUTO, by the dependence's distance more). A small `ahead` can be a deadlock, or hold back B without
 * need; with a great one the flag needs more mbarriers. Where B has the wait already, a greater `ahead` makes a weaker one,
 * which may add something if both lanes have replicas. */
bool lower_hold_back(struct kernel *k, int wait)
{
	struct wait w = k->plan->waits.v[wait];
	bool same_loop = stask_at(k, w.task)->loop == stask_at(k, w.on)->loop;
	int back = w.distance == DISTANCE_AUTO ? 0 : w.distance;

	for (int ahead = AHEAD_FIRST; ahead <= AHEAD_LAST; ahead++) {
		/* When A is issued it has made its wait, so its issue is enough. But if A is in another loop, the flag
		 * may be one of runs. It shows that a run is complete, but of loads only that they are issued. */
		struct wait hold = { .task = w.on, .on = w.task, .distance = ahead - back,
			.when = same_loop || is_async_load(k, w.task) ? WAIT_ISSUED : WAIT_COMPLETE, .loc = w.loc };

		if (hold.distance < 1 || has_wait(k->plan, &hold) || k->plan->waits.n > WAITS_MOST)
			continue;
		insert_wait(k, k->plan->waits.n, hold);
		if (lower_all_windows(k, has_no_cycle, NULL))
			return true;
		remove_wait(k, k->plan->waits.n - 1);
	}
	return false;
}
