/* Facts about a program's axes, found by looking through its nodes, tensors and loops (axis_use.h). */
#include "search/axis_use.h"

#include <math.h>

#include "base/base.h"

static double tensor_bytes(const struct program *p, const struct tensor *t)
{
	double bits = dtype_bits(t->type);

	for (int i = 0; i < t->rank; i++)
		bits *= (double)p->axes.v[t->dim[i]].size;
	return bits / 8;
}

/* Do neighbouring elements of the axis lie next to each other along dimension d of the tensor? The tensor is declared
 * with the axis there, or some load or store has the axis as its index. */
static bool lies_along(const struct program *p, int tensor, int d, int axis)
{
	if (p->tensors.v[tensor].dim[d] == axis)
		return true;
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if ((n->op != OP_LOAD && n->op != OP_STORE) || n->task == NONE || n->ref != tensor)
			continue;
		for (int k = 0; k < n->index[d].n; k++)
			if (n->index[d].term[k].axis == axis && n->index[d].term[k].coef == 1 &&
			    n->index[d].term[k].div == 1)
				return true;
	}
	return false;
}

/* A few numbers for each row are contiguous along the rows, but what matters are the rows themselves. */
static bool is_contiguous(const struct program *p, int axis)
{
	double most = 0, last = 0;

	for (int i = 0; i < p->tensors.n; i++) {
		const struct tensor *t = &p->tensors.v[i];
		double bytes = tensor_bytes(p, t);

		for (int d = 0; d < t->rank; d++) {
			if (!lies_along(p, i, d, axis))
				continue;
			most = fmax(most, bytes);
			if (d == t->rank - 1)
				last = fmax(last, bytes);
		}
	}
	return last > 0 && last >= most;
}

struct axis_use axis_use_of(const struct program *p, int axis)
{
	struct axis_use u = { 0 };

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->op != OP_MMA || n->task == NONE)
			continue;
		u.row |= node_has_axis(n, axis) && node_has_axis(&p->nodes.v[n->arg[0]], axis);
		u.column |= node_has_axis(n, axis) && node_has_axis(&p->nodes.v[n->arg[1]], axis);
		u.contracted |= !node_has_axis(n, axis) && node_has_axis(&p->nodes.v[n->arg[0]], axis);
	}
	u.contiguous = is_contiguous(p, axis);
	for (int l = 0; l < p->loops.n; l++)
		u.looped |= ints_hold(p->loops.v[l].axis, p->loops.v[l].naxes, axis);
	return u;
}

bool has_mma(const struct program *p)
{
	for (int i = 0; i < p->nodes.n; i++)
		if (p->nodes.v[i].op == OP_MMA)
			return true;
	return false;
}

bool axis_has_role(const struct program *p, int axis, enum axis_role role)
{
	for (int ph = 0; ph < p->phases.n; ph++)
		if (program_axis_role(p, ph, axis) == role)
			return true;
	return false;
}

bool axis_is_reduced(const struct program *p, int axis)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->task != NONE && op_class(n->op) == CLASS_REDUCE && n->ref == axis && !program_reduces_tile(p, n, axis) &&
		    program_axis_role(p, p->tasks.v[n->task].phase, axis) == AXIS_GRID)
			return true;
	}
	return false;
}

bool axis_is_contracted_again(const struct program *p, int axis)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->task != NONE && n->op == OP_MMA && !node_has_axis(n, axis) && node_has_axis(&p->nodes.v[n->arg[0]], axis) &&
		    !program_reduces_tile(p, n, axis) &&
		    program_axis_role(p, p->tasks.v[n->task].phase, axis) == AXIS_GRID)
			return true;
	}
	return false;
}
