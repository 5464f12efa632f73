/* The sTask-graph as boxes and lines, from top to bottom. */
#include <math.h>

#include "draw/label.h"
#include "draw/layers.h"
#include "draw/panel.h"
#include "draw/units.h"
#include "draw/wires.h"

enum {
	WRITTEN = 340,			/* most width for what an sTask writes */
	NEXT_GAP = 24,			/* between phases that are next to each other */
	LEAST_WIDTH = 560, LEGEND_GAP = 12, LEGEND_END = 14,
};

enum { LOOKS = 4 };

/* The usual one; one for slides, with names only; and others for slides of higher graphs. */
static const struct graph_look looks[LOOKS] = {
	{ .box = 62, .name = 15, .line = 12, .edge = 12, .track = 9, .leave = 10, .enter = 28, .head = 24, .pad = 16,
		.labels = true },
	{ .box = 26, .name = 14, .edge = 11.5, .track = 7, .leave = 6, .enter = 22, .head = 20, .pad = 10,
		.labels = true },
	{ .box = 22, .name = 13, .edge = 11.5, .track = 5, .leave = 3, .enter = 10, .head = 18, .pad = 7 },
	{ .box = 18, .name = 12.5, .edge = 11.5, .track = 4, .leave = 2, .enter = 9, .head = 16, .pad = 5 },
};

struct graph_picture {
	struct picture *p;
	struct sketch s;
	struct wires wires;
	const struct graph *g;
	const struct graph_look *look;
	const uint8_t *ink;
	enum theme theme;
	double left, x;			/* of the phase; of its leftmost box */
	double right;			/* of all phases */
	double more;			/* all but the frames and their titles is moved to the right by this */
	double *top;			/* by layer */
	double *frame_top;		/* by frame */
	double w;
	bool carried;			/* is a value drawn that is read in a later iteration? */
	bool drawn[INKS];		/* which colours are? */
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
	double w = picture_width(g->tasks.v[task].name, d->look->name, true);

	w = fmax(w, picture_width(label_shape(p->arena, g, task), d->look->line, false));
	w = fmax(w, fmin(picture_width(written_text(p, g, task), d->look->line, false), WRITTEN));
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

		y += (k > 0) * d->look->leave + (ends ? d->look->pad + 6 * (ends - 1) : 0);
		gap->y = y + d->look->track / 2;
		y += gap->ntracks * d->look->track;
		if (k == s->nlayers)
			break;
		for (int f = 0; f < s->frames.n; f++) {
			if (s->frames.v[f].first != k)
				continue;
			d->frame_top[f] = y + 4;
			y += d->look->head;
		}
		d->top[k] = y + (gap->parts.n ? d->look->enter : fmin(d->look->enter, 8));
		y = d->top[k] + d->look->box;
	}
	return y;
}

static const char *title_of(const struct graph_picture *d, const struct frame *f)
{
	return label_loop_trips(d->p->arena, d->g, f->loop);
}

/* How far the frame is left of column 0, and right of the last one. */
static double frame_side(const struct graph_picture *d, const struct frame *f)
{
	return (d->s.depth + 0.5 - f->depth) * (d->look->pad + 4.0);
}

/* The first gap between the lines that enter a frame in which its title fits, else the leftmost one. Returns its
 * width. */
static double title_gap(const struct graph_picture *d, const struct frame *f, double *x)
{
	double side = frame_side(d, f), left = d->x - side + 10, right = d->x + d->w + side + d->more - 6, first = 0;
	double want = picture_width(title_of(d, f), 13, false);
	const struct wire_gap *gap = &d->wires.gap[f->first];

	for (double from = left, end; from < right; from = end + 12) {
		end = right;
		for (int i = 0; i < gap->parts.n; i++)
			for (int j = 0; j < gap->parts.v[i].nto; j++)
				if (gap->parts.v[i].to_x[j] + d->more > from - 6)
					end = fmin(end, fmax(gap->parts.v[i].to_x[j] + d->more - 6, from));
		*x = from;
		if (end - from >= want)
			return end - from;
		first = from == left ? end - from : first;
	}
	*x = left;
	return first;
}

