/* Meetings of all lanes at the block's barrier, instead of flags.
 *
 * On a machine without barriers in shared memory a flag is a counter there, which waiting warps read again and again. Its
 * block barrier costs less, but all warps of the block must come to it equally often. So this works for plans in which all
 * lanes execute the same loop: in each of its iterations each lane meets the others as often, `interval` times, at points
 * of its order that make all waits of the plan hold.
 *
 * The points are those of a modulo schedule. Between two meetings is a period; they are numbered through the run of a loop,
 * alike in all lanes. An entry with offset `at` executes instance n in the lane's step n - at, in period
 *
 *	interval * (n - at) + u
 *
 * for a number u of the entry. Along the lane's order u never falls, and from the first to the last entry it rises by at most
 * the interval. A wait of x for y, d iterations back, holds if x is in a later period than y:
 *
 *	u(x) - u(y) >= 1 - interval * (d + at(y) - at(x))
 *
 * These are difference constraints. Where they have no solution, the meetings are too few, and the interval is made longer.
 * Products take the least u. What copies to shared memory takes the greatest that leaves the products where they are, and
 * everything else the least that goes with both. (Rau's iterative modulo scheduling, 1994, finds its times in the same way.) A
 * wait for the issue of an sTask is taken for one for its completion, which is more than it asks for, except of a load that its
 * lane issues and leaves under way (sync/counted_copies.c).
 *
 * Where the loop begins and where it ends all lanes meet once more, which orders it with what is before it and behind it. */
#include "lower/passes.h"

#include <limits.h>

enum { INTERVAL_MOST = 8 };

struct constraint {
	int from, to, least;		/* u[to] - u[from] >= least - interval * back */
	int back;
	bool issue;			/* for `from` to be issued, not to be complete */
};

/* A lane's order in the loop. */
struct lane_order {
	struct order_step *steps;	/* entries */
	int n;
	int greatest;			/* offset, from the least */
};

struct meeting_points {
	struct kernel *k;
	int loop;			/* of all lanes */
	int *at;			/* by entry of the plan: its offset from the lane's least */
	int *u;				/* by entry */
	enum loop_part *part;		/* by entry */
	struct lane_order *order;	/* by lane; without steps: it has no work */
	VEC(struct constraint) v;
};

static const struct entry *entry_at(const struct meeting_points *x, int entry)
{
	return &x->k->plan->entries.v[entry];
}

static const struct stask *stask_of_entry(const struct meeting_points *x, int entry)
{
	return stask_at(x->k, entry_at(x, entry)->task);
}

/* Sets *out to the loop of the phase. Returns why lanes cannot meet in it, or NULL. They cannot if there are several loops or
 * none, or if the loop may have no iteration or may end early. */
static const char *find_loop(const struct kernel *k, int *out)
{
	const struct program *p = k->plan->graph->program;

	*out = NONE;
	for (int i = 0; i < p->loops.n; i++) {
		const struct loop *l = &p->loops.v[i];

		if (l->phase != k->phase)
			continue;
		if (*out != NONE || l->parent != NONE)
			return "there are several loops";
		if (l->has_length || l->keeps_steps)
			return "the loop may end early";
		if (k->plan->graph->trips[i].least < 1)
			return "the loop may have no iteration";
		*out = i;
	}
	return *out == NONE ? "there is no loop" : NULL;
}

