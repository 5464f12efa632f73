#include "explore/layer.h"

#include <math.h>

#include "draw/units.h"
#include "explore/actions.h"

enum { NAME = 18, NUMBER = 10, SHARE = 7, CHART_MIN = 12, LIST_MIN = 3, COLUMNS = 5 };

/* The least share of the sequence that zooming in shows. */
#define ZOOM_MOST 1e-4

void layer_init(struct layer *s, const struct seqline *l, int at)
{
	*s = (struct layer){ .line = l, .at = (int)min_i64(max_i64(at, 0), l->n - 1), .to = l->seconds };
}

static const struct seq_span *selected(const struct layer *s)
{
	return &s->line->spans[s->at];
}

static const char *name_of(const struct layer *s, int span)
{
	return s->line->plan->s->calls.v[s->line->spans[span].call].name;
}

/* ---- drawing ---- */

/* Numbers of a row, as many as fit; the last column is text, for what remains. */
static void put_columns(struct cells *out, int y, const char *const text[COLUMNS], struct style style)
{
	int x = 2 + NAME;

	for (int i = 0; i < COLUMNS; i++) {
		bool last = i == COLUMNS - 1;
		int w = last ? out->w - x : i == COLUMNS - 2 ? SHARE : NUMBER;

		if (x + w > out->w || w < 3)
			break;
		cells_text(out, last ? x + 2 : x + w - text_width(text[i]), y, last ? w - 2 : w, text[i], style);
		x += w;
	}
}

static void put_row(const struct layer *s, struct cells *out, int y, int span)
{
	const struct seq_span *k = &s->line->spans[span];
	double takes = k->end - k->begin;
	const char *cell[COLUMNS] = { unit_keep(out->arena, unit_seconds(k->begin)),
		unit_keep(out->arena, unit_seconds(k->begin - k->launch)), unit_keep(out->arena, unit_seconds(takes)),
		unit_keep(out->arena, unit_percent(takes / s->line->seconds)), seq_span_bound(out->arena, k) };

	cells_text(out, 0, y, 1, span == s->at ? "▸" : "", BOLD);
	cells_text(out, 2, y, NAME - 1, name_of(s, span), PLAIN);
	put_columns(out, y, cell, PLAIN);
	if (span == s->at)
		cells_mark(out, 0, y, out->w, STYLE_REVERSE);
}

static void put_titles(struct cells *out, int y)
{
	static const char *const title[COLUMNS] = { "begins", "gap", "takes", "share", "bound by" };

	cells_text(out, 2, y, NAME - 1, "kernel", FAINT);
	put_columns(out, y, title, FAINT);
}

/* The list from row y to the row before `end`, scrolled so that the selected kernel is in sight. */
static void put_list(struct layer *s, struct cells *out, int y, int end)
{
	s->list = y + 1;
	s->rows = (int)max_i64(end - s->list, 0);
	if (s->rows < 1)
		return;
	put_titles(out, y);
	if (s->at < s->top)
		s->top = s->at;
	if (s->at >= s->top + s->rows)
		s->top = s->at - s->rows + 1;
	s->top = (int)min_i64(s->top, max_i64(s->line->n - s->rows, 0));
	for (int i = 0; i < s->rows && s->top + i < s->line->n; i++)
		put_row(s, out, s->list + i, s->top + i);
}

static void put_help(struct cells *out)
{
	static const enum action used[] = { ACT_UP, ACT_DOWN, ACT_HOME, ACT_END, ACT_PAGE_UP, ACT_PAGE_DOWN, ACT_ZOOM_IN,
		ACT_ZOOM_OUT, ACT_ZOOM_ALL, ACT_PAN_LEFT, ACT_PAN_RIGHT, ACT_REDRAW, ACT_HELP, ACT_QUIT };
	static const char *const says[] = { "the kernel before", "the next kernel", "the first kernel", "the last kernel",
		"a page up", "a page down", "zoom in around the kernel", "zoom out", "all of the sequence",
		"half a window back", "half a window forward", "redraw the screen", "these keys; again to go back", "leave" };
	int y = 1;

	cells_text(out, 0, 0, out->w, "keys", BOLD);
	cells_text(out, 0, y, 12, "Enter 1", PLAIN);
	cells_text(out, 12, y++, out->w - 12, "open the kernel's timeline in the explorer; q there comes back", PLAIN);
	cells_text(out, 0, y, 12, "2", PLAIN);
	cells_text(out, 12, y++, out->w - 12, "open its plan", PLAIN);
	for (int i = 0; i < LEN(used); i++, y++) {
		cells_text(out, 0, y, 12, action_rows[used[i]].keys, PLAIN);
		cells_text(out, 12, y, out->w - 12, says[i], PLAIN);
	}
}

