/* Trip counts of loops, and the first indices of their axes in an iteration. */
#include "lower/select/lowering.h"

/* Least or greatest value of (axis / div) mod mod over the current tile, or over all of the axis. If its elements
 * cross a multiple of `mod`, the bounds are 0 and mod - 1. */
static const struct num *term_bound(struct lowering *c, const struct stask *s, int loop,
	const struct index_term *t, bool greatest)
{
	int64_t tile = c->g->extents.tile[t->axis];
	const struct num *least = axis_first(c, s, NULL, t->axis);
	const struct num *most = SUB(NUM2(MIN, ADD(least, N(c, tile)), axis_end(c, s, NULL, t->axis)), N(c, 1));
	const struct num *at;

	if (loop_bounded_by_all(&c->g->extents, loop, t->axis)) {
		tile = c->p->axes.v[t->axis].size;
		least = N(c, 0);
		most = SUB(axis_size(c, t->axis), N(c, 1));
	}

	least = DIV(least, N(c, t->div));
	most = DIV(most, N(c, t->div));
	at = greatest ? most : least;
	if (!t->mod)
		return at;
	at = MOD(at, N(c, t->mod));
	if (t->div % tile == 0 || t->mod % tile == 0)
		return at;		/* no tile crosses a multiple */
	return num_select(c->a, NUM2(EQ, DIV(least, N(c, t->mod)), DIV(most, N(c, t->mod))), at,
		N(c, greatest ? t->mod - 1 : 0));
}

/* Least or greatest value of a bound over the current tile. */
static const struct num *loop_bound(struct lowering *c, const struct stask *s, int loop, const struct index_expr *x,
	bool greatest)
{
	const struct num *sum = N(c, x->k);

	for (int i = 0; i < x->n; i++) {
		const struct index_term *t = &x->term[i];

		sum = ADD(sum, MUL(N(c, t->coef), term_bound(c, s, loop, t, (t->coef > 0) == greatest)));
	}
	return sum;
}

static const struct stask *any_task_in_loop(const struct lowering *c, int loop)
{
	for (int i = 0; i < c->g->tasks.n; i++)
		if (program_loop_within(c->p, c->g->tasks.v[i].loop, loop))
			return &c->g->tasks.v[i];
	BUG("loop %d is empty", loop);
}

static const struct num *length_node(struct lowering *c, const struct stask *s, int node);

/* An index on the way to a length: its axes have one index in a tile. */
static const struct num *length_index(struct lowering *c, const struct stask *s, const struct index_expr *x)
{
	const struct num *at = tensor_index(c, s, x, NULL, false);

	if (!x->value)
		return at;
	return x->n || x->k ? ADD(length_node(c, s, index_value(x)), at) : length_node(c, s, index_value(x));
}

/* An element of a tensor; 0 outside of it. */
static const struct num *length_element(struct lowering *c, const struct stask *s, const struct node *n)
{
	const struct tensor *t = &c->p->tensors.v[n->ref];
	const struct num *at = N(c, 0), *inside = N(c, 1);

	for (int d = 0; d < t->rank; d++) {
		const struct num *i = length_index(c, s, &n->index[d]), *size = axis_size(c, t->dim[d]);

		at = d ? ADD(MUL(at, size), i) : i;
		if (index_may_leave(c, &n->index[d], t->dim[d]))
			inside = NUM2(BOTH, inside, NUM2(BOTH, NUM2(GE, i, N(c, 0)), NUM2(LT, i, size)));
	}
	at = num_element(c->a, n->ref, at);
	return num_select(c->a, inside, t->type == DT_BOOL ? NUM2(NE, at, N(c, 0)) : at, N(c, 0));
}

/* The value of a node that lengths are computed from, where a run begins. Recursion is as deep as the expression. */
static const struct num *length_node(struct lowering *c, const struct stask *s, int node)
{
	static const enum num_op ops[OP_COUNT] = { [OP_ADD] = NUM_ADD, [OP_SUB] = NUM_SUB, [OP_MUL] = NUM_MUL,
		[OP_MIN] = NUM_MIN, [OP_MAX] = NUM_MAX, [OP_LT] = NUM_LT, [OP_LE] = NUM_LE, [OP_EQ] = NUM_EQ,
		[OP_NE] = NUM_NE, [OP_AND] = NUM_BOTH, [OP_OR] = NUM_EITHER, [OP_SHR] = NUM_SHR };
	const struct node *n = &c->p->nodes.v[node];

	if (n->op == OP_CONST)
		return N(c, (int64_t)n->k);
	if (n->op == OP_INDEX)
		return axis_first(c, s, NULL, n->ref);
	if (n->op == OP_LOAD)
		return length_element(c, s, n);
	if (n->op == OP_WHERE)
		return num_select(c->a, length_node(c, s, n->arg[0]), length_node(c, s, n->arg[1]), length_node(c, s, n->arg[2]));
	if (n->op == OP_NEG)
		return num_make(c->a, NUM_SUB, N(c, 0), length_node(c, s, n->arg[0]));
	if (n->op == OP_NOT)
		return NUM2(EQ, length_node(c, s, n->arg[0]), N(c, 0));
	return num_make(c->a, n->op == OP_AND && n->type == DT_I32 ? NUM_AND : ops[n->op],
		length_node(c, s, n->arg[0]), length_node(c, s, n->arg[1]));
}

