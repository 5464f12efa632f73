#include "plan/phases.h"

static bool loads_stored(const struct program *p, const struct node *n)
{
	return n->op == OP_LOAD && p->tensors.v[n->ref].role != TENSOR_INPUT;
}

bool stask_loads_stored(const struct graph *g, int task)
{
	const struct task *t = &g->program->tasks.v[g->tasks.v[task].task];

	for (int i = 0; i < t->nodes.n; i++)
		if (loads_stored(g->program, &g->program->nodes.v[t->nodes.v[i]]))
			return true;
	return false;
}

bool phases_bound_loops(const struct graph *g)
{
	for (int i = 0; i < g->program->nodes.n; i++)
		if (g->program->nodes.v[i].task == NONE && loads_stored(g->program, &g->program->nodes.v[i]))
			return true;
	return false;
}

bool stask_waits_early(const struct graph *g, int task)
{
	const struct stask *s = &g->tasks.v[task];

	return stask_loads_stored(g, task) || (s->kind == TASK_STORE && s->loop != NONE) || phases_bound_loops(g);
}

bool phase_begins_early(const struct graph *g, int phase, const struct target *t)
{
	bool loads = false;

	for (int i = 0; i < g->tasks.n; i++) {
		if (g->tasks.v[i].phase != phase)
			continue;
		if (stask_waits_early(g, i))
			return false;
		loads |= g->tasks.v[i].kind == TASK_LOAD;
	}
	return phase > 0 && loads && t->phases_overlap;
}

int phases_launched(const struct graph *g, const struct target *t)
{
	int n = 0;

	for (int i = 0; i < g->program->phases.n; i++)
		n += !phase_begins_early(g, i, t);
	return n;
}
