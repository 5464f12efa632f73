/* The timeline: rows of lanes and units over time, with the selected event; below, its details. */
#include <string.h>

#include "draw/units.h"
#include "explore/page.h"
#include "explore/pane.h"
#include "explore/positions.h"
#include "explore/view.h"

enum {
	BACK_MAX = 64,			/* events to go back to */
	CHAIN_MAX = 4096,		/* events of the critical path */
	WIDE = 140,			/* columns from which on there is space for longer bars */
	FEWEST = 12,			/* cycles in a window, at least */
	DETAIL_ROWS = 8,		/* rows that details have before the legend of letters gets more than one */
	SMALL_ROWS = 3,			/* rows that are left for details, however many rows the chart has */
};

struct own {
	int64_t from, to;		/* cycles shown; to is 0: not chosen yet */
	enum timeline_rows by;
	bool ruler, critical, short_details;
	int64_t ruler_at;
	int deep[SEU_MAX];		/* most rows that units have had, so that rows do not jump when time moves */
	int back[BACK_MAX], nback;
	struct arena *arena;		/* of the last drawing's map; NULL: nothing was drawn */
	struct chart_map map;
};

static const char *lacks(const struct model *m)
{
	if (!m->now->plan)
		return "there is no timeline: this is a graph; mr.plan(graph) begins a plan";
	if (!m->now->tl)
		return "there is no timeline, because the plan is not legal: 8 shows the problems, f tries "
			"to repair it, u undoes the last edit";
	return NULL;
}

/* ---- the window ---- */

static int64_t last_cycle(const struct view *v)
{
	return max_i64(model_lookup(v->m)->last, 1);
}

static void set_window(struct view *v, int64_t from, int64_t to)
{
	struct own *own = v->own;
	int64_t last = last_cycle(v), span = max_i64(to - from, FEWEST);

	span = min_i64(span, last + last / 20 + FEWEST);
	from = max_i64(0, min_i64(from, last - span / 2));
	if (span != own->to - own->from)
		memset(own->deep, 0, sizeof(own->deep));
	own->from = from;
	own->to = from + span;
}

static void zoom(struct view *v, double by, int64_t around)
{
	struct own *own = v->own;
	double span = (double)(own->to - own->from) * by;
	double share = (double)(around - own->from) / (double)(own->to - own->from);

	if (share < 0 || share > 1)
		share = 0.5, around = own->from + (own->to - own->from) / 2;
	set_window(v, around - (int64_t)(share * span), around - (int64_t)(share * span) + (int64_t)span);
}

static void pan(struct view *v, int64_t by)
{
	struct own *own = v->own;

	set_window(v, own->from + by, own->to + by);
}

/* Move the window so that the selected event is in sight. */
static void follow(struct view *v)
{
	struct own *own = v->own;
	const struct event *e = model_event(v->m);
	int64_t span = own->to - own->from, begin, end;

	if (!e || !own->to)
		return;
	begin = min_i64(e->issue, e->start);
	end = max_i64(e->end, begin + 1);
	if (begin >= own->from && end <= own->to)
		return;
	if (end - begin > span || begin > own->to + span || end < own->from - span)
		set_window(v, begin - span / 3, begin - span / 3 + span);
	else if (begin < own->from)
		pan(v, begin - own->from - span / 8);
	else
		pan(v, end - own->to + span / 8);
}

/* The window that a chart chooses by itself: the steady state, with legible sTasks. */
static void choose_window(struct view *v, int width)
{
	struct timeline_view view = { .phase = v->m->sel.phase, .from = TIMELINE_STEADY, .lookup = model_lookup(v->m) };
	struct own *own = v->own;
	struct chart_map map;
	struct cells out;

	timeline_cells(v->m->now->tl, &view, width, 0, &v->m->frame, &out, &map);
	own->from = map.from;
	own->to = max_i64(map.to, own->from + FEWEST);
}

/* ---- drawing ---- */

