/* Two timelines over the same cycles, and below what is different between them: numbers,
 * causes of waiting, sTasks, statements of the plans. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/label.h"
#include "draw/pen.h"
#include "draw/units.h"
#include "explore/page.h"
#include "explore/parts.h"
#include "explore/view.h"
#include "plan/diff.h"
#include "sim/bounds.h"
#include "sim/sums.h"

enum { CAUSES_SHOWN = 8, SPAN_MIN = 16, BETTER = 114, WORSE = 203 };

struct own {
	struct page page;
	bool unmeasured;		/* the user wants to see edits, though there is a trace */
	int64_t from, to;		/* cycles in sight; 0, 0: as the timeline has it by itself */
	int top;			/* first row in sight, of charts and page */
	int rows, room;			/* in all, and in sight, when it was drawn last */
};

/* What is compared with what: plans of one program. */
struct pair {
	const char *name[2];
	const struct plan *plan[2];
	const struct timeline *tl[2];	/* NULL: there is none */
	const struct lookup *lookup[2];
	const char *script[2];
	const struct usage *usage[2];
	bool measured;
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

	p.name[0] = m->base_given ? "the other" : "before";
	p.name[1] = m->base_given ? "this one" : "now";
	p.usage[0] = one->checked ? &one->usage : NULL;
	p.usage[1] = two->checked ? &two->usage : NULL;
	if (!is_measured_shown(v))
		return p;
	p.measured = true;
	p.name[0] = "predicted";
	p.name[1] = "measured";
	p.tl[1] = m->measured;
	p.plan[1] = m->measured->plan;
	p.lookup[1] = NULL;
	p.script[1] = m->measured_of ? m->measured_of : p.script[0];
	p.usage[0] = p.usage[1] = NULL;
	return p;
}

static const struct phase_line *line_of(const struct timeline *t, int phase)
{
	return t && t->nphases ? &t->phases[phase < t->nphases ? phase : 0] : NULL;
}

/* Have both a clock, or both none? */
static bool one_axis(const struct pair *p)
{
	return p->tl[0] && p->tl[1] && p->tl[0]->logical == p->tl[1]->logical;
}

/* ---- in words ------------------------------------------------------------------- */

static const char *lacks(const struct model *m)
{
	if (!m->now->plan)
		return "there is no plan to compare";
	if (m->measured || m->now != m->base)
		return NULL;
	return "nothing to compare yet: edit the plan, or run it on the device";
}

/* "now takes 0.612 ms, 1.12 times as fast as before" */
static const char *headline(struct arena *a, const struct pair *p)
{
	double one, two;

	if (!p->tl[0] || !p->tl[1])
		return arena_strf(a, "%s: there is no timeline, as the plan is not legal",
			p->name[p->tl[0] != NULL]);
	if (!one_axis(p))
		return arena_strf(a, "%s has no clock: compare the order of its events",
			p->name[p->tl[0]->logical ? 0 : 1]);
	one = p->tl[0]->logical ? (double)p->tl[0]->cycles : p->tl[0]->seconds;
	two = p->tl[1]->logical ? (double)p->tl[1]->cycles : p->tl[1]->seconds;
	if (p->measured)
		return arena_strf(a, "measured %s, predicted %s: the device takes %.1f %% %s",
			unit_seconds(two).s, unit_seconds(one).s, 100 * fabs(two / one - 1),
			two < one ? "less" : "longer");
	if (fabs(two / one - 1) < 0.0005)
		return arena_strf(a, "%s takes %s, as long as %s", p->name[1], unit_seconds(two).s,
			p->name[0]);
	return arena_strf(a, "%s takes %s, %s %s: %.1f %% %s", p->name[1], unit_seconds(two).s,
		p->name[0], unit_seconds(one).s, 100 * fabs(two / one - 1), two < one ? "less" : "more");
}

/* ---- tables --------------------------------------------------------------------- */

/* "-12 %", green where that is better: sign < 0 if less is, 0 if neither. */
static struct table_cell change(struct arena *a, double one, double two, int sign)
{
	double by = one > 0 ? two / one - 1 : 0;
	struct table_cell c = { NULL, PLAIN };

