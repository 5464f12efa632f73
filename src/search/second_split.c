#include "search/second_split.h"

#include "target/target.h"

enum { COLUMNS = 8 };			/* of a product come in steps of so many */

static bool is_undivided(const struct program *p, const struct split *first, int task)
{
	return p->tasks.v[task].kind != TASK_LOAD && !ints_hold(first->tasks, first->ntasks, task);
}

/* The product of the task, if it contracts the axis; NULL. */
static const struct node *contracting(const struct program *p, int task, int axis)
{
	const struct task *t = &p->tasks.v[task];

	for (int i = 0; i < t->nodes.n; i++) {
		const struct node *n = &p->nodes.v[t->nodes.v[i]];

		if (n->op == OP_MMA && node_has_axis(&p->nodes.v[n->arg[0]], axis) && !node_has_axis(n, axis))
			return n;
	}
	return NULL;
}

/* The first axis of the product's result of which each slice has complete instructions; NONE. */
static int divided_axis(const struct space *s, const struct choice *c, const struct node *mma)
{
	const struct program *p = s->program;
	int64_t rows = (int64_t)target_of(s->device)->frag.rows * c->warps;

	for (int i = 0; i < mma->naxes; i++) {
		int axis = mma->axis[i];
		int64_t extent = c->tiling.extent[axis] ? c->tiling.extent[axis] : p->axes.v[axis].size;

		if (extent % (c->ways * (node_has_axis(&p->nodes.v[mma->arg[0]], axis) ? rows : COLUMNS)) == 0)
			return axis;
	}
	return NONE;
}

static int carry_of(const struct node *n)
{
	return n->op == OP_GET || n->op == OP_SET || n->op == OP_MMA ? n->ref : NONE;
}

/* Does the task take a value that one of the tasks makes, or share a carry with it? */
static bool depends_on(const struct program *p, int task, const struct split *x)
{
	const struct task *t = &p->tasks.v[task];

	for (int i = 0; i < t->nodes.n; i++) {
		const struct node *n = &p->nodes.v[t->nodes.v[i]];

		for (int k = 0; k < node_arity(n); k++)
			if (ints_hold(x->tasks, x->ntasks, p->nodes.v[n->arg[k]].task))
				return true;
		for (int k = 0; k < p->nodes.n && carry_of(n) != NONE; k++)
			if (carry_of(&p->nodes.v[k]) == carry_of(n) && ints_hold(x->tasks, x->ntasks, p->nodes.v[k].task))
				return true;
	}
	return false;
}

bool second_split(const struct space *s, const struct choice *c, const struct split *first, int *tasks, struct split *out)
{
	const struct program *p = s->program;
	bool more = true;

	*out = (struct split){ .axis = NONE, .ways = c->ways, .tasks = tasks };
	for (int t = 0; t < p->tasks.n; t++) {
		const struct node *mma = is_undivided(p, first, t) ? contracting(p, t, first->axis) : NULL;

		if (mma && out->axis == NONE)
			out->axis = divided_axis(s, c, mma);
		if (mma && out->axis != NONE && node_has_axis(mma, out->axis))
			tasks[out->ntasks++] = t;
	}
	while (more) {
		more = false;
		for (int t = 0; t < p->tasks.n; t++)
			if (is_undivided(p, first, t) && !ints_hold(tasks, out->ntasks, t) && depends_on(p, t, out)) {
				tasks[out->ntasks++] = t;
				more = true;
			}
	}
	return out->ntasks > 0;
}
