#include "explore/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/speed.h"
#include "draw/units.h"
#include "plan/diff.h"
#include "sim/bounds.h"

enum { CAUSES_SHOWN = 8, BETTER = 114, WORSE = 203 };

const struct phase_line *pair_line(const struct timeline *t, int phase)
{
	return t && t->nphases ? &t->phases[phase < t->nphases ? phase : 0] : NULL;
}

bool pair_has_one_time_axis(const struct pair *p)
{
	return p->tl[0] && p->tl[1] && p->tl[0]->logical == p->tl[1]->logical;
}

/* ---- numbers -------------------------------------------------------------------- */

/* "▼ -12 %", in green if it is better: sign is -1 if less is better, 1 if more is, 0 if neither is. */
static struct table_cell change(struct arena *a, double one, double two, int sign)
{
	double by = one > 0 ? two / one - 1 : 0;
	struct table_cell c = { NULL, PLAIN };

	if (!isfinite(one) || !isfinite(two) || fabs(by) < 0.0005)
		return c;
	c.text = arena_strf(a, "%s %+.*f %%", by < 0 ? "▼" : "▲", fabs(by) < 0.1 ? 1 : 0, 100 * by);
	if (sign)
		c.style.fg = (by < 0) == (sign < 0) ? BETTER : WORSE;
	return c;
}

struct numbers {
	struct arena *a;
	const struct pair *p;
	struct table t;
};

/* With its unit, "" for a count; "-" if it is not known. */
static const char *value_text(struct arena *a, double v, const char *unit)
{
	if (!(v > 0))
		return "-";
	return unit_keep(a, !*unit ? unit_rounded(v) : !strcmp(unit, "B") ? unit_bytes(v) : !strcmp(unit, "s") ?
		unit_seconds(v) : !strcmp(unit, "%") ? unit_percent(v) : unit_si(v, unit));
}

/* Add a row, unless both values are unknown. `what` must live as long as the table. */
static void add_value(struct numbers *n, const char *what, double one, double two, const char *unit, int sign)
{
	struct table_cell by = { NULL, PLAIN };

	if (!(one > 0) && !(two > 0))
		return;
	if (n->p->difference)
		;				/* neither is better or worse for that */
	else if (one > 0 && two > 0 && *unit != '%')
		by = change(n->a, one, two, sign);
	else if (one > 0 && two > 0) {		/* of what is shown, so that the numbers of a row agree */
		double points = strtod(unit_percent(two).s, NULL) - strtod(unit_percent(one).s, NULL);

		if (fabs(points) >= 0.5)
			by.text = arena_strf(n->a, "%+.0f point%s", points, fabs(points) < 1.5 ? "" : "s");
	}
	TABLE_ROW(&n->t, what, value_text(n->a, one, unit), value_text(n->a, two, unit))[3] = by;
}

static double bound_of(const struct phase_line *l)
{
	return l ? fmax(l->res_mii, l->rec_mii) : 0;
}

static const char *binding(const struct pair *p, int i, const struct phase_line *l)
{
	if (!l || !(bound_of(l) > 0))
		return NULL;
	return l->res_mii >= l->rec_mii ? binding_name(p->plan[i], l->binding_seu) : "a recurrence";
}

static void add_loop(struct numbers *n, const struct phase_line *one, const struct phase_line *two)
{
	const char *b[2] = { binding(n->p, 0, one), binding(n->p, 1, two) };
	bool alike = one && two && phases_iterate_alike(n->p->tl[0], one, n->p->tl[1], two);

	if (one && two && !alike) {		/* another number, but neither better nor worse for that */
		if (one->ii > 0 || two->ii > 0)
			TABLE_ROW(&n->t, "interval (II)", value_text(n->a, one->ii, ""), value_text(n->a, two->ii, ""),
				"of another iteration");
		return;
	}
	add_value(n, "interval (II)", one ? one->ii : 0, two ? two->ii : 0, "", -1);
	add_value(n, "  its bound", bound_of(one), bound_of(two), "", -1);
	if (b[0] && b[1] && strcmp(b[0], b[1]))
		TABLE_ROW(&n->t, "  which is", b[0], b[1]);
}

