/* Appends operations to the role program. */
#include "lower/select/lowering.h"

struct role_op *add_op(struct lowering *c, enum role_do what)
{
	struct role_op *o = ARENA_NEW(c->a, struct role_op);

	o->what = what;
	o->task = c->task;
	o->wait = c->wait;
	for (int i = 0; role_may_touch(what) && i < c->touches.n; i++)
		VEC_PUSH(c->a, &o->touches, c->touches.v[i]);
	if (role_may_touch(what))
		c->touches.n = 0;
	VEC_PUSH(c->a, &c->body->v, o);
	return o;
}

struct role_body *enter_body(struct lowering *c, struct role_body *inner)
{
	struct role_body *outer = c->body;

	c->body = inner;
	return outer;
}

void add_touch(struct lowering *c, enum touch_how how, enum touch_what what, int of, int version)
{
	struct touch t = { .how = how, .what = what, .of = of, .version = version };

	for (int i = 0; i < c->touches.n; i++) {
		const struct touch *x = &c->touches.v[i];

		if (x->how == how && x->what == what && x->of == of && x->version == version)
			return;
	}
	VEC_PUSH(c->a, &c->touches, t);
}

struct role_op *add_block(struct lowering *c, const char *note)
{
	struct role_op *o = add_op(c, DO_BLOCK);

	o->u.region.note = note;
	return o;
}

struct role_op *add_if(struct lowering *c, const struct num *when, const char *note)
{
	struct role_op *o = add_op(c, DO_IF);

	o->u.region.when = when;
	o->u.region.note = note;
	return o;
}

static struct role_op *add_assignment(struct lowering *c, enum role_do what, enum var v, int of, const struct num *to)
{
	struct role_op *o = add_op(c, what);

	VEC_PUSH(c->a, &o->u.let.v, ((struct role_let){ v, of, to }));
	return o;
}

struct role_op *add_let(struct lowering *c, enum var v, int of, const struct num *to)
{
	return add_assignment(c, DO_LET, v, of, to);
}

void add_let_more(struct lowering *c, struct role_op *let, enum var v, int of, const struct num *to)
{
	VEC_PUSH(c->a, &let->u.let.v, ((struct role_let){ v, of, to }));
}

void add_set(struct lowering *c, enum var v, int of, const struct num *to)
{
	add_assignment(c, DO_SET, v, of, to);
}

void add_advance(struct lowering *c, enum var v, int of, const struct num *by)
{
	add_assignment(c, DO_ADVANCE, v, of, by);
}

void add_warp_sync(struct lowering *c, const char *why)
{
	add_op(c, DO_WARP_SYNC)->why = why;
}

void add_lane_sync(struct lowering *c, const char *why)
{
	add_op(c, c->lane->warps > 1 ? DO_LANE_SYNC : DO_WARP_SYNC)->why = why;
}

void add_fence(struct lowering *c, const char *why)
{
	add_op(c, DO_FENCE)->why = why;
}

void add_groups_wait_op(struct lowering *c, int n, const char *why)
{
	struct role_op *o = add_op(c, DO_GROUPS_WAIT);

	o->u.count = n;
	o->why = why;
}

void add_pin(struct lowering *c, const struct frag *f, int version, int words)
{
	struct role_op *o = add_op(c, DO_PIN);

	o->u.frag.at = (struct frag_at){ f, version };
	o->u.frag.words = words;
}

void add_arrive(struct lowering *c, int flag, const struct num *seq, const char *why)
{
	struct role_op *o;

	add_warp_sync(c, "one thread signals for all");
	o = add_op(c, DO_ARRIVE);
	o->u.flag.flag = flag;
	o->u.flag.n = seq;
	o->why = why;
}
