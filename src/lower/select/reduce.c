/* Reductions and scans along an axis (layout/folds.h). Elements beyond the end of the axis
 * are replaced by the operator's identity. */
#include "lower/select/lowering.h"

/* The identity of a reduction's operator. */
static const struct val *identity_of(struct lowering *c, enum op op, enum dtype t)
{
	enum dtype type = op_pair(op) == OP_ADD || !dtype_is_float(t) ? DT_I32 : DT_F32;

	return val_const(c, type, op_identity(op, t));
}

/* The value, or the identity beyond the end of the reduced axis. Ends of the other side do not matter. */
static const struct val *mask_outside_axis(struct lowering *c, const struct kentry *x, const struct node *n,
	const struct fold *f, const struct frag *over, const struct val *value)
{
	struct shape2 along = { .rows = 1, .cols = 1, .full_axes = f->over.full_axes };
	struct frag part = *over;

	shape_add_axis(&along, f->way != FOLD_COLUMNS, n->ref, 1);
	if (f->way == FOLD_COLUMNS)
		part.height = part.rows;
	else
		part.width = part.cols;
	return val_guard(c, inside_condition(c, stask_of(c, x), &along, &part, ALL_AXES), value,
		identity_of(c, n->op, n->type));
}

/* A reduction or scan over a fragment, by exchange between threads. */
static enum err_code fold_in_registers(struct lowering *c, const struct kentry *x, int node,
	const struct fold *f, struct err *e)
{
	const struct stask *s = stask_of(c, x);
	const struct node *n = &c->p->nodes.v[node];
	struct frag *over = ARENA_NEW(c->a, struct frag);
	bool scans = op_class(n->op) == CLASS_SCAN;
	const struct val *value;
	const struct frag *to;
	struct role_op *o;

	TRY(lay_out_shape(c, s, &f->over, c->p->nodes.v[n->arg[0]].type, over, e));
	TRY(f->shared ? ring_value_as(c, x, ring_of(c, buffer_of_node(c, s, n->arg[0])), &f->over, &value, e) :
		operand_value(c, x, n->arg[0], n->arg[0], &value, e));
	TRY(find_node_frag(c, s, node, &to, e));
	o = add_op(c, scans ? DO_SCAN : DO_REDUCE);
	o->u.reduce.over = over;
	o->u.reduce.to = to;
	o->u.reduce.op = n->op;
	/* in a scan, elements beyond the end come last and are not stored */
	o->u.reduce.value = scans ? value : mask_outside_axis(c, x, n, f, over, value);
	o->u.reduce.zero = identity_of(c, n->op, n->type);
	o->u.reduce.along_rows = f->way == FOLD_ROWS;
	o->u.reduce.partial = c->has_spare_registers && lower_is_partial_sum(c->k, node);
	o->u.reduce.scratch = c->lane->scratch;
	return OK;
}

enum err_code join_partial_sums(struct lowering *c, const struct kentry *x, int node, const struct val *parts,
	const struct val **out, struct err *e)
{
	enum dtype t = c->p->nodes.v[node].type;
	struct frag *to = ARENA_NEW(c->a, struct frag);
	struct role_op *o;

	TRY(lay_out_node(c, stask_of(c, x), node, to, e));
	to->name = arena_strf(c->a, "all%d", node);
	add_op(c, DO_FRAGMENT)->u.frag.at.frag = to;
	o = add_op(c, DO_REDUCE);
	o->u.reduce.over = o->u.reduce.to = to;
	o->u.reduce.op = OP_SUM;
	o->u.reduce.value = parts;
	o->u.reduce.zero = identity_of(c, OP_SUM, t);
	o->u.reduce.scratch = c->lane->scratch;
	*out = val_frag(c, (struct frag_at){ .frag = to });
	return OK;
}

enum err_code select_fold(struct lowering *c, const struct kentry *x, int node, struct err *e)
{
	const struct node *n = &c->p->nodes.v[node];
	const struct val *value;
	const struct frag *to;
	struct fold f;

	fold_of(c->k, stask_of(c, x), node, &f);
	if (f.way == FOLD_UNIT) {
		TRY(operand_value(c, x, n->arg[0], n->arg[0], &value, e));
		TRY(find_node_frag(c, stask_of(c, x), node, &to, e));
		add_map(c, (struct frag_at){ to, 0 }, node, value);
		return OK;
	}
	if (f.way == FOLD_OWN)
		return select_own_lines(c, x, node, &f, identity_of(c, n->op, n->type), e);
	if (f.way == FOLD_LINES)
		return select_lines(c, x, node, &f, identity_of(c, n->op, n->type), e);
	return fold_in_registers(c, x, node, &f, e);
}
