/* Peeling: from a pipelined loop to prologue, steady state and epilogue, so that each iteration has just the
 * entries that have something to do in it.
 *
 * Offsets of a region are counted from the least, `most` is the greatest. The `most` iterations before 0 are the
 * prologue, whose numbers are known; 0 to trips - most - 1 the steady state, with every entry; the `most` after it the
 * epilogue, counted from the end. Where the loop may make fewer trips than `most`, all of that stands behind a
 * condition, and each smaller number has a text of its own, without a steady state. */
#include "lower/pass/pass.h"

/* Copies the operations of an iteration: of its entries, those with offsets from `least` to end - 1. */
static void copy_iteration(struct lowering *c, const struct role_op *loop, struct copying how, int least, int end)
{
	how.loop = loop->u.region.of;
	for (int i = 0; i < loop->u.region.body.v.n; i++) {
		const struct role_op *o = loop->u.region.body.v.v[i];
		const struct point *p = o->point;

		if (p && p->iteration ? p->at >= least && p->at < end : !(p && p->last_only) || end == 1)
			copy_op(c, o, &how);
	}
}

/* Iteration j, whose number is known, of so many trips or, in a prologue, at least so many. */
static void add_known(struct lowering *c, const struct role_op *loop, int j, int class, int trips)
{
	copy_iteration(c, loop, (struct copying){ .kind = ITERATION_KNOWN,
		.shift = j, .class = class, .last = trips - 1, .from = N(c, 0), .add = j }, -j, trips - j);
}

static void add_loop_end(struct lowering *c, int loop, int trips, bool exact)
{
	struct role_op *o = add_op(c, DO_LOOP_END);

	o->u.loop_end.loop = loop;
	o->u.loop_end.trips = trips;
	o->u.loop_end.exact = exact;
}

static void add_steady(struct lowering *c, const struct role_op *loop, int most)
{
	int l = loop->u.region.of;
	struct role_body *outer = enter_loop(c, VAR_J, l, NULL, V(c, VAR_STEADY, l));
	struct role_op *o = outer->v.v[outer->v.n - 1];

	o->point = loop->point;
	o->u.region.section = SECTION_STEADY;
	copy_iteration(c, loop,
		(struct copying){ .kind = ITERATION_STEADY, .last = INT32_MAX, .from = V(c, VAR_J, l) }, 0, most + 1);
	leave_body(c, outer);
}

/* All iterations where there are at least as many as the greatest offset. */
static void add_long(struct lowering *c, const struct role_op *loop, int most)
{
	int l = loop->u.region.of;

	for (int n = -most; n < 0; n++)
		add_known(c, loop, n, -n, most);
	/* nvcc would unroll some loops, asked or not, if it knew how many trips there are, and keep more in
	 * registers */
	add_let(c, VAR_STEADY, l, SUB(V(c, VAR_TRIPS, l), N(c, most)))->u.let.hidden = true;
	add_let(c, VAR_J, l, N(c, 0))->u.let.changes = true;
	add_steady(c, loop, most);
	for (int n = 1; n <= most; n++)
		copy_iteration(c, loop, (struct copying){ .kind = ITERATION_LATE, .shift = n - 1, .class = most + n,
			.last = most - 1, .from = V(c, VAR_TRIPS, l), .add = n - most - 1 }, 0, most + 1 - n);
	add_loop_end(c, l, most, false);
}

/* All iterations of just so many, at most the greatest offset: there is no steady state. */
static void add_short(struct lowering *c, const struct role_op *loop, int most, int trips)
{
	for (int j = -most; j < trips; j++)
		add_known(c, loop, j, j < 0 ? -j : most + j - (trips - 1 - most), trips);
	add_loop_end(c, loop->u.region.of, trips, true);
}

/* The end of the path for one trip count, where control flow joins; `number`: its last iteration. */
static void add_trips_join(struct lowering *c, const struct role_op *loop, int number)
{
	struct point *p = point_new(c, loop->point);

	p->number = p->last = number;
	add_join_wait(c, p);
}

/* May products of sTasks before the loop be under way where it begins? Those of a loop before it, in its last
 * iterations. */
static bool begins_in_flight(const struct lowering *c, int loop)
{
	int parent = c->p->loops.v[loop].parent;
	const struct kregion *v = &c->lane->regions[parent + 1];
	bool under = parent != NONE && ends_in_flight(c, parent);

	for (int i = 0; i < v->steps.n && !(v->steps.v[i].is_loop && v->steps.v[i].id == loop); i++)
		under = v->steps.v[i].is_loop ? under || last_product(c, v->steps.v[i].id) :
			step_ends_in_flight(c, &v->steps.v[i], under);
	return under;
}

static void add_alternatives(struct lowering *c, const struct role_op *loop)
{
	int l = loop->u.region.of, offset = c->lane->regions[l + 1].max_offset, most = offset;
	int64_t least = l == NONE ? 0 : c->g->trips[l].least;
	const struct num *trips = V(c, VAR_TRIPS, l);
	struct role_body *outer = c->body;
	struct role_op *o = NULL;

	if (l != NONE)
		most = (int)min_i64(most, c->g->trips[l].most);
	if (least < most) {
		o = add_if(c, NUM2(GE, trips, N(c, most)), NULL);
		o->u.region.section = SECTION_TRIPS;
		enter_body(c, &o->u.region.body);
	}
	if (l == NONE || c->g->trips[l].most > most)
		add_long(c, loop, offset);
	else
		add_short(c, loop, offset, most);
	if (!o)
		return;
	add_trips_join(c, loop, most - 1);
	for (int n = least > 1 ? (int)least : 1; n < most; n++) {
		enter_body(c, &o->u.region.other);
		o = add_if(c, NUM2(EQ, trips, N(c, n)), NULL);
		o->u.region.section = SECTION_TRIPS;
		enter_body(c, &o->u.region.body);
		add_short(c, loop, offset, n);
		add_trips_join(c, loop, n - 1);
	}
	if (l != NONE && least < 1 && last_product(c, l) && begins_in_flight(c, l)) {
		enter_body(c, &o->u.region.other);
		add_join(c, loop->point, NULL);	/* the path without an iteration passes the loop */
	}
	leave_body(c, outer);
}

static enum err_code peel_op(struct lowering *c, struct role_op *o, struct err *e)
{
	(void)e;
	if (is_section(o, SECTION_LOOP))
		add_alternatives(c, o);
	else
		append_op(c, o);
	return OK;
}

static enum err_code peel_body(struct lowering *c, struct role_body *b, struct err *e)
{
	TRY(rewrite_body(c, b, peel_op, e));
	for (int i = 0; i < b->v.n; i++) {	/* loops inside, of each copy */
		if (!role_is_region(b->v.v[i]->what) || b->v.v[i]->what == DO_TASK)
			continue;
		TRY(peel_body(c, &b->v.v[i]->u.region.body, e));
		TRY(peel_body(c, &b->v.v[i]->u.region.other, e));
	}
	return OK;
}

enum err_code pass_peel(struct lowering *c, struct err *e)
{
	return peel_body(c, &c->role->body, e);
}