static void mark_event(const struct chart_map *map, struct cells *out, int event, unsigned attr)
{
	for (int r = 0; r < map->nrows; r++)
		for (int x = 0; x < map->cols; x++)
			if (map->row[r].event[x] == event && map->row[r].part[x] != PART_HELD)
				cells_mark(out, map->left + x, map->row[r].y, 1, attr);
}

/* Mark the critical path back from the selected event: each time the event that it waited for, or else the one before
 * in its lane. */
static void mark_chain(struct view *v, const struct chart_map *map, struct cells *out)
{
	const struct lookup *l = model_lookup(v->m);

	for (int n = 0, i = v->m->sel.event; i != NONE && n < CHAIN_MAX && l->line->events.v[i].end >= map->from; n++) {
		int cause = lookup_cause(l, i);

		if (l->line->events.v[i].ready < map->to)
			mark_event(map, out, i, STYLE_UNDERLINE | STYLE_BOLD);
		i = cause != NONE ? cause : lookup_next_of_lane(l, i, -1);
	}
}

static int column(const struct chart_map *map, int64_t cycle)
{
	return map->left + (int)floor_div((cycle - map->from) * map->cols, map->to - map->from);
}

/* The lowest row that shows the event, or its work; -1. */
static int row_of(const struct chart_map *map, int event, bool work)
{
	for (int r = map->nrows - 1; r >= 0; r--)
		for (int x = 0; x < map->cols; x++)
			if (map->row[r].event[x] == event && (!work || map->row[r].part[x] == PART_WORK))
				return map->row[r].y;
	return -1;
}

/* A line down a column, over blank cells, and over the dots of waiting lanes if `over_dots`. */
static void draw_upright(struct cells *out, int x, int from, int to, bool over_dots, const char *utf8,
	struct style style)
{
	for (int y = from; y < to; y++) {
		const struct cell *c = cells_at(out, x, y);

		if (c && (!c->utf8[0] || !strcmp(c->utf8, " ") || (over_dots && !strcmp(c->utf8, "·"))))
			cells_put(out, x, y, utf8, style);
	}
}

/* A line from the end of the cause to the row of the event that waited for it. */
static void draw_cause(struct view *v, const struct chart_map *map, struct cells *out)
{
	const struct lookup *l = model_lookup(v->m);
	int cause = lookup_cause(l, v->m->sel.event), x, from, to;
	const struct event *c;

	if (cause == NONE)
		return;
	c = &l->line->events.v[cause];
	mark_event(map, out, cause, STYLE_UNDERLINE | STYLE_BOLD);
	from = row_of(map, cause, true);
	to = row_of(map, v->m->sel.event, false);
	x = column(map, min_i64(c->end, model_event(v->m)->start));
	if (from < 0 || to < 0 || x < map->left || x >= map->left + map->cols)
		return;
	draw_upright(out, x, (int)min_i64(from, to) + 1, (int)max_i64(from, to), true, "│",
		(struct style){ .fg = 220, .attr = STYLE_BOLD });
}

/* Marks at every initiation interval before and after the event, and on the axis. */
static void draw_ruler(struct view *v, const struct chart_map *map, struct cells *out)
{
	const struct own *own = v->own;
	double ii = model_line(v->m)->ii, first;

	if (!(ii > 0) || ii * map->cols / (double)(map->to - map->from) < 3)
		return;
	first = (double)own->ruler_at - ii * (double)((own->ruler_at - map->from) / (int64_t)(ii + 1) + 1);
	for (double at = first; at < (double)map->to; at += ii) {
		int x = column(map, (int64_t)at);

		if (x < map->left || x >= map->left + map->cols)
			continue;
		cells_put(out, x, map->top - 1, "┼", (struct style){ .fg = 220 });
		draw_upright(out, x, map->top, map->bottom, false, "┆", (struct style){ .fg = 220 });
	}
}

