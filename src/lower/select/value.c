/* Expressions of single elements: a node's current element, in terms of its arguments' elements. */
#include "lower/select/lowering.h"
#include "tile/reach.h"

static const struct val *make_val(struct lowering *c, struct val v)
{
	return arena_copy(c->a, &v, 1, sizeof(v));
}

const struct val *val_const(struct lowering *c, enum dtype t, double k)
{
	return make_val(c, (struct val){ .kind = VAL_CONST, .type = t, .k = k });
}

const struct val *val_num(struct lowering *c, const struct num *x)
{
	return make_val(c, (struct val){ .kind = VAL_NUM, .type = DT_I32, .num = x });
}

const struct val *val_frag(struct lowering *c, struct frag_at at)
{
	return make_val(c, (struct val){ .kind = VAL_FRAG, .type = at.frag->type, .frag = at });
}

const struct val *val_shared(struct lowering *c, enum dtype type, enum dtype from, const struct num *address)
{
	return make_val(c, (struct val){ .kind = VAL_SHARED, .type = type, .from = from, .num = address,
		.together = 1 });
}

const struct val *val_cast(struct lowering *c, enum dtype to, enum dtype from, const struct val *x)
{
	return make_val(c, (struct val){ .kind = VAL_CAST, .type = to, .op = OP_CAST, .from = from, .arg = { x } });
}

const struct val *val_guard(struct lowering *c,
	const struct num *when, const struct val *x, const struct val *otherwise)
{
	return num_is(when, 1) ? x : make_val(c, (struct val){ .kind = VAL_GUARD, .type = x->type, .num = when,
		.arg = { x, otherwise } });
}

const struct val *val_one_by_one(struct lowering *c, const struct val *v)
{
	struct val *copy = arena_copy(c->a, v, 1, sizeof(*v));

	copy->together = 1;
	for (int i = 0; i < LEN(v->arg) && v->arg[i]; i++)
		copy->arg[i] = val_one_by_one(c, v->arg[i]);
	return copy;
}

/* Are groups of so many neighbouring columns all inside of the value and the ends of its axes, or all outside? */
static bool ends_in_groups(const struct lowering *c, const struct stask *s, const struct shape2 *shape,
	const struct frag *f, int n)
{
	for (int i = 0; i < shape->ncol; i++) {
		int axis = shape->col[i];

		if (i + 1 < shape->ncol || axis_divisor(&c->p->axes.v[axis]) % n || c->g->extents.tile[axis] % n ||
		    ends_within_tile(c->g, s->loop, axis))
			return false;
	}
	return f->width % n == 0;
}

const struct val *ring_value(struct lowering *c, const struct kentry *x, const struct ring *r,
	const struct shape2 *shape)
{
	enum dtype t = c->g->buffers.v[r->buffer].type;
	const struct num *address;

	add_ring_touch(c, stask_of(c, x), r->buffer);
	c->reads_element = true;
	address = ring_address(c, stask_of(c, x), r, shape);
	c->reads_element = false;
	return val_shared(c, t, t, address);
}

enum err_code ring_value_as(struct lowering *c, const struct kentry *x, const struct ring *r,
	const struct shape2 *shape, const struct val **out, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct num *inside;
	struct val *v;
	struct frag f;

	TRY(lay_out_shape(c, s, shape, c->g->buffers.v[r->buffer].type, &f, e));
	/* the tile may reach beyond the end of an axis that the ring has in full */
	inside = inside_condition(c, s, shape, &f, r->shape.full_axes & ~shape->full_axes);
	v = arena_copy(c->a, ring_value(c, x, r, shape), 1, sizeof(*v));
	v->together = together_at(c, v->num, v->from);
	if (num_uses(inside, VAR_E) && !ends_in_groups(c, s, shape, &f, v->together))
		v->together = 1;
	*out = val_guard(c, inside, v, val_const(c, DT_I32, 0));
	return OK;
}

enum err_code ring_value_of_node(struct lowering *c, const struct kentry *x, const struct ring *r,
	int node, const struct val **out, struct err *e)
{
	return ring_value_as(c, x, r, &c->k->node_shape[node], out, e);
}

/* The element of a value in registers, computed by this sTask or an earlier one of the lane, that stands where the current
 * element does. */
