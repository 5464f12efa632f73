/* What a lane waits for, and what it tells the others. */
#include "lower/body/body.h"

#include <string.h>

enum { GROUPS_MOST = 7 };		/* that a wait can name */

/* The instance that a wait is for; a negative one is none. */
static const struct num *awaited(struct body *c, const struct flag_wait *w)
{
	if (w->which == AWAIT_RUN)
		return SUB(V(c, VAR_BASE, w->loop), N(c, 1));
	return SUB(body_seq(c, w->loop), N(c, w->back));
}

/* The dependences that a wait serves, in words. */
static const char *reason(struct body *c, const struct wait *w)
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
	return why ? why : w->when == WAIT_ISSUED ? "its turn" : "the plan wants it";
}

static void flag_wait(struct body *c, const struct flag_wait *w, const struct num *when)
{
	struct role_op *o;

	c->wait = w->wait;
	o = body_op(c, DO_WAIT);
	o->u.flag.flag = w->flag;
	o->u.flag.n = awaited(c, w);
	o->u.flag.when = when;
	o->u.flag.once = w->once;
	o->why = reason(c, &c->plan->waits.v[w->wait]);
	if (c->k->flags.v[w->flag].copies)
		body_fence(c, "threads have copied it, engines may read it");
	c->wait = NONE;
}

/* Does the lane wait for it as the first thing in the first turn of a loop, and never again in the
 * same run? Without a prologue it may as well wait before the loop, whose turns then need not ask. */
static bool is_before_loop(const struct body *c, const struct kentry *x, const struct flag_wait *w)
{
	const struct stask *s = stask_of(c, x);
	const struct kregion *v = &c->lane->regions[s->loop + 1];

	return lower_does(c->k, LEAN_BEFORE) && w->which == AWAIT_AROUND && !w->once && s->loop != NONE &&
		c->p->loops.v[s->loop].parent == w->loop && !v->most && !v->steps.v[0].is_loop &&
		&c->lane->entries.v[v->steps.v[0].id] == x;
}

void body_waits_before_loop(struct body *c, int loop)
{
	const struct kstep *first = &c->lane->regions[loop + 1].steps.v[0];
	const struct kentry *x = &c->lane->entries.v[first->id];

	for (int i = 0; !first->is_loop && i < x->waits.n; i++) {
		if (!is_before_loop(c, x, &x->waits.v[i]))
			continue;
		c->task = x->task;
		flag_wait(c, &x->waits.v[i], c->g->trips[loop].least > 0 ? NULL : NUM2(GT, V(c, VAR_TRIPS,
			loop), N(c, 0)));
		c->task = NONE;
	}
}

static bool waits_for(const struct kentry *x, int flag)
{
	for (int i = 0; i < x->waits.n; i++)
		if (x->waits.v[i].flag == flag)
			return true;
	return false;
}

/* Does an engine read for the entry what threads have copied, of which others have told it? A wait
 * for copies has a fence; of these there is none. */
static bool reads_copied(const struct body *c, const struct kentry *x)
{
	const struct stask *s = stask_of(c, x);
	bool engine = s->kind == TASK_MMA ? on_matrix(c->k, x->task) : x->outbox != NONE;

	for (int t = 0; t < c->g->tasks.n && engine; t++) {
		const struct stask *from = &c->g->tasks.v[t];
		int flag = c->k->flag_of[t];

		if (flag != NONE && c->k->flags.v[flag].copies && from->kind == TASK_LOAD &&
		    stask_reads(s, from->writes.v[0]) && !waits_for(x, flag))
			return true;
	}
	return false;
}

