/* A program in which tasks make operands of products where these take them.
 *
 * Instructions of a synchronous matrix unit take operands from registers. What a task computes element by element from
 * shared memory, as weights of few bits that it converts, each thread can compute where it will multiply it: it reads what
 * it needs for the elements that its instructions take from it, and nothing is written to shared memory in between. */
#include "tile/program_build.h"

/* Does the task compute each element of its result from elements of other tasks' values alone? */
static bool is_elementwise(const struct program *p, const struct task *t)
{
	for (int i = 0; i < t->nodes.n; i++) {
		const struct node *n = &p->nodes.v[t->nodes.v[i]];
		enum op_class c = op_class(n->op);

		if (c == CLASS_REDUCE || c == CLASS_SCAN || c == CLASS_MMA || n->op == OP_AT || n->op == OP_EXPAND || n->op == OP_SET ||
		    n->op == OP_GET)
			return false;
	}
	return t->kind == TASK_COMPUTE && !t->puts && !t->fetches;
}

/* A node of another task that uses one of the task's nodes but the value, or the value as no operand of a product; NONE. */
static int other_user(const struct program *p, const struct task *t, int value)
{
	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		for (int k = 0; k < node_arity(n); k++) {
			const struct node *arg = &p->nodes.v[n->arg[k]];

			if (n->task == NONE || arg->task == NONE || &p->tasks.v[arg->task] != t || n->task == arg->task)
				continue;
			if (n->arg[k] != value || n->op != OP_MMA)
				return i;
		}
	}
	return NONE;
}

static enum err_code check_direct(const struct program *p, const struct direct *x, struct err *e)
{
	const struct node *n = &p->nodes.v[x->node];
	const struct task *t = n->task == NONE ? NULL : &p->tasks.v[n->task];
	bool multiplied = false;
	int other;

	if (!t || !is_elementwise(p, t))
		return err_set(e, ERR_INPUT, x->loc, "'%s' is not made element by element by a task, which could make it where "
			"products take it", x->value);
	for (int i = 0; i < p->nodes.n; i++)
		multiplied |= p->nodes.v[i].op == OP_MMA && p->nodes.v[i].task != n->task && ints_hold(p->nodes.v[i].arg, 2, x->node);
	if (!multiplied)
		return err_set(e, ERR_INPUT, x->loc, "'%s' is no operand of a product", x->value);
	other = other_user(p, t, x->node);
	if (other != NONE)
		return err_set(e, ERR_INPUT, x->loc, "'%s' makes more than operands of products: '%s' uses it, too", t->name,
			p->tasks.v[p->nodes.v[other].task].name);
	return OK;
}

enum err_code program_direct(struct arena *a, const struct program *p, const struct direct *directs, int n,
	const struct program **out, struct err *e)
{
	struct program *q = build_copy(a, p);

	for (int i = 0; i < n; i++) {
		TRY(check_direct(q, &directs[i], e));
		q->tasks.v[q->nodes.v[directs[i].node].task].direct = true;
	}
	*out = q;
	return OK;
}
