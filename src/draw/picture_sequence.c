/* Sequences as pictures: the timeline of all kernels over one axis; a plan as calls, tensors and the arena. */
#include "draw/sequences.h"

#include <math.h>
#include <string.h>

#include "draw/panel.h"
#include "draw/units.h"

enum { BAR = 34, BUSY = 34, LABEL = 92, PERCENT = 52, TABLE_ROW_HEIGHT = 22, BANDS = 220, BANDS_GAP = 34, STEPS = 600,
	COLUMN_LEAST = 46, USE_ROW = 20 };

/* ---- timelines ---- */

struct lineplot {
	struct picture *p;
	const struct seqline *l;
	const struct picture_options *o;
	const uint8_t *ink;
	double x0, x1;
};

static double x_of(const struct lineplot *c, double seconds)
{
	return c->x0 + (c->x1 - c->x0) * seconds / c->l->seconds;
}

static const char *call_name(const struct lineplot *c, const struct seq_span *s)
{
	return c->l->plan->s->calls.v[s->call].name;
}

static void put_label(struct picture *p, double x, double y, const char *text)
{
	picture_text(p, x - 10, y, ANCHOR_RIGHT, 14, INK_TEXT, picture_fit(p, text, 14, LABEL - 10));
}

static void put_bar(const struct lineplot *c, const struct seq_span *s, double y)
{
	double x = x_of(c, s->begin), w = fmax(x_of(c, s->end) - x, 1);
	struct shape *bar = picture_rect(c->p, x, y, w, BAR, c->ink[s->call], INK_NONE);
	const char *name = picture_fit(c->p, call_name(c, s), 14, w - 8);

	bar->round = w > 8 ? 3 : 0;
	bar->tip = arena_strf(c->p->arena, "%s: %s from %s on", call_name(c, s), unit_seconds(s->end - s->begin).s,
		unit_seconds(s->begin).s);
	picture_text(c->p, x + w / 2, y + 15, ANCHOR_MIDDLE, 14, picture_on(c->o->theme, c->ink[s->call]), name);
	if (*name && w > 60)
		picture_text(c->p, x + w / 2, y + 29, ANCHOR_MIDDLE, SMALL, picture_on(c->o->theme, c->ink[s->call]),
			unit_keep(c->p->arena, unit_seconds(s->end - s->begin)));
}

static double put_streams(const struct lineplot *c, double y)
{
	int streams[SEQ_STREAMS_MAX], n = seqline_streams(c->l, streams);

	for (int i = 0; i < n; i++, y += BAR + ROW_GAP) {
		picture_rect(c->p, c->x0, y, c->x1 - c->x0, BAR, INK_PANEL, INK_NONE);
		put_label(c->p, c->x0, y + 22, arena_strf(c->p->arena, "stream %d", streams[i]));
		for (int k = 0; k < c->l->n; k++)
			if (c->l->spans[k].stream == streams[i])
				put_bar(c, &c->l->spans[k], y);
	}
	return y;
}

static int ink_of_row(const struct lineplot *c, int row)
{
	static const uint8_t kinds[SEU_KINDS] = { [SEU_COPY] = TASK_LOAD, [SEU_MATRIX] = TASK_MMA,
		[SEU_VECTOR] = TASK_COMPUTE };

	return row == SEQ_ROW_IDLE ? INK_BOUND : row == SEQ_ROW_MEMORY ? INK_EPILOGUE :
		ink_of_task(kinds[c->l->plan->device->seu[row].kind], 0, 0);
}

/* How much of the time: an area as high as the share. */
static double put_busy(const struct lineplot *c, int row, double y)
{
	const double *share = seqline_busy(c->p->arena, c->l, row, 0, c->l->seconds, STEPS);
	struct point *v = ARENA_ARRAY(c->p->arena, 2 * STEPS + 2, struct point);
	double sum = 0, step = (c->x1 - c->x0) / STEPS, bottom = y + BUSY;

	picture_rect(c->p, c->x0, y, c->x1 - c->x0, BUSY, INK_PANEL, INK_NONE);
	v[0] = (struct point){ c->x0, bottom };
	for (int i = 0; i < STEPS; i++) {
		sum += share[i] / STEPS;
		v[1 + 2 * i] = (struct point){ c->x0 + step * i, bottom - BUSY * share[i] };
		v[2 + 2 * i] = (struct point){ c->x0 + step * (i + 1), bottom - BUSY * share[i] };
	}
	v[2 * STEPS + 1] = (struct point){ c->x1, bottom };
	picture_path(c->p, v, 2 * STEPS + 2, true, ink_of_row(c, row), INK_NONE);
	put_label(c->p, c->x0, y + 22, row == SEQ_ROW_IDLE ? "no kernel" : seqline_row_name(c->l, row));
	picture_text(c->p, c->x1 + PERCENT - 2, y + 22, ANCHOR_RIGHT, 14, INK_TEXT,
		unit_keep(c->p->arena, unit_percent(sum)));
	return bottom + ROW_GAP;
}

