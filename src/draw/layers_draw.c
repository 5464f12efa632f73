/* The layered drawing as text, from a finished layout. */
#include <string.h>

#include "draw/label.h"
#include "draw/layers.h"

enum { BOX_ROWS = 3, INSET = 2, BACK_LABEL_MAX = 16, TITLE_MIN = 8, TITLE_WIDENS = 20, NO_OWNER = -1 };

enum { N = 1, E = 2, S = 4, W = 8 };

/* A value for a later iteration: a dashed line upward at one side of the drawing. */
struct back {
	int from, to;			/* sTasks */
	bool right;
	int x;				/* column of the vertical part, from the layout's 0 */
	const char *label;
};

struct canvas {
	const struct sketch *s;
	struct cells *c;
	int x0;				/* grid column of the layout's column 0 */
	int *layer_y, *gap_y;
	int *top_y, *bottom_y;		/* by frame */
	uint8_t *mask;			/* by cell: sides to which a wire goes */
	int *owner;			/* by cell: node from which the wire comes */
	VEC(struct back) backs;
	int left, right;		/* columns for backs at either side */
};

static const struct layout_node *task_node(const struct sketch *s, int task)
{
	return &s->layout.nodes.v[s->node[task]];
}

/* Choose the rows of layers, gaps and frames; returns how many rows there are. */
static int choose_rows(struct canvas *v)
{
	const struct sketch *s = v->s;
	int y = 0;

	v->layer_y = ARENA_ARRAY(s->arena, s->nlayers, int);
	v->gap_y = ARENA_ARRAY(s->arena, s->nlayers, int);
	v->top_y = ARENA_ARRAY(s->arena, s->frames.n, int);
	v->bottom_y = ARENA_ARRAY(s->arena, s->frames.n, int);
	for (int k = 0; k < s->nlayers; k++) {
		for (int f = 0; f < s->frames.n; f++)
			if (s->frames.v[f].first == k)
				v->top_y[f] = y++;
		v->layer_y[k] = y;
		y += BOX_ROWS;
		for (int f = s->frames.n - 1; f >= 0; f--)
			if (s->frames.v[f].last == k)
				v->bottom_y[f] = y++;
		v->gap_y[k] = y;
		if (k + 1 < s->nlayers)
			y += (int)max_i64(1, s->gaps[k].ntracks);
	}
	return y;
}

static bool is_outermost(const struct sketch *s, int task, bool right)
{
	const struct layout_node *n = task_node(s, task);

	for (int i = 0; i < s->layout.nodes.n; i++) {
		const struct layout_node *o = &s->layout.nodes.v[i];

		if (o->layer == n->layer && !o->passing && (right ? o->pos > n->pos : o->pos < n->pos))
			return false;
	}
	return true;
}

/* Only one dashed line may end at a side of a box. */
static bool side_is_taken(const struct canvas *v, int task, bool right)
{
	for (int i = 0; i < v->backs.n; i++)
		if (v->backs.v[i].right == right && (v->backs.v[i].from == task || v->backs.v[i].to == task))
			return true;
	return false;
}

static bool side_is_free(const struct canvas *v, const struct edge *e, bool right)
{
	return is_outermost(v->s, e->from, right) && is_outermost(v->s, e->to, right) &&
		!side_is_taken(v, e->from, right) && !side_is_taken(v, e->to, right);
}

static void add_back(struct canvas *v, const struct edge *e)
{
	const struct sketch *s = v->s;
	struct back b = { .from = e->from, .to = e->to };
	int space;

	if (e->kind != EDGE_FLOW || e->reuse || !e->distance || s->layer[e->from] == NONE ||
	    s->layer[e->from] == s->layer[e->to])
		return;
	b.right = side_is_free(v, e, true);
	if (!b.right && !side_is_free(v, e, false))
		return;
	b.label = arena_strf(s->arena, "%s %s", label_distance(s->arena, e), s->g->buffers.v[e->buffer].name);
	space = (int)min_i64(text_width(b.label), BACK_LABEL_MAX) + 3;
	if (b.right) {
		b.x = s->layout.width + 1 + v->right;
		v->right += space;
	} else {
		b.x = -2 - v->left;
		v->left += space;
	}
	VEC_PUSH(s->arena, &v->backs, b);
}

