#include "sim/follow.h"

#include <math.h>

#include "graph/accessed.h"
#include "plan/assign.h"
#include "plan/phases.h"
#include "target/target.h"

/* Iterations of a ready load that its lane issues before the first sTask that waits: all, or those by which its offset, and its
 * position, is ahead. */
static int64_t issued_ahead(const struct plan *p, int entry)
{
	const struct graph *g = p->graph;
	const struct entry *x = &p->entries.v[entry];
	int64_t n = INT64_MAX;

	for (int i = 0; i < p->entries.n; i++) {
		const struct entry *y = &p->entries.v[i];
		const struct stask *s = &g->tasks.v[y->task];

		if (y->lane != x->lane || s->phase != 0 || !stask_waits_early(p, y->task))
			continue;
		if (s->kind != TASK_LOAD || s->loop != g->tasks.v[x->task].loop)
			return 0;
		n = min_i64(n, max_i64(0, x->at - y->at + (entry < i)));
	}
	return n;
}

/* Bytes that all EUs load ahead of what waits: as many slots as rings of ready loads have. What several EUs load counts once. */
static double bytes_ahead(const struct plan *p)
{
	const struct graph *g = p->graph;
	double sum = 0;
	int eus = plan_eus(p, 0);

	for (int i = 0; i < p->entries.n; i++) {
		const struct stask *s = &g->tasks.v[p->entries.v[i].task];
		int versions = 1;

		if (s->phase != 0 || s->kind != TASK_LOAD || stask_waits_early(p, p->entries.v[i].task))
			continue;
		for (int k = 0; k < s->writes.n; k++)
			versions = (int)max_i64(versions, p->versions[s->writes.v[k]]);

		double all = s->work.global_bytes * graph_all_runs(g, s);
		double once = accessed_once(g->program, stask_last_node(g, s));
		double slots = fmin(versions, (double)issued_ahead(p, i));
		double bytes = fmin(slots * s->work.global_bytes * eus, all);

		sum += all > once ? bytes * once / all : bytes;
	}
	return sum;
}

/* Seconds by which the mean EU ends before the last one: what it has less to do. */
static double uneven_seconds(struct arena *a, const struct timeline *t)
{
	const struct phase_line *line = &t->phases[t->nphases - 1];
	struct arena_mark mark = arena_mark(a);
	double most = (double)plan_most_tiles(a, t->plan, line->phase), mean = (double)line->tiles / line->eus;

	arena_reset(a, mark);
	return most > mean && t->clock_hz > 0 ? (1 - mean / most) * (double)line->cycles / t->clock_hz : 0;
}

void sim_follow(struct arena *a, const struct timeline *front, const struct timeline *behind, bool early, struct follow *out)
{
	const struct vdevice *d = behind->plan->device;
	bool can = early && target_of(d)->phases_overlap;

	*out = (struct follow){ .start = can ? d->early_seconds : d->launch_seconds };
	if (!can || plan_waits_first(behind->plan))
		return;
	out->bytes = bytes_ahead(behind->plan);
	if (out->bytes <= 0)
		return;
	out->ahead = d->ahead_seconds + (front->plan->launch.next == NEXT_END ? 0 : uneven_seconds(a, front));
	out->saved = fmin(out->ahead, out->bytes / d->global_rate + (behind->clock_hz > 0 ? d->global_latency / behind->clock_hz : 0));
}
