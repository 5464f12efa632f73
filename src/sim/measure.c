#include "sim/measure.h"

#include <math.h>

#include "sim/bounds.h"
#include "sim/interval.h"
#include "sim/traffic.h"

/* II, from the middle half of the completions, or from all if they are few. */
static double interval_of(struct arena *a, const struct plan *p, const struct phase_line *line, int task)
{
	int64_t *ends = ARENA_ARRAY(a, line->events.n, int64_t), n = 0;

	for (int i = 0; i < line->events.n; i++)
		if (line->events.v[i].task == task)
			ends[n++] = line->events.v[i].end;
	int64_t skip = n < 8 ? 0 : n / 4;
	n -= 2 * skip;
	return interval_median(ends + skip, n, interval_step(p, task, n));
}

/* Cycles from the start to the end of the last event that was kept. */
static int64_t time_kept(const struct phase_line *line)
{
	int64_t last = 0;

	for (int i = 0; i < line->events.n; i++)
		last = max_i64(last, line->events.v[i].end);
	return max_i64(last, 1);
}

/* Utilization: the union of the events of each sEU; they are sorted by issue, which is their start. */
static void measure_use(const struct plan *p, struct phase_line *line)
{
	int64_t time = time_kept(line);

	for (int s = 0; s < p->device->nseus; s++) {
		int64_t busy = 0, until = 0;

		for (int i = 0; i < line->events.n; i++) {
			const struct event *e = &line->events.v[i];

			if (e->seu != s || e->end <= until)
				continue;
			busy += e->end - max_i64(e->start, until);
			until = e->end;
		}
		line->seu[s].busy = (double)busy;
		line->seu[s].share = (double)busy / (double)time;
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