void layer_draw(struct layer *s, struct cells *out)
{
	const struct seqline *l = s->line;
	struct seqline_view view = { s->from, s->to, s->at };
	const char *head = seqline_head(out->arena, l);
	struct cells chart;
	int y = 1, at;

	s->list = s->rows = 0;
	if (s->help) {
		put_help(out);
		return;
	}
	at = cells_text(out, 0, 0, out->w, l->plan->s->name, BOLD);
	cells_text(out, at + 1, 0, out->w - at - 1, head, PLAIN);
	if (out->h > 1)
		cells_text(out, 0, out->h - 1, out->w,
			"Enter open  2 plan  Up Down kernel  - zoom +  0 all  ? help  q quit", FAINT);
	if (out->h >= CHART_MIN && out->w >= WIDTH_MIN) {
		seqline_cells(l, &view, out->w, s->flags, out->arena, &chart);
		/* the rows of units make way for the list */
		chart.h = (int)min_i64(chart.h, out->h - 3 - min_i64(l->n + 1, LIST_MIN + 1));
		cells_blit(out, 0, 1, out->w, chart.h, &chart, 0, 0);
		y += chart.h + 1;
	}
	put_list(s, out, y, out->h - 1);
}

/* ---- keys ---- */

/* Show `seconds` of the sequence, with `middle` in the middle as far as that is possible. */
static void show(struct layer *s, double middle, double seconds)
{
	double all = s->line->seconds;

	seconds = fmin(fmax(seconds, all * ZOOM_MOST), all);
	s->from = fmin(fmax(middle - seconds / 2, 0), all - seconds);
	s->to = s->from + seconds;
}

static void select_span(struct layer *s, int64_t at)
{
	const struct seq_span *k;

	s->at = (int)min_i64(max_i64(at, 0), s->line->n - 1);
	k = selected(s);
	if (k->end <= s->from || k->begin >= s->to)
		show(s, (k->begin + k->end) / 2, s->to - s->from);
}

static enum layer_wish do_action(struct layer *s, enum action a)
{
	double seconds = s->to - s->from, middle = (selected(s)->begin + selected(s)->end) / 2;

	switch ((int)a) {
	case ACT_QUIT: return s->help ? (s->help = false, LAYER_STAY) : LAYER_LEAVE;
	case ACT_CANCEL: s->help = false; break;
	case ACT_HELP: s->help = !s->help; break;
	case ACT_VIEW_1: return LAYER_TIMELINE;
	case ACT_VIEW_2: return LAYER_PLAN;
	case ACT_UP: case ACT_LEFT: select_span(s, s->at - 1); break;
	case ACT_DOWN: case ACT_RIGHT: select_span(s, s->at + 1); break;
	case ACT_PAGE_UP: select_span(s, (int64_t)s->at - max_i64(s->rows, 1)); break;
	case ACT_PAGE_DOWN: select_span(s, (int64_t)s->at + max_i64(s->rows, 1)); break;
	case ACT_HOME: select_span(s, 0); break;
	case ACT_END: select_span(s, s->line->n - 1); break;
	case ACT_ZOOM_IN: show(s, middle, seconds / 2); break;
	case ACT_ZOOM_OUT: show(s, middle, seconds * 2); break;
	case ACT_ZOOM_ALL: show(s, 0, s->line->seconds); break;
	case ACT_PAN_LEFT: show(s, s->from, seconds); break;
	case ACT_PAN_RIGHT: show(s, s->to, seconds); break;
	default: break;
	}
	return LAYER_STAY;
}

enum layer_wish layer_key(struct layer *s, struct key k)
{
	switch (k.code) {
	case KEY_CODE_INTERRUPT: case KEY_CODE_CLOSED:
		return LAYER_LEAVE;
	case '\r':
		return LAYER_TIMELINE;
	case KEY_CODE_CLICK:
		if (k.y >= s->list && k.y < s->list + s->rows && s->top + k.y - s->list < s->line->n)
			select_span(s, s->top + k.y - s->list);
		return LAYER_STAY;
	case KEY_CODE_WHEEL_UP: return do_action(s, ACT_ZOOM_IN);
	case KEY_CODE_WHEEL_DOWN: return do_action(s, ACT_ZOOM_OUT);
	default: return do_action(s, action_of(k.code, GROUP_ANY | GROUP_SPAN));
	}
}