static void add_units(struct numbers *n, const struct phase_line *one, const struct phase_line *two)
{
	const struct vdevice *d = n->p->plan[1]->device;

	for (int s = 0; s < d->nseus; s++) {
		bool copies = d->seu[s].kind == SEU_COPY;

		add_value(n, arena_strf(n->a, "%s: %s", copies ? "under way" : "busy", d->seu[s].name),
			one ? unit_share(one, d, s) : 0, two ? unit_share(two, d, s) : 0, "%", 0);
		if (copies && !n->p->measured)
			add_value(n, arena_strf(n->a, "issuing: %s", d->seu[s].name), one ? one->seu[s].share : 0,
				two ? two->seu[s].share : 0, "%", 0);
	}
	if (!n->p->measured)
		add_value(n, "busy: memory", one ? one->memory_share : 0, two ? two->memory_share : 0, "%", 0);
}

static void add_usage(struct numbers *n)
{
	const struct usage *one = n->p->usage[0], *two = n->p->usage[1];

	if (!one || !two)
		return;
	add_value(n, "shared memory", (double)one->shared_bytes, (double)two->shared_bytes, "B", 0);
	add_value(n, "registers", (double)one->registers, (double)two->registers, "", 0);
	add_value(n, "threads", one->threads, two->threads, "", 0);
}

static void put_numbers(const struct pair *p, int phase, struct pen *pen)
{
	const struct column col[] = { { "", ALIGN_LEFT, 0, 0 }, { p->name[0], ALIGN_RIGHT, 0, 0 },
		{ p->name[1], ALIGN_RIGHT, 0, 0 }, { "change", ALIGN_LEFT, 0, 1 } };
	struct numbers n = { pen->arena, p, table_new(pen->arena, col, LEN(col)) };
	const struct timeline *one = p->tl[0], *two = p->tl[1];

	if (pair_has_one_time_axis(p) && !one->logical) {
		add_value(&n, "time", one->seconds, two->seconds, "s", -1);
		if (one->flops > 0)
			add_value(&n, "speed", one->flops / one->seconds, two->flops / two->seconds, "FLOP/s", 1);
		if (strstr(speed_text(n.a, one->plan->graph, one->plan->device, one->flops,
		    one->seconds), "B/s"))
			add_value(&n, "bandwidth", graph_bytes(one->plan->graph) / one->seconds,
				graph_bytes(two->plan->graph) / two->seconds, "B/s", 1);
		add_value(&n, "clock", one->clock_hz, two->clock_hz, "Hz", 1);
		add_value(&n, "power", one->watts, two->watts, "W", 0);
	}
	if (!one || !two || pair_has_one_time_axis(p)) {	/* stamps and cycles cannot be compared */
		add_value(&n, one ? timeline_unit(one) : "cycles", one ? (double)one->cycles : 0,
			two ? (double)two->cycles : 0, "", -1);
		add_loop(&n, pair_line(one, phase), pair_line(two, phase));
		add_units(&n, pair_line(one, phase), pair_line(two, phase));
	}
	add_usage(&n);
	pen_table(pen, "in numbers", &n.t);
}

/* ---- causes --------------------------------------------------------------------- */

struct cause_row {
	const char *text;
	double share[2];		/* of the first one's time */
};

struct cause_rows {
	VEC(struct cause_row) v;
};

static struct cause_row *cause_row_of(struct cause_rows *s, struct arena *a, const char *text)
{
	for (int i = 0; i < s->v.n; i++)
		if (!strcmp(s->v.v[i].text, text))
			return &s->v.v[i];
	VEC_PUSH(a, &s->v, ((struct cause_row){ .text = text }));
	return &s->v.v[s->v.n - 1];
}

/* Add the time of each cause, on average over the lanes that do not only feed others, like lua/std/compare.lua. */
static void add_causes(struct cause_rows *s, struct arena *a, const struct timeline *t, int which,
	bool in_cycles, double all)
{
	double unit = in_cycles ? 1 : t->clock_hz;
	struct blames b = { 0 };
	int lanes = 0;

	timeline_blame(a, t, in_cycles, &b);
	for (int l = 0; l < t->plan->lanes.n && l < LANES_MAX; l++)
		lanes += b.lane_cycles[l] > 0 && !lane_only_feeds(t->plan, l);
	for (int i = 0; i < b.v.n; i++) {
		const struct blame_part *x = &b.v.v[i];

		if (!lane_only_feeds(t->plan, x->lane))
			cause_row_of(s, a, blame_text(a, t->plan, x, true))->share[which] +=
				x->share * b.lane_cycles[x->lane] / unit / lanes / all;
	}
}

static int by_difference(const void *x, const void *y)
{
	const struct cause_row *a = x, *b = y;
	double da = fabs(a->share[1] - a->share[0]), db = fabs(b->share[1] - b->share[0]);

	return da != db ? (da < db) - (da > db) : strcmp(a->text, b->text);
}

static const char *share_text(struct arena *a, double share)
{
	return share < 0.0005 ? "-" : unit_keep(a, unit_percent(share));
}