/* Notes the lane's order. Returns why it cannot meet others in the loop; NULL: it can. */
static const char *order_lane(struct meeting_points *x, int lane)
{
	struct kernel *k = x->k;
	struct lane_order *o = &x->order[lane];
	struct order_step *steps;
	int least, most, before = NONE, ignored, n;
	bool behind = false;

	o->n = order_steps(&k->arena, k->plan, lane, k->phase, x->loop, &o->steps, &least, &most);
	if (!o->n)
		return "a lane has no part in the loop";
	if (k->plan->lanes.v[lane].replicas > 1 || lower_tile_offsets(k, lane, &ignored))
		return "lanes are at different tiles";
	o->greatest = most - least;
	for (int i = 0; i < o->n; i++) {
		int entry = o->steps[i].id;

		x->at[entry] = entry_at(x, entry)->at - least;
		x->part[entry] = PART_LOOP;
		if (before != NONE)
			VEC_PUSH(&k->arena, &x->v, ((struct constraint){ before, entry, 0, 0, false }));
		before = entry;
	}
	VEC_PUSH(&k->arena, &x->v, ((struct constraint){ before, o->steps[0].id, 0, 1, false }));
	n = order_steps(&k->arena, k->plan, lane, k->phase, NONE, &steps, &least, &most);
	for (int i = 0; i < n; i++) {
		if (!steps[i].is_loop)
			x->part[steps[i].id] = behind ? PART_BEHIND : PART_BEFORE;
		behind |= steps[i].is_loop;
	}
	return NULL;
}

/* Entry `to` must be in a later period than entry `from`, so many iterations back. */
static void add_order(struct meeting_points *x, int to, int from, int back, bool issue)
{
	VEC_PUSH(&x->k->arena, &x->v, ((struct constraint){ from, to, 1, back + x->at[from] - x->at[to], issue }));
}

/* Makes the demand of the wait hold. False: meetings cannot. */
static bool add_demand(struct meeting_points *x, const struct wait *w, const struct flag_demand *d)
{
	int to = plan_entry_of(x->k->plan, w->task), from = plan_entry_of(x->k->plan, w->on);
	enum loop_part mine = x->part[to], theirs = x->part[from];

	if (mine == PART_LOOP && theirs == PART_LOOP && d->loop == x->loop) {
		add_order(x, to, from, d->back, w->when == WAIT_ISSUED);
		return true;
	}
	if (!d->back)			/* lanes meet where the loop begins and where it ends */
		return theirs < mine;
	x->k->meetings.tile_end |= theirs == PART_BEHIND && mine == PART_BEFORE;
	return true;
}

/* Where a lane's threads copy to shared memory what the same lane reads, a meeting must separate the copy from the reads of
 * its value, and those reads from the next copy to the slot. */
static void add_own_accesses(struct meeting_points *x, int entry)
{
	const struct kernel *k = x->k;
	const struct stask *s = stask_of_entry(x, entry);
	int buffer = s->writes.v[0];

	for (int i = 0; i < k->plan->entries.n; i++)
		if (entry_at(x, i)->lane == entry_at(x, entry)->lane && x->part[i] == PART_LOOP &&
		    stask_of_entry(x, i)->phase == k->phase && i != entry &&
		    graph_holds_storage(k->plan->graph, &stask_of_entry(x, i)->reads, buffer)) {
			add_order(x, i, entry, 0, false);
			add_order(x, entry, i, k->plan->versions[buffer], false);
		}
}

/* All waits, as constraints. False: some wait can only be shown by a flag. */
static bool add_waits(struct meeting_points *x)
{
	struct kernel *k = x->k;

	for (int i = 0; i < k->plan->waits.n; i++) {
		const struct wait *w = &k->plan->waits.v[i];
		struct flag_demand d;

		if (stask_at(k, w->task)->phase != k->phase || !needs_flag(k, w))
			continue;
		for (int n = 0; lower_next_demand(k, w, &n, &d);)
			if (!add_demand(x, w, &d))
				return false;
	}
	for (int i = 0; i < k->plan->entries.n; i++)
		if (stask_of_entry(x, i)->phase == k->phase && x->part[i] == PART_LOOP && lower_meets_for(k, entry_at(x, i)->task))
			add_own_accesses(x, i);
	return true;
}

/* Raises u of the entries in `which` until all constraints hold. False: they cannot. */
static bool raise_u(struct meeting_points *x, int interval, const bool *which)
{
	bool changed = true;

	for (int round = 0; changed && round <= x->k->plan->entries.n; round++) {
		changed = false;
		for (int i = 0; i < x->v.n; i++) {
			const struct constraint *c = &x->v.v[i];
			int least = x->u[c->from] + c->least - interval * c->back;

			if (which[c->to] && x->u[c->to] < least) {
				x->u[c->to] = least;
				changed = true;
			}
		}
	}
	return !changed;
}

