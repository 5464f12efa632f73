/* A roofline: speeds of kernels by arithmetic intensity, and what the device allows. */
#include <math.h>
#include <string.h>

#include "draw/panel.h"
#include "draw/units.h"

enum {
	LIST = 400, DOT = 7, HEIGHT = 680, CORNERS = 20,
	LIST_BRIEF = 270,		/* on a slide, ... */
	PLOT_BRIEF = 310,		/* ... whose plot has at least this width */
	NARROW = 900,			/* a narrower picture has its list below the plot, ... */
	NARROW_PLOT = 380,		/* ... which is then so high */
	LEAST_PLOT = 150,		/* and this height */
	ENTRY = 46, ENTRY_BRIEF = 40,	/* of the list */
	STEP = 13, FAR = 24,		/* labels of crowded points are moved out by such steps, at most so often */
	SLOPE_BOXES = 32,		/* areas that a slope occupies */
	FEW = 8,			/* so many points have their names in the plot */
	GAP = 7,			/* between numbers of an axis */
	FINE = 3			/* up to so many decades there are grid lines within them */
};

struct roof {
	struct picture *p;
	double x0, x1, y0, y1;		/* of the plot; y1 is its top */
	double i0, i1, f0, f1;		/* flop/byte and flop/s at its sides */
	double peak, memory, l2;	/* flop/s, bytes/s */
	const char *unit;		/* sEU that has the peak */
	bool brief;
	double entry;			/* height of an entry of the list */
};

static double at_x(const struct roof *r, double intensity)
{
	return r->x0 + (r->x1 - r->x0) * log(intensity / r->i0) / log(r->i1 / r->i0);
}

static double at_y(const struct roof *r, double flops)
{
	return r->y0 + (r->y1 - r->y0) * log(flops / r->f0) / log(r->f1 / r->f0);
}

/* The roof at the intensity of a point. */
static double most_at(const struct roof *r, const struct roof_point *v)
{
	return fmin(r->peak, v->flops / fmax(v->bytes, 1) * r->memory);
}

static void find_peak(struct roof *r, const struct vdevice *d, enum dtype type)
{
	r->unit = "";
	for (int s = 0; s < d->nseus; s++) {
		const struct seu *u = &d->seu[s];
		double clock = u->clock_hz > 0 ? fmin(u->clock_hz, d->clock_hz) : d->clock_hz;
		double v = u->kind == SEU_MATRIX ? u->flops[type] * clock * d->eus :
			u->kind == SEU_VECTOR ? 2 * u->ops[CLASS_FMA] * clock * d->eus : 0;

		if (v > r->peak) {
			r->peak = v;
			r->unit = u->name;
		}
	}
	r->memory = d->global_rate;
	r->l2 = d->l2_rate * d->clock_hz;
}

/* Choose decades that contain all points and the ridge. */
static void choose_range(struct roof *r, const struct roof_point *v, int n)
{
	double ridge = r->peak / r->memory, low = ridge, high = ridge, least = r->peak, best = r->peak;

	for (int i = 0; i < n; i++) {
		double x = v[i].flops / fmax(v[i].bytes, 1);

		if (!(x > 0) || !(v[i].seconds > 0))
			continue;
		low = fmin(low, x);
		high = fmax(high, x);
		least = fmin(least, v[i].flops / v[i].seconds);
		best = fmax(best, v[i].flops / v[i].seconds);
	}
	r->i0 = pow(10, floor(log10(low) - 0.3));
	r->i1 = pow(10, ceil(log10(high) + 0.2));
	r->f1 = best * 2;
	r->f0 = pow(10, floor(log10(fmin(least, r->i0 * r->memory)) + 0.2));
	if (r->f0 < r->f1 / 1e5)
		r->f0 = fmin(pow(10, floor(log10(least))), r->f1 / 1e3);
}

/* The next grid line after v: decades, or 1, 2, 5 in each if there are few. */
static double next_round(double v, double from, double to)
{
	double decade = pow(10, floor(log10(v) + 1e-9));

	if (to / from > pow(10, FINE))
		return decade * 10;
	return decade * (v < 1.5 * decade ? 2 : v < 3 * decade ? 5 : 10);
}

static const char *intensity_text(const struct roof *r, double i)
{
	return i < 1 ? arena_strf(r->p->arena, "%g", i) : unit_keep(r->p->arena, unit_count(llround(i)));
}

static double decade_from(double v)
{
	return pow(10, ceil(log10(v) - 1e-9));
}

