/* Rows of a timeline in a picture: bars where a unit works, hatched bars where a lane waits, marks where it issues,
 * with lines from the marks to the bars that they start. */
#include "draw/panel.h"

#include <math.h>
#include <string.h>

#include "draw/units.h"

enum {
	COLUMN = 9,			/* pixels for each column that a chart of text would have */
	BAR_TEXT = 13,
	LETTER_LEAST = 11,		/* least width of a bar with a letter */
	SIZE_LEAST = 10,		/* of a text in a bar */
	LEAST_HATCHED = 20,		/* hatching on both sides of a text that is less wide would be crumbs */
	TWO_TEXTS = 26,			/* height of a row in which two texts are above each other */
	DENSE = 5,			/* pixels for each event below which no lines are drawn */
};

static const double STRETCH_LEAST = 0.55, STRETCH_MOST = 4;

void panel_init(struct panel *n, struct picture *p, const struct timeline *t,
	const struct timeline_view *v, const struct picture_options *o, double x0, double x1)
{
	memset(n, 0, sizeof(*n));
	n->p = p;
	n->theme = o->theme;
	n->x0 = x0;
	n->x1 = x1;
	n->stretch = 1;
	n->rings = o->rings || o->only_rings;
	n->only_rings = o->only_rings;
	n->brief = n->no_seconds = o->brief;
	chart_init(&n->c, t, v, (int)((x1 - x0) / COLUMN), 0, p->arena);
	chart_set_window(&n->c, n->c.from, min_i64(n->c.to, max_i64(n->c.line->cycles, n->c.lookup->last)));
	n->ink = task_inks(p->arena, n->c.g);
	p->from = (double)n->c.from;
	p->to = (double)n->c.to;
}

double panel_labels(struct picture *p, const struct timeline *t, const struct timeline_view *v, bool rings)
{
	const struct phase_line *line = &t->phases[v && v->phase < t->nphases ? v->phase : 0];
	const struct plan *plan = t->plan;
	bool both = v && v->by == TIMELINE_SEUS;	/* "cuda c0" */
	double w = picture_width("cycles", TEXT, true), lanes = 0;

	for (int i = 0; i < plan->lanes.n; i++)
		lanes = fmax(lanes, picture_width(plan->lanes.v[i].name, TEXT, true) +
			(plan->lanes.v[i].replicas > 1 ? 24 : 0));
	for (int i = 0; i < line->events.n; i++)	/* where warpgroups drift apart, they have rows of their own */
		if (event_is_placed(plan, &line->events.v[i]) && lookup_drifts(line, i))
			lanes = fmax(lanes, picture_width(warpgroup_label(p->arena, plan, line->events.v[i].lane, 0),
				TEXT, true));
	for (int i = 0; i < plan->device->nseus; i++)
		if (plan_shows_unit(plan, i))
			w = fmax(w, picture_width(unit_label(p->arena, line, plan->device, i), TEXT, true) +
				(both && !plan->device->seu[i].async ? lanes + 6 : 0));
	for (int i = 0; i < plan->graph->buffers.n && rings; i++)
		if (plan_scope(plan, i) == SCOPE_SHARED || plan->versions[i] > 1)
			w = fmax(w, picture_width(plan->graph->buffers.v[i].name, TEXT, true));
	return fmin(fmax(w, lanes), 180);
}

/* ---- rows ----------------------------------------------------------------------- */

static void add_row(struct panel *n, const char *label, double y, double h)
{
	VEC_PUSH(n->p->arena, &n->rows, ((struct panel_row){ .ring = NONE, .label = label, .y = y, .h = h,
		.done = -INFINITY }));
}

/* 1 or more. */
static int64_t cycles_of_pixel(const struct panel *n)
{
	return max_i64(1, (int64_t)((double)(n->c.to - n->c.from) / (n->x1 - n->x0)));
}

/* The rows of an asynchronous sEU are less high the more of them there are, but high enough for letters. */
static double arrange_queue(struct panel *n, int seu, double y)
{
	int deep = n->layout.queue_depth[seu];
	double h = (deep > 8 ? STACK_ROW / 2.0 : deep > 4 ? STACK_ROW * 0.75 : deep > 1 ? STACK_ROW : ROW) * n->stretch;

	h = fmax(h, SIZE_LEAST + 2);
	for (int k = 0; k < deep; k++) {
		add_row(n, n->layout.rows.v[n->rows.n].label, y, h);
		y += h + (k + 1 < deep ? 1 : ROW_GAP) * n->stretch;
	}
	return y;
}


