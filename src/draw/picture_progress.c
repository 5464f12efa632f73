/* The best time so far over trials, and the time of every candidate. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "draw/panel.h"
#include "draw/units.h"

enum {
	LIST = 360, HEIGHT = 640, LEFT = 78,
	LIST_BRIEF = 240,		/* on a slide, ... */
	PLOT_BRIEF = 300,		/* ... whose plot has at least this width */
	BOUND_GAP = 17,			/* names of bounds are at least so far apart */
	LEAST = 150,			/* height of the plot */
	NARROW = 760,			/* a narrower picture has its list below the plot */
	LINE = 18,			/* between the first two lines of the list */
	MANY = 400,			/* points of several curves, above which none are drawn */
	SHOWN = 4000			/* points of one curve that are drawn, about */
};

static const double RADIUS = 4.5;

static const uint8_t inks[] = { INK_FIRST, INK_SECOND, INK_STEADY,
	INK_TASK + TASK_STORE * INK_HUES * INK_SHADES, INK_TEXT, INK_EPILOGUE };
static const double dashes[] = { 0, 7 };

struct plot {
	struct picture *p;
	double x0, x1, y0, y1;		/* y1 is its top */
	double left;			/* of the list */
	bool brief;
	struct progress_axes a;
	const struct progress_curve *v;
	int n;
	double radius;
};

static double at_x(const struct plot *r, double trial)
{
	return r->x0 + (r->x1 - r->x0) * progress_along(&r->a, trial);
}

static double at_y(const struct plot *r, double seconds)
{
	return r->y0 + (r->y1 - r->y0) * progress_up(&r->a, seconds);
}

static int ink_of(const struct plot *r, int curve)
{
	return r->n == 1 ? INK_STEADY : inks[curve % LEN(inks)];
}

static double dash_of(const struct plot *r, int curve)
{
	return r->n == 1 ? 0 : dashes[curve / LEN(inks) % LEN(dashes)];
}

/* ---- background ------------------------------------------------------------------ */

static void draw_grid(const struct plot *r)
{
	double tick[PROGRESS_TICKS];
	int n = progress_ticks(r->a.low, r->a.high, r->a.log, (int)fmin((r->y0 - r->y1) / 28, 9), tick);
	const char *scale;

	for (int i = 0; i < n; i++) {
		picture_line(r->p, r->x0, at_y(r, tick[i]), r->x1, at_y(r, tick[i]), INK_GRID, 1);
		picture_text(r->p, r->x0 - 8, at_y(r, tick[i]) + 5, ANCHOR_RIGHT, 14, INK_FAINT,
			unit_keep(r->p->arena, unit_seconds(tick[i])));
	}
	n = progress_ticks(r->a.first, r->a.last, r->a.log_trials, (int)fmin((r->x1 - r->x0) / 60, 10), tick);
	for (int i = 0; i < n; i++) {
		if (tick[i] != floor(tick[i]))
			continue;
		picture_line(r->p, at_x(r, tick[i]), r->y0, at_x(r, tick[i]), r->y1, INK_GRID, 1);
		picture_text(r->p, at_x(r, tick[i]), r->y0 + 20, ANCHOR_MIDDLE, 14, INK_FAINT,
			unit_keep(r->p->arena, unit_count(llround(tick[i]))));
	}
	picture_line(r->p, r->x0, r->y0, r->x1, r->y0, INK_LINE, 1);
	picture_line(r->p, r->x0, r->y0, r->x0, r->y1, INK_LINE, 1);
	picture_text(r->p, (r->x0 + r->x1) / 2, r->y0 + 44, ANCHOR_MIDDLE, TEXT, INK_FAINT,
		r->a.log_trials ? "trials, on a scale of logarithms" : "trials");
	scale = r->a.log ? "time of the kernel, on a scale of logarithms" : "time of the kernel";
	picture_text(r->p, MARGIN, r->y1 - 14, ANCHOR_LEFT, TEXT, INK_FAINT, scale);
}

static bool is_bound_of_one_before(const struct plot *r, int k)
{
	for (int i = 0; i < k; i++)
		if (fabs(r->v[i].bound - r->v[k].bound) <= 1e-6 * r->v[k].bound)
			return true;
	return false;
}

/* How much of points and curves a text of this width would cover that begins at x on the line y; a curve counts
 * more. */
static int covered(const struct plot *r, double x, double y, double w)
{
	double top = y - 12 - r->radius, bottom = y + 3 + r->radius;
	int n = 0;

	for (int k = 0; k < r->n; k++) {
		const struct progress_curve *c = &r->v[k];

		for (int i = 0; i < c->n; i++) {
			double from = at_x(r, (double)c->v[i].trial), seconds = progress_seconds(&c->v[i]), at =
				at_y(r, seconds);
			double to = i + 1 < c->n ? at_x(r, (double)c->v[i + 1].trial) : from, best = at_y(r,
				c->v[i].best);

			n += seconds > 0 && from > x - r->radius && from < x + w + r->radius && at > top && at < bottom;
			n += c->v[i].best > 0 && to >= x && from <= x + w && best > top && best < bottom ? 4 : 0;
		}
	}
	return n;
}