static enum err_code held_value(struct lowering *c, const struct kentry *x, int arg, const struct val **out, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct node *a = &c->p->nodes.v[arg];
	struct frag_at at = { 0 };

	if (a->task == s->task && c->inline_depth[arg])
		return element_value(c, x, arg, out, e);
	if (a->task == s->task && c->fused[arg]) {
		*out = make_val(c, (struct val){ .kind = VAL_NODE, .type = a->type, .node = arg });
		return OK;
	}
	TRY(a->task == s->task ? find_node_frag(c, s, arg, &at.frag, e) :
		use_registers(c, x, buffer_of_node(c, s, arg), TOUCH_READ, &at, e));
	*out = val_frag(c, at);
	return OK;
}

static enum err_code far_value(struct lowering *c, const struct kentry *x, int node, const struct shape2 *shape,
	const struct val **out, struct err *e);

static enum err_code register_value(struct lowering *c, const struct kentry *x, int node, int arg,
	const struct val **out, struct err *e)
{
	if (at_is_read_at_use(c->k, stask_of(c, x), arg, node))
		return far_value(c, x, arg, &c->k->node_shape[node], out, e);
	if (!has_same_layout(c->k, &c->k->node_shape[node], &c->k->node_shape[arg]))
		return converted_value(c, x, node, arg, NONE, out, e);
	return held_value(c, x, arg, out, e);
}

enum err_code operand_value(struct lowering *c, const struct kentry *x, int node, int arg,
	const struct val **out, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct shape2 *shape = &c->k->node_shape[node];
	const struct node *a = &c->p->nodes.v[arg];
	int buffer;

	if (a->op == OP_CONST) {
		*out = val_const(c, a->type, a->k);
		return OK;
	}
	if (a->op == OP_INDEX) {
		*out = val_num(c, ADD(axis_first(c, s, shape, a->ref), axis_local_index(c, s, shape, a->ref)));
		return OK;
	}
	buffer = a->task == s->task ? NONE : buffer_of_node(c, s, arg);
	if (buffer != NONE && has_ring(c, buffer)) {
		const struct frag *f = find_fetched(c, buffer, shape);

		if (f)
			*out = val_frag(c, (struct frag_at){ .frag = f });
		return f ? OK : ring_value_of_node(c, x, ring_of(c, buffer), node, out, e);
	}
	return register_value(c, x, node, arg, out, e);
}

/* The field of a packed word that is the current element (program_unpack). */
static enum err_code unpacked_value(struct lowering *c, const struct kentry *x, int node,
	const struct val **out, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct node *n = &c->p->nodes.v[node];
	int buffer = buffer_of_node(c, s, n->arg[0]);
	struct val v = { .kind = VAL_FIELD, .type = n->type, .per = 32 / dtype_bits(n->type) };

	if (buffer == NONE || !has_ring(c, buffer))
		return err_set(e, ERR_ILLEGAL, n->loc, "unpack takes words out of shared memory; "
			"these are in registers");
	TRY(operand_value(c, x, node, n->arg[0], &v.arg[0], e));
	v.num = axis_local_index(c, s, &c->k->node_shape[node], n->ref);
	*out = make_val(c, v);
	return OK;
}

static const struct val *val_op(struct lowering *c, enum op op, enum dtype type, const struct val *x, const struct val *y,
	const struct val *z)
{
	return make_val(c, (struct val){ .kind = VAL_OP, .type = type, .op = op, .arg = { x, y, z } });
}

/* Where the current element is, along an axis that an argument has packed, in the ring that holds that argument. */
static const struct num *index_in_packed(struct lowering *c, const struct stask *s, const struct ring *r, int packed,
	const struct shape2 *shape, int axis)
{
	const struct num *at = axis_local_index(c, s, shape, axis);

	return (r->shape.full_axes & ~c->k->one_tile) >> packed & 1 && !(shape->full_axes >> axis & 1) ?
		ADD(axis_first(c, s, shape, axis), at) : at;
}

/* Axes of the shape beyond whose ends an element may be that is read from the ring: the ring has them in full, or an axis that
 * they are packed in. */
static uint64_t axes_beyond(const struct lowering *c, const struct ring *r, const struct shape2 *shape)
{
	uint64_t axes = r->shape.full_axes & ~shape->full_axes;

	for (int a = 0; a < c->p->axes.n; a++) {
		int packs = c->p->axes.v[a].packs;

		if (axes >> a & 1 && packs != NONE && !(shape->full_axes >> packs & 1))
			axes |= (uint64_t)1 << packs;
	}
	return axes;
}

