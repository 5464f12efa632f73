/* The sTask-graph in layers. The cursor moves from sTask to sTask; details of the selected one are on the right or
 * below. */
#include <stdlib.h>
#include <string.h>

#include "draw/label.h"
#include "draw/pen.h"
#include "draw/units.h"
#include "explore/page.h"
#include "explore/view.h"

enum { SIDE = 46, SIDE_MIN = 110, BELOW = 12, BELOW_MIN = 20 };

struct own {
	struct page page;
	bool follow;			/* scroll to the selected sTask */
};

static const char *lacks(const struct model *m)
{
	return m->now->graph->tasks.n ? NULL : "the graph has no sTasks";
}

/* ---- details -------------------------------------------------------------------- */

static void put_pair(struct pen *pen, const char *what, const char *text)
{
	if (!text || !text[0])
		return;
	pen_wrap(pen, what, 10, text);
}

/* "lane c0, sEU tensor, offset +1" */
static const char *position_text(struct arena *a, const struct plan *p, int task)
{
	int entry = p ? plan_entry_of(p, task) : NONE;
	const struct entry *e = entry == NONE ? NULL : &p->entries.v[entry];

	if (!e)
		return p ? "not in the plan" : NULL;
	return arena_strf(a, "lane %s, sEU %s%s", p->lanes.v[e->lane].name, p->device->seu[e->seu].name,
		e->at ? arena_strf(a, ", offset %+d", e->at) : "");
}

static const char *work_text(struct arena *a, const struct graph *g, int task)
{
	const struct stask *s = &g->tasks.v[task];
	struct buf b = buf_new(a);

	if (s->work.flops > 0)
		buf_printf(&b, "%s", unit_si(s->work.flops, "flop").s);
	if (s->work.global_bytes > 0)
		buf_printf(&b, "%s%s", b.len ? ", " : "", unit_bytes(s->work.global_bytes).s);
	buf_printf(&b, "%son a %s unit", b.len ? " " : "", label_seu(s->kind));
	return b.text;
}

/* "k ×2 (shared, 32 KiB)": a buffer with its versions. */
static void add_buffer(const struct model *m, int buffer, struct buf *b)
{
	const struct plan *p = m->now->plan;
	const struct buffer *x = &m->now->graph->buffers.v[buffer];
	enum scope scope = p ? plan_scope(p, buffer) : x->scope;

	buf_printf(b, "%s%s", b->len ? ", " : "", x->name);
	if (p && p->versions[buffer] > 1)
		buf_printf(b, " ×%d", p->versions[buffer]);
	buf_printf(b, " (%s, %s)", scope == SCOPE_SHARED ? "shared" : "registers", unit_bytes((double)x->bytes).s);
}

static const char *buffers_text(struct model *m, const int *v, int n)
{
	struct buf b = buf_new(&m->frame);

	for (int i = 0; i < n; i++)
		add_buffer(m, v[i], &b);
	return b.len ? b.text : NULL;
}

/* A dependence, unless it is listed already with one that differs only in the buffer. */
static void put_edge(const struct model *m, int i, bool in, struct pen *pen)
{
	const struct graph *g = m->now->graph;
	const struct edge *e = &g->edges.v[i];
	int other = in ? e->from : e->to;
	const char *buffers = label_edge_buffers(pen->arena, g, i);
	struct buf b = buf_new(pen->arena);

	if (!buffers)
		return;
	buf_printf(&b, "%s  %s %s", g->tasks.v[other].name, edge_kind_name(e->kind), buffers);
	if (e->reuse)
		buf_puts(&b, ", a free slot");
	if (e->reuse || e->distance)
		buf_printf(&b, ": %s over %s", m->now->plan ? arena_strf(pen->arena, "%+d",
			edge_distance(m->now->plan, e)) : label_distance(pen->arena, e),
			e->loop == NONE ? "tiles" : label_loop(pen->arena, g->program, e->loop));
	pen_wrap(pen, in ? "  ← " : "  → ", 6, b.text);
}

