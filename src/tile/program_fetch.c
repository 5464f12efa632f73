/* A program in which operands of products are handed on by tasks of their own.
 *
 * A synchronous product fetches its operands from shared memory itself, step by step, and waits for them. If a task fetches
 * them, a plan can say when: while the product of the iteration before is under way. */
#include "tile/program_build.h"

struct program *build_copy(struct arena *a, const struct program *p)
{
	struct program *q = ARENA_NEW(a, struct program);

	*q = *p;
	q->nodes.v = arena_copy(a, p->nodes.v, (size_t)p->nodes.n, sizeof(*p->nodes.v));
	q->nodes.cap = p->nodes.n;
	q->tasks.v = arena_copy(a, p->tasks.v, (size_t)p->tasks.n, sizeof(*p->tasks.v));
	q->tasks.cap = p->tasks.n;
	q->loops.v = arena_copy(a, p->loops.v, (size_t)p->loops.n, sizeof(*p->loops.v));
	q->phases.v = arena_copy(a, p->phases.v, (size_t)p->phases.n, sizeof(*p->phases.v));
	return q;
}

int build_same_value(struct arena *a, struct program *p, int value)
{
	struct node n = p->nodes.v[value];

	n.op = OP_CAST;
	n.arg[0] = value;
	n.arg[1] = n.arg[2] = n.ref = NONE;
	n.index = NULL;
	n.partial = 0;
	VEC_PUSH(a, &p->nodes, n);
	return p->nodes.n - 1;
}

enum err_code build_check_new_task(const struct program *p, const char *name, struct srcloc loc, struct err *e)
{
	if (program_find_task(p, name) != NONE)
		return err_set(e, ERR_INPUT, loc, "program '%s' has a task '%s' already", p->name, name);
	return check_name("task", name, loc, e);
}

static void insert(struct arena *a, struct item **v, int *n, int next_to, int task, bool behind)
{
	struct item *more = ARENA_ARRAY(a, *n + 1, struct item);
	int at = 0;

	for (int i = 0; i < *n; i++) {
		bool here = !(*v)[i].is_loop && (*v)[i].id == next_to;

		if (here && !behind)
			more[at++] = (struct item){ .id = task };
		more[at++] = (*v)[i];
		if (here && behind)
			more[at++] = (struct item){ .id = task };
	}
	*v = more;
	*n = at;
}

void build_insert(struct arena *a, struct program *p, int next_to, int task, bool behind)
{
	const struct task *t = &p->tasks.v[next_to];

	if (t->loop == NONE)
		insert(a, &p->phases.v[t->phase].body.v, &p->phases.v[t->phase].body.n, next_to, task, behind);
	else
		insert(a, &p->loops.v[t->loop].body.v, &p->loops.v[t->loop].body.n, next_to, task, behind);
}

static enum err_code check_fetch(const struct program *p, const struct fetch *x, struct err *e)
{
	const struct node *product = &p->nodes.v[x->node], *operand = &p->nodes.v[product->arg[x->arg]];

	if (operand->task == NONE || operand->task == product->task)
		return err_set(e, ERR_INPUT, x->loc, "'%s' makes its operand of '%s' itself: it cannot be fetched before",
			p->tasks.v[product->task].name, x->value);
	return build_check_new_task(p, x->name, x->loc, e);
}

/* The new task's node is a conversion to the type that the value has. */
static void fetch(struct arena *a, struct program *p, const struct fetch *x)
{
	int product = p->nodes.v[x->node].task, to = p->tasks.n, n = build_same_value(a, p, p->nodes.v[x->node].arg[x->arg]);
	struct task t = { .name = arena_strdup(a, x->name), .kind = TASK_COMPUTE, .phase = p->tasks.v[product].phase,
		.loop = p->tasks.v[product].loop, .named = true, .fetches = true, .loc = p->tasks.v[product].loc };

	p->nodes.v[n].task = to;
	p->nodes.v[n].loc = t.loc;
	VEC_PUSH(a, &t.nodes, n);
	p->nodes.v[x->node].arg[x->arg] = n;
	VEC_PUSH(a, &p->tasks, t);
	build_insert(a, p, product, to, false);
}

enum err_code program_fetch(struct arena *a, const struct program *p, const struct fetch *fetches, int n,
	const struct program **out, struct err *e)
{
	struct program *q = build_copy(a, p);

	for (int i = 0; i < n; i++) {
		TRY(check_fetch(q, &fetches[i], e));
		fetch(a, q, &fetches[i]);
	}
	*out = q;
	return OK;
}
