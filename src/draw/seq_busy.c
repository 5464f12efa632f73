/* How busy units and memory are while the kernels of a sequence run, from the kernels' own timelines. */
#include "draw/sequences.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/palette.h"
#include "draw/units.h"
#include "sim/bounds.h"

enum { PARTS = 1024, GAPS_SHOWN = 3 };

/* Of one kernel: how busy a row is in each of PARTS parts of its time. */
struct profile {
	const struct timeline *timeline;
	double part[PARTS];
};

/* When an event leaves its unit: a matrix unit takes the next sTask while the result of this one is on its way. */
static int64_t end_on_unit(const struct timeline *t, const struct event *e)
{
	const struct seu *u = &t->plan->device->seu[e->seu];

	if (!u->async || u->kind != SEU_MATRIX || t->measured)
		return e->end;
	return max_i64(e->start, e->end - (int64_t)u->latency);
}

/* How much of [from, to) is in part i of n parts of [0, all). */
static double overlap(double from, double to, int i, int n, double all)
{
	return fmax(0, fmin(to, all * (i + 1) / n) - fmax(from, all * i / n));
}

/* Add `amount`, spread evenly over the cycles [from, to) of a kernel, to the parts of its time that they are in. */
static void add_amount(double *part, double from, double to, double cycles, double amount)
{
	int first = (int)fmax(0, floor(from / cycles * PARTS)), last = (int)fmin(PARTS - 1, floor(to / cycles * PARTS));

	for (int i = first; i <= last; i++)
		part[i] += amount * (to > from ? overlap(from, to, i, PARTS, cycles) / (to - from) : i == first);
}

static double share_of_row(const struct timeline *t, const struct phase_line *p, int row)
{
	return row == SEQ_ROW_MEMORY ? p->memory_share : unit_share(p, t->plan->device, row);
}

/* The cycles in which any event of the phase is on the unit. */
static void add_unit(struct arena *a, double *part, const struct timeline *t, const struct phase_line *p, int unit,
	double offset)
{
	struct arena_mark mark = arena_mark(a);
	struct event_time *v = ARENA_ARRAY(a, p->events.n, struct event_time);
	int64_t until = 0;
	int n = 0;

	for (int i = 0; i < p->events.n; i++)
		if (event_is_sound(t->plan, &p->events.v[i]) && p->events.v[i].seu == unit)
			v[n++] = (struct event_time){ p->events.v[i].start - p->events.v[i].before, i };
	if (n)
		qsort(v, (size_t)n, sizeof(*v), event_time_compare);
	for (int i = 0; i < n; i++) {
		int64_t from = max_i64(v[i].at, until), to = end_on_unit(t, &p->events.v[v[i].event]);

		if (to <= from)
			continue;
		add_amount(part, offset + (double)from, offset + (double)to, (double)t->cycles, (double)(to - from));
		until = to;
	}
	arena_reset(a, mark);
}

/* The cycles that events take of the EU's share of memory. */
static void add_memory(double *part, const struct timeline *t, const struct phase_line *p, double offset)
{
	for (int i = 0; p->costs && i < p->events.n; i++) {
		const struct event *e = &p->events.v[i];
		const struct task_cost *c = &p->costs[e->task];

		add_amount(part, offset + (double)e->start, offset + (double)e->end, (double)t->cycles,
			fmax(c->l2, c->global));
	}
}

/* Events say when a row is busy, and the phase's own number how much: only the first events may have been kept. */
static void add_phase(struct arena *a, double *out, const struct timeline *t, int phase, int row, double offset)
{
	const struct phase_line *p = &t->phases[phase];
	double part[PARTS] = { 0 }, sum = 0, cycles = (double)t->cycles;
	double wants = share_of_row(t, p, row) * (double)p->cycles;
	double from = offset, to = offset + (double)p->cycles;

	if (!(wants > 0))
		return;
	if (row == SEQ_ROW_MEMORY)
		add_memory(part, t, p, offset);
	else
		add_unit(a, part, t, p, row, offset);
	for (int i = 0; i < PARTS; i++)
		sum += part[i];
	for (int i = 0; i < PARTS; i++) {
		double even = wants * overlap(from, to, i, PARTS, cycles) / (to - from);
		double here = sum > wants / 2 ? part[i] * wants / sum : even;

		out[i] += here / (cycles / PARTS) * (row == SEQ_ROW_MEMORY ? 1 : (double)p->eus / t->plan->device->eus);
	}
}