	if (!isfinite(one) || !isfinite(two) || fabs(by) < 0.0005)
		return c;
	c.text = arena_strf(a, "%s %+.*f %%", by < 0 ? "▼" : "▲", fabs(by) < 0.1 ? 1 : 0, 100 * by);
	if (sign)
		c.style.fg = (by < 0) == (sign < 0) ? BETTER : WORSE;
	return c;
}

struct numbers {
	struct arena *a;
	const struct pair *p;
	struct table t;
};

/* A row, unless there is nothing to say of either; `what` outlives the table. */
static void add_number(struct numbers *n, const char *what, const char *one, const char *two,
	struct table_cell by)
{
	struct table_cell *row;

	if (!one && !two)
		return;
	row = table_row(&n->t);
	row[0].text = what;
	row[1].text = one ? one : "-";
	row[2].text = two ? two : "-";
	row[3] = by;
}

static void add_value(struct numbers *n, const char *what, double one, double two,
	struct unit_text (*text)(double v), int sign)
{
	add_number(n, what, one > 0 ? arena_strf(n->a, "%s", text(one).s) : NULL,
		two > 0 ? arena_strf(n->a, "%s", text(two).s) : NULL, one > 0 && two > 0 ?
		change(n->a, one, two, sign) : (struct table_cell){ 0 });
}

static struct unit_text whole(double v)
{
	return unit_count((int64_t)(v + 0.5));
}

static struct unit_text hertz(double v)
{
	return unit_si(v, "Hz");
}

static struct unit_text watts(double v)
{
	return unit_si(v, "W");
}

static struct unit_text flops(double v)
{
	return unit_si(v, "FLOP/s");
}

/* A share, and by how many points of a hundred it is another. */
static void add_share(struct numbers *n, const char *what, double one, double two)
{
	double by = 100 * (two - one);
	struct table_cell c = { NULL, PLAIN };

	if (fabs(by) >= 0.5 && one > 0 && two > 0)
		c.text = arena_strf(n->a, "%+.0f point%s", by, fabs(by) < 1.5 ? "" : "s");
	add_number(n, what, one > 0 ? arena_strf(n->a, "%s", unit_percent(one).s) : NULL,
		two > 0 ? arena_strf(n->a, "%s", unit_percent(two).s) : NULL, c);
}

static double bound_of(const struct phase_line *l)
{
	return l ? fmax(l->res_mii, l->rec_mii) : 0;
}

static const char *binding(const struct pair *p, int i, const struct phase_line *l)
{
	if (!l || !(bound_of(l) > 0))
		return NULL;
	return l->res_mii >= l->rec_mii ? binding_name(p->plan[i], l->binding_seu) : "a recurrence";
}

static void add_loop(struct numbers *n, const struct phase_line *one, const struct phase_line *two)
{
	const char *b[2] = { binding(n->p, 0, one), binding(n->p, 1, two) };

	add_value(n, "interval (II)", one ? one->ii : 0, two ? two->ii : 0, whole, -1);
	add_value(n, "  its bound", bound_of(one), bound_of(two), whole, -1);
	if (b[0] && b[1] && strcmp(b[0], b[1]))
		add_number(n, "  which is", b[0], b[1], (struct table_cell){ 0 });
}

static void add_units(struct numbers *n, const struct phase_line *one, const struct phase_line *two)
{
	const struct vdevice *d = n->p->plan[1]->device;

	for (int s = 0; s < d->nseus; s++)
		add_share(n, arena_strf(n->a, "busy: %s", d->seu[s].name), one ? one->seu[s].share : 0,
			two ? two->seu[s].share : 0);
	if (!n->p->measured)
		add_share(n, "busy: memory", one ? one->memory_share : 0, two ? two->memory_share : 0);
}

static void add_usage(struct numbers *n)
{
	const struct usage *one = n->p->usage[0], *two = n->p->usage[1];

	if (!one || !two)
		return;
	add_value(n, "shared memory", (double)one->shared_bytes, (double)two->shared_bytes, unit_bytes, 0);
	add_value(n, "registers", (double)one->registers, (double)two->registers, whole, 0);
	add_value(n, "threads", one->threads, two->threads, whole, 0);
}

