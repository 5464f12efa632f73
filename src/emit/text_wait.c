/* What a lane waits for, and what it tells the others. */
#include "emit/gpu_text.h"

/* The instance that a wait is for; a negative one is none. */
static const char *awaited_text(struct text *c, const struct flag_wait *w)
{
	const char *seq = w->loop == NONE ? "t" : arena_strf(c->a, "seq_%d", w->loop);

	switch (w->which) {
	case AWAIT_BACK:
	case AWAIT_WITHIN:
		return arena_strf(c->a, "%s - %d", seq, w->back);
	case AWAIT_AROUND:
		return w->back ? arena_strf(c->a, "%s - %d", seq, w->back) : seq;
	case AWAIT_RUN:
		break;
	}
	return arena_strf(c->a, "base_%d - 1", w->loop);
}

static void put_flag_wait(struct text *c, const struct flag_wait *w, const char *guard)
{
	const struct flag *f = &c->k->flags.v[w->flag];

	put(c, "{ const int n = %s; if (%sn >= %s) { flag_wait(shared + %lld + 8 * (n %% %d), n / %d);%s } }",
		awaited_text(c, w), guard, w->once ? arena_strf(c->a, "seen_%d", w->flag) : "0",
		(long long)f->offset, f->depth, f->depth, w->once ? arena_strf(c->a,
		" seen_%d = n + 1;", w->flag) : "");
}

void put_flag_waits(struct text *c, const struct kentry *x)
{
	for (int i = 0; i < x->waits.n; i++) {
		const struct flag_wait *w = &x->waits.v[i];
		const char *guard = "";

		if (w->which == AWAIT_WITHIN)
			guard = arena_strf(c->a, "i_%d >= %d && ", w->loop, w->back);
		for (int l = stask_of(c, x)->loop; w->which == AWAIT_AROUND && !w->once &&
		     l != w->loop; l = c->p->loops.v[l].parent)
			guard = arena_strf(c->a, "%si_%d == 0 && ", guard, l);
		put_flag_wait(c, w, guard);
		put_stamp(c, x, w->stamp);
	}
}

bool waits_once(const struct text *c, int flag)
{
	for (int i = 0; i < c->lane->entries.n; i++)
		for (int k = 0; k < c->lane->entries.v[i].waits.n; k++)
			if (c->lane->entries.v[i].waits.v[k].once &&
			    c->lane->entries.v[i].waits.v[k].flag == flag)
				return true;
	return false;
}

/* Do threads of the lane themselves look into shared memory? */
static bool looks_into_shared(const struct text *c)
{
	for (int i = 0; i < c->lane->entries.n; i++) {
		const struct stask *s = stask_of(c, &c->lane->entries.v[i]);

		for (int k = 0; k < s->reads.n && s->kind == TASK_COMPUTE; k++)
			if (c->k->ring_of[s->reads.v[k]] != NONE)
				return true;
	}
	return false;
}

/* One arrival of the warp at a flag, in each block whose it is: a thread for each. */
static void put_flag_arrive(struct text *c, const struct flag *f, const char *indent, const char *n)
{
	if (f->all)
		put(c, "%sif (thread %% 32 < %d) flag_arrive_at(shared + %lld + 8 * (%s %% %d), thread %% 32);",
			indent, c->k->cluster, (long long)f->offset, n, f->depth);
	else
		put(c, "%sif (thread %% 32 == 0) flag_arrive(shared + %lld + 8 * (%s %% %d));", indent,
			(long long)f->offset, n, f->depth);
}

static void put_release(struct text *c, int f, int behind)
{
	put(c, "LOOP (; released_%d < issued_%d - %d; released_%d++)", f, f, behind, f);
	put_flag_arrive(c, &c->k->flags.v[f], "\t", arena_strf(c->a, "released_%d", f));
}

/* After a wait for groups: tell the others what is now known to be complete. They may
 * conclude that what stands before it in the lane's order is done, too. */