/* A line that is no decade is drawn only where its number fits between its neighbours'. */
static void draw_grid(const struct roof *r)
{
	double last = -INFINITY;

	for (double i = r->i0; i <= r->i1 * 1.001; i = next_round(i, r->i0, r->i1)) {
		const char *text = intensity_text(r, i);
		double half = picture_width(text, 14, false) / 2, decade = decade_from(i), left = at_x(r, i) - half,
			right = decade > i * 1.001 ? at_x(r, decade) - picture_width(intensity_text(r, decade), 14, false) / 2 :
			INFINITY;
		bool fits = left >= last + GAP && at_x(r, i) + half + GAP <= right;

		if (!fits && right < INFINITY)
			continue;
		picture_line(r->p, at_x(r, i), r->y0, at_x(r, i), r->y1, INK_GRID, 1);
		if (!fits)
			continue;
		last = at_x(r, i) + half;
		picture_text(r->p, at_x(r, i), r->y0 + 20, ANCHOR_MIDDLE, 14, INK_FAINT, text);
	}
	last = INFINITY;
	for (double f = r->f0; f <= r->f1 * 1.001; f = next_round(f, r->f0, r->f1)) {
		double decade = decade_from(f), above = decade > f * 1.001 ? at_y(r, decade) : -INFINITY;
		bool fits = at_y(r, f) <= last - 20 && above <= at_y(r, f) - 20;

		if (!fits && above > -INFINITY)
			continue;
		picture_line(r->p, r->x0, at_y(r, f), r->x1, at_y(r, f), INK_GRID, 1);
		if (!fits)
			continue;
		last = at_y(r, f);
		picture_text(r->p, r->x0 - 8, last + 5, ANCHOR_RIGHT, 14, INK_FAINT,
			unit_keep(r->p->arena, unit_si(f, "")));
	}
	picture_line(r->p, r->x0, r->y0, r->x1, r->y0, INK_LINE, 1);
	picture_line(r->p, r->x0, r->y0, r->x0, r->y1, INK_LINE, 1);
	picture_text(r->p, r->x1, r->y0 + 44, ANCHOR_RIGHT, TEXT, INK_FAINT, picture_fit(r->p,
		r->brief ? "flop for each byte" : "flop for each byte of the tensors, each moved once", TEXT,
		r->x1 - MARGIN));
	picture_text(r->p, r->x0 - 50, r->y1 - 10, ANCHOR_LEFT, TEXT, INK_FAINT, "flop/s");
}

/* ---- labels --------------------------------------------------------------------- */

struct box {
	double x0, y0, x1, y1;
};

/* Areas that dots and texts occupy. */
struct occupied {
	VEC(struct box) boxes;
};

static struct box box_around(double x, double y, double w, double h)
{
	return (struct box){ x - w / 2, y - h / 2, x + w / 2, y + h / 2 };
}

static bool is_free(const struct occupied *s, const struct box *b)
{
	bool free = true;

	for (int i = 0; i < s->boxes.n; i++)
		free &= b->x1 <= s->boxes.v[i].x0 || s->boxes.v[i].x1 <= b->x0 || b->y1 <= s->boxes.v[i].y0 ||
			s->boxes.v[i].y1 <= b->y0;
	return free;
}

static void occupy(const struct roof *r, struct occupied *s, struct box b)
{
	VEC_PUSH(r->p->arena, &s->boxes, b);
}

/* The slope of a memory of `rate` bytes a second, up to the peak. Texts keep off it. */
static void draw_slope(const struct roof *r, struct occupied *s, double rate, double width, double dash)
{
	double from = fmax(r->i0, r->f0 / rate), to = fmin(r->i1, r->peak / rate);

	if (!(rate > 0) || from >= to)
		return;
	picture_line(r->p, at_x(r, from), at_y(r, from * rate), at_x(r, to), at_y(r, to * rate), INK_BOUND, width)
		->dash = dash;
	for (int i = 0; i < SLOPE_BOXES; i++) {
		double a = from * pow(to / from, (double)i / SLOPE_BOXES),
			b = from * pow(to / from, (i + 1.0) / SLOPE_BOXES);

		occupy(r, s, (struct box){ at_x(r, a), at_y(r, b * rate) - 1, at_x(r, b), at_y(r, a * rate) + 1 });
	}
}

