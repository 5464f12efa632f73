/* The numbers that integers of a program should be below so that loads whose indices they make stay inside their
 * tensors: backward from each such index to what it is computed from; and from each length of a loop. Random inputs are
 * made so. */
#include "tile/program_build.h"

enum { PASSES = 4 };			/* backward, as one carry may follow from another */

/* By node and by carry; 0: there is no such number. */
struct index_ranges {
	const struct program *p;
	int64_t *node, *carry;
	bool *distinct;			/* by node: should its elements differ? */
	bool *indexes;			/* by node: does it make an index, and not only lengths? */
};

static void lower_to(int64_t *below, int64_t x)
{
	*below = *below ? min_i64(*below, x) : x;
}

/* The range that is left for the value: an axis's index may be added to it. */
static int64_t range_of_value(const struct program *p, const struct index_expr *x, int64_t size)
{
	int64_t lo[AXES_MAX] = { 0 }, hi[AXES_MAX], most;

	for (int a = 0; a < p->axes.n; a++)
		hi[a] = p->axes.v[a].size - 1;
	most = index_bounds(x, lo, hi).hi;
	return most > 0 && most < size ? size - most : size;
}

/* What the value of a length should be below: each length from 0 to the size of the axis occurs. */
static int64_t range_of_length(const struct program *p, const struct loop *l)
{
	int64_t lo[AXES_MAX] = { 0 }, hi[AXES_MAX];

	for (int a = 0; a < p->axes.n; a++)
		hi[a] = p->axes.v[a].size - 1;
	return max_i64(1, p->axes.v[l->axis[0]].size - index_bounds(&l->length, lo, hi).lo + 1);
}

/* The greatest value of a node that is made of constants and indices of axes; 0 if that is less, or not known. */
static int64_t greatest_of(const struct program *p, int node, int depth)
{
	const struct node *n = &p->nodes.v[node];

	if (n->op == OP_CONST && n->type == DT_I32)
		return max_i64(0, (int64_t)n->k);
	if (n->op == OP_INDEX)
		return p->axes.v[n->ref].size - 1;
	if (n->op == OP_MUL && n->type == DT_I32 && depth < LENGTH_DEPTH)
		return min_i64(INT32_MAX, greatest_of(p, n->arg[0], depth + 1) * greatest_of(p, n->arg[1], depth + 1));
	return 0;
}

/* What argument `arg` of a node should be below, if the node should be below x; 0: that does not matter. indexes: the node makes
 * an index. */
static int64_t range_of_argument(const struct program *p, const struct node *n, int arg, int64_t x, bool indexes)
{
	const struct node *other = op_arity(n->op) == 2 ? &p->nodes.v[n->arg[1 - arg]] : NULL;
	bool by_constant = other && other->op == OP_CONST && other->k >= 1 && other->k < x;

	switch ((int)n->op) {
	case OP_MUL:
		return by_constant ? ceil_div(x, (int64_t)other->k) : x;
	case OP_SHL:
		return arg == 0 && by_constant && other->k < 31 ? ((x - 1) >> (int)other->k) + 1 : 0;
	case OP_SHR:
		return arg == 0 && other->op == OP_CONST && other->k >= 0 && other->k < 31 ?
			x > INT32_MAX >> (int)other->k ? INT32_MAX : x << (int)other->k : 0;
	case OP_SUB:			/* what is left of a length behind those before it: each of them may get some */
		return arg == 0 && !indexes ? x + greatest_of(p, n->arg[1], 0) : x;
	case OP_WHERE:
		return arg ? x : 0;
	case OP_ADD: case OP_MIN: case OP_MAX: case OP_CAST: case OP_SET: case OP_RMAX: case OP_RMIN:
	case OP_AT:
		return x;
	}
	return 0;
}

static void spread(struct index_ranges *r, int node)
{
	const struct program *p = r->p;
	const struct node *n = &p->nodes.v[node];
	int64_t x = n->op == OP_SET ? r->carry[n->ref] : r->node[node];

	for (int d = 0; has_index_values(n) && d < p->tensors.v[n->ref].rank; d++)
		if (n->index[d].value) {
			r->indexes[index_value(&n->index[d])] = true;
			r->distinct[index_value(&n->index[d])] |= n->op == OP_STORE && !n->adds;
			lower_to(&r->node[index_value(&n->index[d])], range_of_value(p, &n->index[d],
				p->axes.v[p->tensors.v[n->ref].dim[d]].size));
		}
	if (!x)
		return;
	if (n->op == OP_GET)
		lower_to(&r->carry[n->ref], x);
	for (int i = 0; i < op_arity(n->op); i++) {
		int64_t y = range_of_argument(p, n, i, x, n->op == OP_SET || r->indexes[node]);

		if (!y)
			continue;
		lower_to(&r->node[n->arg[i]], y);
		r->distinct[n->arg[i]] |= r->distinct[node];
		r->indexes[n->arg[i]] |= n->op == OP_SET || r->indexes[node];
	}
}

void find_index_ranges(struct program *p)
{
	struct index_ranges r = { p, ARENA_ARRAY(&p->arena, p->nodes.n, int64_t),
		ARENA_ARRAY(&p->arena, p->carries.n, int64_t), ARENA_ARRAY(&p->arena, p->nodes.n, bool),
		ARENA_ARRAY(&p->arena, p->nodes.n, bool) };

	for (int i = 0; i < p->loops.n; i++)
		if (p->loops.v[i].has_length && p->loops.v[i].body.n)
			lower_to(&r.node[index_value(&p->loops.v[i].length)], range_of_length(p, &p->loops.v[i]));
	for (int pass = 0; pass < PASSES; pass++)
		for (int i = p->nodes.n - 1; i >= 0; i--)
			if (p->nodes.v[i].task != NONE || r.node[i])
				spread(&r, i);
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->op == OP_EXPAND && n->task != NONE && p->nodes.v[n->arg[1]].op == OP_LOAD)
			p->tensors.v[p->nodes.v[n->arg[1]].ref].index_distinct = true;
		if (n->op != OP_LOAD || !r.node[i] || r.node[i] > INT32_MAX || p->tensors.v[n->ref].type != DT_I32)
			continue;
		lower_to(&p->tensors.v[n->ref].index_below, r.node[i]);
		p->tensors.v[n->ref].index_distinct |= r.distinct[i];
	}
}
