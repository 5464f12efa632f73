/* Unrolling: a value in registers with several versions is an array, and registers have no addresses, so the version
 * must be known when the kernel is compiled. The steady state is there once for each of as many iterations as the
 * versions of its region have in common (kregion.unroll).
 *
 * It can end before each of its copies. The epilogue that follows there has the versions of that copy, so that an
 * iteration has one text for each version, and none is needed for iterations that are left over. */
#include "lower/pass/pass.h"

/* The end of the steady state before its k-th copy. */
static void add_exit(struct lowering *c, const struct role_op *loop, const struct role_body *epilogue, int k)
{
	int l = loop->u.region.of, most = c->lane->regions[l + 1].max_offset;
	struct role_op *o = add_if(c, NUM2(EQ, num_offset(c, V(c, VAR_J, l), k), V(c, VAR_STEADY, l)), NULL);
	struct role_body *outer = enter_body(c, &o->u.region.body);
	struct point *p = point_new(c, loop->point);

	o->u.region.section = SECTION_EPILOGUE;
	for (int i = 0; i < epilogue->v.n; i++) {
		const struct role_op *x = epilogue->v.v[i];
		const struct point *at = x->point;

		copy_op(c, x, &(struct copying){ .loop = l, .shift = k, .kind = ITERATION_LATE, .last = most - 1 + k,
			.class = at ? at->class : 0, .from = V(c, VAR_TRIPS, l), .add = at ? at->number - most : 0 });
	}
	p->number = p->last = k - 1 + most;
	add_join_wait(c, p);
	add_op(c, DO_BREAK);
	leave_body(c, outer);
}

/* epilogue: the operations behind the loop, of which each exit gets a copy. */
static void unroll_loop(struct lowering *c, struct role_op *loop, const struct role_body *epilogue, int u)
{
	struct role_body once = loop->u.region.body, *outer;
	int l = loop->u.region.of;

	loop->u.region.body = (struct role_body){ 0 };
	loop->u.region.end = NULL;
	loop->u.region.step = u;
	outer = enter_body(c, &loop->u.region.body);
	for (int k = 0; k < u; k++) {
		add_exit(c, loop, epilogue, k);
		for (int i = 0; i < once.v.n; i++)
			copy_op(c, once.v.v[i], &(struct copying){ .loop = l, .shift = k, .kind = ITERATION_STEADY,
				.last = INT32_MAX, .from = V(c, VAR_J, l), .add = k });
	}
	leave_body(c, outer);
}

static void unroll_body(struct lowering *c, struct role_body *b)
{
	struct role_body *outer, old = reopen_body(c, b, &outer);

	for (int i = 0; i < old.v.n; i++) {
		struct role_op *o = old.v.v[i];
		int u = is_section(o, SECTION_STEADY) ? c->lane->regions[o->u.region.of + 1].unroll : 1;

		append_op(c, o);
		if (u > 1) {
			struct role_body epilogue = { 0 };

			do
				VEC_PUSH(c->a, &epilogue.v, old.v.v[++i]);
			while (old.v.v[i]->what != DO_LOOP_END);
			unroll_loop(c, o, &epilogue, u);
		}
	}
	for (int i = 0; i < b->v.n; i++) {
		if (!role_is_region(b->v.v[i]->what) || b->v.v[i]->what == DO_TASK)
			continue;
		unroll_body(c, &b->v.v[i]->u.region.body);
		unroll_body(c, &b->v.v[i]->u.region.other);
	}
	leave_body(c, outer);
}

enum err_code pass_unroll(struct lowering *c, struct err *e)
{
	(void)e;
	unroll_body(c, &c->role->body);
	return OK;
}
