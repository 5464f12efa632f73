/* A curve as characters: each cell has two columns and four rows of dots (Braille). */
#include <math.h>
#include <stdio.h>

#include "draw/progress.h"
#include "draw/units.h"

enum { ACROSS = 2, DOWN = 4, LABEL = 9, LEAST_W = 24, LEAST_H = 4 };
enum { DOT_BEST = 1, DOT_MEASURED = 2, DOT_PREDICTED = 4 };

struct grid {
	int w, h;			/* dots */
	uint8_t *dot;			/* DOT_*, row after row */
};

static void set(struct grid *g, int x, int y, int kind)
{
	if (x >= 0 && y >= 0 && x < g->w && y < g->h)
		g->dot[y * g->w + x] |= (uint8_t)kind;
}

static int dot_x(const struct grid *g, const struct progress_axes *a, double trial)
{
	return (int)lround(progress_along(a, trial) * (g->w - 1));
}

static int dot_y(const struct grid *g, const struct progress_axes *a, double seconds)
{
	return (int)lround((1 - progress_up(a, seconds)) * (g->h - 1));
}

static void put_dots(struct grid *g, const struct progress_axes *a, const struct progress_curve *c)
{
	int x = NONE, y = NONE;

	for (int i = 0; i < c->n; i++) {
		const struct progress_entry *e = &c->v[i];
		int to_x = dot_x(g, a, (double)e->trial), to_y;

		if (progress_seconds(e) > 0 && !progress_is_bad(e))
			set(g, to_x, dot_y(g, a, progress_seconds(e)), e->measured > 0 ? DOT_MEASURED : DOT_PREDICTED);
		if (!(e->best > 0))
			continue;
		to_y = dot_y(g, a, e->best);
		for (int k = x; x != NONE && k <= to_x; k++)
			set(g, k, y, DOT_BEST);
		for (int k = y < to_y ? y : to_y; y != NONE && k <= (y > to_y ? y : to_y); k++)
			set(g, to_x, k, DOT_BEST);
		x = to_x;
		y = to_y;
		set(g, x, y, DOT_BEST);
	}
}

/* The cell at (cx, cy) of the plot, whose first is at (x, y). */
static void put_cell(struct cells *out, const struct grid *g, int x, int y, int cx, int cy)
{
	static const uint8_t bit[DOWN][ACROSS] = { { 1, 8 }, { 2, 16 }, { 4, 32 }, { 64, 128 } };
	int kinds = 0, bits = 0;
	char utf8[5];

	for (int r = 0; r < DOWN; r++)
		for (int k = 0; k < ACROSS; k++) {
			int dot = g->dot[(cy * DOWN + r) * g->w + cx * ACROSS + k];

			kinds |= dot;
			bits |= dot ? bit[r][k] : 0;
		}
	if (!bits)
		return;
	snprintf(utf8, sizeof(utf8), "\xe2%c%c", (char)(0xa0 | bits >> 6), (char)(0x80 | (bits & 63)));
	cells_put(out, x + cx, y + cy, utf8, kinds & DOT_BEST ? (struct style){ .fg = 42, .attr = STYLE_BOLD } :
		(struct style){ .fg = kinds & DOT_MEASURED ? 214 : 75 });
}

static void put_left(struct cells *out, int x, int y, int h, const struct progress_axes *a, double bound)
{
	double tick[PROGRESS_TICKS];
	int n = progress_ticks(a->low, a->high, a->log, h / 2, tick), last = -1;
	int at_bound = bound > 0 ? (int)lround((1 - progress_up(a, bound)) * (h - 1)) : -1;

	for (int r = 0; r < h; r++)
		cells_put(out, x + LABEL - 1, y + r, "│", FAINT);
	for (int i = n - 1; i >= 0; i--) {
		int r = (int)lround((1 - progress_up(a, tick[i])) * (h - 1));
		struct unit_text text = unit_seconds(tick[i]);

		if (r == last || r == at_bound)
			continue;
		last = r;
		cells_text(out, x + LABEL - 2 - text_width(text.s), y + r, LABEL, text.s, FAINT);
		cells_put(out, x + LABEL - 1, y + r, "┤", FAINT);
	}
	if (at_bound >= 0) {
		cells_text(out, x + LABEL - 7, y + at_bound, LABEL, "bound", (struct style){ .fg = 208 });
		cells_put(out, x + LABEL - 1, y + at_bound, "┤", FAINT);
	}
}

static void put_below(struct cells *out, int x, int y, int w, const struct progress_axes *a)
{
	static const char what[] = "trials";
	double tick[PROGRESS_TICKS];
	int n = progress_ticks(a->first, a->last, a->log_trials, w / 10, tick), free = x;
	int end = x + w - (int)sizeof(what);

	for (int i = 0; i < n; i++) {
		struct unit_text text = unit_count(llround(tick[i]));
		int width = text_width(text.s);
		int at = x + (int)lround(progress_along(a, tick[i]) * (w - 1)) - width / 2;

		at = at < x ? x : at;
		if (tick[i] != floor(tick[i]) || at < free || at + width > end)
			continue;
		cells_text(out, at, y, width, text.s, FAINT);
		free = at + width + 1;
	}
	cells_text(out, end + 1, y, (int)sizeof(what), what, FAINT);
}

void progress_cells(struct cells *out, int x, int y, int w, int h, const struct progress_curve *c)
{
	struct progress_axes a = progress_axes_of(c, 1);
	struct grid g = { .w = (w - LABEL) * ACROSS, .h = (h - 1) * DOWN };

	if (w < LEAST_W || h < LEAST_H || !c->n)
		return;
	g.dot = ARENA_ARRAY(out->arena, g.w * g.h, uint8_t);
	put_dots(&g, &a, c);
	put_left(out, x, y, h - 1, &a, c->bound);
	if (c->bound > 0)
		cells_fill(out, x + LABEL, y + (int)lround((1 - progress_up(&a, c->bound)) * (h - 2)), w - LABEL, "╌",
			(struct style){ .fg = 208 });
	put_below(out, x + LABEL, y + h - 1, w - LABEL, &a);
	for (int cy = 0; cy < h - 1; cy++)
		for (int cx = 0; cx < w - LABEL; cx++)
			put_cell(out, &g, x + LABEL, y, cx, cy);
	for (int i = 0; i < c->n; i++)
		if (progress_is_bad(&c->v[i]))
			cells_put(out, x + LABEL + dot_x(&g, &a, (double)c->v[i].trial) / ACROSS,
				y + dot_y(&g, &a, progress_seconds(&c->v[i])) / DOWN, "×", (struct style){ .fg = 203 });
}