static void join_cell(struct canvas *v, int x, int y, int sides, int owner)
{
	size_t i;

	if (!cells_at(v->c, x, y))
		return;
	i = (size_t)y * (size_t)v->c->w + (size_t)x;
	if (v->owner[i] == NO_OWNER || v->owner[i] == owner) {
		v->owner[i] = owner;
		v->mask[i] |= (uint8_t)sides;
	} else if (sides == (N | S)) {
		/* where two lines cross, the vertical one is in front */
		v->owner[i] = owner;
		v->mask[i] = N | S;
	}
}

static void draw_down(struct canvas *v, int x, int from_y, int to_y, int owner)
{
	for (int y = from_y; y <= to_y; y++)
		join_cell(v, x, y, N | S, owner);
}

/* From below the box, through frames that end there, to the row of the wire, and down to its targets. */
static void draw_wire(struct canvas *v, int layer, const struct wire *w)
{
	int top = v->layer_y[layer] + BOX_ROWS, bottom = v->layer_y[layer + 1] - 1, y = v->gap_y[layer] + w->track;

	if (w->track == NONE) {
		draw_down(v, v->x0 + w->from_x, top, bottom, w->node);
		return;
	}
	draw_down(v, v->x0 + w->from_x, top, y - 1, w->node);
	for (int x = w->lo; x <= w->hi; x++)
		join_cell(v, v->x0 + x, y, (x > w->lo ? W : 0) | (x < w->hi ? E : 0), w->node);
	join_cell(v, v->x0 + w->from_x, y, N, w->node);
	for (int i = 0; i < w->nto; i++) {
		join_cell(v, v->x0 + w->to_x[i], y, S, w->node);
		draw_down(v, v->x0 + w->to_x[i], y + 1, bottom, w->node);
	}
}

static void draw_wires(struct canvas *v)
{
	static const char *const glyph[] = { "", "│", "─", "└", "│", "│", "┌", "├", "─", "┘", "─",
		"┴", "┐", "┤", "┬", "┼" };
	const struct sketch *s = v->s;
	size_t n = (size_t)v->c->w * (size_t)v->c->h;

	for (size_t i = 0; i < n; i++)
		v->owner[i] = NO_OWNER;
	for (int k = 0; k + 1 < s->nlayers; k++)
		for (int i = 0; i < s->gaps[k].nwires; i++)
			draw_wire(v, k, &s->gaps[k].wires[i]);
	for (int i = 0; i < s->layout.nodes.n; i++) {
		const struct layout_node *p = &s->layout.nodes.v[i];

		if (p->passing)
			draw_down(v, v->x0 + p->x, v->layer_y[p->layer], v->layer_y[p->layer] + BOX_ROWS - 1, i);
	}
	for (size_t i = 0; i < n; i++)
		if (v->mask[i])
			cells_put(v->c, (int)(i % (size_t)v->c->w), (int)(i / (size_t)v->c->w),
				glyph[v->mask[i]], PLAIN);
}

/* Corners, horizontal and vertical lines, and where a wire leaves below. */
static const struct border {
	const char *nw, *ne, *sw, *se, *h, *v, *down;
} round_border = { "╭", "╮", "╰", "╯", "─", "│", "┬" }, heavy = { "╔", "╗", "╚", "╝", "═", "║", "╤" },
	plain = { "┌", "┐", "└", "┘", "─", "│", "┬" };

static const struct border *border_of(enum task_kind k)
{
	return k == TASK_MMA ? &heavy : k == TASK_COMPUTE ? &plain : &round_border;
}

static void draw_border(struct cells *c, int left, int top, int right, int bottom, const struct border *b,
	struct style style)
{
	cells_put(c, left, top, b->nw, style);
	cells_fill(c, left + 1, top, right - left - 1, b->h, style);
	cells_put(c, right, top, b->ne, style);
	for (int y = top + 1; y < bottom; y++) {
		cells_put(c, left, y, b->v, style);
		cells_put(c, right, y, b->v, style);
	}
	cells_put(c, left, bottom, b->sw, style);
	cells_fill(c, left + 1, bottom, right - left - 1, b->h, style);
	cells_put(c, right, bottom, b->se, style);
}

