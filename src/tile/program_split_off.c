/* A program in which the last step to a value, or the last few, are a task of its own.
 *
 * A value is complete only when its task is. If its last step, usually a conversion, is split off behind what others
 * need sooner, it can be done later, when the slot for the value is free. Threads that load by way of registers can issue
 * the loads of a tile early, and write them to shared memory when its slot is free. */
#include "tile/program_build.h"

/* Does the node compute an element of elements? */
static bool is_step(const struct program *p, const struct node *n)
{
	enum op_class c = op_class(n->op);

	if (n->task == NONE || p->tasks.v[n->task].kind != TASK_COMPUTE || !(c == CLASS_FMA || c == CLASS_ALU ||
	    c == CLASS_SFU || c == CLASS_CVT || c == CLASS_DIV))
		return false;
	for (int i = 0; i < node_arity(n); i++)
		if (p->nodes.v[n->arg[i]].op == OP_GET)
			return false;
	return true;
}

/* The number of the node's argument that its task has computed before it; NONE: there is none, or several, or others use it, too. */
static int step_before(const struct program *p, int node)
{
	const struct node *n = &p->nodes.v[node];
	int before = NONE;

	for (int i = 0; i < node_arity(n); i++) {
		const struct node *arg = &p->nodes.v[n->arg[i]];

		if (arg->task != n->task || arg->op == OP_CONST || arg->op == OP_INDEX)
			continue;
		if (before != NONE && before != n->arg[i])
			return NONE;
		before = n->arg[i];
	}
	for (int i = 0; before != NONE && i < p->nodes.n; i++)
		if (i != node && ints_hold(p->nodes.v[i].arg, node_arity(&p->nodes.v[i]), before))
			return NONE;
	return before;
}

/* Is the node an element-wise step whose argument was computed before it in the same task? */
static bool is_last_step(const struct program *p, const struct node *n)
{
	bool fed = false;

	for (int i = 0; i < node_arity(n); i++) {
		const struct node *arg = &p->nodes.v[n->arg[i]];

		fed |= arg->task == n->task && arg->op != OP_CONST && arg->op != OP_INDEX;
	}
	return fed && is_step(p, n);
}

/* The steps, the last one first; fewer, if no more of them follow each other. */
static int find_steps(const struct program *p, const struct split_off *x, int *steps)
{
	int n = 0;

	for (int i = x->node; i != NONE && n < x->steps && is_step(p, &p->nodes.v[i]); i = step_before(p, i))
		steps[n++] = i;
	return n;
}

/* Several steps, each of which uses alone what the one before it makes, and the task has others. */
static enum err_code check_steps(const struct program *p, const struct split_off *x, struct err *e)
{
	int steps[SPLIT_OFF_STEPS_MOST], n = find_steps(p, x, steps);
	const struct node *node = &p->nodes.v[x->node];
	const struct task *t = node->task == NONE || node->op == OP_LOAD ? NULL : &p->tasks.v[node->task];
	int others = 0;

	for (int i = 0; t && i < t->nodes.n; i++)
		others += p->nodes.v[t->nodes.v[i]].op != OP_CONST && p->nodes.v[t->nodes.v[i]].op != OP_INDEX &&
			!ints_hold(steps, n, t->nodes.v[i]);
	if (n < x->steps)
		return err_set(e, ERR_INPUT, x->loc, "only the last %d step%s to '%s' can be split off, not %d: each must be element-wise, "
			"and nothing else may use the result of the step before it", n, n == 1 ? "" : "s", x->value, x->steps);
	return others ? OK : err_set(e, ERR_INPUT, x->loc, "'%s' does nothing else than make '%s'", t->name, x->value);
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
		return x->steps > 1 ? err_set(e, ERR_INPUT, x->loc, "'%s' is loaded: that has one last step", x->value) :
			check_load(p, x, e);
	if (x->steps > 1)
		TRY(check_steps(p, x, e));
	else if (!is_last_step(p, n))
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
	int steps[SPLIT_OFF_STEPS_MOST] = { node }, n = x->steps > 1 ? find_steps(p, x, steps) : 1;

	last.puts = p->nodes.v[node].op == OP_LOAD;
	if (last.puts) {
		last.kind = TASK_COMPUTE;
		steps[0] = add_copy(a, p, node);
	} else {
		for (int i = 0; i < n; i++)
			take_out(a, &p->tasks.v[from], steps[i]);
	}
	last.name = arena_strdup(a, x->name);
	last.nodes.v = ARENA_ARRAY(a, n, int);
	last.nodes.n = last.nodes.cap = n;
	VEC_PUSH(a, &p->tasks, last);
	for (int i = 0; i < n; i++) {
		p->tasks.v[to].nodes.v[i] = steps[n - 1 - i];
		p->nodes.v[steps[i]].task = to;
	}
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
