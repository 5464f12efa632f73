/* Hoisting: what the first sTask of a steady state waits for in its first iteration alone, since it happens outside of
 * the loop, is awaited before the loop, so that no iteration asks whether it is the first one.
 *
 * A loop with a prologue does not begin with its steady state, so there is nothing to hoist from it. */
#include "lower/pass/pass.h"

static bool is_invariant(const struct lowering *c, const struct role_op *o, int loop)
{
	const struct flag_wait *w = o->point ? o->point->flag_wait : NULL;

	return w && w->awaited == AWAIT_AROUND && !w->even_if_empty && c->p->loops.v[loop].parent == w->loop;
}

/* Moves the invariant waits from the TASK to before the loop. */
static void hoist_waits(struct lowering *c, struct role_op *task, int loop)
{
	struct role_body *b = &task->u.region.body;
	bool always = c->g->trips[loop].least > 0;
	int n = 0;

	for (int i = 0; i < b->v.n; i++) {
		struct role_op *o = b->v.v[i];

		if (!is_invariant(c, o, loop)) {
			b->v.v[n++] = o;
			continue;
		}
		o->u.flag.when = always ? NULL : NUM2(GT, V(c, VAR_TRIPS, loop), N(c, 0));
		append_op(c, o);
		if (c->k->flags.v[o->point->flag_wait->flag].copies_arrive)	/* with its fence */
			append_op(c, b->v.v[++i]);
	}
	b->v.n = n;
}

static enum err_code hoist_op(struct lowering *c, struct role_op *o, struct err *e)
{
	int loop = o->what == DO_LOOP ? o->u.region.of : NONE;

	if (is_section(o, SECTION_STEADY) && loop != NONE && !c->lane->regions[loop + 1].max_offset &&
	    o->u.region.body.v.v[0]->what == DO_TASK)
		hoist_waits(c, o->u.region.body.v.v[0], loop);
	append_op(c, o);
	return rewrite_inside(c, o, hoist_op, e);
}

enum err_code pass_hoist(struct lowering *c, struct err *e)
{
	return rewrite_body(c, &c->role->body, hoist_op, e);
}
