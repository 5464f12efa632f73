/* Two timelines over the same cycles, and below, as text, how they and their plans differ. */
#include <math.h>

#include "draw/units.h"
#include "explore/compare.h"
#include "explore/page.h"
#include "explore/view.h"

enum { SPAN_MIN = 16, STATEMENTS_LEAST = 6, ABREAST_AT = 160, ABREAST_GAP = 4,
	NEAR_AT = 100 };		/* columns from which on the headline says a difference that is within noise */

struct own {
	struct page statements, page;
	bool unmeasured;		/* the user wants to see edits although there is a measured timeline */
	int64_t from, to;		/* cycles in sight; 0, 0: not chosen yet */
	int statements_at, page_at;	/* rows of `all` where these begin */
	struct page all;		/* charts and pages, as they are scrolled; its cells are those of the last drawing */
};

static bool is_measured_shown(const struct view *v)
{
	return v->m->measured && !((const struct own *)v->own)->unmeasured;
}

static struct pair pair_of(const struct view *v)
{
	const struct model *m = v->m;
	const struct state *one = is_measured_shown(v) ? m->now : m->base, *two = m->now;
	struct pair p = { .plan = { one->plan, two->plan }, .tl = { one->tl, two->tl },
		.lookup = { one->lookup, two->lookup }, .script = { one->script, two->script } };

	p.name[0] = m->base_given ? m->base_name : "before";
	p.name[1] = m->base_given ? m->name : "now";
	p.difference = m->base_given ? m->difference : NULL;
	p.usage[0] = one->checked ? &one->usage : NULL;
	p.usage[1] = two->checked ? &two->usage : NULL;
	if (!is_measured_shown(v))
		return p;
	p.measured = true;
	p.difference = NULL;
	p.name[0] = "predicted";
	p.name[1] = "measured";
	p.tl[1] = m->measured;
	p.plan[1] = m->measured->plan;
	p.lookup[1] = NULL;
	p.script[1] = m->measured_of ? m->measured_of : p.script[0];
	p.usage[0] = p.usage[1] = NULL;
	return p;
}

/* ---- the headline ---------------------------------------------------------------- */

static const char *lacks(const struct model *m)
{
	if (!m->now->plan)
		return "there is no plan to compare";
	if (m->measured || m->now != m->base)
		return NULL;
	return "nothing to compare yet: edit the plan, or run it on the device";
}

/* Are the predicted times too near to each other to say which is less? */
static bool is_near(const struct pair *p, double one, double two)
{
	double noise = fmax(p->plan[0]->device->uncertainty_order, p->plan[1]->device->uncertainty_order);

	return !p->tl[0]->measured && !p->tl[1]->measured && fmax(one, two) / fmin(one, two) - 1 < noise;
}

/* "now takes 0.612 ms, before 0.698 ms: 12.3 % less"; of two that are too near, without the share where space is scarce. */
static const char *headline(struct arena *a, const struct pair *p, int width)
{
	const char *near = "too near to call";
	double one, two;

	if (!p->tl[0] || !p->tl[1])
		return arena_strf(a, "%s: there is no timeline, as the plan is not legal", p->name[p->tl[0] != NULL]);
	if (!pair_has_one_time_axis(p))
		return arena_strf(a, "%s has no clock: compare the order of its events",
			p->name[p->tl[0]->logical ? 0 : 1]);
	one = p->tl[0]->logical ? (double)p->tl[0]->cycles : p->tl[0]->seconds;
	two = p->tl[1]->logical ? (double)p->tl[1]->cycles : p->tl[1]->seconds;
	if (p->measured)
		return arena_strf(a, "measured %s, predicted %s: the device takes %.1f %% %s", unit_seconds(two).s,
			unit_seconds(one).s, 100 * fabs(two / one - 1), two < one ? "less" : "longer");
	if (p->difference)
		return arena_strf(a, "not one problem: %s takes %s, %s %s", p->name[1], unit_seconds(two).s, p->name[0],
			unit_seconds(one).s);
	if (fabs(two / one - 1) < 0.0005)
		return arena_strf(a, "%s takes %s, as long as %s", p->name[1], unit_seconds(two).s, p->name[0]);
	return arena_strf(a, "%s takes %s, %s %s: %s", p->name[1], unit_seconds(two).s, p->name[0],
		unit_seconds(one).s, is_near(p, one, two) && width < NEAR_AT ? near :
		arena_strf(a, "%.1f %% %s%s%s", 100 * fabs(two / one - 1), two < one ? "less" : "more",
		is_near(p, one, two) ? ", " : "", is_near(p, one, two) ? near : ""));
}