static void fill_stage(const struct chart_map *map, struct cells *out, int y, int64_t from, int64_t to,
	const char *name, const char *fill)
{
	int a = (int)max_i64(column(map, from), map->left), z = (int)min_i64(column(map, to), map->left + map->cols);
	int w = text_width(name);

	if (z <= a)
		return;
	cells_fill(out, a, y, z - a, fill, FAINT);
	if (column(map, from) >= map->left)
		cells_put(out, a, y, "├", FAINT);
	if (z - a > w + 3)
		cells_text(out, a + (z - a - w) / 2, y, w, name, FAINT);
}

/* Prologue, steady state and epilogue of each tile in sight. */
static void draw_stages(struct view *v, const struct chart_map *map, struct cells *out, int y)
{
	const struct lookup *l = model_lookup(v->m);
	const struct event *all = l->line->events.v;
	struct lookup_list in_sight = lookup_in_sight(&v->m->frame, l, map->from, map->to);
	int tile = -1, seen = 0;

	for (int i = 0; i < in_sight.n && seen < 16; i++) {
		const struct event *e = &all[in_sight.v[i]];
		int64_t begin, from, to, end;

		if (e->tile <= tile || e->start >= map->to)
			continue;
		tile = e->tile;
		if (!lookup_steady(l, tile, &begin, &from, &to, &end) || end < map->from)
			continue;
		seen++;
		fill_stage(map, out, y, begin, from, "prologue", "─");
		fill_stage(map, out, y, from, to, arena_strf(&v->m->frame, "steady state, tile %d", tile), "═");
		fill_stage(map, out, y, to, end, "epilogue", "─");
	}
	if (seen)
		cells_text(out, 0, y, map->left - 1, "stage", FAINT);
}

static void mark_cursors(struct view *v, const struct chart_map *map, struct cells *out)
{
	const struct selection *sel = &v->m->sel;
	int x = column(map, sel->cursor), mark = column(map, sel->mark);

	if (x >= map->left && x < map->left + map->cols)
		cells_put(out, x, map->top - 1, "▼", BOLD);
	if (!sel->marked || mark < map->left || mark >= map->left + map->cols)
		return;
	cells_put(out, mark, map->top - 1, "▽", BOLD);
	draw_upright(out, mark, map->top, map->bottom, false, "┊", BOLD);
}

/* "0.612 ms  II 1,312 (bound 1,260)  tensor ██████░░ 87 %", with bars of so many columns. */
static const char *busy_text(struct view *v, int bar, bool issuing)
{
	const struct phase_line *line = model_line(v->m);
	const struct timeline *t = v->m->now->tl;
	double bound = line->res_mii > line->rec_mii ? line->res_mii : line->rec_mii;
	struct buf b = buf_new(&v->m->frame);

	if (t->seconds > 0)
		buf_printf(&b, "%s", unit_seconds(t->seconds).s);
	if (line->ii > 0)
		buf_printf(&b, "  II %s", unit_rounded(line->ii).s);
	if (line->ii > 0 && bound > 0)
		buf_printf(&b, " (bound %s)", unit_rounded(bound).s);
	for (int s = 0; s < t->plan->device->nseus; s++) {
		const struct vdevice *d = t->plan->device;
		const char *issue = unit_issue(&v->m->frame, line, d, s);
		double share = unit_share(line, d, s);
		int full = (int)(share * bar + 0.5);

		if (!(share > 0))
			continue;
		buf_printf(&b, "  %s ", unit_label(&v->m->frame, line, d, s));
		for (int i = 0; i < bar; i++)
			buf_puts(&b, i < full ? "█" : "░");
		buf_printf(&b, "%s%s", bar ? " " : "", unit_percent(share).s);
		if (issue[0] && issuing)
			buf_printf(&b, " (%s)", issue);
	}
	if (line->memory_share > 0)
		buf_printf(&b, "  memory %s", unit_percent(line->memory_share).s);
	return b.text;
}

/* One line, with the longest bars that leave space for all numbers. */
static void draw_busy(struct view *v, struct cells *out, int y)
{
	static const struct { int bar; bool issuing; } ways[] = {
		{ 8, true }, { 5, true }, { 5, false }, { 3, false }, { 0, false } };
	const char *text = NULL;

	for (int i = out->w >= WIDE ? 0 : 1; i < LEN(ways) && (!text || text_width(text) > out->w); i++)
		text = busy_text(v, ways[i].bar, ways[i].issuing);
	cells_text(out, 0, y, out->w, text, PLAIN);
}

