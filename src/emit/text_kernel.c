/* The structure of a kernel for sm_90a: one role a lane, each with its tile loop and in
 * it the plan's regions, turn by turn. */
#include "emit/gpu_text.h"

#include <string.h>

#include "plan/check.h"

enum { GROUP_WARPS = 4, REGISTER_GROUPS = 512, PRODUCER_REGISTERS = 40, CONSUMER_MOST = 240 };

static const struct stask *stask_of(const struct text *c, const struct kentry *x)
{
	return &c->g->tasks.v[x->task];
}

static bool on_matrix(const struct text *c, int task)
{
	const struct seu *u = &c->plan->device->seu[
		c->plan->entries.v[plan_entry_of(c->plan, task)].seu];

	return u->kind == SEU_MATRIX && u->async;
}

static bool in_lane(const struct text *c, int task)
{
	return c->plan->entries.v[plan_entry_of(c->plan, task)].lane == c->lane->lane;
}

/* waiting ------------------------------------------------------------------ */

/* The instance that a wait is for; a negative one is none. */
static const char *awaited_text(struct text *c, const struct flag_wait *w)
{
	const char *seq = w->loop == NONE ? "t" : arena_strf(c->a, "seq_%d", w->loop);

	switch (w->which) {
	case AWAIT_BACK:
	case AWAIT_WITHIN:
		return arena_strf(c->a, "%s - %d", seq, w->back);
	case AWAIT_AROUND:
		return seq;
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

static void put_flag_waits(struct text *c, const struct kentry *x)
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

/* After a loop that may have made no iteration: what its entries would have waited for. */
static void put_missed_waits(struct text *c, int loop, int nested)
{
	for (int i = 0; i < c->lane->entries.n; i++) {
		const struct kentry *x = &c->lane->entries.v[i];

		for (int k = 0; k < x->waits.n; k++)
			if (x->waits.v[k].once && x->waits.v[k].loop == loop &&
			    program_loop_within(c->p, stask_of(c, x)->loop, nested))
				put_flag_wait(c, &x->waits.v[k], "");
	}
}

static bool waits_once(const struct text *c, int flag)
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

/* After a wait for groups: tell the others what is now known to be complete. They may
 * conclude that what stands before it in the lane's order is done, too. */
static void put_releases(struct text *c, const int *behind)
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
		put(c, "LOOP (; released_%d < issued_%d - %d; released_%d++)", f, f,
			behind && !fl->runs ? behind[fl->task] : 0, f);
		put(c, "\tif (thread %% 32 == 0) flag_arrive(shared + %lld + 8 * (released_%d %% %d));",
			(long long)fl->offset, f, fl->depth);
	}
}

static void put_pin(struct text *c, int buffer, int version, const struct view *v)
{
	put(c, "EACH(rb, %d) PIN_%c(%s[rb], %lld);", v->blocks, v->packed ? 'U' : 'F',
		version_name(c, buffer, version), (long long)(v->packed ? v->cols / 4 : v->cols / 2));
}

/* The latest iteration of product m that is issued when the lane stands at x (or just
 * behind it, if x is m), in the count of c->turn. */
