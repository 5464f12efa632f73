/* Generations of flags: which warps may arrive, copy and wait, and when a generation is complete. */
#include "verify/play_state.h"

static enum err_code check_number(const struct play *p, int flag, int n, int instance, const char *what)
{
	if (n < p->ninstances[flag])
		return OK;
	return err_set(p->e, ERR_ILLEGAL, play_line(p, instance), "%s %s an instance of '%s' that never comes",
		play_name(p, instance), what, p->s->set->plan->graph->tasks.v[flag_at(p, flag)->task].name);
}

/* Does the order of arrivals matter for this generation? Not if nobody waits for it or a later one on its barrier. It
 * still does for the generation after the last one that is waited for, which must not complete too early by an arrival
 * that is meant for the next. */
static bool is_awaited(const struct play *p, int flag, int n)
{
	int last = p->awaited[barrier_of(p, flag, n)];

	return last && n / depth_of(p, flag) < last + 2;
}

/* Does the warp know that the generation of instance n is over? It has seen this one or a later one of the barrier, or
 * it knows of all arrivals. */
static bool is_over(const struct play *p, const struct warp *w, int flag, int n)
{
	const struct generation_state *ph = &p->generation[flag][n];

	if (w->clock[barrier_of(p, flag, n)] > n / depth_of(p, flag))
		return true;
	if (!ph->complete || ph->copies)
		return false;
	int lane = completer(p, flag, n)->lane;
	for (int i = 0; i < p->nwarps; i++)
		if (p->warp[i].lane == lane && ph->arrived >> bit_of(&p->warp[i]) & 1 &&
		    w->clock[component(i, EVENTS)] < ph->event[bit_of(&p->warp[i])])
			return false;
	return true;
}

/* A warp must know that the generation before on the same barrier is over: by its parity that one looks like the one
 * that the warp means. */
static enum err_code check_parity(const struct play *p, const struct warp *w, int flag, int n,
	int instance, const char *what)
{
	int depth = depth_of(p, flag);

	if (n < depth || is_over(p, w, flag, n - depth))
		return OK;
	blame_flag(p, flag);
	return err_set(p->e, ERR_ILLEGAL, play_line(p, instance), "%s %s %s on a flag of %d mbarriers, on "
		"which %s may not be over", play_name(p, instance), what, play_flag_name(p, flag, n), depth,
		play_flag_name(p, flag, n - depth));
}

/* A generation may not complete before all who wait for the generation before on its barrier have seen that one. */
static enum err_code check_waiters(const struct play *p, int flag, int n, const struct generation_state *ph)
{
	int depth = depth_of(p, flag);

	for (int i = n < depth ? NONE : p->generation[flag][n - depth].waiter; i != NONE;
	     i = p->waiters.v[i].next) {
		const struct waiter *w = &p->waiters.v[i];

		if (ph->clock[component(w->warp, EVENTS)] >= w->event)
			continue;
		blame_flag(p, flag);
		return err_set(p->e, ERR_ILLEGAL, play_flag_line(p, flag), "%s may be over before lane '%s' "
			"has seen that %s is, on the same barrier of %d", play_flag_name(p, flag, n),
			p->s->set->plan->lanes.v[p->r->roles.v[p->warp[w->warp].lane].lane].name,
			play_flag_name(p, flag, n - depth), depth);
	}
	return OK;
}

static struct generation_state *generation_at(const struct play *p, int flag, int n)
{
	struct generation_state *ph = &p->generation[flag][n];

	if (!ph->clock) {
		ph->clock = ARENA_ARRAY(p->a, p->nclock, int);
		ph->event = ARENA_ARRAY(p->a, p->blocks * WARPS, int);
	}
	return ph;
}

/* The generation is complete when all have arrived and all `copies` parts of the load are there: one part of a block's
 * own load, one from each block of a shared load. */
static enum err_code try_complete(struct play *p, int flag, int n, int copies)
{
	struct generation_state *ph = &p->generation[flag][n];

