/* The plan: each lane's order with offsets and waits, and the rings. */
#include <string.h>

#include "draw/label.h"
#include "draw/units.h"
#include "explore/page.h"
#include "explore/pane.h"
#include "explore/positions.h"
#include "explore/view.h"
#include "plan/order.h"

enum { PANEL_ROWS = 11, ABREAST_AT = 110, DETAILS_LEAST = 44, NAME_COLUMNS = 20 };

/* A line of the list: the head of a lane, of a phase or loop, an entry, or another text. */
struct row {
	enum { ROW_LANE, ROW_REGION, ROW_ENTRY, ROW_TEXT } kind;
	int id;				/* lane, loop, entry */
	const char *text;
};

struct own {
	int top;			/* first row shown */
	struct computed computed;	/* of a state and phase: */
	const struct task_sum *sums;	/* by sTask */
};

struct list {
	VEC(struct row) v;
};

static const char *lacks(const struct model *m)
{
	return m->now->plan ? NULL : "there is no plan: this is a graph; mr.plan(graph) begins one";
}

/* ---- the list ---- */

static const char *lane_text(struct model *m, int lane)
{
	const struct plan *p = m->now->plan;
	const struct lane *l = &p->lanes.v[lane];
	struct buf b = buf_new(&m->frame);

	buf_printf(&b, "%s  %d warp%s", l->name, lane_warps(p, lane), lane_warps(p, lane) == 1 ? "" : "s");
	if (m->now->checked && m->now->usage.lane_registers[lane] && l->registers)
		buf_printf(&b, ", %d of %d registers", m->now->usage.lane_registers[lane], l->registers);
	else if (l->registers || (m->now->checked && m->now->usage.lane_registers[lane]))
		buf_printf(&b, ", %d registers", l->registers ? l->registers : m->now->usage.lane_registers[lane]);
	if (l->replicas > 1)
		buf_printf(&b, ", %d replicas", l->replicas);
	return b.text;
}

/* Entries of a lane in a phase or loop in order, with those of the loops in it. */
static void add_region(struct model *m, struct list *out, int lane, int phase, int loop)
{
	struct arena *a = &m->frame;
	struct order_step *steps;
	int least, most, n = order_steps(a, m->now->plan, lane, phase, loop, &steps, &least, &most);

	for (int i = 0; i < n; i++) {
		int before = out->v.n;

		if (!steps[i].is_loop) {
			if (model_shows(m, m->now->plan, m->now->plan->entries.v[steps[i].id].task))
				VEC_PUSH(a, &out->v, ((struct row){ ROW_ENTRY, steps[i].id, NULL }));
			continue;
		}
		VEC_PUSH(a, &out->v, ((struct row){ ROW_REGION, steps[i].id, arena_strf(a, "  %s",
			label_loop_trips(a, m->now->graph, steps[i].id)) }));
		add_region(m, out, lane, phase, steps[i].id);
		if (m->filter[0] && out->v.n == before + 1)
			out->v.n = before;
	}
}

static void add_lane(struct model *m, struct list *out, int lane)
{
	const struct program *p = m->now->graph->program;
	struct arena *a = &m->frame;
	int head = out->v.n;

	VEC_PUSH(a, &out->v, ((struct row){ ROW_LANE, lane, lane_text(m, lane) }));
	for (int phase = 0; phase < p->phases.n; phase++) {
		int before = out->v.n;

		if (p->phases.n > 1)
			VEC_PUSH(a, &out->v, ((struct row){ ROW_REGION, NONE, arena_strf(a, "  phase %s",
				p->phases.v[phase].name) }));
		add_region(m, out, lane, phase, NONE);
		if (p->phases.n > 1 && out->v.n == before + 1)	/* a heading with nothing below it */
			out->v.n = before;
	}
	if (m->filter[0] && out->v.n == head + 1)
		out->v.n = head;
}

static const char *rings_text(struct model *m)
{
	const struct plan *p = m->now->plan;
	struct buf b = buf_new(&m->frame);

	for (int i = 0; i < p->graph->buffers.n; i++) {
		const struct buffer *buf = &p->graph->buffers.v[i];

		if (buf->loop == NONE || buf->carry != NONE ||
		    (plan_scope(p, i) != SCOPE_SHARED && p->versions[i] == 1))
			continue;
		buf_printf(&b, "%s%s=%d%s", b.len ? "  " : "versions: ", buf->name, p->versions[i],
			plan_scope(p, i) == SCOPE_SHARED ? "" : " in registers");
	}
	return b.text;
}