enum err_code expanded_value(struct lowering *c, const struct kentry *x, int node, const struct shape2 *shape,
	const struct frag *f, const struct val **out, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct node *n = &c->p->nodes.v[node];
	const struct num *at = axis_local_index(c, s, shape, n->ref), *first, *inside;
	const struct val *which, *one[2], *is[2];
	const struct node *v = &c->p->nodes.v[n->arg[0]];
	int packed = find_packed_axis(c->p, v->axis, v->naxes, n->ref, EXPANDED_BY_VALUE);
	const struct ring *r[2];

	for (int i = 0; i < 2; i++) {
		const struct node *a = &c->p->nodes.v[n->arg[i]];
		int buffer = a->task == s->task || a->task == NONE ? NONE : buffer_of_node(c, s, n->arg[i]);

		if (buffer == NONE || !has_ring(c, buffer))
			return err_set(e, ERR_ILLEGAL, n->loc, "expand takes values and indices out of shared memory, and '%s' has "
				"them in registers: load them, or make them in a task of their own", s->name);
		r[i] = ring_of(c, buffer);
	}
	inside = inside_condition(c, s, shape, f, axes_beyond(c, r[0], shape) | axes_beyond(c, r[1], shape));
	which = val_cast(c, DT_I32, c->p->nodes.v[n->arg[1]].type, val_one_by_one(c, ring_value(c, x, r[1], shape)));
	which = val_op(c, OP_SHR, DT_I32, which, val_num(c, MUL(DIV(MOD(at, N(c, EXPANDED_BY_BYTE)), N(c, 4)), N(c, 4))), NULL);
	first = MUL(DIV(index_in_packed(c, s, r[0], packed, shape, n->ref), N(c, 4)), N(c, 2));
	for (int i = 0; i < 2; i++) {
		const struct val *index = i ? val_op(c, OP_SHR, DT_I32, which, val_const(c, DT_I32, 2), NULL) : which;

		c->read_at[packed] = ADD(first, N(c, i));
		one[i] = val_one_by_one(c, ring_value(c, x, r[0], shape));
		c->read_at[packed] = NULL;
		is[i] = val_op(c, OP_EQ, DT_BOOL, val_op(c, OP_AND, DT_I32, index, val_const(c, DT_I32, 3), NULL),
			val_num(c, MOD(at, N(c, 4))), NULL);
	}
	one[1] = val_op(c, OP_WHERE, n->type, is[1], one[1], val_const(c, n->type, 0));
	*out = val_guard(c, inside, val_op(c, OP_WHERE, n->type, is[0], one[0], one[1]), val_const(c, DT_I32, 0));
	return OK;
}

/* The argument's element in a column with bits flipped, which the same warp has in registers. */
static enum err_code flipped_value(struct lowering *c, const struct kentry *x, const struct layout_conversion *d,
	const struct val **out, struct err *e)
{
	struct val v;

	TRY(operand_value(c, x, d->arg, d->arg, out, e));
	v = **out;
	if (v.kind != VAL_FRAG)
		BUG("a value whose columns are exchanged is not in a fragment");
	v.kind = VAL_FLIPPED;
	v.flips = d->flips;
	*out = make_val(c, v);
	return OK;
}

/* Lets node n (OP_AT) say at which index of its axis is read what it reads: of the current element of `shape`, or where that
 * is read already. Returns the condition that the axis has the index. */
static const struct num *read_elsewhere(struct lowering *c, const struct stask *s, const struct node *n,
	const struct shape2 *shape)
{
	const struct num *at = tensor_index(c, s, &n->index[0], shape, true), *inside = N(c, 1);
	int64_t size = c->p->axes.v[n->ref].size;

	if (!index_stays_within(c->p, &n->index[0], size)) {
		inside = NUM2(BOTH, NUM2(GE, at, N(c, 0)), NUM2(LT, at, N(c, size)));
		/* a number that is an index, so that each address is one of the value's elements */
		at = NUM2(MAX, N(c, 0), NUM2(MIN, at, N(c, size - 1)));
	}
	c->read_at[n->ref] = at;
	return inside;
}

const struct val *neighbours_at_once(struct lowering *c, const struct val *value, const struct num *inside)
{
	struct val v = *value;

	if (!num_uses(inside, VAR_E))
		v.together = together_at(c, v.num, v.from);
	return make_val(c, v);
}

/* What is read, where `inside` holds, else 0. A read that has a guard of its own gets one guard for both conditions.
 * Neighbours that are read at once are read if the first is inside, so they must all be inside or none. */