static int latest_issued(const struct text *c, const struct kentry *x, const struct kentry *m)
{
	int it = c->turn + m->at - (m > x);	/* entries of a region lie in its order */

	return it < c->last ? it : c->last;
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
	if (stask_of(c, m)->loop == stask_of(c, x)->loop)
		latest = latest_issued(c, x, m);
	for (int k = open; k < versions; k++)
		put_pin(c, buffer, (int)floor_mod(latest - k, versions), &view);
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

static void put_group_wait(struct text *c, const struct kentry *x, const struct group_wait *w,
	int class)
{
	int younger = w->younger[class] < 0 ? 0 : w->younger[class];
	const int *behind = w->younger[class] < 0 ? NULL : w->behind[class];

	put(c, "GROUPS_WAIT(%d);", younger > 7 ? 7 : younger);
	put_pins(c, x, behind);
	put_releases(c, behind);
}

/* entries ------------------------------------------------------------------ */

static void put_slots(struct text *c, const struct kentry *x)
{
	const struct stask *s = stask_of(c, x);

	for (int i = 0; i < c->k->rings.n; i++) {
		const struct ring *r = &c->k->rings.v[i];
		const struct buffer *b = &c->g->buffers.v[r->buffer];
		bool used = false;

		for (int k = 0; k < s->reads.n; k++)
			used |= s->reads.v[k] == r->buffer;
		for (int k = 0; k < s->writes.n; k++)
			used |= s->writes.v[k] == r->buffer;
		if (!used)
			continue;
		put(c, "const u32 %s = shared + %lld + %s %% %d * %lld;", c_name(c, "slot_", b->name),
			(long long)r->offset, b->loop == NONE ? "t" : arena_strf(c->a, "seq_%d",
			b->loop), r->versions, (long long)r->slot_bytes);
	}
}

static void put_loop_axes(struct text *c, int loop)
{
	const struct loop *l = &c->p->loops.v[loop];
	int64_t below = 1;

	for (int i = l->naxes - 1; i >= 0; i--) {
		int64_t tiles = extent_tiles(&c->g->extents, l->axis[i]);

		put(c, "const int lo_%s = (first_%d + i_%d) / %lld %% %lld * %lld;",
			c->p->axes.v[l->axis[i]].name, loop, loop, (long long)below, (long long)tiles,
			(long long)c->g->extents.tile[l->axis[i]]);
		below *= tiles;
	}
}

static bool shares_on_lane(const struct text *c, const struct stask *s)
{
	for (int i = 0; i < s->writes.n; i++)
		if (c->k->ring_of[s->writes.v[i]] != NONE)
			return true;
	return false;
}

static enum err_code put_body(struct text *c, const struct kentry *x, struct err *e)
{
	const struct stask *s = stask_of(c, x);

	switch (s->kind) {
	case TASK_LOAD:
		return emit_load(c, x, e);
	case TASK_MMA:
		return emit_mma(c, x, e);
	case TASK_COMPUTE:
		return emit_compute(c, x, e);
	case TASK_STORE:
		break;
	}
	return emit_store(c, x, e);
}

/* Does a product with nothing to add to begin each life of the carry? */
static bool begins_by_product(const struct text *c, const struct buffer *b)
{
	const struct stask *first = &c->g->tasks.v[b->first];

	for (int l = first->loop; l != b->loop; l = c->p->loops.v[l].parent)
		if (c->g->trips[l].least == 0)
			return false;
	return first->kind == TASK_MMA && c->p->carries.v[b->carry].init == 0;
}

static enum err_code put_initial(struct text *c, int buffer, int iteration, struct err *e)
{
	const struct buffer *b = &c->g->buffers.v[buffer];
	struct view v;

	if (b->carry == NONE || b->phase != c->k->phase || c->k->ring_of[buffer] != NONE ||
	    !in_lane(c, b->first) || begins_by_product(c, b))
		return OK;
	TRY(buffer_view(c, buffer, &v, e));
	put(c, "EACH(rb, %d) EACH(i, %lld) %s%s = %s;", v.kind == FRAG_FULL ||
		v.kind == FRAG_ROW ? v.blocks : 1, (long long)(v.kind == FRAG_FULL ?
		v.cols / 2 : v.kind == FRAG_ROW ? 2 : v.kind == FRAG_COL ? v.cols / 4 : 1),
		version_name(c, buffer, (int)floor_mod(iteration, c->plan->versions[buffer])),
		v.kind == FRAG_FULL || v.kind == FRAG_ROW ? "[rb][i]" : "[i]",
		float_text(c, c->p->carries.v[b->carry].init));
	return OK;
}

/* Carries begin each life with their initial value. Those of the tile do so at once, those
 * of a loop before the first to touch them, or before the loop inside where it stands. */
static enum err_code put_initial_tile(struct text *c, struct err *e)
{
	for (int i = 0; i < c->g->buffers.n; i++)
		if (c->g->buffers.v[i].loop == NONE)
			TRY(put_initial(c, i, 0, e));
	return OK;
}

static enum err_code put_initial_entry(struct text *c, const struct kentry *x, struct err *e)
{
	for (int i = 0; i < c->g->buffers.n; i++)
		if (c->g->buffers.v[i].first == x->task && c->g->buffers.v[i].loop != NONE &&
		    c->g->buffers.v[i].loop == stask_of(c, x)->loop)
			TRY(put_initial(c, i, c->turn + x->at, e));
	return OK;
}

static enum err_code put_initial_nested(struct text *c, int loop, int nested, struct err *e)
{
	for (int i = 0; i < c->g->buffers.n; i++) {
		const struct buffer *b = &c->g->buffers.v[i];

		if (b->loop == loop && program_loop_within(c->p, c->g->tasks.v[b->first].loop, nested))
			TRY(put_initial(c, i, c->around[loop], e));
	}
	return OK;
}

static void put_arrive(struct text *c, int flag, const char *seq)
{
	const struct flag *f = &c->k->flags.v[flag];

	put(c, "WARP_SYNC();");
	put(c, "if (thread %% 32 == 0) flag_arrive(shared + %lld + 8 * (%s %% %d));",
		(long long)f->offset, seq, f->depth);
}

/* One sTask. `iteration`: C text of its iteration. */
static enum err_code put_entry(struct text *c, const struct kentry *x, int class,
	const char *iteration, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const char *seq = s->loop == NONE ? "t" : arena_strf(c->a, "seq_%d", s->loop);

	put(c, "{\t/* %s, %s */", s->name, s->loop == NONE ? "once a tile" :
		arena_strf(c->a, "iteration %s", iteration));
	c->indent++;
	if (s->loop != NONE) {
		put(c, "const int i_%d = %s, seq_%d = base_%d + i_%d;", s->loop, iteration, s->loop,
			s->loop, s->loop);
		put_loop_axes(c, s->loop);
	}
	put(c, "AT(\"%s\", %s);", s->name, s->loop == NONE ? "t" : arena_strf(c->a, "i_%d", s->loop));
	if (s->kind == TASK_LOAD)
		put(c, "const int seq = %s;", seq);
	put_slots(c, x);
	put_flag_waits(c, x);
	if (x->waits_groups) {
		put_group_wait(c, x, &x->before, class);
		put_stamp(c, x, x->stamps.groups);
	}
	if (s->kind == TASK_COMPUTE && shares_on_lane(c, s))
		put(c, "lane_sync(%d, %d);", c->lane->barrier, c->lane->warps * 32);
	TRY(put_initial_entry(c, x, e));
	if (x->issue_flag != NONE && s->kind == TASK_COMPUTE)	/* which ends where it is issued */
		put_arrive(c, x->issue_flag, seq);
	TRY(put_body(c, x, e));
	if (s->kind == TASK_COMPUTE && shares_on_lane(c, s))
		put(c, "lane_sync(%d, %d);", c->lane->barrier, c->lane->warps * 32);
	if (x->issue_flag != NONE && s->kind != TASK_COMPUTE)
		put_arrive(c, x->issue_flag, seq);
	if (x->flag != NONE && s->kind == TASK_MMA && on_matrix(c, x->task))
		put(c, "issued_%d++;", x->flag);
	else if (x->flag != NONE && s->kind != TASK_LOAD)
		put_arrive(c, x->flag, seq);
	put_stamp(c, x, x->stamps.body);
	if (x->drains) {
		put_group_wait(c, x, &x->after, class);
		put_stamp(c, x, x->stamps.drain);
	}
	c->indent--;
	put(c, "}");
	return OK;
}

/* A run of loop `nested` is over: tell those who wait for it, or note to do so once its
 * products are known to be complete. */
static void put_run(struct text *c, int loop, int nested)
{
	for (int f = 0; f < c->k->flags.n; f++) {
		const struct flag *fl = &c->k->flags.v[f];

		if (!fl->runs || c->g->tasks.v[fl->task].loop != nested || !in_lane(c, fl->task))
			continue;
		if (on_matrix(c, fl->task))
			put(c, "issued_%d++;", f);
		else
			put_arrive(c, f, loop == NONE ? "t" : arena_strf(c->a, "seq_%d", loop));
	}
}

/* loops -------------------------------------------------------------------- */

static enum err_code put_region(struct text *c, int loop, struct err *e);

/* Least or greatest value of an index over the tile at hand. */
static const char *bound_text(struct text *c, const struct stask *s, const struct index_expr *x,
	bool greatest)
{
	struct buf b;

	buf_init(&b, c->a);
	buf_printf(&b, "%lld", (long long)x->k);
	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];
		const struct axis *a = &c->p->axes.v[t->axis];
		const char *lo = axis_lo(c, s, NULL, t->axis);

		if ((t->coef > 0) == greatest)
			lo = arena_strf(c->a, "(min_of(%s + %lld, %lld) - 1)", lo,
				(long long)c->g->extents.tile[t->axis], (long long)a->size);
		buf_printf(&b, " + %lld * (%s / %lld)", (long long)t->coef, lo, (long long)t->div);
	}
	return b.text;
}

