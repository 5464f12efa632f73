/* The sTask-graph as boxes and lines, from top to bottom. */
#include "draw/draw.h"
#include "draw/label.h"
#include "draw/layers.h"
#include "draw/pen.h"

static bool is_shown(const bool *shown, int task)
{
	return !shown || shown[task];
}

bool sketch_is_flow(const struct sketch *s, const struct edge *e)
{
	return e->kind == EDGE_FLOW && edge_is_inner(e) && s->layer[e->from] != NONE &&
		s->layer[e->to] != NONE && s->layer[e->from] < s->layer[e->to];
}

/* Layers of tasks[0..n), which are in program order, by the longest path of flow among them; the first layer is `base`.
 * Returns the first layer after them. */
static int layer_run(struct sketch *s, const int *tasks, int n, int base)
{
	const struct graph *g = s->g;
	int next = base;

	for (int i = 0; i < n; i++)
		s->layer[tasks[i]] = base;
	for (int i = 0; i < n; i++) {
		int t = tasks[i];

		for (int j = g->first_in[t]; j != NONE; j = g->next_in.v[j]) {
			const struct edge *e = &g->edges.v[j];

			if (e->from < t && e->kind == EDGE_FLOW && edge_is_inner(e) &&
			    s->layer[e->from] >= base && s->layer[e->from] >= s->layer[t])
				s->layer[t] = s->layer[e->from] + 1;
		}
		next = (int)max_i64(next, s->layer[t] + 1);
	}
	return next;
}

/* Move sTasks without a source among these, such as loads, down to just above their first reader. */
static void pull_down(struct sketch *s, const int *tasks, int n, int base, int end)
{
	const struct graph *g = s->g;

	for (int i = n - 1; i >= 0; i--) {
		int t = tasks[i], least = end;
		bool is_source = true;

		for (int j = 0; j < g->edges.n; j++) {
			const struct edge *e = &g->edges.v[j];

			if (!sketch_is_flow(s, e))
				continue;
			is_source &= e->to != t || s->layer[e->from] < base;
			if (e->from == t)
				least = (int)min_i64(least, s->layer[e->to]);
		}
		if (is_source && least - 1 > s->layer[t])
			s->layer[t] = least - 1;
	}
}

/* Layers of a body: runs of sTasks, and loops, one below the other. Returns the first layer after it. */
static int layer_body(struct sketch *s, const struct item *items, int n, int base, int depth)
{
	const struct graph *g = s->g;
	int *run = ARENA_ARRAY(s->arena, g->tasks.n, int), nrun = 0;

	for (int i = 0; i <= n; i++) {
		if (i < n && !items[i].is_loop) {
			for (int t = 0; t < g->tasks.n; t++)
				if (g->tasks.v[t].task == items[i].id && is_shown(s->shown, t))
					run[nrun++] = t;
			continue;
		}
		if (nrun) {
			int end = layer_run(s, run, nrun, base);

			pull_down(s, run, nrun, base, end);
			base = end;
			nrun = 0;
		}
		if (i < n) {
			const struct loop *l = &g->program->loops.v[items[i].id];
			int f = s->frames.n, end;

			VEC_PUSH(s->arena, &s->frames,
				((struct frame){ .loop = items[i].id, .first = base, .depth = depth }));
			end = layer_body(s, l->body.v, l->body.n, base, depth + 1);
			if (end == base) {
				s->frames.n = f;
				continue;
			}
			s->frames.v[f].last = end - 1;
			s->depth = (int)max_i64(s->depth, depth + 1);
			base = end;
		}
	}
	return base;
}

void sketch_init(struct sketch *s, struct arena *a, const struct graph *g, int phase, const bool *shown)
{
	const struct phase *p = &g->program->phases.v[phase];

	*s = (struct sketch){ .arena = a, .g = g, .phase = phase, .shown = shown };
	s->layer = ARENA_ARRAY(a, g->tasks.n, int);
	s->node = ARENA_ARRAY(a, g->tasks.n, int);
	for (int i = 0; i < g->tasks.n; i++)
		s->layer[i] = NONE;
	s->nlayers = layer_body(s, p->body.v, p->body.n, 0, 0);
}

