#include "search/indices.h"

static bool reads_loads_alone(const struct graph *g, const struct stask *s)
{
	for (int i = 0; i < s->reads.n; i++) {
		int from = g->buffers.v[s->reads.v[i]].first;

		if (g->tasks.v[from].kind != TASK_LOAD && !computes_indices(g, from))
			return false;
	}
	return true;
}

bool computes_indices(const struct graph *g, int task)
{
	const struct stask *s = &g->tasks.v[task];
	bool used = false;

	if (s->kind != TASK_COMPUTE)
		return false;
	for (int i = 0; i < s->writes.n; i++) {
		if (g->buffers.v[s->writes.v[i]].carry != NONE)
			return false;
		for (int t = 0; t < g->tasks.n; t++) {
			if (!stask_reads(&g->tasks.v[t], s->writes.v[i]))
				continue;
			if (t == task || (g->tasks.v[t].kind != TASK_LOAD && !computes_indices(g, t)))
				return false;
			used = true;
		}
	}
	return used && reads_loads_alone(g, s);
}

bool loads_indices(const struct graph *g, int task)
{
	const struct stask *s = &g->tasks.v[task];

	for (int t = 0; t < g->tasks.n && s->kind == TASK_LOAD; t++)
		if (stask_reads(&g->tasks.v[t], s->writes.v[0]) &&
		    (computes_indices(g, t) || (g->tasks.v[t].kind == TASK_LOAD && g->tasks.v[t].loop == s->loop)))
			return true;
	return false;
}

bool has_indices(const struct graph *g)
{
	for (int t = 0; t < g->tasks.n; t++)
		if (loads_indices(g, t))
			return true;
	return false;
}