static void put_trips(struct text *c, int loop, const struct stask *any)
{
	const struct loop *l = &c->p->loops.v[loop];
	int64_t tiles = 1, tile = c->g->extents.tile[l->axis[0]];
	const char *first = "0", *end;

	for (int i = 0; i < l->naxes; i++)
		tiles *= extent_tiles(&c->g->extents, l->axis[i]);
	end = arena_strf(c->a, "%lld", (long long)tiles);
	if (l->has_from)
		first = arena_strf(c->a, "max_of(0, (%s) / %lld)", bound_text(c, any, &l->from, false),
			(long long)tile);
	if (l->has_upto) {
		const char *most = bound_text(c, any, &l->upto, true);

		end = arena_strf(c->a, "min_of(%lld, (%s) < 0 ? 0 : (%s) / %lld + 1)", (long long)tiles,
			most, most, (long long)tile);
	}
	put(c, "const int first_%d = %s, trips_%d = max_of(0, %s - first_%d);", loop, first, loop, end,
		loop);
}

/* A nested loop's iterations, in one iteration of the region around it. */
static enum err_code put_nested(struct text *c, int loop, const struct kstep *s,
	const char *iteration, struct err *e)
{
	int turn = c->turn, last = c->last;

	put(c, "{");
	c->indent++;
	put(c, "const int i_%d = %s, seq_%d = base_%d + i_%d;", loop, iteration, loop, loop, loop);
	put_loop_axes(c, loop);
	c->around[loop] = turn + s->at;
	TRY(put_initial_nested(c, loop, s->id, e));
	TRY(put_region(c, s->id, e));
	put_missed_waits(c, loop, s->id);
	put_run(c, loop, s->id);
	c->turn = turn;
	c->last = last;
	c->indent--;
	put(c, "}");
	return OK;
}

