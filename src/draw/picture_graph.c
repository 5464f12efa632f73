/* The sTask-graph as boxes and lines, from top to bottom. */
#include <math.h>

#include "draw/label.h"
#include "draw/layers.h"
#include "draw/panel.h"
#include "draw/units.h"

enum {
	COLUMN = 9, BOX = 62, BETWEEN = 46, PAD = 16, HEAD = 26,
	NAME_SIZE = 15, LINE_SIZE = 12, BACK_WIDTH = 22,
	WRITTEN = 340,			/* most width for what an sTask writes */
};

struct graph_picture {
	struct picture *p;
	struct sketch s;
	const struct graph *g;
	const uint8_t *ink;
	enum theme theme;
	double x, y;			/* of the first layer's left box */
	double *top;			/* by layer */
	double w;
};

/* "→ k 32 KiB": what an sTask writes. */
static const char *written_text(struct picture *p, const struct graph *g, int task)
{
	const struct stask *t = &g->tasks.v[task];
	struct buf b = buf_new(p->arena);

	for (int i = 0; i < t->writes.n; i++) {
		const struct buffer *x = &g->buffers.v[t->writes.v[i]];

		buf_printf(&b, "%s%s %s", b.len ? ", " : "→ ", x->name, unit_bytes((double)x->bytes).s);
	}
	if (!b.len && t->kind == TASK_STORE)
		buf_printf(&b, "%s", unit_bytes(t->work.global_bytes).s);
	return b.text;
}

static double box_pixels(struct picture *p, const struct graph *g, int task)
{
	double w = picture_width(g->tasks.v[task].name, NAME_SIZE, true);

	w = fmax(w, picture_width(label_shape(p->arena, g, task), LINE_SIZE, false));
	w = fmax(w, fmin(picture_width(written_text(p, g, task), LINE_SIZE, false), WRITTEN));
	return w + 22;
}

static bool arrange(struct graph_picture *d, int columns)
{
	struct sketch *s = &d->s;
	int n = 0;

	layout_init(&s->layout, d->p->arena);
	for (int i = 0; i < d->g->tasks.n; i++) {
		if (s->layer[i] == NONE)
			continue;
		s->node[i] = layout_add(&s->layout, i, s->layer[i], (int)ceil(box_pixels(d->p, d->g, i) / COLUMN));
		n++;
	}
	if (!n || n > LAYOUT_NODES_MAX)
		return false;
	for (int i = 0; i < d->g->edges.n; i++)
		if (sketch_is_flow(s, &d->g->edges.v[i]))
			layout_join(&s->layout, s->node[d->g->edges.v[i].from], s->node[d->g->edges.v[i].to]);
	return layout_arrange(&s->layout, columns);
}

static double node_x(const struct graph_picture *d, const struct layout_node *n)
{
	return d->x + n->x * COLUMN;
}

static double node_middle(const struct graph_picture *d, const struct layout_node *n)
{
	return node_x(d, n) + n->width * COLUMN / 2.0;
}

static void draw_frames(struct graph_picture *d)
{
	for (int i = 0; i < d->s.frames.n; i++) {
		const struct frame *f = &d->s.frames.v[i];
		double in = f->depth * (PAD + 4.0), top = d->top[f->first] - HEAD - 4 + 6.0 * f->depth;
		double h = d->top[f->last] + BOX + PAD - 4 - top - 4.0 * f->depth;

		picture_rect(d->p, d->x - (d->s.depth + 0.5) * (PAD + 4) + in, top, d->w + 2 * ((d->s.depth + 0.5) *
			(PAD + 4) - in), h, f->depth % 2 ? INK_PAPER : INK_PANEL, INK_LINE)->round = 6;
		picture_text(d->p, d->x - (d->s.depth + 0.5) * (PAD + 4) + in + 10, top + 16, ANCHOR_LEFT, 13,
			INK_FAINT, label_loop_trips(d->p->arena, d->g, f->loop));
	}
}