static const struct val *guard_read(struct lowering *c, const struct num *inside, const struct val *value)
{
	struct val read;

	if (value->kind == VAL_GUARD && value->arg[0]->kind == VAL_SHARED) {
		inside = NUM2(BOTH, inside, value->num);
		value = value->arg[0];
	}
	read = *value;
	if (read.kind == VAL_SHARED && num_uses(inside, VAR_E))
		read.together = 1;
	return val_guard(c, inside, make_val(c, read), val_const(c, DT_I32, 0));
}

/* The source's element at other indices of axes that it has in full, out of its ring or the scratch, where other threads may
 * have put it. shape: of the node, or of one that takes its element. */
static enum err_code far_value(struct lowering *c, const struct kentry *x, int node, const struct shape2 *shape,
	const struct val **out, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	struct shape2 complete = *shape;	/* axes of one tile begin at 0 */
	int source = at_source(c->p, node), buffer;
	const struct node *a = &c->p->nodes.v[source];
	uint64_t axes = c->k->node_shape[source].full_axes & ~shape->full_axes;
	const struct num *inside;
	enum err_code code = OK;
	struct frag f;

	TRY(lay_out_shape(c, s, shape, c->p->nodes.v[node].type, &f, e));
	for (int i = node; i != source; i = c->p->nodes.v[i].arg[0])
		for (int k = 0; k < c->p->nodes.v[i].index[0].n; k++)
			axes |= (uint64_t)1 << c->p->nodes.v[i].index[0].term[k].axis;
	c->reads_window = c->p->axes.v[c->p->nodes.v[node].ref].of_window;
	inside = inside_condition(c, s, shape, &f, axes);
	c->reads_window = false;
	complete.full_axes |= c->k->one_tile;
	for (int i = node; i != source; i = c->p->nodes.v[i].arg[0])
		inside = NUM2(BOTH, inside, read_elsewhere(c, s, &c->p->nodes.v[i], &complete));
	buffer = a->task == s->task ? NONE : buffer_of_node(c, s, source);
	if (a->op == OP_INDEX)
		*out = val_num(c, c->read_at[a->ref]);
	else if (buffer != NONE && has_ring(c, buffer))
		*out = neighbours_at_once(c, ring_value(c, x, ring_of(c, buffer), shape), inside);
	else
		code = converted_value(c, x, node, source, NONE, out, e);
	for (int i = node; i != source; i = c->p->nodes.v[i].arg[0])
		c->read_at[c->p->nodes.v[i].ref] = NULL;
	if (!code)
		*out = guard_read(c, inside, *out);
	return code;
}

static enum err_code value_at(struct lowering *c, const struct kentry *x, int node, const struct val **out, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	int arg = c->p->nodes.v[node].arg[0];
	int buffer = c->p->nodes.v[arg].task == s->task ? NONE : buffer_of_node(c, s, arg);
	bool in_ring = buffer != NONE && has_ring(c, buffer);
	struct layout_conversion d;

	if (!in_ring && at_moves_nothing(c->k, s, node) && c->p->nodes.v[arg].op != OP_INDEX)
		return held_value(c, x, arg, out, e);
	if (!in_ring && conversion_next(c->k, s, node, &(int){ 0 }, &d) && d.flips)
		return flipped_value(c, x, &d, out, e);
	return far_value(c, x, node, &c->k->node_shape[node], out, e);
}

/* Is the node an index along the one column axis plus a constant? */
static bool is_column_index(const struct lowering *c, const struct shape2 *shape, int node, int64_t *k)
{
	const struct node *n = &c->p->nodes.v[node];

	*k = 0;
	if ((n->op == OP_ADD || n->op == OP_SUB) && c->p->nodes.v[n->arg[1]].op == OP_CONST) {
		*k = (int64_t)c->p->nodes.v[n->arg[1]].k * (n->op == OP_ADD ? 1 : -1);
		n = &c->p->nodes.v[n->arg[0]];
	}
	return n->op == OP_INDEX && shape->ncol == 1 && shape->col[0] == n->ref;
}

/* A comparison of the column's index with a value of the row: the constant 8 j + e is compared with the value less the
 * thread's first column. Otherwise the compiler keeps the indices of all columns in registers. *out: NULL if the node
 * is no such comparison. */