double panel_arrange(struct panel *n, double y)
{
	n->top = y;
	n->rows.n = 0;
	if (n->only_rings) {
		n->bottom = panel_arrange_rings(n, y) - ROW_GAP;
		return n->bottom;
	}
	if (!n->layout.rows.n)		/* bars that overlap by less than a pixel share a row */
		chart_lay_out(&n->c, CHART_DEPTH_MAX, cycles_of_pixel(n), &n->layout);
	while (n->rows.n < n->layout.rows.n) {
		const struct layout_row *r = &n->layout.rows.v[n->rows.n];

		if (n->rows.n && n->rows.n == n->layout.nlanes)
			y += GROUP_GAP * n->stretch;
		if (r->lane == NONE) {
			y = arrange_queue(n, r->seu, y);
			continue;
		}
		add_row(n, r->label, y, ROW * n->stretch);
		y += (ROW + ROW_GAP) * n->stretch;
	}
	if (n->rings)
		y = panel_arrange_rings(n, y + GROUP_GAP * n->stretch);
	n->bottom = y - ROW_GAP * n->stretch;
	return n->bottom;
}

void panel_stretch(struct panel *const *v, int n, double rows)
{
	double low = STRETCH_LEAST, high = STRETCH_MOST;

	/* by halves, as some gaps stay as they are */
	for (int step = 0; step < 16; step++) {
		double sum = 0;

		for (int i = 0; i < n; i++) {
			v[i]->stretch = (low + high) / 2;
			sum += panel_arrange(v[i], 0);
		}
		if (sum > rows)
			high = v[0]->stretch;
		else
			low = v[0]->stretch;
	}
	for (int i = 0; i < n; i++)
		v[i]->stretch = low;
}

/* ---- bars ----------------------------------------------------------------------- */

/* "mma_qk 3", "qk 3", "q3", "q": as much as fits. */
static const char *bar_text(struct panel *n, const struct event *e, double size, double space)
{
	const struct task_key *k = &n->c.key[e->task];
	const char *text[] = {
		arena_strf(n->p->arena, "%s %d", n->c.g->tasks.v[e->task].name, e->seq),
		arena_strf(n->p->arena, "%s %d", k->brief, e->seq),
		arena_strf(n->p->arena, "%s%d", k->letter, e->seq), k->letter };

	for (int i = 0; i < LEN(text); i++)
		if (picture_width(text[i], size, false) <= space)
			return text[i];
	return "";
}

/* "softmax 3 of c0 on cuda: issued 1,200, 1,250 to 1,900; waited 30 for mma_qk" */
static const char *tip_of(struct panel *n, const struct event *e)
{
	struct arena *a = n->p->arena;
	struct buf b = buf_new(a);

	buf_printf(&b, "%s %d of %s on %s: issued %s, at work %s to %s", n->c.g->tasks.v[e->task].name, e->seq,
		n->c.split[e->lane] ? warpgroup_label(a, n->c.t->plan, e->lane, e->group) :
		lane_label(a, n->c.t->plan, e->lane, e->replica), n->c.d->seu[e->seu].name, unit_count(e->issue).s,
		unit_count(e->start).s, unit_count(e->end).s);
	if (e->issue > e->ready)
		buf_printf(&b, "; waited %s %s", unit_count(e->issue - e->ready).s,
			reason_text(a, n->c.t->plan, event_held_by(n->c.t, e)));
	return b.text;
}

/* Clip an interval to the window; false if nothing of it is in sight. */
static bool clip(const struct panel *n, int64_t *begin, int64_t *end, double *x, double *w)
{
	if (!chart_shows(&n->c, *begin, *end))
		return false;
	*begin = max_i64(*begin, n->c.from);
	*end = min_i64(*end, n->c.to);
	*x = panel_x(n, *begin);
	*w = panel_x(n, *end) - *x;
	return *w >= 0;
}

double panel_appears(double text, double w, int64_t begin, int64_t end)
{
	return (double)begin + (double)(end - begin) * fmin(fmax((w + text) / 2 / w, 0), 1);
}

/* A text for which lines to other rows are interrupted, and so far before and behind it. `y`: its base line. */
static struct shape *draw_on_ground(struct panel *n, double x, double y, enum anchor anchor, int ink, const char *text,
	double margin, double appears)
{
	double w = picture_width(text, SMALL, false);
	struct shape *s = picture_rect(n->p, (anchor == ANCHOR_MIDDLE ? x - w / 2 : x) - margin, y - 9.5,
		w + 2 * margin, 11.5,
		INK_PANEL, INK_NONE);

	shape_move(s, MOTION_APPEAR, appears, 0);
	s = picture_text(n->p, x, y, anchor, SMALL, ink, text);
	shape_move(s, MOTION_APPEAR, appears, 0);
	return s;
}

