/* Rows of a chart as text: bars where a unit works, marks where a lane issues, dots where it waits. A column shows the
 * event that takes most of it. */
#include <stdio.h>
#include <string.h>

#include "draw/chart.h"

enum {
	DEPTH_MAX = 4,			/* rows of one asynchronous sEU */
	MARK_SHIFT = 8,			/* columns by which a mark may be late */
	SHORT = 4,			/* letters of a shortened name */
};

/* What a column of a row shows. */
struct slot {
	int seen;			/* index in chart.seen; NONE */
	int64_t cover;			/* of the column, in cycles * columns */
	enum chart_part part;
	char mark;			/* letter of an issue, '>' before one, or '\0' */
};

struct board {
	const struct chart *c;
	struct chart_layout layout;
	struct slot *slots;		/* row after row */
};

static struct slot *slot_at(const struct board *b, int row, int64_t col)
{
	return &b->slots[(int64_t)row * b->c->cols + col];
}

/* Give [start, end) to the event in every column of which it takes more than any event so far; work hides waiting. An
 * interval without length is shown where there is nothing else. */
static void cover(struct board *b, int row, int seen, int64_t start, int64_t end, enum chart_part part)
{
	const struct chart *c = b->c;
	int64_t span = c->to - c->from, lo, hi, first, last;

	if (row == NONE || !chart_shows(c, start, end))
		return;
	lo = (max_i64(start, c->from) - c->from) * c->cols;
	hi = (min_i64(end, c->to) - c->from) * c->cols;
	first = lo / span;
	last = hi > lo ? ceil_div(hi, span) - 1 : first;
	for (int64_t col = first; col <= last; col++) {
		struct slot *s = slot_at(b, row, col);
		int64_t filled = min_i64(hi, (col + 1) * span) - max_i64(lo, col * span);
		bool both = (s->part == PART_WORK) == (part == PART_WORK);

		if (s->seen != NONE && (both ? filled <= s->cover : part != PART_WORK))
			continue;
		*s = (struct slot){ .seen = seen, .cover = filled, .part = part };
	}
}

static void cover_event(struct board *b, int seen)
{
	const struct chart *c = b->c;
	const struct event *e = chart_seen(c, seen);
	int row = layout_row_of(c, &b->layout, seen), lane = layout_lane_row_of(c, &b->layout, e);

	if (event_is_async(c, e)) {
		if (!c->seen.v[seen].joined)
			cover(b, row, seen, event_seu_begin(e), event_seu_end(c, e), PART_WORK);
	} else {
		cover(b, row, seen, e->start, e->end, PART_WORK);
		if (e->start > e->issue)
			cover(b, row, seen, e->issue, e->start, PART_QUEUED);
	}
	if (e->issue > e->ready)
		cover(b, lane, seen, e->ready, e->issue, PART_HELD);
}

static bool is_open(const struct slot *s)
{
	return !s->mark && (s->seen == NONE || s->part != PART_WORK);
}

/* May a mark hide the first column of the bar that begins there? Only if the bar is long. */
static bool may_steal(const struct board *b, int row, int64_t col)
{
	const struct slot *s = slot_at(b, row, col);

	for (int64_t k = col; k < col + 4; k++)
		if (k >= b->c->cols || slot_at(b, row, k)->seen != s->seen || slot_at(b, row, k)->mark)
			return false;
	return true;
}

/* Mark the issue of work to an asynchronous sEU: "▸q", or "q" if there is little space. Marks that would be in the same
 * column move to the right. */
static void mark_issue(struct board *b, int i)
{
	const struct chart *c = b->c;
	const struct event *e = chart_seen(c, i);
	int row = layout_lane_row_of(c, &b->layout, e);
	int64_t col = floor_div((e->issue - c->from) * c->cols, c->to - c->from);
	struct slot mark = { .seen = i, .mark = c->key[e->task].letter[0] };

	if (row == NONE || col < 0 || col >= c->cols)
		return;
	for (int64_t k = col; k < col + MARK_SHIFT && k + 1 < c->cols; k++) {
		if (!is_open(slot_at(b, row, k)) || !is_open(slot_at(b, row, k + 1)))
			continue;
		*slot_at(b, row, k) = (struct slot){ .seen = i, .mark = '>' };
		*slot_at(b, row, k + 1) = mark;
		return;
	}
	for (int64_t k = col; k < col + MARK_SHIFT && k < c->cols; k++) {
		if (!is_open(slot_at(b, row, k)) && !may_steal(b, row, k))
			continue;
		*slot_at(b, row, k) = mark;
		return;
	}
}