static void make_pages(struct view *v, const struct pair *p, int w)
{
	struct own *own = v->own;
	uint64_t key = hash_mix(hash_mix(key_of_state(v->m->now), key_of_state(v->m->base)),
		(uintptr_t)p->tl[1] + (uintptr_t)v->m->sel.phase);
	struct pen pen;

	if (page_begin(&own->statements, v->m, key, w, &pen)) {
		put_statements(p, &pen);
		page_end(&own->statements, &pen, NULL);
	}
	if (!page_begin(&own->page, v->m, key, w, &pen))
		return;
	put_comparison(p, v->m->sel.phase, &pen);
	page_end(&own->page, &pen, NULL);
}

/* ---- the charts ----------------------------------------------------------------- */

static void chart(const struct view *v, const struct pair *p, int i, int w, struct cells *out, struct chart_map *map)
{
	const struct own *own = v->own;
	struct timeline_view tv = { .phase = v->m->sel.phase, .from = own->to ? own->from : TIMELINE_STEADY,
		.to = own->to, .shown = model_shown(v->m, p->plan[i]) };

	if (p->lookup[i] && v->m->sel.phase < p->tl[i]->nphases)
		tv.lookup = &p->lookup[i][v->m->sel.phase];
	timeline_cells(p->tl[i], &tv, w, v->m->flags, &v->m->frame, out, map);
}

/* The cycles that both charts show: those that the second would choose, unless the user chose. */
static void choose_span(struct view *v, const struct pair *p, int w)
{
	struct own *own = v->own;
	struct chart_map map;
	struct cells c;

	if (own->to)
		return;
	chart(v, p, 1, w, &c, &map);
	own->from = map.from;
	own->to = map.to;
}

/* Both charts with their titles: side by side on a wide terminal, else below each other. */
static struct cells charts(struct view *v, const struct pair *p, int w)
{
	bool abreast = w >= ABREAST_AT;
	int each = abreast ? (w - ABREAST_GAP) / 2 : w, y = 0;
	struct arena *a = &v->m->frame;
	struct cells out, one;
	int64_t at = v->m->sel.cursor;

	cells_init(&out, a, w, 0);
	if (!pair_has_one_time_axis(p))
		return out;
	choose_span(v, p, each);
	for (int i = 0; i < 2; i++) {
		int x = abreast && i ? each + ABREAST_GAP : 0;
		struct chart_map map;

		chart(v, p, i, each, &one, &map);
		if (at >= map.from && at < map.to)	/* the cursor of the timeline view */
			cells_mark(&one, map.left + (int)((at - map.from) * map.cols / (map.to - map.from)), 1, 1,
				STYLE_REVERSE);
		if (one.h)
			cells_grow(&out, y + one.h + 2);
		if (one.h)
			cells_text(&out, x, y, each, arena_strf(a, "%s: %s", p->name[i],
				timeline_total(a, p->tl[i])), BOLD);
		cells_blit(&out, x, y + 1, each, one.h, &one, 0, 0);
		y += abreast || !one.h ? 0 : one.h + 2;
	}
	return out;
}

/* In the headline's row, if there is space: which of the texts begin below what is in sight. */
static void draw_below(struct view *v, struct cells *out, int behind)
{
	struct own *own = v->own;
	bool statements = own->statements.cells.h > 0 && own->statements_at >= own->all.height;
	bool numbers = own->page.cells.h > 0 && own->page_at >= own->all.height;
	const char *text = arena_strf(&v->m->frame, "PgDn: %s%s%s", statements ? "statements" : "",
		statements && numbers ? ", " : "", numbers ? "numbers" : "");
	int at = out->w - text_width(text);

	if ((statements || numbers) && own->all.top == 0 && at > behind + 1)
		cells_text(out, at, 0, out->w, text, FAINT);
}