static void draw_bar(struct panel *n, const struct event *e, struct panel_row *r, int64_t begin, int64_t end)
{
	int ink = n->ink[e->task];
	struct shape *s;
	const char *text;
	double x, w, size = fmin(BAR_TEXT, r->h - 2);

	if (!clip(n, &begin, &end, &x, &w) || x + w < r->done + 0.3)
		return;
	r->done = x + w;
	s = picture_rect(n->p, x, r->y, fmax(w, 0.5), r->h, ink, w > 3 ? INK_PAPER : INK_NONE);
	s->width = 0.8;
	s->round = w > 8 ? 2 : 0;
	s->tip = w > 1 ? tip_of(n, e) : NULL;
	shape_move(s, MOTION_GROW, (double)begin, (double)end);
	text = w < LETTER_LEAST || size < SIZE_LEAST ? "" : bar_text(n, e, size, w - 4);
	if (!*text)
		return;
	/* in a low row a little higher, so that an underscore stays within it */
	s = picture_text(n->p, x + w / 2, r->y + fmin(r->h / 2 + size * 0.36, r->h - size * 0.24 - 0.8),
		ANCHOR_MIDDLE, size, picture_on(n->theme, ink), text);
	shape_move(s, MOTION_APPEAR, panel_appears(s->max_width, w, begin, end), 0);
}

/* Does another bar of its row follow the bar of this event at once, so that it hides what is drawn behind it? Events are in
 * order of issue, and none begins before it is issued. */
static bool is_followed(struct panel *n, int seen, const struct panel_row *r)
{
	const struct event *e = chart_seen(&n->c, seen);
	int64_t pixel = cycles_of_pixel(n);

	for (int i = seen + 1; i < n->c.seen.n && chart_seen(&n->c, i)->issue <= e->end; i++) {
		const struct event *next = chart_seen(&n->c, i);

		if (next->seu == e->seu && !n->c.seen.v[i].joined && event_seu_begin(next) > event_seu_begin(e) &&
		    event_seu_begin(next) <= event_seu_end(&n->c, e) + pixel &&
		    &n->rows.v[layout_row_of(&n->c, &n->layout, i)] == r)
			return true;
	}
	return false;
}

/* A line from the end of the work to the completion, if the unit does nothing else then. */
static void draw_tail(struct panel *n, int seen, const struct panel_row *r)
{
	const struct event *e = chart_seen(&n->c, seen);
	int64_t begin = event_seu_end(&n->c, e), end = e->end;
	double x, w, y = r->y + r->h - 4;
	struct shape *s;

	if (end <= begin || is_followed(n, seen, r) || !clip(n, &begin, &end, &x, &w) || w < 3)
		return;
	n->drawn |= DRAWN_TAIL;
	s = picture_rect(n->p, x, y, w, 2.5, n->ink[e->task], INK_NONE);
	shape_move(s, MOTION_GROW, (double)begin, (double)end);
	if (end < e->end)
		return;
	s = picture_rect(n->p, x + w - 2, y - 4, 2, 8, n->ink[e->task], INK_NONE);
	shape_move(s, MOTION_APPEAR, (double)e->end, 0);
}

/* The base line of a small text in a row that is too low for two. */
static double low_base(const struct panel_row *r)
{
	return r->y + r->h / 2 + SMALL * 0.36;
}

/* "w:mma", "w" or "": as much as fits into a width. */
static const char *wait_text(struct panel *n, struct reason why, double w)
{
	const char *mark = cause_mark(why.cause), *text = mark;

	if (!*mark || w < fmax(14, picture_width(mark, SMALL, false) + 4))
		return "";
	if (reason_on(n->c.t->plan, why))
		text = arena_strf(n->p->arena, "%s:%s", mark, reason_on(n->c.t->plan, why));
	return picture_width(text, SMALL, false) > w - 8 ? mark : text;
}