/* What the legend says of an sTask, or of all slices of one. */
struct legend_item {
	int task;			/* the first slice */
	const char *name;		/* " mma_qk" */
	int width;			/* with the letters before the name */
};

/* Is sTask i the one of the item, or another slice of it? */
static bool is_of_item(const struct graph *g, int i, const struct legend_item *it)
{
	const struct stask *first = &g->tasks.v[it->task];

	return i == it->task || (first->slices > 1 && g->tasks.v[i].task == first->task);
}

static int list_legend(struct view *v, const struct task_key *key, struct legend_item *out)
{
	const struct graph *g = v->m->now->tl->plan->graph;
	int n = 0;

	for (int t = 0; t < g->tasks.n; t++) {
		const struct stask *s = &g->tasks.v[t];
		const char *dot = s->slices > 1 ? strrchr(s->name, '.') : NULL;
		struct legend_item *it = &out[n];

		if (s->phase != model_line(v->m)->phase || (s->slices > 1 && s->slice > 0))
			continue;
		*it = (struct legend_item){ .task = t };
		it->name = arena_strf(&v->m->frame, " %.*s", (int)(dot ? dot - s->name : (int)strlen(s->name)),
			s->name);
		it->width = text_width(it->name);
		for (int i = t; i < g->tasks.n; i++)
			it->width += is_of_item(g, i, it) ? text_width(key[i].letter) : 0;
		n++;
	}
	return n;
}

static void draw_legend_item(struct view *v, struct cells *out, int x, int y, const struct task_key *key,
	const struct legend_item *it)
{
	const struct graph *g = v->m->now->tl->plan->graph;

	for (int i = it->task; i < g->tasks.n; i++)
		if (is_of_item(g, i, it))
			x += cells_text(out, x, y, out->w - x, key[i].letter, (struct style){ .fg = key[i].tick.fg });
	cells_text(out, x, y, out->w - x, it->name, FAINT);
}

/* "k load_k  qQ mma_qk": what the letters of the bars mean, in at most so many rows, of which it returns how many it
 * took. What does not fit is left out, with a sign of that and the key that makes space. */
static int draw_letters(struct view *v, struct cells *out, int y, int rows)
{
	enum { GAP = 2 };
	const char *more = ((struct own *)v->own)->short_details ? "…" : "… d: all letters";
	const struct graph *g = v->m->now->tl->plan->graph;
	const struct task_key *key = task_keys(&v->m->frame, g);
	struct legend_item *items = ARENA_ARRAY(&v->m->frame, g->tasks.n + 1, struct legend_item);
	int n = list_legend(v, key, items), x = 0, row = 0, left = 0;

	for (int i = 0; i < n; i++)
		left += items[i].width + GAP;
	for (int i = 0; i < n && rows > 0; i++) {
		const struct legend_item *it = &items[i];
		bool last = row == rows - 1, all = x + left - GAP <= out->w;

		if (x && x + it->width > out->w && !last) {
			x = 0;
			row++;
			last = row == rows - 1;
			all = left - GAP <= out->w;
		}
		if (last && !all && x + it->width + GAP + text_width(more) > out->w) {
			cells_text(out, x, y + row, out->w - x, more, FAINT);
			break;
		}
		draw_legend_item(v, out, x, y + row, key, it);
		x += it->width + GAP;
		left -= it->width + GAP;
	}
	return rows > 0 ? row + 1 : 0;
}

/* Rows of the legend, of which there is space for some even where details have little; an sTask that is picked up
 * needs all. */
static int legend_rows(struct view *v, const struct cells *out, int y)
{
	int space = out->h - y;

	if (v->m->positions)
		return space > DETAIL_ROWS;
	if (((struct own *)v->own)->short_details)
		return (int)max_i64(space, 0);
	return (int)max_i64(space - DETAIL_ROWS, space > SMALL_ROWS);
}

