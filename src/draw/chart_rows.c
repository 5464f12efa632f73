/* Events on rows: bars where a unit works, marks where a lane issues, dots where it
 * waits. A column shows the event that fills most of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/chart.h"

enum {
	DEPTH_MAX = 4,			/* rows of one asynchronous sEU */
	MARK_SHIFT = 8,			/* most columns a mark is out of place */
	CUT = 4,			/* letters of a cut name, always as many */
	EMPTY = -1,
};

/* Who a row belongs to; -1: any. */
struct row {
	int lane, copy, seu, depth;
	const char *label;
};

/* Of an event: its work, its place in the queue of a busy sEU, its lane's waiting. */
enum part { WORK, QUEUED, HELD };

/* What a column of a row shows. */
struct slot {
	int event;			/* EMPTY */
	int64_t cover;			/* of the column, in cycles * columns */
	enum part part;
	char mark;			/* letter of an issue, '>' before one, or '\0' */
};

struct board {
	const struct chart *c;
	VEC(struct row) rows;
	struct slot *slots;		/* row after row */
	uint8_t *depth;			/* by event: which of its sEU's rows */
	int lane_row[LANES_MAX][COPIES_MAX];
	int seu_row[SEU_MAX][LANES_MAX][COPIES_MAX];	/* of a synchronous sEU */
	int queue_row[SEU_MAX];		/* first row of an asynchronous sEU */
	int queue_depth[SEU_MAX];
};

static bool is_in_window(const struct chart *c, int64_t start, int64_t end)
{
	return start < c->to && (end > c->from || (start == end && start == c->from));
}

const char *chart_lane_label(const struct chart *c, int lane, int copy)
{
	const struct lane *l = &c->t->plan->lanes.v[lane];

	return l->turns > 1 ? arena_strf(c->arena, "%s.%d", l->name, copy) : l->name;
}

int chart_label_width(const struct chart *c)
{
	const struct plan *p = c->t->plan;
	int most = 6, lanes = 0;	/* "cycles" */

	for (int i = 0; i < p->lanes.n; i++)
		lanes = (int)max_i64(lanes, text_width(chart_lane_label(c, i, 0)));
	for (int i = 0; i < c->d->nseus; i++)
		most = (int)max_i64(most, text_width(c->d->seu[i].name) +
			(c->by == TIMELINE_SEUS && !c->d->seu[i].async ? 1 + lanes : 0));
	return (int)min_i64(max_i64(most, lanes), 16);
}

/* Asynchronous events of the window in order of their start. They nearly always come
 * in that order; issue and start differ where a lane queues behind another. */
static int sort_begins(const struct chart *c, struct event_time *v)
{
	bool sorted = true;
	int n = 0;

	for (int i = c->first; i < c->end; i++) {
		const struct event *e = &c->line->events.v[i];

		if (!event_is_placed(c->t->plan, e) || !event_is_async(c, e) ||
		    !is_in_window(c, event_seu_begin(e), event_seu_end(c, e)))
			continue;
		sorted &= !n || v[n - 1].at <= event_seu_begin(e);
		v[n++] = (struct event_time){ event_seu_begin(e), i };
	}
	if (!sorted)
		qsort(v, (size_t)n, sizeof(*v), event_time_compare);
	return n;
}

/* Which row of its asynchronous sEU each event takes: the first that is free by then,
 * give or take a column. */
static void stack_events(struct board *b)
{
	const struct chart *c = b->c;
	struct event_time *v = ARENA_ARRAY(c->arena, c->end - c->first, struct event_time);
	int64_t until[SEU_MAX][DEPTH_MAX] = { 0 };
	int64_t slack = (c->to - c->from) / c->cols;
	int n = sort_begins(c, v);

	b->depth = ARENA_ARRAY(c->arena, c->end - c->first, uint8_t);
	for (int i = 0; c->deep && i < c->d->nseus; i++)
		b->queue_depth[i] = c->deep[i];
	for (int i = 0; i < n; i++) {
		const struct event *e = &c->line->events.v[v[i].event];
		int64_t *u = until[e->seu];
		int k = 0;

		while (k < DEPTH_MAX && u[k] - slack > event_seu_begin(e))
			k++;
		if (k == DEPTH_MAX)
			for (int j = k = 0; j < DEPTH_MAX; j++)
				k = u[j] < u[k] ? j : k;
		u[k] = max_i64(u[k], event_seu_end(c, e));
		b->depth[v[i].event - c->first] = (uint8_t)k;
		b->queue_depth[e->seu] = (int)max_i64(b->queue_depth[e->seu], k + 1);
	}
}