static double put_axis(const struct lineplot *c, double y)
{
	double step = unit_step(c->l->seconds * 80 / (c->x1 - c->x0));

	picture_line(c->p, c->x0, y, c->x1, y, INK_LINE, 1);
	for (int i = 0; i * step <= c->l->seconds; i++) {
		double x = x_of(c, i * step);

		picture_line(c->p, x, y, x, y + 5, INK_LINE, 1);
		picture_text(c->p, x, y + 18, ANCHOR_MIDDLE, SMALL, INK_FAINT,
			i ? unit_keep(c->p->arena, unit_seconds(i * step)) : "0");
	}
	return y + 26;
}

/* A row of the table; `bold` for its head. */
static void put_cells(struct picture *p, double y, double w, const char *const text[6], bool bold, int ink)
{
	static const double at[6] = { 0.28, 0.40, 0.50, 0.62, 0.76, 0.79 };

	if (ink != INK_NONE)
		picture_rect(p, MARGIN, y - 11, 12, 12, ink, INK_NONE);
	for (int i = 0; i < 6; i++) {
		double x = MARGIN + (i ? at[i] * w : 20);

		(bold ? picture_bold : picture_text)(p, x, y, !i || i == 5 ? ANCHOR_LEFT : ANCHOR_RIGHT, 14,
			bold ? INK_FAINT : INK_TEXT, picture_fit(p, text[i], 14, w * (i == 5 ? 0.2 : 0.24)));
	}
}

static double put_table(const struct lineplot *c, double y)
{
	struct arena *a = c->p->arena;
	double w = c->p->width - 2 * MARGIN;
	int nrows;
	const struct seq_row *rows = seqline_table(a, c->l, &nrows);

	put_cells(c->p, y, w, (const char *[]){ "kernel", "begins", "gap", "takes", "speed", "bound by" }, true,
		INK_NONE);
	for (int i = 0; i < nrows; i++) {
		const struct seq_row *r = &rows[i];
		const struct seq_span *s = &c->l->spans[r->first];
		bool counts = s->flops > 10 * s->bytes;
		struct unit_text speed = counts ? unit_si(s->flops / r->seconds, "FLOP/s") :
			unit_si(s->bytes / r->seconds, "B/s");

		y += TABLE_ROW_HEIGHT;
		put_cells(c->p, y, w, (const char *[]){ r->calls > 1 ? arena_strf(a, "%s × %d", call_name(c, s), r->calls) : call_name(c, s), unit_keep(a, unit_seconds(s->begin)),
			unit_keep(a, unit_seconds(r->gap)), unit_keep(a, unit_seconds(r->seconds)),
			unit_keep(a, speed), seq_span_bound(a, s) }, false, c->ink[s->call]);
	}
	return y + 12;
}

static const char *title_of(struct picture *p, const struct sequence *s, const struct vdevice *d,
	const struct picture_options *o)
{
	return o->title ? o->title : arena_strf(p->arena, "%s on %s", s->name,
		d->title && !o->brief ? d->title : d->name);
}

void picture_seqline(struct picture *p, const struct seqline *l, const struct picture_options *o)
{
	int rows[SEU_MAX + 1], n = seqline_rows(l, rows);
	struct lineplot c = { .p = p, .l = l, .ink = seq_inks(p->arena, l->plan->s) };
	double y, top;

	c.o = o = picture_begin(p, o);
	c.x0 = MARGIN + LABEL;
	c.x1 = p->width - MARGIN - PERCENT;
	y = picture_top(p, o, title_of(p, l->plan->s, l->plan->device, o), o->brief ? 1 : 2,
		(const char *[]){ seqline_head(p->arena, l), seqline_gaps(p->arena, l) });
	y = top = o->brief ? y - 8 : y + 6;
	y = put_streams(&c, y) + ROW_GAP;
	y = put_busy(&c, SEQ_ROW_IDLE, y);
	for (int i = 0; i < n; i++)
		y = put_busy(&c, rows[i], y);
	y = put_axis(&c, y + 2);
	if (!o->brief)
		y = put_table(&c, y + 26);
	p->height = fmax(o->height, y + MARGIN);
}

/* ---- plans ---- */

struct planplot {
	struct picture *p;
	const struct seqplan *plan;
	const struct picture_options *o;
	const uint8_t *ink;
	int *position;			/* by call */
	double x0, column;
};