static void draw_chart(struct view *v, struct cells *out, struct chart_map *map)
{
	struct own *own = v->own;
	struct timeline_view view = { .phase = v->m->sel.phase, .by = own->by, .from = own->from,
		.to = own->to, .deep = own->deep, .overview = model_overview(v->m),
		.lookup = model_lookup(v->m), .shown = model_shown(v->m, v->m->now->plan) };
	struct cells chart;

	if (!own->arena)
		own->arena = model_arena(v->m);
	*map = (struct chart_map){ 0 };
	arena_release(own->arena);
	timeline_cells(v->m->now->tl, &view, out->w, v->m->flags, own->arena, &chart, map);
	memcpy(own->deep, map->deep, sizeof(own->deep));
	cells_blit(out, 0, 0, chart.w, chart.h, &chart, 0, 0);
	map->bottom = (int)min_i64(map->bottom, out->h);
}

/* From row y on, over the lowest rows of a chart that leaves none. */
static void draw_pane(struct view *v, struct cells *out, int y)
{
	int top = (int)min_i64(y, max_i64(out->h - SMALL_ROWS, 0));

	for (int row = top; row < y && row < out->h; row++)
		cells_fill(out, 0, row, out->w, " ", PLAIN);
	pane_draw(v->m, out, 0, top, out->w, out->h - top);
}

static void draw(struct view *v, struct cells *out)
{
	struct own *own = v->own;
	struct chart_map *map = &own->map;
	int y;

	if (!own->to)
		choose_window(v, out->w);
	draw_chart(v, out, map);
	if (own->ruler)
		draw_ruler(v, map, out);
	if (model_event(v->m)) {
		if (own->critical)
			mark_chain(v, map, out);
		else
			draw_cause(v, map, out);
		mark_event(map, out, v->m->sel.event, STYLE_REVERSE);
	}
	mark_cursors(v, map, out);
	y = map->bottom + 2;
	if (y < out->h)
		draw_stages(v, map, out, y++);
	if (y < out->h)
		draw_busy(v, out, y++);
	y += draw_letters(v, out, y, legend_rows(v, out, y));
	if (v->m->positions)
		positions_draw(v->m, out, (int)min_i64(y, max_i64(out->h - 8, 2)));
	else if (!own->short_details)
		draw_pane(v, out, y);
}

/* ---- keys ---- */

static void select_event(struct view *v, int event)
{
	if (event == NONE) {
		model_refuse(v->m, "there are no more");
		return;
	}
	model_select_event(v->m, event);
	follow(v);
}

/* If no event is selected, select one in the window, of a product if there is one. False: it was selected now, or
 * there is none. */
static bool select_any(struct view *v)
{
	const struct lookup *l = model_lookup(v->m);
	const struct own *own = v->own;
	int best = NONE;

	if (model_event(v->m))
		return true;
	for (int t = 0; t < l->plan->graph->tasks.n; t++) {
		int e = !model_shows(v->m, l->plan, t) ? NONE :
			lookup_near(l, &l->of_task[t], own->from + (own->to - own->from) / 4);

		if (e != NONE && (best == NONE || l->plan->graph->tasks.v[t].kind == TASK_MMA))
			best = e;
	}
	if (best == NONE)
		return model_refuse(v->m, "no events were recorded");
	select_event(v, best);
	return false;
}

/* The next event of the lane that the filter shows; by: 1 or -1. */
static int next_shown(const struct view *v, int event, int by)
{
	const struct lookup *l = model_lookup(v->m);

	do
		event = lookup_next_of_lane(l, event, by);
	while (event != NONE && !model_shows(v->m, l->plan, l->line->events.v[event].task));
	return event;
}