static void put_numbers(const struct pair *p, int phase, struct pen *pen)
{
	const struct column col[] = {
		{ "", ALIGN_LEFT, 0, 0 }, { p->name[0], ALIGN_RIGHT, 0, 0 },
		{ p->name[1], ALIGN_RIGHT, 0, 0 }, { "change", ALIGN_LEFT, 0, 1 },
	};
	struct numbers n = { .a = pen->arena, .p = p };
	const struct timeline *one = p->tl[0], *two = p->tl[1];

	table_init(&n.t, pen->arena, col, LEN(col));
	if (one_axis(p) && !one->logical) {
		add_value(&n, "time", one->seconds, two->seconds, unit_seconds, -1);
		add_value(&n, "speed", one->flops / one->seconds, two->flops / two->seconds, flops, 1);
		add_value(&n, "clock", one->clock_hz, two->clock_hz, hertz, 1);
		add_value(&n, "power", one->watts, two->watts, watts, 0);
	}
	add_value(&n, "cycles", one ? (double)one->cycles : 0, two ? (double)two->cycles : 0, whole, -1);
	add_loop(&n, line_of(one, phase), line_of(two, phase));
	add_units(&n, line_of(one, phase), line_of(two, phase));
	add_usage(&n);
	pen_section(pen, "in numbers");
	pen_table(pen, &n.t);
}

/* ---- causes --------------------------------------------------------------------- */

struct cause_row {
	const char *text;
	double share[2];		/* of the first one's time */
};

struct cause_rows {
	VEC(struct cause_row) v;
};

static struct cause_row *cause_row_of(struct cause_rows *s, struct arena *a, const char *text)
{
	for (int i = 0; i < s->v.n; i++)
		if (!strcmp(s->v.v[i].text, text))
			return &s->v.v[i];
	VEC_PUSH(a, &s->v, ((struct cause_row){ .text = text }));
	return &s->v.v[s->v.n - 1];
}

/* How long for each cause, on average over the lanes that do not only feed others: as
 * lua/std/compare.lua has it. */
static void add_causes(struct cause_rows *s, struct arena *a, const struct timeline *t, int which,
	bool plainly, double all)
{
	double unit = plainly ? 1 : t->clock_hz;
	struct blames b = { 0 };
	int lanes = 0;

	timeline_blame(a, t, plainly, &b);
	for (int l = 0; l < t->plan->lanes.n && l < LANES_MAX; l++)
		lanes += b.lane_cycles[l] > 0 && !lane_only_feeds(t->plan, l);
	for (int i = 0; i < b.v.n; i++) {
		const struct blame_part *x = &b.v.v[i];

		if (!lane_only_feeds(t->plan, x->lane))
			cause_row_of(s, a, blame_text(a, t->plan, x, true))->share[which] +=
				x->share * b.lane_cycles[x->lane] / unit / lanes / all;
	}
}

static int by_difference(const void *x, const void *y)
{
	const struct cause_row *a = x, *b = y;
	double da = fabs(a->share[1] - a->share[0]), db = fabs(b->share[1] - b->share[0]);

	return da != db ? (da < db) - (da > db) : strcmp(a->text, b->text);
}

static const char *share_text(struct arena *a, double share)
{
	return share < 0.0005 ? "-" : arena_strf(a, "%s", unit_percent(share).s);
}

