/* A program in which the last step to a value is a task of its own.
 *
 * A value is complete only when its task is. If its last step, usually a conversion, is split off behind what others
 * need sooner, it can be done later, when the slot for the value is free. Threads that load by way of registers can issue
 * the loads of a tile early, and write them to shared memory when its slot is free. */
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

/* A load whose value is an index or a length is read where it is used, by threads that others have copied it for. */
static enum err_code check_load(const struct program *p, const struct split_off *x, struct err *e)
{
	bool used = false;

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		used |= has_index_values(n) && ints_hold(n->arg + op_arity(n->op), node_arity(n) - op_arity(n->op), x->node);
	}
	for (int i = 0; i < p->loops.n; i++)
		used |= p->loops.v[i].has_length && p->loops.v[i].length.value && index_value(&p->loops.v[i].length) == x->node;
	return !used ? OK : err_set(e, ERR_INPUT, x->loc, "'%s' is an index of other loads or stores, or a length: it cannot be "
		"kept in registers", x->value);
}

static enum err_code check_step(const struct program *p, const struct split_off *x, struct err *e)
{
	const struct node *n = &p->nodes.v[x->node];

	if (n->op == OP_LOAD && n->task != NONE)
		return check_load(p, x, e);
	if (!is_last_step(p, n))
		return err_set(e, ERR_INPUT, x->loc, "'%s' has no last step to split off: it is not made element "
			"by element from what its sTask has computed before", x->value);
	for (int i = 0; i < p->tasks.v[n->task].nodes.n; i++) {
		const struct node *user = &p->nodes.v[p->tasks.v[n->task].nodes.v[i]];

		if (ints_hold(user->arg, node_arity(user), x->node))
			return err_set(e, ERR_INPUT, x->loc, "'%s' goes on with '%s': it cannot be made "
				"later", p->tasks.v[n->task].name, x->value);
	}
	return OK;
}

static enum err_code check_split_off(const struct program *p, const struct split_off *x, struct err *e)
{
	TRY(check_step(p, x, e));
	return build_check_new_task(p, x->name, x->loc, e);
}

/* Adds a copy of what is loaded, which all that reads the load reads instead. Returns it. */
static int add_copy(struct arena *a, struct program *p, int load)
{
	int id = build_same_value(a, p, load);

	for (int i = 0; i < id; i++)
		for (int k = 0; k < LEN(p->nodes.v[i].arg); k++)
			if (p->nodes.v[i].arg[k] == load)
				p->nodes.v[i].arg[k] = id;
	return id;
}

/* Takes the node out of the task. */
static void take_out(struct arena *a, struct task *t, int node)
{
	int *kept = ARENA_ARRAY(a, t->nodes.n, int), n = 0;

	for (int i = 0; i < t->nodes.n; i++)
		if (t->nodes.v[i] != node)
			kept[n++] = t->nodes.v[i];
	t->nodes.v = kept;
	t->nodes.n = t->nodes.cap = n;
}

static void split_off(struct arena *a, struct program *p, const struct split_off *x)
{
	int from = p->nodes.v[x->node].task, to = p->tasks.n, node = x->node;
	struct task last = p->tasks.v[from];

	last.puts = p->nodes.v[node].op == OP_LOAD;
	if (last.puts) {
		last.kind = TASK_COMPUTE;
		node = add_copy(a, p, node);
	} else {
		take_out(a, &p->tasks.v[from], node);
	}
	last.name = arena_strdup(a, x->name);
	last.nodes.v = ARENA_ARRAY(a, 1, int);
	last.nodes.v[0] = node;
	last.nodes.n = last.nodes.cap = 1;
	VEC_PUSH(a, &p->tasks, last);
	p->nodes.v[node].task = to;
	build_insert(a, p, from, to, true);
}

enum err_code program_split_off(struct arena *a, const struct program *p, const struct split_off *split_offs, int n,
	const struct program **out, struct err *e)
{
	struct program *q = build_copy(a, p);

	for (int i = 0; i < n; i++) {
		TRY(check_split_off(q, &split_offs[i], e));
		split_off(a, q, &split_offs[i]);
	}
	*out = q;
	return OK;
}