void body_flag_waits(struct body *c, const struct kentry *x)
{
	for (int i = 0; i < x->waits.n; i++) {
		const struct flag_wait *w = &x->waits.v[i];
		const struct num *when = NULL;

		if (w->which == AWAIT_WITHIN)
			when = NUM2(GE, V(c, VAR_I, w->loop), N(c, w->back));
		if (w->which == AWAIT_BEFORE)
			when = NUM2(LT, V(c, VAR_I, w->loop), N(c, w->back));
		for (int l = stask_of(c, x)->loop; w->which == AWAIT_AROUND && !w->once &&
		     l != w->loop; l = c->p->loops.v[l].parent) {
			const struct num *first = NUM2(EQ, V(c, VAR_I, l), N(c, 0));

			when = when ? NUM2(BOTH, when, first) : first;
		}
		if (c->kind != TURN_STEADY || !is_before_loop(c, x, w))
			flag_wait(c, w, when);
		body_stamp(c, x, w->stamp);
	}
	if (reads_copied(c, x))
		body_fence(c, "threads have copied what others have told of, engines may read it");
}

bool body_waits_once(const struct body *c, int flag)
{
	for (int i = 0; i < c->lane->entries.n; i++)
		for (int k = 0; k < c->lane->entries.v[i].waits.n; k++)
			if (c->lane->entries.v[i].waits.v[k].once &&
			    c->lane->entries.v[i].waits.v[k].flag == flag)
				return true;
	return false;
}

/* Do threads of the lane themselves look into shared memory? */
static bool looks_into_shared(const struct body *c)
{
	for (int i = 0; i < c->lane->entries.n; i++) {
		const struct stask *s = stask_of(c, &c->lane->entries.v[i]);

		bool by_threads = s->kind == TASK_COMPUTE ||
			(s->kind == TASK_MMA && !on_matrix(c->k, c->lane->entries.v[i].task)) ||
			(s->kind == TASK_STORE && c->lane->entries.v[i].outbox == NONE);

		for (int k = 0; k < s->reads.n && by_threads; k++)
			if (has_ring(c, s->reads.v[k]))
				return true;
	}
	return false;
}

const char *body_awaited_products(struct body *c, const struct kentry *x)
{
	const char *why = NULL;

	for (int i = 0; i < c->plan->waits.n; i++) {
		const struct wait *w = &c->plan->waits.v[i];

		if (w->task != x->task || !lower_awaits_own(c->k, w) || !under_way(c, w->on))
			continue;
		why = arena_strf(c->a, "%s%s'%s' is complete: %s", why ? why : "", why ? "; " : "",
			c->g->tasks.v[w->on].name, reason(c, w));
	}
	return why ? why : "others are told of products";
}

int body_latest_issued(const struct body *c, const struct kentry *x, const struct kentry *m)
{
	int it = c->turn + m->at - (m > x);	/* entries of a region lie in its order */

	return it < c->last ? it : c->last;
}

const struct kentry *body_entry_of(const struct body *c, int task)
{
	for (int i = 0; i < c->lane->entries.n; i++)
		if (c->lane->entries.v[i].task == task)
			return &c->lane->entries.v[i];
	BUG("sTask %d is on another lane", task);
}

/* After a wait for groups: tell the others what is now known to be complete. They may
 * conclude that what stands before it in the lane's order is done, too. x: where the lane
 * stands; NULL: between sTasks. */
void body_releases(struct body *c, const struct kentry *x, const int *behind)
{
	bool synced = false;

	for (int f = 0; f < c->k->flags.n; f++) {
		const struct flag *fl = &c->k->flags.v[f];

		if (!body_tells_later(c, f))
			continue;
		if (!synced && looks_into_shared(c))
			body_warp_sync(c, "all of its threads have read");
		synced = true;
		if (fl->runs && behind && behind[fl->task])
			continue;	/* the last run may be under way */
		body_release(c, f, x, behind && !fl->runs ? behind[fl->task] : 0);
	}
}

void body_arrive(struct body *c, int flag, const struct num *seq, const char *why)
{
	struct role_op *o;

	body_warp_sync(c, "one thread tells for all");
	o = body_op(c, DO_ARRIVE);
	o->u.flag.flag = flag;
	o->u.flag.n = seq;
	o->why = why;
}

/* pins ------------------------------------------------------------------------- */

static void pin(struct body *c, const struct frag *f, int version)
{
	body_pin(c, f, version, frag_block_words(f));
}

/* Is the result of product m one of several versions, of which nobody knows at a wait whose is
 * under way: as each life has products in many iterations of its loop, or as a turn is about
 * several tiles? */
