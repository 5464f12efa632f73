#include "tile/length.h"

#include "tile/interp_row.h"

static double value_of(const struct program *p, int node, const int64_t *pos, const struct length_reader *r);

static double element_of(const struct program *p, const struct node *n, const int64_t *pos, const struct length_reader *r)
{
	const struct tensor *t = &p->tensors.v[n->ref];
	int64_t at = 0;

	for (int d = 0; d < t->rank; d++) {
		const struct index_expr *x = &n->index[d];
		int64_t size = p->axes.v[t->dim[d]].size, i = index_eval(x, pos);

		i += x->value ? (int64_t)value_of(p, index_value(x), pos, r) : 0;
		i = r->wraps ? floor_mod(i, size) : i;
		if (i < 0 || i >= size)
			return 0;
		at = at * size + i;
	}
	return r->element(r, n->ref, at);
}

/* Recursion is as deep as the expression, which is limited (program_length.c). */
static double value_of(const struct program *p, int node, const int64_t *pos, const struct length_reader *r)
{
	static const int64_t step[3] = { 0 };
	const struct node *n = &p->nodes.v[node];
	double value[3] = { 0 }, out;
	const double *arg[3] = { value, value + 1, value + 2 };

	if (n->op == OP_CONST)
		return n->k;
	if (n->op == OP_INDEX)
		return (double)pos[n->ref] + n->k;
	if (n->op == OP_LOAD)
		return element_of(p, n, pos, r);
	for (int i = 0; i < op_arity(n->op); i++)
		value[i] = value_of(p, n->arg[i], pos, r);
	row_apply(n->op, n->type, 1, &out, arg, step);
	return out;
}

int64_t length_value(const struct program *p, int loop, const int64_t *pos, const struct length_reader *r)
{
	return (int64_t)value_of(p, index_value(&p->loops.v[loop].length), pos, r);
}
