/* Signals: behind each wait for groups, lanes that wait for products learn which of them are complete now. Where the
 * current iteration tells which instances these are, it is straight code; elsewhere a counter is kept.
 *
 * Along the iterations of a loop the pass tracks how many instances have been signaled: signaled[f], counted as the
 * number of the iteration is. In the steady state it must come to the same at the end of an iteration as it was at its
 * beginning; where the loop begins with less, as nothing was issued before iteration 0, the first arrivals have a
 * guard. What remains when the loop is over (remaining[f]) is signaled behind it. Where that does not work out for a
 * flag, the lane counts instances (released_N): all paths are followed until that is known of each flag, and then once
 * more for the tree. */
#include "lower/pass/pass.h"

struct signaling {
	struct lowering *c;
	const struct point *at;		/* where the lane stands */
	int *signaled, *remaining;	/* by flag: instances */
	bool *by_count;			/* by flag: only a counter tells how many */
	bool *reads_issued, *reads_released;	/* by flag: those counters are read */
	bool changed;			/* by_count has, so that paths must be followed again */
};

static int loop_of(const struct lowering *c, int flag)
{
	return c->g->tasks.v[c->k->flags.v[flag].task].loop;
}

bool signals_later(const struct lowering *c, int flag)
{
	const struct flag *f = &c->k->flags.v[flag];

	return !f->issued && in_lane(c, f->task) && is_in_flight(c, f->task);
}

static bool is_straight(const struct signaling *g, int flag)
{
	const struct lowering *c = g->c;
	int loop = loop_of(c, flag);

	return !c->k->flags.v[flag].runs && loop != NONE && c->p->loops.v[loop].parent == NONE &&
		!shifts_tiles(c->lane) && !g->by_count[flag];
}

static bool is_followed(const struct signaling *g, int flag, int loop)
{
	return signals_later(g->c, flag) && loop_of(g->c, flag) == loop;
}

static void count_instead(struct signaling *g, int flag)
{
	g->by_count[flag] = g->changed = true;
}

static int *copy_signaled(const struct signaling *g)
{
	return arena_copy(g->c->a, g->signaled, (size_t)g->c->k->flags.n, sizeof(int));
}

/* by a counter ----------------------------------------------------------------- */

/* Behind the latest instance that is issued, counted as the number of the iteration is. */
static int issued_end(const struct signaling *g, int flag)
{
	const struct kentry *x = g->at->entry;
	int task = g->c->k->flags.v[flag].task;

	if (x->task == task && !g->at->issued)
		return g->at->number + x->at;
	return latest_issued(g->at, x, lower_entry_of(g->c->lane, task)) + 1;
}

/* How many instances of a flag's product the lane has issued, but for so many. Where the iteration tells, no counter is
 * kept: it would take a register all through the loop. */
static const struct num *issued_count(struct signaling *g, int flag, int but)
{
	struct lowering *c = g->c;
	const struct kentry *x = g->at->entry;
	int loop = loop_of(c, flag), region = g->at->region;
	bool counted = c->k->flags.v[flag].runs || loop == NONE || shifts_tiles(c->lane) || (!x && c->task != NONE);

	if (!counted && x && loop == region)
		return num_offset(c, V(c, VAR_SEQ, loop), issued_end(g, flag) - (g->at->number + x->at) - but);
	if (!counted && loop != region && program_loop_within(c->p, loop, region))
		return num_offset(c, V(c, VAR_BASE, loop), -but);	/* the loop is over, or has not begun */
	g->reads_issued[flag] = true;
	return SUB(V(c, VAR_ISSUED, flag), N(c, but));
}

static void signal_by_count(struct signaling *g, int flag, int behind)
{
	add_flag_op(g->c, DO_RELEASE, flag, issued_count(g, flag, behind), NULL);
	g->reads_released[flag] = true;
}

/* straight --------------------------------------------------------------------- */

/* May the iteration with that number be none of this run? */
static bool may_be_none(const struct signaling *g, int n)
{
	const struct point *p = g->at;

	switch (p->kind) {
	case ITERATION_KNOWN:
		return false;
	case ITERATION_STEADY:
		return n < p->number;
	case ITERATION_LATE:
		break;
	}
	return g->c->lane->regions[p->region + 1].max_offset - 1 - (p->last - n) < 0;
}

/* In the loop's own iterations. */
static void signal_inside_loop(struct signaling *g, int flag, int behind)
{
	struct lowering *c = g->c;
	const struct point *p = g->at;
	int end = issued_end(g, flag) - behind, at = p->number + p->entry->at;

	for (int n = g->signaled[flag]; n < end; n++) {
		const struct num *when = may_be_none(g, n) ? NUM2(GE, V(c, VAR_I, p->region), N(c, at - n)) : NULL;

		if (p->kind != ITERATION_KNOWN || n >= 0)
			add_flag_op(c, DO_ARRIVE,
				flag, num_offset(c, V(c, VAR_SEQ, p->region), n - at), NULL)->u.flag.when = when;
	}
	if (end > g->signaled[flag])
		g->signaled[flag] = end;
}