static bool pinned_where_read(const struct body *c, const struct kentry *m, int buffer)
{
	const struct stask *s = stask_of(c, m);
	int loop = c->g->buffers.v[buffer].loop;
	bool writes = false;

	for (int i = 0; i < s->writes.n && under_way(c, m->task); i++)
		writes |= s->writes.v[i] == buffer && !has_ring(c, buffer);
	return writes && ((shifts_tiles(c->lane) && loop == NONE) ||
		(c->plan->versions[buffer] > 1 && loop != s->loop));
}

/* Pin those versions of a product's result of which nothing is under way. */
static enum err_code pin_finished(struct body *c, const struct kentry *x, const struct kentry *m,
	int buffer, int open, struct err *e)
{
	int versions = c->plan->versions[buffer], latest = 0;
	const struct frag *f;

	TRY(body_buffer(c, buffer, &f, e));
	if (f->kind != FRAG_FULL)
		return OK;
	if (pinned_where_read(c, m, buffer) && (open || c->g->buffers.v[buffer].loop == NONE))
		return OK;
	if (shifts_tiles(c->lane) && open && stask_of(c, m)->loop != stask_of(c, x)->loop)
		return OK;		/* behind its loop nobody reads it */
	if (stask_of(c, m)->loop == stask_of(c, x)->loop)
		latest = body_latest_issued(c, x, m);
	for (int k = open; k < versions; k++)
		pin(c, f, (int)floor_mod(latest - k, versions));
	return OK;
}

/* Where x reads what products left for longer than their own loop's iteration, it is pinned:
 * by then they are complete. */
enum err_code body_read_pins(struct body *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct frag *f;

	for (int i = 0; i < s->reads.n && !on_matrix(c->k, x->task); i++) {
		int buffer = s->reads.v[i];
		bool pinned = false;

		for (int k = 0; k < c->lane->entries.n; k++)
			pinned |= pinned_where_read(c, &c->lane->entries.v[k], buffer);
		if (!pinned)
			continue;
		TRY(body_buffer(c, buffer, &f, e));
		if (f->kind == FRAG_FULL)
			pin(c, f, body_version(c, x, buffer));
	}
	return OK;
}

/* The compiler must not read a product's registers before the wait that completes it:
 * those of every product that is complete are pinned here. behind NULL: all are. A carry
 * has one version, which stays open while any product on it is. */
static enum err_code pins(struct body *c, const struct kentry *x, const int *behind,
	struct err *e)
{
	for (int k = 0; k < c->lane->entries.n; k++) {
		const struct kentry *m = &c->lane->entries.v[k];
		const struct stask *s = stask_of(c, m);

		for (int w = 0; w < s->writes.n && under_way(c, m->task); w++)
			if (!has_ring(c, s->writes.v[w]))
				TRY(pin_finished(c, x, m, s->writes.v[w], behind ?
					behind[m->task] : 0, e));
	}
	return OK;
}

enum err_code body_pin_all(struct body *c, const struct kentry *x, struct err *e)
{
	return pins(c, x, NULL, e);
}

enum err_code body_group_wait(struct body *c, const struct kentry *x,
	const struct group_wait *w, int class, const char *why, struct err *e)
{
	int younger = w->younger[class] < 0 ? 0 : w->younger[class];
	const int *behind = w->younger[class] < 0 ? NULL : w->behind[class];

	body_groups_wait(c, younger > GROUPS_MOST ? GROUPS_MOST : younger, why);
	TRY(pins(c, x, behind, e));
	body_releases(c, x, behind);
	return OK;
}

/* runs ------------------------------------------------------------------------- */

static bool is_run_of(const struct body *c, const struct flag *f, int loop)
{
	return f->runs && f->loop == loop && in_lane(c, f->task);
}

/* A run is over: tell those who wait for it, or note to do so once its products are known
 * to be complete. */
static enum err_code tell(struct body *c, int f, struct err *e)
{
	const struct flag *fl = &c->k->flags.v[f];
	const struct num *seq = body_seq(c, c->p->loops.v[fl->loop].parent);

