/* Which rows a chart of a timeline has, and which row each event is on: the same for text and for pictures. */
#include <math.h>
#include <stdlib.h>

#include "draw/chart.h"
#include "draw/units.h"
#include "target/target.h"

bool chart_shows(const struct chart *c, int64_t begin, int64_t end)
{
	return begin < c->to && (end > c->from || (begin == end && begin == c->from));
}

const char *lane_label(struct arena *a, const struct plan *p, int lane, int replica)
{
	const struct lane *l = &p->lanes.v[lane];

	return l->replicas > 1 ? arena_strf(a, "%s.%d", l->name, replica) : l->name;
}

const char *warpgroup_label(struct arena *a, const struct plan *p, int lane, int group)
{
	return arena_strf(a, "%s wg%d", p->lanes.v[lane].name, group);
}

/* Where there is no engine, to copy by threads is all that the unit does. */
bool unit_is_replaced(const struct phase_line *p, const struct vdevice *d, int seu)
{
	return p->seu[seu].by_threads && target_has_copy_engine(target_of(d));
}

const char *unit_label(struct arena *a, const struct phase_line *p, const struct vdevice *d, int seu)
{
	return unit_is_replaced(p, d, seu) ? arena_strf(a, "threads (%s)", d->seu[seu].name) : d->seu[seu].name;
}

double unit_share(const struct phase_line *p, const struct vdevice *d, int seu)
{
	return d->seu[seu].kind == SEU_COPY ? p->seu[seu].under_way : p->seu[seu].share;
}

const char *unit_issue(struct arena *a, const struct phase_line *p, const struct vdevice *d, int seu)
{
	const struct seu_use *u = &p->seu[seu];

	return d->seu[seu].kind != SEU_COPY || !(u->share > 0) || u->under_way <= u->share ? "" :
		arena_strf(a, "issuing %s", unit_percent(u->share).s);
}

int chart_label_width(const struct chart *c)
{
	const struct plan *p = c->t->plan;
	int most = 6, lanes = 0;	/* "cycles" */

	for (int i = 0; i < p->lanes.n; i++)
		lanes = (int)max_i64(lanes, text_width(c->lookup->drifts[i] ? warpgroup_label(c->arena, p, i, 0) :
			lane_label(c->arena, p, i, 0)));
	for (int i = 0; i < c->d->nseus; i++)
		if (plan_shows_unit(p, i))
			most = (int)max_i64(most, text_width(unit_label(c->arena, c->line, c->d, i)) +
				(c->by == TIMELINE_SEUS && !c->d->seu[i].async ? 1 + lanes : 0));
	return (int)min_i64(max_i64(most, lanes), 16);
}

/* The events in sight on asynchronous sEUs, sorted by the cycle in which they start. A timeline is in order of
 * issue, and an event starts later than the next one only if it queues longer. */
static int sort_begins(const struct chart *c, struct event_time *v)
{
	bool sorted = true;
	int n = 0;

	for (int i = 0; i < c->seen.n; i++) {
		const struct event *e = chart_seen(c, i);

		if (!event_is_async(c, e) || c->seen.v[i].joined || !chart_shows(c, event_seu_begin(e), event_seu_end(c, e)))
			continue;
		sorted &= !n || v[n - 1].at <= event_seu_begin(e);
		v[n++] = (struct event_time){ event_seu_begin(e), i };
	}
	if (!sorted)
		qsort(v, (size_t)n, sizeof(*v), event_time_compare);
	return n;
}

/* Give each asynchronous event the first row of its sEU that is free when it starts, or the one that is free
 * soonest if there are `most` rows already. `slack`: cycles that two events of one row may overlap. */
static void stack_events(const struct chart *c, int most, int64_t slack, struct chart_layout *out)
{
	struct event_time *v = ARENA_ARRAY(c->arena, c->seen.n, struct event_time);
	int64_t until[SEU_MAX][CHART_DEPTH_MAX] = { 0 };
	int n = sort_begins(c, v);

	out->depth = ARENA_ARRAY(c->arena, c->seen.n, uint8_t);
	for (int i = 0; i < n; i++) {
		const struct event *e = chart_seen(c, v[i].event);
		int64_t *u = until[e->seu];
		int k = 0;

		while (k < most && u[k] - slack > event_seu_begin(e))
			k++;
		if (k == most)
			for (int j = k = 0; j < most; j++)
				k = u[j] < u[k] ? j : k;
		u[k] = max_i64(u[k], event_seu_end(c, e));
		out->depth[v[i].event] = (uint8_t)k;
		out->queue_depth[e->seu] = (int)max_i64(out->queue_depth[e->seu], k + 1);
	}
}