static enum err_code put_step(struct text *c, int loop, const struct kstep *s, int class,
	const char *iteration, struct err *e)
{
	if (s->is_loop)
		return put_nested(c, loop, s, iteration, e);
	return put_entry(c, &c->lane->entries.v[s->id], class, iteration, e);
}

/* A turn of the steady state. */
static enum err_code put_steady_turn(struct text *c, int loop, int turn, const char *j,
	struct err *e)
{
	const struct kregion *v = &c->lane->regions[loop + 1];

	c->turn = turn;
	c->last = INT32_MAX;
	for (int i = 0; i < v->steps.n; i++)
		TRY(put_step(c, loop, &v->steps.v[i], 0, v->steps.v[i].at ?
			arena_strf(c->a, "%s + %d", j, v->steps.v[i].at) : j, e));
	return OK;
}

/* A turn whose number is known; there are at least so many trips, or just so many. */
static enum err_code put_known_turn(struct text *c, int loop, int j, int class, int trips,
	struct err *e)
{
	const struct kregion *v = &c->lane->regions[loop + 1];

	c->turn = j;
	c->last = trips - 1;
	for (int i = 0; i < v->steps.n; i++) {
		int it = j + v->steps.v[i].at;

		if (it >= 0 && it < trips)
			TRY(put_step(c, loop, &v->steps.v[i], class, arena_strf(c->a, "%d", it), e));
	}
	return OK;
}

/* The turns after the steady state, where r is the number of those modulo the unrolling. */
static enum err_code put_epilogue(struct text *c, int loop, int r, struct err *e)
{
	const struct kregion *v = &c->lane->regions[loop + 1];

	for (int n = 1; n <= v->most; n++) {
		c->turn = r - 1 + n;
		c->last = c->turn + v->most - n;
		for (int i = 0; i < v->steps.n; i++) {
			int back = v->most + 1 - n - v->steps.v[i].at;	/* iteration trips - back */

			if (back > 0)
				TRY(put_step(c, loop, &v->steps.v[i], v->most + n,
					arena_strf(c->a, "trips_%d - %d", loop, back), e));
		}
	}
	return OK;
}

/* The steady state and what comes after. Unrolled, it can end before each of its turns:
 * so a turn has one text for each version of a register that it uses, and no second one
 * for the turns that are left over. Compiling takes as long as there is text. */
static enum err_code put_steady(struct text *c, int loop, struct err *e)
{
	int u = c->lane->regions[loop + 1].unroll;

	put(c, "LOOP (;; j_%d += %d) {", loop, u);
	c->indent++;
	for (int k = 0; k < u; k++) {
		const char *j = k ? arena_strf(c->a, "j_%d + %d", loop, k) : arena_strf(c->a, "j_%d", loop);

		put(c, "if (%s == steady_%d) {", j, loop);
		c->indent++;
		TRY(put_epilogue(c, loop, k, e));
		put(c, "break;");
		c->indent--;
		put(c, "}");
		TRY(put_steady_turn(c, loop, k, j, e));
	}
	c->indent--;
	put(c, "}");
	return OK;
}

/* All turns where there are at least as many trips as the greatest offset. */
static enum err_code put_turns(struct text *c, int loop, struct err *e)
{
	const struct kregion *v = &c->lane->regions[loop + 1];