static int add_row(struct board *b, struct row r)
{
	VEC_PUSH(b->c->arena, &b->rows, r);
	return b->rows.n - 1;
}

void chart_used(const struct chart *c, int seu, bool used[LANES_MAX][COPIES_MAX])
{
	const struct plan *p = c->t->plan;
	bool all = c->end - c->first == c->line->events.n;

	for (int i = 0; i < c->line->events.n && all; i++) {
		const struct event *e = &c->line->events.v[i];

		if (event_is_placed(c->t->plan, e) && (seu < 0 || e->seu == seu))
			used[e->lane][e->copy] = true;
	}
	for (int i = 0; i < p->entries.n && !all; i++) {
		const struct entry *e = &p->entries.v[i];

		if (c->g->tasks.v[e->task].phase != c->line->phase || (seu >= 0 && e->seu != seu))
			continue;
		for (int k = 0; k < p->lanes.v[e->lane].turns && k < COPIES_MAX; k++)
			used[e->lane][k] = true;
	}
}

/* Rows of the lanes that do something in this phase. */
static void add_lane_rows(struct board *b)
{
	const struct chart *c = b->c;
	bool used[LANES_MAX][COPIES_MAX] = { 0 };

	chart_used(c, -1, used);
	for (int l = 0; l < LANES_MAX; l++) {
		for (int k = 0; k < COPIES_MAX; k++) {
			b->lane_row[l][k] = EMPTY;
			if (used[l][k])
				b->lane_row[l][k] = add_row(b, (struct row){ .lane = l, .copy = k,
					.seu = -1, .label = chart_lane_label(c, l, k) });
		}
	}
}

static void add_queue_rows(struct board *b, int seu)
{
	b->queue_row[seu] = b->rows.n;
	for (int k = 0; k < b->queue_depth[seu]; k++)
		add_row(b, (struct row){ .lane = -1, .seu = seu, .depth = k,
			.label = k ? "" : b->c->d->seu[seu].name });
}

/* A synchronous sEU: a row for each lane that uses it. */
static void add_shared_rows(struct board *b, int seu)
{
	const struct chart *c = b->c;
	bool used[LANES_MAX][COPIES_MAX] = { 0 };

	chart_used(c, seu, used);
	for (int l = 0; l < LANES_MAX; l++) {
		for (int k = 0; k < COPIES_MAX; k++) {
			b->seu_row[seu][l][k] = EMPTY;
			if (used[l][k])
				b->seu_row[seu][l][k] = add_row(b, (struct row){ .lane = l,
					.copy = k, .seu = seu, .label = arena_strf(c->arena,
					"%s %s", c->d->seu[seu].name, chart_lane_label(c, l, k)) });
		}
	}
}

static void add_rows(struct board *b)
{
	const struct chart *c = b->c;

	if (c->by == TIMELINE_LANES)
		add_lane_rows(b);
	for (int s = 0; s < c->d->nseus; s++) {
		if (c->d->seu[s].async)
			add_queue_rows(b, s);
		else if (c->by == TIMELINE_SEUS)
			add_shared_rows(b, s);
	}
}

static struct slot *slot_at(const struct board *b, int row, int64_t col)
{
	return &b->slots[(int64_t)row * b->c->cols + col];
}

/* Give [start, end) to the event in every column of which it fills most so far; work
 * comes before waiting. An interval without length shows where nothing else is. */
static void cover(struct board *b, int row, int event, int64_t start, int64_t end, enum part part)
{
	const struct chart *c = b->c;
	int64_t span = c->to - c->from, lo, hi, first, last;

	if (row == EMPTY || !is_in_window(c, start, end))
		return;
	lo = (max_i64(start, c->from) - c->from) * c->cols;
	hi = (min_i64(end, c->to) - c->from) * c->cols;
	first = lo / span;
	last = hi > lo ? ceil_div(hi, span) - 1 : first;
	for (int64_t col = first; col <= last; col++) {
		struct slot *s = slot_at(b, row, col);
		int64_t filled = min_i64(hi, (col + 1) * span) - max_i64(lo, col * span);
		bool both = (s->part == WORK) == (part == WORK);

		if (s->event != EMPTY && (both ? filled <= s->cover : part != WORK))
			continue;
		*s = (struct slot){ .event = event, .cover = filled, .part = part };
	}
}