/* Where the name of a bound at y covers least: below or above its line, at the right unless elsewhere is better,
 * and not near `last`, where the name before is. Returns false if none is far enough from it. */
static bool fit_name(const struct plot *r, double y, double w, double last, double *left, double *base)
{
	enum { SPOTS = 8 };
	int least = INT_MAX;

	for (int i = 0; i < SPOTS; i++) {
		double x = r->x1 - w - (r->x1 - w - r->x0 - 4) * i / (SPOTS - 1);

		for (int above = y + 18 < r->y0 ? 0 : 1; above < 2; above++) {
			double at = above ? y - 7 : y + 16;
			int n = fabs(at - last) < BOUND_GAP ? INT_MAX : covered(r, x, at, w);

			if (n < least) {
				least = n;
				*left = x;
				*base = at;
			}
		}
	}
	return least < INT_MAX;
}

static void draw_bounds(const struct plot *r)
{
	double last = -INFINITY;
	bool differ = false;

	for (int k = 1; k < r->n; k++)
		differ |= r->v[k].bound > 0 && !is_bound_of_one_before(r, k);
	for (int k = 0; k < r->n; k++) {
		double y = at_y(r, r->v[k].bound), w, x;
		const char *text;

		if (!(r->v[k].bound > 0) || is_bound_of_one_before(r, k))
			continue;
		picture_line(r->p, r->x0, y, r->x1, y, INK_BOUND, 2)->dash = 8;
		text = arena_strf(r->p->arena, "bound %s%s%s", unit_seconds(r->v[k].bound).s,
			differ && r->v[k].name[0] ? " of " : "", differ ? r->v[k].name : "");
		w = picture_width(text, 14, false);
		if (!fit_name(r, y, w, last, &x, &y))
			continue;
		last = y;
		picture_rect(r->p, x - 2, y - 12, w + 2, 15, INK_PAPER, INK_NONE);
		picture_text(r->p, x + w, y, ANCHOR_RIGHT, 14, INK_BOUND, text);
	}
}

/* Where a search begins to measure. */
static void draw_begin_of_device(const struct plot *r)
{
	const struct progress_curve *c = &r->v[0];
	const char *text;
	int i = 0;
	double x, w;

	while (i < c->n && !c->v[i].device)
		i++;
	if (r->n > 1 || i == 0 || i == c->n)
		return;
	x = (at_x(r, (double)c->v[i].trial) + at_x(r, (double)c->v[i - 1].trial)) / 2;
	picture_line(r->p, x, r->y0, x, r->y1, INK_LINE, 1)->dash = 3;
	/* on paper, so that curves do not run through the letters */
	text = x < r->x1 - 130 ? "on the device" : "on the device from here on";
	w = picture_width(text, 13, false);
	x += x < r->x1 - 130 ? 6 : -6 - w;
	picture_rect(r->p, x - 2, r->y1 + 2, w + 4, 16, INK_PAPER, INK_NONE);
	picture_text(r->p, x, r->y1 + 14, ANCHOR_LEFT, 13, INK_FAINT, text);
}

/* ---- points --------------------------------------------------------------------- */

enum look { LOOK_PREDICTED, LOOK_MEASURED, LOOK_SKIPPED, LOOK_BAD, LOOKS };

static enum look look_of(const struct progress_entry *e)
{
	return progress_is_bad(e) ? LOOK_BAD : e->status == PROGRESS_SKIPPED ? LOOK_SKIPPED :
		e->measured > 0 ? LOOK_MEASURED : LOOK_PREDICTED;
}

/* `ink`: of its curve; 0: by its look. */
static struct shape *draw_point(struct picture *p, double x, double y, double radius, enum look look, int ink)
{
	struct shape *s;

	if (look == LOOK_BAD) {
		struct point cross[] = { { x - radius, y - radius }, { x + radius, y + radius }, { x, y },
			{ x + radius, y - radius }, { x - radius, y + radius } };

		s = picture_path(p, cross, LEN(cross), false, INK_NONE, ink ? ink : INK_TEXT);
		s->width = 1.8;
		return s;
	}
	ink = look == LOOK_SKIPPED ? INK_WAIT : ink ? ink : look == LOOK_MEASURED ? INK_SECOND : INK_FIRST;
	s = picture_rect(p, x - radius, y - radius, 2 * radius, 2 * radius,
		look == LOOK_MEASURED ? ink : INK_PAPER, ink);
	s->round = radius;
	s->width = 1.5;
	return s;
}