static void make_profile(struct arena *a, struct profile *x, const struct timeline *t, int row)
{
	double offset = 0;

	x->timeline = t;
	for (int i = 0; i < t->nphases; i++) {
		add_phase(a, x->part, t, i, row, offset);
		offset += (double)t->phases[i].cycles;
	}
}

/* How much of its own pace a kernel has here: less where it divides the EUs with kernels of other streams. */
static double pace(const struct seqline *l, const struct seq_span *s)
{
	double own = s->timeline->seconds, takes = s->end - s->begin;

	if (l->clock_hz > 0)
		own = fmax(own, (double)s->timeline->cycles / l->clock_hz);
	return takes > 0 ? fmin(1, own / takes) : 1;
}

/* Add to n parts of [from, to) what a kernel does in them. */
static void add_span(double *out, const struct seqline *l, const struct seq_span *s, const struct profile *x,
	double from, double to, int n)
{
	double takes = s->end - s->begin, width = (to - from) / n;

	for (int i = 0; i < n && takes > 0; i++) {
		double b = fmax(s->begin, from + width * i), e = fmin(s->end, from + width * (i + 1));
		double at = (b - s->begin) / takes * PARTS, until = (e - s->begin) / takes * PARTS, sum = 0;

		if (e <= b)
			continue;
		for (int k = (int)at; k < PARTS && k < until; k++)
			sum += x->part[k] * (fmin(until, k + 1) - fmax(at, k));
		out[i] += pace(l, s) * sum / (until - at) * (e - b) / width;
	}
}

