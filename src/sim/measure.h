/* measure.h - the numbers of a phase from the events that a device left. */
#ifndef SIM_MEASURE_H
#define SIM_MEASURE_H

#include "plan/order.h"
#include "sim/timeline.h"

/* Given line's phase, cycles and events, which are those of an EU that walks w, all the
 * rest but line->eu: bounds from the model, the interval from the events, and how much of
 * the time some event was under way on each sEU. Scratch in `a`, given back. */
void measure_line(struct arena *a, const struct plan *p, const struct walk *w,
	struct phase_line *line);

#endif
