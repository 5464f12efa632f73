/* sums.h - sums over the events of a phase, by sTask, by which timelines are compared. Times are cycles. */
#ifndef SIM_SUMS_H
#define SIM_SUMS_H

#include "sim/timeline.h"

struct task_sum {
	int64_t n;			/* events that were kept */
	double duration;		/* from issue to completion */
	double wait;			/* from when the lane reached it to its issue */
	double held;			/* of the lane: until it reached the next instance */
	int64_t late;			/* events whose end is an upper bound (struct event) */
	int lane;
};

/* By sTask of the graph; allocated in `a`. */
struct task_sum *phase_sums(struct arena *a, const struct timeline *t, int phase);

#endif