void put_releases(struct text *c, const int *behind)
{
	bool synced = false;

	for (int f = 0; f < c->k->flags.n; f++) {
		const struct flag *fl = &c->k->flags.v[f];

		if (fl->issued || !in_lane(c, fl->task) || !on_matrix(c, fl->task))
			continue;
		if (!synced && looks_into_shared(c))
			put(c, "WARP_SYNC();");
		synced = true;
		if (fl->runs && behind && behind[fl->task])
			continue;	/* the last run may be under way */
		put_release(c, f, behind && !fl->runs ? behind[fl->task] : 0);
	}
}

static void put_pin(struct text *c, const char *name, const struct view *v)
{
	put(c, "EACH(rb, %d) PIN_%c(%s[rb], %lld);", v->blocks, v->packed ? 'U' : 'F', name,
		(long long)(v->packed ? v->cols / 4 : v->cols / 2));
}

/* The latest iteration of product m that is issued when the lane stands at x (or just
 * behind it, if x is m), in the count of c->turn. */
static int latest_issued(const struct text *c, const struct kentry *x, const struct kentry *m)
{
	int it = c->turn + m->at - (m > x);	/* entries of a region lie in its order */

	return it < c->last ? it : c->last;
}

/* Is the result of product m one of several versions, of which nobody knows at a wait whose is
 * under way: as each life has products in many iterations of its loop, or as a turn is about
 * several tiles? */
static bool pinned_where_read(const struct text *c, const struct kentry *m, int buffer)
{
	const struct stask *s = stask_of(c, m);
	int loop = c->g->buffers.v[buffer].loop;
	bool writes = false;

	for (int i = 0; i < s->writes.n && on_matrix(c, m->task); i++)
		writes |= s->writes.v[i] == buffer && c->k->ring_of[buffer] == NONE;
	return writes && ((shifts_tiles(c->lane) && loop == NONE) ||
		(c->plan->versions[buffer] > 1 && loop != s->loop));
}

/* Pin those versions of a product's result of which nothing is under way. */
static void pin_finished(struct text *c, const struct kentry *x, const struct kentry *m, int buffer,
	int open)
{
	int versions = c->plan->versions[buffer], latest = 0;
	struct view view;
	struct err e;

	if (buffer_view(c, buffer, &view, &e) || view.kind != FRAG_FULL)
		return;
	if (pinned_where_read(c, m, buffer) && (open || c->g->buffers.v[buffer].loop == NONE))
		return;
	if (shifts_tiles(c->lane) && open && stask_of(c, m)->loop != stask_of(c, x)->loop)
		return;			/* behind its loop nobody reads it */
	if (stask_of(c, m)->loop == stask_of(c, x)->loop)
		latest = latest_issued(c, x, m);
	for (int k = open; k < versions; k++)
		put_pin(c, version_name(c, buffer, (int)floor_mod(latest - k, versions)), &view);
}

/* Where x reads what products left for longer than their own loop's iteration, it is pinned:
 * by then they are complete. */
void put_read_pins(struct text *c, const struct kentry *x)
{
	const struct stask *s = stask_of(c, x);
	struct view view;
	struct err e;

	for (int i = 0; i < s->reads.n && s->kind != TASK_MMA; i++) {
		int buffer = s->reads.v[i];
		bool pinned = false;

		for (int k = 0; k < c->lane->entries.n; k++)
			pinned |= pinned_where_read(c, &c->lane->entries.v[k], buffer);
		if (pinned && !buffer_view(c, buffer, &view, &e) && view.kind == FRAG_FULL)
			put_pin(c, buffer_name(c, x, buffer), &view);
	}
}

/* The compiler must not read a product's registers before the wait that completes it:
 * those of every product that is complete are pinned here. behind NULL: all are. A carry
 * has one version, which stays open while any product on it is. */
static void put_pins(struct text *c, const struct kentry *x, const int *behind)
{
	for (int k = 0; k < c->lane->entries.n; k++) {
		const struct kentry *m = &c->lane->entries.v[k];
		const struct stask *s = stask_of(c, m);

		for (int w = 0; w < s->writes.n && on_matrix(c, m->task); w++)
			if (c->k->ring_of[s->writes.v[w]] == NONE)
				pin_finished(c, x, m, s->writes.v[w], behind ? behind[m->task] : 0);
	}
}