/* A smooth line from the bottom of one layer to the top of the next. */
static void draw_link(struct graph_picture *d, const struct layout_link *l, int ink)
{
	const struct layout_node *from = &d->s.layout.nodes.v[l->from], *to = &d->s.layout.nodes.v[l->to];
	double x0 = node_middle(d, from), x1 = node_middle(d, to), y0 = d->top[from->layer] + BOX;
	double y1 = d->top[to->layer] - (to->passing ? 0 : 5);
	enum { STEPS = 16 };
	struct point v[STEPS + 1];

	for (int i = 0; i <= STEPS; i++) {
		double t = (double)i / STEPS, e = t * t * (3 - 2 * t);

		v[i] = (struct point){ x0 + (x1 - x0) * e, y0 + (y1 - y0) * t };
	}
	picture_path(d->p, v, STEPS + 1, false, INK_NONE, ink)->width = 1.6;
	if (to->passing)
		picture_line(d->p, x1, y1, x1, y1 + BOX, ink, 1.6);
	else
		picture_head(d->p, x1, y1 + 5, 0, 1, 9, ink);
}

/* Values that are read in a later iteration: dashed lines upward, right of the boxes. Returns how many. */
static int draw_carried(struct graph_picture *d)
{
	const struct layout_node *nodes = d->s.layout.nodes.v;
	int backs = 0;

	for (int i = 0; i < d->g->edges.n; i++) {
		const struct edge *e = &d->g->edges.v[i];
		const char *buffers;
		const struct layout_node *from, *to;
		double x, y0, y1;

		if (d->s.layer[e->to] == NONE || d->s.layer[e->from] == NONE || e->kind != EDGE_FLOW ||
		    edge_is_inner(e) || e->reuse)
			continue;
		buffers = label_edge_buffers(d->p->arena, d->g, i);
		if (!buffers)
			continue;
		from = &nodes[d->s.node[e->from]];
		to = &nodes[d->s.node[e->to]];
		x = d->x + d->w + PAD + 24 + BACK_WIDTH * backs++;
		y0 = d->top[from->layer] + BOX * 0.7;
		y1 = d->top[to->layer] + BOX * 0.3;
		picture_path(d->p, (struct point[]){ { node_x(d, from) + from->width * COLUMN, y0 }, { x, y0 },
			{ x, y1 }, { node_x(d, to) + to->width * COLUMN + 6, y1 } }, 4, false, INK_NONE,
			INK_BOUND)->dash = 5;
		picture_head(d->p, node_x(d, to) + to->width * COLUMN, y1, -1, 0, 9, INK_BOUND);
		picture_text(d->p, x + 4, (y0 + y1) / 2 + 14 * (backs % 2 ? -0.5 : 0.5), ANCHOR_LEFT,
			LINE_SIZE, INK_BOUND, picture_fit(d->p, arena_strf(d->p->arena, "%s %s",
			label_distance(d->p->arena, e), buffers), LINE_SIZE, 130));
	}
	return backs;
}

static void draw_boxes(struct graph_picture *d)
{
	for (int i = 0; i < d->g->tasks.n; i++) {
		const struct layout_node *n;
		double x, y, w;
		int on;

		if (d->s.layer[i] == NONE)
			continue;
		n = &d->s.layout.nodes.v[d->s.node[i]];
		x = node_x(d, n);
		y = d->top[n->layer];
		w = n->width * COLUMN;
		on = picture_on(d->theme, d->ink[i]);
		picture_rect(d->p, x, y, w, BOX, d->ink[i], INK_PAPER)->round = 6;
		picture_bold(d->p, x + w / 2, y + 19, ANCHOR_MIDDLE, NAME_SIZE, on, d->g->tasks.v[i].name);
		picture_text(d->p, x + w / 2, y + 37, ANCHOR_MIDDLE, LINE_SIZE, on,
			picture_fit(d->p, label_shape(d->p->arena, d->g, i), LINE_SIZE, w - 8));
		picture_text(d->p, x + w / 2, y + 53, ANCHOR_MIDDLE, LINE_SIZE, on,
			picture_fit(d->p, written_text(d->p, d->g, i), LINE_SIZE, w - 8));
	}
}