static void draw_wait(struct panel *n, const struct event *e, struct panel_row *r, int64_t begin,
	int64_t end, struct reason why)
{
	int64_t waited = end - begin;
	const char *text, *tip;
	double x, w, labelled;
	bool low;
	struct shape *s;

	if (end <= begin || !clip(n, &begin, &end, &x, &w))
		return;
	if (x < r->done) {		/* not under a bar */
		w -= r->done - x;
		x = r->done;
	}
	if (w < 1)
		return;
	n->drawn |= DRAWN_WAIT;
	text = wait_text(n, why, w);
	labelled = picture_width(text, SMALL, false);
	low = r->h < TWO_TEXTS;		/* there, the text interrupts the hatching, elsewhere it is below */
	tip = arena_strf(n->p->arena, "%s %d waits %s cycles %s", n->c.g->tasks.v[e->task].name,
		e->seq, unit_count(waited).s, reason_text(n->p->arena, n->c.t->plan, why));
	if (!low || !*text || w - labelled > LEAST_HATCHED) {
		s = picture_rect(n->p, x, r->y + r->h * (low ? 0.3 : 0.38), w, r->h * (low ? 0.4 : 0.22), INK_NONE,
			INK_NONE);
		s->hatched = true;
		s->tip = tip;
		shape_move(s, MOTION_GROW, (double)begin, (double)end);
	}
	if (!*text)
		return;
	n->drawn |= (unsigned)DRAWN_CAUSE << why.cause;
	draw_on_ground(n, x + w / 2, low ? low_base(r) : r->y + r->h - 2.5, ANCHOR_MIDDLE, INK_FAINT, text,
		low ? 3 : 1, panel_appears(labelled, w, begin, end))->tip = tip;
}

static struct panel_row *lane_row_of(struct panel *n, const struct event *e)
{
	int r = layout_lane_row_of(&n->c, &n->layout, e);

	return r == NONE ? NULL : &n->rows.v[r];
}

/* This and the next two: by index in chart.seen. */
static void draw_work(struct panel *n, int seen)
{
	const struct event *e = chart_seen(&n->c, seen);
	struct panel_row *r = &n->rows.v[layout_row_of(&n->c, &n->layout, seen)], *lane = lane_row_of(n, e);

	if (lane)
		draw_wait(n, e, lane, e->ready, e->issue, event_held_by(n->c.t, e));
	if (event_is_async(&n->c, e) && !n->c.seen.v[seen].joined) {
		draw_bar(n, e, r, event_seu_begin(e), event_seu_end(&n->c, e));
		draw_tail(n, seen, r);
	} else if (!event_is_async(&n->c, e)) {
		draw_wait(n, e, r, e->issue, e->start, (struct reason){ e->cause, e->cause_task });
		draw_bar(n, e, r, e->start, e->end);
	}
}

/* ---- issues --------------------------------------------------------------------- */

/* The line from the mark of an issue to the bar. */
static void draw_link(struct panel *n, int seen)
{
	const struct event *e = chart_seen(&n->c, seen);
	struct panel_row *r = &n->rows.v[layout_row_of(&n->c, &n->layout, seen)], *lane = lane_row_of(n, e);
	int64_t begin = event_seu_begin(e);
	struct shape *s;

	if (e->issue < n->c.from || e->issue > n->c.to || begin > n->c.to)
		return;
	n->drawn |= DRAWN_LINK;
	s = picture_line(n->p, panel_x(n, e->issue), lane->y + lane->h, panel_x(n, begin), r->y,
		n->ink[e->task], 0.9);
	shape_move(s, MOTION_APPEAR, (double)begin, 0);
}

/* How much of "q3" fits into a space: 2: all, 1: the letter, 0: nothing. */
static int label_fits(struct panel *n, const struct event *e, double space)
{
	const char *letter = n->c.key[e->task].letter;

	if (picture_width(arena_strf(n->p->arena, "%s%d", letter, e->seq), SMALL, false) <= space - 5)
		return 2;
	return picture_width(letter, SMALL, false) <= space - 5;
}

/* A mark in the lane's row, with its label if there is space next to it; at_most: what of it, as in label_fits. */
static void draw_mark(struct panel *n, int seen, double space, int at_most)
{
	const struct event *e = chart_seen(&n->c, seen);
	const struct panel_row *lane = lane_row_of(n, e);
	double x = panel_x(n, e->issue);
	int fits = (int)min_i64(label_fits(n, e, space), at_most);
	struct shape *s;

	if (e->issue < n->c.from || e->issue > n->c.to)
		return;
	s = picture_rect(n->p, x - 1.2, lane->y, 2.4, lane->h, n->ink[e->task], INK_NONE);
	shape_move(s, MOTION_APPEAR, (double)e->issue, 0);
	s->tip = tip_of(n, e);
	if (fits)
		draw_on_ground(n, x + 3, lane->h < TWO_TEXTS ? low_base(lane) : lane->y + 11, ANCHOR_LEFT, INK_TEXT,
			fits == 1 ? n->c.key[e->task].letter :
			arena_strf(n->p->arena, "%s%d", n->c.key[e->task].letter, e->seq), 1, (double)e->issue);
}

