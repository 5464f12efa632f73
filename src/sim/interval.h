/* interval.h - the initiation interval of a phase, from the times at which things ended.
 *
 * It is the distance between the ends of one sTask, the last one of the loop that runs
 * most often. Where rings make some iterations differ from their neighbours, a distance
 * is taken over as many as it takes until they come round together.
 */
#ifndef SIM_INTERVAL_H
#define SIM_INTERVAL_H

#include "plan/order.h"

/* The innermost loop that runs most often; NONE if the phase has none that runs. */
int interval_loop(const struct plan *p, int phase, const struct walk *w);
/* The sTask whose ends count; NONE if the loop has none. */
int interval_task(const struct plan *p, int phase, int loop);
/* Over how many of its ends a distance is taken, if there are n. */
int interval_step(const struct plan *p, int task, int64_t n);
/* The median of the distances of ends that are `step` apart, for each of them; NAN if
 * there are too few. The ends are used up. */
double interval_median(int64_t *ends, int64_t n, int64_t step);

#endif
