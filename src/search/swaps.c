#include "search/swaps.h"

#include "target/target.h"

/* Has the device products that are under way while their lane goes on? */
static bool has_async_products(const struct vdevice *d)
{
	bool has = false;

	for (int i = 0; i < d->nseus; i++)
		has |= d->seu[i].kind == SEU_MATRIX && d->seu[i].async;
	return has;
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

static bool is_swapped(const struct program *p, const struct node *x)
{
	const struct node *first = &p->nodes.v[x->arg[0]], *second = &p->nodes.v[x->arg[1]];

	return first->op == OP_LOAD && dtype_bits(second->type) == 16 && is_made_of_loads(p, second);
}

int swaps_find(struct arena *a, const struct program *p, const struct vdevice *d, struct swap **out)
{
	int n = 0;

	if (out)
		*out = ARENA_ARRAY(a, p->nodes.n, struct swap);
	for (int i = 0; i < p->nodes.n && has_async_products(d) && target_find(d); i++) {
		const struct node *x = &p->nodes.v[i];

		if (x->op != OP_MMA || x->task == NONE || !is_swapped(p, x))
			continue;
		if (out)
			(*out)[n] = (struct swap){ i, p->tasks.v[x->task].name, NOWHERE };
		n++;
	}
	return n;
}
