#include "plan/phases.h"

bool plan_waits_first(const struct plan *p)
{
	return !p->launch.ready.n && p->launch.next != NEXT_START;
}

bool phase_awaits_tensor(const struct plan *p, int phase, int tensor)
{
	if (p->graph->program->tensors.v[tensor].role != TENSOR_INPUT)
		return true;
	for (int i = 0; i < p->launch.ready.n; i++)
		if (p->launch.ready.v[i] == tensor)
			return false;
	return phase == 0 || !plan_waits_first(p);
}

static bool loads_late(const struct plan *p, int phase, const struct node *n)
{
	return n->op == OP_LOAD && phase_awaits_tensor(p, phase, n->ref);
}

bool stask_loads_late(const struct plan *p, int task)
{
	const struct program *g = p->graph->program;
	const struct task *t = &g->tasks.v[p->graph->tasks.v[task].task];

	for (int i = 0; i < t->nodes.n; i++)
		if (loads_late(p, t->phase, &g->nodes.v[t->nodes.v[i]]))
			return true;
	return false;
}

/* Such nodes are of no task, hence of no phase. */
bool phase_is_bound_late(const struct plan *p, int phase)
{
	const struct program *g = p->graph->program;

	for (int i = 0; i < g->nodes.n; i++)
		if (g->nodes.v[i].task == NONE && loads_late(p, phase, &g->nodes.v[i]))
			return true;
	return false;
}

bool stask_waits_early(const struct plan *p, int task)
{
	const struct stask *s = &p->graph->tasks.v[task];

	return stask_loads_late(p, task) || (s->kind == TASK_STORE && s->loop != NONE) || phase_is_bound_late(p, s->phase);
}

bool phase_begins_early(const struct plan *p, int phase, const struct target *t)
{
	const struct graph *g = p->graph;
	bool loads = false;

	for (int i = 0; i < g->tasks.n; i++) {
		if (g->tasks.v[i].phase != phase)
			continue;
		if (stask_waits_early(p, i))
			return false;
		loads |= g->tasks.v[i].kind == TASK_LOAD;
	}
	return phase > 0 && loads && t->phases_overlap;
}

int phases_launched(const struct plan *p, const struct target *t)
{
	int n = 0;

	for (int i = 0; i < p->graph->program->phases.n; i++)
		n += !phase_begins_early(p, i, t);
	return n;
}

int phases_launched_least(const struct graph *g, const struct target *t)
{
	const struct plan usual = { .graph = g };

	return phases_launched(&usual, t);
}
