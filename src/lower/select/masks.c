/* Conditions that may hold for all elements of a tile. From bounds of what is compared follows a condition on the
 * iteration (struct hint) that implies the element's condition, which is marked so that pass/unmask.c can leave it
 * out. */
#include "lower/pass/pass.h"

/* Least and greatest value over the current tile. */
struct bounds {
	const struct num *least, *most;
};

static void add_hint(struct lowering *c, bool interior, const struct num *holds)
{
	VEC_PUSH(c->a, &c->point->hints, ((struct hint){ holds, interior }));
}

/* Is the sTask in the steady state of a loop that can be unmasked, or in the prologue? */
static bool is_in_unmaskable_loop(const struct lowering *c, const struct stask *s)
{
	return !c->keeps_conditions && c->point->region == s->loop && c->point->kind != ITERATION_LATE && can_unmask(c, s->loop);
}

/* First index of the axis in the current iteration, as an expression of the steady loop's counter. */
static const struct num *axis_first_in_steady(struct lowering *c, const struct stask *s, const struct shape2 *shape,
	int axis)
{
	const struct loop *l = &c->p->loops.v[s->loop];
	const struct num *below = N(c, 1);

	for (int i = l->naxes - 1; i >= 0; i--) {
		const struct num *tiles = axis_tiles(c, l->axis[i]), *at;

		if (l->axis[i] != axis || (shape->full_axes >> axis & 1)) {
			below = MUL(below, tiles);
			continue;
		}
		at = DIV(ADD(V(c, VAR_FIRST, s->loop), c->point->iteration), below);
		return MUL(i ? MOD(at, tiles) : at, N(c, c->g->extents.tile[axis]));
	}
	return axis_first(c, s, shape, axis);
}

/* Bounds of an axis's index over the current tile. False: unknown, as the axis counts packed words. */
static bool axis_bounds(struct lowering *c, const struct stask *s, const struct shape2 *shape, int axis,
	struct bounds *out)
{
	const struct axis *a = &c->p->axes.v[axis];
	bool full = shape->full_axes >> axis & 1;

	out->least = axis_first_in_steady(c, s, shape, axis);
	out->most = ADD(out->least, N(c, (full ? a->size : c->g->extents.tile[axis]) - 1));
	return a->packs == NONE;
}

/* The axis is ragged, so not a full one. */
const struct num *mark_axis_end(struct lowering *c, const struct stask *s, const struct shape2 *shape,
	int axis, const struct num *inside)
{
	if (!is_in_unmaskable_loop(c, s) || c->p->axes.v[axis].packs != NONE)
		return inside;
	add_hint(c, true, NUM2(LE, ADD(axis_first_in_steady(c, s, shape, axis), N(c, c->g->extents.tile[axis])),
		axis_end(c, s, shape, axis)));
	return num_mark_interior(c->a, inside);
}

const struct num *mark_index(struct lowering *c, const struct stask *s, const struct shape2 *shape,
	const struct index_expr *x, const struct num *size, const struct num *within)
{
	const struct num *least = N(c, x->k), *most = least;

	if (!is_in_unmaskable_loop(c, s))
		return within;
	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];
		struct bounds at;

		if (t->div != 1 || t->mod || !axis_bounds(c, s, shape, t->axis, &at))
			return within;
		least = ADD(least, MUL(N(c, t->coef), t->coef > 0 ? at.least : at.most));
		most = ADD(most, MUL(N(c, t->coef), t->coef > 0 ? at.most : at.least));
	}
	add_hint(c, true, NUM2(LE, N(c, 0), least));
	add_hint(c, true, NUM2(LT, most, size));
	return num_mark_interior(c->a, within);
}

/* Bounds of an integer that is a sum of indices and constants. False: it is not. */
static bool find_bounds(struct lowering *c, const struct stask *s, const struct shape2 *shape, int node,
	struct bounds *out)
{
	const struct node *n = &c->p->nodes.v[node];
	struct bounds x, y;

	if (dtype_is_float(n->type))
		return false;
	if (n->op == OP_CONST) {
		out->least = out->most = N(c, (int64_t)n->k);
		return true;
	}
	if (n->op == OP_INDEX)
		return axis_bounds(c, s, shape, n->ref, out);
	if ((n->op != OP_ADD && n->op != OP_SUB) || !find_bounds(c, s, shape, n->arg[0], &x) ||
	    !find_bounds(c, s, shape, n->arg[1], &y))
		return false;
	out->least = n->op == OP_ADD ? ADD(x.least, y.least) : SUB(x.least, y.most);
	out->most = n->op == OP_ADD ? ADD(x.most, y.most) : SUB(x.most, y.least);
	return true;
}

/* A condition under which the node's holds for all elements of the current tile; NULL: unknown. */
static const struct num *holds_for_all(struct lowering *c, const struct stask *s, const struct shape2 *shape, int node)
{
	const struct node *n = &c->p->nodes.v[node];
	const struct num *a, *b;
	struct bounds x, y;

	if (n->op == OP_AND || n->op == OP_OR) {
		a = holds_for_all(c, s, shape, n->arg[0]);
		b = holds_for_all(c, s, shape, n->arg[1]);
		if (a && b)
			return n->op == OP_AND ? NUM2(BOTH, a, b) : NUM2(EITHER, a, b);
		return n->op == OP_AND ? NULL : a ? a : b;
	}
	if ((n->op != OP_LT && n->op != OP_LE) || !find_bounds(c, s, shape, n->arg[0], &x) ||
	    !find_bounds(c, s, shape, n->arg[1], &y))
		return NULL;
	return n->op == OP_LT ? NUM2(LT, x.most, y.least) : NUM2(LE, x.most, y.least);
}

bool mark_where(struct lowering *c, const struct stask *s, int node)
{
	const struct num *when;

	if (!is_in_unmaskable_loop(c, s))
		return false;
	when = holds_for_all(c, s, &c->k->node_shape[node], c->p->nodes.v[node].arg[0]);
	if (when)
		add_hint(c, false, when);
	return when;
}
