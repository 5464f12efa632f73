#include "search/indices.h"

enum {
	INDICES_BYTES = 512,		/* that one warp computes; of more, the lanes that compute tiles have more threads */
	STEPS = 4,			/* sTasks one behind the other from a load to a load; longer ways are not followed */
};

/* Does the sTask compute a few values out of nothing but what loads bring, or such sTasks compute? */
static bool computes_from_loads(const struct graph *g, int task, int steps)
{
	const struct stask *s = &g->tasks.v[task];

	if (s->kind != TASK_COMPUTE || !steps)
		return false;
	for (int i = 0; i < s->writes.n; i++)
		if (g->buffers.v[s->writes.v[i]].carry != NONE || g->buffers.v[s->writes.v[i]].bytes > INDICES_BYTES)
			return false;
	for (int i = 0; i < s->reads.n; i++) {
		int from = g->buffers.v[s->reads.v[i]].first;

		if (from == task || (g->tasks.v[from].kind != TASK_LOAD && !computes_from_loads(g, from, steps - 1)))
			return false;
	}
	return true;
}

static bool makes_indices(const struct graph *g, int task, int steps)
{
	const struct stask *s = &g->tasks.v[task];

	for (int i = 0; i < s->writes.n && steps; i++)
		for (int t = 0; t < g->tasks.n; t++)
			if (t != task && stask_reads(&g->tasks.v[t], s->writes.v[i]) &&
			    (g->tasks.v[t].kind == TASK_LOAD || (computes_from_loads(g, t, STEPS) && makes_indices(g, t, steps - 1))))
				return true;
	return false;
}

bool computes_indices(const struct graph *g, int task)
{
	return computes_from_loads(g, task, STEPS) && makes_indices(g, task, STEPS);
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
