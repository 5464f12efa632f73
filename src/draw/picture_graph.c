/* The sTask-graph as boxes and lines, from top to bottom. */
#include <math.h>

#include "draw/label.h"
#include "draw/layers.h"
#include "draw/panel.h"
#include "draw/units.h"
#include "draw/wires.h"

enum {
	PAD = 16, HEAD = 24, LEAVE = 10, ENTER = 28,
	NAME_SIZE = 15, LINE_SIZE = 12,
	WRITTEN = 340,			/* most width for what an sTask writes */
};

struct graph_picture {
	struct picture *p;
	struct sketch s;
	struct wires wires;
	const struct graph *g;
	const uint8_t *ink;
	enum theme theme;
	double x;			/* of the leftmost box */
	double *top;			/* by layer */
	double *frame_top;		/* by frame */
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

static double box_pixels(const struct graph_picture *d, int task)
{
	struct picture *p = d->p;
	const struct graph *g = d->g;
	double w = picture_width(g->tasks.v[task].name, NAME_SIZE, true);

	w = fmax(w, picture_width(label_shape(p->arena, g, task), LINE_SIZE, false));
	w = fmax(w, fmin(picture_width(written_text(p, g, task), LINE_SIZE, false), WRITTEN));
	return fmax(w + 22, wires_width(&d->wires, task)) + wires_own(&d->wires, task);
}

static bool arrange(struct graph_picture *d, int columns)
{
	struct sketch *s = &d->s;
	int n = 0;

	layout_init(&s->layout, d->p->arena);
	for (int i = 0; i < d->g->tasks.n; i++) {
		if (s->layer[i] == NONE)
			continue;
		s->node[i] = layout_add(&s->layout, i, s->layer[i], (int)ceil(box_pixels(d, i) / COLUMN));
		n++;
	}
	if (!n || n > LAYOUT_NODES_MAX)
		return false;
	for (int i = 0; i < d->g->edges.n; i++)
		if (sketch_is_flow(s, &d->g->edges.v[i]))
			layout_join(&s->layout, s->node[d->g->edges.v[i].from], s->node[d->g->edges.v[i].to]);
	return layout_arrange(&s->layout, columns);
}

static int frames_at(const struct sketch *s, int layer, bool end)
{
	int n = 0;

	for (int f = 0; f < s->frames.n; f++)
		n += (end ? s->frames.v[f].last : s->frames.v[f].first) == layer;
	return n;
}

/* Choose where layers, frames and tracks are, from y down; returns where the last layer ends. */
static double choose_heights(struct graph_picture *d, double y)
{
	struct sketch *s = &d->s;

	d->top = ARENA_ARRAY(d->p->arena, s->nlayers, double);
	d->frame_top = ARENA_ARRAY(d->p->arena, s->frames.n, double);
	for (int k = 0; k <= s->nlayers; k++) {
		struct wire_gap *gap = &d->wires.gap[k];
		int ends = k ? frames_at(s, k - 1, true) : 0;

		y += (k > 0) * LEAVE + (ends ? PAD + 6 * (ends - 1) : 0);
		gap->y = y + TRACK / 2.0;
		y += gap->ntracks * TRACK;
		if (k == s->nlayers)
			break;
		for (int f = 0; f < s->frames.n; f++) {
			if (s->frames.v[f].first != k)
				continue;
			d->frame_top[f] = y + 4;
			y += HEAD;
		}
		d->top[k] = y + (gap->parts.n ? ENTER : 8);
		y = d->top[k] + BOX;
	}
	return y;
}

/* Put the title of a frame between the lines that enter it: into the first gap in which it fits, or shortened into the
 * widest one. */
static void draw_title(struct graph_picture *d, const struct frame *f, double left, double right, double y)
{
	const char *title = label_loop_trips(d->p->arena, d->g, f->loop);
	const struct wire_gap *gap = &d->wires.gap[f->first];
	double want = picture_width(title, 13, false), best = left, space = 0;

	for (double x = left, end; x < right && space < want; x = end + 6) {
		end = right;
		for (int i = 0; i < gap->parts.n; i++)
			for (int j = 0; j < gap->parts.v[i].nto; j++)
				if (gap->parts.v[i].to_x[j] > x - 6)
					end = fmin(end, fmax(gap->parts.v[i].to_x[j] - 6, x));
		if (end - x > space) {
			best = x;
			space = end - x;
		}
		end += 6;
	}
	picture_text(d->p, best, y, ANCHOR_LEFT, 13, INK_FAINT, picture_fit(d->p, title, 13, space));
}

static void draw_frames(struct graph_picture *d)
{
	for (int i = 0; i < d->s.frames.n; i++) {
		const struct frame *f = &d->s.frames.v[i];
		double out = (d->s.depth + 0.5 - f->depth) * (PAD + 4.0), x = d->x - out, w = d->w + 2 * out;
		int inside = 0;

		for (int k = 0; k < d->s.frames.n; k++)
			inside += d->s.frames.v[k].last == f->last && d->s.frames.v[k].depth > f->depth;
		picture_rect(d->p, x, d->frame_top[i], w, d->top[f->last] + BOX + PAD - 4 + 6.0 * inside - d->frame_top[i],
			f->depth % 2 ? INK_PAPER : INK_PANEL, INK_LINE)->round = 6;
		draw_title(d, f, x + 10, x + w - 6, d->frame_top[i] + 16);
	}
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
		x = wires_node_x(&d->wires, d->s.node[i]);
		y = d->top[n->layer];
		w = wires_node_width(&d->wires, d->s.node[i]);
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
	double side;

	sketch_init(s, d->p->arena, d->g, phase);
	wires_init(&d->wires, d->p, s);
	if (!arrange(d, (PICTURE_WIDTH_MAX - 500) / COLUMN)) {
		picture_text(d->p, MARGIN, y + 20, ANCHOR_LEFT, TEXT, INK_FAINT,
			"too many sTasks to be drawn: graph:table() lists them");
		return y + 40;
	}
	side = (s->depth + 0.5) * (PAD + 4);
	d->w = s->layout.width * COLUMN;
	d->x = MARGIN + side;
	wires_route(&d->wires, d->x, d->x + d->w + side);
	y = choose_heights(d, y) + PAD;
	draw_frames(d);
	wires_draw(&d->wires, d->top);
	draw_boxes(d);
	d->p->width = fmax(d->p->width, d->x + d->w + side + d->wires.width + MARGIN);
	return y;
}

static double draw_legend(struct picture *p, double y)
{
	static const char *const kinds[] = { "copies in", "products", "element-wise", "copies out" };
	double x = MARGIN;

	for (int i = 0; i < INK_KINDS; i++) {
		for (int k = 0; k < 3; k++)
			picture_rect(p, x + 8 * k, y - 12, 6, 15, ink_of_task(i, k, 0), INK_NONE)->round = 2;
		picture_text(p, x + 28, y, ANCHOR_LEFT, 13, INK_FAINT, kinds[i]);
		x += 48 + picture_width(kinds[i], 13, false);
	}
	picture_line(p, x, y - 5, x + 28, y - 5, INK_BOUND, 1)->dash = 5;
	picture_text(p, x + 34, y, ANCHOR_LEFT, 13, INK_FAINT, "read so many iterations later");
	picture_text(p, MARGIN, y + 20, ANCHOR_LEFT, 13, INK_FAINT,
		"· summed over; → what it writes, and its size; at an arrow: what is read");
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
	p->width = fmax(o->width, picture_width(title, 18, true) + 2 * MARGIN + 2);
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