static void put_task(struct model *m, int task, struct pen *pen)
{
	const struct graph *g = m->now->graph;
	const struct stask *s = &g->tasks.v[task];

	pen_puts(pen, s->name, (struct style){ .fg = style_of_kind(s->kind).fg, .attr = STYLE_BOLD });
	pen_printf(pen, "  %s", task_kind_name(s->kind));
	pen_puts(pen, arena_strf(pen->arena, "  %s\n", loc_text(pen->arena, s->loc)), FAINT);
	put_pair(pen, "shape     ", label_shape(pen->arena, g, task));
	put_pair(pen, "work      ", work_text(pen->arena, g, task));
	put_pair(pen, "runs      ", s->loop == NONE ? "once a tile" : label_loop_trips(pen->arena, g, s->loop));
	put_pair(pen, "plan      ", position_text(pen->arena, m->now->plan, task));
	put_pair(pen, "reads     ", buffers_text(m, s->reads.v, s->reads.n));
	put_pair(pen, "writes    ", buffers_text(m, s->writes.v, s->writes.n));
}

static void put_edges(const struct model *m, int task, struct pen *pen)
{
	const struct graph *g = m->now->graph;

	for (int pass = 0; pass < 2; pass++) {
		int n = 0;

		for (int i = 0; i < g->edges.n; i++)
			n += (pass ? g->edges.v[i].from : g->edges.v[i].to) == task;
		if (n)
			pen_puts(pen, pass ? "comes before\n" : "comes after\n", FAINT);
		for (int i = 0; i < g->edges.n; i++)
			if ((pass ? g->edges.v[i].from : g->edges.v[i].to) == task)
				put_edge(m, i, !pass, pen);
	}
}

/* ---- drawing -------------------------------------------------------------------- */

static void make_page(struct view *v, int w)
{
	struct own *own = v->own;
	struct model *m = v->m;
	struct pen pen;

	if (!page_begin(&own->page, m, hash_bytes(key_of_state(m->now), m->filter, strlen(m->filter)), w, &pen))
		return;
	draw_graph_part(m->now->graph, m->now->plan ? model_shown(m, m->now->plan) : NULL,
		&(struct draw_options){ .width = w, .flags = pen.flags }, pen.out);
	page_end(&own->page, &pen, m->now->graph);
	own->follow = true;
}

/* The name in the box of an sTask, which is where its name is first. */
static const struct page_name *box_of(const struct page *p, int task)
{
	for (int i = 0; i < p->names.n; i++)
		if (p->names.v[i].task == task)
			return &p->names.v[i];
	return NULL;
}

static void follow(struct own *own, int task, int w)
{
	const struct page_name *box = box_of(&own->page, task);

	if (!own->follow || !box)
		return;
	own->follow = false;
	page_go(&own->page, box->y + 2);
	page_go(&own->page, box->y - 2);
	page_go(&own->page, box->y);
	if (box->x < own->page.left || box->x + box->n > own->page.left + w - 1)
		own->page.left = (int)max_i64(0, box->x - w / 2);
}

/* The sTask and its dependences, one below the other or side by side. */
static void draw_details(struct view *v, struct cells *out, int x, int y, int w, bool side_by_side)
{
	struct pen pen = frame_pen(v->m, side_by_side ? w / 2 - 1 : w);

	put_task(v->m, v->m->sel.task, &pen);
	if (side_by_side) {
		pen_show(&pen, out, x, y);
		pen = frame_pen(v->m, w / 2 - 1);
	}
	put_edges(v->m, v->m->sel.task, &pen);
	pen_show(&pen, out, side_by_side ? x + w / 2 + 1 : x, y);
}