/* Lowers u of the entries in `which` from INT32_MAX to the most with which all constraints hold. */
static void reduce_u(struct meeting_points *x, int interval, const bool *which)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (int i = 0; i < x->v.n; i++) {
			const struct constraint *c = &x->v.v[i];
			int most = x->u[c->to] == INT32_MAX ? INT32_MAX : x->u[c->to] - c->least + interval * c->back;

			if (which[c->from] && x->u[c->from] > most) {
				x->u[c->from] = most;
				changed = true;
			}
		}
	}
}

/* The least u for the interval. False: there are none. */
static bool solve(struct meeting_points *x, int interval)
{
	bool *all = ARENA_ARRAY(&x->k->arena, x->k->plan->entries.n, bool);

	for (int i = 0; i < x->k->plan->entries.n; i++) {
		all[i] = true;
		x->u[i] = 0;
	}
	return raise_u(x, interval, all);
}

/* Where lanes multiply alternately, a lane should copy while another one multiplies, not before that one can begin. So copies
 * to shared memory are moved behind as many meetings as the products allow. Everything else is as early as these allow, also
 * copies for which the lane waits later (sync/counted_copies.c). */
static void delay_copies(struct meeting_points *x, int interval)
{
	int n = x->k->plan->entries.n, *first = arena_copy(&x->k->arena, x->u, (size_t)n, sizeof(*x->u));
	bool *copies = ARENA_ARRAY(&x->k->arena, n, bool), *others = ARENA_ARRAY(&x->k->arena, n, bool);

	for (int i = 0; i < n; i++) {
		bool multiplies = stask_of_entry(x, i)->kind == TASK_MMA;

		if (x->part[i] != PART_LOOP)
			continue;
		copies[i] = lower_meets_for(x->k, entry_at(x, i)->task) && !lower_dma_copies(x->k, entry_at(x, i)->task);
		others[i] = !copies[i] && !multiplies;
		x->u[i] = multiplies ? x->u[i] : INT32_MAX;
	}
	for (int i = 0; i < n; i++)
		copies[i] |= others[i];
	reduce_u(x, interval, copies);
	for (int i = 0; i < n; i++) {	/* no product waits for what is still INT32_MAX: that is as early as it can be, too */
		others[i] |= x->u[i] == INT32_MAX;
		x->u[i] = others[i] ? first[i] : x->u[i];
	}
	if (!raise_u(x, interval, others))
		BUG("lane orders that had a solution have none");
}

/* Counts the meetings before each entry. least: the period in which the first lane begins the loop; more: meetings of the loop
 * beyond those of its iterations. */
static void number_meetings(struct meeting_points *x, int interval, int least, int more)
{
	struct kernel *k = x->k;
	struct role_meetings *m = &k->meetings.numbers;

	*m = (struct role_meetings){ .interval = interval, .tile = 2 + more + k->meetings.tile_end, .loop = x->loop,
		.of = ARENA_ARRAY(&k->arena, k->plan->entries.n, struct meeting_number) };
	for (int i = 0; i < k->plan->entries.n; i++) {
		m->of[i].part = x->part[i];
		m->of[i].offset = x->part[i] == PART_BEFORE ? 0 : x->part[i] == PART_BEHIND ? 2 + more :
			1 + x->u[i] - interval * x->at[i] - least;
	}
}