static void make_list(struct model *m, struct list *out)
{
	const struct plan *p = m->now->plan;
	struct arena *a = &m->frame;

	*out = (struct list){ 0 };
	for (int l = 0; l < p->lanes.n; l++)
		add_lane(m, out, l);
	VEC_PUSH(a, &out->v, ((struct row){ ROW_TEXT, 0, "" }));
	VEC_PUSH(a, &out->v, ((struct row){ ROW_TEXT, 0, rings_text(m) }));
	for (int t = 0; t < p->graph->tasks.n; t++)
		if (plan_entry_of(p, t) == NONE)
			VEC_PUSH(a, &out->v, ((struct row){ ROW_TEXT, 0, arena_strf(a,
				"not in the plan: %s", p->graph->tasks.v[t].name) }));
}

/* The row of the selected sTask; -1. */
static int selected_row(const struct model *m, const struct list *list)
{
	for (int i = 0; i < list->v.n; i++)
		if (list->v.v[i].kind == ROW_ENTRY && m->now->plan->entries.v[list->v.v[i].id].task == m->sel.task)
			return i;
	return -1;
}

static const int column_width[] = {
#define X(name, width) width,
	PLAN_COLUMNS(X)
#undef X
};

/* Its width in front of the next column: all of a unit's name is there. */
static int width_of(const struct plan *p, enum plan_column c)
{
	int most = column_width[c];

	for (int i = 0; c == COLUMN_unit && i < p->device->nseus; i++)
		if (plan_shows_unit(p, i))
			most = (int)max_i64(most, (int64_t)strlen(p->device->seu[i].name) + 1);
	return most;
}

/* "1,618": cycles from issue to completion, on average. */
static const char *takes_text(struct view *v, int task)
{
	struct own *own = v->own;
	struct model *m = v->m;
	const struct phase_line *line = NULL;

	for (int i = 0; m->now->tl && i < m->now->tl->nphases; i++)
		if (m->now->tl->phases[i].phase == m->now->graph->tasks.v[task].phase)
			line = &m->now->tl->phases[i];
	if (!line)
		return "";
	if (computed_begin(&own->computed, m, hash_mix(key_of_state(m->now), (uintptr_t)line))) {
		own->sums = phase_sums(own->computed.arena, m->now->tl, (int)(line - m->now->tl->phases));
		own->computed.made = true;
	}
	return own->sums[task].n ? unit_keep(&m->frame,
		unit_rounded(own->sums[task].duration / (double)own->sums[task].n)) : "";
}

static const char *column_text(struct view *v, enum plan_column c, const struct entry *e)
{
	struct model *m = v->m;
	const struct plan *p = m->now->plan;
	const char *waits;

	switch (c) {
	case COLUMN_unit: return p->device->seu[e->seu].name;
	case COLUMN_at:
		return p->graph->tasks.v[e->task].loop != NONE || e->at ? arena_strf(&m->frame, "at %+d", e->at) : "";
	case COLUMN_takes: return takes_text(v, e->task);
	case COLUMN_loc: return loc_text(&m->frame, e->loc);
	case COLUMN_waits:
		waits = waits_text(&m->frame, p, e->task);
		return waits[0] ? arena_strf(&m->frame, "waits for %s", waits) : "";
	case PLAN_COLUMN_COUNT: break;
	}
	return "";
}

static void draw_entry(struct view *v, struct cells *out, int y, int entry, bool selected)
{
	const struct settings *settings = &v->m->settings;
	const struct plan *p = v->m->now->plan;
	const struct entry *e = &p->entries.v[entry];
	const struct stask *s = &p->graph->tasks.v[e->task];
	struct style style = style_of_kind(s->kind);
	int x = 4 + NAME_COLUMNS;

	if (selected)
		style.attr |= STYLE_REVERSE | STYLE_BOLD;
	cells_text(out, s->loop == NONE ? 2 : 4, y, NAME_COLUMNS - 1, s->name, style);
	for (int i = 0; i < settings->ncolumns; i++) {
		enum plan_column c = settings->column[i];
		int width = width_of(p, c), space = i + 1 < settings->ncolumns ? width - 1 : out->w - x;

		cells_text(out, x, y, space, column_text(v, c, e), c == COLUMN_waits ? PLAIN :
			c == COLUMN_at && e->at ? BOLD : FAINT);
		x += width;
	}
}

