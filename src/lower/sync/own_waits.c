/* The waits of the kernel: those of the plan, except a few that no flag can show, and additional ones that hold back a
 * lane that would run too far ahead of its waiters. Every order that the plan guarantees still holds. */
#include "lower/passes.h"

enum {
	AHEAD_MOST = 16,		/* instances that a waiter may be behind */
	ADDED_MOST = 256,
};

void lower_own_waits(struct kernel *k)
{
	struct plan *own = ARENA_NEW(&k->arena, struct plan);

	*own = *k->plan;
	own->waits.v = arena_copy(&k->arena, own->waits.v, (size_t)own->waits.n, sizeof(*own->waits.v));
	own->waits.cap = own->waits.n;
	k->plan = k->own = own;
}

static void remove_wait(struct kernel *k, int i)
{
	struct plan *p = k->own;

	p->waits.n--;
	for (; i < p->waits.n; i++)
		p->waits.v[i] = p->waits.v[i + 1];
}

static void insert_wait(struct kernel *k, int i, struct wait w)
{
	struct plan *p = k->own;

	VEC_PUSH(&k->arena, &p->waits, w);
	for (int j = p->waits.n - 1; j > i; j--)
		p->waits.v[j] = p->waits.v[j - 1];
	p->waits.v[i] = w;
}

/* what no flag shows ---------------------------------------------------------- */

static int64_t tile_of(const struct relation *r, int task, int64_t seq)
{
	return walk_outer(r->walk, r->plan->graph->tasks.v[task].loop, seq, NONE);
}

/* A wait that is checked. `in_tile`: instances of the same tile are not. */
struct checked_wait {
	struct wait w;
	bool in_tile;
};

/* Do the awaited instances come before the waiting ones by other waits? */
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
				if (!(x->in_tile && tile_of(r, w->on, on) == tile_of(r, w->task, s)) &&
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

/* Does the wait await the last copy in a run of a loop? No flag shows that: only the engine knows, and it completes
 * phases of instances, not of runs. */
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

/* Await an sTask that reads what is loaded instead: it has waited for the load itself. */
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

/* A replica does not know how many instances its previous tile had, so it cannot await them by number. Mostly other
 * waits already guarantee that they are complete; if not, the plan is refused. */
static enum err_code check_last_tile(struct kernel *k, int i, struct err *e)
{
	struct wait w = k->plan->waits.v[i];
	bool implied;

	remove_wait(k, i);
	implied = lower_all_windows(k, is_implied, &(struct checked_wait){ w, true });
	insert_wait(k, i, w);
	return implied ? OK : err_set(e, ERR_ILLEGAL, w.loc, "'%s' waits in its first iterations for "
		"the last ones of '%s' in another tile, on lane '%s', which has several replicas: leave "
		"the distance open, or let another lane load", stask_at(k, w.task)->name,
		stask_at(k, w.on)->name, k->plan->lanes.v[lane_of(k, w.task)].name);
}

enum err_code lower_showable_waits(struct kernel *k, struct err *e)
{
	for (int i = k->plan->waits.n - 1; i >= 0; i--) {
		struct wait w = k->plan->waits.v[i];

		if (stask_at(k, w.task)->phase == k->phase && lower_awaits_last_tile(k, &w))
			TRY(check_last_tile(k, i, e));
		if (!is_hidden(k, &w))
			continue;
		remove_wait(k, i);
		if (!lower_all_windows(k, is_implied, &(struct checked_wait){ w, false }) && !wait_for_reader(k, i, w))
			return err_set(e, ERR_ILLEGAL, w.loc, "'%s' waits until all copies of '%s' "
				"have come in a loop of another lane, although no sTask has read them by then: wait "
				"for an sTask that reads them", stask_at(k, w.task)->name, stask_at(k, w.on)->name);
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

bool lower_hold_back(struct kernel *k, int wait)
{
	struct wait w = k->plan->waits.v[wait];
	bool same = stask_at(k, w.task)->loop == stask_at(k, w.on)->loop;
	int back = w.distance == DISTANCE_AUTO ? 0 : w.distance;

	for (int ahead = AHEAD_MOST / 2; ahead <= AHEAD_MOST; ahead++) {
		struct wait hold = { .task = w.on, .on = w.task, .distance = ahead - back,
			.when = same || is_async_load(k, w.task) ? WAIT_ISSUED : WAIT_COMPLETE, .loc = w.loc };

		if (hold.distance < 1 || has_wait(k->plan, &hold) || k->plan->waits.n > ADDED_MOST)
			continue;
		insert_wait(k, k->plan->waits.n, hold);
		if (lower_all_windows(k, has_no_cycle, NULL))
			return true;
		remove_wait(k, k->plan->waits.n - 1);
	}
	return false;
}