/* When what a column shows happens in its lane. */
static int64_t slot_time(const struct board *b, const struct slot *s)
{
	const struct event *e = chart_seen(b->c, s->seen);

	return s->mark || s->part == PART_QUEUED ? e->issue : s->part == PART_HELD ? e->ready : e->start;
}

/* The end of the columns from `col` on that show the same. */
static int stretch_end(const struct board *b, int row, int col)
{
	const struct slot *s = slot_at(b, row, col);
	int end = col + 1;

	while (end < b->c->cols && slot_at(b, row, end)->seen == s->seen && !slot_at(b, row, end)->mark == !s->mark &&
	       (s->mark || slot_at(b, row, end)->part == s->part))
		end++;
	return end;
}

static void reverse(struct board *b, int row, int from, int to)
{
	for (to--; from < to; from++, to--) {
		struct slot s = *slot_at(b, row, from);

		*slot_at(b, row, from) = *slot_at(b, row, to);
		*slot_at(b, row, to) = s;
	}
}

/* Marks move where there is space, maybe past a short bar. Exchange neighbours until they are in the order in
 * which the lane does them. */
static void order_row(struct board *b, int row)
{
	bool moved = true;

	while (moved) {
		moved = false;
		for (int at = 0, mid, end; at < b->c->cols; at = mid) {
			mid = end = stretch_end(b, row, at);
			if (mid == b->c->cols || slot_at(b, row, at)->seen == NONE || slot_at(b, row, mid)->seen == NONE ||
			    slot_time(b, slot_at(b, row, at)) <= slot_time(b, slot_at(b, row, mid)))
				continue;
			end = stretch_end(b, row, mid);
			reverse(b, row, at, mid);
			reverse(b, row, mid, end);
			reverse(b, row, at, end);
			mid = end - (mid - at);
			moved = true;
		}
	}
}

/* The first SHORT columns of a name. */
static void shorten(const char *name, char *out, size_t size)
{
	struct glyph g;
	size_t n = 0;
	int w = 0;

	while (*name) {
		name = glyph_next(name, &g);
		if (w + g.width > SHORT || n + sizeof(g.utf8) > size)
			break;
		memcpy(out + n, g.utf8, strlen(g.utf8));
		n += strlen(g.utf8);
		w += g.width;
	}
	out[n] = '\0';
}

/* The longest text that fits: "mma_qk 3", "qk 3", "soft 3", "q3", "q". Names of slices are not shortened, because all
 * would be the same. */
static void bar_text(const struct chart *c, const struct event *e, int space, char *out, size_t size)
{
	const struct stask *s = &c->g->tasks.v[e->task];
	const struct task_key *k = &c->key[e->task];
	char seq[16], start[32];
	int left;

	snprintf(seq, sizeof(seq), " %d", (int)e->seq);
	shorten(s->name, start, sizeof(start));
	left = space - (int)strlen(seq);
	if (text_width(s->name) <= left)
		snprintf(out, size, "%s%s", s->name, seq);
	else if (k->brief != s->name && text_width(k->brief) <= left)
		snprintf(out, size, "%s%s", k->brief, seq);
	else if (k->brief == s->name && left >= SHORT && s->slices <= 1)
		snprintf(out, size, "%s%s", start, seq);
	else if (space > (int)strlen(seq) - 1)
		snprintf(out, size, "%s%s", k->letter, seq + 1);
	else
		snprintf(out, size, "%s", space > 0 ? k->letter : "");
}

/* A bar of n columns. Without colour, a left edge and the fill separate it from its neighbours. */
static void draw_bar(const struct chart *c, struct cells *out, int x, int y, int n, const struct event *e)
{
	const struct task_key *k = &c->key[e->task];
	bool colour = c->flags & DRAW_COLOUR;
	char text[96];

	cells_fill(out, x, y, n, colour ? " " : k->fill, k->bar);
	if (n == 1) {
		cells_put(out, x, y, k->letter, k->bar);
		return;
	}
	bar_text(c, e, n - 1, text, sizeof(text));
	cells_put(out, x, y, colour ? "▏" : "▌", k->bar);
	cells_text(out, x + 1, y, n - 1, text, k->bar);
}

