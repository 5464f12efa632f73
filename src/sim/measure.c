/* II from completion times, and all numbers of a phase from the events of a traced kernel (measure.h). */
#include "sim/measure.h"

#include <math.h>
#include <stdlib.h>

#include "sim/bounds.h"
#include "sim/traffic.h"

enum { PERIOD_MAX = 60 };		/* the longest period of rings that is used, in iterations */

int interval_loop(const struct plan *p, int phase, const struct walk *w)
{
	const struct program *g = p->graph->program;
	int best = NONE;

	for (int i = 0; i < g->loops.n; i++) {
		bool is_innermost = true;

		for (int k = 0; k < g->loops.n; k++)
			is_innermost &= g->loops.v[k].parent != i;
		if (g->loops.v[i].phase == phase && is_innermost &&
		    walk_count(w, i) > (best == NONE ? 0 : walk_count(w, best)))
			best = i;
	}
	return best;
}

int interval_task(const struct plan *p, int phase, int loop)
{
	int best = NONE;

	for (int i = 0; i < p->entries.n; i++) {
		int task = p->entries.v[i].task;
		const struct stask *s = &p->graph->tasks.v[task];

		if (s->phase == phase && s->loop == loop && (best == NONE || task > best))
			best = task;
	}
	return best;
}

/* The period of the steady state in iterations: the least common multiple of the rings' versions, without those
 * that would make it longer than PERIOD_MAX. */
static int ring_period(const struct plan *p, int phase, int loop)
{
	const struct graph *g = p->graph;
	int period = 1;

	for (int i = 0; i < g->buffers.n; i++) {
		int longer = period / (int)gcd_i64(period, p->versions[i]) * p->versions[i];

		if (g->buffers.v[i].phase == phase && g->buffers.v[i].loop == loop && longer <= PERIOD_MAX)
			period = longer;
	}
	return period;
}

static int replicas_of(const struct plan *p, int task)
{
	return p->lanes.v[p->entries.v[plan_entry_of(p, task)].lane].replicas;
}

bool interval_is_steady(const struct plan *p, int task, int64_t n)
{
	int replicas = replicas_of(p, task);

	return n > 1 && (replicas == 1 || n >= 3 * (int64_t)replicas);
}

int interval_step(const struct plan *p, int task, int64_t n)
{
	/* copies of the lane work on different iterations at the same time: so many ends are one step of each */
	int replicas = replicas_of(p, task);
	int period = ring_period(p, p->graph->tasks.v[task].phase, p->graph->tasks.v[task].loop);

	return n > 2 * (int64_t)replicas * period ? replicas * period : replicas;
}

static int by_value(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

	return (a > b) - (a < b);
}

double interval_median(int64_t *ends, int64_t n, int64_t step)
{
	if (n <= step)
		return NAN;
	qsort(ends, (size_t)n, sizeof(*ends), by_value);
	for (int64_t i = 0; i + step < n; i++)
		ends[i] = ends[i + step] - ends[i];
	n -= step;
	qsort(ends, (size_t)n, sizeof(*ends), by_value);
	return (double)(ends[(n - 1) / 2] + ends[n / 2]) / 2 / (double)step;
}

/* II, from the middle half of the completions, or from all if they are few. */
static double interval_of(struct arena *a, const struct plan *p, const struct phase_line *line, int task)
{
	int64_t *ends = ARENA_ARRAY(a, line->events.n, int64_t), n = 0;

	for (int i = 0; i < line->events.n; i++)
		if (line->events.v[i].task == task)
			ends[n++] = line->events.v[i].end;
	if (!interval_is_steady(p, task, n))
		return NAN;
	int64_t skip = n < 8 ? 0 : n / 4;
	n -= 2 * skip;
	return interval_median(ends + skip, n, interval_step(p, task, n));
}

/* Utilization: the union of the events of each sEU; they are sorted by issue, which is their start. */
static void measure_use(const struct plan *p, struct phase_line *line)
{
	int64_t time = 1;

	for (int i = 0; i < line->events.n; i++)
		time = max_i64(time, line->events.v[i].end);
	for (int s = 0; s < p->device->nseus; s++) {
		int64_t busy = 0, until = 0;

		for (int i = 0; i < line->events.n; i++) {
			const struct event *e = &line->events.v[i];

			if (e->seu != s || e->end <= until)
				continue;
			busy += e->end - max_i64(e->start, until);
			until = e->end;
		}
		line->seu[s] = (struct seu_use){ .busy = (double)busy, .share = (double)busy / (double)time,
			.under_way = (double)busy / (double)time };
	}
}

void measure_line(struct arena *a, const struct plan *p, const struct walk *w, struct phase_line *line)
{
	struct arena_mark mark = arena_mark(a);
	struct tile_assignment d;
	struct bounds b;

	plan_assign_tiles(a, p, line->phase, &d);
	line->eus = d.eus;
	line->tiles = d.total;
	line->ii_loop = interval_loop(p, line->phase, w);
	int task = interval_task(p, line->phase, line->ii_loop);
	line->ii = task == NONE ? NAN : interval_of(a, p, line, task);
	if (isnan(line->ii))
		line->ii = (double)line->cycles / (double)max_i64(walk_count(w, line->ii_loop), 1);
	bounds_of_costs(a, p, traffic_plain(a, p, line->phase, &d), line->phase, line->ii_loop, NULL, &b);
	line->res_mii = b.res_mii;
	line->rec_mii = b.rec_mii;
	line->binding_seu = b.binding_seu;
	measure_use(p, line);
	arena_reset(a, mark);
}
