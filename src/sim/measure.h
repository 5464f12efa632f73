/* measure.h - the numbers of a phase (struct phase_line) from its events.
 *
 * The initiation interval (II) is the time from one iteration of the innermost loop with most iterations to the next:
 * the median over the completions of one sTask, the last one of that loop. Iterations can differ with a period, as the
 * replicas of a lane and the versions of rings follow each other. So completions `step` iterations apart are compared,
 * a multiple of that period, and the time between them is divided by step.
 */
#ifndef SIM_MEASURE_H
#define SIM_MEASURE_H

#include "plan/order.h"
#include "sim/timeline.h"

/* The innermost loop that runs most often; NONE if the phase has none that runs. */
int interval_loop(const struct plan *p, int phase, const struct walk *w);
/* The sTask whose completions count; NONE if the loop has no entry. */
int interval_task(const struct plan *p, int phase, int loop);
/* Do n completions show a steady state? Not if copies of the lane have less than three iterations each: the first ones share
 * units that the last ones have for themselves. */
bool interval_is_steady(const struct plan *p, int task, int64_t n);
/* The step, if there are n completions: 1 compares each with the next. A multiple of the lane's replicas, and of the
 * period of the rings if n is large enough. */
int interval_step(const struct plan *p, int task, int64_t n);
/* The median time between completions that are `step` apart, divided by step, in the unit of ends[], the times of all
 * n; NAN if there are too few. ends[] is overwritten. */
double interval_median(int64_t *ends, int64_t n, int64_t step);

/* For a measured kernel: given phase, eu, cycles and events of *line (of an EU with the tiles of w), sets eus, tiles,
 * ii_loop, ii (from the events), res_mii, rec_mii and binding_seu (from the model), and seu: the time in which an event
 * was running on each sEU. Scratch memory in `a`, released on return. */
void measure_line(struct arena *a, const struct plan *p, const struct walk *w, struct phase_line *line);

#endif