/* The name of a slope, where there is space along it. */
static void draw_slope_name(const struct roof *r, struct occupied *s, double rate, const char *name)
{
	double from = fmax(r->i0, r->f0 / rate), to = fmin(r->i1, r->peak / rate), w = picture_width(name, 13, false);

	if (!(rate > 0) || from >= to)
		return;
	for (int i = 0; i < 4 * 12; i++) {		/* next to it, then further away */
		double at = from * pow(to / from, 0.1 + 0.8 * (i % 24 / 2) / 12), x = at_x(r, at),
			y = at_y(r, at * rate), far = i < 24 ? 0 : 16;
		struct box b = i % 2 ? (struct box){ x - w - 8, y - 18 - far, x - 8, y - 2 - far } :
			(struct box){ x + 12, y + 6 + 2 * far, x + w + 12, y + 22 + 2 * far };

		if (b.x0 < r->x0 + 2 || b.x1 > r->x1 || b.y1 > r->y0 - 2 || b.y0 < r->y1 || !is_free(s, &b))
			continue;
		occupy(r, s, b);
		picture_text(r->p, b.x0, b.y1 - 4, ANCHOR_LEFT, 13, INK_BOUND, name);
		return;
	}
}

static void draw_roofs(const struct roof *r, struct occupied *s, enum dtype type)
{
	double from = fmax(r->i0, r->peak / fmax(r->memory, r->l2)), y = at_y(r, r->peak);
	const char *peak = picture_fit(r->p, arena_strf(r->p->arena, "%s on %s %s", dtype_name(type), r->unit,
		unit_si(r->peak, "FLOP/s").s), 14, r->x1 - r->x0);

	picture_line(r->p, at_x(r, from), y, r->x1, y, INK_BOUND, 2.5);
	picture_text(r->p, r->x1, y - 9, ANCHOR_RIGHT, 14, INK_BOUND, peak);
	occupy(r, s, (struct box){ r->x1 - picture_width(peak, 14, false), y - 22, r->x1, y + 2 });
	draw_slope(r, s, r->memory, 2.5, 0);
	draw_slope(r, s, r->l2, 1.5, 6);
}

static void draw_slope_names(const struct roof *r, struct occupied *s)
{
	draw_slope_name(r, s, r->l2, arena_strf(r->p->arena, "L2 %s", unit_si(r->l2, "B/s").s));
	draw_slope_name(r, s, r->memory, arena_strf(r->p->arena, "device memory %s", unit_si(r->memory, "B/s").s));
}

static void draw_dot(struct picture *p, double x, double y, bool full, int ink)
{
	struct point v[CORNERS];

	for (int i = 0; i < CORNERS; i++)
		v[i] = (struct point){ x + DOT * cos(2 * 3.14159265 * i / CORNERS),
			y + DOT * sin(2 * 3.14159265 * i / CORNERS) };
	picture_path(p, v, CORNERS, true, full ? ink : INK_PAPER, ink)->width = 2.5;
}

/* ---- points --------------------------------------------------------------------- */

static bool is_drawn(const struct roof_point *v)
{
	return v->seconds > 0 && v->flops > 0;
}

static struct point point_of(const struct roof *r, const struct roof_point *v)
{
	return (struct point){ at_x(r, v->flops / fmax(v->bytes, 1)), at_y(r, v->flops / v->seconds) };
}

/* Does a line from a to b pass a box other than those at its ends? */
static bool passes_box(const struct occupied *s, struct point a, struct point b)
{
	for (int i = 0; i < s->boxes.n; i++) {
		const struct box *o = &s->boxes.v[i];
		struct box inner = { o->x0 + 2, o->y0 + 2, o->x1 - 2, o->y1 - 2 };

		if (a.x > o->x0 && a.x < o->x1 && a.y > o->y0 && a.y < o->y1)
			continue;
		for (int t = 1; t < 20; t++) {
			double x = a.x + (b.x - a.x) * t / 20, y = a.y + (b.y - a.y) * t / 20;

			if (x > inner.x0 && x < inner.x1 && y > inner.y0 && y < inner.y1)
				return true;
		}
	}
	return false;
}

/* The middle of a label: next to its dot, or if that is occupied further out at the end of a line. False if there is no
 * space up to `far` steps out. */
static bool find_position(const struct roof *r, struct occupied *s, struct point dot, double width, int far, bool *line,
	struct point *out)
{
	static const double around[][2] = { { 1, 0 }, { -1, 0 }, { 1, 1 }, { -1, 1 }, { 1, -1 }, { -1, -1 } };