	if (ph->arrived != arrivals_of(p, flag, n) || ph->copies < copies)
		return OK;
	ph->complete = true;
	ph->clock[barrier_of(p, flag, n)] = n / depth_of(p, flag) + 1;
	return check_waiters(p, flag, n, ph);
}

static enum err_code arrive(struct play *p, struct warp *w, int flag, int n, int instance)
{
	TRY(check_number(p, flag, n, instance, "arrives for"));
	if (is_awaited(p, flag, n))
		TRY(check_parity(p, w, flag, n, instance, "arrives for"));
	struct generation_state *ph = generation_at(p, flag, n);
	if (ph->arrived >> bit_of(w) & 1)
		return err_set(p->e, ERR_ILLEGAL, play_line(p, instance), "%s arrives twice for %s",
			play_name(p, instance), play_flag_name(p, flag, n));
	join(p, ph->clock, w->clock);
	ph->arrived |= 1u << bit_of(w);
	ph->event[bit_of(w)] = w->event;
	return OK;
}

enum err_code play_arrive(struct play *p, struct warp *w, const struct act *a)
{
	bool all = p->r->flags.v[a->at].all;

	for (int i = all ? 0 : w->block; i < (all ? p->blocks : w->block + 1); i++) {
		TRY(arrive(p, w, flag_in(p, i, a->at), a->n, a->instance));
		TRY(try_complete(p, flag_in(p, i, a->at), a->n, 0));
	}
	return OK;
}

/* Into a slot of one block. */
static enum err_code copy_to(struct play *p, int block, struct warp *w, const struct act *a)
{
	int flag = flag_in(p, block, a->at);

	TRY(check_parity(p, w, flag, a->n, a->instance, "copies for"));
	TRY(play_add_access(p, block, w, a->to, (struct access){ .of = barrier_of(p, flag, a->n),
		.until = a->n / depth_of(p, flag) + 1, .instance = a->instance, .warp = NONE, .by = warp_index(p, w),
		.within = block == w->block, .copied = a->kind == ACT_COPY_THREADS, .writes = true }));
	struct generation_state *ph = generation_at(p, flag, a->n);
	join(p, ph->clock, w->clock);
	ph->copies++;
	return OK;
}

enum err_code play_copy(struct play *p, struct warp *w, const struct act *a)
{
	bool all = a->multicast, by_engine = a->kind == ACT_COPY;
	int first = all ? 0 : w->block, end = all ? p->blocks : w->block + 1;

	if (by_engine && w->number && !a->each)
		return OK;
	TRY(check_number(p, flag_in(p, w->block, a->at), a->n, a->instance, "copies for"));
	for (int i = first; i < end; i++)
		TRY(copy_to(p, i, w, a));
	TRY(arrive(p, w, flag_in(p, w->block, a->at), a->n, a->instance));
	for (int i = first; i < end; i++)
		TRY(try_complete(p, flag_in(p, i, a->at), a->n, by_engine ? end - first : 0));
	return OK;
}

enum err_code play_wait(struct play *p, struct warp *w, const struct act *a)
{
	int flag = flag_in(p, w->block, a->at), depth = depth_of(p, flag);

	TRY(check_number(p, flag, a->n, a->instance, "waits for"));
	struct generation_state *ph = &p->generation[flag][a->n];
	TRY(check_parity(p, w, flag, a->n, a->instance, "waits for"));
	if (a->n + depth < p->ninstances[flag] && p->generation[flag][a->n + depth].complete) {
		blame_flag(p, flag);
		return err_set(p->e, ERR_ILLEGAL, play_line(p, a->instance), "%s waits for %s, but %s "
			"may be over by then too, on the same barrier of %d", play_name(p, a->instance),
			play_flag_name(p, flag, a->n), play_flag_name(p, flag, a->n + depth), depth);
	}
	join(p, w->clock, ph->clock);
	VEC_PUSH(p->a, &p->waiters, ((struct waiter){ warp_index(p, w), w->event, ph->waiter }));
	ph->waiter = p->waiters.n - 1;
	return OK;
}