/* To the nearest event of the next lane that has any. */
static void change_row(struct view *v, int by)
{
	const struct lookup *l = model_lookup(v->m);
	const struct event *e = model_event(v->m);
	int n = LANES_MAX * REPLICAS_MAX, at = e->lane * REPLICAS_MAX + e->replica;

	for (int i = 1; i < n; i++) {
		int k = (at + by * i + n) % n;
		const struct lookup_list *list = &l->of_lane[k / REPLICAS_MAX][k % REPLICAS_MAX];
		int near = list->n ? lookup_near(l, list, v->m->sel.cursor) : NONE;

		if (near != NONE && !model_shows(v->m, l->plan, l->line->events.v[near].task))
			near = next_shown(v, near, 1);
		if (near != NONE) {
			select_event(v, near);
			return;
		}
	}
}

/* The next event of the lane that had to wait for more than a fiftieth of the II. */
static void next_wait(struct view *v, int by)
{
	const struct lookup *l = model_lookup(v->m);
	int64_t least = max_i64(1, (int64_t)(l->line->ii / 50));
	int e = v->m->sel.event;

	while ((e = next_shown(v, e, by)) != NONE) {
		const struct event *x = &l->line->events.v[e];

		if (max_i64(x->issue - x->ready, x->cause == CAUSE_NONE ? 0 : x->start - x->ready) > least)
			break;
	}
	select_event(v, e);
}

static void to_cause(struct view *v)
{
	struct own *own = v->own;
	int cause = lookup_cause(model_lookup(v->m), v->m->sel.event);

	if (cause == NONE) {
		model_refuse(v->m, "it did not wait for any recorded event");
		return;
	}
	if (own->nback == BACK_MAX)
		memmove(own->back, own->back + 1, (size_t)--own->nback * sizeof(*own->back));
	own->back[own->nback++] = v->m->sel.event;
	select_event(v, cause);
}

static void change_phase(struct view *v)
{
	struct own *own = v->own;
	struct model *m = v->m;

	if (m->now->tl->nphases < 2) {
		model_refuse(m, "the program has one phase");
		return;
	}
	m->sel.phase = (m->sel.phase + 1) % m->now->tl->nphases;
	m->sel.event = m->sel.task = NONE;
	own->to = 0;
	own->nback = 0;
	model_say(m, "phase %s", m->now->graph->program->phases.v[model_line(m)->phase].name);
}

/* Keys for which no event has to be selected. */
static bool act_window(struct view *v, enum action a)
{
	struct own *own = v->own;
	int64_t span = own->to - own->from, ii = max_i64(1, (int64_t)(model_line(v->m)->ii + 0.5));
	int64_t around = model_event(v->m) ? v->m->sel.cursor : own->from + span / 2;

	switch ((int)a) {
	case ACT_HOME: case ACT_END:		/* of the selected sTask, if there is one */
		if (!model_event(v->m))
			set_window(v, a == ACT_HOME ? 0 : last_cycle(v) - span, a == ACT_HOME ? span : last_cycle(v));
		return !model_event(v->m);
	case ACT_ZOOM_IN: zoom(v, 0.5, around); return true;
	case ACT_ZOOM_OUT: zoom(v, 2, around); return true;
	case ACT_ZOOM_ALL: set_window(v, 0, last_cycle(v) + 1); return true;
	case ACT_ZOOM_LOOP: set_window(v, around - 2 * ii, around + 2 * ii); return true;
	case ACT_PAN_LEFT: pan(v, -ii); return true;
	case ACT_PAN_RIGHT: pan(v, ii); return true;
	case ACT_PAGE_UP: pan(v, -span / 2); return true;
	case ACT_PAGE_DOWN: pan(v, span / 2); return true;
	case ACT_ROWS: own->by = own->by == TIMELINE_LANES ? TIMELINE_SEUS : TIMELINE_LANES; return true;
	case ACT_PHASE: change_phase(v); return true;
	case ACT_DETAILS: own->short_details = !own->short_details; return true;
	case ACT_MEASURED: v->m->go = VIEW_compare; return true;
	case ACT_CANCEL: v->m->sel.marked = own->ruler = own->critical = false; return true;
	default: return false;
	}
}