	for (int i = 0; i < far * (int)LEN(around); i++) {
		double more = STEP * (double)(i / (int)LEN(around));
		const double *side = around[i % (int)LEN(around)];
		struct point c = { dot.x + side[0] * (DOT + 5 + width / 2 + more),
			dot.y + side[1] * (DOT + TEXT / 2.0 + more) };
		struct box b = box_around(c.x, c.y, width + 4, TEXT + 2);

		if (b.x0 < r->x0 || b.x1 > r->x1 || b.y0 < r->y1 || b.y1 > r->y0 || !is_free(s, &b) ||
		    (i > 1 && passes_box(s, dot, (struct point){ c.x - side[0] * width / 2, c.y })))
			continue;
		occupy(r, s, b);
		*line = i > 1;
		*out = c;
		return true;
	}
	return false;
}

/* Does another point have the name of this one? Measured and predicted ones of a kernel do, too. */
static bool is_named_alike(const struct roof_point *v, int n, int i)
{
	for (int k = 0; k < n; k++)
		if (k != i && is_drawn(&v[k]) && v[k].measured == v[i].measured && !strcmp(v[k].name, v[i].name))
			return true;
	return false;
}

/* The number of a point, with its name if few are there and no other has that name; else the list says whose number it is. */
static void draw_label(const struct roof *r, struct occupied *s, const struct roof_point *all, int n, int i)
{
	const struct roof_point *v = &all[i];
	bool few = n <= FEW;
	const char *number = arena_strf(r->p->arena, "%d", i + 1), *text = number;
	struct point dot = point_of(r, v), c;
	bool line = false, found = false;
	double width;

	if (few && !is_named_alike(all, n, i)) {
		text = arena_strf(r->p->arena, "%d %s", i + 1, picture_fit(r->p, v->name, TEXT,
			(r->x1 - r->x0) * (r->brief ? 0.55 : 0.33)));
		found = find_position(r, s, dot, picture_width(text, TEXT, true), 4, &line, &c);
	}
	if (!found) {
		text = number;
		found = find_position(r, s, dot, picture_width(text, TEXT, true), FAR, &line, &c);
	}
	if (!found)
		return;
	width = picture_width(text, TEXT, true);
	if (line) {
		struct point end = { c.x + (c.x > dot.x ? -1 : 1) * (width / 2 + 2), c.y };
		double l = fmax(hypot(end.x - dot.x, end.y - dot.y), 1), from = DOT / l;

		picture_line(r->p, dot.x + (end.x - dot.x) * from, dot.y + (end.y - dot.y) * from, end.x, end.y,
			INK_FAINT, 1);
	}
	picture_bold(r->p, c.x, c.y + 5, ANCHOR_MIDDLE, TEXT, INK_TEXT, text);
}

/* The highest point that has not been chosen yet. */
static int next_down(const struct roof *r, const struct roof_point *v, int n, const bool *chosen)
{
	int best = NONE;

	for (int i = 0; i < n; i++)
		if (is_drawn(&v[i]) && !chosen[i] && (best == NONE || point_of(r, &v[i]).y < point_of(r, &v[best]).y))
			best = i;
	return best;
}

static void draw_points(const struct roof *r, const struct roof_point *v, int n, enum dtype type)
{
	struct occupied s = { 0 };
	bool *chosen = ARENA_ARRAY(r->p->arena, n, bool);

	for (int i = 0; i < n; i++) {
		struct point c;

		if (!is_drawn(&v[i]))
			continue;
		c = point_of(r, &v[i]);
		occupy(r, &s, box_around(c.x, c.y, 2 * DOT + 2, 2 * DOT + 2));
		picture_line(r->p, c.x, c.y, c.x, at_y(r, most_at(r, &v[i])), INK_LINE, 1)->dash = 3;
		occupy(r, &s, (struct box){ c.x - 1, at_y(r, most_at(r, &v[i])), c.x + 1, c.y });
	}
	draw_roofs(r, &s, type);
	/* from the top down, so that lines to labels do not cross */
	for (int i; (i = next_down(r, v, n, chosen)) != NONE; chosen[i] = true)
		draw_label(r, &s, v, n, i);
	draw_slope_names(r, &s);	/* last, as they have more positions to choose from */
	for (int i = 0; i < n; i++) {
		if (is_drawn(&v[i]))
			draw_dot(r->p, point_of(r, &v[i]).x, point_of(r, &v[i]).y, v[i].measured,
				v[i].measured ? INK_SECOND : INK_FIRST);
	}
}

