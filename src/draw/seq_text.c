/* Timelines of sequences as text. */
#include "draw/sequences.h"

#include <math.h>
#include <string.h>

#include "draw/palette.h"
#include "draw/pen.h"
#include "draw/units.h"

enum { TICK_GAP = 10, SHARE = 6, SHARE_FROM = 36, LABEL_MAX = 14 };

/* The chart: columns of labels, of time, and of shares at the right. */
struct seqchart {
	const struct seqline *l;
	struct cells *out;
	unsigned flags;
	int left, cols;
	double from, seconds;		/* of the axis: where it begins, how long it is */
	int marked;			/* a span that is marked; NONE */
};

static int column_at(const struct seqchart *c, double seconds)
{
	return (int)floor((seconds - c->from) / c->seconds * c->cols + 0.5);
}

static const char *stream_name(const struct seqchart *c, int stream)
{
	return arena_strf(c->out->arena, "stream %d", stream);
}

static int left_of(const struct seqline *l, int width)
{
	int rows[SEU_MAX + 1], n = seqline_rows(l, rows), most = 9;

	for (int i = 0; i < n; i++)
		most = (int)max_i64(most, text_width(seqline_row_name(l, rows[i])));
	return (int)min_i64(min_i64(most, LABEL_MAX), width / 3) + 1;
}

static struct seqchart chart_of(const struct seqline *l, struct cells *out, int width, unsigned flags)
{
	struct seqchart c = { .l = l, .out = out, .flags = flags, .marked = NONE, .seconds = fmax(l->seconds, 1e-12) };

	c.left = left_of(l, width);
	c.cols = (int)max_i64(1, width - c.left - (width >= SHARE_FROM ? SHARE : 0));
	return c;
}

/* "0", "500", "1,000" of what the axis counts. */
static void put_axis(const struct seqchart *c, int y)
{
	bool ms = c->from + c->seconds >= 0.02;
	double unit = ms ? 1e-3 : 1e-6, all = c->seconds / unit, step = unit_step(all * TICK_GAP / c->cols);
	double from = c->from / unit;
	int free = 0;

	cells_text(c->out, 0, y, c->left - 1, ms ? "ms" : "µs", FAINT);
	cells_fill(c->out, c->left, y + 1, c->cols, "─", FAINT);
	for (int64_t i = (int64_t)ceil(from / step - 1e-9); (double)i * step <= from + all; i++) {
		int x = (int)(((double)i * step - from) / all * c->cols + 1e-9);
		struct unit_text text = unit_count((int64_t)((double)i * step + 0.5));

		if (step < 1)
			snprintf(text.s, sizeof(text.s), "%.4g", (double)i * step);
		if (x >= c->cols)
			break;
		cells_put(c->out, c->left + x, y + 1, "┬", FAINT);
		if (x < free || x + text_width(text.s) > c->cols)
			continue;
		cells_text(c->out, c->left + x, y, c->cols - x, text.s, FAINT);
		free = x + text_width(text.s) + 1;
	}
}

/* A kernel: its name in a bar that begins with an edge, so that neighbours are seen as two. */
static void put_bar(const struct seqchart *c, int y, const struct seq_span *s, int nth, int ink)
{
	const char *name = c->l->plan->s->calls.v[s->call].name;
	int from = (int)min_i64(max_i64(column_at(c, s->begin), 0), c->cols - 1);
	int to = (int)min_i64(max_i64(column_at(c, s->end), from + 1), c->cols);
	uint8_t colour = colour_of_256(task_colour(ink - INK_TASK));
	struct style bar = { .fg = colour_light(task_colour(ink - INK_TASK)) > 0.2 ? 16 : 231, .bg = colour };
	bool coloured = c->flags & DRAW_COLOUR;

	if (s->end <= c->from || s->begin >= c->from + c->seconds)
		return;
	cells_fill(c->out, c->left + from, y, to - from, coloured ? " " : nth % 2 ? "▒" : "▓",
		coloured ? bar : PLAIN);
	if (to - from > 1)
		cells_put(c->out, c->left + from, y, "▌", coloured ? (struct style){ .fg = 231, .bg = colour } : PLAIN);
	if (to - from >= text_width(name) + 2)
		cells_text(c->out, c->left + from + 1, y, to - from - 1, name, coloured ? bar : PLAIN);
	if (c->marked != NONE && s == &c->l->spans[c->marked])
		cells_mark(c->out, c->left + from, y, to - from, STYLE_REVERSE);
}

static int put_streams(const struct seqchart *c, int y)
{
	int streams[SEQ_STREAMS_MAX], n = seqline_streams(c->l, streams);
	const uint8_t *ink = seq_inks(c->out->arena, c->l->plan->s);

	for (int i = 0; i < n; i++, y++) {
		int nth = 0;

		cells_text(c->out, 0, y, c->left - 1, stream_name(c, streams[i]), PLAIN);
		for (int k = 0; k < c->l->n; k++)
			if (c->l->spans[k].stream == streams[i])
				put_bar(c, y, &c->l->spans[k], nth++, ink[c->l->spans[k].call]);
	}
	return y;
}

