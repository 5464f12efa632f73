/* Reductions and scans along an axis of a fragment. What is beyond the end of the axis takes
 * no part. */
#include "lower/body/body.h"

#include <math.h>

/* What joined with anything leaves it as it is. */
static const struct val *identity_of(struct body *c, enum op op, enum dtype t)
{
	bool most = op == OP_RMIN || op == OP_CUMMIN;

	if (op == OP_SUM || op == OP_CUMSUM)
		return val_const(c, DT_I32, 0);
	if (!dtype_is_float(t))
		return val_const(c, DT_I32, most ? INT32_MAX : INT32_MIN);
	return val_const(c, DT_F32, most ? HUGE_VAL : -HUGE_VAL);
}

/* The argument's element, or the identity where it is beyond the end. */
static enum err_code guarded(struct body *c, const struct kentry *x, const struct node *n,
	const struct frag *f, const struct val **out, struct err *e)
{
	const struct shape2 *shape = &c->k->node_shape[n->arg[0]];
	struct shape2 along = { .rows = 1, .cols = 1, .whole = shape->whole };
	struct frag part = *f;

	TRY(body_operand(c, x, n->arg[0], n->arg[0], out, e));
	/* only the side that is reduced has an end that matters */
	if (shape->ncol && shape->col[0] == n->ref) {
		along.col_share[along.ncol] = 1;
		along.col[along.ncol++] = n->ref;
		part.height = part.rows;
	} else {
		along.row_share[along.nrow] = 1;
		along.row[along.nrow++] = n->ref;
		part.width = part.cols;
	}
	*out = val_guard(c, body_inside(c, stask_of(c, x), &along, &part, ALL_AXES), *out,
		identity_of(c, n->op, n->type));
	return OK;
}

static enum err_code along(struct body *c, const struct kentry *x, int node, enum role_do what,
	bool rows, const struct frag *over, const struct val *value, struct err *e)
{
	const struct node *n = &c->p->nodes.v[node];
	const struct frag *to;
	struct role_op *o;

	TRY(body_node(c, stask_of(c, x), node, &to, e));
	o = body_op(c, what);
	o->u.reduce.over = over;
	o->u.reduce.to = to;
	o->u.reduce.op = n->op;
	o->u.reduce.value = value;
	o->u.reduce.zero = identity_of(c, n->op, n->type);
	o->u.reduce.along_rows = rows;
	o->u.reduce.scratch = c->lane->scratch;
	return OK;
}

/* The argument's fragment, which need be none of this sTask's. */
static enum err_code argument(struct body *c, const struct kentry *x, int arg,
	const struct frag **f, struct err *e)
{
	struct frag *new = ARENA_NEW(c->a, struct frag);

	*f = new;
	return body_node_frag(c, stask_of(c, x), arg, new, e);
}

enum err_code body_reduce(struct body *c, const struct kentry *x, int node, struct err *e)
{
	const struct node *n = &c->p->nodes.v[node];
	const struct shape2 *shape = &c->k->node_shape[n->arg[0]];
	const struct val *value;
	const struct frag *f;
	bool rows = !(shape->ncol == 1 && shape->col[0] == n->ref);

	TRY(argument(c, x, n->arg[0], &f, e));
	if (rows && (shape->nrow != 1 || shape->row[0] != n->ref))
		return body_not_lowered(n, e);
	TRY(guarded(c, x, n, f, &value, e));
	return along(c, x, node, DO_REDUCE, rows, f, value, e);
}

enum err_code body_scan(struct body *c, const struct kentry *x, int node, struct err *e)
{
	const struct node *n = &c->p->nodes.v[node];
	const struct shape2 *shape = &c->k->node_shape[n->arg[0]];
	const struct val *value;
	const struct frag *f;

	TRY(argument(c, x, n->arg[0], &f, e));
	if (shape->ncol != 1 || shape->col[0] != n->ref)
		return body_not_lowered(n, e);
	TRY(body_operand(c, x, n->arg[0], n->arg[0], &value, e));
	return along(c, x, node, DO_SCAN, false, f, value, e);
}