static void put_causes(const struct pair *p, struct pen *pen)
{
	const struct column col[] = { { "where lanes spend their time", ALIGN_LEFT, 20, 0 },
		{ p->name[0], ALIGN_RIGHT, 0, 0 }, { p->name[1], ALIGN_RIGHT, 0, 0 }, { "", ALIGN_LEFT, 0, 1 } };
	/* a trace has no costs of the model, so both are explained by their events alone, in cycles */
	bool in_cycles = p->measured || !(p->tl[0]->clock_hz > 0 && p->tl[1]->clock_hz > 0);
	double all = (double)p->tl[0]->cycles / (in_cycles ? 1 : p->tl[0]->clock_hz);
	struct cause_rows s = { 0 };
	struct table t = table_new(pen->arena, col, LEN(col));

	for (int i = 0; i < 2; i++)
		add_causes(&s, pen->arena, p->tl[i], i, in_cycles, all);
	qsort(s.v.v, (size_t)s.v.n, sizeof(*s.v.v), by_difference);
	for (int i = 0; i < s.v.n && i < CAUSES_SHOWN; i++) {
		const struct cause_row *x = &s.v.v[i];
		bool less = x->share[1] < x->share[0];

		if (fabs(x->share[1] - x->share[0]) < 0.005)
			break;
		TABLE_ROW(&t, x->text, share_text(pen->arena, x->share[0]), share_text(pen->arena, x->share[1]),
			x->share[1] < 0.0005 ? "gone" : x->share[0] < 0.0005 ? "new" : less ? "▼" : "▲")[3].style.fg =
			less ? BETTER : WORSE;
	}
	pen_section(pen, arena_strf(pen->arena, "in causes, as shares of the time %s%s",
		strcmp(p->name[0], "before") && strcmp(p->name[0], "predicted") ? "of " : "", p->name[0]));
	if (!t.rows.n)
		pen_puts(pen, "  lanes wait for the same things for as long\n", FAINT);
	pen_table(pen, NULL, &t);
}

/* ---- sTasks --------------------------------------------------------------------- */

struct task_row {
	const char *name;
	const struct task_sum *sum[2];	/* NULL: the sTask is not in that plan */
	double adds;			/* cycles by which its lane takes longer */
};

struct task_rows {
	VEC(struct task_row) v;
};

static int by_added(const void *x, const void *y)
{
	const struct task_row *a = x, *b = y;
	double da = fabs(a->adds), db = fabs(b->adds);

	return da != db ? (da < db) - (da > db) : strcmp(a->name, b->name);
}

/* Match sTasks by name, because the graphs may differ. */
static void gather(struct arena *a, const struct pair *p, int phase, struct task_rows *out)
{
	for (int i = 0; i < 2; i++) {
		const struct graph *g = p->plan[i]->graph;
		const struct task_sum *sum = phase_sums(a, p->tl[i], phase < p->tl[i]->nphases ? phase : 0);

		for (int t = 0; t < g->tasks.n; t++) {
			int k = 0;

			if (!sum[t].n)
				continue;
			while (k < out->v.n && strcmp(out->v.v[k].name, g->tasks.v[t].name))
				k++;
			if (k == out->v.n)
				VEC_PUSH(a, &out->v, ((struct task_row){ .name = g->tasks.v[t].name }));
			out->v.v[k].sum[i] = &sum[t];
		}
	}
	for (int k = 0; k < out->v.n; k++) {
		struct task_row *r = &out->v.v[k];
		double one = r->sum[0] ? r->sum[0]->held : 0, two = r->sum[1] ? r->sum[1]->held : 0;

		if (r->sum[0] && r->sum[1])
			one *= (double)r->sum[1]->n / (double)r->sum[0]->n;
		r->adds = two - one;
	}
}

/* Did most instances complete before their lane looked? */
static bool is_late(const struct task_sum *s)
{
	return s && s->late * 2 > s->n;
}

static const char *mean_duration(struct arena *a, const struct task_sum *s)
{
	return s ? arena_strf(a, "%s%s", is_late(s) ? "<" : "", unit_rounded(s->duration / (double)s->n).s) : "-";
}

static const char *mean_wait(struct arena *a, const struct task_sum *s)
{
	return s ? unit_keep(a, unit_rounded(s->wait / (double)s->n)) : "-";
}