static double draw_phase(struct graph_picture *d, int phase, double y)
{
	struct sketch *s = &d->s;
	double most;
	int backs;

	sketch_init(s, d->p->arena, d->g, phase);
	if (!arrange(d, (PICTURE_WIDTH_MAX - 500) / COLUMN)) {
		picture_text(d->p, MARGIN, y + 20, ANCHOR_LEFT, TEXT, INK_FAINT,
			"too many sTasks to be drawn: graph:table() lists them");
		return y + 40;
	}
	d->w = s->layout.width * COLUMN;
	d->x = MARGIN + (s->depth + 0.5) * (PAD + 4);
	d->top = ARENA_ARRAY(d->p->arena, s->nlayers, double);
	for (int i = 0; i < s->nlayers; i++) {
		for (int f = 0; f < s->frames.n; f++)
			y += (s->frames.v[f].first == i) * HEAD + (i > 0 && s->frames.v[f].last == i - 1) * 6;
		d->top[i] = y;
		y += BOX + BETWEEN;
	}
	draw_frames(d);
	backs = draw_carried(d);
	for (int i = 0; i < s->layout.links.n; i++)
		draw_link(d, &s->layout.links.v[i], INK_LINE);
	draw_boxes(d);
	most = d->x + d->w + (s->depth + 0.5) * (PAD + 4) + (backs ? 24 + BACK_WIDTH * backs + 140 : 0) + MARGIN;
	d->p->width = fmax(d->p->width, most);
	return y - BETWEEN + PAD;
}

static double draw_legend(struct picture *p, double y)
{
	static const char *const kinds[] = { "copies in", "products", "element-wise", "copies out" };
	double x = MARGIN;

	for (int i = 0; i < INK_KINDS; i++) {
		picture_rect(p, x, y - 12, 22, 15, ink_of_task(i, 0, 0), INK_NONE)->round = 3;
		picture_text(p, x + 28, y, ANCHOR_LEFT, 13, INK_FAINT, kinds[i]);
		x += 48 + picture_width(kinds[i], 13, false);
	}
	picture_line(p, x, y - 5, x + 28, y - 5, INK_BOUND, 1)->dash = 5;
	picture_text(p, x + 34, y, ANCHOR_LEFT, 13, INK_FAINT, "read so many iterations later");
	picture_text(p, MARGIN, y + 20, ANCHOR_LEFT, 13, INK_FAINT, "· summed over; → what it writes, and its size");
	p->width = fmax(p->width, x + 34 + picture_width("read so many iterations later", 13, false) + MARGIN);
	return y + 20;
}

void picture_graph(struct picture *p, const struct graph *g, const struct picture_options *o)
{
	struct graph_picture *d = ARENA_NEW(p->arena, struct graph_picture);
	const char *title, *line;
	int64_t tiles = 0;
	struct buf b;
	double y;

	o = picture_begin(p, o);
	*d = (struct graph_picture){ .p = p, .g = g, .theme = o->theme, .ink = task_inks(p->arena, g) };
	for (int i = 0; i < g->program->phases.n; i++)
		tiles += g->grids[i].total;
	buf_init(&b, p->arena);
	for (int i = 0; i < g->program->axes.n; i++)
		if (g->tiling.extent[i])
			buf_printf(&b, "%s%s=%lld", b.len ? ", " : "", g->program->axes.v[i].name,
				(long long)g->tiling.extent[i]);
	line = arena_strf(p->arena, "sTask-graph, tile {%s}, %s tiles", b.len ? b.text : "", unit_count(tiles).s);
	title = o->title ? o->title : program_text(p->arena, g->program);
	p->width = o->width;
	y = MARGIN + TITLE + TEXT * 1.7 + TEXT * 1.4 + 14;
	for (int i = 0; i < g->program->phases.n; i++) {
		if (g->program->phases.n > 1) {
			picture_bold(p, MARGIN, y + 8, ANCHOR_LEFT, TEXT, INK_TEXT, arena_strf(p->arena,
				"phase %s", g->program->phases.v[i].name));
			y += 24;
		}
		y = draw_phase(d, i, y) + 16;
	}
	y = draw_legend(p, y + 12);
	p->width = fmax(p->width, 560);
	picture_top(p, title, 1, &line);
	p->height = fmax(y + MARGIN, o->height);
}