static double middle(const struct planplot *c, int call)
{
	return c->x0 + c->column * (c->position[call] + 0.5);
}

/* The row of a call's stream. */
static int row_of(const struct planplot *c, int call)
{
	int row = 0;

	for (int k = 0; k < c->plan->launches[call].stream; k++)
		for (int i = 0; i < c->plan->s->calls.n; i++)
			if (c->plan->launches[i].stream == k) {
				row++;
				break;
			}
	return row;
}

static double call_y(const struct planplot *c, int call, double y)
{
	return y + row_of(c, call) * (BAR + 26);
}

/* From the end of the call in front, and of those it waits for. */
static void put_waits(const struct planplot *c, int call, double y)
{
	const struct seq_launch *l = &c->plan->launches[call];
	int front = NONE;

	for (int i = 0; i < c->position[call]; i++)
		if (c->plan->launches[c->plan->order[i]].stream == l->stream)
			front = c->plan->order[i];
	for (int k = -1; k < l->waits.n; k++) {
		int from = k < 0 ? front : l->waits.v[k];
		double x = middle(c, call) - c->column / 2 + 4, at = call_y(c, call, y) + BAR / 2.0, end, front_y;
		struct shape *line;

		if (from == NONE)
			continue;
		end = middle(c, from) + c->column / 2 - 4;
		front_y = call_y(c, from, y) + BAR / 2.0;
		line = picture_line(c->p, end, front_y, x - 3, at, k < 0 ? INK_LINE : INK_BOUND, 1.5);
		if (k < 0 && l->early)
			line->dash = 3;
		picture_head(c->p, x, at, x - end, at - front_y, 6, k < 0 ? INK_LINE : INK_BOUND);
	}
}

static double put_calls(const struct planplot *c, double y)
{
	const struct sequence *s = c->plan->s;
	int rows = 0;

	for (int i = 0; i < s->calls.n; i++) {
		double x = middle(c, i) - c->column / 2 + 4, at = call_y(c, i, y);
		struct shape *box = picture_rect(c->p, x, at, c->column - 8, BAR, c->ink[i], INK_NONE);

		box->round = 3;
		box->tip = arena_strf(c->p->arena, "%s: %s, stream %d", s->calls.v[i].name, s->calls.v[i].program->name,
			c->plan->launches[i].stream);
		picture_text(c->p, middle(c, i), at + 15, ANCHOR_MIDDLE, 14, picture_on(c->o->theme, c->ink[i]),
			picture_fit(c->p, s->calls.v[i].name, 14, c->column - 14));
		picture_text(c->p, middle(c, i), at + 29, ANCHOR_MIDDLE, 11, picture_on(c->o->theme, c->ink[i]),
			picture_fit(c->p, s->calls.v[i].program->name, 11, c->column - 14));
		rows = (int)max_i64(rows, row_of(c, i) + 1);
	}
	for (int i = 0; i < s->calls.n; i++)
		put_waits(c, i, y);
	for (int r = 0; r < rows; r++)
		put_label(c->p, c->x0, y + r * (BAR + 26) + 22, rows > 1 ? "" : "calls");
	for (int i = 0; i < s->calls.n && rows > 1; i++)
		put_label(c->p, c->x0, call_y(c, i, y) + 22,
			arena_strf(c->p->arena, "stream %d", c->plan->launches[i].stream));
	return y + rows * (BAR + 26) - 6;
}

/* A tensor's row: from its first use to its last one, a disc where a call writes it, a ring where one reads it. */
static void put_uses(const struct planplot *c, const struct seq_tensor *t, double y)
{
	double lo = INFINITY, hi = 0;

	put_label(c->p, c->x0, y + 5, t->name);
	for (int i = 0; i < t->uses.n; i++) {
		lo = fmin(lo, middle(c, t->uses.v[i].call));
		hi = fmax(hi, middle(c, t->uses.v[i].call));
	}
	picture_line(c->p, lo, y, hi, y, t->role == SEQ_TEMP ? INK_TEXT : INK_GRID, t->role == SEQ_TEMP ? 2 : 1);
	for (int i = 0; i < t->uses.n; i++) {
		const struct seq_use *u = &t->uses.v[i];
		double x = middle(c, u->call);
		struct shape *dot = picture_rect(c->p, x - 5, y - 5, 10, 10, u->writes ? c->ink[u->call] : INK_PAPER,
			c->ink[u->call]);

		dot->round = 5;
		dot->width = 2;
		dot->tip = arena_strf(c->p->arena, "%s %s %s", c->plan->s->calls.v[u->call].name, u->writes ? u->reads ?
			"reads and writes" : "writes" : "reads", t->name);
	}
}

