/* Waits of entries for flags of other lanes, with the dependences they serve as their reasons. */
#include "lower/pass/build.h"

#include <string.h>

/* The dependences that a wait serves, in words. */
static const char *wait_reason(struct lowering *c, const struct wait *w)
{
	const char *why = NULL;

	for (int i = 0; i < c->g->edges.n; i++) {
		const struct edge *d = &c->g->edges.v[i];
		const char *name = c->g->buffers.v[d->buffer].name, *more;

		if (d->from != w->on || d->to != w->task)
			continue;
		more = arena_strf(c->a, d->kind == EDGE_FLOW ? "'%s' is there" : d->reuse ?
			"a slot of '%s' is free" : "'%s' may change", name);
		if (!why || !strstr(why, more))
			why = why ? arena_strf(c->a, "%s, %s", why, more) : more;
	}
	return why ? why : w->when == WAIT_ISSUED ? "issue order" : "the plan wants it";
}

static void add_flag_wait(struct lowering *c, const struct flag_wait *w, const struct num *when)
{
	struct role_op *o;
	struct point *p;

	c->wait = w->wait;
	o = add_flag_op(c, DO_WAIT, w->flag, SUB(w->awaited == AWAIT_RUN ? V(c, VAR_BASE, w->loop) : instance_number(c,
		w->loop), N(c, w->awaited == AWAIT_RUN ? 1 : w->back)), wait_reason(c, &c->plan->waits.v[w->wait]));
	o->u.flag.when = when;
	o->u.flag.once = w->even_if_empty;
	p = point_new(c, c->point);
	p->flag_wait = w;
	o->point = p;
	if (c->k->flags.v[w->flag].copies_arrive)
		add_op(c, DO_FENCE)->why = "threads have copied it, engines may read it";
	c->wait = NONE;
}

static bool waits_for(const struct kentry *x, int flag)
{
	for (int i = 0; i < x->waits.n; i++)
		if (x->waits.v[i].flag == flag)
			return true;
	return false;
}

/* Does an engine read for the entry what threads have copied, and other lanes have signaled? A wait
 * for the copies themselves has a fence already. */
static bool reads_copied(const struct lowering *c, const struct kentry *x)
{
	const struct stask *s = stask_of(c, x);
	bool engine = s->kind == TASK_MMA ? is_async_product(c->k, x->task) : x->outbox != NONE;

	for (int t = 0; t < c->g->tasks.n && engine; t++) {
		const struct stask *from = &c->g->tasks.v[t];
		int flag = c->k->flag_of[t];

		if (flag != NONE && c->k->flags.v[flag].copies_arrive && from->kind == TASK_LOAD &&
		    stask_reads(s, from->writes.v[0]) && !waits_for(x, flag))
			return true;
	}
	return false;
}

void build_flag_waits(struct lowering *c, const struct kentry *x)
{
	for (int i = 0; i < x->waits.n; i++) {
		const struct flag_wait *w = &x->waits.v[i];
		const struct num *when = NULL;

		if (w->awaited == AWAIT_WITHIN)
			when = NUM2(GE, V(c, VAR_I, w->loop), N(c, w->back));
		if (w->awaited == AWAIT_BEFORE)
			when = NUM2(LT, V(c, VAR_I, w->loop), N(c, w->back));
		for (int l = stask_of(c, x)->loop; w->awaited == AWAIT_AROUND && !w->even_if_empty &&
		     l != w->loop; l = c->p->loops.v[l].parent) {
			const struct num *first = NUM2(EQ, V(c, VAR_I, l), N(c, 0));

			when = when ? NUM2(BOTH, when, first) : first;
		}
		add_flag_wait(c, w, when);
	}
	if (reads_copied(c, x))
		add_op(c, DO_FENCE)->why = "threads have copied what others have signaled, engines may read it";
}

bool build_waits_once(const struct lowering *c, int flag)
{
	for (int i = 0; i < c->lane->entries.n; i++)
		for (int k = 0; k < c->lane->entries.v[i].waits.n; k++)
			if (c->lane->entries.v[i].waits.v[k].even_if_empty &&
			    c->lane->entries.v[i].waits.v[k].flag == flag)
				return true;
	return false;
}