/* "····w:mma_qk···": why the lane waits, and for which sTask. */
static void draw_wait(const struct chart *c, struct cells *out, int x, int y, int n, const struct slot *s)
{
	const struct event *e = chart_seen(c, s->seen);
	struct reason r = s->part == PART_HELD ? event_held_for(c->t->plan, e) :
		(struct reason){ e->cause, e->cause_task };
	const char *mark = cause_mark(r.cause);
	char text[96] = "";
	int w;

	cells_fill(out, x, y, n, "·", FAINT);
	if (!mark[0] || n < text_width(mark) + 2)
		return;
	if (reason_on(c->t->plan, r)) {
		snprintf(text, sizeof(text), "%s:%s", mark, reason_on(c->t->plan, r));
		if (text_width(text) > n - 2 && r.cause != CAUSE_MEETING)
			snprintf(text, sizeof(text), "%s:%s", mark, c->key[r.task].letter);
	}
	if (!text[0] || text_width(text) > n - 2)
		snprintf(text, sizeof(text), "%s", mark);
	w = text_width(text);
	cells_text(out, x + (n - w) / 2, y, w, text, FAINT);
}

static void draw_row(const struct board *b, struct cells *out, int row, int y)
{
	const struct chart *c = b->c;
	int n;

	cells_text(out, 0, y, c->left - 1, b->layout.rows.v[row].label, BOLD);
	for (int x = 0; x < c->cols; x += n) {
		const struct slot *s = slot_at(b, row, x);
		const struct event *e = s->seen == NONE ? NULL : chart_seen(c, s->seen);

		for (n = 1; x + n < c->cols && !s->mark; n++) {
			const struct slot *next = slot_at(b, row, x + n);

			if (next->seen != s->seen || next->part != s->part || next->mark)
				break;
		}
		if (!e)
			continue;
		if (s->mark)
			cells_put(out, c->left + x, y, s->mark == '>' ? "▸" :
				(char[]){ s->mark, '\0' }, c->key[e->task].tick);
		else if (s->part != PART_WORK)
			draw_wait(c, out, c->left + x, y, n, s);
		else
			draw_bar(c, out, c->left + x, y, n, e);
	}
}

/* Fill in which event each column shows. */
static void fill_map(const struct board *b, struct chart_map *map)
{
	const struct chart *c = b->c;
	size_t rows = (size_t)b->layout.rows.n, cols = (size_t)c->cols, n = rows * cols;
	int *event = ARENA_ARRAY(c->arena, n, int);
	uint8_t *part = ARENA_ARRAY(c->arena, n, uint8_t);

	for (size_t i = 0; i < n; i++) {
		event[i] = b->slots[i].seen == NONE ? NONE : c->seen.v[b->slots[i].seen].event;
		part[i] = b->slots[i].mark ? PART_ISSUE : (uint8_t)b->slots[i].part;
	}
	*map = (struct chart_map){ .left = c->left, .cols = c->cols, .from = c->from, .to = c->to,
		.nrows = b->layout.rows.n, .row = ARENA_ARRAY(c->arena, rows, struct chart_row) };
	memcpy(map->deep, b->layout.queue_depth, sizeof(map->deep));
	for (size_t r = 0; r < rows; r++)
		map->row[r] = (struct chart_row){ .event = event + r * cols, .part = part + r * cols };
}

int chart_rows(const struct chart *c, struct cells *out, int y, struct chart_map *map)
{
	struct board b = { .c = c };
	size_t n;
	int rows, lanes;

	chart_lay_out(c, DEPTH_MAX, (c->to - c->from) / c->cols, &b.layout);
	rows = b.layout.rows.n;
	lanes = b.layout.nlanes;
	n = (size_t)rows * (size_t)c->cols;
	b.slots = ARENA_ARRAY(c->arena, n, struct slot);
	for (size_t i = 0; i < n; i++)
		b.slots[i].seen = NONE;
	for (int i = 0; i < c->seen.n; i++)
		cover_event(&b, i);
	for (int i = 0; i < c->seen.n && c->by == TIMELINE_LANES; i++)
		if (event_is_async(c, chart_seen(c, i)))
			mark_issue(&b, i);
	for (int r = 0; r < lanes; r++)
		order_row(&b, r);
	cells_grow(out, y + rows + 1);
	if (map)
		fill_map(&b, map);
	for (int r = 0; r < rows; r++) {
		int at = y + r + (lanes && r >= lanes);		/* a blank row between lanes and sEUs */

		draw_row(&b, out, r, at);
		if (map)
			map->row[r].y = at;
	}
	return y + rows + (lanes && lanes < rows);
}