static void draw(struct view *v, struct cells *out)
{
	struct own *own = v->own;
	bool selected = v->m->sel.task >= 0 && v->m->sel.task < v->m->now->graph->tasks.n;
	bool side = out->w >= SIDE_MIN, below = !side && out->h >= BELOW_MIN && selected;
	int w = side ? out->w - SIDE - 2 : out->w, h = below ? out->h - BELOW - 1 : out->h;

	make_page(v, w - (w >= PAGE_EDGE_MIN));
	own->page.height = h;
	follow(own, v->m->sel.task, w);
	page_draw(&own->page, out, 0, 0, w, h, v->m->sel.task);
	if (side || below)
		draw_separator(out, side, side ? w : h);
	if (side && selected)
		draw_details(v, out, w + 2, 0, SIDE, false);
	else if (side)
		cells_text(out, w + 2, 0, SIDE, "arrows go from sTask to sTask", FAINT);
	else if (below)
		draw_details(v, out, 0, h + 1, out->w, true);
}

/* ---- keys ----------------------------------------------------------------------- */

/* How far a box is in a direction; a sideways distance counts more. -1: it is not in that direction. */
static int distance_to(const struct page_name *from, const struct page_name *to, int dx, int dy)
{
	int x = to->x + to->n / 2 - (from->x + from->n / 2), y = to->y - from->y;
	int ahead = dx * x + dy * y, aside = abs(dx ? y * 3 : x);

	return ahead > 0 ? ahead * (dx ? 1 : 3) + aside * 2 : -1;
}

/* Select the nearest box in a direction; below the last box, scroll to the lists. */
static void move(struct view *v, int dx, int dy)
{
	struct own *own = v->own;
	const struct page *p = &own->page;
	const struct page_name *from = box_of(p, v->m->sel.task), *best = NULL;
	int least = 0;

	if (!p->names.n)
		return;
	if (!from) {
		model_select_task(v->m, p->names.v[0].task);
		own->follow = true;
		return;
	}
	for (int t = 0; t < v->m->now->graph->tasks.n; t++) {
		const struct page_name *to = box_of(p, t);
		int d = to ? distance_to(from, to, dx, dy) : -1;

		if (d >= 0 && (!best || d < least)) {
			best = to;
			least = d;
		}
	}
	if (best)
		model_select_task(v->m, best->task);
	else
		page_go((struct page *)p, p->cursor + 3 * dy);	/* the lists */
	own->follow = best != NULL;
}

static bool click(struct view *v, const struct key *k)
{
	struct own *own = v->own;
	int x = own->page.left + k->x - 1, y = own->page.top + k->y;

	for (int i = 0; i < own->page.names.n; i++) {
		const struct page_name *n = &own->page.names.v[i];

		if (n->y == y && x >= n->x && x < n->x + n->n)
			model_select_task(v->m, n->task);
	}
	return true;
}

static bool act(struct view *v, enum action a, const struct key *k)
{
	struct own *own = v->own;

	if (k->code == KEY_CODE_CLICK)
		return click(v, k);
	if (wheel_step(k))
		return page_act(&own->page, wheel_step(k) < 0 ? ACT_PAGE_UP : ACT_PAGE_DOWN);
	switch ((int)a) {
	case ACT_UP: move(v, 0, -1); return true;
	case ACT_DOWN: move(v, 0, 1); return true;
	case ACT_LEFT: move(v, -1, 0); return true;
	case ACT_RIGHT: move(v, 1, 0); return true;
	case ACT_GO:
		if (v->m->sel.task == NONE)
			move(v, 0, 1);
		else
			v->m->go = VIEW_plan;
		return true;
	}
	return page_act(&own->page, a);
}

static void changed(struct view *v)
{
	((struct own *)v->own)->follow = true;
}

const struct view_ops view_graph = {
	.name = "graph", .groups = GROUP_EDIT | GROUP_ITEM, .size = sizeof(struct own), .lacks = lacks,
	.draw = draw, .act = act, .changed = changed,
};