/* Before or behind the loop. */
static void signal_outside_loop(struct signaling *g, int flag, int behind)
{
	struct lowering *c = g->c;

	for (; g->remaining[flag] > behind; g->remaining[flag]--)
		add_flag_op(c, DO_ARRIVE, flag, SUB(V(c, VAR_BASE, loop_of(c, flag)), N(c, g->remaining[flag])), NULL);
}

/* All instances are complete but for the last `behind`. */
static void signal_instances(struct signaling *g, int flag, int behind)
{
	int loop = loop_of(g->c, flag), region = g->at->region;
	bool inside = g->at->entry && region == loop;

	/* elsewhere in the loop, or in another one, which comes here again and again */
	if (is_straight(g, flag) && region != NONE && !inside &&
	    (program_loop_within(g->c->p, region, loop) || g->remaining[flag] > behind))
		count_instead(g, flag);
	if (!is_straight(g, flag))
		signal_by_count(g, flag, behind);
	else if (inside)
		signal_inside_loop(g, flag, behind);
	else
		signal_outside_loop(g, flag, behind);
}

/* Do threads of the lane themselves read shared memory? */
static bool reads_shared(const struct lowering *c)
{
	for (int i = 0; i < c->lane->entries.n; i++) {
		const struct stask *s = stask_of(c, &c->lane->entries.v[i]);

		/* a sparse product's threads read indices */
		bool by_threads = s->kind == TASK_COMPUTE || s->work.sparse || (s->kind == TASK_MMA && !is_async_product(c->k,
			c->lane->entries.v[i].task)) || (s->kind == TASK_STORE && c->lane->entries.v[i].outbox == NONE);

		for (int k = 0; k < s->reads.n && by_threads; k++)
			if (has_ring(c, s->reads.v[k]))
				return true;
	}
	return false;
}

/* Behind a wait for groups. Other lanes may conclude that what precedes it in the lane's order is complete, too. */
static void signal_complete(struct signaling *g)
{
	struct lowering *c = g->c;
	const int *behind = g->at->instances_left;
	bool synced = false;

	for (int f = 0; f < c->k->flags.n; f++) {
		const struct flag *fl = &c->k->flags.v[f];

		if (!signals_later(c, f))
			continue;
		if (!synced && reads_shared(c))
			add_op(c, DO_WARP_SYNC)->why = "all of its threads have read";
		synced = true;
		if (fl->runs && behind && behind[fl->task])
			continue;	/* the last run may be in flight */
		signal_instances(g, f, behind && !fl->runs ? behind[fl->task] : 0);
	}
}

/* Behind a loop: only its runs. */
static void signal_runs(struct signaling *g)
{
	struct lowering *c = g->c;

	if (reads_shared(c))
		add_op(c, DO_WARP_SYNC)->why = "all of its threads have read";
	for (int f = 0; f < c->k->flags.n; f++) {
		const struct flag *fl = &c->k->flags.v[f];

		if (fl->runs && fl->loop == g->at->run_of && signals_later(c, f))
			signal_instances(g, f, 0);
	}
}

/* along a loop ----------------------------------------------------------------- */

static void follow_body(struct signaling *g, const struct role_body *from, struct role_body *to);

static void begin_run(struct signaling *g, int loop)
{
	for (int f = 0; f < g->c->k->flags.n; f++) {
		if (!is_followed(g, f, loop))
			continue;
		g->signaled[f] = 0;
		if (is_straight(g, f) && g->remaining[f])
			count_instead(g, f);
		g->remaining[f] = NONE;	/* not known yet */
	}
}

/* All paths through the loop must leave the same, or all that few iterations can. */
static void end_run(struct signaling *g, int loop, int trips, bool exact)
{
	for (int f = 0; f < g->c->k->flags.n; f++) {
		int left = trips - g->signaled[f];

		if (!is_followed(g, f, loop) || !is_straight(g, f))
			continue;
		if (g->remaining[f] == NONE)
			g->remaining[f] = left;
		else if (left != (exact && trips < g->remaining[f] ? trips : g->remaining[f]))
			count_instead(g, f);
		if (g->remaining[f] > g->c->g->trips[loop].least)
			count_instead(g, f);
	}
}

/* The steady state of u iterations began with `begin`: does it end with as much? Else what it should begin with is put
 * there. `first`: what the loop begins with. */
static bool is_steady(struct signaling *g, int loop, int u, const int *first, int *begin)
{
	bool steady = true;

	for (int f = 0; f < g->c->k->flags.n; f++) {
		int end = g->signaled[f] - u;

		if (!is_followed(g, f, loop) || !is_straight(g, f) || end == begin[f])
			continue;
		/* or it never ends, as no arrival stands in some iteration */
		if (begin[f] != first[f] || first[f] != (end > 0 ? end : 0))
			count_instead(g, f);
		begin[f] = end;
		steady = false;
	}
	return steady;
}

