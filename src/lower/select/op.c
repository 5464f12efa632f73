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

void note_own_reads(struct lowering *c, const struct stask *s, int node)
{
	const struct task *t = &c->p->tasks.v[s->task];
	int carry = c->p->nodes.v[node].ref, buffer = buffer_of_carry(c, s, carry);
	bool set = false;

	for (int i = 0; t->nodes.v[i] != node; i++)
		set |= c->p->nodes.v[t->nodes.v[i]].op == OP_SET && c->p->nodes.v[t->nodes.v[i]].ref == carry;
	for (int i = 0; i < c->touches.n; i++)
		if (c->touches.v[i].how == TOUCH_READ && c->touches.v[i].of == buffer)
			c->touches.v[i].own = set;
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

struct role_body *enter_loop(struct lowering *c, enum var v, int of, const struct num *from, const struct num *end)
{
	struct role_op *o = add_op(c, DO_LOOP);

	o->u.region.var = v;
	o->u.region.of = of;
	o->u.region.from = from;
	o->u.region.end = end;
	o->u.region.step = 1;
	return enter_body(c, &o->u.region.body);
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

void add_lane_sync(struct lowering *c, const char *why)
{
	add_op(c, c->lane->warps > 1 ? DO_LANE_SYNC : DO_WARP_SYNC)->why = why;
}

void add_groups_wait_op(struct lowering *c, int n, const char *why)
{
	struct role_op *o = add_op(c, DO_GROUPS_WAIT);

	o->u.count = n;
	o->why = why;
}

void add_put(struct lowering *c, const struct frag *over, const struct num *when, const struct num *address,
	const struct val *value, enum dtype type)
{
	struct role_op *o = add_op(c, DO_PUT);

	o->u.put.over = over;
	o->u.put.when = when;
	o->u.put.address = address;
	o->u.put.value = value ? val_one_by_one(c, value) : NULL;
	o->u.put.type = type;
	o->u.put.together = value && dtype_bits(type) == 32 && !num_uses(when, VAR_E) && together_at(c, address, type) == 4 ? 4 : 1;
}

void add_map(struct lowering *c, struct frag_at to, int node, const struct val *value)
{
	struct role_op *o = add_op(c, DO_MAP);

	o->u.map.over = to.frag;
	o->u.map.to = to;
	VEC_PUSH(c->a, &o->u.map.steps, ((struct role_step){ .node = node, .value = value }));
}

struct role_op *add_pin(struct lowering *c, const struct frag *f, int version, int words)
{
	struct role_op *o = add_op(c, DO_PIN);

	o->u.frag.at = (struct frag_at){ f, version };
	o->u.frag.words = words;
	return o;
}

struct role_op *add_flag_op(struct lowering *c, enum role_do what, int flag, const struct num *n, const char *why)
{
	struct role_op *o = add_op(c, what);

	o->u.flag.flag = flag;
	o->u.flag.n = n;
	o->why = why;
	return o;
}

void add_arrive(struct lowering *c, int flag, const struct num *seq, const char *why)
{
	add_op(c, DO_WARP_SYNC)->why = "one thread signals for all";
	add_flag_op(c, DO_ARRIVE, flag, seq, why);
}
