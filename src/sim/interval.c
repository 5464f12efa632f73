/* The median distance of completions, and how far apart those must be that are compared (interval.h). */
#include "sim/interval.h"

#include <math.h>
#include <stdlib.h>

enum { PERIOD_MAX = 60 };		/* the longest period of rings that is used, in iterations */

static bool is_innermost(const struct program *p, int loop)
{
	for (int i = 0; i < p->loops.n; i++)
		if (p->loops.v[i].parent == loop)
			return false;
	return true;
}

int interval_loop(const struct plan *p, int phase, const struct walk *w)
{
	const struct program *g = p->graph->program;
	int best = NONE;

	for (int i = 0; i < g->loops.n; i++)
		if (g->loops.v[i].phase == phase && is_innermost(g, i) &&
		    walk_count(w, i) > (best == NONE ? 0 : walk_count(w, best)))
			best = i;
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
		int v = p->versions[i], a = period, b = v;

		if (g->buffers.v[i].phase != phase || g->buffers.v[i].loop != loop)
			continue;
		while (b) {
			int remainder = a % b;

			a = b;
			b = remainder;
		}
		if (period / a * v <= PERIOD_MAX)
			period = period / a * v;
	}
	return period;
}

int interval_step(const struct plan *p, int task, int64_t n)
{
	/* copies of the lane work on different iterations at the same time: so many ends are one step of each */
	int replicas = p->lanes.v[p->entries.v[plan_entry_of(p, task)].lane].replicas;
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
