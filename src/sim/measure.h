/* measure.h - the numbers of a phase (struct phase_line) from the events of a traced kernel. */
#ifndef SIM_MEASURE_H
#define SIM_MEASURE_H

#include "plan/order.h"
#include "sim/timeline.h"

/* Set all fields of *line but eu, given its phase, cycles and events, which are those of an EU with the tiles of w:
 * II from the events, the bounds from the model, and as utilization the share of the time in which an event
 * was running on each sEU. Scratch memory in `a`, released on return. */
void measure_line(struct arena *a, const struct plan *p, const struct walk *w, struct phase_line *line);

#endif
