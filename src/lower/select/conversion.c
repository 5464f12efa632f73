/* Layout conversions: a value in registers that a node takes in another layout is written to the lane's scratch in
 * shared memory, row-major in its own layout, and read from there. */
#include "lower/select/lowering.h"

const struct converted *find_converted(const struct lowering *c, int node, int arg, int carry)
{
	for (int i = 0; i < c->conversions.n; i++)
		if (c->conversions.v[i].node == node && c->conversions.v[i].arg == arg &&
		    c->conversions.v[i].carry == carry)
			return &c->conversions.v[i];
	return NULL;
}

static enum dtype value_type(const struct lowering *c, int arg, int carry)
{
	return arg != NONE ? c->p->nodes.v[arg].type : c->p->carries.v[carry].type;
}

enum dtype scratch_type(enum dtype t)
{
	return dtype_is_float(t) ? DT_F32 : DT_I32;
}

const struct num *scratch_address(struct lowering *c, const struct stask *s, int64_t at,
	const struct shape2 *from, const struct shape2 *to)
{
	return ADD(ADD(V(c, VAR_SHARED, NONE), N(c, c->lane->scratch + at)), MUL(N(c, 4),
		row_major_offset(c, s, from, to)));
}

/* The current element of the value that the node reads, and the fragment that has it. */
static enum err_code find_source(struct lowering *c, const struct kentry *x, int node, const struct layout_conversion *d,
	const struct frag **over, const struct val **out, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	struct frag *f = ARENA_NEW(c->a, struct frag);
	struct frag_at at;

	*over = f;
	if (d->arg != NONE) {
		TRY(lay_out_node(c, s, d->arg, f, e));
		return operand_value(c, x, d->arg, d->arg, out, e);
	}
	TRY(use_registers(c, x, buffer_of_carry(c, s, d->carry), TOUCH_READ, &at, e));
	note_own_reads(c, s, node);
	*over = at.frag;
	*out = val_frag(c, at);
	return OK;
}

static enum err_code put_converted(struct lowering *c, const struct kentry *x, int node,
	const struct layout_conversion *d, int64_t at, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct val *value;
	const struct frag *over;

	TRY(find_source(c, x, node, d, &over, &value, e));
	add_put(c, over, owner_condition(c, s, d->from, over), scratch_address(c, s, at, d->from, d->from), value,
		scratch_type(value_type(c, d->arg, d->carry)));
	return OK;
}

/* One barrier before the writes, as the scratch may still be read, and one after them. */
enum err_code add_layout_conversions(struct lowering *c, const struct kentry *x, int first, int last, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct task *t = &c->p->tasks.v[s->task];
	struct layout_conversion d;
	int64_t at = 0;

	c->conversions.n = 0;
	for (int i = first; i < last; i++) {
		for (int k = 0; conversion_next(c->k, s, t->nodes.v[i], &k, &d);) {
			if (d.flips)
				continue;
			if (!c->conversions.n)
				add_lane_sync(c, "what was in the scratch has been read");
			TRY(put_converted(c, x, t->nodes.v[i], &d, at, e));
			VEC_PUSH(c->a, &c->conversions, ((struct converted){ t->nodes.v[i], d.arg, d.carry, at }));
			at += scratch_bytes(s, d.from);
		}
	}
	if (c->conversions.n)
		add_lane_sync(c, "all of it is in the scratch");
	return OK;
}

enum err_code converted_value(struct lowering *c, const struct kentry *x, int node, int arg, int carry,
	const struct val **out, struct err *e)
{
	const struct converted *at = find_converted(c, node, arg, carry);
	const struct stask *s = stask_of(c, x);
	const struct node *n = &c->p->nodes.v[node];
	bool sets = n->op == OP_SET && !has_ring(c, buffer_of_carry(c, s, n->ref));
	const struct shape2 *to = sets ? &c->k->carry_shape[n->ref] : &c->k->node_shape[node];
	enum dtype type = value_type(c, arg, carry);
	const struct shape2 *from;
	const struct num *inside;
	struct frag f;

	if (!at)
		return err_set(e, ERR_ILLEGAL, n->loc, "%s: an argument lies otherwise over the lane's "
			"threads than the result; only a value in shared memory can be read so: let "
			"another lane make it", op_name(n->op));
	if (sets)
		TRY(lay_out_buffer(c, buffer_of_carry(c, s, n->ref), &f, e));
	else
		TRY(lay_out_node(c, s, node, &f, e));
	from = arg != NONE ? &c->k->node_shape[arg] : &c->k->carry_shape[carry];
	inside = inside_condition(c, s, to, &f, from->full_axes & ~to->full_axes);
	*out = val_guard(c, inside, neighbours_at_once(c, val_shared(c, type, scratch_type(type),
		scratch_address(c, s, at->at, from, to)), inside), val_const(c, DT_I32, 0));
	return OK;
}