static bool is_issue(const struct panel *n, const struct event *e)
{
	return event_is_async(&n->c, e) && n->c.by == TIMELINE_LANES;
}

/* Pixels until the next event in the lane's row, or until what is written about its waiting in the same line. By index
 * in chart.seen. */
static double space_after(struct panel *n, int seen)
{
	const struct event *e = chart_seen(&n->c, seen), *f;
	int next = lookup_next_of_lane(n->c.lookup, n->c.seen.v[seen].event, 1);
	int64_t until;

	if (next == NONE)
		return n->x1 - panel_x(n, e->issue);
	f = event_part(n->c.line, next, e->group);
	until = lane_row_of(n, e)->h < TWO_TEXTS ? f->ready : event_is_async(&n->c, f) ? f->issue : f->start;
	return fmin(panel_x(n, until), n->x1) - panel_x(n, e->issue);
}

/* How often the labels of an sTask fit next to its marks in a row: [0]: of so many marks, [1]: the letter, [2]: all. */
struct label_count {
	int n[3];
};

static struct label_count *count_of(struct panel *n, struct label_count *counts, int seen)
{
	const struct event *e = chart_seen(&n->c, seen);

	return &counts[(lane_row_of(n, e) - n->rows.v) * n->c.g->tasks.n + e->task];
}

/* Marks are labelled alike: a label that most marks of an sTask in a row have no space for would look as if it
 * meant more than they. */
static int usual_label(const struct label_count *c)
{
	return 2 * c->n[2] >= c->n[0] ? 2 : 2 * c->n[1] >= c->n[0];
}

static void draw_marks(struct panel *n)
{
	struct label_count *counts = arena_alloc(n->p->arena, (size_t)(n->rows.n * n->c.g->tasks.n) * sizeof(*counts));

	memset(counts, 0, (size_t)(n->rows.n * n->c.g->tasks.n) * sizeof(*counts));
	for (int i = 0; i < n->c.seen.n; i++) {
		const struct event *e = chart_seen(&n->c, i);
		struct label_count *c;
		int fits;

		if (!is_issue(n, e) || e->issue < n->c.from || e->issue > n->c.to)
			continue;
		c = count_of(n, counts, i);
		fits = label_fits(n, e, space_after(n, i));
		c->n[0]++;
		c->n[1] += fits >= 1;
		c->n[2] += fits >= 2;
	}
	for (int i = 0; i < n->c.seen.n; i++)
		if (is_issue(n, chart_seen(&n->c, i)))
			draw_mark(n, i, space_after(n, i), usual_label(count_of(n, counts, i)));
}

/* Are there so many events that lines and letters would hide them? */
static bool is_dense(const struct panel *n)
{
	int seen = 0;

	for (int i = 0; i < n->c.seen.n; i++)
		seen += chart_shows(&n->c, chart_seen(&n->c, i)->start, chart_seen(&n->c, i)->end);
	return seen > (n->x1 - n->x0) / DENSE * fmax(n->rows.n, 1) / 4;
}

void panel_ground(struct panel *n)
{
	for (int i = 0; i < n->rows.n; i++) {
		const struct panel_row *r = &n->rows.v[i];

		picture_rect(n->p, n->x0, r->y, n->x1 - n->x0, r->h, INK_PANEL, INK_NONE);
		picture_bold(n->p, n->x0 - 10, r->y + r->h / 2 + TEXT * 0.36, ANCHOR_RIGHT, TEXT, INK_TEXT,
			picture_fit(n->p, r->label, TEXT, n->x0 - MARGIN - 10));
	}
}

void panel_draw(struct panel *n)
{
	bool dense = is_dense(n);

	if (n->rings)
		panel_draw_rings(n);
	if (n->only_rings)
		return;
	for (int i = 0; i < n->c.seen.n && !dense; i++)
		if (is_issue(n, chart_seen(&n->c, i)))
			draw_link(n, i);
	for (int i = 0; i < n->c.seen.n; i++)
		draw_work(n, i);
	if (!dense)
		draw_marks(n);
}