static void draw_frames(struct graph_picture *d)
{
	double x;

	/* make frames wider at the left where there is no space for a title */
	for (int i = 0; i < d->s.frames.n; i++)
		d->more += fmax(0, picture_width(title_of(d, &d->s.frames.v[i]), 13, false) + 1 -
			title_gap(d, &d->s.frames.v[i], &x));
	for (int i = 0; i < d->s.frames.n; i++) {
		const struct frame *f = &d->s.frames.v[i];
		double side = frame_side(d, f);
		int inside = 0;

		for (int k = 0; k < d->s.frames.n; k++)
			inside += d->s.frames.v[k].last == f->last && d->s.frames.v[k].depth > f->depth;
		picture_rect(d->p, d->x - side, d->frame_top[i], d->w + 2 * side + d->more,
			d->top[f->last] + d->look->box +
			fmax(d->look->pad - 4, 4) + 6.0 * inside - d->frame_top[i],
			f->depth % 2 ? INK_PAPER : INK_PANEL, INK_LINE)->round = 6;
		title_gap(d, f, &x);
		picture_text(d->p, x, d->frame_top[i] + fmax(d->look->head - 7, 13.5), ANCHOR_LEFT, 13, INK_FAINT,
			title_of(d, f));
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
		d->drawn[d->ink[i]] = true;
		picture_rect(d->p, x, y, w, d->look->box, d->ink[i], INK_PAPER)->round = 6;
		picture_bold(d->p, x + w / 2, y + (d->look->line > 0 ? 19 : d->look->box / 2 + d->look->name * 0.36),
			ANCHOR_MIDDLE,
			d->look->name, on, d->g->tasks.v[i].name);
		if (!(d->look->line > 0))
			continue;
		picture_text(d->p, x + w / 2, y + 37, ANCHOR_MIDDLE, d->look->line, on,
			picture_fit(d->p, label_shape(d->p->arena, d->g, i), d->look->line, w - 8));
		picture_text(d->p, x + w / 2, y + 53, ANCHOR_MIDDLE, d->look->line, on,
			picture_fit(d->p, written_text(d->p, d->g, i), d->look->line, w - 8));
	}
}

/* Draw a phase from d->left and y down; returns where it ends, and its right end in *right. */
static double draw_phase(struct graph_picture *d, int phase, double y, double *right)
{
	struct sketch *s = &d->s;
	double side;
	int first;

	sketch_init(s, d->p->arena, d->g, phase, NULL);
	wires_init(&d->wires, d->p, s, d->look);
	if (!arrange(d, (PICTURE_WIDTH_MAX - 500) / COLUMN)) {
		*right = d->left;
		picture_text(d->p, d->left, y + 20, ANCHOR_LEFT, TEXT, INK_FAINT,
			"too many sTasks to be drawn: graph:table() lists them");
		return y + 40;
	}
	side = (s->depth + 0.5) * (d->look->pad + 4);
	d->w = s->layout.width * COLUMN;
	d->x = d->left + side;
	d->more = 0;
	d->carried |= d->wires.backs.n > 0;
	wires_route(&d->wires, d->x, d->x + d->w + side);
	y = choose_heights(d, y) + d->look->pad;
	draw_frames(d);
	first = d->p->shapes.n;
	wires_draw(&d->wires, d->top);
	draw_boxes(d);
	picture_shift(d->p, first, d->more);
	*right = d->x + d->w + side + d->wires.width + d->more;
	return y;
}

/* Put an item of the legend where there is space; returns its left side. */
static double legend_next(const struct picture *p, double w, double *x, double *y)
{
	double at;

	if (*x > MARGIN && *x + w > p->width - MARGIN) {
		*x = MARGIN;
		*y += 20;
	}
	at = *x;
	*x += w + 20;
	return at;
}

static double draw_legend(const struct graph_picture *d, double y)
{
	static const char *const kinds[] = { "copies in", "products", "element-wise", "copies out" };
	static const char later[] = "read so many iterations later";
	struct picture *p = d->p;
	double x = MARGIN, at;
	const char *more;

	for (int i = 0; i < INK_KINDS; i++) {
		int ink[INK_HUES * INK_SHADES], n = 0;

		for (int k = 0; k < INK_HUES * INK_SHADES; k++)
			if (d->drawn[ink_of_task(i, k % INK_HUES, k / INK_HUES)])
				ink[n++] = ink_of_task(i, k % INK_HUES, k / INK_HUES);
		if (!n)
			continue;
		at = legend_next(p, 8 * n + 4 + picture_width(kinds[i], 13, false), &x, &y);
		for (int k = 0; k < n; k++)
			picture_rect(p, at + 8 * k, y - 12, 6, 15, ink[k], INK_NONE)->round = 2;
		picture_text(p, at + 8 * n + 4, y, ANCHOR_LEFT, 13, INK_FAINT, kinds[i]);
	}
	if (d->carried) {
		at = legend_next(p, 34 + picture_width(later, 13, false), &x, &y);
		picture_line(p, at, y - 5, at + 28, y - 5, INK_BOUND, 1)->dash = 5;
		picture_text(p, at + 34, y, ANCHOR_LEFT, 13, INK_FAINT, later);
	}
	more = d->look->line > 0 ? "· summed over; → what it writes, and its size; at an arrow: what is read" :
		d->look->labels ? "at an arrow: what is read" : "";
	return *more ? picture_wrap(p, MARGIN, y + 20, p->width - 2 * MARGIN, 13, INK_FAINT, more) - 13 * 1.4 : y;
}

