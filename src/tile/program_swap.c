/* A program in which products have their operands exchanged.
 *
 * The rows of a matrix instruction are the first operand's, which some instructions can take out of registers. The result has the
 * same elements either way, and its axes have names, so only a plan says which operand comes first. */
#include "tile/program_build.h"

static enum err_code check_swap(const struct program *p, const struct swap *x, struct err *e)
{
	const struct node *n = &p->nodes.v[x->node];

	if (p->nodes.v[n->arg[0]].op == OP_EXPAND && p->nodes.v[n->arg[0]].task == n->task)
		return err_set(e, ERR_INPUT, x->loc, "'%s' expands its first operand, which its instruction has as rows alone", x->product);
	return OK;
}

/* The axes of the result, first those of the first operand. */
static void order_axes(const struct program *p, struct node *n)
{
	int axis[RANK_MAX], count = 0;

	for (int arg = 0; arg < 2; arg++)
		for (int i = 0; i < n->naxes; i++)
			if (node_has_axis(&p->nodes.v[n->arg[arg]], n->axis[i]))
				axis[count++] = n->axis[i];
	for (int i = 0; i < count; i++)
		n->axis[i] = axis[i];
}

enum err_code program_swap(struct arena *a, const struct program *p, const struct swap *swaps, int n, const struct program **out,
	struct err *e)
{
	struct program *q = build_copy(a, p);

	for (int i = 0; i < n; i++) {
		struct node *x = &q->nodes.v[swaps[i].node];
		int first = x->arg[0];

		TRY(check_swap(q, &swaps[i], e));
		x->arg[0] = x->arg[1];
		x->arg[1] = first;
		order_axes(q, x);
	}
	*out = q;
	return OK;
}