static bool carries_to_itself(const struct graph *g, int task)
{
	for (int i = 0; i < g->edges.n; i++)
		if (g->edges.v[i].from == task && g->edges.v[i].to == task &&
		    g->edges.v[i].kind == EDGE_FLOW && !g->edges.v[i].reuse)
			return true;
	return false;
}

static void draw_box(struct canvas *v, const struct layout_node *n)
{
	const struct stask *t = &v->s->g->tasks.v[n->item];
	struct style style = style_of_kind(t->kind);
	int x = v->x0 + n->x, y = v->layer_y[n->layer], right = x + n->width - 1;
	int mark = carries_to_itself(v->s->g, n->item) ? 2 : 0;

	draw_border(v->c, x, y, right, y + BOX_ROWS - 1, border_of(t->kind), style);
	cells_text(v->c, x + 2, y + 1, n->width - 4 - mark, t->name, (struct style){ style.fg, 0, STYLE_BOLD });
	if (mark)
		cells_put(v->c, right - 2, y + 1, "↺", style);
}

static void draw_boxes(struct canvas *v)
{
	const struct layout *l = &v->s->layout;

	for (int i = 0; i < l->nodes.n; i++)
		if (!l->nodes.v[i].passing)
			draw_box(v, &l->nodes.v[i]);
	for (int k = 0; k + 1 < v->s->nlayers; k++) {
		for (int i = 0; i < v->s->gaps[k].nwires; i++) {
			const struct wire *w = &v->s->gaps[k].wires[i];
			const struct layout_node *n = &l->nodes.v[w->node];

			if (!n->passing)
				cells_put(v->c, v->x0 + w->from_x, v->layer_y[k] + BOX_ROWS - 1,
					border_of(v->s->g->tasks.v[n->item].kind)->down,
					style_of_kind(v->s->g->tasks.v[n->item].kind));
			for (int j = 0; j < w->nto; j++)
				if (!l->nodes.v[w->to[j]].passing)
					cells_put(v->c, v->x0 + w->to_x[j], v->layer_y[k + 1], "▼", PLAIN);
		}
	}
}

static const char *frame_title(const struct sketch *s, int f)
{
	return arena_strf(s->arena, " %s ", label_loop_trips(s->arena, s->g, s->frames.v[f].loop));
}

/* A title without its last word: of " loop n, 1 to 64 iterations " first " loop n, 1 to 64 ", then " loop n ", as
 * numbers alone say nothing; NULL: there is no shorter one. */
static const char *shorter_title(struct arena *a, const char *title)
{
	static const char iterations[] = " iteration";
	const char *end = strstr(title, iterations);

	if (!end)
		end = strchr(title, ',');
	return end ? arena_strf(a, "%.*s ", (int)(end - title), title) : NULL;
}

/* The gap between the lines that cross the upper edge of a frame in which its title is: the first one in which it
 * fits, or the widest. Returns its columns; *behind: those of the last gap, which becomes wider with the frame. */
static int find_gap(const struct canvas *v, int f, int *at, int *behind)
{
	int left = INSET * v->s->frames.v[f].depth + 2, end = v->c->w - left, want = text_width(frame_title(v->s, f));
	int y = v->top_y[f], space = 0, n = 0;

	*at = left;
	for (int x = left; x < end; x += n + 1) {
		for (n = 0; x + n < end && v->owner[(size_t)y * (size_t)v->c->w + (size_t)(x + n)] == NO_OWNER; n++)
			;
		if (n > space && space < want) {
			*at = x;
			space = n;
		}
	}
	*behind = n;
	return space;
}

/* By how many columns the frames must be wider so that all titles fit. */
static int missing_columns(const struct canvas *v)
{
	int most = 0, at, behind;

	for (int f = 0; f < v->s->frames.n; f++) {
		int want = text_width(frame_title(v->s, f));

		if (find_gap(v, f, &at, &behind) < want)
			most = (int)max_i64(most, want - behind);
	}
	return most;
}

