/* Turns that nothing cuts: no end of an axis, and no condition that the program asks of each
 * element, as a causal mask. Turns in which no axis ends, though the program asks, are whole.
 *
 * Most turns of a loop are such, and asking costs them as much as computing. So a steady loop gets
 * a condition on its turn (role.h, region.unmasked) under which all of that holds for all elements of
 * the turn's sTasks: what was marked here, NUM_INTERIOR or a `where` that is clear; and another one
 * under which NUM_INTERIOR holds. Printers write the turns that are clear first, without what is marked,
 * then those that are whole, and then all that are left. They are found by the bounds of what is
 * compared over the tile, so a turn may be missed, but none is too many. */
#include "lower/body/body.h"

/* Least and greatest value over the tile at hand. */
struct bounds {
	const struct num *least, *most;
};

void body_clear_begin(struct body *c, int loop)
{
	const struct kregion *v = &c->lane->regions[loop + 1];

	c->clear = loop != NONE && lower_does(c->k, LEAN_CLEAR) && c->has_room ? N(c, 1) : NULL;
	c->whole = N(c, 1);
	for (int i = 0; i < v->steps.n; i++)
		if (v->steps.v[i].is_loop)	/* its text would stand there twice, too */
			c->clear = NULL;
}

void body_clear_end(struct body *c, struct role_op *o)
{
	o->u.region.unmasked = c->clear && !num_is(c->clear, 1) ? c->clear : NULL;
	o->u.region.interior = o->u.region.unmasked && !num_is(c->whole, 1) && !num_has_conjunct(c->whole, c->clear) ?
		c->whole : NULL;
	c->clear = NULL;
}

/* The turns so marked are clear only if this holds, which knows the turn, but not the element. */
static void ask(struct body *c, const struct num *when)
{
	if (!num_has_conjunct(c->clear, when))
		c->clear = NUM2(BOTH, c->clear, when);
}

/* ... and whole. */
static void ask_end(struct body *c, const struct num *when)
{
	ask(c, when);
	if (!num_has_conjunct(c->whole, when))
		c->whole = NUM2(BOTH, c->whole, when);
}

/* Where the axis stands in the iteration at hand, counted from the loop's turn. */
static const struct num *first_of(struct body *c, const struct stask *s, const struct shape2 *shape,
	int axis)
{
	const struct loop *l = &c->p->loops.v[s->loop];
	int64_t below = 1;

	for (int i = l->naxes - 1; i >= 0; i--) {
		int64_t tiles = extent_tiles(&c->g->extents, l->axis[i]);
		const struct num *at;

		if (l->axis[i] != axis || (shape->full_axes >> axis & 1)) {
			below *= tiles;
			continue;
		}
		at = DIV(ADD(V(c, VAR_FIRST, s->loop), c->iteration), N(c, below));
		return MUL(i ? MOD(at, N(c, tiles)) : at, N(c, c->g->extents.tile[axis]));
	}
	return body_lo(c, s, shape, axis);
}

/* Of an axis's index over the tile at hand; false: it counts words, of which nobody knows. */
static bool axis_bounds(struct body *c, const struct stask *s, const struct shape2 *shape, int axis,
	struct bounds *out)
{
	const struct axis *a = &c->p->axes.v[axis];
	bool whole = shape->full_axes >> axis & 1;

	out->least = first_of(c, s, shape, axis);
	out->most = ADD(out->least, N(c, (whole ? a->size : c->g->extents.tile[axis]) - 1));
	return a->packs == NONE;
}

const struct num *body_clear_end_of(struct body *c, const struct stask *s, const struct shape2 *shape,
	int axis, const struct num *inside)
{
	if (!c->clear || s->loop != c->region || c->p->axes.v[axis].packs != NONE)
		return inside;
	ask_end(c, NUM2(LE, ADD(first_of(c, s, shape, axis), N(c, c->g->extents.tile[axis])), N(c,
		c->p->axes.v[axis].size)));
	return num_mark_interior(c->a, inside);
}

const struct num *body_clear_index(struct body *c, const struct stask *s, const struct shape2 *shape,
	const struct index_expr *x, int64_t size, const struct num *within)
{
	const struct num *least = N(c, x->k), *most = least;

	if (!c->clear || s->loop != c->region)
		return within;
	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];
		struct bounds at;

		if (t->div != 1 || t->mod || !axis_bounds(c, s, shape, t->axis, &at))
			return within;
		least = ADD(least, MUL(N(c, t->coef), t->coef > 0 ? at.least : at.most));
		most = ADD(most, MUL(N(c, t->coef), t->coef > 0 ? at.most : at.least));
	}
	ask_end(c, NUM2(LE, N(c, 0), least));
	ask_end(c, NUM2(LT, most, N(c, size)));
	return num_mark_interior(c->a, within);
}

/* Of a whole number that is made of indices and constants by sums. */
static bool find_bounds(struct body *c, const struct stask *s, const struct shape2 *shape, int node,
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

/* When the condition holds for all elements of the tile at hand; NULL: nobody knows. */
static const struct num *holds_for_all(struct body *c, const struct stask *s,
	const struct shape2 *shape, int node)
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

bool body_clear_where(struct body *c, const struct stask *s, int node)
{
	const struct num *when;

	if (!c->clear || s->loop != c->region)
		return false;
	when = holds_for_all(c, s, &c->k->node_shape[node], c->p->nodes.v[node].arg[0]);
	if (when)
		ask(c, when);
	return when;
}
