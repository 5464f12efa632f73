#include "graph/repeats.h"

#include "base/buf.h"

static bool is_divided(const struct graph *g, int phase, int axis)
{
	return extent_tiles(&g->extents, axis) > 1 && program_axis_role(g->program, phase, axis) == AXIS_GRID;
}

/* Is it a product that contracts all of the axis? It does not have it itself. */
static bool contracts_all(const struct graph *g, int node, int axis)
{
	const struct node *n = &g->program->nodes.v[node];

	return n->op == OP_MMA && !node_has_axis(n, axis) && extent_is_full(&g->extents, n->arg[0], axis);
}

int64_t graph_repeats(const struct graph *g, int task, int axis)
{
	const struct stask *s = &g->tasks.v[task];
	const struct task *t = &g->program->tasks.v[s->task];

	if (!is_divided(g, s->phase, axis))
		return 1;
	for (int i = 0; i < t->nodes.n; i++)
		if (extent_is_full(&g->extents, t->nodes.v[i], axis) || contracts_all(g, t->nodes.v[i], axis))
			return extent_tiles(&g->extents, axis);
	/* a store is a statement, whose value is another node */
	for (int i = 0; i < s->reads.n && s->kind == TASK_STORE; i++) {
		int node = g->buffers.v[s->reads.v[i]].node;

		if (node != NONE && extent_is_full(&g->extents, node, axis))
			return extent_tiles(&g->extents, axis);
	}
	return 1;
}

int graph_needing_task(const struct graph *g, int phase, int axis)
{
	const struct program *p = g->program;

	for (int i = 0; i < p->nodes.n; i++) {
		const struct node *n = &p->nodes.v[i];

		if (n->task == NONE || p->tasks.v[n->task].phase != phase || !p->tasks.v[n->task].nodes.n)
			continue;
		for (int k = 0; k < node_arity(n); k++)
			if (extent_is_full(&g->extents, n->arg[k], axis) &&
			    (!node_has_axis(n, axis) || node_goes_along(n, axis)))
				return n->task;
	}
	return NONE;
}

int graph_needs_all(const struct graph *g, int phase, int axis)
{
	return program_axis_role(g->program, phase, axis) == AXIS_GRID ? graph_needing_task(g, phase, axis) : NONE;
}

/* Adds ": 'x', 'y' are loaded 4 times" with what separates it from the part before; nothing if there is no such
 * sTask. The name of a split one stands for all its slices. */
static int add_part(const struct graph *g, int phase, int axis, enum task_kind kind, const char *verb, bool first,
	struct buf *out)
{
	int n = 0;

	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *s = &g->tasks.v[i];

		if (s->phase == phase && s->kind == kind && s->slice == 0 && graph_repeats(g, i, axis) > 1)
			buf_printf(out, "%s'%s'", n++ ? ", " : first ? ": " : "; ", g->program->tasks.v[s->task].name);
	}
	if (n)
		buf_printf(out, " %s %s %lld times", n > 1 ? "are" : "is", verb,
			(long long)extent_tiles(&g->extents, axis));
	return n;
}

/* Bytes that are loaded beyond what one tile of the axis would load. */
static double repeated_bytes(const struct graph *g, int phase, int axis)
{
	double bytes = 0;

	for (int i = 0; i < g->tasks.n; i++) {
		const struct stask *s = &g->tasks.v[i];
		double runs = graph_all_runs(g, s);

		if (s->phase == phase && s->kind == TASK_LOAD)
			bytes += s->work.global_bytes * runs * (1 - 1.0 / (double)graph_repeats(g, i, axis));
	}
	return bytes;
}

const char *graph_repeats_text(const struct graph *g, int phase, int axis, struct arena *a)
{
	static const struct { enum task_kind kind; const char *verb; } parts[] = { { TASK_LOAD, "loaded" },
		{ TASK_MMA, "multiplied" }, { TASK_COMPUTE, "computed" }, { TASK_STORE, "stored" } };
	int task = is_divided(g, phase, axis) ? graph_needing_task(g, phase, axis) : NONE, n = 0;
	struct buf text;

	if (task == NONE)
		return NULL;
	buf_init(&text, a);
	buf_printf(&text, "'%s' is divided among %lld tiles, each of which needs all of it for '%s'",
		g->program->axes.v[axis].name, (long long)extent_tiles(&g->extents, axis),
		g->program->tasks.v[task].name);
	for (int i = 0; i < LEN(parts); i++) {
		bool any = add_part(g, phase, axis, parts[i].kind, parts[i].verb, !n, &text);

		if (any && parts[i].kind == TASK_LOAD) {
			double mebi = repeated_bytes(g, phase, axis) / (1 << 20);

			buf_printf(&text, mebi < 1000 ? ", %.3g MiB more in all" : ", %.3g GiB more in all",
				mebi < 1000 ? mebi : mebi / 1024);
		}
		n += any;
	}
	return n ? text.text : NULL;
}