/* Columns of a box: for its name, of which at most `most` are shown, and for the lines that end at it. */
static int box_width(const struct sketch *s, int task, int most)
{
	const struct graph *g = s->g;
	int in = 0, self = 0, name = (int)min_i64(text_width(g->tasks.v[task].name), most);

	for (int i = g->first_in[task]; i != NONE; i = g->next_in.v[i]) {
		const struct edge *e = &g->edges.v[i];

		in += sketch_is_flow(s, e);
		self |= e->from == task && e->kind == EDGE_FLOW && !e->reuse;
	}
	return (int)max_i64(name + 4 + 2 * self, in + 2);
}

/* Arrange boxes with names of at most `most` columns; false if they do not fit. */
static bool sketch_layout(struct sketch *s, int width, int most)
{
	const struct graph *g = s->g;

	layout_init(&s->layout, s->arena);
	for (int i = 0; i < g->tasks.n; i++)
		if (s->layer[i] != NONE)
			s->node[i] = layout_add(&s->layout, i, s->layer[i], box_width(s, i, most));
	for (int i = 0; i < g->edges.n; i++)
		if (sketch_is_flow(s, &g->edges.v[i]))
			layout_join(&s->layout, s->node[g->edges.v[i].from], s->node[g->edges.v[i].to]);
	return layout_arrange(&s->layout, width - 4 * s->depth);
}

/* False if it does not fit. */
static bool draw_sketch(const struct graph *g, int phase, const bool *shown, struct pen *pen)
{
	static const int most[] = { 40, 16, 10, 6 };
	struct sketch sketch, *s = &sketch;
	struct cells c;
	int n = 0;

	for (int t = 0; t < g->tasks.n; t++)
		n += g->tasks.v[t].phase == phase && is_shown(shown, t);
	if (n > LAYOUT_NODES_MAX)
		return false;
	sketch_init(s, pen->arena, g, phase, shown);
	for (int i = 0; i < LEN(most); i++) {
		if (!sketch_layout(s, pen->width, most[i]) || !sketch_route(s) || !sketch_draw(s, pen->width, &c))
			continue;
		cells_print(&c, pen->flags, pen->out);
		return true;
	}
	return false;
}

/* "mma_qk, +1 mma_pv": the sTasks whose values an sTask reads. */
static const char *sources(struct arena *a, const struct graph *g, int task, const bool *shown)
{
	struct buf b = buf_new(a);

	for (int i = g->first_in[task]; i != NONE; i = g->next_in.v[i]) {
		const struct edge *e = &g->edges.v[i];
		bool seen = false;

		for (int j = g->first_in[task]; j != i; j = g->next_in.v[j])
			seen |= g->edges.v[j].from == e->from && g->edges.v[j].kind == EDGE_FLOW &&
				g->edges.v[j].distance == e->distance && !g->edges.v[j].reuse;
		if (seen || e->kind != EDGE_FLOW || e->reuse || !is_shown(shown, e->from))
			continue;
		buf_puts(&b, b.len ? ", " : "");
		if (e->distance)
			buf_printf(&b, "%s ", label_distance(a, e));
		buf_puts(&b, g->tasks.v[e->from].name);
	}
	return b.text;
}

/* A list instead of boxes: the bodies in the order of the program. */
static void list_body(const struct graph *g, const struct item *items, int n, int indent, const bool *shown, struct pen *pen)
{
	struct arena *a = pen->arena;

	for (int i = 0; i < n; i++) {
		int id = items[i].id;

		if (items[i].is_loop) {
			pen_printf(pen, "%*s%s\n", indent, "", label_loop_trips(a, g, id));
			list_body(g, g->program->loops.v[id].body.v, g->program->loops.v[id].body.n, indent + 2, shown,
				pen);
			continue;
		}
		for (int t = 0; t < g->tasks.n; t++) {
			const char *from;

			if (g->tasks.v[t].task != id || !is_shown(shown, t))
				continue;
			from = sources(a, g, t, shown);
			buf_repeat(pen->out, " ", indent);
			pen_puts(pen, g->tasks.v[t].name, style_of_kind(g->tasks.v[t].kind));
			pen_puts(pen, *from ? " ← " : "", PLAIN);
			text_wrap(pen->out, from, indent + 3 + text_width(g->tasks.v[t].name),
				indent + 4, pen->width, pen->flags);
			pen_puts(pen, "\n", PLAIN);
		}
	}
}