static void put_causes(const struct pair *p, struct pen *pen)
{
	const struct column col[] = {
		{ "where lanes spend their time", ALIGN_LEFT, 20, 0 }, { p->name[0], ALIGN_RIGHT, 0, 0 },
		{ p->name[1], ALIGN_RIGHT, 0, 0 }, { "", ALIGN_LEFT, 0, 1 },
	};
	bool plainly = p->measured || !(p->tl[0]->clock_hz > 0 && p->tl[1]->clock_hz > 0);
	double all = (double)p->tl[0]->cycles / (plainly ? 1 : p->tl[0]->clock_hz);
	struct cause_rows s = { 0 };
	struct table t;

	for (int i = 0; i < 2; i++)
		add_causes(&s, pen->arena, p->tl[i], i, plainly, all);
	qsort(s.v.v, (size_t)s.v.n, sizeof(*s.v.v), by_difference);
	table_init(&t, pen->arena, col, LEN(col));
	for (int i = 0; i < s.v.n && i < CAUSES_SHOWN; i++) {
		const struct cause_row *x = &s.v.v[i];
		bool less = x->share[1] < x->share[0];
		struct table_cell *row;

		if (fabs(x->share[1] - x->share[0]) < 0.005)
			break;
		row = table_row(&t);
		row[0].text = x->text;
		row[1].text = share_text(pen->arena, x->share[0]);
		row[2].text = share_text(pen->arena, x->share[1]);
		row[3].text = x->share[1] < 0.0005 ? "gone" : x->share[0] < 0.0005 ? "new" :
			less ? "▼" : "▲";
		row[3].style.fg = less ? BETTER : WORSE;
	}
	pen_section(pen, arena_strf(pen->arena, "in causes, as shares of the time %s%s",
		strcmp(p->name[0], "the other") ? "" : "of ", p->name[0]));
	if (!t.rows.n)
		pen_puts(pen, "  lanes wait for the same, as long\n", FAINT);
	pen_table(pen, &t);
}

/* ---- sTasks --------------------------------------------------------------------- */

struct task_row {
	const char *name;
	const struct task_sum *sum[2];	/* NULL: it is not there */
	double adds;			/* cycles of its lane */
};

struct task_rows {
	VEC(struct task_row) v;
};

static int by_added(const void *x, const void *y)
{
	double a = fabs(((const struct task_row *)x)->adds), b = fabs(((const struct task_row *)y)->adds);

	return (a < b) - (a > b);
}

/* Matched by name, as the graphs may be different. */
static void gather(struct arena *a, const struct pair *p, int phase, struct task_rows *out)
{
	for (int i = 0; i < 2; i++) {
		const struct graph *g = p->plan[i]->graph;
		const struct task_sum *sum = phase_sums(a, p->tl[i], phase < p->tl[i]->nphases ? phase : 0);

		for (int t = 0; t < g->tasks.n; t++) {
			int k = 0;

			if (!sum[t].n)
				continue;
			while (k < out->v.n && strcmp(out->v.v[k].name, g->tasks.v[t].name))
				k++;
			if (k == out->v.n)
				VEC_PUSH(a, &out->v, ((struct task_row){ .name = g->tasks.v[t].name }));
			out->v.v[k].sum[i] = &sum[t];
		}
	}
	for (int k = 0; k < out->v.n; k++) {
		struct task_row *r = &out->v.v[k];
		double one = r->sum[0] ? r->sum[0]->held : 0, two = r->sum[1] ? r->sum[1]->held : 0;

		if (r->sum[0] && r->sum[1])
			one *= (double)r->sum[1]->n / (double)r->sum[0]->n;
		r->adds = two - one;
	}
}

static const char *mean(struct arena *a, const struct task_sum *s, double sum)
{
	return s ? arena_strf(a, "%s%s", s->late * 2 > s->n ? "<" : "", whole(sum / (double)s->n).s) : "-";
}

