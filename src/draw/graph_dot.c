/* The sTask-graph for Graphviz. */
#include "draw/draw.h"
#include "draw/label.h"
#include "draw/units.h"

struct node_style {
	const char *shape, *style, *fill, *line;
};

static const struct node_style node_styles[] = {
	[TASK_LOAD] = { "invhouse", "filled", "#dcebf7", "#3f7fb5" },
	[TASK_MMA] = { "box", "filled,bold", "#fde3c8", "#d9791a" },
	[TASK_COMPUTE] = { "box", "filled,rounded", "#dff0d8", "#4d944a" },
	[TASK_STORE] = { "house", "filled", "#dcebf7", "#3f7fb5" },
};

/* Name, shape, and what it costs: "4.19 Mflop", "16 KiB". */
static void put_task(const struct graph *g, int task, int depth, struct buf *out)
{
	const struct stask *s = &g->tasks.v[task];
	const struct node_style *k = &node_styles[s->kind];
	struct unit_text cost = s->work.global_bytes > 0 ? unit_bytes(s->work.global_bytes) :
		unit_si(s->work.flops, "flop");

	buf_repeat(out, "\t", depth);
	buf_printf(out, "t%d [label=", task);
	text_put_quoted(out, arena_strf(out->arena, "%s\n%s\n%s", s->name, label_shape(out->arena, g, task), cost.s));
	buf_printf(out, ", shape=%s, style=\"%s\", fillcolor=\"%s\", color=\"%s\"];\n", k->shape,
		k->style, k->fill, k->line);
}

static void put_body(const struct graph *g, const struct item *items, int n, int depth, struct buf *out)
{
	for (int i = 0; i < n; i++) {
		int id = items[i].id;

		if (!items[i].is_loop) {
			for (int t = 0; t < g->tasks.n; t++)
				if (g->tasks.v[t].task == id)
					put_task(g, t, depth, out);
			continue;
		}
		buf_repeat(out, "\t", depth);
		buf_printf(out, "subgraph cluster_loop%d {\n", id);
		buf_repeat(out, "\t", depth + 1);
		buf_puts(out, "label=");
		text_put_quoted(out, label_loop_trips(out->arena, g, id));
		buf_puts(out, "; style=rounded; color=\"#888888\"; fontcolor=\"#666666\";\n");
		put_body(g, g->program->loops.v[id].body.v, g->program->loops.v[id].body.n, depth + 1, out);
		buf_repeat(out, "\t", depth);
		buf_puts(out, "}\n");
	}
}

static void put_phase(const struct graph *g, int phase, struct buf *out)
{
	const struct phase *p = &g->program->phases.v[phase];

	buf_printf(out, "\tsubgraph cluster_phase%d {\n\t\tlabel=", phase);
	text_put_quoted(out, label_tiles(out->arena, g, phase));
	buf_puts(out, "; labeljust=l; color=\"#cccccc\";\n");
	put_body(g, p->body.v, p->body.n, 2, out);
	buf_puts(out, "\t}\n");
}

/* Dependences within an iteration determine the ranks; the others do not. An sTask that reuses its own slot gets no
 * arrow for that. */
static void put_edge(const struct graph *g, int i, struct buf *out)
{
	static const char *const style[] = {
		[EDGE_FLOW] = "solid", [EDGE_ANTI] = "dashed", [EDGE_OUTPUT] = "dotted",
	};
	const struct edge *e = &g->edges.v[i];
	struct arena *a = out->arena;
	const char *label = label_edge_buffers(a, g, i);

	if (!label || (e->reuse && e->from == e->to))
		return;
	buf_printf(out, "\tt%d -> t%d [style=%s, label=", e->from, e->to, style[e->kind]);
	if (!edge_is_inner(e))
		label = arena_strf(a, "%s %s %s", label, label_distance(a, e), label_loop(a, g->program, e->loop));
	text_put_quoted(out, label);
	if (!edge_is_inner(e))
		buf_puts(out, ", constraint=false");
	if (e->kind != EDGE_FLOW)
		buf_puts(out, ", color=\"#aaaaaa\", fontcolor=\"#888888\"");
	else if (e->distance)
		buf_puts(out, ", color=\"#b03060\", fontcolor=\"#b03060\"");
	buf_puts(out, "];\n");
}

void draw_graph_dot(const struct graph *g, struct buf *out)
{
	buf_puts(out, "digraph ");
	text_put_quoted(out, g->program->name);
	buf_puts(out, " {\n\trankdir=TB; fontname=\"sans-serif\"; compound=true;\n"
		"\tnode [fontname=\"sans-serif\", fontsize=11];\n"
		"\tedge [fontname=\"sans-serif\", fontsize=9];\n");
	for (int i = 0; i < g->program->phases.n; i++)
		put_phase(g, i, out);
	for (int i = 0; i < g->edges.n; i++)
		put_edge(g, i, out);
	buf_puts(out, "}\n");
}