/* Columns of the list: as many as its rows need, and the details next to it are left readable. */
static int list_width(struct view *v, const struct list *list, int w)
{
	struct cells probe;
	int most = 0;

	for (int i = 0; i < list->v.n; i++) {
		const struct row *r = &list->v.v[i];

		if (r->kind != ROW_ENTRY) {
			most = (int)max_i64(most, text_width(r->text));
			continue;
		}
		cells_init(&probe, &v->m->frame, w, 1);
		draw_entry(v, &probe, 0, r->id, false);
		for (int x = w; x > most; x--) {
			const char *c = cells_at(&probe, x - 1, 0)->utf8;

			if (c[0] && strcmp(c, " "))
				most = x;
		}
	}
	return (int)min_i64(most + 2, w - DETAILS_LEAST);
}

/* The list in the left or upper part of the grid, scrolled so that the selected sTask is in sight. */
static void draw_list(struct view *v, const struct list *list, struct cells *out, int w, int rows)
{
	struct own *own = v->own;
	int at = selected_row(v->m, list);
	struct cells part;

	cells_init(&part, &v->m->frame, w, rows);
	if (at >= 0)
		own->top = (int)max_i64(min_i64(own->top, at > 0 ? at - 1 : 0), at - rows + 1);
	own->top = (int)max_i64(0, min_i64(own->top, list->v.n - rows));
	for (int i = 0; i < rows && own->top + i < list->v.n; i++) {
		const struct row *r = &list->v.v[own->top + i];

		if (r->kind == ROW_ENTRY)
			draw_entry(v, &part, i, r->id, own->top + i == at);
		else
			cells_text(&part, 0, i, w, r->text, r->kind == ROW_LANE ? BOLD : FAINT);
	}
	if (own->top + rows < list->v.n)
		cells_text(&part, w - 2, rows - 1, 2, " ▼", BOLD);
	if (own->top)
		cells_text(&part, w - 2, 0, 2, " ▲", BOLD);
	cells_blit(out, 0, 0, w, rows, &part, 0, 0);
}

/* The list, and the pane next to it on a wide terminal, else below it. */
static void draw(struct view *v, struct cells *out)
{
	struct model *m = v->m;
	int panel = (int)min_i64(PANEL_ROWS, out->h / 2), rows, w;
	struct list list;

	make_list(m, &list);
	if (m->positions) {
		draw_list(v, &list, out, out->w, out->h - panel);
		positions_draw(m, out, out->h - panel);
	} else if (out->w >= ABREAST_AT) {
		w = list_width(v, &list, out->w);
		draw_list(v, &list, out, w, out->h);
		draw_separator(out, true, w);
		pane_draw(m, out, w + 2, 0, out->w - w - 2, out->h);
	} else {
		rows = (int)min_i64(list.v.n + 1, out->h - (int)max_i64(out->h / 3, 1));
		draw_list(v, &list, out, out->w, rows);
		pane_draw(m, out, 0, rows, out->w, out->h - rows);
	}
}

/* ---- keys ---- */

static void go(struct view *v, int by)
{
	struct model *m = v->m;
	struct list list;
	int at;

	make_list(m, &list);
	at = selected_row(m, &list);
	for (int i = at + (by < 0 ? -1 : 1), n = by < 0 ? -by : by; i >= 0 && i < list.v.n && n; i += by < 0 ? -1 : 1) {
		if (list.v.v[i].kind != ROW_ENTRY)
			continue;
		at = i;
		n--;
	}
	if (at >= 0)
		model_select_task(m, m->now->plan->entries.v[list.v.v[at].id].task);
}

static bool click(struct view *v, const struct key *k)
{
	const struct own *own = v->own;
	struct list list;
	int i = own->top + k->y;

	make_list(v->m, &list);
	if (k->y >= 0 && i < list.v.n && list.v.v[i].kind == ROW_ENTRY)
		model_select_task(v->m, v->m->now->plan->entries.v[list.v.v[i].id].task);
	return true;
}

static bool act(struct view *v, enum action a, const struct key *k)
{
	switch ((int)a) {
	case ACT_UP: go(v, -1); return true;
	case ACT_DOWN: go(v, 1); return true;
	case ACT_LEFT: case ACT_RIGHT:
		model_say(v->m, "< and > change the offset, Space picks the sTask up");
		return true;
	case ACT_PAGE_UP: go(v, -8); return true;
	case ACT_PAGE_DOWN: go(v, 8); return true;
	case ACT_HOME: v->m->sel.task = NONE; go(v, 1); return true;
	case ACT_END: go(v, 1000); return true;
	default: break;
	}
	if (wheel_step(k)) {
		go(v, wheel_step(k));
		return true;
	}
	return k->code == KEY_CODE_CLICK && click(v, k);
}

const struct view_ops view_plan = {
	.name = "plan", .groups = GROUP_EDIT, .size = sizeof(struct own),
	.lacks = lacks, .draw = draw, .act = act, .picks = true,
};