	if (fl->early)
		body_set(c, VAR_TOLD, f, ADD(seq, N(c, 1)));
	if (!under_way(c, fl->task) || fl->issued) {
		body_arrive(c, f, seq, "the run is over");
		return OK;
	}
	body_advance(c, VAR_ISSUED, f, N(c, 1));
	if (!fl->ends)
		return OK;
	body_groups_wait(c, 0, "others wait for the end of the run");
	TRY(pins(c, &c->lane->entries.v[0], NULL, e));
	body_releases(c, NULL, NULL);
	return OK;
}

static enum err_code tell_if(struct body *c, int f, const struct num *when, struct err *e)
{
	struct role_body *outer = body_enter(c, &body_if(c, when, NULL)->u.region.body);

	TRY(tell(c, f, e));
	body_leave(c, outer);
	return OK;
}

/* Behind sTask x, which may be the last instance of a run. */
enum err_code body_early_runs(struct body *c, const struct kentry *x, struct err *e)
{
	for (int f = 0; f < c->k->flags.n; f++) {
		const struct flag *fl = &c->k->flags.v[f];
		const struct num *last = N(c, 1);

		if (!fl->early || fl->task != x->task)
			continue;
		for (int l = stask_of(c, x)->loop; l != c->p->loops.v[fl->loop].parent;
		     l = c->p->loops.v[l].parent)
			last = NUM2(BOTH, last, NUM2(EQ, V(c, VAR_I, l), SUB(V(c, VAR_TRIPS, l), N(c, 1))));
		TRY(tell_if(c, f, last, e));
	}
	return OK;
}

/* Does one thread of the lane issue copies to shared memory? */
static bool loads(const struct body *c)
{
	for (int i = 0; i < c->lane->entries.n; i++)
		if (stask_of(c, &c->lane->entries.v[i])->kind == TASK_LOAD)
			return true;
	return false;
}

/* What entry x, inside the loop `nested`, waits for once in region `loop`. */
static bool missed_waits(struct body *c, const struct kentry *x, int loop, int nested)
{
	bool waits = false;

	for (int k = 0; k < x->waits.n; k++) {
		if (!x->waits.v[k].once || x->waits.v[k].loop != loop ||
		    !program_loop_within(c->p, stask_of(c, x)->loop, nested))
			continue;
		flag_wait(c, &x->waits.v[k], NULL);
		waits = true;
	}
	return waits;
}

/* After a loop that may have made no iteration: what its entries would have waited for, and
 * told. The next may be a load that waits for nothing. */
enum err_code body_missed(struct body *c, int loop, int nested, struct err *e)
{
	bool waits = false;

	for (int i = 0; i < c->lane->entries.n; i++) {
		const struct kentry *x = &c->lane->entries.v[i];

		waits |= missed_waits(c, x, loop, nested);
		for (int f = 0; f < c->k->flags.n; f++)
			if (c->k->flags.v[f].early && c->k->flags.v[f].task == x->task &&
			    c->k->flags.v[f].loop == nested)
				TRY(tell_if(c, f, NUM2(LE, V(c, VAR_TOLD, f), body_seq(c,
					c->p->loops.v[nested].parent)), e));
	}
	if (waits && loads(c))
		body_lane_sync(c, "all threads have looked at the flags");
	return OK;
}

/* A run of loop `nested` is over. */
enum err_code body_run(struct body *c, const struct kstep *nested, struct err *e)
{
	for (int f = 0; f < c->k->flags.n; f++)
		if (is_run_of(c, &c->k->flags.v[f], nested->id) && !c->k->flags.v[f].early)
			TRY(tell(c, f, e));
	if (nested->younger == NONE)
		return OK;
	body_groups_wait(c, nested->younger > GROUPS_MOST ? GROUPS_MOST : nested->younger, "others wait for the end of the run");
	if (looks_into_shared(c))
		body_warp_sync(c, "all of its threads have read");
	for (int f = 0; f < c->k->flags.n; f++)
		if (is_run_of(c, &c->k->flags.v[f], nested->id) && !c->k->flags.v[f].issued &&
		    under_way(c, c->k->flags.v[f].task))
			body_release(c, f, NULL, 0);
	return OK;
}