static bool act_event(struct view *v, enum action a)
{
	struct own *own = v->own;
	struct selection *sel = &v->m->sel;
	const struct lookup *l = model_lookup(v->m);

	switch ((int)a) {
	case ACT_LEFT: case ACT_RIGHT: case ACT_UP: case ACT_DOWN: case ACT_HOME: case ACT_END:
	case ACT_NEXT_WAIT: case ACT_PREV_WAIT: case ACT_TO_CAUSE: case ACT_BACK: case ACT_CRITICAL:
	case ACT_RULER: case ACT_MARK:
		break;
	default: return false;
	}
	if (!select_any(v))
		return true;
	switch ((int)a) {
	case ACT_LEFT: select_event(v, next_shown(v, sel->event, -1)); break;
	case ACT_RIGHT: select_event(v, next_shown(v, sel->event, 1)); break;
	case ACT_UP: change_row(v, -1); break;
	case ACT_DOWN: change_row(v, 1); break;
	case ACT_HOME: select_event(v, l->of_task[sel->task].v[0]); break;
	case ACT_END: select_event(v, l->of_task[sel->task].v[l->of_task[sel->task].n - 1]); break;
	case ACT_NEXT_WAIT: next_wait(v, 1); break;
	case ACT_PREV_WAIT: next_wait(v, -1); break;
	case ACT_TO_CAUSE: to_cause(v); break;
	case ACT_BACK:
		if (own->nback)
			select_event(v, own->back[--own->nback]);
		break;
	case ACT_CRITICAL: own->critical = !own->critical; break;
	case ACT_RULER:
		own->ruler = !own->ruler;
		own->ruler_at = sel->cursor;
		break;
	case ACT_MARK:
		sel->marked = true;
		sel->mark = sel->cursor;
		break;
	default: break;
	}
	return true;
}

/* The event at a cell; NONE. */
static int event_at(const struct chart_map *map, int x, int y)
{
	for (int r = 0; r < map->nrows && x >= map->left && x < map->left + map->cols; r++)
		if (map->row[r].y == y)
			return map->row[r].event[x - map->left];
	return NONE;
}

static bool act_mouse(struct view *v, const struct key *k)
{
	struct own *own = v->own;
	const struct chart_map *map = &own->map;
	int64_t at = own->from + (own->to - own->from) * (k->x - map->left) / max_i64(map->cols, 1);
	int e;

	switch (k->code) {
	case KEY_CODE_WHEEL_UP: zoom(v, 0.5, at); return true;
	case KEY_CODE_WHEEL_DOWN: zoom(v, 2, at); return true;
	case KEY_CODE_SHIFT_LEFT: pan(v, -(own->to - own->from) / 8); return true;
	case KEY_CODE_SHIFT_RIGHT: pan(v, (own->to - own->from) / 8); return true;
	case KEY_CODE_CLICK:
		e = event_at(map, k->x, k->y);
		if (e != NONE)
			model_select_event(v->m, e);
		return true;
	case KEY_CODE_DRAG:
		v->m->sel.marked = true;
		v->m->sel.mark = at;
		return true;
	default: return false;
	}
}

static bool act(struct view *v, enum action a, const struct key *k)
{
	struct own *own = v->own;

	if (!own->to)
		return false;
	return act_window(v, a) || act_event(v, a) || act_mouse(v, k);
}

static const char *cancels(const struct view *v)
{
	const struct own *own = v->own;

	return v->m->sel.marked || own->ruler || own->critical ? "remove marks" : NULL;
}

static void changed(struct view *v)
{
	struct own *own = v->own;

	own->nback = 0;
	memset(own->deep, 0, sizeof(own->deep));
	if (!lacks(v->m) && own->to) {
		set_window(v, own->from, own->to);
		follow(v);
	}
}

const struct view_ops view_timeline = {
	.name = "timeline", .groups = GROUP_SPAN | GROUP_TIME | GROUP_EDIT, .size = sizeof(struct own),
	.lacks = lacks, .draw = draw, .act = act, .cancels = cancels, .changed = changed, .picks = true,
};