/* Where the axis of a loop with a length ends: the value plus an expression, from 0 to the axis's size. The value is
 * limited before it is added to, as it may be any i32. */
static const struct num *loop_end_num(struct lowering *c, const struct stask *s, const struct loop *l)
{
	const struct num *size = axis_size(c, l->axis[0]), *zero = N(c, 0);
	const struct num *value = length_node(c, s, index_value(&l->length));
	const struct num *at = tensor_index(c, s, &l->length, NULL, false);

	if (num_is(at, 0))
		return NUM2(MAX, zero, NUM2(MIN, size, value));
	return ADD(NUM2(MAX, SUB(zero, at), NUM2(MIN, SUB(size, at), value)), at);
}

void add_trips(struct lowering *c, int loop)
{
	const struct loop *l = &c->p->loops.v[loop];
	const struct stask *any = any_task_in_loop(c, loop);
	const struct num *tile = N(c, c->g->extents.tile[l->axis[0]]), *zero = N(c, 0);
	const struct num *first = zero, *end = N(c, 1);
	struct role_op *let;

	for (int i = 0; i < l->naxes; i++)
		end = MUL(end, axis_tiles(c, l->axis[i]));
	if (l->has_from)
		first = NUM2(MAX, zero, DIV(loop_bound(c, any, loop, &l->from, false), tile));
	if (l->has_upto) {
		const struct num *most = loop_bound(c, any, loop, &l->upto, true);

		end = NUM2(MIN, end, num_select(c->a, NUM2(LT, most, zero), zero, ADD(DIV(most, tile), N(c, 1))));
	}
	if (loop_parts(&c->g->extents, loop) > 1) {	/* a block makes its part of them */
		int64_t part = extent_tiles(&c->g->extents, l->axis[0]) / c->k->cluster;

		let = add_let(c, VAR_FIRST, loop, MUL(V(c, VAR_RANK, NONE), N(c, part)));
		add_let_more(c, let, VAR_TRIPS, loop, N(c, part));
		return;
	}
	let = add_let(c, VAR_FIRST, loop, first);
	if (l->has_length) {
		add_let_more(c, let, VAR_END, loop, loop_end_num(c, any, l));
		end = NUM2(MIN, end, DIV(ADD(V(c, VAR_END, loop), SUB(tile, N(c, 1))), tile));
	}
	add_let_more(c, let, VAR_TRIPS, loop, NUM2(MAX, zero, SUB(end, V(c, VAR_FIRST, loop))));
}

void add_loop_axes(struct lowering *c, int loop)
{
	const struct loop *l = &c->p->loops.v[loop];
	const struct num *at = ADD(V(c, VAR_FIRST, loop), V(c, VAR_I, loop));
	const struct num *below = N(c, 1);

	for (int i = l->naxes - 1; i >= 0; i--) {
		const struct num *tiles = axis_tiles(c, l->axis[i]);

		add_let(c, VAR_LO, l->axis[i], MUL(MOD(DIV(at, below), tiles), N(c, c->g->extents.tile[l->axis[i]])));
		below = MUL(below, tiles);
	}
}

void add_skipped_loop(struct lowering *c, int loop)
{
	struct role_body *outer = enter_body(c, &add_block(c, NULL)->u.region.body), *inner = c->body;

	add_trips(c, loop);
	for (int l = 0; l < c->p->loops.n; l++) {
		if (c->p->loops.v[l].parent != loop)
			continue;
		enter_loop(c, VAR_I, loop, N(c, 0), V(c, VAR_TRIPS, loop));
		add_loop_axes(c, loop);
		add_skipped_loop(c, l);
		leave_body(c, inner);
	}
	add_advance(c, VAR_BASE, loop, V(c, VAR_TRIPS, loop));
	leave_body(c, outer);
}
