#include "explore/watch.h"

#include <string.h>

#include "draw/units.h"

enum {
	NARROW = 28, WIDE = 42,		/* columns for a short and a complete legend */
	SIDE_MIN = 72,			/* columns for two lists next to each other */
	WRAP_MIN = 14,			/* rows of the screen from which on facts are wrapped */
	CURVE_MIN = 5, LIST_MIN = 3, LIST_MAX = 12,
};

static const struct style good = { .fg = 42, .attr = STYLE_BOLD }, wrong = { .fg = 203 };

/* ---- candidates ----------------------------------------------------------------- */

/* "● 212  1.53 ms (1.56)  m=128 n=176, 2 lanes" */
static void put_candidate(struct cells *out, int x, int y, int w, const struct progress_entry *e, int digits, bool best)
{
	const char *time = progress_seconds(e) > 0 ? unit_keep(out->arena, unit_seconds(progress_seconds(e))) : "?";
	struct unit_text trial = unit_count(e->trial);
	int at = digits - text_width(trial.s);

	cells_text(out, x, y, w, progress_is_bad(e) ? "×" : e->status == PROGRESS_SKIPPED ? "-" : e->measured > 0 ? "●" : "○", progress_is_bad(e) ? wrong : e->measured > 0 ?
		(struct style){ .fg = 214 } : (struct style){ .fg = 75 });
	at = 2 + (at > 0 ? at : 0);
	at += cells_text(out, x + at, y, w - at, trial.s, FAINT);
	at += 1 + (8 > text_width(time) ? 8 - text_width(time) : 0);
	at += cells_text(out, x + at, y, w - at, time, best ? good : PLAIN) + 1;
	if (e->measured > 0 && e->predicted > 0 && at < w)
		at += cells_text(out, x + at, y, w - at, arena_strf(out->arena, "(%s)",
			unit_seconds(e->predicted).s), FAINT) + 1;
	if (at < w)
		cells_text(out, x + at, y, w - at, progress_is_bad(e) ? arena_strf(out->arena, "%s %s",
			e->status == PROGRESS_WRONG ? "wrong result" : "failed", e->text) : e->text, PLAIN);
}

/* Is a better than b? Measured candidates come before all others. */
static bool is_before(const struct progress_entry *a, const struct progress_entry *b)
{
	if ((a->measured > 0) != (b->measured > 0))
		return a->measured > 0;
	return progress_seconds(a) < progress_seconds(b);
}

/* The n best candidates in order, each once; returns how many there are. */
static int find_best(const struct progress_curve *c, int n, const struct progress_entry **out)
{
	int have = 0;

	for (int i = 0; i < c->n; i++) {
		const struct progress_entry *e = &c->v[i];
		int at = have, same = NONE;

		if (progress_is_bad(e) || !(progress_seconds(e) > 0))
			continue;
		for (int k = 0; k < have; k++)
			same = e->text[0] && !strcmp(out[k]->text, e->text) && out[k]->predicted == e->predicted ? k : same;
		if (same != NONE && !is_before(e, out[same]))
			continue;
		if (same != NONE) {
			memmove(&out[same], &out[same + 1], (size_t)(have - same - 1) * sizeof(*out));
			at = --have;
		}
		while (at > 0 && is_before(e, out[at - 1]))
			at--;
		if (at == n)
			continue;
		have += have < n;
		memmove(&out[at + 1], &out[at], (size_t)(have - at - 1) * sizeof(*out));
		out[at] = e;
	}
	return have;
}

static int digits_of(const struct progress_curve *c)
{
	return c->n ? text_width(unit_count(c->v[c->n - 1].trial).s) : 1;
}

static void put_best(const struct watched *s, struct cells *out, int x, int y, int w, int h)
{
	const struct progress_entry *best[LIST_MAX + 2];
	int n = find_best(&s->curve, h - 1 < LIST_MAX ? h - 1 : LIST_MAX, best);

	cells_text(out, x, y, w, "best", BOLD);
	if (w >= NARROW)
		cells_text(out, x + 6, y, w - 6, w >= WIDE ? "● measured (predicted)  ○ predicted" :
			"● measured (predicted)", FAINT);
	for (int i = 0; i < n; i++)
		put_candidate(out, x, y + 1 + i, w, best[i], digits_of(&s->curve), i == 0);
}

static void put_last(const struct watched *s, struct cells *out, int x, int y, int w, int h)
{
	cells_text(out, x, y, w, "last", BOLD);
	for (int i = 0; i < h - 1 && i < s->curve.n; i++)
		put_candidate(out, x, y + 1 + i, w, &s->curve.v[s->curve.n - 1 - i], digits_of(&s->curve), false);
}

/* ---- the screen ----------------------------------------------------------------- */

static int put_facts(const struct watched *s, struct cells *out, int y)
{
	for (int i = 0; i < s->nfacts && y < out->h - 1; i++) {
		struct buf b = buf_new(out->arena);
		int w, h;

		if (out->h < WRAP_MIN) {
			cells_text(out, 0, y++, out->w, s->fact[i], i ? PLAIN : good);
			continue;
		}
		style_put(&b, PLAIN, i ? PLAIN : good, DRAW_COLOUR);
		text_wrap(&b, s->fact[i], 0, 2, out->w, 0);
		style_put(&b, i ? PLAIN : good, PLAIN, DRAW_COLOUR);
		cells_measure(b.text, &w, &h);
		cells_scan(out, 0, y, out->w, out->h - 1 - y, b.text);
		y += h;
	}
	return y;
}

static void put_lists(const struct watched *s, struct cells *out, int y, int h)
{
	int half = out->w / 2;

	if (h < 2) {
		if (s->curve.n)
			put_candidate(out, 0, y, out->w, &s->curve.v[s->curve.n - 1], digits_of(&s->curve), false);
	} else if (out->w >= SIDE_MIN) {
		put_best(s, out, 0, y, half - 2, h);
		put_last(s, out, half, y, out->w - half, h);
	} else if (h >= 2 * LIST_MIN) {
		put_best(s, out, 0, y, out->w, h - h / 2);
		put_last(s, out, 0, y + h - h / 2, out->w, h / 2);
	} else {
		put_best(s, out, 0, y, out->w, h);
	}
}

void watch_draw(const struct watched *s, struct cells *out)
{
	int at = cells_text(out, 0, 0, out->w, s->title, BOLD), y, rows, curve = 0, list, phase = text_width(s->phase);

	if (at + 2 + phase <= out->w)
		cells_text(out, out->w - phase, 0, phase, s->phase, FAINT);
	if (out->h > 1)
		cells_text(out, 0, out->h - 1, out->w, s->keys, FAINT);
	y = put_facts(s, out, 1);
	rows = out->h - 1 - y;
	if (rows < 1)
		return;
	list = rows / 3 < LIST_MIN ? LIST_MIN : rows / 3 < LIST_MAX + 1 ? rows / 3 : LIST_MAX + 1;
	if (out->w < SIDE_MIN && rows / 2 > list)
		list = rows / 2;
	if (s->curve.n && rows >= CURVE_MIN + 1)
		curve = rows - list - 1 >= CURVE_MIN ? rows - list - 1 : rows;
	progress_cells(out, 0, y, out->w, curve, &s->curve);
	if (curve == rows)
		return;
	if (curve)
		y += curve + 1;
	put_lists(s, out, y, out->h - 1 - y);
}