static int compare_begins(const void *a, const void *b)
{
	const struct seq_span *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

/* The spans in order of their begin. */
static struct seq_span *sorted_spans(struct arena *a, const struct seqline *l)
{
	struct seq_span *v = ARENA_ARRAY(a, l->n, struct seq_span);

	memcpy(v, l->spans, sizeof(*v) * (size_t)l->n);
	qsort(v, (size_t)l->n, sizeof(*v), compare_begins);
	return v;
}

static void add_idle(double *out, const struct seqline *l, struct arena *a, double from, double to, int n)
{
	const struct seq_span *v = sorted_spans(a, l);
	double busy = 0, width = (to - from) / n;

	for (int k = 0; k < l->n; k++) {
		for (int i = 0; v[k].begin > busy && i < n; i++) {
			double first = fmax(busy, from + width * i), last = fmin(v[k].begin, from + width * (i + 1));

			out[i] += fmax(0, last - first) / width;
		}
		busy = fmax(busy, v[k].end);
	}
}

double *seqline_busy(struct arena *a, const struct seqline *l, int row, double from, double to, int n)
{
	double *out = ARENA_ARRAY(a, n, double);
	struct profile *profiles = ARENA_ARRAY(a, l->n, struct profile);
	int known = 0;

	if (row == SEQ_ROW_IDLE)
		add_idle(out, l, a, from, to, n);
	for (int i = 0; i < l->n && row != SEQ_ROW_IDLE; i++) {
		int k = 0;

		while (k < known && profiles[k].timeline != l->spans[i].timeline)
			k++;
		if (k == known)
			make_profile(a, &profiles[known++], l->spans[i].timeline, row);
		add_span(out, l, &l->spans[i], &profiles[k], from, to, n);
	}
	for (int i = 0; i < n; i++)
		out[i] = fmin(out[i], 1);
	return out;
}

int seqline_rows(const struct seqline *l, int rows[SEU_MAX + 1])
{
	const struct vdevice *d = l->plan->device;
	int n = 0;

	for (int row = 0; row <= d->nseus; row++) {
		bool any = false;

		for (int i = 0; i < l->n; i++)
			for (int k = 0; k < l->spans[i].timeline->nphases; k++)
				any |= share_of_row(l->spans[i].timeline, &l->spans[i].timeline->phases[k],
					row < d->nseus ? row : SEQ_ROW_MEMORY) > 0;
		if (any)
			rows[n++] = row < d->nseus ? row : SEQ_ROW_MEMORY;
	}
	return n;
}

const char *seqline_row_name(const struct seqline *l, int row)
{
	return row == SEQ_ROW_IDLE ? "idle" : row == SEQ_ROW_MEMORY ? "memory" : l->plan->device->seu[row].name;
}

const char *seq_span_bound(struct arena *a, const struct seq_span *s)
{
	const struct timeline *t = s->timeline;
	const struct phase_line *p = t->nphases ? timeline_longest(t) : NULL;
	double bound = p ? fmax(p->res_mii, p->rec_mii) : 0;

	if (!p || t->measured || !p->entry_costs)
		return "";
	if (p->rec_mii > p->res_mii && p->ii > 0)
		return arena_strf(a, "recurrence %s", unit_percent(fmin(1, bound / p->ii)).s);
	if (p->binding_seu >= BINDING_LANE)
		return arena_strf(a, "lane %s%s%s", binding_name(t->plan, p->binding_seu), p->ii > 0 ? " " : "",
			p->ii > 0 ? unit_percent(fmin(1, bound / p->ii)).s : "");
	return arena_strf(a, "%s %s", binding_name(t->plan, p->binding_seu), unit_percent(share_of_row(t, p,
		p->binding_seu < t->plan->device->nseus ? p->binding_seu : SEQ_ROW_MEMORY)).s);
}

const uint8_t *seq_inks(struct arena *a, const struct sequence *s)
{
	uint8_t *ink = ARENA_ARRAY(a, s->calls.n, uint8_t);
	int *hue = ARENA_ARRAY(a, s->calls.n, int), *shade = ARENA_ARRAY(a, s->calls.n, int), hues = 0;

	for (int i = 0; i < s->calls.n; i++) {
		hue[i] = NONE;
		for (int k = 0; k < i; k++) {
			if (strcmp(s->calls.v[k].program->name, s->calls.v[i].program->name) != 0)
				continue;
			hue[i] = hue[k];
			shade[i] = shade[k] + 1;
		}
		if (hue[i] == NONE)
			hue[i] = hues++;
		/* products come first in a layer, and are orange or red elsewhere, too */
		ink[i] = (uint8_t)ink_of_task((hue[i] + 1) % INK_KINDS, hue[i] / INK_KINDS, shade[i]);
	}
	return ink;
}

int seqline_streams(const struct seqline *l, int streams[SEQ_STREAMS_MAX])
{
	int n = 0;

	for (int k = 0; k < SEQ_STREAMS_MAX; k++) {
		bool any = false;

		for (int i = 0; i < l->n; i++)
			any |= l->spans[i].stream == k;
		if (any)
			streams[n++] = k;
	}
	return n;
}

/* ---- sentences ---- */

const char *seqline_head(struct arena *a, const struct seqline *l)
{
	struct buf b = buf_new(a);

	buf_printf(&b, "on %s, %s: %s", l->plan->device->name, l->measured ? "measured" : "predicted",
		unit_seconds(l->seconds).s);
	if (l->flops > 10 * l->bytes)	/* else its bytes say how fast it is */
		buf_printf(&b, ", %s", unit_si(l->flops / l->seconds, "FLOP/s").s);
	else if (l->bytes > 0)
		buf_printf(&b, ", %s", unit_si(l->bytes / l->seconds, "B/s").s);
	buf_printf(&b, "; %d kernel%s", l->n, l->n == 1 ? "" : "s");
	if (l->clock_hz > 0)
		buf_printf(&b, " at %s", unit_si(l->clock_hz, "Hz").s);
	if (l->watts > 0)
		buf_printf(&b, " and %.0f W", l->watts);
	return b.text;
}

/* A time in which no kernel runs, and the span that ends it. */
struct gap {
	double seconds;
	int span;
};

static int longest_first(const void *a, const void *b)
{
	const struct gap *x = a, *y = b;

	/* to a nanosecond: equal gaps are in the order of the kernels, however their sums were rounded */
	if (fabs(x->seconds - y->seconds) >= 1e-9)
		return x->seconds < y->seconds ? 1 : -1;
	return x->span - y->span;
}

const char *seqline_gaps(struct arena *a, const struct seqline *l)
{
	const struct seq_span *v = sorted_spans(a, l);
	struct gap *gaps = ARENA_ARRAY(a, l->n, struct gap);
	struct buf b = buf_new(a);
	double busy = 0;
	int n = 0;

	for (int i = 0; i < l->n; i++) {
		if (v[i].begin > busy)
			gaps[n++] = (struct gap){ v[i].begin - busy, i };
		busy = fmax(busy, v[i].end);
	}
	if (!n)
		return "a kernel runs all the time";
	qsort(gaps, (size_t)n, sizeof(*gaps), longest_first);
	buf_printf(&b, "no kernel runs for %s (%s) in %d gap%s", unit_seconds(l->idle).s,
		unit_percent(l->idle / l->seconds).s, n, n == 1 ? "" : "s");
	for (int i = 0; i < n && i < GAPS_SHOWN; i++)
		buf_printf(&b, "%s%s before %s", i ? ", " : n > 1 ? ", the longest " : ", ",
			unit_seconds(gaps[i].seconds).s, l->plan->s->calls.v[v[gaps[i].span].call].name);
	return b.text;
}