/* A row of blocks as high as the share of each column's time. */
static void put_busy(const struct seqchart *c, int y, int row)
{
	static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	const double *share = seqline_busy(c->out->arena, c->l, row, c->from, c->from + c->seconds, c->cols);
	struct style style = { .fg = row == SEQ_ROW_IDLE ? 203 : row == SEQ_ROW_MEMORY ? 111 : 114 };
	double sum = 0;

	cells_text(c->out, 0, y, c->left - 1, seqline_row_name(c->l, row), PLAIN);
	for (int i = 0; i < c->cols; i++) {
		int high = (int)ceil(share[i] * LEN(blocks) - 0.5);

		sum += share[i] / c->cols;
		if (share[i] > 0.002)
			cells_put(c->out, c->left + i, y, blocks[min_i64(max_i64(high, 1), LEN(blocks)) - 1], style);
	}
	/* of the sequence, which may end before the axis does */
	if (c->from + c->seconds > c->l->seconds)
		sum *= c->seconds / fmax(c->l->seconds - c->from, 1e-12);
	if (c->left + c->cols + SHARE <= c->out->w)
		cells_text(c->out, c->left + c->cols + SHARE - text_width(unit_percent(sum).s), y, SHARE,
			unit_percent(sum).s, PLAIN);
}

void seqline_cells(const struct seqline *l, const struct seqline_view *v, int width, unsigned flags, struct arena *a,
	struct cells *out)
{
	int rows[SEU_MAX + 1], n = seqline_rows(l, rows), streams[SEQ_STREAMS_MAX], y;
	struct seqchart c = chart_of(l, out, width, flags);

	if (v) {
		c.from = v->from;
		c.seconds = fmax(v->to - v->from, 1e-12);
		c.marked = v->marked;
	}
	cells_init(out, a, width, 3 + seqline_streams(l, streams) + n);
	put_axis(&c, 0);
	y = put_streams(&c, 2);
	put_busy(&c, y++, SEQ_ROW_IDLE);
	for (int i = 0; i < n; i++)
		put_busy(&c, y++, rows[i]);
}

static void draw_chart(const struct seqline *l, struct pen *pen)
{
	struct cells cells;

	seqline_cells(l, NULL, pen->width, pen->flags, pen->arena, &cells);
	cells_print(&cells, pen->flags, pen->out);
}

/* ---- tables ---- */

static const char *us(struct arena *a, double seconds)
{
	return arena_strf(a, "%.1f", seconds * 1e6);
}

static void put_kernels(const struct seqline *l, struct pen *pen)
{
	int streams[SEQ_STREAMS_MAX], n = seqline_streams(l, streams);
	const struct column col[] = { { "kernel", ALIGN_LEFT, 14, 0 }, { "calls", ALIGN_RIGHT, 0, 0 }, { "stream", ALIGN_RIGHT, 0, 7 },
		{ "begins", ALIGN_RIGHT, 0, 6 }, { "gap", ALIGN_RIGHT, 0, 4 }, { "µs", ALIGN_RIGHT, 0, 0 },
		{ "share", ALIGN_RIGHT, 0, 5 }, { "TFLOP/s", ALIGN_RIGHT, 0, 2 }, { "GB/s", ALIGN_RIGHT, 0, 3 },
		{ "bound by", ALIGN_LEFT, 0, 1 } };
	struct table t = table_new(pen->arena, col, LEN(col));
	struct arena *a = pen->arena;
	int nrows;
	const struct seq_row *rows = seqline_table(a, l, &nrows);

	for (int i = 0; i < nrows; i++) {
		const struct seq_row *r = &rows[i];
		const struct seq_span *s = &l->spans[r->first];

		TABLE_ROW(&t, l->plan->s->calls.v[s->call].name, nrows < l->n ? arena_strf(a, "%d", r->calls) : NULL, n > 1 ? arena_strf(a, "%d", s->stream) : NULL, us(a, s->begin), us(a, r->gap),
			us(a, r->seconds), unit_keep(a, unit_percent(r->share)),
			s->flops > 0 ? arena_strf(a, "%.3g", s->flops / r->seconds / 1e12) : NULL,
			arena_strf(a, "%.0f", s->bytes / r->seconds / 1e9), seq_span_bound(a, s));
	}
	table_print(&t, 0, pen->width, pen->flags, pen->out);
}

/* "idle of 3.03 ms: tensor 480 µs, tma 1.2 ms, memory 700 µs" */
static const char *idle_units(struct arena *a, const struct seqline *l)
{
	int rows[SEU_MAX + 1], n = seqline_rows(l, rows);
	struct buf b = buf_new(a);

	for (int i = 0; i < n; i++) {
		double idle = l->seconds * (1 - *seqline_busy(a, l, rows[i], 0, l->seconds, 1));

		buf_printf(&b, "%s%s %s", i ? ", " : arena_strf(a, "not at work of %s: ", unit_seconds(l->seconds).s),
			seqline_row_name(l, rows[i]), unit_seconds(idle).s);
	}
	return b.text;
}