static void follow_steady(struct signaling *g, const struct role_op *from, struct role_op *to)
{
	int *first = copy_signaled(g), *begin = copy_signaled(g), loop = from->u.region.of;

	do {
		to->u.region.body = (struct role_body){ 0 };
		for (int f = 0; f < g->c->k->flags.n; f++)
			g->signaled[f] = begin[f];
		follow_body(g, &from->u.region.body, &to->u.region.body);
	} while (!is_steady(g, loop, from->u.region.step, first, begin) && !g->changed);
	for (int f = 0; f < g->c->k->flags.n; f++)
		g->signaled[f] = begin[f];
}

/* Each path begins with what holds before all of them; behind them the first one, the longest, holds. */
static void follow_alternatives(struct signaling *g, const struct role_op *from, struct role_op *to)
{
	int *before = copy_signaled(g), *after;

	follow_body(g, &from->u.region.body, &to->u.region.body);
	after = g->signaled;
	g->signaled = before;
	follow_body(g, &from->u.region.other, &to->u.region.other);
	g->signaled = after;
}

static void follow_region(struct signaling *g, const struct role_op *from, struct role_op *to)
{
	int *before = g->signaled;

	to->u.region.body = to->u.region.other = (struct role_body){ 0 };
	if (from->what == DO_BLOCK && from->point && from->point->run_of != NONE)
		begin_run(g, from->point->run_of);
	if (is_section(from, SECTION_STEADY)) {
		follow_steady(g, from, to);
	} else if (is_section(from, SECTION_TRIPS)) {
		follow_alternatives(g, from, to);
	} else if (is_section(from, SECTION_EPILOGUE)) {
		g->signaled = copy_signaled(g);
		follow_body(g, &from->u.region.body, &to->u.region.body);
		g->signaled = before;
	} else {
		follow_body(g, &from->u.region.body, &to->u.region.body);
		follow_body(g, &from->u.region.other, &to->u.region.other);
	}
}

/* The body once more, with signals. */
static void follow_body(struct signaling *g, const struct role_body *from, struct role_body *to)
{
	struct lowering *c = g->c;
	struct role_body *outer = enter_body(c, to);

	for (int i = 0; i < from->v.n; i++) {
		const struct role_op *o = from->v.v[i];
		struct role_op *n = ARENA_NEW(c->a, struct role_op);

		if (o->what == DO_LOOP_END) {
			end_run(g, o->u.loop_end.loop, o->u.loop_end.trips, o->u.loop_end.exact);
			continue;
		}
		*n = *o;
		VEC_PUSH(c->a, &to->v, n);
		c->task = o->task;
		if (role_is_region(o->what))
			follow_region(g, o, n);
		if (o->what != DO_GROUPS_WAIT || !o->point)
			continue;
		g->at = o->point;
		if (g->at->signals == SIGNAL_COMPLETE)
			signal_complete(g);
		else if (g->at->signals == SIGNAL_RUNS)
			signal_runs(g);
	}
	leave_body(c, outer);
}

/* counters ----------------------------------------------------------------------- */

/* A counter that is never read. */
static bool is_needless(const struct signaling *g, const struct role_op *o)
{
	const struct role_let *l = o->u.let.v.v;

	if (o->what != DO_LET && o->what != DO_SET && o->what != DO_ADVANCE)
		return false;
	return (l->var == VAR_ISSUED && !g->reads_issued[l->of]) ||
		(l->var == VAR_RELEASED && !g->reads_released[l->of]);
}

static void drop_counters(const struct signaling *g, struct role_body *b)
{
	int n = 0;

	for (int i = 0; i < b->v.n; i++) {
		struct role_op *o = b->v.v[i];

		if (is_needless(g, o))
			continue;
		b->v.v[n++] = o;
		if (role_is_region(o->what)) {
			drop_counters(g, &o->u.region.body);
			drop_counters(g, &o->u.region.other);
		}
	}
	b->v.n = n;
}

enum err_code pass_signal(struct lowering *c, struct err *e)
{
	const struct role_body plain = c->role->body;
	struct signaling g = { .c = c };
	int n = c->k->flags.n;

	(void)e;
	g.by_count = ARENA_ARRAY(c->a, n, bool);
	do {
		g.changed = false;
		g.signaled = ARENA_ARRAY(c->a, n, int);
		g.remaining = ARENA_ARRAY(c->a, n, int);
		g.reads_issued = ARENA_ARRAY(c->a, n, bool);
		g.reads_released = ARENA_ARRAY(c->a, n, bool);
		c->role->body = (struct role_body){ 0 };
		follow_body(&g, &plain, &c->role->body);
	} while (g.changed);
	c->task = NONE;
	drop_counters(&g, &c->role->body);
	return OK;
}