/* Values for later iterations, which the drawing shows only as marks. */
static void list_carried(const struct graph *g, int phase, const bool *shown, struct pen *pen)
{
	static const struct column col[] = { { "from", ALIGN_LEFT, 12, 0 }, { "to", ALIGN_LEFT, 12, 0 },
		{ "distance", ALIGN_LEFT, 0, 0 }, { "loop", ALIGN_LEFT, 4, 2 }, { "buffers", ALIGN_LEFT, 8, 1 } };
	struct table t = table_new(pen->arena, col, LEN(col));

	for (int i = 0; i < g->edges.n; i++) {
		const struct edge *e = &g->edges.v[i];
		const char *buffers;

		if (g->tasks.v[e->to].phase != phase || e->kind != EDGE_FLOW || edge_is_inner(e) || e->reuse ||
		    !is_shown(shown, e->from) || !is_shown(shown, e->to))
			continue;
		buffers = label_edge_buffers(pen->arena, g, i);
		if (buffers)
			TABLE_ROW(&t, g->tasks.v[e->from].name, g->tasks.v[e->to].name, label_distance(pen->arena, e),
				label_loop(pen->arena, g->program, e->loop), buffers);
	}
	if (t.rows.n)
		pen_table(pen, "carried to a later iteration", &t);
}

/* For each shared buffer, the sTask that fills it and the sTasks that must have read it before it is filled again. */
static void list_rings(const struct graph *g, int phase, const bool *shown, struct pen *pen)
{
	static const struct column col[] = { { "buffer", ALIGN_LEFT, 12, 0 }, { "filled by", ALIGN_LEFT, 12, 0 },
		{ "each", ALIGN_LEFT, 4, 1 }, { "freed by", ALIGN_LEFT, 12, 0 } };
	struct table t = table_new(pen->arena, col, LEN(col));

	for (int i = 0; i < g->buffers.n; i++) {
		const struct buffer *b = &g->buffers.v[i];
		struct buf users = buf_new(pen->arena);

		if (b->phase != phase || b->scope != SCOPE_SHARED || b->first == NONE || !is_shown(shown, b->first))
			continue;
		for (int j = 0; j < g->edges.n; j++)
			if (g->edges.v[j].reuse && g->edges.v[j].buffer == i && g->edges.v[j].from != b->first)
				buf_printf(&users, "%s%s", users.len ? ", " : "", g->tasks.v[g->edges.v[j].from].name);
		TABLE_ROW(&t, b->name, g->tasks.v[b->first].name, label_loop(pen->arena, g->program, b->loop),
			users.text);
	}
	if (t.rows.n)
		pen_table(pen, "rings in shared memory", &t);
}

static bool phase_is_shown(const struct graph *g, int phase, const bool *shown)
{
	for (int t = 0; shown && t < g->tasks.n; t++)
		if (g->tasks.v[t].phase == phase && shown[t])
			return true;
	return !shown;
}

void draw_graph_part(const struct graph *g, const bool *shown, const struct draw_options *o, struct buf *out)
{
	struct pen pen = pen_new(o, out);
	size_t begin = out->len;

	for (int i = 0; i < g->program->phases.n; i++) {
		const struct phase *p = &g->program->phases.v[i];

		if (!phase_is_shown(g, i, shown))
			continue;
		if (g->program->phases.n > 1)
			pen_puts(&pen, arena_strf(pen.arena, "%s%s\n", out->len > begin ? "\n" : "", p->name), BOLD);
		if (!draw_sketch(g, i, shown, &pen))
			list_body(g, p->body.v, p->body.n, 0, shown, &pen);
		list_carried(g, i, shown, &pen);
		list_rings(g, i, shown, &pen);
	}
}

void draw_graph_layers(const struct graph *g, const struct draw_options *o, struct buf *out)
{
	draw_graph_part(g, NULL, o, out);
}