void draw_seqline(const struct seqline *l, const struct draw_options *o, struct buf *out)
{
	struct pen pen = pen_new(o, out);

	pen_name(&pen, l->plan->s->name, seqline_head(pen.arena, l));
	pen_puts(&pen, "\n", PLAIN);
	draw_chart(l, &pen);
	pen_puts(&pen, "\n", PLAIN);
	put_kernels(l, &pen);
	pen_puts(&pen, "\n", PLAIN);
	pen_line(&pen, seqline_gaps(pen.arena, l));
	pen_line(&pen, idle_units(pen.arena, l));
}

/* ---- two of them ---- */

static void draw_half(const struct seqline *l, const char *name, double seconds, int left, struct pen *pen)
{
	int streams[SEQ_STREAMS_MAX], y;
	struct cells cells;
	struct seqchart c = chart_of(l, &cells, pen->width, pen->flags);

	c.seconds = seconds;
	c.cols += c.left - left;
	c.left = left;
	pen_name(pen, name, seqline_head(pen->arena, l));
	cells_init(&cells, pen->arena, pen->width, 3 + seqline_streams(l, streams));
	put_axis(&c, 0);
	y = put_streams(&c, 2);
	put_busy(&c, y, SEQ_ROW_IDLE);
	cells_print(&cells, pen->flags, pen->out);
	pen_puts(pen, "\n", PLAIN);
}

static const struct seq_span *span_named(const struct seqline *l, const char *name)
{
	for (int i = 0; i < l->n; i++)
		if (strcmp(l->plan->s->calls.v[l->spans[i].call].name, name) == 0)
			return &l->spans[i];
	return NULL;
}

static void add_pair(struct table *t, const char *name, const struct seq_span *one, const struct seq_span *other)
{
	const struct seq_span *s[2] = { one, other };
	const char *takes[2], *gap[2];
	struct arena *a = t->arena;
	double change = 0;

	for (int i = 0; i < 2; i++) {
		takes[i] = s[i] ? us(a, s[i]->end - s[i]->begin) : "-";
		gap[i] = s[i] ? us(a, s[i]->begin - s[i]->launch) : "-";
	}
	if (one && other)
		change = (other->end - other->begin) / (one->end - one->begin) - 1;
	TABLE_ROW(t, name, takes[0], takes[1], one && other ? unit_keep(a, unit_change(change)) : "-",
		gap[0], gap[1], one ? seq_span_bound(a, one) : NULL, other ? seq_span_bound(a, other) : NULL);
}

static void put_pairs(const struct seqline *const l[2], const char *const names[2], struct pen *pen)
{
	struct arena *a = pen->arena;
	const char *us_of = arena_strf(a, "µs %s", names[0]), *gap_of = arena_strf(a, "gap %s", names[0]);
	const struct column col[] = { { "kernel", ALIGN_LEFT, 8, 0 }, { us_of, ALIGN_RIGHT, 0, 0 },
		{ names[1], ALIGN_RIGHT, 0, 0 }, { "change", ALIGN_RIGHT, 0, 1 }, { gap_of, ALIGN_RIGHT, 0, 2 },
		{ names[1], ALIGN_RIGHT, 0, 2 }, { "bound by", ALIGN_LEFT, 0, 3 }, { "then by", ALIGN_LEFT, 0, 3 } };
	struct table t = table_new(a, col, LEN(col));

	for (int i = 0; i < l[0]->n; i++) {
		const char *name = l[0]->plan->s->calls.v[l[0]->spans[i].call].name;

		add_pair(&t, name, &l[0]->spans[i], span_named(l[1], name));
	}
	for (int i = 0; i < l[1]->n; i++) {
		const char *name = l[1]->plan->s->calls.v[l[1]->spans[i].call].name;

		if (!span_named(l[0], name))
			add_pair(&t, name, NULL, &l[1]->spans[i]);
	}
	TABLE_ROW(&t, "all", us(a, l[0]->seconds), us(a, l[1]->seconds),
		unit_keep(a, unit_change(l[1]->seconds / l[0]->seconds - 1)), us(a, l[0]->idle), us(a, l[1]->idle));
	table_print(&t, 0, pen->width, pen->flags, pen->out);
}

void draw_seqline_pair(const struct seqline *const l[2], const char *const names[2], const struct draw_options *o,
	struct buf *out)
{
	struct pen pen = pen_new(o, out);
	double seconds = fmax(fmax(l[0]->seconds, l[1]->seconds), 1e-12);
	int left = (int)max_i64(left_of(l[0], pen.width), left_of(l[1], pen.width));

	pen_name(&pen, l[0]->plan->s->name, arena_strf(pen.arena, "%s %s, %s %s: %.3f times as long", names[0],
		unit_seconds(l[0]->seconds).s, names[1], unit_seconds(l[1]->seconds).s, l[1]->seconds / l[0]->seconds));
	pen_puts(&pen, "\n", PLAIN);
	for (int i = 0; i < 2; i++)
		draw_half(l[i], names[i], seconds, left, &pen);
	put_pairs(l, names, &pen);
}
