#include "graph/graph.h"

#include <math.h>
#include <string.h>

#include "graph/repeats.h"

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

double graph_all_runs(const struct graph *g, const struct stask *s)
{
	double n = (double)g->grids[s->phase].total * graph_runs(g, s->loop, NONE);

	for (int l = s->loop; l != NONE; l = g->program->loops.v[l].parent)
		n *= loop_parts(&g->extents, l);
	return n;
}

int graph_common_loop(const struct graph *g, int a, int b)
{
	int loop = g->tasks.v[a].loop;

	while (!program_loop_within(g->program, g->tasks.v[b].loop, loop))
		loop = g->program->loops.v[loop].parent;
	return loop;
}

/* The share of the elements of an axis that are there, of those that its tiles have. Of a loop that begins or ends
 * where the tile, a value or a condition says, the mean count of its iterations is not so exact: all are taken. */
static double elements_there(const struct graph *g, int loop, int axis)
{
	const struct program *p = g->program;
	int64_t size = p->axes.v[axis].size;

	for (int l = loop; l != NONE; l = p->loops.v[l].parent) {
		const struct loop *x = &p->loops.v[l];

		for (int i = 0; i < x->naxes; i++)
			if (x->axis[i] == axis && (x->has_from || x->has_upto || x->has_length || x->keeps_steps))
				return 1;
	}
	return (double)size / (double)round_up(size, g->extents.tile[axis]);
}

/* The share of a product's flops that is of elements that are there. */
static double flops_there(const struct graph *g, const struct stask *s)
{
	const struct program *p = g->program;
	const struct node *n = stask_last_node(g, s);
	const struct node *x = &p->nodes.v[n->arg[0]];
	double share = 1;

	for (int i = 0; i < n->naxes; i++)
		share *= elements_there(g, s->loop, n->axis[i]);
	for (int i = 0; i < x->naxes; i++)
		if (!node_has_axis(n, x->axis[i]))
			share *= elements_there(g, s->loop, x->axis[i]);
	return share;
}

double graph_flops(const struct graph *g)
{
	double sum = 0;

	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *s = &g->tasks.v[i];
		double share, all;

		if (s->kind != TASK_MMA)
			continue;
		share = flops_there(g, s);
		for (int a = 0; a < g->program->axes.n; a++)	/* what several tiles do is counted once */
			share /= (double)graph_repeats(g, i, a);
		all = s->work.flops * graph_all_runs(g, s);
		sum += share < 1 ? round(all * share) : all;
	}
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

const struct node *graph_fetched_for(const struct graph *g, const struct stask *s, int *arg)
{
	const struct program *p = g->program;
	int value = g->buffers.v[s->writes.v[0]].node;

	for (int i = 0; i < p->nodes.n; i++)
		for (*arg = 0; p->nodes.v[i].op == OP_MMA && *arg < 2; ++*arg)
			if (p->nodes.v[i].arg[*arg] == value)
				return &p->nodes.v[i];
	BUG("'%s' fetches for no product", s->name);
}

int split_all(const struct program *p, const struct shaping *how, int axis, int *out)
{
	int n = 0;

	for (int t = 0; t < p->tasks.n; t++) {
		bool has = false;

		for (int i = 0; i < p->tasks.v[t].nodes.n; i++)
			has |= node_has_axis(&p->nodes.v[p->tasks.v[t].nodes.v[i]], axis);
		if (has && p->tasks.v[t].kind != TASK_LOAD)
			out[n++] = t;
	}
	for (int i = 0; how && i < how->nsplit_offs; i++)
		if (p->nodes.v[how->split_offs[i].node].op != OP_LOAD && node_has_axis(&p->nodes.v[how->split_offs[i].node], axis))
			out[n++] = p->tasks.n + i;
	for (int i = 0; how && i < how->nfetches; i++)
		if (node_has_axis(&p->nodes.v[p->nodes.v[how->fetches[i].node].arg[how->fetches[i].arg]], axis))
			out[n++] = p->tasks.n + how->nsplit_offs + i;
	return n;
}