static enum err_code column_comparison(struct lowering *c, const struct kentry *x, int node,
	const struct val **out, struct err *e)
{
	static const enum num_op signs[2][4] = { { NUM_LT, NUM_LE, NUM_EQ, NUM_NE },
		{ NUM_GT, NUM_GE, NUM_EQ, NUM_NE } };
	const struct stask *s = stask_of(c, x);
	const struct node *n = &c->p->nodes.v[node];
	const struct shape2 *shape = &c->k->node_shape[node];
	int sign = n->op == OP_LT ? 0 : n->op == OP_LE ? 1 : n->op == OP_EQ ? 2 : 3;

	*out = NULL;
	if (n->op != OP_LT && n->op != OP_LE && n->op != OP_EQ && n->op != OP_NE)
		return OK;
	for (int side = 0; side < 2; side++) {
		int other = n->arg[1 - side], axis = shape->ncol ? shape->col[0] : NONE;
		struct val v = { .kind = VAL_COLUMN, .type = DT_BOOL, .compare = signs[side][sign] };
		int64_t k;

		if (!is_column_index(c, shape, n->arg[side], &k) || dtype_is_float(c->p->nodes.v[other].type))
			continue;
		if (node_has_axis(&c->p->nodes.v[other], axis))
			return OK;
		if (axis == s->split_axis)
			k += s->slice * c->g->extents.tile[axis] / s->slices;
		v.num = ADD(first_of_group(c, c->lane->layout), V(c, VAR_E, NONE));
		v.less = ADD(ADD(axis_first(c, s, shape, axis), V(c, VAR_COL0, NONE)), N(c, k));
		if (part_first_col(c, s, shape))
			v.less = ADD(v.less, part_first_col(c, s, shape));
		TRY(operand_value(c, x, node, other, &v.arg[0], e));
		*out = make_val(c, v);
		return OK;
	}
	return OK;
}

static enum err_code carry_value(struct lowering *c, const struct kentry *x, int node,
	const struct val **out, struct err *e)
{
	const struct node *n = &c->p->nodes.v[node];
	int buffer = buffer_of_carry(c, stask_of(c, x), n->ref);
	struct frag_at at;

	if (has_ring(c, buffer)) {	/* no sum over blocks: lower_cluster_sums */
		TRY(ring_value_of_node(c, x, ring_of(c, buffer), node, out, e));
		note_own_reads(c, stask_of(c, x), node);
		return OK;
	}
	if (!has_same_layout(c->k, &c->k->node_shape[node], &c->k->carry_shape[n->ref]) && c->k->shared_nodes &&
	    c->k->shared_nodes[node])
		return err_set(e, ERR_ILLEGAL, n->loc, "'%s' uses a sum over the blocks of a cluster in another layout than "
			"that of the sum", stask_of(c, x)->name);
	if (!has_same_layout(c->k, &c->k->node_shape[node], &c->k->carry_shape[n->ref]))
		return converted_value(c, x, node, NONE, n->ref, out, e);
	TRY(use_registers(c, x, buffer, TOUCH_READ, &at, e));
	note_own_reads(c, stask_of(c, x), node);
	if (c->k->shared_nodes && c->k->shared_nodes[node])
		at = sum_parts(c, x, buffer, at);
	*out = val_frag(c, at);
	if (c->has_spare_registers && lower_joins_partial_sums(c->k, node))
		return join_partial_sums(c, x, node, *out, out, e);
	return OK;
}

enum err_code refuse_node(const struct node *n, struct err *e)
{
	return err_set(e, ERR_ILLEGAL, n->loc, "'%s' over these axes is not lowered yet", op_name(n->op));
}

enum err_code element_value(struct lowering *c, const struct kentry *x, int node, const struct val **out, struct err *e)
{
	const struct node *n = &c->p->nodes.v[node];
	struct val v = { .kind = n->op == OP_CAST ? VAL_CAST : VAL_OP, .type = n->type, .op = n->op };
	struct frag f;

	if (n->op == OP_GET)
		return carry_value(c, x, node, out, e);
	if (n->op == OP_UNPACK)
		return unpacked_value(c, x, node, out, e);
	if (n->op == OP_EXPAND) {
		TRY(lay_out_node(c, stask_of(c, x), node, &f, e));
		return expanded_value(c, x, node, &c->k->node_shape[node], &f, out, e);
	}
	if (n->op == OP_AT)
		return value_at(c, x, node, out, e);
	TRY(column_comparison(c, x, node, out, e));
	if (*out)
		return OK;
	if (n->op == OP_CAST)
		v.from = c->p->nodes.v[n->arg[0]].type;
	for (int i = 0; i < op_arity(n->op); i++)
		TRY(operand_value(c, x, node, n->arg[i], &v.arg[i], e));
	if (n->op == OP_CAST ? !has_lowering(c->p, n) : !op_kernel_text(n->op, n->type))
		return refuse_node(n, e);
	v.unmasked = n->op == OP_WHERE && mark_where(c, stask_of(c, x), node);
	*out = make_val(c, v);
	return OK;
}