static void cover_event(struct board *b, int i)
{
	const struct chart *c = b->c;
	const struct event *e = &c->line->events.v[i];
	int row = c->by == TIMELINE_LANES ? b->lane_row[e->lane][e->copy] : EMPTY;

	if (event_is_async(c, e)) {
		cover(b, b->queue_row[e->seu] + b->depth[i - c->first], i, event_seu_begin(e), event_seu_end(c, e),
			WORK);
	} else {
		if (c->by == TIMELINE_SEUS)
			row = b->seu_row[e->seu][e->lane][e->copy];
		cover(b, row, i, e->start, e->end, WORK);
		if (e->start > e->issue)
			cover(b, row, i, e->issue, e->start, QUEUED);
	}
	if (c->by == TIMELINE_LANES && e->issue > e->ready)
		cover(b, row, i, e->ready, e->issue, HELD);
}

static bool is_open(const struct slot *s)
{
	return !s->mark && (s->event == EMPTY || s->part != WORK);
}

/* May a mark take the column from the bar that begins there? Only a long bar can spare
 * it. */
static bool may_steal(const struct board *b, int row, int64_t col)
{
	const struct slot *s = slot_at(b, row, col);

	for (int64_t k = col; k < col + 4; k++)
		if (k >= b->c->cols || slot_at(b, row, k)->event != s->event ||
		    slot_at(b, row, k)->mark)
			return false;
	return true;
}

/* Where a lane hands work to an asynchronous sEU: "▸q", or "q" where it is narrow. Of
 * several in one column the later ones move on to the right. */