static void put_tasks(const struct pair *p, int phase, struct pen *pen)
{
	const struct column col[] = { { "sTask", ALIGN_LEFT, 8, 0 }, { "takes", ALIGN_RIGHT, 0, 0 },
		{ "then", ALIGN_RIGHT, 0, 0 }, { "times", ALIGN_RIGHT, 0, 0 }, { "waits", ALIGN_RIGHT, 0, 0 },
		{ "then", ALIGN_RIGHT, 0, 0 }, { "its lane", ALIGN_RIGHT, 0, 1 } };
	struct arena *a = pen->arena;
	struct task_rows rows = { 0 };
	bool late = false;
	struct table t = table_new(pen->arena, col, LEN(col));

	gather(pen->arena, p, phase, &rows);
	qsort(rows.v.v, (size_t)rows.v.n, sizeof(*rows.v.v), by_added);
	for (int i = 0; i < rows.v.n; i++) {
		const struct task_row *r = &rows.v.v[i];
		const struct task_sum *one = r->sum[0], *two = r->sum[1];
		const char *times = one && two && one->duration > 0 ? arena_strf(a, "%.2f", two->duration / (double)two->n /
			(one->duration / (double)one->n)) : NULL;

		TABLE_ROW(&t, r->name, mean_duration(a, one), mean_duration(a, two), times, mean_wait(a, one),
			mean_wait(a, two), arena_strf(a, "%s%s", r->adds > 0.5 ? "+" : "", unit_count(llround(r->adds)).s)
			)[6].style.fg = r->adds > 0.5 ? WORSE : r->adds < -0.5 ? BETTER : 0;
		late |= is_late(one) || is_late(two);
	}
	pen_section(pen, arena_strf(pen->arena, "by sTask: mean %s %s, then %s; what that adds to its lane",
		timeline_unit(p->tl[1]), p->name[0], p->name[1]));
	pen_table(pen, NULL, &t);
	if (late)
		pen_puts(pen, "  < an upper bound: it had completed before its lane looked\n", FAINT);
}

/* ---- statements ----------------------------------------------------------------- */

/* The statements of one plan behind a "plan:propagate" of the axes of its tile that the other plan has otherwise:
 * no statement of a script gives the tile, which is the graph's. Like plan:diff. */
static const char *with_tile(struct arena *a, const struct pair *p, int i)
{
	const struct program *program = p->plan[i]->graph->program;
	const int64_t *extent = p->plan[i]->graph->tiling.extent, *other = p->plan[!i]->graph->tiling.extent;
	struct buf b = buf_new(a), axes = buf_new(a);

	for (int k = 0; k < program->axes.n; k++)
		if (extent[k] > 0 && extent[k] != other[k])
			buf_printf(&axes, script_is_key(program->axes.v[k].name) ? "%s%s=%lld" : "%s[\"%s\"]=%lld",
				axes.len ? ", " : "", program->axes.v[k].name, (long long)extent[k]);
	if (axes.len)
		buf_printf(&b, "plan:propagate{%s}\n", axes.text);
	buf_puts(&b, p->script[i] ? p->script[i] : "");
	return b.text ? b.text : "";
}

void put_statements(const struct pair *p, struct pen *pen)
{
	struct diff d;
	int same = 0;

	if (p->difference) {
		pen_section(pen, "not one problem");
		pen_wrap(pen, "  ", 2, arena_strf(pen->arena, "%s. Neither is better for its time.", p->difference));
	}
	script_diff(pen->arena, with_tile(pen->arena, p, 0), with_tile(pen->arena, p, 1), &d);
	if (p->measured && !d.gone && !d.added)
		return;
	pen_section(pen, p->measured ? "the plan has been edited since it was measured" : "in statements of the plan");
	if (!d.gone && !d.added)
		pen_puts(pen, "  the plans are the same\n", FAINT);
	for (int i = 0; i < d.v.n; i++) {
		bool gone = d.v.v[i].kind == DIFF_GONE;
		struct buf b = buf_new(pen->arena);

		same += d.v.v[i].kind == DIFF_SAME;
		if (d.v.v[i].kind == DIFF_SAME)
			continue;
		text_wrap(&b, d.v.v[i].text, 4, 6, pen->width, pen->flags);
		pen_puts(pen, arena_strf(pen->arena, "%s%s\n", gone ? "  - " : "  + ", b.text),
			(struct style){ .fg = gone ? WORSE : BETTER });
	}
	if (same && (d.gone || d.added))
		pen_puts(pen, arena_strf(pen->arena, "    and %d that are the same\n", same), FAINT);
}

void put_comparison(const struct pair *p, int phase, struct pen *pen)
{
	put_numbers(p, phase, pen);
	if (pair_has_one_time_axis(p)) {
		put_causes(p, pen);
		put_tasks(p, phase, pen);
	}
}