	for (int j = -v->most; j < 0; j++)
		TRY(put_known_turn(c, loop, j, -j, v->most, e));
	put(c, "const int steady_%d = trips_%d - %d;", loop, loop, v->most);
	put(c, "int j_%d = 0;", loop);
	if (v->unroll > 1)
		return put_steady(c, loop, e);
	put(c, "LOOP (; j_%d < steady_%d; j_%d++) {", loop, loop, loop);
	c->indent++;
	TRY(put_steady_turn(c, loop, 0, arena_strf(c->a, "j_%d", loop), e));
	c->indent--;
	put(c, "}");
	return put_epilogue(c, loop, 0, e);
}

/* All turns of fewer trips than the greatest offset. */
static enum err_code put_few_turns(struct text *c, int loop, int trips, struct err *e)
{
	const struct kregion *v = &c->lane->regions[loop + 1];

	for (int j = -v->most; j < trips; j++)
		TRY(put_known_turn(c, loop, j, j < 0 ? -j : v->most + j - (trips - 1 - v->most), trips,
			e));
	return OK;
}

static enum err_code put_loop(struct text *c, int loop, struct err *e)
{
	int most = c->lane->regions[loop + 1].most;
	int64_t least = c->g->trips[loop].least;

	if (least >= most)
		return put_turns(c, loop, e);
	put(c, "if (trips_%d >= %d) {", loop, most);
	c->indent++;
	TRY(put_turns(c, loop, e));
	c->indent--;
	put(c, "}");
	for (int trips = least > 1 ? (int)least : 1; trips < most; trips++) {
		put(c, "else if (trips_%d == %d) {", loop, trips);
		c->indent++;
		TRY(put_few_turns(c, loop, trips, e));
		c->indent--;
		put(c, "}");
	}
	return OK;
}

static const struct stask *task_in(const struct text *c, int loop)
{
	for (int i = 0; i < c->g->tasks.n; i++)
		if (program_loop_within(c->p, c->g->tasks.v[i].loop, loop))
			return &c->g->tasks.v[i];
	BUG("loop %d is empty", loop);
}

static enum err_code put_region(struct text *c, int loop, struct err *e)
{
	put(c, "{");
	c->indent++;
	put_trips(c, loop, task_in(c, loop));
	TRY(put_loop(c, loop, e));
	put(c, "base_%d += trips_%d;", loop, loop);
	c->indent--;
	put(c, "}");
	return OK;
}

/* lanes -------------------------------------------------------------------- */

static void put_tile_axes(struct text *c)
{
	const struct grid *g = &c->g->grids[c->k->phase];
	int64_t below = 1;

	for (int i = g->n - 1; i >= 0; i--) {
		put(c, "const int lo_%s = tile / %lld %% %lld * %lld;", c->p->axes.v[g->axis[i]].name,
			(long long)below, (long long)g->tiles[i],
			(long long)c->g->extents.tile[g->axis[i]]);
		below *= g->tiles[i];
	}
}

static enum err_code put_registers(struct text *c, struct err *e)
{
	for (int i = 0; i < c->g->buffers.n; i++) {
		const struct buffer *b = &c->g->buffers.v[i];
		struct view v;

		if (b->phase != c->k->phase || c->k->ring_of[i] != NONE || !in_lane(c, b->first))
			continue;
		TRY(buffer_view(c, i, &v, e));
		put(c, "%s %s[%d]%s;", v.packed ? "u32" : dtype_is_float(b->type) ? "float" : "int",
			c_name(c, "r_", b->name), c->plan->versions[i],
			v.kind == FRAG_FULL ? arena_strf(c->a, "[%d][%lld]", v.blocks,
			(long long)(v.packed ? v.cols / 4 : v.cols / 2)) : v.kind == FRAG_ROW ?
			arena_strf(c->a, "[%d][2]", v.blocks) : v.kind == FRAG_COL ?
			arena_strf(c->a, "[%lld]", (long long)(v.cols / 4)) : "[1]");
	}
	return OK;
}

/* Tiles of a lane's other copies: only their iterations are counted. */
static void put_passed(struct text *c, int loop)
{
	put(c, "{");
	c->indent++;
	put_trips(c, loop, task_in(c, loop));
	for (int l = 0; l < c->p->loops.n; l++) {
		if (c->p->loops.v[l].parent != loop)
			continue;
		put(c, "LOOP (int i_%d = 0; i_%d < trips_%d; i_%d++) {", loop, loop, loop, loop);
		c->indent++;
		put_loop_axes(c, loop);
		put_passed(c, l);
		c->indent--;
		put(c, "}");
	}
	put(c, "base_%d += trips_%d;", loop, loop);
	c->indent--;
	put(c, "}");
}