static void mark_issue(struct board *b, int i)
{
	const struct chart *c = b->c;
	const struct event *e = &c->line->events.v[i];
	int row = b->lane_row[e->lane][e->copy];
	int64_t col = chart_column(c, e->issue);
	struct slot mark = { .event = i, .mark = c->key[e->task].letter[0] };

	if (row == EMPTY || col < 0 || col >= c->cols)
		return;
	for (int64_t k = col; k < col + MARK_SHIFT && k + 1 < c->cols; k++) {
		if (!is_open(slot_at(b, row, k)) || !is_open(slot_at(b, row, k + 1)))
			continue;
		*slot_at(b, row, k) = (struct slot){ .event = i, .mark = '>' };
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

/* The first CUT columns of a name, in whole characters. */
static void cut_name(const char *name, char *out, size_t size)
{
	struct glyph g;
	size_t n = 0;
	int w = 0;

	while (*name) {
		name = glyph_next(name, &g);
		if (w + g.width > CUT || n + sizeof(g.utf8) > size)
			break;
		memcpy(out + n, g.utf8, strlen(g.utf8));
		n += strlen(g.utf8);
		w += g.width;
	}
	out[n] = '\0';
}

/* The longest text that fits: "mma_qk 3", "qk 3", "soft 3", "q3", "q". The parts of a
 * split sTask would all be cut to the same. */
static void bar_text(const struct chart *c, const struct event *e, int room, char *out, size_t size)
{
	const struct stask *s = &c->g->tasks.v[e->task];
	const struct task_key *k = &c->key[e->task];
	char seq[16], start[32];
	int cut;

	snprintf(seq, sizeof(seq), " %d", (int)e->seq);
	cut_name(s->name, start, sizeof(start));
	cut = room - (int)strlen(seq);
	if (text_width(s->name) <= cut)
		snprintf(out, size, "%s%s", s->name, seq);
	else if (k->brief != s->name && text_width(k->brief) <= cut)
		snprintf(out, size, "%s%s", k->brief, seq);
	else if (k->brief == s->name && cut >= CUT && s->parts <= 1)
		snprintf(out, size, "%s%s", start, seq);
	else if (room > (int)strlen(seq) - 1)
		snprintf(out, size, "%s%s", k->letter, seq + 1);
	else
		snprintf(out, size, "%s", room > 0 ? k->letter : "");
}

/* A bar of n columns. Without colour its left edge and a fill tell it from the next. */
static void draw_bar(const struct chart *c, struct cells *out, int x, int y, int n,
	const struct event *e)
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

/* "····w:mma_qk···": why, and for whom. */
static void draw_wait(const struct chart *c, struct cells *out, int x, int y, int n,
	const struct slot *s)
{
	const struct event *e = &c->line->events.v[s->event];
	struct reason r = s->part == HELD ? event_held_for(c->t->plan, e) :
		(struct reason){ e->cause, e->cause_task };
	char letter[2] = { cause_letter(r.cause), '\0' }, text[96] = "";
	int w;

	cells_fill(out, x, y, n, "·", FAINT);
	if (!letter[0] || n < 3)
		return;
	if (r.task >= 0 && r.task < c->g->tasks.n) {
		snprintf(text, sizeof(text), "%s:%s", letter, c->g->tasks.v[r.task].name);
		if (text_width(text) > n - 2)
			snprintf(text, sizeof(text), "%s:%s", letter, c->key[r.task].letter);
	}
	if (!text[0] || text_width(text) > n - 2)
		snprintf(text, sizeof(text), "%s", letter);
	w = text_width(text);
	cells_text(out, x + (n - w) / 2, y, w, text, FAINT);
}

static void draw_row(const struct board *b, struct cells *out, int row, int y)
{
	const struct chart *c = b->c;
	int n;

	cells_text(out, 0, y, c->left - 1, b->rows.v[row].label, BOLD);
	for (int x = 0; x < c->cols; x += n) {
		const struct slot *s = slot_at(b, row, x);
		const struct event *e = s->event == EMPTY ? NULL : &c->line->events.v[s->event];

		for (n = 1; x + n < c->cols && !s->mark; n++) {
			const struct slot *next = slot_at(b, row, x + n);

			if (next->event != s->event || next->part != s->part || next->mark)
				break;
		}
		if (!e)
			continue;
		if (s->mark)
			cells_put(out, c->left + x, y, s->mark == '>' ? "▸" :
				(char[]){ s->mark, '\0' }, c->key[e->task].tick);
		else if (s->part != WORK)
			draw_wait(c, out, c->left + x, y, n, s);
		else
			draw_bar(c, out, c->left + x, y, n, e);
	}
}

/* Tell what stands where. */
static void fill_map(const struct board *b, struct chart_map *map)
{
	static const uint8_t parts[] = { [WORK] = PART_WORK, [QUEUED] = PART_QUEUED,
		[HELD] = PART_HELD };
	const struct chart *c = b->c;
	size_t n = (size_t)b->rows.n * (size_t)c->cols;
	int *event = ARENA_ARRAY(c->arena, n, int);
	uint8_t *part = ARENA_ARRAY(c->arena, n, uint8_t);

	for (size_t i = 0; i < n; i++) {
		event[i] = b->slots[i].event;
		part[i] = b->slots[i].mark ? PART_ISSUE : parts[b->slots[i].part];
	}
	map->left = c->left;
	map->cols = c->cols;
	map->from = c->from;
	map->to = c->to;
	map->nrows = b->rows.n;
	map->row = ARENA_ARRAY(c->arena, b->rows.n, struct chart_row);
	memcpy(map->deep, b->queue_depth, sizeof(map->deep));
	for (int r = 0; r < b->rows.n; r++)
		map->row[r] = (struct chart_row){ .lane = b->rows.v[r].lane, .copy = b->rows.v[r].copy,
			.seu = b->rows.v[r].seu, .event = event + (size_t)r * (size_t)c->cols,
			.part = part + (size_t)r * (size_t)c->cols };
}

int chart_rows(const struct chart *c, struct cells *out, int y, struct chart_map *map)
{
	struct board b = { .c = c };
	size_t n;
	int lanes = 0;

	stack_events(&b);
	add_rows(&b);
	n = (size_t)b.rows.n * (size_t)c->cols;
	b.slots = ARENA_ARRAY(c->arena, n, struct slot);
	for (size_t i = 0; i < n; i++)
		b.slots[i].event = EMPTY;
	for (int i = c->first; i < c->end; i++)
		if (event_is_placed(c->t->plan, &c->line->events.v[i]))
			cover_event(&b, i);
	for (int i = c->first; i < c->end && c->by == TIMELINE_LANES; i++)
		if (event_is_placed(c->t->plan, &c->line->events.v[i]) &&
		    event_is_async(c, &c->line->events.v[i]))
			mark_issue(&b, i);
	cells_grow(out, y + b.rows.n + 1);
	if (map)
		fill_map(&b, map);
	for (int r = 0; r < b.rows.n; r++) {
		lanes += b.rows.v[r].seu == -1;
		/* a blank row between what issues and what works */
		draw_row(&b, out, r, y + r + (lanes && b.rows.v[r].seu != -1));
		if (map)
			map->row[r].y = y + r + (lanes && b.rows.v[r].seu != -1);
	}
	return y + b.rows.n + (lanes && lanes < b.rows.n);
}