/* Draw a phase with its name, if there are several, at d->left; returns where it ends. */
static double draw_named(struct graph_picture *d, int phase, double y, double *right)
{
	if (d->g->program->phases.n > 1) {
		picture_bold(d->p, d->left, y + 8, ANCHOR_LEFT, TEXT, INK_TEXT, arena_strf(d->p->arena, "phase %s",
			d->g->program->phases.v[phase].name));
		y += d->look->enter < 20 ? 14 : 24;
	}
	return draw_phase(d, phase, y, right) + (d->look->line > 0 ? 16 : 8);
}

/* Draw the phases from y down; next to each other as long as they end before `limit`. Returns where they end. */
static double draw_phases(struct graph_picture *d, double limit, double y)
{
	double end = y, right;

	d->left = MARGIN;
	d->right = 0;
	for (int i = 0; i < d->g->program->phases.n; i++) {
		int first = d->p->shapes.n;
		double below = draw_named(d, i, y, &right);

		if (d->left > MARGIN && right > limit) {
			d->p->shapes.n = first;
			d->left = MARGIN;
			y = end;
			below = draw_named(d, i, y, &right);
		}
		end = fmax(end, below);
		d->right = fmax(d->right, right);
		d->p->width = fmax(d->p->width, right + MARGIN);
		d->left = right + NEXT_GAP;
	}
	return end;
}

/* Choose the look in which the graph has the size that was asked for, or least exceeds it, and draw it. */
static double draw_brief(struct graph_picture *d, const struct picture_options *o, double y)
{
	int first = d->p->shapes.n, chosen = 0;
	double least = INFINITY;

	for (int i = 1;; i++) {
		bool last = i == LOOKS || least <= 1;
		int k = last ? chosen : i;
		double end, over;

		d->p->shapes.n = first;
		d->p->width = o->width;
		d->look = &looks[k];
		end = draw_phases(d, o->width - MARGIN, y);
		if (last)
			return end;
		over = fmax(d->p->width / o->width, (draw_legend(d, end + LEGEND_GAP) + LEGEND_END) / picture_most(o));
		if (over < least) {
			least = over;
			chosen = i;
		}
	}
}

void picture_graph(struct picture *p, const struct graph *g, const struct picture_options *o)
{
	struct graph_picture *d = ARENA_NEW(p->arena, struct graph_picture);
	const char *title, *line;
	int64_t tiles = 0;
	int first;
	double y;

	o = picture_begin(p, o);
	*d = (struct graph_picture){ .p = p, .g = g, .look = looks, .theme = o->theme, .ink = task_inks(p->arena, g) };
	for (int i = 0; i < g->program->phases.n; i++)
		tiles += g->grids[i].total;
	line = arena_strf(p->arena, "sTask-graph, %s; %s tiles", picture_tile(p, g), unit_count(tiles).s);
	title = o->title ? o->title : o->brief ? g->program->name : program_text(p->arena, g->program);
	if (o->brief)
		title = picture_fit(p, title, 20, p->width - 2 * MARGIN);
	else if (!(o->width > 0))
		p->width = fmax(picture_width(title, 18, true) + 2 * MARGIN + 2, LEAST_WIDTH);
	y = picture_top(p, o, title, 2, (const char *[]){ picture_sizes(p, g->program, NULL, o), line });
	first = p->shapes.n;
	if (o->brief)
		y = draw_brief(d, o, y - (g->program->phases.n > 1 ? 2 : 8));
	else
		y = draw_phases(d, 0, y + 14);
	picture_shift(p, first, (p->width - MARGIN - d->right) / 2);
	y = draw_legend(d, y + LEGEND_GAP);
	p->height = fmax(y + (o->brief ? LEGEND_END : MARGIN), o->brief ? 0 : o->height);
	/* a graph that needs more space than there is becomes smaller; a slide has a larger sheet instead */
	if (!o->brief && o->width > 0 && p->width > o->width)
		picture_enlarge(p, o->width / p->width);
}