static double put_tensors(const struct planplot *c, double y)
{
	const struct sequence *s = c->plan->s;

	for (int role = 0; role < 4; role++) {
		for (int i = 0; i < s->tensors.n; i++) {
			const struct seq_tensor *t = &s->tensors.v[i];

			if ((int)t->role != role || !t->uses.n)
				continue;
			put_uses(c, t, y);
			picture_text(c->p, c->x0 + c->column * s->calls.n + 8, y + 4, ANCHOR_LEFT, SMALL, INK_FAINT,
				arena_strf(c->p->arena, "%s %s, %s", seq_role_names[role], dtype_name(t->type),
				unit_bytes((double)t->bytes).s));
			y += USE_ROW;
		}
	}
	return y;
}

/* A temporary: its bytes of the arena, as long as any call uses it. */
static void put_band(const struct planplot *c, int tensor, double y)
{
	const struct seq_tensor *t = &c->plan->s->tensors.v[tensor];
	double scale = BANDS / (double)c->plan->arena_bytes, lo = INFINITY, hi = 0, top, high;
	int first = t->uses.v[0].call;
	struct shape *band;
	const char *name;

	for (int i = 0; i < t->uses.n; i++) {
		lo = fmin(lo, middle(c, t->uses.v[i].call));
		hi = fmax(hi, middle(c, t->uses.v[i].call));
	}
	lo -= c->column / 2 - 4;
	hi += c->column / 2 - 4;
	top = y + scale * (double)c->plan->offset[tensor];
	high = fmax(scale * (double)t->bytes - 1, 2);
	band = picture_rect(c->p, lo, top, hi - lo, high, c->ink[first], INK_PAPER);
	band->tip = arena_strf(c->p->arena, "%s: %s from byte %lld on", t->name, unit_bytes((double)t->bytes).s,
		(long long)c->plan->offset[tensor]);
	name = arena_strf(c->p->arena, "%s, %s", t->name, unit_bytes((double)t->bytes).s);
	if (high >= 16)
		picture_text(c->p, (lo + hi) / 2, top + high / 2 + 5, ANCHOR_MIDDLE, 13,
			picture_on(c->o->theme, c->ink[first]), picture_fit(c->p, name, 13, hi - lo - 8));
}

static double put_arena(const struct planplot *c, double y)
{
	const struct sequence *s = c->plan->s;

	if (c->plan->arena_bytes <= 0)
		return y;
	y += BANDS_GAP;
	picture_rect(c->p, c->x0, y, c->column * s->calls.n, BANDS, INK_PANEL, INK_NONE);
	put_label(c->p, c->x0, y + 14, "arena");
	put_label(c->p, c->x0, y + BANDS - 2, unit_keep(c->p->arena, unit_bytes((double)c->plan->arena_bytes)));
	for (int i = 0; i < s->tensors.n; i++)
		if (s->tensors.v[i].role == SEQ_TEMP && s->tensors.v[i].uses.n && c->plan->offset[i] != NONE)
			put_band(c, i, y);
	return y + BANDS;
}

void picture_seqplan(struct picture *p, const struct seqplan *plan, const struct picture_options *o)
{
	const struct sequence *s = plan->s;
	struct planplot c = { .p = p, .plan = plan, .ink = seq_inks(p->arena, s),
		.position = arena_ints(p->arena, s->calls.n, 0) };
	bool waits = false, early = false;
	double y;

	c.o = o = picture_begin(p, o);
	for (int i = 0; i < s->calls.n; i++) {
		c.position[plan->order[i]] = i;
		waits |= plan->launches[i].waits.n > 0;
		early |= plan->launches[i].early;
	}
	c.x0 = MARGIN + LABEL;
	p->width = fmax(p->width, c.x0 + 160 + MARGIN + COLUMN_LEAST * s->calls.n);
	c.column = (p->width - c.x0 - 160 - MARGIN) / s->calls.n;
	y = picture_top(p, o, title_of(p, s, plan->device, o), 1, (const char *[]){ arena_strf(p->arena,
		"%d calls in order of their launches; %d tensors; %s of temporaries", s->calls.n, s->tensors.n,
		unit_bytes((double)plan->arena_bytes).s) });
	y = put_calls(&c, o->brief ? y - 4 : y + 8);
	y = put_tensors(&c, y + 14);
	y = put_arena(&c, y);
	y = picture_wrap(p, MARGIN, y + 26, p->width - 2 * MARGIN, SMALL, INK_FAINT, arena_strf(p->arena,
		"disc: writes; ring: reads; line: from the first use to the last%s%s; arena: bytes over the calls",
		early ? "; dashed arrow: launched early, waits itself" : "",
		waits ? "; arrow from another stream: waits for that call" : ""));
	p->height = fmax(o->height, y + MARGIN / 2.0);
}