static const char *tip_of(const struct plot *r, const struct progress_curve *c, const struct progress_entry *e)
{
	static const char *const ended[PROGRESS_STATUSES] = { [PROGRESS_SKIPPED] = ", skipped",
		[PROGRESS_WRONG] = ", gives a wrong result", [PROGRESS_FAILED] = ", failed" };
	struct arena *a = r->p->arena;

	return arena_strf(a, "%s%strial %lld%s%s%s%s%s", r->n > 1 ? c->name : "", r->n > 1 && c->name[0] ? ", " : "",
		(long long)e->trial, e->text[0] ? ": " : "", e->text, e->predicted > 0 ?
		arena_strf(a, ", predicted %s", unit_seconds(e->predicted).s) : "", e->measured > 0 ? arena_strf(a,
		", measured %s", unit_seconds(e->measured).s) : "", ended[e->status] ? ended[e->status] : "");
}

static int count_points(const struct plot *r)
{
	int n = 0;

	for (int k = 0; k < r->n; k++)
		n += r->v[k].n;
	return n;
}

static void draw_look(const struct plot *r, int k, enum look look, int by)
{
	const struct progress_curve *c = &r->v[k];

	for (int i = 0; i < c->n; i++) {
		const struct progress_entry *e = &c->v[i];
		double seconds = progress_seconds(e);
		bool better = e->best > 0 && seconds <= e->best;

		if (look_of(e) != look || (look != LOOK_BAD && !(seconds > 0)) || (i % by && !better))
			continue;
		draw_point(r->p, at_x(r, (double)e->trial), at_y(r, seconds), r->radius, look,
			r->n > 1 ? ink_of(r, k) : 0)->tip = tip_of(r, c, e);
	}
}

/* The most important points are drawn last, above the others. */
static void draw_points(const struct plot *r)
{
	static const enum look order[] = { LOOK_SKIPPED, LOOK_PREDICTED, LOOK_MEASURED, LOOK_BAD };
	int all = count_points(r);

	if (r->n > 1 && all > MANY)
		return;
	for (int i = 0; i < LEN(order); i++)
		for (int k = 0; k < r->n; k++)
			draw_look(r, k, order[i], (all + SHOWN - 1) / SHOWN);
}

/* A step where the best changes. */
static void draw_curve(const struct plot *r, int k)
{
	const struct progress_curve *c = &r->v[k];
	struct point *v = ARENA_ARRAY(r->p->arena, 2 * c->n + 1, struct point);
	struct shape *s;
	double last = 0;
	int n = 0;

	for (int i = 0; i < c->n; i++) {
		double x = at_x(r, (double)c->v[i].trial), y = at_y(r, c->v[i].best);

		if (!(c->v[i].best > 0) || (n && c->v[i].best == last))
			continue;
		if (n) {
			v[n] = (struct point){ x, v[n - 1].y };
			n++;
		}
		v[n++] = (struct point){ x, y };
		last = c->v[i].best;
	}
	if (!n)
		return;
	v[n] = (struct point){ at_x(r, (double)c->v[c->n - 1].trial), v[n - 1].y };
	s = picture_path(r->p, v, n + 1, false, INK_NONE, ink_of(r, k));
	s->width = 2.5;
	s->dash = dash_of(r, k);
}

/* ---- the list -------------------------------------------------------------------- */

static double best_of_all(const struct plot *r)
{
	double best = 0;

	for (int k = 0; k < r->n; k++) {
		double b = progress_best(&r->v[k]);

		best = b > 0 && (!(best > 0) || b < best) ? b : best;
	}
	return best;
}

static const char *trials_text(struct arena *a, const struct progress_curve *c)
{
	int measured = 0, bad = 0;

	for (int i = 0; i < c->n; i++) {
		measured += c->v[i].measured > 0;
		bad += progress_is_bad(&c->v[i]);
	}
	return arena_strf(a, "%s tried%s%s", unit_count(c->n).s, measured ? arena_strf(a, ", %s measured",
		unit_count(measured).s) : "", bad ? arena_strf(a, ", %s wrong or failed", unit_count(bad).s) : "");
}

/* Describe a curve in lines; returns how many. */
static int describe_curve(const struct plot *r, const struct progress_curve *c, double all, const char *line[3])
{
	struct arena *a = r->p->arena;
	double best = progress_best(c);
	int at = progress_reaches(c, best), near = progress_reaches(c, all * 1.01), n = 0;

	line[n++] = !(best > 0) ? "nothing found" : arena_strf(a, "best %s at trial %s", unit_seconds(best).s,
		unit_count(c->v[at].trial).s);
	line[n++] = r->n == 1 ? trials_text(a, c) : near == NONE ? "never within 1 % of the best of all" :
		arena_strf(a, "within 1 %% of the best%s from trial %s", r->brief ? "" : " of all",
		unit_count(c->v[near].trial).s);
	if (best > 0 && c->bound > 0)
		line[n++] = arena_strf(a, "%s above its bound", unit_percent(best / c->bound - 1).s);
	return n;
}