/* Sets how often each lane meets the others where, from u. */
static void set_meetings(struct meeting_points *x, int interval)
{
	struct kernel *k = x->k;
	struct meetings *m = &k->meetings;
	int least = INT32_MAX, most = INT32_MIN;

	m->before = ARENA_ARRAY(&k->arena, k->plan->entries.n, int);
	m->end = ARENA_ARRAY(&k->arena, k->plan->lanes.n, int);
	m->first = ARENA_ARRAY(&k->arena, k->plan->lanes.n, int);
	m->last = ARENA_ARRAY(&k->arena, k->plan->lanes.n, int);
	for (int lane = 0; lane < k->plan->lanes.n; lane++) {
		const struct lane_order *o = &x->order[lane];

		if (!o->n)
			continue;
		for (int i = 1; i < o->n; i++) {
			int entry = o->steps[i].id;

			m->before[entry] = x->u[entry] - x->u[o->steps[i - 1].id];
			if (m->before[entry] < 0)
				BUG("sTask %d is before the one that it follows", entry_at(x, entry)->task);
		}
		m->end[lane] = x->u[o->steps[0].id] + interval - x->u[o->steps[o->n - 1].id];
		m->last[lane] = x->u[o->steps[0].id];
		m->first[lane] = m->last[lane] - interval * o->greatest;
		least = (int)min_i64(least, m->first[lane]);
		most = (int)max_i64(most, m->last[lane]);
	}
	for (int lane = 0; lane < k->plan->lanes.n; lane++) {
		m->first[lane] -= least;
		m->last[lane] = most - m->last[lane];
	}
	m->interval = interval;
	number_meetings(x, interval, least, most - least);
}

/* Counts the copies that lanes may leave under way at meetings: for each load the fewest meetings from it to what waits
 * for it. */
static void count_copies(struct meeting_points *x, int interval)
{
	int *within = arena_ints(&x->k->arena, x->k->plan->entries.n, INT_MAX);

	for (int i = 0; i < x->v.n; i++) {
		const struct constraint *c = &x->v.v[i];

		if (c->least && !c->issue)
			within[c->from] = (int)min_i64(within[c->from], x->u[c->to] - x->u[c->from] + interval * c->back);
	}
	for (int i = 0; i < x->k->plan->entries.n; i++)
		if (stask_of_entry(x, i)->phase == x->k->phase && x->part[i] == PART_LOOP && lower_dma_copies(x->k, entry_at(x, i)->task))
			x->k->meetings.numbers.of[i].within = within[i] == INT_MAX ? NONE : within[i];
	lower_count_copies(x->k, x->loop, within);
}

/* Has the lane loads that it counts, and does it thus need meetings although it is alone? */
static bool counts_copies(const struct meeting_points *x)
{
	for (int i = 0; i < x->k->plan->entries.n; i++)
		if (stask_of_entry(x, i)->phase == x->k->phase && x->part[i] == PART_LOOP &&
		    lower_dma_copies(x->k, entry_at(x, i)->task))
			return true;
	return false;
}

bool lower_meets_for(const struct kernel *k, int task)
{
	const struct stask *s = stask_at(k, task);

	return s->writes.n && k->ring_of[s->writes.v[0]] != NONE && (s->kind == TASK_LOAD || lower_puts(k, s));
}

/* Tries to find meetings. Returns why there are none; NULL: there are, or there is one lane. */
static const char *find_meetings(struct kernel *k)
{
	const struct plan *p = k->plan;
	struct meeting_points x = { .k = k, .at = ARENA_ARRAY(&k->arena, p->entries.n, int),
		.u = ARENA_ARRAY(&k->arena, p->entries.n, int), .part = ARENA_ARRAY(&k->arena, p->entries.n, enum loop_part),
		.order = ARENA_ARRAY(&k->arena, p->lanes.n, struct lane_order) };
	const char *why_not = find_loop(k, &x.loop);
	int lanes = 0;

	for (int lane = 0; lane < p->lanes.n && !why_not; lane++)
		if (lower_has_work(k, lane)) {
			lanes++;
			why_not = order_lane(&x, lane);
		}
	if (why_not || (lanes < 2 && !counts_copies(&x)))
		return why_not;
	if (!add_waits(&x))
		return "an sTask outside of the loop waits for one of another lane there";
	for (int interval = 1; interval <= INTERVAL_MOST; interval++)
		if (solve(&x, interval)) {
			delay_copies(&x, interval);
			set_meetings(&x, interval);
			if (counts_copies(&x))
				count_copies(&x, interval);
			return NULL;
		}
	return "lanes wait for each other too often in an iteration";
}

void lower_meetings(struct kernel *k)
{
	k->meetings = (struct meetings){ 0 };
	if (k->target->shared.polled)
		k->meetings.why_not = find_meetings(k);
}
