#include "tile/index_values.h"

#include <string.h>

#include "tile/program_build.h"

/* Note that a value depends on the axis, and is the same for `run` indices in a row. */
static void note_axis(int64_t *runs, int axis, int64_t run)
{
	runs[axis] = runs[axis] ? min_i64(runs[axis], run) : run;
}

/* How many elements in a row of a sorted tensor are alike, about: all numbers below index_below are as frequent. */
static int64_t sorted_run(const struct program *p, const struct node *load)
{
	const struct tensor *t = &p->tensors.v[load->ref];
	const struct index_expr *last = t->rank ? &load->index[t->rank - 1] : NULL;

	if (!t->sorted || !t->index_below || last->n != 1 || last->term[0].coef != 1 || last->term[0].mod)
		return 1;
	return max_i64(1, p->axes.v[t->dim[t->rank - 1]].size / t->index_below) * last->term[0].div;
}

/* Note the axes on which a value depends; false if it depends on more: on what a loop has left in a carry. */
static bool add_axes_of(const struct program *p, int value, int depth, int64_t *runs)
{
	const struct node *n = &p->nodes.v[value];
	const struct tensor *t = n->op == OP_LOAD ? &p->tensors.v[n->ref] : NULL;

	if (n->op == OP_GET || n->op == OP_MMA || depth == LENGTH_DEPTH)
		return false;
	if (n->op == OP_INDEX)
		note_axis(runs, n->ref, 1);
	for (int k = 0; n->op == OP_AT && k < n->index[0].n; k++)
		note_axis(runs, n->index[0].term[k].axis, 1);
	for (int i = 0; t && i < t->rank; i++)
		for (int k = 0; k < n->index[i].n; k++)
			note_axis(runs, n->index[i].term[k].axis, i == t->rank - 1 ? sorted_run(p, n) : 1);
	for (int i = 0; i < node_arity(n); i++)
		if (!add_axes_of(p, n->arg[i], depth + 1, runs))
			return false;
	return true;
}

void index_value_axes(const struct program *p, const struct node *load, int64_t run[AXES_MAX])
{
	memset(run, 0, AXES_MAX * sizeof(*run));
	for (int i = op_arity(OP_LOAD); i < node_arity(load); i++)
		if (!add_axes_of(p, load->arg[i], 0, run))
			for (int a = 0; a < p->axes.n; a++)
				run[a] = 1;
}