/* Returns where it ends. */
static double draw_list(const struct plot *r, double y)
{
	double left = r->left, space = r->p->width - left - 40 - MARGIN, all = best_of_all(r);

	for (int k = 0; k < r->n; k++) {
		const struct progress_curve *c = &r->v[k];
		struct shape *s = picture_line(r->p, left, y - 5, left + 28, y - 5, ink_of(r, k), 2.5);
		const char *line[3];
		int n = describe_curve(r, c, all, line);

		s->dash = dash_of(r, k);
		picture_bold(r->p, left + 40, y, ANCHOR_LEFT, TEXT, INK_TEXT, picture_fit(r->p,
			r->n > 1 && c->name[0] ? c->name : "best so far", TEXT, space));
		y += 1 + LINE;
		for (int i = 0; i < n; i++)
			y = picture_wrap(r->p, left + 40, y, space, 13, INK_FAINT, line[i]);
		y += 11;
	}
	return y;
}

/* Returns where they end. */
static double draw_marks(const struct plot *r, double y)
{
	static const char *const names[LOOKS] = { "predicted", "measured", "skipped", "wrong or failed" };
	double left = r->left;

	if (r->n > 1 && count_points(r) > MANY)
		return y;
	for (int look = 0; look < LOOKS; look++) {
		bool there = false;

		for (int k = 0; k < r->n; k++)
			for (int i = 0; i < r->v[k].n; i++)
				there |= (int)look_of(&r->v[k].v[i]) == look;
		if (!there)
			continue;
		draw_point(r->p, left + 14, y - 5, RADIUS, (enum look)look, r->n > 1 ? INK_TEXT : 0);
		picture_text(r->p, left + 40, y, ANCHOR_LEFT, 14, INK_FAINT, names[look]);
		y += 24;
	}
	return y;
}

/* The list and the marks from y down, after everything else; returns where they end. */
static double draw_words(const struct plot *r, double y)
{
	return draw_marks(r, draw_list(r, y + 12) + 4);
}

void picture_progress(struct picture *p, const struct progress_curve *v, int n, const struct picture_options *o)
{
	struct plot r = { .p = p, .v = v, .n = n };
	const char *line = n == 1 ? "what a search tried, and its best so far" : "the best so far of several searches";
	const char *title = n == 1 && v[0].name[0] ? v[0].name : "Search";
	double y, space;
	bool below;
	int shapes;

	o = picture_begin(p, o);
	p->height = o->height > 0 ? o->height : HEIGHT;
	y = picture_top(p, o, o->title ? o->title : title, 1, &line);
	if (!count_points(&r)) {
		picture_text(p, MARGIN, y + 20, ANCHOR_LEFT, TEXT, INK_FAINT, "nothing was tried");
		return;
	}
	r.brief = o->brief;
	below = p->width < NARROW && !r.brief;
	space = r.brief ? LIST_BRIEF : LIST;
	r.x0 = MARGIN + (r.brief ? LEFT - 12 : LEFT);
	if (r.brief)
		p->width = fmax(p->width, r.x0 + PLOT_BRIEF + space + MARGIN);
	r.x1 = below ? p->width - MARGIN : p->width - space - MARGIN;
	r.y1 = y + (r.brief ? 20 : 30);
	r.left = below ? MARGIN : r.x1 + (r.brief ? 24 : 36);
	p->height = fmax(p->height, r.y1 + LEAST + (r.brief ? 56 : 70));
	r.a = progress_axes_of(v, n);
	r.radius = count_points(&r) > 300 ? RADIUS * 0.6 : n > 1 ? RADIUS * 0.75 : RADIUS;
	/* the plot has the height that was asked for, if its list is below, or that of the list */
	r.y0 = p->height - (r.brief ? 56 : 70);
	shapes = p->shapes.n;
	y = draw_words(&r, below ? p->height : r.y1);
	p->shapes.n = shapes;
	p->height = fmax(p->height, y + (r.brief ? 0 : MARGIN / 2));
	if (!below)
		r.y0 = p->height - (r.brief ? 56 : 70);
	draw_grid(&r);
	draw_points(&r);
	draw_bounds(&r);
	for (int k = 0; k < n; k++)
		draw_curve(&r, k);
	draw_begin_of_device(&r);
	draw_words(&r, below ? r.y0 + 70 : r.y1);
}
