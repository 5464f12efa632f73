#include "graph/graph.h"

#include <string.h>

void graph_add_edge(struct graph *g, struct edge e)
{
	int *end = &g->first_in[e.to];

	while (*end != NONE)
		end = &g->next_in.v[*end];
	*end = g->edges.n;
	VEC_PUSH(&g->arena, &g->edges, e);
	VEC_PUSH(&g->arena, &g->next_in, NONE);
}

int graph_find_task(const struct graph *g, const char *name)
{
	int i;

	FIND_FIRST(i, g->tasks.n, !strcmp(g->tasks.v[i].name, name));
	return i;
}

int graph_find_buffer(const struct graph *g, const char *name)
{
	int i;

	FIND_FIRST(i, g->buffers.n, !strcmp(g->buffers.v[i].name, name));
	return i;
}

bool graph_never_runs(const struct graph *g, int task)
{
	for (int l = g->tasks.v[task].loop; l != NONE; l = g->program->loops.v[l].parent)
		if (g->trips[l].most == 0)
			return true;
	return false;
}

double graph_runs(const struct graph *g, int loop, int outer)
{
	double n = 1;

	for (; loop != outer; loop = g->program->loops.v[loop].parent)
		n *= g->trips[loop].mean;
	return n;
}

int graph_common_loop(const struct graph *g, int a, int b)
{
	int loop = g->tasks.v[a].loop;

	while (!program_loop_within(g->program, g->tasks.v[b].loop, loop))
		loop = g->program->loops.v[loop].parent;
	return loop;
}

double graph_flops(const struct graph *g)
{
	double sum = 0;

	for (int i = 0; i < g->tasks.n; i++)
		if (g->tasks.v[i].kind == TASK_MMA)
			sum += g->tasks.v[i].work.flops * (double)g->grids[g->tasks.v[i].phase].total *
				graph_runs(g, g->tasks.v[i].loop, NONE);
	return sum;
}

double graph_bytes(const struct graph *g)
{
	double sum = 0;

	for (int i = 0; i < g->program->tensors.n; i++)
		sum += (double)dtype_bytes(g->program->tensors.v[i].type, (size_t)tensor_elements(g->program, i));
	return sum;
}

const char *edge_kind_name(enum edge_kind k)
{
	static const char *const names[] = { "flow", "anti", "output" };

	return names[k];
}

const char *task_kind_name(enum task_kind k)
{
	static const char *const names[] = { "load", "mma", "compute", "store" };

	return names[k];
}

int split_all(const struct program *p, const struct split_off *split_offs, int nsplit_offs, int axis, int *out)
{
	int n = 0;

	for (int t = 0; t < p->tasks.n; t++) {
		bool has = false;

		for (int i = 0; i < p->tasks.v[t].nodes.n; i++)
			has |= node_has_axis(&p->nodes.v[p->tasks.v[t].nodes.v[i]], axis);
		if (has && p->tasks.v[t].kind != TASK_LOAD)
			out[n++] = t;
	}
	for (int i = 0; i < nsplit_offs; i++)
		if (node_has_axis(&p->nodes.v[split_offs[i].node], axis))
			out[n++] = p->tasks.n + i;
	return n;
}