/* Few statements come before the charts, so that they are in sight; many come behind them. */
static void draw(struct view *v, struct cells *out)
{
	struct own *own = v->own;
	struct pair p = pair_of(v);
	struct arena *a = &v->m->frame;
	struct cells both, all, *said = &own->statements.cells;
	int w = out->w > WIDTH_MIN ? out->w : WIDTH_MIN, y = 1;
	const char *head = headline(a, &p, out->w);
	bool few;

	make_pages(v, &p, w);
	both = charts(v, &p, w);
	few = p.difference || (!p.measured && said->h <= max_i64(STATEMENTS_LEAST, out->h / 3));
	cells_init(&all, a, w, 4 + both.h + said->h + own->page.cells.h);
	own->all.still = true;
	own->all.cells = all;
	own->all.height = out->h;
	page_go(&own->all, own->all.top);
	cells_text(&all, 0, 0, w, head, BOLD);
	for (int part = 0; part < 2; part++) {
		if (few == !part) {
			own->statements_at = y;
			cells_blit(&all, 0, y, w, said->h, said, 0, 0);
			y += said->h + !part;
		} else {
			y += part ? 0 : 1;
			cells_blit(&all, 0, y, w, both.h, &both, 0, 0);
			y += both.h - 1;
		}
	}
	own->page_at = y;
	cells_blit(&all, 0, y, w, own->page.cells.h, &own->page.cells, 0, 0);
	cells_blit(out, 0, 0, out->w, out->h, &all, 0, own->all.top);
	draw_below(v, out, text_width(head));
	draw_scroll_marks(out, 0, 0, out->w, out->h, own->all.top, y + own->page.cells.h);
}

/* ---- keys ----------------------------------------------------------------------- */

static void move_window(struct own *own, int64_t by)
{
	by = max_i64(by, -own->from);
	own->from += by;
	own->to += by;
}

/* To num / den of the window, around its middle. */
static void zoom(struct own *own, int num, int den)
{
	int64_t span = own->to - own->from, next = min_i64(max_i64(span * num / den, SPAN_MIN), CYCLES_MAX);

	own->from = max_i64(0, own->from + (span - next) / 2);
	own->to = own->from + next;
}

static void zoom_all(struct view *v)
{
	struct own *own = v->own;
	struct pair p = pair_of(v);
	int64_t end = 1;

	for (int i = 0; i < 2; i++) {
		const struct phase_line *l = pair_line(p.tl[i], v->m->sel.phase);

		for (int k = 0; l && k < l->events.n; k++)
			if (event_is_sound(p.tl[i]->plan, &l->events.v[k]))
				end = max_i64(end, l->events.v[k].end);
	}
	own->from = 0;
	own->to = end;
}

static bool act(struct view *v, enum action a, const struct key *k)
{
	struct own *own = v->own;
	const struct phase_line *l = pair_line(v->m->now->tl, v->m->sel.phase);
	int64_t span = own->to - own->from;
	int64_t ii = l && l->ii >= 1 && l->ii < (double)CYCLES_MAX ? (int64_t)l->ii : span;

	if (wheel_step(k)) {
		page_go(&own->all, own->all.top + 3 * wheel_step(k));
		return true;
	}
	switch ((int)a) {
	case ACT_LEFT: move_window(own, -span / 8); return true;
	case ACT_RIGHT: move_window(own, span / 8); return true;
	case ACT_PAN_LEFT: move_window(own, -ii); return true;
	case ACT_PAN_RIGHT: move_window(own, ii); return true;
	case ACT_ZOOM_IN: zoom(own, 1, 2); return true;
	case ACT_ZOOM_OUT: zoom(own, 2, 1); return true;
	case ACT_ZOOM_ALL: zoom_all(v); return true;
	case ACT_ZOOM_LOOP: own->from = own->to = 0; return true;
	case ACT_MEASURED:
		if (!v->m->measured)
			model_refuse(v->m, "there is no measured timeline: run the plan on the device");
		else
			own->unmeasured = !own->unmeasured;
		return true;
	}
	return page_act(&own->all, a);
}

/* In numbers and causes, or else in the statements. */
static bool find(struct view *v, const char *text, int direction)
{
	struct own *own = v->own;
	struct page *p = &own->page;

	p->cursor = (int)max_i64(own->all.top - own->page_at, 0);
	if (page_find(p, text, direction)) {
		page_go(&own->all, own->page_at + p->cursor);
		return true;
	}
	p = &own->statements;
	if (!page_find(p, text, direction))
		return false;
	page_go(&own->all, own->statements_at + p->cursor);
	return true;
}

const struct view_ops view_compare = {
	.name = "compare", .groups = GROUP_SPAN | GROUP_EDIT, .size = sizeof(struct own), .lacks = lacks,
	.draw = draw, .act = act, .find = find,
};
