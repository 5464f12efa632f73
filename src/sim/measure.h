/* measure.h - the numbers of a phase (struct phase_line) from its events.
 *
 * The initiation interval (II) is the median distance between successive completions of one sTask, the last one of the
 * innermost loop that runs most. Rings can make iterations differ with a period, the least common multiple of their
 * numbers of versions; then completions one period apart are compared, and their distance is divided by it.
 */
#ifndef SIM_MEASURE_H
#define SIM_MEASURE_H

#include "plan/order.h"
#include "sim/timeline.h"

/* The innermost loop that runs most often; NONE if the phase has none that runs. */
int interval_loop(const struct plan *p, int phase, const struct walk *w);
/* The sTask whose completions count; NONE if the loop has no entry. */
int interval_task(const struct plan *p, int phase, int loop);
/* The number of completions between the two that are compared, if there are n of them: a multiple of the lane's
 * replicas, and of the period of the rings if n is large enough. */
int interval_step(const struct plan *p, int task, int64_t n);
/* The median distance of completions that are `step` apart, divided by step, in the unit of ends[]; NAN if there
 * are too few. ends[] is overwritten. */
double interval_median(int64_t *ends, int64_t n, int64_t step);

/* Set all fields of *line but eu, given its phase, cycles and events, which are those of an EU with the tiles of w:
 * II from the events, the bounds from the model, and as utilization the share of the time in which an event
 * was running on each sEU. Scratch memory in `a`, released on return. */
void measure_line(struct arena *a, const struct plan *p, const struct walk *w, struct phase_line *line);

#endif
