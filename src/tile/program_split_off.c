/* A program in which the last step to a value is a task of its own.
 *
 * A value is complete only when its task is. If its last step, usually a conversion, is split off behind what others
 * need sooner, it can be done later, when the slot for the value is free. */
#include "tile/program_build.h"

/* Is the node an element-wise step whose argument was computed before it in the same task? */
static bool is_last_step(const struct program *p, const struct node *n)
{
	enum op_class c = op_class(n->op);
	bool fed = false;

	if (n->task == NONE || p->tasks.v[n->task].kind != TASK_COMPUTE || !(c == CLASS_FMA || c == CLASS_ALU ||
	    c == CLASS_SFU || c == CLASS_CVT || c == CLASS_DIV))
		return false;
	for (int i = 0; i < node_arity(n); i++) {
		const struct node *arg = &p->nodes.v[n->arg[i]];

		if (arg->op == OP_GET)
			return false;
		fed |= arg->task == n->task && arg->op != OP_CONST && arg->op != OP_INDEX;
	}
	return fed;
}

static enum err_code check_split_off(const struct program *p, const struct split_off *x, struct err *e)
{
	const struct node *n = &p->nodes.v[x->node];

	if (!is_last_step(p, n))
		return err_set(e, ERR_INPUT, x->loc, "'%s' has no last step to split off: it is not made element "
			"by element from what its sTask has computed before", x->value);
	for (int i = 0; i < p->tasks.v[n->task].nodes.n; i++) {
		const struct node *user = &p->nodes.v[p->tasks.v[n->task].nodes.v[i]];

		if (ints_hold(user->arg, node_arity(user), x->node))
			return err_set(e, ERR_INPUT, x->loc, "'%s' goes on with '%s': it cannot be made "
				"later", p->tasks.v[n->task].name, x->value);
	}
	if (program_find_task(p, x->name) != NONE)
		return err_set(e, ERR_INPUT, x->loc, "program '%s' has a task '%s' already", p->name, x->name);
	return check_name("task", x->name, x->loc, e);
}

/* The list with one more behind `after`. */
static void insert(struct arena *a, struct item **v, int *n, int after, int task)
{
	struct item *more = ARENA_ARRAY(a, *n + 1, struct item);
	int at = 0;

	for (int i = 0; i < *n; i++) {
		more[at++] = (*v)[i];
		if (!(*v)[i].is_loop && (*v)[i].id == after)
			more[at++] = (struct item){ .id = task };
	}
	*v = more;
	*n = at;
}

static void split_off(struct arena *a, struct program *p, const struct split_off *x)
{
	int from = p->nodes.v[x->node].task, to = p->tasks.n, n = 0;
	struct task *t = &p->tasks.v[from], last = *t;
	int *kept = ARENA_ARRAY(a, t->nodes.n, int);

	for (int i = 0; i < t->nodes.n; i++)
		if (t->nodes.v[i] != x->node)
			kept[n++] = t->nodes.v[i];
	t->nodes.v = kept;
	t->nodes.n = t->nodes.cap = n;
	last.name = arena_strdup(a, x->name);
	last.nodes.v = ARENA_ARRAY(a, 1, int);
	last.nodes.v[0] = x->node;
	last.nodes.n = last.nodes.cap = 1;
	VEC_PUSH(a, &p->tasks, last);
	p->nodes.v[x->node].task = to;
	if (last.loop == NONE)
		insert(a, &p->phases.v[last.phase].body.v, &p->phases.v[last.phase].body.n, from, to);
	else
		insert(a, &p->loops.v[last.loop].body.v, &p->loops.v[last.loop].body.n, from, to);
}

enum err_code program_split_off(struct arena *a, const struct program *p, const struct split_off *split_offs, int n,
	const struct program **out, struct err *e)
{
	struct program *q = ARENA_NEW(a, struct program);

	*q = *p;
	q->nodes.v = arena_copy(a, p->nodes.v, (size_t)p->nodes.n, sizeof(*p->nodes.v));
	q->tasks.v = arena_copy(a, p->tasks.v, (size_t)p->tasks.n, sizeof(*p->tasks.v));
	q->tasks.cap = p->tasks.n;
	q->loops.v = arena_copy(a, p->loops.v, (size_t)p->loops.n, sizeof(*p->loops.v));
	q->phases.v = arena_copy(a, p->phases.v, (size_t)p->phases.n, sizeof(*p->phases.v));
	for (int i = 0; i < n; i++) {
		TRY(check_split_off(q, &split_offs[i], e));
		split_off(a, q, &split_offs[i]);
	}
	*out = q;
	return OK;
}