void put_group_wait(struct text *c, const struct kentry *x, const struct group_wait *w,
	int class)
{
	int younger = w->younger[class] < 0 ? 0 : w->younger[class];
	const int *behind = w->younger[class] < 0 ? NULL : w->behind[class];

	put(c, "GROUPS_WAIT(%d);", younger > 7 ? 7 : younger);
	put_pins(c, x, behind);
	put_releases(c, behind);
}

void put_arrive(struct text *c, int flag, const char *seq)
{
	put(c, "WARP_SYNC();");
	put_flag_arrive(c, &c->k->flags.v[flag], "", seq);
}

static bool is_run_of(const struct text *c, const struct flag *f, int loop)
{
	return f->runs && f->loop == loop && in_lane(c, f->task);
}

/* A run is over: tell those who wait for it, or note to do so once its products are known
 * to be complete. */
static void put_told(struct text *c, int f)
{
	const struct flag *fl = &c->k->flags.v[f];
	int loop = c->p->loops.v[fl->loop].parent;
	const char *seq = loop == NONE ? "t" : arena_strf(c->a, "seq_%d", loop);

	if (fl->early)
		put(c, "told_%d = %s + 1;", f, seq);
	if (!on_matrix(c, fl->task) || fl->issued) {
		put_arrive(c, f, seq);
		return;
	}
	put(c, "issued_%d++;", f);
	if (!fl->ends)
		return;
	put(c, "GROUPS_WAIT(0);");
	put_pins(c, &c->lane->entries.v[0], NULL);
	put_releases(c, NULL);
}

static void put_told_if(struct text *c, int f, const char *when)
{
	put(c, "if (%s) {", when);
	c->indent++;
	put_told(c, f);
	c->indent--;
	put(c, "}");
}

/* Behind sTask x, which may be the last instance of a run. */
void put_early_runs(struct text *c, const struct kentry *x)
{
	for (int f = 0; f < c->k->flags.n; f++) {
		const struct flag *fl = &c->k->flags.v[f];
		const char *last = "";

		if (!fl->early || fl->task != x->task)
			continue;
		for (int l = stask_of(c, x)->loop; l != c->p->loops.v[fl->loop].parent;
		     l = c->p->loops.v[l].parent)
			last = arena_strf(c->a, "%s%si_%d == trips_%d - 1", last, *last ? " && " : "",
				l, l);
		put_told_if(c, f, last);
	}
}

static void put_untold(struct text *c, int f)
{
	int loop = c->p->loops.v[c->k->flags.v[f].loop].parent;

	put_told_if(c, f, arena_strf(c->a, "told_%d <= %s", f, loop == NONE ? "t" :
		arena_strf(c->a, "seq_%d", loop)));
}

/* After a loop that may have made no iteration: what its entries would have waited for, and
 * told. */
void put_missed_waits(struct text *c, int loop, int nested)
{
	for (int i = 0; i < c->lane->entries.n; i++) {
		const struct kentry *x = &c->lane->entries.v[i];

		for (int k = 0; k < x->waits.n; k++)
			if (x->waits.v[k].once && x->waits.v[k].loop == loop &&
			    program_loop_within(c->p, stask_of(c, x)->loop, nested))
				put_flag_wait(c, &x->waits.v[k], "");
		for (int f = 0; f < c->k->flags.n; f++)
			if (c->k->flags.v[f].early && c->k->flags.v[f].task == x->task &&
			    c->k->flags.v[f].loop == nested)
				put_untold(c, f);
	}
}

/* A run of loop `nested` is over. */
void put_run(struct text *c, const struct kstep *nested)
{
	for (int f = 0; f < c->k->flags.n; f++)
		if (is_run_of(c, &c->k->flags.v[f], nested->id) && !c->k->flags.v[f].early)
			put_told(c, f);
	if (nested->younger == NONE)
		return;
	put(c, "GROUPS_WAIT(%d);", nested->younger > 7 ? 7 : nested->younger);
	if (looks_into_shared(c))
		put(c, "WARP_SYNC();");
	for (int f = 0; f < c->k->flags.n; f++)
		if (is_run_of(c, &c->k->flags.v[f], nested->id) && !c->k->flags.v[f].issued &&
		    on_matrix(c, c->k->flags.v[f].task))
			put_release(c, f, 0);
}