static void put_turn(struct text *c)
{
	const struct kregion *v = &c->lane->regions[0];
	const struct flag *turn;

	if (c->lane->copies == 1)
		return;
	put(c, "if ((t - %d) %% %d) {\t/* another's turn */", c->lane->copy, c->lane->copies);
	c->indent++;
	for (int i = 0; i < v->steps.n; i++)
		if (v->steps.v[i].is_loop)
			put_passed(c, v->steps.v[i].id);
	put(c, "continue;");
	c->indent--;
	put(c, "}");
	for (int f = 0; f < c->k->flags.n; f++) {
		int task = c->k->flags.v[f].task, loop = c->g->tasks.v[task].loop;

		if (c->k->flags.v[f].runs)
			loop = c->p->loops.v[loop].parent;
		if (!c->k->flags.v[f].issued && in_lane(c, task) && on_matrix(c, task))
			put(c, "issued_%d = released_%d = %s;", f, f, loop == NONE ? "t" :
				arena_strf(c->a, "base_%d", loop));
	}
	turn = &c->k->flags.v[c->lane->turn];
	put(c, "if (t > 0) flag_wait(shared + %lld + 8 * ((t - 1) %% %d), (t - 1) / %d);",
		(long long)turn->offset, turn->depth, turn->depth);
}

static enum err_code put_tile(struct text *c, struct err *e)
{
	const struct kregion *v = &c->lane->regions[0];

	put_tile_axes(c);
	put_turn(c);
	put_tile_stamps(c);
	TRY(put_initial_tile(c, e));
	c->turn = 0;
	for (int i = 0; i < v->steps.n; i++) {
		if (v->steps.v[i].is_loop) {
			TRY(put_region(c, v->steps.v[i].id, e));
			put_missed_waits(c, NONE, v->steps.v[i].id);
			put_run(c, NONE, v->steps.v[i].id);
		} else {
			TRY(put_entry(c, &c->lane->entries.v[v->steps.v[i].id], 0, "t", e));
		}
		c->turn = 0;
	}
	return OK;
}

static bool multiplies(const struct text *c)
{
	for (int i = 0; i < c->lane->entries.n; i++)
		if (on_matrix(c, c->lane->entries.v[i].task))
			return true;
	return false;
}

/* A block may not end while something is copied to its memory, and nobody need have
 * waited for what a loop without iterations would have read. */
static void put_last_copies(struct text *c)
{
	for (int i = 0; i < c->k->flags.n; i++) {
		const struct flag *f = &c->k->flags.v[i];
		int loop = c->g->tasks.v[f->task].loop;

		if (!f->bytes || !in_lane(c, f->task))
			continue;
		put(c, "{ const int end = %s; LOOP (int n = max_of(0, end - %d); n < end; n++) "
			"flag_wait(shared + %lld + 8 * (n %% %d), n / %d); }", loop == NONE ?
			"start[BLOCK + 1] - start[BLOCK]" : arena_strf(c->a, "base_%d", loop),
			f->depth, (long long)f->offset, f->depth, f->depth);
	}
}

static enum err_code put_lane(struct text *c, int registers, struct err *e)
{
	const struct klane *l = c->lane;
	int groups = (int)ceil_div(l->warps, GROUP_WARPS) * GROUP_WARPS;

	c->indent++;
	if (registers)
		put(c, "SET_REGISTERS(%s, %d);",
			registers > 65536 / c->k->threads / 8 * 8 ? "inc" : "dec", registers);
	if (groups != l->warps)
		put(c, "if (warp >= %d) return;", l->first_warp + l->warps);
	put(c, "const int thread = THREAD - %d;", l->first_warp * 32);
	put(c, "const int leader = warp == %d && elect();", l->first_warp);
	put(c, "const int row0 = thread / 32 * 16 + thread %% 32 / 4, col0 = 2 * (thread %% 4);");
	put(c, "const int group = UNIFORM(thread / 128);");
	put_lane_stamps(c);
	for (int f = 0; f < c->k->flags.n; f++)
		if (!c->k->flags.v[f].issued && in_lane(c, c->k->flags.v[f].task) &&
		    on_matrix(c, c->k->flags.v[f].task))
			put(c, "int issued_%d = 0, released_%d = 0;", f, f);
	for (int f = 0; f < c->k->flags.n; f++)
		if (waits_once(c, f))
			put(c, "int seen_%d = 0;", f);
	for (int i = 0; i < c->p->loops.n; i++)
		if (c->p->loops.v[i].phase == c->k->phase)
			put(c, "int base_%d = 0;", i);
	TRY(put_registers(c, e));
	put(c, "LOOP (int at = start[BLOCK], t = 0; at < start[BLOCK + 1]; at++, t++) {");
	c->indent++;
	put(c, "const int tile = order[at];");
	TRY(put_tile(c, e));
	if (multiplies(c)) {
		put(c, "GROUPS_WAIT(0);");
		put_releases(c, NULL);
	}
	put_tile_end_stamp(c);
	c->indent--;
	put(c, "}");
	put_last_copies(c);
	put_end_stamp(c);
	c->indent--;
	return OK;
}

