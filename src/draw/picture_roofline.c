/* Kernels between what a device can compute and what it can move. */
#include <math.h>

#include "draw/panel.h"
#include "draw/units.h"

enum { LIST = 400, DOT = 7, HEIGHT = 680, CORNERS = 20 };

struct roof {
	struct picture *p;
	double x0, x1, y0, y1;		/* of the plot; y1 is its top */
	double i0, i1, f0, f1;		/* flop/byte and flop/s at its sides */
	double peak, memory, l2;	/* flop/s, bytes/s */
	const char *unit;		/* that has the peak */
};

static double at_x(const struct roof *r, double intensity)
{
	return r->x0 + (r->x1 - r->x0) * log(intensity / r->i0) / log(r->i1 / r->i0);
}

static double at_y(const struct roof *r, double flops)
{
	return r->y0 + (r->y1 - r->y0) * log(flops / r->f0) / log(r->f1 / r->f0);
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

/* Decades that hold all points and the ridge. */
static void choose_range(struct roof *r, const struct roof_point *v, int n)
{
	double ridge = r->peak / r->memory, low = ridge, high = ridge, least = r->peak;

	for (int i = 0; i < n; i++) {
		double x = v[i].flops / fmax(v[i].bytes, 1);

		if (!(x > 0) || !(v[i].seconds > 0))
			continue;
		low = fmin(low, x);
		high = fmax(high, x);
		least = fmin(least, v[i].flops / v[i].seconds);
	}
	r->i0 = pow(10, floor(log10(low) - 0.3));
	r->i1 = pow(10, ceil(log10(high) + 0.2));
	r->f1 = r->peak * 2;
	r->f0 = pow(10, floor(log10(fmin(least, r->i0 * r->memory)) + 0.2));
	if (r->f0 < r->f1 / 1e5)
		r->f0 = fmin(pow(10, floor(log10(least))), r->f1 / 1e3);
}

static void draw_grid(const struct roof *r)
{
	for (double i = r->i0; i <= r->i1 * 1.001; i *= 10) {
		picture_line(r->p, at_x(r, i), r->y0, at_x(r, i), r->y1, INK_GRID, 1);
		picture_text(r->p, at_x(r, i), r->y0 + 20, ANCHOR_MIDDLE, 14, INK_FAINT,
			arena_strf(r->p->arena, "%g", i));
	}
	for (double f = r->f0; f <= r->f1 * 1.001; f *= 10) {
		picture_line(r->p, r->x0, at_y(r, f), r->x1, at_y(r, f), INK_GRID, 1);
		picture_text(r->p, r->x0 - 8, at_y(r, f) + 5, ANCHOR_RIGHT, 14, INK_FAINT,
			arena_strf(r->p->arena, "%s", unit_si(f, "").s));
	}
	picture_line(r->p, r->x0, r->y0, r->x1, r->y0, INK_LINE, 1);
	picture_line(r->p, r->x0, r->y0, r->x0, r->y1, INK_LINE, 1);
	picture_text(r->p, (r->x0 + r->x1) / 2, r->y0 + 44, ANCHOR_MIDDLE, TEXT, INK_FAINT,
		"flop for each byte of the tensors, each moved once");
	picture_text(r->p, r->x0 - 50, r->y1 - 10, ANCHOR_LEFT, TEXT, INK_FAINT, "flop/s");
}

/* What so many bytes a second allow, up to the peak. */
static void draw_slope(const struct roof *r, double rate, double width, double dash, const char *name)
{
	double from = fmax(r->i0, r->f0 / rate), to = fmin(r->i1, r->peak / rate);
	struct shape *s;

	if (!(rate > 0) || from >= to)
		return;
	s = picture_line(r->p, at_x(r, from), at_y(r, from * rate), at_x(r, to), at_y(r, to * rate),
		INK_BOUND, width);
	s->dash = dash;
	from *= pow(to / from, 0.12);
	picture_text(r->p, at_x(r, from) + 12, at_y(r, from * rate) + 18, ANCHOR_LEFT, 13, INK_BOUND, name);
}

static void draw_roofs(const struct roof *r, enum dtype type)
{
	double from = fmax(r->i0, r->peak / fmax(r->memory, r->l2));

	draw_slope(r, r->memory, 2.5, 0, arena_strf(r->p->arena, "device memory %s",
		unit_si(r->memory, "B/s").s));
	draw_slope(r, r->l2, 1.5, 6, arena_strf(r->p->arena, "L2 %s", unit_si(r->l2, "B/s").s));
	picture_line(r->p, at_x(r, from), at_y(r, r->peak), r->x1, at_y(r, r->peak), INK_BOUND, 2.5);
	picture_text(r->p, r->x1, at_y(r, r->peak) - 9, ANCHOR_RIGHT, 14, INK_BOUND,
		arena_strf(r->p->arena, "%s on %s %s", dtype_name(type), r->unit,
		unit_si(r->peak, "FLOP/s").s));
}

static void draw_dot(struct picture *p, double x, double y, bool full, int ink)
{
	struct point v[CORNERS];

	for (int i = 0; i < CORNERS; i++)
		v[i] = (struct point){ x + DOT * cos(2 * 3.14159265 * i / CORNERS),
			y + DOT * sin(2 * 3.14159265 * i / CORNERS) };
	picture_path(p, v, CORNERS, true, full ? ink : INK_PAPER, ink)->width = 2.5;
}

static double draw_point(const struct roof *r, const struct roof_point *v, int number, bool left_side,
	double y)
{
	double i = v->flops / fmax(v->bytes, 1), f = v->flops / v->seconds;
	double most = fmin(r->peak, i * r->memory), x = at_x(r, i), left = r->x1 + 40;
	const char *n = arena_strf(r->p->arena, "%d", number);

	picture_line(r->p, x, at_y(r, f), x, at_y(r, most), INK_LINE, 1)->dash = 3;
	draw_dot(r->p, x, at_y(r, f), v->measured, v->measured ? INK_SECOND : INK_FIRST);
	picture_bold(r->p, x + (left_side ? -12 : 12), at_y(r, f) + 5, left_side ? ANCHOR_RIGHT : ANCHOR_LEFT,
		TEXT, INK_TEXT, n);
	draw_dot(r->p, left + DOT, y - 5, v->measured, v->measured ? INK_SECOND : INK_FIRST);
	picture_bold(r->p, left + 24, y, ANCHOR_LEFT, TEXT, INK_TEXT, arena_strf(r->p->arena, "%s %s", n,
		picture_fit(r->p, v->name, TEXT, LIST - 100)));
	picture_text(r->p, left + 24, y + 19, ANCHOR_LEFT, 13, INK_FAINT, arena_strf(r->p->arena,
		"%s, %s: %s of the roof here", unit_si(f, "FLOP/s").s, unit_seconds(v->seconds).s,
		unit_percent(f / most).s));
	return y + 46;
}

/* Does the number of an earlier point stand where this one's would? */
static bool is_crowded(const struct roof *r, const struct roof_point *v, int i)
{
	bool crowded = false;

	for (int k = 0; k < i; k++) {
		double x = at_x(r, v[i].flops / fmax(v[i].bytes, 1)) - at_x(r, v[k].flops / fmax(v[k].bytes, 1));
		double y = at_y(r, v[i].flops / v[i].seconds) - at_y(r, v[k].flops / v[k].seconds);

		crowded ^= fabs(x) < 30 && fabs(y) < 16;
	}
	return crowded;
}

void picture_roofline(struct picture *p, const struct vdevice *d, enum dtype type,
	const struct roof_point *v, int n, const struct picture_options *o)
{
	static const struct picture_options usual;
	struct roof r = { .p = p };
	const char *line = "roofline: what could be reached with these bytes moved once, and what is";
	double y, list;

	o = o ? o : &usual;
	p->width = o->width > 0 ? o->width : PICTURE_WIDTH;
	p->height = o->height > 0 ? o->height : HEIGHT;
	y = picture_top(p, p->width, o->title ? o->title : arena_strf(p->arena, "%s",
		d->title ? d->title : d->name), 1, &line);
	find_peak(&r, d, type);
	if (!(r.peak > 0) || !(r.memory > 0) || !n) {
		picture_text(p, MARGIN, y + 20, ANCHOR_LEFT, TEXT, INK_FAINT, "the device's rates are not known");
		return;
	}
	choose_range(&r, v, n);
	list = y + 40 + n * 46.0 + 70;
	p->height = fmax(p->height, list);
	r.x0 = MARGIN + 70;
	r.x1 = fmax(p->width - LIST - MARGIN, r.x0 + 200);
	r.y1 = y + 30;
	r.y0 = p->height - 70;
	draw_grid(&r);
	draw_roofs(&r, type);
	y = r.y1 + 10;
	for (int i = 0; i < n; i++)
		if (v[i].seconds > 0 && v[i].flops > 0)
			y = draw_point(&r, &v[i], i + 1, is_crowded(&r, v, i), y);
	draw_dot(p, r.x1 + 40 + DOT, y + 5, true, INK_SECOND);
	picture_text(p, r.x1 + 64, y + 10, ANCHOR_LEFT, 13, INK_FAINT, "measured");
	draw_dot(p, r.x1 + 160 + DOT, y + 5, false, INK_FIRST);
	picture_text(p, r.x1 + 184, y + 10, ANCHOR_LEFT, 13, INK_FAINT, "predicted");
}