static void put_tasks(const struct pair *p, int phase, struct pen *pen)
{
	const struct column col[] = {
		{ "sTask", ALIGN_LEFT, 8, 0 }, { "takes", ALIGN_RIGHT, 0, 0 }, { "then", ALIGN_RIGHT, 0, 0 },
		{ "times", ALIGN_RIGHT, 0, 0 }, { "waits", ALIGN_RIGHT, 0, 0 }, { "then", ALIGN_RIGHT, 0, 0 },
		{ "its lane", ALIGN_RIGHT, 0, 1 },
	};
	struct task_rows rows = { 0 };
	bool late = false;
	struct table t;

	gather(pen->arena, p, phase, &rows);
	qsort(rows.v.v, (size_t)rows.v.n, sizeof(*rows.v.v), by_added);
	table_init(&t, pen->arena, col, LEN(col));
	for (int i = 0; i < rows.v.n; i++) {
		const struct task_row *r = &rows.v.v[i];
		const struct task_sum *one = r->sum[0], *two = r->sum[1];
		struct table_cell *row = table_row(&t);

		row[0].text = r->name;
		row[1].text = mean(pen->arena, one, one ? one->duration : 0);
		row[2].text = mean(pen->arena, two, two ? two->duration : 0);
		if (one && two && one->duration > 0)
			row[3].text = arena_strf(pen->arena, "%.2f", two->duration / (double)two->n /
				(one->duration / (double)one->n));
		row[4].text = one ? arena_strf(pen->arena, "%s", whole(one->wait / (double)one->n).s) : "-";
		row[5].text = two ? arena_strf(pen->arena, "%s", whole(two->wait / (double)two->n).s) : "-";
		row[6].text = arena_strf(pen->arena, "%s%s", r->adds > 0.5 ? "+" : "",
			unit_count((int64_t)round(r->adds)).s);
		row[6].style.fg = r->adds > 0.5 ? WORSE : r->adds < -0.5 ? BETTER : 0;
		late |= (one && one->late * 2 > one->n) || (two && two->late * 2 > two->n);
	}
	pen_section(pen, arena_strf(pen->arena, "by sTask: mean %s %s, then %s; what that adds to its lane",
		timeline_unit(p->tl[1]), p->name[0], p->name[1]));
	pen_table(pen, &t);
	if (late)
		pen_puts(pen, "  < it had ended when its lane looked: at most so long\n", FAINT);
}

/* ---- statements ----------------------------------------------------------------- */

static void put_statement(struct pen *pen, const struct diff_line *l)
{
	const struct style style = { .fg = l->kind == DIFF_GONE ? WORSE : BETTER };
	struct buf b;

	buf_init(&b, pen->arena);
	buf_puts(&b, l->kind == DIFF_GONE ? "  - " : "  + ");
	text_wrap(&b, l->text, 4, 6, pen->width, pen->flags);
	buf_putc(&b, '\n');
	pen_puts(pen, b.text, style);
}

static void put_diff(const struct pair *p, struct pen *pen)
{
	struct diff d;
	int same = 0;

	script_diff(pen->arena, p->script[0] ? p->script[0] : "", p->script[1] ? p->script[1] : "", &d);
	if (p->measured && !d.gone && !d.added)
		return;
	pen_section(pen, p->measured ? "the plan has been edited since it was measured" :
		"in statements of the plan");
	if (!d.gone && !d.added)
		pen_puts(pen, "  the plans are the same\n", FAINT);
	for (int i = 0; i < d.v.n; i++) {
		const struct diff_line *l = &d.v.v[i];

		same += l->kind == DIFF_SAME;
		if (l->kind == DIFF_SAME)
			continue;
		put_statement(pen, l);
	}
	if (same)
		pen_puts(pen, arena_strf(pen->arena, "    and %d that are the same\n", same), FAINT);
}

static void make_page(struct view *v, const struct pair *p, int w)
{
	struct own *own = v->own;
	uint64_t key = key_mix(key_mix(key_of_state(v->m->now), key_of_state(v->m->base)),
		(uintptr_t)p->tl[1] + (uintptr_t)v->m->sel.phase);
	struct pen pen;

	if (!page_begin(&own->page, v->m, key, w, &pen))
		return;
	put_numbers(p, v->m->sel.phase, &pen);
	if (!p->measured)
		put_diff(p, &pen);
	if (one_axis(p)) {
		put_causes(p, &pen);
		put_tasks(p, v->m->sel.phase, &pen);
	}
	if (p->measured)
		put_diff(p, &pen);
	page_end(&own->page, &pen, NULL);
}

/* ---- the charts ----------------------------------------------------------------- */

static void chart(const struct view *v, const struct pair *p, int i, int w, struct cells *out,
	struct chart_map *map)
{
	const struct own *own = v->own;
	struct timeline_view tv = { .phase = v->m->sel.phase, .from = own->from, .to = own->to };

	if (own->to && p->lookup[i] && p->lookup[i]->sorted && v->m->sel.phase < p->tl[i]->nphases)
		lookup_window(&p->lookup[i][v->m->sel.phase], own->from, own->to, &tv.first, &tv.events);
	if (tv.events == 0)
		tv.first = 0;
	timeline_cells(p->tl[i], &tv, w, v->m->flags, &v->m->frame, out, map);
}