/* Which replicas or warpgroups of lanes do something in this phase on an sEU, or on any (NONE). */
static void find_used(const struct chart *c, int seu, bool used[LANES_MAX][REPLICAS_MAX])
{
	const struct plan *p = c->t->plan;

	for (int i = 0; i < p->entries.n; i++) {
		const struct entry *e = &p->entries.v[i];

		if ((c->shown && !c->shown[e->task]) || c->g->tasks.v[e->task].phase != c->line->phase ||
		    (seu != NONE && e->seu != seu))
			continue;
		for (int k = 0; k < c->split[e->lane] && k < REPLICAS_MAX; k++)
			used[e->lane][k] |= c->lookup->of_lane[e->lane][0].n > 0;
		for (int k = 0; k < p->lanes.v[e->lane].replicas && k < REPLICAS_MAX; k++)
			used[e->lane][k] |= c->lookup->of_lane[e->lane][k].n > 0;
	}
}

/* A row for each replica of a lane that does something: on any sEU (NONE), or on a synchronous one. */
static void add_lane_rows(const struct chart *c, int seu, int row[LANES_MAX][REPLICAS_MAX], struct chart_layout *out)
{
	bool used[LANES_MAX][REPLICAS_MAX] = { 0 };

	find_used(c, seu, used);
	for (int l = 0; l < LANES_MAX; l++) {
		for (int k = 0; k < REPLICAS_MAX; k++) {
			const char *label;

			row[l][k] = NONE;
			if (!used[l][k])
				continue;
			label = c->split[l] ? warpgroup_label(c->arena, c->t->plan, l, k) :
				lane_label(c->arena, c->t->plan, l, k);
			row[l][k] = out->rows.n;
			VEC_PUSH(c->arena, &out->rows, ((struct layout_row){ .lane = l, .replica = k, .seu = seu,
				.label = seu == NONE ? label :
					arena_strf(c->arena, "%s %s", c->d->seu[seu].name, label) }));
		}
	}
}

void chart_lay_out(const struct chart *c, int most, int64_t slack, struct chart_layout *out)
{
	*out = (struct chart_layout){ 0 };
	for (int s = 0; s < c->d->nseus; s++)
		out->queue_depth[s] = !most ? 1 : c->deep ? c->deep[s] : 0;
	if (most)
		stack_events(c, most, slack, out);
	if (c->by == TIMELINE_LANES)
		add_lane_rows(c, NONE, out->lane_row, out);
	out->nlanes = out->rows.n;
	for (int s = 0; s < c->d->nseus; s++) {
		out->queue_row[s] = out->rows.n;
		for (int k = 0; k < out->queue_depth[s] && c->d->seu[s].async; k++)
			VEC_PUSH(c->arena, &out->rows, ((struct layout_row){ .lane = NONE, .seu = s,
				.label = k ? "" : unit_label(c->arena, c->line, c->d, s) }));
		if (!c->d->seu[s].async && c->by == TIMELINE_SEUS)
			add_lane_rows(c, s, out->seu_row[s], out);
	}
}

int layout_row_of(const struct chart *c, const struct chart_layout *l, int seen)
{
	const struct event *e = chart_seen(c, seen);

	if (event_is_async(c, e))
		return l->queue_row[e->seu] + l->depth[seen];
	return c->by == TIMELINE_LANES ? l->lane_row[e->lane][e->replica] : l->seu_row[e->seu][e->lane][e->replica];
}

int layout_lane_row_of(const struct chart *c, const struct chart_layout *l, const struct event *e)
{
	return c->by == TIMELINE_LANES ? l->lane_row[e->lane][e->replica] : NONE;
}

struct chart_axis chart_axis(const struct chart *c, bool seconds, double gap)
{
	double clock = c->t->clock_hz > 0 ? c->t->clock_hz : c->d->clock_hz;
	double cycles = (double)(c->to - c->from), scale = 1, begin, span, step;
	struct chart_axis x = { .unit = timeline_unit(c->t) };
	int decimals;

	if (seconds && (!(clock > 0) || c->t->logical))
		return (struct chart_axis){ 0 };
	if (seconds) {
		scale = cycles / clock < 1e-6 ? 1e9 : cycles / clock < 1e-3 ? 1e6 : 1e3;
		x.unit = scale == 1e9 ? "ns" : scale == 1e6 ? "µs" : "ms";
		scale /= clock;
	}
	begin = (double)c->from * scale;
	span = cycles * scale;
	step = unit_step(span * gap);
	step = seconds ? step : fmax(step, 1);
	decimals = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
	for (double k = ceil(begin / step - 1e-9) + 0.0; k * step <= begin + span * (1 + 1e-9); k++)
		VEC_PUSH(c->arena, &x.ticks, ((struct chart_tick){ (k * step - begin) / span, seconds ?
			arena_strf(c->arena, "%.*f", decimals, k * step) :
			unit_keep(c->arena, unit_count((int64_t)(k * step))) }));
	return x;
}
