/* Values in registers that are taken in another layout: written to the lane's scratch in
 * shared memory as they lie, and read from there. */
#include "lower/body/body.h"

static const struct detoured *find(const struct body *c, int node, int arg, int carry)
{
	for (int i = 0; i < c->detours.n; i++)
		if (c->detours.v[i].node == node && c->detours.v[i].arg == arg &&
		    c->detours.v[i].carry == carry)
			return &c->detours.v[i];
	return NULL;
}

bool body_has_detour(const struct body *c, int node, int arg, int carry)
{
	return find(c, node, arg, carry) != NULL;
}

static enum dtype type_of(const struct body *c, int arg, int carry)
{
	return arg != NONE ? c->p->nodes.v[arg].type : c->p->carries.v[carry].type;
}

enum dtype body_kept_as(enum dtype t)
{
	return dtype_is_float(t) ? DT_F32 : DT_I32;
}

const struct num *body_scratch(struct body *c, const struct stask *s, int64_t at,
	const struct shape2 *from, const struct shape2 *to)
{
	return ADD(ADD(V(c, VAR_SHARED, NONE), N(c, c->lane->scratch + at)), MUL(N(c, 4),
		body_plain_place(c, s, from, to)));
}

/* The element at hand of the value as it lies. */
static enum err_code source(struct body *c, const struct kentry *x, const struct detour *d,
	const struct frag **over, const struct val **out, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	struct frag *f = ARENA_NEW(c->a, struct frag);
	struct frag_at at;
	int buffer;

	*over = f;
	if (d->arg != NONE) {
		TRY(body_node_frag(c, s, d->arg, f, e));
		return body_operand(c, x, d->arg, d->arg, out, e);
	}
	buffer = body_buffer_of_carry(c, s, d->carry);
	TRY(body_buffer(c, buffer, &at.frag, e));
	at.version = body_version(c, x, buffer);
	body_touch(c, TOUCH_READ, TOUCH_FRAG, buffer, at.version);
	*over = at.frag;
	*out = val_frag(c, at);
	return OK;
}

static enum err_code put_detour(struct body *c, const struct kentry *x, const struct detour *d,
	int64_t at, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct val *value;
	const struct frag *over;
	struct role_op *o;

	TRY(source(c, x, d, &over, &value, e));
	o = body_op(c, DO_PUT);
	o->u.put.over = over;
	o->u.put.when = body_brought(c, s, d->from, over);
	o->u.put.address = body_scratch(c, s, at, d->from, d->from);
	o->u.put.value = value;
	o->u.put.type = body_kept_as(type_of(c, d->arg, d->carry));
	return OK;
}

/* What was there has been read when the lane's threads meet, and then all of it is there. */
enum err_code body_detours(struct body *c, const struct kentry *x, int first, int last,
	struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct task *t = &c->p->tasks.v[s->task];
	struct detour d;
	int64_t at = 0;

	c->detours.n = 0;
	for (int i = first; i < last; i++) {
		for (int k = 0; detour_next(c->k, s, t->nodes.v[i], &k, &d);) {
			if (!c->detours.n)
				body_lane_sync(c, "what was in the scratch has been read");
			TRY(put_detour(c, x, &d, at, e));
			VEC_PUSH(c->a, &c->detours, ((struct detoured){ t->nodes.v[i], d.arg, d.carry,
				at }));
			at += detour_bytes(s, &d);
		}
	}
	if (c->detours.n)
		body_lane_sync(c, "all of it is in the scratch");
	return OK;
}

enum err_code body_detour(struct body *c, const struct kentry *x, int node, int arg, int carry,
	const struct val **out, struct err *e)
{
	const struct detoured *at = find(c, node, arg, carry);
	const struct stask *s = stask_of(c, x);
	const struct node *n = &c->p->nodes.v[node];
	bool sets = n->op == OP_SET && !has_ring(c, body_buffer_of_carry(c, s, n->ref));
	const struct shape2 *to = sets ? &c->k->carry_shape[n->ref] : &c->k->node_shape[node];
	enum dtype type = type_of(c, arg, carry);
	const struct shape2 *from;
	struct frag f;

	if (!at)
		return err_set(e, ERR_ILLEGAL, n->loc, "%s: an argument lies otherwise over the lane's "
			"threads than the result; only a value in shared memory can be read so: let "
			"another lane make it", op_name(n->op));
	if (sets)
		TRY(body_buffer_frag(c, body_buffer_of_carry(c, s, n->ref), &f, e));
	else
		TRY(body_node_frag(c, s, node, &f, e));
	from = arg != NONE ? &c->k->node_shape[arg] : &c->k->carry_shape[carry];
	*out = val_guard(c, body_inside(c, s, to, &f, from->full_axes & ~to->full_axes), val_shared(c, type,
		body_kept_as(type), body_scratch(c, s, at->at, from, to)), val_const(c, DT_I32, 0));
	return OK;
}