/* kernel ------------------------------------------------------------------- */

/* setmaxnreg for each lane: what the plan says, or the producers little and the others
 * an equal share of the rest; 0 where there is only one warpgroup. */
static int lane_registers(const struct text *c, const struct klane *l)
{
	int producers = 0, consumers = 0, share;

	for (int i = 0; i < c->k->lanes.n; i++) {
		int groups = (int)ceil_div(c->k->lanes.v[i].warps, GROUP_WARPS);

		if (c->k->lanes.v[i].warps < GROUP_WARPS)
			producers += groups;
		else
			consumers += groups;
	}
	if (producers + consumers < 2)
		return 0;
	if (l->registers)
		return l->registers;
	if (l->warps < GROUP_WARPS)
		return consumers ? (consumers * CONSUMER_MOST + producers * PRODUCER_REGISTERS >
			REGISTER_GROUPS ? 24 : PRODUCER_REGISTERS) : 0;
	share = (REGISTER_GROUPS - 24 * producers) / (consumers ? consumers : 1) / 8 * 8;
	return share > CONSUMER_MOST ? CONSUMER_MOST : share;
}

static void put_signature(struct text *c, struct buf *out)
{
	buf_printf(out, "KERNEL(%s, %d)\n(", c->src->entry, c->k->threads);
	for (int i = 0; i < c->src->params.n; i++) {
		const struct param *p = &c->src->params.v[i];
		const struct tensor *t = p->tensor == NONE ? NULL : &c->p->tensors.v[p->tensor];

		buf_puts(out, i ? ",\n\t" : "");
		switch (p->kind) {
		case PARAM_POINTER:
			buf_printf(out, "%s%s *__restrict__ tensor_%s", t->role == TENSOR_INPUT ?
				"const " : "", bits_type(t->type), t->name);
			break;
		case PARAM_ORDER:
			buf_puts(out, "const int *__restrict__ order");
			break;
		case PARAM_START:
			buf_puts(out, "const int *__restrict__ start");
			break;
		case PARAM_TRACE:
			buf_puts(out, "u32 *__restrict__ trace");
			break;
		case PARAM_MAP:
			buf_printf(out, "MAP map%d", i);
			break;
		}
	}
	buf_puts(out, ")\n");
}

static void put_start(struct text *c)
{
	put(c, "const u32 shared = shared_base();");
	put(c, "const int warp = UNIFORM(THREAD / 32);");
	put(c, "if (THREAD == 0) {");
	for (int f = 0; f < c->k->flags.n; f++)
		put(c, "\tEACH(i, %d) flag_init(shared + %lld + 8 * i, %d, \"%s %s\", i);",
			c->k->flags.v[f].depth, (long long)c->k->flags.v[f].offset,
			c->k->flags.v[f].arrivals, c->g->tasks.v[c->k->flags.v[f].task].name,
			c->k->flags.v[f].issued ? "issued" : c->k->flags.v[f].runs ? "run" :
			"complete");
	put(c, "\tflags_ready();");
	put(c, "}");
	put_block_stamp(c);
	put(c, "BLOCK_SYNC();");
}

static int warps_of(const struct klane *l)
{
	return (int)ceil_div(l->warps, GROUP_WARPS) * GROUP_WARPS;
}

/* Lanes by their first warp. */
static const struct klane *lane_at(const struct kernel *k, int warp)
{
	for (int i = 0; i < k->lanes.n; i++)
		if (k->lanes.v[i].first_warp == warp)
			return &k->lanes.v[i];
	BUG("no lane begins at warp %d", warp);
}

static enum err_code lane_text(struct text *c, const struct klane *l, const char **out,
	struct err *e)
{
	struct buf text, *whole = c->out;
	enum err_code code;

	buf_init(&text, c->a);
	c->lane = l;
	c->out = &text;
	code = put_lane(c, lane_registers(c, l), e);
	c->out = whole;
	*out = text.text;
	return code;
}

/* The lanes from `warp` on that can share one text; it goes into *merged. */
static enum err_code merge_lanes(struct text *c, int warp, int *count, struct buf *merged,
	struct err *e)
{
	const char *text[LANES_MERGED];
	const struct klane *first = lane_at(c->k, warp), *l;