const char *build_awaited_products(struct lowering *c, const struct kentry *x)
{
	const char *why = NULL;

	for (int i = 0; i < c->plan->waits.n; i++) {
		const struct wait *w = &c->plan->waits.v[i];

		if (w->task != x->task || !lower_awaits_own(c->k, w) || !is_in_flight(c, w->on))
			continue;
		why = arena_strf(c->a, "%s%s'%s' is complete: %s", why ? why : "", why ? "; " : "",
			c->g->tasks.v[w->on].name, wait_reason(c, w));
	}
	return why ? why : "complete products are signaled";
}

/* Does one thread of the lane issue copies to shared memory? */
static bool issues_copies(const struct lowering *c)
{
	for (int i = 0; i < c->lane->entries.n; i++)
		if (stask_of(c, &c->lane->entries.v[i])->kind == TASK_LOAD)
			return true;
	return false;
}

/* What entry x, inside the loop `nested`, waits for once in region `loop`. */
static bool add_missed_waits(struct lowering *c, const struct kentry *x, int loop, int nested)
{
	bool waits = false;

	for (int k = 0; k < x->waits.n; k++) {
		if (!x->waits.v[k].even_if_empty || x->waits.v[k].loop != loop ||
		    !program_loop_within(c->p, stask_of(c, x)->loop, nested))
			continue;
		add_flag_wait(c, &x->waits.v[k], NULL);
		waits = true;
	}
	return waits;
}

/* After a loop that may have had no iteration: the waits and signals its entries would have made. The lane
 * synchronizes, as the next sTask may be a load that waits for nothing. */
void build_skipped_loop(struct lowering *c, int loop, int nested)
{
	bool waits = false;

	for (int i = 0; i < c->lane->entries.n; i++) {
		const struct kentry *x = &c->lane->entries.v[i];

		waits |= add_missed_waits(c, x, loop, nested);
		for (int f = 0; f < c->k->flags.n; f++)
			if (c->k->flags.v[f].in_loop && c->k->flags.v[f].task == x->task &&
			    c->k->flags.v[f].loop == nested)
				build_signal_run_if(c, f, NUM2(LE, V(c, VAR_SIGNALLED, f), instance_number(c,
					c->p->loops.v[nested].parent)));
	}
	if (waits && issues_copies(c))
		add_lane_sync(c, "all threads have looked at the flags");
}

/* pins of what is read ---------------------------------------------------------- */

/* Has the result of product m several versions, so that a wait cannot tell which one is in flight: because each life
 * has products in many iterations of its loop, or because an iteration works on several tiles? */
bool is_pinned_where_read(const struct lowering *c, const struct kentry *m, int buffer)
{
	const struct stask *s = stask_of(c, m);
	int loop = c->g->buffers.v[buffer].loop;
	bool writes = false;

	for (int i = 0; i < s->writes.n && is_in_flight(c, m->task); i++)
		writes |= s->writes.v[i] == buffer && !has_ring(c, buffer);
	return writes && ((shifts_tiles(c->lane) && loop == NONE) ||
		(c->plan->versions[buffer] > 1 && loop != s->loop));
}

/* Where x reads what products left for longer than their own loop's iteration, it is pinned:
 * by then they are complete. */
enum err_code build_read_pins(struct lowering *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct frag *f;

	for (int i = 0; i < s->reads.n && !is_async_product(c->k, x->task); i++) {
		int buffer = s->reads.v[i];
		bool pinned = false;

		for (int k = 0; k < c->lane->entries.n; k++)
			pinned |= is_pinned_where_read(c, &c->lane->entries.v[k], buffer);
		if (!pinned)
			continue;
		TRY(find_buffer_frag(c, buffer, &f, e));
		if (f->kind == FRAG_FULL)
			add_pin(c, f, register_version(c, x, buffer), frag_block_words(f));
	}
	return OK;
}

