#include "search/swaps.h"

#include <math.h>

#include "target/target.h"

/* What exchanging operands must save, of the padded size of a product, for a second search. */
#define LEAST_SAVED 0.05

/* The unit whose products are under way while their lane goes on; NULL. */
static const struct seu *async_products(const struct vdevice *d)
{
	for (int i = 0; i < d->nseus; i++)
		if (d->seu[i].kind == SEU_MATRIX && d->seu[i].async)
			return &d->seu[i];
	return NULL;
}

/* Does the node's task make it element by element of what is loaded? */
static bool is_made_of_loads(const struct program *p, const struct node *n)
{
	const struct task *t = n->task == NONE ? NULL : &p->tasks.v[n->task];

	if (!t || t->kind != TASK_COMPUTE)
		return false;
	for (int i = 0; i < t->nodes.n; i++) {
		const struct node *x = &p->nodes.v[t->nodes.v[i]];
		enum op_class c = op_class(x->op);

		if (c == CLASS_REDUCE || c == CLASS_SCAN || c == CLASS_MMA || x->op == OP_AT || x->op == OP_EXPAND || x->op == OP_SET ||
		    x->op == OP_GET)
			return false;
		for (int k = 0; k < node_arity(x); k++) {
			const struct node *from = &p->nodes.v[x->arg[k]];

			if (from->task != n->task && from->op != OP_LOAD && from->op != OP_CONST && from->op != OP_INDEX)
				return false;
		}
	}
	return true;
}

/* Elements of the product along the axes that operand `arg` alone has. */
static double extent_of(const struct program *p, const struct node *x, int arg)
{
	const struct node *operand = &p->nodes.v[x->arg[arg]], *other = &p->nodes.v[x->arg[!arg]];
	double n = 1;

	for (int i = 0; i < x->naxes; i++)
		if (node_has_axis(operand, x->axis[i]) && !node_has_axis(other, x->axis[i]))
			n *= (double)p->axes.v[x->axis[i]].size;
	return n;
}

static double padded(double n, int64_t step)
{
	return step > 1 ? ceil(n / (double)step) * (double)step : n;
}

/* Is the product, padded to instructions, clearly smaller with its operands exchanged? */
static bool fills_better(const struct program *p, const struct node *x, const struct seu *unit)
{
	double rows = extent_of(p, x, 0), columns = extent_of(p, x, 1);

	return padded(columns, unit->min_m) * padded(rows, unit->min_n) <
		(1 - LEAST_SAVED) * padded(rows, unit->min_m) * padded(columns, unit->min_n);
}

static bool is_swapped(const struct program *p, const struct node *x, const struct seu *unit)
{
	const struct node *first = &p->nodes.v[x->arg[0]], *second = &p->nodes.v[x->arg[1]];

	return first->op == OP_LOAD && dtype_bits(second->type) == 16 &&
		(second->op == OP_LOAD ? fills_better(p, x, unit) : is_made_of_loads(p, second));
}

int swaps_find(struct arena *a, const struct program *p, const struct vdevice *d, struct swap **out)
{
	const struct seu *unit = async_products(d);
	int n = 0;

	if (out)
		*out = ARENA_ARRAY(a, p->nodes.n, struct swap);
	for (int i = 0; i < p->nodes.n && unit && target_find(d); i++) {
		const struct node *x = &p->nodes.v[i];

		if (x->op != OP_MMA || x->task == NONE || !is_swapped(p, x, unit))
			continue;
		if (out)
			(*out)[n] = (struct swap){ i, p->tasks.v[x->task].name, NOWHERE };
		n++;
	}
	return n;
}