/* The cycles that both are shown over: as the second has it by itself, unless it was chosen. */
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

static const char *chart_title(struct arena *a, const struct pair *p, int i)
{
	const struct timeline *t = p->tl[i];

	return arena_strf(a, "%s: %s", p->name[i], timeline_total(a, t));
}

/* The second cursor's place, that the charts share with the timeline. */
static void mark_cursor(const struct view *v, const struct chart_map *map, struct cells *c)
{
	int64_t at = v->m->sel.cursor;

	if (at >= map->from && at < map->to && map->to > map->from)
		cells_mark(c, map->left + (int)((at - map->from) * map->cols / (map->to - map->from)), 1, 1,
			STYLE_REVERSE);
}

static void draw(struct view *v, struct cells *out)
{
	struct own *own = v->own;
	struct pair p = pair_of(v);
	struct arena *a = &v->m->frame;
	struct cells charts[2] = { { 0 } }, all;
	int w = out->w > WIDTH_MIN ? out->w : WIDTH_MIN, y = 2;

	make_page(v, &p, w);
	if (one_axis(&p)) {
		choose_span(v, &p, w);
		for (int i = 0; i < 2; i++) {
			struct chart_map map;

			chart(v, &p, i, w, &charts[i], &map);
			mark_cursor(v, &map, &charts[i]);
		}
	}
	own->rows = y + charts[0].h + charts[1].h + 4 + own->page.cells.h;
	own->room = out->h;
	own->top = (int)max_i64(0, min_i64(own->top, own->rows - own->room));
	cells_init(&all, a, w, own->rows);
	cells_text(&all, 0, 0, w, headline(a, &p), BOLD);
	for (int i = 0; i < 2 && charts[i].h; i++) {
		cells_text(&all, 0, y, w, chart_title(a, &p, i), BOLD);
		cells_blit(&all, 0, y + 1, w, charts[i].h, &charts[i], 0, 0);
		y += charts[i].h + 2;
	}
	cells_blit(&all, 0, y - 1, w, own->page.cells.h, &own->page.cells, 0, 0);
	cells_blit(out, 0, 0, out->w, out->h, &all, 0, own->top);
}

/* ---- keys ----------------------------------------------------------------------- */

static void scroll(struct own *own, int by)
{
	own->top = (int)max_i64(0, min_i64(own->top + by, own->rows - own->room));
}

static void move_window(struct own *own, int64_t by)
{
	by = max_i64(by, -own->from);
	own->from += by;
	own->to += by;
}

/* Around the middle; num / den of it. */
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
		const struct phase_line *l = line_of(p.tl[i], v->m->sel.phase);

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
	const struct phase_line *l = line_of(v->m->now->tl, v->m->sel.phase);
	int64_t span = own->to - own->from;
	int64_t ii = l && l->ii >= 1 && l->ii < (double)CYCLES_MAX ? (int64_t)l->ii : span;

	if (wheel_step(k)) {
		scroll(own, 3 * wheel_step(k));
		return true;
	}
	switch ((int)a) {
	case ACT_UP: scroll(own, -1); return true;
	case ACT_DOWN: scroll(own, 1); return true;
	case ACT_PAGE_UP: scroll(own, 1 - own->room); return true;
	case ACT_PAGE_DOWN: scroll(own, own->room - 1); return true;
	case ACT_HOME: scroll(own, -own->rows); return true;
	case ACT_END: scroll(own, own->rows); return true;
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
	return false;
}

static bool find(struct view *v, const char *text, int direction)
{
	struct own *own = v->own;
	int charts = own->rows - own->page.cells.h;

	own->page.cursor = own->top > charts ? own->top - charts : 0;
	if (!page_find(&own->page, text, direction))
		return false;
	own->top = 0;
	scroll(own, charts + own->page.cursor);
	return true;
}

static void open_view(struct view *v)
{
	page_init(&((struct own *)v->own)->page, v->m);
}

const struct view_ops view_compare = {
	.name = "compare", .groups = GROUP_SPAN | GROUP_EDIT, .size = sizeof(struct own), .lacks = lacks,
	.open = open_view, .draw = draw, .act = act, .find = find,
};