/* The list of numbers, with two lines for each; returns where it ends. */
static double draw_list(const struct roof *r, const struct roof_point *v, int n, double left, double y)
{
	double space = r->p->width - MARGIN - left - 24;

	for (int i = 0; i < n; i++) {
		double f = v[i].flops / v[i].seconds;
		const char *number = arena_strf(r->p->arena, "%d ", i + 1), *speed = r->brief ?
			arena_strf(r->p->arena, "%s, %s of the roof", unit_si(f, "FLOP/s").s,
			unit_percent(f / most_at(r, &v[i])).s) : arena_strf(r->p->arena, "%s, %s: %s of the roof here",
			unit_si(f, "FLOP/s").s, unit_seconds(v[i].seconds).s, unit_percent(f / most_at(r, &v[i])).s);

		if (is_drawn(&v[i]))
			draw_dot(r->p, left + DOT, y - 5, v[i].measured, v[i].measured ? INK_SECOND : INK_FIRST);
		else
			speed = arena_strf(r->p->arena, "%s, has no products", unit_seconds(v[i].seconds).s);
		picture_bold(r->p, left + 24, y, ANCHOR_LEFT, TEXT, INK_TEXT, arena_strf(r->p->arena, "%s%s", number,
			picture_fit(r->p, v[i].name, TEXT, (space - picture_width(number, TEXT, true)) / 1.12)));
		picture_text(r->p, left + 24, y + 19, ANCHOR_LEFT, 13, INK_FAINT, picture_fit(r->p, speed, 13, space));
		y += r->entry;
	}
	return y;
}

/* What the dots mean, of those that are drawn. */
static void draw_meaning(const struct roof *r, const struct roof_point *v, int n, double x, double y)
{
	for (int measured = 1; measured >= 0; measured--) {
		bool any = false;

		for (int i = 0; i < n; i++)
			any |= is_drawn(&v[i]) && v[i].measured == measured;
		if (!any)
			continue;
		draw_dot(r->p, x + DOT, y + 5, measured, measured ? INK_SECOND : INK_FIRST);
		picture_text(r->p, x + 24, y + 10, ANCHOR_LEFT, 13, INK_FAINT, measured ? "measured" : "predicted");
		x += 110;
	}
}

void picture_roofline(struct picture *p, const struct vdevice *d, enum dtype type,
	const struct roof_point *v, int n, const struct picture_options *o)
{
	struct roof r = { .p = p };
	double y, list, left, space;
	const char *line, *device;
	bool narrow;

	o = picture_begin(p, o);
	r.brief = o->brief;
	r.entry = r.brief ? ENTRY_BRIEF : ENTRY;
	p->height = o->height > 0 ? o->height : HEIGHT;
	line = r.brief ? "roofline: what is possible if each byte is moved once" :
		"roofline: the speeds that are possible if each byte is moved once, and those of kernels";
	device = d->title ? d->title : d->name;
	y = picture_top(p, o, o->title ? o->title : device, 2, (const char *[]){ o->title ? device : "", line });
	find_peak(&r, d, type);
	if (!(r.peak > 0) || !(r.memory > 0) || !n) {
		picture_text(p, MARGIN, y + 20, ANCHOR_LEFT, TEXT, INK_FAINT, "the rates of the device are not known");
		return;
	}
	choose_range(&r, v, n);
	narrow = p->width < NARROW && !r.brief;
	list = n * r.entry + 40;
	space = r.brief ? LIST_BRIEF : LIST;
	if (r.brief)
		p->width = fmax(p->width, MARGIN + 50 + PLOT_BRIEF + space + MARGIN);
	r.y1 = y + (r.brief ? 20 : 30);
	if (narrow)
		p->height = fmax(o->height, r.y1 + NARROW_PLOT + 70 + list);
	else
		p->height = fmax(p->height, r.y1 + fmax(10 + list, r.brief ? LEAST_PLOT + 56 : 0) + (r.brief ? 0 : 30));
	r.x0 = MARGIN + (r.brief ? 50 : 70);
	r.x1 = narrow ? p->width - MARGIN - 20 : p->width - space - MARGIN;
	r.y0 = p->height - (r.brief ? 56 : 70) - (narrow ? list : 0);
	draw_grid(&r);
	draw_points(&r, v, n, type);
	left = narrow ? MARGIN : r.x1 + (r.brief ? 32 : 40);
	y = draw_list(&r, v, n, left, narrow ? r.y0 + 84 : r.y1 + 10);
	draw_meaning(&r, v, n, left, y);
}