	TRY(lane_text(c, first, &text[0], e));
	buf_init(merged, c->a);
	buf_puts(merged, text[0]);
	for (*count = 1; *count < LANES_MERGED; ++*count) {
		struct buf more;

		warp += warps_of(first);
		if (warp * 32 >= c->k->threads || first->warps % GROUP_WARPS)
			break;
		l = lane_at(c->k, warp);
		TRY(lane_text(c, l, &text[*count], e));
		buf_init(&more, c->a);
		if (l->warps != first->warps || !merge_texts(c->a, text, *count + 1, &more))
			break;
		*merged = more;
	}
	return OK;
}

static enum err_code put_kernel(struct text *c, struct err *e)
{
	int warp = 0, count;

	put_start(c);
	while (warp * 32 < c->k->threads) {
		const char *otherwise = warp ? "else " : "";
		int first = warp;
		struct buf names, text;

		buf_init(&names, c->a);
		TRY(merge_lanes(c, warp, &count, &text, e));
		for (int i = 0; i < count; i++) {
			const struct klane *l = lane_at(c->k, warp);

			buf_printf(&names, "%s%s", i ? ", " : " ", c->plan->lanes.v[l->lane].name);
			warp += warps_of(l);
		}
		put(c, "%sif (warp < %d) {\t/* lane%s%s */", otherwise, warp, count > 1 ? "s" : "",
			names.text);
		if (count > 1)
			put(c, "\tconst int who = (warp - %d) / %d;", first, (warp - first) / count);
		buf_putn(c->out, text.text, text.len);
		put(c, "}");
	}
	return OK;
}

/* On the host somebody calls the kernel with an array of its arguments. */
static void put_host_entry(struct text *c, struct buf *out)
{
	buf_printf(out, "HOST_ENTRY(%s, %d) { %s(", c->src->entry, c->k->threads, c->src->entry);
	for (int i = 0; i < c->src->params.n; i++)
		buf_printf(out, "%sargs[%d]", i ? ", " : "", i);
	buf_puts(out, "); }\n");
}

static enum err_code text_kernel(const struct kernel *k, bool host, const char *const *prelude,
	struct arena *a, struct source *out, struct err *e)
{
	struct text c = { .k = k, .plan = k->plan, .g = k->plan->graph, .a = a, .src = out,
		.p = k->plan->graph->program, .indent = 1, .host = host };
	struct buf body;

	c.fused = ARENA_ARRAY(a, c.p->nodes.n, bool);
	c.around = ARENA_ARRAY(a, c.p->loops.n, int);
	*out = (struct source){ .threads = k->threads, .shared_bytes = k->shared_bytes + 1024 };
	out->entry = arena_strf(a, "%s_%s", c.p->name, c.p->phases.v[k->phase].name);
	buf_init(&body, a);
	buf_init(&c.functions, a);
	buf_init(&out->text, a);
	c.out = &body;
	for (int t = 0; t < c.p->tensors.n; t++)
		VEC_PUSH(a, &out->params, ((struct param){ .kind = PARAM_POINTER, .tensor = t }));
	VEC_PUSH(a, &out->params, ((struct param){ .kind = PARAM_ORDER, .tensor = NONE }));
	VEC_PUSH(a, &out->params, ((struct param){ .kind = PARAM_START, .tensor = NONE }));
	TRY(put_kernel(&c, e));
	if (k->stamp_words)
		VEC_PUSH(a, &out->params, ((struct param){ .kind = PARAM_TRACE, .tensor = NONE }));
	buf_printf(&out->text, "/* %s, phase %s, generated by Millrace from a plan for %s. */\n",
		c.p->name, c.p->phases.v[k->phase].name, k->plan->device->name);
	for (int i = 0; prelude[i]; i++)
		buf_puts(&out->text, prelude[i]);
	for (int i = 0; k->stamp_words && !host && cuda_stamps[i]; i++)
		buf_puts(&out->text, cuda_stamps[i]);
	buf_puts(&out->text, c.functions.text);
	put_signature(&c, &out->text);
	buf_puts(&out->text, "{\n");
	buf_putn(&out->text, body.text, body.len);
	buf_puts(&out->text, "}\n");
	if (host)
		put_host_entry(&c, &out->text);
	return OK;
}

enum err_code emit_cuda_sm90(const struct kernel *k, struct arena *a, struct source *out,
	struct err *e)
{
	return text_kernel(k, false, cuda_prelude, a, out, e);
}

enum err_code emit_host(const struct kernel *k, struct arena *a, struct source *out, struct err *e)
{
	static const char *const prelude[] = { "#include \"millrace_host.h\"\n\n", NULL };

	return text_kernel(k, true, prelude, a, out, e);
}