/* A title that fits nowhere loses its last words, and is shortened at last. */
static void draw_title(struct canvas *v, int f)
{
	const char *title = frame_title(v->s, f), *shorter;
	int at, behind, space = find_gap(v, f, &at, &behind);

	while (text_width(title) > space && (shorter = shorter_title(v->s->arena, title)))
		title = shorter;
	if (space >= text_width(title) || space > TITLE_MIN)
		cells_text(v->c, at, v->top_y[f], space, title, FAINT);
}

static void put_if_blank(struct canvas *v, int x, int y, const char *utf8, struct style style)
{
	const struct cell *c = cells_at(v->c, x, y);

	if (c && !c->utf8[0])
		cells_put(v->c, x, y, utf8, style);
}

static void draw_back(struct canvas *v, const struct back *b)
{
	const struct style style = { .fg = 175 };
	const struct layout_node *from = task_node(v->s, b->from), *to = task_node(v->s, b->to);
	int x = v->x0 + b->x, step = b->right ? -1 : 1;
	int from_y = v->layer_y[from->layer] + 1, to_y = v->layer_y[to->layer] + 1;
	int from_x = v->x0 + (b->right ? from->x + from->width : from->x - 1);
	int to_x = v->x0 + (b->right ? to->x + to->width : to->x - 1);
	int top = (int)min_i64(from_y, to_y), bottom = (int)max_i64(from_y, to_y);
	int space = (int)min_i64(text_width(b->label), BACK_LABEL_MAX);

	cells_put(v->c, to_x, to_y, b->right ? "◂" : "▸", style);
	for (int i = x + step; i != from_x + step; i += step)
		put_if_blank(v, i, from_y, "┄", style);
	for (int i = x + step; i != to_x; i += step)
		put_if_blank(v, i, to_y, "┄", style);
	for (int y = top + 1; y < bottom; y++)
		cells_put(v->c, x, y, "┆", style);
	cells_put(v->c, x, top, b->right ? "┐" : "┌", style);
	cells_put(v->c, x, bottom, b->right ? "┘" : "└", style);
	cells_text(v->c, b->right ? x + 2 : x - 1 - space, (top + bottom) / 2, space, b->label, style);
}

/* Draw the frames without titles, and the lines that cross them. */
static void draw_frames(struct canvas *v, int w, int h)
{
	const struct sketch *s = v->s;

	cells_init(v->c, s->arena, w, h);
	v->mask = ARENA_ARRAY(s->arena, (size_t)w * (size_t)h, uint8_t);
	v->owner = ARENA_ARRAY(s->arena, (size_t)w * (size_t)h, int);
	for (int f = 0; f < s->frames.n; f++)
		draw_border(v->c, INSET * s->frames.v[f].depth, v->top_y[f], w - 1 - INSET * s->frames.v[f].depth,
			v->bottom_y[f], &round_border, FAINT);
	draw_wires(v);
}

bool sketch_draw(struct sketch *s, int width, struct cells *out)
{
	struct canvas v = { .s = s, .c = out };
	int h = choose_rows(&v), w, inset = INSET * s->depth, missing;

	for (int i = 0; i < s->g->edges.n; i++)
		add_back(&v, &s->g->edges.v[i]);
	w = s->layout.width + v.left + v.right + 2 * inset;
	if (w > width) {
		v.backs.n = v.left = v.right = 0;	/* the list below has them anyway */
		w = s->layout.width + 2 * inset;
	}
	for (int f = 0; f < s->frames.n; f++)
		w = (int)max_i64(w, min_i64(width, text_width(frame_title(s, f)) + 4 +
			2 * INSET * s->frames.v[f].depth));
	if (w > width)
		return false;
	v.x0 = inset + v.left;
	draw_frames(&v, w, h);
	missing = missing_columns(&v);
	if (missing && missing <= TITLE_WIDENS && w + missing <= width)
		draw_frames(&v, w + missing, h);
	for (int f = 0; f < s->frames.n; f++)
		draw_title(&v, f);
	draw_boxes(&v);
	for (int i = 0; i < v.backs.n; i++)
		draw_back(&v, &v.backs.v[i]);
	return true;
}
